"""`differentiate`: from a graph to its gradient.

See Note [Differentiating a graph] in docs/notes/symbolic.md.
"""

from __future__ import annotations

from collections.abc import Sequence

from .backward import BackwardWriter
from .gradient import Gradient
from .graph import Block, BlockNode, Graph, Node, Value
from .passes.common_subexpressions import eliminate_common_subexpressions
from .passes.constants import pool_constants
from .passes.dead_code import eliminate_dead_code
from .passes.grad_of import inline_grad_of
from .passes.tuples import lower_tuples

__all__ = ["differentiate"]

REMADE = frozenset({"constant", "full"})  # what is made again in the reverse, rather than captured
WRITES = frozenset({"write", "overwrite", "put_at", "add_at", "put_at_silent", "add_at_silent", "accumulate"})


def differentiate(graph: Graph, *, copy: bool = True) -> Gradient:
    """Differentiate a graph with respect to its inputs that require grad.

    Arguments:
        graph: the graph.
        copy: whether to leave it as it is; otherwise it becomes `Gradient.f`.

    Returns:
        The gradient. Each node's backward stands in `df` in a linear block `GradOf`, of which
        `specialize_autograd_zero` makes plain nodes once it is said which gradients are undefined.

    Raises:
        GraphError: for a node on the way that is not differentiable; the message names it.

    Example:
        >>> import viewgrad as vg
        >>> g = vg.symbolic.trace(lambda a, b: (a + b) * b, vg.ones(2, requires_grad=True), vg.ones(2))
        >>> gradient = vg.symbolic.differentiate(g)
        >>> gradient.f_real_outputs, gradient.df_input_vjps, gradient.df_input_captured_inputs, gradient.df_output_vjps
        (1, (0,), (1,), (0,))
    """
    f = graph.clone() if copy else graph
    inline_grad_of(f.block)
    lower_tuples(f.block)
    eliminate_common_subexpressions(f.block)
    forced: set[Value] = set()
    while True:
        reverse = Reverse(f, forced)
        lift_constants(reverse.block)
        lift_reads(reverse.block)
        reverse.eliminate_dead_code()
        captures = captured(f, reverse.block)
        # A temporary that requires grad gets gradients of its own, in derivatives of higher order. Where nothing led
        # to it from the outputs, its backward has not been written.
        given = {*f.inputs, *[value for value in f.outputs if value is not None]}
        missed = [v for v in captures if v.type.requires_grad and v not in given and v not in reverse.grads]
        if not missed:
            break
        forced.update(missed)
        reverse.destroy()
    gradient = lift_lambda(f, reverse, captures)
    pool_constants(gradient.df.block)
    return gradient


