"""Objects made outside as adopted code sees them: attributes are the object's, and are stored without a dict."""

from __future__ import annotations

import dataclasses
import gc
import itertools
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import viewgrad as vg
from viewgrad.adoption.registry import registry_of


@dataclasses.dataclass
class Gains:
    first: float = 0.5
    second: object = 2.0

    def total(self, x):
        return self.first * x + np.zeros(1)[0]


class Node:
    def __init__(self, value, below=None):
        self.value = value
        self.below = below
        self.me = self

    def depth(self):
        return 1 if self.below is None else 1 + self.below.depth()

    @classmethod
    def made(cls, value):
        return cls(value)

    def twin(self):
        return type(self)(self.value * 2)


class Hiding:
    """Has an attribute that a property of the same name hides."""

    def __init__(self):
        self.__dict__["rate"] = 3.0
        self.calls = 0

    @property
    def rate(self):
        return self.__dict__["rate"] * 2

    @rate.setter
    def rate(self, value):
        self.calls += 1
        self.__dict__["rate"] = value


def view_of(value):
    """Return the view through which adopted code of this module sees an object."""
    found = registry_of(globals())._views.get(id(value))
    assert found is not None
    return found


def has_dict(view):
    return any(type(each) is dict for each in gc.get_referents(view))


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="a dict does not slow attributes down there")
def test_views_have_no_dict():
    gains = Gains()
    owner = Node(gains)
    adopted = vg.adopt(lambda x: owner.value.total(x))
    assert adopted(2.0) == 1.0
    for _ in range(3):
        gains.second = np.ones(2)
        gains.first += 1.0
        assert adopted(2.0) == 2 * gains.first
    vg.adopt(lambda: setattr(gains, "first", 7.0))()
    assert gains.first == 7.0 and adopted(2.0) == 14.0
    assert not has_dict(view_of(gains)) and not has_dict(view_of(owner))


def test_views_of_objects_that_need_a_dict():
    hiding = Hiding()

    def f(x):
        assert hiding.rate == 6.0
        hiding.rate = 4.0
        return hiding.rate * x + np.zeros(1)[0]

    assert vg.grad(f)(1.0) == 8.0
    assert vars(hiding) == {"rate": 4.0, "calls": 1}

    many = Gains()
    for i in range(100):
        setattr(many, f"a{i}", float(i))
    setattr(many, "no name", 1.0)
    assert vg.adopt(lambda: (setattr(many, "a7", 0.0), many.a99 + getattr(many, "no name"))[1])() == 100.0
    assert many.a7 == 0.0 and len(vars(many)) == 103


def test_long_chains_of_objects():
    chain = None
    for i in range(400):
        chain = Node(float(i), chain)
    assert vg.adopt(lambda: chain.depth())() == 400
    vg.adopt(lambda: setattr(chain.below.below, "value", np.exp(0.0)))()
    assert chain.below.below.value == 1.0


def test_classes_of_views_make_objects():
    node = Node(2.0)

    def f(x):
        made, twin = node.made(x), node.twin()
        assert type(made) is type(twin) is Node and made is not node and made.me is made
        return made.value * twin.value

    assert vg.grad(f)(3.0) == 4.0


NAMES = ("first", "second", "third", "fourth")
VALUES = st.sampled_from([0.5, 2.0, 3.0, np.exp, len, (1, 2)])
STEPS = st.one_of(
    st.tuples(st.just("set"), st.sampled_from(NAMES), VALUES),
    st.tuples(st.just("delete"), st.sampled_from(NAMES), st.none()),
    st.tuples(st.just("move"), st.sampled_from(NAMES), st.sampled_from(NAMES)),
    st.tuples(st.just("read"), st.sampled_from(NAMES), st.none()),
    st.tuples(st.just("vars"), st.sampled_from(NAMES), st.none()),
)


def run(target, steps, seen):
    for kind, name, value in steps:
        if kind == "set":
            setattr(target, name, value)
        elif kind == "delete" and name in vars(target):
            delattr(target, name)
        elif kind == "move" and hasattr(target, name):
            moved = getattr(target, name)
            if name in target.__dict__:
                delattr(target, name)
            setattr(target, value, moved)
        elif kind == "vars":
            seen.append(sorted(vars(target)))
        seen.append([getattr(target, each, None) for each in NAMES])
    return seen


