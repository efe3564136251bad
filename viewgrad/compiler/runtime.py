"""Runs of a compiled program and of its gradient."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import attrs
import numpy as np

from ..trace.signature import laid_out
from ..type_aliases import Array
from .adjoint import Adjoint, Tape
from .arena import Arena
from .backends.backends import Code, Executor, careful_executor, generate_code
from .backends.codegen import RAISED, Kernel
from .callbacks import raise_failure
from .element_types import SINGLE
from .loop_ir import Buffer, Program, Write, steps_of
from .memory_plan import Gradient, MemoryPlan, Placement

PLAIN: Final = 0x401  # the flags of a writeable array in C order
PYTHON_ERRORS: Final = (ZeroDivisionError, OverflowError, ValueError)  # raised where NumPy returns inf or nan
ERRORED: Final = 1 << 30  # returned instead of a line number: an operator raised an exception


@attrs.define(eq=False)
class Run:
    """A run of a program.

    Attributes:
        buffers: the buffers that the gradient needs, by name.
        arenas, arrays: the arenas that contain some of them, and their arrays, which are returned to the arenas with
            the run.
        given: the inputs.
    """

    buffers: dict[str, Any]
    arenas: Sequence[Arena] = ()
    arrays: Any = ()
    given: Sequence[Any] = ()

    def __del__(self) -> None:
        self.buffers.clear()
        for arena in reversed(self.arenas):
            arena.take_back(self.arrays)


class Boundary(NamedTuple):
    """The conversions between inputs and results and the buffers of a program.

    Arguments:
        single_inputs, single_results: the inputs and results in single precision.
        layouts: the memory layouts of results that are not in C order, by number.
    """

    single_inputs: list[bool]
    single_results: list[bool]
    layouts: Mapping[int, tuple[int, ...]]


class Layout(NamedTuple):
    """The positions of all values in runs whose buffers are in arenas.

    Arguments:
        kernels: the forward and backward kernels.
        arenas: the arenas.
        results: the results.
        seeds: the buffers of the gradients of results.
        gradients: the gradients of inputs.
    """

    kernels: tuple[Kernel, Kernel]
    arenas: list[Arena]
    results: list[Placement]
    seeds: list[Buffer | None]
    gradients: list[Gradient]


@attrs.define(eq=False)
class CompiledProgram:
    """A program with its kernels and its memory plan.

    Arguments:
        program, adjoint: the program and its gradient, if any.
        inputs: the buffers of its inputs.
        wanted: the differentiated inputs.
        boundary: the conversions between inputs and results and their buffers.
        plan: the plan of its memory.
        executor: its executor.
        code: its kernels.
        traced_operations: the number of operations of the trace.
        index_lines: the lines whose guard fails if an index or an array argument has changed.
        regular_lines: the lines whose guard fails if a small matrix is nearly singular.
        work: the number of elements that a run computes.
        differentiable: the numbers of the results that have a history.
        remark: the reason for not using the requested executor, if any.
    """

    program: Program
    adjoint: Adjoint | None
    inputs: list[Buffer]
    wanted: list[Buffer]
    boundary: Boundary
    plan: MemoryPlan
    executor: Executor
    code: Code
    traced_operations: int = attrs.field(kw_only=True)
    index_lines: set[int] = attrs.field(kw_only=True)
    regular_lines: set[int] = attrs.field(kw_only=True)
    work: int = attrs.field(kw_only=True)
    differentiable: list[int] = attrs.Factory(list)
    remark: str = ""
    written: set[str] = attrs.field(init=False)
    _read_again: list[Buffer] = attrs.field(init=False)  # inputs that the gradient reads and that are not overwritten

    @written.default
    def _written(self) -> set[str]:
        return {step.base.name for _, step in steps_of(self.program.block) if isinstance(step, Write)}

    @_read_again.default
    def _inputs_reread(self) -> list[Buffer]:
        read = () if self.code.backward_kernel is None else self.code.backward_kernel.parameters
        return [base for base in self.inputs if base.name in read and base.name not in self.written]

    @property
    def tapes(self) -> dict[str, Tape]:
        """The tapes, by name."""
        return {} if self.adjoint is None else {tape.name: tape for tape in self.adjoint.tapes}

    @property
    def tape_bytes(self) -> int:
        """The memory of the tapes of a run, in bytes."""
        return sum(8 * tape.entries for tape in self.tapes.values())

    @property
    def result_types(self) -> list[tuple[tuple[int, ...], np.dtype[Any]]]:
        """The shape and dtype of each result."""
        return [
            (result.shape, SINGLE if is_single else result.dtype)
            for result, is_single in zip(self.plan.results, self.boundary.single_results, strict=True)
        ]

    def source(self) -> str:
        """Return the source of the program and of its gradient."""
        parts = ["# forward", self.code.forward_kernel.source]
        if self.code.backward_kernel is not None:
            parts += ["# backward", self.code.backward_kernel.source]
        return "\n".join(parts)

    def layout(self) -> Layout | None:
        """Return the positions of all values, or None if inputs are written to or a buffer is not in an arena."""
        plan, kernels = self.plan, (self.code.forward_kernel, self.code.backward_kernel)
        if self.adjoint is None or kernels[1] is None or not self.executor.carves or plan.buffers or plan.tapes:
            return None
        gradients = [each for each in plan.wanted if each is not None]
        if len(gradients) < len(self.wanted) or any(self.boundary.single_inputs) or any(self.boundary.single_results):
            return None
        if self.written.intersection(base.name for base in self.inputs):
            return None
        arenas = [*plan.arenas, *plan.gradient_arenas]
        return Layout((kernels[0], kernels[1]), arenas, plan.results, self.adjoint.seeds, gradients)

    def run(self, arrays: Sequence[Array]) -> tuple[int, list[Array], Run]:
        """Run the program.

        Returns:
            -1, the number of the line where a guard failed, or `ERRORED` if an operator raised an exception (which the
            function may catch); the results; the saved values for the gradient.
        """
        try:
            try:
                return self._run(arrays)
            except PYTHON_ERRORS:
                self._switch_to_careful()
            return self._run(arrays)
        except Exception:
            return ERRORED, [], Run({}, [], [], arrays)

    def gradients(
        self, run: Run, seeds: Sequence[Array | None], inputs: Sequence[Array] = ()
    ) -> list[Array | None]:
        """Compute the gradients of the differentiated inputs.

        Arguments:
            run: a run of the program.
            seeds: the gradients of its results; None for zeros.
            inputs: the inputs at the time of the run, if their memory may have been written to since.

        Returns:
            A new array with the shape of each input; None if the results do not depend on it.
        """
        try:
            return self._gradients(run, seeds, inputs)
        except PYTHON_ERRORS:
            self._switch_to_careful()
        return self._gradients(run, seeds, inputs)

    def _run(self, arrays: Sequence[Array]) -> tuple[int, list[Array], Run]:
        executor, plan, kept = self.executor, self.plan, self.code.arrays
        buffers: dict[str, Any] = {}
        for base in self.inputs:
            buffers[base.name] = executor.buffer(self._flat(arrays[base.initial], base), base.name in kept)
        for base in plan.buffers:
            buffers[base.name] = executor.buffer(_initial(base), base.name in kept)
        for tape in plan.tapes:
            buffers[tape.name] = executor.buffer(np.empty(tape.entries, tape.dtype), bool(tape.sizes))
        arrays_of = []
        for arena in plan.arenas:
            array = buffers[arena.name] = arena.array()
            arrays_of.append(array)
        failed = self._call(self.code.forward, self.code.forward_kernel, buffers)
        results: list[Array] = []
        if failed < 0:
            for name, shape, start, stop, dtype in plan.results:
                part = executor.array(buffers[name][start:stop], dtype).reshape(shape)
                number = len(results)
                layout = self.boundary.layouts.get(number)
                if self.boundary.single_results[number]:
                    part = part.astype(SINGLE)
                results.append(part.copy() if layout is None else laid_out(part, layout))
        return failed, results, Run(buffers, plan.arenas, arrays_of, arrays)

    def _gradients(self, run: Run, seeds: Sequence[Array | None], inputs: Sequence[Array]) -> list[Array | None]:
        adjoint, code, plan = self.adjoint, self.code, self.plan
        assert adjoint is not None and code.backward_kernel is not None
        executor = self.executor
        buffers = dict(run.buffers)
        for base in self._read_again if inputs else ():
            array = inputs[base.initial]
            if array is not run.given[base.initial] and isinstance(buffers[base.name], np.ndarray):
                buffers[base.name] = self._flat(array, base)
        for base in plan.gradients:
            buffers[base.name] = executor.buffer(np.zeros(base.size), base.name in code.arrays)
        arrays_of = []
        for arena in plan.gradient_arenas:
            array = buffers[arena.name] = arena.array()
            arrays_of.append(array)
        made: list[Array | None] = []
        for wanted in plan.wanted:
            if wanted is None:
                made.append(None)
                continue
            base, shape, unset = wanted
            array = np.empty(shape) if unset else np.zeros(shape)
            flat = array if len(shape) == 1 else array.reshape(-1)
            buffers[base.name] = executor.buffer(flat, base.name in code.arrays)
            made.append(array)
        for seed, given in zip(adjoint.seeds, seeds):
            if seed is not None:
                flat = np.zeros(seed.size) if given is None else np.ascontiguousarray(given, float).reshape(-1)
                buffers[seed.name] = executor.buffer(flat, seed.name in code.arrays)
        self._call(code.backward, code.backward_kernel, buffers)
        if not executor.carves:
            for found, wanted in zip(made, plan.wanted):
                if found is not None and wanted is not None and type(buffers[wanted.buffer.name]) is list:
                    found.reshape(-1)[:] = buffers[wanted.buffer.name]
        buffers.clear()
        for arena in reversed(plan.gradient_arenas):
            arena.take_back(arrays_of)
        for number, base in enumerate(self.wanted):
            found = made[number]
            if found is not None and self.boundary.single_inputs[base.initial]:
                made[number] = found.astype(SINGLE)
        return made

    def _switch_to_careful(self) -> None:
        """Switch to the program that returns inf and nan where Python's floats raise."""
        executor = careful_executor(self.executor)
        if executor is None:
            raise  # the exception being handled
        self.executor = executor
        self.code = generate_code(executor, self.program, self.adjoint, self.plan.arena_of)

    def _call(self, function: Any, kernel: Kernel, buffers: dict[str, Any]) -> int:
        tables = self.code.tables
        if tables:
            buffers = buffers | tables
        scratch, arrays = self.code.scratch[kernel], []
        if scratch is not None:
            arrays.append(scratch.array())
            failed: int = function(*[buffers[name] for name in kernel.parameters[:-1]], arrays[0])
            scratch.take_back(arrays)
        else:
            failed = function(*[buffers[name] for name in kernel.parameters])
        if failed == RAISED:
            raise_failure()
        return failed

    def _flat(self, array: Array, base: Buffer) -> Array:
        """Return an input as the elements of its buffer."""
        if array.dtype is not base.dtype and array.dtype != base.dtype:  # in single precision
            return np.array(array, base.dtype, order="C").reshape(-1)
        if type(array) is np.ndarray and array.flags.num & PLAIN == PLAIN and base.name not in self.written:
            return array if array.ndim == 1 else array.reshape(-1)
        flat = np.ascontiguousarray(array).reshape(-1)
        if base.name in self.written or not flat.flags.writeable:
            flat = flat.copy() if np.shares_memory(flat, array) else flat
        return flat


def _initial(base: Buffer) -> Array:
    """Return the initial elements of a buffer."""
    if isinstance(base.initial, np.ndarray):
        return base.initial.copy()
    if not base.initial:
        return np.zeros(base.size, base.dtype)
    return np.full(base.size, base.initial, base.dtype)
