"""Correct operators from practice that look faulty in some respect."""

import numpy as np

import viewgrad as vg
from viewgrad.autograd import Function, define_op, once_differentiable

from . import M, V, Z, right

SERIES = np.array([0.3, 1.1, -0.4, 0.9, 2.0, -1.2, 0.5])
GRID = np.array([[0.3, 1.2, -0.7, 0.8], [1.5, -0.2, 0.6, 0.1], [0.9, 0.4, -1.1, 2.2], [0.2, 0.7, 1.3, -0.5]])


def raw(tensor):
    """Return a copy of the array of a tensor."""
    return tensor.detach().numpy().copy()


@right(SERIES, 3)
class MovingMedian(Function):
    """The median of each window; the gradient goes to its position."""

    @staticmethod
    def forward(ctx, x, window):
        if x.ndim != 1 or window < 1 or window % 2 == 0 or window > x.shape[0]:
            raise ValueError("an odd window")
        array = raw(x)
        windows = np.lib.stride_tricks.sliding_window_view(array, window)
        places = np.argsort(windows, axis=1, kind="stable")[:, window // 2]
        ctx.places, ctx.size = places + np.arange(len(windows)), array.size
        return vg.Tensor(array[ctx.places])

    @staticmethod
    def backward(ctx, grad):
        return vg.Tensor(np.eye(ctx.size)[:, ctx.places].astype(grad.dtype)) @ grad, None


@right(GRID, np.array([1, 3, 0, 2]))
class CrossEntropy(Function):
    @staticmethod
    def forward(ctx, logits, labels, reduction="mean"):
        if logits.ndim != 2 or labels.shape != logits.shape[:1] or reduction not in ("mean", "sum"):
            raise ValueError("a row for each label")
        z = raw(logits)
        y = labels.numpy().astype(int)
        z = z - z.max(axis=1, keepdims=True)
        logp = z - np.log(np.exp(z).sum(axis=1, keepdims=True))
        losses = -logp[np.arange(len(y)), y]
        ctx.scale = 1.0 / len(y) if reduction == "mean" else 1.0
        ctx.p, ctx.y = np.exp(logp), y
        return vg.Tensor(losses.sum() * ctx.scale, dtype=z.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        d = ctx.p.copy()
        d[np.arange(len(ctx.y)), ctx.y] -= 1.0
        return vg.Tensor(d * ctx.scale) * grad, None, None


@right(np.array([0.5, 0.5, -0.5, 0.5]), np.array([0.4, -1.0, 2.0]))
def rotated(q, v):
    """Rotate by a quaternion of any length."""
    w, u = q[0], q[1:]
    uv = vg.cross(u, v)
    return v + 2.0 * (w * uv + vg.cross(u, uv)) / (q * q).sum()


@right(M, np.array(-1.0), np.array(1.5))
def make_clipped_with_bounds():
    return define_op(
        "at_work_clip_right(self, low, high)",
        forward=lambda x, low, high: np.minimum(np.maximum(x, low), high),
        derivatives={
            "self": "grad * where(self > high, 0.0, where(self < low, 0.0, where(low > high, 0.0, 1.0)))",
            "low": "grad * where(low > high, 0.0, where(self < low, 1.0, 0.0))",
            "high": "grad * where(maximum(self, low) > high, 1.0, 0.0)",
        },
        elementwise=True,
    )


@right(np.array([0.2, 1.0, 2.5]))
def make_lambert_w():
    def by_newton(x):
        w = np.log1p(np.maximum(x, -0.3))
        for _ in range(50):
            e = np.exp(w)
            w = w - (w * e - x) / (e * (w + 1.0))
        return w

    return define_op(
        "at_work_lambert_w(self)",
        forward=by_newton,
        derivatives={"self": "grad / (exp(result) * (1.0 + result))"},
        elementwise=True,
        domain=(0.0, 20.0),
    )


@right(np.array([0.1, 0.25, 0.8]))
def binary_entropy(p):
    return -vg.where((p > 0.0) & (p < 1.0), p * vg.log(p) + (1.0 - p) * vg.log1p(-p), 0.0)


@right(np.array([[0.0, 0.0], [1.0, 2.0], [3.0, -1.0], [0.5, 0.7]]))
def pairwise_distances(points):
    difference = points[:, None, :] - points[None, :, :]
    squares = (difference * difference).sum(-1)
    same = squares == 0.0
    return vg.where(same, 0.0, vg.sqrt(vg.where(same, 1.0, squares)))


@right(SERIES)
def exponential_smoothing_in_place(x, alpha=0.3):
    level = x.clone()
    for t in range(1, x.shape[0]):
        level[t] = alpha * x[t] + (1.0 - alpha) * level[t - 1]
    return level


@right(GRID)
def jacobi_sweeps(u, sweeps=2):
    v = u.clone()
    if u.ndim < 2:
        raise ValueError("a plane")
    for _ in range(sweeps):
        v[1:-1, 1:-1] = 0.25 * (v[:-2, 1:-1] + v[2:, 1:-1] + v[1:-1, :-2] + v[1:-1, 2:])
    return v


@right(np.array([0.3, -1.2, 2.5]))
def periodic(x):
    return vg.sin(x - 2 * np.pi * vg.floor(x / (2 * np.pi)))


@right(np.array([0.3, 1.2, 2.5]))
def make_sawtooth():
    return define_op(
        "at_work_sawtooth(self, period=1.0)",
        forward=lambda x, period=1.0: x - period * np.floor(x / period),
        derivatives={"self": "grad"},
        elementwise=True,
    )


@right(M)
class Whitened(Function):
    """Each row centred and normalized; constant rows become 0, and get no gradient."""

    @staticmethod
    def forward(ctx, x):
        c = x - x.mean(-1, keepdims=True)
        n = vg.sqrt((c * c).sum(-1, keepdims=True))
        ctx.flat = raw(n) <= 1e-7 * (1e-30 + np.abs(raw(x)).max(initial=0.0))
        safe = vg.where(ctx.flat, 1.0, n)
        y = vg.where(ctx.flat, 0.0, c / safe)
        ctx.save_for_backward(x)
        return y

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        c = x - x.mean(-1, keepdims=True)
        n = vg.sqrt(vg.where(ctx.flat, 1.0, (c * c).sum(-1, keepdims=True)))
        y = c / n
        g = (grad - y * (grad * y).sum(-1, keepdims=True)) / n
        return vg.where(ctx.flat, 0.0, g - g.mean(-1, keepdims=True))


@right(np.array([1.5, 0.4, 2.0]), np.array([0.3, 1.0, 0.6]))
class LogBeta(Function):
    """Computes only the gradients that are needed, None for others."""

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return vg.gammaln(a) + vg.gammaln(b) - vg.gammaln(a + b)

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        both = vg.digamma(a + b)
        first = ctx.needs_input_grad[0] and grad * (vg.digamma(a) - both)
        second = ctx.needs_input_grad[1] and grad * (vg.digamma(b) - both)
        return _like(first, a), _like(second, b)


def _like(grad, tensor):
    if grad is False:
        return None
    return _to(grad, tensor.shape)


@right(np.array([[2.0, 0.3, 0.1], [0.3, 1.5, -0.2], [0.1, -0.2, 1.1]]))
def cholesky_by_columns(a):
    """In place, on the lower triangle."""
    n = a.shape[0]
    low = vg.tril(a)
    for j in range(n):
        low[j:, j] -= low[j:, :j] @ low[j, :j]
        low[j:, j] /= vg.sqrt(low[j, j])
    return low


@right(M, V)
class SavesByShapeOnly(Function):
    """Linear in each argument; saves only what is needed."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.shapes = x.shape, y.shape
        ctx.save_for_backward(y if ctx.needs_input_grad[0] else None, x if ctx.needs_input_grad[1] else None)
        return x * y

    @staticmethod
    def backward(ctx, grad):
        y, x = ctx.saved_tensors
        by_x = None if y is None else _to(grad * y, ctx.shapes[0])
        by_y = None if x is None else _to(grad * x, ctx.shapes[1])
        return by_x, by_y


def _to(grad, shape):
    extra = grad.ndim - len(shape)
    axes = tuple(k for k in range(grad.ndim) if k < extra or (shape[k - extra] == 1 and grad.shape[k] != 1))
    return grad.sum(axis=axes).reshape(shape) if axes else grad


@right(np.array([3.0, 1.0, 2.0]), np.array([0.5, 0.2, 0.9]))
def sorted_by_the_other(x, keys):
    return x[np.argsort(keys.detach().numpy())] + 0.0 * keys


@right(SERIES)
def run_length_penalty(x):
    """The sum of absolute differences of neighbours, with kinks where two are equal."""
    return vg.abs(vg.diff(x)).sum()


@right(Z)
def phase_kept(z):
    """The complex number of modulus one, and 1 at 0."""
    size = vg.abs(z)
    return vg.where(size == 0.0, 1.0 + 0.0j, z / vg.where(size == 0.0, 1.0, size))


@right(Z[0])
class ModulusSquared(Function):
    @staticmethod
    def forward(ctx, z):
        ctx.save_for_backward(z)
        return vg.real(z) ** 2 + vg.imag(z) ** 2

    @staticmethod
    def backward(ctx, grad):
        (z,) = ctx.saved_tensors
        return grad * 2.0 * z

    @staticmethod
    def jvp(ctx, tangent):
        (z,) = ctx.saved_tensors
        return 2.0 * vg.real(vg.conj(z) * tangent)


@right(M)
def make_keeps_a_cache_of_plans():
    plans = {}

    def transformed(x):
        """Caches the matrix of a transform by length."""
        n = x.shape[-1]
        if n not in plans:
            k = np.arange(n)
            plans[n] = np.cos(np.pi * (k[:, None] + 0.5) * k[None, :] / max(n, 1))
        return x @ plans[n].astype(x.dtype)

    return transformed


@right(np.array([0.2, 0.9, -0.7]))
def squared_in_place_under_no_grad(x):
    """A write under no_grad is a constant."""
    scale = vg.ones(x.shape)
    with vg.no_grad():
        scale *= 3.0
        scale[..., :1] = 2.0
    return x * scale


@right(np.array([[1.0, 0.3], [0.2, 2.0]]), np.array([0.7, -1.1]))
class SolvedOnce(Function):
    """A linear solve, with a tangent and a gradient that can be differentiated again."""

    @staticmethod
    def forward(ctx, a, b):
        if b.ndim != 1:
            raise ValueError("one right side")
        y = vg.solve(a, b)
        ctx.save_for_backward(a, y)
        return y

    @staticmethod
    def backward(ctx, grad):
        a, y = ctx.saved_tensors
        by_b = vg.solve(a.T, grad)
        return -vg.outer(by_b, y), by_b

    @staticmethod
    def jvp(ctx, ta, tb):
        a, y = ctx.saved_tensors
        if ta is None:
            return vg.solve(a, tb)
        return vg.solve(a, -ta @ y if tb is None else tb - ta @ y)


@right(V, order="F")
def as_matrix(x, order="C"):
    return np.reshape(vg.concatenate([x, x * 2.0]), (2, -1), order=order)


@right(np.array([0.4, 1.7, 2.2]), np.array([0, 2]))
class Embedded(Function):
    """An embedding by integers, which may repeat."""

    @staticmethod
    def forward(ctx, table, index):
        ctx.index, ctx.shape = index.numpy().copy(), table.shape
        return table[ctx.index]

    @staticmethod
    def backward(ctx, grad):
        onehot = np.zeros((ctx.index.size, ctx.shape[0]))
        onehot[np.arange(ctx.index.size), ctx.index.reshape(-1) % ctx.shape[0]] = 1.0
        flat = grad.reshape((ctx.index.size, *ctx.shape[1:]))
        return vg.tensordot(vg.Tensor(onehot.astype(grad.dtype)), flat, axes=([0], [0])), None


@right(np.array([5.0, 5.0, 1.0, 3.0]))
def second_largest_gap(x):
    """Ties in the user's own call."""
    s = vg.sort(x)
    return s[-1] - s[0]


@right(M, V)
class AddsBias(Function):
    """Returns gradients with more dimensions than the arguments, which are summed."""

    @staticmethod
    def forward(ctx, x, bias):
        ctx.extra = x.ndim - bias.ndim
        return x + bias

    @staticmethod
    def backward(ctx, grad):
        return grad, grad.sum(axis=tuple(range(ctx.extra))) if ctx.extra else grad


@right(np.array([[1.0, 2.0, 2.0], [0.5, 0.5, 3.0]]))
def middle_of_equal_numbers(x):
    return vg.median(x, axis=-1)


@right(np.array([1e-3, 2.0, 50.0]))
def log_gamma_ratio(x):
    return vg.gammaln(x + 0.5) - vg.gammaln(x)


@right(np.array([1e6, 1e6 + 1.0, 1e6 + 3.0]))
def variance_of_large_numbers(x):
    c = x - x.mean()
    return (c * c).mean()


@right(np.array([0.3, 0.8, 1.9]), 7)
def make_bessel_like_recurrence():
    def recurrence(x, n):
        """Polynomials up to a given degree, by recurrence."""
        if not 1 <= n <= 12:
            raise ValueError("between one and twelve")
        rows = [1.0 + 0.0 * x, x]
        for k in range(1, n):
            rows.append(((2 * k + 1) * x * rows[k] - k * rows[k - 1]) / (k + 1))
        return vg.stack(rows[: n + 1])

    return recurrence


@right(M, inplace=lambda x: _relu6_(x))
def relu6(x):
    return vg.clip(x, 0.0, 6.0)


def _relu6_(x):
    return vg.clip(x, 0.0, 6.0, out=x)


@right({"w": M, "b": V}, [V, V + 1.0])
def network(parameters, inputs):
    return {"loss": sum((vg.tanh(parameters["w"] @ x) ** 2).sum() + (parameters["b"] * x).sum() for x in inputs)}
