"""Loops whose tape is bounded: the same gradients, bit by bit, with few iterations run again."""

import math
import pickle
import tracemalloc

import numpy as onp
import pytest

import viewgrad as vg
import viewgrad.numpy as np
from viewgrad.compiler.source.segments import BOXED, SNAPSHOT, Segments, left_of

EXECUTORS = ["python", pytest.param("numba", marks=pytest.mark.slow)]
LIMITS = (900.0, 6000.0, 100000.0)


def program_of(c):
    return next(program for entries in c.tier.specializations.values() for entry in entries
                for program in entry.programs.values())


def gradients(c, arguments, seed=None):
    leaves = [vg.Tensor(a, requires_grad=True) if isinstance(a, onp.ndarray) and a.dtype == float else a
              for a in arguments]
    value = c(*leaves)
    wanted = [leaf for leaf in leaves if isinstance(leaf, vg.Tensor)]
    found = vg.autograd.grad(value.sum() if seed is None else (value * seed).sum(), wanted, allow_unused=True)
    return value.detach().numpy(), [None if each is None else each.numpy() for each in found]


# -- programs ----------------------------------------------------------------------------------------------------------


def logistic(a, x):
    for _ in range(200):
        x = a * x * (1.0 - x) + 0.1 * np.sin(x)
    return x


def stepped(a, x):
    total = 0.0
    for k in range(401, 3, -2):
        x = a * np.sin(x) + 0.01 * k
        total += x * x
    return total


def table(p, y):
    n = len(y)
    level, trend = np.zeros(n), np.zeros(n)
    level[0] = y[0]
    total, scale = 0.0, 1.0
    for t in range(1, n):
        error = y[t] - level[t - 1] - trend[t - 1]
        scale = scale * (1.0 + 0.1 * np.sin(error))
        level[t] = level[t - 1] + p[0] * np.sin(error * scale)
        trend[t] = trend[t - 1] + p[1] * error * level[t]
        total = total + error * error * trend[t]
    return total + level[n - 1]


def overwritten(p, y):
    state = np.zeros(3)
    state[0] = p[0]
    total = 0.0
    for t in range(len(y)):
        state[1] = state[0] + y[t]
        state[2] = np.sin(state[1]) * state[0]
        state[0] = state[2] * p[1] + 0.5 * state[0]
        total += state[2]
    return total


def heat(u0, rate):
    u = u0 * 1.0
    for _ in range(60):
        u[1:-1] += rate[0] * np.sin(u[2:] - 2 * u[1:-1] + u[:-2])
    return u


def fresh_arrays(u0, rate):
    u = np.sin(u0)
    y = u * 2.0
    for t in range(50):
        y = np.tanh(u) * rate[0] + y * y * 0.1
        u = u + 0.1 * y * u
        if t % 7 == 3:
            u = u * np.cos(u)
    return u * y


def swapped(x, y):
    u, v = x * 1.0, np.sin(y)
    for _ in range(45):
        v[1:] = 0.9 * np.sin(u[:-1]) * v[1:] + 0.1
        u, v = v, u
    return u + 2 * v


def rows(a, b):
    for i in range(1, len(a) * 20):
        row = b[i % len(b)]
        row[1:] = np.sin(row[:-1]) * a[0] + row[1:] * 0.5
        row *= 0.9
    return b


def rows_of_a_copy(a, b0):
    return rows(a, b0 * 1.0)


def leaving_early(a, x):
    count = 0
    last = x * 1.0
    for t in range(1000):
        x = a * np.sin(x) + 1.0
        if t % 3 == 1:
            last = x * last
        count += 1
        if x * 0.01 * t > 1.5:
            break
    return x * count + last


def until_tolerance(a, x):
    steps = 0
    while abs(x * x - a) > 1e-13 and steps < 150:
        x = x - 0.05 * (x * x - a) / (2.0 * x)
        steps += 1
    return x * steps


def by_while(a, x):
    t = 0
    u = x * np.ones(3)
    while t < 137:
        u = np.sin(u) * a + 0.1 * u[0]
        u[1] = u[1] * u[2]
        t += 1
    return u.sum()


def undone_behind(a, y0):
    """Overwrite elements behind the loop that reads them."""
    y = y0 * 1.0
    x = 0.3
    factor = a * 2.0
    for t in range(180):
        x = x + y[t % 5]
        x = np.sin(x) * factor
    y[2] = x
    factor = y[1] * 3.0
    y *= factor
    return (y * x).sum()


def two_loops(a, x):
    for _ in range(70):
        x = np.sin(x) * a
    y = x * x
    for t in range(90):
        for _ in range(t % 4):
            y = y + 0.1 * np.cos(y) * x
        if y > 1.0:
            y = y * 0.5
    return y


