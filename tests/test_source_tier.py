"""Compiled functions by the source tier: one program for all lengths, guards, errors, gradients of every order."""

import dataclasses
import importlib
import linecache
import math
import pickle
import threading
import warnings

import numpy as onp
import pytest

import viewgrad as vg
import viewgrad.numpy as np
from viewgrad.compiler.source import tapes

EXECUTORS = ["python", pytest.param("numba", marks=pytest.mark.slow)]
LENGTHS = (7, 2, 11, 5, 30)


def compiled(f, **options):
    return vg.compile(f, specialize=False, **options)


def programs_of(c):
    return [p for known in c.tier.specializations.values() for each in known for p in each.programs.values()]


def is_taken(c):
    return all(entry.source is not None for entries in c.tier.specializations.values() for entry in entries)


def agree(f, arguments, executor, counts_from_end=False):
    """Compare a function with its compiled form in several calls. The first call is verified."""
    c = compiled(f, executor=executor)
    for given in arguments:
        for _ in range(2):
            mine, theirs = [
                [vg.Tensor(a, requires_grad=True) if isinstance(a, onp.ndarray) and a.dtype == float else a
                 for a in given]
                for _ in range(2)
            ]
            value, expected = c(*mine), f(*theirs)
            onp.testing.assert_allclose(onp.asarray(value.detach()), onp.asarray(expected.detach()), rtol=1e-10)
            leaves = [a for a in mine if isinstance(a, vg.Tensor)]
            others = [a for a in theirs if isinstance(a, vg.Tensor)]
            seed = vg.Tensor(onp.cos(onp.arange(expected.size)).reshape(expected.shape))
            found = vg.autograd.grad(value, leaves, seed, allow_unused=True)
            wanted = vg.autograd.grad(expected, others, seed, allow_unused=True)
            for leaf, one, other in zip(leaves, found, wanted):
                a, b = [onp.zeros(leaf.shape) if each is None else each.numpy() for each in (one, other)]
                onp.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-10)
    assert is_taken(c), c.explain()
    assert len(programs_of(c)) == 1 + counts_from_end
    return c


# -- programs ----------------------------------------------------------------------------------------------------------


def holt_winters(p, y):
    n = len(y)
    level, trend, season = np.zeros(n), np.zeros(n), np.zeros(n + 4)
    level[0] = y[0]
    total = 0.0
    for t in range(1, n):
        error = y[t] - (level[t - 1] + trend[t - 1] + season[t])
        total = total + error * error
        level[t] = p[0] * (y[t] - season[t]) + (1 - p[0]) * (level[t - 1] + trend[t - 1])
        trend[t] = p[1] * (level[t] - level[t - 1]) + (1 - p[1]) * trend[t - 1]
        season[t + 4] = p[2] * (y[t] - level[t]) + (1 - p[2]) * season[t]
    return total


def soft_dtw(costs):
    n = len(costs)
    r = np.full((n + 1, n + 1), 1e3)
    r[0, 0] = 0.0
    for i in range(1, n + 1):
        for j in range(1, n + 1):
            total = np.exp(-r[i - 1, j - 1]) + np.exp(-r[i - 1, j]) + np.exp(-r[i, j - 1])
            r[i, j] = costs[i - 1, j - 1] - np.log(total + 1e-300)
    return r[n, n]


def lu(a0):
    n = len(a0)
    a = a0.copy()
    for k in range(n - 1):
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
            for j in range(k + 1, n):
                a[i, j] -= a[i, k] * a[k, j]
    s = 0.0
    for i in range(n):
        s += np.log(abs(a[i, i]))
    return s


def heat(u0, rate):
    u = u0.copy()
    for _ in range(8):
        u[1:-1] += rate * (u[2:] - 2 * u[1:-1] + u[:-2])
    return u


def bouncing(x):
    height, speed, bounces = 1.0, x[0], 0
    for t in range(len(x)):
        speed = speed - 0.3 + 0.1 * x[t]
        height = height + 0.2 * speed
        if height < 0.0:
            height = -height
            speed = -0.8 * speed
            bounces += 1
            if bounces > 3:
                break
    return height * speed + bounces


def square_root(a):
    x, steps = a[0], 0
    while abs(x * x - a[0]) > 1e-12 and steps < 50:
        x = 0.5 * (x + a[0] / x)
        steps += 1
    return x * a[1]


def swapped(x):
    u, v = x * 1.0, np.sin(x)
    for _ in range(5):
        v[1:] = 0.5 * u[:-1] * v[1:]
        u, v = v, u
    return u + 2 * v


def gathered(x, index):
    y = x * 1.0
    y[index] += np.sin(x)
    y[index] = y[index] * x
    return (y * x[index]).sum()


def products(a, b):
    x = np.linalg.solve(a @ a.T + np.eye(len(a)), b)
    norms = (a * a).sum(axis=1)
    return (x * norms).sum() + np.max(b) + (a.T @ b).mean() + np.concatenate([x, b])[1:].sum()


def zipped(x, y):
    total = 0.0
    for k, (a, b) in enumerate(zip(x, y)):
        total += max(a, b, 0.0) * (k + 1) + min(a * b, 1.0)
    return total + sum(a * a for a in x)


def butterflies(x):
    y = x * 1.0
    half, power = 1, 0
    while 2 * half <= len(y):
        for start in range(0, len(y) - 2 * half + 1, 2 * half):
            for k in range(start, start + half):
                a, b = y[k], y[k + half]
                y[k], y[k + half] = a + b * b, a - 0.5 * b
        half *= 2
        power += 1
    return (y * y).sum() / 2**power


def listed(x):
    weights = [0.5, 0.25, 2.0]
    parts = np.array([np.sin(a) * weights[k % 3] for k, a in enumerate(x)])
    rows = parts[[0, -1, 0]]
    return (parts * parts).sum() + rows.sum() + np.sum([a * a for a in x[1:]])


SQUARE = onp.random.default_rng(0)


