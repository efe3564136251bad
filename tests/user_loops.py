"""Programs of users with loops, and their arguments: dynamic programming, filters, solvers, networks."""

from __future__ import annotations

import math

import numpy as np
from registering import registering

import viewgrad as vg

LOOPS = {}
given = registering(LOOPS)


# ---- dynamic programming
@given(lambda r, n: [r.random(n), r.random(()) + 0.5])
def soft_knapsack(values, tau):
    weights = [1 + (i * 3) % 4 for i in range(len(values))]
    cap = 2 * len(values)
    best = vg.zeros(cap + 1)
    for i, w in enumerate(weights):
        for c in range(cap, w - 1, -1):
            best[c] = tau * np.logaddexp(best[c] / tau, (best[c - w] + values[i]) / tau)
    return best[cap] * 1.0


@given(lambda r, n: [r.normal(size=(n, 3)), 0.3 * r.normal(size=(3, 3, 3))])
def soft_cky(lex, rules):
    n = lex.shape[0]
    S = 3
    chart = vg.full((n, n, S), -1e3)
    for i in range(n):
        chart[i, i] = lex[i]
    for width in range(2, n + 1):
        for i in range(n - width + 1):
            j = i + width - 1
            for k in range(i, j):
                for A in range(S):
                    m = rules[A] + chart[i, k][:, None] + chart[k + 1, j][None, :]
                    chart[i, j, A] = np.logaddexp(chart[i, j, A], np.log(np.exp(m).sum()))
    return chart[0, n - 1].sum()


@given(lambda r, n: [r.normal(size=(n, n + 2)), np.array([1.3, 0.4])])
def gotoh(sim, gap):
    n, m = sim.shape
    M = vg.full((n + 1, m + 1), -50.0)
    X = vg.full((n + 1, m + 1), -50.0)
    Y = vg.full((n + 1, m + 1), -50.0)
    M[0, 0] = 0.0
    for i in range(1, n + 1):
        X[i, 0] = -gap[0] - (i - 1) * gap[1]
    for j in range(1, m + 1):
        Y[0, j] = -gap[0] - (j - 1) * gap[1]
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            M[i, j] = sim[i - 1, j - 1] + np.logaddexp(np.logaddexp(M[i - 1, j - 1], X[i - 1, j - 1]), Y[i - 1, j - 1])
            X[i, j] = np.logaddexp(M[i - 1, j] - gap[0], X[i - 1, j] - gap[1])
            Y[i, j] = np.logaddexp(M[i, j - 1] - gap[0], Y[i, j - 1] - gap[1])
    return np.logaddexp(np.logaddexp(M[n, m], X[n, m]), Y[n, m])


@given(lambda r, n: [r.normal(size=(3,)), r.normal(size=(3, 3)), r.normal(size=(n, 3))])
def hmm_forward_backward(pi, A, logB):
    T, K = logB.shape
    A = np.exp(A)
    A = A / A.sum(axis=1, keepdims=True)
    B = np.exp(logB)
    alpha = vg.zeros((T, K))
    c = vg.zeros(T)
    beta = vg.zeros((T, K))
    p = np.exp(pi)
    alpha[0] = p / p.sum() * B[0]
    c[0] = alpha[0].sum()
    alpha[0] /= c[0]
    for t in range(1, T):
        alpha[t] = (alpha[t - 1] @ A) * B[t]
        c[t] = alpha[t].sum()
        alpha[t] /= c[t]
    beta[T - 1] = 1.0
    for t in range(T - 2, -1, -1):
        beta[t] = A @ (B[t + 1] * beta[t + 1]) / c[t + 1]
    gamma = alpha * beta
    return np.log(c).sum() + (gamma * gamma).sum()


@given(lambda r, n: [r.normal(size=(n, n))])
def longest_common_soft(s):
    n, m = s.shape
    prev = [0.0] * (m + 1)
    for i in range(n):
        cur = [0.0]
        for j in range(m):
            cur.append(np.maximum(np.maximum(prev[j + 1], cur[j]), prev[j] + s[i, j]))
        prev = cur
    return prev[m] * 1.0


@given(lambda r, n: [r.random((n, n)) + 0.1])
def floyd_warshall(w):
    d = w * 1.0
    n = d.shape[0]
    for i in range(n):
        d[i, i] = 0.0
    for k in range(n):
        for i in range(n):
            for j in range(n):
                d[i, j] = np.minimum(d[i, j], d[i, k] + d[k, j])
    return (d * d).sum()


@given(lambda r, n: [r.random((n, n)) + 0.1])
def floyd_rows(w):
    d = w.copy()
    for k in range(len(d)):
        d[...] = np.minimum(d, d[:, k : k + 1] + d[k : k + 1, :])
    return d.sum()


@given(lambda r, n: [r.random(n) + 0.5, r.random(n) + 0.2])
def optimal_bst(p, q):
    n = len(p)
    e = vg.zeros((n + 2, n + 1))
    w = vg.zeros((n + 2, n + 1))
    for i in range(1, n + 1):
        e[i, i - 1] = q[i - 1]
        w[i, i - 1] = q[i - 1]
    for l in range(1, n + 1):
        for i in range(1, n - l + 2):
            j = i + l - 1
            w[i, j] = w[i, j - 1] + p[j - 1] + q[j - 1]
            b = e[i, i - 1] + e[i + 1, j]
            for r in range(i + 1, j + 1):
                c = e[i, r - 1] + (e[r + 1, j] if r < n + 1 else 0.0)
                b = np.minimum(b, c)
            e[i, j] = b + w[i, j]
    return e[1, n] * 1.0


