"""Scalars: the 0-d results of operators, reductions and integer indexing are values.

One source is run on ndarrays and on tensors. Values must be the same, and gradients those of finite differences.
"""

import copy
import math
import numbers
import operator
import pickle
import statistics
import tracemalloc
from decimal import Decimal
from fractions import Fraction
from functools import singledispatch

import numpy as np
import pytest
import scalar_programs
from hypothesis import given, settings
from hypothesis import strategies as st

import viewgrad as vg
from viewgrad.autograd import forward_ad
from viewgrad.errors import AutogradError, ScalarWriteError, ViewInPlaceError
from viewgrad.tensor.tensor import is_scalar

# -- programs: the same source on arrays and on tensors ----------------------------------------------------------------


def swap(a):
    a[0], a[1] = a[1], a[0]
    return a


def insertion_sort(a):
    for i in range(1, len(a)):
        key = a[i]
        j = i - 1
        while j >= 0 and a[j] > key:
            a[j + 1] = a[j]
            j -= 1
        a[j + 1] = key
    return a


def augmented_read(a):
    s = a[0]
    s += a[1]
    s *= a[2]
    a[3] = s
    return a


def rebound_in_a_loop(a):
    x = a[0] * 1.0
    r = []
    for _ in range(3):
        x *= 2.0
        r.append(x)
    a[0], a[1], a[2] = r
    return a


def bubble_sort(a):
    for i in range(len(a)):
        for j in range(len(a) - 1 - i):
            if a[j] > a[j + 1]:
                a[j], a[j + 1] = a[j + 1], a[j]
    return a


def selection_sort(a):
    for i in range(len(a)):
        least = i
        for j in range(i + 1, len(a)):
            if a[j] < a[least]:
                least = j
        a[i], a[least] = a[least], a[i]
    return a


def fisher_yates(a):
    rng = np.random.default_rng(3)
    for i in range(len(a) - 1, 0, -1):
        j = int(rng.integers(i + 1))
        a[i], a[j] = a[j], a[i]
    return a


def shuffled(a):
    np.random.default_rng(4).shuffle(a)
    return a


def sorted_by_python(a):
    for i, v in enumerate(sorted(a)):
        a[i] = v * (i + 1.0)
    return a


def gaussian_elimination(a):
    m = a[:4].reshape(2, 2) + 3 * np.eye(2)
    b = a[4:6] * 1.0
    for i in range(2):
        pivot = m[i, i]
        for k in range(i + 1, 2):
            factor = m[k, i] / pivot
            m[k] -= factor * m[i]
            b[k] -= factor * b[i]
    a[1] = b[1] / m[1, 1]
    a[0] = (b[0] - m[0, 1] * a[1]) / m[0, 0]
    return a


def running_sum(a):
    s = 0.0
    for i in range(len(a)):
        s += a[i]
        a[i] = s
    return a


def running_sum_from_an_element(a):
    s = a[0]
    for i in range(1, len(a)):
        s += a[i]
        a[i] = s
    return a


def extremes(a):
    low = high = a[0]
    for v in a:
        if v < low:
            low = v
        if v > high:
            high = v
    a[0] = high - low
    return a


def extremes_by_python(a):
    a[0] = max(a) - 2 * min(a) + sum(a)
    return a


def horner(a):
    x = a[0]
    r = a[5]
    for k in range(4, 0, -1):
        r = r * x + a[k]
    a[0] = r
    return a


def fibonacci(a):
    p, q = a[0], a[1]
    for i in range(2, len(a)):
        p, q = q, p + q * 0.5
        a[i] += q
    return a


def reversed_in_place(a):
    i, j = 0, len(a) - 1
    while i < j:
        a[i], a[j] = a[j], a[i]
        i, j = i + 1, j - 1
    return a


def rotated(a):
    first = a[0]
    for i in range(len(a) - 1):
        a[i] = a[i + 1]
    a[-1] = first
    return a


def newton_step(a):
    x = a[0]
    for _ in range(4):
        x -= (x * x * x + x - a[1]) / (3 * x**2 + 1)
    a[0] = x
    return a


