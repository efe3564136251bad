"""What the methods and attributes of NumPy's arrays do on tensors."""

import numpy
import pytest
from leaves import leaf

import viewgrad as vg
import viewgrad.numpy as np
from viewgrad.autograd import grad
from viewgrad.errors import AutogradError

# -- shapes that are changed in place ----------------------------------------------------------------------------------


def test_an_assigned_shape_keeps_the_values_and_the_history():
    x = leaf(1.0, 2.0, 3.0, 4.0)
    y = x * 2
    before = y * y
    y.shape = (2, 2)
    y[0] *= 3
    assert y.shape == (2, 2)
    weights = vg.Tensor([[1.0, 2.0], [3.0, 4.0]])
    (found,) = grad((y * weights).sum() + before.sum(), x)
    assert numpy.array_equal(found.numpy(), [6 + 8, 12 + 16, 6 + 24, 8 + 32])


def test_a_shape_can_be_assigned_after_writes():
    table = np.zeros(6)
    table[0] = 1.0
    table.shape = 2, -1
    x = leaf(5.0)
    table[1, 2:] = x
    assert table.shape == (2, 3)
    assert grad(table.sum(), x)[0].item() == 1.0


def test_resize_fills_up_with_zeros():
    x = leaf(1.0, 2.0, 3.0)
    y = x * 2
    y.resize(5)
    assert numpy.array_equal((y * 1.0).detach().numpy(), [2, 4, 6, 0, 0])
    y.resize((2, 2))
    assert numpy.array_equal(grad(y.sum(), x)[0].numpy(), [2, 2, 2])


def of_leaf():
    return leaf(1.0, 2.0)


def of_view():
    return (leaf(1.0, 2.0, 3.0) * 1.0)[:2]


def with_view():
    x = leaf(1.0, 2.0) * 1.0
    VIEWS.append(x[:1])
    return x


VIEWS = []


@pytest.mark.parametrize("make", [of_leaf, of_view, with_view])
def test_a_shape_is_not_changed_where_others_would_see_it(make):
    x = make()
    with pytest.raises(AutogradError, match="reshape"):
        x.shape = (2, 1)
    assert x.shape == (2,)
    with pytest.raises(AutogradError, match="reshape"):
        x.resize(4)


def test_an_assigned_shape_must_fit_the_memory_as_it_is():
    x = (leaf(*[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]) * 1.0).T.clone()
    y = np.array(x[:, ::2])
    with pytest.raises((AttributeError, ValueError)):
        y.shape = (3,)


# -- arrays of objects -------------------------------------------------------------------------------------------------


def test_elements_written_into_an_array_of_objects_keep_their_history():
    x = leaf(1.0, 2.0)
    objects = numpy.array([[None, None, None]]).T
    objects[0:2, 0] = x * 3
    objects[2] = x[0]
    assert [grad(each[0], x, retain_graph=True)[0].tolist() for each in objects] == [[3, 0], [0, 3], [1, 0]]
