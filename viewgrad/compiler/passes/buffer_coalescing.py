"""Buffer coalescing: a gradient that is a copy of another one is computed in its buffer.

The gradient of `x` in `y[i] = a * y[i - 1] + x[i]` is a copy of that of `y`, so both can share a buffer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from ..access_analysis import AccessAnalysis, analysis_of
from ..loop_ir import Access, Buffer, Operand, Program, Read, Write, steps_of
from .dead_code import remove_steps

MOST: Final = 3_000_000  # the maximum number of inspected elements that are written


def coalesce_buffers(program: Program) -> Program:
    """Compute gradients that are only copied to gradients of inputs in the buffers of the latter."""
    wanted, unset = program.kept, program.unset
    made = {
        base for base in program.bases.values() if base.is_gradient and base.kind == "made" and base.name not in wanted
    }
    for base in [base for name, base in program.bases.items() if name in wanted and base.kind == "made"]:
        copies = [_copy(step) for step in _accesses(program, base)]
        sources = {None if copy is None else copy[0].base for copy in copies}
        source = sources.pop() if len(sources) == 1 else None
        if source is None or source not in made or source.size != base.size:
            continue
        if _are_last([copy for copy in copies if copy is not None], base, analysis_of(program)):
            remove_steps(program.block, {copy[1] for copy in copies if copy is not None})
            for step in _accesses(program, source):
                step.base = base
            unset.discard(base.name)
            if source.name in unset:
                unset.add(base.name)
            program.analysis = None
    return program


def _accesses(program: Program, base: Buffer) -> list[Access]:
    return [step for _, step in steps_of(program.block) if isinstance(step, Access) and step.base is base]


def _copy(step: Access) -> tuple[Read, Write] | None:
    """Return the read and the write of a copy to the same window of another buffer, or None for other steps."""
    if type(step) is not Write or step.unrecorded or not isinstance(step.value, Operand) or step.is_picked:
        return None
    read = step.value.step
    if type(read) is not Read or read.is_picked or step.value.labels != tuple(range(len(read.sizes))):
        return None
    same = read.sizes == step.sizes and read.offset == step.offset and read.strides == step.strides
    return (read, step) if same and read.base.dtype == step.base.dtype else None


def _are_last(copies: Sequence[tuple[Read, Write]], base: Buffer, analysis: AccessAnalysis) -> bool:
    """Return whether each element is copied and its source is not written afterwards."""
    writes = [write for _, write in copies]
    sources = [step for step in _accesses(analysis.program, copies[0][0].base) if isinstance(step, Write)]
    grain = analysis.grain([*writes, *sources], base.size)
    if sum(analysis.access_count(step, grain) for step in [*writes, *sources]) > MOST:
        return False
    covered = np.zeros(grain.number_of(base.size), bool)
    for read, write in copies:
        if not analysis.are_in_one_block(read, write) or not analysis.is_kept(read):
            return False
        for positions, _ in analysis.accesses(write, grain):
            covered[positions] = True
    return bool(covered.all())
