"""Compiled functions of a batch: the values and gradients of a Python loop over the examples."""

from __future__ import annotations

import importlib.util
import pickle

import numpy as np
import pytest
from leaves import leaf, numbers, random_leaf

import viewgrad as vg

NUMBA = pytest.param("numba", marks=pytest.mark.skipif(not importlib.util.find_spec("numba"), reason="needs Numba"))
EXECUTORS = ["python", NUMBA]


def smoothed(x, alpha):
    y = vg.zeros(len(x))
    y[0] = x[0]
    for t in range(1, len(x)):
        y[t] = alpha[0] * x[t] + (1 - alpha[0]) * y[t - 1]
    return y, (y * y).sum() * alpha[1]


def one_by_one(f, count, *args, batched):
    """Return the results of a function for each example, stacked."""
    results = [f(*(a[i, ...] if n in batched else a for n, a in enumerate(args))) for i in range(count)]
    return [vg.stack(column) for column in zip(*results)] if isinstance(results[0], tuple) else vg.stack(results)


def seeded(result):
    """Return a scalar in which each element of a result has a different weight."""
    parts = result if isinstance(result, list | tuple) else [result]
    return sum((part * np.cos(np.arange(part.size)).reshape(part.shape)).sum() for part in parts)


def agrees(found, expected, leaves):
    """Return whether two results are equal, with their gradients."""
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(numbers(one), numbers(other), rtol=1e-12)
    made = vg.autograd.grad(seeded(found), leaves)
    wanted = vg.autograd.grad(seeded(expected), leaves, retain_graph=True)
    for one, other in zip(made, wanted, strict=True):
        np.testing.assert_allclose(numbers(one), numbers(other), rtol=1e-10)


def name_of(tensor):
    return tensor.grad_fn.name()


@pytest.mark.parametrize("executor", EXECUTORS)
def test_batched_results_match_a_loop_over_examples(executor):
    compiled = vg.compile(smoothed, batch=("x",), executor=executor)
    for seed in range(3):
        x, alpha = random_leaf(21, 30, seed=seed), leaf(0.3, 2.0)
        found = compiled(x, alpha)
        agrees(found, one_by_one(smoothed, 21, x, alpha, batched=[0]), [x, alpha])
        assert found[0].shape == (21, 30) and found[1].shape == (21,)
    assert [name_of(part) for part in found] == ["BatchedBackward"] * 2, compiled.explain()


@pytest.mark.parametrize("executor", EXECUTORS)
def test_all_tensors_may_have_the_leading_axis(executor):
    compiled = vg.compile(smoothed, batch=True, executor=executor)
    for _ in range(2):
        x, alpha = random_leaf(5, 30), random_leaf(5, 2, seed=1)
        agrees(found := compiled(x, alpha), one_by_one(smoothed, 5, x, alpha, batched=[0, 1]), [x, alpha])
    assert name_of(found[0]) == "BatchedBackward", compiled.explain()


def squares(x, w):
    y = x * w
    for i in range(1, 12):
        y[i] = y[i] * y[i - 1]
    return y.sum()


@pytest.mark.parametrize("batch", [0, "x", (0,), ["x"], ("x",)])
def test_batched_arguments_by_name_or_position(batch):
    compiled = vg.compile(squares, batch=batch, executor="python")
    for _ in range(2):
        x, w = random_leaf(4, 12), random_leaf(12, seed=1)
        expected = one_by_one(squares, 4, x, w, batched=[0])
        agrees([compiled(x, w)], [expected], [x, w])
        agrees([compiled(w=w, x=x)], [expected], [x, w])


def test_batched_arguments_of_any_memory_layout():
    compiled = vg.compile(squares, batch=True, executor="python")
    data = random_leaf(24, 6)
    for _ in range(3):
        x, w = data[:12].T, data[::2].T[:, ::-1]
        agrees([compiled(x, w)], [one_by_one(squares, 6, x, w, batched=[0, 1])], [data])
    wide = vg.Tensor(np.broadcast_to(np.linspace(0.5, 1, 12), (6, 12)), requires_grad=True)
    agrees([compiled(wide, data[:12].T)], [one_by_one(squares, 6, wide, data[:12].T, batched=[0, 1])], [wide, data])


