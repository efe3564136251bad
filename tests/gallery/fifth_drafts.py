"""Correct operators as people first write them: in place, with several results, kinds of numbers, and odd signatures.

`CALLS` has the call of each and its author's declarations.
"""

import numpy as np
import scipy.linalg
import scipy.special

import viewgrad as vg
from viewgrad.autograd import Function, InPlace, define_op, formula_function, once_differentiable

from .newcomers import ATOMS, IMAGE, PLUS, SIGNAL, SPD, TALL, UNIT, VOLUME, M, N, X, Y, registering

CALLS = {}
call = registering(CALLS)


@call(M)
class MeanAndStd(Function):
    """The mean and the standard deviation of each row."""

    @staticmethod
    def forward(ctx, x, eps=1e-12):
        a = x.detach().numpy()
        m = a.mean(axis=-1)
        s = np.sqrt(a.var(axis=-1) + eps)
        ctx.d, ctx.s, ctx.n = a - m[..., None], s, a.shape[-1]
        return vg.Tensor(m), vg.Tensor(s)

    @staticmethod
    @once_differentiable
    def backward(ctx, gm, gs):
        g = gm.numpy()[..., None] / ctx.n + (gs.numpy() / ctx.s)[..., None] * ctx.d / ctx.n
        return vg.Tensor(g), None


@call(N, return_indices=True)
class RowMaximum(Function):
    @staticmethod
    def forward(ctx, x, return_indices=False):
        a = x.detach().numpy()
        i = a.argmax(axis=1)
        ctx.i, ctx.shape, ctx.two = i, a.shape, return_indices
        out = vg.Tensor(a[np.arange(len(a)), i])
        if not return_indices:
            return out
        index = vg.Tensor(i)
        ctx.mark_non_differentiable(index)
        return out, index

    @staticmethod
    @once_differentiable
    def backward(ctx, *grads):
        g = np.zeros(ctx.shape)
        g[np.arange(len(ctx.i)), ctx.i] = grads[0].numpy()
        return vg.Tensor(g), None


