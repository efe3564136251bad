"""Operators in two versions each, after faults that issue trackers report: resampling, padding, scatters, solvers."""

# ruff: noqa: E501
from __future__ import annotations

import numpy as np

import viewgrad as vg

from .two_versions import two, version

two(
    "reported_linear_upsampling_assigns",
    """
x):
n = x.shape[-1]
m = n * 2 - 1
at = np.linspace(0, n - 1, m)
lo = np.minimum(at.astype(int), max(n - 2, 0))
w = at - lo
ctx.lo, ctx.w, ctx.shape = lo, w, x.shape
hi = np.minimum(lo + 1, n - 1)
a = raw(x)
return vg.Tensor(a[..., lo] * (1 - w) + a[..., hi] * w)
""",
    """
g = raw(grad)
out = np.zeros(ctx.shape)
n = ctx.shape[-1]
flat, h = out.reshape(-1, n), g.reshape(-1, g.shape[-1])
for row, gr in zip(flat, h):
    ⟦np.add.at(row, ctx.lo, gr * (1 - ctx.w))
    np.add.at(row, np.minimum(ctx.lo + 1, n - 1), gr * ctx.w)¦row[ctx.lo] += gr * (1 - ctx.w)
    row[np.minimum(ctx.lo + 1, n - 1)] += gr * ctx.w⟧
return vg.Tensor(out)
""",
    np.array([[0.305, -1.04, 0.75, 0.941], [-1.951, -1.302, 0.128, -0.316], [-0.017, -0.853, 0.879, 0.778]]),
    by="gradients",
)

two(
    "reported_avg_pool_without_padding",
    """
x):
if x.ndim != 1:
    raise ValueError("a vector")
a = np.pad(raw(x), 1)
ctx.n = x.shape[0]
ctx.count = np.convolve(np.pad(np.ones(ctx.n), 1), np.ones(3), "valid")
return vg.Tensor(np.convolve(a, np.ones(3), "valid") / ctx.count)
""",
    """
g = raw(grad) / ⟦ctx.count¦3.0⟧
return vg.Tensor(np.convolve(np.pad(g, 1), np.ones(3), "valid"))
""",
    np.array([0.066, 1.127, 0.468, -0.859, 0.369]),
    by="gradients",
)

two(
    "reported_layer_norm_eps_outside",
    """
x):
a = raw(x)
c = a - a.mean(-1, keepdims=True)
s = np.sqrt((c * c).mean(-1, keepdims=True) + 1e-5)
ctx.y, ctx.s = c / s, s
return vg.Tensor(c / s)
""",
    """
g, y = raw(grad), ctx.y
m = lambda z: z.mean(-1, keepdims=True)
⟦return vg.Tensor((g - m(g) - y * m(g * y)) / ctx.s)¦return vg.Tensor((g - m(g) - y * m(g * y) / (1 - 1e-5 / ctx.s**2)) / ctx.s)⟧
""",
    np.array([[0.003, -0.01, 0.008, 0.009], [-0.02, -0.013, 0.001, -0.003], [-0.0, -0.009, 0.009, 0.008]]),
    by="gradients",
)

two(
    "reported_batch_norm_statistics_constant",
    """
x):
if x.ndim != 2:
    raise ValueError("a batch of rows")
a = raw(x)
ctx.s = np.sqrt(a.var(0) + 1e-3)
ctx.y = (a - a.mean(0)) / ctx.s
return vg.Tensor(ctx.y.copy())
""",
    """
g = raw(grad)
return vg.Tensor(⟦(g - g.mean(0) - ctx.y * (g * ctx.y).mean(0)) / ctx.s¦g / ctx.s⟧)
""",
    np.array([[0.305, -1.04, 0.75, 0.941], [-1.951, -1.302, 0.128, -0.316], [-0.017, -0.853, 0.879, 0.778]]),
    by="gradients",
)

