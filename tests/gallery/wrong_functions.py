"""Faulty custom functions, and faulty plain functions that call them."""

import numpy as np

import viewgrad as vg
from viewgrad.autograd import Function, once_differentiable

from . import M, P, Q, V, Z, noted, wrong


def raw(tensor):
    """Return a copy of the array of a tensor."""
    return tensor.detach().numpy().copy()


@wrong(M, by="gradients")
class GradientIgnored(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        return 2.0 * ctx.saved_tensors[0]


@wrong(M, by=("gradients", "shapes"))
class SumSpreadWrongly(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        return x.sum(axis=0)

    @staticmethod
    def backward(ctx, grad):
        return grad.expand(*ctx.shape) / ctx.shape[0]


@wrong(M, V, by="gradients")
class SecondGradientForgotten(Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.saved_tensors[1], None


@wrong(M, V, by="every subset of arguments that require grad")
class AsksForTheWrongInput(Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        return grad * y if ctx.needs_input_grad[0] else None, (grad * x).sum(0) if ctx.needs_input_grad[0] else None


@wrong(M, M[::-1] + 0.3, by="every subset of arguments that require grad")
class SavesOnlyForTheFirst(Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.factor = raw(y) if ctx.needs_input_grad[0] else np.ones(y.shape)
        ctx.other = raw(x) if ctx.needs_input_grad[0] else np.ones(x.shape)
        return x * y

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * ctx.factor, grad * ctx.other


@wrong(M, by=("overwritten afterwards", "state between calls"))
class KeepsItsInputInAClosure(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.x = lambda: x
        return vg.tanh(x)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * (1 - vg.tanh(ctx.x().detach()) ** 2)


@wrong(M, by=("overwritten afterwards",))
class KeepsItsResultInAClosure(Function):
    @staticmethod
    def forward(ctx, x):
        y = vg.exp(x)
        memory = y._array
        ctx.slope = lambda: memory
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * ctx.slope()


@wrong(M, by=("state between calls",))
class KeepsItsInputOnTheClass(Function):
    @staticmethod
    def forward(ctx, x):
        KeepsItsInputOnTheClass.x = raw(x)
        return vg.sin(x)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * np.cos(KeepsItsInputOnTheClass.x)


@wrong(M, by="arguments are not modified")
class NormalisesItsArgument(Function):
    @staticmethod
    def forward(ctx, x):
        data = x._array
        data /= 2.0
        result = vg.Tensor(data * 2.0)
        return result

    @staticmethod
    def backward(ctx, grad):
        return grad * 1.0


@wrong(M, by=("something to check", "arguments are not modified"))
class WritesWithoutMarking(Function):
    @staticmethod
    def forward(ctx, x):
        x.mul_(2.0)
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return grad * 2.0


@wrong(M, by=("memory shared with arguments",))
class ReturnsTheMemoryOfItsArgument(Function):
    @staticmethod
    def forward(ctx, x):
        return vg.from_numpy(x._array[:, ::-1])

    @staticmethod
    def backward(ctx, grad):
        return grad[:, ::-1]


@wrong(M, by=("memory shared with arguments", "state between calls"))
def make_result_in_one_buffer():
    buffer = {}

    class InOneBuffer(Function):
        @staticmethod
        def forward(ctx, x):
            out = buffer.setdefault(x.shape, np.empty(x.shape))
            np.multiply(x._array, 3.0, out=out)
            return vg.from_numpy(out)

        @staticmethod
        def backward(ctx, grad):
            return grad * 3.0

    return InOneBuffer.apply


@wrong(M, by=("state between calls",))
def make_remembers_by_shape():
    seen = {}

    def remembered(x):
        key = x.shape
        if key not in seen:
            seen[key] = np.exp(raw(x))
        return x * seen[key]

    return remembered


@wrong(M, by=("state between calls", "gradients"))
def make_counts_its_calls():
    calls = [0]

    class Counting(Function):
        @staticmethod
        def forward(ctx, x):
            calls[0] += 1
            return x * 2.0

        @staticmethod
        def backward(ctx, grad):
            return grad * (2.0 if calls[0] < 2 else 2.5)

    return Counting.apply


@wrong(M, by=("state between calls", "arguments are not modified"))
def make_random_mask():
    generator = np.random.default_rng()

    def dropped(x):
        return x * (generator.uniform(size=x.shape) > 0.5) * 2.0

    return dropped


@wrong(M, by=("state between calls",))
def make_random_slope():
    generator = np.random.default_rng(7)

    class Noisy(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2.0

        @staticmethod
        def backward(ctx, grad):
            return grad * (2.0 + 1e-4 * generator.standard_normal())

    return Noisy.apply


@wrong(M, by=("nothing is left of a call",))
def make_keeps_a_diary():
    diary = []

    class Diary(Function):
        @staticmethod
        def forward(ctx, x):
            diary.append(raw(x))
            return x * 2.0

        @staticmethod
        def backward(ctx, grad):
            return grad * 2.0

    return Diary.apply


@wrong(M, by=("nothing is left of a call",))
def make_keeps_every_argument():
    kept = []

    def keeping(x):
        kept.append(x)
        return vg.exp(x)

    return keeping


@wrong(M, by=("nothing is left of a call",))
class RefersToItself(Function):
    @staticmethod
    def forward(ctx, x):
        y = x * 2.0
        ctx.own = ctx
        ctx.argument = x
        return y

    @staticmethod
    def backward(ctx, grad):
        return grad * 2.0


@wrong(
    M,
    by=(
        "the incoming gradient stays the caller's",
        "layouts of incoming gradients",
        "gradients",
        "a graph run twice",
        "linear in the incoming gradient",
    ),
)
class DoublesTheGradientInPlace(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2.0

    @staticmethod
    def backward(ctx, grad):
        array = grad._array
        array *= 2.0
        return grad


@wrong(M, by=("a graph run twice",))
class WearsOut(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.factor = 2.0
        return x * 2.0

    @staticmethod
    def backward(ctx, grad):
        factor, ctx.factor = ctx.factor, ctx.factor + 0.5
        return grad * factor


@wrong(M, by=("arguments are not modified", "a graph run twice"))
class GivesItsSavedValueAway(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.values = [raw(x)]
        return x * x

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * 2.0 * ctx.values.pop()


@wrong(M, by=("a graph run twice",))
class AddsUpGradients(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.total = 0.0
        return x * 2.0

    @staticmethod
    def backward(ctx, grad):
        ctx.total = ctx.total + grad * 2.0
        return ctx.total


@wrong(M, by=("layouts of incoming gradients",))
class ReadsGradientsAsBytes(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2.0

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        array = grad.detach().numpy()
        if not array.flags.c_contiguous and array.T.flags.c_contiguous:
            array = array.T.reshape(array.shape)
        return vg.Tensor(2.0 * array)


@wrong(V, by=("layouts of incoming gradients",))
class ReadsGradientsWithoutStrides(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2.0

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        array = grad.detach().numpy()
        flat = (
            np.lib.stride_tricks.as_strided(array, (array.size,), (abs(array.strides[-1]) if array.ndim else 0,))
            if array.ndim == 1
            else array
        )
        return vg.Tensor(2.0 * np.array(flat).reshape(array.shape))


@wrong(np.array([[0.7, -1.3], [1.9, 0.4]]), by="layouts of arguments")
class ReadsColumnsAsRows(Function):
    @staticmethod
    def forward(ctx, x):
        array = x._array
        if array.flags.f_contiguous and not array.flags.c_contiguous:
            array = array.T
        return vg.Tensor(array * np.array([[1.0, 2.0], [3.0, 4.0]]))

    @staticmethod
    def backward(ctx, grad):
        return grad * np.array([[1.0, 2.0], [3.0, 4.0]])


@wrong(V, by="layouts of arguments")
class ForgetsNegativeStrides(Function):
    @staticmethod
    def forward(ctx, x):
        array = x._array
        values = array[::-1] if array.ndim and array.strides[0] < 0 else array
        return vg.Tensor(values * 2.0)

    @staticmethod
    def backward(ctx, grad):
        return grad * 2.0


@wrong(M, np.array([0, 1, 0, 1]), by=("gradients", "indices"))
class TakesRowsLastGradientWins(Function):
    @staticmethod
    def forward(ctx, x, index):
        ctx.shape = x.shape
        ctx.save_for_backward(index)
        return vg.Tensor(raw(x)[raw(index)])

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        out = np.zeros(ctx.shape)
        out[raw(ctx.saved_tensors[0])] = grad.detach().numpy()
        return vg.Tensor(out), None


@wrong(M, np.array([0, 1]), by="indices")
class TakesRowsWithoutRepetition(Function):
    @staticmethod
    def forward(ctx, x, index):
        ctx.shape = x.shape
        ctx.save_for_backward(index)
        return vg.Tensor(raw(x)[raw(index)])

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        out = np.zeros(ctx.shape)
        out[raw(ctx.saved_tensors[0])] = grad.detach().numpy()
        return vg.Tensor(out), None


@wrong(V, np.array([2, 0]), by="indices")
class CountsOnlyFromTheFront(Function):
    @staticmethod
    def forward(ctx, x, index):
        ctx.size = x.shape[0]
        ctx.save_for_backward(index)
        return vg.Tensor(raw(x)[raw(index)])

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        places = np.arange(ctx.size)[:, None] == raw(ctx.saved_tensors[0])
        return vg.Tensor((places * grad.detach().numpy()).sum(-1)), None


@wrong(Z, by="gradients")
class ModulusOfRealNumbers(Function):
    @staticmethod
    def forward(ctx, z):
        ctx.save_for_backward(z)
        return vg.abs(z)

    @staticmethod
    def backward(ctx, grad):
        (z,) = ctx.saved_tensors
        return grad * vg.real(z) / vg.abs(z) + 0j


@wrong(Z, by="gradients")
class ImaginaryPartForgotten(Function):
    @staticmethod
    def forward(ctx, z):
        return vg.real(z) + vg.imag(z)

    @staticmethod
    def backward(ctx, grad):
        return grad + 0j


@wrong(M, by="complex numbers")
class ComplexSquareTriedOnRealNumbers(Function):
    """The conjugate is applied to the wrong factor."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        return vg.conj(grad) * 2.0 * ctx.saved_tensors[0]


@wrong(M, by="second derivatives")
class DetachesInBackward(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 3.0 * x.detach() ** 2


@wrong(M, by="second derivatives")
class WorksWithNumpyInBackward(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return vg.sin(x)

    @staticmethod
    def backward(ctx, grad):
        return vg.Tensor(raw(grad) * np.cos(raw(ctx.saved_tensors[0])))


@wrong(M, by="second derivatives")
class DetachesTheGradient(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return vg.sin(x)

    @staticmethod
    def backward(ctx, grad):
        return grad.detach() * vg.cos(ctx.saved_tensors[0])


@wrong(M, by="forward mode")
class TangentScaled(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return vg.exp(x)

    @staticmethod
    def backward(ctx, grad):
        return grad * vg.exp(ctx.saved_tensors[0])

    @staticmethod
    def jvp(ctx, tangent):
        return 2.0 * tangent * vg.exp(ctx.saved_tensors[0])


@wrong(M, by="forward mode")
class TangentSquared(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1.0

    @staticmethod
    def backward(ctx, grad):
        return grad * 1.0

    @staticmethod
    def jvp(ctx, tangent):
        return tangent * vg.abs(tangent)


@wrong(M, V, by="forward mode")
class TangentOfTheSecondSubtracted(Function):
    @staticmethod
    def forward(ctx, x, y):
        return x + y

    @staticmethod
    def backward(ctx, grad):
        return grad, grad

    @staticmethod
    def jvp(ctx, of_x, of_y):
        return of_x - of_y


@wrong(M, by=("undefined gradients", "gradients"))
class TwoResultsOfWhichNoneIsMissing(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2.0, x * 3.0

    @staticmethod
    def backward(ctx, first, second):
        if second is None:
            return first
        if first is None:
            return second * 3.0
        return first * 2.0 + second * 3.0


@wrong(M, by="gradients")
class TwoResultsExchanged(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return vg.sin(x), vg.cos(x)

    @staticmethod
    def backward(ctx, of_sine, of_cosine):
        (x,) = ctx.saved_tensors
        return of_cosine * vg.cos(x) - of_sine * vg.sin(x)


@wrong(M, by=("gradients", "undefined gradients"))
class TwoResultsOfDifferentWeight(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2.0, x.sum()

    @staticmethod
    def backward(ctx, first, second):
        return first * 2.0 + (second if first.detach().numpy().any() else 0.0 * second)


@wrong(V, by=("special points", "ties"))
class LargestCountsAll(Function):
    @staticmethod
    def forward(ctx, x):
        y = x.max()
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        return grad * (x == y)


@noted(V)
class LengthIsUndefinedAtZero(Function):
    @staticmethod
    def forward(ctx, x):
        y = vg.sqrt((x * x).sum())
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        return grad * x / y


@wrong(P, by="special points")
class RectifierWithoutNegatives(Function):
    @staticmethod
    def forward(ctx, x):
        return vg.maximum(x, 0.0)

    @staticmethod
    def backward(ctx, grad):
        return grad


@wrong(M, by="special points")
class KinkOfAnotherSlope(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return vg.abs(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * vg.where(x == 0.0, 5.0, vg.sign(x))


@wrong(M, by="shapes")
class WrongForOneElement(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.n = x.size
        return x - x.mean()

    @staticmethod
    def backward(ctx, grad):
        return grad - grad.mean() if ctx.n > 1 else grad


@wrong(M, by="shapes")
class WrongForRows(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * (2.0 if x.ndim == 0 or x.shape[0] != 1 else 1.0) * x


@wrong(M, V, by=("shapes", "gradients"))
class BroadcastsOnlyTheSecond(Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        of_x, of_y = raw(grad) * raw(y), raw(grad) * raw(x)
        while of_y.ndim > y.ndim:
            of_y = of_y.sum(0)
        if of_x.shape != x.shape:
            of_x = np.broadcast_to(of_x.ravel()[0], x.shape)
        if of_y.shape != y.shape:
            of_y = np.broadcast_to(of_y.ravel()[0], y.shape)
        return vg.Tensor(of_x), vg.Tensor(of_y)


@wrong(M, by="options")
def keepdims_wrong(x, keepdims=False):
    class Total(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.shape = x.shape
            return x.sum(keepdims=keepdims)

        @staticmethod
        def backward(ctx, grad):
            return (grad * (0.5 if keepdims else 1.0)).reshape(()).expand(*ctx.shape)

    return Total.apply(x)


@wrong(M, 0, by="options")
class CumulatesAlongTheFirst(Function):
    @staticmethod
    def forward(ctx, x, axis=0):
        ctx.axis = axis
        return vg.cumsum(x, axis)

    @staticmethod
    def backward(ctx, grad):
        axis = ctx.axis if ctx.axis >= 0 else 0
        return vg.flip(vg.cumsum(vg.flip(grad, axis), axis), axis), None


@wrong(M, by=("options", "special points"))
def leaky_for_one_slope(x, slope=0.1):
    class Leaky(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return vg.where(x > 0, x, slope * x)

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return vg.where(x > 0, grad, 0.1 * grad)

    return Leaky.apply(x)


@wrong(M, by="something to check")
def loses_its_history(x):
    return vg.Tensor(np.exp(x.detach().numpy()))


@wrong(np.arange(4), by="something to check")
def takes_no_floats(n):
    return n * 2


@wrong(M, by="something to check")
def returns_an_array(x):
    return np.exp(x.detach().numpy())


@wrong(M, by="gradients")
def stops_half_of_the_gradient(x):
    return x * vg.sigmoid(x.detach()) if hasattr(vg, "sigmoid") else x * vg.tanh(x.detach())


@wrong(M, by="gradients")
def rounds_with_a_straight_gradient(x):
    return x + (vg.round(x * 4.0) / 4.0 - x).detach()


@wrong({"weights": M, "bias": V}, by="gradients")
def forgets_the_bias(parameters):
    return vg.tanh(parameters["weights"] + parameters["bias"].detach())


@wrong([M, [P]], by="gradients")
def nested_and_half_detached(tensors):
    return tensors[0] * tensors[1][0].detach()


@wrong(M, by="arguments are not modified")
def clips_its_argument(x):
    with vg.no_grad():
        x.detach().clamp_(-1.0, 1.0) if hasattr(x, "clamp_") else np.clip(x._array, -1, 1, out=x._array)
    return x * 2.0


@wrong([M, P], by="arguments are not modified")
def empties_its_list(tensors):
    total = tensors[0] * 1.0
    while len(tensors) > 1:
        total = total + tensors.pop() * 2.0
    return total


@wrong(M, Q, by=("overwritten afterwards",))
def make_uses_the_weights_of_later():
    class Weighted(Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.w = lambda: w
            ctx.x = x.clone()
            return x * w

        @staticmethod
        @once_differentiable
        def backward(ctx, grad):
            return grad * ctx.w().detach(), (grad * ctx.x.detach()).sum(0) if grad.ndim > 1 else grad * ctx.x.detach()

    return Weighted.apply


@wrong(M, by=("gradients",))
def make_squash_marked_dirty_but_wrong():
    class Squash(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            x.tanh_()
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * (1.0 - x * x)

    return Squash.apply


@wrong(M, by=("in-place form", "gradients"))
def scale_unseen_(x):
    with vg.no_grad():
        x.mul_(2.0)
    return x


@wrong(M, by=("the same tensor twice", "gradients", "every subset of arguments that require grad"))
def make_twice():
    class ProductByIdentity(Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.same = x._array is y._array or np.shares_memory(x._array, y._array)
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx, grad):
            x, y = ctx.saved_tensors
            return (grad * y, None) if ctx.same else (grad * y, grad * x)

    return lambda x, y=None: ProductByIdentity.apply(x, x if y is None else y)


@wrong(M, M[::-1] * 0.9, by="the same tensor twice")
class ProductByIdentity(Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.same = np.shares_memory(x._array, y._array)
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        return (grad * y, None) if ctx.same else (grad * y, grad * x)


@wrong(Z, by=("gradients", "linear in the incoming gradient"))
class RealGradientsOnly(Function):
    @staticmethod
    def forward(ctx, z):
        return z * 2.0

    @staticmethod
    def backward(ctx, grad):
        return vg.real(grad) * 2.0 + 0j


@wrong(np.array([[2.0, 0.3], [0.4, 1.5]]), by="gradients")
class InverseWithoutTranspose(Function):
    @staticmethod
    def forward(ctx, a):
        y = vg.Tensor(np.linalg.inv(raw(a)))
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return -(y @ grad @ y)


@wrong(np.array([[2.0, 0.3], [0.4, 1.5]]), V[:2].copy(), by="gradients")
class ProductWithMatrixTransposed(Function):
    @staticmethod
    def forward(ctx, a, x):
        ctx.save_for_backward(a, x)
        return a @ x

    @staticmethod
    def backward(ctx, grad):
        a, x = ctx.saved_tensors
        return vg.outer(grad, x), a @ grad


@wrong(V, by="gradients")
class SoftmaxOfIndependentElements(Function):
    @staticmethod
    def forward(ctx, x):
        e = vg.exp(x)
        y = e / e.sum()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return grad * y * (1.0 - y)


@wrong(M, by="options")
def softmax_of_the_last_axis(x, axis=-1):
    class Softmax(Function):
        @staticmethod
        def forward(ctx, x):
            e = vg.exp(x - x.max(axis=axis, keepdims=True))
            y = e / e.sum(axis=axis, keepdims=True)
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, grad):
            (y,) = ctx.saved_tensors
            return y * (grad - (grad * y).sum(axis=-1, keepdims=True))

    return Softmax.apply(x)


@wrong(np.array([2.2, -1.0, 0.4, 0.9]), by="gradients")
class SortsItsGradient(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.order = np.argsort(raw(x))
        return vg.Tensor(raw(x)[ctx.order])

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return vg.Tensor(raw(grad)[ctx.order])


@wrong(M, by=("layouts of arguments", "arguments are not modified"))
def depends_on_requires_grad(x):
    return x * 2.0 if x.requires_grad else x * 2.5


@wrong(np.array([0.5, 1.5, 2.5]), by=("special points", "options"))
def interpolates_with_an_edge(x, low=0.0, high=3.0):
    class Edge(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return vg.clip(x, low, high)

        @staticmethod
        def backward(ctx, grad):
            return grad

    return Edge.apply(x)