def arrays(*shapes):
    return [[SQUARE.normal(size=[n if s == "n" else s for s in shape]) for shape in shapes] for n in LENGTHS]


def spread(n):
    a = SQUARE.random((n, n))
    return [a @ a.T + n * onp.eye(n)]


PROGRAMS = {
    holt_winters: [[onp.array([0.4, 0.1, 0.2]), SQUARE.normal(size=n)] for n in LENGTHS],
    soft_dtw: arrays(("n", "n")),
    lu: [spread(n) for n in LENGTHS],
    heat: [[SQUARE.normal(size=n), onp.array(0.3)] for n in LENGTHS],
    bouncing: arrays(("n",)),
    square_root: [[SQUARE.random(n) + 0.5] for n in LENGTHS],
    swapped: arrays(("n",)),
    gathered: [[SQUARE.normal(size=n), SQUARE.integers(0, n, n)] for n in LENGTHS],
    products: [[SQUARE.normal(size=(n, n)), SQUARE.normal(size=n)] for n in LENGTHS],
    zipped: arrays(("n",), ("n",)),
    butterflies: arrays(("n",)),
    listed: arrays(("n",)),
}


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_one_program_for_all_lengths_and_branches(program, executor):
    agree(program, PROGRAMS[program], executor)


# -- values and errors -------------------------------------------------------------------------------------------------


def test_index_out_of_range_raises_as_eagerly():
    c = compiled(lambda x, k: x[k] * x[k + 1], executor="python")
    x = vg.Tensor([1.0, 2.0, 3.0])
    for _ in range(2):
        assert c(x, 1).item() == 6.0
    for _ in range(2):
        with pytest.raises(IndexError):
            c(x, 2)
    assert c(x, -2).item() == 6.0
    assert is_taken(c)


def test_negative_indices_count_from_the_end():
    def periodic(x):
        total = 0.0
        for i in range(len(x)):
            total += x[i - 1] * x[i]
        return total

    agree(periodic, arrays(("n",)), "python", counts_from_end=True)


def test_division_by_zero_matches_numpy():
    def f(x, a):
        return (x / a).sum() + x[0] / x[1]

    c = compiled(f, executor="python")
    with onp.errstate(all="ignore"):
        for _ in range(3):
            assert c(vg.Tensor([1.0, 0.0]), vg.Tensor([1.0, 1.0])).item() == math.inf
    with pytest.raises(ZeroDivisionError):
        compiled(lambda x, n: x * (1 / n), executor="python")(vg.Tensor([1.0]), 0)


def test_overlapping_copies():
    def f(x):
        y = x.copy()
        y[1:] = y[:-1]
        y[:-1] += y[1:]
        return y

    agree(f, arrays(("n",)), "python")


def test_arguments_are_written_to():
    def f(x, y):
        x[0] = y[1] * 2
        x *= y
        return x.sum()

    c = compiled(f, executor="python")
    for _ in range(3):
        x, y = [vg.Tensor([1.0, 2.0, 3.0], requires_grad=True) for _ in range(2)]
        z = x * 1.0
        total = c(z, y) + 3 * z.sum()
        gradients = vg.autograd.grad(total, [x, y])
        onp.testing.assert_array_equal(z.detach().numpy(), [4.0, 4.0, 9.0])
        onp.testing.assert_array_equal(gradients[0].numpy(), [0.0, 8.0, 12.0])
        onp.testing.assert_array_equal(gradients[1].numpy(), [16.0, 16.0, 12.0])
    plain = onp.array([1.0, 2.0, 3.0])
    c(plain, onp.array([1.0, 2.0, 3.0]))
    onp.testing.assert_array_equal(plain, [4.0, 4.0, 9.0])


@pytest.mark.parametrize("executor", EXECUTORS)
def test_results_share_no_memory_with_the_reverse_part(executor):
    def f(x):
        y = x * 1.0
        for i in range(1, len(x)):
            y[i] = y[i] * y[i - 1] * y[i]
        return y

    def g(x):
        return np.exp(x)

    for each in (f, g):
        c = compiled(each, executor=executor)
        for _ in range(3):
            x = vg.Tensor([1.0, 0.5, 2.0, 1.5], requires_grad=True)
            value, expected = c(x), each(x)
            value.sum().backward(retain_graph=True)
            onp.testing.assert_allclose(value.detach().numpy(), expected.detach().numpy())  # unchanged
            value[1] = 100.0
            (found,), (wanted,) = [vg.autograd.grad(v.sum(), [x]) for v in (c(x), each(x))]
            onp.testing.assert_allclose(found.numpy(), wanted.numpy())
            expected[1] = 100.0
            (found,), (wanted,) = [vg.autograd.grad(v.sum(), [x]) for v in (value, expected)]
            onp.testing.assert_allclose(found.numpy(), wanted.numpy())


def copied_first(x, k):
    x = x.copy()
    for _ in range(2):
        x[1:-1] = x[1:-1] - k * x[2:] * x[:-2]
    return (x * x).sum()


def bound_to_a_product(x, k):
    x = x * k
    x[0] = 2.0 * x[1]
    return (x * x).sum()


def bound_in_a_loop(x, k):
    y = np.zeros(len(x))
    for _ in range(2):
        y[0] = k * x[1]
        y = y + x
    return (y * y).sum()


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize("f", [copied_first, bound_to_a_product, bound_in_a_loop])
def test_writes_after_a_copy_leave_the_argument_alone(f, check):
    c = compiled(f, executor="python", check=check)
    for length in (5, 5, 9):
        mine, theirs = [vg.Tensor(onp.arange(1.0, length + 1), requires_grad=True) for _ in range(2)]
        value, expected = c(mine, 0.25), f(theirs, 0.25)
        assert value.item() == pytest.approx(expected.item())
        (found,), (wanted,) = vg.autograd.grad(value, [mine]), vg.autograd.grad(expected, [theirs])
        onp.testing.assert_allclose(found.numpy(), wanted.numpy())
        assert mine._version == 0
    (program,) = programs_of(c)
    assert is_taken(c) and not program.mutated


