"""The tensors that a function captures, however it looks them up."""

import inspect
import operator
import sys
import types

import numpy as np
import pytest

import viewgrad as vg

WEIGHT = vg.Tensor([2.0, 3.0])
space = types.SimpleNamespace(WEIGHT=WEIGHT)
module = sys.modules[__name__]


def other():
    return WEIGHT


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
}


@pytest.mark.parametrize("name", LOOKUPS)
@pytest.mark.parametrize("is_adopted", [False, True])
def test_a_captured_tensor_that_is_also_the_example_of_a_trace(name, is_adopted):
    """The graph reads the captured tensor, not the argument."""

    def f(x):
        return x * LOOKUPS[name]()

    graph = vg.symbolic.trace(vg.adopt(f) if is_adopted else f, WEIGHT)
    found = vg.symbolic.run(graph, [np.array([5.0, 7.0]), WEIGHT.numpy()])
    assert found[0].tolist() == [10.0, 21.0]
