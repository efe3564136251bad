"""Textbook programs with loops, and their arguments: dynamic programming, filters, solvers, schemes."""

from __future__ import annotations

import math

import numpy as np

import viewgrad as vg

# -- dynamic programming -----------------------------------------------------------------------------------------------


def soft_viterbi(scores, transitions):
    steps, states = scores.shape
    best = vg.zeros((steps, states))
    best[0] = scores[0]
    for t in range(1, steps):
        for j in range(states):
            top = best[t - 1, 0] + transitions[0, j]
            for i in range(1, states):
                top = np.logaddexp(top, best[t - 1, i] + transitions[i, j])
            best[t, j] = scores[t, j] + top
    end = best[steps - 1]
    return np.log(np.exp(end).sum())


def hard_viterbi(scores, transitions):
    steps, states = scores.shape
    value = [scores[0, j] for j in range(states)]
    for t in range(1, steps):
        value = [max(value[i] + transitions[i, j] for i in range(states)) + scores[t, j] for j in range(states)]
    return max(value)


def viterbi_by_rows(scores, transitions):
    delta = scores[0]
    for t in range(1, len(scores)):
        delta = (delta[:, None] + transitions).max(axis=0) + scores[t]
    return delta.max()


def soft_edit_distance(substitution, gap):
    n, m = substitution.shape
    d = vg.zeros((n + 1, m + 1))
    for i in range(1, n + 1):
        d[i, 0] = d[i - 1, 0] + gap
    for j in range(1, m + 1):
        d[0, j] = d[0, j - 1] + gap
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            a, b, c = d[i - 1, j] + gap, d[i, j - 1] + gap, d[i - 1, j - 1] + substitution[i - 1, j - 1]
            low = np.minimum(np.minimum(a, b), c)
            d[i, j] = low - np.log(np.exp(low - a) + np.exp(low - b) + np.exp(low - c))
    return d[n, m]


def needleman_wunsch_affine(scores, gaps):
    n, m = scores.shape
    opening, extending = gaps[0], gaps[1]
    low = -1e4
    match = vg.full((n + 1, m + 1), low)
    across, down = match.clone(), match.clone()
    match[0, 0] = 0.0
    for i in range(1, n + 1):
        across[i, 0] = opening + i * extending
    for j in range(1, m + 1):
        down[0, j] = opening + j * extending
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            across[i, j] = np.maximum(match[i - 1, j] + opening, across[i - 1, j]) + extending
            down[i, j] = np.maximum(match[i, j - 1] + opening, down[i, j - 1]) + extending
            match[i, j] = scores[i - 1, j - 1] + np.maximum(
                match[i - 1, j - 1], np.maximum(across[i - 1, j - 1], down[i - 1, j - 1])
            )
    return np.maximum(match[n, m], np.maximum(across[n, m], down[n, m]))


def smith_waterman(scores, gap):
    n, m = scores.shape
    h = vg.zeros((n + 1, m + 1))
    top = 0.0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            h[i, j] = max(h[i - 1, j - 1] + scores[i - 1, j - 1], h[i - 1, j] - gap, h[i, j - 1] - gap, 0.0)
            top = max(top, h[i, j])
    return top


def matrix_chain(sizes):
    n = len(sizes) - 1
    cost = vg.zeros((n, n))
    for length in range(2, n + 1):
        for i in range(n - length + 1):
            j = i + length - 1
            best = None
            for k in range(i, j):
                here = cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1]
                best = here if best is None else -np.logaddexp(-best, -here)
            cost[i, j] = best
    return cost[0, n - 1]


def american_put(market, steps=24):
    spot, strike, rate, volatility = market
    dt = 1.0 / steps
    up = np.exp(volatility * math.sqrt(dt))
    down = 1.0 / up
    discount = np.exp(-rate * dt)
    p = (np.exp(rate * dt) - down) / (up - down)
    values = vg.zeros(steps + 1)
    for i in range(steps + 1):
        values[i] = np.maximum(strike - spot * up**i * down ** (steps - i), 0.0)
    for n in range(steps - 1, -1, -1):
        for i in range(n + 1):
            held = discount * (p * values[i + 1] + (1 - p) * values[i])
            values[i] = np.maximum(held, strike - spot * up**i * down ** (n - i))
    return values[0]