def test_writes_that_may_alias_an_argument_raise_only_if_they_do():
    def f(x, k):
        if k > 0:
            x = x.copy()
        x[0] = k * x[1]
        return (x * x).sum()

    c = compiled(f, executor="python")
    leaf = vg.Tensor([1.0, 2.0, 3.0], requires_grad=True)
    frozen = onp.array([1.0, 2.0, 3.0])
    frozen.flags.writeable = False
    for _ in range(3):
        assert vg.autograd.grad(c(leaf, 1.0), [leaf])[0].tolist() == [0.0, 8.0, 6.0]
        assert c(frozen, 1.0) == 17.0
        for given, error in ((leaf, vg.errors.LeafInPlaceError), (frozen, ValueError)):
            with pytest.raises(error):
                c(given, -1.0)
        same = vg.Tensor(2.0).expand(3)
        assert (c(same, 1.0).item(), same.tolist()) == (12.0, [2.0, 2.0, 2.0])
        assert (c(same, -1.0).item(), same.tolist()) == (12.0, [-2.0, -2.0, -2.0])
    assert leaf.tolist() == [1.0, 2.0, 3.0]
    for k, wanted in ((1.0, [3.0, 11.0, 9.0]), (-1.0, [0.0, 8.0, 9.0])):  # x itself may be the array that is written to
        for _ in range(2):
            z = leaf * 1.0
            total = c(z, k) + 3 * z.sum()
            (gradient,) = vg.autograd.grad(total, [leaf])
            onp.testing.assert_array_equal(gradient.numpy(), wanted)


def test_an_error_half_way_leaves_the_same_partial_writes():
    def f(x, k):
        x[0] = 7.0
        x[k] = 8.0
        return x.sum()

    c = compiled(f, executor="python")
    c(vg.zeros(3), 1)
    x = vg.zeros(3)
    with pytest.raises(IndexError):
        c(x, 3)
    assert x.tolist() == [7.0, 0.0, 0.0]


def test_programs_with_shared_memory_are_traced():
    def f(x, y):
        x[0] = y[1] * 2
        return x.sum()

    c = compiled(f, executor="python")
    x = vg.Tensor([1.0, 2.0, 3.0])
    assert c(x, x).item() == 9.0
    assert not c.tier.specializations or not programs_of(c)
    assert x.tolist() == [4.0, 2.0, 3.0]


def test_undefined_variable_raises_as_eagerly():
    def f(x):
        for i in range(1, len(x)):
            last = x[i]
        return last * 2

    c = compiled(f, executor="python")
    for n in (4, 3, 2):
        assert c(vg.Tensor(onp.arange(n) * 1.0)).item() == 2.0 * (n - 1)
    with pytest.raises(UnboundLocalError):
        c(vg.ones(1))
    assert is_taken(c)


def test_unsupported_source_is_traced():
    def f(x):
        total = x.sum()
        try:
            return total * 2
        finally:
            pass

    c = compiled(f, executor="python")
    for _ in range(3):
        assert c(vg.ones(3)).item() == 6.0
    assert "not compiled from its source: line" in c.explain()
    assert "`finally` after `break`, `continue` or `return` is not supported" in c.explain()


# -- captured state ----------------------------------------------------------------------------------------------------

RATE = 2.0
ORDER = 2
WEIGHTS = vg.Tensor([1.0, 2.0, 3.0], requires_grad=True)


def test_captured_floats_and_tensors_are_read_again(monkeypatch):
    def f(x):
        return (x * WEIGHTS).sum() * RATE * ORDER

    c = compiled(f, executor="python")
    x = vg.Tensor([1.0, 1.0, 1.0], requires_grad=True)
    for _ in range(2):
        value = c(x)
    assert value.detach().item() == 24.0
    assert vg.autograd.grad(value, WEIGHTS)[0].tolist() == [4.0, 4.0, 4.0]
    monkeypatch.setitem(globals(), "RATE", 5.0)
    assert c(x).detach().item() == 60.0
    assert len(programs_of(c)) == 1
    monkeypatch.setitem(globals(), "ORDER", 3)  # known, as it may be an exponent or a shape
    assert c(x).detach().item() == 90.0
    assert len(programs_of(c)) == 2


def test_changed_captured_arrays_do_not_retrace():
    class Settings:
        rate = 1.0

    settings, tables = Settings(), {"one": [onp.ones(2), onp.ones(2)]}
    settings.rate = 2.0

    def f(x):
        return (x * settings.rate * tables["one"][1][0]).sum()

    c = compiled(f, executor="python")
    for n in range(1, 20):
        settings.rate, tables["one"][1] = float(n), onp.full(2, n + 1.0)
        assert c(onp.ones(n)) == f(onp.ones(n))
    assert len(programs_of(c)) == 1


def test_functions_and_objects_among_the_arguments_are_guarded():
    class Scale:
        def __init__(self, factor):
            self.factor, self.parts = factor, [1.0]

        def of(self, x):
            return x * self.factor * len(self.parts)

    def f(x, g):
        return g(x).sum()

    factors = [2.0]
    scale, other = Scale(2.0), Scale(3.0)
    double, triple = (lambda x: x * factors[0]), (lambda x: x * 3.0)
    c, x = compiled(f, executor="python"), onp.ones(2)
    for g in (double, double, triple, double, scale.of, other.of, other.of):
        assert c(x, g) == f(x, g)
    factors.append(1.0)
    factors[0] = 4.0
    other.parts.append(1.0)
    assert c(x, double) == f(x, double)
    assert c(x, other.of) == f(x, other.of)
    method, m = (lambda x, s: s.of(x).sum()), compiled(lambda x, s: s.of(x).sum(), executor="python")
    for each in (scale, scale, other, scale):
        assert m(x, each) == method(x, each)
    scale.parts.append(2.0)
    assert m(x, scale) == method(x, scale)
    scale.of = lambda x: x * 100.0
    assert m(x, scale) == method(x, scale)


