"""A program, ready to be run: its kernels, its buffers, and its gradient."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import attrs
import numpy as np

from ..symbolic.graph import Graph
from .adjoint import Adjoint, differentiated
from .building import build
from .calls import raise_failure
from .executions import Executions
from .executors import Executor, careful_executor
from .kernels import RAISED, Kernel
from .lowering import lowered
from .program import Base, Write, steps_of
from .tidying import tidied

__all__ = ["CompiledProgram", "Run"]

Array = np.ndarray[Any, Any]
PYTHON_ERRORS: Final = (ZeroDivisionError, OverflowError, ValueError)  # where NumPy gives inf or nan


@attrs.define(eq=False)
class Run:
    """One run of a program: the buffers that its gradient needs."""

    buffers: dict[str, Any]


class CompiledProgram:
    """A program, ready to be run.

    Arguments:
        graph: the graph that it was recorded as.
        wanted: the numbers of the inputs with respect to which it is to be differentiated.
        executor: what runs it.
        limit: how many terms may be left when all loops are found.

    Raises:
        NotCompiledError: for a program that cannot be compiled.
    """

    def __init__(self, graph: Graph, wanted: Sequence[int], executor: Executor, limit: int = 3000) -> None:
        self.executor = executor
        stream, self.program = build(lambda spilled: lowered(graph, limit, spilled, executor.name == "numba"))
        self.recorded = stream.roller.taken
        executions = Executions(self.program)
        self.inputs: list[Base] = sorted(
            (base for base in self.program.bases.values() if base.kind == "input"), key=lambda base: base.initial
        )
        self.wanted = [self.inputs[number] for number in wanted]
        self.adjoint: Adjoint | None = None
        if wanted:
            self.adjoint = differentiated(self.program, [base.name for base in self.wanted], executions)
            tidied(self.adjoint.backward)
        tidied(self.program)
        self.written = {step.base.name for _, step in steps_of(self.program.block) if isinstance(step, Write)}
        self.executions = executions
        self._write_down()
        kernels = [kernel for kernel in (self.forward_kernel, self.backward_kernel) if kernel is not None]
        self.arrays = {name for kernel in kernels for name in kernel.arrays}
        tables = {name: values for kernel in kernels for name, values in kernel.tables.items()}
        self.tables = {name: executor.buffer(values, name.startswith("P")) for name, values in tables.items()}
        self.tapes = {} if self.adjoint is None else {tape.name: tape for tape in self.adjoint.tapes}
        self.differentiable: list[int] = []  # the results that have a history
        self.read_backward: set[str] = set()  # the inputs that the gradient reads as they are
        if self.backward_kernel is not None:
            self.read_backward = {base.name for base in self.inputs if base.name in self.backward_kernel.parameters}
            self.read_backward -= self.written

    def _write_down(self) -> None:
        executor, executions = self.executor, self.executions
        self.forward_kernel: Kernel = executor.write(self.program, executions)
        self.forward = executor.compiled(self.forward_kernel)
        self.backward_kernel: Kernel | None = None
        if self.adjoint is not None:
            self.backward_kernel = executor.write(self.adjoint.backward, executions, down=True)
            self.backward = executor.compiled(self.backward_kernel)

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

    def run(self, arrays: Sequence[Array]) -> tuple[int, list[Array], Run]:
        """Run the program.

        Returns:
            -1, or the number of the line where a value was another than when it was recorded; the results; what the
            gradient needs.
        """
        try:
            return self._run(arrays)
        except PYTHON_ERRORS:
            self._be_careful()
        return self._run(arrays)

    def _run(self, arrays: Sequence[Array]) -> tuple[int, list[Array], Run]:
        executor = self.executor
        program = self.program
        buffers: dict[str, Any] = {}
        for name, base in program.bases.items():
            if base.kind == "input":
                buffers[name] = executor.buffer(self._flat(arrays[base.initial], base), name in self.arrays)
            elif base.kind == "made":
                buffers[name] = executor.buffer(filled(base), name in self.arrays)
        for name, tape in self.tapes.items():
            buffers[name] = executor.buffer(np.empty(tape.entries), bool(tape.sizes))
        failed = self._call(self.forward, self.forward_kernel, buffers)
        results = []
        if failed < 0:
            for result in program.results:
                base = program.bases[result.base]
                size = int(np.prod(result.shape, dtype=int))
                part = executor.array(buffers[result.base][result.offset : result.offset + size], base.dtype)
                results.append(part.reshape(result.shape).copy())
        return failed, results, Run(buffers)

    def gradients(
        self, run: Run, seeds: Sequence[Array | None], inputs: Sequence[Array] = ()
    ) -> list[Array | None]:
        """The gradients of the inputs that are wanted, from those of the results.

        Arguments:
            run: a run of the program.
            seeds: the gradients of its results; None for zeros.
            inputs: the inputs as they were then, where their memory may have been written to since.
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
        for base in self.inputs if inputs else ():
            if base.name in self.read_backward and isinstance(buffers[base.name], np.ndarray):
                buffers[base.name] = self._flat(inputs[base.initial], base)
        for base in adjoint.gradients.values():
            if base.kind != "register":
                buffers[base.name] = executor.buffer(np.zeros(base.size), base.name in self.arrays)
        for seed, given in zip(adjoint.seeds, seeds):
            if seed is not None:
                flat = np.zeros(seed.size) if given is None else np.array(given, float).reshape(-1)
                buffers[seed.name] = executor.buffer(flat, seed.name in self.arrays)
        self._call(self.backward, self.backward_kernel, buffers)
        found: list[Array | None] = []
        for base in self.wanted:
            gradient = adjoint.gradients.get(base.name)
            found.append(None if gradient is None else executor.array(buffers[gradient.name], base.dtype))
        return found

    def _call(self, function: Any, kernel: Kernel, buffers: dict[str, Any]) -> int:
        arguments = [
            self.tables[name] if name in self.tables else buffers[name] for name in kernel.parameters
        ]
        failed = int(function(*arguments))
        if failed == RAISED:
            raise_failure()
        return failed

    def _flat(self, array: Array, base: Base) -> Array:
        flat = np.ascontiguousarray(array).reshape(-1)
        if base.name in self.written or not flat.flags.writeable:
            flat = flat.copy() if np.shares_memory(flat, array) else flat
        return flat


def filled(base: Base) -> Array:
    """The elements of a buffer at the start."""
    if isinstance(base.initial, np.ndarray):
        return base.initial.copy()
    if not base.initial:
        return np.zeros(base.size, base.dtype)
    return np.full(base.size, base.initial, base.dtype)
