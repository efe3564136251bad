"""`functionalize`: the same values and gradients, without a single write."""

from __future__ import annotations

import contextlib

import attrs
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import viewgrad as vg
from viewgrad import func
from viewgrad.autograd import Function
from viewgrad.errors import (
    ForwardModeError,
    FunctionError,
    InferenceError,
    LeafInPlaceError,
    OverlappingWriteError,
    TraceError,
    ViewInPlaceError,
)
from viewgrad.operators.define import OPERATORS, row
from viewgrad.operators.language.spec import InPlace
from viewgrad.tensor.node import node_of
from viewgrad.tensor.storage import VersionCounter
from viewgrad.tensor.tensor import current_edge
from viewgrad.testing import Program, checks, programs

RNG = np.random.default_rng(5)


@pytest.fixture
def no_writes(monkeypatch):
    """Make each write to memory fail: writes increment the version counter, which this replaces."""

    def refuse(storage, version):
        assert not version, "a write"

    monkeypatch.setattr(VersionCounter, "version", property(lambda storage: 0, refuse))


def nodes_of(tensor):
    stack = [node_of(edge) for edge in [current_edge(tensor)] if edge is not None]
    seen = set(stack)
    while stack:
        for edge in stack.pop().edges:
            if edge is not None and node_of(edge) not in seen:
                seen.add(node_of(edge))
                stack.append(node_of(edge))
    return seen


def assert_unwritten(*tensors):
    for tensor in tensors:
        assert tensor._version == 0
        assert not [node for node in nodes_of(tensor) if "CopySlices" in node.name()]


def weighted(tensors):
    """Return a real number that depends on tensors."""
    total = vg.Tensor(0.0)
    for i, tensor in enumerate(tensors):
        if tensor.dtype.kind in "fc":
            weights = np.cos(np.arange(tensor.size) + i).reshape(tensor.shape)
            total = total + (tensor * (weights * (1 + 0.5j) if tensor.is_complex() else weights)).real.sum()
            total = total + (tensor * tensor).real.sum()
    return total


def derivatives(f, arrays):
    """Return values, gradients and gradients of gradients, with zeros for None."""
    leaves = [vg.Tensor(array, requires_grad=array.dtype.kind in "fc") for array in arrays]
    inputs = [leaf for leaf in leaves if leaf.requires_grad]
    results = f(*leaves)
    results = results if isinstance(results, tuple) else (results,)
    grads = vg.autograd.grad(weighted(results), inputs, create_graph=True, materialize_grads=True)
    second = weighted(grads)
    seconds = [np.zeros(leaf.shape) for leaf in inputs]
    if second.requires_grad:
        seconds = vg.autograd.grad(second, inputs, materialize_grads=True)
    return results, [*results, *grads, *seconds]


def assert_same(f, *arrays):
    """Check that a function and its functionalized form agree, to second order."""
    arrays = [np.asarray(array) for array in arrays]
    _, expected = derivatives(f, arrays)
    results, found = derivatives(func.functionalize(f), arrays)
    for ours, theirs in zip(found, expected, strict=True):
        ours, theirs = (getattr(value, "_array", value) for value in (ours, theirs))
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)
    assert_unwritten(*results)


# -- programs ---------------------------------------------------------------------------------------------------------


def lu(a):
    for k in range(len(a) - 1):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= a[k + 1 :, k : k + 1] * a[k, k + 1 :]
    return a


def recurrence(x):
    y = vg.zeros(len(x))
    y[0] = x[0]
    for i in range(1, len(x)):
        y[i] = x[i] * y[i - 1] + x[0]
    return y, x


def aliases(x):
    a = x.reshape(3, 4)
    rows = a.unbind(0)
    t = a.T
    d = a[:, :3].diagonal()
    rows[1].mul_(rows[0])
    t[0] += t[1]
    d *= d
    a.reshape(-1)[::5] = 2.0
    left, right = a.split(2, 1)
    left.copy_(right * left)
    window = x.as_strided((2, 3), (6, 2), 1)
    window.sin_()
    x.narrow(0, 2, 4).squeeze().unsqueeze(0).exp_()
    return x, a, t, d, rows[2], left, window


