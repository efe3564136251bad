"""Correct operators as people first write them: NumPy and SciPy inside, numbers on the context, one shape in mind.

`CALLS` has the call of each and its author's declarations.
"""

import math

import numpy as np
import scipy.integrate
import scipy.interpolate
import scipy.linalg
import scipy.ndimage
import scipy.optimize
import scipy.signal
import scipy.sparse
import scipy.sparse.linalg
import scipy.spatial
import scipy.special
import scipy.stats

import viewgrad as vg
from viewgrad.autograd import Function, once_differentiable

from .newcomers import registering

CALLS = {}
call = registering(CALLS)

X = np.array([0.5, -1.15, 1.95, 0.3, -0.55])
Y = np.array([1.05, 0.7, -0.85, 0.2, 1.75])
PLUS = np.array([0.7, 1.55, 2.25, 0.45, 1.1])
M = np.array([[0.6, -1.25, 2.05], [1.75, 0.5, -0.65]])
N = np.array([[0.3, 0.85], [-0.7, 1.2], [0.4, -0.15]])
SIGNAL = np.sin(0.9 * np.arange(9.0)) + 0.05 * np.arange(9.0)
IMAGE = np.cos(1.4 * np.arange(20.0)).reshape(4, 5)
POINTS = np.array([[0.1, 0.2], [1.1, -0.3], [0.7, 0.9], [-0.4, 0.6]])


# -- NumPy inside ------------------------------------------------------------------------------------------------------


@call(X)
class Softplus(Function):
    @staticmethod
    def forward(ctx, x):
        x = np.asarray(x.detach())
        ctx.x = x
        return vg.Tensor(np.logaddexp(0, x))

    @staticmethod
    def backward(ctx, grad):
        return grad * vg.Tensor(scipy.special.expit(ctx.x))


@call(M)
class RowEntropy(Function):
    @staticmethod
    def forward(ctx, x):
        a = x.detach().numpy()
        p = scipy.special.softmax(a, axis=1)
        ctx.p = p
        ctx.h = -(p * np.log(p)).sum(axis=1)
        return vg.Tensor(ctx.h)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        p = ctx.p
        return vg.Tensor(-grad.numpy()[:, None] * p * (np.log(p) + ctx.h[:, None]))


@call(X, np.array([1.0, 0.0, 1.0, 1.0, 0.0]) > 0.5)
class LogisticLossOfLabels(Function):
    @staticmethod
    def forward(ctx, x, labels):
        s = np.where(labels.numpy(), 1.0, -1.0)
        z = x.detach().numpy() * s
        ctx.slope = -s * scipy.special.expit(-z) / len(z)
        return vg.Tensor(np.logaddexp(0, -z).mean())

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return vg.Tensor(grad.item() * ctx.slope), None


