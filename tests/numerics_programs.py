"""Textbook numerics in plain NumPy, as people write it for Numba: loops, branches, jumps, views, state, records.

Each program has a function that draws its arguments for a length. Values are compared with NumPy's, and gradients with
differences along a direction, so that nothing here depends on how the library works.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import NamedTuple

import numpy as np
from registering import registering

PROGRAMS = {}
drawn = registering(PROGRAMS)


def normal(rng, n):
    return (rng.normal(size=n),)


def matrix(rng, n):
    return (rng.uniform(0.3, 1.7, (n, n + 1)),)


def square(rng, n):
    return (rng.uniform(-1, 1, (n, n)) + 3 * n * np.eye(n),)


def definite(rng, n):
    a = rng.uniform(-1, 1, (n, n))
    return (a @ a.T + n * np.eye(n),)


# -- time series and filters -------------------------------------------------------------------------------------------


@drawn(lambda rng, n: (rng.uniform(0.1, 0.4, 3), rng.normal(size=n)))
def garch(p, returns):
    omega, alpha, beta = p
    variance = np.empty(len(returns))
    variance[0] = omega / (1.0 - alpha - beta)
    nll = 0.0
    for t in range(1, len(returns)):
        variance[t] = omega + alpha * returns[t - 1] ** 2 + beta * variance[t - 1]
        nll += 0.5 * (math.log(variance[t]) + returns[t] ** 2 / variance[t])
    return nll


@drawn(lambda rng, n: (rng.uniform(0.2, 0.8, 3), rng.uniform(5, 9, n + 8)))
def holt_winters(p, y, m=4):
    alpha, beta, gamma = p
    level = np.mean(y[:m])
    trend = (y[m:2 * m].mean() - level) / m
    season = list(y[:m] - level)
    sse = 0.0
    for t in range(m, len(y)):
        s = season[t % 4]
        forecast = level + trend + s
        sse += (y[t] - forecast) ** 2
        last = level
        level = alpha * (y[t] - s) + (1 - alpha) * (level + trend)
        trend = beta * (level - last) + (1 - beta) * trend
        season[t % 4] = gamma * (y[t] - level) + (1 - gamma) * s
    return sse + trend


@drawn(lambda rng, n: (np.array([0.3, 0.2]), rng.normal(size=n), rng.uniform(size=n) > 0.3))
def local_level_with_gaps(q, y, seen):
    m, p, ll = 0.0, 10.0, 0.0
    for t in range(len(y)):
        p = p + q[0]
        if not seen[t]:
            continue
        f = p + q[1]
        v = y[t] - m
        ll -= 0.5 * (np.log(2 * np.pi * f) + v * v / f)
        gain = p / f
        m += gain * v
        p *= 1 - gain
    return ll


@drawn(lambda rng, n: (0.9 * np.eye(2) + 0.05, 0.1 * np.eye(2), rng.normal(size=n)))
def kalman(F, Q, y):
    H = np.array([[1.0, 0.5]])
    x = np.zeros(2)
    P = np.eye(2)
    ll = 0.0
    for obs in y:
        x = F @ x
        P = F @ P @ F.T + Q
        S = (H @ P @ H.T)[0, 0] + 0.1
        e = obs - (H @ x)[0]
        K = (P @ H.T)[:, 0] / S
        x = x + K * e
        P = P - np.outer(K, H @ P)
        ll -= 0.5 * (np.log(S) + e**2 / S)
    return ll


@drawn(lambda rng, n: (rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(3), 3), rng.normal(size=(n, 3))))
def hmm(pi, A, logb):
    n = logb.shape[0]
    alpha = pi * np.exp(logb[0])
    c = alpha.sum()
    alpha /= c
    ll = np.log(c)
    for t in range(1, n):
        alpha = (alpha @ A) * np.exp(logb[t])
        c = alpha.sum()
        alpha /= c
        ll += np.log(c)
    return ll


@drawn(lambda rng, n: (rng.normal(size=(n, 3)), rng.normal(size=(3, 3))))
def viterbi_score(scores, trans):
    best = scores[0].copy()
    back = np.zeros(scores.shape, dtype=np.int64)
    for t in range(1, scores.shape[0]):
        new = np.empty(3)
        for j in range(3):
            arg = 0
            for i in range(1, 3):
                if best[i] + trans[i, j] > best[arg] + trans[arg, j]:
                    arg = i
            back[t, j] = arg
            new[j] = best[arg] + trans[arg, j] + scores[t, j]
        best = new
    state = int(np.argmax(best))
    total = best[state]
    for t in range(scores.shape[0] - 1, 0, -1):
        state = back[t, state]
        total += 0.1 * scores[t - 1, state]
    return total


@drawn(lambda rng, n: (rng.normal(size=3), rng.normal(size=2) * 0.3, rng.normal(size=n)))
def iir_direct_form(b, a, x):
    z = np.zeros(3)
    y = np.zeros_like(x)
    for i, xi in enumerate(x):
        y[i] = b[0] * xi + z[0]
        for k in range(2):
            z[k] = b[k + 1] * xi + z[k + 1] - a[k] * y[i]
    return np.sum(y * y)


@drawn(lambda rng, n: (rng.normal(size=n + 4), rng.normal(size=4)))
def fir(x, h):
    y = []
    for i in range(len(h) - 1, len(x)):
        acc = 0.0
        for k in range(len(h)):
            acc += h[k] * x[i - k]
        y.append(acc)
    y = np.array(y)
    return np.sum(y**2)


@drawn(lambda rng, n: (rng.normal(size=n), np.array([0.3])))
def exponential_average_list(x, a):
    out = [x[0]]
    for v in x[1:]:
        out.append(a[0] * v + (1 - a[0]) * out[-1])
    return np.array(out).var()


@drawn(lambda rng, n: (rng.normal(size=n), np.array([0.2, 1.5])))
def leaky_integrate_and_fire(current, p):
    v, spikes, cost = 0.0, 0, 0.0
    refractory = 0
    for i in current:
        if refractory > 0:
            refractory -= 1
            continue
        v += p[0] * (p[1] * i + 1.0 - v)
        if v > 0.4:
            spikes += 1
            cost += v * spikes
            v = 0.0
            refractory = 2
    return cost + v


@drawn(lambda rng, n: (rng.normal(size=n), np.array([0.1, 0.05])))
def cusum(x, p):
    up = down = 0.0
    alarm = -1
    for t, v in enumerate(x):
        up = max(0.0, up + v - p[0])
        down = min(0.0, down + v + p[1])
        if up > 2.0 or down < -2.0:
            alarm = t
            break
    return up - down + 0.1 * alarm


@drawn(normal)
def lms(x):
    w = np.zeros(3)
    err = 0.0
    for t in range(3, len(x)):
        u = x[t - 3:t][::-1]
        e = x[t] - w @ u
        w += 0.05 * e * u
        err += e * e
    return err + w.sum()


@drawn(lambda rng, n: (rng.normal(size=(n, 3)), rng.normal(size=(4, 3)), rng.normal(size=(4, 4)) * 0.3))
def elman(xs, wx, wh):
    h = np.zeros(wh.shape[0])
    out = 0.0
    for x in xs:
        h = np.tanh(wx @ x + wh @ h)
        out += h[-1]
    return out


# -- dynamic programming -----------------------------------------------------------------------------------------------


def softmin(a, b, c, gamma):
    lo = min(a, min(b, c))
    return lo - gamma * math.log(math.exp((lo - a) / gamma) + math.exp((lo - b) / gamma) + math.exp((lo - c) / gamma))


@drawn(lambda rng, n: (rng.normal(size=n), rng.normal(size=n + 2), 0.7))
def soft_dtw(x, y, gamma):
    n, m = x.shape[0], y.shape[0]
    R = np.full((n + 1, m + 1), 1e6)
    R[0, 0] = 0.0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            d = (x[i - 1] - y[j - 1]) ** 2
            R[i, j] = d + softmin(R[i - 1, j], R[i, j - 1], R[i - 1, j - 1], gamma)
    return R[n, m]


@drawn(lambda rng, n: (rng.normal(size=n), rng.normal(size=n + 1)))
def edit_two_rows(x, y):
    prev = np.arange(len(y) + 1.0)
    for i in range(len(x)):
        cur = np.empty_like(prev)
        cur[0] = prev[0] + 1.0
        for j in range(len(y)):
            cur[j + 1] = min(prev[j] + abs(x[i] - y[j]), prev[j + 1] + 1.0, cur[j] + 1.0)
        prev, cur = cur, prev
    return prev[-1]


@drawn(lambda rng, n: (rng.uniform(1, 2, n + 1),))
def matrix_chain(d):
    n = len(d) - 1
    m = np.zeros((n, n))
    for length in range(2, n + 1):
        for i in range(n - length + 1):
            j = i + length - 1
            m[i, j] = np.inf
            for k in range(i, j):
                q = m[i, k] + m[k + 1, j] + d[i] * d[k + 1] * d[j + 1]
                if q < m[i, j]:
                    m[i, j] = q
    return m[0, n - 1]


@drawn(lambda rng, n: (rng.uniform(1, 2, n), rng.integers(1, 5, n), 3 + n))
def knapsack(values, weights, capacity):
    best = np.zeros(capacity + 1)
    for v, w in zip(values, weights):
        for c in range(capacity, w - 1, -1):
            if best[c - w] + v > best[c]:
                best[c] = best[c - w] + v
    return best[capacity]


@drawn(lambda rng, n: (rng.uniform(1, 3, (n, n)),))
def floyd_warshall(w):
    d = w.copy()
    n = d.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                through = d[i, k] + d[k, j]
                if through < d[i, j]:
                    d[i, j] = through
    return d.sum()


@drawn(normal)
def maximum_subarray(x):
    best, here = -np.inf, 0.0
    start = end = s = 0
    for i in range(len(x)):
        here += x[i]
        if here > best:
            best, start, end = here, s, i
        if here < 0:
            here, s = 0.0, i + 1
    return best + 0.01 * x[start] * x[end]


@drawn(lambda rng, n: (np.array([1.0, 0.05, 0.2, 1.1]), 4 + n % 9))
def american_put(p, steps):
    s0, r, sigma, strike = p
    dt = 1.0 / steps
    u = np.exp(sigma * np.sqrt(dt))
    d = 1 / u
    q = (np.exp(r * dt) - d) / (u - d)
    disc = np.exp(-r * dt)
    v = np.zeros(steps + 1)
    for j in range(steps + 1):
        v[j] = max(strike - s0 * u**j * d ** (steps - j), 0.0)
    for i in range(steps - 1, -1, -1):
        for j in range(i + 1):
            hold = disc * (q * v[j + 1] + (1 - q) * v[j])
            exercise = strike - s0 * u**j * d ** (i - j)
            v[j] = hold if hold > exercise else exercise
    return v[0]


# -- linear algebra ----------------------------------------------------------------------------------------------------


@drawn(definite)
def cholesky_by_elements(a):
    n = a.shape[0]
    l = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1):
            s = a[i, j]
            for k in range(j):
                s -= l[i, k] * l[j, k]
            if i == j:
                l[i, i] = math.sqrt(s)
            else:
                l[i, j] = s / l[j, j]
    return np.log(np.diag(l)).sum() + l[-1, 0]


@drawn(square)
def lu_by_elements(a):
    a = a.copy()
    n = len(a)
    det = 1.0
    for k in range(n):
        det *= a[k, k] / (3 * n)
        for i in range(k + 1, n):
            f = a[i, k] / a[k, k]
            a[i, k] = f
            for j in range(k + 1, n):
                a[i, j] -= f * a[k, j]
    return det


@drawn(lambda rng, n: (rng.normal(size=(n, n)), rng.normal(size=n)))
def gauss_with_pivoting(a0, b0):
    a, b = a0.copy(), b0.copy()
    n = b.size
    for k in range(n):
        p = k
        for i in range(k + 1, n):
            if abs(a[i, k]) > abs(a[p, k]):
                p = i
        if p != k:
            for j in range(n):
                a[k, j], a[p, j] = a[p, j], a[k, j]
            b[k], b[p] = b[p], b[k]
        if abs(a[k, k]) < 1e-14:
            raise ValueError(f"singular at step {k}")
        for i in range(k + 1, n):
            f = a[i, k] / a[k, k]
            a[i, k:] -= f * a[k, k:]
            b[i] -= f * b[k]
    x = np.zeros(n)
    for i in reversed(range(n)):
        x[i] = (b[i] - np.dot(a[i, i + 1:], x[i + 1:])) / a[i, i]
    return np.tanh(x).sum()


@drawn(lambda rng, n: (rng.uniform(0.1, 1, n), rng.uniform(3, 4, n), rng.uniform(0.1, 1, n), rng.normal(size=n)))
def thomas(a, b, c, d):
    n = len(d)
    cp = np.empty(n)
    dp = np.empty(n)
    cp[0], dp[0] = c[0] / b[0], d[0] / b[0]
    for i in range(1, n):
        w = b[i] - a[i] * cp[i - 1]
        cp[i] = c[i] / w
        dp[i] = (d[i] - a[i] * dp[i - 1]) / w
    x = np.empty(n)
    x[-1] = dp[-1]
    for i in range(n - 2, -1, -1):
        x[i] = dp[i] - cp[i] * x[i + 1]
    return x @ x


@drawn(lambda rng, n: (rng.normal(size=(n + 2, 3)),))
def modified_gram_schmidt(a):
    q = a.copy()
    n = q.shape[1]
    r = np.zeros((n, n))
    for k in range(n):
        r[k, k] = np.sqrt((q[:, k] ** 2).sum())
        q[:, k] /= r[k, k]
        for j in range(k + 1, n):
            r[k, j] = q[:, k] @ q[:, j]
            q[:, j] -= r[k, j] * q[:, k]
    return np.abs(r).sum()


@drawn(lambda rng, n: (rng.normal(size=(n + 3, 3)),))
def householder(a):
    r = np.array(a)
    n = r.shape[1]
    for k in range(n):
        x = r[k:, k]
        v = x.copy()
        v[0] += np.sign(x[0]) * np.linalg.norm(x)
        v /= np.linalg.norm(v)
        r[k:, k:] -= 2 * np.outer(v, v @ r[k:, k:])
    return np.sum(np.triu(r[:n]) ** 3)


@drawn(lambda rng, n: (definite(rng, n)[0], rng.normal(size=n)))
def conjugate_gradients(a, b):
    x = np.zeros_like(b)
    r = b - a @ x
    p = r.copy()
    rs = r @ r
    for _ in range(4):
        ap = a @ p
        alpha = rs / (p @ ap)
        x += alpha * p
        r -= alpha * ap
        new = r @ r
        if new < 1e-12:
            break
        p = r + (new / rs) * p
        rs = new
    return x @ np.sin(b)


@drawn(lambda rng, n: (definite(rng, n)[0],))
def power_iteration(a):
    v = np.ones(a.shape[0])
    lam = 0.0
    for it in range(30):
        w = a @ v
        new = np.sqrt(w @ w)
        v = w / new
        if it == 29:
            lam = v @ a @ v
    return lam


@drawn(lambda rng, n: (square(rng, n)[0], rng.normal(size=n)))
def gauss_seidel(a, b):
    x = np.zeros(len(b))
    for _ in range(6):
        for i in range(len(b)):
            s = 0.0
            for j in range(len(b)):
                if j == i:
                    continue
                s += a[i, j] * x[j]
            x[i] = (b[i] - s) / a[i, i]
    return (x**2).sum()


@drawn(lambda rng, n: (definite(rng, 3)[0], rng.normal(size=(n, 3))))
def gaussian_loglikelihood(cov, x):
    chol = np.linalg.cholesky(cov)
    logdet = 2 * np.sum(np.log(np.diagonal(chol)))
    total = 0.0
    for row in x:
        z = np.linalg.solve(chol, row)
        total += -0.5 * (z @ z + logdet)
    return total


# -- differential equations --------------------------------------------------------------------------------------------


@drawn(lambda rng, n: (rng.normal(size=n + 2), np.array(0.2)))
def heat_explicit(u0, r):
    u = u0.copy()
    for _ in range(6):
        new = u.copy()
        for i in range(1, len(u) - 1):
            new[i] = u[i] + r * (u[i - 1] - 2 * u[i] + u[i + 1])
        u = new
    return (u**2).sum()


@drawn(lambda rng, n: (rng.normal(size=n + 3), 0.4))
def lax_friedrichs(u, c):
    u = np.array(u)
    for _ in range(4):
        left, right = np.roll(u, 1), np.roll(u, -1)
        u = 0.5 * (left + right) - 0.25 * c * (right**2 - left**2)
    return u @ u


@drawn(lambda rng, n: (rng.normal(size=(n + 2, n + 3)),))
def wave_2d(u0):
    u, v = u0.copy(), np.zeros_like(u0)
    for _ in range(3):
        lap = np.zeros(u.shape)
        lap[1:-1, 1:-1] = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]
        v += 0.1 * lap
        u += 0.1 * v
    return (u**2).sum() + (v**2).sum()


@drawn(lambda rng, n: (np.array([1.0, 0.5]), np.array([1.1, 0.4, 0.4, 0.1]), n))
def lotka_volterra_rk4(y0, p, steps):
    a, b, c, d = p

    def rhs(y):
        return np.array([a * y[0] - b * y[0] * y[1], d * y[0] * y[1] - c * y[1]])

    y = y0
    h = 0.1
    for _ in range(steps):
        k1 = rhs(y)
        k2 = rhs(y + 0.5 * h * k1)
        k3 = rhs(y + 0.5 * h * k2)
        k4 = rhs(y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return y[0] * y[1]


@drawn(lambda rng, n: (np.array([1.0, 0.2, 0.3]), n))
def adaptive_step(p, limit):
    t, y, h, steps = 0.0, p[0], 0.1, 0
    f = lambda t, y: p[1] * np.sin(3 * t) - p[2] * y * y
    while t < 1.0 and steps < 4 + limit:
        k1 = f(t, y)
        k2 = f(t + h, y + h * k1)
        err = abs(0.5 * h * (k2 - k1))
        if err > 1e-2:
            h *= 0.5
            steps += 1
            continue
        y += 0.5 * h * (k1 + k2)
        t += h
        if err < 1e-3:
            h *= 1.5
        steps += 1
    return y


@drawn(lambda rng, n: (rng.normal(size=(4, 3)), rng.normal(size=(4, 3)), rng.uniform(1, 2, 4), n % 5 + 1))
def n_body_verlet(q0, v0, mass, steps):
    q, v = q0.copy(), v0.copy()
    n = len(mass)

    def forces(q):
        a = np.zeros_like(q)
        for i in range(n):
            for j in range(n):
                if i != j:
                    d = q[j] - q[i]
                    r2 = d @ d + 0.1
                    a[i] += mass[j] * d / r2**1.5
        return a

    a = forces(q)
    for _ in range(steps):
        v += 0.05 * a
        q += 0.1 * v
        a = forces(q)
        v += 0.05 * a
    return 0.5 * np.sum(mass[:, None] * v**2)


class Cart(NamedTuple):
    x: float
    v: float
    theta: float
    omega: float


@drawn(lambda rng, n: (rng.normal(size=n), np.array([1.0, 0.1, 0.5])))
def cart_pole(forces, p):
    mc, mp, length = p

    def derivatives(s, f):
        sin, cos = math.sin(s.theta), math.cos(s.theta)
        tmp = (f + mp * length * s.omega**2 * sin) / (mc + mp)
        alpha = (9.8 * sin - cos * tmp) / (length * (4 / 3 - mp * cos**2 / (mc + mp)))
        return Cart(s.v, tmp - mp * length * alpha * cos / (mc + mp), s.omega, alpha)

    def axpy(s, k, h):
        return Cart(s.x + h * k.x, s.v + h * k.v, s.theta + h * k.theta, s.omega + h * k.omega)

    state = Cart(0.0, 0.0, 0.1, 0.0)
    for f in forces:
        k1 = derivatives(state, f)
        k2 = derivatives(axpy(state, k1, 0.01), f)
        state = axpy(state, k2, 0.02)
        if state.x > 0.5:
            state = state._replace(x=1.0 - state.x, v=-0.9 * state.v)
    return state.x**2 + state.theta**2


@drawn(lambda rng, n: (np.array([0.1, 1.0]), rng.normal(size=n)))
def euler_maruyama_barrier(p, dw):
    s, alive = 1.0, True
    path = np.zeros(len(dw) + 1)
    path[0] = s
    for i in range(len(dw)):
        if alive:
            s *= 1.0 + p[0] * 0.01 + 0.1 * p[1] * dw[i]
            if s < 0.8:
                alive = False
        path[i + 1] = s
    return path.mean() if alive else 0.5 * path[-1]


# -- interpolation, quadrature, roots ----------------------------------------------------------------------------------


@drawn(lambda rng, n: (np.sort(rng.uniform(0, 5, n + 2)) + np.arange(n + 2), rng.normal(size=n + 2)))
def natural_spline(x, y):
    n = len(x)
    h = np.diff(x)
    alpha = np.zeros(n)
    for i in range(1, n - 1):
        alpha[i] = 3 * ((y[i + 1] - y[i]) / h[i] - (y[i] - y[i - 1]) / h[i - 1])
    l, mu, z = np.ones(n), np.zeros(n), np.zeros(n)
    for i in range(1, n - 1):
        l[i] = 2 * (x[i + 1] - x[i - 1]) - h[i - 1] * mu[i - 1]
        mu[i] = h[i] / l[i]
        z[i] = (alpha[i] - h[i - 1] * z[i - 1]) / l[i]
    c = np.zeros(n)
    for j in range(n - 2, -1, -1):
        c[j] = z[j] - mu[j] * c[j + 1]
    return np.sum(c**2)


@drawn(lambda rng, n: (np.arange(n + 2.0), rng.normal(size=n + 2), rng.uniform(0.1, n, 3)))
def linear_interpolation(xp, fp, xs):
    total = 0.0
    for x in xs:
        lo, hi = 0, len(xp) - 1
        while hi - lo > 1:
            mid = (lo + hi) // 2
            if xp[mid] <= x:
                lo = mid
            else:
                hi = mid
        t = (x - xp[lo]) / (xp[hi] - xp[lo])
        total += (1 - t) * fp[lo] + t * fp[hi]
    return total


@drawn(lambda rng, n: (rng.uniform(0.5, 1, 3), 2 * (n % 7) + 2))
def simpson(p, n):
    f = lambda x: p[0] * np.exp(-p[1] * x) + p[2] * x
    h = 1.0 / n
    s = f(0.0) + f(1.0)
    for i in range(1, n):
        s += (4 if i % 2 else 2) * f(i * h)
    return s * h / 3


@drawn(lambda rng, n: (np.array([2.0, 0.3]),))
def newton_to_tolerance(p):
    x = p[0]
    for _ in range(50):
        fx = x**3 - p[0] * x - p[1]
        step = fx / (3 * x * x - p[0])
        x -= step
        if abs(step) < 1e-13:
            break
    else:
        raise RuntimeError("no convergence")
    return x


@drawn(lambda rng, n: (np.array([2.0, 0.3]),))
def bisection_then_newton(p):
    def f(x):
        return x * x * x - p[0] * x - p[1]

    lo, hi = 1.0, 3.0
    while hi - lo > 0.1:
        mid = 0.5 * (lo + hi)
        if f(mid) * f(lo) <= 0:
            hi = mid
        else:
            lo = mid
    x = 0.5 * (lo + hi)
    for _ in range(6):
        x = x - f(x) / (3 * x * x - p[0])
    return x * p[1]


@drawn(lambda rng, n: (rng.normal(size=n + 1), np.array(0.7)))
def horner(c, x):
    v, dv = c[-1], 0.0
    for k in range(len(c) - 2, -1, -1):
        dv = dv * x + v
        v = v * x + c[k]
    return v + 0.5 * dv


@drawn(lambda rng, n: (rng.normal(size=n + 1),))
def de_casteljau(points):
    b = points.copy()
    t = 0.3
    for r in range(1, len(b)):
        b[:-r] = (1 - t) * b[:-r] + t * b[1:len(b) - r + 1]
    return b[0]


@drawn(normal)
def neville_by_rows(y):
    x = np.linspace(0.0, 1.0, len(y)) if len(y) > 1 else np.array([0.0])
    p = y.copy()
    for k in range(1, len(y)):
        for i in range(len(y) - k):
            p[i] = ((0.4 - x[i + k]) * p[i] + (x[i] - 0.4) * p[i + 1]) / (x[i] - x[i + k])
    return p[0]


# -- arrays, views, indices --------------------------------------------------------------------------------------------


@drawn(lambda rng, n: (rng.normal(size=(n + 2, n + 2)), rng.normal(size=(3, 3))))
def convolution_2d(image, kernel):
    h, w = image.shape
    kh, kw = kernel.shape
    out = np.zeros((h - kh + 1, w - kw + 1))
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = np.sum(image[i:i + kh, j:j + kw] * kernel)
    return np.maximum(out, 0).sum()


@drawn(lambda rng, n: (rng.normal(size=n), rng.integers(0, 4, n)))
def histogram_weights(x, bins):
    h = np.zeros(4)
    for b, v in zip(bins, x):
        h[b] += v * v
    return (h / (1 + h)).sum()


@drawn(lambda rng, n: (rng.normal(size=n), rng.integers(0, n, n)))
def gather_scatter(x, index):
    y = x[index] * 2.0
    z = np.zeros_like(x)
    z[index] = y
    z[index] += np.sin(x)
    np.add.at(z, index, x)
    return (z**2).sum()


@drawn(lambda rng, n: (rng.normal(size=n + 1),))
def negative_strides(x):
    y = x.copy()
    back = y[::-1]
    back[1:] += 0.5 * back[:-1] ** 2
    y[-1:0:-2] *= 2.0
    return np.cumsum(y[::-1])[-1] * y[0]


@drawn(lambda rng, n: (rng.normal(size=(n, n)),))
def views_of_views(a):
    b = a.copy()
    for i in range(len(b)):
        row = b[i]
        tail = row[i:]
        tail *= 0.9
        col = b.T[i]
        col[:i] += tail[0]
    return (b * b).sum()


@drawn(normal)
def masked_updates(x):
    y = x.copy()
    for _ in range(3):
        y[y > 0.5] *= 0.8
        y[y < -0.5] = -0.5 + 0.1 * y[y < -0.5]
        y += 0.1 * np.where(y > 0, np.sqrt(np.abs(y) + 0.01), y**2)
    return y.sum()


@drawn(matrix)
def standardised_columns(a):
    z = (a - a.mean(axis=0)) / (a.std(axis=0) + 0.1)
    scores = z.max(axis=1) - z.min(axis=1, keepdims=True)[:, 0]
    return (scores**2).sum()


@drawn(lambda rng, n: (rng.normal(size=(n, 2)), rng.normal(size=n)))
def stacked_design(x, y):
    design = np.column_stack((np.ones(len(y)), x))
    both = np.concatenate([design, 0.1 * np.eye(3)])
    rhs = np.concatenate((y, np.zeros(3)))
    beta = np.linalg.solve(both.T @ both, both.T @ rhs)
    residual = y - design @ beta
    return residual @ residual


@drawn(lambda rng, n: (rng.normal(size=(n, 2)), rng.normal(size=(3, 2))))
def kmeans_step(points, centers):
    total = np.zeros((3, 2))
    count = np.zeros(3, dtype=int)
    for i in range(points.shape[0]):
        best, where = np.inf, 0
        for k in range(3):
            d = 0.0
            for c in range(2):
                d += (points[i, c] - centers[k, c]) ** 2
            if d < best:
                best, where = d, k
        count[where] += 1
        total[where] += points[i]
    loss = 0.0
    for k in range(3):
        if count[k] > 0:
            loss += np.sum((total[k] / count[k] - centers[k]) ** 2)
    return loss


@drawn(lambda rng, n: (rng.normal(size=2 * n),))
def haar_levels(x):
    out = 0.0
    while len(x) > 1 and len(x) % 2 == 0:
        a, d = (x[::2] + x[1::2]) / 2, (x[::2] - x[1::2]) / 2
        out += (d**2).sum()
        x = a
    return out + x.sum()


@drawn(normal)
def insertion_sort(x):
    a = x.copy()
    for i in range(1, len(a)):
        key = a[i]
        j = i - 1
        while j >= 0 and a[j] > key:
            a[j + 1] = a[j]
            j -= 1
        a[j + 1] = key
    total = 0.0
    for i in range(len(a)):
        total += (i + 1) * a[i] ** 2
    return total


@drawn(lambda rng, n: (rng.normal(size=n), rng.normal(size=n)))
def pairwise_gravity(x, y):
    total = 0.0
    for i in range(len(x)):
        for j in range(i):
            dx, dy = x[i] - x[j], y[i] - y[j]
            total += 1.0 / math.sqrt(dx * dx + dy * dy + 0.5)
    return total


@drawn(lambda rng, n: (rng.normal(size=n) + 3,))
def running_statistics(x):
    mean = m2 = 0.0
    lowest, highest = x[0], x[0]
    for count, value in enumerate(x, 1):
        delta = value - mean
        mean += delta / count
        m2 += delta * (value - mean)
        lowest, highest = min(lowest, value), max(highest, value)
    return m2 / len(x) + highest - lowest


@drawn(lambda rng, n: (rng.normal(size=n + 3),))
def ring_buffer(x):
    buffer = np.zeros(3)
    pos, out = 0, 0.0
    for value in x:
        out += value * buffer[pos]
        buffer[pos] = value
        pos = (pos + 1) % 3
    return out + buffer.sum()


# -- records, functions, closures, errors ------------------------------------------------------------------------------


@dataclasses.dataclass
class Model:
    rates: np.ndarray
    scale: float

    def step(self, s, x):
        return self.scale * np.tanh(self.rates[0] * s + self.rates[1] * x)

    @property
    def penalty(self):
        return 0.01 * np.sum(self.rates**2)


@drawn(lambda rng, n: (Model(rng.normal(size=2), 0.8), rng.normal(size=n)))
def dataclass_model(model, xs):
    s = 0.0
    for x in xs:
        s = model.step(s, x)
    return s * s + model.penalty


@drawn(lambda rng, n: ({"w": rng.normal(size=(3, 3)), "b": rng.normal(size=3)}, rng.normal(size=(n, 3))))
def dict_of_parameters(params, xs):
    h = np.zeros(3)
    for x in xs:
        h = np.tanh(params["w"] @ h + params["b"] + x)
    return h.sum()


@drawn(lambda rng, n: ([(rng.normal(size=(3, 3)), rng.normal(size=3)) for _ in range(2)], rng.normal(size=(n, 3))))
def layers_of_a_network(layers, x):
    for w, b in layers:
        x = np.maximum(x @ w + b, 0.1 * x)
    return (x**2).mean()


@drawn(lambda rng, n: (rng.uniform(0.5, 1.5, n),))
def early_return(x):
    total = 1.0
    for v in x:
        total *= v
        if total > 1.8:
            return total * v
        if total < 0.4:
            return -total
    return total + 1.0


@drawn(lambda rng, n: (rng.uniform(0.5, 1.5, n),))
def checked(x):
    if x.ndim != 1:
        raise ValueError(f"expected a vector, got {x.ndim} dimensions")
    assert len(x) > 0, "empty"
    total = 0.0
    for i, v in enumerate(x):
        if v < 0:
            raise ValueError(f"element {i} is negative: {v}")
        total += math.log(v)
    return total


@drawn(normal)
def closures_and_lambdas(x):
    scale = x[0]

    def weight(v, power=2):
        return scale * v**power

    pick = (lambda v: v) if len(x) > 2 else (lambda v: -v)
    return sum(weight(v) for v in x) + pick(x[-1]) + weight(x[-1], power=3)


@drawn(normal)
def match_state_machine(x):
    state, total = 0, 0.0
    for v in x:
        if state == 0 and v > 0:
            state, total = 1, total + v
        elif state == 1:
            state = 2 if v > 0.3 else 0
            total += 2 * v
        elif state == 2:
            total -= v * v
            state = 0
        else:
            total *= 0.9
    return total


@drawn(lambda rng, n: (rng.normal(size=n), rng.normal(size=n)))
def two_pointers(a, b):
    i = j = 0
    total = 0.0
    while i < len(a) and j < len(b):
        if a[i] < b[j]:
            total += a[i] * b[j]
            i += 1
        elif a[i] > b[j]:
            total -= b[j]
            j += 1
        else:
            i, j = i + 1, j + 1
    return total


@drawn(normal)
def list_of_rows(x):
    rows = []
    state = np.array([1.0, 0.0])
    for v in x:
        state = np.array([0.9 * state[0] + v, 0.5 * state[1] + state[0]])
        rows.append(state)
    table = np.array(rows)
    return (table[:, 0] * table[:, 1]).sum() + np.stack(rows)[-1, 0]


@drawn(normal)
def list_by_condition(x):
    kept = []
    for v in x:
        if v > 0:
            kept.append(v * v)
    if not kept:
        return 0.0 * x[0]
    return sum(kept) / len(kept)


@drawn(normal)
def comprehension_with_condition(x):
    positive = [v for v in x if v > 0]
    return sum(v * v for v in positive) + sum([v**3 for v in x]) + max([abs(v) for v in x])


@drawn(lambda rng, n: (rng.normal(size=n) + 1j * rng.normal(size=n),))
def complex_recurrence(z):
    w = np.zeros(len(z), dtype=complex)
    acc = 1.0 + 0.5j
    for i in range(len(z)):
        acc = acc * z[i] * 0.5 + 0.1 * np.conj(z[i])
        w[i] = acc
    return np.sum(np.abs(w) ** 2)


@drawn(normal)
def discrete_fourier(x):
    n = len(x)
    total = 0.0
    for k in range(n):
        s = 0.0 + 0.0j
        for t in range(n):
            s += x[t] * np.exp(-2j * np.pi * k * t / n)
        total += abs(s) ** 2 * (k + 1)
    return total


@drawn(lambda rng, n: (rng.normal(size=n).astype(np.float32),))
def single_precision(x):
    y = np.zeros(len(x), dtype=np.float32)
    s = np.float32(0.0)
    for i in range(len(x)):
        s = np.float32(0.5) * s + x[i]
        y[i] = np.tanh(s)
    return (y * y).sum()


@drawn(normal)
def for_else_and_nested_break(x):
    found = -1
    for i in range(len(x)):
        for j in range(i):
            if x[j] > x[i]:
                break
        else:
            found = i
    return x[found] * 2.0 + found


@drawn(lambda rng, n: (rng.normal(size=n), n % 3))
def keyword_switch(x, order):
    if order == 0:
        y = x
    elif order == 1:
        y = x * x
    else:
        y = np.sin(x)
    return y.sum()


class Filter:
    def __init__(self, taps):
        self.taps = np.array(taps)
        self.gain = 2.0

    def run(self, x):
        out = np.zeros(len(x))
        for i in range(len(x)):
            for k in range(min(i + 1, len(self.taps))):
                out[i] += self.taps[k] * x[i - k]
        return self.gain * out


FILTER = Filter([0.5, 0.3, 0.2])


@drawn(normal)
def method_of_an_object(x):
    y = FILTER.run(x)
    return y @ y


@drawn(normal)
def starred_and_chained(x):
    first, *rest = x[0], x[-1], 2.0
    a = b = np.zeros(3)
    a[0] = first
    b[1] = rest[0] * rest[1]
    u, (v, w) = 1.0, (first, rest[0])
    return (a * b).sum() + u * v - w if 0 < len(rest) <= 3 else u


@drawn(lambda rng, n: (rng.normal(size=n), rng.normal(size=(n, 2))))
def reductions_with_axes(w, m):
    c = np.cumsum(w)
    outer = np.outer(w, w)[np.arange(len(w)), np.arange(len(w))]
    p = np.prod(1 + 0.1 * w)
    e = np.einsum("i,ij->j", w, m)
    t = np.tensordot(w, m, axes=1)
    return c @ outer + p + e @ t + np.linalg.norm(m, axis=1).sum() + np.median(w) + w.argmax()


# -- objects, lists and jumps ------------------------------------------------------------------------------------------


class Pid:
    def __init__(self, gains, dt=0.1):
        self.gains = gains
        self.dt = dt
        self.integral = 0.0
        self.last = 0.0

    def control(self, error):
        self.integral += error * self.dt
        d = (error - self.last) / self.dt
        self.last = error
        return self.gains[0] * error + self.gains[1] * self.integral + self.gains[2] * d


@drawn(lambda rng, n: (rng.normal(size=3), rng.normal(size=n)))
def pid_object(g, targets):
    pid = Pid(g)
    y = 0.0
    cost = 0.0
    for t in targets:
        u = pid.control(t - y)
        y = 0.9 * y + 0.05 * u
        cost += (t - y) ** 2
    return cost + pid.integral


@dataclasses.dataclass
class Particle:
    pos: float
    vel: float = 0.0
    hits: int = 0


@drawn(normal)
def mutable_dataclass(x):
    p = Particle(x[0])
    q = p
    for v in x:
        p.vel += 0.1 * v
        q.pos += p.vel
        if p.pos < 0:
            p.pos = -p.pos
            p.vel *= -0.9
            p.hits += 1
    return p.pos * q.vel + p.hits


@drawn(normal)
def dict_state(x):
    s = {"total": 0, "count": 0}
    for v in x:
        s["total"] += v * v
        if v > 0:
            s["count"] += 1
    return s["total"] * (1 + s["count"])


@drawn(normal)
def nonlocal_counter(x):
    total = 0.0

    def add(v):
        nonlocal total
        total += v * v

    for v in x:
        add(v)
    return total * x[0]


@drawn(normal)
def with_errstate(x):
    with np.errstate(divide="ignore", invalid="ignore"):
        y = np.where(x > 0, np.log(np.abs(x)), x)
    return y.sum()


@drawn(normal)
def import_inside(x):
    import math
    from math import exp as e

    s = 0.0
    for v in x:
        s += math.tanh(v) + e(-v * v)
    return s


@drawn(normal)
def match_states(x):
    state = 0
    s = 0.0
    for v in x:
        match state:
            case 0:
                s += v
                state = 1
            case 1 | 2:
                s -= v * v
                state += 1
            case _:
                s *= 0.5
                state = 0
    return s


@drawn(normal)
def while_else(x):
    i = 0
    while i < len(x):
        if x[i] > 1.5:
            break
        i += 1
    else:
        return x.sum()
    return x[i] * i


@drawn(normal)
def stack_machine(x):
    st = []
    for v in x:
        if v > 0 or len(st) < 2:
            st.append(v)
        else:
            a = st.pop()
            b = st.pop()
            st.append(a * b + v)
    return sum(st)


@drawn(normal)
def list_times(x):
    n = len(x)
    best = [0.0] * (n + 1)
    for i in range(n):
        best[i + 1] = max(best[i], best[i] + x[i])
        best[i] += 0.1
    return best[-1] + sum(best)


@drawn(normal)
def pairs_list(x):
    pts = [(0.0, 1.0)]
    for v in x:
        pts.append((pts[-1][0] + v, pts[-1][1] * 0.9))
    a = np.array(pts)
    s = 0.0
    for p, q in pts:
        s += p * q
    return s + a[:, 1].sum() + a[-1, 0]


@drawn(normal)
def list_comp_rows(x):
    m = np.array([x * k for k in range(1, 4)])
    r = np.array([np.sin(v) for v in x if v > -1])
    q = [v * w for v in x for w in x if v > w]
    return m.sum() + r.sum() + sum(q)


@drawn(normal)
def list_arg(x):
    def push(items, v):
        items.append(v * 2)

    out = []
    for v in x:
        push(out, v)
    for i in range(len(out) - 2, -1, -1):
        out[i] += 0.5 * out[i + 1]
    return out[0] * len(out) + max(out) - min(out)


@drawn(normal)
def reversed_list(x):
    out = []
    for v in x:
        out.append(v)
    s = 1.0
    for i, v in enumerate(reversed(out)):
        s = s * 0.5 + v * i
    for a, b in zip(out, x):
        s += a * b
    return s


@drawn(normal)
def any_all(x):
    s = 0.0
    if any(v > 2 for v in x):
        s += 1.0
    if all(v > -5 for v in x):
        s += x[0]
    return s + x[-1] ** 2


@drawn(normal)
def list_of_arrays_history(x):
    u = x.copy()
    hist = [u.copy()]
    for _ in range(4):
        u[1:-1] += 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
        hist.append(u.copy())
    H = np.array(hist)
    return (H**2).sum() + hist[2][0]


@drawn(normal)
def slices_neg(x):
    y = x.copy()
    y[::-2] *= 2
    y[-2:] += y[:2]
    y[:] = y[::-1]
    return (y * np.arange(len(y))).sum() + y[1:-1:2].sum()


@drawn(normal)
def zero_trip(x):
    s = 0.0
    a = np.zeros(3)
    for i in range(5, len(x)):
        s += x[i]
        a[i % 3] = s
    k = 0
    while k > len(x):
        k += 1
        s *= 2
    return s + x[0] + a.sum() * x[1]


@drawn(normal)
def ties(x):
    return max(x[0], x[0]) + np.maximum(x, x).sum() + np.max(np.array([x[1], x[1]])) + min(x[0], 2.0 * x[0])


@drawn(lambda rng, n: (rng.normal(size=(n, 3)),))
def axes(m):
    a = m.sum(axis=0)
    b = m.mean(1)
    c = m.max(axis=1)
    d = np.concatenate([a, b])
    e = np.stack([b, c], axis=1)
    return (d**2).sum() + (e[:, 0] * e[:, 1]).sum() + np.cumsum(m, axis=0)[-1].sum() + np.prod(m, axis=1).sum()


@drawn(normal)
def early_in_nested(x):
    for i in range(len(x)):
        for j in range(len(x)):
            if i != j and abs(x[i] - x[j]) < 0.05:
                return x[i] * x[j]
    return x @ x


@drawn(normal)
def int_division(x):
    n = len(x)
    s = 0.0
    for i in range(n):
        s += x[i // 2] * (i % 3) + x[-(i + 1)] * (i**2) / (1 + i) - x[(7 * i + 3) % n]
    return s


@drawn(lambda rng, n: (rng.normal(size=n), rng.integers(0, 2, n).astype(bool)))
def bool_mask(x, m):
    s = 0.0
    for v, k in zip(x, m):
        if k:
            s += v
    return s + x[m].sum() * x[~m].sum()


@drawn(normal)
def tuple_choice(x):
    a, b = (x[0], x[1]) if x[0] > x[1] else (x[1], x[0])
    return a - 2 * b


@drawn(lambda rng, n: (rng.normal(size=(n, n)),))
def transpose_views(a):
    b = a.copy()
    t = b.T
    t[0] = t[1] * 2
    c = b.reshape(-1)
    c[::2] += 1.0 * b[0, 0]
    d = b[::-1, 1:]
    d -= 0.5 * b[:, 0][:, None]
    return (b * a).sum()


@drawn(normal)
def generator_func(x):
    return sum(v * v for v in x if v > 0) + math.fsum(x)


@drawn(normal)
def sorted_use(x):
    y = np.sort(x)
    i = np.argsort(x)
    return (y * np.arange(len(x))).sum() + x[i[0]] * 2


@drawn(normal)
def where_nan(x):
    y = np.where(x > 0, np.sqrt(x), 0.0)
    return y.sum() + x.sum()


@drawn(normal)
def poly(x):
    c = np.polyval(x[:3], 0.5)
    p = np.interp(0.3, np.arange(len(x)), x)
    return c * p


@drawn(lambda rng, n: (rng.normal(size=(n, n)) + 3 * n * np.eye(n), rng.normal(size=n)))
def linalg_all(a, b):
    s, l = np.linalg.slogdet(a)
    return s * l + np.linalg.det(a / (3 * len(b))) + np.linalg.inv(a).trace() + np.linalg.norm(np.linalg.solve(a, b))


@drawn(normal)
def try_except(x):
    try:
        s = x[0] / x[1]
    except ZeroDivisionError:
        s = 0.0
    return s


@drawn(normal)
def yields(x):
    def gen():
        for v in x:
            yield v * v

    return sum(gen())


@drawn(normal)
def walrus(x):
    s = 0.0
    i = 0
    while (v := x[i]) < 1.0 and i < len(x) - 1:
        s += v
        i += 1
    return s


@drawn(normal)
def clip_and_sign(x):
    return np.clip(x, -0.5, 0.5).sum() + np.sign(x) @ x + np.minimum(x, 0).sum() + np.hypot(x, 1).sum()


@drawn(normal)
def printing(x):
    s = x.sum()
    if s > 1e9:
        print("large")
    return s


@drawn(normal)
def itertools_like(x):
    s = 0.0
    for a, b in zip(x[1:], x[:-1], strict=True):
        s += (b - a) ** 2
    for i, (a, b) in enumerate(zip(x, x[::-1])):
        s += i * a * b
    return s


@drawn(normal)
def swap_elements(x):
    y = x.copy()
    for i in range(len(y) // 2):
        y[i], y[-1 - i] = y[-1 - i], y[i]
    y[[0, 1]] = y[[1, 0]]
    return (y * np.arange(len(y))).sum()


# -- complex numbers and single precision ------------------------------------------------------------------------------


def complex_normal(rng, n):
    return (rng.normal(size=n) + 1j * rng.normal(size=n),)


@drawn(lambda rng, n: (0.3 * (rng.normal(size=n) + 1j * rng.normal(size=n)), np.array([0.2, 0.4])))
def escape_times(c, p):
    total = 0.0
    for start in c:
        z = start * complex(p[0], p[1])
        steps = 0
        while abs(z) < 2.0 and steps < 6:
            z = z * z + start
            steps += 1
        total += steps * z.real + z.imag**2
    return total


@drawn(complex_normal)
def durand_kerner(roots):
    z = roots.copy()
    for _ in range(2):
        for i in range(len(z)):
            p = 1.0 + 0.0j
            for j in range(len(z)):
                if i != j:
                    p *= (z[i] - z[j]) / (0.5 + abs(z[i] - z[j]))
            z[i] -= 0.02 * (z[i] ** 3 - 1.0) * p
    return np.sum(z.real**2) + np.sum(np.abs(z) ** 2)


@drawn(lambda rng, n: (rng.uniform(0.5, 2, 3), np.linspace(1.0, 3.0, n)))
def impedance(rlc, omega):
    gain = 0.0
    for w in omega:
        z = rlc[0] + 1j * w * rlc[1] + 1.0 / (1j * w * rlc[2])
        gain += abs(1.0 / z) * np.exp(-0.1 * abs(z)) + np.log(z).imag * np.sqrt(z).real + (np.sin(z) / np.cos(z)).real
    return gain


@drawn(lambda rng, n: (*complex_normal(rng, n), rng.normal(size=n)))
def parts_of_complex_arrays(z, x):
    w = z * x + 1j * x
    w.real[1:] += x[:-1]
    im = w.imag
    im *= 0.5
    u = np.conj(w) * z / (2.0 + np.abs(z))
    return np.vdot(u, w).real + (u @ z).imag + u.sum().real + np.exp(0.1j * x).imag.sum()


@drawn(lambda rng, n: (rng.normal(size=n), rng.normal(size=4)))
def real_through_complex(x, taps):
    y = np.zeros(len(x), dtype=complex)
    for i in range(len(x)):
        y[i] = x[i]
        for k in range(4):
            if i >= k:
                y[i] += taps[k] * np.conj(y[i - k]) * 1j
    return np.abs(y).sum() + y[-1].real


def single(*arrays):
    return tuple([array.astype(np.float32) for array in arrays])


@drawn(lambda rng, n: single(rng.uniform(0.2, 0.8, 2), rng.uniform(5, 9, n)))
def single_smoothing(p, y):
    level = y[0]
    trend = 0.0
    sse = 0.0
    for t in range(1, len(y)):
        e = y[t] - (level + trend)
        last = level
        level = p[0] * y[t] + (1 - p[0]) * (level + trend)
        trend = p[1] * (level - last) + (1 - p[1]) * trend
        sse += e * e / 3
    return sse


@drawn(lambda rng, n: single(rng.normal(size=(n, n))))
def single_arrays(a):
    b = a.copy()
    for i in range(len(b)):
        row = b[i]
        row += 0.1 * np.tanh(row[::-1])
        b[:, i] *= np.float32(0.9)
    s = np.zeros(len(b), np.float32)
    for i in range(len(b)):
        for j in range(len(b)):
            s[i] += b[i, j] * 0.3
    return (s * s).mean() + b.sum() / 7


@drawn(lambda rng, n: (*single(rng.uniform(0.5, 2.0, n)), rng.normal(size=n)))
def single_and_double(x, y):
    z = np.zeros(len(x), np.float32)
    total = 0.0
    for i in range(len(x)):
        z[i] = x[i] * y[i] + 0.1
        total += z[i] * y[i] + math.sqrt(abs(x[i]))
    return total + (z + y).sum() + (x * 2).sum()


# -- functions of NumPy and of Python ----------------------------------------------------------------------------------


def longer(rng, n):
    return (rng.normal(size=n + 3),)


TABLE = np.array([0.5, 1.5, 2.5])
CONST = 3
NAMES = {"a": 1.0, "b": 2.0}


@drawn(longer)
def meshgrid(x):
    a, b = np.meshgrid(x, x[:3])
    return (a * b**2).sum()


@drawn(longer)
def percentile(x):
    return np.percentile(x, 30) + np.quantile(x, 0.7) + np.median(x)


@drawn(longer)
def where_one(x):
    i = np.where(x > 0)[0]
    j = np.flatnonzero(x < 0)
    return x[i].sum() + (x[j] ** 2).sum()


@drawn(longer)
def nonzero_(x):
    (i,) = np.nonzero(x > 0.1)
    return (x[i] ** 2).sum()


@drawn(longer)
def padded(x):
    p = np.pad(x, 1)
    q = np.pad(x, (2, 1), mode="edge")
    return (p[1:] * p[:-1]).sum() + q.sum()


@drawn(longer)
def gradient_trap(x):
    return (np.gradient(x) ** 2).sum() + np.trapezoid(x) + np.trapezoid(x, dx=0.1)


@drawn(longer)
def convolved(x):
    return (np.convolve(x, x[:3], mode="same") ** 2).sum() + np.correlate(x, x[:2])[0]


@drawn(longer)
def take_repeat(x):
    return (np.repeat(x, 2) * np.tile(x, 2)).sum() + np.take(x, [0, 1, 1]).sum() + x.repeat(2)[3]


@drawn(longer)
def digitize(x):
    b = np.digitize(x, [-1.0, 0.0, 1.0])
    s = 0.0
    for i in range(len(x)):
        s += b[i] * x[i]
    return s


@drawn(longer)
def searchsorted(x):
    s = np.sort(x)
    k = np.searchsorted(s, 0.2)
    return s[k - 1] * 2 + k


@drawn(longer)
def close(x):
    if np.allclose(x, x) and not np.isclose(x[0], x[1]):
        return x.sum()
    return x[0]


@drawn(longer)
def float_mod(x):
    s = 0.0
    for v in x:
        s += (v % 0.7) + (v // 0.3) * 0.1 + math.fmod(v, 0.5) + abs(v) ** 0.5 + 2.0**v
    return s


@drawn(longer)
def bits(x):
    s = 0.0
    for i in range(len(x)):
        if (i & 1 and not i & 2) or i ^ 3 == 1:
            s += x[i] * (i << 1)
        if i in (2, 5, 7):
            s -= x[i]
        if 1 <= i < 4:
            s += x[i] ** 2
    return s


@drawn(longer)
def mapped(x):
    y = list(map(lambda v: v * v, x))  # noqa: C417
    return sum(y) + sum(map(abs, x))


@drawn(longer)
def filtered(x):
    return sum(filter(lambda v: v > 0, x))


@drawn(longer)
def sorted_(x):
    y = sorted(x)
    return y[0] * 2 + y[-1]


@drawn(longer)
def sorted_desc(x):
    y = sorted(x, reverse=True)
    s = 0.0
    for i, v in enumerate(y):
        s += v * i
    return s


@drawn(longer)
def captured(x):
    s = 0.0
    for i in range(len(x)):
        s += TABLE[i % CONST] * x[i] * NAMES["b"]
    return s


@drawn(longer)
def string_mode(x, mode="fast"):
    return x.sum() if mode == "fast" else (x**2).sum()


@drawn(longer)
def dict_items(x):
    d = {"a": x[0], "b": x[1] * 2}
    s = 0.0
    for k, v in d.items():
        s += v * NAMES[k]
    return s + len(d) + d.get("a") + sum(d.values())


@drawn(longer)
def zip_star(x):
    pts = [(x[0], x[1]), (x[1], x[2])]
    a, b = zip(*pts)
    return a[0] * b[1] + a[1]


@drawn(longer)
def eigen(x):
    m = np.outer(x, x) + np.diag(np.arange(len(x)) + 1.0)
    w, v = np.linalg.eigh(m)
    return w[-1] + (v[:, 0] ** 2)[0]


@drawn(longer)
def mat_power(x):
    m = x[: 9 // 3][:, None] * x[:3] / 3
    return np.linalg.matrix_power(m, 3).sum() + (m @ m).trace()


@drawn(longer)
def einsums(x):
    m = x[:, None] * x
    return np.einsum("ij,j->i", m, x).sum() + np.einsum("ii", m) + np.einsum("ij,kj->ik", m, m).sum() * 1e-3


@drawn(longer)
def ellipsis(x):
    m = np.zeros((2, len(x)))
    m[..., 1:] = x[:-1]
    m[0, ...] += 1
    m[None][0, 1] *= 2
    return (m**2).sum()


@drawn(longer)
def while_true(x):
    i = 0
    s = 0.0
    while True:
        s += x[i]
        i += 1
        if i >= len(x) or s > 2:
            return s * i


@drawn(longer)
def multi_return(x):
    def stats(v):
        return v.mean(), v.std(), {"n": len(v)}

    m, s, d = stats(x)
    return m / s * d["n"]


@drawn(longer)
def outs(x):
    y = np.empty_like(x)
    np.multiply(x, 2.0, out=y)
    np.add(y, x, out=y)
    np.exp(y * 0.1, out=y)
    return y.sum()


class Operators:
    k = 2.0

    @staticmethod
    def sq(v):
        return v * v

    @classmethod
    def scaled(cls, v):
        return cls.k * v

    def __call__(self, v):
        return v + self.k


OPS = Operators()


@drawn(longer)
def class_things(x):
    return (Operators.sq(x) + Operators.scaled(x) + OPS.sq(x)).sum() + Operators.k


@drawn(longer)
def call_object(x):
    return OPS(x).sum()


@drawn(longer)
def partials(x):
    def f(a, b, c):
        return a * b + c

    g = functools.partial(f, 2.0, c=1.0)
    return g(x).sum()


@drawn(longer)
def recursion(x):
    def fib(n):
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    return fib(6) * x.sum()


@drawn(longer)
def matrix_inplace(x):
    m = np.outer(x, x) + np.eye(len(x))
    m @= m
    m /= np.linalg.norm(m)
    m **= 2
    return m.sum()


@drawn(longer)
def deque_like(x):
    q = [0]
    s = 0.0
    while q:
        i = q.pop()
        s += x[i]
        if 2 * i + 1 < len(x):
            q.append(2 * i + 1)
        if 2 * i + 2 < len(x):
            q.append(2 * i + 2)
    return s * s


@drawn(longer)
def pop0(x):
    q = [x[0], x[1]]
    s = 0.0
    for v in x[2:]:
        q.append(v)
        s += q.pop(0) * v
    return s


@drawn(longer)
def list_slice(x):
    out = []
    for v in x:
        out.append(v)
        s = sum(out[-3:])
    return s + np.mean(out[1:])


@drawn(longer)
def insert_list(x):
    a = []
    for v in x:
        a.insert(0, v)
    return a[0] * 2 + a[-1]


@drawn(longer)
def array_method_chain(x):
    return x.clip(-1, 1).mean() + x.argmax()


@drawn(longer)
def any_mask(x):
    if np.any(x > 1) or (x < -1).all():
        return x[x > -9].sum()
    return np.count_nonzero(x > 0) * x.mean()


@drawn(longer)
def step_range(x):
    s = 0.0
    for h in (1, 2, 3):
        for i in range(0, len(x) - h, h):
            s += x[i] * x[i + h]
    for i in range(len(x) - 1, -1, -2):
        s -= x[i]
    return s


@drawn(longer)
def enumerate_rows(x):
    m = np.outer(x, x)
    s = 0.0
    for i, row in enumerate(m):
        for j, v in enumerate(row[:i]):
            s += v * (i - j)
    return s


@drawn(longer)
def newaxis(x):
    d = x[:, np.newaxis] - x[np.newaxis, :]
    k = np.exp(-(d**2))
    np.fill_diagonal(k, 0.0)
    return k.sum()


@drawn(longer)
def lu_solve(x):
    a = np.outer(x, x) + 5 * np.eye(len(x))
    return np.linalg.solve(a, x) @ x + np.linalg.inv(a)[0, 0] + np.linalg.cholesky(a)[-1, -1]


@drawn(longer)
def global_loop_var(x):
    for i in range(len(x)):
        if x[i] > 0.5:
            break
    return x[i] * i


@drawn(longer)
def ternary_chain(x):
    s = 0.0
    for v in x:
        s += 1.0 if v > 1 else v if v > 0 else -v if v > -1 else 2 * v
    return s


@drawn(longer)
def complex_use(x):
    z = np.exp(1j * x)
    return np.abs(z.sum()) ** 2


@drawn(longer)
def np_sum_gen(x):
    return np.sum([v * v for v in x]) + np.max([abs(v) for v in x]) + np.array([x[0], x[1], 2.0]).prod()


@drawn(longer)
def selects(x):
    return np.select([x > 1, x > 0], [x, x**2], default=-x).sum()


@drawn(longer)
def global_math(x):
    s = 0.0
    for v in x:
        s += (
            math.log1p(v * v)
            + math.hypot(v, 1)
            + math.atan2(v, 2)
            + math.floor(v)
            + math.copysign(1, v) * v
            + math.pi
            + math.sinh(v)
            + math.erf(v)
            + math.pow(v * v + 1, 1.5)
            + math.degrees(v) * 1e-3
        )
    return s


@drawn(longer)
def unpack_shape(x):
    m = np.outer(x, x)
    ((r, c),) = [m.shape]
    return m[r - 1, c - 1] + m.size * x[0] + m.ndim


@drawn(longer)
def nanfuncs(x):
    y = x.copy()
    y[0] = np.nan
    return np.nansum(y) + np.nanmean(y) + np.isnan(y).sum()


@drawn(longer)
def logsumexp_(x):
    m = x.max()
    return m + np.log(np.exp(x - m).sum())


@drawn(longer)
def copyto(x):
    y = np.zeros_like(x)
    np.copyto(y, x)
    y[1:] = x[:-1]
    y.fill(2.0)
    return (y * x).sum()


@drawn(longer)
def astype_(x):
    k = (x > 0).astype(float)
    j = np.arange(len(x)).astype(np.float64)
    return (k * j * x).sum()


@drawn(longer)
def prod_axis(x):
    m = np.outer(x, x) + 2
    return m.prod(axis=0).sum() * 1e-6 + m.min(axis=1).sum() + m.any() * 1.0 + np.linalg.norm(m, axis=0).sum()


# -- shared lists and objects, views that overlap, values that are overwritten ----------------------------------------


@drawn(longer)
def list_by_two_names(x):
    a = []
    b = a
    for v in x:
        b.append(v * v)
    return sum(a) * len(b)


@drawn(longer)
def list_in_a_tuple(x):
    a = [x[0]]
    t = (a, 2.0)
    for v in x:
        t[0].append(v)
    return a[-1] * t[1] + len(a)


@drawn(longer)
def list_of_a_closure(x):
    out = []

    def push(v):
        out.append(v * 2)

    for v in x:
        push(v)
    return sum(out)


@drawn(longer)
def list_of_one_iteration(x):
    a = []
    for v in x:
        b = []
        for w in x:
            b.append(v * w)
        a.append(sum(b))
    return sum(a)


@drawn(longer)
def list_of_integers(x):
    a = [1]
    s = 0.0
    for v in x:
        a.append(a[-1] + 1)
        s += v * a[-1]
    return s / a[-1]


@drawn(longer)
def list_written_from_both_ends(x):
    a = [0.0] * len(x)
    for i in range(len(x)):
        a[i] = x[i]
        a[-1 - i] += 0.5 * x[i]
    return sum(v * w for v, w in zip(a, x))


@drawn(longer)
def dict_by_two_names(x):
    d = {"p": x[0]}
    e = d
    for v in x:
        e["p"] = e["p"] * 0.5 + v
    return d["p"]


class Recorder:
    def __init__(self, value):
        self.value = value
        self.history = []

    def add(self, u):
        self.history.append(u * self.value)
        self.value = self.value + u


@drawn(longer)
def object_with_a_list(x):
    o = Recorder(x[0])
    for v in x:
        o.add(v)
    return sum(o.history) + o.value


@drawn(longer)
def continue_break_and_else(x):
    s = 0.0
    for i in range(len(x)):
        if x[i] < 0:
            continue
        for j in range(i, len(x)):
            if x[j] > 1.0:
                break
            s += x[i] * x[j]
        else:
            s *= 1.1
    return s


@drawn(longer)
def view_of_a_view_in_a_loop(x):
    y = x.copy()
    v = y[1:]
    w = v[::-1]
    for i in range(len(w)):
        w[i] = w[i] * y[i]
        v[i] += 0.1 * w[i]
    return (y * x).sum()


@drawn(longer)
def overwritten_quotients(x):
    y = x.copy()
    for i in range(1, len(y)):
        y[i] = np.exp(0.1 * y[i]) / y[i - 1]
        y[i - 1] = y[i] ** 2 / (1 + y[i])
    return y.sum()


@drawn(longer)
def computed_places(x):
    n = len(x)
    c = np.zeros(n, int)
    y = np.zeros(n)
    for i in range(n):
        c[i] = (i * i) % n
        y[c[i]] = y[c[i]] / (1 + x[i] ** 2) + x[i]
    return (y**2).sum()


@drawn(longer)
def place_of_the_best(x):
    best = 0
    s = x[0]
    for i in range(1, len(x)):
        if x[i] > s:
            best, s = i, x[i]
    return x[best] * 2 + best


@drawn(longer)
def overlapping_assignments(x):
    y = x.copy()
    y[1:] = y[:-1]
    y[:-1] += y[1:] ** 2
    y[::2], y[1::2] = y[1::2][: len(y[::2])].sum(), y[::2].sum()
    return (y * x).sum()


@drawn(longer)
def signs_by_position(x):
    return (
        sum(x[i] * (1 if i % 2 else -1) for i in range(len(x)) if i != 2) + max(x) - min(x) * 2 + (max(x[0], x[1], 0.5))
    )
