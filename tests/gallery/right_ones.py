"""Correct operators that checks tend to reject."""

import numpy as np

import viewgrad as vg
from viewgrad.autograd import Function, define_op, formula_function, once_differentiable
from viewgrad.autograd.graph import saved_tensors_hooks

from . import M, P, Q, V, Z, right

S = np.array([[2.0, 0.3], [0.4, 1.5]])


def raw(tensor):
    """Return a copy of the array of a tensor."""
    return tensor.detach().numpy().copy()


# -- steep, curved, and near to what is not smooth ---------------------------------------------------------------------


@right(np.array([0.012, 0.3, 5.0]))
def logarithm_near_its_pole(x):
    return vg.log(x)


@right(np.array([1e-6, 1e-3, 2.0]))
def logarithm_nearer_still(x):
    return vg.log(x) * x


@right(M)
def very_fast_sine(x):
    return vg.sin(1e6 * x)


@right(M)
def fast_sine_of_two(x):
    return vg.sin(1e4 * x) * vg.cos(2e3 * x)


@right(np.array([0.005, -0.005, 0.3, 1.005, 0.995]))
def kinks_nearby(x):
    return vg.abs(x) + vg.maximum(x, 1.0)


@right(np.array([0.0, 1.0, -0.5]))
def kink_at_an_argument(x):
    return vg.abs(x)


@right(np.array([0.3001, 0.29999, 4.0]))
def pole_nearby(x):
    return 1.0 / (x - 0.3)


