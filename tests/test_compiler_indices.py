"""Index arrays in compiled programs: constant ones, and computed ones, which are checked in each run."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import viewgrad as vg
import viewgrad.numpy as vnp


def permuted(x):
    return x[vnp.arange(3), [0, 2, 1]] @ np.arange(3.0)


def diagonal_written(x):
    d = x.copy()
    n = vnp.arange(len(d))
    d[n, n] = 0
    d[0, n + 0] = n
    return (d * d).sum()


def sorted_rows(x):
    return (x[np.argsort(x[:, 0])] * np.arange(9.0).reshape(3, 3)).sum()


def put_in_order(x):
    y = x.copy()
    for _ in range(3):
        y[np.argsort(x[:, 0])] = y * 2.0 + x
    return (y * x).sum()


def positive(x):
    y = x.copy()
    y[x < 0] = 0.5
    return (y[x > 0] ** 2).sum() + y.sum()


def largest(x):
    y = vg.zeros(3)
    for i in range(3):
        y[i] = x[i, np.argmax(x[i])] ** 2
    return y.sum()


@pytest.mark.parametrize("executor", ["python", "numba"])
@pytest.mark.parametrize("f", [permuted, diagonal_written, sorted_rows, put_in_order, positive, largest])
def test_indices_by_arrays(f, executor):
    if executor == "numba":
        pytest.importorskip("numba")
    compiled = vg.compile(f, executor=executor)
    rng = np.random.default_rng(0)
    first = rng.normal(size=(3, 3))

    def agrees(array):
        seen = []
        for function in (compiled, f):
            x = vg.Tensor(array, requires_grad=True)
            value = function(x)
            seen.append([value.detach(), *vg.autograd.grad(value, x)])
        for one, other in zip(*seen, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for turn in range(4):
            agrees(first * (1 + 0.001 * turn))
        (entry,) = compiled.specializations
        assert entry.program is not None and entry.runs >= 3, compiled.explain()
        for _ in range(6):  # in another order
            agrees(rng.normal(size=(3, 3)))
        agrees(first)


def test_a_program_for_each_index_array_argument():
    def picked(x, places):
        y = x * 1.0
        for _ in range(50):
            y[places] = y[places] * 0.9 + x[places]  # with a known winner only for constant indices
        return (y * y).sum()

    compiled = vg.compile(picked, executor="python")
    x = vg.Tensor(np.arange(4.0), requires_grad=True)
    for turn in range(12):
        places = np.array([0, 2]) + turn % 2
        found, wanted = compiled(x, places), picked(x, places)
        assert found.detach().tolist() == pytest.approx(wanted.detach().tolist())
    assert sum(entry.program is not None for entry in compiled.specializations) == 2, compiled.explain()


def put_twice(x, v):
    y = x * 1.0
    y[[0, 2, 0, 1, 2]] = v
    y[np.array([[1, 1], [3, 1]])] *= 2.0
    y[[3, 3]] = 7.0
    return (y * x).sum() + (y**2).sum()


def added_twice(x, v):
    y = x * 1.0
    before = y * 2.0
    np.add.at(y, [0, 2, 0, 1, 2], v)
    np.add.at(y, np.array([[1, 1], [3, 1]]), v[0])
    np.add.at(y, [3, 3, 3], 2.0)
    return (y**2).sum() + (before * x).sum()


def in_two_dimensions(x, v):
    y = np.outer(x, v)
    y[[0, 0, 1], [1, 1, 2]] = v[:3] * x[:3]
    np.add.at(y, ([0, 0, 1], slice(1, 3)), v[:2])
    y[1:][[0, 0]] = v
    return (y**2).sum()


def along_edges(x, v):
    out = vg.zeros(4)
    for k in range(3):
        np.add.at(out, [k, k, k + 1], v[k : k + 3] * x[k])
        out[[k, k]] = out[[k + 1, k]] * v[k]
    return (out * x).sum()


def flags_put_twice(x, v):
    flags = x > 0
    flags[[0, 1, 0]] = v[:3] > 0
    return (np.where(flags, x, 0.5 * x) ** 2).sum()


@pytest.mark.parametrize("executor", ["python", pytest.param("numba", marks=pytest.mark.slow)])
@pytest.mark.parametrize("f", [put_twice, added_twice, in_two_dimensions, along_edges, flags_put_twice])
def test_repeated_indices(f, executor):
    if executor == "numba":
        pytest.importorskip("numba")
    compiled = vg.compile(f, executor=executor)
    for seed in range(4):
        rng = np.random.default_rng(seed)
        arrays = np.abs(rng.normal(size=4)), np.abs(rng.normal(size=5))  # abs: branches by sign stay the same
        seen = []
        for function in (compiled, f):
            given = [vg.Tensor(array, requires_grad=True) for array in arrays]
            value = function(*given)
            first = vg.autograd.grad(value, given, create_graph=True, allow_unused=True)
            total = sum((g * g).sum() for g in first if g is not None)
            second = vg.autograd.grad(total, given, allow_unused=True)
            seen.append([each.detach().numpy() for each in (value, *first, *second) if each is not None])
        for one, other in zip(*seen, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)
    assert compiled.specializations[0].program is not None, compiled.explain()


MANY = np.random.default_rng(0).integers(0, 10, (120, 8))  # places, others in each iteration
ORDERS = np.array([np.random.default_rng(n).permutation(10) for n in range(120)])


def resampled(x):
    for places in MANY:
        x = np.concatenate([x[places] * 1.01, x[:2]])
    return x


def put_in_many_orders(x):
    y = x * 1.0
    for order in ORDERS:
        y[order] = y * 0.5 + x
    return y


def read_and_put(x):
    y = x * 1.0
    for order in ORDERS:
        y[order[:4]] = x[order[4:8]] * 2.0 + y[order[:4]]
    return y


def rows_of_a_batch(x):
    y, total = x.reshape(5, 2) * 1.0, 0.0
    for places in MANY:
        total = total + (y[places[:3] % 5] * x[:2]).sum()
        y[places[0] % 5] *= 0.9
    return total


def two_by_turns(x):
    y = x * 1.0
    even, odd = np.array([0, 2, 6]), np.array([1, 5, 7])
    for _ in range(40):
        for places in (even, odd):
            y[places] = y[places[::-1]] * 0.9 + x[places]
    return y


def elements_assembled(x):
    matrix = vg.zeros((10, 10))
    for order in ORDERS:
        matrix[np.ix_(order[:2], order[:2])] += np.outer(x[order[:2]], x[order[:2]])
    return matrix


def test_loops_over_index_arrays_are_recovered():
    for f in (resampled, put_in_many_orders, read_and_put, rows_of_a_batch, two_by_turns, elements_assembled):
        compiled = vg.compile(f, executor="python", check=False)
        for seed in range(4):
            x = vg.Tensor(np.random.default_rng(seed).normal(size=10), requires_grad=True)
            seen = []
            for function in (compiled, f):
                value = function(x)
                loss = (value * np.cos(np.arange(value.size).reshape(value.shape))).sum()
                seen.append([value.detach().numpy(), vg.autograd.grad(loss, x)[0].numpy()])
            for one, other in zip(*seen, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)
        assert compiled.specializations[0].program is not None, compiled.explain()
        assert compiled.source().count("\n") < 125, f.__name__


def test_reductions_of_rows_that_are_read_twice():
    corners = np.array([[0, 1], [2, 0]])
    for f in (
        lambda x: x[[1, 1]].sum(0), lambda x: x[[0, 2, 0]].mean(0), lambda x: (x[corners].sum((0, 1)) ** 2).sum(),
    ):
        compiled = vg.compile(f, executor="python", check=False)
        for _ in range(3):
            x = vg.Tensor(np.arange(6.0).reshape(3, 2), requires_grad=True)
            found, wanted = [vg.autograd.grad(function(x).sum(), x)[0].numpy() for function in (compiled, f)]
            np.testing.assert_allclose(found, wanted)


GRADIENTS_OF_READS = {
    "a mask": lambda x: (x[x > 0.5] ** 2).sum(),
    "places": lambda x: (x[[2, 0, 2]] ** 2).sum(),
    "a masked write": lambda x: masked_double(x).sum(),
    "a read of a part": lambda x: (x[1:][[1, 0]] ** 2).sum(),
}


def masked_double(x):
    y = np.zeros(len(x))
    y[x > 0.5] = 2 * x[x > 0.5]
    return y


@pytest.mark.parametrize("name", GRADIENTS_OF_READS)
@pytest.mark.parametrize("executor", ["python", "numba"])
def test_compiled_gradients_of_reads_start_from_zero(name, executor):
    f = GRADIENTS_OF_READS[name]
    compiled = vg.compile(vg.grad(f), executor=executor)
    for x in ([1.0, 0.3, 2.0], [1.5, 0.1, 3.0], [1.5, 0.1, 3.0]):
        np.testing.assert_allclose(compiled(np.array(x)), vg.grad(f)(np.array(x)))


GRADIENTS_OF_SCALARS = {
    "quotient": lambda x: x[0] / x[1],
    "exponential": lambda x: np.exp(x[0]) * x[1],
    "norm": lambda x: np.linalg.norm(x) * x[2],
    "loop": lambda x: normalised(x).prod(),
}


def normalised(x):
    y = np.zeros(3)
    for i in range(3):
        y[i] = x[i] / x[0] + np.sqrt(x[i])
    return y


@pytest.mark.parametrize("name", GRADIENTS_OF_SCALARS)
def test_compiled_gradients_of_operators_that_save_a_scalar_result(name):
    f = GRADIENTS_OF_SCALARS[name]
    compiled = vg.compile(vg.grad(f), executor="python")
    for x in ([1.0, 0.3, 2.0], [1.5, 0.1, 3.0], [2.5, 0.7, 3.0]):
        np.testing.assert_allclose(compiled(np.array(x)), vg.grad(f)(np.array(x)))
    assert "eagerly" not in compiled.explain()


def test_writes_after_tracing_has_failed():
    def f(x):
        table = np.zeros((2, 2))
        table[0, :] = x
        return table.sum()

    compiled = vg.compile(vg.value_and_grad(f))
    assert [compiled(1.5) for _ in range(3)] == [(3.0, 2.0)] * 3
