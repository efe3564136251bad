"""Gradient edges as outputs and inputs of `grad`, and gradients in batches."""

import numpy as np
import pytest

import viewgrad as vg
from viewgrad.autograd import backward, grad
from viewgrad.autograd.graph import GradientEdge, get_gradient_edge, plain_engine
from viewgrad.errors import DifferentiabilityError, FreedGraphError, GradientMismatchError, UnusedInputError

VALUES = np.array([1.0, 2.0, 3.0])


def leaf(values=VALUES):
    return vg.Tensor(values, requires_grad=True)


KINDS = {
    "leaf": lambda x: x,
    "intermediate": lambda x: x * x,
    "view": lambda x: (x * x)[1:],
    "window of a leaf": lambda x: x[1:],
    "scalar": lambda x: x[0] * x[1],
    "second output": lambda x: np.linalg.qr(np.outer(x, x) + np.diag(VALUES))[1],
    "written": lambda x: (x * 1.0).mul_(x),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("plain", [False, True])
def test_an_edge_stands_for_its_tensor(kind, plain):
    x = leaf()
    value = KINDS[kind](x)
    edge = get_gradient_edge(value)
    total = (value * value * 3.0).sum() + x[0]
    seeds = np.full(value.shape, 2.0)

    def gradients(of):
        found = grad(total, [of, x], retain_graph=True)
        return [each.tolist() for each in (*found, *grad(of, x, seeds, retain_graph=True))]

    if plain:
        with plain_engine():
            assert gradients(edge) == gradients(value)
    else:
        assert gradients(edge) == gradients(value)
    assert (edge.shape, edge.dtype, edge.output_nr) == (value.shape, value.dtype, value.output_nr)
    del value
    assert grad(total, edge)[0].shape == edge.shape


def test_an_edge_stands_for_the_value_before_a_write():
    x = leaf()
    y = x * x
    before = get_gradient_edge(y)
    y[1:] *= 10.0
    found = grad(y.sum(), [before, y], create_graph=True)
    assert [each.tolist() for each in found] == [[1.0, 10.0, 10.0], [1.0, 1.0, 1.0]]
    assert grad(before, x, VALUES)[0].tolist() == [2.0, 8.0, 18.0]


def test_edges_of_scalars_are_not_absorbed():
    s = leaf(2.0)
    edges = []
    y = s * 1.0
    for _ in range(60):
        y = y * 1.01 + 0.1
        edges.append(get_gradient_edge(y))
    found = grad(y, edges, retain_graph=True)
    np.testing.assert_allclose([each.item() for each in found], 1.01 ** np.arange(59, -1, -1.0))
    np.testing.assert_allclose(grad(edges[9], s)[0].item(), 1.01**10)


def test_a_backward_pass_from_an_edge():
    x = leaf()
    backward(get_gradient_edge((x * x).sum()))
    assert x.grad.tolist() == [2.0, 4.0, 6.0]


def test_edges_without_a_shape():
    x = leaf()
    y, other = x * x, get_gradient_edge(x * 2.0)
    edge = GradientEdge(y.grad_fn)
    assert grad(y.sum(), edge, retain_graph=True)[0].tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(DifferentiabilityError, match="are unknown"):
        grad(edge, x, np.ones(3))
    with pytest.raises(DifferentiabilityError, match="are unknown"):
        grad(x.sum(), edge, materialize_grads=True)
    with pytest.raises(UnusedInputError, match="an output of MulBackward"):
        grad(y.sum(), other, retain_graph=True)
    assert grad(y.sum(), other, materialize_grads=True)[0].tolist() == [0.0] * 3
    with pytest.raises(ValueError, match="none of number 1"):
        GradientEdge(y.grad_fn, 1)
    with pytest.raises(GradientMismatchError, match="shape"):
        grad(other, x, np.ones(2))
    with pytest.raises(DifferentiabilityError, match="one element"):
        grad(other, x)
    with pytest.raises(DifferentiabilityError, match="no place in the graph"):
        get_gradient_edge(vg.ones(2))
    with pytest.raises(TypeError, match="use grad"):
        backward(x.sum(), inputs=[other])


# -- batches -----------------------------------------------------------------------------------------------------------


def test_batched_gradients_are_those_of_each_row():
    x = leaf()
    y = x * x
    total = (y * x).sum()
    rows, numbers = np.arange(6.0).reshape(2, 3), np.array([1.0, 10.0])
    found = grad([y, total], [x, y], [rows, numbers], is_grads_batched=True, create_graph=True)
    for row, number, *each in zip(rows, numbers, *found, strict=True):
        alone = grad([y, total], [x, y], [row, number], retain_graph=True)
        assert [g.tolist() for g in each] == [g.tolist() for g in alone]
    assert grad(found[0].sum(), x)[0].shape == (3,)


def test_batched_gradients_release_the_graph():
    x, other = leaf(), leaf()
    y = x * x
    assert grad(y, x, np.ones((0, 3)), is_grads_batched=True)[0].shape == (0, 3)
    found = grad(y, [x, other], np.eye(3), allow_unused=True, is_grads_batched=True)
    assert found[0].tolist() == np.diag([2.0, 4.0, 6.0]).tolist() and found[1] is None
    with pytest.raises(FreedGraphError):
        grad(y, x, np.eye(3), is_grads_batched=True)


@pytest.mark.parametrize("seeds", [np.ones(3), np.ones((2, 2)), None, [np.ones((2, 3)), np.ones(2)], 1.0])
def test_batches_of_another_shape(seeds):
    x = leaf()
    with pytest.raises(GradientMismatchError, match="is_grads_batched"):
        grad(x * x, x, seeds, is_grads_batched=True)
    with pytest.raises(GradientMismatchError, match="is_grads_batched"):
        grad([x * x, x.sum()], x, [np.ones((2, 3)), np.ones(3)], is_grads_batched=True)
