"""Data movement and einsum in compiled programs: the results of eager runs, without callbacks."""

import importlib.util

import numpy as np
import pytest
from interpreted_kernels import compiled_by

import viewgrad as vg
from viewgrad.compiler.loop_ir import Call, steps_of

EXECUTORS = ["python", pytest.param("numba", marks=[
    pytest.mark.slow, pytest.mark.skipif(not importlib.util.find_spec("numba"), reason="needs Numba"),
])]  # fmt: skip
OPERATIONS = [
    lambda x: np.roll(x, 2),
    lambda x: np.roll(x, -1, 0),
    lambda x: np.roll(x, 7, axis=1),
    lambda x: np.roll(x, (1, -2), (0, 1)),
    lambda x: np.roll(x, 0, axis=-1),
    lambda x: np.roll(np.tile(x, (13, 15)), -40, axis=-1)[5:9, 30:37],
    lambda x: np.roll(np.tile(x, (13, 15)), 40, axis=0)[5:9],
    lambda x: np.pad(x, 1),
    lambda x: np.pad(x, ((1, 0), (2, 3))),
    lambda x: np.pad(x, [(0, 2), (1, 1)], constant_values=0.5),
    lambda x: np.pad(x, 0),
    lambda x: np.pad(x, (2, 1), "edge"),
    lambda x: np.pad(x, [(1, 2), (0, 1)], mode="reflect"),
    lambda x: np.pad(x, 3, mode="wrap"),
    lambda x: np.pad(x, 2, mode="symmetric"),
    lambda x: np.tile(x, (2, 1)),
    lambda x: np.trace(x) * x[0],
    lambda x: np.ascontiguousarray(x.T) if not isinstance(x, vg.Tensor) else x.T.contiguous(),
    lambda x: x.T.copy(),
    lambda x: np.einsum("ij,kj->ik", x, x),
    lambda x: np.einsum("ij,jk->ki", x[:3, :3], x[:3]),
    lambda x: np.einsum("ij,ij->", x, x) * x,
    lambda x: np.einsum("ij,kl->likj", x, x[:2, :2]),
    lambda x: np.einsum("ij,j,i->i", x, x[1], x[:, 1]),
    lambda x: x.std(axis=0),
    lambda x: np.std(x, axis=1, ddof=1, keepdims=True) * x,
    lambda x: np.std(x - x),
    lambda x: np.einsum("ij,ik->j", x, x),
    lambda x: np.where((x > 0) & (x < 1) | ~(x > -1), x, x * x),
    lambda x: np.where((x > 0) ^ (x > 0.5), x, 2.0 * x),
]


def seen(function, array):
    x = vg.Tensor(array, requires_grad=True)
    value = function(x)
    (first,) = vg.autograd.grad(value, x, create_graph=True)
    second = vg.autograd.grad((first * first).sum(), x, allow_unused=True)[0] if first.requires_grad else None
    return [value, first, vg.zeros(x.shape) if second is None else second]


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_data_movement_in_loops_compiles_without_callbacks(operation, executor):
    def f(x):
        total, y = 0.0, x
        for i in range(3):
            moved = operation(y)
            total = total + (moved * moved * np.cos(np.arange(moved.size) + i).reshape(moved.shape)).sum()
            y = y * 0.9 + y[::-1] * 0.2
        return total

    compiled = vg.compile(f, executor=executor)
    rng = np.random.default_rng(0)
    for _ in range(4):
        array = rng.normal(size=(4, 5))
        for found, wanted in zip(seen(compiled, array), seen(f, array), strict=True):
            found, wanted = found.detach().numpy(), wanted.detach().numpy()
            np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9 * (1 + np.abs(wanted).max()))
    program = compiled.specializations[0].program
    assert program is not None, compiled.explain()
    assert not any(isinstance(step, Call) for _, step in steps_of(program.program.block))


@pytest.mark.parametrize("executor", EXECUTORS)
def test_integer_parts_decide_control_flow(executor):
    def f(points, places):
        total = 0.0
        for place in places:
            below = int(place)
            part = place - below
            total = total + (1 - part) * points[below] + part * points[below + 1]
        return total

    compiled = vg.compile(f, executor=executor)
    points = vg.Tensor(np.arange(5.0) ** 2, requires_grad=True)
    for places in ([0.5, 2.25], [0.75, 2.0], [0.1, 2.9], [3.5, 0.0], [0.5, 2.5], [0.2, 2.7], [0.3, 2.1]):
        value = compiled(points, np.array(places))
        assert value.item() == pytest.approx(f(points, np.array(places)).item())
        assert vg.autograd.grad(value, points)[0].numpy().sum() == pytest.approx(2)
    assert value.grad_fn.name() == "CompiledBackward", compiled.explain()


