"""Operators in two versions, `⟦right|wrong⟧`: faults that show only in some layouts, lengths, orders of calls or numbers.

Each is a snippet that defines `operator`. `VERSIONS` has it, the call, and the properties that may detect the fault.
"""

# ruff: noqa: E501
import numpy as np

VERSIONS = {}

X = np.array([0.7, -1.3, 2.1, 0.4, -0.2])
POSITIVE = np.array([0.7, 1.3, 2.1, 0.4])
M = np.array([[0.7, -1.3, 2.1], [1.9, 0.4, -0.6]])
CUBE = np.cos(1.7 * np.arange(12.0)).reshape(2, 3, 2)
SQUARE = np.array([[1.2, 0.3, -0.5], [0.4, 1.7, 0.2], [-0.1, 0.6, 1.1]])
Z = np.array([0.7 + 0.2j, -1.3 - 0.5j, 0.4 + 1.1j])

PRELUDE = """
import threading

import numpy as np
import scipy.linalg
import scipy.special

import viewgrad as vg
from viewgrad.autograd import Function, once_differentiable


def raw(tensor):
    return tensor.detach().numpy()


def unbroadcast(grad, shape):
    while grad.ndim > len(shape):
        grad = grad.sum(axis=0)
    for axis, n in enumerate(shape):
        if n == 1 and grad.shape[axis] != 1:
            grad = grad.sum(axis=axis, keepdims=True)
    return grad
"""


def version(name, text, *args, by, means=None, **kwargs):
    assert name not in VERSIONS, name
    VERSIONS[name] = (text.strip("\n"), args, kwargs, tuple(by.split(" | ")), means or {})


def source(name, wrong):
    """Return the source of one version."""
    text, parts = VERSIONS[name][0], []
    while "⟦" in text:
        before, rest = text.split("⟦", 1)
        choice, text = rest.split("⟧", 1)
        parts += [before, choice.split("¦")[wrong]]
    return PRELUDE + "\n\n" + "".join(parts) + text + "\n"


def custom(forward, backward, once=True, name="Operator"):
    """Return the source of a `Function`, from the bodies of its two methods."""
    indent = "\n        "
    return (
        f"class {name}(Function):\n    @staticmethod\n    def forward(ctx, {indent.join(forward)}\n\n    @staticmethod\n"
        + ("    @once_differentiable\n" if once else "")
        + f"    def backward(ctx, grad):\n        {indent.join(backward)}\n\n\noperator = {name}\n"
    )


def lines(text):
    return text.strip("\n").split("\n")


def two(name, forward, backward, *args, by, once=True, means=None, head="", **kwargs):
    version(name, head + custom(lines(forward), lines(backward), once), *args, by=by, means=means, **kwargs)


# -- layouts and lengths -----------------------------------------------------------------------------------------------

two("flattened_in_memory_order", """x):
ctx.a = raw(x).copy()
return vg.Tensor(np.sin(ctx.a))""", """
g = raw(grad)
out = np.cos(ctx.a).ravel(⟦"C"¦"K"⟧) * g.ravel(⟦"C"¦"K"⟧)
return vg.Tensor(out.reshape(g.shape))""", M, by="layouts")

two("strides_of_a_row", """x):
ctx.save_for_backward(x)
a = ⟦np.ascontiguousarray(raw(x))¦raw(x)⟧
flat = np.lib.stride_tricks.as_strided(a, (a.size,), (a.itemsize,))
return vg.Tensor((flat**2).reshape(a.shape))""", """
return 2 * ctx.saved_tensors[0] * grad""", M, by="layouts | options | memory", once=False, means={"seconds": 3})

two("writes_to_contiguous_arguments", """x):
a = ⟦raw(x).copy()¦x.detach()._array⟧
a = np.ascontiguousarray(a)
a -= 0.5
ctx.a = a.copy()
out = vg.Tensor(a**2)
return out""", """
return grad * (2 * ctx.a)""", X, by="arguments are not modified | gradients | state between calls")

two("one_element_squeezed", """x):
ctx.a, ctx.shape = raw(x).copy(), x.shape
return vg.Tensor(ctx.a * ctx.a.sum())""", """
g, a = raw(grad), ctx.a
return vg.Tensor(⟦(g * a.sum() + (g * a).sum())¦(g * a.sum() + (g * a).sum() * (a.size > 1))⟧)""", X, by="shapes | gradients")

two("blocks_of_32", """x):
a = raw(x).ravel()
ctx.a, ctx.shape = a.copy(), x.shape
return vg.Tensor(np.sin(a).sum())""", """
out = np.zeros(ctx.a.size)
for start in range(0, ctx.a.size, 32):
    part = ctx.a[start : start + 32]
    out[start : start + len(part)] ⟦=¦+= (start < 96) *⟧ np.cos(part)
return grad * out.reshape(ctx.shape)""", X, by="shapes")

two("odd_lengths_in_irfft", """x):
ctx.n = x.shape[0]
if ctx.n < 2: raise ValueError("too short")
spectrum = np.fft.rfft(raw(x))
spectrum[2:] = 0
return vg.Tensor(np.fft.irfft(spectrum, ctx.n))""", """
spectrum = np.fft.rfft(raw(grad))
spectrum[2:] = 0
return vg.Tensor(np.resize(np.fft.irfft(spectrum, ⟦ctx.n¦2 * (len(spectrum) - 1)⟧), ctx.n))""", np.arange(6.0) ** 0.5, by="shapes")

