"""Windows of memory that overlap themselves, and writes to them."""

import itertools

import numpy as np
import pytest
from leaves import leaf

import viewgrad as vg
from viewgrad.errors import OverlappingWriteError
from viewgrad.views.geometry import overlaps_itself


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
def test_windows_without_overlap_can_be_written_to(window, write, replay):
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
        base.expand(3, 4),
        base[:, None].expand(4, 5)[2],
        base.unfold(0, 3, 1),
        base.as_strided((3, 2), (1, 1), 0),
    ):
        with pytest.raises(OverlappingWriteError, match="whose elements lie apart"):
            window.mul_(2.0)
        with pytest.raises(OverlappingWriteError):
            window[...] = 1.0
    assert base.tolist() == [0.0] * 4


def test_parts_of_overlapping_tensors_can_be_written_without_recording():
    x, w = leaf(1.0, -2.0), leaf(3.0, 0.5)
    seen = (x * 1.0).expand(3, 2).detach()
    product = seen * w
    rows = seen.unbind(0)
    rows[2].mul_(2.0)
    rows[0][:1] = 7.0
    seen[1, 1] = -4.0
    assert seen.tolist() == [[7.0, -4.0]] * 3
    assert vg.autograd.grad(product.sum(), w)[0].tolist() == [3.0, -6.0]
    with pytest.raises(OverlappingWriteError, match="from a detached tensor"):
        rows[1].mul_(w)
    with pytest.raises(OverlappingWriteError, match="from a detached tensor"):
        seen[:, 0] = 1.0


def test_the_gradient_of_large_windows_over_one_of_two_dimensions():
    """NumPy 2.4 reads out of bounds if it unravels the places of such windows."""
    length, size = 385, 132
    x = vg.zeros(length, 42, requires_grad=True)
    windows = (x * 1.0).unfold(0, size)
    windows.backward(vg.ones(windows.shape))
    places = np.arange(length)
    counts = np.minimum.reduce([places + 1, np.full(length, size), length - places, np.full(length, length - size + 1)])
    np.testing.assert_array_equal(x.grad, np.broadcast_to(counts[:, None], x.shape))