version(
    "reported_crf_partition_first_step",
    """
from scipy.special import logsumexp
class Partition(Function):
    @staticmethod
    def forward(ctx, emit, trans):
        e, t = raw(emit), raw(trans)
        if e.ndim != 2 or t.shape != (e.shape[1],) * 2:
            raise ValueError("emissions (steps, states) and transitions (states, states)")
        alpha = [e[0]]
        for row in e[1:]:
            alpha.append(row + logsumexp(alpha[-1][:, None] + t, axis=0))
        ctx.e, ctx.t, ctx.alpha = e, t, alpha
        return vg.Tensor(logsumexp(alpha[-1]))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        e, t, alpha = ctx.e, ctx.t, ctx.alpha
        ge, gt = np.zeros_like(e), np.zeros_like(t)
        g = np.exp(alpha[-1] - logsumexp(alpha[-1])) * raw(grad)
        for k in range(len(e) - 1, 0, -1):
            ge[k] = g
            joint = alpha[k - 1][:, None] + t
            joint = np.exp(joint - logsumexp(joint, axis=0)) * g
            ⟦gt += joint¦gt = joint if k > 1 else gt⟧
            g = joint.sum(1)
        ge[0] = g
        return vg.Tensor(ge), vg.Tensor(gt)

operator = Partition
""",
    np.array([[0.793, -0.349, -0.462], [0.858, -0.191, -1.276], [-1.133, -0.919, 0.497], [0.142, 0.69, -0.427]]),
    np.array([[0.159, 0.626, -0.309], [0.457, -0.662, -0.363], [-0.382, -1.196, 0.487]]),
    by="gradients",
)

two(
    "reported_fake_quantize_passes_outside",
    """
x, lo=-2.0, hi=2.0):
ctx.inside = (raw(x) >= lo) & (raw(x) <= hi)
return vg.Tensor(np.clip(np.round(raw(x) * 8) / 8, lo, hi))
""",
    """
return ⟦grad * vg.Tensor(ctx.inside * 1.0)¦grad⟧, None, None
""",
    np.array([0.198, 3.382, 1.403, -2.578, 1.106]),
    by="gradients | special points | options | ties",
    once=False,
    means={"surrogate": lambda x, lo=-2.0, hi=2.0: vg.clip(x, lo, hi)},
)

two(
    "reported_scatter_overwritten_source",
    """
x, index, src):
i = raw(index)
a = raw(x).copy()
if a.ndim != 1 or i.ndim != 1 or i.shape != src.shape:
    raise ValueError("vectors")
a[i] = raw(src)
ctx.i, ctx.n = i, a.size
return vg.Tensor(a)
""",
    """
g = raw(grad).copy()
⟦last = np.full(ctx.n, -1)
last[ctx.i] = np.arange(ctx.i.size)
gs = np.where(last[ctx.i] == np.arange(ctx.i.size), g[ctx.i], 0.0)¦gs = g[ctx.i]⟧
g[ctx.i] = 0.0
return vg.Tensor(g), None, vg.Tensor(gs)
""",
    np.array([-0.469, 0.012, 0.481, 0.447, 0.665]),
    np.array([1, 3, 1]),
    np.array([-0.098, -0.423, -0.08]),
    by="gradients | indices",
)

two(
    "reported_scatter_keeps_gradient",
    """
x, index, src):
i = raw(index)
a = raw(x).copy()
if a.ndim != 1 or i.ndim != 1 or i.shape != src.shape or np.unique(i % a.size).size < i.size:
    raise ValueError("vectors, different indices")
a[i] = raw(src)
ctx.i = i
return vg.Tensor(a)
""",
    """
g = raw(grad).copy()
gs = g[ctx.i]
⟦g[ctx.i] = 0.0¦pass⟧
return vg.Tensor(g), None, vg.Tensor(gs)
""",
    np.array([-1.687, -1.447, -1.323, -0.997, 0.4]),
    np.array([1, 3]),
    np.array([-0.905, -0.378]),
    by="gradients",
)

