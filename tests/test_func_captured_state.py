"""The tensors that a function captures, however it looks them up."""

import collections
import contextvars
import inspect
import operator
import sys
import threading
import types
import weakref

import numpy as np
import pytest

import viewgrad as vg
from viewgrad.errors import CheckpointError
from viewgrad.func import captured_state

WEIGHT = vg.Tensor([2.0, 3.0])
space = types.SimpleNamespace(WEIGHT=WEIGHT)
module = sys.modules[__name__]


def other():
    return WEIGHT


class Slots:
    __slots__ = ("__weakref__", "weight")

    def __init__(self, weight):
        self.weight = weight


class Descriptor:
    def __get__(self, instance, owner):
        return WEIGHT


class Base:
    weights = [WEIGHT]  # noqa: RUF012
    described = Descriptor()

    def __getattr__(self, name):
        return WEIGHT

    def __call__(self):
        return WEIGHT


class Derived(Base):
    pass


class Dict(dict):
    pass


def repeated(weight):
    while True:
        yield weight


slots, derived, local, attributes = Slots(WEIGHT), Derived(), threading.local(), Dict()
local.weight = attributes.weight = WEIGHT
weak, proxy, queue = weakref.ref(slots), types.MappingProxyType({"weight": WEIGHT}), collections.deque([WEIGHT])
variable, iterator, boxed = contextvars.ContextVar("variable"), repeated(WEIGHT), np.empty(1, object)
variable.set(WEIGHT)
boxed[0] = WEIGHT

LOOKUPS = {
    "name": lambda: WEIGHT,
    "globals": lambda: globals()["WEIGHT"],
    "computed name": lambda: globals()["".join(["WEI", "GHT"])],
    "vars": lambda: vars(module)["WEIGHT"],
    "__dict__": lambda: module.__dict__["WEIGHT"[:]],
    "sys.modules": lambda: sys.modules[__name__].WEIGHT,
    "getattr": lambda: getattr(module, "WEIGHT"),  # noqa: B009
    "attrgetter": lambda: operator.attrgetter("WEIGHT")(module),
    "attrgetter of an attribute": lambda: operator.attrgetter("space.WEIGHT")(module),
    "attribute": lambda: vars(space)["WEIGHT"],
    "eval": lambda: eval("WEIGHT"),
    "frame": lambda: sys._getframe().f_globals["WEIGHT"],
    "inspect": lambda: inspect.currentframe().f_globals["WEIGHT"],
    "members": lambda: dict(inspect.getmembers(space))["WEIGHT"],
    "closure variables": lambda: inspect.getclosurevars(other).globals["WEIGHT"],
    "__globals__": lambda: other.__globals__["WEIGHT"],
    "deque": lambda: queue[0],
    "proxy": lambda: proxy["weight"],
    "slot": lambda: slots.weight,
    "weak reference": lambda: weak().weight,
    "inherited call": lambda: derived(),
    "list of a class": lambda: derived.weights[0],
    "descriptor": lambda: derived.described,
    "__getattr__": lambda: derived.other,
    "thread-local": lambda: local.weight,
    "context variable": lambda: variable.get(),
    "attribute of a dict": lambda: attributes.weight,
    "generator": lambda: next(iterator),
    "array of objects": lambda: boxed[0],
}


@pytest.mark.parametrize("name", LOOKUPS)
@pytest.mark.parametrize("is_adopted", [False, True])
def test_a_captured_tensor_that_is_also_the_example_of_a_trace(name, is_adopted):
    """The graph reads the captured tensor, not the argument."""

    looked_up = LOOKUPS[name]  # the others would capture the tensor too

    def f(x):
        return x * looked_up()

    graph = vg.symbolic.trace(vg.adopt(f) if is_adopted else f, WEIGHT)
    found = vg.symbolic.run(graph, [np.array([5.0, 7.0]), WEIGHT.numpy()])
    assert found[0].tolist() == [10.0, 21.0]


@pytest.mark.parametrize("name", LOOKUPS)
def test_a_captured_tensor_that_a_checkpointed_function_writes_to(name):
    looked_up = LOOKUPS[name]

    def f(x):
        looked_up()[...] *= 1.0
        return x * 1.0

    with pytest.raises(CheckpointError, match="wrote to a tensor"):
        vg.checkpoint(f)(vg.ones(2, requires_grad=True))


@pytest.mark.parametrize(
    "held", [lambda rng: collections.deque([rng]), lambda rng: types.MappingProxyType({0: rng}), lambda rng: {0: [rng]}]
)
def test_generators_in_containers_are_restored(held):
    container = held(np.random.default_rng(1))

    def f(x):
        found = container[0]
        return x * (found[0] if isinstance(found, list) else found).normal()

    x = vg.ones(2, requires_grad=True)
    y = vg.checkpoint(f)(x)
    assert vg.autograd.grad(y.sum(), x)[0].tolist() == y.tolist()


TABLE = {"square": lambda x: x**2, "cube": lambda x: x**3}


def test_the_search_does_not_enter_all_that_was_ever_adopted():
    """Adopted lists and dicts refer to it; in a large program, each call would inspect `LIMIT` objects."""
    adopted = vg.adopt(lambda x: TABLE["square"](x) + TABLE["cube"](x))
    assert adopted(2.0) == 12.0
    assert len(list(captured_state.reachable(adopted))) < 60
