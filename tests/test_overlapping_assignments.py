"""Assignments of a tensor to itself: every way to run a program reads the values before the write."""

from __future__ import annotations

import random

import numpy as np
import pytest

import viewgrad as vg
from viewgrad.autograd import grad

START = np.arange(1.0, 17.0).reshape(4, 4) ** 1.5


def drawn_index(rng, count):
    start = rng.randint(0, 4 - count)
    return rng.choice([slice(start, start + count), slice(start + count - 1, start - 1 if start else None, -1)])


def drawn_windows(rng):
    """Draw two functions that return windows of equal shape, possibly transposed, of a 4 x 4 matrix."""
    rows, columns = rng.randint(1, 4), rng.randint(1, 4)

    def window(rows, columns):
        turn = rng.random() < 0.4
        one, other = (columns, rows) if turn else (rows, columns)
        index = (drawn_index(rng, one), drawn_index(rng, other))
        return lambda t: t[index].T if turn else t[index]

    if rng.random() < 0.3:  # a row or a column, which may be spread over several
        place = rng.randint(0, 3)
        source = (lambda t: t[place, :columns]) if rng.random() < 0.5 else (lambda t: t[:columns, place])
        return window(rows, columns), source
    return window(rows, columns), window(rows, columns)


def drawn_program(rng):
    steps = []
    for _ in range(rng.randint(1, 4)):
        target, source = drawn_windows(rng)
        mask = np.array([rng.random() < 0.7 for _ in range(16)]).reshape(4, 4)
        steps.append((target, source, rng.choice(["assign", "assign", "copyto", "add", "mask"]), mask))

    def program(v, copied=lambda window: window):
        t = v * 1.0
        for target, source, how, mask in steps:
            values = copied(source(t))
            if how == "add":
                window = target(t)
                window += values
            elif how == "copyto":
                np.copyto(target(t), values)
            elif how == "mask":
                t[mask] = copied(t.T)[mask] if mask.all() else copied(t[::-1])[mask]
            else:
                target(t)[...] = values
        return t

    return program


def check(program, executor="python"):
    v = vg.Tensor(START, requires_grad=True)
    expected = program(START, lambda window: window.copy())
    weights = np.cos(np.arange(16.0)).reshape(4, 4)

    def slope(t):
        return grad((t * weights).sum(), v)[0].tolist()

    eager = program(v)
    assert eager.detach().tolist() == expected.tolist()
    traced = vg.symbolic.function_of(lambda v: program(v), v)(v)
    assert traced.detach().tolist() == expected.tolist()
    compiled = vg.compile(lambda v: program(v), executor=executor)
    for _ in range(3):
        found = compiled(v)
        assert found.detach().tolist() == expected.tolist()
    wanted = np.round(slope(eager), 9).tolist()
    assert np.round(slope(traced), 9).tolist() == wanted
    assert np.round(slope(found), 9).tolist() == wanted


def test_column_assigned_from_overlapping_row():
    def program(v, copied=lambda window: window):
        t = v * 1.0
        t[:, 2] = copied(t[1])
        return t

    check(program)


@pytest.mark.parametrize("seed", range(10))
def test_drawn_assignments_that_overlap(seed):
    check(drawn_program(random.Random(seed)))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10, 110))
def test_more_drawn_assignments_that_overlap(seed):
    check(drawn_program(random.Random(seed)))
