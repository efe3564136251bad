"""Memory planning: which buffers, tapes and gradients share an arena, and which are allocated separately."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import attrs
import numpy as np

from .access_analysis import AccessAnalysis, analysis_of
from .adjoint import Adjoint, Tape
from .arena import Arena
from .backends.backends import Executor
from .element_types import FLOAT
from .loop_ir import Buffer, Program
from .passes.dead_code import bases_of
from .passes.zero_propagation import begins_unset

Shape = tuple[int, ...]


class Placement(NamedTuple):
    """The position of a result at the end of a run.

    Arguments:
        name: the name of the buffer or arena.
        shape: the shape of the result.
        start, stop: the positions of its first element and behind its last.
        dtype: the dtype of the elements.
    """

    name: str
    shape: Shape
    start: int
    stop: int
    dtype: np.dtype[np.generic]


class Gradient(NamedTuple):
    """The buffer for the gradient of an input, the shape, and whether the buffer may be uninitialized."""

    buffer: Buffer
    shape: Shape
    unset: bool


@attrs.frozen(eq=False)
class MemoryPlan:
    """The memory of all buffers and results in runs of a program.

    Arguments:
        arenas, gradient_arenas: the arenas of the program and of its gradient.
        buffers, tapes: the buffers and tapes that are allocated separately.
        gradients: the buffers of the gradient program that are allocated separately.
        wanted: the gradients of the differentiated inputs; None for zeros.
        results: the results.
    """

    arenas: list[Arena]
    gradient_arenas: list[Arena]
    buffers: list[Buffer]
    tapes: list[Tape]
    gradients: list[Buffer]
    wanted: list[Gradient | None]
    results: list[Placement]

    @property
    def arena_of(self) -> dict[str, Arena]:
        """The arenas of buffers and tapes, by name."""
        return {name: arena for arena in (*self.arenas, *self.gradient_arenas) for name in arena.parts}


def plan_memory(
    program: Program, adjoint: Adjoint | None, wanted: Sequence[Buffer], shapes: Sequence[Shape], executor: Executor
) -> MemoryPlan:
    """Plan the memory of a program and its gradient.

    Arguments:
        program, adjoint: the program and its gradient, if any.
        wanted: the differentiated inputs.
        shapes: the shapes of these inputs.
        executor: the executor of the program.
    """
    arena_buffers = executor.arena_buffers([program] if adjoint is None else [program, adjoint.backward])
    unset = _unset(program, adjoint) | (set() if adjoint is None else adjoint.backward.unset)
    arenas = [Arena("R0", unset=False), Arena("R1", unset=True)]
    gradient_arenas = [Arena("dR0", unset=False), Arena("dR1", unset=True)]
    buffers: list[Buffer] = []
    for base in program.bases.values():
        if base.kind != "made":
            continue
        plain = base.name in arena_buffers and base.dtype == float and not isinstance(base.initial, np.ndarray)
        if plain and (base.name in unset or not base.initial):
            arenas[base.name in unset].add(base.name, base.size)
        else:
            buffers.append(base)
    tapes: list[Tape] = []
    gradients: list[Buffer] = []
    found: list[Gradient | None] = []
    if adjoint is not None:
        for tape in adjoint.tapes:
            if tape.dtype == FLOAT and (executor.carves or tape.sizes):
                arenas[True].add(tape.name, tape.entries)
            else:
                tapes.append(tape)
        own = [adjoint.gradients.get(base.name) for base in wanted]
        found = [
            None if base is None else Gradient(base, shape, base.name in unset)
            for base, shape in zip(own, shapes, strict=True)
        ]
        used = bases_of(adjoint.backward)
        for base in adjoint.gradients.values():
            if base.kind == "register" or base in own or base.name not in used:
                continue
            if base.name in arena_buffers and base.dtype == float:
                gradient_arenas[base.name in unset].add(base.name, base.size)
            else:
                gradients.append(base)
    arenas = [arena for arena in arenas if arena.parts]
    gradient_arenas = [arena for arena in gradient_arenas if arena.parts]
    return MemoryPlan(arenas, gradient_arenas, buffers, tapes, gradients, found, _placements(program, arenas))


def _placements(program: Program, arenas: Sequence[Arena]) -> list[Placement]:
    arena_of = {name: arena for arena in arenas for name in arena.parts}
    found = []
    for result in program.results:
        arena = arena_of.get(result.base)
        start = result.offset + (0 if arena is None else arena.parts[result.base][0])
        name = result.base if arena is None else arena.name
        dtype = program.bases[result.base].dtype
        found.append(Placement(name, result.shape, start, start + math.prod(result.shape), dtype))
    return found


def _unset(program: Program, adjoint: Adjoint | None) -> set[str]:
    """Return the names of the buffers of a program that are written before they are read."""
    forward = analysis_of(program)
    backward: AccessAnalysis | None = None if adjoint is None else analysis_of(adjoint.backward)
    results: dict[str, list[tuple[int, int]]] = {}
    for result in program.results:
        results.setdefault(result.base, []).append((result.offset, result.offset + math.prod(result.shape)))
    return {
        base.name for base in program.bases.values()
        if base.kind == "made" and base.dtype == float and not isinstance(base.initial, np.ndarray)
        and begins_unset(base, forward, backward, results.get(base.name, []))
    }  # fmt: skip
