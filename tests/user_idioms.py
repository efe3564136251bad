"""Programs as users of Python write them: lists, dicts, classes, closures, iterators, exceptions."""
# ruff: noqa: B007, C416, C417, F841, RUF007, RUF012, RUF059  # written as users write

from __future__ import annotations

import heapq
import itertools
import math
import operator
from collections import defaultdict, deque, namedtuple
from dataclasses import dataclass
from functools import partial, reduce
from itertools import accumulate, combinations, pairwise, permutations, product

import numpy as np
from user_cases import case, matrix, positive, vector


@dataclass
class Params:
    k: float
    m: np.ndarray

State = namedtuple("State", "x v")

@case(lambda r, n: (vector(r, n), 0.4))
def with_dataclass_inside(x, k):
    p = Params(k=k * 2, m=np.abs(x) + 1)
    e = 0.0
    for i in range(len(x)):
        e += 0.5 * p.k * x[i] ** 2 / p.m[i]
    return e

@case(lambda r, n: (vector(r, n), 0.4))
def with_namedtuple(x, k):
    s = State(0.0, 1.0)
    for f in x:
        v = s.v + 0.1 * (f - k * s.x)
        s = State(s.x + 0.1 * v, v)
    return s.x + s.v

@case(lambda r, n: (vector(r, n), 0.4))
def with_namedtuple_replace(x, k):
    s = State(x=0.0, v=k)
    for f in x:
        s = s._replace(v=s.v + 0.1 * f)
        s = s._replace(x=s.x + 0.1 * s.v)
    return s

class Oscillator:
    damping = 0.1
    def __init__(self, k, m=1.0):
        self.k = k
        self.m = m
        self.x = 1.0
        self.v = 0.0
    def acceleration(self):
        return -(self.k * self.x + self.damping * self.v) / self.m
    def step(self, dt):
        a = self.acceleration()
        self.v += a * dt
        self.x += self.v * dt
        return self.x
    @property
    def energy(self):
        return 0.5 * self.m * self.v ** 2 + 0.5 * self.k * self.x ** 2

@case(lambda r, n: (1.5, n), (5, 8))
def with_class(k, n):
    o = Oscillator(k, m=2.0)
    for _ in range(n):
        o.step(0.1)
    return o.energy

@case(lambda r, n: ({"k": 1.5, "x": vector(r, n)},))
def with_dict_argument(p):
    return (p["x"] ** 2).sum() * p["k"]

@case(lambda r, n: (vector(r, n),))
def with_dict_state(x):
    state = {"m": 0.0, "v": 0.0, "t": 0}
    for g in x:
        state["t"] += 1
        state["m"] = 0.9 * state["m"] + 0.1 * g
        state["v"] = 0.99 * state["v"] + 0.01 * g * g
    mhat = state["m"] / (1 - 0.9 ** state["t"])
    return mhat / (np.sqrt(state["v"]) + 1e-8)

@case(lambda r, n: (vector(r, n), vector(r, n)))
def adam(w0, target):
    w = w0.copy()
    m = np.zeros_like(w)
    v = np.zeros_like(w)
    b1, b2, lr, eps = 0.9, 0.999, 0.05, 1e-8
    for t in range(1, 8):
        g = 2 * (w - target)
        m = b1 * m + (1 - b1) * g
        v = b2 * v + (1 - b2) * g ** 2
        mh = m / (1 - b1 ** t)
        vh = v / (1 - b2 ** t)
        w = w - lr * mh / (np.sqrt(vh) + eps)
    return ((w - target) ** 2).sum()

@case(lambda r, n: (vector(r, n),))
def closure_counter(x):
    count = 0
    total = 0.0
    def add(v):
        nonlocal count, total
        if v > 0:
            count += 1
            total += v
    for v in x:
        add(v)
    return total / max(count, 1)

@case(lambda r, n: (vector(r, n), 0.5))
def star_args(x, a):
    def combine(*parts, scale=1.0, **rest):
        s = 0.0
        for p in parts:
            s += p
        return s * scale + rest.get("bias", 0.0)
    out = 0.0
    for i in range(len(x) - 2):
        out += combine(x[i], x[i + 1] * 2, x[i + 2], scale=a, bias=a * a)
    return out

@case(lambda r, n: (vector(r, n), "tanh"))
def string_option(x, kind):
    if kind == "tanh":
        f = np.tanh
    elif kind == "relu":
        f = lambda z: np.maximum(z, 0)
    else:
        raise ValueError(kind)
    return f(x).sum()

@case(lambda r, n: (vector(r, n), "relu"))
def string_option_dict(x, kind):
    table = {"tanh": np.tanh, "relu": lambda z: np.where(z > 0, z, 0.0), "none": lambda z: z}
    y = x
    for _ in range(3):
        y = table[kind](y) * 1.1
    return y.sum()

@case(lambda r, n: (vector(r, n),))
def walrus(x):
    total = 0.0
    i = 0
    while (i := i + 1) < len(x):
        if (d := x[i] - x[i - 1]) > 0:
            total += d * d
        else:
            total -= 0.5 * d
    return total

@case(lambda r, n: (vector(r, n), 0.2, 1.1))
def chained(x, lo, hi):
    s = 0.0
    for v in x:
        if lo < v < hi:
            s += v * v
        elif -hi <= v <= -lo:
            s -= v
        elif not (v < 0):
            s += 1.0
    return s

@case(lambda r, n: (vector(r, n), vector(r, n), vector(r, n)))
def zips(a, b, c):
    s = 0.0
    for i, (x, y, z) in enumerate(zip(a, b[::-1], reversed(c))):
        s += x * y - z * i
    return s

@case(lambda r, n: (vector(r, n),))
def sorted_values(x):
    s = 0.0
    for rank, v in enumerate(sorted(x, reverse=True), start=1):
        s += v / rank
    return s

@case(lambda r, n: (vector(r, n),))
def sorted_key(x):
    order = sorted(range(len(x)), key=lambda i: x[i])
    s = 0.0
    for rank, i in enumerate(order):
        s += rank * x[i]
    return s

@case(lambda r, n: (vector(r, n),))
def max_key(x):
    i = max(range(len(x)), key=lambda k: abs(x[k]))
    return x[i] * i

@case(lambda r, n: (vector(r, n),))
def min_key_values(x):
    v = min(x, key=lambda t: (t - 0.3) ** 2)
    w = max(x, key=abs)
    return v * w

@case(lambda r, n: (vector(r, n),))
def max_default(x):
    pos = [v for v in x if v > 0.5]
    return max(pos, default=0.0) + min((v for v in x if v < 0), default=-1.0)

@case(lambda r, n: (r.normal(size=(n, n)),), (3, 4))
def ndindex_loop(a):
    s = 0.0
    for i, j in np.ndindex(a.shape):
        s += a[i, j] * (i - 2 * j)
    return s

@case(lambda r, n: (r.normal(size=(n, n + 1)),), (3, 4))
def ndenumerate_loop(a):
    s = 0.0
    for (i, j), v in np.ndenumerate(a):
        s += v * v * (i + j)
    return s

@case(lambda r, n: (r.normal(size=(n, n)),), (3, 4))
def product_loop(a):
    out = np.zeros_like(a)
    for i, j in itertools.product(range(a.shape[0]), range(1, a.shape[1])):
        out[i, j] = a[i, j] - a[i, j - 1]
    return out

@case(lambda r, n: (r.normal(size=(n, 2)),), (4, 6))
def combinations_loop(x):
    s = 0.0
    for i, j in itertools.combinations(range(len(x)), 2):
        d = x[i] - x[j]
        s += np.exp(-(d @ d))
    return s

@case(lambda r, n: (vector(r, n),))
def pairwise_loop(x):
    s = 0.0
    for a, b in itertools.pairwise(x):
        s += (b - a) ** 2
    return s

