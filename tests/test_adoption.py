"""Adoption of functions, methods, classes and objects written for NumPy."""

from __future__ import annotations

import abc
import collections.abc
import copy
import dataclasses
import functools
import gc
import importlib
import inspect
import linecache
import math
import pickle
import pprint
import sys
import threading
import types
import typing
import warnings
import weakref
from collections.abc import Iterable, Sized
from functools import partial

import attrs
import numpy as np
import pytest
import scipy.interpolate
import scipy.sparse
import scipy.sparse.csgraph
import scipy.special
import scipy.stats
import scipy.stats.mstats
from fresh_interpreter import in_fresh_interpreter
from interruptions import interruptions
from numpy import exp as exponential
from numpy import zeros

import viewgrad as vg
from viewgrad.adoption import original_callable
from viewgrad.adoption.registry import registry_of
from viewgrad.autograd import grad
from viewgrad.tensor import captured_storage
from viewgrad.tensor.signatures import signature_of
from viewgrad.testing import check_operator

xp = np
T = typing.TypeVar("T")
scale = 2.0
counter = 0


def leaf(value):
    return vg.Tensor(value, requires_grad=True)


def slope(f, x=1.5):
    """Return the derivative of an adopted function of one number."""
    point = leaf(x)
    return grad(vg.adopt(f)(point), point)[0].item()


def difference(f, x=1.5, step=1e-6):
    return (f(x + step) - f(x - step)) / (2 * step)


def check(f, x=1.5):
    assert slope(f, x) == pytest.approx(difference(f, x), rel=1e-7)


# -- functions ---------------------------------------------------------------------------------------------------------


def helper(x):
    return np.sin(x) * scale


def table(x):
    y = np.zeros(4)
    y[0] = helper(x)
    y[1] = math.exp(x)
    y[2] = xp.log(x)
    y[3] = scipy.special.erf(x)
    return y.sum()


def singly(x):
    y = zeros(2)
    y[0] = exponential(x)
    y[1] = x**3
    return y.sum()


def with_imports(x):
    import math as m

    import numpy.linalg as la
    from numpy import array
    from scipy import special as sp

    return la.norm(array([x, m.cos(x)])) + sp.gamma(x)


def with_default(x, f=np.tanh, *, g=np.cosh):
    return f(x) + g(x)


def with_kinds(x):
    y = np.empty(3)
    y.fill(x)
    y[1:] *= float(x)
    np.multiply(y, y, out=y)
    return float(np.array([y[0], 2.0 * y[2]], dtype=float).sum())


@np.vectorize
def vectorized(x):
    out = np.zeros(1)
    out[0] = x**2 if x > 1 else x
    return out[0]


def recursive(x, n=4):
    y = np.ones(1)
    y[0] = x
    return y[0] * recursive(x, n - 1) if n else y[0]


PROGRAMS = [table, singly, with_imports, with_default, with_kinds, recursive, lambda x: np.array([x, x * x]).sum()]


@pytest.mark.parametrize("program", PROGRAMS)
def test_functions_are_differentiated_as_they_are(program):
    check(program)


def test_adopted_functions_keep_the_code_of_the_original():
    adopted = vg.adopt(table)
    assert adopted.__code__ is table.__code__
    assert adopted.__name__ == "table" and adopted.__module__ == __name__
    assert inspect.signature(adopted) == inspect.signature(table)
    assert inspect.getsource(adopted) == inspect.getsource(table)
    assert inspect.getdoc(vg.adopt(leaf)) == inspect.getdoc(leaf)


def test_partial_functions_lambdas_and_wrappers():
    check(partial(with_default, f=np.exp))
    check(lambda x: vectorized(x).sum())

    def doubled(f):
        @functools.wraps(f)
        def wrapper(*args):
            return 2.0 * f(*args)

        return wrapper

    check(doubled(table))
    adopted = vg.adopt(doubled(table))
    assert adopted.__name__ == "table"


def test_closures_hold_modules_functions_and_numbers():
    def made(module, inner, factor):
        def f(x):
            y = module.zeros(2)
            y[0] = inner(x) * factor
            return y.sum()

        return f

    check(made(np, helper, 3.0))


def test_variables_of_enclosing_functions_are_followed_both_ways():
    calls = 0
    inner = np.sin

    def f(x):
        nonlocal calls
        calls += 1
        return inner(x) * np.ones(1)[0]

    adopted = vg.adopt(f)
    x = leaf(0.5)
    assert adopted(x).item() == np.sin(0.5) and calls == 1
    inner = np.cos
    calls = 10
    assert adopted(x).item() == np.cos(0.5) and calls == 11


def test_nested_recursion_in_a_closure():
    def fold(n, x):
        y = np.zeros(1)
        y[0] = x
        return y[0] * fold(n - 1, x) if n else y[0]

    check(functools.partial(fold, 3))


def test_cached_functions_keep_no_results_for_tensors():
    calls = []

    @functools.lru_cache
    def kernel(x):
        calls.append(x)
        return np.ones(1)[0] * x**2

    adopted = vg.adopt(lambda x: kernel(x) + kernel(2.0))
    for value in (1.5, 1.5, 2.5):
        x = leaf(value)
        assert grad(adopted(x), x)[0].item() == 2 * value
    assert sum(type(x) is float for x in calls) == 3  # `calls` may change, so that results are kept for one call


@functools.singledispatch
def generic(x):
    return x * 2


@generic.register(np.ndarray)
def _(x):
    return np.zeros(1)[0] + x.sum()


@generic.register(float)
def _(x):
    return np.ones(1)[0] * x**2


def test_generic_functions():
    assert vg.grad(lambda x: generic(x) + generic(np.array([x, x])))(1.5) == 5.0


class LazyModule(types.ModuleType):
    """A module that is imported when an attribute is first looked up."""

    def __getattr__(self, name):
        return getattr(importlib.import_module(self.__name__), name)


LAZY_NUMPY, LAZY_LINALG = LazyModule("numpy"), LazyModule("scipy.linalg")


class Length:
    def __init__(self, metres):
        self.metres = np.array([metres, 1.0])

    def __float__(self):
        return float(self.metres.sum())

    def __complex__(self):
        return complex(self.metres[0], 2.0)


LENGTHS = np.array([1.5, 2.0])


def stored(lengths):
    table = np.zeros(len(lengths))
    for number, length in enumerate(lengths):
        table[number] = length
    table[1:] = lengths[0]
    return table.prod()


def test_objects_that_convert_themselves_to_numbers():
    check(lambda x: float(Length(x)) ** 2 + abs(complex(Length(x))))
    check(lambda x: x * float(Length(LENGTHS[0])) + x * math.sin(Length(LENGTHS[1])))
    check(lambda x: math.sin(Length(x)) + math.hypot(Length(x), x) + math.pow(x, Length(x)) + math.log(Length(x), 3.0))
    check(lambda x: math.fsum([Length(x), x]) * math.isclose(Length(x), x) * math.atan2(2.0, Length(x)))
    check(lambda x: stored([Length(x), Length(LENGTHS[0])]))
    with pytest.raises(TypeError, match="float"):
        vg.grad(lambda x: x * float(object()))(1.0)


class Offset:
    def __init__(self, value):
        self.value = value

    def __array__(self, dtype=None, copy=None):
        return self.value * np.array([1.0, 2.0])


def assigned(values):
    table = np.zeros(2)
    table[:] = values
    return table.prod()


