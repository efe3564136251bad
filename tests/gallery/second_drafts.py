"""More correct operators as people first write them, in other styles: classes, closures, loops, options, in place.

`CALLS` has the call of each and its author's declarations.
"""

import numpy as np
import scipy.integrate
import scipy.interpolate
import scipy.linalg
import scipy.ndimage
import scipy.signal
import scipy.special

import viewgrad as vg
from viewgrad.autograd import Function, define_op, once_differentiable

from .newcomers import ATOMS, IMAGE, PLUS, SIGNAL, SPD, TALL, UNIT, VOLUME, WEIGHTS, M, N, X, Y, registering

CALLS = {}
call = registering(CALLS)


# -- layers ------------------------------------------------------------------------------------------------------------


@call(VOLUME, kernel=2, stride=1)
class MaxPool1d(Function):
    """x: (batch, channels, length)."""

    @staticmethod
    def forward(ctx, x, kernel, stride=None):
        a = x.detach().numpy()
        stride = stride or kernel
        b, c, n = a.shape
        m = (n - kernel) // stride + 1
        out, arg = np.zeros((b, c, m)), np.zeros((b, c, m), dtype=int)
        for i in range(m):
            window = a[:, :, i * stride : i * stride + kernel]
            arg[:, :, i] = window.argmax(axis=2) + i * stride
            out[:, :, i] = window.max(axis=2)
        ctx.arg, ctx.shape = arg, a.shape
        return vg.Tensor(out)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = np.zeros(ctx.shape)
        b, c, m = ctx.arg.shape
        for i in range(b):
            for j in range(c):
                for k in range(m):
                    g[i, j, ctx.arg[i, j, k]] += grad.numpy()[i, j, k]
        return vg.Tensor(g), None, None


@call(TALL, np.array([[0.3, -0.7, 0.2], [0.5, 0.1, -0.4]]), np.array([0.1, -0.2, 0.3]), activation="tanh")
class DenseLayer(Function):
    @staticmethod
    def forward(ctx, x, w, b, activation="relu"):
        z = x.detach().numpy() @ w.detach().numpy() + b.detach().numpy()
        if activation == "relu":
            out, ctx.d = np.maximum(z, 0), (z > 0).astype(float)
        elif activation == "tanh":
            out = np.tanh(z)
            ctx.d = 1 - out**2
        elif activation == "linear":
            out, ctx.d = z, np.ones_like(z)
        else:
            raise ValueError(f"unknown activation {activation!r}")
        ctx.save_for_backward(x, w)
        return vg.Tensor(out)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x, w = (t.detach().numpy() for t in ctx.saved_tensors)
        g = grad.numpy() * ctx.d
        return vg.Tensor(g @ w.T), vg.Tensor(x.T @ g), vg.Tensor(g.sum(axis=0)), None


@call(N, np.array([1.2, 0.7, 0.9]), np.array([0.0, 0.1, -0.3]))
class BatchNormTraining(Function):
    @staticmethod
    def forward(ctx, x, gamma, beta, eps=1e-5):
        a = x.detach().numpy()
        mu, var = a.mean(0), a.var(0)
        ctx.std = np.sqrt(var + eps)
        ctx.xhat = (a - mu) / ctx.std
        ctx.gamma = gamma.detach().numpy().copy()
        return vg.Tensor(ctx.gamma * ctx.xhat + beta.detach().numpy())

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = grad.numpy()
        n = len(g)
        dgamma, dbeta = (g * ctx.xhat).sum(0), g.sum(0)
        dx = ctx.gamma / ctx.std / n * (n * g - dbeta - ctx.xhat * dgamma)
        return vg.Tensor(dx), vg.Tensor(dgamma), vg.Tensor(dbeta), None


