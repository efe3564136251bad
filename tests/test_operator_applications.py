"""Operators from applications: correct ones pass, faults are named, and fixed versions pass."""

from __future__ import annotations

import copy
import importlib.util
import itertools
import sys

import numpy as np
import pytest

pytest.importorskip("scipy")

import gallery.applied
import gallery.reported_versions
import scipy.special
from fresh_interpreter import in_fresh_interpreter
from gallery.applied_faults import EDITS
from gallery.two_versions import VERSIONS, source
from test_operator_gallery import mend, operators_as_before, require_note, some

import viewgrad as vg
from viewgrad.testing import Failure, check_operator
from viewgrad.testing.kit.reproduction import SourceWriter

pytestmark = pytest.mark.usefixtures("frozen_objects")

__all__ = ["operators_as_before"]

CALLS = gallery.applied.CALLS
# Operators that are correct for the given call and wrong for others they accept: batches.
REALLY_WRONG_ELSEWHERE = {
    "FocalLoss": "shapes",
    "OnePole": "shapes",
    "PowerSpectrum": "shapes",
}
UNDEFINED = ("NaN for finite arguments", "NaN where the function has no derivative")
NUMBERS = itertools.count()
DECLARED = ("arrhenius", "published")  # the beginnings of the names of declared operators in edited modules


def renamed(text, name):
    """Return the source of a module whose declared operators have names of their own."""
    for start in DECLARED:
        text = text.replace(f'"{start}', f'"{start}_{name}')
    return text.replace("from .newcomers", "from gallery.newcomers")


def load(text, folder):
    """Return a new module, importable by the programs of failures."""
    name = f"operators_{next(NUMBERS)}"
    path = folder / f"{name}.py"
    path.write_text(renamed(text, name))
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module, path


def check(operator, args, kwargs, means):
    return check_operator(operator, arguments=copy.deepcopy(args), keywords=kwargs, **{"seconds": 20.0, **means})


def require_outcome(operator, args, kwargs, means, wrong_elsewhere):
    """Check that the operator passes, or fails at a derived call by the property `wrong_elsewhere`, if given."""
    if wrong_elsewhere is not None:
        with pytest.raises(Failure) as found:
            check(operator, args, kwargs, means)
        assert found.value.property == wrong_elsewhere
        assert "You did not make this call" in str(found.value)
    else:
        report = check(operator, args, kwargs, means)
        assert not any("could not be checked" in notice for notice in report.notices)


def require_programs(failure, path, mended):
    """Check that the programs of a failure fail in a fresh interpreter, and pass with the corrected module."""
    expected = type(failure.__cause__ or AssertionError()).__name__
    programs = {"program": failure.program, "standalone": failure.standalone()}
    assert in_fresh_interpreter(programs) == dict.fromkeys(programs, expected)
    mend(path, renamed(mended, path.stem))
    if failure.__cause__ is None:
        assert in_fresh_interpreter({"program": failure.program}) == {"program": "passed"}, failure.program


def test_the_galleries_are_large():
    assert len(CALLS) >= 60 and len(EDITS) >= 60 and len(VERSIONS) >= 60
    assert len(REALLY_WRONG_ELSEWHERE) <= 8


@pytest.mark.parametrize("name", some(CALLS, 30))
def test_an_operator_from_an_application_passes(name):
    args, kwargs, means = CALLS[name]
    operator = getattr(gallery.applied, name)
    require_outcome(operator, args, kwargs, means, REALLY_WRONG_ELSEWHERE.get(name))


@pytest.mark.parametrize("name", some(EDITS, 60))
def test_faults_are_named_and_fixed_programs_pass(name, tmp_path):
    edit = EDITS[name]
    module, path = load(edit.source(wrong=True), tmp_path)
    operator = getattr(module, edit.called)
    args, kwargs, means = module.CALLS[module.name_of(operator)]  # `load` gives some another name
    if edit.properties == ("NaN",):
        require_note(check(operator, args, kwargs, means))
        return
    with pytest.raises(Failure) as found:
        check(operator, args, kwargs, means)
    assert found.value.property.startswith(edit.properties), str(found.value)[:300]
    require_programs(found.value, path, edit.source(wrong=False))


@pytest.mark.parametrize("name", some(VERSIONS, 40))
def test_the_right_version_passes_and_the_wrong_one_is_named(name, tmp_path):
    _, args, kwargs, properties, means = VERSIONS[name]
    for wrong in (False, True):
        module, path = load(source(name, wrong), tmp_path)
        given = {**means, "inplace": module.operator_} if hasattr(module, "operator_") else means
        if not wrong or properties == ("NaN",):
            report = check(module.operator, args, kwargs, given)
            assert any(text in notice for notice in report.notices for text in UNDEFINED) == wrong, report
            continue
        with pytest.raises(Failure) as found:
            check(module.operator, args, kwargs, given)
        assert found.value.property.startswith(properties), str(found.value)[:300]
        require_programs(found.value, path, source(name, False))


def test_a_standalone_program_has_objects_with_slots(tmp_path):
    module, _ = load(EDITS["spline_second"].source(wrong=True), tmp_path)
    with pytest.raises(Failure) as found:
        check(module.SplineTable, *module.CALLS["SplineTable"])
    assert in_fresh_interpreter({"standalone": found.value.standalone()}) == {"standalone": "AssertionError"}


def test_standalone_programs_import_ufuncs_of_scipy():
    operator = vg.autograd.define_op(
        "standalone_erfcx(x)", forward=scipy.special.erfcx, derivatives={"x": "grad * result"}
    )
    with pytest.raises(Failure) as found:
        check_operator(operator, np.array([0.3, 0.7]), only=["gradients"])
    assert in_fresh_interpreter({"standalone": found.value.standalone()}) == {"standalone": "AssertionError"}


class Table:
    def __init__(self, values):
        self.values = values


def test_nested_objects_have_distinct_names_in_standalone_programs():
    """SciPy 1.18 nests its splines."""
    writer = SourceWriter()
    name = writer.value(Table(Table(np.arange(30.0))))
    names = {"np": np, "Table": Table}
    exec("\n".join(line for line in writer.lines if "class " not in line), names)
    assert names[name].values is not names[name]
    np.testing.assert_array_equal(names[name].values.values, np.arange(30.0))


def test_nan_from_finite_arguments_is_noted_at_a_small_call():
    report = check_operator(lambda x: x / x.sum(), np.array([0.5, -0.25, 0.3]))
    assert any("NaN for finite arguments" in notice and "float64[1]" in notice for notice in report.notices), report
    report = check_operator(lambda x: x / (1.0 + x * x), np.array([0.5, -0.25, 0.3]))
    assert not any("NaN" in notice for notice in report.notices)
