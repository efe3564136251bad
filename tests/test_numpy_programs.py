"""Fifty textbook programs: one source, with NumPy and with `viewgrad.numpy` as `np`.

Each program takes `np` and its arguments. The values are compared, and the gradient with finite differences.
"""

import numpy
import pytest

import viewgrad as vg
import viewgrad.numpy
from viewgrad.autograd import grad

RNG = numpy.random.default_rng(7)
PROGRAMS = {}


def program(*arguments):
    def register(function):
        PROGRAMS[function.__name__] = (function, arguments)
        return function

    return register


def drawn(*shape):
    return RNG.standard_normal(shape)


def positive(*shape):
    return RNG.uniform(0.5, 1.5, shape)


def dominant(n):
    return RNG.standard_normal((n, n)) + n * numpy.eye(n)


# -- solvers -----------------------------------------------------------------------------------------------------------


@program(dominant(4), drawn(4))
def jacobi(np, A, b):
    x = np.zeros_like(b)
    D = np.diag(A)
    R = A - np.diagflat(D)
    for _ in range(8):
        x = (b - np.dot(R, x)) / D
    return x


@program(dominant(4), drawn(4))
def gauss_seidel(np, A, b):
    x = np.zeros(len(b))
    for _ in range(6):
        for i in range(len(b)):
            sigma = 0.0
            for j in range(len(b)):
                if j != i:
                    sigma += A[i, j] * x[j]
            x[i] = (b[i] - sigma) / A[i, i]
    return x


@program(dominant(4), drawn(4))
def gaussian_elimination(np, A, b):
    M = np.hstack([A, b.reshape(-1, 1)])
    n = len(b)
    for k in range(n):
        pivot = k + int(np.argmax(np.abs(M[k:, k])))
        M[[k, pivot]] = M[[pivot, k]]
        for i in range(k + 1, n):
            M[i, k:] -= M[i, k] / M[k, k] * M[k, k:]
    x = np.zeros(n)
    for i in range(n - 1, -1, -1):
        x[i] = (M[i, n] - np.dot(M[i, i + 1 : n], x[i + 1 :])) / M[i, i]
    return x


@program(dominant(4))
def doolittle(np, A):
    n = A.shape[0]
    L, U = np.eye(n), np.zeros((n, n))
    for i in range(n):
        for j in range(i, n):
            U[i, j] = A[i, j] - np.sum(L[i, :i] * U[:i, j])
        for j in range(i + 1, n):
            L[j, i] = (A[j, i] - np.sum(L[j, :i] * U[:i, i])) / U[i, i]
    return np.stack([L, U])


@program(drawn(3, 3))
def cholesky_of_gram(np, B):
    A = B @ B.T + 3 * np.identity(3)
    L = np.zeros_like(A)
    for i in range(3):
        for j in range(i + 1):
            total = sum(L[i][k] * L[j][k] for k in range(j))
            L[i][j] = np.sqrt(A[i][i] - total) if i == j else (A[i][j] - total) / L[j][j]
    return L


@program(positive(5), positive(5) + 3, positive(5), drawn(5))
def thomas(np, a, b, c, d):
    n = len(d)
    c, d = c.copy(), d.copy()
    c[0] /= b[0]
    d[0] /= b[0]
    for i in range(1, n):
        m = b[i] - a[i] * c[i - 1]
        c[i] = c[i] / m
        d[i] = (d[i] - a[i] * d[i - 1]) / m
    x = np.empty(n)
    x[-1] = d[-1]
    for i in range(n - 2, -1, -1):
        x[i] = d[i] - c[i] * x[i + 1]
    return x


@program(drawn(4, 4), drawn(4))
def conjugate_gradients(np, B, b):
    A = B @ B.T + 4 * np.eye(4)
    x = np.zeros(4)
    r = b - A @ x
    p = r.copy()
    for _ in range(3):
        Ap = A @ p
        alpha = (r @ r) / (p @ Ap)
        x = x + alpha * p
        r_new = r - alpha * Ap
        p = r_new + (r_new @ r_new) / (r @ r) * p
        r = r_new
    return x


