"""Adapters of NumPy's functions that are not operators: comparisons, norms, indices, selection and writes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ...errors import UnsupportedTypeError
from ...tensor import creation
from ...tensor.async_safety import in_own_context
from ...tensor.creation import as_operand
from ...tensor.modes import GRAD, ModeSwitch
from ...tensor.repr import tensor_repr
from ...tensor.tensor import FUNCTIONS, UFUNCS, Tensor, as_buffered
from ...tensor.trace_hooks import array_of
from .. import OPERATORS
from ..composites import composite
from ..derivatives.helpers import pattern_of, plain
from ..operands import constant
from .dispatch import check_cast, require_tensor, ufunc_call

where = OPERATORS["where"].function
clip_ufunc: Any = np._core.umath.clip  # type: ignore[attr-defined]  # what the method clip of arrays calls


# -- norms -------------------------------------------------------------------------------------------------------------


@composite(np.linalg.norm)
def norm(self: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """Return the norm of a vector or matrix, as in `numpy.linalg.norm`; its gradient at 0 is 0.

    Arguments:
        ord: the order; by default the square root of the sum of squares.
        axis: one dimension for vector norms, two for matrix norms, or None for the whole tensor.
        keepdims: whether to keep the reduced dimensions with length 1.
    """
    self = as_operand(self)
    self = self if self.dtype.kind in "fc" else self.astype(float)
    if axis is None and ord is not None:
        if self.ndim not in (1, 2):
            raise ValueError(f"norm of order {ord} requires a vector or a matrix, not ndim={self.ndim}; pass axis=")
        axis = (0, 1) if self.ndim == 2 else 0
    dims = axis if isinstance(axis, tuple) else None if axis is None else (axis,)
    if dims is not None and len(dims) not in (1, 2):
        raise ValueError(f"axis of norm must be one or two dimensions, not {dims}")
    if dims is None or len(dims) == 1 or ord in (None, "fro"):
        if isinstance(ord, str) and (dims is None or len(dims) == 1):
            raise ValueError(f"norm of order {ord!r} requires a matrix")
        return self.vector_norm(2 if ord in (None, "fro") else ord, axis, keepdims)
    return _matrix_norm(self, ord, dims, keepdims)


def _matrix_norm(self: Any, ord: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
    rows, columns = np.lib.array_utils.normalize_axis_tuple(axis, self.ndim)
    if ord in (1, -1, math.inf, -math.inf):
        inner, outer = (rows, columns) if abs(ord) == 1 else (columns, rows)
        sums = self.abs().sum(inner, True)
        extreme = _greatest(sums, outer, True) if ord > 0 else sums.min(outer, True)
    elif ord in (2, -2, "nuc"):
        values = np.linalg.svd(self.moveaxis((rows, columns), (-2, -1)), compute_uv=False)
        extreme = values.sum(-1) if ord == "nuc" else _greatest(values, -1) if ord > 0 else values.min(-1)
        extreme = np.expand_dims(np.expand_dims(extreme, min(rows, columns)), max(rows, columns))
    else:
        raise ValueError(f"there is no matrix norm of order {ord!r}")
    return extreme if keepdims else extreme.squeeze((rows, columns))[() if extreme.ndim == 2 else ...]


def _greatest(values: Any, axis: int, keepdims: bool = False) -> Any:
    """Return the maximum of nonnegative values along a dimension, or 0 if there are none."""
    return values.max(axis, None, keepdims, **({} if values.shape[axis] else {"initial": 0}))


def _vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    return OPERATORS["vector_norm"].function(x, 2 if ord is None else ord, axis, keepdims)


FUNCTIONS[np.linalg.vector_norm] = _vector_norm


@composite(np.linalg.matrix_norm, method=False)
def matrix_norm(self: Any, keepdims: bool = False, ord: Any = "fro") -> Any:
    """Return the norms of the matrices in the last two dimensions."""
    return norm(self, ord, (-2, -1), keepdims)


# -- comparison of whole tensors ---------------------------------------------------------------------------------------


@composite(np.array_equal, method=False)
@in_own_context
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> bool:
    """Return whether two tensors have the same shape and elements."""
    a, b = as_operand(a1), as_operand(a2)
    if a.shape != b.shape:
        return False
    with ModeSwitch(off=GRAD):
        return bool(_equal(a, b, equal_nan).all())


@composite(np.allclose)
def allclose(self: Any, other: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Return whether all elements are nearly equal."""
    return bool(isclose(self, other, rtol, atol, equal_nan).all())


