"""Ten textbook programs in plain NumPy, with arguments of any length."""

import numpy as np

SEASON = 4


def holt_winters(p, y):
    n = len(y)
    level, trend, season = np.zeros(n), np.zeros(n), np.zeros(n + SEASON)
    level[0] = y[0]
    total = 0.0
    for t in range(1, n):
        error = y[t] - (level[t - 1] + trend[t - 1] + season[t])
        total = total + error * error
        level[t] = p[0] * (y[t] - season[t]) + (1 - p[0]) * (level[t - 1] + trend[t - 1])
        trend[t] = p[1] * (level[t] - level[t - 1]) + (1 - p[1]) * trend[t - 1]
        season[t + SEASON] = p[2] * (y[t] - level[t]) + (1 - p[2]) * season[t]
    return total


def soft_dtw(x, y):
    n, m = len(x), len(y)
    r = np.full((n + 1, m + 1), 1e3)
    r[0, 0] = 0.0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            total = np.exp(-r[i - 1, j - 1]) + np.exp(-r[i - 1, j]) + np.exp(-r[i, j - 1])
            r[i, j] = (x[i - 1] - y[j - 1]) ** 2 - np.log(total + 1e-300)
    return r[n, m]


def thomas(diagonal, right):
    n = len(right)
    c, d = np.zeros(n), right.copy()
    c[0] = -1.0 / diagonal[0]
    d[0] /= diagonal[0]
    for i in range(1, n):
        w = diagonal[i] + c[i - 1]
        c[i] = -1.0 / w
        d[i] = (d[i] + d[i - 1]) / w
    for i in range(n - 2, -1, -1):
        d[i] -= c[i] * d[i + 1]
    return (d * d).sum()


def hidden_markov(trans, emission, seen):
    a = np.exp(trans) / np.exp(trans).sum(axis=1)[:, None]
    b = np.exp(emission) / np.exp(emission).sum(axis=1)[:, None]
    k = len(a)
    alpha = b[:, seen[0]] / k
    loglik = 0.0
    for t in range(1, len(seen)):
        scale = alpha.sum()
        loglik += np.log(scale)
        alpha = (alpha / scale) @ a * b[:, seen[t]]
    return -(loglik + np.log(alpha.sum()))


def kalman_with_gaps(p, y):
    m, v, loglik = 0.0, 10.0, 0.0
    for t in range(len(y)):
        v = v + p[0] * p[0]
        if np.isnan(y[t]):
            continue
        s = v + p[1] * p[1]
        gain = v / s
        error = y[t] - m
        loglik -= 0.5 * (np.log(2 * np.pi * s) + error * error / s)
        m = m + gain * error
        v = (1 - gain) * v
    return -loglik


def garch(p, r):
    omega, alpha, beta = np.exp(p[0]), 0.3 / (1 + np.exp(-p[1])), 0.6 / (1 + np.exp(-p[2]))
    h = np.var(r)
    loss = 0.0
    for x in r:
        loss += 0.5 * (np.log(h) + x * x / h)
        h = omega + alpha * x * x + beta * h
    return loss


def soft_viterbi(scores, moves):
    n, k = scores.shape
    best = scores[0].copy()
    for t in range(1, n):
        new = np.zeros(k)
        for j in range(k):
            total = 0.0
            for i in range(k):
                total += np.exp(best[i] + moves[i, j])
            new[j] = np.log(total) + scores[t, j]
        best = new
    return np.log(np.exp(best).sum())


def leaky_neuron(p, current):
    v, spikes, cost = 0.0, 0, 0.0
    for t in range(len(current)):
        v = v + 0.1 * (-v / p[0] + p[1] * current[t])
        if v > 1.0:
            v = v - 1.2
            spikes += 1
        cost += (v - 0.3) ** 2
    return cost + 0.1 * spikes * v


def cart_pole(gains, steps):
    state = np.array([0.1, 0.0, 0.2, 0.0])

    def slope(s, force):
        sin, cos = np.sin(s[2]), np.cos(s[2])
        turn = (9.8 * sin - cos * (force + 0.05 * s[3] ** 2 * sin) / 1.1) / (0.5 * (4.0 / 3.0 - 0.1 * cos**2 / 1.1))
        return np.array([s[1], (force + 0.05 * (s[3] ** 2 * sin - turn * cos)) / 1.1, s[3], turn])

    cost, h = 0.0, 0.02
    for _ in range(steps):
        force = (gains * state).sum()
        k1 = slope(state, force)
        k2 = slope(state + 0.5 * h * k1, force)
        k3 = slope(state + 0.5 * h * k2, force)
        k4 = slope(state + h * k3, force)
        state = state + h / 6.0 * (k1 + 2 * k2 + 2 * k3 + k4)
        if abs(state[0]) > 0.12:
            state[1] = -0.5 * state[1]
        cost += state[2] ** 2 + 0.1 * state[0] ** 2 + 0.001 * force**2
    return cost


def newton(a, start):
    total, rounds = 0.0, 0
    for k in range(len(a)):
        x = start[0]
        while abs(x**3 + a[k] * x - 2.0) > 1e-10:
            x = x - (x**3 + a[k] * x - 2.0) / (3 * x * x + a[k])
            rounds += 1
        total += x * x
    return total


def wave(n, shift=0.0):
    return np.sin(0.7 * np.arange(float(n)) + shift)


def with_gaps(n):
    y = wave(n)
    y[2::5] = np.nan
    return y


PROGRAMS = {
    holt_winters: lambda n: (np.array([0.4, 0.2, 0.1]), wave(n)),
    soft_dtw: lambda n: (wave(n), wave(n + 1, 0.3)),
    thomas: lambda n: (3.0 + 0.5 * wave(n), wave(n, 1.0)),
    hidden_markov: lambda n: (wave(9).reshape(3, 3), wave(12, 0.5).reshape(3, 4), np.arange(n) * 7 % 4),
    kalman_with_gaps: lambda n: (np.array([0.4, 0.7]), with_gaps(n)),
    garch: lambda n: (np.array([-1.0, 0.2, 0.3]), wave(n)),
    soft_viterbi: lambda n: (wave(3 * n).reshape(n, 3), wave(9, 0.5).reshape(3, 3)),
    leaky_neuron: lambda n: (np.array([1.5, 2.5]), 1.0 + wave(n)),
    cart_pole: lambda n: (np.array([1.0, 2.0, -20.0, -3.0]), n),
    newton: lambda n: (2.0 + wave(n), np.array([1.5])),
}