@case(lambda r, n: (vector(r, n),))
def accumulate_loop(x):
    s = 0.0
    for c in itertools.accumulate(x):
        s += np.sin(c)
    return s

@case(lambda r, n: (vector(r, n),))
def reduce_call(x):
    return reduce(lambda a, b: a * 0.5 + b, x, 0.0) + reduce(operator.mul, [x[0], x[1], x[2]])

@case(lambda r, n: (vector(r, n),))
def lists_of_lists(x):
    n = len(x)
    a = [[0.0] * n for _ in range(n)]
    for i in range(n):
        for j in range(n):
            a[i][j] = x[i] * x[j] if i <= j else a[j][i]
    s = 0.0
    for row in a:
        for v in row:
            s += v
    return s + a[0][-1]

@case(lambda r, n: (r.normal(size=(n, n)),), (3, 4))
def list_matrix_det(a):
    m = a.tolist() if False else [[a[i, j] for j in range(len(a))] for i in range(len(a))]
    n = len(m)
    det = 1.0
    for k in range(n):
        det *= m[k][k]
        for i in range(k + 1, n):
            f = m[i][k] / m[k][k]
            for j in range(k, n):
                m[i][j] -= f * m[k][j]
    return det

@case(lambda r, n: (vector(r, n),))
def pascal_triangle(x):
    rows = [[1.0]]
    for n in range(1, len(x)):
        prev = rows[-1]
        row = [1.0]
        for k in range(1, n):
            row.append(prev[k - 1] + prev[k] * x[n])
        row.append(1.0)
        rows.append(row)
    return sum(rows[-1])

@case(lambda r, n: (vector(r, n),))
def buckets(x):
    groups = [[], [], []]
    for v in x:
        if v < -0.5:
            groups[0].append(v)
        elif v < 0.5:
            groups[1].append(v)
        else:
            groups[2].append(v)
    s = 0.0
    for k, g in enumerate(groups):
        for v in g:
            s += (k + 1) * v * v
    return s

@case(lambda r, n: (vector(r, n),))
def stack_machine(x):
    stack = []
    for i, v in enumerate(x):
        stack.append(v)
        while len(stack) >= 2 and stack[-1] > stack[-2]:
            b = stack.pop()
            a = stack.pop()
            stack.append(a * 0.5 + b)
    return sum(stack)

@case(lambda r, n: (vector(r, n),))
def queue(x):
    q = [x[0]]
    out = 0.0
    k = 0
    while q and k < 10:
        v = q.pop(0)
        out += v
        k += 1
        if v > 0 and k < len(x):
            q.append(v * 0.5)
            q.append(x[k])
    return out

@case(lambda r, n: (vector(r, n),))
def while_else(x):
    i = 0
    while i < len(x):
        if x[i] > 2.5:
            break
        i += 1
    else:
        return x.sum()
    return x[i]

@case(lambda r, n: (vector(r, n),))
def for_else(x):
    for i in range(len(x)):
        if x[i] > 1.0:
            idx = i
            break
    else:
        idx = -1
    return x[idx] * 2

@case(lambda r, n: (vector(r, n),))
def early_return(x):
    s = 0.0
    for v in x:
        s += v
        if s > 1.0:
            return s * 2
        if s < -1.5:
            return -s
    return s ** 2

@case(lambda r, n: (vector(r, n),))
def try_except(x):
    total = 0.0
    for v in x:
        try:
            if v < 0:
                raise ValueError("negative")
            total += math.sqrt(v)
        except ValueError:
            total -= v
    return total

@case(lambda r, n: (vector(r, n),))
def try_index(x):
    s = 0.0
    for i in range(0, len(x), 2):
        try:
            s += x[i] * x[i + 1]
        except IndexError:
            s += x[i]
    return s

@case(lambda r, n: (vector(r, n),))
def try_math_domain(x):
    s = 0.0
    for v in x:
        try:
            s += math.log(v)
        except ValueError:
            s += v * 0.1
    return s