@call(M, N)
class MatMulPlain(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.a = a.detach().numpy().copy()
        ctx.b = b.detach().numpy().copy()
        return vg.Tensor(ctx.a.dot(ctx.b))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = grad.numpy()
        return vg.Tensor(g.dot(ctx.b.T)), vg.Tensor(ctx.a.T.dot(g))


@call(X)
class Standardized(Function):
    @staticmethod
    def forward(ctx, x):
        a = x.detach().numpy()
        ctx.std = a.std() + 1e-8
        ctx.z = (a - a.mean()) / ctx.std
        ctx.true = a.std()
        return vg.Tensor(ctx.z)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = grad.numpy()
        n = g.size
        return vg.Tensor((g - g.mean() - ctx.z * (g * ctx.z).sum() / n * ctx.std / ctx.true) / ctx.std)


@call(X, 0.5)
class HuberOfResiduals(Function):
    @staticmethod
    def forward(ctx, r, delta=1.0):
        a = r.detach().numpy()
        ctx.g = np.clip(a, -delta, delta)
        return vg.Tensor(np.where(np.abs(a) <= delta, 0.5 * a**2, delta * (np.abs(a) - 0.5 * delta)).sum())

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * vg.Tensor(ctx.g), None


@call(IMAGE)
class LaplacianEnergy(Function):
    @staticmethod
    def forward(ctx, image):
        ctx.filtered = scipy.ndimage.laplace(image.detach().numpy(), mode="constant")
        return vg.Tensor((ctx.filtered**2).sum() / 2)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * vg.Tensor(scipy.ndimage.laplace(ctx.filtered, mode="constant"))


@call(SIGNAL, np.array([0.3, 0.5, -0.2]))
class FirFilter(Function):
    @staticmethod
    def forward(ctx, x, b):
        x, b = x.detach().numpy(), b.detach().numpy()
        ctx.save = x, b
        return vg.Tensor(scipy.signal.lfilter(b, [1.0], x))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x, b = ctx.save
        g = grad.numpy()
        gx = scipy.signal.lfilter(b, [1.0], g[::-1])[::-1].copy()
        gb = np.array([g[k:] @ x[: len(x) - k] for k in range(len(b))])
        return vg.Tensor(gx), vg.Tensor(gb)


@call(SIGNAL, 3)
class MedianSmooth(Function):
    @staticmethod
    def forward(ctx, x, k):
        assert k % 2 == 1 and x.ndim == 1
        a = np.pad(x.detach().numpy(), k // 2, mode="edge")
        windows = np.lib.stride_tricks.sliding_window_view(a, k)
        which = np.argsort(windows, axis=1)[:, k // 2]
        ctx.places = np.clip(np.arange(len(windows)) + which - k // 2, 0, len(windows) - 1)
        ctx.n = x.shape[0]
        return vg.Tensor(windows[np.arange(len(windows)), which])

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = np.zeros(ctx.n)
        np.add.at(g, ctx.places, grad.numpy())
        return vg.Tensor(g), None


@call(PLUS)
class GammaFunction(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.x = x.detach().numpy()
        ctx.y = scipy.special.gamma(ctx.x)
        return vg.Tensor(ctx.y)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return vg.Tensor(grad.numpy() * ctx.y * scipy.special.digamma(ctx.x))


@call(np.array([0.2, 0.55, 0.9]))
class NormalQuantile(Function):
    @staticmethod
    def forward(ctx, p):
        ctx.z = scipy.stats.norm.ppf(p.detach().numpy())
        return vg.Tensor(ctx.z)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return vg.Tensor(grad.numpy() / scipy.stats.norm.pdf(ctx.z))


@call(POINTS)
class PairDistances(Function):
    @staticmethod
    def forward(ctx, points):
        p = points.detach().numpy()
        ctx.p = p
        ctx.d = scipy.spatial.distance.pdist(p)
        return vg.Tensor(ctx.d)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = grad.numpy()
        out = np.zeros_like(ctx.p)
        k = 0
        for i in range(len(ctx.p)):
            for j in range(i + 1, len(ctx.p)):
                step = g[k] * (ctx.p[i] - ctx.p[j]) / ctx.d[k]
                out[i] += step
                out[j] -= step
                k += 1
        return vg.Tensor(out)


@call(
    np.array([4.0, 5.0, 6.0, 5.5]),
    np.array([-1.0, -0.8, -1.2]),
    np.array([-0.5, -1.1, -0.9]),
    np.array([1.0, -0.5, 0.7, 0.2]),
)
class ThomasSolve(Function):
    @staticmethod
    def banded(d, u, l):
        ab = np.zeros((3, len(d)))
        ab[0, 1:], ab[1], ab[2, :-1] = u, d, l
        return ab

    @staticmethod
    def forward(ctx, d, u, l, b):
        d, u, l, b = (t.detach().numpy() for t in (d, u, l, b))
        x = scipy.linalg.solve_banded((1, 1), ThomasSolve.banded(d, u, l), b)
        ctx.args = d, u, l, x
        return vg.Tensor(x)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        d, u, l, x = ctx.args
        z = scipy.linalg.solve_banded((1, 1), ThomasSolve.banded(d, l, u), grad.numpy())
        return vg.Tensor(-z * x), vg.Tensor(-z[:-1] * x[1:]), vg.Tensor(-z[1:] * x[:-1]), vg.Tensor(z)


@call(np.array([3.0, 4.0, 5.0, 2.5]), np.array([1.0, -0.4, 0.6]))
class SparseLeastSquares(Function):
    """x of min |A x - b| + ridge, for a fixed sparse A with values on its entries."""

    ROWS, COLUMNS = np.array([0, 1, 2, 2]), np.array([0, 1, 0, 1])

    @staticmethod
    def forward(ctx, values, b):
        places = SparseLeastSquares.ROWS, SparseLeastSquares.COLUMNS
        a = scipy.sparse.csc_matrix((values.detach().numpy(), places), shape=(3, 2))
        gram = (a.T @ a + 0.1 * scipy.sparse.eye(2)).tocsc()
        x = scipy.sparse.linalg.spsolve(gram, a.T @ b.detach().numpy())
        ctx.args = a, gram, x, b.detach().numpy()
        return vg.Tensor(x)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        a, gram, x, b = ctx.args
        z = scipy.sparse.linalg.spsolve(gram, grad.numpy())
        r = b - a @ x
        az = a @ z
        rows, columns = SparseLeastSquares.ROWS, SparseLeastSquares.COLUMNS
        return vg.Tensor(r[rows] * z[columns] - az[rows] * x[columns]), vg.Tensor(az)


@call(np.array(1.3), np.array(0.4))
class EllipticIntegral(Function):
    """The incomplete integral of the first kind, by quadrature."""

    @staticmethod
    def forward(ctx, phi, m):
        ctx.phi, ctx.m = phi.item(), m.item()
        f = lambda t: 1 / math.sqrt(1 - ctx.m * math.sin(t) ** 2)
        return vg.Tensor(scipy.integrate.quad(f, 0, ctx.phi, epsabs=1e-13, epsrel=1e-13)[0])

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        phi, m = ctx.phi, ctx.m
        dm = scipy.integrate.quad(lambda t: 0.5 * math.sin(t) ** 2 * (1 - m * math.sin(t) ** 2) ** -1.5, 0, phi)[0]
        return grad / math.sqrt(1 - m * math.sin(phi) ** 2), grad * dm


@call(np.array([1.2, 0.7, 2.0]), np.array(0.3))
class RateToPrice(Function):
    @staticmethod
    def forward(ctx, cash, rate):
        c, r = cash.detach().numpy(), rate.item()
        t = np.arange(1, len(c) + 1)
        ctx.discount = (1 + r) ** -t
        ctx.slope = -(c * t * (1 + r) ** (-t - 1)).sum()
        return vg.Tensor((c * ctx.discount).sum())

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.discount, grad * ctx.slope


@call(np.array([0.9, 1.4, 2.2]), 2)
class NewtonCubeRoot(Function):
    @staticmethod
    def forward(ctx, a, extra):
        a = a.detach().numpy()
        x = np.sign(a) * np.abs(a) ** (1 / 3)
        for _ in range(extra):
            x = x - (x**3 - a) / (3 * x**2)
        ctx.x = x
        return vg.Tensor(x)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return vg.Tensor(grad.numpy() / (3 * ctx.x**2)), None


@call(X)
class SortedDescending(Function):
    @staticmethod
    def forward(ctx, x):
        a = x.detach().numpy()
        ctx.order = np.argsort(-a)
        return vg.Tensor(a[ctx.order])

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = np.empty(len(ctx.order))
        g[ctx.order] = grad.numpy()
        return vg.Tensor(g)


@call(X)
class LogSumExpScalar(Function):
    @staticmethod
    def forward(ctx, x):
        a = x.detach().numpy()
        y = scipy.special.logsumexp(a)
        ctx.p = np.exp(a - y)
        return vg.Tensor(float(y))

    @staticmethod
    def backward(ctx, grad):
        return grad * vg.Tensor(ctx.p)


@call(IMAGE, 2)
class BlockSum(Function):
    @staticmethod
    def forward(ctx, image, k):
        a = image.detach().numpy()
        h, w = a.shape[0] // k, a.shape[1] // k
        ctx.shape, ctx.k = a.shape, k
        return vg.Tensor(a[: h * k, : w * k].reshape(h, k, w, k).sum(axis=(1, 3)))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = np.zeros(ctx.shape)
        big = np.kron(grad.numpy(), np.ones((ctx.k, ctx.k)))
        g[: big.shape[0], : big.shape[1]] = big
        return vg.Tensor(g), None


@call(X, Y)
class PearsonCorrelation(Function):
    @staticmethod
    def forward(ctx, x, y):
        a, b = x.detach().numpy(), y.detach().numpy()
        a, b = a - a.mean(), b - b.mean()
        ctx.na, ctx.nb = np.linalg.norm(a), np.linalg.norm(b)
        ctx.a, ctx.b = a / ctx.na, b / ctx.nb
        ctx.r = ctx.a @ ctx.b
        return vg.Tensor(ctx.r)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * vg.Tensor((ctx.b - ctx.r * ctx.a) / ctx.na), grad * vg.Tensor((ctx.a - ctx.r * ctx.b) / ctx.nb)


@call(M, np.array([2, 0]))
class PickColumns(Function):
    @staticmethod
    def forward(ctx, x, index):
        ctx.shape = x.shape
        ctx.index = index.numpy()
        return vg.Tensor(x.detach().numpy()[np.arange(x.shape[0]), ctx.index])

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = np.zeros(ctx.shape)
        g[np.arange(ctx.shape[0]), ctx.index] = grad.numpy()
        return vg.Tensor(g), None


@call(SIGNAL, 0.7)
class LeakyIntegrator(Function):
    @staticmethod
    def forward(ctx, x, leak):
        state, out = 0.0, []
        for v in x.detach().numpy():
            state = leak * state + v
            out.append(state)
        ctx.leak = leak
        return vg.Tensor(out)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g, carry = [], 0.0
        for v in grad.numpy()[::-1]:
            carry = v + ctx.leak * carry
            g.insert(0, carry)
        return vg.Tensor(g), None


@call(X, np.array(1.7))
class StudentScore(Function):
    @staticmethod
    def forward(ctx, x, scale):
        z = x.detach().numpy() / scale.item()
        ctx.z, ctx.scale = z, scale.item()
        return vg.Tensor(np.log1p(z**2).sum())

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        dz = 2 * ctx.z / (1 + ctx.z**2)
        return grad * vg.Tensor(dz / ctx.scale), grad * vg.Tensor(-(dz * ctx.z).sum() / ctx.scale)


@call(np.array([[2.0, 0.4], [0.4, 1.5]]), means={"structure": {"a": "positive definite"}})
class HalfLogDet(Function):
    @staticmethod
    def forward(ctx, a):
        c, low = scipy.linalg.cho_factor(a.detach().numpy(), lower=True)
        ctx.c = c, low
        return vg.Tensor(np.log(np.diag(c)).sum())

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * vg.Tensor(scipy.linalg.cho_solve(ctx.c, np.eye(len(ctx.c[0]))) / 2)


@call(SIGNAL, np.array([0.4, 2.6, 5.1]))
class LookUp(Function):
    @staticmethod
    def forward(ctx, table, where):
        t, w = table.detach().numpy(), where.detach().numpy()
        i = np.clip(np.floor(w).astype(int), 0, len(t) - 2)
        f = w - i
        ctx.args = t, i, f
        return vg.Tensor((1 - f) * t[i] + f * t[i + 1])

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        t, i, f = ctx.args
        g = grad.numpy()
        gt = np.zeros(len(t))
        np.add.at(gt, i, (1 - f) * g)
        np.add.at(gt, i + 1, f * g)
        return vg.Tensor(gt), vg.Tensor(g * (t[i + 1] - t[i]))


# -- mutable contexts, counters, prints --------------------------------------------------------------------------------


@call(X)
class CountsBackwards(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.calls = 0
        ctx.save_for_backward(x)
        return vg.sin(x)

    @staticmethod
    def backward(ctx, grad):
        ctx.calls += 1
        (x,) = ctx.saved_tensors
        return grad * vg.cos(x)


@call(X, Y)
class TwoResults(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b, a - b

    @staticmethod
    def backward(ctx, first, second):
        a, b = ctx.saved_tensors
        return first * b + second, first * a - second


@call(X, Y)
class SumOrNothing(Function):
    @staticmethod
    def forward(ctx, a, b=None):
        ctx.both = b is not None
        return a.clone() if b is None else a + b

    @staticmethod
    def backward(ctx, grad):
        return (grad, grad) if ctx.both else (grad, None)


@call(M, {"scale": 2.0, "shift": 0.5})
class Configured(Function):
    @staticmethod
    def forward(ctx, x, config):
        ctx.scale = config["scale"]
        return x * config["scale"] + config["shift"]

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.scale, None


@call(X, Y, PLUS)
class Averages(Function):
    @staticmethod
    def forward(ctx, *xs):
        ctx.n = len(xs)
        return sum(xs) / ctx.n

    @staticmethod
    def backward(ctx, grad):
        return (grad / ctx.n,) * ctx.n


@call(X)
class SetUp(Function):
    @staticmethod
    def forward(x):
        return vg.exp(-x * x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs, output)

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        return -2 * x * y * grad


@call(X)
class PythonLoop(Function):
    @staticmethod
    def forward(ctx, x):
        out = vg.zeros(x.shape[0])
        for i in range(x.shape[0]):
            out[i] = math.tanh(x[i].item())
        ctx.out = out.numpy().copy()
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * vg.Tensor(1 - ctx.out**2)


@call(X.astype(np.float32))
class SingleOnly(Function):
    @staticmethod
    def forward(ctx, x):
        a = x.detach().numpy().astype(np.float32)
        ctx.save_for_backward(x)
        return vg.Tensor(a * np.abs(a))

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * grad * vg.abs(x)


# -- plain functions ---------------------------------------------------------------------------------------------------


@call(M, N)
def two_layer(x, w):
    h = vg.tanh(x @ w)
    return (h**2).sum(axis=1) / h.shape[1]


@call(X)
def softmax_then_log(x):
    e = vg.exp(x - x.max())
    return vg.log(e / e.sum())


@call(SIGNAL)
def autocorrelation(x):
    x = x - x.mean()
    n = x.shape[0]
    return vg.stack([(x[: n - k] * x[k:]).sum() for k in range(3)]) / (x * x).sum()


@call(POINTS)
def perimeter(p):
    total = 0.0
    for i in range(p.shape[0]):
        d = p[i] - p[i - 1]
        total = total + vg.sqrt((d * d).sum())
    return total


@call(X, PLUS)
def weighted_variance(x, w):
    mean = (w * x).sum() / w.sum()
    return (w * (x - mean) ** 2).sum() / w.sum()


@call(np.array([0.2, 0.5, 0.3]), np.array([0.4, 0.4, 0.2]))
def kl(p, q):
    return (p * vg.log(p / q)).sum()


@call(IMAGE)
def blur(image):
    out = image.clone()
    out[1:-1, 1:-1] = (image[:-2, 1:-1] + image[2:, 1:-1] + image[1:-1, :-2] + image[1:-1, 2:]) / 4
    return out


@call(np.array([1.0, 0.5]), 0.1, 5)
def lotka(state, h, steps):
    x, y = state[0], state[1]
    for _ in range(steps):
        x, y = x + h * x * (1 - y), y + h * y * (x - 1)
    return vg.stack([x, y])


@call(np.array(0.6), np.array(1.2), np.array(0.3))
def black_formula(f, k, sigma):
    d = vg.log(f / k) / sigma + sigma / 2
    phi = lambda z: 0.5 * (1 + vg.erf(z / math.sqrt(2)))
    return f * phi(d) - k * phi(d - sigma)


@call(M)
def layer_norm(x, eps=1e-5):
    mu = x.mean(axis=-1, keepdims=True)
    var = ((x - mu) ** 2).mean(axis=-1, keepdims=True)
    return (x - mu) / vg.sqrt(var + eps)


@call(X, 3)
def moving_sum(x, k):
    return vg.stack([x[i : i + k].sum() for i in range(x.shape[0] - k + 1)])


@call(X, Y)
def cosine(a, b):
    return (a @ b) / (vg.linalg.norm(a) * vg.linalg.norm(b))


@call(np.array([[2.0, 0.3, 0.1], [0.3, 1.5, -0.2], [0.1, -0.2, 1.8]]), np.array([0.4, -0.9, 0.6]))
def quadratic_minimum(a, b):
    return -0.5 * b @ vg.linalg.solve(a, b)


@call(PLUS)
def normalized_entropy(x):
    p = x / x.sum()
    return -(p * vg.log(p)).sum() / math.log(x.shape[0])


@call(SIGNAL)
def peak_to_peak(x):
    return x.max() - x.min()


@call(M)
def first_columns(x, k=2):
    y = x[:, :k] * 2
    y[:, 0] = y[:, 0] ** 2
    return y


@call(X, Y, PLUS)
def fused(a, b, c):
    return (a * b + vg.sin(c)).reshape(-1, 1) * a


@call(np.array([1.5, 0.2, -0.7, 0.4]))
def quaternion_angle(q):
    q = q / vg.sqrt((q * q).sum())
    return 2 * vg.arctan2(vg.sqrt((q[1:] ** 2).sum()), q[0])


@call(POINTS, np.array([0, 1, 2]), np.array([1, 2, 3]))
def edge_energy(p, i, j):
    d = p[i] - p[j]
    return ((vg.sqrt((d * d).sum(axis=1)) - 1.0) ** 2).sum()


@call(X, q=0.3)
def pinball_mean(r, q=0.5):
    return vg.maximum(q * r, (q - 1) * r).mean()


@call(SIGNAL)
def spectral_centroid(x):
    p = vg.abs(vg.fft.rfft(x)) ** 2
    return (p * np.arange(p.shape[0])).sum() / p.sum()


@call(SIGNAL)
class CumulativeMean(Function):
    @staticmethod
    def forward(ctx, x):
        a = x.detach().numpy()
        ctx.n = np.arange(1, len(a) + 1)
        return vg.Tensor(np.cumsum(a) / ctx.n)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return vg.Tensor(np.cumsum((grad.numpy() / ctx.n)[::-1])[::-1].copy())


@call(np.array([0.3, -0.6]), 1e-12)
class GeometricSeries(Function):
    """The sum of x**k, by adding terms until they are small."""

    @staticmethod
    def forward(ctx, x, tol):
        a = x.detach().numpy()
        total, term, k = np.zeros_like(a), np.ones_like(a), 0
        while np.abs(term).max() > tol:
            total, term, k = total + term, term * a, k + 1
            if k > 1000:
                raise ArithmeticError("the series does not converge")
        ctx.total = total
        return vg.Tensor(total)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * ctx.total**2, None


@call(M)
def second_column_without_the_first(a):
    u = a[:, 0] / vg.sqrt((a[:, 0] ** 2).sum())
    v = a[:, 1] - (u * a[:, 1]).sum() * u
    return v


# -- constants that get no gradient ------------------------------------------------------------------------------------


@call(vg.Tensor(X, requires_grad=True), Y)
class SquaredErrorToTarget(Function):
    @staticmethod
    def forward(ctx, x, target):
        d = x.detach().numpy() - target.numpy()
        ctx.d = d
        return vg.Tensor((d**2).mean())

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * vg.Tensor(2 * ctx.d / ctx.d.size), None


@call(vg.Tensor(M, requires_grad=True), np.array([0.2, 0.5, 0.3]))
class WeightedRows(Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.w = w
        return (x * w).sum(axis=1)

    @staticmethod
    def backward(ctx, grad):
        return grad[:, None] * ctx.w, None
