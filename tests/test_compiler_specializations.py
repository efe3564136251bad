"""States of a specialization, and the policy after guard failures."""

import numpy as np
import pytest

import viewgrad as vg
from viewgrad.compiler.cache import (
    Built,
    Failed,
    FellBack,
    NearSingular,
    Running,
    Skipped,
    Specialization,
    State,
    Traced,
    Verified,
    transition,
)
from viewgrad.compiler.policy import MAX_TRACES, Action, Decision, Usage, after_failure, after_trace


def through(*events):
    of = Specialization("key")
    states = [of.state]
    for event in events:
        transition(of, event)
        states.append(of.state)
    return of, states


def test_the_usual_sequence_of_states():
    trace, program = object(), object()
    _, states = through(Traced(trace), Built(trace, program, False), Verified(program), Running(program, None))
    assert states == [State.NEW, State.TRACED, State.TRACED, State.VERIFIED, State.RUNNING]
    _, states = through(Traced(trace), Built(trace, program, True))
    assert states == [State.NEW, State.TRACED, State.VERIFIED]


def test_a_cooldown_ends_with_a_new_trace():
    trace, program = object(), object()
    decision = Decision(Action.COOL_DOWN, 2)
    of, states = through(
        Traced(trace), Built(trace, program, True), Failed("guard", Usage(1), decision), Skipped(), Skipped()
    )
    assert states[-3:] == [State.COOLING_DOWN, State.COOLING_DOWN, State.NEW]
    assert of.trace is None and of.program is None and of.failures == {"guard": 1}


def test_events_of_replaced_programs_are_ignored():
    trace, other, program = object(), object(), object()
    of, _ = through(Traced(other), Built(trace, program, True))
    assert of.state is State.TRACED and of.program is None
    transition(of, Verified(program))
    transition(of, Running(program, None))
    assert of.state is State.TRACED


def test_eager_state_is_final():
    trace, program = object(), object()
    for event in (Traced(trace), Built(trace, program, True), NearSingular(3), Skipped(), FellBack("other")):
        of, _ = through(Traced(trace), FellBack("reason"), event)
        assert of.state is State.EAGER and of.fallback_reason == "reason" and of.trace is None


def test_a_near_singular_matrix_rebuilds_the_program():
    trace, program = object(), object()
    of, states = through(Traced(trace), Built(trace, program, True), NearSingular(7))
    assert states[-1] is State.TRACED and of.trace is trace and of.program is None
    assert of.near_singular_lines == {7}
    transition(of, Traced(trace))
    assert not of.near_singular_lines


@pytest.mark.parametrize(
    ("traces", "used", "failures", "is_by_value", "action"),
    [
        (1, 1, 0, True, Action.RUN_EAGERLY),
        (1, 1, 0, False, Action.RETRACE),
        (1, 0, 1, True, Action.COOL_DOWN),
        (1, 5, 1, True, Action.RETRACE),
        (5, 5, 1, True, Action.COOL_DOWN),
        (5, 20, 1, False, Action.RETRACE),
        (MAX_TRACES, 20, 1, True, Action.GIVE_UP),
        (MAX_TRACES, 20, 0, True, Action.GIVE_UP),
        (MAX_TRACES, 2, 0, True, Action.RUN_EAGERLY),
    ],
)
def test_policy(traces, used, failures, is_by_value, action):
    runs = 100 + used
    usage = Usage(traces, 100, runs if failures else 100, failures)
    found, decision = after_failure(usage, runs, is_by_value)
    assert decision.action is action
    assert found.runs_at_failure == runs and found.traces == traces
    assert after_trace(found, runs) == Usage(traces + 1, runs, runs)


def test_cooldowns_get_longer():
    calls = [after_failure(Usage(traces, 0, 0, 1), 0, True)[1].calls for traces in range(1, 5)]
    assert calls == [32, 64, 128, 256]


def test_states_of_a_function_with_a_branch():
    compiled = vg.compile(lambda x: x.sum() * (2.0 if x[0] > 0 else 3.0), executor="python")
    up, down = vg.Tensor([1.0, 2.0]), vg.Tensor([-1.0, 2.0])
    states = []
    for x in (up, up, up, down, up, down, down, down, down):
        np.testing.assert_allclose(compiled(x), compiled.function(x))
        states.append(compiled.specializations[0].state)
    assert states == [
        *(State.TRACED, State.VERIFIED, State.RUNNING, State.RUNNING, State.RUNNING, State.RUNNING),
        *(State.TRACED, State.VERIFIED, State.RUNNING),
    ]
