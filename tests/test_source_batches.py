"""Compiled functions of a batch by programs from source: one program for all lengths and branches."""

import numpy as onp
import pytest

import viewgrad as vg
import viewgrad.numpy as np

EXECUTORS = ["python", pytest.param("numba", marks=pytest.mark.slow)]


def smoothed(x, alpha):
    level = np.zeros(len(x))
    level[0] = x[0]
    total = 0.0
    for t in range(1, len(x)):
        error = x[t] - level[t - 1]
        if error > 0.5:
            error = 0.5 * error * error
        level[t] = level[t - 1] + alpha[0] * np.tanh(error)
        total += error * error
    return level, total * alpha[1]


def rows_of(f, count, args, batched):
    results = [f(*(a[i, ...] if n in batched else a for n, a in enumerate(args))) for i in range(count)]
    if isinstance(results[0], tuple):
        return [vg.stack(column) for column in zip(*results)]
    return [vg.stack(results)]


def leaves(*shapes, seed=0):
    rng = onp.random.default_rng(seed)
    return [vg.Tensor(rng.normal(size=shape), requires_grad=True) for shape in shapes]


def assert_agree(found, expected, inputs):
    found = list(found) if isinstance(found, tuple) else [found]
    for one, other in zip(found, expected, strict=True):
        onp.testing.assert_allclose(one.detach().numpy(), other.detach().numpy(), rtol=1e-12, atol=1e-14)
    gradients = []
    for results in (found, expected):
        weights = [vg.Tensor(onp.cos(onp.arange(each.size)).reshape(each.shape)) for each in results]
        total = sum((each * weight).sum() for each, weight in zip(results, weights))
        gradients.append(vg.autograd.grad(total, inputs, retain_graph=True, allow_unused=True))
    for one, other in zip(*gradients):
        onp.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-9, atol=1e-12)


def nodes_of(results):
    return {each.grad_fn.name() for each in (results if isinstance(results, tuple) else (results,))}


@pytest.mark.parametrize("executor", EXECUTORS)
def test_batches_are_loops_over_examples(executor):
    c = vg.compile(smoothed, batch="x", executor=executor, specialize=False)
    for count, length in ((5, 8), (21, 30), (1, 8), (3, 2), (40, 5)):
        x, alpha = leaves((count, length), 2, seed=count)
        found = c(x, alpha)
        assert_agree(found, rows_of(smoothed, count, (x, alpha), [0]), [x, alpha])
    assert nodes_of(found) == {"SourceExamplesBackward"}
    entries = [entry for entries in c.compiled.tier.specializations.values() for entry in entries]
    assert [len(entry.programs) for entry in entries] == [1] and not entries[0].failures


@pytest.mark.parametrize("batch", [True, (0, 1)])
def test_all_arguments_may_have_the_leading_axis(batch):
    c = vg.compile(smoothed, batch=batch, executor="python", specialize=False)
    for count in (6, 4):
        x, alpha = leaves((count, 7), (count, 2), seed=count)
        assert_agree(c(x, alpha), rows_of(smoothed, count, (x, alpha), [0, 1]), [x, alpha])


def test_numbers_and_trees_have_a_leading_axis():
    def f(state, k):
        total = 0.0
        for _ in range(3):
            total += state["speed"] * state["place"].sum() * k
        return {"total": total, "place": state["place"] * state["speed"]}

    c = vg.compile(f, batch="state", executor="python", specialize=False)
    for count in (5, 3):
        place, speed = leaves((count, 4), count, seed=count)
        found = c({"place": place, "speed": speed}, 2)
        expected = [f({"place": place[i, ...], "speed": speed[i, ...]}, 2) for i in range(count)]
        for key in ("total", "place"):
            assert_agree(found[key], [vg.stack([each[key] for each in expected])], [place, speed])
    assert nodes_of(found["total"]) == {"SourceExamplesBackward"}


def test_gradients_survive_writes_and_second_passes():
    c = vg.compile(smoothed, batch="x", executor="python", specialize=False)
    x0, alpha = leaves((6, 9), 2)
    for _ in range(2):
        x = x0 * 1.0
        found = c(x, alpha)
        expected = rows_of(smoothed, 6, (x, alpha), [0])
        x[2:4] = 7.0  # after the call
        assert_agree(found, expected, [x0, alpha])
        assert_agree(found, expected, [x0, alpha])


