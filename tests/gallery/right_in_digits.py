"""Correct operators that are steep, ill-conditioned, cancelling, or on the edge of a domain."""

import numpy as np

import viewgrad as vg
from viewgrad.autograd import Function, InPlace, define_op, once_differentiable

from . import M, P, Q, V, Z, right

WAVE = np.array([0.4, -0.9, 1.3, 0.2, -0.5, 0.8])
MORE = np.array([0.6, -0.4, 1.5])
HILBERT = 1.0 / (np.arange(5)[:, None] + np.arange(5) + 1)


def raw(tensor):
    """Return a copy of the array of a tensor."""
    return tensor.detach().numpy().copy()


@right(V)
def fast_sine(x):
    return vg.sin(1e6 * x)


@right(V)
def make_shrunk():
    return define_op(
        "shrunk(self, *, by=0.5)",
        forward=lambda x, *, by=0.5: np.sign(x) * np.maximum(np.abs(x) - by, 0.0),
        derivatives={"self": "where(abs(self) > by, grad, 0.0 * grad)"},
    )


@right(V)
class CubicRoot(Function):
    """Solves y**3 + y = x by Newton's method; the derivative comes from the implicit function theorem."""

    @staticmethod
    def forward(ctx, x):
        target = raw(x)
        y = np.cbrt(target)
        for _ in range(60):
            y = y - (y**3 + y - target) / (3 * y * y + 1)
        result = vg.Tensor(y.astype(target.dtype))
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return grad / (3 * y * y + 1)


@right(np.array([0.3, 1.7, -0.2]))
class LambertW(Function):
    """Refuses arguments below -1/e."""

    @staticmethod
    def forward(ctx, x):
        z = raw(x).astype(np.float64)
        if np.any(z < -1 / np.e + 1e-9) or not np.all(np.isfinite(z)):
            raise ValueError("no real value")
        w = np.where(z < 1, np.sqrt(2 * np.maximum(np.e * z + 1, 0)) - 1, np.log(np.maximum(z, 1e-300)))
        for _ in range(100):
            e = np.exp(np.minimum(w, 700))
            f = w * e - z
            step = f / (e * (w + 1) - (w + 2) * f / np.where(w == -1, 1, 2 * w + 2))
            w = w - np.where(np.isfinite(step), step, 0)
        result = vg.Tensor(w.astype(x.dtype))
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx, grad):
        (w,) = ctx.saved_tensors
        return grad / (vg.exp(w) * (1 + w))


@right(np.array([[0.3, 1.2], [1.6, 0.4]]), np.array([[0.2, 1.0, 0.7], [0.5, -0.3, 0.9], [1.1, 0.6, -0.8]]))
def bilinear(places, image):
    """Interpolate between pixels; constant outside."""
    if places.ndim != 2 or places.shape[1] != 2 or image.ndim != 2 or min(image.shape) < 2:
        raise ValueError("places (n, 2) in an image, please")
    row = vg.clip(places[:, 0], 0.0, image.shape[0] - 1.0)
    column = vg.clip(places[:, 1], 0.0, image.shape[1] - 1.0)
    i = np.minimum(np.floor(raw(row)).astype(int), image.shape[0] - 2)
    j = np.minimum(np.floor(raw(column)).astype(int), image.shape[1] - 2)
    a, b = row - i, column - j
    return (
        image[i, j] * (1 - a) * (1 - b)
        + image[i, j + 1] * (1 - a) * b
        + image[i + 1, j] * a * (1 - b)
        + image[i + 1, j + 1] * a * b
    )


@right(WAVE)
def second_moment_of_order(x):
    """An L-moment."""
    n = x.shape[0]
    weights = (2 * np.arange(n) - n + 1) / (n * max(n - 1, 1))
    return (vg.sort(x) * weights).sum()


@right(np.array([0.4, -0.9, 1.3, 0.2, -0.5]))
def median_distance(x):
    return vg.median(vg.abs(x - vg.median(x)))


@right(M, 2)
def sum_of_largest_few(x, k):
    return vg.sort(x, axis=-1)[..., -k:].sum(-1)


@right(M, M[::-1].copy())
def log_domain_steps(log_start, log_moves):
    """Two steps of a chain of states, in logarithms."""
    state = log_start
    for _ in range(2):
        state = vg.logsumexp(state[..., :, None] + log_moves[..., None, :], -2)
    return vg.log_softmax(state, -1)


@right(V)
def stairs(x):
    return vg.floor(3 * x) / 3 + 0.5 * x


@right(V)
def rounded_only(x):
    return vg.round(4 * x) / 4


