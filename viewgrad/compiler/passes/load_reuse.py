"""Load reuse: reuse scalars that were already read, written or computed in the same block."""

from __future__ import annotations

from typing import Any

import attrs

from ..access_analysis import AccessAnalysis, analysis_of
from ..loop_ir import (
    Access,
    Block,
    Buffer,
    Call,
    Check,
    Compute,
    Move,
    Number,
    Operand,
    Program,
    Read,
    Step,
    Value,
    Write,
    bodies_of,
    steps_of,
)
from .dead_code import remove_steps

Known = dict[Buffer, list[tuple[Access, Step]]]


def reuse_loads(program: Program) -> Program:
    """Replace scalars that were already read, written or computed in the same block by the earlier values."""
    found: dict[Step, Step] = {}
    _find_reused(program.block, analysis_of(program), found)
    if not found:
        return program
    for _, step in steps_of(program.block):
        if isinstance(step, (Compute, Call)):
            step.operands = tuple([_replacement(value, found) for value in step.operands])
        elif isinstance(step, (Write, Check)):
            step.value = _replacement(step.value, found)
        if isinstance(step, Access) and step.moves:
            step.moves = tuple([Move(_replacement(move.value, found), move.stride) for move in step.moves])  # type: ignore[arg-type]
    remove_steps(program.block, set(found))
    return program


def _find_reused(block: Block, analysis: AccessAnalysis, found: dict[Step, Step]) -> None:
    """Find the known values in a block; `found` maps each step to the one that replaces it."""
    known: Known = {}
    computed: dict[Any, Step] = {}
    for item in block.items:
        if not isinstance(item, Step):
            for body in bodies_of(item):
                _find_reused(body, analysis, found)
                for _, step in steps_of(body):
                    if isinstance(step, Write):
                        known.pop(step.base, None)
        elif type(item) is Read and not item.sizes:
            for window, step in known.get(item.base, ()):
                if _is_same(window, item):
                    found[item] = found.get(step, step)
                    break
            else:
                known.setdefault(item.base, []).append((item, item))
        elif type(item) is Compute and not item.sizes:
            key = _formula(item, found)
            there = computed.setdefault(key, item)
            if there is not item:
                found[item] = there
        elif isinstance(item, Write):
            _invalidate(block, item, known, analysis)
            value = item.value
            if type(item) is Write and not item.sizes and not item.unrecorded and isinstance(value, Operand):
                if getattr(value.step, "dtype", None) == item.base.dtype:
                    known.setdefault(item.base, []).append((item, found.get(value.step, value.step)))


def _formula(step: Compute, found: dict[Step, Step]) -> Any:
    """Return the operation and operands of a scalar as a key."""
    taken: list[Any] = []
    for value in step.operands:
        if isinstance(value, Operand):
            taken.append((found.get(value.step, value.step), value.labels))
        else:
            taken.append((type(value.value), repr(value.value)) if isinstance(value, Number) else id(value))
    return step.operator, step.expression, step.dtype, step.out, tuple(taken)


def _invalidate(block: Block, write: Write, known: Known, analysis: AccessAnalysis) -> None:
    """Drop the known values of a buffer that a write may overwrite."""
    kept = []
    for there, step in known.get(write.base, ()):
        if not _is_same(there, write) and analysis.are_apart((block.name, there), (block.name, write)):
            kept.append((there, step))
    known[write.base] = kept


def _is_same(first: Access, second: Access) -> bool:
    if first.moves or second.moves:
        return False
    is_scalar = not first.sizes and not second.sizes
    return is_scalar and first.positions == second.positions and first.offset == second.offset


def _replacement(value: Value, found: dict[Step, Step]) -> Value:
    if isinstance(value, Operand) and value.step in found:
        return attrs.evolve(value, step=found[value.step])
    return value
