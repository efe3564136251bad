"""Programs of many fields as users of NumPy and Numba write them: econometrics, robotics, ecology, speech."""
# ruff: noqa: B007, RUF007, RUF059  # written as users write

from __future__ import annotations

import math
from collections import namedtuple
from dataclasses import dataclass, field

import numpy as np
from user_cases import case, definite, matrix, positive, vector

# -- epidemiology and ecology ------------------------------------------------------------------------------------------


@dataclass
class Epidemic:
    s: float
    e: float
    i: float
    r: float

    def total(self):
        return self.s + self.e + self.i + self.r


@case(lambda r, n: (0.5 + 0.1 * r.random(3), 0.2 * positive(r, n)), (12, 20))
def seir_with_lockdown(par, contacts):
    beta, sigma, gamma = par
    state = Epidemic(0.97, 0.01, 0.02, 0.0)
    locked, peak, days = False, 0.0, 0
    cases = np.zeros(len(contacts))
    for t, c in enumerate(contacts):
        if not locked and state.i > 0.05:
            locked = True
        elif locked and state.i < 0.03:
            locked = False
        rate = beta * c * (0.3 if locked else 1.5)
        new = rate * state.s * state.i / state.total()
        state.s -= new
        state.e += new - sigma * state.e
        state.i += sigma * state.e - gamma * state.i
        state.r += gamma * state.i
        cases[t] = new
        days += locked
        peak = max(peak, state.i)
    return {"cases": cases, "peak": peak, "days": days}


@case(lambda r, n: (positive(r, 3), 0.2 * matrix(r, 3), n), (15, 25))
def lotka_volterra_food_web(x0, a, steps):
    def growth(x):
        g = np.empty_like(x)
        for i in range(len(x)):
            g[i] = 0.3
            for j in range(len(x)):
                g[i] += a[i, j] * x[j] - (0.5 * x[j] if i == j else 0.0)
        return x * g

    x = x0.copy()
    h = 0.05
    for _ in range(steps):
        k1 = growth(x)
        k2 = growth(x + h * k1)
        x += 0.5 * h * (k1 + k2)
        x[x < 1e-3] = 1e-3
    return x


@case(lambda r, n: (0.5 + 0.3 * r.random((4, 4)), positive(r, 4), n), (5, 9))
def leslie_matrix(leslie, pop, years):
    history = [pop]
    for y in range(years):
        pop = leslie @ pop
        total = pop.sum()
        if total > 40.0:
            pop = pop * (40.0 / total)
        history.append(pop)
    return np.stack(history).mean(axis=0)


