"""Loading of generated source, by Python's compiler, and of kernels, by Numba."""

from __future__ import annotations

import functools
import hashlib
import inspect
import itertools
import math
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np

from ...func.captured_state import names_in
from ...operators.codegen.source_cache import list_source
from ..backends import numba_cache as native
from ..backends import scalar_runtime as functions
from ..backends.array_runtime import CAREFUL
from ..backends.scalar_runtime import FUNCTIONS, MATH, NATIVE
from . import runtime
from .runtime import HOST, KERNEL, CapacityExceeded
from .unsigned_indices import make_indices_unsigned
from .write import Kernel, Written

_numbers: Final = itertools.count()


def load(
    written: Written, executor: str, given: dict[str, Any]
) -> tuple[Callable[..., Any], Callable[..., Any] | None]:
    """Return the function `program` defined by a source, and for Python also a variant with NumPy's numbers.

    Arguments:
        written: the source.
        executor: "numba" or "python".
        given: names that it uses in addition to those of the library.
    """
    if executor == "numba":
        space = _host_space() | given
        for kernel in written.kernels:
            space[kernel.name] = compiled_kernel(kernel, space)
        return _executed(written.host, space, "program"), None
    whole = written.source()
    quick = _host_space() | _python_space() | given | {
        "as_list": as_list, "take_list": take_list, "as_number": as_number, "not_negative": not_negative}
    run = _executed(whole, quick, "program")
    careful = _host_space() | _python_space() | CAREFUL | given | {
        "as_list": lambda array: array, "take_list": lambda array, elements: None, "not_negative": not_negative,
        "as_number": lambda value: np.float64(value) if isinstance(value, float) else value}
    return run, _executed(whole, careful, "program")


def compiled_kernel(kernel: Kernel, space: dict[str, Any]) -> Any:
    """Return a kernel as a function that Numba compiles on its first call.

    Arguments:
        kernel: the kernel.
        space: the globals of the program that calls it, in which the compiled function replaces the kernel.
    """
    compiled = _compiled(kernel.source, kernel.name, kernel.wraps)

    def run(*args: Any) -> Any:
        with native._lock, native._deep(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = compiled(*args)
        space[kernel.name] = compiled
        return found

    return run


@functools.cache
def native_functions() -> dict[str, Callable[[], Any]]:
    """Return the functions that create the compiled forms of the functions called by kernels."""
    made: dict[str, Any] = {}
    plain: dict[str, Any] = {}
    for module, these in ((functions, FUNCTIONS), (runtime, KERNEL)):
        for function in these:
            plain[function.__name__] = (module, NATIVE.get(function.__name__, function))

    def make(name: str) -> Any:
        if name not in made:
            module, function = plain[name]
            space = dict(vars(module)) | {"math": math, "np": np}
            for each in names_in(function.__code__):
                if each in plain and each != name:
                    space[each] = make(each)
            fastmath: Any = {"reassoc"} if name == "plus" else False
            jit = native._numba().njit(nogil=True, error_model="numpy", fastmath=fastmath)
            made[name] = jit(types.FunctionType(function.__code__, space, name))
        return made[name]

    return {name: functools.partial(make, name) for name in plain}


def _host_space() -> dict[str, Any]:
    space: dict[str, Any] = {**MATH, **HOST, **_plain_functions(), **CAREFUL}
    space.update({name: function for name, function in vars(np).items() if name in ("inf", "nan")})
    return space


@functools.cache
def _plain_functions() -> dict[str, Any]:
    return {function.__name__: function for function in (*FUNCTIONS, *KERNEL)}


def _python_space() -> dict[str, Any]:
    return {**MATH, **_plain_functions()}


def _executed(source: str, space: dict[str, Any], name: str) -> Callable[..., Any]:
    file = f"<viewgrad source program {next(_numbers)}>"
    exec(compile(source, file, "exec"), space)
    found: Callable[..., Any] = space[name]
    list_source(file, source, found.__code__)
    return found


@functools.lru_cache(maxsize=512)
def _compiled(source: str, name: str, wraps: bool) -> Any:
    numba = native._numba()
    source = source if wraps else make_indices_unsigned(source)
    path = _cached_file(source)
    file = f"<viewgrad source kernel {next(_numbers)}>" if path is None else str(path)
    code = compile(source, file, "exec")
    space: dict[str, Any] = {"__name__": __name__, "CapacityExceeded": CapacityExceeded, "unsigned": np.uint64, **MATH}
    used = names_in(code)
    known = native_functions()
    space.update({each: known[each]() for each in used if each in known})
    exec(code, space)
    list_source(file, source, space[name].__code__)
    return numba.njit(nogil=True, error_model="numpy", fastmath=False, cache=path is not None)(space[name])


def _cached_file(source: str) -> Path | None:
    return native.source_file(source + "\n# " + _version() + "\n")


@functools.cache
def _version() -> str:
    return hashlib.sha256(inspect.getsource(runtime).encode()).hexdigest()[:16]


def as_list(array: Any) -> Any:
    """Return the elements of an array as nested lists."""
    return array.tolist()


def take_list(array: Any, elements: Any) -> None:
    """Write elements from lists to an array."""
    array[...] = elements


def as_number(value: Any) -> Any:
    """Convert a number to a Python number."""
    return value.item() if isinstance(value, np.generic) else value


def not_negative(index: int) -> int:
    """Return an index after checking that it is not negative."""
    if index < 0:
        raise IndexError
    return index
