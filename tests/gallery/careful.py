"""Correct operators written with care: they save tensors, broadcast, check shapes, and keep dtypes.

`CALLS` has the call of each and its author's declarations; `newcomers_faults.py` has edits that make some wrong.
"""

import math

import numpy as np
import scipy.linalg
import scipy.special

import viewgrad as vg
from viewgrad.autograd import Function, define_op, formula_function, once_differentiable

from .newcomers import ATOMS, FACES, IMAGE, PLUS, SIGNAL, SPD, TALL, UNIT, VOLUME, M, N, X, Y, registering

CALLS = {}
call = registering(CALLS)


def raw(tensor):
    return tensor.detach().numpy()


def reduced(grad, shape):
    """Sum a gradient over the axes along which an argument was broadcast."""
    extra = grad.ndim - len(shape)
    if extra:
        grad = grad.sum(axis=tuple(range(extra)))
    axes = tuple(i for i, n in enumerate(shape) if n == 1 and grad.shape[i] != 1)
    return grad.sum(axis=axes, keepdims=True) if axes else grad


# -- elementwise -------------------------------------------------------------------------------------------------------


@call(M, Y[:3])
class SafeDivide(Function):
    """x / y, and 0 where y is 0."""

    @staticmethod
    def forward(ctx, x, y):
        zero = y == 0
        safe = vg.where(zero, 1.0, y)
        ctx.save_for_backward(x, safe, zero)
        return vg.where(zero, 0.0, x / safe)

    @staticmethod
    def backward(ctx, grad):
        x, safe, zero = ctx.saved_tensors
        gx = vg.where(zero, 0.0, grad / safe)
        gy = vg.where(zero, 0.0, -grad * x / (safe * safe))
        return reduced(gx, x.shape), reduced(gy, safe.shape)


