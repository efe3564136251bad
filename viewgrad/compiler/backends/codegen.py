"""Code generation: the blocks and loops of a program as Python source, and the schedule of its loop nests.

Steps of a block with the same ranges become one loop nest, if reads and writes of each element keep their order. Values
that are used outside their nest are stored in a buffer. `numba_codegen.py` prints nests as loops over elements,
`numpy_codegen.py` prints each step that has dimensions as a NumPy call.
"""

from __future__ import annotations

import abc
import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import attrs
import numpy as np

from ..access_analysis import AccessAnalysis
from ..arena import Arena
from ..build_ir import out_sizes
from ..callbacks import backward_of, forward_of
from ..element_types import FLOAT, kind_of, literal
from ..index_expr import ONE, Integer, row_strides_of
from ..loop_ir import (
    Access,
    Add,
    Block,
    Buffer,
    Call,
    Check,
    Compute,
    ForLoop,
    IrregularLoop,
    Item,
    Number,
    Operand,
    Pop,
    Program,
    Push,
    Read,
    Step,
    Table,
    Value,
    Write,
    bodies_of,
    steps_of,
)

EXTREMA: Final = {"greatest": ("(-inf)", "maximum"), "least": ("inf", "minimum")}
SCRATCH: Final = "scratch"  # the name of the parameter for the scratch memory
RAISED: Final = -2  # a kernel returns this after an exception


@attrs.define(eq=False)
class Kernel:
    """The generated source of a program.

    Arguments:
        source: a function `kernel(...)`, which returns -1, `RAISED`, or the number of the line where a check failed.
        parameters: the names of its parameters.
        arrays: the buffers among the parameters that are arrays; others may be lists.
        tables: the arrays among these that are constants.
        tapes: the parameters that are tapes.
        functions: the functions that it calls, except those of the runtime, by name.
        dtypes: the dtypes of the elements of each parameter.
        scratch: the number of elements in its own buffers, which are part of the last parameter.
        quiet: whether NumPy's floating-point warnings are suppressed: in derivatives, and for unused numbers.
    """

    source: str
    parameters: list[str]
    arrays: Any
    tables: dict[str, np.ndarray[Any, Any]]
    tapes: list[str]
    functions: dict[str, Callable[..., Any]]
    dtypes: dict[str, np.dtype[Any]]
    scratch: int = 0
    quiet: bool = False


@attrs.define(eq=False)
class LoopNest:
    """Steps that are executed in one loop nest.

    Arguments:
        sizes: the ranges of its loops.
        steps: the steps for each element.
        after: scalar steps that run after the nest although they precede some of its steps.
    """

    sizes: tuple[Integer, ...]
    steps: list[Step]
    after: list[Step] = attrs.Factory(list)