def self_overlapping(x):
    x[1:] = x[:-1]
    x[::-1] += x
    x *= x
    x.mul_(x)
    return x


def by_arrays(x):
    x[[0, 0, 1]] = x[2:5] * 2.0
    x[x.detach().numpy() > 0.3] *= 0.5
    x.index_accumulate_(np.array([1, 1, 3]), x[:3] * x[3:6])
    half = x[2:]
    half[np.array([0, 0])] = x[:2].exp()
    np.add.at(half, np.array([1, 1]), x[0])
    x[:4].copy_where_(x[4:8], np.array([True, False, True, False]))
    return x, half


def through_numpy(x):
    out = vg.zeros(len(x))
    np.multiply(x, x, out=out)
    np.add(out, x, out=out[:], where=np.arange(len(x)) % 2 == 0)
    np.sin(out, out=x)
    np.copyto(out[1:3], x[0])
    return out, x


def without_history(x):
    y = x * 1.0
    with vg.no_grad():
        y[0] = 5.0
        y[1:] *= 2.0
        z = y.clone()
    d = y.detach()
    d += 1.0
    z *= y
    y[2:].detach().zero_()
    return y * x, z, d


def cast_and_broadcast(x):
    y = vg.zeros(3, len(x), dtype=np.float32)
    y[:] = x
    y[1] = 3
    y[:, 1:2] += x[:3].reshape(3, 1)
    counts = vg.zeros(4, dtype=int)
    counts[1:] += 2
    counts[0] = x[0]
    counts |= 1
    return y, counts, x * counts[0]


def complex_parts(z):
    z.real[...] = z.imag * 2
    z.imag.mul_(z.real)
    pairs = vg.view_as_real(z)
    pairs[0] += pairs[1]
    z[1:].conj().mul_(2.0)
    z[1:].abs_()
    w = vg.view_as_complex(pairs[..., :])
    w *= 1j
    return z, pairs, w


PROGRAMS = {
    "lu": (lu, RNG.normal(size=(4, 4)) + 4 * np.eye(4)),
    "recurrence": (recurrence, RNG.normal(size=6)),
    "aliases": (aliases, RNG.normal(size=12)),
    "self_overlapping": (self_overlapping, RNG.normal(size=6)),
    "by_arrays": (by_arrays, RNG.normal(size=8)),
    "through_numpy": (through_numpy, RNG.normal(size=6)),
    "without_history": (without_history, RNG.normal(size=5)),
    "cast_and_broadcast": (cast_and_broadcast, RNG.normal(size=4)),
    "complex_parts": (complex_parts, RNG.normal(size=4) + 1j * RNG.normal(size=4)),
}


def copied(f):
    """Return `f` of a copy of its arguments, as functionalize calls it."""
    return lambda *args: f(*(arg.clone() for arg in args))


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("replay", [False, True])
def test_the_same_values_and_gradients(name, replay):
    program, start = PROGRAMS[name]
    with vg.view_replay(replay):
        assert_same(copied(program), start)


@pytest.mark.parametrize("name", PROGRAMS)
def test_nothing_is_written(name, no_writes):
    program, start = PROGRAMS[name]
    with pytest.raises(AssertionError, match="a write"):
        program(vg.Tensor(start))
    x = vg.Tensor(start, requires_grad=True)
    results = func.functionalize(program)(x)
    assert_unwritten(x, *(results if isinstance(results, tuple) else (results,)))
    np.testing.assert_array_equal(x._array, start)