def test_numpy_converts_objects_that_convert_themselves_to_numbers():
    check(lambda x: np.float64(Length(x)) ** 2)
    check(lambda x: np.abs(np.complex128(Length(x))) + np.array([Length(x)], complex).imag[0])
    check(lambda x: np.array([[Length(x), 2.0], (x, Length(x))], float).prod())
    check(lambda x: np.asarray(Length(x), dtype="float64") ** 2)
    check(lambda x: np.full(2, Length(x), float).prod() + np.full_like(LENGTHS, Length(x)).prod())
    check(lambda x: np.full(2, Offset(x)).prod() + np.full((2, 2), Offset(x), np.float64).prod())
    check(lambda x: np.float64(Offset(x)).prod() + np.array([Offset(x), Offset(x)], float).prod())
    check(lambda x: assigned([Length(x), 3.0]) * assigned((Length(x), Length(x))))


def test_numpy_converts_objects_as_without_adoption():
    def kinds(x):
        return np.array([Length(x)]).dtype.kind, np.full(2, Length(x)).dtype.kind, np.array([Length(x)], object)[0]

    assert vg.grad(lambda x: np.float32(Length(x)))(1.5) == 1.0
    *found, item = vg.adopt(kinds)(vg.ones(()))
    assert found == ["O", "O"] and type(item) is Length
    with pytest.raises(TypeError, match="only length-1 arrays"):
        vg.grad(lambda x: np.float64(Several(x)))(1.0)
    with pytest.raises(TypeError, match="float"):
        vg.grad(lambda x: x * np.array([object()], float)[0])(1.0)
    unit = Unit()
    assert vg.grad(lambda x: x * np.array([unit], float)[0])(1.0) == 1.0
    assert unit.calls == 1


class Several:
    def __init__(self, value):
        self.value = value

    def __float__(self):
        return np.full(2, self.value)


class Unit:
    calls = 0

    def __float__(self):
        self.calls += 1
        return 1.0


RANDOM = np.random.default_rng(3)
PLACES = np.linspace(0.0, 3.0, 7)
SPLINE = scipy.interpolate.CubicSpline(PLACES, np.sin(PLACES))
B_SPLINE = scipy.interpolate.make_interp_spline(PLACES, np.cos(PLACES))
LINEAR = scipy.interpolate.interp1d(PLACES, np.sin(PLACES))
CUBIC = scipy.interpolate.interp1d(PLACES, np.sin(PLACES), "cubic")
NORMAL = scipy.stats.norm(0.3, 1.2)
SPARSE = scipy.sparse.csr_matrix([[2.0, 1.0], [0.5, 3.0]])
POLYNOMIAL = np.poly1d([1.0, 2.0, 3.0])
MADE_OUTSIDE = {
    "spline": lambda x: SPLINE(x) + SPLINE.derivative()(x),
    "b_spline": lambda x: B_SPLINE(x) * 1.0,
    "interp1d": lambda x: LINEAR(x) * 1.0,
    "cubic": lambda x: CUBIC(x) * 1.0,
    "distribution": lambda x: NORMAL.logpdf(x) + NORMAL.cdf(x),
    "polynomial": lambda x: POLYNOMIAL(x) + POLYNOMIAL.deriv()(x),
    "roots of a polynomial": lambda x: x * np.roots(POLYNOMIAL).real.sum() * (1 + np.roots(np.poly1d([0.0])).size),
    "sparse": lambda x: ((x * np.ones(2)) * SPARSE) @ (SPARSE.T @ np.array([x, 1.0])) + SPARSE.dot(np.ones(2) * x)[0],
    "graph": lambda x: x * x * scipy.sparse.csgraph.shortest_path(SPARSE).sum(),
    "lazily imported modules": lambda x: LAZY_LINALG.norm(LAZY_NUMPY.array([x, 2.0])) + LAZY_NUMPY.zeros(1)[0],
    "statistics of mstats": lambda x: scipy.stats.mstats.gmean(np.array([x, 2.0])),
    "dates": lambda x: x * np.array(np.array([x, 0.0]) * 3, dtype="datetime64[D]").astype(int)[0],
}


@pytest.mark.parametrize("name", MADE_OUTSIDE)
def test_library_objects_created_outside(name):
    check(MADE_OUTSIDE[name], 1.2)


def _set(place, value):
    place[...] = value


# By name: an object of a library, a function of it, and a change of the object in place.
CHANGING = {
    "sparse": (
        lambda: scipy.sparse.csr_array([[2.0, 1.0], [0.5, 3.0]]),
        lambda m, x: (m @ (x * np.ones(2))).sum(),
        lambda m: _set(m.data, [5.0, 1.0, 2.0, 7.0]),
    ),
    "coordinates": (
        lambda: scipy.sparse.coo_array(([2.0, 1.0], ([0, 1], [1, 0])), shape=(2, 2)),
        lambda m, x: (m @ np.array([x, 1.0]))[0],
        lambda m: _set(m.coords[1], [0, 1]),
    ),
    "spline": (
        lambda: scipy.interpolate.CubicSpline(PLACES, np.sin(PLACES)),
        lambda m, x: m(x),
        lambda m: _set(m.c[1], 0.25),
    ),
    "b_spline": (
        lambda: scipy.interpolate.make_interp_spline(PLACES, np.cos(PLACES)),
        lambda m, x: m(x),
        lambda m: _set(m.c[2:4], 0.25),
    ),
    "extrapolate": (
        lambda: scipy.interpolate.CubicSpline(PLACES, np.sin(PLACES)),
        lambda m, x: m(x + 2.0),
        lambda m: setattr(m, "extrapolate", "periodic"),
    ),
    "interp1d": (
        lambda: scipy.interpolate.interp1d(PLACES, np.sin(PLACES)),
        lambda m, x: m(x) * 1.0,
        lambda m: _set(m.y, np.cos(PLACES)),
    ),
    "distribution": (
        lambda: scipy.stats.norm(0.3, 1.2),
        lambda m, x: m.logpdf(x),
        lambda m: setattr(m, "args", (0.7, 0.5)),
    ),
    "polynomial": (lambda: np.poly1d([1.0, 2.0]), lambda m, x: m(x), lambda m: m.__setitem__(1, 5.0)),
    "vectorized": (
        lambda: np.vectorize(lambda x: x * 2.0),
        lambda m, x: m(x * np.ones(2)).sum(),
        lambda m: setattr(m, "pyfunc", lambda x: x * x),
    ),
}


class Holder:
    def __init__(self, held):
        self.held = held


@pytest.mark.parametrize("transform", [vg.value_and_grad, lambda f: vg.compile(f).value_and_grad], ids=["", "compiled"])
@pytest.mark.parametrize(
    ("name", "place"),
    [
        pytest.param(name, place, marks=() if number % 4 == n else pytest.mark.slow)
        for number, name in enumerate(CHANGING) for n, place in enumerate(["cell", "list", "attribute", "default"])
    ],
)  # fmt: skip
def test_changes_to_library_objects_are_visible(name, place, transform):
    make, call, change = CHANGING[name]
    held = make()
    kept, holder = [held], Holder(held)
    function = {
        "cell": lambda x: call(held, x),
        "list": lambda x: call(kept[0], x),
        "attribute": lambda x: call(holder.held, x),
        "default": lambda x, held=held: call(held, x),
    }[place]
    found = transform(function)
    before = [float(found(1.2)[0]) for _ in range(3)][-1]
    change(held)
    value, slope = found(1.2)
    assert before != function(1.2)
    np.testing.assert_allclose(value, function(1.2), rtol=1e-12)
    np.testing.assert_allclose(slope, (function(1.2 + 1e-6) - function(1.2 - 1e-6)) / 2e-6, rtol=1e-5, atol=1e-7)


def test_generic_functions_report_implementations_registered_later():
    generic = functools.singledispatch(lambda value: 2.0)
    run = vg.value_and_grad(lambda x: x * generic.dispatch(int)(1))
    assert run(1.0)[1] == 2.0
    generic.register(int, lambda value: 3.0)
    assert run(1.0)[1] == 3.0


