"""Programs of users with dicts, sets and lists of arrays, and from simulation, control, economics and signals."""

import collections
import dataclasses
import itertools
import math

import numpy as np
from user_cases import case, definite, matrix, positive, vector

SIZES = (5, 8, 11)


@case(lambda r, n: (vector(r, n + 6), positive(r, 1)[0]), SIZES)
def kaiser_fir(x, beta):
    n = 5
    w = np.zeros(n)
    for k in range(n):
        t = 2.0 * k / (n - 1) - 1.0
        z = beta * np.sqrt(max(1.0 - t * t, 0.0))
        s, term, m = 1.0, 1.0, 1
        while term > 1e-14 * s:
            term *= (z / 2.0 / m) ** 2
            s += term
            m += 1
        w[k] = s
    w /= w.sum()
    y = np.zeros(len(x) - n + 1)
    for i in range(len(y)):
        for k in range(n):
            y[i] += w[k] * x[i + k]
    return (y * y).sum()


@case(lambda r, n: (vector(r, n), np.array([0.3, 0.1])), SIZES)
def nlms_circular_buffer(x, par):
    taps = 3
    buf = np.zeros(taps)
    w = np.zeros(taps)
    head = 0
    err = 0.0
    for t in range(len(x)):
        buf[head] = x[t]
        y = 0.0
        p = par[1]
        for k in range(taps):
            j = (head - k) % taps
            y += w[k] * buf[j]
            p += buf[j] * buf[j]
        e = np.sin(x[t]) - y
        for k in range(taps):
            w[k] += par[0] * e * buf[(head - k) % taps] / p
        head = (head + 1) % taps
        err += e * e
    return err + w.sum()


@case(lambda r, n: (vector(r, 2 * n),), SIZES)
def schmitt_trigger_count(x):
    state = False
    edges = []
    acc = 0.0
    for i in range(len(x)):
        if not state and x[i] > 0.4:
            state = True
            edges.append(i)
        elif state and x[i] < -0.4:
            state = False
            edges.append(-i)
        acc += x[i] ** 2 if state else x[i] * 0.1
    for e in edges:
        acc += x[abs(e)] * math.copysign(1.0, e)
    return acc


@case(lambda r, n: (vector(r, n),), SIZES)
def alpha_beta_list_result(x):
    est = []
    pos, vel = x[0], 0.0
    for z in x[1:]:
        pos = pos + vel
        res = z - pos
        pos += 0.6 * res
        vel += 0.2 * res
        est.append(pos)
    return est


@case(lambda r, n: (vector(r, 16),), SIZES)
def radix2_dif_inplace(x):
    re = x.copy()
    im = np.zeros_like(x)
    n = len(x)
    size = n
    while size > 1:
        half = size // 2
        for start in range(0, n, size):
            for k in range(half):
                a = -2 * np.pi * k / size
                i, j = start + k, start + k + half
                tr, ti = re[i] - re[j], im[i] - im[j]
                re[i] += re[j]
                im[i] += im[j]
                re[j] = tr * np.cos(a) - ti * np.sin(a)
                im[j] = tr * np.sin(a) + ti * np.cos(a)
        size = half
    return np.sqrt(re * re + im * im + 0.1).sum()


@case(lambda r, n: (vector(r, n), positive(r, 3)), SIZES)
def biquad_zero_crossings(x, q):
    s1 = s2 = 0.0
    prev = 0.0
    count = 0
    total = 0.0
    for v in x:
        y = q[0] * v + s1
        s1 = q[1] * v - 0.5 * y + s2
        s2 = q[2] * v - 0.2 * y
        if prev * y < 0:
            frac = prev / (prev - y)
            total += (count + frac) ** 2
            count = 0
        else:
            count += 1
        prev = y
    return total + prev


@case(lambda r, n: (vector(r, n + 2), positive(r, n + 2)), SIZES)
def muscl_minmod(u0, a):
    u = u0.copy()
    n = len(u)
    for _step in range(4):
        slope = np.zeros(n)
        for i in range(1, n - 1):
            l, r_ = u[i] - u[i - 1], u[i + 1] - u[i]
            if l * r_ <= 0:
                continue
            slope[i] = l if abs(l) < abs(r_) else r_
        flux = np.empty(n)
        for i in range(n - 1):
            flux[i] = a[i] * (u[i] + 0.5 * slope[i])
        flux[-1] = flux[-2]
        u[1:] -= 0.1 * (flux[1:] - flux[:-1])
    return (u * u).sum()


@case(lambda r, n: (matrix(r, n), np.array([0.1, 0.6])), SIZES)
def gray_scott_roll(u0, p):
    u = u0.copy()
    v = np.cos(u0) * 0.2
    for _ in range(3):
        lu = np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, 1) + np.roll(u, -1, 1) - 4 * u
        lv = np.roll(v, 1, 0) + np.roll(v, -1, 0) + np.roll(v, 1, 1) + np.roll(v, -1, 1) - 4 * v
        uvv = u * v * v
        u, v = u + 0.1 * (0.2 * lu - uvv + p[0] * (1 - u)), v + 0.1 * (0.1 * lv + uvv - p[1] * v)
    return (u * v).sum()


@case(lambda r, n: (positive(r, n + 3),), SIZES)
def stefan_front_tracking(t0):
    T = t0.copy()
    front = 1
    melted = 0.0
    while front < len(T) - 1 and melted < 50.0:
        for i in range(1, front + 1):
            T[i] += 0.2 * (T[i - 1] - 2 * T[i] + T[i + 1])
        q = T[front] - T[front + 1]
        melted += q * q
        if T[front] > 0.7:
            front += 1
        else:
            T[front] += 0.05
        T[0] *= 0.99
    return melted + T[front] * T[0]


@case(lambda r, n: (matrix(r, n), positive(r, n)), SIZES)
def poisson_mg_two_grid_1d(f, w):
    n = f.shape[1]
    u = np.zeros(n)
    out = 0.0
    for row in f:
        u[:] = 0.0
        for _it in range(3):
            for color in (0, 1):
                for i in range(1 + color, n - 1, 2):
                    u[i] = 0.5 * (u[i - 1] + u[i + 1] + w[i] * row[i])
        out += u @ row
    return out