def continued_fraction(a):
    r = a[-1]
    for i in range(len(a) - 2, -1, -1):
        r = a[i] + 1 / (r * r + 2.0)
    a[0] = r
    return a


def exponential_smoothing(a):
    level, trend = a[0], a[1] - a[0]
    for i in range(2, len(a)):
        before = level
        level = 0.3 * a[i] + 0.7 * (level + trend)
        trend = 0.1 * (level - before) + (1 - 0.1) * trend
        a[i] = level + trend
    return a


def gram(a):
    m = a.reshape(2, 3)
    for i in range(2):
        for k in range(3):
            m[i, k] += m[i, (k + 1) % 3] * m[1 - i, k]
    return a


def sum_kept_while_written(a):
    s = a.sum()
    a[0] = s
    a *= 2
    a[1] = s
    s /= 2
    a[2] = s
    return a


def norms(a):
    r = np.sqrt((a * a).sum())
    a /= r
    r -= 1
    a[0] += r
    return a


def partition(a):
    pivot, i = a[-1], 0
    for j in range(len(a) - 1):
        if a[j] <= pivot:
            a[i], a[j] = a[j], a[i]
            i += 1
    a[i], a[-1] = a[-1], a[i]
    return a


def mean_and_variance(a):
    mean, m2 = 0.0, 0.0
    for i, v in enumerate(a):
        delta = v - mean
        mean += delta / (i + 1)
        m2 += delta * (v - mean)
    a[0], a[1] = mean, m2
    return a


def through_a_view(a):
    v = a[1:4]
    s = v[0]
    v[0] = v[2] * 2
    a[1] *= s
    v += s
    return a


def minimum_path(a):
    cost = a[0]
    for i in range(1, len(a)):
        cost = np.minimum(cost, a[i]) + np.maximum(a[i - 1], 0.2) * 0.3
        a[i] = cost
    return a


def powers(a):
    s = abs(a[0]) + 1.0
    a[1] = s**2 - 2.0**s + s**0.5 + np.exp(-s) + np.log(s) * np.tanh(s)
    a[2] = -s // 1.0 + (s % 0.7)
    return a


def numbers_of_numpy(a):
    two = np.float64(2.0)
    a[0] = two * a[1] + a[1] * two - two / (a[2] + two)
    return a


def windows_of_one_element(a):
    cell = a[2, ...]
    cell *= 3.0
    cell += a[0]
    whole = a[...]
    whole[1] = cell
    return a


PROGRAMS = [value for value in list(globals().values()) if getattr(value, "__module__", "") == __name__]
START = np.array([0.7, -0.4, 1.9, 0.25, -1.3, 0.6])


def loss(a, weights):
    return (a * weights * a).sum()


@pytest.mark.filterwarnings("ignore:you are shuffling")
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_one_source_on_arrays_and_on_tensors(program):
    weights = np.cos(np.arange(6.0))

    def value(start):
        return loss(program(start.copy()), weights)

    x = vg.Tensor(START, requires_grad=True)
    result = program(x.clone())
    np.testing.assert_allclose(result.detach().numpy(), program(START.copy()), rtol=1e-14)
    (grad,) = vg.autograd.grad(loss(result, weights), x)
    step = 1e-6
    for i in range(6):
        e = np.eye(6)[i] * step
        assert abs(grad[i].item() - (value(START + e) - value(START - e)) / (2 * step)) < 1e-6, i
    with vg.autograd.graph.plain_engine():
        (plain,) = vg.autograd.grad(loss(program(x.clone()), weights), x)
    np.testing.assert_allclose(plain.numpy(), grad.numpy(), rtol=1e-12, atol=1e-14)
    assert vg.autograd.gradgradcheck(lambda t: loss(program(t.clone()), weights), [x])


