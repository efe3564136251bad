"""The derivatives of distinct values, whose gradients flow to their first occurrences in the tensor."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...tensor.creation import as_operand
from ...tensor.tensor import FUNCTIONS, Tensor, as_buffered
from ...type_aliases import Array
from ..define import row
from ..language.namespace import formula_function
from .helpers import call, plain

__all__: list[str] = []


def unique_all_forward(a: Any) -> tuple[Array, Array, Array, Array]:
    values, indices, inverse, counts = np.unique(
        a, return_index=True, return_inverse=True, return_counts=True, equal_nan=False
    )
    return values, indices, inverse.reshape(a.shape), counts


@formula_function
def first_places(a: Any, axis: int | None) -> Array:
    """Return the first index of each distinct value, or of each distinct slice along `axis`."""
    return np.unique(plain(a), return_index=True, axis=axis)[1]


row(
    "unique(self, axis=None)",
    lambda a, axis=None: np.unique(a, axis=axis),
    {"self": "take_gradient(grad, first_places(self, axis), self.shape, axis, 'raise')"},
    forward_derivative="take(self_t, first_places(self_p, axis), axis)",
    dtype_kinds="fc",
    doc="The sorted distinct values; the gradient goes to the first occurrence of each.",
)
unique_all = row(
    "unique_all(self) -> (values, indices, inverse_indices, counts)",
    unique_all_forward,
    {"self": "take_gradient(grad, indices, self.shape, None, 'raise')"},
    forward_derivative={"values": "take(self_t, indices)"},
    nondifferentiable_outputs=("indices", "inverse_indices", "counts"),
    dtype_kinds="fc",
    numpy=[np.unique_all],
    doc="The distinct values in ascending order, the index of the first occurrence of each, the index among them of "
    "each element, and the number of occurrences. Every NaN is distinct.",
)


def _unique(
    ar: Any, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False, axis: Any = None,
    *, equal_nan: bool = True, **order: Any,
) -> Any:  # fmt: skip
    """Implement `numpy.unique`, with the values gathered from the tensor."""
    ar = as_operand(ar)
    asked = (return_inverse, return_counts)
    _, places, *others = np.unique(plain(ar), True, *asked, axis=axis, equal_nan=equal_nan)  # type: ignore[call-overload]
    values = call("take", ar, places, axis)
    if not (return_index or return_inverse or return_counts):
        return values if order.get("sorted", True) or axis is not None else _as_found(values, plain(ar), equal_nan)
    return (values, *(Tensor(part) for part in ([places] if return_index else []) + others))


def _as_found(values: Any, array: Any, equal_nan: bool) -> Any:
    """Return sorted values in NumPy's order for unsorted results."""
    found = np.unique(array, sorted=False) if equal_nan else np.unique_values(array)
    return values if found.shape != values.shape else call("take", values, np.argsort(np.argsort(found)), 0)


def _with_places(parts: Any) -> tuple[Any, ...]:
    """Return the parts of `unique_all`, the third of which is an array even if it is 0-d."""
    return (*parts[:2], as_buffered(parts[2]), parts[3])


FUNCTIONS[np.unique] = _unique
FUNCTIONS[np.unique_values] = lambda x, /: _as_found(unique_all(x)[0], plain(x), False)
FUNCTIONS[np.unique_counts] = lambda x, /: unique_all(x)[::3]
FUNCTIONS[np.unique_inverse] = lambda x, /: _with_places(unique_all(x))[::2]
FUNCTIONS[np.unique_all] = lambda x, /: _with_places(unique_all(x))
