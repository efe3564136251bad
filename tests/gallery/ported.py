"""Correct operators as custom functions of public code define them: quantizers, losses, samplers, scans, solvers.

They are written as their first users write them. `ported_faults.py` has edits that make them wrong. `CALLS` has the
call of each and its author's declarations.
"""

import numpy as np
import scipy.linalg
import scipy.special

import viewgrad as vg
from viewgrad.autograd import Function, once_differentiable

CALLS = {}


def call(*args, means=None, **kwargs):
    """Register the call that an operator was written for."""

    def put(thing):
        CALLS[thing.__name__] = (args, kwargs, means or {})
        return thing

    return put


def raw(tensor):
    return tensor.detach().numpy()


X = np.array([0.7, -1.3, 2.1, 0.4, -0.2])
Y = np.array([1.1, 0.6, -0.8, 0.3, 1.9])
WIDE = np.array([-3.7, -1.4, 0.3, 2.2, 3.9, -0.6])
M = np.array([[0.7, -1.3, 2.1], [1.9, 0.4, -0.6]])
N = np.array([[0.2, 0.9, -0.4], [-1.1, 0.5, 1.6]])
LOGITS = np.array([[0.3, -1.1, 0.8, 0.1], [1.7, 0.2, -0.4, -0.9], [0.6, 0.5, -1.2, 0.9]])
TRANSITIONS = np.array([[0.1, -0.4, 0.3, 0.2], [0.5, 0.2, -0.3, 0.7], [-0.6, 0.4, 0.8, -0.1], [0.3, -0.2, 0.6, 0.9]])
POINTS = np.array([[0.1, 0.9], [1.2, -0.4], [-0.7, 0.3]])
OTHERS = np.array([[0.4, 0.7], [1.0, 0.2], [-0.9, -0.5], [0.3, -1.1]])
IMAGE = np.cos(1.7 * np.arange(20.0)).reshape(4, 5)
GRID = np.array([[0.3, 1.4], [2.2, 3.6], [1.7, 0.2], [2.6, 2.5]])
SIGNAL = np.sin(1.1 * np.arange(8.0)) + 0.05 * np.arange(8.0)
KERNEL = np.array([0.5, -0.2, 0.9])
SPD = np.array([[2.0, 0.3, 0.1], [0.3, 1.5, -0.2], [0.1, -0.2, 1.8]])
SQUARE = np.array([[1.2, 0.3, -0.5], [0.4, 1.7, 0.2], [-0.1, 0.6, 1.1]])
RIGHT_SIDE = np.array([0.5, -1.2, 0.9])
CLOUD = np.array([[0.1, 0.9, 0.4], [1.2, -0.4, 0.6], [-0.7, 0.3, -1.1], [0.5, 0.8, -0.3]])
MOVED = np.array([[0.9, 0.2, 0.1], [0.6, 1.1, -0.5], [-0.2, -0.8, 0.7], [0.3, 0.4, 1.2]])
QUATERNION = np.array([0.8, 0.2, -0.5, 0.3])
OTHER_QUATERNION = np.array([0.1, -0.7, 0.6, 0.9])
SHARES = np.array([0.2, 0.5, 0.3])


# -- activations -------------------------------------------------------------------------------------------------------


