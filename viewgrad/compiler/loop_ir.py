"""The loop IR: blocks of steps and loops, with integers that are polynomials in the loop variables.

A step computes a value from values, reads a window of a base, or writes one. Dimensions are described by labels. A step
runs over the product of ranges, one for each label. Each operand and the result have a label for each dimension (-1: a
dimension of length 1, which does not take part). Labels that the result does not have are summed over. So an
elementwise operator, a sum and a matrix product are one kind of step.

A step computes an expression, in which `{0}`, `{1}`, ... stand for the operands.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from typing import Any

import attrs
import numpy as np

from .callbacks import Operation
from .element_types import FLOAT, char_of, widened
from .index_expr import Integer

Labels = tuple[int, ...]
Sizes = tuple[Integer, ...]


@attrs.define(eq=False)
class Buffer:
    """A buffer.

    Arguments:
        name: its name in the source.
        size: the number of its elements.
        dtype: the dtype of its elements.
        kind: "input" (its content is passed in), "made" (the program makes it), or "register" (a variable; with a size,
            a buffer for one).
        initial: its initial content: an array of its size, or one number; for an input, the number of the input.
        is_gradient: whether it holds the gradient of another buffer.
    """

    name: str
    size: int
    dtype: np.dtype[Any]
    kind: str
    initial: Any = 0.0
    is_gradient: bool = False


@attrs.frozen(eq=False)
class Number:
    """A constant number."""

    value: Any
    labels: Labels = ()


@attrs.frozen(eq=False)
class Table:
    """A number that changes with each execution of the block: the values of all executions, in order."""

    name: str
    values: np.ndarray[Any, Any]
    block: Block
    labels: Labels = ()


@attrs.frozen(eq=False)
class Operand:
    """The value of another step.

    Arguments:
        step: the step, before this one in its block, or in a block around it.
        labels: along which of the labels of the step that takes it each of its dimensions runs.
    """

    step: Step
    labels: Labels = ()


Value = Number | Table | Operand


def dtype_of(value: Value) -> np.dtype[Any]:
    """Return the dtype of a value."""
    if isinstance(value, Operand):
        return value.step.dtype  # type: ignore[attr-defined,no-any-return]
    return np.dtype(char_of(value.value)) if isinstance(value, Number) else value.values.dtype


@attrs.define(eq=False)
class Step:
    """A step: an operation that computes, reads, writes or checks a value.

    Arguments:
        name: the name of its value in the source.
        sizes: the ranges of its labels.
        location: the number of the line that it comes from.
    """

    name: str
    sizes: Sizes
    location: int

    @property
    def operands(self) -> tuple[Value, ...]:
        """The operands."""
        return ()


@attrs.define(eq=False)
class Compute(Step):
    """A value computed from others.

    Arguments:
        operator: the name of the operator, or "" if it is a part of a gradient.
        expression: the value that it computes.
        operands: its operands.
        out: the labels of the result's dimensions.
        dtype: the dtype of the result.
        slope: the gradient of an element of the first operand, if the value is the result of a reduction, which is the
            second operand; None for other operators.
    """

    operator: str
    expression: str
    operands: tuple[Value, ...]
    out: Labels
    dtype: np.dtype[Any] = FLOAT
    slope: str | None = None

    @property
    def summed(self) -> Labels:
        """The labels that are summed over."""
        return tuple([label for label in range(len(self.sizes)) if label not in self.out])


@attrs.define(eq=False)
class Call(Step):
    """A call of an operator without a kernel.

    Arguments:
        operation: the operator.
        operands: its operands, each a whole array.
        of: the number of the operand whose gradient it gives, from that of the result and the operands; None if it
            gives the result.
    """

    operation: Operation
    operands: tuple[Value, ...]
    of: int | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the result."""
        return self.operation.shape if self.of is None else self.operation.operands[self.of][0]  # type: ignore[index]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the result."""
        return widened(self.operation.dtype) if self.of is None else FLOAT

    @property
    def kinds(self) -> list[tuple[tuple[int, ...], np.dtype[Any]]]:
        """The shapes and dtypes of the operands."""
        shapes = [kind[0] for kind in self.operation.operands if kind is not None]
        if self.of is not None:
            shapes.insert(0, self.operation.shape)
        return [(shape, dtype_of(value)) for shape, value in zip(shapes, self.operands)]


@attrs.frozen
class Positions:
    """The elements that an index by arrays picks from a base, counted from an offset.

    Arguments:
        name: the name of the table in the source.
        array: the numbers of the elements, in row order, of each array that is an index here, one after the other.
            Strides and labels lead into one of these.
        start: the start, in the table, of the index array of an execution.
        count: the number of elements of each.
    """

    name: str
    array: np.ndarray[Any, Any] = attrs.field(eq=False)
    start: Integer
    count: int

    @property
    def are_distinct(self) -> bool:
        """Return whether no element is selected twice."""
        rows = np.sort(self.array.reshape(-1, self.count or 1), axis=1)
        return bool((rows[:, 1:] != rows[:, :-1]).all())


