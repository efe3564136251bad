"""The verifier of the loop IR, which checks the invariants of a program between passes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Set
from typing import Final

from .build_ir import out_sizes
from .index_expr import Integer
from .loop_ir import (
    Access,
    Block,
    Call,
    Check,
    Compute,
    ForLoop,
    IrregularLoop,
    Item,
    Operand,
    Pop,
    Program,
    Push,
    Step,
    Value,
)

PLACEHOLDERS: Final = re.compile(r"\{(\w*)\}")
KINDS: Final = frozenset({"input", "made", "register"})


class InvalidProgramError(AssertionError):
    """Raised if a program violates an invariant of the loop IR."""


def verify_program(program: Program, what: str) -> None:
    """Verify a program.

    Arguments:
        program: the program.
        stage: the name of the stage in messages.

    Raises:
        InvalidProgramError: if a step uses a value that is not defined before it, if labels, sizes or dtypes do not
            match, or if a buffer, a variable or a tape is unknown or defined twice.
    """
    _Verifier(program, what).run()


class _Verifier:
    def __init__(self, program: Program, what: str) -> None:
        self.program = program
        self.stage = what
        self.names: set[str] = set()
        self.tapes: set[str] = set()
        self.blocks: set[str] = set()

    def run(self) -> None:
        for name, base in self.program.bases.items():
            self.require(name == base.name and base.kind in KINDS, f"buffer {name} is {base}")
        for result in self.program.results:
            self.require(result.base in self.program.bases, f"a result is in an unknown buffer {result.base}")
        self.block(self.program.block, frozenset(), frozenset())

    def block(self, block: Block, defined: Set[Step], variables: Set[str]) -> None:
        """Verify a block.

        Arguments:
            block: the block.
            defined: the preceding steps in enclosing blocks.
            variables: the variables of enclosing loops.
        """
        self.require(block.name not in self.blocks, f"two blocks have the name {block.name}")
        self.blocks.add(block.name)
        variables = variables | {f"{table}[{block.name}]" for table in block.tables}
        known = set(defined)
        for item in block.items:
            if isinstance(item, Step):
                self.step(item, known, variables)
                known.add(item)
            else:
                self.loop(item, known, variables)

    def loop(self, loop: Item, defined: Set[Step], variables: Set[str]) -> None:
        """Verify a loop."""
        if isinstance(loop, ForLoop):
            self.integers([loop.count], variables, f"loop {loop.variable}")
            bodies = [loop.body]
        else:
            assert isinstance(loop, IrregularLoop)
            bodies = loop.bodies
            fits = not len(loop.kinds) or 0 <= loop.kinds.min() <= loop.kinds.max() < len(bodies)
            self.require(bool(fits), f"loop {loop.variable} has no body for one of its iterations")
            for number, body in enumerate(bodies):
                count = int((loop.kinds == number).sum())
                for table, values in body.tables.items():
                    self.require(len(values) == count, f"table {table} has {len(values)} entries, not {count}")
        self.require(loop.variable not in variables, f"two loops have the variable {loop.variable}")
        for body in bodies:
            self.block(body, defined, variables | {loop.variable})

    def step(self, step: Step, defined: Set[Step], variables: Set[str]) -> None:
        """Verify a step."""
        self.require(step.name not in self.names, f"two steps have the name {step.name}")
        self.names.add(step.name)
        self.integers(step.sizes, variables, step.name)
        labels = range(len(step.sizes))
        for value in step.operands:
            self.operand(step, value, defined)
        if isinstance(step, Compute):
            out = [label for label in step.out if label >= 0]
            self.require(set(out) <= set(labels) and len(set(out)) == len(out), f"{step.name} has labels {step.out}")
            for position in PLACEHOLDERS.findall(step.expression):
                fits = position.isdigit() and int(position) < len(step.operands)
                self.require(fits, f"{step.name} has {step.expression}")
        elif isinstance(step, Access):
            self.require(self.program.bases.get(step.base.name) is step.base, f"{step.name} has an unknown buffer")
            fits = len(step.strides) == len(step.sizes)
            self.require(fits, f"{step.name} has {len(step.strides)} strides for {len(step.sizes)} dimensions")
            self.integers((*step.strides, step.offset), variables, step.name)
            self.integers([move.stride for move in step.moves], variables, step.name)
            if step.positions is not None:
                self.integers([step.positions.start], variables, step.name)
        elif isinstance(step, Call):
            fits = len(step.operands) == len(step.kinds)
            self.require(fits, f"{step.name} takes {len(step.operands)} operands, not {len(step.kinds)}")
        elif isinstance(step, (Push, Pop)):
            self.require(step.tape not in self.tapes, f"two steps use the tape {step.tape}")
            self.tapes.add(step.tape)
        else:
            self.require(isinstance(step, Check), f"{step.name} is a {type(step).__name__}")

    def operand(self, step: Step, value: Value, defined: Set[Step]) -> None:
        """Verify an operand of a step."""
        if not isinstance(value, Operand):
            return
        self.require(value.step in defined, f"{step.name} uses {value.step.name} before it is defined")
        self.require(hasattr(value.step, "dtype"), f"{step.name} uses {value.step.name}, which has no value")
        sizes = out_sizes(value.step)
        self.require(len(value.labels) == len(sizes), f"{step.name} has {value.labels} for {value.step.name}")
        if isinstance(step, (Call, Push, Check)):  # these use the whole value
            return
        for label, size in zip(value.labels, sizes, strict=True):
            fits = -1 <= label < len(step.sizes) and (label < 0 or step.sizes[label] == size)
            self.require(fits, f"{step.name} has {value.labels} for {value.step.name} of {list(map(str, sizes))}")

    def integers(self, integers: Iterable[Integer], variables: Set[str], where: str) -> None:
        """Verify that integers depend only on the variables of enclosing loops."""
        for integer in integers:
            names = {name for monomial, _ in integer.terms for name in monomial}
            self.require(names <= variables, f"{where} depends on {sorted(names - variables)}")

    def require(self, holds: bool, message: str) -> None:
        """Raise an error if a condition is false."""
        if not holds:
            raise InvalidProgramError(f"{self.stage}: {message}")
