"""Textbook numerics in plain NumPy, compiled from the source once for all lengths, against NumPy and differences."""

import dataclasses

import numpy as np
import pytest
from numerics_programs import PROGRAMS

import viewgrad as vg

LENGTHS = (7, 2, 11, 5, 30)
STEP = 1e-6
# Functions that the source compiler refuses, with a part of the reason that it reports.
REFUSED = {
    "closures_and_lambdas": "a choice of a function or a function", "yields": "generators are not supported",
    "printing": "print() with these arguments",
}  # fmt: skip
NUMBA_QUICK = {"fir", "stack_machine", "pid_object"}


def mapped(value, change):
    """Return the arguments with `change` applied to the arrays of floats in them."""
    if isinstance(value, np.ndarray):
        return change(value) if value.dtype.kind in "fc" else value.copy()
    if isinstance(value, (list, tuple)):
        return type(value)([mapped(each, change) for each in value])
    if isinstance(value, dict):
        return {key: mapped(each, change) for key, each in value.items()}
    if dataclasses.is_dataclass(value):
        fields = {field.name: mapped(getattr(value, field.name), change) for field in dataclasses.fields(value)}
        return dataclasses.replace(value, **fields)
    return value


def number_of(value):
    return complex(value.detach().numpy() if isinstance(value, vg.Tensor) else value).real


def slope_of_differences(f, given, directions, step):
    ends = []
    for sign in (1, -1):
        along = iter([sign * step * each for each in directions])
        moved = [mapped(arg, lambda a, along=along: (a + next(along)).astype(a.dtype)) for arg in given]
        ends.append(number_of(f(*moved)))
    return (ends[0] - ends[1]) / (2 * step)


def check(f, make, executor):
    """Compare a program and its gradient along a direction for several lengths; return the compiled function."""
    compiled = vg.compile(f, executor=executor, specialize=False)
    for n in LENGTHS:
        given = make(np.random.default_rng(n), n)
        leaves = []

        def leaf(array, leaves=leaves):
            leaves.append(vg.Tensor(array.copy(), requires_grad=True))
            return leaves[-1]

        with np.errstate(all="ignore"):
            value = compiled(*[mapped(arg, leaf) for arg in given])
            single = any(each.dtype == np.float32 for each in leaves)
            expected_value = number_of(f(*given))
            np.testing.assert_allclose(number_of(value), expected_value, rtol=1e-6 if single else 1e-10)
            rng = np.random.default_rng(99)
            directions = [rng.normal(size=each.shape) + (1j * rng.normal(size=each.shape) if each.dtype.kind == "c"
                                                         else 0) for each in leaves]
            gradients = vg.autograd.grad(value, leaves, allow_unused=True)
            slope = sum(np.sum(np.conj(gradient.numpy()) * direction).real
                        for gradient, direction in zip(gradients, directions) if gradient is not None)
            step, tolerance = (1e-2, 1e-2) if single else (STEP, 1e-5)
            expected = slope_of_differences(f, given, directions, step)
        np.testing.assert_allclose(slope, expected, rtol=tolerance, atol=tolerance * max(1.0, abs(number_of(value))))
    return compiled


def is_built_once(compiled):
    entries = [entry for entries in compiled.tier.specializations.values() for entry in entries]
    built = [program for entry in entries for program in entry.programs.values()]
    assert all(entry.source is not None for entry in entries), compiled.explain()
    assert len(built) == 1


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_programs_by_python(f):
    compiled = check(f, PROGRAMS[f], "python")
    if f.__name__ in REFUSED:
        assert REFUSED[f.__name__] in compiled.explain()
    else:
        is_built_once(compiled)


@pytest.mark.parametrize("f", [
    pytest.param(f, marks=[] if f.__name__ in NUMBA_QUICK else pytest.mark.slow) for f in PROGRAMS
    if f.__name__ not in REFUSED
], ids=lambda f: f.__name__)  # fmt: skip
def test_programs_by_numba(f):
    pytest.importorskip("numba")
    is_built_once(check(f, PROGRAMS[f], "numba"))


# -- what is read in order, and what shares memory ---------------------------------------------------------------------


def doubled(a):
    a[0] = a[0] * 2.0
    return a[0]


def weighted(u, v):
    return u + 10 * v


