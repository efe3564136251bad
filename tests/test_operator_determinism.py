"""A check reports the same on a busy machine, in a large process, and with other hashes of strings."""

from __future__ import annotations

import gc
import time

import numpy as np
import pytest

import viewgrad as vg
from viewgrad.autograd import Function
from viewgrad.testing import Failure, check_operator
from viewgrad.testing.kit.budget import Budget
from viewgrad.testing.kit.constants import strings_in
from viewgrad.testing.kit.cpu_time import collections_timed, cpu_seconds
from viewgrad.testing.kit.operator_under_test import patience


@pytest.mark.slow
def test_a_race_is_found_if_threads_have_to_wait_for_a_processor():
    """Sleeping simulates the other processes of a busy machine: it uses no CPU time."""
    scratch = {}

    class SharedScratch(Function):
        @staticmethod
        def forward(ctx, x):
            scratch["x"] = x.detach().numpy().copy()
            time.sleep(0.15)
            ctx.slope = np.cos(scratch["x"])
            return vg.Tensor(np.sin(x.detach().numpy()))

        @staticmethod
        def backward(ctx, grad):
            return grad * vg.Tensor(ctx.slope)

    with pytest.raises(Failure) as found:
        check_operator(SharedScratch, np.array([1.2, -0.8]), only="threads")
    assert found.value.property == "threads"


def test_garbage_collections_use_up_no_time(monkeypatch):
    """Their cost depends on the objects of the whole process, so they would decide which calls are left out."""
    now = [0.0]
    monkeypatch.setattr(time, "process_time", lambda: now[0])

    def take_long(phase, info):
        now[0] += 10.0 * (phase == "start")

    with collections_timed(), collections_timed():
        gc.callbacks.append(take_long)
        try:
            budget = Budget(2.0)
            gc.collect()
            now[0] += 0.5
        finally:
            gc.callbacks.remove(take_long)
        assert budget.left == pytest.approx(1.5)
    callbacks = list(gc.callbacks)
    with collections_timed():
        assert len(gc.callbacks) == len(callbacks) + 1
    assert gc.callbacks == callbacks


def test_garbage_collections_do_not_end_a_call():
    heap = [[number] for number in range(400_000)]
    with collections_timed():
        began = cpu_seconds()
        with patience(0.1):
            for _ in range(4):
                gc.collect()
        assert cpu_seconds() - began < 0.1
    assert heap


def test_strings_of_a_set_are_sorted():
    words = strings_in(lambda mode: mode in {"linear", "nearest", "cubic", "area", "spline", "edge", "wrap"})
    words.remove("linear")  # Python 3.14 keeps the first one as a constant of its own
    assert words == sorted(words) and len(words) == 6


def test_a_call_that_takes_long_ends_the_checks_of_its_kind():
    """The limit is not taken for a refusal by the checks that try calls nearby, which would each take long again."""
    slow = []

    def growing(x):
        if len(x) > 60:
            slow.append(x)
            end = time.process_time() + 0.3
            while time.process_time() < end:
                pass
        return x * 1.0

    report = check_operator(growing, np.array([1.2, -0.8, 0.3]), only=["gradients", "shapes"])
    assert 1 <= len(slow) <= 8
    assert report.refused["shapes"] >= 1
