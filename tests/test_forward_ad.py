"""Forward mode: tangents through operators, views and in-place writes, alone and together with reverse mode."""

from __future__ import annotations

import contextvars
import gc
import threading
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from operator_samples import samples_of

import viewgrad as vg
from viewgrad.autograd import define_op, forward_ad
from viewgrad.autograd.modes.forward_ad import dual_level, enter_dual_level, exit_dual_level, make_dual, unpack_dual
from viewgrad.errors import AutogradError, DifferentiabilityError, ForwardModeError, GradientMismatchError
from viewgrad.operators.define import OPERATORS
from viewgrad.operators.language.spec import InPlace

A = np.linspace(0.31, 1.43, 12).reshape(3, 4)
V = np.cos(np.arange(12.0)).reshape(3, 4)


def jvp(program, *pairs):
    """Return the value of a program and its tangent, as arrays."""
    with dual_level():
        out = program(*[make_dual(vg.Tensor(a), vg.Tensor(v)) for a, v in pairs])
        primal, tangent = unpack_dual(out)
        return primal.detach().numpy(), None if tangent is None else tangent.detach().numpy()


def differences(program, *pairs):
    """Return the tangent by central differences."""
    step = 1e-6
    ahead = program(*[vg.Tensor(a + step * v) for a, v in pairs]).numpy()
    behind = program(*[vg.Tensor(a - step * v) for a, v in pairs]).numpy()
    return (ahead - behind) / (2 * step)


def check(program, *pairs):
    """Compare the tangent with differences and with reverse mode."""
    value, tangent = jvp(program, *pairs)
    np.testing.assert_allclose(value, program(*[vg.Tensor(a) for a, _ in pairs]).numpy())
    if tangent is None:
        tangent = np.zeros_like(value)
    np.testing.assert_allclose(tangent, differences(program, *pairs), rtol=1e-5, atol=1e-6)
    leaves = [vg.Tensor(a, requires_grad=True) for a, _ in pairs]
    out = program(*leaves)
    weights = np.sin(1 + np.arange(out.size)).reshape(out.shape)
    grads = vg.autograd.grad((out * weights).sum(), leaves, materialize_grads=True) if out.requires_grad else []
    by_reverse = sum(np.sum(g.numpy() * v) for g, (_, v) in zip(grads, pairs, strict=False))
    np.testing.assert_allclose(np.sum(weights * tangent), by_reverse, rtol=1e-9, atol=1e-12)


def tangent(tensor):
    """Return the tangent of a tensor as nested lists, or None."""
    found = unpack_dual(tensor).tangent
    return None if found is None else found.tolist()


# -- dual tensors ------------------------------------------------------------------------------------------------------


def test_make_and_unpack():
    x, t = vg.Tensor([1.0, 2.0]), vg.Tensor([3.0, 4.0])
    with dual_level():
        dual = make_dual(x, t)
        primal, found = unpack_dual(dual)
        assert found is t
        assert primal.tolist() == [1.0, 2.0]
        assert np.shares_memory(primal._array, x._array)
        assert unpack_dual(primal).tangent is None
        assert unpack_dual(x).tangent is None
        assert unpack_dual(x).primal is x
        unpacked = unpack_dual(dual)
        assert unpacked.primal is unpacked[0] and unpacked.tangent is unpacked[1]


def test_tangents_end_with_their_level():
    x = vg.Tensor([1.0, 2.0])
    with dual_level():
        dual = make_dual(x, vg.ones(2))
        y = dual * 3
        reference = weakref.ref(unpack_dual(y).tangent)
        assert reference() is not None
    assert reference() is None
    assert unpack_dual(dual).tangent is None
    with dual_level():
        assert unpack_dual(dual).tangent is None
        assert unpack_dual(dual * y).tangent is None


def test_make_dual_refusals():
    x = vg.ones(2)
    with pytest.raises(ForwardModeError, match="make_dual needs an open level"):
        make_dual(x, x)
    with dual_level():
        with pytest.raises(GradientMismatchError, match=r"the tangent has shape \(3,\)"):
            make_dual(x, vg.ones(3))
        with pytest.raises(GradientMismatchError, match="dtype float32"):
            make_dual(x, vg.ones(2, dtype=np.float32))
        with pytest.raises(DifferentiabilityError, match="can have tangents, not int64"):
            make_dual(vg.arange(2), vg.arange(2))
        with pytest.raises(TypeError, match="the tangent must be a Tensor, not list"):
            make_dual(x, [1.0, 1.0])
        with pytest.raises(ForwardModeError, match="already has a tangent at this level"):
            make_dual(make_dual(x, x), x)


def test_levels_are_left_in_order():
    with pytest.raises(ForwardModeError, match="no dual level is open"):
        exit_dual_level()
    outer = enter_dual_level()
    inner = enter_dual_level()
    with pytest.raises(ForwardModeError, match="only the innermost level can be left"):
        exit_dual_level(outer)
    exit_dual_level(inner)
    exit_dual_level()
    assert unpack_dual(vg.ones(2)).tangent is None


def test_an_exception_leaves_the_level():
    with pytest.raises(ZeroDivisionError), dual_level():
        raise ZeroDivisionError
    with pytest.raises(ForwardModeError):
        make_dual(vg.ones(1), vg.ones(1))


def test_supplied_tangent_is_never_written_to():
    t = vg.ones(2)
    with dual_level():
        x, y = make_dual(vg.ones(2), t), make_dual(vg.ones(2), t)
        x.mul_(3.0)
        assert (tangent(x), tangent(y), t.tolist()) == ([3.0, 3.0], [1.0, 1.0], [1.0, 1.0])
        x[0] = y[1] * 5
        assert (tangent(x), tangent(y), t.tolist()) == ([5.0, 3.0], [1.0, 1.0], [1.0, 1.0])
        kept = unpack_dual(x).tangent
        z = make_dual(vg.ones(2), kept)
        x.mul_(2.0)
        assert (tangent(z), kept.tolist(), tangent(x)) == ([5.0, 3.0], [5.0, 3.0], [10.0, 6.0])


def test_a_primal_that_is_its_own_tangent():
    x = vg.Tensor([1.0, 2.0])
    with dual_level():
        dual = make_dual(x, x)
        dual.mul_(dual)
        assert (dual.tolist(), tangent(dual)) == ([1.0, 4.0], [2.0, 8.0])


