"""Programs in plain NumPy, as textbooks and NPBench have them, with forms for JAX where there are any."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

__all__ = ["PROGRAMS"]

SEASON: Final = 52


def holt_winters(p: Any, y: Any) -> Any:
    """Additive Holt-Winters smoothing."""
    n = len(y)
    level, trend, season = np.zeros(n), np.zeros(n), np.zeros(n + 52)
    level[0] = y[0]
    total = 0.0
    for t in range(1, n):
        error = y[t] - (level[t - 1] + trend[t - 1] + season[t])
        total = total + error * error
        level[t] = p[0] * (y[t] - season[t]) + (1 - p[0]) * (level[t - 1] + trend[t - 1])
        trend[t] = p[1] * (level[t] - level[t - 1]) + (1 - p[1]) * trend[t - 1]
        season[t + 52] = p[2] * (y[t] - level[t]) + (1 - p[2]) * season[t]
    return total


def overwritten(a: Any, x: Any) -> Any:
    """A logistic map whose state is one element that is overwritten."""
    state = np.zeros(1)
    state[0] = a[1]
    total = 0.0
    for t in range(len(x)):
        state[0] = a[0] * state[0] * (1.0 - state[0]) + x[t]
        total += state[0]
    return total


def soft_dtw(costs: Any) -> Any:
    """Soft dynamic time warping."""
    n = len(costs)
    r = np.full((n + 1, n + 1), 1e3)
    r[0, 0] = 0.0
    for i in range(1, n + 1):
        for j in range(1, n + 1):
            total = np.exp(-r[i - 1, j - 1]) + np.exp(-r[i - 1, j]) + np.exp(-r[i, j - 1])
            r[i, j] = costs[i - 1, j - 1] - np.log(total + 1e-300)
    return r[n, n]


def heat(u0: Any) -> Any:
    """The heat equation in two dimensions, in place."""
    u = u0.copy()
    for _ in range(100):
        u[1:-1, 1:-1] += 0.1 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])
    return (u * u).sum()


def thomas(diagonal: Any, right: Any) -> Any:
    """A tridiagonal system."""
    n = len(right)
    c, d = np.zeros(n), np.zeros(n)
    c[0] = -1.0 / diagonal[0]
    d[0] = right[0] / diagonal[0]
    for i in range(1, n):
        w = diagonal[i] + c[i - 1]
        c[i] = -1.0 / w
        d[i] = (right[i] + d[i - 1]) / w
    for i in range(n - 2, -1, -1):
        d[i] -= c[i] * d[i + 1]
    return (d * d).sum()


def kalman(p: Any, y: Any) -> Any:
    """A Kalman filter of a random walk with missing observations."""
    m, v, loss = 0.0, 10.0, 0.0
    for t in range(len(y)):
        v = v + p[0] * p[0]
        if np.isnan(y[t]):
            continue
        s = v + p[1] * p[1]
        gain = v / s
        error = y[t] - m
        loss += 0.5 * (np.log(s) + error * error / s)
        m = m + gain * error
        v = (1 - gain) * v
    return loss


def newton(a: Any, start: Any) -> Any:
    """Newton's iteration to a tolerance, for each of some equations."""
    total = 0.0
    for k in range(len(a)):
        x = start[0]
        while abs(x * x * x + a[k] * x - 2.0) > 1e-10:
            x = x - (x * x * x + a[k] * x - 2.0) / (3 * x * x + a[k])
        total += x * x
    return total


def cholesky(a: Any) -> Any:
    """The Cholesky factor, element by element (NPBench: cholesky)."""
    n = len(a)
    l = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1):
            s = a[i, j]
            for k in range(j):
                s = s - l[i, k] * l[j, k]
            if i == j:
                l[i, j] = np.sqrt(s)
            else:
                l[i, j] = s / l[j, j]
    return l.sum()


def lu(a0: Any) -> Any:
    """The LU factors in place, element by element (NPBench: lu)."""
    a = a0.copy()
    n = len(a)
    for k in range(n - 1):
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
            for j in range(k + 1, n):
                a[i, j] -= a[i, k] * a[k, j]
    return (a * a).sum()


