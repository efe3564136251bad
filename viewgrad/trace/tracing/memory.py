"""The memory of a traced run: the value of each buffer, and the window of the buffer that an array covers.

Aliasing is determined by memory, not by Python objects: two arrays are windows of one base if they share a buffer. A
buffer is identified by the array that owns it. See Note [Aliasing by memory] in docs/notes/symbolic.md.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...errors import TraceError
from ...tensor.saved_windows import address_of
from ...type_aliases import Array
from ...views.geometry import overlaps_itself
from ..types import TensorType, Window, row_strides
from .alias_histories import Chain, Ended, Nodes


def owner_of(array: Array) -> Array:
    """Return the array that owns the memory of `array`, or the outermost known view of it."""
    while True:
        base: Any = array.base
        if base is None:
            return array
        if not isinstance(base, np.ndarray):
            # A window created by `tensor/tracked_storage.py` has the array as `memory`; one created by as_strided has
            # it as `base`.
            held = getattr(base, "memory", None)
            held = getattr(base, "base", None) if not isinstance(held, np.ndarray) else held
            if not isinstance(held, np.ndarray):
                return array
            base = held
        array = base


class TracedNumber(np.ndarray[Any, Any]):
    """The number of a traced scalar, as a 0-d array that identifies the scalar.

    NumPy's numbers have no identity: `True` is always the same object. The rest of the library treats a tensor with
    such an array as a scalar, since it is not a plain array.
    """

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return np.asarray(array)[()]  # values computed from it are plain numbers

    def __getitem__(self, index: Any) -> Any:
        return np.asarray(self)[()][index]  # indexed like a number: the result is a number or a new array


def identified(tensor: Any) -> Any:
    """Return the array of a tensor; for a scalar, create an array that identifies it."""
    array = tensor._array
    if isinstance(array, np.generic):
        number = np.ndarray.__new__(TracedNumber, (), array.dtype)
        number[()] = array
        if tensor._saved is not None and tensor._saved.array is array:  # a node saved the result of its operator
            tensor._saved.array = number
        tensor._array = array = number
    return array


class Reference(weakref.ref[Any]):
    """A weak reference to the owner of a buffer, with the owner's number."""

    __slots__ = ("key",)

    key: int