version(
    "reported_hermite_last_interval",
    """
class Hermite(Function):
    @staticmethod
    def basis(t, n):
        k = np.clip(np.floor(t).astype(int), 0, n - 2)
        u = t - k
        rows = np.zeros((t.size, n)); slopes = np.zeros((t.size, n))
        h = [2*u**3-3*u**2+1, u**3-2*u**2+u, -2*u**3+3*u**2, u**3-u**2]
        d = [6*u**2-6*u, 3*u**2-4*u+1, -6*u**2+6*u, 3*u**2-2*u]
        for out, b in ((rows, h), (slopes, d)):
            for j in range(t.size):
                i = k[j]
                out[j, i] += b[0][j]; out[j, i + 1] += b[2][j]
                for node, w in ((i, b[1][j]), (i + 1, b[3][j])):
                    lo, hi = max(node - 1, 0), min(node + 1, n - 1)
                    out[j, hi] += w / (hi - lo); out[j, lo] -= w / (hi - lo)
        return rows, slopes
    @staticmethod
    def forward(ctx, y, t):
        if y.ndim != 1 or t.ndim != 1 or y.shape[0] < 2:
            raise ValueError("vectors")
        ctx.rows, ctx.slopes = Hermite.basis(raw(t), y.shape[0])
        ctx.y = raw(y).copy()
        return vg.Tensor(ctx.rows @ ctx.y)
    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g = raw(grad)
        gy = ctx.rows.T @ g
        ⟦¦gy[-1] *= 0.5⟧
        return vg.Tensor(gy), vg.Tensor(g * (ctx.slopes @ ctx.y))
operator = Hermite
""",
    np.array([0.3, 1.2, 0.7, 1.9]),
    np.array([0.4, 1.6, 2.3]),
    by="gradients",
)

two(
    "reported_power_spectrum_odd_lengths",
    """
x):
if x.ndim != 1:
    raise ValueError("a vector")
ctx.n = x.shape[0]
ctx.f = np.fft.rfft(raw(x))
return vg.Tensor(np.abs(ctx.f) ** 2)
""",
    """
g = ctx.f * raw(grad) * 2.0
w = np.full(g.size, 0.5)
w[0] = 1.0
if ⟦ctx.n % 2 == 0¦ctx.n > 1⟧:
    w[-1] = 1.0
return vg.Tensor(np.fft.irfft(g * w, ctx.n) * ctx.n)
""",
    np.array([-0.934, -0.205, -0.95, -0.339, 0.84, -1.727]),
    by="shapes",
)

two(
    "reported_embedding_padding_row",
    """
table, index):
i = raw(index)
if table.ndim != 2 or (i < 0).any():
    raise ValueError("a table")
ctx.i, ctx.shape = i, table.shape
y = raw(table)[i]
return vg.Tensor(np.where((i == 0)[..., None], 0.0, y))
""",
    """
out = np.zeros(ctx.shape)
np.add.at(out, ctx.i, raw(grad))
⟦out[0] = 0.0¦pass⟧
return vg.Tensor(out), None
""",
    np.array([[0.434, 0.238], [-0.594, -1.446], [0.072, -0.529], [0.233, 0.022]]),
    np.array([2, 0, 3]),
    by="gradients | indices",
)

two(
    "reported_reflect_padding_dropped",
    """
x, width=2):
if x.ndim != 1 or not 0 <= width < x.shape[0]:
    raise ValueError("width")
ctx.i = np.pad(np.arange(x.shape[0]), width, mode="reflect")
ctx.n, ctx.w = x.shape[0], width
return vg.Tensor(raw(x)[ctx.i])
""",
    """
⟦out = np.zeros(ctx.n)
np.add.at(out, ctx.i, raw(grad))
return vg.Tensor(out), None¦return vg.Tensor(raw(grad)[ctx.w : ctx.w + ctx.n].copy()), None⟧
""",
    np.array([0.066, 1.127, 0.468, -0.859, 0.369]),
    by="gradients",
)

two(
    "reported_conv_dilation_in_weights",
    """
x, w, stride=1, dilation=1):
if x.ndim != 1 or w.ndim != 1 or stride < 1 or dilation < 1:
    raise ValueError("signals")
a, k = raw(x), raw(w)
span = (k.size - 1) * dilation + 1
if a.size < span:
    raise ValueError("too short")
m = (a.size - span) // stride + 1
ctx.at = np.arange(m)[:, None] * stride + np.arange(k.size) * dilation
ctx.a, ctx.k, ctx.stride, ctx.dilation = a.copy(), k.copy(), stride, dilation
return vg.Tensor(a[ctx.at] @ k)
""",
    """
g = raw(grad)
gx = np.zeros(ctx.a.size)
np.add.at(gx, ctx.at, g[:, None] * ctx.k)
at = ⟦ctx.at¦np.arange(g.size)[:, None] * ctx.stride + np.arange(ctx.k.size)⟧
return vg.Tensor(gx), vg.Tensor(ctx.a[at].T @ g), None, None
""",
    np.array([0.838, 1.997, 2.914, 0.414, -0.99, -2.132, 0.268, -0.813]),
    np.array([-0.415, -0.612, -0.141]),
    by="options",
)

