"""Operators whose results are indices, counts or bools, without a gradient; and weighted counts."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...type_aliases import Array
from ..define import row
from ..language.namespace import formula_function

__all__: list[str] = []

NOT = "not_differentiable"

# -- positions ---------------------------------------------------------------------------------------------------------

for _name, _what in (("argmax", "maximum"), ("argmin", "minimum")):
    _function = getattr(np, _name)
    row(
        f"{_name}(self, axis=None, keepdims=False)",
        lambda a, axis=None, keepdims=False, function=_function: function(a, axis=axis, keepdims=keepdims),
        {"self": NOT},
        numpy=[_function],
        doc=f"The indices of the {_what} values along `axis`, or of all elements; of equal values, the first.",
    )


def partition_places(array: Any, kth: Any, axis: int = -1) -> Any:
    places, found = np.argpartition(array, kth, axis), np.partition(array, kth, axis)
    if not np.array_equal(np.take_along_axis(array, places, axis), found, equal_nan=True):
        # The order of the remaining elements is unspecified and differs from NumPy's: equal values have equal ranks.
        ranks = np.argsort(np.argsort(found, axis), axis)
        places = np.take_along_axis(np.argsort(array, axis), ranks, axis)
    return places


row(
    "argpartition(self, kth, axis=-1)",
    lambda a, kth, axis=-1: np.argpartition(a, kth, axis=axis),
    {"self": NOT},
    numpy=[np.argpartition],
    doc="The indices that partition the elements around the `kth` smallest.",
)
row(
    "_partition_places(self, kth, axis=-1)", partition_places, {"self": NOT},
    doc="The indices by which `numpy.partition` orders the values.",
)
row(
    "searchsorted(self, v, side='left')",
    lambda a, v, side="left": np.searchsorted(a, v, side=side),
    {"self": NOT, "v": NOT},
    numpy=[np.searchsorted],
    doc="The indices at which values would have to be inserted to keep a vector sorted.",
)
row(
    "digitize(self, bins, right=False)",
    lambda a, bins, right=False: np.digitize(a, bins, right=right),
    {"self": NOT, "bins": NOT},
    numpy=[np.digitize],
    doc="The index of the bin that each value belongs to.",
)
row(
    "isin(self, test_elements, *, invert=False)",
    lambda a, test_elements, *, invert=False: np.isin(a, test_elements, invert=invert),
    {"self": NOT, "test_elements": NOT},
    numpy=[np.isin],
    doc="Test whether each value is among the given values.",
)

# -- counts ------------------------------------------------------------------------------------------------------------


@formula_function
def taken_in(grad: Any, places: Any, dtype: Any) -> Any:
    """Sum a gradient by bin, in the given dtype."""
    taken = grad[places]
    return taken if taken.dtype == dtype else taken.astype(dtype)


row(
    "bincount(self, weights=None, minlength=0)",
    lambda a, weights=None, minlength=0: bincount_forward(a, weights, minlength),
    {"self": NOT, "weights": "taken_in(grad, self, weights.dtype)"},
    forward_derivative="bincount(self_p, weights_t, minlength)",
    numpy=[np.bincount],
    method=False,
    doc="The number of occurrences of each integer, or the sum of its weights.",
)


def bincount_forward(a: Array, weights: Array | None, minlength: int) -> Array:
    counts = np.bincount(a, weights, minlength)
    return counts if weights is None or weights.dtype.kind != "f" else counts.astype(weights.dtype, copy=False)

# -- integers ----------------------------------------------------------------------------------------------------------

for _name, _what in (("gcd", "greatest common divisor"), ("lcm", "least common multiple")):
    _function = getattr(np, _name)
    row(
        f"{_name}(self, other)", _function, {"self": NOT, "other": NOT}, elementwise=True, numpy=[_function],
        doc=f"The {_what} of integers.",
    )
if hasattr(np, "bitwise_count"):
    row(
        "bitwise_count(self)", np.bitwise_count, {"self": NOT}, elementwise=True, numpy=[np.bitwise_count],
        doc="The number of 1 bits of an integer.",
    )