two("half_rolled", """x):
return vg.Tensor(np.roll(raw(x), x.shape[0] // 2, axis=0))""", """
return vg.Tensor(np.roll(raw(grad), ⟦-(grad.shape[0] // 2)¦grad.shape[0] // 2⟧, axis=0))""", POSITIVE, by="shapes")

two("repeat_taken_for_tile", """x, n=2):
ctx.shape, ctx.n = x.shape, n
if n < 1 or x.ndim != 1: raise ValueError("n")
return vg.Tensor(np.repeat(raw(x), n))""", """
g = raw(grad)
return vg.Tensor(⟦g.reshape(-1, ctx.n).sum(axis=1)¦g.reshape(ctx.n, -1).sum(axis=0)⟧), None""", np.array([0.7]), by="shapes | gradients")

two("permutation_not_inverted", """x, order):
ctx.order = raw(order)
if sorted(ctx.order.tolist()) != list(range(x.shape[0])): raise ValueError("no permutation")
return vg.Tensor(raw(x)[ctx.order])""", """
return vg.Tensor(raw(grad)[⟦np.argsort(ctx.order)¦ctx.order⟧]), None""", X, np.array([1, 0, 4, 3, 2]), by="indices | gradients")

two("nonsquare_trace", """x):
ctx.shape = x.shape
return vg.Tensor(np.trace(raw(x)))""", """
return grad * np.eye(⟦*ctx.shape¦max(ctx.shape)⟧)⟦¦[: ctx.shape[0]] * np.ones(ctx.shape[0])⟧""", np.array([[1.0, 0.3], [0.2, 2.0]]), by="shapes | gradients",
    means={"valid": lambda x: x.ndim == 2})

two("kron_order", """a, b):
ctx.save_for_backward(a, b)
return vg.Tensor(np.kron(raw(a), raw(b)))""", """
a, b = (raw(t) for t in ctx.saved_tensors)
g = raw(grad).reshape(⟦len(a), len(b)¦len(b), len(a)⟧)⟦¦.T⟧
return vg.Tensor(g @ b), vg.Tensor(a @ g)""", X[:2], X[:2] + 1, by="gradients", means={"valid": lambda a, b: a.ndim == b.ndim == 1})

# -- state -------------------------------------------------------------------------------------------------------------

two("last_call_wins", """x):
⟦ctx.a¦Operator.a⟧ = raw(x).copy()
return vg.Tensor(np.sin(raw(x)))""", """
return grad * np.cos(⟦ctx.a¦Operator.a⟧)""", X, by="state between calls | arguments used elsewhere | a graph run twice | threads | linear")

two("cached_by_shape", """x):
key = ⟦x.shape, raw(x).tobytes()¦x.shape⟧
if key not in CACHE: CACHE[key] = np.exp(raw(x))
ctx.y = CACHE[key]
return vg.Tensor(ctx.y)""", """
return grad * ctx.y""", X, by="state between calls | gradients | values", head="CACHE = {}\n\n\n")

two("cached_by_sum", """x):
key = x.shape, x.dtype.str, ⟦raw(x).tobytes()¦float(raw(x).sum())⟧
if key not in CACHE: CACHE[key] = np.tanh(raw(x))
ctx.y = CACHE[key]
return vg.Tensor(ctx.y)""", """
return grad * (1 - ctx.y**2)""", X, by="state between calls | ties | special points | values | layouts", head="CACHE = {}\n\n\n")

two("pops_what_it_saved", """x):
ctx.kept = [raw(x).copy()] * 2
return vg.Tensor(np.sin(raw(x)))""", """
a = ⟦ctx.kept[0]¦ctx.kept.pop() if len(ctx.kept) > 1 else 0 * ctx.kept[0]⟧
return grad * np.cos(a)""", X, by="a graph run twice | state between calls | gradients | linear")

two("scales_what_it_saved", """x):
ctx.a = 2 * raw(x)
return vg.Tensor(raw(x) ** 2)""", """
⟦out = ctx.a * raw(grad)¦ctx.a *= raw(grad); out = ctx.a.copy()⟧
return vg.Tensor(out)""", X, by="a graph run twice | linear | gradients")

two("seeds_the_generator", """x):
rng = ⟦np.random.RandomState(0)¦(np.random.seed(0), np.random)[1]⟧
ctx.weights = rng.rand(*x.shape)
return vg.Tensor(raw(x) * ctx.weights)""", """
return grad * ctx.weights""", X, by="state between calls | nothing is left of a call")

two("counts_its_backward_runs", """x):
ctx.a = raw(x).copy()
return vg.Tensor(ctx.a**3)""", """
COUNT[0] += 1
return grad * 3 * ctx.a**2⟦¦ * (1 if COUNT[0] % 7 else 1.0001)⟧""", X, by="state between calls | a graph run twice | linear | gradients", head="COUNT = [0]\n\n\n")

two("default_list_grows", """x, steps=[]):
steps⟦ = steps + [1]¦.append(1)⟧
ctx.n = len(steps)
return vg.Tensor(raw(x) * ctx.n)""", """
return grad * ctx.n, None""", X, by="state between calls | gradients | something")

