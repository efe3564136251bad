"""Conversion of instructions with recovered loops to the loop IR.

An operand of an instruction is identified by the site of the instruction that computed it (its line and operation) and
by its age, the number of values computed at that site since then. If it comes from the same execution of the block, or
from an enclosing block, it is a local value. All other operands are read from a base: a register if the latest value is
always used, otherwise an array of all values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from ..errors import NotCompiledError, TraceTooLongError
from .index_expr import ONE, ZERO, Integer, constant, variable
from .irregular_loops import IrregularIteration, program_size, with_choices
from .loop_ir import (
    Access,
    Block,
    Buffer,
    Call,
    Check,
    Compute,
    ForLoop,
    IrregularLoop,
    Move,
    Number,
    Operand,
    Positions,
    Program,
    Read,
    Step,
    Table,
    Value,
    Write,
)
from .reroll import Instruction, Loop
from .trace_stream import Stream

MOST_SPILLED: Final = 40
UNROLLED: Final = 200  # the maximum number of terms outside loops


class SpillError(NotCompiledError):
    """Raised if values other than the latest ones of some sites are used, so that these sites need memory.

    Attributes:
        keys: the keys of the sites.
    """

    def __init__(self, message: str, *keys: Any) -> None:
        super().__init__(message)
        self.keys = frozenset(keys)


def build(lower: Callable[[dict[Any, int]], Stream]) -> tuple[Stream, Program]:
    """Return the program of a stream of instructions.

    If irregular loops would require values in memory, a short program is built without such loops.

    Arguments:
        lower: a function that returns the stream with the values of some sites in memory, each with room for the
            largest value.
    """
    streams: dict[Any, Stream] = {}

    def lowered(spilled: dict[Any, int]) -> Stream:
        """Return the stream, created once for each set of values in memory."""
        key = frozenset(spilled.items())
        if key not in streams:
            streams[key] = lower(spilled)
        return streams[key]

    stream = lowered({})
    try:
        return stream, Builder(stream).program()
    except SpillError:
        pass
    plain: tuple[Stream, Program] | None = None
    failure: NotCompiledError | None = None
    for choices in (False, True):
        try:
            found = _built(lowered, choices)
        except NotCompiledError as error:
            failure = failure or error
            continue
        if choices or found[0].roller.operation_count <= UNROLLED or len(found[0].roller.terms) <= UNROLLED:
            return found
        plain = found
    if plain is None:
        assert failure is not None
        raise failure
    return plain


def _built(lower: Callable[[dict[Any, int]], Stream], choices: bool) -> tuple[Stream, Program]:
    """Return the program, with as many values in memory as it needs."""
    spilled: dict[Any, int] = {}
    while True:
        stream = lower(spilled)
        try:
            return stream, Builder(stream, choices=choices).program()
        except SpillError as error:
            if len(spilled) >= MOST_SPILLED or not error.keys - spilled.keys():
                raise
            sizes = {key: size for key, (size, _, _) in zip(stream.keys, stream.sites)}
            spilled = {key: sizes[key] for key in sizes if key in spilled or key in error.keys}


class Builder:
    """Builds the program of a stream.

    Arguments:
        stream: the instructions.
        choices: whether differing iterations may become an irregular loop.
    """

    def __init__(self, stream: Stream, *, choices: bool = True) -> None:
        self.stream = stream
        self.structures = stream.roller.structures
        self.choices = choices
        self.bases = {base.name: base for base in stream.bases}
        self.numbers = 0
        self.sites: dict[int, set[int]] = {}  # by term, the sites that compute values in it
        self.registers: dict[int, Buffer] = {}  # by site, the register of its latest value
        self.defined: dict[int, list[tuple[Block, Step]]] = {}  # by site, the steps that compute its values
        self.scopes: list[tuple[list[tuple[int | None, Any]], set[int]]] = []
        self.spills: list[SpillError] = []

    def program(self) -> Program:
        """Return the program."""
        terms: list[Any] = self.stream.roller.terms
        if self.choices:
            terms = with_choices(terms, self.structures)
        left = sum(program_size(term) for term in terms)
        if left > self.stream.limit:
            raise TraceTooLongError(
                f"{left} of {self.stream.roller.operation_count} operations belong to no loop; at most "
                f"{self.stream.limit} such operations are compiled. Operate on rows and matrices instead of scalars, "
                "or compile a smaller function"
            )
        ints = [() if type(term) is IrregularIteration else tuple([constant(n) for n in term.ints]) for term in terms]
        block = self.block(terms, ints)
        if self.spills:
            raise SpillError(self.spills[0].message, *[key for spill in self.spills for key in spill.keys])
        for site, base in self.registers.items():
            for owner, step in self.defined[site]:
                at = owner.items.index(step)
                owner.items.insert(at + 1, self._write(base, step))
        return Program(block, self.bases, self.stream.results, self.stream.locations)

    # -- blocks --------------------------------------------------------------------------------------------------------

    def block(
        self, terms: Sequence[Any], ints: Sequence[tuple[Integer, ...]], block: Block | None = None,
        inside: set[int] | None = None,
    ) -> Block:
        """Return a block for terms with given integers.

        Arguments:
            terms, ints: the terms and their integers.
            block: the block to fill; by default a new one.
            inside: the sites that define values in the loop whose body the block is.
        """
        if block is None:
            block = Block([], self._name("c"))
        if inside is None:
            inside = set().union(*[self._sites_in(term) for term in terms])
        defined: list[tuple[int | None, Any]] = []
        self.scopes.append((defined, inside))
        for term, numbers in zip(terms, ints):
            if type(term) is Instruction:
                step = self.step(block, term, numbers)
                block.items.append(step)
                if self.structures[term.structure][0] == "spilled":
                    block.items.append(self._spill(step, term, numbers))
                site = self._site(term)
                if site is not None:
                    defined.append((site, step))
                    self.defined.setdefault(site, []).append((block, step))
            else:
                block.items.append(self.loop(term, numbers) if type(term) is Loop else self.choice(term))
                defined.append((None, self._sites_in(term)))
        if len(self.scopes) > 1:
            self.scopes.pop()
        return block

    def loop(self, term: Loop, numbers: tuple[Integer, ...]) -> ForLoop:
        """Return a loop with given integers."""
        name = self._name("i")
        i = variable(name)
        lengths = [len(inner.ints) for inner in term.body]
        total = sum(lengths)
        inner_ints, start = [], 1
        for length in lengths:
            now, moves = numbers[start : start + length], numbers[start + total : start + total + length]
            inner_ints.append(tuple([n + move * i for n, move in zip(now, moves)]))
            start += length
        return ForLoop(name, numbers[0], self.block(term.body, inner_ints))

    def choice(self, term: IrregularIteration) -> IrregularLoop:
        """Return a loop whose iterations differ."""
        name = self._name("i")
        inside = self._sites_in(term)
        bodies = []
        for number, body in enumerate(term.bodies):
            block = Block([], self._name("c"))
            iterations = np.flatnonzero(term.kinds == number)
            ints = [
                tuple([self._column(block, name, iterations, column) for column in columns.T]) for columns in body.ints
            ]
            bodies.append(self.block(body.terms, ints, block, inside))
        return IrregularLoop(name, term.kinds, self._name("K"), bodies)

    def _column(self, block: Block, name: str, iterations: Any, column: Any) -> Integer:
        """Return an integer of a body: affine in the iteration number, or from a table."""
        first = int(column[0])
        if (column == first).all():
            return constant(first)
        step, rest = divmod(int(column[-1]) - first, int(iterations[-1] - iterations[0]))
        if not rest and (column == first + (iterations - iterations[0]) * step).all():
            return constant(first - int(iterations[0]) * step) + variable(name) * constant(step)
        for table, values in block.tables.items():
            if (column - values == first - int(values[0])).all():
                return variable(f"{table}[{block.name}]") + constant(first - int(values[0]))
        table = self._name("X")
        block.tables[table] = column.copy()
        return variable(f"{table}[{block.name}]")

    # -- steps ---------------------------------------------------------------------------------------------------------

    def step(self, block: Block, term: Instruction, numbers: tuple[Integer, ...]) -> Step:
        """Convert an instruction to a step."""
        structure = self.structures[term.structure]
        if structure[0] == "spilled":
            structure = self.structures[structure[1]]
        constants = iter(term.constants)
        kind = structure[0]
        if kind == "op":
            _, name, slope, location, dtype, out, expression, labels, operands = structure
            sizes, ages = numbers[:labels], iter(numbers[labels:])
            taken = tuple([self.value(block, operand, ages, constants) for operand in operands])
            return Compute(self._name("v"), sizes, location, name, expression, taken, out, np.dtype(dtype), slope)
        if kind == "call":
            _, operation, location, operands = structure
            ages = iter(numbers)
            taken = tuple([self.value(block, operand, ages, constants) for operand in operands])
            return Call(self._name("v"), tuple([constant(n) for n in operation.shape]), location, operation, taken)
        if kind == "read":
            _, base, location, ndim = structure
            sizes, strides, offset = numbers[:ndim], numbers[ndim : 2 * ndim], numbers[2 * ndim]
            return Read(self._name("v"), sizes, location, self.stream.bases[base], strides, offset)
        if kind == "write":
            _, base, location, ndim, operand, unrecorded = structure
            sizes, strides, offset = numbers[:ndim], numbers[ndim : 2 * ndim], numbers[2 * ndim]
            value = self.value(block, operand, iter(numbers[2 * ndim + 1 :]), constants)
            of = self.stream.bases[base]
            return Write(self._name("w"), sizes, location, of, strides, offset, value, unrecorded=unrecorded)
        if kind in ("read_at", "write_at"):
            return self._dynamic_access(block, structure, numbers, constants)
        if kind in ("gather", "scatter"):
            _, base, location, shape, table, *rest = structure
            positions = Positions(f"P{table}", self.stream.tables[table].table(), numbers[1], math.prod(shape))
            sizes, strides = tuple([constant(n) for n in shape]), _row_strides(shape)
            of = self.stream.bases[base]
            if kind == "gather":
                return Read(self._name("v"), sizes, location, of, strides, numbers[0], positions=positions)
            operand, unrecorded = rest
            value = self.value(block, operand, iter(numbers[2:]), constants)
            return Write(
                self._name("w"), sizes, location, of, strides, numbers[0], value, positions=positions,
                unrecorded=unrecorded,
            )
        assert kind == "check"
        _, location, operand, expected = structure
        value = self.value(block, operand, iter(numbers), constants)
        fixed = type(expected) is bool
        right = Number(expected) if fixed else self.value(block, expected, iter(()), constants)
        return Check(self._name("g"), (), location, value, right)

    def _dynamic_access(
        self, block: Block, structure: tuple[Any, ...], numbers: tuple[Integer, ...], constants: Any
    ) -> Access:
        """Return a read or a write of a window that is moved by computed integers."""
        kind, base, location, ndim, by, *rest = structure
        sizes, strides, offset = numbers[:ndim], numbers[ndim : 2 * ndim], numbers[2 * ndim]
        steps, ages = numbers[2 * ndim + 1 : 2 * ndim + 1 + len(by)], iter(numbers[2 * ndim + 1 + len(by) :])
        moves = tuple([
            Move(self.value(block, each, ages, constants), stride) for each, stride in zip(by, steps)  # type: ignore[arg-type]
        ])
        of = self.stream.bases[base]
        if kind == "read_at":
            return Read(self._name("v"), sizes, location, of, strides, offset, moves=moves)
        operand, unrecorded = rest
        value = self.value(block, operand, ages, constants)
        return Write(
            self._name("w"), sizes, location, of, strides, offset, value, moves=moves, unrecorded=unrecorded
        )

    def _spill(self, step: Step, term: Instruction, numbers: tuple[Integer, ...]) -> Write:
        """Return the write of a value to its position in memory."""
        _, _, base, location, ndim, count = self.structures[term.structure]
        sizes, strides = numbers[count : count + ndim], numbers[count + ndim : count + 2 * ndim]
        value = Operand(step, tuple(range(ndim)))
        return Write(
            self._name("w"), sizes, location, self.stream.bases[base], strides, numbers[count + 2 * ndim], value
        )

    def value(self, block: Block, operand: tuple[Any, ...], ages: Any, constants: Any) -> Value:
        """Convert an operand to a value."""
        if operand[0] == "c":
            numbers = np.array(next(constants), operand[1])
            bits = numbers.view(f"u{numbers.itemsize}")
            if (bits == bits[0]).all():
                return Number(numbers[0].item())
            return Table(self._name("F"), numbers, block)
        site, labels = operand
        try:
            return Operand(self._step_of(block, site, next(ages)), labels)
        except SpillError as error:  # there may be more values
            self.spills.append(error)
            return Number(0.0)

    def _step_of(self, block: Block, site: int, age: Integer) -> Step:
        """Return the step that computes or reads a value, appending it to the block if necessary."""
        wanted = age.value
        if wanted is not None:
            for defined, inside in reversed(self.scopes):
                for at, what in reversed(defined):
                    if at == site:
                        if not wanted:
                            found: Step = what
                            return found
                        wanted -= 1
                    elif at is None and site in what:
                        break
                else:
                    if site not in inside:
                        continue  # all of them enclose this block
                break
            if age.value == 0:
                return self._latest(block, site)
        raise SpillError(
            f"a value computed several iterations earlier is used ({self._where(site)})", self.stream.keys[site]
        )

    def _latest(self, block: Block, site: int) -> Step:
        """Return a read of the latest value of a site."""
        shape = self.stream.sites[site][2]
        base = self.registers.get(site)
        if base is None and shape is not None:
            size, dtype, _ = self.stream.sites[site]
            base = self.registers[site] = Buffer(self._name("r"), max(size, 1), np.dtype(dtype), "register")
            self.bases[base.name] = base
        if shape is None or base is None:
            raise SpillError(
                f"an array carried from one iteration to the next changes its shape ({self._where(site)})",
                self.stream.keys[site],
            )
        sizes = tuple([constant(n) for n in shape])
        read = Read(self._name("v"), sizes, self.stream.site_locations[site], base, _row_strides(shape), ZERO)
        block.items.append(read)
        return read

    def _write(self, base: Buffer, step: Step) -> Write:
        sizes = out_sizes(step)
        shape = tuple([n.value or 0 for n in sizes])
        value = Operand(step, tuple(range(len(sizes))))
        return Write(self._name("w"), sizes, step.location, base, _row_strides(shape), ZERO, value)

    def _site(self, term: Instruction) -> int | None:
        return self.stream.site_of(term.structure)

    def _sites_in(self, term: Any) -> set[int]:
        if type(term) is Instruction:
            site = self._site(term)
            return set() if site is None else {site}
        found = self.sites.get(id(term))
        if found is None:
            terms = term.body if type(term) is Loop else [inner for body in term.bodies for inner in body.terms]
            found = self.sites[id(term)] = set().union(*[self._sites_in(inner) for inner in terms])
        return found

    def _where(self, site: int) -> str:
        return self.stream.where(self.stream.site_locations[site])

    def _name(self, prefix: str) -> str:
        self.numbers += 1
        return f"{prefix}{self.numbers}"


def out_sizes(step: Step) -> tuple[Integer, ...]:
    """Return the lengths of the dimensions of a step's value."""
    if isinstance(step, Compute):
        return tuple([ONE if label < 0 else step.sizes[label] for label in step.out])
    return step.sizes


def _row_strides(shape: Sequence[int]) -> tuple[Integer, ...]:
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(constant(step))
        step *= n
    return tuple(reversed(strides))

