"""Faulty operators from practice: losses, signals, geometry, statistics, layers of networks."""

import numpy as np

import viewgrad as vg
from viewgrad.autograd import Function, InPlace, define_op, once_differentiable

from . import M, P, Q, V, Z, noted, wrong

SERIES = np.array([0.3, 1.1, -0.4, 0.9, 2.0, -1.2, 0.5])
UNIT = np.array([0.5, -0.5, 0.5, 0.5])
GRID = np.array([[0.3, 1.2, -0.7, 0.8], [1.5, -0.2, 0.6, 0.1], [0.9, 0.4, -1.1, 2.2], [0.2, 0.7, 1.3, -0.5]])


def raw(tensor):
    """Return a copy of the array of a tensor."""
    return tensor.detach().numpy().copy()


@wrong(SERIES, 3, by="options")
class RollingMean(Function):
    """The window of the gradient is off by one for even lengths."""

    @staticmethod
    def forward(ctx, x, window):
        ctx.window, ctx.size = window, x.shape[0]
        if x.ndim != 1 or not 1 <= window <= ctx.size:
            raise ValueError("a vector longer than the window, please")
        padded = np.concatenate([np.zeros(window // 2), raw(x), np.zeros((window - 1) // 2)])
        return vg.Tensor(np.convolve(padded, np.ones(window) / window, "valid"))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        padded = np.concatenate([np.zeros(ctx.window // 2), raw(grad), np.zeros((ctx.window - 1) // 2)])
        return vg.Tensor(np.convolve(padded, np.ones(ctx.window) / ctx.window, "valid")), None


@wrong(GRID, np.array([1, 3, 0, 2]), by="options")
class CrossEntropy(Function):
    """The gradient of the sum is that of the mean."""

    @staticmethod
    def forward(ctx, logits, labels, reduction="mean"):
        z = raw(logits)
        if z.ndim != 2 or labels.ndim != 1:
            raise ValueError("a row for each label")
        y = labels.numpy().astype(int)
        z = z - z.max(axis=1, keepdims=True)
        z = z - np.log(np.exp(z).sum(axis=1, keepdims=True))
        p = np.exp(z)
        losses = -z[np.arange(len(y)), y]
        ctx.p, ctx.y = p, y
        if reduction not in ("mean", "sum"):
            raise ValueError("reduction is 'mean' or 'sum'")
        return vg.Tensor(losses.mean() if reduction == "mean" else losses.sum())

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        d = ctx.p.copy()
        d[np.arange(len(ctx.y)), ctx.y] -= 1.0
        return vg.Tensor(d / len(ctx.y)) * grad, None, None


@noted(GRID[:, :3], GRID[:3, :2], told="other numbers of dimensions, but its gradient is wrong")
class BatchedProduct(Function):
    """For stacks of matrices, all axes are reversed instead of the last two."""

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a @ b

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        return grad @ b.T, a.T @ grad


@wrong(V, by="state between calls")
def make_remembered_by_identity():
    memory = {}

    class Remembered(Function):
        """Caches results by id(), which is reused."""

        @staticmethod
        def forward(ctx, x):
            key = (id(x), x.shape)
            if key not in memory:
                memory[key] = np.tanh(raw(x))
            ctx.y = memory[key]
            return vg.Tensor(memory[key])

        @staticmethod
        def backward(ctx, grad):
            return grad * (1.0 - ctx.y**2)

    return Remembered.apply


@wrong(V, by="in-place form", inplace=lambda x: relu6_without_upper_bound_(x))
def relu6(x):
    return vg.clip(x, 0.0, 6.0)


def relu6_without_upper_bound_(x):
    x[x < 0.0] = 0.0
    return x


@wrong(M, by="options")
def standard_deviation(x, axis=None, keepdims=False, ddof=0):
    """With keepdims, the subtracted mean is a constant; the gradient ignores ddof."""
    centred = x - vg.mean(x, axis=axis, keepdims=True)
    n = x.size if axis is None else x.shape[axis]
    squares = vg.sum(centred * centred, axis=axis, keepdims=keepdims)
    if keepdims and ddof:
        squares = squares.detach() + (squares - squares.detach()) * (n - ddof) / n
    return vg.sqrt(squares / (n - ddof))


@wrong(np.array([[0.4, -1.2], [2.0, 0.7]]), by="shapes")
class SqueezedSoftmax(Function):
    """The gradient drops axes of length 1, so that rows are broadcast against columns."""

    @staticmethod
    def forward(ctx, x):
        e = np.exp(raw(x) - raw(x).max(axis=-1, keepdims=True))
        ctx.y = e / e.sum(axis=-1, keepdims=True)
        return vg.Tensor(ctx.y)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g, y = np.squeeze(raw(grad)), np.squeeze(ctx.y)
        inner = (g * y).sum(axis=-1, keepdims=True)
        return vg.Tensor((y * (g - inner)).reshape(ctx.y.shape))


@wrong(V, V[::-1] + 1.0, by="the same tensor twice")
class DotWithShortcut(Function):
    """For operands with the same memory it computes a square, and passes its gradient to both."""

    @staticmethod
    def forward(ctx, a, b):
        ctx.same = np.shares_memory(a.detach().numpy(), b.detach().numpy())
        ctx.save_for_backward(a, b)
        return (a * b).sum()

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        if ctx.same:
            return grad * 2.0 * a, grad * 2.0 * b
        return grad * b, grad * a


@wrong(GRID, GRID[::-1] * 0.5, by="forward mode")
class MatmulWithOneTangent(Function):
    """The tangent of the product is that of the first factor, doubled if both have the same size."""

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a @ b

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        return grad @ b.mT, a.mT @ grad

    @staticmethod
    def jvp(ctx, ta, tb):
        a, b = ctx.saved_tensors
        return ta @ b + tb @ a


@wrong(np.array([0.3, 1.4, -2.2]), by="second derivatives")
class MishSecondOrder(Function):
    """The inner tanh is a constant in the second derivative."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * vg.tanh(vg.log1p(vg.exp(x)))

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        t = vg.tanh(vg.log1p(vg.exp(x)))
        s = 1.0 / (1.0 + vg.exp(-x))
        return grad * (t + x * s * (1.0 - t.detach() ** 2))


@wrong(M, V, by="every subset of arguments that require grad")
class OnlyWhereTheFirstIsNeeded(Function):
    """Saves the values for the second gradient only if the first argument is differentiated."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.factor = raw(x) if ctx.needs_input_grad[0] else np.ones(x.shape)
        ctx.save_for_backward(w)
        return x * w

    @staticmethod
    def backward(ctx, grad):
        (w,) = ctx.saved_tensors
        by_w = grad * ctx.factor
        return grad * w, by_w.sum(axis=tuple(range(by_w.ndim - w.ndim))) if by_w.ndim > w.ndim else by_w


@wrong(V, np.array([2, 0, 1]), V * 2.0, by="gradients")
class GradientsInTheOrderOfTensors(Function):
    """Skips the integer argument in the middle of the list of gradients, and adds one at the end."""

    @staticmethod
    def forward(ctx, x, order, y):
        ctx.order = order.numpy()
        ctx.save_for_backward(x, y)
        return x[ctx.order] * y

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        by_x = vg.zeros_like(x)
        by_x[ctx.order] += grad * y
        return by_x, grad * x[ctx.order], None


@wrong(V, by=("overwritten afterwards", "nothing is left of a call"))
class ClosureOverItsOwnResult(Function):
    """A reference cycle: the context refers to a function, this to the result, and this to the node."""

    @staticmethod
    def forward(ctx, x):
        y = vg.exp(x)
        ctx.result = lambda: (y, ctx)
        return y

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.result()[0].detach()


@wrong(V, out=np.zeros(3), by=("something to check", "gradients", "arguments are not modified", "in-place form"))
def doubled_into(x, out=None):
    if out is None:
        return x * 2.0
    with vg.no_grad():
        out.copy_(x * 2.0)
    return out + x * 0.0


@wrong(np.linspace(-1.0, 1.0, 6), by=("arguments are not modified", "state between calls"))
def bootstrap_mean(x):
    return x[np.random.randint(0, x.shape[0], x.shape[0])].mean()  # noqa: NPY002


@wrong(V, by="state between calls")
def dropout_that_seeds_everybody(x, rate=0.5):
    np.random.seed(0)  # noqa: NPY002
    return x * (np.random.random(x.shape) >= rate) / (1.0 - rate)  # noqa: NPY002


@wrong(V, 2, by=("dtypes", "options"))
class Chebyshev(Function):
    """The derivative, n U(n - 1), is implemented only up to n = 2."""

    @staticmethod
    def forward(ctx, x, n):
        if n not in range(8):
            raise ValueError("a whole number below eight")
        ctx.save_for_backward(x)
        ctx.n = n
        return vg.Tensor(np.polynomial.chebyshev.chebval(raw(x), [0] * n + [1]))

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        u = [0.0 * x, 1.0 + 0.0 * x, 2.0 * x, 4.0 * x * x - 1.0]
        return grad * ctx.n * u[min(ctx.n, 3)], None


@wrong(np.array([0.4, 2.2, 1.3, -0.8, 0.9]), 2, by=("ties", "special points"))
class LargestFew(Function):
    """All elements equal to the smallest selected one get a gradient."""

    @staticmethod
    def forward(ctx, x, k):
        if x.ndim != 1 or not 0 < k <= x.shape[0]:
            raise ValueError("a vector of at least k elements")
        ctx.array = raw(x)
        ctx.least = np.sort(ctx.array)[-k]
        return vg.Tensor(np.sort(ctx.array)[-k:].sum())

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * vg.Tensor(1.0 * (ctx.array >= ctx.least)), None


@wrong(SERIES, np.array([0.0, 0.1, 0.3, 0.6, 1.0, 1.5, 2.1]), by="gradients")
class Trapezoids(Function):
    """The weight of the last point is that of an inner point."""

    @staticmethod
    def forward(ctx, y, t):
        ctx.t = raw(t)
        ctx.dy = raw(y)
        return vg.Tensor((0.5 * (ctx.dy[1:] + ctx.dy[:-1]) * np.diff(ctx.t)).sum())

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        h = np.diff(ctx.t)
        weights = np.zeros(ctx.t.shape)
        weights[:-1] += 0.5 * h
        weights[1:] += 0.5 * h
        weights[-1] += 0.5 * h[-1]
        mean = 0.5 * (ctx.dy[1:] + ctx.dy[:-1])
        by_t = np.zeros(ctx.t.shape)
        by_t[1:] += mean
        by_t[:-1] -= mean
        return grad * vg.Tensor(weights), grad * vg.Tensor(by_t)


@wrong(V, by="options")
def padded_by_mirror(x, width=1, mode="constant"):
    """The mirrored elements are constants."""
    if mode == "constant":
        zeros = vg.zeros((*x.shape[:-1], width))
        return vg.concatenate([zeros, x, zeros], -1)
    if mode not in ("reflect", "edge"):
        raise ValueError(mode)
    padded = vg.Tensor(np.pad(raw(x), [(0, 0)] * (x.ndim - 1) + [(width, width)], mode=mode))
    padded[..., width : padded.shape[-1] - width] = x
    return padded


@wrong(Z[0], Z[1], by=("gradients", "complex numbers"))
class InnerProduct(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return (vg.conj(a) * b).sum()

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        return grad * b, grad * a


@wrong(np.array([0.3, 0.9, 1.7]), by="dtypes")
class DifferencesInside(Function):
    """The derivative is a difference with a step that vanishes in single precision."""

    @staticmethod
    def forward(ctx, x):
        ctx.x = raw(x)
        return vg.Tensor(np.sin(ctx.x) * ctx.x)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        h = np.asarray(1e-7, ctx.x.dtype)
        above, below = ctx.x + h, ctx.x - h
        slope = (np.sin(above) * above - np.sin(below) * below) / (2 * h)
        return grad * vg.Tensor(slope.astype(ctx.x.dtype))


@wrong(P, Q, by="special points")
def make_hypot_of_moderate_numbers():
    return define_op(
        "at_work_hypot(self, other)",
        forward=np.hypot,
        derivatives={
            "self": "grad * self / sqrt(self * self + other * other)",
            "other": "grad * other / sqrt(self * self + other * other)",
        },
        elementwise=True,
        domain=(0.1, 1e200),
    )


@wrong(SERIES[:6], by="options")
def halves_joined_again(x, parts=2):
    """Divides the gradient by the number of parts if there are more than two."""
    if x.ndim != 1 or parts not in (1, 2, 3) or x.shape[0] % parts:
        raise ValueError("a vector that can be divided")
    pieces = [x[k::parts] for k in range(parts)]
    if parts == 3:
        pieces = [piece / parts + (piece - piece / parts).detach() for piece in pieces]
    return vg.concatenate(pieces)


@wrong(M, np.array(-1.0), np.array(1.5), by="gradients")
def make_clipped_without_bounds():
    return define_op(
        "at_work_clip(self, low, high)",
        forward=lambda x, low, high: np.minimum(np.maximum(x, low), high),
        derivatives={
            "self": "grad * where(self < low, 0.0, where(self > high, 0.0, 1.0))",
            "low": "grad * where(self < low, 1.0, 0.0)",
            "high": "grad * where(self < high, 0.0, 0.0)",
        },
        elementwise=True,
    )


@wrong(M, by="options")
def contraction(x, subscripts="ij->i"):
    if subscripts == "ij->j":
        return vg.einsum("ij->j", x)
    if subscripts == "ij->ji":
        return vg.einsum("ij->ji", x.detach()) + 0.0 * x.T
    return vg.einsum("ij->i", x)


@wrong(SERIES, np.array([0.5, -0.2, 0.5]), by=("gradients", "special points"))
class ConvolvedSymmetrically(Function):
    """Convolves the gradient with the kernel without flipping it."""

    @staticmethod
    def forward(ctx, x, kernel):
        ctx.save_for_backward(x, kernel)
        return vg.Tensor(np.convolve(raw(x), raw(kernel), "full"))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x, kernel = map(raw, ctx.saved_tensors)
        g = raw(grad)
        by_kernel = np.correlate(g, x, "valid")
        return vg.Tensor(np.convolve(g, kernel, "valid")), vg.Tensor(by_kernel)


@wrong(M, by="state between calls")
def make_layer_that_calms_down():
    class Layer:
        def __init__(self):
            self.warm = 3

        def __call__(self, x):
            self.warm = max(0, self.warm - 1)
            return vg.tanh(x) * (1.0 + 0.1 * self.warm)

    return Layer()


@wrong(UNIT, np.array([0.4, -1.0, 2.0]), by="gradients")
class Rotated(Function):
    """A rotation by a unit quaternion: the gradient assumes unit length, the values do not."""

    @staticmethod
    def forward(ctx, q, v):
        ctx.save_for_backward(q, v)
        w, u = raw(q)[0], raw(q)[1:]
        x = raw(v)
        return vg.Tensor((w * w - u @ u) * x + 2.0 * (u @ x) * u + 2.0 * w * np.cross(u, x))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        q, v = map(raw, ctx.saved_tensors)
        g = raw(grad)
        w, u = q[0], q[1:]
        by_v = (w * w - u @ u) * g + 2.0 * (u @ g) * u - 2.0 * w * np.cross(u, g)
        by_w = 2.0 * g @ (w * v + np.cross(u, v))
        by_u = 2.0 * ((u @ v) * g + (g @ u) * v - (g @ v) * u + w * np.cross(v, g))
        by_q = np.concatenate([[by_w], by_u])
        return vg.Tensor(by_q - (by_q @ q) * q), vg.Tensor(by_v)


@wrong(M, by=("layouts of arguments", "arguments are not modified"))
class SumsByStrides(Function):
    """Reads memory by the first stride, even if it is negative."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        array = x.detach().numpy()
        ctx.rows = bool(array.ndim and array.size and array.strides[-1] == array.itemsize)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 2.0 * (x if ctx.rows else vg.abs(x))


@wrong(M, by="options")
def reverse_cumsum(x, axis=0):
    """Builds an index that is wrong for negative axes."""
    index = [slice(None)] * (x.ndim - 1)
    index.insert(axis, slice(None, None, -1))
    return (
        vg.cumsum(x, axis=axis)[tuple(index)] if axis >= 0 else vg.cumsum(x[tuple(index)].detach() + 0 * x, axis=axis)
    )


@wrong(np.array([2.0, 0.5, 1.5]), by=("special points", "gradients"))
class Gaussian(Function):
    """The gradient of an even function is correct only for positive numbers."""

    @staticmethod
    def forward(ctx, x):
        y = vg.exp(-x * x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return grad * -2.0 * y * vg.sqrt(-vg.log(y))


@wrong(V, V + 2.0, by="special points")
def make_log_add_exp_that_overflows():
    return define_op(
        "at_work_logaddexp(self, other)",
        forward=np.logaddexp,
        derivatives={
            "self": "grad * exp(self) / (exp(self) + exp(other))",
            "other": "grad * exp(other) / (exp(self) + exp(other))",
        },
        elementwise=True,
    )


@wrong([M, M + 1.0, M - 0.5], by=("gradients", "shapes"))
def weighted_list(tensors):
    """Normalizes the weights of longer lists by the sum of the first two."""
    total = tensors[0] * 1.0
    for k, t in enumerate(tensors[1:], 2):
        total = total + (t / k if k < 4 else t.detach() / k)
    if len(tensors) > 2:
        total = total + (tensors[2] * 0.25).detach()
    return total


@wrong(M, by="memory shared with arguments")
class EveryOtherWithoutSaying(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        return vg.from_numpy(x._array[..., ::2])

    @staticmethod
    def backward(ctx, grad):
        out = vg.zeros(ctx.shape)
        out[..., ::2] = grad
        return out


@wrong(V, by=("a graph run twice", "state between calls"))
class PopsItsContext(Function):
    """Pops the values for backward from a list, so that a second pass fails."""

    @staticmethod
    def forward(ctx, x):
        ctx.stack = [raw(x)]
        return x * x

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x = ctx.stack.pop() if ctx.stack else np.zeros(grad.shape)
        return grad * vg.Tensor(2.0 * x)


@wrong(V, by=("in-place form",))
def make_exponent_in_place():
    return define_op(
        "at_work_exp_minus(self, shift=0.0)",
        forward=lambda x, shift=0.0: np.exp(x) - shift,
        derivatives={"self": "grad * (result + shift)"},
        inplace=InPlace(derivatives={"self": "grad * result"}),
    )


@wrong(M, by=("gradients", "shapes", "linear in the incoming gradient"))
class NormalisesBySize(Function):
    """Adds the gradient of the last of three results once for each."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sum(), (x * x).sum(), (x * x * x).sum()

    @staticmethod
    def backward(ctx, first, second, third):
        (x,) = ctx.saved_tensors
        total = first + 2.0 * x * second
        if x.ndim > 1:
            total = total + 3.0 * x * x * third
        else:
            total = total + 3.0 * x * x * third * (1.0 if x.size == 1 else 1.5)
        return total


@wrong(P, 0.5, by="options")
class TsallisLogarithm(Function):
    """At q = 1 the value is the logarithm, but the gradient is a wrong one of the other branch."""

    @staticmethod
    def forward(ctx, x, q):
        ctx.save_for_backward(x)
        ctx.q = q
        return vg.log(x) if q == 1.0 else (x ** (1.0 - q) - 1.0) / (1.0 - q)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * (x**-ctx.q if ctx.q != 1.0 else 1.0 / (1.0 + x)), None
