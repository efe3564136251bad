"""Programs in plain NumPy, as in textbooks and NPBench, measured by `sources` and `compiled`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

__all__ = ["PROGRAMS", "SHOWN"]

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
    """Averages of neighbours, alternating between two arrays (NPBench: jacobi_1d)."""
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


def hidden_markov(a: Any, b: Any, start: Any) -> Any:
    """The forward algorithm of a hidden Markov model, with scaled probabilities."""
    steps, k = b.shape
    alpha = np.zeros((steps, k))
    total = 0.0
    for i in range(k):
        alpha[0, i] = start[i] * b[0, i]
    for t in range(1, steps):
        scale = 0.0
        for j in range(k):
            s = 0.0
            for i in range(k):
                s += alpha[t - 1, i] * a[i, j]
            alpha[t, j] = s * b[t, j]
            scale += alpha[t, j]
        for j in range(k):
            alpha[t, j] /= scale
        total += np.log(scale)
    return total


def garch(p: Any, r: Any) -> Any:
    """The likelihood of a GARCH(1, 1) model."""
    h, loss = 1.0, 0.0
    for t in range(len(r)):
        loss += 0.5 * (np.log(h) + r[t] * r[t] / h)
        h = p[0] + p[1] * r[t] * r[t] + p[2] * h
    return loss


def soft_viterbi(scores: Any, moves: Any) -> Any:
    """A soft Viterbi recursion: the greatest score is taken out of each exponential."""
    n, k = scores.shape
    best = np.zeros((n, k))
    for j in range(k):
        best[0, j] = scores[0, j]
    for t in range(1, n):
        top = best[t - 1, 0]
        for i in range(1, k):
            if best[t - 1, i] > top:
                top = best[t - 1, i]
        for j in range(k):
            total = 0.0
            for i in range(k):
                total += np.exp(best[t - 1, i] - top + moves[i, j])
            best[t, j] = top + np.log(total) + scores[t, j]
    end = 0.0
    for j in range(k):
        end += np.exp(best[n - 1, j] - best[n - 1, 0])
    return np.log(end) + best[n - 1, 0]


def neuron(p: Any, current: Any) -> Any:
    """A leaky integrate-and-fire neuron."""
    v, cost = 0.0, 0.0
    for t in range(len(current)):
        v = v + 0.1 * (-v / p[0] + p[1] * current[t])
        if v > 1.0:
            v = v - 1.2
        cost += (v - 0.3) ** 2
    return cost


def cart_pole(gains: Any, start: Any, kicks: Any) -> Any:
    """A cart with a pole between two walls, by Runge and Kutta's method."""
    x, v, a, w = start[0], start[1], start[2], start[3]
    cost, h = 0.0, 0.02
    for t in range(len(kicks)):
        force = gains[0] * x + gains[1] * v + gains[2] * a + gains[3] * w + kicks[t]
        x0, v0, a0, w0, c = x, v, a, w, 0.0
        dx, dv, da, dw = 0.0, 0.0, 0.0, 0.0
        for stage in range(4):
            sin, cos = np.sin(a), np.cos(a)
            pull = (force + 0.05 * w * w * sin) / 1.1
            turn = (9.8 * sin - cos * pull) / (0.5 * (4.0 / 3.0 - 0.1 * cos * cos / 1.1))
            push = pull - 0.05 * turn * cos / 1.1
            weight = 1.0 / 3.0 if stage == 1 or stage == 2 else 1.0 / 6.0
            dx, dv, da, dw = dx + weight * v, dv + weight * push, da + weight * w, dw + weight * turn
            c = h if stage == 2 else 0.5 * h
            x, v, a, w = x0 + c * v, v0 + c * push, a0 + c * w, w0 + c * turn
        x, v, a, w = x0 + h * dx, v0 + h * dv, a0 + h * da, w0 + h * dw
        if abs(x) > 0.12:
            v = -0.5 * v
        cost += a * a + 0.1 * x * x + 0.001 * force * force
    return cost


def recurrence(x: Any, a: Any) -> Any:
    """A recurrence of rows."""
    y = np.zeros(x.shape)
    y[0] = x[0]
    for i in range(1, len(x)):
        y[i] = a * y[i - 1] + x[i]
    return (y * y).sum()


def row_fill(x: Any) -> Any:
    """A table filled row by row."""
    y = np.zeros(x.shape)
    for i in range(len(x)):
        y[i] = x[i] * 2.0
    return y.sum()


def bodies(x0: Any, v0: Any, steps: int = 20) -> Any:
    """Bodies that attract each other, number by number."""
    x, v = x0.copy(), v0.copy()
    n = len(x)
    for _ in range(steps):
        for i in range(n):
            for j in range(n):
                if i != j:
                    d0, d1 = x[j, 0] - x[i, 0], x[j, 1] - x[i, 1]
                    r = np.sqrt(d0 * d0 + d1 * d1 + 0.1)
                    v[i, 0] += 0.01 * d0 / (r * r * r)
                    v[i, 1] += 0.01 * d1 / (r * r * r)
        for i in range(n):
            x[i, 0] += v[i, 0]
            x[i, 1] += v[i, 1]
    return (x * x).sum()