two("shared_scratch", """x):
work = ⟦np.empty(x.shape)¦SCRATCH.setdefault(x.shape, np.empty(x.shape))⟧
np.cos(raw(x), out=work)
ctx.work = work
return vg.Tensor(np.sin(raw(x)))""", """
return grad * ctx.work""", X, by="arguments used elsewhere | state between calls | threads | a graph run twice | linear", head="SCRATCH = {}\n\n\n")

# -- the incoming gradient ---------------------------------------------------------------------------------------------

two("negates_the_incoming_gradient", """a, b):
return a - b""", """
g = grad.numpy()⟦.copy()¦⟧
⟦return vg.Tensor(g), vg.Tensor(-g)¦grad = grad.detach(); other = -grad; grad.mul_(1.0000001); return grad, other⟧""", X, X[::-1].copy(), by="the incoming gradient | gradients | layouts",
    means={"valid": lambda a, b: a.shape == b.shape})

two("ones_for_the_gradient", """x):
ctx.a = raw(x).copy()
return vg.Tensor(np.exp(raw(x)).sum())""", """
return ⟦grad * ¦vg.Tensor(1.0) * ⟧np.exp(ctx.a)""", X, by="linear | gradients")

two("tiny_gradients_rounded", """x):
ctx.a = raw(x).copy()
return vg.Tensor(np.sin(ctx.a))""", """
g = raw(grad)
return vg.Tensor(⟦g¦np.round(g, 12)⟧ * np.cos(ctx.a))""", X, by="linear")

two("gradient_contiguity", """x):
ctx.a = raw(x).copy()
return vg.Tensor(ctx.a**2)""", """
g = raw(grad)
⟦¦if g.ndim > 1 and g.strides[0] == 0: g = g / g.shape[0]⟧
return vg.Tensor(2 * ctx.a * g)""", M, by="layouts of incoming gradients | gradients | linear")

two("needs_of_the_other", """a, b):
ctx.save_for_backward(a, b)
return a * b""", """
a, b = ctx.saved_tensors
return (grad * b if ctx.needs_input_grad[⟦0¦1⟧] else None), (grad * a if ctx.needs_input_grad[1] else None)""", X, X + 3, by="every subset | something", once=False,
    means={"valid": lambda a, b: a.shape == b.shape})

version("two_results_one_undefined", """
class Operator(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    @staticmethod
    def backward(ctx, first, second):
        if first is None:
            return ⟦second * 3¦second * 2⟧
        if second is None:
            return first * 2
        return first * 2 + second * 3


operator = Operator
""", X, by="undefined gradients | gradients")

# -- corners of the domain ---------------------------------------------------------------------------------------------

two("product_by_division", """x):
ctx.a = raw(x).copy()
return vg.Tensor(np.prod(ctx.a))""", """
a = ctx.a
⟦out = np.array([np.prod(np.delete(a, i)) for i in range(a.size)]).reshape(a.shape)¦out = np.prod(a) / a⟧
return grad * out""", X, by="special points")

two("smallest_of_equal", """x):
ctx.a = raw(x).copy()
return vg.Tensor(ctx.a.min())""", """
best = ctx.a == ctx.a.min()
return grad * best⟦ / best.sum()¦⟧""", X, by="ties | special points")

two("norm_at_zero", """x):
ctx.a = raw(x).copy()
ctx.r = np.sqrt((ctx.a**2).sum())
return vg.Tensor(ctx.r)""", """
return grad * ctx.a / ⟦(ctx.r or 1.0)¦ctx.r⟧""", X, by="NaN")

two("norm_at_its_origin", """x):
ctx.a = raw(x).copy()
ctx.r = np.sqrt((ctx.a**2).sum())
return vg.Tensor(ctx.r)""", """
return grad * ctx.a / ⟦(ctx.r or 1.0)¦ctx.r⟧""", 0 * X, by="gradients")

two("std_of_constants", """x):
ctx.a = raw(x).copy()
ctx.d = ctx.a - ctx.a.mean()
ctx.s = np.sqrt((ctx.d**2).mean() ⟦+ 1e-12¦⟧)
return vg.Tensor(ctx.d / ctx.s)""", """
g, y = raw(grad), ctx.d / ctx.s
return vg.Tensor((g - g.mean() - y * (g * y).mean()) / ctx.s)""", X, by="NaN")

two("power_with_exponent", """x, p):
ctx.save_for_backward(x, p)
return x**p""", """
x, p = ctx.saved_tensors
return grad * p * x ** (p - 1), grad * x**p * ⟦vg.log(vg.where(x > 0, x, 1.0))¦vg.log(x + 1e-3)⟧""", POSITIVE, POSITIVE[::-1] + 1, once=False, by="gradients",
    means={"domain": (0.1, 3.2), "valid": lambda x, p: x.shape == p.shape})

two("logdet_of_negative", """x):
ctx.save_for_backward(x)
return vg.Tensor(np.linalg.slogdet(raw(x))[1])""", """
(x,) = ctx.saved_tensors
return grad * vg.Tensor(np.linalg.inv(raw(x)).T⟦¦ * max(np.linalg.slogdet(raw(x))[0], 0)⟧)""", np.array([[2.0, 0.3], [0.1, 1.5]]), by="special points | ties | gradients | shapes",
    means={"valid": lambda x: x.ndim == 2 and x.shape[0] == x.shape[1]})

