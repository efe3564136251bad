"""Objects of users' subclasses of containers, created outside adopted code."""

from __future__ import annotations

import collections
import copy
import heapq
import math
import pickle

import numpy as np
import pytest

import viewgrad as vg


class Parameters(dict):
    scale = 2.0

    def response(self, x):
        y = np.zeros(2)
        y[0] = x
        return np.sum(y * self["matrix"]) * math.sin(x) * self.scale


class Doubled(Parameters):
    def __init__(self, *args, writes=0, **items):
        super().__init__(*args, **items)
        self.writes = writes

    def __setitem__(self, key, value):
        self.writes += 1
        super().__setitem__(key.lower(), value)

    def __getitem__(self, key):
        return 2.0 * super().__getitem__(key.lower())


class Dotted(dict):
    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name, value):
        self[name] = value


class DottedByBuiltins(dict):
    __getattr__ = dict.__getitem__
    __setattr__ = dict.__setitem__
    __delattr__ = dict.__delitem__


class OwnDict(dict):
    def __init__(self, *args, **items):
        super().__init__(*args, **items)
        self.__dict__ = self


class WithSlots(dict):
    __slots__ = ("rate",)


class Table(dict):
    def __missing__(self, key):
        row = np.zeros(2)
        row[0] = key
        dict.__setitem__(self, key, row)
        return row


class Layers(list):
    def total(self):
        return math.exp(sum(self))

    def push(self, value):
        heapq.heappush(self, value)


class Window(collections.deque):
    def mean(self):
        return math.sqrt(sum(self) / len(self))


class Ordered(collections.OrderedDict):
    def first(self):
        return next(iter(self))


class Counted(collections.defaultdict):
    def total(self):
        return math.exp(sum(self.values()))


class Chosen(set):
    def total(self):
        return math.exp(sum(self))


class Pair(tuple):
    def product(self, x):
        self.last = x * self.rate
        return self[0](x) * self.last


def objects():
    """Return new objects by name."""
    matrix, slots, pair = np.array([1.0, 2.0]), WithSlots(a=2.0), Pair((np.sin, 2.0))
    slots.rate, pair.rate = 3.0, 2.0
    layers = Layers([0.25, 0.5])
    layers.activation = np.tanh
    cyclic = Parameters(matrix=matrix, functions=[np.sin], child=Parameters(matrix=matrix))
    cyclic["self"] = cyclic
    return {
        "parameters": Parameters(matrix=matrix, rate=3.0), "doubled": Doubled(matrix=matrix, writes=1),
        "dotted": Dotted(rate=2.0, activation=np.tanh), "built": DottedByBuiltins(rate=2.0, activation=np.tanh),
        "own": OwnDict(rate=2.0, activation=np.tanh), "slots": slots, "table": Table(), "layers": layers,
        "window": Window([1.0, 2.0], maxlen=2), "ordered": Ordered(rate=2.0, activation=np.tanh),
        "counted": Counted(lambda: np.ones(1)[0] * 0.5, a=1.0), "chosen": Chosen([0.25, 0.5]), "pair": pair,
        "cyclic": cyclic,
    }  # fmt: skip


def keywords(matrix, rate):
    return np.sum(matrix) * rate


ALL = objects()
PROGRAMS = {
    "item": lambda o, x: np.sum(o["parameters"]["matrix"] * x),
    "method": lambda o, x: o["parameters"].response(x),
    "overridden methods": lambda o, x: o["doubled"].response(x) * o["doubled"]["MATRIX"][1],
    "keywords": lambda o, x: x * keywords(**o["parameters"]),
    "iteration": lambda o, x: sum(x * np.sum(o["parameters"][key]) for key in o["parameters"]),
    "tests": lambda o, x: (
        x * len(o["parameters"]) * ("rate" in o["parameters"]) * isinstance(o["parameters"], dict)
        * (type(o["parameters"]) is Parameters) * (o["parameters"] == o["parameters"]) * bool(o["table"] == {})
    ),
    "union": lambda o, x: (o["parameters"] | {"rate": x})["rate"] * (type(o["parameters"] | {}) is dict),
    "copies": lambda o, x: copy.copy(o["parameters"]).response(x) * copy.deepcopy(o["doubled"]).response(x),
    "pickle": lambda o, x: pickle.loads(pickle.dumps(o["parameters"])).response(x) * math.sin(x),
    "new object": lambda o, x: type(o["parameters"])(matrix=np.array([1.0, 2.0]) * x).response(x),
    "assigned item": lambda o, x: (o["parameters"].update(matrix=x * np.ones(2)), o["parameters"].response(x))[1],
    "assigned item of overridden": lambda o, x: (
        o["doubled"].__setitem__("Rate", x), o["doubled"]["RATE"] * o["doubled"].writes,
    )[1],
    "deleted item": lambda o, x: x * o["parameters"].pop("rate", 1.0) * len(o["parameters"]),
    "assigned attribute": lambda o, x: (setattr(o["parameters"], "scale", x), o["parameters"].response(x))[1],
    "attribute of a container": lambda o, x: o["layers"].activation(x) * o["layers"].total(),
    **{
        f"{name} attribute": lambda o, x, name=name: (
            setattr(o[name], "out", o[name].activation(x)), o[name].out * o[name]["out"] * o[name]["rate"],
        )[1]
        for name in ("dotted", "built", "own")
    },
    "slots": lambda o, x: (setattr(o["slots"], "rate", o["slots"].rate * x), o["slots"].rate * o["slots"]["a"])[1],
    "missing": lambda o, x: o["table"][3.0][0] * x * len(o["table"]),
    "list": lambda o, x: (o["layers"].append(x), o["layers"].insert(0, x), o["layers"].total() * o["layers"][-1])[2],
    "list changed in C": lambda o, x: (o["layers"].push(x * 0.1), o["layers"][0] * x)[1],
    "deque": lambda o, x: (o["window"].append(x), o["window"].mean() * o["window"].maxlen)[1],
    "ordered": lambda o, x: (o["ordered"].move_to_end("rate"), o["ordered"][o["ordered"].first()](x))[1],
    "default": lambda o, x: o["counted"]["b"] * x * o["counted"].total(),
    "set": lambda o, x: (o["chosen"].add(3.0), o["chosen"].total() * sum(o["chosen"] | {1.0}) * x)[1],
    "tuple": lambda o, x: o["pair"].product(x) * o["pair"].last,
    "cycle": lambda o, x: o["cyclic"]["self"]["self"]["functions"][0](x) * o["cyclic"]["child"].response(x),
}  # fmt: skip


