"""Grids, index tricks (`r_`, `c_`, `mgrid`), and iterators over elements."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..operators.numpy_api.adapted import lost
from ..operators.numpy_api.conversion import as_tensors, carries_history, plain_values
from ..operators.numpy_api.creation import arange, array, linspace
from ..tensor.creation import as_operand, holds_tensor
from ..tensor.shapes import with_ndim
from ..tensor.tensor import Tensor
from .matrices import asmatrix


class Grid:
    """The type of `mgrid` and `ogrid`, which return the coordinates of a grid given by slices in brackets."""

    def __init__(self, grid: Any) -> None:
        self._grid = grid

    def __getitem__(self, key: Any) -> Any:
        items = key if isinstance(key, tuple) else (key,)
        bounds = [bound for item in items for bound in (item.start, item.stop, item.step)]
        if any(map(carries_history, bounds)):
            if any(map(np.ndim, bounds)):
                raise lost("numpy.mgrid", "the ends and steps of its slices must be numbers")
            axes = [_coordinates(item) for item in items]
            if not isinstance(key, tuple):
                return axes[0]
            found = np.meshgrid(*axes, indexing="ij", sparse=self._grid.sparse)
            return tuple(found) if self._grid.sparse else np.stack(np.broadcast_arrays(*found))
        plain = tuple(slice(*map(_number, (item.start, item.stop, item.step))) for item in items)
        return as_tensors(self._grid[plain if isinstance(key, tuple) else plain[0]])

    def __len__(self) -> int:
        return 0


def _coordinates(item: slice) -> Any:
    """Return the coordinates of a slice; an imaginary step is the number of points, including the stop."""
    start, step = (default if each is None else each for default, each in ((0, item.start), (1, item.step)))
    if isinstance(step, complex):
        return np.linspace(start, item.stop, int(abs(step)))
    count = int(np.ceil((_number(plain_values(item.stop)) - plain_values(start)) / plain_values(step)))
    return start + step * np.arange(count)


def _number(value: Any) -> Any:
    return (
        float(value)
        if isinstance(value, Tensor) and value.dtype.kind == "f"
        else (int(value) if isinstance(value, Tensor) else value)
    )


class Joined:
    """The type of `r_` and `c_`, which concatenate the values in brackets along an axis.

    Arguments:
        axis: the axis to concatenate along.
        ndmin: the minimum number of dimensions of each part.
        trans1d: the position of the dimension of a vector among these.
    """

    def __init__(self, axis: int, ndmin: int = 1, trans1d: int = -1) -> None:
        self.axis, self.ndmin, self.trans1d = axis, ndmin, trans1d

    def __getitem__(self, key: Any) -> Any:
        items = key if isinstance(key, tuple) else (key,)
        if not any(map(_holds_tensor, items)):
            return as_tensors((np.c_ if self.axis < 0 else np.r_)[key])
        axis, ndmin, trans1d = self.axis, self.ndmin, self.trans1d
        parts: list[Any] = []
        directive = ""
        dtypes: list[Any] = []  # Python's numbers have no dtype and do not change the precision
        for place, item in enumerate(items):
            if isinstance(item, str):
                if place:
                    raise ValueError("special directives must be the first entry")
                if item in ("r", "c"):
                    directive = item
                    continue
                numbers = [int(number) for number in item.split(",")]
                axis, ndmin, trans1d = (*numbers, *(axis, ndmin, trans1d)[len(numbers) :])
                continue
            parts.append(self._part(item, ndmin, trans1d))
            dtypes.append(item if type(item) in (int, float, complex) else parts[-1].dtype)
        dtype = np.result_type(*dtypes)
        made = np.concatenate([part.astype(dtype, copy=False) for part in parts], axis)
        if not directive:
            return made
        found = asmatrix(made)
        return found.T if directive == "c" and made.ndim == 1 else found

    @staticmethod
    def _part(item: Any, ndmin: int, trans1d: int) -> Any:
        if isinstance(item, slice):
            start, step = 0 if item.start is None else item.start, 1 if item.step is None else item.step
            if isinstance(step, complex):
                part = linspace(start, item.stop, int(abs(step)))
            else:
                part = arange(start, item.stop, step)
        else:
            part = as_operand(item)
        ndim = part.ndim
        if ndim < ndmin:
            part = with_ndim(part, ndmin)
            if trans1d != -1 and ndim:
                place = trans1d if trans1d >= 0 else ndmin + trans1d + 1 - ndim
                part = part.moveaxis(range(ndmin - ndim, ndmin), range(place, place + ndim))
        return part

    def __len__(self) -> int:
        return 0


def _holds_tensor(item: Any) -> bool:
    return holds_tensor((item.start, item.stop, item.step)) if isinstance(item, slice) else holds_tensor(item)


mgrid, ogrid = Grid(np.mgrid), Grid(np.ogrid)
r_, c_ = Joined(0), Joined(-1, 2, 0)


class ndenumerate:
    """Iterate over pairs of an index and an element, in row-major order."""

    def __init__(self, arr: Any) -> None:
        self._array = array(arr, copy=None)
        self._places = np.ndindex(self._array.shape)

    def __next__(self) -> tuple[tuple[int, ...], Any]:
        place = next(self._places)
        return place, self._array[place]

    def __iter__(self) -> Iterator[Any]:
        return self


class broadcast:
    """The shape that tensors are broadcast to, and an iterator over tuples of their elements; see `numpy.broadcast`.

    Arguments:
        args: tensors, arrays and numbers.
    """

    def __init__(self, *args: Any) -> None:
        given = [array(each, copy=None) for each in args]
        self.shape = np.broadcast_shapes(*(each.shape for each in given))
        self.nd = self.ndim = len(self.shape)
        self.size = math.prod(self.shape)
        self.numiter = len(given)
        self._operands = [each if each.shape == self.shape else np.broadcast_to(each, self.shape) for each in given]
        self.index = 0

    @property
    def iters(self) -> tuple[Iterator[Any], ...]:
        """An iterator over the elements of each operand."""
        return tuple(iter(each.reshape(-1)) for each in self._operands)

    def reset(self) -> None:
        """Reset the iterator to the first elements."""
        self.index = 0

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> tuple[Any, ...]:
        if self.index >= self.size:
            raise StopIteration
        place = np.unravel_index(self.index, self.shape)
        self.index += 1
        return tuple(each[place] for each in self._operands)


class nditer:
    """Iterate over windows of tensors that are broadcast against each other; see `numpy.nditer`.

    The order and the chunks, which depend on the strides, are those of NumPy's iterator over the same arrays.

    Arguments:
        op: a tensor, or a list of them; for None a tensor is created.
        flags: as for `numpy.nditer`, except "buffered"; "external_loop" gives one-dimensional windows.
        op_flags: as for `numpy.nditer`, but every window of a tensor is writable.
        op_dtypes: the dtypes of the created tensors.
        order: "C" or "F", "A" or "K" for the order in memory.

    Raises:
        TypeError: for the flag "buffered", or other arguments of `numpy.nditer`.
    """

    def __new__(cls, op: Any, *args: Any, **kwargs: Any) -> Any:
        """Create an iterator, or NumPy's own if an operand is an object array, which cannot be a tensor."""
        if any(isinstance(each, np.ndarray) and each.dtype.kind == "O" for each in _as_list(op)):
            return np.nditer(op, *args, **kwargs)
        return super().__new__(cls)

    def __init__(
        self, op: Any, flags: Any = (), op_flags: Any = None, op_dtypes: Any = None, order: Any = "K", **others: Any
    ) -> None:
        if "buffered" in flags or set(others) - {"casting"}:
            raise TypeError(
                "nditer of viewgrad.numpy iterates over windows of the tensors, not over buffers, and takes flags, "
                "op_flags, op_dtypes and order only"
            )
        given: list[Any] = [None if each is None else array(each, copy=None) for each in _as_list(op)]
        if any(each is None for each in given):
            known: Any = [None if each is None else each._array for each in given]
            made = np.nditer(known, ["zerosize_ok"], op_flags, op_dtypes, order).operands
            given = [array(new) if each is None else each for each, new in zip(given, made, strict=True)]
        arrays = [each._array for each in given]
        self.operands = tuple(given)
        self._alone = not isinstance(op, (list, tuple))
        self._in_chunks = "external_loop" in flags
        self._iterator = np.nditer(arrays, flags, [["readonly"]] * len(given), order=order)
        shape = np.broadcast_shapes(*(each.shape for each in given))
        key, axes = iteration_order(arrays, order, shape)
        spread = [each if each.shape == shape else each.broadcast_to(shape) for each in given]
        self._windows = [each[key].transpose(axes) for each in spread]
        chunk = self._iterator[0].size if self._in_chunks and self.itersize else 1
        lengths = [shape[axis] for axis in axes]
        while math.prod(lengths) * chunk > self.itersize:  # NumPy has merged the inner dimensions
            lengths.pop()
        self._outer, self._chunk = tuple(lengths), chunk
        self._started = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._iterator, name)

    def reset(self) -> None:
        """Reset the iterator to the first element."""
        self._iterator.reset()
        self._started = False

    @property
    def value(self) -> Any:
        """The current elements."""
        windows = tuple(self[place] for place in range(len(self)))
        return windows[0] if self._alone else windows

    def __getitem__(self, place: int) -> Any:
        window = self._windows[place][(*np.unravel_index(self._iterator.iterindex // self._chunk, self._outer), ...)]
        return window.reshape(-1) if self._in_chunks else window

    def __setitem__(self, place: int, value: Any) -> None:
        self[place][...] = value

    def __len__(self) -> int:
        return len(self.operands)

    def __next__(self) -> Any:
        if self._iterator.finished or (self._started and not self._iterator.iternext()):
            raise StopIteration
        self._started = True
        return self.value

    def __iter__(self) -> nditer:
        return self

    def __enter__(self) -> nditer:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Do nothing, since all writes have already been made."""


def iteration_order(arrays: Any, order: Any, shape: tuple[int, ...]) -> tuple[tuple[slice, ...], list[int]]:
    """Return the key that reverses the dimensions walked backwards, and the dimensions from the outermost inwards."""
    if 0 in shape:
        return (), list(range(len(shape)))
    iterator: Any = np.nditer(arrays, ["multi_index"], [["readonly"]] * len(arrays), order=order)
    axes: list[int] = []
    start, step = iterator.multi_index, 1
    while step < iterator.itersize:
        iterator.iterindex = step
        axes.insert(0, next(axis for axis, place in enumerate(iterator.multi_index) if place != start[axis]))
        step *= shape[axes[0]]
    rest = [axis for axis in range(len(shape)) if axis not in axes]
    return tuple(slice(None, None, -1 if place else 1) for place in start), rest + axes


def _as_list(op: Any) -> Any:
    return op if isinstance(op, (list, tuple)) else [op]