def optimal_stopping(offers, patience):
    value = offers[-1]
    for t in range(len(offers) - 2, -1, -1):
        value = np.logaddexp(offers[t] / patience, 0.95 * value / patience) * patience
    return value


def longest_path(weights):
    n = len(weights)
    length = [weights[0, 0]]
    for j in range(1, n):
        arrivals = vg.stack([length[i] + weights[i, j] for i in range(j)])
        length.append(vg.logsumexp(arrivals, axis=0))
    return length[-1]


# -- filters and series ------------------------------------------------------------------------------------------------


def kalman_by_elements(parameters, y):
    q, r, dt = parameters[0], parameters[1], 0.1
    position, speed = y[0], 0.0
    p00, p01, p11 = 1.0, 0.0, 1.0
    loss = 0.0
    for t in range(1, len(y)):
        position = position + dt * speed
        p00 = p00 + dt * (2 * p01 + dt * p11) + q
        p01 = p01 + dt * p11
        p11 = p11 + q
        s = p00 + r
        error = y[t] - position
        k0, k1 = p00 / s, p01 / s
        loss = loss + 0.5 * (np.log(s) + error**2 / s)
        position = position + k0 * error
        speed = speed + k1 * error
        p11 = p11 - k1 * p01
        p01 = (1 - k0) * p01
        p00 = (1 - k0) * p00
    return loss


def kalman_by_matrices(transition, noise, y):
    h = np.array([[1.0, 0.0]])
    state, cov = vg.zeros((2, 1)), vg.eye(2)
    total = 0.0
    for t in range(len(y)):
        state = transition @ state
        cov = transition @ cov @ transition.T + noise[0] * np.eye(2)
        s = (h @ cov @ h.T)[0, 0] + noise[1]
        error = y[t] - (h @ state)[0, 0]
        gain = cov @ h.T / s
        state = state + gain * error
        cov = (np.eye(2) - gain @ h) @ cov
        total = total + np.log(s) + error * error / s
    return 0.5 * total


def smoother(q, y):
    n = len(y)
    mean, var = vg.zeros(n), vg.zeros(n)
    mean[0], var[0] = y[0], q[1]
    for t in range(1, n):
        prior = var[t - 1] + q[0]
        gain = prior / (prior + q[1])
        mean[t] = mean[t - 1] + gain * (y[t] - mean[t - 1])
        var[t] = (1 - gain) * prior
    for t in range(n - 2, -1, -1):
        back = var[t] / (var[t] + q[0])
        mean[t] = mean[t] + back * (mean[t + 1] - mean[t])
        var[t] += back**2 * (var[t + 1] - var[t] - q[0])
    return ((mean - y) ** 2).sum() + var.sum()


def garch(parameters, returns):
    omega, alpha, beta = parameters
    variance = returns.var()
    likelihood = 0.0
    for r in returns:
        likelihood += np.log(variance) + r * r / variance
        variance = omega + alpha * r**2 + beta * variance
    return 0.5 * likelihood


def arma(phi, theta, y):
    p, q = len(phi), len(theta)
    errors = vg.zeros(len(y))
    for t in range(max(p, q), len(y)):
        forecast = 0.0
        for i in range(p):
            forecast = forecast + phi[i] * y[t - 1 - i]
        for j in range(q):
            forecast = forecast + theta[j] * errors[t - 1 - j]
        errors[t] = y[t] - forecast
    return (errors**2).sum()


def arma_by_dots(phi, theta, y):
    p, q = len(phi), len(theta)
    errors = vg.zeros(len(y))
    for t in range(p, len(y)):
        errors[t] = y[t] - phi @ y[t - p : t][::-1] - theta @ errors[t - q : t][::-1]
    return (errors**2).mean()


def iir(b, a, x):
    y = vg.zeros_like(x)
    for n in range(len(x)):
        acc = b[0] * x[n]
        if n >= 1:
            acc = acc + b[1] * x[n - 1] - a[0] * y[n - 1]
        if n >= 2:
            acc = acc + b[2] * x[n - 2] - a[1] * y[n - 2]
        y[n] = acc
    return (y * y).sum()


def masked_filter(alpha, y, seen):
    level, loss = y[0], 0.0
    for t in range(1, len(y)):
        if seen[t]:
            loss = loss + (y[t] - level) ** 2
            level = level + alpha * (y[t] - level)
        else:
            level = level * 0.99
    return loss