def test_generators_created_outside_continue_their_sequence():
    RANDOM.bit_generator.state = np.random.default_rng(3).bit_generator.state
    plain = np.random.default_rng(3)
    for _ in range(2):
        assert vg.grad(lambda x: x * RANDOM.normal())(1.0) == plain.normal()
    assert RANDOM.normal() == plain.normal()


def test_generators_and_coroutines():
    def steps(x, n):
        global counter
        for _ in range(n):
            counter += 1
            x = np.sin(x) * np.ones(1)[0]
            sent = yield x
            if sent is not None:
                x = x * sent

    global counter
    counter = 0
    x = leaf(0.5)
    generator = vg.adopt(steps)(x, 3)
    assert inspect.isgeneratorfunction(vg.adopt(steps))
    first = next(generator)
    assert counter == 1
    second = generator.send(2.0)
    assert second.item() == np.sin(2 * np.sin(0.5)) and counter == 2
    assert grad(first, x)[0].item() == np.cos(0.5)
    generator.close()

    async def later(x):
        return np.array([x, x * x]).sum()

    assert inspect.iscoroutinefunction(vg.adopt(later))
    coroutine = vg.adopt(later)(x)
    with pytest.raises(StopIteration) as stop:
        coroutine.send(None)
    assert grad(stop.value.value, x)[0].item() == 2.0


def test_numba_dispatchers_run_their_python_function():
    numba = pytest.importorskip("numba")

    @numba.njit
    def kernel(x):
        y = np.zeros(2)
        y[0] = x * x
        return y.sum()

    assert vg.grad(kernel)(3.0) == 6.0
    assert vg.grad(lambda x: kernel(x) * x)(3.0) == 27.0


def test_functions_of_numpy_and_builtins_have_counterparts():
    assert vg.grad(np.sin)(0.5) == np.cos(0.5)
    assert vg.grad(math.sin)(0.5) == math.cos(0.5)
    assert vg.adopt(np.sin) is vg.numpy.sin if hasattr(vg, "numpy") else True
    assert vg.adopt(len) is len


# -- globals -----------------------------------------------------------------------------------------------------------


def counting(x):
    global counter
    counter += 1
    return x * counter


def test_globals_are_read_and_written_as_the_functions_own():
    global scale, counter, helper
    adopted = vg.adopt(table)
    x = leaf(1.5)
    before = adopted(x).item()
    scale = 5.0
    try:
        assert adopted(x).item() == pytest.approx(before + 3.0 * np.sin(1.5))
        original, helper = helper, lambda x: np.cos(x) * np.ones(1)[0]
        try:
            assert adopted(x).item() == pytest.approx(table(1.5))
            assert grad(adopted(x), x)[0].item() == pytest.approx(difference(table))
        finally:
            helper = original
    finally:
        scale = 2.0
    counter = 5
    assert vg.adopt(counting)(2.0) == 12.0 and counter == 6
    counter = 0
    assert vg.adopt(counting)(2.0) == 2.0 and counter == 1


GLOBAL_PROGRAM = """
import numpy as np
k = 3.0
def f(x):
    global k
    y = np.zeros(1)
    y[0] = k * x
    k += 1
    return y[0]
"""


def test_names_are_looked_up_in_plain_dicts():
    """CPython looks names up quickly in dicts, but not in instances of subclasses of dict."""
    names = vg.adopt(table).__globals__
    assert type(names) is dict and type(names["__builtins__"]) is dict
    assert names["np"] is vg.numpy and names["zeros"] is vg.numpy.zeros and names["helper"].__globals__ is names
    assert names["scale"] is scale and "PROGRAMS" not in names


def test_chains_of_functions_may_be_longer_than_the_stack(tmp_path, monkeypatch):
    count = 400
    links = [f"def link_{i}(x):\n    return link_{i + 1}(x) if x.ndim else x * np.sin(x)\n" for i in range(count)]
    last = f"def link_{count}(x):\n    return np.sin(x)\n"
    (tmp_path / "chain_of_functions.py").write_text("\n".join(["import numpy as np\n", *links, last]))
    monkeypatch.syspath_prepend(tmp_path)
    chain = importlib.import_module("chain_of_functions")
    assert vg.grad(chain.link_0)(0.5) == pytest.approx(np.sin(0.5) + 0.5 * np.cos(0.5))
    module = vg.adopt(chain)
    assert vg.grad(getattr(module, f"link_{count}"))(0.5) == pytest.approx(np.cos(0.5))


def test_the_namespace_of_an_array_is_numpy():
    assert vg.grad(lambda x: x * ((np.ones(2) * x).__array_namespace__() is np))(2.0) == 1.0
    assert vg.Tensor([1.0]).__array_namespace__() is vg


def test_eval_exec_and_globals_reach_all_names():
    check(lambda x: eval("np.sin(x) * scale", globals() | {"x": x}))
    check(lambda x: globals()["helper"](x))
    space = {}
    exec(GLOBAL_PROGRAM, space)
    assert vg.grad(space["f"])(2.0) == 3.0 and space["k"] == 4.0
    assert set(space) == {"__builtins__", "np", "k", "f"}


def test_vars_of_a_module_are_its_globals():
    module = types.ModuleType("settings_of_a_program")
    module.factor = 2.0

    def f(x):
        vars(module)["late"] = 0.5
        return x * vars(module)["factor"] * module.__dict__["late"] * module.late

    assert vg.grad(f)(3.0) == 0.5 and module.late == 0.5


def test_a_global_deleted_later_is_missing():
    space = {}
    exec("a = 2.0\ndef f(x):\n    return a * x", space)
    adopted = vg.adopt(space["f"])
    assert adopted(3.0) == 6.0
    del space["a"]
    with pytest.raises(NameError, match="'a'"):
        adopted(3.0)
    space["a"] = None
    with pytest.raises(TypeError):
        adopted(3.0)


def test_attributes_of_functions_are_shared():
    def f(x):
        f.calls += 1
        return np.ones(1)[0] * x

    f.calls = 0
    vg.adopt(f)(1.0)
    assert f.calls == 1


# -- objects -----------------------------------------------------------------------------------------------------------


class Base:
    def __init__(self, rate):
        self.rate = rate

    def step(self, x):
        y = np.zeros(2)
        y[0] = x * self.rate
        return y.sum()

    @property
    def twice(self):
        return np.ones(1)[0] * self.rate * 2

    @staticmethod
    def squared(x):
        return np.array([x * x])[0]

    @classmethod
    def made(cls, x):
        return cls(x).step(x)


class Model(Base):
    factor = 3.0
    made_here = 0

    def __init__(self, rate):
        super().__init__(rate)
        self.calls = 0
        self.kernel = helper
        self.layers = [Base(2.0), Base(3.0)]
        self.named = {"exp": np.exp}

    def loss(self, x):
        self.calls += 1
        total = self.step(x) * self.factor + super().step(x) + self.twice + self.squared(x) + self.kernel(x)
        for layer in self.layers:
            total = total + layer.step(x)
        return total + self.named["exp"](x)

    def __call__(self, x):
        return self.loss(x)

    def copy_with(self, rate):
        return type(self)(rate)

    def count(self):
        type(self).made_here += 1
        Model.made_here += 1


class Slotted:
    __slots__ = ("n", "rate")

    def __init__(self, rate):
        self.rate = rate
        self.n = 0

    def step(self, x):
        self.n += 1
        y = np.zeros(1)
        y[0] = self.rate * x * x
        return y[0]


@dataclasses.dataclass
class Point:
    x: float
    y: np.ndarray

    def norm(self):
        z = np.zeros(2)
        z[0], z[1] = self.x, self.y
        return np.sqrt((z * z).sum())


@attrs.frozen
class Frozen:
    x: float

    def area(self):
        return np.array([self.x**2]).sum()


