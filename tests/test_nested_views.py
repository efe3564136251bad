"""Nested views, as by `rest = rest[1:]`, read and written at every depth."""

import numpy as np
import pytest

import viewgrad as vg
from viewgrad.autograd import fast_engine, grad
from viewgrad.autograd.graph import plain_engine
from viewgrad.views.view_nodes import IndexViewBackward

DEPTH = 40
PEELS = {
    "rows": lambda rest: rest[1:],
    "both ends": lambda rest: rest[1:, :] if len(rest) % 2 else rest[:-1],
    "turned": lambda rest: rest[1:, ::-1],
    "columns": lambda rest: rest.T[:, 1:].T,
}


def read(rest, i):
    return (rest[0] * rest[-1, 0]).sum()


def write(rest, i):
    rest[0] = rest[-1] * 0.5
    return rest[0, 1]


def both(rest, i):
    rest[0, i % 3] *= 0.5
    return (rest[0] * rest[1]).sum() + (rest.sum() * 0.1 if i % 7 == 0 else 0)


@pytest.mark.parametrize("peel", PEELS)
@pytest.mark.parametrize("act", [read, write, both])
@pytest.mark.parametrize("watched", ["nothing", "hook", "retained", "captured"])
@pytest.mark.parametrize("layout", ["C", "F"])
@pytest.mark.filterwarnings("ignore::viewgrad.errors.NonLeafGradWarning")  # views are written to after retain_grad()
def test_gradients_of_peeled_loops_match_the_plain_engine(peel, act, watched, layout):
    def gradients():
        x = vg.Tensor(np.cos(np.arange(3.0 * 2 * DEPTH)).reshape(-1, 3), requires_grad=True)
        base = x * 1.0 if layout == "C" else (x.T * 1.0).T
        rest, total, seen = base, 0.0, []
        for i in range(DEPTH):
            total = total + act(rest, i)
            rest = PEELS[peel](rest)
            if i in (5, 25) and watched != "nothing":
                seen.append(rest)
                if watched == "hook":
                    rest.register_hook(lambda g: g * 2.0)
                elif watched == "retained":
                    rest.retain_grad()
        total = total + (base * base).sum()
        if watched == "captured":
            return [g.tolist() for g in grad(total, [x, *seen], allow_unused=True, materialize_grads=True)]
        total.backward()
        kept = [view.grad.tolist() for view in seen if watched == "retained" and view.grad is not None]
        return [x.grad.tolist(), *kept]

    found = gradients()
    with plain_engine():
        expected = gradients()
    assert len(found) == len(expected)
    for ours, plain in zip(found, expected):
        np.testing.assert_allclose(ours, plain, rtol=1e-12, atol=1e-12)


def test_reading_nested_views_takes_each_window_once(monkeypatch):
    taken = []
    window = IndexViewBackward.window
    monkeypatch.setattr(IndexViewBackward, "window", lambda node, grad: taken.append(node) or window(node, grad))
    counts = []
    for depth in (100, 200):
        taken.clear()
        x = vg.Tensor(np.arange(depth + 2.0), requires_grad=True)
        rest, total = x * 1.0, 0.0
        for _ in range(depth):
            total = total + rest[0] * rest[1]
            rest = rest[1:]
        total.backward()
        counts.append(len(taken))
        places = np.arange(depth + 2.0)
        expected = np.r_[places[1:], 0.0] * (places <= depth - 1) + np.r_[0.0, places[:-1]] * (
            (places >= 1) & (places <= depth)
        )
        np.testing.assert_allclose(x.grad.numpy(), expected)
    assert counts[1] <= 2.2 * counts[0]


def test_chains_differentiated_once_store_no_windows(monkeypatch):
    noted = []
    windows = fast_engine.AccumulatorWindow
    window_of = windows.of
    monkeypatch.setattr(windows, "of", staticmethod(lambda *args: noted.append(1) or window_of(*args)))
    x = vg.Tensor(np.arange(60.0), requires_grad=True)
    rest = x * 1.0
    for _ in range(50):
        rest = rest[:]
    rest.sum().backward()
    assert x.grad.tolist() == [1.0] * 60 and not noted
    x.grad = None
    rest, total = x * 1.0, 0.0
    for k in range(50):
        rest = rest[1:] if k % 3 else rest[:]
        total = total + rest.sum() * (k + 1.0)
    total.backward()
    assert 30 <= len(noted) <= 60
    rests, expected = np.arange(60), np.zeros(60)
    for k in range(50):
        rests = rests[1:] if k % 3 else rests[:]
        expected[rests] += k + 1.0
    assert x.grad.tolist() == expected.tolist()


def test_a_view_of_all_of_a_view_has_its_index():
    x = vg.Tensor(np.arange(12.0).reshape(3, 4), requires_grad=True) * 1.0
    for view in (x[1:], x[1], x[:, 2], x[..., 1:3], x[None, 1:]):
        again = view[:][:]
        assert again._view.base is x and again.shape == view.shape
        if again._view.view_fn is None:
            assert again._view.index == view._view.index
        again *= 2.0
        assert again.detach().tolist() == view.detach().tolist()