@attrs.frozen(repr=False)
class Functionalized(Program):
    """A drawn program that makes no write."""

    def execute(self):
        names = func.functionalize(super().execute)()
        for value in names.values():
            if isinstance(value, vg.Tensor):
                with contextlib.suppress(ViewInPlaceError):  # its history is ambiguous
                    assert_unwritten(value)
        return names


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs())
def test_drawn_programs(program):
    weights = checks.weights_for(program)
    expected = checks.gradients(program, weights, 2)
    functional = Functionalized(program.leaves, program.steps, program.loss, program.inputs)
    found = checks.gradients(functional, weights, 2)
    for kind in ("values", "first", "second"):
        ours, theirs = getattr(found, kind), getattr(expected, kind)
        for name in theirs:
            a, b = (0.0 if value is None else value for value in (ours[name], theirs[name]))
            scale = max(1.0, float(np.abs(b).max(initial=0)))
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-9 * scale, err_msg=f"{kind} of {name} in\n{program}")


# -- arguments and other tensors --------------------------------------------------------------------------------------


def test_arguments_share_memory_with_each_other_as_before():
    base = vg.Tensor(np.arange(6.0))
    view, detached, part = base[1:4], base.detach(), base[2:].detach()

    def f(tensors, *, other):
        first, second = tensors["view"], tensors["base"]
        first *= 10
        second[0] = 7.0
        other[-1] = -1.0
        return first, second, tensors["detached"], other, tensors["again"]

    given = {"view": view, "base": base, "detached": detached, "again": view}
    results = func.functionalize(f)(given, other=part)
    assert [result.tolist() for result in results] == [
        [10.0, 20.0, 30.0],
        [7.0, 10.0, 20.0, 30.0, 4.0, -1.0],
        [7.0, 10.0, 20.0, 30.0, 4.0, -1.0],
        [20.0, 30.0, 4.0, -1.0],
        [10.0, 20.0, 30.0],
    ]
    assert results[0] is results[4]
    assert base.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0] and base._version == 0
    assert [result.tolist() for result in f(given, other=part)] == [result.tolist() for result in results]


@pytest.mark.parametrize("step", [1, 2, -1, -2])
@pytest.mark.parametrize("order", ["C", "F"])
def test_memory_is_laid_out_as_before(step, order, no_writes):
    array = np.asarray(np.arange(24.0).reshape(4, 6), order=order)[:, ::step]
    before = array.copy()

    def f(x):
        flat, rows = x.reshape(-1), x[1:]
        rows[:, 0] += 1.0
        return flat, x.T.reshape(-1), rows, x.strides

    x = vg.from_numpy(array)
    flat, columns, rows, strides = func.functionalize(f)(x)
    expected = before.copy()
    expected[1:, 0] += 1.0
    assert strides == array.strides
    assert flat.tolist() == (expected if flat._base is not None else before).reshape(-1).tolist()
    assert columns.tolist() == expected.T.reshape(-1).tolist() and rows.tolist() == expected[1:].tolist()
    np.testing.assert_array_equal(array, before)


def test_tensors_from_outside_get_new_values_and_so_do_their_aliases():
    table = vg.zeros(3, 2)
    memory = table._array
    row, column, apart = table[1], table[:, 0], table[2].detach()
    weight = vg.Tensor([1.0, 2.0], requires_grad=True)

    def f(x):
        table[1] = x * weight
        row.mul_(2.0)
        apart.fill_(9.0)
        return column

    assert func.functionalize(f)(vg.Tensor([3.0, 4.0])) is column
    assert table.tolist() == [[0.0, 0.0], [6.0, 16.0], [9.0, 9.0]]
    assert row.tolist() == [6.0, 16.0] and column.tolist() == [0.0, 6.0, 9.0] and apart.tolist() == [9.0, 9.0]
    assert not memory.any() and table._version == 0
    for tensor in (table, row, column):
        assert vg.autograd.grad(tensor.sum(), weight, retain_graph=True)[0][0].item() == 6.0
    assert not apart.requires_grad
    # From here on, writes are in place and visible in views, and saved values are preserved.
    product = table * table
    row[0] = 5.0
    assert table[1, 0].item() == 5.0 and column[1].item() == 5.0 and table._version == 1
    assert vg.autograd.grad(product.sum(), weight)[0].tolist() == [72.0, 256.0]


