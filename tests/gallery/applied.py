"""Correct operators from applications, as their authors first write them: NumPy and SciPy inside, backward by hand.

`applied_faults.py` has edits that make them wrong. `CALLS` has the call of each and its author's declarations.
"""

import numpy as np
import scipy.fft
import scipy.interpolate
import scipy.linalg
import scipy.ndimage
import scipy.signal
import scipy.sparse
import scipy.special

import viewgrad as vg
from viewgrad.autograd import Function, define_op, once_differentiable

CALLS = {}


def call(*args, means=None, **kwargs):
    """Register the call that an operator was written for."""

    def put(thing):
        CALLS[name_of(thing)] = (args, kwargs, means or {})
        return thing

    return put


def name_of(operator):
    """Return the name of a function, a class, or an operator that `define_op` has made."""
    return operator.__name__ if hasattr(operator, "__name__") else operator.name


def raw(tensor):
    return tensor.detach().numpy()


X = np.array([0.7, -1.3, 2.1, 0.4, -0.2])
Y = np.array([1.1, 0.6, -0.8, 0.3, 1.9])
POSITIVE = np.array([0.7, 1.3, 2.1, 0.4])
SHARES = np.array([0.2, 0.5, 0.3])
OTHER_SHARES = np.array([0.4, 0.25, 0.35])
COUNTS = np.array([2, 0, 5, 1])
LOGITS = np.array([[0.3, -1.1, 0.8], [1.7, 0.2, -0.4]])
IMAGE = np.cos(1.7 * np.arange(24.0)).reshape(4, 6)
SIGNAL = np.sin(1.1 * np.arange(8.0)) + 0.05 * np.arange(8.0)
SPD = np.array([[2.0, 0.3, 0.1], [0.3, 1.5, -0.2], [0.1, -0.2, 1.8]])
LOWER = np.array([[1.4, 0.0, 0.0], [0.3, 1.1, 0.0], [-0.5, 0.2, 0.9]])
SQUARE = np.array([[0.2, 0.3, -0.5], [0.4, -0.7, 0.2], [-0.1, 0.6, 0.1]])
TALL = np.array([[1.0, 0.2], [0.4, -1.3], [0.9, 0.8], [-0.3, 1.1]])
V3 = np.array([0.5, -1.2, 0.9])
W3 = np.array([1.3, 0.4, -0.7])


# -- losses ------------------------------------------------------------------------------------------------------------


@call(POSITIVE, COUNTS)
class PoissonLoss(Function):
    @staticmethod
    def forward(ctx, rate, counts):
        ctx.save_for_backward(rate, counts)
        r, n = raw(rate), raw(counts)
        return vg.Tensor(np.sum(r - n * np.log(r)))

    @staticmethod
    def backward(ctx, grad):
        rate, counts = ctx.saved_tensors
        return grad * (1 - counts / rate), None


@call(X, Y, q=0.3)
class QuantileLoss(Function):
    @staticmethod
    def forward(ctx, predicted, observed, q=0.5):
        d = raw(observed) - raw(predicted)
        ctx.slope = np.where(d > 0, -q, 1 - q)
        return vg.Tensor(np.maximum(q * d, (q - 1) * d).sum())

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * ctx.slope, -grad * ctx.slope, None


@call(3 * X, c=4.685)
class TukeyBiweight(Function):
    @staticmethod
    def forward(ctx, r, c=4.685):
        ctx.save_for_backward(r)
        ctx.c = c
        a = raw(r)
        inside = np.abs(a) <= c
        out = np.full(a.shape, c**2 / 6)
        out[inside] = c**2 / 6 * (1 - (1 - (a[inside] / c) ** 2) ** 3)
        return vg.Tensor(out)

    @staticmethod
    def backward(ctx, grad):
        (r,) = ctx.saved_tensors
        u = r / ctx.c
        return grad * vg.where(vg.abs(u) <= 1, r * (1 - u * u) ** 2, 0.0), None


@call(X, eps=1e-2)
class Charbonnier(Function):
    @staticmethod
    def forward(ctx, x, eps=1e-3):
        root = vg.sqrt(x * x + eps * eps)
        ctx.save_for_backward(x, root)
        return root

    @staticmethod
    def backward(ctx, grad):
        x, root = ctx.saved_tensors
        return grad * x / root, None


@call(np.array([0.2, 0.7, 0.4, 0.9]), np.array([True, False, True, True]))
class DiceLoss(Function):
    @staticmethod
    def forward(ctx, p, mask):
        a, m = raw(p), raw(mask)
        ctx.m = m.astype(float)
        ctx.both = (a * ctx.m).sum()
        ctx.total = a.sum() + ctx.m.sum()
        return vg.Tensor(1 - 2 * ctx.both / ctx.total)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        slope = -2 * ctx.m / ctx.total + 2 * ctx.both / ctx.total**2
        return grad * slope, None


