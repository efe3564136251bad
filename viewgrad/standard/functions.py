"""Functions of the array API standard whose names or keywords differ from NumPy's.

The file is long because each public function has its docstring with an example.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from ..operators import OPERATORS
from ..operators.composites import COMPOSITES
from ..operators.numpy_api.aliases import with_new_axes
from ..operators.numpy_api.reductions import REDUCTIONS
from ..operators.numpy_api.ufuncs import argsort as sorting_places
from ..operators.numpy_api.ufuncs import sort as sorted_along
from ..tensor.creation import as_operand, checked_device, zeros
from ..tensor.dlpack import from_dlpack
from ..tensor.tensor import Tensor
from ..views.view_ops import broadcast_to as broadcast_view
from ..views.view_ops import permute, swapaxes, unbind
from ..views.view_ops import reshape as view_or_copy
from .dtypes import CONSTANTS, DTYPES, can_cast, finfo, iinfo, isdtype, result_type
from .inspection import API_VERSION, NamespaceInfo

# The standard's name of an operator, and its name in the table.
ALIASES: Final = {
    "acos": "arccos",
    "acosh": "arccosh",
    "asin": "arcsin",
    "asinh": "arcsinh",
    "atan": "arctan",
    "atan2": "arctan2",
    "atanh": "arctanh",
    "bitwise_invert": "invert",
    "bitwise_left_shift": "left_shift",
    "bitwise_right_shift": "right_shift",
    "divide": "div",
    "multiply": "mul",
    "negative": "neg",
    "subtract": "sub",
}

clone, concatenate, cumprod, cumsum = (
    OPERATORS[name].function for name in ("clone", "concatenate", "cumprod", "cumsum")
)
row_searchsorted, row_take, row_unique_all = (
    OPERATORS[name].function for name in ("searchsorted", "take", "unique_all")
)


class UniqueCounts(NamedTuple):
    """The distinct values of a tensor and their counts."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """The distinct values of a tensor, and for each element the index of its value among them."""

    values: Tensor
    inverse_indices: Tensor


class UniqueAll(NamedTuple):
    """The distinct values of a tensor, their first indices, the inverse indices, and their counts."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


def unique_all(x: Any, /) -> UniqueAll:
    """Return the distinct values of a tensor, with indices and counts; every NaN counts as distinct.

    Arguments:
        x: a tensor of any shape.

    Example:
        >>> import viewgrad as vg
        >>> vg.unique_all(vg.Tensor([3.0, 1.0, 3.0])).counts
        Tensor([1, 2])
    """
    values, indices, inverse, counts = row_unique_all(x)
    return UniqueAll(values, indices, inverse, counts)


def unique_counts(x: Any, /) -> UniqueCounts:
    """Return the distinct values of a tensor, in ascending order, and their counts; every NaN counts as distinct.

    Arguments:
        x: a tensor of any shape.

    Example:
        >>> import viewgrad as vg
        >>> vg.unique_counts(vg.Tensor([3.0, 1.0, 3.0])).values
        Tensor([1., 3.])
    """
    found = unique_all(x)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x: Any, /) -> UniqueInverse:
    """Return the distinct values of a tensor, in ascending order, and the index of each element among them.

    Arguments:
        x: a tensor of any shape.

    Example:
        >>> import viewgrad as vg
        >>> vg.unique_inverse(vg.Tensor([3.0, 1.0, 3.0])).inverse_indices
        Tensor([1, 0, 1])
    """
    found = unique_all(x)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x: Any, /) -> Tensor:
    """Return the distinct values of a tensor, in ascending order; every NaN counts as distinct.

    Arguments:
        x: a tensor of any shape.

    Example:
        >>> import viewgrad as vg
        >>> vg.unique_values(vg.Tensor([3.0, 1.0, 3.0]))
        Tensor([1., 3.])
    """
    return unique_all(x).values


def sort(x: Any, /, axis: int | None = -1, *, descending: bool = False, stable: bool = True) -> Any:
    """Return the elements in sorted order along an axis.

    Arguments:
        x: a tensor.
        axis: the axis; None sorts the flattened tensor.
        descending: whether to sort in descending order.
        stable: accepted for compatibility with the standard; the sort is always stable.

    Example:
        >>> import viewgrad as vg
        >>> vg.sort(vg.Tensor([1.0, 3.0, 2.0]), descending=True)
        Tensor([3., 2., 1.])
    """
    return sorted_along(x, axis, descending)


def argsort(x: Any, /, axis: int | None = -1, *, descending: bool = False, stable: bool = True) -> Any:
    """Return the indices that sort a tensor along an axis.

    Arguments:
        x: a tensor.
        axis: the axis; None sorts the flattened tensor.
        descending: whether to sort in descending order.
        stable: accepted for compatibility with the standard; the sort is always stable.

    Example:
        >>> import viewgrad as vg
        >>> vg.argsort(vg.Tensor([1.0, 3.0, 2.0]), descending=True)
        Tensor([1, 2, 0])
    """
    return sorting_places(x, axis, descending)