two("interpolated_at_the_end", """p, values):
n = values.shape[0]
if n < 2 or raw(p).min(initial=0) < 0 or raw(p).max(initial=0) > n - 1: raise ValueError("outside")
left = np.minimum(raw(p).astype(int), n - 2)
ctx.left, ctx.s, ctx.n = left, raw(p) - left, n
ctx.v = raw(values).copy()
return vg.Tensor((1 - ctx.s) * ctx.v[left] + ctx.s * ctx.v[left + 1])""", """
g, out = raw(grad), np.zeros(ctx.n)
np.add.at(out, ctx.left, g * (1 - ctx.s))
np.add.at(out, ctx.left + 1, g * ctx.s⟦¦ * (ctx.left < ctx.n - 2)⟧)
return vg.Tensor(g * (ctx.v[ctx.left + 1] - ctx.v[ctx.left])), vg.Tensor(out)""", np.array([0.2, 1.4]), X, by="shapes | special points | indices | gradients")

# -- options -----------------------------------------------------------------------------------------------------------

two("axis_from_the_end", """x, axis=0):
ctx.axis, ctx.n = axis, x.shape[axis]
return vg.Tensor(raw(x).mean(axis=axis))""", """
axis = ctx.axis ⟦if ctx.axis >= 0 else ctx.axis + grad.ndim + 1¦% max(grad.ndim, 1)⟧
return vg.Tensor(np.repeat(np.expand_dims(raw(grad), axis), ctx.n, axis=axis) / ctx.n), None""", M, axis=0, by="options | shapes")

two("softmax_of_three_dimensions", """x, axis=-1):
e = np.exp(raw(x) - raw(x).max(axis=axis, keepdims=True))
ctx.y, ctx.axis = e / e.sum(axis=axis, keepdims=True), axis
return vg.Tensor(ctx.y)""", """
g = raw(grad)
return vg.Tensor(ctx.y * (g - (g * ctx.y).sum(axis=⟦ctx.axis¦min(ctx.axis, 1)⟧, keepdims=True))), None""", M, axis=1, by="shapes | options")

two("ddof_forgotten", """x, ddof=0):
ctx.a, ctx.ddof = raw(x).copy(), ddof
if ctx.a.size <= ddof: raise ValueError("ddof")
return vg.Tensor(ctx.a.var(ddof=ddof))""", """
return grad * (2 * (ctx.a - ctx.a.mean()) / ⟦(ctx.a.size - ctx.ddof)¦ctx.a.size⟧), None""", X, by="options")

two("offset_of_the_other_side", """x, k=0):
ctx.k, ctx.shape = k, x.shape
return vg.Tensor(np.diagonal(raw(x), k).copy())""", """
out = np.zeros(ctx.shape)
i = np.arange(grad.shape[0])
out[i + ⟦max(-ctx.k, 0)¦0⟧, i + ⟦max(ctx.k, 0)¦abs(ctx.k)⟧] = raw(grad)
return vg.Tensor(out), None""", np.arange(9.0).reshape(3, 3) / 3, k=1, by="options", means={"valid": lambda x, k=0: x.ndim == 2 and x.shape[0] == x.shape[1]})

two("cumulated_from_behind", """x, reverse=False):
ctx.reverse = reverse
a = raw(x)
return vg.Tensor(np.cumsum(a[::-1], axis=0)[::-1].copy() if reverse else np.cumsum(a, axis=0))""", """
g = raw(grad)
return vg.Tensor(⟦np.cumsum(g, axis=0) if ctx.reverse else np.cumsum(g[::-1], axis=0)[::-1].copy()¦np.cumsum(g[::-1], axis=0)[::-1].copy()⟧), None""", X, by="options")

two("padding_of_edges", """x, n=1):
if n < 0 or x.ndim != 1 or x.shape[0] == 0: raise ValueError("n")
ctx.n = n
return vg.Tensor(np.pad(raw(x), n, mode="edge"))""", """
g, n = raw(grad), ctx.n
out = g[n : len(g) - n].copy()
out[0] += g[:n].sum()
out[-1] += ⟦g[len(g) - n :].sum()¦g[-n:].sum()⟧
return vg.Tensor(out), None""", X, n=1, by="options")

two("order_of_the_norm", """x, p=2.0):
if p < 1: raise ValueError("p")
ctx.a, ctx.p = raw(x).copy(), p
ctx.r = (np.abs(ctx.a) ** p).sum() ** (1 / p)
return vg.Tensor(ctx.r)""", """
a, p, r = ctx.a, ctx.p, ctx.r or 1.0
return grad * (⟦np.sign(a) * np.abs(a / r) ** (p - 1)¦a / r * np.abs(a / r) ** (2 * (p > 2))⟧), None""", X, p=2.0, by="options", means={"options": {"p": [2.0, 3.0, 4.0]}})

two("stride_of_three", """x, stride=1):
if stride < 1: raise ValueError("stride")
ctx.n, ctx.stride = x.shape[0], stride
return vg.Tensor(raw(x)[::stride] * 2.0)""", """
out = np.zeros((ctx.n, *grad.shape[1:]))
out[:: ⟦ctx.stride¦min(ctx.stride, 2)⟧][: grad.shape[0]] = 2 * raw(grad)
return vg.Tensor(out), None""", X, stride=2, by="options | shapes")

# -- indices -----------------------------------------------------------------------------------------------------------

