"""Correct operators with custom gradients after public code: sequence models, rendering, lattices, statistics, solvers.

They are written with care. `published_faults.py` has edits that make them wrong. `CALLS` has the call of each and its
author's declarations.
"""

import numpy as np
import scipy.fft
import scipy.linalg
import scipy.special

import viewgrad as vg
from viewgrad.autograd import Function, define_op, once_differentiable

from .newcomers import registering

CALLS = {}
call = registering(CALLS)

X = np.array([0.55, -1.25, 2.05, 0.35, -0.45])
Y = np.array([1.15, 0.65, -0.75, 0.25, 1.85])
PLUS = np.array([0.75, 1.65, 2.35, 0.5, 1.05])
UNIT = np.array([0.22, 0.71, 0.46, 0.88])
M = np.array([[0.65, -1.35, 2.15], [1.85, 0.45, -0.55]])
SQUARE = np.array([[1.25, 0.35, -0.45], [0.45, 1.65, 0.25], [-0.15, 0.55, 1.05]])
LOGITS = np.array([[0.35, -1.05, 0.75, 0.15], [1.65, 0.25, -0.35, -0.85], [0.55, 0.45, -1.15, 0.95]])
SPD = np.array([[2.1, 0.35, 0.15], [0.35, 1.55, -0.25], [0.15, -0.25, 1.75]])
CLOUD = np.array([[0.15, 0.85, 0.35], [1.15, -0.35, 0.55], [-0.65, 0.25, -1.05], [0.45, 0.75, -0.25]])
SIGNAL = np.sin(1.05 * np.arange(8.0)) + 0.06 * np.arange(8.0)
IMAGE = np.cos(1.6 * np.arange(20.0)).reshape(4, 5)
QUATERNION = np.array([0.75, 0.25, -0.45, 0.35])


def raw(tensor):
    return tensor.detach().numpy()


# -- activations and normalization -------------------------------------------------------------------------------------


@call(X, alpha=1.4)
class InverseSquareRootUnit(Function):
    @staticmethod
    def forward(ctx, x, alpha=1.0):
        below = vg.minimum(x, 0.0)
        ctx.save_for_backward(x)
        ctx.alpha = alpha
        return x / vg.sqrt(1 + alpha * below * below)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        below = vg.minimum(x, 0.0)
        root = 1 / vg.sqrt(1 + ctx.alpha * below * below)
        return grad * root**3, None


@call(SQUARE, np.array([0.9, 1.2, 0.7]))
class RootMeanSquareRows(Function):
    @staticmethod
    def forward(ctx, x, weight, eps=1e-6):
        if x.ndim != 2:
            raise ValueError("rows of features expected")
        a, w = raw(x), raw(weight)
        ctx.r = 1 / np.sqrt((a * a).mean(axis=1) + eps)
        ctx.a, ctx.w = a.copy(), w.copy()
        if w.shape != a.shape[1:]:
            raise ValueError("one weight for each feature expected")
        return vg.Tensor(a * ctx.r[:, None] * w)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        a, r, g = ctx.a, ctx.r, grad.numpy()
        gw = g * ctx.w
        term = (gw * a).sum(axis=1) * r**3 / a.shape[1]
        return vg.Tensor(gw * r[:, None] - a * term[:, None]), vg.Tensor((g * a * r[:, None]).sum(axis=0)), None


@call(M, seed=3)
class DropoutAdd(Function):
    """x plus a dropped-out copy of its squares; the mask is drawn from a seed."""

    @staticmethod
    def forward(ctx, x, seed, p=0.4):
        if not 0 <= p < 1 or seed < 0:
            raise ValueError("p between 0 and 1, and a seed that is not negative")
        ctx.mask = (np.random.default_rng(seed).random(x.shape) >= p) / (1 - p)
        ctx.save_for_backward(x)
        return x + x * x * vg.Tensor(ctx.mask)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * (1 + 2 * x * vg.Tensor(ctx.mask)), None, None


@call(M)
class Crelu(Function):
    @staticmethod
    def forward(ctx, x):
        if x.ndim < 1:
            raise ValueError("at least one axis")
        ctx.positive, ctx.negative = raw(x) > 0, raw(x) < 0
        return vg.concatenate([vg.maximum(x, 0.0), vg.maximum(-x, 0.0)], axis=-1)

    @staticmethod
    def backward(ctx, grad):
        n = ctx.positive.shape[-1]
        first, second = grad[..., :n], grad[..., n:]
        return vg.where(ctx.positive, first, 0.0) - vg.where(ctx.negative, second, 0.0)


# -- losses ------------------------------------------------------------------------------------------------------------


@call(LOGITS, np.array([2, 0, 3]), ignored=0)
class FusedCrossEntropy(Function):
    """The gradient is computed in the forward pass, and scaled in the backward pass."""

    @staticmethod
    def forward(ctx, logits, targets, ignored=-100):
        z, t = raw(logits), raw(targets)
        if z.ndim != 2 or t.shape != z.shape[:1]:
            raise ValueError("a row of logits for each target expected")
        kept = t != ignored
        if not kept.any() or t[kept].min() < 0:
            raise ValueError("no targets")
        n = kept.sum()
        rows = np.flatnonzero(kept)
        log_p = z - scipy.special.logsumexp(z, axis=1, keepdims=True)
        g = np.exp(log_p)
        g[rows, t[rows]] -= 1
        g[~kept] = 0
        ctx.g = g / n
        return vg.Tensor(-log_p[rows, t[rows]].sum() / n)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * vg.Tensor(ctx.g), None, None


@call(LOGITS, np.abs(LOGITS) / np.abs(LOGITS).sum(axis=1, keepdims=True))
class SoftLabelEntropy(Function):
    @staticmethod
    def forward(ctx, logits, labels):
        if logits.ndim != 2 or logits.shape != labels.shape:
            raise ValueError("logits and labels of one shape expected")
        log_p = logits - vg.logsumexp(logits, axis=-1, keepdims=True)
        ctx.save_for_backward(logits, labels)
        return -(labels * log_p).sum(axis=-1)

    @staticmethod
    def backward(ctx, grad):
        logits, labels = ctx.saved_tensors
        g = grad[:, None]
        log_p = logits - vg.logsumexp(logits, axis=-1, keepdims=True)
        total = labels.sum(axis=-1, keepdims=True)
        return g * (total * vg.exp(log_p) - labels), -g * log_p


@call(M[:, :2] @ M[:, :2].T + M[:, :2])
class DecorrelationLoss(Function):
    """Half the squared off-diagonal covariances of features, whose rows are samples."""

    @staticmethod
    def forward(ctx, h):
        if h.ndim != 2:
            raise ValueError("a matrix expected")
        a = raw(h)
        d = a - a.mean(axis=0)
        c = d.T @ d / len(a)
        np.fill_diagonal(c, 0.0)
        ctx.d, ctx.c = d, c
        return vg.Tensor(0.5 * (c * c).sum())

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * vg.Tensor(2 * ctx.d @ ctx.c / len(ctx.d))


@call(np.array([0.4, -0.9, 1.3, 0.2]), np.array([0, 2, 1, 2]), np.array([-0.5, 0.8]))
class OrdinalLikelihood(Function):
    """Negative log-likelihood of ordered classes between rising cut points."""

    @staticmethod
    def forward(ctx, x, classes, cuts):
        a, k, c = raw(x), raw(classes), raw(cuts)
        if a.ndim != 1 or c.ndim != 1 or k.shape != a.shape or not (np.diff(c) > 0).all() or k.min() < 0:
            raise ValueError("scores, classes and rising cuts")
        edges = np.concatenate([[-np.inf], c, [np.inf]])
        # p = sigmoid(v) - sigmoid(u) = sigmoid(v) sigmoid(-u) (1 - exp(u - v))
        u, v = edges[k] - a, edges[k + 1] - a
        gap = np.where(np.isfinite(u) & np.isfinite(v), edges[k + 1] - edges[k], np.inf)
        p = scipy.special.log_expit(v) + scipy.special.log_expit(-u) + np.log(-np.expm1(-gap))
        ctx.args = k, len(c), u, v, gap
        return vg.Tensor(-p.sum())

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        k, n, u, v, gap = ctx.args
        at_v, at_u, apart = scipy.special.expit(-v), scipy.special.expit(u), 1 / np.expm1(gap)
        gc = np.zeros(n + 2)
        np.add.at(gc, k + 1, -at_v - apart)
        np.add.at(gc, k, at_u + apart)
        return grad * vg.Tensor(at_v - at_u), None, grad * vg.Tensor(gc[1:-1])


