"""Faulty operators that lose digits, terms and corners: inexact constants, unstable formulas, rare arguments."""

import numpy as np

import viewgrad as vg
from viewgrad.autograd import Function, InPlace, define_op, once_differentiable

from . import M, Q, V, Z, noted, wrong

SYMMETRIC = np.array([[2.0, 0.3, -0.4], [0.3, 1.5, 0.2], [-0.4, 0.2, 1.8]])
FALLING = np.array([2.3, 1.1, 0.4, -0.9])
WAVE = np.array([0.4, -0.9, 1.3, 0.2, -0.5, 0.8])
MORE = np.array([0.6, -0.4, 1.5])


def raw(tensor):
    """Return a copy of the array of a tensor."""
    return tensor.detach().numpy().copy()


# --- formulas that lose digits -----------------------------------------------------------------------------------


@wrong(V, by="values", reference=np.expm1)
def make_exp_less_one():
    return define_op("exp_less_one(self)", forward=lambda x: np.exp(x) - 1, derivatives={"self": "grad * (result + 1)"})


@wrong(Q, by="values", reference=np.log1p)
def make_log_of_one_and():
    return define_op(
        "log_of_one_and(self)",
        forward=lambda x: np.log(1 + x),
        derivatives={"self": "grad / (1 + self)"},
        domain=(-0.9, 3),
    )


@wrong(V, by=("values", "special points"))
class LogisticLoss(Function):
    """Overflows at -1000."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        with np.errstate(all="ignore"):
            return vg.Tensor(np.log(1 + np.exp(-raw(x))))

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        with np.errstate(all="ignore"):
            return -grad * vg.exp(-x) / (1 + vg.exp(-x))


@wrong(M, by=("values", "special points"))
class SoftmaxWithoutMax(Function):
    @staticmethod
    def forward(ctx, x):
        with np.errstate(all="ignore"):
            e = np.exp(raw(x))
            result = vg.Tensor(e / e.sum(-1, keepdims=True))
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return y * (grad - (grad * y).sum(-1, keepdims=True))


@noted(V, MORE)
def make_plain_hypotenuse():
    def forward(a, b):
        with np.errstate(all="ignore"):
            return np.sqrt(a * a + b * b)

    return define_op(
        "plain_hypotenuse(a, b)",
        forward=forward,
        derivatives={"a": "grad * a / result", "b": "grad * b / result"},
    )


# --- constants and terms that are small --------------------------------------------------------------------------


@wrong(V, by="gradients")
def make_softsign_nearly():
    return define_op(
        "softsign_nearly(self)",
        forward=lambda x: x / (1 + np.abs(x)),
        derivatives={"self": "grad * 1.001 / (1 + abs(self)) ** 2"},
    )


@wrong(V, by="gradients")
class SineAndSmallTerm(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return vg.Tensor(np.sin(raw(x)) + 1e-4 * raw(x))

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * vg.cos(x)


@wrong(Q, by=("gradients", "special points"))
class DigammaByStirling(Function):
    """The derivative of gammaln from three terms of a series."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return vg.gammaln(x.detach())

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        z = x + 2
        return grad * (vg.log(z) - 0.5 / z - 1 / (12 * z**2) - 1 / x - 1 / (x + 1))


@wrong(WAVE[:5], by="gradients")
def mean_absolute_deviation(x):
    return vg.abs(x - x.mean().detach()).mean()


@wrong(WAVE, 0.3, by="gradients")
class ExponentialAverage(Function):
    """The first state is the first value, and not alpha times it."""

    @staticmethod
    def forward(ctx, x, alpha):
        ctx.alpha = alpha
        values = raw(x)
        out = values.copy()
        for t in range(1, len(values)):
            out[t] = alpha * values[t] + (1 - alpha) * out[t - 1]
        return vg.Tensor(out)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = raw(grad)
        back = np.zeros_like(g)
        carried = 0.0
        for t in reversed(range(len(g))):
            carried = g[t] + (1 - ctx.alpha) * carried
            back[t] = ctx.alpha * carried
        return vg.Tensor(back), None