def test_code_of_the_user_is_not_run_while_a_function_is_read():
    drawn = iter(range(1, 1000))

    class Odd:
        def __getitem__(self, key):
            return float(next(drawn))

        __add__ = __float__ = __getattr__ = lambda self, *_: float(next(drawn))
        __bool__ = lambda self: next(drawn) % 2 == 0
        __len__ = lambda self: 1

    class Reading:
        __get__ = lambda self, *_: float(next(drawn))

    class Holder:
        read = Reading()

    odd, holder = Odd(), Holder()
    for f in (
        lambda x: x * odd[0], lambda x: x * (odd + 1), lambda x: x * float(odd), lambda x: x if odd else x * 2.0,
        lambda x: x * odd.any, lambda x: x * holder.read, lambda x: x * Holder.read,
    ):  # fmt: skip
        c = compiled(f, executor="python", check=False)
        results = [c(onp.ones(1)).item() for _ in range(6)]
        assert len(set(results)) > 1, c.explain()
        assert not c.tier.source()


def test_formatted_string_is_unknown_at_compile_time():
    kind = 3

    def f(x):
        return x * 2.0 if f"{kind}" == "3" else x

    assert compiled(f, executor="python")(onp.ones(1)).tolist() == [2.0]


@pytest.mark.parametrize("executor", EXECUTORS)
def test_exceptions_of_values_that_are_not_used_are_raised(executor):
    def indexed(x):
        x[5]
        return x * 2.0

    def inverted(x):
        np.linalg.inv(x.reshape(1, 1) if len(x) == 1 else np.eye(2))
        return x * 2.0

    def missing(x):
        return x if Settings.missing is None else x * 2.0

    class Settings:
        pass

    def divided(x, n):
        10 // n
        return x * 2.0

    def added(x, n):
        x[n] + 1.0
        return x * 2.0

    def chosen(x, n):
        x[n] > 0 and x[0] > 0
        return x * 2.0

    def rooted(x, n):
        math.sqrt(n)
        return x * 2.0

    for f, n, error in ((divided, 0, ZeroDivisionError), (added, 9, IndexError), (chosen, 9, IndexError),
                        (rooted, -1, ValueError)):  # fmt: skip
        c = compiled(f, executor=executor)
        for _ in range(2):
            assert c(onp.ones(3), 1).tolist() == [2.0] * 3
        with pytest.raises(error):
            c(onp.ones(3), n)
        assert c.tier.source()

    c = compiled(indexed, executor=executor)
    for _ in range(2):
        assert c(onp.ones(6)).tolist() == [2.0] * 6
    with pytest.raises(IndexError):
        c(onp.ones(5))
    c = compiled(inverted, executor=executor)
    for _ in range(2):
        assert c(onp.ones(1)).tolist() == [2.0]
    with pytest.raises(onp.linalg.LinAlgError):
        c(onp.zeros(1))
    with pytest.raises(AttributeError):
        compiled(missing, executor=executor, check=False)(onp.ones(1))


def test_methods_closures_lambdas_and_nested_functions_are_read_in_place():
    class Model:
        def __init__(self, scale):
            self.scale = scale
            self.squash = np.tanh

        @property
        def doubled(self):
            return self.scale * 2

        def step(self, s, a):
            return self.squash(s * self.scale) + a

        def loss(self, x):
            def inner(value, power=2):
                return value**power + offset

            offset = 0.5
            twice = lambda value: 2 * value
            s = 0.1
            for a in x:
                s = self.step(s, a)
            return inner(twice(s)) * self.doubled

    model = Model(0.7)
    c = compiled(model.loss, executor="python")
    for n in (3, 5):
        x = vg.Tensor(onp.linspace(0, 1, n), requires_grad=True)
        for _ in range(2):
            assert abs(c(x).detach().item() - model.loss(x).detach().item()) < 1e-12
    model.scale = 0.2
    assert abs(c(x).detach().item() - model.loss(x).detach().item()) < 1e-12
    assert is_taken(c)


@dataclasses.dataclass
class Parameters:
    rate: object
    bias: object


def test_trees_of_arguments_and_results():
    def f(p, d, pair):
        a, b = pair
        return {"sum": p.rate * d["x"].sum() + a, "parts": (p.bias * d["x"], b)}

    c = compiled(f, executor="python")
    p = Parameters(vg.Tensor(2.0, requires_grad=True), vg.Tensor([1.0, 2.0], requires_grad=True))
    for _ in range(3):
        found = c(p, {"x": vg.Tensor([3.0, 4.0])}, (1.5, 7))
    assert found["sum"].detach().item() == 15.5
    assert found["parts"][0].detach().tolist() == [3.0, 8.0]
    assert found["parts"][1] == 7
    assert vg.autograd.grad(found["sum"], p.rate)[0].item() == 7.0
    assert is_taken(c)


# -- gradients ---------------------------------------------------------------------------------------------------------


def test_gradients_see_values_as_they_were():
    def f(x, y):
        return (x * x * y).sum()

    c = compiled(f, executor="python")
    for _ in range(3):
        leaf = vg.Tensor([1.0, 2.0], requires_grad=True)
        x, y = leaf * 1.0, onp.array([3.0, 4.0])
        value = c(x, y)
        y[:] = 100.0
        x *= 50.0
        assert vg.autograd.grad(value, leaf)[0].tolist() == [6.0, 16.0]


