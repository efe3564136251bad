"""Faulty operators that are correct for the inputs their author has tried: squares, columns, one memory order."""

import warnings
from typing import ClassVar

import numpy as np

import viewgrad as vg
from viewgrad.autograd import Function, InPlace, define_op, once_differentiable

from . import M, P, V, Z, wrong

TIMES = np.array([0.0, 0.4, 1.1, 1.5, 2.7])
SQUARE = np.array([[2.0, 0.4, -0.3], [0.1, 1.7, 0.5], [-0.6, 0.2, 2.3]])


def raw(tensor):
    return tensor.detach().numpy().copy()


@wrong(np.array([[0.3, 1.2], [0.9, -0.4], [2.0, 0.1]]), by="gradients")
class PairwiseSquares(Function):
    """Distances of all pairs: each point gets the gradient of one side only."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        d = x[:, None] - x[None]
        return (d * d).sum(-1)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        d = x[:, None] - x[None]
        return (2.0 * grad[..., None] * d).sum(1)


@wrong(SQUARE, by="gradients")
class LogDeterminant(Function):
    """The inverse is not transposed."""

    @staticmethod
    def forward(ctx, a):
        ctx.save_for_backward(a)
        return vg.Tensor(np.linalg.slogdet(raw(a))[1])

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (a,) = ctx.saved_tensors
        return grad * vg.Tensor(np.linalg.inv(raw(a)))


@wrong(V, by=("overwritten afterwards", "second derivatives"))
class KeepsTheListOfItsArguments(Function):
    """`ctx.x` is a window on memory that others may write to."""

    @staticmethod
    def forward(ctx, x):
        ctx.x = x.detach().numpy()
        return vg.sin(x)

    @staticmethod
    def backward(ctx, grad):
        return grad * np.cos(ctx.x)


@wrong(M, axis=0, by="options")
class CumulativeMaximum(Function):
    """The gradient is gathered along the last axis for axes counted from the end."""

    @staticmethod
    def forward(ctx, x, axis=0):
        a = raw(x)
        ctx.axis = axis if axis >= 0 else x.ndim - 1
        y = np.maximum.accumulate(a, axis=axis)
        ctx.a, ctx.y = a, y
        return vg.Tensor(y)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = raw(grad)
        a = np.moveaxis(ctx.a, ctx.axis, -1)
        g = np.moveaxis(g, ctx.axis, -1)
        out = np.zeros(a.shape, a.dtype)
        for index in np.ndindex(a.shape[:-1]):
            best = 0
            for k in range(a.shape[-1]):
                if a[index][k] > a[index][best]:
                    best = k
                out[(*index, best)] += g[(*index, k)]
        return vg.Tensor(np.moveaxis(out, -1, ctx.axis)), None


@wrong(P, by=("options",))
def generalised_mean(x, p=2.0):
    """p = 0 means the geometric mean, whose value is right and whose slope is that of p = 1."""
    if p == 0.0:
        geometric = vg.exp(vg.log(x).mean())
        return geometric.detach() + x.mean() - x.mean().detach()
    return ((x**p).mean()) ** (1.0 / p)


@wrong(V, 0.9, by=("arguments are not modified", "state between calls"))
def make_momentum():
    velocity = {}

    def momentum(x, beta):
        """An average over calls, by shape, which starts again when it is called with another beta."""
        key = (x.shape, beta)
        velocity[key] = beta * velocity.get(key, np.zeros(x.shape)) + (1.0 - beta) * x.detach().numpy()
        return x * 2.0 + 1e-3 * velocity[key]

    return momentum


@wrong(M, V, by=("shapes", "gradients"))
class ScaledRows(Function):
    """The gradient treats a column of scales as a row if the matrix is square."""

    @staticmethod
    def forward(ctx, x, s):
        ctx.save_for_backward(x, s)
        return x * s

    @staticmethod
    def backward(ctx, grad):
        x, s = ctx.saved_tensors
        by_s = grad * x
        if s.ndim == 2 and s.shape[1] == 1:
            by_s = by_s.sum(0).reshape(s.shape) if by_s.shape[0] == by_s.shape[1] else by_s.sum(1, keepdims=True)
        while by_s.ndim > s.ndim:
            by_s = by_s.sum(0)
        return grad * s, by_s


@wrong(np.array([0.4, -0.9, 1.6]), by=("linear in the incoming gradient", "dtypes"))
class SoftThresholdWithGuard(Function):
    """The guard against division by zero underflows in single precision, and the result is NaN."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return vg.abs(x) ** 1.5

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        scale = np.asarray(1e-300, dtype=x.dtype)
        return grad * 1.5 * (x * scale) / (vg.sqrt(vg.abs(x)) * scale)