@call(X)
class SplitSigns(Function):
    """The positive and the negative part."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return vg.maximum(x, 0.0), vg.minimum(x, 0.0)

    @staticmethod
    def backward(ctx, gp, gn):
        (x,) = ctx.saved_tensors
        return vg.where(x > 0, gp, gn)


def clip_norm_(x, most=1.0):
    n = vg.sqrt((x * x).sum() + 1e-12)
    if float(n.detach()) > most:
        x *= most / n
    return x


@call(X, most=1.5, means={"inplace": clip_norm_})
def clip_norm(x, most=1.0):
    n = vg.sqrt((x * x).sum() + 1e-12)
    return x * (most / n) if float(n.detach()) > most else x * 1.0


@call(X, Y)
def accumulate_into(x, y):
    out = vg.zeros(x.shape[0] + y.shape[0])
    out[: x.shape[0]] += x
    out[x.shape[0] :] -= y * y
    out *= 0.5
    return out


@call(SIGNAL.astype(np.float32), np.array([0.5, 0.3], np.float32))
class FirFloat32(Function):
    @staticmethod
    def forward(ctx, x, taps):
        a, t = x.detach().numpy(), taps.detach().numpy()
        out = np.zeros_like(a)
        for k in range(len(t)):
            out[k:] += t[k] * a[: len(a) - k]
        ctx.a, ctx.t = a.copy(), t.copy()
        return vg.Tensor(out)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g, a, t = grad.numpy(), ctx.a, ctx.t
        gx, gt = np.zeros_like(a), np.zeros_like(t)
        for k in range(len(t)):
            gx[: len(a) - k] += t[k] * g[k:]
            gt[k] = g[k:] @ a[: len(a) - k]
        return vg.Tensor(gx), vg.Tensor(gt)


@call(X, dtype="float32")
class CastAndSquare(Function):
    @staticmethod
    def forward(ctx, x, dtype="float64"):
        ctx.save_for_backward(x)
        return vg.Tensor((x.detach().numpy() ** 2).astype(dtype))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return vg.Tensor((2 * x.detach().numpy() * grad.numpy()).astype(x.dtype)), None


@call(np.array([3, 1, 4]), np.array([0.4, 0.7, 0.9]))
class BinomialLogLikelihood(Function):
    @staticmethod
    def forward(ctx, k, p, n=5):
        a, q = k.numpy(), p.detach().numpy()
        if (a < 0).any() or (a > n).any() or (q <= 0).any() or (q >= 1).any():
            raise ValueError("outside of the domain")
        ctx.g = a / q - (n - a) / (1 - q)
        c = scipy.special.gammaln(n + 1) - scipy.special.gammaln(a + 1) - scipy.special.gammaln(n - a + 1)
        return vg.Tensor((c + a * np.log(q) + (n - a) * np.log1p(-q)).sum())

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return None, grad * vg.Tensor(ctx.g), None


@call(VOLUME, dim=2)
class HalvedAlong(Function):
    """Sums of neighbours along a dimension of even length."""

    @staticmethod
    def forward(ctx, x, dim=-1):
        a = np.moveaxis(x.detach().numpy(), dim, -1)
        if a.shape[-1] % 2:
            raise ValueError("an even length")
        ctx.dim = dim
        return vg.Tensor(np.moveaxis(a[..., ::2] + a[..., 1::2], -1, dim).copy())

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return vg.Tensor(np.repeat(grad.numpy(), 2, axis=ctx.dim)), None


@call(IMAGE, flip=True, transpose=False)
class Orient(Function):
    @staticmethod
    def forward(ctx, x, flip=False, transpose=False):
        a = x.detach().numpy()
        ctx.flip, ctx.transpose = flip, transpose
        if flip:
            a = a[::-1]
        if transpose:
            a = a.T
        return vg.Tensor(a.copy())

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = grad.numpy()
        if ctx.transpose:
            g = g.T
        if ctx.flip:
            g = g[::-1]
        return vg.Tensor(g.copy()), None, None


@call(TALL, np.array([1, 0, 1, 2, 0]), 3)
class ClassMeans(Function):
    @staticmethod
    def forward(ctx, x, labels, classes):
        a, y = x.detach().numpy(), labels.numpy()
        one = (y[:, None] == np.arange(classes)).astype(float)
        n = np.maximum(one.sum(axis=0), 1)
        ctx.w = one / n
        return vg.Tensor(ctx.w.T @ a)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return vg.Tensor(ctx.w @ grad.numpy()), None, None


@call(PLUS, np.array(2.0), np.array(0.5))
class Langmuir(Function):
    @staticmethod
    def forward(ctx, p, capacity, k):
        ctx.save_for_backward(p, capacity, k)
        return capacity * k * p / (1 + k * p)

    @staticmethod
    def backward(ctx, grad):
        p, q, k = ctx.saved_tensors
        d = 1 + k * p
        return grad * q * k / d**2, (grad * k * p / d).sum(), (grad * q * p / d**2).sum()


@call(ATOMS, weights=(12.0, 1.0, 1.0, 16.0))
class CenterOfMass(Function):
    @staticmethod
    def forward(ctx, pos, weights):
        w = np.asarray(weights) / np.sum(weights)
        ctx.w = w
        return vg.Tensor(w @ pos.detach().numpy())

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return vg.Tensor(np.outer(ctx.w, grad.numpy())), None


@call(SPD, np.array([0.5, -0.3, 1.1]), transpose=False)
class SolveEither(Function):
    @staticmethod
    def forward(ctx, a, b, transpose=False):
        m, v = a.detach().numpy(), b.detach().numpy()
        lu = scipy.linalg.lu_factor(m)
        ctx.lu, ctx.transpose = lu, transpose
        ctx.x = scipy.linalg.lu_solve(lu, v, trans=int(transpose))
        return vg.Tensor(ctx.x)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        u = scipy.linalg.lu_solve(ctx.lu, grad.numpy(), trans=int(not ctx.transpose))
        ga = -np.outer(ctx.x, u) if ctx.transpose else -np.outer(u, ctx.x)
        return vg.Tensor(ga), vg.Tensor(u), None


@call(UNIT, np.array([0.9, 0.3, 0.7, 0.1]), how="product")
def t_norm(a, b, how="min"):
    if how == "min":
        return vg.minimum(a, b)
    if how == "product":
        return a * b
    if how == "lukasiewicz":
        return vg.maximum(a + b - 1, 0.0)
    raise ValueError(how)


@call(SIGNAL, 4)
def block_rms(x, n):
    k = x.shape[0] // n
    blocks = x[: k * n].reshape(k, n)
    return vg.sqrt((blocks * blocks).mean(axis=1) + 1e-10)


@call(X, np.array([0.2, 0.4, 0.6, 0.8, 1.0]), 0.5)
def huberized_fit(slope_free, t, knee):
    r = slope_free - 2.0 * t
    small = vg.abs(r) <= knee
    return vg.where(small, r * r / 2, knee * (vg.abs(r) - knee / 2)).sum()


@call(M, N[:2] * 0.5, beta=0.9)
class MomentumStep(Function):
    """The new velocity and the new position."""

    @staticmethod
    def forward(ctx, position, velocity, beta=0.9, rate=0.1):
        p, v = position.detach().numpy(), velocity.detach().numpy()
        if p.shape != v.shape:
            raise ValueError("shapes")
        new = beta * v - rate * np.sin(p)
        ctx.c, ctx.beta, ctx.rate = np.cos(p), beta, rate
        return vg.Tensor(new), vg.Tensor(p + new)

    @staticmethod
    @once_differentiable
    def backward(ctx, gv, gp):
        both = gv.numpy() + gp.numpy()
        return vg.Tensor(gp.numpy() - ctx.rate * ctx.c * both), vg.Tensor(ctx.beta * both), None, None


scaled_tanh = call(X, gain=1.7)(
    define_op(
        "fifth_scaled_tanh(x, gain=1.0)",
        forward=lambda x, gain=1.0: gain * np.tanh(x / gain),
        derivatives={"x": "grad * (1 - (result / gain) ** 2)"},
        inplace=True,
        doc="Saturates at the gain.",
    )
)
shifted_square = call(X, c=0.3)(
    define_op(
        "fifth_shifted_square(x, c=0.0)",
        forward=lambda x, c=0.0: (x - c) ** 2,
        derivatives={"x": "grad * 2 * (x - c)"},
        inplace=InPlace(derivatives={"x": "grad * 2 * (x - c)"}),
        doc="(x - c)²",
    )
)


@formula_function
def fifth_mean_back(grad):
    shares = grad / np.arange(1, grad.shape[-1] + 1)
    return shares[..., ::-1].cumsum(axis=-1)[..., ::-1]


cumulative_mean = call(SIGNAL)(
    define_op(
        "fifth_cumulative_mean(x)",
        forward=lambda x: np.cumsum(x, axis=-1) / np.arange(1, x.shape[-1] + 1),
        derivatives={"x": "fifth_mean_back(grad)"},
        forward_derivative="auto_linear",
        doc="Means of the first, the first two, ...",
    )
)
