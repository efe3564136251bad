"""Guards on captured state: changes in modules, classes, objects and caches."""

from __future__ import annotations

import array
import collections
import functools
import operator
import os
import random
import types

import captured_module
import captured_module as settings
import numpy as np
import pytest

import viewgrad as vg
from viewgrad.compiler.guards.closure_guard import ClosureGuard
from viewgrad.compiler.guards.identity_checks import FEW, Check, identity_check

factor = 2.0


class Model:
    factor = 2.0

    def forward(self, x):
        return x * factor

    def __mul__(self, other):
        return other * factor

    @property
    def doubled(self):
        return factor

    @staticmethod
    def scaled(x):
        return x * factor

    @classmethod
    def of_class(cls, x):
        return x * cls.factor


class Inherited(Model):
    def forward(self, x):
        return super().forward(x)


class Other:
    pass


class Dynamic:
    def __getattr__(self, name):
        return factor


model, inherited, dynamic = Model(), Inherited(), Dynamic()
modules = {"settings": settings}
name_of_it = "factor"
getter = operator.attrgetter("factor")
queue = collections.deque([[2.0]])
numbers = array.array("d", [2.0])
space = types.SimpleNamespace(factor=2.0)
objects = np.array([[2.0], None], dtype=object)
deep = {"a": {"b": {"c": {"d": {"e": {"f": {"g": {"h": 2.0}}}}}}}}
vectorized = np.vectorize(lambda number: number * factor)
compiled_inside = vg.compile(lambda x: x * factor, executor="python")
gradient_of = vg.func.grad(lambda x: (x * x * factor).sum())


def chain(length):
    return (lambda x: x * factor) if not length else (lambda inner: lambda x: inner(x))(chain(length - 1))


far = chain(12)


def imported(x):

    return x * captured_module.factor


def imported_from(x):
    from captured_module import factor

    return x * factor


def of_function(x):
    return x * of_function.factor


def with_default(x, by=None):
    return x * (by or factor)


SEEING = {
    "a module": lambda x: x * settings.factor,
    "a function of a module": lambda x: settings.scaled(x),
    "a class of a module": lambda x: x * settings.Settings.factor,
    "a module in a dict": lambda x: x * modules["settings"].factor,
    "a module imported inside": imported,
    "a name imported inside": imported_from,
    "an inner function": lambda x: (lambda y: y * settings.factor)(x),
    "getattr": lambda x: x * getattr(settings, "factor"),  # noqa: B009
    "getattr of a name": lambda x: x * getattr(settings, name_of_it),
    "an attrgetter": lambda x: x * getter(settings),
    "globals": lambda x: x * globals()["factor"],
    "vars": lambda x: x * vars(settings)["factor"],
    "a class": lambda x: x * Model.factor,
    "an attribute of the class": lambda x: x * model.factor,
    "a method": lambda x: model.forward(x),
    "an inherited method": lambda x: inherited.forward(x),
    "an object made inside": lambda x: Model().forward(x),
    "an operator of a class": lambda x: model * x,
    "a property": lambda x: x * model.doubled,
    "a static method": lambda x: Model.scaled(x),
    "a class method": lambda x: Inherited.of_class(x),
    "an attribute by __getattr__": lambda x: x * dynamic.anything,
    "an attribute of a function": of_function,
    "a default": with_default,
    "a function called by twelve others": lambda x: far(x),
    "a compiled function": lambda x: compiled_inside(x),
    "a gradient": lambda x: gradient_of(x),
    "a vectorized function": lambda x: x * float(vectorized(1.0)),
    "a list in a deque": lambda x: x * queue[0][0],
    "an array of the standard library": lambda x: x * numbers[0],
    "a namespace": lambda x: x * vars(space)["factor"],
    "a list in an array of objects": lambda x: x * objects[0][0],
    "a dict in a dict in a dict": lambda x: x * deep["a"]["b"]["c"]["d"]["e"]["f"]["g"]["h"],
    "the environment": lambda x: x * float(os.environ["FACTOR"]),
    "a method of map": lambda x: functools.reduce(operator.add, map(settings.scaled, [x, x])),
}


def set_all(number: float) -> None:
    global factor
    factor = settings.factor = settings.Settings.factor = Model.factor = of_function.factor = number
    queue[0][0] = numbers[0] = space.factor = objects[0][0] = number
    deep["a"]["b"]["c"]["d"]["e"]["f"]["g"]["h"] = number
    os.environ["FACTOR"] = str(number)