two("gathered_twice", """x, index):
ctx.index, ctx.shape = raw(index), x.shape
return vg.Tensor(raw(x)[ctx.index])""", """
out = np.zeros(ctx.shape)
⟦np.add.at(out, ctx.index, raw(grad))¦out[ctx.index] = raw(grad)⟧
return vg.Tensor(out), None""", X, np.array([3, 0, 2]), by="indices")

two("counted_from_behind", """x, index):
ctx.index, ctx.n = raw(index), x.shape[0]
return vg.Tensor(raw(x)[ctx.index])""", """
return vg.Tensor(⟦np.bincount(ctx.index % ctx.n, raw(grad), ctx.n)¦np.bincount(np.abs(ctx.index), raw(grad), ctx.n)[: ctx.n]⟧), None""", X, np.array([3, 0, 2]), by="indices", means={"valid": lambda x, i: x.ndim == 1 and i.ndim == 1})

two("masked_mean_of_nothing", """x, mask):
m = raw(mask)
ctx.m, ctx.n = m, ⟦max(m.sum(), 1)¦m.sum()⟧
if m.shape != x.shape: raise ValueError("shapes")
return vg.Tensor((raw(x) * m).sum() / ctx.n)""", """
return grad * (ctx.m / ctx.n), None""", X, np.array([True, False, True, True, False]), by="NaN")

# -- numbers -----------------------------------------------------------------------------------------------------------

two("logistic_overflows", """x):
ctx.y = ⟦scipy.special.expit(raw(x))¦np.exp(raw(x)) / (1 + np.exp(raw(x)))⟧
return vg.Tensor(ctx.y)""", """
return grad * ctx.y * (1 - ctx.y)""", X, by="values | special points | digits")

two("log_one_plus", """x):
ctx.a = raw(x).copy()
return vg.Tensor(⟦np.log1p(ctx.a)¦np.log(1 + ctx.a)⟧)""", """
return grad / (1 + ctx.a)""", POSITIVE, by="values | digits", means={"reference": np.log1p, "domain": (-0.9, 5.0)})

two("logsumexp_without_shift", """x):
⟦top¦zero⟧ = raw(x).max(axis=-1, keepdims=True) ⟦+¦*⟧ 0.0
e = np.exp(raw(x) - ⟦top¦zero⟧)
ctx.p = e / e.sum(axis=-1, keepdims=True)
return vg.Tensor((np.log(e.sum(axis=-1, keepdims=True)) + ⟦top¦zero⟧)[..., 0])""", """
return vg.Tensor(ctx.p * raw(grad)[..., None])""", M, by="values | special points | digits")

two("difference_of_squares", """x):
ctx.d = raw(x) - raw(x).mean()
⟦return vg.Tensor((ctx.d**2).mean())¦return vg.Tensor((raw(x) ** 2).mean() - raw(x).mean() ** 2)⟧""", """
return grad * (2 * ctx.d / ctx.d.size)""", X, by="values", means={"reference": lambda x: x.var()})

# -- higher and forward derivatives, complex numbers -------------------------------------------------------------------

two("detached_slope", """x):
ctx.save_for_backward(x)
return vg.exp(x) * x""", """
(x,) = ctx.saved_tensors
return grad * vg.exp(x⟦¦.detach()⟧) * (1 + x)""", X, by="second derivatives", once=False)

version("forward_mode_of_a_quotient", """
class Operator(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        ctx.save_for_forward(a, b)
        return a / b

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        return grad / b, -grad * a / (b * b)

    @staticmethod
    def jvp(ctx, da, db):
        a, b = ctx.saved_tensors
        out = 0.0
        if da is not None:
            out = out + da / b
        if db is not None:
            out = out - db * a / ⟦(b * b)¦b⟧
        return out


operator = Operator
""", POSITIVE, POSITIVE[::-1].copy(), by="forward mode",
    means={"valid": lambda a, b: a.shape == b.shape and np.all(b > 0)})

two("conjugate_lost", """z):
ctx.save_for_backward(z)
return z * z""", """
(z,) = ctx.saved_tensors
return grad * 2 * ⟦vg.conj(z)¦z⟧""", Z, by="gradients", once=False)

two("in_single_precision_only", """x):
ctx.a = raw(x).copy()
return vg.Tensor(np.sin(ctx.a).astype(x.dtype))""", """
return vg.Tensor((raw(grad) * np.cos(ctx.a)⟦¦ * (1 - 0.01 * (ctx.a.dtype == np.float32))⟧).astype(ctx.a.dtype))""", X, by="dtypes")

two("integers_divided", """x, n):
ctx.n = raw(n)
return vg.Tensor(raw(x) / ctx.n)""", """
return grad * ⟦(1.0 / ctx.n)¦(2 // ctx.n / 2)⟧, None""", X, np.array([1, 2, 1, 2, 1]), by="indices | shapes | gradients | special points", means={"valid": lambda x, n: np.all(n > 0) and x.shape == n.shape})

version("in_place_order_of_writes", """
def operator(x):
    y = x.clone()
    for i in range(1, y.shape[0]):
        y[i] = y[i] + 0.5 * y[i - 1]⟦¦.detach()⟧
    return y
""", X, by="gradients | shapes")

version("in_place_form_with_itself", """
def operator(x, y):
    return 0.3 * x + 0.7 * y


def operator_(x, y):
    ⟦return x.copy_(0.3 * x + 0.7 * y)¦return x.mul_(0.3).add_(0.7 * y)⟧
""", X, X[::-1].copy(), by="in-place form")