# ---- filters
@given(lambda r, n: [np.array([0.1, 0.3]), r.normal(size=n)])
def kalman_gaps_matrix(q, y):
    F = vg.Tensor([[1.0, 1.0], [0.0, 1.0]])
    H = np.array([[1.0, 0.0]])
    m = vg.zeros(2)
    Pm = vg.eye(2)
    ll = 0.0
    for t in range(len(y)):
        m = F @ m
        Pm = F @ Pm @ F.T + q[0] * np.eye(2)
        if t % 4 == 2:
            continue
        S = (H @ Pm @ H.T)[0, 0] + q[1]
        K = (Pm @ H.T)[:, 0] / S
        e = y[t] - m[0]
        m = m + K * e
        Pm = Pm - K[:, None] * (H @ Pm)
        ll = ll - 0.5 * (np.log(2 * np.pi * S) + e * e / S)
    return ll


@given(lambda r, n: [np.array([0.05, 0.2, 0.9]), r.normal(size=n)])
def extended_kalman(par, y):
    n = len(y)
    xs, ps = vg.zeros(n + 1), vg.zeros(n + 1)
    ps[0] = 1.0
    ll = vg.zeros(())
    for t in range(n):
        pred = par[2] * np.sin(xs[t]) + 0.1 * xs[t]
        J = par[2] * np.cos(xs[t]) + 0.1
        pp = J * ps[t] * J + par[0]
        h = pred * pred / 5.0
        Hh = 2.0 * pred / 5.0
        s = Hh * pp * Hh + par[1]
        k = pp * Hh / s
        v = y[t] - h
        xs[t + 1] = pred + k * v
        ps[t + 1] = (1 - k * Hh) * pp
        ll += np.log(s) + v * v / s
    return ll * 1.0


@given(lambda r, n: [r.normal(size=(4, 5)), r.normal(size=n), np.array(0.8)])
def particle_smoothing(noise, y, phi):
    Np = 5
    x = vg.zeros((len(y) + 1, Np))
    logw = vg.zeros(Np)
    for t in range(len(y)):
        x[t + 1] = phi * x[t] + noise[t % 4] * 0.3
        logw -= 0.5 * (y[t] - x[t + 1]) ** 2
        if t % 3 == 2:
            logw -= np.log(np.exp(logw).mean())
    w = np.exp(logw - logw.max())
    w /= w.sum()
    return (x * w[None, :]).sum() + (w * w).sum()


@given(lambda r, n: [0.2 * r.normal(size=(3, 5)), r.normal(size=n)])
def biquad_cascade(sos, x):
    y = x.copy()
    for s in range(sos.shape[0]):
        b0, b1, b2, a1, a2 = sos[s]
        z1 = z2 = 0.0
        for t in range(len(y)):
            v = y[t]
            out = b0 * v + z1
            z1 = b1 * v - a1 * out + z2
            z2 = b2 * v - a2 * out
            y[t] = out
    return (y**2).sum()


@given(lambda r, n: [np.array([0.05, 0.1, 0.8, 0.01]), 0.1 * r.normal(size=n)])
def gjr_garch(p, r):
    h = vg.zeros(len(r))
    h[0] = p[0] / (1 - p[1] - p[2])
    nll = 0.0
    for t in range(len(r)):
        if t:
            neg = np.where(r[t - 1] < 0, 1.0, 0.0)
            h[t] = p[0] + (p[1] + p[3] * neg) * r[t - 1] ** 2 + p[2] * h[t - 1]
        nll = nll + 0.5 * (np.log(h[t]) + r[t] * r[t] / h[t])
    return nll


@given(lambda r, n: [np.array([0.5, -0.2]), np.array([0.3, 0.1, 0.05]), r.normal(size=n)])
def arma_innovations(phi, theta, y):
    e = []
    total = 0.0
    for t in range(len(y)):
        pred = 0.0
        for i in range(min(t, len(phi))):
            pred = pred + phi[i] * y[t - 1 - i]
        for j in range(min(t, len(theta))):
            pred = pred + theta[j] * e[t - 1 - j]
        e.append(y[t] - pred)
        total = total + e[-1] ** 2
    return total


@given(lambda r, n: [r.random(3) * 0.5 + 0.2, r.normal(size=(n, 3))])
def ewma_with_bias(alpha, x):
    m = vg.zeros(3)
    v = vg.zeros(3)
    out = vg.empty((len(x), 3))
    for t, row in enumerate(x):
        m *= 1 - alpha
        m += alpha * row
        v *= 0.9
        v += 0.1 * (row - m) ** 2
        out[t] = m / (1 - (1 - alpha) ** (t + 1)) / np.sqrt(v + 1e-3)
    return (out * out).mean()


@given(lambda r, n: [r.normal(size=n), np.array(0.6)])
def median_free_box(x, s):
    r = 2
    n = len(x)
    out = vg.zeros(n)
    acc = x[0] * (r + 1)
    for i in range(r):
        acc = acc + x[min(i, n - 1)]
    for i in range(n):
        acc = acc + x[min(i + r, n - 1)] - x[max(i - r - 1, 0)]
        out[i] = acc / (2 * r + 1) * s
    return (out**3).sum()