@case(lambda r, n: (positive(r, (n)), 0.1, 0.05), (10, 14))
def turing_patterns_1d(u0, du, dv):
    u, v = u0.copy(), 1.0 - 0.5 * u0
    n = u.size
    lap_u, lap_v = np.zeros(n), np.zeros(n)
    for _ in range(6):
        for i in range(n):
            left, right = (i - 1) % n, (i + 1) % n
            lap_u[i] = u[left] + u[right] - 2 * u[i]
            lap_v[i] = v[left] + v[right] - 2 * v[i]
        reaction = u * v * v
        u += 0.2 * (du * lap_u - reaction + 0.04 * (1 - u))
        v += 0.2 * (dv * lap_v + reaction - 0.1 * v)
    return (u * u).sum() + v[n // 2]


# -- chemistry and physics ---------------------------------------------------------------------------------------------


@case(lambda r, n: (np.array([0.04, 1.2, 0.9]), positive(r, 3), n), (8, 12))
def stiff_kinetics_implicit_euler(k, y0, steps):
    y = y0.copy()
    h = 0.1
    for _ in range(steps):
        z = y.copy()
        for it in range(20):
            r1, r2, r3 = k[0] * z[0], k[1] * z[1] * z[2], k[2] * z[1] ** 2
            f = np.array([-r1 + r2, r1 - r2 - r3, r3])
            g = z - y - h * f
            jac = np.array([
                [1 + h * k[0], -h * k[1] * z[2], -h * k[1] * z[1]],
                [-h * k[0], 1 + h * (k[1] * z[2] + 2 * k[2] * z[1]), h * k[1] * z[1]],
                [0.0, -2 * h * k[2] * z[1], 1.0],
            ])
            dz = np.linalg.solve(jac, g)
            z = z - dz
            if np.abs(dz).max() < 1e-12:
                break
        y = z
    return y


@case(lambda r, n: (np.array([1.0, 0.5]), 0.1 * vector(r, n), 3 * r.random(n)), (7, 11))
def ewald_like_pair_sum(par, q, x):
    """Return a sum over pairs with a cutoff, by a list of neighbours that is built first."""
    n = len(x)
    neighbours = []
    for i in range(n):
        for j in range(i + 1, n):
            if abs(x[i] - x[j]) < 2.0:
                neighbours.append((i, j))
    energy = 0.0
    force = np.zeros(n)
    for i, j in neighbours:
        d = x[i] - x[j]
        r = math.sqrt(d * d + 0.01)
        e = q[i] * q[j] * math.erfc(par[0] * r) / r
        energy += par[1] * e
        force[i] += e * d
        force[j] -= e * d
    return energy + (force ** 2).sum()


@case(lambda r, n: (0.5 + r.random(n), 0.3), (9, 15))
def thin_film_transfer_matrix(thickness, k):
    m00, m01, m10, m11 = 1.0 + 0j, 0j, 0j, 1.0 + 0j
    for j in range(len(thickness)):
        index = 1.5 if j % 2 == 0 else 2.1
        phase = k * index * thickness[j]
        c, s = np.cos(phase), np.sin(phase)
        a, b, d = c, 1j * s / index, 1j * s * index
        m00, m01, m10, m11 = m00 * a + m01 * d, m00 * b + m01 * a, m10 * a + m11 * d, m10 * b + m11 * a
    r = (m00 + m01 - m10 - m11) / (m00 + m01 + m10 + m11)
    return abs(r) ** 2


@case(lambda r, n: (0.2 * vector(r, n), np.array([1.0, 0.3])), (12, 18))
def duffing_events(force, par):
    """Return the times when an oscillator hits a wall, found by interpolation."""
    x, v, t = 0.5, 0.0, 0.0
    dt = 0.1
    hits = 0
    last_hit = 0.0
    for f in force:
        a = f - par[0] * x - par[1] * x ** 3
        v_new = v + dt * a
        x_new = x + dt * v_new
        if x_new > 0.55:
            frac = (0.55 - x) / (x_new - x)
            last_hit = t + frac * dt
            x_new = 0.55 - (1 - frac) * dt * v_new * 0.8
            v_new = -0.8 * v_new
            hits += 1
        x, v, t = x_new, v_new, t + dt
    return x, v, last_hit, hits


@case(lambda r, n: (positive(r, n), np.array([0.9, 1.4])), (10, 16))
def adaptive_rk45(y0, par):
    c = [0.0, 1 / 4, 3 / 8, 12 / 13, 1.0, 1 / 2]
    a = [[], [1 / 4], [3 / 32, 9 / 32], [1932 / 2197, -7200 / 2197, 7296 / 2197],
         [439 / 216, -8.0, 3680 / 513, -845 / 4104], [-8 / 27, 2.0, -3544 / 2565, 1859 / 4104, -11 / 40]]
    b4 = [25 / 216, 0.0, 1408 / 2565, 2197 / 4104, -1 / 5, 0.0]
    b5 = [16 / 135, 0.0, 6656 / 12825, 28561 / 56430, -9 / 50, 2 / 55]

    def rhs(t, y):
        return par[0] * y * (1.0 - y / (1.0 + par[1])) + 0.1 * math.sin(t)

    y, t, h, steps = y0.copy(), 0.0, 0.2, 0
    while t < 1.0 and steps < 50:
        h = min(h, 1.0 - t)
        k = np.zeros((6, len(y)))
        for s in range(6):
            z = y.copy()
            for m in range(s):
                z += h * a[s][m] * k[m]
            k[s] = rhs(t + c[s] * h, z)
        low, high = y.copy(), y.copy()
        for s in range(6):
            low += h * b4[s] * k[s]
            high += h * b5[s] * k[s]
        error = np.max(np.abs(high - low))
        steps += 1
        if error < 1e-7:
            t += h
            y = high
            h *= 1.5
        else:
            h *= 0.5
    return y.sum()


@case(lambda r, n: (positive(r, (4)), 0.5), (6, 9))
def ising_mean_field(h, beta):
    m = np.tanh(h)
    for sweep in range(200):
        before = m.copy()
        for i in range(m.shape[0]):
            field_i = h[i]
            for j in (i - 1, i + 1):
                if 0 <= j < m.shape[0]:
                    field_i += m[j]
            m[i] = np.tanh(beta * field_i)
        if np.abs(m - before).max() < 1e-12:
            return m.prod() + 0.0 * sweep
    return np.nan


# -- finance and econometrics ------------------------------------------------------------------------------------------


@case(lambda r, n: (np.array([0.1, 0.05, 0.85, -0.1]), vector(r, n)), (20, 31))
def egarch(theta, returns):
    omega, alpha, beta, gamma = theta
    ll = 0.0
    logvar = np.log(np.var(returns))
    for t, r in enumerate(returns):
        if t > 0:
            z = returns[t - 1] / np.exp(0.5 * logvar)
            logvar = omega + beta * logvar + alpha * (abs(z) - math.sqrt(2 / math.pi)) + gamma * z
        ll -= 0.5 * (math.log(2 * math.pi) + logvar + r * r * math.exp(-logvar))
    return ll


@case(lambda r, n: (0.3 * matrix(r, 2), np.eye(2) + 0.1, matrix(r, n, 2)), (9, 14))
def var_likelihood(A, L, y):
    n, k = y.shape
    S = L @ L.T
    Sinv = np.linalg.inv(S)
    _, logdet = np.linalg.slogdet(S)
    ll = 0.0
    for t in range(1, n):
        e = y[t] - A @ y[t - 1]
        ll -= 0.5 * (k * np.log(2 * np.pi) + logdet + e @ Sinv @ e)
    return ll


@case(lambda r, n: (np.array([0.3, -0.2, 0.9, 0.8]), vector(r, n)), (14, 22))
def hamilton_switching(par, y):
    mu = (par[0], par[1])
    p = np.array([[par[2], 1 - par[2]], [1 - par[3], par[3]]])
    xi = np.array([0.5, 0.5])
    ll = 0.0
    filtered = np.zeros((len(y), 2))
    for t in range(len(y)):
        prior = p.T @ xi
        lik = np.zeros(2)
        for s in range(2):
            lik[s] = math.exp(-0.5 * (y[t] - mu[s]) ** 2)
        joint = prior * lik
        total = joint.sum()
        xi = joint / total
        filtered[t] = xi
        ll += math.log(total)
    return ll + filtered[-1, 0]


@case(lambda r, n: (0.1 * vector(r, n), np.array([100.0, 95.0, 0.2])), (10, 16))
def barrier_option(z, par):
    spot, strike, vol = par
    dt = 1 / len(z)
    path = [spot]
    knocked = False
    for e in z:
        s = path[-1] * math.exp(-0.5 * vol ** 2 * dt + vol * math.sqrt(dt) * e)
        path.append(s)
        if s > 140.0:
            knocked = True
            break
    if knocked:
        return 0.1 * path[-1]
    payoff = max(sum(path) / len(path) - strike, 0.0)
    return payoff


@case(lambda r, n: (np.sort(1 + r.random(n)).cumsum(), 0.03 + 0.01 * r.random(n)), (6, 9))
def bootstrap_discounts(times, par_rates):
    dfs = {}
    annuity = 0.0
    previous = 0.0
    for i in range(len(times)):
        dt = times[i] - previous
        df = (1.0 - par_rates[i] * annuity) / (1.0 + par_rates[i] * dt)
        annuity += dt * df
        previous = times[i]
        dfs[i] = df
    return sum(dfs.values()) + dfs[0]


@case(lambda r, n: (np.array([0.6, 0.3]), positive(r, n)), (8, 13))
def consumption_savings_vfi(par, income):
    beta, gamma = par
    grid = np.linspace(0.1, 3.0, 9)
    value = np.log(grid)
    for y in income[::-1]:
        new = np.empty(len(grid))
        for i, w in enumerate(grid):
            scores = np.zeros(len(grid))
            for j, s in enumerate(grid):
                c = w + y - s
                u = c ** (1 - gamma) / (1 - gamma) if c > 1e-6 else -50.0 + c
                scores[j] = u + beta * value[j]
            top = scores.max()
            new[i] = top + 0.1 * np.log(np.exp((scores - top) / 0.1).sum())
        value = new
    return value


# -- robotics, control, vision -----------------------------------------------------------------------------------------


@case(lambda r, n: (vector(r, n), positive(r, n)), (3, 5))
def forward_kinematics(q, lengths):
    T = np.eye(3)
    points = np.zeros((len(q) + 1, 2))
    for i in range(len(q)):
        c, s = np.cos(q[i]), np.sin(q[i])
        R = np.array([[c, -s, lengths[i] * c], [s, c, lengths[i] * s], [0.0, 0.0, 1.0]])
        T = T @ R
        points[i + 1] = T[:2, 2]
    return points


@case(lambda r, n: (vector(r, 4), 0.1 * matrix(r, n, 3)), (8, 12))
def quaternion_integration(q0, omegas):
    def mul(p, q):
        return np.array([
            p[0] * q[0] - p[1] * q[1] - p[2] * q[2] - p[3] * q[3],
            p[0] * q[1] + p[1] * q[0] + p[2] * q[3] - p[3] * q[2],
            p[0] * q[2] - p[1] * q[3] + p[2] * q[0] + p[3] * q[1],
            p[0] * q[3] + p[1] * q[2] - p[2] * q[1] + p[3] * q[0],
        ])

    q = q0 / np.linalg.norm(q0)
    for w in omegas:
        angle = np.sqrt(w @ w) + 1e-12
        dq = np.concatenate([[np.cos(angle / 2)], np.sin(angle / 2) * w / angle])
        q = mul(q, dq)
        q /= np.linalg.norm(q)
    return q


@case(lambda r, n: (0.5 * matrix(r, 2), matrix(r, 2, 1), np.eye(2), np.eye(1), n), (5, 9))
def lqr_riccati(A, B, Q, R, horizon):
    P = Q.copy()
    gains = []
    for _ in range(horizon):
        K = np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)
        P = Q + A.T @ P @ (A - B @ K)
        gains.append(K)
    x = np.array([1.0, -0.5])
    cost = 0.0
    for K in reversed(gains):
        u = -K @ x
        cost += x @ Q @ x + u @ R @ u
        x = A @ x + B @ u
    return cost