def test_a_result_shares_no_tangent_with_an_input():
    with dual_level():
        x = make_dual(vg.ones(2), vg.ones(2))
        y = x + 1.0
        z = x.clone()
        unpack_dual(y).tangent.mul_(5.0)
        z.mul_(7.0)
        assert (tangent(x), tangent(y), tangent(z)) == ([1.0, 1.0], [5.0, 5.0], [7.0, 7.0])


def test_detach_and_numpy():
    with dual_level():
        x = make_dual(vg.ones(2), vg.ones(2))
        assert unpack_dual(x.detach()).tangent is None
        with pytest.raises(AutogradError, match="has a tangent would lose it"):
            x.numpy()
        with pytest.raises(AutogradError, match="a tensor that has a tangent"):
            np.asarray(x[0])
        assert x.detach().numpy().tolist() == [1.0, 1.0]


def test_detach_in_place():
    with dual_level():
        x = make_dual(vg.ones(2), vg.ones(2)) * 2
        x.detach_()
        assert tangent(x) is None


def test_levels_belong_to_their_thread_and_context():
    seen = []
    with dual_level():
        x = make_dual(vg.ones(1), vg.ones(1))
        thread = threading.Thread(target=lambda: seen.append(unpack_dual(x * 2).tangent))
        thread.start()
        thread.join()
        contextvars.copy_context().run(lambda: seen.append(tangent(x * 2)))
    assert seen == [None, [2.0]]


def test_nothing_is_left_behind_without_the_garbage_collector():
    x0 = vg.Tensor(A, requires_grad=True)
    gc.collect()
    gc.disable()
    try:
        with dual_level():
            x = make_dual(x0, vg.Tensor(V))
            y = vg.exp(x)
            y[0] *= y[1]
            out = (y * vg.exp(y)).sum()
            node = weakref.ref(y.grad_fn)
            del x, y, out
        assert node() is None
    finally:
        gc.enable()


# -- operators ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "program",
    [
        lambda x, y: x + y,
        lambda x, y: x - y[0],
        lambda x, y: x[:, :1] * y,
        lambda x, y: x / y,
        lambda x, y: x**y,
        lambda x, y: vg.exp(x) * vg.sin(y) / vg.sqrt(x),
        lambda x, y: vg.matmul(x, y.T),
        lambda x, y: vg.concatenate([x, vg.ones(1, 4), y[:1]]),
        lambda x, y: vg.stack([x, y * 2]),
        lambda x, y: vg.where(x > 1, x, y * y),
        lambda x, y: vg.maximum(x, y).sum(axis=0),
        lambda x, y: (x - x.mean(axis=1, keepdims=True)).var(axis=0) * y[0],
        lambda x, y: vg.logsumexp(x * y, axis=1),
        lambda x, y: vg.cumsum(x, 0) * y,
        lambda x, y: vg.astype(vg.astype(x, np.float32), np.float64) * 0 + y,
        lambda x, y: 2.0 * x + 1.0 / y,
    ],
)
def test_programs_of_two_inputs(program):
    check(program, (A, V), (A[::-1] + 0.1, np.sin(V)))
    check(lambda x: program(x, vg.Tensor(A[::-1] + 0.1)), (A, V))
    check(lambda y: program(vg.Tensor(A), y), (A[::-1] + 0.1, V))


def test_every_rule_works_whichever_inputs_have_tangents():
    rng = np.random.default_rng(0)
    for operator in OPERATORS.values():
        if operator.user_defined or not operator.differentiable:
            continue
        for sample in samples_of(operator)[:2]:
            names = sample.differentiable()
            if len(names) < 2 or any(isinstance(sample.bound()[name], list) for name in names):
                continue
            given_values = sample.bound()
            tangents = {name: rng.standard_normal(np.shape(given_values[name])) for name in names}

            def run(present, sample=sample, names=names, given_values=given_values, tangents=tangents):
                with dual_level():
                    duals = {
                        name: make_dual(vg.Tensor(np.asarray(given_values[name], float)), vg.Tensor(tangents[name]))
                        for name in present
                    }
                    call = sample.replace(**duals)
                    out = call.operator(*call.args, **call.kwargs)
                    outs = out if isinstance(out, tuple) else (out,)
                    return [0.0 if (t := unpack_dual(o).tangent) is None else t.numpy() for o in outs]

            for whole, *parts in zip(run(names), *[run([name]) for name in names], strict=True):
                np.testing.assert_allclose(whole, sum(parts), rtol=1e-7, atol=1e-9, err_msg=operator.name)


def test_a_constant_costs_nothing():
    functions = OPERATORS["mul"].tangents.functions
    (from_self,) = functions(frozenset({"self"}))
    assert "return self_t * other_p\n" in from_self.source
    (from_numerator,) = OPERATORS["div"].tangents.functions(frozenset({"self"}))
    assert "return ops.flowing(self_t / other_p, self_t)\n" in from_numerator.source
    (from_denominator,) = OPERATORS["div"].tangents.functions(frozenset({"other"}))
    assert "return -ops.flowing(other_t * (result / other_p), other_t)\n" in from_denominator.source
    (product,) = OPERATORS["matmul"].tangents.functions(frozenset({"other"}))
    assert "return matmul_function(self_p, other_t)\n" in product.source


def test_complex_numbers():
    z = np.array([0.5 + 1j, -1.2 + 0.3j, 2 - 1j])
    w = np.array([1 - 2j, 0.5j, -1 + 0.2j])
    step = 1e-6
    programs = [
        vg.exp,
        vg.sin,
        vg.sqrt,
        vg.log,
        vg.reciprocal,
        vg.tanh,
        vg.conj,
        vg.abs,
        lambda z: z * z.conj(),
        lambda z: z.real * z.imag,
        lambda z: vg.view_as_real(z) * 2,
        lambda z: (z * z).sum() / z[0],
        lambda z: z ** (0.5 + 1j),
    ]
    for program in programs:
        _, found = jvp(program, (z, w))
        wanted = (program(vg.Tensor(z + step * w)).numpy() - program(vg.Tensor(z - step * w)).numpy()) / (2 * step)
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-8)
        assert found.dtype == wanted.dtype

    def through_parts(z):
        y = z * 2
        y.real[1:] = y.imag[:-1] ** 2
        y.imag.mul_(y.real)
        return y

    _, found = jvp(through_parts, (z, w))
    ahead, behind = through_parts(vg.Tensor(z + step * w)), through_parts(vg.Tensor(z - step * w))
    np.testing.assert_allclose(found, (ahead.numpy() - behind.numpy()) / (2 * step), rtol=1e-6)


