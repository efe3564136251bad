"""The nodes of arithmetic on scalars: one class for all unary operators and one for all binary operators.

The cost of a backward pass over scalars is that of the interpreter. If all objects at a line of code are of one class,
the interpreter caches the positions of their slots; with a class for each operator it looks them up, which takes five
times as long. The nodes of `+`, `-`, `*`, `/`, `-x`, `exp` and `log` on scalars therefore share two classes. The
computation of a node is determined by the *form* of its formulas, which the engine implements: see
`autograd/scalar_engine.py`. Everything else is inherited from the class of the operator's other nodes. See Note [The
gradients of scalars] in docs/notes/scalars.md.

Most scalars are intermediate results, whose nodes are referenced only by the next node. In large graphs, nodes of two
scalars absorb such nodes; see Note [Absorbed nodes] there.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

import attrs
import numpy as np

from ..tensor.node import MANY, ONE, ONE_EDGE, AccumulateGrad, Edge, Node, OptionalEdge, new
from ..tensor.refcounts import ALONE_AS_EDGE, getrefcount
from ..tensor.saved import RELEASED
from .view_nodes import ElementBackward, Layout

SUM: Final = 0
DIFFERENCE: Final = 1
PRODUCT: Final = 2
QUOTIENT: Final = 3
NEGATIVE: Final = 4
TIMES_RESULT: Final = 5
OVER_SELF: Final = 6
# The composition of two unary operators: a product or quotient with the other sign.
NEGATED_TIMES: Final = 7
NEGATED_OVER: Final = 8

MANY_NODES: Final = 24  # the number of nodes from which the rest of a formula is not merged

# The forms of two operators, outer one first.
JOINED: Final[dict[tuple[int, int], int]] = {
    (NEGATIVE, TIMES_RESULT): NEGATED_TIMES,
    (TIMES_RESULT, NEGATIVE): NEGATED_TIMES,
    (NEGATIVE, OVER_SELF): NEGATED_OVER,
    (OVER_SELF, NEGATIVE): NEGATED_OVER,
}


@attrs.define(eq=False)
class ScalarRule:
    """The base class of the nodes of one operator on scalars.

    Arguments:
        form: the form of the operator's formulas.
        node_class: the class of the operator's nodes on arrays, which has the formulas.
        steps: the rules of two operators, outer one first, if this rule is their composition.
        joined: by preceding rule, the rule of the composition, or None if they cannot be merged.
    """

    form: int
    node_class: Any
    steps: tuple[ScalarRule, ...] = ()
    joined: dict[ScalarRule, ScalarRule | None] = attrs.Factory(dict)

    def after(self, inner: ScalarRule) -> ScalarRule | None:
        """Return the rule of this operator applied to the result of another one, or None."""
        form = JOINED.get((self.form, inner.form))
        found = None if form is None else ScalarRule(form, self.node_class, (self, inner))
        return self.joined.setdefault(inner, found)


class ScalarNode(Node):
    """The node of an operator on float64 scalars."""

    __slots__ = ()

    rule: ScalarRule
    input_specs: ClassVar[None] = None  # nothing was broadcast or cast

    def name(self) -> str:
        """The name of the operator."""
        name: str = self.rule.node_class.__name__
        return name

    @property
    def saved_names(self) -> tuple[str, ...]:  # type: ignore[override]
        """The names of the values that the node may have saved."""
        names: tuple[str, ...] = self.rule.node_class.saved_names
        return names

    def apply(self, grad: Any, edges: tuple[Any, ...]) -> Any:
        """Return the gradients of the inputs, computed by the formulas."""
        self._convert()
        return self.rule.node_class.apply(self, grad, edges)

    def consume(self, grad: Any, edges: tuple[Any, ...]) -> Any:
        """Run `apply`, then release the saved values."""
        self._convert()
        return self.rule.node_class.consume(self, grad, edges)

    def apply_recorded(self, grad: Any, edges: tuple[Any, ...]) -> Any:
        """Implement `apply` on tensors and record it."""
        self._convert()
        return self.rule.node_class.apply_recorded(self, grad, edges)

    def saved_values(self) -> list[tuple[str, Any]]:
        """Return the saved values, each with a name."""
        self._convert()
        return super().saved_values()

    def _convert(self) -> None:
        """Convert Python numbers to NumPy scalars, which the formulas expect."""
        for name in self.saved_names:
            if type(getattr(self, f"saved_{name}")) is float:
                setattr(self, f"saved_{name}", np.float64(getattr(self, f"saved_{name}")))

    def release(self) -> None:
        """Release the saved values."""
        self.rule.node_class.release(self)


class ScalarOfOne(ScalarNode):
    """The node of a unary operator on a scalar."""

    __slots__ = ("edge", "rule", "saved_result", "saved_self")

    edge: OptionalEdge

    kind: ClassVar[int] = ONE
    edges = ONE_EDGE


# The replacement of an edge to absorbed nodes: the edge behind them; their rule, or None for a single read; the number
# saved by one of them; and the index and layout of a read, or None.
Absorbed = tuple[OptionalEdge, "ScalarRule | None", Any, Any, "Layout | None"]


class ScalarOfTwo(ScalarNode):
    """The node of a binary operator on scalars. An edge may be replaced by a tuple `Absorbed`, which represents nodes
    merged into it.
    """

    __slots__ = ("edge0", "edge1", "rule", "saved_other", "saved_result", "saved_self")

    kind: ClassVar[int] = MANY

    edge0: OptionalEdge | Absorbed
    edge1: OptionalEdge | Absorbed

    @property
    def edges(self) -> tuple[OptionalEdge, ...]:  # type: ignore[override]
        """The edges to nodes as they were recorded; merged nodes are rebuilt."""
        # All of them are newer than their inputs and older than this node.
        edge = self.edge0
        if type(edge) is tuple:
            edge = self.edge0 = _unmerged(edge, self.sequence_nr - 0.5)
        other = self.edge1
        if type(other) is tuple:
            other = self.edge1 = _unmerged(other, self.sequence_nr)
        return edge, other  # type: ignore[return-value]

    @property
    def ends(self) -> tuple[OptionalEdge, ...]:
        """The edges behind the absorbed nodes, which lead to the same leaves."""
        edge = self.edge0
        other = self.edge1
        return (
            edge[0] if type(edge) is tuple else edge,  # type: ignore[return-value]
            other[0] if type(other) is tuple else other,
        )


def read_node(edge: Any, index: Any, layout: Layout, position: float) -> ElementBackward:
    """Rebuild the merged node of a read of one element."""
    node: ElementBackward = new(ElementBackward)
    node.edge = edge
    node.index = index
    node.layout = layout
    node.hooks = None
    node.sequence_nr = position  # type: ignore[assignment]
    return node


def _unmerged(taken: Absorbed, end: float) -> Node | Edge | None:
    """Rebuild the nodes that were merged, with positions in the order of creation before `end`.

    Counted from the last one, each node always gets the same position, so nodes that were rebuilt before keep theirs.
    """
    edge, via, number, index, layout = taken
    steps = () if via is None else via.steps or (via,)
    position = end - 0.125 * len(steps)
    if layout is not None:
        edge = read_node(edge, index, layout, position - 0.125)
    for rule in reversed(steps):
        node: Any = new(ScalarOfOne)
        node.edge = edge
        node.rule = rule
        node.hooks = None
        node.sequence_nr = position
        node.saved_self = node.saved_result = number
        position += 0.125
        edge = node
    return edge


def absorb(node: Any, since: int) -> None:
    """Merge the nodes that recorded a formula into each other.

    Arguments:
        node: the node of the result; an edge to one of several outputs is unchanged.
        since: nodes up to this number have already been inspected.
    """
    waiting = [node]
    for node in waiting:
        kind = type(node)
        if kind is ScalarOfTwo:
            if node.hooks is None:
                _absorb_operands(node)
            ends = node.ends
        elif kind is ScalarOfOne:
            ends = (node.edge,)
        else:
            continue
        if len(waiting) < MANY_NODES:
            waiting += [edge for edge in ends if edge is not None and edge.sequence_nr > since]


def _absorb_operands(node: Any) -> None:
    """Merge unary operators and reads into a binary node, if nothing else refers to their nodes.

    References are counted again immediately before, since another thread may have accessed `edges` in between.
    """
    own = first = node.sequence_nr
    held = node.edge1
    if (type(held) is ScalarOfOne or type(held) is ElementBackward) and getrefcount(held) <= ALONE_AS_EDGE:
        taken, position = _beyond(held, own)
        if taken is not None and getrefcount(held) <= ALONE_AS_EDGE:
            node.edge1 = taken
            first = position
    elif held is not None:
        first = 0
    held = node.edge0
    if (type(held) is ScalarOfOne or type(held) is ElementBackward) and getrefcount(held) <= ALONE_AS_EDGE:
        taken, position = _beyond(held, own if held.sequence_nr == own - 1 else first)
        if taken is not None and getrefcount(held) <= ALONE_AS_EDGE:
            node.edge0 = taken


def _beyond(node: Any, following: int) -> tuple[Absorbed | None, int]:
    """Return the replacement of a node and the nodes behind it, or None, and the number of the oldest.

    In a backward pass, a read must run after the writes that followed it. It is therefore absorbed only if nothing was
    recorded between it and the number `following`. Reads of a leaf, which has a single gradient, are always absorbed.
    """
    if node.hooks is not None:
        return None, 0
    position = node.sequence_nr
    if position != following - 1:
        following = 0
    if type(node) is ElementBackward:
        if following or type(node.edge) is AccumulateGrad:
            return (node.edge, None, None, node.index, node.layout), position if following else 0
        return None, 0
    via = node.rule
    number = _number(node)
    if number is RELEASED:
        return None, 0
    edge = node.edge
    if type(edge) is ScalarOfOne and edge.hooks is None and getrefcount(edge) <= ALONE_AS_EDGE:
        joined = via.joined
        inner = edge.rule
        both = joined[inner] if inner in joined else via.after(inner)
        if both is not None:
            if number is None:
                number = _number(edge)
                if number is RELEASED:
                    return None, 0
            via = both
            position -= 1
            if edge.sequence_nr != position:
                following = 0
            edge = edge.edge
    if type(edge) is ElementBackward and edge.hooks is None and getrefcount(edge) <= ALONE_AS_EDGE:
        if edge.sequence_nr != position - 1:
            following = 0
        if following or type(edge.edge) is AccumulateGrad:
            return (edge.edge, via, number, edge.index, edge.layout), position - 1 if following else 0
    return (edge, via, number, None, None), position if following else 0


def _number(node: Any) -> Any:
    """Return the number saved by the node of a unary operator, or None for a change of sign."""
    form = node.rule.form
    if form == NEGATIVE:
        return None
    return node.saved_result if form == TIMES_RESULT else node.saved_self