@call(M, temperature=2.0, hard=False)
class TemperedSoftmax(Function):
    @staticmethod
    def forward(ctx, x, temperature=1.0, axis=-1):
        a = x.detach().numpy() / temperature
        e = np.exp(a - a.max(axis=axis, keepdims=True))
        ctx.p = e / e.sum(axis=axis, keepdims=True)
        ctx.t, ctx.axis = temperature, axis
        return vg.Tensor(ctx.p)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g, p = grad.numpy(), ctx.p
        return vg.Tensor(p * (g - (g * p).sum(axis=ctx.axis, keepdims=True)) / ctx.t), None, None


CALLS["TemperedSoftmax"] = ((M,), {"temperature": 2.0}, {})


def make_positional_encoding(width):
    position = np.arange(8)[:, None] / 100.0 ** (np.arange(0, width, 2) / width)
    table = np.zeros((8, width))
    table[:, 0::2], table[:, 1::2] = np.sin(position), np.cos(position)

    def add_position(x, scale=1.0):
        return scale * x + table[: x.shape[0], : x.shape[1]]

    return add_position


add_position = call(np.resize(np.sin(np.arange(9.0)), (3, 4)), scale=0.5)(make_positional_encoding(4))


@call(IMAGE, np.array([0.2, 0.6, 0.2]))
def separable_blur(image, taps):
    rows = sum(taps[k] * image[k : image.shape[0] - 2 + k] for k in range(3))
    return sum(taps[k] * rows[:, k : image.shape[1] - 2 + k] for k in range(3))


@call(X, np.array([0.5, -0.2, 0.1, 0.9, 0.4]), keep=0.7)
def residual_mix(x, update, keep=0.9):
    out = vg.zeros_like(x)
    out += keep * x
    out += (1 - keep) * vg.tanh(update)
    return out


@call(M)
class GlobalResponse(Function):
    @staticmethod
    def forward(ctx, x):
        a = x.detach().numpy()
        n = np.sqrt((a**2).sum(axis=0, keepdims=True) + 1e-8)
        ctx.a, ctx.n = a.copy(), n
        ctx.mean = n.mean()
        return vg.Tensor(a * n / ctx.mean)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g, a, n, m = grad.numpy(), ctx.a, ctx.n, ctx.mean
        dn = (g * a).sum(axis=0, keepdims=True) / m - (g * a * n).sum() / m**2 / n.size
        return vg.Tensor(g * n / m + dn * a / n)


@call([X[:3], Y[:2]], np.array([0.5, 0.5, 1.0, 2.0, 0.3]))
class ConcatWeighted(Function):
    @staticmethod
    def forward(ctx, weights, *parts):
        arrays = [p.detach().numpy() for p in parts]
        ctx.sizes = [len(p) for p in arrays]
        ctx.whole, ctx.w = np.concatenate(arrays), weights.detach().numpy().copy()
        return vg.Tensor((ctx.whole * ctx.w).sum())

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = grad.numpy() * ctx.w
        ends = np.cumsum(ctx.sizes)[:-1]
        return vg.Tensor(grad.numpy() * ctx.whole), *(vg.Tensor(part) for part in np.split(g, ends))


def concat_weighted(parts, weights):
    return ConcatWeighted.apply(weights, *parts)


CALLS["concat_weighted"] = CALLS.pop("ConcatWeighted")


# -- losses ------------------------------------------------------------------------------------------------------------


@call(X, Y, weight=None, reduction="sum")
class WeightedAbsolute(Function):
    @staticmethod
    def forward(ctx, a, b, weight=None, reduction="mean"):
        d = a.detach().numpy() - b.detach().numpy()
        w = np.ones_like(d) if weight is None else np.broadcast_to(np.asarray(weight, float), d.shape)
        ctx.s = np.sign(d) * w
        if reduction == "mean":
            ctx.s = ctx.s / d.size
            return vg.Tensor((np.abs(d) * w).mean())
        return vg.Tensor((np.abs(d) * w).sum())

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = grad.numpy() * ctx.s
        return vg.Tensor(g), vg.Tensor(-g), None, None


