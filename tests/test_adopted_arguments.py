"""NumPy functions of users passed unmodified to transforms, solvers, quadratures and NumPy's own functions."""

from __future__ import annotations

import functools
import importlib
import math

import numpy as np
import pytest

import viewgrad as vg
import viewgrad.scipy.integrate
import viewgrad.scipy.optimize
from viewgrad.autograd import functional, grad, gradcheck, gradgradcheck
from viewgrad.errors import DetachedConversionError

integrate, optimize = viewgrad.scipy.integrate, viewgrad.scipy.optimize
GENERATOR = np.random.default_rng(7)


def leaf(value):
    return vg.Tensor(value, requires_grad=True)


def cubes(x):
    """Return x**2 and x**3, written into a new array."""
    y = np.zeros(2)
    y[0] = x * x
    y[1] = x * y[0]
    return y


def total(x):
    y = np.zeros(2)
    for value in x:
        y[0] += value**3
    return y.sum()


def difference(x, c):
    y = np.zeros(1)
    y[0] = x**2 - c
    return y[0]


def differences(x, c):
    y = np.zeros(2)
    y[0], y[1] = x[0] ** 2 - c, x[1] - x[0] * c
    return y


def distance(x, c):
    y = np.zeros(2)
    y[0], y[1] = x[0] - c, x[1] - c * c
    return (y**2).sum()


def swing(t, y, c):
    slope = np.zeros(2)
    slope[0], slope[1] = y[1], -c * y[0]
    return slope


def noisy(x):
    y = np.zeros(3)
    y[0] = x * GENERATOR.standard_normal()
    return y.sum()


def line(x, a, b):
    y = np.zeros(3)
    y[:] = a * x + b
    return y


