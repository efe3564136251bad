"""Containers whose keys or items are functions or classes, in adopted code."""

from __future__ import annotations

import collections
import copy
import pickle
import types
import typing

import numpy as np
import pytest

import viewgrad as vg

POINT = np.array([0.7, 1.3, 2.1])


class Circle:
    def __init__(self, size):
        self.size = size

    def area(self):
        return np.pi * self.size**2


class Square:
    def __init__(self, size):
        self.size = size


def double(x):
    return np.zeros(3) + 2.0 * x


UNIT = Circle(1.0)
DERIVATIVES = {np.sin: np.cos, np.exp: np.exp, double: lambda x: x * 0.0 + 2.0}
AREAS = {Circle: Circle.area, Square: lambda shape: shape.size**2}
BY_TYPE = {np.ndarray: np.sum, int: float}
NAMES = {(np.add, "plus"): 2.0}
ROUND = {Circle}
SMOOTH = frozenset({np.sin, double})
OF_OBJECTS = {UNIT: 3.0}
COLLECTED = {np.sin}


IN_ORDER = collections.OrderedDict(double=double, sin=np.sin)
BY_DEFAULT = collections.defaultdict(lambda: double)
READ_ONLY = types.MappingProxyType({"double": double})
QUEUE = collections.deque([double, np.sin], maxlen=3)
CHAIN = collections.ChainMap({"double": double}, {"sin": np.sin})
USER_DICT = collections.UserDict(double=double)
USER_LIST = collections.UserList([double])
NAMESPACE = types.SimpleNamespace(double=double)
OF_TYPES = {
    "OF_OBJECTS": dict, "USER_LIST": collections.UserList, "COLLECTED": set, "QUEUE": collections.deque,
    "IN_ORDER": collections.OrderedDict, "NAMESPACE": types.SimpleNamespace,
}  # fmt: skip


def area(shape):
    return AREAS.get(type(shape), lambda other: 0.0)(shape)


