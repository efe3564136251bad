"""Operators as newcomers write them, and careful versions: correct ones pass, faults are named."""

from __future__ import annotations

import copy

import numpy as np
import pytest

pytest.importorskip("scipy")

import gallery.careful
import gallery.fifth_drafts
import gallery.fourth_drafts
import gallery.newcomers
import gallery.second_drafts
import gallery.seventh_drafts
import gallery.sixth_drafts
import gallery.third_drafts
from gallery.newcomers_faults import EDITS
from test_operator_applications import check, load, require_outcome, require_programs
from test_operator_gallery import operators_as_before, some

import viewgrad as vg
from viewgrad.autograd import Function
from viewgrad.testing import Failure, check_operator

pytestmark = pytest.mark.usefixtures("frozen_objects")

__all__ = ["operators_as_before"]

DRAFTS = (
    gallery.newcomers,
    gallery.second_drafts,
    gallery.third_drafts,
    gallery.fourth_drafts,
    gallery.fifth_drafts,
)
MODULES = (*DRAFTS, gallery.careful, gallery.sixth_drafts, gallery.seventh_drafts)
CALLS = {name: (module, *module.CALLS[name]) for module in MODULES for name in module.CALLS}
# Operators that are correct for the given call and wrong for others they accept: -1 for no padding, a width of
# zero, batches, a power of 1, kinks of parts, a mean over rows, and 0 log 0.
REALLY_WRONG_ELSEWHERE = {
    "PaddedEmbedding": "options",
    "MixtureLogLikelihood": "special points",
    "mu_law": "special points",
    "AlphaBalanced": "shapes",
    "ZeroCouponDuration": "values",
    "ZeroInflatedPoisson": "special points",
    "third_relu_power": "options",
    "IirFilter": "shapes",
    "LogisticLossOfLabels": "shapes",
    "RowEntropy": "values",
}
# Arrays stored on the context silently lose second derivatives.
LOST_TWICE = {"Softplus", "LogSumExpScalar", "RateToPrice"}
# Operators that are correct for the given call and wrong for calls that they are probably not meant for.
NOTES = {
    "Projection": "it accepts other lengths (a few), but its gradient is wrong for them",
    "SelectColumns": "numbers of dimensions",
    "PortfolioRisk": "NaN where the function has no derivative (0 everywhere in w)",
    "PlanckRatio": "NaN at large arguments",
    "InternalRate": "its result is huge",
    "Boltzmann": "inaccurate in half precision",
    "EllipticIntegral": "its gradients are wrong where it warns",
    "negative_binomial_nll": "its gradient is 0 if an intermediate value overflows",
    "SoftThreshold": "if an option is 0, its gradient is wrong at a single point",
}


def operator_of(module, name):
    """Return an operator by its own name, which for declared ones is not that of the variable."""
    found = getattr(module, name, None)
    if found is None:
        found = next(value for value in vars(module).values() if name in (getattr(value, "__name__", ""), _name(value)))
    return found


def _name(value):
    return getattr(value, "name", "")


def test_the_galleries_are_large():
    assert sum(len(module.CALLS) for module in DRAFTS) >= 225
    assert len(gallery.careful.CALLS) >= 60 and len(gallery.seventh_drafts.CALLS) >= 60 and len(EDITS) >= 70
    assert len(CALLS) == sum(len(module.CALLS) for module in MODULES)
    assert len(REALLY_WRONG_ELSEWHERE) <= len(CALLS) / 30


@pytest.mark.parametrize("name", some(CALLS, 90))
def test_an_operator_as_its_author_wrote_it_passes(name):
    module, args, kwargs, means = CALLS[name]
    if name in LOST_TWICE:
        with pytest.raises(Failure, match="decorate it with once_differentiable") as found:
            check(operator_of(module, name), args, kwargs, means)
        assert found.value.property == "second derivatives"
        means = {**means, "order": 1}
    require_outcome(operator_of(module, name), args, kwargs, means, REALLY_WRONG_ELSEWHERE.get(name))


@pytest.mark.parametrize("name", some(NOTES, 4))
def test_wrong_gradients_outside_the_intended_use_are_noted(name):
    module, args, kwargs, means = CALLS[name]
    report = check_operator(operator_of(module, name), arguments=copy.deepcopy(args), keywords=kwargs, **means)
    assert any(NOTES[name] in notice for notice in report.notices), report


@pytest.mark.parametrize("name", some(EDITS, 80))
def test_faults_are_named_and_fixed_programs_pass(name, tmp_path):
    edit = EDITS[name]
    module, path = load(edit.source(wrong=True), tmp_path)
    operator = getattr(module, edit.operator)
    args, kwargs, means = module.CALLS[_name(operator) or operator.__name__]
    with pytest.raises(Failure) as found:
        check(operator, args, kwargs, means)
    assert found.value.property.startswith(edit.properties), str(found.value)[:300]
    require_programs(found.value, path, edit.source(wrong=False))


def test_in_place_forms_need_not_write_if_nothing_changes():
    module = gallery.fifth_drafts
    report = check_operator(module.clip_norm, 0.1 * module.X, inplace=module.clip_norm_, only=["in-place form"])
    assert report.examples["in-place form"] > 0


# -- faults beside what is noted ---------------------------------------------------------------------------------------


def relative_growth(x):
    zero = x == 0
    return vg.where(zero, 1.0, vg.expm1(x) / vg.where(zero, 1.0, x))


class CappedSlope(Function):
    """The slope of exp is clipped at 20."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return vg.exp(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * vg.exp(vg.minimum(x, 20.0))


class Logistic(Function):
    """Its gradient is the quotient of two infinite numbers at -800."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return 1 / (1 + vg.exp(-x))

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * vg.exp(-x) / (1 + vg.exp(-x)) ** 2


class NormOfRows(Function):
    """Its gradient is NaN in all rows if one is zero."""

    @staticmethod
    def forward(ctx, x):
        norms = vg.sqrt((x * x).sum(axis=-1))
        ctx.save_for_backward(x, norms)
        return norms

    @staticmethod
    def backward(ctx, grad):
        x, norms = ctx.saved_tensors
        return grad[..., None] * x / norms[..., None] + 0.0 * (1 / norms - 1 / norms).sum()


@pytest.mark.parametrize("operator", [relative_growth, CappedSlope, Logistic, NormOfRows])
def test_faults_at_special_points_are_failures(operator):
    x = np.array([[0.7, -1.3, 2.1], [1.9, 0.4, -0.6]])
    with pytest.raises(Failure) as found:
        check_operator(operator, x, only=["gradients", "special points"])
    assert found.value.property == "special points"