IN_ORDER = [
    lambda a, x: a[0] + doubled(a),
    lambda a, x: (a[0] < doubled(a)) * 1.0 + a[0],
    lambda a, x: weighted(a[0], doubled(a)),
    lambda a, x: weighted(v=a[0], u=doubled(a)),
    lambda a, x: (a[0] if x[0] > 0 else 0.0) + doubled(a),
    lambda a, x: [a[0], doubled(a)][0] * 3.0,
    lambda a, x: {"u": a[0], "v": doubled(a)}["u"] * 3.0,
    lambda a, x: a.sum() * doubled(a),
    lambda a, x: (s := a[0]) + (s := s * a[1]) * s,
    lambda a, x: a[int(a[0] > 1.0)] + a[int(doubled(a) > 1.0)],
]


@pytest.mark.parametrize("number", range(len(IN_ORDER)))
def test_operands_are_read_in_order(number):
    expression = IN_ORDER[number]

    def f(x):
        a = x.copy()
        return expression(a, x)

    compiled = vg.compile(f, executor="python", specialize=False, check=False)
    x = np.array([0.7, 2.0, 3.0])
    leaf = vg.Tensor(x, requires_grad=True)
    value = compiled(leaf)
    assert compiled.tier.source(), compiled.explain()
    np.testing.assert_allclose(number_of(value), f(x))
    (gradient,) = vg.autograd.grad(value, [leaf])
    for axis in range(3):
        direction = np.eye(3)[axis]
        expected = (f(x + STEP * direction) - f(x - STEP * direction)) / (2 * STEP)
        np.testing.assert_allclose(gradient.numpy()[axis], expected, rtol=1e-6, atol=1e-8)


class Cell:
    def __init__(self, v):
        self.v = v

    def taken(self, u):
        self.v = self.v * 3.0
        return u + 10 * self.v


def test_arguments_keep_their_values_at_the_time_of_the_call():
    def f(x, s):
        cell = Cell(x[1])

        def bump(v):
            nonlocal s
            s = s * 2.0
            return v + 10 * s

        swap = lambda u, v: (v, u)
        a, b = x[0] * 1.0, x[1] * 1.0
        for _ in range(3):
            a, b = swap(a, b) if len(x) > 2 else (a, b)
            b, a = (a, b) if a > b else (b, 2.0 * a)
        return bump(s) + cell.taken(cell.v) + 3 * a + 5 * b

    compiled = vg.compile(f, executor="python", specialize=False, check=False)
    for x in (np.array([1.5, 2.0, 3.0]), np.array([2.5, 2.0])):
        leaf = vg.Tensor(x, requires_grad=True)
        value = compiled(leaf, 0.7)
        np.testing.assert_allclose(number_of(value), f(x, 0.7))
        (gradient,) = vg.autograd.grad(value, [leaf])
        expected = [(f(x + STEP * d, 0.7) - f(x - STEP * d, 0.7)) / (2 * STEP) for d in np.eye(len(x))]
        np.testing.assert_allclose(gradient.numpy(), expected, rtol=1e-6)
    is_built_once(compiled)


def assigned_in_a_branch(x, y):
    total = 0.0
    for i in range(len(x)):
        if y[i] > -10.0:
            a = x[i] * 0.5
        e = a * 2.0
        total += e**2
    return total


def checked_by_a_function(x, y):
    def pick(i):
        if y[i] < -10.0:
            raise ValueError
        return x[i]

    total = 0.0
    for i in range(len(x)):
        e = y[i] - pick(i)
        total += e**2
    return total


def read_in_a_branch(x, y):
    total, state = 0.0, np.zeros(3)
    for i in range(len(x)):
        if y[i] > -10.0:
            a = state[i % 3]
        e = x[i] - a
        state[i % 3] = e
        total += e**2
    return total


@pytest.mark.parametrize("executor", ["python", "numba"])
@pytest.mark.parametrize("f", [assigned_in_a_branch, checked_by_a_function, read_in_a_branch])
def test_numbers_are_recomputed_from_numbers_that_are_known(f, executor):
    if executor == "numba":
        pytest.importorskip("numba")
    x, y = np.arange(1.0, 6.0), np.array([1.0, 3.0, 2.0, 5.0, 1.0])
    compiled = vg.compile(f, executor=executor, check=False, specialize=False)
    for one, other in zip(vg.func.grad(compiled, (0, 1))(x, y), vg.func.grad(f, (0, 1))(x, y)):
        np.testing.assert_allclose(one, other, 1e-12)
    is_built_once(compiled)


