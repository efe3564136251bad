"""Programs as users of NumPy write them: views, index arrays, masks, dtypes, 0-d arrays."""
# ruff: noqa: B007, RUF059  # written as users write

from __future__ import annotations

import math

import numpy as np
from user_cases import case, matrix, positive, vector


@case(lambda r, n: (matrix(r, n),), (5, 6))
def view_of_view(a):
    a = a.copy()
    inner = a[1:-1, 1:]
    col = inner[:, 0]
    col *= 2.0
    row = inner[-1]
    row += col.sum()
    a.T[0, 1:] -= row[:1]
    return (a * a).sum()

@case(lambda r, n: (matrix(r, n),), (4, 7))
def flat_views(a):
    b = a.copy()
    f = b.reshape(-1)
    f[::2] *= -1
    g = b.ravel()
    g[1] = 5.0 * g[0]
    return (b ** 2).sum() + f[1]

@case(lambda r, n: (vector(r, n), np.array([0, 2, 2, 1, 0])))
def repeats_add_at(x, idx):
    out = np.zeros(3)
    np.add.at(out, idx, x[:5])
    out2 = np.zeros(3)
    for k, i in enumerate(idx):
        out2[i] += x[k] ** 2
    return out * out2

@case(lambda r, n: (vector(r, n), np.array([0, 2, 2, 1, 0])))
def repeats_assign(x, idx):
    out = np.ones(4)
    out[idx] = x[:5]
    out[idx] += 1.0
    out[idx[::-1]] *= x[:5]
    return out

@case(lambda r, n: (vector(r, n),))
def negative_steps(x):
    y = x[::-1].copy()
    y[-1::-2] += x[: len(y[-1::-2])]
    y[-3:] *= y[:3]
    return (y * np.arange(len(y))).sum() + x[-2]

@case(lambda r, n: (vector(r, n),))
def overlap(x):
    y = x.copy()
    y[1:] = y[:-1]
    y[:-2] += y[2:]
    y[::-1] -= 0.5 * y
    return y

@case(lambda r, n: (vector(r, n),))
def masks(x):
    y = x.copy()
    m = y > 0
    y[m] = np.sqrt(y[m])
    y[~m] *= -0.5
    y[(x > 0.2) & (x < 1.0)] += 1
    y[np.abs(x) > 1.5] = 0
    return y.sum() + m.sum()

@case(lambda r, n: (matrix(r, n),), (4, 6))
def mask2d(a):
    b = a.copy()
    b[b < 0] = 0
    b[np.arange(len(b)), np.arange(len(b))] = 1.0
    i, j = np.nonzero(b)
    return (b[i, j] ** 2).sum() + len(i)

@case(lambda r, n: (vector(r, n), vector(r, n)))
def meshes(x, y):
    X, Y = np.meshgrid(x, y)
    Z = np.sin(X) * Y
    return Z[1:, :-1].sum()

@case(lambda r, n: (vector(r, n), vector(r, n + 1)))
def broadcasting(x, y):
    d = x[:, None] - y[None, :]
    k = np.exp(-0.5 * d ** 2)
    return (k.sum(axis=1) * x).sum() + k.max(axis=0).sum()

@case(lambda r, n: (matrix(r, n, 3), vector(r, 3)), (5, 8))
def distances(X, c):
    d = np.sqrt(((X - c) ** 2).sum(axis=-1))
    k = np.argmin(d)
    w = np.exp(-d) / np.exp(-d).sum()
    return w @ X + X[k]

@case(lambda r, n: (matrix(r, n, 2), matrix(r, 3, 2)), (7, 9))
def kmeans(X, C0):
    C = C0.copy()
    for it in range(3):
        d = ((X[:, None, :] - C[None]) ** 2).sum(-1)
        lab = d.argmin(axis=1)
        for k in range(len(C)):
            m = lab == k
            if m.any():
                C[k] = X[m].mean(axis=0)
    return C