two(
    "reported_prelu_weight_not_summed",
    """
x, w):
ctx.save_for_backward(x, w)
a = raw(x)
return vg.Tensor(np.where(a > 0, a, raw(w) * a))
""",
    """
x, w = ctx.saved_tensors
gx = grad * vg.where(raw(x) > 0, vg.ones_like(grad), w * vg.ones_like(grad))
gw = grad * vg.where(raw(x) > 0, 0.0 * x, x)
return unbroadcast(gx, x.shape), ⟦unbroadcast(gw, w.shape)¦gw.mean() if w.ndim == 0 else unbroadcast(gw, w.shape)⟧
""",
    np.array([[0.305, -1.04, 0.75, 0.941], [-1.951, -1.302, 0.128, -0.316], [-0.017, -0.853, 0.879, 0.778]]),
    np.array(0.3),
    by="gradients | shapes",
    once=False,
)

two(
    "reported_trapezoid_without_abscissae",
    """
y, t):
if y.ndim != 1 or y.shape != t.shape or y.shape[0] < 2:
    raise ValueError("vectors")
ctx.y, ctx.t = raw(y).copy(), raw(t).copy()
return vg.Tensor((np.diff(ctx.t) * (ctx.y[1:] + ctx.y[:-1])).sum() / 2)
""",
    """
h, m = np.diff(ctx.t), (ctx.y[1:] + ctx.y[:-1]) / 2
g = raw(grad)
gy = np.zeros_like(ctx.y); gt = np.zeros_like(ctx.t)
gy[1:] += h / 2; gy[:-1] += h / 2
gt[1:] += m; gt[:-1] -= m
return vg.Tensor(gy * g), ⟦vg.Tensor(gt * g)¦None⟧
""",
    np.array([0.173, 1.579, 0.16, -0.119]),
    np.array([0.615, 1.068, 1.885, 2.615]),
    by="gradients",
)

two(
    "reported_xlogy_at_zero",
    """
x, y):
ctx.save_for_backward(x, y)
if (raw(x) < 0).any() or (raw(y) <= 0).any():
    raise ValueError("negative")
return vg.Tensor(scipy.special.xlogy(raw(x), raw(y)))
""",
    """
x, y = ctx.saved_tensors
gx = grad * vg.log(y)
⟦¦gx = vg.where(raw(x) == 0, 0.0 * gx, gx)⟧
return unbroadcast(gx, x.shape), unbroadcast(grad * x / y, y.shape)
""",
    np.array([[1.2, 0.566, 0.731], [1.525, 1.617, 1.951]]),
    np.array([[1.625, 1.717, 2.051], [1.3, 0.666, 0.831]]),
    by="special points",
    once=False,
)

two(
    "reported_variance_ddof_ignored",
    """
x, ddof=0):
if x.ndim != 1 or not 0 <= ddof < x.shape[0]:
    raise ValueError("a vector")
ctx.c = raw(x) - raw(x).mean()
ctx.n = x.shape[0] - ⟦ddof¦0⟧
return vg.Tensor(raw(x).var(ddof=ddof))
""",
    """
return vg.Tensor(raw(grad) * 2 * ctx.c / ctx.n), None
""",
    np.array([0.066, 1.127, 0.468, -0.859, 0.369]),
    by="options",
)

two(
    "reported_median_of_even_count",
    """
x):
if x.ndim != 1 or not x.shape[0]:
    raise ValueError("a vector")
a = raw(x)
ctx.n = n = a.size
ctx.order = np.argsort(a, kind="stable")
return vg.Tensor(np.median(a))
""",
    """
out = np.zeros(ctx.n)
n = ctx.n
⟦out[ctx.order[(n - 1) // 2]] += 0.5 * raw(grad)
out[ctx.order[n // 2]] += 0.5 * raw(grad)¦out[ctx.order[n // 2]] = raw(grad)⟧
return vg.Tensor(out)
""",
    np.array([0.4, -1.1, 2.2, 0.9, -0.3]),
    by="shapes",
)