@call(np.array([0.6, -0.2, 1.1, 0.3]), np.array([2, 0, 3]))
class PlackettLuce(Function):
    """Negative log-likelihood of a partial ranking."""

    @staticmethod
    def forward(ctx, scores, ranking):
        s, order = raw(scores), raw(ranking)
        if s.ndim != 1 or order.ndim != 1 or len({*order.tolist()}) != len(order) or order.min() < 0:
            raise ValueError("a vector of scores and distinct places expected")
        left = np.ones(len(s), bool)
        g, loss = np.zeros(len(s)), 0.0
        for i in order:
            places = np.flatnonzero(left)
            top = s[places].max()
            e = np.exp(s[places] - top)
            loss -= s[i] - top - np.log(e.sum())
            g[places] += e / e.sum()
            g[i] -= 1
            left[i] = False
        ctx.g = g
        return vg.Tensor(loss)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * vg.Tensor(ctx.g), None


@call(np.array([0.3, -0.8, 1.1]), np.array(0.4), np.array([False, True, False]))
class CensoredNormal(Function):
    """The negative log-likelihood of right-censored values."""

    @staticmethod
    def forward(ctx, x, log_scale, censored):
        a, c = raw(x), raw(censored)
        if log_scale.ndim or c.shape != a.shape or c.dtype != bool:
            raise ValueError("one scale, and a mask")
        z = a * np.exp(-raw(log_scale))
        hazard = np.exp(-z * z / 2 - scipy.special.log_ndtr(-z)) / np.sqrt(2 * np.pi)
        ctx.args = z, c, hazard, float(raw(log_scale))
        seen = z * z / 2 + float(raw(log_scale)) + np.log(2 * np.pi) / 2
        return vg.Tensor(np.where(c, -scipy.special.log_ndtr(-z), seen).sum())

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        z, c, hazard, log_scale = ctx.args
        dz = np.where(c, hazard, z)
        return grad * vg.Tensor(dz * np.exp(-log_scale)), grad * ((~c).sum() - (dz * z).sum()), None


@call(np.array([1.2, 0.4, 2.6]), np.array([0.9, 0.7, 1.8]), 1.5)
class TweedieDeviance(Function):
    @staticmethod
    def forward(ctx, y, mu, power):
        if not 1 < power < 2:
            raise ValueError("a power between 1 and 2 expected")
        if (raw(mu) <= 0).any() or (raw(y) < 0).any():
            raise ValueError("positive means expected")
        ctx.save_for_backward(y, mu)
        ctx.power = power
        a, b = 2 - power, 1 - power
        return 2 * (y**a / (b * a) - y * mu**b / b + mu**a / a)

    @staticmethod
    def backward(ctx, grad):
        y, mu = ctx.saved_tensors
        b = 1 - ctx.power
        gy = 2 * grad * (y**b - mu**b) / b
        gm = 2 * grad * (mu**b - y * mu**-ctx.power)
        for g, x in ((gy, y), (gm, mu)):
            if g.shape != x.shape:
                raise ValueError("arguments of one shape expected")
        return gy, gm, None


# -- sequences ---------------------------------------------------------------------------------------------------------


@call(SIGNAL, 0.3 + 0.1 * np.arange(8.0), np.array([-0.5, -1.2]), np.outer(np.cos(np.arange(8.0)), [1.0, 0.4]) + 0.1)
class SelectiveScan(Function):
    """h[t] = exp(d[t] a) h[t - 1] + d[t] b[t] u[t]; the result is the sum over states."""

    @staticmethod
    def forward(ctx, u, d, a, b):
        u, d, a, b = (raw(x) for x in (u, d, a, b))
        if u.ndim != 1 or d.shape != u.shape or a.ndim != 1 or b.shape != (len(u), len(a)):
            raise ValueError("shapes (n,), (n,), (m,), (n, m) expected")
        if (d < 0).any() or (a > 0).any():
            raise ValueError("steps forward and decay expected")
        decay = np.exp(d[:, None] * a)
        h = np.zeros((len(u) + 1, len(a)))
        for t in range(len(u)):
            h[t + 1] = decay[t] * h[t] + d[t] * u[t] * b[t]
        ctx.args = u, d, a, b, decay, h
        return vg.Tensor(h[1:].sum(axis=1))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        u, d, a, b, decay, h = ctx.args
        g = grad.numpy()
        gu, gd, ga, gb = np.zeros_like(u), np.zeros_like(d), np.zeros_like(a), np.zeros_like(b)
        carry = np.zeros(len(a))
        for t in reversed(range(len(u))):
            carry = carry + g[t]
            through = carry * h[t] * decay[t]
            ga += through * d[t]
            gd[t] = (through * a).sum() + (carry * b[t]).sum() * u[t]
            gu[t] = d[t] * (carry * b[t]).sum()
            gb[t] = carry * d[t] * u[t]
            carry = carry * decay[t]
        return tuple(vg.Tensor(x) for x in (gu, gd, ga, gb))


@call(np.array(-0.6), np.array(0.4), np.sin(np.arange(5.0)), np.cos(1.3 * np.arange(5.0)))
class DecayedAverage(Function):
    """Averages of values with weights exp(k), which decay by exp(w), and a bonus u for the present one."""

    @staticmethod
    def forward(ctx, w, u, k, v):
        w, u, k, v = (raw(x) for x in (w, u, k, v))
        if w.ndim or u.ndim or k.ndim != 1 or v.shape != k.shape:
            raise ValueError("two numbers and two vectors expected")
        n = len(k)
        i, j = np.indices((n, n))
        logits = np.where(j < i, (i - j - 1) * w + k[None], np.where(j == i, u + k[None], -np.inf))
        e = np.exp(logits - logits.max(axis=1, keepdims=True)) if n else logits
        p = e / e.sum(axis=1, keepdims=True)
        ctx.args = p, v, np.maximum(i - j - 1, 0)
        return vg.Tensor(p @ v)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        p, v, steps = ctx.args
        g = grad.numpy()
        s = p * (g[:, None] * (v[None] - (p @ v)[:, None]))
        return vg.Tensor((s * steps).sum()), vg.Tensor(np.trace(s)), vg.Tensor(s.sum(axis=0)), vg.Tensor(p.T @ g)