def test_arrays_and_other_dtypes():
    compiled = vg.compile(squares, batch="x", executor="python")
    w = random_leaf(12)
    for dtype in [float, np.float32, np.int64]:
        for _ in range(2):
            x = np.arange(36).reshape(3, 12).astype(dtype) / (1 if dtype is np.int64 else 36)
            agrees([compiled(x, w)], [one_by_one(squares, 3, x, w, batched=[0])], [w])


def test_captured_tensors_get_the_sum_of_gradients():
    scale = random_leaf(12, seed=2)

    def f(x):
        return squares(x, scale)

    compiled = vg.compile(f, batch=True, executor="python")
    for _ in range(2):
        x = random_leaf(5, 12)
        agrees([found := compiled(x)], [one_by_one(f, 5, x, batched=[0])], [x, scale])
    assert name_of(found) == "BatchedBackward", compiled.explain()
    scale.requires_grad = False
    agrees([compiled(x)], [one_by_one(f, 5, x, batched=[0])], [x])


def test_an_argument_that_is_not_used_has_gradient_zero():
    compiled = vg.compile(lambda x, w: squares(x, x), batch="x", executor="python")
    for _ in range(2):
        x, w = random_leaf(5, 12), random_leaf(2)
        compiled(x, w).sum().backward()
        assert w.grad is None or numbers(w.grad) == [0.0, 0.0]
        assert x.grad.shape == (5, 12) and x.grad.numpy().all()


@pytest.mark.parametrize("executor", EXECUTORS)
def test_second_derivatives(executor):
    compiled = vg.compile(squares, batch="x", executor=executor)
    found = []
    for function in (compiled, compiled, lambda x, w: one_by_one(squares, 3, x, w, batched=[0])):
        x, w = random_leaf(3, 12), random_leaf(12, seed=1)
        first = vg.autograd.grad(seeded(function(x, w)), [x, w], create_graph=True)
        second = vg.autograd.grad(sum((g * g).sum() for g in first), [x, w])
        found.append([numbers(g) for g in [*first, *second]])
    for one, other, expected in zip(*found, strict=True):
        np.testing.assert_allclose(one, expected, rtol=1e-10)
        np.testing.assert_allclose(other, expected, rtol=1e-10)


def test_values_are_kept_until_the_gradient_is_taken():
    compiled = vg.compile(squares, batch="x", executor="python")
    for _ in range(2):
        x, w = random_leaf(4, 12), random_leaf(12, seed=1)
        given = x * 1.0
        value = compiled(given, w).sum()
        expected = vg.autograd.grad(one_by_one(squares, 4, x, w, batched=[0]).sum(), [x, w])
        given.mul_(7.0)
        for one, other in zip(vg.autograd.grad(value, [x, w], retain_graph=True), expected):
            np.testing.assert_allclose(numbers(one), numbers(other), rtol=1e-10)
        value.backward()
        with pytest.raises(vg.errors.FreedGraphError):
            value.backward()


def test_value_and_grad():
    compiled = vg.compile(squares, batch="x", executor="python")
    w = np.linspace(0.5, 1.5, 12)
    x = random_leaf(4, 12).detach()
    for _ in range(2):
        value, gradient = vg.func.value_and_grad(lambda w: compiled(x, w).sum())(vg.Tensor(w))
        expected, wanted = vg.func.value_and_grad(lambda w: one_by_one(squares, 4, x, w, batched=[0]).sum())(
            vg.Tensor(w)
        )
        np.testing.assert_allclose([value.item(), *numbers(gradient)], [expected.item(), *numbers(wanted)])
    turned = vg.compile(lambda w, x: squares(x, w), batch="x", executor="python")
    for _ in range(2):
        value, gradient = turned.value_and_grad(w, x)
        np.testing.assert_allclose([value, *gradient], [expected.item(), *numbers(wanted)])
    value, gradient = compiled.value_and_grad(x.numpy(), w)
    assert gradient.shape == (4, 12) and value == pytest.approx(expected.item())


