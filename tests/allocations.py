"""Counts the memory that NumPy allocates for the elements of arrays, in whatever way: `zeros`, `a + b`, `a.copy()`."""

from __future__ import annotations

import contextlib
import ctypes
import sys
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pytest

__all__ = ["allocations"]

# NumPy's allocator can be replaced (NEP 49), by functions of its C interface: this is how the table of that interface
# and the structure that describes an allocator are laid out.
GET_HANDLER, SET_HANDLER = 305, 304
HANDLER_NAME: Final = b"mem_handler"

Malloc = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
Calloc = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)
Realloc = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
Free = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)


class Handler(ctypes.Structure):
    """`PyDataMem_Handler` of NumPy's C interface."""

    _fields_ = (
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("context", ctypes.c_void_p),
        ("malloc", Malloc),
        ("calloc", Calloc),
        ("realloc", Realloc),
        ("free", Free),
    )


class Counter:
    """An allocator that notes what it is asked for; never thrown away, since arrays return their memory to it."""

    def __init__(self) -> None:
        self.sizes: list[int] | None = None
        libc = ctypes.CDLL(None)
        libc.malloc.argtypes, libc.malloc.restype = [ctypes.c_size_t], ctypes.c_void_p
        libc.calloc.argtypes, libc.calloc.restype = [ctypes.c_size_t, ctypes.c_size_t], ctypes.c_void_p
        libc.realloc.argtypes, libc.realloc.restype = [ctypes.c_void_p, ctypes.c_size_t], ctypes.c_void_p
        libc.free.argtypes, libc.free.restype = [ctypes.c_void_p], None

        def note(size: int) -> None:
            if self.sizes is not None:
                self.sizes.append(size)

        def malloc(_: Any, size: int) -> Any:
            note(size)
            return libc.malloc(size)

        def calloc(_: Any, number: int, size: int) -> Any:
            note(number * size)
            return libc.calloc(number, size)

        def realloc(_: Any, memory: Any, size: int) -> Any:
            note(size)
            return libc.realloc(memory, size)

        def free(_: Any, memory: Any, __: int) -> None:
            libc.free(memory)

        self.handler = Handler(b"counting", 1, None, Malloc(malloc), Calloc(calloc), Realloc(realloc), Free(free))
        new_capsule = ctypes.pythonapi.PyCapsule_New
        new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        new_capsule.restype = ctypes.py_object
        self.capsule = new_capsule(ctypes.addressof(self.handler), HANDLER_NAME, None)
        table = _c_interface()
        self.set_handler = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(table[SET_HANDLER])


def _c_interface() -> Any:
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.argtypes, pointer.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p
    capsule = np._core._multiarray_umath._ARRAY_API
    return ctypes.cast(pointer(capsule, None), ctypes.POINTER(ctypes.c_void_p))


_counter: Counter | None = None


@contextlib.contextmanager
def allocations() -> Iterator[list[int]]:
    """The sizes, in bytes, of all memory that NumPy allocates inside the block for elements of arrays."""
    if sys.platform == "win32":
        pytest.skip("counts allocations by means of the C library's own functions")
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