@call(np.log(np.array([[0.2, 0.5, 0.3], [0.1, 0.6, 0.3], [0.4, 0.4, 0.2], [0.3, 0.3, 0.4]])), [1, 2])
class ConnectionistLoss(Function):
    """Negative log-probability of labels under all alignments with blanks (class 0)."""

    @staticmethod
    def forward(ctx, log_p, labels):
        lp = raw(log_p)
        if lp.ndim != 2 or not labels or min(labels) < 1 or max(labels) >= lp.shape[1]:
            raise ValueError("rows of log-probabilities and labels expected")
        path = [0]
        for label in labels:
            path += [label, 0]
        n, m = len(lp), len(path)
        skips = [s > 1 and path[s] != 0 and path[s] != path[s - 2] for s in range(m)]
        a = np.full((n, m), -np.inf)
        a[0, :2] = lp[0, path[:2]]
        for t in range(1, n):
            for s in range(m):
                before = [a[t - 1, s]] + ([a[t - 1, s - 1]] if s else []) + ([a[t - 1, s - 2]] if skips[s] else [])
                a[t, s] = np.logaddexp.reduce(before) + lp[t, path[s]]
        b = np.full((n, m), -np.inf)
        b[-1, -2:] = 0.0
        for t in range(n - 2, -1, -1):
            for s in range(m):
                after = [b[t + 1, s] + lp[t + 1, path[s]]]
                after += [b[t + 1, s + 1] + lp[t + 1, path[s + 1]]] if s + 1 < m else []
                after += [b[t + 1, s + 2] + lp[t + 1, path[s + 2]]] if s + 2 < m and skips[s + 2] else []
                b[t, s] = np.logaddexp.reduce(after)
        total = np.logaddexp(a[-1, -1], a[-1, -2])
        if not np.isfinite(total):
            raise ValueError("the labels have no alignment")
        g = np.zeros_like(lp)
        for s in range(m):
            g[:, path[s]] -= np.exp(a[:, s] + b[:, s] - total)
        ctx.g = g
        return vg.Tensor(-total)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * vg.Tensor(ctx.g), None


@call(np.array([0.1, 0.2, 0.7]), SIGNAL)
class GarchVariance(Function):
    """v[t] = omega + alpha r[t - 1]**2 + beta v[t - 1], starting at the mean square."""

    @staticmethod
    def forward(ctx, parameters, returns):
        p, r = raw(parameters), raw(returns)
        if p.shape != (3,) or r.ndim != 1 or not len(r):
            raise ValueError("three parameters and a series expected")
        v = np.empty(len(r))
        v[0] = (r * r).mean()
        for t in range(1, len(r)):
            v[t] = p[0] + p[1] * r[t - 1] ** 2 + p[2] * v[t - 1]
        ctx.args = p.copy(), r.copy(), v
        return vg.Tensor(v)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        p, r, v = ctx.args
        g = np.array(grad.numpy())
        gp, gr = np.zeros(3), np.zeros(len(r))
        for t in range(len(r) - 1, 0, -1):
            gp += g[t] * np.array([1.0, r[t - 1] ** 2, v[t - 1]])
            gr[t - 1] += 2 * g[t] * p[1] * r[t - 1]
            g[t - 1] += p[2] * g[t]
        gr += g[0] * 2 * r / len(r)
        return vg.Tensor(gp), vg.Tensor(gr)


@call(np.array(0.3), np.array(-0.4), SIGNAL, means={"domain": {"log_q": (-50.0, 50.0), "log_r": (-50.0, 50.0)}})
class KalmanLogLikelihood(Function):
    """The log-likelihood of a random walk observed with noise, given the logarithms of both variances."""

    @staticmethod
    def forward(ctx, log_q, log_r, y):
        q, r, y = np.exp(raw(log_q)), np.exp(raw(log_r)), raw(y)
        if np.ndim(q) or np.ndim(r) or y.ndim != 1:
            raise ValueError("two numbers and a series expected")
        m, p, total, steps = 0.0, 1.0, 0.0, []
        for t in range(len(y)):
            p = p + q
            s, e = p + r, y[t] - m
            steps.append((p, s, e))
            total -= (np.log(2 * np.pi * s) + e * e / s) / 2
            m, p = m + p / s * e, p * r / s
        ctx.args = q, r, steps
        return vg.Tensor(total)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        q, r, steps = ctx.args
        g, gq, gr = float(grad.item()), 0.0, 0.0
        gm = gp = 0.0
        gy = np.zeros(len(steps))
        for t in reversed(range(len(steps))):
            p, s, e = steps[t]
            ge = gm * p / s - g * e / s
            gs = -gm * p * e / s**2 - gp * p * r / s**2 - g / 2 * (1 / s - e * e / s**2)
            gr += gp * p / s + gs
            gp = gm * e / s + gp * r / s + gs
            gq += gp
            gy[t] = ge
            gm = gm - ge
        return vg.Tensor(gq * q), vg.Tensor(gr * r), vg.Tensor(gy)


@call(LOGITS - scipy.special.logsumexp(LOGITS, axis=1, keepdims=True), np.log(np.full((4, 4), 0.25) + 0.1 * np.eye(4)))
class HiddenMarkov(Function):
    """The log-likelihood of a chain with log-emissions by step and log-transitions."""

    @staticmethod
    def forward(ctx, emissions, transitions):
        e, w = raw(emissions), raw(transitions)
        if e.ndim != 2 or w.shape != (e.shape[1],) * 2 or not len(e):
            raise ValueError("emissions (n, k) and transitions (k, k) expected")
        a = [e[0]]
        for row in e[1:]:
            a.append(np.logaddexp.reduce(a[-1][:, None] + w, axis=0) + row)
        ctx.args = e.copy(), w.copy(), a
        return vg.Tensor(np.logaddexp.reduce(a[-1]))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        e, w, a = ctx.args
        after = np.exp(a[-1] - np.logaddexp.reduce(a[-1]))
        ge, gw = np.zeros_like(e), np.zeros_like(w)
        for t in range(len(e) - 1, 0, -1):
            ge[t] = after
            joint = np.exp(a[t - 1][:, None] + w - np.logaddexp.reduce(a[t - 1][:, None] + w, axis=0)) * after
            gw += joint
            after = joint.sum(axis=1)
        ge[0] = after
        return grad * vg.Tensor(ge), grad * vg.Tensor(gw)


@call(np.array([0.4, -0.3, 0.25]))
class ReflectionToPrediction(Function):
    """The coefficients of a linear predictor from reflection coefficients (Levinson's recursion)."""

    @staticmethod
    def forward(ctx, k):
        if k.ndim != 1:
            raise ValueError("a vector expected")
        k = raw(k)
        stages = [np.ones(1)]
        for one in k:
            longer = np.append(stages[-1], 0.0)
            stages.append(longer + one * longer[::-1])
        ctx.args = k.copy(), stages
        return vg.Tensor(stages[-1])

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        k, stages = ctx.args
        g, gk = grad.numpy(), np.zeros(len(k))
        for i in reversed(range(len(k))):
            longer = np.append(stages[i], 0.0)
            gk[i] = g @ longer[::-1]
            g = (g + k[i] * g[::-1])[:-1]
        return vg.Tensor(gk)


@call(SIGNAL, np.array(0.6), 3)
class CombFilter(Function):
    """y[n] = x[n] + a y[n - delay]."""

    @staticmethod
    def forward(ctx, x, a, delay):
        if x.ndim != 1 or a.ndim or delay < 1:
            raise ValueError("a signal, a number, and a positive delay expected")
        y, a = raw(x).copy(), float(raw(a))
        for n in range(delay, len(y)):
            y[n] += a * y[n - delay]
        ctx.args = y.copy(), a, delay
        return vg.Tensor(y)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        y, a, delay = ctx.args
        g = grad.numpy().copy()
        for n in range(len(g) - 1, delay - 1, -1):
            g[n - delay] += a * g[n]
        return vg.Tensor(g), vg.Tensor((g[delay:] * y[:-delay]).sum()), None


# -- rendering and geometry --------------------------------------------------------------------------------------------


@call(np.array([0.4, 1.1, 0.2, 0.9]), CLOUD, 0.5)
class RayColor(Function):
    """Composite the colours along a ray from its densities."""

    @staticmethod
    def forward(ctx, density, color, step):
        s, c = raw(density), raw(color)
        if s.ndim != 1 or c.ndim != 2 or len(c) != len(s) or step <= 0:
            raise ValueError("n densities and n colours expected")
        through = np.exp(-step * np.concatenate([[0.0], np.cumsum(s)]))
        weights = through[:-1] - through[1:]
        ctx.args = c.copy(), through, weights, step
        return vg.Tensor(weights @ c)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        c, through, weights, step = ctx.args
        each = c @ grad.numpy()
        behind = np.cumsum((weights * each)[::-1])[::-1]
        behind = np.append(behind[1:], 0.0)
        return vg.Tensor(step * (through[1:] * each - behind)), vg.Tensor(np.outer(weights, grad.numpy())), None