@right(np.array([0.3001, 0.29999, 4.0]))
class PoleOfSecondOrder(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return 1.0 / (x - 0.3) ** 2

    @staticmethod
    def backward(ctx, grad):
        return -2.0 * grad / vg.conj(ctx.saved_tensors[0] - 0.3) ** 3


@right(np.array([1e-4, 0.2, 1.5]))
def cancellation(x):
    return (1.0 - vg.cos(x)) / x


@right(np.array([700.0, -700.0, 0.1]))
def huge_exponentials(x):
    return vg.exp(x * 0.5)


@right(np.array([1e-7, 1e7, 1.0]))
def many_orders_of_magnitude(x):
    return (x * x).sum()


@right(1e6 * M, 1e-6 * M)
def scales_apart(x, y):
    return x * y + y


@right(P)
def gamma_like(x):
    return vg.exp(x * vg.log(x) - x) * vg.sqrt(x)


@right(np.array([0.49999, 0.50001, 0.9]))
def steep_logistic(x):
    return 1.0 / (1.0 + vg.exp(-1e3 * (x - 0.5)))


@right(np.array([0.1, 0.2, 0.4]), rounds=20)
def logistic_map(x, rounds):
    for _ in range(rounds):
        x = 3.9 * x * (1.0 - x)
    return x


# -- subgradients ------------------------------------------------------------------------------------------------------


@right(M)
class Rectifier(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return vg.maximum(x, 0.0)

    @staticmethod
    def backward(ctx, grad):
        return grad * (ctx.saved_tensors[0] > 0)


@right(M)
class RectifierWithHalfAtZero(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return vg.maximum(x, 0.0)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * (0.5 * (x > 0) + 0.5 * (x >= 0))


@right(V)
class LargestFirstWins(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.place, ctx.shape = int(np.argmax(raw(x))), x.shape
        return vg.Tensor(np.max(raw(x)))

    @staticmethod
    def backward(ctx, grad):
        out = np.zeros(ctx.shape)
        out.reshape(-1)[ctx.place] = 1.0
        return grad * out


@right(V)
class LargestShared(Function):
    @staticmethod
    def forward(ctx, x):
        mask = raw(x) == raw(x).max()
        ctx.mask = mask / mask.sum()
        return vg.Tensor(raw(x).max())

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.mask


@right(M, M[::-1].copy())
def make_larger_of_two_first_wins():
    return define_op(
        "r_larger(self, other)",
        forward=np.maximum,
        derivatives={"self": "grad * (self >= other)", "other": "grad * (self < other)"},
        elementwise=True,
    )


@right(V)
class LengthWithZeroAtZero(Function):
    @staticmethod
    def forward(ctx, x):
        y = vg.Tensor(np.linalg.norm(raw(x)))
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        length = float(raw(y))
        return grad * x / length if length else 0.0 * x


@right(np.array([0.4, -1.0, 2.2, 0.9]))
class Sorted(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.order = np.argsort(raw(x), axis=-1, kind="stable")
        return vg.Tensor(np.take_along_axis(raw(x), ctx.order, -1))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        out = np.zeros(grad.shape)
        np.put_along_axis(out, ctx.order, raw(grad), -1)
        return vg.Tensor(out)


@right(np.array([0.4, -1.0, 2.2, 0.9, 0.1]))
class Median(Function):
    @staticmethod
    def forward(ctx, x):
        array = raw(x).reshape(-1)
        ctx.shape, ctx.place = x.shape, int(np.argsort(array)[(array.size - 1) // 2])
        return vg.Tensor(array[ctx.place])

    @staticmethod
    def backward(ctx, grad):
        out = np.zeros(ctx.shape)
        out.reshape(-1)[ctx.place] = 1.0
        return grad * out


@right(np.array([0.4, -1.0, 2.2, 0.9]), 2)
def largest_few(x, k):
    order = np.argsort(-x.detach().numpy(), kind="stable")[..., :k]
    return x[order] if x.ndim == 1 else x.reshape(-1)[order.reshape(-1)]


@right(M, -1.0, 1.0)
class Clip(Function):
    @staticmethod
    def forward(ctx, x, low, high):
        ctx.save_for_backward(x)
        ctx.bounds = low, high
        return vg.Tensor(np.minimum(np.maximum(raw(x), low), high))

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        low, high = ctx.bounds
        return grad * ((x >= low) & (x <= high) if low <= high else np.zeros(x.shape)), None, None


@right(M, delta=1.0)
def huber(x, delta):
    size = vg.abs(x)
    return vg.where(size < delta, 0.5 * x * x, delta * (size - 0.5 * delta))


@right(M)
def soft_threshold(x, level=0.5):
    return vg.sign(x) * vg.maximum(vg.abs(x) - level, 0.0)


@right(np.array([0.3, 1.7, 2.9]))
class PiecewiseLinear(Function):
    knots = np.array([0.0, 1.0, 2.0, 3.0])
    heights = np.array([0.0, 2.0, -1.0, 0.5])

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return vg.Tensor(np.interp(raw(x), PiecewiseLinear.knots, PiecewiseLinear.heights).astype(x.dtype))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x = raw(ctx.saved_tensors[0])
        slopes = np.concatenate([[0.0], np.diff(PiecewiseLinear.heights), [0.0]])
        return grad * slopes[np.searchsorted(PiecewiseLinear.knots, x, side="right")]


@right(M)
def piecewise_by_masks(x):
    y = vg.zeros(x.shape, dtype=x.dtype)
    y[x > 0] = x[x > 0] ** 2
    y[x <= 0] = 3.0 * x[x <= 0]
    return y


# -- precision ---------------------------------------------------------------------------------------------------------


@right(M)
class SinglePrecisionInside(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return vg.Tensor(np.tanh(raw(x).astype(np.float32)).astype(x.dtype))

    @staticmethod
    def backward(ctx, grad):
        return grad * (1.0 - vg.tanh(ctx.saved_tensors[0]) ** 2)


@right(M)
class SinglePrecisionThroughout(Function):
    @staticmethod
    def forward(ctx, x):
        y = vg.Tensor(np.exp(raw(x).astype(np.float32)))
        ctx.save_for_backward(y)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * ctx.saved_tensors[0]


@right(M.astype(np.float32))
def given_in_single_precision(x):
    return vg.sin(x) * vg.exp(x)


@right(M.astype(np.float32), V.astype(np.float32))
class GivenInSinglePrecision(Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x / (1.0 + y * y)

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        d = 1.0 + y * y
        return grad / d, -2.0 * grad * x * y / (d * d)


# -- forms -------------------------------------------------------------------------------------------------------------


@right(M)
def transposed(x):
    return x.T


@right(M)
def every_other(x):
    return x[..., ::2]


@right(M)
def itself(x):
    return x


@right(M)
def reshaped(x):
    return x.reshape(-1)


@right(M)
def rows(x):
    return list(x) if x.ndim else [x * 1.0]


@right(M)
def halves(x):
    return x.split(1, 0)


@right(M)
class ReturnsAView(Function):
    @staticmethod
    def forward(ctx, x):
        return x.T

    @staticmethod
    def backward(ctx, grad):
        return grad.T


@right(M, shape=(3, 2))
def view_or_copy(x, shape):
    return x.T.reshape(shape) * 1.0 if x.ndim > 1 else x.reshape(shape)


@right(np.array([0.7, 1.3, 2.1, 0.2]))
def windows(x):
    return x.unfold(0, 2, 1)


@right(Z)
def real_part(z):
    return z.real


@right(M)
def scaled_in_place(x):
    y = x.clone()
    y *= 2.0
    y[..., 0] += 1.0
    return y


@right(M)
def doubled_(x):
    return x.mul_(2.0)


@right(M, V)
def added_(x, y):
    x += y * 2.0
    return x


@right(M)
def make_squashed():
    class Squashed(Function):
        @staticmethod
        def forward(ctx, x):
            x.tanh_()
            ctx.mark_dirty(x)
            ctx.save_for_backward(x)
            return x

        @staticmethod
        def backward(ctx, grad):
            (y,) = ctx.saved_tensors
            return grad * (1.0 - y * y)

    return Squashed.apply


@right(M, V)
def make_row_with_inplace_form():
    return define_op(
        "r_blend(self, other)",
        forward=lambda x, y: x * np.exp(y),
        derivatives={"self": "grad * conj(exp(other))", "other": "grad * conj(result)"},
        inplace=True,
    )


@right(P)
def make_row_on_a_domain():
    return define_op(
        "r_inverse(self)",
        forward=lambda x: 1.0 / np.where(x > 0.1, x, 0.1),
        derivatives={"self": "-grad * square(result)"},
        domain=(0.2, 5.0),
        elementwise=True,
    )


@right(M, V)
def make_row_with_several_results():
    return define_op(
        "r_polar(x, y) -> (radius, angle, quadrant)",
        forward=lambda x, y: (np.hypot(x, y), np.arctan2(y, x), np.where(x < 0, 1, 0) + np.where(y < 0, 2, 0)),
        derivatives={
            "x": "polar_back(grad_radius, grad_angle, x, y, radius)[0]",
            "y": "polar_back(grad_radius, grad_angle, x, y, radius)[1]",
        },
        nondifferentiable_outputs=["quadrant"],
        elementwise=True,
    )


@formula_function
def polar_back(of_radius, of_angle, x, y, radius):
    """Return the gradients of x and y, zero at the origin."""
    where = vg.where if any(isinstance(a, vg.Tensor) for a in (of_radius, of_angle, x, y, radius)) else np.where
    safe = where(radius == 0.0, 1.0, radius)
    return of_radius * x / safe - of_angle * y / safe**2, of_radius * y / safe + of_angle * x / safe**2


@right(M, 0)
def make_row_with_integer_options():
    return define_op(
        "r_roll(self, shift)",
        forward=lambda x, shift: np.roll(x, shift),
        derivatives={"self": "rolled(grad, -shift)"},
        forward_derivative="auto_linear",
    )


@formula_function
def rolled(grad, shift):
    """Roll the elements, the last ones to the front."""
    if not isinstance(grad, vg.Tensor):
        return np.roll(grad, shift)
    flat = grad.reshape(-1)
    n = flat.shape[0]
    return flat[(np.arange(n) - shift) % n].reshape(grad.shape) if n else grad


@right([M, P])
def make_row_of_a_list():
    return define_op(
        "r_list(tensors)",
        forward=lambda tensors: 2.0 * tensors[0] + tensors[1],
        derivatives={"tensors": "both(grad, tensors.shapes)"},
        lists=["tensors"],
    )


@formula_function
def both(grad, shapes):
    """Return the gradients of the two operands, summed to their shapes."""

    def fitted(g, shape):
        while g.ndim > len(shape):
            g = g.sum(axis=0)
        for i, n in enumerate(shape):
            if n == 1 and g.shape[i] != 1:
                g = g.sum(axis=i, keepdims=True)
        return g

    return [fitted(2.0 * grad, shapes[0]), fitted(grad, shapes[1])]


@right(M)
class OnceDifferentiable(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return vg.sin(x)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return vg.Tensor(raw(grad) * np.cos(raw(ctx.saved_tensors[0])))


@right(M)
class NonDifferentiableResult(Function):
    @staticmethod
    def forward(ctx, x):
        y, sign = x * x, vg.sign(x)
        ctx.mark_non_differentiable(sign)
        ctx.save_for_backward(x)
        return y, sign

    @staticmethod
    def backward(ctx, grad, _):
        return grad * 2.0 * ctx.saved_tensors[0]


@right(M)
class IntegerResult(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        flat = raw(x).reshape(-1)
        place = int(np.argmax(flat))
        ctx.place = place
        return vg.Tensor(flat[place]), vg.Tensor(place)

    @staticmethod
    def backward(ctx, grad, _):
        out = np.zeros(ctx.shape)
        out.reshape(-1)[ctx.place] = 1.0
        return grad * out, None


@right(M)
def saves_in_another_way(x):
    with saved_tensors_hooks(lambda tensor: tensor.detach().numpy().copy(), vg.Tensor):
        return vg.exp(x) * x


@right(M, V)
class MissingGradientsHandled(Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.set_materialize_grads(False)
        return x * 2.0, y * 3.0

    @staticmethod
    def backward(ctx, first, second):
        return None if first is None else first * 2.0, None if second is None else second * 3.0


@right(M, V)
class LooksAtWhatIsNeeded(Function):
    @staticmethod
    def forward(x, y):
        return x * y

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        return grad * vg.conj(y) if ctx.needs_input_grad[0] else None, grad * vg.conj(x) if ctx.needs_input_grad[
            1
        ] else None

    @staticmethod
    def jvp(ctx, of_x, of_y):
        x, y = ctx.saved_tensors
        return of_x * y + x * of_y


@right(M, seed=3)
def dropout_by_seed(x, seed):
    mask = np.random.default_rng(seed).uniform(size=x.shape) > 0.4
    return x * mask / 0.6


@right(M)
def make_mask_drawn_once():
    mask = np.random.default_rng(5).uniform(0.5, 1.5, 1000)
    return lambda x: x * mask[: x.size].reshape(x.shape)


@right(M)
def make_counts_its_calls_to_no_effect():
    calls = [0]

    def counted(x):
        calls[0] += 1
        return vg.sin(x)

    return counted


@right(V)
def make_remembers_what_depends_on_shapes():
    weights = {}

    def weighted(x):
        if x.shape not in weights:
            weights[x.shape] = np.arange(1.0, x.size + 1.0).reshape(x.shape)
        return x * weights[x.shape]

    return weighted


@right({"weights": M, "bias": V, "name": "layer"}, scale=2.0)
def layer(parameters, scale):
    return vg.tanh(parameters["weights"] * scale + parameters["bias"])


@right([M, (P, [V])])
def nested(tensors):
    first, (second, (third,)) = tensors
    return {"sum": first + second, "product": (first * third, second)}


@right(M, np.array([1, 0, 1]))
def takes_rows(x, index):
    return x[index]


@right(M, np.array([[True, False, True], [False, True, True]]))
def masked(x, mask):
    return vg.where(mask, x * x, -x)


@right(M, np.array([[1, 0, 1], [1, 1, 0]]))
class Scatter(Function):
    @staticmethod
    def forward(ctx, x, index):
        if x.shape != index.shape:
            raise ValueError("an index for each element")
        ctx.save_for_backward(index)
        out = np.zeros(4, x.dtype)
        np.add.at(out, raw(index), raw(x))
        return vg.Tensor(out)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return vg.Tensor(raw(grad)[raw(ctx.saved_tensors[0])]), None


@right(P, 3)
def whole_power(x, n):
    result = vg.ones(x.shape, dtype=x.dtype)
    for _ in range(abs(n)):
        result = result * x
    return result if n >= 0 else 1.0 / result


@right(M, axis=0, keepdims=False)
def spread(x, axis=None, keepdims=False, ddof=0):
    n = x.size if axis is None else np.prod([x.shape[i] for i in np.atleast_1d(axis)])
    return ((x - x.mean(axis=axis, keepdims=True)) ** 2).sum(axis=axis, keepdims=keepdims) / (n - ddof)


@right(M)
def softmax(x, axis=-1):
    e = vg.exp(x - x.detach().max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


@right(M)
class LogSumExp(Function):
    @staticmethod
    def forward(ctx, x):
        array = raw(x)
        top = array.max()
        y = vg.Tensor(np.asarray(np.log(np.exp(array - top).sum()) + top))
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        return grad * vg.exp(x - y)


@right(V, V[::-1].copy())
def correlated(x, y):
    if x.ndim != 1:
        raise ValueError("one-dimensional arguments only")
    return vg.outer(x, y).sum(axis=0)


@right(M)
def make_real_only():
    class RealOnly(Function):
        @staticmethod
        def forward(ctx, x):
            if x.dtype.kind == "c":
                raise TypeError("real numbers only")
            ctx.save_for_backward(x)
            return x**2

        @staticmethod
        def backward(ctx, grad):
            return 2.0 * grad * ctx.saved_tensors[0]

    return RealOnly.apply


# -- complex numbers ---------------------------------------------------------------------------------------------------


@right(Z)
def holomorphic(z):
    return vg.exp(z) * z


@right(Z)
def modulus(z):
    return vg.abs(z)


@right(Z)
def squared_modulus(z):
    return (z * vg.conj(z)).real


@right(Z)
class Conjugated(Function):
    @staticmethod
    def forward(ctx, z):
        return vg.Tensor(np.conj(raw(z)))

    @staticmethod
    def backward(ctx, grad):
        return vg.conj(grad)

    @staticmethod
    def jvp(ctx, tangent):
        return vg.conj(tangent)


@right(Z)
class ComplexCube(Function):
    @staticmethod
    def forward(ctx, z):
        ctx.save_for_backward(z)
        return z * z * z

    @staticmethod
    def backward(ctx, grad):
        (z,) = ctx.saved_tensors
        return grad * vg.conj(3.0 * z * z)


@right(M)
def real_to_complex(x):
    return vg.exp(1j * x)


@right(Z, M[:, :2].copy())
def mixed(z, x):
    return z * x + x


@right(np.arange(4.0))
class Spectrum(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.n = x.shape[-1]
        return vg.Tensor(np.fft.rfft(raw(x)))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = raw(grad)
        k = np.arange(g.shape[-1])
        waves = np.exp(2j * np.pi * np.outer(k, np.arange(ctx.n)) / ctx.n)
        return vg.Tensor((g @ waves).real)


# -- linear algebra, through NumPy -------------------------------------------------------------------------------------


@right(S)
class Inverse(Function):
    @staticmethod
    def forward(ctx, a):
        y = vg.Tensor(np.linalg.inv(raw(a)))
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        turned = vg.conj(y).mT
        return -(turned @ grad @ turned)


@right(S, V[:2].copy())
def solved(a, b):
    (p, q), (r, s) = (a[0, 0], a[0, 1]), (a[1, 0], a[1, 1])
    det = p * s - q * r
    return vg.stack([s * b[0] - q * b[1], p * b[1] - r * b[0]]) / det


@right(M, Q)
def matrix_times_vector(a, x):
    return a @ x


@right(np.array([0.5, 1.5, 2.5, 3.5]))
def cumulated(x):
    y = x.clone()
    for i in range(1, x.shape[0] if x.ndim else 1):
        y[i] += 0.5 * y[i - 1]
    return y


@right(np.linspace(-1, 1, 300).reshape(15, 20))
def large(x):
    return vg.tanh(x) * x.sum(axis=0)


@right(np.linspace(0.1, 1, 40), np.linspace(1, 2, 40))
class LargePair(Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return vg.log(x) * y

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        return grad * vg.conj(y / x), grad * vg.conj(vg.log(x))
