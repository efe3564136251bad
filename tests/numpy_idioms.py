"""Programs in the idioms of NumPy users who do not think of graphs; functions of two vectors of length 12."""

import copy

import numpy as np

import viewgrad as vg
from viewgrad import func
from viewgrad.autograd import Function, grad

PROGRAMS = {}


def program(function):
    """Register a program."""
    PROGRAMS[function.__name__] = function
    return function


W = vg.Tensor(np.linspace(0.5, 1.5, 12), requires_grad=True)
BUF = np.arange(12.0)
STATE = {"w": vg.Tensor(np.ones(12))}


class Cube(Function):
    @staticmethod
    def forward(ctx, x, k):
        ctx.save_for_backward(x)
        ctx.k = k
        return x**3 * k

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return (3 * x * x * g * ctx.k, None)


class InPlace(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        x.mul_(2.0)
        return x

    @staticmethod
    def backward(ctx, g):
        return g * 2


class Two(Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return (x * y, x + y)

    @staticmethod
    def backward(ctx, a, b):
        x, y = ctx.saved_tensors
        return (a * y + b, a * x + b)


@program
def views_of_views(a, b):
    m = a.reshape(3, 4)
    v = m.T[1:3]
    w = v[:, ::-1]
    w *= b[:6].reshape(2, 3)
    v[0, 1] += 1
    m[1][2] = b[0]
    return (m, w * 2)


@program
def overlapping_writes(a, b):
    a[2:8] = a[0:6]
    a[1:] += a[:-1]
    a[::2] -= a[6:]
    a[:3], a[3:6] = (a[3:6], a[:3])
    return a * b


@program
def out_args(a, b):
    o = vg.empty(12)
    np.add(a, b, out=o)
    np.multiply(o, o, out=o)
    np.sin(o, o)
    np.cumsum(o, out=o)
    return o


@program
def inplace_ufuncs(a, b):
    c = a.copy()
    c += b
    c **= 2
    c /= 1.5
    c -= b
    np.negative(c, c)
    np.maximum(c, 0.1, out=c)
    c @= np.eye(12)
    return c


@program
def reductions(a, b):
    m = a.reshape(3, 4)
    return (
        m.sum(0),
        m.mean(1, keepdims=True),
        m.max(),
        m.min(axis=0),
        m.prod(1),
        m.std(),
        m.var(0),
        np.median(m),
        np.ptp(m),
        m.cumsum(1),
        np.trace(m),
        m.any(),
    )


@program
def where_masks(a, b):
    c = np.where(a > b, a, b * 2)
    c[c > 0.5] *= 2
    c[(a > 0) & (b < 1)] = b[0]
    np.putmask(c, np.arange(12) % 5 == 0, 0.25)
    return np.select([a > 1, b > 1], [a, b], c)


@program
def fancy(a, b):
    i = np.array([1, 1, 5, 0])
    a[i] = b[:4]
    a[i] += 1.0
    np.add.at(a, i, b[4:8])
    m = a.reshape(3, 4)
    m[[0, 2], [1, 3]] *= b[:2]
    return (m[np.ix_([0, 2], [3, 1])], a[[True] * 6 + [False] * 6], np.take(a, i), m[:, [0, 0]])


@program
def fancy_by_values(a, b):
    i = np.argsort(a)[:3]
    b[i] *= a[i]
    b[np.argmax(a)] = 3.0
    return (b, np.take_along_axis(a, np.argsort(-b), 0))


@program
def zero_d(a, b):
    s = vg.Tensor(2.0)
    s *= a.sum()
    t = a[3, ...]
    t += 1
    u = a[4]
    u += 1
    z = vg.zeros(())
    z[...] = b[0]
    z += s
    return (s, t, u, z * a, a)


@program
def ints(a, b):
    k = vg.arange(12) % 3
    k[1:] += k[:-1]
    return (a * k, b[k], (a > b).sum(), k // 2)


@program
def complexes(a, b):
    z = a + 1j * b
    z[1:3] *= 2j
    z.real[3] = b[0]
    w = np.conj(z) @ z
    return (abs(z), np.angle(z) * 1.0, w, z.view(float)[:5], np.fft.fft(z))


@program
def singles(a, b):
    s = a.astype(np.float32)
    s *= 1.1
    s[2:] += b[2:]
    return (s, s.astype(float) * b, s.sum(), s * np.float64(2))


@program
def captured(a, b):
    y = a * W
    y[2:4] = STATE["w"][2:4] * b[2:4]
    return (y + BUF, W[1:3] * 2)


@program
def captured_written(a, b):
    STATE["w"][0] = 1.0
    STATE["w"].mul_(1.0)
    return a * STATE["w"]


@program
def many_outputs(a, b):
    c = a * b
    return (c, c, [c[1:], {"k": a, "z": (b, 3, None, "s")}], c.sum())


@program
def outputs_are_inputs(a, b):
    return (a, b, a[1:], a.reshape(3, 4).T, b)


@program
def inputs_written(a, b):
    a[0] = b[1]
    b[:] = a * 2
    a *= b.sum()
    return a[0] * 1.0


@program
def constants(a, b):
    return (vg.ones(3), 2.0, vg.Tensor([1.0, 2.0]), None, a * 0)


@program
def no_grads(a, b):
    with vg.no_grad():
        c = a * b
        a2 = c.sum()
        b.mul_(0.5)
    d = a * c
    with vg.no_grad():
        d[0] = 7.0
    e = d.detach()
    e[1] = 3.0
    return (d * b, e * a, a2 * a)


@program
def customs(a, b):
    c = Cube.apply(a, 2.0)
    d = InPlace.apply(c * 1)
    x, y = Two.apply(c, b)
    x[1:] *= y[1:]
    return (d, x, y)


@program
def inner_grad(a, b):
    (g,) = grad((a**3 * b).sum(), a, create_graph=True)
    g = g * 1
    g[1:] += a[:-1]
    (h,) = grad((g * g).sum(), b, create_graph=True)
    return (g, h)


@program
def inner_jvp(a, b):
    y, t = func.jvp(lambda q: np.sin(q) * q[::-1], (a,), (b,))
    return (y * t, func.hessian(lambda q: (q[:3] ** 3).sum())(a))


@program
def steer(a, b):
    n = 0
    while a[0] < 50 and n < 4:
        a = a * (1 + b[0] * b[0])
        n += 1
    for i in range(12):
        if a[i] > b[i]:
            b[i] = a[i] * 2
        elif i % 2:
            continue
    k = int(abs(a[1]) * 0) + 2
    return (a[:k] * b[:k], n)


@program
def iteration(a, b):
    t = 0.0
    for row in a.reshape(3, 4):
        row += 1
        for x in row:
            t = t + x * x
    q = [x * 2 for x in b]
    _, *rest = b
    return (t, np.stack(q), sum(rest), np.array(list(map(float, [1, 2]))) * a[:2], max(len(b), 3) * a[0], a)


@program
def assembling(a, b):
    return (
        np.concatenate([a, b[:2]]),
        np.stack([a, b], 1),
        np.hstack((a, b)),
        np.block([[a.reshape(3, 4)], [b.reshape(3, 4)]]),
        np.tile(a, 2),
        np.repeat(a[:3], [1, 0, 2]),
        np.pad(a[:3], 2),
        np.roll(b, 3),
        np.flip(a),
        np.split(a, 3)[1],
        np.diff(a),
        np.outer(a[:2], b[:3]),
    )


@program
def linear_algebra(a, b):
    m = a[:9].reshape(3, 3) + 4 * np.eye(3)
    l = np.linalg.cholesky(m @ m.T)
    return (
        np.linalg.solve(m, b[:3]),
        np.linalg.inv(m),
        np.linalg.det(m),
        l,
        np.einsum("ij,kj->ik", m, m),
        np.linalg.norm(b),
        np.linalg.eigvalsh(m @ m.T),
    )


@program
def swaps(a, b):
    a[0], a[1] = (a[1], a[0])
    m = a.reshape(3, 4)
    m[[0, 1]] = m[[1, 0]]
    m[0], m[2] = (m[2].copy(), m[0].copy())
    return m * 2


@program
def set_dtype(a, b):
    k = a.astype(int)
    q = a.copy()
    q[:] = k
    q[3:5] = np.array([1, 2])
    q[0] = True
    return (q * b, k)


@program
def sort_inplace(a, b):
    a.sort()
    b.reshape(3, 4).sort(axis=0)
    return (a * b, np.partition(a, 3), np.searchsorted(a, 0.3) * a)


@program
def delete_insert(a, b):
    return (np.delete(a, [1, 2]), np.insert(a, 1, b[0]), np.append(a, b))


@program
def strided(a, b):
    w = np.lib.stride_tricks.sliding_window_view(a, 4)
    u = a.as_strided((3, 3), (2, 1))
    return (w.sum(1), u @ u.T)


@program
def swap_names(a, b):
    a, b = (b, a)
    c = a
    c[1:] *= 2
    return (c, b)


@program
def copies(a, b):
    c = copy.copy(a)
    d = copy.deepcopy(b)
    c[0] = 5
    d *= 2
    return (a, c, d, b)


@program
def nested_functions(a, b):
    acc = []

    def step(i):
        nonlocal a
        a = a * 1
        a[i] += b[i]
        acc.append(a[i] * 2)
        return a

    for i in range(4):
        step(i)
    return (acc, a)


@program
def hooks_on_result(a, b):
    c = a * b
    return (c.T, c.real, +c, c.ravel(), c.squeeze(), c[None], c[..., None])


@program
def try_except(a, b):
    try:
        a.reshape(5, 5)
    except ValueError:
        a = a * 2
    try:
        raise KeyError
    except KeyError:
        b[0] = a[1]
    return a * b


@program
def empties(a, b):
    return (a[3:3] * b[5:5], a[3:3].sum(), np.concatenate([a[:0], b]), a[np.array([], int)])


@program
def fill_things(a, b):
    a.fill(2.0)
    b[:] = 0
    b[2:5].fill(a[0])
    c = np.full(4, 1.5) * a[:4]
    np.fill_diagonal(a.reshape(3, 4), b[2])
    np.copyto(b, a, where=np.arange(12) > 6)
    return (a, b, c)


@program
def logic(a, b):
    return (
        np.logical_and(a > 0, b > 0) * a,
        np.isnan(a).sum() * b,
        np.clip(a, b.min(), 1.0),
        np.sign(a) * b,
        a.round(1),
        np.floor(a) + b,
        np.heaviside(a, 0.5) * b,
        a % 0.7,
        a // 0.5 * b,
        divmod(a, 2),
    )


@program
def power_tower(a, b):
    return (
        abs(a) ** b,
        2**a,
        a**2,
        a ** (-1.0),
        np.sqrt(abs(a)),
        np.hypot(a, b),
        np.arctan2(a, b),
        np.logaddexp(a, b),
        np.exp(a) / (1 + np.exp(a)),
    )
