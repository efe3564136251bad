"""The windows saved from a storage, organized so that a write finds the overlapping ones without comparing all.

A window is located by its bounding box: a range for each dimension, in the index space of the array that the storage
was created with. Boxes of similar extents are kept in one grid whose cells have about their size, so that a row, a
column, an element or a block each intersects few cells. A write inspects the few cells that its own box overlaps. Boxes
only preselect; whether two windows share memory is decided exactly.

A window may not be a basic index of that array: a diagonal, or a stride through a reshaped view. It is then located by
the numbers of its first and last element and the step between its elements. Windows with the same step but different
remainders never overlap.

The file is long because its two ways to locate a window share their registry.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from typing import Any, Final

import numpy as np

from ..type_aliases import Array
from .indices import window_at
from .refcounts import (
    ALONE_FROM_ROW,
    ALONE_IN_CELL,
    ALONE_IN_PAIR,
    ALONE_IN_ROW,
    getrefcount,
)
from .saved import SavedTensor

Box = tuple[tuple[int, int], ...]  # half-open ranges of the leading dimensions; omitted dimensions are whole
Entry = tuple[SavedTensor, Box]

pruning: Final = threading.RLock()  # several threads may decide to prune at the same time
FIRST_PRUNE: Final = 32  # the number of windows that may be registered before dead ones are removed


class SavedWindows:
    """The registry of the windows saved from one storage; see the module docstring for its organization.

    A grid is a tree of dictionaries with one level per dimension, indexed by cell number; its leaves are the lists of
    windows in a cell. A write visits the existing cells of a dimension, or the cells that it intersects, whichever are
    fewer.

    Windows at one index of the first dimension, the usual case, are found by that index. Saves of the same window
    between two writes share one saved value.

    Attributes:
        compared: the number of pairs of windows compared, for tests of complexity.
        touched: the windows removed because of a write, until they are copied. If an exception occurs in between, they
            are still known and the next write copies them.
    """

    __slots__ = (
        "_address",
        "_arranging",
        "_count",
        "_grids",
        "_limit",
        "_moving",
        "_pending",
        "_root",
        "_rows",
        "_strided",
        "compared",
        "touched",
    )

    def __init__(self, root: Array) -> None:
        self._root = root
        self._address: int | None = None  # the address of `root`, computed on first use
        self._rows: dict[int, SavedTensor] = {}
        self._pending: deque[tuple[SavedTensor, Any]] = deque()
        self._grids: dict[tuple[int, ...], Any] = {}
        self._strided: dict[tuple[int, int], Any] = {}
        self._count = 0
        self._limit = FIRST_PRUNE
        # the part of `_pending` being sorted into the grids
        self._arranging: deque[tuple[SavedTensor, Any]] | None = None
        self._moving: SavedTensor | None = None  # the row being inspected, removed from its place
        self.touched: list[SavedTensor] = []
        self.compared = 0

    def __len__(self) -> int:
        return len(self._rows) + self._count + len(self._pending)

    def save(self, array: Array, index: Any) -> SavedTensor:
        """Register the window `array`, and return the saved value for a node.

        Arguments:
            array: the window, taken as `root[index]`.
            index: None if it was taken in another way.
        """
        rows = self._rows
        if type(index) is int:
            if index < 0:
                index += self._root.shape[0]
            found = rows.get(index)
            if found is not None:
                return found
            saved = SavedTensor()
            saved.array = array
            saved = rows.setdefault(index, saved)  # another thread may be doing the same
        else:
            saved = SavedTensor()
            saved.array = array
            self._pending.append((saved, index))  # no call in between, since the queue may be replaced
        if len(rows) + self._count + len(self._pending) > self._limit and pruning.acquire(blocking=False):
            try:
                self._prune()
            finally:
                pruning.release()
        return saved

    def pop_overlapping(self, window: Array | None, index: Any, keep: bool = False) -> list[SavedTensor]:
        """Remove and return the live saved windows that share memory with `window`, which is `root[index]`.

        With `keep` they are not removed. Removed values also stay in `touched` until `forget_touched` is called.
        """
        touched: list[SavedTensor] = [] if keep else self.touched
        if self._moving is not None:
            touched.append(self._moving)
        rows = self._rows
        if type(index) is int:
            row = index if index >= 0 else index + self._root.shape[0]
            if row in rows and self._root.size:
                self._take_row(row, None, touched, keep)
            if not self._count and not self._pending and self._arranging is None:
                return touched
        if self._pending or self._arranging is not None:
            self._arrange()
        if not self._count and not rows:
            return touched
        if rows or self._grids:
            box = box_of(window, index, self._root)
            if box is None:
                return touched
            if rows and type(index) is not int:
                window = self._take_rows(box, window, index, touched, keep)
            for levels, grid in self._grids.items():
                for entries in _overlapping_cells(grid, levels, box):
                    if entries:
                        if window is None:
                            window = window_at(self._root, index)
                        self._pop_from(entries, box, window, touched, keep)
        if self._strided:
            self._take_strided(window_at(self._root, index) if window is None else window, touched, keep)
        return touched

    def _take_rows(
        self, box: Box, window: Array | None, index: Any, touched: list[SavedTensor], keep: bool
    ) -> Array:
        """Remove and return the saved values of the rows that a box intersects, together with the window."""
        rows = self._rows
        if window is None:
            window = window_at(self._root, index)
        numbers = range(*box[0]) if box else range(self._root.shape[0])
        for row in list(numbers) if len(numbers) < len(rows) else list(rows):
            if row in rows and row in numbers:
                self._take_row(row, window, touched, keep)
        return window

    def _take_strided(self, window: Array, touched: list[SavedTensor], keep: bool) -> None:
        """Remove and return the saved values of windows located by first and last element and step."""
        reach = self._reach_of(window)
        if reach is not None:
            span = ((reach[0], reach[1] + 1),)
            for entries in _overlapping_strided(self._strided, reach):
                self._pop_from(entries, span, window, touched, keep)

    def forget_touched(self) -> None:
        """Release the windows returned by `pop_overlapping`, which have been copied."""
        self.touched = []

    def _take_row(self, row: int, window: Array | None, touched: list[SavedTensor], keep: bool) -> None:
        """Remove and return the saved value of a row if it shares memory with `window` (None: the row itself)."""
        rows = self._rows
        saved = rows[row]
        self.compared += 1
        if getrefcount(saved) > ALONE_IN_ROW:
            if window is not None and not share_memory(saved.array, window):
                return
            touched.append(saved)
            if keep:
                return
        del rows[row]

    def _pop_from(
        self, entries: list[Entry], box: Box, window: Array, touched: list[SavedTensor], keep: bool
    ) -> None:
        kept = 0
        self.compared += len(entries)
        for entry in entries:
            saved, other = entry
            if getrefcount(saved) <= ALONE_IN_CELL:
                continue
            if _overlap(box, other) and share_memory(saved.array, window):
                touched.append(saved)
                if not keep:
                    continue
            entries[kept] = entry
            kept += 1
        gone = len(entries) - kept
        del entries[kept:]
        self._count -= gone  # last, since a count that is too high is harmless

    def _arrange(self) -> None:
        """Move the windows that are still alive from the list of new windows into the grids."""
        batch = self._arranging  # an exception may have left this half done: processing a window twice is harmless
        while batch is not None or self._pending:
            if batch is None:
                self._arranging = batch = self._pending
                self._pending = deque()
            for entry in tuple(batch):
                if getrefcount(entry[0]) > ALONE_IN_PAIR:
                    self._arrange_one(*entry)
            self._arranging = batch = None

    def _arrange_one(self, saved: SavedTensor, index: Any) -> None:
        reach = None if index is not None else self._reach_of(saved.array)
        if reach is not None:
            self._insert_strided(saved, *reach)
            return
        box = box_of(saved.array, index, self._root)
        if box is not None:
            self._insert((saved, box))

    def _insert(self, entry: Entry) -> None:
        box = entry[1]
        self._count += 1
        levels, cell = _cell_of(box, self._root.shape)
        node = self._grids
        key: Any = levels
        for number in cell:
            child = node.get(key)
            if child is None:
                child = node[key] = {}
            node = child
            key = number
        entries: Any = node.get(key)
        if entries is None:
            node[key] = [entry]
        else:
            entries.append(entry)

    def _reach_of(self, window: Array) -> tuple[int, int, int] | None:
        """Return the numbers of the first and last element of a window in the root, and their common step.

        Return None if the window is empty, or if the root is not in row-major order.
        """
        root = self._root
        if not window.size or not root.flags.c_contiguous:
            return None
        if self._address is None:
            self._address = address_of(root)
        offset = address_of(window) - self._address
        before, behind, step = reach_of(window)
        itemsize = root.itemsize
        if step % itemsize or window.itemsize > itemsize:  # parts of elements, or several elements at once
            step = itemsize
        first, last = (offset - before) // itemsize, (offset + behind - 1) // itemsize
        return first, last, max(step // itemsize, 1)

    def _insert_strided(self, saved: SavedTensor, first: int, last: int, step: int) -> None:
        level = (last - first).bit_length()
        self._count += 1
        cells = self._strided.setdefault((step, level), {}).setdefault(first % step, {})
        cells.setdefault(first >> level, []).append((saved, ((first, last + 1),)))

    def _prune(self) -> None:
        """Remove windows that no node refers to any longer; this is rare enough not to slow down saves."""
        rows = self._rows
        for row in list(rows):
            self._moving = rows.get(row)
            saved = rows.pop(row, None)  # first, since another thread may be about to share it
            if saved is None:
                continue
            if getrefcount(saved) > ALONE_FROM_ROW and rows.setdefault(row, saved) is not saved:
                self._pending.append((saved, row))
        self._moving = None
        pending = self._pending
        entries = tuple(pending)
        live_entries = deque([entry for entry in entries if getrefcount(entry[0]) > ALONE_IN_PAIR])
        if self._pending is pending:  # may have been replaced by another thread that sorts the windows
            self._pending = live_entries
            live_entries.extend(tuple(pending)[len(entries) :])  # entries that other threads have appended since
        count = 0
        for levels, grid in list(self._grids.items()):
            live = _prune_node(grid, len(levels))
            count += live
            if not live:
                del self._grids[levels]
        for key, grid in list(self._strided.items()):
            live = _prune_node(grid, 2)
            count += live
            if not live:
                del self._strided[key]
        self._count = count
        self._limit = max(FIRST_PRUNE, 2 * len(self))


def _prune_node(node: Any, depth: int) -> int:
    """Remove dead windows below a grid node `depth` levels above the lists; return the number of remaining windows."""
    if not depth:
        node[:] = [entry for entry in node if getrefcount(entry[0]) > ALONE_IN_PAIR]
        return len(node)
    count = 0
    for key, child in list(node.items()):
        live = _prune_node(child, depth - 1)
        count += live
        if not live:
            del node[key]
    return count


def _overlapping_cells(grid: Any, levels: tuple[int, ...], box: Box) -> list[list[Entry]]:
    """Return the lists of windows of one grid that may intersect `box`."""
    nodes = [grid]
    dimensions = len(box)
    for dimension, level in enumerate(levels):
        if level < 0 or dimension >= dimensions:
            nodes = [child for node in nodes for child in node.values()]
            continue
        start, stop = box[dimension]
        if level:
            start = (start >> level) - 1
            stop = ((stop - 1) >> level) + 1
        if stop - start == 1:
            nodes = [node[start] for node in nodes if start in node]
        else:
            cells = range(start, stop)
            nodes = [
                node[cell]
                for node in nodes
                for cell in (cells if len(cells) <= len(node) else list(node))
                if cell in node and cell in cells
            ]
        if not nodes:
            break
    return nodes


def _overlapping_strided(strided: dict[tuple[int, int], Any], reach: tuple[int, int, int]) -> list[list[Entry]]:
    """Return the lists of windows in `strided` that may intersect a window with given ends and step."""
    first, last, step = reach
    found: list[list[Entry]] = []
    for (other_step, level), remainders in strided.items():
        if step % other_step == 0:  # windows with the same step overlap only if they have the same remainder
            residues = [remainders[first % other_step]] if first % other_step in remainders else []
        else:
            residues = list(remainders.values())
        numbers = range((first >> level) - 1, (last >> level) + 1)
        for cells in residues:
            if len(numbers) <= len(cells):
                found.extend(cells[number] for number in numbers if number in cells)
            else:
                found.extend(entries for number, entries in cells.items() if number in numbers)
    return found


def _cell_of(box: Box, shape: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the grid for windows with the extents of `box`, and the cell in which this box starts."""
    levels = []
    cell = []
    for (start, stop), extent in zip(box, shape, strict=False):
        if stop - start == extent > 1:
            levels.append(-1)
            cell.append(0)
        else:
            level = (stop - start - 1).bit_length()
            levels.append(level)
            cell.append(start >> level)
    return tuple(levels), tuple(cell)


