"""Compiled functions: `explain`, shared programs, transforms, and reuse of memory."""

from __future__ import annotations

import importlib.util
import pickle
import threading

import numpy as np
import pytest
from compiled_programs import PROGRAMS, holt_winters, rows, soft_dtw

import viewgrad as vg
from viewgrad.compiler.adjoint import activity
from viewgrad.errors import CompiledMismatchError, DifferentiabilityError

NUMBA = pytest.param("numba", marks=pytest.mark.skipif(not importlib.util.find_spec("numba"), reason="needs Numba"))


def leaves(f, seed):
    return [vg.Tensor(array, requires_grad=True) for array in PROGRAMS[f](np.random.default_rng(seed))]


def gradients(value, tensors, **options):
    found = vg.autograd.grad(value, tensors, allow_unused=True, **options)
    return [np.zeros(t.shape) if g is None else g.detach().numpy() for g, t in zip(found, tensors)]


def settled(f, executor="python", **options):
    """Return a function that has been compiled and verified, with arguments."""
    compiled = vg.compile(f, executor=executor, **options)
    for seed in range(2):
        compiled(*leaves(f, seed))
    return compiled, leaves(f, 2)


def test_explain_lists_the_recovered_loops():
    compiled, _ = settled(holt_winters)
    told = compiled.explain()
    assert "times, compiled_programs.py:" in told
    assert "tape: " in told
    assert "for i" in compiled.source()


def test_the_program_does_not_grow_with_the_number_of_iterations():
    sizes = []
    for n in (12, 24):
        compiled = vg.compile(soft_dtw, executor="python")
        for _ in range(3):
            compiled(vg.Tensor(np.random.default_rng(0).random((n, n)), requires_grad=True))
        sizes.append(len(compiled.source().splitlines()))
    assert sizes[0] == sizes[1] < 90


def test_transforms_of_compiled_functions():
    compiled, (p, y) = settled(holt_winters)
    p, y = p.detach(), y.detach()
    for transform in (vg.func.grad, vg.func.hessian, vg.func.jacrev, vg.func.jacfwd):
        for _ in range(3):
            found = transform(compiled)(p, y)
        np.testing.assert_allclose(found.numpy(), transform(holt_winters)(p, y).numpy(), rtol=1e-7, atol=1e-9)
    direction = vg.ones(3)
    np.testing.assert_allclose(
        vg.func.hvp(compiled, (p, y), (direction, vg.zeros_like(y)))[1][0].numpy(),
        vg.func.hvp(holt_winters, (p, y), (direction, vg.zeros_like(y)))[1][0].numpy(),
        rtol=1e-8,
    )


def test_nested_compiled_functions():
    inner = vg.compile(rows, executor="python")
    outer = vg.compile(lambda x, a: inner(x * 2.0, a) + x.sum(), executor="python")
    for seed in range(4):
        mine, theirs = leaves(rows, seed), leaves(rows, seed)
        z = mine[0].clone()
        z[1:] *= 2.0
        w = theirs[0].clone()
        w[1:] *= 2.0
        found = gradients(outer(z, mine[1]), mine)
        wanted = gradients(rows(w * 2.0, theirs[1]) + w.sum(), theirs)
        for one, other in zip(found, wanted):
            np.testing.assert_allclose(one, other, rtol=1e-10)


def test_second_backward_needs_retain_graph():
    compiled, tensors = settled(holt_winters)
    value = compiled(*tensors)
    first = gradients(value, tensors, retain_graph=True)
    second = gradients(value, tensors)
    for one, other in zip(first, second):
        np.testing.assert_array_equal(one, other)
    with pytest.raises(vg.errors.FreedGraphError):
        gradients(value, tensors)


def test_gradients_use_the_old_values_of_overwritten_arguments():
    compiled, (x, a) = settled(rows)
    expected = gradients(rows(x, a), [x])
    y = x.clone()
    value = compiled(y, a)
    y.zero_()
    np.testing.assert_allclose(gradients(value, [x])[0], expected[0], rtol=1e-12)


def test_values_and_gradients_as_arrays():
    compiled, (p, y) = settled(holt_winters)
    p, y = p.detach().numpy().copy(), y.detach()
    calls = [compiled.value_and_grad(p, y) for _ in range(4)]
    leaf = vg.Tensor(p, requires_grad=True)
    value = holt_winters(leaf, y)
    for found, gradient in calls:
        assert type(found) is float and type(gradient) is np.ndarray
        np.testing.assert_allclose(found, value.item(), rtol=1e-12)
        np.testing.assert_allclose(gradient, gradients(value, [leaf], retain_graph=True)[0], rtol=1e-10)


