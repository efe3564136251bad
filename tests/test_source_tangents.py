"""Programs from source along a direction, and their reverse: jvp, hvp, Hessians, and second derivatives of calls."""

import numpy as onp
import pytest
import test_source_segments as long_loops
import test_source_tier as tier

import viewgrad as vg
import viewgrad.numpy as np

EXECUTORS = ["python", pytest.param("numba", marks=pytest.mark.slow)]
onp_rng = onp.random.default_rng(5)


def of_functions(x):
    y = np.exp(x) * np.tanh(x) + np.log1p(x * x) - np.arctan2(x, 2.0 + x)
    return y / (1.0 + np.sqrt(x * x + 1.0)) + x**3 - 2.0**x + np.hypot(x, 1.5) * np.logaddexp(x, 0.3)


def of_choices(x):
    y = np.where(x > 0.2, x * x, np.sin(x)) + np.maximum(x, 0.1) * np.minimum(x * x, 0.4)
    return y * np.clip(x, -0.5, 0.9) + abs(x) * (x[0] if x[1] > x[2] else x[1] * x[2])


def of_calls(a, b):
    m = a @ a.T + 3.0 * np.eye(len(a))
    x = np.linalg.solve(m, b)
    norms = (a * a).sum(axis=1)
    joined = np.concatenate([x * b, norms])
    sign, logarithm = np.linalg.slogdet(m)
    return (joined * np.cumsum(joined)).mean() + np.max(x) * np.outer(x, b).sum() + sign * logarithm + np.dot(x, norms)


def of_records(state, step):
    for _ in range(3):
        state = {"x": state["x"] + step * state["v"], "v": state["v"] - step * np.sin(state["x"])}
    return state["x"], (state["v"] * step).sum()


def with_tables(x):
    n = len(x)
    table = np.zeros((n, n))
    for i in range(n):
        table[i] = x * x[i]
        table[i, i] += 1.0
        for j in range(i):
            table[i, j] = table[j, i] * np.cos(table[i, j])
    return table.sum(axis=0)


def nothing_on_some_ways(x):
    y = np.zeros(len(x))
    for t in range(len(x)):
        if x[t] > 5.0:
            y[t] = 1.0
        elif x[t] > 0.0:
            y[t] = x[t] * x[t - 1 if t else 0]
    return y


def name_of(case):
    return getattr(case, "values", [case])[0][0].__name__


def vector(n):
    return onp.cos(onp.arange(n) * 1.3) + 0.1


CASES = [
    (of_functions, lambda n: [vector(n)]), (of_choices, lambda n: [vector(n + 2)]),
    (of_calls, lambda n: [onp.cos(onp.arange(float(n * n)) ** 2).reshape(n, n), vector(n)]),
    (of_records, lambda n: [{"x": vector(n), "v": onp.sin(vector(n))}, 0.1]),
    (with_tables, lambda n: [vector(n)]), (nothing_on_some_ways, lambda n: [vector(n)]),
    (tier.holt_winters, lambda n: [onp.array([0.4, 0.2, 0.1]), vector(n)]),
    (tier.soft_dtw, lambda n: [onp.cos(onp.arange(float(n * n)) ** 2).reshape(n, n)]),
    (tier.lu, lambda n: [onp.cos(onp.arange(float(n * n)) ** 2).reshape(n, n) + 3 * onp.eye(n)]),
    (tier.heat, lambda n: [vector(n + 2), 0.1]), (tier.bouncing, lambda n: [vector(n)]),
    (tier.square_root, lambda n: [vector(n) + 2.0]), (tier.swapped, lambda n: [vector(n)]),
    (tier.gathered, lambda n: [vector(n), onp.arange(n) % 3]), (tier.zipped, lambda n: [vector(n), vector(n) - 0.3]),
    *[pytest.param((f, lambda n, arguments=arguments: arguments), marks=pytest.mark.slow)
      for f, arguments in long_loops.CASES],
]  # fmt: skip


def floats(tree):
    """Return the numbers of the arguments whose leaves are floats."""
    return [n for n, arg in enumerate(tree) if not isinstance(arg, onp.ndarray) or arg.dtype == float]


def directions(arguments, numbers, seed):
    rng = onp.random.default_rng(seed)

    def one(value):
        if isinstance(value, dict):
            return {key: one(each) for key, each in value.items()}
        return rng.normal(size=onp.shape(value)) if isinstance(value, onp.ndarray) else float(rng.normal())

    return tuple([one(arguments[n]) for n in numbers])


def of_numbers(f, arguments, numbers):
    def function(*given):
        full = list(arguments)
        for n, each in zip(numbers, given):
            full[n] = each
        return f(*full)

    return function


