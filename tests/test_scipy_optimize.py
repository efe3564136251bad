"""Solutions of `viewgrad.scipy.optimize`, and their derivatives with respect to captured tensors."""

import numpy as np
import pytest

scipy = pytest.importorskip("scipy")
from leaves import leaf, leaf_of  # noqa: E402

import viewgrad as vg  # noqa: E402
import viewgrad.numpy as vnp  # noqa: E402
from viewgrad.autograd import grad, gradcheck, gradgradcheck  # noqa: E402
from viewgrad.errors import DifferentiabilityError  # noqa: E402
from viewgrad.scipy import elementwise, optimize  # noqa: E402


def cubic(x, a):
    return x**3 + a * x - 2.0


def cubic_slope(x, a):
    return 3 * x**2 + a


def system(x, a):
    return vnp.array([x[0] ** 2 + a[0] * x[1] - 3.0, vnp.sin(x[0]) + a[1] * x[1] - 1.0])


def energy(x, a):
    return vnp.sum((x - a) ** 2) + 0.1 * vnp.sum(x**4) + x[0] * x[1] * a[0]


POINTS = np.linspace(0.0, 1.0, 6)

FOUND = {
    "brentq": lambda a: optimize.brentq(cubic, 0.0, 2.0, (a[0],)),
    "brenth": lambda a: optimize.brenth(cubic, 0.0, 2.0, args=(a[0],), xtol=1e-13),
    "ridder": lambda a: optimize.ridder(cubic, 0.0, 2.0, args=a[0]),
    "bisect": lambda a: optimize.bisect(cubic, 0.0, 2.0, args=(a[0],)),
    "toms748": lambda a: optimize.toms748(cubic, 0.0, 2.0, args=(a[0],)),
    "newton, args in a list": lambda a: optimize.newton(cubic, 1.0, cubic_slope, [a[0]], tol=1e-14),
    "fixed_point, args in an array": lambda a: optimize.fixed_point(lambda x, b: vnp.cos(b * x), 0.5, a[:1], 1e-13),
    "find_root": lambda a: elementwise.find_root(cubic, ([0.0, -1.0], 2.0), args=(a[:2],)).x.sum(),
    "find_root, f_x": lambda a: elementwise.find_root(cubic, (0.0, 2.0), args=(a[0],)).f_x + a[0],
    "find_minimum": lambda a: elementwise.find_minimum(lambda x, b: vnp.cosh(x - b) * b, (-3, 0, 3), args=(a,)).x.sum(),
    "find_minimum, f_x": lambda a: elementwise.find_minimum(
        lambda x, b: vnp.cosh(x - 1) * b, (-3, 0, 3), args=(a,)
    ).f_x.sum(),
    "bracket that moves": lambda a: optimize.brentq(cubic, a[0] - 1.0, a[0] + 2.0, (a[0],)),
    "newton": lambda a: optimize.newton(cubic, x0=a[0], args=(a[0],)),
    "newton with slope": lambda a: optimize.newton(cubic, 1.0, cubic_slope, (a[0],)),
    "newton of many": lambda a: optimize.newton(cubic, np.ones(2), args=(a,), tol=1e-12),
    "root_scalar": lambda a: optimize.root_scalar(cubic, args=(a[0],), bracket=[0.0, 2.0]).root,
    "root": lambda a: optimize.root(system, [1.0, 1.0], args=(a,)).x,
    "root, with its slopes": lambda a: optimize.root(lambda x: (x**3 - a, vnp.diag(3 * x**2)), [1.0, 1.0], jac=True).x,
    "root_scalar, with its slope": lambda a: (
        optimize.root_scalar(lambda x: (cubic(x, a[0]), cubic_slope(x, a[0])), x0=1.0, fprime=True).root
    ),
    "pairs": lambda a: (a * vnp.array([[2.0, 1.0], [1.0, 3.0]]))[optimize.linear_sum_assignment(vnp.outer(a, a))],
    "fsolve": lambda a: optimize.fsolve(system, a, args=(a,)),
    "fixed_point": lambda a: optimize.fixed_point(lambda x: vnp.cos(x * a), [0.5, 0.5], xtol=1e-12),
    "minimize": lambda a: optimize.minimize(energy, a, args=(a,), tol=1e-10).x,
    "value at the minimum": lambda a: optimize.minimize(energy, [0.1, 0.2], args=(a,), tol=1e-10).fun,
    "minimize_scalar": lambda a: optimize.minimize_scalar(lambda x: (x - a[0]) ** 2 + x**4, tol=1e-11).x,
    "least_squares": lambda a: (
        optimize.least_squares(
            lambda p: p[0] * vnp.exp(-p[1] * POINTS) - a[0] * vnp.exp(-POINTS * POINTS),
            [1.0, 1.0],
            xtol=1e-14,
            gtol=1e-14,
        ).x
    ),
    "curve_fit": lambda a: optimize.curve_fit(
        lambda x, p, q: p * vnp.exp(-q * x), POINTS, a[0] * vnp.exp(-POINTS * POINTS), ftol=1e-15, xtol=1e-15
    )[0],
    "covariances of curve_fit": lambda a: optimize.curve_fit(
        lambda x, p, q: p * x + q, POINTS, a[0] * vnp.exp(-POINTS * POINTS), sigma=POINTS + a[1]
    )[1],
}