@right(V)
class SingleInside(Function):
    """Computes in single precision for any dtype."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return vg.Tensor(np.tanh(raw(x).astype(np.float32)).astype(x.dtype))

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * (1 - vg.tanh(x) ** 2)


@right(np.array([0.2, 0.7, 0.96]))
def great_circle(h):
    """Infinite slopes at 0 and 1."""
    return 2 * vg.arcsin(vg.sqrt(h))


@right(Q)
def entropy_by_xlogy(p):
    return -vg.xlogy(p, p).sum()


@right(V)
def bump(x):
    """Smooth, and 0 outside (-1, 1)."""
    inside = np.abs(raw(x)) < 1
    safe = vg.where(inside, x, 0.0 * x.detach())
    return vg.where(inside, vg.exp(-1 / (1 - safe * safe)), vg.zeros_like(x))


@right(V)
def cubed_ramp(x):
    return vg.maximum(x, 0.0) ** 3


@right(V)
def sampled(x):
    """A Monte Carlo mean over fixed samples."""
    numbers = np.random.default_rng(11).normal(size=(64, *x.shape))
    return vg.tanh(x + numbers).mean(0)


@right(M)
def make_seeded_dropout():
    def op(x, *, rate=0.4, seed=3):
        if not 0 <= rate < 1:
            raise ValueError("a rate, please")
        keep = np.random.default_rng(abs(int(seed))).uniform(size=x.shape) >= rate
        return x * keep / (1 - rate)

    return op


@right(np.arange(1.0, 13.0).reshape(3, 4) * 0.3)
def inner_window(x):
    """A view with an offset and other strides."""
    return x[1:, ::-2].T


@right(WAVE)
def stacked_windows(x):
    n = x.shape[0]
    if x.ndim != 1 or n < 3:
        raise ValueError("three at least, please")
    return vg.stack([x[i : i + 3] for i in range(n - 2)])


@right(np.linspace(-1.0, 1.0, 40), np.linspace(0.2, 2.0, 50))
def large_table(a, b):
    return vg.cos(a[:, None] * b) * vg.exp(-b)


@right(np.array([0.9, -1.1, 0.3]))
def high_powers(x):
    return x[..., None] ** np.arange(24)


@right(Z)
def loudness(z):
    return vg.log(vg.real(z * vg.conj(z)) + 1e-3)


@right(Z)
def turned(z):
    return vg.angle(z) * vg.abs(z)


@right(HILBERT, np.array([1.0, -1.0, 0.5, 0.2, 0.3]))
def hilbert_solved(a, b):
    return vg.linalg.solve(a, b)


@right(np.array([1.02, 2.97, 5.01, 0.5]))
def product_of_roots(x):
    """Wilkinson's polynomial of degree 10, multiplied out: digits cancel near each root."""
    return vg.polyval(np.poly(np.arange(1, 11)), x)


@right(V)
def make_exp_less_its_line():
    """exp(x) - 1 - x, by a series near 0."""

    def forward(x):
        small = np.abs(x) < 0.5
        series = _line_series(np.where(small, x, 0.0))
        return np.where(small, series, np.expm1(x) - x)

    return define_op("exp_less_its_line(x)", forward=forward, derivatives={"x": "grad * expm1(x)"}, elementwise=True)


def _line_series(x):
    term, total = x * x / 2, x * x / 2
    for k in range(3, 22):
        term = term * x / k
        total = total + term
    return total


@right(Q)
def to_itself(x):
    return x**x


@right(Q)
def gamma_ratio(x):
    return vg.exp(vg.gammaln(x + 0.5) - vg.gammaln(x))


@right(V)
def signed_root(x):
    return vg.sign(x) * vg.sqrt(vg.abs(x))


@right(WAVE)
def triangle_wave_of_period(x):
    return 4 * vg.abs(x / 0.7 - vg.floor(x / 0.7 + 0.5)) - 1


@right(M)
def top_eigenvalue(x):
    return vg.linalg.eigvalsh(x @ x.T + np.diag(np.arange(1.0, x.shape[0] + 1)))[-1]


@right(WAVE)
def circular_mean(x):
    return vg.arctan2(vg.sin(x).sum(), vg.cos(x).sum())


@right(P)
def geometric_mean(x):
    return vg.exp(vg.log(x).mean(-1))


@right(np.array([0.8, 2.0, -1.1]), 0.7)
def kepler_right(mean, eccentricity):
    """Newton steps without a history, and one with."""
    if not 0 <= float(eccentricity) < 0.95:
        raise ValueError("an ellipse, please")
    e = float(eccentricity)
    return _Kepler.apply(mean, e)


