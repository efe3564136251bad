"""Executors: Python, with lists of floats, or Numba, with arrays."""

from __future__ import annotations

import functools
import importlib.util
import itertools
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any, Final, Protocol

import attrs
import numpy as np

from ...operators.codegen.source_cache import list_source
from ...type_aliases import Array
from .. import arena
from ..access_analysis import analysis_of
from ..adjoint import Adjoint
from ..arena import Arena
from ..loop_ir import Program
from .array_runtime import CAREFUL, VECTOR_FUNCTIONS
from .codegen import SCRATCH, Kernel
from .numba_cache import native_function
from .numba_codegen import write_kernel
from .numpy_codegen import array_bases
from .row_fusion import write_vectors
from .scalar_runtime import FUNCTIONS, MATH

ZEROS: Final = {
    "zeros": lambda n, dtype=np.float64: [dtype(0).item()] * n, "array_zeros": np.zeros, "int64": np.int64,
    "bool_": np.bool_,
}  # fmt: skip
_numbers: Final = itertools.count()


class Executor(Protocol):
    """The interface of executors, which run programs."""

    name: str
    carves: bool  # whether every buffer can be part of an arena

    @property
    def write(self) -> Callable[..., Kernel]:
        """The function that writes a program as source."""

    def arena_buffers(self, programs: Sequence[Program]) -> Set[str]:
        """Return the names of the bases that can be part of an arena."""

    def compiled(self, kernel: Kernel) -> Callable[..., int]:
        """Return the function `kernel` defined by a source."""

    def buffer(self, array: Array, as_array: bool) -> Any:
        """Return a buffer with the elements of an array, whose memory it may reuse.

        Arguments:
            array: the array.
            as_array: whether windows with dimensions are taken of the buffer.
        """

    def array(self, buffer: Any, dtype: np.dtype[Any]) -> Array:
        """Return the elements of a buffer as an array."""


class PythonExecutor:
    """Runs programs on lists of Python floats.

    Arguments:
        careful: whether to return inf and nan where NumPy does; otherwise the executor is faster and raises an error.
    """

    name = "python"
    carves = False

    def __init__(self, careful: bool = False) -> None:
        self.careful = careful

    @property
    def write(self) -> Callable[..., Kernel]:
        """The function that writes a program as source."""
        return functools.partial(write_vectors, careful=self.careful)

    def arena_buffers(self, programs: Sequence[Program]) -> Set[str]:
        """Return the names of large bases, whose memory is worth reusing."""
        return {
            name for program in programs for name in array_bases(program) if program.bases[name].size >= arena.LEAST
        }

    def compiled(self, kernel: Kernel) -> Callable[..., int]:
        """Return the function `kernel` defined by a source."""
        space: dict[str, Any] = {**MATH, **VECTOR_FUNCTIONS, **ZEROS}
        space.update({function.__name__: function for function in FUNCTIONS})
        if self.careful:
            space.update(CAREFUL)
        function = _executed(kernel.source, space | kernel.functions)
        return np.errstate(all="ignore")(function) if kernel.quiet else function

    def buffer(self, array: Array, as_array: bool) -> Any:
        """Return the array itself, or a list of its elements."""
        return array if as_array else array.tolist()

    def array(self, buffer: Any, dtype: np.dtype[Any]) -> Array:
        """Return the elements of a buffer."""
        return buffer if isinstance(buffer, np.ndarray) else np.array(buffer, dtype)


class NumbaExecutor:
    """Runs programs on arrays, compiled by Numba."""

    name = "numba"
    carves = True

    @property
    def write(self) -> Callable[..., Kernel]:
        """The function that writes a program as source."""
        return write_kernel

    def arena_buffers(self, programs: Sequence[Program]) -> Set[str]:
        """Return the names of all bases."""
        return {name for program in programs for name in program.bases}

    def compiled(self, kernel: Kernel) -> Callable[..., int]:
        """Return the function `kernel` defined by a source."""
        return native_function(kernel)

    def buffer(self, array: Array, as_array: bool) -> Any:
        """Return the array itself."""
        return array

    def array(self, buffer: Any, dtype: np.dtype[Any]) -> Array:
        """Return the buffer itself."""
        found: Array = buffer
        return found


@attrs.frozen(eq=False)
class Code:
    """The kernels of a program, with their constants and memory.

    Arguments:
        forward_kernel, backward_kernel: their sources; the second is None if there is no gradient.
        forward, backward: the functions.
        scratch: the arena of each kernel's own buffers, or None.
        arrays: the names of the buffers that are arrays in executors that also use lists.
        tables: the tables of constants, by name.
    """

    forward_kernel: Kernel
    backward_kernel: Kernel | None
    forward: Callable[..., int]
    backward: Callable[..., int] | None
    scratch: dict[Kernel, Arena | None]
    arrays: set[str]
    tables: dict[str, Any]


def generate_code(
    executor: Executor, program: Program, adjoint: Adjoint | None, arena_of: Mapping[str, Arena]
) -> Code:
    """Generate the kernels of a program and its gradient.

    Arguments:
        executor: the executor that runs them.
        program, adjoint: the program and its gradient, if any.
        arena_of: the arenas of buffers and tapes, by the names of the latter.
    """
    analysis = analysis_of(program)
    kernels = [executor.write(program, analysis, arenas=arena_of)]
    if adjoint is not None:
        kernels.append(executor.write(adjoint.backward, analysis, arenas=arena_of, down=True))
    functions = [executor.compiled(kernel) for kernel in kernels]
    tables = {name: values for kernel in kernels for name, values in kernel.tables.items()}
    return Code(
        kernels[0], None if adjoint is None else kernels[1], functions[0], None if adjoint is None else functions[1],
        {kernel: _scratch(kernel) for kernel in kernels}, {name for kernel in kernels for name in kernel.arrays},
        {name: executor.buffer(values, name.startswith("P")) for name, values in tables.items()},
    )


def _scratch(kernel: Kernel) -> Arena | None:
    if not kernel.scratch:
        return None
    arena = Arena(SCRATCH, unset=True)
    arena.add(SCRATCH, kernel.scratch)
    return arena


def chosen_executor(name: str | None) -> Executor:
    """Return the executor with the given name, by default the fastest installed one.

    Raises:
        ValueError: for another name.
        ModuleNotFoundError: for "numba" if it is not installed.
    """
    if name is None:
        name = "numba" if importlib.util.find_spec("numba") is not None else "python"
    if name == "python":
        return PythonExecutor()
    if name == "numba":
        if importlib.util.find_spec("numba") is None:
            raise ModuleNotFoundError("executor='numba' needs Numba: pip install 'viewgrad[compile]'")
        return NumbaExecutor()
    raise ValueError(f"executor must be 'python' or 'numba', not {name!r}")


def careful_executor(executor: Executor) -> Executor | None:
    """Return an executor that returns inf and nan where the given one raises, or None if it does not raise."""
    return PythonExecutor(careful=True) if isinstance(executor, PythonExecutor) and not executor.careful else None


def _executed(source: str, space: dict[str, Any]) -> Callable[..., int]:
    name = f"<viewgrad compiled {next(_numbers)}>"
    exec(compile(source, name, "exec"), space)
    found: Callable[..., int] = space["kernel"]
    list_source(name, source, found.__code__)
    return found
