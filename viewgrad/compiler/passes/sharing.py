"""Gradients that are copied as a whole, element by element, to where they are wanted: they are made there at once.

`y[i] = a * y[i - 1] + x[i]` has the gradient of `x` as a copy of that of `y`. Both are one buffer then.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Final

import numpy as np

from ..adjoint import Adjoint
from ..executions import Executions
from ..program import Base, Block, Operand, Read, Step, Write, steps_of
from .tidying import left_out

__all__ = ["share_buffers"]

MOST: Final = 3_000_000  # elements written that are looked at


def share_buffers(adjoint: Adjoint, wanted: Set[str], unset: set[str]) -> None:
    """Let gradients that become those of inputs as they are be made in the buffers of these.

    Arguments:
        adjoint: the gradient of a program.
        wanted: the names of the bases that are looked at afterwards.
        unset: the names of the bases that need not begin with zeros; it is brought up to date.
    """
    program = adjoint.backward
    made = {base for base in adjoint.gradients.values() if base.kind == "made" and base.name not in wanted}
    executions: Executions | None = None
    for base in [base for name, base in program.bases.items() if name in wanted and base.kind == "made"]:
        touching = [(block, step) for block, step in steps_of(program.block) if _touches(step, base)]
        sources = {_source(step) for _, step in touching}
        source = sources.pop() if len(sources) == 1 else None
        if source not in made or source.size != base.size:
            continue
        if executions is None:
            executions = Executions(program)
        if _is_taken_over(touching, base, executions):
            left_out(program.block, {step for _, step in touching})
            for _, step in steps_of(program.block):
                if isinstance(step, (Read, Write)) and step.base is source:
                    step.base = base
            unset.discard(base.name)
            if source.name in unset:
                unset.add(base.name)
            executions = None


def _touches(step: Step, base: Base) -> bool:
    return isinstance(step, (Read, Write)) and step.base is base


def _source(step: Step) -> Base | None:
    """The base of which a step writes a window to the same window of another; None where it does something else."""
    if type(step) is not Write or step.places is not None or step.unrecorded or not isinstance(step.value, Operand):
        return None
    read = step.value.step
    if type(read) is not Read or read.places is not None or step.value.labels != tuple(range(len(read.sizes))):
        return None
    same = read.sizes == step.sizes and read.offset == step.offset and read.strides == step.strides
    return read.base if same and read.base.dtype == step.base.dtype else None


def _is_taken_over(touching: list[tuple[Block, Step]], base: Base, executions: Executions) -> bool:
    """Whether each element is copied, and the one that it is copied from is not written after that."""
    covered = np.zeros(base.size, bool)
    left = MOST
    for block, step in touching:
        assert isinstance(step, Write) and isinstance(step.value, Operand) and isinstance(step.value.step, Read)
        left -= executions.touches(step)
        if left < 0 or step.value.step not in block.items or not executions.is_kept(step.value.step):
            return False
        covered[executions.touched(step)[0]] = True
    return bool(covered.all())