@call(np.array([0.2, 0.6, 0.9]), np.array([0.0, 1.0, 1.0]), smooth=1.0, means={"domain": (0.0, 1.0)})
def dice(p, t, smooth=1.0):
    return 1 - (2 * (p * t).sum() + smooth) / (p.sum() + t.sum() + smooth)


@call(UNIT, np.array([0, 1, 1, 0]), alpha=0.25)
class AlphaBalanced(Function):
    @staticmethod
    def forward(ctx, p, labels, alpha=0.5):
        a, y = p.detach().numpy(), labels.numpy()
        safe = np.clip(a, 1e-7, 1 - 1e-7)
        inside = (a > 1e-7) & (a < 1 - 1e-7)
        w = np.where(y == 1, alpha, 1 - alpha)
        pt = np.where(y == 1, safe, 1 - safe)
        ctx.g = np.where(y == 1, -1, 1) * w / pt * inside / len(a)
        return vg.Tensor((-w * np.log(pt)).mean())

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * vg.Tensor(ctx.g), None, None


@call(N, np.array([[0, 1], [2, 3], [1, 3]]))
class PairRanking(Function):
    """Scores of pairs (better, worse) of rows, by the logistic loss of the difference of their sums."""

    @staticmethod
    def forward(ctx, x, pairs):
        s = x.detach().numpy().sum(axis=1)
        p = pairs.numpy()
        d = s[p[:, 0]] - s[p[:, 1]]
        ctx.p, ctx.r, ctx.shape = p.copy(), -scipy.special.expit(-d), x.shape
        return vg.Tensor(np.logaddexp(0, -d).sum())

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = np.zeros(ctx.shape[0])
        np.add.at(g, ctx.p[:, 0], ctx.r)
        np.subtract.at(g, ctx.p[:, 1], ctx.r)
        return grad * vg.Tensor(np.repeat(g[:, None], ctx.shape[1], axis=1)), None


@call(X, np.array([0.4, -1.1, 2.0, 1.0, -0.3]), q=0.8)
def pinball(pred, obs, q=0.5):
    d = obs - pred
    return vg.maximum(q * d, (q - 1) * d).mean()


# -- physics -----------------------------------------------------------------------------------------------------------


@call(np.array([0.4, 0.1]), np.array([1.0, 2.0]), t_end=0.5, n=20)
class OdeByMidpoint(Function):
    """x'' = -w0 x - w1 x^3 from (x, v), with the adjoint of each midpoint step."""

    @staticmethod
    def forward(ctx, state, w, t_end=1.0, n=50):
        a, b = w.detach().numpy()
        y = state.detach().numpy().copy()
        h = t_end / n
        path = []
        for _ in range(n):
            path.append(y)
            mid = y + h / 2 * np.array([y[1], -a * y[0] - b * y[0] ** 3])
            y = y + h * np.array([mid[1], -a * mid[0] - b * mid[0] ** 3])
        ctx.path, ctx.h, ctx.a, ctx.b = path, h, a, b
        return vg.Tensor(y)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        h, a, b = ctx.h, ctx.a, ctx.b
        g = grad.numpy().copy()
        ga = gb = 0.0
        for y in reversed(ctx.path):
            mid = y + h / 2 * np.array([y[1], -a * y[0] - b * y[0] ** 3])
            gm = h * np.array([g[1] * (-a - 3 * b * mid[0] ** 2), g[0]])
            ga += -h * g[1] * mid[0]
            gb += -h * g[1] * mid[0] ** 3
            ga += -h / 2 * gm[1] * y[0]
            gb += -h / 2 * gm[1] * y[0] ** 3
            g = g + gm + h / 2 * np.array([gm[1] * (-a - 3 * b * y[0] ** 2), gm[0]])
        return vg.Tensor(g), vg.Tensor(np.array([ga, gb])), None, None


