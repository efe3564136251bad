"""Programs that once went wrong: what a graph shares with the graph of its own backward pass."""

from __future__ import annotations

import numpy as np

import viewgrad as vg


def test_a_wrapped_node_that_a_recorded_gradient_leads_to_as_well_runs_twice():
    t = vg.Tensor([[0.1, 0.2], [0.3, 0.4]], requires_grad=True)
    base = t.clone()
    base[0].exp_()
    (gradient,) = vg.autograd.grad(base.sum(), t, create_graph=True)
    (base.sum() + gradient.sum()).backward()
    expected = np.ones((2, 2))
    expected[0] = 2 * np.exp([0.1, 0.2])
    np.testing.assert_allclose(t.grad.numpy(), expected)


def test_a_recorded_gradient_keeps_its_history_when_it_is_asked_for_under_no_grad():
    x = vg.Tensor([1.0, 2.0], requires_grad=True)
    y = x[0] ** 2 * x[1]
    with vg.no_grad():
        (gradient,) = vg.autograd.grad(y, x, create_graph=True)
    assert vg.autograd.grad(gradient.sum(), x)[0].tolist() == [6.0, 2.0]