def test_views_taken_between_two_calls_are_known_to_the_second():
    table = vg.zeros(3)
    first = func.functionalize(lambda: table[:1].fill_(1.0))
    first()
    between = table[:2]
    first()
    func.functionalize(lambda: table.mul_(2.0))()
    assert between.tolist() == [2.0, 0.0] and table.tolist() == [2.0, 0.0, 0.0]


def test_leaves_updated_under_no_grad_remain_leaves():
    weight = vg.Tensor([1.0, 2.0], requires_grad=True)
    memory = weight._array

    def step(x):
        loss = (weight * x).sum()
        loss.backward()
        with vg.no_grad():
            weight.sub_(weight.grad * 0.5)
        return loss

    func.functionalize(step)(vg.Tensor([2.0, 4.0]))
    assert weight.tolist() == [0.0, 0.0] and memory.tolist() == [1.0, 2.0]
    assert weight.is_leaf and weight.requires_grad and weight.grad.tolist() == [2.0, 4.0]


def test_functionalized_functions_call_each_other():
    inner = func.functionalize(lambda x: x[1:].mul_(2.0))

    def f(x):
        y = inner(x)
        x[0] = y[0]
        return x, y

    x, y = func.functionalize(f)(vg.Tensor([1.0, 2.0]))
    assert x.tolist() == [4.0, 2.0] and y.tolist() == [4.0]
    assert_unwritten(x, y)


# -- what is refused in place is refused ------------------------------------------------------------------------------


def test_writes_that_are_refused():
    functional = func.functionalize(lambda f: f())
    leaf = vg.ones(3, requires_grad=True)
    history = leaf * 1.0
    with vg.no_grad():
        unseen = history[:1]
    for write, error, message in [
        (lambda: leaf.mul_(2.0), LeafInPlaceError, "leaf"),
        (lambda: leaf[:1].fill_(0.0), LeafInPlaceError, "leaf"),
        (lambda: leaf.index_accumulate_(np.array([0]), 1.0), LeafInPlaceError, "leaf"),
        (lambda: leaf.__setitem__([0], 1.0), LeafInPlaceError, "leaf"),
        (lambda: vg.ones(1).expand(3).mul_(2.0), OverlappingWriteError, "share memory"),
        (lambda: unseen.mul_(2.0), ViewInPlaceError, "created under no_grad"),
        (lambda: vg.ones(3).mul_(vg.ones(2, 3)), ValueError, "cannot be written"),
        (lambda: vg.ones(3).copy_(vg.ones(2, 3)), ValueError, "broadcast"),
        (lambda: vg.ones(3, dtype=int).mul_(1.5), TypeError, "int64"),
        (lambda: vg.ones(3).mul_(1j), TypeError, "float64"),
    ]:
        with pytest.raises(error, match=message):
            functional(write)
        with pytest.raises((error, ValueError)):
            write()
    assert leaf.tolist() == [1.0] * 3 and history.tolist() == [1.0] * 3


def test_generators_and_coroutines_are_refused():
    def numbers(x):
        yield x.mul_(2.0)

    async def later(x):
        return x.mul_(2.0)

    for f in (numbers, later):
        with pytest.raises(TypeError, match="generators and coroutines"):
            func.functionalize(f)


def test_dual_tensors_that_share_memory_are_refused():
    with vg.autograd.forward_ad.dual_level():
        x = vg.ones(3)
        dual = vg.autograd.forward_ad.make_dual(x, vg.ones(3))
        assert func.functionalize(lambda d: d[1:].mul_(2.0))(dual).tolist() == [2.0, 2.0]
        for arguments in ((dual, x), (x, dual), (dual, dual[1:])):
            with pytest.raises(ForwardModeError, match="shares memory"):
                func.functionalize(lambda a, b: a)(*arguments)


# -- together with other features -------------------------------------------------------------------------------------


class ScaleInPlace(Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.save_for_backward(factor, x.clone())
        x.mul_(factor)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, grad):
        factor, before = ctx.saved_tensors
        return grad * factor, (grad * before).sum()


