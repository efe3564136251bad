"""Tensors: their construction, and operands that are not tensors."""

from __future__ import annotations

import warnings
import weakref
from fractions import Fraction

import numpy as np
import pytest
from leaves import leaf, leaf_of

import viewgrad as vg
from viewgrad.autograd import forward_ad, grad
from viewgrad.errors import AutogradError, DetachedConversionWarning, ViewInPlaceError


def test_a_number_made_of_a_tensor_warns_that_its_history_is_lost():
    x = vg.Tensor(2.0, requires_grad=True)
    array = np.zeros(3)
    with pytest.raises(ValueError, match="array element"):
        array[0] = x * 2
    with pytest.warns(DetachedConversionWarning, match="returns a plain number"):
        array[0] = 2 * float(x)
    assert array[0] == 4.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert x.detach().item() == float(x.detach()) == int(x) == 2
        with vg.no_grad():
            float(x)
        x.detach().astype(complex).item()


def test_foreign_byte_order_is_converted():
    x = vg.Tensor(np.ones(2, np.dtype(float).newbyteorder()), requires_grad=True)
    assert x.dtype.isnative
    (x * x).sum().backward()
    assert x.grad.dtype is x.dtype is np.dtype(float)
    with pytest.raises(TypeError, match=r"use Tensor\(array\)"):
        vg.from_numpy(np.ones(2, np.dtype(float).newbyteorder()))


def test_non_tensors_are_refused_by_name():
    x = vg.Tensor([1.0, 2.0], requires_grad=True)
    for operate in [lambda: x + None, lambda: vg.lerp(x, x, None), lambda: x.mul_(None)]:
        with pytest.raises(TypeError, match="NoneType"):
            operate()
    with pytest.raises(TypeError, match="inputs must be a Tensor or a sequence of them, not ndarray"):
        vg.autograd.grad(x.sum(), np.zeros(2))
    with pytest.raises(TypeError, match="not float"):
        vg.autograd.backward(1.0)
    with pytest.raises(TypeError, match="not ndarray"):
        x.sum().backward(inputs=[np.zeros(2)])


def test_a_tensor_is_not_its_own_grad():
    x = vg.Tensor([1.0], requires_grad=True)
    with pytest.raises(AutogradError, match="cannot be its own grad"):
        x.grad = x
    x.grad = x.detach()
    assert x.grad is not None
    del x.grad
    assert x.grad is None


# -- detached in place -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("replay", [False, True])
def test_views_keep_their_history_when_their_base_is_detached_in_place(replay):
    with vg.view_replay(replay):
        x = leaf(1.0, 2.0, 3.0)
        base = x.clone()
        view = base[1:2]
        base.detach_()
        assert not base.requires_grad and view.requires_grad
        assert grad((view * view).sum() + x.sum(), x)[0].tolist() == [1.0, 5.0, 1.0]
        inner = view[0:]
        assert grad((inner * 2).sum(), x)[0].tolist() == [0.0, 2.0, 0.0]
        later = base[1:2]
        assert not later.requires_grad


def test_a_base_that_is_written_to_before_or_after_it_is_detached():
    for early in (True, False):
        x = leaf(1.0, 2.0, 3.0)
        base = x.clone()
        view = base[1:2]
        inner = view[0:]
        if early:
            base[1] = x[0] * 5
            base.detach_()
        else:
            base.detach_()
            base[0] = x[0] * 5
        for stale in (view, inner):
            (found,) = grad((stale * 2).sum(), x, retain_graph=True)
            assert found.tolist() == ([10.0, 0.0, 0.0] if early else [0.0, 2.0, 0.0])
        fresh = base[:1]
        assert grad((fresh + x[:1]).sum(), x)[0].tolist() == [1.0 + 5 * (not early), 0.0, 0.0]


