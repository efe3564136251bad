"""`vmap`: results, gradients and derivatives of a batch are those of its examples, one at a time."""

from __future__ import annotations

import numpy as np
import pytest

import viewgrad as vg
from viewgrad import func

RNG = np.random.default_rng(7)


def recurrence(x, a):
    """Run a recurrence that writes to its arguments and branches on a value."""
    y = vg.zeros(len(x))
    x[1:] *= a
    a *= 2.0
    y[0] = x[0]
    for i in range(1, len(x)):
        y[i] = y[i - 1] * x[i] + a if x[i] > 0 else y[i - 1] * a
    return y


def energy(x, a):
    return (recurrence(x, a) ** 2).sum()


def by_hand(f, xs, *others):
    return np.stack([np.asarray(f(x, *others).detach()) for x in xs])


def close(actual, expected):
    np.testing.assert_allclose(np.asarray(getattr(actual, "_array", actual)), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("derive", [lambda f: f, func.grad, func.hessian], ids=["value", "grad", "hessian"])
def test_examples_are_independent(derive):
    xs, a = vg.Tensor(RNG.normal(size=(6, 4))), vg.Tensor(0.5)
    before = xs.numpy().copy()
    close(func.vmap(derive(energy), (0, None))(xs, a), by_hand(lambda x: derive(energy)(x.clone(), vg.Tensor(0.5)), xs))
    close(xs, before)
    assert a.item() == 0.5  # each example wrote to its own copy


def test_jacobians_of_examples():
    xs, a = vg.Tensor(RNG.normal(size=(3, 4))), vg.Tensor(0.5)
    rows = func.vmap(func.jacrev(recurrence), (0, None))(xs, a)
    assert rows.shape == (3, 4, 4)
    close(func.vmap(func.jacfwd(recurrence), (0, None))(xs, a), rows.numpy())
    close(rows, by_hand(lambda x: func.jacrev(recurrence)(x.clone(), vg.Tensor(0.5)), xs))


def test_gradient_through_a_batch():
    xs, a = vg.Tensor(RNG.normal(size=(5, 4)), requires_grad=True), vg.Tensor(0.5, requires_grad=True)
    losses = func.vmap(energy, (0, None))(xs, a)
    (weights,) = vg.autograd.grad((losses * losses).sum(), a, retain_graph=True)
    per_example = by_hand(lambda x: func.grad(energy, 1)(x, vg.Tensor(0.5)), xs.detach())
    close(weights, (2 * losses.detach().numpy() * per_example).sum())
    (weights,) = vg.autograd.grad(losses.sum(), xs)
    close(weights, by_hand(lambda x: func.grad(energy)(x, vg.Tensor(0.5)), xs.detach()))


def test_forward_mode_through_a_batch():
    xs, along = vg.Tensor(RNG.normal(size=(5, 4))), vg.Tensor(RNG.normal(size=(5, 4)))
    mapped = func.vmap(energy, (0, None))
    _, tangent = func.jvp(lambda x: mapped(x, vg.Tensor(0.5)), (xs,), (along,))
    gradients = by_hand(lambda x: func.grad(energy)(x, vg.Tensor(0.5)), xs)
    close(tangent, (gradients * along.numpy()).sum(axis=1))


def test_axes_of_arguments_and_results():
    x, y = vg.Tensor(RNG.normal(size=(2, 3, 4))), vg.Tensor(RNG.normal(size=(4, 2)))
    f = lambda x, y: {"outer": x.reshape(-1)[:, None] * y, "sum": (x.sum(), y)}
    found = func.vmap(f, in_axes=(2, 0), out_axes={"outer": 1, "sum": (0, -1)})(x, y)
    close(found["outer"], np.einsum("ijk,kl->ijkl", x.numpy(), y.numpy()).reshape(6, 4, 2))
    close(found["sum"][0], x.numpy().sum((0, 1)))
    close(found["sum"][1], y.numpy().T)
    tree = {"w": vg.Tensor(RNG.normal(size=(3, 2))), "b": vg.Tensor(RNG.normal(size=2))}
    mapped = func.vmap(lambda p, *, t: (p["w"] * p["b"]).sum() * t, in_axes=({"w": 0, "b": None},))
    close(mapped(tree, t=vg.arange(3.0)), (tree["w"].numpy() @ tree["b"].numpy()) * np.arange(3.0))


def test_nested():
    x = vg.Tensor(RNG.normal(size=(2, 3, 4)))
    close(func.vmap(func.vmap(lambda row: row.sum() * row))(x), x.numpy().sum(-1, keepdims=True) * x.numpy())
    product = func.vmap(func.vmap(lambda a, b: (a * b).sum(), (None, 0)), (0, None))
    close(product(x[0], x[1]), x[0].numpy() @ x[1].numpy().T)


def test_arrays_give_arrays():
    found = func.vmap(lambda x, n: (np.sort(x)[:n], x.max()))(np.arange(6.0).reshape(3, 2)[:, ::-1], 1)
    assert type(found[0]) is np.ndarray and found[0].tolist() == [[0.0], [2.0], [4.0]]
    assert type(found[1]) is np.ndarray and found[1].tolist() == [1.0, 3.0, 5.0]


@pytest.mark.parametrize(
    "f",
    [np.argmax, lambda x: np.int64(3), lambda x: (x.sum(), np.bool_(True)), lambda x: [np.argmin(x), np.float32(2)]],
)
@pytest.mark.parametrize("options", [{}, {"specialize": False}, {"specialize": True}], ids=str)
def test_numbers_of_numpy_are_stacked(f, options):
    x = np.arange(6.0).reshape(3, 2) % 4
    expected = [f(row) for row in x]
    expected = list(zip(*expected)) if isinstance(expected[0], (tuple, list)) else expected
    compiled = vg.compile(lambda x: f(x), executor="python", **options)
    mapped = [vg.vmap(lambda x: f(x)), vg.vmap(compiled)]
    for function in [*mapped, vg.compile(lambda x: f(x), executor="python", batch=True, **options)]:
        for _ in range(2):
            found = function(x)
            assert type(found) is np.ndarray or all(type(part) is np.ndarray for part in found)
            for ours, theirs in zip(found, expected, strict=True):
                np.testing.assert_array_equal(ours, theirs)
            for ours, theirs in zip(function(vg.Tensor(x)), expected, strict=True):
                np.testing.assert_array_equal(ours, theirs)


def test_random_numbers_are_drawn_for_each_example():
    rng = np.random.default_rng(0)
    noise = func.vmap(lambda x: x * rng.normal())(vg.ones(4))
    close(noise, np.random.default_rng(0).normal(size=4))


def squared_error(w, x, y):
    out = vg.zeros(len(y))
    for i in range(len(y)):
        out[i] = (x[i] * w).sum() - y[i]
    return (out * out).sum()


def test_compiled_functions_run_their_program_for_each_example():
    w, x, y = (vg.Tensor(RNG.normal(size=shape)) for shape in (3, (6, 4, 3), (6, 4)))
    compiled = vg.compile(squared_error, executor="python")
    expected = func.vmap(func.value_and_grad(squared_error, (0, 1)), (None, 0, 0))(w, x, y)
    for _ in range(3):
        close(func.vmap(compiled, (None, 0, 0))(w, x, y), expected[0].numpy())
        value, gradients = func.vmap(func.value_and_grad(compiled, (0, 1)), (None, 0, 0))(w, x, y)
        close(value, expected[0].numpy())
        for found, gradient in zip(gradients, expected[1]):
            close(found, gradient.numpy())
        close(func.vmap(func.grad(compiled), (None, 0, 0))(w, x, y), expected[1][0].numpy())
        close(func.vmap(func.grad(compiled, -1), (None, -1, 0))(w, np.moveaxis(x, 0, -1), y),
              func.vmap(func.grad(squared_error, 2), (None, 0, 0))(w, x, y).numpy())  # fmt: skip
    assert "compiled, python executor" in compiled.explain()
    # A batch of a compiled function: arguments shared by all examples get the summed gradient.
    leaf = vg.Tensor(w, requires_grad=True)
    (total,) = vg.autograd.grad(func.vmap(compiled, (None, 0, 0))(leaf, x, y).sum(), leaf)
    close(total, expected[1][0].numpy().sum(axis=0))
    with pytest.raises(vg.errors.DifferentiabilityError, match="one real number"):
        func.vmap(func.grad(vg.compile(lambda x: x * 2, executor="python")))(x)


def test_cost_is_linear_in_the_number_of_examples():
    """The backward pass of a batch scatters into one buffer, and the number of nodes is proportional to the examples.
    """
    def nodes(count):
        x = vg.Tensor(np.ones((count, 3)), requires_grad=True)
        y = func.vmap(lambda row: row.sum() * row[0])(x)
        seen, stack = set(), [y.grad_fn]
        while stack:
            node = stack.pop()
            if node is not None and node not in seen:
                seen.add(node)
                stack.extend(before for before, _ in node.next_functions)
        return len(seen)

    small, large = nodes(10), nodes(20)
    assert nodes(30) - large == large - small


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: func.vmap(lambda x, y: x)(vg.ones(3), vg.ones(4)), "different lengths"),
        (lambda: func.vmap(lambda x, y: x)(vg.ones(3), 2.0), "no axis 0"),
        (lambda: func.vmap(lambda x: x, None)(vg.ones(3)), "no argument has an axis"),
        (lambda: func.vmap(lambda x: x, (0, 1))(vg.ones(3)), "one entry for each"),
        (lambda: func.vmap(lambda x: x, ({"a": 0},))(vg.ones(3)), "does not match"),
        (lambda: func.vmap(lambda x: x)(vg.ones((0, 3))), "empty"),
        (lambda: func.vmap(lambda x: x[: int(x[0].item())])(vg.arange(6.0).reshape(3, 2)), "different shapes"),
        (lambda: func.vmap(lambda x: (x, int(x.item())))(vg.arange(3.0)), "a different structure"),
        (lambda: func.vmap(lambda x: x, out_axes=None)(vg.ones(3)), "out_axes must contain ints"),
    ],
)  # fmt: skip
def test_invalid_batches_raise(call, message):
    with pytest.raises(ValueError, match=message):
        call()