def rotation_of(q):
    w, x, y, z = q
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def rotation_back(q, g):
    w, x, y, z = q
    return 2 * np.array(
        [
            x * (g[2, 1] - g[1, 2]) + y * (g[0, 2] - g[2, 0]) + z * (g[1, 0] - g[0, 1]),
            w * (g[2, 1] - g[1, 2]) + y * (g[0, 1] + g[1, 0]) + z * (g[0, 2] + g[2, 0]) - 2 * x * (g[1, 1] + g[2, 2]),
            w * (g[0, 2] - g[2, 0]) + x * (g[0, 1] + g[1, 0]) + z * (g[1, 2] + g[2, 1]) - 2 * y * (g[0, 0] + g[2, 2]),
            w * (g[1, 0] - g[0, 1]) + x * (g[0, 2] + g[2, 0]) + y * (g[1, 2] + g[2, 1]) - 2 * z * (g[0, 0] + g[1, 1]),
        ]
    )


@call(QUATERNION, np.array([0.6, 1.1, 0.8]))
class SplatCovariance(Function):
    """The covariance of an ellipsoid from a quaternion, which is normalized, and its three radii."""

    @staticmethod
    def forward(ctx, q, s):
        if q.shape != (4,) or s.shape != (3,) or not raw(q).any():
            raise ValueError("a nonzero quaternion and three radii expected")
        q, s = raw(q).copy(), raw(s).copy()
        norm = np.sqrt(q @ q)
        m = rotation_of(q / norm) * s
        ctx.args = q / norm, norm, s, m
        return vg.Tensor(m @ m.T)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        q, norm, s, m = ctx.args
        g = grad.numpy()
        gm = (g + g.T) @ m
        gq = rotation_back(q, gm * s)
        return vg.Tensor((gq - q * (q @ gq)) / norm), vg.Tensor((gm * rotation_of(q)).sum(axis=0))


@call(np.array([[0.9, 0.2, -0.4], [0.3, 1.1, 0.5]]))
class SixDimensionalRotation(Function):
    """A rotation from two vectors by Gram-Schmidt; its rows are orthonormal."""

    @staticmethod
    def forward(ctx, v):
        if v.shape != (2, 3):
            raise ValueError("two vectors in space expected")
        a, b = raw(v)
        na = np.sqrt(a @ a)
        e1 = a / na
        along = e1 @ b
        c = b - along * e1
        nc = np.sqrt(c @ c)
        if na < 1e-9 or nc < 1e-9:
            raise ValueError("vectors of one direction")
        e2 = c / nc
        ctx.args = b.copy(), na, e1, along, nc, e2
        return vg.Tensor(np.array([e1, e2, np.cross(e1, e2)]))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        b, na, e1, along, nc, e2 = ctx.args
        g1, g2, g3 = grad.numpy()
        g1 = g1 + np.cross(e2, g3)
        g2 = g2 + np.cross(g3, e1)
        gc = (g2 - e2 * (e2 @ g2)) / nc
        gb = gc - e1 * (e1 @ gc)
        g1 = g1 - along * gc - b * (e1 @ gc)
        return vg.Tensor(np.array([(g1 - e1 * (e1 @ g1)) / na, gb]))


@call(CLOUD[:, :2], np.array([[1.1, 0.1, 0.3], [-0.2, 0.9, 0.1], [0.05, -0.1, 1.0]]))
class Homography(Function):
    @staticmethod
    def forward(ctx, points, h):
        if points.ndim != 2 or points.shape[1] != 2 or h.shape != (3, 3):
            raise ValueError("points (n, 2) and a matrix (3, 3) expected")
        ones = vg.ones((points.shape[0], 1))
        whole = vg.concatenate([points, ones], axis=1)
        moved = whole @ h.T
        ctx.save_for_backward(points, h)
        return moved[:, :2] / moved[:, 2:]

    @staticmethod
    def backward(ctx, grad):
        points, h = ctx.saved_tensors
        whole = vg.concatenate([points, vg.ones((points.shape[0], 1))], axis=1)
        moved = whole @ h.T
        depth = moved[:, 2:]
        g = grad / depth
        last = -(g * moved[:, :2] / depth).sum(axis=1, keepdims=True)
        g = vg.concatenate([g, last], axis=1)
        return (g @ h)[:, :2], g.T @ whole


@call(CLOUD, np.array([0.1, -0.05]))
class RadialDistortion(Function):
    """Project points to a camera, with two coefficients of distortion."""

    @staticmethod
    def forward(ctx, points, k):
        if points.ndim != 2 or points.shape[1] != 3 or k.shape != (2,) or (raw(points)[:, 2] == 0).any():
            raise ValueError("points (n, 3) and two coefficients expected")
        ctx.save_for_backward(points, k)
        u = points[:, :2] / points[:, 2:]
        r = (u * u).sum(axis=1, keepdims=True)
        return u * (1 + k[0] * r + k[1] * r * r)

    @staticmethod
    def backward(ctx, grad):
        points, k = ctx.saved_tensors
        depth = points[:, 2:]
        u = points[:, :2] / depth
        r = (u * u).sum(axis=1, keepdims=True)
        along = (grad * u).sum(axis=1, keepdims=True)
        gu = grad * (1 + k[0] * r + k[1] * r * r) + 2 * u * along * (k[0] + 2 * k[1] * r)
        gz = -(gu * u).sum(axis=1, keepdims=True) / depth
        gk = vg.stack([(along * r).sum(), (along * r * r).sum()])
        return vg.concatenate([gu / depth, gz], axis=1), gk


@call(np.cos(np.arange(27.0)).reshape(3, 3, 3), np.array([[0.4, 1.3, 0.6], [1.7, 0.2, 1.1]]))
class Trilinear(Function):
    """The values of a grid at points inside."""

    @staticmethod
    def forward(ctx, grid, points):
        v, p = raw(grid), raw(points)
        if v.ndim != 3 or min(v.shape) < 2 or p.ndim != 2 or p.shape[1] != 3:
            raise ValueError("a grid and points in space expected")
        if (p < 0).any() or (p > np.array(v.shape) - 1).any():
            raise ValueError("a point outside")
        low = np.minimum(np.floor(p).astype(int), np.array(v.shape) - 2)
        f = p - low
        ctx.args = v.copy(), low, f
        result = 0
        for corner in np.ndindex(2, 2, 2):
            w = np.prod(np.where(corner, f, 1 - f), axis=1)
            result = result + w * v[tuple((low + corner).T)]
        return vg.Tensor(result)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        v, low, f = ctx.args
        g = grad.numpy()
        gv, gp = np.zeros_like(v), np.zeros_like(f)
        for corner in np.ndindex(2, 2, 2):
            w = np.where(corner, f, 1 - f)
            place = tuple((low + corner).T)
            np.add.at(gv, place, g * w.prod(axis=1))
            for axis in range(3):
                others = np.delete(w, axis, axis=1).prod(axis=1)
                gp[:, axis] += (1 if corner[axis] else -1) * g * others * v[place]
        return vg.Tensor(gv), vg.Tensor(gp)


@call(IMAGE)
class SpatialSoftmax(Function):
    """The expected row and column under the softmax of an image."""

    @staticmethod
    def forward(ctx, x, sharpness=1.0):
        if x.ndim != 2:
            raise ValueError("an image expected")
        a = sharpness * raw(x)
        p = np.exp(a - a.max())
        p /= p.sum()
        rows, columns = np.indices(a.shape)
        ctx.args = p, rows, columns, sharpness
        return vg.Tensor(np.array([(p * rows).sum(), (p * columns).sum()]))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        p, rows, columns, sharpness = ctx.args
        gr, gc = grad.numpy()
        moved = gr * (rows - (p * rows).sum()) + gc * (columns - (p * columns).sum())
        return vg.Tensor(sharpness * p * moved), None


