"""Hypothesis strategies for leaves, and for view operators, basic indices and index arrays of a given array."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from ..type_aliases import Array
from .functions import ViewOp
from .indices import Index
from .program_ops import Leaf

Draw = Callable[..., Any]

LARGEST_SIZE = 24  # the maximum number of elements of an array in a program
LENGTHS = st.sampled_from([2, 3, 1, 4, 2, 3, 2, 3, 2, 4, 3, 2, 1, 3, 2, 0])


@st.composite
def leaves(draw: Draw, name: str, *, complex: bool = True) -> Leaf:
    """Draw a leaf of any layout."""
    kind = draw(st.sampled_from(["f", "f", "f", "c", "i"] if complex else ["f", "f", "f", "i"]))
    ndim = draw(st.sampled_from([1, 2, 3, 2, 1, 2, 0]))
    shape = tuple(draw(LENGTHS) for _ in range(ndim))
    if np.prod(shape) > LARGEST_SIZE:
        shape = shape[:-1]
    layout = draw(st.sampled_from(["C", "F", "strided", "reversed", "foreign"] if shape else ["C", "foreign"]))
    requires_grad = kind != "i" and draw(st.sampled_from([True, True, True, False]))
    single = kind != "i" and draw(st.sampled_from([False] * 7 + [True]))
    return Leaf(name, shape, kind, layout, draw(st.integers(1, 6)), requires_grad, single)


@st.composite
def view_ops(draw: Draw, array: Array, base: Array | None, *, complex: bool = True) -> ViewOp:
    """Draw a view operator, with arguments, that can be applied to an array.

    Arguments:
        array: the array.
        base: the array from which `as_strided` may take windows, if any.
        complex: whether real numbers may be viewed as complex ones.
    """
    kinds = ["index", "index", "reshape", "transpose", "unsqueeze", "squeeze", "expand", "ravel", "index"]
    if array.ndim:
        kinds += ["select", "narrow", "unfold", "flatten"]
    if array.ndim > 1:
        kinds += ["swapaxes", "moveaxis", "T", "mT", "diagonal", "permute"]
    if array.flags.f_contiguous and not array.flags.c_contiguous:
        kinds += ["T", "T", "T"]  # its reshape is a view, while that of a gradient in row-major order is not
    if array.ndim > 1 and base is not None and array.flags.c_contiguous and not base.flags.c_contiguous:
        kinds += ["reshape", "ravel", "flatten"]
    if array.dtype.kind == "c":
        kinds += ["real", "imag", "view_as_real"]
    if (
        complex
        and array.dtype.kind == "f"
        and array.ndim
        and array.shape[-1] == 2
        and array.strides[-1] == array.itemsize
    ):
        kinds.append("view_as_complex")
    if base is not None and base.flags.c_contiguous and base.size:
        kinds.append("as_strided")
    kind = draw(st.sampled_from(kinds))
    if kind == "as_strided":
        return _as_strided(draw, base)  # type: ignore[arg-type]
    maker = MAKERS.get(kind)
    return ViewOp(kind) if maker is None else maker(draw, array)


@st.composite
def unpack_ops(draw: Draw, array: Array) -> ViewOp:
    """Draw `unbind`, `split` or `chunk` of an array that has dimensions."""
    dim = _dim(draw, array)
    pieces = draw(st.integers(1, 3))
    options = [ViewOp("unbind", (dim,))] if array.shape[dim] else []
    op: ViewOp = draw(st.sampled_from([*options, ViewOp("split", (pieces, dim)), ViewOp("chunk", (pieces, dim))]))
    return op


@st.composite
def basic_indices(draw: Draw, shape: tuple[int, ...]) -> Index:
    """Draw a basic index into an array of the given shape."""
    items: list[Any] = []
    for extent in shape[: draw(st.integers(0, len(shape)))]:
        whole = not extent or draw(st.sampled_from([True, False, True]))
        items.append(draw(slices(extent)) if whole else draw(st.integers(-extent, extent - 1)))
    taken = len(items)
    if draw(st.integers(0, 5)) == 5:
        items.insert(draw(st.integers(0, taken)), None)
    if draw(st.integers(0, 4)) == 4:
        # `...` may come first even if every dimension is indexed.
        items.insert(draw(st.sampled_from([len(items), 0])) if taken == len(shape) else len(items), ...)
    return tuple(items)


@st.composite
def slices(draw: Draw, extent: int) -> slice:
    """Draw a slice of a dimension."""
    bounds = st.one_of(st.none(), st.integers(-extent, extent))
    kind = draw(st.sampled_from([":", "1:", ":-1", "::-1", "::2", "any"]))
    if kind == "any":
        return slice(draw(bounds), draw(bounds), draw(st.sampled_from([None, -1, 2, -2])))
    start, stop, step = ([int(part) if part else None for part in kind.split(":")] + [None])[:3]
    return slice(start, stop, step)


@st.composite
def array_indices(draw: Draw, shape: tuple[int, ...], integers: Sequence[Any]) -> Index:
    """Draw an index that contains an array, for an indexed array with elements and dimensions.

    Arguments:
        shape: the shape of the indexed array.
        integers: the integer arrays that can index the first dimension, besides drawn ones.
    """
    kinds = ["rows", "rows", "mask", "pair", "columns"] + (["given"] if integers else [])
    kind = draw(st.sampled_from(kinds if len(shape) > 1 else [k for k in kinds if k not in ("pair", "columns")]))
    if kind == "mask":
        ndim = draw(st.integers(1, len(shape)))
        size = int(np.prod(shape[:ndim]))
        mask = draw(st.lists(st.booleans(), min_size=size, max_size=size))
        return (_nested(np.array(mask).reshape(shape[:ndim])),)
    if kind == "given":
        return (draw(st.sampled_from(integers)),)
    count = draw(st.integers(1, 3))
    if kind == "columns":
        return (draw(slices(shape[0])), _places(draw, shape[1], count))
    rows = _places(draw, shape[0], count)
    if kind == "pair":
        return (rows, _places(draw, shape[1], count))
    return (rows, *draw(basic_indices(shape[1:]))) if len(shape) > 1 else (rows,)


def _places(draw: Draw, extent: int, count: int) -> tuple[int, ...]:
    return tuple(draw(st.lists(st.integers(-extent, extent - 1), min_size=count, max_size=count)))


def _nested(array: Array) -> Any:
    return tuple(map(_nested, array)) if array.ndim else array.item()


# -- the operators -----------------------------------------------------------------------------------------------------


def _dim(draw: Draw, array: Array) -> int:
    return int(draw(st.integers(-array.ndim, array.ndim - 1)))


def _one_of(draw: Draw, *names: str) -> str:
    return str(draw(st.sampled_from(names)))


def _index(draw: Draw, array: Array) -> ViewOp:
    index = draw(basic_indices(array.shape))
    # An index of integers alone returns a scalar, not a view.
    return ViewOp("index", index if isinstance(array[index], np.ndarray) else (*index, ...))


def _select(draw: Draw, array: Array) -> ViewOp:
    dims = [dim for dim in range(-array.ndim, array.ndim) if array.shape[dim]]
    if not dims:
        return ViewOp("narrow", (0, 0, 0))
    dim = draw(st.sampled_from(dims))
    return ViewOp("select", (dim, draw(st.integers(-array.shape[dim], array.shape[dim] - 1))))


def _narrow(draw: Draw, array: Array) -> ViewOp:
    dim = _dim(draw, array)
    start = draw(st.integers(0, array.shape[dim]))
    return ViewOp("narrow", (dim, start, draw(st.integers(0, array.shape[dim] - start))))


def _reshape(draw: Draw, array: Array) -> ViewOp:
    shape = draw(st.sampled_from(_shapes_of_size(array.size)))
    copies = not _shares(array.reshape(shape), array)
    return ViewOp(_one_of(draw, "reshape", "np.reshape", *(() if copies else ("view",))), (shape,), copies)


def _ravel(draw: Draw, array: Array) -> ViewOp:
    return ViewOp(_one_of(draw, "ravel", "np.ravel"), (), not array.flags.c_contiguous)


def _flatten(draw: Draw, array: Array) -> ViewOp:
    if array.ndim < 2:
        return _ravel(draw, array)
    start = draw(st.integers(0, array.ndim - 2))
    end = draw(st.integers(start + 1, array.ndim - 1))
    return ViewOp("flatten", (start, end), copies=True)


def _transpose(draw: Draw, array: Array) -> ViewOp:
    axes = tuple(draw(st.permutations(range(array.ndim))))
    return ViewOp("transpose", axes) if draw(st.booleans()) else ViewOp("np.transpose", (axes,))


def _permute(draw: Draw, array: Array) -> ViewOp:
    return ViewOp("permute", tuple(dim - array.ndim for dim in draw(st.permutations(range(array.ndim)))))


def _swapaxes(draw: Draw, array: Array) -> ViewOp:
    return ViewOp(_one_of(draw, "swapaxes", "np.swapaxes"), (_dim(draw, array), _dim(draw, array)))


def _moveaxis(draw: Draw, array: Array) -> ViewOp:
    return ViewOp(_one_of(draw, "moveaxis", "np.moveaxis"), (_dim(draw, array), _dim(draw, array)))


def _squeeze(draw: Draw, array: Array) -> ViewOp:
    dims = [dim for dim in range(-array.ndim, array.ndim) if array.shape[dim] == 1]
    args = (draw(st.sampled_from(dims)),) if dims and draw(st.booleans()) else ()
    return ViewOp(_one_of(draw, "squeeze", "np.squeeze"), args)


def _unsqueeze(draw: Draw, array: Array) -> ViewOp:
    return ViewOp(_one_of(draw, "unsqueeze", "np.expand_dims"), (draw(st.integers(-array.ndim - 1, array.ndim)),))


def _expand(draw: Draw, array: Array) -> ViewOp:
    shape = tuple(draw(st.sampled_from([3, 1])) if extent == 1 else extent for extent in array.shape)
    lead = (2,) if draw(st.booleans()) or not shape else ()
    if int(np.prod((*lead, *shape))) > LARGEST_SIZE:
        lead, shape = (1,), array.shape
    name = _one_of(draw, "expand", "broadcast_to", "np.broadcast_to")
    if name != "expand":
        return ViewOp(name, ((*lead, *shape),))
    kept = (-1 if new == old and draw(st.booleans()) else new for new, old in zip(shape, array.shape, strict=True))
    return ViewOp("expand", (*lead, *kept))


def _diagonal(draw: Draw, array: Array) -> ViewOp:
    axis1, axis2 = draw(st.permutations(range(array.ndim)))[:2]
    return ViewOp(_one_of(draw, "diagonal", "np.diagonal"), (draw(st.integers(-1, 1)), axis1, axis2))


def _unfold(draw: Draw, array: Array) -> ViewOp:
    dim = _dim(draw, array)
    extent = array.shape[dim]
    return ViewOp("unfold", (dim, draw(st.integers(min(1, extent), extent)), draw(st.sampled_from([1, 2]))))


def _as_strided(draw: Draw, base: Array) -> ViewOp:
    size: list[int] = []
    stride: list[int] = []
    offset = draw(st.integers(0, base.size - 1))
    room = base.size - 1 - offset
    for _ in range(draw(st.integers(0, 2))):
        step = draw(st.integers(0, 3))
        size.append(draw(st.integers(0, min(3, room // step + 1 if step else 2))))
        stride.append(step)
        room -= step * max(size[-1] - 1, 0)
    return ViewOp("as_strided", (tuple(size), tuple(stride), offset))


MAKERS: dict[str, Callable[[Draw, Array], ViewOp]] = {
    "index": _index,
    "select": _select,
    "narrow": _narrow,
    "reshape": _reshape,
    "ravel": _ravel,
    "flatten": _flatten,
    "transpose": _transpose,
    "permute": _permute,
    "swapaxes": _swapaxes,
    "moveaxis": _moveaxis,
    "squeeze": _squeeze,
    "unsqueeze": _unsqueeze,
    "expand": _expand,
    "diagonal": _diagonal,
    "unfold": _unfold,
}


def _shapes_of_size(size: int) -> list[tuple[int, ...]]:
    if size == 0:
        return [(0,), (2, 0), (0, 3)]
    shapes: list[tuple[int, ...]] = [(size,), (-1,), (1, size), (size, 1)] + ([()] if size == 1 else [])
    for first in (2, 3, 4):
        if size % first == 0:
            shapes += [(first, size // first), (size // first, first), (-1, first)]
            if size // first % 2 == 0:
                shapes.append((2, first, size // first // 2))
    return shapes


def _shares(array: Array, of: Array) -> bool:
    """Return whether NumPy returned a window of the same memory."""
    return array.base is of or (of.base is not None and array.base is of.base)
