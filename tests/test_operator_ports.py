"""Operators as public code defines them: right ones pass, and faults are named with programs that fail."""

from __future__ import annotations

import copy

import pytest

pytest.importorskip("scipy")

import gallery.ported
from gallery.ported_faults import EDITS
from test_operator_applications import check, load, require_programs
from test_operator_gallery import operators_as_before, require_note, some

from viewgrad.testing import Failure

pytestmark = pytest.mark.usefixtures("frozen_objects")

__all__ = ["operators_as_before"]

CALLS = gallery.ported.CALLS
# Right at the call given, wrong at others that they accept: a negative limit, large scores, stacks.
REALLY_WRONG_ELSEWHERE = {
    "ClipLearned": "special points",
    "ListLikelihood": "values",
    "RunningLogSum": "shapes",
}
NEEDS_MPMATH = {"distances_by_gram"}


def test_the_galleries_are_large():
    assert len(CALLS) >= 60 and len(EDITS) >= 60
    assert len(REALLY_WRONG_ELSEWHERE) <= len(CALLS) / 9


@pytest.mark.parametrize("name", some(CALLS, 30))
def test_an_operator_of_public_code_passes(name):
    args, kwargs, means = CALLS[name]
    if name in REALLY_WRONG_ELSEWHERE:
        with pytest.raises(Failure) as found:
            check(getattr(gallery.ported, name), args, kwargs, means)
        assert found.value.property == REALLY_WRONG_ELSEWHERE[name]
        assert "You did not make this call" in str(found.value)
    else:
        report = check(getattr(gallery.ported, name), args, kwargs, means)
        assert not any("could not be checked" in notice for notice in report.notices)


@pytest.mark.parametrize("name", some(EDITS, 40))
def test_faults_are_named_and_fixed_programs_pass(name, tmp_path):
    if name in NEEDS_MPMATH:
        pytest.importorskip("mpmath")
    edit = EDITS[name]
    module, path = load(edit.source(wrong=True), tmp_path)
    if edit.properties == ("NaN",):
        require_note(check(getattr(module, edit.called), *copy.deepcopy(module.CALLS[edit.called])))
        return
    with pytest.raises(Failure) as found:
        check(getattr(module, edit.called), *copy.deepcopy(module.CALLS[edit.called]))
    assert found.value.property.startswith(edit.properties), str(found.value)[:300]
    require_programs(found.value, path, edit.source(wrong=False))
