"""Kernels compiled by Numba, once for each source, and cached on disk for other processes."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import inspect
import itertools
import os
import sys
import threading
import types
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

from ...errors import NotCompiledError
from ...operators.codegen.source_cache import list_source
from . import scalar_runtime, small_matrix
from .codegen import Kernel
from .scalar_runtime import FUNCTIONS, MATH, NATIVE
from .small_matrix import MATRIX_FUNCTIONS

LINES: Final = 4000  # lines of a source; the compile time grows superlinearly
DEEP: Final = 100_000  # the recursion depth of Numba for long sources
KEPT: Final = 400  # the maximum number of sources on disk
Dtypes = tuple[np.dtype[Any], ...]
ARRAYS: Final = {"empty": np.empty, "zeros": np.zeros, "int64": np.int64, "bool_": np.bool_}
_lock: Final = threading.RLock()
_numbers: Final = itertools.count()


class KernelError(NotCompiledError):
    """Raised if Numba cannot compile a source, or if it would take too long."""


def native_function(kernel: Kernel) -> Callable[..., int]:
    """Return the function defined by a source, compiled for arrays with the dtypes of its parameters.

    Raises:
        KernelError: if it cannot be compiled.
    """
    dtypes = tuple([kernel.dtypes[name] for name in kernel.parameters])
    lines = kernel.source.count("\n")
    if lines > LINES:
        raise KernelError(f"its source has {lines} lines; at most {LINES} are compiled by Numba")
    if kernel.functions:  # their addresses are part of the compiled code
        return _compiled(kernel.source, dtypes, kernel.functions)
    return _shared(kernel.source, dtypes)


@functools.lru_cache(maxsize=256)
def _shared(source: str, dtypes: Dtypes) -> Callable[..., int]:
    return _compiled(source, dtypes, {})


def _compiled(source: str, dtypes: Dtypes, called: dict[str, Callable[..., Any]]) -> Callable[..., int]:
    path = None if called else source_file(source)
    name = f"<viewgrad kernel {next(_numbers)}>" if path is None else str(path)
    space = {"__name__": __name__, **MATH, **_compiled_functions(), **ARRAYS, **called}
    exec(compile(source, name, "exec"), space)
    list_source(name, source, space["kernel"].__code__)
    with _lock, _deep(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for keep in (True, False) if path is not None else (False,):  # a cached kernel on disk may be unusable
            try:
                function = _numba().njit(nogil=True, error_model="numpy", fastmath=False, cache=keep)(space["kernel"])
                types_of = [_numba().types.Array(_numba().from_dtype(dtype), 1, "C") for dtype in dtypes]
                function.compile(tuple(types_of))
                return function  # type: ignore[no-any-return]
            except Exception as error:
                failure = error
    what = f"{type(failure).__name__}: {str(failure)[:200]}"
    raise KernelError(f"Numba could not compile it: {what}") from failure


@contextlib.contextmanager
def _deep() -> Iterator[None]:
    """Raise the recursion limit in a block."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, DEEP))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


# -- on disk -----------------------------------------------------------------------------------------------------------


def source_file(source: str) -> Path | None:
    """Return the path of the file for a source, next to which Numba keeps its cache, or None if there is none."""
    folder = _folder()
    if folder is None or not _is_own(folder):
        return None
    path = folder / f"kernel_{hashlib.sha256((_version() + source).encode()).hexdigest()[:32]}.py"
    try:
        if not path.exists():
            _evict(folder)
            part = path.with_suffix(f".{os.getpid()}")
            part.write_text(source)
            part.replace(path)
    except OSError:
        return None
    return path


@functools.cache
def _is_own(folder: Path) -> bool:
    """Create a folder that only the user can access, and return whether only the user can write to it.

    Its contents are executed as code.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        found = folder.stat()
    except OSError:
        return False
    own = not hasattr(os, "getuid") or (found.st_uid == os.getuid() and not found.st_mode & 0o022)
    if not own:
        warnings.warn(
            f"{folder} belongs to another user or is writable by others. Its contents are run as code, so compiled "
            "kernels are not cached there. Set VIEWGRAD_CACHE to another folder, or restrict the permissions "
            "(chmod 700)",
            UserWarning,
            stacklevel=2,
        )
    return own


def _folder() -> Path | None:
    """Return the folder of the kernel cache: VIEWGRAD_CACHE, or the user's cache folder."""
    chosen = os.environ.get("VIEWGRAD_CACHE")
    if chosen is not None:
        return Path(chosen) if chosen not in ("", "0") else None
    try:
        home = Path.home()
    except RuntimeError:
        return None
    return Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache") / "viewgrad"


def _evict(folder: Path) -> None:
    """Delete the oldest sources and Numba's caches for them, if there are too many."""
    found = sorted(folder.glob("kernel_*.py"), key=lambda path: path.stat().st_mtime)
    for path in found[: max(0, len(found) - KEPT)]:
        for made in (folder / "__pycache__").glob(f"{path.stem}*"):
            made.unlink(missing_ok=True)
        path.unlink(missing_ok=True)


@functools.cache
def _version() -> str:
    """Return the versions on which a compiled source depends."""
    sources = "".join([inspect.getsource(module) for module in (scalar_runtime, small_matrix)])
    return f"{_numba().__version__} {np.__version__} {sys.version}\n{sources}"


# -- functions called by generated source ------------------------------------------------------------------------------


@functools.cache
def _numba() -> types.ModuleType:
    return importlib.import_module("numba")


@functools.cache
def _compiled_functions() -> dict[str, Any]:
    """Return the runtime functions of programs, compiled by Numba."""
    jit = _numba().njit(nogil=True, error_model="numpy", fastmath=False)
    found: dict[str, Any] = {}
    for module, these in ((scalar_runtime, FUNCTIONS), (small_matrix, MATRIX_FUNCTIONS)):
        space = dict(vars(module))
        for function in these:
            code = NATIVE.get(function.__name__, function).__code__
            found[function.__name__] = space[function.__name__] = jit(
                types.FunctionType(code, space, function.__name__)
            )
    return found