# ---- solvers
@given(lambda r, n: [r.normal(size=n), r.random(n) + 3, r.normal(size=n), r.normal(size=n)])
def thomas_in_place(a, b, c, d):
    n = len(d)
    cp, dp = c.copy(), d.copy()
    cp[0] /= b[0]
    dp[0] /= b[0]
    for i in range(1, n):
        m = b[i] - a[i] * cp[i - 1]
        cp[i] /= m
        dp[i] = (dp[i] - a[i] * dp[i - 1]) / m
    for i in range(n - 2, -1, -1):
        dp[i] -= cp[i] * dp[i + 1]
    return (dp * dp).sum()


@given(lambda r, n: [r.normal(size=(n, n)) + 3 * n * np.eye(n), r.normal(size=n)])
def gauss_seidel(A, b):
    n = len(b)
    x = vg.zeros(n)
    for _ in range(4):
        for i in range(n):
            s = b[i] - A[i, :i] @ x[:i] - A[i, i + 1 :] @ x[i + 1 :]
            x[i] = s / A[i, i]
    return (x * x).sum()


@given(lambda r, n: [r.normal(size=(n, n)) + 3 * n * np.eye(n), r.normal(size=n), np.array(1.1)])
def sor(A, b, omega):
    n = len(b)
    x = vg.zeros(n)
    for _ in range(3):
        for i in range(n):
            sigma = 0.0
            for j in range(n):
                if j != i:
                    sigma += A[i, j] * x[j]
            x[i] = (1 - omega) * x[i] + omega / A[i, i] * (b[i] - sigma)
    return x.sum() ** 2


@given(lambda r, n: [r.normal(size=(n, n)) + 3 * n * np.eye(n), r.normal(size=n)])
def jacobi(A, b):
    x = vg.zeros(len(b))
    D = A.diagonal()
    for _ in range(5):
        x_new = (b - (A @ x - D * x)) / D
        x[:] = x_new
    return (x**2).sum()


