"""Gradients that are copied as a whole, element by element, to where they are wanted: they are made there at once.

`y[i] = a * y[i - 1] + x[i]` has the gradient of `x` as a copy of that of `y`. Both are one buffer then.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Final

import numpy as np

from ..access_analysis import AccessAnalysis
from ..adjoint import Adjoint
from ..loop_ir import Buffer, Operand, Program, Read, Write, steps_of
from .dead_code import left_out

__all__ = ["coalesce_buffers"]

MOST: Final = 3_000_000  # elements written that are looked at


def coalesce_buffers(adjoint: Adjoint, wanted: Set[str], unset: set[str]) -> None:
    """Let gradients that become those of inputs as they are be made in the buffers of these.

    Arguments:
        adjoint: the gradient of a program.
        wanted: the names of the bases that are looked at afterwards.
        unset: the names of the bases that need not begin with zeros; it is brought up to date.
    """
    program = adjoint.backward
    made = {base for base in adjoint.gradients.values() if base.kind == "made" and base.name not in wanted}
    executions: AccessAnalysis | None = None
    for base in [base for name, base in program.bases.items() if name in wanted and base.kind == "made"]:
        copies = [_copy(step) for step in _touching(program, base)]
        sources = {None if copy is None else copy[0].base for copy in copies}
        source = sources.pop() if len(sources) == 1 else None
        if source is None or source not in made or source.size != base.size:
            continue
        if executions is None:
            executions = AccessAnalysis(program)
        if _are_last([copy for copy in copies if copy is not None], base, executions):
            left_out(program.block, {copy[1] for copy in copies if copy is not None})
            for step in _touching(program, source):
                step.base = base
            unset.discard(base.name)
            if source.name in unset:
                unset.add(base.name)
            executions = None


def _touching(program: Program, base: Buffer) -> list[Read | Write]:
    return [step for _, step in steps_of(program.block) if isinstance(step, (Read, Write)) and step.base is base]


def _copy(step: Read | Write) -> tuple[Read, Write] | None:
    """The read and the write of a copy of a window to the same window of another base; None for other steps."""
    if type(step) is not Write or step.unrecorded or not isinstance(step.value, Operand) or step.is_picked:
        return None
    read = step.value.step
    if type(read) is not Read or read.is_picked or step.value.labels != tuple(range(len(read.sizes))):
        return None
    same = read.sizes == step.sizes and read.offset == step.offset and read.strides == step.strides
    return (read, step) if same and read.base.dtype == step.base.dtype else None


def _are_last(copies: Sequence[tuple[Read, Write]], base: Buffer, executions: AccessAnalysis) -> bool:
    """Whether each element is copied, and the one that it is copied from is not written after that."""
    writes = [write for _, write in copies]
    sources = [step for step in _touching(executions.program, copies[0][0].base) if isinstance(step, Write)]
    grain = executions.grain([*writes, *sources], base.size)
    if sum(executions.touches(step, grain) for step in [*writes, *sources]) > MOST:
        return False
    covered = np.zeros(grain.number_of(base.size), bool)
    for read, write in copies:
        if not executions.are_together(read, write) or not executions.is_kept(read):
            return False
        for places, _ in executions.touched(write, grain):
            covered[places] = True
    return bool(covered.all())