@call(np.array([0.2, 0.7, 0.4]), np.array([1, 0, 1]), gamma=2.0, means={"domain": ((0.01, 0.99), None)})
class FocalLoss(Function):
    @staticmethod
    def forward(ctx, p, labels, gamma=2.0):
        ctx.save_for_backward(p)
        ctx.positive = raw(labels) == 1
        ctx.gamma = gamma
        pt = np.where(ctx.positive, raw(p), 1 - raw(p))
        return vg.Tensor(-((1 - pt) ** gamma * np.log(pt)).mean())

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        p = raw(ctx.saved_tensors[0])
        pt = np.where(ctx.positive, p, 1 - p)
        g = ctx.gamma
        slope = g * (1 - pt) ** (g - 1) * np.log(pt) - (1 - pt) ** g / pt
        return grad * (np.where(ctx.positive, slope, -slope) / p.size), None, None


@call(V3, W3, V3[::-1] * 0.3, margin=1.5)
def triplet_margin(anchor, positive, negative, margin=1.0):
    near = ((anchor - positive) ** 2).sum()
    far = ((anchor - negative) ** 2).sum()
    return vg.maximum(near - far + margin, 0.0)


@call(V3, W3)
class CosineSimilarity(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        x, y = raw(a), raw(b)
        return vg.Tensor(x @ y / (np.linalg.norm(x) * np.linalg.norm(y)))

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        na, nb = vg.sqrt((a * a).sum()), vg.sqrt((b * b).sum())
        cosine = (a * b).sum() / (na * nb)
        return grad * (b / (na * nb) - cosine * a / na**2), grad * (a / (na * nb) - cosine * b / nb**2)


@call(SHARES, OTHER_SHARES, means={"domain": (0.01, 1.0)})
class KullbackLeibler(Function):
    @staticmethod
    def forward(ctx, p, q):
        ctx.save_for_backward(p, q)
        return vg.Tensor(np.sum(raw(p) * np.log(raw(p) / raw(q))))

    @staticmethod
    def backward(ctx, grad):
        p, q = ctx.saved_tensors
        return grad * (vg.log(p / q) + 1), -grad * p / q


@call(LOGITS, np.array([2, 0]), smoothing=0.1)
class SmoothedCrossEntropy(Function):
    @staticmethod
    def forward(ctx, logits, labels, smoothing=0.0):
        a = raw(logits)
        shifted = a - a.max(axis=1, keepdims=True)
        log_p = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
        target = np.full(a.shape, smoothing / a.shape[1])
        target[np.arange(len(a)), raw(labels)] += 1 - smoothing
        ctx.slope = (np.exp(log_p) - target) / len(a)
        return vg.Tensor(-(target * log_p).sum() / len(a))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * ctx.slope, None, None


@call(W3, label=1)
class MulticlassHinge(Function):
    @staticmethod
    def forward(ctx, scores, label):
        a = raw(scores)
        margins = np.maximum(0, a - a[label] + 1)
        margins[label] = 0
        ctx.active = margins > 0
        ctx.label = label
        return vg.Tensor(margins.sum())

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = np.zeros(len(ctx.active))
        g[ctx.active] = 1
        g[ctx.label] = -ctx.active.sum()
        return grad * g, None


# -- gradients that are meant to be others -----------------------------------------------------------------------------


@call(X, means={"surrogate": lambda x: vg.clip(x, -1.0, 1.0)})
class SignStraightThrough(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return vg.Tensor(np.sign(raw(x)))

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * (vg.abs(x) <= 1)


def soft_choice(x, temperature=1.0):
    e = vg.exp((x - x.max()) / temperature)
    return e / e.sum()


@call(W3, temperature=0.7, means={"surrogate": soft_choice, "options": {"temperature": [0.7, 2.0]}})
class HardChoice(Function):
    @staticmethod
    def forward(ctx, x, temperature=1.0):
        e = np.exp((raw(x) - raw(x).max()) / temperature)
        ctx.p, ctx.temperature = e / e.sum(), temperature
        out = np.zeros(x.shape)
        out[np.argmax(raw(x))] = 1
        return vg.Tensor(out)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        p, g = ctx.p, raw(grad)
        return vg.Tensor(p * (g - (g * p).sum()) / ctx.temperature), None


def within_range(x, scale):
    return vg.clip(x, -8 * scale, 7 * scale)


@call(X, 0.25, means={"surrogate": within_range, "valid": lambda x, scale: scale > 0})
class FakeQuantize(Function):
    @staticmethod
    def forward(ctx, x, scale):
        a = np.clip(raw(x) / scale, -8, 7)
        ctx.inside = a == raw(x) / scale
        return vg.Tensor(np.round(a) * scale)

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.inside, None


@call(X, 0.5, means={"surrogate": lambda x, strength: -strength * x})
class ReverseGradient(Function):
    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return -ctx.strength * grad, None


@call(X, means={"surrogate": lambda v: 1 / (1 + vg.exp(-4.0 * v))})
class Spike(Function):
    @staticmethod
    def forward(ctx, v):
        ctx.save_for_backward(v)
        return vg.Tensor((raw(v) > 0).astype(float))

    @staticmethod
    def backward(ctx, grad):
        (v,) = ctx.saved_tensors
        s = 1 / (1 + vg.exp(-4.0 * v))
        return grad * 4.0 * s * (1 - s)


# -- images ------------------------------------------------------------------------------------------------------------


@call(IMAGE, factor=2)
class UpsampleNearest(Function):
    @staticmethod
    def forward(ctx, image, factor=2):
        ctx.factor = factor
        return vg.Tensor(np.repeat(np.repeat(raw(image), factor, axis=0), factor, axis=1))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g, f = raw(grad), ctx.factor
        h, w = g.shape
        return vg.Tensor(g.reshape(h // f, f, w // f, f).sum(axis=(1, 3))), None


def interpolation(n, m):
    """Return the matrix that interpolates n samples at m points."""
    a = np.zeros((m, n))
    for i, place in enumerate(np.linspace(0, n - 1, m)):
        left = min(int(place), max(n - 2, 0))
        a[i, left] += 1 - (place - left)
        if n > 1:
            a[i, left + 1] += place - left
    return a


@call(IMAGE, height=5, width=3)
class ResizeBilinear(Function):
    @staticmethod
    def forward(ctx, image, height, width):
        ctx.rows, ctx.columns = interpolation(image.shape[0], height), interpolation(image.shape[1], width)
        return vg.Tensor(ctx.rows @ raw(image) @ ctx.columns.T)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return vg.Tensor(ctx.rows.T @ raw(grad) @ ctx.columns), None, None


@call(IMAGE)
class MaxPool2(Function):
    @staticmethod
    def forward(ctx, image):
        a = raw(image)
        h, w = a.shape
        if h % 2 or w % 2:
            raise ValueError("even sizes only")
        blocks = a.reshape(h // 2, 2, w // 2, 2).transpose(0, 2, 1, 3).reshape(h // 2, w // 2, 4)
        ctx.best, ctx.shape = blocks.argmax(axis=-1), a.shape
        return vg.Tensor(blocks.max(axis=-1))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        h, w = ctx.shape
        blocks = np.zeros((h // 2, w // 2, 4))
        np.put_along_axis(blocks, ctx.best[..., None], raw(grad)[..., None], axis=-1)
        return vg.Tensor(blocks.reshape(h // 2, w // 2, 2, 2).transpose(0, 2, 1, 3).reshape(h, w))


@call(SIGNAL, size=3, stride=2)
class AveragePool1(Function):
    @staticmethod
    def forward(ctx, x, size=2, stride=1):
        ctx.n, ctx.size, ctx.stride = x.shape[0], size, stride
        if size < 1 or stride < 1 or size > ctx.n:
            raise ValueError("sizes")
        a = raw(x)
        return vg.Tensor(np.array([a[i : i + size].mean() for i in range(0, ctx.n - size + 1, stride)]))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        out = np.zeros(ctx.n)
        for k, g in enumerate(raw(grad)):
            start = k * ctx.stride
            out[start : start + ctx.size] += g / ctx.size
        return vg.Tensor(out), None, None


@call(SIGNAL, V3, dilation=2)
class CausalConvolution(Function):
    @staticmethod
    def forward(ctx, x, kernel, dilation=1):
        if dilation < 1:
            raise ValueError("dilation")
        ctx.save_for_backward(x, kernel)
        ctx.dilation = dilation
        a, k = raw(x), raw(kernel)
        out = np.zeros(len(a))
        for j in range(len(k)):
            shift = j * dilation
            if shift < len(a):
                out[shift:] += k[j] * a[: len(a) - shift]
        return vg.Tensor(out)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x, kernel = ctx.saved_tensors
        a, k, g = raw(x), raw(kernel), raw(grad)
        ga, gk = np.zeros(len(a)), np.zeros(len(k))
        for j in range(len(k)):
            shift = j * ctx.dilation
            if shift < len(a):
                ga[: len(a) - shift] += k[j] * g[shift:]
                gk[j] = (g[shift:] * a[: len(a) - shift]).sum()
        return vg.Tensor(ga), vg.Tensor(gk), None


@call(IMAGE, np.array([[0.2, -0.5], [1.1, 0.3]]))
class Correlate2(Function):
    @staticmethod
    def forward(ctx, image, kernel):
        ctx.save_for_backward(image, kernel)
        return vg.Tensor(scipy.signal.correlate2d(raw(image), raw(kernel), mode="valid"))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        image, kernel = (raw(each) for each in ctx.saved_tensors)
        if kernel.shape[0] > image.shape[0] or kernel.shape[1] > image.shape[1]:
            raise ValueError("the kernel is larger than the image")
        of_image = scipy.signal.convolve2d(raw(grad), kernel, mode="full")
        return vg.Tensor(of_image), vg.Tensor(scipy.signal.correlate2d(image, raw(grad), mode="valid"))


@call(SIGNAL, width=3)
class Patches(Function):
    @staticmethod
    def forward(ctx, x, width):
        ctx.n, ctx.width = x.shape[0], width
        return vg.Tensor(np.lib.stride_tricks.sliding_window_view(raw(x), width))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        out = np.zeros(ctx.n)
        for i, row in enumerate(raw(grad)):
            out[i : i + ctx.width] += row
        return vg.Tensor(out), None


@call(np.arange(16.0).reshape(4, 2, 2) / 7 - 1, r=2)
def pixel_shuffle(x, r=2):
    c, h, w = x.shape
    return x.reshape(c // (r * r), r, r, h, w).transpose(0, 3, 1, 4, 2).reshape(c // (r * r), h * r, w * r)


@call(IMAGE, weight=0.5)
def total_variation(image, weight=1.0):
    return weight * (vg.abs(image[1:] - image[:-1]).sum() + vg.abs(image[:, 1:] - image[:, :-1]).sum())


# -- signals -----------------------------------------------------------------------------------------------------------


@call(SIGNAL, window=3)
class RollingMean(Function):
    @staticmethod
    def forward(ctx, x, window=2):
        ctx.window = window
        total = np.cumsum(np.insert(raw(x), 0, 0.0))
        return vg.Tensor((total[window:] - total[:-window]) / window)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return vg.Tensor(np.convolve(raw(grad), np.ones(ctx.window)) / ctx.window), None


@call(SIGNAL, alpha=0.3)
class ExponentialAverage(Function):
    @staticmethod
    def forward(ctx, x, alpha=0.5):
        ctx.alpha = alpha
        a = raw(x)
        out = np.zeros(len(a))
        state = 0.0
        for t in range(len(a)):
            state = alpha * a[t] + (1 - alpha) * state
            out[t] = state
        return vg.Tensor(out)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = raw(grad)
        out = np.zeros(len(g))
        state = 0.0
        for t in reversed(range(len(g))):
            state = g[t] + (1 - ctx.alpha) * state
            out[t] = ctx.alpha * state
        return vg.Tensor(out), None


@call(SIGNAL, V3)
class SmoothSame(Function):
    @staticmethod
    def forward(ctx, x, kernel):
        if len(kernel) > len(x) or len(kernel) % 2 == 0:
            raise ValueError("an odd kernel no longer than the signal")
        ctx.save_for_backward(x, kernel)
        return vg.Tensor(np.convolve(raw(x), raw(kernel), mode="same"))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x, kernel = (raw(each) for each in ctx.saved_tensors)
        g, half = raw(grad), len(kernel) // 2
        of_x = np.convolve(g, kernel[::-1], mode="same")
        padded = np.pad(x, half)
        of_kernel = np.array([g @ padded[2 * half - j : 2 * half - j + len(x)] for j in range(len(kernel))])
        return vg.Tensor(of_x), vg.Tensor(of_kernel)


@call(SIGNAL, sigma=1.2)
class GaussianBlur(Function):
    @staticmethod
    def forward(ctx, x, sigma=1.0):
        ctx.sigma = sigma
        return vg.Tensor(scipy.ndimage.gaussian_filter1d(raw(x), sigma, mode="constant"))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return vg.Tensor(scipy.ndimage.gaussian_filter1d(raw(grad), ctx.sigma, mode="constant")), None


@call(SIGNAL, pole=0.6)
class OnePole(Function):
    @staticmethod
    def forward(ctx, x, pole):
        ctx.pole = pole
        return vg.Tensor(scipy.signal.lfilter([1.0], [1.0, -pole], raw(x)))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return vg.Tensor(scipy.signal.lfilter([1.0], [1.0, -ctx.pole], raw(grad)[::-1])[::-1].copy()), None


@call(SIGNAL)
class CosineTransform(Function):
    @staticmethod
    def forward(ctx, x):
        return vg.Tensor(scipy.fft.dct(raw(x), norm="ortho"))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return vg.Tensor(scipy.fft.idct(raw(grad), norm="ortho"))


@call(SIGNAL)
class PowerSpectrum(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.spectrum, ctx.n = np.fft.fft(raw(x)), x.shape[0]
        return vg.Tensor(np.abs(ctx.spectrum) ** 2)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return vg.Tensor(2 * ctx.n * np.fft.ifft(raw(grad) * ctx.spectrum).real)


@call(SIGNAL, dx=0.1)
class CumulativeTrapezoid(Function):
    @staticmethod
    def forward(ctx, y, dx=1.0):
        ctx.dx, ctx.n = dx, y.shape[0]
        a = raw(y)
        return vg.Tensor(np.concatenate([[0.0], np.cumsum((a[1:] + a[:-1]) * dx / 2)]))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        tail = np.cumsum(raw(grad)[:0:-1])[::-1] * ctx.dx / 2
        out = np.zeros(ctx.n)
        out[1:] += tail
        out[:-1] += tail
        return vg.Tensor(out), None


@call(IMAGE, alpha=0.1)
class HeatStep(Function):
    @staticmethod
    def forward(ctx, u, alpha=0.25):
        ctx.alpha = alpha
        a = raw(u)
        out = a.copy()
        out[1:-1, 1:-1] += alpha * (a[2:, 1:-1] + a[:-2, 1:-1] + a[1:-1, 2:] + a[1:-1, :-2] - 4 * a[1:-1, 1:-1])
        return vg.Tensor(out)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = raw(grad)
        out = g.copy()
        inner = ctx.alpha * g[1:-1, 1:-1]
        out[2:, 1:-1] += inner
        out[:-2, 1:-1] += inner
        out[1:-1, 2:] += inner
        out[1:-1, :-2] += inner
        out[1:-1, 1:-1] -= 4 * inner
        return vg.Tensor(out), None


# -- special functions and densities -----------------------------------------------------------------------------------


@call(X)
class ExactGelu(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return vg.Tensor(raw(x) * scipy.special.ndtr(raw(x)))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        a = raw(ctx.saved_tensors[0])
        return grad * (scipy.special.ndtr(a) + a * np.exp(-a * a / 2) / np.sqrt(2 * np.pi))


@call(X)
class LogNormalCdf(Function):
    @staticmethod
    def forward(ctx, x):
        a = raw(x)
        y = scipy.special.log_ndtr(a)
        ctx.slope = np.exp(-a * a / 2 - 0.5 * np.log(2 * np.pi) - y)
        return vg.Tensor(y)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * ctx.slope


@call(X, order=1)
class Bessel(Function):
    @staticmethod
    def forward(ctx, x, order=0):
        ctx.a, ctx.order = raw(x).copy(), order
        return vg.Tensor(scipy.special.jv(order, ctx.a))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * scipy.special.jvp(ctx.order, ctx.a), None


@call(X, 4.0, means={"domain": {"df": (0.5, 30.0)}})
class StudentLogDensity(Function):
    @staticmethod
    def forward(ctx, x, df):
        ctx.save_for_backward(x)
        ctx.df = df
        a = raw(x)
        constant = scipy.special.gammaln((df + 1) / 2) - scipy.special.gammaln(df / 2) - 0.5 * np.log(df * np.pi)
        return vg.Tensor(constant - (df + 1) / 2 * np.log1p(a * a / df))

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return -grad * (ctx.df + 1) * x / (ctx.df + x * x), None


@call(np.array([0.2, 0.7, 0.4]), 1.5, 2.5, means={"domain": ((0.05, 0.95), (0.5, 5.0), (0.5, 5.0))})
class BetaLogDensity(Function):
    @staticmethod
    def forward(ctx, x, a, b):
        ctx.save_for_backward(x)
        ctx.a, ctx.b = a, b
        p = raw(x)
        return vg.Tensor((a - 1) * np.log(p) + (b - 1) * np.log1p(-p) - scipy.special.betaln(a, b))

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * ((ctx.a - 1) / x - (ctx.b - 1) / (1 - x)), None, None


# -- linear algebra ----------------------------------------------------------------------------------------------------


@call(X, diagonal=2.5)
class SolveTridiagonal(Function):
    @staticmethod
    def forward(ctx, b, diagonal=2.0):
        n = b.shape[0]
        ctx.bands = np.zeros((3, n))
        ctx.bands[0, 1:] = -1.0
        ctx.bands[1] = diagonal
        ctx.bands[2, :-1] = 0.5
        return vg.Tensor(scipy.linalg.solve_banded((1, 1), ctx.bands, raw(b)))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        transposed = np.zeros(ctx.bands.shape)
        transposed[0, 1:] = ctx.bands[2, :-1]
        transposed[1] = ctx.bands[1]
        transposed[2, :-1] = ctx.bands[0, 1:]
        return vg.Tensor(scipy.linalg.solve_banded((1, 1), transposed, raw(grad))), None


@call(V3, W3)
class SymmetricToeplitzProduct(Function):
    @staticmethod
    def forward(ctx, column, x):
        ctx.save_for_backward(column, x)
        return vg.Tensor(scipy.linalg.toeplitz(raw(column)) @ raw(x))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        column, x = (raw(each) for each in ctx.saved_tensors)
        outer = np.outer(raw(grad), x)
        of_column = np.array([np.trace(outer, k) + (np.trace(outer, -k) if k else 0) for k in range(len(column))])
        return vg.Tensor(of_column), vg.Tensor(scipy.linalg.toeplitz(column) @ raw(grad))


@call(SQUARE)
class MatrixExponential(Function):
    @staticmethod
    def forward(ctx, a):
        ctx.save_for_backward(a)
        return vg.Tensor(scipy.linalg.expm(raw(a)))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (a,) = ctx.saved_tensors
        return vg.Tensor(scipy.linalg.expm_frechet(raw(a).T, raw(grad), compute_expm=False))


@call(SPD, means={"structure": {0: "positive definite"}})
class LogDeterminantByCholesky(Function):
    @staticmethod
    def forward(ctx, a):
        ctx.factor = scipy.linalg.cho_factor(raw(a), lower=True)
        return vg.Tensor(2 * np.log(np.diag(ctx.factor[0])).sum())

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * scipy.linalg.cho_solve(ctx.factor, np.eye(len(ctx.factor[0])))


@call(LOWER, V3, means={"structure": {"lower": "triangular"}})
class ForwardSubstitution(Function):
    @staticmethod
    def forward(ctx, lower, b):
        y = scipy.linalg.solve_triangular(raw(lower), raw(b), lower=True)
        ctx.lower, ctx.y = raw(lower).copy(), y
        return vg.Tensor(y)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        of_b = scipy.linalg.solve_triangular(ctx.lower, raw(grad), lower=True, trans="T")
        return vg.Tensor(-np.tril(np.outer(of_b, ctx.y))), vg.Tensor(of_b)


@call(TALL, POSITIVE, means={"valid": lambda a, b: a.ndim == 2 and a.shape[0] >= a.shape[1]})
class LeastSquares(Function):
    @staticmethod
    def forward(ctx, a, b):
        m, y = raw(a).copy(), raw(b).copy()
        x = np.linalg.solve(m.T @ m, m.T @ y)
        ctx.m, ctx.x, ctx.r = m, x, y - m @ x
        return vg.Tensor(x)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        z = np.linalg.solve(ctx.m.T @ ctx.m, raw(grad))
        of_b = ctx.m @ z
        return vg.Tensor(np.outer(ctx.r, z) - np.outer(of_b, ctx.x)), vg.Tensor(of_b)


@call(V3, SQUARE)
class QuadraticForm(Function):
    @staticmethod
    def forward(ctx, x, a):
        ctx.save_for_backward(x, a)
        return x @ a @ x

    @staticmethod
    def backward(ctx, grad):
        x, a = ctx.saved_tensors
        return grad * (a @ x + x @ a), grad * vg.outer(x, x)


MESH = scipy.sparse.csr_array(np.array([[0.0, 1.0, 0, 0, 2.0], [0.5, 0, 0, -1.0, 0], [0, 0, 3.0, 0, 0]]))


@call(X)
class OnMesh(Function):
    @staticmethod
    def forward(ctx, x):
        return vg.Tensor(MESH @ raw(x))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return vg.Tensor(MESH.T @ raw(grad))


# -- geometry ----------------------------------------------------------------------------------------------------------


@call(V3, W3, p=3.0, means={"options": {"p": [2.0, 3.0, 4.0]}})
class Minkowski(Function):
    @staticmethod
    def forward(ctx, x, y, p=2.0):
        d = raw(x) - raw(y)
        ctx.d, ctx.p = d, p
        ctx.length = (np.abs(d) ** p).sum() ** (1 / p)
        return vg.Tensor(ctx.length)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        if ctx.length == 0:
            slope = np.zeros(ctx.d.shape)
        else:
            slope = np.sign(ctx.d) * np.abs(ctx.d / ctx.length) ** (ctx.p - 1)
        return grad * slope, -grad * slope, None


@call(np.array([0.3, 1.1]), np.array([-0.4, 2.0]), np.array([0.9, 0.2]), np.array([0.1, 1.2]))
def haversine(lat1, lon1, lat2, lon2):
    h = vg.sin((lat2 - lat1) / 2) ** 2 + vg.cos(lat1) * vg.cos(lat2) * vg.sin((lon2 - lon1) / 2) ** 2
    return 2 * 6371.0 * vg.arcsin(vg.sqrt(vg.clip(h, 0.0, 1.0)))


@call(np.array([0.8, 0.1, -0.4, 0.3]))
def rotation_matrix(q):
    w, x, y, z = q / vg.sqrt((q * q).sum())
    rows = [
        vg.stack([1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)]),
        vg.stack([2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)]),
        vg.stack([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]),
    ]
    return vg.stack(rows)


@call(POSITIVE, X[:4], Y[:4])
class FromSpherical(Function):
    @staticmethod
    def forward(ctx, r, theta, phi):
        ctx.save_for_backward(r, theta, phi)
        r, t, p = raw(r), raw(theta), raw(phi)
        return vg.Tensor(np.stack([r * np.sin(t) * np.cos(p), r * np.sin(t) * np.sin(p), r * np.cos(t)]))

    @staticmethod
    def backward(ctx, grad):
        r, t, p = ctx.saved_tensors
        gx, gy, gz = grad[0], grad[1], grad[2]
        of_r = gx * vg.sin(t) * vg.cos(p) + gy * vg.sin(t) * vg.sin(p) + gz * vg.cos(t)
        of_t = r * (gx * vg.cos(t) * vg.cos(p) + gy * vg.cos(t) * vg.sin(p) - gz * vg.sin(t))
        of_p = r * vg.sin(t) * (gy * vg.cos(p) - gx * vg.sin(p))
        return of_r, of_t, of_p


# -- science and finance -----------------------------------------------------------------------------------------------


@call(np.array([0.5, 1.0, 2.5]), 1.4, means={"domain": ((0.1, 5.0), (0.5, 4.0))})
class Planck(Function):
    @staticmethod
    def forward(ctx, wavelength, temperature):
        w = raw(wavelength)
        u = 1.0 / (w * temperature)
        ctx.w, ctx.u = w, u
        ctx.y = w**-5 / np.expm1(u)
        return vg.Tensor(ctx.y)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * (ctx.y / ctx.w * (-5 - ctx.u / np.expm1(-ctx.u))), None


arrhenius = define_op(
    "arrhenius(temperature, energy)",
    forward=lambda temperature, energy: np.exp(-energy / temperature),
    derivatives={
        "temperature": "grad * result * energy / temperature ** 2",
        "energy": "-grad * result / temperature",
    },
    inplace=True,
    domain=(0.5, 3.0),
)
call(POSITIVE, POSITIVE[::-1].copy())(arrhenius)


@call(POSITIVE, 2.0, 0.5, means={"valid": lambda s, v, k: np.all(s >= 0) and k > 0})
def michaelis_menten(substrate, v_max, k_m):
    return v_max * substrate / (k_m + substrate)


def is_priced(spot, volatility, strike=1.0, years=1.0):
    return np.all(np.asarray(volatility) > 0) and strike > 0 and years > 0


@call(np.array([0.9, 1.1, 1.3]), 0.2, strike=1.0, years=0.5, means={"domain": {"spot": (0.3, 3.0)}, "valid": is_priced})
class CallPrice(Function):
    @staticmethod
    def forward(ctx, spot, volatility, strike=1.0, years=1.0):
        s = raw(spot)
        width = volatility * np.sqrt(years)
        d1 = np.log(s / strike) / width + width / 2
        ctx.delta = scipy.special.ndtr(d1)
        return vg.Tensor(s * ctx.delta - strike * scipy.special.ndtr(d1 - width))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * ctx.delta, None, None, None


@call(np.array([0.1, 0.6, 1.4]), X)
class InterpolateTable(Function):
    @staticmethod
    def forward(ctx, places, values):
        p = raw(places)
        n = values.shape[0]
        if p.min(initial=0) < 0 or p.max(initial=0) > n - 1 or n < 2:
            raise ValueError("outside of the table")
        ctx.left = np.minimum(p.astype(int), n - 2)
        ctx.share = p - ctx.left
        ctx.values = raw(values).copy()
        return vg.Tensor((1 - ctx.share) * ctx.values[ctx.left] + ctx.share * ctx.values[ctx.left + 1])

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = raw(grad)
        of_values = np.zeros(len(ctx.values))
        np.add.at(of_values, ctx.left, g * (1 - ctx.share))
        np.add.at(of_values, ctx.left + 1, g * ctx.share)
        return vg.Tensor(g * (ctx.values[ctx.left + 1] - ctx.values[ctx.left])), vg.Tensor(of_values)


TABLE = scipy.interpolate.CubicSpline(np.arange(5.0), X)


@call(np.array([0.3, 1.7, 3.2]))
class SplineTable(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.a = raw(x).copy()
        return vg.Tensor(TABLE(ctx.a))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * TABLE(ctx.a, 1)


@call(X, np.array([-1.0, 0.0, 1.0]), width=0.5, means={"valid": lambda x, centers, width=0.5: width > 0})
class SoftHistogram(Function):
    @staticmethod
    def forward(ctx, x, centers, width=0.5):
        ctx.d = (raw(x)[:, None] - raw(centers)[None]) / width
        ctx.bumps, ctx.width = np.exp(-0.5 * ctx.d**2), width
        return vg.Tensor(ctx.bumps.sum(axis=0))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        slope = -ctx.d * ctx.bumps / ctx.width * raw(grad)[None]
        return vg.Tensor(slope.sum(axis=1)), vg.Tensor(-slope.sum(axis=0)), None


# -- indices and masks -------------------------------------------------------------------------------------------------


@call(TALL, np.array([1, 0, 1, 1]), count=3)
class SegmentMean(Function):
    @staticmethod
    def forward(ctx, x, segments, count):
        ctx.segments = raw(segments)
        ctx.sizes = np.maximum(np.bincount(ctx.segments, minlength=count), 1)
        out = np.zeros((count, x.shape[1]))
        np.add.at(out, ctx.segments, raw(x))
        return vg.Tensor(out / ctx.sizes[:, None])

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return vg.Tensor((raw(grad) / ctx.sizes[:, None])[ctx.segments]), None, None


@call(TALL, np.array([[0, 2], [3, 3]]), mode="mean")
class EmbeddingBag(Function):
    @staticmethod
    def forward(ctx, table, bags, mode="sum"):
        if mode not in ("sum", "mean"):
            raise ValueError(mode)
        ctx.bags, ctx.shape = raw(bags), table.shape
        ctx.scale = 1 / ctx.bags.shape[1] if mode == "mean" else 1.0
        return vg.Tensor(raw(table)[ctx.bags].sum(axis=1) * ctx.scale)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        out = np.zeros(ctx.shape)
        np.add.at(out, ctx.bags, raw(grad)[:, None] * ctx.scale)
        return vg.Tensor(out), None, None


@call(LOGITS, np.array([[True, False, True], [True, True, True]]))
class MaskedSoftmax(Function):
    @staticmethod
    def forward(ctx, x, mask):
        a = np.where(raw(mask), raw(x), -np.inf)
        e = np.exp(a - a.max(axis=-1, keepdims=True))
        y = vg.Tensor(e / e.sum(axis=-1, keepdims=True))
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return y * (grad - (grad * y).sum(axis=-1, keepdims=True)), None


@call(X, np.array([True, False, False, True, False]), value=-3.0)
class MaskedFill(Function):
    @staticmethod
    def forward(ctx, x, mask, value=0.0):
        ctx.keep = ~raw(mask)
        out = raw(x).copy()
        out[raw(mask)] = value
        return vg.Tensor(out)

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.keep, None, None


@call(X, low=1, high=1)
class TrimmedMean(Function):
    @staticmethod
    def forward(ctx, x, low=0, high=0):
        order = np.argsort(raw(x), kind="stable")
        ctx.kept, ctx.n = order[low : len(order) - high], len(order)
        return vg.Tensor(raw(x)[ctx.kept].mean())

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        out = np.zeros(ctx.n)
        out[ctx.kept] = 1 / len(ctx.kept)
        return grad * out, None, None


@call(LOGITS, temperature=0.5)
def soft_minimum(x, temperature=1.0):
    low = x.min(axis=-1, keepdims=True).detach()
    return low[..., 0] - temperature * vg.log(vg.exp((low - x) / temperature).sum(axis=-1))


# -- in place ----------------------------------------------------------------------------------------------------------


def soft_clip_(x, limit=1.0):
    return x.copy_(limit * vg.tanh(x / limit))


@call(X, limit=2.0, means={"inplace": soft_clip_})
def soft_clip(x, limit=1.0):
    return limit * vg.tanh(x / limit)


@call(np.concatenate([X, Y[:3]]))
def gated_half(x):
    n = x.shape[0] // 2
    out = x[:n].clone()
    out *= 1 / (1 + vg.exp(-x[n : 2 * n]))
    return out


class Leak(Function):
    @staticmethod
    def forward(ctx, v, decay=0.9):
        ctx.mark_dirty(v)
        ctx.decay = decay
        v.mul_(decay)
        return v

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.decay, None


@call(X, decay=0.8)
def leak_(v, decay=0.9):
    return Leak.apply(v, decay)


@call(SIGNAL, threshold=0.4)
def leaky_integration(current, threshold=1.0, decay=0.9):
    v = vg.zeros(current.shape)
    v[0] = current[0]
    for t in range(1, current.shape[0]):
        v[t] = decay * v[t - 1] + current[t]
    return vg.where(v > threshold, v - threshold, 0.1 * v)


@call(np.array([2.0, 0.1, 0.3, 1.5]))
def normalized_in_place(x):
    y = x.clone()
    y -= y.mean()
    y /= vg.sqrt((y * y).mean() + 1e-5)
    return y
