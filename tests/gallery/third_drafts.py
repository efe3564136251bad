"""Correct operators as people first write them, drawn up after those of `second_drafts.py`.

`CALLS` has the call of each and its author's declarations.
"""

import math

import numpy as np
import scipy.linalg
import scipy.ndimage
import scipy.sparse
import scipy.special

import viewgrad as vg
from viewgrad.autograd import Function, define_op, once_differentiable

from .newcomers import ATOMS, IMAGE, PLUS, SIGNAL, SPD, TALL, UNIT, VOLUME, WEIGHTS, M, N, X, Y, registering

CALLS = {}
call = registering(CALLS)


@call(VOLUME, num_groups=3)
class ChannelGroups(Function):
    """x: (batch, channels, length); each group of channels is centered and scaled."""

    @staticmethod
    def forward(ctx, x, num_groups, eps=1e-5):
        a = x.detach().numpy()
        b, c, _ = a.shape
        if c % num_groups:
            raise ValueError("channels must divide into groups")
        y = a.reshape(b, num_groups, -1)
        sd = np.sqrt(y.var(axis=2, keepdims=True) + eps)
        y = (y - y.mean(axis=2, keepdims=True)) / sd
        ctx.y, ctx.sd, ctx.shape = y, sd, a.shape
        return vg.Tensor(y.reshape(a.shape))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = grad.numpy().reshape(ctx.y.shape)
        dx = (g - g.mean(axis=2, keepdims=True) - ctx.y * (g * ctx.y).mean(axis=2, keepdims=True)) / ctx.sd
        return vg.Tensor(dx.reshape(ctx.shape)), None, None


@call(TALL, np.array([[0.5, -0.3], [0.8, 0.4]]), np.array([0.3, -0.1]))
class ElmanLayer(Function):
    """h[t] = tanh(x[t] + W h[t-1]), from h0; gives all states."""

    @staticmethod
    def forward(ctx, x, w, h0):
        xs, W, h = x.detach().numpy(), w.detach().numpy(), h0.detach().numpy()
        hs = [h.copy()]
        for t in range(len(xs)):
            hs.append(np.tanh(xs[t] + W @ hs[-1]))
        ctx.hs, ctx.W = hs, W.copy()
        return vg.Tensor(np.array(hs[1:]).reshape(xs.shape))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = grad.numpy()
        gx, gW = np.zeros(g.shape), np.zeros(ctx.W.shape)
        carry = np.zeros(len(ctx.hs[0]))
        for t in range(len(g) - 1, -1, -1):
            d = (g[t] + carry) * (1 - ctx.hs[t + 1] ** 2)
            gx[t] = d
            gW += np.outer(d, ctx.hs[t])
            carry = ctx.W.T @ d
        return vg.Tensor(gx), vg.Tensor(gW), vg.Tensor(carry)


@call(M, np.array([0.7, 1.1, 0.4]))
class SwishBeta(Function):
    @staticmethod
    def forward(ctx, x, beta):
        a, b = x.detach().numpy(), beta.detach().numpy()
        s = 1 / (1 + np.exp(-b * a))
        ctx.save_for_backward(x, beta)
        ctx.s = s
        return vg.Tensor(a * s)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x, beta = ctx.saved_tensors
        a, b, s, g = x.detach().numpy(), beta.detach().numpy(), ctx.s, grad.numpy()
        ds = s * (1 - s)
        return vg.Tensor(g * (s + a * b * ds)), vg.Tensor((g * a * a * ds).sum(axis=0))