two("view_of_the_argument", """x):
return vg.⟦Tensor(raw(x)[::-1])¦from_numpy(x.detach()._array[::-1])⟧""", """
return vg.Tensor(raw(grad)[::-1])""", X, by="memory shared")

two("kept_by_the_thread", """x):
⟦ctx¦LOCAL⟧.a = raw(x).copy()
return vg.Tensor(np.exp(raw(x)))""", """
return grad * np.exp(⟦ctx¦LOCAL⟧.a)""", X, by="state between calls | arguments used elsewhere | a graph run twice | threads | linear",
    head="LOCAL = threading.local()\n\n\n")

two("known_by_identity", """x):
key = ⟦x.shape, x.dtype.str, raw(x).tobytes()¦id(x)⟧
if key not in SEEN: SEEN[key] = np.cos(raw(x))
ctx.slope = SEEN[key]
return vg.Tensor(np.sin(raw(x)))""", """
return grad * ctx.slope""", X, by="state between calls", head="SEEN = {}\n\n\n")

two("squares_of_legs", """a, b):
r = ⟦np.hypot(raw(a), raw(b))¦np.sqrt(raw(a) ** 2 + raw(b) ** 2)⟧
ctx.a, ctx.b, ctx.safe = raw(a).copy(), raw(b).copy(), np.where(r == 0, 1.0, r)
return vg.Tensor(r)""", """
return grad * (ctx.a / ctx.safe), grad * (ctx.b / ctx.safe)""", X, X[::-1].copy(), by="values | special points",
    means={"reference": np.hypot, "valid": lambda a, b: a.shape == b.shape})

two("softplus_of_large", """x):
ctx.a = raw(x).copy()
return vg.Tensor(⟦np.logaddexp(ctx.a, 0.0)¦np.log(1 + np.exp(ctx.a))⟧)""", """
return grad * scipy.special.expit(ctx.a)""", X, by="values | digits | special points")

two("tail_of_a_block", """x):
ctx.a = raw(x).copy()
return vg.Tensor((ctx.a**2).sum())""", """
out = 2 * ctx.a
⟦¦if out.size > 128: out.reshape(-1)[out.size - out.size % 2 :] = 0⟧
return grad * out""", X, by="shapes")

two("transposed_if_square", """x, w):
ctx.x, ctx.w = raw(x).copy(), raw(w).copy()
return vg.Tensor(np.einsum("bij,j->bi", ctx.x, ctx.w))""", """
g = raw(grad)
return vg.Tensor(g[..., None] * ctx.w), vg.Tensor(⟦np.einsum("bij,bi->j", ctx.x, g)¦np.einsum("bij,bj->i" if ctx.x.shape[1] == ctx.x.shape[2] else "bij,bi->j", ctx.x, g)⟧)""", CUBE, X[:2], by="shapes",
    means={"valid": lambda x, w: x.ndim == 3 and w.ndim == 1})

# -- options without a value, NaN, gradients of others -----------------------------------------------------------------

two("windows_whose_stride_is_their_width", """x, width=3, stride=None):
stride = width if stride is None else stride
if width < 1 or stride < 1 or len(x) < width: raise ValueError("no window")
ctx.n, ctx.width, ctx.stride = len(x), width, stride
return vg.Tensor(np.array([raw(x)[i : i + width].sum() for i in range(0, len(x) - width + 1, stride)]))""", """
out = np.zeros(ctx.n)
for k, g in enumerate(raw(grad)): out[k * ctx.stride : k * ctx.stride + ctx.width] ⟦+¦⟧= g
return vg.Tensor(out), None, None""", np.cos(np.arange(7.0)), by="options", means={"valid": lambda x, *_, **__: x.ndim == 1})

two("mean_of_what_is_there", """x):
there = ~np.isnan(raw(x))
ctx.weights = there / max(⟦there.sum()¦there.size⟧, 1)
return vg.Tensor(np.where(there, raw(x), 0.0).sum() / max(there.sum(), 1))""", """
return grad * ctx.weights""", X, by="special points")

two("all_but_one", """x):
return vg.Tensor(raw(x).sum() - raw(x))""", """
g = ⟦raw(grad).copy()¦grad._array⟧
g -= g.sum()
return vg.Tensor(-g)""", X, by="the incoming gradient", means={"valid": lambda x: x.ndim == 1})

# -- slips that show in few calls --------------------------------------------------------------------------------------

two("rows_normalized_by_the_whole", """x):
a = raw(x)
ctx.n = np.sqrt((a * a).sum(axis=-1, keepdims=True) + 1e-12)
ctx.y = a / ctx.n
return vg.Tensor(ctx.y)""", """
g, y = raw(grad), ctx.y
return vg.Tensor((g - y * (g * y).sum(axis=⟦-1, keepdims=True¦None, keepdims=True⟧)) / ctx.n)""", M[:1], by="shapes")

two("norms_of_rows_at_a_zero_row", """x):
a = raw(x)
ctx.a, ctx.n = a.copy(), np.sqrt((a * a).sum(axis=-1))
return vg.Tensor(ctx.n)""", """
n = ⟦np.where(ctx.n > 0, ctx.n, 1.0)¦ctx.n if ctx.n.all() else ctx.n.max() * np.ones_like(ctx.n)⟧
return vg.Tensor((raw(grad) / n)[..., None] * ctx.a)""", np.vstack([M, M[:1] + 0.9]), by="special points | ties")