class CodeWriter(abc.ABC):
    """Generates the source of a program as one function: its blocks and loops, and the schedule of its loop nests.

    Subclasses print calls, steps with dimensions, and loop nests.
    """

    scratch = 0
    quiet = False
    arrays: Any = frozenset()  # the bases that are arrays rather than variables

    def __init__(self, program: Program, analysis: AccessAnalysis, arenas: Mapping[str, Arena], down: bool) -> None:
        self.program = program
        self.analysis = analysis
        self.arenas = arenas
        self.down = down
        self.lines: list[str] = []
        self.tables: dict[str, Any] = {}
        self.functions: dict[str, Callable[..., Any]] = {}
        self.tapes: dict[str, np.dtype[Any]] = {}
        self.buffers: dict[str, tuple[int, str]] = {}  # their sizes, and the lines that follow their allocation
        self.fixed: dict[str, str] = {}  # the lines that run once at the start, by the name that they define
        self.owner = {step: block for block, step in steps_of(program.block)}
        self.users: dict[Step, list[Step]] = {}
        for step in self.owner:
            for value in step.operands:
                if isinstance(value, Operand):
                    self.users.setdefault(value.step, []).append(step)
        self.nest_of: dict[Step, LoopNest] = {}
        self.inlined: dict[Step, int] = {}
        self.counted = {block for block in self._blocks(program.block) if self._is_counted(block)}
        self.positions: dict[Block, dict[Item, int]] = {}

    def kernel(self) -> Kernel:
        """Return the source of the kernel and its parameters."""
        self._block(self.program.block, "    ")
        body = self.lines
        head = []
        used = "\n".join([*body, *self.fixed])
        names = set(re.findall(r"[A-Za-z_]\w*", used))
        parameters = []
        for name, base in self.program.bases.items():
            if self.is_variable(base):
                if name in names:
                    head.append(f"    {name} = {kind_of(base.dtype).zero}")
            elif base.kind == "register":
                if name in names:
                    made = f"zeros({base.size}{kind_of(base.dtype).made})"
                    head.append(f"    {name} = {'array_' * (name in self.arrays)}{made}")
            elif name in names:
                parameters.append(name)
        head += [f"    {name} = empty({size}{of})" for name, (size, of) in self.buffers.items()]
        for block in self._blocks(self.program.block):
            if block in self.counted:
                head.append(f"    {block.name} = {self._count(block) if self.down else 0}")
                for item in block.items:
                    if isinstance(item, (Push, Pop)) and any(n.value is None for n in item.sizes):
                        total = self.analysis.elements_named(block.name, item.sizes) if self.down else 0
                        head.append(f"    o{item.tape} = {total}")
        parameters += [*(table for table in self.tables if table in names), *self.tapes]
        head += [f"    {name} = {value}" for value, name in self.fixed.items()]
        head = self._parts(parameters) + head
        parameters += [SCRATCH] * (self.scratch > 0)
        source = "\n".join([f"def kernel({', '.join(parameters)}):", *head, *body, "    return -1", ""])
        dtypes = {name: self._dtype(name) for name in parameters}
        return Kernel(
            source, parameters, self.arrays, self.tables, list(self.tapes), self.functions, dtypes, self.scratch,
            self.quiet,
        )

    def _parts(self, parameters: list[str]) -> list[str]:
        """Return the lines that take buffers from their arenas, which become parameters."""
        lines = []
        for name in list(parameters):
            arena = self.arenas.get(name)
            if arena is not None:
                parameters.remove(name)
                if arena.name not in parameters:
                    parameters.append(arena.name)
                start, stop = arena.parts[name]
                lines.append(f"    {name} = {arena.name}[{start}:{stop}]")
        return lines

    def _dtype(self, name: str) -> np.dtype[Any]:
        base = self.program.bases.get(name)
        if base is not None:
            return base.dtype
        if name in self.tables:
            return self.tables[name].dtype  # type: ignore[no-any-return]
        return self.tapes.get(name, FLOAT)

    # -- blocks --------------------------------------------------------------------------------------------------------

    def _blocks(self, block: Block) -> list[Block]:
        found = [block]
        for item in block.items:
            for inner in bodies_of(item):
                found += self._blocks(inner)
        return found

    def _is_counted(self, block: Block) -> bool:
        if block.tables:
            return True
        for item in block.items:
            if isinstance(item, (Push, Pop)):
                return True
            if isinstance(item, Step) and any(isinstance(value, Table) for value in item.operands):
                return True
        return False

    def _count(self, block: Block) -> int:
        return self.analysis.count_of(block.name)

    def _block(self, block: Block, indent: str) -> None:
        before = len(self.lines)
        if block in self.counted and self.down:
            self.lines.append(f"{indent}{block.name} -= 1")
            self.lines += [f"{indent}{name} -= {size}" for name, size in self._moves(block)]
        nest: LoopNest | None = None
        for item in block.items:
            if isinstance(item, Call):
                self._nest(nest, indent)
                nest = None
                self.lines += [indent + line for line in self._called(item)]
                continue
            if isinstance(item, Step) and item.sizes:
                if self._dimensional(block, item, indent):
                    continue
                if type(item) is Read and self._is_inlined(block, item):
                    continue
                nest = self._nest_with(nest, item, indent)
                continue
            if nest is not None and not (isinstance(item, Step) and self._passes(nest, item)):
                if isinstance(item, (Compute, Read, Write)):
                    nest.after.append(item)
                    continue
                self._nest(nest, indent)
                nest = None
            if isinstance(item, ForLoop):
                self._for_loop(item, indent)
            elif isinstance(item, IrregularLoop):
                self._choose(item, indent)
            else:
                self._scalar(block, item, indent)
        self._nest(nest, indent)
        if block in self.counted and not self.down:
            self.lines += [f"{indent}{name} += {size}" for name, size in self._moves(block)]
            self.lines.append(f"{indent}{block.name} += 1")
        if len(self.lines) == before:
            self.lines.append(f"{indent}pass")

    def _for_loop(self, loop: ForLoop, indent: str) -> None:
        span = f"range({loop.count - ONE}, -1, -1)" if self.down else f"range({loop.count})"
        self.lines.append(f"{indent}for {loop.variable} in {span}:")
        self._block(loop.body, indent + "    ")

    def _nest_with(self, nest: LoopNest | None, step: Step, indent: str) -> LoopNest:
        """Return the loop nest for a step: the current one if the step can join it, otherwise a new one."""
        if nest is not None and self._joins(nest, step) and self._is_free(step, nest.after):
            nest.steps.append(step)
        else:
            self._nest(nest, indent)
            nest = LoopNest(step.sizes, [step])
        self.nest_of[step] = nest
        return nest

    def _callable(self, step: Call) -> Callable[..., Any]:
        return forward_of(step.operation) if step.of is None else backward_of(step.operation, step.of)

    def _function(self, step: Call, function: Callable[..., Any]) -> str:
        """Return the name by which the source calls a function."""
        name = re.sub(r"\W", "_", f"call_{step.operation.name}{len(self.functions)}")
        self.functions[name] = function
        return name

    @abc.abstractmethod
    def _called(self, step: Call) -> list[str]:
        """Return the lines of a call of an operator without a kernel."""

    @abc.abstractmethod
    def _dimensional(self, block: Block, step: Step, indent: str) -> bool:
        """Generate a step with dimensions on its own; return False if it becomes part of a loop nest."""

    @abc.abstractmethod
    def _loops(self, block: Block, nest: LoopNest, indent: str) -> None:
        """Generate a loop nest."""

    def _choose(self, item: IrregularLoop, indent: str) -> None:
        """Generate a loop whose iterations run one of several bodies."""
        self.tables[item.table] = item.kinds
        count = len(item.kinds)
        span = f"range({count - 1}, -1, -1)" if self.down else f"range({count})"
        self.lines.append(f"{indent}for {item.variable} in {span}:")
        self.lines.append(f"{indent}    kind = {item.table}[{item.variable}]")
        for number, body in enumerate(item.bodies):
            self.lines.append(f"{indent}    {'el' if number else ''}if kind == {number}:")
            for table, values in body.tables.items():
                self.tables[table] = values
            self._block(body, indent + "        ")

    def _passes(self, nest: LoopNest, step: Step) -> bool:
        """Return whether a 0-d step may run before a nest that was begun before it."""
        if isinstance(step, (Check, Push, Pop)):
            return False
        return self._is_free(step, nest.steps) and self._is_free(step, nest.after)

    def _is_free(self, step: Step, others: Sequence[Step]) -> bool:
        """Return whether a step may run before others that precede it."""
        for other in others:
            if any(isinstance(value, Operand) and value.step is other for value in step.operands):
                return False
            if any(other in moved_by(value) for value in step.operands):
                return False
            written, read = self._written_buffers(other), self._read_bases(other)
            if any(base in written for base in [*self._written_buffers(step), *self._read_bases(step)]):
                return False
            if any(base in read for base in self._written_buffers(step)):
                return False
        return True

    def _written_buffers(self, step: Step) -> list[Buffer]:
        return [step.base] if isinstance(step, Write) else []

    def _read_bases(self, step: Step) -> list[Buffer]:
        reads = [value.step for value in step.operands if isinstance(value, Operand) and type(value.step) is Read]
        return [read.base for read in [*reads, step] if type(read) is Read]

    # -- steps without dimensions --------------------------------------------------------------------------------------

    def _scalar(self, block: Block, step: Step, indent: str) -> None:
        line = self._statement(block, step, {})
        self.lines.append(indent + line)

    def _statement(self, block: Block, step: Step, at: dict[int, str]) -> str:
        """Return a step as a statement, with variables `at` for its labels."""
        if isinstance(step, Compute):
            expression = self._expression(step, at)
            if step.out and not step.sizes:  # from single numbers, but the result is an array with lengths of 1
                return f"{self._buffered(step, ['0'] * len(step.out))} = {expression}"
            return f"{step.name} = {expression}"
        if isinstance(step, Read):
            return f"{step.name} = {self._accessed(step, at)}"
        if isinstance(step, Write):
            sign = "+=" if type(step) is Add else "="
            return f"{self._accessed(step, at)} {sign} {self._value(step.value, at)}"
        if isinstance(step, Push):
            return f"{self._tape(step.tape, block, step, at)} = {self._value(step.value, at)}"
        if isinstance(step, Pop):
            return f"{step.name} = {self._tape(step.tape, block, step, at)}"
        assert isinstance(step, Check)
        return f"if {self._value(step.value, at)} != {self._value(step.expected, at)}: return {max(step.location, 0)}"

    def _expression(self, step: Compute, at: dict[int, str]) -> str:
        return step.expression.format(*[self._value(value, at) for value in step.operands])

    def _value(self, value: Value, at: dict[int, str]) -> str:
        if isinstance(value, Number):
            return literal(value.value)
        if isinstance(value, Table):
            self.tables[value.name] = value.values
            owner = value.block
            return f"{value.name}[{owner.name}]"
        step = value.step
        dims = out_sizes(step)
        if not dims:
            return step.name
        positions = ["0" if label < 0 else at[label] for label in value.labels]
        if step in self.inlined:
            assert isinstance(step, Read)
            return self._element(step, positions)
        if step in self.current and value.labels == tuple(range(len(dims))):
            return step.name
        return self._buffered(step, positions)

    def _buffered(self, step: Step, positions: Sequence[str]) -> str:
        """Return the element of the buffer in which a step's value is stored."""
        name = f"b{step.name}"
        dims = out_sizes(step)
        if name not in self.buffers:
            size = self.analysis.largest_named(self.owner[step].name, dims)
            self.buffers[name] = size, kind_of(step.dtype).made  # type: ignore[attr-defined]
        return f"{name}[{flat(positions, row_strides_of(dims))}]"

    def is_variable(self, base: Buffer) -> bool:
        """Return whether a single-element base is a variable of the source, rather than an array."""
        return base.kind == "register" and base.size == 1 and base.name not in self.arrays

    def _element(self, step: Access, positions: Sequence[str]) -> str:
        base = step.base
        if self.is_variable(base):
            return base.name
        if step.positions is not None:
            self.tables[step.positions.name] = step.positions.array
            number = f"{step.positions.name}[{flat(positions, step.strides, step.positions.start)}]"
            return f"{base.name}[{plus(step.offset)}{number}]"
        return f"{base.name}[{flat(positions, step.strides, step.offset)}{self._dynamic_offset(step, positions)}]"

    def _dynamic_offset(self, step: Access, positions: Sequence[str]) -> str:
        """Return the terms of the offset of a window that depend on computed integers."""
        at = dict(enumerate(positions))
        return "".join([f" + {self._value(move.value, at)}*{parenthesised(move.stride)}" for move in step.moves])

    def _accessed(self, step: Access, at: dict[int, str]) -> str:
        base = step.base
        if self.is_variable(base):
            return base.name
        return self._element(step, [at[label] for label in range(len(step.sizes))])

    def _use_tape(self, step: Push | Pop) -> None:
        """Make the tape of a step a parameter."""
        self.tapes[step.tape] = step.dtype

    def _tape(self, tape: str, block: Block, step: Push | Pop, at: dict[int, str]) -> str:
        self._use_tape(step)
        if not step.sizes:
            return f"{tape}[{block.name}]"
        size = ONE
        for n in step.sizes:
            size = size * n
        within = flat([at[label] for label in range(len(step.sizes))], row_strides_of(step.sizes))
        if size.value is None:
            return f"{tape}[o{tape} + {within}]"
        return f"{tape}[{block.name} * {parenthesised(size)} + {within}]"

    def _moves(self, block: Block) -> list[tuple[str, Integer]]:
        """Return the tapes of a block whose entries differ in size, each with its position and the size."""
        found = []
        for item in block.items:
            if isinstance(item, (Push, Pop)):
                size = ONE
                for n in item.sizes:
                    size = size * n
                if size.value is None:
                    found.append((f"o{item.tape}", size))
        return found

    # -- nests ---------------------------------------------------------------------------------------------------------

    current: Any = frozenset()

    def _is_inlined(self, block: Block, read: Read) -> bool:
        """Return whether a window can be read where it is used, because it is not written in between."""
        users = self.users.get(read, [])
        if any(isinstance(user, Call) for user in users):
            return False
        at = self._positions(block)
        last = max([self._position_in(block, user) for user in users], default=-1)
        for item in block.items[at[read] + 1 : last]:
            for step in steps_in(item):
                if isinstance(step, Write) and step.base is read.base and not self._are_disjoint(read, step):
                    return False
        final = block.items[last] if last >= 0 else None
        for step in steps_in(final) if final is not None else ():
            if isinstance(step, Write) and step.base is read.base and not (step is final and self._fits(read, step)):
                return False
        self.inlined[read] = 1
        return True

    def _fits(self, read: Read, user: Write) -> bool:
        """Return whether a read and a write can run element by element: all reads of an element precede its write."""
        return self._is_same(user, read, user, user) or self._are_disjoint(read, user)

    def _positions(self, block: Block) -> dict[Any, int]:
        found = self.positions.get(block)
        if found is None:
            found = self.positions[block] = {item: i for i, item in enumerate(block.items)}
        return found

    def _position_in(self, block: Block, step: Step) -> int:
        """Return the position of a step, or of the loop that contains it, in a block."""
        positions = self._positions(block)
        if step in positions:
            return positions[step]
        for i, item in enumerate(block.items):
            if not isinstance(item, Step) and any(inner is step for inner in steps_in(item)):
                return i
        raise AssertionError(step)

    def _joins(self, nest: LoopNest, step: Step) -> bool:
        """Return whether a step can be part of a nest."""
        if step.sizes != nest.sizes or isinstance(step, Check):
            return False
        identity = tuple(range(len(step.sizes)))
        for value in step.operands:
            if isinstance(value, Operand) and value.step in nest.steps:
                inner = value.step
                if value.labels != identity or (isinstance(inner, Compute) and inner.out != identity):
                    return False
            if any(moved in nest.steps for moved in moved_by(value)):  # its elements may be needed in a different order
                return False
        mine = self._windows(step)
        for other in nest.steps:
            for there, writes_there in self._windows(other):
                for here, writes in mine:
                    if here.base is not there.base or not (writes or writes_there):
                        continue
                    if type(here) is Add and type(there) is Add:
                        continue
                    if not self._is_same(step, here, other, there) and not self._are_disjoint(here, there):
                        return False
        return True

    def _is_same(self, step: Step, here: Access, other: Step, there: Access) -> bool:
        """Return whether two steps access the same window, each element at the same position of the nest."""
        same = here.strides == there.strides and here.offset == there.offset and here.sizes == there.sizes
        same = same and not here.is_picked and not there.is_picked
        return same and self._labels(step, here) == self._labels(other, there) == tuple(range(len(step.sizes)))

    def _labels(self, step: Step, window: Access) -> tuple[int, ...]:
        if step is window:
            return tuple(range(len(step.sizes)))
        for value in step.operands:
            if isinstance(value, Operand) and value.step is window:
                return value.labels
        raise AssertionError

    def _windows(self, step: Step) -> list[tuple[Any, bool]]:
        """Return the windows that a step reads and writes."""
        found: list[tuple[Any, bool]] = [
            (value.step, False) for value in step.operands
            if isinstance(value, Operand) and value.step in self.inlined
        ]
        if isinstance(step, Read):
            found.append((step, False))
        elif isinstance(step, Write):
            found.append((step, True))
        return found

    def _are_disjoint(self, first: Any, second: Any) -> bool:
        """Return whether two windows never have an element in common."""
        return self.analysis.are_apart(
            (self.owner[first].name, first), (self.owner[second].name, second)
        )

    def _nest(self, nest: LoopNest | None, indent: str) -> None:
        if nest is None:
            return
        block = self.owner[nest.steps[0]]
        self._loops(block, nest, indent)
        for step in nest.after:
            self._scalar(block, step, indent)


