"""Contracts that authors pass to `check_operator`, and reports of failures."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import FailedHealthCheck, Unsatisfiable

import viewgrad as vg
from viewgrad.autograd import Function, once_differentiable
from viewgrad.testing import Failure, check_operator, profile, set_profile, tensors
from viewgrad.testing.__main__ import main
from viewgrad.testing.kit.constants import takes_single_matrices

pytestmark = pytest.mark.usefixtures("frozen_objects")

A = np.array([[0.7, -1.3, 2.1], [1.9, 0.4, -0.6]])
Q = np.array([1.2, 0.8, 0.3])
SPD = np.array([[2.0, 0.3, 0.1], [0.3, 1.5, -0.2], [0.1, -0.2, 1.8]])


class Round(Function):
    """A straight-through estimator."""

    @staticmethod
    def forward(ctx, x, slope=1.0):
        ctx.slope = slope
        return vg.Tensor(np.round(x.detach().numpy()))

    @staticmethod
    def backward(ctx, grad):
        return ctx.slope * grad, None


class RoundOfWrongSlope(Round):
    @staticmethod
    def backward(ctx, grad):
        return grad * (2.0 if ctx.slope == 3.0 else ctx.slope), None


class LogDet(Function):
    """Right for symmetric matrices only: its gradient is the inverse, not transposed, and symmetric."""

    @staticmethod
    def forward(ctx, a):
        assert a.ndim == 2
        ctx.inverse = np.linalg.inv(a.detach().numpy())
        ctx.inverse = (ctx.inverse + ctx.inverse.T) / 2
        return vg.Tensor(np.linalg.slogdet(a.detach().numpy())[1])

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * vg.Tensor(ctx.inverse)


def failure_of(operator, *args, **options):
    with pytest.raises(Failure) as found:
        check_operator(operator, *args, **options)
    return found.value


# -- saying what one means ---------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_surrogate_defines_the_derivative():
    assert failure_of(Round, A).property == "gradients"

    def through(x, slope=1.0):
        return slope * x

    report = check_operator(Round, A, surrogate=through)
    assert min(report.examples[name] for name in ("gradients", "special points", "shapes", "layouts of arguments")) > 0
    failure = failure_of(RoundOfWrongSlope, A, surrogate=through, options={"slope": [1.0, 3.0]})
    assert failure.property == "options" and "the surrogate" in failure.reason and "surrogate(" in failure.program


def test_options_are_the_values_to_try():
    seen = []

    def scaled(x, slope):
        seen.append(slope)
        return x * slope

    check_operator(scaled, A, options={"slope": [0.5, 7.0]}, only=["gradients", "options"])
    assert {*seen} == {0.5, 7.0}
    with pytest.raises(ValueError, match="has no value to try"):
        check_operator(scaled, A, options={"slope": []})


@pytest.mark.slow
def test_structure_keeps_perturbations_and_derived_calls_within_it():
    assert failure_of(LogDet, SPD, only="special points").property == "special points"
    report = check_operator(LogDet, SPD, structure={"a": "positive definite"}, order=1)
    assert report.examples["special points"] > 10
    project = lambda a: (a + np.swapaxes(a, -1, -2)) / 2
    assert check_operator(LogDet, SPD, structure={0: project}, order=1, only="gradients").examples["gradients"] == 1
    with pytest.raises(ValueError, match="did you mean 'symmetric'"):
        check_operator(LogDet, SPD, structure={"a": "symetric"})
    with pytest.raises(ValueError, match="argument 'a' is not symmetric"):
        check_operator(LogDet, SPD + np.triu(SPD), structure={"a": "symmetric"})
    with pytest.raises(ValueError, match="did you mean 'matrix'"):
        check_operator(lambda matrix: matrix.sum(), SPD, structure={"matrx": "symmetric"})


def test_structure_message_describes_the_perturbation():
    class Skewed(LogDet):
        @staticmethod
        @once_differentiable
        def backward(ctx, grad):
            return grad * vg.Tensor(ctx.inverse + np.eye(len(ctx.inverse)))

    reason = failure_of(Skewed, SPD, structure={"a": "symmetric"}, order=1).reason
    assert "perturbed within the symmetric matrices" in reason


def test_domain_of_each_argument():
    smallest = []

    def power(base, exponent):
        smallest.append(float(base.detach().numpy().min(initial=9.0)))
        return base**exponent

    check_operator(power, np.abs(A), A, domain=((0.2, 9.0), None), only="special points")
    assert min(smallest) > 0.1
    smallest.clear()
    check_operator(power, np.abs(A), A, domain={"base": (0.2, 9.0)}, only="special points")
    assert min(smallest) > 0.1


@pytest.mark.slow
def test_valid_rejects_unsupported_calls():
    class OnlyMatrices(Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a @ b

        @staticmethod
        def backward(ctx, grad):
            a, b = ctx.saved_tensors
            return grad @ b.swapaxes(0, 1), a.swapaxes(0, 1) @ grad

    failure = failure_of(OnlyMatrices, A, A.T.copy())
    assert failure.property == "shapes"
    assert (
        str(failure)
        .rstrip()
        .endswith(
            "You did not make this call. If the operator does not support it, raise an error in forward, or pass "
            'valid=..., or switched_off={"shapes": "why"}.'
        )
    )
    report = check_operator(OnlyMatrices, A, A.T.copy(), valid=lambda a, b: a.ndim == 2 and b.ndim == 2)
    assert report.refused["shapes"] > 0 < report.examples["shapes"]


def test_misspelt_options_of_the_check_suggest_near_matches():
    with pytest.raises(TypeError, match="has an argument 'refrence'; did you mean 'reference'"):
        check_operator(Round, A, refrence=np.round)
    with pytest.raises(ValueError, match="there is no property 'gradient'; did you mean 'gradients'"):
        check_operator(Round, A, only="gradient")


# -- alarms ------------------------------------------------------------------------------------------------------------


def test_misspelt_names_of_arguments_suggest_near_matches():
    with pytest.raises(ValueError, match=r"which Round does not have; did you mean 'slope'\?$"):
        check_operator(Round, Q, options={"slop": [1.0, 2.0]})
    with pytest.raises(ValueError, match=r"'m', which the call does not have; there are a$"):
        check_operator(LogDet, SPD, structure={"m": "symmetric"})


def test_errors_in_valid_are_reported():
    failure = failure_of(Round, Q, valid=lambda x: x.no_such_attribute)
    assert "refuses the call to be checked: valid=... raises AttributeError" in failure.reason


def test_second_derivatives_that_are_not_meant_are_explained():
    class Squared(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.twice = 2.0 * x.detach().numpy()
            return x * x

        @staticmethod
        def backward(ctx, grad):
            return grad * vg.Tensor(ctx.twice)

    failure = failure_of(Squared, Q)
    assert failure.property == "second derivatives" and "once_differentiable, or check with order=1" in str(failure)
    assert failure.standalone().count("import numpy as np") == 1


@pytest.mark.slow
def test_an_error_in_backward_is_a_failure_only_in_the_users_own_call():
    class Particular(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            if x.shape != (2, 3) or not grad.detach().numpy().flags.c_contiguous:
                raise ValueError("not this one")
            return 2 * x * grad

    report = check_operator(Particular, A)
    assert any("its backward raises errors in" in notice for notice in report.notices)
    failure = failure_of(Particular, A[:1])
    assert failure.property == "gradients" and "ValueError" in failure.reason


@pytest.mark.parametrize("values", [[0.5, 1.0, 1.0, 2.0], [0.5, 1.0, 1.5, 2.0]])
def test_backward_may_reject_values_that_the_user_did_not_pass(values):
    class SquaredGaps(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return (np.diff(x) ** 2).sum()

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            gaps = np.diff(x)
            if (gaps < 0).any():
                raise ValueError("values must increase")
            return 2 * grad * (np.concatenate([[0.0], gaps]) - np.concatenate([gaps, [0.0]]))

    properties = "gradients", "second derivatives", "state between calls"
    report = check_operator(SquaredGaps, np.array(values), only=properties)
    assert report.examples["state between calls"] and report.examples["second derivatives"]
    assert not [notice for notice in report.notices if "could not be checked" in notice]


@pytest.mark.slow
def test_float64_results_of_float32_arguments_are_noted():
    class Padded(Function):
        @staticmethod
        def forward(ctx, x):
            out = np.zeros(x.shape[0] + 1)
            out[1:] = x.detach().numpy()
            return vg.Tensor(out)

        @staticmethod
        def backward(ctx, grad):
            return grad[1:]

    def notices(report):
        return [text for text in report.notices if "float64, not float32" in text]

    assert notices(check_operator(Padded, A[0]))
    assert notices(check_operator(Padded, A[0], only="dtypes"))  # as in a property test, which reports all failures
    for insisted in ({"float32": True}, {"float32": True, "only": "dtypes"}):
        assert "float64, not float32" in failure_of(Padded, A[0], **insisted).reason


def test_ties_that_make_a_matrix_singular_are_not_failures():
    matrix = vg.Tensor(SPD + np.triu(SPD, 1))
    assert check_operator(lambda x: x.inv().sum(axis=0), matrix, only="ties").examples["ties"] >= 0


def test_one_tensor_is_put_twice_only_into_slots_of_the_same_shape():
    class Scale(Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(x, w)
            return x * w

        @staticmethod
        def backward(ctx, grad):
            x, w = ctx.saved_tensors
            return grad * w, (grad * x).sum(axis=0)

    report = check_operator(Scale, A, A[0], only="the same tensor twice")
    assert report.examples.get("the same tensor twice", 0) == 0


# -- all at once -------------------------------------------------------------------------------------------------------


class TwiceWrong(Function):
    """Wrong with another factor, and in its second derivative."""

    @staticmethod
    def forward(ctx, x, factor=2.0):
        ctx.save_for_backward(x)
        ctx.factor = factor
        return x * x * factor

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x.detach() * grad * 2.0, None


@pytest.mark.slow
def test_keep_going_reports_every_property_the_most_basic_first():
    failure = failure_of(TwiceWrong, A, keep_going=True)
    assert [failure.property, *(other.property for other in failure.others)] == ["options", "second derivatives"]
    assert str(failure).startswith("2 properties do not hold: options, second derivatives")
    assert all(other.program in str(failure) for other in failure.others)
    assert failure_of(TwiceWrong, A).others == ()


@pytest.mark.slow
def test_state_is_reported_before_other_properties():
    calls = []

    def counting(x):
        calls.append(0)
        return x * (1 + 1e-3 * len(calls))

    failure = failure_of(counting, A, keep_going=True)
    assert failure.property == "state between calls" and not failure.others
    assert failure.reason.startswith("the same call gave ")

    def after_many(x):
        calls.append(0)
        return x * (2.0 if len(calls) > 150 else 1.0)

    calls.clear()
    assert failure_of(after_many, A, keep_going=True).property == "state between calls"


@pytest.mark.slow
@pytest.mark.parametrize("shapes", [(3, 0), (2, 3)])
def test_operators_whose_results_change_never_crash_the_check(shapes):
    lengths = iter([*shapes] * 10_000)

    def changing(x):
        return x.ravel()[: next(lengths)] * 1.0

    assert failure_of(changing, A, keep_going=True).property in ("state between calls", "something to check")


@pytest.mark.slow
@pytest.mark.parametrize("key", [id, lambda x: id(x.detach().numpy().base)])
def test_caches_keyed_by_address_are_found_by_in_place_changes(key):
    known = {}

    class Remembered(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.slope = known.setdefault(key(x), np.cos(x.detach().numpy()))
            return vg.sin(x.detach())

        @staticmethod
        @once_differentiable
        def backward(ctx, grad):
            return grad * ctx.slope

    for _ in range(3):
        failure = failure_of(Remembered, Q)
        assert failure.property == "state between calls"
        assert "whose values were changed in place" in failure.reason
        known.clear()


def test_disturb_changes_state_between_two_calls():
    class Filter:
        gain = 1.5

        def retune(self):
            self.gain = 0.5

        def __call__(self, x):
            return x * self.gain

    check_operator(Filter(), A, only="state between calls")
    for disturb in (lambda operator: operator.retune(), Filter.retune):
        failure = failure_of(Filter(), A, disturb=disturb)
        assert failure.property == "state between calls" and "after disturb()" in failure.reason


# -- digits ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_digits_of_a_composition_are_noted():
    pytest.importorskip("mpmath")
    report = check_operator(lambda x: (1 - vg.cos(x)) / x**2, A, only="values")
    assert any("digits are lost" in notice for notice in report.notices)
    report = check_operator(lambda x: 2 * (vg.sin(x / 2) / x) ** 2, A, only="values")
    assert not any("digits are lost" in notice for notice in report.notices)


@pytest.mark.slow
@pytest.mark.parametrize("direct", [False, True])
def test_digits_of_special_functions_are_noted(direct):
    pytest.importorskip("mpmath")
    special = pytest.importorskip("scipy.special")

    class ErrorFunction(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            a = x.detach().numpy()
            return vg.Tensor(special.erf(a) if direct else 1 - special.erfc(a))

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * (2 / np.sqrt(np.pi)) * vg.exp(-x * x)

    report = check_operator(ErrorFunction, A, only="values")
    assert any("digits are lost" in notice for notice in report.notices) != direct, report


def test_a_reference_decides_on_digits():
    class Hypot(Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return vg.sqrt(a * a + b * b)

        @staticmethod
        def backward(ctx, grad):
            a, b = ctx.saved_tensors
            r = vg.hypot(a, b)
            return grad * a / r, grad * b / r

    failure = failure_of(Hypot, A, A[::-1].copy(), reference=np.hypot, only="values")
    assert failure.property == "values" and "reference(" in failure.program


def test_a_reference_whose_number_of_values_depends_on_the_last_digits():
    report = check_operator(vg.unique, np.array([1.0, 2.0, -1.0, -2.0]), reference=np.unique, only="values")
    assert report.examples["values"] and not report.notices


# -- time --------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_time_budget_is_kept_and_omissions_are_reported():
    def slow(x):
        began = time.process_time()
        while time.process_time() - began < 2e-4:
            pass
        return vg.exp(x) * x

    thorough = check_operator(slow, A, seconds=30.0)
    quick = check_operator(slow, A, seconds=0.05)
    assert sum(quick.examples.values()) < sum(thorough.examples.values())
    assert quick.left_out and "left out for lack of time" in str(quick)
    before = profile()
    set_profile("thorough")
    try:
        assert not check_operator(lambda x: x * 2.0, A, only="special points").left_out
    finally:
        set_profile(before)
    with pytest.raises(ValueError, match="there is no profile 'hasty'"):
        set_profile("hasty")


@pytest.mark.slow
def test_hypothesis_does_not_shrink_calls_that_the_kit_shrinks():
    calls = []

    def wrong_above_a_half(x):
        calls.append(0)
        return x * x if x.detach().numpy().max(initial=0.0) <= 0.5 else x * x.detach()

    failure = failure_of(wrong_above_a_half, tensors(shape=(2, 3), elements=st.floats(-1.0, 1.0)), max_examples=20)
    assert failure.property in ("gradients", "special points") and len(calls) < 3000

    calls.clear()

    @settings(max_examples=20, deadline=None, suppress_health_check=[*HealthCheck], database=None)
    @given(tensors(shape=(2, 3), elements=st.floats(-1.0, 1.0)))
    def drawn(x):
        check_operator(wrong_above_a_half, x, order=1)

    with pytest.raises(Failure):  # one, and no group of several from different lines
        drawn()
    assert len(calls) < 20_000


@pytest.mark.slow
def test_check_time_does_not_count_for_hypothesis_deadline():
    @settings(max_examples=3, deadline=1, database=None, phases=[Phase.generate])
    @given(tensors(shape=(2,), elements=st.floats(-1.0, 1.0)))
    def drawn(x):
        check_operator(lambda x: x * vg.exp(x), x, order=1, seconds=0.2)

    drawn()


# -- found and used ----------------------------------------------------------------------------------------------------


class Even(Function):
    """Twice the argument, of even lengths only."""

    @staticmethod
    def forward(ctx, x):
        if len(x) % 2:
            raise ValueError("an even length")
        return x * 2.0

    @staticmethod
    def backward(ctx, grad):
        return grad * 2.0


def test_refused_calls_are_rejected_in_a_drawn_test(capsys):
    accepted = []

    @given(st.integers(1, 4))
    @settings(max_examples=30)
    def some_are_even(n):
        check_operator(Even, np.arange(1.0, n + 1.0))
        accepted.append(n)

    some_are_even()
    assert set(accepted) == {2, 4}

    @given(st.sampled_from([1, 3, 5]), st.floats(1.0, 2.0))
    @settings(max_examples=100)
    def none_is_even(n, x):
        check_operator(Even, x * np.arange(1.0, n + 1.0))

    with pytest.raises((FailedHealthCheck, Unsatisfiable)):
        none_is_even()
    assert "refuses the call" in capsys.readouterr().out


def test_the_source_of_an_operator_is_found_once_in_a_drawn_test(monkeypatch):
    from viewgrad.testing.kit import run

    found = []
    monkeypatch.setattr(run, "fresh_source_of", lambda *args: found.append(args) or "")

    @given(st.floats(1.0, 2.0))
    @settings(max_examples=20)
    def test(x):
        check_operator(Round, np.array([x, 0.3]), surrogate=lambda x, slope=1.0: slope * x)

    test()
    assert len(found) == 1


class Biweight(Function):
    """A loss that is constant where the argument is larger than c."""

    @staticmethod
    def forward(ctx, x, c=2.0):
        ctx.save_for_backward(x)
        ctx.c = c
        a = x.detach().numpy()
        return vg.Tensor(np.where(np.abs(a) <= c, 1 - (1 - (a / c) ** 2) ** 3, 1.0))

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        u = x / ctx.c
        return grad * vg.where(vg.abs(u) <= 1, 6 * u * (1 - u * u) ** 2 / ctx.c, 0.0), None


class Leaky(Function):
    """A leaky ReLU whose backward inspects the result, whose sign differs for negative slopes."""

    @staticmethod
    def forward(ctx, x, slope=0.1):
        ctx.slope = slope
        a = x.detach().numpy()
        ctx.positive = np.where(a > 0, a, slope * a) > 0
        return vg.Tensor(np.where(a > 0, a, slope * a))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * np.where(ctx.positive, 1.0, ctx.slope), None


@pytest.mark.slow
def test_meaningless_negative_option_is_noted():
    report = check_operator(Biweight, A)
    told = [notice for notice in report.notices if "negative c" in notice]
    assert len(told) == 1 and "raise an error in forward" in told[0]
    with pytest.raises(Failure, match=r"c=-2\.0"):
        check_operator(Biweight, A, options={"c": [2.0, -2.0]})
    with pytest.raises(Failure, match=r"slope=-0\.1"):
        check_operator(Leaky, A)


class Attention(Function):
    """A function of matrices; for stacks, `.T` reverses all axes."""

    @staticmethod
    def forward(ctx, q, k):
        z = q.detach().numpy() @ k.detach().numpy().T
        p = np.exp(z - z.max(axis=1, keepdims=True))
        ctx.p = p / p.sum(axis=1, keepdims=True)
        ctx.save_for_backward(q, k)
        return vg.Tensor(ctx.p)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (q, k), g = (each.detach().numpy() for each in ctx.saved_tensors), grad.numpy()
        gz = ctx.p * (g - (g * ctx.p).sum(axis=1, keepdims=True))
        return vg.Tensor(gz @ k), vg.Tensor(gz.T @ q)


class ScaledRows(Function):
    """Takes stacks of rows, but its gradient for the weights is summed over one axis only."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w

    @staticmethod
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        return grad * w, (grad * x).sum(axis=0) if x.ndim == 2 else (grad * x)[0].sum(axis=0)


