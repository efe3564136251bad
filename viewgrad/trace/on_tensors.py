"""Graphs run on tensors, by the library's own operators: where every step is to be seen, as in forward mode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from ..errors import GraphError
from ..operators.define import OPERATORS
from ..tensor.modes import GRAD, ModeSwitch
from ..tensor.tensor import Tensor, from_array
from ..views.advanced_indexing import last_writers
from .attributes import thawed
from .evaluate import check_guard, forward_call, indexed_by, window_of, winners
from .graph import Graph, Node, Value
from .last_use import last_uses
from .opaque_ops import Step
from .primitives import operator_of
from .types import TensorType, Window, whole

__all__ = ["run_on_tensors"]


def run_on_tensors(graph: Graph, inputs: Sequence[Any]) -> tuple[Any, ...]:
    """Run a graph without linear blocks on tensors.

    Arguments:
        graph: the graph.
        inputs: tensors; None for what is not used. They are not written to.

    Returns:
        The outputs: tensors of their own, with all the history and all the tangents that the operators give them.
    """
    uses = last_uses(graph.block)
    values: dict[Value, Any] = dict(zip(graph.inputs, inputs, strict=True))
    for node in graph.block:
        given: list[Any] = [None if value is None else values[value] for value in node.inputs]
        outputs: tuple[Any, ...]
        rule = RULES.get(node.kind)
        if rule is not None:
            outputs = (rule(node, given, node in uses.in_place),)
        elif node.kind == "guard":
            check_guard(node.attributes[0], node.attributes[1], np.asarray(given[0]._array), graph.where(node))
            outputs = ()
        elif node.kind == "call":
            step: Step = node.attributes[0]
            outputs = step.on_tensors(*given)
        else:
            outputs = _operator(node, given)
        values.update(zip(node.outputs, outputs, strict=True))
    return tuple([_own(values, value) for value in graph.outputs])


def _own(values: dict[Value, Any], value: Value | None) -> Any:
    """An output as a tensor that shares memory with no other."""
    if value is None or values[value] is None:
        return None
    tensor: Tensor = values[value]
    return tensor.clone()


def _operator(node: Node, given: list[Any]) -> tuple[Any, ...]:
    operator = operator_of(node.kind)
    if operator is None:
        raise GraphError(f"a node of kind {node.kind!r} cannot be run on tensors")
    is_variant = node.kind.endswith(f"{operator.name}_")  # that the row states itself
    if is_variant:
        given = [given[0].clone(), *given[1:]]
    args, keywords = forward_call(operator, given, node.attributes)
    function = OPERATORS[operator.name].inplace_function if is_variant else operator.function
    result = function(*args, **keywords)
    return tuple(result) if isinstance(result, tuple) else (result,)


UNRECORDED: Final = frozenset({"overwrite", "put_at_unrecorded", "add_at_unrecorded"})


def _places(base: Tensor, window: Window) -> tuple[Tensor, Any]:
    """A base in one dimension, of the elements that a window counts in, and their numbers."""
    flat = base.reshape(-1)
    if window.dtype is not None and window.dtype.kind == "f":
        flat = flat.view_as_real().reshape(-1)
    return flat, window_of(np.arange(flat.size), window._replace(dtype=None))


def _read(node: Node, given: list[Any], in_place: bool) -> Any:
    window: Window = node.attributes
    (base,) = given
    if window == whole(base.shape):
        return base
    flat, places = _places(base, window)
    if window.dtype is not None and window.dtype.kind == "c":
        return np.stack([flat[places], flat[places + 1]], -1).view_as_complex()  # type: ignore[attr-defined]
    return flat[places]


def _row_order(base: Tensor, in_place: bool) -> Any:
    """A base that may be written to, in row order."""
    if in_place and base._view is None and base.is_contiguous():
        return base
    return base._contiguous_copy() if base.ndim else base.clone()


def _write(node: Node, given: list[Any], in_place: bool) -> Any:
    window: Window = node.attributes
    base = _row_order(given[0], in_place)
    value = given[1]
    if 0 in window.sizes:
        return base
    with _mode_of(node):
        _put_window(base, window, value)
    return base


def _mode_of(node: Node) -> ModeSwitch:
    """The mode in which a write happens: one that the history does not know of has tangents all the same."""
    return ModeSwitch(off=GRAD if node.kind in UNRECORDED else 0)


def _put_window(base: Tensor, window: Window, value: Tensor) -> None:
    flat, places = _places(base, window)
    if window.dtype is not None and window.dtype.kind == "c":
        value = (value + flat[places] * 0j).view_as_real()
        flat[places] = value[..., 0]
        flat[places + 1] = value[..., 1]
    else:
        flat[places] = value


def _accumulate(node: Node, given: list[Any], in_place: bool) -> Any:
    window: Window = node.attributes
    base = _row_order(given[0], in_place)
    value = given[1]
    if 0 in window.sizes:
        return base
    flat, places = _places(base, window)
    if window.dtype is not None and window.dtype.kind == "c":
        parts = value.clone().view_as_real()
        flat.index_accumulate_(places, parts[..., 0])
        flat.index_accumulate_(places + 1, parts[..., 1])
    else:
        flat.index_accumulate_(places, value)
    return base


def _index(node: Node, given: Sequence[Any], pattern: Any) -> Any:
    return indexed_by(pattern, [np.asarray(each._array) for each in given])


def _gather_at(node: Node, given: list[Any], in_place: bool) -> Any:
    return given[0][_index(node, given[1:], node.attributes[0])]


def _put_at(node: Node, given: list[Any], in_place: bool) -> Any:
    window, pattern = node.attributes
    base = _row_order(given[0], in_place)
    value = given[1]
    index = _index(node, given[2:], pattern)
    with _mode_of(node):
        _put_items(base, window, index, value)
    return base


def _put_items(base: Tensor, window: Window, index: Any, value: Tensor) -> None:
    if window == whole(base.shape):
        base[index] = value
        return
    flat, places = _places(base, window)
    chosen = places[index]
    last = last_writers(places, index)
    if last is not None:
        value = value.broadcast_to(chosen.shape).reshape(-1)[last]
    flat[chosen] = value


def _add_at(node: Node, given: list[Any], in_place: bool) -> Any:
    window, pattern = node.attributes
    base = _row_order(given[0], in_place)
    index = _index(node, given[2:], pattern)
    with _mode_of(node):
        flat, places = _places(base, window)
        flat.index_accumulate_(places[index], given[1])
    return base


def _winners_at(node: Node, given: list[Any], in_place: bool) -> Any:
    shape, pattern = node.attributes
    return from_array(winners(shape, _index(node, given, pattern)))


def _sum_to_size(node: Node, given: list[Any], in_place: bool) -> Any:
    (value,), (shape,) = given, node.attributes
    leading = value.ndim - len(shape)
    if leading > 0:
        value = value.sum(axis=tuple(range(leading)))
    axes = tuple([i for i, n in enumerate(shape) if n == 1 and value.shape[i] != 1]) if leading >= 0 else ()
    return (value.sum(axis=axes, keepdims=True) if axes else value).reshape(shape)


def _detach(node: Node, given: list[Any], in_place: bool) -> Any:
    """A value without its history; of what was done under no_grad it has the tangent."""
    if node.attributes is None:
        return given[0].detach().clone()
    with ModeSwitch(off=GRAD):
        return given[0].clone()


def _made(node: Node, given: list[Any], in_place: bool) -> Any:
    if node.kind == "constant":
        return from_array(thawed(node.attributes[0]).copy())
    shape, value, dtype = node.attributes
    return from_array(np.full(shape, value, dtype))


def _zero(node: Node, given: list[Any], in_place: bool) -> Any:
    kind = node.output.type
    assert type(kind) is TensorType
    return from_array(np.zeros(kind.shape, kind.dtype))


RULES: Final[dict[str, Callable[[Node, list[Any], bool], Any]]] = {
    "constant": _made,
    "full": _made,
    "read": _read,
    "write": _write,
    "overwrite": _write,
    "accumulate": _accumulate,
    "gather_at": _gather_at,
    "put_at": _put_at,
    "put_at_unrecorded": _put_at,
    "add_at": _add_at,
    "add_at_unrecorded": _add_at,
    "winners_at": _winners_at,
    "sum_to_size": _sum_to_size,
    "detach": _detach,
    "AutogradZero": _zero,
    "AutogradAdd": lambda node, given, in_place: given[0] + given[1],
}