@pytest.mark.filterwarnings("ignore:you are shuffling")
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_forward_mode_agrees(program):
    weights = np.cos(np.arange(6.0))
    x = vg.Tensor(START, requires_grad=True)
    (grad,) = vg.autograd.grad(loss(program(x.clone()), weights), x)
    direction = np.sin(np.arange(6.0) + 2)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(vg.Tensor(START), vg.Tensor(direction))
        tangent = forward_ad.unpack_dual(loss(program(dual.clone()), weights)).tangent
    np.testing.assert_allclose(tangent.item(), grad.numpy() @ direction, rtol=1e-9)
    _, cotangent = vg.func.vjp(vg.func.functionalize(lambda t: loss(program(t.clone()), weights)), x.detach())
    np.testing.assert_allclose(cotangent(vg.ones(()))[0].detach().numpy(), grad.numpy(), rtol=1e-9, atol=1e-12)


# -- drawn programs ----------------------------------------------------------------------------------------------------

LENGTH = 4
NAMES = ["p", "q", "r"]
PLACE = st.integers(0, LENGTH - 1).map(str)
OPERAND = st.one_of(
    st.sampled_from(NAMES),
    PLACE.map("a[{}]".format),
    PLACE.map("b[{}, 1]".format),
    st.sampled_from(["0.5", "2", "-1.25"]),
)
TARGET = st.one_of(st.sampled_from(NAMES), PLACE.map("a[{}]".format), PLACE.map("b[{}, 0]".format))
LINE = st.one_of(
    st.tuples(TARGET, OPERAND).map("{0[0]} = {0[1]}".format),
    st.tuples(TARGET, st.sampled_from(["+=", "-=", "*="]), OPERAND).map("{0[0]} {0[1]} {0[2]}".format),
    st.tuples(TARGET, OPERAND, st.sampled_from("+-*"), OPERAND).map("{0[0]} = {0[1]} {0[2]} {0[3]}".format),
    st.tuples(PLACE, PLACE).map("a[{0[0]}], a[{0[1]}] = a[{0[1]}], a[{0[0]}]".format),
    st.tuples(PLACE, PLACE).map("b[{0[0]}, 0], a[{0[1]}] = a[{0[1]}], b[{0[0]}, 0]".format),
    st.tuples(st.sampled_from(NAMES), OPERAND).map("{0[0]} = np.tanh({0[1]})".format),
    st.tuples(st.sampled_from(NAMES), st.sampled_from(["a.sum()", "b[1].sum()", "a.max()"])).map(" = ".join),
    PLACE.map("a[{}, ...] *= 0.5".format),
    st.sampled_from(["a *= 0.5", "b[1] += a[:2]", "p, q, r = q, r, p", "a[1:] += p", "for v in a: r = r * 0.3 + v"]),
)


@settings(max_examples=120, deadline=None)
@given(st.lists(LINE, min_size=1, max_size=14))
def test_drawn_programs_of_scalars(lines):
    end = "end = (a * a).sum() + b.sum() + 0.3 * (p + q * r)"
    source = "\n".join(["p, q, r = a[0], b[1, 1], a.sum()", *lines, end])
    code = compile(source, "<drawn>", "exec")

    def run(a, b):
        names = {"a": a, "b": b, "np": np}
        exec(code, names)
        return names

    start_a, start_b = np.array([0.9, -0.6, 0.4, 1.2]), np.linspace(-1.0, 1.0, 8).reshape(4, 2)
    x, y = vg.Tensor(start_a, requires_grad=True), vg.Tensor(start_b, requires_grad=True)
    theirs, ours = run(start_a.copy(), start_b.copy()), run(x.clone(), y.clone())
    for name in ("a", "b", "p", "q", "r", "end"):
        np.testing.assert_allclose(
            ours[name].detach().numpy() if isinstance(ours[name], vg.Tensor) else ours[name],
            theirs[name],
            rtol=1e-12,
            atol=1e-300,
            err_msg=source,
        )
    if not np.isfinite(theirs["end"]) or abs(theirs["end"]) > 1e6:
        return
    found = vg.autograd.grad(ours["end"], [x, y], allow_unused=True)
    grads = [np.zeros(t.shape) if g is None else g.numpy() for g, t in zip(found, (x, y), strict=True)]
    directions = np.cos(np.arange(4.0)), np.sin(np.arange(8.0)).reshape(4, 2)
    with forward_ad.dual_level():
        a = forward_ad.make_dual(vg.Tensor(start_a), vg.Tensor(directions[0]))
        b = forward_ad.make_dual(vg.Tensor(start_b), vg.Tensor(directions[1]))
        tangent = forward_ad.unpack_dual(run(a.clone(), b.clone())["end"]).tangent
    along = sum((g * d).sum() for g, d in zip(grads, directions, strict=True))
    np.testing.assert_allclose(0.0 if tangent is None else tangent.item(), along, rtol=1e-9, atol=1e-9, err_msg=source)


