"""Programs after public reports about aliases: every way to differentiate them agrees with finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from reported_aliasing import PROGRAMS
from test_reported_programs import differences, reverse, same

import viewgrad as vg
from viewgrad.autograd import detect_anomaly, grad
from viewgrad.autograd.graph import saved_tensors_hooks

WAYS = {"traced": {"specialize": True}, "from source": {"specialize": False}, "adopted": {"adopt": True}}
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def quiet():
    with np.errstate(all="ignore"):
        yield


def slope_of(name):
    f, x, slope, *_, holds_values = PROGRAMS[name]
    if slope is not None:
        return np.array(slope)
    if holds_values:
        return np.array([f(x + 1e-30j * row).imag / 1e-30 for row in np.eye(x.size)])
    return differences(f, x)


def mapped(f, x):
    rows = vg.Tensor(np.stack([x * 1.01, x]), requires_grad=True)
    y = vg.vmap(f)(rows)
    return y[1].item(), grad(y[1], rows)[0].numpy()[1]


def in_anomaly_mode(f, x):
    with detect_anomaly(check_nan=False):
        return reverse(f, x)


def with_hooks(f, x):
    def packed(tensor):
        return np.array(tensor.detach().numpy())

    with saved_tensors_hooks(packed, vg.Tensor):
        return reverse(f, x)


REVERSE = {
    "eager": reverse,
    "view_replay": lambda f, x: replayed(f, x),
    "functionalize": lambda f, x: reverse(vg.func.functionalize(f), x),
    "checkpoint": lambda f, x: reverse(vg.checkpoint(f), x),
    "anomaly": in_anomaly_mode,
    "hooks": with_hooks,
    "value_and_grad": lambda f, x: tuple(map(np.asarray, vg.value_and_grad(f)(x))),
}


def replayed(f, x):
    with vg.view_replay(True):
        return reverse(f, x)


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_gradients(name):
    f, x, *_, forward, rows, _ = PROGRAMS[name]
    expected, at = slope_of(name), f(x.copy())
    for way, differentiated in REVERSE.items():
        value, found = differentiated(f, x)
        np.testing.assert_allclose(value, at, rtol=1e-12, err_msg=way)
        np.testing.assert_allclose(found, expected, rtol=2e-6, atol=2e-6, err_msg=way)
    if rows:
        same(mapped(f, x)[1], expected)
    if forward and x.dtype.kind == "f":
        same(vg.func.jacfwd(f)(x), expected)


@pytest.mark.parametrize(
    "way", ["from source", *(pytest.param(way, marks=pytest.mark.slow) for way in WAYS if way != "from source")]
)
@pytest.mark.parametrize("name", [name for name, each in PROGRAMS.items() if each.compiled])
def test_compiled_programs(name, way):
    f, x, *_ = PROGRAMS[name]
    compiled = vg.compile(f, executor="python", **WAYS[way])
    recomputed = vg.checkpoint(compiled)
    expected = slope_of(name)
    for differentiated in (compiled, recomputed, compiled, recomputed):
        same(reverse(differentiated, x)[1], expected)
    if x.dtype.kind == "f":
        same(vg.func.grad(compiled)(x), expected)
