"""NumPy arrays in traced programs: rows of tables, overlapping windows, and elements changed by NumPy."""

import numpy as np
import pytest

import viewgrad as vg
from viewgrad.symbolic import function_of

PROGRAMS = []
program = PROGRAMS.append


def table():
    return np.arange(12.0).reshape(4, 3) + 1


@program
def rows_of_a_table(x):
    rows, total = table(), x * 1
    for row in rows:
        total = total + row
    return total


@program
def rows_that_are_kept(x):
    rows, total = table(), x * 1
    kept = [vg.from_numpy(row) for row in rows]
    kept[1][...] = 5 * x
    for row in kept:
        total = total + row
    return total


@program
def rows_in_another_order(x):
    rows, total = np.asfortranarray(table()), x * 1
    for i in range(4):
        total = total * rows[::-1][i, ::-1] + rows[i]
    return total


@program
def windows_that_overlap(x):
    rows = table()
    upper, lower = vg.from_numpy(rows[:3]), vg.from_numpy(rows[1:])
    upper[...] = x
    return lower + x


@program
def a_window_after_a_write_through_another(x):
    rows = table()
    upper = vg.from_numpy(rows[:2])
    upper[...] = x
    return vg.from_numpy(rows[1:]) + x


@program
def transposed_windows(x):
    rows = table()
    return x @ rows[:2].T + x @ rows[2:].T + x @ rows[1:3].T


@program
def elements_that_numpy_changes(x):
    phase, total = np.zeros(3), x * 1
    for _ in range(3):
        phase += 0.5
        total = total + x * phase
    return total


@program
def rows_that_numpy_changes(x):
    rows, total = table(), x * 1
    for i in range(4):
        rows[i] += 1
        total = total * rows[i] + rows[i - 1]
    return total


@program
def parts_of_complex_numbers(x):
    z = table() * (1 + 2j)
    return x * z[0].imag + x * z[1].real + z[2].imag


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda function: function.__name__)
def test_captured_arrays_are_unchanged(function):
    traced = function_of(function, np.array([1.0, 2.0, 3.0]))
    x = np.array([4.0, -2.0, 0.5])
    np.testing.assert_allclose(traced(x).numpy(), function(vg.Tensor(x)).numpy(), rtol=1e-14)


def test_argument_is_a_row_of_a_captured_table():
    rows = table()
    traced = function_of(lambda x: x + rows[2] * rows[1], rows[0])
    assert traced(np.zeros(3)).tolist() == [28.0, 40.0, 54.0]
    traced = function_of(lambda x: x + rows[1], rows[:2])
    assert traced(rows[:2]).tolist() == (rows[:2] + rows[1]).tolist()
    traced = function_of(lambda x: x.sum() + rows[1:3], rows[:2])
    assert traced(np.zeros((2, 3))).tolist() == rows[1:3].tolist()


def test_argument_is_a_row_of_a_table_that_is_looked_up_by_name(monkeypatch):
    monkeypatch.setitem(globals(), "ROWS", table())
    rows = globals()["ROWS"]
    traced = function_of(lambda x: x.sum() + globals()["ROWS"][1:3], rows[:2])
    assert traced(np.zeros((2, 3))).tolist() == rows[1:3].tolist()
    assert traced(rows[:2]).tolist() == (rows[:2].sum() + rows[1:3]).tolist()