PLACES = np.arange(3.0)
# The result of each function for a parameter c, and its slope at c = 2.
CALLS = {
    "checkpoint": (lambda c: vg.checkpoint(cubes)(c).sum(), 16.0),
    "vmap": (lambda c: vg.func.vmap(cubes)(c * np.ones(2)).sum(), 32.0),
    "brentq": (lambda c: optimize.brentq(difference, 0, 5, args=(c,)), 8**-0.5),
    "root_scalar": (lambda c: optimize.root_scalar(difference, args=(c,), bracket=(0, 5)).root, 8**-0.5),
    "newton": (lambda c: optimize.newton(difference, 1.0, args=(c,)), 8**-0.5),
    "root": (lambda c: optimize.root(differences, np.ones(2), args=(c,)).x[1], 1.5 * 2**0.5),
    "fsolve": (lambda c: optimize.fsolve(differences, np.ones(2), args=(c,))[1], 1.5 * 2**0.5),
    "minimize": (lambda c: optimize.minimize(distance, np.zeros(2), args=(c,)).x[1], 4.0),
    "fmin_bfgs": (lambda c: optimize.fmin_bfgs(distance, np.zeros(2), args=(c,), disp=False)[1], 4.0),
    "least_squares": (lambda c: optimize.least_squares(differences, np.ones(2), args=(c,)).x[0], 8**-0.5),
    "curve_fit": (lambda c: optimize.curve_fit(line, PLACES, c * c * PLACES + 1.0)[0][0], 4.0),
    "quad": (lambda c: integrate.quad(difference, 0, 1, args=(c,))[0], -1.0),
    "dblquad": (lambda c: integrate.dblquad(lambda y, x: difference(x, c) * y, 0, 1, 0, 1)[0], -0.5),
    "solve_ivp": (
        lambda c: integrate.solve_ivp(swing, (0, 1.0), [1.0, 0.0], args=(c,), rtol=1e-9, atol=1e-10).y[0, -1],
        -math.sin(2**0.5) / 8**0.5,
    ),
    "odeint": (
        lambda c: integrate.odeint(swing, [1.0, 0.0], [0, 1.0], args=(c,), tfirst=True, rtol=1e-9)[-1, 0],
        -math.sin(2**0.5) / 8**0.5,
    ),
    "vectorize": (lambda c: vg.numpy.vectorize(lambda x: cubes(x)[1])(c * np.ones(2)).sum(), 24.0),
    "apply_along_axis": (lambda c: np.apply_along_axis(total, 0, c * np.ones((2, 2))).sum(), 48.0),
    "piecewise": (lambda c: np.piecewise(c * np.ones(2), [np.array([True, False])], [total, 1.0])[0], 12.0),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_functions_passed_to_others_are_adopted(name):
    call, slope = CALLS[name]
    c = leaf(2.0)
    found = call(c)
    assert grad(found, c)[0].item() == pytest.approx(slope, rel=1e-5)


@pytest.mark.parametrize("name", ["checkpoint", "brentq", "quad", "solve_ivp", "minimize", "vectorize"])
def test_functions_passed_to_others_are_adopted_inside_transforms(name):
    call, slope = CALLS[name]
    assert vg.grad(call)(2.0) == pytest.approx(slope, rel=1e-5)


def test_functional_derivatives_adopt():
    x, v = vg.Tensor(2.0), vg.Tensor(1.0)
    np.testing.assert_allclose(functional.jacobian(cubes, x), [4.0, 12.0])
    np.testing.assert_allclose(functional.jvp(cubes, x, v)[1], [4.0, 12.0])
    np.testing.assert_allclose(functional.vjp(cubes, x, vg.Tensor([1.0, 1.0]))[1], 16.0)
    x, v = vg.Tensor([1.0, 2.0]), vg.Tensor([1.0, 0.0])
    np.testing.assert_allclose(functional.hessian(total, x), np.diag([6.0, 12.0]))
    np.testing.assert_allclose(functional.hvp(total, x, v)[1], [6.0, 0.0])
    np.testing.assert_allclose(functional.vhp(total, x, v)[1], [6.0, 0.0])
    assert gradcheck(total, leaf([1.0, 2.0])) and gradgradcheck(total, leaf([1.0, 2.0]))


def test_functions_are_left_as_they_are_on_request():
    for call in (
        lambda: vg.checkpoint(cubes, adopt=False)(leaf(2.0)),
        lambda: functional.jacobian(cubes, vg.Tensor(2.0), adopt=False),
        lambda: gradcheck(cubes, leaf(2.0), adopt=False),
    ):
        with pytest.raises((DetachedConversionError, ValueError)):
            call()


def test_checkpoints_of_adopted_functions_draw_the_same_numbers_again():
    for x in (leaf(2.0), leaf(3.0)):
        y = vg.checkpoint(noisy)(x)
        y.backward()
        assert x.grad.item() * x.item() == pytest.approx(y.item())


def test_checkpoints_of_adopted_functions_find_captured_tensors():
    c = leaf(3.0)

    def scaled(x):
        y = np.zeros(2)
        y[0] = x * c
        return y.sum()

    x = leaf(2.0)
    vg.checkpoint(scaled)(x).backward()
    assert (x.grad.item(), c.grad.item()) == (3.0, 2.0)


# -- functions and objects among the arguments -------------------------------------------------------------------------


class Spring:
    def __init__(self, stiffness):
        self.stiffness, self.calls = stiffness, 0

    def energy(self, x):
        self.calls += 1
        table = np.zeros(2)
        table[0] = self.stiffness * x * x / 2
        return table.sum()


def stepped(rate, y, steps=3):
    out = np.zeros(steps + 1)
    out[0] = y
    for step in range(steps):
        out[step + 1] = out[step] + 0.1 * rate(out[step])
    return out[-1]


def tabled_square(x):
    y = np.zeros(1)
    y[0] = x * x
    return y[0]


@pytest.mark.parametrize(
    "rate", [tabled_square, lambda y: np.array([y])[0] ** 2, np.square, functools.partial(lambda c, y: c * y * y, 1.0)]
)
def test_functions_among_the_arguments_are_adopted(rate):
    plain = (stepped(rate, 2.0 + 1e-6) - stepped(rate, 2.0 - 1e-6)) / 2e-6
    assert vg.grad(stepped, argnums=1)(rate, 2.0) == pytest.approx(plain, rel=1e-7)
    assert vg.grad(lambda y, f: stepped(f, y))(2.0, f=rate) == pytest.approx(plain, rel=1e-7)
    assert vg.grad(vg.compile(stepped, executor="python"), argnums=1)(rate, 2.0) == pytest.approx(plain, rel=1e-7)
    assert vg.grad(lambda y, fs: stepped(fs[0], y))(2.0, (rate,)) == pytest.approx(plain, rel=1e-7)
    assert vg.adopt(lambda f: f)(rate) is rate


def test_objects_among_the_arguments_have_adopted_methods():
    spring = Spring(3.0)
    assert vg.grad(lambda s, x: s.energy(x) + s.energy(2 * x), argnums=1)(spring, 2.0) == 30.0
    assert spring.calls == 2 and type(spring) is Spring
    assert vg.adopt(lambda s: s)(spring) is spring
    spring.energy = tabled_square  # later changes are noticed
    assert vg.grad(lambda s, x: s.energy(x), argnums=1)(spring, 2.0) == 4.0


COUNTS = {"calls": 0}
LIMIT = 2.0


def counted(x):
    global LIMIT
    COUNTS["calls"] += 1
    LIMIT = LIMIT + 1.0
    return np.full(1, x)[0] * LIMIT


def test_globals_of_functions_among_the_arguments(tmp_path, monkeypatch):
    (tmp_path / "other_module.py").write_text(
        "import numpy as np\nSCALE = 2.0\ndef scaled(x):\n    global SCALE\n    z = np.zeros(1)\n    z[0] = x * SCALE\n"
        "    SCALE = SCALE + 1.0\n    return z[0]\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    other = importlib.import_module("other_module")
    apply = vg.grad(lambda f, x: f(x), argnums=1)
    assert apply(other.scaled, 1.0) == 2.0 and other.SCALE == 3.0
    other.SCALE = 7.0
    assert apply(other.scaled, 1.0) == 7.0 and other.SCALE == 8.0
    before = LIMIT
    assert apply(counted, 1.0) == before + 1.0 == LIMIT and COUNTS["calls"] == 1