@call(ATOMS, cutoff=2.0)
class ShortRange(Function):
    """The energy exp(-r) - exp(-cutoff) of pairs nearer than the cutoff."""

    @staticmethod
    def forward(ctx, pos, cutoff=1.5):
        p = pos.detach().numpy()
        e, f = 0.0, np.zeros(p.shape)
        for i in range(len(p)):
            for j in range(i + 1, len(p)):
                d = p[i] - p[j]
                r = np.linalg.norm(d)
                if r >= cutoff or r == 0:
                    continue
                e += np.exp(-r) - np.exp(-cutoff)
                f[i] -= np.exp(-r) * d / r
                f[j] += np.exp(-r) * d / r
        ctx.f = f
        return vg.Tensor(e)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * vg.Tensor(ctx.f), None


@call(PLUS, 1.5)
class PlanckRatio(Function):
    @staticmethod
    def forward(ctx, nu, temp):
        x = nu.detach().numpy() / temp
        ctx.e = np.expm1(x)
        ctx.x, ctx.temp = x, temp
        return vg.Tensor(x**3 / ctx.e)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x, e = ctx.x, ctx.e
        return grad * ((3 * x**2 * e - x**3 * (e + 1)) / e**2 / ctx.temp), None


@call(np.array([3.0, 4.0, 5.5]), np.array([1.0, 0.5, 2.0]))
def reduced_mass_frequency(k, m):
    mu = m[:-1] * m[1:] / (m[:-1] + m[1:])
    return vg.sqrt(k[: len(mu)] / mu).sum()


@call(SIGNAL[:6], 0.1, bc="dirichlet")
class Poisson1d(Function):
    @staticmethod
    def forward(ctx, f, h, bc="dirichlet"):
        n = len(f)
        a = 2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)
        if bc == "mixed":
            a[-1, -1] = 1
        elif bc != "dirichlet":
            raise ValueError(bc)
        ctx.inv = np.linalg.inv(a) * h**2
        return vg.Tensor(ctx.inv @ f.detach().numpy())

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return vg.Tensor(ctx.inv.T @ grad.numpy()), None, None


# -- signals -----------------------------------------------------------------------------------------------------------


@call(SIGNAL, np.array([0.3, 0.3, 0.2]), mode="same")
class ConvolveMode(Function):
    @staticmethod
    def forward(ctx, x, k, mode="full"):
        a, b = x.detach().numpy(), k.detach().numpy()
        if len(b) > len(a):
            raise ValueError("the kernel is longer than the signal")
        ctx.a, ctx.b, ctx.mode = a.copy(), b.copy(), mode
        return vg.Tensor(np.convolve(a, b, mode))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        a, b, g = ctx.a, ctx.b, grad.numpy()
        full = np.zeros(len(a) + len(b) - 1)
        if ctx.mode == "full":
            full[:] = g
        elif ctx.mode == "same":
            s = (len(b) - 1) // 2
            full[s : s + len(a)] = g
        else:
            full[len(b) - 1 : len(a)] = g
        return vg.Tensor(np.correlate(full, b, "valid")), vg.Tensor(np.correlate(full, a, "valid")), None


@call(SIGNAL, sigma=1.2)
class GaussianSmooth(Function):
    @staticmethod
    def forward(ctx, x, sigma=1.0):
        a = x.detach().numpy()
        n = np.arange(len(a))
        w = np.exp(-0.5 * ((n[:, None] - n) / sigma) ** 2)
        ctx.w = w / w.sum(axis=1, keepdims=True)
        return vg.Tensor(ctx.w @ a)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return vg.Tensor(ctx.w.T @ grad.numpy()), None


@call(SIGNAL)
class Envelope(Function):
    @staticmethod
    def forward(ctx, x):
        a = x.detach().numpy()
        z = scipy.signal.hilbert(a)
        ctx.a, ctx.h = a.copy(), z.imag
        ctx.env = np.abs(z)
        return vg.Tensor(ctx.env)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        env = np.where(ctx.env == 0, 1, ctx.env)
        g = grad.numpy()
        # The Hilbert transform is antisymmetric for odd and even lengths alike.
        back = -scipy.signal.hilbert(g * ctx.h / env).imag
        return vg.Tensor(g * ctx.a / env + back)


