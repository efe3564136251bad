"""Small programs on single elements, written for NumPy: one source for ndarrays and tensors.

Each takes a vector of eight positive numbers, all different, and gives a number or an array. `tests/test_scalars.py`
runs them.
"""

import bisect
import copy
import functools
import heapq
import itertools
import math
import operator
import random
import statistics
from collections import defaultdict, deque

import numpy as np


def quicksort(a):
    a = a.copy()

    def go(lo, hi):
        if lo >= hi:
            return
        p = a[hi]
        i = lo
        for j in range(lo, hi):
            if a[j] < p:
                a[i], a[j] = a[j], a[i]
                i += 1
        a[i], a[hi] = a[hi], a[i]
        go(lo, i - 1)
        go(i + 1, hi)

    go(0, len(a) - 1)
    return a


def shellsort(a):
    a = a.copy()
    gap = len(a) // 2
    while gap:
        for i in range(gap, len(a)):
            t = a[i]
            j = i
            while j >= gap and a[j - gap] > t:
                a[j] = a[j - gap]
                j -= gap
            a[j] = t
        gap //= 2
    return a


def heapsort(a):
    a = a.copy()
    n = len(a)

    def sift(s, e):
        r = s
        while 2 * r + 1 <= e:
            c = 2 * r + 1
            if c + 1 <= e and a[c] < a[c + 1]:
                c += 1
            if a[r] < a[c]:
                a[r], a[c] = a[c], a[r]
                r = c
            else:
                return

    for s in range((n - 2) // 2, -1, -1):
        sift(s, n - 1)
    for e in range(n - 1, 0, -1):
        a[e], a[0] = a[0], a[e]
        sift(0, e - 1)
    return a


def mergesort(a):
    if len(a) <= 1:
        return a
    m = len(a) // 2
    l, r = mergesort(a[:m]), mergesort(a[m:])
    out = a * 0
    i = j = 0
    for k in range(len(a)):
        if j >= len(r) or (i < len(l) and l[i] <= r[j]):
            out[k] = l[i]
            i += 1
        else:
            out[k] = r[j]
            j += 1
    return out


def selection_sort(a):
    a = a.copy()
    for i in range(len(a)):
        m = min(range(i, len(a)), key=lambda k: a[k])
        a[i], a[m] = a[m], a[i]
    return a


def cycle3(a):
    a = a.copy()
    a[0], a[3], a[5] = a[3], a[5], a[0]
    return a


def rotate_left(a):
    a = a.copy()
    first = a[0]
    for i in range(len(a) - 1):
        a[i] = a[i + 1]
    a[-1] = first
    return a


def reverse_inplace(a):
    a = a.copy()
    i, j = 0, len(a) - 1
    while i < j:
        a[i], a[j] = a[j], a[i]
        i += 1
        j -= 1
    return a


def fisher_yates(a):
    a = a.copy()
    r = random.Random(3)
    for i in range(len(a) - 1, 0, -1):
        j = r.randint(0, i)
        a[i], a[j] = a[j], a[i]
    return a


def gen_shuffle(a):
    a = a.copy()
    np.random.default_rng(1).shuffle(a)
    return a * np.arange(1.0, 9.0)


def legacy_shuffle(a):
    a = a.copy()
    np.random.RandomState(1).shuffle(a)
    return a * np.arange(1.0, 9.0)


def py_shuffle(a):
    a = a.copy()
    random.Random(5).shuffle(a)
    return a * np.arange(1.0, 9.0)


def py_sample(a):
    return sum(v * (i + 1) for i, v in enumerate(random.Random(5).sample(list(a), 4)))


def py_choice(a):
    return random.Random(2).choice(a) ** 2


def gauss_solve(a):
    M = a[:4].reshape(2, 2).copy()
    b = a[4:6].copy()
    n = 2
    for k in range(n):
        p = M[k, k]
        for i in range(k + 1, n):
            f = M[i, k] / p
            for j in range(k, n):
                M[i, j] -= f * M[k, j]
            b[i] -= f * b[k]
    x = b.copy()
    for i in range(n - 1, -1, -1):
        s = b[i]
        for j in range(i + 1, n):
            s -= M[i, j] * x[j]
        x[i] = s / M[i, i]
    return x


def gauss_jordan_pivot(a):
    M = (a[:, None] ** np.arange(3.0))[:3].copy() + np.eye(3)
    n = 3
    for c in range(n):
        piv = max(range(c, n), key=lambda r: abs(M[r, c]))
        if piv != c:
            for j in range(n):
                M[c, j], M[piv, j] = M[piv, j], M[c, j]
        d = M[c, c]
        for j in range(n):
            M[c, j] /= d
        for r in range(n):
            if r != c:
                f = M[r, c]
                for j in range(n):
                    M[r, j] -= f * M[c, j]
    det = a[0] * 0 + 1
    M = (a[:, None] ** np.arange(3.0))[:3].copy() + np.eye(3)
    for c in range(n):
        det *= M[c, c]
        for r in range(c + 1, n):
            f = M[r, c] / M[c, c]
            for j in range(n):
                M[r, j] -= f * M[c, j]
    return det


def kahan(a):
    s = 0.0
    c = 0.0
    for v in a * 1.37:
        y = v - c
        t = s + y
        c = (t - s) - y
        s = t
    return s


def welford(a):
    mean = a[0]
    m2 = 0.0
    for k in range(1, len(a)):
        d = a[k] - mean
        mean += d / (k + 1)
        m2 += d * (a[k] - mean)
    return m2 / (len(a) - 1)


def horner(a):
    r = a[0]
    for c in a[1:]:
        r = r * 0.7 + c
    return r


def reduce_mul(a):
    return functools.reduce(operator.mul, a)


def reduce_init(a):
    return functools.reduce(lambda x, y: x * 0.5 + y, a, 1.0)


def reduce_maxi(a):
    return functools.reduce(lambda x, y: x if x > y else y, a) ** 2


def accumulate(a):
    return np.stack(list(itertools.accumulate(a))) * np.arange(8.0)


def accumulate_mul(a):
    return np.stack(list(itertools.accumulate(a, operator.mul)))


def pairwise_diff(a):
    return sum((y - x) ** 2 for x, y in itertools.pairwise(a))


def combos(a):
    return sum(x * y for x, y in itertools.combinations(a, 2))


def product_(a):
    return sum(x / y for x, y in itertools.product(a[:3], a[3:6]))


def zipsum(a):
    return sum(x * y for x, y in zip(a, a[::-1]))


def sum_start(a):
    return sum(a, 10.0) * sum(list(a))


def sum_gen(a):
    return sum(v * v for v in a)


def math_prod(a):
    return math.prod(a)


def min_key(a):
    return min(a, key=lambda v: (v - 1.0) ** 2) ** 3


def max_two(a):
    return max(a[0], a[1]) * min(a[2], a[3], 0.9)


def max_default(a):
    return max(a) - min(a) + max([], default=a[2])


def sorted_key(a):
    return sum(v * (i + 1) for i, v in enumerate(sorted(a, key=lambda v: -v)))


def sorted_rev(a):
    return sum(v * (i + 1) for i, v in enumerate(sorted(a, reverse=True)))


def list_sort(a):
    l = list(a)
    l.sort()
    return l[0] * 3 + l[-1] * l[1]


def heapq_sort(a):
    h = list(a)
    heapq.heapify(h)
    return sum(heapq.heappop(h) * (i + 1) for i in range(len(a)))


def heapq_push(a):
    h = []
    for i, v in enumerate(a):
        heapq.heappush(h, (v, i))
    return sum(heapq.heappop(h)[0] * (k + 1) for k in range(8))


def nlargest(a):
    return sum(x * (i + 1) for i, x in enumerate(heapq.nlargest(3, a))) + heapq.nsmallest(2, a)[1]


def heap_merge(a):
    return sum(v * (i + 1) for i, v in enumerate(heapq.merge(sorted(a[:4]), sorted(a[4:]))))


def bisect_(a):
    s = sorted(a)
    i = bisect.bisect_left(s, a[3])
    bisect.insort(s, a[0] * 0.5)
    return s[i] * 2 + s[0]


def bisect_interp(a):
    s = np.sort(a)
    k = bisect.bisect(s, 1.0)
    return (1.0 - s[k - 1]) / (s[k] - s[k - 1])


def stat_median(a):
    return statistics.median(list(a)) ** 2


def stat_median_low(a):
    return statistics.median_low(a) * statistics.median_high(a)


def divmod_(a):
    q, r = divmod(a[0] * 7, a[1])
    return q + r


def divmod_r(a):
    q, r = divmod(10.0, a[1])
    return q * 0 + r


def floordiv(a):
    return (a[0] * 9) // a[1] + (a[0] * 9) % a[1]


def pow_(a):
    return pow(a[0], a[1]) + a[2] ** 2 + 2 ** a[3] + pow(a[4], 3)


def abs_neg(a):
    return abs(-a[0]) + (+a[1]) - (-a[2])


def compare_chain(a):
    s = a[0] * 0
    for v in a:
        if 0.8 < v <= 1.1:
            s += v * v
        elif v > 1.1 and not v > 1.3:
            s -= v
    return s


def match_(a):
    s = a[0] * 0
    for v in a:
        match v:
            case v if v > 1.2:
                s += v
            case v if v < 0.8:
                s += v * v
            case _:
                s += 1 / v
    return s


def match_class(a):
    match a[0]:
        case float():
            return a[0] * 2
        case _:
            return a[0] * 100


def match_seq(a):
    match list(a[:3]):
        case [x, y, *rest]:
            return x * y + rest[0]


def ternary(a):
    return sum(v if v > 1 else v * v for v in a)


def boolean_ops(a):
    return (a[0] and a[1]) + (0.0 * a[0] or a[2])


def any_all(a):
    return (a.sum() if all(v > 0 for v in a) else a[0]) * (1 if any(v > 1 for v in a) else 0)


def set_scalars(a):
    return a[0] * len(set(np.floor(a * 3)))


def index_by_int(a):
    k = np.argmax(a)
    return a[k] * 2 + a[int(k) - 1]


def slice_by_int(a):
    k = np.argsort(a)[3]
    return a[k:].sum() + a[:k].prod() + a[k]


def slice_by_len(a):
    n = np.array(8) // 2
    return a[:n].sum() * a[n:].sum()


def range_by_scalar(a):
    s = 0
    for i in range(np.arange(9)[5]):
        s = s + a[i] * i
    return s


def list_mult(a):
    return sum([a[0]] * np.arange(4)[3])


def window(a):
    a = a.copy()
    w = a[2, ...]
    w *= 3
    return a


def aug_elem(a):
    a = a.copy()
    a[0] += a[1]
    a[1] *= a[0]
    a[2] -= 1.0
    a[3] /= a[2]
    a[4] **= 2
    return a


def aug_neg(a):
    a = a.copy()
    a[-1] += a[0]
    a[-2] *= 2
    return a


def rebind(a):
    s = a[0]
    t = s
    s += 5
    s *= a[1]
    return s + t + a[0]


def rebind_reduce(a):
    s = a.sum()
    t = s
    s /= 3
    return s * t


def rebind_list(a):
    x = a[0] * 1.0
    r = []
    for _k in range(3):
        x *= 2.0
        r.append(x)
    return r[0] + 10 * r[1] + 100 * r[2]


def running_max(a):
    m = a[0]
    out = []
    for v in a:
        m = max(m, v)
        out.append(m)
    return sum(x * (i + 1) for i, x in enumerate(out))


def ema(a):
    s = a[0]
    out = a * 0
    for i, v in enumerate(a):
        s = 0.3 * v + 0.7 * s
        out[i] = s
    return out


def deque_window(a):
    d = deque(maxlen=3)
    t = 0
    for v in a:
        d.append(v)
        t = t + sum(d) / len(d)
    return t


def np_left(a):
    return (
        np.float64(2) * a[0]
        + np.float64(1) / a[1]
        - np.float32(0.5) * a[2]
        + np.int64(3) * a[3]
        + np.float64(2) ** a[4]
    )


def np_left_cmp(a):
    return a[0] if np.float64(1.0) < a[0] else a[0] * a[0]


def np_left_array(a):
    return (np.arange(3.0) * a[0] + np.float64(1)).sum() + (np.ones(2) - a[1]).sum()


def np_divmod_left(a):
    return np.float64(7.5) % a[0] + np.float64(7.5) // a[1]


def complex_(a):
    return abs(a[0] + 1j * a[1]) ** 2


def conj_(a):
    return ((a[0] + 2j) * (a[0] + 2j).conjugate()).real


def astype_(a):
    return a[0].astype(np.float32).astype(float) * 0 + a[0] ** 3


def item_prop(a):
    return a[0].real * 2 + a[1].imag + a[2].conjugate() + a[3].T


def sum_method(a):
    return a[0].sum() + a[1].mean() * 2 + a[2].max() + a[3].prod() + a[4].cumsum()[0]


def reshape_scalar(a):
    return a[0].reshape(1)[0] * 2 + a[1][()] + a[2][...] + a[3][None][0]


def clip_scalar(a):
    return a[0].clip(0.9, 1.1) + np.clip(a[1], 0.5, None)


def where_scalar(a):
    return np.where(a[0] > a[1], a[0], a[1]) + np.maximum(a[2], a[3])


def sqrt_funcs(a):
    return np.sqrt(a[0]) + np.exp(a[1]) + np.log(a[2]) + np.hypot(a[3], a[4]) + np.arctan2(a[5], a[6])


def unpack(a):
    x, y, *z = a
    return x * y + sum(z)


def star_call(a):
    def f(x, y, *rest, k=2):
        return x * y**k + len(rest)

    return f(*a)


def swap_rows(a):
    M = a.reshape(4, 2).copy()
    M[0], M[1] = M[1].copy(), M[0].copy()
    M[[2, 3]] = M[[3, 2]]
    return M * np.arange(8.0).reshape(4, 2)


def nested_index(a):
    M = a.reshape(4, 2).copy()
    M[1][0] = M[0][1] * 2
    M[2, 1] += M[1][0]
    return M


def del_view(a):
    a = a.copy()
    v = a[2:5]
    s = v[1]
    v[1] = 7.0
    return s * a[3] + a.sum()


def matrix_chain(a):
    p = list(a[:5])
    n = len(p) - 1
    m = [[0] * n for _ in range(n)]
    for L in range(1, n):
        for i in range(n - L):
            j = i + L
            m[i][j] = min(m[i][k] + m[k + 1][j] + p[i] * p[k + 1] * p[j + 1] for k in range(i, j))
    return m[0][n - 1]


def lcs_like(a):
    n = 4
    D = np.zeros((n + 1, n + 1)) + a[0] * 0
    for i in range(1, n + 1):
        for j in range(1, n + 1):
            D[i, j] = min(D[i - 1, j] + a[i], D[i, j - 1] + a[j], D[i - 1, j - 1] + abs(a[i] - a[j + 2]))
    return D


def prefix_dict(a):
    d = defaultdict(float)
    for i, v in enumerate(a):
        d[i % 3] += v
    return d[0] * d[1] * d[2]


def newton(a):
    x = a[0]
    for _ in range(4):
        x -= (x * x - a[1]) / (2 * x)
    return x


def gcd_like(a):
    x, y = a[0] * 5, a[1] * 3
    for _ in range(3):
        if y > 0.2:
            x, y = y, x % y
    return x + y


def bool_index(a):
    return a[a > a[0]].sum() + (a > a[1]).sum() * a[2]


def is_same(a):
    s = a[0]
    a2 = a.copy()
    a2[0] = 9
    return s * a2[1]


def enumerate_set(a):
    out = a.copy()
    for i, v in enumerate(a):
        out[len(a) - 1 - i] = v * i
    return out


def iter_modify(a):
    a = a.copy()
    for i, v in enumerate(a):
        if i < 7:
            a[i + 1] += v * 0.5
    return a


def tri_sweep(a):
    d = a[:4] + 2
    e = a[4:7]
    b = a[::2].copy()
    c = e.copy()
    c[0] = e[0] / d[0]
    x = b * 1.0
    x[0] = b[0] / d[0]
    for i in range(1, 4):
        m = d[i] - e[i - 1] * c[i - 1]
        if i < 3:
            c[i] = e[i] / m
        x[i] = (b[i] - e[i - 1] * x[i - 1]) / m
    for i in range(2, -1, -1):
        x[i] -= c[i] * x[i + 1]
    return x


def isinstance_(a):
    return a[0] * 2 if isinstance(a[0], float) else a[0] * 3


def isinstance_generic(a):
    return a[0] * 2 if isinstance(a[0], np.generic) and np.isscalar(a[0]) else a[0] * 3


def ndim0(a):
    return a[0] * 2 if np.ndim(a[0]) == 0 and a[0].shape == () else a[0] * 3


def copy_(a):
    s = copy.copy(a[0])
    t = a[1].copy()
    return s * t


def put_(a):
    a = a.copy()
    np.put(a, [0, 2], [a[1], a[3] * 2])
    return a


def minimum_reduce(a):
    return np.minimum.reduce(a) * 2 + np.add.reduce(a[:3]) + np.multiply.accumulate(a)[-1]


def array_of_scalars(a):
    return np.stack([a[0], a[1]]) @ np.stack([a[2], a[3]])


def linspace_by(a):
    return np.linspace(a[0], a[1] * 2, 4)[2]


def trapz(a):
    s = 0.0
    for i in range(7):
        s += 0.5 * (a[i] + a[i + 1])
    return s


def any_nan(a):
    return a.sum() if not np.isnan(a).any() and not math.isnan(1.0) else 0


def while_tol(a):
    x, n = a[0], 0
    while abs(x) > 0.1 and n < 10:
        x *= 0.6
        n += 1
    return x * n


def collatz_switch(a):
    x = a[2]
    for _k in range(5):
        x = x / 2 if x > 1 else 3 * x + 0.1
    return x


PROGRAMS = [found for found in list(globals().values()) if getattr(found, "__module__", None) == __name__]
