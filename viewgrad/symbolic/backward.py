"""The backward of single nodes, written into a graph: formulas of operators, and the reverse of reads and writes.

The reverse of a read adds to a window of a gradient; the reverse of a write reads the window and writes zeros. A
differentiated graph is therefore as long as the original, up to a constant factor.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from ..errors import GraphError
from ..trace.attributes import Frozen, indexed_shape, unfrozen
from ..trace.graph import Block, Node, Value
from ..trace.opaque_ops import VjpStep
from ..trace.primitives import operator_of, types_with_grad
from ..trace.types import TensorType, Window, row_strides, whole
from ..views.advanced_indexing import last_writers
from .formula_graphs import template_for

Grads = list[Value | None]


def backward_of(
    block: Block,
    node: Node,
    grads: Sequence[Value | None],
    wanted: Sequence[bool] | None = None,
    totals: Sequence[Value | None] | None = None,
    before: Node | None = None,
) -> Grads:
    """Write the backward of a node into a block.

    Arguments:
        block: the block to write to, in which values of the node's own graph are used directly.
        node: the node.
        grads: the gradient of each output; None if it is known to be zero.
        wanted: for each input, whether its gradient is needed; by default those that require grad.
        totals: for each input, the gradient accumulated so far. If given, gradients that are added to windows are
            returned as the new total, as stated by `added` of the result.
        before: the node before which to insert; by default the end of the block.

    Returns:
        The gradient of each input; None if it is zero or not needed. For the inputs in
        `BackwardWriter.includes_total(node)`, it includes the given total.

    Raises:
        GraphError: if the node cannot be differentiated.
    """
    return BackwardWriter(block, before).write(node, grads, wanted, totals)


class BackwardWriter:
    """Writes the backward of nodes into a block.

    Arguments:
        block: the block to write to.
        before: the node before which to insert; by default the end of the block.
        outside: the replacements of values of the differentiated graph; by default the values themselves.
        constants: existing zeros, by dtype; new ones are added at the start of the outermost block. If omitted, zeros
            are created where they are used.
    """

    def __init__(
        self,
        block: Block,
        before: Node | None = None,
        outside: Callable[[Value], Value] | None = None,
        constants: dict[Any, Value] | None = None,
    ) -> None:
        self.constants = constants
        self.block = block
        self.before = before
        self.outside = outside
        self.location = -1

    @staticmethod
    def includes_total(node: Node) -> int | None:
        """Return the number of the input whose returned gradient includes the previous total, or None."""
        return 0 if node.kind in ("read", "gather_at") else None

    def write(
        self,
        node: Node,
        grads: Sequence[Value | None],
        wanted: Sequence[bool] | None = None,
        totals: Sequence[Value | None] | None = None,
    ) -> Grads:
        """Return the gradients of a node's inputs; see `backward_of`."""
        if wanted is None:
            wanted = [value is not None and value.type.requires_grad for value in node.inputs]
        self.location = node.location
        if not any(wanted) or all(g is None for g in grads):
            total = self.includes_total(node)
            return [None if i != total or totals is None else totals[i] for i in range(len(node.inputs))]
        rule = RULES.get(node.kind)
        if rule is not None:
            result: Grads = rule(self, node, grads, wanted, totals or (None,) * len(node.inputs))
            return result
        return self._grad_of_operator(node, grads, wanted)

    def emit(self, kind: str, inputs: Sequence[Value | None], attributes: Any, *types: Any) -> Node:
        """Append a node."""
        before = self.block.returns if self.before is None else self.before
        return Node(kind, inputs, attributes, types, self.location).insert_before(before)

    def taken(self, value: Value) -> Value:
        """Return the replacement of a value of the differentiated graph."""
        return value if self.outside is None else self.outside(value)

    # -- operators -----------------------------------------------------------------------------------------------------

    def _grad_of_operator(self, node: Node, grads: Sequence[Value | None], wanted: Sequence[bool]) -> Grads:
        operator = operator_of(node.kind)
        if operator is None or not operator.formulas:
            raise GraphError(f"a node of kind {node.kind!r} is not differentiable")
        arriving = tuple([g is not None for g in grads])
        result: Grads = [None] * len(node.inputs)
        for template in template_for(operator, node, arriving, tuple(wanted)):
            values: dict[Value, Value | None] = {}
            for value, (kind, number) in zip(template.graph.inputs, template.reads, strict=True):
                if kind == "grad":
                    values[value] = grads[number]
                else:
                    given = node.inputs[number] if kind == "input" else node.outputs[number]
                    assert given is not None
                    values[value] = self.taken(given)
            outputs = self._inlined(template.graph, values)
            for number, value in zip(template.gives, outputs, strict=True):
                if wanted[number]:
                    result[number] = value
        return result

    def _inlined(self, graph: Any, values: dict[Value, Value | None]) -> list[Value | None]:
        """Copy a graph, in which gradients are required as determined by the values that replace its inputs."""
        before = self.block.returns if self.before is None else self.before
        location = self.location
        for node in graph.block:
            inputs = [None if value is None else values[value] for value in node.inputs]
            types = types_with_grad(node.kind, inputs, [value.type for value in node.outputs])
            copied = Node(node.kind, inputs, node.attributes, types, location).insert_before(before)
            values.update(zip(node.outputs, copied.outputs, strict=True))
        return [None if value is None else values[value] for value in graph.block.outputs]

    # -- parts ---------------------------------------------------------------------------------------------------------

    def zero(self, dtype: np.dtype[Any]) -> Value:
        """Return the number zero."""
        known = self.constants
        if known is None:
            return self.emit("constant", (), (Frozen(np.zeros((), dtype)),), TensorType.of(dtype, ())).output
        found = known.get(dtype)
        if found is None:
            block = self.block
            while block.owner is not None and block.owner.block is not None:
                block = block.owner.block
            node = Node("constant", (), (Frozen(np.zeros((), dtype)),), (TensorType.of(dtype, ()),))
            found = known[dtype] = node.insert_before(block.first).output
        return found

    def zeros(self, kind: TensorType) -> Value:
        """Return zeros of a type."""
        attributes = (kind.shape, 0, kind.dtype)
        return self.emit("full", (), attributes, TensorType.of(kind.dtype, kind.shape)).output

    def read(self, base: Value, window: Window) -> Value:
        """Return a window of a base."""
        of = tensor_type(base)
        if window.dtype is None and window.sizes == of.shape and window == whole(of.shape):
            return base
        dtype = of.dtype if window.dtype is None else window.dtype
        return self.emit("read", (base,), window, TensorType.of(dtype, window.sizes, of.requires_grad)).output

    def fitted(self, grad: Value, like: TensorType) -> Value:
        """Return a gradient in the shape and dtype of its value."""
        kind = tensor_type(grad)
        if kind.shape != like.shape:
            kind = TensorType.of(kind.dtype, like.shape, kind.requires_grad)
            grad = self.emit("sum_to_size", (grad,), (like.shape,), kind).output
        if kind.dtype != like.dtype:
            if kind.dtype.kind == "c" and like.dtype.kind != "c":
                grad = self.read(grad, real_window(kind))
                kind = tensor_type(grad)
            if kind.dtype != like.dtype:
                kind = TensorType.of(like.dtype, kind.shape, kind.requires_grad)
                grad = self.emit("_cast", (grad,), (like.dtype,), kind).output
        return grad

    # -- rules ---------------------------------------------------------------------------------------------------------

    def _grad_of_read(self, node: Node, grads: Any, wanted: Any, totals: Any) -> Grads:
        (grad,) = grads
        window: Window = node.attributes
        base = tensor_type(node.inputs[0])
        total = totals[0]
        added = self._whole_gradient(grad, window, base)
        if added is not None:
            return [self.add(total, added)]
        if total is None:
            total = self.zeros(base)
        kind = base.with_grad(total.type.requires_grad or grad.type.requires_grad)
        return [self.emit("accumulate", (total, grad), window, kind).output]

    def add(self, total: Value | None, grad: Value) -> Value:
        """Return the sum of gradients."""
        if total is None:
            return grad
        kind = tensor_type(grad)
        return self.emit(
            "AutogradAdd", (total, grad), None, kind.with_grad(kind.requires_grad or total.type.requires_grad)
        ).output

    def flowing(self, grad: Value | None, arriving: Value | None) -> Value | None:
        """Return a gradient, but 0 where the gradient it was computed from is 0 and the product is NaN."""
        if grad is None or arriving is None or grad.node.kind == "_where_flowing" or grad is arriving:
            return grad
        kind, given = tensor_type(grad), tensor_type(arriving)
        if kind.shape != given.shape or kind.dtype != given.dtype or kind.dtype.kind not in "fc":
            return grad
        kind = kind.with_grad(kind.requires_grad)
        return self.emit("_where_flowing", (grad, arriving), (), kind).output

    def _whole_gradient(self, grad: Value, window: Window, base: TensorType) -> Value | None:
        """Return the gradient of a base that was read completely, with each element read once or repeated by
        broadcasting.
        """
        if window.dtype is not None or window.offset:
            return None
        inverse = inverted(window, base.shape)
        if inverse is not None:
            return self.read(grad, inverse)
        shape = base.shape
        leading = len(window.sizes) - len(shape)
        if leading >= 0 and not any(window.strides[:leading]):
            steps = row_strides(shape)
            pairs = zip(window.sizes[leading:], window.strides[leading:], shape, steps, strict=True)
            if all(t == step and (n == extent or extent == 1) for n, t, extent, step in pairs):
                kind = tensor_type(grad)
                made = TensorType.of(kind.dtype, shape, kind.requires_grad)
                return self.emit("sum_to_size", (grad,), (shape,), made).output
        return None

    def _grad_of_write(self, node: Node, grads: Any, wanted: Any, totals: Any) -> Grads:
        (grad,) = grads
        window: Window = node.attributes
        result: Grads = [None, None]
        if wanted[1]:
            result[1] = self.fitted(self.read(grad, window), tensor_type(node.inputs[1]))
        if wanted[0]:
            kind = tensor_type(grad)
            dtype = kind.dtype if window.dtype is None else window.dtype
            result[0] = self.emit("write", (grad, self.zero(dtype)), window, kind).output
        return result

    def _grad_of_overwrite(self, node: Node, grads: Any, wanted: Any, totals: Any) -> Grads:
        return [grads[0] if wanted[0] else None, *[None] * (len(node.inputs) - 1)]

    def _grad_of_accumulate(self, node: Node, grads: Any, wanted: Any, totals: Any) -> Grads:
        (grad,) = grads
        value = self.fitted(self.read(grad, node.attributes), tensor_type(node.inputs[1])) if wanted[1] else None
        return [grad if wanted[0] else None, value]

    def _grad_of_gather_at(self, node: Node, grads: Any, wanted: Any, totals: Any) -> Grads:
        (grad,) = grads
        base = tensor_type(node.inputs[0])
        total = self.zeros(base) if totals[0] is None else totals[0]
        indices = [self.taken(value) for value in node.inputs[1:] if value is not None]
        kind = base.with_grad(total.type.requires_grad or grad.type.requires_grad)
        attributes = (whole(base.shape), node.attributes[0])
        added = self.emit("add_at", (total, grad, *indices), attributes, kind).output
        return [added, *[None] * len(indices)]

    def _index(self, node: Node, grad: Value) -> Value:
        """Return the gradient of the elements that a node has written."""
        window, pattern = node.attributes
        indices = [self.taken(value) for value in node.inputs[2:] if value is not None]
        part = self.read(grad, window)
        shape = indexed_shape(window.sizes, pattern, [tensor_type(value).shape for value in indices])
        kind = tensor_type(part)
        made = TensorType.of(kind.dtype, shape, kind.requires_grad)
        return self.emit("gather_at", (part, *indices), (pattern,), made).output

    def _grad_of_add_at(self, node: Node, grads: Any, wanted: Any, totals: Any) -> Grads:
        (grad,) = grads
        value = self.fitted(self._index(node, grad), tensor_type(node.inputs[1])) if wanted[1] else None
        return [grad if wanted[0] else None, value, *[None] * (len(node.inputs) - 2)]

    def _grad_of_put_at(self, node: Node, grads: Any, wanted: Any, totals: Any) -> Grads:
        (grad,) = grads
        window, pattern = node.attributes
        indices = [self.taken(value) for value in node.inputs[2:] if value is not None]
        result: Grads = [None] * len(node.inputs)
        if wanted[1]:
            values = self._index(node, grad)
            kind = tensor_type(values)
            mask = None
            if indices:
                made = TensorType.of(np.dtype(bool), kind.shape)
                mask = self.emit("winners_at", indices, (window.sizes, pattern), made).output
            else:
                last = last_writers(np.empty(window.sizes, bool), unfrozen(pattern))
                if last is not None:
                    stay = last == np.arange(last.size).reshape(last.shape)
                    made = TensorType.of(np.dtype(bool), stay.shape)
                    mask = self.emit("constant", (), (Frozen(stay),), made).output
            if mask is not None:
                values = self.emit("where", (mask, values, self.zero(kind.dtype)), (), kind).output
            result[1] = self.fitted(values, tensor_type(node.inputs[1]))
        if wanted[0]:
            kind = tensor_type(grad)
            inputs = (grad, self.zero(kind.dtype if window.dtype is None else window.dtype), *indices)
            result[0] = self.emit("put_at", inputs, node.attributes, kind).output
        return result

    def _grad_of_sum_to_size(self, node: Node, grads: Any, wanted: Any, totals: Any) -> Grads:
        (grad,) = grads
        source, shape = tensor_type(node.inputs[0]).shape, tensor_type(grad).shape
        leading = len(source) - len(shape)
        # If the shape has more dimensions, the leading ones have length 1.
        steps = (0,) * leading + row_strides(shape) if leading >= 0 else row_strides(shape)[-leading:]
        strides = tuple([t if n != 1 else 0 for n, t in zip(source, steps, strict=True)])
        return [self.read(grad, Window(source, strides, 0))]

    def _grad_of_add(self, node: Node, grads: Any, wanted: Any, totals: Any) -> Grads:
        return [grads[0] if each else None for each in wanted]

    def _grad_of_nothing(self, node: Node, grads: Any, wanted: Any, totals: Any) -> Grads:
        return [None] * len(node.inputs)

    def _grad_of_call(self, node: Node, grads: Any, wanted: Any, totals: Any) -> Grads:
        (step,) = node.attributes
        # Undefined gradients are omitted, since the step may not support gradients of some outputs.
        grads = [None if g is None or g.node.kind == "AutogradZero" else g for g in grads]
        arriving = tuple([i for i, g in enumerate(grads) if g is not None])
        numbers = tuple([i for i, each in enumerate(wanted) if each])
        inputs = [None if value is None else self.taken(value) for value in node.inputs]
        given = [*inputs, *[g for g in grads if g is not None]]
        grad = any(value is not None and value.type.requires_grad for value in given)
        types = [tensor_type(node.inputs[i]).with_grad(grad) for i in numbers]
        called = self.emit("call", given, (VjpStep(step, len(inputs), arriving, numbers),), *types)
        result: Grads = [None] * len(inputs)
        for number, value in zip(numbers, called.outputs, strict=True):
            result[number] = value
        return result


