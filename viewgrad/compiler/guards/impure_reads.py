"""Reads of state outside the program that may change between runs: files, clocks, folders, other processes.

A trace would contain the values that were read as constants, so a function that reads such state is not compiled. Reads
by loggers, warnings and imports are not attributed to the program.
"""

from __future__ import annotations

import builtins
import datetime
import functools
import importlib
import io
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import FrameType
from typing import Any, Final

import numpy as np

from ...tensor.trace_hooks import observed
from ...trace.tracing.patching import Patch, Replaced
from ...trace.tracing.rng_guard import is_importing

QUIET: Final = frozenset({
    "linecache", "tokenize", "logging", "traceback", "warnings", "inspect", "importlib", "viewgrad", "numba", "locale",
})  # fmt: skip
IN_PLACE: Final = ("viewgrad.adoption.", "viewgrad.numpy._io")  # which call functions in place of the program
CLOCKS: Final = (
    "time time_ns perf_counter perf_counter_ns monotonic monotonic_ns process_time process_time_ns thread_time "
    "thread_time_ns gmtime localtime ctime asctime strftime"
)
FILES: Final = "stat lstat listdir scandir getcwd getpid getloadavg times open"
OF_SETTINGS: Final = "reading NumPy's settings"  # not detected in adopted functions, which call a counterpart
SETTINGS: Final = ("geterr", "geterrcall", "get_printoptions", "getbufsize")


def _refusing(given: Callable[..., Any], what: str) -> Callable[..., Any]:
    """Return a replacement for a function that raises if it is called in a trace."""

    @functools.wraps(given, updated=())
    def ours(*args: Any, **keywords: Any) -> Any:
        observer = observed()
        if observer is not None and _is_of_program(sys._getframe(1)) and not is_importing():
            observer.refuse(f"{what}, which may differ in each run,")
        return given(*args, **keywords)

    return ours


def _is_of_program(frame: FrameType | None) -> bool:
    """Return whether a call comes from the program, directly or through other modules."""
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        package = module.partition(".")[0]
        adopts = module.startswith(IN_PLACE)
        if package in QUIET and not adopts:
            return False
        if package not in sys.stdlib_module_names and not adopts:
            return True
        frame = frame.f_back
    return True


# Functions, each with its module and a description of the state that it reads.
NAMED: Final = [
    *[(time, name, "reading a clock") for name in CLOCKS.split()],
    *[(os, name, "reading the state of the system or its files") for name in FILES.split()],
    *[(owner, "open", "opening a file") for owner in (builtins, io)],
    *[(np, name, "reading a file") for name in ("fromfile", "load", "loadtxt", "genfromtxt")],
    *[(np, name, OF_SETTINGS) for name in SETTINGS],
    *[(threading, name, "reading the current thread") for name in ("current_thread", "get_ident")],
    (builtins, "input", "reading input from the user"),
    (subprocess.Popen, "__init__", "starting a process"),
    (importlib, "import_module", "importing a module by a computed name"),
]
FOUND: Final = [(owner, name, getattr(owner, name), what) for owner, name, what in NAMED if hasattr(owner, name)]
# The descriptions by address, for functions that a variable keeps alive.
OUTSIDE: Final = {id(given): what for _, _, given, what in FOUND}
# The objects in which tracing replaces them, by address. Calls through other references are not detected.
OWNERS: Final[dict[int, set[int]]] = {}
for _owner, _, _given, _ in FOUND:
    OWNERS.setdefault(id(_given), set()).add(id(_owner))
PATCHES: Final[list[Patch]] = [(owner, name, given, _refusing(given, what)) for owner, name, given, what in FOUND]
DATES: Final = (datetime, datetime.datetime, datetime.date)
MOMENTS: Final = frozenset({"now", "today", "utcnow"})  # the methods of dates that read the clock
_REPLACED: Final = Replaced(PATCHES)


def outside_refused() -> AbstractContextManager[None]:
    """Return a context in which traced code cannot read outside state."""
    namespace = sys.modules.get("viewgrad.numpy")
    if namespace is not None and not any(owner is namespace for owner, *_ in PATCHES):
        PATCHES.extend([
            (namespace, name, given, ours) for owner, name, given, ours in PATCHES
            if owner is np and getattr(namespace, name, None) is given
        ])
    return _REPLACED()
