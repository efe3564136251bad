"""Drawings of memory: a buffer, the windows on it, the values saved from it, and their histories."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final
from weakref import WeakKeyDictionary

import attrs
import numpy as np

from ..autograd.graph.describe import nodes_from, shape_text, window_text
from ..tensor.node import Node, OptionalEdge, node_of
from ..tensor.saved import LostTensor, Released, SavedConstant, SavedTensor
from ..tensor.saved_windows import address_of
from ..tensor.tensor import Tensor, root_of
from ..type_aliases import Array
from ..views.copy_slices import CopySlices
from .svg import ACCENT, CHARACTER, GREEN, ORANGE, Drawing, box, label, line, sheet

MOST_CELLS: Final = 24
CELL: Final = 26.0
ROW: Final = 30.0


@attrs.frozen
class Window:
    """A window of the buffer in the drawing.

    Arguments:
        name: its label.
        cells: the numbers of the cells.
        history: the text after it.
        kind: "view", "saved" or "copy", which determines the colour.
        stale: whether the history is that of an earlier value.
        values: the content of a copy.
    """

    name: str
    cells: tuple[int, ...]
    history: str
    kind: str
    stale: bool = False
    values: tuple[str, ...] = ()


@attrs.frozen(repr=False)
class MemoryStrip(Drawing):
    """The drawing of a buffer.

    Arguments:
        svg, text: as for `Drawing`.
        cells: the formatted values in the buffer.
        windows: the windows shown below it.
        saved: the saved values among them, and the cells they covered.
    """

    cells: tuple[str, ...] = ()
    windows: tuple[Window, ...] = ()
    saved: Mapping[SavedTensor, tuple[int, ...]] = attrs.field(factory=dict, eq=False)


def memory_strip(base: Tensor, *views: Tensor, since: MemoryStrip | None = None, **named: Tensor) -> MemoryStrip:
    """Draw the memory of a tensor: its buffer, the views on it, saved values, versions and histories.

    Views are brackets under the cells they cover, followed by their history. It is *stale* if the view has not been
    accessed since the last write; drawing does not refresh it. Values saved by a graph are shown as windows too. Saved
    values that a write has copied since an earlier drawing are shown with their contents.

    Arguments:
        base: the tensor whose memory is drawn; for a view, the memory of its base.
        views: views of it, labelled with their index.
        since: an earlier drawing of the same memory. Cells whose value has changed since then are marked, and values
            copied since then are shown.
        named: further tensors by name. Tensors that are not views of the base are searched for values saved from it.

    Returns:
        A drawing that notebooks display, that `print` shows as text, and that has a method `save`.

    Example:
        >>> import viewgrad as vg
        >>> b = vg.Tensor([1.0, 2.0, 3.0], requires_grad=True).clone()
        >>> tail = b[1:]
        >>> tail *= 2
        >>> vg.drawing.memory_strip(b, tail=tail)
        base  | 1 | 4 | 6 |  float64 (3,), version 1: CopySlices -> CloneBackward -> leaf
        tail      |~~~~~~~|  (stale) SliceBackward
    """
    root = root_of(base)
    places = _places(root._array, root._array)
    cells = np.unique(places)
    if cells.size > MOST_CELLS:
        raise ValueError(f"a strip of {cells.size} cells is too long to be legible; draw at most {MOST_CELLS}")
    order = np.argsort(places, axis=None, kind="stable")
    values = tuple(_number(value) for value in np.asarray(root._array).reshape(-1)[order])
    windows = [_of_view(view, root, cells, name) for name, view in _shown_views(root, views, named)]
    earlier = {} if since is None else since.saved
    saved = list(_saved_windows([root, *views, *named.values()], root, cells, earlier))
    windows += [window for _, window in saved]
    history = _chain(root._edge)
    head = f"{shape_text(root.shape, root.dtype)}, version {root._version}" + (f": {history}" if history else "")
    marks = () if since is None else tuple(i for i, (a, b) in enumerate(zip(since.cells, values)) if a != b)
    known = WeakKeyDictionary({value: window.cells for value, window in saved})
    return MemoryStrip(
        _svg(head, values, windows, marks), _text(head, values, windows), values, tuple(windows), known
    )


def _places(array: Array, root: Array) -> Array:
    """Return the byte offsets of the elements of `array` from the first element of `root`."""
    places = np.asarray(address_of(array) - address_of(root))
    for length, step in zip(array.shape, array.strides):
        places = np.add.outer(places, np.arange(length) * step)
    return np.asarray(places)


def _number(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, np.inexact) else str(value)


def _shown_views(
    root: Tensor, views: tuple[Tensor, ...], named: dict[str, Tensor]
) -> Iterator[tuple[str, Tensor]]:
    for view in views:
        meta = view._view
        if meta is None or meta.base is not root:
            raise ValueError("a strip shows one base and its views; pass views of it by keyword")
        yield window_text("base", meta.index, meta.view_fn), view
    for name, tensor in named.items():
        if tensor._view is not None and tensor._view.base is root:
            yield name, tensor


def _of_view(view: Tensor, root: Tensor, cells: Array, name: str) -> Window:
    meta = view._view
    assert meta is not None
    stale = not meta.is_current
    history = _chain(view._edge, 1)
    return Window(name, _covered(view._array, root, cells), history, "view", stale and bool(history))


def _covered(array: Array, root: Tensor, cells: Array) -> tuple[int, ...]:
    places = np.unique(_places(array, root._array))
    return tuple(np.unique(np.searchsorted(cells, places, side="right") - 1).tolist())


def _chain(edge: OptionalEdge, most: int = 4) -> str:
    """Return the names of a node and of the nodes that the first edges lead to."""
    names: list[str] = []
    while edge is not None and len(names) < most:
        node = node_of(edge)
        names.append("leaf" if node.name() == "AccumulateGrad" else node.name())
        edge = node.edges[0] if node.edges else None
    if edge is not None and most > 1:
        names.append("...")
    return " -> ".join(names)


def _saved_windows(
    tensors: list[Tensor], root: Tensor, cells: Array, earlier: Mapping[SavedTensor, tuple[int, ...]]
) -> Iterator[tuple[SavedTensor, Window]]:
    """Yield the windows that the graphs of tensors saved from the buffer, and their state in an earlier picture."""
    for node in nodes_from([tensor._edge for tensor in tensors]):
        what = f"saved by {node.name()}"
        for saved, name in _values_saved(node):
            array = saved.array
            if np.may_share_memory(array, root._array) and np.shares_memory(array, root._array):
                yield saved, Window(name, _covered(array, root, cells), what, "saved")
            elif saved in earlier:
                numbers = tuple(_number(value) for value in array.reshape(-1))
                yield saved, Window(name, earlier[saved], f"copied, {what}", "copy", values=numbers)


def _values_saved(node: Node) -> list[tuple[SavedTensor, str]]:
    """Return a value that a node has saved, and the name under which it is saved."""
    wrapped = node.fn if isinstance(node, CopySlices) else node
    found: list[tuple[SavedTensor, str]] = []
    for name in wrapped.saved_names:
        saved = getattr(wrapped, f"saved_{name}", None)
        lost = LostTensor | Released | SavedConstant
        if not isinstance(saved, SavedTensor) or isinstance(saved, lost) or not np.ndim(saved.array):
            continue
        if found and _place(found[-1][0].array) == _place(saved.array):
            found[-1] = (found[-1][0], f"{found[-1][1]}, {name}")
        else:
            found.append((saved, name))
    return found


def _place(array: Array) -> tuple[Any, ...]:
    return address_of(array), *array.shape, *array.strides


# -- as text -----------------------------------------------------------------------------------------------------------


def _text(head: str, values: tuple[str, ...], windows: list[Window]) -> str:
    width = max(map(len, values), default=1)
    margin = max([len("base"), *(len(window.name) for window in windows)]) + 2
    lines = ["base".ljust(margin) + "|" + "".join(f" {value.rjust(width)} |" for value in values) + f"  {head}"]
    for window in windows:
        marks = [" "] * (len(values) * (width + 3) + 1)
        sign = {"view": "~", "saved": "=", "copy": "."}[window.kind]
        for cell in window.cells:
            start = cell * (width + 3)
            marks[start] = marks[start] if marks[start] == sign else "|"
            marks[start + 1 : start + width + 4] = [sign] * (width + 2) + ["|"]
            if cell - 1 in window.cells:
                marks[start] = sign
        lines.append((window.name.ljust(margin) + "".join(marks) + f"  {_behind(window)}").rstrip())
    return "\n".join(lines)


def _behind(window: Window) -> str:
    values = f": {' '.join(window.values)}" if window.values else ""
    return ("(stale) " if window.stale else "") + window.history + values


# -- as a picture ------------------------------------------------------------------------------------------------------


def _svg(head: str, values: tuple[str, ...], windows: list[Window], marks: tuple[int, ...]) -> str:
    cell = max(CELL, CHARACTER * max(map(len, values), default=1) + 10)
    left = CHARACTER * max([len("base"), *(len(window.name) for window in windows)]) + 16
    right = left + cell * len(values)
    shapes = [label(left, 16, head), label(left - 10, 45, "base", anchor="end", bold=True)]
    for number, value in enumerate(values):
        fill = ORANGE if number in marks else "none"
        shapes += [box(left + number * cell, 28, cell, 26, fill=fill)]
        shapes += [label(left + (number + 0.5) * cell, 45, value, anchor="middle")]
    y, widest = 62.0, left + CHARACTER * len(head)
    for window in windows:
        shapes += _bracket(window, left, right, cell, y)
        widest = max(widest, right + 42 + CHARACTER * len(_behind(window)))
        y += ROW
    what = f"Memory: {len(values)} cells, windows {', '.join(window.name for window in windows) or 'none'}"
    return sheet(widest + 8, y + 4, shapes, what)


def _bracket(window: Window, left: float, right: float, cell: float, y: float) -> Iterator[str]:
    colour = {"view": ACCENT, "saved": GREEN, "copy": GREEN}[window.kind]
    dashed = window.kind == "copy"
    yield label(left - 10, y + 14, window.name, anchor="end", bold=window.kind == "view", faint=window.kind != "view")
    for start, stop in _runs(window.cells):
        a, b = left + start * cell + 3, left + stop * cell - 3
        yield box(a, y + 3, b - a, 13, fill=colour, stroke="none")
        yield line([(a, y), (a, y + 16), (b, y + 16), (b, y)], dashed=dashed, stroke=colour)
    for (_, gap), (following, _) in zip(_runs(window.cells), _runs(window.cells)[1:]):
        yield line([(left + gap * cell - 3, y + 16), (left + following * cell + 3, y + 16)], dashed=True, stroke=colour)
    text = _behind(window)
    if text:
        end = left + (window.cells[-1] + 1) * cell if window.cells else right
        yield line([(end + 1, y + 10), (right + 28, y + 10)], arrow=True, dashed=window.stale, stroke=colour)
        yield label(right + 34, y + 14, text, faint=window.stale)


def _runs(cells: tuple[int, ...]) -> list[tuple[int, int]]:
    """Return the contiguous runs of cells, each as a start and an end."""
    runs: list[tuple[int, int]] = []
    for cell in cells:
        if runs and runs[-1][1] == cell:
            runs[-1] = (runs[-1][0], cell + 1)
        else:
            runs.append((cell, cell + 1))
    return runs