def steps_inside(target, steps):
    for kind, name, value in steps:
        if kind == "set":
            setattr(target, name, value)
        elif kind == "delete":
            if getattr(target, name, None) is not None and name not in ("first", "second"):
                delattr(target, name)
        elif kind == "move":
            moved = getattr(target, name, None)
            if moved is not None and name not in ("first", "second"):
                delattr(target, name)
            setattr(target, value, moved)


@settings(max_examples=60, deadline=None, database=None)
@given(st.lists(st.tuples(st.booleans(), st.lists(STEPS, max_size=5), st.booleans()), max_size=5))
def test_attributes_change_as_without_adoption(calls):
    """Attributes are set, deleted and moved, outside and in adopted code, with and without reading `__dict__`."""
    plain, own = Gains(), Gains()
    for is_inside, steps, looks in calls:
        action = run if looks else (lambda target, steps, seen: steps_inside(target, steps) or seen)
        expected = action(plain, steps, [])
        found = vg.adopt(lambda a=action, s=steps: a(own, s, []))() if is_inside else action(own, steps, [])
        assert vars(own) == vars(plain) and all(type(vars(own)[name]) is type(vars(plain)[name]) for name in vars(own))
        if looks and is_inside:
            assert [len(each) for each in found] == [len(each) for each in expected]
            numbers = [[value for value in each if type(value) in (float, str)] for each in expected]
            assert [[value for value in each if type(value) in (float, str)] for each in found] == numbers


def test_attribute_moved_to_the_last_name():
    """If the last attribute is deleted and its value stored under a new name, values and order are the same."""
    for names in itertools.permutations(NAMES[:3]):
        own = Node.__new__(Node)
        for i, name in enumerate(names):
            setattr(own, name, float(i))
        adopted = vg.adopt(lambda own=own: own.first)
        adopted()
        last = names[-1]

        def moves(own=own, last=last):
            value = getattr(own, last)
            delattr(own, last)
            own.moved = value

        vg.adopt(moves)()
        assert vars(own).keys() == {*names[:-1], "moved"}, names


class Assigning:
    """Has too many attributes, or slots, or a list too long, to be fetched at once."""

    def __init__(self, items=0, attributes=0):
        self.state = 1.0
        self.gain = 2.0
        self.items = list(range(items))
        for i in range(attributes):
            setattr(self, f"a{i}", i)

    def step(self, x):
        self.state = x * 2
        return self.gain * self.state


class AssigningSlots:
    __slots__ = ("gain", "state")

    def __init__(self):
        self.state = 1.0
        self.gain = 2.0

    step = Assigning.step


@pytest.mark.parametrize("own", [Assigning(), Assigning(1000), Assigning(0, 50), AssigningSlots()])
def test_assignments_before_the_first_read_stay(own):
    assert vg.grad(own.step)(3.0) == 4.0
    assert own.state.item() == 6.0
    own.state = 1.0
    assert vg.grad(lambda x: own.step(x) * own.state)(3.0) == 4.0 * 6.0 * 2
    own.state = 1.0

    def assigns(x):
        own.state = x
        return vars(own)["state"] if hasattr(own, "__dict__") else own.state

    assert vg.grad(assigns)(3.0) == 1.0


class Counter:
    count = 0
    label = "a"

    def step(self, x):
        type(self).count += 1
        return x * type(self).count

    def drop(self, x):
        del type(self).label
        return x


def test_attributes_of_classes_that_are_set_back():
    """The user restores the value that an attribute had before adopted code changed it."""
    own = Counter()
    step = vg.adopt(own.step)
    for _ in range(3):
        Counter.count = 0
        assert step(2.0) == 2.0 and Counter.count == 1 and step(2.0) == 4.0
    drop, label = vg.adopt(own.drop), vg.adopt(lambda: own.label)
    for _ in range(2):
        assert label() == "a"
        drop(1.0)
        assert not hasattr(Counter, "label")
        Counter.label = "a"


def test_tuples_of_objects_made_outside():
    own = Assigning()
    own.parts = [Node(1.0), Node(2.0)]
    first = own.parts[0]

    def as_tuple(x):
        own.parts = (*own.parts, Node(x))
        return sum(part.value for part in own.parts) + own.parts[0].depth()

    assert vg.grad(as_tuple)(3.0) == 1.0
    assert own.parts[0] is first and [type(each) for each in own.parts] == [Node] * 3
    own.parts[1].value = 5.0
    assert vg.grad(lambda x: own.parts[1].value * own.parts[2].value * x)(1.0) == 15.0
