"""`min` and `max` of Python in compiled programs."""

import builtins
import threading

import numpy as np
import pytest

import viewgrad as vg
from viewgrad.autograd import grad

MIN, MAX = min, max


def edit_distance(a, b):
    d = vg.zeros((len(a) + 1, len(b) + 1))
    for i in range(1, len(a) + 1):
        d[i, 0] = d[i - 1, 0] + a[i - 1] ** 2
    for j in range(1, len(b) + 1):
        d[0, j] = d[0, j - 1] + b[j - 1] ** 2
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            change = d[i - 1, j - 1] + abs(a[i - 1] - b[j - 1])
            d[i, j] = min(d[i - 1, j] + a[i - 1] ** 2, d[i, j - 1] + b[j - 1] ** 2, change)
    return d[len(a), len(b)]


def clipped(a, b):
    total = vg.zeros(1)
    for i in range(len(a)):
        total[0] += max(0, a[i] * b[i]) + max([a[i], 0.5, b[i]]) * min(x for x in (b[i], a[i]))
        total[0] += min(a, key=lambda x: -x) + max((), default=1.0) + max(i, 3) * a[i]
    return total[0]


def outcome(f, *arrays):
    leaves = [vg.Tensor(array, requires_grad=True) for array in arrays]
    value = f(*leaves)
    return [value.detach().numpy(), *(g.numpy() for g in grad(value, leaves))]


@pytest.mark.parametrize("program", [edit_distance, clipped])
@pytest.mark.parametrize("executor", ["python", "numba"])
def test_min_and_max_compile_to_selections(program, executor):
    if executor == "numba":
        pytest.importorskip("numba")
    compiled = vg.compile(program, executor=executor)
    rng = np.random.default_rng(0)
    for turn in range(6):
        a, b = rng.normal(size=(2, 9)) if turn < 5 else np.zeros((2, 9))  # ties at last
        if program is clipped:
            a[0] = a.max() + 1  # found by a key, so control flow depends on it
        for found, wanted in zip(outcome(compiled, a, b), outcome(program, a, b), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-12)
    entry = compiled.specializations[0]
    assert entry.program is not None
    assert entry.usage.traces <= (1 if program is edit_distance else 2)


def test_min_and_max_of_nan_match_eager():
    compiled = vg.compile(lambda x: vg.stack([min(x[0], x[1]), max(x[1], x[0]), min(2.0, x[1])]), executor="python")
    for values in ([1.0, 2.0], [3.0, 1.0], [np.nan, 1.0], [1.0, np.nan], [np.inf, -np.inf]):
        x = vg.Tensor(values)
        expected = [min(*values), max(*reversed(values)), min(2.0, values[1])]
        np.testing.assert_array_equal(compiled(x).numpy(), expected)


def test_min_and_max_are_restored():
    seen = []

    def program(x):
        other = threading.Thread(target=lambda: seen.append((min(3, 2), max([1.0, 5.0]), min("ba"))))
        other.start()
        other.join()
        assert max("b", "a") == "b"
        assert type(min(2, 3)) is int
        with pytest.raises(ValueError, match="empty"):
            max([])
        with pytest.raises(ValueError, match=r"truth value|ambiguous"):
            min(x, x + 1)
        if x[0] > 5:
            raise KeyError
        return min(x[0], x[1])

    compiled = vg.compile(program, executor="python")
    assert compiled(vg.Tensor([1.0, 2.0])).item() == 1.0
    assert seen == [(2, 5.0, "a")]
    assert (builtins.min, builtins.max) == (MIN, MAX)
    with pytest.raises(KeyError):
        vg.compile(program, executor="python")(vg.Tensor([6.0, 2.0]))
    assert (builtins.min, builtins.max) == (MIN, MAX)
