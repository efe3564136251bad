"""Correct operators as people first write them, around SciPy, complex numbers, solvers, masks and objects.

`CALLS` has the call of each and its author's declarations.
"""

import numpy as np
import scipy.fft
import scipy.integrate
import scipy.interpolate
import scipy.linalg
import scipy.ndimage
import scipy.optimize
import scipy.signal
import scipy.spatial
import scipy.special
import scipy.stats

import viewgrad as vg
from viewgrad.autograd import Function, define_op, once_differentiable

from .newcomers import IMAGE, PLUS, SIGNAL, SPD, TALL, UNIT, WEIGHTS, M, N, X, Y, registering

CALLS = {}
call = registering(CALLS)
Z = np.array([0.8 + 0.3j, -1.1 + 0.6j, 0.2 - 0.9j])


# -- around SciPy ------------------------------------------------------------------------------------------------------


@call(SIGNAL, 1.3)
class GaussianFilter1d(Function):
    @staticmethod
    def forward(ctx, x, sigma):
        ctx.sigma = sigma
        return vg.Tensor(scipy.ndimage.gaussian_filter1d(x.detach().numpy(), sigma, mode="constant"))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return vg.Tensor(scipy.ndimage.gaussian_filter1d(grad.numpy(), ctx.sigma, mode="constant")), None


@call(SIGNAL, np.array([0.2, 0.3]), np.array([1.0, -0.4]))
class IirFilter(Function):
    """Differentiable with respect to the signal alone."""

    @staticmethod
    def forward(ctx, x, b, a):
        ctx.b, ctx.a = b.numpy().copy(), a.numpy().copy()
        return vg.Tensor(scipy.signal.lfilter(ctx.b, ctx.a, x.detach().numpy()))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = grad.numpy()
        return vg.Tensor(scipy.signal.lfilter(ctx.b, ctx.a, g[::-1])[::-1].copy()), None, None


CALLS["IirFilter"] = ((vg.Tensor(SIGNAL, requires_grad=True), np.array([0.2, 0.3]), np.array([1.0, -0.4])), {}, {})


@call(TALL, TALL[:3] * 0.6 + 0.2)
class DistanceMatrix(Function):
    @staticmethod
    def forward(ctx, a, b):
        p, q = a.detach().numpy(), b.detach().numpy()
        d = scipy.spatial.distance.cdist(p, q)
        ctx.diff = p[:, None] - q[None]
        ctx.d = d
        return vg.Tensor(d)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        w = grad.numpy() / np.where(ctx.d > 0, ctx.d, 1)
        g = w[..., None] * ctx.diff
        return vg.Tensor(g.sum(axis=1)), vg.Tensor(-g.sum(axis=0))


@call(np.array([0.3, 1.1, 2.4]))
class SineIntegralOfSquare(Function):
    """The integral of sin(t^2) from 0 to each x."""

    @staticmethod
    def forward(ctx, x):
        a = x.detach().numpy()
        ctx.a = a.copy()
        value = [scipy.integrate.quad(lambda t: np.sin(t * t), 0, u)[0] if abs(u) < 20 else np.nan for u in a.ravel()]
        if np.isnan(value).any():
            raise ValueError("too far")
        return vg.Tensor(np.reshape(value, a.shape))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * vg.Tensor(np.sin(ctx.a**2))


@call(np.array([0.6, 1.4, 2.2]), 0.4)
class KeplerEquation(Function):
    """Solves E - e sin(E) = m by brentq."""

    @staticmethod
    def forward(ctx, m, e):
        if not 0 <= e < 1:
            raise ValueError("an ellipse")
        a = m.detach().numpy()
        E = np.array([scipy.optimize.brentq(lambda u, k=k: u - e * np.sin(u) - k, k - 1, k + 1) for k in a.ravel()])
        E = E.reshape(a.shape)
        ctx.g = 1 / (1 - e * np.cos(E))
        return vg.Tensor(E)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * vg.Tensor(ctx.g), None


