"""Values of `and` and `or`, and options of library functions, in functions compiled from their source."""

import numpy as np
import pytest

import viewgrad as vg


def by_default(x, y):
    return x * (y or 1.0)


def by_default_integer(x, n):
    n = n or 2
    return x * n


def guarded(x, y):
    return x * (y and 3.0)


def of_three(x, y):
    z = x or y or 7.0
    return z * x + (y or x)


def of_kinds(x, n):
    return x * (n and x and 2.0) + x


def in_conditions(x, y):
    if (x > 0 and y) or not (y or x > 5):
        return x * 2
    return x * y


def bools(x, y):
    f = x > 0 and y > 0
    g = f or x < 3
    return x * f + x * (not f) * 3 + (x if g else y * x)


def with_an_assignment(x, y):
    t = (y > 1) or (x > 0 and (_z := x * 2) > 1)
    return x if t else y * x


def in_a_loop(x, n):
    s = 0.0
    while n and s < 10:
        n = n - 1
        s = s + x * x
    return s


def largest_by_key(x, y):
    v = np.array([x, y, -2.0])
    return max(v, key=abs) * x + min(v, key=lambda t: t * t)


def largest_of_none(x, y):
    v = np.array([x, y])
    return max(v[2:], default=4.0) * x + sum(v, start=y)


def copied_under_a_mask(x, y):
    b = np.array([1.0, 2.0, 3.0]) * y
    np.copyto(b, np.array([1.0, 2.0, 3.0]) * x, where=np.array([True, False, True]))
    np.copyto(b, 2.0 * x, where=b > 2.5)
    return b.sum() * x


def wrapped_diagonal(x, y):
    a = np.zeros((5, 2))
    np.fill_diagonal(a, x, wrap=True)
    return (a * y).sum() * x


PROGRAMS = [
    by_default, by_default_integer, guarded, of_three, of_kinds, in_conditions, bools, with_an_assignment, in_a_loop,
    largest_by_key, largest_of_none, copied_under_a_mask, wrapped_diagonal,
]  # fmt: skip


@pytest.mark.parametrize("executor", ["python", "numba"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_programs_give_the_value_of_the_function_without_a_check(program, executor):
    takes_integers = "n" in program.__code__.co_varnames[:2]
    arguments = [(1.5, 1), (1.5, 3), (1.5, 0), (0.0, 2), (-1.0, 1)]
    compiled = vg.compile(program, executor=executor, specialize=False, check=False)
    for x, y in arguments:
        y = y if takes_integers else float(y)
        value, slope = vg.value_and_grad(compiled)(x, y)
        assert value == pytest.approx(program(x, y), rel=1e-14)
        assert slope == pytest.approx(vg.grad(program)(x, y), rel=1e-14)