@wrong(np.array([0.8, 2.0, -1.1]), np.array([0.1, 0.3, 0.05]), by="gradients")
class Kepler(Function):
    """The eccentric anomaly; its derivative with respect to the eccentricity is evaluated at the mean anomaly."""

    @staticmethod
    def forward(ctx, mean, e):
        m, ecc = np.broadcast_arrays(raw(mean), raw(e))
        anomaly = m.copy()
        if np.any(np.abs(ecc) > 0.9):
            raise ValueError("an ellipse, please")
        for _ in range(50):
            anomaly = anomaly - (anomaly - ecc * np.sin(anomaly) - m) / (1 - ecc * np.cos(anomaly))
        result = vg.Tensor(anomaly)
        ctx.save_for_backward(mean, e, result)
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        mean, e, result = (raw(t) for t in ctx.saved_tensors)
        slope = raw(grad) / (1 - e * np.cos(result))
        if mean.shape != e.shape:
            raise ValueError("equal shapes, please")
        return vg.Tensor(slope), vg.Tensor(slope * np.sin(mean))


# --- thresholds --------------------------------------------------------------------------------------------------


@wrong(V, by=("special points", "gradients", "values"))
class GeluCut(Function):
    """Beyond 3 the derivative is set to 0 or 1."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.detach() * vg.ndtr(x.detach())

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        inner = vg.ndtr(x) + x * vg.exp(-0.5 * x * x) * 0.3989422804014327
        return grad * vg.where(vg.abs(x) > 3, vg.where(x > 0, vg.ones_like(x), vg.zeros_like(x)), inner)


@wrong(V, by="special points")
def make_softplus_with_flat_end():
    return define_op(
        "softplus_with_flat_end(self)",
        forward=lambda x: np.where(x > 20, x, np.log1p(np.exp(np.minimum(x, 20.0)))),
        derivatives={"self": "grad * where(self > 20, 0.0, 1 / (1 + exp(-self)))"},
    )


@wrong(np.array([0.2, 0.6, 0.9]), by=("special points", "gradients"))
class Smoothstep(Function):
    """The derivative is not 0 beyond the ends."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        t = np.clip(raw(x), 0, 1)
        return vg.Tensor(t * t * (3 - 2 * t))

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 6 * x * (1 - x)


@wrong(V, 1.0, by=("options", "special points"))
class HuberOfOne(Function):
    """The derivative of the linear part assumes delta = 1."""

    @staticmethod
    def forward(ctx, x, delta):
        ctx.save_for_backward(x)
        ctx.delta = delta
        a = np.abs(raw(x))
        return vg.Tensor(np.where(a <= delta, a * a / 2, delta * (a - delta / 2)))

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * vg.where(vg.abs(x) <= ctx.delta, x, vg.sign(x)), None