@pytest.mark.parametrize("name", FOUND)
@pytest.mark.filterwarnings("ignore")
def test_solutions_depend_on_captured_tensors(name):
    a = leaf(0.7, 0.9)
    function = FOUND[name]
    np.testing.assert_allclose(vg.asarray(function(a)).detach().numpy(), function(a.detach()), rtol=1e-7)
    assert gradcheck(function, a, eps=1e-3, atol=5e-5)
    if name in ("brentq", "root", "minimize"):
        assert gradgradcheck(function, a, atol=1e-3)


def test_solutions_at_a_bound_do_not_move():
    a = leaf(0.5, -0.4)
    found = optimize.minimize(lambda x: vnp.sum((x - a) ** 2), [0.3, 0.3], bounds=[(None, 1.0), (0.0, None)])
    np.testing.assert_allclose(found.x.detach().numpy(), [0.5, 0.0], atol=1e-6)
    assert grad(found.x.sum(), a)[0].round(6).tolist() == [1.0, 0.0]


def test_results_without_history_match_scipy():
    assert isinstance(optimize.brentq(cubic, 0.0, 2.0, (1.0,)), float)
    place, report = optimize.brentq(cubic, 0.0, 2.0, (leaf_of(1.0),), full_output=True)
    assert report.converged and place.requires_grad
    assert not optimize.root(system, [1.0, 1.0], args=(np.array([0.7, 0.9]),)).x.requires_grad


@pytest.mark.parametrize(
    ("function", "power"),
    [
        (lambda a: optimize.brentq(lambda x: x**3 - a, 0.1, 5.0, xtol=1e-14), 1 / 3),
        (lambda a: optimize.root(lambda x: x * x - a, [1.0]).x[0], 1 / 2),
        (lambda a: vg.scipy.linalg.sqrtm(a * vg.eye(2))[1, 1], 1 / 2),
    ],
)
def test_derivatives_of_a_search_result_to_order_seven(function, power):
    """The solution has a closed form, and so have its derivatives."""
    a = vg.Tensor(2.0, requires_grad=True)
    found, exact = function(a), 2.0**power
    for order in range(7):
        (found,) = vg.autograd.grad(found, [a], create_graph=True)
        exact *= (power - order) / 2.0
        np.testing.assert_allclose(found.item(), exact, rtol=1e-9)