class Unmarked(Function):
    @staticmethod
    def forward(ctx, x):
        x[0] = 0.0
        return x * 2.0

    @staticmethod
    def backward(ctx, grad):
        return grad * 2.0


@pytest.mark.parametrize("as_view", [False, True])
def test_custom_functions_that_mark_dirty(as_view):
    def f(x, factor):
        y = x * x
        out = ScaleInPlace.apply(y[1:] if as_view else y, factor)
        y[:2] *= out[0]
        return y, out

    arrays = [RNG.normal(size=4), RNG.normal(size=())]
    results = []
    for run in (f, func.functionalize(f)):
        x, factor = (vg.Tensor(array, requires_grad=True) for array in arrays)
        values = run(x, factor)
        results.append([*values, *vg.autograd.grad(weighted(values), [x, factor])])
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(ours._array, theirs._array)
    assert_unwritten(*results[1][:2])
    with pytest.raises(FunctionError, match="mark_dirty"):
        func.functionalize(lambda x: Unmarked.apply(x * 1.0))(vg.ones(2, requires_grad=True))


@pytest.mark.parametrize("name", ["recurrence", "aliases", "by_arrays", "complex_parts", "lu", "self_overlapping"])
def test_forward_mode(name):
    program, start = PROGRAMS[name]
    x, v = vg.Tensor(start), vg.Tensor(RNG.normal(size=start.shape).astype(start.dtype))
    values, expected = func.jvp(program, (x,), (v,))
    for run in (
        lambda: func.jvp(func.functionalize(program), (x,), (v,)),
        lambda: func.functionalize(lambda x, v: func.jvp(program, (x,), (v,)))(x, v),
        lambda: func.jvp(lambda x: func.jvp(func.functionalize(program), (x,), (v,)), (x,), (v,))[0],
    ):
        outputs, tangents = run()
        for ours, theirs in ((outputs, values), (tangents, expected)):
            if not isinstance(ours, tuple):
                ours, theirs = (ours,), (theirs,)
            for a, b in zip(ours, theirs, strict=True):
                np.testing.assert_allclose(a._array, b._array, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["recurrence", "aliases", "self_overlapping", "lu"])