def test_float32_is_preserved():
    with dual_level():
        x = make_dual(vg.ones(3, dtype=np.float32), vg.ones(3, dtype=np.float32))
        y = x * vg.full(3, 2.0)
        assert (y.dtype, unpack_dual(y).tangent.dtype) == (np.float64, np.float64)
        y = vg.zeros(3, dtype=np.float32)
        y.add_(x * vg.full(3, 2.0))
        y[1:] = vg.full(2, 5.0) * x[0]
        assert unpack_dual(y).tangent.dtype == np.float32
        assert tangent(y) == [2.0, 5.0, 5.0]


def test_integers_have_no_tangent():
    with dual_level():
        x = make_dual(vg.Tensor([1.5, 2.5]), vg.ones(2))
        assert unpack_dual(x.astype(int)).tangent is None
        n = vg.zeros(2, dtype=int)
        n[...] = x.astype(int)
        n[0] = 7
        assert unpack_dual(n).tangent is None
        assert unpack_dual(x > 2).tangent is None


# -- tangents of views -------------------------------------------------------------------------------------------------


def test_a_view_of_a_dual_has_the_window_of_its_tangent():
    with dual_level():
        base = make_dual(vg.Tensor(A), vg.Tensor(V))
        view = base[1:].T
        t, base_t = unpack_dual(view).tangent, unpack_dual(base).tangent
        assert np.shares_memory(t._array, base_t._array)
        np.testing.assert_array_equal(t.numpy(), V[1:].T)


def test_a_base_whose_view_received_a_tangent_first():
    with dual_level():
        base = vg.zeros(3, 4)
        row, column = base[1], base[:, 2]
        row.copy_(make_dual(vg.ones(4), vg.Tensor(V[0])))
        t, base_t = unpack_dual(row).tangent, unpack_dual(base).tangent
        assert np.shares_memory(t._array, base_t._array)
        expected = np.zeros((3, 4))
        expected[1] = V[0]
        np.testing.assert_array_equal(base_t.numpy(), expected)
        np.testing.assert_array_equal(unpack_dual(column).tangent.numpy(), expected[:, 2])


def test_a_view_taken_before_its_base_received_a_tangent():
    base = vg.zeros(3, 4)
    view = base.T[1:]
    with dual_level():
        base.add_(make_dual(vg.Tensor(A), vg.Tensor(V)))
        np.testing.assert_array_equal(unpack_dual(view).tangent.numpy(), V.T[1:])
        view.mul_(2.0)
        expected = V.copy()
        expected.T[1:] *= 2
        np.testing.assert_array_equal(unpack_dual(base).tangent.numpy(), expected)


def test_writes_to_the_tangent_of_a_view_reach_the_base():
    with dual_level():
        base = make_dual(vg.Tensor(A), vg.Tensor(V)) * 1.0
        unpack_dual(base[0]).tangent.zero_()
        expected = V.copy()
        expected[0] = 0
        np.testing.assert_array_equal(unpack_dual(base).tangent.numpy(), expected)


def test_views_of_a_transposed_dual_with_differently_laid_out_tangent():
    def program(x):
        y = x.reshape(-1)
        y[1:5].mul_(3.0)
        return x * 1.0

    x = vg.Tensor(np.asfortranarray(A))
    for memory in (np.ascontiguousarray(A), np.asfortranarray(A)):
        for layout in (np.ascontiguousarray(V), np.asfortranarray(V)):
            with dual_level():
                x = make_dual(vg.Tensor(memory.copy(order="K")), vg.Tensor(layout.copy(order="K")))
                y = x.T if memory.flags.f_contiguous else x
                y.view(-1)[1:5].mul_(3.0)
                found = unpack_dual(x * 1.0).tangent.numpy()
            expected = np.array(V, order="F" if memory.flags.f_contiguous else "C")
            window = expected.T if memory.flags.f_contiguous else expected
            window.reshape(-1)[1:5] *= 3
            np.testing.assert_array_equal(found, expected)


# -- writes in place ---------------------------------------------------------------------------------------------------