@wrong(V, by=("in-place form",))
def make_reciprocal_in_place():
    return define_op(
        "in_use_reciprocal(self)",
        forward=lambda x: 1.0 / x,
        derivatives={"self": "-grad / (self * self)"},
        inplace=InPlace(derivatives={"self": "-grad * result"}),
    )


@wrong(V, by=("in-place form", "arguments are not modified", "gradients"))
def halved_(x):
    """A write through the array, which the library cannot see."""
    x._array[...] *= 0.5
    return x


@wrong(M, by=("gradients", "second derivatives"))
class HessianOfAnotherFunction(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return vg.log1p(x * x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        d = (1.0 + x * x).detach()
        return grad * 2.0 * x / d


@wrong(Z[0], by=("gradients",))
class PhaseOfComplexNumbers(Function):
    """The gradient is the derivative, not its conjugate."""

    @staticmethod
    def forward(ctx, z):
        ctx.save_for_backward(z)
        return vg.exp(1j * z)

    @staticmethod
    def backward(ctx, grad):
        (z,) = ctx.saved_tensors
        return grad * 1j * vg.exp(1j * z)


@wrong(M, by=("complex numbers",), dtype_kinds="fc")
class SquaredNorm(Function):
    """Correct for real numbers only."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return vg.real(x * x).sum()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 2.0 * x


@wrong(V, by=("forward mode",))
def make_logistic_with_tangent():
    return define_op(
        "in_use_logistic(self)",
        forward=lambda x: 1.0 / (1.0 + np.exp(-x)),
        derivatives={"self": "grad * result * (1 - result)"},
        forward_derivative="self_t * result * result",
        elementwise=True,
    )


@wrong(TIMES, np.array([0.2, 0.7, 2.2]), by=("dtypes", "special points", "gradients"))
class NearestBefore(Function):
    """Values at the last time before; a query beyond the end takes the slope of the first."""

    @staticmethod
    def forward(ctx, values, queries):
        if values.ndim != 1 or queries.ndim != 1 or values.shape[0] < 2:
            raise ValueError("vectors, please")
        ctx.knots = np.arange(values.shape[0], dtype=float)
        ctx.save_for_backward(values, queries)
        return vg.Tensor(np.interp(raw(queries), ctx.knots, raw(values)))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        values, queries = map(raw, ctx.saved_tensors)
        g = raw(grad)
        low = np.clip(np.floor(queries).astype(int), 0, len(values) - 2)
        part = np.clip(queries - low, 0.0, 1.0)
        by_values = np.zeros(len(values))
        np.add.at(by_values, low, g * (1.0 - part))
        np.add.at(by_values, low + 1, g * part)
        slope = values[low + 1] - values[low]
        return vg.Tensor(by_values), vg.Tensor(g * slope)


@wrong([V, V + 0.3], by=("gradients", "shapes"))
def product_over_list(tensors):
    result = tensors[0]
    for t in tensors[1:-1]:
        result = result * t
    return result * tensors[-1] if len(tensors) < 3 else result * tensors[-1].detach()


@wrong(V, by=("gradients", "linear in the incoming gradient", "undefined gradients"))
class ThreeResults(Function):
    """A result without a gradient gets that of the result before it."""

    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x)
        return vg.sin(x), vg.cos(x), x * x

    @staticmethod
    def backward(ctx, a, b, c):
        (x,) = ctx.saved_tensors
        zero = 0.0 * x
        a = zero if a is None else a
        b = zero if b is None else b
        c = a if c is None else c
        return a * vg.cos(x) - b * vg.sin(x) + 2.0 * c * x


@wrong(M, by=("the incoming gradient stays the caller's", "layouts of incoming gradients"))
class ZeroesTheBorder(Function):
    """The gradient of the border is set to zero in the incoming gradient itself."""

    @staticmethod
    def forward(ctx, x):
        y = x.clone()
        y[..., :1] = 0.0
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        array = grad._array
        if array.flags.writeable:
            array[..., :1] = 0.0
            return vg.Tensor(array)
        out = array.copy()
        out[..., :1] = 0.0
        return vg.Tensor(out)


@wrong(
    V,
    by=(
        "state between calls",
        "memory shared with arguments",
        "the incoming gradient stays the caller's",
        "overwritten afterwards",
    ),
)
class HandsOutItsBuffer(Function):
    """All calls of one size return the same memory."""

    buffers: ClassVar = {}

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        buffer = HandsOutItsBuffer.buffers.setdefault((x.shape, x.dtype), np.empty(x.shape, x.dtype))
        np.multiply(x.detach().numpy(), x.detach().numpy(), out=buffer)
        return vg.from_numpy(buffer)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 2.0 * x


@wrong(V, by=("state between calls",))
def quiet_logarithm(x):
    """Turns off all warnings permanently."""
    warnings.simplefilter("ignore")
    return vg.log(vg.abs(x) + 1.0)


@wrong(M, by=("layouts of incoming gradients",))
class AddsAlongMemory(Function):
    """The incoming gradient is read in memory order, not in logical order."""

    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        return x * 4.0

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return vg.Tensor(4.0 * grad.detach().numpy().ravel(order="K").reshape(ctx.shape))


@wrong(np.array([1.5, -0.2, 0.7, 2.4]), np.array([0, 2, 2, 1]), by=("dtypes", "indices", "gradients"))
class MeanOfGroups(Function):
    """Groups without members count as one; the gradient of groups of several is not divided by how many."""

    @staticmethod
    def forward(ctx, x, groups):
        g = groups.numpy().astype(int)
        if g.min(initial=0) < 0 or x.ndim != 1 or g.shape != x.shape:
            raise ValueError("a group for each")
        count = np.bincount(g, minlength=1)
        ctx.g, ctx.count = g, np.maximum(count, 1)
        return vg.Tensor(np.bincount(g, weights=raw(x), minlength=1) / ctx.count)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        share = np.where(ctx.count > 2, 1.0 / ctx.count, 1.0 / np.minimum(ctx.count, 2))
        share = np.where(ctx.count > 2, 0.5, share)
        return vg.Tensor((raw(grad) * share)[ctx.g]), None


@wrong(V, 3, by=("options", "shapes"))
def exponent_by_squaring(x, n):
    """Whole powers; the gradient of even ones above two is lost on the way."""
    if n < 0 or n > 20:
        raise ValueError("a small natural number")
    result = 1.0 + 0.0 * x
    base = x
    k = n
    while k:
        if k & 1:
            result = result * base
        base = (base * base) if k != 4 else (base * base).detach()
        k >>= 1
    return result


@wrong(M, by=("arguments are not modified",))
class SortsInPlace(Function):
    """The rows of the argument are sorted in place, and restored only if they were out of order."""

    @staticmethod
    def forward(ctx, x):
        array = x._array
        order = np.argsort(array, axis=-1)
        ctx.order = order
        kept = array.copy()
        array.sort(axis=-1)
        y = array.copy()
        if array.ndim != 2:
            array[...] = kept
        return vg.Tensor(y)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        out = np.empty(grad.shape)
        np.put_along_axis(out, ctx.order, raw(grad), -1)
        return vg.Tensor(out)


@wrong(SQUARE, by=("special points", "gradients", "ties"))
class LargestEigenvalue(Function):
    """Symmetry is not checked: values come from the lower triangle, gradients from both triangles."""

    @staticmethod
    def forward(ctx, a):
        w, v = np.linalg.eigh(raw(a))
        ctx.v = v[:, -1]
        return vg.Tensor(w[-1])

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * vg.Tensor(np.outer(ctx.v, ctx.v))


@wrong(np.array([0.2, 0.5, 0.3]), np.array([0.4, 0.4, 0.2]), by=("gradients",))
def divergence(p, q):
    """Both are made to sum to one; the second's sum is a constant."""
    p = p / p.sum()
    q = q / q.sum().detach()
    return (p * (vg.log(p) - vg.log(q))).sum()


@wrong(V, by=("every subset of arguments that require grad", "gradients", "options"), scale=V + 2.0)
class KeywordTensor(Function):
    """A tensor passed by keyword is not constant, but gets no gradient."""

    @staticmethod
    def forward(ctx, x, scale=None):
        ctx.save_for_backward(x)
        ctx.scale = raw(scale)
        return x * scale

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.scale, None


@wrong(M, by=("nothing is left of a call",))
def make_observer():
    seen = {}

    def observed(x):
        """Remembers the last thousand results, to draw them."""
        y = vg.tanh(x)
        seen[len(seen) % 1000] = y
        return y * 1.0

    return observed
