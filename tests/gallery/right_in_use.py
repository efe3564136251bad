"""Correct operators with features that a check may misjudge."""

import functools

import numpy as np

import viewgrad as vg
from viewgrad.autograd import Function, define_op, once_differentiable

from . import M, P, V, Z, right

SQUARE = np.array([[2.0, 0.4, -0.3], [0.1, 1.7, 0.5], [-0.6, 0.2, 2.3]])


def raw(tensor):
    return tensor.detach().numpy().copy()


@right(np.array([[0.3, 1.2], [0.9, -0.4], [2.0, 0.1]]))
def energy_of_charges(x):
    """Sum over all pairs of different points."""
    n = x.shape[0]
    i, j = np.triu_indices(n, 1)
    d = x[i] - x[j]
    return (1.0 / vg.sqrt((d * d).sum(-1))).sum()


@right(np.array([0.2, -0.7, 1.1]))
def smooth_absolute_value(x, width=1e-3):
    return vg.sqrt(x * x + width * width) - width


@right(np.array([0.3, -0.2, 0.6]))
def step_response(x):
    """A steep sigmoid, not saturated at the user's arguments and flat elsewhere."""
    return 1.0 / (1.0 + vg.exp(-50.0 * x))


@right(np.array([0.5, 1.5, 2.5]))
def make_incomplete_integral():
    nodes, weights = np.polynomial.legendre.leggauss(20)

    def integral(x):
        """Of exp(-t^2) from 0 to x."""
        t = 0.5 * x[..., None] * (nodes + 1.0)
        return 0.5 * x * (vg.exp(-t * t) * weights).sum(-1)

    return integral


@right(np.array([1.0, 0.0]), 40)
def pendulum(state, steps):
    """Leapfrog steps in place."""
    if steps < 0 or state.shape != (2,):
        raise ValueError("an angle and a speed")
    s = state.clone()
    h = 0.05
    for _ in range(min(steps, 50)):
        s[1] -= 0.5 * h * vg.sin(s[0])
        s[0] += h * s[1]
        s[1] -= 0.5 * h * vg.sin(s[0])
    return s


@right(SQUARE)
class Trace3(Function):
    """The trace of the third power."""

    @staticmethod
    def forward(ctx, a):
        if a.ndim != 2:
            raise ValueError("one matrix")
        ctx.save_for_backward(a)
        return vg.trace(a @ a @ a)

    @staticmethod
    def backward(ctx, grad):
        (a,) = ctx.saved_tensors
        return 3.0 * grad * (a @ a).T


@right(V, V + 1.0, V - 2.0)
def middle_of_three(a, b, c):
    return vg.maximum(vg.minimum(a, b), vg.minimum(vg.maximum(a, b), c))


@right(np.array([3.0, 4.0]))
class UnitVector(Function):
    """Maps 0 to 0, with gradient 0."""

    @staticmethod
    def forward(ctx, x):
        n = np.sqrt((raw(x) ** 2).sum())
        ctx.n = n
        y = x / n if n > 0 else x * 0.0
        ctx.save_for_backward(y)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        if ctx.n == 0:
            return grad * 0.0
        return (grad - y * (grad * y).sum()) / ctx.n


@right(M)
def alternating_views(x):
    y = x.clone()
    even, odd = y[..., ::2], y[..., 1::2]
    even *= 2.0
    odd += even[..., : odd.shape[-1]]
    return y


@right(M, (1, 0))
def moved_axes(x, axes):
    return x.transpose(axes)


@right(M)
def two_halves(x):
    left, right_ = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
    return {"left": left, "right": right_}


@functools.cache
def _weights(n):
    return 1.0 / np.arange(1.0, n + 1.0)


@right(P)
def harmonic(x):
    """Weights cached by length."""
    return x * _weights(x.shape[-1]).astype(x.dtype)


@right(np.array([0.25, 0.5, 0.75]))
def make_quantile_function():
    return define_op(
        "in_use_logit(self, scale=1.0)",
        forward=lambda p, scale=1.0: scale * np.log(p / (1.0 - p)),
        derivatives={"self": "grad * scale / (self * (1 - self))"},
        forward_derivative="auto_element_wise",
        elementwise=True,
        inplace=True,
        domain=(0.05, 0.95),
    )


@right(V, V * 0.5 + 1.0)
class TangentThatIsNeverNone(Function):
    """Its code for missing tangents never runs: these are zeros."""

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * a * b

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        return grad * 2.0 * a * b, grad * a * a

    @staticmethod
    def jvp(ctx, ta, tb):
        a, b = ctx.saved_tensors
        if ta is None:
            return tb * 2.0 * a * b
        if tb is None:
            return ta * 2.0 * a * b
        return ta * 2.0 * a * b + tb * a * a


@right(Z)
def rotation_invariant(z):
    return vg.real(z * vg.conj(z)).sum(-1)


@right(Z[0], Z[1])
def make_complex_row():
    return define_op(
        "in_use_complex_product(self, other)",
        forward=lambda a, b: a * np.conj(b),
        derivatives={"self": "grad * other", "other": "conj(grad) * self"},
        elementwise=True,
        dtype_kinds="fc",
    )


@right(V, where=np.array([True, False, True]))
def sum_where(x, where):
    return vg.where(where, x, 0.0).sum(-1)


@right(np.array([1.0, 2.0, 3.0]), np.array([2, 0, 1]))
class Permuted(Function):
    """Permutes by an index, which must contain each number once."""

    @staticmethod
    def forward(ctx, x, order):
        p = order.numpy()
        if x.ndim != 1 or sorted(p.tolist()) != list(range(x.shape[0])):
            raise ValueError("a permutation, please")
        ctx.back = np.argsort(p)
        return x[p]

    @staticmethod
    def backward(ctx, grad):
        return grad[ctx.back], None


@right(M)
class KeepsNumbersOnly(Function):
    """Saves only a number, from which the gradient follows."""

    @staticmethod
    def forward(ctx, x):
        y = vg.sqrt((x * x).sum() + 1.0)
        ctx.save_for_backward(x, y)
        ctx.calls = 0
        return y

    @staticmethod
    def backward(ctx, grad):
        ctx.calls += 1
        x, y = ctx.saved_tensors
        return grad * x / y

    @staticmethod
    def jvp(ctx, tangent):
        x, y = ctx.saved_tensors
        return (x * tangent).sum() / y


@right(np.linspace(0.1, 2.0, 60))
def long_recurrence(x):
    y = vg.zeros_like(x)
    y[:1] = x[:1]
    for t in range(1, x.shape[0]):
        y[t] = 0.9 * y[t - 1] + vg.tanh(x[t])
    return y


@right(V)
def triangle_wave(x):
    """For large arguments its kinks are closer than the steps that other functions need there."""
    return vg.abs(x - 2 * np.floor(x / 2) - 1)


@right(np.array([4.0, 5.0, 6.0]), V, domain=[(2.5, 9), None])
def tridiagonal_solution(diagonal, right_hand_side):
    """If the right-hand side is an array, the history of values written to it is lost, with a warning."""
    d, b = diagonal * 1.0, right_hand_side * 1.0
    for i in range(1, d.shape[0]):
        w = 1.0 / d[i - 1]
        d[i] -= w
        b[i] -= w * b[i - 1]
    for i in range(d.shape[0] - 2, -1, -1):
        b[i] -= b[i + 1] / d[i]
    return b / d