def state_of(given):
    """Return the contents and attributes of the objects as text."""
    with np.printoptions(precision=6):
        return {name: ascii((number(each), number(getattr(each, "__dict__", {})))) for name, each in given.items()}


def number(value):
    if isinstance(value, vg.Tensor):
        return number(np.asarray(value.detach()))
    if isinstance(value, (float, np.floating)) or (isinstance(value, np.ndarray) and not value.ndim):
        return round(float(value), 6)
    if isinstance(value, dict):
        return type(value).__name__, [(key, number(part)) for key, part in value.items() if key != "self"]
    if isinstance(value, (list, tuple, set, collections.deque)):
        return type(value).__name__, list(map(number, value))
    return value if not callable(value) or isinstance(value, np.ufunc) else type(value)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_compute_as_with_numpy_and_change_the_users_objects(name):
    program = PROGRAMS[name]

    def f(x):
        return program(ALL, x)

    def restarted(function, x):
        ALL.clear()
        ALL.update(objects())
        return function(x), function(x), state_of(ALL)

    *values, state = restarted(f, 0.75)
    *found, found_state = restarted(vg.value_and_grad(f), 0.75)
    assert [value for value, _ in found] == pytest.approx(values) and found_state == state
    step = 1e-6
    slope = (restarted(f, 0.75 + step)[0] - restarted(f, 0.75 - step)[0]) / (2.0 * step)
    assert found[0][1] == pytest.approx(slope, rel=1e-6)
    for specialize in (True, False):
        compiled = vg.compile(f, specialize=specialize)
        assert [each.item() for each in restarted(compiled, vg.tensor(0.75))[:2]] == pytest.approx(values)


CHANGES = {
    "item": lambda: ALL["parameters"].__setitem__("matrix", np.array([3.0, 5.0])),
    "element": lambda: ALL["parameters"]["matrix"].__setitem__(0, 7.0),
    "attribute": lambda: setattr(ALL["parameters"], "scale", 3.0),
    "method": lambda: setattr(Parameters, "response", lambda self, x: math.exp(x) * self["matrix"][1]),
    "class": lambda: setattr(ALL["parameters"], "__class__", Doubled),
    "list": lambda: ALL["layers"].append(1.0),
    "all items of a list": lambda: ALL["layers"].__setitem__(slice(None), [0.5]),
    "deque": lambda: ALL["window"].append(5.0),
    "default factory": lambda: setattr(ALL["counted"], "default_factory", lambda: 3.0),
    "attribute of a tuple": lambda: setattr(ALL["pair"], "rate", 5.0),
}


@pytest.mark.parametrize("is_compiled", [False, True])
@pytest.mark.parametrize("change", CHANGES)
def test_changes_outside_are_seen(change, is_compiled, monkeypatch):
    monkeypatch.setattr(Parameters, "response", Parameters.response)
    ALL.clear()
    ALL.update(objects())

    def f(x):
        o = ALL
        first = o["parameters"].response(x) + o["layers"].total() * x
        return first + o["window"].mean() * x + o["pair"][0](x) * o["pair"].rate + o["counted"].copy()["new"] * x

    adopted = vg.compile(f) if is_compiled else vg.adopt(f)
    x = vg.tensor(0.75)
    for _ in range(4):
        assert adopted(x).item() == pytest.approx(f(0.75))
    before = f(0.75)
    CHANGES[change]()
    for _ in range(3):
        assert adopted(x).item() == pytest.approx(f(0.75)) != before


def test_objects_in_containers_that_adopted_code_creates_are_the_users():
    @vg.adopt
    def made():
        owned = OwnDict(function=np.sin, inner=Parameters(rate=np.cos))
        return owned, Layers([Layers([np.sin])]), Pair((np.sin, Layers())), Counted(np.zeros)

    owned, layers, pair, counted = made()
    assert type(owned) is OwnDict and owned.function is np.sin and vars(owned) is owned
    assert type(owned.inner) is Parameters and owned.inner["rate"] is np.cos
    assert type(layers[0]) is Layers and layers[0][0] is np.sin
    assert type(pair) is Pair and pair[0] is np.sin and type(pair[1]) is Layers
    assert counted.default_factory is np.zeros


def test_tuples_with_attributes_are_returned_as_they_are():
    pair = Pair((np.sin, 2.0))
    pair.items = [np.cos]
    holder = {}

    def kept():
        holder["pair"] = pair
        return pair

    assert vg.adopt(kept)() is pair and holder["pair"] is pair
    assert pair.items[0] is np.cos


def test_items_assigned_before_an_error_are_kept():
    parameters = Parameters()

    def f(x):
        parameters["x"] = x
        raise ValueError

    with pytest.raises(ValueError):
        vg.adopt(f)(2.0)
    assert parameters == {"x": 2.0}