def test_second_derivatives_and_repeated_pulls():
    def f(x):
        s = 0.5
        for a in x:
            s = s * a + np.sin(a)
        return s

    c = compiled(f, executor="python")
    for _ in range(3):
        x = vg.Tensor([0.3, 0.7, 1.1], requires_grad=True)
        value = c(x)
        one = vg.autograd.grad(value, x, retain_graph=True)[0]
        two = vg.autograd.grad(value, x, retain_graph=True)[0]
        assert one.tolist() == two.tolist()
        (gradient,) = vg.autograd.grad(value, x, create_graph=True)
        onp.testing.assert_allclose(gradient.detach().numpy(), one.numpy())
        (hessian_sum,) = vg.autograd.grad(gradient.sum(), x)
        (expected,) = vg.autograd.grad(vg.autograd.grad(f(x), x, create_graph=True)[0].sum(), x)
        onp.testing.assert_allclose(hessian_sum.numpy(), expected.numpy())


@pytest.mark.parametrize("executor", ["python", "numba"])
def test_reverse_kernels_may_differ_from_forward_kernels(executor):
    if executor == "numba":
        pytest.importorskip("numba")

    def f(x):
        s, t = 0.3, 1.0
        for i in range(2):
            t += x[i]
        if s < t:
            s = t * t
        else:
            for _ in range(3):
                t = np.tanh(t * x[0])
            s = s * t
        for i in range(len(x)):
            s = s * x[i] + t
        return s

    agree(f, [[onp.array(each)] for each in ([0.5, 1.5, 2.0], [-2.0, -1.0, 0.5])], executor)


def test_gradients_of_ranges_of_numbers():
    def f(a, b, c):
        return (onp.arange(0, a) * b).sum() + (onp.arange(b, 4.3, c) ** 2 * a).sum() + onp.arange(c + 3.0).sum() * b

    compiled = vg.compile(f, executor="python")
    expected = vg.grad(f, argnums=(0, 1, 2))(5.3, 1.2, 0.7)
    h = 1e-6
    numeric = [(f(*(p + h * d)) - f(*(p - h * d))) / (2 * h) for p in [onp.array([5.3, 1.2, 0.7])] for d in onp.eye(3)]
    onp.testing.assert_allclose(expected, numeric, rtol=1e-7)
    for _ in range(3):
        onp.testing.assert_allclose(vg.grad(compiled, argnums=(0, 1, 2))(5.3, 1.2, 0.7), expected)
    assert "ran eagerly" not in compiled.explain() and "not compiled" not in compiled.explain()


def test_results_may_be_lists_of_numbers():
    def f(x):
        kept, places = [], []
        for i, v in enumerate(x):
            if v > 0.0:
                kept.append(v * v * v)
                places.append(i)
        return {"kept": kept, "places": places, "pair": (x.sum(), [v * 2.0 for v in kept])}

    def total(result):
        return sum([v * (k + 1) for k, v in enumerate(result["kept"])], result["pair"][0]) + sum(result["pair"][1])

    c = compiled(f, executor="python")
    for length in LENGTHS:
        x = vg.Tensor(onp.random.default_rng(length).normal(size=length), requires_grad=True)
        mine, theirs = c(x), f(x)
        assert mine["places"] == theirs["places"] and type(mine["kept"]) is list
        assert [v.item() for v in mine["kept"]] == pytest.approx([v.item() for v in theirs["kept"]])
        (gradient,), (expected,) = [vg.autograd.grad(total(r), [x], create_graph=True) for r in (mine, theirs)]
        onp.testing.assert_allclose(gradient.detach().numpy(), expected.detach().numpy())
        second, wanted = [vg.autograd.grad((g * g).sum(), [x])[0].numpy() for g in (gradient, expected)]
        onp.testing.assert_allclose(second, wanted)
        tangents = [vg.func.jvp(lambda x, g=g: g(x)["kept"], (x.detach().numpy(),), (onp.ones(length),))[1]
                    for g in (c, f)]
        onp.testing.assert_allclose(*tangents)
    assert is_taken(c) and "ran eagerly" not in c.explain()


def test_gradients_of_functions_of_lists():
    """A function of one array also accepts a list of numbers; the gradient has one part for each of them."""

    def f(a, b):
        c = onp.linalg.norm([a, b * 2.0, 3.0]) + onp.sum([a, b]) * onp.mean((a, b))
        return c + onp.dot([a, b], [b, a]) * onp.std([a, b, 2.0])

    compiled = vg.compile(f, executor="python")
    expected = vg.grad(f, argnums=(0, 1))(1.0, 2.0)
    for _ in range(3):
        onp.testing.assert_allclose(vg.grad(compiled, argnums=(0, 1))(1.0, 2.0), expected)
        onp.testing.assert_allclose(vg.jvp(compiled, (1.0, 2.0), (0.5, 0.7))[1], expected[0] * 0.5 + expected[1] * 0.7)
    assert "ran eagerly" not in compiled.explain() and "not compiled" not in compiled.explain()


def test_transforms():
    def f(x):
        s = 0.5
        for a in x:
            s = s * a + np.sin(a)
        return s

    c = compiled(f, executor="python")
    x = vg.Tensor([0.3, 0.7, 1.1])
    for _ in range(3):
        _, gradient = vg.func.value_and_grad(c)(x)
        onp.testing.assert_allclose(gradient.numpy(), vg.func.grad(f)(x).numpy())
        onp.testing.assert_allclose(vg.func.hessian(c)(x).numpy(), vg.func.hessian(f)(x).numpy())
        onp.testing.assert_allclose(vg.func.jacrev(lambda x: c(x) * x)(x).numpy(),
                                    vg.func.jacrev(lambda x: f(x) * x)(x).numpy())
        number, slope = c.value_and_grad(x.numpy())
        assert type(number) is float
        onp.testing.assert_allclose(slope, gradient.numpy())
    assert programs_of(c)[0].source.name == "f"


def test_arrays_in_and_arrays_out():
    import numpy

    space = {"np": numpy}

    def f(x):
        return (x * x).sum(), x * 2

    c = compiled(f, executor="python")
    for _ in range(3):
        total, doubled = c(onp.array([1.0, 2.0]))
        assert isinstance(total, float)
        assert type(doubled) is onp.ndarray
    assert space


# -- the rest ----------------------------------------------------------------------------------------------------------