@call(IMAGE, order=1)
class ShiftImage(Function):
    """Shifted by half a pixel along both axes, zero outside."""

    @staticmethod
    def forward(ctx, x, order=1):
        if order not in (0, 1):
            raise ValueError("order is 0 or 1")
        ctx.shape, ctx.order = x.shape, order
        a = np.pad(x.detach().numpy(), 1)
        if order == 0:
            return vg.Tensor(a[:-1, :-1].copy())
        return vg.Tensor((a[1:, 1:] + a[:-1, 1:] + a[1:, :-1] + a[:-1, :-1]) / 4)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = grad.numpy()
        out = np.zeros((ctx.shape[0] + 2, ctx.shape[1] + 2))
        if ctx.order == 0:
            out[:-1, :-1] = g
        else:
            for i in (0, 1):
                for j in (0, 1):
                    out[i : i + g.shape[0], j : j + g.shape[1]] += g / 4
        return vg.Tensor(out[1:-1, 1:-1]), None


@call(SIGNAL, 3)
class Decimate(Function):
    @staticmethod
    def forward(ctx, x, factor):
        a = x.detach().numpy()
        ctx.n, ctx.factor = len(a), factor
        m = len(a) // factor
        return vg.Tensor(a[: m * factor].reshape(m, factor).mean(axis=1))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        out = np.zeros(ctx.n)
        m = len(grad)
        out[: m * ctx.factor] = np.repeat(grad.numpy(), ctx.factor) / ctx.factor
        return vg.Tensor(out), None


def normalize_peak_(x, eps=1e-12):
    """In place."""
    x /= vg.abs(x).max() + eps
    return x


@call(SIGNAL, means={"inplace": normalize_peak_})
def normalize_peak(x, eps=1e-12):
    return x / (vg.abs(x).max() + eps)


@call(SIGNAL.astype(np.float32), gain=1.5)
class SoftLimiter(Function):
    @staticmethod
    def forward(ctx, x, gain=1.0):
        a = x.detach().numpy()
        t = np.tanh(gain * a).astype(a.dtype)
        ctx.t, ctx.gain = t, gain
        return vg.Tensor(t)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = grad.numpy() * (1 - ctx.t**2) * ctx.gain
        return vg.Tensor(g.astype(ctx.t.dtype)), None


# -- statistics --------------------------------------------------------------------------------------------------------


@call(X, ddof=1)
class SampleVariance(Function):
    @staticmethod
    def forward(ctx, x, ddof=0):
        a = x.detach().numpy()
        if a.size <= ddof:
            raise ValueError("too few samples")
        ctx.d, ctx.n = a - a.mean(), a.size - ddof
        return vg.Tensor((ctx.d**2).sum() / ctx.n)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * vg.Tensor(2 * ctx.d / ctx.n), None


@call(TALL, np.array([0.5, 0.2]), SPD[:2, :2], means={"structure": {"cov": "symmetric"}})
class Mahalanobis(Function):
    @staticmethod
    def forward(ctx, x, mean, cov):
        d = x.detach().numpy() - mean.detach().numpy()
        inv = np.linalg.inv(cov.detach().numpy())
        ctx.z = d @ inv.T
        return vg.Tensor((d * ctx.z).sum(axis=1))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = grad.numpy()[:, None]
        gx = 2 * g * ctx.z
        return vg.Tensor(gx), vg.Tensor(-gx.sum(axis=0)), vg.Tensor(-(g * ctx.z).T @ ctx.z)