class Memory:
    """The state of a buffer.

    Until a window of it is taken, its value is that of the array `array_id`. From then on it is a *base*, whose
    elements are in row-major order.

    Attributes:
        value: its current value.
        array_id: the id of the array that is the value; 0 for a base.
        address: the address of the base.
        itemsize, dtype: the size and dtype of the elements of the base.
        shape: the shape of the base.
        others: its other histories.
        ended: the last of its histories that were ended in place, or None.
        kept: the window of other memory whose former elements it contains, if that has ended histories.
        written: whether it was written to.
        recorded: whether a write to it was recorded.
        reference: a reference to its owner.
        foreign: whether it is a NumPy array found by the program; a tensor may cover only a part of it.
        elements: the elements of foreign memory at the time of its value, once requested.
        root: the tensor of the first history if it came from outside, as a weak reference.
        first: the tensor of the first history once there are others, as a weak reference.
        nodes: the known nodes at the end of the first history, if there are others.
    """

    __slots__ = (
        "address", "array", "array_id", "dtype", "elements", "ended", "first", "foreign", "kept", "nodes", "others",
        "recorded", "reference", "root", "shape", "value", "written",
    )  # fmt: skip

    value: Any
    array_id: int
    array: Any  # the window of its owner, until `make_base`; None if the array owns its memory, as usual
    address: int
    dtype: Any
    shape: Any
    elements: Array | None
    others: list[Chain] | None
    ended: Ended | None
    kept: Window | None
    foreign: bool
    written: bool
    recorded: bool
    reference: Reference
    root: weakref.ref[Any] | None
    first: weakref.ref[Any] | None
    nodes: Nodes

    @property
    def is_simple(self) -> bool:
        """Return whether the buffer has a single history and no tensor from outside."""
        return self.others is None and self.ended is None and self.root is None

    def window(self, array: Array) -> Window | None:
        """Return the window of the base that an array covers, or None if there is none."""
        sizes = array.shape
        itemsize = self.dtype.itemsize
        dtype = None
        if array.dtype is not self.dtype and array.dtype != self.dtype:
            dtype = array.dtype
            if {dtype.kind, self.dtype.kind} != {"f", "c"}:
                return None
            itemsize = min(itemsize, dtype.itemsize)
        if 0 in sizes:
            return Window(sizes, (0,) * len(sizes), 0, dtype)
        offset, rest = divmod(address_of(array) - self.address, itemsize)
        strides = []
        for extent, step in zip(sizes, array.strides):
            if extent == 1:
                strides.append(0)
            else:
                stride, remainder = divmod(step, itemsize)
                rest |= remainder
                strides.append(stride)
        return None if rest else Window(sizes, tuple(strides), offset, dtype)

    def element(self, owner: Array, index: tuple[Any, ...]) -> Window | None:
        """Return the window for an element of the array that owns the buffer, or None if its index does not determine
        it.

        Reading the address of a window would cost more than everything else.
        """
        shape = owner.shape
        if self.array_id or self.ended or not shape or self.shape != shape or not owner.flags.c_contiguous:
            return None
        offset = 0
        for place, extent in zip(index, shape):
            if not -extent <= place < extent:
                return None
            offset = offset * extent + place % extent
        return Window((), (), offset)

    def is_whole(self, window: Window) -> bool:
        """Return whether a window is the whole unchanged base."""
        return (
            window.dtype is None
            and window.offset == 0
            and window.sizes == self.shape
            and window.strides == row_strides(self.shape)
        )