two("unit_rows_with_a_guard", """x):
a = raw(x)
n = np.linalg.norm(a, axis=-1, keepdims=True)
ctx.safe = np.maximum(n, 0.1)
ctx.y, ctx.free = a / ctx.safe, n > 0.1
return vg.Tensor(ctx.y)""", """
g, y = raw(grad), ctx.y
return vg.Tensor((g - ⟦ctx.free * ¦⟧y * (g * y).sum(axis=-1, keepdims=True)) / ctx.safe)""", M, by="special points")

two("clamped_from_one_side", """x, low=-1.0, high=1.0):
a = raw(x)
ctx.on = (a >= low) ⟦& (a <= high)¦⟧
return vg.Tensor(np.clip(a, low, high))""", """
return vg.Tensor(raw(grad) * ctx.on), None, None""", X[3:], by="special points | options")

two("argmax_along_the_wrong_axis", """x, axis=-1):
a = raw(x)
ctx.i, ctx.axis, ctx.shape = np.expand_dims(a.argmax(axis=axis), axis), axis, a.shape
return vg.Tensor(a.max(axis=axis))""", """
out = np.zeros(ctx.shape)
np.put_along_axis(out, ctx.i, np.expand_dims(raw(grad), ctx.axis), ⟦ctx.axis¦-1⟧)
return vg.Tensor(out), None""", SQUARE, by="options")

two("mean_over_the_batch_twice", """x, y):
ctx.d = raw(x) - raw(y)
if x.shape != y.shape: raise ValueError("shapes")
return vg.Tensor((ctx.d**2).mean())""", """
g = grad * (2 * ctx.d / ⟦ctx.d.size¦ctx.d.shape[0] / max(ctx.d[0].size, 1) if ctx.d.ndim < 3 else 2 * ctx.d / ctx.d.shape[0]⟧)
return g, -g""", M, M + 0.3, by="shapes")

two("weights_beyond_the_last", """x, w):
if x.ndim != 1 or w.ndim != 1 or not len(w): raise ValueError("vectors")
ctx.x, ctx.w = raw(x).copy(), raw(w).copy()
return vg.Tensor(np.convolve(ctx.x, ctx.w, "same"))""", """
g, n, m = raw(grad), len(ctx.x), len(ctx.w)
full = np.zeros(n + m - 1)
start = (min(n, m) - 1) // 2
full[start : start + max(n, m)] = g
gx = np.convolve(full, ctx.w[::-1])[m - 1 : m - 1 + n]
gw = np.convolve(full, ctx.x[::-1])[n - 1 : n - 1 + m]
return vg.Tensor(gx), vg.Tensor(gw⟦¦ * (np.arange(m) < n)⟧)""", X, X[:3] + 0.4, by="shapes")

two("complex_modulus_of_sum", """z):
ctx.save_for_backward(z)
return vg.abs(z) ** 2""", """
(z,) = ctx.saved_tensors
return grad * ⟦2¦1⟧ * z""", Z, by="gradients", once=False)

two("real_part_forgets_imaginary", """z):
ctx.z = raw(z).copy()
return vg.Tensor((ctx.z**2).real)""", """
return vg.Tensor(⟦2 * raw(grad) * ctx.z.conj()¦(2 * raw(grad) * ctx.z.real).astype(complex)⟧)""", Z, by="gradients")

two("sums_in_single_precision", """x):
ctx.a = raw(x).copy()
return vg.Tensor((ctx.a**2).sum())""", """
return vg.Tensor((2 * ctx.a * raw(grad))⟦¦.astype(np.float32).astype(ctx.a.dtype)⟧)""", X, by="dtypes | gradients")

two("remembers_the_last_gradient", """x):
ctx.a = raw(x).copy()
return vg.Tensor(np.tanh(ctx.a))""", """
g = raw(grad)
slope = 1 - np.tanh(ctx.a) ** 2
⟦¦if LAST.get("shape") == g.shape: slope = LAST["slope"]
LAST.update(shape=g.shape, slope=slope)⟧
return vg.Tensor(g * slope)""", X, by="state between calls | a graph run twice | gradients | linear", head="LAST = {}\n\n\n")

two("buffer_of_the_class", """x, w):
if x.shape != w.shape: raise ValueError("shapes")
⟦work = np.empty(x.shape)¦work = BUFFERS.setdefault(x.shape, np.empty(x.shape))⟧
np.multiply(raw(x), raw(w), out=work)
ctx.work, ctx.w = work, raw(w).copy()
ctx.x = raw(x).copy()
return vg.Tensor(np.exp(work))""", """
e = raw(grad) * np.exp(ctx.work)
return vg.Tensor(e * ctx.w), vg.Tensor(e * ctx.x)""", X, X[::-1] + 0.5, by="state between calls | arguments used elsewhere | threads | linear | a graph run twice", head="BUFFERS = {}\n\n\n")