def test_variables_of_comprehensions_are_their_own():
    def f(x):
        v = x[0]
        s = sum(v * v for v in x)
        t = [v + 1 for v in (s, x[1])]
        return s * v + t[1]

    compiled = vg.compile(f, executor="python", specialize=False, check=False)
    x = np.array([1.5, 2.0, 3.0])
    np.testing.assert_allclose(number_of(compiled(vg.Tensor(x))), f(x))
    assert compiled.tier.source()


def test_an_array_and_a_view_of_it_in_one_kernel():
    def f(x):
        y = x * 1.0
        back = y[::-1]
        for i in range(len(y)):
            y[i] = y[i] + 0.5 * back[i]
        return (y * x).sum()

    compiled = vg.compile(f, executor="python", specialize=False, check=False)
    x = np.array([1.5, 2.0, 3.0, -1.0])
    leaf = vg.Tensor(x, requires_grad=True)
    value = compiled(leaf)
    np.testing.assert_allclose(number_of(value), f(x))
    (gradient,) = vg.autograd.grad(value, [leaf])
    expected = [(f(x + STEP * d) - f(x - STEP * d)) / (2 * STEP) for d in np.eye(4)]
    np.testing.assert_allclose(gradient.numpy(), expected, rtol=1e-6)


# -- lists -------------------------------------------------------------------------------------------------------------


def test_list_capacity_grows_without_recompiling():
    def f(x):
        items = []
        for v in x:
            if v > 0:
                items.append(v * v)
        return sum(items) * len(items)

    compiled = vg.compile(f, executor="python", specialize=False)
    for n in (3, 2000, 10, 40_000, 5):
        x = np.cos(np.arange(n))
        leaf = vg.Tensor(x, requires_grad=True)
        value = compiled(leaf)
        np.testing.assert_allclose(number_of(value), f(x))
        (gradient,) = vg.autograd.grad(value, [leaf])
        np.testing.assert_allclose(gradient.numpy(), np.where(x > 0, 2 * x * (x > 0).sum(), 0.0))
    is_built_once(compiled)


@pytest.mark.parametrize("text", ["items[3]", "items[-4]", "items.pop()"])
def test_an_index_out_of_a_list_raises_as_in_the_function(text):
    def f(x):
        items = [x[0]]
        for v in x[1:]:
            items.append(v)
        return items[3] if text == "items[3]" else items[-4] if text == "items[-4]" else [items.pop() for _ in x][3]

    compiled = vg.compile(f, executor="python", specialize=False)
    compiled(vg.Tensor(np.arange(4.0), requires_grad=True))
    with pytest.raises(IndexError):
        compiled(vg.Tensor(np.arange(3.0), requires_grad=True))


def test_an_array_that_is_written_to_after_it_was_appended_is_refused():
    def f(x):
        state = x.copy()
        rows = []
        for v in x:
            state += v
            rows.append(state)
        return np.array(rows).sum()

    def g(x):
        rows = []
        for v in x:
            state = x.copy()
            state += v
            rows.append(state)
        return np.array(rows).sum()

    x = np.array([1.0, 2.0])
    for function, taken in ((f, False), (g, True)):
        compiled = vg.compile(function, executor="python", specialize=False)
        np.testing.assert_allclose(number_of(compiled(vg.Tensor(x, requires_grad=True))), function(x))
        assert bool(compiled.tier.source()) is taken


# -- lengths and bounds ------------------------------------------------------------------------------------------------


def past_the_end(x, index):
    s = 0.0
    for i in range(len(x)):
        s += x[i] * x[i + 1 - index[0]]
    return s


def by_an_index_array(x, index):
    s = 0.0
    for k in index:
        s += x[k] ** 2
    return s


def written_by_an_index(x, index):
    y = np.zeros(len(x))
    for k in range(len(index)):
        y[index[k]] += x[k]
    return (y * y).sum()


def of_rows(x, index):
    table = np.outer(x, x)
    s = 0.0
    for k in range(len(index)):
        row = table[index[k]]
        s += row[0] * row[len(x) - 1]
    return s


def of_views(x, index):
    y = x[1:]
    s = 0.0
    for k in range(len(index)):
        s += y[index[k]] * x[k]
    return s