@case(lambda r, n: (np.array([1.2, 0.4, 0.1]), vector(r, n)), (12, 19))
def pid_with_saturation(gains, target):
    kp, ki, kd = gains
    y, integral, previous = 0.0, 0.0, 0.0
    log = np.zeros((len(target), 2))
    for t, r in enumerate(target):
        error = r - y
        trial = integral + error * 0.1
        u = kp * error + ki * trial + kd * (error - previous) / 0.1
        if u > 1.0:
            u = 1.0
        elif u < -1.0:
            u = -1.0
        else:
            integral = trial
        y += 0.1 * (u - y)
        previous = error
        log[t] = y, u
    return log


@case(lambda r, n: (r.random((n, n + 1)), r.random((3, 3))), (6, 8))
def filter_reflect_padding(img, ker):
    p = 1
    padded = np.pad(img, p, mode="reflect")
    out = np.zeros(img.shape)
    for i in range(img.shape[0]):
        for j in range(img.shape[1]):
            out[i, j] = (padded[i : i + 3, j : j + 3] * ker).sum()
    return np.maximum(out - out.mean(), 0.0)


@case(lambda r, n: (r.random((n, n)), 0.4), (5, 7))
def bilateral_filter(img, sigma):
    h, w = img.shape
    out = img.copy()
    for y in range(h):
        for x in range(w):
            acc = norm = 0.0
            for dy in (-1, 0, 1):
                for dx in (-1, 0, 1):
                    yy, xx = min(max(y + dy, 0), h - 1), min(max(x + dx, 0), w - 1)
                    wgt = math.exp(-((img[yy, xx] - img[y, x]) / sigma) ** 2 - 0.5 * (dx * dx + dy * dy))
                    acc += wgt * img[yy, xx]
                    norm += wgt
            out[y, x] = acc / norm
    return out