def flat(tree):
    if isinstance(tree, (tuple, list)):
        return [leaf for each in tree for leaf in flat(each)]
    if isinstance(tree, dict):
        return [leaf for each in tree.values() for leaf in flat(each)]
    return [onp.asarray(tree.detach() if isinstance(tree, vg.Tensor) else tree)]


def assert_same(found, expected, rtol=1e-9):
    for one, other in zip(flat(found), flat(expected), strict=True):
        onp.testing.assert_allclose(one, other, rtol=rtol, atol=rtol * onp.abs(other).max(initial=1e-3))


def assert_by_source(c, programs):
    text = c.jvp.explain()
    assert "not compiled" not in text and "ran eagerly" not in text and "traced" not in text, text
    found = [program for entries in c.jvp.tier.specializations.values() for entry in entries
             for program in entry.programs.values()]
    assert len(found) == programs, text


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_jvp_matches_the_function(case, executor):
    f, make = case
    c = vg.compile(f, specialize=False, executor=executor)
    for n in (5, 3, 6, 4):
        arguments = make(n)
        if all(isinstance(arg, onp.ndarray) for arg in arguments) or n == 5:
            numbers = floats(arguments)
            whole = len(numbers) == len(arguments)
            along = directions(arguments, numbers, n)
            if whole:
                found = vg.func.jvp(c, tuple(arguments), along)
            else:
                found = c.__viewgrad_jvp__(tuple(numbers), tuple(arguments), {}, along, False)
            expected = vg.func.jvp(of_numbers(f, arguments, numbers), tuple([arguments[n] for n in numbers]), along)
            assert_same(found, expected)
    assert_by_source(c, 1)


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_hvp_matches_the_function(case, executor):
    f, make = case

    if f is of_records:
        def scalar(state, step):
            found, total = f(state, step)
            return (found * found).sum() + total
    else:
        def scalar(*args):
            found = f(*args)
            return np.sum(found * found)

    c = vg.compile(scalar, specialize=False, executor=executor)
    for n in (5, 4):
        arguments = make(n)
        numbers = floats(arguments)
        if len(numbers) < len(arguments):
            return
        along = directions(arguments, numbers, n)
        for _ in range(2):
            found = vg.func.hvp(c, tuple(arguments), along)
        assert_same(found, vg.func.hvp(scalar, tuple(arguments), along), 1e-7)
    assert_by_source(c, 1)


def powers(p):
    total = 0.0
    for i in range(len(p) - 1):
        total += p[i] ** p[i + 1]
    return total


def of_pairs(p):
    total = 0.0
    for i in range(len(p) - 1):
        total += np.logaddexp(p[i], p[i + 1]) + np.arctan2(p[i], p[i + 1]) * np.hypot(p[i], p[i + 1])
    return total


@pytest.mark.parametrize("f, point", [
    (powers, (2.0, 0.0)), (powers, (0.0, 2.0)), (powers, (0.0, 3.0)), (powers, (0.5, 1.0, 2.5)),
    (of_pairs, (1.0, -0.5, 2.0)), (of_pairs, (1.0, -800.0)), (of_pairs, (1e-180, 1e-180)), (of_pairs, (0.0, 2.0)),
])  # fmt: skip
def test_hessians_of_binary_operators_come_from_their_rows(f, point):
    c = vg.compile(f, executor="python", specialize=False, check=False)
    with onp.errstate(all="ignore"):
        assert_same(vg.func.hessian(c)(onp.array(point)), vg.func.hessian(f)(onp.array(point)), 1e-12)
    assert_by_source(c, 1)


SECOND = [case for case in CASES if name_of(case) not in ("of_records", "gathered")]


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("case", SECOND, ids=name_of)
def test_gradients_of_calls_are_differentiated_by_programs(case, executor):
    f, make = case
    arguments = make(5)

    def second(function):
        leaves = [vg.Tensor(a, requires_grad=True) for a in arguments]
        value = function(*leaves)
        grads = vg.autograd.grad((value * value).sum(), leaves, create_graph=True, allow_unused=True)
        total = sum((g * g).sum() * (k + 1.0) for k, g in enumerate(grads) if g is not None)
        kinds = {type(g.grad_fn).__name__ for g in grads if g is not None}
        return vg.autograd.grad(total, leaves, allow_unused=True), kinds

    c = vg.compile(f, specialize=False, executor=executor)
    for _ in range(3):
        found, kinds = second(c)
    assert kinds == {"SourceDoubleBackward"}
    expected, _ = second(vg.adopt(f))
    for one, other in zip(found, expected):
        assert_same(0.0 if one is None else one, 0.0 if other is None else other, 1e-7)
    program = next(p for es in c.tier.specializations.values() for e in es for p in e.programs.values())
    assert program.second is not None and not program.checks_second