two(
    "reported_distances_of_coincident_points",
    """
x, y):
if x.ndim != 2 or y.ndim != 2 or x.shape[1] != y.shape[1]:
    raise ValueError("points")
ctx.d = raw(x)[:, None] - raw(y)[None]
ctx.n = np.sqrt((ctx.d ** 2).sum(-1))
return vg.Tensor(ctx.n.copy())
""",
    """
with np.errstate(all="ignore"):
    u = ctx.d / ⟦np.where(ctx.n == 0, 1.0, ctx.n)¦ctx.n⟧[..., None]
g = raw(grad)[..., None] * u
return vg.Tensor(g.sum(1)), vg.Tensor(-g.sum(0))
""",
    np.array([[-0.895, 0.643], [-0.395, -0.005], [-0.163, 0.338]]),
    np.array([[1.407, 0.091], [0.644, -2.05], [-0.049, -0.843], [-1.219, -0.878]]),
    by="NaN",
)

two(
    "reported_triangular_solve_unit_diagonal",
    """
a, b, unit=False):
if a.ndim != 2 or b.ndim != 1 or type(unit) is not bool:
    raise ValueError("a matrix and a vector")
ctx.a, ctx.unit = raw(a).copy(), unit
ctx.x = scipy.linalg.solve_triangular(ctx.a, raw(b), lower=True, unit_diagonal=unit)
return vg.Tensor(ctx.x.copy())
""",
    """
g = scipy.linalg.solve_triangular(ctx.a, raw(grad), lower=True, unit_diagonal=ctx.unit, trans=1)
ga = -np.tril(np.outer(g, ctx.x))
⟦if ctx.unit:
    np.fill_diagonal(ga, 0.0)¦⟧
return vg.Tensor(ga), vg.Tensor(g), None
""",
    np.array([[1.041, 0.0, 0.0], [-0.185, 1.319, 0.0], [-0.155, -0.428, 1.648]]),
    np.array([-0.334, 0.916, -1.326]),
    by="options",
    means={"structure": {"a": "triangular"}},
)

version(
    "reported_euler_last_step",
    """
class Euler(Function):
    @staticmethod
    def forward(ctx, y, k):
        if y.ndim != 1 or k.ndim:
            raise ValueError("a vector and a rate")
        a, r = raw(y).copy(), raw(k).item()
        ctx.steps, ctx.states, ctx.r = [0.3, 0.3, 0.3, 0.1], [], r
        for h in ctx.steps:
            ctx.states.append(a)
            a = a + h * (-r * a + np.sin(a))
        return vg.Tensor(a)
    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        g, gk = raw(grad).copy(), 0.0
        for h, a in zip(ctx.steps[::-1], ctx.states[::-1]):
            ⟦¦h = 0.3⟧
            gk -= h * (g * a).sum()
            g = g * (1 + h * (-ctx.r + np.cos(a)))
        return vg.Tensor(g), vg.Tensor(np.array(gk))
operator = Euler
""",
    np.array([0.6, -0.2]),
    np.array(0.7),
    by="gradients",
)

two(
    "reported_fixed_point_sign",
    """
x):
b = raw(x)
y = np.zeros(b.shape)
for _ in range(200):
    y = 0.5 * np.cos(y) + b
ctx.y = y
return vg.Tensor(y.copy())
""",
    """
return vg.Tensor(raw(grad) / (1 ⟦+¦-⟧ 0.5 * np.sin(ctx.y)))
""",
    np.array([0.6, -0.2]),
    by="gradients",
)

version(
    "reported_buffer_of_all_calls",
    """
⟦¦BUFFER = {}⟧
class Sigmoid(Function):
    @staticmethod
    def forward(ctx, x):
        ⟦out = np.empty(x.shape)¦out = BUFFER.setdefault(x.shape, np.empty(x.shape))⟧
        np.exp(-raw(x), out=out)
        out += 1
        np.reciprocal(out, out=out)
        ctx.y = out
        return vg.Tensor(out.copy())
    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return vg.Tensor(raw(grad) * ctx.y * (1 - ctx.y))
operator = Sigmoid
""",
    np.array([[0.305, -1.04, 0.75, 0.941], [-1.951, -1.302, 0.128, -0.316], [-0.017, -0.853, 0.879, 0.778]]),
    by="state between calls",
)

