"""Functions of extension modules in adopted code: they accept arrays only, and may write to them."""

from __future__ import annotations

import inspect
import pickle
import sys
import types
from importlib.machinery import EXTENSION_SUFFIXES

import numpy as np
import pytest

import viewgrad as vg
from viewgrad.adoption.compiled_functions import CompiledFunction, is_compiled

KERNELS = types.ModuleType("lent_kernels")
KERNELS.__file__ = "lent_kernels" + EXTENSION_SUFFIXES[0]


class Compiled:
    """A function with the class name of Cython's, which accepts arrays of floats only."""

    def __init__(self, function):
        self.function = function
        self.__name__, self.__module__, self.__doc__ = function.__name__, "lent_kernels", function.__doc__
        setattr(KERNELS, self.__name__, self)

    def __call__(self, array, *numbers):
        if type(array) is not np.ndarray or array.dtype != float:
            raise TypeError(f"expected numpy.ndarray, got {type(array).__name__}")
        assert all(isinstance(each, (int, float)) for each in numbers)
        return self.function(array, *numbers)

    def __getitem__(self, kind):
        return self

    def __get__(self, instance, owner=None):
        return self if instance is None else types.MethodType(self, instance)

    def __reduce__(self):
        return self.__name__


Compiled.__name__ = Compiled.__qualname__ = "cython_function_or_method"
Compiled.__module__ = "_cython_3_0"
sys.modules["_cython_3_0"] = types.ModuleType("_cython_3_0")
sys.modules["_cython_3_0"].__file__ = np.__file__
sys.modules["lent_kernels"] = KERNELS


@Compiled
def total(array, factor=1.0):
    """Return the sum."""
    return float(array.sum()) * factor


@Compiled
def double(array):
    array *= 2.0


@Compiled
def same(array):
    return array


def of_name(x):
    w = np.linspace(1.0, 2.0, 3)
    return (x * w).sum() * total(w, w[1])


def of_module(x):
    w = np.linspace(1.0, 2.0, 3)
    return (x * w).sum() * KERNELS.total(w, np.float64(1.5))


def of_import(x):
    from lent_kernels import total as summed

    w = np.linspace(1.0, 2.0, 3)
    return (x * w).sum() * summed(w, 1.5)


def of_fused_types(x):
    import lent_kernels

    w = np.linspace(1.0, 2.0, 3)
    return (x * w).sum() * lent_kernels.total[float](w, 1.5)


@pytest.mark.parametrize("f", [of_name, of_module, of_import, of_fused_types])
def test_compiled_functions_receive_arrays(f):
    x = np.array([1.0, 2.0, 3.0])
    value, gradient = vg.value_and_grad(f)(x)
    assert value == f(x)
    np.testing.assert_allclose(gradient, np.linspace(1.0, 2.0, 3) * 4.5 * 1.5)
    assert vg.compile(f)(x) == vg.compile(f)(x) == f(x)


def test_writes_of_compiled_functions():
    """The values saved before a write stay as they were, also those of a window."""

    def f(x):
        w = np.array([1.0, 2.0, 3.0])
        before = (x * w).sum() + x[0] * w[1:].sum() + (x[1:] * w[1:] ** 2).sum()
        double(w)
        double(w[1:])
        after = (x * w).sum()
        w[0] = 7.0
        return before + after + x[0] * w[0]

    x = np.ones(3)
    assert vg.value_and_grad(f)(x)[0] == f(x)
    assert vg.grad(f)(x).tolist() == [1.0 + 5.0 + 2.0 + 7.0, 2.0 + 4.0 + 8.0, 3.0 + 9.0 + 12.0]


def test_values_with_a_history_are_refused():
    def f(x):
        return total(x * 2.0)

    assert vg.adopt(f)(np.ones(3)) == 6.0
    with pytest.raises(vg.errors.UnsupportedFunctionError, match=r"lent_kernels\.total is compiled"):
        vg.grad(f)(np.ones(3))


def test_histories_cannot_be_written_to_memory_that_a_compiled_function_has_kept():
    def f(x):
        w = np.zeros(3)
        kept = same(w)
        w[1] = 2.0
        assert kept[1] == 2.0
        w[0] = x[0]
        return kept.sum()

    with pytest.raises(vg.errors.DetachedConversionError, match="shared with a plain array"):
        vg.grad(f)(np.ones(3))


CAPTURED = np.array([1.0, 2.0, 3.0])


def test_writes_to_captured_arrays():
    def f(x):
        before = (x * CAPTURED).sum()
        double(CAPTURED)
        return before + (x * CAPTURED).sum()

    assert vg.grad(f)(np.ones(3)).tolist() == [3.0, 6.0, 9.0]
    assert CAPTURED.tolist() == [2.0, 4.0, 6.0]
    CAPTURED[:] = [1.0, 2.0, 3.0]


def test_replacements_resemble_the_functions():
    def f(x):
        assert total.__name__ == "total" and total.__doc__ == "Return the sum." and callable(total)
        assert repr(total) == repr(inspect.unwrap(total)) and total == total and hash(total) == hash(total)
        assert pickle.loads(pickle.dumps(total))(np.ones(2)) == 2.0
        return x * total(np.ones(3))

    assert vg.grad(f)(1.0) == 3.0
    assert not is_compiled(len) and not is_compiled(np.sort) and not is_compiled(test_writes_to_captured_arrays)
    assert isinstance(vg.adopt(lambda: total)(), (CompiledFunction, Compiled))
