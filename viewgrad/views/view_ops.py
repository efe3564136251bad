"""The view operators, each of which takes a window on the memory of its input and is one node in the graph.

Views that basic indexing can express are implemented by it (`select`, `narrow`, `squeeze`, ...). The others use one of
the view functions of `view_functions.py`, which take views of arrays and tensors alike.

The file is long because it is a table: a few lines for each view operator.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from operator import index as as_int
from typing import Any

import numpy as np

from ..errors import ForwardModeError, ViewInPlaceError
from ..tensor.modes import GRAD, current_mode
from ..tensor.storage import refuse_writes
from ..tensor.tensor import FUNCTIONS, Tensor, as_buffered, current_edge, is_scalar, method, root_of
from ..type_aliases import Array
from .construct import index_view, make_view
from .geometry import TensorGeometry, overlaps_itself
from .meta import CreationMeta, DualViewMeta
from .view_functions import (
    AsComplex,
    AsReal,
    Broadcast,
    Diagonal,
    ImaginaryPart,
    Permuted,
    RealPart,
    Reshaped,
    StridedWindow,
    ViewFunction,
    Windows,
    lies_in_pairs,
)
from .view_nodes import FunctionViewBackward, IndexViewBackward, ViewBackward, node_pair, view_node

__all__ = [
    "as_strided",
    "atleast_1d",
    "broadcast_to",
    "chunk",
    "diagonal",
    "expand",
    "flat_sizes",
    "flatten",
    "imag",
    "moveaxis",
    "narrow",
    "new_sizes",
    "permute",
    "ravel",
    "real",
    "reshape",
    "select",
    "split",
    "squeeze",
    "swapaxes",
    "transpose",
    "unbind",
    "unfold",
    "unsqueeze",
    "view",
    "view_as",
    "view_as_complex",
    "view_as_real",
]

SelectBackward = view_node("SelectBackward", IndexViewBackward)
SliceBackward = view_node("SliceBackward", IndexViewBackward)
SplitBackward = view_node("SplitBackward", IndexViewBackward)
UnbindBackward = view_node("UnbindBackward", IndexViewBackward)
SqueezeBackward = view_node("SqueezeBackward", IndexViewBackward)
UnsqueezeBackward = view_node("UnsqueezeBackward", IndexViewBackward)
ReshapeViewBackward = view_node("ViewBackward", FunctionViewBackward)
TransposeBackward = view_node("TransposeBackward", FunctionViewBackward)
PermuteBackward = view_node("PermuteBackward", FunctionViewBackward)
DiagonalBackward = view_node("DiagonalBackward", FunctionViewBackward)
UnsqueezeBackwardOfExpand, ExpandBackward = node_pair("ExpandBackward")
UnfoldBackward = view_node("UnfoldBackward", FunctionViewBackward)
AsStridedBackwardOfView = view_node("AsStridedBackward", FunctionViewBackward)
RealBackward = view_node("RealBackward", FunctionViewBackward)
ImagBackward = view_node("ImagBackward", FunctionViewBackward)
ViewAsRealBackward = view_node("ViewAsRealBackward", FunctionViewBackward)
ViewAsComplexBackward = view_node("ViewAsComplexBackward", FunctionViewBackward)


# -- by basic indexing -------------------------------------------------------------------------------------------------


def _on(self: Tensor, dim: int, item: Any) -> tuple[Any, ...]:
    """Return the index that applies `item` to dimension `dim`."""
    return (*(slice(None),) * _dimension(dim, self._array.ndim), item)


@method
def select(self: Tensor, dim: int, index: int) -> Tensor:
    """Return a view of the slice at `index` of dimension `dim`, without that dimension."""
    return index_view(self, _on(self, dim, int(index)), SelectBackward)


@method
def narrow(self: Tensor, dim: int, start: int, length: int) -> Tensor:
    """Return the `length` slices from `start` of dimension `dim`."""
    extent = self._array.shape[dim]
    start = int(start) + extent if start < 0 else int(start)
    if not 0 <= start <= start + length <= extent:
        raise IndexError(f"narrow from {start} by {length} exceeds dimension {dim} of length {extent}")
    return index_view(self, _on(self, dim, slice(start, start + int(length))), SliceBackward)


@method
def unbind(self: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """Return the slices of dimension `dim`, each without that dimension."""
    return tuple(
        index_view(self, _on(self, dim, i), UnbindBackward) for i in range(self._array.shape[dim])
    )


@method
def split(self: Tensor, split_size_or_sections: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Return consecutive pieces of dimension `dim`, of a given length (the last may be shorter) or of given lengths."""
    extent = self._array.shape[dim]
    sizes = split_size_or_sections
    if isinstance(sizes, (int, np.integer)):
        size = int(sizes)
        if size <= 0:
            raise ValueError(f"split needs a positive length, not {size}")
        sizes = [min(size, extent - start) for start in range(0, extent, size)] or [0]
    elif sum(sizes) != extent:
        raise ValueError(
            f"the lengths {list(sizes)} of split do not add up to {extent}, the length of dimension {dim}"
        )
    pieces = []
    start = 0
    for size in sizes:
        pieces.append(index_view(self, _on(self, dim, slice(start, start + int(size))), SplitBackward))
        start += int(size)
    return tuple(pieces)