PYTHON_NUMBERS: Final = (int, float, complex)


@composite(np.isclose)
@in_own_context
def isclose(self: Any, other: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """Return whether elements are nearly equal, elementwise."""
    a, b = as_operand(self), as_operand(other)
    if type(other) in PYTHON_NUMBERS:  # which take the precision of the array
        b = b.astype(np.result_type(a.dtype, type(other)(0), 1.0), copy=False)
    b = b.astype(np.result_type(b.dtype, 1.0), copy=False)  # differences of integers may wrap around
    if type(self) in PYTHON_NUMBERS:
        a = a.astype(np.result_type(b.dtype, type(self)(0)), copy=False)
    with ModeSwitch(off=GRAD), np.errstate(invalid="ignore"):
        close: Any = abs(a - b) <= atol + rtol * abs(b)
        return (close & b.isfinite()) | _equal(a, b, equal_nan)  # type: ignore[no-any-return]


def _equal(a: Any, b: Any, equal_nan: bool) -> Any:
    """Return the mask of equal elements; NaN equals itself if `equal_nan` is true."""
    same = a == b
    return same | (a.isnan() & b.isnan()) if equal_nan and a.dtype.kind in "fc" and b.dtype.kind in "fc" else same


# -- indices -----------------------------------------------------------------------------------------------------------


@composite(np.nonzero)
def nonzero(self: Any) -> tuple[Tensor, ...]:
    """Return the indices of the nonzero elements, one tensor for each dimension."""
    return tuple(Tensor(places) for places in np.nonzero(plain(self)))


@composite(np.argwhere)
def argwhere(self: Any) -> Tensor:
    """Return the indices of the nonzero elements, with a row for each."""
    return Tensor(np.argwhere(plain(self)))


@composite(np.flatnonzero)
def flatnonzero(self: Any) -> Tensor:
    """Return the indices of the nonzero elements in the flattened tensor."""
    return Tensor(np.flatnonzero(plain(self)))


@composite(np.meshgrid, method=False)
def meshgrid(*tensors: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> tuple[Tensor, ...]:
    """Return coordinate arrays from coordinate vectors.

    Arguments:
        tensors: the coordinates along each axis.
        copy: whether the results own their memory; otherwise they are views.
        sparse: whether the results have length 1 in the dimensions along which they are constant.
        indexing: "xy", for which the first axis is the second dimension of the results, or "ij".
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"indexing must be 'xy' or 'ij', not {indexing!r}")
    vectors = [as_operand(tensor).reshape(-1) for tensor in tensors]
    shape = tuple(vector.size for vector in vectors)
    swapped = indexing == "xy" and len(shape) > 1
    if swapped:
        shape = (shape[1], shape[0], *shape[2:])
    grids = []
    for i, vector in enumerate(vectors):
        place = 1 - i if swapped and i < 2 else i
        extents = tuple(-1 if dim == place else 1 for dim in range(len(shape)))
        grid = vector.reshape(extents) if sparse else vector.reshape(extents).broadcast_to(shape)
        grids.append(grid.copy() if copy else grid)
    return tuple(grids)


# -- choosing and evaluating -------------------------------------------------------------------------------------------


@composite(np.select, method=False)
def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    """Return, for each element, the choice of the first true condition, or `default`.

    `Tensor.select(dim, index)` and `viewgrad.torch_names.select` are PyTorch's function of that name.
    """
    if len(condlist) != len(choicelist):
        raise ValueError(f"select got {len(condlist)} conditions for {len(choicelist)} choices")
    weak = (int, float, complex)
    given = [each if type(each) in weak else as_operand(each) for each in (*choicelist, default)]
    dtype = np.result_type(*(each.dtype if isinstance(each, Tensor) else each for each in given))
    result = as_operand(given.pop()).astype(dtype, copy=False)
    for condition, choice in zip(reversed(condlist), reversed(given)):
        result = where(condition, choice if isinstance(choice, Tensor) else as_operand(choice), result)
    return result.astype(dtype, copy=False).contiguous()


@composite(np.extract, method=False)
def extract(condition: Any, self: Any) -> Any:
    """Return the elements, in row-major order, where the condition is true."""
    return as_operand(self).ravel()[np.flatnonzero(plain(condition))]


@composite(np.compress)
def compress(condition: Any, self: Any, axis: int | None = None) -> Any:
    """Return the slices along `axis` where the one-dimensional condition is true."""
    places = np.flatnonzero(plain(condition))
    return as_operand(self).take(places, axis)


@composite(np.polyval, method=False)
def polyval(p: Any, x: Any) -> Any:
    """Evaluate the polynomial with coefficients `p`, highest power first, at `x`."""
    p, x = as_operand(p.coeffs if isinstance(p, np.poly1d) else p), as_operand(x)
    value = creation.zeros_like(x)
    for coefficient in p:
        value = value * x + coefficient
    return value


# -- writing -----------------------------------------------------------------------------------------------------------


@composite(np.fill_diagonal)
def fill_diagonal(self: Any, val: Any) -> None:
    """Fill the main diagonal of a matrix with `val`, in place."""
    if self.ndim != 2:
        raise ValueError(f"fill_diagonal requires a matrix, not {self.ndim} dimensions")
    self.diagonal().copy_(val)


@composite(np.putmask, method=False)
def putmask(self: Any, mask: Any, values: Any) -> None:
    """Write `values`, repeated as needed, where the mask is true, in place."""
    require_tensor(self, "np.putmask")
    values, chosen = creation.as_assigned(values, self.dtype), np.asarray(plain(mask), bool)
    if chosen.size != self.size:
        raise ValueError(f"putmask of a tensor of shape {self.shape} requires a mask of that size, not {chosen.shape}")
    if not (values.size and self.size):
        return
    if values.size > 1 and values.shape != self.shape:
        values = values.reshape(-1).take(np.arange(self.size) % values.size).reshape(self.shape)
    self.copy_where_(values if values.size > 1 else values.reshape(()), chosen.reshape(self.shape))


# -- implementations of NumPy's functions ------------------------------------------------------------------------------


def _where(condition: Any, x: Any = None, y: Any = None) -> Any:
    if x is None and y is None:
        return nonzero(condition)
    if x is None or y is None:
        raise ValueError("either both or neither of x and y should be given")
    return where(condition, x, y)


def _copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    if not isinstance(dst, Tensor):
        raise UnsupportedTypeError(
            "np.copyto, np.full and np.full_like cannot write a tensor to a plain array, which has no history; create "
            "the array with zeros(), empty(), full() or array() of viewgrad.numpy"
        )
    weak = type(src) in (int, float, complex)
    if weak:  # Python numbers adopt the dtype of the target if it can represent their kind
        weak = np.result_type(dst.dtype, src) == dst.dtype
        src = constant(src, dst.dtype) if weak else src
    src = as_operand(src)
    if not weak:
        check_cast(src.dtype, dst.dtype, casting, "np.copyto")
    if not isinstance(where, bool) and (mask := plain(where).dtype).kind != "b":
        raise TypeError(f"where= of np.copyto must be a mask of bools, not of {mask}")
    if where is True:
        dst.copy_(src)
    else:
        dst.copy_where_(src, where)


def _like(create: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def like(
        a: Any, dtype: Any = None, order: Any = "K", subok: bool = True, shape: Any = None, *, device: Any = None
    ) -> Tensor:
        return create(np.empty_like(pattern_of(a), dtype, order, subok, shape, device=device))

    return like


def _add_at(self: Any, indices: Any, values: Any) -> None:
    require_tensor(self, "np.add.at")
    self.index_accumulate_(indices, values)


def _subtract_at(self: Any, indices: Any, values: Any) -> None:
    require_tensor(self, "np.subtract.at")
    values = as_operand(values)
    self.index_accumulate_(indices, -(values.astype(self.dtype) if values.dtype.kind == "b" else values))


def _broadcast_arrays(*arrays: Any, subok: bool = False) -> tuple[Tensor, ...]:
    tensors = [as_buffered(as_operand(array)) for array in arrays]
    shape = np.broadcast_shapes(*(tensor.shape for tensor in tensors))
    return tuple(tensor.broadcast_to(shape) for tensor in tensors)


def _at_least(ndim: int) -> Callable[..., Any]:
    shaped = np.atleast_2d if ndim == 2 else np.atleast_3d

    def at_least(*tensors: Any) -> Any:
        results = tuple(tensor.reshape(shaped(tensor._array).shape) for tensor in map(as_operand, tensors))
        return results[0] if len(results) == 1 else results

    return at_least


def _on_arrays(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a NumPy function whose result is not an array."""

    def on_arrays(*args: Any, **kwargs: Any) -> Any:
        how = f"np.{function.__name__}"
        return function(*(array_of(arg, how) if isinstance(arg, Tensor) else arg for arg in args), **kwargs)

    return on_arrays


def _pieces_along(dim: int, least: int) -> Callable[..., Any]:
    """Return the function that splits tensors with at least the given number of dimensions."""

    def pieces(ary: Any, indices_or_sections: Any) -> Any:
        if ary.ndim < least:
            raise ValueError(f"{'vhd'[dim]}split requires a tensor of at least {least} dimensions, not {ary.ndim}")
        along = 0 if dim == 1 and ary.ndim == 1 else dim
        return np.split(ary, indices_or_sections, along)

    return pieces


FUNCTIONS.update(
    {
        np.around: FUNCTIONS[np.round],
        np.hsplit: _pieces_along(1, 1),
        np.vsplit: _pieces_along(0, 2),
        np.dsplit: _pieces_along(2, 3),
        np.tril_indices_from: lambda arr, k=0: np.tril_indices_from(np.broadcast_to(0, arr.shape), k),
        np.triu_indices_from: lambda arr, k=0: np.triu_indices_from(np.broadcast_to(0, arr.shape), k),
        np.diag_indices_from: lambda arr: np.diag_indices_from(np.broadcast_to(0, arr.shape)),
        np.where: _where,
        np.copyto: _copyto,
        np.zeros_like: _like(creation.zeros_like),
        np.ones_like: _like(creation.ones_like),
        np.empty_like: _like(creation.empty_like),
        np.broadcast_arrays: _broadcast_arrays,
        np.atleast_2d: _at_least(2),
        np.atleast_3d: _at_least(3),
        np.array_repr: tensor_repr,
        np.array_str: _on_arrays(np.array_str),
        np.array2string: _on_arrays(np.array2string),
    }
)
for _function in (np.result_type, np.can_cast, np.min_scalar_type, np.common_type, np.iscomplexobj, np.isrealobj,
                  np.may_share_memory, np.shares_memory):  # fmt: skip
    FUNCTIONS[_function] = _on_arrays(_function)
UFUNCS[clip_ufunc, "__call__"] = ufunc_call(OPERATORS["clip"].function, clip_ufunc)
if hasattr(np, "astype"):  # NumPy 2.1
    FUNCTIONS[np.astype] = lambda x, dtype, /, *, copy=True, device=None: x.astype(dtype, copy)
UFUNCS[np.add, "at"] = _add_at
UFUNCS[np.subtract, "at"] = _subtract_at


def _convolve(a: Any, v: Any, *args: Any, **options: Any) -> Any:
    """Return the convolution of two vectors; a number is treated as a vector of one element."""
    if type(a) is Tensor and type(v) is Tensor and a._array.ndim and v._array.ndim and not options:
        return convolve(a, v, *args)
    a, v = as_operand(a), as_operand(v)
    return convolution(a if a.ndim else a.reshape(1), v if v.ndim else v.reshape(1), *args, **options)


convolution, convolve = FUNCTIONS[np.convolve], OPERATORS["convolve"].function
FUNCTIONS[np.convolve] = _convolve