@call(WIDE)
class HardSwish(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        a = raw(x)
        return vg.Tensor(a * np.clip(a + 3, 0, 6) / 6)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        middle = vg.where((x > -3) & (x < 3), (2 * x + 3) / 6, 0.0)
        return grad * vg.where(x >= 3, 1.0, middle)


@call(X)
class Selu(Function):
    ALPHA, SCALE = 1.6732632423543772, 1.0507009873554805

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        a = raw(x)
        return vg.Tensor(Selu.SCALE * np.where(a > 0, a, Selu.ALPHA * np.expm1(np.minimum(a, 0))))

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        below = Selu.ALPHA * vg.exp(vg.minimum(x, 0.0))
        return grad * Selu.SCALE * vg.where(x > 0, 1.0, below)


@call(X, alpha=1.3)
class Celu(Function):
    @staticmethod
    def forward(ctx, x, alpha=1.0):
        ctx.save_for_backward(x)
        ctx.alpha = alpha
        a = raw(x)
        return vg.Tensor(np.maximum(a, 0) + np.minimum(0, alpha * np.expm1(a / alpha)))

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * vg.where(x > 0, 1.0, vg.exp(vg.minimum(x, 0.0) / ctx.alpha)), None


@call(X)
class LogSigmoid(Function):
    @staticmethod
    def forward(ctx, x):
        a = raw(x)
        z = np.exp(-np.abs(a))
        ctx.slope = np.where(a < 0, 1.0, z) / (1 + z)
        return vg.Tensor(np.minimum(a, 0) - np.log1p(z))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * ctx.slope


@call(X, np.array(0.9))
class Snake(Function):
    @staticmethod
    def forward(ctx, x, a):
        ctx.save_for_backward(x, a)
        return x + vg.sin(a * x) ** 2 / a

    @staticmethod
    def backward(ctx, grad):
        x, a = ctx.saved_tensors
        twice = vg.sin(2 * a * x)
        by_a = (x * twice * a - vg.sin(a * x) ** 2) / a**2
        return grad * (1 + twice), (grad * by_a).sum()


@call(M)
class SquaredRelu(Function):
    @staticmethod
    def forward(ctx, x):
        positive = vg.maximum(x, 0.0)
        ctx.save_for_backward(positive)
        return positive * positive

    @staticmethod
    def backward(ctx, grad):
        (positive,) = ctx.saved_tensors
        return 2 * grad * positive


@call(np.concatenate([M, N], axis=1))
class GatedHalves(Function):
    @staticmethod
    def forward(ctx, x):
        value, gate = np.split(raw(x), 2, axis=-1)
        opened = 1 / (1 + np.exp(-gate))
        ctx.value, ctx.opened = value, opened
        return vg.Tensor(value * opened)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = raw(grad)
        return vg.Tensor(np.concatenate([g * ctx.opened, g * ctx.value * ctx.opened * (1 - ctx.opened)], axis=-1))


@call(X, np.array(1.5))
class ClipLearned(Function):
    @staticmethod
    def forward(ctx, x, limit):
        ctx.save_for_backward(x, limit)
        return vg.Tensor(np.minimum(np.maximum(raw(x), 0), raw(limit)))

    @staticmethod
    def backward(ctx, grad):
        x, limit = ctx.saved_tensors
        inside = (x > 0) & (x < limit)
        return vg.where(inside, grad, 0.0), vg.where(x >= limit, grad, 0.0).sum()


# -- choices by projection ---------------------------------------------------------------------------------------------


def simplex_threshold(z):
    ordered = -np.sort(-z, axis=-1)
    sums = np.cumsum(ordered, axis=-1) - 1
    counts = np.arange(1, z.shape[-1] + 1)
    size = (ordered * counts > sums).sum(axis=-1, keepdims=True)
    return np.take_along_axis(sums, size - 1, axis=-1) / size


@call(LOGITS)
class Sparsemax(Function):
    @staticmethod
    def forward(ctx, z):
        a = raw(z)
        out = np.maximum(a - simplex_threshold(a), 0)
        ctx.support = out > 0
        return vg.Tensor(out)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = raw(grad) * ctx.support
        mean = g.sum(axis=-1, keepdims=True) / ctx.support.sum(axis=-1, keepdims=True)
        return vg.Tensor(np.where(ctx.support, g - mean, 0.0))


@call(LOGITS)
class Entmax15(Function):
    @staticmethod
    def forward(ctx, z):
        a = raw(z) / 2
        low, high = a.max(axis=-1, keepdims=True) - 1, a.max(axis=-1, keepdims=True)
        for _ in range(60):
            middle = (low + high) / 2
            above = (np.maximum(a - middle, 0) ** 2).sum(axis=-1, keepdims=True) >= 1
            low, high = np.where(above, middle, low), np.where(above, high, middle)
        root = np.maximum(a - low, 0)
        ctx.root = root
        return vg.Tensor(root**2)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g, root = raw(grad), ctx.root
        mean = (g * root).sum(axis=-1, keepdims=True) / root.sum(axis=-1, keepdims=True)
        return vg.Tensor(root * (g - mean))


@call(X, temperature=0.7)
def soft_sort(scores, temperature=1.0):
    ordered = vg.sort(scores)
    logits = -vg.abs(ordered[:, None] - scores[None, :]) / temperature
    weights = vg.exp(logits - logits.max(axis=1, keepdims=True))
    return (weights / weights.sum(axis=1, keepdims=True)) @ scores


@call(LOGITS, steps=4)
def sinkhorn_plan(cost, steps=5):
    log_plan = -cost
    for _ in range(steps):
        log_plan = log_plan - vg.logsumexp(log_plan, axis=1, keepdims=True)
        log_plan = log_plan - vg.logsumexp(log_plan, axis=0, keepdims=True)
    return vg.exp(log_plan)


NOISE = np.array([0.4, -0.3, 1.1, 0.2])


@call(LOGITS, temperature=0.8)
class GumbelSoftmax(Function):
    @staticmethod
    def forward(ctx, logits, temperature=1.0):
        z = (raw(logits) + NOISE) / temperature
        z = np.exp(z - z.max(axis=-1, keepdims=True))
        ctx.y = z / z.sum(axis=-1, keepdims=True)
        ctx.temperature = temperature
        return vg.Tensor(ctx.y)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        y, g = ctx.y.copy(), raw(grad)
        return vg.Tensor(y * (g - (g * y).sum(axis=-1, keepdims=True)) / ctx.temperature), None


# -- surrogates --------------------------------------------------------------------------------------------------------


def clipped_identity(w, threshold=0.5):
    return vg.minimum(vg.maximum(w, -1.0), 1.0)


@call(np.array([0.2, -0.7, 0.9, -1.4, 1.8]), threshold=0.6, means={"surrogate": clipped_identity})
class Ternary(Function):
    @staticmethod
    def forward(ctx, w, threshold=0.5):
        ctx.save_for_backward(w)
        a = raw(w)
        return vg.Tensor(np.sign(a) * (np.abs(a) > threshold))

    @staticmethod
    def backward(ctx, grad):
        (w,) = ctx.saved_tensors
        return grad * ((w >= -1) & (w <= 1)), None


def through_arctan(v, width=2.0):
    return vg.arctan(np.pi / 2 * width * v) / np.pi


@call(np.array([0.3, -0.4, 1.2, -2.2]), width=1.7, means={"surrogate": through_arctan})
class ArctanSpike(Function):
    @staticmethod
    def forward(ctx, v, width=2.0):
        ctx.save_for_backward(v)
        ctx.width = width
        return vg.Tensor((raw(v) > 0).astype(float))

    @staticmethod
    def backward(ctx, grad):
        (v,) = ctx.saved_tensors
        return grad * (ctx.width / 2) / (1 + (np.pi / 2 * ctx.width * v) ** 2), None


def on_the_mask(x, k=2):
    order = np.argsort(-np.abs(raw(x)), axis=-1, kind="stable")[..., :k]
    mask = np.zeros(x.shape)
    np.put_along_axis(mask, order, 1.0, axis=-1)
    return x * mask


@call(M, k=2, means={"options": {"k": [1, 2]}})
class KeepLargest(Function):
    @staticmethod
    def forward(ctx, x, k=2):
        a = raw(x)
        order = np.argsort(-np.abs(a), axis=-1, kind="stable")[..., :k]
        ctx.mask = np.zeros(a.shape)
        np.put_along_axis(ctx.mask, order, 1.0, axis=-1)
        return vg.Tensor(a * ctx.mask)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * ctx.mask, None


# -- losses ------------------------------------------------------------------------------------------------------------


@call(3 * X, Y, width=2.0, curvature=0.5)
class WingLoss(Function):
    @staticmethod
    def forward(ctx, predicted, observed, width=5.0, curvature=0.5):
        d = raw(predicted) - raw(observed)
        size = np.abs(d)
        offset = width - width * np.log1p(width / curvature)
        ctx.d, ctx.width, ctx.curvature = d, width, curvature
        return vg.Tensor(np.where(size < width, width * np.log1p(size / curvature), size - offset).sum())

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        size = np.abs(ctx.d)
        slope = np.sign(ctx.d) * np.where(size < ctx.width, ctx.width / (ctx.curvature + size), 1.0)
        return grad * slope, -grad * slope, None, None


@call(X, Y, beta=0.8)
class SmoothL1(Function):
    @staticmethod
    def forward(ctx, predicted, observed, beta=1.0):
        ctx.save_for_backward(predicted, observed)
        ctx.beta = beta
        d = raw(predicted) - raw(observed)
        return vg.Tensor(np.where(np.abs(d) < beta, d * d / (2 * beta), np.abs(d) - beta / 2).mean())

    @staticmethod
    def backward(ctx, grad):
        predicted, observed = ctx.saved_tensors
        d = predicted - observed
        slope = vg.where(vg.abs(d) < ctx.beta, d / ctx.beta, vg.sign(d)) / d.size
        return grad * slope, -grad * slope, None


@call(np.array([0.7, 0.2, 0.9, 0.4]), np.array([1.0, 0.0, 1.0, 1.0]), means={"domain": ((0.01, 0.99), None)})
class Tversky(Function):
    @staticmethod
    def forward(ctx, p, target, alpha=0.3, beta=0.7):
        a, t = raw(p), raw(target)
        hit, false, missed = (a * t).sum(), (a * (1 - t)).sum(), ((1 - a) * t).sum()
        ctx.parts = a, t, hit, hit + alpha * false + beta * missed
        ctx.alpha, ctx.beta = alpha, beta
        return vg.Tensor(1 - hit / ctx.parts[3])

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        a, t, hit, whole = ctx.parts
        by_p = t + ctx.alpha * (1 - t) - ctx.beta * t
        by_t = a - ctx.alpha * a + ctx.beta * (1 - a)
        return (
            -grad * (t * whole - hit * by_p) / whole**2,
            -grad * (a * whole - hit * by_t) / whole**2,
            None,
            None,
        )


@call(np.array([0.1, 0.2, 1.4, 1.6]), np.array([0.5, 0.7, 2.1, 1.2]))
def box_loss(box, other):
    width = vg.minimum(box[2], other[2]) - vg.maximum(box[0], other[0])
    height = vg.minimum(box[3], other[3]) - vg.maximum(box[1], other[1])
    inter = vg.maximum(width, 0.0) * vg.maximum(height, 0.0)
    areas = [(b[2] - b[0]) * (b[3] - b[1]) for b in (box, other)]
    union = areas[0] + areas[1] - inter
    hull = (vg.maximum(box[2], other[2]) - vg.minimum(box[0], other[0])) * (
        vg.maximum(box[3], other[3]) - vg.minimum(box[1], other[1])
    )
    return 1 - inter / union + (hull - union) / hull


@call(np.array([0.9, -0.4, 0.3, 1.7]), np.array([1, 0, 1, 0]))
class LovaszHinge(Function):
    @staticmethod
    def forward(ctx, logits, labels):
        signs = 2.0 * raw(labels) - 1.0
        errors = 1 - raw(logits) * signs
        order = np.argsort(-errors, kind="stable")
        truth = raw(labels)[order]
        inter = truth.sum() - np.cumsum(truth)
        union = truth.sum() + np.cumsum(1 - truth)
        jaccard = 1 - inter / np.maximum(union, 1)
        weights = np.diff(jaccard, prepend=0.0)
        slope = np.zeros_like(errors)
        slope[order] = weights * (errors[order] > 0)
        ctx.slope = -slope * signs
        return vg.Tensor(np.maximum(errors[order], 0) @ weights)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * ctx.slope, None


@call(X)
class ListLikelihood(Function):
    @staticmethod
    def forward(ctx, scores):
        s = raw(scores) - raw(scores).max()
        tails = np.cumsum(np.exp(s)[::-1])[::-1]
        ctx.e, ctx.tails = np.exp(s), tails
        return vg.Tensor((np.log(tails) - s).sum())

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * (ctx.e * np.cumsum(1 / ctx.tails) - 1)


@call(M, N, temperature=0.5)
def contrastive(a, b, temperature=0.1):
    a = a / vg.sqrt((a * a).sum(axis=1, keepdims=True))
    b = b / vg.sqrt((b * b).sum(axis=1, keepdims=True))
    logits = a @ b.T / temperature
    return (vg.logsumexp(logits, axis=1) - vg.diagonal(logits)).mean()


# -- transport and alignment -------------------------------------------------------------------------------------------


@call(POINTS, OTHERS)
class Chamfer(Function):
    @staticmethod
    def forward(ctx, a, b):
        p, q = raw(a), raw(b)
        squared = ((p[:, None] - q[None]) ** 2).sum(axis=-1)
        ctx.save_for_backward(a, b)
        ctx.to_b, ctx.to_a = squared.argmin(axis=1), squared.argmin(axis=0)
        return vg.Tensor(squared.min(axis=1).mean() + squared.min(axis=0).mean())

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        p, q = (raw(each) for each in ctx.saved_tensors)
        ga, gb = np.zeros_like(p), np.zeros_like(q)
        one = 2 * (p - q[ctx.to_b]) / len(p)
        other = 2 * (q - p[ctx.to_a]) / len(q)
        ga += one
        np.add.at(gb, ctx.to_b, -one)
        gb += other
        np.add.at(ga, ctx.to_a, -other)
        return grad * ga, grad * gb


@call(X, Y)
class Wasserstein1(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.by_a, ctx.by_b = np.argsort(raw(a), kind="stable"), np.argsort(raw(b), kind="stable")
        d = raw(a)[ctx.by_a] - raw(b)[ctx.by_b]
        ctx.signs = np.sign(d) / len(d)
        return vg.Tensor(np.abs(d).mean())

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        ga, gb = np.empty_like(ctx.signs), np.empty_like(ctx.signs)
        ga[ctx.by_a] = ctx.signs
        gb[ctx.by_b] = -ctx.signs
        return grad * ga, grad * gb


@call(CLOUD, MOVED)
class AlignedDistance(Function):
    """The sum of squares after the best rotation (W. Kabsch, 1976); it has the gradient of a fixed rotation."""

    @staticmethod
    def forward(ctx, a, b):
        p, q = raw(a) - raw(a).mean(axis=0), raw(b) - raw(b).mean(axis=0)
        u, _, vt = np.linalg.svd(p.T @ q)
        turn = np.diag([1.0, 1.0, np.sign(np.linalg.det(u @ vt)) or 1.0])
        rotation = u @ turn @ vt
        ctx.d, ctx.rotation = p @ rotation - q, rotation
        return vg.Tensor((ctx.d**2).sum())

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * (2 * ctx.d @ ctx.rotation.T), -grad * 2 * ctx.d


@call(X, Y[:4], gamma=0.6)
class SoftDtw(Function):
    @staticmethod
    def forward(ctx, a, b, gamma=1.0):
        n, m = len(a), len(b)
        cost = (raw(a)[:, None] - raw(b)[None]) ** 2
        r = np.full((n + 1, m + 1), np.inf)
        r[0, 0] = 0.0
        for i in range(n):
            for j in range(m):
                before = np.array([r[i, j], r[i, j + 1], r[i + 1, j]])
                least = before.min()
                r[i + 1, j + 1] = cost[i, j] + least - gamma * np.log(np.exp(-(before - least) / gamma).sum())
        ctx.save_for_backward(a, b)
        ctx.r, ctx.cost, ctx.gamma = r, cost, gamma
        return vg.Tensor(r[n, m])

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        a, b = (raw(each) for each in ctx.saved_tensors)
        n, m = ctx.cost.shape
        e = np.zeros((n + 1, m + 1))
        e[n, m] = 1.0
        for i in range(n, 0, -1):
            for j in range(m, 0, -1):
                for di, dj in ((1, 1), (1, 0), (0, 1)):
                    if i + di <= n and j + dj <= m:
                        after = ctx.r[i + di, j + dj] - ctx.cost[i + di - 1, j + dj - 1]
                        e[i, j] += e[i + di, j + dj] * np.exp((after - ctx.r[i, j]) / ctx.gamma)
        weights = 2 * e[1:, 1:] * (a[:, None] - b[None])
        return grad * weights.sum(axis=1), -grad * weights.sum(axis=0), None


# -- sequences ---------------------------------------------------------------------------------------------------------


def log_sum(a, axis):
    top = a.max(axis=axis, keepdims=True)
    return np.log(np.exp(a - top).sum(axis=axis)) + top.squeeze(axis)


@call(LOGITS, TRANSITIONS)
class ChainPartition(Function):
    """The log of the partition function of a linear chain, differentiated by the backward recursion."""

    @staticmethod
    def forward(ctx, emissions, transitions):
        e, t = raw(emissions), raw(transitions)
        alphas = [e[0]]
        for k in range(1, len(e)):
            alphas.append(e[k] + log_sum(alphas[-1][:, None] + t, axis=0))
        ctx.alphas, ctx.e, ctx.t = alphas, e.copy(), t.copy()
        ctx.total = log_sum(alphas[-1], axis=0)
        return vg.Tensor(ctx.total)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        e, t = ctx.e, ctx.t
        beta = np.zeros(e.shape[1])
        ge, gt = np.zeros_like(e), np.zeros_like(t)
        ge[-1] = np.exp(ctx.alphas[-1] - ctx.total)
        for k in range(len(e) - 1, 0, -1):
            joint = np.exp(ctx.alphas[k - 1][:, None] + t + e[k] + beta - ctx.total)
            gt += joint
            beta = log_sum(t + e[k] + beta, axis=1)
            ge[k - 1] = np.exp(ctx.alphas[k - 1] + beta - ctx.total)
        return grad * ge, grad * gt


@call(LOGITS, np.array([1, 2]))
def alignment_loss(logits, labels):
    """Connectionist temporal classification, with blank 0, by the forward recursion."""
    chosen = np.asarray(raw(labels))
    p = vg.exp(logits - vg.logsumexp(logits, axis=1, keepdims=True))
    states = [0]
    for label in chosen:
        states += [int(label), 0]
    alpha = [p[0, 0], p[0, states[1]]] + [0.0] * (len(states) - 2)
    for k in range(1, len(logits)):
        new = []
        for s, state in enumerate(states):
            total = alpha[s] + (alpha[s - 1] if s else 0.0)
            if s > 1 and state and state != states[s - 2]:
                total = total + alpha[s - 2]
            new.append(total * p[k, state])
        alpha = new
    return -vg.log(alpha[-1] + alpha[-2])


@call(np.array([0.9, 0.5, -0.7, 0.3]), np.array([1.0, -0.4, 0.6, 0.8]))
class LinearRecurrence(Function):
    @staticmethod
    def forward(ctx, decay, drive):
        a, b = raw(decay), raw(drive)
        h = np.zeros(len(a) + 1)
        for k in range(len(a)):
            h[k + 1] = a[k] * h[k] + b[k]
        ctx.save_for_backward(decay)
        ctx.h = h
        return vg.Tensor(h[1:])

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (decay,) = ctx.saved_tensors
        a, g = raw(decay), raw(grad)
        ga, gb, carry = np.zeros_like(a), np.zeros_like(a), 0.0
        for k in range(len(a) - 1, -1, -1):
            carry = g[k] + carry
            gb[k] = carry
            ga[k] = carry * ctx.h[k]
            carry = carry * a[k]
        return vg.Tensor(ga), vg.Tensor(gb)


@call(X)
class RunningMaximum(Function):
    @staticmethod
    def forward(ctx, x):
        a = raw(x)
        ctx.places = np.maximum.accumulate(np.where(a >= np.maximum.accumulate(a), np.arange(len(a)), 0))
        return vg.Tensor(a[ctx.places])

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        out = np.zeros(len(ctx.places))
        np.add.at(out, ctx.places, raw(grad))
        return vg.Tensor(out)


@call(X)
class RunningLogSum(Function):
    @staticmethod
    def forward(ctx, x):
        out = np.logaddexp.accumulate(raw(x))
        y = vg.Tensor(out)
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x, y = (raw(each) for each in ctx.saved_tensors)
        weights = np.exp(np.minimum(x[None] - y[:, None], 0)) * np.tri(len(x))
        return vg.Tensor(raw(grad) @ weights)


# -- images and signals ------------------------------------------------------------------------------------------------


@call(IMAGE, GRID)
class GridSample(Function):
    @staticmethod
    def forward(ctx, image, places):
        a, p = raw(image), raw(places)
        corner = np.minimum(np.floor(p).astype(int), np.array(a.shape) - 2)
        ctx.save_for_backward(image)
        (i, j), (u, v) = corner.T, (p - corner).T
        ctx.i, ctx.j, ctx.u, ctx.v = i, j, u, v
        top = a[i, j] * (1 - v) + a[i, j + 1] * v
        bottom = a[i + 1, j] * (1 - v) + a[i + 1, j + 1] * v
        return vg.Tensor(top * (1 - u) + bottom * u)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        a, g = raw(ctx.saved_tensors[0]), raw(grad)
        i, j, u, v = ctx.i, ctx.j, ctx.u, ctx.v
        out = np.zeros_like(a)
        for di, wu in ((0, 1 - u), (1, u)):
            for dj, wv in ((0, 1 - v), (1, v)):
                np.add.at(out, (i + di, j + dj), g * wu * wv)
        down = (a[i + 1, j] - a[i, j]) * (1 - v) + (a[i + 1, j + 1] - a[i, j + 1]) * v
        along = (a[i, j + 1] - a[i, j]) * (1 - u) + (a[i + 1, j + 1] - a[i + 1, j]) * u
        return vg.Tensor(out), vg.Tensor(np.stack([g * down, g * along], axis=1))


@call(IMAGE, box=(0.4, 0.7, 2.6, 3.1))
class RoiAlign(Function):
    @staticmethod
    def forward(ctx, image, box=(0.0, 0.0, 1.0, 1.0), bins=2):
        top, left, bottom, right = box
        rows = top + (np.arange(bins) + 0.5) / bins * (bottom - top)
        columns = left + (np.arange(bins) + 0.5) / bins * (right - left)
        ctx.by_rows = RoiAlign.weights(rows, image.shape[0])
        ctx.by_columns = RoiAlign.weights(columns, image.shape[1])
        return vg.Tensor(ctx.by_rows @ raw(image) @ ctx.by_columns.T)

    @staticmethod
    def weights(places, n):
        return np.maximum(1 - np.abs(places[:, None] - np.arange(n)), 0)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return vg.Tensor(ctx.by_rows.T @ raw(grad) @ ctx.by_columns), None, None


@call(IMAGE[:, :4], r=2)
class PixelUnshuffle(Function):
    @staticmethod
    def forward(ctx, x, r=2):
        h, w = x.shape
        ctx.r, ctx.shape = r, (h, w)
        return vg.Tensor(raw(x).reshape(h // r, r, w // r, r).transpose(1, 3, 0, 2).reshape(r * r, h // r, w // r))

    @staticmethod
    def backward(ctx, grad):
        (h, w), r = ctx.shape, ctx.r
        return grad.reshape(r, r, h // r, w // r).transpose(2, 0, 3, 1).reshape(h, w), None


@call(SIGNAL, size=13)
class CubicResize(Function):
    """Resampling by the kernel of Catmull and Rom, at aligned ends."""

    @staticmethod
    def forward(ctx, x, size=16):
        n = len(x)
        places = np.arange(size) * (n - 1) / (size - 1)
        start = np.minimum(np.floor(places).astype(int), n - 2)
        t = places - start
        weights = np.stack([
            0.5 * (-(t**3) + 2 * t**2 - t), 0.5 * (3 * t**3 - 5 * t**2 + 2),
            0.5 * (-3 * t**3 + 4 * t**2 + t), 0.5 * (t**3 - t**2),
        ])  # fmt: skip
        ctx.n, ctx.weights = n, weights
        ctx.places = np.clip(start + np.arange(-1, 3)[:, None], 0, n - 1)
        return vg.Tensor((weights * raw(x)[ctx.places]).sum(axis=0))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        out = np.zeros(ctx.n)
        np.add.at(out, ctx.places, ctx.weights * raw(grad))
        return vg.Tensor(out), None


@call(SIGNAL, KERNEL, stride=2)
class TransposedConvolution(Function):
    @staticmethod
    def forward(ctx, x, kernel, stride=1):
        ctx.save_for_backward(x, kernel)
        ctx.stride = stride
        a, w = raw(x), raw(kernel)
        out = np.zeros((len(a) - 1) * stride + len(w))
        for k, value in enumerate(a):
            out[k * stride : k * stride + len(w)] += value * w
        return vg.Tensor(out)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (x, kernel), g, s = ctx.saved_tensors, raw(grad), ctx.stride
        a, w = raw(x), raw(kernel)
        windows = np.stack([g[k * s : k * s + len(w)] for k in range(len(a))])
        return vg.Tensor(windows @ w), vg.Tensor(a @ windows), None


@call(SIGNAL, KERNEL, dilation=2)
class DilatedConvolution(Function):
    @staticmethod
    def forward(ctx, x, kernel, dilation=1):
        ctx.save_for_backward(x, kernel)
        ctx.dilation = dilation
        n = len(x) - dilation * (len(kernel) - 1)
        return vg.Tensor(sum(w * raw(x)[k * dilation : k * dilation + n] for k, w in enumerate(raw(kernel))))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x, kernel = (raw(each) for each in ctx.saved_tensors)
        g, d = raw(grad), ctx.dilation
        by_x, by_kernel = np.zeros_like(x), np.zeros_like(kernel)
        for k in range(len(kernel)):
            by_x[k * d : k * d + len(g)] += kernel[k] * g
            by_kernel[k] = x[k * d : k * d + len(g)] @ g
        return vg.Tensor(by_x), vg.Tensor(by_kernel), None


@call(np.stack([IMAGE, 0.5 * IMAGE**2]), np.array([[[0.5, -0.3], [0.8, 0.1]], [[-0.2, 0.4], [0.6, 0.9]]]))
class DepthwiseConvolution(Function):
    @staticmethod
    def forward(ctx, x, kernel):
        ctx.save_for_backward(x, kernel)
        a, w = raw(x), raw(kernel)
        out = 0.0
        for i in range(2):
            for j in range(2):
                out = out + w[:, i, j, None, None] * a[:, i : a.shape[1] - 1 + i, j : a.shape[2] - 1 + j]
        return vg.Tensor(out)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (a, w), g = (raw(each) for each in ctx.saved_tensors), raw(grad)
        by_x, by_kernel = np.zeros_like(a), np.zeros_like(w)
        for i in range(2):
            for j in range(2):
                window = (slice(None), slice(i, a.shape[1] - 1 + i), slice(j, a.shape[2] - 1 + j))
                by_x[window] += w[:, i, j, None, None] * g
                by_kernel[:, i, j] = (a[window] * g).sum(axis=(1, 2))
        return vg.Tensor(by_x), vg.Tensor(by_kernel)


@call(SIGNAL, KERNEL)
class FftConvolution(Function):
    @staticmethod
    def forward(ctx, x, kernel):
        n = len(x) + len(kernel) - 1
        ctx.save_for_backward(x, kernel)
        ctx.n = n
        return vg.Tensor(np.fft.irfft(np.fft.rfft(raw(x), n) * np.fft.rfft(raw(kernel), n), n))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (x, kernel), n = ctx.saved_tensors, ctx.n
        spectrum = np.fft.rfft(raw(grad), n)
        by_x = np.fft.irfft(spectrum * np.conj(np.fft.rfft(raw(kernel), n)), n)[: len(x)]
        by_kernel = np.fft.irfft(spectrum * np.conj(np.fft.rfft(raw(x), n)), n)[: len(kernel)]
        return vg.Tensor(by_x), vg.Tensor(by_kernel)


@call(SIGNAL)
class HaarStep(Function):
    @staticmethod
    def forward(ctx, x):
        a = raw(x)
        even, odd = a[..., ::2], a[..., 1::2]
        return vg.Tensor((even + odd) / np.sqrt(2)), vg.Tensor((even - odd) / np.sqrt(2))

    @staticmethod
    def backward(ctx, smooth, detail):
        pairs = vg.stack([(smooth + detail) / np.sqrt(2), (smooth - detail) / np.sqrt(2)], axis=-1)
        return pairs.reshape(*smooth.shape[:-1], 2 * smooth.shape[-1])


DAUBECHIES = np.array([0.48296291314469025, 0.836516303737469, 0.22414386804185735, -0.12940952255092145])


@call(SIGNAL)
class PeriodicWavelet(Function):
    @staticmethod
    def forward(ctx, x):
        n = len(x)
        ctx.places = (np.arange(0, n, 2)[:, None] + np.arange(4)) % n
        ctx.n = n
        return vg.Tensor(raw(x)[ctx.places] @ DAUBECHIES)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        out = np.zeros(ctx.n)
        np.add.at(out, ctx.places, raw(grad)[:, None] * DAUBECHIES)
        return vg.Tensor(out)


@call(SIGNAL, window=4, hop=2)
class Spectrogram(Function):
    @staticmethod
    def forward(ctx, x, window=4, hop=1):
        ctx.starts = np.arange(0, len(x) - window + 1, hop)[:, None] + np.arange(window)
        ctx.n, ctx.taper = len(x), np.hanning(window + 2)[1:-1]
        ctx.spectra = np.fft.rfft(raw(x)[ctx.starts] * ctx.taper)
        return vg.Tensor(np.abs(ctx.spectra) ** 2)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        window = len(ctx.taper)
        angle = 2 * np.pi * np.outer(np.arange(window // 2 + 1), np.arange(window)) / window
        g = 2 * raw(grad)
        frames = (g * ctx.spectra.real) @ np.cos(angle) - (g * ctx.spectra.imag) @ np.sin(angle)
        out = np.zeros(ctx.n)
        np.add.at(out, ctx.starts, frames * ctx.taper)
        return vg.Tensor(out), None, None


# -- normalizations ----------------------------------------------------------------------------------------------------


@call(M, np.array([1.1, 0.7, -0.4]))
class RmsNorm(Function):
    @staticmethod
    def forward(ctx, x, weight, eps=1e-6):
        a, w = raw(x), raw(weight)
        inverse = 1 / np.sqrt((a * a).mean(axis=-1, keepdims=True) + eps)
        ctx.save_for_backward(x, weight)
        ctx.inverse = inverse
        return vg.Tensor(a * inverse * w)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (x, weight), g = ctx.saved_tensors, raw(grad)
        a, w, inverse = raw(x), raw(weight), ctx.inverse
        scaled = g * w
        by_x = inverse * (scaled - a * inverse**2 * (scaled * a).mean(axis=-1, keepdims=True))
        by_weight = (g * a * inverse).reshape(-1, a.shape[-1]).sum(axis=0)
        return vg.Tensor(by_x), vg.Tensor(by_weight), None


@call(np.stack([IMAGE[:, :4], IMAGE[:, 1:]]), groups=2)
class GroupNorm(Function):
    @staticmethod
    def forward(ctx, x, groups=1, eps=1e-5):
        a = raw(x).reshape(x.shape[0], groups, -1)
        centred = a - a.mean(axis=-1, keepdims=True)
        inverse = 1 / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + eps)
        ctx.normal, ctx.inverse, ctx.shape = centred * inverse, inverse, x.shape
        return vg.Tensor((centred * inverse).reshape(x.shape))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g, y = raw(grad).reshape(ctx.normal.shape), ctx.normal
        out = g - g.mean(axis=-1, keepdims=True) - y * (g * y).mean(axis=-1, keepdims=True)
        return vg.Tensor((out * ctx.inverse).reshape(ctx.shape)), None, None


@call(np.array([0.9, -1.4]), M)
class WeightNorm(Function):
    @staticmethod
    def forward(ctx, g, v):
        norm = vg.sqrt((v * v).sum(axis=1, keepdims=True))
        ctx.save_for_backward(g, v, norm)
        return g[:, None] * v / norm

    @staticmethod
    def backward(ctx, grad):
        g, v, norm = ctx.saved_tensors
        along = (grad * v).sum(axis=1, keepdims=True) / norm
        return along[:, 0], g[:, None] / norm * (grad - along * v / norm)


LEFT, RIGHT = np.array([0.6, -0.8]), np.array([0.2, 0.5, -0.7])


@call(M)
class DividedBySigma(Function):
    """A matrix over its estimated spectral norm, for vectors that power iteration has found."""

    @staticmethod
    def forward(ctx, w):
        sigma = LEFT @ w @ RIGHT
        ctx.save_for_backward(w, sigma)
        return w / sigma

    @staticmethod
    def backward(ctx, grad):
        w, sigma = ctx.saved_tensors
        return grad / sigma - (grad * w).sum() / sigma**2 * np.outer(LEFT, RIGHT)


@call(LOGITS, size=3)
class ResponseNorm(Function):
    """Normalization across neighbouring channels, which are the last axis."""

    @staticmethod
    def forward(ctx, x, size=3, alpha=0.5, beta=0.75):
        n = x.shape[-1]
        ctx.band = (np.abs(np.arange(n)[:, None] - np.arange(n)) <= size // 2).astype(float)
        ctx.save_for_backward(x)
        ctx.alpha, ctx.beta, ctx.size = alpha, beta, size
        a = raw(x)
        return vg.Tensor(a * (1 + alpha / size * (a * a) @ ctx.band) ** -beta)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        a, g, rate = raw(ctx.saved_tensors[0]), raw(grad), ctx.alpha / ctx.size
        base = 1 + rate * (a * a) @ ctx.band
        spread = (g * a * base ** (-ctx.beta - 1)) @ ctx.band
        return vg.Tensor(g * base**-ctx.beta - 2 * rate * ctx.beta * a * spread), None, None, None


# -- attention, embeddings, segments -----------------------------------------------------------------------------------


@call(M, N, np.array([[0.4, 0.1], [-0.8, 0.6]]))
class Attention(Function):
    @staticmethod
    def forward(ctx, q, k, v):
        ctx.scale = 1 / np.sqrt(q.shape[1])
        z = raw(q) @ raw(k).T * ctx.scale
        p = np.exp(z - z.max(axis=1, keepdims=True))
        ctx.p = p / p.sum(axis=1, keepdims=True)
        ctx.save_for_backward(q, k, v)
        return vg.Tensor(ctx.p @ raw(v))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (q, k, v), p, g = (raw(each) for each in ctx.saved_tensors), ctx.p, raw(grad)
        gp = g @ v.T
        gz = p * (gp - (gp * p).sum(axis=1, keepdims=True)) * ctx.scale
        return vg.Tensor(gz @ k), vg.Tensor(gz.T @ q), vg.Tensor(p.T @ g)


@call(LOGITS)
class RotaryEmbedding(Function):
    @staticmethod
    def forward(ctx, x):
        half = x.shape[1] // 2
        angle = np.arange(x.shape[0])[:, None] * 0.5 ** np.arange(half)
        ctx.cos, ctx.sin = np.cos(angle), np.sin(angle)
        a, b = raw(x)[:, :half], raw(x)[:, half:]
        return vg.Tensor(np.concatenate([a * ctx.cos - b * ctx.sin, a * ctx.sin + b * ctx.cos], axis=1))

    @staticmethod
    def backward(ctx, grad):
        half = grad.shape[1] // 2
        a, b = grad[:, :half], grad[:, half:]
        return vg.concatenate([a * ctx.cos + b * ctx.sin, b * ctx.cos - a * ctx.sin], axis=1)


@call(np.array([[0.7, -1.3], [1.9, 0.4], [-0.6, 0.8], [0.1, 1.5]]), np.array([0, 0, 2, 2]), count=3)
class SegmentMaximum(Function):
    @staticmethod
    def forward(ctx, x, segments, count=3):
        a, s = raw(x), raw(segments)
        out = np.zeros((count, a.shape[1]))
        ctx.rows = np.full(out.shape, -1)
        for segment in range(count):
            rows = np.flatnonzero(s == segment)
            if len(rows):
                best = rows[a[rows].argmax(axis=0)]
                ctx.rows[segment] = best
                out[segment] = a[best, np.arange(a.shape[1])]
        ctx.shape = a.shape
        return vg.Tensor(out)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        out = np.zeros(ctx.shape)
        for segment, best in enumerate(ctx.rows):
            if best[0] >= 0:
                out[best, np.arange(ctx.shape[1])] += raw(grad)[segment]
        return vg.Tensor(out), None, None


@call(np.array([0.3, -0.2, 0.9]), M, np.array([2, 0]))
class ScatterAdded(Function):
    @staticmethod
    def forward(ctx, base, rows, places):
        ctx.places = raw(places).copy()
        ctx.columns = rows.shape[1]
        out = raw(base).copy()
        np.add.at(out, ctx.places, raw(rows).sum(axis=1))
        return vg.Tensor(out)

    @staticmethod
    def backward(ctx, grad):
        return grad.clone(), vg.repeat(grad[ctx.places][:, None], ctx.columns, axis=1), None


@call(M, p=3.0)
class LpPool(Function):
    @staticmethod
    def forward(ctx, x, p=2.0):
        a = np.abs(raw(x))
        norm = (a**p).sum(axis=-1) ** (1 / p)
        ctx.save_for_backward(x)
        ctx.norm, ctx.p = norm, p
        return vg.Tensor(norm)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        a, norm = raw(ctx.saved_tensors[0]), ctx.norm[..., None]
        ratio = np.divide(np.abs(a), norm, out=np.zeros_like(a), where=norm > 0)
        return vg.Tensor(raw(grad)[..., None] * np.sign(a) * ratio ** (ctx.p - 1)), None


# -- linear algebra ----------------------------------------------------------------------------------------------------


@call(SPD, RIGHT_SIDE, means={"structure": {"a": "positive definite"}})
class CholeskySolve(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.factor = scipy.linalg.cho_factor(raw(a))
        x = vg.Tensor(scipy.linalg.cho_solve(ctx.factor, raw(b)))
        ctx.save_for_backward(x)
        return x

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x = raw(ctx.saved_tensors[0])
        w = scipy.linalg.cho_solve(ctx.factor, raw(grad))
        return vg.Tensor(-(np.outer(w, x) + np.outer(x, w)) / 2), vg.Tensor(w)


@call(SQUARE, SPD, np.array([[0.3, -0.1, 0.8], [0.6, 0.4, -0.5], [-0.2, 0.9, 0.7]]))
class Sylvester(Function):
    @staticmethod
    def forward(ctx, a, b, c):
        x = vg.Tensor(scipy.linalg.solve_sylvester(raw(a), raw(b), raw(c)))
        ctx.save_for_backward(a, b, x)
        return x

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        a, b, x = (raw(each) for each in ctx.saved_tensors)
        w = scipy.linalg.solve_sylvester(a.T, b.T, raw(grad))
        return vg.Tensor(-w @ x.T), vg.Tensor(-x.T @ w), vg.Tensor(w)


@call(SPD, means={"structure": {"a": "symmetric"}})
class LargestEigenvalue(Function):
    @staticmethod
    def forward(ctx, a):
        values, vectors = np.linalg.eigh(raw(a))
        ctx.vector = vectors[:, -1]
        return vg.Tensor(values[-1])

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * np.outer(ctx.vector, ctx.vector)


@call(CLOUD[:3], scale=0.9)
class RbfGram(Function):
    @staticmethod
    def forward(ctx, x, scale=1.0):
        a = raw(x)
        squared = ((a[:, None] - a[None]) ** 2).sum(axis=-1)
        k = vg.Tensor(np.exp(-squared / (2 * scale**2)))
        ctx.save_for_backward(x, k)
        ctx.scale = scale
        return k

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x, k = (raw(each) for each in ctx.saved_tensors)
        w = raw(grad) * k
        w = w + w.T
        return vg.Tensor((w @ x - w.sum(axis=1, keepdims=True) * x) / ctx.scale**2), None


@call(0.4 * CLOUD[0], 0.3 * CLOUD[1])
def poincare_distance(a, b):
    d = a - b
    return vg.arccosh(1 + 2 * (d * d).sum() / ((1 - (a * a).sum()) * (1 - (b * b).sum())))


# -- rotations ---------------------------------------------------------------------------------------------------------


def hamilton(p, q):
    return np.stack([
        p[..., 0] * q[..., 0] - p[..., 1] * q[..., 1] - p[..., 2] * q[..., 2] - p[..., 3] * q[..., 3],
        p[..., 0] * q[..., 1] + p[..., 1] * q[..., 0] + p[..., 2] * q[..., 3] - p[..., 3] * q[..., 2],
        p[..., 0] * q[..., 2] - p[..., 1] * q[..., 3] + p[..., 2] * q[..., 0] + p[..., 3] * q[..., 1],
        p[..., 0] * q[..., 3] + p[..., 1] * q[..., 2] - p[..., 2] * q[..., 1] + p[..., 3] * q[..., 0],
    ], axis=-1)  # fmt: skip


@call(QUATERNION, OTHER_QUATERNION)
class QuaternionProduct(Function):
    CONJUGATE = np.array([1.0, -1.0, -1.0, -1.0])

    @staticmethod
    def forward(ctx, p, q):
        ctx.save_for_backward(p, q)
        return vg.Tensor(hamilton(raw(p), raw(q)))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (p, q), g = (raw(each) for each in ctx.saved_tensors), raw(grad)
        c = QuaternionProduct.CONJUGATE
        return vg.Tensor(hamilton(g, q * c)), vg.Tensor(hamilton(p * c, g))


@call(np.array([0.4, -0.9, 0.7]), np.array([1.3, 0.4, -0.7]))
def rotated(turn, v):
    angle = vg.sqrt((turn * turn).sum() + 1e-12)
    axis = turn / angle
    x, y, z = axis
    across = vg.stack([y * v[2] - z * v[1], z * v[0] - x * v[2], x * v[1] - y * v[0]])
    return v * vg.cos(angle) + across * vg.sin(angle) + axis * (axis * v).sum() * (1 - vg.cos(angle))


# -- dynamics and splines ----------------------------------------------------------------------------------------------


@call(np.array([1.2, 0.7]), np.array([0.9, 0.4, 0.8, 0.3]), h=0.1)
def prey_and_predators(state, rates, h=0.01):

    def slope(s):
        return vg.stack([s[0] * (rates[0] - rates[1] * s[1]), s[1] * (rates[3] * s[0] - rates[2])])

    k1 = slope(state)
    k2 = slope(state + h / 2 * k1)
    k3 = slope(state + h / 2 * k2)
    k4 = slope(state + h * k3)
    return state + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


@call(np.array([0.8, -0.5]), np.array([0.1, 0.6]), h=0.2)
class Leapfrog(Function):
    """A step of pendulums: half a kick, a drift, half a kick."""

    @staticmethod
    def forward(ctx, q, p, h=0.1):
        ctx.save_for_backward(q)
        half = raw(p) - h / 2 * np.sin(raw(q))
        new = raw(q) + h * half
        ctx.new, ctx.h = new, h
        return vg.Tensor(new), vg.Tensor(half - h / 2 * np.sin(new))

    @staticmethod
    @once_differentiable
    def backward(ctx, gq, gp):
        h, q = ctx.h, raw(ctx.saved_tensors[0])
        gq = raw(gq) - h / 2 * np.cos(ctx.new) * raw(gp)
        half = raw(gp) + h * gq
        return vg.Tensor(gq - h / 2 * np.cos(q) * half), vg.Tensor(half), None


@call(np.array([0.4, 1.3, 2.7]), np.array([0.5, -0.3, 1.1, 0.8, -0.9, 0.2]))
class CubicBasis(Function):
    """A uniform cubic B-spline at some places."""

    @staticmethod
    def forward(ctx, t, coefficients):
        a, c = raw(t), raw(coefficients)
        k = np.minimum(np.floor(a).astype(int), len(c) - 4)
        u = a - k
        ctx.weights = np.stack([(1 - u) ** 3, 3 * u**3 - 6 * u**2 + 4, 3 * (u - u**3 + u**2) + 1, u**3]) / 6
        slopes = np.stack([-((1 - u) ** 2), 3 * u**2 - 4 * u, 1 - 3 * u**2 + 2 * u, u**2]) / 2
        ctx.places, ctx.n = k + np.arange(4)[:, None], len(c)
        ctx.slope = (slopes * c[ctx.places]).sum(axis=0)
        return vg.Tensor((ctx.weights * c[ctx.places]).sum(axis=0))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g, out = raw(grad), np.zeros(ctx.n)
        np.add.at(out, ctx.places, ctx.weights * g)
        return vg.Tensor(g * ctx.slope), vg.Tensor(out)


@call(0.3, np.array([1.0, 2.0]), np.array([0.4, -0.6]), width=0.5)
def hermite_step(t, values, slopes, width=1.0):
    a = (2 * t**3 - 3 * t**2 + 1) * values[0] + (3 * t**2 - 2 * t**3) * values[1]
    return a + width * ((t**3 - 2 * t**2 + t) * slopes[0] + (t**3 - t**2) * slopes[1])


# -- densities ---------------------------------------------------------------------------------------------------------


@call(X, np.array(0.3), kappa=1.4)
class VonMises(Function):
    @staticmethod
    def forward(ctx, angle, mean, kappa=1.0):
        ctx.save_for_backward(angle, mean)
        ctx.kappa = kappa
        d = raw(angle) - raw(mean)
        normal = np.log(2 * np.pi * scipy.special.i0e(kappa)) + kappa
        return vg.Tensor(kappa * np.cos(d) - normal)

    @staticmethod
    def backward(ctx, grad):
        angle, mean = ctx.saved_tensors
        slope = -grad * ctx.kappa * vg.sin(angle - mean)
        return slope, -slope.sum(), None


@call(np.array([2, 0, 5, 1]), np.array(1.7), np.array(0.35), means={"domain": {"r": (0.1, 50.0), "p": (0.01, 0.99)}})
class NegativeBinomial(Function):
    @staticmethod
    def forward(ctx, counts, r, p):
        n = raw(counts)
        ctx.save_for_backward(r, p)
        ctx.n = n.copy()
        log = scipy.special.gammaln
        size, share = float(raw(r)), float(raw(p))
        each = log(n + size) - log(size) - log(n + 1) + size * np.log(share) + n * np.log1p(-share)
        return vg.Tensor(each.sum())

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        r, p = (float(raw(each)) for each in ctx.saved_tensors)
        n, psi = ctx.n, scipy.special.digamma
        by_r = (psi(n + r) - psi(r) + np.log(p)).sum()
        by_p = (r / p - n / (1 - p)).sum()
        return None, grad * by_r, grad * by_p


@call(np.array([[0.2, 0.5, 0.3], [0.6, 0.1, 0.3]]), np.array([1.4, 0.8, 2.3]), means={"domain": (0.01, 50.0)})
class DirichletLogDensity(Function):
    @staticmethod
    def forward(ctx, shares, weights):
        ctx.save_for_backward(shares, weights)
        w = raw(weights)
        normal = scipy.special.gammaln(w.sum()) - scipy.special.gammaln(w).sum()
        return vg.Tensor(normal + np.log(raw(shares)) @ (w - 1))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (s, w), g = (raw(each) for each in ctx.saved_tensors), raw(grad)
        by_weight = g[..., None] * (scipy.special.digamma(w.sum()) - scipy.special.digamma(w) + np.log(s))
        return vg.Tensor(g[..., None] * (w - 1) / s), vg.Tensor(by_weight.reshape(-1, w.size).sum(axis=0))


@call(M, N, rate=0.3)
def moving_target(online, target, rate=0.01):
    return (1 - rate) * target + rate * online


@call(np.array([0.9, 1.4, 0.6]), np.array([0.2, -0.7, 0.5]))
class ReparameterizedNormal(Function):
    @staticmethod
    def forward(ctx, log_scale, mean):
        noise = np.random.default_rng(3).normal(size=mean.shape)
        ctx.step = np.exp(raw(log_scale)) * noise
        return vg.Tensor(raw(mean) + ctx.step)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * ctx.step, grad.clone()


@call(M, N)
class ManhattanTable(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.signs = np.sign(raw(a)[:, None] - raw(b)[None])
        return vg.Tensor(np.abs(raw(a)[:, None] - raw(b)[None]).sum(axis=-1))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        weighted = raw(grad)[..., None] * ctx.signs
        return vg.Tensor(weighted.sum(axis=1)), vg.Tensor(-weighted.sum(axis=0))