def test_derivatives_taken_inside(name, no_writes):
    program, start = PROGRAMS[name]

    def loss(x):
        results = program(x)
        return weighted(results if isinstance(results, tuple) else (results,))

    x, v = vg.Tensor(start), vg.Tensor(RNG.normal(size=start.shape))
    gradient = func.functionalize(func.grad(loss))(x)
    product = func.functionalize(lambda x, v: func.vhp(loss, (x,), (v,))[1][0])(x, v)
    pushed = func.functionalize(lambda x, v: func.hvp(loss, (x,), (v,))[1][0])(x, v)
    third = func.functionalize(func.grad(lambda x: func.vhp(loss, (x,), (v,))[1][0].sum()))(x)
    assert_unwritten(gradient, product, pushed, third)
    step = 1e-6
    with_writes = func.functionalize(func.grad(loss))
    nearby = (with_writes(x + step * v) - with_writes(x - step * v)) / (2 * step)
    np.testing.assert_allclose(product._array, nearby._array, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(pushed._array, product._array, rtol=1e-9, atol=1e-9)


def test_a_graph_with_writes_can_be_differentiated_inside():
    x = vg.Tensor(RNG.normal(size=12), requires_grad=True)
    y = weighted(aliases(x * 1.0))
    (expected,) = vg.autograd.grad(y, x, create_graph=True)
    (gradient,) = func.functionalize(lambda: vg.autograd.grad(y, x, create_graph=True))()
    np.testing.assert_allclose(gradient._array, expected._array)
    second = [vg.autograd.grad((g * g).sum(), x, retain_graph=True)[0] for g in (gradient, expected)]
    np.testing.assert_allclose(second[0]._array, second[1]._array)


def test_inner_derivatives_match_those_with_writes():
    program, start = PROGRAMS["aliases"]
    loss = lambda x: weighted(program(x))
    x, v = vg.Tensor(start), vg.Tensor(RNG.normal(size=start.shape))
    for f in (func.grad(loss), func.grad(lambda x: func.vhp(loss, (x,), (v,))[1][0].sum())):
        np.testing.assert_allclose(func.functionalize(f)(x)._array, f(x)._array, rtol=1e-11, atol=1e-9)


def test_retained_gradients_and_hooks_follow_the_value():
    def run(f):
        x = vg.Tensor([1.0, 2.0, 3.0], requires_grad=True)
        seen = []

        def g(x):
            y = x * 2.0
            y.register_hook(lambda grad: seen.append(grad.tolist()))
            y.retain_grad()
            view = y[1:]
            view.retain_grad()
            y[1:] *= 3.0
            (y * y + view[0]).sum().backward()
            return y.grad.tolist(), view.grad.tolist()

        return f(g)(x), seen, x.grad.tolist()

    assert run(lambda g: g) == run(func.functionalize)


def test_functionalize_works_inside_inference_mode():
    with vg.inference_mode():
        x = vg.ones(3)
        y = func.functionalize(lambda x: x[1:].mul_(2.0))(x)
        assert y.is_inference() and x.tolist() == [1.0] * 3 and y.tolist() == [2.0] * 2
    for write in (lambda: x.mul_(2.0), lambda: x.fill_(2.0)):
        with pytest.raises(InferenceError, match="outside inference mode"):
            func.functionalize(write)()


def test_saved_tensors_hooks():
    packed = []

    def pack(tensor):
        packed.append(tensor.tolist())
        return tensor

    x = vg.Tensor([1.0, 2.0, 3.0], requires_grad=True)
    with vg.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        y = func.functionalize(lambda x: x[1:].mul_(x[:-1]))(x)
    assert sorted(packed) == [[1.0, 2.0], [2.0, 3.0]]
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 4.0, 2.0]


def test_an_in_place_variant_that_is_declared_itself():
    operator = row(
        "shifted_in_place_example(self)",
        lambda self: self + 1.0,
        {"self": "grad"},
        elementwise=True,
        method=False,
        inplace=InPlace(forward=lambda self: self * 2.0, derivatives={"self": "grad * 2.0"}),
    )
    try:
        assert_same(copied(lambda x: (operator.inplace(x[1:]), x)), RNG.normal(size=3))
    finally:
        del OPERATORS["shifted_in_place_example"]


def test_write_through_a_view_that_is_not_a_window_of_the_new_value():
    def program(x):
        y = x.clone()
        flat = y.T.reshape(4)  # a window if the memory is in column-major order
        flat[...] = flat.tanh()
        return (y * y).sum()

    x = vg.Tensor(np.asfortranarray(np.arange(4.0).reshape(2, 2)), requires_grad=True)
    (expected,) = vg.autograd.grad(program(x), x)
    (grad,) = vg.autograd.grad(func.functionalize(program)(x), x)
    assert np.allclose(grad.numpy(), expected.numpy())


@pytest.mark.parametrize(
    "write",
    [lambda t: t.mul_(t), lambda t: t[...].mul_(3.0), lambda t: np.transpose(t[...], ()).reshape((1,)).mul_(3.0)],
)
def test_arrays_without_dimensions_stay_arrays(write):
    """Computed 0-d results are scalars, but the array that receives such a value can be written to again."""

    def program(x):
        t = x.clone()
        write(t)
        t.sin_()
        write(t)
        return t

    x = vg.Tensor(0.5, requires_grad=True)
    expected, found = program(x), vg.func.functionalize(program)(x)
    assert found.item() == expected.item()
    assert vg.autograd.grad(found, x)[0].item() == vg.autograd.grad(expected, x)[0].item()


def test_views_of_a_base_that_was_detached_in_place_keep_their_history():
    def program(x):
        base = x * 1.0
        view = base[1:]
        base.detach_()
        with vg.no_grad():
            view.mul_(2)
        return (view * view).sum()

    x = vg.Tensor([1.0, 2.0, 3.0], requires_grad=True)
    for function in (program, func.functionalize(program)):
        assert vg.autograd.grad(function(x), x)[0].tolist() == [0.0, 8.0, 12.0]


