"""The failures, refusals and notices of a check in progress."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Callable, Iterator
from typing import Any, Final

import attrs
import numpy as np

from .arguments import Example
from .baseline import Baseline
from .failure import Failure
from .operator_under_test import OperatorUnderTest, Refused, TookTooLong
from .properties.registry import PROPERTIES, base_name
from .properties.repetition import steady
from .ranks import (
    is_meant_beyond_one,
    is_meant_for_changed_lengths,
    is_meant_for_lengths,
    is_meant_for_negative,
    is_meant_for_ranks,
    is_meant_to_broadcast,
)
from .report import Report
from .shrinking import smallest

Again = Callable[[Example], Any]

STATE: Final = "state between calls"
BEGINNING: Final = "something to check"
MOST_REFUSALS: Final = 60  # the number of recorded errors in backward passes
# The beginning of the message if a function that the author passed refuses a call.
DECLARATIONS: Final = {"valid=...": "valid=... raises", "surrogate=...": "the surrogate refuses"}
CALLS: Final = 20  # the number of repetitions that decide whether an operator is deterministic


class Stop(Exception):
    """Raised if the check cannot continue."""


@attrs.define(eq=False)
class Findings:
    """The results of a check in progress.

    Arguments:
        subject: the operator.
        base: the user's call.
        report: the report, which counts examples and refused calls.
        keep_going: whether to continue after a failure and report all failures.
        failures: each failure, with a function that repeats its check for another call.
        steady: the baseline of the user's call, which reveals whether the operator has state.
        too_slow: the properties for which a call took too long.
        refusals: errors in the backward pass of derived calls.
    """

    subject: OperatorUnderTest
    base: Example
    report: Report
    keep_going: bool = False
    failures: list[tuple[Failure, Again | None]] = attrs.Factory(list)
    steady: Baseline | None = None
    too_slow: set[str] = attrs.Factory(set)
    refusals: list[str] = attrs.Factory(list)

    @property
    def failed(self) -> set[str]:
        """The violated properties."""
        return {base_name(failure.property) for failure, _ in self.failures}

    def in_order(self) -> list[tuple[Failure, Again | None]]:
        """Return the failures, most basic property first."""
        return sorted(self.failures, key=lambda found: PROPERTIES.index(base_name(found[0].property)))

    def fail(self, failure: Failure, again: Again | None) -> None:
        """Add a failure, one per property; if the operator has state, report that instead.

        Arguments:
            failure: the failure.
            again: a function that repeats the check for another call.

        Raises:
            Stop: if the check ends with this failure.
        """
        name = base_name(failure.property)
        if name in self.failed:
            return
        example = None if failure.script is None else failure.script.example
        others = None if example is None or not example.label else self._unmeant(example)
        if example is not None and others is not None:
            self._note_unmeant(example, failure, others)
            return
        warning = "" if example is None or not example.label else self._warning(example)
        if example is not None and warning:
            self.report.refuse(example.family)
            self.subject.note_once("its gradients are wrong where it warns", f"{example.label}: {warning}")
            return
        unsteady = self._unsteadiness() if name != STATE else None
        if unsteady is not None:
            failure, again, name = unsteady, None, STATE
            self.failures = [found for found in self.failures if found[0].property == BEGINNING]
        self.failures.append((failure, again))
        if not self.keep_going or name in (STATE, BEGINNING):
            raise Stop

    def refuse(self, name: str, refused: Refused | TookTooLong) -> None:
        """Count a call that the operator rejected, or that took too long."""
        self.report.refuse(name)
        for declaration, reason in DECLARATIONS.items():
            if str(refused).startswith(reason):
                what = f"{declaration} raises errors for derived calls, which are left out"
                self.subject.note_once(what, str(refused)[:200])
        if isinstance(refused, TookTooLong):
            self.too_slow.add(name)
        elif str(refused).startswith("the backward pass refuses") and len(self.refusals) < MOST_REFUSALS:
            self.refusals.append(f"{name}: {refused}")

    def note_error(self, name: str, error: Exception) -> None:
        """Record an error of the kit: a nondeterministic operator, or a defect of the kit itself."""
        unsteady = self._unsteadiness(CALLS)
        if unsteady is not None:
            self.fail(unsteady, None)
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{place.filename.rsplit('/', 1)[-1]}:{place.lineno}"
        self.subject.note(f"{name} could not be checked: {type(error).__name__} in the kit ({where}: {error})")

    @contextlib.contextmanager
    def aside(self) -> Iterator[list[Failure]]:
        """Return a context in which failures are collected in a separate list."""
        kept, going = list(self.failures), self.keep_going
        self.keep_going = True
        unmeant: list[Failure] = []
        yield unmeant
        unmeant += [failure for failure, _ in self.failures[len(kept) :]]
        self.failures, self.keep_going = kept, going

    def complete_report(self, seconds: float) -> None:
        """Add the notices and the CPU time to the report."""
        notices = self.report.notices
        notices += [text for text in self.subject.notices if text not in notices]
        if self.refusals:
            calls = "a call" if len(self.refusals) == 1 else f"{len(self.refusals)} calls"
            first = self.refusals[0].splitlines()[0]  # without the pointer to the help
            notices.append(f"its backward raises errors in {calls} that you did not make, as for {first}")
        undefined = self._smallest_undefined()
        notices += [] if undefined is None else [undefined]
        self.report.seconds = seconds

    def _unsteadiness(self, *calls: int) -> Failure | None:
        """Return the failure of the user's call to return the same values again, or None."""
        if self.steady is None:
            return None
        try:
            steady(self.steady, *calls)
        except Failure as unsteady:
            return unsteady
        except Refused:
            pass
        return None

    def _unmeant(self, example: Example) -> str | None:
        """Return the difference from the user's call for which the operator is probably not intended, or None."""
        subject, base = self.subject, self.base
        if not is_meant_for_ranks(subject, example, base):
            return "numbers of dimensions"
        if not is_meant_for_lengths(subject, example, base):
            return "lengths of some arguments alone"
        if not is_meant_to_broadcast(subject, example, base):
            return "shapes of some arguments alone"
        if example.family == "shapes" and not is_meant_for_changed_lengths(subject, example, base):
            return "lengths (a few)"
        if not is_meant_beyond_one(subject, example):
            return "options, larger than 1"
        if example.family == "indices" and not is_meant_for_negative(subject, example, base):
            return "integers, negative ones"
        return None

    def _warning(self, example: Example) -> str:
        """Return the warning of a derived call that the user's call does not give, or ""."""
        warning = self.subject.warning(example)
        return "" if warning and self.subject.warning(self.base) else warning

    def _note_unmeant(self, example: Example, failure: Failure, others: str) -> None:
        """Note a failure at a call for which the operator is probably not intended."""
        what = f"it accepts other {others}, but its gradient is wrong for them"
        self.report.refuse(example.family)
        advice = "If it does not support them, raise an error in forward, or pass valid=..."
        self.subject.note_once(f"{what}. {advice}", f"{example.label}: {failure.reason.split(':')[0]}")

    def _smallest_undefined(self) -> str | None:
        """Return a notice about the smallest call of finite numbers that returns NaN, or None."""
        subject = self.subject
        if subject.undefined is None:
            return None
        small = smallest(subject.undefined, lambda other: subject.is_undefined_at(other, subject.values(other)))
        numbers = [np.array2string(array, threshold=6, separator=", ") for array in small.arrays]
        told = ", ".join(f"{small.named(k)} = {text}" for k, text in enumerate(numbers))
        why = f" ({small.label})" if small.label else ""
        return f"its result is NaN for finite arguments: {subject.name}({small}){why}, with {told}"
