"""Generated sources in `linecache`, so that tracebacks and debuggers show them as long as the code is in use."""

from __future__ import annotations

import linecache
import weakref
from types import CodeType
from typing import Any


def list_source(filename: str, source: str, code: CodeType) -> None:
    """Keep a source in `linecache` for the lifetime of a code object compiled from it.

    Arguments:
        filename: the filename of the source.
        source: the source.
        code: the code object of a function that it defines, or of the whole source.
    """
    entry = (len(source), None, source.splitlines(keepends=True), filename)
    linecache.cache[filename] = entry
    weakref.finalize(code, _drop, filename, entry).atexit = False


def _drop(filename: str, entry: Any) -> None:
    """Remove an entry, unless it has been replaced."""
    if linecache.cache.get(filename) is entry:
        linecache.cache.pop(filename, None)