@given(lambda r, n: [r.normal(size=(2**3 + 1 + 8 * (n % 2)))])
def multigrid_v(f):
    def smooth(u, f, h, times):
        for _ in range(times):
            for i in range(1, len(u) - 1):
                u[i] = 0.5 * (u[i - 1] + u[i + 1] + h * h * f[i])

    def residual(u, f, h):
        r = vg.zeros(len(u))
        r[1:-1] = f[1:-1] + (u[:-2] - 2 * u[1:-1] + u[2:]) / (h * h)
        return r

    def cycle(u, f, h):
        smooth(u, f, h, 2)
        if len(u) <= 3:
            return
        r = residual(u, f, h)
        rc = vg.zeros(len(u) // 2 + 1)
        rc[1:-1] = 0.25 * (r[1:-3:2] + 2 * r[2:-2:2] + r[3:-1:2])
        e = vg.zeros(len(rc))
        cycle(e, rc, 2 * h)
        u[2:-2:2] += e[1:-1]
        u[1::2] += 0.5 * (e[:-1] + e[1:])
        smooth(u, f, h, 2)

    u = vg.zeros(len(f))
    for _ in range(2):
        cycle(u, f, 1.0 / (len(f) - 1))
    return (u * u).sum()


@given(lambda r, n: [r.normal(size=n), np.array(0.4)])
def crank_nicolson(u0, lam):
    u = u0.copy()
    n = len(u)
    for _ in range(3):
        d = vg.zeros(n)
        d[1:-1] = u[1:-1] + 0.5 * lam * (u[2:] - 2 * u[1:-1] + u[:-2])
        d[0] = u[0]
        d[-1] = u[-1]
        c = vg.zeros(n)
        c[0] = 0.0
        for i in range(1, n - 1):
            m = 1 + lam + 0.5 * lam * c[i - 1]
            c[i] = -0.5 * lam / m
            d[i] = (d[i] + 0.5 * lam * d[i - 1]) / m
        for i in range(n - 2, 0, -1):
            d[i] -= c[i] * d[i + 1]
        u = d
    return (u * u).sum()


@given(lambda r, n: [r.normal(size=(n, n)), np.array(0.3)])
def adi(u0, lam):
    u = u0.copy()
    n = u.shape[0]

    def line(rhs, lam):
        m = rhs.shape[0]
        cp = vg.zeros(m)
        dp = vg.zeros(rhs.shape)
        b = 1 + 2 * lam
        cp[0] = -lam / b
        dp[0] = rhs[0] / b
        for i in range(1, m):
            den = b + lam * cp[i - 1]
            cp[i] = -lam / den
            dp[i] = (rhs[i] + lam * dp[i - 1]) / den
        for i in range(m - 2, -1, -1):
            dp[i] -= cp[i] * dp[i + 1]
        return dp

    for _ in range(2):
        u[:, :] = line(u, lam)
        u[:, :] = line(u.T, lam).T
    return (u * np.arange(n)[:, None]).sum()


@given(lambda r, n: [r.normal(size=n + 2), np.array(0.5)])
def lax_wendroff(u0, c):
    u = u0.copy()
    for _ in range(4):
        un = u.copy()
        u[1:-1] = un[1:-1] - c / 2 * (un[2:] - un[:-2]) + c * c / 2 * (un[2:] - 2 * un[1:-1] + un[:-2])
        u[0], u[-1] = un[-2], un[1]
    return (u**2).sum()


@given(lambda r, n: [r.normal(size=4), np.array([1.0, 0.3])])
def rk4_stages(y0, par):
    y = y0.copy()
    k = vg.empty((4, 4))
    h = 0.05

    def rhs(y, out):
        out[0] = y[2]
        out[1] = y[3]
        out[2] = -par[0] * y[0] - par[1] * y[2] ** 3
        out[3] = -par[0] * y[1] + par[1] * y[0] * y[1]

    for _ in range(6):
        rhs(y, k[0])
        rhs(y + h / 2 * k[0], k[1])
        rhs(y + h / 2 * k[1], k[2])
        rhs(y + h * k[2], k[3])
        y += h / 6 * (k[0] + 2 * k[1] + 2 * k[2] + k[3])
    return (y * y).sum()


@given(lambda r, n: [3 * r.normal(size=(4, 3)), r.normal(size=(4, 3)), r.random(4) + 1])
def verlet_nbody(q0, v0, m):
    q, v = q0.copy(), v0.copy()
    n = len(m)

    def forces(q):
        a = vg.zeros(q.shape)
        for i in range(n):
            for j in range(i + 1, n):
                d = q[j] - q[i]
                r3 = ((d * d).sum() + 0.1) ** 1.5
                a[i] += m[j] * d / r3
                a[j] -= m[i] * d / r3
        return a

    a = forces(q)
    for _ in range(3):
        v += 0.05 * a
        q += 0.1 * v
        a = forces(q)
        v += 0.05 * a
    return 0.5 * (m * (v * v).sum(axis=1)).sum() + (q * q).sum()


@given(lambda r, n: [r.normal(size=(n, n)), np.array(0.4)])
def fdtd(src, c):
    n = src.shape[0]
    ez = src.copy()
    hx = vg.zeros((n, n - 1))
    hy = vg.zeros((n - 1, n))
    for _ in range(4):
        hx -= c * (ez[:, 1:] - ez[:, :-1])
        hy += c * (ez[1:, :] - ez[:-1, :])
        ez[1:-1, 1:-1] += c * ((hy[1:, 1:-1] - hy[:-1, 1:-1]) - (hx[1:-1, 1:] - hx[1:-1, :-1]))
    return (ez * ez).sum() + (hx**2).sum()


@given(lambda r, n: [r.random(n) + 1, 0.1 * r.normal(size=n)])
def shallow_water(h0, u0):
    h, hu = h0.copy(), h0 * u0
    for _ in range(3):
        hm = 0.5 * (h[1:] + h[:-1]) - 0.1 * (hu[1:] - hu[:-1])
        flux = hu**2 / h + 4.9 * h * h
        um = 0.5 * (hu[1:] + hu[:-1]) - 0.1 * (flux[1:] - flux[:-1])
        fm = um**2 / hm + 4.9 * hm * hm
        h[1:-1] -= 0.2 * (um[1:] - um[:-1])
        hu[1:-1] -= 0.2 * (fm[1:] - fm[:-1])
        h[0] = h[1]
        h[-1] = h[-2]
        hu[0] = -hu[1]
        hu[-1] = -hu[-2]
    return (h * h).sum() + (hu * hu).sum()


@given(lambda r, n: [r.normal(size=(2 * n + 2, 2 * n + 2))])
def red_black_views(f):
    u = vg.zeros(f.shape)
    for _ in range(3):
        for i, j in ((1, 1), (2, 2), (1, 2), (2, 1)):
            u[i:-1:2, j:-1:2] = 0.25 * (
                u[i - 1 : -2 : 2, j:-1:2]
                + u[i + 1 :: 2, j:-1:2][: u[i:-1:2].shape[0]]
                + u[i:-1:2, j - 1 : -2 : 2]
                + u[i:-1:2, j + 1 :: 2]
                + f[i:-1:2, j:-1:2]
            )
    return (u * u).sum()


@given(lambda r, n: [(lambda b: b @ b.T / n + np.eye(n))(r.normal(size=(n, n))), r.normal(size=n)])
def conjugate_gradients(A, b):
    x = vg.zeros(len(b))
    r = b.copy()
    p = r.copy()
    rs = r @ r
    for _ in range(4):
        Ap = A @ p
        alpha = rs / (p @ Ap)
        x += alpha * p
        r -= alpha * Ap
        new = r @ r
        p *= new / rs
        p += r
        rs = new
    return (x * x).sum()


# ---- factorisations
@given(lambda r, n: [(lambda b: b @ b.T / n + np.eye(n))(r.normal(size=(n, n)))])
def cholesky_right_looking(A):
    L = A.copy()
    n = len(L)
    for k in range(n):
        L[k, k] = np.sqrt(L[k, k])
        L[k + 1 :, k] /= L[k, k]
        for j in range(k + 1, n):
            L[j:, j] -= L[j:, k] * L[j, k]
    return np.log(L.diagonal()).sum() + (np.tril(L) ** 3).sum()


@given(lambda r, n: [(lambda b: b @ b.T / n + np.eye(n))(r.normal(size=(n, n)))])
def ldlt(A):
    n = A.shape[0]
    L = vg.eye(n)
    D = vg.zeros(n)
    for j in range(n):
        D[j] = A[j, j] - (L[j, :j] ** 2 * D[:j]).sum()
        for i in range(j + 1, n):
            L[i, j] = (A[i, j] - (L[i, :j] * L[j, :j] * D[:j]).sum()) / D[j]
    return D.sum() + (L * L).sum()


@given(lambda r, n: [r.normal(size=(n, n)) + 2 * n * np.eye(n)])
def lu_crout(A):
    n = len(A)
    L = vg.zeros((n, n))
    U = vg.eye(n)
    for j in range(n):
        for i in range(j, n):
            s = A[i, j]
            for k in range(j):
                s = s - L[i, k] * U[k, j]
            L[i, j] = s
        for i in range(j + 1, n):
            s = A[j, i]
            for k in range(j):
                s = s - L[j, k] * U[k, i]
            U[j, i] = s / L[j, j]
    return (L * L).sum() + (U**3).sum()


@given(lambda r, n: [r.normal(size=(n, n)) + 0.0])
def lu_pivoting(A):
    U = A.copy()
    n = len(U)
    sign = 1.0
    for k in range(n - 1):
        p = k + int(np.argmax(np.abs(U[k:, k])))
        if p != k:
            U[[k, p]] = U[[p, k]]
            sign = -sign
        for i in range(k + 1, n):
            U[i, k:] -= U[i, k] / U[k, k] * U[k, k:]
    return sign * U.diagonal().prod()


@given(lambda r, n: [r.normal(size=(n + 2, n))])
def qr_householder(A):
    R = A.copy()
    n = R.shape[1]
    for k in range(n):
        x = R[k:, k]
        s = np.copysign(1.0, x[0])
        v = x.copy()
        v[0] += s * np.sqrt((x * x).sum())
        v /= np.sqrt((v * v).sum())
        R[k:, k:] -= 2.0 * np.outer(v, v @ R[k:, k:])
    return (np.triu(R) ** 2 * np.arange(1, n + 1)).sum()


@given(lambda r, n: [r.normal(size=(n, n))])
def qr_givens(A):
    R = A.copy()
    n = len(R)
    for j in range(n):
        for i in range(n - 1, j, -1):
            a, b = R[i - 1, j], R[i, j]
            r = np.hypot(a, b)
            c, s = a / r, b / r
            upper = c * R[i - 1] + s * R[i]
            R[i] = -s * R[i - 1] + c * R[i]
            R[i - 1] = upper
    return (R * np.arange(n)).sum()


@given(lambda r, n: [np.concatenate([[3.0], 0.5 * r.normal(size=n) / np.arange(1, n + 1)])])
def levinson(rr):
    n = len(rr) - 1
    a = vg.zeros(n + 1)
    a[0] = 1.0
    e = rr[0]
    for k in range(1, n + 1):
        lam = 0.0
        for j in range(k):
            lam = lam - a[j] * rr[k - j]
        lam = lam / e
        for i in range(k // 2 + 1):
            t = a[k - i] + lam * a[i]
            a[i] = a[i] + lam * a[k - i] if i != k - i else a[i] + lam * a[i]
            a[k - i] = t
        e = e * (1 - lam * lam)
    return e + (a * a).sum()


@given(lambda r, n: [r.normal(size=(5, 5)) + 2 * np.eye(5)])
def bareiss(A):
    M = A.copy()
    n = len(M)
    prev = 1.0
    for k in range(n - 1):
        for i in range(k + 1, n):
            for j in range(k + 1, n):
                M[i, j] = (M[i, j] * M[k, k] - M[i, k] * M[k, j]) / prev
        prev = M[k, k]
    return M[n - 1, n - 1] * 1.0


@given(lambda r, n: [r.normal(size=(n + 1, n + 1))])
def hessenberg(A):
    H = A.copy()
    n = len(H)
    for k in range(n - 2):
        v = H[k + 1 :, k].copy()
        v[0] += np.sign(v[0]) * np.linalg.norm(v)
        v /= np.linalg.norm(v)
        H[k + 1 :, k:] -= 2 * v[:, None] * (v @ H[k + 1 :, k:])
        H[:, k + 1 :] -= 2 * (H[:, k + 1 :] @ v)[:, None] * v
    return (np.triu(H, -1) * np.arange(n)).sum()


@given(lambda r, n: [r.normal(size=(n, n)) + 2 * np.eye(n)])
def gram_schmidt(A):
    Q = vg.zeros(A.shape)
    R = vg.zeros((A.shape[1],) * 2)
    for j in range(A.shape[1]):
        v = A[:, j].copy()
        for i in range(j):
            R[i, j] = Q[:, i] @ v
            v -= R[i, j] * Q[:, i]
        R[j, j] = np.sqrt(v @ v)
        Q[:, j] = v / R[j, j]
    return (R * R * R).sum() + Q[0].sum()


# ---- numeric
@given(lambda r, n: [r.normal(size=n), r.normal(size=())])
def clenshaw_scalar(c, x):
    b1 = b2 = 0.0
    for k in range(len(c) - 1, 0, -1):
        b1, b2 = c[k] + 2 * x * b1 - b2, b1
    return c[0] + x * b1 - b2


@given(lambda r, n: [np.sort(r.random(n)) + np.arange(n), r.normal(size=n), r.random(())])
def neville(xs, ys, x):
    p = ys.copy()
    n = len(xs)
    for m in range(1, n):
        for i in range(n - m):
            p[i] = ((x - xs[i + m]) * p[i] + (xs[i] - x) * p[i + 1]) / (xs[i] - xs[i + m])
    return p[0] * 1.0


@given(lambda r, n: [np.sort(r.random(n)) + np.arange(n), r.normal(size=n), r.random(())])
def divided_differences(xs, ys, x):
    c = ys.copy()
    n = len(xs)
    for j in range(1, n):
        c[j:] = (c[j:] - c[j - 1 : -1]) / (xs[j:] - xs[: n - j])
    out = c[n - 1]
    for k in range(n - 2, -1, -1):
        out = out * (x - xs[k]) + c[k]
    return out


@given(lambda r, n: [r.random(3) + 0.5])
def romberg(p):
    R = vg.zeros((5, 5))
    a, b = 0.0, 1.0
    f = lambda x: np.exp(-p[0] * x) * np.sin(p[1] * x) + p[2] * x * x
    h = b - a
    R[0, 0] = 0.5 * h * (f(a) + f(b))
    for i in range(1, 5):
        h /= 2
        s = 0.0
        for k in range(1, 2**i, 2):
            s = s + f(a + k * h)
        R[i, 0] = 0.5 * R[i - 1, 0] + h * s
        for j in range(1, i + 1):
            R[i, j] = R[i, j - 1] + (R[i, j - 1] - R[i - 1, j - 1]) / (4**j - 1)
    return R[4, 4] * 1.0


@given(lambda r, n: [r.normal(size=8 * (1 + n % 2)), r.normal(size=8 * (1 + n % 2))])
def fft_butterflies(re0, im0):
    re, im = re0.copy(), im0.copy()
    n = len(re)
    j = 0
    for i in range(1, n):
        bit = n >> 1
        while j & bit:
            j ^= bit
            bit >>= 1
        j |= bit
        if i < j:
            re[i], re[j] = re[j], re[i]
            im[i], im[j] = im[j], im[i]
    size = 2
    while size <= n:
        half = size // 2
        for start in range(0, n, size):
            for k in range(half):
                c, s = math.cos(2 * math.pi * k / size), -math.sin(2 * math.pi * k / size)
                a, b = start + k, start + k + half
                tr = c * re[b] - s * im[b]
                ti = c * im[b] + s * re[b]
                re[b] = re[a] - tr
                im[b] = im[a] - ti
                re[a] += tr
                im[a] += ti
        size *= 2
    return ((re**2 + im**2) * np.arange(n)).sum()


@given(lambda r, n: [r.normal(size=16)])
def haar_lifting(x):
    y = x.copy()
    n = len(y)
    step = 1
    while step < n:
        even, odd = y[:: 2 * step], y[step :: 2 * step]
        odd -= even
        even += odd / 2
        step *= 2
    return (y**2 * np.arange(1, n + 1)).sum()


@given(lambda r, n: [r.normal(size=16)])
def prefix_sums_blelloch(x):
    y = x.copy()
    n = len(y)
    d = 1
    while d < n:
        for i in range(2 * d - 1, n, 2 * d):
            y[i] += y[i - d]
        d *= 2
    y[n - 1] = 0.0
    d = n // 2
    while d >= 1:
        for i in range(2 * d - 1, n, 2 * d):
            t = y[i - d] * 1.0
            y[i - d] = y[i]
            y[i] += t
        d //= 2
    return (y**2).sum()


@given(lambda r, n: [r.normal(size=n), r.normal(size=3)])
def hillis_steele(x, w):
    y = x.copy()
    d = 1
    while d < len(y):
        z = y.copy()
        z[d:] += y[:-d]
        y = z
        d *= 2
    return (y * y).sum() + w.sum() * y[-1]


@given(lambda r, n: [r.normal(size=(n, n)), r.normal(size=(3, 3))])
def conv_loops(img, ker):
    h, w = img.shape
    out = vg.zeros((h - 2, w - 2))
    for i in range(h - 2):
        for j in range(w - 2):
            for a in range(3):
                for b in range(3):
                    out[i, j] += img[i + a, j + b] * ker[a, b]
    return np.tanh(out).sum()


@given(lambda r, n: [r.normal(size=(n, n))])
def summed_area(img):
    s = img.copy()
    for i in range(1, s.shape[0]):
        s[i] += s[i - 1]
    for j in range(1, s.shape[1]):
        s[:, j] += s[:, j - 1]
    box = s[2:, 2:] - s[:-2, 2:] - s[2:, :-2] + s[:-2, :-2]
    return (box * box).sum()


@given(lambda r, n: [np.sort(r.random(n)) + np.arange(n), r.normal(size=n)])
def cubic_spline(x, y):
    n = len(x)
    h = x[1:] - x[:-1]
    alpha = vg.zeros(n)
    l = vg.ones(n)
    mu = vg.zeros(n)
    z = vg.zeros(n)
    c = vg.zeros(n)
    for i in range(1, n - 1):
        alpha[i] = 3 / h[i] * (y[i + 1] - y[i]) - 3 / h[i - 1] * (y[i] - y[i - 1])
        l[i] = 2 * (x[i + 1] - x[i - 1]) - h[i - 1] * mu[i - 1]
        mu[i] = h[i] / l[i]
        z[i] = (alpha[i] - h[i - 1] * z[i - 1]) / l[i]
    for j in range(n - 2, -1, -1):
        c[j] = z[j] - mu[j] * c[j + 1]
    return (c * c).sum()


@given(lambda r, n: [r.normal(size=n)])
def sorting_network(x):
    y = x.copy()
    n = len(y)
    for rnd in range(n):
        for i in range(rnd % 2, n - 1, 2):
            lo, hi = np.minimum(y[i], y[i + 1]), np.maximum(y[i], y[i + 1])
            y[i], y[i + 1] = lo, hi
    return (y * np.arange(n)).sum()


# ---- networks
@given(lambda r, n: [0.3 * r.normal(size=(4, 3)), 0.3 * r.normal(size=(4, 4)), r.normal(size=4), r.normal(size=(n, 3))])
def rnn_rows(wx, wh, b, xs):
    out = vg.zeros((len(xs), 4))
    h = vg.zeros(4)
    for t in range(len(xs)):
        h = np.tanh(wx @ xs[t] + wh @ h + b)
        out[t] = h
    return (out**2).mean()


@given(lambda r, n: [0.3 * r.normal(size=(16, 7)), r.normal(size=16), r.normal(size=(n, 3))])
def lstm_split(W, b, xs):
    H = 4
    h = vg.zeros(H)
    c = vg.zeros(H)
    out = vg.zeros((len(xs), H))
    sig = lambda z: 1 / (1 + np.exp(-z))
    for t, x in enumerate(xs):
        z = W @ np.concatenate([x, h]) + b
        i, f, g, o = z[:4], z[4:8], z[8:12], z[12:]
        c = sig(f) * c + sig(i) * np.tanh(g)
        h = sig(o) * np.tanh(c)
        out[t] = h
    return out.sum() + (c * c).sum()


@given(lambda r, n: [0.3 * r.normal(size=(3, 4, 3)), 0.3 * r.normal(size=(3, 4, 4)), r.normal(size=(n, 3))])
def gru_rows(W, U, xs):
    hs = vg.zeros((len(xs) + 1, 4))
    for t in range(len(xs)):
        h = hs[t]
        z = 1 / (1 + np.exp(-(W[0] @ xs[t] + U[0] @ h)))
        r = 1 / (1 + np.exp(-(W[1] @ xs[t] + U[1] @ h)))
        hh = np.tanh(W[2] @ xs[t] + U[2] @ (r * h))
        hs[t + 1] = (1 - z) * h + z * hh
    return (hs[1:] ** 2).sum()


@given(lambda r, n: [r.normal(size=(n, 4)), r.normal(size=(n, 4)), r.normal(size=(n, 2))])
def attention_causal(q, k, v):
    out = vg.zeros(v.shape)
    for i in range(len(q)):
        s = k[: i + 1] @ q[i] / 2.0
        s = s - s.max()
        w = np.exp(s)
        w /= w.sum()
        out[i] = w @ v[: i + 1]
    return (out * out).sum()


@given(lambda r, n: [r.normal(size=(n, 3)), 0.4 * r.normal(size=(2, 3, 3)), 0.1 * r.normal(size=(2, 3))])
def mlp_layernorm(x, W, b):
    h = x
    for l in range(2):
        z = h @ W[l] + b[l]
        mu = z.mean(axis=1, keepdims=True)
        sd = np.sqrt(((z - mu) ** 2).mean(axis=1, keepdims=True) + 1e-5)
        h = np.maximum((z - mu) / sd, 0.0) + h
    return (h * h).mean()


@given(lambda r, n: [r.normal(size=(n, 3)), r.normal(size=3)])
def sgd_momentum_unrolled(X, y):
    w = vg.zeros(3)
    m = vg.zeros(3)
    v = vg.zeros(3)
    for t in range(1, 5):
        g = X.T @ (X @ w - X @ y) / len(X)
        m *= 0.9
        m += 0.1 * g
        v *= 0.99
        v += 0.01 * g * g
        w -= 0.1 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.99**t)) + 1e-8 + 1e-3)
    return ((w - y) ** 2).sum()


