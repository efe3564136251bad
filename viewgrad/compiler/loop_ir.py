"""The loop IR: blocks of steps and loops, with integers that are polynomials in the loop variables.

A step computes a value from values, reads a window of a base, or writes one. Dimensions are described by labels. A step
runs over the product of ranges, one for each label. Each operand and the result have a label for each dimension; -1
marks a dimension of length 1, which is broadcast. Labels that the result does not have are summed over. Elementwise
operators, sums and matrix products are therefore one kind of step.

A step computes an expression in which `{0}`, `{1}`, ... represent the operands.
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
        name: the name in generated source.
        size: the number of its elements.
        dtype: the dtype of its elements.
        kind: "input" (its content is passed in), "made" (created by the program), or "register" (a variable; with a
            size, a buffer for one).
        initial: its initial content: an array of its size, or one number; for an input, the number of the input.
        is_gradient: whether it contains the gradient of another buffer.
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
    """A number that changes with each execution of the block, as the values of all executions in order."""

    name: str
    values: np.ndarray[Any, Any]
    block: Block
    labels: Labels = ()


@attrs.frozen(eq=False)
class Operand:
    """The value of another step.

    Arguments:
        step: the step, which precedes this one in its block or in an enclosing block.
        labels: for each dimension of the value, the corresponding label of the step that uses it.
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
        name: the name of its value in generated source.
        sizes: the ranges of its labels.
        location: the number of its source line.
    """

    name: str
    sizes: Sizes
    location: int

    @property
    def operands(self) -> tuple[Value, ...]:
        """The operands of the step."""
        return ()


@attrs.define(eq=False)
class Compute(Step):
    """A value computed from others.

    Arguments:
        operator: the name of the operator, or "" if the step is part of a gradient.
        expression: the expression for the value.
        operands: its operands.
        out: the labels of the result's dimensions.
        dtype: the dtype of the result.
        slope: the gradient of an element of the first operand if the value is the result of a reduction, which is then
            the second operand; None otherwise.
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
        operands: its operands, which are whole arrays.
        of: the number of the operand whose gradient it computes from that of the result and the operands; None if it
            computes the result.
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
    """The elements that an index by arrays selects from a base, relative to an offset.

    Arguments:
        name: the name of the table in generated source.
        array: the element numbers of all index arrays, each in row-major order, one after another. Strides and labels
            index one of these.
        start: the start, in the table, of the index array of an execution.
        count: the number of elements of each index array.
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
        value: the integer, which is in range and has the labels of the window.
        stride: the number of elements by which a unit moves the window.
    """

    value: Operand
    stride: Integer


@attrs.define(eq=False)
class Access(Step):
    """A read or a write of a window of a buffer, whose labels are the dimensions of the window.

    Arguments:
        base, strides, offset: the buffer and the window.
        positions: the elements selected by an index by arrays, if any.
        moves: the integers that move the window.
    """

    base: Buffer
    strides: Sizes
    offset: Integer
    positions: Positions | None = attrs.field(default=None, kw_only=True)
    moves: tuple[Move, ...] = attrs.field(default=(), kw_only=True)

    @property
    def is_picked(self) -> bool:
        """Return whether the window is unknown at compile time, because the index has arrays or computed integers."""
        return self.positions is not None or bool(self.moves)


@attrs.define(eq=False)
class Read(Access):
    """A read of a window.

    Arguments:
        memory: a read of the memory that also contains the value, if it is carried in a variable.
    """

    memory: Read | None = attrs.field(default=None, kw_only=True)

    @property
    def operands(self) -> tuple[Value, ...]:
        """The integers that move the window."""
        return tuple([move.value for move in self.moves])

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the elements."""
        return self.base.dtype


@attrs.define(eq=False)
class Write(Access):
    """A write of a value to a window.

    Arguments:
        unrecorded: whether the write is not part of the history of the buffer, so that gradients bypass it.
    """

    value: Value
    unrecorded: bool = attrs.field(default=False, kw_only=True)

    @property
    def operands(self) -> tuple[Value, ...]:
        """The written value, and the integers that move the window."""
        return (self.value, *[move.value for move in self.moves]) if self.moves else (self.value,)


@attrs.define(eq=False)
class Add(Write):
    """An addition of a value to a window of a base; the value is summed along labels with stride 0."""


@attrs.define(eq=False)
class Check(Step):
    """A guard: the program is valid only if the value, on which control flow depends, is unchanged."""

    value: Value
    expected: Value

    @property
    def operands(self) -> tuple[Value, ...]:
        """The value, and its previous value."""
        return (self.value, self.expected)


@attrs.define(eq=False)
class Push(Step):
    """A value saved for the backward program, once for each execution of its block."""

    value: Operand
    tape: str
    dtype: np.dtype[Any] = FLOAT

    @property
    def operands(self) -> tuple[Value, ...]:
        """The saved value."""
        return (self.value,)


@attrs.define(eq=False)
class Pop(Step):
    """The value saved in the same execution of the block."""

    tape: str
    dtype: np.dtype[Any] = FLOAT


@attrs.define(eq=False)
class ForLoop:
    """A loop.

    Arguments:
        variable: the name of the loop variable, which starts at 0.
        count: the number of iterations.
        body: the items of an iteration.
        down: whether the loop runs backwards.
    """

    variable: str
    count: Integer
    body: Block
    down: bool = False


@attrs.define(eq=False)
class IrregularLoop:
    """A loop in which each iteration runs one of several bodies.

    Arguments:
        variable: the name of the loop variable, which starts at 0.
        kinds: for each iteration, the number of the body.
        table: the name of `kinds` in generated source.
        bodies: the bodies.
        down: whether the loop runs backwards.
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
        items: the steps and loops.
        name: the name of the counter of its executions.
        tables: integers that differ between executions, by the names of their tables.
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
        results: the windows of buffers that are its results.
        locations: the source lines of its steps.
        kept: the names of the buffers, other than those of results, that are read after the program has run.
        unset: the names of the buffers that need no initial values, because each element is written before it is read.
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
    """Return the blocks inside a step or loop."""
    if isinstance(item, ForLoop):
        return [item.body]
    return item.bodies if isinstance(item, IrregularLoop) else []


def steps_of(block: Block) -> Iterator[tuple[Block, Step]]:
    """Yield all steps, each with the block that contains it."""
    for owner, item in items_of(block):
        if isinstance(item, Step):
            yield owner, item