@pytest.mark.parametrize("executor", ["python", pytest.param("numba", marks=pytest.mark.slow)])
@pytest.mark.parametrize("f", [past_the_end, by_an_index_array, written_by_an_index, of_rows, of_views])
def test_an_index_out_of_range_raises(f, executor):
    if executor == "numba":
        pytest.importorskip("numba")
    compiled = vg.compile(f, executor=executor, specialize=False)
    for n, index in ((4, [1, 0, 2]), (6, [1, 4, 1]), (4, [-1, 0, 1])):
        if f is past_the_end and index[0] < 0:
            continue
        index = np.array(index)
        leaf = vg.Tensor(np.arange(1.0, n + 1), requires_grad=True)
        expected = f(np.arange(1.0, n + 1), index)
        np.testing.assert_allclose(number_of(compiled(leaf, index)), expected)
    for bad in ([0, 1, 9], [-9, 1, 0], [4_000_000_000, 0, 0]):
        index = np.array(bad)
        with pytest.raises(IndexError):
            f(np.arange(1.0, 5.0), index)
        with pytest.raises(IndexError):
            compiled(vg.Tensor(np.arange(1.0, 5.0), requires_grad=True), index)
    assert compiled.tier.source()


def test_one_program_serves_a_thousand_lengths():
    def f(p, y):
        level, total = y[0], 0.0
        for t in range(1, len(y)):
            error = y[t] - level
            total += error * error
            level += p[0] * error
        return total

    compiled = vg.compile(f, executor="python", specialize=False)
    for n in range(3, 1003):
        y = np.cos(np.arange(min(n, 40)) * 0.1 + n) if n % 100 else np.cos(np.arange(n) * 0.1)
        value, gradient = compiled.value_and_grad(np.array([0.3]), y)
        if n % 250 == 0:
            ends = [f(np.array([0.3 + step]), y) for step in (STEP, -STEP)]
            np.testing.assert_allclose(gradient[0], (ends[0] - ends[1]) / (2 * STEP), rtol=1e-6)
            np.testing.assert_allclose(value, f(np.array([0.3]), y))
    is_built_once(compiled)
    assert not compiled.specializations
    (entry,) = [entry for entries in compiled.tier.specializations.values() for entry in entries]
    assert entry.runs == 999 and not entry.failures


def broadcast_number(x, y):
    b = x.copy()
    b[::-1] = 0.5 * y[0] * np.cos(y[1])
    return (b * x).sum()


def complex_target(x, y):
    z = np.zeros(len(x), dtype=complex)
    for k in range(len(x)):
        z[k] = x[k] * y[0] * np.exp(y[1])
        z[k] = z[k] * (1.0 + 2.0j)
    return z.imag.sum() + (z.real * x).sum()


def shared_operands(x, y):
    total, u = 0.0, y[0]
    for k in range(len(x)):
        u = u - (u * u * u + x[k] * u - 2.0) / (3.0 * u * u + x[k] * x[k] + 1.0)
        total = total + np.exp(-u * u) * np.sqrt(x[k] * x[k] + u * u) / (1.0 + u * y[1])
    return total


def zero_times_infinity(x, y):
    total = 0.0
    for k in range(len(x)):
        w = x[k] * np.log(y[0] - y[0]) / (y[1] - y[1])  # unused if the factor is 0
        total = total + (0.0 if k % 2 else 1.0) * x[k] * x[k] + (w if x[k] > 1e9 else y[0] * x[k])
    return total


@pytest.mark.parametrize("executor", ["python", pytest.param("numba", marks=pytest.mark.slow)])
@pytest.mark.parametrize("program", [broadcast_number, complex_target, shared_operands, zero_times_infinity])
def test_partial_derivatives_of_expressions(program, executor):
    if executor == "numba":
        pytest.importorskip("numba")
    compiled = vg.compile(program, executor=executor, specialize=False, check=False)
    for n in (4, 7):
        rng = np.random.default_rng(n)
        x, y = rng.normal(size=n), rng.random(2) + 0.5
        with np.errstate(all="ignore"):
            found, expected = [vg.func.grad(f, (0, 1))(x, y) for f in (compiled, program)]
        for one, other in zip(found, expected):
            np.testing.assert_allclose(one, other, 1e-9)
    assert "not compiled" not in compiled.explain()