OLD = []  # the last view that was taken before
ENDED = {
    "none": lambda base, y: None,
    "constant": lambda base, y: base.__setitem__(0, 4.0),
    "constant through a view": lambda base, y: base[1:2].fill_(3.0),
    "constants by arrays": lambda base, y: base.__setitem__([0, 1], 3.0),
    "constants added": lambda base, y: base.index_add_(0, np.array([0, 2]), vg.ones(2)),
    "in place": lambda base, y: base[2:].neg_(),
    "recorded": lambda base, y: base.__setitem__(1, y[0]),
    "recorded by arrays": lambda base, y: base.__setitem__([0, 1], y),
    "recorded in place": lambda base, y: base[2:].mul_(y[1]),
    "both": lambda base, y: (base.__setitem__(0, y[0]), base[2:].mul_(y[1])),
    "copied": lambda base, y: base.copy_(vg.ones(3) * y[0]),
    "whole": lambda base, y: base.mul_(y[0]),
    "constants through an old view": lambda base, y: OLD[-1][1:].fill_(2.0),
    "times a constant through an old view": lambda base, y: OLD[-1].mul_(2.0),
    "nothing at all": lambda base, y: vg.as_strided(base, (0,), (0,), 0).neg_(),
    "unrecorded": lambda base, y: base.detach().__setitem__(1, 5.0),
}


@pytest.mark.parametrize("write", ENDED.values(), ids=ENDED)
def test_views_from_before_a_detach_see_later_writes(write):
    def gradients(x, y):
        base = x * 2
        views = base[1:], base[:2]
        OLD.append(views[1])
        base.detach_()
        write(base, y)
        total = (views[0] ** 2).sum() + (views[1] ** 3).sum()
        return [None if g is None else g.tolist() for g in vg.autograd.grad(total, (x, y), allow_unused=True)]

    leaves = [vg.Tensor(values, requires_grad=True) for values in ([1.0, 2.0, 3.0], [5.0, 7.0])]
    assert vg.func.functionalize(gradients)(*leaves) == gradients(*leaves)


def scaled_without_recording(a):
    with vg.no_grad():
        a[1:] *= 0.5


UNRECORDED = {
    "under no_grad": scaled_without_recording,
    "through detach": lambda a: a.detach().__setitem__(1, 0.6),
    "to a view under no_grad": lambda a: scaled_without_recording(a[:2]),
}


@pytest.mark.parametrize("write", UNRECORDED.values(), ids=UNRECORDED)
@pytest.mark.parametrize("specialize", [True, False])
def test_unrecorded_writes_in_functionalized_programs_are_not_compiled(write, specialize):
    def f(x):
        a = x * 1.0
        write(a)
        return (a * a).sum() + x.sum()

    x = np.array([0.5, 0.7, 1.1])
    expected = func.grad(f)(x)
    functional = func.functionalize(f)
    compiled = vg.compile(functional, executor="python", specialize=specialize)
    for _ in range(3):
        np.testing.assert_allclose(func.grad(compiled)(x), expected)
    with pytest.raises(TraceError, match="writing without recording, inside functionalize"):
        vg.symbolic.function_of(functional, vg.Tensor(x, requires_grad=True))


def test_views_of_bits_follow_writes():
    def function(x):
        y = x * 2.0
        bits, halves = y.view(np.int64), y.view(np.float32)
        part = bits[1:]
        y[0] = 5.0
        y[1:] *= y[0]
        return bits * 1, halves * 1, part * 1

    x = vg.Tensor([1.0, 2.0])
    for one, other in zip(function(x), vg.func.functionalize(function)(x), strict=True):
        assert one.tolist() == other.tolist()
    bits = x.view(np.int64)
    with pytest.raises(ValueError, match="read-only"):
        vg.func.functionalize(lambda b: b.add_(1))(bits)
