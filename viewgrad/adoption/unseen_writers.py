"""Objects through which code that is not adopted may write to the arrays of a program.

Viewgrad does not see such writes. A program that captures such an object compares its captured arrays with their copies
at every read; see `tensor/captured_storage.py`.
"""

from __future__ import annotations

import contextvars
import gc
import threading
import types
import weakref
from array import array
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from .attributes import hides_type
from .locations import file_of, is_installed

# Classes of objects whose references to arrays or memory are not followed.
WRITERS: Final = (
    array, contextvars.ContextVar, contextvars.Context, memoryview, threading.local, types.CoroutineType,
    types.AsyncGeneratorType, weakref.ref, weakref.WeakKeyDictionary, weakref.WeakValueDictionary, weakref.WeakSet,
)  # fmt: skip


def may_write_unseen(value: Any) -> bool:
    """Return whether code that uses an unadopted object may write to an array of the user's.

    That is so for iterators, which may run the user's code, for views of memory, for objects of the user's classes, and
    for others that contain an array or a function of the user.
    """
    kind = type(value)
    if kind is np.ndarray:
        return value.dtype.kind in "OV"
    if hides_type(value) or isinstance(value, (Iterator, *WRITERS)) or not is_installed(file_of(kind)):
        return True
    if isinstance(value, types.ModuleType):
        return False
    parts = gc.get_referents(value)
    parts += [each for part in parts if type(part) is dict for each in part.values()]
    return any(map(_is_users, parts))


def _is_users(part: Any) -> bool:
    kind = type(part)
    if kind is np.ndarray:
        return part.dtype.kind in "fcOV"
    if kind is types.MethodType:
        part = part.__func__
    return type(part) is types.FunctionType and not is_installed(part.__code__.co_filename)