class Reverse:
    """The reverse of a graph, in a block of which the graph's own values are taken.

    Arguments:
        f: the graph.
        forced: values of which gradients arrive from outside, besides those of the outputs.

    Attributes:
        block: the reverse; its inputs are gradients of outputs, its outputs gradients of inputs.
        grads: of values, their gradients.
        input_vjps, output_vjps: of which outputs and inputs.
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
            self.grads[value] = self.block.append("AutogradAdd", (before, grad), None, (grad.type,)).output

    def _visit(self, node: Node) -> None:
        """Write the backward of a node, in a linear block of its own."""
        grads = self.grads
        outputs = node.outputs
        if not any(value in grads for value in outputs) or not any(value.type.requires_grad for value in outputs):
            return
        wanted = [value is not None and value.type.requires_grad for value in node.inputs]
        if not any(wanted):
            return
        arriving = [grads.get(value) for value in outputs]
        if len(outputs) > 1:
            arriving = [
                self.block.append("AutogradZero", (), None, (value.type,)).output
                if grad is None and value.type.requires_grad
                else grad
                for value, grad in zip(outputs, arriving, strict=True)
            ]
        total = BackwardWriter.includes_total(node)
        totals: list[Value | None] = [None] * len(node.inputs)
        taken = [grad for grad in arriving if grad is not None]
        if total is not None and node.inputs[total] in grads:
            totals[total] = grads[node.inputs[total]]  # type: ignore[index]
            taken.append(totals[total])  # type: ignore[arg-type]
        linear = BlockNode("GradOf", taken, (node.kind,), (), node.location)
        linear.insert_before(self.block.returns)
        inner = linear.blocks[0]
        found = BackwardWriter(inner).write(node, arriving, wanted, totals)
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

    def eliminate_dead_code(self) -> None:
        """Remove what no gradient needs, and forget the gradients that are removed."""

        def forget(live: set[Value]) -> None:
            for value in [value for value, grad in self.grads.items() if grad not in live]:
                del self.grads[value]

        eliminate_dead_code(self.block, forget)

    def destroy(self) -> None:
        """Undo it."""
        self.block.clear()


def captured(f: Graph, reverse: Block) -> list[Value]:
    """The values of a graph that its reverse takes, in the order in which they are given."""
    inside = blocks_of(reverse)
    found = [value for value in f.inputs if used_in(value, inside)]
    for node in f.block:
        found.extend([value for value in node.outputs if used_in(value, inside)])
    return found


def blocks_of(block: Block) -> set[Block]:
    """A block and all those inside."""
    found = {block}
    for node in block:
        for inner in node.blocks:
            found |= blocks_of(inner)
    return found


def used_in(value: Value, blocks: set[Block]) -> bool:
    """Whether a value is used in one of some blocks."""
    users = value._users
    if users is None:
        return False
    return any(user.block in blocks for user in users) if type(users) is list else users.block in blocks


def lift_constants(reverse: Block) -> None:
    """Make constants of the graph again in its reverse, instead of capturing them."""
    inside = blocks_of(reverse)
    copies: dict[Value, Value] = {}
    for value, node, number in taken_from_outside(inside):
        source = value.node
        if source.kind not in REMADE:
            continue
        if value not in copies:
            made = Node(source.kind, (), source.attributes, (value.type,), source.location)
            copies[value] = made.insert_before(reverse.first).output
        node.replace_input(number, copies[value])


def lift_reads(reverse: Block) -> None:
    """Take windows again in the reverse, instead of capturing them, where their base can be captured at no cost."""
    inside = blocks_of(reverse)
    for value, node, number in taken_from_outside(inside):
        source = value.node
        if source.kind == "read" and is_kept(source.inputs[0], inside):
            made = Node("read", source.inputs, source.attributes, (value.type,), source.location)
            node.replace_input(number, made.insert_before(node).output)


def taken_from_outside(inside: set[Block]) -> list[tuple[Value, Node, int]]:
    """The values from outside of some blocks that nodes inside take: each with the node and the number of its input."""
    return [
        (value, node, number)
        for block in inside
        for node in (*block, block.returns)
        for number, value in enumerate(node.inputs)
        if value is not None and value.node.block not in inside
    ]


def is_kept(base: Value | None, inside: set[Block]) -> bool:
    """Whether a base may be captured at no cost: it is an input, or no write gives another version of it."""
    assert base is not None
    if base.node.kind == "param":
        return True
    return not any(
        user.kind in WRITES and user.inputs[0] is base and user.block not in inside for user in base.users
    )


def lift_lambda(f: Graph, reverse: Reverse, captures: Sequence[Value]) -> Gradient:
    """Make a graph of the reverse; what it captures become outputs of the graph."""
    real = len(f.outputs)
    outputs = {value: number for number, value in reversed(list(enumerate(f.outputs))) if value is not None}
    inputs = {value: number for number, value in enumerate(f.inputs)}
    from_inputs: list[int] = []
    from_outputs: list[int] = []
    for value in captures:
        if value in outputs:
            from_outputs.append(outputs[value])
        elif value in inputs:
            from_inputs.append(inputs[value])
        else:
            outputs[value] = f.block.add_output(value)
            from_outputs.append(outputs[value])
    vjps = list(reverse.input_vjps)
    block = reverse.block
    forced = {value for value, _ in reverse.temporaries}
    for value, _ in reverse.temporaries:
        vjps.append(outputs[value])
    for number in range(real, len(f.outputs)):
        output = f.outputs[number]
        grad = None if output is None else reverse.grads.get(output)
        if output is None or grad is None or output in forced:
            continue
        # The gradient of a temporary: what arrives from outside is added to what came about inside.
        given = block.add_input(output.type)
        total = Node("AutogradAdd", (given, given), None, (grad.type,), grad.node.location)
        total.insert_after(grad.node) if grad.node.kind != "param" else total.insert_before(block.first)
        grad.replace_all_uses_with(total.output)
        total.replace_input(1, grad)
        vjps.append(number)
    df = Graph(f.locations)
    given_values = [*[f.inputs[number] for number in from_inputs], *[f.outputs[number] for number in from_outputs]]
    taken = {value: block.add_input(value.type) for value in given_values if value is not None}
    for value, node, number in taken_from_outside(blocks_of(block)):
        node.replace_input(number, taken[value])
    block.owner = None
    df.block = block
    name_inputs(f, df, vjps, from_inputs, from_outputs)
    return Gradient(
        f, df, real, tuple(vjps), tuple(from_inputs), tuple(from_outputs), tuple(reverse.output_vjps)
    )


def name_inputs(f: Graph, df: Graph, vjps: list[int], from_inputs: list[int], from_outputs: list[int]) -> None:
    """Let the captured inputs have their names in the reverse too."""
    first = len(vjps)
    for place, number in enumerate(from_inputs, first):
        name = f.names.get(f.inputs[number])
        if name is not None:
            df.names[df.inputs[place]] = name
    for place, number in enumerate(vjps):
        df.names[df.inputs[place]] = f"grad{number}"
    for place, number in enumerate(from_outputs, first + len(from_inputs)):
        df.names[df.inputs[place]] = f"output{number}"