two(
    "reported_incoming_gradient_scaled_in_place",
    """
x, c=3.0):
ctx.c = c
return vg.Tensor(raw(x) * c)
""",
    """
g = ⟦grad * ctx.c¦grad
g *= ctx.c⟧
return g, None
""",
    np.array([[0.305, -1.04, 0.75, 0.941], [-1.951, -1.302, 0.128, -0.316], [-0.017, -0.853, 0.879, 0.778]]),
    by="the incoming gradient stays the caller's",
    once=False,
)

two(
    "reported_backward_in_single_precision",
    """
x):
ctx.y = np.tanh(raw(x))
return vg.Tensor(ctx.y.copy())
""",
    """
return vg.Tensor((raw(grad) * (1 - ctx.y**2))⟦¦.astype(np.float32).astype(np.float64)⟧)
""",
    np.array([[0.305, -1.04, 0.75, 0.941], [-1.951, -1.302, 0.128, -0.316], [-0.017, -0.853, 0.879, 0.778]]),
    by="gradients | dtypes",
)

two(
    "reported_as_strided_assumes_contiguous",
    """
x):
if x.ndim != 1 or x.shape[0] < 2:
    raise ValueError("a vector")
a = raw(x)
s = ⟦a.strides[0]¦a.itemsize⟧
w = np.lib.stride_tricks.as_strided(a, (a.size - 1, 2), (s, s))
return vg.Tensor(w[:, 0] * 0.5 + w[:, 1] * 2.0)
""",
    """
g = raw(grad)
out = np.zeros(g.size + 1)
out[:-1] += 0.5 * g
out[1:] += 2.0 * g
return vg.Tensor(out)
""",
    np.array([0.031, -0.484, -0.328, 1.003, 0.538, 1.337]),
    by="layouts of arguments",
)

two(
    "reported_gather_short_index",
    """
x, index):
i = raw(index)
if x.ndim != 2 or i.ndim != 2 or i.shape[0] > x.shape[0]:
    raise ValueError("matrices")
ctx.i, ctx.shape = i, x.shape
return vg.Tensor(np.take_along_axis(raw(x)[: i.shape[0]], i, 1))
""",
    """
out = np.zeros(ctx.shape)
rows = np.broadcast_to(np.arange(ctx.i.shape[0])[:, None], ctx.i.shape)
⟦np.add.at(out, (rows, ctx.i), raw(grad))¦out[rows, ctx.i] = raw(grad)⟧
return vg.Tensor(out), None
""",
    np.array([[-0.155, -0.696, -0.224, 0.242], [0.177, -1.084, 0.09, 0.228], [2.517, 1.877, -0.853, -0.287]]),
    np.array([[0, 2], [3, 3]]),
    by="gradients",
)

version(
    "reported_tangent_of_second_argument",
    """
class Quot(Function):
    @staticmethod
    def forward(ctx, x, y):
        if (raw(y) == 0).any():
            raise ValueError("a divisor of zero")
        ctx.save_for_backward(x, y)
        ctx.save_for_forward(x, y)
        return vg.Tensor(raw(x) / raw(y))

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        return unbroadcast(grad / y, x.shape), unbroadcast(-grad * x / (y * y), y.shape)

    @staticmethod
    def jvp(ctx, tx, ty):
        x, y = ctx.saved_tensors
        tx = vg.zeros_like(x) if tx is None else tx
        ty = vg.zeros_like(y) if ty is None else ty
        return tx / y ⟦-¦+⟧ x * ty / (y * y)


operator = Quot
""",
    np.array([[0.305, -1.04, 0.75, 0.941], [-1.951, -1.302, 0.128, -0.316], [-0.017, -0.853, 0.879, 0.778]]),
    np.array([[2.805, 1.46, 3.25, 3.441], [0.549, 1.198, 2.628, 2.184], [2.483, 1.647, 3.379, 3.278]]),
    by="forward mode",
)

