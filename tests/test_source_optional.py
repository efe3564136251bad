"""Variables that are None until they are assigned, compiled from their source."""

import numpy as np
import pytest

import viewgrad as vg

SEEDS = ((6, 0), (9, 1), (4, 2), (7, 3), (12, 4))


def smallest(x, y):
    best, at = None, -1
    for i in range(len(x)):
        if best is None:
            best, at = x[i], i
        elif x[i] < best:
            best, at = x[i], i
    return best * y[at]


def largest(x, y):
    best = None
    for v in x:
        if best is None or v * v > best:
            best = v * v
    return best + y[0]


def differences(x, y):
    before, total = None, 0.0
    for v in x:
        step = 0.0 if before is None else v - before
        total += step * step
        before = v
    return total * y[0]


def reset(x, y):
    q, total = None, 0.0
    for i in range(len(x)):
        if x[i] < 0:
            q = None
        elif q is None:
            q = y[i]
        else:
            q = 0.5 * q + x[i]
            total += q
    return total + (q if q is not None else x[0])


def arrays(x, y):
    a = None
    for i in range(len(x)):
        if x[i] > 0:
            a = y * x[i] if a is None else np.tanh(a) + y
    return (a * a).sum() if a is not None else x[0] * x[1]


def set_in_an_inner_loop(x, y):
    total = 0.0
    for i in range(len(x)):
        q = None
        for j in range(i):
            if y[j] > x[i]:
                q = y[j]
            elif q is not None:
                total += q * x[j]
        if q is None:
            total += x[i]
        else:
            total = 0.9 * total + q
    return total


def reset_where_it_was_shown_to_be_set(x, y):
    q, total = x[0], 0.0
    for i in range(len(x)):
        if q is not None:
            for j in range(3):
                if q is None:
                    total += 1.0
                elif q + y[j] > 0.8:
                    total += q
                    q = None
                else:
                    q = q + y[j]
        else:
            q = x[i]
    return total


def set_in_a_branch(x, y):
    q = None
    if x[0] > 0:
        q = x[1] * 2
    if not q is None:  # noqa: E714
        return q * y[0]
    return y[1] * y[2]


def perhaps_no_iteration(x, y):
    a = None
    for i in range(len(x) - 4):
        a = x[i] * 2 if a is None else a * x[i]
    return y[0] if a is None else a * 1.0


def used_where_it_may_be_none(x, y):
    a = None
    for i in range(len(x)):
        if x[i] > 0.5:
            a = x[i]
    return a * a * y[0]


PROGRAMS = (smallest, largest, differences, reset, arrays, set_in_an_inner_loop, reset_where_it_was_shown_to_be_set,
            set_in_a_branch, perhaps_no_iteration, used_where_it_may_be_none)


def outcome(function, given):
    try:
        value, gradients = vg.func.value_and_grad(function, (0, 1))(*given)
    except TypeError:
        return "TypeError", ()
    return value, gradients


@pytest.mark.parametrize("executor", ["python", pytest.param("numba", marks=pytest.mark.slow)])
@pytest.mark.parametrize("function", PROGRAMS)
def test_values_and_gradients(function, executor):
    if executor == "numba":
        pytest.importorskip("numba")
    compiled = vg.compile(function, executor=executor, specialize=False, check=False)
    for n, seed in SEEDS:
        rng = np.random.default_rng(seed + n)
        given = rng.normal(size=n), rng.normal(size=n)
        expected = outcome(function, given)
        for _ in range(2):
            found = outcome(compiled, given)
            if expected[0] == "TypeError":
                assert found[0] == "TypeError"
                continue
            np.testing.assert_allclose(found[0], expected[0], rtol=1e-10)
            for one, other in zip(found[1], expected[1], strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-11)
    assert "not compiled from its source" not in compiled.explain(), compiled.explain()
    assert len([each for entries in compiled.tier.specializations.values() for each in entries]) == 1


def test_functions_that_sometimes_return_none_are_refused():
    def f(x):
        def first(limit):
            for v in x:
                if v > limit:
                    return v
            return None

        found = first(0.5)
        return x[0] if found is None else found * 2

    compiled = vg.compile(f, executor="python", specialize=False, check=False)
    for n in (2, 5):
        assert vg.func.value_and_grad(compiled)(np.arange(n) * 0.3)[0] == f(np.arange(n) * 0.3)
    assert "several types" in compiled.explain() or "returning None in some branches" in compiled.explain()