@pytest.mark.parametrize("taken", [lambda view: view[0:], lambda view: view.reshape(1)])
@pytest.mark.parametrize("replay", [False, True])
@pytest.mark.parametrize("used", [False, True])
def test_views_have_writes_between_two_detachments_of_their_base(taken, replay, used):
    with vg.view_replay(replay):
        x = leaf(1.0, 2.0, 3.0)
        base = x * 1.0
        whole = base[0:]
        view = base[1:2]
        base.detach_()
        inner = taken(view)
        if used:
            assert grad((inner * inner).sum(), x, retain_graph=True)[0].tolist() == [0.0, 4.0, 0.0]
        base[1] = x[0] * 5
        base.detach_()
        assert grad((inner * 2).sum(), x, retain_graph=True)[0].tolist() == [10.0, 0.0, 0.0]
        whole.mul_(2.0)  # through a view, whose elements have three histories
        base[2] = x[0]
        base.detach_()
        assert grad(whole.sum() + (inner * inner).sum(), x)[0].tolist() == [2 + 10 + 2 * 10 * 10 + 1, 0.0, 0.0]


def test_histories_that_ended_long_ago_are_released_and_refused():
    x = leaf(1.0, 2.0, 3.0)
    for times in (8, 10):
        base = x * 1.0
        view = base[1:]
        nodes = []
        for _ in range(times):
            nodes.append(weakref.ref(base.grad_fn))
            base.detach_()
            base[0] = x[0]
        if times == 8:
            assert grad(view.sum(), x)[0].tolist() == [0.0, 1.0, 1.0]
        else:
            assert nodes[1]() is None and nodes[2]() is not None
            with pytest.raises(ViewInPlaceError, match="ambiguous"):
                view * 2


# The history of a view whose base had none is not created until it is accessed.
OF_CONSTANTS = {
    "slice": lambda base: base[:1],
    "of a slice": lambda base: base[:2][:1],
    "of a shape": lambda base: base.reshape(3, 1)[0],
    "reshaped": lambda base: base[:1].reshape(1, 1),
    "strided": lambda base: vg.as_strided(base, (1,), (1,)),
    "real": lambda base: base.real[:1],
}


@pytest.mark.parametrize("taken", OF_CONSTANTS.values(), ids=OF_CONSTANTS)
@pytest.mark.parametrize("replay", [False, True])
def test_views_of_a_base_without_history_that_got_one_and_was_detached(taken, replay):
    with vg.view_replay(replay):
        for used in (True, False):
            x = leaf(1.0, 2.0, 3.0)
            base = vg.zeros(3)
            view, other = taken(base), taken(base)
            base[0] = x[0] * 2
            if used:
                assert view.requires_grad
            base.detach_()
            for stale in (other, view):
                assert stale.requires_grad
                for use in (lambda: stale, lambda: stale[0], lambda: stale[0:]):  # noqa: B023
                    assert grad((use() * use()).sum(), x, retain_graph=True)[0].tolist() == [8.0, 0.0, 0.0]
            fresh = taken(base)
            assert not fresh.requires_grad and not fresh[0:].requires_grad and not fresh[0].requires_grad
            base[0] = x[1] * 3
            assert grad((fresh[0:] + fresh).sum(), x)[0].tolist() == [0.0, 6.0, 0.0]


def test_views_of_a_base_whose_history_starts_and_ends_repeatedly():
    x = leaf(1.0, 2.0, 3.0)
    base = vg.zeros(3)
    for _ in range(300):  # identity would do for the first 256 numbers
        view, inner = base[:1], base[:2][:1]
        assert not view.requires_grad and not inner.requires_grad
        base[0] = x[1] * 3
        base.detach_()
        for stale in (view, inner):
            assert grad((stale * 2).sum(), x, retain_graph=True)[0].tolist() == [0.0, 6.0, 0.0]
    kept = base[:1]
    base[0] = x[1] * 3
    assert grad((kept * kept).sum(), x)[0].tolist() == [0.0, 36.0, 0.0]


def test_independent_views_survive_detachment_of_their_base():
    x = leaf(1.0, 2.0, 3.0)
    base = vg.zeros(3)
    with vg.no_grad():
        unrecorded = base[:1]
    untouched = vg.ones(2)
    constant = untouched[:1]
    untouched.detach_()
    base[0] = x[0] * 2
    base.detach_()
    with vg.no_grad():
        fresh = base[:1]
    for view in (unrecorded, constant, fresh):
        assert not (view * 2).requires_grad and not view[0:].requires_grad
    beside = base.detach()
    assert not beside[:1].requires_grad
    beside[1:] = x[1:] * 2
    window = beside[1:]
    base[0] = x[0]
    base.detach_()
    assert grad(window.sum(), x)[0].tolist() == [0.0, 2.0, 2.0]


