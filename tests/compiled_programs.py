"""Programs that the tests compile: functions of tensors, with strategies for their arguments."""

from __future__ import annotations

import numpy as np

import viewgrad as vg
from benchmarks import source_programs


def holt_winters(p, y):
    n, season = len(y), 4
    level, trend, offset = vg.zeros(n), vg.zeros(n), vg.zeros(n + season)
    level[0] = y[0]
    alpha, beta, gamma = 1 / (1 + np.exp(-p))
    total = 0.0
    for t in range(1, n):
        error = y[t] - (level[t - 1] + trend[t - 1] + offset[t])
        total = total + error * error
        level[t] = alpha * (y[t] - offset[t]) + (1 - alpha) * (level[t - 1] + trend[t - 1])
        trend[t] = beta * (level[t] - level[t - 1]) + (1 - beta) * trend[t - 1]
        offset[t + season] = gamma * (y[t] - level[t]) + (1 - gamma) * offset[t]
    return total


def soft_dtw(costs):
    n = len(costs)
    r = vg.full((n + 1, n + 1), 30.0)
    r[0, 0] = 0.0
    for i in range(1, n + 1):
        for j in range(1, n + 1):
            total = np.exp(-r[i - 1, j - 1]) + np.exp(-r[i - 1, j]) + np.exp(-r[i, j - 1])
            r[i, j] = costs[i - 1, j - 1] - np.log(total + 1e-300)
    return r[n, n]


def cholesky(b):
    a = b @ b.T + np.eye(len(b))
    n = len(a)
    factor = vg.zeros((n, n))
    for i in range(n):
        for j in range(i + 1):
            s = a[i, j]
            for k in range(j):
                s = s - factor[i, k] * factor[j, k]
            factor[i, j] = np.sqrt(s) if i == j else s / factor[j, j]
    return (factor * factor).sum() + factor[n - 1, 0]


def thomas(lower, diagonal, upper, right):
    n = len(diagonal)
    c, d = vg.zeros(n), vg.zeros(n)
    c[0] = upper[0] / diagonal[0]
    d[0] = right[0] / diagonal[0]
    for i in range(1, n):
        pivot = diagonal[i] - lower[i] * c[i - 1]
        c[i] = upper[i] / pivot
        d[i] = (right[i] - lower[i] * d[i - 1]) / pivot
    x = vg.zeros(n)
    x[n - 1] = d[n - 1]
    for i in range(n - 2, -1, -1):
        x[i] = d[i] - c[i] * x[i + 1]
    return (x * x).sum()


def kalman_with_gaps(q, y):
    seen = [t % 7 != 3 and t % 11 != 5 for t in range(len(y))]
    mean, variance, total = y[0], q[1] * 1.0, 0.0
    for t in range(1, len(y)):
        variance = variance + q[0]
        if seen[t]:
            s = variance + q[1]
            gain = variance / s
            error = y[t] - mean
            total = total + 0.5 * (np.log(s) + error * error / s)
            mean = mean + gain * error
            variance = (1 - gain) * variance
    return total


def bodies(x, v):
    return source_programs.bodies(x, v, 4)


def rows(x, a):
    y = vg.zeros(x.shape)
    y[0] = x[0]
    for i in range(1, len(x)):
        y[i] = a * y[i - 1] + x[i]
    return (y * y).sum()


def heat(u):
    u = u.clone()
    for _ in range(8):
        u[1:-1, 1:-1] += 0.1 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])
    return (u * u).sum()


def shifted_in_place(u):
    u = u.clone()
    for _ in range(6):
        u[1:-1] = np.sin(u[2:]) + u[:-2] * u[1:-1]
        u[:-1] *= u[1:]
    return u.sum()


def recurrent(w, x):
    h = vg.zeros(len(w))
    for t in range(len(x)):
        h = np.tanh(w @ h + x[t])
    return (h * h).sum()