WRITES = {
    "on a dual": lambda x: (x * 1.0).mul_(x).exp_(),
    "on a view of a dual": lambda x: [y := x * 1.0, y[1:].mul_(y[0]), y][-1],
    "on a transposed view of a dual": lambda x: [y := x * 1.0, y.T.sin_(), y][-1],
    "of a dual into a non-dual": lambda x: vg.ones(3, 4).mul_(x),
    "of a dual into a non-dual through a view": lambda x: [y := vg.ones(3, 4), y[1].add_(x[0]), y][-1],
    "of a dual into a transposed view of a non-dual": lambda x: [y := vg.ones(4, 3), y.T.add_(x), y.T[1:].mul_(2.0), y][
        -1
    ],
    "of a non-dual over a dual": lambda x: [y := x * 1.0, y[1].copy_(vg.ones(4)), y][-1],
    "by index": lambda x: [y := x * 1.0, y.__setitem__(1, y[0] * y[2]), y][-1],
    "by slice": lambda x: [y := x * 1.0, y.__setitem__((slice(1, None), slice(None, None, 2)), x[:2, :2] ** 2), y][-1],
    "by slice, of a number": lambda x: [y := x * 1.0, y.__setitem__((slice(None), 1), 5.0), y][-1],
    "by slice, of a view": lambda x: [y := x * 1.0, y.T.__setitem__(slice(1, 3), x.T[:2]), y][-1],
    "by integers": lambda x: [y := x * 1.0, y.__setitem__(np.array([2, 0, 2]), x * x), y][-1],
    "by integers, through a view": lambda x: [y := vg.ones(3, 4), y.T.__setitem__([3, 1], x[:2, :3]), y][-1],
    "by a mask": lambda x: [y := x * 1.0, y.__setitem__(x.detach() > 0.8, x.sum()), y][-1],
    "by a mask, of a number": lambda x: [y := x * 1.0, y.__setitem__(x.detach() > 0.8, 0.0), y][-1],
    "read by integers": lambda x: x[[0, 0, 2], [1, 1, 3]] * x[1, 1],
    "read by a mask": lambda x: x[x.detach() > 0.8] ** 2,
    "fill_": lambda x: [y := x * 1.0, y[0].fill_(x[1, 1]), y[1:, 1:].fill_(2.0), y][-1],
    "zero_": lambda x: [y := x * 1.0, y.T[2].zero_(), y][-1],
    "into itself": lambda x: [y := x * 1.0, y.__setitem__(slice(1, None), y[:-1]), y][-1],
    "into itself, reversed": lambda x: [y := x * 1.0, y[::-1].add_(y), y][-1],
    "x *= x": lambda x: [y := x * 1.0, y.mul_(y), y][-1],
    "x *= x.detach()": lambda x: [y := x * 1.0, y.mul_(y.detach()), y][-1],
    "x /= x of a view": lambda x: [y := x * 1.0, y.div_(y[0]), y][-1],
    "augmented": lambda x: [y := x * 1.0, y.__setitem__(0, y[0].__iadd__(y[1] * 3)), y][-1],
    "broadcast": lambda x: [y := x * 1.0, y.mul_(x[0]), y.add_(x[:, :1]), y.sub_(x[1, 1]), y][-1],
    "copy_ of a broadcast": lambda x: [y := vg.zeros(3, 4), y.copy_(x[2]), y][-1],
    "where": lambda x: [y := x * 1.0, np.multiply(y, x, out=y, where=A > 0.8), y][-1],
    "out": lambda x: [y := vg.zeros(3, 4), np.multiply(x, x, out=y), np.exp(x[0], out=y[1]), y][-1],
    "powers": lambda x: [y := x * 1.0, y.pow_(x), y[0].pow_(2.0), y][-1],
    "clip": lambda x: [y := x * 1.0, y.clip_(0.5, 1.0), y][-1],
    "rounding": lambda x: [y := x * 1.0, y[0].floor_(), y][-1],
    "a table": lambda x: [y := vg.ones(3, 4), [y.__setitem__(i, y[i - 1] * x[i]) for i in range(1, 3)], y][-1],
    "the old value": lambda x: [y := x * 1.0, z := y * y, y.exp_(), z * y][-1],
    "the old value of a saved result": lambda x: [y := vg.exp(x), z := y * 2, y.zero_(), z * vg.exp(y + x)][-1],
    "a diagonal": lambda x: [y := x[:, :3] * 1.0, y.diagonal().mul_(x[0, :3]), y][-1],
    "what is not elementwise": lambda x: [y := x * 1.0, y.cumsum_(0) if hasattr(y, "cumsum_") else y.add_(1.0), y][-1],
}


@pytest.mark.parametrize("name", WRITES)
def test_writes(name):
    if name == "x *= x.detach()":
        _, found = jvp(WRITES[name], (A, V))
        np.testing.assert_allclose(found, A * V)
        return
    check(WRITES[name], (A, V))


@pytest.mark.parametrize("name", WRITES)
def test_writes_when_views_are_replayed(name):
    with vg.view_replay():
        _, found = jvp(WRITES[name], (A, V))
    np.testing.assert_array_equal(found, jvp(WRITES[name], (A, V))[1])


def test_tangent_is_updated_in_place_by_a_single_operator_call():
    with dual_level():
        x = make_dual(vg.Tensor(A), vg.Tensor(V)) * 1.0
        root = x._tangent
        (record,) = root.records.values()
        array = record.value._array
        x.mul_(3.0)
        x.neg_()
        x[1:].mul_(vg.Tensor(A[0]))
        x += 5.0
        x /= 2.0
        assert record.value._array is array
        np.testing.assert_allclose(unpack_dual(x).tangent.numpy(), -1.5 * V * np.stack([np.ones(4), A[0], A[0]]))


@pytest.mark.filterwarnings("ignore:invalid value encountered in divide")
def test_zero_tangents_divided_by_zero_in_place_remain_zero():
    with dual_level():
        x = make_dual(vg.Tensor([1.0, 0.0, 0.0]), vg.Tensor([2.0, 0.0, np.nan])) * 1.0
        x /= vg.Tensor([4.0, 0.0, 0.0])
        np.testing.assert_array_equal(unpack_dual(x).tangent.numpy(), [0.5, 0, np.nan])


def test_a_write_that_fails_leaves_the_tangent():
    with dual_level():
        x = make_dual(vg.Tensor(A), vg.Tensor(V)) * 1.0
        for write in (
            lambda: x.mul_(vg.ones(2, 3, 4)),
            lambda: x.mul_(vg.ones(3, 4) * 1j),
            lambda: x.exp_().add_("no"),
        ):
            with pytest.raises((TypeError, ValueError)):
                write()
        y = make_dual(vg.Tensor(A), vg.Tensor(V)) * 1.0
        with pytest.raises(ValueError):
            y.mul_(vg.ones(2, 3, 4))
        np.testing.assert_array_equal(unpack_dual(y).tangent.numpy(), V)


def test_an_expanded_view_is_not_written_to():
    with dual_level():
        x = make_dual(vg.ones(3, 1), vg.ones(3, 1))
        with pytest.raises(vg.errors.OverlappingWriteError):
            x.expand(3, 4).mul_(2.0)
        assert tangent(x.expand(3, 2)) == [[1.0, 1.0]] * 3


# -- memory that several tensors with tangents of their own look at ----------------------------------------------------


def test_a_write_to_a_dual_is_a_write_to_its_primal():
    x = vg.Tensor([1.0, 2.0, 3.0])
    with dual_level():
        dual = make_dual(x, vg.ones(3))
        dual[0, ...].mul_(5.0)
        assert (x.tolist(), tangent(x), tangent(dual)) == ([5.0, 2.0, 3.0], [5.0, 0.0, 0.0], [5.0, 1.0, 1.0])
        x[1:] = 7.0
        assert (dual.tolist(), tangent(x), tangent(dual)) == ([5.0, 7.0, 7.0], [5.0, 0.0, 0.0], [5.0, 0.0, 0.0])


def test_two_duals_of_one_tensor():
    x = vg.Tensor([1.0, 2.0, 3.0])
    with dual_level():
        a, b = make_dual(x, vg.ones(3)), make_dual(x, vg.full(3, 10.0))
        assert (tangent(a * a), tangent(b * b)) == ([2.0, 4.0, 6.0], [20.0, 40.0, 60.0])
        a[1] = a[0] * 3
        assert (tangent(a), tangent(b), b.tolist()) == ([1.0, 3.0, 1.0], [10.0, 3.0, 10.0], [1.0, 3.0, 3.0])


