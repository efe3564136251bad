"""Failures of compositions of operators that are caused by one of their parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from .baseline import Baseline, baseline_results
from .failure import Failure
from .operator_under_test import OperatorUnderTest, Refused
from .properties.higher import Absent, second_order

SECOND: Final = "second derivatives"
MIXED: Final = ("the gradient of the tangent", "the tangent of the gradient")
HUGE: Final = 100.0  # arguments for which squared exponentials soon overflow
BESIDE: Final = 0.03  # the distance from a point within which parts may have kinks


def excused(subject: OperatorUnderTest, name: str, check: Callable[[Baseline], int], baseline: Baseline) -> int:
    """Check one form of a derived call, and refuse the call if only a part of the composition fails there.

    Arguments:
        subject: the operator.
        name: the form.
        check: a function that checks it and returns the number of programs.
        baseline: the baseline of the call.

    Raises:
        Failure: if the operator itself fails.
        Refused: if the operator does not have this form, or if one of its parts fails.
    """
    try:
        return check(baseline)
    except Absent as absent:
        raise Refused(str(absent)) from absent
    except Failure as failure:
        if not _is_of_parts(subject, name, baseline, failure):
            raise
        raise Refused(failure.reason) from failure


def _is_of_parts(subject: OperatorUnderTest, name: str, baseline: Baseline, failure: Failure) -> bool:
    """Return whether a composition fails in a form because one of its operators fails at that point.

    Second derivatives of custom operators are composed of the operators in their backward pass.
    """
    largest = max((float(np.abs(array).max(initial=0.0)) for array in baseline.example.arrays), default=0.0)
    far = bool(baseline.example.label) and largest >= HUGE
    if not subject.composed:
        second = name == SECOND or failure.reason.startswith(MIXED)
        if not (far and second and isinstance(failure.found, float) and not np.isfinite(failure.found)):
            return False
        subject.note(f"its second derivative is {failure.found} at large arguments ({baseline.example.label})")
        return True
    if far:
        return True
    return failure.is_of_digits or (name == SECOND and _right_on_both_sides(subject, baseline))


def _right_on_both_sides(subject: OperatorUnderTest, baseline: Baseline) -> bool:
    """Return whether second derivatives are correct on both sides of a point.

    At the point, the slopes of parts with a kink are chosen by convention. The whole may have no kink, which no single
    part can detect: `log1p(exp(-abs(x))) + maximum(x, 0)` is smooth.
    """
    wanted = baseline.example.wanted
    for side in (BESIDE, -BESIDE):
        arrays = [
            array + side * np.cos(np.arange(array.size)).reshape(array.shape) if k in wanted else array
            for k, array in enumerate(baseline.example.arrays)
        ]
        try:
            second_order(baseline_results(subject, baseline.example.with_arrays(arrays), SECOND))
        except (Failure, Refused, Absent):
            return False
    return True
