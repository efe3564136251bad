"""Checks of one property of one call, within a time limit, with their outcomes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import attrs

from .arguments import Example
from .baseline import Baseline, baseline_results
from .failure import Failure
from .findings import Again, Findings, Stop
from .operator_under_test import OperatorUnderTest, Refused, TookTooLong, patience
from .parts import excused
from .properties.forms import against_reference
from .properties.gradients import check_gradients
from .properties.higher import Absent
from .report import Report

# Properties that are also checked for calls whose values are infinite or empty.
OF_ALL_VALUES: Final = ("arguments are not modified", "nothing is left of a call")
MOST_TRIED: Final = 60  # the number of calls that are remembered


@attrs.define(eq=False)
class Trials:
    """Checks of single properties of single calls.

    Arguments:
        subject: the operator.
        findings: the failures and refusals so far.
        report: the report, which counts the examples.
        compared: whether gradients are meant to be the derivatives of the values.
        patience: seconds for a derived call.
        tried: the calls so far, which may affect later ones.
    """

    subject: OperatorUnderTest
    findings: Findings
    report: Report
    compared: bool = True
    patience: float = 0.0
    tried: list[Example] = attrs.Factory(list)

    def attempt(self, name: str, check: Callable[[], Any], again: Again | None = None) -> Any:
        """Run part of the check and return its result; None if it fails, is refused, or is impossible.

        Arguments:
            name: the property.
            check: the part to run.
            again: a function that repeats it for another call.
        """
        try:
            return check()
        except (Refused, TookTooLong) as refused:
            self.findings.refuse(name, refused)
        except Failure as failure:
            self.findings.fail(failure, again)
        except (Stop, Absent):
            raise
        except Exception as error:
            self.findings.note_error(name, error)
        return None

    def patiently(self, name: str, check: Callable[[Example], Any], example: Example) -> Any:
        """Run part of the check within the time limit of derived calls; see `attempt`."""

        def within_limit() -> Any:
            with patience(self.patience):
                return check(example)

        return self.attempt(name, within_limit, check)

    def plain(self, example: Example, family: str) -> Baseline | None:
        """Return the baseline of a call, or None if the call is refused."""
        try:
            return baseline_results(self.subject, example, family)
        except Refused as refused:
            self.findings.refuse(family, refused)
            if not example.label:
                raise
        return None

    def count(self, name: str, check: Callable[[Baseline], int], baseline: Baseline) -> None:
        """Check one property of a call and count it."""
        if (not baseline.finite or not baseline.size) and name not in OF_ALL_VALUES:
            return
        asked_for = not baseline.example.label and name != "dtypes"
        if name in self.findings.too_slow and not asked_for:
            return

        def counted() -> None:
            with patience(0.0 if asked_for else self.patience):
                self.report.add(name, check(baseline))

        self.attempt(name, counted, lambda example: check(baseline_results(self.subject, example, name)))

    def count_form(self, name: str, check: Callable[[Baseline], int], baseline: Baseline) -> None:
        """Check one form of a derived call, in which compositions of operators may lose digits."""
        self.count(name, lambda baseline: excused(self.subject, name, check, baseline), baseline)

    def gradients(self, example: Example) -> bool:
        """Compare the gradients of one call with finite differences; return whether it was accepted."""
        if example.family in self.findings.too_slow:
            return False

        def check(example: Example) -> bool:
            return check_gradients(self.subject, example, example.family, self.compared)

        def counted() -> bool:
            with patience(self.patience if example.label else 0.0):
                found = check(example)
            self.report.add(example.family, int(found))
            self.tried = [*self.tried[-MOST_TRIED:], example]
            return found

        return bool(self.attempt(example.family, counted, check))

    def values(self, example: Example) -> None:
        """Compare the values of one call with those of the reference."""

        def check(example: Example) -> int:
            return against_reference(self.subject, example)

        self.attempt("values", lambda: self.report.add("values", check(example)), check)
