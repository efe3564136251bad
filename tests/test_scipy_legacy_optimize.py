"""The legacy functions of `viewgrad.scipy.optimize`, named after their methods, with differentiable results."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize as theirs

import viewgrad as vg
from viewgrad import numpy as tensors
from viewgrad.autograd import grad, gradcheck
from viewgrad.errors import DifferentiabilityError
from viewgrad.scipy import optimize as ours

QUIET = {"disp": 0}


def bowl(x, a, b):
    return (x[0] - a) ** 2 + 2.0 * (x[1] - a * b) ** 2 + 0.1 * (x[0] * x[1]) ** 2


def slopes(x, a, b):
    return np.array([2 * (x[0] - a) + 0.2 * x[0] * x[1] ** 2, 4 * (x[1] - a * b) + 0.2 * x[1] * x[0] ** 2])


SEARCHES = {
    "fmin": lambda m, args: m.fmin(bowl, [0.5, 0.5], args, xtol=1e-9, ftol=1e-12, **QUIET),
    "fmin_powell": lambda m, args: m.fmin_powell(bowl, [0.5, 0.5], args, xtol=1e-9, ftol=1e-12, **QUIET),
    "fmin_bfgs": lambda m, args: m.fmin_bfgs(bowl, [0.5, 0.5], None, args, gtol=1e-7, **QUIET),
    "fmin_cg": lambda m, args: m.fmin_cg(bowl, [0.5, 0.5], args=args, **QUIET),
    "fmin_l_bfgs_b": lambda m, args: m.fmin_l_bfgs_b(bowl, [0.5, 0.5], args=args, approx_grad=True, pgtol=1e-9)[0],
    "pairs": lambda m, args: m.fmin_l_bfgs_b(pair, [0.5, 0.5], args=args, pgtol=1e-9)[0],
    "fmin_tnc": lambda m, args: m.fmin_tnc(bowl, [0.5, 0.5], args=args, approx_grad=True, **QUIET)[0],
    "fmin_slsqp": lambda m, args: m.fmin_slsqp(bowl, [0.5, 0.5], args=args, iprint=0, acc=1e-12),
    "differential_evolution": lambda m, args: m.differential_evolution(bowl, [(-3, 3)] * 2, args, seed=1, tol=1e-9).x,
    "brute": lambda m, args: m.brute(bowl, [(-3, 3), (-3, 3)], args, Ns=5),
    "brute with an array among the ranges": lambda m, args: m.brute(
        bowl, [(vg.Tensor(-3.0), 3), slice(-3, 3, 1.5)], args, Ns=5
    ),
    "basinhopping": lambda m, args: m.basinhopping(lambda x: bowl(x, *args), [0.5, 0.5], niter=1, seed=1).x,
}  # fmt: skip


def pair(x, a, b):
    """Return the value and its slopes, as tensors."""
    down = 2 * (x[0] - a) + 0.2 * x[0] * x[1] ** 2, 4 * (x[1] - a * b) + 0.2 * x[1] * x[0] ** 2
    return bowl(x, a, b), tensors.stack([tensors.asarray(each) for each in down])


@pytest.mark.parametrize("name", SEARCHES)
def test_search_results_have_a_history(name):
    search = SEARCHES[name]
    leaves = vg.Tensor(1.2, requires_grad=True), vg.Tensor(0.7, requires_grad=True)
    found = search(ours, leaves)
    right = theirs.minimize(bowl, [0.5, 0.5], (1.2, 0.7), tol=1e-12).x
    np.testing.assert_allclose(found.detach().numpy(), right, atol=1e-4)
    exact = []
    for da, db in ((1e-5, 0.0), (0.0, 1e-5)):
        ends = [theirs.minimize(bowl, right, (1.2 + h * da, 0.7 + h * db), jac=slopes, tol=1e-13).x for h in (1, -1)]
        exact.append((ends[0] - ends[1]).sum() / 2e-5)
    np.testing.assert_allclose([each.item() for each in grad(found.sum(), leaves)], exact, rtol=1e-3, atol=1e-4)
    assert not search(ours, (1.2, 0.7)).requires_grad


def test_searches_of_a_number():
    a = vg.Tensor(1.3, requires_grad=True)
    cases = (
        lambda m: m.fminbound(lambda x: (x - a) ** 2 + 0.1 * x**4, 0, 3, xtol=1e-9),
        lambda m: m.brent(lambda x: (x - a) ** 2 + 0.1 * x**4),
        lambda m: m.golden(lambda x: (x - a) ** 2 + 0.1 * x**4, tol=1e-10),
    )
    for search in cases:
        place = search(ours)
        x = place.detach().item()
        assert 2 * (x - 1.3) + 0.4 * x**3 == pytest.approx(0.0, abs=1e-6)
        assert grad(place, a)[0].item() == pytest.approx(2 / (2 + 1.2 * x * x), rel=1e-5)


def test_leastsq_has_gradients():
    x = np.linspace(0, 2, 12)
    y = np.exp(-1.3 * x) * 2.0 + 0.1 * np.cos(7 * x)

    def away(p, y):
        return p[0] * tensors.exp(-p[1] * x) - y

    leaf = vg.Tensor(y, requires_grad=True)
    found, _ = ours.leastsq(away, [1.0, 1.0], (leaf,))

    def solved(y):
        return theirs.leastsq(lambda p: p[0] * np.exp(-p[1] * x) - y, [2.0, 1.3], xtol=1e-14, ftol=1e-14)[0]

    right = solved(y)
    np.testing.assert_allclose(found.detach().numpy(), right, rtol=1e-5)
    (gradient,) = grad(found[1], leaf)
    for place in (0, 5):
        moved = [solved(y + h * np.eye(12)[place]) for h in (1e-4, -1e-4)]
        # SciPy's search uses a Jacobian by finite differences
        assert gradient[place].item() == pytest.approx((moved[0] - moved[1])[1] / 2e-4, rel=1e-3)


def test_nnls_and_differences():
    rng = np.random.default_rng(0)
    A, b = rng.normal(size=(6, 3)), rng.normal(size=6)
    x, rest = ours.nnls(vg.Tensor(A, requires_grad=True), vg.Tensor(b, requires_grad=True))
    np.testing.assert_allclose(x.detach().numpy(), theirs.nnls(A, b)[0], atol=1e-12)
    assert rest.detach().item() == pytest.approx(theirs.nnls(A, b)[1])
    leaves = [vg.Tensor(A, requires_grad=True), vg.Tensor(b, requires_grad=True)]
    assert gradcheck(lambda A, b: vg.concatenate([ours.nnls(A, b)[0], ours.nnls(A, b)[1].reshape(1)]), leaves)
    found = ours.approx_fprime(vg.Tensor([0.3, 0.7]), lambda x: (x**3).sum(), 1e-6)
    np.testing.assert_allclose(found.numpy(), 3 * np.array([0.3, 0.7]) ** 2, rtol=1e-4)
    x = vg.Tensor([0.3, 0.7, 1.1], requires_grad=True)
    assert ours.rosen(x).detach().item() == theirs.rosen([0.3, 0.7, 1.1])
    assert gradcheck(ours.rosen, x)


@pytest.mark.parametrize("call", [
    lambda a: ours.fmin(bowl, [0.5, 0.5], (a, 0.7), full_output=True, **QUIET)[1],
    lambda a: ours.fmin_l_bfgs_b(bowl, [0.5, 0.5], args=(a, 0.7), approx_grad=True)[1],
    lambda a: ours.brent(lambda x: (x - a) ** 2 + x**4, full_output=True)[1],
])  # fmt: skip
def test_function_values_of_searches_have_gradients(call):
    a = vg.Tensor(0.8, requires_grad=True)
    ends = [float(call(0.8 + step)) for step in (1e-4, -1e-4)]
    assert grad(call(a), a)[0].item() == pytest.approx((ends[0] - ends[1]) / 2e-4, rel=1e-3)


def test_covariances_of_leastsq_have_gradients():
    x, y = np.linspace(0.0, 1.0, 7), np.exp(-np.linspace(0.0, 1.0, 7))

    def covariance(a):
        return ours.leastsq(lambda p: a * np.exp(-p[0] * x) + p[1] - y, [0.5, 0.1], full_output=True)[1]

    a = vg.Tensor(1.3, requires_grad=True)
    right = theirs.leastsq(lambda p: 1.3 * np.exp(-p[0] * x) + p[1] - y, [0.5, 0.1], full_output=True)[1]
    np.testing.assert_allclose(covariance(a).detach(), right, rtol=1e-4)
    assert gradcheck(covariance, a)


CONSTRAINED = {
    "ieqcons": lambda m, a: m.fmin_slsqp(bowl, [0.5, 0.5], ieqcons=[lambda x, a, b: a - x[0] - x[1]], args=(a, 0.7),
                                         iprint=0, acc=1e-12),
    "f_eqcons": lambda m, a: m.fmin_slsqp(lambda x: bowl(x, 0.8, 0.7), [0.5, 0.5], iprint=0, acc=1e-12,
                                          f_eqcons=lambda x: tensors.stack([x[0] + x[1] - a]), full_output=True)[0],
    "cons": lambda m, a: m.fmin_cobyla(lambda x: bowl(x, 0.8, 0.7), [0.5, 0.5], lambda x: a - x[0] - x[1],
                                       rhoend=1e-9),
    "LinearConstraint": lambda m, a: m.minimize(lambda x: bowl(x, 0.8, 0.7), [0.5, 0.5], method="SLSQP", tol=1e-12,
                                                constraints=m.LinearConstraint([[1.0, 1.0]], -5.0, a)).x,
}  # fmt: skip


@pytest.mark.parametrize("name", CONSTRAINED)
def test_limits_of_constraints_have_gradients(name):
    call, a = CONSTRAINED[name], vg.Tensor(0.9, requires_grad=True)
    found = call(ours, a)
    np.testing.assert_allclose(found.detach(), np.asarray(call(theirs, 0.9)), atol=2e-4)
    if name == "cons":  # SciPy's search is not accurate enough for differences
        call = CONSTRAINED["LinearConstraint"]
    ends = [np.asarray(call(theirs, 0.9 + step)) for step in (1e-4, -1e-4)]
    assert grad(found[0], a)[0].item() == pytest.approx((ends[0] - ends[1])[0] / 2e-4, rel=2e-3)


def test_check_grad_has_a_gradient():
    a = vg.Tensor([1.2, 0.7], requires_grad=True)
    error = lambda a: ours.check_grad(lambda x: (x**3 * a).sum(), lambda x: 3 * x**2 * a + 0.1 * a, [1.0, 2.0])
    assert error(a).item() == pytest.approx(0.1 * np.hypot(1.2, 0.7), rel=1e-4)
    np.testing.assert_allclose(grad(error(a), a)[0], 0.1 * np.array([1.2, 0.7]) / np.hypot(1.2, 0.7), rtol=1e-4)


def test_points_far_from_a_solution_have_no_derivative():
    a = vg.Tensor(4.0, requires_grad=True)
    with pytest.raises(DifferentiabilityError, match="too early"):
        ours.minimize(lambda x: ((x - a) ** 4).sum(), [0.0], method="Nelder-Mead", options={"maxiter": 1})
