"""Counts the memory that NumPy allocates for the elements of arrays: by `zeros`, `a + b`, `a.copy()` and others."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

__all__ = ["allocations"]

# NumPy's allocator can be replaced by functions of its C interface (NEP 49): their positions in the table of that
# interface, and the layout of the structure that describes an allocator.
GET_HANDLER, SET_HANDLER = 305, 304
HANDLER_NAME: Final = b"mem_handler"

MALLOC = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t
CALLOC = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t
REALLOC = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t


class Handler(ctypes.Structure):
    """`PyDataMem_Handler` of NumPy's C interface."""

    _fields_ = (
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("context", ctypes.c_void_p),
        ("malloc", ctypes.c_void_p),
        ("calloc", ctypes.c_void_p),
        ("realloc", ctypes.c_void_p),
        ("free", ctypes.c_void_p),
    )


class Counter:
    """An allocator that counts requests, and passes them to NumPy's own.

    Arrays return their memory to its allocator, possibly only when the interpreter exits. Therefore NumPy's own
    function frees memory, and the allocator itself is never freed.
    """

    def __init__(self) -> None:
        self.sizes: list[int] | None = None
        table = _c_interface()
        get_handler = ctypes.PYFUNCTYPE(ctypes.py_object)(table[GET_HANDLER])
        self.set_handler = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(table[SET_HANDLER])
        own = ctypes.cast(_pointer(get_handler(), HANDLER_NAME), ctypes.POINTER(Handler)).contents
        # NumPy's own functions are called with the interpreter's lock held, as NumPy does.
        own_malloc = ctypes.PYFUNCTYPE(*MALLOC)(own.malloc)
        own_calloc = ctypes.PYFUNCTYPE(*CALLOC)(own.calloc)
        own_realloc = ctypes.PYFUNCTYPE(*REALLOC)(own.realloc)

        def note(size: int) -> None:
            if self.sizes is not None:
                self.sizes.append(size)

        def malloc(context: Any, size: int) -> Any:
            note(size)
            return own_malloc(context, size)

        def calloc(context: Any, number: int, size: int) -> Any:
            note(number * size)
            return own_calloc(context, number, size)

        def realloc(context: Any, memory: Any, size: int) -> Any:
            note(size)
            return own_realloc(context, memory, size)

        self.functions = (
            ctypes.PYFUNCTYPE(*MALLOC)(malloc),
            ctypes.PYFUNCTYPE(*CALLOC)(calloc),
            ctypes.PYFUNCTYPE(*REALLOC)(realloc),
        )
        addresses = [ctypes.cast(function, ctypes.c_void_p).value for function in self.functions]
        handler = Handler(b"counting", own.version, own.context, *addresses, own.free)
        new_capsule = ctypes.pythonapi.PyCapsule_New
        new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        new_capsule.restype = ctypes.py_object
        self.capsule = new_capsule(ctypes.addressof(handler), HANDLER_NAME, None)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(handler))


def _pointer(capsule: Any, name: bytes | None) -> Any:
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.argtypes, get_pointer.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p
    return get_pointer(capsule, name)


def _c_interface() -> Any:
    return ctypes.cast(_pointer(np._core._multiarray_umath._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))


_counter: Counter | None = None


@contextlib.contextmanager
def allocations() -> Iterator[list[int]]:
    """Return the sizes, in bytes, of all memory that NumPy allocates for array elements inside the block."""
    global _counter
    if _counter is None:
        _counter = Counter()
    sizes: list[int] = []
    previous = _counter.set_handler(_counter.capsule)
    _counter.sizes = sizes
    try:
        yield sizes
    finally:
        _counter.sizes = None
        _counter.set_handler(previous)
