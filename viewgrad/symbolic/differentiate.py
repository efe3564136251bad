"""`differentiate`: differentiation of graphs.

See Note [Differentiating a graph] in docs/notes/symbolic.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from ..trace.graph import Block, BlockNode, Graph, Node, Value
from ..trace.primitives import operator_of
from ..trace.scalar_inputs import lower_numbers
from .backward import BackwardWriter
from .gradient import Gradient
from .passes.common_subexpressions import eliminate_common_subexpressions
from .passes.constants import pool_constants
from .passes.dead_code import eliminate_dead_code
from .passes.grad_of import inline_grad_of
from .passes.tuples import lower_all_tuples

NAMED = 1000  # the maximum number of inputs that have names
# the maximum number of nodes recomputed in the reverse instead of being captured
REMADE = frozenset({"constant", "full"})
MASKING = frozenset({"gather_at", "put_at"})  # their eager nodes call gradient_masked
WRITES = frozenset({"write", "overwrite", "put_at", "add_at", "put_at_unrecorded", "add_at_unrecorded", "accumulate"})


def differentiate(graph: Graph, *, copy: bool = True) -> Gradient:
    """Differentiate a graph with respect to its inputs that require grad.

    Arguments:
        graph: the graph. Inputs and outputs that are tuples or lists are replaced by their items.
        copy: whether to leave the graph unchanged; otherwise it becomes `Gradient.f`.

    Returns:
        The gradient. In `df`, the backward of each node is a linear block `GradOf`; `specialize_autograd_zero` turns
        these into plain nodes, given which gradients are undefined.

    Raises:
        GraphError: if a node is not differentiable; the message names it.

    Example:
        >>> import viewgrad as vg
        >>> g = vg.symbolic.trace(lambda a, b: (a + b) * b, vg.ones(2, requires_grad=True), vg.ones(2))
        >>> gradient = vg.symbolic.differentiate(g)
        >>> gradient.f_real_outputs, gradient.df_input_vjps, gradient.df_input_captured_inputs, gradient.df_output_vjps
        (1, (0,), (1,), (0,))
    """
    f = graph.clone() if copy else graph
    inline_grad_of(f.block)
    lower_all_tuples(f)
    lower_numbers(f)
    eliminate_common_subexpressions(f.block)
    forced: set[Value] = set()
    while True:
        reverse = Reverse(f, forced)
        recreate_constants(reverse.block)
        lift_reads(reverse.block)
        reverse.eliminate_dead_code()
        captures = captured(f, reverse.block)
        # A temporary that requires grad has a gradient of its own in derivatives of higher order. If no path from the
        # outputs led to it, its backward has not been written.
        given = {*f.inputs, *[value for value in f.outputs if value is not None]}
        missed = [
            v for v in captures
            if v.type.requires_grad and v not in given and v not in reverse.grads and v not in forced
        ]
        if not missed:
            break
        forced.update(missed)
        reverse.destroy()
    gradient = lift_lambda(f, reverse, captures)
    pool_constants(gradient.df.block)
    return gradient


class Reverse:
    """The reverse of a graph, as a block that captures values of the graph.

    Arguments:
        f: the graph.
        forced: values whose gradients are inputs, in addition to those of the outputs.

    Attributes:
        block: the reverse; its inputs are gradients of outputs, its outputs gradients of inputs.
        grads: the gradients of values.
        input_vjps, output_vjps: the inputs and outputs of the graph whose gradients the outputs and inputs of the
            reverse are.
        temporaries: the forced values, each with its input.
    """

    def __init__(self, f: Graph, forced: set[Value]) -> None:
        self.f = f
        self.owner = BlockNode("Reverse", (), None, ())
        self.block: Block = self.owner.blocks[0]
        self.grads: dict[Value, Value] = {}
        self.input_vjps: list[int] = []
        self.output_vjps: list[int] = []
        self.temporaries: list[tuple[Value, Value]] = []
        self.constants: dict[Any, Value] = {}
        self.products: set[Node] = set()  # products in which undefined gradients may be omitted
        self.is_masked = False  # whether a mask has set part of a gradient to zero; see tensor/masked_backward.py
        for number, output in enumerate(f.outputs):
            if output is not None and output.type.requires_grad:
                self._add(output, self.block.add_input(output.type))
                self.input_vjps.append(number)
        for node in (f.block.params, *f.block):
            for value in node.outputs:
                if value in forced:
                    given = self.block.add_input(value.type)
                    self._add(value, given)
                    self.temporaries.append((value, given))
        for node in reversed(f.block):
            self._visit(node)
        for number, value in enumerate(f.inputs):
            if value.type.requires_grad and value in self.grads:
                self.block.add_output(self.grads[value])
                self.output_vjps.append(number)

    def _add(self, value: Value, grad: Value) -> None:
        before = self.grads.get(value)
        if before is None:
            self.grads[value] = grad
        else:
            kind = grad.type.with_grad(grad.type.requires_grad or before.type.requires_grad)
            self.grads[value] = self.block.append("AutogradAdd", (before, grad), None, (kind,)).output

    def _visit(self, node: Node) -> None:
        """Write the backward of a node as a linear block."""
        grads = self.grads
        outputs = node.outputs
        if not any(value in grads for value in outputs) or not any(value.type.requires_grad for value in outputs):
            return
        wanted = [value is not None and value.type.requires_grad for value in node.inputs]
        if not any(wanted):
            return
        arriving = [self._arriving(value, len(outputs) > 1) for value in outputs]
        total = BackwardWriter.includes_total(node)
        totals: list[Value | None] = [None] * len(node.inputs)
        taken = [grad for grad in arriving if grad is not None]
        if total is not None and node.inputs[total] in grads:
            totals[total] = grads[node.inputs[total]]  # type: ignore[index]
            taken.append(totals[total])  # type: ignore[arg-type]
        linear = BlockNode("GradOf", taken, (node.kind,), (), node.location)
        linear.insert_before(self.block.returns)
        inner = linear.blocks[0]
        writer = BackwardWriter(inner, constants=self.constants)
        found = writer.write(node, arriving, wanted, totals)
        if self._stays_zero(node):
            found = [writer.flowing(grad, arriving[0]) for grad in found]
        for number, (value, grad) in enumerate(zip(node.inputs, found, strict=True)):
            if value is None or grad is None or not wanted[number]:
                continue
            inner.add_output(grad)
            output = linear.add_output(grad.type)
            if number == total:
                grads[value] = output
            else:
                self._add(value, output)
        if not linear.outputs:
            linear.destroy()

    def _arriving(self, output: Value, is_one_of_several: bool) -> Value | None:
        """Return the gradient of an output; if it has none, zeros for one of several outputs and None for the only one.
        """
        grad = self.grads.get(output)
        if grad is not None or not (is_one_of_several and output.type.requires_grad):
            return grad
        return self.block.append("AutogradZero", (), None, (output.type,)).output

    def _stays_zero(self, node: Node) -> bool:
        """Return whether the gradients of a node are zero if the incoming gradient is; see Note [Infinite slopes]."""
        if node.kind == "_where_flowing" or node in self.products:
            self.products.update(factors_of(node))
        operator = operator_of(node.kind)
        if node.kind in MASKING or (operator is not None and operator.masks_gradient):
            self.is_masked = True
        return node in self.products or (self.is_masked and operator is not None and operator.zero_in_masked_runs)

    def eliminate_dead_code(self) -> None:
        """Remove nodes that no gradient needs, and drop the removed gradients."""

        def forget(live: set[Value]) -> None:
            for value in [value for value, grad in self.grads.items() if grad not in live]:
                del self.grads[value]

        eliminate_dead_code(self.block, forget)

    def destroy(self) -> None:
        """Restore the previous state."""
        self.block.clear()


def factors_of(node: Node) -> Iterator[Node]:
    """Yield the elementwise nodes whose values a node uses, within the formula that both belong to."""
    for value in node.inputs[:1] if node.kind == "_where_flowing" else node.inputs:
        if value is not None and value.node.location == node.location:
            operator = operator_of(value.node.kind)
            if operator is not None and operator.elementwise and len(value.node.outputs) == 1:
                yield value.node


def captured(f: Graph, reverse: Block) -> list[Value]:
    """Return the values of a graph that its reverse captures, in the order of its inputs."""

    def taken(user: Node) -> bool:
        return is_inside(user.block, reverse)

    found = [value for value in f.inputs if value.any_user(taken)]
    for node in f.block:
        found.extend([value for value in node.outputs if value.any_user(taken)])
    return found


def is_inside(block: Block, reverse: Block) -> bool:
    """Return whether a block is the reverse or inside it."""
    while block is not reverse:
        if block.owner is None:
            return False
        block = block.owner.block
    return True


def recreate_constants(reverse: Block) -> None:
    """Recreate the constants of the graph in its reverse, instead of capturing them."""
    copies: dict[Value, Value] = {}
    for value, node, number in captured_uses(reverse, reverse):
        source = value.node
        if source.kind not in REMADE:
            continue
        if value not in copies:
            made = Node(source.kind, (), source.attributes, (value.type,), source.location)
            copies[value] = made.insert_before(reverse.first).output
        node.replace_input(number, copies[value])


def lift_reads(reverse: Block) -> None:
    """Take windows again in the reverse graph, instead of capturing them, if their base can be captured at no cost."""
    for value, node, number in captured_uses(reverse, reverse):
        source = value.node
        if source.kind == "read" and is_kept(source.inputs[0], reverse):
            made = Node("read", source.inputs, source.attributes, (value.type,), source.location)
            node.replace_input(number, made.insert_before(node).output)


def captured_uses(block: Block, reverse: Block) -> Iterator[tuple[Value, Node, int]]:
    """Yield the outside values that nodes inside the reverse use, with the node and input number."""
    for node in chain(block, (block.returns,)):
        for number, value in enumerate(node.inputs):
            if value is not None and not is_inside(value.node.block, reverse):
                yield value, node, number
        for inner in node.blocks:
            yield from captured_uses(inner, reverse)


def is_kept(base: Value | None, reverse: Block) -> bool:
    """Return whether a base can be captured at no cost: it is an input, or no write creates another version of it."""
    assert base is not None
    if base.node.kind == "param":
        return True

    def overwrites(user: Node) -> bool:
        return user.kind in WRITES and user.inputs[0] is base and not is_inside(user.block, reverse)

    return not base.any_user(overwrites)


def lift_lambda(f: Graph, reverse: Reverse, captures: Sequence[Value]) -> Gradient:
    """Convert the reverse to a graph, and make the captured values outputs of `f`."""
    real = len(f.outputs)
    outputs = {value: number for number, value in reversed(list(enumerate(f.outputs))) if value is not None}
    inputs = {value: number for number, value in enumerate(f.inputs)}
    from_inputs: list[int] = []
    from_outputs: list[int] = []
    temporaries: list[Value] = []
    for value in captures:
        if value in outputs:
            from_outputs.append(outputs[value])
        elif value in inputs:
            from_inputs.append(inputs[value])
        else:
            outputs[value] = real + len(temporaries)
            temporaries.append(value)
            from_outputs.append(outputs[value])
    f.block.add_outputs(temporaries)
    vjps = list(reverse.input_vjps)
    block = reverse.block
    vjps += [outputs[value] for value, _ in reverse.temporaries]
    forced = {value for value, _ in reverse.temporaries}
    known = {
        number: grad
        for number, value in enumerate(temporaries, real)
        if value not in forced and (grad := reverse.grads.get(value)) is not None
    }
    _add_from_outside(block, list(known.values()))
    vjps += known
    df = Graph(f.locations)
    known_outputs = {number: value for value, number in outputs.items()}
    values = [*[f.inputs[number] for number in from_inputs], *[known_outputs[number] for number in from_outputs]]
    taken = dict(zip(values, block.add_inputs([value.type for value in values]), strict=True))
    for value, node, number in captured_uses(block, block):
        node.replace_input(number, taken[value])
    block.owner = None
    df.block = block
    name_inputs(f, df, vjps, from_inputs, from_outputs)
    return Gradient(
        f, df, real, tuple(vjps), tuple(from_inputs), tuple(from_outputs), tuple(reverse.output_vjps)
    )


def _add_from_outside(block: Block, grads: Sequence[Value]) -> None:
    """Add inputs to a reverse for outside gradients of temporaries, which are added to those from inside."""
    for grad, given in zip(grads, block.add_inputs([grad.type for grad in grads]), strict=True):
        total = Node("AutogradAdd", (given, given), None, (grad.type,), grad.node.location)
        total.insert_after(grad.node) if grad.node.kind != "param" else total.insert_before(block.first)
        grad.replace_all_uses_with(total.output)
        total.replace_input(1, grad)


def name_inputs(f: Graph, df: Graph, vjps: list[int], from_inputs: list[int], from_outputs: list[int]) -> None:
    """Copy the names of captured inputs to the reverse graph."""
    inputs = iter(df.inputs)
    for number in vjps[:NAMED]:
        df.names[next(inputs)] = f"grad{number}"
    if len(vjps) > NAMED:
        return
    for number in from_inputs:
        value, name = next(inputs), f.names.get(f.inputs[number])
        if name is not None:
            df.names[value] = name
    for number, value in zip(from_outputs[:NAMED], inputs, strict=False):
        df.names[value] = f"output{number}"