def ring_buffer(x, w):
    buffer = vg.zeros(5)
    out = 0.0
    for t in range(len(x)):
        buffer[t % 5] = np.tanh(x[t] + w[0] * buffer[(t - 1) % 5])
        out = out + w[1] * buffer[(t - 4) % 5] * buffer[t % 5]
    return out


def cusum(x, drift):
    high, low, worst = 0.0, 0.0, 0.0
    for value in x:
        high = np.maximum(0.0, high + value - drift)
        low = np.minimum(0.0, low + value + drift)
        worst = worst + (high - low) ** 2
    return worst


# -- solvers -----------------------------------------------------------------------------------------------------------


def crank_nicolson(u, k):
    u = u.clone()
    n = len(u)
    for _ in range(6):
        r = 0.5 * k
        right = vg.zeros(n)
        right[1:-1] = r * u[:-2] + (1 - 2 * r) * u[1:-1] + r * u[2:]
        c, d = vg.zeros(n), vg.zeros(n)
        c[1] = -r / (1 + 2 * r)
        d[1] = right[1] / (1 + 2 * r)
        for i in range(2, n - 1):
            pivot = 1 + 2 * r + r * c[i - 1]
            c[i] = -r / pivot
            d[i] = (right[i] + r * d[i - 1]) / pivot
        u[n - 2] = d[n - 2]
        for i in range(n - 3, 0, -1):
            u[i] = d[i] - c[i] * u[i + 1]
    return (u * u).sum()


def relaxed(f, omega):
    u = vg.zeros_like(f)
    n, m = f.shape
    for _ in range(4):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                new = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - f[i, j])
                u[i, j] = (1 - omega) * u[i, j] + omega * new
    return (u * f).sum()


def red_black(f, omega):
    u = vg.zeros_like(f)
    for _ in range(4):
        for parity in (0, 1):
            for i in range(1, len(f) - 1):
                s = 1 + (i + parity) % 2
                row = u[i - 1, s:-1:2] + u[i + 1, s:-1:2] + u[i, s - 1 : -2 : 2] + u[i, s + 1 :: 2]
                row = 0.25 * (row - f[i, s:-1:2])
                u[i, s:-1:2] += omega * (row - u[i, s:-1:2])
    return (u * u).sum()


def ldl(b):
    a = b @ b.T + np.eye(len(b))
    n = len(a)
    lower, d = vg.eye(n), vg.zeros(n)
    for j in range(n):
        total = a[j, j]
        for k in range(j):
            total = total - lower[j, k] ** 2 * d[k]
        d[j] = total
        for i in range(j + 1, n):
            total = a[i, j]
            for k in range(j):
                total = total - lower[i, k] * lower[j, k] * d[k]
            lower[i, j] = total / d[j]
    return np.log(d).sum() + (lower * lower).sum()


def givens(a):
    r = a.clone()
    m, n = r.shape
    for j in range(n):
        for i in range(m - 1, j, -1):
            h = np.sqrt(r[i - 1, j] ** 2 + r[i, j] ** 2)
            c, s = r[i - 1, j] / h, r[i, j] / h
            upper = c * r[i - 1] + s * r[i]
            r[i] = c * r[i] - s * r[i - 1]
            r[i - 1] = upper
    return sum(np.log(abs(r[j, j])) for j in range(n)) + r[0, n - 1]


def householder(a):
    r = a.clone()
    n = r.shape[1]
    for k in range(n):
        v = r[k:, k].clone()
        v[0] += np.sign(v[0]) * np.sqrt((v * v).sum())
        v = v / np.sqrt((v * v).sum())
        r[k:, k:] -= 2 * np.outer(v, v @ r[k:, k:])
    return (np.diagonal(r[:n]) ** 2).sum() + r[0, 1]


def conjugate_gradient(b, right):
    a = b @ b.T + 3 * np.eye(len(b))
    x = vg.zeros(len(b))
    r = right - a @ x
    p = r
    rr = r @ r
    for _ in range(5):
        ap = a @ p
        alpha = rr / (p @ ap)
        x = x + alpha * p
        r = r - alpha * ap
        new = r @ r
        p = r + (new / rr) * p
        rr = new
    return x @ right


def power_iteration(a):
    v = vg.ones(len(a))
    for _ in range(12):
        v = a @ v
        v = v / np.sqrt(v @ v)
    return v @ a @ v