RULES: Final[dict[str, Any]] = {
    "read": BackwardWriter._grad_of_read,
    "write": BackwardWriter._grad_of_write,
    "overwrite": BackwardWriter._grad_of_overwrite,
    "accumulate": BackwardWriter._grad_of_accumulate,
    "gather_at": BackwardWriter._grad_of_gather_at,
    "put_at": BackwardWriter._grad_of_put_at,
    "add_at": BackwardWriter._grad_of_add_at,
    "put_at_unrecorded": BackwardWriter._grad_of_overwrite,
    "add_at_unrecorded": BackwardWriter._grad_of_overwrite,
    "sum_to_size": BackwardWriter._grad_of_sum_to_size,
    "AutogradAdd": BackwardWriter._grad_of_add,
    "AutogradZero": BackwardWriter._grad_of_nothing,
    "constant": BackwardWriter._grad_of_nothing,
    "full": BackwardWriter._grad_of_nothing,
    "detach": BackwardWriter._grad_of_nothing,
    "guard": BackwardWriter._grad_of_nothing,
    "winners_at": BackwardWriter._grad_of_nothing,
    "call": BackwardWriter._grad_of_call,
}


def tensor_type(value: Value | None) -> TensorType:
    """Return the type of a tensor."""
    assert value is not None and type(value.type) is TensorType
    return value.type


def real_window(kind: TensorType) -> Window:
    """Return the window of the real parts of a complex tensor."""
    return Window(kind.shape, tuple([2 * t for t in row_strides(kind.shape)]), 0, np.zeros(0, kind.dtype).real.dtype)


def inverted(window: Window, shape: tuple[int, ...]) -> Window | None:
    """Return the inverse of a window that only permutes its base."""
    sizes, strides = window.sizes, window.strides
    if 0 in sizes or 0 in shape:
        return None
    if strides == row_strides(sizes):
        return whole(shape) if math.prod(sizes) == math.prod(shape) else None
    order = sorted([i for i, n in enumerate(sizes) if n != 1], key=lambda i: -strides[i])
    if tuple([strides[i] for i in order]) != row_strides(tuple([sizes[i] for i in order])):
        return None
    if tuple([sizes[i] for i in order]) != tuple([n for n in shape if n != 1]):
        return None
    steps = row_strides(sizes)
    places = iter(order)
    return Window(shape, tuple([0 if n == 1 else steps[next(places)] for n in shape]), 0)