@case(lambda r, n: (matrix(r, n, 2), matrix(r, 3, 2)), (7, 9))
def kmeans_loops(X, C0):
    C = C0.copy()
    n, d = X.shape
    K = C.shape[0]
    labels = np.zeros(n, dtype=np.int64)
    for it in range(3):
        for i in range(n):
            best = 1e30
            for k in range(K):
                s = 0.0
                for j in range(d):
                    s += (X[i, j] - C[k, j]) ** 2
                if s < best:
                    best = s
                    labels[i] = k
        sums = np.zeros((K, d))
        counts = np.zeros(K)
        for i in range(n):
            counts[labels[i]] += 1
            sums[labels[i]] += X[i]
        for k in range(K):
            if counts[k] > 0:
                C[k] = sums[k] / counts[k]
    return C.sum(axis=0)

@case(lambda r, n: (matrix(r, n, 3), vector(r, 4), r.integers(0, 2, n)), (8, 11))
def logistic(X, w, y):
    Xb = np.hstack([np.ones((X.shape[0], 1)), X])
    z = Xb @ w
    p = 1 / (1 + np.exp(-z))
    return -np.mean(y * np.log(p) + (1 - y) * np.log(1 - p)) + 0.1 * np.sum(w[1:] ** 2)

@case(lambda r, n: (matrix(r, n, 3), matrix(r, 3, 4), vector(r, 4), vector(r, 4)), (6, 7))
def mlp(X, W1, b1, w2):
    h = np.maximum(X @ W1 + b1, 0)
    o = h @ w2
    o -= o.max()
    return np.log(np.exp(o).sum())

@case(lambda r, n: (matrix(r, n, 4), r.integers(0, 4, n)), (6, 7))
def softmax_xent(logits, labels):
    m = logits.max(axis=1, keepdims=True)
    e = np.exp(logits - m)
    p = e / e.sum(axis=1, keepdims=True)
    return -np.log(p[np.arange(len(labels)), labels]).mean()

@case(lambda r, n: (matrix(r, n, 4), matrix(r, 4), matrix(r, 4), matrix(r, 4)), (5, 6))
def attention(X, Wq, Wk, Wv):
    Q, K, Vv = X @ Wq, X @ Wk, X @ Wv
    S = Q @ K.T / np.sqrt(K.shape[-1])
    mask = np.tril(np.ones(S.shape)) == 0
    S[mask] = -1e9
    A = np.exp(S - S.max(-1, keepdims=True))
    A /= A.sum(-1, keepdims=True)
    return (A @ Vv).sum(0)

@case(lambda r, n: (matrix(r, n), matrix(r, 3)), (6, 7))
def conv2d(img, k):
    H, W = img.shape
    kh, kw = k.shape
    out = np.zeros((H - kh + 1, W - kw + 1))
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = np.sum(img[i:i + kh, j:j + kw] * k)
    return out

