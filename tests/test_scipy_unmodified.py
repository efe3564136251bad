"""SciPy's own solvers on NumPy functions, with derivatives by the transforms."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import integrate, optimize

import viewgrad as vg

START = np.array([-0.5, 0.7, 0.3])


def rosenbrock(x):
    y = np.zeros(len(x) - 1)
    for i in range(len(x) - 1):
        y[i] = 100.0 * (x[i + 1] - x[i] ** 2) ** 2 + (1 - x[i]) ** 2
    return y.sum()


def residuals(p, t, y):
    out = np.empty(len(t))
    for i in range(len(t)):
        out[i] = p[0] * np.exp(-p[1] * t[i]) - y[i]
    return out


def stiff(t, u):
    du = np.zeros(2)
    du[0] = u[1]
    du[1] = 30 * (1 - u[0] ** 2) * u[1] - u[0]
    return du


def circle(x):
    return np.array([x[0] ** 2 + x[1] - 3, x[0] - x[1]])


FIRST = ["CG", "BFGS", "L-BFGS-B", "SLSQP"]
SECOND = ["Newton-CG", "trust-constr", "trust-ncg", "trust-krylov", "trust-exact"]


@pytest.mark.parametrize("method", [*FIRST, *SECOND, "Nelder-Mead", "Powell", "TNC", "COBYLA"])
def test_minimize_by_every_method(method):
    hessian = vg.hessian(rosenbrock) if method in SECOND else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # warnings of methods without gradients
        found = optimize.minimize(vg.value_and_grad(rosenbrock), START, jac=True, method=method, hess=hessian)
    assert type(found.x) is np.ndarray and isinstance(found.fun, float)
    assert found.fun < rosenbrock(START) / 20
    if method in (*FIRST, *SECOND):
        np.testing.assert_allclose(found.x, 1.0, atol=2e-3)


def test_minimize_with_hessian_products_and_separate_gradients():
    def product(x, p):
        return vg.func.hvp(rosenbrock, (x,), (p,))[1][0]

    gradient = vg.grad(rosenbrock)
    found = optimize.minimize(rosenbrock, START, jac=gradient, hessp=product, method="Newton-CG")
    np.testing.assert_allclose(found.x, 1.0, atol=1e-4)
    assert optimize.check_grad(rosenbrock, gradient, START) < 1e-4
    compiled = vg.compile(rosenbrock, executor="python")
    found = optimize.minimize(vg.value_and_grad(compiled), START, jac=True, method="L-BFGS-B")
    np.testing.assert_allclose(found.x, 1.0, atol=1e-4)


def test_minimize_by_methods_for_convex_functions():
    """dogleg needs a positive definite Hessian."""
    near = np.full(START.shape, 1.1)
    both, hessian = vg.value_and_grad(rosenbrock), vg.hessian(rosenbrock)
    found = optimize.minimize(both, near, jac=True, method="dogleg", hess=hessian)
    np.testing.assert_allclose(found.x, 1.0, atol=1e-4)


@pytest.mark.parametrize("method", FIRST)
def test_minimize_runs_a_compiled_function_once_per_evaluation(method, monkeypatch):
    compiled = vg.compile(rosenbrock, executor="python")
    compiled.value_and_grad(START)
    points = []
    run = type(compiled).plain_value_and_grad
    monkeypatch.setattr(type(compiled), "plain_value_and_grad", lambda self, x: points.append(x) or run(self, x))
    found = vg.scipy.optimize.minimize(compiled, START, method=method)
    np.testing.assert_allclose(np.asarray(found.x), 1.0, atol=2e-3)
    assert 0 < len(points) <= found.nfev + 3 and all(type(x) is np.ndarray for x in points)


@pytest.mark.parametrize("method", ["trf", "dogbox", "lm"])
@pytest.mark.parametrize("jacobian", [vg.jacrev, vg.jacfwd])
def test_least_squares(method, jacobian):
    t = np.linspace(0, 3, 20)
    y = 2.5 * np.exp(-1.3 * t)
    found = optimize.least_squares(residuals, [1.0, 1.0], jac=jacobian(residuals), args=(t, y), method=method)
    np.testing.assert_allclose(found.x, [2.5, 1.3])


def test_roots():
    for method in ("hybr", "lm"):
        found = optimize.root(circle, [1.0, 1.0], jac=vg.jacfwd(circle), method=method)
        np.testing.assert_allclose(circle(found.x), 0.0, atol=1e-9)
    cubic = lambda x: x**3 - 2 * np.ones(1)[0]
    assert optimize.newton(cubic, 1.0, vg.grad(cubic), fprime2=vg.hessian(cubic)) == pytest.approx(2 ** (1 / 3))
    found = optimize.root_scalar(vg.value_and_grad(cubic), x0=1.0, fprime=True, method="newton")
    assert found.root == pytest.approx(2 ** (1 / 3))


@pytest.mark.parametrize("method", ["Radau", "BDF", "LSODA"])
def test_stiff_equations(method):
    by_hand = lambda t, u: np.array([[0.0, 1.0], [-60 * u[0] * u[1] - 1, 30 * (1 - u[0] ** 2)]])
    expected = integrate.solve_ivp(stiff, (0, 5), [2.0, 0.0], method=method, jac=by_hand)
    found = integrate.solve_ivp(stiff, (0, 5), [2.0, 0.0], method=method, jac=vg.jacrev(stiff, 1))
    np.testing.assert_allclose(found.y[:, -1], expected.y[:, -1], rtol=1e-9)


def test_curves():
    t = np.linspace(0, 3, 20)
    decay = lambda t, a, b: a * np.exp(-b * t)

    def jacobian(t, a, b):
        return np.stack(vg.jacrev(lambda a, b: decay(t, a, b), (0, 1))(a, b), -1)

    found, _ = optimize.curve_fit(decay, t, decay(t, 2.5, 1.3), p0=(1.0, 1.0), jac=jacobian)
    np.testing.assert_allclose(found, [2.5, 1.3])
