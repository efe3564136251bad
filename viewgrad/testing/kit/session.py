"""A tally of all checks in this process, by operator, for the summary of a test run."""

from __future__ import annotations

import threading
from typing import Final

import attrs

from .failure import Failure
from .report import Report

MOST: Final = 1000  # operators


@attrs.define
class Tally:
    """The checks of one operator.

    Attributes:
        checks: the number of checks.
        examples: the number of examples in all checks.
        properties: the properties with examples.
        failed: the properties that did not hold.
        seconds: the CPU time.
        left_out: the calls skipped for lack of time.
    """

    checks: int = 0
    examples: int = 0
    properties: set[str] = attrs.Factory(set)
    failed: dict[str, None] = attrs.Factory(dict)
    seconds: float = 0.0
    left_out: int = 0


TALLIES: Final[dict[str, Tally]] = {}
LOCK: Final = threading.Lock()


def record(report: Report, failures: list[Failure]) -> None:
    """Count a finished check."""
    with LOCK:
        if report.operator not in TALLIES and len(TALLIES) >= MOST:
            return
        tally = TALLIES.setdefault(report.operator, Tally())
        tally.checks += 1
        tally.examples += sum(report.examples.values())
        tally.properties |= {name for name, count in report.examples.items() if count}
        tally.failed |= dict.fromkeys(failure.property for failure in failures)
        tally.seconds += report.seconds
        tally.left_out += sum(report.left_out.values())


def summary(failed: bool = False) -> list[str]:
    """Return a line for each operator with the number of checks, the time, and the failures.

    Arguments:
        failed: whether to omit operators that passed.
    """
    told_of = {name: tally for name, tally in sorted(TALLIES.items()) if tally.failed or not failed}
    width = max(map(len, told_of), default=0)
    lines = []
    for name, tally in told_of.items():
        told = f"{tally.examples} examples of {len(tally.properties)} properties, {tally.seconds:.1f} s"
        if tally.left_out:
            told += f", {tally.left_out} calls left out"
        outcome = f"FAILED: {', '.join(tally.failed)}" if tally.failed else "passed"
        lines.append(f"{name:<{width}}  {outcome}  ({told})")
    return lines