def test_minima_in_a_valley_have_no_derivative():
    a = leaf(2.0)
    for slope in (1.0, 0.1, 1e-9):  # the rounded Hessian of the others is not exactly singular
        with pytest.raises(DifferentiabilityError, match=r"it is not isolated.* detach\(\)"):
            optimize.minimize(lambda x, slope=slope: (slope * x[0] + 0.3 * x[1] - a) ** 2, [0.0, 0.0])
    scaled = optimize.minimize(lambda x: (1e-9 * x[0] - a) ** 2 + (1e9 * x[1] - a) ** 2, [2e9, 2e-9], method="powell")
    assert grad(scaled.x[1], a)[0].item() == pytest.approx(1e-9)
    assert abs(optimize.minimize(lambda x: (x[0] + x[1] - a.detach()) ** 2, [0.0, 0.0]).x.sum() - 2.0) < 1e-6


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_minimize_raises_if_history_was_lost():
    a = leaf(0.7, 0.9)
    with pytest.raises(DifferentiabilityError, match="item"):
        elementwise.find_minimum(lambda x, b: vnp.asarray(((x - b) ** 2).detach()) + b, (-1.0, 0.0, 2.0), args=(a[0],))


@pytest.mark.parametrize(
    "function",
    {
        "a norm that vanishes": lambda x, a: vnp.linalg.norm(x**3 - a),
        "absolute values": lambda x, a: vnp.sum(vnp.abs(x - a) + 0.1 * (x - 3.0) ** 2),
        "a flat valley": lambda x, a: vnp.sum((x - a) ** 4),
    }.values(),
)
def test_a_minimum_at_a_kink_is_an_error(function):
    """Newton's method does not converge there, so a gradient would be noise."""
    a = leaf(1.0, 2.0)
    with pytest.raises(DifferentiabilityError, match="smaller tolerance"):
        optimize.minimize(lambda x: function(x, a), [0.5, 0.5], method="Nelder-Mead")


def test_slightly_inexact_solutions_are_accepted():
    a = leaf(1.0, 2.0)
    found = optimize.fmin(lambda x: vnp.sum((x**3 - a) ** 2), [0.5, 0.5], disp=False, xtol=1e-2, ftol=1e-2)
    assert grad(found.sum(), a)[0].tolist() == pytest.approx([1 / 3, 2 ** (-2 / 3) / 3], rel=1e-3)


def own_loss(z):
    return vnp.array([vnp.log1p(z), 1 / (1 + z), -1 / (1 + z) ** 2])


PLACES, HEIGHTS = np.array([0.5, 1.0, 2.0, 3.0, 4.0, 5.0]), np.array([1.0, 2.1, 2.9, 4.5, 9.0, 5.1])
CLOSE = {"ftol": 1e-14, "xtol": 1e-14, "gtol": 1e-14}


@pytest.mark.parametrize("loss", ["soft_l1", "huber", "cauchy", "arctan", own_loss])
def test_curve_fit_minimizes_the_given_loss(loss):
    """The loss is minimized instead of the sum of squares, and its scale has a gradient."""

    def fitted(heights, scale):
        place, covariances = optimize.curve_fit(
            lambda x, a, b: a * x + b, PLACES, heights, p0=[1.0, 1.0], method="trf", loss=loss, f_scale=scale, **CLOSE
        )
        found = optimize.least_squares(
            lambda p: p[0] * PLACES + p[1] - heights, [1.0, 1.0], loss=loss, f_scale=scale, **CLOSE
        )
        return vnp.array([place[0], covariances[0, 1], found.x[1], found.cost])

    heights, scale = leaf_of(HEIGHTS), leaf_of(0.6)
    values = fitted(heights, scale)
    plain = scipy.optimize.curve_fit(
        lambda x, a, b: a * x + b, PLACES, HEIGHTS, p0=[1.0, 1.0], method="trf", f_scale=0.6, **CLOSE,
        loss=loss if isinstance(loss, str) else lambda z: np.array(loss(vg.from_numpy(z)).numpy()),
    )  # fmt: skip
    np.testing.assert_allclose(values.detach().numpy()[:2], [plain[0][0], plain[1][0, 1]], rtol=1e-6)
    rows = vg.func.jacrev(fitted, (0, 1))(heights, scale)
    for place, part in ((0, HEIGHTS), (1, np.array(0.6))):
        for index in np.ndindex(part.shape):
            given = [vg.Tensor(HEIGHTS), vg.Tensor(0.6)]
            ends = []
            for step in (1e-4, -1e-4):
                moved = part.copy()
                moved[index] += step
                given[place] = vg.Tensor(moved)
                ends.append(fitted(*given).numpy())
            slopes = (ends[0] - ends[1]) / 2e-4
            found = rows[place].detach().numpy()[(slice(None), *index)]
            np.testing.assert_allclose(found, slopes, rtol=2e-3, atol=2e-4)