@case(lambda r, n: (matrix(r, n),), (6, 8))
def maxpool(a):
    n, m = a.shape
    out = np.empty((n // 2, m // 2))
    for i in range(0, n - 1, 2):
        for j in range(0, m - 1, 2):
            out[i // 2, j // 2] = a[i:i + 2, j:j + 2].max()
    return out

@case(lambda r, n: (matrix(r, n),), (6, 8))
def sobel(a):
    gx = np.zeros_like(a)
    gy = np.zeros_like(a)
    gx[1:-1, 1:-1] = (a[:-2, 2:] + 2 * a[1:-1, 2:] + a[2:, 2:]) - (a[:-2, :-2] + 2 * a[1:-1, :-2] + a[2:, :-2])
    gy[1:-1, 1:-1] = a[2:, 1:-1] - a[:-2, 1:-1]
    return np.hypot(gx, gy).sum()

@case(lambda r, n: (matrix(r, n).astype(np.float32), np.float32(0.3)), (5, 6), tol=2e-2)
def float32_steps(u, c):
    v = u.copy()
    for _ in range(3):
        v[1:-1, 1:-1] = v[1:-1, 1:-1] + c * (v[2:, 1:-1] + v[:-2, 1:-1] - 2 * v[1:-1, 1:-1])
    return v.sum()

@case(lambda r, n: (vector(r, n).astype(np.float32),), (5, 6), tol=2e-2)
def float32_loop(x):
    s = np.float32(0.0)
    for v in x:
        s += v * np.float32(0.5)
        s = np.sqrt(s * s + np.float32(1))
    return s

@case(lambda r, n: (vector(r, n) + 1j * vector(r, n),), (5, 6))
def complex_loop(z):
    w = np.zeros(len(z), dtype=complex)
    w[0] = z[0]
    for k in range(1, len(z)):
        w[k] = w[k - 1] * z[k] / (1 + abs(w[k - 1])) + 0.1j
    return np.abs(w).sum() + w[-1].real

@case(lambda r, n: (vector(r, n),), (4, 8))
def dft_by_hand(x):
    n = len(x)
    X = np.zeros(n, dtype=np.complex128)
    for k in range(n):
        for t in range(n):
            X[k] += x[t] * np.exp(-2j * np.pi * k * t / n)
    return np.abs(X) ** 2

@case(lambda r, n: (vector(r, n),), (8, 16))
def fft_iterative(x):
    a = x.astype(complex)
    n = len(a)
    j = 0
    for i in range(1, n):
        bit = n >> 1
        while j & bit:
            j ^= bit
            bit >>= 1
        j ^= bit
        if i < j:
            a[i], a[j] = a[j], a[i]
    length = 2
    while length <= n:
        w = np.exp(-2j * math.pi / length)
        for i in range(0, n, length):
            wk = 1.0 + 0j
            for k in range(length // 2):
                u = a[i + k]
                v = a[i + k + length // 2] * wk
                a[i + k] = u + v
                a[i + k + length // 2] = u - v
                wk *= w
        length <<= 1
    return (np.abs(a) ** 2)[1:3]

@case(lambda r, n: (0.3 * r.random(2),), (1, 2))
def mandelbrot_smooth(c):
    z = 0j
    cc = complex(c[0], c[1])
    n = 0
    while abs(z) < 2 and n < 12:
        z = z * z + cc
        n += 1
    return z.real * n + z.imag

@case(lambda r, n: (vector(r, n),))
def zero_d(x):
    s = np.zeros(())
    for v in x:
        s += v * v
    return np.sqrt(s)

@case(lambda r, n: (vector(r, n),))
def zero_d_array(x):
    acc = np.array(0.0)
    best = np.array(-np.inf)
    for i in range(len(x)):
        acc += x[i]
        best = np.maximum(best, acc)
    acc[...] = acc * 2
    return acc + best

@case(lambda r, n: (vector(r, n), vector(r, n)))
def cov_corr(x, y):
    c = np.cov(x, y)
    r = np.corrcoef(x, y)[0, 1]
    return c[0, 1] / c[0, 0] + r

@case(lambda r, n: (matrix(r, n, 3),), (6, 9))
def pca_cov(X):
    C = np.cov(X, rowvar=False)
    R = np.corrcoef(X.T)
    w = np.linalg.eigvalsh(C)
    return w[-1] + R[0, 2]

@case(lambda r, n: (vector(r, n),))
def autocorr(x):
    xc = x - np.mean(x)
    c0 = np.dot(xc, xc) / len(x)
    r = np.array([np.dot(xc[: len(x) - k], xc[k:]) / len(x) / c0 for k in range(1, 4)])
    return r

@case(lambda r, n: (vector(r, n),))
def levinson(x):
    n = len(x)
    r = np.array([np.sum(x[: n - k] * x[k:]) for k in range(4)])
    a = np.zeros(4)
    a[0] = 1.0
    e = r[0]
    for k in range(1, 4):
        acc = r[k]
        for j in range(1, k):
            acc += a[j] * r[k - j]
        g = -acc / e
        b = a.copy()
        for j in range(1, k):
            a[j] = b[j] + g * b[k - j]
        a[k] = g
        e *= 1 - g * g
    return a

@case(lambda r, n: (positive(r, n), positive(r, n)))
def trapz_cum(t, y):
    x = np.cumsum(t)
    area = np.trapezoid(y, x)
    c = np.zeros(len(x))
    c[1:] = np.cumsum((y[1:] + y[:-1]) / 2 * np.diff(x))
    return area + c[-1] ** 2

@case(lambda r, n: (vector(r, n), positive(r, 5)))
def interp_table(q, steps):
    xs = np.cumsum(steps)
    ys = np.sin(xs)
    s = 0.0
    for v in q:
        t = 1.0 + abs(v) % 2.0
        i = np.searchsorted(xs, t)
        if i == 0 or i == len(xs):
            continue
        w = (t - xs[i - 1]) / (xs[i] - xs[i - 1])
        s += (1 - w) * ys[i - 1] + w * ys[i]
    return s

@case(lambda r, n: (vector(r, n),))
def histogram_soft(x):
    edges = np.linspace(-2, 2, 6)
    h = np.zeros(5)
    for v in x:
        for b in range(5):
            if edges[b] <= v < edges[b + 1]:
                h[b] += v
                break
    return h ** 2

@case(lambda r, n: (vector(r, n),))
def where_select(x):
    y = np.where(x > 0, x ** 2, np.where(x < -1, -1.0, x))
    z = np.select([x > 1, x > 0], [x, x ** 2], default=0.0)
    w = np.clip(x, -0.5, 0.5) + np.piecewise(x, [x < 0, x >= 0], [lambda t: -t, lambda t: t])
    return y.sum() + z.sum() + w.sum()


@case(lambda r, n: (vector(r, n), r.integers(0, 3, n)))
def group_means(x, g):
    out = np.zeros(3)
    for k in np.unique(g):
        out[k] = x[g == k].mean()
    return out

@case(lambda r, n: (vector(r, n), r.integers(0, 3, n)))
def group_bincount(x, g):
    s = np.bincount(g, weights=x, minlength=3)
    c = np.bincount(g, minlength=3)
    return s / np.maximum(c, 1)

@case(lambda r, n: (vector(r, n), r.integers(0, 2, n).astype(bool)))
def bool_masks(x, m):
    keep = ~m
    n = keep.sum()
    if n == 0:
        return 0.0 * x.sum()
    y = x[keep]
    return y.sum() / n + x[m].sum()

@case(lambda r, n: (matrix(r, n), r.permutation(n)), (4, 6))
def permuted(a, p):
    b = a[p][:, p]
    c = a[np.ix_(p[:2], p[1:3])]
    b[0, :] = c.sum()
    inv = np.empty_like(p)
    inv[p] = np.arange(len(p))
    return (b[inv] * a).sum()

@case(lambda r, n: (vector(r, n),))
def int_state(x):
    counts = np.zeros(3, dtype=int)
    state = 0
    cost = 0.0
    trans = np.array([[1, 2], [2, 0], [0, 1]])
    for v in x:
        counts[state] += 1
        cost += v * (state + 1) / counts[state]
        state = trans[state, int(v > 0)]
    return cost

@case(lambda r, n: (positive(r, n),))
def lcg_noise(x):
    seed = 12345
    s = 0.0
    for v in x:
        seed = (1103515245 * seed + 12345) % 2147483648
        u = seed / 2147483648
        s += v * u
    return s

@case(lambda r, n: (matrix(r, n, 2),), (5, 7))
def polygon_area(p):
    n = len(p)
    a = 0.0
    for i in range(n):
        x1, y1 = p[i]
        x2, y2 = p[(i + 1) % n]
        a += x1 * y2 - x2 * y1
    return abs(a) / 2

@case(lambda r, n: (vector(r, n),))
def running_window(x):
    w = 3
    out = np.zeros(len(x) - w + 1)
    s = x[:w].sum()
    out[0] = s / w
    for i in range(w, len(x)):
        s += x[i] - x[i - w]
        out[i - w + 1] = s / w
    return out.max() - out.min()

@case(lambda r, n: (vector(r, n),))
def ewm_inplace_ops(x):
    y = x.copy()
    y += 1
    y *= 2
    y -= x
    y /= 3
    y **= 2
    y //= 1e9
    z = x.copy()
    z %= 0.7
    return y.sum() + z.sum()

@case(lambda r, n: (matrix(r, n, 4),), (3, 5))
def axis_ops(a):
    return a.sum(0).max() + np.prod(a, axis=1).sum() + a.mean(axis=(0, 1)) + np.cumsum(a, axis=1)[:, -1].sum() \
        + np.linalg.norm(a, axis=0).sum() + a.min(axis=-1, keepdims=True).sum()

@case(lambda r, n: (matrix(r, n), vector(r, n)), (3, 5))
def linalg_mix(A, b):
    A = A @ A.T + np.eye(len(b))
    x = np.linalg.solve(A, b)
    L = np.linalg.cholesky(A)
    sign, ld = np.linalg.slogdet(A)
    return x @ b + ld + np.trace(np.linalg.inv(A)) + L[-1, 0]

@case(lambda r, n: (r.normal(size=(n, 3, 3)),), (2, 4))
def batched(A):
    out = np.zeros((A.shape[0], 3))
    for k in range(A.shape[0]):
        S = A[k] + A[k].T
        out[k] = S @ np.array([1.0, 2.0, 3.0])
    return np.einsum("ki,kij->j", out, A)

@case(lambda r, n: (vector(r, n),))
def concat_append(x):
    out = np.array([])
    for v in x[:4]:
        out = np.append(out, v * v)
    y = np.concatenate((out, x[::-1], [1.0, x[0]]))
    return (y * np.arange(y.size)).sum()

@case(lambda r, n: (vector(r, n),))
def stack_rows(x):
    rows = []
    for k in range(3):
        rows.append(x ** (k + 1))
    A = np.array(rows)
    B = np.vstack([x, x * 2])
    return (A @ B.T).sum() + np.column_stack((x, x)).sum()

@case(lambda r, n: (vector(r, n),))
def vandermonde_fit(y):
    t = np.linspace(0, 1, len(y))
    A = np.vander(t, 3)
    c = np.linalg.solve(A.T @ A, A.T @ y)
    return np.polyval(c, 0.3)

@case(lambda r, n: (vector(r, n),))
def ellipsis_newaxis(x):
    a = x[np.newaxis, :, None]
    b = np.tile(a, (2, 1, 3))
    b[..., 0] *= 2
    b[1, ...] += x[:, np.newaxis]
    return b[..., ::2].sum() + b[-1, 1:, -1].sum()

@case(lambda r, n: (vector(r, n),))
def shape_tricks(x):
    n = len(x) // 2
    a = x[: 2 * n].reshape(n, 2)
    b = a.T.copy()
    b[0] = a[:, 1]
    c = b.reshape(2 * n)
    c[-1] += 3
    return c.dot(x[: 2 * n]) + a.shape[0] + b.size + b.ndim

@case(lambda r, n: (vector(r, n),))
def nan_handling(x):
    y = x.copy()
    y[1] = np.nan
    s = 0.0
    for v in y:
        if np.isnan(v):
            continue
        s += v
    return s + np.nansum(y) + np.nanmean(y)

@case(lambda r, n: (vector(r, n),))
def sort_args(x):
    i = np.argsort(x)
    r = np.empty(len(x), dtype=int)
    r[i] = np.arange(len(x))
    y = np.sort(x)[::-1]
    return (r * x).sum() + y[0] - y[-1] + x[np.argmax(x)]

@case(lambda r, n: (positive(r, n), positive(r, n)))
def out_args(a, b):
    t = np.empty_like(a)
    np.multiply(a, b, out=t)
    np.add(t, 1.0, out=t)
    np.log(t, out=t)
    np.subtract(t, 0.3, t)
    return t.sum()

@case(lambda r, n: (vector(r, n),))
def mutate_argument(x):
    x[0] = x[1] * 2
    x[1:] -= x[0]
    return x.sum()

@case(lambda r, n: (matrix(r, n, 3),), (4, 5))
def rows_iter(a):
    s = np.zeros(3)
    for row in a:
        s += row / (1 + np.abs(row).max())
    for i, row in enumerate(a[1:], 1):
        s[i % 3] -= row @ a[i - 1]
    return s

@case(lambda r, n: (matrix(r, n),), (4, 5))
def diag_tri(a):
    d = np.diag(a)
    L = np.tril(a, -1)
    U = np.triu(a)
    b = np.diag(d ** 2) + L @ U
    np.fill_diagonal(b, 1.0)
    i, j = np.triu_indices(len(a), 1)
    return b.sum() + a[i, j].sum()

@case(lambda r, n: (vector(r, n), vector(r, 3)))
def convolve_correlate(x, k):
    return np.convolve(x, k, mode="same").sum() + np.correlate(x, k, "valid").max()

@case(lambda r, n: (matrix(r, n),), (4, 5))
def game_of_heat(a):
    b = np.pad(a, 1, mode="edge")
    s = b[:-2, 1:-1] + b[2:, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:]
    return np.where(s > a, a + 0.1 * s, a).sum()

@case(lambda r, n: (vector(r, n),))
def z_alias(x):
    s = np.array(0.0)
    t = s
    for v in x:
        s += v
        t *= 0.9
    u = s.copy()
    s[...] = 3.0 * x[0]
    u[()] += t
    return s * t + u
@case(lambda r, n: (vector(r, n),))
def z_rebound(x):
    best = np.array(-np.inf)
    acc = np.array(0.0)
    for i in range(len(x)):
        acc += x[i]
        best = np.maximum(best, acc)
    return acc + best
@case(lambda r, n: (vector(r, n),))
def z_out(x):
    s = np.empty(())
    np.multiply(x[0], x[1], out=s)
    np.add(s, 1.0, out=s)
    np.exp(s, s)
    return s * x.sum()
@case(lambda r, n: (vector(r, n),))
def z_function(x):
    def add(a, v):
        a += v
        a[...] = a * 0.5
    s = np.full((), 2.0)
    for v in x:
        add(s, v)
    return s
@case(lambda r, n: (vector(r, n),))
def z_array_ops(x):
    s = np.array(x[0])
    y = x * s
    s -= 1
    y[1] = s
    y[y > s] = s
    n = np.array(3)
    n += 2
    k = np.zeros((), dtype=int)
    k += n
    return y.sum() * n + s.ndim + k + (s if s > 0 else -s)
@case(lambda r, n: (vector(r, n).astype(np.float32),), tol=2e-2)
def z_float32(x):
    s = np.zeros((), dtype=np.float32)
    for v in x:
        s += v
        s *= 1.1
    return s * x[0]
@case(lambda r, n: (vector(r, n),))
def z_history(x):
    s = np.zeros(())
    h = []
    for v in x:
        s += v
        h.append(s)
    return h[0] + h[-1]
@case(lambda r, n: (vector(r, n),))
def z_history_copy(x):
    s = np.zeros(())
    h = []
    for v in x:
        s += v
        h.append(s.copy())
    return sum(h)
@case(lambda r, n: (vector(r, n),))
def z_in_loop(x):
    total = 0.0
    for v in x:
        s = np.zeros(())
        for k in range(3):
            s += v * k
        total = total + s
    return total * s

@case(lambda r, n: (vector(r, n),))
def z_tuple(x):
    a, b = np.zeros(()), np.ones(())
    state = (a, b)
    for v in x:
        p, q = state
        p += v
        q *= v
    d = {"a": a}
    d["a"] += 1.0
    return a * b + state[0]
@case(lambda r, n: (vector(r, n),))
def z_conditional(x):
    s = np.zeros(())
    for v in x:
        if v > 0:
            s += v
        elif v < -1:
            s = s * 0.5
    return s
@case(lambda r, n: (vector(r, n),))
def z_asarray(x):
    s = np.asarray(x.sum())
    t = np.asarray(s)
    t += 1
    u = np.asarray(2.0)
    return s * u + float(np.array(1.5))


# -- arrays in lists ---------------------------------------------------------------------------------------------------


@case(lambda r, n: (vector(r, n),))
def list_item_updated(x):
    l = []
    for i in range(3):
        l.append(x * i)
    h = l[-1]
    h += 1.0
    return l[-1].sum() + l[2][0]

@case(lambda r, n: (vector(r, n),))
def list_element_written(x):
    l = []
    for i in range(3):
        l.append(x * i)
    l[1][0] = 7 * x[0]
    return (l[1] ** 2).sum()

@case(lambda r, n: (vector(r, n),))
def list_rows_updated(x):
    l = []
    for i in range(3):
        l.append(x * i)
    for row in l:
        row -= x * x
    return (l[1] ** 2).sum()

@case(lambda r, n: (vector(r, n),))
def list_view_written(x):
    l = []
    for i in range(3):
        l.append(x * i)
    w = l[0][1:]
    w[0] = x[1] * 3
    return (l[0] ** 2).sum()

@case(lambda r, n: (vector(r, n),))
def list_item_updated_in_a_branch(x):
    l = []
    for i in range(3):
        h = x * i
        l.append(h)
        if x[0] > 0.5:
            h += 1
    return l[1].sum()

@case(lambda r, n: (vector(r, n),))
def list_matrix_grown(x):
    l = []
    P = np.outer(x, x)
    for i in range(3):
        l.append(P)
        P[0, 0] += x[1]
    return l[0].sum() + l[1][0, 0]

@case(lambda r, n: (vector(r, n),))
def list_of_matrices(x):
    l = []
    P = np.outer(x, x)
    for i in range(3):
        l.append(P.T)
        P = P * x + x[:, None]
    return sum(p[0] @ p[1] for p in l) + np.array(l).std()

@case(lambda r, n: (vector(r, n),))
def list_of_ragged_arrays(x):
    l = []
    for i in range(len(x)):
        l.append(x[:i] * 2)
    l.pop()
    l.append(x[1:] * x[0])
    t = np.concatenate([l[1], l[2]]).sum() + np.array(l[1:2]).sum()
    for r in reversed(l):
        t = t + (r * r).sum() * len(r)
    return t

@case(lambda r, n: (vector(r, n),))
def list_of_pairs_of_arrays(x):
    pairs = []
    P = np.eye(len(x))
    for i in range(4):
        P = P * 0.5 + np.outer(x, x)
        pairs.append((P, x * i, i))
    s = 0.0
    for P, v, k in pairs[::-1]:
        s = s * 0.5 + v @ P @ v * k
    return s

@case(lambda r, n: (vector(r, n),))
def tuples_written_to_rows(x):
    a = np.zeros((len(x), 2))
    for i in range(len(x)):
        a[i] = x[i], x[i] ** 2
        a[i] = [a[i, 1], a[i, 0]]
        a[i, :] = (a[i, 1] + 1, a[i, 0])
    return (a * np.arange(2.0 * len(x)).reshape(-1, 2)).sum()

@case(lambda r, n: (vector(r, n), 3))
def slices_of_variables(x, k):
    s = slice(0, k)
    k = k + 1
    r = slice(None, k - 1)
    t = slice(k)
    y = x.copy()
    y[s] = y[s] * 2
    y[r] += 1
    return (y[t] ** 2).sum()

@case(lambda r, n: (vector(r, n),))
def list_extended_by_repeats(x):
    fit = []
    for i, v in enumerate(x):
        fit += [v * v] * (i % 3)
    return (np.array(fit) * np.arange(len(fit))).sum()

@case(lambda r, n: (matrix(r, n, 3), 0.2 * matrix(r, 3), 0.2 * matrix(r, 3)))
def list_of_weights_trained(X, w1, w2):
    params = [w1, w2]
    for epoch in range(3):
        hidden = np.tanh(X @ params[0])
        error = hidden @ params[1] - X
        grads = [X.T @ (error @ params[1].T * (1 - hidden ** 2)), hidden.T @ error]
        for i in range(len(params)):
            params[i] = params[i] - 0.01 * grads[i]
    return sum((p ** 2).sum() for p in params)

@case(lambda r, n: (vector(r, n), 4))
def list_of_buffers_assigned(x, steps):
    rows = [x * 1.0, x * 2.0, x * 0.0]
    for t in range(steps):
        before = rows[t % 3]
        rows[(t + 1) % 3] = before * 0.5 + rows[t % 3 - 1] * x
        rows[t % 3] = rows[t % 3] + before
    return (rows[0] * rows[1]).sum() + rows[2][0]

@case(lambda r, n: (vector(r, n), 2))
def list_of_buffers_of_other_lengths(x, k):
    rows = [x * 1.0, x * 2.0]
    for t in range(3):
        rows[t % k] = rows[t % k][1:]
    return rows[0].sum() * rows[1].sum()

@case(lambda r, n: (vector(r, n),))
def list_assigned_then_updated(x):
    rows = [x * 1.0, x * 2.0]
    h = x * 3.0
    for t in range(2):
        rows[t] = h
    h += 1.0
    return (rows[0] * rows[1]).sum()

@case(lambda r, n: (vector(r, n), 1))
def list_of_one_array_updated(x, k):
    rows = [x * 1.0, x * 2.0]
    h = x * 3.0
    for t in range(2):
        rows[t] = h
    rows[k] += x
    return (rows[0] * rows[1]).sum()


# -- sorting in place --------------------------------------------------------------------------------------------------


@case(lambda r, n: (vector(r, n),))
def sorted_in_place(x):
    y = x * 1
    z = y
    z.sort()
    A = np.outer(x, np.cos(np.arange(len(x))))
    A[0].sort()
    A.sort(axis=0)
    A.T[1].sort()
    part = y[:2]
    part *= -1
    y.sort()
    return (y * np.arange(len(y))).sum() + (A * np.arange(A.size).reshape(A.shape)).sum()

@case(lambda r, n: (vector(r, n), 0.5))
def medians_by_sorting(x, weight):
    total = 0.0
    for i in range(2, len(x)):
        window = x[i - 2 : i + 1].copy()
        window.sort()
        total += window[1] * weight + window[0]
    return total

@case(lambda r, n: (vector(r, n),))
def list_item_sorted(x):
    l = []
    for i in range(3):
        l.append(x * (i + 1))
    l[0].sort()
    return (l[0] * np.arange(len(x))).sum()


# -- results written to arrays that are given by position --------------------------------------------------------------


@case(lambda r, n: (positive(r, n),))
def clipped_to_a_position(x):
    y = np.ones(len(x))
    np.clip(x, 0.7, 1.2, y)
    z = y * x
    z.clip(0.6, 1.1, y)
    return (y * x).sum()

@case(lambda r, n: (vector(r, n),))
def reduced_to_a_position(x):
    y = np.zeros(len(x))
    np.add.reduce(np.outer(x, x), 0, None, y)
    return (y * y).sum()

@case(lambda r, n: (positive(r, n),))
def clipped_in_some_places(x):
    y = np.ones(len(x))
    np.clip(x, 0.7, 1.2, where=x > 0.9, out=y)
    return (y * x).sum()