class Shape(abc.ABC, typing.Generic[T]):
    @abc.abstractmethod
    def area(self): ...

    @property
    def twice(self):
        return 2 * self.area()


class Square(Shape):
    def __init__(self, side):
        self._side = side

    @property
    def side(self):
        return self._side

    @side.setter
    def side(self, value):
        self._side = np.asarray(value) * 1.0

    def area(self):
        z = np.zeros(1)
        z[0] = self.side**2
        return z[0]


model = Model(1.0)


def test_methods_find_the_adopted_methods_of_their_object():
    check(model.loss)
    check(model)
    check(lambda x: model.loss(x))
    check(lambda x: Model(x).loss(x))
    check(Model.made)
    check(lambda x: Base.squared(x) + Model.squared(x))
    check(lambda x: Point(x, 2.0).norm() + Frozen(x).area())


def test_abstract_and_generic_classes():
    outside = Square(2.0)

    def f(x):
        inside = Square(x)
        inside.side = 2 * x
        outside.side = x
        return inside.twice + outside.area()

    check(f)
    assert outside.side == 1.5 - 1e-6


def test_attributes_are_those_of_the_users_object():
    own = Model(1.0)
    adopted = vg.adopt(own.loss)
    x = leaf(1.5)
    before = adopted(x).item()
    assert own.calls == 1
    own.rate = 2.0
    assert adopted(x).item() == pytest.approx(before + 3 * 1.5 + 1.5 + 2.0)
    own.layers.append(Base(10.0))
    assert adopted(x).item() == pytest.approx(before + 3 * 1.5 + 1.5 + 2.0 + 15.0)
    assert own.calls == 3 and type(own) is Model and set(vars(own)) == {"rate", "calls", "kernel", "layers", "named"}

    def renames(m):
        m.new = m.rate
        del m.calls
        m.layers.append(Base(1.0))
        m.layers.pop(0)
        m.named["log"] = np.log
        return np.ones(1)[0]

    layers, first = own.layers, own.layers[1]
    vg.adopt(lambda: renames(own))()
    assert own.new == 2.0 and not hasattr(own, "calls")
    assert own.layers is layers and layers[0] is first and len(layers) == 3
    assert own.named["log"] is np.log


def test_attributes_of_objects_hide_those_of_their_class():
    own = Model(1.0)
    assert vg.adopt(lambda: own.factor)() == 3.0
    own.factor = 5.0
    assert vg.adopt(lambda: own.factor)() == 5.0
    check(own.loss)
    own.step = lambda x: np.ones(1)[0] * x**3
    check(own.loss)
    del own.factor
    assert vg.adopt(lambda: own.factor)() == 3.0


def test_objects_with_slots():
    own = Slotted(3.0)
    check(own.step, 2.0)
    before = own.n
    assert vg.grad(own.step)(2.0) == 12.0
    assert own.n == before + 1


def test_objects_in_adopted_code_are_instances_of_their_class():
    own = Model(2.0)

    def told():
        assert isinstance(own, Model) and isinstance(own, Base) and issubclass(Model, Base)
        assert type(own) is Model and own.__class__ is Model
        assert own == own and own in [own] and len({own, own}) == 1
        assert vars(own)["rate"] == 2.0 and own.__dict__.keys() >= {"rate", "layers"}
        assert type(own.copy_with(1.0)) is Model
        other = copy.copy(own)
        assert type(other) is Model and other.rate == 2.0 and other is not own
        assert copy.deepcopy(own).layers[0].step(1.0) == 2.0
        return own

    assert vg.adopt(told)() is own
    loaded = pickle.loads(pickle.dumps(vg.adopt(lambda: Model(4.0))()))
    assert type(loaded) is Model and loaded.rate == 4.0
    made = vg.adopt(lambda: [Model(4.0)])()[0]
    assert type(made) is Model


def test_attributes_of_classes_are_shared():
    Model.made_here = 0
    vg.adopt(model.count)()
    assert Model.made_here == 2 and "made_here" in vars(Model)
    Model.factor = 4.0
    try:
        check(model.loss)
    finally:
        Model.factor = 3.0


def test_subclasses_defined_in_adopted_code():
    def f(x):
        class Own(Base):
            def step(self, x):
                return super().step(x) * 2

        assert isinstance(Own(1.0), Base) and not isinstance(Base(1.0), Own)
        return Own(x).step(x)

    check(f)


PLUGIN_PROGRAM = """
import numpy as np
names = []
class Plugin:
    def __init_subclass__(cls):
        names.append(cls.__name__)
class One(Plugin):
    def f(self, x):
        return np.ones(1)[0] * x
def run(x):
    return One().f(x)
def defines(x):
    class Two(One):
        def f(self, x):
            return 3 * super().f(x)
    return Two().f(x)
"""


def test_classes_that_register_are_not_registered_again():
    space = {}
    exec(PLUGIN_PROGRAM, space)
    assert vg.grad(space["run"])(2.0) == 1.0
    assert space["names"] == ["One"]
    assert vg.grad(space["defines"])(2.0) == 3.0
    assert space["names"] == ["One", "Two"]


