"""Reference counts that the library relies on, and the probes that measure them.

Several shortcuts are valid only if an object is not referenced elsewhere: a gradient may be overwritten then, and a
saved window need not be preserved. Each shortcut compares the reference count of the object with one of the constants
below. See Note [Reference counts] in docs/notes/reference_counts.md for what each comparison proves and why it is
sound.

With the environment variable VIEWGRAD_REFERENCE_COUNTS=0, no object counts as exclusively held. The same applies if the
interpreter's counts differ from what the probes expect, or if it runs without the global lock.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, Final

from .node import OptionalEdge

NEVER_ALONE: Final = -1  # a count that no object has

Make = Callable[[], Any]  # a function whose result may be referenced elsewhere


def _uncounted(value: Any) -> int:
    """Stand in for `sys.getrefcount` on an interpreter without it."""
    return sys.maxsize


getrefcount: Final[Callable[[Any], int]] = getattr(sys, "getrefcount", _uncounted)


# -- the probes: each holds and inspects an object as some place of the library does -----------------------------------


class _Holder:
    """An object with slots, like tensors, storages and nodes."""

    __slots__ = ("held", "inner")

    held: Any
    inner: Any

    def look(self) -> int:
        held = self.held
        return getrefcount(held)


def _in_local(make: Make) -> int:
    grad = make()
    return getrefcount(grad)


def _in_buffer(make: Make) -> int:
    buffers = {0: make()}
    held = buffers.get(0)
    return getrefcount(held)


def _as_argument(make: Make) -> int:
    buffers = {0: make()}
    grad = buffers.pop(0)
    return _count_argument(grad, False)


def _count_argument(grad: Any, recorded: bool) -> int:
    return getrefcount(grad)


def _as_edge(make: Make) -> int:
    node = _Holder()
    node.held = make()
    edge = node.held
    return getrefcount(edge)


def _as_grad(make: Make) -> int:
    leaf = _Holder()
    leaf.held = make()
    held = leaf.held
    return getrefcount(held)


def _in_slot(make: Make) -> int:
    leaf = _Holder()
    leaf.held = make()
    return getrefcount(leaf.held)


class _Consumer:
    def consume(self, grad: Any, edges: tuple[OptionalEdge, ...]) -> int:
        return getrefcount(grad)


def _in_node(make: Make) -> int:
    node = _Consumer()
    grad = make()
    return node.consume(grad, ())


def _in_copy_slices(make: Make) -> int:
    node = _Holder()
    node.held = make()
    return node.look()


def _in_list(make: Make) -> int:
    return _count_item([make()], 0)


def _count_item(grads: list[Any], i: int) -> int:
    grad = grads[i]
    return getrefcount(grad)


def _after_pop(make: Make) -> int:
    return _count_popped([make()])


def _count_popped(arrays: list[Any]) -> int:
    array = arrays.pop()
    return getrefcount(array)


def _as_storage(make: Make) -> int:
    tensor = _Holder()
    tensor.held = make()
    storage = tensor.held
    return getrefcount(storage)


def _as_whole(make: Make) -> int:
    storage = _Holder()
    storage.held = make()
    return storage.look()


def _in_cell(make: Make) -> int:
    count = NEVER_ALONE
    for entry in [(make(), ())]:
        saved, _ = entry
        count = getrefcount(saved)
    return count


def _in_pair(make: Make) -> int:
    return max([getrefcount(entry[0]) for entry in [(make(), ())]])


def _in_row(make: Make) -> int:
    rows = {0: make()}
    saved = rows[0]
    return getrefcount(saved)


def _from_row(make: Make) -> int:
    windows = _Holder()
    rows = {0: make()}
    windows.held = rows.get(0)
    saved = rows.pop(0)
    return getrefcount(saved)


PROBES: Final[dict[str, Callable[[Make], int]]] = {
    "ALONE_AFTER_POP": _after_pop,
    "ALONE_AS_ARGUMENT": _as_argument,
    "ALONE_AS_EDGE": _as_edge,
    "ALONE_AS_GRAD": _as_grad,
    "ALONE_AS_STORAGE": _as_storage,
    "ALONE_AS_WHOLE": _as_whole,
    "ALONE_FROM_ROW": _from_row,
    "ALONE_IN_BUFFER": _in_buffer,
    "ALONE_IN_CELL": _in_cell,
    "ALONE_IN_COPY_SLICES": _in_copy_slices,
    "ALONE_IN_LIST": _in_list,
    "ALONE_IN_LOCAL": _in_local,
    "ALONE_IN_NODE": _in_node,
    "ALONE_IN_PAIR": _in_pair,
    "ALONE_IN_ROW": _in_row,
    "ALONE_IN_SLOT": _in_slot,
}


# -- checks of probes --------------------------------------------------------------------------------------------------


def checked_count(probe: Callable[[Make], int]) -> int | None:
    """Return the count that a probe measures for an object without other references, if it detects every other
    reference.
    """
    alone = probe(_Holder)
    others: list[Any] = []

    def held_by_list() -> Any:
        others.append(_Holder())
        return others[-1]

    def held_by_two() -> Any:
        others.append(_Holder())
        others.append(others[-1])
        return others[-1]

    def held_by_attribute() -> Any:
        holder = _Holder()
        holder.held = _Holder()
        others.append(holder)
        return holder.held

    def held_by_variable() -> Any:
        function = _suspended()
        others.append(function)
        return next(function)

    seen = [probe(make) for make in (held_by_list, held_by_attribute, held_by_variable)]
    return alone if alone > 0 and seen == [alone + 1] * 3 and probe(held_by_two) == alone + 2 else None


def _suspended() -> Any:
    """Yield a value that stays in a local variable of the generator."""
    held = _Holder()
    yield held
    yield held


def _are_trusted() -> bool:
    if os.environ.get("VIEWGRAD_REFERENCE_COUNTS") == "0":
        return False
    # Without the global lock, another thread may acquire a reference between the check of the count and its use.
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return False
    return all(counts is not None for counts in COUNTS.values())


# The count measured by each probe for an object without other references, or None if the check failed. A later run
# could differ while a debugger or profiler keeps references to objects.
COUNTS: Final[dict[str, int | None]] = {name: checked_count(probe) for name, probe in PROBES.items()}
TRUSTED: Final = _are_trusted()  # whether the shortcuts are enabled


def _count(name: str) -> int:
    count = COUNTS[name]
    return count if TRUSTED and count is not None else NEVER_ALONE


# Gradients in a run of the engine: in a local variable, in a buffer, and passed to a function.
ALONE_IN_LOCAL: Final = _count("ALONE_IN_LOCAL")
ALONE_IN_BUFFER: Final = _count("ALONE_IN_BUFFER")
ALONE_AS_ARGUMENT: Final = _count("ALONE_AS_ARGUMENT")
# The `grad` of a leaf, and its array.
ALONE_AS_GRAD: Final = _count("ALONE_AS_GRAD")
ALONE_IN_SLOT: Final = _count("ALONE_IN_SLOT")
# A gradient inside the `consume` of a node, and the node inside a `CopySlices`.
ALONE_IN_NODE: Final = _count("ALONE_IN_NODE")
ALONE_IN_COPY_SLICES: Final = _count("ALONE_IN_COPY_SLICES")
# A node that another node leads to.
ALONE_AS_EDGE: Final = _count("ALONE_AS_EDGE")
# A gradient returned by the backward of a custom function, and its storage.
ALONE_IN_LIST: Final = _count("ALONE_IN_LIST")
ALONE_AS_STORAGE: Final = _count("ALONE_AS_STORAGE")
# The saved values of a whole storage and of its parts, in the places where they are stored.
ALONE_AS_WHOLE: Final = _count("ALONE_AS_WHOLE")
ALONE_IN_CELL: Final = _count("ALONE_IN_CELL")
ALONE_IN_PAIR: Final = _count("ALONE_IN_PAIR")
ALONE_IN_ROW: Final = _count("ALONE_IN_ROW")
ALONE_FROM_ROW: Final = _count("ALONE_FROM_ROW")
# The memory of a run of a compiled program when the run returns it.
ALONE_AFTER_POP: Final = _count("ALONE_AFTER_POP")