@pytest.mark.parametrize("name", ["rosen", "rosen_der", "rosen_hess", "rosen_hess_prod"])
def test_derivatives_of_rosenbrocks_function(name):
    x, further = np.array([1.3, 0.7, 0.8, 1.9]), (np.array([0.2, -0.4, 1.0, 0.3]),) if name.endswith("prod") else ()
    function = getattr(optimize, name)
    np.testing.assert_allclose(function(vg.Tensor(x), *further).numpy(), getattr(scipy.optimize, name)(x, *further))
    assert gradcheck(lambda x: function(x, *further), leaf_of(x))


@pytest.mark.parametrize("bounds", [(-np.inf, np.inf), (0.0, 0.9), ([-9.0, -9.0, 0.4], 9.0)])
def test_linear_least_squares_between_bounds(bounds):
    rng = np.random.default_rng(4)
    matrix, right = rng.uniform(size=(5, 3)), np.arange(5.0) + 1.0
    wanted = scipy.optimize.lsq_linear(matrix, right, bounds)
    found = optimize.lsq_linear(leaf_of(matrix), right, bounds)
    np.testing.assert_allclose(found.x.detach().numpy(), wanted.x, atol=1e-7)
    assert float(found.cost.detach()) == pytest.approx(wanted.cost)
    assert gradcheck(lambda a, b: optimize.lsq_linear(a, b, bounds).x, (leaf_of(matrix), leaf_of(right)))
    if np.isfinite(np.max(bounds[1])) and bounds[1] < 1.0:  # variables at the bound move with it
        assert gradcheck(lambda high: optimize.lsq_linear(matrix, right, (0.0, high)).x, leaf_of(0.9))


def test_curve_fit_takes_lists():
    place, _ = optimize.curve_fit(lambda x, a, b: a * x + b, [1.0, 2.0, 3.0], [1.0, 2.0, 2.9])
    expected, _ = scipy.optimize.curve_fit(lambda x, a, b: a * x + b, [1.0, 2.0, 3.0], [1.0, 2.0, 2.9])
    np.testing.assert_allclose(np.asarray(place), expected, rtol=1e-6)


def test_curve_fit_starts_within_bounds_and_takes_a_jacobian():
    x = np.linspace(0.0, 2.0, 9)
    y = vg.Tensor(3.0 * x - 0.5, requires_grad=True)

    def line(x, a, b):
        return a * x + b

    found, _ = optimize.curve_fit(line, x, y, bounds=([2.0, -5.0], [4.0, -0.1]))
    np.testing.assert_allclose(found.detach().numpy(), [3.0, -0.5], rtol=1e-6)
    assert found.requires_grad
    found, _ = optimize.curve_fit(line, x, y, jac=lambda x, a, b: np.stack([x, x * 0.0 + 1.0], 1), method="trf")
    np.testing.assert_allclose(found.detach().numpy(), [3.0, -0.5], rtol=1e-6)


def test_least_squares_passes_named_arguments_to_the_jacobian():
    """Without them, the Jacobian would be that of other arguments."""
    found = optimize.least_squares(
        lambda x, a=0.0: (x - a) ** 2 + 5.0, 2.0, jac=lambda x, a=0.0: 2.0 * (x - a), kwargs={"a": 3.0}
    )
    np.testing.assert_allclose(found.x.numpy(), [3.0], rtol=1e-4)


def test_least_squares_takes_sparse_jacobians_and_bounds_of_several_kinds():
    factors = np.array([1.0, 2.0, 3.0])
    matrix, bounds = scipy.sparse.diags_array(factors), ([-1.0, -1.0, -1.0], 4.0)
    found = optimize.least_squares(lambda x: vg.Tensor(factors) * x - 6.0, np.zeros(3), lambda x: matrix, bounds)
    np.testing.assert_allclose(found.x.numpy(), [4.0, 3.0, 2.0], rtol=1e-5)