# ---- finance
@given(lambda r, n: [np.array([100.0, 0.3, 0.05]) + r.random(3) * np.array([5, 0.1, 0.01])])
def binomial_american(p):
    steps = 8
    S, sigma, r = p[0], p[1], p[2]
    dt = 1.0 / steps
    u = np.exp(sigma * np.sqrt(dt))
    d = 1 / u
    q = (np.exp(r * dt) - d) / (u - d)
    disc = np.exp(-r * dt)
    v = vg.zeros(steps + 1)
    for j in range(steps + 1):
        v[j] = np.maximum(100.0 - S * u**j * d ** (steps - j), 0.0)
    for i in range(steps - 1, -1, -1):
        for j in range(i + 1):
            v[j] = max(disc * (q * v[j + 1] + (1 - q) * v[j]), 100.0 - S * u**j * d ** (i - j))
    return v[0] * 1.0


@given(lambda r, n: [np.array([100.0, 0.04, 2.0, 0.04, 0.3, -0.7]), r.normal(size=(n, 2, 4))])
def heston_euler(p, noise):
    s = vg.full(4, 1.0) * np.log(p[0])
    v = vg.full(4, 1.0) * p[1]
    dt = 1 / 12
    for t in range(len(noise)):
        z1 = noise[t, 0]
        z2 = p[5] * z1 + np.sqrt(1 - p[5] ** 2) * noise[t, 1]
        vp = np.maximum(v, 1e-8)
        s += -0.5 * vp * dt + np.sqrt(vp * dt) * z1
        v += p[2] * (p[3] - vp) * dt + p[4] * np.sqrt(vp * dt) * z2
    return np.maximum(np.exp(s) - 100.0, 0.0).mean() + (v * v).sum()


