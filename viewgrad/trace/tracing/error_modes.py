"""Settings that turn floating-point errors and warnings into exceptions: `numpy.errstate` and warning filters.

Graphs and compiled programs do not raise such exceptions. A program that enables them is not traced, since it may catch
one and branch on it.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np

from ...tensor.trace_hooks import observed
from .patching import Patch, Replaced
from .source_locations import is_of_library

try:  # NumPy's settings object, which is replaced at each change
    from numpy._core.umath import _extobj_contextvar, _make_extobj

    error_mode: Callable[[], Any] = _extobj_contextvar.get
    _IGNORED: Final = _make_extobj(all="ignore")

    def quietly(function: Callable[..., Any], *args: Any) -> Any:
        """Call a function as under `np.errstate(all="ignore")`, which takes four times as long to enter."""
        token = _extobj_contextvar.set(_IGNORED)
        try:
            return function(*args)
        finally:
            _extobj_contextvar.reset(token)

except ImportError:

    def quietly(function: Callable[..., Any], *args: Any) -> Any:
        """Call a function under `np.errstate(all="ignore")`."""
        with np.errstate(all="ignore"):
            return function(*args)

    def error_mode() -> Any:
        """Return NumPy's settings for floating-point errors, which are equal if nothing has changed."""
        return tuple(np.geterr().values())


SCIPY: Final = str(Path(np.__file__).parents[1] / "scipy")
_harmless: Any = None  # the last known settings that raise nothing


def raises_errors() -> bool:
    """Return whether a floating-point error currently raises an exception or calls a function."""
    global _harmless
    mode = error_mode()
    if mode is _harmless:
        return False
    if {"raise", "call"}.isdisjoint(np.geterr().values()):
        _harmless = mode
        return False
    return True


def _refuse(what: str) -> None:
    observer = observed()
    if observer is None:
        return
    file = sys._getframe(2).f_code.co_filename
    if not is_of_library(file) and not file.startswith(SCIPY):
        observer.refuse(what)


def _enter(self: Any) -> Any:
    """Enter `warnings.catch_warnings`."""
    if self._record:
        _refuse("warnings.catch_warnings(record=True)")
    return PATCHES[0][2](self)


def _simplefilter(action: Any, *args: Any, **keywords: Any) -> None:
    """Set a warning filter."""
    if action == "error":
        _refuse("making exceptions of warnings")
    PATCHES[1][2](action, *args, **keywords)


def _filterwarnings(action: Any, *args: Any, **keywords: Any) -> None:
    """Set a warning filter by message."""
    if action == "error":
        _refuse("making exceptions of warnings")
    PATCHES[2][2](action, *args, **keywords)


PATCHES: Final[list[Patch]] = [
    (warnings.catch_warnings, "__enter__", warnings.catch_warnings.__enter__, _enter),
    (warnings, "simplefilter", warnings.simplefilter, _simplefilter),
    (warnings, "filterwarnings", warnings.filterwarnings, _filterwarnings),
]
warnings_refused: Final = Replaced(PATCHES)  # a block in which a traced program turns no warnings into exceptions
