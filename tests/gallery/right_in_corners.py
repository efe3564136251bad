"""Correct operators that look odd: steep, guarded, cached, restricted, cancelling, of several dtypes and forms."""

import enum
import functools

import numpy as np

import viewgrad as vg
from viewgrad.autograd import Function, InPlace, define_op, once_differentiable

from . import M, P, Q, V, Z, right

TINY = np.array([1e-12, 1e-6, 0.25])
BUFFERS = {}
NEAR = np.array([0.012, 0.5, 3.0])


def raw(tensor):
    """Return a copy of the array of a tensor."""
    return tensor.detach().numpy().copy()


# -- steep and curved --------------------------------------------------------------------------------------------------


@right(TINY)
def square_root_near_zero(x):
    return vg.sqrt(x)


@right(TINY)
class SquareRootOfItsOwn(Function):
    @staticmethod
    def forward(ctx, x):
        y = vg.sqrt(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return grad / (2.0 * vg.conj(y))


@right(NEAR)
class LogarithmOfItsOwn(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return vg.log(x)

    @staticmethod
    def backward(ctx, grad):
        return grad / vg.conj(ctx.saved_tensors[0])


@right(M)
class VeryFastSine(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return vg.sin(1e6 * x)

    @staticmethod
    def backward(ctx, grad):
        return grad * 1e6 * vg.conj(vg.cos(1e6 * ctx.saved_tensors[0]))


@right(np.array([0.005, -0.005, 0.3705, 0.3805]))
def make_kinks_close_by():
    return define_op(
        "r_kinks(self)",
        forward=lambda x: np.abs(x) + np.maximum(x - 0.3755, 0.0),
        derivatives={"self": "grad * (sign(self) + 1.0 * (self > 0.3755))"},
        elementwise=True,
    )


@right(np.array([0.1, 0.7, -0.4]))
def make_kink_of_a_number_of_its_own():
    return define_op(
        "r_elbow(self)",
        forward=lambda x: np.maximum(x, 0.375),
        derivatives={"self": "grad * (self > 0.375)"},
        elementwise=True,
    )


@right(np.array([0.4, 1.9, 7.5]))
def make_arctangent_from_a_product():
    return define_op(
        "r_atan(self)", forward=np.arctan, derivatives={"self": "grad / (1.0 + self * self)"}, elementwise=True
    )


@right(M)
def bell(x):
    return vg.exp(-x * x)


@right(M)
class Bell(Function):
    """At infinity its formula is infinity times zero."""

    @staticmethod
    def forward(ctx, x):
        y = vg.exp(-x * x)
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        return grad * vg.conj(-2.0 * x * y)


@right(np.array([0.3, -0.2, 0.9]))
class InverseHyperbolicTangent(Function):
    @staticmethod
    def forward(ctx, x):
        array = raw(x)
        if array.dtype.kind == "c" or (np.abs(array) >= 1).any():
            raise ValueError("between -1 and 1")
        ctx.save_for_backward(x)
        return vg.Tensor(np.arctanh(array))

    @staticmethod
    def backward(ctx, grad):
        x = ctx.saved_tensors[0]
        return grad / (1.0 - x * x)


@right(1e3 + np.array([0.7, -1.3, 0.4, 1.1]))
def sum_of_what_cancels(x):
    return ((x - x.mean()) ** 2).sum()


@right(np.linspace(0.1, 2.0, 60))
def alternating_sum(x):
    signs = (-1.0) ** np.arange(x.size).reshape(x.shape)
    return (signs * vg.exp(x)).sum()


@right(np.linspace(0.5, 1.5, 50))
class LengthOfMany(Function):
    @staticmethod
    def forward(ctx, x):
        y = vg.sqrt((x * x).sum())
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        return grad * vg.where(y == 0.0, 0.0 * x, x / vg.where(y == 0.0, 1.0, y))


@right(np.array([1e8, 1.0, 1e-8]))
def scales_of_all_sizes(x):
    return x**2 / (1.0 + x**2) + 1e-3 * x


# -- guarded, piecewise ------------------------------------------------------------------------------------------------


@right(np.array([0.0, 0.5, -2.0]))
class SincGuarded(Function):
    @staticmethod
    def forward(ctx, x):
        array = raw(x)
        ctx.array = array
        return vg.Tensor(np.where(array == 0.0, 1.0, np.sin(array) / np.where(array == 0.0, 1.0, array)))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x = np.where(ctx.array == 0.0, 1.0, ctx.array)
        small = np.abs(ctx.array) < 1e-3
        slope = np.where(small, -ctx.array / 3.0 + ctx.array**3 / 30.0, (np.cos(x) - np.sin(x) / x) / x)
        return grad * slope


@right(P)
def logarithm_where_positive(x):
    inside = vg.where(x > 0.0, x, 1.0)
    return vg.where(x > 0.0, vg.log(inside), -1.0 + 0.0 * x)


@right(M)
def make_smooth_step():
    def forward(x):
        t = np.clip(x.real if np.iscomplexobj(x) else x, 0.0, 1.0)
        return t * t * (3.0 - 2.0 * t)

    return define_op(
        "r_step(self)",
        forward=forward,
        derivatives={"self": "grad * where((self > 0.0) & (self < 1.0), 6.0 * self * (1.0 - self), 0.0 * self)"},
        elementwise=True,
        dtype_kinds="f",
    )


@right(M)
class RoundedWithItsTrueGradient(Function):
    @staticmethod
    def forward(ctx, x):
        return vg.Tensor(np.round(raw(x).real) if x.dtype.kind != "c" else np.round(raw(x)))

    @staticmethod
    def backward(ctx, grad):
        return 0.0 * grad


@right(V)
def middle_by_sorting(x):
    return vg.sort(x.reshape(-1))[x.size // 2] if x.size else x.sum()


# -- restricted --------------------------------------------------------------------------------------------------------


@right(V, V[::-1].copy())
class CrossProduct(Function):
    @staticmethod
    def forward(ctx, x, y):
        if x.shape != (3,) or y.shape != (3,):
            raise ValueError("vectors of three elements")
        ctx.save_for_backward(x, y)
        return vg.Tensor(np.cross(raw(x), raw(y)))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x, y = (raw(tensor).conj() for tensor in ctx.saved_tensors)
        g = raw(grad)
        return vg.Tensor(np.cross(y, g)), vg.Tensor(np.cross(g, x))


@right(M)
class DoublePrecisionOnly(Function):
    @staticmethod
    def forward(ctx, x):
        if x.dtype != np.float64:
            raise TypeError("float64 only")
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad):
        return grad * 3.0 * ctx.saved_tensors[0] ** 2


@right(M.astype(np.float32))
class SinglePrecisionOnly(Function):
    @staticmethod
    def forward(ctx, x):
        if x.dtype != np.float32:
            raise TypeError("float32 only")
        ctx.save_for_backward(x)
        return vg.sin(x)

    @staticmethod
    def backward(ctx, grad):
        return grad * vg.cos(ctx.saved_tensors[0])


@right(np.array([[2.0, 0.3], [0.3, 1.5]]))
class Cholesky(Function):
    """Factorizes the lower triangle; refuses matrices that are not positive definite."""

    @staticmethod
    def forward(ctx, a):
        array = raw(a)
        if array.ndim != 2 or array.shape[0] != array.shape[1] or array.dtype.kind == "c":
            raise ValueError("a real square matrix")
        lower = np.linalg.cholesky(np.tril(array) + np.tril(array, -1).T)
        ctx.lower = lower
        return vg.Tensor(lower)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        lower = ctx.lower
        phi = np.tril(lower.T @ raw(grad))
        phi[np.diag_indices_from(phi)] *= 0.5
        inverse = np.linalg.inv(lower) if lower.size else lower
        s = inverse.T @ phi @ inverse
        s = s + s.T
        s[np.diag_indices_from(s)] *= 0.5
        return vg.Tensor(np.tril(s))


# -- options -----------------------------------------------------------------------------------------------------------


class Kind(enum.Enum):
    """The kind of a mean."""

    PLAIN = 0
    GEOMETRIC = 1


@right(P)
def mean_of_some_kind(x, kind=Kind.PLAIN):
    return x.mean() if kind is Kind.PLAIN else vg.exp(vg.log(x).mean())


@right(M, V)
def loss(x, y, reduction="mean", weight=None):
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"unknown reduction {reduction!r}")
    each = (x - y) ** 2 if weight is None else weight * (x - y) ** 2
    return each if reduction == "none" else each.sum() if reduction == "sum" else each.mean()


@right(np.array([0.5, 1.5, 2.5, 4.0]), order=1)
def difference(x, order=1, axis=-1):
    for _ in range(order):
        x = vg.diff(x, axis=axis)
    return x


@right(P, p=3)
def norm_of_some_order(x, p=2):
    if p <= 1:
        raise ValueError("p > 1")
    return (vg.abs(x) ** p).sum() ** (1.0 / p)


@right(M, M[::-1] + 0.1, axis=0)
def joined(x, y, axis=0):
    return vg.concatenate([x, y], axis=axis)


@right([M, P, M * 0.5])
def product_of_all(tensors):
    return functools.reduce(lambda a, b: a * b, tensors)


@right(M, {"scale": 2.0, "shift": [0.5, 1.0, 1.5]})
def affine(x, settings):
    return x * settings["scale"] + np.sum(settings["shift"])


# -- random, cached ----------------------------------------------------------------------------------------------------


@right(V, seed=11)
def noise_by_seed(x, seed):
    return x + 0.1 * np.random.default_rng(abs(seed)).standard_normal(x.shape)


@right(M)
def make_table_computed_once():
    @functools.cache
    def weights(shape):
        return np.cos(np.arange(int(np.prod(shape)))).reshape(shape)

    return lambda x: x * weights(x.shape)


@right(M)
def make_slopes_remembered_by_bytes():
    kept = {}

    class Remembered(Function):
        @staticmethod
        def forward(ctx, x):
            array = raw(x)
            key = array.tobytes(), array.shape, array.dtype.str
            if len(kept) > 8:
                kept.clear()
            ctx.slope = kept.setdefault(key, 2.0 * array.conj())
            return vg.Tensor(array**2)

        @staticmethod
        @once_differentiable
        def backward(ctx, grad):
            return grad * ctx.slope

    return Remembered.apply


@right(M)
class FailsWithoutElements(Function):
    """Raises in the backward pass of a derived call, which counts as a refusal."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2.0

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 2.0 + 0.0 * x.reshape(-1)[0]


@right(M, switched_off={"threads": "all calls share one buffer"})
class GradientsInOneBuffer(Function):
    """Returns gradients in one buffer; the library copies shared ones."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        buffer = BUFFERS.setdefault((x.shape, x.dtype), np.empty(x.shape, x.dtype))
        np.multiply(raw(grad), 2.0 * raw(x).conj(), out=buffer)
        return vg.from_numpy(buffer)


# -- views, several results --------------------------------------------------------------------------------------------


@right(M)
def view_of_a_clone(x):
    return x.clone()[..., ::-1]


@right(M)
def diagonal(x):
    return vg.diagonal(x) if x.ndim == 2 else x


@right(M)
def same_view_twice(x):
    return x.T, x[..., :1]


@right(Z)
def parts_of_complex_numbers(z):
    return z.real, z.imag


@right(M)
def sorted_with_places(x):
    order = np.argsort(raw(x).reshape(-1), kind="stable")
    return x.reshape(-1)[order], vg.Tensor(order)


@right(M)
class LargestWithItsPlace(Function):
    @staticmethod
    def forward(ctx, x):
        if not x.size:
            raise ValueError("no elements")
        place = int(np.argmax(raw(x).real))
        ctx.place, ctx.shape, ctx.dtype = place, x.shape, x.dtype
        index = vg.Tensor(place)
        ctx.mark_non_differentiable(index)
        return vg.Tensor(raw(x).reshape(-1)[place]), index

    @staticmethod
    @once_differentiable
    def backward(ctx, grad, _):
        out = np.zeros(ctx.shape, ctx.dtype)
        out.flat[ctx.place] = raw(grad)
        return vg.Tensor(out)


@right(P)
def make_moments():
    return define_op(
        "r_moments(self) -> (mean, spread)",
        forward=lambda x: (x.mean(), x.var()),
        derivatives={
            "self": "0.0 * self + grad_mean / self.size + grad_spread * 2.0 * (self - mean) / self.size",
        },
        dtype_kinds="f",
    )


@right(M)
def results_in_a_dict(x):
    return {"value": vg.sin(x), "size": x.size, "shape": x.shape, "more": [vg.cos(x), None]}


# -- in place ----------------------------------------------------------------------------------------------------------


@right(M)
def make_clipped_in_place():
    class Rectified(Function):
        @staticmethod
        def forward(ctx, x):
            if x.dtype.kind == "c":
                raise TypeError("real numbers only")
            ctx.save_for_backward(x > 0.0)
            x.copy_(vg.maximum(x, 0.0))
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.saved_tensors[0]

    return Rectified.apply


@right(M, V)
def make_row_whose_inplace_form_uses_the_result():
    return define_op(
        "r_scale(self, other)",
        forward=np.multiply,
        derivatives={"self": "grad * other", "other": "grad * self"},
        inplace=InPlace(derivatives={"self": "grad * other", "other": "grad * self"}),
        dtype_kinds="f",
    )


@right(np.array([0.3, 0.5, 0.8, 1.1]))
def recurrence_in_place(x):
    y = x.clone()
    for i in range(1, x.shape[0] if x.ndim else 1):
        y[i] *= y[i - 1]
    return y


@right(P, Q)
def quotient_in_place_(x, y):
    x /= y + 2.0
    return x


# -- integers ----------------------------------------------------------------------------------------------------------


@right(P, np.array([1, 2, 3], dtype=np.uint8))
class PowerByUnsignedIntegers(Function):
    @staticmethod
    def forward(ctx, x, n):
        ctx.save_for_backward(x, n)
        return vg.Tensor(raw(x) ** raw(n).astype(x.dtype))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x, n = raw(ctx.saved_tensors[0]), raw(ctx.saved_tensors[1]).astype(ctx.saved_tensors[0].dtype)
        slope = np.where(n == 0, 0.0, n * np.where(n == 0, 1.0, x) ** np.where(n == 0, 0.0, n - 1.0))
        out = raw(grad) * slope.conj()
        while out.ndim > x.ndim:
            out = out.sum(0)
        for i, length in enumerate(x.shape):
            if length == 1 and out.shape[i] != 1:
                out = out.sum(i, keepdims=True)
        return vg.Tensor(out), None


@right(M, np.array([0, 2, 2]))
def segments_summed(x, segments):
    if x.ndim < 1 or segments.shape != x.shape[-1:]:
        raise ValueError("a segment for each column")
    places = raw(segments)
    if places.size and not (0 <= places.min() and places.max() < 4):
        raise IndexError("four segments")
    return x @ np.eye(4)[places]


@right(M, np.array([[True, False, True], [False, True, True]]))
def mean_of_the_chosen(x, mask):
    if x.shape != mask.shape:
        raise ValueError("a mask in the shape of the array")
    return (x * mask).sum() / max(int(raw(mask).sum()), 1)


# -- of all sorts ------------------------------------------------------------------------------------------------------


@right(M)
class WritesToTheTangentThatItIsShown(Function):
    """Writes to the tangent that it receives, which is a copy."""

    @staticmethod
    def forward(ctx, x):
        return x * 2.0

    @staticmethod
    def backward(ctx, grad):
        return grad * 2.0

    @staticmethod
    def jvp(ctx, tangent):
        tangent.mul_(2.0)
        return tangent * 1.0


@right(np.arange(5.0) ** 2, norm=None)
def transform(x, norm=None):
    class Transform(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.real = x.dtype.kind != "c"
            return vg.Tensor(np.fft.fft(raw(x), norm=norm))

        @staticmethod
        @once_differentiable
        def backward(ctx, grad):
            turned = {None: "forward", "backward": "forward", "forward": "backward", "ortho": "ortho"}[norm]
            back = np.fft.ifft(raw(grad), norm=turned)
            return vg.Tensor(back.real if ctx.real else back)

    return Transform.apply(x)


@right(V, coefficients=[1.0, 0.5, -2.0])
def polynomial(x, coefficients):
    class Polynomial(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return vg.Tensor(np.polyval(coefficients[::-1], raw(x)).astype(x.dtype))

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            slope = 0.0 * x
            for n in range(len(coefficients) - 1, 0, -1):
                slope = slope * x + n * coefficients[n]
            return grad * vg.conj(slope)

    return Polynomial.apply(x)


@right(M, mask=None)
def mean_of_the_masked(x, mask=None):
    if mask is None:
        return x.mean()
    return (x * raw(mask)).sum() / max(int(raw(mask).sum()), 1)


@right(np.array([0.5, 1.5, 2.5]))
class MedianOfAnyLength(Function):
    """The median; for an even number of elements the mean of the middle two."""

    @staticmethod
    def forward(ctx, x):
        if not x.size or x.dtype.kind == "c":
            raise ValueError("real numbers")
        ctx.order, ctx.shape, ctx.dtype = np.argsort(raw(x).reshape(-1)), x.shape, x.dtype
        return vg.Tensor(np.median(raw(x)))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        out = np.zeros(ctx.shape, ctx.dtype)
        n = ctx.order.size
        out.reshape(-1)[ctx.order[[(n - 1) // 2, n // 2]]] = raw(grad) * (1.0 if n % 2 else 0.5)
        return vg.Tensor(out)


@right(np.array([0.2, 1.4, 2.7]))
class Interpolated(Function):
    @staticmethod
    def forward(ctx, x):
        if x.dtype.kind == "c":
            raise TypeError("real numbers only")
        ctx.x = raw(x)
        return vg.Tensor(np.interp(ctx.x, [0.0, 1.0, 3.0], [0.0, 2.0, -1.0]).astype(x.dtype))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        inside = (ctx.x >= 0.0) & (ctx.x <= 3.0)
        return grad * np.where(inside, np.where(ctx.x < 1.0, 2.0, -1.5), 0.0)


@right(np.array([[2.0, 0.3], [0.4, 1.5]]), V[:2].copy())
class Solved(Function):
    @staticmethod
    def forward(ctx, a, b):
        if a.ndim != 2 or b.ndim != 1:
            raise ValueError("a matrix and a vector")
        x = vg.Tensor(np.linalg.solve(raw(a), raw(b)))
        ctx.save_for_backward(a, x)
        return x

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        a, x = (raw(tensor) for tensor in ctx.saved_tensors)
        of_b = np.linalg.solve(a.conj().T, raw(grad))
        return vg.Tensor(-np.outer(of_b, x.conj())), vg.Tensor(of_b)


@right(M, np.array([1, 3, 2]))
class Repeated(Function):
    @staticmethod
    def forward(ctx, x, repeats):
        if x.ndim != 2 or repeats.shape != x.shape[1:]:
            raise ValueError("a number for each column")
        ctx.columns = np.repeat(np.eye(x.shape[1]), raw(repeats), axis=1)
        return vg.Tensor((raw(x) @ ctx.columns).astype(x.dtype))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return vg.Tensor((raw(grad) @ ctx.columns.T).astype(grad.dtype)), None