@pytest.mark.parametrize("executor", EXECUTORS)
def test_an_empty_batch(executor):
    compiled = vg.compile(smoothed, batch="x", executor=executor)
    x, alpha = vg.zeros((0, 30), requires_grad=True), leaf(0.3, 2.0)
    with pytest.raises(ValueError, match="the batch is empty"):
        compiled(x, alpha)
    compiled(random_leaf(3, 30), alpha)
    y, total = compiled(x, alpha)
    assert y.shape == (0, 30) and total.shape == (0,)
    for gradient, like in zip(vg.autograd.grad(y.sum() + total.sum(), [x, alpha]), [x, alpha]):
        assert gradient.shape == like.shape and not gradient.numpy().any()


def test_without_gradients_there_is_no_history():
    compiled = vg.compile(squares, batch="x", executor="python")
    x, w = random_leaf(4, 12), random_leaf(12, seed=1)
    for _ in range(2):
        with vg.no_grad():
            assert not compiled(x, w).requires_grad
        assert not compiled(x.detach(), w.detach()).requires_grad
        assert compiled(x, w).requires_grad


def folded(x):
    y = x * 1.0
    for i in range(len(y)):
        if y[i] < 0:
            y[i] = -2 * y[i]
    return y.sum()


def test_examples_may_take_different_branches():
    compiled = vg.compile(folded, batch=True, executor="python")
    for rows in ([[1.0, 2.0]] * 4, [[1.0, 2.0], [1.0, -2.0], [3.0, 2.0]], [[-1.0, 2.0], [2.0, 2.0]]):
        x = leaf(*rows)
        agrees([compiled(x)], [one_by_one(folded, len(rows), x, batched=[0])], [x])


def test_writes_to_arguments_match_a_loop():
    def running(x, total):
        for i in range(3):
            total[i] = total[i] + x[i]
            x[i] = total[i] * 1.0
        return total.sum()

    compiled = vg.compile(running, batch="x", executor="python")
    for _ in range(3):
        found = []
        for function in (compiled, lambda *args: one_by_one(running, 4, *args, batched=[0])):
            source = random_leaf(4, 3)
            x, total = source * 1.0, vg.zeros(3)
            result = function(x, total)
            (gradient,) = vg.autograd.grad(seeded([result, x, total]), [source])
            found.append([numbers(each) for each in (result, x, total, gradient)])
        for one, other in zip(*found):
            np.testing.assert_allclose(one, other, rtol=1e-12)


def test_writes_to_captured_tensors_match_a_loop():
    calls, expected = vg.zeros(3), vg.zeros(3)

    def counting(x, seen):
        seen += x
        return seen * x

    compiled = vg.compile(lambda x: counting(x, calls), batch=True, executor="python")
    for _ in range(3):
        x = vg.Tensor(np.arange(12.0).reshape(4, 3))
        wanted = one_by_one(lambda x: counting(x, expected), 4, x, batched=[0])
        assert numbers(compiled(x)) == numbers(wanted) and numbers(calls) == numbers(expected)


def test_uncompilable_batches_run_eagerly_per_example():
    def f(x, rng):
        return vg.linalg.det(x) * rng.random()

    compiled = vg.compile(f, batch="x", executor="python")
    for _ in range(2):
        x = random_leaf(3, 2, 2)
        rngs = np.random.default_rng(3), np.random.default_rng(3)
        agrees([compiled(x, rngs[0])], [one_by_one(f, 3, x, rngs[1], batched=[0])], [x])
    assert "runs eagerly" in compiled.explain()


