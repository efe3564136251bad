"""Differential equations of `viewgrad.scipy.integrate`: SciPy's values, and gradients with respect to all inputs."""

from __future__ import annotations

import numpy as np
import pytest
import scipy
from leaves import leaf_of
from scipy import integrate as theirs

import viewgrad as vg
from viewgrad.autograd import grad
from viewgrad.scipy import integrate as ours
from viewgrad.scipy import ode_steps

METHODS = ("RK23", "RK45", "DOP853", "Radau", "BDF", "LSODA")
TIMES = np.linspace(0.0, 2.0, 5)
CLOSE = {"rtol": 1e-8, "atol": 1e-10}


def oscillator(t, y, k):
    return [y[1], -k * y[0] - 0.2 * y[1] ** 3]


def stiff(t, y, fast):
    return [-0.04 * y[0] + fast * y[1] * y[2], 0.04 * y[0] - fast * y[1] * y[2] - 3e7 * y[1] ** 2, 3e7 * y[1] ** 2]


def differences(function, value, h=1e-5):
    """Return the derivatives of a function of an array, by differences."""
    value = np.array(value, float)
    found = []
    for place in np.ndindex(value.shape):
        step = np.zeros_like(value)
        step[place] = h * max(1.0, abs(value[place]))
        found.append((function(value + step) - function(value - step)) / (2 * step[place]))
    return np.array(found).reshape(value.shape)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_has_gradients(method):
    def last(solver, k, start):
        return solver(oscillator, (0.0, 2.0), start, method=method, t_eval=TIMES, args=(k,), **CLOSE)

    k, start = leaf_of(1.3), leaf_of([1.0, -0.5])
    solution = last(ours.solve_ivp, k, start)
    right = last(theirs.solve_ivp, 1.3, [1.0, -0.5])
    np.testing.assert_allclose(solution.y.detach().numpy(), right.y, rtol=1e-9, atol=1e-12)
    assert solution.success and solution.status == 0 and solution.nfev > 0
    weights = np.arange(10.0).reshape(2, 5) - 3.0
    found = grad((solution.y * weights).sum(), [k, start])
    for place, value in enumerate((1.3, [1.0, -0.5])):
        given = [1.3, np.array([1.0, -0.5])]

        def total(changed, place=place, given=given):
            given[place] = changed
            return (last(theirs.solve_ivp, *given).y * weights).sum()

        np.testing.assert_allclose(found[place].numpy(), differences(total, value, 1e-4), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("method", ["Radau", "BDF", "LSODA"])
def test_stiff_equations(method):
    """Robertson's chemical reaction: explicit methods would take a million steps."""

    def last(solver, fast):
        return solver(stiff, (0.0, 4.0), [1.0, 0.0, 0.0], method=method, args=(fast,), rtol=1e-7, atol=1e-10)

    fast = leaf_of(1e4)
    solution, right = last(ours.solve_ivp, fast), last(theirs.solve_ivp, 1e4)
    np.testing.assert_allclose(solution.y.detach().numpy(), right.y, rtol=1e-9)
    found = grad(solution.y[0, -1], fast)[0].item()
    close = [
        theirs.solve_ivp(stiff, (0, 4.0), [1.0, 0, 0], "Radau", args=(1e4 + h,), rtol=1e-10, atol=1e-13).y[0, -1]
        for h in (10.0, -10.0)
    ]
    assert found == pytest.approx((close[0] - close[1]) / 20, rel=1e-4)


def test_second_derivatives_of_an_implicit_method():
    k = leaf_of(1.3)
    solution = ours.solve_ivp(lambda t, y: -k * y, (0.0, 1.0), [1.0], method="Radau", rtol=1e-10, atol=1e-12)
    (first,) = grad(solution.y[0, -1], k, create_graph=True)
    (second,) = grad(first, k, create_graph=True)
    (third,) = grad(second, k)
    found = [each.detach().item() for each in (first, second, third)]
    np.testing.assert_allclose(found, np.exp(-1.3) * np.array([-1, 1, -1]), rtol=1e-6)


@pytest.mark.parametrize("method", ["RK45", "Radau"])
def test_events_alone_may_depend_on_tensors(method):
    def moment(p):
        hit = lambda t, y: y[0] - p * p
        hit.terminal = True
        found = theirs.solve_ivp(lambda t, y: [2.0 * y[0]], (0.0, 5.0), [1.0], method, events=hit, rtol=1e-9)
        return found.t_events[0][0]

    assert vg.func.grad(moment)(3.0) == pytest.approx(1.0 / 3.0, rel=1e-6)


@pytest.mark.parametrize("method", ["RK45", "Radau", "LSODA"])
def test_events_have_times_with_a_history(method):
    def landed(t, y, g):
        return y[0]

    landed.terminal, landed.direction = True, -1

    def fall(t, y, g):
        return [y[1], -g + 0.0 * y[0]]

    speed, g = leaf_of(5.0), leaf_of(9.81)
    start = vg.stack([vg.Tensor(1.0), speed])
    solution = ours.solve_ivp(fall, (0.0, 10.0), start, method=method, events=landed, args=(g,), **CLOSE)
    right = theirs.solve_ivp(fall, (0.0, 10.0), [1.0, 5.0], method=method, events=landed, args=(9.81,), **CLOSE)
    assert solution.status == 1
    np.testing.assert_allclose(solution.t_events[0].detach().numpy(), right.t_events[0], rtol=1e-9)
    np.testing.assert_allclose(solution.y_events[0].detach().numpy(), right.y_events[0], rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(solution.t.detach().numpy(), right.t, rtol=1e-9)

    def moment(values):
        return (values[0] + np.sqrt(values[0] ** 2 + 2 * values[1])) / values[1]

    exact = differences(moment, [5.0, 9.81])
    for time in (solution.t_events[0][0], solution.t[-1]):
        np.testing.assert_allclose([d.item() for d in grad(time, [speed, g], retain_graph=True)], exact, rtol=1e-6)
    # the speed of landing: v**2 = speed**2 + 2 g
    np.testing.assert_allclose(
        [d.item() for d in grad(solution.y[1, -1], [speed, g])],
        [-5.0 / np.sqrt(25 + 2 * 9.81), -1.0 / np.sqrt(25 + 2 * 9.81)],
        rtol=1e-5,
    )


@pytest.mark.parametrize("method", ["RK45", "DOP853", "Radau", "BDF"])
def test_ends_of_the_time_have_gradients(method):
    first, last = leaf_of(0.5), leaf_of(2.0)
    solution = ours.solve_ivp(lambda t, y: -t * y, (first, last), [1.0], method=method, **CLOSE)
    found = grad(solution.y[0, -1], [first, last])
    value = np.exp((0.25 - 4.0) / 2)
    np.testing.assert_allclose([d.item() for d in found], [0.5 * value, -2.0 * value], rtol=2e-5)


def test_dense_output_and_times_that_have_a_history():
    times, k = leaf_of([0.3, 1.7]), leaf_of(0.7)
    solution = ours.solve_ivp(lambda t, y: -k * y, (0.0, 2.0), [1.0], t_eval=times, dense_output=True, **CLOSE)
    (found,) = grad(solution.y.sum(), times, retain_graph=True)
    np.testing.assert_allclose(found.numpy(), -0.7 * np.exp([-0.21, -1.19]), rtol=1e-4)
    np.testing.assert_allclose(grad(solution.sol(1.5)[0], k)[0].item(), -1.5 * np.exp(-1.05), rtol=1e-6)


def test_vectorized_right_hand_sides_and_jacobians():
    matrix = leaf_of([[-1.0, 0.3], [0.2, -2.0]])
    for method in ("RK45", "Radau"):
        solution = ours.solve_ivp(lambda t, y: matrix @ y, (0, 1), [1.0, 2.0], method, vectorized=True)
        assert grad(solution.y[:, -1].sum(), matrix)[0].shape == (2, 2)
    solution = ours.solve_ivp(lambda t, y: matrix @ y, (0, 1), [1.0, 2.0], "Radau", jac=lambda t, y: matrix)
    assert grad(solution.y[:, -1].sum(), matrix)[0].shape == (2, 2)


def test_solutions_without_history_match_scipy():
    solution = ours.solve_ivp(oscillator, (0, 2), vg.Tensor([1.0, 0.0]), args=(1.3,), method="BDF")
    right = theirs.solve_ivp(oscillator, (0, 2), [1.0, 0.0], args=(1.3,), method="BDF")
    assert isinstance(solution.y, vg.Tensor)
    np.testing.assert_array_equal(solution.y.numpy(), right.y)


@pytest.mark.parametrize("fast", [1.0, 1e4])
def test_odeint(fast):
    """Values are SciPy's; gradients follow an explicit method, or an implicit one if the equation is stiff."""

    def slope(y, t, fast):
        return [-fast * (y[0] - np.cos(y[1])), y[0] - 0.1 * y[1]]

    rate, start, times = leaf_of(fast), leaf_of([1.0, 0.5]), leaf_of([0.0, 0.5, 2.0])
    found, information = ours.odeint(slope, start, times, args=(rate,), full_output=1)
    right = theirs.odeint(slope, [1.0, 0.5], [0.0, 0.5, 2.0], args=(fast,))
    np.testing.assert_array_equal(found.detach().numpy(), right)
    assert (information["mused"] == 2).any() == (fast > 1)
    given = [fast, np.array([1.0, 0.5]), np.array([0.0, 0.5, 2.0])]
    gradients = grad(found[1:].sum(), [rate, start, times])
    for place, gradient in enumerate(gradients):

        def total(changed, place=place):
            rate, start, times = (changed if i == place else value for i, value in enumerate(given))
            return theirs.odeint(slope, start, times, args=(rate,), rtol=1e-12, atol=1e-12)[1:].sum()

        np.testing.assert_allclose(gradient.numpy(), differences(total, given[place]), rtol=2e-4, atol=2e-6)


@pytest.mark.parametrize("name", ["vode", "lsoda", "dopri5", "dop853"])
def test_ode_continues_from_call_to_call(name):
    def solved(module, start, k):
        solver = module.ode(
            lambda t, y, k: np.array([y[1], -k * y[0]]) if module is theirs else vg.stack([y[1], -k * y[0]])
        )
        solver.set_integrator(name, rtol=1e-10, atol=1e-12).set_initial_value(start, 0.0).set_f_params(k)
        rows = [solver.integrate(t) * 1.0 for t in (0.5, 1.0, 2.0)]
        assert solver.successful() and solver.t == 2.0
        return rows

    k, start = leaf_of(1.3), leaf_of([1.0, 0.0])
    found = solved(ours, start, k)
    for row, right in zip(found, solved(theirs, [1.0, 0.0], 1.3)):
        np.testing.assert_allclose(row.detach().numpy(), right, rtol=1e-12)
    root = np.sqrt(1.3)
    slope, direction = grad(found[-1][0], [k, start])
    assert slope.item() == pytest.approx(-np.sin(2 * root) * 2 / (2 * root), rel=1e-6)
    np.testing.assert_allclose(direction.numpy(), [np.cos(2 * root), np.sin(2 * root) / root], rtol=1e-6)


# -- conditions at both ends -------------------------------------------------------------------------------------------


def test_solutions_with_conditions_at_both_ends():
    """The slope of Bratu's equation at the start depends on the strength, the conditions and the length."""
    strength, end, width = (vg.Tensor(each, requires_grad=True) for each in (1.3, 0.2, 1.0))

    def solved(module, strength, end, width, stack):
        mesh = np.linspace(0.0, 1.0, 9) * width
        return module.solve_bvp(
            lambda x, y: stack([y[1], -strength * exp_of(module)(y[0])]),
            lambda start, stop: stack([start[0], stop[0] - end]),
            mesh, np.zeros((2, 9)), tol=1e-6,
        )  # fmt: skip

    def exp_of(module):
        return np.exp if module is theirs else vg.exp

    found = solved(ours, strength, end, width, vg.stack)
    right = solved(theirs, 1.3, 0.2, 1.0, np.array)
    np.testing.assert_array_equal(found.y.detach().numpy(), right.y)
    np.testing.assert_allclose(found.sol(0.37).detach().numpy(), right.sol(0.37), rtol=1e-9)
    assert found.success and found.x.shape == right.x.shape
    slopes = vg.autograd.grad(found.y[1, 0] + found.sol(0.5)[0], [strength, end, width])
    for place, slope in enumerate(slopes):
        moved = []
        for step in (1e-4, -1e-4):
            given = [each + step * (at == place) for at, each in enumerate((1.3, 0.2, 1.0))]
            again = solved(theirs, *given, np.array)
            moved.append(again.y[1, 0] + again.sol(0.5)[0])
        assert slope.item() == pytest.approx((moved[0] - moved[1]) / 2e-4, rel=1e-5)


def test_parameters_that_conditions_at_both_ends_determine():
    """An eigenvalue: y'' + k**2 a y = 0 with y(0) = y(1) = 0 and y'(0) = k has k = pi / sqrt(a)."""
    a = vg.Tensor(1.7, requires_grad=True)
    mesh = np.linspace(0, 1, 7)
    found = ours.solve_bvp(
        lambda x, y, p: vg.stack([y[1], -(p[0] ** 2) * a * y[0]]),
        lambda start, stop, p: vg.stack([start[0], stop[0], start[1] - p[0]]),
        mesh, np.stack([np.sin(np.pi * mesh), np.cos(np.pi * mesh)]), p=[2.0], tol=1e-6,
    )  # fmt: skip
    assert found.p[0].detach().item() == pytest.approx(np.pi / np.sqrt(1.7), rel=1e-6)
    assert vg.autograd.grad(found.p[0], a)[0].item() == pytest.approx(-np.pi / 2 / 1.7**1.5, rel=1e-5)


def test_integrals_of_functions_whose_values_are_arrays():
    k, end = vg.Tensor([0.5, 1.3], requires_grad=True), vg.Tensor(2.0, requires_grad=True)
    found, error = ours.quad_vec(lambda x: vg.exp(-k * x) * x, 0.0, end)
    right = theirs.quad_vec(lambda x: np.exp(-np.array([0.5, 1.3]) * x) * x, 0.0, 2.0)
    np.testing.assert_array_equal(found.detach().numpy(), right[0])
    assert error == right[1]
    of_k, of_end = vg.autograd.grad(found.sum(), [k, end])
    exact = [theirs.quad(lambda x, c=c: -np.exp(-c * x) * x * x, 0.0, 2.0)[0] for c in (0.5, 1.3)]
    np.testing.assert_allclose(of_k.numpy(), exact, rtol=1e-9)
    assert of_end.item() == pytest.approx(2 * (np.exp(-1.0) + np.exp(-2.6)), rel=1e-9)
    rate = vg.Tensor(1.3, requires_grad=True)
    whole = -0.5 * np.sqrt(np.pi) / 1.3**1.5
    for low, high, exact in ((-np.inf, np.inf, whole), (0.0, np.inf, whole / 2), (-np.inf, 0.0, whole / 2)):
        (slope,) = vg.autograd.grad(ours.quad_vec(lambda x: vg.exp(-rate * x * x), low, high)[0], rate)
        assert slope.item() == pytest.approx(exact, rel=1e-7)
    assert ours.quad_vec(lambda x: np.array([x, 1.0]), 0, 1)[0].tolist() == pytest.approx([0.5, 1.0])


def heat(t, y, k):
    inner = k * (y[2:] - 2 * y[1:-1] + y[:-2])
    return np.concatenate([k * (y[1:2] - 2 * y[:1]), inner, k * (y[-2:-1] - 2 * y[-1:])])


@pytest.mark.parametrize("method", ["Radau", "BDF"])
def test_jacobians_of_a_linear_equation_are_computed_once(method, monkeypatch):
    calls = []
    jacobian = ode_steps._jacobian
    monkeypatch.setattr(ode_steps, "_jacobian", lambda *args: calls.append(1) or jacobian(*args))
    start = np.sin(np.linspace(0, 3, 8))
    matrix = np.array([heat(0.0, row, 1.0) for row in np.eye(8)]).T

    def f(k):
        return ours.solve_ivp(heat, (0.0, 0.2), start, method, args=(k,), rtol=1e-8, atol=1e-11).y[:, -1].sum()

    found = vg.grad(f)(3.0)
    assert len(calls) == 3  # one for each stage
    exact = (scipy.linalg.expm(0.6 * matrix) @ (0.2 * matrix @ start)).sum()
    np.testing.assert_allclose(found, exact, rtol=1e-6)


def test_jacobians_are_recomputed_if_they_change():
    def slope(t, y, k):
        return np.concatenate([k * np.sin(3.0 * y[1:]) * (1.0 + np.cos(2.0 * y[:-1])), -y[:1]]) * 3.0

    def f(k, method="Radau", **options):
        return ours.solve_ivp(slope, (0.0, 2.0), np.linspace(0.2, 1.0, 6), method, args=(k,), **options).y[:, -1].sum()

    found = vg.grad(f)(0.4)
    # With equal steps, the derivatives are those of the equations of the steps.
    steps = scipy.integrate.solve_ivp(slope, (0.0, 2.0), np.linspace(0.2, 1.0, 6), "Radau", args=(0.4,)).t
    places = np.array([(4 - 6**0.5) / 10, (4 + 6**0.5) / 10, 1.0])
    powers = np.arange(3)
    weights = (places[:, None] ** (powers + 1) / (powers + 1)) @ np.linalg.inv(places[:, None] ** powers)

    def end(k):
        y = np.linspace(0.2, 1.0, 6)
        for h in np.diff(steps):
            moves = scipy.optimize.root(
                lambda z, y=y, h=h: z - h * np.concatenate(
                    weights @ [slope(0.0, y + each, k) for each in z.reshape(3, 6)]), np.zeros(18), tol=1e-13,
            ).x  # fmt: skip
            y = y + moves[12:]
        return y.sum()

    np.testing.assert_allclose(found, (end(0.4 + 1e-5) - end(0.4 - 1e-5)) / 2e-5, rtol=1e-7)


def test_jacobians_are_not_recorded_for_captured_parameters():
    """They are constants in the equations of a step; the corrections carry the gradient of the parameter."""
    k = vg.Tensor([0.5, 2.0], requires_grad=True)

    def slope(t, y):
        return -k * y * y

    found = ode_steps._jacobian(slope, 0.0, np.array([1.0, 3.0]))
    assert type(found) is np.ndarray and k.grad is None
    np.testing.assert_allclose(found, np.diag([-1.0, -12.0]))
    np.testing.assert_array_equal(ode_steps._jacobian(lambda t, y: k.detach() * 1.0, 0.0, np.ones(2)), np.zeros((2, 2)))


def test_step_sizes_and_tolerances_with_a_history_are_refused():
    option = leaf_of(0.01)
    for call in (
        lambda: ours.solve_ivp(lambda t, y: -y, (0, 1), [1.0], max_step=option),
        lambda: ours.odeint(lambda y, t: -y, [1.0], [0.0, 1.0], rtol=option),
        lambda: ours.ode(lambda t, y: -y).set_integrator("vode", max_step=option),
    ):
        with pytest.raises(vg.errors.UnsupportedFunctionError, match="no gradient flows to"):
            call()