# -- what is a scalar, and what is not ---------------------------------------------------------------------------------

X = vg.Tensor([[1.0, 2.0], [3.0, 4.0]])
V = vg.Tensor([1.0, 2.0, 3.0])
SCALARS = {
    "read by one integer": lambda: V[1],
    "read by integers": lambda: X[1, -1],
    "read by NumPy's integer": lambda: V[np.int64(2)],
    "read by an array without dimensions": lambda: V[vg.Tensor(1)],
    "read of an array without dimensions": lambda: vg.Tensor(3.0)[()],
    "iteration": lambda: next(iter(V)),
    "reduction": lambda: X.sum(),
    "NumPy's reduction": lambda: np.max(X),
    "operator on arrays without dimensions": lambda: vg.Tensor(3.0) * vg.Tensor(2.0),
    "ufunc on an array without dimensions": lambda: np.exp(vg.Tensor(3.0)),
    "operator on scalars": lambda: V[0] * V[1] - 1,
    "comparison": lambda: V[0] < V[1],
    "inner product": lambda: V @ V,
    "copy": lambda: V[0].copy(),
    "copy.copy": lambda: copy.copy(V[0]),
    "detach": lambda: V.sum().detach(),
    "real part": lambda: vg.Tensor([1 + 2j])[0].real,
    "integer": lambda: vg.arange(3)[1],
    "single precision": lambda: vg.ones(2, dtype=np.float32)[0],
    "pickled": lambda: pickle.loads(pickle.dumps(V[0])),
    **({"np.unstack": lambda: np.unstack(V)[0]} if hasattr(np, "unstack") else {}),  # new in NumPy 2.1
}
ARRAYS = {
    "constructor": lambda: vg.Tensor(3.0),
    "constructor from a scalar": lambda: vg.Tensor(V[0]),
    "zeros": lambda: vg.zeros(()),
    "full": lambda: vg.full((), 2.0),
    "read with ...": lambda: V[1, ...],
    "select": lambda: V.select(0, 1),
    "unbind": lambda: V.unbind()[0],
    "reshape": lambda: vg.ones(1).reshape(()),
    "clone of a scalar": lambda: V[0].clone(),
    "... of a scalar": lambda: V[0][...],
    "requires_grad_ of a scalar": lambda: V[0].requires_grad_().detach(),
    "copy of an array": lambda: vg.Tensor(3.0).copy(),
    "zeros_like": lambda: vg.zeros_like(V[0]),
    "grad": lambda: vg.autograd.grad((lambda x: x * x)(t := vg.Tensor(3.0, requires_grad=True)), t)[0],
}


@pytest.mark.parametrize("make", SCALARS.values(), ids=SCALARS)
def test_scalars(make):
    s = make()
    assert is_scalar(s) and s.shape == () and s._base is None and s._version == 0
    value = s.item()
    writes = [
        lambda: s.mul_(1),
        lambda: s.copy_(1),
        lambda: s.fill_(1),
        lambda: s.zero_(),
        lambda: np.multiply(s, s, out=s),
        lambda: s.__setitem__(..., 1),
        lambda: s.__setitem__((), 1),
        lambda: s.copy_where_(1, True),
    ]
    for write in writes:
        with pytest.raises(ScalarWriteError, match=r"a\[i, \.\.\.\].*clone\(\)"):
            write()
        with pytest.raises(ScalarWriteError), vg.no_grad():
            write()
    assert s.item() == value
    other = s
    if s.dtype.kind in "fci":
        s += 1
        assert s is not other and is_scalar(s) and s.item() == value + 1 and other.item() == value


