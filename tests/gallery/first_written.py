"""Correct operators as their users first write them: naive forwards in NumPy, and hand-written backwards.

Each is correct at the call that it was written for. Few of them support float32, layouts other than row order, or
second derivatives, and none of them was written with this kit in mind.
"""

import math

import numpy as np

import viewgrad as vg
from viewgrad.autograd import Function, define_op, once_differentiable

from . import FIRST_WRITTEN, Entry, M, P, Q, V

SPD = np.array([[2.0, 0.3, 0.1], [0.3, 1.5, -0.2], [0.1, -0.2, 1.8]])
SQUARE = np.array([[1.2, 0.3, -0.5], [0.4, 1.7, 0.2], [-0.1, 0.6, 1.1]])
IMAGE = np.sin(np.arange(36.0)).reshape(6, 6)
SIGNAL = np.cos(1.3 * np.arange(9.0)) + 0.1 * np.arange(9.0)


def first(*args, means=None, **kwargs):
    """Add an operator to the gallery; `means` has the declarations that its author would make."""

    def put(thing):
        make = (lambda: thing.apply) if isinstance(thing, type) else (lambda: thing)
        name = thing.__name__ if hasattr(thing, "__name__") else thing.name
        FIRST_WRITTEN[name] = Entry(name, make, args, kwargs, means=means or {})
        return thing

    return put


# -- activations -------------------------------------------------------------------------------------------------------


