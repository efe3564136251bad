"""The pipeline of the compiler, from a trace to an executable program.

A trace is lowered to a loop IR, optimized, differentiated, and optimized again. Then its memory is planned, and its
source is generated. Each pass receives a program and returns it rewritten. If the debug flag of `verification.py` is
set, the IR is verified after each pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from ..errors import NotCompiledError
from ..trace.graph import Graph
from .access_analysis import analysis_of
from .adjoint import Adjoint, differentiated
from .backends.backends import Executor, chosen_executor, generate_code
from .backends.numba_cache import KernelError
from .build_ir import build
from .element_types import SINGLE
from .gc_pause import rare_collections
from .loop_ir import Buffer, Program
from .lowering import lowered
from .memory_plan import plan_memory
from .passes.buffer_coalescing import coalesce_buffers
from .passes.dead_code import bases_of, eliminate_dead_code, eliminate_dead_stores, promote_to_scalars, propagate_copies
from .passes.load_reuse import reuse_loads
from .passes.loop_carried import promote_loop_carried
from .passes.zero_propagation import propagate_zeros
from .runtime import Boundary, CompiledProgram
from .trace_stream import Stream
from .verification import verifies_passes
from .verify_ir import InvalidProgramError, verify_program

Pass = Callable[[Program], Program]
MAX_TERMS: Final = 3000  # the maximum number of operations outside loops

BEFORE_DIFFERENTIATION: Final[tuple[Pass, ...]] = (reuse_loads, promote_loop_carried)
OF_GRADIENT: Final[tuple[Pass, ...]] = (
    eliminate_dead_stores,
    propagate_copies,
    eliminate_dead_code,
    propagate_zeros,
    propagate_copies,
    eliminate_dead_code,
    coalesce_buffers,
    reuse_loads,
)
AFTER_DIFFERENTIATION: Final[tuple[Pass, ...]] = (propagate_copies, eliminate_dead_code, promote_to_scalars)


class CompilerDefectError(NotCompiledError):
    """Raised if the compiler failed in an unforeseen way."""


def compile_graph(
    graph: Graph, wanted: Sequence[int], executor: Executor, near_singular: frozenset[int] = frozenset()
) -> CompiledProgram:
    """Compile a trace; fall back to Python if the executor cannot compile the generated source.

    Arguments:
        graph: the trace.
        wanted: the numbers of the differentiated inputs.
        executor: the executor of the program.
        near_singular: the lines with small matrices that are left to NumPy because one was nearly singular.

    Raises:
        NotCompiledError: if the trace cannot be compiled.
        CompilerDefectError: if the compiler fails for another reason.
    """
    try:
        try:
            with rare_collections():
                return _compiled(graph, wanted, executor, near_singular)
        except KernelError as error:
            program = _compiled(graph, wanted, chosen_executor("python"), near_singular)
            program.remark = error.message
            return program
    except (NotCompiledError, MemoryError, InvalidProgramError):
        raise
    except Exception as error:  # the function itself still runs
        raise CompilerDefectError(
            f"compilation failed with {type(error).__name__} ({str(error)[:200]}), which is a bug in viewgrad; "
            "please report it with the function"
        ) from error


def _compiled(
    graph: Graph, wanted: Sequence[int], executor: Executor, near_singular: frozenset[int]
) -> CompiledProgram:
    stream, program = _lower(graph, executor, near_singular)
    program = _run_passes(program, BEFORE_DIFFERENTIATION)
    inputs = sorted([base for base in program.bases.values() if base.kind == "input"], key=lambda base: base.initial)
    differentiable = [inputs[number] for number in wanted]
    work = analysis_of(program).work()
    adjoint = _differentiate(program, differentiable) if wanted else None
    program.kept = frozenset() if adjoint is None else bases_of(adjoint.backward)
    program = _run_passes(program, AFTER_DIFFERENTIATION)
    if adjoint is not None:
        adjoint.backward.kept |= bases_of(program) | {result.base for result in program.results}
        adjoint.backward = _run_passes(adjoint.backward, (promote_to_scalars,))
    types: list[Any] = [value.type for value in graph.inputs]
    boundary = Boundary(
        [kind.dtype == SINGLE for kind in types],
        [value.type.dtype == SINGLE for value in graph.outputs],  # type: ignore[union-attr]
        getattr(graph.signature, "layouts", {}),
    )
    plan = plan_memory(program, adjoint, differentiable, [types[number].shape for number in wanted], executor)
    code = generate_code(executor, program, adjoint, plan.arena_of)
    analysis_of(program).forget()
    if adjoint is not None:
        adjoint.backward.analysis = None
    return CompiledProgram(
        program, adjoint, inputs, differentiable, boundary, plan, executor, code,
        traced_operations=stream.roller.operation_count, index_lines=stream.indices, regular_lines=stream.regular,
        work=work,
    )


def _lower(graph: Graph, executor: Executor, near_singular: frozenset[int]) -> tuple[Stream, Program]:
    native = executor.name == "numba"
    reserves: dict[Any, int] = {}
    stream, program = build(lambda spilled: lowered(graph, MAX_TERMS, spilled, native, near_singular, reserves))
    return stream, _run_passes(program, ())


def _differentiate(program: Program, wanted: Sequence[Buffer]) -> Adjoint:
    adjoint = differentiated(program, [base.name for base in wanted], analysis_of(program))
    adjoint.backward.kept = frozenset([f"d{base.name}" for base in wanted])
    adjoint.backward = _run_passes(adjoint.backward, OF_GRADIENT)
    return adjoint


def _run_passes(program: Program, passes: Sequence[Pass]) -> Program:
    """Run several passes, and verify the program before and after each of them if requested."""
    verifies = verifies_passes()
    if verifies:
        verify_program(program, "the program before the passes")
    for each in passes:
        program = each(program)
        if verifies:
            verify_program(program, f"the program after {each.__name__}")
    return program