Ray = namedtuple("Ray", "origin direction")


@case(lambda r, n: (r.normal(size=(n, 3)) + np.array([0.0, 0.0, 5.0]), 0.5 + r.random(n)), (3, 5))
def ray_trace_spheres(centers, radii):
    def hit(ray, c, rad):
        oc = ray.origin - c
        b = oc @ ray.direction
        disc = b * b - (oc @ oc - rad * rad)
        if disc < 0:
            return -1.0
        return -b - math.sqrt(disc)

    light = np.array([0.5, 0.7, -0.5])
    image = np.zeros((4, 4))
    for i in range(4):
        for j in range(4):
            d = np.array([(j - 1.5) * 0.2, (i - 1.5) * 0.2, 1.0])
            ray = Ray(np.zeros(3), d / np.linalg.norm(d))
            nearest, which = 1e9, -1
            for k in range(len(radii)):
                t = hit(ray, centers[k], radii[k])
                if 0 < t < nearest:
                    nearest, which = t, k
            if which >= 0:
                p = ray.origin + nearest * ray.direction
                normal = (p - centers[which]) / radii[which]
                image[i, j] = max(0.0, normal @ light) + 0.1
    return image


@case(lambda r, n: (r.normal(size=(n, 2)), r.normal(size=(n, 2))), (5, 8))
def procrustes_angle(a, b):
    a = a - a.mean(axis=0)
    b = b - b.mean(axis=0)
    num = den = 0.0
    for (x1, y1), (x2, y2) in zip(a, b):
        num += x1 * y2 - y1 * x2
        den += x1 * x2 + y1 * y2
    theta = np.arctan2(num, den)
    c, s = np.cos(theta), np.sin(theta)
    rot = np.array([[c, -s], [s, c]])
    return np.sum((a @ rot.T - b) ** 2)


@case(lambda r, n: (r.random((n, 2)), np.array([0.4, 0.6])), (6, 9))
def signed_distance_union(pts, c):
    def circle(p, r):
        return np.sqrt(p[0] ** 2 + p[1] ** 2 + 1e-9) - r

    def box(p, b):
        q = np.abs(p) - b
        return np.linalg.norm(np.maximum(q, 0.0) + 1e-9) + min(max(q[0], q[1]), 0.0)

    total = 0.0
    for p in pts:
        d1, d2 = circle(p - c, 0.2), box(p - 0.5 * c, np.array([0.1, 0.2]))
        k = 0.3
        h = min(max(0.5 + 0.5 * (d2 - d1) / k, 0.0), 1.0)
        total += d2 * (1 - h) + d1 * h - k * h * (1 - h)
    return total


# -- language, sequences -----------------------------------------------------------------------------------------------


@case(lambda r, n: (matrix(r, n, 3), matrix(r, 3), r.integers(0, 3, n)), (7, 11))
def linear_chain_crf(emissions, transitions, tags):
    n, k = emissions.shape
    score = emissions[0, tags[0]]
    for t in range(1, n):
        score += transitions[tags[t - 1], tags[t]] + emissions[t, tags[t]]
    alpha = emissions[0].copy()
    for t in range(1, n):
        new = np.zeros(k)
        for j in range(k):
            s = alpha + transitions[:, j]
            m = s.max()
            new[j] = m + np.log(np.exp(s - m).sum()) + emissions[t, j]
        alpha = new
    m = np.max(alpha)
    return score - (m + np.log(np.sum(np.exp(alpha - m))))