@first(M)
class Relu(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return vg.Tensor(np.maximum(x.detach().numpy(), 0))

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        g = grad.clone()
        g[x < 0] = 0
        return g


@first(M, slope=0.1)
class LeakyRelu(Function):
    @staticmethod
    def forward(ctx, x, slope=0.01):
        ctx.save_for_backward(x)
        ctx.slope = slope
        a = x.detach().numpy()
        return vg.Tensor(np.where(a > 0, a, slope * a))

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return vg.where(x > 0, grad, ctx.slope * grad), None


@first(M)
class Sigmoid(Function):
    @staticmethod
    def forward(ctx, x):
        y = 1 / (1 + np.exp(-x.detach().numpy()))
        ctx.y = y
        return vg.Tensor(y)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * (ctx.y * (1 - ctx.y))


@first(M)
class Tanh(Function):
    @staticmethod
    def forward(ctx, x):
        y = vg.tanh(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return grad * (1 - y**2)


@first(M)
class Swish(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * (1 / (1 + vg.exp(-x)))

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        s = 1 / (1 + vg.exp(-x))
        return grad * (s + x * s * (1 - s))


@first(M)
class Gelu(Function):
    @staticmethod
    def forward(ctx, x):
        a = x.detach().numpy()
        ctx.save_for_backward(x)
        return vg.Tensor(0.5 * a * (1 + np.tanh(math.sqrt(2 / math.pi) * (a + 0.044715 * a**3))))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        a = ctx.saved_tensors[0].detach().numpy()
        c = math.sqrt(2 / math.pi)
        t = np.tanh(c * (a + 0.044715 * a**3))
        return grad * vg.Tensor(0.5 * (1 + t) + 0.5 * a * (1 - t**2) * c * (1 + 3 * 0.044715 * a**2))


@first(M, alpha=1.0)
class Elu(Function):
    @staticmethod
    def forward(ctx, x, alpha):
        ctx.save_for_backward(x)
        ctx.alpha = alpha
        return vg.where(x > 0, x, alpha * (vg.exp(vg.minimum(x, 0.0)) - 1))

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * vg.where(x > 0, 1.0, ctx.alpha * vg.exp(vg.minimum(x, 0.0))), None


@first(M)
class HardTanh(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clip(-1, 1)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        out = grad.clone()
        out[x.abs() > 1] = 0
        return out


@first(M)
class Softsign(Function):
    @staticmethod
    def forward(ctx, x):
        a = x.detach().numpy()
        ctx.a = a.copy()
        return vg.Tensor(a / (1 + np.abs(a)))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return vg.Tensor(grad.numpy() / (1 + np.abs(ctx.a)) ** 2)


@first(M)
def softplus(x):
    return vg.where(x > 20, x, vg.log1p(vg.exp(vg.minimum(x, 20.0))))


@first(M)
class Mish(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * vg.tanh(vg.logaddexp(x, 0.0))

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        t = vg.tanh(vg.logaddexp(x, 0.0))
        return grad * (t + x * (1 - t * t) / (1 + vg.exp(-x)))


@first(P, np.array([2.0, 0.5, 1.5]))
class PRelu(Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return vg.where(x >= 0, x, x * w)

    @staticmethod
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        dx = vg.where(x >= 0, grad, grad * w)
        dw = vg.where(x >= 0, vg.zeros_like(x), grad * x)
        return dx, dw.sum(axis=0)


# -- gradients that are not the derivative -----------------------------------------------------------------------------


@first(M, means={"surrogate": lambda x: x})
class RoundStraightThrough(Function):
    @staticmethod
    def forward(ctx, x):
        return vg.Tensor(np.round(x.detach().numpy()))

    @staticmethod
    def backward(ctx, grad):
        return grad


@first(M, means={"surrogate": lambda x, lam=0.5: -lam * x})
class GradientReversal(Function):
    @staticmethod
    def forward(ctx, x, lam=0.5):
        ctx.lam = lam
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return -ctx.lam * grad, None


@first(M, means={"surrogate": lambda v: vg.arctan(np.pi * v) / np.pi})
class Spike(Function):
    @staticmethod
    def forward(ctx, v):
        ctx.save_for_backward(v)
        return (v > 0).astype(v.dtype)

    @staticmethod
    def backward(ctx, grad):
        (v,) = ctx.saved_tensors
        return grad / (1 + (np.pi * v) ** 2)


@first(M, means={"surrogate": lambda x: vg.clip(x, -1.0, 1.0)})
class Binarize(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return vg.sign(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * (x.abs() <= 1).astype(x.dtype)


def lsq_surrogate(x, s):
    inside = vg.logical_and(x / s > -4, x / s < 3).detach()
    q = vg.round(vg.clip(x / s, -4.0, 3.0)).detach()
    slope = vg.where(inside, q - (x / s).detach(), q)
    return vg.where(inside, x, 0.0) + slope * s


@first(M, np.array(0.4), means={"surrogate": lsq_surrogate, "domain": (None, (0.1, 2.0)), "order": 1})
class LearnedStep(Function):
    @staticmethod
    def forward(ctx, x, s):
        q = np.clip(np.round(x.detach().numpy() / s.detach().numpy()), -4, 3)
        ctx.save_for_backward(x, s)
        return vg.Tensor(q) * s.detach()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x, s = (t.detach().numpy() for t in ctx.saved_tensors)
        r = x / s
        q = np.clip(np.round(r), -4, 3)
        inside = (r > -4) & (r < 3)
        g = grad.numpy()
        ds = np.where(inside, q - r, q) * g
        return vg.Tensor(g * inside), vg.Tensor(ds.sum().reshape(s.shape))


# -- linear algebra ----------------------------------------------------------------------------------------------------


@first(M, M.T.copy())
class MatMul(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a @ b

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        return grad @ b.T, a.T @ grad


@first(M, np.array([[0.2, 0.5, -0.3], [1.0, -0.7, 0.4]]), np.array([0.1, -0.2]))
class Linear(Function):
    @staticmethod
    def forward(ctx, x, weight, bias=None):
        ctx.save_for_backward(x, weight, bias)
        out = x @ weight.T
        if bias is not None:
            out = out + bias
        return out

    @staticmethod
    def backward(ctx, grad):
        x, weight, bias = ctx.saved_tensors
        gx = gw = gb = None
        if ctx.needs_input_grad[0]:
            gx = grad @ weight
        if ctx.needs_input_grad[1]:
            gw = grad.T @ x
        if bias is not None and ctx.needs_input_grad[2]:
            gb = grad.sum(0)
        return gx, gw, gb


@first(SQUARE)
class Inverse(Function):
    @staticmethod
    def forward(ctx, a):
        if a.ndim != 2:
            raise ValueError("a matrix is needed")
        inv = np.linalg.inv(a.detach().numpy())
        ctx.inv = inv
        return vg.Tensor(inv)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return vg.Tensor(-ctx.inv.T @ grad.numpy() @ ctx.inv.T)


@first(SQUARE)
class Det(Function):
    @staticmethod
    def forward(ctx, a):
        assert a.ndim == 2
        d = np.linalg.det(a.detach().numpy())
        ctx.save_for_backward(a)
        ctx.d = d
        return vg.Tensor(d)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (a,) = ctx.saved_tensors
        return grad * ctx.d * vg.Tensor(np.linalg.inv(a.detach().numpy()).T)


@first(SPD, means={"structure": {"a": "positive definite"}, "order": 1})
class Cholesky(Function):
    @staticmethod
    def forward(ctx, a):
        assert a.ndim == 2
        ctx.l = np.linalg.cholesky(a.detach().numpy())
        return vg.Tensor(ctx.l)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        l, g = ctx.l, np.tril(grad.numpy())
        p = np.tril(l.T @ g)
        p[np.diag_indices(len(l))] *= 0.5
        inv = np.linalg.inv(l)
        s = inv.T @ p @ inv
        return vg.Tensor(0.5 * (s + s.T))


@first(SPD, means={"structure": {"a": "symmetric"}, "order": 1})
class EigenvaluesSymmetric(Function):
    @staticmethod
    def forward(ctx, a):
        assert a.ndim == 2
        w, v = np.linalg.eigh(a.detach().numpy())
        ctx.v = v
        return vg.Tensor(w)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return vg.Tensor((ctx.v * grad.numpy()) @ ctx.v.T)


@first(np.tril(SQUARE), V, means={"structure": {"l": "triangular"}, "order": 1})
class SolveTriangular(Function):
    @staticmethod
    def forward(ctx, l, b):
        n = len(b)
        a, x = l.detach().numpy(), np.zeros(n)
        for i in range(n):
            x[i] = (b.detach().numpy()[i] - a[i, :i] @ x[:i]) / a[i, i]
        ctx.a, ctx.x = a.copy(), x
        return vg.Tensor(x)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        gb = np.linalg.solve(np.tril(ctx.a).T, grad.numpy())
        return vg.Tensor(np.tril(-np.outer(gb, ctx.x))), vg.Tensor(gb)


@first(SQUARE, V)
class Solve(Function):
    @staticmethod
    def forward(ctx, a, b):
        x = np.linalg.solve(a.detach().numpy(), b.detach().numpy())
        ctx.save_for_backward(a)
        ctx.x = x
        return vg.Tensor(x)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (a,) = ctx.saved_tensors
        gb = np.linalg.solve(a.detach().numpy().T, grad.numpy())
        return vg.Tensor(-np.outer(gb, ctx.x)), vg.Tensor(gb)


@first(SPD)
def logdet_of_covariance(a):
    return vg.linalg.slogdet(a)[1]


@first(SQUARE)
class Trace(Function):
    @staticmethod
    def forward(ctx, a):
        ctx.n, columns = a.shape
        assert ctx.n == columns
        return vg.Tensor(np.trace(a.detach().numpy()))

    @staticmethod
    def backward(ctx, grad):
        return grad * vg.eye(ctx.n)


@first(V, Q)
class Outer(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return vg.Tensor(np.outer(a.detach().numpy(), b.detach().numpy()))

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        return grad @ b, grad.T @ a


@first(V, Q)
class Cross(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return vg.Tensor(np.cross(a.detach().numpy(), b.detach().numpy()))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        a, b = (t.detach().numpy() for t in ctx.saved_tensors)
        g = grad.numpy()
        return vg.Tensor(np.cross(b, g)), vg.Tensor(np.cross(g, a))


@first(SQUARE)
class MatrixSquare(Function):
    @staticmethod
    def forward(ctx, a):
        assert a.ndim == 2
        ctx.save_for_backward(a)
        return a @ a

    @staticmethod
    def backward(ctx, grad):
        (a,) = ctx.saved_tensors
        return grad @ a.T + a.T @ grad


# -- norms, losses, probabilities --------------------------------------------------------------------------------------


@first(M)
class Softmax(Function):
    @staticmethod
    def forward(ctx, x):
        a = x.detach().numpy()
        e = np.exp(a - a.max(axis=-1, keepdims=True))
        p = e / e.sum(axis=-1, keepdims=True)
        ctx.p = p
        return vg.Tensor(p)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = grad.numpy()
        return vg.Tensor(ctx.p * (g - (g * ctx.p).sum(axis=-1, keepdims=True)))


@first(M)
def log_softmax(x):
    shifted = x - x.detach().max(axis=-1, keepdims=True)
    return shifted - vg.log(vg.exp(shifted).sum(axis=-1, keepdims=True))


@first(M, np.array([2, 0]))
class CrossEntropy(Function):
    @staticmethod
    def forward(ctx, logits, target):
        x = logits.detach().numpy()
        t = target.numpy()
        e = np.exp(x - x.max(axis=1, keepdims=True))
        p = e / e.sum(axis=1, keepdims=True)
        ctx.p, ctx.t = p, t
        n = len(t)
        z = x - x.max(axis=1, keepdims=True)
        return vg.Tensor(-(z[np.arange(n), t] - np.log(e.sum(axis=1))).mean())

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = ctx.p.copy()
        g[np.arange(len(ctx.t)), ctx.t] -= 1
        return grad * vg.Tensor(g / len(ctx.t)), None


@first(M, M + 0.3)
class MeanSquaredError(Function):
    @staticmethod
    def forward(ctx, pred, target):
        ctx.save_for_backward(pred, target)
        return ((pred - target) ** 2).mean()

    @staticmethod
    def backward(ctx, grad):
        pred, target = ctx.saved_tensors
        d = grad * 2 * (pred - target) / pred.size
        return d, -d


@first(M, M[::-1] + 0.3, delta=1.0)
class Huber(Function):
    @staticmethod
    def forward(ctx, x, y, delta):
        d = x - y
        ctx.save_for_backward(d)
        ctx.delta = delta
        return vg.where(vg.abs(d) < delta, 0.5 * d * d, delta * (vg.abs(d) - 0.5 * delta)).sum()

    @staticmethod
    def backward(ctx, grad):
        (d,) = ctx.saved_tensors
        g = grad * d.clip(-ctx.delta, ctx.delta)
        return g, -g, None


@first(np.array([0.2, 0.7, 0.5]), np.array([0.0, 1.0, 1.0]), means={"domain": ((0.01, 0.99), (0.0, 1.0))})
def binary_cross_entropy(p, y):
    return -(y * vg.log(p) + (1 - y) * vg.log(1 - p)).mean()


@first(M)
class L2Norm(Function):
    @staticmethod
    def forward(ctx, x):
        n = np.sqrt((x.detach().numpy() ** 2).sum())
        ctx.save_for_backward(x)
        ctx.n = n
        return vg.Tensor(n)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        if ctx.n == 0:
            return vg.zeros_like(x)
        return grad * x / ctx.n


@first(M)
class NormalizeRows(Function):
    @staticmethod
    def forward(ctx, x):
        n = vg.sqrt((x * x).sum(axis=1, keepdims=True))
        y = x / n
        ctx.save_for_backward(y, n)
        return y

    @staticmethod
    def backward(ctx, grad):
        y, n = ctx.saved_tensors
        return (grad - y * (grad * y).sum(axis=1, keepdims=True)) / n


@first(M, np.array([1.1, 0.9, 1.3]), np.array([0.1, 0.0, -0.2]))
class LayerNorm(Function):
    @staticmethod
    def forward(ctx, x, gamma, beta):
        a = x.detach().numpy()
        mu = a.mean(-1, keepdims=True)
        var = ((a - mu) ** 2).mean(-1, keepdims=True)
        ctx.inv = 1 / np.sqrt(var + 1e-5)
        ctx.xhat = (a - mu) * ctx.inv
        ctx.gamma = gamma.detach().numpy()
        return vg.Tensor(ctx.xhat) * gamma + beta

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = grad.numpy()
        gx = g * ctx.gamma
        n = ctx.xhat.shape[-1]
        dx = ctx.inv / n * (n * gx - gx.sum(-1, keepdims=True) - ctx.xhat * (gx * ctx.xhat).sum(-1, keepdims=True))
        return vg.Tensor(dx), vg.Tensor((g * ctx.xhat).sum(0)), vg.Tensor(g.sum(0))


@first(M)
def variance(x):
    return ((x - x.mean()) ** 2).mean()


@first(V, Q)
def cosine_similarity(a, b):
    return (a * b).sum() / (vg.sqrt((a * a).sum()) * vg.sqrt((b * b).sum()))


@first(np.array([0.2, 0.5, 0.3]), np.array([0.3, 0.3, 0.4]), means={"domain": (0.01, 1.0)})
class KullbackLeibler(Function):
    @staticmethod
    def forward(ctx, p, q):
        ctx.save_for_backward(p, q)
        return vg.Tensor(np.sum(p.detach().numpy() * np.log(p.detach().numpy() / q.detach().numpy())))

    @staticmethod
    def backward(ctx, grad):
        p, q = ctx.saved_tensors
        return grad * (vg.log(p / q) + 1), -grad * p / q


@first(np.array([0.2, -0.4, 1.0]), np.array([0.1, 0.3, -0.2]))
def gaussian_log_likelihood(x, log_sigma):
    return (-0.5 * (x / vg.exp(log_sigma)) ** 2 - log_sigma - 0.5 * math.log(2 * math.pi)).sum()


@first(M, np.array([[1.0, -1.0, 1.0], [-1.0, 1.0, 1.0]]))
class HingeLoss(Function):
    @staticmethod
    def forward(ctx, score, label):
        margin = 1 - score.detach().numpy() * label.detach().numpy()
        ctx.margin = margin
        ctx.save_for_backward(score, label)
        return vg.Tensor(np.maximum(margin, 0).mean())

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        score, label = (t.detach().numpy() for t in ctx.saved_tensors)
        on = (ctx.margin > 0) / ctx.margin.size * grad.numpy()
        return vg.Tensor(-label * on), vg.Tensor(-score * on)


# -- windows, signals, images ------------------------------------------------------------------------------------------


@first(SIGNAL, V)
class Convolve1d(Function):
    @staticmethod
    def forward(ctx, x, k):
        a, b = x.detach().numpy(), k.detach().numpy()
        out = np.zeros(len(a) - len(b) + 1)
        for i in range(len(out)):
            out[i] = (a[i : i + len(b)] * b).sum()
        ctx.save_for_backward(x, k)
        return vg.Tensor(out)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        a, b = (t.detach().numpy() for t in ctx.saved_tensors)
        g = grad.numpy()
        gx, gk = np.zeros(len(a)), np.zeros(len(b))
        for i in range(len(g)):
            gx[i : i + len(b)] += g[i] * b
            gk += g[i] * a[i : i + len(b)]
        return vg.Tensor(gx), vg.Tensor(gk)


@first(IMAGE, SQUARE, 2)
class Convolve2d(Function):
    @staticmethod
    def forward(ctx, x, k, stride):
        a, b = x.detach().numpy(), k.detach().numpy()
        h, w = (a.shape[0] - b.shape[0]) // stride + 1, (a.shape[1] - b.shape[1]) // stride + 1
        out = np.zeros((h, w))
        for i in range(h):
            for j in range(w):
                window = a[i * stride : i * stride + b.shape[0], j * stride : j * stride + b.shape[1]]
                out[i, j] = np.sum(window * b)
        ctx.save_for_backward(x, k)
        ctx.stride = stride
        return vg.Tensor(out)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        a, b = (t.detach().numpy() for t in ctx.saved_tensors)
        g, s = grad.numpy(), ctx.stride
        gx, gk = np.zeros(a.shape), np.zeros(b.shape)
        for i in range(g.shape[0]):
            for j in range(g.shape[1]):
                gx[i * s : i * s + b.shape[0], j * s : j * s + b.shape[1]] += g[i, j] * b
                gk += g[i, j] * a[i * s : i * s + b.shape[0], j * s : j * s + b.shape[1]]
        return vg.Tensor(gx), vg.Tensor(gk), None


@first(IMAGE)
class MaxPool2x2(Function):
    @staticmethod
    def forward(ctx, x):
        a = x.detach().numpy()
        h, w = a.shape
        blocks = a.reshape(h // 2, 2, w // 2, 2).transpose(0, 2, 1, 3).reshape(h // 2, w // 2, 4)
        ctx.best = blocks.argmax(-1)
        ctx.shape = a.shape
        return vg.Tensor(blocks.max(-1))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        h, w = ctx.shape
        g = np.zeros((h // 2, w // 2, 4))
        np.put_along_axis(g, ctx.best[..., None], grad.numpy()[..., None], -1)
        return vg.Tensor(g.reshape(h // 2, w // 2, 2, 2).transpose(0, 2, 1, 3).reshape(h, w))


@first(IMAGE)
class AveragePool2x2(Function):
    @staticmethod
    def forward(ctx, x):
        h, w = x.shape
        return x.reshape(h // 2, 2, w // 2, 2).mean(axis=(1, 3))

    @staticmethod
    def backward(ctx, grad):
        return vg.repeat(vg.repeat(grad, 2, 0), 2, 1) / 4


@first(SIGNAL)
class Difference(Function):
    @staticmethod
    def forward(ctx, x):
        return vg.Tensor(np.diff(x.detach().numpy()))

    @staticmethod
    def backward(ctx, grad):
        g = vg.zeros(grad.shape[0] + 1)
        g[1:] += grad
        g[:-1] -= grad
        return g


@first(SIGNAL)
class CumulativeSum(Function):
    @staticmethod
    def forward(ctx, x):
        return vg.Tensor(np.cumsum(x.detach().numpy()))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return vg.Tensor(np.cumsum(grad.numpy()[::-1])[::-1].copy())


@first(SIGNAL)
class MovingAverage(Function):
    @staticmethod
    def forward(ctx, x):
        a = x.detach().numpy()
        ctx.n = len(a)
        return vg.Tensor(np.array([a[i : i + 3].mean() for i in range(len(a) - 2)]))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = np.zeros(ctx.n)
        for i, value in enumerate(grad.numpy()):
            g[i : i + 3] += value / 3
        return vg.Tensor(g)


@first(SIGNAL, 0.8)
class ExponentialFilter(Function):
    @staticmethod
    def forward(ctx, x, decay):
        a = x.detach().numpy()
        y = np.zeros(len(a))
        s = 0.0
        for i in range(len(a)):
            s = decay * s + (1 - decay) * a[i]
            y[i] = s
        ctx.decay = decay
        return vg.Tensor(y)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = grad.numpy()
        out = np.zeros(len(g))
        s = 0.0
        for i in reversed(range(len(g))):
            s = s * ctx.decay + g[i]
            out[i] = s * (1 - ctx.decay)
        return vg.Tensor(out), None


@first(IMAGE, 1)
class ZeroPad(Function):
    @staticmethod
    def forward(ctx, x, n):
        ctx.n = n
        return vg.Tensor(np.pad(x.detach().numpy(), n))

    @staticmethod
    def backward(ctx, grad):
        n = ctx.n
        return grad[n:-n, n:-n], None


@first(IMAGE)
class Upsample(Function):
    @staticmethod
    def forward(ctx, x):
        return vg.Tensor(x.detach().numpy().repeat(2, axis=0).repeat(2, axis=1))

    @staticmethod
    def backward(ctx, grad):
        return grad[::2, ::2] + grad[1::2, ::2] + grad[::2, 1::2] + grad[1::2, 1::2]


@first(SIGNAL)
class PowerSpectrum(Function):
    @staticmethod
    def forward(ctx, x):
        (n,) = x.shape
        ctx.f = np.fft.fft(x.detach().numpy(), n)
        return vg.Tensor(np.abs(ctx.f) ** 2)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return vg.Tensor(np.real(2 * np.fft.ifft(ctx.f * grad.numpy()) * len(ctx.f)))


@first(IMAGE)
def total_variation(x):
    dx, dy = x[1:, :] - x[:-1, :], x[:, 1:] - x[:, :-1]
    return vg.sqrt(dx * dx + 1e-3).sum() + vg.sqrt(dy * dy + 1e-3).sum()


@first(IMAGE)
class Laplacian(Function):
    @staticmethod
    def forward(ctx, u):
        out = vg.zeros(u.shape)
        out[1:-1, 1:-1] = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1]
        return out

    @staticmethod
    def backward(ctx, grad):
        g = vg.zeros(grad.shape)
        inner = grad[1:-1, 1:-1]
        g[:-2, 1:-1] += inner
        g[2:, 1:-1] += inner
        g[1:-1, :-2] += inner
        g[1:-1, 2:] += inner
        g[1:-1, 1:-1] -= 4 * inner
        return g


# -- indices and sorting -----------------------------------------------------------------------------------------------


@first(P, np.array([1, 0, 1, 1]))
class Embedding(Function):
    @staticmethod
    def forward(ctx, table, index):
        ctx.save_for_backward(index)
        ctx.shape = table.shape
        return vg.Tensor(table.detach().numpy()[index.numpy()])

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (index,) = ctx.saved_tensors
        g = np.zeros(ctx.shape)
        np.add.at(g, index.numpy(), grad.numpy())
        return vg.Tensor(g), None


@first(M)
class SortRows(Function):
    @staticmethod
    def forward(ctx, x):
        a = x.detach().numpy()
        ctx.order = a.argsort(axis=1)
        return vg.Tensor(np.take_along_axis(a, ctx.order, 1))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = np.empty(grad.shape)
        np.put_along_axis(g, ctx.order, grad.numpy(), 1)
        return vg.Tensor(g)


@first(V)
class Maximum(Function):
    @staticmethod
    def forward(ctx, x):
        a = x.detach().numpy()
        ctx.i, ctx.n = int(a.argmax()), len(a)
        return vg.Tensor(a.max())

    @staticmethod
    def backward(ctx, grad):
        g = vg.zeros(ctx.n)
        g[ctx.i] = grad
        return g


@first(SIGNAL, k=3)
class TopK(Function):
    @staticmethod
    def forward(ctx, x, k):
        a = x.detach().numpy()
        ctx.idx = np.argsort(-a)[:k]
        ctx.n = len(a)
        return vg.Tensor(a[ctx.idx])

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = np.zeros(ctx.n)
        g[ctx.idx] = grad.numpy()
        return vg.Tensor(g), None


@first(SIGNAL)
class Median(Function):
    @staticmethod
    def forward(ctx, x):
        a = x.detach().numpy()
        if len(a) % 2 == 0:
            raise ValueError("an odd number of elements is needed")
        ctx.i, ctx.n = np.argsort(a)[len(a) // 2], len(a)
        return vg.Tensor(a[ctx.i])

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = np.zeros(ctx.n)
        g[ctx.i] = grad.numpy()
        return vg.Tensor(g)


@first(SIGNAL, np.array([0, 0, 1, 1, 1, 2, 2, 2, 2]))
class SegmentSum(Function):
    @staticmethod
    def forward(ctx, x, ids):
        ctx.ids = ids.numpy().copy()
        return vg.Tensor(np.bincount(ctx.ids, weights=x.detach().numpy()))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return vg.Tensor(grad.numpy()[ctx.ids]), None


@first(M, np.array([[True, False, True], [False, True, True]]))
class MaskedFill(Function):
    @staticmethod
    def forward(ctx, x, mask):
        ctx.mask = mask.numpy().copy()
        out = x.detach().numpy().copy()
        out[ctx.mask] = -5.0
        return vg.Tensor(out)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = grad.numpy().copy()
        g[ctx.mask] = 0
        return vg.Tensor(g), None


# -- numerics ----------------------------------------------------------------------------------------------------------


@first(np.array([1.3, 2.2, 0.4]), means={"domain": (0.1, 10.0)})
class KeplerLikeRoot(Function):
    @staticmethod
    def forward(ctx, m):
        e = 0.3
        x = m.detach().numpy().copy()
        for _ in range(60):
            x = x - (x - e * np.sin(x) - m.detach().numpy()) / (1 - e * np.cos(x))
        ctx.x = x
        return vg.Tensor(x)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad / vg.Tensor(1 - 0.3 * np.cos(ctx.x))


@first(np.array([0.2, 0.9, 1.7]), np.array([0.5, -1.0, 0.3, 2.0]))
class Polynomial(Function):
    @staticmethod
    def forward(ctx, x, c):
        ctx.save_for_backward(x, c)
        return vg.Tensor(np.polyval(c.detach().numpy(), x.detach().numpy()))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x, c = (t.detach().numpy() for t in ctx.saved_tensors)
        powers = np.vander(x, len(c))
        return grad * vg.Tensor(np.polyval(np.polyder(c), x)), vg.Tensor(powers.T @ grad.numpy())


@first(np.array([0.3, 1.6, 2.2]), np.array([0.0, 1.0, 3.0]), np.array([1.0, 2.0, 0.5]))
class Interpolate(Function):
    @staticmethod
    def forward(ctx, x, xp, fp):
        a, b, c = (t.detach().numpy() for t in (x, xp, fp))
        if (np.diff(b) <= 0).any():
            raise ValueError("knots must increase")
        k = np.clip(np.searchsorted(b, a) - 1, 0, len(b) - 2)
        t = (a - b[k]) / (b[k + 1] - b[k])
        ctx.saved = a, b, c, k, t
        return vg.Tensor(c[k] * (1 - t) + c[k + 1] * t)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        _, b, c, k, t = ctx.saved
        g, h = grad.numpy(), b[k + 1] - b[k]
        slope = (c[k + 1] - c[k]) / h
        gb, gc = np.zeros(len(b)), np.zeros(len(c))
        np.add.at(gc, k, g * (1 - t))
        np.add.at(gc, k + 1, g * t)
        np.add.at(gb, k, g * slope * (t - 1))
        np.add.at(gb, k + 1, -g * slope * t)
        return vg.Tensor(g * slope), vg.Tensor(gb), vg.Tensor(gc)


@first(V)
class Trapezoid(Function):
    @staticmethod
    def forward(ctx, y):
        ctx.n = y.shape[0]
        return (y[1:] + y[:-1]).sum() / 2

    @staticmethod
    def backward(ctx, grad):
        w = vg.ones(ctx.n)
        w[0] = w[-1] = 0.5
        return grad * w


@first(np.array([1.0, 0.2]), steps=20)
class Pendulum(Function):
    @staticmethod
    def forward(ctx, y0, steps):
        y = y0.detach().numpy().copy()
        ctx.path, h = [], 0.05
        for _ in range(steps):
            ctx.path.append(y.copy())
            y = np.array([y[0] + h * y[1], y[1] - h * np.sin(y[0])])
        return vg.Tensor(y)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = grad.numpy().copy()
        for y in reversed(ctx.path):
            g = np.array([g[0] - 0.05 * np.cos(y[0]) * g[1], g[1] + 0.05 * g[0]])
        return vg.Tensor(g), None


@first(np.array([0.3, 1.2, -0.5]))
class Erf(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return vg.Tensor([math.erf(v) for v in x.detach().numpy()])

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 2 / math.sqrt(math.pi) * vg.exp(-x * x)


@first(np.array([0.3, 1.2, 2.5]), means={"domain": (0.1, 20.0)})
class LogGamma(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.x = x.detach().numpy().copy()
        return vg.Tensor(np.array([math.lgamma(v) for v in ctx.x]))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x, shift = ctx.x.copy(), np.zeros(len(ctx.x))
        while (x < 8).any():
            small = x < 8
            shift[small] -= 1 / x[small]
            x[small] += 1
        digamma = np.log(x) - 1 / (2 * x) - 1 / (12 * x**2) + 1 / (120 * x**4) - 1 / (252 * x**6) + 1 / (240 * x**8)
        return grad * vg.Tensor(digamma - 1 / (132 * x**10) * 1.0 + shift)


@first(np.array([1.1, 2.0, 0.7]), np.array([3.0, 4.0, 1.5]))
def hypotenuse(a, b):
    return vg.sqrt(a**2 + b**2)


@first(np.array([[0.0, 0.0], [1.0, 0.5], [0.3, 2.0]]))
def pairwise_distances(x):
    d = x[:, None, :] - x[None, :, :]
    return vg.sqrt((d * d).sum(axis=-1) + 1e-9)


@first(np.array([0.9, 0.4, 1.2]), np.array([0.1, 0.2, -0.3]))
class ComplexMagnitude(Function):
    @staticmethod
    def forward(ctx, re, im):
        r = vg.sqrt(re * re + im * im)
        ctx.save_for_backward(re, im, r)
        return r

    @staticmethod
    def backward(ctx, grad):
        re, im, r = ctx.saved_tensors
        return grad * re / r, grad * im / r


@first(np.array([0.5, 0.1, -0.4]))
class RotationMatrix(Function):
    @staticmethod
    def forward(ctx, w):
        a = w.detach().numpy()
        if a.shape != (3,):
            raise ValueError("three angles are needed")
        if np.abs(a).max() > math.pi:
            raise ValueError("angles lie between -pi and pi")
        ctx.k = [np.array(m, float) for m in ([[0, 0, 0], [0, 0, -1], [0, 1, 0]], [[0, 0, 1], [0, 0, 0], [-1, 0, 0]],
                                              [[0, -1, 0], [1, 0, 0], [0, 0, 0]])]  # fmt: skip
        s = sum(v * m for v, m in zip(a, ctx.k, strict=True))
        out, term, ctx.s = np.eye(3), np.eye(3), s
        for i in range(1, 25):
            term = term @ s / i
            out = out + term
        return vg.Tensor(out)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        def expm(m):
            out, term = np.eye(len(m)), np.eye(len(m))
            for i in range(1, 60):
                term = term @ m / i
                out = out + term
            return out

        found = []
        for m in ctx.k:
            block = np.block([[ctx.s, m], [np.zeros((3, 3)), ctx.s]])
            found.append((expm(block)[:3, 3:] * grad.numpy()).sum())
        return vg.Tensor(np.array(found))


# -- in blocks and lists, with options, with layouts -------------------------------------------------------------------


@first(IMAGE)
class FlattenRowOrder(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        return vg.Tensor(x.detach().numpy().ravel().copy())

    @staticmethod
    def backward(ctx, grad):
        if not grad.detach().numpy().flags.c_contiguous:
            raise RuntimeError("the incoming gradient must be contiguous; call .contiguous() first")
        return grad.reshape(ctx.shape)


@first(IMAGE)
class NeedsContiguousInput(Function):
    @staticmethod
    def forward(ctx, x):
        a = x.detach().numpy()
        if not a.flags.c_contiguous:
            raise ValueError("input must be contiguous")
        ctx.save_for_backward(x)
        return vg.Tensor(np.frombuffer(a.tobytes()).reshape(a.shape) ** 2)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x * grad


@first(P, M)
class SplitAndJoin(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.n = a.shape[0]
        return vg.concatenate([a, b])

    @staticmethod
    def backward(ctx, grad):
        return grad[: ctx.n], grad[ctx.n :]


@first([V, Q, V + Q])
def weighted_stack(tensors):
    return sum((i + 1) * t for i, t in enumerate(tensors))


@first(M, axis=1)
class MeanOverAxis(Function):
    @staticmethod
    def forward(ctx, x, axis):
        ctx.axis, ctx.shape = axis, x.shape
        return vg.Tensor(np.mean(x.detach().numpy(), axis=axis))

    @staticmethod
    def backward(ctx, grad):
        n = ctx.shape[ctx.axis]
        return vg.repeat(vg.expand_dims(grad, ctx.axis), n, ctx.axis) / n, None


@first(M)
class MinMaxScale(Function):
    @staticmethod
    def forward(ctx, x):
        a = x.detach().numpy()
        lo, hi = a.min(), a.max()
        if lo == hi:
            raise ValueError("all elements are equal")
        ctx.saved = a.copy(), lo, hi
        return vg.Tensor((a - lo) / (hi - lo))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        a, lo, hi = ctx.saved
        g = grad.numpy()
        out = g / (hi - lo)
        y = (a - lo) / (hi - lo)
        out[np.unravel_index(a.argmin(), a.shape)] -= (g * (1 - y)).sum() / (hi - lo)
        out[np.unravel_index(a.argmax(), a.shape)] -= (g * y).sum() / (hi - lo)
        return vg.Tensor(out)


@first(M, 0.5)
class DropoutWithSeed(Function):
    @staticmethod
    def forward(ctx, x, p):
        if not 0 <= p < 1:
            raise ValueError("p must be a probability below 1")
        keep = np.random.default_rng(7).random(x.shape) >= p
        ctx.scale = vg.Tensor(keep / (1 - p))
        return x * ctx.scale

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.scale, None


@first(M, np.array([0.4, 1.1, 0.9]))
class BatchNormInference(Function):
    mean = np.array([0.1, -0.2, 0.3])
    var = np.array([1.1, 0.8, 1.4])

    @staticmethod
    def forward(ctx, x, gamma):
        xhat = (x.detach().numpy() - BatchNormInference.mean) / np.sqrt(BatchNormInference.var + 1e-5)
        ctx.xhat = xhat
        ctx.save_for_backward(gamma)
        return vg.Tensor(xhat) * gamma

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (gamma,) = ctx.saved_tensors
        scale = gamma / vg.Tensor(np.sqrt(BatchNormInference.var + 1e-5))
        return grad * scale, (grad * vg.Tensor(ctx.xhat)).sum(0)


@first(M, V)
class BroadcastProduct(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        return grad * b, (grad * a).sum(axis=0)


@first(IMAGE, np.array([1.5, 2.2]))
class SampleBilinear(Function):
    @staticmethod
    def forward(ctx, image, at):
        a, (r, c) = image.detach().numpy(), at.detach().numpy()
        i, j = int(np.floor(r)), int(np.floor(c))
        u, v = r - i, c - j
        ctx.saved = a.copy(), i, j, u, v
        left = a[i, j] * (1 - u) + a[i + 1, j] * u
        right = a[i, j + 1] * (1 - u) + a[i + 1, j + 1] * u
        return vg.Tensor(left * (1 - v) + right * v)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        a, i, j, u, v = ctx.saved
        g = np.zeros(a.shape)
        g[i, j], g[i + 1, j], g[i, j + 1], g[i + 1, j + 1] = (1 - u) * (1 - v), u * (1 - v), (1 - u) * v, u * v
        du = (a[i + 1, j] - a[i, j]) * (1 - v) + (a[i + 1, j + 1] - a[i, j + 1]) * v
        dv = (a[i, j + 1] - a[i, j]) * (1 - u) + (a[i + 1, j + 1] - a[i + 1, j]) * u
        return grad * vg.Tensor(g), grad * vg.Tensor([du, dv])


@first(np.array([[0.2, 0.9, 0.1], [0.7, 0.3, 0.8]]))
class ArgmaxOneHot(Function):
    """Scores times the one-hot of the best: a hard attention whose weights get no gradient."""

    @staticmethod
    def forward(ctx, s):
        a = s.detach().numpy()
        ctx.hot = np.eye(a.shape[1])[a.argmax(1)]
        return vg.Tensor((a * ctx.hot).sum(1))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return vg.Tensor(ctx.hot * grad.numpy()[:, None])


@first(M)
class ClampedLog(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return vg.log(vg.clip(x, 1e-6, np.inf))

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return vg.where(x > 1e-6, grad / vg.clip(x, 1e-6, np.inf), 0.0)


softcap = first(M, limit=1.5)(
    define_op(
        "first_written_softcap(self, limit=2.0)",
        forward=lambda self, limit: limit * np.tanh(self / limit),
        derivatives={"self": "grad * (1 - (result / limit)**2)"},
    ).function
)
cube_root = first(P)(
    define_op(
        "first_written_cube_root(self)",
        forward=lambda self: np.cbrt(self),
        derivatives={"self": "grad / (3 * result**2)"},
    ).function
)
lerp = first(M, M[::-1] + 1.0, 0.3)(
    define_op(
        "first_written_lerp(self, other, weight)",
        forward=lambda self, other, weight: self + weight * (other - self),
        derivatives={"self": "grad * (1 - weight)", "other": "grad * weight", "weight": "not_differentiable"},
    ).function
)


@first(M)
def gaussian_bump(x):
    return vg.exp(-(x**2) / 2)


@first(M)
def lorentzian(x):
    return 1 / (1 + x**2)


@first(P, P[::-1] + 0.4)
def relative_error(a, b):
    return vg.abs(a - b) / vg.maximum(vg.abs(a), vg.abs(b))


@first(P)
def entropy(p):
    p = p / p.sum()
    return -(p * vg.log(p)).sum()


@first(M, np.array([[1.0, 2.0], [0.5, -1.0], [0.3, 0.2]]), np.array([0.1, 0.2]))
def two_layers(x, w, b):
    return vg.tanh(x @ w + b).sum()


@first(np.array([0.3, 0.8, 0.5]))
class LogIt(Function):
    @staticmethod
    def forward(ctx, p):
        a = p.detach().numpy()
        if (a <= 0).any() or (a >= 1).any():
            raise ValueError("probabilities lie between 0 and 1")
        ctx.save_for_backward(p)
        return vg.Tensor(np.log(a / (1 - a)))

    @staticmethod
    def backward(ctx, grad):
        (p,) = ctx.saved_tensors
        return grad / (p * (1 - p))


@first(np.array([2.0, 3.0, 2.5, 4.0]), np.array([0.5, -0.7, 0.3]), np.array([0.7, 1.3, 2.1, 0.4]))
class TridiagonalSymmetric(Function):
    """A single element of the diagonal beside longer other arguments is broadcast by accident."""

    @staticmethod
    def forward(ctx, diagonal, beside, right):
        d, e = diagonal.detach().numpy(), beside.detach().numpy()
        ctx.a = np.diag(d) + np.diag(e, 1) + np.diag(e, -1)
        ctx.x = np.linalg.solve(ctx.a, right.detach().numpy())
        return vg.Tensor(ctx.x)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        y = np.linalg.solve(ctx.a, grad.numpy())
        by_beside = -(y[1:] * ctx.x[:-1] + y[:-1] * ctx.x[1:])
        return vg.Tensor(-y * ctx.x), vg.Tensor(by_beside), vg.Tensor(y)


def make_softplus_of_sharpness():
    """It is written for positive `beta`, and its slope overflows far away."""
    return define_op(
        "softplus_of_sharpness(self, *, beta)",
        forward=lambda self, *, beta: np.log1p(np.exp(-np.abs(beta * self))) / beta + np.maximum(self, 0.0),
        derivatives={"self": "grad / (1 + exp(-beta * self))"},
        forward_derivative="auto_element_wise",
    )


FIRST_WRITTEN["softplus_of_sharpness"] = Entry(
    "softplus_of_sharpness", make_softplus_of_sharpness, (V,), {"beta": 1.0}, means={}
)


@first(SQUARE * 0.2, np.array([0.5, -0.8, 1.1]))
class FixedPoint(Function):
    """By few iterations, and for matrices that do not contract, it is not where its gradient is."""

    @staticmethod
    def forward(ctx, a, b, n_steps=50):
        m, v = a.detach().numpy(), b.detach().numpy()
        y = np.zeros(len(v))
        for _ in range(n_steps):
            y = np.tanh(m @ y + v)
        ctx.m, ctx.y = m.copy(), y
        return vg.Tensor(y)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        d = 1 - ctx.y**2
        w = np.linalg.solve(np.eye(len(d)) - (d[:, None] * ctx.m).T, grad.numpy()) * d
        return vg.Tensor(np.outer(w, ctx.y)), vg.Tensor(w), None


@first(np.array([0.7, 1.3, 2.1, 0.4]), np.array([0.5, 1.5, 0.8, 2.0]), means={"domain": (0.1, 10.0)})
class CubicByNewton(Function):
    @staticmethod
    def forward(ctx, x, target, max_iter=60, tol=1e-12):
        a, t = x.detach().numpy(), target.detach().numpy()
        y = np.ones(np.broadcast_shapes(a.shape, t.shape))
        for _ in range(max_iter):
            step = (y**3 + y * a - t) / (3 * y**2 + a)
            y = y - step
            if np.all(np.abs(step) < tol):
                break
        ctx.slope, ctx.y = 3 * y**2 + a, y
        return vg.Tensor(y)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = grad.numpy() / ctx.slope
        return vg.Tensor(-g * ctx.y), vg.Tensor(g), None, None
