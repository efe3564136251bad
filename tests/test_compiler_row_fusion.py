"""Row fusion in the Python backend: values computed where they are used, and over runs of adjacent elements."""

import re
import warnings

import numpy as np
import pytest

import viewgrad as vg
from viewgrad.compiler.backends import numpy_codegen, row_fusion


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Treat small arrays like large ones."""
    monkeypatch.setattr(row_fusion, "LEAST", 4)
    monkeypatch.setattr(row_fusion, "WORTH_A_COPY", 1)
    monkeypatch.setattr(row_fusion, "MOST", 10.0)
    monkeypatch.setattr(numpy_codegen, "WORTH_A_BUFFER", 4)


def compared(function, *arrays, calls=4):
    """Return a compiled function after checking that its values and gradients equal the function's bit by bit."""
    compiled = vg.compile(function, executor="python")
    for call in range(calls):
        given = [array * (1.0 + 0.25 * call) for array in arrays]
        value, gradients = vg.func.value_and_grad(function, tuple(range(len(arrays))))(*given)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found, mine = vg.func.value_and_grad(compiled, tuple(range(len(arrays))))(*given)
        np.testing.assert_array_equal(np.asarray(found), np.asarray(value))
        for one, other in zip(mine, gradients, strict=True):
            np.testing.assert_array_equal(np.asarray(one), np.asarray(other))
    assert "compiled, python" in compiled.explain()
    return compiled


def heat(u):
    u = u.clone()
    for _ in range(7):
        u[1:-1, 1:-1] += 0.1 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])
    return (u * u).sum()


def test_heat_equation_step_has_seven_forward_and_eight_backward_runs():
    compiled = compared(heat, np.random.default_rng(0).random((6, 8)))
    forward, backward = compiled.source().split("# backward")
    runs = [len(re.findall(r"= np_\w+\(.*_run\)|w [+-]= q", text)) for text in (forward, backward)]
    assert runs == [7, 8]
    assert "[...] = v" not in forward.partition("for ")[2]  # the computed rows are not copied
    program = compiled.specializations[0].program
    kernels = program.code.forward_kernel, program.code.backward_kernel
    assert [kernel.scratch for kernel in kernels] == [2 * 4 * 8 + 6 * 8] * 2  # two runs, and one whole array


def test_gaps_between_rows_keep_their_values_including_signs_of_zeros():
    def moved(u, v):
        u, v = u.clone(), v.clone()
        for _ in range(4):
            u[:, 1:-1] += 0.5 * v[:, 1:-1]
            v[:, 1:-1] = v[:, 1:-1] - 0.5 * u[:, 1:-1]
        return (u[:, 1:-1] * v[:, 1:-1]).sum()

    rng = np.random.default_rng(1)
    u, v = rng.normal(size=(2, 5, 7))
    u[:, 0], v[:, 0], u[:, -1], v[:, -1] = -0.0, np.inf, -np.inf, -0.0
    compiled = compared(moved, u, v)
    assert "-= q" in compiled.source() and "+= q" in compiled.source()

    def ends(u, v):
        u = u.clone()
        for _ in range(4):
            u[:, 1:-1] += 0.5 * v[:, 1:-1]
        return u

    compiled = vg.compile(ends, executor="python")
    for _ in range(3):
        found = compiled(vg.Tensor(u), vg.Tensor(v))
    expected = ends(vg.Tensor(u), vg.Tensor(v))
    assert found.numpy().tobytes() == expected.numpy().tobytes()


def test_runs_of_three_dimensions():
    def relaxed(u):
        u = u.clone()
        inner = slice(1, -1)
        for _ in range(3):
            around = u[2:, inner, inner] + u[:-2, inner, inner] + u[inner, 2:, inner] + u[inner, inner, :-2]
            u[inner, inner, inner] = u[inner, inner, inner] - 0.2 * around
            u[inner, inner, inner] += -around * around
        return (u * u).sum()

    compiled = compared(relaxed, 0.3 * np.random.default_rng(2).random((5, 6, 4)))
    assert "-= q" in compiled.source()


def test_value_with_other_uses_is_materialized():
    def mixed(u, w):
        u = u.clone()
        total = 0.0
        for _ in range(3):
            change = u[1:, 1:] - u[:-1, :-1]
            product = change * u[1:, 1:]
            total = total + np.exp(change).sum() + (product * w).sum()
            u[1:, 1:] += product * 0.1
            u[:-1, :-1] = product
        return total + u.sum()

    compared(mixed, np.random.default_rng(3).random((4, 5)), np.random.default_rng(4).random((3, 4)))


def test_value_is_computed_into_its_overlapping_target_window():
    def shifted(x):
        x = x.clone()
        for _ in range(5):
            x[1:] = x[1:] + x[:-1]
            x[:-1] = x[1:] * 0.5
        return (x * x).sum()

    compiled = compared(shifted, np.random.default_rng(5).random(9))
    assert "np_add(" in compiled.source()
    forward = compiled.source().partition("# backward")[0]
    assert "[...] = v" not in forward.partition("for ")[2]


def test_buffers_of_windows_are_used_again_by_later_runs(monkeypatch):
    monkeypatch.setattr("viewgrad.compiler.arena.LEAST", 1)

    def filled(x):
        y = vg.zeros(x.shape)
        for i in range(len(x)):
            y[i] = np.tanh(x[i]) * 2.0
        return (y * y).sum()

    compiled = compared(filled, np.random.default_rng(6).random((5, 6)))
    program = compiled.specializations[0].program
    rooms = [*program.plan.arenas, *program.plan.gradient_arenas, *filter(None, program.code.scratch.values())]
    assert len(rooms) == 4 and all(1 <= len(room._spare) <= 2 for room in rooms)
    assert not program.plan.gradients and [base.size for base in program.plan.buffers] == [1]
