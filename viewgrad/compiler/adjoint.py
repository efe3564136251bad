"""The gradient of a program as another program, with its loops and steps in reverse.

Each value has a gradient, the sum of the contributions of its uses. Each base has a base of gradients, to which the
reverse of a read adds and from which the reverse of a write reads. Values that the derivative needs are read again if
they are still in memory, recomputed if that is cheap, and otherwise stored on a tape: an array with one entry for each
execution of the block.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

import attrs
import numpy as np

from ..errors import NotCompiledError
from .access_analysis import AccessAnalysis
from .build_ir import out_sizes
from .element_types import taped
from .index_expr import Integer, constant, row_strides_of
from .loop_ir import (
    Access,
    Add,
    Block,
    Buffer,
    Call,
    Compute,
    ForLoop,
    IrregularLoop,
    Item,
    Move,
    Number,
    Operand,
    Pop,
    Program,
    Push,
    Read,
    Step,
    Value,
    Write,
    steps_of,
)
from .scalar_rules import derivative

CHEAP: Final = frozenset({
    "add", "sub", "mul", "neg", "positive", "square", "conj", "clone", "where", "masked_fill", "as_float",
    "position",
})  # fmt: skip
PLACEHOLDERS: Final = re.compile(r"\{(\w+)\}")


@attrs.define(eq=False)
class Tape:
    """The saved values of a step.

    Arguments:
        name: the name of the array.
        step: the step whose values are saved.
        sizes: the sizes of one value.
        entries: the total number of saved elements.
        dtype: the dtype of the elements.
    """

    name: str
    step: Step
    sizes: tuple[Integer, ...]
    entries: int
    dtype: np.dtype[Any]


@attrs.define(eq=False)
class Adjoint:
    """A program with its gradient.

    Arguments:
        backward: the program that computes the gradient; its buffers are those of gradients and those of the program.
        gradients: for each buffer that has one, the buffer of its gradient.
        seeds: for each result, the buffer through which its gradient is passed in; None if it has none.
        tapes: the values saved for the gradient.
    """

    backward: Program
    gradients: dict[str, Buffer]
    seeds: list[Buffer | None]
    tapes: list[Tape]


def differentiated(program: Program, wanted: Iterable[str], analysis: AccessAnalysis) -> Adjoint:
    """Return the gradient of a program, and extend the program to save the values that the gradient needs.

    Arguments:
        program: the program.
        wanted: the names of the inputs to differentiate with respect to.
        analysis: the analysis of the program.
    """
    return _Differentiation(program, set(wanted), analysis).run()


class _Differentiation:
    def __init__(self, program: Program, wanted: set[str], analysis: AccessAnalysis) -> None:
        self.program = program
        self.analysis = analysis
        self.numbers = 0
        self.block_of = {step: block for block, step in steps_of(program.block)}
        self.active_bases, self.active = activity(program, wanted)
        felt = wanted | {result.base for result in program.results}
        felt |= {step.base.name for step in self.active if type(step) is Read}
        self.gradients = {
            name: Buffer(
                f"d{name}", base.size, base.dtype, "register" if base.kind == "register" else "made", is_gradient=True
            )
            for name, base in program.bases.items()
            if name in self.active_bases and name in felt
        }
        self.preludes: dict[Block, list[Item]] = {}
        self.restored: dict[Step, Step] = {}
        self.accumulators: dict[Step, Buffer] = {}
        self.tapes: list[Tape] = []
        self.homes: dict[Step, Write] = {}
        for _, step in steps_of(program.block):
            if type(step) is Write and isinstance(step.value, Operand) and step.base.kind != "register":
                source = step.value.step
                whole = step.value.labels == tuple(range(len(step.sizes))) and out_sizes(source) == step.sizes
                if whole and source not in self.homes and self.block_of.get(source) is self.block_of[step]:
                    if analysis.is_kept(step):
                        self.homes[source] = step

    def run(self) -> Adjoint:
        seeds: list[Buffer | None] = []
        items: list[Item] = []
        for result in self.program.results:
            gradient = self.gradients.get(result.base)
            if gradient is None:
                seeds.append(None)
                continue
            size = int(np.prod(result.shape, dtype=int))
            seed = Buffer(f"s{len(seeds)}", size, gradient.dtype, "input")
            seeds.append(seed)
            sizes = tuple([constant(n) for n in result.shape])
            strides = row_strides_of(tuple(map(constant, result.shape)))
            read = Read(self._name("g"), sizes, -1, seed, strides, constant(0))
            items.append(read)
            labels = tuple(range(len(sizes)))
            strides = tuple([constant(n) for n in result.strides])
            items.append(Add(self._name("w"), sizes, -1, gradient, strides, constant(result.offset),
                             Operand(read, labels)))
        block = self.reverse(self.program.block, self.program.block)
        block.items[:0] = items
        bases = dict(self.program.bases)
        bases |= {base.name: base for base in self.gradients.values()}
        bases |= {seed.name: seed for seed in seeds if seed is not None}
        bases |= {base.name: base for base in self.accumulators.values()}
        backward = Program(block, bases, [], self.program.locations)
        return Adjoint(backward, self.gradients, seeds, self.tapes)

    # -- blocks and steps ----------------------------------------------------------------------------------------------

    def reverse(self, block: Block, outermost: Block) -> Block:
        """Return the reverse of a block."""
        prelude: list[Item] = []
        self.preludes[block] = prelude
        items: list[Item] = []
        contributions: dict[Step, list[Value]] = {}
        for item in list(reversed(block.items)):
            if isinstance(item, ForLoop):
                body = self.reverse(item.body, outermost)
                if body.items:
                    items.append(ForLoop(item.variable, item.count, body, down=True))
            elif isinstance(item, IrregularLoop):
                bodies = [self.reverse(body, outermost) for body in item.bodies]
                items.append(IrregularLoop(item.variable, item.kinds, item.table, bodies, down=True))
            elif isinstance(item, Write):
                self._reverse_write(block, items, contributions, item)
            elif item in self.active:
                self._reverse_value(block, items, contributions, item)
        return Block(prelude + items, block.name, block.tables)

    def _reverse_write(
        self, block: Block, items: list[Item], contributions: dict[Step, list[Value]], step: Write
    ) -> None:
        gradient = self.gradients.get(step.base.name)
        if gradient is None or step.unrecorded:
            return
        value = step.value
        if isinstance(value, Operand) and value.step in self.active:
            read = Read(
                self._name("g"), step.sizes, step.location, gradient, step.strides, step.offset,
                positions=step.positions, moves=self._moves(step),
            )
            items.append(read)
            labels = tuple(range(len(step.sizes)))
            given: Value = Operand(read, labels)
            if value.labels != labels:
                summed = Compute(self._name("g"), step.sizes, step.location, "", "{0}", (given,), value.labels)
                items.append(summed)
                given = _operand(summed)
            self._contribute(block, items, contributions, value.step, given)
        zero = Write(
            self._name("w"), step.sizes, step.location, gradient, step.strides, step.offset, Number(0.0),
            positions=step.positions, moves=self._moves(step),
        )
        items.append(zero)

    def _reverse_value(
        self, block: Block, items: list[Item], contributions: dict[Step, list[Value]], step: Step
    ) -> None:
        given = contributions.pop(step, [])
        sizes = out_sizes(step)
        labels = tuple(range(len(sizes)))
        accumulator = self.accumulators.get(step)
        if accumulator is not None:
            strides = row_strides_of(sizes)
            zero = Write(self._name("w"), sizes, step.location, accumulator, strides, constant(0), Number(0.0))
            self.preludes[block].append(zero)
            read = Read(self._name("g"), sizes, step.location, accumulator, strides, constant(0))
            items.append(read)
            given.append(Operand(read, labels))
        if not given:
            return
        total = given[0]
        for more in given[1:]:
            added = Compute(self._name("g"), sizes, step.location, "", "{0} + {1}", (total, more), labels)
            items.append(added)
            total = Operand(added, labels)
        if isinstance(step, Read):
            gradient = self.gradients[step.base.name]
            items.append(
                Add(
                    self._name("w"), step.sizes, step.location, gradient, step.strides, step.offset, total,
                    positions=step.positions, moves=self._moves(step),
                )
            )
            return
        if isinstance(step, Call):
            self._reverse_call(block, items, contributions, step, total)
            return
        assert isinstance(step, Compute)
        self._reverse_compute(block, items, contributions, step, total)

    def _reverse_compute(
        self, block: Block, items: list[Item], contributions: dict[Step, list[Value]], step: Compute, total: Value
    ) -> None:
        grad = attrs.evolve(total, labels=step.out)
        for number, value in enumerate(step.operands):
            if not isinstance(value, Operand) or value.step not in self.active:
                continue
            template = _slope_of(step, number)
            if template is None:
                raise NotCompiledError(
                    f"the derivative of {step.operator} is not known to the compiler ({self._where(step)})"
                )
            if not template:
                continue
            taken: list[Value] = []
            positions: dict[str, str] = {}
            for position in PLACEHOLDERS.findall(template):
                if position in positions:
                    continue
                positions[position] = f"{{{len(taken)}}}"
                if position == "grad":
                    taken.append(grad)
                elif position == "result":
                    taken.append(Operand(self._restored(step), step.out))
                else:
                    taken.append(self._restored_value(step.operands[int(position)]))
            expression = PLACEHOLDERS.sub(lambda match, positions=positions: positions[match[1]], template)  # type: ignore[misc]
            if expression == "{0}" and value.labels == step.out and taken[0] is grad and not step.summed:
                self._contribute(block, items, contributions, value.step, total)
                continue
            out = Compute(self._name("g"), step.sizes, step.location, "", expression, tuple(taken), value.labels)
            items.append(out)
            self._contribute(block, items, contributions, value.step, _operand(out))

    def _reverse_call(
        self, block: Block, items: list[Item], contributions: dict[Step, list[Value]], step: Call, total: Value
    ) -> None:
        numbers = [number for number, kind in enumerate(step.operation.operands) if kind is not None]
        for number, value in zip(numbers, step.operands):
            if not isinstance(value, Operand) or value.step not in self.active:
                continue
            taken = (total, *[self._restored_value(each) for each in step.operands])
            out = Call(self._name("g"), out_sizes(value.step), step.location, step.operation, taken, number)
            items.append(out)
            self._contribute(block, items, contributions, value.step, Operand(out, tuple(range(len(out.sizes)))))

    def _contribute(
        self, block: Block, items: list[Item], contributions: dict[Step, list[Value]], step: Step, value: Value
    ) -> None:
        if self.block_of[step] is block:
            contributions.setdefault(step, []).append(value)
            return
        accumulator = self.accumulators.get(step)
        sizes = out_sizes(step)
        if accumulator is None:
            size = self.analysis.largest(self.block_of[step], sizes)
            accumulator = self.accumulators[step] = Buffer(self._name("a"), size, np.dtype(float), "register")
        items.append(
            Add(self._name("w"), sizes, step.location, accumulator, row_strides_of(sizes), constant(0), value)
        )

    # -- values of the program -----------------------------------------------------------------------------------------

    def _moves(self, step: Access) -> tuple[Move, ...]:
        """Return the integers that move a window, for use in the gradient."""
        return tuple([
            Move(Operand(self._restored(move.value.step), move.value.labels), move.stride) for move in step.moves
        ])

    def _restored_value(self, value: Value) -> Value:
        return Operand(self._restored(value.step), value.labels) if isinstance(value, Operand) else value

    def _restored(self, step: Step) -> Step:
        """Return the step of the gradient whose value is that of a step of the program."""
        found = self.restored.get(step)
        if found is None:
            block = self.block_of[step]
            found = self._free(step) or self._popped(step)
            self.restored[step] = found
            if found not in self.preludes[block]:
                self.preludes[block].append(found)
        return found

    def _free(self, step: Step) -> Step | None:
        """Return a step that computes the value without a tape, or None."""
        home: Access | None = self.homes.get(step)
        if home is None and type(step) is Read and self._stays(step):
            home = step.memory or step
        if home is not None:
            return Read(
                self._name("p"), home.sizes, step.location, home.base, home.strides, home.offset,
                positions=home.positions, moves=self._moves(home),
            )
        if type(step) is Compute and step.operator in CHEAP and not step.summed and self._is_cheap(step):
            taken = tuple([self._restored_value(value) for value in step.operands])
            return attrs.evolve(step, name=self._name("p"), operands=taken)
        return None

    def _stays(self, step: Read) -> bool:
        """Return whether the value that a step reads can be read again in the gradient."""
        if step.memory is not None:
            return self.analysis.is_kept(step, step.memory)
        return step.base.kind != "register" and self.analysis.is_kept(step)

    def _is_cheap(self, step: Step) -> bool:
        """Return whether a value can be recomputed without the tape."""
        if step in self.restored or step in self.homes:
            return True
        if type(step) is Read:
            return self._stays(step)
        return (
            type(step) is Compute and step.operator in CHEAP and not step.summed
            and all(self._is_cheap(value.step) for value in step.operands if isinstance(value, Operand))
        )

    def _popped(self, step: Step) -> Step:
        block = self.block_of[step]
        sizes = out_sizes(step)
        dtype = taped(step.dtype)  # type: ignore[attr-defined]
        tape = Tape(self._name("T"), step, sizes, self.analysis.elements(block, sizes), dtype)
        self.tapes.append(tape)
        push = Push(self._name("w"), sizes, step.location, Operand(step, tuple(range(len(sizes)))), tape.name, dtype)
        block.items.insert(block.items.index(step) + 1, push)
        return Pop(self._name("p"), sizes, step.location, tape.name, dtype)

    def _where(self, step: Step) -> str:
        locations = self.program.locations
        return "{}:{}".format(*locations[step.location]) if 0 <= step.location < len(locations) else "unknown"

    def _name(self, prefix: str) -> str:
        self.numbers += 1
        return f"{prefix}b{self.numbers}"


def activity(program: Program, wanted: set[str]) -> tuple[set[str], set[Step]]:
    """Return the buffers and steps that depend on the inputs `wanted`."""
    bases, active = set(wanted), set[Step]()
    before = -1
    while before != len(bases) + len(active):
        before = len(bases) + len(active)
        for _, step in steps_of(program.block):
            if isinstance(step, Write):
                if isinstance(step.value, Operand) and step.value.step in active and not step.unrecorded:
                    bases.add(step.base.name)
            elif isinstance(step, Read):
                if step.base.name in bases and step.base.dtype.kind == "f":
                    active.add(step)
            elif isinstance(step, Call) and step.dtype.kind == "f":
                if any(isinstance(value, Operand) and value.step in active for value in step.operands):
                    active.add(step)
            elif isinstance(step, Compute) and step.dtype.kind == "f":
                for number, value in enumerate(step.operands):
                    if isinstance(value, Operand) and value.step in active and _slope_of(step, number) != "":
                        active.add(step)
    return bases, active


def _slope_of(step: Compute, number: int) -> str | None:
    """Return the gradient of an operand: "" if it is 0, None if it is unknown."""
    if step.slope is not None:
        return "" if number else step.slope
    return derivative(step.operator, number)


def _operand(step: Compute) -> Operand:
    return Operand(step, tuple(range(len(step.out))))
