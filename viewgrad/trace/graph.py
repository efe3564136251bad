"""Graphs: programs as values and nodes, organized in blocks.

A node has input and output values; each value is the output of one node. Graphs have no side effects except guards,
which raise: the output of a write is a new version of its base. A graph of a million nodes fits into a few hundred
megabytes, so nodes and values use slots and tuples, and a single object instead of a tuple if there is one output. See
Note [Memory of graphs] in docs/notes/symbolic.md.

The file is long because values, nodes, blocks and graphs are linked to each other, and the links are maintained
together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Final

from .types import Type

if TYPE_CHECKING:
    from .signature import Signature

FEW: Final = 16  # the number of users that are searched one by one
Use = tuple["Node", int]  # the user of a value, and the number of the input


class Value:
    """An output of a node.

    Attributes:
        node: the node.
        type: its type.
    """

    __slots__ = ("_users", "node", "type")

    node: Node
    type: Type
    # None, the only user, a list with an entry for each use, or a dictionary with the number of uses by each user
    _users: Any

    def __init__(self, node: Node, type: Type) -> None:
        self.node = node
        self.type = type
        self._users = None

    @property
    def users(self) -> list[Node]:
        """The nodes that use the value, once for each use; outputs of a block are used by its `return`."""
        users = self._users
        if users is None:
            return []
        if type(users) is dict:
            return [user for user, count in users.items() for _ in range(count)]
        return list(users) if type(users) is list else [users]

    @property
    def uses(self) -> list[Use]:
        """Return the uses of the value, as pairs of a node and the number of the input."""
        users = {id(user): user for user in self.users}.values()
        return [(user, i) for user in users for i, value in enumerate(user.inputs) if value is self]

    @property
    def is_used(self) -> bool:
        """Return whether the value is used."""
        return self._users is not None

    @property
    def number(self) -> int:
        """The number of the value among the outputs of its node."""
        return 0 if self.node._output is self else self.node._output.index(self)

    def replace_all_uses_with(self, other: Value) -> None:
        """Replace the value by `other` in all nodes that use it."""
        if other is self:
            return
        for user in self.users:
            user.inputs = tuple([other if value is self else value for value in user.inputs])
            other._add_user(user)
        self._users = None

    def _add_user(self, user: Node) -> None:
        users = self._users
        if users is None:
            self._users = user
        elif type(users) is list:
            users.append(user)
            if len(users) > FEW:
                counts: dict[Node, int] = {}
                self._users = counts
                for each in users:
                    counts[each] = counts.get(each, 0) + 1
        elif type(users) is dict:
            users[user] = users.get(user, 0) + 1
        else:
            self._users = [users, user]

    def _remove_user(self, user: Node) -> None:
        users = self._users
        if users is user:
            self._users = None
        elif type(users) is list:
            users.remove(user)
            if len(users) == 1:
                self._users = users[0]
        else:
            users[user] -= 1
            if not users[user]:
                del users[user]
                if not users:
                    self._users = None

    def any_user(self, test: Callable[[Node], bool]) -> bool:
        """Return whether any node that uses the value satisfies a predicate."""
        users = self._users
        if users is None:
            return False
        return any(map(test, users)) if type(users) in (list, dict) else test(users)

    def __repr__(self) -> str:
        return f"<value {self.number} of {self.node.kind}: {self.type}>"


class Node:
    """One operation in a graph.

    Attributes:
        kind: the name of an operator, or one of the kinds in `primitives.py`.
        inputs: the values it uses; None for an omitted optional operand.
        attributes: its options; their names are determined by the kind.
        location: the number of its source line in `Graph.locations`; -1 if unknown.
        block: the block that contains it; None if there is none.
        prev, next: its neighbours in the block.
    """

    __slots__ = ("_output", "attributes", "block", "inputs", "kind", "location", "next", "prev")

    blocks: ClassVar[tuple[Block, ...]] = ()

    kind: str
    inputs: tuple[Value | None, ...]
    attributes: Any
    location: int
    block: Any
    prev: Any
    next: Any
    _output: Any  # the only output, or a tuple of them

    def __init__(
        self, kind: str, inputs: Iterable[Value | None], attributes: Any, types: Iterable[Type], location: int = -1
    ) -> None:
        self.kind = kind
        self.inputs = inputs = tuple(inputs)
        for value in inputs:
            if value is not None:
                value._add_user(self)
        self.attributes = attributes
        outputs = [Value(self, type) for type in types]
        self._output = outputs[0] if len(outputs) == 1 else tuple(outputs)
        self.location = location
        self.block = self.prev = self.next = None

    @property
    def outputs(self) -> tuple[Value, ...]:
        """The values that the node computes."""
        output = self._output
        return (output,) if type(output) is Value else output

    @property
    def output(self) -> Value:
        """The only value that the node computes."""
        assert type(self._output) is Value, f"{self.kind} has {len(self._output)} outputs"
        return self._output

    @property
    def requires_grad(self) -> bool:
        """True if a gradient can flow to any of the outputs."""
        output = self._output
        if type(output) is Value:
            return output.type.requires_grad
        return any(value.type.requires_grad for value in output)

    # -- modification --------------------------------------------------------------------------------------------------

    def replace_input(self, number: int, value: Value | None) -> None:
        """Replace input `number`."""
        self.set_inputs([value if i == number else old for i, old in enumerate(self.inputs)])

    def set_inputs(self, inputs: Iterable[Value | None]) -> None:
        """Replace all inputs."""
        for value in self.inputs:
            if value is not None:
                value._remove_user(self)
        self.inputs = inputs = tuple(inputs)
        for value in inputs:
            if value is not None:
                value._add_user(self)

    def add_output(self, type: Type) -> Value:
        """Add an output."""
        return self.add_outputs((type,))[0]

    def add_outputs(self, types: Iterable[Type]) -> list[Value]:
        """Add several outputs."""
        values = [Value(self, type) for type in types]
        outputs = (*self.outputs, *values)
        self._output = outputs[0] if len(outputs) == 1 else outputs
        return values

    def drop_output(self, number: int) -> None:
        """Remove an unused output."""
        outputs = list(self.outputs)
        assert not outputs[number].is_used
        del outputs[number]
        self._output = outputs[0] if len(outputs) == 1 else tuple(outputs)

    def insert_before(self, other: Node) -> Node:
        """Insert the node, which must not be in a block, before another; return it."""
        block = self.block = other.block
        self.next = other
        self.prev = before = other.prev
        other.prev = self
        if before is None:
            block.first = self
        else:
            before.next = self
        return self

    def insert_after(self, other: Node) -> Node:
        """Insert the node, which must not be in a block, after another; return it."""
        assert other.next is not None
        return self.insert_before(other.next)

    def unlink(self) -> Node:
        """Remove the node from its block; return it."""
        before, behind = self.prev, self.next
        if before is None:
            self.block.first = behind
        else:
            before.next = behind
        behind.prev = before
        self.block = self.prev = self.next = None
        return self

    def destroy(self) -> None:
        """Delete the node, whose outputs must be unused."""
        for value in self.outputs:
            assert not value.is_used, f"{self.kind} is still used by {value.users}"
        for block in self.blocks:
            block.clear()
        self.set_inputs(())
        if self.block is not None:
            self.unlink()

    def __repr__(self) -> str:
        return f"<node {self.kind}, {len(self.inputs)} inputs, {len(self.outputs)} outputs>"


class BlockNode(Node):
    """A node that contains blocks."""

    __slots__ = ("blocks",)

    blocks: tuple[Block, ...]  # type: ignore[misc]

    def __init__(
        self, kind: str, inputs: Iterable[Value | None], attributes: Any, types: Iterable[Type], location: int = -1
    ) -> None:
        super().__init__(kind, inputs, attributes, types, location)
        self.blocks = (Block(self),)


class Block:
    """A sequence of nodes, with inputs and outputs.

    Attributes:
        owner: the node that contains it; None for the block of a graph.
        returns: the last node, of kind "return", which uses its outputs.
        first: the first node.
    """

    __slots__ = ("_params", "first", "owner", "returns")

    owner: Node | None
    _params: Node | None  # created on first access, since most blocks have no inputs
    returns: Node
    first: Node

    def __init__(self, owner: Node | None = None) -> None:
        self.owner = owner
        self._params = None
        self.first = self.returns = Node("return", (), None, ())
        self.returns.block = self

    @property
    def params(self) -> Node:
        """The node whose outputs are the inputs of the block; it is not in the list."""
        if self._params is None:
            self._params = Node("param", (), None, ())
            self._params.block = self
        return self._params

    @property
    def inputs(self) -> tuple[Value, ...]:
        """The inputs of the block."""
        return () if self._params is None else self._params.outputs

    @property
    def outputs(self) -> tuple[Value | None, ...]:
        """The outputs of the block."""
        return self.returns.inputs

    def add_input(self, type: Type) -> Value:
        """Add an input."""
        return self.params.add_output(type)

    def add_inputs(self, types: Iterable[Type]) -> list[Value]:
        """Add several inputs."""
        return self.params.add_outputs(types)

    def order_inputs(self, values: Iterable[Value]) -> None:
        """Replace the inputs by the given ones, in this order; all others must be unused."""
        values = tuple(values)
        assert not any(value.is_used for value in {*self.inputs}.difference(values))
        self.params._output = values[0] if len(values) == 1 else values

    def add_output(self, value: Value | None) -> int:
        """Add an output and return its number."""
        self.add_outputs((value,))
        return len(self.returns.inputs) - 1

    def add_outputs(self, values: Iterable[Value | None]) -> None:
        """Add several outputs."""
        values = tuple(values)
        self.returns.inputs = (*self.returns.inputs, *values)
        for value in values:
            if value is not None:
                value._add_user(self.returns)

    def set_outputs(self, values: Iterable[Value | None]) -> None:
        """Replace the outputs."""
        self.returns.set_inputs(values)

    def __iter__(self) -> Iterator[Node]:
        """Yield the nodes in order; the current one may be removed during iteration."""
        node = self.first
        last = self.returns
        while node is not last:
            behind = node.next
            yield node
            node = behind

    def __reversed__(self) -> Iterator[Node]:
        node = self.returns.prev
        while node is not None:
            before = node.prev
            yield node
            node = before

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def append(
        self, kind: str, inputs: Iterable[Value | None], attributes: Any, types: Iterable[Type], location: int = -1
    ) -> Node:
        """Append a new node and return it."""
        return Node(kind, inputs, attributes, types, location).insert_before(self.returns)

    def clear(self) -> None:
        """Remove all nodes."""
        self.returns.set_inputs(())
        for node in reversed(self):
            node.destroy()

    def copy_into(
        self,
        target: Block,
        values: dict[Value, Value | None],
        outside: Callable[[Value], Value | None] | None = None,
        before: Node | None = None,
        location: Callable[[int], int] | None = None,
    ) -> list[Value | None]:
        """Copy the nodes into another block.

        Arguments:
            target: the block to copy into.
            values: the replacement of each input in the target; the replacements of inner values are added.
            outside: the replacements of values from outside the block; by default the values themselves.
            before: the node before which to insert the copies; by default the end of the block.
            location: a function from the locations of the nodes to those of the copies.

        Returns:
            The replacements of the outputs.
        """
        before = target.returns if before is None else before

        def taken(value: Value | None) -> Value | None:
            if value is None:
                return None
            if value not in values:
                values[value] = value if outside is None else outside(value)
            return values[value]

        for node in self:
            at = node.location if location is None else location(node.location)
            inputs = [taken(value) for value in node.inputs]
            copied = type(node)(node.kind, inputs, node.attributes, [v.type for v in node.outputs], at)
            copied.insert_before(before)
            for inner, other in zip(node.blocks, copied.blocks, strict=True):
                for value in inner.inputs:
                    values[value] = other.add_input(value.type)
                other.set_outputs(inner.copy_into(other, values, outside, None, location))
            values.update(zip(node.outputs, copied.outputs, strict=True))
        return [taken(value) for value in self.outputs]


class Graph:
    """A program as a graph.

    Attributes:
        block: its nodes.
        locations: the source lines of the nodes, each a file and a line.
        names: the names of inputs, for printing.
        signature: the meaning of inputs and outputs for the caller; None if unknown.
    """

    __slots__ = ("block", "locations", "names", "signature")

    block: Block
    locations: list[tuple[str, int]]
    names: dict[Value, str]
    signature: Signature | None

    def __init__(self, locations: list[tuple[str, int]] | None = None) -> None:
        self.block = Block()
        self.locations = [] if locations is None else locations
        self.names = {}
        self.signature = None

    @property
    def inputs(self) -> tuple[Value, ...]:
        """The inputs of the graph."""
        return self.block.inputs

    @property
    def outputs(self) -> tuple[Value | None, ...]:
        """The outputs of the graph."""
        return self.block.outputs

    def add_input(self, type: Type, name: str | None = None) -> Value:
        """Add an input."""
        value = self.block.add_input(type)
        if name is not None:
            self.names[value] = name
        return value

    def nodes(self) -> Iterator[Node]:
        """Yield all nodes; nested nodes follow the node that contains them."""
        yield from nodes_of(self.block)

    def where(self, node: Node) -> str:
        """Return the source line of a node as `file:line`."""
        if not 0 <= node.location < len(self.locations):
            return "an unknown line"
        return "{}:{}".format(*self.locations[node.location])

    def clone(self) -> Graph:
        """Return a copy of the graph."""
        copied = Graph(list(self.locations))
        values: dict[Value, Value | None] = {}
        for value in self.inputs:
            values[value] = copied.add_input(value.type, self.names.get(value))
        copied.block.set_outputs(self.block.copy_into(copied.block, values))
        copied.signature = self.signature
        return copied

    def __len__(self) -> int:
        return sum(1 for _ in self.nodes())

    if TYPE_CHECKING:  # attached by text.py and drawing.py

        def text(self, *, locations: bool = True, objects: list[Any] | None = None) -> str: ...
        def to_dot(self) -> str: ...

    def __repr__(self) -> str:
        return f"<graph of {len(self)} nodes, {len(self.inputs)} inputs, {len(self.outputs)} outputs>"


def nodes_of(block: Block) -> Iterator[Node]:
    """Yield all nodes of a block; nested nodes follow the node that contains them."""
    for node in block:
        yield node
        for inner in node.blocks:
            yield from nodes_of(inner)
