"""Pickles of compiled functions contain traces, which are used only if the function is the same."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pickled_programs
import pytest

import viewgrad as vg
from viewgrad.compiler import api

FOLDER = Path(__file__).parent


def given():
    x = vg.Tensor(np.sin(np.arange(12.0)), requires_grad=True)
    return x, vg.Tensor(0.7, requires_grad=True)


def recorded():
    compiled = vg.compile(pickled_programs.smoothed, executor="python")
    compiled(*given())
    return compiled


def records_of(compiled, monkeypatch, *args):
    """Return how often a compiled function traces in two calls, which agree with the function."""
    made = []
    capture = api.capture
    monkeypatch.setattr(api, "capture", lambda *a, **k: made.append(a) or capture(*a, **k))
    for _ in range(2):
        value = compiled(*args)
        np.testing.assert_allclose(value.detach().numpy(), compiled.function(*args).detach().numpy())
        expected = compiled.function(*args)
        for found, wanted in zip(vg.autograd.grad(value, args), vg.autograd.grad(expected, args)):
            np.testing.assert_allclose(found.numpy(), wanted.numpy())
    monkeypatch.undo()
    return len(made)


@pytest.mark.parametrize("again", [lambda c: pickle.loads(pickle.dumps(c)), copy.deepcopy])
def test_a_pickled_function_is_not_retraced(again, monkeypatch):
    other = again(recorded())
    assert records_of(other, monkeypatch, *given()) == 0
    assert other.specializations[0].program is not None and other.specializations[0].is_verified


def test_an_unused_trace_is_pickled_again(monkeypatch):
    other = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(recorded()))))
    assert records_of(other, monkeypatch, *given()) == 0


def test_other_argument_types_are_traced(monkeypatch):
    x, w = given()
    shorter = vg.Tensor(x.detach().numpy()[:9], requires_grad=True)
    assert records_of(pickle.loads(pickle.dumps(recorded())), monkeypatch, shorter, w) == 1


@pytest.mark.parametrize(("name", "value"), [("RATE", 0.25), ("WEIGHTS", np.ones(12)), ("RATE", vg.Tensor(0.5))])
def test_a_function_with_other_captured_state_is_retraced(name, value, monkeypatch):
    pickled = pickle.dumps(recorded())
    monkeypatch.setattr(pickled_programs, name, value)
    other = pickle.loads(pickled)
    x, w = given()
    for _ in range(3):
        found, expected = other(x, w), pickled_programs.smoothed(x, w)
        np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy())


def test_a_trace_is_used_in_another_process():
    compiled = recorded()
    wanted = pickled_programs.smoothed(*given()).detach().item()
    program = (
        "import pickle, sys, numpy as np, viewgrad as vg\n"
        "from viewgrad.compiler import api\n"
        "compiled = pickle.load(sys.stdin.buffer)\n"
        "api.capture = None  # tracing fails\n"
        "x = vg.Tensor(np.sin(np.arange(12.0)), requires_grad=True)\n"
        "for _ in range(3):\n"
        "    value = compiled(x, vg.Tensor(0.7, requires_grad=True))\n"
        "print(value.detach().item(), compiled.specializations[0].program is not None)\n"
    )
    path = f"{FOLDER.parent}:{FOLDER}"
    found = subprocess.run(
        [sys.executable, "-c", program],
        input=pickle.dumps(compiled),
        capture_output=True,
        check=True,
        env={"PYTHONPATH": path, "PATH": ""},
    )
    value, has_program = found.stdout.decode().split()
    assert float(value) == pytest.approx(wanted) and has_program == "True"