@attrs.frozen(eq=False)
class Move:
    """An integer that moves a window, such as a computed index.

    Arguments:
        value: the integer, which is in range. Its labels are those of the window.
        stride: the number of elements by which 1 moves the window.
    """

    value: Operand
    stride: Integer


@attrs.define(eq=False)
class Access(Step):
    """A read or a write of a window of a buffer; the labels are the dimensions of the window.

    Arguments:
        base, strides, offset: the buffer, and the window of it.
        positions: the elements that an index by arrays picks.
        moves: the integers that move the window.
    """

    base: Buffer
    strides: Sizes
    offset: Integer
    positions: Positions | None = attrs.field(default=None, kw_only=True)
    moves: tuple[Move, ...] = attrs.field(default=(), kw_only=True)

    @property
    def is_picked(self) -> bool:
        """Return whether its window is unknown at compile time, because the index has arrays or computed integers."""
        return self.positions is not None or bool(self.moves)


@attrs.define(eq=False)
class Read(Access):
    """A read of a window.

    Arguments:
        memory: a read of the memory that also holds the value, if it is carried in a variable.
    """

    memory: Read | None = attrs.field(default=None, kw_only=True)

    @property
    def operands(self) -> tuple[Value, ...]:
        """The integers that move its window."""
        return tuple([move.value for move in self.moves])

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of its elements."""
        return self.base.dtype


@attrs.define(eq=False)
class Write(Access):
    """A write of a value to a window.

    Arguments:
        unrecorded: whether the write is not part of the history of the buffer, so that gradients pass through it.
    """

    value: Value
    unrecorded: bool = attrs.field(default=False, kw_only=True)

    @property
    def operands(self) -> tuple[Value, ...]:
        """The value it writes, and the integers that it is moved by."""
        return (self.value, *[move.value for move in self.moves]) if self.moves else (self.value,)


@attrs.define(eq=False)
class Add(Write):
    """A value added to a window of a base; along labels that have stride 0 it is summed."""


@attrs.define(eq=False)
class Check(Step):
    """A guard: control flow depends on the value, so the program is valid only if it is unchanged."""

    value: Value
    expected: Value

    @property
    def operands(self) -> tuple[Value, ...]:
        """The value, and the earlier one."""
        return (self.value, self.expected)


@attrs.define(eq=False)
class Push(Step):
    """A value kept for the backward program, once for each execution of its block."""

    value: Operand
    tape: str
    dtype: np.dtype[Any] = FLOAT

    @property
    def operands(self) -> tuple[Value, ...]:
        """The value it keeps."""
        return (self.value,)


@attrs.define(eq=False)
class Pop(Step):
    """The value that was kept in the same execution of the block."""

    tape: str
    dtype: np.dtype[Any] = FLOAT


@attrs.define(eq=False)
class ForLoop:
    """A loop.

    Arguments:
        variable: the name of its variable, which runs from 0.
        count: the number of iterations.
        body: the items of an iteration.
        down: whether it runs down to 0.
    """

    variable: str
    count: Integer
    body: Block
    down: bool = False


@attrs.define(eq=False)
class IrregularLoop:
    """A loop each of whose iterations runs one of several bodies.

    Arguments:
        variable: the name of its variable, which runs from 0.
        kinds: for each iteration, the number of the body.
        table: the name of `kinds` in the source.
        bodies: the bodies.
        down: whether it runs down to 0.
    """

    variable: str
    kinds: np.ndarray[Any, Any]
    table: str
    bodies: list[Block]
    down: bool = False


Item = Step | ForLoop | IrregularLoop


@attrs.define(eq=False)
class Block:
    """A sequence of steps and loops.

    Arguments:
        items: these.
        name: the name of the counter of its executions.
        tables: integers that are others in each execution, by the names of the tables.
    """

    items: list[Item]
    name: str
    tables: dict[str, np.ndarray[Any, Any]] = attrs.Factory(dict)


@attrs.define(eq=False)
class Program:
    """A program.

    Arguments:
        block: its steps and loops.
        bases: the buffers, by name.
        results: windows of buffers at the end.
        locations: the source lines that its steps come from.
        kept: the names of the buffers, besides those of results, that are read after it has run.
        unset: the names of the buffers that need no initial values, because each element is written first.
        analysis: its access analysis; see `analysis_of`. A pass that adds or moves steps resets it.
    """

    block: Block
    bases: dict[str, Buffer]
    results: list[Any]
    locations: list[tuple[str, int]] = attrs.Factory(list)
    kept: Set[str] = frozenset()
    unset: set[str] = attrs.Factory(set)
    analysis: Any = None


def items_of(block: Block) -> Iterator[tuple[Block, Item]]:
    """Yield all steps and loops, each with the block that contains it."""
    for item in block.items:
        yield block, item
        for inner in bodies_of(item):
            yield from items_of(inner)


def bodies_of(item: Item) -> list[Block]:
    """Return the blocks inside of a step or loop."""
    if isinstance(item, ForLoop):
        return [item.body]
    return item.bodies if isinstance(item, IrregularLoop) else []


def steps_of(block: Block) -> Iterator[tuple[Block, Step]]:
    """Yield all steps, each with the block that contains it."""
    for owner, item in items_of(block):
        if isinstance(item, Step):
            yield owner, item

