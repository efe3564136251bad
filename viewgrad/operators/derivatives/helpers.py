"""Functions shared by formulas, for arrays and tensors alike.

Each is written with methods, Python's operators and NumPy's functions, which mean the same for both, so that formulas
can be differentiated again.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ...tensor.tensor import Tensor
from ...tensor.trace_hooks import array_of, observed
from ...type_aliases import Array
from ...views.unbroadcast import match_spec
from ..language.namespace import ARRAY_FUNCTIONS, TENSOR_FUNCTIONS, compiled_as, formula_function, made_of_operators

minimum_reduce: Final[Any] = np.minimum.reduce
ZEROS: Final = {np.dtype(dtype): np.zeros((), dtype) for dtype in (np.float16, np.float32, np.float64)}
INTEGERS: Final = {2: np.int16, 4: np.int32, 8: np.int64}
MANY: Final = 3000  # the number of elements from which the number of NumPy calls no longer dominates
SMALL: Final = 4096  # the number of elements up to which np.broadcast_to, at 1.8 us, costs more than a copy


def of_its_own(result: Any, a: Any) -> Any:
    """Return a result that shares no memory with the argument, which NumPy may return unchanged."""
    return result.copy() if result is a else result


def copy_order(array: Any) -> list[int]:
    """Return the dimensions by decreasing stride in a copy of an array, as `copy(order="K")` and `empty_like` make it.
    """
    return sorted(range(array.ndim), key=lambda dim: -abs(array.strides[dim]))


def memory_order(array: Any) -> list[int]:
    """Return the dimensions by decreasing stride in the result of a ufunc; broadcast dimensions keep theirs."""
    order: list[int] = []  # shortest strides first
    for dim in reversed(range(array.ndim)):
        place, stride = len(order), abs(array.strides[dim])
        for before in reversed(range(len(order))):
            other = abs(array.strides[order[before]])
            if stride and other:
                if other <= stride:
                    break
                place = before
        order.insert(place, dim)
    return order[::-1]


@formula_function
@compiled_as("0")
def zeros_like(value: Any) -> Any:
    """Return zeros with the shape and dtype of `value`."""
    return np.zeros_like(value)


@formula_function
@made_of_operators("1 if value == 0 else value")
def nonzero_or_one(value: Any) -> Any:
    """Return the value with 0 replaced by 1, for a denominator whose numerator is 0 there too."""
    return np.where(value == 0, 1, value)


@formula_function
def flowing(product: Any, grad: Any, dim: int | None = None) -> Any:
    """Return a product with `grad` that is 0 where `grad` is 0, even if the other factor is infinite or NaN.

    For a computation along a dimension, it is 0 where `grad` is 0 along the whole dimension.

    See Note [Infinite slopes] in docs/notes/declarations.md.
    """
    recorded = isinstance(product, Tensor)
    if recorded and observed() is not None:  # a trace must be valid for other values too
        return call("_where_flowing", product, grad if dim is None else (grad != 0).any(dim, keepdims=True))
    array = product._array if recorded else product
    if not array.size or not np.isnan(minimum_reduce(array, None)):  # the minimum is NaN if any element is
        return product
    still = (grad._array if isinstance(grad, Tensor) else grad) == 0
    if dim is not None and array.ndim:
        still = np.all(still, dim, keepdims=True)
    nowhere = np.isnan(array) & still
    if not nowhere.any():
        return product
    if recorded:
        plain(grad)
    return product.masked_fill(nowhere, 0) if recorded else np.where(nowhere, array.dtype.type(0), array)


@formula_function
def still_elements(tangent: Any) -> Any:
    """Return the mask of the zeros of a tangent, or None if it has no zeros."""
    if observed() is not None:
        return tangent.detach() == 0
    still = tangent._array == 0
    return still if still.any() else None


@formula_function
def keep_still(tangent: Any, still: Any) -> None:
    """Set elements in place to 0 where a tangent was 0 before and is NaN now."""
    if isinstance(still, Tensor):
        tangent.masked_fill_(tangent.detach().isnan() & still, 0)
    elif still is not None:
        still &= np.isnan(tangent._array)
        if still.any():
            tangent.masked_fill_(still, 0)


def filled(array: Any, mask: Any, value: Any) -> Any:
    """Return the array with `value` where the mask is true."""
    if type(value) is int and not value and type(array) is np.ndarray and array.size >= MANY:
        if type(mask) is np.ndarray and mask.shape == array.shape and array.dtype in ZEROS:
            return kept_elements(array, np.logical_not(mask))
    return np.where(mask, value, array)


def kept_elements(array: Array, mask: Array) -> Array:
    """Return the elements where the mask is true, and 0 elsewhere.

    Their bits are multiplied by the mask as integers, since infinite floats would not become 0. Selection by a random
    mask takes five times as long, because of branch mispredictions.
    """
    out = np.empty_like(array)
    number = INTEGERS[array.itemsize]
    np.multiply(array.view(number), mask, out.view(number))
    return out


@formula_function
@compiled_as("0 if value == 0 else grad")
def of_positive(grad: Any, value: Any) -> Any:
    """Return the gradient, or 0 where a nonnegative value is 0."""
    if type(grad) is np.ndarray:
        zero = ZEROS.get(grad.dtype)
        if zero is not None:  # an array; converting a number takes NumPy longer than computing a few elements
            if grad.size < MANY:
                return np.where(np.equal(value, zero), zero, grad)
            return kept_elements(grad, np.not_equal(value, zero))
    return call("masked_fill", grad, value == 0, 0)


def conjugated(value: Any) -> Any:
    """Return the conjugate of an array or a tensor; a real one is returned unchanged, which `numpy.conjugate` would
    copy.
    """
    return value.conj() if value.dtype.kind == "c" else value


@formula_function
def as_dtype(grad: Any, dtype: np.dtype[Any]) -> Any:
    """Return the gradient in another dtype; the real part if that dtype is real."""
    return match_spec(grad, (grad.shape, dtype))


def plain(value: Any) -> Any:
    """Return the array of an index, a mask or a condition, which may be wrapped in a tensor."""
    if not isinstance(value, Tensor):
        return np.asarray(value)
    return array_of(value, LOOKED_AT.get(value._array.dtype.kind, "a choice by values"))


LOOKED_AT: Final = {"b": "a mask", "i": "an index", "u": "an index"}


def pattern_of(value: Any) -> Any:
    """Return an uninitialized array with the shape, dtype and layout of a tensor or an array."""
    return np.asarray(value._array if isinstance(value, Tensor) else value)


def call(name: str, value: Any, *args: Any) -> Any:
    """Call the operator `name` on a tensor, or its forward on an array."""
    if isinstance(value, Tensor):
        return getattr(TENSOR_FUNCTIONS, name)(value, *args)
    return getattr(ARRAY_FUNCTIONS, name)(value, *args)


# -- matrices ----------------------------------------------------------------------------------------------------------


@formula_function
def adjoint(a: Any) -> Any:
    """Return the matrices transposed and conjugated."""
    return a.mT.conj() if a.dtype.kind == "c" else a.mT


def eye_like(a: Any) -> Array:
    """Return the identity matrix of the size of the square matrices `a`, in the corresponding real dtype."""
    return np.eye(a.shape[-1], dtype=real_dtype(a.dtype))


def real_dtype(dtype: Any) -> np.dtype[Any]:
    """Return the dtype of the real part of a number."""
    return np.empty(0, dtype).real.dtype