@call(X, bins=4, low=-2.0, high=3.0)
class LinearHistogram(Function):
    """Each sample is shared by the two nearest bin centers."""

    @staticmethod
    def forward(ctx, x, bins, low, high):
        if bins < 2 or not low < high:
            raise ValueError("bins")
        a = x.detach().numpy().ravel()
        width = (high - low) / (bins - 1)
        u = np.clip((a - low) / width, 0, bins - 1)
        i = np.minimum(u.astype(int), bins - 2)
        out = np.bincount(i, 1 - (u - i), bins) + np.bincount(i + 1, u - i, bins)
        ctx.i, ctx.inside, ctx.width, ctx.shape = i, (a > low) & (a < high), width, x.shape
        return vg.Tensor(out)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = grad.numpy()
        out = (g[ctx.i + 1] - g[ctx.i]) / ctx.width * ctx.inside
        return vg.Tensor(out.reshape(ctx.shape)), None, None, None


@call(SIGNAL, lag=2)
def autocovariance(x, lag=1):
    d = x - x.mean()
    return (d[lag:] * d[: len(d) - lag]).sum() / len(d)


@call(PLUS, 1.4)
class BoxCox(Function):
    @staticmethod
    def forward(ctx, x, lam):
        a = x.detach().numpy()
        if (a <= 0).any():
            raise ValueError("positive data")
        ctx.g = a ** (lam - 1)
        return vg.Tensor(np.log(a) if lam == 0 else (a**lam - 1) / lam)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * vg.Tensor(ctx.g), None


@call(UNIT)
def logit(p, eps=1e-6):
    p = vg.clip(p, eps, 1 - eps)
    return vg.log(p) - vg.log1p(-p)


@call(N, axis=0)
class GeometricMeanOfSquares(Function):
    @staticmethod
    def forward(ctx, x, axis=-1):
        a = x.detach().numpy()
        s = np.log(a**2 + 1e-6).mean(axis=axis, keepdims=True)
        ctx.a, ctx.y, ctx.axis = a.copy(), np.exp(s), axis
        return vg.Tensor(np.exp(s).squeeze(axis))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = np.expand_dims(grad.numpy(), ctx.axis)
        n = ctx.a.shape[ctx.axis]
        return vg.Tensor(g * ctx.y * 2 * ctx.a / (ctx.a**2 + 1e-6) / n), None


# -- numerics and interpolation ----------------------------------------------------------------------------------------


@call(np.array([0.0, 1.0, 2.5, 3.0]), np.array([0.5, 1.2, -0.3, 0.8]), np.array([0.4, 1.7, 2.8]))
class PiecewiseLinear(Function):
    @staticmethod
    def forward(ctx, knots, values, x):
        k, v, q = (t.detach().numpy() for t in (knots, values, x))
        if np.any(np.diff(k) <= 0):
            raise ValueError("knots must increase")
        i = np.clip(np.searchsorted(k, q) - 1, 0, len(k) - 2)
        h = k[i + 1] - k[i]
        w = (q - k[i]) / h
        ctx.i, ctx.h, ctx.w, ctx.dv, ctx.n = i, h, w, v[i + 1] - v[i], len(k)
        return vg.Tensor(v[i] * (1 - w) + v[i + 1] * w)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g, i, w = grad.numpy(), ctx.i, ctx.w
        s = g * ctx.dv / ctx.h
        gk, gv = np.zeros(ctx.n), np.zeros(ctx.n)
        np.add.at(gv, i, g * (1 - w))
        np.add.at(gv, i + 1, g * w)
        np.add.at(gk, i, -s * (1 - w))
        np.add.at(gk, i + 1, -s * w)
        return vg.Tensor(gk), vg.Tensor(gv), vg.Tensor(s)


@call(PLUS, 0.2)
class SimpsonIntegral(Function):
    @staticmethod
    def forward(ctx, y, dx):
        a = y.detach().numpy()
        if len(a) % 2 == 0 or len(a) < 3:
            raise ValueError("an odd number of samples")
        w = np.ones(len(a))
        w[1:-1:2], w[2:-1:2] = 4, 2
        ctx.w = w * dx / 3
        return vg.Tensor(ctx.w @ a)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * vg.Tensor(ctx.w), None


