"""Rows whose results are places, counts or truth values, and so have no gradient; and counts that are weighted."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..codegen.generate import formula_function
from ..define import row

__all__: list[str] = []

Array = np.ndarray[Any, Any]
NOT = "not_differentiable"

# -- places ------------------------------------------------------------------------------------------------------------

for _name, _what in (("argmax", "greatest"), ("argmin", "least")):
    _function = getattr(np, _name)
    row(
        f"{_name}(self, axis=None, keepdims=False)",
        lambda a, axis=None, keepdims=False, function=_function: function(a, axis=axis, keepdims=keepdims),
        {"self": NOT},
        numpy=[_function],
        doc=f"Where the {_what} value is, of equal ones the first; in row order, where no axis is given.",
    )


def partition_places(array: Any, kth: Any, axis: int = -1) -> Any:
    places, found = np.argpartition(array, kth, axis), np.partition(array, kth, axis)
    if not np.array_equal(np.take_along_axis(array, places, axis), found, equal_nan=True):
        # The others are in no order in particular, which is another one here: equal values have equal ranks.
        ranks = np.argsort(np.argsort(found, axis), axis)
        places = np.take_along_axis(np.argsort(array, axis), ranks, axis)
    return places


row(
    "argpartition(self, kth, axis=-1)",
    lambda a, kth, axis=-1: np.argpartition(a, kth, axis=axis),
    {"self": NOT},
    numpy=[np.argpartition],
    doc="The places of the values, with that of the `kth` in order at its own place and lesser ones before it.",
)
row(
    "_partition_places(self, kth, axis=-1)", partition_places, {"self": NOT},
    doc="The places of the values in the order in which `numpy.partition` puts them.",
)
row(
    "searchsorted(self, v, side='left')",
    lambda a, v, side="left": np.searchsorted(a, v, side=side),
    {"self": NOT, "v": NOT},
    numpy=[np.searchsorted],
    doc="Where values would have to be inserted to keep a vector sorted.",
)
row(
    "digitize(self, bins, right=False)",
    lambda a, bins, right=False: np.digitize(a, bins, right=right),
    {"self": NOT, "bins": NOT},
    numpy=[np.digitize],
    doc="The number of the bin that each value lies in.",
)
row(
    "isin(self, test_elements, *, invert=False)",
    lambda a, test_elements, *, invert=False: np.isin(a, test_elements, invert=invert),
    {"self": NOT, "test_elements": NOT},
    numpy=[np.isin],
    doc="Whether each value is one of the others.",
)

# -- counts ------------------------------------------------------------------------------------------------------------


@formula_function
def taken_in(grad: Any, places: Any, dtype: Any) -> Any:
    """Sum a gradient by place, in the given dtype."""
    taken = grad[places]
    return taken if taken.dtype == dtype else taken.astype(dtype)


row(
    "bincount(self, weights=None, minlength=0)",
    lambda a, weights=None, minlength=0: bincount_forward(a, weights, minlength),
    {"self": NOT, "weights": "taken_in(grad, self, weights.dtype)"},
    forward_derivative="bincount(self_p, weights_t, minlength)",
    numpy=[np.bincount],
    method=False,
    doc="How often each integer occurs, or the sum of the weights beside it.",
)


def bincount_forward(a: Array, weights: Array | None, minlength: int) -> Array:
    counts = np.bincount(a, weights, minlength)
    return counts if weights is None or weights.dtype.kind != "f" else counts.astype(weights.dtype, copy=False)