def concat(arrays: Sequence[Any], /, *, axis: int | None = 0) -> Tensor:
    """Join tensors along an existing axis; None flattens each of them first.

    Arguments:
        arrays: the tensors, whose shapes agree except along `axis`.
        axis: the axis.

    Example:
        >>> import viewgrad as vg
        >>> vg.concat([vg.ones(1), vg.zeros(2)])
        Tensor([1., 0., 0.])
    """
    joined: Tensor
    if axis is None:
        arrays, axis = [as_operand(array).reshape(-1) for array in arrays], 0
    joined = concatenate(list(arrays), axis)
    return joined


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Tensor:
    """Return a view with permuted dimensions.

    Arguments:
        x: a tensor.
        axes: the dimension of `x` for each dimension of the view.

    Example:
        >>> import viewgrad as vg
        >>> vg.permute_dims(vg.zeros(2, 3), (1, 0)).shape
        (3, 2)
    """
    return permute(as_operand(x), *axes)


def matrix_transpose(x: Tensor, /) -> Tensor:
    """Return a view with the last two dimensions swapped.

    Arguments:
        x: a tensor of at least two dimensions.

    Example:
        >>> import viewgrad as vg
        >>> vg.matrix_transpose(vg.zeros(2, 3)).shape
        (3, 2)
    """
    if x.ndim < 2:
        raise ValueError(f"matrix_transpose requires a tensor of at least two dimensions, not of shape {x.shape}")
    return swapaxes(x, -1, -2)


