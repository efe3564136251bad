"""The held-out galleries: correct operators, as drafts and polished, and faulty edits of the latter."""

from __future__ import annotations

import copy
import shutil

import gallery.first_written
import pytest
from fresh_interpreter import in_fresh_interpreter
from gallery import FIRST_WRITTEN
from gallery.faults import FAULTS, build, source

from viewgrad.operators.define import OPERATORS
from viewgrad.operators.language.namespace import ARRAY_FUNCTIONS, TENSOR_FUNCTIONS
from viewgrad.testing import Failure, check_operator

pytestmark = pytest.mark.usefixtures("frozen_objects")

# Operators that are correct for the given call and wrong for others they accept: numbers with arrays, lengths of 1.
REALLY_WRONG_ELSEWHERE = {
    "LayerNorm": "shapes",
    "MeanSquaredError": "shapes",
    "Trapezoid": "shapes",
}
NEEDS_MPMATH = {"cosine_cancels", "roots_cancel", "moments_cancel_unseen", "gram_distances", "expm1_by_exp"} | {
    "slope_of_sinc_cancels"
}


@pytest.fixture(autouse=True)
def operators_as_before():
    """Remove the operators that a test defines."""
    before = set(OPERATORS)
    yield
    for name in OPERATORS.keys() - before:
        del OPERATORS[name]
        for functions in (ARRAY_FUNCTIONS, TENSOR_FUNCTIONS):
            vars(functions).pop(name, None)


def some(names, step):
    """Return the names as parameters, with most of them marked slow."""
    slow = pytest.mark.slow
    return [name if i % step == 0 else pytest.param(name, marks=slow) for i, name in enumerate(names)]


def check(operator, entry, means, **options):
    return check_operator(
        operator, arguments=copy.deepcopy(entry.args), keywords=entry.kwargs, seconds=20.0, **{**means, **options}
    )


@pytest.mark.parametrize("name", some(FIRST_WRITTEN, 60))
def test_an_operator_as_first_written_passes(name):
    entry = FIRST_WRITTEN[name]
    if name in REALLY_WRONG_ELSEWHERE:
        with pytest.raises(Failure) as found:
            check(entry.make(), entry, entry.means)
        assert found.value.property == REALLY_WRONG_ELSEWHERE[name]
        assert "You did not make this call" in str(found.value)
    else:
        report = check(entry.make(), entry, entry.means)
        assert not any("could not be checked" in notice for notice in report.notices)


def test_the_galleries_are_large():
    assert len(FIRST_WRITTEN) >= 90 and len(FAULTS) >= 100
    assert len(REALLY_WRONG_ELSEWHERE) <= 10
    assert gallery.first_written.__doc__


@pytest.mark.slow
@pytest.mark.parametrize("name", {fault.operator: fault.name for fault in FAULTS.values()}.values())
def test_a_fixed_operator_passes(name, tmp_path):
    operator, means = build(FAULTS[name], tmp_path, mended=True)
    check(operator, FAULTS[name], means)


def require_note(report):
    """Check that the gradient is NaN where the function has no derivative, and that this is noted."""
    assert any("NaN where the function has no derivative" in notice for notice in report.notices), report


def mend(path, text):
    """Write a module again, and remove its bytecode, which counts as fresh if both are of the same second and size."""
    path.write_text(text)
    shutil.rmtree(path.parent / "__pycache__", ignore_errors=True)


@pytest.mark.parametrize("name", some(FAULTS, 75))
def test_faults_are_named_and_fixed_operators_pass(name, tmp_path):
    if name in NEEDS_MPMATH:
        pytest.importorskip("mpmath")
    fault = FAULTS[name]
    operator, means = build(fault, tmp_path)
    if fault.properties == ("NaN",):
        require_note(check(operator, fault, means))
        return
    with pytest.raises(Failure) as found:
        check(operator, fault, means)
    failure = found.value
    assert failure.property.startswith(fault.properties), str(failure)[:300]
    module = next(path for path in tmp_path.iterdir() if path.suffix == ".py")
    standalone = failure.standalone()
    assert f"from {module.stem} import" not in standalone
    ends = in_fresh_interpreter({"program": failure.program, "standalone": standalone})
    expected = type(failure.__cause__ or AssertionError()).__name__
    assert ends == {"program": expected, "standalone": expected}
    mend(module, source(fault, mended=True).replace('"polished_', f'"{module.stem}_'))
    if failure.__cause__ is None:
        assert in_fresh_interpreter({"program": failure.program}) == {"program": "passed"}, failure.program