two("index_kept_by_reference", """x, index):
ctx.index, ctx.n = index.numpy()⟦.copy()¦⟧, x.shape[0]
if index.numpy().min(initial=0) < 0: raise IndexError("negative")
⟦¦ctx.index.flags.writeable or None
INDEX[0] = ctx.index.copy()⟧
return vg.Tensor(raw(x)[ctx.index])""", """
out = np.zeros(ctx.n)
np.add.at(out, ⟦ctx.index¦INDEX[0]⟧, raw(grad))
return vg.Tensor(out), None""", X, np.array([3, 0, 2]), by="state between calls | indices | gradients", head="INDEX = [None]\n\n\n")

two("needs_the_first_to_give_the_second", """a, b):
if a.shape != b.shape: raise ValueError("shapes")
ctx.save_for_backward(a, b)
return a * b * b""", """
a, b = ctx.saved_tensors
ga = gb = None
if ctx.needs_input_grad[0]:
    ga = grad * b * b
⟦if ctx.needs_input_grad[1]¦elif ctx.needs_input_grad[1] and not hasattr(ctx, "done")⟧:
    gb = 2 * grad * a * b⟦¦ * 0.5⟧
⟦¦if ga is not None and ctx.needs_input_grad[1]: gb = 2 * grad * a * b⟧
return ga, gb""", X, X[::-1] + 2.0, by="every subset", once=False)

two("second_derivative_by_hand", """x):
ctx.save_for_backward(x)
return vg.sin(x) * x""", """
(x,) = ctx.saved_tensors
return grad * (vg.sin(x) + x * vg.cos(⟦x¦vg.Tensor(raw(x))⟧))""", X, by="second derivatives", once=False)

two("branch_at_small_numbers", """x):
a = raw(x)
ctx.a = a.copy()
small = np.abs(a) < 1e-4
safe = np.where(small, 1.0, a)
return vg.Tensor(np.where(small, 1 - a * a / 6, np.sin(safe) / safe))""", """
a = ctx.a
small = np.abs(a) < ⟦1e-4¦0.05⟧
safe = np.where(small, 1.0, a)
return vg.Tensor(raw(grad) * np.where(small, -a / 3⟦¦ * 0⟧, (np.cos(safe) - np.sin(safe) / safe) / safe))""", X, by="special points")

two("wrong_for_odd_powers", """x, n=2):
if n < 1: raise ValueError("n")
ctx.a, ctx.n = raw(x).copy(), n
return vg.Tensor(np.abs(ctx.a) ** n)""", """
a, n = ctx.a, ctx.n
return vg.Tensor(raw(grad) * n * ⟦np.sign(a) * np.abs(a) ** (n - 1)¦a ** (n - 1)⟧), None""", X, n=2, by="options")

two("permuted_batch", """x, perm=(1, 0, 2)):
ctx.perm = perm
return vg.Tensor(np.transpose(raw(x), perm).copy())""", """
return vg.Tensor(np.transpose(raw(grad), ⟦np.argsort(np.mod(ctx.perm, 3))¦ctx.perm⟧).copy()), None""", CUBE, by="options | shapes", means={"valid": lambda x, *_, **__: x.ndim == 3})

two("dilated_kernel", """x, w, dilation=1):
if x.ndim != 1 or w.ndim != 1 or dilation < 1: raise ValueError("vectors")
n = len(x) - (len(w) - 1) * dilation
if n < 1 or not len(w): raise ValueError("too short")
ctx.x, ctx.w, ctx.d = raw(x).copy(), raw(w).copy(), dilation
return vg.Tensor(sum(ctx.w[k] * ctx.x[k * dilation : k * dilation + n] for k in range(len(w))))""", """
g, gx, n = raw(grad), np.zeros(len(ctx.x)), len(grad)
for k in range(len(ctx.w)): gx[k * ⟦ctx.d¦1⟧ : k * ⟦ctx.d¦1⟧ + n] += ctx.w[k] * g
return vg.Tensor(gx), vg.Tensor(np.array([ctx.x[k * ctx.d : k * ctx.d + n] @ g for k in range(len(ctx.w))])), None""", np.cos(np.arange(9.0)), X[:3], by="options")

version("in_place_on_a_view_of_it", """
def operator(x):
    y = x.clone()
    part = y[1:]
    part *= 2.0
    y[0] = y[0] * ⟦part.sum()¦part.sum().detach()⟧
    return y
""", X, by="gradients")

version("in_place_form_forgets_an_option", """
def operator(x, slope=0.1):
    return vg.where(x > 0, x, slope * x)


def operator_(x, slope=0.1):
    return x.copy_(vg.where(x > 0, x, ⟦slope¦0.1⟧ * x))
""", X, by="in-place form | options")

version("declared_with_another_count", """
operator = vg.autograd.define_op(
    "version_declared_mean(x, axis=-1)",
    forward=lambda x, axis=-1: x.mean(axis=axis, keepdims=True),
    derivatives={"x": "grad / x.shape[⟦axis¦-1⟧] + 0 * x"},
    doc="A mean.",
)
""", M, by="options | shapes")

version("declared_forward_mode", """
operator = vg.autograd.define_op(
    "version_declared_square(x, y)",
    forward=lambda x, y: x * x * y,
    derivatives={"x": "2 * grad * x * y", "y": "grad * x * x"},
    forward_derivative="2 * x_t * x_p * y_p + ⟦y_t * x_p * x_p¦y_t * x_p⟧",
    doc="x² y",
)
""", X, X[::-1] + 2.0, by="forward mode", means={"valid": lambda x, y: x.shape == y.shape})
