"""A program, ready to be run: its kernels, its buffers, and its gradient."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from ..errors import NotCompiledError
from ..trace.graph import Graph
from ..trace.signature import laid_out
from .access_analysis import AccessAnalysis
from .adjoint import Adjoint, Tape, differentiated
from .arena import Arena
from .backends.backends import Executor, careful_executor, chosen_executor
from .backends.numba_cache import KernelError
from .backends.numba_codegen import RAISED, SCRATCH, Kernel
from .build_ir import build
from .callbacks import raise_failure
from .element_types import FLOAT, SINGLE
from .gc_pause import rare_collections
from .loop_ir import Buffer, Write, steps_of
from .lowering import lowered
from .passes.buffer_coalescing import coalesce_buffers
from .passes.dead_code import bases_of, eliminate_dead_code, eliminate_dead_stores, promote_to_scalars, propagate_copies
from .passes.load_reuse import reuse_loads
from .passes.loop_carried import promote_loop_carried
from .passes.zero_propagation import begins_unset, propagate_zeros

__all__ = ["ERRORED", "CompiledProgram", "CompilerDefectError", "Run", "compiled_program"]

Array = np.ndarray[Any, Any]
PLAIN: Final = 0x401  # the flags of an array in row order that can be written to
PYTHON_ERRORS: Final = (ZeroDivisionError, OverflowError, ValueError)  # where NumPy gives inf or nan
ERRORED: Final = 1 << 30  # in place of the number of a line: an operator has raised an exception


class CompilerDefectError(NotCompiledError):
    """Compiling a program has failed in a way that nobody has thought of."""


class Run:
    """One run of a program.

    Attributes:
        buffers: what its gradient needs, by name.
        rooms, arrays: where they are parts of arrays: these, which go back to their rooms with the run.
        given: the inputs, as they were handed in.
    """

    __slots__ = ("arrays", "buffers", "given", "rooms")

    def __init__(
        self, buffers: dict[str, Any], rooms: Sequence[Arena] = (), arrays: Any = (), given: Sequence[Any] = ()
    ) -> None:
        self.buffers = buffers
        self.rooms = rooms
        self.arrays = arrays
        self.given = given

    def __del__(self) -> None:
        self.buffers.clear()
        for room in reversed(self.rooms):
            room.take_back(self.arrays)


def compiled_program(
    graph: Graph, wanted: Sequence[int], executor: Executor, irregular: frozenset[int] = frozenset()
) -> CompiledProgram:
    """The program of a graph; by Python where the executor cannot compile its source.

    Arguments:
        graph, wanted, executor, irregular: see `CompiledProgram`.

    Raises:
        NotCompiledError: for a graph that cannot be compiled.
    """
    try:
        try:
            with rare_collections():
                return CompiledProgram(graph, wanted, executor, irregular=irregular)
        except KernelError as error:
            program = CompiledProgram(graph, wanted, chosen_executor("python"), irregular=irregular)
            program.remark = error.message
            return program
    except (NotCompiledError, MemoryError):
        raise
    except Exception as error:  # the function itself still gives what it gives
        raise CompilerDefectError(
            f"compiling it failed with {type(error).__name__} ({str(error)[:200]}), which is a defect of the library; "
            "please report it with the function"
        ) from error


class Layout(NamedTuple):
    """Where everything is in the runs of a program whose buffers are all parts of arrays.

    Arguments:
        kernels: forward and backward.
        rooms: these arrays.
        results: of each, the name of the array, its shape, where it begins and ends, and its dtype.
        seeds: the bases of their gradients.
        made: of each gradient that is wanted its base, its shape, and whether it may begin with anything.
    """

    kernels: tuple[Kernel, Kernel]
    rooms: list[Arena]
    results: list[Any]
    seeds: list[Buffer | None]
    made: list[tuple[Buffer, tuple[int, ...], bool]]


class CompiledProgram:
    """A program, ready to be run.

    Arguments:
        graph: the graph that it was recorded as.
        wanted: the numbers of the inputs with respect to which it is to be differentiated.
        executor: what runs it.
        limit: how many terms may be left when all loops are found.
        irregular: the lines with small matrices that are left to NumPy, since they may be near singular ones.

    Raises:
        NotCompiledError: for a program that cannot be compiled.
    """

    def __init__(
        self, graph: Graph, wanted: Sequence[int], executor: Executor, limit: int = 3000,
        irregular: frozenset[int] = frozenset(),
    ) -> None:
        self.executor = executor
        native = executor.name == "numba"
        reserves: dict[Any, int] = {}
        stream, self.program = build(lambda spilled: lowered(graph, limit, spilled, native, irregular, reserves))
        self.recorded = stream.roller.taken
        self.indices = stream.indices  # the lines where a run ends if an index, or an array given, is another
        self.regular = stream.regular  # the lines where a run ends if a small matrix is near a singular one
        reuse_loads(self.program, AccessAnalysis(self.program))
        promote_loop_carried(self.program)
        executions = AccessAnalysis(self.program)
        self.work = executions.work()  # how many elements a run computes
        self.inputs: list[Buffer] = sorted(
            (base for base in self.program.bases.values() if base.kind == "input"), key=lambda base: base.initial
        )
        self.wanted = [self.inputs[number] for number in wanted]
        self.adjoint: Adjoint | None = None
        backward: AccessAnalysis | None = None
        unset: set[str] = set()
        if wanted:
            self.adjoint = differentiated(self.program, [base.name for base in self.wanted], executions)
            eliminate_dead_stores(self.adjoint.backward)
            propagate_copies(self.adjoint.backward)
            eliminate_dead_code(self.adjoint.backward)
            backward = AccessAnalysis(self.adjoint.backward)
            unset = propagate_zeros(self.adjoint.backward, backward, {f"d{base.name}" for base in self.wanted})
            propagate_copies(self.adjoint.backward)
            eliminate_dead_code(self.adjoint.backward)
            coalesce_buffers(self.adjoint, {f"d{base.name}" for base in self.wanted}, unset)
            reuse_loads(self.adjoint.backward, executions)
        propagate_copies(self.program)
        eliminate_dead_code(self.program)
        promote_to_scalars(self.program, set() if self.adjoint is None else bases_of(self.adjoint.backward))
        if self.adjoint is not None:
            wanted_gradients = {f"d{base.name}" for base in self.wanted}
            results = {result.base for result in self.program.results}
            promote_to_scalars(self.adjoint.backward, wanted_gradients | bases_of(self.program) | results)
        self.written = {step.base.name for _, step in steps_of(self.program.block) if isinstance(step, Write)}
        self.executions = executions
        self.tapes = {} if self.adjoint is None else {tape.name: tape for tape in self.adjoint.tapes}
        self._shapes = [value.type.shape for value in graph.inputs]  # type: ignore[attr-defined]
        self._single_inputs = [value.type.dtype == SINGLE for value in graph.inputs]  # type: ignore[attr-defined]
        self._single_results = [value.type.dtype == SINGLE for value in graph.outputs]  # type: ignore[union-attr]
        self._layouts: dict[int, tuple[int, ...]] = getattr(graph.signature, "layouts", {})
        self._lay_out(unset | self._begin_unset(backward))
        self._write_down()
        executions.forget()
        kernels = [kernel for kernel in (self.forward_kernel, self.backward_kernel) if kernel is not None]
        self.arrays = {name for kernel in kernels for name in kernel.arrays}
        tables = {name: values for kernel in kernels for name, values in kernel.tables.items()}
        self.tables = {name: executor.buffer(values, name.startswith("P")) for name, values in tables.items()}
        self.differentiable: list[int] = []  # the results that have a history
        self.remark = ""  # why it is run by another executor than was asked for
        self._read_again: list[Buffer] = []  # the inputs that the gradient reads as they are
        if self.backward_kernel is not None:
            read = self.backward_kernel.parameters
            self._read_again = [base for base in self.inputs if base.name in read and base.name not in self.written]

    def _lay_out(self, unset: set[str]) -> None:
        """Where everything is: what is made by itself, and what is a part of one array.

        Arguments:
            unset: the names of the bases that need no zeros at the start.
        """
        carves = self.executor.carves
        programs = [self.program] if self.adjoint is None else [self.program, self.adjoint.backward]
        carved = self.executor.carved(programs)
        bases = self.program.bases
        self._made: list[Buffer] = []
        self._loose_tapes: list[Tape] = []
        rooms = [Arena("R0", unset=False), Arena("R1", unset=True)]
        for base in bases.values():
            if base.kind != "made":
                continue
            plain = base.name in carved and base.dtype == float and not isinstance(base.initial, np.ndarray)
            if plain and (base.name in unset or not base.initial):
                rooms[base.name in unset].add(base.name, base.size)
            else:
                self._made.append(base)
        for tape in self.tapes.values():
            if tape.dtype == FLOAT and (carves or tape.sizes):
                rooms[True].add(tape.name, tape.entries)
            else:
                self._loose_tapes.append(tape)
        gradient_rooms = [Arena("dR0", unset=False), Arena("dR1", unset=True)]
        self._gradients_apart: list[Buffer] = []
        self._wanted_gradients: list[tuple[Buffer, tuple[int, ...], bool] | None] = []
        if self.adjoint is not None:
            used = bases_of(self.adjoint.backward)
            wanted = [self.adjoint.gradients.get(base.name) for base in self.wanted]
            shapes = [self._shapes[base.initial] for base in self.wanted]
            self._wanted_gradients = [
                None if base is None else (base, shape, base.name in unset) for base, shape in zip(wanted, shapes)
            ]
            for base in self.adjoint.gradients.values():
                if base.kind == "register" or base in wanted or base.name not in used:
                    continue
                if base.name in carved and base.dtype == float:
                    gradient_rooms[base.name in unset].add(base.name, base.size)
                else:
                    self._gradients_apart.append(base)
        self._rooms = [room for room in rooms if room.parts]
        self._gradient_rooms = [room for room in gradient_rooms if room.parts]
        self._rooms_of = {name: room for room in (*self._rooms, *self._gradient_rooms) for name in room.parts}
        self._results = []
        for result in self.program.results:
            room = self._rooms_of.get(result.base)
            start = result.offset + (0 if room is None else room.parts[result.base][0])
            stop = start + int(np.prod(result.shape, dtype=int))
            buffer = result.base if room is None else room.name
            self._results.append((buffer, result.shape, start, stop, bases[result.base].dtype))
        self.result_types = [
            (shape, SINGLE if single else dtype)
            for (_, shape, _, _, dtype), single in zip(self._results, self._single_results)
        ]

    def _begin_unset(self, backward: AccessAnalysis | None) -> set[str]:
        """The names of the bases that are written before they are looked at."""
        results: dict[str, list[tuple[int, int]]] = {}
        for result in self.program.results:
            count = int(np.prod(result.shape, dtype=int))
            results.setdefault(result.base, []).append((result.offset, result.offset + count))
        found = set()
        for base in self.program.bases.values():
            if base.kind == "made" and base.dtype == float and not isinstance(base.initial, np.ndarray):
                if begins_unset(base, self.executions, backward, results.get(base.name, [])):
                    found.add(base.name)
        return found

    def _write_down(self) -> None:
        executor, executions = self.executor, self.executions
        self.forward_kernel: Kernel = executor.write(self.program, executions, rooms=self._rooms_of)
        self.forward = executor.compiled(self.forward_kernel)
        self._scratch = {self.forward_kernel: _scratch(self.forward_kernel)}
        self.backward_kernel: Kernel | None = None
        if self.adjoint is not None:
            self.backward_kernel = executor.write(self.adjoint.backward, executions, rooms=self._rooms_of, down=True)
            self.backward = executor.compiled(self.backward_kernel)
            self._scratch[self.backward_kernel] = _scratch(self.backward_kernel)

    def _be_careful(self) -> None:
        """From now on give inf and nan where NumPy does; whoever runs it by Python's numbers has raised there."""
        executor = careful_executor(self.executor)
        if executor is None:
            raise  # the exception that is being handled
        self.executor = executor
        self._write_down()

    @property
    def tape_bytes(self) -> int:
        """How much memory the tapes of one run take."""
        return sum(8 * tape.entries for tape in self.tapes.values())

    def source(self) -> str:
        """The source of the program and of its gradient."""
        parts = ["# forward", self.forward_kernel.source]
        if self.backward_kernel is not None:
            parts += ["# backward", self.backward_kernel.source]
        return "\n".join(parts)

    def layout(self) -> Layout | None:
        """Where everything is, where inputs are not written to and all else is in rooms."""
        if self.adjoint is None or self.backward_kernel is None or not self.executor.carves:
            return None
        if self._made or self._loose_tapes:
            return None
        made = [each for each in self._wanted_gradients if each is not None]
        if len(made) < len(self.wanted) or any(self._single_inputs) or any(self._single_results):
            return None
        if self.written.intersection(base.name for base in self.inputs):
            return None
        kernels = self.forward_kernel, self.backward_kernel
        return Layout(kernels, [*self._rooms, *self._gradient_rooms], self._results, self.adjoint.seeds, made)

    def run(self, arrays: Sequence[Array]) -> tuple[int, list[Array], Run]:
        """Run the program.

        Returns:
            -1, or the number of the line where a value was another than when it was recorded, or `ERRORED` if an
            operator has raised an exception (which the function may catch); the results; what the gradient needs.
        """
        try:
            try:
                return self._run(arrays)
            except PYTHON_ERRORS:
                self._be_careful()
            return self._run(arrays)
        except Exception:
            return ERRORED, [], Run({}, [], [], arrays)

    def _run(self, arrays: Sequence[Array]) -> tuple[int, list[Array], Run]:
        executor, kept = self.executor, self.arrays
        buffers: dict[str, Any] = {}
        for base in self.inputs:
            buffers[base.name] = executor.buffer(self._flat(arrays[base.initial], base), base.name in kept)
        for base in self._made:
            buffers[base.name] = executor.buffer(filled(base), base.name in kept)
        for tape in self._loose_tapes:
            buffers[tape.name] = executor.buffer(np.empty(tape.entries, tape.dtype), bool(tape.sizes))
        arrays_of = []
        for room in self._rooms:
            array = buffers[room.name] = room.array()
            arrays_of.append(array)
        failed = self._call(self.forward, self.forward_kernel, buffers)
        results: list[Array] = []
        if failed < 0:
            for name, shape, start, stop, dtype in self._results:
                part = executor.array(buffers[name][start:stop], dtype).reshape(shape)
                number = len(results)
                layout = self._layouts.get(number)
                if self._single_results[number]:
                    part = part.astype(SINGLE)
                results.append(part.copy() if layout is None else laid_out(part, layout))
        return failed, results, Run(buffers, self._rooms, arrays_of, arrays)

    def gradients(
        self, run: Run, seeds: Sequence[Array | None], inputs: Sequence[Array] = ()
    ) -> list[Array | None]:
        """The gradients of the inputs that are wanted, from those of the results.

        Arguments:
            run: a run of the program.
            seeds: the gradients of its results; None for zeros.
            inputs: the inputs as they were then, where their memory may have been written to since.

        Returns:
            A new array for each, shaped like the input; None where the results do not depend on it.
        """
        try:
            return self._gradients(run, seeds, inputs)
        except PYTHON_ERRORS:
            self._be_careful()
        return self._gradients(run, seeds, inputs)

    def _gradients(self, run: Run, seeds: Sequence[Array | None], inputs: Sequence[Array]) -> list[Array | None]:
        adjoint = self.adjoint
        assert adjoint is not None and self.backward_kernel is not None
        executor = self.executor
        buffers = dict(run.buffers)
        for base in self._read_again if inputs else ():
            array = inputs[base.initial]
            if array is not run.given[base.initial] and isinstance(buffers[base.name], np.ndarray):
                buffers[base.name] = self._flat(array, base)
        for base in self._gradients_apart:
            buffers[base.name] = executor.buffer(np.zeros(base.size), base.name in self.arrays)
        arrays_of = []
        for room in self._gradient_rooms:
            array = buffers[room.name] = room.array()
            arrays_of.append(array)
        made: list[Array | None] = []
        for wanted in self._wanted_gradients:
            if wanted is None:
                made.append(None)
                continue
            base, shape, unset = wanted
            array = np.empty(shape) if unset else np.zeros(shape)
            flat = array if len(shape) == 1 else array.reshape(-1)
            buffers[base.name] = executor.buffer(flat, base.name in self.arrays)
            made.append(array)
        for seed, given in zip(adjoint.seeds, seeds):
            if seed is not None:
                flat = np.zeros(seed.size) if given is None else np.ascontiguousarray(given, float).reshape(-1)
                buffers[seed.name] = executor.buffer(flat, seed.name in self.arrays)
        self._call(self.backward, self.backward_kernel, buffers)
        if not executor.carves:
            for found, wanted in zip(made, self._wanted_gradients):
                if found is not None and wanted is not None and type(buffers[wanted[0].name]) is list:
                    found.reshape(-1)[:] = buffers[wanted[0].name]
        buffers.clear()
        for room in reversed(self._gradient_rooms):
            room.take_back(arrays_of)
        for number, base in enumerate(self.wanted):
            found = made[number]
            if found is not None and self._single_inputs[base.initial]:
                made[number] = found.astype(SINGLE)
        return made

    def _call(self, function: Any, kernel: Kernel, buffers: dict[str, Any]) -> int:
        if self.tables:
            buffers = buffers | self.tables
        scratch, arrays = self._scratch[kernel], []
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
        if array.dtype is not base.dtype and array.dtype != base.dtype:  # of single precision
            return np.array(array, base.dtype, order="C").reshape(-1)
        if type(array) is np.ndarray and array.flags.num & PLAIN == PLAIN and base.name not in self.written:
            return array if array.ndim == 1 else array.reshape(-1)
        flat = np.ascontiguousarray(array).reshape(-1)
        if base.name in self.written or not flat.flags.writeable:
            flat = flat.copy() if np.shares_memory(flat, array) else flat
        return flat


def filled(base: Buffer) -> Array:
    """The elements of a buffer at the start."""
    if isinstance(base.initial, np.ndarray):
        return base.initial.copy()
    if not base.initial:
        return np.zeros(base.size, base.dtype)
    return np.full(base.size, base.initial, base.dtype)


def _scratch(kernel: Kernel) -> Arena | None:
    """Where the buffers of a kernel are that one call of it needs alone."""
    if not kernel.scratch:
        return None
    room = Arena(SCRATCH, unset=True)
    room.add(SCRATCH, kernel.scratch)
    return room
