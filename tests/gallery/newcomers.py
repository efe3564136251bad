"""Correct operators as people write their first ones: layers, losses, physics, signals, statistics, finance, geometry.

Each is correct at the call that it was written for, and few of them were written with other calls in mind. `CALLS` has
the call of each and its author's declarations; `newcomers_faults.py` has edits that make them wrong.
"""

import math

import numpy as np
import scipy.fft
import scipy.linalg
import scipy.special
import scipy.stats

import viewgrad as vg
from viewgrad.autograd import Function, define_op, once_differentiable

CALLS = {}


def registering(calls):
    """Return a decorator that registers the call that an operator was written for in a dict."""

    def call(*args, means=None, **kwargs):
        def put(thing):
            calls[thing.__name__ if hasattr(thing, "__name__") else thing.name] = (args, kwargs, means or {})
            return thing

        return put

    return call


call = registering(CALLS)


X = np.array([0.6, -1.4, 2.3, 0.9, -0.35])
Y = np.array([1.2, 0.7, -0.9, 0.25, 1.8])
UNIT = np.array([0.15, 0.62, 0.38, 0.81])
PLUS = np.array([0.8, 1.7, 2.4, 0.55, 1.1])
M = np.array([[0.8, -1.2, 2.2], [1.7, 0.5, -0.7]])
N = np.array([[0.25, 0.95, -0.45], [-1.15, 0.55, 1.65], [0.35, -0.75, 1.05], [2.05, 0.15, -0.05]])
TALL = np.array([[0.2, 1.4], [-0.9, 0.6], [1.3, -0.1], [0.5, 0.7], [-1.6, 0.3]])
IMAGE = np.cos(1.3 * np.arange(30.0)).reshape(5, 6)
VOLUME = np.sin(0.9 * np.arange(24.0) + 0.3).reshape(2, 3, 4)
SIGNAL = np.sin(0.8 * np.arange(10.0)) + 0.07 * np.arange(10.0)
ATOMS = np.array([[0.0, 0.1, -0.1], [1.3, 0.2, 0.1], [0.3, 1.5, -0.2], [-0.4, 0.6, 1.4]])
SPD = np.array([[2.2, 0.4, 0.1], [0.4, 1.6, -0.3], [0.1, -0.3, 1.9]])
FACES = np.array([[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]])
WEIGHTS = np.array([[0.3, -0.2, 0.5], [0.7, 0.1, -0.4], [-0.6, 0.8, 0.2]])


# -- layers ------------------------------------------------------------------------------------------------------------


@call(M, N[:3], N[1:4])
class DotProductAttention(Function):
    @staticmethod
    def forward(ctx, q, k, v):
        Q, K, V = q.detach().numpy(), k.detach().numpy(), v.detach().numpy()
        s = Q @ K.T / np.sqrt(Q.shape[1])
        e = np.exp(s - s.max(axis=1, keepdims=True))
        A = e / e.sum(axis=1, keepdims=True)
        ctx.Q, ctx.K, ctx.V, ctx.A = Q.copy(), K.copy(), V.copy(), A
        return vg.Tensor(A @ V)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = grad.numpy()
        dV = ctx.A.T @ g
        dA = g @ ctx.V.T
        dS = ctx.A * (dA - (dA * ctx.A).sum(axis=1, keepdims=True))
        dS /= np.sqrt(ctx.Q.shape[1])
        return vg.Tensor(dS @ ctx.K), vg.Tensor(dS.T @ ctx.Q), vg.Tensor(dV)


@call(np.array([[0.3, -0.8, 0.5, 1.1], [0.2, 0.9, -0.4, -0.6]]), np.array([[0.7], [-0.4]]))
class LstmGates(Function):
    """Gates i, f, g, o side by side, and the cell; gives the new hidden state and the new cell."""

    @staticmethod
    def forward(ctx, gates, cell):
        z, c = gates.detach().numpy(), cell.detach().numpy()
        h = c.shape[1]
        i = 1 / (1 + np.exp(-z[:, :h]))
        f = 1 / (1 + np.exp(-z[:, h : 2 * h]))
        g = np.tanh(z[:, 2 * h : 3 * h])
        o = 1 / (1 + np.exp(-z[:, 3 * h :]))
        new = f * c + i * g
        t = np.tanh(new)
        ctx.parts = i, f, g, o, c.copy(), t
        return vg.Tensor(o * t), vg.Tensor(new)

    @staticmethod
    @once_differentiable
    def backward(ctx, dh, dc):
        i, f, g, o, c, t = ctx.parts
        dh, dc = dh.numpy(), dc.numpy()
        do = dh * t
        dnew = dc + dh * o * (1 - t**2)
        dz = np.concatenate(
            [dnew * g * i * (1 - i), dnew * c * f * (1 - f), dnew * i * (1 - g**2), do * o * (1 - o)], axis=1
        )
        return vg.Tensor(dz), vg.Tensor(dnew * f)


@call(X[:3], Y[:3], WEIGHTS, WEIGHTS.T * 0.7)
def minimal_gru(x, h, wz, wh):
    z = 1 / (1 + vg.exp(-(wz @ x)))
    cand = vg.tanh(wh @ (z * h))
    return (1 - z) * h + z * cand


@call(VOLUME)
class InstanceNorm(Function):
    @staticmethod
    def forward(ctx, x, eps=1e-5):
        a = x.detach().numpy()
        mean = a.mean(axis=(1, 2), keepdims=True)
        var = a.var(axis=(1, 2), keepdims=True)
        ctx.std = np.sqrt(var + eps)
        ctx.y = (a - mean) / ctx.std
        return vg.Tensor(ctx.y)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = grad.numpy()
        mg = g.mean(axis=(1, 2), keepdims=True)
        mgy = (g * ctx.y).mean(axis=(1, 2), keepdims=True)
        return vg.Tensor((g - mg - ctx.y * mgy) / ctx.std), None


@call(M, np.array([[True, False, True], [True, True, False]]), p=0.25)
class MaskedDropout(Function):
    @staticmethod
    def forward(ctx, x, keep, p=0.5):
        ctx.scale = keep.numpy() / (1 - p)
        return vg.Tensor(x.detach().numpy() * ctx.scale)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return vg.Tensor(grad.numpy() * ctx.scale), None, None