@pytest.mark.parametrize("make", ARRAYS.values(), ids=ARRAYS)
def test_arrays_without_dimensions(make):
    a = make()
    assert not is_scalar(a) and a.shape == ()
    same, before = a, a.item()
    a += 1
    assert a is same and a.item() == before + 1 and a._version > 0
    a[...] = 7.0
    assert a.item() == 7.0
    a.fill_(before)  # some are views of memory that others use


def test_windows_of_one_element_are_views():
    a = vg.zeros(3)
    for window in (a[1, ...], a.select(0, 1), a.unbind()[1]):
        assert window._base is a
        window += 1
    assert a.tolist() == [0.0, 3.0, 0.0]


# -- what scalars keep of the meaning of tensors -----------------------------------------------------------------------


def test_a_read_is_recorded_as_one_node():
    x = vg.Tensor([1.0, 2.0, 3.0], requires_grad=True)
    s = x[1]
    assert s.grad_fn.name() == "ElementBackward" and s.grad_fn.next_functions[0][0].variable is x
    s.retain_grad()
    seen = []
    s.register_hook(lambda g: seen.append(g.item()) or g * 10)
    y = s * s * x[0]
    assert [g.item() for g in vg.autograd.grad(y, [s, x[0]], retain_graph=True, allow_unused=True)[:1]] == [40.0]
    y.backward()
    assert (seen, s.grad.item(), x.grad.tolist()) == ([4.0, 4.0], 80.0, [4.0, 40.0, 0.0])
    x.grad.zero_()
    s.grad.zero_()


def test_a_scalar_read_does_not_change():
    x = vg.Tensor([1.0, 2.0], requires_grad=True)
    y = x * 1
    s = y[0]
    y[0] = 5.0
    y *= 3
    (s * s + y.sum()).backward()
    assert s.item() == 1.0 and x.grad.tolist() == [2.0, 3.0]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.complex64, np.complex128, np.int64, np.bool_])
def test_promotion_matches_numpy(dtype):
    array = np.ones(2, dtype)
    tensor = vg.Tensor(array)
    others = [2, 2.5, np.float32(2), np.float64(2), np.int8(2), np.ones(2, np.float32), np.ones((), np.float16)]
    for other in (*others, 1j):
        for apply in (operator.add, operator.mul, operator.truediv):
            for ours, theirs in (
                (apply(tensor[0], other), apply(array[0], other)),
                (apply(other, tensor[0]), apply(other, array[0])),
            ):
                assert isinstance(ours, vg.Tensor)
                np.testing.assert_allclose(ours.numpy(), theirs)
                wanted = np.result_type(theirs)
                if isinstance(other, np.ndarray) and not other.ndim and dtype != np.bool_:
                    wanted = ours.dtype  # NumPy treats the operand of a zero-dimensional array as a scalar
                assert ours.dtype == wanted, (other, apply)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.complex128, np.int64, np.bool_])
@pytest.mark.parametrize("number", [2.5, 0.0, -0.0, math.inf, math.nan, 1e300])
@pytest.mark.parametrize("name", ["add", "mul", "sub", "pow", "lt", "eq"])
@np.errstate(all="ignore")
def test_arrays_beside_a_numpy_float_match_numpy(dtype, number, name):
    apply, array = getattr(operator, name), np.ones(2, dtype)
    if dtype == np.complex128 and name == "lt":
        pytest.skip("complex numbers have no order")
    for other in (number, np.float64(number), number):  # Python's float has the dtype of the array, NumPy's its own
        for ours, theirs in (
            (apply(vg.Tensor(array), other), apply(array, other)),
            (apply(other, vg.Tensor(array)), apply(other, array)),
        ):
            assert ours.dtype == theirs.dtype
            np.testing.assert_array_equal(np.signbit(ours.numpy().real), np.signbit(theirs.real))
            np.testing.assert_array_equal(ours.numpy(), theirs)