@given(lambda r, n: [0.02 + 0.01 * r.random(n)])
def swap_bootstrap(rates):
    df = vg.zeros(len(rates))
    acc = 0.0
    for i in range(len(rates)):
        df[i] = (1 - rates[i] * acc) / (1 + rates[i])
        acc = acc + df[i]
    return (-np.log(df) / np.arange(1, len(rates) + 1)).sum()


@given(lambda r, n: [np.array([0.02, 0.3, 0.04, 0.01]), r.normal(size=(n,))])
def vasicek_bonds(p, z):
    x = p[0]
    disc = 1.0
    total = 0.0
    for t in range(len(z)):
        x = x + p[1] * (p[2] - x) * 0.1 + p[3] * 0.3 * z[t]
        disc = disc * np.exp(-x * 0.1)
        total += disc * (0.05 if t + 1 < len(z) else 1.05)
    return total


# ---- other shapes of program
class State:
    def __init__(self, x):
        self.x = x
        self.log = []

    def step(self, g):
        self.x = self.x - 0.1 * g
        self.log.append((self.x * self.x).sum())


@given(lambda r, n: [r.normal(size=n), r.random(n)])
def object_state(x, a):
    st = State(x)
    for _ in range(4):
        st.step(2 * a * st.x)
    return sum(st.log)