@pytest.mark.parametrize("what", SEEING)
def test_changed_state_is_detected(what):
    set_all(2.0)
    compiled = vg.compile(SEEING[what], executor="python")
    x = vg.arange(3.0).requires_grad_()
    for _ in range(4):
        before = compiled(x)
    assert compiled.specializations[0].program is not None, compiled.explain()
    set_all(3.0)
    assert compiled(x).tolist() == SEEING[what](x).tolist() != before.tolist()


def test_methods_and_attributes_added_later_are_detected():
    class Plain:
        factor = 2.0

        def forward(self, x):
            return x * 2.0

    class Derived(Plain):
        pass

    def run(x):
        return plain.forward(x) * plain.factor

    plain = Derived()
    compiled = vg.compile(run, executor="python")
    x = vg.ones(3, requires_grad=True)

    def agrees():
        for _ in range(4):
            found = compiled(x).tolist()
        return found == run(x).tolist() and compiled.specializations[0].program is not None

    assert agrees()
    Plain.forward = lambda self, x: x * 5.0
    assert agrees()
    Derived.forward = lambda self, x: x * 7.0
    assert agrees()
    Derived.factor = 11.0
    assert agrees()
    plain.factor = 13.0
    assert agrees()
    run.__code__ = (lambda x: plain.forward(x) * plain.factor * 17.0).__code__
    assert agrees()


def test_a_cache_filled_by_the_first_call():
    cache = {}

    def cached(x):
        if "weights" not in cache:
            cache["weights"] = np.arange(3.0)
        return x * cache["weights"]

    compiled = vg.compile(cached, executor="python")
    for _ in range(4):
        compiled(vg.ones(3))
    assert compiled.specializations[0].program is not None, compiled.explain()


@pytest.mark.parametrize("generator", [np.random.default_rng(0), np.random.RandomState(0), random.Random(0)])
def test_captured_generators_are_not_compiled(generator):
    def noisy(x):
        return x * (generator.random() if hasattr(generator, "random") else 1.0)

    compiled = vg.compile(noisy, executor="python")
    compiled(vg.ones(3))
    assert "random numbers" in compiled.explain()


zero = 0.0


@pytest.mark.parametrize("values", [(False, True), (2, 3), ("mul", "add"), (np.multiply, np.add)], ids=str)
def test_changed_variables_of_enclosing_functions_are_detected(values):
    chosen = values[0]

    def function(x):
        return x * 2.0 if chosen == values[0] else x * 3.0

    compiled = vg.compile(function, executor="python")
    x = vg.Tensor([1.0, 2.0], requires_grad=True)
    for _ in range(3):
        np.testing.assert_array_equal(compiled(x).detach(), [2.0, 4.0])
    chosen = values[1]
    for _ in range(2):
        np.testing.assert_array_equal(compiled(x).detach(), [3.0, 6.0])


def test_the_sign_of_a_captured_zero_is_a_part_of_the_program(monkeypatch):
    @vg.compile(executor="python")
    def f(x):
        return x * np.copysign(1.0, zero)

    for _ in range(3):
        assert f(vg.ones(3)).tolist() == [1.0] * 3
    monkeypatch.setattr(f"{__name__}.zero", -0.0)
    for _ in range(3):
        assert f(vg.ones(3)).tolist() == [-1.0] * 3


# -- memory that captured tensors, captured arrays and arguments share -------------------------------------------------


def agrees_always(function, calls, change=lambda: None):
    """Check that a compiled function returns what the function does before and after a change of captured state."""
    for specialize in (True, False):
        compiled = vg.compile(function, executor="python", specialize=specialize)
        for each in calls:
            for _ in range(4):
                np.testing.assert_array_equal(np.asarray(compiled(each())), np.asarray(function(each())))
        change()
        for _ in range(3):
            np.testing.assert_array_equal(np.asarray(compiled(calls[0]())), np.asarray(function(calls[0]())))


@pytest.mark.parametrize(
    "replace",
    [
        lambda whole: whole[1],
        lambda whole: whole[:, 0],
        lambda whole: whole[0].clone(),
        lambda whole: whole.reshape(4)[1:3],
    ],
    ids=["other window", "other strides", "no window", "other start"],
)
def test_windows_of_captured_tensors_that_are_replaced(replace):
    whole = vg.Tensor([[1.0, 2.0], [3.0, 4.0]])
    held = {"whole": whole, "window": whole[0]}

    def function(x):
        held["whole"][0, 0] = 9.0
        found = x * held["window"] + held["whole"].sum()
        held["whole"][0, 0] = 1.0
        return found

    def change():
        held["window"] = whole[0] if held["window"] is not first else replace(whole)

    first = held["window"]
    agrees_always(function, [lambda: vg.ones(2)], change)