@call(np.array([0.5, 1.2, -0.3, 0.8]), np.array([0.4, 1.7, 2.9]))
class NaturalSpline(Function):
    """The natural cubic spline through (0, y0), (1, y1), ... at points."""

    @staticmethod
    def forward(ctx, y, x):
        v, q = y.detach().numpy(), x.detach().numpy()
        if v.ndim != 1 or len(v) < 3:
            raise ValueError("three values at least")
        k = np.arange(len(v))
        basis = scipy.interpolate.CubicSpline(k, np.eye(len(v)), bc_type="natural")
        ctx.b, ctx.s = basis(q), basis(q, 1) @ v
        return vg.Tensor(ctx.b @ v)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = grad.numpy()
        return vg.Tensor(g @ ctx.b), vg.Tensor(g * ctx.s)


@call(PLUS, 2.0)
class RegularizedGamma(Function):
    @staticmethod
    def forward(ctx, x, a):
        t = x.detach().numpy()
        if np.any(t < 0) or a <= 0:
            raise ValueError("outside of the domain")
        ctx.slope = np.exp((a - 1) * np.log(np.where(t > 0, t, 1)) - t - scipy.special.gammaln(a))
        ctx.slope = np.where(t > 0, ctx.slope, 1.0 if a == 1 else 0.0 if a > 1 else np.inf)
        return vg.Tensor(scipy.special.gammainc(a, t))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * vg.Tensor(ctx.slope), None


@call(X, 0.2, df=4.0)
class StudentCdf(Function):
    @staticmethod
    def forward(ctx, x, loc=0.0, df=3.0):
        z = x.detach().numpy() - loc
        ctx.pdf = scipy.stats.t.pdf(z, df)
        return vg.Tensor(scipy.stats.t.cdf(z, df))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * vg.Tensor(ctx.pdf), None, None


@call(SPD)
class SqrtOfMatrix(Function):
    @staticmethod
    def forward(ctx, a):
        m = a.detach().numpy()
        if m.ndim != 2 or m.shape[0] != m.shape[1]:
            raise ValueError("a square matrix")
        root = scipy.linalg.sqrtm(m)
        if np.iscomplexobj(root) or not np.isfinite(root).all():
            raise ValueError("no real root")
        ctx.root = root
        return vg.Tensor(root)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        r = ctx.root.T
        return vg.Tensor(scipy.linalg.solve_sylvester(r, r, grad.numpy()))


@call(M, axis=1, n=5)
class PaddedTransform(Function):
    """The sine transform along an axis, of signals padded with zeros to n."""

    @staticmethod
    def forward(ctx, x, axis=-1, n=None):
        a = x.detach().numpy()
        ctx.axis, ctx.length = axis, a.shape[axis]
        return vg.Tensor(scipy.fft.dst(a, type=1, n=n, axis=axis))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = scipy.fft.dst(grad.numpy(), type=1, axis=ctx.axis)
        k = min(ctx.length, g.shape[ctx.axis])
        g = np.take(g, np.arange(k), axis=ctx.axis)
        pad = [(0, 0)] * g.ndim
        pad[ctx.axis] = (0, ctx.length - k)
        return vg.Tensor(np.pad(g, pad)), None, None