@call(IMAGE, IMAGE[::-1].copy(), 1)
class CostVolume(Function):
    """The products of an image with another, moved by up to d pixels along the rows, with zeros outside."""

    @staticmethod
    def forward(ctx, a, b, d):
        if a.ndim != 2 or a.shape != b.shape or d < 0:
            raise ValueError("two images and a displacement expected")
        ctx.args = raw(a).copy(), raw(b).copy(), d
        padded = np.pad(raw(b), ((0, 0), (d, d)))
        n = a.shape[1]
        return vg.Tensor(np.array([raw(a) * padded[:, k : k + n] for k in range(2 * d + 1)]))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        a, b, d = ctx.args
        g, n = grad.numpy(), a.shape[1]
        padded = np.pad(b, ((0, 0), (d, d)))
        ga, gb = np.zeros_like(a), np.zeros_like(padded)
        for k in range(2 * d + 1):
            ga += g[k] * padded[:, k : k + n]
            gb[:, k : k + n] += g[k] * a
        return vg.Tensor(ga), vg.Tensor(gb[:, d : d + n]), None


@call(SIGNAL, np.array([0.2, -0.3, 0.45]), np.array([0.5, -0.2, 0.9]))
class DeformableConvolution(Function):
    """A kernel of three taps whose places are moved by offsets; zeros outside."""

    @staticmethod
    def forward(ctx, x, offsets, weights):
        a, o, w = raw(x), raw(offsets), raw(weights)
        if a.ndim != 1 or o.shape != (3,) or w.shape != (3,):
            raise ValueError("a signal, three offsets and three weights expected")
        places = np.arange(len(a))[:, None] + np.array([-1, 0, 1]) + o
        low = np.floor(places).astype(int)
        f = places - low
        padded = np.concatenate([a, [0.0]])
        inside = lambda k: np.where((k >= 0) & (k < len(a)), k, len(a))
        left, right = inside(low), inside(low + 1)
        taken = (1 - f) * padded[left] + f * padded[right]
        ctx.args = padded, w.copy(), f, left, right, taken
        return vg.Tensor(taken @ w)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        padded, w, f, left, right, taken = ctx.args
        g = grad.numpy()
        each = g[:, None] * w
        gx = np.zeros_like(padded)
        np.add.at(gx, left, each * (1 - f))
        np.add.at(gx, right, each * f)
        go = (each * (padded[right] - padded[left])).sum(axis=0)
        return vg.Tensor(gx[:-1]), vg.Tensor(go), vg.Tensor(taken.T @ g)


# -- scatter, lattices, sorting ----------------------------------------------------------------------------------------


@call(PLUS, np.array([0, 0, 1, 1, 1]), 2)
class SegmentProduct(Function):
    """Products of groups; the gradient is correct for zeros."""

    @staticmethod
    def forward(ctx, x, groups, n):
        a, k = raw(x), raw(groups)
        if a.ndim != 1 or k.shape != a.shape or k.min(initial=0) < 0 or k.max(initial=0) >= n:
            raise ValueError("one group in range for each number expected")
        out = np.ones(n)
        np.multiply.at(out, k, a)
        ctx.args = a.copy(), k.copy()
        return vg.Tensor(out)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        a, k = ctx.args
        g = np.empty_like(a)
        for i in range(len(a)):
            others = k == k[i]
            others[i] = False
            g[i] = a[others].prod()
        return vg.Tensor(g * grad.numpy()[k]), None, None


@call(X, np.array([0, 1, 0, 1, 1]), 2)
class SegmentLogSumExp(Function):
    @staticmethod
    def forward(ctx, x, groups, n):
        a, k = raw(x), raw(groups)
        if a.ndim != 1 or k.shape != a.shape or k.min(initial=0) < 0 or k.max(initial=0) >= n:
            raise ValueError("one group in range for each number expected")
        top = np.full(n, -np.inf)
        np.maximum.at(top, k, a)
        base = np.where(np.isfinite(top), top, 0.0)
        total = np.zeros(n)
        np.add.at(total, k, np.exp(a - base[k]))
        with np.errstate(divide="ignore"):
            out = base + np.log(total)
        ctx.share, ctx.groups = np.exp(a - base[k]) / total[k], k.copy()
        return vg.Tensor(out)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return vg.Tensor(ctx.share * grad.numpy()[ctx.groups]), None, None


@call(CLOUD, np.array([0, 1, 2, 3, 0]), np.array([1, 2, 3, 0, 2]), np.array([0.4, 1.1, -0.3, 0.6, 0.9]))
class EdgeSoftmaxSum(Function):
    """Sums of the rows of sources, weighted by the softmax of scores over the edges of each target."""

    @staticmethod
    def forward(ctx, rows, sources, targets, scores):
        v, i, j, s = (raw(x) for x in (rows, sources, targets, scores))
        if v.ndim != 2 or s.ndim != 1 or i.shape != s.shape or j.shape != s.shape or min(i.min(), j.min()) < 0:
            raise ValueError("rows (n, d), and indices and scores of edges expected")
        top = np.full(len(v), -np.inf)
        np.maximum.at(top, j, s)
        e = np.exp(s - top[j])
        total = np.zeros(len(v))
        np.add.at(total, j, e)
        w = e / total[j]
        out = np.zeros_like(v)
        np.add.at(out, j, w[:, None] * v[i])
        ctx.args = v.copy(), i.copy(), j.copy(), w
        return vg.Tensor(out)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        v, i, j, w = ctx.args
        g = grad.numpy()
        gv = np.zeros_like(v)
        np.add.at(gv, i, w[:, None] * g[j])
        each = w * (g[j] * v[i]).sum(axis=1)
        total = np.zeros(len(v))
        np.add.at(total, j, each)
        return vg.Tensor(gv), None, None, vg.Tensor(each - w * total[j])


@call(CLOUD, CLOUD[::-1].copy(), np.array([0, 1, 3]), np.array([2, 1, 0]))
class SampledProducts(Function):
    """Inner products of chosen rows of two matrices."""

    @staticmethod
    def forward(ctx, a, b, rows, columns):
        if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1] or rows.ndim != 1 or rows.shape != columns.shape:
            raise ValueError("two matrices and indices expected")
        ctx.save_for_backward(a, b)
        ctx.rows, ctx.columns = raw(rows).copy(), raw(columns).copy()
        return (a[ctx.rows] * b[ctx.columns]).sum(axis=1)

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        g = grad[:, None]
        ga, gb = vg.zeros(a.shape), vg.zeros(b.shape)
        for k, (row, column) in enumerate(zip(ctx.rows.tolist(), ctx.columns.tolist(), strict=True)):
            ga[row] += g[k] * b[column]
            gb[column] += g[k] * a[row]
        return ga, gb, None, None


def pool_violators(y):
    """Return the blocks of the isotonic (falling) regression of y."""
    blocks = []
    for i, value in enumerate(y):
        blocks.append([i, i + 1, value])
        while len(blocks) > 1 and blocks[-2][2] <= blocks[-1][2]:
            start, middle, one = blocks[-2]
            _, stop, other = blocks.pop()
            blocks[-1] = [start, stop, (one * (middle - start) + other * (stop - middle)) / (stop - start)]
    return blocks