def newton_schulz(b):
    a = b @ b.T + np.eye(len(b))
    x = a.T / (np.abs(a).sum(axis=0).max() * np.abs(a).sum(axis=1).max())
    for _ in range(10):
        x = 2 * x - x @ a @ x
    return x.trace()


def newton_roots(coefficients):
    x = coefficients[0] * 0.0 + 2.0
    k = 0
    while k < 8:
        p, slope = 0.0, 0.0
        for c in coefficients:
            slope = slope * x + p
            p = p * x + c
        x = x - p / (slope + 10.0)
        k += 1
    return x


def gauss_jordan(a, b):
    n = len(b)
    m = vg.zeros((n, n + 1))
    m[:, :n] = a
    m[:, n] = b
    for i in range(n):
        m[i] = m[i] / m[i, i]
        for j in range(n):
            if j != i:
                m[j] -= m[j, i] * m[i]
    return (m[:, n] ** 2).sum()


# -- schemes -----------------------------------------------------------------------------------------------------------


def orbit(start, mass):
    x, y, u, v = start

    def slope(x, y, u, v):
        r3 = (x * x + y * y + 0.01) ** 1.5
        return u, v, -mass * x / r3, -mass * y / r3

    dt = 0.05
    for _ in range(20):
        k1 = slope(x, y, u, v)
        k2 = slope(x + dt / 2 * k1[0], y + dt / 2 * k1[1], u + dt / 2 * k1[2], v + dt / 2 * k1[3])
        k3 = slope(x + dt / 2 * k2[0], y + dt / 2 * k2[1], u + dt / 2 * k2[2], v + dt / 2 * k2[3])
        k4 = slope(x + dt * k3[0], y + dt * k3[1], u + dt * k3[2], v + dt * k3[3])
        x = x + dt / 6 * (k1[0] + 2 * k2[0] + 2 * k3[0] + k4[0])
        y = y + dt / 6 * (k1[1] + 2 * k2[1] + 2 * k3[1] + k4[1])
        u = u + dt / 6 * (k1[2] + 2 * k2[2] + 2 * k3[2] + k4[2])
        v = v + dt / 6 * (k1[3] + 2 * k2[3] + 2 * k3[3] + k4[3])
    return x**2 + y**2 + 0.1 * u * v


def lotka_volterra(rates, start):
    a, b, c, d = rates[0], rates[1], rates[2], rates[3]
    path = vg.zeros((31, 2))
    path[0] = start
    for t in range(30):
        prey, hunters = path[t, 0], path[t, 1]
        path[t + 1, 0] = prey + 0.1 * (a * prey - b * prey * hunters)
        path[t + 1, 1] = hunters + 0.1 * (c * prey * hunters - d * hunters)
    return (path[::5] ** 2).sum()


def wave(u, c):
    before, now = u.clone(), u.clone()
    after = vg.zeros_like(u)
    for _ in range(10):
        after[1:-1] = 2 * now[1:-1] - before[1:-1] + c**2 * (now[2:] - 2 * now[1:-1] + now[:-2])
        before, now, after = now, after, before
    return (now * now).sum()


def wave_by_elements(u, c):
    now, before = u.clone(), u.clone()
    n = len(u)
    for _ in range(6):
        for i in range(1, n - 1):
            before[i] = 2 * now[i] - before[i] + c * c * (now[i + 1] - 2 * now[i] + now[i - 1])
        before, now = now, before
    return (now**2).sum()


def burgers(u, dt):
    u = u.clone()
    for _ in range(10):
        right, left = np.maximum(u, 0.0), np.minimum(u, 0.0)
        change = vg.zeros_like(u)
        change[1:-1] = right[1:-1] * (u[1:-1] - u[:-2]) + left[1:-1] * (u[2:] - u[1:-1])
        u = u - dt * change
    return (u * u).sum()


def upwind_by_where(u, speed):
    u = u.clone()
    for _ in range(6):
        difference = u[1:] - u[:-1]
        flow = np.where(speed[1:-1] > 0, difference[:-1], difference[1:])
        u[1:-1] = u[1:-1] - 0.3 * speed[1:-1] * flow
    return (u**2).mean()


def leapfrog(q, p, k):
    q, p = q.clone(), p.clone()
    n = len(q)
    for _ in range(8):
        for i in range(n):
            left = q[i - 1] if i > 0 else 0.0
            right = q[i + 1] if i < n - 1 else 0.0
            p[i] += 0.1 * k * (left - 2 * q[i] + right)
        for i in range(n):
            q[i] += 0.1 * p[i]
    return (p * p).sum() + (q * q).sum()


