"""Minimizers at bounds and constraints, whose solutions depend on them."""

import numpy as np
import pytest
from scipy import optimize

import viewgrad as vg
from viewgrad.errors import DifferentiabilityError, UnsupportedFunctionError

START = [0.2, 0.3]
X = np.arange(4.0)
SLSQP = {"ftol": 1e-14}


def away(p):
    return lambda x: ((x - p) ** 2).sum()


def minimized(function, constraints=(), **options):
    return optimize.minimize(function, START, constraints=constraints, **{"options": SLSQP, **options}).x @ [1.0, 2.0]


# Functions of two parameters with SciPy's names, and the same results in closed form.
def fitted_line(bounds):
    return optimize.curve_fit(lambda x, a, b: a * x + b, X, 3.0 * X + 0.5, bounds=bounds)[0]


PROGRAMS = {
    "a tensor in an equality": (
        lambda p: minimized(lambda x: (x * x).sum(), {"type": "eq", "fun": lambda x: x[0] + x[1] - p[0] * p[1]}),
        lambda p: 1.5 * p[0] * p[1],
    ),
    "an argument of an equality": (
        lambda p: minimized(
            lambda x: (x * x).sum(), [{"type": "eq", "fun": lambda x, q: x[0] + x[1] - q[0] * q[1], "args": (p,)}]
        ),
        lambda p: 1.5 * p[0] * p[1],
    ),
    "a circle": (
        lambda p: minimized(
            away(p),
            [
                {"type": "ineq", "fun": lambda x: 0.25 - (x * x).sum()},
                {"type": "ineq", "fun": lambda x: np.array([x[0] + 5.0, x[1] + 5.0 * p[0]])},
            ],
        ),
        lambda p: 0.5 * (p[0] + 2.0 * p[1]) / np.hypot(p[0], p[1]),
    ),
    "an inactive constraint": (
        lambda p: minimized(away(p), {"type": "ineq", "fun": lambda x: 90.0 - (x * x).sum()}),
        lambda p: p[0] + 2.0 * p[1],
    ),
    "a linear constraint": (
        lambda p: minimized(away(p), optimize.LinearConstraint([[1.0, 1.0]], -np.inf, 1.0)),
        lambda p: p[0] + 2.0 * p[1] - 1.5 * (p[0] + p[1] - 1.0),
    ),
    "a nonlinear constraint": (
        lambda p: minimized(
            away(p), optimize.NonlinearConstraint(lambda x: x[0] + x[1], -3.0, p[0]), method="trust-constr",
            options={}, tol=1e-9,
        ),
        lambda p: p[0] + 2.0 * p[1] - 1.5 * p[1],
    ),
    "a bound and an equality": (
        lambda p: minimized(
            away(p), {"type": "eq", "fun": lambda x: x[0] + x[1] - 2.0}, bounds=[(0.0, 0.5 * p[0]), (0, 9)]
        ),
        lambda p: 0.5 * p[0] + 2.0 * (2.0 - 0.5 * p[0]),
    ),
    "bounds": (
        lambda p: minimized(away(3.0), options={}, bounds=[(0.0, p[0]), (None, p[1])]),
        lambda p: p[0] + 2.0 * p[1],
    ),
    "a bound that moves a free element": (
        lambda p: minimized(
            lambda x: (x[0] - 3.0) ** 2 + (x[1] - x[0]) ** 2, options={}, bounds=[(0.0, p[0] * p[1]), (0.0, 9.0)]
        ),
        lambda p: 3.0 * p[0] * p[1],
    ),
    "one variable": (
        lambda p: optimize.minimize_scalar(lambda x: (x - 3.0) ** 2, bounds=(0.0, p[0] * p[1]), method="bounded").x,
        lambda p: p[0] * p[1],
    ),
    "least squares": (
        lambda p: optimize.least_squares(lambda x: x - 3.0, START, bounds=([0.0, 0.0], p)).x @ [1.0, 2.0],
        lambda p: p[0] + 2.0 * p[1],
    ),
    "a fit": (
        lambda p: optimize.curve_fit(lambda x, a: a * x, X, 3.0 * X, bounds=(0.0, p[1]))[0][0],
        lambda p: p[1],
    ),
    "a fit with a number and an array as bounds": (
        lambda p: fitted_line(bounds=(0.0, np.array([9.0, 2.0 * p[1]])))[1] * p[0],
        lambda p: 0.5 * p[0],
    ),
    "a function named after its method": (
        lambda p: optimize.fmin_l_bfgs_b(away(3.0), START, approx_grad=True, bounds=[(0, p[0]), (0, p[1])])[0].sum(),
        lambda p: p[0] + p[1],
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:delta_grad")  # by SciPy, for constraints that are linear
@pytest.mark.parametrize("name", PROGRAMS)
def test_solutions_depend_on_bounds_and_constraints(name):
    program, exact = PROGRAMS[name]
    p = np.array([1.3, 0.9])
    value, slope = vg.func.value_and_grad(program)(p)
    np.testing.assert_allclose(value, exact(p), rtol=1e-4)
    np.testing.assert_allclose(slope, vg.func.grad(exact)(p), rtol=1e-5, atol=1e-6)


def test_a_loss_may_capture_tensors():
    def solved(p):
        loss = lambda z: np.stack([np.log1p(p * z), p / (1.0 + p * z), -(p**2) / (1.0 + p * z) ** 2])
        residuals = lambda x: np.array([x[0] - 1.0, x[0] + 0.5, 3.0 * x[0]])
        return optimize.least_squares(residuals, [0.1], loss=loss, gtol=1e-14, xtol=1e-14, ftol=1e-14).x[0]

    expected = (solved(0.3 + 1e-4) - solved(0.3 - 1e-4)) / 2e-4
    assert vg.func.grad(solved)(0.3) == pytest.approx(expected, rel=1e-5)


def test_second_derivatives_under_constraints():
    program, exact = PROGRAMS["a circle"]
    p = np.array([1.3, 0.9])
    np.testing.assert_allclose(vg.func.hessian(program)(p), vg.func.hessian(exact)(p), rtol=1e-5)


def test_constraints_without_influence_have_no_derivative():
    touching = {"type": "ineq", "fun": lambda x: 1.0 - x[0]}
    with pytest.raises(DifferentiabilityError, match="does not influence"):
        vg.func.grad(lambda p: minimized(away(p), touching))(np.array([1.0, 0.5]))


def test_other_functions_refuse_constraints_if_a_history_would_be_lost():
    p = vg.Tensor([1.0, 0.5], requires_grad=True)
    with pytest.raises(UnsupportedFunctionError, match="constraints"):
        vg.scipy.optimize.shgo(
            away(p), [(-2.0, 2.0)] * len(START), constraints={"type": "ineq", "fun": lambda x: 5.0 - x[0]}
        )