class Memories:
    """The buffers of a run.

    Arguments:
        emit: a function that adds a node: `emit(kind, inputs, attributes, types)` returns its value.
        constant: a function that returns a value with the current elements of an array.
    """

    def __init__(self, emit: Callable[..., Any], constant: Callable[[Array], Any]) -> None:
        self.emit = emit
        self.constant = constant
        self.known: dict[int, Memory] = {}

    def find(self, array: Array) -> Memory | None:
        """Return the state of the buffer of an array."""
        memory = self.known.get(id(array))
        if memory is None and array.base is not None:
            memory = self.known.get(id(owner_of(array)))
        return memory

    def add(self, array: Array, value: Any) -> Memory:
        """Add and return the buffer of `array`, whose value is `value` and which nothing else shares."""
        memory: Memory = Memory.__new__(Memory)
        memory.value = value
        memory.array_id = id(array)
        memory.others = memory.ended = memory.kept = memory.elements = None
        memory.nodes = ()
        memory.written = memory.recorded = memory.foreign = False
        memory.root = memory.first = None
        owner = array if array.base is None else owner_of(array)
        memory.array = None if owner is array else array
        key = id(owner)
        reference = memory.reference = Reference(owner, self._forget)
        reference.key = key
        self.known[key] = memory
        return memory

    def _forget(self, reference: Reference) -> None:
        memory = self.known.get(reference.key)
        if memory is not None and memory.reference is reference:
            del self.known[reference.key]

    def make_base(self, memory: Memory) -> None:
        """Make the buffer a base, so that it can have windows."""
        if not memory.array_id:
            return
        owner: Any = memory.reference()
        array: Array = owner if memory.array is None else memory.array
        memory.array = None
        memory.array_id = 0
        memory.shape = None
        memory.dtype = array.dtype
        shape = array.shape
        itemsize = array.itemsize
        value = memory.value
        memory.address = address_of(array)
        grad = value.type.requires_grad
        if array.flags.c_contiguous and array.size * itemsize == owner.nbytes:
            memory.shape = shape
            return
        if array.size * itemsize == owner.nbytes and array.size:
            order = sorted(range(array.ndim), key=lambda dim: -abs(array.strides[dim]))
            sizes = tuple([shape[dim] for dim in order])
            dense = [abs(array.strides[dim]) // itemsize if shape[dim] > 1 else 0 for dim in order]
            if tuple(dense) == row_strides(sizes):
                # Dense but permuted: the dimensions of the base are in memory order.
                steps = row_strides(shape)
                is_negative = [array.strides[dim] < 0 and shape[dim] > 1 for dim in order]
                strides = tuple([-steps[dim] if turn else steps[dim] for dim, turn in zip(order, is_negative)])
                offset = sum((shape[dim] - 1) * steps[dim] for dim, turn in zip(order, is_negative) if turn)
                memory.address += sum(
                    array.strides[dim] * (shape[dim] - 1) for dim, turn in zip(order, is_negative) if turn
                )
                memory.shape = sizes
                kind = TensorType.of(array.dtype, sizes, grad)
                memory.value = self.emit("read", (value,), Window(sizes, strides, offset), (kind,))
                return
        memory.value = self.filled(memory, [(array, value)])

    def filled(self, memory: Memory, parts: Sequence[tuple[Array, Any]]) -> Any:
        """Return the value of a base with given values in its parts; the remaining elements are visible only in foreign
        memory.
        """
        dtype = memory.dtype
        owner: Any = memory.reference()
        if memory.shape is None:
            before, behind = extent_of(owner)
            memory.address = address_of(owner) - before
            memory.shape = ((before + behind) // dtype.itemsize,)
        value = None
        for array, part in parts:
            window = memory.window(array)
            if window is None:
                raise TraceError(
                    "a tensor was created from an array whose strides are not multiples of its itemsize, such as a "
                    "field of a structured array"
                )
            if value is None:
                if memory.is_whole(window):
                    value = part
                    continue
                if memory.foreign:
                    value = self.constant(elements_of(memory, owner))
                else:
                    value = self.emit("full", (), (memory.shape, 0, dtype), (TensorType.of(dtype, memory.shape),))
            if part.type.requires_grad and window.overlaps_itself and overlaps_itself(array):
                raise TraceError(
                    "a view is taken of a tensor whose elements share memory, as after np.broadcast_to; a graph cannot "
                    "tell which elements it contains, so it has no gradients: trace the function with a clone() of "
                    "the tensor"
                )
            grad = value.type.requires_grad or part.type.requires_grad
            value = self.emit("write", (value, part), window, (TensorType.of(dtype, memory.shape, grad),))
        return value


def elements_of(memory: Memory, owner: Array) -> Array:
    """Return the current elements of a base in memory order."""
    first = owner[tuple([slice(-1, None) if step < 0 else slice(0, 1) for step in owner.strides])]
    flat = np.lib.stride_tricks.as_strided(first, (memory.shape[0] * memory.dtype.itemsize // owner.itemsize,),
                                           (owner.itemsize,), writeable=False)  # fmt: skip
    return flat.view(memory.dtype)


def extent_of(array: Array) -> tuple[int, int]:
    """Return the numbers of bytes that an array spans before and after its first element."""
    before, behind = 0, array.itemsize
    if not array.size:
        return 0, 0
    for stride, extent in zip(array.strides, array.shape, strict=True):
        if stride < 0:
            before -= stride * (extent - 1)
        else:
            behind += stride * (extent - 1)
    return before, behind


def reaches(window: Window, shape: tuple[int, ...]) -> bool:
    """Return whether a window is inside a base of `shape`, as far as is known without its dtype."""
    sizes = window.sizes
    if 0 in sizes or window.dtype is not None:
        return True
    lowest = highest = window.offset
    for extent, stride in zip(sizes, window.strides):
        if stride < 0:
            lowest += (extent - 1) * stride
        else:
            highest += (extent - 1) * stride
    return lowest >= 0 and highest < (math.prod(shape) or 1)  # `max` may be patched while a run is recorded