@pytest.mark.slow
def test_rank_with_a_different_meaning_is_noted():
    report = check_operator(Attention, A, 0.5 * A)
    assert any("other numbers of dimensions, but its gradient is wrong" in notice for notice in report.notices), report
    with pytest.raises(Failure) as found:
        check_operator(ScaledRows, A, Q, only="shapes")
    assert found.value.script.example.arrays[0].ndim == 3


class Spread(Function):
    """A standard deviation, whose gradient of constants is NaN, as most people write it."""

    @staticmethod
    def forward(ctx, x):
        a = x.detach().numpy()
        ctx.off, ctx.std = a - a.mean(), a.std()
        return vg.Tensor(ctx.std)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * vg.Tensor(ctx.off / ctx.off.size / ctx.std)


class Sinc(Function):
    """Its value at zero is guarded, its gradient is not, though it exists."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return vg.Tensor(np.sinc(x.detach().numpy()))

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * (vg.cos(np.pi * x) / x - vg.sin(np.pi * x) / (np.pi * x * x))


class SumOfSizes(Function):
    """At one zero, the gradient of all other elements is NaN, too."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return vg.abs(x).sum()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        signs = x / vg.abs(x)
        return grad * (signs + 0.0 * signs.sum())


def test_nan_at_a_point_without_derivative_is_noted():
    report = check_operator(Spread, Q)
    assert any("NaN where the function has no derivative" in notice for notice in report.notices), report


