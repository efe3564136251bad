"""Captured objects for which `isinstance` raises, as a `weakref.proxy` of an object that is gone, or is wrong, as for a
mock.
"""

import types
import weakref
from collections import deque
from unittest import mock

import numpy as np
import pytest

import viewgrad as vg
from viewgrad import func


class Model:
    def __init__(self):
        self.weight = np.array([1.0, 2.0, 3.0])

    def value(self, x):
        return (self.weight * x**2).sum()


class Unavailable:
    """Stands for an object that is created on first use and cannot be yet."""

    @property
    def __class__(self):
        raise RuntimeError("not available")


class Standing:
    """Stands for an object of another class."""

    def __init__(self, kind):
        self._kind = kind

    @property
    def __class__(self):
        return self._kind


def teardown_module():
    """Delete the objects, since compiled functions of other tests may capture all variables of all modules."""
    for name in ("GONE", "UNAVAILABLE", "LISTED", "KEYED", "STANDING"):
        del globals()[name]


MODEL = Model()
ALIVE = weakref.proxy(MODEL)
GONE = weakref.proxy(Model())
UNAVAILABLE = Unavailable()
LISTED, KEYED = [GONE, UNAVAILABLE], {"gone": GONE, "unavailable": UNAVAILABLE}
SHOWN = (
    int, float, str, tuple, list, dict, set, deque, memoryview, np.ndarray, vg.Tensor, type, property, types.ModuleType,
    types.FunctionType, types.MethodType, types.SimpleNamespace,
)  # fmt: skip
STANDING = [*map(Standing, SHOWN), mock.Mock(spec=dict), mock.MagicMock(spec=[1.0]), mock.MagicMock()]
POINT = np.array([1.0, 2.0, 3.0])
TRANSFORMS = {
    "grad": lambda f: vg.grad(f)(POINT),
    "func.grad": lambda f: func.grad(f)(POINT),
    "func.jacfwd": lambda f: func.jacfwd(f)(POINT),
    "func.vmap": lambda f: vg.grad(lambda x: func.vmap(f)(x).sum())(POINT[None])[0],
    "checkpoint": lambda f: vg.grad(vg.checkpoint(f))(POINT),
    "compile": lambda f: vg.compile(f).value_and_grad(POINT)[1],
}


class Holder:
    def __init__(self):
        self.model, self.gone, self.unavailable = MODEL, GONE, UNAVAILABLE

    def __call__(self, x, gone=GONE):
        return self.model.value(x)


def of_globals(x):
    if x is None:
        print(GONE, UNAVAILABLE, LISTED, KEYED)
    return MODEL.value(x)


def of_closure():
    gone, unavailable = GONE, [UNAVAILABLE]
    return lambda x: MODEL.value(x) if x is not None else (gone, unavailable)


def of_locals(x):
    parts = [GONE, UNAVAILABLE, MODEL]
    return parts[-1].value(x)


FUNCTIONS = {
    "globals": of_globals, "closure": of_closure(), "locals": of_locals, "attributes": Holder(),
    "a live proxy": lambda x: ALIVE.value(x),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::viewgrad.errors.NotCompiledWarning")
@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_they_are_captured(name, transform):
    np.testing.assert_array_equal(TRANSFORMS[transform](FUNCTIONS[name]), 2 * MODEL.weight * POINT)


@pytest.mark.filterwarnings("ignore::viewgrad.errors.NotCompiledWarning")
def test_all_variables_of_the_module_are_captured():
    compiled = vg.compile(lambda x: MODEL.value(x) * len(globals()["ALIVE"].weight))
    for _ in range(3):
        np.testing.assert_array_equal(compiled.value_and_grad(POINT)[1], 6 * MODEL.weight * POINT)


@pytest.mark.filterwarnings("ignore::viewgrad.errors.NotCompiledWarning")
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_objects_that_stand_for_others_are_captured(transform):
    for standing in STANDING:
        result = TRANSFORMS[transform](lambda x, standing=standing: MODEL.value(x) * bool(standing))
        np.testing.assert_array_equal(result, 2 * MODEL.weight * POINT * bool(standing))


class Wrapper(Standing):
    def __init__(self, inner):
        super().__init__(type(inner))
        self.inner = inner


def test_tensors_in_an_object_that_stands_for_another_are_found():
    wrapper = Wrapper(vg.Tensor([2.0, 3.0, 4.0], requires_grad=True))

    @vg.checkpoint
    def run(x):
        return (wrapper.inner * x).sum()

    run(POINT).backward()
    np.testing.assert_array_equal(wrapper.inner.grad, POINT)


def test_scalars_are_captured_as_tensors():
    scalar = vg.Tensor(2.0, requires_grad=True)  # reports the class of a number

    @vg.checkpoint
    def run(x):
        return (scalar * x).sum()

    run(POINT).backward()
    assert scalar.grad == POINT.sum()
    compiled = vg.compile(lambda x: (scalar * x).sum())
    assert compiled.value_and_grad(POINT)[0] == 2.0 * POINT.sum() and "eagerly" not in str(compiled.explain())


def test_reading_one_raises_what_python_raises():
    with pytest.raises(ReferenceError):
        vg.grad(lambda x: GONE.value(x))(POINT)
    with pytest.raises(RuntimeError, match="not available"):
        vg.grad(lambda x: x.sum() if isinstance(UNAVAILABLE, float) else x.prod())(POINT)