@pytest.mark.parametrize("executor", EXECUTORS)
def test_elements_gathered_at_moving_positions(executor):
    def f(x):
        y, table = x, np.array([[2, 0], [1, 1], [0, 2]])
        rows = [x]
        for _ in range(6):
            y = y[table, ...].sum(axis=1) * 0.4 + rows[-1]
            rows.append(y)
        return (np.stack(rows) ** 2).sum()

    compiled = vg.compile(f, executor=executor)
    for k in range(4):
        x = vg.Tensor(np.arange(3.0) + k, requires_grad=True)
        value, wanted = compiled(x), f(x)
        assert value.item() == pytest.approx(wanted.item())
        np.testing.assert_allclose(vg.autograd.grad(value, x)[0].numpy(), vg.autograd.grad(wanted, x)[0].numpy())
    assert value.grad_fn.name() == "CompiledBackward", compiled.explain()


@pytest.mark.parametrize("executor", EXECUTORS)
def test_each_loop_over_observations_is_recovered(executor):
    def f(start, moves, emits, seen):
        alpha, scale = start * emits[:, int(seen[0])], 0.0
        for t in range(1, len(seen)):
            alpha = (alpha @ moves) * emits[:, int(seen[t])]
            scale = scale + np.log(alpha.sum())
            alpha = alpha / alpha.sum()
        beta = vg.ones(len(start))
        for t in range(len(seen) - 1, 0, -1):
            beta = moves @ (emits[:, int(seen[t])] * beta)
            beta[int(seen[t]) % 3] = 1.0
        return scale + (alpha * beta).sum()

    compiled = vg.compile(f, executor=executor)
    rng, seen = np.random.default_rng(0), np.random.default_rng(1).integers(0, 4, 30)
    for _ in range(4):
        given = [rng.random(3), rng.random((3, 3)), rng.random((3, 4))]
        results = []
        for function in (compiled, f):
            leaves = [vg.Tensor(array, requires_grad=True) for array in given]
            value = function(*leaves, seen)
            results.append([value.detach(), *vg.autograd.grad(value, leaves)])
        for found, wanted in zip(*results, strict=True):
            np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-9)
    told = compiled.explain()
    assert told.count("28 times, with indices from tables") == 2, told
    assert sum(1 for _ in steps_of(compiled.specializations[0].program.program.block)) < 80, told


WITHOUT_HISTORY = [
    *OPERATIONS, lambda x: x[[1, 0]], lambda x: x[:, [2, 2, 0]], np.cumsum, np.prod, lambda x: np.cumprod(x, 1),
    lambda x: vg.linalg.det(x[:2, :2]) * x, lambda x: vg.linalg.inv(x[:2, :2]), lambda x: np.diag(x[0]), np.sort,
    lambda x: vg.linalg.solve(x[:2, :2], x[2:, :2]), lambda x: vg.take(x, [1, 0], 1), lambda x: np.stack([x, x]),
    lambda x: np.diff(x, 2), lambda x: np.tril(x), lambda x: np.tensordot(x, x, 2),
    lambda x: np.cross(x[:, :3], x[:, 1:4]), lambda x: x[np.argmax(x[:, 0])], lambda x: x[np.argsort(x[:, 0])],
]  # fmt: skip


@pytest.mark.parametrize("executor", ["python", "interpreted"])
@pytest.mark.parametrize("operation", WITHOUT_HISTORY)
def test_no_gradient_flows_through_no_grad(operation, executor):
    def f(x):
        total = 0.0
        for i in range(3):
            with vg.no_grad():
                fixed = operation(x)
            total = total + (fixed.sum() * x).sum() * (i + 1)
        return total

    compiled = compiled_by(executor, f, check=False)
    for number in range(4):
        x = vg.Tensor(np.random.default_rng(number).normal(size=(4, 5)), requires_grad=True)
        found, wanted = vg.autograd.grad(compiled(x), x)[0], vg.autograd.grad(f(x), x)[0]
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-9, atol=1e-9)