@pytest.mark.parametrize("point", [np.array([0.0]), np.array([0.7, 0.0, -1.2])])
def test_nan_at_the_users_own_call_is_a_failure(point):
    failure = failure_of(lambda x: vg.sqrt(x * x), point)
    assert failure.property == "gradients" and np.isnan(failure.found)
    assert "You did not make this call" not in str(failure)


@pytest.mark.parametrize(("operator", "element"), [(Sinc, r"x\[0"), (SumOfSizes, r"x\[[12]")])
def test_nan_at_a_differentiable_point_is_a_failure(operator, element):
    failure = failure_of(operator, Q)
    assert failure.property == "special points" and np.isnan(failure.found)
    assert re.search(rf"with respect to {element}\] is wrong: the backward pass computes nan", failure.reason), failure


class SquaredError(Function):
    """Most of its gradients have a different shape if its arguments broadcast; those with one number are wrong."""

    @staticmethod
    def forward(ctx, found, wanted):
        ctx.off = found - wanted
        ctx.size = found.size
        return (ctx.off * ctx.off).sum() / ctx.off.size

    @staticmethod
    def backward(ctx, grad):
        off = 2.0 * grad * ctx.off / ctx.size
        return off if ctx.size == ctx.off.size else off.sum(), -off


class Broadcasting(Function):
    """Reduces its gradients to the shapes of its arguments, by the mean in place of the sum."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        return Broadcasting.reduced(grad * y + 0.0 * x, x), Broadcasting.reduced(grad * x + 0.0 * y, y)

    @staticmethod
    def reduced(gradient, argument):
        while gradient.ndim > argument.ndim:
            gradient = gradient.mean(axis=0)
        for axis, n in enumerate(argument.shape):
            gradient = gradient.mean(axis=axis, keepdims=True) if n == 1 else gradient
        return gradient


def test_broadcasting_that_an_operator_mostly_refuses_is_noted():
    report = check_operator(SquaredError, A, A[:, ::-1].copy())
    assert any("other shapes of some arguments alone" in notice for notice in report.notices), report
    assert failure_of(Broadcasting, Q, Q[::-1].copy()).property == "shapes"


class Correlation(Function):
    """Accepts a row beside a matrix, and has the norm of the row, not of the row repeated."""

    @staticmethod
    def forward(ctx, x, y):
        x, y = x.detach().numpy(), y.detach().numpy()
        ctx.x, ctx.y, ctx.size = x, y, np.sqrt((x * x).sum())
        return vg.Tensor((x * y).sum() / ctx.size)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        off = ctx.x * (ctx.x * ctx.y).sum() / ctx.size**3
        slopes = (ctx.y / ctx.size - off)[: len(ctx.x)], ctx.x / ctx.size + 0.0 * ctx.y
        return tuple(grad * vg.Tensor(slope) for slope in slopes)


def test_missing_support_for_a_broadcast_row_is_noted():
    report = check_operator(Correlation, A, A[:, ::-1].copy(), only="shapes")
    assert any("lengths of some arguments alone" in notice for notice in report.notices), report


class Kepler(Function):
    """Converges for eccentricities below 1."""

    @staticmethod
    def forward(ctx, m, e):
        a = angle = m.detach().numpy()
        for _ in range(50):
            a = a - (a - e * np.sin(a) - angle) / (1 - e * np.cos(a))
        ctx.slope = 1 / (1 - e * np.cos(a))
        return vg.Tensor(a)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * vg.Tensor(ctx.slope), None


class ProductOfMatrices(Function):
    """A function of matrices; for stacks, `.T` reverses all axes."""

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a @ b

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        return grad @ b.T, a.T @ grad


def test_wrong_gradients_of_stacked_matrices_are_noted():
    report = check_operator(ProductOfMatrices, A, A.T.copy(), only="shapes")
    assert any("other numbers of dimensions, but its gradient" in notice for notice in report.notices), report


def test_constants_of_code_tell_whether_it_is_for_single_matrices():
    assert takes_single_matrices(ProductOfMatrices) and not takes_single_matrices(lambda a, b: a @ b)
    assert not takes_single_matrices(lambda a, b: a @ b.mT + a.T.sum())


KEPLER = np.array([0.3, 1.1, 2.4])


def test_fractions_that_are_larger_than_1_are_noted():
    report = check_operator(Kepler, KEPLER, 0.4, only="options")
    assert any("other options, larger than 1" in notice for notice in report.notices), report
    assert failure_of(Kepler, KEPLER, 0.4, only="options", options={"e": [0.4, 3.0]}).property == "options"


def test_estimator_and_surrogate_may_differ_at_kinks():
    class Clipped(Round):
        @staticmethod
        def forward(ctx, x):
            ctx.inside = np.abs(x.detach().numpy()) <= 1.0
            return vg.Tensor(np.sign(x.detach().numpy()))

        @staticmethod
        @once_differentiable
        def backward(ctx, grad):
            return grad * ctx.inside

    class OfWrongSlope(Clipped):
        @staticmethod
        @once_differentiable
        def backward(ctx, grad):
            return grad * (ctx.inside + 1e-3)

    def meant(x):
        return vg.minimum(vg.maximum(x, -1.0), 1.0)

    check_operator(Clipped, A, surrogate=meant)
    with pytest.raises(Failure, match=r"\(the surrogate\)"):
        check_operator(OfWrongSlope, A, surrogate=meant)


def test_digits_lost_far_from_zero_are_noted():
    class Lossy(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * 2 * x * (1 + vg.where(vg.abs(x) > 1e4, 1e-6, 0.0))

    report = check_operator(Lossy, A, only=["gradients", "special points"])
    assert any("few correct digits" in notice for notice in report.notices), report


def test_results_of_single_precision_are_noted():
    class Single(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return vg.Tensor(np.tanh(x.detach().numpy().astype(np.float32)))

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * (1 - vg.tanh(x) ** 2)

    report = check_operator(Single, A)
    assert any("digits of single precision" in notice for notice in report.notices), report


def test_complex_arguments_are_not_inferred_from_names_and_conjugate_spectra():
    class Turned(Function):
        @staticmethod
        def forward(ctx, angle):
            ctx.save_for_backward(angle)
            return vg.cos(angle)

        @staticmethod
        def backward(ctx, grad):
            (angle,) = ctx.saved_tensors
            return -grad * vg.sin(angle)

    assert any("dtype_kinds" in notice for notice in check_operator(Turned, A).notices)


def test_the_command_line_lists_operators(capsys):
    for arguments, told in (
        (["gallery.polished:Squre"], "did you mean 'Square' or 'SqrtGap'? gallery.polished has"),
        (["gallery.polished"], "specify the operator, as in gallery.polished:unbroadcast; gallery.polished has"),
        (["gallery/polished.py:Square"], "is a file; give the module, as in gallery.polished:Square"),
        (["gallery.nowhere:f"], "there is no module called 'gallery.nowhere'"),
        (["gallery.polished:Square", "--call", "np.nope(3)"], "AttributeError"),
        (["gallery.polished:np"], "is not an operator but module"),
        (["gallery.polished:Square", "--only", "gradiens"], "did you mean 'gradients'"),
    ):
        with pytest.raises(SystemExit) as stopped:
            main(arguments)
        assert stopped.value.code == 2
        assert told in " ".join(capsys.readouterr().err.split())
    assert main(["gallery.polished:Square", "--call", "np.array([1.0, 2.0])", "--only", "gradients"]) == 0


TESTS = """
import numpy as np, pytest, viewgrad as vg
from viewgrad.testing import check_operator, profile, property_test

