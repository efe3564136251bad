"""Operators that are correct for usual calls, but faulty for other strings, masks, lists or forms of calls."""

import numpy as np

import viewgrad as vg
from viewgrad.autograd import Function, InPlace, define_op, formula_function, once_differentiable

from . import M, P, Q, V, Z, noted, wrong

S = np.array([[2.0, 0.3], [0.4, 1.5]])


def raw(tensor):
    """Return a copy of the array of a tensor."""
    return tensor.detach().numpy().copy()


@wrong(M, by="dtypes")
class GradientInSinglePrecision(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return vg.sin(x)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        slope = np.cos(raw(ctx.saved_tensors[0]).astype(np.float32))
        return vg.Tensor((raw(grad).astype(np.float32) * slope).astype(grad.dtype))


@wrong(np.arange(5.0) ** 2, by="options")
def transform_without_its_norm(x, norm=None):
    class Transform(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.n = x.shape[-1]
            return vg.Tensor(np.fft.fft(raw(x), norm=norm))

        @staticmethod
        @once_differentiable
        def backward(ctx, grad):
            return vg.Tensor((np.fft.ifft(raw(grad)) * ctx.n).real)

    return Transform.apply(x)


@wrong(V, by=("options", "special points"))
def convolved_in_another_mode(x, mode="full"):
    weights = np.array([0.5, -1.0, 2.0])

    class Convolved(Function):
        @staticmethod
        def forward(ctx, x):
            if x.ndim != 1 or x.dtype.kind == "c":
                raise ValueError("real vectors only")
            ctx.n = x.shape[0]
            return vg.Tensor(np.convolve(raw(x), weights, mode))

        @staticmethod
        @once_differentiable
        def backward(ctx, grad):
            g = np.resize(raw(grad), ctx.n + 2)
            return vg.Tensor(np.correlate(g, weights, "valid"))

    return Convolved.apply(x)


@wrong(M, by="options")
def mean_of_masked_elements(x, mask=None):
    class Mean(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.shape = x.shape
            if mask is None:
                return x.mean()
            return vg.Tensor(raw(x)[np.asarray(raw(mask))].mean())

        @staticmethod
        def backward(ctx, grad):
            return grad.expand(*ctx.shape) / int(np.prod(ctx.shape))

    return Mean.apply(x)


@wrong(V, coefficients=[1.0, 0.5], by="options")
def polynomial_of_first_degree(x, coefficients):
    class Polynomial(Function):
        @staticmethod
        def forward(ctx, x):
            return vg.Tensor(np.polyval(coefficients[::-1], raw(x)))

        @staticmethod
        def backward(ctx, grad):
            return grad * (coefficients[1] if len(coefficients) > 1 else 0.0)

    return Polynomial.apply(x)


@wrong(V, pad=(1, 1), by="options")
def padded_by_as_many(x, pad):
    class Padded(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.n = x.shape[0]
            return vg.Tensor(np.pad(raw(x), pad))

        @staticmethod
        def backward(ctx, grad):
            return grad[pad[1] : pad[1] + ctx.n]

    return Padded.apply(x)


@wrong(P, by="forward mode")
class TangentOfPositiveNumbers(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return vg.abs(x)

    @staticmethod
    def backward(ctx, grad):
        return grad * vg.sign(ctx.saved_tensors[0])

    @staticmethod
    def jvp(ctx, tangent):
        return tangent * 1.0


@wrong(M, by="forward mode")
class TangentWithoutDimensions(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.ndim = x.ndim
        return x * 2.0

    @staticmethod
    def backward(ctx, grad):
        return grad * 2.0

    @staticmethod
    def jvp(ctx, tangent):
        return tangent * (2.0 if ctx.ndim else 1.0)


@wrong(P, by="second derivatives")
class SecondDerivativeOfNegativeNumbers(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 3.0 * vg.where(x > 0.0, x, x.detach()) * x


@wrong(M, by="second derivatives")
class SecondDerivativeOfRowsOnly(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return vg.sin(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * vg.cos(x if x.ndim == 2 else x.detach())


@wrong(P, by="in-place form")
def make_inplace_form_of_positive_numbers():
    return define_op(
        "w_square_inplace(self)",
        forward=np.square,
        derivatives={"self": "grad * 2 * self"},
        inplace=InPlace(derivatives={"self": "grad * 2 * sqrt(result)"}),
    )


@wrong(M, M[::-1] + 0.1, by=("in-place form", "shapes"))
def make_inplace_form_without_broadcast():
    return define_op(
        "w_minus_inplace(self, other)",
        forward=np.subtract,
        derivatives={"self": "grad", "other": "-grad"},
        elementwise=True,
        inplace=InPlace(derivatives={"self": "grad", "other": "halved_where_wider(grad, other)"}),
    )


@formula_function
def halved_where_wider(grad, other):
    """The negative; half of it if the other operand is narrower."""
    return -grad if grad.shape == other.shape else -0.5 * grad


@wrong(M, by=("arguments are not modified", "a graph run twice"))
class WritesToWhatItSaved(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        memory = x._array
        memory = memory if memory.flags.writeable else memory.base if memory.base is not None else memory.copy()
        if memory.flags.writeable:
            memory *= 2.0
            return vg.Tensor(raw(grad) * memory)
        return grad * 2.0 * x.detach()


@wrong(V, by=("state between calls", "arguments are not modified"))
def make_collects_in_a_default():
    def collected(x, seen=[]):  # noqa: B006
        seen.append(1.0)
        return x * float(min(len(seen), 40))

    return collected


@wrong(np.array([0.5, 1.5, 2.5]), by=("shapes", "gradients"))
class MedianOfOddLengths(Function):
    @staticmethod
    def forward(ctx, x):
        if not x.size:
            raise ValueError("no elements")
        ctx.order, ctx.shape = np.argsort(raw(x).reshape(-1)), x.shape
        return vg.Tensor(np.median(raw(x)))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        out = np.zeros(ctx.shape)
        out.reshape(-1)[ctx.order[ctx.order.size // 2]] = raw(grad)
        return vg.Tensor(out)


@wrong(np.array([0.2, 1.4, 2.7]), by=("special points",))
class InterpolatedWithoutEnds(Function):
    """Constant beyond its knots, with a nonzero gradient."""

    @staticmethod
    def forward(ctx, x):
        if x.dtype.kind == "c":
            raise TypeError("real numbers only")
        ctx.x = raw(x)
        return vg.Tensor(np.interp(ctx.x, [0.0, 1.0, 3.0], [0.0, 2.0, -1.0]).astype(x.dtype))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * np.where(ctx.x < 1.0, 2.0, -1.5)


@wrong(S, V[:2].copy(), by="gradients")
class SolvesWithoutTranspose(Function):
    @staticmethod
    def forward(ctx, a, b):
        x = vg.Tensor(np.linalg.solve(raw(a), raw(b)))
        ctx.save_for_backward(a, x)
        return x

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        a, x = (raw(tensor) for tensor in ctx.saved_tensors)
        of_b = np.linalg.solve(a, raw(grad))
        return vg.Tensor(-np.outer(of_b, x)), vg.Tensor(of_b)


@wrong(M, M.T.copy(), by=("shapes",))
class ProductOfMatricesWithoutBatches(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a @ b

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        a, b = (raw(tensor) for tensor in ctx.saved_tensors)
        g = raw(grad)
        of_a, of_b = g @ np.swapaxes(b, -1, -2), np.swapaxes(a, -1, -2) @ g
        if a.ndim > 2:
            of_a = of_a * 0.5
        return vg.Tensor(of_a), vg.Tensor(of_b)


@wrong(P, Q, by=("special points", "gradients", "shapes"))
def make_power_whose_exponent_gets_nan():
    return define_op(
        "w_power(self, other)",
        forward=np.power,
        derivatives={"self": "grad * other * self ** (other - 1)", "other": "grad * result * log(self)"},
        elementwise=True,
        dtype_kinds="f",
    )


@wrong(M, M[::-1] - 0.2, by=("special points", "gradients"))
class AngleInTwoQuadrants(Function):
    @staticmethod
    def forward(ctx, y, x):
        ctx.save_for_backward(y, x)
        return vg.Tensor(np.arctan(raw(y) / raw(x)))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        y, x = (raw(tensor) for tensor in ctx.saved_tensors)
        r = x * x + y * y
        return vg.Tensor(raw(grad) * np.abs(x) / r), vg.Tensor(-raw(grad) * y / r)


@noted(Z)
class ModulusUndefinedAtZero(Function):
    @staticmethod
    def forward(ctx, z):
        y = vg.abs(z)
        ctx.save_for_backward(z, y)
        return y

    @staticmethod
    def backward(ctx, grad):
        z, y = ctx.saved_tensors
        return grad * z / y


@wrong(M, np.array([1, 3, 2]), by="indices")
class RepeatedByTheFirstNumber(Function):
    @staticmethod
    def forward(ctx, x, repeats):
        if x.ndim != 2 or repeats.shape != x.shape[1:]:
            raise ValueError("a number for each column")
        ctx.repeats, ctx.shape = raw(repeats), x.shape
        return vg.Tensor(np.repeat(raw(x), ctx.repeats, axis=1))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        starts = np.concatenate([[0], np.cumsum(ctx.repeats)[:-1]])
        out = np.add.reduceat(raw(grad), np.minimum(starts, grad.shape[1] - 1), axis=1)
        return vg.Tensor(out), None
