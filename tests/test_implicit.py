"""`implicit`: derivatives of solutions, against closed forms and finite differences."""

from __future__ import annotations

import numpy as np
import pytest

import viewgrad as vg
from viewgrad import func
from viewgrad.autograd import gradcheck, gradgradcheck
from viewgrad.errors import DifferentiabilityError

RNG = np.random.default_rng(3)


def newton(mean, eccentricity):
    x = np.array(mean)
    for _ in range(60):
        x -= (x - eccentricity * np.sin(x) - mean) / (1 - eccentricity * np.cos(x))
    return x


kepler = func.implicit(lambda x, m, e: x - e * np.sin(x) - m, newton)


def close(found, expected, rtol=1e-10):
    np.testing.assert_allclose(vg.as_tensor(found).detach().numpy(), expected, rtol=rtol)


def test_all_orders():
    """The expected values follow from repeated differentiation of dx/de = sin x / (1 - e cos x)."""
    e = 0.3
    x = float(newton(1.0, e))
    slope = lambda x, e: vg.sin(x) / (1 - e * vg.cos(x))
    derivatives = [slope]
    for _ in range(3):  # d/de f(x(e), e) = f_e + f_x * slope
        f = derivatives[-1]
        derivatives.append(lambda x, e, f=f: func.grad(f, 1)(x, e) + func.grad(f)(x, e) * slope(x, e))
    found = lambda e: kepler(1.0, e)
    for expected in derivatives:
        found = func.grad(found)
        close(found(e), expected(vg.Tensor(x), vg.Tensor(e)).item())
    close(func.jvp(lambda e: kepler(1.0, e), (e,), (2.0,))[1], 2 * slope(vg.Tensor(x), vg.Tensor(e)).item())
    close(func.hessian(lambda e: kepler(1.0, e))(e), derivatives[1](vg.Tensor(x), vg.Tensor(e)).item())


def test_arrays():
    m, e = (vg.Tensor(v, requires_grad=True) for v in ([0.5, 1.0, 2.0], [0.1, 0.2, 0.3]))
    assert gradcheck(kepler, (m, e)) and gradgradcheck(kepler, (m, e))


def conjugate_gradients(matvec, b):
    x = np.zeros_like(b)
    r = b.copy()
    p = r.copy()
    for _ in range(5 * len(b)):
        if r @ r < 1e-30:
            break
        q = matvec(p)
        step = (r @ r) / (p @ q)
        x, before, r = x + step * p, r @ r, r - step * q
        p = r + (r @ r) / before * p
    return x


def test_linear_solvers_get_no_matrix():
    """A nonlinear diffusion: -(u'' ) + c u^3 = f, solved by Newton's method; the adjoint is solved by CG."""
    n = 30

    def residual(u, c, f):
        padded = vg.zeros(n + 2)
        padded[1:-1] = u
        return (2 * u - padded[2:] - padded[:-2]) * n**2 + c * u**3 - f

    def solve(c, f):
        matrix = (2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)) * n**2
        u = np.zeros(n)
        for _ in range(30):
            u -= np.linalg.solve(matrix + np.diag(3 * c * u**2), matrix @ u + c * u**3 - f)
        return u

    sizes = []

    def linear_solve(matvec, b):
        sizes.append(b.shape)
        return conjugate_gradients(matvec, b)

    c, f = vg.Tensor(50.0, requires_grad=True), vg.Tensor(100 + RNG.normal(size=n), requires_grad=True)
    u = func.implicit(residual, solve, linear_solve=linear_solve)
    dense = func.implicit(residual, solve)
    loss = lambda u: lambda c, f: (u(c, f) ** 2).sum()
    for order in (func.grad, lambda g: func.grad(lambda c, f: func.grad(g, 1)(c, f).sum())):
        close(order(loss(u))(c, f), order(loss(dense))(c, f).item(), 1e-6)
    assert sizes and set(sizes) == {(n,)}
    h = 1e-3
    by_difference = (loss(dense)(50.0 + h, f.detach()) - loss(dense)(50.0 - h, f.detach())) / (2 * h)
    close(func.grad(loss(u))(c, f), by_difference.item(), 1e-6)


def test_trees():
    equations = lambda s, p: {"r": s["a"] ** 3 - p["q"] * s["b"], "t": s["b"] - s["a"] * p["k"]}
    solve = lambda p: {"a": float(np.sqrt(p["q"] * p["k"])), "b": float(np.sqrt(p["q"] * p["k"]) * p["k"])}
    solved = func.implicit(equations, solve)
    slopes = func.grad(lambda p: solved(p)["a"] * solved(p)["b"])({"q": 2.0, "k": 3.0})  # the gradient of q k^2
    close(slopes["q"], 9.0)
    close(slopes["k"], 12.0)


def test_a_bilevel_problem():
    """The gradient of a validation loss with respect to a ridge weight equals finite differences."""
    a, b, c, d = (RNG.normal(size=shape) for shape in ((8, 3), 8, (5, 3), 5))
    ridge = lambda weight: np.linalg.solve(a.T @ a + weight * np.eye(3), a.T @ b)
    inner = lambda w, weight: ((a @ w - b) ** 2).sum() / 2 + weight / 2 * (w * w).sum()
    fit = func.implicit(lambda w, weight: func.grad(inner)(w, weight), ridge)
    outer = lambda weight: ((c @ fit(weight) - d) ** 2).sum()
    plain = lambda weight: ((c @ ridge(weight) - d) ** 2).sum()
    close(func.grad(outer)(0.5), (plain(0.5 + 1e-5) - plain(0.5 - 1e-5)) / 2e-5, 1e-7)


def test_compiled_and_traced():
    """The solver runs again in each call of a compiled program."""
    f = vg.compile(lambda m, e: kepler(m * 2.0, e) ** 2, executor="python")
    for m in (0.5, 0.6, 0.7, 0.8):
        x = vg.Tensor(m, requires_grad=True)
        y = f(x, vg.Tensor(0.3))
        close(y, newton(2 * m, 0.3) ** 2)
        close(vg.autograd.grad(y, x)[0], 4 * newton(2 * m, 0.3) / (1 - 0.3 * np.cos(newton(2 * m, 0.3))))


def test_float32():
    x = kepler(vg.Tensor(np.float32(1)), vg.Tensor(np.float32(0.3)))
    assert x.dtype == np.float32
    assert func.grad(kepler, 1)(np.float32(1), np.float32(0.3)).dtype == np.float32


outside = vg.Tensor(2.0, requires_grad=True)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: func.implicit(lambda x, a: x * outside - a, lambda a: a / 2)(vg.Tensor(1.0)), "not among the argum"),
        (lambda: func.jvp(lambda b: func.implicit(lambda x, a: x - a * b, lambda a: a)(1.0), (1.0,), (1.0,)), "not am"),
        (lambda: func.implicit(lambda x, a: a * vg.ones(2), lambda a: a)(vg.Tensor(1.0)), "2 elements"),
        (lambda: func.implicit(lambda x, a: x - a, lambda a: 1j)(1.0), "real"),
        (lambda: func.grad(func.implicit(lambda x, a: x**2 - a, lambda a: 0.0))(0.0), "singular"),
        (lambda: func.grad(func.implicit(lambda x, a: x**2 - a, lambda a: 1.5))(2.0), "not a root"),
    ],
)
def test_invalid_solutions_raise(call, message):
    with pytest.raises(DifferentiabilityError, match=message):
        call()
