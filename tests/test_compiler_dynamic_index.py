"""Indices that are computed or arguments: one compiled program serves all their values."""

from __future__ import annotations

import numpy as np
import pytest
from interpreted_kernels import compiled_by

import viewgrad as vg


def discrete_observations(transitions, emissions, start, seen):
    total = 0.0
    alpha = start * emissions[:, seen[0]]
    for t in range(1, len(seen)):
        alpha = (alpha @ transitions) * emissions[:, seen[t]]
        scale = alpha.sum()
        total = total + np.log(scale)
        alpha = alpha / scale
    return total


def score_of_tags(emit, moves, tags):
    total = emit[0, tags[0]]
    for t in range(1, len(tags)):
        total = total + moves[tags[t - 1], tags[t]] * emit[t % 3, tags[t]]
    return total


def counted(x, places):
    sums, counts = vg.zeros(4), vg.zeros(4, dtype=int)
    for t in range(len(places)):
        sums[places[t]] += x[t] * x[t]
        counts[places[t]] += 1
    return sums / (counts + 1.0) + sums[::-1] * counts


def rows_written(table, places):
    table = table * 1.0
    for t in range(len(places)):
        row = table[places[t]]
        table[places[t]] = row * 0.9 + table[0] * row
        table[1:, places[t] % 3] *= 1.01
        table[places[t], ::-1] = table[places[t]] + 0.5
    return table


def minibatches(samples, places):
    weights = vg.zeros(samples.shape[1])
    for t in range(len(places)):
        chosen = samples[places[t]]
        weights = weights - 0.1 * (chosen.T @ (chosen @ weights - 1.0))
    return weights


def many_axes(x, places, others):
    total = 0.0
    for t in range(len(places)):
        total = total + (x[places[t], :, others[t]] * x[0, ::-1, others[t]]).sum() * x[places[t], 1, -1 - others[t]]
        total = total + x[..., others[t]].sum() * x[places[t], None].mean()
    return total


def best_path(scores, moves):
    steps, n = scores.shape
    best, back = vg.zeros((steps, n)), vg.zeros((steps, n), dtype=int)
    best[0] = scores[0]
    for t in range(1, steps):
        for j in range(n):
            before = best[t - 1] + moves[:, j]
            back[t, j] = np.argmax(before)
            best[t, j] = before[back[t, j]] + scores[t, j]
    path = vg.zeros(steps, dtype=int)
    path[-1] = np.argmax(best[-1])
    for t in range(steps - 2, -1, -1):
        path[t] = back[t + 1, path[t + 1]]
    total = 0.0
    for t in range(steps):
        total = total + scores[t, path[t]] ** 2
    return total * np.ones(1), path


def put_by_arrays(x, places):
    y = x * 1.0
    for t in range(len(places)):
        y[places[t]] = y[places[t]] * 0.5 + x[:2]  # with a known winner only for constant indices
    np.add.at(y, places, 0.25)
    return y


def picked(low, high, *shape):
    return lambda rng: rng.integers(low, high, shape)


def floats(*shape):
    return lambda rng: rng.random(shape) + 0.1


PROGRAMS = {
    discrete_observations: (floats(3, 3), floats(3, 5), floats(3), picked(-5, 5, 12)),
    score_of_tags: (floats(3, 4), floats(4, 4), picked(0, 4, 11)),
    counted: (floats(9), picked(-4, 4, 9)),
    rows_written: (floats(4, 3), picked(-4, 4, 8)),
    minibatches: (floats(6, 2), picked(-6, 6, 7, 3)),
    many_axes: (floats(3, 2, 4), picked(-3, 3, 6), picked(0, 4, 6)),
    best_path: (floats(7, 3), floats(3, 3)),
    put_by_arrays: (floats(5), picked(0, 5, 4, 2)),
}
# A row by a computed index is a view, which a trace reads at a fixed position, and the source tier at any.
ROWS = (discrete_observations, rows_written, many_axes)


