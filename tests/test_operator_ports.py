"""Operators as public code defines them: correct ones pass, and faults are named with programs that fail."""

from __future__ import annotations

import copy

import pytest

pytest.importorskip("scipy")

import gallery.ported
import gallery.ported_faults
import gallery.published
import gallery.published_faults
from test_operator_applications import check, load, require_outcome, require_programs
from test_operator_gallery import operators_as_before, require_note, some
from test_operator_newcomers import operator_of

from viewgrad.testing import Failure

pytestmark = pytest.mark.usefixtures("frozen_objects")

__all__ = ["operators_as_before"]

CALLS = {name: (module, *call) for module in (gallery.ported, gallery.published) for name, call in module.CALLS.items()}
EDITS = {**gallery.ported_faults.EDITS, **gallery.published_faults.EDITS}
# Operators that are correct for the given call and wrong for others they accept: negative limits, large scores, stacks.
REALLY_WRONG_ELSEWHERE = {
    "ClipLearned": "special points",
    "ListLikelihood": "values",
    "RunningLogSum": "shapes",
}
NEEDS_MPMATH = {"distances_by_gram"}


def test_the_galleries_are_large():
    assert len(CALLS) >= 120 and len(EDITS) >= 170
    assert len(REALLY_WRONG_ELSEWHERE) <= len(CALLS) / 30


@pytest.mark.parametrize("name", some(CALLS, 40))
def test_an_operator_of_public_code_passes(name):
    module, args, kwargs, means = CALLS[name]
    require_outcome(operator_of(module, name), args, kwargs, means, REALLY_WRONG_ELSEWHERE.get(name))


@pytest.mark.parametrize("name", some(EDITS, 60))
def test_faults_are_named_and_fixed_programs_pass(name, tmp_path):
    if name in NEEDS_MPMATH:
        pytest.importorskip("mpmath")
    edit = EDITS[name]
    module, path = load(edit.source(wrong=True), tmp_path)
    operator = getattr(module, edit.called)
    call = module.CALLS[edit.called if edit.called in module.CALLS else operator.name]
    if edit.properties == ("NaN",):
        require_note(check(operator, *copy.deepcopy(call)))
        return
    with pytest.raises(Failure) as found:
        check(operator, *copy.deepcopy(call))
    assert found.value.property.startswith(edit.properties), str(found.value)[:300]
    require_programs(found.value, path, edit.source(wrong=False))