def kept_through(a, x):
    """Return variables that are bound in few iterations."""
    s, w = a * 1.0, np.ones(2) * x
    for t in range(180):
        x = np.cos(x) * a + 0.1
        if t == 41:
            s = x * a
            w = np.ones(2) * x * s
        if t == 63:
            w[1] = s * w[0]
    return x * s * w[1] + w[0]


def in_a_conditional(a, x):
    y = x * 1.0
    for _ in range(60):
        h = 1.0
        for k in range(3):
            if y > 0.5:
                h = h * np.sin(y + k)
            else:
                h = h + y * a
        y = 0.3 * h + 0.7 * y
    return y


SCALAR = [onp.array(0.9), onp.array(0.4)]
CASES = [
    (logistic, [onp.array(3.1), onp.array(0.3)]), (stepped, SCALAR),
    (until_tolerance, [onp.array(2.0), onp.array(9.0)]),
    (table, [onp.array([0.4, 0.01]), onp.sin(onp.arange(180.0))]),
    (overwritten, [onp.array([0.4, 0.8]), onp.sin(onp.arange(90.0))]),
    (heat, [onp.cos(onp.arange(9.0)), onp.array([0.2])]), (fresh_arrays, [onp.cos(onp.arange(6.0)), onp.array([0.2])]),
    (swapped, [onp.cos(onp.arange(5.0)), onp.sin(onp.arange(5.0))]), (leaving_early, SCALAR), (by_while, SCALAR),
    (rows_of_a_copy, [onp.array([0.4, 0.8, 0.1]), onp.sin(onp.arange(12.0)).reshape(3, 4)]),
    (undone_behind, [onp.array(0.9), onp.arange(1.0, 6.0)]), (two_loops, SCALAR), (kept_through, SCALAR),
    (in_a_conditional, SCALAR),
]  # fmt: skip


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].__name__)
def test_gradients_match_those_without_a_limit(case, executor):
    f, arguments = case
    free = vg.compile(f, specialize=False, executor=executor)
    gradients(free, arguments)
    value, expected = gradients(free, arguments)
    eager_value, eager = gradients(f, arguments)
    onp.testing.assert_allclose(value, eager_value, rtol=1e-10)
    for one, other in zip(expected, eager):
        onp.testing.assert_allclose(one, other, rtol=1e-8)
    assert program_of(free).bounded is not None, free.explain()
    for limit in LIMITS:
        c = vg.compile(f, specialize=False, executor=executor, tape_limit=limit, check=False)
        for _ in range(2):
            found_value, found = gradients(c, arguments)
            onp.testing.assert_array_equal(found_value, value)
            for one, other in zip(found, expected):
                onp.testing.assert_array_equal(one, other)
        assert not program_of(c).exceeds_limit and "ran eagerly" not in c.explain(), c.explain()
        if limit == LIMITS[0]:
            assert "beyond the limit of 900 bytes" in c.explain()


# -- repeated work -----------------------------------------------------------------------------------------------------


def least_runs(steps, snapshots):
    """Return the minimum number of steps that are run to reverse a loop, by the recursion."""
    known = {}

    def least(n, s):
        if n <= 1:
            return 0
        if s == 1:
            return n * (n - 1) // 2
        if (n, s) not in known:
            known[n, s] = min(m + least(m, s) + least(n - m, s - 1) for m in range(1, n))
        return known[n, s]

    return least(steps, snapshots)


def runs(steps, snapshots):
    if steps <= 1:
        return 0
    if snapshots == 1:
        return steps * (steps - 1) // 2
    left = left_of(steps, snapshots)
    return left + runs(left, snapshots) + runs(steps - left, snapshots - 1)


@pytest.mark.parametrize("snapshots", [2, 3, 5, 9])
def test_positions_of_snapshots_are_optimal(snapshots):
    for steps in range(1, 60):
        assert runs(steps, snapshots) == least_runs(steps, snapshots)


class Machine:
    """A loop that logs its iterations; the tape has room for some of them."""

    def __init__(self, total, room):
        self.total, self.room = total, room
        self.at, self.tape, self.log, self.reversed, self.live = 0, [], [], [], 0

    def advance(self, begin, goal):
        assert self.at == begin
        ran = max(0, min(goal, self.total) - begin)
        self.at += ran
        self.log.append(ran)
        return ran, False

    def record(self, begin, goal):
        assert self.at == begin
        ran = max(0, min(goal, self.total) - begin)
        if len(self.tape) + ran > self.room:
            raise BufferError
        self.tape += range(begin, begin + ran)
        self.at += ran
        return ran, False

    def back(self, begin, goal):
        assert self.tape == list(range(begin, goal))
        self.reversed += self.tape[::-1]
        self.tape, self.at = [], begin

    def restore(self, state):
        (self.at,) = state[0]

    def segments(self, limit):
        def rewind(mark):
            del self.tape[mark[0] :]

        return Segments(
            "loop", {}, limit, self.advance, self.record, lambda: ((self.at,), ()), self.restore, lambda: ((), ()),
            lambda: (len(self.tape), 0, len(self.tape), 0), rewind,
        )