@call(np.array([0.4, 1.9, -0.7, 2.3]))
class SoftRank(Function):
    """Projections onto the permutahedron: ranks, smoothed by a quadratic term."""

    @staticmethod
    def forward(ctx, x, strength=1.0):
        a = raw(x)
        if a.ndim != 1 or strength <= 0:
            raise ValueError("a vector and a positive strength expected")
        z = -a / strength
        order = np.argsort(-z, kind="stable")
        s = z[order]
        w = np.arange(len(a), 0, -1.0)
        blocks = pool_violators(s - w)
        v = np.concatenate([np.full(stop - start, mean) for start, stop, mean in blocks]) if blocks else s
        out = np.empty_like(a)
        out[order] = s - v
        ctx.args = order, blocks, strength
        return vg.Tensor(out)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        order, blocks, strength = ctx.args
        g = grad.numpy()[order]
        h = g.copy()
        for start, stop, _ in blocks:
            h[start:stop] -= g[start:stop].mean()
        out = np.empty_like(h)
        out[order] = h
        return vg.Tensor(-out / strength), None


@call(np.array([1.1, -0.4, 0.3, 2.0]), 2)
class LimitedMultiLabel(Function):
    """sigmoid(x + nu), with nu such that the sum is n (a projection onto the cube of labels)."""

    @staticmethod
    def forward(ctx, x, n):
        a = raw(x)
        if a.ndim != 1 or not 0 < n < len(a):
            raise ValueError("more scores than labels expected")
        low, high = -a.max() - 40.0, -a.min() + 40.0
        for _ in range(200):
            nu = (low + high) / 2
            if scipy.special.expit(a + nu).sum() < n:
                low = nu
            else:
                high = nu
        ctx.p = scipy.special.expit(a + nu)
        return vg.Tensor(ctx.p)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        h = ctx.p * (1 - ctx.p)
        g = grad.numpy()
        return vg.Tensor(h * (g - (h * g).sum() / h.sum())), None


@call(np.array([0.9, -2.1, 0.4, 1.3]), 1.5)
class L1BallProjection(Function):
    @staticmethod
    def forward(ctx, x, radius):
        a = raw(x)
        if a.ndim != 1 or radius <= 0:
            raise ValueError("a vector and a positive radius expected")
        if np.abs(a).sum() <= radius:
            ctx.support = None
            return x.clone()
        u = np.sort(np.abs(a))[::-1]
        level = (np.cumsum(u) - radius) / np.arange(1, len(a) + 1)
        theta = level[np.flatnonzero(u > level)[-1]]
        ctx.support, ctx.sign = np.abs(a) > theta, np.sign(a)
        return vg.Tensor(ctx.sign * np.maximum(np.abs(a) - theta, 0.0))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        if ctx.support is None:
            return grad, None
        s = ctx.support * ctx.sign
        return vg.Tensor(ctx.support * (grad.numpy() - s * (s @ grad.numpy()) / ctx.support.sum())), None


# -- linear algebra ----------------------------------------------------------------------------------------------------


@call(SQUARE, 3)
class MatrixPower(Function):
    @staticmethod
    def forward(ctx, a, n):
        if a.ndim != 2 or a.shape[0] != a.shape[1] or n < 0:
            raise ValueError("a square matrix and an exponent that is not negative expected")
        powers = [np.eye(len(a))]
        for _ in range(n):
            powers.append(powers[-1] @ raw(a))
        ctx.powers = powers
        return vg.Tensor(powers[-1])

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g, n = grad.numpy(), len(ctx.powers) - 1
        total = np.zeros(g.shape)
        for i in range(n):
            total += ctx.powers[i].T @ g @ ctx.powers[n - 1 - i].T
        return vg.Tensor(total), None


@call(SPD, means={"structure": {"a": "positive definite"}})
class LogarithmOfMatrix(Function):
    """The logarithm of a positive definite matrix; its gradient is symmetric."""

    @staticmethod
    def forward(ctx, a):
        if a.ndim != 2 or a.shape[0] != a.shape[1]:
            raise ValueError("a square matrix expected")
        w, q = np.linalg.eigh(raw(a))
        if w[0] <= 0:
            raise ValueError("a positive definite matrix expected")
        ctx.w, ctx.q = w, q
        return vg.Tensor(q * np.log(w) @ q.T)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        w, q = ctx.w, ctx.q
        ratio = w[:, None] / w[None]
        near = np.abs(ratio - 1) < 1e-6
        d = np.where(near, 1.0, w[:, None] - w[None])
        f = np.where(near, 2 / (w[:, None] + w[None]), np.log(ratio) / d)
        g = q.T @ grad.numpy() @ q
        m = q @ (f * g) @ q.T
        return vg.Tensor((m + m.T) / 2)


@call(np.array([[1.2, 0.3], [0.4, 1.6], [-0.2, 0.7]]))
class PseudoInverse(Function):
    @staticmethod
    def forward(ctx, a):
        if a.ndim != 2 or a.shape[0] < a.shape[1] or np.linalg.matrix_rank(raw(a)) < a.shape[1]:
            raise ValueError("a tall matrix of full rank expected")
        gram = vg.linalg.inv(a.T @ a)
        out = gram @ a.T
        ctx.save_for_backward(a)
        return out

    @staticmethod
    def backward(ctx, grad):
        (a,) = ctx.saved_tensors
        gram = vg.linalg.inv(a.T @ a)
        p = gram @ a.T
        rest = grad - grad @ a @ p
        return rest.T @ gram - p.T @ grad @ p.T


@call(np.array([[0.8, -0.3], [0.2, 1.1]]), np.array([[0.5, 0.9, -0.2]]))
class Kronecker(Function):
    @staticmethod
    def forward(ctx, a, b):
        if a.ndim != 2 or b.ndim != 2:
            raise ValueError("two matrices expected")
        ctx.save_for_backward(a, b)
        return (a[:, None, :, None] * b[None, :, None, :]).reshape(a.shape[0] * b.shape[0], -1)

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        g = grad.reshape(a.shape[0], b.shape[0], a.shape[1], b.shape[1])
        return (g * b[None, :, None, :]).sum(axis=(1, 3)), (g * a[:, None, :, None]).sum(axis=(0, 2))


@call(
    SPD,
    np.array([[1.0, 0.5, -0.3]]),
    np.array([0.4, -0.7, 0.2]),
    np.array([0.6]),
    means={"structure": {"q": "positive definite"}},
)
class EqualityQuadratic(Function):
    """The minimum of x' q x / 2 + p' x with a x = b."""

    @staticmethod
    def forward(ctx, q, a, p, b):
        q, a, p, b = (raw(x) for x in (q, a, p, b))
        if q.ndim != 2 or a.ndim != 2 or p.ndim != 1 or b.ndim != 1 or a.shape != (len(b), len(p)):
            raise ValueError("shapes (n, n), (m, n), (n,), (m,) expected")
        n, m = len(p), len(b)
        k = np.block([[q, a.T], [a, np.zeros((m, m))]])
        z = np.linalg.solve(k, np.concatenate([-p, b]))
        ctx.args = k, z, n
        return vg.Tensor(z[:n])

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        k, z, n = ctx.args
        d = np.linalg.solve(k.T, np.concatenate([grad.numpy(), np.zeros(len(z) - n)]))
        x, nu, dx, dn = z[:n], z[n:], d[:n], d[n:]
        gq = -(np.outer(dx, x) + np.outer(x, dx)) / 2
        ga = -(np.outer(nu, dx) + np.outer(dn, x))
        return vg.Tensor(gq), vg.Tensor(ga), vg.Tensor(-dx), vg.Tensor(dn)


@call(np.array([[0.1, 0.6, 0.3], [0.5, 0.2, 0.3], [0.4, 0.4, 0.2]]), np.array([0.5, 0.3, 0.2]), 0.85)
class PersonalPageRank(Function):
    """The solution of x = damping w' x + (1 - damping) s."""

    @staticmethod
    def forward(ctx, w, s, damping):
        if not 0 <= damping < 1 or w.ndim != 2 or w.shape != (s.shape[0],) * 2 or s.ndim != 1:
            raise ValueError("weights (n, n), (n,), and a damping below 1 expected")
        m = np.eye(s.shape[0]) - damping * raw(w).T
        x = np.linalg.solve(m, (1 - damping) * raw(s))
        ctx.args = m, x, damping
        return vg.Tensor(x)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        m, x, damping = ctx.args
        z = np.linalg.solve(m.T, grad.numpy())
        return vg.Tensor(damping * np.outer(x, z)), vg.Tensor((1 - damping) * z), None