@property_test(lambda x: vg.exp(x), np.array([0.5, 1.0]), only=["gradients", "ties"])
def test_exp(report): ...

@pytest.mark.viewgrad_profile("quick")
def test_wrong():
    assert profile() == "quick"
    def halved(x): return x * x.detach()
    check_operator(halved, np.array([0.5, 1.0]), only="gradients")

def test_profile(): assert profile() == "thorough"

@pytest.mark.viewgrad_profile
def test_unnamed(): ...
"""


@pytest.mark.slow
def test_the_pytest_plugin_has_a_profile_markers_and_a_summary(tmp_path):
    (tmp_path / "test_mine.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    if "viewgrad" not in importlib.metadata.entry_points(group="pytest11").names:
        command += ["-p", "_viewgrad_pytestplugin"]  # loaded automatically if viewgrad is installed
    command += ["--strict-markers", "--viewgrad-profile=thorough", str(tmp_path)]
    paths = os.pathsep.join([str(Path(vg.__file__).parents[1]), *sys.path])
    places = {"text": True, "capture_output": True, "cwd": tmp_path, "env": {**os.environ, "PYTHONPATH": paths}}
    told = subprocess.run(command, **places).stdout
    assert "2 failed, 3 passed" in told, told
    assert "the marker viewgrad_profile takes the name of a profile" in told
    summary = told[told.index("operators checked by viewgrad.testing") :]
    assert "halved    FAILED: gradients" in summary and "operator  passed" in summary
    chosen = subprocess.run([*command, "-m", "viewgrad"], **places).stdout
    assert "2 passed, 3 deselected" in chosen
    of_failed = subprocess.run([*command, "--viewgrad-summary=failed"], **places).stdout
    assert "halved  FAILED: gradients" in of_failed and "operator  passed" not in of_failed
    assert "operators checked" not in subprocess.run([*command, "--viewgrad-summary=none"], **places).stdout


def test_gradcheck_tests_linearity_under_loose_tolerances():
    class Added(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2.0

        @staticmethod
        def backward(ctx, grad):
            return grad * 2.0 + 1e-2

    x = vg.Tensor(A, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert not vg.autograd.gradcheck(Added.apply, x, atol=1e-1, raise_exception=False)
    assert vg.autograd.gradcheck(lambda x: x * 2.0, x, atol=1e-1)


def test_float32_arguments_do_not_look_like_state():
    """The first of all calls was in single precision, and later ones in double precision."""

    def buffered(x):
        out = np.zeros(x.shape)
        out[...] = np.exp(x.detach().numpy())
        return x * 0.0 + vg.Tensor(out)

    single = np.array([0.123, -0.456], np.float32)
    assert check_operator(buffered, single, only="state between calls").examples["state between calls"] > 0


@pytest.mark.slow
def test_a_cycle_of_scipy_that_keeps_arguments_is_noted():
    optimize = pytest.importorskip("scipy.optimize")

    cyclic = []

    class Root(Function):
        @staticmethod
        def forward(ctx, a):
            ctx.x = optimize.brentq(lambda x: x**3 + x - a.item(), -10, 10, xtol=1e-14)
            ctx.loop = [ctx] if cyclic else []
            return vg.Tensor(ctx.x)

        @staticmethod
        @once_differentiable
        def backward(ctx, grad):
            return grad / (3 * ctx.x**2 + 1)

    name = "nothing is left of a call"
    report = check_operator(Root, np.array(0.4), only=name)
    assert any("kept until Python's garbage collector runs" in notice for notice in report.notices)
    cyclic.append(True)  # now there is a cycle of the operator, too
    with pytest.raises(Failure) as found:
        check_operator(Root, np.array(0.4), only=name)
    assert found.value.property == name


def test_points_that_coincide_in_two_sets_are_tried():
    class Distances(Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.d = x.detach().numpy()[:, None] - y.detach().numpy()[None]
            ctx.n = np.sqrt((ctx.d**2).sum(-1))
            return vg.Tensor(ctx.n.copy())

        @staticmethod
        @once_differentiable
        def backward(ctx, grad):
            with np.errstate(all="ignore"):
                g = grad.numpy()[..., None] * ctx.d / ctx.n[..., None]
            return vg.Tensor(g.sum(1)), vg.Tensor(-g.sum(0))

    report = check_operator(Distances, A, A[:1] + 0.5, only=["gradients", "special points", "ties"])
    assert any("the first rows of x and y equal" in notice or "x and y equal" in notice for notice in report.notices)
    report = check_operator(Distances, A, np.vstack([A, A]) + 0.5, only=["gradients", "special points", "ties"])
    assert any("the first rows of x and y equal" in notice for notice in report.notices)


def test_writes_to_arrays_of_the_caller_are_named():
    class Scaled(Function):
        @staticmethod
        def forward(ctx, x):
            return vg.Tensor(3.0 * x.detach().numpy())

        @staticmethod
        def backward(ctx, grad):
            grad *= 3.0
            return grad

    def clipped(x):
        x.detach().numpy()[0] = 0.0
        return x * 1.0

    with pytest.raises(Failure) as found:
        check_operator(Scaled, A)
    assert found.value.property == "the incoming gradient stays the caller's"
    with pytest.raises(Failure, match="so write to a copy"):
        check_operator(clipped, A)


def test_tangents_that_cancel_at_a_derived_call_are_ignored():
    """Two numbers are standardized to 1 and -1, whatever they are, and digits cancel in the tangents."""

    def standardized(x):
        x = x - x.mean(0)
        return x / x.std(0)

    x = np.array([[[0.011, 1.0], [0.3, -2.0]], [[0.0123, 1.7], [0.9, -2.2]]])
    three = np.concatenate([x, [[[0.5, -0.3], [1.2, 0.4]]]])
    report = check_operator(standardized, three, only=["forward mode", "shapes", "gradients"])
    assert report.examples["forward mode"] > 1


def test_negative_stride_is_noted():
    class Strided(Function):
        @staticmethod
        def forward(ctx, x, stride=1):
            ctx.shape, ctx.stride = x.shape, stride
            return vg.Tensor(x.detach().numpy()[::stride].copy())

        @staticmethod
        @once_differentiable
        def backward(ctx, grad):
            out = np.zeros(ctx.shape)
            out[:: abs(ctx.stride)] = grad.numpy()
            return vg.Tensor(out), None

    report = check_operator(Strided, np.array([1.2, -0.8, 0.3]), only=["gradients", "options"])
    assert any("its gradient is wrong for negative stride" in notice for notice in report.notices)


def test_notices_of_errors_in_backward_take_one_line():
    class FirstRow(Function):
        @staticmethod
        def forward(ctx, x):
            return vg.Tensor(2.0 * x.detach().numpy())

        @staticmethod
        def backward(ctx, grad):
            return 2.0 * (grad if grad.ndim < 2 else grad[0])

    report = check_operator(FirstRow, Q, only=["gradients", "shapes"])
    (notice,) = [text for text in report.notices if text.startswith("its backward raises errors in ")]
    assert "calls that you did not make, as for shapes" in notice and "\n" not in notice


def test_nan_of_the_surrogate_is_ignored():
    """The quotient of two infinite numbers is no evidence about the operator."""

    class Step(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.x = x.detach().numpy().copy()
            return vg.Tensor((ctx.x > 0).astype(float))

        @staticmethod
        @once_differentiable
        def backward(ctx, grad):
            return grad / (1 + np.abs(ctx.x)) ** 2

    def soft(x):
        return vg.where(x > 0, x / (1 + x), x / (1 - x))

    assert check_operator(Step, A, surrogate=soft, only=["gradients", "special points"])


def test_values_lost_beside_a_mask_are_found():
    class SoftplusWhere(Function):
        @staticmethod
        def forward(ctx, x, kept):
            ctx.save_for_backward(x)
            ctx.kept = kept.numpy()
            return vg.where(kept, vg.log(1 + vg.exp(x)), 0.0)

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return vg.where(ctx.kept, grad / (1 + vg.exp(-x)), 0.0), None

    with pytest.raises(Failure, match="an intermediate value overflows") as found:
        check_operator(SoftplusWhere, np.array([0.5, -1.0]), np.array([True, True]), only=["values"])
    assert found.value.property == "values"


class ErrorToTarget(Function):
    @staticmethod
    def forward(ctx, x, target):
        ctx.save_for_backward(x, target)
        return ((x - target) ** 2).sum()

    @staticmethod
    def backward(ctx, grad):
        x, target = ctx.saved_tensors
        return 2 * grad * (x - target), None


def test_a_constant_without_gradient_is_declared_by_requires_grad():
    x, target = np.array([0.5, -1.0]), np.array([0.3, 0.2])
    with pytest.raises(Failure, match="If target is a constant that gets no gradient"):
        check_operator(ErrorToTarget, x, target, only=["gradients"])
    report = check_operator(ErrorToTarget, vg.Tensor(x, requires_grad=True), target, only=["gradients"])
    assert report.examples["gradients"] > 0


class Steps(Function):
    """Rounds to multiples of 1 / levels, with the gradient of the identity."""

    @staticmethod
    def forward(ctx, x, levels=4):
        return vg.Tensor(np.round(x.detach().numpy() * levels) / levels)

    @staticmethod
    def backward(ctx, grad):
        return grad, None


POINTS = np.array([0.3, 1.2, -0.7])


@pytest.mark.parametrize(
    ("means", "property", "reason"),
    [
        ({"surrogate": 3}, "gradients", "'int' object is not callable"),
        ({"surrogate": lambda x, levels=4: x.detach()}, "gradients", "surrogate's result does not require grad"),
        ({"surrogate": lambda x, levels=4: x.sum()}, "gradients", "does not have the operator's shape"),
        ({"reference": lambda x: np.nope(x)}, "values", "reference=... raises AttributeError"),
        ({"reference": np.modf}, "values", "shape"),
        ({"disturb": lambda operator: operator.nope()}, "state between calls", "disturb=... raises AttributeError"),
        ({"options": {"levels": (2, 8)}}, "something to check", "options= passes levels as it is"),
    ],
    ids=["number", "constant", "shape", "error", "results", "disturb", "tuple"],
)
def test_declarations_that_do_not_work_are_failures_at_the_users_own_call(means, property, reason):
    with pytest.raises(Failure) as found:
        check_operator(Steps, POINTS, **{"surrogate": lambda x, levels=4: x, **means})
    assert found.value.property == property and reason in found.value.reason, found.value


@pytest.mark.parametrize(
    ("means", "reason"),
    [
        ({"seconds": "2"}, "seconds= must be a positive number"),
        ({"order": 3}, "order= must be 1 or 2, not 3"),
        ({"domain": "positive"}, "domain= has 'p' in place of an interval"),
        ({"domain": {"x": 1.0}}, "domain= has 1.0 in place of an interval"),
        ({"domain": (0.0, 1.0)}, "of the call has 1.2, which is outside its domain"),
    ],
)
def test_wrong_values_of_options_of_the_check_are_errors(means, reason):
    with pytest.raises(ValueError, match=reason):
        check_operator(Steps, POINTS, **means)


@pytest.mark.parametrize("declared", ["surrogate", "valid"])
def test_declarations_that_miss_an_argument_are_noted(declared):
    means = {"surrogate": lambda x, levels=4: x, declared: lambda x: x if declared == "surrogate" else True}
    report = check_operator(Steps, POINTS, only=["gradients", "options"], **means)
    assert any(f"{declared}=... raises errors for derived calls" in notice for notice in report.notices), report


class Warns(Function):
    """Stops after a few steps, with a warning; its gradient is that of the limit."""

    @staticmethod
    def forward(ctx, a, steps):
        root = np.ones_like(a.detach().numpy())
        for _ in range(steps):
            root = (root + a.detach().numpy() / root) / 2
        if (np.abs(root**2 - a.detach().numpy()) > 1e-10).any():
            warnings.warn("no convergence", UserWarning, stacklevel=2)
        ctx.root = root
        return vg.Tensor(root)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad / (2 * ctx.root), None


@pytest.mark.parametrize("steps", [9, 2])
def test_wrong_gradients_where_an_operator_warns_are_noted(steps):
    a = np.array([1.3, 2.1])
    if steps == 2:  # it warns at the user's own call, and its gradient is wrong there
        with pytest.raises(Failure):
            check_operator(Warns, a, steps, only=["gradients"])
        return
    report = check_operator(Warns, a, steps, only=["gradients", "special points"], domain=(0.0, 1e6))
    assert any("where it warns" in notice and "no convergence" in notice for notice in report.notices), report


class InfiniteSlope(Function):
    """The sum of squares, whose backward pass divides by zero beyond 2."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x * x).sum()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * grad * x / vg.where(x > 2, 0.0, 1.0)


