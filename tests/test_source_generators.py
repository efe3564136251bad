"""Loops over generator functions, compiled from their source."""

import numpy as np
import pytest

import viewgrad as vg

SCALE = 2


def pairs(n, step=1):
    for i in range(0, n - 1, step):
        yield i, i + 1


def windows(a, width):
    i = 0
    while i + width <= len(a):
        yield a[i : i + width]
        i += 1


def scaled(a):
    for v in a:
        if v > 0:
            yield v * SCALE
        else:
            yield -v


def ends_twice(a):
    yield a[0]
    for v in a:
        if v < 0:
            continue
        if v > 1.5:
            break
        yield v
    yield a[-1]


def products(x, y):
    total = 0.0
    for i, j in pairs(len(x)):
        total += x[i] * x[j]
    return total


def of_windows(x, y):
    total = 0.0
    for part in windows(x, 3):
        total += part.max() * part[0]
    return total + y[0]


def several_places(x, y):
    total = 0.0
    for v in scaled(x):
        total = 0.5 * total + v * v
    for v in ends_twice(y):
        if v > 1:
            continue
        total = 0.5 * total + v
    return total


def jumps(x, y):
    total = 0.0
    for i, j in pairs(len(x), step=2):
        if x[i] > 0.8:
            break
        total += x[i] * y[j]
    for i, j in pairs(len(x)):
        if x[i] > 0.5:
            return x[j] * 2 + total
    return y[0]


def variables_of_its_own(x, y):
    i, n, total = 3, 2, 0.0
    for a, _ in pairs(len(x)):
        for _, d in pairs(n + 1):
            total += x[a] * y[d] * i
        i = i + 1
    return total + i


def nested_and_writing(x, y):
    z, s, total = x.copy(), 2.0, 0.0

    def halved(a):
        for q in range(len(a)):
            yield a[q] * s
            old = a[q]
            a[q] = old * 0.5

    for v in halved(z):
        total += v * z[0]
        z[-1] += v
        s = s * 0.9
    return total + z.sum()


def no_iteration(x, y):
    total = 0.0
    for part in windows(x, 20):
        total += part[0]
    return total + x[0]


TAKEN = (products, of_windows, several_places, jumps, variables_of_its_own, nested_and_writing, no_iteration)


def jump_behind_another_yield(x, y):
    total = 0.0
    for v in scaled(x):
        if v > 1:
            break
        total += v
    return total + y[0]


def inside_enumerate(x, y):
    total = 0.0
    for i, part in enumerate(windows(x, 2)):
        total += part.sum() * i
    return total + y[0]


def hidden_global(x, y):
    SCALE = 3.0
    total = 0.0
    for v in scaled(x):
        total += v * SCALE
    return total + y[0]


REFUSED = (jump_behind_another_yield, inside_enumerate, hidden_global)


@pytest.mark.parametrize("executor", ["python", pytest.param("numba", marks=pytest.mark.slow)])
@pytest.mark.parametrize("function", [*TAKEN, *REFUSED])
def test_values_and_gradients(function, executor):
    if executor == "numba":
        pytest.importorskip("numba")
    compiled = vg.compile(function, executor=executor, specialize=False, check=False)
    for n, seed in ((6, 0), (9, 1), (4, 2), (7, 3), (12, 4)):
        rng = np.random.default_rng(seed)
        given = rng.normal(size=n), rng.normal(size=n)
        value, gradients = vg.func.value_and_grad(function, (0, 1))(*given)
        for _ in range(2):
            found, slopes = vg.func.value_and_grad(compiled, (0, 1))(*given)
            np.testing.assert_allclose(found, value, rtol=1e-10)
            for one, other in zip(slopes, gradients, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-11)
    assert ("not compiled from its source" in compiled.explain()) is (function in REFUSED), compiled.explain()
