"""The caches of functools in adopted code: one cache, which the user's program and adopted code share."""

from __future__ import annotations

import dataclasses
import functools
import typing

import numpy as np
import pytest

import viewgrad as vg
from viewgrad import symbolic

DATA = np.array([0.5, 2.0])


class OnMethod:
    size = 2

    def __init__(self):
        self.data = np.ones(2)

    by_lambda = functools.lru_cache(lambda self: np.ones(2))

    @functools.cache  # noqa: B019
    def of_method(self):
        return np.ones(2)

    @functools.lru_cache(maxsize=2)  # noqa: B019
    def of_attribute(self):
        return self.data.copy()

    @functools.cached_property
    def of_property(self):
        return np.ones(2)

    @staticmethod
    @functools.cache
    def of_static():
        return np.ones(2)

    @classmethod
    @functools.cache
    def of_class(cls):
        return np.ones(cls.size)

    @property
    @functools.cache  # noqa: B019
    def property_of(self):
        return np.ones(2)

    def of_bound(self, n):
        return np.ones(n)


@dataclasses.dataclass(frozen=True)
class ByValue:
    size: int = 2
    name: str = "a"

    @functools.cache  # noqa: B019
    def table(self):
        return np.ones(self.size)


class Named(typing.NamedTuple):
    size: int

    def of(self, x):
        return np.sin(x)


def table_for(*arguments, **keywords):
    @functools.lru_cache
    def table(value=None, *, key=3):
        return np.ones(2)

    return functools.partial(table, *arguments, **keywords)


class Record:
    def __init__(self):
        self.values = np.ones(2)


OBJECT = OnMethod()
# Functions that return a function of no arguments, which returns a cached array.
TABLES = {
    "lambda in a class": lambda: OnMethod().by_lambda,
    "method": lambda: OnMethod().of_method,
    "method of an attribute": lambda: OnMethod().of_attribute,
    "cached_property": lambda o=None: (lambda made: lambda: made.of_property)(OnMethod()),
    "staticmethod": lambda: (OnMethod.of_static.cache_clear(), OnMethod.of_static)[1],
    "classmethod": lambda: (OnMethod.of_class.__func__.cache_clear(), OnMethod.of_class)[1],
    "classmethod of an object": lambda: (OnMethod.of_class.__func__.cache_clear(), OnMethod().of_class)[1],
    "property": lambda: (lambda made: lambda: made.property_of)(OnMethod()),
    "bound method": lambda: functools.partial(functools.lru_cache(OnMethod().of_bound), 2),
    "objects equal by value": lambda: (ByValue.table.cache_clear(), lambda: ByValue().table())[1],
    "partial": lambda: functools.lru_cache(functools.partial(np.ones, 2)),
    "function of NumPy": lambda: functools.partial(functools.lru_cache(np.ones), 2),
    "no argument": lambda: functools.cache(lambda: np.ones(2)),
    "None": lambda: table_for(None),
    "number": lambda: table_for(2),
    "number of NumPy": lambda: table_for(np.int64(2)),
    "keyword": lambda: table_for(key=2),
    "object": lambda: table_for(OBJECT),
    "keyword that is an object": lambda: table_for(key=OBJECT),
    "tuple": lambda: table_for((1, "a")),
    "tuple of objects": lambda: table_for((OBJECT, 1)),
    "frozenset": lambda: table_for(frozenset((1, 2))),
    "named tuple": lambda: (lambda table: lambda: table(Named(2)))(table_for()),
    "function": lambda: table_for(np.sin),
    "class": lambda: table_for(OnMethod),
    "class of NumPy": lambda: table_for(np.float64),
    "dtype": lambda: table_for(np.dtype(float)),
    "method as an argument": lambda: table_for(OBJECT.of_bound),
    "typed": lambda: functools.partial(functools.lru_cache(typed=True)(lambda n: np.ones(n)), 2),
    "attribute of a result": lambda: (lambda made: lambda: made().values)(functools.cache(lambda: Record())),
    "entry of a result": lambda: (lambda made: lambda: made()["a"])(functools.cache(lambda: {"a": np.ones(2)})),
    "list": lambda: functools.cache(lambda: [1.0, 1.0]),
}