@pytest.mark.parametrize(("point", "property"), [(2.5, "gradients"), (1.5, "special points")])
def test_infinite_gradients_of_finite_slopes_are_failures(point, property):
    with pytest.raises(Failure, match="the backward pass computes inf") as found:
        check_operator(InfiniteSlope, np.array([0.3, point]), only=["gradients", "special points"])
    assert found.value.property == property


class Rows(Function):
    """Scales rows, and reads the incoming gradient as if its rows followed each other in memory."""

    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = grad.numpy()
        if g.ndim == 2 and g.strides[1] == g.itemsize:
            g = np.lib.stride_tricks.as_strided(g, g.shape, (g.shape[1] * g.itemsize, g.itemsize))
        return vg.Tensor(2 * g)


def test_incoming_gradients_come_in_rows_of_wider_arrays():
    with pytest.raises(Failure) as found:
        check_operator(Rows, np.arange(6.0).reshape(2, 3), only=["layouts of incoming gradients"])
    assert found.value.property == "layouts of incoming gradients (in rows of a wider array)"


class Halves(Function):
    """The means of pairs, whose gradient is that of the first hundred."""

    @staticmethod
    def forward(ctx, x):
        if x.ndim != 1 or x.shape[0] % 2:
            raise ValueError("pairs expected")
        return x.reshape(-1, 2).mean(axis=1)

    @staticmethod
    def backward(ctx, grad):
        g = grad.clone()
        g[100:] = 0.0
        return vg.repeat(g / 2, 2)


