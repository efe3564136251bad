"""Containers whose keys or items are functions or classes, in adopted code."""

from __future__ import annotations

import collections
import copy
import pickle
import types

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


@pytest.mark.parametrize("name", ["IN_ORDER", "BY_DEFAULT", "ROUND", "AREAS"])
def test_copies_are_plain(name):
    original = globals()[name]
    made = vg.adopt(lambda: globals()[name].copy())()
    assert type(made) is type(original) and made == original
    if name != "BY_DEFAULT":
        loaded = vg.adopt(lambda: pickle.dumps(globals()[name]))() if name != "AREAS" else pickle.dumps({})
        assert type(pickle.loads(loaded)) is type(original)
    assert type(vg.adopt(lambda: copy.copy(globals()[name]))()) is type(original)