# -- modules -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def project(tmp_path, monkeypatch):
    (tmp_path / "adopted_helpers.py").write_text(
        "import numpy as np\nrate = 2.0\n"
        "def f(x):\n    y = np.zeros(1)\n    y[0] = rate * x * x\n    return y[0]\n"
    )
    (tmp_path / "adopted_program.py").write_text(
        "import adopted_helpers as helpers\nfrom adopted_helpers import f as g\n"
        "def run(x):\n    return helpers.f(x) + g(x) + helpers.np.sin(x)\n"
        "def tune(value):\n    helpers.rate = value\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import adopted_program

    yield adopted_program
    for name in ("adopted_program", "adopted_helpers"):
        sys.modules.pop(name, None)


def test_attributes_of_the_users_own_modules(project):
    check(project.run)
    project.helpers.rate = 3.0
    check(project.run)
    vg.adopt(project.tune)(5.0)
    assert project.helpers.rate == 5.0


def test_adopting_leaves_the_users_objects_unchanged(project):
    before = {module: dict(vars(module)) for module in (project, project.helpers, np, math, scipy.special)}
    names = set(sys.modules)
    vg.grad(project.run)(1.5)
    for module, content in before.items():
        assert dict(vars(module)) == content if module is not np else set(vars(np)) == set(content)
    assert {name for name in set(sys.modules) - names if not name.startswith(("viewgrad", "scipy"))} == set()
    assert project.run.__globals__ is vars(project)


# -- what programs see -------------------------------------------------------------------------------------------------


def test_types_in_adopted_code():
    def kinds(x, a):
        assert type(x) is float and isinstance(x, float) and type(x) in (int, float)
        assert float is float and int is int and isinstance(2.0, float) and not isinstance(2, float)
        assert type(a) is np.ndarray and isinstance(a, np.ndarray) and isinstance(a, (list, np.ndarray))
        assert type(a).__module__ == type(np.float32(1.0)).__module__ == np.int64.__module__ == "numpy"
        assert isinstance(a[0], np.float64) and isinstance(a[0], float) and not isinstance(a[0], np.ndarray)
        assert a.dtype == float and a.dtype == np.float64 and np.zeros(2, dtype=float).dtype == np.float64
        assert np.issubdtype(a.dtype, np.floating) and np.issubdtype(a.dtype, float)
        assert isinstance(type(x), type) and isinstance(float, type) and issubclass(bool, int)
        assert float("2.5") == 2.5 and type(float("2.5")) is float and float.fromhex("0x1p1") == 2.0
        assert complex(1, 2) == 1 + 2j and isinstance(1j, complex)
        y = float(x) * np.float64(x) * complex(x, 0.0).real
        return y * float(a[1])

    found = vg.grad(kinds, (0, 1))(1.5, np.array([2.0, 3.0]))
    assert found[0] == pytest.approx(9 * 1.5**2)
    np.testing.assert_allclose(found[1], [0.0, 1.5**3])


def test_class_patterns_of_floats_bind_the_number():
    def f(x):
        match x[0], x[1]:
            case float(a), float(b) if a > 0:
                return a * b
            case _:
                return x[1]

    np.testing.assert_array_equal(vg.grad(f)(np.array([2.0, 3.0])), [3.0, 2.0])
    np.testing.assert_array_equal(vg.grad(vg.compile(f))(np.array([-2.0, 3.0])), [0.0, 1.0])


def test_annotations_by_the_name_type_in_adopted_code():
    def f(x):
        kinds: list[type[float] | None] = [type[int], type[str] | None]
        assert str(kinds[0]) == "type[int]" and typing.get_args(kinds[0]) == (int,)
        return x * len(kinds)

    assert vg.grad(f)(1.0) == 2.0


def test_texts_of_integers_in_adopted_code_are_those_of_numpy():
    def network(x):
        parameters = {"W" + str(i): x[i] for i in np.arange(3)}
        parameters |= {f"b{i}": 2.0 * x[i] for i in np.arange(3)} | {f"c{i!s}": 0.5 for i in np.arange(3)}
        return parameters["W1"] * parameters["b2"] * parameters["c0"] + parameters["W" + next(map(str, np.arange(1)))]

    np.testing.assert_allclose(vg.grad(network)(np.arange(3.0)), [1.0, 2.0, 1.0])
    compiled = vg.compile(network)
    for values in ([0.0, 1.0, 2.0], [3.0, 4.0, 5.0], [6.0, 7.0, 8.0]):
        x = vg.Tensor(values, requires_grad=True)
        compiled(x).backward()
        assert x.grad.tolist() == [1.0, values[2], values[1]]
    assert "eagerly" not in compiled.explain()


def test_texts_of_numbers_in_adopted_code_are_those_of_numpy():
    def f(x):
        texts.append([str(v) for v in (x[0], np.float64(0.5), np.float32(0.1), x[0] * 1j, np.sum(x) / 3)])
        texts[-1] += ["%s" % x[1], f"{x[1]}", f"{x[1]!s}", "{}".format(np.mean(x))]  # noqa: UP031, UP032
        return x[0] * {"0.5": 2.0}[str(np.float64(0.5))]

    texts = []
    x = np.array([1.0, 2.0])
    assert vg.grad(f)(x).tolist() == [2.0, 0.0] and f(x) == 2.0
    assert texts[0] == texts[1]


def test_texts_of_arrays_in_adopted_code_are_those_of_numpy():
    @dataclasses.dataclass
    class Pair:
        first: object
        second: object

    def f(x):
        y = np.zeros(3) + x.sum()
        found = Pair(x, np.eye(2, dtype=np.float32))
        texts.append([str(x), repr(y), f"{x} {y!r} {found}", "%s" % y, repr([x, np.arange(2)]), repr(found)])  # noqa: UP031
        texts[-1] += [pprint.pformat({"x": x}), repr(np.array(0.5)), repr(x[0]), str(np.array([True])), f"{y:}"]
        texts[-1] += [repr(collections.deque([x])), repr(x == x), repr(np.empty((0, 2)))]
        return y.sum()

    texts = []
    x = np.array([1.0, 2.0])
    assert vg.grad(f)(x).tolist() == [3.0, 3.0] and f(x) == 9.0
    assert vg.adopt(f)(vg.Tensor(x)) == 9.0
    assert texts[0] == texts[1] == texts[2]
    assert repr(vg.Tensor(x)) == "Tensor([1., 2.])"


def test_classes_derived_from_builtin_numbers_in_adopted_code():
    def f(x):
        class Meters(float):
            def doubled(self):
                return self * 2

        class Meta(type):
            pass

        class Thing(metaclass=Meta):
            pass

        assert Meters(2.0).doubled() == 4.0 and isinstance(Thing, Meta)
        return x * Meters(3.0)

    assert vg.grad(f)(1.0) == 3.0


def test_adopting_twice_is_adopting_once():
    adopted = vg.adopt(table)
    assert vg.adopt(adopted) is adopted
    assert vg.adopt(table) == adopted and hash(vg.adopt(table)) == hash(adopted)
    assert vg.adopt(helper) != adopted and adopted != table
    assert original_callable(adopted) is table
    assert {adopted: 1}[vg.adopt(table)] == 1
    inside = vg.adopt(lambda: (helper, helper == helper, {helper: 1}[helper]))()
    assert inside == (helper, True, 1)


def test_adopted_functions_are_copied_and_pickled():
    adopted = vg.adopt(table)
    assert copy.copy(adopted) is adopted and copy.deepcopy(adopted) is adopted
    assert pickle.loads(pickle.dumps(adopted)) == adopted
    assert pickle.loads(pickle.dumps(vg.adopt(model.loss)))(1.5) == pytest.approx(model.loss(1.5))


def test_tracebacks_and_warnings_name_the_users_line():
    def fails(x):
        y = np.zeros(2)
        warnings.warn("hello", stacklevel=1)
        return y[5] * x

    with pytest.warns(UserWarning, match="hello") as caught, pytest.raises(IndexError) as error:
        vg.grad(fails)(1.0)
    line = fails.__code__.co_firstlineno
    assert caught[0].filename == __file__ and caught[0].lineno == line + 2
    frames = [frame for frame in error.traceback if frame.path.name == "test_adoption.py"]
    assert any(frame.lineno + 1 == line + 3 for frame in frames)
    assert "y[5]" in linecache.getline(__file__, line + 3)


def test_debuggers_profilers_and_coverage_see_the_users_lines():
    def f(x):
        y = np.zeros(1)
        y[0] = x
        return y.sum()

    lines, calls = [], []

    def trace(frame, event, arg):
        if frame.f_code is f.__code__:
            if event == "line":
                lines.append(frame.f_lineno - f.__code__.co_firstlineno)
            return trace
        return None

    def profile(frame, event, arg):
        if event == "call" and frame.f_code is f.__code__:
            calls.append(frame.f_globals["__name__"])

    old = sys.gettrace()
    sys.settrace(trace)
    sys.setprofile(profile)
    try:
        vg.grad(f)(1.0)
    finally:
        sys.setprofile(None)
        sys.settrace(old)
    assert lines == [1, 2, 3] and calls == [__name__]


SWALLOWING_PROGRAM = """
import math
def f(x):
    try:
        return math.exp(x)
    except Exception:
        return 1e300
"""


def test_an_error_for_a_lost_gradient_is_not_swallowed():
    """A function that is not adopted cannot turn the error into another value."""
    space = {"__name__": "json", "__file__": inspect.getfile(pickle)}  # as if it were an installed module
    exec(SWALLOWING_PROGRAM, space)
    with pytest.raises(vg.errors.DetachedConversionError) as caught:
        vg.grad(lambda x: x * space["f"](x))(1.0)
    assert "caught this error" in caught.value.__notes__[0]


def test_threads_adopt_and_run_at_once():
    results, errors = [], []

    def work(value):
        try:
            for _ in range(20):
                results.append((value, vg.grad(lambda x: table(x) + model.loss(x))(value)))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(1.0 + number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and len(results) == 80
    for value in (1.0, 2.0, 3.0, 4.0):
        found = {result for each, result in results if each == value}
        assert len(found) == 1
        assert found.pop() == pytest.approx(difference(lambda x: table(x) + model.loss(x), value), rel=1e-6)


def test_adopted_functions_are_freed():
    def made():
        def f(n, x):
            return np.ones(1)[0] * x if n == 0 else f(n - 1, x)

        return f

    f = made()
    vg.adopt(f)(3, leaf(1.0))
    reference = weakref.ref(f)
    del f
    gc.collect()
    gc.collect()  # objects freed by the first collection held the function
    assert reference() is None


def test_objects_that_cannot_be_adopted():
    with pytest.raises(TypeError, match="adopt expects a function, a class, a module"):
        vg.adopt(3.0)
    with pytest.raises(ValueError, match="was not imported from a file"):
        vg.adopt(types.ModuleType("made_here"))
    with pytest.raises(ModuleNotFoundError, match="no_such_package"):
        vg.adopt("no_such_package")


# -- transforms --------------------------------------------------------------------------------------------------------


def forecast_error(alpha, sales):
    level = np.zeros(len(sales))
    level[0] = sales[0]
    for t in range(1, len(sales)):
        level[t] = alpha * sales[t] + (1 - alpha) * level[t - 1]
    return ((sales[1:] - level[:-1]) ** 2).mean()


def test_transforms_of_a_plain_program_give_plain_results():
    sales = np.array([1.0, 2.0, 4.0, 3.0])
    value, slope = vg.value_and_grad(forecast_error)(0.3, sales)
    assert type(value) is float and type(slope) is float
    assert value == pytest.approx(forecast_error(0.3, sales))
    assert slope == pytest.approx(difference(lambda a: forecast_error(a, sales), 0.3), rel=1e-6)
    second = vg.hessian(forecast_error)(0.3, sales)
    assert second == pytest.approx(difference(lambda a: vg.grad(forecast_error)(a, sales), 0.3), rel=1e-6)
    both = vg.grad(forecast_error, (0, 1))(0.3, sales)
    assert type(both[1]) is np.ndarray and both[1].flags.writeable
    value, tangent = vg.jvp(lambda a: forecast_error(a, sales), (0.3,), (1.0,))
    assert tangent == pytest.approx(slope)
    value, pull = vg.vjp(forecast_error, 0.3, sales)
    assert pull(1.0)[0] == pytest.approx(slope) and type(pull(1.0)[1]) is np.ndarray
    for jacobian in (vg.jacrev, vg.jacfwd):
        assert jacobian(forecast_error)(0.3, sales) == pytest.approx(slope)
    assert type(vg.grad(forecast_error)(vg.Tensor(0.3), sales)) is vg.Tensor


def test_adopt_false_runs_the_original_function():
    with pytest.raises((ValueError, vg.errors.AutogradError, Warning)), warnings.catch_warnings():
        warnings.simplefilter("error")
        vg.grad(forecast_error, adopt=False)(0.3, np.array([1.0, 2.0, 4.0]))


def test_arrays_that_are_not_differentiated_can_be_written_to():
    def f(v, x0):
        x = x0.copy()
        x += v
        x0[0] = v
        return (x * x0).sum()

    x0 = np.array([1.0, 2.0])
    assert vg.grad(f)(3.0, x0) == pytest.approx(2 * 3 + 1 + 2)
    np.testing.assert_array_equal(x0, [1.0, 2.0])


def test_compiled_functions_adopt():
    compiled = vg.compile(forecast_error, executor="python")
    sales = np.array([1.0, 2.0, 4.0, 3.0])
    for _ in range(3):
        found = compiled(0.3, sales)
        assert type(found) is float and found == pytest.approx(forecast_error(0.3, sales))
    expected = vg.value_and_grad(forecast_error)(0.3, sales)
    for _ in range(3):
        assert vg.value_and_grad(compiled)(0.3, sales) == pytest.approx(expected)


class Captured:
    def __init__(self):
        self.weights = np.array([0.3, 0.1])
        self.bias = 0.2

    def activation(self, v):
        return np.tanh(v * self.weights[0] + self.bias)

    def __call__(self, x):
        total = 0.0
        for v in x:
            total = total + self.activation(v)
        return total * np.ones(1)[0]


def test_compiled_objects_see_later_changes(monkeypatch):
    own = Captured()
    compiled = vg.compile(own, executor="python")
    x = np.array([0.3, -0.2, 0.5])

    def agrees():
        for _ in range(3):
            assert compiled(x) == pytest.approx(own(x), rel=1e-12)

    agrees()
    own.bias = 1.5
    agrees()
    own.weights[0] = 2.0
    agrees()
    monkeypatch.setattr(Captured, "activation", lambda self, v: v * self.bias)
    agrees()


def test_compiled_functions_see_later_changes():
    global scale
    compiled = vg.compile(lambda x: helper(x) * np.ones(2), executor="python")
    x = np.array([0.5, 1.0])
    for _ in range(3):
        np.testing.assert_allclose(compiled(x), helper(x))
    scale = 7.0
    try:
        np.testing.assert_allclose(compiled(x), helper(x))
    finally:
        scale = 2.0


TABLE = np.array([2.0, 3.0])
WEIGHT = 2.0
made_tables = []


@functools.lru_cache
def table_of(n):
    made_tables.append(n)
    return np.ones(2) * TABLE[0] * n


@functools.lru_cache
def constant_table(n):
    return np.ones(2) * WEIGHT * n


@functools.lru_cache
def pure_table(n):
    return np.exp(np.arange(n)) * len(np.__name__) if n < 2 else pure_table(n - 1)


def test_cached_functions_are_not_stale(monkeypatch):
    def f(x):
        return (table_of(3) * x).sum() + (constant_table(1) * x + table_of(3) * 0).sum()

    try:
        assert vg.grad(f)(1.0) == 16.0
        assert made_tables == [3]  # within one call, a result is kept
        TABLE[0] = 5.0
        table_of.cache_clear()
        assert vg.grad(f)(1.0) == 34.0
        monkeypatch.setitem(globals(), "WEIGHT", 4.0)
        constant_table.cache_clear()
        assert vg.grad(f)(1.0) == 38.0
    finally:
        TABLE[0] = 2.0


def test_results_of_cached_functions_that_depend_on_nothing_are_kept():
    adopted = vg.adopt(lambda: pure_table(5))
    assert adopted() is adopted()


@functools.lru_cache
def mutable_table(kind):
    return {0: 1.0} if kind == "dict" else [1.0, 2.0] if kind == "list" else np.ones(2)


@pytest.mark.parametrize("kind", ["array", "list", "dict"])
def test_results_of_cached_functions_that_were_written_to(kind):
    def f(x):
        return mutable_table(kind)[0] * x

    for value in (1.0, 3.0, 5.0):
        assert vg.grad(f)(1.0) == value
        mutable_table(kind)[0] = value + 2.0


def test_names_added_to_numpy_are_found(monkeypatch):
    monkeypatch.setattr(np, "doubled", lambda x: np.zeros(1)[0] + np.sin(x) * 2, raising=False)
    monkeypatch.setattr(math, "constant", 7.0, raising=False)
    monkeypatch.setattr(np.linalg, "rows", 3, raising=False)
    assert vg.grad(lambda x: np.doubled(x) * math.constant * np.linalg.rows)(1.0) == pytest.approx(42 * math.cos(1.0))
    with pytest.raises(AttributeError, match="has no attribute 'tripled'"):
        vg.grad(lambda x: np.tripled(x))(1.0)


class Counted:
    def __init__(self):
        self.number, self.scale, self.name = 1, 2.0, "counted"

    def __call__(self, x):
        self.number += 1
        self.total = np.zeros(2)
        self.total[0] = x * self.scale
        return self.total.sum() * len(self.name)


@pytest.mark.parametrize("stride", [13, pytest.param(3, marks=pytest.mark.nightly)])
def test_interruption_loses_no_attribute(stride):
    def prepare():
        return Counted()

    def act(counted):
        counted.scale = 3.0
        vg.adopt(counted)(leaf(2.0))

    for counted, where in interruptions(prepare, act, stride=stride):
        assert (counted.scale, counted.name) == (3.0, "counted"), where
        assert counted.number in (1, 2), where
        assert captured_storage.CALLS.depth == 0, where  # otherwise later calls are mistaken for calls by adopted code
        assert vg.grad(counted)(2.0) == 21.0, where


@pytest.mark.parametrize("stride", [31, pytest.param(1, marks=pytest.mark.nightly)])
def test_interruption_does_not_separate_the_variables_of_closures(stride):
    def prepare():
        count = 0.0

        def counted(x):
            nonlocal count
            count += 1.0
            return x * count

        return counted

    def act(counted):
        vg.adopt(counted)(leaf(1.0))

    for counted, where in interruptions(prepare, act, stride=stride):
        assert not registry_of(globals())._lock._is_owned(), where  # another thread would wait for it
        before = counted(1.0)
        assert float(vg.adopt(counted)(1.0)) == before + 1.0, where
        assert counted(1.0) == before + 2.0, where


class Bag(Iterable, Sized):
    def __init__(self, x):
        self.items = [x, x * 2]

    def __iter__(self):
        return iter(self.items)

    def __len__(self):
        return len(self.items)


def test_numbers_have_the_methods_of_floats():
    program = lambda x: 2.0 * x if hasattr(x, "is_integer") and x.is_integer() else x
    assert vg.value_and_grad(program)(2.0) == (4.0, 2.0)
    assert vg.value_and_grad(program)(2.5) == (2.5, 1.0)


def kinds_of(x):
    """Return the results of checks by which programs recognize numbers."""
    return [
        isinstance(x, Iterable), isinstance(x, collections.abc.Sized), isinstance(x, typing.Collection),
        isinstance(x, (list, collections.abc.Container)), hasattr(x, "__iter__"), hasattr(x, "__len__"),
        isinstance(x, np.ndarray), issubclass(type(x), np.ndarray), type(x) == np.float64,  # noqa: E721
        type(x) in (int, np.float64),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "name", ["detach", "numpy", "append", "split", "requires_grad", "shape", "tolist", "is_integer", "hex"]
)
def test_tensors_have_the_attributes_of_arrays(name):
    found = []

    def program(x):
        table = x * np.ones(2)
        found.append((hasattr(table, name), hasattr(table[0], name)))
        assert getattr(table, name, None) is None or hasattr(table, name)
        detach, plain = getattr(table, "detach", None), getattr(table, "numpy", lambda: table)
        return (table.detach() if hasattr(table, "detach") or detach else plain()).prod()

    check(program)
    assert set(found) == {(hasattr(np.ones(2), name), hasattr(np.float64(1.0), name))}


def test_scalars_are_not_containers():
    for x in (np.float64(1.5), np.ones(2), np.ones((2, 2))):
        found = []

        def f(x, found=found):
            found.append(kinds_of(x))
            return np.sum(x) * 1.0

        vg.grad(f)(x)
        assert found == [kinds_of(x)]


def test_abstract_classes_of_the_users():
    def f(x):
        class Inner(Iterable):
            def __iter__(self):
                return iter([x])

        assert isinstance(Bag(x), Iterable) and isinstance(Inner(), Iterable) and not isinstance(x, Iterable)
        match Bag(x):
            case Iterable():
                return sum(Bag(x)) + sum(Inner())
        return x * 0

    assert vg.grad(f)(2.0) == 4.0
    compiled = vg.compile(f, executor="python")
    assert [vg.grad(compiled)(2.0) for _ in range(3)] == [4.0] * 3


# -- annotations -------------------------------------------------------------------------------------------------------

ANNOTATED = """
import numpy as np

def slope_free(x: {Model}, n: {Model} = 2.0) -> {Model}:
    total = np.zeros(2)
    total[0] = x * x
    def doubled(y: {Model}) -> {Model}:
        return 2 * y
    return doubled(total.sum()) * n

class Scaled:
    kept: {Model}

    def __init__(self, scale: {Model}) -> None:
        self.scale = scale

    def __call__(self, x: {Model}) -> {Model}:
        return self.scale * x * x

def line(x: {Model}, a: {Model}, b: {Model}) -> {Model}:
    return a * x + b
"""


def test_annotations_are_not_evaluated():
    """Annotations may refer to names that only a type checker imports; on Python 3.14, without quotes."""
    names = {"__name__": __name__, "__file__": __file__}
    source = ANNOTATED.replace("{Model}", "Model" if sys.version_info >= (3, 14) else "'Model'")
    exec(compile(source, "<annotated>", "exec", dont_inherit=True), names)
    f, scaled = names["slope_free"], names["Scaled"](3.0)
    for transform in (vg.grad, vg.jacrev, vg.jacfwd):
        assert transform(f)(3.0) == 24.0 and transform(scaled)(3.0) == transform(scaled.__call__)(3.0) == 18.0
    compiled = vg.compile(f)
    assert [compiled(3.0), compiled(3.0), compiled(3.0, n=1.0)] == [36.0, 36.0, 18.0]
    assert vg.grad(compiled)(3.0) == 24.0
    adopted = vg.adopt(f)
    if sys.version_info >= (3, 14):
        with pytest.raises(NameError, match="Model"):
            _ = adopted.__annotations__
    names["Model"] = float
    expected = {"x": "Model", "n": "Model", "return": "Model"}
    if sys.version_info >= (3, 14):
        expected = dict.fromkeys(expected, float)
    assert adopted.__annotations__ == f.__annotations__ == expected
    f.__annotations__ = {"x": int}
    assert adopted(3.0) == 36.0 and vg.adopt(f).__annotations__ == {"x": int}
    del names["Model"]
    assert list(signature_of(names["line"]).parameters) == ["x", "a", "b"]
    assert check_operator(names["line"], np.ones(2), 3.0, 1.0, only="gradients")


def test_bound_methods_of_scipy_objects_keep_gradients():
    cdf, logpdf = scipy.stats.norm.cdf, scipy.stats.gamma.logpdf
    frozen = scipy.stats.norm(0.3, 2.0)

    class Model:
        density = frozen.pdf

        def __init__(self):
            self.cdf = scipy.stats.norm.cdf

        def value(self, x):
            return self.cdf(x) * Model.density(x)

    model = Model()
    value = model.value
    programs = [
        lambda x: cdf(x) * x, lambda x: logpdf(x, 2.5), lambda x: model.value(x), lambda x: value(x),
        lambda x: scipy.stats.norm.pdf(x),
    ]  # fmt: skip
    for program in programs:
        slope = (program(0.7 + 1e-6) - program(0.7 - 1e-6)) / 2e-6
        assert vg.grad(program)(0.7) == pytest.approx(slope, rel=1e-7)
        assert vg.grad(vg.compile(program, executor="python"))(0.7) == pytest.approx(slope, rel=1e-7)


def test_operators_of_the_library_are_not_adopted():
    vg.det(np.eye(2))  # generates the code of det
    for operator in (vg.det, vg.exp, vg.Tensor.sum):
        assert vg.adopt(operator) is operator
    np.testing.assert_allclose(vg.hessian(vg.det)(np.eye(2))[0, 0], [[0.0, 0.0], [0.0, 1.0]])


def test_attributes_of_adopted_modules_are_found_without_a_method_of_python():
    kind = type(vg.adopt(helper).__globals__["__viewgrad_module__"])
    assert kind.__getattribute__ is types.ModuleType.__getattribute__ and not hasattr(kind, "__getattr__")


@pytest.mark.filterwarnings("ignore:Setting the shape:DeprecationWarning")  # of NumPy 2.5
def test_captured_arrays_have_their_current_shape_and_writeable_flag():
    table = np.arange(4.0)

    def width(x):
        return x * table.shape[-1] + table[..., -1].sum()

    def overwritten(x):
        table[0] = 5.0
        return x * 1.0

    adopted, x = vg.adopt(width), vg.Tensor(2.0)
    assert adopted(x).item() == width(2.0) == 11.0
    table.shape = (2, 2)
    assert adopted(x).item() == width(2.0) == 8.0
    table.resize((1, 3), refcheck=False)
    assert adopted(x).item() == width(2.0) == 8.0
    table.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        vg.adopt(overwritten)(x)
    assert table.ravel().tolist() == [0.0, 1.0, 2.0]


def test_keywords_of_partial_methods_may_be_changed():
    class Scaling:
        def scaled(self, x, factor):
            return np.multiply(x, factor)

        doubled = functools.partialmethod(scaled, factor=2.0)

    scaling = Scaling()
    adopted, x = vg.adopt(lambda x: scaling.doubled(x)), vg.Tensor(1.5)
    assert adopted(x).item() == 3.0
    vars(Scaling)["doubled"].keywords["factor"] = 4.0
    assert adopted(x).item() == 6.0


def test_functions_adopted_again_have_the_current_defaults():
    def f(x, k=1.0, *, m=1.0):
        return np.zeros(1)[0] + x * k * m

    first = vg.adopt(f)
    assert first(2.0) == 2.0
    f.__defaults__ = (3.0,)
    f.__kwdefaults__["m"] = 2.0
    assert vg.adopt(f)(2.0) == first(2.0) == 12.0
    f.__kwdefaults__["m"] = 1.0
    assert first(2.0) == vg.value_and_grad(f)(2.0)[0] == 6.0


INTEGERS = np.array([[1, 0], [2, 1]])


def test_methods_of_arrays_of_integers_are_refused_with_an_operator_that_works():
    with pytest.raises(vg.errors.DetachedConversionError, match="use @ instead"):
        vg.grad(lambda x: INTEGERS.dot(x).sum())(np.ones(2))
    assert vg.grad(lambda x: (INTEGERS @ x).sum())(np.ones(2)).tolist() == [3.0, 1.0]
    assert vg.grad(lambda x: np.dot(INTEGERS, x).sum())(np.ones(2)).tolist() == [3.0, 1.0]


SHARED = np.array([1.0, 2.0])
BYTES = memoryview(SHARED)


def test_arrays_that_other_code_writes_during_a_call_keep_their_saved_values():
    def program(x):
        y = SHARED * x
        BYTES[0] = 3.0
        z = SHARED * y
        BYTES[0] = 1.0
        return (y + z + SHARED * y).sum()

    for _ in range(2):
        assert vg.grad(program)(np.ones(2)).tolist() == [1.0 + 3.0 + 1.0, 2.0 + 4.0 + 4.0]


@pytest.mark.filterwarnings("ignore:Setting the shape:DeprecationWarning")  # of NumPy 2.5
def test_saved_copies_of_captured_arrays_are_shared_only_while_nothing_has_changed():
    weights = np.array([0.0, 2.0])
    shapes, signs = [], []

    def program(x):
        return (weights * x).sum()

    gradient = vg.grad(program)
    for change in (lambda: None, lambda: np.copyto(weights, [-0.0, 2.0]), lambda: setattr(weights, "shape", (2, 1))):
        change()
        found = gradient(np.ones(weights.shape))
        shapes.append(found.shape)
        signs.append(np.signbit(found.ravel()[0]))
    assert shapes == [(2,), (2,), (2, 1)] and signs == [False, True, True]


MODEL = """
import numpy as np

class Model:
    def __init__(self):
        self.rate = 2.0

    def value(self, x):
        self.last = np.sin(x) * self.rate
        return self.last

model = Model()

def f(x):
    return model.value(x)
"""


def test_classes_are_freed_with_their_modules():
    names = {"__name__": "models"}
    exec(MODEL, names)
    assert [vg.grad(names["f"])(0.0) for _ in range(3)] == [2.0] * 3
    kind, function = map(weakref.ref, (names["Model"], names["Model"].value))
    del names
    gc.collect()
    assert kind() is None and function() is None


def test_new_attributes_are_in_the_dict_of_the_object():
    class Model:
        def __init__(self):
            self.rate = 2.0

        def value(self, x):
            attributes = self.__dict__
            self.last = np.sin(x) * self.rate
            assert attributes is self.__dict__ and attributes["last"] is self.last
            return self.last

    model = Model()
    for count in range(3):
        model.rate = 2.0 + count
        assert vg.grad(lambda x: model.value(x))(0.0) == 2.0 + count
        assert vars(model).keys() == {"rate", "last"}


def test_slots_of_the_same_name_are_those_of_the_subclass():
    class Base:
        __slots__ = ("rate",)

    class Model(Base):
        __slots__ = ("rate",)

    model = Model()
    model.rate = 2.0

    def doubled(x):
        model.rate = model.rate * 2.0
        return np.sin(x) * model.rate

    assert vg.grad(doubled)(0.0) == 4.0 and model.rate == 4.0


CHEAP = """
import sys
from fresh_interpreter import in_fresh_interpreter

import viewgrad as vg
names = {"__name__": "cheap", "__file__": "/nowhere/cheap.py"}
exec("import numpy as np\\ndef g(x): return x * 2.0\\ndef f(x): return g(x)", names)
adopted = vg.adopt(names["f"])
for _ in range(2):
    adopted(1.0)
calls = []
sys.setprofile(lambda frame, event, arg: calls.append(frame.f_code.co_name) if event == "call" else None)
adopted(1.0)
sys.setprofile(None)
assert len(calls) <= 18  # two of them are those of f and g
"""


def test_cheap_calls_compare_captured_state_in_few_steps():
    assert in_fresh_interpreter({"cheap": CHEAP}) == {"cheap": "passed"}


def test_built_in_names_may_be_added_replaced_and_removed(monkeypatch):
    def f(x):
        return scale_of_builtins(x).sum() * abs(-2)  # noqa: F821

    def scale(x):
        y = np.zeros(2)
        y[:] = 3.0 * x
        return y

    g, x = vg.grad(f), np.ones(2)
    with pytest.raises(NameError, match="scale_of_builtins"):
        g(x)
    monkeypatch.setattr("builtins.scale_of_builtins", scale, raising=False)
    assert g(x).tolist() == [6.0, 6.0]
    monkeypatch.setattr("builtins.abs", lambda value: 5.0)
    monkeypatch.setattr("builtins.scale_of_builtins", lambda x: x)
    assert g(x).tolist() == [5.0, 5.0]
    monkeypatch.undo()
    with pytest.raises(NameError, match="scale_of_builtins"):
        g(x)


class Values:
    """A sequence without operators."""

    def __init__(self, *values):
        self.values = values

    def __len__(self):
        return len(self.values)

    def __getitem__(self, index):
        return self.values[index]


@pytest.mark.parametrize("kind", [Values, lambda *values: collections.deque(values)])
def test_sequences_of_numbers_are_operands(kind):
    def f(x):
        values, target = kind(1.0, 2.0), np.zeros(2)
        target[:] = values
        target += values
        target = target + np.where(x < values, values, x) * (x == values) + x**values
        return np.dot(values, x) + (values * x - values + x @ values).sum() + (target / np.maximum(values, x)).sum()

    x = np.array([3.0, 2.0])
    value, gradient = vg.value_and_grad(f)(x)
    assert value == f(x)
    steps = 1e-6 * np.eye(2)
    steps[1] = 0.0  # a step of the second element changes x == values
    assert gradient[0] == pytest.approx((f(x + steps[0]) - f(x - steps[0])) / 2e-6, rel=1e-6)
    count = np.int64(2)
    assert vg.adopt(lambda: collections.deque([1, 2]) * count)() == collections.deque([1, 2]) * count