class Branches(Function):
    """Squares where a mask is set, and zero elsewhere; its gradient there is capped."""

    @staticmethod
    def forward(ctx, x, mask):
        ctx.save_for_backward(x)
        ctx.mask = mask.numpy()
        return vg.where(ctx.mask, x * x, 0.0 * x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return vg.where(ctx.mask, 2 * grad * vg.minimum(x, 100.0), 0.0), None


def test_even_lengths_and_each_class_of_a_mask_are_tried():
    with pytest.raises(Failure, match="with respect to x"):
        check_operator(Halves, np.arange(6.0), only=["shapes"])
    with pytest.raises(Failure) as found:
        check_operator(Branches, np.array([0.5, 1.5]), np.array([False, True]), only=["special points"])
    assert found.value.property == "special points"


class LogOfTail(Function):
    """The logarithm of a probability that vanishes far away, where its logarithm does not."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return vg.Tensor(np.log(1.0 - np.tanh(x.detach().numpy().astype(float))))

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return -grad * (1 + vg.tanh(x))


class LogOfRest(Function):
    """The logarithm of what is left of 800, which has a pole."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return vg.Tensor(np.log(800.0 - x.detach().numpy().astype(float)))

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return -grad / (800.0 - x)


def test_logarithms_of_vanishing_numbers_are_found_but_no_poles():
    with pytest.raises(Failure, match="an intermediate value overflows") as found:
        check_operator(LogOfTail, np.array([0.5, -1.0]), only=["values"])
    assert found.value.property == "values"
    check_operator(LogOfRest, np.array([0.5, -1.0]), only=["values"])