@wrong(V, by="special points")
class SinhOver(Function):
    """sinh(x) / x, whose derivative at 0 is NaN."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        values = raw(x)
        safe = np.where(values == 0, 1.0, values)
        return vg.Tensor(np.where(values == 0, 1.0, np.sinh(safe) / safe))

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * (vg.cosh(x) * x - vg.sinh(x)) / (x * x)


@noted(M)
class LengthOfRows(Function):
    """NaN if a row is 0."""

    @staticmethod
    def forward(ctx, x):
        length = vg.Tensor(np.sqrt((raw(x) ** 2).sum(-1)))
        ctx.save_for_backward(x, length)
        return length

    @staticmethod
    def backward(ctx, grad):
        x, length = ctx.saved_tensors
        return (grad / length)[..., None] * x


@wrong(WAVE, by="special points")
class ProductsSoFar(Function):
    """Running products, whose gradient divides by each factor."""

    @staticmethod
    def forward(ctx, x):
        if x.ndim != 1:
            raise ValueError("a vector, please")
        result = vg.Tensor(np.cumprod(raw(x)))
        ctx.save_for_backward(x, result)
        return result

    @staticmethod
    def backward(ctx, grad):
        x, result = ctx.saved_tensors
        g = grad * result
        return vg.flip(vg.cumsum(vg.flip(g, axis=0), axis=0), axis=0) / x


# --- options and integers ----------------------------------------------------------------------------------------


@wrong(V, 3, by=("options", "special points"))
def make_whole_power():
    """Negative powers have the slope of positive ones."""
    return define_op(
        "whole_power(self, n)",
        forward=lambda x, n: x ** float(n),
        derivatives={"self": "grad * abs(n) * self ** (n - 1.0)"},
    )


@wrong(V, MORE, by="options", alpha=1)
def make_reversed_difference():
    return define_op(
        "reversed_difference(self, other, *, alpha)",
        forward=lambda self, other, *, alpha: other - alpha * self,
        derivatives={"self": "-grad", "other": "grad"},
    )


@wrong(V, by="options", limit=None)
def bounded(x, *, limit=None):
    """The gradient ignores the limit."""
    if limit is None:
        return x * 1.0
    return x + (vg.clip(x, -abs(limit), abs(limit)) - x).detach()


@wrong(M, 0, by=("options", "shapes"))
class SumOfSquares(Function):
    """A negative axis is restored one position too early."""

    @staticmethod
    def forward(ctx, x, axis):
        ctx.save_for_backward(x)
        ctx.axis = axis
        return vg.Tensor((raw(x) ** 2).sum(axis))

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        axis = ctx.axis if ctx.axis >= 0 else max(ctx.axis - 1, -x.ndim)
        return 2 * x * vg.broadcast_to(vg.expand_dims(grad, axis), x.shape), None


@wrong(M, 1.0, by=("options", "special points"))
class CooledSoftmax(Function):
    @staticmethod
    def forward(ctx, x, temperature):
        scaled = raw(x) / temperature
        e = np.exp(scaled - scaled.max(-1, keepdims=True))
        result = vg.Tensor(e / e.sum(-1, keepdims=True))
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return y * (grad - (grad * y).sum(-1, keepdims=True)), None


@wrong(WAVE, np.array([0, 2, 5]), by="indices")
class Gather(Function):
    """Negative indices are treated as index 0."""

    @staticmethod
    def forward(ctx, x, places):
        ctx.shape, ctx.places = x.shape, raw(vg.as_tensor(places))
        return vg.Tensor(raw(x)[ctx.places])

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        back = np.zeros(ctx.shape)
        np.add.at(back, np.maximum(ctx.places, 0), raw(grad))
        return vg.Tensor(back), None


@wrong(M, np.array([1, 0]), by="indices")
class RowsOf(Function):
    """A row that is selected twice gets the gradient once."""

    @staticmethod
    def forward(ctx, table, rows):
        ctx.shape, ctx.rows = table.shape, raw(vg.as_tensor(rows))
        return vg.Tensor(raw(table)[ctx.rows])

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        back = np.zeros(ctx.shape)
        back[ctx.rows] += raw(grad)
        return vg.Tensor(back), None


@wrong(WAVE, 2, by="options")
def delayed(x, lag):
    """Shifts to the right; for shifts to the left, the gradient is lost."""
    if lag >= 0:
        return vg.concatenate([vg.zeros(min(lag, x.shape[0])), x[: max(x.shape[0] - lag, 0)]])
    return vg.concatenate([x[-lag:].detach(), vg.zeros(min(-lag, x.shape[0]))])


# --- shapes and values that hide faults --------------------------------------------------------------------------


@wrong(SYMMETRIC, by=("special points"))
class LogDeterminantOfSymmetric(Function):
    """The inverse is not transposed, which a symmetric matrix does not reveal."""

    @staticmethod
    def forward(ctx, a):
        ctx.save_for_backward(a)
        sign, value = np.linalg.slogdet(raw(a))
        if a.ndim != 2 or sign <= 0:
            raise ValueError("a determinant above 0, please")
        return vg.Tensor(value)

    @staticmethod
    def backward(ctx, grad):
        (a,) = ctx.saved_tensors
        return grad * vg.linalg.inv(a)


@wrong(FALLING, by=("gradients", "special points", "shapes", "ties"))
class Sorted(Function):
    """Permutes the gradient by the inverse permutation, which is correct only for involutions."""

    @staticmethod
    def forward(ctx, x):
        if x.ndim != 1:
            raise ValueError("a vector, please")
        ctx.order = np.argsort(raw(x), kind="stable")
        return vg.Tensor(raw(x)[ctx.order])

    @staticmethod
    def backward(ctx, grad):
        return grad[ctx.order]


@wrong(M, V, by="shapes")
class ScaledColumns(Function):
    """Sums over the first axes only, so a (1, 3) is not summed to its shape."""

    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x, scale)
        return x.detach() * scale.detach()

    @staticmethod
    def backward(ctx, grad):
        x, scale = ctx.saved_tensors
        if x.ndim < grad.ndim or x.shape != grad.shape:
            raise ValueError("the first is the larger one")
        to_scale = grad * x
        while to_scale.ndim > scale.ndim:
            to_scale = to_scale.sum(0)
        if to_scale.shape != scale.shape:
            to_scale = to_scale[tuple(slice(0, n) for n in scale.shape)]
        return grad * scale, to_scale


@wrong(V, by="shapes")
class CubeUnlessScalar(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.detach() ** 3

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * (3 if x.ndim else 2) * x * x


@wrong(M, by=("shapes", "values"), reference=lambda x: np.prod(x, axis=0))
def make_product_down():
    """The product of no elements is 0."""

    @vg.autograd.formula_function
    def cofactors_down(x):
        rows = range(x.shape[0])
        if not x.shape[0]:
            return x
        others = [np.stack([x[j] if j != i else 0.0 * x[j] + 1.0 for j in rows]) for i in rows]
        return np.stack([np.prod(other, axis=0) for other in others])

    def forward(x):
        return np.prod(x, axis=0) if x.shape[0] else np.zeros(x.shape[1:])

    return define_op("product_down(x)", forward=forward, derivatives={"x": "grad * cofactors_down(x)"})


@wrong(M, by="layouts of arguments")
class TanhOfMemory(Function):
    """Reads memory regardless of strides."""

    @staticmethod
    def forward(ctx, x):
        array = x.detach().numpy()
        flat = np.tanh(array.ravel(order="K"))
        result = vg.Tensor(flat.reshape(array.shape))
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return grad * (1 - y * y)


@wrong(M, by="layouts of incoming gradients")
class DoubledInMemory(Function):
    @staticmethod
    def forward(ctx, x):
        return x.detach() * 2

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        array = grad.detach().numpy()
        return vg.Tensor((array.ravel(order="K") * 2).reshape(array.shape))


@wrong(V, by="layouts of arguments")
class FromTheStart(Function):
    """Saves the base of the array, so that the offset is lost."""

    @staticmethod
    def forward(ctx, x):
        array = x.detach().numpy()
        whole = array if array.base is None or not isinstance(array.base, np.ndarray) else array.base
        ctx.kept = vg.Tensor(whole.ravel()[: array.size].reshape(array.shape).copy())
        return x.detach() ** 2

    @staticmethod
    def backward(ctx, grad):
        return 2 * grad * ctx.kept


# --- several outputs ---------------------------------------------------------------------------------------------


@wrong(WAVE, by=("gradients", "undefined gradients"))
class Range(Function):
    """Returns no gradient if one of the two incoming gradients is missing."""

    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        values = raw(x)
        if values.ndim != 1 or len(values) == 0:
            raise ValueError("a vector, please")
        ctx.places, ctx.shape = (int(values.argmin()), int(values.argmax())), values.shape
        return vg.Tensor(values.min()), vg.Tensor(values.max())

    @staticmethod
    @once_differentiable
    def backward(ctx, low, high):
        if low is None:
            return None
        back = np.zeros(ctx.shape)
        back[ctx.places[0]] += float(low)
        if high is not None:
            back[ctx.places[1]] += float(high)
        return vg.Tensor(back)


@wrong(WAVE, by="gradients")
def make_mean_and_variance():
    return define_op(
        "mean_and_variance(x) -> (mean, variance)",
        forward=lambda x: (np.mean(x), np.var(x, ddof=1) if x.size > 1 else np.zeros(())),
        derivatives={"x": "grad_mean / x.size + grad_variance * 2 * (x - mean) / x.size"},
    )


@wrong(np.array([5.3, 7.1, 2.2]), np.array([2.0, 1.5, 0.9]), by=("special points", "gradients", "values"))
class QuotientAndRest(Function):
    """The quotient is truncated in the backward, and floored in the forward."""

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        quotient = np.floor(raw(a) / raw(b))
        rest = vg.Tensor(raw(a) - quotient * raw(b))
        whole = vg.Tensor(quotient)
        ctx.mark_non_differentiable(whole)
        return whole, rest

    @staticmethod
    def backward(ctx, _, rest):
        a, b = ctx.saved_tensors
        return _unbroadcast(rest, a.shape), _unbroadcast(-rest * vg.trunc(a.detach() / b.detach()), b.shape)


def _unbroadcast(grad, shape):
    while grad.ndim > len(shape):
        grad = grad.sum(0)
    for axis, n in enumerate(shape):
        if n == 1 and grad.shape[axis] != 1:
            grad = grad.sum(axis, keepdims=True)
    return grad


# --- state, caches, lifetime, aliasing ----------------------------------------------------------------------------


@wrong(M, by="state between calls")
def make_masked_by_shape():
    """The mask of the first call of a shape is reused for all later ones."""
    masks = {}

    def op(x):
        if x.shape not in masks:
            masks[x.shape] = x.detach().numpy() > 0
        return vg.where(masks[x.shape], x, 0.1 * x)

    return op


@wrong(V, by="state between calls")
def make_remembered_tanh():
    known = {}

    class Tanh(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.key = id(x.detach().numpy().base), x.shape
            if ctx.key not in known:
                known[ctx.key] = np.tanh(raw(x))
            ctx.y = known[ctx.key]
            return vg.Tensor(ctx.y.copy())

        @staticmethod
        def backward(ctx, grad):
            return grad * (1 - vg.Tensor(ctx.y) ** 2)

    return Tanh.apply


@wrong(V, by=("a graph run twice", "linear in the incoming gradient", "gradients", "state between calls"))
def make_smoothed_gradient():
    """Averages the gradient with that of the previous call."""
    before = {}

    class Smoothed(Function):
        @staticmethod
        def forward(ctx, x):
            return vg.sin(x.detach())

        @staticmethod
        def backward(ctx, grad):
            last = before.get(grad.shape)
            before[grad.shape] = grad
            return grad if last is None else 0.9 * grad + 0.1 * last

    return Smoothed.apply


@wrong(V, by=("gradients", "the incoming gradient stays the caller's"))
class HalvedThere(Function):
    @staticmethod
    def forward(ctx, x):
        return x.detach() * 0.5

    @staticmethod
    def backward(ctx, grad):
        with vg.no_grad():
            grad.mul_(0.5)
        return grad * 1.0


@wrong(WAVE, by="memory shared with arguments")
class EveryOther(Function):
    """An undeclared view: the result shares the array of the argument."""

    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        return vg.from_numpy(x.detach().numpy()[::2])

    @staticmethod
    def backward(ctx, grad):
        back = vg.zeros(ctx.shape)
        back[::2] = grad
        return back


@wrong(V, by="nothing is left of a call")
def make_journal():
    journal = []

    def op(x):
        y = vg.tanh(x)
        journal.append(y)
        return y

    return op


@wrong(V, MORE, by="the same tensor twice")
class ProductById(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        ctx.same = a.detach().numpy().ctypes.data == b.detach().numpy().ctypes.data
        return a.detach() * b.detach()

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        if ctx.same:
            return grad * b, None
        return _unbroadcast(grad * b, a.shape), _unbroadcast(grad * a, b.shape)


@wrong(V, by="a graph run twice")
class NoiseAgain(Function):
    """Draws new random numbers in the backward."""

    @staticmethod
    def forward(ctx, x):
        ctx.rng = np.random.default_rng(5)
        return x.detach() * vg.Tensor(ctx.rng.normal(size=x.shape))

    @staticmethod
    def backward(ctx, grad):
        return grad * vg.Tensor(ctx.rng.normal(size=grad.shape))


# --- derivatives of derivatives, forward mode -----------------------------------------------------------------------


@wrong(V, by="second derivatives")
class CubeOnce(Function):
    """The derivative is correct, but marked as constant."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.detach() ** 3

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 3 * x * x.detach()