# -- transforms --------------------------------------------------------------------------------------------------------


@call(SIGNAL)
class Hartley(Function):
    @staticmethod
    def forward(ctx, x):
        if x.ndim != 1:
            raise ValueError("a signal expected")
        f = scipy.fft.fft(raw(x))
        return vg.Tensor(f.real - f.imag)

    @staticmethod
    def backward(ctx, grad):
        f = vg.fft.fft(grad)
        return vg.real(f) - vg.imag(f)


@call(SIGNAL, 2.5)
class SpectralDerivative(Function):
    """The derivative of a periodic signal."""

    @staticmethod
    def forward(ctx, x, length):
        if x.ndim != 1 or length <= 0:
            raise ValueError("a signal and a positive length expected")
        ctx.k = 2j * np.pi * scipy.fft.fftfreq(x.shape[0], length / x.shape[0])
        if x.shape[0] % 2 == 0:
            ctx.k[x.shape[0] // 2] = 0
        return vg.real(vg.fft.ifft(vg.Tensor(ctx.k) * vg.fft.fft(x)))

    @staticmethod
    def backward(ctx, grad):
        return vg.real(vg.fft.ifft(vg.Tensor(ctx.k.conj()) * vg.fft.fft(grad))), None


@call(IMAGE[:3, :4])
class PoissonSine(Function):
    """The solution of the discrete Poisson equation with zeros at the border."""

    @staticmethod
    def solve(f):
        n, m = f.shape
        w = 2 - 2 * np.cos(np.pi * np.arange(1, n + 1) / (n + 1))
        v = 2 - 2 * np.cos(np.pi * np.arange(1, m + 1) / (m + 1))
        s = scipy.fft.dstn(f, type=1, norm="ortho") / (w[:, None] + v)
        return scipy.fft.idstn(s, type=1, norm="ortho")

    @staticmethod
    def forward(ctx, f):
        if f.ndim != 2:
            raise ValueError("a grid expected")
        return vg.Tensor(PoissonSine.solve(raw(f)))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return vg.Tensor(PoissonSine.solve(grad.numpy()))


@call(SIGNAL[:6])
class LiftedWavelet(Function):
    """One level of the 5/3 wavelet by lifting, periodic."""

    @staticmethod
    def forward(ctx, x):
        if x.ndim != 1 or x.shape[0] % 2:
            raise ValueError("an even number of samples expected")
        even, odd = raw(x)[::2].copy(), raw(x)[1::2].copy()
        odd -= (even + np.roll(even, -1)) / 2
        even += (odd + np.roll(odd, 1)) / 4
        return vg.Tensor(np.concatenate([even, odd]))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        n = grad.shape[0] // 2
        even, odd = grad.numpy()[:n].copy(), grad.numpy()[n:].copy()
        odd += (even + np.roll(even, -1)) / 4
        even -= (odd + np.roll(odd, 1)) / 2
        return vg.Tensor(np.stack([even, odd], axis=1).reshape(-1))


# -- special functions -------------------------------------------------------------------------------------------------

rational_quadratic = define_op(
    "published_rational_quadratic(r, scale, *, alpha=1.5)",
    forward=lambda r, scale, *, alpha: (1 + r * r / (2 * alpha * scale * scale)) ** -alpha,
    derivatives={
        "r": "-grad * r / scale**2 * (1 + r * r / (2 * alpha * scale * scale)) ** (-alpha - 1)",
        "scale": "grad * r * r / scale**3 * (1 + r * r / (2 * alpha * scale * scale)) ** (-alpha - 1)",
    },
)
call(X, np.array(0.8), means={"domain": {"scale": (0.1, 100.0)}, "options": {"alpha": [1.5, 0.7, 3.0]}})(
    rational_quadratic
)

scaled_erfc = define_op(
    "published_scaled_erfc(x)",
    forward=scipy.special.erfcx,
    derivatives={"x": "grad * (2 * x * result - 1.1283791670955126)"},
)
call(np.array([0.3, -0.8, 1.7]), means={"domain": (-20.0, 25.0)})(scaled_erfc)


@call(np.array([0.3, 0.6, 0.85]), 2.0, 3.5)
class BetaCdf(Function):
    @staticmethod
    def forward(ctx, x, a, b):
        if a <= 0 or b <= 0 or (raw(x) < 0).any() or (raw(x) > 1).any():
            raise ValueError("positive parameters, and x between 0 and 1 expected")
        ctx.save_for_backward(x)
        ctx.a, ctx.b = a, b
        return vg.Tensor(scipy.special.betainc(a, b, raw(x)))

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        a, b = ctx.a, ctx.b
        return grad * x ** (a - 1) * (1 - x) ** (b - 1) / scipy.special.beta(a, b), None, None


@call(np.array([0.4, 1.3, 2.2]), 1)
class SphericalBessel(Function):
    @staticmethod
    def forward(ctx, x, n):
        if n < 0:
            raise ValueError("an order that is not negative expected")
        ctx.slope = scipy.special.spherical_jn(n, raw(x), derivative=True)
        return vg.Tensor(scipy.special.spherical_jn(n, raw(x)))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * vg.Tensor(ctx.slope), None


@call(np.array([0.4, -1.3, 2.2]), np.array([1.4, 0.8, 2.9]))
class DebyeScattering(Function):
    """The sum over distances r of sin(q r) / (q r), for each q."""

    @staticmethod
    def forward(ctx, q, r):
        if q.ndim != 1 or r.ndim != 1:
            raise ValueError("two vectors expected")
        z = np.outer(raw(q), raw(r))
        ctx.args = z, raw(q).copy(), raw(r).copy()
        return vg.Tensor(np.sinc(z / np.pi).sum(axis=1))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        z, q, r = ctx.args
        slope = -scipy.special.spherical_jn(1, z)
        slope = grad.numpy()[:, None] * slope
        return vg.Tensor(slope @ r), vg.Tensor(slope.T @ q)


# -- complex numbers ---------------------------------------------------------------------------------------------------


@call(
    vg.Tensor([0.6 + 0.2j, -0.3 + 0.8j, 0.5 - 0.4j], requires_grad=True),
    np.array([[1.0, 0.2j, 0.1], [-0.2j, 0.5, 0.3], [0.1, 0.3, -0.7]]),
)
class Expectation(Function):
    """<psi| h |psi> / <psi|psi> for a Hermitian h, which is a constant."""

    @staticmethod
    def forward(ctx, psi, h):
        if psi.ndim != 1 or h.shape != (psi.shape[0],) * 2 or not np.allclose(raw(h), raw(h).conj().T):
            raise ValueError("a state and a Hermitian matrix expected")
        v = raw(psi)
        norm = np.vdot(v, v).real
        if norm == 0:
            raise ValueError("a state that is not zero expected")
        value = np.vdot(v, raw(h) @ v).real / norm
        ctx.g = 2 * (raw(h) @ v - value * v) / norm
        ctx.real = v.dtype.kind != "c"
        return vg.Tensor(value)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = ctx.g.real if ctx.real else ctx.g
        return grad * vg.Tensor(g), None


@call(np.array([0.6 + 0.2j, -0.3 + 0.8j]), np.array([0.4, 1.1]))
class PhaseGate(Function):
    """Multiply amplitudes by phases."""

    @staticmethod
    def forward(ctx, psi, angles):
        if psi.shape != angles.shape or raw(angles).dtype.kind != "f":
            raise ValueError("one real angle for each amplitude expected")
        turned = raw(psi) * np.exp(1j * raw(angles))
        ctx.args = raw(angles).copy(), turned, raw(psi).dtype.kind == "c"
        return vg.Tensor(turned)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        angles, turned, whole = ctx.args
        g = grad.numpy()
        back = g * np.exp(-1j * angles)
        return vg.Tensor(back if whole else back.real.copy()), vg.Tensor((g * (1j * turned).conj()).real.copy())


# -- physics, finance --------------------------------------------------------------------------------------------------


@call(CLOUD, np.array([1.0, -0.5, 0.8, -1.3]), 0.7)
class ScreenedCharges(Function):
    """The energy of charges by erfc(alpha r) / r."""

    @staticmethod
    def forward(ctx, points, charges, alpha):
        x, q = raw(points), raw(charges)
        if x.ndim != 2 or x.shape[1] != 3 or q.shape != x.shape[:1] or alpha <= 0:
            raise ValueError("points (n, 3), n charges and a positive alpha expected")
        i, j = np.triu_indices(len(x), 1)
        d = x[i] - x[j]
        r = np.sqrt((d * d).sum(axis=1))
        if (r == 0).any():
            raise ValueError("coincident charges")
        u = scipy.special.erfc(alpha * r) / r
        ctx.args = i, j, d, r, u, q.copy(), alpha
        return vg.Tensor((q[i] * q[j] * u).sum())

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        i, j, d, r, u, q, alpha = ctx.args
        slope = -u / r - 2 * alpha / np.sqrt(np.pi) * np.exp(-((alpha * r) ** 2)) / r
        f = (q[i] * q[j] * slope / r)[:, None] * d
        gx, gq = np.zeros((len(q), 3)), np.zeros(len(q))
        np.add.at(gx, i, f)
        np.add.at(gx, j, -f)
        np.add.at(gq, i, q[j] * u)
        np.add.at(gq, j, q[i] * u)
        return grad * vg.Tensor(gx), grad * vg.Tensor(gq), None


@call(np.array([0.8, 1.9, 2.7, 3.4]), 3.0)
class CosineCutoff(Function):
    @staticmethod
    def forward(ctx, r, cutoff):
        if cutoff <= 0 or (raw(r) < 0).any():
            raise ValueError("distances and a positive cutoff expected")
        ctx.save_for_backward(r)
        ctx.cutoff = cutoff
        return vg.where(r < cutoff, 0.5 * (1 + vg.cos(np.pi * r / cutoff)), 0.0)

    @staticmethod
    def backward(ctx, grad):
        (r,) = ctx.saved_tensors
        k = np.pi / ctx.cutoff
        return vg.where(r < ctx.cutoff, -0.5 * grad * k * vg.sin(k * r), 0.0), None


@call(np.array([0.3, 0.8, -0.2]), np.array([-1.1, 0.4, 0.9]), 0.2, 3)
class HeunSteps(Function):
    """Steps of Heun's method for x' = tanh(w x), differentiated through its stages."""

    @staticmethod
    def forward(ctx, x, w, h, steps):
        if x.shape != w.shape or steps < 0:
            raise ValueError("one weight for each number expected")
        y, w = raw(x).copy(), raw(w).copy()
        states = []
        for _ in range(steps):
            k = np.tanh(w * y)
            q = np.tanh(w * (y + h * k))
            states.append((y, k, q))
            y = y + h / 2 * (k + q)
        ctx.args = states, w, h
        return vg.Tensor(y)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        states, w, h = ctx.args
        g, gw = grad.numpy().copy(), np.zeros_like(w)
        for y, k, q in reversed(states):
            dq = h / 2 * g * (1 - q * q)
            dk = (h / 2 * g + dq * w * h) * (1 - k * k)
            gw += dq * (y + h * k) + dk * y
            g = g + dq * w + dk * w
        return vg.Tensor(g), vg.Tensor(gw), None, None


@call(np.array([0.9, 1.2, 1.6]), np.array(0.3), np.array(0.6))
class MargrabeExchange(Function):
    """The price of the option to exchange one asset for another, by the ratio of prices, volatility and time."""

    @staticmethod
    def forward(ctx, ratio, sigma, time):
        r, s, t = raw(ratio), raw(sigma), raw(time)
        if np.ndim(s) or np.ndim(t) or s <= 0 or t <= 0 or (r <= 0).any():
            raise ValueError("positive numbers expected")
        v = s * np.sqrt(t)
        d = np.log(r) / v + v / 2
        ctx.args = r.copy(), float(s), float(t), d
        return vg.Tensor(r * scipy.special.ndtr(d) - scipy.special.ndtr(d - v))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        r, s, t, d = ctx.args
        density = np.exp(-d * d / 2) / np.sqrt(2 * np.pi)
        g = grad.numpy()
        vega = (g * r * density).sum()
        return tuple(vg.Tensor(x) for x in (g * scipy.special.ndtr(d), vega * np.sqrt(t), vega * s / (2 * np.sqrt(t))))


@call(np.array([0.2, 0.5, 1.4]), np.array([0.4, -0.3, 0.1]))
class GumbelLogDensity(Function):
    @staticmethod
    def forward(ctx, x, log_scale):
        if x.shape != log_scale.shape:
            raise ValueError("one scale for each number expected")
        ctx.save_for_backward(x, log_scale)
        z = x * vg.exp(-log_scale)
        return -z - vg.exp(-z) - log_scale

    @staticmethod
    def backward(ctx, grad):
        x, log_scale = ctx.saved_tensors
        z = x * vg.exp(-log_scale)
        dz = vg.exp(-z) - 1
        return grad * dz * vg.exp(-log_scale), -grad * (dz * z + 1)


@call(M, 1, 2, 0)
class ShiftedWindow(Function):
    """Roll, and take every k-th column."""

    @staticmethod
    def forward(ctx, x, shift, every, start):
        if x.ndim != 2 or every < 1 or not 0 <= start < every:
            raise ValueError("a matrix, and a start below the step expected")
        ctx.args = x.shape, shift, every, start
        return vg.roll(x, shift, axis=1)[:, start::every]

    @staticmethod
    def backward(ctx, grad):
        shape, shift, every, start = ctx.args
        g = vg.zeros(shape)
        g[:, start::every] = grad
        return vg.roll(g, -shift, axis=1), None, None, None


@call(LOGITS)
class LogitAdjusted(Function):
    """Subtract from logits the logarithm of their mean exponential over rows."""

    @staticmethod
    def forward(ctx, x):
        if x.ndim != 2:
            raise ValueError("a matrix expected")
        ctx.save_for_backward(x)
        return x - vg.logsumexp(x, axis=0) + np.log(x.shape[0])

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        share = vg.exp(x - vg.logsumexp(x, axis=0))
        return grad - share * grad.sum(axis=0)


@call(X, Y, means={"domain": (-100.0, 100.0)})
class LorentzDistance(Function):
    """The hyperbolic distance of two points, given by their spatial parts."""

    @staticmethod
    def forward(ctx, a, b):
        if a.ndim != 1 or a.shape != b.shape:
            raise ValueError("two vectors expected")
        p, q = raw(a), raw(b)
        s, t = np.sqrt(1 + p @ p), np.sqrt(1 + q @ q)
        d = p - q
        half = (d @ d - (s - t) ** 2) / 4  # sinh(distance / 2) ** 2
        if half < 1e-12:
            raise ValueError("coincident points have no derivative")
        ctx.args = p.copy(), q.copy(), s, t, half
        return vg.Tensor(2 * np.arcsinh(np.sqrt(half)))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        p, q, s, t, half = ctx.args
        slope = 1 / np.sqrt(half * (1 + half))
        gp = ((p - q) - (s - t) * p / s) / 2
        gq = -((p - q) - (s - t) * q / t) / 2
        return grad * vg.Tensor(slope * gp), grad * vg.Tensor(slope * gq)