def test_numbers_beside_tensors():
    compiled = vg.compile(lambda x, a: {"sum": squares(x, x) * a, "a": a, "none": None}, batch="x", executor="python")
    for a in (2.0, 2.0, 3.0, 4.0):
        x = random_leaf(4, 12)
        found = compiled(x, a)
        agrees([found["sum"]], [one_by_one(lambda x, a=a: squares(x, x) * a, 4, x, batched=[0])], [x])
        assert numbers(found["a"]) == [a] * 4 and found["none"] is None


def test_other_modes_and_other_compiled_functions_see_each_example():
    compiled = vg.compile(squares, batch="x", executor="python")
    x, w = random_leaf(3, 12), random_leaf(12, seed=1)
    expected = one_by_one(squares, 3, x, w, batched=[0])
    outer = vg.compile(lambda x, w: compiled(x, w).sum(), executor="python")
    for _ in range(3):
        agrees([outer(x, w)], [expected.sum()], [x, w])
        with vg.autograd.detect_anomaly():
            agrees([compiled(x, w)], [expected], [x, w])
    primals, tangents = (x.detach(), w.detach()), (vg.ones((3, 12)), vg.ones(12))
    _, tangent = vg.func.jvp(compiled, primals, tangents)
    _, wanted = vg.func.jvp(lambda x, w: one_by_one(squares, 3, x, w, batched=[0]), primals, tangents)
    np.testing.assert_allclose(numbers(tangent), numbers(wanted))


@pytest.fixture
def threads(monkeypatch):
    """Use several threads, regardless of the length of the examples and the number of cores."""
    monkeypatch.setattr("viewgrad.compiler.calls.batched.LONG", 0)
    monkeypatch.setattr("viewgrad.compiler.calls.chunks._cores", lambda: 3)


@pytest.mark.skipif(not importlib.util.find_spec("numba"), reason="needs Numba")
def test_threads_give_the_same_numbers(threads, monkeypatch):
    compiled = vg.compile(smoothed, batch="x", executor="numba")
    x, alpha = random_leaf(50, 30), leaf(0.3, 2.0)
    compiled(x, alpha)
    found = []
    for long in (0, 1 << 60):
        monkeypatch.setattr("viewgrad.compiler.calls.batched.LONG", long)
        result = compiled(x, alpha)
        agrees(result, one_by_one(smoothed, 50, x, alpha, batched=[0]), [x, alpha])
        gradients = vg.autograd.grad(seeded(compiled(x, alpha)), [x, alpha])
        found.append([numbers(each) for each in (*result, *gradients)])
    assert found[0] == found[1]


@pytest.mark.skipif(not importlib.util.find_spec("numba"), reason="needs Numba")
def test_an_exception_in_a_thread_is_raised(threads):
    compiled = vg.compile(lambda x: vg.linalg.inv(x).sum(), batch=True, executor="numba", check=False)
    x = vg.Tensor(np.eye(3) * np.arange(1.0, 9.0)[:, None, None])
    for _ in range(2):
        np.testing.assert_allclose(numbers(compiled(x)), 3 / np.arange(1.0, 9.0))
    x[6] = 0.0
    with pytest.raises(np.linalg.LinAlgError):
        compiled(x)


def test_error_messages():
    x, w = random_leaf(4, 12), random_leaf(12)
    by_name = vg.compile(squares, batch=("x", "w"), executor="python")
    with pytest.raises(ValueError, match="different numbers of examples: x has 4, w has 12"):
        by_name(x, w)
    with pytest.raises(ValueError, match=r"w is of shape \(\), and has no leading axis"):
        by_name(x, vg.Tensor(2.0))
    with pytest.raises(ValueError, match="w is a number, and has no leading axis"):
        by_name(x, 2.0)
    with pytest.raises(ValueError, match="batch names 'y', which is not an argument of squares"):
        vg.compile(squares, batch="y")(x, w)
    with pytest.raises(ValueError, match="batch names 2, which is not an argument"):
        vg.compile(squares, batch=2)(x, w)
    with pytest.raises(ValueError, match="none contains a tensor or array"):
        vg.compile(squares, batch=True)(2.0, 3.0)
    with pytest.raises(ValueError, match="both static and batched"):
        vg.compile(squares, batch="x", static=["x"])(x.detach().numpy(), w)
    for nothing in ((), [], False):
        with pytest.raises(ValueError, match="names no argument"):
            vg.compile(squares, batch=nothing)


