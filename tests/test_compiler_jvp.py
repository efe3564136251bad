"""Forward mode and second derivatives of compiled functions, against eager runs."""

from __future__ import annotations

import warnings

import drawn_loops
import numpy as np
import pytest
from compiled_programs import PROGRAMS
from interpreted_kernels import compiled_by

import viewgrad as vg
from viewgrad.errors import DifferentiabilityError
from viewgrad.func import grad, hessian, hvp, jacfwd, jacrev, jvp, value_and_grad, vhp
from viewgrad.func.tree import flatten


def agree(found, wanted, rtol=1e-7):
    found, form = flatten(found)
    wanted, other = flatten(wanted)
    assert form == other
    for one, two in zip(found, wanted, strict=True):
        assert one.shape == two.shape and one.dtype == two.dtype
        np.testing.assert_allclose(one.numpy(), two.numpy(), rtol=rtol, atol=1e-9 * np.abs(two.numpy()).max(initial=0))


def check(f, draw, executor="python"):
    """Check products with Jacobians and Hessians, for three arguments each."""
    compiled = compiled_by(executor, f)
    for call in range(3):
        points = [vg.Tensor(np.asarray(each, float)) for each in draw(np.random.default_rng(call))]
        along = [vg.Tensor(np.cos(call + np.arange(each.size)).reshape(each.shape)) for each in points]
        for product in (jvp, hvp, vhp):
            agree(product(compiled, points, along), product(f, points, along), 1e-6)
    return compiled.jvp


def rosenbrock(x):
    total = 0.0
    for i in range(len(x) - 1):
        total = total + 100 * (x[i + 1] - x[i] ** 2) ** 2 + (1 - x[i]) ** 2
    return total


def running(x, decay):
    y = vg.zeros(len(x))
    y[0] = x[0]
    for i in range(1, len(x)):
        y[i] = decay * y[i - 1] + np.sin(x[i])
    return y


@pytest.mark.parametrize(
    ("f", "executor"),
    [
        ("holt_winters", "python"), ("cholesky", "interpreted"), ("shifted_in_place", "python"),
        ("eliminated", "interpreted"), ("lattice", "python"),
    ],
)  # fmt: skip
def test_products_with_derivatives_of_programs(f, executor):
    function, draw = next((each, draw) for each, draw in PROGRAMS.items() if each.__name__ == f)
    pushed = check(function, draw, executor)
    assert pushed.specializations[0].program is not None


@pytest.mark.parametrize("number", [1])
def test_products_with_derivatives_of_drawn_loops(number):
    pushed = check(drawn_loops.loop_program(number), lambda rng: drawn_loops.inputs(number, rng.integers(100)))
    assert pushed.specializations[0].program is not None


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::viewgrad.errors.NotCompiledWarning")  # a branch that goes both ways
@pytest.mark.parametrize("executor", ["python", "interpreted"])
@pytest.mark.parametrize("number", [0, 2, 3])
def test_products_with_derivatives_of_more_drawn_loops(number, executor):
    check(drawn_loops.loop_program(number), lambda rng: drawn_loops.inputs(number, rng.integers(100)), executor)


def test_compiled_derivatives_do_not_run_the_function():
    compiled = vg.compile(rosenbrock, executor="python")
    x, v = vg.Tensor(np.linspace(0.0, 1.0, 6)), vg.ones(6)
    for _ in range(3):
        hessian(compiled)(x)
        hvp(compiled, (x,), (v,))
        jvp(compiled, (x,), (v,))
    before = [entry.runs for entry in compiled.jvp.specializations]
    hessian(compiled)(x)
    after = [entry.runs for entry in compiled.jvp.specializations]
    assert sum(after) - sum(before) == 6  # one for each column
    assert "jvp(rosenbrock)" in compiled.explain()
    assert compiled.source().count("def kernel") >= 2


@pytest.mark.parametrize("derive", [jacfwd, jacrev, hessian])
def test_matrices_of_derivatives_of_several_arguments(derive):
    compiled = vg.compile(running, executor="python")
    for call in range(4):
        x, decay = vg.Tensor(np.linspace(0.0, 1.0 + call, 4)), vg.Tensor(0.5 + 0.1 * call)
        for argnums in (0, (0, 1), -1):
            agree(derive(compiled, argnums)(x, decay), derive(running, argnums)(x, decay))


def test_second_derivatives_use_the_same_program():
    compiled = vg.compile(rosenbrock, executor="python")
    for call in range(4):
        x, v = vg.Tensor(np.linspace(0.0, 1.0 + call, 4)), vg.Tensor([1.0, -1.0, 0.5, 2.0])
        agree(jacfwd(grad(compiled))(x), hessian(rosenbrock)(x))
        agree(jvp(grad(compiled), (x,), (v,)), jvp(grad(rosenbrock), (x,), (v,)))
        both = value_and_grad(compiled), value_and_grad(rosenbrock)
        for has_aux in (False, True):
            found, wanted = [jvp(each, (x,), (v,), has_aux) for each in both]
            agree(found, wanted)
    assert len(compiled.jvp.specializations) <= 3
    found, wanted = [grad(lambda x: hvp(each, (x,), (v,))[1][0].sum())(x) for each in (compiled, rosenbrock)]  # noqa: B023
    agree(found, wanted)
    y = x.clone().requires_grad_()
    found, wanted = [vg.autograd.grad(hvp(each, (y,), (v,))[1][0].sum(), y) for each in (compiled, rosenbrock)]
    agree(found, wanted)