def test_duals_of_parts_of_one_tensor():
    x = vg.arange(6.0)
    with dual_level():
        head, tail = make_dual(x[:4], vg.ones(4)), make_dual(x[2:], vg.full(4, 10.0))
        assert (tangent(head), tangent(tail), tangent(x)) == ([1.0] * 4, [10.0] * 4, None)
        head[3:].mul_(2.0)
        assert (tangent(head), tangent(tail)) == ([1.0, 1.0, 1.0, 2.0], [10.0, 2.0, 10.0, 10.0])
        assert tangent(x) == [0.0, 0.0, 0.0, 2.0, 0.0, 0.0]
        x[[2, 5]] = vg.zeros(2)
        assert (tangent(head), tangent(tail)) == ([1.0, 1.0, 0.0, 2.0], [0.0, 2.0, 10.0, 0.0])
        view = tail.reshape(2, 2).T
        assert tangent(view) == [[0.0, 10.0], [2.0, 0.0]]
        view[1].copy_(head[:2])
        assert (tangent(tail), tangent(head)) == ([0.0, 1.0, 10.0, 1.0], [1.0, 1.0, 0.0, 1.0])


def test_a_write_through_an_unpacked_primal_clears_the_tangent():
    with dual_level():
        x = make_dual(vg.Tensor([1.0, 2.0]), vg.ones(2)) * 1.0
        primal = unpack_dual(x).primal
        x[0] = primal[0]
        assert (x.tolist(), tangent(x)) == ([1.0, 2.0], [0.0, 1.0])
        primal[1] = 4.0
        assert (x.tolist(), tangent(x)) == ([1.0, 4.0], [0.0, 0.0])
        y = make_dual(vg.Tensor([1.0, 2.0]), vg.ones(2)) * 1.0
        y.copy_(y.detach())
        assert tangent(y) in (None, [0.0, 0.0])


# -- together with reverse mode ----------------------------------------------------------------------------------------


def hessian_products(program, a, v):
    """Return Hessian-vector products of a program in three ways, and the second derivative in the direction."""
    x = vg.Tensor(a, requires_grad=True)
    with dual_level():  # forward over reverse
        (grad,) = vg.autograd.grad(program(make_dual(x, vg.Tensor(v))), x)
        forward_over_reverse = unpack_dual(grad).tangent.numpy()
    with dual_level():  # reverse over forward
        t = unpack_dual(program(make_dual(x, vg.Tensor(v)))).tangent
    (reverse_over_forward,) = vg.autograd.grad(t, x)
    (grad,) = vg.autograd.grad(program(x), x, create_graph=True)
    (reverse_over_reverse,) = vg.autograd.grad((grad * vg.Tensor(v)).sum(), x)
    with dual_level():  # forward over forward
        outer = make_dual(x.detach(), vg.Tensor(v))
        with dual_level():
            t = unpack_dual(program(make_dual(outer, vg.Tensor(v)))).tangent
        forward_over_forward = unpack_dual(t).tangent.item()
    return forward_over_reverse, reverse_over_forward.numpy(), reverse_over_reverse.numpy(), forward_over_forward


def overwritten(x):
    y = x.clone()
    y[1] = y[0] * y[1] * 2
    y[0].mul_(y[1])
    flat = y.reshape(-1)
    flat[3:] += vg.exp(x[0, 0]) * x.reshape(-1)[3:]
    y.T[1].sin_()
    y[np.array([0, 2])] = y[np.array([2, 0])] * x[:2]
    return (y * y * y).sum()


@pytest.mark.parametrize(
    "program",
    [
        lambda x: (x * x * x).sum(),
        lambda x: vg.exp(x).prod() + vg.sin(x).sum() ** 2,
        lambda x: vg.logsumexp(x @ x.T, axis=1).sum(),
        overwritten,
        lambda x: [y := vg.exp(x), y.mul_(y), y.T[0].exp_(), (y * x).sum()][-1],
        lambda x: [y := vg.zeros(3, 4), y[1:].copy_(x[:2] ** 3), y.mul_(x), vg.sqrt(1 + y * y).sum()][-1],
    ],
)
def test_four_ways_to_second_order_agree(program):
    first, second, third, twice = hessian_products(program, A, V)
    np.testing.assert_allclose(first, third, rtol=1e-9)
    np.testing.assert_allclose(second, third, rtol=1e-9)
    np.testing.assert_allclose(twice, np.sum(third * V), rtol=1e-9)


def test_closed_forms():
    a, v = np.array([0.7, 1.3]), np.array([2.0, -1.0])

    def cube_in_place(x):  # (x0**2 * x1)**3
        y = x.clone()
        y[0] = y[0] * y[0]
        y[1, ...].mul_(y[0])
        return y[1] ** 3

    p, q = a
    hessian = np.array([[30 * p**4 * q**3, 18 * p**5 * q**2], [18 * p**5 * q**2, 6 * p**6 * q]])
    for product in hessian_products(cube_in_place, a, v)[:3]:
        np.testing.assert_allclose(product, hessian @ v)
    np.testing.assert_allclose(hessian_products(cube_in_place, a, v)[3], v @ hessian @ v)


def test_third_order_forward_over_forward_over_reverse():
    def program(x):  # x**5, by overwriting
        y = x.clone()
        y.mul_(y)
        y.mul_(y)
        y.mul_(x)
        return y.sum()

    x = vg.Tensor([1.5], requires_grad=True)
    with dual_level():
        outer = make_dual(x, vg.ones(1))
        with dual_level():
            inner = make_dual(outer, vg.ones(1))
            (grad,) = vg.autograd.grad(program(inner), x)
            second = unpack_dual(grad).tangent
        third = unpack_dual(second).tangent
        assert third.item() == pytest.approx(60 * 1.5**2)
        assert unpack_dual(second).primal.item() == pytest.approx(20 * 1.5**3)


def test_the_gradient_in_a_leaf_has_a_tangent():
    x = vg.Tensor([1.0, 2.0], requires_grad=True)
    with dual_level():
        (make_dual(x, vg.ones(2)) ** 3).sum().backward()
        assert (x.grad.tolist(), tangent(x.grad)) == ([3.0, 12.0], [6.0, 12.0])
        assert not x.grad.requires_grad
    assert unpack_dual(x.grad).tangent is None