def test_results_that_cannot_be_stacked_are_refused():
    ragged = vg.compile(lambda x: x[x > 0] * 1.0, batch=True, executor="python")
    with pytest.raises(ValueError, match=r"have different shapes: \(1,\), \(2,\)"):
        ragged(leaf([1.0, 2.0], [1.0, -2.0]))
    counted = vg.compile(lambda x: (x * 2, int((x > 0).sum())), batch=True, executor="python")
    with pytest.raises(ValueError, match="contains a different integer"):
        counted(leaf([1.0, 2.0], [1.0, -2.0]))


class Model:
    def __init__(self):
        self.weight = random_leaf(12)

    @vg.compile(batch="x", executor="python")
    def loss(self, x):
        return squares(x, self.weight)


def test_methods():
    model, x = Model(), random_leaf(4, 12)
    for _ in range(2):
        expected = one_by_one(lambda x: squares(x, model.weight), 4, x, batched=[0])
        agrees([model.loss(x)], [expected], [x, model.weight])


def test_a_batched_function_pickles():
    x, w = random_leaf(4, 12), random_leaf(12)
    compiled = vg.compile(squares, batch="x", executor="python")
    compiled(x, w)
    other = pickle.loads(pickle.dumps(compiled))
    assert "has not been called yet" in other.explain()
    assert numbers(other(x, w)) == numbers(compiled(x, w))
    assert pickle.loads(pickle.dumps(Model.loss)) is Model.loss


@pytest.mark.parametrize("executor", EXECUTORS)
def test_results_that_are_arguments_or_views_are_new_memory(executor):
    def f(x, w):
        y = x * w
        for i in range(1, len(y)):
            y[i] = y[i] * y[i - 1]
        return x, w[::2], w, y, y[1:3], x > 1, [y[0] * 1.0, w[1] * 1.0]

    compiled = vg.compile(f, batch="x", executor=executor)
    for _ in range(2):
        x, w = random_leaf(4, 12), random_leaf(12, seed=1)
        *found, row = compiled(x, w)
        *expected, rows = zip(*(f(x[i, ...], w) for i in range(4)))
        expected = [vg.stack(column) for column in [*expected, *zip(*rows)]]
        found += row
        assert [part.dtype for part in found] == [part.dtype for part in expected]
        found[5], expected[5] = found[5] * 1.0, expected[5] * 1.0
        agrees(found, expected, [x, w])
        assert not any(np.shares_memory(part.numpy(), x.detach().numpy()) for part in map(vg.Tensor.detach, found))
        changed = compiled(x, w)[3]
        changed[1:] *= 2.0
        doubled = expected[3] * np.array([1.0, 2.0, 2.0, 2.0])[:, None]
        agrees([changed], [doubled], [x, w])
    assert name_of(found[0]) == "BatchedBackward", compiled.explain()


def test_example_without_gradient_does_not_affect_others():
    """If NaN occurs, gradients are computed by replaying the trace on each example, a view of the batch."""

    def f(x):
        u = x * 2.0
        u[1:] = x[:-1] * u[-1]
        u[0] -= max(x * x[2])
        u[1:] += u[:-1] * 2.0
        return (u * u).sum()

    compiled = vg.compile(f, executor="python", specialize=True, adopt=False)
    x = np.array([0.3, -0.5, 0.8, 1.1, -0.2])
    batch = np.stack([x, x * 0.5, x + 1.0, x * 2.0])
    batch[2, 3] = np.nan
    for _ in range(3):
        vg.grad(compiled)(x)
    found = vg.vmap(vg.grad(compiled))(batch)
    for number in (0, 1, 3):
        np.testing.assert_allclose(found[number], vg.grad(f)(batch[number]), rtol=1e-12)
    assert np.isnan(found[2]).any()
