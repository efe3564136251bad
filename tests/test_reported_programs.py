"""Programs after public reports: every way to differentiate them agrees with finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from reported_programs import PROGRAMS

import viewgrad as vg
from viewgrad.autograd import grad

WAYS = {"traced": {"specialize": True}, "from source": {"specialize": False}, "adopted": {"adopt": True}}
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def quiet():
    with np.errstate(all="ignore"):
        yield


def differences(f, x):
    """Return the gradient of a function of an array by differences of two orders."""
    found = np.zeros_like(x)

    def along(step):
        slopes = []
        for h in (1e-3, 5e-4):
            near, far = f(x + h * step) - f(x - h * step), f(x + 2 * h * step) - f(x - 2 * h * step)
            slopes.append((8 * near - far) / (12 * h))
        return float(np.real(16 * slopes[1] - slopes[0]) / 15)

    for place in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[place] = 1.0
        found[place] = along(step)
        if x.dtype.kind == "c":
            found[place] += 1j * along(1j * step)
    return found


def slope_of(name):
    f, x, slope, *_ = PROGRAMS[name]
    return np.array(slope) if slope is not None else differences(f, x)


def reverse(f, x):
    t = vg.Tensor(x, requires_grad=True)
    y = f(t)
    return y.detach().numpy(), grad(y, t)[0].numpy()


def same(found, expected):
    np.testing.assert_allclose(found, expected, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_gradients(name):
    f, x, *_, transforms = PROGRAMS[name]
    expected = slope_of(name)
    value, found = reverse(f, x)
    np.testing.assert_allclose(value, f(x.copy()), rtol=1e-12)
    same(found, expected)
    with vg.view_replay(True):
        same(reverse(f, x)[1], expected)
    if transforms:
        same(vg.func.grad(f)(x), expected)
        if x.dtype.kind == "f":
            same(vg.func.jacfwd(f)(x), expected)


@pytest.mark.parametrize(
    "way", ["from source", *(pytest.param(way, marks=pytest.mark.slow) for way in WAYS if way != "from source")]
)
@pytest.mark.parametrize("name", [name for name in PROGRAMS if PROGRAMS[name][4]])
def test_compiled_programs(name, way):
    f, x, *_ = PROGRAMS[name]
    compiled = vg.compile(f, executor="python", **WAYS[way])
    for _ in range(3):
        same(reverse(compiled, x)[1], slope_of(name))


@pytest.mark.parametrize("name", [name for name in PROGRAMS if PROGRAMS[name][4]])
def test_compiled_gradients(name):
    """Derivatives are traced with the program, and run at a point where they were not traced."""
    f, x, slope, *_ = PROGRAMS[name]
    gradient = vg.compile(vg.func.grad(f), executor="python", specialize=True)
    points = (x, x, x, x if slope is not None else x * (1 + 2**-20))
    for point in points:
        same(gradient(point), vg.func.grad(f)(point))


@pytest.mark.parametrize("name", [name for name, (_, x, _, twice, _) in PROGRAMS.items() if twice and x.size <= 12])
def test_second_derivatives(name):
    f, x, slope, *_ = PROGRAMS[name]
    if x.dtype.kind == "c":
        return
    slopes, h = vg.func.grad(f), 1e-5
    found = [np.asarray(of(of(f))(x)).reshape(x.size, x.size) for of in (vg.func.jacrev, vg.func.jacfwd)]
    np.testing.assert_allclose(found[0], found[1], rtol=1e-7, atol=1e-7)
    if slope is None:
        steps = [h * row.reshape(x.shape) for row in np.eye(x.size)]
        rows = [(np.asarray(slopes(x + step)) - np.asarray(slopes(x - step))).ravel() / (2 * h) for step in steps]
        np.testing.assert_allclose(found[0], rows, rtol=1e-4, atol=1e-4)