def test_views_from_before_their_base_was_written_over_again():
    x = leaf(1.0, 2.0, 3.0)
    base = vg.zeros(3)
    view, late = base[:1], base[1:]
    base[0] = x[0] * 2
    base.detach_()
    base[1] = x[1] * 3
    assert grad((view * 2).sum(), x, retain_graph=True)[0].tolist() == [4.0, 0.0, 0.0]
    assert grad((late * 2).sum(), x, retain_graph=True)[0].tolist() == [0.0, 6.0, 0.0]
    assert grad(base.sum(), x, retain_graph=True)[0].tolist() == [0.0, 3.0, 0.0]
    base.detach_()
    base.requires_grad_()  # a leaf: its views have that history, and no other
    assert grad((view * 2).sum(), base)[0].tolist() == [2.0, 0.0, 0.0]


WRITES = {
    "recorded": lambda base, x, old: base.__setitem__(slice(0, 2), x[1:] * 3),
    "constants": lambda base, x, old: base.__setitem__(slice(0, 2), 7.0),
    "numbers": lambda base, x, old: [base.__setitem__(i, 7.0) for i in range(2)],
    "by arrays": lambda base, x, old: base.__setitem__([0, 1], vg.Tensor([7.0, 8.0])),
    "added by arrays": lambda base, x, old: np.add.at(base, [0, 1], x[1:]),
    "copied": lambda base, x, old: base[:2].copy_(x[1:] * 3),
    "in place": lambda base, x, old: base[:2].mul_(x[1:]),
    "in place by a constant": lambda base, x, old: base[:2].mul_(2.0),
    "by out=": lambda base, x, old: np.multiply(x[1:], 3.0, out=base[:2]),
    "through an old view": lambda base, x, old: old.__setitem__(slice(0, 2), x[1:] * 3),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
@pytest.mark.parametrize("replay", [False, True])
@pytest.mark.parametrize("dtype", [float, complex])
def test_elements_of_old_views_have_the_history_of_later_writes(write, replay, dtype):
    """Views are overwritten completely, in part or not at all, at first and second order."""

    def end(kept):
        x = vg.Tensor(np.array([1.0, 2.0, 3.0], dtype), requires_grad=True)
        base = vg.zeros(3, dtype=dtype)
        views = [base[:1], base[:2], base[1:], base[2:], base[::-1], base[:2].reshape(2, 1)]
        if dtype is complex:
            views += [base.real, base[1:].imag]
        base[...] = x * x * x
        if kept:
            base.detach_()
            write(base, x, views[4][::-1])
        else:  # the same without aliasing: writes go to a copy without the history
            before, base = base, base.detach().clone()
            write(base, x, base)
            base = vg.concatenate([base[:2], before[2:]])
            views = [base[:1], base[:2], base[1:], base[2:], base[::-1], base[:2].reshape(2, 1)]
            if dtype is complex:
                views += [base.real, base[1:].imag]
        total = sum(((k + 1) * view * view.conj()).real.sum() for k, view in enumerate(views))
        (first,) = grad(total, x, create_graph=True)
        return first.detach().numpy(), grad((first * first.conj()).real.sum(), x)[0].numpy()

    with vg.view_replay(replay):
        for found, expected in zip(end(True), end(False)):
            np.testing.assert_allclose(found, expected)


DEPENDING = {
    "nothing": lambda base, views, y: None,
    "multiplied": lambda base, views, y: views[0].__imul__(y),
    "an element": lambda base, views, y: views[1].__setitem__(0, views[1][0] * y[1]),
    "an element in place": lambda base, views, y: views[1][:1].mul_(y[1]),
    "sine": lambda base, views, y: views[2].sin_(),
    "added by arrays": lambda base, views, y: views[0].index_add_(0, np.array([0, 1]), y),
    "added": lambda base, views, y: np.add.at(views[0], [1, 1], y),
    "out=": lambda base, views, y: np.multiply(views[1], y, out=views[1]),
    "by another": lambda base, views, y: views[0].__iadd__(views[0] * views[1]),
    "by constants": lambda base, views, y: views[0].mul_(3.0),
    "behind a write": lambda base, views, y: (base.__setitem__(2, y[0]), views[0].mul_(y)),
    "behind constants": lambda base, views, y: (base.__setitem__(0, 4.0), views[1].mul_(y)),
}


@pytest.mark.parametrize("transform", [lambda f: f, vg.func.functionalize], ids=["eager", "functionalize"])
@pytest.mark.parametrize("write", DEPENDING.values(), ids=DEPENDING)
def test_writes_that_depend_on_the_own_history_of_an_old_view(write, transform):
    """Seen through a view, the result is as if the base had not been detached."""
    found = []
    for kept in (True, False):
        x, y = leaf(1.0, 2.0, 3.0), leaf(0.5, 0.7)

        def total(x, y, kept=kept):
            base = x * 2
            views = [base[1:], base[:2], base[::2]]
            if kept:
                base.detach_()
            write(base, views, y)
            return sum(((k + 1) * view * view * view).sum() for k, view in enumerate(views))

        firsts = grad(transform(total)(x, y), (x, y), create_graph=True, allow_unused=True)
        firsts = [vg.zeros_like(x) if first is None else first for first in firsts]
        seconds = grad(sum((first * first).sum() for first in firsts), (x, y), allow_unused=True)
        seconds = [np.zeros(2) if second is None else second.numpy() for second in seconds]
        found.append([first.detach().numpy() for first in firsts] + seconds)
    for ours, expected in zip(*found, strict=True):
        np.testing.assert_allclose(ours, expected)


def test_the_history_of_a_base_after_an_in_place_product_on_an_old_view():
    x, y = leaf(1.0, 2.0, 3.0), leaf(0.5, 0.7)
    base = x * 2
    view, first = base[1:], base[:1]
    base.detach_()
    view *= y
    assert grad(base.sum(), (x, y), retain_graph=True)[0].tolist() == [0.0, 1.0, 1.4]
    base *= y[0]  # by elements of which the first has no history here
    assert grad(first.sum(), y, retain_graph=True)[0].tolist() == [2.0, 0.0]
    np.testing.assert_allclose(grad((view * view).sum(), x)[0], [0.0, 1.0, 2.94])
    with pytest.raises(ValueError, match="broadcast"):
        base[1:] = [1.0, 2.0, 3.0]


def test_empty_view_keeps_its_history_and_accepts_writes():
    x = leaf(1.0, 2.0, 3.0)
    base = x * 2
    empty, last = base[3:], base[2:]
    base.detach_()
    base[3:] *= x[3:]
    assert empty.requires_grad and last.requires_grad
    np.conjugate(empty, out=empty)
    assert grad(last.sum(), x)[0].tolist() == [0.0, 0.0, 2.0]


def test_retained_gradients_of_old_views_follow_writes_to_their_base():
    x = leaf(1.0, 2.0, 3.0)
    base = x * 2
    view, other = base[1:], base[:2]
    for each in (view, other):
        each.retain_grad()
    base.detach_()
    base[0] = x[2]  # the history of each followed view is read
    view[:1] = view[1:]
    view *= view
    (view.sum() + (other * other).sum()).backward()
    assert x.grad.tolist() == [0.0, 0.0, 6.0 + 2 * 36 * 24.0 + 24.0 + 24.0]
    assert view.grad.tolist() == [1.0, 1.0] and other.grad.tolist() == [6.0, 72.0]


@pytest.mark.parametrize("order", ["F", "turned"])
def test_constants_written_to_a_base_in_another_layout_after_a_detach(order):
    values = np.arange(24.0).reshape(2, 3, 4)
    turned = np.asfortranarray(values) if order == "F" else values.transpose(2, 0, 1).copy().transpose(1, 2, 0)
    x = vg.from_numpy(turned).requires_grad_()
    base = x * x / 2
    assert not base.is_contiguous()
    view, part = base[1], base[:, 1:, 2]
    base.detach_()
    base[1, [0, 2], 1:] = 7.0
    expected = x.detach().numpy().copy()
    expected[1, [0, 2], 1:] = 0
    kept = expected.copy()
    expected[0] = 0
    assert grad(view.sum(), x, retain_graph=True)[0].tolist() == expected.tolist()
    chosen = np.zeros_like(kept)
    chosen[:, 1:, 2] = kept[:, 1:, 2]
    assert grad(part.sum(), x)[0].tolist() == chosen.tolist()


def test_views_that_are_rewritten_in_each_segment():
    x = leaf(1.0, 2.0, 3.0)
    buffer = vg.zeros(3)
    rows = [buffer[i : i + 1] for i in range(3)]
    for factor in range(2, 5):
        buffer[...] = x * factor
        buffer.detach_()
        buffer[...] = x * x * factor
        assert grad(sum((row * row).sum() for row in rows), x)[0].tolist() == (4.0 * factor**2 * x**3).tolist()
        buffer.detach_()


def test_a_detached_tensor_without_views_keeps_nothing_of_its_history():
    x = leaf(1.0, 2.0, 3.0)
    state = x * 1.0
    state[:1] *= x[1:2]
    ended = weakref.ref(state.grad_fn)
    state.detach_()
    assert ended() is None


def test_views_of_a_tensor_that_became_a_leaf_and_was_frozen():
    base = vg.ones(2)
    view, inner = base[:1], base[:1].reshape(1, 1)
    base.requires_grad_()
    base.requires_grad_(False)
    assert not base[:1].requires_grad
    assert view.requires_grad and inner.requires_grad  # even if they are first read now
    (view * 3 + inner * 2).sum().backward()
    assert base.grad.tolist() == [5.0, 0.0]
    with vg.no_grad():
        base[0] = 7.0
    assert base[:1].tolist() == [7.0]


def test_aliases_of_a_base_detached_in_place_keep_their_history():
    x = leaf(1.0, 2.0, 3.0)
    base = x.clone()
    other = base.detach()
    other.copy_(x * 2)
    base.detach_()
    view = other[1:]
    view.neg_()
    assert grad((view * view).sum(), x)[0].tolist() == [0.0, 16.0, 24.0]


def test_leaf_toggles_requires_grad():
    x = leaf(1.0, 2.0)
    view = x[:1]
    x.requires_grad_(False)
    assert not x.requires_grad and view.requires_grad
    x.requires_grad_()
    assert grad((view * 3).sum(), x)[0].tolist() == [3.0, 0.0]
    x.requires_grad_(False)
    x[1] = 5.0
    assert not (x * 1).requires_grad


def test_detaching_dual_tensors_in_place():
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(vg.Tensor([1.0, 2.0]), vg.Tensor([1.0, 0.0])) * 2.0
        view = dual[:1]
        with pytest.raises(AutogradError, match="use detach"):
            dual.detach_()
        assert forward_ad.unpack_dual(view).tangent.tolist() == [2.0]


def test_a_tensor_of_a_tensor_with_history_is_refused():
    x = leaf_of([1.0, 2.0])
    with pytest.raises(AutogradError, match=r"clone\(\)"):
        vg.Tensor(x * 2.0)
    assert vg.Tensor(vg.zeros(2)).tolist() == [0, 0]


class Loaded:
    """Like the data sets of libraries that read files: NumPy converts it by its `__array__`."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype=dtype)


class Prior(Loaded):
    """Like the arrays of libraries that implement the operators themselves."""

    __array_priority__ = 10.0

    def __rmul__(self, other):
        return "its product"


@pytest.mark.parametrize("requires_grad", [False, True])
def test_objects_with_the_array_protocol_are_operands(requires_grad):
    values, t = np.array([1.0, 2.0]), vg.Tensor([1.0, 2.0], requires_grad=requires_grad)
    for program in (
        lambda x, o: x * o, lambda x, o: x + o, lambda x, o: x == o, lambda x, o: x != o, lambda x, o: x < o,
        lambda x, o: np.maximum(x, o), lambda x, o: np.where(x > 1.0, x, o), lambda x, o: np.dot(x, o),
        lambda x, o: x @ o,
    ):  # fmt: skip
        found, expected = program(t, Loaded([2.0, 2.0])), program(values, Loaded([2.0, 2.0]))
        assert found.tolist() == expected.tolist()
    written = t * 1.0
    written[:] = Loaded([3.0, 4.0])
    assert written.tolist() == [3.0, 4.0]
    assert t * Prior([1.0, 2.0]) == "its product"


def test_equality_with_unusual_numbers_is_that_of_numpy():
    values, t = np.array([1.0, 2.0]), vg.Tensor([1.0, 2.0])
    for other in (range(1, 3), Fraction(1), True, np.True_):
        assert (t == other).tolist() == (values == other).tolist() == (other == t).tolist()
        assert (t != other).tolist() == (values != other).tolist()