@call(PLUS[:3], tol=1e-12)
class LambertW(Function):
    @staticmethod
    def forward(ctx, x, tol=1e-10):
        a = x.detach().numpy()
        if np.any(a < 0):
            raise ValueError("the branch of positive numbers")
        w = np.log1p(a)
        for _ in range(50):
            e = np.exp(w)
            step = (w * e - a) / (e * (w + 1))
            w = w - step
            if np.all(np.abs(step) < tol):
                break
        ctx.g = 1 / (np.exp(w) * (1 + w))
        return vg.Tensor(w)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * vg.Tensor(ctx.g), None


@call(SPD)
class LargestEigenvalueOf(Function):
    @staticmethod
    def forward(ctx, a):
        m = a.detach().numpy()
        w, v = np.linalg.eigh((m + m.T) / 2)
        ctx.v = v[:, -1]
        return vg.Tensor(w[-1])

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * vg.Tensor(np.outer(ctx.v, ctx.v))


@call(WEIGHTS, X[:3], steps=3)
def power_iteration(a, v, steps=5):
    for _ in range(steps):
        v = a @ v
        v = v / vg.sqrt((v * v).sum())
    return v @ a @ v


@call(X[:4].reshape(2, 2))
class ExpmSmall(Function):
    @staticmethod
    def forward(ctx, a):
        ctx.a = a.detach().numpy().copy()
        return vg.Tensor(scipy.linalg.expm(ctx.a))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        _, d = scipy.linalg.expm_frechet(ctx.a.T, grad.numpy())
        return vg.Tensor(d)


@call(X, index=2)
class SetItem(Function):
    @staticmethod
    def forward(ctx, x, index, value=0.0):
        out = x.detach().numpy().copy()
        out[index] = value
        ctx.index = index
        return vg.Tensor(out)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = grad.numpy().copy()
        g[ctx.index] = 0
        return vg.Tensor(g), None, None


@call(N, np.array([2, 0]))
class SelectColumns(Function):
    @staticmethod
    def forward(ctx, x, columns):
        ctx.columns, ctx.shape = columns.numpy().copy(), x.shape
        return vg.Tensor(x.detach().numpy()[:, ctx.columns])

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        out = np.zeros(ctx.shape)
        np.add.at(out.T, ctx.columns, grad.numpy().T)
        return vg.Tensor(out), None


@call(X, descending=True)
class SortWithOrder(Function):
    """The sorted elements, and their places."""

    @staticmethod
    def forward(ctx, x, descending=False):
        a = x.detach().numpy()
        ctx.order = np.argsort(-a if descending else a, kind="stable")
        order = vg.Tensor(ctx.order)
        ctx.mark_non_differentiable(order)
        return vg.Tensor(a[ctx.order]), order

    @staticmethod
    @once_differentiable
    def backward(ctx, grad, _):
        out = np.zeros(len(ctx.order))
        out[ctx.order] = grad.numpy()
        return vg.Tensor(out), None


@call(M, mask=None)
class FillUpper(Function):
    @staticmethod
    def forward(ctx, x, value=-1.0, mask=None):
        a = x.detach().numpy()
        ctx.keep = np.tril(np.ones(a.shape, bool)) if mask is None else ~np.asarray(mask, bool)
        return vg.Tensor(np.where(ctx.keep, a, value))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * ctx.keep, None, None


# -- geometry, finance -------------------------------------------------------------------------------------------------


