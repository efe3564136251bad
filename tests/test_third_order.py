"""Third derivatives of programs with in-place writes, against closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest

import viewgrad as vg
from viewgrad import func

COEFFICIENTS = np.array([0.7, -1.3, 0.4, 2.0, -0.6, 0.25])
TERMS = 9
POINTS = np.array([-1.1, 0.3, 1.4])


def powers(x):
    """Return x**6, the last row of a table whose rows are each computed from the one before."""
    table = vg.zeros(7, x.size)
    table[0] = 1.0
    for i in range(1, 7):
        table[i] = table[i - 1] * x
    return table[6]


def horner(x):
    """Return a polynomial by Horner's rule, in one row of a buffer whose other row is overwritten meanwhile."""
    buffer = vg.zeros(2, x.size)
    value, scratch = buffer
    for coefficient in COEFFICIENTS[::-1]:
        value *= x
        value += coefficient
        scratch.copy_(value)
    buffer[0] = scratch
    return buffer[0]


def exponential(x):
    """Return the first terms of the exponential series, accumulated in two columns of one array."""
    state = vg.zeros(x.size, 2)
    state[:, 0] = 1.0
    state[:, 1] = 1.0
    total, term = state.T
    for k in range(1, TERMS):
        term *= x / k
        total += term
    return state[:, 0]


def polynomial(coefficients, order):
    return np.polynomial.Polynomial(coefficients).deriv(order)(POINTS)


PROGRAMS = {
    "powers": (powers, np.eye(7)[6]),
    "horner": (horner, COEFFICIENTS),
    "exponential": (exponential, [1 / math.factorial(k) for k in range(TERMS)]),
}


def by_nested_grad(program, x):
    """Return the derivatives by nested gradients of sums: each element depends on its own point only."""
    x = vg.Tensor(x, requires_grad=True)
    derivatives = [program(x)]
    for _ in range(3):
        derivatives += vg.autograd.grad(derivatives[-1].sum(), x, create_graph=True)
    return derivatives


def by_func_grad(program, x):
    derivatives = [program]
    for _ in range(3):
        derivatives.append(func.grad(lambda x, f=derivatives[-1]: f(x).sum()))
    return [derivative(vg.Tensor(x)) for derivative in derivatives]


def by_jvp(program, x):
    derivatives = [program]
    for _ in range(3):
        derivatives.append(lambda x, f=derivatives[-1]: func.jvp(f, (x,), (vg.ones_like(x),))[1])
    return [derivative(vg.Tensor(x)) for derivative in derivatives]


def by_turns(program, x):
    """Return the derivatives by reverse over forward over reverse mode."""
    first = func.grad(lambda x: program(x).sum())
    second = lambda x: func.jvp(first, (x,), (vg.ones_like(x),))[1]
    third = lambda x: func.vjp(second, x)[1](vg.ones_like(x))[0]
    return [derivative(vg.Tensor(x)) for derivative in (program, first, second, third)]


def by_jacobians(program, x):
    first = func.jacfwd(program)
    second = func.jacrev(first)
    third = func.jacfwd(second)
    found = [derivative(vg.Tensor(x)) for derivative in (program, first, second, third)]
    for order, derivative in enumerate(found):
        if order:
            off = derivative._array.copy()
            for i in range(x.size):
                off[(i,) * (order + 1)] = 0
            assert not off.any()
    return [vg.Tensor([d._array[(i,) * (order + 1)] for i in range(x.size)]) for order, d in enumerate(found)]


@pytest.mark.parametrize("way", [by_nested_grad, by_func_grad, by_jvp, by_turns, by_jacobians])
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("replay", [False, True])
def test_third_derivatives(name, way, replay):
    program, coefficients = PROGRAMS[name]
    with vg.view_replay(replay):
        for order, derivative in enumerate(way(program, POINTS)):
            np.testing.assert_allclose(derivative._array, polynomial(coefficients, order), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(
    "transforms",
    [
        (func.jacrev, func.jacrev, func.jacrev),
        (func.jacfwd, func.jacfwd, func.jacfwd),
        (func.jacrev, func.jacfwd, func.jacrev),
        (func.grad, func.hessian),
        (func.hessian, func.jacrev),
    ],
)
def test_mixed_third_derivatives(transforms):
    def product(x):
        y = x * 1.0
        for i in range(1, len(y)):
            y[i] *= y[i - 1]
        return y[-1]

    x = np.array([0.5, -2.0, 3.0, 1.25])
    expected = np.zeros((4, 4, 4))
    for i, j, k in np.ndindex(4, 4, 4):
        if len({i, j, k}) == 3:
            expected[i, j, k] = x.prod() / (x[i] * x[j] * x[k])
    derivative = product
    for transform in transforms:
        derivative = transform(derivative)
    np.testing.assert_allclose(derivative(vg.Tensor(x))._array, expected, rtol=1e-12, atol=1e-12)