@given(lambda r, n: [r.normal(size=(n, n))])
def game_of_views(a):
    b = a.copy()
    b.T[...] += b
    b[::2] *= b[1::2][: b[::2].shape[0]] if b.shape[0] % 2 == 0 else 2.0
    b[::-1] += 1.0
    b.reshape(-1)[::3] = 0.5
    np.multiply(b[0], b[1], out=b[2])
    return (b * a).sum()


@given(lambda r, n: [r.normal(size=n), r.normal(size=n)])
def generators_and_zip(x, y):
    total = sum(a * b for a, b in zip(x, y))
    d = {i: x[i] * i for i in range(len(x))}
    pairs = [(d[i] + d[j]) ** 2 for i in d for j in d if i < j]
    return total + sum(pairs)


@given(lambda r, n: [r.normal(size=n)])
def index_table_built(x):
    n = len(x)
    idx = np.zeros(n, int)
    for i in range(1, n):
        idx[i] = (idx[i - 1] * 5 + 3) % n
    y = vg.zeros(n)
    for i in range(n):
        y[i] = x[idx[i]] * (i + 1)
    return (y * x[idx]).sum()


@given(lambda r, n: [r.normal(size=n)])
def rank_by_counting(x):
    n = len(x)
    rank = np.zeros(n)
    soft = vg.zeros(n)
    for i in range(n):
        for j in range(n):
            soft[i] += 1 / (1 + np.exp(-(x[i] - x[j])))
    return (soft * x).sum() + rank.sum()