def rosenbrock(x):
    total = 0.0
    for i in range(len(x) - 1):
        total = total + 100 * (x[i + 1] - x[i] ** 2) ** 2 + (1 - x[i]) ** 2
    return total


@pytest.mark.parametrize("method", ["dogleg", "trust-exact", "trust-ncg", "trust-krylov"])
@pytest.mark.parametrize("function", [rosenbrock, vg.compile(rosenbrock)])
def test_methods_that_need_a_hessian_get_one(method, function):
    found = optimize.minimize(function, [-1.2, 1.0, 0.8], method=method)
    np.testing.assert_allclose(found.x, 1.0, rtol=1e-3)
    target = leaf_of(np.array([0.5, -0.2]))
    found = optimize.minimize(lambda x: ((x - target) ** 4 + (x - target) ** 2).sum(), [0.0, 0.0], method=method)
    np.testing.assert_allclose(grad(found.x.sum(), target)[0], 1.0, rtol=1e-6)


def test_hessian_products_receive_tensors():
    def product(x, p):
        return vg.func.hvp(rosenbrock, (x,), (p,))[1][0]

    found = optimize.minimize(rosenbrock, [-1.2, 1.0], method="trust-ncg", hessp=product)
    np.testing.assert_allclose(found.x, 1.0, rtol=1e-4)


@pytest.mark.filterwarnings("ignore::UserWarning")  # SciPy finds that a constraint is linear
@pytest.mark.parametrize("method", ["trust-constr", "SLSQP"])
def test_constraints_may_be_objects_without_jacobians(method):
    def product(x):
        out = np.zeros(1)
        out[0] = x[0] * x[1]
        return out

    for constraint in (
        scipy.optimize.NonlinearConstraint(product, 0.5, 0.5),
        [scipy.optimize.NonlinearConstraint(product, [0.5], [0.5], jac=lambda x: np.array([[x[1], x[0]]]))],
        {"type": "eq", "fun": lambda x: product(x)[0] - 0.5},
    ):
        found = optimize.minimize(lambda x: (x * x).sum() + x[0], [1.0, 1.0], method=method, constraints=constraint)
        np.testing.assert_allclose(found.x[0] * found.x[1], 0.5, rtol=1e-6)
    found = optimize.minimize(
        rosenbrock, [0.2, 0.2], method=method, constraints=scipy.optimize.LinearConstraint([[1.0, 1.0]], 1.0, 1.0)
    )
    np.testing.assert_allclose(found.x.sum(), 1.0, rtol=1e-6)


@pytest.mark.parametrize("method", ["newton", "halley"])
def test_root_scalar_computes_the_slopes_that_its_method_needs(method):
    a = leaf(2.0)
    found = optimize.root_scalar(lambda x, a: np.exp(x) - a, (a,), method, x0=0.5).root
    np.testing.assert_allclose(found.detach(), np.log(2.0))
    np.testing.assert_allclose(grad(found, a)[0], 0.5)


# -- programs that keep what they computed for an argument -------------------------------------------------------------


class Signal(np.ndarray):
    """An array that cannot hold tensors."""


class Keeping:
    """A model that computes its states again only if the argument differs from that of the last call."""

    target = np.array([1.0, -2.0, 0.5])

    def __init__(self, scale, first=False, signal=False):
        self.scale, self.signal, self.last, self.count = scale, signal, None, 0
        if first:
            self.states(np.zeros(3))

    def states(self, z):
        if self.last is None or not np.array_equal(z, self.last):
            self.count += 1
            self.last = z.copy()
            states = np.zeros(3)
            states[0] = z[0]
            for i in range(1, 3):
                states[i] = 0.5 * states[i - 1] + z[i]
            self.kept = np.asarray(states).view(Signal) if self.signal else states
        return self.kept

    def residuals(self, z):
        return self.states(z) - self.target * self.scale

    def cost(self, z):
        return (self.residuals(z) ** 2).sum() + 0.1 * (z**2).sum()

    def constraint(self, z):
        return self.states(z)[2] - 0.7


