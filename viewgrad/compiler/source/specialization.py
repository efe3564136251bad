"""The specializations of the source tier, and the events that change them.

`transition` is the only function that changes a specialization, apart from the count of its runs and the generated
check of its guards.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final

import attrs

from ..guards.closure_guard import ClosureGuard
from ..guards.identity_checks import FEW
from .argument_types import is_same, objects_in
from .build import Program
from .objects import guards_hold, quick_check
from .read import Source
from .runtime import Bailout

MAX_FAILURES: Final = 8  # the number of consecutive failed runs after which calls run eagerly


@attrs.define(eq=False)
class SourceSpecialization:
    """The programs of a function for one combination of argument types and one captured state.

    Attributes:
        source: the program as read; None if calls run eagerly.
        reason: the reason for eager calls.
        guard: the captured state, excluding inputs.
        objects: the functions and objects among the arguments, which must not change.
        programs: the programs, by the inputs that have gradients and the build options.
        wraps: whether indices may be negative.
        lowers: whether array operations in loops become loops over elements.
        verified: the sets of inputs for which the gradients have been verified.
        leaf_types: the types of the leaves of the results.
        runs: the number of runs.
        failures: the numbers of failed runs, by reason.
        failures_in_row: the number of consecutive failed runs.
        runs_at_failure: the number of runs at the last failure.
        quick: a generated check of the guards, created after some runs.
    """

    source: Source | None
    reason: str = ""
    guard: ClosureGuard | None = None
    objects: Sequence[Any] = ()
    programs: dict[Any, Program] = attrs.Factory(dict)
    wraps: bool = False
    lowers: bool = True
    verified: set[Any] = attrs.Factory(set)
    leaf_types: list[Any] | None = None
    runs: int = 0
    failures: Counter[str] = attrs.Factory(Counter)
    failures_in_row: int = 0
    runs_at_failure: int = 0
    quick: Callable[[Sequence[Any]], bool] | None = None

    def holds(self, given: Sequence[Any]) -> bool:
        """Return whether the captured state is that of the program; always true for an eager specialization.

        Arguments:
            given: the arguments.
        """
        if self.source is None or self.guard is None:
            return True
        if self.objects:
            now = [each for value in given for each in objects_in(value)]
            if len(now) != len(self.objects) or not all(map(is_same, now, self.objects)):
                return False
        quick = self.quick
        if quick is None and self.runs > FEW:
            quick = self.quick = quick_check(self.source.guards)
        if quick is None or not quick(given):
            return guards_hold(self.source.guards, given) and self.guard.unchanged()
        return self.guard.unchanged()


@attrs.frozen(eq=False)
class Built:
    """A program was built for the inputs `wanted`."""

    wanted: tuple[int, ...]
    program: Program


@attrs.frozen(eq=False)
class Verified:
    """The program for the inputs `wanted` agreed with the function, whose results have leaves of the given types."""

    wanted: tuple[int, ...]
    leaf_types: list[Any]


@attrs.frozen(eq=False)
class Inconclusive:
    """The first call could not be compared with the function."""

    reason: str


@attrs.frozen(eq=False)
class NegativeIndices:
    """A negative index, counted from the end, was encountered."""


@attrs.frozen(eq=False)
class Failed:
    """A run failed; `is_native` states whether it ran in a kernel."""

    error: Exception
    is_native: bool


@attrs.frozen(eq=False)
class FellBack:
    """Calls run eagerly from now on."""

    reason: str


Event = Built | Verified | Inconclusive | NegativeIndices | Failed | FellBack


def transition(of: SourceSpecialization, event: Event) -> None:
    """Change a specialization after an event."""
    match event:
        case Built(wanted, program):
            of.programs[wanted, of.wraps, of.lowers] = program
        case Verified(wanted, leaf_types):
            of.verified.add(wanted)
            of.leaf_types = leaf_types
        case Inconclusive(reason):
            of.failures[reason] += 1
        case NegativeIndices():
            of.wraps = True
        case Failed(error, is_native):
            of.failures[failure_text(error)] += 1
            of.failures_in_row = of.failures_in_row + 1 if of.runs == of.runs_at_failure else 1
            of.runs_at_failure = of.runs
            if isinstance(error, IndexError) and not of.wraps:
                of.wraps, of.failures_in_row = True, 0
            elif isinstance(error, (RuntimeError, Bailout)) and of.lowers and is_native:
                of.lowers, of.failures_in_row = False, 0  # arrays may be broadcast unexpectedly
            elif of.failures_in_row >= MAX_FAILURES:
                transition(of, FellBack(f"{MAX_FAILURES} runs in a row failed: {failure_text(error)}"))
        case FellBack(reason):
            of.source, of.reason = None, reason


def failure_text(error: Exception) -> str:
    """Return the reason for a failed run."""
    if isinstance(error, Bailout):
        return "a check failed"
    return f"{type(error).__name__} {error}".strip()


def described(of: SourceSpecialization, name: str, executor: str) -> str:
    """Describe what was compiled, and the reasons for eager calls, for `explain`."""
    lines = [name]
    if of.source is None:
        lines.append(f"  not compiled from its source: {of.reason}")
    else:
        lines.append(f"  compiled from its source, {executor} executor, for all lengths and branches")
        for program in of.programs.values():
            lines += _program_lines(program)
    lines += [f"  ran eagerly {count} times: {reason}" for reason, count in of.failures.items()]
    return "\n".join(lines)


def _program_lines(program: Program) -> list[str]:
    names = [program.inputs[n].name for n in program.wanted]
    lines = [f"  gradient of {', '.join(names)}" if names else "  no gradient is needed"]
    if names:
        if program.notes:
            lines.append("  tape:")
            lines += [f"    line {line}: {name}" for line, name in dict.fromkeys(program.notes)]
        else:
            lines.append("  tape: nothing")
    if program.bounded is not None and program.bounded.cache_info().currsize:
        reports = program.bounded().reports
        lines += [f"  {name}: beyond the limit of {program.limit:.0f} bytes: {text}" for name, text in reports.items()]
    if program.exceeds_limit:
        lines.append("  the tape exceeds its limit, but there is no outermost loop to run in segments")
    return lines