def outcomes(f, arrays):
    given = [vg.Tensor(array, requires_grad=array.dtype.kind == "f") for array in arrays]
    leaves = [each for each in given if each.requires_grad]
    results = f(*given)
    results = results if isinstance(results, tuple) else (results,)
    value = results[0]
    loss = (value * np.cos(np.arange(value.size).reshape(value.shape))).sum()
    alone = vg.autograd.grad(loss, leaves, retain_graph=True, allow_unused=True)  # by the program, without a replay
    first = vg.autograd.grad(loss, leaves, create_graph=True, allow_unused=True)
    total = sum([(g * np.sin(1.0 + np.arange(g.size).reshape(g.shape))).sum() for g in first if g is not None])
    second = vg.autograd.grad(total, leaves, allow_unused=True) if total.requires_grad else [None] * len(leaves)
    gradients = zip((*alone, *first, *second), leaves * 3, strict=True)
    zeros = [np.zeros(leaf.shape) if g is None else g.detach().numpy() for g, leaf in gradients]
    return [each.detach().numpy() for each in results] + zeros


@pytest.mark.parametrize("executor", ["python", "interpreted", pytest.param("numba", marks=pytest.mark.slow)])
@pytest.mark.parametrize("f", PROGRAMS)
def test_one_program_serves_all_indices(f, executor):
    if executor == "numba":
        pytest.importorskip("numba")
    compiled = compiled_by(executor, f)
    fixed = f is put_by_arrays or f in ROWS
    for seed in range(4 if fixed else 12):
        rng = np.random.default_rng(0 if fixed else seed)
        arrays = [draw(rng) for draw in PROGRAMS[f]]
        for one, other in zip(outcomes(compiled, arrays), outcomes(f, arrays), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
    assert sum(entry.usage.traces for entry in compiled.specializations) == 1, compiled.explain()
    assert compiled.specializations[-1].runs >= 3, compiled.explain()


@pytest.mark.parametrize("executor", ["python", pytest.param("numba", marks=pytest.mark.slow)])
@pytest.mark.parametrize("f", ROWS)
def test_one_program_from_the_source_takes_rows_by_any_index(f, executor):
    compiled = vg.compile(f, executor=executor, specialize=False)
    for seed in range(6):
        rng = np.random.default_rng(seed)
        arrays = [draw(rng) for draw in PROGRAMS[f]]
        for one, other in zip(outcomes(compiled, arrays), outcomes(f, arrays), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
    assert not compiled.specializations, compiled.explain()


def row_written_through(x, places):
    y = x * 1.0
    row, part = y[places[0]], y[places[1], 1:]
    row[0] = 5.0 * y[1, 1]
    y[places[0], 1] *= 2.0
    part *= row[1]
    return y * row.sum()


@pytest.mark.parametrize(("specialize", "check"), [(True, True), (False, True), (False, False)])
def test_rows_by_scalars_are_views(specialize, check):
    compiled = vg.compile(row_written_through, executor="python", specialize=specialize, check=check)
    for seed in range(8):
        rng = np.random.default_rng(seed // 4)
        arrays = [rng.random((3, 3)) + 0.5, rng.integers(-3, 3, 2)]
        numbers = [int(place) for place in arrays[1]]
        wanted = outcomes(lambda x, _, numbers=numbers: row_written_through(x, numbers), arrays)
        np.testing.assert_allclose(wanted[0], row_written_through(*arrays))
        for f in (row_written_through, compiled):
            for one, other in zip(outcomes(f, arrays), wanted, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-9)


@pytest.mark.parametrize("executor", ["python", "interpreted"])
def test_an_index_out_of_range_raises(executor):

    def f(x, places):
        y = x * 2.0
        for t in range(len(places)):
            y[places[t]] = y[places[t]] + 1.0
        return (y * y).sum()

    compiled = compiled_by(executor, f)
    x = vg.Tensor(np.arange(3.0), requires_grad=True)
    for _ in range(4):
        compiled(x, vg.Tensor([0, -1, 2, -3]))
    for wrong in ([0, 3, 1, 1], [0, 1, 1, -4]):
        with pytest.raises(IndexError, match="out of bounds"):
            compiled(x, vg.Tensor(wrong))
    found = compiled(x, vg.Tensor([2, 2, 2, -1]))
    assert found.item() == f(x, [2, 2, 2, -1]).item()
    assert compiled.specializations[0].usage.traces == 1


def test_rows_that_were_read_follow_later_writes():

    def f(x, places):
        y = x * 1.0
        total = 0.0
        for t in range(len(places)):
            row = y[places[t]]
            y[0] = y[1] * 3.0
            y[places[t]] *= 2.0
            total = total + (row * y[places[t]]).sum()
        return total

    for executor in ("python", "interpreted"):
        compiled = compiled_by(executor, f)
        for seed in range(6):
            rng = np.random.default_rng(seed // 3)
            arrays = [rng.normal(size=(3, 2)), rng.integers(0, 3, 5)]
            expected = outcomes(f, arrays)
            np.testing.assert_allclose(expected[0], f(*arrays), rtol=1e-12)
            for one, other in zip(outcomes(compiled, arrays), expected, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::viewgrad.errors.NotCompiledWarning")  # for the index by argmax in a gradient
def test_derivatives_along_directions_and_options_of_operators():

    def moved(x):
        y, total = x * 1.0, 0.0
        order = np.argsort(x)
        for t in range(len(x)):
            y[order[t]] = np.sin(x[order[t - 1]]) + y[t]
            total = total + y[order[-1 - t]] * x[t]
        return total

    def taken(x):
        order = np.argsort(x)
        return (np.take(x, order) * np.arange(1.0, 6.0)).sum() + x[order[0]] * 3.0 + np.take(x, order[1])

    def differentiated(x):
        slope = vg.func.grad(lambda y: (y[np.argsort(y)] ** 3 * np.arange(5.0)).sum() + y[np.argmax(y)] ** 2)(x)
        return (slope * slope).sum()

    def masked(x):
        y = x * 1.0
        y[y > 0.3] = x[0] * 0.5
        y[y < -0.3] = 0.0
        slope = vg.func.grad(lambda z: clipped(z).sum())(y)
        return (y * slope * clipped(x)).sum()

    for f in (moved, taken, differentiated, masked):
        for executor in ("python", "interpreted"):
            compiled = compiled_by(executor, f)
            for seed in range(4):
                rng = np.random.default_rng(seed)
                x, along = vg.Tensor(rng.normal(size=5)), vg.Tensor(rng.normal(size=5))
                for one, other in zip(vg.func.jvp(compiled, (x,), (along,)), vg.func.jvp(f, (x,), (along,))):
                    np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-10)
                found, wanted = vg.func.grad(compiled)(x), vg.func.grad(f)(x)
                np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-10, atol=1e-12)


def clipped(x):
    x = x * 1.0
    for t in range(6):
        x[1:-1] = 0.5 * x[2:] + 0.6 * x[:-2]
        x[x > 0.6] = 0.1 * t
        x[x < -0.5] = x[0] * x[1]
    return x


def barrier(x):
    table = np.outer(x, x)
    for t in range(4):
        row = table[t]
        row[row > 0.2] = 0.0
        table[:, 1][np.isnan(table[:, 1])] = x[2]
        table[table[:, 0] > 0.1] *= 1.0
        other = table.detach()
        other[other < -0.9] = -0.9
    return table


@pytest.mark.parametrize("executor", ["python", "interpreted"])
@pytest.mark.parametrize("f", [clipped, barrier])
def test_masked_scalar_assignment_for_any_mask(f, executor):
    compiled = compiled_by(executor, f)
    for seed in range(10):
        arrays = [np.random.default_rng(seed if f is clipped else seed // 4).normal(size=5)]
        if seed == 3 and f is clipped:
            arrays[0][2] = np.nan
        for one, other in zip(outcomes(compiled, arrays), outcomes(f, arrays), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
    assert f is barrier or sum(entry.usage.traces for entry in compiled.specializations) == 1, compiled.explain()