def test_floating_point_errors_match_numpy():
    s = vg.Tensor([1.0, 0.0])
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        assert (s[0] / s[1]).item() == np.inf
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        s[0] / s[1]


def test_printing_and_numbers():
    s = vg.Tensor([1.5, 2.0])[0]
    assert repr(s) == "Tensor(1.5)" and f"{s:.2f}" == "1.50" and float(s) == 1.5 and int(s) == 1 and bool(s)
    assert [10, 20, 30][vg.arange(3)[1]] == 20 and s.tolist() == 1.5 and np.asarray(s).shape == ()
    with pytest.raises(TypeError):
        len(s)
    with pytest.raises(TypeError):
        [1][s]


@pytest.mark.filterwarnings("error", r"ignore:hash\(\)")
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.uint8, np.bool_, np.complex128])
def test_python_treats_scalars_like_numpys(dtype):
    array = np.array([3, 1, 0]).astype(dtype)
    tensor = vg.Tensor(array, requires_grad=array.dtype.kind in "fc")
    uses = [
        lambda s: f"{s}",
        lambda s: f"{s:>9}",
        lambda s: f"{s:.2f}",
        lambda s: math.trunc(s),
        lambda s: math.floor(s),
        lambda s: math.ceil(s),
        lambda s: [7, 8] * s,
        lambda s: s * [7, 8],
        lambda s: (7,) * s,
        lambda s: "ab" * s,
        lambda s: round(s),
        lambda s: hash(s),
        lambda s: s in {3, 1},
        lambda s: list(range(s)),
    ]
    for use in uses:
        for i in range(3):
            try:
                wanted = use(array[i])
            except (TypeError, np.exceptions.ComplexWarning, DeprecationWarning):
                continue  # a tensor may support more than NumPy here
            found = use(tensor[i])
            if isinstance(wanted, np.generic | np.ndarray):
                assert found.dtype == wanted.dtype and found.tolist() == wanted.tolist()
            else:
                assert type(found) is type(wanted) and found == wanted
    assert is_scalar(np.isclose(tensor[0], 3)) and is_scalar(vg.isclose(tensor[0], 3))


def test_an_array_without_dimensions_as_an_index_reads_a_copy():
    array, tensor = np.arange(6.0).reshape(2, 3), vg.Tensor(np.arange(6.0).reshape(2, 3))
    for a, index in ((array, np.array(1)), (tensor, vg.Tensor(1))):
        row = a[index]
        row += 100
    assert tensor.tolist() == array.tolist()


def test_views_of_a_scalar_have_separate_memory():
    x = vg.Tensor([1.0, 2.0], requires_grad=True)
    s = x[1]
    for view in (s[...], s.reshape(1), s[None], s.unsqueeze(0), s.expand(3)[:1].clone()):
        view *= 3.0
        assert s.item() == 2.0
        assert vg.autograd.grad(view.sum(), x)[0].tolist() == [0.0, 3.0]
    assert s.T is s and s.squeeze() is s


def test_a_leaf_can_be_updated_in_place():
    p = vg.Tensor([1.0, 2.0]).sum().requires_grad_()
    (p * p).backward()
    with vg.no_grad():
        p -= 0.5 * p.grad
    assert p.item() == 0.0 and p.is_leaf and p.requires_grad


def test_higher_order_and_accumulation():
    x = vg.Tensor([2.0, 3.0], requires_grad=True)
    y = x[0] ** 3 * x[1]
    (first,) = vg.autograd.grad(y, x, create_graph=True)
    (second,) = vg.autograd.grad(first[0] * first[1], x)
    assert first.tolist() == [36.0, 8.0] and second.tolist() == [(6 * 2 * 3 * 8 + 36 * 12.0), 12 * 8.0]
    p = vg.Tensor(2.0, requires_grad=True)
    for _ in range(2):
        (p * p * p).backward(create_graph=True)
    p.grad.zero_()
    assert not is_scalar(p.grad)


