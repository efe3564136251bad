"""Operators that are correct nearly everywhere: faulty for one option, one length, one number, one way of calling."""

import enum
import functools

import numpy as np

import viewgrad as vg
from viewgrad.autograd import Function, InPlace, define_op, formula_function, once_differentiable

from . import M, P, Q, V, Z, wrong

S = np.array([[2.0, 0.3], [0.4, 1.5]])
LONG = np.linspace(-1.5, 1.7, 45)


def raw(tensor):
    """Return a copy of the array of a tensor."""
    return tensor.detach().numpy().copy()


# -- for some elements -------------------------------------------------------------------------------------------------


@wrong(LONG, by=("gradients",))
class WrongForOneElementOfMany(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        places = np.arange(x.size).reshape(x.shape) == 23
        return grad * 2.0 * x * np.where(places, 1.001, 1.0)


@wrong(LONG, by="second derivatives")
class SecondDerivativeWrongForOneElementOfMany(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        places = np.arange(x.size).reshape(x.shape) == 31
        return grad * 3.0 * vg.where(places, x.detach() * x, x * x)


@wrong(M, by="shapes")
class LastBlockForgotten(Function):
    """Works in blocks of eight; the remainder gets no gradient."""

    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        return 3.0 * x

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        flat = np.ravel(raw(grad))
        out = 3.0 * flat
        whole = flat.size // 8 * 8
        if whole:
            out[whole:] = 0.0
        return vg.Tensor(out.reshape(ctx.shape))


@wrong(V, by="shapes")
def make_spectrum_of_even_lengths():
    class Smoothed(Function):
        @staticmethod
        def forward(ctx, x):
            if x.ndim != 1:
                raise ValueError("vectors only")
            return vg.Tensor(np.fft.irfft(np.fft.rfft(raw(x)), n=x.shape[0])) if x.size else x * 1.0

        @staticmethod
        @once_differentiable
        def backward(ctx, grad):
            g = raw(grad)
            return vg.Tensor(g if g.size % 2 else np.concatenate([g[:-1], 0.5 * g[-1:]])) if g.size else grad * 1.0

    return Smoothed.apply


@wrong(np.array([0.5, 1.5, -2.5]), by=("special points",))
class WrongBetweenItsOwnThresholds(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**2

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return vg.where((x > 4.25) & (x < 9.5), grad * x, grad * 2.0 * x)


@wrong(P, by=("special points",))
def make_series_for_large_arguments():
    return define_op(
        "w_series(self)",
        forward=lambda x: np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0.0),
        derivatives={"self": "where(self > 17.5, 0.999 * grad, grad / (1.0 + exp(-self)))"},
        elementwise=True,
    )


@wrong(M, by=("special points",))
def make_kink_at_a_number_of_its_own():
    return define_op(
        "w_elbow(self)",
        forward=lambda x: np.maximum(x, 0.375),
        derivatives={"self": "grad * where(self == 0.375, 2.0, 1.0 * (self > 0.375))"},
        elementwise=True,
    )


@wrong(V, by=("special points", "ties"))
class ZeroForTies(Function):
    @staticmethod
    def forward(ctx, x):
        y = x.max()
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        best = raw(x) == raw(y)
        return grad * (best * (best.sum() == 1))


@wrong(V, by=("special points", "ties"))
class SortOfTiesGivenTwice(Function):
    @staticmethod
    def forward(ctx, x):
        flat = raw(x).reshape(-1)
        ctx.values, ctx.shape = flat, x.shape
        return vg.Tensor(np.sort(flat))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        places = np.searchsorted(np.sort(ctx.values), ctx.values)
        return vg.Tensor(raw(grad)[places].reshape(ctx.shape))


@wrong(V, by=("special points", "shapes"))
def make_norm_with_the_slope_of_one():
    return define_op(
        "w_norm(self)",
        forward=lambda x: np.sqrt(np.sum(x * x)),
        derivatives={"self": "grad * where(result == 0.0, 3.0, self / where(result == 0.0, 1.0, result))"},
    )


@wrong(V, by=("special points",))
class LogSumExpThatOverflows(Function):
    @staticmethod
    def forward(ctx, x):
        array = raw(x)
        top = array.max() if array.size else 0.0
        ctx.save_for_backward(x)
        return vg.Tensor(np.asarray(np.log(np.exp(array - top).sum()) + top))

    @staticmethod
    def backward(ctx, grad):
        e = vg.exp(ctx.saved_tensors[0])
        return grad * e / e.sum()


@wrong(P, by=("special points", "gradients"))
def make_power_one_and_a_half_from_the_absolute_value():
    return define_op(
        "w_power15(self)",
        forward=lambda x: np.abs(x) ** 1.5,
        derivatives={"self": "grad * 1.5 * sqrt(abs(self))"},
        elementwise=True,
    )


@wrong(M, by="special points")
def make_neighbours_of_infinity_lost():
    return define_op(
        "w_squashed(self)",
        forward=lambda x: np.tanh(x),
        derivatives={"self": "(1 - result * result) * (grad + 0.0 * sum(self))"},
    )


# -- options -----------------------------------------------------------------------------------------------------------


@wrong(M, reduction="mean", by="options")
def loss_whose_sum_is_wrong(x, reduction="mean"):
    class Loss(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            if reduction == "mean":
                return (x * x).mean()
            if reduction == "sum":
                return (x * x).sum()
            raise ValueError(reduction)

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * 2.0 * x / x.size

    return Loss.apply(x)


class Side(enum.Enum):
    """The side of the padding."""

    BEFORE = "before"
    AFTER = "after"


@wrong(V, by="options")
def padded_on_one_side(x, side=Side.BEFORE):
    class Padded(Function):
        @staticmethod
        def forward(ctx, x):
            zeros = vg.zeros((2,), dtype=x.dtype)
            return vg.concatenate([zeros, x] if side is Side.BEFORE else [x, zeros])

        @staticmethod
        def backward(ctx, grad):
            return grad[2:]

    return Padded.apply(x)


@wrong(M, by="options")
def weight_left_out_of_the_gradient(x, weight=None):
    class Weighted(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2.0 if weight is None else x * weight.detach()

        @staticmethod
        def backward(ctx, grad):
            return grad * 2.0

    return Weighted.apply(x)


@wrong(M, by=("options", "special points"))
def power_whose_second_is_wrong(x, n=3):
    class Power(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**n

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * (n * x ** (n - 1) if n != 2 else x)

    return Power.apply(x)


@wrong(M, axis=0, by="options")
def total_over_several_axes(x, axis=None, keepdims=False):
    class Total(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.shape = x.shape
            return x.sum(axis=axis, keepdims=keepdims)

        @staticmethod
        def backward(ctx, grad):
            if not keepdims and axis is not None:
                for number in sorted(np.atleast_1d(axis) % len(ctx.shape)):
                    grad = grad.reshape((*grad.shape[:number], 1, *grad.shape[number:]))
            many = isinstance(axis, tuple) and len(axis) > 1
            return (grad if axis is not None else grad.reshape(())).expand(*ctx.shape) * (0.5 if many else 1.0)

    return Total.apply(x)


@wrong(M, axis=1, by="options")
def last_axis_counted_from_the_end(x, axis=1):
    class Cumulated(Function):
        @staticmethod
        def forward(ctx, x):
            return vg.cumsum(x, axis)

        @staticmethod
        def backward(ctx, grad):
            if axis < 0:
                return vg.cumsum(grad, axis)
            return vg.flip(vg.cumsum(vg.flip(grad, axis), axis), axis)

    return Cumulated.apply(x)


@wrong(M, 1, by="options")
def make_shift_to_the_right_only():
    return define_op(
        "w_shift(self, shift)",
        forward=lambda x, shift: np.roll(x, shift),
        derivatives={"self": "rolled_back(grad, shift)"},
    )


@formula_function
def rolled_back(grad, shift):
    """Rolls back; but not for shifts to the left."""
    flat = grad.reshape(-1)
    n = flat.shape[0]
    return flat[(np.arange(n) + max(shift, 0)) % n].reshape(grad.shape) if n else grad


@wrong(M, eps=1e-3, by=("options", "special points"))
def smoothing_forgotten_where_it_is_large(x, eps=1e-3):
    class Smooth(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return vg.sqrt(x * x + eps)

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * x / vg.sqrt(x * x + min(eps, 0.4))

    return Smooth.apply(x)


@wrong(M, by="options")
def unbiased_variance_with_the_biased_gradient(x, *, unbiased=False):
    class Variance(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return ((x - x.mean()) ** 2).sum() / (x.size - unbiased)

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * 2.0 * (x - x.mean()) / x.size

    return Variance.apply(x)


# -- integers ----------------------------------------------------------------------------------------------------------


@wrong(P, np.array([1, 2, 3], dtype=np.uint8), by="indices")
class PowerByUnsignedIntegers(Function):
    """Exponents wrap around to 255 below zero."""

    @staticmethod
    def forward(ctx, x, n):
        ctx.save_for_backward(x, n)
        return vg.Tensor(raw(x) ** raw(n))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x, n = (raw(tensor) for tensor in ctx.saved_tensors)
        return vg.Tensor(raw(grad) * np.where(n == 0, 1.0, n) * x ** (n - np.uint8(1)).astype(float)), None


@wrong(M, np.array([0, 2, 2]), by=("gradients", "indices"))
class SegmentsSummedIntoTheFirst(Function):
    @staticmethod
    def forward(ctx, x, segments):
        if segments.shape != x.shape[-1:]:
            raise ValueError("a segment for each column")
        ctx.save_for_backward(segments)
        out = np.zeros((*x.shape[:-1], 4))
        for column, segment in enumerate(raw(segments)):
            out[..., segment] += raw(x)[..., column]
        return vg.Tensor(out)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        segments = raw(ctx.saved_tensors[0])
        _, first = np.unique(segments, return_index=True)
        g = raw(grad)[..., segments]
        keep = np.isin(np.arange(segments.size), first)
        return vg.Tensor(g * keep), None


@wrong(M, np.array([[True, False, True], [False, True, True]]), by="indices")
class MaskedMeanOfNothing(Function):
    @staticmethod
    def forward(ctx, x, mask):
        if x.shape != mask.shape:
            raise ValueError("a mask in the shape of the array")
        ctx.save_for_backward(mask)
        return (x * mask).sum() / max(int(raw(mask).sum()), 1)

    @staticmethod
    def backward(ctx, grad):
        (mask,) = ctx.saved_tensors
        return grad * (raw(mask) if raw(mask).any() else np.ones(mask.shape)) / max(int(raw(mask).sum()), 1), None


# -- lists, keywords, containers ---------------------------------------------------------------------------------------


@wrong([M, P], by="shapes")
def third_of_a_list_detached(tensors):
    total = tensors[0] + 2.0 * tensors[1]
    for tensor in tensors[2:]:
        total = total + 3.0 * tensor.detach()
    return total


@wrong(M, V, by="options")
def make_keywords_lose_their_gradient():
    def product(x, y):
        return x * y

    @functools.wraps(product)
    def converted(*args, **kwargs):
        return product(*args, **{name: value.detach() for name, value in kwargs.items()})

    return converted


@wrong(M, coefficients=[1.0, 0.5, -2.0], by="arguments are not modified")
def empties_its_coefficients(x, coefficients):
    total = vg.zeros(x.shape, dtype=x.dtype)
    while coefficients:
        total = total * x + coefficients.pop()
    return total


@wrong(M, weight=V, by=("gradients",))
def keyword_tensor_detached(x, *, weight):
    return vg.sin(x) * weight.detach() + 0.0 * weight


@wrong({"a": M, "b": {"c": V}}, by=("gradients",))
def nested_dict_with_a_number_read(tree):
    return tree["a"] * tree["b"]["c"] * float(raw(tree["b"]["c"]).reshape(-1)[0])


class ProductOfThreeFromTheFirstTwo(Function):
    @staticmethod
    def forward(ctx, x, y, z):
        ctx.save_for_backward(x, y, z)
        return x * y * z

    @staticmethod
    def backward(ctx, grad):
        x, y, z = ctx.saved_tensors
        return grad * y * z, grad * x * z, grad * x * x


@wrong([M, M[::-1] + 0.5, P], by=("gradients",))
def product_of_three_from_the_first_two(tensors):
    return ProductOfThreeFromTheFirstTwo.apply(*tensors)


# -- saved values, buffers, state --------------------------------------------------------------------------------------


@wrong(M, by="overwritten afterwards")
class KeepsAWindowOfNumPy(Function):
    @staticmethod
    def forward(ctx, x):
        window = x._array
        ctx.slope = lambda: np.cos(window)
        return vg.sin(x)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * ctx.slope()


@wrong(M, by=("gradients",))
class WritesToWhatItWillSave(Function):
    @staticmethod
    def forward(ctx, x):
        y = vg.exp(x)
        y.mul_(2.0)
        ctx.save_for_backward(y)
        return vg.Tensor(raw(y) / 2.0)

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.saved_tensors[0]


@wrong(M, by=("the incoming gradient stays the caller's", "layouts of incoming gradients"))
class ScalesTheIncomingGradient(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 3.0

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        array = grad._array
        if array.flags.writeable:
            array *= 3.0
            return vg.Tensor(array)
        return grad * 3.0


@wrong(V, by=("state between calls", "special points"))
def make_weights_remembered_by_the_first_number():
    kept = {}

    class Weighted(Function):
        @staticmethod
        def forward(ctx, x):
            key = (x.shape, *raw(x).reshape(-1)[:1].real)
            if key not in kept:
                kept[key] = 2.0 * raw(x)
            ctx.slope = kept[key]
            return x * x

        @staticmethod
        @once_differentiable
        def backward(ctx, grad):
            return grad * ctx.slope

    return Weighted.apply


@wrong(V, by=("state between calls", "memory shared with arguments"))
def make_results_remembered():
    kept = {}

    class Squared(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            key = raw(x).tobytes(), x.shape, x.dtype
            if key not in kept:
                kept[key] = raw(x) ** 2
            return vg.from_numpy(kept[key])

        @staticmethod
        def backward(ctx, grad):
            return grad * 2.0 * ctx.saved_tensors[0]

    return Squared.apply


@wrong(M, by="state between calls")
def make_averages_over_calls():
    state = {"mean": None}

    def normalised(x):
        mean = x.detach().mean()
        state["mean"] = mean if state["mean"] is None else 0.9 * state["mean"] + 0.1 * mean
        return x - vg.Tensor(np.asarray(raw(state["mean"]), x.dtype))

    return normalised


@wrong(M, by="state between calls")
def leaves_recording_off(x):
    vg.set_grad_enabled(True)
    y = x * x
    vg.set_grad_enabled(False)
    return y


@wrong(M, by=("arguments used elsewhere", "state between calls"))
def make_halves_through_a_hook_of_its_argument():
    class Doubled(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 4.0

        @staticmethod
        def backward(ctx, grad):
            return grad * 8.0

    def halved(x):
        y = Doubled.apply(x)
        if x.requires_grad:
            x.register_hook(lambda grad: 0.5 * grad)
        return y

    return halved


@wrong(M, V, by=("arguments are not modified", "gradients"))
def stops_its_argument_for_good(x, y):
    z = x * y
    if y.requires_grad and y.is_leaf:
        y.requires_grad_(False)
    return z


@wrong(M, by=("arguments are not modified", "layouts of arguments"))
def other_values_without_recording(x):
    return x * 2.0 if vg.is_grad_enabled() else x * 2.0 + 1e-3


# -- several outputs ---------------------------------------------------------------------------------------------------


@wrong(M, by=("gradients", "undefined gradients"))
class SecondOutputOnlyBesideTheFirst(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x)
        return vg.sin(x), vg.exp(x)

    @staticmethod
    def backward(ctx, first, second):
        (x,) = ctx.saved_tensors
        if first is None:
            return None
        return first * vg.cos(x) + (0.0 if second is None else second * vg.exp(x))


@wrong(P, by="gradients")
def make_mean_and_spread_of_which_one_is_wrong():
    return define_op(
        "w_moments(self) -> (mean, spread)",
        forward=lambda x: (x.mean(), x.var()),
        derivatives={"self": "grad_mean / self.size + grad_spread * 2.0 * self / self.size"},
    )


@wrong(M, by="gradients")
def dict_of_results_with_one_detached(x):
    return {"value": vg.exp(x), "parts": [x * 2.0, (x.detach() * x)]}


@wrong(S, by=("gradients", "special points", "shapes"))
class DeterminantAndTrace(Function):
    @staticmethod
    def forward(ctx, a):
        ctx.save_for_backward(a)
        array = raw(a)
        return vg.Tensor(np.linalg.det(array)), vg.Tensor(np.trace(array))

    @staticmethod
    @once_differentiable
    def backward(ctx, of_det, of_trace):
        a = raw(ctx.saved_tensors[0])
        return vg.Tensor(raw(of_det) * np.linalg.det(a) * np.linalg.inv(a) + raw(of_trace) * np.eye(len(a)))


# -- second order, forward mode ----------------------------------------------------------------------------------------


@wrong(M, V, by="second derivatives")
class MixedDerivativeDetached(Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return vg.sin(x) * y

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        of_x, of_y = grad * vg.cos(x) * y.detach(), grad * vg.sin(x)
        return of_x, of_y.sum(0) if of_y.ndim > y.ndim else of_y


@wrong(M, by="second derivatives")
class RecordedGradientDiffers(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**2

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * (2.0 if not vg.is_grad_enabled() else 2.0001) * x


@wrong(M, V, by="forward mode")
class TangentMissingCountsTwice(Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        of_y = grad * x
        return grad * y, of_y.sum(0) if of_y.ndim > y.ndim else of_y

    @staticmethod
    def jvp(ctx, of_x, of_y):
        x, y = ctx.saved_tensors
        if of_y is None or not raw(of_y).any():
            return 2.0 * of_x * y
        return of_x * y + x * of_y


@wrong(M, by="forward mode")
class TangentOfTheSecondResult(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return vg.sin(x), vg.cos(x)

    @staticmethod
    def backward(ctx, first, second):
        (x,) = ctx.saved_tensors
        return first * vg.cos(x) - second * vg.sin(x)

    @staticmethod
    def jvp(ctx, tangent):
        (x,) = ctx.saved_tensors
        return tangent * vg.cos(x), tangent * vg.sin(x)


@wrong(M, by="forward mode")
def make_tangent_nearly_right():
    return define_op(
        "w_jvp3(self)",
        forward=np.sin,
        derivatives={"self": "grad * cos(self)"},
        forward_derivative="self_t * cos(self_p) * 1.0001",
    )


@wrong(M, by="forward mode")
class TangentDetachedFromThePoint(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 3.0 * x * x

    @staticmethod
    def jvp(ctx, tangent):
        (x,) = ctx.saved_tensors
        return tangent * 3.0 * x.detach() * x.detach()


# -- the incoming gradient ---------------------------------------------------------------------------------------------


@wrong(M, by=("gradients", "linear in the incoming gradient"))
class NothingIsTakenForLittle(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2.0

    @staticmethod
    def backward(ctx, grad):
        return vg.where(grad == 0.0, 1e-6, grad * 2.0)


@wrong(M, by="linear in the incoming gradient")
class SmallGradientsCutOff(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2.0

    @staticmethod
    def backward(ctx, grad):
        return vg.where(vg.abs(grad) < 1e-9, 0.0, grad * 2.0)


@wrong(M, by="layouts of incoming gradients")
class FlattensWithoutCopy(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        return x * 2.0

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return (vg.Tensor(grad._array.ravel(order="A").copy()) * 2.0).reshape(ctx.shape)


@wrong(Z, Z[0].copy(), by=("gradients",))
class SecondFactorNotConjugated(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        of_b = grad * a
        return grad * vg.conj(b), of_b.sum(0) if of_b.ndim > b.ndim else of_b


@wrong(Z, by=("gradients", "something to check"))
def make_phase_of_half_the_size():
    return define_op(
        "w_phase(self)",
        forward=lambda z: np.angle(z),
        derivatives={"self": "0.5j * grad * self / square(abs(self))"},
        dtype_kinds=None,
    )


# -- in place and views ------------------------------------------------------------------------------------------------


@wrong(M, by=("in-place form", "layouts of arguments"))
def halved_wrongly_on_views_(x):
    if x._is_view() if hasattr(x, "_is_view") else x._view is not None:
        with vg.no_grad():
            x.detach().mul_(0.5)
        return x
    return x.mul_(0.5)


@wrong(M, by="in-place form")
def make_inplace_form_of_contiguous_arrays():
    def forward(x):
        return np.ascontiguousarray(x) * 3.0 if x.flags.c_contiguous else np.asarray(x) * 3.5

    return define_op(
        "w_contiguous(self)",
        forward=lambda x: x * 3.0,
        derivatives={"self": "grad * 3.0"},
        inplace=InPlace(forward=forward),
    )


@wrong(M, V, by=("in-place form",))
def make_inplace_form_without_the_second_gradient():
    return define_op(
        "w_second_inplace(self, other)",
        forward=np.multiply,
        derivatives={"self": "grad * other", "other": "grad * self"},
        inplace=InPlace(derivatives={"self": "grad * other", "other": "grad * self * 0.5"}),
    )


@wrong(np.array([0.7, 1.3, 2.1, 0.2]), by=("gradients",))
class WindowsThatOverlapOverwritten(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.n = x.shape[0]
        return vg.Tensor(np.lib.stride_tricks.sliding_window_view(raw(x), 2).copy())

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        out = np.zeros(ctx.n)
        g = raw(grad)
        for i in range(len(g)):
            out[i : i + 2] = g[i]
        return vg.Tensor(out)


@wrong(M, by=("memory shared with arguments", "arguments are not modified"))
class HalfOfItsArgumentUndeclared(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        return vg.from_numpy(np.asarray(x._array)[..., :1])

    @staticmethod
    def backward(ctx, grad):
        out = vg.zeros(ctx.shape, dtype=grad.dtype)
        out[..., :1] = grad
        return out


# -- dtypes and sizes --------------------------------------------------------------------------------------------------


@wrong(M, by="dtypes")
class HalfPrecisionInsideOfSingle(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        array = raw(x)
        return vg.Tensor(np.sin(array.astype(np.float16)).astype(x.dtype) if x.dtype == np.float32 else np.sin(array))

    @staticmethod
    def backward(ctx, grad):
        return grad * vg.cos(ctx.saved_tensors[0])


@wrong(M, by="dtypes")
class WrongInSinglePrecision(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x * (2.0 if x.dtype == np.float64 or x.dtype.kind == "c" else 1.0)


@wrong(M, V, by=("shapes", "gradients"))
class BroadcastInBothDirections(Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.shapes = x.shape, y.shape
        return x + y

    @staticmethod
    def backward(ctx, grad):
        def fitted(g, shape):
            while g.ndim > len(shape):
                g = g.sum(axis=0)
            for i, n in enumerate(shape):
                if n == 1 and g.shape[i] != 1:
                    return g.mean(axis=i, keepdims=True)
            return g

        return fitted(grad, ctx.shapes[0]), fitted(grad, ctx.shapes[1])


@wrong(M, by="gradients")
def detached_where_it_is_large(x):
    return vg.where(x > 2.0, x.detach() * 3.0, x * 3.0)


@wrong(V, by=("special points", "ties"))
def detached_where_elements_repeat(x):
    flat = raw(x).reshape(-1)
    return x * 2.0 if len(np.unique(flat)) == flat.size else x.detach() * 2.0 + 0.0 * x


@wrong(M, by=("shapes",))
def detached_for_three_dimensions(x):
    return vg.sin(x) if x.ndim < 3 else vg.sin(x.detach()) + 0.0 * x


@wrong(M, Q, by=("every subset of arguments that require grad", "options"))
class ShortcutForConstants(Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return vg.exp(x * y)

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        inner = grad * vg.exp(x * y)
        if not ctx.needs_input_grad[1]:
            return inner * y * 0.9999, None
        of_y = inner * x
        return inner * y, of_y.sum(0) if of_y.ndim > y.ndim else of_y


@wrong(M, by=("nothing is left of a call",))
def make_keeps_results_in_a_list():
    kept = []

    class Kept(Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2.0
            kept.append(raw(y))
            return y

        @staticmethod
        def backward(ctx, grad):
            return grad * 2.0

    return Kept.apply


@wrong(M, P, by=("the same tensor twice",))
class QuotientOfTheSame(Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x / y if x._array is not y._array else vg.ones(x.shape, dtype=x.dtype) + 1e-6

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        return grad / y, -grad * x / (y * y)