def convolution(image, kernel):
    a, b = kernel.shape
    out = vg.zeros((image.shape[0] - a + 1, image.shape[1] - b + 1))
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            for k in range(a):
                for m in range(b):
                    out[i, j] += image[i + k, j + m] * kernel[k, m]
    return np.tanh(out).sum()


def convolution_of_patches(image, kernel):
    n, m = image.shape
    a, b = kernel.shape
    out = vg.zeros((n - a + 1, m - b + 1))
    for i in range(n - a + 1):
        for j in range(m - b + 1):
            out[i, j] = (image[i : i + a, j : j + b] * kernel).sum()
    return np.maximum(out, 0.0).sum()


def lstm(w, u, bias, xs):
    n = u.shape[1]
    h, c = vg.zeros(n), vg.zeros(n)
    for x in xs:
        gates = w @ x + u @ h + bias
        forget, into, out = (1 / (1 + np.exp(-gates[k * n : (k + 1) * n])) for k in range(3))
        c = forget * c + into * np.tanh(gates[3 * n :])
        h = out * np.tanh(c)
    return (h * h).sum()


def gru(w, u, xs):
    n = u.shape[2]
    h = vg.zeros(n)
    for t in range(len(xs)):
        r = vg.sigmoid(w[0] @ xs[t] + u[0] @ h)
        z = vg.sigmoid(w[1] @ xs[t] + u[1] @ h)
        h = (1 - z) * h + z * np.tanh(w[2] @ xs[t] + u[2] @ (r * h))
    return h.sum()


def attention(q, k, v):
    out = vg.zeros(v.shape)
    for i in range(len(q)):
        scores = k[: i + 1] @ q[i]
        weights = np.exp(scores - scores.max())
        out[i] = (weights / weights.sum()) @ v[: i + 1]
    return (out * out).sum()


# -- series, products, triangles ---------------------------------------------------------------------------------------


def horner(coefficients, x):
    total = vg.zeros_like(x)
    for c in coefficients[::-1]:
        total = total * x + c
    return total.sum()


def clenshaw(coefficients, x):
    b1 = b2 = 0.0
    for k in range(len(coefficients) - 1, 0, -1):
        b1, b2 = coefficients[k] + 2 * x * b1 - b2, b1
    return (coefficients[0] + x * b1 - b2).sum()


def running_products(x):
    product = 1.0
    products = vg.zeros(len(x))
    for i, value in enumerate(x):
        product = product * (1 + 0.1 * value)
        products[i] = product
    return (products * np.arange(len(x))).sum()


def pascal(x):
    rows = [vg.ones(1) * x[0]]
    for n in range(1, len(x)):
        row = vg.zeros(n + 1)
        row[0] = row[n] = x[n]
        row[1:n] = rows[-1][1:] * 0.5 + rows[-1][:-1] * x[n]
        rows.append(row)
    return sum((row * row).sum() for row in rows)


def pairs(x):
    energy = 0.0
    for i in range(len(x)):
        for j in range(i):
            d2 = ((x[i] - x[j]) ** 2).sum() + 0.5
            energy = energy + d2**-6 - d2**-3
    return energy


def neighbours(x, weights, table):
    u = x.clone()
    for _ in range(3):
        new = vg.zeros_like(u)
        for i in range(len(u)):
            for place, j in enumerate(table[i]):
                new[i] += weights[place] * u[int(j)]
        u = np.tanh(new)
    return (u * u).sum()


def picked(x, order):
    y = vg.zeros(len(x))
    for i in range(len(x)):
        y[order[i]] = x[i] * (i + 1)
    for i in range(1, len(x)):
        y[i] += 0.5 * y[i - 1]
    return (y * y).sum()


def scattered(x, groups):
    totals = vg.zeros(4)
    for value, group in zip(x, groups.tolist()):
        totals[group] = totals[group] + value * value
    return (totals**2).sum()


def by_index_arrays(x, index):
    u = x.clone()
    for k in range(len(index)):
        u[index[k]] = np.sin(u[index[k]]) + u[index[k - 1]]
    return u.sum()


def stopped_early(x, limit):
    total = 0.0
    for value in x:
        total = total + value * value
        if total > limit:
            break
    return total * total