@case(lambda r, n: (vector(r, n),))
def try_zero_division(x):
    s = 0
    for i, v in enumerate(x):
        try:
            s += v * (10 // (i - 2))
        except ZeroDivisionError:
            s += v
    return s

@case(lambda r, n: (vector(r, n), 0.5))
def and_or_values(x, a):
    scale = a and a * 2
    off = 0.0 or a * 3
    s = 0.0
    for v in x:
        w = (v > 0 and v) or -v * 0.5
        s += w * scale + off
    return s

@case(lambda r, n: (vector(r, n), 0.5))
def bool_arithmetic(x, a):
    s = 0.0
    n = 0
    for v in x:
        s += (v > 0) * v - (v < 0) * a
        n += v > a
        n += bool(v)
    return s / n + True

@case(lambda r, n: (vector(r, n),))
def conditional_mix(x):
    s = 0
    for v in x:
        s += v if v > 0 else 0
    return s

@case(lambda r, n: (vector(r, n), None))
def none_default(x, w=None):
    if w is None:
        w = np.ones(len(x)) / len(x)
    return np.sum(w * x ** 2)

@case(lambda r, n: (vector(r, n),))
def best_so_far(x):
    best = None
    where = None
    for i, v in enumerate(x):
        if best is None or v > best:
            best = v
            where = i
    return best * (where + 1)

@case(lambda r, n: (vector(r, n),))
def any_all(x):
    if any(v > 2 for v in x):
        return x.max()
    if all(v > -1.5 for v in x):
        return x.min()
    return x.sum()

@case(lambda r, n: (vector(r, n), 3))
def recursion_power(x, k):
    def power(v, k):
        out = 1.0
        while k > 0:
            if k % 2:
                out = out * v
            v = v * v
            k //= 2
        return out
    return sum(power(v, k) for v in x)

def fib_rec(a, n):
    if n < 2:
        return a
    return fib_rec(a, n - 1) * 0.5 + fib_rec(a, n - 2)

@case(lambda r, n: (0.7,))
def recursion_known(a):
    return fib_rec(a, 5)

@case(lambda r, n: (vector(r, n),))
def divide_conquer(x):
    def total(lo, hi):
        if hi - lo == 1:
            return x[lo]
        mid = (lo + hi) // 2
        return total(lo, mid) + 0.5 * total(mid, hi)
    return total(0, len(x))

@case(lambda r, n: (vector(r, n),))
def partial_use(x):
    def f(a, b, c):
        return a * b + c
    g = partial(f, 2.0, c=0.5)
    return sum(g(v) for v in x)

@case(lambda r, n: (vector(r, n),))
def map_filter(x):
    return sum(map(lambda v: v * v, filter(lambda v: v > 0, x)))

@case(lambda r, n: (vector(r, n),))
def unpack_star(x):
    first, *rest, last = [x[0], x[1], x[2], x[3]]
    a, b = rest
    return first * a - b * last

@case(lambda r, n: (vector(r, n),))
def swap_rotate(x):
    a, b, c = x[0], x[1], x[2]
    for v in x[3:]:
        a, b, c = b, c, a * 0.5 + v
    return a + 2 * b + 3 * c

@case(lambda r, n: (vector(r, n),))
def string_format(x):
    s = 0.0
    msgs = []
    for i in range(3):
        name = f"x{i}"
        s += x[i] * len(name)
    return s

@case(lambda r, n: (vector(r, n), False))
def flag_args(x, normalize, eps=1e-3):
    y = x - x.mean() if normalize else x
    if not normalize and len(x) > 7:
        y = y / (np.std(y) + eps)
    return (y ** 3).sum()

@case(lambda r, n: (vector(r, n),))
def nested_functions(x):
    def outer(a):
        def inner(b):
            return a * b + len(x)
        return inner
    f = outer(x[0])
    g = outer(x[1])
    return f(x[2]) + g(x[3]) * f(1.0)

@case(lambda r, n: (vector(r, n),))
def function_list(x):
    fs = [np.sin, np.cos, lambda z: z ** 2]
    s = 0.0
    for i, f in enumerate(fs):
        s += f(x[i]) * (i + 1)
    for f in fs[::-1]:
        s = f(s)
    return s

@case(lambda r, n: (vector(r, n),))
def mutable_default_like(x):
    hist = []
    def record(v, store=hist):
        store.append(v * 2)
    for v in x:
        record(v)
    return hist[-1] + hist[0] * len(hist)

@case(lambda r, n: (vector(r, n),))
def global_const(x):
    return (x * GAIN).sum() + OFFSETS[1] * x[0]
GAIN = 0.37
OFFSETS = [1.0, 2.0, 3.0]

@case(lambda r, n: (vector(r, n), 2))
def match_stmt(x, mode):
    match mode:
        case 0:
            return x.sum()
        case 1 | 2:
            y = x ** 2
        case _:
            y = x
    return y.mean()

@case(lambda r, n: (vector(r, n),))
def dict_counts(x):
    counts = {"neg": 0, "pos": 0}
    s = {"neg": 0.0, "pos": 0.0}
    for v in x:
        k = "neg" if v < 0 else "pos"
        counts[k] += 1
        s[k] += v
    return s["neg"] * counts["pos"] - s["pos"]

@case(lambda r, n: (vector(r, n),))
def memo_dict(x):
    memo = {}
    for i in range(len(x)):
        if i < 2:
            memo[i] = x[i]
        else:
            memo[i] = memo[i - 1] + 0.5 * memo[i - 2] * x[i]
    return memo[len(x) - 1]

@case(lambda r, n: (vector(r, n),))
def set_use(x):
    seen = set()
    s = 0.0
    for i in [0, 1, 1, 2, 0, 3]:
        if i in seen:
            continue
        seen.add(i)
        s += x[i]
    return s

@case(lambda r, n: (vector(r, n), vector(r, n + 2)), (4, 6))
def dtw_lists(a, b):
    n, m = len(a), len(b)
    D = [[float("inf")] * (m + 1) for _ in range(n + 1)]
    D[0][0] = 0.0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            D[i][j] = abs(a[i - 1] - b[j - 1]) + min(D[i - 1][j], D[i][j - 1], D[i - 1][j - 1])
    return D[-1][-1]
@case(lambda r, n: (vector(r, n), vector(r, n + 2)), (4, 6))
def edit_two_rows(a, b):
    prev = [0.5 * j for j in range(len(b) + 1)]
    for i in range(1, len(a) + 1):
        cur = [0.5 * i] + [0.0] * len(b)
        for j in range(1, len(b) + 1):
            cur[j] = min(prev[j] + 0.5, cur[j - 1] + 0.5, prev[j - 1] + abs(a[i - 1] - b[j - 1]))
        prev = cur
    return prev[-1]
@case(lambda r, n: (vector(r, n), vector(r, n + 2)), (4, 6))
def two_rows_swapped(a, b):
    prev = [0.0] * (len(b) + 1)
    cur = [0.0] * (len(b) + 1)
    for i in range(len(a)):
        cur[0] = prev[0] + 0.5
        for j in range(len(b)):
            cur[j + 1] = max(prev[j] + a[i] * b[j], cur[j], prev[j + 1])
        prev, cur = cur, prev
    return sum(prev)
@case(lambda r, n: (matrix(r, n) + 3 * np.eye(n), vector(r, n)), (3, 5))
def gauss_lists(A, b):
    n = len(b)
    M = [[A[i, j] for j in range(n)] + [b[i]] for i in range(n)]
    for k in range(n):
        p = max(range(k, n), key=lambda r: abs(M[r][k]))
        M[k], M[p] = M[p], M[k]
        for i in range(k + 1, n):
            f = M[i][k] / M[k][k]
            for j in range(k, n + 1):
                M[i][j] -= f * M[k][j]
    x = [0.0] * n
    for i in range(n - 1, -1, -1):
        s = M[i][n]
        for j in range(i + 1, n):
            s -= M[i][j] * x[j]
        x[i] = s / M[i][i]
    return np.array(x)
@case(lambda r, n: (matrix(r, n), matrix(r, n)), (3, 4))
def matmul_lists(A, B):
    n = len(A)
    C = [[0] * n for _ in range(n)]
    for i in range(n):
        for j in range(n):
            for k in range(n):
                C[i][j] += A[i][k] * B[k][j]
    return np.array(C)
@case(lambda r, n: (vector(r, n),), (4, 5))
def shared_rows(x):
    rows = [[0.0] * 3] * 2
    for i in range(len(x)):
        rows[i % 2][i % 3] += x[i]
    return rows[0][0] * rows[1][0] + rows[0][1]
@case(lambda r, n: (vector(r, n),), (5, 8))
def aliasing(x):
    rows = []
    row = [x[0]]
    for i in range(1, len(x)):
        if x[i] > 0:
            rows.append(row)
            row = []
        row.append(x[i])
    rows.append(row)
    rows[-1].append(2.0)
    row[0] = row[0] * 3
    total = 0.0
    for r in rows:
        total += sum(r) * len(r)
    return total
@case(lambda r, n: (vector(r, n), r.integers(0, 4, n)), (6, 9))
def adjacency(w, to):
    n = len(w)
    adj = [[] for _ in range(n)]
    for u in range(n):
        v = int(to[u])
        adj[u].append((v, w[u]))
        adj[v].append((u, w[u] * 0.5))
    dist = [1e9] * n
    dist[0] = 0.0
    stack = [0]
    while stack:
        u = stack.pop()
        for v, c in adj[u]:
            if dist[u] + abs(c) + 0.01 < dist[v]:
                dist[v] = dist[u] + abs(c) + 0.01
                stack.append(v)
    return sum(d for d in dist if d < 1e8)
@case(lambda r, n: (vector(r, n),), (5, 8))
def ragged(x):
    tri = []
    for i in range(len(x)):
        row = [x[i]]
        for j in range(i):
            row.append(row[-1] * 0.5 + tri[i - 1][j])
        tri.append(row)
    return tri[-1][-1] + len(tri[2]) * tri[2][1]
@case(lambda r, n: (vector(r, n), 3), (5, 8))
def cube(x, k):
    n = len(x)
    t = [[[0.0] * k for _ in range(n)] for _ in range(2)]
    for i in range(n):
        for j in range(k):
            t[0][i][j] = x[i] * (j + 1)
            t[1][i][j] = t[0][i][j] ** 2
    return sum(t[1][i][j] - t[0][i][0] for i in range(n) for j in range(k))
@case(lambda r, n: (vector(r, n),), (5, 8))
def int_table(x):
    n = len(x)
    lis = [1] * n
    w = [v for v in x]
    for i in range(n):
        for j in range(i):
            if x[j] < x[i] and lis[j] + 1 > lis[i]:
                lis[i] = lis[j] + 1
                w[i] = w[j] + x[i]
    k = lis.index(max(lis))
    return w[k] * lis[k]
@case(lambda r, n: (vector(r, n),), (5, 8))
def slices_of_lists(x):
    a = [v * v for v in x]
    b = a[1:-1] + [x[0]]
    c = a[::-1]
    rows = [[v, v + 1] for v in x]
    part = rows[1:]
    part[0][1] = 5.0 * x[1]
    return b[-1] + c[0] + rows[1][1] + part[-1][0] + len(part)
@case(lambda r, n: (vector(r, n),), (5, 8))
def merge_sort(x):
    a = list(x)
    width = 1
    n = len(a)
    while width < n:
        out = []
        i = 0
        while i < n:
            left = a[i:i + width]
            right = a[i + width:i + 2 * width]
            p = q = 0
            while p < len(left) and q < len(right):
                if left[p] <= right[q]:
                    out.append(left[p])
                    p += 1
                else:
                    out.append(right[q])
                    q += 1
            out += left[p:]
            out += right[q:]
            i += 2 * width
        a = out
        width *= 2
    return sum((k + 1) * v for k, v in enumerate(a))
@case(lambda r, n: (vector(r, n),), (5, 8))
def grid_paths(x):
    n = len(x)
    grid = [[x[i] * x[j] for j in range(n)] for i in range(n)]
    for i in range(n):
        for j in range(n):
            if i == 0 and j == 0:
                continue
            up = grid[i - 1][j] if i > 0 else float("inf")
            left = grid[i][j - 1] if j > 0 else float("inf")
            grid[i][j] += min(up, left)
    return grid[n - 1][n - 1]
@case(lambda r, n: (vector(r, n),), (5, 8))
def transpose_zip(x):
    rows = [[v, 2 * v, v * v] for v in x]
    cols = [list(c) for c in zip(*rows)]
    return sum(cols[2]) + cols[1][0]
@case(lambda r, n: (vector(r, n),), (5, 8))
def list_swap_rows(x):
    m = [[v, v ** 2] for v in x]
    tmp = m[0]
    m[0] = m[-1]
    m[-1] = tmp
    tmp[0] = 7.0
    s = 0.0
    for i, (p, q) in enumerate(m):
        s += i * p + q
    return s
@case(lambda r, n: (vector(r, n),), (5, 8))
def history(x):
    h = []
    for v in x:
        h.append([v, v * v])
    a = np.array(h)
    return (a[:, 0] * a[::-1, 1]).sum()
@case(lambda r, n: (vector(r, n),), (5, 8))
def ziplist(x):
    a = [v for v in x if v > -1]
    b = [[v] * 2 for v in x]
    s = 0.0
    for u, (p, q) in zip(a, b):
        s += u * p - q
    for i, row in enumerate(b):
        for j, v in enumerate(row):
            s += v * (i - j)
    return s
@case(lambda r, n: (vector(r, n),), (5, 8))
def grow_while_iterating(x):
    rows = [[x[0]], [x[1]]]
    for r in rows:
        if len(rows) < 5:
            rows.append([r[0] * 0.5])
    s = 0.0
    for r in rows:
        for v in r:
            if len(r) < 4:
                r.append(v + 1)
            s += v
    return s
@case(lambda r, n: (vector(r, n),), (5, 8))
def out_of_range(x):
    a = [[v] for v in x]
    try:
        return a[len(x)][0]
    except IndexError:
        return a[0][0] * a[-1][-1]
@case(lambda r, n: (r.random((n, n)),), (5, 7))
def dijkstra_heap(w):
    n = len(w)
    dist = [math.inf] * n
    dist[0] = 0.0
    pq = [(0.0, 0)]
    while pq:
        d, u = heapq.heappop(pq)
        if d > dist[u]:
            continue
        for v in range(n):
            if v != u and dist[u] + w[u, v] < dist[v]:
                dist[v] = dist[u] + w[u, v]
                heapq.heappush(pq, (dist[v], v))
    return sum(dist)

@case(lambda r, n: (vector(r, n),), (5, 8))
def heap_sort(x):
    h = []
    for v in x:
        heapq.heappush(h, v)
    s, k = 0.0, 1
    while len(h) > 0:
        s += heapq.heappop(h) * k
        k += 1
    return s

@case(lambda r, n: (vector(r, n),), (5, 8))
def heapify_it(x):
    h = list(x)
    heapq.heapify(h)
    return h[0] * 2 + h[1] + h[-1] * 3

@case(lambda r, n: (vector(r, n), r.integers(0, 3, n)), (6, 9))
def sort_stable_ties(x, g):
    idx = sorted(range(len(x)), key=lambda i: g[i])
    jdx = sorted(range(len(x)), key=lambda i: g[i], reverse=True)
    s = 0.0
    for r, (i, j) in enumerate(zip(idx, jdx)):
        s += r * x[i] + r * r * x[j]
    return s

@case(lambda r, n: (vector(r, n), r.integers(0, 3, n)), (6, 9))
def sort_pairs(x, g):
    pairs = sorted(zip(g, x))
    best = max(pairs)
    low = min(pairs, key=lambda p: p[1])
    s = 0.0
    for k, (a, b) in enumerate(pairs):
        s += k * b + a
    return s * best[1] + low[0] * low[1]

@case(lambda r, n: (vector(r, n), r.integers(0, 3, n)), (6, 9))
def sort_key_tuple(x, g):
    items = [(x[i], int(g[i]), i) for i in range(len(x))]
    items.sort(key=lambda t: (-t[1], t[0]))
    return sum(k * t[0] for k, t in enumerate(items)) + items[0][2]

@case(lambda r, n: (vector(r, n),), (6, 9))
def max_ties(x):
    i = max(range(len(x)), key=lambda k: k % 3)
    j = min(range(len(x)), key=lambda k: k % 3)
    k = max([2, 0, 1], key=lambda k: -k)
    return x[i] * 2 + x[j] * 3 + x[k]

@case(lambda r, n: (vector(r, n),), (6, 9))
def max_three(x):
    return max(x[0], x[1], x[2], key=lambda v: v * v) + min(x[3], x[4], key=abs)

@case(lambda r, n: (vector(r, n),), (6, 9))
def accumulate_more(x):
    a = list(accumulate(x, lambda p, q: 0.5 * p + q))
    b = list(accumulate(x, operator.mul))
    c = list(accumulate(x, initial=1.5))
    d = list(accumulate([x[0], x[1], 2.0], max))
    return a[-1] + b[-1] + c[-2] * len(c) + d[-1]

@case(lambda r, n: (vector(r, n), matrix(r, n, 2)), (4, 6))
def reduce_more(x, m):
    r = reduce(operator.mul, x)
    t = reduce(lambda p, q: p @ q, [np.eye(2) + 0.1 * m[:2], np.eye(2), m[1:3]])
    u = reduce(lambda acc, v: (acc[0] + v, acc[1] * 0.5 + v), x, (0.0, 1.0))
    return r + t.sum() + u[0] * u[1]

@case(lambda r, n: (matrix(r, n),), (4, 5))
def product_break(a):
    s = 0.0
    for i, j in product(range(len(a)), repeat=2):
        if i == j:
            continue
        if a[i, j] > 1.2:
            break
        s += a[i, j]
    else:
        s *= 2
    return s + i + 2 * j

@case(lambda r, n: (matrix(r, n),), (4, 5))
def product_return(a):
    for i, j in np.ndindex(a.shape):
        if a[i, j] > 0.8:
            return a[i, j] * (i + 1) + j
    return a.sum()

@case(lambda r, n: (vector(r, n), vector(r, 3)), (4, 5))
def product_consumed(x, y):
    s = 0.0
    for a, b in product(x, y):
        s += a * b
        x[0] = 5.0
        y[1] = y[1] + 1
    return s + x[0]

@case(lambda r, n: (vector(r, n), vector(r, 3)), (4, 5))
def product_values(x, y):
    return sum(a * b for a, b in product(x, y)) + sum([p * q for p, q in product([x[0], x[1]], [1.0, y[0]])])

@case(lambda r, n: (vector(r, n),), (4, 5))
def enumerate_product(x):
    s = 0.0
    for k, (i, j) in enumerate(product(range(3), range(len(x)))):
        s += k * x[j] * (i + 1)
    pairs = list(combinations(range(len(x)), 2))
    for i, j in pairs:
        s -= x[i] * x[j]
    return s + len(pairs)

@case(lambda r, n: (matrix(r, n, 2),), (4, 5))
def combos_rows(p):
    s = 0.0
    for a, b in combinations(p, 2):
        s += np.sqrt(((a - b) ** 2).sum() + 0.1)
    for a, b, c in combinations(range(len(p)), 3):
        s += p[a, 0] * p[b, 1] * p[c, 0]
    return s

@case(lambda r, n: (vector(r, n),), (4, 5))
def perms(x):
    s = 0.0
    for i, j in permutations(range(len(x)), 2):
        s += x[i] * (x[j] - i)
    for a, b in itertools.combinations_with_replacement(x, 2):
        s += a * b
    return s

@case(lambda r, n: (vector(r, n),), (4, 5))
def pairwise_writes(x):
    y = x.copy()
    k = 0
    s = 0.0
    for a, b in pairwise(y):
        y[k + 1] = a * 2
        s += a * b
        k += 1
    return s + y.sum()

@case(lambda r, n: (vector(r, n),), (4, 5))
def pairwise_list(x):
    out = []
    for a, b in pairwise(x):
        out.append(b - a)
    d = [q - p for p, q in pairwise(out)]
    return sum(d) + out[0] + sum(b * a for a, b in pairwise([x[0], x[1], x[2]]))

@case(lambda r, n: (r.normal(size=(2, n, 3)),), (3, 4))
def ndindex3(a):
    b = np.zeros(a.shape)
    for i, j, k in np.ndindex(2, a.shape[1], 3):
        b[i, j, k] = a[i, j, k] * a[1 - i, j, k]
    for idx in np.ndindex(a.shape):
        b[idx] += a[idx] * idx[1]
    for idx, v in np.ndenumerate(a):
        b[idx] -= v * idx[0]
    return b.sum()

@case(lambda r, n: (vector(r, n),), (4, 6))
def int_then_float(x):
    n = len(x)
    t = [[0] * n for _ in range(n)]
    u = [[0] * n for _ in range(n)]
    for i in range(n):
        for j in range(n):
            u[i][j] = (i * j) % n
    for i in range(n):
        for j in range(i):
            t[i][j] = x[u[i][j]] * t[i - 1][j] + 1
    return t[n - 1][0] + u[1][1] // 2

@case(lambda r, n: (vector(r, n),), (4, 6))
def fn_with_lists(x):
    def fill(rows, k):
        for r in rows:
            r.append(k * len(r))
        return rows
    def total(rows):
        s = 0.0
        for r in rows:
            for v in r:
                s += v
        return s
    rows = [[v] for v in x]
    same = fill(rows, x[0])
    fill(same, 2.0)
    return total(rows) * total(rows[:2])

@case(lambda r, n: (vector(r, n),), (4, 6))
def conditional_lists(x):
    a = [x[0]]
    b = [x[1], x[2]]
    cur = a
    for v in x:
        if v > 0:
            cur = b
        else:
            cur = a
        cur.append(v)
    return sum(a) * 2 + sum(b) * len(b) + cur[-1]

@case(lambda r, n: (vector(r, n),), (4, 6))
def reset_list(x):
    buf = []
    out = []
    for v in x:
        buf.append(v)
        if len(buf) == 2:
            out.append(buf[0] * buf[1])
            buf = []
    return sum(out) + sum(buf)

@case(lambda r, n: (vector(r, n),), (4, 6))
def list_of_buffers(x):
    chunks = []
    buf = []
    for v in x:
        buf.append(v)
        if v > 0.3:
            chunks.append(buf)
            buf = []
    if buf:
        chunks.append(buf)
    return sum(max(c) * len(c) for c in chunks)

@case(lambda r, n: (vector(r, n),), (4, 6))
def list_methods(x):
    a = list(x)
    a.reverse()
    a.insert(1, 3.0)
    a.remove(3.0)
    b = a.copy()
    b[0] = 9.0 * x[0]
    del b[1]
    a.sort()
    p = b.pop(1)
    q = b.pop()
    a.extend(b)
    a += [p, q]
    return a[0] * 2 + a[-1] - a[2] + len(a) + a.count(a[0]) + a.index(a[1])

@case(lambda r, n: (vector(r, n),), (4, 6))
def rows_methods(x):
    rows = [[v, v * v, 1.0] for v in x]
    rows[0].pop()
    rows[1].pop(0)
    rows[2].insert(0, 4.0)
    rows.reverse()
    rows.insert(1, [7.0, x[0]])
    last = rows.pop()
    rows[0][0], rows[1][1] = rows[1][1], rows[0][0]
    rows[1] += [x[1]]
    rows[0] = rows[1]
    rows[1][0] = 11.0
    s = sum(last)
    for r in rows:
        s = s * 0.5 + sum(r) + len(r)
    return s

@case(lambda r, n: (vector(r, n),), (4, 6))
def dict_of_lists(x):
    d = {"pos": [], "neg": []}
    for v in x:
        if v > 0:
            d["pos"].append(v)
        else:
            d["neg"].append(v)
    return sum(d["pos"]) * len(d["neg"]) - sum(d["neg"])

@dataclass
class Box2:
    rows: list
    k: float

@case(lambda r, n: (vector(r, n),), (4, 6))
def dataclass_of_lists(x):
    b = Box2([[v] for v in x], 2.0)
    b.rows[0][0] = 3.0 * x[1]
    b.rows.append([x[2] * b.k])
    return sum(r[0] for r in b.rows)

class Net:
    def __init__(self, x):
        self.layers = []
        self.bias = [0.0] * 3
        for v in x:
            self.layers.append([v, v + 1])
    def run(self, z):
        for a, b in self.layers:
            z = np.tanh(a * z + b)
        self.bias[0] += z
        return z + self.bias[0]

@case(lambda r, n: (vector(r, n),), (4, 6))
def class_of_lists(x):
    net = Net(x)
    return net.run(0.5) + net.run(0.1)

@case(lambda r, n: (vector(r, n),), (4, 6))
def memo_rows(x):
    n = len(x)
    memo = [[-1.0] * n for _ in range(n)]
    best = 0.0
    for length in range(1, n + 1):
        for i in range(n - length + 1):
            j = i + length - 1
            if length == 1:
                memo[i][j] = x[i]
            else:
                memo[i][j] = max(x[i] - memo[i + 1][j], x[j] - memo[i][j - 1])
    return memo[0][n - 1]

@case(lambda r, n: (vector(r, n),), (4, 6))
def nested_three(x):
    t = [[[v * (i + 1)] for i in range(2)] for v in x]
    t[0][1].append(x[1])
    t[1] = t[0]
    t[0][1][0] *= 3.0
    s = 0.0
    for a in t:
        for b in a:
            for c in b:
                s += c * len(b)
    return s

@case(lambda r, n: (vector(r, n),), (4, 6))
def bools_in_lists(x):
    seen = [[False] * 2 for _ in x]
    s = 0.0
    for k in range(3 * len(x)):
        i = (k * 7) % len(x)
        if not seen[i][k % 2]:
            seen[i][k % 2] = True
            s += x[i] * (k + 1)
    return s

@case(lambda r, n: (vector(r, n), 4), (4, 6))
def known_sizes(x, m):
    t = [[0.0] * 4 for _ in range(3)]
    for i in range(3):
        for j in range(4):
            t[i][j] = x[(i + j) % len(x)] * i
    c = [[1.0, x[0]], [x[1], 2.0]]
    c[0][1] += 1
    k = int(m) % 2
    return t[2][3] + c[k][1 - k] + c[0][1] + sum(t[1])

@case(lambda r, n: (vector(r, n),), (4, 6))
def matrix_list_ops(x):
    A = [[1.0, x[0]], [x[1], 2.0]]
    B = [[0.0, 0.0], [0.0, 0.0]]
    for _ in range(3):
        for i in range(2):
            for j in range(2):
                B[i][j] = sum(A[i][k] * A[k][j] for k in range(2)) * 0.3
        A, B = B, A
    return np.array(A).sum() + np.linalg.det(np.array(B))

@case(lambda r, n: (vector(r, n),), (4, 6))
def try_in_lists(x):
    rows = [[v] for v in x]
    s = 0.0
    for k in range(len(x) + 2):
        try:
            s += rows[k][0] * (k + 1)
        except IndexError:
            s -= 1.0
    return s

@case(lambda r, n: (vector(r, n),), (4, 6))
def while_rows(x):
    rows = [[x[0]]]
    while len(rows) < 6:
        last = rows[-1]
        rows.append([v * 0.5 for v in last] + [x[len(rows) % len(x)]])
        if sum(rows[-1]) > 2.0:
            break
    return sum(rows[-1]) + len(rows)

@case(lambda r, n: (vector(r, n),), (4, 6))
def viterbi_paths(x):
    score = [0.0, 0.5]
    paths = [[0], [1]]
    for v in x:
        new_score, new_paths = [], []
        for s in range(2):
            cand = [score[p] + (v if p == s else -v * 0.5) for p in range(2)]
            best = 0 if cand[0] >= cand[1] else 1
            new_score.append(cand[best])
            new_paths.append(paths[best] + [s])
        score, paths = new_score, new_paths
    k = 0 if score[0] > score[1] else 1
    return score[k] + 0.1 * sum(paths[k])

@case(lambda r, n: (vector(r, n),), (4, 6))
def zip_rows(x):
    a = [[v, 1.0] for v in x]
    b = [[v * 2, v] for v in x[::-1]]
    s = 0.0
    for (p, q), r in zip(a, b):
        s += p * r[0] - q * r[1]
    for r1, r2 in zip(a, a[1:]):
        s += (r1[0] - r2[0]) ** 2
    return s

@case(lambda r, n: (vector(r, n), 0.5), (4, 6))
def and_or_more(x, a):
    s = 0.0
    for v in x:
        s += (v > 0 and a > 0 and v * a) or (v < -0.5 and -v) or 0.1
        w = (v < -2 or v) and v * 2
        s += w
    n = (len(x) and x[0]) or 3.0
    k = ((len(x) > 4 or a > 3) and 2) or 1
    return s + n * k

@case(lambda r, n: (vector(r, n),), (4, 6))
def array_of_ragged(x):
    rows = [[v] * (1 if v > 10 else 2) for v in x]
    a = np.array(rows)
    b = np.asarray([[0.0] * 2 for _ in x])
    b[:, 0] = a[:, 1]
    return (a * b).sum() + a.shape[1]

class Model:
    scale = 2.0
    taps = [0.5, 0.25]
    @staticmethod
    def act(z):
        return np.tanh(z)
    def __init__(self, w):
        self.w = w
    def one(self, z):
        return self.act(z * self.w) * self.scale
    def two(self, z):
        f = self.one
        return f(z) + self.taps[1] * f(-z * 0.3)

@case(lambda r, n: (vector(r, n), 0.7), (4, 6))
def class_attributes(x, w):
    m = Model(w)
    return sum(m.two(v) for v in x)

@case(lambda r, n: (vector(r, n), vector(r, n), matrix(r, n + 2, 3)), (5, 6))
def cov_more(x, y, m):
    return (np.cov(x) + np.cov(x, y, ddof=0)[0, 1] + np.cov(m, rowvar=False, bias=True)[0, 1]
            + np.corrcoef(m, rowvar=False)[1, 2] + np.corrcoef(x, y)[0, 1] + np.cov(np.vstack([x, y]))[1, 0])

@case(lambda r, n: (vector(r, n),), (5, 6))
def append_scalars(x):
    out = np.array([])
    for v in x:
        if v > 0:
            out = np.append(out, v)
    out = np.append(out, [1.0, x[0]])
    return out.sum() + len(out)

@case(lambda r, n: (vector(r, n),), (5, 6))
def range_values(x):
    r = range(1, len(x))
    s = 0.0
    for i in r:
        s += x[i] * x[i - 1]
    idx = list(range(0, len(x), 2))
    y = x[idx]
    z = np.array(range(len(x))) * x
    return s + y.sum() + z.sum() + len(r) + idx[-1] + (3 in r)

@case(lambda r, n: (vector(r, n),), (5, 6))
def zip_values(x):
    pairs = list(zip(x, x[1:]))
    e = list(enumerate(x, start=2))
    rev = list(reversed(x))
    a, b = pairs[0]
    return a * b + sum(p - q for p, q in pairs) + e[1][0] * e[1][1] + rev[0] + len(pairs)


@case(lambda r, n: (vector(r, n),))
def bfs_deque(x):
    q = deque([0])
    seen = [False] * len(x)
    seen[0] = True
    s, d = 0.0, 1.0
    while q:
        u = q.popleft()
        s += x[u] / d
        d += 1
        for v in (2 * u + 1, 2 * u + 2):
            if v < len(x) and not seen[v]:
                seen[v] = True
                q.append(v)
    return s
@case(lambda r, n: (vector(r, n),))
def moving_deque(x):
    w = deque(maxlen=3)
    out = []
    for v in x:
        w.append(v)
        out.append(sum(w) / len(w))
    return np.array(out)
@case(lambda r, n: (vector(r, n), r.integers(0, 3, n)))
def defaultdict_sum(x, g):
    d = defaultdict(float)
    for k, v in zip(g, x):
        d[int(k)] += v
    return sum(v * v for v in d.values())
@case(lambda r, n: (vector(r, n),))
def tuple_state(x):
    state = (0.0, 1.0, 0)
    for v in x:
        a, b, k = state
        if v > 0:
            state = (a + v, b, k + 1)
        else:
            state = (a, b * 0.9 + v, k)
    a, b, k = state
    return a * b + k
@case(lambda r, n: (matrix(r, n),), (4, 5))
def power_svd(a):
    u, s, vt = np.linalg.svd(a)
    return s[0] + np.linalg.norm(a, 2) + np.linalg.norm(a, "fro")
@case(lambda r, n: (vector(r, n),))
def spectral(x):
    f = np.fft.fft(x)
    return np.abs(f[1]) ** 2 + np.fft.ifft(f * f).real.sum()
@case(lambda r, n: (vector(r, n),))
def piecewise_linear(x):
    t = np.linspace(-1, 1, len(x))
    return np.interp([0.1, 0.5, -0.3], t, x).sum() + np.interp(0.2, t, x)
@case(lambda r, n: (vector(r, n),))
def cumulative(x):
    return np.cumprod(1 + 0.1 * x)[-1] + np.maximum.accumulate(x)[-2] + np.minimum.accumulate(x).sum()
@case(lambda r, n: (vector(r, n),))
def drawdown(x):
    wealth = np.exp(np.cumsum(0.1 * x))
    peak = np.maximum.accumulate(wealth)
    return ((peak - wealth) / peak).max()
@case(lambda r, n: (matrix(r, n, 3),), (5, 7))
def take_put(a):
    b = np.take(a, [0, 2], axis=1)
    c = a.take([1], axis=0)
    d = np.take_along_axis(a, np.argsort(a, axis=1), axis=1)
    np.put(b, [0, 1], [5.0, 6.0])
    return b.sum() + c.sum() + d[:, 0].sum()
@case(lambda r, n: (matrix(r, n),), (4, 5))
def block_matrices(a):
    b = np.block([[a, np.eye(len(a))], [np.zeros(a.shape), a.T]])
    return (b @ b)[0].sum() + np.kron(a[:2, :2], a[:2, :2]).trace()
@case(lambda r, n: (vector(r, n),))
def string_keys(x):
    res = {}
    for name, f in (("mean", np.mean), ("max", np.max)):
        res[name] = f(x)
    res["total"] = res["mean"] * res["max"]
    return res["total"]
@case(lambda r, n: (vector(r, n),))
def returns_dict(x):
    return {"a": x.sum(), "b": x * 2, "c": (x[0], [x[1], x[2]])}
@case(lambda r, n: (vector(r, n),))
def returns_list(x):
    out = []
    for v in x:
        out.append(v * v)
    return out
@case(lambda r, n: (vector(r, n),))
def nested_break(x):
    s = 0.0
    for i in range(len(x)):
        for j in range(i, len(x)):
            if x[i] * x[j] < -1:
                break
            if x[j] > 1.5:
                continue
            s += x[i] * x[j]
        else:
            s *= 1.1
            continue
        if s > 3:
            break
    return s
@case(lambda r, n: (vector(r, n),))
def lambda_default(x):
    fs = [lambda v, k=k: v ** k for k in range(1, 4)]
    return sum(f(x[0]) for f in fs)
@case(lambda r, n: (vector(r, n),))
def global_counter(x):
    acc = [0.0]
    def add(v):
        acc[0] += v
        return acc[0]
    for v in x:
        add(v * 2)
    return acc[0] * add(1.0)
@case(lambda r, n: (vector(r, n),))
def enumerate_rows(x):
    n = len(x)
    m = np.outer(x, x)
    s = 0.0
    for i, row in enumerate(m):
        for j, v in enumerate(row):
            if j > i:
                s += v * (j - i)
    return s
@case(lambda r, n: (vector(r, n),))
def slice_objects(x):
    s = slice(1, -1)
    t = slice(None, None, 2)
    y = x.copy()
    y[s] *= 2
    y[t] += 1
    return y.sum() + x[s][0]
@case(lambda r, n: (vector(r, n),))
def math_mix(x):
    s = 0.0
    for v in x:
        s += math.floor(v) * 0.1 + math.copysign(1.0, v) * v + math.atan2(v, 2.0) + math.fabs(v)
    return s + math.hypot(x[0], x[1]) + math.log1p(abs(x[2])) + math.prod([x[0], x[1]])
@case(lambda r, n: (vector(r, n),))
def int_ops(x):
    s = 0.0
    for i in range(len(x)):
        k = (i * 7 + 3) % 5
        s += x[k % len(x)] * (i // 2) * (1 if i & 1 else -1) * (i ^ 3)
    return s + divmod(17, 5)[1] * x[0] + round(2.6) * x[1] + (-7 // 2) * x[2] + (-7 % 3)
@case(lambda r, n: (vector(r, n),))
def trapezoid_list(x):
    return sum((a + b) / 2 for a, b in zip(x[:-1], x[1:])) + sum(x[i] * x[-i - 1] for i in range(len(x) // 2))
@case(lambda r, n: (matrix(r, n),), (4, 6))
def symmetric_fill(a):
    n = a.shape[0]
    b = np.zeros((n, n))
    iu = np.triu_indices(n)
    b[iu] = a[iu]
    b.T[iu] = a[iu]
    return np.linalg.eigvalsh(b + n * np.eye(n))[-1]
@case(lambda r, n: (matrix(r, n, 2),), (5, 7))
def convex_hull(p):
    idx = sorted(range(len(p)), key=lambda i: (p[i, 0], p[i, 1]))
    hull = []
    for i in idx:
        while len(hull) >= 2:
            a, b = hull[-2], hull[-1]
            cross = (p[b, 0] - p[a, 0]) * (p[i, 1] - p[a, 1]) - (p[b, 1] - p[a, 1]) * (p[i, 0] - p[a, 0])
            if cross > 0:
                break
            hull.pop()
        hull.append(i)
    return sum(np.hypot(p[b, 0] - p[a, 0], p[b, 1] - p[a, 1]) for a, b in itertools.pairwise(hull))
@case(lambda r, n: (vector(r, n), vector(r, n)))
def frechet(a, b):
    n, m = len(a), len(b)
    ca = [[-1.0] * m for _ in range(n)]
    for i in range(n):
        for j in range(m):
            d = abs(a[i] - b[j])
            if i == 0 and j == 0:
                ca[i][j] = d
            elif i == 0:
                ca[i][j] = max(ca[0][j - 1], d)
            elif j == 0:
                ca[i][j] = max(ca[i - 1][0], d)
            else:
                ca[i][j] = max(min(ca[i - 1][j], ca[i - 1][j - 1], ca[i][j - 1]), d)
    return ca[n - 1][m - 1]
@case(lambda r, n: (positive(r, n),))
def huffman(p):
    h = sorted(v for v in p)
    cost = 0.0
    while len(h) > 1:
        a = h.pop(0)
        b = h.pop(0)
        cost += a + b
        k = 0
        while k < len(h) and h[k] < a + b:
            k += 1
        h.insert(k, a + b)
    return cost
@case(lambda r, n: (vector(r, n),))
def prefix_2d(x):
    n = len(x)
    p = np.zeros((n + 1, n + 1))
    for i in range(n):
        for j in range(n):
            p[i + 1, j + 1] = x[i] * x[j] + p[i, j + 1] + p[i + 1, j] - p[i, j]
    best = -np.inf
    for i, j in itertools.combinations(range(n + 1), 2):
        best = max(best, p[j, j] - p[i, j] - p[j, i] + p[i, i])
    return best
@case(lambda r, n: (vector(r, n),))
def generator_fn(x):
    def gen(y, k):
        for i in range(0, len(y), k):
            yield y[i] * i
    return sum(v for v in gen(x, 2)) + max(gen(x, 3))
@case(lambda r, n: (vector(r, n),))
def ternary_chain(x):
    return sum((-1.0 if v < -0.5 else 0.0 if v < 0 else v if v < 1 else 1.0) * v for v in x)
@case(lambda r, n: (vector(r, n), None, 0.1), (6, 9))
def callback(x, cb=None, lr=0.1):
    for k in range(5):
        x = x - lr * 2 * x
        if cb is not None:
            cb(k, x)
    return x
@case(lambda r, n: (vector(r, n),))
def isclose_checks(x):
    s = 0.0
    for v in x:
        if math.isclose(v, 0.5, rel_tol=0.5):
            s += v
        elif np.isclose(v, -0.5, atol=0.3):
            s -= v
        if np.allclose([v, v], v) and np.isfinite(v):
            s += 0.5 * v
    return s


@case(lambda r, n: (vector(r, n),))
def zip_twice(x):
    z = zip(x, x[1:])
    return sum(a * b for a, b in z) + sum(a for a, b in z)
@case(lambda r, n: (vector(r, n),))
def map_twice(x):
    m = map(lambda v: v * v, x)
    s = sum(m)
    return s + sum(m)
@case(lambda r, n: (vector(r, n),))
def genexp_twice(x):
    g = (v * v for v in x)
    return sum(g) + sum(g) * 3
@case(lambda r, n: (vector(r, n),))
def genexp_known_twice(x):
    g = (x[i] for i in range(3))
    return sum(g) + sum(g) * 3
@case(lambda r, n: (vector(r, n),))
def passed_iterator(x):
    def f(it):
        return sum(it) + sum(it)
    return f(reversed(x)) + x[0]
@case(lambda r, n: (vector(r, n),))
def iterator_in_loop(x):
    e = enumerate(x)
    s = 0.0
    for _ in range(2):
        for i, v in e:
            s += i * v
    return s
@case(lambda r, n: (vector(r, n),))
def product_twice(x):
    p = itertools.product(x, repeat=2)
    return sum(a * b for a, b in p) + sum(a for a, b in p)
@case(lambda r, n: (vector(r, n),))
def unpacked_iterators(x):
    a, b, c = map(lambda k: x[k] * 2, [0, 1, 2])
    (p, q), (r, s) = zip([x[0], x[1]], [x[2], x[3]])
    first, *rest = (x[k] for k in range(3))
    m = max(*(v for v in [x[0], x[1]]), x[2])
    return a * b + c * p + q * r * s + first + rest[0] + m
@case(lambda r, n: (vector(r, n),))
def range_twice(x):
    r = range(len(x))
    return sum(x[i] for i in r) + sum(x[i] * i for i in r)
@case(lambda r, n: (vector(r, n),))
def iterator_stored(x):
    parts = [zip(x, x), zip(x, x[1:])]
    return sum(a * b for a, b in parts[0]) + sum(a * b for a, b in parts[0])


@case(lambda r, n: (vector(r, n),))
def chained_lists(x):
    a = b = []
    for v in x:
        a.append(v)
    b.append(1.0)
    return sum(a) * len(b)
@case(lambda r, n: (vector(r, n),))
def filter_rows(x):
    rows = [[v, v * v] for v in x]
    rows = [r for r in rows if r[0] > -0.5]
    if rows:
        rows[0][1] = 9.0 * x[0]
    return sum(r[1] for r in rows) + len(rows)
@case(lambda r, n: (vector(r, n),))
def closure_rows(x):
    rows = [[0.0] * 2 for _ in x]
    def put(i, v):
        rows[i][0] += v
        rows[i - 1][1] = rows[i][0]
    for i, v in enumerate(x):
        put(i, v)
    return sum(r[0] * r[1] for r in rows)
@case(lambda r, n: (vector(r, n),))
def rows_in_dict(x):
    d = {"r": [[1.0], [2.0]]}
    t = d["r"]
    t[0].append(x[0])
    d["r"][1][0] = x[1]
    k = 1 if x[2] > 0 else 0
    t[k][0] *= 2.0
    return sum(sum(q) for q in d["r"])
@case(lambda r, n: (vector(r, n),))
def rows_in_tuple(x):
    s = ([x[0]], [x[1]])
    for v in x:
        a, b = s
        a.append(v)
        s = (b, a)
    return sum(s[0]) * 2 + sum(s[1])
@case(lambda r, n: (vector(r, n),))
def pop_while(x):
    rows = [[v] * (i % 3) for i, v in enumerate(x)]
    s = 0.0
    while rows:
        r = rows.pop()
        while r:
            s = s * 0.5 + r.pop()
    return s
@case(lambda r, n: (vector(r, n),))
def maybe_list(x):
    best = None
    cur = []
    for v in x:
        cur = cur + [v]
        if best is None or sum(cur) > best:
            best = sum(cur)
            keep = cur
    return best * len(keep)
@case(lambda r, n: (vector(r, n),))
def early_rows(x):
    rows = []
    for i, v in enumerate(x):
        rows.append([v, i * v])
        if v > 1.0:
            return rows[-1][0] * rows[0][1] + len(rows)
        rows[-1][1] += 1
    return rows[0][0] - rows[-1][1]
@case(lambda r, n: (vector(r, n),))
def slice_assign(x):
    a = [v for v in x]
    a[1:3] = [5.0, x[0]]
    a[:] = a[::-1]
    return a[0] + 2 * a[-2]
@case(lambda r, n: (vector(r, n),))
def row_ref_after_rebinding(x):
    rows = [[v] for v in x]
    first = rows[0]
    rows[0] = [7.0]
    first[0] = first[0] * 3
    rows.append(first)
    rows[-1][0] += 1
    return first[0] + rows[0][0] + rows[-1][0]
@case(lambda r, n: (vector(r, n),))
def matrix_power_lists(x):
    def mul(A, B):
        n = len(A)
        return [[sum(A[i][k] * B[k][j] for k in range(n)) for j in range(n)] for i in range(n)]
    M = [[1.0, x[0]], [x[1], 0.5]]
    R = [[1.0, 0.0], [0.0, 1.0]]
    p = 5
    while p:
        if p & 1:
            R = mul(R, M)
        M = mul(M, M)
        p >>= 1
    return R[0][1] + R[1][0]
@case(lambda r, n: (vector(r, n),))
def cells_and_lists(x):
    s = np.zeros(())
    hist = [0.0]
    for v in x:
        s += v
        hist.append(hist[-1] + s * 0.5)
    t = s
    t *= 2
    return hist[-1] * s


# -- strings chosen by branches ----------------------------------------------------------------------------------------


@case(lambda r, n: (vector(r, n),))
def strings_in_tuples(x):
    state, total = "a", 0.0
    for v in x:
        following = "b" if v > 0 else "c"
        if state in ("a", "c") and following != "c":
            total += v
        if state not in {"b"}:
            total += 0.5 * v * v
        state = following
    return total

@case(lambda r, n: (vector(r, n),))
def strings_matched(x):
    s, t = "low", 0.0
    for v in x:
        match s:
            case "low" | "middle":
                t += v
                s = "high"
            case _:
                t += v * v
                s = "middle" if v > 0 else "low"
    return t

@case(lambda r, n: (vector(r, n),))
def strings_of_a_closure(x):
    mode = "a"

    def flip(v):
        nonlocal mode
        if v > 0:
            mode = "b"
        elif v < -0.5:
            mode = "a"
        return 2 * v if mode == "b" else v

    return sum(flip(v) for v in x)

@case(lambda r, n: (vector(r, n),))
def strings_passed_on(x):
    a = b = "u"
    t = 0.0
    for v in x:
        if v > 0:
            a = b
            b = "w"
        elif a == b:
            b = "u"
        if a != b:
            t += v
        if a == "w":
            t += v * v
    return t

@case(lambda r, n: (vector(r, n),))
def strings_as_keys(x):
    s, t = "low", 0.0
    for v in x:
        if v > 0:
            s = "high"
        t += {"low": 1.0, "high": 2.0}[s] * v
    return t

@case(lambda r, n: (vector(r, n),))
def strings_measured(x):
    mode = "a"

    def flip(v):
        nonlocal mode
        if v > 0:
            mode = "bc"
        elif v < -0.5:
            mode = "a"
        return 2 * v if mode == "bc" else v

    t = 0.0
    for v in x:
        t += flip(v)
    return t * len(mode)


# -- fields that are None at first -------------------------------------------------------------------------------------


class Smoother:
    def __init__(self, k):
        self.k = k
        self.fitted = None
        self.total = None

    def fit(self, x):
        self.fitted = x * self.k
        self.total = self.fitted.sum()
        return self

@dataclass
class Record:
    first: object
    second: object = None

@case(lambda r, n: (vector(r, n),))
def fields_assigned_by_a_method(x):
    model = Smoother(2.0)
    other = model
    model.fit(x)
    other.fitted[0] = 3 * x[1]
    return (model.fitted ** 2).sum() + other.total

@case(lambda r, n: (vector(r, n),))
def fields_assigned_by_a_closure(x):
    record = Record(x * 1)

    def fill():
        record.second = record.first * x
        return record

    filled = fill()
    record.first = x * 5
    return (filled.second * record.first + filled.first).sum()

@case(lambda r, n: (vector(r, n),))
def items_assigned_once(x):
    d = {"g": None}
    e = d
    d["g"] = x * x
    e["g"] = d["g"] + 1
    return d["g"].sum()

@case(lambda r, n: (vector(r, n),))
def fields_assigned_in_a_branch(x):
    record, other = Record(x * 1), Record(x * 2)
    if x[0] > 0:
        record.second = x * 3
    record.second = other.first
    record.second[0] = x[1]
    return (other.first * record.first).sum()