def test_second_derivatives_match_the_function():
    c = vg.compile(smoothed, batch="x", executor="python", specialize=False)
    x, alpha = leaves((4, 6), 2)

    def second(values):
        (g,) = vg.autograd.grad((values[1] * values[1]).sum(), [alpha], create_graph=True)
        return vg.autograd.grad((g * g).sum(), [x, alpha])

    for _ in range(2):
        found = second(c(x, alpha))
    for one, other in zip(found, second(rows_of(smoothed, 4, (x, alpha), [0]))):
        onp.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-9)


def test_examples_with_errors_or_different_shapes():
    def f(x):
        y = np.zeros(3)
        for i in range(3):
            if x[i] < -10.0:
                raise ValueError("too cold")
            y[i] = x[i] * x[i]
        return y[y > 0.1] if x[0] > 100.0 else y.sum() * np.ones(2)

    c = vg.compile(f, batch=True, executor="python", specialize=False)
    x = onp.arange(12.0).reshape(4, 3)
    for _ in range(2):
        onp.testing.assert_allclose(c(x), onp.stack([f(row) for row in x]))
    x[2, 1] = -11.0
    with pytest.raises(ValueError, match="too cold"):
        c(x)
    x[2] = 200.0
    with pytest.raises(ValueError, match="different shapes"):
        c(x)


def test_empty_batches_have_the_shapes_of_results():
    c = vg.compile(smoothed, batch="x", executor="python", specialize=False)
    x, alpha = leaves((3, 5), 2)
    for _ in range(2):
        c(x, alpha)
    level, total = c(vg.Tensor(onp.zeros((0, 5)), requires_grad=True), alpha)
    assert level.shape == (0, 5) and total.shape == (0,)


def test_writes_to_other_arguments_keep_their_history():
    def running(x, total):
        for i in range(3):
            total[i] = total[i] + x[i]
            x[i] = total[i] * 1.0
        return total.sum()

    c = vg.compile(running, executor="python", specialize=False)
    found = []
    for function in (c, c, running):
        source = leaves((2, 3), seed=1)[0]
        x, total = source * 1.0, vg.zeros(3)
        results = [function(x[k, ...], total) for k in range(2)]
        loss = 3.0 * results[0] + results[1] + (x * x).sum() + (total * total).sum()
        found.append(vg.autograd.grad(loss, [source])[0].numpy())
    onp.testing.assert_allclose(found[0], found[2])
    onp.testing.assert_allclose(found[1], found[2])


def test_vmap_runs_the_program():
    c = vg.compile(smoothed, executor="python", specialize=False)
    x, alpha = leaves((5, 8), 2)
    mapped = vg.func.vmap(c, (0, None))
    for _ in range(2):
        found = mapped(x, alpha)
    assert_agree(tuple(found), rows_of(smoothed, 5, (x, alpha), [0]), [x, alpha])
    loss = vg.compile(lambda x, alpha: smoothed(x, alpha)[1], executor="python", specialize=False)
    per_example = vg.func.vmap(vg.func.grad(loss), (0, None))
    for _ in range(2):
        found = per_example(x, alpha)
    gradient = vg.func.grad(lambda x, a: smoothed(x, a)[1])
    expected = onp.stack([gradient(x[i, ...], alpha).detach().numpy() for i in range(5)])
    onp.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-9)


@pytest.mark.slow
def test_threads_give_the_same_numbers(monkeypatch):
    c = vg.compile(smoothed, batch="x", executor="numba", specialize=False)
    x, alpha = leaves((40, 3000), 2)
    sums = []
    for cores in (1, 3):
        monkeypatch.setattr("viewgrad.compiler.calls.chunks._cores", lambda cores=cores: cores)
        monkeypatch.setattr("viewgrad.compiler.source.examples.LONG", 0)
        for _ in range(2):
            level, total = c(x, alpha)
        assert total.grad_fn.run.is_parallel
        sums.append([total.detach().numpy(), *[g.numpy() for g in vg.autograd.grad((level * total[:, None]).sum(),
                                                                                   [x, alpha])]])
    for one, other in zip(*sums):
        onp.testing.assert_array_equal(one, other)