@program(drawn(4, 3))
def gram_schmidt(np, A):
    Q = np.zeros(A.shape)
    for j in range(A.shape[1]):
        v = A[:, j].copy()
        for i in range(j):
            v -= np.dot(Q[:, i], A[:, j]) * Q[:, i]
        Q[:, j] = v / np.linalg.norm(v)
    return Q


@program(drawn(4, 3))
def householder(np, A):
    R = np.array(A, dtype=float)
    for k in range(3):
        v = np.copy(R[k:, k])
        v[0] += np.copysign(np.linalg.norm(v), v[0])
        v /= np.linalg.norm(v)
        R[k:, k:] -= 2.0 * np.outer(v, v @ R[k:, k:])
    return np.triu(R)


@program(drawn(3, 3))
def power_iteration(np, B):
    A = B @ B.T
    v = np.ones(3)
    for _ in range(5):
        v = A @ v
        v = v / np.sqrt(np.sum(v**2))
    return v @ A @ v


@program(positive(2))
def newton_of_two(np, start):
    x = np.array([start[0], start[1]])
    for _ in range(3):
        F = np.array([x[0] ** 2 + x[1] ** 2 - 4.0, x[0] * x[1] - 1.0])
        J = np.array([[2 * x[0], 2 * x[1]], [x[1], x[0]]])
        x = x - np.linalg.solve(J, F)
    return x


@program(positive(3))
def runge_kutta(np, p):
    def slope(t, y):
        return np.array([p[0] * y[0] - p[1] * y[0] * y[1], p[2] * y[0] * y[1] - y[1]])

    h = 0.1
    ys = np.zeros((6, 2))
    ys[0] = [1.0, 0.5]
    for i in range(5):
        k1 = slope(i * h, ys[i])
        k2 = slope(i * h + h / 2, ys[i] + h / 2 * k1)
        k3 = slope(i * h + h / 2, ys[i] + h / 2 * k2)
        k4 = slope(i * h + h, ys[i] + h * k3)
        ys[i + 1] = ys[i] + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return ys


@program(drawn(4, 4))
def bisected_spectrum(np, B):
    values, vectors = np.linalg.eigh(B + B.T)
    return np.concatenate([values, np.abs(vectors[:, 0])])


@program(drawn(5), drawn(5))
def lagrange(np, x, y):
    total = 0.0
    for i in range(len(x)):
        term = y[i]
        for j in range(len(x)):
            if i != j:
                term *= (0.3 - x[j]) / (x[i] - x[j])
        total += term
    return total


@program(drawn(5) * 0.1 + numpy.arange(5.0), drawn(5))
def divided_differences(np, x, y):
    n = len(y)
    coef = np.zeros([n, n])
    coef[:, 0] = y
    for j in range(1, n):
        for i in range(n - j):
            coef[i][j] = (coef[i + 1][j - 1] - coef[i][j - 1]) / (x[i + j] - x[i])
    return coef


# -- filters and signals -----------------------------------------------------------------------------------------------


@program(drawn(6), positive(1), positive(1))
def kalman(np, zs, q, r):
    x, P = 0.0, 1.0
    estimates = []
    for z in zs:
        P = P + q
        K = P / (P + r)
        x = x + K * (z - x)
        P = (1 - K) * P
        estimates.append(x)
    return np.array(estimates).ravel()


@program(drawn(5, 2), positive(2))
def kalman_of_two(np, zs, noise):
    F = np.array([[1.0, 0.1], [0.0, 1.0]])
    H = np.eye(2)
    Q, R = np.diag(noise * 0.1), np.diag(noise)
    x, P = np.zeros((2, 1)), np.eye(2)
    out = np.zeros((5, 2))
    for k in range(5):
        x, P = F @ x, F @ P @ F.T + Q
        S = H @ P @ H.T + R
        K = P @ H.T @ np.linalg.inv(S)
        x = x + K @ (zs[k].reshape(2, 1) - H @ x)
        P = (np.eye(2) - K @ H) @ P
        out[k, :] = x.flatten()
    return out