PROGRAMS = {
    "ufuncs as keys": lambda x: (DERIVATIVES[np.sin](x) + DERIVATIVES[np.exp](x)).sum(),
    "functions as keys": lambda x: DERIVATIVES[double](x).sum() * x[0] + double(x)[1],
    "items of functions": lambda x: sum((f(x) * slope(x)).sum() for f, slope in DERIVATIVES.items()),
    "classes as keys": lambda x: area(Circle(x[0])) + area(Square(x[1])) + area(UNIT) * x[2],
    "the class of arrays": lambda x: BY_TYPE[type(x)](x) * BY_TYPE[int](2),
    "tuples as keys": lambda x: NAMES[np.add, "plus"] * x[0] if (np.multiply, "plus") not in NAMES else 0.0,
    "sets of classes": lambda x: x[0] * (type(UNIT) in ROUND) + x[1] * (type(Circle(1.0)) in ROUND),
    "frozen sets": lambda x: sum(f(x).sum() for f in SMOOTH) + x[0] * (np.sin in SMOOTH),
    "an ordered dict": lambda x: sum(f(x)[1] for f in IN_ORDER.values()) + IN_ORDER.copy()["double"](x)[2],
    "a default dict": lambda x: (BY_DEFAULT["absent"](x) * x).sum() + (BY_DEFAULT | {"a": 1})["absent"](x)[0],
    "a read-only dict": lambda x: (READ_ONLY["double"](x) * x).sum(),
    "a deque": lambda x: sum((f(x) * x).sum() for f in QUEUE) + (QUEUE + QUEUE)[2](x)[0] + QUEUE.copy()[0](x)[1],
    "a chain of dicts": lambda x: (CHAIN["double"](x) * CHAIN.new_child({"sin": np.cos})["sin"](x)).sum(),
    "UserDict and UserList": lambda x: USER_DICT["double"](x)[0] * (USER_LIST + USER_LIST)[1](x)[1],
    "objects as keys": lambda x: OF_OBJECTS[UNIT] * x[0] + sum(shape.area() * x[1] for shape in OF_OBJECTS),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients(name):
    f = PROGRAMS[name]
    value, gradient = vg.value_and_grad(f)(POINT)
    steps = np.eye(3) * 1e-6
    differences = [(float(f(POINT + step)) - float(f(POINT - step))) / 2e-6 for step in steps]
    assert value == pytest.approx(float(f(POINT))) and gradient == pytest.approx(differences, abs=1e-6)


def collect(x):
    COLLECTED.add(np.cos)
    COLLECTED.discard(np.sin)
    DERIVATIVES[np.cos] = np.negative
    shapes[Circle(x)] = Square
    return x if np.cos in COLLECTED and DERIVATIVES[np.cos] is np.negative else 0.0 * x


shapes: dict[object, object] = {}


def test_writes_reach_the_users_containers():
    try:
        assert vg.grad(collect)(2.0) == 1.0
        assert COLLECTED == {np.cos} and DERIVATIVES[np.cos] is np.negative
        ((key, value),) = shapes.items()
        assert type(key) is Circle and value is Square
    finally:
        del DERIVATIVES[np.cos]
        shapes.clear()
        COLLECTED.clear()


def test_later_changes_are_seen():
    count = vg.adopt(lambda: (len(ROUND), type(Square(1.0)) in ROUND, len(AREAS)))
    assert count() == (1, False, 2)
    ROUND.add(Square)
    removed = AREAS.pop(Square)
    try:
        assert count() == (2, True, 1)
    finally:
        ROUND.discard(Square)
        AREAS[Square] = removed


def made_in_set(x):
    found.add(Circle(x))
    return x


found: set[object] = set()


def test_objects_in_sets_get_the_users_class():
    vg.grad(made_in_set)(2.0)
    assert [type(each) for each in found] == [Circle]
    made = vg.adopt(lambda x: {Circle(x)})(2.0)
    assert collections.Counter(map(type, made)) == {Circle: 1}
    (each,) = vg.adopt(lambda x: frozenset([UNIT]))(2.0)
    assert each is UNIT


def test_writes_to_other_dicts_reach_them():
    ordered = collections.OrderedDict(first=double, second=np.sin, third=np.cos)
    default = collections.defaultdict(lambda: [double], known=[np.sin])

    def f(x):
        ordered.move_to_end("first")
        ordered["fourth"] = np.exp
        assert list(ordered) == ["second", "third", "first", "fourth"] and ordered.pop("third") is np.cos
        assert ordered.popitem(last=False) == ("second", np.sin)
        default["absent"].append(np.cos)
        return default["absent"][0](x)[0] + isinstance(ordered, collections.OrderedDict)

    assert vg.grad(f)(3.0) == 2.0
    assert list(ordered.items()) == [("first", double), ("fourth", np.exp)]
    assert default["known"] == [np.sin] and default["absent"][1] is np.cos and default["absent"][0] is double
    default.default_factory = lambda: [np.negative]
    assert vg.adopt(lambda x: default["other"][0](x))(2.0) == -2.0 and default["other"] == [np.negative]


def test_writes_to_deques_reach_them():
    queue = collections.deque([double, np.sin, np.cos], maxlen=4)

    def f(x):
        queue.rotate(1)
        queue.append(np.exp)
        queue.appendleft(double)  # drops the last item
        queue[1] = np.tan
        assert queue.maxlen == 4 and queue.pop() is np.sin and queue.popleft() is double
        queue.extend([double, Circle(x)])
        queue.remove(np.tan)
        return queue[1](x)[0]

    assert vg.grad(f)(3.0) == 2.0
    assert list(queue)[:2] == [double, double] and type(queue[2]) is Circle and queue[2].size == 3.0
    queue.append(np.square)
    assert vg.adopt(lambda x: queue[-1](x))(3.0) == 9.0


def test_writes_to_wrapped_containers_reach_them():
    user, names, chain = collections.UserDict(f=double), collections.UserList([double]), collections.ChainMap()
    chain["f"] = double

    def f(x):
        user["g"], chain["g"] = np.sin, np.sin
        names.append(np.cos)
        user.label = "written"
        return user["f"](x)[0] + chain["f"](x)[0] + names[0](x)[0]

    assert vg.grad(f)(3.0) == 6.0
    assert user["g"] is np.sin and chain["g"] is np.sin and names[1] is np.cos and user.label == "written"
    user.data = {"f": np.negative}
    assert vg.adopt(lambda x: user["f"](x))(3.0) == -3.0


def cyclic(x):
    first, second = types.SimpleNamespace(circle=Circle(x)), []
    first.second, first.first = second, first
    second += [first, second]
    return first


def test_cyclic_containers_are_returned():
    made = vg.adopt(cyclic)(2.0)
    assert made.second[0] is made and made.first is made and type(made.circle) is Circle


@pytest.mark.parametrize("name", OF_TYPES)
def test_types(name):
    """Adopted code that branches on the type of a container takes the branch of the original."""
    kind = OF_TYPES[name]
    f = lambda x: x * 2.0 if type(globals()[name]) is kind and globals()[name].__class__ is kind else x
    assert vg.grad(f)(3.0) == 2.0


@pytest.mark.parametrize("name", ["IN_ORDER", "BY_DEFAULT", "ROUND", "AREAS", "QUEUE", "USER_DICT", "CHAIN"])
def test_copies_are_plain(name):
    original = globals()[name]
    made = vg.adopt(lambda: globals()[name].copy())()
    assert type(made) is type(original) and made == original
    if name != "BY_DEFAULT":
        loaded = vg.adopt(lambda: pickle.dumps(globals()[name]))() if name != "AREAS" else pickle.dumps({})
        assert type(pickle.loads(loaded)) is type(original)
    assert type(vg.adopt(lambda: copy.copy(globals()[name]))()) is type(original)


class Registry:
    by_name: typing.ClassVar[dict[str, object]] = {}

    def __init__(self):
        self.functions = []

    def run(self, x):
        for function in [*self.functions, *self.by_name.values()]:
            x = function(x)
        return x


REGISTRY, FUNCTIONS, OPTIONS = Registry(), [], {"absent": None}
CALLBACKS: list[object] = []


def test_containers_filled_later_are_adopted():
    """A list or dict that had nothing to adopt at the first call is adopted once it has."""
    inner: list[object] = []

    def f(x):
        for function in (*FUNCTIONS, *inner, *OPTIONS.values()):
            x = x if function is None else function(x)
        return REGISTRY.run(x)[0]

    slope = vg.grad(f)
    assert slope(POINT).tolist() == [1.0, 0.0, 0.0]
    FUNCTIONS.append(double)
    assert slope(POINT).tolist() == [2.0, 0.0, 0.0]
    inner.append(double)
    OPTIONS["absent"] = double
    REGISTRY.functions.append(double)
    Registry.by_name["a"] = double
    assert slope(POINT).tolist() == [32.0, 0.0, 0.0]
    FUNCTIONS[0] = np.negative
    FUNCTIONS.append(double)
    assert slope(POINT).tolist() == [-32.0, 0.0, 0.0]


def test_functions_put_into_containers_are_the_users():
    found: dict[str, object] = {}

    def f(x):
        CALLBACKS.extend([np.sin, double, Circle(x)])
        found.update(a=np.cos, b=double, c=Circle(x))
        return x

    vg.grad(f)(2.0)
    assert CALLBACKS[:2] == [np.sin, double] and type(CALLBACKS[2]) is Circle
    assert found["a"] is np.cos and found["b"] is double and type(found["c"]) is Circle