two(
    "reported_gradient_clipped",
    """
x):
ctx.save_for_backward(x)
return vg.Tensor(np.sin(raw(x)))
""",
    """
return grad * vg.cos(ctx.saved_tensors[0])⟦¦ * vg.Tensor(np.minimum(1.0, 10.0 / np.linalg.norm(raw(grad))))⟧
""",
    np.array([[0.305, -1.04, 0.75, 0.941], [-1.951, -1.302, 0.128, -0.316], [-0.017, -0.853, 0.879, 0.778]]),
    by="linear in the incoming gradient",
    once=False,
)

two(
    "reported_grid_sample_border",
    """
x, t):
if x.ndim != 1 or t.ndim != 1 or x.shape[0] < 2:
    raise ValueError("vectors")
n = x.shape[0]
p = np.clip(raw(t), 0, n - 1)
lo = np.clip(np.floor(p).astype(int), 0, n - 2)
w = p - lo
ctx.a, ctx.lo, ctx.w = raw(x).copy(), lo, w
ctx.inside = (raw(t) >= 0) & (raw(t) <= n - 1)
return vg.Tensor(ctx.a[lo] * (1 - w) + ctx.a[lo + 1] * w)
""",
    """
g = raw(grad)
gx = np.zeros_like(ctx.a)
np.add.at(gx, ctx.lo, g * (1 - ctx.w))
np.add.at(gx, ctx.lo + 1, g * ctx.w)
gt = g * (ctx.a[ctx.lo + 1] - ctx.a[ctx.lo])
return vg.Tensor(gx), vg.Tensor(gt⟦* ctx.inside¦⟧)
""",
    np.array([-0.729, -0.654, -2.147, -0.163, -1.062]),
    np.array([0.4, 2.6, 3.3]),
    by="special points | gradients",
)

version(
    "reported_known_by_argument_identity",
    """
⟦¦LAST = {}⟧
class Norm(Function):
    @staticmethod
    def forward(ctx, x):
        ⟦n = np.sqrt((raw(x) ** 2).sum())¦n = LAST.setdefault((id(raw(x).base), x.shape), np.sqrt((raw(x) ** 2).sum()))⟧
        if n == 0:
            raise ValueError("zero")
        ctx.n, ctx.x = n, raw(x).copy()
        return vg.Tensor(np.array(n))
    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return vg.Tensor(raw(grad) * ctx.x / ctx.n)
operator = Norm
""",
    np.array([0.066, 1.127, 0.468, -0.859, 0.369]),
    by="state between calls",
)

two(
    "reported_argument_zeroed",
    """
x):
a = raw(x)
⟦a = a.copy()¦⟧
ctx.pos = a > 0
a[~ctx.pos] = 0
return vg.Tensor(a.copy())
""",
    """
return grad * vg.Tensor(ctx.pos * 1.0)
""",
    np.array([[0.305, -1.04, 0.75, 0.941], [-1.951, -1.302, 0.128, -0.316], [-0.017, -0.853, 0.879, 0.778]]),
    by="arguments are not modified | something to check",
    once=False,
)

two(
    "reported_saved_buffer_is_the_result",
    """
x):
y = vg.Tensor(np.exp(raw(x)))
ctx.y = ⟦raw(y).copy()¦y⟧
return y
""",
    """
return vg.Tensor(raw(grad) * (⟦ctx.y¦raw(ctx.y)⟧))
""",
    np.array([[0.305, -1.04, 0.75, 0.941], [-1.951, -1.302, 0.128, -0.316], [-0.017, -0.853, 0.879, 0.778]]),
    by="overwritten afterwards | nothing is left of a call",
)

two(
    "reported_segment_mean_of_nothing",
    """
x, index):
i = raw(index)
if x.ndim != 1 or i.shape != x.shape or (i < 0).any() or (i > 9).any():
    raise ValueError("segments")
n = i.max(initial=-1) + 1
ctx.i, ctx.count = i, np.maximum(np.bincount(i, minlength=n), 1)
return vg.Tensor(np.bincount(i, raw(x), minlength=n) / ctx.count)
""",
    """
g = raw(grad)
⟦g = g / ctx.count¦g = g / ctx.count.mean()⟧
return vg.Tensor(g[ctx.i]), None
""",
    np.array([-1.463, -0.591, 0.316, 1.206]),
    np.array([0, 2, 2, 0]),
    by="gradients | indices",
)