def jacobi_1d(a0: Any) -> Any:
    """Averages of neighbours, to and fro (NPBench: jacobi_1d)."""
    a, b = a0.copy(), a0.copy()
    for _ in range(1, 100):
        b[1:-1] = 0.33333 * (a[:-2] + a[1:-1] + a[2:])
        a[1:-1] = 0.33333 * (b[:-2] + b[1:-1] + b[2:])
    return (a * a).sum()


def jacobi_2d(a0: Any) -> Any:
    """The same in two dimensions (NPBench: jacobi_2d)."""
    a, b = a0.copy(), a0.copy()
    for _ in range(1, 30):
        b[1:-1, 1:-1] = 0.2 * (a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1])
        a[1:-1, 1:-1] = 0.2 * (b[1:-1, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:] + b[2:, 1:-1] + b[:-2, 1:-1])
    return (a * a).sum()


def seidel_2d(a0: Any) -> Any:
    """Averages of neighbours that are overwritten as they are computed (NPBench: seidel_2d)."""
    a = a0.copy()
    n = len(a)
    for _ in range(5):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                a[i, j] = (
                    a[i - 1, j - 1] + a[i - 1, j] + a[i - 1, j + 1] + a[i, j - 1] + a[i, j] + a[i, j + 1]
                    + a[i + 1, j - 1] + a[i + 1, j] + a[i + 1, j + 1]
                ) / 9.0
    return (a * a).sum()


def trisolv(l: Any, b: Any) -> Any:
    """A triangular system (NPBench: trisolv)."""
    n = len(b)
    x = np.zeros(n)
    for i in range(n):
        s = b[i]
        for j in range(i):
            s = s - l[i, j] * x[j]
        x[i] = s / l[i, i]
    return (x * x).sum()


def durbin(r: Any) -> Any:
    """Durbin's recursion for Toeplitz systems (NPBench: durbin)."""
    n = len(r)
    y, z = np.zeros(n), np.zeros(n)
    y[0] = -r[0]
    alpha, beta = -r[0], 1.0
    for k in range(1, n):
        beta = (1.0 - alpha * alpha) * beta
        s = r[k]
        for i in range(k):
            s = s + r[k - i - 1] * y[i]
        alpha = -s / beta
        for i in range(k):
            z[i] = y[i] + alpha * y[k - i - 1]
        for i in range(k):
            y[i] = z[i]
        y[k] = alpha
    return (y * y).sum()


def _positive(rng: np.random.Generator, n: int) -> Any:
    b = rng.normal(size=(n, n))
    return b @ b.T + n * np.eye(n)


def _with_gaps(rng: np.random.Generator, n: int) -> Any:
    y = rng.normal(size=n)
    y[2::7] = np.nan
    return y


Draw = Callable[[np.random.Generator, int], tuple[Any, ...]]
# By name: the function, a size, and what draws arguments of a size.
PROGRAMS: Final[dict[str, tuple[Callable[..., Any], int, Draw]]] = {
    "holt-winters": (holt_winters, 2134, lambda r, n: (np.array([0.3, 0.05, 0.2]), r.normal(size=n))),
    "overwritten": (overwritten, 2000, lambda r, n: (np.array([2.9, 0.3]), 0.01 * r.random(n))),
    "soft-dtw": (soft_dtw, 200, lambda r, n: (r.random((n, n)),)),
    "heat": (heat, 200, lambda r, n: (r.random((n, n)),)),
    "thomas": (thomas, 2000, lambda r, n: (3 + r.random(n), r.normal(size=n))),
    "kalman": (kalman, 2000, lambda r, n: (np.array([0.4, 0.7]), _with_gaps(r, n))),
    "newton": (newton, 300, lambda r, n: (2.0 + r.random(n), np.array([1.5]))),
    "cholesky": (cholesky, 40, lambda r, n: (_positive(r, n),)),
    "lu": (lu, 40, lambda r, n: (_positive(r, n),)),
    "jacobi-1d": (jacobi_1d, 4000, lambda r, n: (r.random(n),)),
    "jacobi-2d": (jacobi_2d, 150, lambda r, n: (r.random((n, n)),)),
    "seidel-2d": (seidel_2d, 60, lambda r, n: (r.random((n, n)),)),
    "trisolv": (trisolv, 200, lambda r, n: (np.tril(r.random((n, n))) + n * np.eye(n), r.normal(size=n))),
    "durbin": (durbin, 200, lambda r, n: (0.3 * r.random(n) / np.arange(1, n + 1),)),
}
