"""Descriptions of the parts of a graph, for drawings and explanations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import attrs
import numpy as np

from ...tensor.node import AccumulateGrad, Node, OptionalEdge, node_of
from ...tensor.saved import LostTensor, Released, SavedTensor
from ...tensor.tangents import DualSaved
from ...views.advanced_nodes import IndexedNode
from ...views.copy_slices import CopySlices
from ...views.view_functions import Chain, Index, Strided
from ...views.view_nodes import ViewBackward
from ..modes.saved_hooks import PackedTensor


@attrs.frozen
class SavedValue:
    """One value that a node saves for its backward.

    Arguments:
        name: the name of the argument or output.
        text: its shape, dtype and size, or its state.
        nbytes: the number of bytes of the value itself.
    """

    name: str
    text: str
    nbytes: int


def nodes_from(edges: Iterable[OptionalEdge]) -> list[Node]:
    """Return all nodes reachable from `edges`, newest first; leaves come last, in order of use."""
    seen: dict[Node, None] = {}
    stack = [node_of(edge) for edge in edges if edge is not None]
    while stack:
        node = stack.pop()
        if node not in seen:
            seen[node] = None
            stack.extend(node_of(edge) for edge in reversed(node.edges) if edge is not None)
    return sorted(seen, key=lambda node: -node.sequence_nr)


def saved_values(node: Node) -> list[SavedValue]:
    """Return the values that `node` saves for backward; for a `CopySlices`, those of the wrapped node are separate."""
    return [_saved_value(name, saved) for name, saved in saved_entries(node)]


def saved_entries(node: Node) -> Iterator[tuple[str, Any]]:
    """Yield the values that `node` saves for its backward, each with a name; most are instances of `SavedTensor`."""
    for name, saved in node.saved_values():
        if isinstance(saved, list | tuple):
            yield from ((f"{name}[{i}]", item) for i, item in enumerate(saved))
        elif saved is not None:
            yield name, saved


def _saved_value(name: str, saved: Any) -> SavedValue:
    if isinstance(saved, DualSaved):
        saved = saved.inner
    if isinstance(saved, Released):
        return SavedValue(name, "released", 0)
    if isinstance(saved, LostTensor):
        return SavedValue(name, "overwritten from outside", 0)
    if isinstance(saved, PackedTensor):
        return SavedValue(name, f"{shape_text(saved.shape, saved.dtype)}, packed by a hook", 0)
    if isinstance(saved, SavedTensor | np.float64 | np.ndarray):
        array = saved.array if isinstance(saved, SavedTensor) else saved
        return SavedValue(name, f"{shape_text(array.shape, array.dtype)}, {array.nbytes} bytes", array.nbytes)
    return SavedValue(name, type(saved).__name__, 0)


def shape_text(shape: tuple[int, ...], dtype: np.dtype[Any]) -> str:
    """Return a shape and a dtype, as in `float64 (2, 3)`."""
    return f"{dtype} {shape}"


def window_of(node: Node, name: str) -> str | None:
    """Return the window of `name` that a node reads or writes, as an expression; None for other nodes."""
    if isinstance(node, ViewBackward | CopySlices):
        return window_text(name, node.index, node.view_fn)
    if isinstance(node, IndexedNode):
        return f"{name}[...]" if node.released else window_text(name, node.index, None)
    return None


def window_text(name: str, index: Any, view_fn: Callable[[Any], Any] | None) -> str:
    """Return the expression that selects a window of `name`."""
    return f"{name}{_index_text(index)}" if view_fn is None else f"{name}{_step_text(view_fn)}"


def _step_text(step: Any) -> str:
    if isinstance(step, Chain):
        return "".join(_step_text(inner) for inner in step.steps)
    if isinstance(step, Strided):
        return _step_text(step.view_fn)
    if isinstance(step, Index):
        return _index_text(step.index)
    text = STEPS.get(type(step).__name__)
    return f".{type(step).__name__}" if text is None else text(step)


# Looked up by name, since view functions are private to `views`.
STEPS: dict[str, Callable[[Any], str]] = {
    "Permuted": lambda step: f".transpose{step.order}",
    "Reshaped": lambda step: f".reshape{step.shape}",
    "Broadcast": lambda step: f".broadcast_to({step.shape})",
    "Diagonal": lambda step: f".diagonal({step.offset}, {step.axis1}, {step.axis2})",
    "Windows": lambda step: f".unfold({step.dim}, {step.size}, {step.step})",
    "StridedWindow": lambda step: (
        f".as_strided({step.geometry.sizes}, {step.geometry.strides}, {step.geometry.storage_offset})"
    ),
    "RealPart": lambda step: ".real",
    "ImaginaryPart": lambda step: ".imag",
    "AsReal": lambda step: ".view_as_real()",
    "AsComplex": lambda step: ".view_as_complex()",
}


def _index_text(index: Any) -> str:
    items = index if type(index) is tuple else (index,)
    if len(items) > 1 and items[-1] is Ellipsis:  # a trailing ... only selects one element of a window
        items = items[:-1]
    return f"[{', '.join(_item_text(item) for item in items)}]"


def _item_text(item: Any) -> str:
    if item is Ellipsis:
        return "..."
    if type(item) is slice:
        start, stop = ("" if bound is None else str(bound) for bound in (item.start, item.stop))
        return f"{start}:{stop}" + ("" if item.step is None else f":{item.step}")
    if isinstance(item, np.ndarray):
        if item.size <= 6 and item.dtype.kind != "b":
            return str(item.tolist())
        return f"<{'mask' if item.dtype.kind == 'b' else 'indices'} of shape {item.shape}>"
    return str(item)


def leaf_text(node: AccumulateGrad) -> str:
    """Describe the leaf of an `AccumulateGrad`."""
    tensor = node.variable
    text = f"leaf, {shape_text(node.shape, node.dtype)}"
    return f"{text}, gone" if tensor is None else f"{text}, version {tensor._version}"
