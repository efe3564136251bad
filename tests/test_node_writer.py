"""Formulas of large tensors are computed in the memory of the incoming gradient only if nothing else references it."""

from __future__ import annotations

import numpy as np
import pytest
from allocations import allocations
from leaves import random_leaf

import viewgrad as vg

SIZE = 2000  # more than the formulas need before they check whether reuse is allowed


def large_leaf(seed):
    return random_leaf(SIZE, seed=seed)


def two_ways(x, c):
    y = x * c
    return (y * y + (-y) * 2.0 + y / c).sum()


def difference(x, c):
    return ((x - c) * (x - c)).sum()


def same_gradient_to_two(x, c):
    y = x + c
    return ((-y) * c + (-y) * x).sum()


def through_views(x, c):
    y = x * 1.0
    y[: SIZE // 2] *= c[SIZE // 2 :]
    v = y.reshape(2, -1).T
    v /= c.reshape(-1, 2)
    y.neg_()
    return (y * y * c).sum()


def mixed_dtypes(x, c):
    narrow = x.astype(np.float32)
    return (narrow * c * narrow).sum().astype(float)


def broadcast(x, c):
    return (x.reshape(1, -1) * c[:3].reshape(-1, 1) * 2.0).sum()


PROGRAMS = [two_ways, difference, same_gradient_to_two, through_views, mixed_dtypes, broadcast]


@pytest.mark.parametrize("program", PROGRAMS)
def test_backward_passes_with_and_without_reuse_agree(program):
    x, c = large_leaf(1), large_leaf(2)
    loss = program(x, c)
    kept = vg.autograd.grad(loss, [x, c], retain_graph=True)  # saved values stay, and so do gradients
    recorded = vg.autograd.grad(program(x, c), [x, c], create_graph=True)
    loss.backward()
    for tensor, one, other in zip((x, c), kept, recorded, strict=True):
        np.testing.assert_allclose(tensor.grad.numpy(), one.numpy(), rtol=1e-12)
        np.testing.assert_allclose(tensor.grad.numpy(), other.detach().numpy(), rtol=1e-12)


@pytest.mark.parametrize("program", PROGRAMS)
def test_gradients_held_by_hooks_are_not_overwritten(program):
    x, c = large_leaf(3), large_leaf(4)
    seen = []
    y, z = x * 1.0, c * 1.0
    for tensor in (y, z):
        tensor.retain_grad()
        tensor.register_hook(lambda grad: seen.append((grad, grad.numpy().copy())) and None)
    start = vg.Tensor(2.0)
    program(y, z).backward(start)
    assert start.item() == 2.0
    for grad, value in seen:
        assert np.array_equal(grad.numpy(), value)
    np.testing.assert_allclose(y.grad.numpy(), x.grad.numpy())
    np.testing.assert_allclose(z.grad.numpy(), c.grad.numpy())


def test_a_gradient_that_the_user_supplies_is_not_written_over():
    x, c = large_leaf(5), large_leaf(6)
    supplied = large_leaf(7).detach()
    value = supplied.numpy().copy()
    (-((x * c) * c)).backward(supplied)
    assert np.array_equal(supplied.numpy(), value)


def test_gradients_of_several_inputs_share_no_memory():
    x, c = large_leaf(8), large_leaf(9)
    y = x + c
    a, b = vg.autograd.grad((-y) * 3.0, [x, c], vg.ones(SIZE))
    assert not np.shares_memory(a.numpy(), b.numpy())


@pytest.mark.parametrize("supplied", [False, True])
def test_a_chain_of_products_is_differentiated_in_one_buffer(supplied):
    x = large_leaf(10)
    c = large_leaf(11).detach()
    y = x * 1.0
    for _ in range(10):
        y = -(y * c) / c
    start = vg.ones(SIZE) if supplied else None
    last = y if supplied else y.sum()
    with allocations() as sizes:
        last.backward(start)
    assert sum(size >= 8 * SIZE for size in sizes) == 1