def first(table):
    return lambda x: x * table()[0]


def set_first(table):
    def f(x):
        table()[0] = 7.0
        return x * 1.0

    return f


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("is_used", [False, True])
def test_writes_of_the_program_to_a_cached_result_are_seen(name, is_used):
    table = TABLES[name]()
    f, gradient = vg.adopt(first(table)), vg.grad(lambda x: first(table)(x).sum())
    if is_used:
        assert f(vg.ones(2)).tolist() == [1.0, 1.0]
    table()[0] = 7.0
    assert f(vg.ones(2)).tolist() == [7.0, 7.0]
    assert gradient(DATA).tolist() == [7.0, 7.0]
    assert vg.jvp(first(table), (DATA,), (DATA,))[1].tolist() == (7.0 * DATA).tolist()


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("is_used", [False, True])
def test_writes_of_adopted_code_to_a_cached_result_are_seen(name, is_used):
    table = TABLES[name]()
    if is_used:
        assert table()[0] == 1.0
    vg.adopt(set_first(table))(vg.ones(2))
    assert table()[0] == 7.0
    assert vg.adopt(first(table))(vg.ones(2)).tolist() == [7.0, 7.0]


@pytest.mark.parametrize("name", TABLES)
def test_compiled_functions_see_writes_to_a_cached_result(name):
    table = TABLES[name]()

    def loop(x):
        total = 0.0
        for i in range(3):
            total = total + x[i % 2] * table()[0]
        return total

    compiled, looped = vg.compile(first(table)), vg.compile(loop)
    for value in (1.0, 7.0, 3.0):
        table()[0] = value
        for _ in range(3):
            assert compiled(vg.ones(2)).tolist() == [value, value]
            assert looped(vg.ones(2)).item() == 3 * value


def test_attributes_assigned_to_a_cached_result_are_kept():
    made = functools.cache(lambda: Record())
    vg.adopt(lambda x: setattr(made(), "values", np.full(2, 7.0)))(vg.ones(2))
    assert made().values.tolist() == [7.0, 7.0]


SCALE = 2.0
seen = []


class Stateful:
    def __init__(self, weight):
        self.weight = weight

    @functools.cache  # noqa: B019
    def scaled(self):
        seen.append(self.weight)
        return np.ones(2) * self.weight * SCALE

    @functools.cache  # noqa: B019
    def filled(self):
        out = np.zeros(2)
        out[:] = self.weight
        return out


def test_cached_functions_see_assignments_of_the_call(monkeypatch):
    monkeypatch.setitem(globals(), "SCALE", 2.0)
    model = Stateful(1.0)

    def f(x):
        global SCALE
        model.weight, SCALE = 3.0, 5.0
        seen.clear()
        return (model.scaled() * x).sum() * len(seen)

    assert vg.grad(f)(DATA).tolist() == [15.0, 15.0]
    assert model.scaled().tolist() == [15.0, 15.0] and seen == [3.0]


@pytest.mark.parametrize("is_made_inside", [False, True])
def test_cached_methods_of_objects_with_tensors_are_differentiated(is_made_inside):
    model = Stateful(1.0)

    def f(x):
        one = Stateful(x) if is_made_inside else model
        one.weight = x
        table = one.filled()
        table *= x
        return (one.filled() + one.scaled()).sum()  # filled() is x**2

    gradient = vg.grad(f)(DATA)
    np.testing.assert_allclose(gradient, 2 * DATA + SCALE)


def test_cached_methods_of_objects_with_properties_cached_in_adopted_code():
    model = OnMethod()

    def f(x):
        total = (model.of_property * x).sum()
        model.of_attribute()[0] = 7.0
        return total

    assert vg.grad(f)(DATA).tolist() == [1.0, 1.0]
    assert model.of_attribute()[0] == 7.0


class WithTensor:
    def __init__(self):
        self.tensor = vg.ones(2)

    @functools.cache  # noqa: B019
    def table(self):
        return np.ones(2)

    @functools.cache  # noqa: B019
    def scaled(self):
        return 2.0 * self.tensor