def constrained_by_dict(m):
    constraint = {"type": "eq", "fun": m.constraint}
    return scipy.optimize.minimize(m.cost, np.zeros(3), method="SLSQP", constraints=[constraint], tol=1e-13).x


def constrained_by_object(m):
    limit = scipy.optimize.NonlinearConstraint(m.constraint, 0.0, 0.0)
    return scipy.optimize.minimize(m.cost, np.zeros(3), method="trust-constr", constraints=[limit], tol=1e-11).x


SEARCHES = {
    "minimum": lambda m: scipy.optimize.minimize(m.cost, np.zeros(3), tol=1e-7).x,
    "constrained_by_dict": constrained_by_dict,
    "constrained_by_object": constrained_by_object,
    "root": lambda m: scipy.optimize.root(m.residuals, np.zeros(3)).x,
    "fsolve": lambda m: scipy.optimize.fsolve(m.residuals, np.zeros(3)),
    "least_squares": lambda m: scipy.optimize.least_squares(m.residuals, np.zeros(3)).x,
}


@pytest.mark.parametrize("signal", [False, True])
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.filterwarnings("ignore:delta_grad")
def test_searches_with_functions_that_keep_results(name, first, signal):
    expected = SEARCHES[name](Keeping(1.3, first))
    found = vg.adopt(lambda scale: SEARCHES[name](Keeping(scale, first, signal)))(1.3)
    assert np.asarray(found) == pytest.approx(expected, abs=2e-5)


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.filterwarnings("ignore:delta_grad", "ignore:The iteration")
def test_solutions_of_functions_that_keep_results(name, first):
    def solution(scale):
        return SEARCHES[name](Keeping(scale, first))

    step, weights = 0.5, np.array([1.0, 2.0, -0.7])  # the solutions are linear in the scale
    expected = (solution(1.3 + step) - solution(1.3 - step)) @ weights / (2 * step)
    assert vg.grad(lambda scale: solution(scale) @ weights)(1.3) == pytest.approx(expected, abs=1e-4)


def test_what_a_function_fills_in_a_search_counts_as_numbers():
    filled, states = np.zeros(3), np.zeros(3)

    def residuals(z):
        states[0] = z[0]
        for i in range(1, 3):
            states[i] = 0.5 * states[i - 1] + z[i]
        for i in range(3):
            filled[i] = states[i] - Keeping.target[i]
        return filled

    def run():
        work = np.zeros(2)

        def residual(z):
            work[0] = z[0] ** 2
            work[1] = 3.0
            return work[:1] - 2.0

        found = scipy.optimize.fsolve(residual, np.ones(1))
        return scipy.optimize.fsolve(residuals, np.zeros(3)), found, work.view(Signal), float(work[0])

    place, found, work, number = vg.adopt(run)()
    assert np.asarray(place) == pytest.approx([1.0, -2.5, 1.5])
    assert float(found[0]) == pytest.approx(2.0**0.5) and number == pytest.approx(2.0)
    assert np.asarray(work) == pytest.approx([2.0, 3.0])


def test_functions_of_a_search_may_fill_one_array():
    def place(scale):
        work = np.zeros(1)

        def cost(z):
            work[0] = ((z - scale) ** 2).sum()
            return work

        def constraint(z):
            work[0] = z[0] + 2.0 * z[1] - 1.0
            return work

        limits = [{"type": "eq", "fun": constraint}]
        return scipy.optimize.minimize(cost, np.zeros(2), method="SLSQP", constraints=limits, tol=1e-13).x

    # SciPy's differences are wrong here, since it compares the results of two calls, which are one array.
    assert np.asarray(vg.adopt(place)(1.0)) == pytest.approx([0.6, 0.2], abs=1e-6)
    assert vg.grad(lambda scale: place(scale) @ np.array([1.0, 3.0]))(1.0) == pytest.approx(-0.2, abs=1e-6)
