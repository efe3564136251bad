"""The evaluator of graphs on tensors, by the library's own operators: for forward mode and higher derivatives."""

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
from .last_use import UNRECORDED, last_uses
from .opaque_ops import Step
from .primitives import operator_of
from .raised import RAISES
from .types import TensorType, Window, whole


def run_on_tensors(
    graph: Graph, inputs: Sequence[Any], *, checks_guards: bool = True, ends_histories: bool = False
) -> tuple[Any, ...]:
    """Run a graph without linear blocks on tensors, in time linear in the number of its writes.

    Arguments:
        graph: the graph.
        inputs: tensors, which are not written to; None for unused ones.
        checks_guards: whether guards are checked.
        ends_histories: whether results that had no history when the graph was traced, as under `no_grad`, have none.

    Returns:
        The outputs: new tensors, with the histories and tangents that result from the operators.

    Raises:
        GuardError: if a guard fails.
        GraphError: for a node that cannot be run.
    """
    uses = last_uses(graph.block)
    values: dict[Value, Any] = dict(zip(graph.inputs, inputs, strict=True))
    for node in graph.block:
        if not checks_guards and (node.kind == "guard" or node.kind.startswith(RAISES)):
            continue
        given: list[Any] = [None if value is None else values[value] for value in node.inputs]
        outputs: tuple[Any, ...]
        rule = RULES.get(node.kind)
        if rule is not None:
            base = node.inputs[0] if node.inputs else None
            if node.kind in WINDOWED and base is not None:
                given[0] = values[base] = _in_row_order(given[0])
            outputs = (rule(node, given, node in uses.in_place or node in uses.copied),)
        elif node.kind == "guard":
            check_guard(node.attributes[0], node.attributes[1], np.asarray(given[0]._array), graph.where(node))
            outputs = ()
        elif node.kind == "call":
            step: Step = node.attributes[0]
            outputs = step.on_tensors(*given)
        else:
            outputs = _operator(node, given)
            if ends_histories:
                outputs = tuple([
                    result.detach() if result.requires_grad and not output.type.requires_grad else result
                    for output, result in zip(node.outputs, outputs, strict=True)
                ])
        values.update(zip(node.outputs, outputs, strict=True))
    return tuple([_own(values, value) for value in graph.outputs])


def _own(values: dict[Value, Any], value: Value | None) -> Any:
    """Return an output as a tensor that shares memory with no other."""
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


def _in_row_order(base: Any) -> Any:
    """Return a tensor whose elements are in C order, so that windows of it are views.

    It is no view itself: `as_strided` counts from the start of a view's base.
    """
    if base is None or (base.ndim and base._view is None and base.is_contiguous()):
        return base
    return base._contiguous_copy() if base.ndim else base.clone()


def _view(base: Tensor, window: Window) -> Any:
    """Return a window of a base in C order as a view of it."""
    flat = base.reshape(-1)
    if 0 in window.sizes:
        return flat[:0].reshape(window.sizes)
    offset = window.offset + sum(
        (size - 1) * stride for size, stride in zip(window.sizes, window.strides, strict=True) if stride < 0
    )
    view = flat.as_strided(window.sizes, tuple([abs(stride) for stride in window.strides]), offset)
    if any(stride < 0 for stride in window.strides):
        view = view[tuple([slice(None, None, -1 if stride < 0 else None) for stride in window.strides])]
    return view


def _places(base: Tensor, window: Window) -> tuple[Tensor, Any]:
    """Return a base in one dimension, of the elements that a window counts in, and their numbers."""
    flat = base.reshape(-1)
    if window.dtype is not None and window.dtype.kind == "f":
        flat = flat.view_as_real().reshape(-1)
    return flat, window_of(np.arange(flat.size), window._replace(dtype=None))


def _read(node: Node, given: list[Any], is_copied: bool) -> Any:
    window: Window = node.attributes
    (base,) = given
    if window.dtype is None:
        return base if window == whole(base.shape) and not is_copied else _view(base, window).clone()
    flat, places = _places(base, window)
    if window.dtype.kind == "c":
        return np.stack([flat[places], flat[places + 1]], -1).view_as_complex()  # type: ignore[attr-defined]
    return flat[places]


def _written(base: Tensor, in_place: bool) -> Any:
    """Return a base that may be written to."""
    return base if in_place and base._view is None else base.clone()


def _write(node: Node, given: list[Any], in_place: bool) -> Any:
    window: Window = node.attributes
    base = _written(given[0], in_place)
    value = given[1]
    if 0 in window.sizes:
        return base
    view = _view(base, window) if window.dtype is None else None  # with the history of the base
    with _mode_of(node):
        if view is not None:
            view[...] = value
        else:
            _put_parts(base, window, value)
    return base


def _mode_of(node: Node) -> ModeSwitch:
    """Return the mode in which a write happens: one that has no history still has tangents."""
    return ModeSwitch(off=GRAD if node.kind in UNRECORDED else 0)


def _put_parts(base: Tensor, window: Window, value: Tensor) -> None:
    """Write to a window of another dtype: parts of complex numbers, or complex numbers on pairs of real ones."""
    flat, places = _places(base, window)
    if window.dtype is not None and window.dtype.kind == "c":
        value = (value + flat[places] * 0j).view_as_real()
        flat[places] = value[..., 0]
        flat[places + 1] = value[..., 1]
    else:
        flat[places] = value


def _accumulate(node: Node, given: list[Any], in_place: bool) -> Any:
    window: Window = node.attributes
    base = _written(given[0], in_place)
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
    base = _written(given[0], in_place)
    index = _index(node, given[2:], pattern)
    view = _view(base, window) if window.dtype is None else None
    with _mode_of(node):
        if view is not None:
            view[index] = given[1]
        else:
            flat, places = _places(base, window)
            chosen = places[index]
            last = last_writers(places, index)
            value = given[1] if last is None else given[1].broadcast_to(chosen.shape).reshape(-1)[last]
            flat[chosen] = value
    return base


def _add_at(node: Node, given: list[Any], in_place: bool) -> Any:
    window, pattern = node.attributes
    base = _written(given[0], in_place)
    index = _index(node, given[2:], pattern)
    view = _view(base, window) if window.dtype is None else None
    with _mode_of(node):
        if view is not None:
            np.add.at(view, index, given[1])
        else:
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
    """Return a value without its history; the result of an operation under no_grad keeps its tangent."""
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


# Kinds whose first input is a base in C order.
WINDOWED: Final = frozenset({
    "read", "write", "overwrite", "accumulate", "put_at", "put_at_unrecorded", "add_at", "add_at_unrecorded",
})  # fmt: skip
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
