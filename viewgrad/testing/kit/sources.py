"""A cache of the source of functions and classes, which a drawn test needs in every call."""

from __future__ import annotations

import inspect
import weakref
from typing import Any, Final

KNOWN: Final[weakref.WeakKeyDictionary[Any, str]] = weakref.WeakKeyDictionary()


def source_text(thing: Any) -> str:
    """Return the source that defines a function, a class or a code object.

    Raises:
        OSError, TypeError: if no source is available.
    """
    try:
        return KNOWN[thing]
    except (KeyError, TypeError):
        text = inspect.getsource(thing)
    try:
        KNOWN[thing] = text
    except TypeError:  # not weakly referenceable, or not hashable
        pass
    return text