def test_results_own_their_memory():
    def squares(x):
        y = vg.zeros(4)
        for i in range(4):
            y[i] = x[i] * x[i]
        return y

    compiled = vg.compile(squares, executor="python")
    x = vg.Tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    results = [compiled(x) for _ in range(4)]
    results[2].detach().zero_()
    np.testing.assert_array_equal(results[3].detach().numpy(), [1, 4, 9, 16])
    np.testing.assert_array_equal(compiled(x).detach().numpy(), [1, 4, 9, 16])


def test_views_among_the_results_are_views_of_each_other():
    def split(x):
        y = x * 2.0
        return {"all": y, "part": y[1:3]}

    compiled = vg.compile(split, executor="python")
    x = vg.Tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    for _ in range(4):
        out = compiled(x)
        out["part"] *= 10.0
        np.testing.assert_array_equal(out["all"].detach().numpy(), [2, 40, 60, 8])
        np.testing.assert_array_equal(vg.autograd.grad(out["all"].sum(), x)[0].numpy(), [2, 20, 20, 2])


def test_without_gradients_there_is_no_history():
    compiled, _ = settled(rows)
    x, a = vg.ones((9, 5)), vg.Tensor(0.5)
    for _ in range(3):
        assert not compiled(x, a).requires_grad
    tensors = leaves(rows, 0)
    for _ in range(3):
        with vg.no_grad():
            assert not compiled(*tensors).requires_grad
    assert compiled(*tensors).requires_grad


def test_threads_share_a_compiled_function():
    compiled, _ = settled(holt_winters)
    expected = {seed: gradients(holt_winters(*(t := leaves(holt_winters, seed))), t) for seed in range(8)}
    wrong = []

    def work(seed):
        for _ in range(5):
            tensors = leaves(holt_winters, seed)
            for found, wanted in zip(gradients(compiled(*tensors), tensors), expected[seed]):
                if not np.allclose(found, wanted, rtol=1e-9):
                    wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in expected]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_compiled_function_pickles():
    compiled, tensors = settled(rows)
    other = pickle.loads(pickle.dumps(compiled))
    assert other(*tensors).item() == compiled(*tensors).item()


@pytest.mark.parametrize("executor", ["python", NUMBA])
def test_sums_are_as_accurate_as_in_numpy(executor):
    compiled = vg.compile(lambda x: (x * 0.1).sum(), executor=executor)
    x = vg.Tensor(np.full((3, 40_000), 1.0), requires_grad=True)
    for _ in range(3):
        value = compiled(x)
    assert abs(value.item() - 12_000.0) < 1e-9


def test_a_mismatch_with_the_function_raises(monkeypatch):
    compiled = vg.compile(rows, executor="python")
    tensors = leaves(rows, 0)
    compiled(*tensors)
    run = vg.compiler.runtime.CompiledProgram.run

    def spoiled(self, arrays):
        failed, results, kept = run(self, arrays)
        return failed, [result + 1e-3 for result in results], kept

    monkeypatch.setattr(vg.compiler.runtime.CompiledProgram, "run", spoiled)
    with pytest.raises(CompiledMismatchError, match="the result of the compiled rows differs"):
        compiled(*tensors)


def test_no_gradient_is_computed_for_inputs_that_need_none():
    compiled = vg.compile(rows, executor="python")
    x = vg.ones((9, 5), requires_grad=True)
    for _ in range(3):
        compiled(x, vg.Tensor(0.5))
    program = compiled.specializations[0].program
    bases, _ = activity(program.program, {base.name for base in program.wanted})
    assert [base.name in bases for base in program.inputs] == [True, False]


def test_fast_calls_are_guarded():
    factor = [2.0]

    def f(x, y):
        return (x * y).sum() * factor[0], x + y

    compiled = vg.compile(f, executor="python")
    x, y = vg.Tensor([1.0, 2.0], requires_grad=True), vg.Tensor([3.0, 4.0])
    for _ in range(5):
        total, both = compiled(x, y)
    assert compiled.cache.fast_calls
    assert total.item() == 22
    np.testing.assert_array_equal(both.detach().numpy(), [4, 6])
    factor[0] = 3.0
    assert compiled(x, y)[0].item() == 33
    assert compiled(x, x)[0].item() == 15  # arguments that share memory
    assert compiled(x.detach(), y)[0].requires_grad is False
    assert compiled(vg.ones(3), vg.ones(3))[0].item() == 9
    with vg.no_grad():
        assert compiled(x, y)[0].requires_grad is False
    base = vg.Tensor([1.0, 2.0, 3.0])
    with pytest.raises(ValueError):
        compiled(x, vg.ones(3))
    assert compiled(base[:2], base[1:])[0].item() == 24