def counted(x):
    below, above = 0.0, 0.0
    for value in x:
        if value < 0:
            below = below + value
        else:
            above = above + value * value
    return above - below


def swapped(x):
    u = x.clone()
    n = len(u)
    for i in range(n // 2):
        u[i], u[n - 1 - i] = u[n - 1 - i], u[i]
    for i in range(1, n):
        u[i] *= u[i - 1]
    return u.sum()


def bubble(x):
    u = x.clone()
    n = len(u)
    for i in range(n):
        for j in range(n - 1 - i):
            low, high = np.minimum(u[j], u[j + 1]), np.maximum(u[j], u[j + 1])
            u[j], u[j + 1] = low, high
    return (u * np.arange(1.0, n + 1)).sum()


def integrated(x, dt):
    area, n = 0.0, len(x)
    for i in range(n - 1):
        weight = 0.5 if i in (0, n - 2) else 1.0
        area += weight * dt * (x[i] + x[i + 1])
    return area * area


def two_results(x, a):
    y, path = 0.0, vg.zeros(len(x))
    for i in range(len(x)):
        y = a * y + x[i]
        path[i] = y
    return y + path.mean()


def fibonacci_like(x, n=15):
    a, b = x[0], x[1]
    for _ in range(n):
        a, b = b, 0.5 * (a + b) * np.cos(a)
    return a * b


def lists_of_rows(x, w):
    rows = [x[0]]
    for t in range(1, len(x)):
        rows.append(np.tanh(w @ rows[-1]) + x[t])
    table = vg.stack(rows)
    return (table[1:] * table[:-1]).sum()


def accumulated_dict(x):
    state = {"mean": x[0], "spread": 0.0}
    for t in range(1, len(x)):
        error = x[t] - state["mean"]
        state["mean"] = state["mean"] + error / (t + 1)
        state["spread"] = state["spread"] + error * (x[t] - state["mean"])
    return state["spread"] / len(x)


def spd(rng, n):
    b = rng.normal(size=(n, n))
    return b @ b.T / n + np.eye(n)


LOOPS = {
    soft_viterbi: lambda rng: (rng.normal(size=(8, 3)), rng.normal(size=(3, 3))),
    hard_viterbi: lambda rng: (rng.normal(size=(8, 3)), rng.normal(size=(3, 3))),
    viterbi_by_rows: lambda rng: (rng.normal(size=(9, 4)), rng.normal(size=(4, 4))),
    soft_edit_distance: lambda rng: (rng.random((6, 7)), np.array(0.4 + rng.random())),
    needleman_wunsch_affine: lambda rng: (rng.normal(size=(6, 7)), -rng.random(2)),
    smith_waterman: lambda rng: (rng.normal(size=(6, 7)) + 0.3, np.array(0.3 + 0.1 * rng.random())),
    matrix_chain: lambda rng: (1 + rng.random(8),),
    american_put: lambda rng: (np.array([100.0, 102.0, 0.05, 0.3]) * (1 + 0.05 * rng.random(4)),),
    optimal_stopping: lambda rng: (rng.normal(size=20), np.array(0.5 + rng.random())),
    longest_path: lambda rng: (rng.normal(size=(7, 7)),),
    kalman_by_elements: lambda rng: (0.2 + rng.random(2), rng.normal(size=25)),
    kalman_by_matrices: lambda rng: (
        np.array([[1, 0.1], [0, 0.9]]) + 0.05 * rng.normal(size=(2, 2)),
        0.2 + rng.random(2),
        rng.normal(size=20),
    ),
    smoother: lambda rng: (0.2 + rng.random(2), rng.normal(size=20)),
    garch: lambda rng: (np.array([0.1, 0.2, 0.6]) * (1 + 0.2 * rng.random(3)), rng.normal(size=30)),
    arma: lambda rng: (0.3 * rng.normal(size=2), 0.3 * rng.normal(size=2), rng.normal(size=25)),
    arma_by_dots: lambda rng: (0.3 * rng.normal(size=3), 0.3 * rng.normal(size=2), rng.normal(size=25)),
    iir: lambda rng: (rng.normal(size=3), 0.3 * rng.normal(size=2), rng.normal(size=25)),
    masked_filter: lambda rng: (np.array(rng.random()), rng.normal(size=40), rng.random(40) > 0.3),
    ring_buffer: lambda rng: (rng.normal(size=33), rng.normal(size=2)),
    cusum: lambda rng: (rng.normal(size=30), np.array(0.3 * rng.random())),
    crank_nicolson: lambda rng: (rng.normal(size=12), np.array(0.3 + rng.random())),
    relaxed: lambda rng: (rng.normal(size=(6, 7)), np.array(1.2 + 0.3 * rng.random())),
    red_black: lambda rng: (rng.normal(size=(8, 9)), np.array(1.2 + 0.3 * rng.random())),
    ldl: lambda rng: (rng.normal(size=(6, 6)),),
    givens: lambda rng: (rng.normal(size=(6, 4)),),
    householder: lambda rng: (rng.normal(size=(6, 4)),),
    conjugate_gradient: lambda rng: (rng.normal(size=(7, 7)), rng.normal(size=7)),
    power_iteration: lambda rng: (spd(rng, 5),),
    newton_schulz: lambda rng: (0.5 * rng.normal(size=(4, 4)),),
    newton_roots: lambda rng: (1 + rng.random(5),),
    gauss_jordan: lambda rng: (spd(rng, 6), rng.normal(size=6)),
    orbit: lambda rng: (np.array([1.0, 0.1, 0.0, 0.9]) + 0.1 * rng.normal(size=4), np.array(1 + 0.1 * rng.random())),
    lotka_volterra: lambda rng: (0.5 + 0.2 * rng.random(4), 1 + rng.random(2)),
    wave: lambda rng: (rng.normal(size=14), np.array(0.3 + 0.3 * rng.random())),
    wave_by_elements: lambda rng: (rng.normal(size=10), np.array(0.3 + 0.3 * rng.random())),
    burgers: lambda rng: (rng.normal(size=14), np.array(0.05 + 0.05 * rng.random())),
    upwind_by_where: lambda rng: (rng.normal(size=14), rng.normal(size=14)),
    leapfrog: lambda rng: (rng.normal(size=7), rng.normal(size=7), np.array(rng.random())),
    convolution: lambda rng: (rng.normal(size=(7, 6)), rng.normal(size=(3, 2))),
    convolution_of_patches: lambda rng: (rng.normal(size=(7, 6)), rng.normal(size=(3, 2))),
    lstm: lambda rng: (
        rng.normal(size=(12, 2)),
        0.5 * rng.normal(size=(12, 3)),
        rng.normal(size=12),
        rng.normal(size=(8, 2)),
    ),
    gru: lambda rng: (rng.normal(size=(3, 4, 2)), 0.5 * rng.normal(size=(3, 4, 4)), rng.normal(size=(8, 2))),
    attention: lambda rng: (rng.normal(size=(6, 3)), rng.normal(size=(6, 3)), rng.normal(size=(6, 2))),
    horner: lambda rng: (rng.normal(size=9), rng.random(5)),
    clenshaw: lambda rng: (rng.normal(size=9), rng.random(5)),
    running_products: lambda rng: (rng.normal(size=20),),
    pascal: lambda rng: (rng.normal(size=9),),
    pairs: lambda rng: (2 * rng.normal(size=(7, 3)),),
    neighbours: lambda rng: (rng.normal(size=8), rng.normal(size=3), rng.integers(0, 8, size=(8, 3))),
    picked: lambda rng: (rng.normal(size=9), rng.permutation(9)),
    scattered: lambda rng: (rng.normal(size=20), rng.integers(0, 4, size=20)),
    by_index_arrays: lambda rng: (rng.normal(size=8), np.array([[0, 2, 4], [1, 3, 5], [7, 6, 0], [2, 5, 1]])),
    stopped_early: lambda rng: (rng.normal(size=20), np.array(6.0)),
    counted: lambda rng: (rng.normal(size=12),),
    swapped: lambda rng: (rng.normal(size=9),),
    bubble: lambda rng: (rng.normal(size=7),),
    integrated: lambda rng: (rng.normal(size=15), np.array(rng.random())),
    two_results: lambda rng: (rng.normal(size=15), np.array(rng.random())),
    fibonacci_like: lambda rng: (rng.normal(size=2),),
    lists_of_rows: lambda rng: (rng.normal(size=(9, 4)), 0.4 * rng.normal(size=(4, 4))),
    accumulated_dict: lambda rng: (rng.normal(size=15),),
}