def test_third_derivatives_of_calls():
    c = vg.compile(tier.square_root, specialize=False, executor="python")

    def third(f):
        x = vg.Tensor([2.0, 3.0], requires_grad=True)
        (g,) = vg.autograd.grad(f(x) ** 2 * x[1], [x], create_graph=True)
        (h,) = vg.autograd.grad((g * g).sum(), [x], create_graph=True)
        return vg.autograd.grad((h * h).sum(), [x])

    for _ in range(2):
        found = third(c)
    assert_same(found, third(tier.square_root), 1e-8)


def test_jvp_agrees_with_a_complex_step():
    c = vg.compile(of_functions, specialize=False, executor="python")
    x, v = vector(7), onp.sin(vector(7))
    for _ in range(2):
        _, tangent = vg.func.jvp(c, (x,), (v,))

    def by_hand(x):
        y = onp.exp(x) * onp.tanh(x) + onp.log(1 + x * x) - onp.arctan(x / (2.0 + x))
        logarithm = onp.log(onp.exp(x) + onp.exp(0.3))
        return y / (1.0 + onp.sqrt(x * x + 1.0)) + x**3 - 2.0**x + onp.sqrt(x * x + 2.25) * logarithm

    onp.testing.assert_allclose(tangent, by_hand(x + 1e-30j * v).imag / 1e-30, rtol=1e-12)


def test_hessian_and_jacobians_run_programs():
    def loss(x):
        total = 0.0
        for i in range(len(x) - 1):
            total += 100.0 * (x[i + 1] - x[i] ** 2) ** 2 + (1.0 - x[i]) ** 2
        return total

    c = vg.compile(loss, specialize=False, executor="python")
    for n in (4, 6):
        x = vector(n)
        assert_same(vg.func.hessian(c)(x), vg.func.hessian(loss)(x))
        assert_same(vg.func.jacfwd(vg.func.grad(c))(x), vg.func.hessian(loss)(x))
        assert_same(vg.func.jacfwd(c)(x), vg.func.jacfwd(loss)(x))
    assert_by_source(c, 1)  # for the first call; rows of later calls are computed by the gradient's program
    found = vg.func.jacrev(vg.compile(tier.heat, specialize=False, executor="python"))(x, 0.1)
    assert_same(found, vg.func.jacrev(tier.heat)(x, 0.1))


def test_zero_tangents_at_infinite_slopes():
    def f(x):
        return (np.sqrt(x) * np.array([1.0, 2.0, 3.0])).sum() + x[0] ** 0.5

    c = vg.compile(f, specialize=False, executor="python")
    x, v = onp.array([0.0, 1.0, 4.0]), onp.array([0.0, 1.0, 1.0])
    with onp.errstate(all="ignore"):
        for _ in range(2):
            assert_same(vg.func.jvp(c, (x,), (v,)), vg.func.jvp(f, (x,), (v,)))
    assert_by_source(c, 1)


def test_nonfinite_values_match_the_function():
    def f(x):
        return np.hypot(x, 2.0 * x).sum() + np.sqrt(x * x).sum()

    with onp.errstate(all="ignore"):
        c = vg.compile(f, specialize=False, executor="python")
        for x in (onp.array([0.0, 1.0]), onp.array([0.5, 1.0]), onp.array([0.0, 2.0])):
            for _ in range(2):
                assert_same(vg.func.jvp(c, (x,), (x + 1.0,)), vg.func.jvp(f, (x,), (x + 1.0,)))
    assert "compiled from its source" in c.jvp.explain()


def test_tangents_must_be_like_arguments():
    c = vg.compile(of_functions, specialize=False, executor="python")
    for _ in range(2):
        vg.func.jvp(c, (vector(4),), (vector(4),))
    with pytest.raises(vg.errors.GradientMismatchError, match="shape"):
        vg.func.jvp(c, (vector(4),), (vector(6),))
    x = vg.Tensor(vector(4))
    assert_same(vg.func.jvp(c, (x,), (x,)), vg.func.jvp(of_functions, (x,), (x,)))


def test_errors_match_the_function():
    def f(x):
        y = x * 2.0
        for i in range(len(x) + (1 if x[0] > 1.0 else 0)):
            y[i] = y[i] * x[i]
        return y

    c = vg.compile(f, specialize=False, executor="python")
    x = onp.array([0.5, 2.0])
    for _ in range(2):
        assert_same(vg.func.jvp(c, (x,), (x,)), vg.func.jvp(f, (x,), (x,)))
    with pytest.raises(IndexError):
        vg.func.jvp(c, (x + 1,), (x,))
    empty = onp.zeros(0)
    g = vg.compile(lambda x: np.sin(x) * x, specialize=False, executor="python")
    for _ in range(2):
        assert vg.func.jvp(g, (empty,), (empty,))[1].shape == (0,)
