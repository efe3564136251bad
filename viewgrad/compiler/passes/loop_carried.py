"""Loop-carried scalars: values for the next iteration of a loop are carried in variables.

`level[t] = f(level[t - 1])` writes a value that the next iteration reads. A variable avoids the load and the store, in
the program and in its gradient.
"""

from __future__ import annotations

import attrs

from ..index_expr import ONE, ZERO, Integer, constant, variable
from ..loop_ir import Block, Buffer, ForLoop, Item, Operand, Program, Read, Step, Write, bodies_of, steps_of


def promote_loop_carried(program: Program) -> Program:
    """Carry scalars from one iteration to the next in variables, if the next iteration reads what the current one
    writes.
    """
    promotion = _Promotion(program)
    promotion.visit(program.block)
    if promotion.numbers:
        program.analysis = None
    return program


class _Promotion:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.numbers = 0

    def visit(self, block: Block) -> None:
        """Visit the loops of a block, inner ones first."""
        items: list[Item] = []
        for item in block.items:
            for body in bodies_of(item):
                self.visit(body)
            if isinstance(item, ForLoop) and (item.count.value or 0) > 0:
                items += self._initializers(item)
            items.append(item)
        block.items = items

    def _initializers(self, loop: ForLoop) -> list[Step]:
        """Return the steps before a loop that initialize its carried variables."""
        found: list[Step] = []
        writes: dict[Buffer, list[Write]] = {}
        for _, step in steps_of(loop.body):
            if isinstance(step, Write):
                writes.setdefault(step.base, []).append(step)
        for base, steps in writes.items():
            write = steps[0]
            if len(steps) > 1 or base.kind == "register" or base.size == 1 or not self._is_fit(loop, write):
                continue
            at = loop.body.items.index(write)
            before = shifted(write.offset, loop.variable)
            for read in [item for item in loop.body.items[:at] if type(item) is Read and item.base is base]:
                if not read.sizes and not read.is_picked and read.offset == before:
                    found += self._carried(loop, read, write)
                    break
        return found

    def _is_fit(self, loop: ForLoop, write: Write) -> bool:
        if type(write) is not Write or write not in loop.body.items or not isinstance(write.value, Operand):
            return False
        fits = not write.sizes and not write.is_picked and not write.unrecorded
        return fits and getattr(write.value.step, "dtype", None) == write.base.dtype

    def _carried(self, loop: ForLoop, read: Read, write: Write) -> list[Step]:
        self.numbers += 1
        base = Buffer(f"h{self.numbers}", 1, read.base.dtype, "register")
        self.program.bases[base.name] = base
        first = Read(f"vh{self.numbers}", (), read.location, read.base, (), at_first(read.offset, loop.variable))
        start = Write(f"wh{self.numbers}", (), read.location, base, (), ZERO, Operand(first))
        kept = Write(f"wk{self.numbers}", (), write.location, base, (), ZERO, write.value)
        items = loop.body.items
        items.insert(items.index(write) + 1, kept)
        read.memory = attrs.evolve(read)
        read.base, read.offset = base, ZERO
        return [first, start]


def shifted(integer: Integer, name: str) -> Integer:
    """Return the value of an integer in the previous iteration."""
    return replaced(integer, name, variable(name) - ONE)


def at_first(integer: Integer, name: str) -> Integer:
    """Return the value of an integer in the first iteration."""
    return replaced(integer, name, ZERO)


def replaced(integer: Integer, name: str, by: Integer) -> Integer:
    """Return an integer with a variable replaced by another integer."""
    total = ZERO
    for monomial, coefficient in integer.terms:
        product = constant(coefficient)
        for factor in monomial:
            product = product * (by if factor == name else variable(factor))
        total = total + product
    return total