def test_a_backward_pass_of_a_graph_made_outside_of_the_level():
    x = vg.Tensor([1.0, 2.0], requires_grad=True)
    y = x * x
    with dual_level():
        weights = make_dual(vg.ones(2), vg.Tensor([1.0, -1.0]))
        (grad,) = vg.autograd.grad(y, x, weights)
        assert (grad.tolist(), tangent(grad)) == ([2.0, 4.0], [2.0, -4.0])


def test_a_backward_pass_after_the_level():
    x = vg.Tensor([1.0, 2.0], requires_grad=True)
    with dual_level():
        y = vg.exp(make_dual(x, vg.ones(2)))
        y[0] *= 3.0
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.exp([1, 2]) * [3, 1])


def test_saved_values_keep_their_tangents_when_they_are_overwritten():
    x = vg.Tensor([0.5, 1.5], requires_grad=True)
    with dual_level():
        y = make_dual(x, vg.ones(2)) * 1.0
        z = y * y * y
        y.mul_(100.0)
        (grad,) = vg.autograd.grad(z.sum(), x)
        np.testing.assert_allclose(grad.detach().numpy(), 3 * np.array([0.5, 1.5]) ** 2)
        np.testing.assert_allclose(unpack_dual(grad).tangent.numpy(), 6 * np.array([0.5, 1.5]))


def test_tangents_with_history():
    x, t = vg.Tensor([1.0, 2.0]), vg.Tensor([3.0, 4.0], requires_grad=True)
    with dual_level():
        dual = make_dual(x, t)
        dual.mul_(dual)
        dual[0, ...].mul_(2.0)
        out = unpack_dual(dual.sum()).tangent
    (grad,) = vg.autograd.grad(out, t)
    assert grad.tolist() == [4.0, 4.0]


def test_forward_mode_works_without_grad_mode():
    x = vg.Tensor([1.0, 2.0], requires_grad=True)
    with dual_level(), vg.no_grad():
        y = make_dual(x, vg.ones(2)) ** 2
        y[0] *= 2
        assert (y.requires_grad, tangent(y)) == (False, [4.0, 4.0])
    with dual_level(), vg.inference_mode():
        assert tangent(make_dual(vg.ones(2), vg.ones(2)) * 3) == [3.0, 3.0]


def test_a_dual_of_a_leaf_is_not_written_to_in_grad_mode():
    x = vg.ones(2, requires_grad=True)
    with dual_level():
        dual = make_dual(x, vg.ones(2))
        with pytest.raises(vg.errors.LeafInPlaceError):
            dual.mul_(2.0)
        assert tangent(dual) == [1.0, 1.0]
        with vg.no_grad():
            unpack_dual(dual).primal.mul_(2.0)
        assert x.tolist() == [2.0, 2.0]


# -- operators of one's own --------------------------------------------------------------------------------------------


def test_operators_without_forward_mode_raise():
    op = define_op(
        "no_forward(self, other)", forward=np.add, derivatives={"self": "grad", "other": "not_differentiable"}
    )
    with dual_level():
        x = make_dual(vg.ones(2), vg.ones(2))
        with pytest.raises(ForwardModeError) as caught:
            op(x, 1.0)
        assert caught.value.message == (
            "operator 'no_forward' has no forward-mode formula, but its input 'self' has a tangent; add "
            "forward_derivative to its declaration, or detach() the input"
        )
        assert unpack_dual(op(vg.ones(2), x)).tangent is None


def test_tangent_of_a_plain_argument_is_rejected():
    with dual_level():
        n = make_dual(vg.Tensor(2.0), vg.Tensor(1.0))
        with pytest.raises(ForwardModeError, match="argument 'beta' of operator 'softplus' is not a tensor"):
            vg.softplus(vg.ones(2), n)


def test_derived_rules_that_lose_the_imaginary_part_raise():
    op = define_op(
        "phase(self)",
        forward=lambda x: np.exp(1j * x),
        derivatives={"self": "(grad * conj(1j * result)).real"},
        forward_derivative="auto_element_wise",
    )
    x = vg.Tensor(A[0], requires_grad=True)
    assert op(x).requires_grad
    with dual_level(), pytest.raises(ForwardModeError, match="auto_element_wise yields a real tangent"):
        op(make_dual(vg.Tensor(A), vg.Tensor(V)))
    op = define_op(
        "phase(self)",
        forward=lambda x: np.exp(1j * x),
        derivatives={"self": "grad * conj(1j * result)"},
        forward_derivative="auto_element_wise",
    )
    _, found = jvp(op, (A, V))
    np.testing.assert_allclose(found, 1j * np.exp(1j * A) * V)


def test_several_outputs():
    op = define_op(
        "quotient_and_rest(self, other) -> (quotient, rest, whole)",
        forward=lambda a, b: (a / b, a - b, np.round(a)),
        derivatives={
            "self": "grad_quotient / other + grad_rest",
            "other": "-grad_quotient * self / square(other) - grad_rest",
        },
        nondifferentiable_outputs=["whole"],
        forward_derivative={
            "quotient": "(self_t - other_t * quotient) / other_p",
            "rest": "self_t - other_t",
        },
    )
    for number in range(2):
        check(lambda a, b, number=number: op(a, b)[number], (A, V), (A + 1, V.T.reshape(3, 4)))
        check(lambda a, number=number: op(a, vg.Tensor(A))[number], (A + 1, V))
        check(lambda b, number=number: op(vg.Tensor(A), b)[number], (A + 1, V))
    with dual_level():
        assert unpack_dual(op(make_dual(vg.ones(2), vg.ones(2)), vg.ones(2))[2]).tangent is None
    both = define_op(
        "sine_and_cosine(self) -> (s, c)",
        forward=lambda x: (np.sin(x), np.cos(x)),
        derivatives={"self": "grad_s * c - grad_c * s"},
        forward_derivative={"s, c": "self_t * c, -self_t * s"},
    )
    check(lambda x: both(x)[0] * both(x)[1], (A, V))


def test_a_list_of_tensors():
    op = define_op(
        "weighted_sum(tensors, *, weight)",
        forward=lambda tensors, *, weight: weight * np.sum(tensors, axis=0),
        derivatives={"tensors": "[grad * weight for tensor in tensors]"},
        lists=["tensors"],
        forward_derivative="auto_linear",
    )
    check(lambda x, y: op([x, vg.Tensor(A), y, x], weight=2.0), (A, V), (A, V * 2))


