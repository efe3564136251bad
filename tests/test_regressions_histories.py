"""Views and their bases after `detach_`, `requires_grad_(False)` and `no_grad`; windows of what overlaps itself."""

import itertools

import numpy as np
import pytest

import viewgrad as vg
from viewgrad.autograd import forward_ad, grad
from viewgrad.errors import AutogradError, OverlappingWriteError, ViewInPlaceError
from viewgrad.views.geometry import overlaps_itself


def leaf(*data):
    return vg.Tensor(list(data), requires_grad=True)


# -- bases that are detached in place ----------------------------------------------------------------------------------


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
            with pytest.raises(ViewInPlaceError, match="can't be told"):
                stale * 2
        fresh = base[:1]
        assert grad((fresh + x[:1]).sum(), x)[0].tolist() == [1.0 + 5 * (not early), 0.0, 0.0]


def test_a_leaf_that_is_frozen_and_thawed():
    x = leaf(1.0, 2.0)
    view = x[:1]
    x.requires_grad_(False)
    assert not x.requires_grad and view.requires_grad
    x.requires_grad_()
    assert grad((view * 3).sum(), x)[0].tolist() == [3.0, 0.0]
    x.requires_grad_(False)
    x[1] = 5.0
    assert not (x * 1).requires_grad


def test_detaching_in_place_what_has_a_tangent():
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(vg.Tensor([1.0, 2.0]), vg.Tensor([1.0, 0.0])) * 2.0
        view = dual[:1]
        with pytest.raises(AutogradError, match="use detach"):
            dual.detach_()
        assert forward_ad.unpack_dual(view).tangent.tolist() == [2.0]


# -- views taken where nothing is recorded -----------------------------------------------------------------------------


@pytest.mark.parametrize("block", [vg.no_grad, vg.inference_mode])
@pytest.mark.parametrize("take", [lambda a: a[:1], lambda a: a.reshape(1, 2)[:, :1].reshape(1), lambda a: a[:2][:1]])
def test_views_taken_where_nothing_is_recorded_stay_without_history(block, take):
    x = leaf(1.0, 2.0)
    base = x.clone()
    with block():
        view = take(base)
    writes = (lambda: base.__setitem__(slice(1, 2), 0.0), lambda: base.mul_(2.0), lambda: base.__setitem__(0, x[1]))
    for write in writes:
        write()
        assert not view.requires_grad and not view[:1].requires_grad
        assert view.tolist() == base[:1].tolist()
        assert grad((view * x[:1]).sum(), x)[0].tolist() == [base[0].item(), 0.0]
        with pytest.raises(ViewInPlaceError):
            view.mul_(2.0)


# -- windows of what overlaps itself -----------------------------------------------------------------------------------


def test_the_overlap_of_a_window_with_itself_is_decided_exactly():
    rng = np.random.default_rng(0)
    memory = np.zeros(64)
    found = set()
    for _ in range(600):
        ndim = rng.integers(0, 4)
        shape = tuple(int(n) for n in rng.integers(0, 4, ndim))
        strides = tuple(int(n) * 8 for n in rng.integers(-5, 6, ndim))
        window = np.ndarray(shape, float, memory, 8 * 30, strides)
        places = [sum(i * s for i, s in zip(index, strides)) for index in itertools.product(*map(range, shape))]
        assert overlaps_itself(window) == (len(set(places)) < len(places)), (shape, strides)
        found.add(overlaps_itself(window))
    assert found == {False, True}


WINDOWS = {
    "an element of an expanded tensor": lambda b: b[:, None].expand(4, 5)[2, 2:3],
    "a column of an expanded tensor": lambda b: b[:, None].expand(4, 5)[:, 1],
    "the diagonal of an expanded tensor": lambda b: b[:, None].expand(4, 4).diagonal(),
    "nothing of an expanded tensor": lambda b: b[:, None].expand(4, 5)[:, 0:0],
    "a window of an unfolded tensor": lambda b: b.unfold(0, 3, 1)[1],
    "every third window": lambda b: b.unfold(0, 2, 1)[::2],
    "odd strides": lambda b: b.as_strided((2, 2), (2, 1), 0),
    "a part of what was taken by strides": lambda b: b.as_strided((3, 2), (1, 1), 0)[::2],
    "broadcast by NumPy": lambda b: np.broadcast_to(b, (3, 4))[1],
}
WRITES = {
    "mul_": lambda w, x: w.mul_(3.0),
    "by a tensor": lambda w, x: w.mul_(x[:1]),
    "copy_": lambda w, x: w.copy_(x[1:2]),
    "index": lambda w, x: w.__setitem__(..., x[1:2] * 2),
    "constant": lambda w, x: w.fill_(5.0),
    "arrays": lambda w, x: w.__setitem__(np.ones(w.shape, bool), 7.0),
}


@pytest.mark.parametrize("replay", [False, True])
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("write", WRITES)
def test_a_window_whose_elements_lie_apart_can_be_written_to(window, write, replay):
    take, act = WINDOWS[window], WRITES[write]

    def program(x):
        base = x * 1.0
        other = base[1:3]
        seen = base[:, None].expand(4, 3)
        act(take(base), x)
        return base, other * 2, seen * 1.0

    with vg.view_replay(replay):
        x = leaf(1.0, -2.0, 3.0, 0.5)
        assert vg.autograd.gradcheck(program, x, check_forward_ad=True)
        assert vg.autograd.gradgradcheck(program, x)


def test_a_window_that_overlaps_itself_cannot_be_written_to():
    base = vg.zeros(4)
    for window in (
        base.expand(3, 4), base[:, None].expand(4, 5)[2], base.unfold(0, 3, 1), base.as_strided((3, 2), (1, 1), 0),
    ):
        with pytest.raises(OverlappingWriteError, match="whose elements lie apart"):
            window.mul_(2.0)
        with pytest.raises(OverlappingWriteError):
            window[...] = 1.0
    assert base.tolist() == [0.0] * 4
