"""The Python backend emits no warnings that eager runs do not."""

from __future__ import annotations

import itertools
import warnings
from functools import partial

import numpy as np
import pytest

import viewgrad as vg
from viewgrad.compiler.scalar_rules import OPERATOR_RULES
from viewgrad.operators import OPERATORS

POINTS = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.0, 20.0, 800.0, -800.0, 1e-320, 1e308, -1e308, np.inf, -np.inf, np.nan]
FEW = [0.0, 0.5, -1.0, 800.0, -800.0, 1e308, np.inf, -np.inf, np.nan]
OF_FLOATS = [
    name for name, rule in OPERATOR_RULES.items()
    if rule.floats and name in OPERATORS and name not in ("where", "masked_fill")
]  # fmt: skip


def is_silent(run):
    """Return whether a run emits no warnings, and its result."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        try:
            return run()
        except RuntimeWarning:
            return None


def silent_points(f, count):
    """Return the operands for which an operator emits no warning, alone or in an array."""
    points = itertools.product({1: POINTS, 2: FEW}.get(count, FEW[::3]), repeat=count)
    return [
        point for point in points
        if is_silent(lambda point=point: (f(*point), f(*map(np.array, zip(point, point))))) is not None
    ]


def gradients(results, given):
    return vg.autograd.grad(results, given, [vg.ones(result.shape) for result in results], allow_unused=True)


@pytest.mark.parametrize("name", OF_FLOATS)
def test_operators_of_elements(name):
    operator = OPERATORS[name]
    count = len(operator.signature.tensors)

    def apply(*given):
        return operator.function(*[vg.Tensor(each) for each in given])

    def f(*given):
        y = vg.zeros(len(given[0]))
        for i in range(len(y)):
            y[i] = operator.function(*[each[i] for each in given])
        return y, operator.function(*given)

    points = silent_points(apply, count)
    if not points:
        return
    given = [vg.Tensor(each, requires_grad=True) for each in np.array(points).T.copy()]
    plain, directions = [each.detach() for each in given], [vg.full(each.shape, 0.5) for each in given]
    tangents = is_silent(lambda: vg.func.jvp(f, plain, directions))
    compiled = vg.compile(f, executor="python", check=False)
    for call in range(4):
        results = is_silent(lambda: compiled(*given))
        assert results is not None
        flowing = [result for result in results if result.requires_grad]
        if flowing and call > 1:  # the program's own
            assert is_silent(partial(gradients, flowing, given)) is not None
        if tangents is not None:
            assert is_silent(lambda: vg.func.jvp(compiled, plain, directions)) is not None
    assert compiled.specializations[0].program is not None, compiled.explain()


def softened(x):
    total = x[0]
    for i in range(1, len(x)):
        total = np.logaddexp(total - 1e3, x[i])
    return total


def of_nothing(x):
    total = 0.0
    for i in range(len(x)):
        total = total + np.exp(vg.logsumexp(np.where(x > 1e9, x, -np.inf))) * x[i] + vg.softmax(x * 1e3)[i]
    return total


@pytest.mark.parametrize("f", [softened, of_nothing])
@pytest.mark.parametrize("derivative", ["grad", "jvp", "hessian", "hvp"])
def test_derivatives_of_programs(f, derivative):

    def run(function):
        x = np.array([0.0, 1.0, 2.0, -3.0, 0.5, 1.5])
        if derivative == "jvp":
            return vg.func.jvp(function, (x,), (np.ones(6),))[1]
        if derivative == "hvp":
            return vg.func.hvp(function, (x,), (np.ones(6),))[1]
        return getattr(vg.func, derivative)(function)(x)

    wanted = is_silent(lambda: run(f))
    assert wanted is not None
    compiled = vg.compile(f, executor="python", check=False)
    for _ in range(4):
        np.testing.assert_allclose(is_silent(lambda: run(compiled)), wanted, rtol=1e-9, atol=1e-12)


def test_the_gradient_of_logsumexp_of_all_minus_inf():
    def f(x):
        total = 0.0
        for i in range(3):
            total = total + vg.logsumexp(np.where(x > i, x, -np.inf))
        return total

    compiled = vg.compile(f, executor="python")
    for numbers in ([3.0, 4.0], [4.0, 0.5], [0.5, 1.5], [0.5, 3.5], [-1.0, 0.0]):
        for function in (f, compiled):
            x = vg.Tensor(numbers, requires_grad=True)
            np.testing.assert_allclose(vg.autograd.grad(function(x), x)[0], vg.autograd.grad(f(x), x)[0])
