"""Functions of extension modules: compiled code that accepts arrays, not tensors.

In adopted code they receive arrays that share the memory of tensors without a history, and may write to them. A module
is recognized as an extension by the name of its file; Python's standard library, NumPy and SciPy are excluded.
"""

from __future__ import annotations

import functools
import sys
import types
from importlib.machinery import EXTENSION_SUFFIXES
from typing import Any, Final

import numpy as np

from ..errors import UnsupportedFunctionError
from ..tensor.captured_storage import refuse_unseen_writes
from ..tensor.equality import is_same_array
from ..tensor.escapes import would_lose_history
from ..tensor.exported_arrays import export_array
from ..tensor.modes import FUNCTIONAL, TRACE, current_mode
from ..tensor.storage import WriteLock, prepare_write, storage_of
from ..tensor.tensor import Tensor, is_scalar
from ..tensor.trace_hooks import array_of
from .counterparts import is_replaced_module

CYTHON: Final = frozenset({"cython_function_or_method", "fused_cython_function"})


def is_extension(name: Any) -> bool:
    """Return whether a module of the given name was loaded from an extension file of a third-party package."""
    if type(name) is not str or name.partition(".")[0] in sys.stdlib_module_names or is_replaced_module(name):
        return False
    file = getattr(sys.modules.get(name), "__file__", None)
    return type(file) is str and file.endswith(tuple(EXTENSION_SUFFIXES))


def is_compiled(value: Any) -> bool:
    """Return whether a value is a function of an extension module, compiled by Cython or written in C or C++."""
    kind = type(value)
    is_function = kind is types.BuiltinFunctionType or kind.__name__ in CYTHON
    return is_function and is_extension(getattr(value, "__module__", None))


class CompiledFunction:
    """A function of an extension module that receives arrays in place of tensors.

    Arguments:
        function: the function.
    """

    __wrapped__: Any

    def __init__(self, function: Any) -> None:
        functools.update_wrapper(self, function, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        function = self.__wrapped__
        tensors = [each for each in (*args, *kwargs.values()) if isinstance(each, Tensor)]
        if not tensors:
            return function(*args, **kwargs)
        name = f"{function.__module__}.{function.__name__}"
        if any(map(would_lose_history, tensors)):
            raise UnsupportedFunctionError(
                f"{name} is compiled, so that the history of a tensor would be lost; define an operator with a "
                "derivative for it by viewgrad.autograd.define_op, or pass detach() of the tensor if no gradient is "
                "needed"
            )
        lent = LentMemory(name)
        try:
            return function(*map(lent.array, args), **{key: lent.array(each) for key, each in kwargs.items()})
        finally:
            lent.settle()

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        is_method = instance is not None and hasattr(type(self.__wrapped__), "__get__")
        return types.MethodType(self, instance) if is_method else self

    def __getitem__(self, kinds: Any) -> Any:
        """Return the version of a function with fused types for the given ones."""
        return CompiledFunction(self.__wrapped__[kinds])

    def __repr__(self) -> str:
        return repr(self.__wrapped__)


@functools.cache
def of_compiled(function: Any) -> CompiledFunction:
    """Return the replacement of a compiled function in adopted code."""
    return CompiledFunction(function)


class LentMemory:
    """The memory of tensors to which a compiled function may write during a call.

    Values saved from it for backward keep what they were, as with a write by viewgrad.

    Arguments:
        writer: the name of the function.
    """

    def __init__(self, writer: str) -> None:
        self.writer: Final = writer
        self.lent: Final[list[tuple[Tensor, np.ndarray[Any, Any]]]] = []

    def array(self, value: Any) -> Any:
        """Return an array over the memory of a tensor, a scalar as a number, and other values unchanged."""
        if not isinstance(value, Tensor):
            return value
        if is_scalar(value):
            return array_of(value, "a compiled function")[()]
        storage = storage_of(value)
        if current_mode() & (TRACE | FUNCTIONAL) or isinstance(storage.windows, WriteLock):
            return value.numpy()
        if storage.captured:
            refuse_unseen_writes()
        elif storage.whole is not None or storage.windows is not None:
            self.lent.append((value, value._array.copy()))
        storage.shared = True
        return export_array(storage, value._array, is_writable=value._array.flags.writeable)

    def settle(self) -> None:
        """Record the writes of the function as writes to the tensors."""
        for tensor, before in self.lent:
            array = tensor._array
            if not is_same_array(before, array):
                after = array.copy()
                array[...] = before
                prepare_write(tensor, self.writer)
                array[...] = after