@pytest.mark.parametrize("kind", [vg.Tensor, np.array])
@pytest.mark.parametrize("take", [lambda a: a, lambda a: a[:2], lambda a: a[:]], ids=["itself", "window", "alias"])
@pytest.mark.parametrize("writes", [False, True])
@pytest.mark.parametrize("shared_first", [False, True])
def test_arguments_that_share_memory_with_captured_state(kind, take, writes, shared_first):
    captured = kind([2.0, 3.0, 5.0])

    def function(x):
        if writes:
            x[0] = 2.0 * x[1]
        found = x * captured.sum() + captured[0]
        if writes:
            x[0] = 2.0
        return found

    shared, other = lambda: take(captured), lambda: take(kind([2.0, 3.0, 7.0]))
    agrees_always(function, [shared, other] if shared_first else [other, shared])


@pytest.mark.parametrize("kind", [vg.Tensor, np.array])
@pytest.mark.parametrize("take", [lambda a: a, lambda a: a[:2], vg.asarray], ids=["itself", "window", "tensor"])
@pytest.mark.parametrize("sort", [np.sort, lambda y: y], ids=["from a trace", "from source"])
def test_arguments_that_share_memory_with_captured_state_that_is_restored(kind, take, sort):
    captured = kind([2.0, 3.0, 5.0])

    def function(x):
        captured[0] = 9.0
        found = sort(x) * captured[1]
        captured[0] = 2.0
        return found

    agrees_always(function, [lambda: take(kind([2.0, 3.0, 7.0])), lambda: take(captured)])


def test_other_results_of_a_cached_function_leave_programs_valid():
    @functools.cache
    def table(n):
        return np.ones(n)

    f = vg.compile(lambda x: np.sort(x) * table(3).sum(), executor="python")
    table(3)
    for n in range(20):
        table(n)
        assert f(vg.ones(2)).tolist() == [3.0, 3.0]
    assert f.cache.traces == 1


# -- checks by identity, which are generated after some calls ----------------------------------------------------------


def compared_often(function, *arguments):
    guard = ClosureGuard(function, arguments)
    assert all(guard.unchanged() for _ in range(FEW + 2))
    assert guard.quick is not None and guard.quick(())
    return guard


def test_generated_checks_see_changes_of_modules_cells_attributes_and_items():
    space = {"__name__": __name__, "np": np, "rate": 3, "table": {"a": 1, 2: "b"}}
    exec("def f(x):\n    return np.sin(x) * rate * table['a'] * len(table[2])", space)
    for change in (
        lambda: space.update(rate=4), lambda: space.pop("rate"), lambda: space.update(sin=np.cos, np=settings),
        lambda: space["table"].update(a=2), lambda: space["table"].pop(2), lambda: space["table"].update(c=1),
        lambda: space.update(len=lambda text: 3),
    ):
        kept, table = dict(space), dict(space["table"])
        guard = compared_often(space["f"])
        change()
        assert not guard.unchanged()
        space["table"].clear()
        space["table"].update(table)
        space.clear()
        space.update(kept)
        assert compared_often(space["f"])

    def enclosing(factor):
        def scaled(x):
            return x * factor

        def change(value):
            nonlocal factor
            factor = value

        return scaled, change

    scaled, change = enclosing(3)
    guard = compared_often(scaled)
    change(4)
    assert not guard.unchanged()


def test_a_generated_check_of_places():
    owner = types.SimpleNamespace(a=[1, 2], b={"k": "v", (1, 2): 3})
    key = (1, 2)
    check = identity_check([
        Check(owner, (("attr", "a"),), owner.a), Check(owner, (("attr", "b"), ("item", key)), 3),
        Check(owner.b, (("get", "other"),), None), Check(owner.a, (), 2, how="length"),
        Check(owner.b, (), "other", how="absent"), Check(0, (("attr", "real"),), 7, is_argument=True),
    ])
    assert check([7])
    assert not check([8]) and not check([])
    for change, undo in (
        (lambda: owner.a.append(3), lambda: owner.a.pop()),
        (lambda: owner.b.update(other=1), lambda: owner.b.pop("other")),
        (lambda: owner.b.pop(key), lambda: owner.b.update({key: 3})),
    ):
        change()
        assert not check([7])
        undo()
        assert check([7])
    del owner.a
    assert not check([7])