@call(X)
class SoftSign(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x / (1 + vg.abs(x))

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad / (1 + vg.abs(x)) ** 2


@call(X)
class LogisticLoss(Function):
    """log(1 + exp(-x)), stable on both sides."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        a = raw(x)
        return vg.Tensor(np.logaddexp(np.zeros((), a.dtype), -a))

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return -grad * vg.sigmoid(-x)


@call(X)
class ErrorFunction(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return vg.Tensor(scipy.special.erf(raw(x)))

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * (2 / math.sqrt(math.pi)) * vg.exp(-x * x)


@call(PLUS, Y, means={"domain": ((0.0, 50.0), None)})
class XLogY1p(Function):
    """x log(1 + x) + x y."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * vg.log1p(x) + x * y

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        gx = grad * (vg.log1p(x) + x / (1 + x) + y)
        return reduced(gx, x.shape), reduced(grad * x, y.shape)


@call(X, limit=1.0)
class SoftThreshold(Function):
    @staticmethod
    def forward(ctx, x, limit=1.0):
        if limit < 0:
            raise ValueError("limit must not be negative")
        ctx.save_for_backward(x)
        ctx.limit = limit
        return vg.sign(x) * vg.maximum(vg.abs(x) - limit, 0.0)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return vg.where(vg.abs(x) > ctx.limit, grad, 0.0), None


@call(X, PLUS)
class Hypotenuse(Function):
    @staticmethod
    def forward(ctx, a, b):
        r = vg.Tensor(np.hypot(raw(a), raw(b)))
        ctx.save_for_backward(a, b, r)
        return r

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        a, b, r = ctx.saved_tensors
        safe = vg.where(r == 0, 1.0, r)
        return reduced(grad * a / safe, a.shape), reduced(grad * b / safe, b.shape)


# -- reductions --------------------------------------------------------------------------------------------------------


@call(VOLUME, axis=1)
class LogMeanExp(Function):
    @staticmethod
    def forward(ctx, x, axis=-1):
        a = raw(x)
        n = a.shape[axis]
        top = a.max(axis=axis, keepdims=True)
        top = np.where(np.isfinite(top), top, 0)
        e = np.exp(a - top)
        total = e.sum(axis=axis, keepdims=True)
        ctx.weights, ctx.axis = e / total, axis
        return vg.Tensor(np.squeeze(np.log(total / n) + top, axis=axis).astype(a.dtype))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return vg.Tensor(np.expand_dims(raw(grad), ctx.axis) * ctx.weights), None


@call(M, axis=None)
class PowerMean(Function):
    """The root of the mean square, over an axis or everything."""

    @staticmethod
    def forward(ctx, x, axis=None):
        if x.size == 0:
            raise ValueError("no elements")
        a = raw(x)
        r = np.sqrt((a * a).mean(axis=axis, keepdims=True))
        ctx.save_for_backward(x)
        ctx.r, ctx.axis, ctx.count = r, axis, a.size / r.size
        return vg.Tensor(r.reshape(()) if axis is None else r.squeeze(axis))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        g = raw(grad)
        g = g.reshape(ctx.r.shape) if ctx.axis is None else np.expand_dims(g, ctx.axis)
        safe = np.where(ctx.r == 0, 1, ctx.r)
        return vg.Tensor(g * raw(x) / (safe * ctx.count)), None


@call(M, keepdims=False)
class RangeOf(Function):
    """max - min along the last axis; ties share the gradient."""

    @staticmethod
    def forward(ctx, x, keepdims=False):
        a = raw(x)
        high, low = a.max(axis=-1, keepdims=True), a.min(axis=-1, keepdims=True)
        up, down = a == high, a == low
        ctx.weights = up / up.sum(-1, keepdims=True) - down / down.sum(-1, keepdims=True)
        ctx.keepdims = keepdims
        out = high - low
        return vg.Tensor(out if keepdims else out[..., 0])

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = raw(grad) if ctx.keepdims else raw(grad)[..., None]
        return vg.Tensor((g * ctx.weights).astype(g.dtype)), None


@call(M)
class Standardize(Function):
    @staticmethod
    def forward(ctx, x):
        mean = x.mean(axis=-1, keepdims=True)
        inverse = 1 / vg.sqrt(((x - mean) ** 2).mean(axis=-1, keepdims=True) + 1e-6)
        y = (x - mean) * inverse
        ctx.save_for_backward(x)
        return y

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        mean = x.mean(axis=-1, keepdims=True)
        inverse = 1 / vg.sqrt(((x - mean) ** 2).mean(axis=-1, keepdims=True) + 1e-6)
        y = (x - mean) * inverse
        inner = grad - grad.mean(axis=-1, keepdims=True) - y * (grad * y).mean(axis=-1, keepdims=True)
        return inner * inverse


@call(M, axis=-1)
class CumulativeLogSum(Function):
    @staticmethod
    def forward(ctx, x, axis=-1):
        a = raw(x)
        y = np.logaddexp.accumulate(a, axis=axis)
        ctx.a, ctx.y, ctx.axis = a.copy(), y, axis
        return vg.Tensor(y)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        a, y, g = (np.moveaxis(t, ctx.axis, -1) for t in (ctx.a, ctx.y, raw(grad)))
        n = a.shape[-1]
        weights = np.exp(np.minimum(a[..., :, None] - y[..., None, :], 0))
        weights = np.where(np.arange(n)[:, None] <= np.arange(n), weights, 0)
        return vg.Tensor(np.moveaxis((weights * g[..., None, :]).sum(-1), -1, ctx.axis).astype(a.dtype)), None


@call(SIGNAL, PLUS[:3])
class WeightedWindow(Function):
    """Sums of windows, with weights."""

    @staticmethod
    def forward(ctx, x, w):
        if x.ndim != 1 or w.ndim != 1 or not 0 < w.shape[0] <= x.shape[0]:
            raise ValueError("a window is not longer than its signal")
        ctx.save_for_backward(x, w)
        return vg.Tensor(np.lib.stride_tricks.sliding_window_view(raw(x), w.shape[0]) @ raw(w))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x, w = (raw(t) for t in ctx.saved_tensors)
        g = raw(grad)
        return vg.Tensor(np.convolve(g, w)), vg.Tensor(np.lib.stride_tricks.sliding_window_view(x, len(w)).T @ g)


# -- linear algebra ----------------------------------------------------------------------------------------------------


@call(SPD, X[:3])
class SolveSymmetric(Function):
    @staticmethod
    def forward(ctx, a, b):
        if a.ndim != 2 or b.ndim != 1 or a.shape != (b.shape[0], b.shape[0]):
            raise ValueError("a square matrix and a vector")
        x = vg.Tensor(np.linalg.solve(raw(a), raw(b)))
        ctx.save_for_backward(a, x)
        return x

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        a, x = (raw(t) for t in ctx.saved_tensors)
        w = np.linalg.solve(a.T, raw(grad))
        return vg.Tensor(-np.outer(w, x)), vg.Tensor(w)


@call(SPD)
class LogAbsDeterminant(Function):
    @staticmethod
    def forward(ctx, a):
        if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
            raise ValueError("square matrices")
        sign, value = np.linalg.slogdet(raw(a))
        if np.any(sign == 0):
            raise np.linalg.LinAlgError("singular")
        ctx.save_for_backward(a)
        return vg.Tensor(value)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (a,) = ctx.saved_tensors
        return vg.Tensor(raw(grad)[..., None, None] * np.swapaxes(np.linalg.inv(raw(a)), -1, -2))


@call(N, TALL[:4])
class CrossCovariance(Function):
    @staticmethod
    def forward(ctx, x, y):
        if x.ndim != 2 or y.ndim != 2 or x.shape[0] != y.shape[0] or x.shape[0] < 2:
            raise ValueError("two samples of one size")
        ctx.save_for_backward(x, y)
        return (x - x.mean(axis=0)).T @ (y - y.mean(axis=0)) / (x.shape[0] - 1)

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        n = x.shape[0] - 1
        return (y - y.mean(axis=0)) @ grad.T / n, (x - x.mean(axis=0)) @ grad / n


@call(N, means={"valid": lambda a: a.ndim == 2})
class GramMatrix(Function):
    @staticmethod
    def forward(ctx, a):
        ctx.save_for_backward(a)
        return a @ a.T

    @staticmethod
    def backward(ctx, grad):
        (a,) = ctx.saved_tensors
        return (grad + grad.T) @ a


@call(X[:3], Y[:3])
class HouseholderReflection(Function):
    """x reflected at the plane orthogonal to v."""

    @staticmethod
    def forward(ctx, x, v):
        if x.ndim != 1 or x.shape != v.shape:
            raise ValueError("two vectors of one length")
        s = (v * v).sum()
        if float(s.detach()) == 0:
            raise ValueError("v is zero")
        ctx.save_for_backward(x, v)
        return x - 2 * v * (v * x).sum() / s

    @staticmethod
    def backward(ctx, grad):
        x, v = ctx.saved_tensors
        s, vx, vg_ = (v * v).sum(), (v * x).sum(), (v * grad).sum()
        gx = grad - 2 * v * vg_ / s
        gv = -2 * (grad * vx + x * vg_) / s + 4 * v * vx * vg_ / (s * s)
        return gx, gv


@call(np.tril(SPD), X[:3], means={"structure": {"l": "triangular"}})
class TriangularProduct(Function):
    @staticmethod
    def forward(ctx, l, x):
        if l.ndim != 2 or x.ndim != 1 or l.shape != (x.shape[0], x.shape[0]):
            raise ValueError("a triangular matrix and a vector")
        ctx.save_for_backward(l, x)
        return vg.tril(l) @ x

    @staticmethod
    def backward(ctx, grad):
        l, x = ctx.saved_tensors
        return vg.tril(vg.outer(grad, x)), vg.tril(l).T @ grad


# -- signals and images ------------------------------------------------------------------------------------------------


@call(SIGNAL, shift=2)
class DelayWithZeros(Function):
    @staticmethod
    def forward(ctx, x, shift=1):
        if x.ndim != 1 or shift < 0:
            raise ValueError("a signal and a delay")
        ctx.shift = min(shift, x.shape[0])
        out = vg.zeros_like(x)
        out[ctx.shift :] = x[: x.shape[0] - ctx.shift]
        return out

    @staticmethod
    def backward(ctx, grad):
        out = vg.zeros_like(grad)
        out[: grad.shape[0] - ctx.shift] = grad[ctx.shift :]
        return out, None


@call(IMAGE, size=2)
class BlockMean(Function):
    @staticmethod
    def forward(ctx, x, size=2):
        if x.ndim != 2 or size < 1:
            raise ValueError("an image")
        h, w = x.shape[0] // size, x.shape[1] // size
        ctx.shape, ctx.size = x.shape, size
        return x[: h * size, : w * size].reshape(h, size, w, size).mean(axis=(1, 3))

    @staticmethod
    def backward(ctx, grad):
        out = vg.zeros(ctx.shape, dtype=grad.dtype)
        h, w = grad.shape
        n = ctx.size
        out[: h * n, : w * n] = vg.repeat(vg.repeat(grad, n, axis=0), n, axis=1) / (n * n)
        return out, None


@call(IMAGE)
class SobelEnergy(Function):
    @staticmethod
    def forward(ctx, x):
        if x.ndim != 2 or min(x.shape) < 3:
            raise ValueError("an image of three rows and columns at least")
        ctx.save_for_backward(x)
        dx, dy = x[:, 2:] - x[:, :-2], x[2:] - x[:-2]
        return (dx * dx).sum() + (dy * dy).sum()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        dx, dy = 2 * grad * (x[:, 2:] - x[:, :-2]), 2 * grad * (x[2:] - x[:-2])
        out = vg.zeros_like(x)
        out[:, 2:] += dx
        out[:, :-2] -= dx
        out[2:] += dy
        out[:-2] -= dy
        return out


@call(SIGNAL)
class RealSpectrum(Function):
    @staticmethod
    def forward(ctx, x):
        if x.ndim != 1 or x.shape[0] == 0:
            raise ValueError("a signal")
        ctx.n = x.shape[0]
        f = np.fft.fft(raw(x))
        ctx.f = f
        return vg.Tensor(f.real**2 + f.imag**2)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return vg.Tensor(2 * np.fft.ifft(ctx.f * raw(grad)).real * ctx.n)


@call(X, np.array([[2, 0], [4, 1]]))
class Gather(Function):
    @staticmethod
    def forward(ctx, x, index):
        if x.ndim != 1:
            raise ValueError("a vector")
        ctx.index, ctx.n = index.numpy().copy(), x.shape[0]
        return vg.Tensor(raw(x)[ctx.index])

    @staticmethod
    def backward(ctx, grad):
        out = vg.zeros(ctx.n, dtype=grad.dtype)
        vg.add.at(out, ctx.index, grad)
        return out, None


@call(N, np.array([0, 2, 2, 1]), count=4)
class SegmentMeanOf(Function):
    @staticmethod
    def forward(ctx, x, segment, count):
        s = segment.numpy()
        if s.ndim != 1 or x.ndim < 1 or len(s) != x.shape[0] or s.min(initial=0) < 0 or s.max(initial=-1) >= count:
            raise ValueError("a segment for each row")
        number = np.maximum(np.bincount(s, minlength=count), 1)
        ctx.weights, ctx.segment = (1 / number[s]).reshape(-1, *[1] * (x.ndim - 1)), s.copy()
        out = np.zeros((count, *x.shape[1:]), raw(x).dtype)
        np.add.at(out, s, (raw(x) * ctx.weights).astype(out.dtype))
        return vg.Tensor(out)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = raw(grad)
        return vg.Tensor((g[ctx.segment] * ctx.weights).astype(g.dtype)), None, None


@call(X, np.array([True, False, True, True, False]))
class MaskedMean(Function):
    @staticmethod
    def forward(ctx, x, mask):
        m = np.broadcast_to(mask.numpy(), x.shape).astype(raw(x).dtype)
        ctx.w = m / max(m.sum(), 1)
        return vg.Tensor((raw(x) * ctx.w).sum())

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return vg.Tensor(raw(grad) * ctx.w), None


# -- physics, geometry, statistics -------------------------------------------------------------------------------------


@call(ATOMS)
class RadiusOfGyration(Function):
    @staticmethod
    def forward(ctx, p):
        if p.ndim != 2 or p.shape[0] == 0:
            raise ValueError("points")
        d = p - p.mean(axis=0)
        r = vg.sqrt((d * d).sum() / p.shape[0])
        ctx.save_for_backward(d, r)
        ctx.n = p.shape[0]
        return r

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        d, r = ctx.saved_tensors
        return grad * d / (ctx.n * vg.where(r == 0, 1.0, r))


@call(ATOMS, FACES)
class FaceNormals(Function):
    """Twice the areas of faces, as vectors."""

    @staticmethod
    def forward(ctx, v, faces):
        f = faces.numpy()
        if v.ndim != 2 or v.shape[1] != 3 or f.ndim != 2 or f.shape[1] != 3:
            raise ValueError("vertices and triangles in space")
        a, b, c = (raw(v)[f[:, i]] for i in range(3))
        ctx.u, ctx.w, ctx.f, ctx.shape = b - a, c - a, f.copy(), v.shape
        return vg.Tensor(np.cross(ctx.u, ctx.w))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = raw(grad)
        gu, gw = np.cross(ctx.w, g), np.cross(g, ctx.u)
        out = np.zeros(ctx.shape, g.dtype)
        for i, part in enumerate((-gu - gw, gu, gw)):
            np.add.at(out, ctx.f[:, i], part)
        return vg.Tensor(out), None


@call(np.array([0.4, -1.1]), np.array([1.2, 0.3]))
class ComplexProduct(Function):
    """Two numbers as pairs of a real and an imaginary part."""

    @staticmethod
    def forward(ctx, a, b):
        if a.shape[-1:] != (2,) or b.shape != a.shape:
            raise ValueError("pairs")
        ctx.save_for_backward(a, b)
        return vg.stack(
            [a[..., 0] * b[..., 0] - a[..., 1] * b[..., 1], a[..., 0] * b[..., 1] + a[..., 1] * b[..., 0]], -1
        )

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        g0, g1 = grad[..., 0], grad[..., 1]
        ga = vg.stack([g0 * b[..., 0] + g1 * b[..., 1], g1 * b[..., 0] - g0 * b[..., 1]], -1)
        gb = vg.stack([g0 * a[..., 0] + g1 * a[..., 1], g1 * a[..., 0] - g0 * a[..., 1]], -1)
        return ga, gb


@call(X, np.array(0.3), np.array(0.8), means={"domain": (None, None, (0.1, 5.0))})
class NormalDensity(Function):
    @staticmethod
    def forward(ctx, x, mean, sigma):
        z = (x - mean) / sigma
        y = vg.exp(-0.5 * z * z) / (sigma * math.sqrt(2 * math.pi))
        ctx.save_for_backward(x, mean, sigma)
        return y

    @staticmethod
    def backward(ctx, grad):
        x, mean, sigma = ctx.saved_tensors
        z = (x - mean) / sigma
        gy = grad * vg.exp(-0.5 * z * z) / (sigma * math.sqrt(2 * math.pi))
        gx = -gy * z / sigma
        return reduced(gx, x.shape), reduced(-gx, mean.shape), reduced(gy * (z * z - 1) / sigma, sigma.shape)


@call(UNIT, np.array([0.3, 0.5, 0.2, 0.9]), means={"domain": ((0.0, 1.0), (0.0, 1.0))})
class BernoulliEntropyGap(Function):
    """KL divergences of Bernoulli distributions; probabilities are kept away from 0 and 1."""

    EPS = 1e-7

    @staticmethod
    def forward(ctx, p, q):
        e = BernoulliEntropyGap.EPS
        a, b = vg.clip(p, e, 1 - e), vg.clip(q, e, 1 - e)
        ctx.save_for_backward(p, q)
        return a * vg.log(a / b) + (1 - a) * vg.log((1 - a) / (1 - b))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        p, q = ctx.saved_tensors
        e = BernoulliEntropyGap.EPS
        a, b = vg.clip(p, e, 1 - e), vg.clip(q, e, 1 - e)
        gp = grad * (vg.log(a / b) - vg.log((1 - a) / (1 - b))) * ((p >= e) & (p <= 1 - e))
        gq = grad * (b - a) / (b * (1 - b)) * ((q >= e) & (q <= 1 - e))
        return reduced(gp, p.shape), reduced(gq, q.shape)


@call(PLUS, PLUS[::-1] + 0.2, means={"domain": (0.1, 20.0)})
class LogBeta(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return vg.Tensor(scipy.special.betaln(raw(a), raw(b)))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        a, b = (raw(t) for t in ctx.saved_tensors)
        both = scipy.special.digamma(a + b)
        g = raw(grad)
        ga, gb = g * (scipy.special.digamma(a) - both), g * (scipy.special.digamma(b) - both)
        return vg.Tensor(reduced(ga, a.shape)), vg.Tensor(reduced(gb, b.shape))


@call(np.array([0.5, 0.2]), 0.1, steps=5)
class PendulumSteps(Function):
    """Symplectic Euler steps of (angle, speed), differentiated backwards step by step."""

    @staticmethod
    def forward(ctx, state, dt, steps=1):
        if state.shape != (2,) or steps < 0:
            raise ValueError("an angle and a speed")
        q, p = raw(state).astype(float)
        ctx.angles, ctx.dt = [], dt
        for _ in range(steps):
            ctx.angles.append(q)
            p -= dt * np.sin(q)
            q += dt * p
        return vg.Tensor(np.array([q, p]).astype(state.dtype))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        gq, gp = raw(grad).astype(float)
        for q in reversed(ctx.angles):
            gp += ctx.dt * gq
            gq -= ctx.dt * np.cos(q) * gp
        return vg.Tensor(np.array([gq, gp]).astype(grad.dtype)), None, None


@call(SIGNAL, 0.2)
class DiffusionStep(Function):
    """An implicit step with fixed ends: (1 + 2k) u[i] - k (u[i-1] + u[i+1]) = x[i]."""

    @staticmethod
    def forward(ctx, x, k):
        if x.ndim != 1 or k < 0 or x.shape[0] == 0:
            raise ValueError("a line of values")
        n = x.shape[0]
        ctx.bands = np.zeros((3, n))
        ctx.bands[0, 1:], ctx.bands[1], ctx.bands[2, :-1] = -k, 1 + 2 * k, -k
        return vg.Tensor(scipy.linalg.solve_banded((1, 1), ctx.bands, raw(x)).astype(x.dtype))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return vg.Tensor(scipy.linalg.solve_banded((1, 1), ctx.bands, raw(grad)).astype(grad.dtype)), None


@call([M, M * 0.5 + 0.1], np.array([0.3, 0.7]))
class WeightedBlend(Function):
    @staticmethod
    def forward(ctx, w, *parts):
        ctx.save_for_backward(w, *parts)
        return sum((w[k] * part for k, part in enumerate(parts)), 0.0 * parts[0])

    @staticmethod
    def backward(ctx, grad):
        w, *parts = ctx.saved_tensors
        gw = vg.stack([(grad * part).sum() for part in parts])
        return (gw, *(w[k] * grad for k in range(len(parts))))


def blend(parts, w):
    """The weighted sum of a list of tensors."""
    if w.ndim != 1 or len(parts) != w.shape[0] or len({p.shape for p in parts}) != 1:
        raise ValueError("a weight for each of several tensors of one shape")
    return WeightedBlend.apply(w, *parts)


CALLS["blend"] = CALLS.pop("WeightedBlend")


@call(X, PLUS)
class MinMax(Function):
    """The smaller and the larger of two arrays; ties share the gradient."""

    @staticmethod
    def forward(ctx, a, b):
        if a.shape != b.shape:
            raise ValueError("arrays of one shape")
        x, y = raw(a), raw(b)
        ctx.share = np.where(x == y, 0.5, x < y).astype(x.dtype)
        return vg.Tensor(np.minimum(x, y)), vg.Tensor(np.maximum(x, y))

    @staticmethod
    @once_differentiable
    def backward(ctx, low, high):
        s = ctx.share
        return low * s + high * (1 - s), low * (1 - s) + high * s


# -- declarations ------------------------------------------------------------------------------------------------------


@formula_function
def careful_reduced(grad, like):
    return reduced(grad, like.shape)


careful_lerp = call(X, Y, np.array(0.3))(
    define_op(
        "careful_lerp(a, b, t)",
        forward=lambda a, b, t: a + t * (b - a),
        derivatives={
            "a": "careful_reduced(grad * (1 - t), a)",
            "b": "careful_reduced(grad * t, b)",
            "t": "careful_reduced(grad * (b - a), t)",
        },
        doc="a + t (b - a)",
    )
)
careful_sinh_ratio = call(X)(
    define_op(
        "careful_sinh_ratio(x)",
        forward=lambda x: np.arcsinh(x) + x * np.sqrt(x * x + 1),
        derivatives={"x": "grad * 2 * sqrt(x * x + 1)"},
        forward_derivative="auto_element_wise",
        doc="Twice the length of a parabola.",
    )
)
careful_leaky = call(X, slope=0.2)(
    define_op(
        "careful_leaky(x, slope=0.01)",
        forward=lambda x, slope=0.01: np.where(x >= 0, x, slope * x),
        derivatives={"x": "where(x >= 0, grad, slope * grad)"},
        inplace=True,
        doc="x, or a fraction of it if negative.",
    )
)
careful_polar = call(PLUS, X)(
    define_op(
        "careful_polar(r, t) -> (x, y)",
        forward=lambda r, t: (r * np.cos(t), r * np.sin(t)),
        derivatives={
            "r": "careful_reduced(grad_x * cos(t) + grad_y * sin(t), r)",
            "t": "careful_reduced(grad_y * r * cos(t) - grad_x * r * sin(t), t)",
        },
        doc="Points from radius and angle.",
    )
)
careful_softmax_entropy = call(M)(
    define_op(
        "careful_centered(x)",
        forward=lambda x: x - x.mean(axis=-1, keepdims=True),
        derivatives={"x": "grad - grad.mean(axis=-1, keepdims=True)"},
        forward_derivative="auto_linear",
        doc="Rows without their means.",
    )
)


# -- more of them ------------------------------------------------------------------------------------------------------


@call(M, np.array([0.4, -0.9, 1.2]))
class BroadcastMaximum(Function):
    """The larger of two arrays; the first wins ties."""

    @staticmethod
    def forward(ctx, a, b):
        first = a >= b
        ctx.save_for_backward(first)
        ctx.shapes = a.shape, b.shape
        return vg.where(first, a, b)

    @staticmethod
    def backward(ctx, grad):
        (first,) = ctx.saved_tensors
        ga, gb = vg.where(first, grad, 0.0), vg.where(first, 0.0, grad)
        return reduced(ga, ctx.shapes[0]), reduced(gb, ctx.shapes[1])


@call(X)
class Sinc(Function):
    """sin(x) / x, by a series near 0."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        a = raw(x)
        small = np.abs(a) < 1e-2
        safe = np.where(small, 1, a)
        return vg.Tensor(np.where(small, 1 - a**2 / 6 + a**4 / 120, np.sin(safe) / safe).astype(a.dtype))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        a = raw(ctx.saved_tensors[0])
        small = np.abs(a) < 1e-2
        safe = np.where(small, 1, a)
        slope = np.where(small, -a / 3 + a**3 / 30 - a**5 / 840, (np.cos(safe) - np.sin(safe) / safe) / safe)
        return vg.Tensor((raw(grad) * slope).astype(a.dtype))


@call(X, exponent=3)
class IntegerPower(Function):
    @staticmethod
    def forward(ctx, x, exponent=2):
        if type(exponent) is not int or exponent < 0:
            raise ValueError("an integer that is not negative")
        ctx.save_for_backward(x)
        ctx.exponent = exponent
        return x**exponent

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        n = ctx.exponent
        return (grad * n * x ** (n - 1) if n else vg.zeros_like(x)), None


@call(VOLUME, axis=(0, 2), keepdims=True)
class SumOverAxes(Function):
    @staticmethod
    def forward(ctx, x, axis=None, keepdims=False):
        axes = range(x.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
        if any(not -x.ndim <= k < x.ndim for k in axes):
            raise ValueError("no such axis")
        ctx.axes, ctx.shape = tuple(sorted({k % x.ndim for k in axes})), x.shape
        return vg.Tensor(raw(x).sum(axis=ctx.axes, keepdims=keepdims))

    @staticmethod
    def backward(ctx, grad):
        kept = tuple(1 if k in ctx.axes else n for k, n in enumerate(ctx.shape))
        return vg.broadcast_to(grad.reshape(kept), ctx.shape).clone(), None, None


@call(M, axis=0)
class LogSoftmaxAxis(Function):
    @staticmethod
    def forward(ctx, x, axis=-1):
        a = raw(x)
        z = a - a.max(axis=axis, keepdims=True)
        y = z - np.log(np.exp(z).sum(axis=axis, keepdims=True))
        ctx.p, ctx.axis = np.exp(y), axis
        return vg.Tensor(y)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = raw(grad)
        return vg.Tensor(g - ctx.p * g.sum(axis=ctx.axis, keepdims=True)), None


@call(X)
class SortedValues(Function):
    @staticmethod
    def forward(ctx, x):
        if x.ndim != 1:
            raise ValueError("a vector")
        ctx.order = np.argsort(raw(x), kind="stable")
        return vg.Tensor(raw(x)[ctx.order])

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        out = np.empty_like(raw(grad))
        out[ctx.order] = raw(grad)
        return vg.Tensor(out)


@call(N, TALL[:3])
class MatrixProduct(Function):
    @staticmethod
    def forward(ctx, a, b):
        if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0]:
            raise ValueError("two matrices that fit")
        ctx.save_for_backward(a, b)
        return a @ b

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        ga = grad @ b.T if ctx.needs_input_grad[0] else None
        gb = a.T @ grad if ctx.needs_input_grad[1] else None
        return ga, gb


@call(SPD, means={"structure": {"a": "positive definite"}})
class CholeskyFactor(Function):
    @staticmethod
    def forward(ctx, a):
        if a.ndim != 2 or a.shape[0] != a.shape[1]:
            raise ValueError("a square matrix")
        ctx.l = np.linalg.cholesky(raw(a))
        return vg.Tensor(ctx.l)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        l = ctx.l
        p = np.tril(l.T @ np.tril(raw(grad)))
        p[np.diag_indices(len(l))] /= 2
        s = scipy.linalg.solve_triangular(
            l, scipy.linalg.solve_triangular(l, p.T, lower=True, trans=1).T, lower=True, trans=1
        )
        return vg.Tensor((s + s.T) / 2)


@call(SPD, means={"structure": {"a": "symmetric"}})
class TraceOfInverse(Function):
    @staticmethod
    def forward(ctx, a):
        if a.ndim != 2 or a.shape[0] != a.shape[1]:
            raise ValueError("a square matrix")
        ctx.inverse = np.linalg.inv(raw(a))
        return vg.Tensor(np.trace(ctx.inverse))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return vg.Tensor(-raw(grad) * (ctx.inverse @ ctx.inverse).T)


@call(SIGNAL, width=3)
class MovingMaximum(Function):
    @staticmethod
    def forward(ctx, x, width=3):
        if x.ndim != 1 or not 0 < width <= x.shape[0]:
            raise ValueError("a signal and a window within it")
        w = np.lib.stride_tricks.sliding_window_view(raw(x), width)
        ctx.places, ctx.n = w.argmax(axis=1) + np.arange(len(w)), x.shape[0]
        return vg.Tensor(w.max(axis=1))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = raw(grad)
        return vg.Tensor(np.bincount(ctx.places, g, ctx.n).astype(g.dtype)), None


@call(SIGNAL, order=2)
class Differences(Function):
    @staticmethod
    def forward(ctx, x, order=1):
        if order < 0 or x.ndim < 1 or x.shape[-1] <= order:
            raise ValueError("too short")
        ctx.order = order
        return vg.Tensor(np.diff(raw(x), n=order))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = raw(grad)
        for _ in range(ctx.order):
            pad = [(0, 0)] * (g.ndim - 1) + [(1, 1)]
            g = -np.diff(np.pad(g, pad))
        return vg.Tensor(np.ascontiguousarray(g)), None


@call(IMAGE, 1, 2)
class Crop(Function):
    @staticmethod
    def forward(ctx, x, top, left):
        if x.ndim != 2 or not 0 <= top < x.shape[0] or not 0 <= left < x.shape[1]:
            raise ValueError("outside of the image")
        ctx.shape, ctx.corner = x.shape, (top, left)
        return x[top:, left:].clone()

    @staticmethod
    def backward(ctx, grad):
        out = vg.zeros(ctx.shape, dtype=grad.dtype)
        top, left = ctx.corner
        out[top:, left:] = grad
        return out, None, None


@call(N, np.array([3, 1, 0]))
class TakeRows(Function):
    @staticmethod
    def forward(ctx, x, index):
        i = index.numpy()
        if x.ndim != 2 or i.ndim != 1 or (i < 0).any() or (i >= x.shape[0]).any():
            raise IndexError("rows of a matrix")
        ctx.index, ctx.shape = i.copy(), x.shape
        return vg.Tensor(raw(x)[i])

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        out = np.zeros(ctx.shape, raw(grad).dtype)
        np.add.at(out, ctx.index, raw(grad))
        return vg.Tensor(out), None


@call(PLUS)
class Entropy(Function):
    """The entropy of weights that are scaled to sum to 1; zero weights contribute nothing."""

    @staticmethod
    def forward(ctx, w):
        a = raw(w)
        total = a.sum()
        if (a < 0).any() or not total > 0:
            raise ValueError("weights that are not all zero")
        p = a / total
        ctx.logs = np.log(np.where(p > 0, p, 1))
        ctx.h, ctx.total = -(p * ctx.logs).sum(), total
        ctx.zero = p == 0
        return vg.Tensor(ctx.h)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        slope = np.where(ctx.zero, np.inf, -(ctx.logs + ctx.h) / ctx.total)
        return vg.Tensor((raw(grad) * slope).astype(slope.dtype))


@call(X, Y, PLUS, means={"domain": (None, None, (0.05, 20.0))})
class GaussianLoss(Function):
    """The negative log likelihood of x with means and variances, summed."""

    @staticmethod
    def forward(ctx, x, mean, variance):
        if not x.shape == mean.shape == variance.shape:
            raise ValueError("arrays of one shape")
        ctx.save_for_backward(x, mean, variance)
        d = x - mean
        return 0.5 * (vg.log(variance) + d * d / variance).sum()

    @staticmethod
    def backward(ctx, grad):
        x, mean, variance = ctx.saved_tensors
        d = (x - mean) / variance
        return grad * d, -grad * d, grad * 0.5 * (1 / variance - d * d)


@call(np.array([0.3, 1.1, -0.7]))
class SphericalToCartesian(Function):
    """(log radius, polar angle, azimuth)."""

    @staticmethod
    def forward(ctx, s):
        if s.shape != (3,):
            raise ValueError("three coordinates")
        r, t, p = np.exp(raw(s)[0]), raw(s)[1], raw(s)[2]
        x = r * np.array([np.sin(t) * np.cos(p), np.sin(t) * np.sin(p), np.cos(t)])
        by_t = r * np.array([np.cos(t) * np.cos(p), np.cos(t) * np.sin(p), -np.sin(t)])
        by_p = r * np.array([-np.sin(t) * np.sin(p), np.sin(t) * np.cos(p), 0])
        ctx.jacobian = np.stack([x, by_t, by_p], axis=1).astype(raw(s).dtype)
        return vg.Tensor(x.astype(raw(s).dtype))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return vg.Tensor(raw(grad) @ ctx.jacobian)


@call(ATOMS, np.array([0.3, -0.2, 0.5]))
class RotateAround(Function):
    """Points turned about the axis of a vector, by its length."""

    @staticmethod
    def forward(ctx, points, w):
        if points.ndim != 2 or points.shape[1] != 3 or w.shape != (3,):
            raise ValueError("points in space and a vector")
        p, v = raw(points), raw(w)

        def cross(u):
            return np.array([[0, -u[2], u[1]], [u[2], 0, -u[0]], [-u[1], u[0], 0]])

        k = cross(v)
        ctx.r = scipy.linalg.expm(k)
        ctx.slopes = [scipy.linalg.expm_frechet(k, cross(e), compute_expm=False) for e in np.eye(3)]
        ctx.p = p.copy()
        return vg.Tensor((p @ ctx.r.T).astype(p.dtype))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = raw(grad)
        gw = np.array([(g * (ctx.p @ s.T)).sum() for s in ctx.slopes])
        return vg.Tensor((g @ ctx.r).astype(g.dtype)), vg.Tensor(gw.astype(g.dtype))


@call(SIGNAL, 0.3)
class ExponentialSmoother(Function):
    @staticmethod
    def forward(ctx, x, rate):
        if x.ndim != 1 or not 0 <= rate <= 1:
            raise ValueError("a signal, and a rate between 0 and 1")
        a = raw(x)
        y, last = np.empty_like(a), 0.0
        for t, value in enumerate(a):
            last = (1 - rate) * last + rate * value
            y[t] = last
        ctx.rate = rate
        return vg.Tensor(y)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = raw(grad)
        out, carry = np.empty_like(g), 0.0
        for t in range(len(g) - 1, -1, -1):
            carry = (1 - ctx.rate) * carry + g[t]
            out[t] = ctx.rate * carry
        return vg.Tensor(out), None


@call(UNIT, k=1.5)
class PowerLaw(Function):
    """x ** k for positive k; one-sided at 0."""

    @staticmethod
    def forward(ctx, x, k=1.0):
        if k <= 0 or (raw(x) < 0).any():
            raise ValueError("outside of the domain")
        ctx.save_for_backward(x)
        ctx.k = k
        return x**k

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        a = raw(ctx.saved_tensors[0])
        with np.errstate(divide="ignore"):
            slope = ctx.k * a ** (ctx.k - 1)
        return vg.Tensor((raw(grad) * slope).astype(a.dtype)), None