def expand_dims(x: Tensor, /, axis: int | tuple[int, ...] = 0) -> Tensor:
    """Return a view with additional dimensions of length one.

    Arguments:
        x: a tensor.
        axis: the position, or positions, of the new dimensions in the view.

    Example:
        >>> import viewgrad as vg
        >>> vg.expand_dims(vg.zeros(3), axis=1).shape
        (3, 1)
    """
    view: Tensor = with_new_axes(as_operand(x), axis)
    return view


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape that results from broadcasting shapes together.

    Raises:
        ValueError: if the shapes do not match.

    Example:
        >>> import viewgrad as vg
        >>> vg.broadcast_shapes((3, 1), (2,))
        (3, 2)
    """
    return np.broadcast_shapes(*shapes)


def broadcast_arrays(*arrays: Any) -> list[Tensor]:
    """Return all tensors broadcast against each other: views, or the tensors that have the resulting shape.

    Arguments:
        arrays: tensors, arrays and numbers.

    Raises:
        ValueError: if the shapes do not match.

    Example:
        >>> import viewgrad as vg
        >>> [each.shape for each in vg.broadcast_arrays(vg.zeros(3, 1), vg.ones(2))]
        [(3, 2), (3, 2)]
    """
    given = [as_operand(array) for array in arrays]
    shape = np.broadcast_shapes(*(array.shape for array in given))
    return [array if array.shape == shape else broadcast_view(array, shape) for array in given]


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """Return the slices along one axis as views.

    Arguments:
        x: a tensor of at least one dimension.
        axis: the axis, which the slices do not have.

    Example:
        >>> import viewgrad as vg
        >>> vg.unstack(vg.Tensor([[1.0, 2.0], [3.0, 4.0]]))
        (Tensor([1., 2.]), Tensor([3., 4.]))
    """
    return tuple(unbind(x, axis))


def _with_start(summed: Tensor, start: int, axis: int) -> Tensor:
    shape = list(summed.shape)
    shape[axis] = 1
    return concat([zeros(tuple(shape), dtype=summed.dtype) + summed.dtype.type(start), summed], axis=axis)


def _only_axis(x: Tensor, axis: int | None, name: str) -> int:
    if axis is not None:
        return axis
    if x.ndim > 1:
        raise ValueError(f"{name} needs an axis for a tensor of shape {x.shape}")
    return 0


def _accumulating_dtype(x: Tensor, dtype: Any) -> Any:
    """Return the dtype in which `x` is summed: integers smaller than the default integer are widened."""
    if dtype is None and x.dtype.kind in "biu" and x.dtype.itemsize < np.dtype(np.intp).itemsize:
        return np.uintp if x.dtype.kind == "u" else np.intp
    return dtype


def _running(run: Any, start: int, name: str, x: Any, axis: int | None, dtype: Any, include_initial: bool) -> Tensor:
    """Return the cumulative sums or products along one axis, preceded by `start` if requested."""
    x = as_operand(x)
    axis = _only_axis(x, axis, name)
    dtype = _accumulating_dtype(x, dtype)
    result: Tensor = run(x if dtype is None else x.astype(dtype), axis)
    if dtype is not None and result.dtype != dtype:  # NumPy accumulates small integers in larger ones
        result = result.astype(dtype)
    return _with_start(result, start, axis) if include_initial else result


def cumulative_sum(
    x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Tensor:
    """Return the cumulative sums along an axis.

    Arguments:
        x: a tensor.
        axis: the axis; optional for a vector.
        dtype: the dtype of the sums; by default the dtype of `x`, but at least the default integer dtype for integers.
        include_initial: whether the result starts with 0.

    Example:
        >>> import viewgrad as vg
        >>> vg.cumulative_sum(vg.Tensor([1.0, 2.0]), include_initial=True)
        Tensor([0., 1., 3.])
    """
    return _running(cumsum, 0, "cumulative_sum", x, axis, dtype, include_initial)


def cumulative_prod(
    x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Tensor:
    """Return the cumulative products along an axis.

    Arguments:
        x: a tensor.
        axis: the axis; optional for a vector.
        dtype: the dtype of the products; by default the dtype of `x`, but at least the default integer dtype for
            integers.
        include_initial: whether the result starts with 1.

    Example:
        >>> import viewgrad as vg
        >>> vg.cumulative_prod(vg.Tensor([2.0, 3.0]))
        Tensor([2., 6.])
    """
    return _running(cumprod, 1, "cumulative_prod", x, axis, dtype, include_initial)


def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    """Convert a tensor to another dtype; differentiable for floating-point and complex dtypes.

    Arguments:
        x: a tensor.
        dtype: the desired dtype.
        copy: False returns the tensor itself if it already has that dtype.
        device: None or "cpu".

    Example:
        >>> import viewgrad as vg
        >>> vg.astype(vg.Tensor([1.5]), vg.int64)
        Tensor([1])
    """
    checked_device(device)
    return COMPOSITES["astype"](x, dtype, copy)


def diff(x: Any, /, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Tensor:
    """Return the `n`-th differences of neighbouring elements along a dimension.

    Arguments:
        x: a tensor.
        n: the number of times differences are taken.
        axis: the dimension.
        prepend: a number or a tensor to put before `x` before differences are taken.
        append: a number or a tensor to put after it.

    Example:
        >>> import viewgrad as vg
        >>> vg.diff(vg.Tensor([1.0, 4.0]), prepend=0.0)
        Tensor([1., 3.])
    """
    x = as_operand(x)
    difference: Tensor = np.diff(x, n, axis, prepend, append)
    return difference


def reshape(x: Tensor, /, shape: Any, *more: Any, copy: bool | None = None) -> Tensor:
    """Return a tensor with the same elements in row-major order and another shape: a view if possible, otherwise a
    copy.

    Arguments:
        x: a tensor.
        shape: a tuple, or the lengths as separate arguments; at most one may be -1, which is inferred.
        copy: True to always copy; False to raise an error instead of copying.

    Raises:
        ValueError: if `copy=False` and the memory layout does not permit a view.

    Example:
        >>> import viewgrad as vg
        >>> vg.reshape(vg.arange(4.0), (2, 2)).shape
        (2, 2)
    """
    x = as_operand(x)
    sizes = (shape, *more)
    if copy is False:
        return x.view(*sizes)
    return view_or_copy((clone(x) if copy else x), *sizes)


def searchsorted(x1: Any, x2: Any, /, side: str = "left", sorter: Any = None) -> Any:
    """Return the indices at which values must be inserted to keep a vector sorted.

    Arguments:
        x1: the vector.
        x2: the values.
        side: "left" to insert before equal elements, "right" to insert after them.
        sorter: the indices that sort `x1`, if it is not sorted.

    Example:
        >>> import viewgrad as vg
        >>> vg.searchsorted(vg.arange(3.0), vg.Tensor([0.5]))
        Tensor([1])
    """
    return row_searchsorted(x1 if sorter is None else row_take(x1, sorter), x2, side)


def __array_namespace_info__() -> NamespaceInfo:
    """Return an object that describes the namespace: devices, dtypes and capabilities."""
    return NamespaceInfo()


FUNCTIONS: Final[dict[str, Any]] = {
    **REDUCTIONS,
    **{name: OPERATORS[row].function for name, row in ALIASES.items()},
    **{
        function.__name__: function
        for function in (
            __array_namespace_info__,
            argsort,
            astype,
            broadcast_arrays,
            broadcast_shapes,
            can_cast,
            concat,
            cumulative_prod,
            cumulative_sum,
            diff,
            expand_dims,
            finfo,
            from_dlpack,
            iinfo,
            isdtype,
            matrix_transpose,
            permute_dims,
            reshape,
            result_type,
            searchsorted,
            sort,
            unique_all,
            unique_counts,
            unique_inverse,
            unique_values,
            unstack,
        )
    },
    "__array_api_version__": API_VERSION,
    **DTYPES,
    **CONSTANTS,
}