@call(np.array([[0.3, -0.8, 0.5, 1.1], [0.2, 0.9, -0.4, -0.6]]), pieces=2)
class Maxout(Function):
    @staticmethod
    def forward(ctx, x, pieces=2):
        a = x.detach().numpy()
        n, d = a.shape
        if d % pieces:
            raise ValueError("features must divide into pieces")
        blocks = a.reshape(n, d // pieces, pieces)
        ctx.arg = blocks.argmax(axis=2)
        ctx.shape = blocks.shape
        return vg.Tensor(blocks.max(axis=2))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        out = np.zeros(ctx.shape)
        i, j = np.indices(ctx.arg.shape)
        out[i, j, ctx.arg] = grad.numpy()
        return vg.Tensor(out.reshape(ctx.shape[0], -1)), None


@call(VOLUME[0], np.sin(1.0 + np.arange(18.0)).reshape(2, 3, 3), padding=1)
class Conv1dIm2col(Function):
    """x: (channels, length), w: (out channels, channels, width)."""

    @staticmethod
    def forward(ctx, x, w, padding=0):
        a, k = x.detach().numpy(), w.detach().numpy()
        padded = np.zeros((a.shape[0], a.shape[1] + 2 * padding))
        padded[:, padding : padding + a.shape[1]] = a
        width = k.shape[2]
        n = padded.shape[1] - width + 1
        cols = np.zeros((a.shape[0] * width, n))
        for j in range(n):
            cols[:, j] = padded[:, j : j + width].ravel()
        ctx.cols, ctx.k, ctx.padding, ctx.shape = cols, k.copy(), padding, padded.shape
        return vg.Tensor(k.reshape(k.shape[0], -1) @ cols)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = grad.numpy()
        gw = (g @ ctx.cols.T).reshape(ctx.k.shape)
        gc = ctx.k.reshape(ctx.k.shape[0], -1).T @ g
        out = np.zeros(ctx.shape)
        width = ctx.k.shape[2]
        for j in range(gc.shape[1]):
            out[:, j : j + width] += gc[:, j].reshape(ctx.shape[0], width)
        p = ctx.padding
        return vg.Tensor(out[:, p : out.shape[1] - p]), vg.Tensor(gw), None


@call(N, np.array([2, 0, 3, 3, 1]), pad=0)
class PaddedEmbedding(Function):
    @staticmethod
    def forward(ctx, table, ids, pad=0):
        i = ids.numpy()
        if i.min(initial=0) < 0:
            raise IndexError("ids are not negative")
        ctx.i, ctx.pad, ctx.shape = i.copy(), pad, table.shape
        out = table.detach().numpy()[i].copy()
        out[i == pad] = 0.0
        return vg.Tensor(out)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        out = np.zeros(ctx.shape)
        np.add.at(out, ctx.i, grad.numpy())
        out[ctx.pad] = 0.0
        return vg.Tensor(out), None, None


@call(M)
class Squash(Function):
    @staticmethod
    def forward(ctx, s):
        a = s.detach().numpy()
        n2 = (a * a).sum(axis=-1, keepdims=True)
        n = np.sqrt(n2 + 1e-9)
        ctx.a, ctx.n2, ctx.n = a.copy(), n2, n
        return vg.Tensor(a * n2 / (1 + n2) / n)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g, a, n2, n = grad.numpy(), ctx.a, ctx.n2, ctx.n
        f = n2 / (1 + n2) / n
        df = 1 / (1 + n2) ** 2 / n - n2 / (1 + n2) / (2 * n**3)
        return vg.Tensor(g * f + 2 * a * df * (g * a).sum(axis=-1, keepdims=True))


@call(TALL, TALL[:2] + 0.3, np.array(0.8), means={"valid": lambda x, c, s: x.ndim == 2 and c.ndim == 2 and s > 0})
class RadialLayer(Function):
    @staticmethod
    def forward(ctx, x, centers, width):
        a, c, s = (t.detach().numpy().copy() for t in (x, centers, width))
        diff = a[:, None, :] - c[None, :, :]
        d2 = (diff**2).sum(axis=2)
        y = np.exp(-d2 / (2 * s**2))
        ctx.saved = diff, d2, y, s
        return vg.Tensor(y)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        diff, d2, y, s = ctx.saved
        gy = grad.numpy() * y
        gd = -(gy / s**2)[:, :, None] * diff
        return vg.Tensor(gd.sum(axis=1)), vg.Tensor(-gd.sum(axis=0)), vg.Tensor((gy * d2).sum() / s**3)


@call(M)
class TimeShift(Function):
    """The first feature comes from the step before, the last from the step after."""

    @staticmethod
    def forward(ctx, x):
        a = x.detach().numpy()
        if a.ndim != 2 or a.shape[1] < 2:
            raise ValueError("steps of two features at least")
        out = a.copy()
        out[1:, 0], out[0, 0] = a[:-1, 0], 0
        out[:-1, -1], out[-1, -1] = a[1:, -1], 0
        return vg.Tensor(out)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = grad.numpy()
        out = g.copy()
        out[:-1, 0], out[-1, 0] = g[1:, 0], 0
        out[1:, -1], out[0, -1] = g[:-1, -1], 0
        return vg.Tensor(out)


@call(M, np.array([0.3, -0.1, 0.4]))
class GatedByBias(Function):
    @staticmethod
    def forward(ctx, x, b):
        ctx.save_for_backward(x, b)
        return x * vg.sigmoid(x + b)

    @staticmethod
    def backward(ctx, g):
        x, b = ctx.saved_tensors
        s = vg.sigmoid(x + b)
        ds = x * s * (1 - s)
        return g * (s + ds), (g * ds).sum(axis=0)


# -- losses ------------------------------------------------------------------------------------------------------------


@call(X, np.array([1.0, 0.0, 1.0, 1.0, 0.0]), pos_weight=2.0)
class BceWithLogits(Function):
    @staticmethod
    def forward(ctx, logits, target, pos_weight=1.0):
        x, t = logits.detach().numpy(), target.detach().numpy()
        w = 1 + (pos_weight - 1) * t
        ctx.x, ctx.t, ctx.w, ctx.pw = x.copy(), t.copy(), w, pos_weight
        loss = (1 - t) * x + w * (np.log1p(np.exp(-np.abs(x))) + np.maximum(-x, 0))
        return vg.Tensor(loss.mean())

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x, t, w = ctx.x, ctx.t, ctx.w
        s = scipy.special.expit(-x)
        n = x.size
        softplus = np.logaddexp(0, -x)
        return grad * ((1 - t) - w * s) / n, grad * (-x + (ctx.pw - 1) * softplus) / n, None


@call(N, np.array([0, 2, 1, 2]), reduction="mean")
class NllOfLogits(Function):
    @staticmethod
    def forward(ctx, logits, labels, reduction="mean"):
        a, y = logits.detach().numpy(), labels.numpy()
        lse = np.log(np.exp(a - a.max(1, keepdims=True)).sum(1)) + a.max(1)
        loss = lse - a[np.arange(len(y)), y]
        ctx.p = np.exp(a - lse[:, None])
        ctx.p[np.arange(len(y)), y] -= 1
        ctx.reduction = reduction
        if reduction == "none":
            return vg.Tensor(loss)
        return vg.Tensor(loss.mean() if reduction == "mean" else loss.sum())

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = grad.numpy()
        if ctx.reduction == "none":
            return vg.Tensor(ctx.p * g[:, None]), None, None
        scale = len(ctx.p) if ctx.reduction == "mean" else 1
        return vg.Tensor(ctx.p * (g / scale)), None, None


@call(M, M[::-1] * 0.8, np.array([1.0, 0.0]), margin=2.0)
class ContrastivePair(Function):
    @staticmethod
    def forward(ctx, a, b, same, margin=1.0):
        d = a.detach().numpy() - b.detach().numpy()
        dist = np.sqrt((d**2).sum(axis=1) + 1e-12)
        y = same.detach().numpy()
        hinge = np.maximum(margin - dist, 0)
        ctx.saved = d, dist, y.copy(), hinge
        return vg.Tensor((y * dist**2 + (1 - y) * hinge**2).mean())

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        d, dist, y, hinge = ctx.saved
        n = len(y)
        by_dist = (2 * y * dist - 2 * (1 - y) * hinge) / n
        ga = (by_dist / dist)[:, None] * d * grad.numpy()
        return vg.Tensor(ga), vg.Tensor(-ga), grad * (dist**2 - hinge**2) / n, None


@call(X, Y)
class LogCosh(Function):
    @staticmethod
    def forward(ctx, p, t):
        d = p.detach().numpy() - t.detach().numpy()
        ctx.d = d
        return vg.Tensor(np.where(np.abs(d) > 20, np.abs(d) - np.log(2), np.log(np.cosh(np.clip(d, -20, 20)))).sum())

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        s = np.tanh(ctx.d) * grad.numpy()
        return vg.Tensor(s), vg.Tensor(-s)


@call(X, np.array([1.0, 0.0, 3.0, 2.0, 1.0]), log_input=True)
def poisson_nll(rate, counts, log_input=True):
    if log_input:
        return (vg.exp(rate) - counts * rate).mean()
    return (rate - counts * vg.log(rate + 1e-8)).mean()


@call(N, np.array([[0.3, 0.1, -0.2], [0.9, 0.7, 0.5], [-0.1, -0.9, 0.4], [1.0, 0.2, 0.6]]), temperature=0.5)
def info_nce(a, b, temperature=0.5):
    a = a / vg.sqrt((a * a).sum(axis=1, keepdims=True) + 1e-12)
    b = b / vg.sqrt((b * b).sum(axis=1, keepdims=True) + 1e-12)
    s = a @ b.T / temperature
    return (vg.logsumexp(s, axis=1) - vg.diagonal(s)).mean()


@call(X, Y[:5], 1.0)
class MarginRanking(Function):
    @staticmethod
    def forward(ctx, good, bad, margin):
        viol = margin - (good.detach().numpy() - bad.detach().numpy())
        ctx.on = (viol > 0).astype(float) / viol.size
        return vg.Tensor(np.maximum(viol, 0).mean())

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = grad.numpy() * ctx.on
        return vg.Tensor(-g), vg.Tensor(g), None


@call(X, Y)
class SortedDistance(Function):
    """The squared Wasserstein distance of two samples of the same size."""

    @staticmethod
    def forward(ctx, u, v):
        a, b = u.detach().numpy(), v.detach().numpy()
        if a.shape != b.shape or a.ndim != 1:
            raise ValueError("two samples of one size")
        ctx.i, ctx.j = np.argsort(a), np.argsort(b)
        ctx.d = a[ctx.i] - b[ctx.j]
        return vg.Tensor((ctx.d**2).mean())

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = 2 * ctx.d / len(ctx.d) * grad.numpy()
        gu, gv = np.zeros(len(g)), np.zeros(len(g))
        gu[ctx.i] = g
        gv[ctx.j] = -g
        return vg.Tensor(gu), vg.Tensor(gv)


@call(np.array([0.1, 0.2, 1.3, 1.6]), np.array([0.4, 0.0, 1.9, 1.1]))
def iou_loss(a, b):
    w = vg.maximum(vg.minimum(a[2], b[2]) - vg.maximum(a[0], b[0]), 0.0)
    h = vg.maximum(vg.minimum(a[3], b[3]) - vg.maximum(a[1], b[1]), 0.0)
    inter = w * h
    union = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - inter
    return 1 - inter / union


# -- physics -----------------------------------------------------------------------------------------------------------


@call(ATOMS, sigma=0.9, epsilon=0.4)
class LennardJones(Function):
    @staticmethod
    def forward(ctx, pos, sigma=1.0, epsilon=1.0):
        r = pos.detach().numpy()
        n = len(r)
        force = np.zeros_like(r)
        energy = 0.0
        for i in range(n):
            for j in range(i):
                d = r[i] - r[j]
                r2 = d @ d
                s6 = (sigma**2 / r2) ** 3
                energy += 4 * epsilon * (s6**2 - s6)
                f = 24 * epsilon * (2 * s6**2 - s6) / r2 * d
                force[i] += f
                force[j] -= f
        ctx.force = force
        return vg.Tensor(energy)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * vg.Tensor(-ctx.force), None, None


@call(np.array([1.0, -2.0, 0.5, 1.5]), ATOMS, eps=1e-2)
class SoftCoulomb(Function):
    @staticmethod
    def forward(ctx, q, pos, eps=1e-3):
        c, r = q.detach().numpy(), pos.detach().numpy()
        d = r[:, None] - r[None, :]
        inv = 1 / np.sqrt((d**2).sum(-1) + eps)
        np.fill_diagonal(inv, 0)
        ctx.c, ctx.d, ctx.inv = c.copy(), d, inv
        return vg.Tensor(0.5 * c @ inv @ c)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        c, d, inv = ctx.c, ctx.d, ctx.inv
        w = np.outer(c, c) * inv**3
        return grad * (inv @ c), grad * vg.Tensor(-(w[:, :, None] * d).sum(axis=1)), None


@call(ATOMS, np.array([[0, 1], [1, 2], [2, 3]]), 1.1, k=3.0)
class HarmonicBonds(Function):
    @staticmethod
    def forward(ctx, pos, bonds, length, k=1.0):
        r, b = pos.detach().numpy(), bonds.numpy()
        d = r[b[:, 0]] - r[b[:, 1]]
        dist = np.linalg.norm(d, axis=1)
        ctx.b, ctx.n = b.copy(), r.shape
        ctx.f = (k * (dist - length) / np.where(dist > 0, dist, 1))[:, None] * d
        return vg.Tensor(0.5 * k * ((dist - length) ** 2).sum())

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        out = np.zeros(ctx.n)
        np.add.at(out, ctx.b[:, 0], ctx.f)
        np.add.at(out, ctx.b[:, 1], -ctx.f)
        return grad * vg.Tensor(out), None, None, None


@call(PLUS, depth=1.2, a=0.9, r0=1.0)
def morse(r, depth, a, r0):
    e = vg.exp(-a * (r - r0))
    return depth * (1 - e) ** 2


@call(X[:3])
class MeanField(Function):
    """Solves m = tanh(h + 0.5 m) by iteration; its derivative follows from the implicit function theorem."""

    @staticmethod
    def forward(ctx, h):
        a = h.detach().numpy()
        m = np.zeros_like(a)
        for _ in range(200):
            m = np.tanh(a + 0.5 * m)
        ctx.m = m
        return vg.Tensor(m)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        s = 1 - ctx.m**2
        return grad * (s / (1 - 0.5 * s))


@call(np.array([1.0, 0.6, -0.4]), 0.05)
def lorenz_step(state, dt):
    def f(s):
        x, y, z = s[0], s[1], s[2]
        return vg.stack([10.0 * (y - x), x * (28.0 - z) - y, x * y - 8 / 3 * z])

    k1 = f(state)
    k2 = f(state + dt / 2 * k1)
    k3 = f(state + dt / 2 * k2)
    k4 = f(state + dt * k3)
    return state + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


@call(SIGNAL, SIGNAL[::-1] * 0.9, c=0.4, periodic=False)
class WaveStep(Function):
    @staticmethod
    def forward(ctx, u, before, c=0.5, periodic=True):
        a, b = u.detach().numpy(), before.detach().numpy()
        lap = np.zeros_like(a)
        lap[1:-1] = a[2:] - 2 * a[1:-1] + a[:-2]
        if periodic:
            lap[0] = a[1] - 2 * a[0] + a[-1]
            lap[-1] = a[0] - 2 * a[-1] + a[-2]
        ctx.c, ctx.periodic = c, periodic
        return vg.Tensor(2 * a - b + c**2 * lap)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = grad.numpy()
        lap = np.zeros_like(g)
        lap[2:] += g[1:-1]
        lap[1:-1] -= 2 * g[1:-1]
        lap[:-2] += g[1:-1]
        if ctx.periodic:
            lap[1] += g[0]
            lap[0] -= 2 * g[0]
            lap[-1] += g[0]
            lap[0] += g[-1]
            lap[-1] -= 2 * g[-1]
            lap[-2] += g[-1]
        return vg.Tensor(2 * g + ctx.c**2 * lap), vg.Tensor(-g), None, None


@call(np.array([0.2, 0.5, 0.9]), n1=1.0, n2=1.5)
class Refraction(Function):
    @staticmethod
    def forward(ctx, angle, n1=1.0, n2=1.33):
        a = angle.detach().numpy()
        s = n1 / n2 * np.sin(a)
        if np.any(np.abs(s) >= 1):
            raise ValueError("total reflection")
        ctx.slope = n1 / n2 * np.cos(a) / np.sqrt(1 - s**2)
        return vg.Tensor(np.arcsin(s))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * ctx.slope, None, None


@call(np.array([0.1, 0.4, 0.6]), 2.0)
class RelativisticEnergy(Function):
    @staticmethod
    def forward(ctx, v, m):
        b = v.detach().numpy()
        if (np.abs(b) >= 1).any():
            raise ValueError("faster than light")
        ctx.gamma = 1 / np.sqrt(1 - b**2)
        ctx.b, ctx.m = b.copy(), m
        return vg.Tensor(m * (ctx.gamma - 1))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * (ctx.m * ctx.gamma**3 * ctx.b), None


# -- signals -----------------------------------------------------------------------------------------------------------


@call(SIGNAL, np.array([0.3, 0.2, 0.1]), np.array([-0.4, 0.25]))
class Biquad(Function):
    @staticmethod
    def forward(ctx, x, b, a):
        s, bb, aa = x.detach().numpy(), b.detach().numpy(), a.detach().numpy()
        y = np.zeros(len(s))
        for n in range(len(s)):
            for k in range(3):
                if n - k >= 0:
                    y[n] += bb[k] * s[n - k]
            for k in range(2):
                if n - 1 - k >= 0:
                    y[n] -= aa[k] * y[n - 1 - k]
        ctx.s, ctx.bb, ctx.aa, ctx.y = s.copy(), bb.copy(), aa.copy(), y.copy()
        return vg.Tensor(y)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        s, bb, aa, y = ctx.s, ctx.bb, ctx.aa, ctx.y
        g = grad.numpy().copy()
        gs, gb, ga = np.zeros(len(s)), np.zeros(3), np.zeros(2)
        for n in range(len(s) - 1, -1, -1):
            for k in range(2):
                if n - 1 - k >= 0:
                    g[n - 1 - k] -= aa[k] * g[n]
                    ga[k] -= g[n] * y[n - 1 - k]
            for k in range(3):
                if n - k >= 0:
                    gs[n - k] += bb[k] * g[n]
                    gb[k] += g[n] * s[n - k]
        return vg.Tensor(gs), vg.Tensor(gb), vg.Tensor(ga)


@call(SIGNAL)
class Autocorrelation(Function):
    @staticmethod
    def forward(ctx, x):
        a = x.detach().numpy()
        ctx.a = a.copy()
        return vg.Tensor(np.correlate(a, a, mode="full")[len(a) - 1 :])

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        a, g = ctx.a, grad.numpy()
        out = np.zeros(len(a))
        for lag in range(len(a)):
            out[: len(a) - lag] += g[lag] * a[lag:]
            out[lag:] += g[lag] * a[: len(a) - lag]
        return vg.Tensor(out)


@call(SIGNAL, cutoff=3)
class LowPass(Function):
    @staticmethod
    def forward(ctx, x, cutoff=2):
        a = x.detach().numpy()
        ctx.n, ctx.cutoff = len(a), cutoff
        f = np.fft.rfft(a)
        f[cutoff:] = 0
        return vg.Tensor(np.fft.irfft(f, n=len(a)))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        f = np.fft.rfft(grad.numpy())
        f[ctx.cutoff :] = 0
        return vg.Tensor(np.fft.irfft(f, n=ctx.n)), None


@call(SIGNAL, np.array([0.4, 2.7, 5.1, 8.6]))
class LinearResample(Function):
    @staticmethod
    def forward(ctx, x, times):
        a, t = x.detach().numpy(), times.detach().numpy()
        i = np.clip(np.floor(t).astype(int), 0, len(a) - 2)
        w = t - i
        ctx.i, ctx.w, ctx.n, ctx.slope = i, w, len(a), a[i + 1] - a[i]
        return vg.Tensor((1 - w) * a[i] + w * a[i + 1])

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = grad.numpy()
        out = np.zeros(ctx.n)
        np.add.at(out, ctx.i, g * (1 - ctx.w))
        np.add.at(out, ctx.i + 1, g * ctx.w)
        return vg.Tensor(out), vg.Tensor(g * ctx.slope)


@call(M, axis=1)
class CosineTransform2(Function):
    @staticmethod
    def forward(ctx, x, axis=-1):
        ctx.axis = axis
        return vg.Tensor(scipy.fft.dct(x.detach().numpy(), axis=axis, norm="ortho"))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return vg.Tensor(scipy.fft.idct(grad.numpy(), axis=ctx.axis, norm="ortho")), None


@call(SIGNAL, 0.23)
class Goertzel(Function):
    """The power at one frequency."""

    @staticmethod
    def forward(ctx, x, f):
        a = x.detach().numpy()
        n = np.arange(len(a))
        ctx.c, ctx.s = np.cos(2 * np.pi * f * n), np.sin(2 * np.pi * f * n)
        ctx.re, ctx.im = a @ ctx.c, a @ ctx.s
        return vg.Tensor(ctx.re**2 + ctx.im**2)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * vg.Tensor(2 * ctx.re * ctx.c + 2 * ctx.im * ctx.s), None


@call(PLUS)
class Decibel(Function):
    @staticmethod
    def forward(ctx, p, floor=1e-10):
        a = np.maximum(p.detach().numpy(), floor)
        ctx.a, ctx.above = a, p.detach().numpy() > floor
        return vg.Tensor(10 * np.log10(a))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * (10 / np.log(10) / ctx.a * ctx.above), None


@call(SIGNAL)
class MedianOfThree(Function):
    @staticmethod
    def forward(ctx, x):
        a = x.detach().numpy()
        windows = np.lib.stride_tricks.sliding_window_view(a, 3)
        order = np.argsort(windows, axis=1)
        ctx.pick = np.arange(len(windows)) + order[:, 1]
        ctx.n = len(a)
        return vg.Tensor(a[ctx.pick])

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return vg.Tensor(np.bincount(ctx.pick, weights=grad.numpy(), minlength=ctx.n))


def preemphasis_(x, c=0.9):
    """In place."""
    x[1:] -= c * x[:-1].clone()
    return x


@call(SIGNAL, c=0.9, means={"inplace": preemphasis_})
def preemphasis(x, c=0.9):
    y = x.clone()
    y[1:] = x[1:] - c * x[:-1]
    return y


@call(X * 0.3, mu=255.0)
def mu_law(x, mu=255.0):
    return vg.sign(x) * vg.log1p(mu * vg.abs(x)) / math.log1p(mu)


@call(IMAGE, np.array([[0.1, 0.2, 0.1], [0.0, -0.3, 0.4], [0.2, 0.1, 0.3]]))
class SameConvolution(Function):
    @staticmethod
    def forward(ctx, image, kernel):
        a, k = image.detach().numpy(), kernel.detach().numpy()
        ph, pw = k.shape[0] // 2, k.shape[1] // 2
        padded = np.pad(a, ((ph, ph), (pw, pw)))
        out = np.zeros(a.shape)
        for i in range(k.shape[0]):
            for j in range(k.shape[1]):
                out += k[i, j] * padded[i : i + a.shape[0], j : j + a.shape[1]]
        ctx.padded, ctx.k = padded, k.copy()
        return vg.Tensor(out)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = grad.numpy()
        h, w = g.shape
        gp, gk = np.zeros_like(ctx.padded), np.zeros_like(ctx.k)
        for i in range(ctx.k.shape[0]):
            for j in range(ctx.k.shape[1]):
                gp[i : i + h, j : j + w] += ctx.k[i, j] * g
                gk[i, j] = (ctx.padded[i : i + h, j : j + w] * g).sum()
        ph, pw = ctx.k.shape[0] // 2, ctx.k.shape[1] // 2
        return vg.Tensor(gp[ph : ph + h, pw : pw + w]), vg.Tensor(gk)


# -- statistics --------------------------------------------------------------------------------------------------------


@call(X, PLUS)
class WeightedMean(Function):
    @staticmethod
    def forward(ctx, x, w):
        a, b = x.detach().numpy(), w.detach().numpy()
        ctx.a, ctx.b = a.copy(), b.copy()
        ctx.total = b.sum()
        ctx.mean = (a * b).sum() / ctx.total
        return vg.Tensor(ctx.mean)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * (ctx.b / ctx.total), grad * ((ctx.a - ctx.mean) / ctx.total)


@call(X, Y)
def pearson(x, y):
    x, y = x - x.mean(), y - y.mean()
    return (x * y).sum() / vg.sqrt((x * x).sum() * (y * y).sum())


@call(X, np.array([-0.5, 0.8]), np.array([0.3, -0.2]), np.array([0.4, 1.1]))
class MixtureLogLikelihood(Function):
    """Means, logarithms of widths, and logits of the components."""

    @staticmethod
    def forward(ctx, x, mu, log_s, logits):
        a, m, ls, w = (t.detach().numpy().copy() for t in (x, mu, log_s, logits))
        lw = w - scipy.special.logsumexp(w)
        z = (a[:, None] - m) / np.exp(ls)
        lp = lw - ls - 0.5 * z**2 - 0.5 * np.log(2 * np.pi)
        total = scipy.special.logsumexp(lp, axis=1)
        ctx.r, ctx.z, ctx.s, ctx.p = np.exp(lp - total[:, None]), z, np.exp(ls), np.exp(lw)
        return vg.Tensor(total.sum())

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        r, z, s = ctx.r, ctx.z, ctx.s
        gx = -(r * z / s).sum(axis=1)
        gm = (r * z / s).sum(axis=0)
        gs = (r * (z**2 - 1)).sum(axis=0)
        gw = (r - ctx.p).sum(axis=0)
        return grad * gx, grad * gm, grad * gs, grad * gw


@call(X[:3], Y[:3], SPD, means={"structure": {"cov": "positive definite"}})
class NormalLogDensity(Function):
    @staticmethod
    def forward(ctx, x, mean, cov):
        d = x.detach().numpy() - mean.detach().numpy()
        c = cov.detach().numpy()
        factor = scipy.linalg.cho_factor(c)
        ctx.alpha = scipy.linalg.cho_solve(factor, d)
        ctx.inv = scipy.linalg.cho_solve(factor, np.eye(len(d)))
        logdet = 2 * np.log(np.diag(factor[0])).sum()
        return vg.Tensor(-0.5 * (d @ ctx.alpha + logdet + len(d) * np.log(2 * np.pi)))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = grad.numpy()
        return (
            vg.Tensor(-g * ctx.alpha),
            vg.Tensor(g * ctx.alpha),
            vg.Tensor(0.5 * g * (np.outer(ctx.alpha, ctx.alpha) - ctx.inv)),
        )


@call(PLUS, 2.5, 1.3)
class GammaLogDensity(Function):
    @staticmethod
    def forward(ctx, x, shape, rate):
        a = x.detach().numpy()
        ctx.slope = (shape - 1) / a - rate
        return vg.Tensor(scipy.stats.gamma.logpdf(a, shape, scale=1 / rate))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * ctx.slope, None, None


@call(PLUS, k=1.5, lam=2.0)
def weibull_log_survival(t, k, lam):
    return -((t / lam) ** k)


@call(X, q=0.3)
class Quantile(Function):
    @staticmethod
    def forward(ctx, x, q=0.5):
        a = x.detach().numpy()
        if not 0 <= q <= 1:
            raise ValueError("q is in [0, 1]")
        order = np.argsort(a)
        place = q * (len(a) - 1)
        low = int(np.floor(place))
        high = min(low + 1, len(a) - 1)
        ctx.w, ctx.low, ctx.high, ctx.n = place - low, order[low], order[high], len(a)
        return vg.Tensor((1 - ctx.w) * a[ctx.low] + ctx.w * a[ctx.high])

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = np.zeros(ctx.n)
        g[ctx.low] += (1 - ctx.w) * grad.numpy()
        g[ctx.high] += ctx.w * grad.numpy()
        return vg.Tensor(g), None


@call(TALL, np.array([1.0, 0.0, 0.0, 1.0, 1.0]), np.array([0.4, -0.7]), ridge=0.1)
class LogisticRegression(Function):
    @staticmethod
    def forward(ctx, features, y, w, ridge=0.0):
        A, t, b = features.detach().numpy(), y.detach().numpy(), w.detach().numpy()
        z = A @ b
        ctx.A, ctx.b, ctx.z, ctx.t, ctx.ridge = A.copy(), b.copy(), z, t.copy(), ridge
        return vg.Tensor(np.logaddexp(0, z).sum() - t @ z + ridge * b @ b)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        r = scipy.special.expit(ctx.z) - ctx.t
        g = grad.numpy()
        return (
            vg.Tensor(g * np.outer(r, ctx.b)),
            vg.Tensor(-g * ctx.z),
            vg.Tensor(g * (ctx.A.T @ r + 2 * ctx.ridge * ctx.b)),
            None,
        )


@call(np.array([0.1, 0.9]), X, 0.6)
class KernelDensity(Function):
    @staticmethod
    def forward(ctx, points, data, bandwidth):
        u = (points.detach().numpy()[:, None] - data.detach().numpy()[None, :]) / bandwidth
        k = np.exp(-0.5 * u**2) / np.sqrt(2 * np.pi)
        ctx.s = -u * k / bandwidth**2 / u.shape[1]
        return vg.Tensor(k.mean(axis=1) / bandwidth)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = grad.numpy()[:, None] * ctx.s
        return vg.Tensor(g.sum(axis=1)), vg.Tensor(-g.sum(axis=0)), None


@call(X)
def skewness(x):
    d = x - x.mean()
    return (d**3).mean() / (d * d).mean() ** 1.5


@call(SIGNAL, alpha=0.3)
class SmoothedVariance(Function):
    @staticmethod
    def forward(ctx, x, alpha=0.1):
        a = x.detach().numpy()
        m, v = np.zeros(len(a)), np.zeros(len(a))
        m[0] = a[0]
        for t in range(1, len(a)):
            d = a[t] - m[t - 1]
            m[t] = m[t - 1] + alpha * d
            v[t] = (1 - alpha) * (v[t - 1] + alpha * d * d)
        ctx.a, ctx.m, ctx.alpha = a.copy(), m, alpha
        return vg.Tensor(v)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        a, m, al = ctx.a, ctx.m, ctx.alpha
        g = grad.numpy()
        ga = np.zeros(len(a))
        gm = gv = 0.0
        for t in range(len(a) - 1, 0, -1):
            gv += g[t]
            d = a[t] - m[t - 1]
            gd = (1 - al) * al * 2 * d * gv + al * gm
            ga[t] += gd
            gm = gm - gd
            gv = (1 - al) * gv
        ga[0] += gm
        return vg.Tensor(ga), None


# -- finance -----------------------------------------------------------------------------------------------------------


@call(np.array([0.02, 0.025, 0.03, 0.031]), np.array([5.0, 5.0, 5.0, 105.0]))
class PresentValue(Function):
    @staticmethod
    def forward(ctx, rates, cash):
        r, c = rates.detach().numpy(), cash.detach().numpy()
        t = np.arange(1, len(r) + 1)
        ctx.d = (1 + r) ** -t
        ctx.slope = -t * c * (1 + r) ** (-t - 1.0)
        return vg.Tensor((c * ctx.d).sum())

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * ctx.slope, grad * ctx.d


@call(np.array([-100.0, 30.0, 45.0, 60.0]))
class InternalRate(Function):
    @staticmethod
    def forward(ctx, cash):
        c = cash.detach().numpy()
        t = np.arange(len(c))
        r = 0.1
        for _ in range(100):
            f = (c / (1 + r) ** t).sum()
            df = (-t * c / (1 + r) ** (t + 1)).sum()
            if df == 0:
                raise ValueError("no rate")
            r = r - f / df
        if not np.isfinite(r) or r <= -1:
            raise ValueError("no rate")
        ctx.slope = -((1 + r) ** -t.astype(float)) / df
        return vg.Tensor(r)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * ctx.slope


@call(np.array([95.0, 100.0, 110.0]), 100.0, 0.02, np.array([0.2, 0.25, 0.22]), 0.75, is_call=True)
class BlackScholes(Function):
    @staticmethod
    def forward(ctx, spot, strike, rate, vol, expiry, is_call=True):
        s, v = spot.detach().numpy(), vol.detach().numpy()
        d1 = (np.log(s / strike) + (rate + v**2 / 2) * expiry) / (v * np.sqrt(expiry))
        d2 = d1 - v * np.sqrt(expiry)
        sign = 1.0 if is_call else -1.0
        cdf = scipy.stats.norm.cdf
        ctx.delta = sign * cdf(sign * d1)
        ctx.vega = s * scipy.stats.norm.pdf(d1) * np.sqrt(expiry)
        return vg.Tensor(sign * (s * cdf(sign * d1) - strike * np.exp(-rate * expiry) * cdf(sign * d2)))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * ctx.delta, None, None, grad * ctx.vega, None, None


@call(np.array([100.0, 104.0, 98.0, 91.0, 97.0, 103.0]))
class MaxDrawdown(Function):
    @staticmethod
    def forward(ctx, prices):
        p = prices.detach().numpy()
        worst, ctx.n, ctx.pair = 0.0, len(p), None
        peak = 0
        for i in range(len(p)):
            if p[i] > p[peak]:
                peak = i
            d = 1 - p[i] / p[peak]
            if d > worst:
                worst, ctx.pair = d, (peak, i)
        ctx.p = p.copy()
        return vg.Tensor(worst)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = np.zeros(ctx.n)
        if ctx.pair is not None:
            peak, i = ctx.pair
            g[i] = -1 / ctx.p[peak]
            g[peak] = ctx.p[i] / ctx.p[peak] ** 2
        return grad * vg.Tensor(g)


@call(np.array([0.3, 0.5, 0.2]), SPD)
class PortfolioRisk(Function):
    @staticmethod
    def forward(ctx, w, cov):
        a, c = w.detach().numpy(), cov.detach().numpy()
        ctx.w, ctx.c = a.copy(), c.copy()
        ctx.sd = np.sqrt(a @ c @ a)
        return vg.Tensor(ctx.sd)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = grad.numpy() / (2 * ctx.sd)
        return vg.Tensor(g * (ctx.c + ctx.c.T) @ ctx.w), vg.Tensor(g * np.outer(ctx.w, ctx.w))


@call(X * 0.02 + 0.01)
def sharpe_ratio(r):
    return r.mean() / (vg.sqrt(((r - r.mean()) ** 2).mean()) + 1e-9)


@call(np.array([0.5, 1.0, 5.0, 10.0]), np.array([0.04, -0.02, 0.01]), 1.8, means={"domain": ((0.1, 50.0), None, None)})
class NelsonSiegel(Function):
    @staticmethod
    def forward(ctx, maturity, beta, tau):
        t, b = maturity.detach().numpy(), beta.detach().numpy()
        x = t / tau
        e = np.exp(-x)
        slope = -np.expm1(-x) / x
        ctx.design = np.stack([np.ones_like(t), slope, slope - e], axis=1)
        dslope = (e - slope) / x
        ctx.by_t = (b[1] * dslope + b[2] * (dslope + e)) / tau
        return vg.Tensor(ctx.design @ b)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = grad.numpy()
        return vg.Tensor(g * ctx.by_t), vg.Tensor(ctx.design.T @ g), None


# -- geometry ----------------------------------------------------------------------------------------------------------


@call(np.array([0.1, 0.2]), np.array([1.3, -0.4]), np.array([0.7, 1.9]))
def triangle_area(a, b, c):
    u, v = b - a, c - a
    return 0.5 * vg.abs(u[0] * v[1] - u[1] * v[0])


@call(TALL, np.array([0.6, 0.5]))
class BoxDistance(Function):
    """Signed distances of points to a box around the origin."""

    @staticmethod
    def forward(ctx, p, half):
        a, h = p.detach().numpy(), half.detach().numpy()
        q = np.abs(a) - h
        out = np.maximum(q, 0)
        length = np.sqrt((out**2).sum(-1))
        inside = np.minimum(q.max(-1), 0)
        ctx.sign = np.sign(a)
        unit = out / np.where(length > 0, length, 1)[..., None]
        pick = np.zeros_like(q)
        np.put_along_axis(pick, q.argmax(-1)[..., None], 1.0, -1)
        ctx.dq = np.where((length > 0)[..., None], unit, pick)
        return vg.Tensor(length + inside)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = grad.numpy()[..., None] * ctx.dq
        return vg.Tensor(g * ctx.sign), vg.Tensor(-g.sum(axis=0))


@call(np.array([0.3, -0.5, 0.8]))
def rodrigues(w):
    theta = vg.sqrt((w * w).sum() + 1e-12)
    k = w / theta
    z = k[0] * 0.0
    K = vg.stack([vg.stack([z, -k[2], k[1]]), vg.stack([k[2], z, -k[0]]), vg.stack([-k[1], k[0], z])])
    return vg.eye(3) + vg.sin(theta) * K + (1 - vg.cos(theta)) * (K @ K)


@call(N, 0.35)
class Bezier(Function):
    @staticmethod
    def forward(ctx, points, t):
        p = points.detach().numpy()
        n = len(p) - 1
        ctx.b = np.array([math.comb(n, k) * t**k * (1 - t) ** (n - k) for k in range(n + 1)])
        return vg.Tensor(ctx.b @ p)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return vg.Tensor(np.outer(ctx.b, grad.numpy())), None


@call(np.array([[0.0, 0.0], [2.0, 0.3], [2.4, 1.6], [0.4, 1.9]]))
class PolygonArea(Function):
    @staticmethod
    def forward(ctx, v):
        a = v.detach().numpy()
        x, y = (a - a[0]).T
        ctx.x, ctx.y = x.copy(), y.copy()
        return vg.Tensor(0.5 * (x * np.roll(y, -1) - y * np.roll(x, -1)).sum())

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        gx = 0.5 * (np.roll(ctx.y, -1) - np.roll(ctx.y, 1))
        gy = 0.5 * (np.roll(ctx.x, 1) - np.roll(ctx.x, -1))
        return grad * vg.Tensor(np.stack([gx, gy], axis=1))


@call(np.array([0.9, 0.1, -0.3, 0.5]))
class QuaternionToMatrix(Function):
    @staticmethod
    def forward(ctx, q):
        a = q.detach().numpy()
        if a.shape != (4,):
            raise ValueError("a quaternion")
        n = np.linalg.norm(a)
        w, x, y, z = u = a / n
        ctx.u, ctx.n = u, n
        return vg.Tensor(
            np.array(
                [
                    [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
                    [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
                    [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
                ]
            )
        )

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        w, x, y, z = ctx.u
        g = grad.numpy()
        gw = 2 * (-z * g[0, 1] + y * g[0, 2] + z * g[1, 0] - x * g[1, 2] - y * g[2, 0] + x * g[2, 1])
        gx = 2 * (y * (g[0, 1] + g[1, 0]) + z * (g[0, 2] + g[2, 0]) + w * (g[2, 1] - g[1, 2])) - 4 * x * (
            g[1, 1] + g[2, 2]
        )
        gy = 2 * (x * (g[0, 1] + g[1, 0]) + z * (g[1, 2] + g[2, 1]) + w * (g[0, 2] - g[2, 0])) - 4 * y * (
            g[0, 0] + g[2, 2]
        )
        gz = 2 * (x * (g[0, 2] + g[2, 0]) + y * (g[1, 2] + g[2, 1]) + w * (g[1, 0] - g[0, 1])) - 4 * z * (
            g[0, 0] + g[1, 1]
        )
        gu = np.array([gw, gx, gy, gz])
        return vg.Tensor((gu - ctx.u * (ctx.u @ gu)) / ctx.n)


@call(ATOMS, FACES)
class MeshVolume(Function):
    @staticmethod
    def forward(ctx, verts, faces):
        v, f = verts.detach().numpy(), faces.numpy()
        a, b, c = v[f[:, 0]], v[f[:, 1]], v[f[:, 2]]
        ctx.a, ctx.b, ctx.c, ctx.f, ctx.n = a, b, c, f.copy(), v.shape
        return vg.Tensor((a * np.cross(b, c)).sum() / 6)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        out = np.zeros(ctx.n)
        np.add.at(out, ctx.f[:, 0], np.cross(ctx.b, ctx.c))
        np.add.at(out, ctx.f[:, 1], np.cross(ctx.c, ctx.a))
        np.add.at(out, ctx.f[:, 2], np.cross(ctx.a, ctx.b))
        return grad * vg.Tensor(out / 6), None


@call(ATOMS + np.array([0.0, 0.0, 4.0]), focal=1.5)
class Projection(Function):
    @staticmethod
    def forward(ctx, p, focal=1.0):
        a = p.detach().numpy()
        ctx.a, ctx.focal = a.copy(), focal
        return vg.Tensor(focal * a[:, :2] / a[:, 2:])

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g, a = grad.numpy(), ctx.a
        out = np.zeros(a.shape)
        out[:, :2] = ctx.focal * g / a[:, 2:]
        out[:, 2] = -ctx.focal * (g * a[:, :2]).sum(axis=1) / a[:, 2] ** 2
        return vg.Tensor(out), None


@call(TALL, np.array([0.5, -0.2]), np.array([0.6, 0.8]))
def plane_distance(points, origin, normal):
    return (points - origin) @ normal


# -- declarations ------------------------------------------------------------------------------------------------------


square_plus = call(X, b=4.0)(
    define_op(
        "newcomer_square_plus(self, b=4.0)",
        forward=lambda self, b=4.0: 0.5 * (self + np.sqrt(self**2 + b)),
        derivatives={"self": "grad * 0.5 * (1.0 + self / sqrt(self**2 + b))"},
        doc="(x + sqrt(x² + b)) / 2",
    )
)
smooth_step = call(UNIT)(
    define_op(
        "newcomer_smooth_step(x)",
        forward=lambda x: np.clip(x, 0, 1) ** 2 * (3 - 2 * np.clip(x, 0, 1)),
        derivatives={"x": "grad * where((x > 0) & (x < 1), 6 * x * (1 - x), 0.0)"},
        doc="A cubic between 0 and 1.",
    )
)
clipped_logit = call(UNIT, eps=1e-3)(
    define_op(
        "newcomer_clipped_logit(p, eps=1e-6)",
        forward=lambda p, eps=1e-6: np.log(np.clip(p, eps, 1 - eps) / (1 - np.clip(p, eps, 1 - eps))),
        derivatives={"p": "grad * where((p > eps) & (p < 1 - eps), 1 / (p * (1 - p)), 0.0)"},
        doc="log(p / (1 - p)) of clipped p",
    )
)
sin_cos = call(X)(
    define_op(
        "newcomer_sin_cos(x) -> (s, c)",
        forward=lambda x: (np.sin(x), np.cos(x)),
        derivatives={"x": "grad_s * c - grad_c * s"},
        doc="Sine and cosine.",
    )
)
huber_element = call(X, Y, delta=0.7)(
    define_op(
        "newcomer_huber(a, b, delta=1.0)",
        forward=lambda a, b, delta=1.0: np.where(
            np.abs(a - b) <= delta, 0.5 * (a - b) ** 2, delta * (np.abs(a - b) - 0.5 * delta)
        ),
        derivatives={"a": "grad * clip(a - b, -delta, delta)", "b": "-grad * clip(a - b, -delta, delta)"},
        doc="Quadratic near zero, linear elsewhere.",
    )
)
gaussian_of = call(X, np.array(0.4), np.array(0.9), means={"domain": (None, None, (0.2, 3.0))})(
    define_op(
        "newcomer_gaussian(x, mu, sigma)",
        forward=lambda x, mu, sigma: np.exp(-0.5 * ((x - mu) / sigma) ** 2),
        derivatives={
            "x": "-grad * result * (x - mu) / sigma**2",
            "mu": "grad * result * (x - mu) / sigma**2",
            "sigma": "grad * result * (x - mu) ** 2 / sigma**3",
        },
        doc="A bump.",
    )
)
scaled_log1p = call(PLUS, scale=2.0)(
    define_op(
        "newcomer_scaled_log1p(x, scale=1.0)",
        forward=lambda x, scale=1.0: np.log1p(np.abs(x) * scale),
        derivatives={"x": "grad * sign(x) * scale / (1 + abs(x) * scale)"},
        inplace=True,
        doc="log(1 + scale |x|)",
    )
)
mean_square = call(M, axis=1)(
    define_op(
        "newcomer_mean_square(x, axis=0)",
        forward=lambda x, axis=0: (x**2).mean(axis=axis, keepdims=True),
        derivatives={"x": "grad * 2 * x / x.shape[axis]"},
        doc="The mean square along an axis.",
    )
)
