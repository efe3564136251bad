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
    if isinstance(thing, type) and f"class {thing.__name__}" not in text:
        # Since Python 3.13 a class entered interactively is looked up by its line in the file of `__main__`.
        raise OSError(f"the source of {thing.__name__} is not in the file of its module")
    try:
        KNOWN[thing] = text
    except TypeError:  # not weakly referenceable, or not hashable
        pass
    return text