@pytest.mark.parametrize("total", [0, 1, 2, 7, 64, 500])
@pytest.mark.parametrize("limit", [1.0, 1500.0, 6000.0, 1e5])
@pytest.mark.parametrize("is_known", [True, False])
def test_each_iteration_is_reversed_once(total, limit, is_known):
    for room in (1, 5, 10**6):
        machine = Machine(total, room)
        segments = machine.segments(limit)
        segments.forward(total if is_known else None)
        assert segments.total == total
        if limit > 1:
            assert len(segments.snapshots) <= segments.most
        segments.backward(machine.back)
        assert machine.reversed == list(range(total))[::-1]


def test_few_iterations_run_again():
    machine = Machine(10_000, 10**6)
    size = SNAPSHOT + BOXED
    segments = machine.segments(2.1 * math.sqrt(10_000 * 8 * size))  # one snapshot for each segment
    segments.forward(10_000)
    segments.backward(machine.back)
    assert segments.again == 10_001
    machine = Machine(10_000, 10**6)
    segments = machine.segments(4.1 * size)  # many segments, fewer snapshots
    segments.forward(10_000)
    segments.backward(machine.back)
    length, most, units = segments.length, segments.most, -(-10_000 // segments.length)
    assert most < units / 3
    assert segments.again <= length * (least_runs(units, most) + units) + 1


def test_memory_of_a_long_recurrence_is_bounded():
    def long(a, x, n):
        for _ in range(n):
            x = a * x * (1.0 - x)
        return x

    c = vg.compile(long, specialize=False, executor="python", tape_limit=50_000.0)
    c.value_and_grad(onp.array(3.3), 0.4, 30)
    c.value_and_grad(onp.array(3.3), 0.4, 3_000)
    tracemalloc.start()
    c.value_and_grad(onp.array(3.3), 0.4, 20_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 150_000  # 640,000 without a limit
    assert "20000 iterations in segments of" in c.explain()


def test_limit_is_pickled_and_ignored_without_a_loop():
    for wrong in (0, -1.0, float("nan")):
        with pytest.raises(ValueError, match="positive number of bytes"):
            vg.compile(math_free, tape_limit=wrong)
    c = vg.compile(math_free, specialize=False, executor="python", tape_limit=8.0)
    assert pickle.loads(pickle.dumps(c)).tape_limit == 8.0
    x = onp.arange(1.0, 50.0)
    for _ in range(2):
        _, (found,) = gradients(c, [x])
    onp.testing.assert_allclose(found, gradients(math_free, [x])[1][0])


def math_free(x):
    y = x * 1.0
    y[1:] = np.sin(y[1:])
    y[:3] = y[1:4] * y[:3]
    return y * math.pi


@pytest.mark.parametrize("executor", EXECUTORS)
def test_loops_may_have_no_iterations_or_end_in_errors(executor):
    def f(x, n, bad):
        y, kept = x * 1.0, np.zeros(3)
        for t in range(n):
            if t == bad:
                raise ValueError("at t")
            y = np.sin(y) * x + 0.1
            kept[bad if t == 7 and bad > 350 else t % 3] = y * kept[(t + 1) % 3] + 1.0
        t = 0
        while t < n - 400:
            y = y * np.cos(y)
            t += 1
        return y * kept[0] + kept[1]

    c = vg.compile(f, specialize=False, executor=executor, tape_limit=900.0)
    for n in (300, 0, 1, 2, 5, 300, 700, 0):
        found, expected = [gradients(function, [onp.array(0.8), n, -1]) for function in (c, f)]
        onp.testing.assert_allclose(found[0], expected[0], rtol=1e-10)
        onp.testing.assert_allclose(found[1][0], expected[1][0], rtol=1e-8, atol=1e-12)
    with pytest.raises(ValueError, match="at t"):
        gradients(c, [onp.array(0.8), 300, 250])
    leaf = vg.Tensor(0.8, requires_grad=True)
    with pytest.raises(IndexError):
        c(leaf, 300, 400)
    assert "beyond the limit of 900 bytes" in c.explain()