@call(IMAGE, size=3)
class LocalMaximum(Function):
    """The maximum of the window that begins at each pixel."""

    @staticmethod
    def forward(ctx, x, size=3):
        a = x.detach().numpy()
        w = np.lib.stride_tricks.sliding_window_view(a, (size, size))
        flat = w.reshape(*w.shape[:2], -1)
        best = flat.argmax(axis=-1)
        i, j = np.indices(best.shape)
        ctx.where, ctx.shape = (i + best // size, j + best % size), a.shape
        return vg.Tensor(flat.max(axis=-1))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        out = np.zeros(ctx.shape)
        np.add.at(out, ctx.where, grad.numpy())
        return vg.Tensor(out), None


# -- complex numbers ---------------------------------------------------------------------------------------------------


@call(Z)
class PowerOfSignal(Function):
    @staticmethod
    def forward(ctx, z):
        ctx.save_for_backward(z)
        return (z * vg.conj(z)).real

    @staticmethod
    def backward(ctx, grad):
        (z,) = ctx.saved_tensors
        return 2 * grad * z


@call(Z, np.array([0.3, -0.2, 0.9]))
class PhaseShift(Function):
    @staticmethod
    def forward(ctx, z, phi):
        a, p = z.detach().numpy(), phi.detach().numpy()
        ctx.turn = np.exp(1j * p)
        ctx.y = a * ctx.turn
        return vg.Tensor(ctx.y)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = grad.numpy()
        return vg.Tensor(g * ctx.turn.conj()), vg.Tensor((g * (1j * ctx.y).conj()).real)


@call(X[:4])
def spectral_flatness(x):
    p = vg.abs(vg.fft.rfft(x)) ** 2 + 1e-9
    return vg.exp(vg.log(p).mean()) / p.mean()


# -- solvers, iterations -----------------------------------------------------------------------------------------------


@call(SPD, X[:3], tol=1e-12, max_iter=200)
class ConjugateGradient(Function):
    @staticmethod
    def forward(ctx, a, b, tol=1e-10, max_iter=100):
        m, rhs = a.detach().numpy(), b.detach().numpy()
        x = np.zeros_like(rhs)
        r = rhs - m @ x
        p, rs = r.copy(), r @ r
        for _ in range(max_iter):
            if np.sqrt(rs) < tol:
                break
            mp = m @ p
            alpha = rs / (p @ mp)
            x, r = x + alpha * p, r - alpha * mp
            new = r @ r
            p, rs = r + new / rs * p, new
        else:
            raise RuntimeError("no convergence")
        ctx.m, ctx.x = m.copy(), x
        return vg.Tensor(x)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        w = np.linalg.solve(ctx.m.T, grad.numpy())
        return vg.Tensor(-np.outer(w, ctx.x)), vg.Tensor(w), None, None


CALLS["ConjugateGradient"] = ((SPD, X[:3]), {"tol": 1e-12, "max_iter": 200}, {"structure": {"a": "positive definite"}})


@call(WEIGHTS * 0.3, X[:3])
class EquilibriumLayer(Function):
    """z = tanh(W z + x), by iteration."""

    @staticmethod
    def forward(ctx, w, x):
        W, b = w.detach().numpy(), x.detach().numpy()
        z = np.zeros_like(b)
        for _ in range(500):
            new = np.tanh(W @ z + b)
            if np.abs(new - z).max(initial=0) < 1e-14:
                break
            z = new
        else:
            raise RuntimeError("no equilibrium")
        ctx.W, ctx.z = W.copy(), z
        return vg.Tensor(z)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        d = 1 - ctx.z**2
        u = np.linalg.solve((np.eye(len(d)) - d[:, None] * ctx.W).T, grad.numpy()) * d
        return vg.Tensor(np.outer(u, ctx.z)), vg.Tensor(u)


@call(np.array([2.0, 5.0, 11.0]))
def babylonian(a, steps=12):
    x = a * 0.5 + 0.5
    for _ in range(steps):
        x = 0.5 * (x + a / x)
    return x


@call(np.array([[0.5, 0.2, 0.3], [0.1, 0.6, 0.3], [0.2, 0.3, 0.5]]))
class StationaryDistribution(Function):
    """pi P = pi, for rows that are scaled to sum to 1."""

    @staticmethod
    def forward(ctx, p):
        a = p.detach().numpy()
        if a.ndim != 2 or a.shape[0] != a.shape[1] or (a < 0).any() or (a.sum(axis=1) == 0).any():
            raise ValueError("transition rates")
        s = a.sum(axis=1, keepdims=True)
        t = a / s
        n = len(t)
        k = np.vstack([t.T - np.eye(n), np.ones(n)])
        pi, _, rank, _ = np.linalg.lstsq(k, np.append(np.zeros(n), 1.0), rcond=None)
        if rank < n:
            raise ValueError("not unique")
        ctx.t, ctx.pi, ctx.s = t, pi, s
        return vg.Tensor(pi)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        t, pi, s = ctx.t, ctx.pi, ctx.s
        n = len(pi)
        g = grad.numpy()
        k = np.eye(n) - t + np.ones((n, 1)) * pi  # the fundamental matrix
        u = np.linalg.solve(k, g - (g @ pi))
        gt = np.outer(pi, u)
        return vg.Tensor((gt - (gt * t).sum(axis=1, keepdims=True)) / s)


# -- masks, dictionaries, objects --------------------------------------------------------------------------------------


@call({"w": WEIGHTS[:2], "b": X[:2]}, Y[:3])
def affine_of_parameters(params, x):
    return vg.tanh(params["w"] @ x + params["b"])


@call(X, {"alpha": 0.5, "mode": "soft"})
class ShrinkByConfig(Function):
    @staticmethod
    def forward(ctx, x, config):
        a, t = x.detach().numpy(), config["alpha"]
        ctx.on = np.abs(a) > t
        if config["mode"] == "soft":
            return vg.Tensor(np.sign(a) * np.maximum(np.abs(a) - t, 0))
        return vg.Tensor(np.where(ctx.on, a, 0))

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.on, None


class RunningScale:
    """Divides by a running maximum, which `update` changes."""

    def __init__(self):
        self.scale = 2.0

    def update(self, x):
        self.scale = max(self.scale, float(vg.abs(x.detach()).max()))

    def __call__(self, x):
        return x / self.scale


running_scale = RunningScale()
CALLS["running_scale"] = ((X,), {}, {})


@call(M, np.array([[True, True, False], [True, False, True]]), axis=1)
class MaskedVariance(Function):
    @staticmethod
    def forward(ctx, x, mask, axis=-1):
        a, m = x.detach().numpy(), mask.numpy().astype(float)
        n = np.maximum(m.sum(axis=axis, keepdims=True), 1)
        mean = (a * m).sum(axis=axis, keepdims=True) / n
        ctx.d, ctx.n, ctx.axis = (a - mean) * m, n, axis
        return vg.Tensor((ctx.d**2).sum(axis=axis) / np.squeeze(n, axis))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return vg.Tensor(np.expand_dims(grad.numpy(), ctx.axis) * 2 * ctx.d / ctx.n), None, None


@call(X, np.array([1, 0, 2, 1, 3]))
class PoissonCounts(Function):
    @staticmethod
    def forward(ctx, log_rate, counts):
        r, k = log_rate.detach().numpy(), counts.numpy()
        e = np.exp(r)
        ctx.g = e - k
        return vg.Tensor((e - k * r + scipy.special.gammaln(k + 1)).sum())

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * vg.Tensor(ctx.g), None


@call([X[:3], Y[:3], PLUS[:3]])
def log_mean_of(parts):
    total = parts[0] * 0.0
    for part in parts:
        total = total + vg.exp(part)
    return vg.log(total / len(parts))


@call(X)
def moments(x):
    mean = x.mean()
    return {"mean": mean, "var": ((x - mean) ** 2).mean(), "max": x.max()}


@call(N, rows=(0, 2))
def swap_rows(x, rows=(0, 1)):
    i, j = rows
    y = x.clone()
    y[i], y[j] = x[j], x[i]
    return y


@call(X, 2.0, inplace_ok=False)
class ScaleDirty(Function):
    """Writes to its argument, if that is allowed."""

    @staticmethod
    def forward(ctx, x, factor, inplace_ok=False):
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.factor, None, None


class CumulativeProductSafe(Function):
    """A product with setup_context, correct also if elements are zero."""

    @staticmethod
    def forward(x):
        return vg.Tensor(np.cumprod(x.detach().numpy()))

    @staticmethod
    def setup_context(ctx, inputs, output):
        (x,) = inputs
        ctx.a = x.detach().numpy().copy()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        a, g = ctx.a.ravel(), grad.numpy()
        out = np.zeros(len(a))
        for i in range(len(a)):
            p = np.prod(a[:i])
            for k in range(i, len(a)):
                if k > i:
                    p *= a[k]
                out[i] += g[k] * p
        return vg.Tensor(out.reshape(ctx.a.shape))


CALLS["CumulativeProductSafe"] = ((X,), {}, {})


@call(TALL, means={"valid": lambda p: p.ndim == 2 and p.shape[1] == 2})
class ConvexHullArea(Function):
    @staticmethod
    def forward(ctx, p):
        a = p.detach().numpy()
        hull = scipy.spatial.ConvexHull(a)
        ctx.v, ctx.a = hull.vertices, a.copy()
        return vg.Tensor(hull.volume)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        c = ctx.a[ctx.v]
        before, after = np.roll(c, 1, axis=0), np.roll(c, -1, axis=0)
        out = np.zeros(ctx.a.shape)
        out[ctx.v, 0] = (after[:, 1] - before[:, 1]) / 2
        out[ctx.v, 1] = (before[:, 0] - after[:, 0]) / 2
        return grad * vg.Tensor(out)


@call(np.array([0.2, 1.4, 0.9]), np.array([0.3, 0.8]), degree=2)
class FourierFeatures(Function):
    @staticmethod
    def forward(ctx, x, freq, degree=1):
        a, f = x.detach().numpy(), freq.detach().numpy()
        k = np.arange(1, degree + 1)
        arg = a[:, None, None] * f[None, :, None] * k
        ctx.a, ctx.f, ctx.k, ctx.arg = a.copy(), f.copy(), k, arg
        return vg.Tensor(np.concatenate([np.sin(arg), np.cos(arg)], axis=2).reshape(len(a), -1))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        a, f, k, arg = ctx.a, ctx.f, ctx.k, ctx.arg
        g = grad.numpy().reshape(len(a), len(f), -1)
        d = g[..., : len(k)] * np.cos(arg) - g[..., len(k) :] * np.sin(arg)
        return (
            vg.Tensor((d * f[:, None] * k).sum(axis=(1, 2))),
            vg.Tensor((d * a[:, None, None] * k).sum(axis=(0, 2))),
            None,
        )


@call(UNIT, low=0.0, high=1.0)
class LogitInterval(Function):
    @staticmethod
    def forward(ctx, x, low=0.0, high=1.0):
        a = x.detach().numpy()
        if np.any(a <= low) or np.any(a >= high):
            raise ValueError("outside of the interval")
        ctx.g = 1 / (a - low) + 1 / (high - a)
        return vg.Tensor(np.log((a - low) / (high - a)))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * vg.Tensor(ctx.g), None, None


@call(np.array([1.5, -0.5, 2.0]), np.array([0.2, 0.9, 0.4]), eps=1e-8)
def project(u, v, eps=1e-8):
    return (u * v).sum() / ((v * v).sum() + eps) * v


@call(X, np.array(3.0))
class AddScalarTensor(Function):
    @staticmethod
    def forward(ctx, x, s):
        ctx.save_for_backward(x, s)
        return x * s + s

    @staticmethod
    def backward(ctx, grad):
        x, s = ctx.saved_tensors
        return grad * s, (grad * (x + 1)).sum()


@call(SIGNAL, alpha=0.4)
class HoltTrend(Function):
    """Double exponential smoothing; gives the levels."""

    @staticmethod
    def forward(ctx, x, alpha=0.3, beta=0.2):
        a = x.detach().numpy()
        level, trend = a[0], 0.0
        out = np.zeros(len(a))
        out[0] = level
        for t in range(1, len(a)):
            new = alpha * a[t] + (1 - alpha) * (level + trend)
            trend = beta * (new - level) + (1 - beta) * trend
            level = new
            out[t] = level
        ctx.alpha, ctx.beta = alpha, beta
        return vg.Tensor(out)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g, al, be = grad.numpy(), ctx.alpha, ctx.beta
        out = np.zeros(len(g))
        gl = gt = 0.0
        for t in range(len(g) - 1, 0, -1):
            gnew = gl + g[t] + be * gt
            gl_before = -be * gt + (1 - al) * gnew
            gt = (1 - be) * gt + (1 - al) * gnew
            out[t] = al * gnew
            gl = gl_before
        out[0] = gl + g[0]
        return vg.Tensor(out), None, None


softplus_beta = call(X, beta=2.0)(
    define_op(
        "fourth_softplus(x, beta=1.0)",
        forward=lambda x, beta=1.0: np.logaddexp(0, beta * x) / beta,
        derivatives={"x": "grad / (1 + exp(-beta * x))"},
        doc="A smooth ramp.",
    )
)
dot_rows = call(N, N[::-1] * 0.4)(
    define_op(
        "fourth_dot_rows(a, b)",
        forward=lambda a, b: (a * b).sum(axis=-1, keepdims=True),
        derivatives={"a": "grad * b", "b": "grad * a"},
        doc="Dot products of rows.",
    )
)
clamp_min = call(X, Y)(
    define_op(
        "fourth_clamp_min(x, low)",
        forward=lambda x, low: np.maximum(x, low),
        derivatives={"x": "grad * (x >= low)", "low": "grad * (x < low)"},
        doc="x, but not below low.",
    )
)