@case(lambda r, n: (vector(r, n * n).reshape(n, n),), SIZES)
def fast_sweeping_eikonal(s):
    n = len(s)
    d = np.full((n, n), 1e3)
    d[n // 2, n // 2] = 0.0
    f = np.exp(0.3 * s)
    for sx, sy in ((1, 1), (-1, 1), (-1, -1), (1, -1)):
        xs = range(n) if sx > 0 else range(n - 1, -1, -1)
        for i in xs:
            for j in range(n) if sy > 0 else range(n - 1, -1, -1):
                a = min(d[i - 1, j] if i > 0 else 1e3, d[i + 1, j] if i < n - 1 else 1e3)
                b = min(d[i, j - 1] if j > 0 else 1e3, d[i, j + 1] if j < n - 1 else 1e3)
                if a >= 1e3 and b >= 1e3:
                    continue
                if abs(a - b) >= f[i, j]:
                    new = min(a, b) + f[i, j]
                else:
                    new = 0.5 * (a + b + np.sqrt(2 * f[i, j] ** 2 - (a - b) ** 2))
                if new < d[i, j]:
                    d[i, j] = new
    return d.sum()


@case(lambda r, n: (matrix(r, n),), SIZES)
def smith_waterman_traceback(s):
    n, m = s.shape
    h = np.zeros((n + 1, m + 1))
    move = np.zeros((n + 1, m + 1), dtype=np.int64)
    best, bi, bj = 0.0, 0, 0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            cand = (0.0, h[i - 1, j - 1] + s[i - 1, j - 1], h[i - 1, j] - 0.3, h[i, j - 1] - 0.3)
            k = 0
            for q in range(1, 4):
                if cand[q] > cand[k]:
                    k = q
            h[i, j] = cand[k]
            move[i, j] = k
            if h[i, j] > best:
                best, bi, bj = h[i, j], i, j
    score = 0.0
    while move[bi, bj] != 0:
        pos = (bi, bj)
        score += h[pos] ** 2
        if move[pos] == 1:
            bi, bj = bi - 1, bj - 1
        elif move[pos] == 2:
            bi -= 1
        else:
            bj -= 1
    return score


@case(lambda r, n: (positive(r, n),), SIZES)
def matrix_chain_dict(d):
    n = len(d) - 1
    cost = {}
    for i in range(n):
        cost[(i, i)] = 0.0
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            best = np.inf
            for k in range(i, j):
                q = cost[(i, k)] + cost[(k + 1, j)] + d[i] * d[k + 1] * d[j + 1]
                if q < best:
                    best = q
            cost[i, j] = best
    return cost[0, n - 1]


@case(lambda r, n: (positive(r, n), r.integers(0, 4, n)), SIZES)
def counts_then_weights(x, labels):
    sums = {}
    counts = {}
    for v, k in zip(x, labels):
        if k not in sums:
            sums[k] = 0.0
            counts[k] = 0
        sums[k] += v
        counts[k] += 1
    out = 0.0
    for k in sums:
        out += (sums[k] / counts[k]) ** 2 * (k + 1)
    return out


@case(lambda r, n: (positive(r, n), r.integers(0, 6, n)), SIZES)
def defaultdict_of_floats(x, labels):
    acc = collections.defaultdict(float)
    for i in range(len(x)):
        acc[labels[i]] += x[i] * x[i]
    t = 0.0
    for k, v in acc.items():
        t += v * v * (1 + 0.1 * k)
    return t


@case(lambda r, n: (positive(r, n),), SIZES)
def memo_partition(x):
    memo = {}
    n = len(x)
    memo[0] = 1.0
    for i in range(1, n + 1):
        best = -1e9
        for w in (1, 2, 3):
            if i - w in memo:
                best = max(best, memo[i - w] * 0.5 + x[i - 1] * w)
        memo[i] = best
    return memo[n] + memo.get(n + 5, 2.0) * x[0]


@case(lambda r, n: (positive(r, n), r.integers(0, n, n)), SIZES)
def visited_set_walk(x, nxt):
    seen = set()
    at = 0
    total = 0.0
    steps = 0
    while at not in seen:
        seen.add(at)
        total += x[at] ** 2 / (1 + steps)
        at = nxt[at]
        steps += 1
    return total * len(seen)


@case(lambda r, n: (positive(r, n), r.integers(0, 5, n)), SIZES)
def dedupe_with_set(x, k):
    seen = {3}
    t = 1.0
    for i in range(len(x)):
        if k[i] in seen:
            t += 0.1 * x[i]
            continue
        seen.add(k[i])
        t *= x[i]
    return t


@case(lambda r, n: (matrix(r, n),), SIZES)
def bfs_flood_regions(h):
    n = h.shape[0]
    label = -np.ones((n, n), dtype=int)
    regions = 0
    total = 0.0
    for i in range(n):
        for j in range(n):
            if h[i, j] <= 0 or label[i, j] >= 0:
                continue
            stack = [(i, j)]
            label[i, j] = regions
            area = 0.0
            while stack:
                a, b = stack.pop()
                area += h[a, b]
                for da, db in ((0, 1), (1, 0), (0, -1), (-1, 0)):
                    p, q = a + da, b + db
                    if 0 <= p < n and 0 <= q < n and h[p, q] > 0 and label[p, q] < 0:
                        label[p, q] = regions
                        stack.append((p, q))
            total += area**2
            regions += 1
    return total


@case(lambda r, n: (positive(r, n), r.integers(0, n, (2 * n, 2))), SIZES)
def union_find_mst(w, edges):
    n = len(w)
    parent = np.arange(n)
    total = 0.0
    cost = np.zeros(len(edges))
    for e in range(len(edges)):
        a, b = edges[e]
        cost[e] = abs(w[a] - w[b]) + 0.1 * w[a] * w[b]
    order = np.argsort(cost)
    for e in order:
        a, b = edges[e, 0], edges[e, 1]
        while parent[a] != a:
            parent[a] = parent[parent[a]]
            a = parent[a]
        while parent[b] != b:
            b = parent[b]
        if a == b:
            continue
        parent[a] = b
        total += cost[e] ** 2
    return total


@case(lambda r, n: (definite(r, n),), SIZES)
def ldl_bunch_lists(a):
    n = len(a)
    L = [[0.0] * n for _ in range(n)]
    D = [0.0] * n
    for j in range(n):
        D[j] = a[j, j] - sum(L[j][k] ** 2 * D[k] for k in range(j))
        L[j][j] = 1.0
        for i in range(j + 1, n):
            L[i][j] = (a[i, j] - sum(L[i][k] * L[j][k] * D[k] for k in range(j))) / D[j]
    return sum(math.log(d) for d in D)


@case(lambda r, n: (matrix(r, n) + 3 * np.eye(n), vector(r, n)), SIZES)
def gauss_jordan_tuple_index(a0, b0):
    a = np.column_stack((a0, b0))
    n = len(b0)
    for k in range(n):
        piv = k
        for i in range(k + 1, n):
            if abs(a[(i, k)]) > abs(a[(piv, k)]):
                piv = i
        if piv != k:
            for j in range(n + 1):
                a[k, j], a[piv, j] = a[piv, j], a[k, j]
        here = (k, k)
        a[k] = a[k] / a[here]
        for i in range(n):
            if i != k:
                a[i] -= a[i, k] * a[k]
    return (a[:, n] ** 2).sum()


@case(lambda r, n: (matrix(r, n, 3),), SIZES)
def mgs_rows_in_list(a):
    basis = []
    for v in a.T:
        w = v.copy()
        for q in basis:
            w -= (q @ w) * q
        nrm = np.sqrt(w @ w)
        if nrm < 1e-10:
            break
        basis.append(w / nrm)
    t = 0.0
    for k, q in enumerate(basis):
        t += (k + 1) * q[0] * q[1]
    return t


@case(lambda r, n: (matrix(r, n),), SIZES)
def rows_list_written(a):
    n = len(a)
    rows = []
    for _ in range(n):
        rows.append(np.zeros(n))
    for i in range(n):
        for j in range(n):
            rows[i][j] = a[i, j] ** 2
            if i > 0:
                rows[i][j] += 0.5 * rows[i - 1][j]
    for i in range(n):
        rows[i] *= 0.3
    return sum(r.sum() for r in rows)


@case(lambda r, n: (matrix(r, n),), SIZES)
def layers_list_backprop(a):
    acts = [a[0].copy()]
    for i in range(1, len(a)):
        acts.append(np.tanh(acts[-1] * a[i]))
    deltas = [np.zeros(len(a)) for _ in range(len(a))]
    deltas[-1][:] = 1.0
    for i in range(len(a) - 1, 0, -1):
        deltas[i - 1][:] = deltas[i] * (1 - acts[i] ** 2) * a[i]
    return (deltas[0] * acts[-1]).sum()


@case(lambda r, n: (definite(r, n), vector(r, n)), SIZES)
def minres_history_arrays(A, b):
    x = np.zeros(len(b))
    hist = []
    for _it in range(4):
        r_ = b - A @ x
        if np.sqrt(r_ @ r_) < 1e-8:
            break
        Ar = A @ r_
        x = x + (r_ @ Ar) / (Ar @ Ar) * r_
        hist.append(x.copy())
    return hist


@case(lambda r, n: (vector(r, n),), SIZES)
def returns_list_and_number(x):
    out = []
    for i in range(len(x)):
        if x[i] > 0:
            out.append(x[i] ** 2)
    return out, x.sum()


@case(lambda r, n: (definite(r, n),), SIZES)
def qr_iteration_eigen(a0):
    a = a0.copy()
    n = len(a)
    for _sweep in range(3):
        cs = np.zeros(n - 1)
        sn = np.zeros(n - 1)
        for k in range(n - 1):
            r_ = np.hypot(a[k, k], a[k + 1, k])
            cs[k], sn[k] = a[k, k] / r_, a[k + 1, k] / r_
            for j in range(n):
                t1, t2 = a[k, j], a[k + 1, j]
                a[k, j] = cs[k] * t1 + sn[k] * t2
                a[k + 1, j] = -sn[k] * t1 + cs[k] * t2
        for k in range(n - 1):
            for i in range(n):
                t1, t2 = a[i, k], a[i, k + 1]
                a[i, k] = cs[k] * t1 + sn[k] * t2
                a[i, k + 1] = -sn[k] * t1 + cs[k] * t2
    return a.diagonal().prod() ** (1.0 / n)


@case(lambda r, n: (positive(r, 3), r.random(3 * n)), SIZES)
def gillespie_given_draws(k, u):
    a, b = 20, 5
    t = 0.0
    cost = 0.0
    for i in range(0, len(u) - 1, 2):
        r1, r2 = k[0] * a, k[1] * b
        total = r1 + r2 + k[2]
        dt = -np.log(u[i] + 1e-12) / total
        cost += dt * (a - b) ** 2 * 0.01
        t += dt
        pick = u[i + 1] * 2.0
        if pick < 0.9:
            a, b = a - 1, b + 1
        elif pick < 1.6:
            a, b = a + 1, b - 1
        else:
            a += 1
        if t > 1.0:
            break
    return cost + t


@case(lambda r, n: (positive(r, n), positive(r, n)), SIZES)
def event_queue_single_server(arr, srv):
    t = 0.0
    free_at = 0.0
    waits = []
    for i in range(len(arr)):
        t += arr[i]
        start = t if t > free_at else free_at
        waits.append(start - t)
        free_at = start + srv[i]
    m = sum(waits) / len(waits)
    return m + max(waits) + free_at * 0.1


@case(lambda r, n: (vector(r, n), vector(r, n)), SIZES)
def billiard_wall_bounce(p, v):
    total = 0.0
    for i in range(len(p)):
        x, u = p[i] * 0.3, v[i]
        bounces = 0
        t = 2.0
        while t > 0 and bounces < 20:
            if u > 0:
                hit = (1 - x) / u
            elif u < 0:
                hit = (-1 - x) / u
            else:
                break
            if hit >= t:
                x += u * t
                break
            x = 1.0 if u > 0 else -1.0
            u = -0.9 * u
            t -= hit
            bounces += 1
        total += x * x + u * u
    return total


@case(lambda r, n: (matrix(r, n, 2), positive(r, n)), SIZES)
def pic_charge_deposit(pos, q):
    cells = 7
    rho = np.zeros(cells)
    e = np.zeros(cells)
    x = (pos[:, 0] * 0.3) % 1.0 * cells
    v = pos[:, 1].copy()
    for _step in range(2):
        rho[:] = 0.0
        i = np.floor(x).astype(int) % cells
        f = x - np.floor(x)
        np.add.at(rho, i, q * (1 - f))
        np.add.at(rho, (i + 1) % cells, q * f)
        e[0] = 0.0
        for j in range(1, cells):
            e[j] = e[j - 1] + 0.1 * (rho[j] - q.mean())
        v += 0.1 * e[i]
        x = x + 0.05 * v
    return (v * v).sum() + (rho * rho).sum()


@case(lambda r, n: (vector(r, n), r.integers(0, 4, n)), SIZES)
def ufunc_at_maximum(x, k):
    top = np.full(4, -5.0)
    low = np.full(4, 5.0)
    np.maximum.at(top, k, x)
    np.minimum.at(low, k, x)
    s = np.ones(4)
    np.subtract.at(s, k, 0.1 * x)
    np.multiply.at(s, k, 1 + 0.1 * x)
    np.divide.at(s, k, 2.0)
    return (top * s).sum() + (low**2).sum()


@case(lambda r, n: (vector(r, n), r.integers(0, 4, (2, n))), SIZES)
def add_at_tuple_index(x, k):
    h = np.zeros((4, 4))
    np.add.at(h, (k[0], k[1]), x)
    np.add.at(h, (0, 1), x[0])
    np.add.at(h, 2, x[1])
    np.add.at(h, (slice(None), 3), x[2])
    np.add.at(h[1], k[0], x * x)
    return (h**2).sum()


@case(lambda r, n: (vector(r, 3 * n).reshape(n, 3), r.integers(0, n, (4, 2))), SIZES)
def cloth_springs_at(p0, springs):
    p = p0.copy()
    v = np.zeros_like(p)
    for _step in range(2):
        f = np.zeros_like(p)
        d = p[springs[:, 0]] - p[springs[:, 1]]
        l = np.sqrt((d**2).sum(axis=1) + 0.1)
        g = (l - 0.5)[:, None] * d / l[:, None]
        np.subtract.at(f, springs[:, 0], g)
        np.add.at(f, springs[:, 1], g)
        v += 0.1 * f
        p += 0.1 * v
    return (p * p).sum()


@case(lambda r, n: (positive(r, n), np.array([0.95, 0.3])), SIZES)
def huggett_grid_policy(income, par):
    len(income)
    grid = np.linspace(0.1, 2.0, 6)
    V = np.zeros((6, 2))
    pol = np.zeros((6, 2), dtype=np.intp)
    for _it in range(4):
        W = np.empty_like(V)
        for s in range(2):
            for a in range(6):
                best = -np.inf
                for b in range(6):
                    cons = income[s] + 1.02 * grid[a] - grid[b]
                    if cons <= 0:
                        break
                    u = cons ** (1 - par[1]) / (1 - par[1])
                    val = u + par[0] * (0.7 * V[b, s] + 0.3 * V[b, 1 - s])
                    if val > best:
                        best = val
                        pol[a, s] = b
                W[a, s] = best
        if np.max(np.abs(W - V)) < 1e-9:
            break
        V = W
    return V[pol[3, 0], 1] + V.mean()


@case(lambda r, n: (vector(r, n),), SIZES)
def irr_bisection(cash):
    flows = np.concatenate((np.array([-5.0]), np.abs(cash) + 0.5))
    lo, hi = 0.0, 5.0

    def npv(rate):
        total = 0.0
        for t, f in enumerate(flows):
            total += f / (1 + rate) ** t
        return total

    for _ in range(60):
        mid = 0.5 * (lo + hi)
        if npv(mid) > 0:
            lo = mid
        else:
            hi = mid
    x = lo
    d = 0.0
    for t, f in enumerate(flows):
        d -= t * f / (1 + x) ** (t + 1)
    return x - npv(x) / d


@case(lambda r, n: (positive(r, n), positive(r, n)), SIZES)
def order_book_match(bids, asks):
    b = np.sort(bids)[::-1].copy()
    a = np.sort(asks).copy()
    i = j = 0
    traded = 0.0
    vb = b[0] * 1.0
    va = 1.0
    while i < len(b) and j < len(a):
        if b[i] < a[j]:
            break
        q = min(vb, va)
        traded += q * (b[i] + a[j]) / 2
        vb -= q
        va -= q
        if vb <= 1e-12:
            i += 1
            if i < len(b):
                vb = b[i]
        if va <= 1e-12:
            j += 1
            va = 1.0
    return traded + vb * 0.1


@case(lambda r, n: (positive(r, n), positive(r, 2)), SIZES)
def tax_brackets(income, rates):
    cuts = ((0.0, 0.6), (0.6, 1.0), (1.0, 10.0))
    total = 0.0
    for y in income:
        due = 0.0
        for k, (lo, hi) in enumerate(cuts):
            if y <= lo:
                break
            due += (min(y, hi) - lo) * rates[min(k, 1)] * (1 + k)
        total += (y - due) ** 2
    return total


@case(lambda r, n: (positive(r, n),), SIZES)
def amortization_table(p):
    rows = []
    bal = p.sum()
    for k in range(len(p)):
        interest = bal * 0.01
        pay = p[k] + interest
        bal -= p[k] * 0.5
        rows.append((k, interest, pay, bal))
    return sum(r[1] * r[2] for r in rows) + rows[-1][3]


@case(lambda r, n: (positive(r, 3), positive(r, n)), SIZES)
def sir_age_groups_policy(par, pop):
    n = len(pop)
    S, I, R = pop.copy(), 0.01 * pop, np.zeros(n)
    C = np.exp(-0.3 * np.abs(np.subtract.outer(np.arange(n), np.arange(n))))
    closed = 0
    peak = 0.0
    for _day in range(10):
        beta = par[0] * (0.4 if closed > 0 else 1.0)
        lam = beta * (C @ (I / pop)) / n
        new = np.minimum(lam * S, S)
        rec = par[1] * 0.2 * I
        S -= new
        I += new - rec
        R += rec
        if I.sum() > 0.08 * pop.sum() and closed == 0:
            closed = 3
        elif closed > 0:
            closed -= 1
        peak = max(peak, I.sum())
    return peak + R @ R


@case(lambda r, n: (positive(r, n), r.integers(0, n, (3 * n, 2))), SIZES)
def contact_network_outbreak(susc, contacts):
    n = len(susc)
    p = np.zeros(n)
    p[0] = 0.9
    queue = collections.deque([0])
    done = {0: True}
    while queue:
        a = queue.popleft()
        for u, v in contacts:
            if u == a and v not in done:
                p[v] = 1 - (1 - p[v]) * (1 - 0.3 * p[a] * susc[v])
                done[v] = True
                queue.append(v)
            elif u == a:
                p[v] = 1 - (1 - p[v]) * (1 - 0.05 * p[a] * susc[v])
    return (p * susc).sum()


@case(lambda r, n: (positive(r, n), positive(r, 2)), SIZES)
def renewal_equation_rt(inc, par):
    n = len(inc)
    w = np.zeros(n)
    for s in range(1, n):
        w[s] = s ** par[0] * np.exp(-par[1] * s)
    w /= w.sum()
    ll = 0.0
    for t in range(1, n):
        lam = 0.0
        for s in range(1, t + 1):
            lam += inc[t - s] * w[s]
        if lam < 1e-8:
            continue
        ll += inc[t] * np.log(lam) - lam - math.lgamma(2.0)
    return ll


@case(lambda r, n: (np.sort(r.random(n) * 4) + np.arange(n), vector(r, n), vector(r, 4)), SIZES)
def akima_eval(x, y, q):
    n = len(x)
    m = np.zeros(n + 3)
    for i in range(n - 1):
        m[i + 2] = (y[i + 1] - y[i]) / (x[i + 1] - x[i])
    m[1] = 2 * m[2] - m[3]
    m[0] = 2 * m[1] - m[2]
    m[n + 1] = 2 * m[n] - m[n - 1]
    m[n + 2] = 2 * m[n + 1] - m[n]
    t = np.zeros(n)
    for i in range(n):
        w1, w2 = abs(m[i + 3] - m[i + 2]), abs(m[i + 1] - m[i])
        t[i] = (w1 * m[i + 1] + w2 * m[i + 2]) / (w1 + w2) if w1 + w2 > 1e-9 else 0.5 * (m[i + 1] + m[i + 2])
    total = 0.0
    for z in q:
        z = abs(z) * 2 + x[0]
        i = 0
        while i < n - 2 and x[i + 1] < z:
            i += 1
        h = x[i + 1] - x[i]
        s = (z - x[i]) / h
        total += (
            y[i] * (1 + 2 * s) * (1 - s) ** 2
            + y[i + 1] * s * s * (3 - 2 * s)
            + h * (t[i] * s * (1 - s) ** 2 - t[i + 1] * s * s * (1 - s))
        )
    return total


@case(lambda r, n: (vector(r, n + 3), r.random(4)), SIZES)
def uniform_bspline_basis_dict(ctrl, u):
    cache = {}
    total = 0.0
    for q in u:
        k = int(q * (len(ctrl) - 3))
        s = q * (len(ctrl) - 3) - k
        key = (k, 0)
        if key not in cache:
            cache[key] = ctrl[k] * 0.1
        b = ((1 - s) ** 3 / 6, (3 * s**3 - 6 * s * s + 4) / 6, (-3 * s**3 + 3 * s * s + 3 * s + 1) / 6, s**3 / 6)
        for j in range(4):
            total += b[j] * ctrl[k + j]
        total += cache[key]
    return total


@case(lambda r, n: (matrix(r, n, 2),), SIZES)
def catmull_rom_arclength(p):
    pts = []
    for i in range(1, len(p) - 2):
        for s in (0.0, 0.25, 0.5, 0.75):
            pts.append(
                0.5
                * (
                    (2 * p[i])
                    + (p[i + 1] - p[i - 1]) * s
                    + (2 * p[i - 1] - 5 * p[i] + 4 * p[i + 1] - p[i + 2]) * s * s
                    + (3 * p[i] - p[i - 1] - 3 * p[i + 1] + p[i + 2]) * s**3
                )
            )
    total = 0.0
    for a, b in itertools.pairwise(pts):
        d = b - a
        total += np.sqrt(d @ d + 1e-6)
    return total


@case(lambda r, n: (vector(r, n), positive(r, n)), SIZES)
def planar_arm_jacobian_dls(q0, l):
    q = q0.copy()
    n = len(q)
    target = np.array([1.0, 0.5])
    for _it in range(3):
        th = np.cumsum(q)
        J = np.zeros((2, n))
        tip = np.zeros(2)
        for i in range(n):
            tip += l[i] * np.array([np.cos(th[i]), np.sin(th[i])])
        for j in range(n):
            for i in range(j, n):
                J[0, j] -= l[i] * np.sin(th[i])
                J[1, j] += l[i] * np.cos(th[i])
        e = target - tip
        if np.linalg.norm(e) < 1e-3:
            break
        q += J.T @ np.linalg.solve(J @ J.T + 0.5 * np.eye(2), e)
    return (q * q).sum()


@case(lambda r, n: (matrix(r, n, 3),), SIZES)
def imu_complementary(g):
    q = np.array([1.0, 0, 0, 0])
    out = []
    for w in g:
        wx, wy, wz = w * 0.1
        O = np.array([[0, -wx, -wy, -wz], [wx, 0, wz, -wy], [wy, -wz, 0, wx], [wz, wy, -wx, 0]])
        q = q + 0.5 * O @ q
        q /= np.sqrt(q @ q)
        out.append(2 * (q[0] * q[1] + q[2] * q[3]))
    return np.array(out)


@case(lambda r, n: (matrix(r, n, 2), positive(r, 2)), SIZES)
def ekf_slam_landmark_dict(obs, par):
    lm = {}
    x = np.zeros(2)
    total = 0.0
    for t in range(len(obs)):
        x = x + 0.1 * par
        idx = t % 3
        z = obs[t] + x
        if idx not in lm:
            lm[idx] = z[0] * 1.0
        else:
            innov = z[0] - lm[idx]
            lm[idx] += 0.4 * innov
            total += innov**2
    return total + sum(lm.values())


@case(lambda r, n: (vector(r, 2 * n),), SIZES)
def contact_complementarity_pgs(b):
    n = len(b) // 2
    lam = np.zeros(2 * n)
    for _it in range(4):
        for i in range(n):
            lam[2 * i] = max(0.0, lam[2 * i] - 0.5 * (lam[2 * i] * 2 + b[2 * i] + (0.3 * lam[2 * i - 2] if i else 0.0)))
            bound = 0.5 * lam[2 * i]
            t = lam[2 * i + 1] - 0.4 * (lam[2 * i + 1] + b[2 * i + 1])
            lam[2 * i + 1] = bound if t > bound else (-bound if t < -bound else t)
    return (lam * lam).sum() + lam.sum()


@case(lambda r, n: (vector(r, n), vector(r, n)), SIZES)
def dubins_segments(d, k):
    x = y = th = 0.0
    path = [(0.0, 0.0)]
    for s, bend in zip(d, k):
        s = abs(s)
        if abs(bend) < 0.2:
            x += s * np.cos(th)
            y += s * np.sin(th)
        else:
            x += (np.sin(th + s * bend) - np.sin(th)) / bend
            y -= (np.cos(th + s * bend) - np.cos(th)) / bend
            th += s * bend
        if th > np.pi:
            th -= 2 * np.pi
        path.append((x, y))
    return sum((a - c2) ** 2 + (b - d2) ** 2 for (a, b), (c2, d2) in zip(path, path[2:]))


@dataclasses.dataclass
class Edge:
    a: int
    b: int
    w: float


@case(lambda r, n: (positive(r, n), r.integers(0, n, (n, 2))), SIZES)
def list_of_dataclasses(w, e):
    edges = [Edge(int(e[i, 0]), int(e[i, 1]), w[i]) for i in range(len(w))]
    deg = np.zeros(len(w))
    for x in edges:
        deg[x.a] += x.w
        deg[x.b] += x.w * 0.5
    return (deg**2).sum()


@case(lambda r, n: (positive(r, n), r.integers(0, 3, (2 * n, 2))), SIZES)
def sparse_matrix_dict_of_pairs(v, ij):
    m = {}
    for k in range(len(v)):
        i, j = int(ij[k, 0]), int(ij[k, 1])
        m[i, j] = m.get((i, j), 0.0) + v[k]
    y = np.zeros(3)
    x = v[:3]
    for (i, j), a in m.items():
        y[i] += a * x[j]
    return y @ y + len(m)


@case(lambda r, n: (positive(r, n), r.integers(0, 3, n)), SIZES)
def dict_of_lists_grouped(v, k):
    groups = {}
    for i in range(len(v)):
        if k[i] not in groups:
            groups[k[i]] = []
        groups[k[i]].append(v[i])
    t = 0.0
    for key in groups:
        m = sum(groups[key]) / len(groups[key])
        for x in groups[key]:
            t += (x - m) ** 2 * (key + 1)
    return t


@case(lambda r, n: (positive(r, n), r.integers(0, 5, n)), SIZES)
def counter_class_most_common(v, k):
    cnt = collections.Counter()
    for i in range(len(v)):
        cnt[k[i]] += 1
    t = 0.0
    for i in range(len(v)):
        t += v[i] ** cnt[k[i]]
    return t


@case(lambda r, n: (vector(r, n),), SIZES)
def set_of_primes_sum(x):
    primes = set()
    for i in range(2, len(x)):
        ok = True
        for p in range(2, i):
            if p in primes and i % p == 0:
                ok = False
                break
        if ok:
            primes.add(i)
    return sum(x[i] ** 2 for i in range(len(x)) if i in primes)


@case(lambda r, n: (vector(r, n),), SIZES)
def while_true_break_state(x):
    i, acc, k = 0, 1.0, 0
    while True:
        acc = acc * np.cos(x[i]) + x[i]
        i = (i * 2 + 1) % len(x)
        k += 1
        if k > 2 * len(x) or acc > 3.0:
            break
    return acc * k


@case(lambda r, n: (vector(r, n),), SIZES)
def list_of_lists_of_floats_ragged(x):
    tri = [[1.0]]
    for i in range(1, len(x)):
        prev = tri[-1]
        row = [1.0]
        for j in range(1, i):
            row.append(prev[j - 1] * x[i] + prev[j])
        row.append(x[i])
        tri.append(row)
    return sum(tri[-1])


@case(lambda r, n: (matrix(r, n), r.integers(0, n, n)), SIZES)
def fancy_rows_overwritten(a, idx):
    b = a.copy()
    b[idx] = a[idx[::-1]] * 2
    b[idx, np.arange(len(idx))] += b[0]
    b[:, idx] -= 0.1
    return (b * a).sum()


@case(lambda r, n: (vector(r, n),), SIZES)
def integer_bit_tricks(x):
    n = len(x)
    y = x.copy()
    mask = 0b1011
    for i in range(n):
        j = (i ^ mask) & 7
        if j < n:
            y[i] += 0.5 * y[j]
        mask = ((mask << 1) | (mask >> 3)) & 15
    return (y * y).sum()


@case(lambda r, n: (vector(r, n),), SIZES)
def try_except_value_error(x):
    def safe_log(v):
        if v <= 0:
            raise ValueError("negative")
        return np.log(v)

    t = 0.0
    for v in x:
        try:
            t += safe_log(v)
        except ValueError:
            t -= v * v
    return t


@case(lambda r, n: (vector(r, n),), SIZES)
def arrays_in_tuple_swapped(x):
    cur, nxt = x.copy(), np.zeros_like(x)
    for _it in range(5):
        for i in range(1, len(x) - 1):
            nxt[i] = 0.5 * (cur[i - 1] + cur[i + 1])
        nxt[0], nxt[-1] = cur[-1], cur[0]
        cur, nxt = nxt, cur
    return (cur * nxt).sum()


@case(lambda r, n: (matrix(r, n),), SIZES)
def argmin_row_reduction_hungarian(a0):
    a = a0.copy()
    n = len(a)
    a -= a.min(axis=1, keepdims=True)
    a -= a.min(axis=0)
    used = np.zeros(n, dtype=bool)
    total = 0.0
    for i in range(n):
        j = int(np.argmin(np.where(used, np.inf, a[i])))
        used[j] = True
        total += a0[i, j] ** 2 + a[i, j]
    return total


@case(lambda r, n: (vector(r, n),), SIZES)
def early_return_in_nested(x):
    for i in range(len(x)):
        for j in range(i):
            if x[i] * x[j] > 1.2:
                return x[i] ** 2 * x[j]
    return x.sum()


@case(lambda r, n: (matrix(r, n),), SIZES)
def view_of_view_of_transpose(a):
    b = a.copy()
    t = b.T
    u = t[1:]
    v = u[:, ::2]
    v *= 2.0
    v[0] += a[0, : v.shape[1]]
    u[-1, :] = t[0] * a[0]
    return (b * a).sum()


def keyed(r, n):
    return positive(r, n), r.integers(-4, 4, n)


@case(keyed, SIZES)
def d_grown(x, k):
    d = {}
    for i in range(len(x)):
        d[i * 7 - 3] = x[i] * d.get((i - 1) * 7 - 3, 1.0)
    return sum(d.values()) + d[4]


@case(keyed, SIZES)
def d_tuple_negative(x, k):
    d = {}
    for i in range(len(x)):
        for j in range(3):
            d[(k[i], -j)] = d.get((k[i], -j), 0.5) * 0.5 + x[i] * (j + 1)
    t = 0.0
    for (a, b), v in d.items():
        t += v * v * (a - b)
    return t


@case(keyed, SIZES)
def d_deleted(x, k):
    d = {}
    t = 0.0
    for i in range(len(x)):
        d[k[i]] = x[i]
        if i % 3 == 2:
            if k[i - 1] in d:
                del d[k[i - 1]]
        if i % 4 == 3 and k[i] in d:
            t += d.pop(k[i]) ** 2
    for q in d:
        t += d[q] * (q + 5)
    return t + len(d)


@case(keyed, SIZES)
def d_setdefault_lists(x, k):
    g = {}
    for i in range(len(x)):
        g.setdefault(k[i], []).append(x[i])
    t = 0.0
    for key, items in g.items():
        t += items[0] * items[-1] * len(items) + key
    return t


@case(keyed, SIZES)
def d_default_list(x, k):
    g = collections.defaultdict(list)
    for i in range(len(x)):
        g[k[i]].append(x[i] * x[i])
    return sum(sum(v) * (q + 5) for q, v in g.items())


@case(keyed, SIZES)
def d_level_sync(x, k):
    cur = {0: 1.0}
    for i in range(len(x)):
        nxt = {}
        for s, v in cur.items():
            for step in (0, 1):
                q = (s + step * abs(k[i])) % 5
                nxt[q] = nxt.get(q, 0.0) + v * (x[i] if step else 0.5)
        cur = nxt
    t = 0.0
    for s in sorted(cur):
        t += cur[s] * (s + 1)
    return t


@case(keyed, SIZES)
def d_normalized_in_loop(x, k):
    p = {}
    for i in range(len(x)):
        p[k[i]] = p.get(k[i], 0.0) + x[i]
    total = sum(p.values())
    for q in p:
        p[q] /= total
    for q in p:
        p[q] = p[q] * p[q] + p[k[0]]
    return max(p.values()) + sum(v * (a + 5) for a, v in p.items())


@case(keyed, SIZES)
def d_key_error(x, k):
    d = {}
    for i in range(len(x)):
        d[k[i]] = x[i]
    try:
        return d[100]
    except KeyError:
        return x[0] ** 2


@case(keyed, SIZES)
def d_counter_missing(x, k):
    counts = collections.Counter()
    t = 0.0
    for i in range(len(x)):
        t += x[i] * counts[k[i]]
        if i % 2:
            counts[k[i]] += 2
    return t + len(counts)


@case(keyed, SIZES)
def d_alias_function(x, k):
    def add(m, key, v):
        m[key] = m.get(key, 0.0) + v

    d = {}
    e = d
    for i in range(len(x)):
        add(e, k[i], x[i] ** 2)
    return sum(v * (q + 5) for q, v in d.items())


@case(keyed, SIZES)
def d_static_and_computed(x, k):
    d = {0: 1.0, 1: x[0]}
    if x[0] > 1.0:
        d[2] = x[1] * 2
    for i in range(len(x)):
        if k[i] in d:
            d[k[i]] += x[i]
    return d[0] * d[1] + len(d)


@case(keyed, SIZES)
def d_comp(x, k):
    d = {i * i: x[i] * 2 for i in range(len(x)) if x[i] > 0.8}
    s = {int(q) for q in k}
    t = 0.0
    for i in range(len(x)):
        if i in d:
            t += d[i] ** 2
        if i - 2 in s:
            t += 0.1 * x[i]
    return t + len(s) * x[0]


@case(keyed, SIZES)
def d_overwritten_values(x, k):
    d = collections.defaultdict(float)
    t = 0.0
    for i in range(len(x)):
        d[k[i]] = d[k[i]] * d[k[i]] * 0.1 + x[i]
        t += d[k[i]] ** 2
        d[k[i]] *= 0.5
    return t


@case(keyed, SIZES)
def s_discard(x, k):
    s = set(range(5))
    t = 0.0
    for i in range(len(x)):
        if k[i] in s:
            s.remove(k[i])
            t += x[i] ** 2
        else:
            s.discard(k[i] - 1)
            s.add(k[i])
            t += x[i] * 0.1
    return t * len(s) + sum(s) + max(s)


@case(keyed, SIZES)
def s_of_tuples_cleared(x, k):
    s = set()
    t = 1.0
    for i in range(1, len(x)):
        p = (k[i - 1], k[i])
        if p in s or (p[1], p[0]) in s:
            t *= 1 + 0.1 * x[i]
        s.add(p)
        if len(s) > 6:
            s.clear()
    return t


@case(keyed, SIZES)
def s_display_then_add(x, k):
    s = {1, 2}
    t = 0.0
    for i in range(len(x)):
        if k[i] not in s:
            t += x[i] ** 2
        if i == 2:
            s.add(k[2])
    return t


@case(keyed, SIZES)
def s_from_array(x, k):
    s = set(k)
    t = 0.0
    for q in sorted(s):
        t = t * 0.5 + x[q % len(x)] * q
    return t


@case(keyed, SIZES)
def d_as_int_counts_index(x, k):
    pos = {}
    for i in range(len(k)):
        pos[int(k[i])] = i
    t = 0.0
    for q in pos:
        t += x[pos[q]] ** 2
    return t


@case(keyed, SIZES)
def d_memo_function(x, k):
    memo = {}

    def cost(i):
        if i in memo:
            return memo[i]
        memo[i] = x[i % len(x)] ** 2
        return memo[i]

    t = 0.0
    for i in range(2 * len(x)):
        t += cost((i * 3) % 7)
    return t * len(memo)


@case(keyed, SIZES)
def d_early_return(x, k):
    seen = {}
    for i in range(len(x)):
        if k[i] in seen:
            return x[i] * seen[k[i]]
        seen[k[i]] = x[i] ** 2
    return x.sum()


@case(lambda r, n: (matrix(r, n, 3),), SIZES)
def l_append_then_alias_write(a):
    rows = []
    for i in range(len(a)):
        v = a[i] * 2
        rows.append(v)
    for r in rows:
        r *= r
    rows[0][1] = a[1, 1]
    return sum((r * a[0]).sum() for r in rows)


@case(lambda r, n: (matrix(r, n, 3),), SIZES)
def l_source_used_after(a):
    rows = []
    v = np.zeros(3)
    for i in range(len(a)):
        v = v * 0.5 + a[i]
        rows.append(v)
        rows[i][0] = 1.0
    return sum(r @ r for r in rows) + v.sum()


@case(lambda r, n: (matrix(r, n, 3),), SIZES)
def l_same_array_twice(a):
    v = a[0] * 1.0
    rows = []
    for _i in range(len(a)):
        rows.append(v)
    rows[0][0] = 5.0
    return sum(r.sum() for r in rows)


@case(lambda r, n: (matrix(r, n, 3),), SIZES)
def l_argument_row(a):
    b = a.copy()
    rows = []
    for i in range(len(b)):
        rows.append(b[i])
    rows[1][0] = 7.0
    rows[0] += b[1]
    return (b * b).sum()


@case(lambda r, n: (matrix(r, n, 3),), SIZES)
def l_kept_row(a):
    rows = [np.zeros(3) for _ in range(len(a))]
    last = rows[0]
    for i in range(1, len(a)):
        rows[i][:] = last + a[i]
        last[1] += a[i, 0]
        last = rows[i]
    return sum(r @ a[0] for r in rows)


@case(lambda r, n: (matrix(r, n, 3),), SIZES)
def l_two_lists_share(a):
    p, q = [], []
    for i in range(len(a)):
        v = a[i] * 1.0
        p.append(v)
        q.append(v)
    p[0][0] = 3.0
    return sum(x @ x for x in q)


@case(lambda r, n: (matrix(r, n, 3),), SIZES)
def l_slice_written(a):
    rows = [a[i] * 1.0 for i in range(len(a))]
    for r in rows[1:]:
        r[0] = 2.0 * a[0, 0]
    return sum(x @ x for x in rows)


@case(lambda r, n: (matrix(r, n, 3),), SIZES)
def l_matrices(a):
    ms = []
    for i in range(len(a)):
        ms.append(np.outer(a[i], a[i]))
    for i in range(1, len(ms)):
        ms[i][0, :] += ms[i - 1][1]
        ms[i][1:, 0] *= 0.5
    return sum(m.sum() * m[0, 0] for m in ms)


@case(lambda r, n: (matrix(r, n, 3),), SIZES)
def l_conditional_write(a):
    rows = []
    for i in range(len(a)):
        rows.append(np.cos(a[i]))
        if a[i, 0] > 0 and i > 0:
            rows[i - 1] -= rows[i] * a[i, 1]
        elif i > 1:
            rows[i - 2][2] = a[i, 2]
    return sum((k + 1) * r @ r for k, r in enumerate(rows))


@case(lambda r, n: (matrix(r, n, 3),), SIZES)
def l_row_returned(a):
    rows = []
    for i in range(len(a)):
        rows.append(a[i] * a[0])
    for r in rows:
        r[0] *= 2
    return rows[-1]


@case(lambda r, n: (matrix(r, n, 3),), SIZES)
def l_result_rows(a):
    rows = [np.zeros(3)]
    for i in range(1, len(a)):
        rows.append(rows[-1] * 0.5 + a[i])
        rows[-1][0] = a[0, 0]
    return rows


@case(lambda r, n: (vector(r, n),), SIZES)
def l_result_pairs(x):
    out = []
    for i in range(len(x)):
        if x[i] > -9:
            out.append((x[i] ** 2, i))
    return out, x.sum()


@case(lambda r, n: (vector(r, n),), SIZES)
def l_result_lists(x):
    out = []
    for i in range(len(x)):
        out.append([x[i], x[i] ** 2, 1.0])
    return out


@case(lambda r, n: (matrix(r, n, 3), r.integers(0, n, (6,))), SIZES)
def at_rows_broadcast(a, k):
    t = a.copy()
    np.add.at(t, k, a[0])
    np.subtract.at(t, k, a[:6] if len(a) >= 6 else a[0])
    np.add.at(t, k[:3], a[:3])
    np.add.at(t, (k, 1), 2.0)
    np.multiply.at(t[:, 0], k, t[k, 0])
    np.add.at(t, k.reshape(2, 3), 1.0)
    return (t * a).sum()


@case(lambda r, n: (vector(r, n), r.integers(0, n, n)), SIZES)
def at_self(x, k):
    t = x.copy()
    np.add.at(t, k, t)
    np.maximum.at(t, k, t[::-1])
    np.add.at(t, -1, x[0])
    h = np.zeros(len(x), dtype=int)
    np.add.at(h, k, 1)
    return (t * h * x).sum()


@case(keyed, SIZES)
def d_sets_of_two_steps(x, k):
    seen, t = set(), 0.0
    for i in range(len(x)):
        fresh = set()
        for q in range(3):
            if (k[i] + q) % 4 in seen:
                t += x[i]
            fresh.add((k[i] + q) % 4)
        seen = fresh
    return t * t


@case(keyed, SIZES)
def d_swapped(x, k):
    first, second = {}, {}
    for i in range(len(x)):
        first[k[i]] = x[i]
        first, second = second, first
        if i > 2 and k[i] in second:
            second[k[i]] *= x[i - 1]
    return sum(first.values()) * 3 + sum(second.values())


@case(lambda r, n: (vector(r, n),), SIZES)
def known_values_until_one_fits(x):
    t = 0.0
    for v in x:
        for low, scale in ((1.0, 2.0), (0.0, 3.0), (-1.0, 0.5)):
            if v > low:
                t += scale * v * v
                break
            t -= 0.1 * v
        else:
            t *= 0.9
    return t


@case(lambda r, n: (vector(r, n),), SIZES)
def known_steps_with_returns(x):
    for i in range(len(x)):
        for step in (1, 2):
            if i + step < len(x) and x[i] * x[i + step] > 0.8:
                return x[i] ** 2 * step
            if x[i] < -1.5:
                continue
            if x[i] > 1.9:
                break
    return x.sum()
