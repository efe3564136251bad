"""Objects that adopted code makes and keeps: outside they are of the user's classes, and inside adopted again."""

from __future__ import annotations

import copy
import pickle
import types
import typing

import numpy as np
import pytest

import viewgrad as vg


class Layer:
    def __init__(self, weight):
        self.weight = weight
        self.inner = None

    def out(self, x):
        return np.zeros(1)[0] + self.weight * x


class Network:
    def __init__(self):
        self.layers, self.named = [], {}
        self.last = None

    def fit(self, x):
        self.layers.append(Layer(2.0))
        self.named["first"] = Layer(3.0)
        self.last = Layer(4.0)
        self.last.inner = Layer(5.0)
        self.pair = (Layer(6.0), 1.0)
        self.made = [Layer(7.0)]
        return self.out(x)

    def made_layers(self):
        return [self.layers[-1], self.named["first"], self.last, self.last.inner, self.pair[0], self.made[0]]

    def out(self, x):
        return sum([each.out(x) for each in self.made_layers()])

    def fails(self, x):
        self.fit(x)
        raise ZeroDivisionError


LAYERS: list[Layer] = []
LATEST: Layer | None = None


def keep_global(x):
    global LATEST
    LATEST = Layer(2.0)
    LAYERS.append(Layer(3.0))
    return LATEST.out(x) + LAYERS[-1].out(x)


def use_global(x):
    return LATEST.out(x) + LAYERS[-1].out(x)


def check_network(network):
    layers = network.made_layers()
    assert [type(each) for each in layers] == [Layer] * 6
    assert all(type(each.out(1.0)) is np.float64 for each in layers)
    assert pickle.loads(pickle.dumps(network)).last.inner.weight == 5.0
    assert copy.deepcopy(network).named["first"].weight == 3.0
    assert vg.grad(network.out)(1.5) == 27.0  # they are adopted again


def test_objects_kept_in_attributes():
    network = Network()
    for count in (1, 2):
        assert vg.grad(network.fit)(1.5) == 27.0
        assert len(network.layers) == count
        check_network(network)
    network.last.weight = 14.0
    assert vg.grad(network.out)(1.5) == 37.0


def test_objects_kept_before_an_error():
    network = Network()
    with pytest.raises(ZeroDivisionError):
        vg.grad(network.fails)(1.5)
    check_network(network)


def test_objects_kept_in_globals():
    assert vg.grad(keep_global)(1.5) == 5.0
    assert type(LATEST) is Layer and type(LAYERS[-1]) is Layer
    assert vg.grad(use_global)(1.5) == 5.0
    LAYERS.append(Layer(8.0))
    assert vg.grad(use_global)(1.5) == 10.0


def test_lists_and_dicts_cleared_between_calls():
    layers, named = [Layer(1.0)], {"a": Layer(1.0)}

    def keeps(x):
        layers.append(Layer(x))
        named["b"] = Layer(x)
        return x * len(layers) * len(named)

    slope = vg.grad(keeps)
    for _ in range(3):
        assert slope(1.5) == 4.0
        del layers[1:], named["b"]
        assert slope(1.5) == 4.0
        layers.clear()
        named.clear()
        assert slope(1.5) == 1.0
        layers.clear()
        named.clear()
        layers.append(Layer(1.0))
        named["a"] = Layer(1.0)


def test_objects_kept_in_variables_of_enclosing_functions():
    kept = None
    found = {}

    def keeps(x):
        nonlocal kept
        kept = Layer(2.0)
        found["layer"] = kept
        return kept.out(x)

    assert vg.grad(keeps)(1.5) == 2.0
    assert type(kept) is Layer and found["layer"] is kept
    assert vg.grad(lambda x: kept.out(x) * found["layer"].weight)(1.5) == 4.0


def test_results_keep_their_identity():
    network = Network()

    def returns(x):
        network.last = Layer(x)
        return {"layer": network.last, "all": [network.last]}

    result = vg.adopt(returns)(2.0)
    assert type(result["layer"]) is Layer and result["layer"] is network.last is result["all"][0]
    assert vg.grad(lambda x: network.last.out(x))(1.0) == 2.0


def test_objects_with_references_to_each_other():
    network = Network()

    def ties(x):
        network.last = Layer(x)
        network.last.inner = Layer(network.last)
        network.last.inner.inner = network.last
        return x

    vg.adopt(ties)(2.0)
    assert type(network.last.inner) is Layer and network.last.inner.inner is network.last
    assert type(network.last.inner.weight) is Layer


class Registered(Layer):
    known: typing.ClassVar[list[Layer]] = []

    @classmethod
    def made(cls, weight):
        found = cls(weight)
        cls.known.append(found)
        return found


def test_objects_kept_in_lists_of_classes():
    Registered.known.clear()

    def registers(x):
        return Registered.made(2.0).out(x)

    def uses(x):
        return sum([each.out(x) for each in Registered.known])

    assert vg.grad(registers)(1.5) == 2.0
    assert [type(each) for each in Registered.known] == [Registered]
    for count in (1, 2, 3):
        assert vg.grad(uses)(1.5) == 2.0 * count
        Registered.known.append(Registered(2.0))


def test_objects_kept_in_namespaces():
    space = types.SimpleNamespace(layer=Layer(2.0), other=1.0)

    def keeps(x):
        space.made = Layer(3.0)
        space.again = space.layer
        return space.made.out(x)

    assert vg.grad(keeps)(1.5) == 3.0
    assert type(space.made) is Layer and space.again is space.layer and type(space.layer) is Layer
    assert vg.grad(lambda x: space.made.out(x) + space.again.out(x))(1.5) == 5.0


def test_objects_made_outside_that_are_put_into_lists():
    outside, kept = Layer(2.0), []

    def keeps(x):
        kept.append(outside)
        LAYERS.append(outside)
        return x

    LAYERS.clear()
    vg.grad(keeps)(1.5)
    assert kept == LAYERS == [outside] and type(LAYERS[0]) is Layer and LAYERS[0] is outside

    def uses(x):
        return LAYERS[0].out(x) + kept[0].out(x)

    assert vg.grad(uses)(1.5) == 4.0
