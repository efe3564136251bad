"""Reductions in compiled programs: the decompositions of rows against eager runs, at ties, infinity, NaN and zero."""

from __future__ import annotations

import re

import numpy as np
import pytest
from interpreted_kernels import compiled_by

import viewgrad as vg
from viewgrad.compiler.decompositions import plan_of
from viewgrad.compiler.lowering import HANDLERS
from viewgrad.operators import OPERATORS

DECOMPOSED = [name for name, operator in OPERATORS.items() if operator.decomposition is not None]
REDUCTIONS = [*DECOMPOSED, "sum", "prod", "cumsum", "cumprod"]
INF, NAN = np.inf, np.nan
ROWS = {
    "distinct": [1.0, -2.0, 3.0, 0.5],
    "ties": [2.0, 2.0, -1.0, 2.0],
    "equal": [0.1, 0.1, 0.1, 0.1],
    "zero": [0.0, 0.0, 0.0, 0.0],
    "one zero": [0.0, -1.0, 2.0, -0.0],
    "one infinity": [INF, 1.0, -1.0, 0.0],
    "two infinities": [INF, 1.0, INF, 0.0],
    "both infinities": [INF, -INF, 1.0, 0.0],
    "minus infinity": [-INF, 1.0, 2.0, -INF],
    "all minus infinity": [-INF, -INF, -INF, -INF],
    "all infinite": [INF, INF, INF, INF],
    "NaN": [NAN, 1.0, 2.0, 1.0],
    "two NaN": [NAN, 1.0, NAN, INF],
    "large": [800.0, 799.0, -800.0, 1e300],
}
EMPTY = [(0,), (0, 3), (3, 0)]


def axes_of(name, ndim):
    """Return the axes along which an operator reduces an array of `ndim` dimensions."""
    if name in ("softmax", "log_softmax"):
        return [0, -1] if ndim else [0]
    pairs = [] if name in ("cumsum", "cumprod") else [axes for axes in [(0, 1), (0, -1)] if ndim > 1]
    return [None, *([0, -1] if ndim else []), *pairs]


def options_of(name, shape):
    """Return calls of an operator: all axes, with and without `keepdims`, and orders or degrees of freedom."""
    arguments = {argument.name for argument in OPERATORS[name].signature.plain}
    axes = axes_of(name, len(shape))
    calls = [{"axis": axis} for axis in axes]
    if "keepdims" in arguments:
        calls += [{"axis": axis, "keepdims": True} for axis in (axes if len(shape) > 1 else axes[:1])]
    if "ddof" in arguments:
        calls += [{"axis": axes[-1], "ddof": degrees} for degrees in (1, 0.5)]
    if "ord" in arguments:
        calls += [{"axis": -1 if shape else None, "ord": order} for order in (1, INF, -INF, 3, 0, 2.0)]
    return calls


def arrays_of(shape):
    """Return arrays of a shape whose rows are special; the first one is not."""
    size = int(np.prod(shape))
    yield np.random.default_rng(0).normal(size=shape)
    for row in ROWS.values():
        yield np.resize(row, size).reshape(shape)
    mixed = np.resize(np.concatenate(list(ROWS.values())), size).reshape(shape)
    yield mixed


def run(function, array):
    """Return the value and the gradient of a function of one tensor, with cotangents that differ."""
    x = vg.Tensor(array, requires_grad=True)
    value = function(x)
    cotangent = vg.Tensor(np.cos(np.arange(value.size)).reshape(value.shape))
    (gradient,) = vg.autograd.grad(value, x, cotangent)
    return value.detach().numpy(), gradient.numpy(), value


def check(name, executor, shape):
    """Compare a reduction with eager mode, with all options and at all special values."""
    for options in options_of(name, shape):
        def reduced(x, options=options):
            return OPERATORS[name].function(x, **options)

        compiled = compiled_by(executor, reduced, check=False, specialize=True)
        for array in arrays_of(shape):
            if name == "cumprod" and np.isinf(array).any():
                continue  # eager mode adds products in another order, in which infinities may cancel
            expected, gradient, _ = run(reduced, array)
            found, ours, value = run(compiled, array)
            case = f"{name}{options} of {array.tolist()}"
            np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-15, err_msg=case)
            np.testing.assert_allclose(ours, gradient, rtol=1e-12, atol=1e-15, err_msg=case)
        assert value.grad_fn.name() == "CompiledBackward", compiled.explain()


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_reductions_match_eager_at_special_values(name):
    check(name, "python", (3, 4))


@pytest.mark.parametrize("shape", [(), (1,), (4,), (3, 1), (2, 3, 4)])
@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_reductions_of_other_shapes_match_eager(name, shape):
    check(name, "python", shape)


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_kernels_of_reductions_match_eager(name):
    check(name, "interpreted", (3, 4))


@pytest.mark.parametrize("name", DECOMPOSED)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_gradients_that_compute_elementwise_values_again_match_eager(name, monkeypatch):
    monkeypatch.setattr("viewgrad.compiler.lower.reductions.FEW", 0)
    check(name, "python", (3, 4))


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_reductions_of_empty_arrays_match_eager(name):
    for shape in EMPTY:
        for options in options_of(name, shape):
            def reduced(x, options=options):
                return OPERATORS[name].function(x, **options)

            compiled = vg.compile(reduced, executor="python", check=False, specialize=True)
            for _ in range(3):
                try:
                    expected, gradient, _ = run(reduced, np.zeros(shape))
                except ValueError as error:
                    with pytest.raises(ValueError, match=re.escape(str(error))):
                        run(compiled, np.zeros(shape))
                    continue
                found, ours, _ = run(compiled, np.zeros(shape))
                np.testing.assert_array_equal(found, expected)
                np.testing.assert_array_equal(ours, gradient)


@pytest.mark.parametrize("name", DECOMPOSED)
def test_decompositions_name_all_options_of_the_row(name):
    operator = OPERATORS[name]
    for argument in operator.signature.plain:
        assert argument.name == "keepdims" or re.search(rf"\b{argument.name}\b", operator.decomposition.formula)


@pytest.mark.parametrize("name", DECOMPOSED)
def test_plans_of_decompositions_exist_for_default_options(name):
    operator = OPERATORS[name]
    defaults = {"ddof": 0, "ord": 2}
    options = [(each.name, defaults[each.name]) for each in operator.signature.plain if each.name in defaults]
    plan = plan_of(name, tuple(options), 4)
    assert plan is not None and 0 < plan.needed <= len(plan.steps)
    assert (plan.slope is None) == operator.decomposition.uses_chain_rule
    assert name in HANDLERS


def test_equal_parts_of_a_decomposition_are_computed_once():
    plan = plan_of("softmax", (), 4)
    assert [step.operator for step in plan.steps] == ["greatest", "sub", "exp", "sum", "div"]
    plan = plan_of("max", (), 4)
    assert plan.slope.expression == "{grad} * (tie_hit({0}, {1}) / {2})"
    assert plan.slope_of_kept.expression == "{grad} * ({2} / {3})"


def test_variances_without_degrees_of_freedom_call_the_operator():
    assert plan_of("var", (("ddof", 4),), 4) is None
    assert plan_of("var", (("ddof", 3),), 4) is not None