def test_a_custom_function_of_scalars():
    class Square(vg.autograd.Function):
        @staticmethod
        def forward(ctx, s):
            ctx.save_for_backward(s)
            return s * s

        @staticmethod
        def backward(ctx, grad):
            (s,) = ctx.saved_tensors
            return grad * 2 * s

    x = vg.Tensor([3.0, 1.0], requires_grad=True)
    s = Square.apply(x[0])
    assert is_scalar(s)
    s.backward()
    assert x.grad.tolist() == [6.0, 0.0]


def test_scalars_are_traced_and_compiled():
    def program(x):
        s, t = x[0], x[1]
        t += s
        x = x.clone()
        x[0], x[1] = t, s
        return x, t

    x = vg.Tensor([1.0, 2.0, 3.0])
    graph = vg.symbolic.trace(program, x)
    assert [value.tolist() for value in vg.symbolic.run(graph, [np.array([5.0, 7.0, 1.0])])] == [[12.0, 5.0, 1.0], 12.0]
    compiled = vg.compile(program)
    for _ in range(4):
        array, scalar = compiled(x)
        assert array.tolist() == [3.0, 1.0, 3.0] and is_scalar(scalar)


def test_bytes_kept_by_an_operation_on_scalars():
    n = 2000
    x = vg.Tensor(np.linspace(0.1, 1.0, n), requires_grad=True)
    kept = []
    steps = [(1, lambda s, i: s * 1.0001), (4, lambda s, i: s + x[i] * x[i]), (2, lambda s, i: s * x[i])]
    for operations, step in steps:
        s = x[0]
        tracemalloc.start()
        for i in range(n):
            s = step(s, i)
        kept.append(tracemalloc.get_traced_memory()[0] / n / operations)
        tracemalloc.stop()
    assert max(kept) <= 300, kept


@pytest.mark.parametrize("make", (SCALARS | ARRAYS).values(), ids=SCALARS | ARRAYS)
def test_tensors_without_dimensions_pass_for_numbers(make):
    s = make()
    number = np.asarray(s.detach())[()]
    for kind in (int, float, complex, np.floating, np.integer, np.float64, np.generic, numbers.Real, numbers.Integral):
        assert isinstance(s, kind) is isinstance(number, kind)
    assert isinstance(s, vg.Tensor) and type(s) is vg.Tensor and np.isscalar(s)
    assert not isinstance(s.reshape(1), float) and s.reshape(1).__class__ is vg.Tensor


@pytest.mark.parametrize("make", (SCALARS | ARRAYS).values(), ids=SCALARS | ARRAYS)
def test_functions_use_their_tensor_form_for_scalars(make):
    @singledispatch
    def form(x):
        return "object"

    form.register(float)(lambda x: "number")
    form.register(numbers.Number)(lambda x: "number")
    s = make()
    assert form(s) == form(np.asarray(s.detach())[()])
    form.register(vg.Tensor)(lambda x: "tensor")
    assert form(s) == form(s.reshape(1)) == "tensor" and form(np.float64(1.0)) == "number"
    assert not issubclass(np.float64, vg.Tensor) and not issubclass(float, vg.Tensor)


def test_the_class_of_a_tensor_without_dimensions_makes_tensors():
    s = vg.Tensor([3.0, 1.0], requires_grad=True)[0]
    made = s.__class__([1.0, 2.0], requires_grad=True)
    assert type(made) is vg.Tensor and made.requires_grad and made.tolist() == [1.0, 2.0]
    assert s.__class__.__name__ == "Tensor" and s.__class__ is (s * 2).__class__
    with pytest.raises(AutogradError, match="history"):
        s.__class__(s)


