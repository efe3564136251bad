"""Faulty and correct operators that an earlier version of the checks misjudged."""

from typing import ClassVar

import numpy as np

import viewgrad as vg
from viewgrad.autograd import Function, define_op, once_differentiable

from . import M, P, Q, V, right, wrong

# -- faulty ones -------------------------------------------------------------------------------------------------------


@wrong(np.array([1.0 + 0j, 2.0]), np.array([0.5 + 0j, 3.0]), by="special points")
class ProductOfComplexNumbersThatAreReal(Function):
    """The conjugate is missing, which real numbers do not reveal."""

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        return grad * b, grad * a


@wrong(V, by="dtypes")
def make_size_guarded_by_too_little():
    """The guard underflows in single precision."""
    return define_op(
        "size_guarded_by_too_little(self)",
        forward=lambda self: np.sqrt(self * self),
        derivatives={"self": "grad * self / sqrt(self * self + 1e-60)"},
        elementwise=True,
    )


@wrong(V, by="nothing is left of a call")
class KnowsItself(Function):
    """The context is part of a reference cycle, which keeps the saved values alive."""

    @staticmethod
    def forward(ctx, x):
        ctx.context, ctx.copy = ctx, x.clone()
        return x * 2.0

    @staticmethod
    def backward(ctx, grad):
        return grad * 2.0


@wrong(V, by="special points")
def make_slope_by_squares():
    """The square overflows long before the derivative does."""
    return define_op(
        "slope_by_squares(self)",
        forward=np.sinh,
        derivatives={"self": "grad * sqrt(1 + result * result)"},
        elementwise=True,
    )


@wrong(V, by=("dtypes", "second derivatives"))
class SlopeOfSinglePrecision(Function):
    """Only the derivative has single precision; its product with the gradient has double precision."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return np.sin(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return (grad * np.cos(x.astype(np.float32))).astype(grad.dtype)


@wrong(Q, by="state between calls")
def silences_numpy(x):
    """Turns NumPy's warnings off permanently."""
    np.seterr(all="ignore")
    return vg.log(x)


@wrong(V, by="dtypes")
class GoesUpToDoublePrecision(Function):
    """The result has the dtype of a constant, not that of the argument."""

    @staticmethod
    def forward(ctx, x):
        return x * 2.0 + np.zeros(x.shape)

    @staticmethod
    def backward(ctx, grad):
        return grad * 2.0


@wrong(np.array([1.2, -0.8, 0.3, 2.2]), by="state between calls")
def make_kept_for_all_of_this_sum():
    kept = {}

    def kept_for_all_of_this_sum(x):
        key = round(float(x.detach().sum()), 1)
        if key not in kept:
            kept[key] = vg.Tensor(np.tanh(x.detach().numpy()))
        return x * kept[key]

    return kept_for_all_of_this_sum


@wrong(M, by="options")
def no_gradient_along_some_axes(x, axis=0):
    return vg.cumsum(x if axis in (0, -1) else x.detach(), axis=axis)


@wrong(M, axis=(0, 1), by="options")
def no_gradient_along_mixed_axes(x, axis):
    axes = sorted(axis if isinstance(axis, tuple) else (axis,), reverse=True)
    for number in axes:
        x = x.sum(axis=number) if number >= 0 or axes[0] < 0 else x.detach().sum(axis=number)
    return x


@wrong(M, by="nothing is left of a call")
class ContextWithinItself(Function):
    """Keeps only a graph that was never run: a backward pass releases the saved values."""

    @staticmethod
    def forward(ctx, x):
        ctx.itself = ctx
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        return 2.0 * grad * ctx.saved_tensors[0]


@wrong(V, by="state between calls")
def make_another_factor_at_first():
    class AnotherFactorAtFirst:
        factor = 2.0

        def __call__(self, x):
            y, self.factor = x * self.factor, 2.00002
            return y

    return AnotherFactorAtFirst()


@wrong({"x": M, "options": {"power": 2.0}}, by="options")
def no_gradient_for_other_options_in_a_dict(given):
    x, power = given["x"], given["options"]["power"]
    return x * x if power == 2.0 else x.detach() ** power * x


@wrong(M, by=("state between calls", "gradients", "special points"))
class ArgumentsOfTheFirstCall(Function):
    """The failing program must call it first, since it has already been called here."""

    kept: ClassVar = {}

    @staticmethod
    def forward(ctx, x):
        ctx.first = ArgumentsOfTheFirstCall.kept.setdefault(x.shape, x.detach().numpy().copy())
        return x * x

    @staticmethod
    def backward(ctx, grad):
        return 2.0 * grad * vg.Tensor(ctx.first)


@wrong(M, by=("state between calls", "gradients", "special points"))
class GradientOfTheFirstPass(Function):
    """The failing program must run its backward pass first."""

    kept: ClassVar = {}

    @staticmethod
    def forward(ctx, x):
        return x * 2.0

    @staticmethod
    def backward(ctx, grad):
        return 2.0 * GradientOfTheFirstPass.kept.setdefault(grad.shape, grad)