def alignment(scores: Any, gap: Any) -> Any:
    """Soft alignment with affine gaps, number by number."""
    n, m = scores.shape
    match, insert, delete = [np.full((n + 1, m + 1), -50.0) for _ in range(3)]
    match[0, 0] = 0.0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            before = np.exp(match[i - 1, j - 1]) + np.exp(insert[i - 1, j - 1]) + np.exp(delete[i - 1, j - 1])
            match[i, j] = scores[i - 1, j - 1] + np.log(before)
            insert[i, j] = np.log(np.exp(match[i, j - 1] - gap[0]) + np.exp(insert[i, j - 1] - gap[1]))
            delete[i, j] = np.log(np.exp(match[i - 1, j] - gap[0]) + np.exp(delete[i - 1, j] - gap[1]))
    return match[n, m]


def panels(a0: Any) -> Any:
    """An LU factorisation in place, by panels."""
    a = a0.copy()
    n = len(a)
    for k in range(n - 1):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return (a * a).sum()


def gauss_seidel(a: Any, b: Any) -> Any:
    """Gauss-Seidel iteration, row by row."""
    n = len(b)
    x = np.zeros(n)
    for _ in range(10):
        for i in range(n):
            x[i] = (b[i] - a[i] @ x + a[i, i] * x[i]) / a[i, i]
    return (x * x).sum()


def recurrent(w: Any, x: Any) -> Any:
    """A recurrent network."""
    h = np.zeros(len(w))
    for t in range(len(x)):
        h = np.tanh(w @ h + x[t])
    return (h * h).sum()


def _positive(rng: np.random.Generator, n: int) -> Any:
    b = rng.normal(size=(n, n))
    return b @ b.T + n * np.eye(n)


def _with_gaps(rng: np.random.Generator, n: int) -> Any:
    y = rng.normal(size=n)
    y[2::7] = np.nan
    return y


Draw = Callable[[np.random.Generator, int], tuple[Any, ...]]
# By name: the function, a size, and a function that draws arguments of a given size.
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
    "hmm": (hidden_markov, 2000, lambda r, n: (r.random((4, 4)), r.random((n, 4)), r.random(4))),
    "garch": (garch, 2000, lambda r, n: (np.array([0.1, 0.2, 0.6]), r.normal(size=n))),
    "viterbi": (soft_viterbi, 200, lambda r, n: (r.normal(size=(n, 6)), r.normal(size=(6, 6)))),
    "neuron": (neuron, 2000, lambda r, n: (np.array([1.5, 2.5]), 1.0 + r.normal(size=n))),
    "cart-pole": (cart_pole, 500, lambda r, n: (np.array([1.0, 2.0, -20.0, -3.0]), np.array([0.1, 0.0, 0.2, 0.0]),
                                                0.1 * r.normal(size=n))),
    "row-fill": (row_fill, 400, lambda r, n: (r.random((n, 1000)),)),
    "recurrence": (recurrence, 400, lambda r, n: (r.random((n, 1000)), np.array(0.9))),
    "bodies": (bodies, 5, lambda r, n: (r.normal(size=(n, 2)), r.normal(size=(n, 2)))),
    "alignment": (alignment, 40, lambda r, n: (r.random((n, n)), np.array([1.0, 0.3]))),
    "lu-panels": (panels, 50, lambda r, n: (_positive(r, n),)),
    "gauss-seidel": (gauss_seidel, 20, lambda r, n: (_positive(r, n), r.normal(size=n))),
    "rnn": (recurrent, 100, lambda r, n: (r.normal(size=(16, 16)) * 0.2, r.normal(size=(n, 16)))),
}
# The programs in the table of docs/compile.md, with their names there.
SHOWN: Final = {
    "holt-winters": "Holt-Winters, {n} steps", "overwritten": "one element overwritten, {n} steps",
    "soft-dtw": "soft-DTW, {n} x {n}", "heat": "heat equation, {n} x {n}, 100 steps, slices",
    "thomas": "Thomas algorithm, {n} rows", "hmm": "hidden Markov model, 4 states, {n} steps",
    "kalman": "Kalman filter with gaps, {n} steps", "garch": "GARCH, {n} steps",
    "viterbi": "soft Viterbi, 6 states, {n} steps", "neuron": "leaky neuron (`if`), {n} steps",
    "cart-pole": "cart-pole by Runge-Kutta with contact (`if`), {n} steps",
    "newton": "Newton to a tolerance (`while`), {n} equations", "cholesky": "Cholesky by elements, {n} x {n}",
    "lu": "LU by elements, {n} x {n}", "jacobi-1d": "Jacobi, {n} points, 99 steps, slices",
    "jacobi-2d": "Jacobi, {n} x {n}, 29 steps, slices", "seidel-2d": "Seidel, {n} x {n}, 5 steps",
    "trisolv": "triangular system, {n} rows", "durbin": "Durbin's recursion, {n} terms",
}  # fmt: skip