@method
def chunk(self: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Return at most `chunks` consecutive pieces of dimension `dim`, of equal length except the last."""
    if chunks <= 0:
        raise ValueError(f"chunk needs a positive number of pieces, not {chunks}")
    return split(self, max(1, -(-self._array.shape[dim] // chunks)), dim)


@method
def squeeze(self: Tensor, axis: int | tuple[int, ...] | None = None) -> Tensor:
    """Return a view without the dimensions of length 1, or without the given ones."""
    shape = self._array.shape
    if axis is None:
        dims = {i for i, extent in enumerate(shape) if extent == 1}
    else:
        named = axis if isinstance(axis, tuple) else (axis,)
        places = [_dimension(dim, len(shape)) for dim in named if shape or dim not in (0, -1)]  # accepted, as in NumPy
        dims = set(places)
        if len(dims) < len(places):
            raise ValueError(f"repeated axis in squeeze: {axis}")
        if any(shape[dim] != 1 for dim in dims):
            raise ValueError(f"cannot squeeze dimensions {sorted(dims)} of shape {shape}: not all have length 1")
    if is_scalar(self):
        return self
    index = tuple(0 if i in dims else slice(None) for i in range(len(shape)))
    return index_view(self, index or (...,), SqueezeBackward)


@method
def unsqueeze(self: Tensor, dim: int) -> Tensor:
    """Return a view with a new dimension of length 1 at `dim`."""
    index = (*(slice(None),) * _dimension(dim, self._array.ndim + 1), None, ...)
    return index_view(self, index, UnsqueezeBackward)


# -- by permuting dimensions -------------------------------------------------------------------------------------------


def _view(self: Tensor, view_fn: ViewFunction, node_class: type[ViewBackward], **kwargs: Any) -> Tensor:
    self = as_buffered(self)
    return make_view(self, view_fn(self._array), None, view_fn, node_class, **kwargs)


@method
def transpose(self: Tensor, *axes: Any) -> Tensor:
    """Return a view with permuted dimensions, by default reversed."""
    order = flat_sizes(axes)
    ndim = self._array.ndim
    if is_scalar(self) and (not order or order == (None,)):
        return self
    if not order or order == (None,):
        return _transposed(self)
    return _view(self, Permuted(tuple(_dimension(dim, ndim) for dim in order)), TransposeBackward)


@method
def permute(self: Tensor, *dims: Any) -> Tensor:
    """Return a view with the dimensions in the given order."""
    ndim = self._array.ndim
    return _view(self, Permuted(tuple(_dimension(dim, ndim) for dim in flat_sizes(dims))), PermuteBackward)


@method
def swapaxes(self: Tensor, axis1: int, axis2: int) -> Tensor:
    """Return a view with two dimensions swapped."""
    order = list(range(self._array.ndim))
    a, b = _dimension(axis1, len(order)), _dimension(axis2, len(order))
    order[a], order[b] = order[b], order[a]
    return _view(self, Permuted(tuple(order)), TransposeBackward)


@method
def moveaxis(self: Tensor, source: Any, destination: Any) -> Tensor:
    """Return a view with dimensions moved to other positions; the others keep their order."""
    numbers = np.moveaxis(np.empty((0,) * self._array.ndim), source, destination)  # raises NumPy's own errors
    ndim = numbers.ndim
    sources = [_dimension(dim, ndim) for dim in np.atleast_1d(source).tolist()]
    targets = [_dimension(dim, ndim) for dim in np.atleast_1d(destination).tolist()]
    order = [dim for dim in range(ndim) if dim not in sources]
    for target, dim in sorted(zip(targets, sources, strict=True)):
        order.insert(target, dim)
    return _view(self, Permuted(tuple(order)), PermuteBackward)


def _transposed(self: Tensor) -> Tensor:
    """Return a view with the dimensions reversed."""
    if is_scalar(self):
        return self
    return _view(self, _reversed(self._array.ndim), TransposeBackward)


@functools.cache
def _reversed(ndim: int) -> Permuted:
    return Permuted(tuple(range(ndim))[::-1])


def _matrix_transposed(self: Tensor) -> Tensor:
    """Return a view with the last two dimensions swapped."""
    return swapaxes(self, -1, -2)


# -- by changing the shape ---------------------------------------------------------------------------------------------


@method
def reshape(self: Tensor, *shape: Any) -> Tensor:
    """Return the elements in row-major order in another shape: a view if NumPy returns one, a copy otherwise."""
    self = as_buffered(self)
    sizes = new_sizes(self, shape)
    array = self._array.reshape(sizes)
    if not (self._array.flags.c_contiguous or _is_window(array, self._array)):
        copied: Tensor = self._reshaped_copy(array.shape)
        return copied
    return make_view(self, array, None, Reshaped(array.shape), ReshapeViewBackward)


@method
def view(self: Tensor, *shape: Any) -> Tensor:
    """Return the elements in row-major order in another shape, as a view.

    Raises:
        ValueError: if the memory layout allows no such view.
    """
    self = as_buffered(self)
    array = self._array.reshape(flat_sizes(shape))
    if not _is_window(array, self._array):
        raise ValueError(
            f"a tensor of shape {self.shape} with strides {self.stride()} has no view of shape {array.shape}; "
            "use reshape()"
        )
    return make_view(self, array, None, Reshaped(array.shape), ReshapeViewBackward)


@method
def view_as(self: Tensor, other: Tensor) -> Tensor:
    """Return a view with the shape of `other`."""
    return view(self, other.shape)


@method
def ravel(self: Tensor) -> Tensor:
    """Return the elements in row-major order in one dimension: a view if the memory is contiguous, otherwise a copy."""
    if self._array.flags.c_contiguous:
        return reshape(self, -1)
    copied: Tensor = self._reshaped_copy((self._array.size,))
    return copied


@method
def flatten(self: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Return a copy with the dimensions from `start_dim` to `end_dim` flattened."""
    shape = self._array.shape
    first, last = (_dimension(start_dim, len(shape)), _dimension(end_dim, len(shape))) if shape else (0, 0)
    merged = int(np.prod(shape[first : last + 1]))
    copied: Tensor = self._reshaped_copy((*shape[:first], merged, *shape[last + 1 :]))
    return copied


@method
def expand(self: Tensor, *sizes: Any) -> Tensor:
    """Return a view with dimensions of length 1 repeated and new dimensions added in front; -1 keeps a length."""
    wanted = flat_sizes(sizes)
    shape = self._array.shape
    new = len(wanted) - len(shape)
    sizes = tuple(shape[i - new] if size == -1 and i >= new else size for i, size in enumerate(wanted))
    return broadcast_to(self, sizes)


@method
def expand_as(self: Tensor, other: Tensor) -> Tensor:
    """Return a view broadcast to the shape of `other`."""
    return broadcast_to(self, other.shape)


@method
def broadcast_to(self: Tensor, shape: Any) -> Tensor:
    """Return a view broadcast to `shape`."""
    shape = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
    if is_scalar(self):
        self = self.clone()
        refuse_writes(self)
    array = np.broadcast_to(self._array, shape)
    new = array.ndim - self._array.ndim
    if array.shape == (1,) * new + self._array.shape:  # no element is repeated
        return index_view(self, (*(None,) * new, ...), UnsqueezeBackwardOfExpand)
    broadcast = Broadcast(array.shape)
    return make_view(self, broadcast(self._array), None, broadcast, ExpandBackward, overlaps_itself=True)


@method
def diagonal(self: Tensor, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """Return a view of the diagonals over two dimensions, as the last dimension."""
    return _view(self, Diagonal(as_int(offset), as_int(axis1), as_int(axis2)), DiagonalBackward)


@method
def unfold(self: Tensor, dimension: int, size: int, step: int = 1) -> Tensor:
    """Return a view of all windows of `size` elements along `dimension`, at intervals of `step`, as a new last
    dimension.
    """
    dim, size, step = _dimension(dimension, self._array.ndim), as_int(size), as_int(step)
    if not 0 <= size <= self._array.shape[dim] or step <= 0:
        extent = self._array.shape[dim]
        raise ValueError(f"unfold of a dimension of length {extent} cannot have size={size} and step={step}")
    return _view(self, Windows(dim, size, step), UnfoldBackward, overlaps_itself=step < size)


@method
def as_strided(
    self: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """Return a view of the memory of the tensor's base, given by sizes, strides and offset in elements.

    Arguments:
        size: the lengths of its dimensions.
        stride: the steps between neighbours, in elements; not negative.
        storage_offset: the start of the view, in elements from the start of the base; by default the start of `self`.

    Raises:
        ValueError: for a window that extends beyond the memory, or a base that is not in row-major order.
        ViewInPlaceError: for a view whose history is separate from that of its base.
        ForwardModeError: for a dual tensor that is only part of its base, since the tangents of other parts are
            unknown.
    """
    self = as_buffered(self)
    base = root_of(self)
    edge = current_edge(self)
    if self._view is not None and (
        self._view.creation is not CreationMeta.DEFAULT or (edge is not None and base._edge is None)
    ):
        raise ViewInPlaceError(
            "as_strided takes its window from the base of this view, but the view's history differs from its base's: "
            "it was made under no_grad or in a custom Function, or its base was detached in place; use clone() first"
        )
    if not base._array.flags.c_contiguous or (self._view is not None and not self._view.strided):
        raise ValueError("as_strided requires a base in row-major order; use contiguous() first")
    if storage_offset is None:
        storage_offset = TensorGeometry.of(self._array, base._array).storage_offset
    size, stride, storage_offset = tuple(map(as_int, size)), tuple(map(as_int, stride)), as_int(storage_offset)
    if len(size) != len(stride) or min((*size, *stride, storage_offset), default=0) < 0:
        raise ValueError(
            "as_strided requires one stride for each size, and no negative numbers, not "
            f"size={size}, stride={stride}, storage_offset={storage_offset}"
        )
    geometry = TensorGeometry(size, stride, storage_offset)
    last = storage_offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    if 0 not in size and last >= base._array.size:
        raise ValueError(f"as_strided reaches element {last} of a base with {base._array.size} elements")
    window = StridedWindow(geometry)
    out = _view(base, window, AsStridedBackwardOfView, overlaps_itself=overlaps_itself(window(base._array)))
    dual = self._view
    if type(dual) is DualViewMeta and current_mode() > GRAD:  # its tangent differs from that of the base
        if not dual.root.whole:
            raise ForwardModeError(
                "as_strided of a dual tensor that is a part of its base reaches beyond what has the tangent; "
                "use clone() first"
            )
        view = DualViewMeta.of_view(dual.root, (window,))
        assert out._view is not None
        view.take_over(out._view)
        out._view = view
    return out


# -- by changing the dtype ---------------------------------------------------------------------------------------------


def real(self: Tensor) -> Tensor:
    """Return the real part: a view for a complex array, a scalar for a complex scalar, the tensor itself if it is real.
    """
    if self._array.dtype.kind != "c":
        return self
    return _of_scalar(self, _view(self, RealPart(), RealBackward, strided=False))


def imag(self: Tensor) -> Tensor:
    """Return the imaginary part: a view for a complex array, a scalar for a complex scalar, zeros for a real tensor."""
    if self._array.dtype.kind != "c":
        return _of_scalar(self, Tensor(self._array.imag.copy(order="K")))  # zeros in NumPy's memory layout
    return _of_scalar(self, _view(self, ImaginaryPart(), ImagBackward, strided=False))


def _of_scalar(source: Tensor, part: Tensor) -> Tensor:
    """Return a part of `source` as in NumPy: a scalar for a scalar."""
    return part[()] if is_scalar(source) else part


@method
def view_as_real(self: Tensor) -> Tensor:
    """Return a complex tensor as a real one with a last dimension of length 2 for the real and imaginary parts."""
    if self._array.dtype.kind != "c":
        raise TypeError(f"view_as_real requires a complex tensor, not one of {self._array.dtype}")
    return _view(self, AsReal(), ViewAsRealBackward, strided=False)


@method
def view_as_complex(self: Tensor) -> Tensor:
    """Return a real tensor whose last dimension has length 2 as a complex one without that dimension."""
    array = self._array
    if array.dtype.kind != "f" or array.dtype.itemsize < 4 or not array.ndim or array.shape[-1] != 2:
        raise TypeError(
            f"view_as_complex requires float32 or float64 with a last dimension of 2, not {array.dtype} {array.shape}"
        )
    if not lies_in_pairs(array):
        raise ValueError("view_as_complex requires the two parts of a number to be adjacent in memory")
    return _view(self, AsComplex(), ViewAsComplexBackward, strided=False)


def _is_window(array: Array, of: Array) -> bool:
    """Return whether NumPy's reshape returned a window of the same memory."""
    return array.base is of or (of.base is not None and array.base is of.base) or array is of


def _dimension(dim: int, ndim: int) -> int:
    if not -ndim <= dim < ndim:
        raise np.exceptions.AxisError(dim, ndim)
    return int(dim) % ndim


def flat_sizes(sizes: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return sizes that are given separately, or as a list, an array or a 1-d tensor."""
    if len(sizes) != 1:
        return sizes
    (first,) = sizes
    if isinstance(first, (Tensor, np.ndarray)) and first.ndim == 1:
        first = first.tolist()
    return tuple(first) if isinstance(first, (tuple, list)) else sizes


def new_sizes(self: Tensor, sizes: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the sizes given to `reshape`, where None is the present shape."""
    return self.shape if len(sizes) == 1 and sizes[0] is None else flat_sizes(sizes)


def atleast_1d(self: Tensor) -> Tensor:
    """Return the tensor itself, or a view with one dimension for a 0-d tensor."""
    return self if self._array.ndim else reshape(self, 1)


def _split_numpy(array: Tensor, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    """Split as `numpy.split` and `numpy.array_split` do, in sections whose lengths may differ by one."""
    if isinstance(indices_or_sections, Tensor):
        indices_or_sections = indices_or_sections.tolist()
    dim = _dimension(axis, array.ndim)
    extent = range(array.shape[dim])
    if np.ndim(indices_or_sections) == 0:
        pieces = np.array_split(np.empty((len(extent), 0)), indices_or_sections)  # lengths, without allocating memory
        return list(split(array, [len(piece) for piece in pieces], dim))
    ends = [0, *map(as_int, indices_or_sections), len(extent)]
    windows = [extent[first:last] for first, last in itertools.pairwise(ends)]
    return [index_view(array, _on(array, dim, slice(each.start, each.stop)), SplitBackward) for each in windows]


def _set_real(self: Tensor, value: Any) -> None:
    _assign(real(self), value)


def _set_imag(self: Tensor, value: Any) -> None:
    if self._array.dtype.kind != "c":
        raise TypeError(f"a tensor of {self._array.dtype} has no imaginary parts to assign to")
    _assign(imag(self), value)


def _assign(window: Tensor, value: Any) -> None:
    """Write `value` to a view that was just taken; do nothing in the last step of `z.real *= ...`."""
    view = window._view
    given = value._view if type(value) is Tensor else None
    if view is not None and given is not None and given.base is view.base and given.tangent_root is view.tangent_root:
        if given.steps == view.steps and given.creation is view.creation:
            return
    # A view that was taken elsewhere may have a different history.
    window.copy_(value)


def _install() -> None:
    properties: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor, Any], None] | None]] = {
        "T": (_transposed, None),
        "mT": (_matrix_transposed, None),
        "real": (real, _set_real),
        "imag": (imag, _set_imag),
    }
    for name, (function, assign) in properties.items():
        setattr(Tensor, name, property(function, assign, doc=function.__doc__))
    meanings: dict[Any, Callable[..., Any]] = {
        np.transpose: lambda a, axes=None: transpose(a) if axes is None else transpose(a, axes),
        np.matrix_transpose: _matrix_transposed,
        np.swapaxes: swapaxes,
        np.moveaxis: moveaxis,
        np.reshape: lambda a, shape: reshape(a, shape),
        np.ravel: ravel,
        np.squeeze: squeeze,
        np.expand_dims: unsqueeze,
        np.broadcast_to: lambda array, shape, subok=False: broadcast_to(array, shape),
        np.diagonal: diagonal,
        np.split: _split_numpy,
        np.array_split: _split_numpy,
        np.real: real,
        np.imag: imag,
        np.atleast_1d: atleast_1d,
        np.shape: lambda a: a.shape,
        np.ndim: lambda a: a.ndim,
        np.size: lambda a, axis=None: a.size if axis is None else math.prod(
            a.shape[dim] for dim in (axis if isinstance(axis, tuple) else (axis,))
        ),
    }
    if hasattr(np, "unstack"):  # NumPy 2.1
        meanings[np.unstack] = lambda a, axis=0: tuple(moveaxis(a, axis, 0))
    for numpy_function, meaning in meanings.items():
        FUNCTIONS.declare(numpy_function, meaning)


_install()