@pytest.mark.parametrize("number", [2.5, 2.0, math.inf, math.nan, -0.0, 3, -7, True, 1j, np.float32(0.5), np.uint8(5)])
@pytest.mark.parametrize("name", ["is_integer", "as_integer_ratio", "hex", "bit_count", "numerator", "denominator"])
def test_scalars_have_the_attributes_of_numpy_scalars(name, number):
    def outcome(of):
        try:
            found = getattr(of, name)
            return found() if callable(found) else found
        except (AttributeError, ValueError, OverflowError) as error:
            return type(error)

    number = np.asarray(number)[()]
    for s in (vg.Tensor(number), vg.Tensor([number])[0]):
        assert outcome(s) == outcome(number)
        assert hasattr(s, name) is hasattr(number, name) and not hasattr(s.reshape(1), name)


def test_integer_conversions_of_scalars_with_history():
    x = vg.Tensor([3.0, 1.5], requires_grad=True)
    assert x[0].is_integer() and not x[1].is_integer()
    with pytest.raises(AutogradError, match=r"np\.mean"):
        statistics.mean([x[0], x[1]])
    with pytest.raises(AutogradError, match="detach"):
        Fraction(x[1])
    assert Fraction(x[1].detach()) == Fraction(3, 2)
    assert statistics.median([x[1], x[0], x[1] * 4]).requires_grad


@pytest.mark.filterwarnings("ignore:you are shuffling")
@pytest.mark.parametrize("kind", [np.random.default_rng, np.random.RandomState])
def test_numpys_shuffle_never_repeats_rows_of_a_tensor_with_history(kind):
    leaf = vg.Tensor(np.arange(12.0).reshape(6, 2), requires_grad=True)
    x = leaf * 1.0
    with pytest.raises(ViewInPlaceError, match=r"viewgrad\.numpy\.random"):
        kind(3).shuffle(x)
    with pytest.raises(ViewInPlaceError, match="permutation"):
        kind(3).shuffle((leaf * 1.0)[1:])
    values = np.arange(6.0)
    line = leaf[:, 0] * 0.5
    kind(3).shuffle(line)  # elements are values
    kind(3).shuffle(values)
    assert line.detach().tolist() == values.tolist()


def test_rows_that_python_swaps_are_views_as_in_numpy():
    a = np.arange(6.0).reshape(3, 2)
    x = vg.Tensor(a, requires_grad=True) * 1.0
    for m in (a, x):
        m[0], m[1] = m[1], m[0]
        row = m[2]
        m[2] = 7.0
        m[1] = row
        operator.setitem(m, 0, m[2])
    assert x.detach().tolist() == a.tolist()


def total(result):
    """Return a number that depends on everything in a program's result."""
    return (result * np.arange(1.0, result.size + 1).reshape(result.shape)).sum() if np.ndim(result) else result


@pytest.mark.filterwarnings("ignore:you are shuffling")
@pytest.mark.parametrize("program", scalar_programs.PROGRAMS, ids=lambda program: program.__name__)
def test_scalar_programs_match_numpy(program):
    values = np.array([1.21, 0.74, 1.43, 0.93, 1.05, 0.66, 1.32, 0.88])
    x = vg.Tensor(values, requires_grad=True)
    expected, result = program(values.copy()), program(x)
    assert np.shape(result) == np.shape(expected)
    np.testing.assert_allclose(result.detach().numpy(), expected, rtol=1e-12)
    (gradient,) = vg.autograd.grad(total(result), x)
    differences = [
        (total(program(values + step)) - total(program(values - step))) / 2e-6 for step in 1e-6 * np.eye(len(values))
    ]
    np.testing.assert_allclose(gradient.numpy(), differences, rtol=1e-5, atol=1e-7)


def test_fractions_keep_the_history_of_a_scalar():
    x = vg.Tensor([3.0, 1.0], requires_grad=True)
    for product in (x[0] * Fraction(1, 2), Fraction(1, 2) * x[0], 1 / Fraction(2) * x[0]):
        assert vg.autograd.grad(product, x)[0].tolist() == [0.5, 0.0]
    with pytest.raises(TypeError):
        x[0] * Decimal(2)