def test_pickles_and_threads():
    c = compiled(holt_winters, executor="python")
    again = pickle.loads(pickle.dumps(c))
    given = PROGRAMS[holt_winters][0]
    assert again(*given) == c(*given)
    found = []
    threads = [threading.Thread(target=lambda: found.append(float(c(*given)))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 1


def test_source_shows_the_users_lines_and_names():
    c = compiled(bouncing, executor="python")
    c(vg.Tensor([0.1, 0.2], requires_grad=True))
    text = c.source()
    assert "height" in text
    assert "speed_bar" in text
    assert "speed = speed - 0.3 + 0.1 * x[t]" in text


# -- numbers that are differentiated ----------------------------------------------------------------------------------


def another_name(x, a):
    s = a
    s -= x[0]
    return x.sum() + s * 2.0 + a


def one_name_in_a_loop(x, a):
    s = 0.5
    for i in range(len(x)):
        s = a
        s *= x[i]
    return s + a


@pytest.mark.parametrize("specialize", [False, True])
@pytest.mark.parametrize("number", [float, onp.float64])
@pytest.mark.parametrize("f", [another_name, one_name_in_a_loop])
def test_numbers_are_not_changed_through_another_name(f, number, specialize):
    c = vg.compile(f, executor="python", specialize=specialize)
    for x, a in ((onp.array([1.0, 2.0, 3.0]), number(0.7)), (onp.array([2.0, 5.0]), number(0.3))):
        for _ in range(3):
            value, (to_x, to_a) = vg.value_and_grad(c, argnums=(0, 1))(x, a)
            wanted, (x_wanted, a_wanted) = vg.value_and_grad(f, argnums=(0, 1))(x, a)
            assert value == pytest.approx(f(x, a)) and value == pytest.approx(wanted)
            onp.testing.assert_allclose(to_x, x_wanted)
            assert to_a == pytest.approx(a_wanted)
    if not specialize:
        assert is_taken(c) and len(programs_of(c)) == 1


# -- what is bound at once ---------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Pair:
    a: object
    b: object


@pytest.mark.parametrize("first, again", [
    ("(x[0], x[1])", "(s[1], s[0] * s[1])"),
    ("[x[0], x[1]]", "[s[1], s[0] * s[1]]"),
    ("((x[0], x[1]), x[2])", "((s[1], s[0][0] * s[0][1]), s[0][0] - s[1])"),
    ("(x * 1.0, x * 2.0)", "(s[1], s[0] * s[1])"),
    ("{0: x[0], 1: x[1]}", "{0: s[1], 1: s[0] * s[1]}"),
    ("Pair(x[0], x[1])", "Pair(s.b, s.a * s.b)"),
])  # fmt: skip
@pytest.mark.parametrize("loop", ["for _ in range(3):", "for i in range(len(x)):", "if True:"])
def test_items_of_a_tuple_are_bound_at_once(first, again, loop):
    last = "s.b" if "Pair" in first else "s[0][1]" if "((" in first else "np.sum(s[1])"
    text = f"def f(x):\n    s = {first}\n    {loop}\n        s = {again}\n    return {last} * 1.0\n"
    name = f"<bound at once {hash(text)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    space = {"np": np, "Pair": Pair}
    exec(compile(text, name, "exec"), space)
    c = compiled(space["f"], executor="python", check=False)
    for n in (3, 5):
        x = onp.cos(onp.arange(float(n)))
        found, expected = [vg.func.value_and_grad(each)(x) for each in (c, space["f"])]
        onp.testing.assert_allclose(found[0], expected[0])
        onp.testing.assert_allclose(found[1], expected[1])
    assert is_taken(c), c.explain()


def test_known_objects_that_a_loop_changes():
    def modes(x):
        mode, total = "first", 0.0
        for v in x:
            total += v * v if mode == "first" else v
            mode = "later"
        return total

    def functions(x):
        f, g, total = np.sin, np.cos, 0.0
        for v in x:
            total += f(v)
            f, g = g, f
        return total

    for function in (modes, functions):
        c = compiled(function, executor="python", check=False)
        found, expected = [vg.func.value_and_grad(each)(onp.arange(4.0)) for each in (c, function)]
        onp.testing.assert_allclose(found[0], expected[0])
        onp.testing.assert_allclose(found[1], expected[1])


# -- calls of value_and_grad -------------------------------------------------------------------------------------------


def test_gradients_of_arrays_do_not_go_through_tensors(monkeypatch):
    def f(p, y, scale):
        total = 0.0
        for t in range(len(y)):
            total += scale * p[0] * y[t] * y[t] / p[1]
        return total

    c = compiled(f, executor="python")
    both = vg.func.value_and_grad(c, (0, 1))
    given = onp.array([2.0, 3.0]), onp.arange(4.0), 0.5
    first = both(*given)
    monkeypatch.setattr("viewgrad.compiler.api.Compiled.__viewgrad_gradients__", None)
    value, (of_p, of_y) = both(*given)
    assert type(value) is float and type(of_p) is onp.ndarray and value == first[0]
    onp.testing.assert_allclose(of_p, [14.0 / 6.0, -14.0 / 9.0])
    onp.testing.assert_allclose(of_y, 2 / 3 * onp.arange(4.0))
    assert of_p.flags.owndata and of_p.flags.writeable
    assert type(vg.func.grad(c, 2)(*given)) is float
    assert isinstance(both(vg.Tensor(given[0]), *given[1:])[0], vg.Tensor)


def test_gradient_calls_follow_captured_state():
    scale = 2

    def f(x):
        return (x * scale).sum()

    c = compiled(f, executor="python")
    for scale in (2, 2, 5, 2, 5):
        onp.testing.assert_array_equal(vg.func.grad(c)(onp.ones(3)), onp.full(3, float(scale)))
    slope = vg.Tensor(3.0)

    def g(x):
        return (x * slope).sum()

    c = compiled(g, executor="python")
    for _ in range(2):
        assert vg.func.value_and_grad(c)(onp.ones(2))[0] == 6.0
    slope.requires_grad_()
    value, _ = vg.func.value_and_grad(c)(onp.ones(2))
    assert vg.autograd.grad(value, slope)[0].item() == 2.0


def test_gradients_with_nan_come_from_the_function():
    def f(x):
        total = 0.0
        for i in range(len(x)):
            total += np.sqrt(x[i] * 0.0) * x[i]
        return total

    c = compiled(f, executor="python", check=False)
    with onp.errstate(all="ignore"):
        for _ in range(3):
            found, expected = [vg.func.grad(each)(onp.ones(3)) for each in (c, f)]
            onp.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("steps", [3, 5000, 40_000])
def test_tapes_are_reused_unless_a_gradient_is_pending(steps):
    pytest.importorskip("numba")

    def f(a, n):
        x = 0.3
        for _ in range(n):
            x = a * x * (1.0 - x)
        return x

    c = compiled(f, executor="numba", check=False)
    both = vg.func.value_and_grad(c)
    a, b = 3.1, 2.7
    expected = [both(a, steps) for _ in range(3)]
    assert expected[0] == expected[1] == expected[2]
    leaf = vg.Tensor(a, requires_grad=True)
    pending = c(leaf, steps)
    other = both(b, steps)
    assert both(b, steps) == other
    assert vg.autograd.grad(pending, leaf)[0].item() == expected[0][1]
    assert len(c.tier.tapes.spare) == 1


def outer_pushes_after_inner_ones(x):
    c, total = 0.0, 0.0
    for i in range(len(x)):
        start = x[i] * c
        for _ in range(3):
            c = np.sin(c + start) * x[i]
        total += start * start * c
        c = c * total
    return total * c


def pushes_in_branches_and_loops_to_a_tolerance(x):
    total = x[0] * x[1]
    for i in range(len(x)):
        y = total * x[i]
        if y > 0.1:
            while y > 0.05:
                y = y * np.cos(y) * 0.5
            total = total + y * y
        else:
            total = np.exp(total) * 0.3
        total = total * np.sin(y)
    total = total * np.sin(total)
    return total * total


@pytest.mark.parametrize("function", [outer_pushes_after_inner_ones, pushes_in_branches_and_loops_to_a_tolerance])
def test_kernels_write_nothing_beyond_the_tape(function, uncompiled_kernels, monkeypatch):
    """The kernels run in Python, where a write beyond the end raises."""
    x = onp.linspace(0.3, 1.7, 7)
    expected = vg.func.value_and_grad(function)(x)
    for size in range(1, 90):
        monkeypatch.setattr(tapes, "TAPE", size)
        compiled = vg.compile(function, executor="numba", check=False, specialize=False)
        value, gradient = vg.func.value_and_grad(compiled)(x)
        assert onp.isclose(value, expected[0]) and onp.allclose(gradient, expected[1])
        ((entry,),) = compiled.tier.specializations.values()
        assert entry.runs == 1 and not entry.failures_in_row


# -- sources -----------------------------------------------------------------------------------------------------------


def test_a_source_that_was_edited_after_its_import_is_not_read(tmp_path, monkeypatch):
    text = """def f(x, n):
    s = 0.0
    for v in x:
        s += v * v{}
    if n > 1:
        s = s * {}
    return s
"""
    path = tmp_path / "edited_later.py"
    path.write_text(text.format("", 2.0))
    monkeypatch.syspath_prepend(tmp_path)
    f = importlib.import_module("edited_later").f
    for after in (("", 3.0), (" * v", 2.0)):
        path.write_text(text.format(*after))
        linecache.checkcache(str(path))
        run = compiled(f)
        for n in (0, 0, 5):
            assert run(vg.Tensor([1.0, 2.0]), n).item() == f([1.0, 2.0], n)
        assert not is_taken(run)
        assert "has changed since its code was compiled" in str(run.explain())


def test_replaced_constants_of_a_function_are_detected():
    def f(x):
        return x * 42.0

    f.__code__ = f.__code__.replace(co_consts=tuple(256.0 if each == 42.0 else each for each in f.__code__.co_consts))
    run = compiled(f)
    for _ in range(2):
        assert run(vg.Tensor(2.0)).item() == 512.0


def test_integers_of_numpy_are_not_instances_of_int():
    def f(x):
        n = onp.int64(3)
        y = onp.zeros(n)
        for i in range(n):
            y[i] = x[i] ** n
        y = y.reshape(n, onp.intp(1))
        return y.sum() * onp.arange(n)[n - 1] + x[onp.int64(1)] * (1.0 if isinstance(onp.intp(2), int) else 2.0)

    x = onp.arange(1.0, 5.0)
    run = compiled(f)
    for _ in range(2):
        onp.testing.assert_allclose(vg.value_and_grad(run)(x)[1], vg.grad(f)(x))
        assert run(x) == f(x)
    assert is_taken(run), run.explain()


def scaled(a, b):
    b *= a
    return b * 1.0


def scaled_by_quotient(a, b):
    a[1:] *= b[:-1]
    b /= 1.5 + a * a
    return a[0] * b


def masked_quotient(a, b):
    b *= a
    b[:] = np.where(a > 0.6, b, np.sqrt(a - 0.6) * 0.0)
    return b + a


@pytest.mark.parametrize("f", [scaled, scaled_by_quotient, masked_quotient])
@pytest.mark.parametrize("is_nested", [False, True])
def test_gradients_of_any_order_of_functions_that_write_to_their_arguments(f, is_nested):
    """Recorded gradients come from a run of the function, whose writes must not replace the inputs' histories."""

    def total(function, x):
        q = np.stack([x, x * x]) * 1.0
        return (function(q[0], q[1]) ** 2).sum() + (q * 0.2).sum()

    c = compiled(f, executor="python")
    if is_nested:
        inner = c
        c = compiled(lambda a, b: inner(a, b) * 1.0, executor="python")
    direction = onp.array([1.0, -0.3, 0.5])
    x = onp.array([0.7, 0.9, 1.1]) if f is not masked_quotient else onp.array([0.5, 0.9, 1.1])
    with onp.errstate(invalid="ignore"):
        for _ in range(3):
            found, expected = [], []
            for function, results in ((c, found), (f, expected)):
                leaf = vg.Tensor(x, requires_grad=True)
                (plain,) = vg.autograd.grad(total(function, leaf), leaf)
                (first,) = vg.autograd.grad(total(function, leaf), leaf, create_graph=True)
                (second,) = vg.autograd.grad((first * direction).sum(), leaf)
                results += [plain, first.detach(), second]
            for one, other in zip(found, expected):
                onp.testing.assert_allclose(one, other, rtol=1e-10)
            onp.testing.assert_allclose(found[0], found[1], rtol=1e-10)


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize("specialize", [True, False])
def test_arrays_cannot_hold_the_history_of_values_written_by_a_compiled_function(specialize, check):
    def filled(x, out):
        out[...] = x * 2.0
        return (out * out).sum()

    c = vg.compile(filled, executor="python", specialize=specialize, check=check)
    x, out = onp.array([1.0, 2.0]), onp.zeros(2)
    for _ in range(3):
        with pytest.raises(vg.errors.DetachedConversionError, match="plain array of shape"):
            c(vg.Tensor(x, requires_grad=True), out)
        with vg.no_grad():
            assert c(vg.Tensor(x, requires_grad=True), out).item() == 20.0
        assert c(x, out) == 20.0
        assert out.tolist() == [2.0, 4.0]
        onp.testing.assert_array_equal(vg.grad(c)(x, out), [8.0, 16.0])  # transforms copy arrays
        onp.testing.assert_array_equal(c.value_and_grad(x, out)[1], [8.0, 16.0])  # returns plain values only
        leaf, kept = vg.Tensor(x, requires_grad=True), vg.zeros(2)
        onp.testing.assert_array_equal(vg.autograd.grad(c(leaf, kept) + kept.sum(), leaf)[0], [10.0, 18.0])


def test_results_that_are_integers_in_some_runs():
    def total(x):
        found = 0
        for i in range(len(x)):
            if x[i] > 5:
                found = found + x[i]
        return found

    def choice(x):
        found = 1
        if x[0] > 5:
            found = 2.5
        return found * 2

    for f in (total, choice):
        c = compiled(f)
        for values in ([1.0, 2.0], [1.0, 2.0], [7.25, 2.0], [7.25, 8.5], [1.0, 2.0], [7.25, 2.0]):
            x, y = vg.Tensor(values, requires_grad=True), vg.Tensor(values, requires_grad=True)
            found, expected = c(x), f(y)
            assert type(found) is type(expected) and float(found) == float(expected)
            if type(found) is vg.Tensor:
                found.backward()
                expected.backward()
                assert x.grad.tolist() == y.grad.tolist()
        assert is_taken(c), c.explain()


def test_lists_of_integers_and_other_numbers():
    def mixed(x):
        found = []
        for i in range(len(x)):
            found.append(i)
            found.append(i * 0.5)
        return found

    def chosen(x):
        return [x[i] if i % 2 else i for i in range(len(x))]

    def assigned(x):
        found = [0] * len(x)
        for i in range(1, len(x)):
            found[i] = x[i] * 2
        return found

    for f in (mixed, chosen, assigned):
        c = compiled(f)
        for values in ([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [1.0, 2.0, 4.0, 5.0]):
            x = vg.Tensor(values, requires_grad=True)
            found, expected = c(x), f(x)
            assert [type(each) for each in found] == [type(each) for each in expected]
            assert list(map(float, found)) == list(map(float, expected))


def test_an_array_that_holds_a_history_in_one_branch_only():
    def f(x, work):
        if x[0] > 1:
            work[:] = 3.0
            return (x * 2).sum()
        work[:] = x
        return (work * x).sum()

    c = compiled(f)
    for values in ([2.0, 3.0], [2.0, 3.0], [2.5, 3.0], [2.5, 3.0]):
        x, work = vg.Tensor(values, requires_grad=True), onp.zeros(2)
        c(x, work).backward()
        assert x.grad.tolist() == [2, 2] and work.tolist() == [3, 3]
    with pytest.raises(vg.errors.DetachedConversionError):
        c(vg.Tensor([0.5, 1.0], requires_grad=True), onp.zeros(2))
    for _ in range(2):
        assert c(vg.Tensor([0.5, 1.0]), onp.zeros(2)).item() == 1.25


def test_sums_of_items_that_were_integers_run_compiled():
    def f(x):
        sums = []
        for v in x:
            inner = 0
            for w in x:
                if w > 5:
                    inner = inner + w * v
            sums.append(inner)
        return sum(sums)

    compiled = vg.compile(f, executor="python", specialize=False)
    for values in ([7.0, 8.0, 0.1], [6.0, 0.1, 0.1], [7.0, 0.1, 9.0]):
        assert compiled(np.array(values)) == pytest.approx(f(values))
        np.testing.assert_allclose(vg.grad(compiled)(np.array(values)), vg.grad(f)(np.array(values)))
    assert "compiled from its source" in compiled.explain() and "eagerly" not in compiled.explain()


def test_reading_a_source_repeats_no_warnings_about_it(tmp_path, monkeypatch):
    (tmp_path / "escapes.py").write_text(
        'def f(x):\n    """Powers in \\l."""\n    for i in range(3):\n        x = x * 2.0\n    return x\n'
    )
    monkeypatch.syspath_prepend(tmp_path)
    with warnings.catch_warnings(action="ignore"):
        f = importlib.import_module("escapes").f
    compiled = vg.compile(f, executor="python", specialize=False)
    with warnings.catch_warnings(action="error"):
        assert [compiled(np.array(1.0)).item() for _ in range(3)] == [8.0] * 3
    assert "compiled from its source" in compiled.explain()