class _Kepler(Function):
    @staticmethod
    def forward(ctx, mean, e):
        anomaly = raw(mean).astype(np.float64)
        for _ in range(200):
            anomaly = anomaly - (anomaly - e * np.sin(anomaly) - raw(mean)) / (1 - e * np.cos(anomaly))
        result = vg.Tensor(anomaly.astype(mean.dtype))
        ctx.e = e
        ctx.save_for_backward(result)
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (anomaly,) = ctx.saved_tensors
        return grad / (1 - ctx.e * vg.cos(anomaly)), None


@right(np.array([1.0, 0.0]), 8)
def oscillator(state, steps):
    """A few Runge-Kutta steps."""
    if state.shape != (2,) or not 0 <= steps <= 20:
        raise ValueError("place and speed, please")

    def slope(s):
        return vg.stack([s[1], -vg.sin(s[0]) - 0.1 * s[1]])

    h = 0.1
    for _ in range(steps):
        k1 = slope(state)
        k2 = slope(state + h / 2 * k1)
        state = state + h * k2
    return state


@right(V)
class ThereAndBack(Function):
    """Writes to its argument, and declares it."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x.clone())
        ctx.mark_dirty(x)
        x.copy_(vg.sin(x.detach()))
        return x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * vg.cos(x)


@right(V)
def make_cached_by_content():
    known = {}

    def op(x):
        key = raw(x).tobytes(), x.shape, x.dtype
        if key not in known:
            known.clear()
            known[key] = np.exp(-(raw(x) ** 2))
        return x * known[key] * 0 + vg.exp(-x * x)

    return op


@right(V, MORE)
def plain_difference_of_squares(a, b):
    return (a - b) * (a + b)


@right(V)
def make_gently_in_place():
    return define_op(
        "gently_in_place(self, *, rate=0.1)",
        forward=lambda x, *, rate=0.1: x - rate * np.sin(x),
        derivatives={"self": "grad * (1 - rate * cos(self))"},
        inplace=InPlace(derivatives={"self": "grad * (1 - rate * cos(self))"}),
        forward_derivative="auto_element_wise",
    )


@right(np.array([1e-9, 3.0, 1e6]))
def far_apart(x):
    return vg.log1p(x) / (1 + vg.sqrt(vg.abs(x)))


@right(WAVE)
def gini(x):
    """The Gini coefficient of exponentials, which are positive."""
    values = vg.sort(vg.exp(vg.clip(x, -20.0, 20.0)))
    n = values.shape[0]
    return ((2 * np.arange(1, n + 1) - n - 1) * values).sum() / (n * values.sum())


@right(np.array([5.3, 7.1, 2.2]), np.array([2.0, 1.5, 0.9]))
def whole_and_rest(a, b):
    return vg.floor_divide(a, b) + vg.remainder(a, b) / b


@right(V)
def nearly_one(x):
    """The derivative is tiny, but the value is not."""
    return 1e6 + vg.tanh(x) * 1e-3


@right(WAVE)
def spectrum_power(x):
    if x.ndim != 1:
        raise ValueError("a signal, please")
    return vg.abs(vg.fft.fft(x)) ** 2


@right(V)
def log_of_cosh(x):
    a = vg.abs(x)
    return a + vg.log1p(vg.exp(-2 * a)) - np.log(2)


@right(V)
def softplus_of_kinks(x):
    """Smooth, but composed of two parts with a kink at 0."""
    return vg.log1p(vg.exp(-vg.abs(x))) + vg.maximum(x, 0.0)


@right(Q)
def root_by_newton(x):
    y = 0.5 * x + 0.5
    for _ in range(30):
        y = 0.5 * (y + x / y)
    return y


# --- naive compositions, which lose digits or overflow where others do not ------------------------------------------


@right(Q)
def root_of_one_and_less_one(x):
    return vg.sqrt(1 + x) - 1


@right(V)
def naive_arsinh(x):
    return vg.log(x + vg.sqrt(x * x + 1))


@right(M)
def free_energy(x):
    return vg.log(vg.exp(x).sum(-1))


@right(Q)
def log_one_less_exp(x):
    """log(1 - exp(-x)), which loses all digits of small arguments."""
    return vg.log(1 - vg.exp(-x))


@right(V)
def cosh_over_sinh_less_one_over(x):
    """Langevin's function: no correct digits near 0, overflow for large arguments."""
    return vg.cosh(x) / vg.sinh(x) - 1 / x


@right(V)
def sinh_by_exponentials(x):
    return (vg.exp(x) - vg.exp(-x)) / 2


@right(V)
def log_of_cosh_naively(x):
    return vg.log(vg.cosh(x))


@right(M)
def shares_of_exponentials(x):
    return vg.exp(x) / vg.exp(x).sum()


@right(V, reference=lambda x: np.exp(x) - 1.0)
def make_expm1_with_a_naive_reference():
    return define_op("expm1_with_a_naive_reference(x)", forward=np.expm1, derivatives={"x": "grad * (result + 1)"})