def test_auxiliary_results_and_other_arguments():
    def loss(parameters, scale, *, power=2):
        error = parameters["a"] - scale * parameters["b"]
        return (error**power).sum(), error * 2

    compiled = vg.compile(loss, executor="python", static=["power"])
    for call in range(4):
        given = {"a": vg.Tensor([1.0, 2.0 + call]), "b": vg.Tensor([0.5, call])}
        along = {"a": vg.ones(2), "b": vg.Tensor([1.0, -1.0])}
        for tangents in ((along, 1.0), (None, 0.5), (along, None)):
            agree(jvp(compiled, (given, 1.5), tangents, has_aux=True), jvp(loss, (given, 1.5), tangents, has_aux=True))
            agree(hvp(compiled, (given, 1.5), tangents, has_aux=True), hvp(loss, (given, 1.5), tangents, has_aux=True))
        for power in (2, 3):
            agree(
                hessian(compiled, has_aux=True)(given, 1.5, power=power),
                hessian(loss, has_aux=True)(given, 1.5, power=power),
            )


def test_arguments_keep_their_values():
    def doubled(x, y):
        x *= 2.0
        y += 1.0
        return (x * y).sum()

    compiled = vg.compile(doubled, executor="python")
    x, y = vg.Tensor([1.0, 2.0]), vg.Tensor([3.0, 4.0])
    for _ in range(3):
        agree(jvp(compiled, (x, y), (x, y)), jvp(doubled, (x, y), (x, y)))
        agree(jacfwd(compiled)(x, y), jacfwd(doubled)(x, y))
        agree(hessian(compiled, (0, 1))(x, y), hessian(doubled, (0, 1))(x, y))
    assert x.tolist() == [1.0, 2.0] and y.tolist() == [3.0, 4.0]


@pytest.mark.filterwarnings("ignore::viewgrad.errors.NotCompiledWarning")
def test_control_flow_and_captured_state_are_guarded():
    factor = vg.Tensor(2.0)

    def folded(x):
        y = x * factor
        for i in range(len(x)):
            if y[i] < 0:
                y[i] = y[i] ** 3
        return (y * y).sum()

    compiled = vg.compile(folded, executor="python")
    for call in range(6):  # every third call takes the other branch
        x = vg.Tensor([1.0, -1.0, 2.0]) if call % 3 else vg.Tensor([-1.0, 1.0, -2.0])
        agree(hvp(compiled, (x,), (x,)), hvp(folded, (x,), (x,)))
        factor = vg.Tensor(2.0 + call)
        agree(jvp(compiled, (x,), (x,)), jvp(folded, (x,), (x,)))


def test_forward_mode_around_a_call_runs_the_function():
    compiled = vg.compile(rosenbrock, executor="python")
    x, v = vg.Tensor([0.5, 1.0, 2.0]), vg.ones(3)
    for _ in range(3):
        compiled(x)
    agree(jvp(lambda x: 2 * compiled(x), (x,), (v,)), jvp(lambda x: 2 * rosenbrock(x), (x,), (v,)))
    found, wanted = [jvp(lambda x: jvp(each, (x,), (v,))[1], (x,), (v,)) for each in (compiled, rosenbrock)]  # noqa: B023
    agree(found, wanted)


def test_messages_are_unchanged():
    compiled = vg.compile(rosenbrock, executor="python")
    x = vg.Tensor([0.5, 1.0, 2.0])
    for _ in range(4):
        jvp(compiled, (x,), (x,))
        for wrong in ((x[:2],), (), ([x],)):
            errors = []
            for f in (compiled, rosenbrock):
                with pytest.raises(Exception) as info:
                    jvp(f, (x,), wrong)
                errors.append((info.type, str(info.value)))
            assert errors[0] == errors[1]
    with pytest.raises(DifferentiabilityError, match="dtype"):
        jvp(compiled, (vg.Tensor([1, 2]),), (vg.ones(2),))


def masked(x):
    inverse = np.where(x > 0, np.reciprocal(x), 0)
    return (inverse * x**2 + np.where(x > 0, np.exp(-1 / x), 0)).sum()


@pytest.mark.parametrize("executor", ["python", "interpreted"])
@pytest.mark.parametrize("point", [[0.0, 1.0, -1.0], [0.0, 0.0, 0.0], [np.inf, 1.0, 0.0], [np.nan, 1.0, 2.0]])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_second_derivatives_at_masked_singular_points_match_eager(point, executor):
    compiled = compiled_by(executor, masked, check=False)
    v = vg.Tensor([1.0, 0.0, -1.0])
    for each in (*[[0.5, 0.6, 0.7]] * 3, point):
        x = vg.Tensor(each)
        agree(hvp(compiled, (x,), (v,)), hvp(masked, (x,), (v,)))
        agree(hessian(compiled)(x), hessian(masked)(x))


@pytest.mark.parametrize("executor", ["python", "interpreted"])
def test_undifferentiated_results_give_no_nan(executor):
    def both(x):
        return (x**3).sum(), (x * 2).sum()

    compiled = compiled_by(executor, both, check=False)
    for each in (*[[0.5, 0.6]] * 3, [np.inf, 1.0]):
        x = vg.Tensor(each, requires_grad=True)
        (gradient,) = vg.autograd.grad(compiled(x)[1], [x])
        assert gradient.tolist() == [2.0, 2.0]


def test_derivatives_do_not_warn_of_infinite_slopes():
    def far_apart(x):
        total = x[0]
        for i in range(1, 12):
            total = np.logaddexp(total - 1e3, x[i])
        return total

    compiled = vg.compile(far_apart, executor="python")
    x = vg.Tensor(np.linspace(-2, 2, 12))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            vg.func.hessian(compiled)(x)
            vg.func.jvp(compiled, (x,), (vg.ones(12),))
            vg.func.value_and_grad(compiled)(x)
