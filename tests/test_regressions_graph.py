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
