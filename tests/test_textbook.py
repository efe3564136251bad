"""Textbook programs that overwrite what they have read: exact gradients, to second order, without a clone."""

from __future__ import annotations

import numpy as np
import pytest

import viewgrad as vg

RNG = np.random.default_rng(7)


def outer(a, b):
    return a.reshape(-1, 1) * b.reshape(1, -1)


def lu(matrix):
    a = matrix * 1.0
    n = len(a)
    for k in range(n - 1):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= outer(a[k + 1 :, k], a[k, k + 1 :])
    return a


def cholesky(matrix):
    a = matrix * 1.0
    n = len(a)
    for k in range(n):
        a[k, k] = a[k, k] ** 0.5
        a[k + 1 :, k] /= a[k, k]
        for j in range(k + 1, n):
            a[j:, j] -= a[j:, k] * a[j, k]
        a[k, k + 1 :] = 0.0
    return a


def recurrence(x):
    y = vg.zeros(len(x))
    y[0] = x[0]
    for i in range(1, len(x)):
        y[i] = x[i] * y[i - 1] + x[0]
    return y


def heat(u):
    u = u * 1.0
    for _ in range(3):
        u[1:-1] += 0.1 * (u[2:] - 2.0 * u[1:-1] + u[:-2]) * u[1:-1]
    return u


def gauss_seidel(b):
    x = b * 0.1
    for _ in range(2):
        for i in range(1, len(x) - 1):
            x[i] = (b[i] + x[i - 1] * x[i + 1]) / 2.0
    return x


def shifts(x):
    x = x * 1.0
    x[1:] = x[:-1]
    x[::-1] += x
    x *= x
    x[[0, 0, 1]] = x[2:5] * 2.0
    x[x.detach().numpy() > 1.0] *= 0.5
    return x


def stencil_spd(x):
    n = len(x)
    return x.reshape(-1, 1) * x.reshape(1, -1) * 0.1 + vg.eye(n) * 3.0


PROGRAMS = {
    "lu": (lu, RNG.normal(size=(4, 4)) + 4 * np.eye(4)),
    "cholesky": (lambda x: cholesky(stencil_spd(x)), RNG.normal(size=4)),
    "recurrence": (recurrence, RNG.normal(size=6)),
    "heat": (heat, RNG.normal(size=7)),
    "gauss_seidel": (gauss_seidel, RNG.normal(size=6)),
    "shifts": (shifts, RNG.normal(size=6)),
}


def differences(function, x, step=1e-6):
    result = np.zeros(x.shape)
    for place in np.ndindex(*x.shape):
        up, down = x.copy(), x.copy()
        up[place] += step
        down[place] -= step
        result[place] = (function(up) - function(down)) / (2 * step)
    return result


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("replay", [False, True])
def test_first_and_second_order(name, replay):
    program, start = PROGRAMS[name]
    weights = np.random.default_rng(1).normal(size=program(vg.Tensor(start)).shape)
    direction = np.random.default_rng(2).normal(size=start.shape)

    def value(x):
        return (program(x) * vg.Tensor(weights)).sum()

    def slope(x):
        (gradient,) = vg.autograd.grad(value(x), x, create_graph=True)
        return (gradient * vg.Tensor(direction)).sum()

    with vg.view_replay(replay):
        x = vg.Tensor(start, requires_grad=True)
        value(x).backward()
        first = differences(lambda a: value(vg.Tensor(a)).item(), start)
        np.testing.assert_allclose(x.grad.numpy(), first, rtol=1e-6, atol=1e-6)
        (second,) = vg.autograd.grad(slope(x), x)
        expected = differences(lambda a: slope(vg.Tensor(a, requires_grad=True)).item(), start)
        np.testing.assert_allclose(second.numpy(), expected, rtol=1e-5, atol=1e-5)


def test_the_example_of_a_write_through_a_view():
    t = vg.Tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    base = t.clone()
    v = base[0]
    v *= 2
    assert base.grad_fn.name() == "CopySlices"
    assert v.grad_fn.name() == "AsStridedBackward"
    assert base.grad_fn.fn.name() == "MulBackward"
    (from_base,) = vg.autograd.grad(base.sum(), t, retain_graph=True)
    (from_view,) = vg.autograd.grad(v.sum(), t)
    assert from_base.tolist() == [[2.0, 2.0], [1.0, 1.0]]
    assert from_view.tolist() == [[2.0, 2.0], [0.0, 0.0]]
