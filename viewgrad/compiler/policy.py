"""The policy after a guard failure: whether to retrace the function, run it eagerly for a while, or give up.

Tracing a function and building its program takes as long as many eager runs, so it is repeated only if the last program
was useful. If control flow takes a different branch in each call, the function runs eagerly for increasingly many
calls.
"""

from __future__ import annotations

import enum
from typing import Final

import attrs

MAX_TRACES: Final = 8  # the maximum number of traces for one combination of argument types
EARLY: Final = 3  # the number of traces without a cool-down
REPAID: Final = 16  # the number of runs of a program that justify another trace
PATIENCE: Final = 2  # the number of consecutive failures after which a program is no longer considered useful
COOLDOWN: Final = 16  # the number of calls in the first cool-down; each trace doubles it


class Action(enum.Enum):
    """The ways in which a call continues after a guard failure."""

    RUN_EAGERLY = "run this call eagerly"
    RETRACE = "retrace"
    COOL_DOWN = "run eagerly for a while, then retrace"
    GIVE_UP = "stay eager"


@attrs.frozen
class Decision:
    """An action, and the number of further calls that run eagerly if it is a cool-down."""

    action: Action
    calls: int = 0


@attrs.frozen
class Usage:
    """The usage of the traces of a function, as counts of runs and failures.

    Arguments:
        traces: the number of traces.
        runs_at_trace: the number of runs of programs when the last trace was made.
        runs_at_failure: the number of runs of programs at the last guard failure.
        failures: the number of guard failures without a run in between.
    """

    traces: int = 0
    runs_at_trace: int = 0
    runs_at_failure: int = 0
    failures: int = 0


def after_trace(usage: Usage, runs: int) -> Usage:
    """Return the usage after another trace, made after `runs` runs of programs."""
    return Usage(usage.traces + 1, runs, runs)


def after_failure(usage: Usage, runs: int, is_by_value: bool) -> tuple[Usage, Decision]:
    """Decide what to do after a guard failure.

    Arguments:
        usage: the usage before the failure.
        runs: the number of runs of programs.
        is_by_value: whether a value that control flow depends on failed, as opposed to captured state.

    Returns:
        The usage including this failure, and the decision.
    """
    failures = 1 if runs > usage.runs_at_failure else usage.failures + 1
    usage = attrs.evolve(usage, failures=failures, runs_at_failure=runs)
    used = runs - usage.runs_at_trace
    is_early, is_last = usage.traces < EARLY, usage.traces >= MAX_TRACES
    if failures < PATIENCE and (is_by_value or not is_early):
        decision = Decision(Action.GIVE_UP if is_last and used >= MAX_TRACES else Action.RUN_EAGERLY)
    elif is_last:
        decision = Decision(Action.GIVE_UP)
    elif used >= REPAID or (is_early and (used or not is_by_value)):
        decision = Decision(Action.RETRACE)
    else:
        decision = Decision(Action.COOL_DOWN, COOLDOWN << usage.traces)
    return usage, decision
