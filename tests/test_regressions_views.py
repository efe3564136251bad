"""Programs with views that once gave a wrong gradient, each with what it must give."""

import pytest

import viewgrad as vg
from viewgrad.errors import ViewInPlaceError


@pytest.mark.parametrize("write", ["mul", "assign", "copy", "through a view of it"])
def test_a_write_through_a_view_taken_under_no_grad_is_not_lost(write):
    # The view had no history of its own, so the write was not recorded, and the base kept its old history.
    t = vg.Tensor([1.0, 2.0], requires_grad=True)
    b = t.clone()
    with vg.no_grad():
        view = b[:1]
    with pytest.raises(ViewInPlaceError, match="made under no_grad"):
        if write == "mul":
            view *= 2.0
        elif write == "assign":
            view[0] = 2.0
        elif write == "copy":
            view.copy_(vg.ones(1))
        else:
            view[0].mul_(2.0)
    assert b.tolist() == [1.0, 2.0]
    with vg.no_grad():
        view *= 2.0
    assert b.tolist() == [2.0, 2.0]


def test_thousands_of_views_of_views_are_differentiated_without_recursion():
    x = vg.Tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x
    for _ in range(3000):
        y = y[:]
    (gradient,) = vg.autograd.grad((y * y).sum(), x, create_graph=True)
    assert gradient.tolist() == [2.0, 4.0, 6.0]
    assert vg.autograd.grad(gradient.sum(), x)[0].tolist() == [2.0, 2.0, 2.0]