def test_separate_in_place_declarations():
    op = define_op(
        "own_sigmoid(self)",
        forward=lambda x: 1 / (1 + np.exp(-x)),
        derivatives={"self": "grad * exp(-self) / square(1 + exp(-self))"},
        forward_derivative="self_t * exp(-self_p) / square(1 + exp(-self_p))",
        inplace=InPlace(
            derivatives={"self": "grad * result * (1 - result)"}, forward_derivative="self_t * result * (1 - result)"
        ),
    )
    check(op, (A, V))
    check(lambda x: op.inplace(x * 1.0), (A, V))
    check(lambda x: [y := x * 1.0, op.inplace(y.T[1:]), y][-1], (A, V))
    first, second, third, _ = hessian_products(lambda x: (op.inplace(x * 1.0) ** 2).sum(), A, V)
    np.testing.assert_allclose(first, third)
    np.testing.assert_allclose(second, third)


def test_a_formula_that_reads_the_result_and_the_value_before_the_write():
    op = define_op(
        "x_to_the_x(self)",
        forward=lambda x: x**x,
        derivatives={"self": "grad * result * (1 + log(self))"},
        forward_derivative="self_t * result * (1 + log(self_p))",
        inplace=True,
    )
    check(lambda x: op.inplace(x * 1.0), (A, V))
    check(lambda x: [y := x * 1.0, op.inplace(y[1:]), op.inplace(y), y][-1], (A, V))
    first, second, third, twice = hessian_products(lambda x: (op.inplace(x * 1.0) ** 2).sum(), A, V)
    np.testing.assert_allclose(first, third)
    np.testing.assert_allclose(second, third)
    np.testing.assert_allclose(twice, np.sum(third * V))


def test_softclip_through_both_modes():
    op = define_op(
        "softclip(self, *, limit)",
        forward=lambda x, *, limit: limit * np.tanh(x / limit),
        derivatives={"self": "grad * (1 - square(result / limit))"},
        forward_derivative="auto_element_wise",
        inplace=True,
    )
    check(lambda x: op(x, limit=2.0), (A, V))
    check(lambda x: [y := x * 1.0, op.inplace(y.T[1:], limit=2.0), y][-1], (A, V))


# -- drawn programs ----------------------------------------------------------------------------------------------------

VIEWS = [
    lambda t: t[1:] if t.ndim and len(t) > 1 else t[...],
    lambda t: t[0] if t.ndim else t[...],
    lambda t: t.T,
    lambda t: t[::-1] if t.ndim else t[...],
    lambda t: t.reshape(-1),
    lambda t: t[..., ::2] if t.ndim else t[...],
    lambda t: t.diagonal() if t.ndim == 2 else t[...],
    lambda t: t.detach(),
    lambda t: t[None],
]
UNARY = ["sin", "tanh", "square", "neg", "sigmoid"]
BINARY = ["add", "sub", "mul"]
INDICES = [0, slice(None, None, 2), np.array([0, 0]), np.array([-1]), ..., slice(1, None)]

steps = st.lists(
    st.tuples(
        st.sampled_from(["view", "unary", "unary_", "binary", "binary_", "set", "get", "copy_", "fill_", "fresh"]),
        st.integers(0, 20),
        st.integers(0, 20),
        st.integers(0, 10),
    ),
    min_size=1,
    max_size=12,
)


def fitted(value, shape):
    """Return the value, or a scalar computed from it if it cannot be broadcast to `shape`."""
    try:
        if np.broadcast_shapes(value.shape, shape) == shape:
            return value
    except ValueError:
        pass
    return vg.sin(value.sum())


def interpreted(program, x):
    """Run a drawn program on a tensor, and return a weighted sum of all its values."""
    pool = [x * 1.0, x[0] * 2.0, vg.Tensor(A), vg.zeros(3, 4)]
    for kind, i, j, k in program:
        a, b = pool[i % len(pool)], pool[j % len(pool)]
        if kind == "view":
            pool.append(VIEWS[k % len(VIEWS)](a))
        elif kind == "unary":
            pool.append(getattr(vg, UNARY[k % len(UNARY)])(a))
        elif kind == "unary_":
            getattr(a, UNARY[k % len(UNARY)] + "_")()
        elif kind == "binary":
            pool.append(getattr(vg, BINARY[k % len(BINARY)])(a, fitted(b, a.shape)))
        elif kind == "binary_":
            getattr(a, BINARY[k % len(BINARY)] + "_")(fitted(b, a.shape))
        elif kind == "set" and a.ndim and len(a):
            index = INDICES[k % len(INDICES)]
            a[index] = fitted(b, np.empty(a.shape)[index].shape)
        elif kind == "get" and a.ndim and len(a):
            pool.append(a[INDICES[k % len(INDICES)]] * 1.0)
        elif kind == "copy_":
            a.copy_(fitted(b, a.shape))
        elif kind == "fill_":
            a.fill_(0.5 if k % 2 else fitted(b, ()))
        elif kind == "fresh":
            pool.append(vg.full(a.shape, 0.5))
        if pool[-1].size and abs(pool[-1].detach().numpy()).max() > 1e3:
            pool[-1] = vg.tanh(pool[-1])
    total = vg.Tensor(0.0)
    for t in pool:
        total = total + (vg.tanh(t) * np.cos(np.arange(t.size)).reshape(t.shape)).sum()
    return total


@settings(max_examples=150, deadline=None)
@given(steps)
def test_drawn_programs_against_reverse_mode(program):
    _, found = jvp(lambda x: interpreted(program, x), (A, V))
    x = vg.Tensor(A, requires_grad=True)
    out = interpreted(program, x)
    wanted = 0.0
    if out.requires_grad:
        (grad,) = vg.autograd.grad(out, x, materialize_grads=True)
        wanted = np.sum(grad.numpy() * V)
    np.testing.assert_allclose(0.0 if found is None else found, wanted, rtol=1e-7, atol=1e-9)