@given(lambda r, n: [r.normal(size=(n, 4)), r.normal(size=4)])
def kmeans_soft(X, c0):
    c = vg.zeros((2, 4))
    c[0] = c0
    c[1] = -c0
    for _ in range(3):
        d = ((X[:, None, :] - c[None]) ** 2).sum(-1)
        w = np.exp(-d)
        w = w / w.sum(1, keepdims=True)
        for k in range(2):
            c[k] = (w[:, k : k + 1] * X).sum(0) / w[:, k].sum()
    return (c * c).sum()


@given(lambda r, n: [r.normal(size=n), r.random(())])
def newton_iterations(a, x0):
    x = vg.full(len(a), 1.0) * (x0 + 2)
    for _ in range(5):
        f = x**3 - a - 4.0
        g = 3 * x * x
        x -= f / g
    return x.sum()


@given(lambda r, n: [r.random((n, 3))])
def polygon_area(p):
    n = len(p)
    a = 0.0
    for i in range(n):
        x1, y1, _ = p[i]
        x2, y2, _ = p[(i + 1) % n]
        a += x1 * y2 - x2 * y1
    return 0.5 * abs(a) + (p[:, 2] ** 2).sum()


@given(lambda r, n: [r.normal(size=(n, 2)), r.random(())])
def bezier_casteljau(pts, t):
    p = pts.copy()
    n = len(p)
    for r in range(1, n):
        for i in range(n - r):
            p[i] = (1 - t) * p[i] + t * p[i + 1]
    return (p[0] ** 2).sum()


@given(lambda r, n: [r.random(n) + 0.5])
def continued_fraction(a):
    v = a[-1]
    for i in range(len(a) - 2, -1, -1):
        v = a[i] + 1 / v
    return v


@given(lambda r, n: [r.random(n), r.normal(size=n)])
def spiking(w, x):
    v = 0.0
    count = vg.zeros(len(x))
    for t in range(len(x)):
        v = 0.9 * v + w[t] * x[t]
        s = 1 / (1 + np.exp(-8 * (v - 1)))
        v = v * (1 - s)
        count[t] = s
    return count.sum()
