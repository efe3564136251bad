"""Programs after public reports of wrong gradients: views, writes, duplicates, zeros, ties, complex numbers, matrices.

Each was written for this suite on the theme of a report about a library for automatic differentiation. They run on
arrays and on tensors; if the derivative depends on a convention, it is stated.
"""

from __future__ import annotations

import numpy as np

import viewgrad as vg

PROGRAMS = {}
_rng = np.random.default_rng(5)


def program(at, slope=None, *, twice=True, transforms=True):
    """Register a function of an array.

    Arguments:
        at: the point.
        slope: the gradient, for points at which differences do not give it.
        twice: whether it has a second derivative there.
        transforms: whether it is differentiated by the transforms, too.
    """

    def register(function):
        PROGRAMS[function.__name__] = function, np.asarray(at), slope, twice, transforms
        return function

    return register


def drawn(*shape):
    return _rng.uniform(0.3, 1.7, shape)


class Square(vg.autograd.Function):
    """The square, by a custom Function with a derivative in both modes."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        return x * x

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return 2 * x * gradient

    @staticmethod
    def jvp(ctx, tangent):
        (x,) = ctx.saved_tensors
        return 2 * x * tangent


# -- views and in-place ------------------------------------------------------------------------------------------------


@program(drawn(10))
def unbind_chain(x):
    a = x * 1.0
    b = a.reshape(10, 1)
    rows = [b[i] for i in range(10)]
    for r in rows:
        r *= 2.0
    c = rows[3][0:1]
    c *= a[4]
    return (a * np.arange(10.0)).sum()


@program(drawn(3, 3))
def narrow_of_row(x):
    a = x * 1.0
    rows = list(a)
    v = rows[0][:2]
    v *= 2.0
    return v.sum() + (a**2).sum()


@program(drawn(3))
def tree_buffer(x):
    t = np.zeros_like(x, shape=(5,))
    t[0] = x[0]
    t[1] = x[1]
    t[3] = x[2]
    t[2] = t[0] * t[1]
    t[4] = t[2] * t[3]
    return t[4] * t[2]


@program(drawn(16, 12))
def zero_block(x):
    y = x @ x.T
    y[:, :6] = 0.0
    return y.sum()


@program(drawn(4))
def view_of_view(x):
    a = x * 1.0
    xx = a[2:]
    y = xx[1:]
    a[0] += 0.0
    a[3] *= 3.0
    return (y * xx[1]).sum()


@program(drawn(4))
def detach_then_scale(x):
    a = x * 2.0
    tmp = np.array(a) if not isinstance(a, vg.Tensor) else a.detach()
    tmp = tmp * 0.0
    a *= 2.0
    return (a + tmp).sum()


@program(drawn(2, 2))
def identity_alias(x):
    def ident(t):
        return t

    a = x * 1.0
    y = ident(a)
    y += y
    return (a * y).sum()


@program(drawn(4, 6))
def read_then_mutate(x):
    a = x * 1.0
    y = a.reshape(-1) * 2
    y -= -4.0
    a[:, 2:5] = 2.0
    return (y.reshape(4, 6) * a).sum()


@program(drawn(2, 3))
def column_copy(x):
    a = np.ones_like(x)
    a[:, 0] = x[:, 1]
    d = a.copy()
    e = d[:, 0]
    f = e.copy()
    e[...] = f * x[:, 2]
    return (d * x).sum() + f.sum()


@program(drawn(5))
def saved_then_mutated(x):
    a = x * 1.0
    y = a[None, :] @ np.outer(a, a)
    a += 5.0
    return y.sum() + a.sum()


@program(drawn(6))
def set_twice_input(x):
    a = x * 1.0
    b = a * a + a
    a[2] = 7.0
    c = a * b + a
    return c.sum()


@program(drawn(6))
def slice_augmented(x):
    a = x * 1.0
    a[:3] *= 10.0
    a[::2] += a[1::2]
    a[::-1][:2] -= 1.0
    return (a**2).sum()


@program(drawn(3))
def slice_gradient(x):
    return (x[1:] ** 2).sum() * x[0]


@program(drawn(5))
def view_stays(x):
    a = x * 1.0
    v = a[1:4]
    v[...] = x[:3]
    w = v[1:]
    w *= x[0]
    a[3] = a[2]
    return (v * np.array([1.0, 2.0, 3.0])).sum()


@program(drawn(4))
def set_subtensor(x):
    a = x * x
    a[1:3] = x[0] * x[2:]
    a[1:3] += a[0]
    return (a**3).sum()


@program(drawn(4, 4))
def slice_update(x):
    a = x.copy()
    a[1:3, 1:3] = x[:2, :2] * x[2:, 2:]
    return (a * x).sum()


@program(drawn(3, 3))
def loop_tmp(x):
    tmp = np.zeros_like(x)
    res = 0.0
    for i in range(3):
        tmp[...] = x
        tmp *= x[i]
        tmp[0, 0] += 1.0
        res = res + np.linalg.det(tmp + 3 * np.eye(3))
    return res


@program(drawn(4))
def rodrigues(x):
    rot = x[:3]
    theta2 = (rot * rot).sum()
    theta = np.sqrt(theta2)
    inv = 1.0 / theta
    w = np.zeros_like(rot)
    for i in range(3):
        w[i] = rot[i] * inv
    c = np.cross(w, np.array([1.0, 2.0, 3.0]))
    return (c * np.sin(theta)).sum() * x[3]


@program(drawn(4, 3))
def least_squares(x):
    X = np.arange(12.0).reshape(4, 3) / 7
    storage = np.zeros_like(x, shape=(4,))
    np.matmul(X, x[0], out=storage)
    storage -= x[:, 1]
    storage *= -1.0
    return 0.5 * (storage**2).sum()


@program(drawn(9))
def offsets(x):
    a = x.reshape(3, 3) * 1.0
    for i in range(2):
        for j in range(3):
            a[i + 1, j] += a[i, (j + 1) % 3] * 0.5
    return (a**2).sum()


@program(drawn(3, 4))
def gather_dup(x):
    return (
        np.take_along_axis(x, np.array([[0, 0, 1], [3, 3, 3], [2, 0, 2]]), 1) ** 2 * np.arange(9.0).reshape(3, 3)
    ).sum()


@program(drawn(5))
def put_dup(x):
    a = np.zeros_like(x)
    a[np.array([1, 1, 3])] = x[:3] ** 2
    return (a * np.arange(1.0, 6.0)).sum()


@program(drawn(5))
def np_put_dup(x):
    a = x * 1.0
    np.put(a, [0, 0, 2], x[2:] * 2)
    return (a**2).sum()


@program(drawn(5))
def put_along_dup(x):
    a = x * 1.0
    np.put_along_axis(a, np.array([4, 4, 0]), x[:3] ** 2, 0)
    return (a * np.arange(5.0)).sum()


@program(drawn(6))
def rasterise(x):
    c = np.zeros_like(x, shape=(3, 3))
    np.add.at(c, ([0, 0, 2, 0, 1, 2], [1, 1, 2, 1, 0, 2]), x**2)
    return (c**2).sum()


@program(drawn(5))
def index_add_self(x):
    a = x * 1.0
    np.add.at(a, np.array([1, 1, 1]), a[:3].copy())
    return (a**2).sum()


@program(drawn(6))
def fancy_augmented_dup(x):
    a = x * 1.0
    a[np.array([0, 0, 3])] += x[:3] ** 2
    return (a**2).sum()


@program(drawn(4))
def scatter_small(x):
    a = np.zeros_like(x)
    a[np.array([2])] = x[:1] * 2
    a[np.array([0, 1])] = x[2:] ** 2
    return (a * x).sum()


@program(drawn(2, 3, 4))
def mask_gather(x):
    a = x * 1.0
    m = np.arange(24).reshape(2, 3, 4) % 3 == 0
    a[m] = x[m] ** 2
    a[~m] *= 0.5
    return (a[m] * np.arange(m.sum())).sum() + a.sum()


@program(drawn(3, 4))
def mask_rows(x):
    a = x * 1.0
    a[np.array([True, False, True]), 1:3] *= x[:2, :2]
    return (a**2).sum()


@program(drawn(6))
def swap_reshape(x):
    a = x.reshape(2, 3) * 1.0
    b = a.swapaxes(0, 1)
    b[1] = b[0] * b[2]
    b[2, 1] *= 2.0
    return (a * np.arange(6.0).reshape(2, 3)).sum()


@program(drawn(4, 4))
def diag_write(x):
    a = x * 1.0
    d = np.einsum("ii->i", a)
    d *= x[0]
    np.fill_diagonal(a[1:, :-1], 2.0)
    return (a**2).sum()


@program(drawn(8))
def sliding(x):
    a = x * 1.0
    w = np.lib.stride_tricks.sliding_window_view(a, 3)
    s = (w**2).sum(1)
    a[2] = 0.0
    return (s * np.arange(6.0)).sum() + (w.sum(1) ** 2).sum()


@program(drawn(3, 3))
def imatmul(x):
    a = x * 1.0
    a @= a
    a[0] @= np.eye(3)
    return a.sum()


@program(drawn(6))
def swap_rows(x):
    a = x.reshape(3, 2) * 1.0
    a[[0, 2]] = a[[2, 0]]
    a[0], a[1] = a[1].copy(), a[0].copy()
    return (a * np.arange(6.0).reshape(3, 2)).sum()


@program(drawn(5))
def prefix(x):
    a = x * 1.0
    for i in range(1, 5):
        a[i] += a[i - 1] * x[i]
    return a[-1]


@program(drawn(6))
def exception_caught(x):
    a = x * 1.0
    try:
        a[:3] = a[:2]
    except ValueError:
        a[3] *= 2.0
    try:
        np.multiply(a, a, out=a[:2])
    except ValueError:
        a[4] *= a[0]
    return (a**2).sum()


@program(drawn(4))
def empties(x):
    a = x * 1.0
    a[4:] = 1.0
    a[2:2] *= 5.0
    b = a[:0].sum()
    return (a**2).sum() + b


@program(drawn(2, 2))
def broadcast_write(x):
    a = np.zeros_like(x, shape=(3, 2, 2))
    a[...] = x
    a[1] *= x[0]
    a[:, :, 0] = x[0]
    return (a**2).sum()


@program(drawn(3))
def einsum_broadcast(x):
    return np.einsum("i,i", x, x[:1] * np.ones(3)) + np.einsum("...i,ij->...j", x, np.ones((3, 2))).sum()


@program(drawn(3, 2, 3, 2))
def einsum_sums(x):
    return (np.einsum("abcd->bd", x) ** 2).sum()


@program(drawn(3, 3, 3))
def einsum_ellipsis(x):
    return (np.einsum("i...,i->...", x, x[0, 0]) ** 2).sum()


@program(drawn(2, 3, 3))
def einsum_diag(x):
    return (np.einsum("aii->ai", x) ** 3).sum() + np.einsum("aij,aji->", x, x)


@program(drawn(3))
def einsum_outer(x):
    return (np.einsum("i,j->ij", np.ones(4), x) ** 2).sum()


# -- zeros -------------------------------------------------------------------------------------------------------------


@program([2.0, 0.0, 3.0, 4.0], [1.0, 32.0, 0.0, 0.0])
def cumprod_zero(x):
    return np.cumprod(x).sum()


@program([0.0, 2.0, 3.0], [9.0, 0.0, 0.0])
def cumprod_first(x):
    return np.cumprod(x).sum()


@program([2.0, 0.0, 0.0, 3.0], [1.0, 2.0, 0.0, 0.0])
def cumprod_two(x):
    return np.cumprod(x).sum()


@program([1.0, 0.0], [2.0, 0.0])
def cumprod_squared(x):
    y = np.cumprod(x)
    return (y * y).sum()


@program([2.0, 0.0, 3.0, 4.0], [0.0, 24.0, 0.0, 0.0])
def prod_one_zero(x):
    return np.prod(x)


@program([[4.0, 0.0], [0.0, 0.0]])
def prod_rows(x):
    return (np.prod(x + 0.0, axis=1) * np.array([1.0, 2.0])).sum()


@program([0.0, 0.0, 2.0])
def prod_loop(x):
    p = np.ones_like(x, shape=(4,))
    for i in range(3):
        p[i + 1] = p[i] * x[i]
    return p.sum()


@program([0.0, 0.0], [0.0, 0.0])
def norm_zero(x):
    return np.linalg.norm(x)


@program([0.0, 0.0], [0.0, 0.0], twice=False)
def norm_squared(x):
    return np.exp(-(np.linalg.norm(x) ** 2))


@program([0.0], [0.0])
def sinc_zero(x):
    return np.sinc(x).sum()


@program([0.0, 2.0], [0.0, 1.0])
def abs_zero(x):
    return np.abs(x).sum()


@program([0j, 3 + 4j], [0j, 0.6 + 0.8j], twice=False)
def abs_complex_zero(x):
    return np.abs(x).sum()


@program([-1.0, 0.0, 4.0], [0.0, 0.0, 0.25], twice=False)
def where_sqrt(x):
    return np.where(x > 0, np.sqrt(x), 0.0).sum()


@program([-np.inf, -np.inf, 0.0], [0.0, 0.0, 1.0], transforms=False, twice=False)
def logsumexp_inf(x):
    return np.logaddexp(np.logaddexp(x[0], x[1]), x[2])


@program([3.0, -np.inf], [1.0, 0.0], transforms=False, twice=False)
def logaddexp_inf(x):
    return np.logaddexp(x[0], x[1])


@program([0.0, 0.0], [0.0, 0.0], twice=False)
def hypot_zero(x):
    return np.hypot(x[0], x[1])


@program([0.0, 3.0], [0.0, 1.0])
def power_zero(x):
    return x[0] ** 0.0 + x[1] ** 1.0 + x[0] ** 2.0


@program([0.0], [1.0], twice=False)
def xlogx(x):
    return (np.where(x > 0, x * np.log(np.where(x > 0, x, 1.0)), 0.0) + x).sum()


# -- sorts and ties ----------------------------------------------------------------------------------------------------


@program([2.0, 1.0, 2.0, 3.0], twice=False)
def sorted_weighted(x):
    return (np.sort(x * np.array([1.0, 1.0, 1.01, 1.0])) * np.arange(4.0)).sum()


@program([3.0, 1.0, 2.0])
def nanmedian(x):
    return np.nanmedian(np.concatenate([x, np.array([np.nan])])) ** 2


@program([3.0, 1.0, 2.0, 5.0])
def sort_second(x):
    return (np.sort(x) ** 3 * np.arange(4.0)).sum()


@program([3.0, 1.0, 2.0, 5.0])
def partition_second(x):
    return (np.partition(x, 1)[:2] ** 3).sum()


@program(drawn(7))
def running_max(x):
    return (np.maximum.accumulate(x) ** 2 * np.arange(7.0)).sum()


@program(drawn(7))
def percentile(x):
    return np.percentile(x, 37.0) ** 2


@program(drawn(2, 5))
def argmax_index(x):
    return (x[np.arange(2), np.argmax(x, 1)] ** 2).sum()


# -- complex -----------------------------------------------------------------------------------------------------------


@program(drawn(3) + 1j * drawn(3))
def complex_prod(x):
    return np.prod(x).real + np.prod(x * x).imag


@program(drawn(4))
def exp_ix(x):
    return (np.exp(1j * x) * np.arange(4.0)).real.sum()


@program(drawn(3, 3) + 1j * drawn(3, 3))
def real_imag_write(x):
    a = x * 1.0
    a.real[0] *= 2.0
    a.imag[:, 1] = a.real[:, 0] ** 2
    return (np.abs(a) ** 2).sum()


@program(drawn(2, 2) + 1j * drawn(2, 2))
def complex_det(x):
    return np.abs(np.linalg.det(x)) ** 2


@program(drawn(4))
def fft_filter(x):
    f = np.fft.rfft(x)
    f[2:] = 0.0
    f[1] *= 1j
    return (np.fft.irfft(f, 4) ** 3).sum()


@program(drawn(3))
def complex_into_real(x):
    z = x * (1 + 2j)
    a = np.zeros_like(x)
    a[...] = z.real
    a[1] += z.imag[0]
    return (a**2).sum()


# -- linear algebra ----------------------------------------------------------------------------------------------------


@program(np.diag([1.0, 1.0, 2.0, 3.0]), twice=False)
def svd_equal(x):
    return np.linalg.norm(np.linalg.svd(x, compute_uv=False))


@program(np.array([[1.0, 2.0], [2.0, 4.0]]), [[4.0, -2.0], [-2.0, 1.0]])
def det_singular(x):
    return np.linalg.det(x)


@program(drawn(3, 3) + 3 * np.eye(3))
def logdet(x):
    s = x @ x.T
    return np.linalg.slogdet(s)[1] + 2 * np.log(np.diagonal(np.linalg.cholesky(s))).sum()


@program(drawn(3, 2))
def qr_tall(x):
    q, r = np.linalg.qr(x)
    return (q[:, 0] * np.arange(3.0)).sum() + (r**2).sum()


@program(drawn(3, 2))
def pinv(x):
    return (np.linalg.pinv(x) ** 2).sum()


@program(drawn(4, 4) + 4 * np.eye(4))
def lu(x):
    a = x * 1.0
    for k in range(3):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return np.log(np.abs(np.diagonal(a))).sum()


@program(drawn(3, 3), twice=False)
def eigh_vals(x):
    return (np.linalg.eigvalsh(x + x.T) ** 2 * np.arange(1.0, 4.0)).sum()


# -- functions, nesting ------------------------------------------------------------------------------------------------


@program(np.array([3.0]))
def custom_function(x):
    if not isinstance(x, vg.Tensor):
        return ((x * x) * (x * x)).sum()
    return Square.apply(Square.apply(x)).sum()


@program(drawn(2, 4))
def prod_dims(x):
    return (x.reshape(2, 2, 2).prod(-1).prod(-1)).sum()


@program(drawn(5))
def norm_keepdims(x):
    return (np.linalg.norm(x.reshape(5, 1), axis=0, keepdims=True) * x).sum()


@program(drawn(5) - 1.0)
def leaky(x):
    out = x * 1.0
    out[out <= 0] = out[out <= 0] * 0.2
    return (out**2).sum()


@program(drawn(4, 3))
def softmax_rows(x):
    a = x * 1.0
    a -= a.max(1, keepdims=True)
    e = np.exp(a)
    e /= e.sum(1, keepdims=True)
    return -(np.log(e) * np.eye(4, 3)).sum()


@program(drawn(6))
def clipped(x):
    a = x * 1.0
    np.clip(a, 0.5, 1.2, out=a)
    return (a**2).sum()


@program(drawn(6))
def newton(x):
    y = x[0] * 1.0
    n = 0
    while (
        abs(
            float(y.detach() if isinstance(y, vg.Tensor) else y) ** 2
            - float(x[0].detach() if isinstance(x, vg.Tensor) else x[0])
        )
        > 1e-13
        and n < 50
    ):
        y = 0.5 * (y + x[0] / y)
        n += 1
    return y * x[1]