@call(N, k=2)
class TopGates(Function):
    """The softmax of the k largest of each row, zero elsewhere."""

    @staticmethod
    def forward(ctx, x, k=1):
        a = x.detach().numpy()
        idx = np.argsort(a, axis=1)[:, -k:]
        top = np.take_along_axis(a, idx, 1)
        e = np.exp(top - top.max(axis=1, keepdims=True))
        ctx.p, ctx.idx, ctx.shape = e / e.sum(axis=1, keepdims=True), idx, a.shape
        out = np.zeros(a.shape)
        np.put_along_axis(out, idx, ctx.p, 1)
        return vg.Tensor(out)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = np.take_along_axis(grad.numpy(), ctx.idx, 1)
        d = ctx.p * (g - (g * ctx.p).sum(axis=1, keepdims=True))
        out = np.zeros(ctx.shape)
        np.put_along_axis(out, ctx.idx, d, 1)
        return vg.Tensor(out), None


@call(IMAGE, (2, 3))
class AdaptiveMean(Function):
    @staticmethod
    def forward(ctx, x, size):
        a = x.detach().numpy()
        h, w = a.shape
        m, n = size
        ctx.cells, ctx.shape = [], a.shape
        out = np.zeros((m, n))
        for i in range(m):
            for j in range(n):
                s = (slice(i * h // m, -(-(i + 1) * h // m)), slice(j * w // n, -(-(j + 1) * w // n)))
                ctx.cells.append((i, j, s))
                out[i, j] = a[s].mean()
        return vg.Tensor(out)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = np.zeros(ctx.shape)
        for i, j, s in ctx.cells:
            g[s] += grad.numpy()[i, j] / g[s].size
        return vg.Tensor(g), None


@call(X, 0.3, training=True)
def noisy(x, amount, training=True):
    if not training:
        return x * 1.0
    noise = np.random.default_rng(5).normal(size=x.shape)
    return x + amount * noise * x


@call(M, M * 0.3 - 0.2, gate=np.array([True, False]))
class RowSwitch(Function):
    @staticmethod
    def forward(ctx, a, b, gate):
        ctx.m = np.asarray(gate.numpy() if hasattr(gate, "numpy") else gate)[:, None]
        return vg.Tensor(np.where(ctx.m, a.detach().numpy(), b.detach().numpy()))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = grad.numpy()
        return vg.Tensor(np.where(ctx.m, g, 0)), vg.Tensor(np.where(ctx.m, 0, g)), None


@call(X, Y, p=3)
class PNormDistance(Function):
    @staticmethod
    def forward(ctx, a, b, p=2):
        d = a.detach().numpy() - b.detach().numpy()
        s = (np.abs(d) ** p).sum()
        ctx.d, ctx.s, ctx.p = d, s, p
        return vg.Tensor(s ** (1 / p))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        d, s, p = ctx.d, ctx.s, ctx.p
        if s == 0:
            g = np.zeros_like(d)
        else:
            g = np.sign(d) * np.abs(d) ** (p - 1) * s ** (1 / p - 1) * grad.numpy()
        return vg.Tensor(g), vg.Tensor(-g), None


@call(N, N[::-1] * 0.5, np.array([1, 1, 0, 1]), margin=0.3)
class CosineEmbedding(Function):
    @staticmethod
    def forward(ctx, a, b, same, margin=0.0):
        u, v, y = a.detach().numpy(), b.detach().numpy(), same.numpy()
        nu, nv = np.linalg.norm(u, axis=1), np.linalg.norm(v, axis=1)
        c = (u * v).sum(axis=1) / (nu * nv)
        ctx.g = np.where(y == 1, -1.0, (c > margin) * 1.0) / len(y)
        ctx.u, ctx.v, ctx.nu, ctx.nv, ctx.c = u.copy(), v.copy(), nu, nv, c
        return vg.Tensor(np.where(y == 1, 1 - c, np.maximum(c - margin, 0)).mean())

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = (ctx.g * grad.numpy())[:, None]
        nu, nv, c = ctx.nu[:, None], ctx.nv[:, None], ctx.c[:, None]
        gu = g * (ctx.v / (nu * nv) - c * ctx.u / nu**2)
        gv = g * (ctx.u / (nu * nv) - c * ctx.v / nv**2)
        return vg.Tensor(gu), vg.Tensor(gv), None, None


@call(UNIT, np.array([0.2, 0.5, 0.4, 0.7]), base=2.0, means={"domain": (0.01, 1.0)})
class JensenShannon(Function):
    @staticmethod
    def forward(ctx, p, q, base=math.e):
        a, b = p.detach().numpy(), q.detach().numpy()
        m = (a + b) / 2
        ctx.ga, ctx.gb = np.log(a / m) / 2 / np.log(base), np.log(b / m) / 2 / np.log(base)
        return vg.Tensor(((a * np.log(a / m)).sum() + (b * np.log(b / m)).sum()) / 2 / np.log(base))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * vg.Tensor(ctx.ga), grad * vg.Tensor(ctx.gb), None


@call(np.array([0.3, 1.1, 2.0]), np.array([1.0, 0.0, 1.0]), means={"valid": lambda t, e: t.shape == e.shape})
class CoxPartial(Function):
    """Log risks in order of decreasing time, and whether each event was observed."""

    @staticmethod
    def forward(ctx, risk, event):
        r, e = risk.detach().numpy(), event.detach().numpy()
        lse = np.logaddexp.accumulate(r)
        ctx.r, ctx.e, ctx.lse = r.copy(), e.copy(), lse
        return vg.Tensor(-(e * (r - lse)).sum())

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        r, e, lse = ctx.r, ctx.e, ctx.lse
        w = np.tril(np.exp(r[None, :] - lse[:, None]))
        g = grad.numpy()
        return vg.Tensor(g * (e @ w - e)), vg.Tensor(-g * (r - lse))


@call(np.array([0.9, 0.2, -0.4]), np.array([0.1, 0.7, 0.3]), box=2.0)
class PeriodicDistance(Function):
    @staticmethod
    def forward(ctx, a, b, box=1.0):
        d = a.detach().numpy() - b.detach().numpy()
        d = d - box * np.round(d / box)
        r = np.sqrt((d**2).sum())
        ctx.u = d / r if r > 0 else np.zeros_like(d)
        return vg.Tensor(r)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = grad.numpy() * ctx.u
        return vg.Tensor(g), vg.Tensor(-g), None


@call(ATOMS[:3])
class BondAngle(Function):
    @staticmethod
    def forward(ctx, p):
        a, b, c = p.detach().numpy()
        u, v = a - b, c - b
        nu, nv = np.linalg.norm(u), np.linalg.norm(v)
        cosine = u @ v / (nu * nv)
        sine = np.sqrt(1 - cosine**2)
        ga = -(v / (nu * nv) - cosine * u / nu**2) / sine
        gc = -(u / (nu * nv) - cosine * v / nv**2) / sine
        ctx.g = np.array([ga, -ga - gc, gc])
        return vg.Tensor(np.arccos(cosine))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * vg.Tensor(ctx.g)


@call(np.array([1.2, 0.8, 1.5]), np.array([300.0, 350.0, 420.0]), 1.38e-2)
class Boltzmann(Function):
    @staticmethod
    def forward(ctx, energy, temperature, kb):
        e, t = energy.detach().numpy(), temperature.detach().numpy()
        y = np.exp(-e / (kb * t))
        ctx.ge, ctx.gt = -y / (kb * t), y * e / (kb * t**2)
        return vg.Tensor(y)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * vg.Tensor(ctx.ge), grad * vg.Tensor(ctx.gt), None


@call(np.array([[0.1, 0.9, 0.4], [0.8, 0.3, 0.6]]), dx=0.5)
def dirichlet_energy(u, dx=1.0):
    gx = (u[:, 1:] - u[:, :-1]) / dx
    gy = (u[1:] - u[:-1]) / dx
    return 0.5 * ((gx**2).sum() + (gy**2).sum()) * dx**2


@call(SIGNAL, limiter="minmod")
class LimitedSlopes(Function):
    @staticmethod
    def forward(ctx, u, limiter="minmod"):
        a = u.detach().numpy()
        l, r = a[1:-1] - a[:-2], a[2:] - a[1:-1]
        if limiter == "minmod":
            pick_l = (l * r > 0) & (np.abs(l) <= np.abs(r))
            pick_r = (l * r > 0) & ~pick_l
            ctx.cl, ctx.cr = pick_l * 1.0, pick_r * 1.0
        elif limiter == "central":
            ctx.cl = ctx.cr = np.full(l.shape, 0.5)
        else:
            raise ValueError(limiter)
        ctx.n = len(a)
        return vg.Tensor(ctx.cl * l + ctx.cr * r)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = grad.numpy()
        out = np.zeros(ctx.n)
        out[:-2] -= g * ctx.cl
        out[1:-1] += g * (ctx.cl - ctx.cr)
        out[2:] += g * ctx.cr
        return vg.Tensor(out), None


@call(np.array([0.5, 1.2]), np.array([0.3, 0.6, 0.9]))
class Lagrange(Function):
    """The polynomial through (0, y0), (1, y1), (2, y2), at points."""

    @staticmethod
    def forward(ctx, x, y):
        a, v = x.detach().numpy(), y.detach().numpy()
        if v.shape != (3,):
            raise ValueError("three values")
        ctx.b = np.stack([(a - 1) * (a - 2) / 2, -a * (a - 2), a * (a - 1) / 2], -1)
        ctx.s = np.stack([(2 * a - 3) / 2, -(2 * a - 2), (2 * a - 1) / 2], -1) @ v
        return vg.Tensor(ctx.b @ v)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = grad.numpy()
        return vg.Tensor(g * ctx.s), vg.Tensor(np.tensordot(g, ctx.b, axes=g.ndim))


@call(IMAGE, angle=0.3)
class RotateNearest(Function):
    @staticmethod
    def forward(ctx, x, angle):
        a = x.detach().numpy()
        h, w = a.shape
        i, j = np.indices(a.shape)
        c, s = np.cos(angle), np.sin(angle)
        y, z = i - (h - 1) / 2, j - (w - 1) / 2
        si = np.round(c * y - s * z + (h - 1) / 2).astype(int)
        sj = np.round(s * y + c * z + (w - 1) / 2).astype(int)
        ctx.ok = (si >= 0) & (si < h) & (sj >= 0) & (sj < w)
        ctx.si, ctx.sj, ctx.shape = si, sj, a.shape
        out = np.zeros(a.shape)
        out[ctx.ok] = a[si[ctx.ok], sj[ctx.ok]]
        return vg.Tensor(out)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        out = np.zeros(ctx.shape)
        np.add.at(out, (ctx.si[ctx.ok], ctx.sj[ctx.ok]), grad.numpy()[ctx.ok])
        return vg.Tensor(out), None


@call(SIGNAL, window=4, hop=2)
class FrameEnergy(Function):
    @staticmethod
    def forward(ctx, x, window=4, hop=2):
        a = x.detach().numpy()
        n = 1 + (len(a) - window) // hop
        w = np.hanning(window + 2)[1:-1]
        idx = hop * np.arange(n)[:, None] + np.arange(window)
        ctx.f, ctx.idx, ctx.w, ctx.n = a[idx] * w, idx, w, len(a)
        return vg.Tensor((ctx.f**2).sum(axis=1))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        out = np.zeros(ctx.n)
        np.add.at(out, ctx.idx, 2 * ctx.f * ctx.w * grad.numpy()[:, None])
        return vg.Tensor(out), None, None


@call(SIGNAL, 0.5, state=0.2)
def leaky_integrate(x, leak, state=0.0):
    out = vg.zeros_like(x)
    for t in range(len(x)):
        state = (1 - leak) * state + leak * x[t]
        out[t] = state
    return out


@call(X * 1.5, bits=3, means={"surrogate": lambda x, bits=8: vg.clip(x, -1.0, 1.0)})
class UniformQuantizer(Function):
    @staticmethod
    def forward(ctx, x, bits=8):
        n = 2**bits - 1
        a = x.detach().numpy()
        ctx.inside = np.abs(a) <= 1
        return vg.Tensor(np.round((np.clip(a, -1, 1) + 1) / 2 * n) / n * 2 - 1)

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.inside, None


@call(TALL, np.array([0, 1, 1, 0, 2]), num=3)
class ScatterMax(Function):
    @staticmethod
    def forward(ctx, x, index, num):
        a, i = x.detach().numpy(), index.numpy()
        out = np.full((num, a.shape[1]), -np.inf)
        ctx.arg = np.zeros((num, a.shape[1]), int)
        for row in range(len(a)):
            better = a[row] > out[i[row]]
            out[i[row]][better] = a[row][better]
            ctx.arg[i[row]][better] = row
        ctx.empty = np.isinf(out)
        out[ctx.empty] = 0
        ctx.shape = a.shape
        return vg.Tensor(out)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = np.where(ctx.empty, 0, grad.numpy())
        out = np.zeros(ctx.shape)
        for j in range(out.shape[1]):
            np.add.at(out[:, j], ctx.arg[:, j], g[:, j])
        return vg.Tensor(out), None, None


@call(WEIGHTS, X[:3])
class SparseProduct(Function):
    """A matrix with a fixed sparsity, by SciPy."""

    @staticmethod
    def forward(ctx, a, x):
        m = scipy.sparse.csr_matrix(np.where(np.abs(a.detach().numpy()) > 0.15, a.detach().numpy(), 0))
        ctx.m, ctx.x, ctx.mask = m, x.detach().numpy().copy(), np.abs(a.detach().numpy()) > 0.15
        return vg.Tensor(m @ ctx.x)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = grad.numpy()
        return vg.Tensor(np.outer(g, ctx.x) * ctx.mask), vg.Tensor(ctx.m.T @ g)


CALLS["SparseProduct"] = ((WEIGHTS, X[:3]), {}, {"valid": lambda a, x: a.ndim == 2 and x.ndim == 1})


@call(SPD, X[:3], jitter=1e-6)
class GaussianProcessFit(Function):
    @staticmethod
    def forward(ctx, k, y, jitter=0.0):
        a = k.detach().numpy() + jitter * np.eye(len(y))
        l = scipy.linalg.cholesky(a, lower=True)
        ctx.alpha = scipy.linalg.cho_solve((l, True), y.detach().numpy())
        ctx.inv = scipy.linalg.cho_solve((l, True), np.eye(len(y)))
        return vg.Tensor(-0.5 * y.detach().numpy() @ ctx.alpha - np.log(np.diag(l)).sum())

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = grad.numpy()
        gk = 0.5 * (np.outer(ctx.alpha, ctx.alpha) - ctx.inv)
        return vg.Tensor(g * gk), vg.Tensor(-g * ctx.alpha), None


CALLS["GaussianProcessFit"] = ((SPD, X[:3]), {"jitter": 1e-6}, {"structure": {"k": "symmetric"}})


@call(N)
class QrOfTall(Function):
    """R of the QR factorization, with a positive diagonal."""

    @staticmethod
    def forward(ctx, a):
        m = a.detach().numpy()
        if m.ndim != 2 or m.shape[0] < m.shape[1]:
            raise ValueError("a tall matrix")
        q, r = np.linalg.qr(m)
        s = np.where(np.diag(r) < 0, -1.0, 1.0)
        ctx.q, ctx.r = q * s, s[:, None] * r
        return vg.Tensor(ctx.r)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = np.triu(grad.numpy())
        m = ctx.r @ g.T
        sym = np.tril(m, -1)
        inner = sym + sym.T + np.diag(np.diag(m))
        return vg.Tensor(ctx.q @ np.linalg.solve(ctx.r, inner).T)


@call(np.array([2.0, -3.0, 1.5]), 0.7)
class HornerWithSlope(Function):
    """A polynomial at one point, and its slope there: two results."""

    @staticmethod
    def forward(ctx, c, t):
        a = c.detach().numpy()
        ctx.n, ctx.t = len(a), t
        p = d = 0.0
        for x in a[::-1]:
            d = d * t + p
            p = p * t + x
        return vg.Tensor(p), vg.Tensor(d)

    @staticmethod
    @once_differentiable
    def backward(ctx, gp, gd):
        k = np.arange(ctx.n)
        powers = ctx.t**k
        slopes = np.where(k > 0, k * ctx.t ** np.maximum(k - 1, 0), 0.0)
        return vg.Tensor(gp.numpy() * powers + gd.numpy() * slopes), None


@call(PLUS, PLUS[::-1] * 0.4, rho=-0.5)
class CesUtility(Function):
    @staticmethod
    def forward(ctx, x, w, rho=0.5):
        a, b = x.detach().numpy(), w.detach().numpy()
        if (a <= 0).any() or rho == 0:
            raise ValueError("positive goods")
        s = (b * a**rho).sum()
        ctx.a, ctx.b, ctx.s, ctx.rho = a.copy(), b.copy(), s, rho
        return vg.Tensor(s ** (1 / rho))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        a, b, s, r = ctx.a, ctx.b, ctx.s, ctx.rho
        u = s ** (1 / r - 1)
        return grad * (u * b * a ** (r - 1)), grad * (u * a**r / r), None


@call(np.array([100.0, 101.5, 99.0, 102.0]), short=2)
def momentum(prices, short=2):
    r = prices[1:] / prices[:-1] - 1
    return r[-short:].mean() - r.mean()


@call(np.array([0.03, 0.032, 0.035]), np.array([1.0, 2.0, 3.0]))
class ZeroCouponDuration(Function):
    @staticmethod
    def forward(ctx, rates, times):
        r, t = rates.detach().numpy(), times.detach().numpy()
        p = np.exp(-r * t)
        total = p.sum()
        dur = (t * p).sum() / total
        ctx.gr = (-(t**2) * p + dur * t * p) / total
        ctx.gt = (p - t * r * p + dur * r * p) / total
        return vg.Tensor(dur)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * vg.Tensor(ctx.gr), grad * vg.Tensor(ctx.gt)


@call(TALL, np.array([0.2, -0.1]), 0.9)
def circle_residuals(points, center, radius):
    d = points - center
    return vg.sqrt((d * d).sum(axis=1)) - radius


@call(np.array([[0.0, 0.0, 0.0], [1.0, 0.1, 0.2], [0.2, 1.3, 0.1], [0.1, 0.3, 1.1]]))
class TetrahedronVolume(Function):
    @staticmethod
    def forward(ctx, v):
        p = v.detach().numpy()
        if p.shape != (4, 3):
            raise ValueError("four corners")
        m = p[1:] - p[0]
        d = np.linalg.det(m)
        cof = np.array([np.cross(m[1], m[2]), np.cross(m[2], m[0]), np.cross(m[0], m[1])])
        ctx.g = np.sign(d) / 6 * np.concatenate([-cof.sum(axis=0, keepdims=True), cof])
        return vg.Tensor(abs(d) / 6)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * vg.Tensor(ctx.g)


@call(X, low=-1.0, high=2.0, invert=True)
class Rescale(Function):
    @staticmethod
    def forward(ctx, x, low=0.0, high=1.0, invert=False):
        ctx.scale = (high - low) * (-1 if invert else 1)
        a = x.detach().numpy()
        return vg.Tensor((high if invert else low) + ctx.scale * a)

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.scale, None, None, None


@call(M, order="F")
class Flatten(Function):
    @staticmethod
    def forward(ctx, x, order="C"):
        ctx.shape, ctx.order = x.shape, order
        return vg.Tensor(x.detach().numpy().ravel(order))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return vg.Tensor(grad.numpy().reshape(ctx.shape, order=ctx.order)), None


@call(X, Y, which="both")
class SumAndProduct(Function):
    @staticmethod
    def forward(ctx, a, b, which="both"):
        ctx.save_for_backward(a, b)
        ctx.which = which
        s, p = a + b, a * b
        return (s, p) if which == "both" else s if which == "sum" else p

    @staticmethod
    def backward(ctx, *grads):
        a, b = ctx.saved_tensors
        if ctx.which == "both":
            gs, gp = grads
            return gs + gp * b, gs + gp * a, None
        (g,) = grads
        return (g, g, None) if ctx.which == "sum" else (g * b, g * a, None)


@call(np.array([3.0, 0.0, 2.0, 1.0]), np.array([0.5, 0.8, 1.2, 0.1]))
def negative_binomial_nll(k, log_mean, dispersion=2.0):
    m = vg.exp(log_mean)
    p = dispersion / (dispersion + m)
    return -(dispersion * vg.log(p) + k * vg.log1p(-p)).sum()


@call(X, np.array([0.0, 1.0, 0.0, 2.0, 1.0]), zero_inflation=0.2)
class ZeroInflatedPoisson(Function):
    @staticmethod
    def forward(ctx, log_rate, counts, zero_inflation=0.1):
        r, k = np.exp(log_rate.detach().numpy()), counts.detach().numpy()
        z = zero_inflation
        at0 = z + (1 - z) * np.exp(-r)
        ll = np.where(k == 0, np.log(at0), np.log(1 - z) + k * np.log(r) - r - scipy.special.gammaln(k + 1))
        ctx.g = np.where(k == 0, -(1 - z) * np.exp(-r) * r / at0, k - r)
        return vg.Tensor(-ll.sum())

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return -grad * vg.Tensor(ctx.g), None, None


CALLS["ZeroInflatedPoisson"] = (
    (vg.Tensor(X, requires_grad=True), np.array([0.0, 1.0, 0.0, 2.0, 1.0])),
    {"zero_inflation": 0.2},
    {},
)


smooth_abs = call(X, mu=0.1)(
    define_op(
        "third_smooth_abs(x, mu=1e-2)",
        forward=lambda x, mu=1e-2: np.sqrt(x**2 + mu**2) - mu,
        derivatives={"x": "grad * x / sqrt(x**2 + mu**2)"},
        doc="|x|, smooth at 0.",
    )
)
log_cosh_of = call(X)(
    define_op(
        "third_log_cosh(x)",
        forward=lambda x: np.abs(x) + np.log1p(np.exp(-2 * np.abs(x))) - np.log(2),
        derivatives={"x": "grad * tanh(x)"},
        inplace=True,
        doc="log(cosh(x))",
    )
)
weighted_pair = call(X, Y, w=0.3)(
    define_op(
        "third_weighted_pair(a, b, *, w) -> (mean, spread)",
        forward=lambda a, b, *, w: (w * a + (1 - w) * b, w * (1 - w) * (a - b) ** 2),
        derivatives={
            "a": "w * grad_mean + 2 * w * (1 - w) * (a - b) * grad_spread",
            "b": "(1 - w) * grad_mean - 2 * w * (1 - w) * (a - b) * grad_spread",
        },
        doc="Mean and variance of two values.",
    )
)
relu_power = call(X, p=2)(
    define_op(
        "third_relu_power(x, p=2)",
        forward=lambda x, p=2: np.maximum(x, 0) ** p,
        derivatives={"x": "grad * p * maximum(x, 0) ** (p - 1)"},
        doc="A power of the positive part.",
    )
)