def moved_by(value: Value) -> list[Step]:
    """Return the steps whose integers move the window of a value, if the window is read where it is used."""
    if not isinstance(value, Operand) or type(value.step) is not Read:
        return []
    return [move.value.step for move in value.step.moves]


def steps_in(item: Item) -> list[Step]:
    """Return the steps of an item: the item itself, or the steps of a loop."""
    if isinstance(item, Step):
        return [item]
    return [step for body in bodies_of(item) for _, step in steps_of(body)]


def is_one_row(sizes: Sequence[Integer], strides: Sequence[Integer]) -> bool:
    """Return whether the elements of a window are equally spaced in row-major order."""
    pairs = itertools.pairwise(zip(sizes, strides))
    return all(stride == inner * n for (_, stride), (n, inner) in pairs)


def product_of(sizes: Sequence[Integer]) -> Integer:
    """Return the number of elements as a product."""
    product = ONE
    for n in sizes:
        product = product * n
    return product


def flat(positions: Sequence[str], strides: Sequence[Integer], offset: Integer | None = None) -> str:
    """Return the flat index of an element."""
    parts = [] if offset is None or (offset.value == 0 and positions) else [str(offset)]
    for position, stride in zip(positions, strides):
        fixed = stride.value
        if fixed == 0 or position == "0":
            continue
        parts.append(position if fixed == 1 else f"{position}*{parenthesised(stride)}")
    return " + ".join(parts) or "0"


def plus(integer: Integer) -> str:
    """Return an integer as the first term of a sum."""
    return "" if integer.value == 0 else f"{integer} + "


def parenthesised(integer: Integer) -> str:
    """Return an integer as a factor."""
    text = str(integer)
    return text if (integer.value is not None and integer.value >= 0) or text.isidentifier() else f"({text})"
