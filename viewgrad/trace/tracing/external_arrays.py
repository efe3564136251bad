"""NumPy arrays from which a program creates several tensors, and which of their elements are known."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import TraceError
from ...tensor.equality import is_same_array
from ...tensor.saved_windows import address_of
from ...type_aliases import Array
from ..evaluate import in_row_order, run_node, window_of
from ..graph import Value
from .memory import Memories, Memory, extent_of


def holds(memories: Memories, memory: Memory, tensor: Any) -> bool:
    """Return whether the value of a buffer contains the elements of a tensor that was just created from an array over
    it.

    Otherwise they are constants: NumPy has written to the array unnoticed, or only the parts of the buffer that are
    arguments are known.
    """
    array: Array = tensor._array
    if memory.root is not None:
        root = memory.root()
        known = [each for each in (root, *(chain.root() for chain in memory.others or ())) if each is not None]
        if not any(np.shares_memory(array, each._array) for each in known):
            return False
        if root is None or not is_within(array, root._array):
            raise TraceError("a tensor was created from an array that overlaps an argument and extends beyond it")
        return True
    memories.make_base(memory)
    window = memory.window(array)
    if memory.written or not memory.foreign or window is None:
        return True
    if memory.elements is None:
        memory.elements = in_row_order(evaluated(memory.value))
    return is_same_array(window_of(memory.elements, window), array)


def is_within(array: Array, whole: Array) -> bool:
    """Return whether an array lies between the first and last element of another one without gaps."""
    before, behind = extent_of(array)
    first, last = extent_of(whole)
    distance = address_of(array) - address_of(whole)
    return first + last == whole.nbytes and -first <= distance - before and distance + behind <= last


def evaluated(value: Value) -> Array:
    """Return the elements of a value that depends on no input."""
    node = value.node
    found: Array = run_node(node, [evaluated(each) for each in node.inputs if each is not None], str)[0]
    return found