def box_of(window: Array | None, index: Any, root: Array) -> Box | None:
    """Return the bounding box of a window in the index space of `root`, or None if the window is empty."""
    shape = root.shape
    if index is None:
        assert window is not None
        return () if window is root else _box_from_memory(window, root)
    if type(index) is int:
        extent = shape[0]
        return ((index, index + 1),) if index >= 0 else ((index + extent, index + extent + 1),)
    box: list[tuple[int, int]] = []
    dimension = 0
    items = index if type(index) is tuple else (index,)
    for item in items:
        if item is None:
            continue
        if item is Ellipsis:
            taken = sum(1 for other in items if other is not None and other is not Ellipsis)
            box.extend((0, extent) for extent in shape[dimension : dimension + root.ndim - taken])
            dimension = len(box)
            continue
        extent = shape[dimension]
        dimension += 1
        if type(item) is slice:
            positions = range(*item.indices(extent))
            if not positions:
                return None
            first, last = positions[0], positions[-1]
            box.append((first, last + 1) if first <= last else (last, first + 1))
        else:
            position = int(item)
            if position < 0:
                position += extent
            box.append((position, position + 1))
    if root.size == 0:
        return None
    return tuple(box)


def _box_from_memory(window: Array, root: Array) -> Box | None:
    """Return the bounding box of any window, computed from its first and last byte."""
    if window.size == 0:
        return None
    shape = root.shape
    if not root.flags.c_contiguous or root.size == 0:
        return ()
    offset = address_of(window) - address_of(root)
    before, behind, _ = reach_of(window)
    first = (offset - before) // root.itemsize
    last = (offset + behind - 1) // root.itemsize
    box = []
    size = math.prod(shape)
    for extent in shape:
        size //= extent
        a, first = divmod(first, size)
        b, last = divmod(last, size)
        box.append((a, b + 1))
        if a != b:  # the box spans every remaining dimension
            break
    return tuple(box)


def address_of(array: Array) -> int:
    """Return the address of the first element."""
    address: int = array.__array_interface__["data"][0]
    return address


def reach_of(window: Array) -> tuple[int, int, int]:
    """Return the numbers of bytes that a window spans before and after its first element, and the step."""
    before = step = 0
    behind = window.itemsize
    for stride, extent in zip(window.strides, window.shape, strict=True):
        if extent > 1:
            step = math.gcd(step, stride)
            if stride > 0:
                behind += stride * (extent - 1)
            else:
                before -= stride * (extent - 1)
    return before, behind, step


def _overlap(box: Box, other: Box) -> bool:
    for (start, stop), (other_start, other_stop) in zip(box, other, strict=False):
        if stop <= other_start or other_stop <= start:
            return False
    return True


def share_memory(array: Array, window: Array) -> bool:
    """Return whether two windows share an element in memory; True if the search takes too long."""
    try:
        return np.shares_memory(array, window, max_work=100_000)  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True