def test_value_and_grad_returns_new_arrays_each_time():
    compiled = vg.compile(lambda x, y: (x * x * y).sum(), executor="python")
    point, other = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    seen = [compiled.value_and_grad(point, other) for _ in range(6)]
    for value, gradient in seen:
        assert value == 19
        np.testing.assert_array_equal(gradient, [6, 16])
    seen[-1][1][:] = 0
    np.testing.assert_array_equal(seen[-2][1], [6, 16])
    assert compiled.value_and_grad([1, 2], other)[0] == 19
    np.testing.assert_array_equal(compiled.value_and_grad(np.ones(3), np.ones(3))[1], [2, 2, 2])


@pytest.mark.parametrize("result", [3.0, 3, np.float64(3.0), np.ones(3).sum()], ids=repr)
@pytest.mark.parametrize("options", [{}, {"specialize": False}], ids=str)
def test_value_and_grad_of_results_that_do_not_depend_on_the_argument(result, options):
    def f(x, flag):
        return (x * x).sum() if flag else result

    compiled, x = vg.compile(f, executor="python", **options), np.array([1.0, 2.0])
    for flag, expected, slope in [(True, 5.0, 2 * x), (False, 3.0, 0 * x)] * 2:
        value, gradient = compiled.value_and_grad(x, flag)
        assert (type(value), value) == (float, expected)
        np.testing.assert_array_equal(gradient, slope)


@pytest.mark.parametrize("batch", [None, True])
@pytest.mark.parametrize("result", [None, 3, "text", [1.0, 2.0]], ids=repr)
def test_value_and_grad_of_results_that_are_no_numbers_raises(result, batch):
    compiled = vg.compile(lambda x: result, executor="python", batch=batch)
    if (batch, result) == (None, 3):
        assert compiled.value_and_grad(np.ones(2))[0] == 3
    else:
        with pytest.raises(DifferentiabilityError, match="needs a function that returns one"):
            compiled.value_and_grad(np.ones(2))


def test_single_node_backward_matches_the_engine():
    def f(x, y, z):
        total, path = 0.0, vg.zeros(len(x))
        for i in range(len(x)):
            total = total * 0.5 + x[i] * y[i] + z[i]
            path[i] = total
        return total, path.sum()

    compiled = vg.compile(f, executor="python")
    for call in range(5):
        seen = []
        for function in (compiled, f):
            x, y, z = (vg.Tensor(np.arange(4.0) + call + k, requires_grad=k < 2) for k in range(3))
            other = vg.Tensor([1.0], requires_grad=True)
            total, path = function(x, y, z)
            total.backward(retain_graph=True)
            total.backward(vg.Tensor(0.5), retain_graph=True)
            once = [x.grad.numpy().copy(), y.grad.numpy().copy()]
            path.backward(retain_graph=True)
            found = vg.autograd.grad(total, [y, other, total], retain_graph=True, allow_unused=True)
            assert found[1] is None
            counts = []
            handles = [x.register_hook(lambda g: g * 3), y.register_hook(lambda g, counts=counts: counts.append(1))]
            hooked = vg.autograd.grad(total, [x, y], retain_graph=True)
            for handle in handles:
                handle.remove()
            joined = vg.autograd.grad([total, path * 2], [y, x], retain_graph=True)
            with vg.autograd.graph.plain_engine():
                plain = vg.autograd.grad(path, [y, x], create_graph=False, retain_graph=True)
            (only,) = vg.autograd.grad(path, y)
            only *= 2.0  # new memory, which is not shared
            with pytest.raises(vg.errors.FreedGraphError):
                vg.autograd.grad(path, y)
            with pytest.raises(vg.errors.UnusedInputError):
                vg.autograd.grad(function(x, y, z)[0], [other])
            seen.append([*once, x.grad, y.grad, found[0], found[2], *hooked, np.array(counts), *joined, *plain, only])
        for one, two in zip(*seen, strict=True):
            np.testing.assert_allclose(np.asarray(one), np.asarray(two), rtol=1e-12)


def test_gradients_with_respect_to_numbers_compile():
    def f(x, n):
        y = np.zeros(n)
        for i in range(n):
            y[i] = x * i + np.sin(x)
        return np.sum(y) ** 2

    for transform in (vg.grad, vg.value_and_grad, vg.func.jacrev):
        plain = transform(f)
        compiled = vg.compile(plain, executor="python")
        for x in (2.0, 2.0, 2.0, 3.0, 3.5, 4.0, 4.5, 5.0):
            assert compiled(x, 3) == pytest.approx(plain(x, 3))
        assert "compiled, python executor" in compiled.explain()
        assert "runs eagerly" not in compiled.explain()