def eliminated(a):
    a = a + 6 * np.eye(len(a))
    n = len(a)
    for k in range(n - 1):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return (a * a).sum()


def forward_algorithm(transitions, emissions):
    alpha = emissions[0]
    for t in range(1, len(emissions)):
        alpha = vg.logsumexp(alpha[:, None] + transitions, axis=0) + emissions[t]
    return vg.logsumexp(alpha)


def listed(x):
    kept = [x[0]]
    for i in range(1, len(x)):
        kept.append(kept[i - 1] * 0.5 + x[i])
    total = 0.0
    for i in range(len(x)):
        total = total + kept[len(x) - 1 - i] * kept[i]
    return total


def gathered(x):
    odd = np.arange(len(x)) % 2 == 1
    y = x.clone()
    y[odd] = x[~odd][: int(odd.sum())] * 2.0
    return (y[np.array([0, 1, 1, 3])] * x[:4]).sum() + np.mean(y[odd] ** 2)


def with_silent_parts(x):
    y = x * x
    scale = y.detach().sum()
    with vg.no_grad():
        shift = y * 0.5
    y[1:] = y[1:] * scale + shift[:-1]
    return y.sum()


def lattice(p):
    n = 12
    up = np.exp(p[3] * 0.2)
    q = (np.exp(p[2] * 0.1) - 1 / up) / (up - 1 / up)
    value = np.maximum(p[0] * up ** np.arange(-n, n + 1, 2) - p[1], 0)
    for _ in range(n):
        value = np.exp(-p[2] * 0.1) * (q * value[1:] + (1 - q) * value[:-1])
    return value[0]


def filtered_states(f, q, y):
    measured, x, p = np.eye(2, 3), vg.zeros(3), vg.eye(3)
    total = 0.0
    for t in range(len(y)):
        x = f @ x
        p = f @ p @ f.T + q[0] * vg.eye(3)
        if t % 5 == 3:
            continue
        error = y[t] - measured @ x
        s = measured @ p @ measured.T + q[1] * vg.eye(2)
        inverse = np.linalg.inv(s)
        total += 0.5 * (error @ inverse @ error + np.log(np.linalg.det(s)))
        gain = p @ measured.T @ inverse
        x = x + gain @ error
        p = p - gain @ measured @ p
    return total


PROGRAMS = {
    holt_winters: lambda rng: (rng.normal(size=3), rng.normal(size=30)),
    soft_dtw: lambda rng: (rng.random((7, 7)),),
    cholesky: lambda rng: (rng.normal(size=(6, 6)),),
    thomas: lambda rng: (rng.random(12), 3 + rng.random(12), rng.random(12), rng.normal(size=12)),
    kalman_with_gaps: lambda rng: (rng.random(2) + 0.2, rng.normal(size=60)),
    bodies: lambda rng: (rng.normal(size=(4, 2)), rng.normal(size=(4, 2))),
    rows: lambda rng: (rng.normal(size=(9, 5)), rng.normal(size=())),
    heat: lambda rng: (rng.normal(size=(7, 9)),),
    shifted_in_place: lambda rng: (rng.normal(size=11) * 0.3,),
    recurrent: lambda rng: (rng.normal(size=(4, 4)) * 0.3, rng.normal(size=(9, 4))),
    eliminated: lambda rng: (rng.normal(size=(8, 8)),),
    forward_algorithm: lambda rng: (rng.normal(size=(4, 4)), rng.normal(size=(12, 4))),
    listed: lambda rng: (rng.normal(size=14),),
    gathered: lambda rng: (rng.normal(size=9),),
    with_silent_parts: lambda rng: (rng.normal(size=6),),
    lattice: lambda rng: (np.array([100.0, 95.0, 0.3, 0.5]) * (1 + 0.1 * rng.random(4)),),
    filtered_states: lambda rng: (
        np.eye(3) + 0.1 * rng.normal(size=(3, 3)),
        rng.random(2) + 0.2,
        rng.normal(size=(24, 2)),
    ),
}