@program(drawn(2), drawn(2, 2))
def unscented(np, mean, B):
    P = B @ B.T + np.eye(2)
    U = np.linalg.cholesky(3.0 * P)
    sigmas = np.zeros((5, 2))
    sigmas[0] = mean
    for k in range(2):
        sigmas[k + 1] = mean + U[:, k]
        sigmas[k + 3] = mean - U[:, k]
    weights = np.full(5, 1 / 6.0)
    weights[0] = 1 / 3.0
    points = np.array([np.sin(s) + s[0] * s[1] for s in sigmas])
    centre = np.dot(weights, points)
    spread = np.zeros((2, 2))
    for w, p in zip(weights, points):
        spread += w * np.outer(p - centre, p - centre)
    return np.vstack((centre, spread))


@program(drawn(8), positive(3))
def weighted_moving_average(np, x, w):
    w = w / w.sum()
    return np.convolve(x, w, mode="valid")


@program(drawn(8))
def exponential_average(np, x):
    out = np.empty_like(x)
    out[0] = x[0]
    for t in range(1, len(x)):
        out[t] = 0.3 * x[t] + 0.7 * out[t - 1]
    return out


@program(drawn(8))
def radix_two(np, x):
    def fft(x):
        n = len(x)
        if n == 1:
            return x
        even, odd = fft(x[::2]), fft(x[1::2])
        factor = np.exp(-2j * np.pi * np.arange(n) / n)
        return np.concatenate([even + factor[: n // 2] * odd, even + factor[n // 2 :] * odd])

    return np.abs(fft(x.astype(complex)))


@program(drawn(8))
def spectrum(np, x):
    X = np.fft.rfft(x * np.hanning(len(x)))
    return np.abs(X) ** 2 * np.fft.rfftfreq(len(x), d=0.5)


@program(drawn(5, 5), drawn(3, 3))
def image_filter(np, image, kernel):
    padded = np.pad(image, 1, mode="edge")
    out = np.zeros_like(image)
    for i in range(image.shape[0]):
        for j in range(image.shape[1]):
            out[i, j] = (padded[i : i + 3, j : j + 3] * kernel).sum()
    return out


@program(drawn(6), positive(6))
def trapezoid_by_hand(np, y, dx):
    x = np.cumsum(dx)
    return np.sum((y[1:] + y[:-1]) / 2 * np.diff(x)) + np.trapezoid(y, x)


# -- robotics ----------------------------------------------------------------------------------------------------------


@program(drawn(3), positive(3))
def forward_kinematics(np, angles, lengths):
    points = np.zeros((4, 2))
    for i in range(1, 4):
        points[i, 0] = points[i - 1, 0] + lengths[i - 1] * np.cos(np.sum(angles[:i]))
        points[i, 1] = points[i - 1, 1] + lengths[i - 1] * np.sin(np.sum(angles[:i]))
    return points


@program(drawn(3), drawn(4, 3))
def rotated(np, angles, points):
    a, b, c = angles
    Rz = np.array([[np.cos(a), -np.sin(a), 0], [np.sin(a), np.cos(a), 0], [0, 0, 1]])
    Ry = np.array([[np.cos(b), 0, np.sin(b)], [0, 1, 0], [-np.sin(b), 0, np.cos(b)]])
    Rx = np.array([[1, 0, 0], [0, np.cos(c), -np.sin(c)], [0, np.sin(c), np.cos(c)]])
    return np.dot(Rz @ Ry @ Rx, points.T).T


@program(drawn(4), drawn(2))
def bicycle(np, state, control):
    x, y, yaw, v = state
    delta = np.clip(control[1], -0.5, 0.5)
    path = []
    for _ in range(5):
        x = x + v * np.cos(yaw) * 0.1
        y = y + v * np.sin(yaw) * 0.1
        yaw = yaw + v / 2.9 * np.tan(delta) * 0.1
        v = v + control[0] * 0.1
        path.append([x, y, yaw, v])
    return np.array(path)


@program(drawn(4, 2))
def bezier(np, points):
    traj = []
    for t in np.linspace(0, 1, 5):
        level = list(points)
        while len(level) > 1:
            level = [(1 - t) * level[i] + t * level[i + 1] for i in range(len(level) - 1)]
        traj.append(level[0])
    return np.array(traj)


@program(drawn(5, 2), drawn(5, 2))
def icp_step(np, P, Q):
    pm, qm = np.mean(P, axis=0), np.mean(Q, axis=0)
    W = (P - pm).T @ (Q - qm)
    u, s, vt = np.linalg.svd(W)
    R = (u @ vt).T
    t = qm - R @ pm
    return np.concatenate((R.ravel(), t, s))


@program(drawn(2, 2), drawn(2, 1))
def riccati(np, A, B):
    Q, R = np.eye(2), np.eye(1)
    P = Q
    for _ in range(6):
        P = A.T @ P @ A - A.T @ P @ B @ np.linalg.inv(R + B.T @ P @ B) @ B.T @ P @ A + Q
    return np.linalg.inv(B.T @ P @ B + R) @ (B.T @ P @ A)


@program(positive(6))
def quintic(np, boundary):
    xs, vs, axs, xe, ve, T = boundary
    A = np.array([[T**3, T**4, T**5], [3 * T**2, 4 * T**3, 5 * T**4], [6 * T, 12 * T**2, 20 * T**3]])
    b = np.array([xe - xs - vs * T - axs * T**2 / 2, ve - vs - axs * T, -axs])
    return np.linalg.solve(A, b)


# -- finance -----------------------------------------------------------------------------------------------------------


@program(positive(5))
def black_scholes(np, p):
    S, K, T, r, sigma = p
    d1 = (np.log(S / K) + (r + 0.5 * sigma**2) * T) / (sigma * np.sqrt(T))
    d2 = d1 - sigma * np.sqrt(T)

    def phi(x):
        return 1 / (1 + np.exp(-1.702 * x))

    return S * phi(d1) - K * np.exp(-r * T) * phi(d2)


@program(positive(4))
def binomial_tree(np, p):
    S0, K, r, sigma = p
    n = 5
    dt = 1.0 / n
    u = np.exp(sigma * np.sqrt(dt))
    d = 1 / u
    q = (np.exp(r * dt) - d) / (u - d)
    prices = np.zeros((n + 1, n + 1))
    for i in range(n + 1):
        prices[i, n] = max(S0 * u ** (n - i) * d**i - K, 0.0)
    for j in range(n - 1, -1, -1):
        for i in range(j + 1):
            prices[i, j] = np.exp(-r * dt) * (q * prices[i, j + 1] + (1 - q) * prices[i + 1, j + 1])
    return prices[0, 0]


@program(positive(3))
def monte_carlo(np, p):
    rng = np.random.RandomState(0)
    S = np.full(50, p[0])
    for _ in range(4):
        S = S * np.exp((p[1] - 0.5 * p[2] ** 2) * 0.25 + p[2] * 0.5 * rng.normal(size=50))
    return np.mean(np.maximum(S - 1.0, 0)), np.percentile(S, 5)


@program(drawn(20, 3), positive(3))
def portfolio(np, returns, w):
    w = w / np.sum(w)
    cov = np.cov(returns, rowvar=False)
    sigma = np.sqrt(w.T @ cov @ w)
    mean = np.average(returns, axis=0) @ w
    drawdown = np.maximum.accumulate(np.cumsum(returns @ w)) - np.cumsum(returns @ w)
    return np.array([mean / sigma, sigma, np.max(drawdown)])


@program(positive(6), positive(1))
def present_value(np, flows, rate):
    return np.sum(flows / (1 + rate) ** np.arange(len(flows)))


@program(positive(8))
def volatility(np, prices):
    log_returns = np.diff(np.log(prices))
    var = np.zeros(len(log_returns))
    var[0] = np.var(log_returns)
    for t in range(1, len(var)):
        var[t] = 0.1 + 0.2 * log_returns[t - 1] ** 2 + 0.7 * var[t - 1]
    return np.sqrt(var)


# -- machine learning --------------------------------------------------------------------------------------------------


@program(drawn(6, 3), drawn(3, 4), drawn(4, 2))
def two_layers(np, X, W1, W2):
    hidden = np.maximum(0, X @ W1)
    scores = hidden @ W2
    exp = np.exp(scores - np.max(scores, axis=1, keepdims=True))
    probs = exp / np.sum(exp, axis=1, keepdims=True)
    y = np.array([0, 1, 1, 0, 1, 0])
    return -np.log(probs[np.arange(6), y]).mean()


@program(drawn(4, 2), drawn(5, 3), drawn(3, 3))
def recurrent(np, xs, Wx, Wh):
    h = np.zeros((3,))
    hs = []
    for x in xs:
        x = np.append(x, [1.0, 0.0, 0.5])
        h = np.tanh(np.dot(x, Wx) + np.dot(h, Wh))
        hs.append(h)
    return np.vstack(hs)


@program(drawn(5, 2), drawn(3, 2))
def soft_kmeans(np, X, centres):
    for _ in range(3):
        d = ((X[:, np.newaxis, :] - centres[np.newaxis]) ** 2).sum(axis=2)
        r = np.exp(-d)
        r /= r.sum(axis=1)[:, None]
        centres = (r.T @ X) / r.sum(axis=0).reshape(-1, 1)
    return centres


@program(drawn(6, 2), positive(2))
def gaussian_mixture(np, X, scale):
    total = np.zeros(len(X))
    for k, mean in enumerate(np.array([[0.0, 0.0], [1.0, 1.0]])):
        cov = np.eye(2) * scale[k]
        diff = X - mean
        quad = np.einsum("ij,jk,ik->i", diff, np.linalg.inv(cov), diff)
        total += 0.5 * np.exp(-0.5 * quad) / np.sqrt((2 * np.pi) ** 2 * np.linalg.det(cov))
    return np.sum(np.log(total))


@program(drawn(6, 2), drawn(6), positive(2))
def gaussian_process(np, X, y, p):
    sq = np.sum(X**2, 1).reshape(-1, 1) + np.sum(X**2, 1) - 2 * np.dot(X, X.T)
    K = p[0] ** 2 * np.exp(-0.5 * sq) + p[1] ** 2 * np.eye(len(X))
    L = np.linalg.cholesky(K)
    alpha = np.linalg.solve(L.T, np.linalg.solve(L, y))
    return 0.5 * y.dot(alpha) + np.sum(np.log(np.diagonal(L)))


@program(drawn(8), drawn(8))
def fitted_line(np, x, y):
    coefs = np.polyfit(x, y, 1)
    residuals = y - np.polyval(coefs, x)
    return np.r_[coefs, np.std(residuals), np.corrcoef(x, y)[0, 1]]


@program(drawn(6, 3))
def principal_components(np, X):
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    values, vectors = np.linalg.eigh(np.cov(Z.T))
    order = np.argsort(values)[::-1]
    return np.abs(Z @ vectors[:, order[:2]])


@program(drawn(3, 4, 2), drawn(2, 2))
def attention(np, x, W):
    q, k, v = x @ W, x @ W.T, x
    scores = np.matmul(q, k.transpose(0, 2, 1)) / np.sqrt(2)
    mask = np.triu(np.ones((4, 4)), k=1).astype(bool)
    scores = np.where(mask, -1e9, scores)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights = weights / weights.sum(-1, keepdims=True)
    return np.matmul(weights, v)


@program(drawn(2, 5, 5), drawn(3, 2, 2, 2))
def convolution_layer(np, image, filters):
    windows = np.lib.stride_tricks.sliding_window_view(image, (2, 2), axis=(1, 2))
    out = np.tensordot(filters, windows, axes=([1, 2, 3], [0, 3, 4]))
    pooled = out.reshape(3, 2, 2, 2, 2).max(axis=(2, 4))
    return pooled


# -- dynamic programming -----------------------------------------------------------------------------------------------


@program(drawn(5), drawn(4))
def soft_warping(np, a, b):
    R = np.full((6, 5), 1e8)
    R[0, 0] = 0.0
    for i in range(1, 6):
        for j in range(1, 5):
            previous = np.array([R[i - 1, j], R[i, j - 1], R[i - 1, j - 1]])
            low = np.min(previous)
            R[i, j] = (a[i - 1] - b[j - 1]) ** 2 + low - 0.1 * np.log(np.sum(np.exp(-(previous - low) / 0.1)))
    return R[5, 4]


@program(positive(4, 5))
def least_path(np, cost):
    table = np.zeros_like(cost)
    table[0, 0] = cost[0, 0]
    for j in range(1, 5):
        table[0, j] = table[0, j - 1] + cost[0, j]
    for i in range(1, 4):
        table[i, 0] = table[i - 1, 0] + cost[i, 0]
        for j in range(1, 5):
            table[i, j] = cost[i, j] + min(table[i - 1, j], table[i, j - 1])
    return table[-1, -1]


@program(drawn(3, 3), drawn(5, 3))
def viterbi(np, transition, emission):
    score = emission[0]
    back = np.zeros((5, 3), dtype=int)
    for t in range(1, 5):
        total = score[:, None] + transition
        back[t] = np.argmax(total, axis=0)
        score = np.max(total, axis=0) + emission[t]
    path = [int(np.argmax(score))]
    for t in range(4, 0, -1):
        path.insert(0, int(back[t, path[0]]))
    return np.max(score) + emission[range(5), path].sum()


@program(positive(3), positive(3, 3), positive(3, 2))
def hidden_markov(np, start, A, B):
    start, A, B = start / start.sum(), A / A.sum(axis=1, keepdims=True), B / B.sum(axis=1, keepdims=True)
    alpha = np.zeros((4, 3))
    observed = [0, 1, 1, 0]
    alpha[0, :] = start * B[:, observed[0]]
    for t in range(1, 4):
        for j in range(3):
            alpha[t, j] = alpha[t - 1].dot(A[:, j]) * B[j, observed[t]]
    return np.log(alpha[-1].sum())


@program(positive(4, 4))
def floyd_warshall(np, weights):
    dist = weights.copy()
    np.fill_diagonal(dist, 0)
    for k in range(4):
        dist = np.minimum(dist, dist[:, k, np.newaxis] + dist[np.newaxis, k, :])
    return dist


@program(positive(5))
def knapsack(np, values):
    sizes = [1, 2, 3, 2, 2]
    best = np.zeros((6, 7))
    for i in range(1, 6):
        for w in range(7):
            best[i][w] = best[i - 1][w]
            if sizes[i - 1] <= w:
                best[i][w] = max(best[i][w], best[i - 1][w - sizes[i - 1]] + values[i - 1])
    return best[5][6]


@program(positive(3, 2, 3), drawn(3, 2))
def value_iteration(np, P, R):
    P = P / P.sum(axis=2, keepdims=True)
    V = np.zeros(3)
    for _ in range(6):
        Q = R + 0.9 * np.einsum("sat,t->sa", P, V)
        V = Q.max(axis=1)
    return V


@program(drawn(6))
def sorted_by_insertion(np, a):
    a = np.array(a)
    for i in range(1, len(a)):
        for j in range(i, 0, -1):
            if a[j - 1] > a[j]:
                a[[j - 1, j]] = a[[j, j - 1]]
    return a * np.arange(1.0, len(a) + 1)


def parts(result):
    return [numpy.asarray(part.detach().numpy() if isinstance(part, vg.Tensor) else part)
            for part in (result if isinstance(result, tuple) else (result,))]  # fmt: skip


def test_at_least_fifty_programs_are_tested():
    assert len(PROGRAMS) >= 50


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_compute_the_same_on_arrays_and_tensors(name):
    function, arguments = PROGRAMS[name]
    expected = parts(function(numpy, *(argument.copy() for argument in arguments)))
    leaves = [vg.Tensor(argument, requires_grad=True) for argument in arguments]
    # A program writes to its own copies, as to arguments.
    results = function(viewgrad.numpy, *(leaf * 1.0 for leaf in leaves))
    for found, right in zip(parts(results), expected, strict=True):
        numpy.testing.assert_allclose(found, right, rtol=1e-9, atol=1e-12)
    rng = numpy.random.default_rng(1)
    weights = [rng.standard_normal(part.shape) for part in expected]
    outputs = results if isinstance(results, tuple) else (results,)
    gradients = grad(sum((part * w).sum() for part, w in zip(outputs, weights)), leaves)
    directions = [rng.standard_normal(argument.shape) for argument in arguments]

    def along(step):
        moved = [argument + step * direction for argument, direction in zip(arguments, directions)]
        return sum((part * w).sum() for part, w in zip(parts(function(numpy, *moved)), weights))

    slope = (along(1e-6) - along(-1e-6)) / 2e-6
    exact = sum((gradient.numpy() * direction).sum() for gradient, direction in zip(gradients, directions))
    assert exact == pytest.approx(slope, rel=1e-4, abs=1e-5)