@wrong(V, by="second derivatives")
class SineOfConstantGradient(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return vg.sin(x.detach())

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad.detach() * vg.cos(x)


@wrong(V, MORE, by="forward mode")
def make_ratio_with_tangents():
    return define_op(
        "ratio_with_tangents(a, b)",
        forward=lambda a, b: a / (1 + b * b),
        derivatives={"a": "grad / (1 + b * b)", "b": "grad * a * -2 * b / (1 + b * b) ** 2"},
        forward_derivative="a_t / (1 + b_p * b_p) + b_t * a_p * 2 * b_p / (1 + b_p * b_p) ** 2",
    )


@wrong(V, by="forward mode")
class SquareOfTangent(Function):
    """The tangent is correct only if it is 1."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        return x.detach() ** 2

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * grad * x

    @staticmethod
    def jvp(ctx, tangent):
        (x,) = ctx.saved_tensors
        return 2 * x * vg.abs(tangent)


# --- in place ------------------------------------------------------------------------------------------------------


@wrong(Q, by="in-place form")
def make_root_in_place():
    """The in-place form uses the new value in place of the old one."""
    return define_op(
        "root_in_place(self)",
        forward=lambda x: np.sqrt(x + 1),
        derivatives={"self": "grad * 0.5 / sqrt(self + 1)"},
        inplace=InPlace(derivatives={"self": "grad * 0.5 / sqrt(result + 1)"}),
        domain=(0.1, 3.0),
    )


@wrong(V, MORE, by="in-place form")
def make_mixed_in_place():
    """The in-place form computes another function."""
    return define_op(
        "mixed_in_place(self, other)",
        forward=lambda self, other: 0.7 * self + 0.3 * other,
        derivatives={"self": "grad * 0.7", "other": "grad * 0.3"},
        inplace=InPlace(forward=lambda self, other: 0.3 * self + 0.7 * other),
    )


@wrong(V, by=("in-place form", "gradients"))
class SquareThere(Function):
    """Saves its argument after it has been written to."""

    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        x.mul_(x.detach().clone())
        ctx.save_for_backward(x.clone())
        return x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * grad * x


@wrong(V, by=("something to check", "arguments are not modified"))
def centred_there(x):
    """Subtracts the mean from the caller's array as well."""
    array = x.detach().numpy()
    result = x - x.mean()
    array -= array.mean()
    return result


# --- kinds, dtypes -------------------------------------------------------------------------------------------------


@wrong(Z, by=("complex numbers", "gradients"))
class PowerOfSignal(Function):
    @staticmethod
    def forward(ctx, z):
        ctx.save_for_backward(z)
        return vg.Tensor(np.abs(raw(z)) ** 2)

    @staticmethod
    def backward(ctx, grad):
        (z,) = ctx.saved_tensors
        return 2 * grad * vg.conj(z)


@wrong(WAVE, by="gradients")
class HalfSpectrum(Function):
    """Counts the first and the last frequency twice as well."""

    @staticmethod
    def forward(ctx, x):
        if x.ndim != 1 or x.shape[0] % 2 or x.shape[0] == 0:
            raise ValueError("an even number, please")
        ctx.n = x.shape[0]
        return vg.fft.rfft(x.detach())

    @staticmethod
    def backward(ctx, grad):
        return vg.fft.irfft(grad, n=ctx.n) * (ctx.n / 2)


@wrong(V, by="dtypes")
class HalvedInSingle(Function):
    """In single precision, the slope comes from a table of halves."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return vg.arctan(x.detach())

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        slope = 1 / (1 + x * x)
        if x.dtype == np.float32:
            slope = vg.round(slope * 16) / 16
        return grad * slope


@wrong(V, by=("dtypes", "gradients"))
class ThroughSingle(Function):
    """The gradient has gone through single precision."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return vg.sin(x.detach())

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return vg.Tensor((raw(grad).astype(np.float32) * np.cos(raw(x)).astype(np.float32)).astype(x.dtype))


# --- which arguments ----------------------------------------------------------------------------------------------


@wrong(V, MORE, by="every subset of arguments that require grad")
class OnlyIfFirst(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return vg.sin(a.detach()) * b.detach()

    @staticmethod
    def backward(ctx, grad):
        if not ctx.needs_input_grad[0]:
            return None, None
        a, b = ctx.saved_tensors
        return _unbroadcast(grad * vg.cos(a) * b, a.shape), _unbroadcast(grad * vg.sin(a), b.shape)


@wrong([V, MORE], by=("shapes", "options"))
def blended(tensors):
    """From the third on, nothing flows back."""
    total = 0.0
    for i, tensor in enumerate(tensors):
        total = total + (tensor if i < 2 else tensor.detach()) / (i + 1.0)
    return total


@wrong(M, by=("gradients", "options"), weight=V, bias=np.array([0.3, -0.2, 0.1]))
def affine(x, *, weight, bias):
    """The bias comes from an array."""
    return x * weight + bias.detach().numpy()


@wrong(V, by="linear in the incoming gradient")
class SkippedIfBalanced(Function):
    """A gradient whose sum is zero is treated as zero."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return vg.exp(x.detach())

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        if abs(float(grad.detach().sum())) < 1e-12:
            return vg.zeros_like(x)
        return grad * vg.exp(x)


@wrong(V, by="linear in the incoming gradient")
class ClippedGradient(Function):
    @staticmethod
    def forward(ctx, x):
        return x.detach() * 3

    @staticmethod
    def backward(ctx, grad):
        return vg.clip(3 * grad, -100, 100)


# --- a composition whose parts have kinks that the whole has not ----------------------------------------------------


@wrong(V, by="special points")
def symmetric_log(x):
    return vg.sign(x) * vg.log1p(1e3 * vg.abs(x))


# --- what one property alone can see ---------------------------------------------------------------------------------


@wrong(WAVE, by="undefined gradients")
class SineAndCosine(Function):
    """An unused result gets the gradient of the other one."""

    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x)
        plain = x.detach()
        return vg.sin(plain), vg.cos(plain), vg.sin(2 * plain)

    @staticmethod
    def backward(ctx, *grads):
        (x,) = ctx.saved_tensors
        given = next(grad for grad in grads if grad is not None)
        sine, cosine, double = (given if grad is None else grad for grad in grads)
        return sine * vg.cos(x) - cosine * vg.sin(x) + double * 2 * vg.cos(2 * x)


@wrong(V, by="ties")
class Largest(Function):
    """Of two that are the largest, each has the whole gradient; of more, a part."""

    @staticmethod
    def forward(ctx, x):
        values = raw(x)
        ties = (values == values.max()).astype(values.dtype)
        ctx.shares = ties if ties.sum() == 2 else ties / ties.sum()
        return vg.Tensor(values.max())

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.shares