@call(np.array([0.3, 0.8]), np.array([0.5, 1.1]))
class GreatCircle(Function):
    """Distances between points (latitude, longitude) on the unit sphere."""

    @staticmethod
    def forward(ctx, p, q):
        (a, b), (c, d) = p.detach().numpy(), q.detach().numpy()
        cosine = np.sin(a) * np.sin(c) + np.cos(a) * np.cos(c) * np.cos(b - d)
        sine = np.sqrt(max(1 - cosine**2, 1e-15))
        da = np.cos(a) * np.sin(c) - np.sin(a) * np.cos(c) * np.cos(b - d)
        dc = np.sin(a) * np.cos(c) - np.cos(a) * np.sin(c) * np.cos(b - d)
        db = -np.cos(a) * np.cos(c) * np.sin(b - d)
        ctx.gp, ctx.gq = -np.array([da, db]) / sine, -np.array([dc, -db]) / sine
        return vg.Tensor(np.arccos(np.clip(cosine, -1, 1)))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * vg.Tensor(ctx.gp), grad * vg.Tensor(ctx.gq)


@call(np.array([1.0, 0.5, -0.3]), np.array([0.2, 0.9, 0.4]))
def angle_between(u, v):
    c = (u @ v) / vg.sqrt((u @ u) * (v @ v))
    return vg.arccos(vg.clip(c, -1.0, 1.0))


@call(np.array([100.0, 102.0, 99.0, 105.0, 107.0]), annualize=True)
def realized_volatility(prices, annualize=False):
    r = vg.diff(vg.log(prices))
    s = vg.sqrt(((r - r.mean()) ** 2).sum() / (len(r) - 1))
    return s * np.sqrt(252) if annualize else s


@call(np.array([0.01, 0.02, 0.015]), 100.0, compounding="continuous")
class GrowthPath(Function):
    @staticmethod
    def forward(ctx, rates, start, compounding="annual"):
        r = rates.detach().numpy()
        if compounding == "annual":
            f, ctx.d = 1 + r, 1 / (1 + r)
        elif compounding == "continuous":
            f, ctx.d = np.exp(r), np.ones_like(r)
        else:
            raise ValueError(compounding)
        ctx.path = start * np.cumprod(f)
        return vg.Tensor(ctx.path)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = np.cumsum((grad.numpy() * ctx.path)[::-1])[::-1]
        return vg.Tensor(g * ctx.d), None, None


@call(np.array([[0.0, 0.0], [1.0, 0.2], [1.4, 1.1], [0.3, 1.6]]), closed=True)
def curve_length(points, closed=False):
    d = points[1:] - points[:-1]
    total = vg.sqrt((d * d).sum(axis=1)).sum()
    if closed:
        e = points[0] - points[-1]
        total = total + vg.sqrt((e * e).sum())
    return total


soft_sign_power = call(X, p=2.0)(
    define_op(
        "draft_soft_sign_power(x, p=1.0)",
        forward=lambda x, p=1.0: x / (1 + np.abs(x) ** p) ** (1 / p),
        derivatives={"x": "grad * (1 + abs(x) ** p) ** (-1 / p - 1)"},
        doc="A sigmoid with adjustable shoulders.",
    )
)
wrap_angle = call(X * 3)(
    define_op(
        "draft_wrap_angle(x)",
        forward=lambda x: (x + np.pi) % (2 * np.pi) - np.pi,
        derivatives={"x": "grad"},
        doc="Angles between -pi and pi.",
    )
)
rms_of = call(M)(
    define_op(
        "draft_rms(x, eps=1e-8)",
        forward=lambda x, eps=1e-8: x / np.sqrt((x**2).mean(-1, keepdims=True) + eps),
        derivatives={
            "x": "(grad - result * (grad * result).mean(axis=-1, keepdims=True))"
            " / sqrt((x**2).mean(axis=-1, keepdims=True) + eps)"
        },
        doc="Rows divided by their root mean square.",
    )
)
atan_ratio = call(X, PLUS)(
    define_op(
        "draft_atan_ratio(y, x)",
        forward=lambda y, x: np.arctan2(y, x),
        derivatives={"y": "grad * x / (x**2 + y**2)", "x": "-grad * y / (x**2 + y**2)"},
        inplace=True,
        doc="The angle of points.",
    )
)