@settings(max_examples=60, deadline=None)
@given(steps)
def test_drawn_programs_of_second_order(program):
    x = vg.Tensor(A, requires_grad=True)
    out = interpreted(program, x)
    if not out.requires_grad:
        return
    (grad,) = vg.autograd.grad(out, x, create_graph=True, materialize_grads=True)
    wanted = np.zeros_like(A)
    if grad.requires_grad:
        (wanted,) = vg.autograd.grad((grad * V).sum(), x, materialize_grads=True)
        wanted = wanted.numpy()
    with dual_level():
        dual = make_dual(x, vg.Tensor(V))
        out = interpreted(program, dual)
        (grad,) = vg.autograd.grad(out, x, materialize_grads=True)
        t = unpack_dual(grad).tangent
        found = np.zeros_like(A) if t is None else t.numpy()
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-8)
    with dual_level():
        t = unpack_dual(interpreted(program, make_dual(x, vg.Tensor(V)))).tangent
    found = np.zeros_like(A)
    if t is not None and t.requires_grad:
        (found,) = vg.autograd.grad(t, x, materialize_grads=True)
        found = found.numpy()
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-8)


def test_the_names_that_are_public():
    assert set(forward_ad.__all__) == {
        "UnpackedDualTensor",
        "dual_level",
        "enter_dual_level",
        "exit_dual_level",
        "make_dual",
        "unpack_dual",
    }


# -- windows by geometry -----------------------------------------------------------------------------------------------


def test_as_strided_of_a_dual_tensor_has_its_tangent():
    check(lambda x: x.as_strided((2, 3), (4, 1), 1) * 2.0, (A, V))
    check(lambda x: x.as_strided((), (), 5), (A, V))
    check(lambda x: x[1:, ::2].as_strided((3,), (4,), 0) * 3.0, (A, V))
    check(lambda x: x.as_strided((5, 2), (1, 1)).sum(axis=1), (A, V))

    def written(x):
        y = x.clone()
        y.as_strided((3,), (5,), 0)[...] *= x.as_strided((3,), (4,), 1)
        return y

    check(written, (A, V))


def test_as_strided_of_a_dual_tensor_that_is_a_part_of_its_base_is_refused():
    base = vg.Tensor(A)
    with dual_level():
        part = make_dual(base[1], vg.Tensor(V[1]))
        with pytest.raises(ForwardModeError, match=r"clone\(\)"):
            part.as_strided((2,), (1,), 0)
        assert tangent(part.clone().as_strided((2,), (1,), 1)) == V[1, 1:3].tolist()


@pytest.mark.parametrize(
    "view", [lambda x: x.as_strided((2, 2), (1, 1)), lambda x: x.unfold(0, 2, 1), lambda x: x[None].expand(2, 3)]
)
def test_tangents_of_windows_that_overlap_themselves(view):
    with forward_ad.dual_level():
        x = forward_ad.make_dual(vg.Tensor([1.0, 2.0, 3.0]), vg.Tensor([1.0, 1.0, 1.0]))
        apart = forward_ad.unpack_dual(view(x)).primal
        x.mul_(2.0)
        x[:2].mul_(3.0)
        x[1] = 7.0
        assert forward_ad.unpack_dual(x).tangent.tolist() == [6.0, 0.0, 2.0]
        places = np.array(view(vg.arange(3)))
        # Written elements have the tangent of the value; the others have the tangent of the window, which is zero.
        assert np.array_equal(forward_ad.unpack_dual(apart).tangent.numpy(), np.array([6.0, 0.0, 2.0])[places])


def test_a_window_keeps_its_own_tangent_outside_the_write():
    with forward_ad.dual_level():
        base = vg.Tensor([1.0, 2.0, 3.0])
        window = forward_ad.make_dual(base.unfold(0, 2, 1), vg.Tensor([[1.0, 2.0], [3.0, 4.0]]))
        base[0] = 5.0
        assert forward_ad.unpack_dual(window).tangent.tolist() == [[0.0, 2.0], [3.0, 4.0]]
        base[1] = forward_ad.make_dual(vg.Tensor(1.0), vg.Tensor(9.0))
        assert forward_ad.unpack_dual(window).tangent.tolist() == [[0.0, 9.0], [9.0, 4.0]]


def test_forward_formulas_may_call_formula_functions():
    scaled = vg.autograd.define_op(
        "scaled_product(self, other, *, n=2)",
        forward=lambda a, b, n=2: a * b * float(n),
        derivatives={"self": "grad * other * float(n)", "other": "grad * self * float(n)"},
        forward_derivative="float(n) * (self_t * other_p + self_p * other_t)",
    )
    with forward_ad.dual_level():
        x = forward_ad.make_dual(vg.Tensor([1.0, 2.0]), vg.Tensor([1.0, 1.0]))
        assert forward_ad.unpack_dual(scaled(x, vg.Tensor([3.0, 4.0]))).tangent.tolist() == [6.0, 8.0]
        assert forward_ad.unpack_dual(scaled(x, x)).tangent.tolist() == [4.0, 8.0]


def test_values_with_extra_leading_axes():
    def function(x):
        y = x * 1.0
        y[np.array([0, 0, 1])] = (x * 2.0)[None, :3]
        return y

    value, tangent = vg.func.jvp(function, (vg.Tensor([1.0, 2.0, 3.0]),), (vg.Tensor([1.0, 10.0, 100.0]),))
    assert value.tolist() == [4.0, 6.0, 3.0] and tangent.tolist() == [20.0, 200.0, 100.0]


def test_a_tangent_with_a_tangent_is_refused():
    with dual_level():
        tangent = make_dual(vg.Tensor([1.0]), vg.Tensor([5.0]))
        with pytest.raises(ForwardModeError, match="unpack_dual"):
            make_dual(vg.Tensor([2.0]), tangent)
        with dual_level():
            assert unpack_dual(make_dual(vg.Tensor([2.0]), tangent)).tangent.tolist() == [1.0]


def reshaped_by_assignment(x):
    y = x * x
    same = y
    y.shape = (2, 2)
    y[0] *= y[1]
    return (same @ y).sum()


def resized(x):
    y = x * x
    y.resize(2, 3)
    return (y * y[:, ::-1]).sum()


@pytest.mark.parametrize("f", [reshaped_by_assignment, resized])
@pytest.mark.filterwarnings("ignore:Setting the shape on a NumPy array:DeprecationWarning")
def test_shapes_assigned_in_every_mode(f):
    x = np.arange(4.0) + 0.5
    expected = vg.grad(f)(x)
    np.testing.assert_allclose(vg.func.jacfwd(f)(x), expected)
    np.testing.assert_allclose(vg.grad(vg.func.functionalize(f))(x), expected)
    np.testing.assert_allclose(vg.hessian(f)(x), vg.func.jacrev(vg.grad(f))(x))
    assert vg.func.functionalize(f)(x) == f(x)