@wrong(V, by="something to check")
def make_remembered_without_recording():
    """The failing program must call it under no_grad first."""
    kept = {}

    def remembered_without_recording(x):
        return kept.setdefault(x.shape, vg.exp(x))

    return remembered_without_recording


# -- correct ones ------------------------------------------------------------------------------------------------------


@right(V, switched_off={"gradients": "straight through, on purpose"})
def rounded_straight_through(x):
    return x + (vg.round(x) - x).detach()


@right(V, switched_off={"gradients": "turned round, on purpose"})
class Reversal(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1.0

    @staticmethod
    def backward(ctx, grad):
        return -grad


@right(np.eye(3))
class ExponentialOfSymmetricMatrix(Function):
    """Correct for equal eigenvalues; its backward works on plain arrays, as `once_differentiable` allows."""

    @staticmethod
    def forward(ctx, a):
        if a.ndim != 2:
            raise ValueError("one matrix")
        values, vectors = np.linalg.eigh((a.detach().numpy() + a.detach().numpy().T) / 2)
        ctx.values, ctx.vectors = values, vectors
        return vg.Tensor((vectors * np.exp(values)) @ vectors.T)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        values, vectors = ctx.values, ctx.vectors
        apart = values[:, None] - values
        shrunk = np.where(np.abs(apart) < 1e-6, 1.0, np.sinh(apart / 2) / np.where(apart == 0, 1.0, apart / 2))
        slopes = np.exp((values[:, None] + values) / 2) * shrunk
        found = vectors @ (slopes * (vectors.T @ grad.numpy() @ vectors)) @ vectors.T
        return vg.Tensor((found + found.T) / 2)


@right(V)
class PlainBackward(Function):
    """Cannot be differentiated twice: `numpy()` raises."""

    @staticmethod
    def forward(ctx, x):
        ctx.slope = np.cos(x.detach().numpy())
        return np.sin(x)

    @staticmethod
    def backward(ctx, grad):
        return vg.Tensor(grad.numpy() * ctx.slope)


class Matrix:
    """A double-precision matrix that is not an array."""

    def __init__(self, values):
        self.values = np.array(values)
        self.dtype = self.values.dtype


@right(Matrix([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]), V)
class TimesMatrix(Function):
    """Takes an object with double-precision numbers, to which single precision is promoted."""

    @staticmethod
    def forward(ctx, matrix, x):
        ctx.matrix = matrix
        return vg.Tensor(matrix.values @ x.detach().numpy())

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return None, vg.Tensor(ctx.matrix.values.T @ grad.numpy())


@right(P[0], domain=(0.1, 100.0))
class RootByBisection(Function):
    """Does not terminate in single precision, whose numbers are further apart than the tolerance."""

    @staticmethod
    def forward(ctx, c):
        given = c.detach().numpy()
        low, high = np.zeros_like(given), np.full_like(given, 10.0)
        while (high - low).max(initial=0) > 1e-9:
            middle = (low + high) / 2
            large = middle**3 + middle > given
            low, high = np.where(large, low, middle), np.where(large, middle, high)
        root = vg.Tensor((low + high) / 2)
        ctx.save_for_backward(root)
        return root

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (root,) = ctx.saved_tensors
        return grad / (3 * root * root + 1)


@right(np.array([1e-5, -1e-3]))
def reciprocal_near_its_pole(x):
    return 1 / x


@right(V)
def digits_cancelled(x):
    return ((1e8 + x) - 1e8) * 2


@right(M)
def nuclear_norm(x):
    """Forward mode refuses the derivatives of the factors."""
    return vg.linalg.svd(x)[1].sum()


@right(np.zeros(3))
def norm_with_a_number_that_half_precision_does_not_have(x):
    return vg.sqrt((x * x).sum() + 1e-12)


@right(np.array([1.2, -0.8, 0.3, 2.2]))
def entropy(x):
    """Its second derivative is infinite at 0; for a single number it is constant."""
    p = x * x / (x * x).sum()
    return -vg.xlogy(p, p).sum()


@right(np.array([1.0, 2.0, 2.0, 5.0]))
def distinct_values(x):
    """The length of the result changes if equal elements are perturbed."""
    return vg.unique_values(x)


@right(P)
class SinglePrecisionInside(Function):
    """The second derivative is a step function of the argument, and exact in the incoming gradient."""

    @staticmethod
    def forward(ctx, x):
        y = vg.Tensor(np.sqrt(x.detach().numpy().astype(np.float32)).astype(x.dtype))
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        return grad * 0.5 / ctx.saved_tensors[0]


@right(np.array([[-800.0, 0.7, 30.0]]))
class FastSineFarFromZero(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return vg.sin(1e6 * x)

    @staticmethod
    def backward(ctx, grad):
        return grad * 1e6 * vg.cos(1e6 * ctx.saved_tensors[0])


@right(np.array([[2.2, 0.4, -0.3], [0.4, 1.7, 0.2], [-0.3, 0.2, 1.3]]))
class EigenvaluesOfTheSymmetricPart(Function):
    """Equal eigenvalues, such as those of zeros, have no unique slope."""

    @staticmethod
    def forward(ctx, a):
        matrix = a.detach().numpy()
        values, ctx.vectors = np.linalg.eigh(0.5 * (matrix + matrix.swapaxes(-1, -2)))
        return vg.Tensor(values)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return vg.Tensor((ctx.vectors * grad.numpy()[..., None, :]) @ ctx.vectors.swapaxes(-1, -2))


@right(np.array([5.0, -3.0, 1e3]))
def ripple_on_a_large_value(x):
    """Differences with long steps depend only on the large value, whose slope is 1."""
    return vg.sin(x * 1e4) * 1e-4 + x


# -- state that only calls with other options or shapes reveal, and gradients that only fit equal lengths --------------


@wrong(M, 0.5, by="state between calls")
class FactorOnTheClass(Function):
    factor = 1.0

    @staticmethod
    def forward(ctx, x, factor):
        FactorOnTheClass.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, grad):
        return grad * FactorOnTheClass.factor, None


@wrong(V, by="state between calls")
class ShapeOnTheClass(Function):
    shape: ClassVar[tuple[int, ...]] = ()

    @staticmethod
    def forward(ctx, x):
        ShapeOnTheClass.shape = x.shape
        return x.sum()

    @staticmethod
    def backward(ctx, grad):
        return grad * vg.ones(ShapeOnTheClass.shape)


@wrong(np.sin(np.arange(24.0)).reshape(2, 3, 4), (1, 0, 2), by="shapes")
class PermutedBackByTheSamePermutation(Function):
    @staticmethod
    def forward(ctx, x, axes):
        ctx.axes = axes
        return vg.transpose(x, axes)

    @staticmethod
    def backward(ctx, grad):
        return vg.transpose(grad, ctx.axes), None


@wrong(M, None, by="options")
class WeightThatIsNone(Function):
    @staticmethod
    def forward(ctx, x, weight=None):
        ctx.save_for_backward(x, weight)
        return x * x if weight is None else x * x * weight

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        return 2.0 * grad * x, None if weight is None else grad * x


@wrong(M, by="threads")
class ScratchOfAllThreads(Function):
    scratch: ClassVar[dict[str, np.ndarray]] = {}

    @staticmethod
    def forward(ctx, x):
        ScratchOfAllThreads.scratch["x"] = x.detach().numpy().copy()
        result = np.sin(ScratchOfAllThreads.scratch["x"])
        ctx.slope = np.cos(ScratchOfAllThreads.scratch["x"])
        return vg.Tensor(result)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * vg.Tensor(ctx.slope)


@right(np.array([[2.0, 0.3], [-0.4, 1.5]]), np.array([[1.0, 0.2], [0.5, -0.7]]))
class SolvesStacksByNumPyOnly(Function):
    """NumPy takes stacks of matrices, and the transposes in backward do not; that is noted."""

    @staticmethod
    def forward(ctx, a, b):
        x = vg.linalg.solve(a, b)
        ctx.save_for_backward(a, x)
        return x

    @staticmethod
    def backward(ctx, grad):
        a, x = ctx.saved_tensors
        y = vg.linalg.solve(a.T, grad)
        return -y @ x.T, y


@right(np.array([1.0, 0.5]))
class GraphKeptOnContext(Function):
    @staticmethod
    def forward(ctx, x):
        with vg.enable_grad():
            ctx.x = x.detach().requires_grad_()
            ctx.y = vg.exp(ctx.x) * ctx.x
        return ctx.y.detach()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return vg.autograd.grad(ctx.y, ctx.x, grad, retain_graph=True)[0]


@right(M)
class ArrayOfTheResultKept(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.y = np.tanh(x.detach().numpy())
        return vg.from_numpy(ctx.y)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return vg.Tensor(grad.numpy() * (1 - ctx.y**2))


@right(np.sin(np.arange(8.0)).reshape(4, 2), np.array([0, 1, 1, 0]))
class DistancesToCentres(Function):
    """Labels that are negative would be taken for members of the last class in one place only."""

    @staticmethod
    def forward(ctx, features, labels):
        values, classes = features.detach().numpy(), np.asarray(labels)
        centres = np.stack([
            values[classes == c].mean(axis=0) if (classes == c).any() else np.zeros(values.shape[1])
            for c in range(max(classes.max() + 1, 1))
        ])  # fmt: skip
        ctx.apart = values - centres[classes]
        return vg.Tensor(0.5 * (ctx.apart**2).sum())

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * vg.Tensor(ctx.apart), None