MODES = {
    "compile": vg.compile,
    "compiled gradient": lambda f: vg.compile(vg.grad(f)),
    "gradient of compiled": lambda f: vg.grad(vg.compile(f)),
    "jvp": lambda f: lambda x: vg.jvp(f, (x,), (x,)),
    "hessian": vg.hessian,
    "functionalize": lambda f: vg.func.functionalize(vg.adopt(f)),
    "inference_mode": lambda f: vg.inference_mode()(vg.adopt(f)),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["table", "scaled"])
def test_writes_to_cached_results_of_objects_with_tensors_are_seen_in_every_mode(mode, name):
    model = WithTensor()
    method = getattr(model, name)

    def f(x):
        total = (model.tensor * x).sum()
        table = method()
        table[0] = 7.0
        return total + (table * x**2).sum()

    called = MODES[mode](f)
    for _ in range(3):
        called(DATA)
        assert method()[0] == 7.0


def test_cached_methods_of_objects_with_tensors_in_traces():
    model = WithTensor()

    def f(x):
        model.table()[0] += 1.0
        return (model.scaled() * x * model.table()).sum()

    compiled = vg.compile(f)
    for count in (2.0, 3.0, 4.0):
        assert compiled(DATA) == 2 * count * DATA[0] + 2 * DATA[1]
    assert "a cached function that uses tensors at " + __file__ in str(compiled.explain())
    other = WithTensor()
    with pytest.raises(vg.errors.TraceError, match="a cached function that uses tensors"):
        symbolic.trace(vg.adopt(lambda x: other.scaled() * x), vg.ones(2))
    assert isinstance(model.scaled(), vg.Tensor) and not model.scaled().requires_grad


def test_cached_methods_of_objects_with_tangents():
    model = WithTensor()

    def f(x):
        model.tensor = x
        return (model.scaled() * x).sum()  # 2 * x**2

    assert vg.jvp(f, (DATA,), (np.ones(2),))[1] == 4 * DATA.sum()


def test_a_value_with_history_is_not_written_into_a_cached_array():
    table = table_for(2)

    def f(x):
        table()[:] = x
        return table().sum()

    with pytest.raises(vg.errors.DetachedConversionError, match="created outside the function"):
        vg.grad(f)(DATA)


def test_adopted_caches_evict_the_least_recent_result_of_the_shared_cache():
    table = functools.lru_cache(maxsize=2)(lambda n: np.ones(2))
    table(1)[0] = 7.0
    table(2)[0] = 8.0
    assert vg.adopt(lambda x: x * table(1)[0])(1.0) == 7.0
    table(3)
    assert vg.adopt(lambda x: x * (table(1)[0] + 10 * table(2)[0]))(1.0) == 17.0
    assert table.cache_info().hits == 2 and vg.adopt(lambda x: table.cache_info())(1.0) == table.cache_info()


@pytest.mark.parametrize("arguments", [(), (2,), ("2",), (True,), (2.0,), (None,), (2, 3), (True, 3.0), (2, "3", 4)])
@pytest.mark.parametrize("typed", [False, True])
def test_shared_caches_count_calls_of_adopted_code_like_calls_of_the_program(arguments, typed):
    @functools.lru_cache(typed=typed)
    def table(key=0, found=1, other=2):
        return np.ones(2) if found == 3 else repr((key, found, other))

    def results():
        return [table(*arguments), table(2), table(*arguments), table(found=3), table(2.0), table(*arguments)]

    adopted = vg.adopt(results)()
    info = table.cache_info()
    assert list(map(str, adopted)) == list(map(str, results()))
    assert table.cache_info().misses == info.misses
    table.cache_clear()
    results()
    assert table.cache_info() == info


def test_clearing_a_shared_cache():
    table = functools.cache(lambda n: np.ones(2))
    f = vg.adopt(lambda x: x * table(1)[0])
    table(1)[0] = 7.0
    assert f(1.0) == 7.0
    table.cache_clear()
    assert f(1.0) == 1.0
    table(1)[0] = 7.0
    vg.adopt(lambda x: table.cache_clear())(1.0)
    assert table(1)[0] == 1.0


def test_unhashable_arguments_raise_as_in_the_program():
    table = table_for()
    with pytest.raises(TypeError, match="unhashable type: 'list'"):
        vg.adopt(lambda x: table([1]))(1.0)
