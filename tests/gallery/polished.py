"""Correct operators written with care: the faults of `faults.py` are edits of them, a line or two each.

They keep the dtype, accept any layout, broadcast if they say so, and can be differentiated twice unless marked.
"""

import threading
import time

import numpy as np

import viewgrad as vg
from viewgrad.autograd import Function, define_op, once_differentiable


def unbroadcast(grad, shape):
    """Sum a gradient over the axes along which an operand was broadcast."""
    while grad.ndim > len(shape):
        grad = grad.sum(axis=0)
    for axis, n in enumerate(shape):
        if n == 1 and grad.shape[axis] != 1:
            grad = grad.sum(axis=axis, keepdims=True)
    return grad


class Scale(Function):
    @staticmethod
    def forward(ctx, x, factor=2.0):
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.factor, None


class Square(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x * grad


class Product(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        return unbroadcast(grad * b, a.shape), unbroadcast(grad * a, b.shape)


class Quotient(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a / b

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        da = unbroadcast(grad / b, a.shape)
        db = unbroadcast(-grad * a / (b * b), b.shape)
        return da, db


class SumAxis(Function):
    @staticmethod
    def forward(ctx, x, axis=0, keepdims=False):
        ctx.shape, ctx.axis, ctx.keepdims = x.shape, axis, keepdims
        return x.sum(axis=axis, keepdims=keepdims)

    @staticmethod
    def backward(ctx, grad):
        if not ctx.keepdims:
            grad = vg.expand_dims(grad, ctx.axis)
        return vg.broadcast_to(grad, ctx.shape) * 1.0, None, None


class MeanAxis(Function):
    @staticmethod
    def forward(ctx, x, axis=-1):
        ctx.shape, ctx.axis = x.shape, axis
        return x.mean(axis=axis)

    @staticmethod
    def backward(ctx, grad):
        count = ctx.shape[ctx.axis]
        return vg.broadcast_to(vg.expand_dims(grad, ctx.axis), ctx.shape) / count, None


class SoftplusStable(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return vg.logaddexp(x, 0.0)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 0.5 * (1 + vg.tanh(0.5 * x))


class Sinc(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        safe = vg.where(x == 0, 1.0, x)
        return vg.where(x == 0, 1.0, vg.sin(safe) / safe)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        small = vg.abs(x) < 1e-3
        safe = vg.where(small, 1.0, x)
        slope = vg.where(small, -x / 3 + x**3 / 30, (safe * vg.cos(safe) - vg.sin(safe)) / (safe * safe))
        return grad * slope


class Expm1Over(Function):
    """(exp(x) - 1) / x."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        small = vg.abs(x) < 1e-4
        safe = vg.where(small, 1.0, x)
        return vg.where(small, 1 + x / 2 + x * x / 6, vg.expm1(safe) / safe)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        small = vg.abs(x) < 1e-3
        safe = vg.where(small, 1.0, x)
        series = 0.5 + x / 3 + x * x / 8 + x**3 / 30
        return grad * vg.where(small, series, (vg.exp(safe) * (safe - 1) + 1) / (safe * safe))


class CosDefect(Function):
    """(1 - cos x) / x², without cancellation."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        safe = vg.where(x == 0, 1.0, x)
        half = vg.sin(safe / 2) / safe
        return vg.where(x == 0, 0.5, 2 * half * half)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        small = vg.abs(x) < 1e-2
        safe = vg.where(small, 1.0, x)
        slope = vg.sin(safe) / safe**2 - 4 * vg.sin(safe / 2) ** 2 / safe**3
        return grad * vg.where(small, -x / 12 + x**3 / 180, slope)


class SqrtGap(Function):
    """sqrt(x + 1) - sqrt(x), without cancellation."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return 1 / (vg.sqrt(x + 1) + vg.sqrt(x))

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        y = 1 / (vg.sqrt(x + 1) + vg.sqrt(x))
        return -grad * y / (2 * vg.sqrt(x + 1) * vg.sqrt(x))


class Hypot(Function):
    @staticmethod
    def forward(ctx, a, b):
        r = vg.hypot(a, b)
        ctx.save_for_backward(a, b, r)
        return r

    @staticmethod
    def backward(ctx, grad):
        a, b, r = ctx.saved_tensors
        safe = vg.where(r == 0, 1.0, r)
        return unbroadcast(grad * a / safe, a.shape), unbroadcast(grad * b / safe, b.shape)


class Variance(Function):
    @staticmethod
    def forward(ctx, x):
        d = x - x.mean()
        ctx.save_for_backward(x)
        return (d * d).mean()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 2 * (x - x.mean()) / x.size


class LogSoftmaxRows(Function):
    @staticmethod
    def forward(ctx, x):
        shifted = x - x.max(axis=-1, keepdims=True)
        y = shifted - vg.log(vg.exp(shifted).sum(axis=-1, keepdims=True))
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return grad - vg.exp(y) * grad.sum(axis=-1, keepdims=True)


class SoftmaxRows(Function):
    @staticmethod
    def forward(ctx, x):
        e = vg.exp(x - x.max(axis=-1, keepdims=True))
        y = e / e.sum(axis=-1, keepdims=True)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return y * (grad - (grad * y).sum(axis=-1, keepdims=True))


class LargestOf(Function):
    """The larger of two numbers; each gets half of the gradient if they are equal."""

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return vg.maximum(a, b)

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        share = vg.where(a > b, 1.0, vg.where(a == b, 0.5, 0.0)).astype(grad.dtype)
        return unbroadcast(grad * share, a.shape), unbroadcast(grad * (1 - share), b.shape)


class MaxAll(Function):
    @staticmethod
    def forward(ctx, x):
        y = x.max()
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        best = (x == y).astype(x.dtype)
        return grad * best / best.sum()


class SortAscending(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.order = np.argsort(x.detach().numpy(), axis=-1, kind="stable")
        ctx.shape = x.shape
        return vg.Tensor(np.take_along_axis(x.detach().numpy(), ctx.order, -1))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = np.zeros(ctx.shape, grad.dtype)
        np.put_along_axis(g, ctx.order, grad.numpy(), -1)
        return vg.Tensor(g)


class Shrink(Function):
    """x - limit where x > limit, x + limit where x < -limit, else 0."""

    @staticmethod
    def forward(ctx, x, limit=0.5):
        ctx.save_for_backward(x)
        ctx.limit = limit
        return vg.sign(x) * vg.maximum(vg.abs(x) - limit, 0.0)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * (vg.abs(x) > ctx.limit).astype(grad.dtype), None


class PowerOf(Function):
    @staticmethod
    def forward(ctx, x, p=3):
        ctx.save_for_backward(x)
        ctx.p = p
        return x**p

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        if ctx.p == 0:
            return vg.zeros_like(x) * grad, None
        return grad * ctx.p * x ** (ctx.p - 1), None


class MatMulBatched(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a @ b

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        da = unbroadcast(grad @ vg.swapaxes(b, -1, -2), a.shape)
        db = unbroadcast(vg.swapaxes(a, -1, -2) @ grad, b.shape)
        return da, db


class Bilinear(Function):
    """x' A y."""

    @staticmethod
    def forward(ctx, x, a, y):
        ctx.save_for_backward(x, a, y)
        return x @ a @ y

    @staticmethod
    def backward(ctx, grad):
        x, a, y = ctx.saved_tensors
        return grad * (a @ y), grad * vg.outer(x, y), grad * (a.T @ x)


class Divergence(Function):
    """Results that share work: the sum, and the difference, of two arrays."""

    @staticmethod
    def forward(ctx, a, b):
        return a + 2 * b, 3 * a - b

    @staticmethod
    def backward(ctx, gs, gd):
        return gs + 3 * gd, 2 * gs - gd


class PolarForm(Function):
    @staticmethod
    def forward(ctx, x, y):
        r = vg.hypot(x, y)
        ctx.save_for_backward(x, y, r)
        return r, vg.arctan2(y, x)

    @staticmethod
    def backward(ctx, gr, gt):
        x, y, r = ctx.saved_tensors
        safe = vg.where(r == 0, 1.0, r)
        gx = gr * x / safe - gt * y / (safe * safe)
        gy = gr * y / safe + gt * x / (safe * safe)
        return unbroadcast(gx, x.shape), unbroadcast(gy, y.shape)


class GatherRows(Function):
    @staticmethod
    def forward(ctx, table, index):
        ctx.index = index.numpy().copy()
        ctx.shape, ctx.dtype = table.shape, table.dtype
        return vg.Tensor(table.detach().numpy()[ctx.index])

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = np.zeros(ctx.shape, ctx.dtype)
        np.add.at(g, ctx.index, grad.numpy())
        return vg.Tensor(g), None


class ScatterSum(Function):
    @staticmethod
    def forward(ctx, x, index):
        if x.ndim != 1 or x.shape != index.shape:
            raise ValueError("vectors of the same length are needed")
        ctx.index = index.numpy().copy()
        out = np.zeros(4, x.dtype)
        np.add.at(out, ctx.index, x.detach().numpy())
        return vg.Tensor(out)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return vg.Tensor(grad.numpy()[ctx.index]), None


class Correlate(Function):
    @staticmethod
    def forward(ctx, x, k, stride=1):
        ctx.save_for_backward(x, k)
        ctx.stride = stride
        if stride < 1:
            raise ValueError("the stride is at least 1")
        windows = np.lib.stride_tricks.sliding_window_view(x.detach().numpy(), k.shape[0])[::stride]
        return vg.Tensor(windows @ k.detach().numpy())

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x, k = (t.detach().numpy() for t in ctx.saved_tensors)
        g, s = grad.numpy(), ctx.stride
        windows = np.lib.stride_tricks.sliding_window_view(x, len(k))[::s]
        gx = np.zeros(x.shape, x.dtype)
        for i, value in enumerate(g):
            gx[i * s : i * s + len(k)] += value * k
        return vg.Tensor(gx), vg.Tensor(windows.T @ g), None


class CumulativeProduct(Function):
    @staticmethod
    def forward(ctx, x):
        if x.ndim != 1:
            raise ValueError("a vector is needed")
        y = vg.cumprod(x)
        ctx.save_for_backward(x)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x, g = ctx.saved_tensors[0].detach().numpy(), grad.numpy()
        out = np.zeros(x.shape, x.dtype)
        for k in range(len(x)):
            rest = x.copy()
            rest[k] = 1
            out[k] = (g[k:] * np.cumprod(rest)[k:]).sum()
        return vg.Tensor(out)


class BlockedSum(Function):
    """Squares summed in blocks of 64, for the cache."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        total = vg.zeros((), dtype=x.dtype)
        for start in range(0, x.shape[0], 64):
            total = total + (x[start : start + 64] ** 2).sum()
        return total

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        parts = [2 * x[start : start + 64] * grad for start in range(0, x.shape[0], 64)]
        return vg.concatenate(parts) if parts else vg.zeros_like(x)


class DistancesTo(Function):
    """Distances of rows to one point."""

    @staticmethod
    def forward(ctx, x, c):
        d = x - c
        r = vg.sqrt((d * d).sum(axis=-1))
        ctx.save_for_backward(d, r)
        return r

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        d, r = ctx.saved_tensors
        safe = vg.where(r == 0, 1.0, r)
        g = d * (grad / safe)[..., None]
        return g, -g.sum(axis=0)


class SquaredDistances(Function):
    """Squared distances between all rows."""

    @staticmethod
    def forward(ctx, x):
        if x.ndim != 2:
            raise ValueError("rows of coordinates are needed")
        d = x[:, None, :] - x[None, :, :]
        ctx.save_for_backward(x)
        return (d * d).sum(axis=-1)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        g = grad + grad.T
        return 2 * (g.sum(axis=1)[:, None] * x - g @ x)


class Counting(Function):
    """A sine that counts its calls under a lock."""

    calls = 0
    lock = threading.Lock()

    @staticmethod
    def forward(ctx, x):
        with Counting.lock:
            Counting.calls += 1
        ctx.save_for_backward(x)
        return vg.sin(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * vg.cos(x)


class Workspace(Function):
    """A cosine of the square, with a separate workspace in each call."""

    @staticmethod
    def forward(ctx, x):
        work = np.empty(x.shape, x.dtype)
        np.multiply(x.detach().numpy(), x.detach().numpy(), out=work)
        ctx.save_for_backward(x)
        time.sleep(1e-5)  # other threads run in between, as they do in a longer computation
        return vg.Tensor(np.cos(work))

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return -grad * 2 * x * vg.sin(x * x)


class HeadOf(Function):
    """The first half, copied."""

    @staticmethod
    def forward(ctx, x):
        ctx.n = x.shape[0]
        return x[: ctx.n // 2].clone()

    @staticmethod
    def backward(ctx, grad):
        rest = vg.zeros((ctx.n - grad.shape[0], *grad.shape[1:]), dtype=grad.dtype)
        return vg.concatenate([grad, rest])


class Gate(Function):
    """a * sigmoid(b)."""

    @staticmethod
    def forward(ctx, a, b):
        s = 0.5 * (1 + vg.tanh(0.5 * b))
        ctx.save_for_backward(a, b)
        return a * s

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        s = 0.5 * (1 + vg.tanh(0.5 * b))
        return unbroadcast(grad * s, a.shape), unbroadcast(grad * a * s * (1 - s), b.shape)


class RowNorm(Function):
    @staticmethod
    def forward(ctx, x, eps=1e-6):
        n = vg.sqrt((x * x).sum(axis=-1, keepdims=True) + eps)
        ctx.save_for_backward(x, n)
        return x / n

    @staticmethod
    def backward(ctx, grad):
        x, n = ctx.saved_tensors
        return (grad - x * (grad * x).sum(axis=-1, keepdims=True) / (n * n)) / n, None


class ConjugateProduct(Function):
    """conj(a) * b, for real and complex numbers."""

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return vg.conj(a) * b

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        return vg.conj(grad) * b, grad * a


class Damped(Function):
    """Damped oscillation exp(-rate t) sin(t)."""

    @staticmethod
    def forward(ctx, t, rate=0.3, phase=0.0):
        ctx.save_for_backward(t)
        ctx.rate, ctx.phase = rate, phase
        return vg.exp(-rate * t) * vg.sin(t + phase)

    @staticmethod
    def backward(ctx, grad):
        (t,) = ctx.saved_tensors
        e = vg.exp(-ctx.rate * t)
        return grad * e * (vg.cos(t + ctx.phase) - ctx.rate * vg.sin(t + ctx.phase)), None, None


class Angle(Function):
    @staticmethod
    def forward(ctx, y, x):
        ctx.save_for_backward(y, x)
        return vg.arctan2(y, x)

    @staticmethod
    def backward(ctx, grad):
        y, x = ctx.saved_tensors
        r = x * x + y * y
        r = vg.where(r == 0, 1.0, r)
        return unbroadcast(grad * x / r, y.shape), unbroadcast(-grad * y / r, x.shape)


class AddScaled(Function):
    """In place: x += alpha * y."""

    @staticmethod
    def forward(ctx, x, y, alpha=1.0):
        ctx.alpha, ctx.shape = alpha, y.shape
        x.add_(y * alpha)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad, unbroadcast(grad * ctx.alpha, ctx.shape), None


def halves(x, y):
    """x / 2 + y / 2."""
    return 0.5 * x + 0.5 * y


def halves_(x, y):
    """The same, over x."""
    return x.copy_(0.5 * x + 0.5 * y)


def affine_norm(x, w):
    y = x * w
    return vg.sqrt((y * y).sum() + 1e-3)


class Memo:
    """A filter whose coefficients another method changes."""

    def __init__(self):
        self.gain = 1.5

    def retune(self):
        self.other = 0.5

    def __call__(self, x):
        return x * self.gain + vg.sin(x)


log_cosh = define_op(
    "polished_log_cosh(self, scale=1.0)",
    forward=lambda self, scale: np.logaddexp(self * scale, -self * scale) - np.log(2.0),
    derivatives={"self": "grad * scale * tanh(self * scale)"},
    forward_derivative="self_t * scale * tanh(self_p * scale)",
    inplace=True,
)
