"""The evaluation of graphs on tensors with the library's operators, for forward mode and higher derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from ..operators.define import OPERATORS
from ..tensor.modes import GRAD, ModeSwitch
from ..tensor.tensor import Tensor, from_array
from ..type_aliases import Array
from ..views.advanced_indexing import last_writers
from .evaluate import ArrayNamespace, forward_call, run_node, window_of
from .exceptions import RAISES
from .graph import Graph, Node, Value
from .last_use import WRITES, last_uses
from .opaque_ops import Step
from .types import Window, whole


def run_on_tensors(
    graph: Graph, inputs: Sequence[Any], *, checks_guards: bool = True, ends_histories: bool = False
) -> tuple[Any, ...]:
    """Run a graph without linear blocks on tensors, in time linear in the number of its writes.

    Arguments:
        graph: the graph.
        inputs: tensors, which are not written to; None for unused ones.
        checks_guards: whether guards are checked.
        ends_histories: whether results that had no history when the graph was traced, as under `no_grad`, have no
            history.

    Returns:
        The outputs: new tensors, with the histories and tangents that result from the operators.

    Raises:
        GuardError: if a guard fails.
        GraphError: for a node that cannot be run.
    """
    namespace = TensorNamespace(ends_histories)
    uses = last_uses(graph.block)
    values: dict[Value, Any] = dict(zip(graph.inputs, inputs, strict=True))
    for node in graph.block:
        if not checks_guards and (node.kind == "guard" or node.kind.startswith(RAISES)):
            continue
        given: list[Any] = [None if value is None else values[value] for value in node.inputs]
        if node.kind in WRITES or node.kind == "read":
            base = node.inputs[0]
            assert base is not None
            given[0] = values[base] = _in_row_order(given[0])
        outputs = run_node(node, given, graph.where, namespace, node in uses.in_place or node in uses.copied)
        values.update(zip(node.outputs, outputs, strict=True))
    return tuple([_unshared(values, value) for value in graph.outputs])


def _unshared(values: dict[Value, Any], value: Value | None) -> Any:
    """Return an output as a tensor that shares memory with no other."""
    if value is None or values[value] is None:
        return None
    tensor: Tensor = values[value]
    return tensor.clone()


@attrs.frozen
class TensorNamespace(ArrayNamespace):
    """The operations on tensors with which nodes are evaluated.

    Arguments:
        ends_histories: whether results of operators that had no history when the graph was traced have no history.
    """

    ends_histories: bool

    def from_array(self, array: Array) -> Any:
        return from_array(array.copy())

    def as_array(self, value: Any) -> Array:
        return np.asarray(value._array)

    def read(self, base: Any, window: Window, is_copied: bool) -> Any:
        if window.dtype is None:
            return base if window == whole(base.shape) and not is_copied else _view(base, window).clone()
        flat, places = _element_numbers(base, window)
        if window.dtype.kind == "c":
            return np.stack([flat[places], flat[places + 1]], -1).view_as_complex()  # type: ignore[attr-defined]
        return flat[places]

    def gather(self, value: Any, index: tuple[Any, ...]) -> Any:
        return value[index]

    def writable(self, base: Any, in_place: bool) -> Any:
        return base if in_place and base._view is None else base.clone()

    def assign(self, base: Any, window: Window, index: Any, value: Any, recorded: bool) -> None:
        view = _view(base, window) if window.dtype is None else None  # with the history of the base
        with ModeSwitch(off=0 if recorded else GRAD):  # a write without a history may still have tangents
            if view is not None:
                view[... if index is None else index] = value
            elif index is None:
                _put_parts(base, window, value)
            else:
                flat, places = _element_numbers(base, window)
                chosen = places[index]
                last = last_writers(places, index)
                flat[chosen] = value if last is None else value.broadcast_to(chosen.shape).reshape(-1)[last]

    def accumulate(self, base: Any, window: Window, index: Any, value: Any, recorded: bool) -> None:
        if index is None:
            flat, places = _element_numbers(base, window)
            if window.dtype is not None and window.dtype.kind == "c":
                parts = value.clone().view_as_real()
                flat.index_accumulate_(places, parts[..., 0])
                flat.index_accumulate_(places + 1, parts[..., 1])
            else:
                flat.index_accumulate_(places, value)
            return
        view = _view(base, window) if window.dtype is None else None
        with ModeSwitch(off=0 if recorded else GRAD):
            if view is not None:
                np.add.at(view, index, value)
            else:
                flat, places = _element_numbers(base, window)
                flat.index_accumulate_(places[index], value)

    def sum_to_size(self, value: Any, shape: tuple[int, ...]) -> Any:
        leading = value.ndim - len(shape)
        if leading > 0:
            value = value.sum(axis=tuple(range(leading)))
        axes = tuple([i for i, n in enumerate(shape) if n == 1 and value.shape[i] != 1]) if leading >= 0 else ()
        return (value.sum(axis=axes, keepdims=True) if axes else value).reshape(shape)

    def detach(self, value: Any, keeps_tangent: bool) -> Any:
        if not keeps_tangent:
            return value.detach().clone()
        with ModeSwitch(off=GRAD):
            return value.clone()

    def undefined(self, kind: Any) -> Any:
        return from_array(np.zeros(kind.shape, kind.dtype))

    def add(self, first: Any, second: Any) -> Any:
        return first + second

    def call_step(self, step: Step, inputs: Sequence[Any]) -> tuple[Any, ...]:
        return step.on_tensors(*inputs)

    def call_operator(self, node: Node, operator: Any, inputs: Sequence[Any]) -> tuple[Any, ...]:
        given = list(inputs)
        is_variant = node.kind.endswith(f"{operator.name}_")  # an in-place variant that the row states explicitly
        if is_variant:
            given[0] = given[0].clone()
        args, keywords = forward_call(operator, given, node.attributes)
        function = OPERATORS[operator.name].inplace_function if is_variant else operator.function
        result = function(*args, **keywords)
        outputs = tuple(result) if isinstance(result, tuple) else (result,)
        if not self.ends_histories:
            return outputs
        return tuple([
            result.detach() if result.requires_grad and not output.type.requires_grad else result
            for output, result in zip(node.outputs, outputs, strict=True)
        ])


def _in_row_order(base: Any) -> Any:
    """Return a tensor whose elements are in row-major order, so that windows of it are views.

    It is not a view itself, since `as_strided` counts from the start of a view's base.
    """
    if base is None or (base.ndim and base._view is None and base.is_contiguous()):
        return base
    return base._contiguous_copy() if base.ndim else base.clone()


def _view(base: Tensor, window: Window) -> Any:
    """Return a window of a base in row-major order as a view of the base."""
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


def _element_numbers(base: Tensor, window: Window) -> tuple[Tensor, Any]:
    """Return a base flattened and viewed in the dtype of a window, and the element numbers of the window."""
    flat = base.reshape(-1)
    if window.dtype is not None and window.dtype.kind == "f":
        flat = flat.view_as_real().reshape(-1)
    return flat, window_of(np.arange(flat.size), window._replace(dtype=None))


def _put_parts(base: Tensor, window: Window, value: Tensor) -> None:
    """Write to a window of another dtype: parts of complex numbers, or complex numbers stored in pairs of real numbers.
    """
    flat, places = _element_numbers(base, window)
    if window.dtype is not None and window.dtype.kind == "c":
        value = (value + flat[places] * 0j).view_as_real()
        flat[places] = value[..., 0]
        flat[places + 1] = value[..., 1]
    else:
        flat[places] = value
