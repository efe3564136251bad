"""Correct operators as people first write them, with calls of SciPy, float64 buffers for float32 arguments, and loops.

`CALLS` has the call of each and its author's declarations.
"""

import numpy as np
import scipy.fft
import scipy.integrate
import scipy.interpolate
import scipy.linalg
import scipy.ndimage
import scipy.optimize
import scipy.sparse
import scipy.special

import viewgrad as vg
from viewgrad.autograd import Function, once_differentiable

from .newcomers import M, X, registering

CALLS = {}
call = registering(CALLS)
SPACED = np.array([[1.2, -0.4, 0.7], [0.3, 1.8, -0.9], [-0.6, 0.1, 2.3]])


@call(X)
def smoothed_in_place(x):
    y = vg.zeros(x.shape)
    y[0] = x[0]
    for i in range(1, x.shape[0]):
        y[i] = 0.3 * x[i] + 0.7 * y[i - 1]
    return y


@call(X.astype(np.float32), means={"float32": False})
class ErfcInBuffer(Function):
    @staticmethod
    def forward(ctx, x):
        x = x.detach().numpy()
        ctx.x = x
        out = np.zeros(x.shape)
        out[:] = scipy.special.erfc(x)
        return vg.Tensor(out)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * (-2 / np.sqrt(np.pi) * np.exp(-(ctx.x**2)))


@call([X, X[:3], X * 2])
def concatenated_means(parts):
    return vg.stack([p.mean() for p in parts])


@call(X, 4)
class Binned(Function):
    """Soft histogram."""

    @staticmethod
    def forward(ctx, x, bins):
        c = np.linspace(-1, 1, bins)
        d = x.detach().numpy()[:, None] - c
        ctx.k = np.exp(-d * d)
        ctx.d = d
        return vg.Tensor(ctx.k.sum(0))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return vg.Tensor((-2 * ctx.d * ctx.k) @ grad.numpy()), None


@call(np.sin(np.arange(48.0)).reshape(2, 3, 8), np.cos(1.3 * np.arange(36.0)).reshape(4, 3, 3))
class Conv1dByColumns(Function):
    @staticmethod
    def forward(ctx, x, w, stride=1):
        x, w = x.detach().numpy(), w.detach().numpy()
        k = w.shape[-1]
        cols = np.lib.stride_tricks.sliding_window_view(x, k, axis=-1)[:, :, ::stride]
        ctx.args = x, w, cols, stride
        return vg.Tensor(np.einsum("bcik,ock->boi", cols, w))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x, w, cols, stride = ctx.args
        g = grad.numpy()
        gx = np.zeros(x.shape)
        for k in range(w.shape[-1]):
            gx[:, :, k : k + stride * (g.shape[-1] - 1) + 1 : stride] += np.einsum("boi,oc->bci", g, w[..., k])
        return vg.Tensor(gx), vg.Tensor(np.einsum("boi,bcik->ock", g, cols)), None


@call(X, X[::-1].copy())
def maybe_weighted(x, w=None):
    if w is None:
        return x.mean()
    return (x * w).sum() / w.sum()


@call(X, np.array([0.2, 1.1]))
class SplineOfValues(Function):
    @staticmethod
    def forward(ctx, y, t):
        k = np.arange(len(y))
        ctx.t = t.detach().numpy()
        ctx.n = len(y)
        ctx.s = scipy.interpolate.CubicSpline(k, y.detach().numpy())
        return vg.Tensor(ctx.s(ctx.t))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        k = np.arange(ctx.n)
        basis = scipy.interpolate.CubicSpline(k, np.eye(ctx.n))(ctx.t)
        return vg.Tensor(basis.T @ grad.numpy()), grad * ctx.s(ctx.t, 1)


@call(np.array(0.4))
class CubicRoot(Function):
    @staticmethod
    def forward(ctx, a):
        ctx.x = scipy.optimize.brentq(lambda x: x**3 + x - a.item(), -10, 10, xtol=1e-14)
        return vg.Tensor(ctx.x)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad / (3 * ctx.x**2 + 1)


@call(M)
def standardised_columns(x):
    x = x - x.mean(0)
    return x / x.std(0)


@call(X)
def running_max(x):
    out = [x[0]]
    for v in x[1:]:
        out.append(vg.maximum(out[-1], v))
    return vg.stack(out)


@call(X)
def fft_lowpass(x, keep=2):
    f = vg.fft.rfft(x)
    mask = np.zeros(f.shape)
    mask[:keep] = 1
    return vg.fft.irfft(f * mask, n=x.shape[0])


@call(X, 3)
def powers_in_a_list(x, degree):
    return [x**k for k in range(degree + 1)]


@call(SPACED)
class MatrixExponential(Function):
    @staticmethod
    def forward(ctx, a):
        ctx.a = a.detach().numpy()
        return vg.Tensor(scipy.linalg.expm(ctx.a))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return vg.Tensor(scipy.linalg.expm_frechet(ctx.a.T, grad.numpy(), compute_expm=False))


@call(X, X[1:3])
def correlation_in_a_loop(x, k):
    n = x.shape[0] - k.shape[0] + 1
    return vg.stack([(x[i : i + k.shape[0]] * k).sum() for i in range(n)])


@call(X)
def also_python_numbers(x):
    return x * 2, len(x), "done"


@call(X, 0.9)
class DecayingMean(Function):
    @staticmethod
    def forward(ctx, x, decay):
        y = np.empty_like(x.detach().numpy())
        acc = 0.0
        for i, v in enumerate(x.detach().numpy()):
            acc = decay * acc + (1 - decay) * v
            y[i] = acc
        ctx.decay = decay
        return vg.Tensor(y)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = np.empty_like(grad.numpy())
        acc = 0.0
        for i in range(len(g) - 1, -1, -1):
            acc = ctx.decay * acc + grad.numpy()[i]
            g[i] = (1 - ctx.decay) * acc
        return vg.Tensor(g), None


@call(np.array([1.0, 0.3, -0.4, 2.0]))
class SparseMul(Function):
    A = scipy.sparse.diags([[1.0, 2, 3, 4], [0.5, 0.5, 0.5]], [0, 1]).tocsr()

    @staticmethod
    def forward(ctx, x):
        return vg.Tensor(SparseMul.A @ x.detach().numpy())

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return vg.Tensor(SparseMul.A.T @ grad.numpy())


@call(M)
class BoxBlur(Function):
    @staticmethod
    def forward(ctx, x):
        return vg.Tensor(scipy.ndimage.uniform_filter(x.detach().numpy(), 3, mode="constant"))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return vg.Tensor(scipy.ndimage.uniform_filter(grad.numpy(), 3, mode="constant"))