@case(lambda r, n: (vector(r, 4), matrix(r, n, 2)), (4, 6))
def pcfg_inside(rules, lex):
    n = len(lex)
    prob = np.exp(rules) / np.exp(rules).sum()
    chart = np.zeros((n, n + 1, 2))
    for i in range(n):
        chart[i, i + 1] = np.exp(lex[i])
    binary = [(0, 0, 1, prob[0]), (0, 1, 0, prob[1]), (1, 1, 1, prob[2]), (1, 0, 0, prob[3])]
    for span in range(2, n + 1):
        for i in range(n - span + 1):
            j = i + span
            for k in range(i + 1, j):
                for lhs, left, right, p in binary:
                    chart[i, j, lhs] += p * chart[i, k, left] * chart[k, j, right]
    return np.log(chart[0, n].sum())


@case(lambda r, n: (r.normal(size=(n, 5)), r.integers(1, 5, max(2, n // 3))), (7, 10))
def ctc_loss(logits, labels):
    T = logits.shape[0]
    ext = [0]
    for l in labels:
        ext.extend([l, 0])
    S = len(ext)
    logp = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    p = np.exp(logp)
    alpha = np.zeros((T, S))
    alpha[0, 0] = p[0, ext[0]]
    alpha[0, 1] = p[0, ext[1]]
    for t in range(1, T):
        for s in range(S):
            a = alpha[t - 1, s]
            if s > 0:
                a += alpha[t - 1, s - 1]
            if s > 1 and ext[s] != 0 and ext[s] != ext[s - 2]:
                a += alpha[t - 1, s - 2]
            alpha[t, s] = a * p[t, ext[s]]
    return -np.log(alpha[-1, -1] + alpha[-1, -2])


@case(lambda r, n: (matrix(r, n, 2), matrix(r, n + 1, 2), 0.5), (6, 8))
def dtw_with_window(a, b, gamma):
    n, m = len(a), len(b)
    window = max(3, abs(n - m))
    D = np.full((n + 1, m + 1), np.inf)
    D[0, 0] = 0.0
    for i in range(1, n + 1):
        for j in range(max(1, i - window), min(m, i + window) + 1):
            cost = np.sum((a[i - 1] - b[j - 1]) ** 2)
            choices = [D[i - 1, j], D[i, j - 1], D[i - 1, j - 1]]
            best = min(choices)
            soft = 0.0
            for c in choices:
                soft += np.exp(-(c - best) / gamma)
            D[i, j] = cost + best - gamma * np.log(soft)
    return D[n, m]


@case(lambda r, n: (positive(r, 3), r.integers(0, 4, n), r.integers(0, 4, n + 2)), (6, 9))
def weighted_edit_distance(w, a, b):
    ins, dele, sub = w
    row = [j * ins for j in range(len(b) + 1)]
    for i, ca in enumerate(a, 1):
        new = [i * dele]
        for j, cb in enumerate(b, 1):
            if ca == cb:
                new.append(row[j - 1])
            else:
                new.append(min(row[j] + dele, new[-1] + ins, row[j - 1] + sub))
        row = new
    return row[-1]


@case(lambda r, n: (0.3 * matrix(r, 4), 0.3 * matrix(r, 4), 0.1 * vector(r, 4), matrix(r, n, 4)), (6, 9))
def bidirectional_rnn(W, U, b, xs):
    def run(seq):
        h = np.zeros(4)
        outs = []
        for x in seq:
            h = np.tanh(W @ x + U @ h + b)
            outs.append(h)
        return outs

    fw = run(xs)
    bw = run(xs[::-1])[::-1]
    return np.array([np.concatenate((f, g)) for f, g in zip(fw, bw)]).max(axis=0)


@case(lambda r, n: (0.3 * matrix(r, 8, 5), matrix(r, n, 3), r.random(n) < 0.7), (6, 9))
def lstm_with_mask(W, xs, mask):
    def sigmoid(z):
        return 1 / (1 + np.exp(-z))

    h, c = np.zeros(2), np.zeros(2)
    for x, m in zip(xs, mask):
        z = W @ np.concatenate([x, h])
        i, f, o, g = sigmoid(z[:2]), sigmoid(z[2:4]), sigmoid(z[4:6]), np.tanh(z[6:])
        c_new = f * c + i * g
        h_new = o * np.tanh(c_new)
        c = np.where(m, c_new, c)
        h = np.where(m, h_new, h)
    return h


@case(lambda r, n: (matrix(r, n, 4), matrix(r, n, 4), matrix(r, n, 4)), (5, 7))
def multi_head_attention(q, k, v):
    heads, d = 2, 2
    n = q.shape[0]
    out = np.zeros_like(v)
    for h in range(heads):
        cols = slice(h * d, (h + 1) * d)
        scores = q[:, cols] @ k[:, cols].T / np.sqrt(d)
        scores[np.triu_indices(n, 1)] = -1e9
        scores -= scores.max(axis=1, keepdims=True)
        p = np.exp(scores)
        p /= p.sum(axis=1)[:, None]
        out[:, cols] = p @ v[:, cols]
    return out


@case(lambda r, n: (r.random((n, 3)), r.integers(0, 3, n), 0.3), (8, 12))
def ngram_counts(emb, words, smoothing):
    counts = {}
    for a, b in zip(words[:-1], words[1:]):
        counts[(int(a), int(b))] = counts.get((int(a), int(b)), 0) + 1
    total = 0.0
    for (a, b), c in counts.items():
        total += c * np.log(emb[a] @ emb[b] + smoothing)
    return total


# -- statistics --------------------------------------------------------------------------------------------------------


@case(lambda r, n: (np.array([0.2, -0.4, 0.1]), matrix(r, n, 2), r.integers(0, 3, n), r.random(n) < 0.5), (12, 18))
def hierarchical_logistic(theta, X, group, y):
    mu, log_tau, slope = theta
    tau = np.exp(log_tau)
    effects = mu + tau * np.array([-0.5, 0.1, 0.4])
    lp = -0.5 * mu ** 2 - 0.5 * log_tau ** 2
    for i in range(len(y)):
        eta = effects[group[i]] + slope * X[i, 0] - 0.2 * X[i, 1]
        lp += -np.logaddexp(0.0, -eta) if y[i] else -np.logaddexp(0.0, eta)
    return lp


@case(lambda r, n: (vector(r, 3), np.array([0.3, 0.5, 0.2]), vector(r, n)), (10, 15))
def mixture_em_steps(mu0, w0, x):
    mu, w = mu0.copy(), w0 / w0.sum()
    n, k = len(x), len(mu)
    resp = np.zeros((n, k))
    for it in range(3):
        for i in range(n):
            s = 0.0
            for j in range(k):
                resp[i, j] = w[j] * np.exp(-0.5 * (x[i] - mu[j]) ** 2)
                s += resp[i, j]
            resp[i] /= s
        nk = resp.sum(axis=0)
        mu = (resp * x[:, None]).sum(axis=0) / nk
        w = nk / n
    return mu, w


@case(lambda r, n: (r.random((n, n + 1)), 0.3), (5, 7))
def sinkhorn_to_tolerance(cost, eps):
    n, m = cost.shape
    a, b = np.ones(n) / n, np.ones(m) / m
    K = np.exp(-cost / eps)
    u, v = np.ones(n), np.ones(m)
    err, it = 1.0, 0
    while err > 1e-10 and it < 500:
        u = a / (K @ v)
        v = b / (K.T @ u)
        if it % 5 == 0:
            P = u[:, None] * K * v[None, :]
            err = np.abs(P.sum(axis=1) - a).sum()
        it += 1
    return (u[:, None] * K * v * cost).sum()


@case(lambda r, n: (np.sort(r.random(n)), r.normal(size=n + 2), r.random(5)), (5, 8))
def bspline_de_boor(inner, coef, x):
    p = 2
    knots = np.concatenate([np.zeros(p + 1) - 0.1, inner[1:], np.ones(p + 1) + 0.1])
    out = []
    for xi in x:
        k = p
        while k < len(coef) - 1 and xi >= knots[k + 1]:
            k += 1
        d = [coef[j + k - p] for j in range(p + 1)]
        for r in range(1, p + 1):
            for j in range(p, r - 1, -1):
                left, right = knots[j + k - p], knots[j + 1 + k - r]
                alpha = (xi - left) / (right - left)
                d[j] = (1.0 - alpha) * d[j - 1] + alpha * d[j]
        out.append(d[p])
    return np.array(out)


@case(lambda r, n: (positive(r, n), np.array([0.5])), (6, 10))
def hmc_trajectory(x0, eps):
    def grad_u(x):
        g = x.copy()
        g[1:] += 0.5 * (x[1:] - x[:-1])
        g[:-1] -= 0.5 * (x[1:] - x[:-1])
        return g

    x, p = x0.copy(), np.cos(np.arange(len(x0)))
    h = eps[0] * 0.2
    p -= 0.5 * h * grad_u(x)
    for step in range(5):
        x += h * p
        if step != 4:
            p -= h * grad_u(x)
    p -= 0.5 * h * grad_u(x)
    return 0.5 * (p @ p) + 0.5 * (x @ x)


@case(lambda r, n: (positive(r, n), vector(r, n), r.random(n) < 0.6), (8, 13))
def cox_partial_likelihood(t, z, event):
    order = np.argsort(-t)
    beta = 0.7
    risk, ll = 0.0, 0.0
    for k in order:
        risk += np.exp(beta * z[k])
        if event[k]:
            ll += beta * z[k] - np.log(risk)
    return ll + t.sum()


@case(lambda r, n: (vector(r, n), 0.2), (9, 14))
def isotonic_pava(y, ridge):
    values, weights = [], []
    for v in y:
        values.append(v)
        weights.append(1.0)
        while len(values) > 1 and values[-2] > values[-1]:
            w = weights[-2] + weights[-1]
            merged = (weights[-2] * values[-2] + weights[-1] * values[-1]) / w
            values.pop()
            weights.pop()
            values[-1] = merged
            weights[-1] = w
    fit = []
    for v, w in zip(values, weights):
        fit += [v] * int(w)
    fit = np.array(fit)
    return ((y - fit) ** 2).sum() + ridge * (fit ** 2).sum()


# -- linear algebra ----------------------------------------------------------------------------------------------------


@case(lambda r, n: (4 + r.random(n), r.random(n), r.random(n), r.normal(size=n)), (6, 9))
def pentadiagonal_solver(d, e, f, b):
    n = len(d)
    d, e, f, x = d.copy(), e.copy(), f.copy(), b.copy()
    low1, low2 = e.copy(), f.copy()
    for i in range(n - 1):
        m = low1[i] / d[i]
        d[i + 1] -= m * e[i]
        if i + 2 < n:
            e[i + 1] -= m * f[i]
            m2 = low2[i] / d[i]
            low1[i + 1] -= m2 * e[i]
            d[i + 2] -= m2 * f[i]
            x[i + 2] -= m2 * x[i]
        x[i + 1] -= m * x[i]
    x[n - 1] /= d[n - 1]
    x[n - 2] = (x[n - 2] - e[n - 2] * x[n - 1]) / d[n - 2]
    for i in range(n - 3, -1, -1):
        x[i] = (x[i] - e[i] * x[i + 1] - f[i] * x[i + 2]) / d[i]
    return x


@case(lambda r, n: (definite(r, n),), (4, 6))
def cholesky_by_columns(A):
    L = A.copy()
    n = L.shape[0]
    for j in range(n):
        L[j, j] = np.sqrt(L[j, j] - L[j, :j] @ L[j, :j])
        L[j + 1 :, j] = (L[j + 1 :, j] - L[j + 1 :, :j] @ L[j, :j]) / L[j, j]
    return np.tril(L).sum()


@case(lambda r, n: (matrix(r, n + 2, n), vector(r, n + 2)), (3, 5))
def householder_least_squares(A, b):
    R, y = A.copy(), b.copy()
    m, n = R.shape
    for k in range(n):
        x = R[k:, k].copy()
        v = x.copy()
        v[0] += np.copysign(np.linalg.norm(x), x[0])
        v /= np.linalg.norm(v)
        R[k:, k:] -= 2 * np.outer(v, v @ R[k:, k:])
        y[k:] -= 2 * v * (v @ y[k:])
    x = np.zeros(n)
    for i in range(n - 1, -1, -1):
        x[i] = (y[i] - R[i, i + 1 :] @ x[i + 1 :]) / R[i, i]
    return x


@case(lambda r, n: (definite(r, n), vector(r, n)), (4, 7))
def cg_while(A, b):
    A = (A + A.T) / 2
    x = np.zeros(len(b))
    r = b - A @ x
    p = r
    rs = r @ r
    k = 0
    while np.sqrt(rs) > 1e-13 and k < 3 * len(b):
        Ap = A @ p
        alpha = rs / (p @ Ap)
        x = x + alpha * p
        r = r - alpha * Ap
        new = r @ r
        p = r + (new / rs) * p
        rs = new
        k += 1
    return x


@case(lambda r, n: (definite(r, n), np.ones(n)), (4, 6), tol=1e-4)
def lanczos_tridiagonal(A, v):
    m = 3
    V = np.zeros((m + 1, len(v)))
    alpha, beta = np.zeros(m), np.zeros(m + 1)
    V[0] = v / np.linalg.norm(v)
    for j in range(m):
        w = A @ V[j]
        if j > 0:
            w -= beta[j] * V[j - 1]
        alpha[j] = w @ V[j]
        w -= alpha[j] * V[j]
        beta[j + 1] = np.linalg.norm(w)
        V[j + 1] = w / beta[j + 1]
    T = np.diag(alpha) + np.diag(beta[1:m], 1) + np.diag(beta[1:m], -1)
    return np.trace(T @ T)


@case(lambda r, n: (matrix(r, n),), (3, 5))
def expm_scaling_squaring(A):
    norm = np.abs(A).sum(axis=0).max()
    s = 0
    while norm > 0.5:
        norm /= 2
        s += 1
    X = A / 2 ** s
    E = np.eye(len(A))
    term = np.eye(len(A))
    for k in range(1, 14):
        term = term @ X / k
        E = E + term
    for _ in range(s):
        E = E @ E
    return E


# -- simulation, queues, state machines --------------------------------------------------------------------------------


@case(lambda r, n: (np.cumsum(positive(r, n)), 2 * positive(r, n)), (10, 15))
def two_server_queue(arrivals, service):
    free = [0.0, 0.0]
    waits = np.zeros(len(arrivals))
    served = [0, 0]
    for i in range(len(arrivals)):
        k = 0 if free[0] <= free[1] else 1
        start = max(arrivals[i], free[k])
        waits[i] = start - arrivals[i]
        free[k] = start + service[i]
        served[k] += 1
    return waits.mean() + 0.1 * max(free)


@case(lambda r, n: (vector(r, n), np.array([0.5, 1.5])), (14, 21))
def hysteresis_state_machine(x, par):
    IDLE, HEAT, COOL = 0, 1, 2
    state, temp, cost = IDLE, 0.0, 0.0
    switches = 0
    for u in x:
        before = state
        if state == IDLE:
            if temp < -par[0]:
                state = HEAT
            elif temp > par[0]:
                state = COOL
        elif state == HEAT and temp > 0:
            state = IDLE
        elif state == COOL and temp < 0:
            state = IDLE
        power = par[1] * (state == HEAT) - par[1] * (state == COOL)
        temp += 0.3 * u + 0.2 * power
        cost += power ** 2 + temp ** 2
        switches += state != before
    return cost + 0.0 * switches


@case(lambda r, n: (vector(r, n), 0.4), (11, 17))
def mode_by_string(x, level):
    mode = "rest"
    total = 0.0
    for v in x:
        if mode == "rest":
            if v > level:
                mode = "run"
        elif v < -level:
            mode = "rest"
        if mode == "run":
            total += v * v * level
        else:
            total += 0.1 * v
    return total


@dataclass
class Tank:
    level: float
    area: float = 1.0
    log: list = field(default_factory=list)

    def step(self, inflow, dt):
        out = 0.3 * math.sqrt(max(self.level, 1e-6))
        self.level += dt * (inflow - out) / self.area
        self.log.append(self.level)
        return out


@case(lambda r, n: (positive(r, n), 1.5), (9, 14))
def cascaded_tanks(inflow, area):
    upper, lower = Tank(0.5, area), Tank(0.2)
    for q in inflow:
        lower.step(upper.step(q, 0.1), 0.1)
    return sum(upper.log) + lower.log[-1]


@case(lambda r, n: (positive(r, n), np.array([0.2, 0.7])), (12, 18))
def inventory_policy(demand, par):
    low, target = par
    stock, orders, cost = 1.0, [], 0.0
    for t, d in enumerate(demand):
        if orders and orders[0][0] == t:
            stock += orders.pop(0)[1]
        stock -= d * 0.2
        if stock < 0:
            cost += 4.0 * -stock
            stock = 0.0
        if stock < low and not orders:
            orders.append((t + 2, target - stock))
            cost += 0.5
        cost += 0.1 * stock
    return cost


@case(lambda r, n: (r.random((n, n)), 0.6), (5, 7))
def percolation_flow(p, threshold):
    n = len(p)
    seen = set()
    stack = [(0, j) for j in range(n) if p[0, j] < threshold]
    total = 0.0
    while stack:
        i, j = stack.pop()
        if (i, j) in seen:
            continue
        seen.add((i, j))
        total += p[i, j] ** 2
        for di, dj in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            a, b = i + di, j + dj
            if 0 <= a < n and 0 <= b < n and p[a, b] < threshold:
                stack.append((a, b))
    return total


# -- signals -----------------------------------------------------------------------------------------------------------


@case(lambda r, n: (vector(r, n), np.array([0.2, 0.3, 0.4])), (12, 20))
def lattice_filter(x, k):
    order = len(k)
    b_prev = np.zeros(order + 1)
    out = np.zeros(len(x))
    for n in range(len(x)):
        f = x[n]
        b = np.zeros(order + 1)
        for m in range(order - 1, -1, -1):
            f = f - k[m] * b_prev[m]
            b[m + 1] = b_prev[m] + k[m] * f
        b[0] = f
        b_prev = b
        out[n] = f
    return out


@case(lambda r, n: (vector(r, n), vector(r, n), np.array([0.1])), (16, 24))
def rls_filter(x, d, delta):
    m, lam = 3, 0.98
    w = np.zeros(m)
    P = np.eye(m) / delta[0]
    err = []
    for t in range(m, len(x)):
        u = x[t - m : t][::-1]
        Pu = P @ u
        g = Pu / (lam + u @ Pu)
        e = d[t] - w @ u
        w = w + g * e
        P = (P - np.outer(g, Pu)) / lam
        err.append(e)
    return np.array(err)


@case(lambda r, n: (vector(r, 2 ** n), np.array([0.6])), (3, 4))
def wavelet_soft_threshold(x, par):
    x = x.copy()
    n = len(x)
    details = []
    a = x
    while len(a) > 1:
        s, d = (a[::2] + a[1::2]) / np.sqrt(2), (a[::2] - a[1::2]) / np.sqrt(2)
        details.append(np.sign(d) * np.maximum(np.abs(d) - par[0], 0))
        a = s
    for d in reversed(details):
        up = np.empty(2 * len(a))
        up[::2] = (a + d) / np.sqrt(2)
        up[1::2] = (a - d) / np.sqrt(2)
        a = up
    return (a * np.cos(np.arange(n))).sum()


@case(lambda r, n: (vector(r, n), 0.25), (13, 19))
def goertzel_bank(x, f0):
    powers = []
    for h in range(1, 4):
        w = 2 * math.pi * f0 * h
        coef = 2 * math.cos(w)
        s1 = s2 = 0.0
        for v in x:
            s1, s2 = v + coef * s1 - s2, s1
        powers.append(s1 * s1 + s2 * s2 - coef * s1 * s2)
    return powers


@case(lambda r, n: (vector(r, n), 0.9), (12, 17))
def overlap_add_frames(x, decay):
    size, hop = 6, 3
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(size) / size)
    out = np.zeros(len(x) + size)
    gain = 1.0
    for start in range(0, len(x) - size + 1, hop):
        frame = x[start : start + size] * window
        spectrum = np.fft.rfft(frame)
        spectrum *= gain
        out[start : start + size] += np.fft.irfft(spectrum, size) * window
        gain *= decay
    return out
