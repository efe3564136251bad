"""Minimal programs for former defects in the interaction of modules."""

import numpy as np
import pytest
from leaves import leaf_of as leaf

import viewgrad as vg
from viewgrad.autograd import grad


def detached_base():
    x = leaf([1.0, 2.0, 3.0])
    base = x.clone()
    view = base[1:2]
    base.detach_()
    return grad((view * view).sum() + x.sum(), x)[0]


def view_without_history(mode):
    x = leaf([1.0, 1.0])
    base = x.clone()
    with mode():
        view = base[:1]
    base[1:] = 0.0
    return grad((view * x[:1]).sum(), x)[0]


def imaginary_part_of_itself():
    x = leaf([1 + 2j, 3 - 1j, 0.5 + 0.7j])
    y = x * 1.0
    y[...] = y[1:].imag[:1]
    np.testing.assert_array_equal(y.detach(), [-1, -1, -1])
    return grad(y.real.sum(), x)[0]


def written_through(copy):
    tensor = vg.Tensor([1.0, 2.0, 3.0, 4.0])
    copy(tensor)[0] = 7.0
    return tensor


def index_without_dimensions():
    tensor = vg.Tensor([1.0, 2.0, 3.0])
    element = tensor[np.array(1)]
    tensor[np.array(1)] += 5.0
    return np.stack([element, tensor[1]])


def with_dimensions_in_front():
    def program(source):
        target = vg.zeros((2, 2))
        np.copyto(target[0], source[None])
        target[1, [0, 1]] = source[None]
        np.add(source[None], 0.0, out=target.reshape(1, 4)[:, 2:], where=np.array([True, False]))
        return target.sum()

    return vg.func.jacfwd(program)(vg.Tensor([1.0, 2.0]))


def power_with_tangent(base):
    return vg.func.jacfwd(lambda y: base**y)(vg.Tensor(0.5))


PROGRAMS = {
    "a base that is detached": (detached_base, [1, 5, 1]),
    "a view without history": (lambda: view_without_history(vg.no_grad), [1, 0]),
    "a view made in inference mode": (lambda: view_without_history(vg.inference_mode), [1, 0]),
    "imaginary parts of what is written": (imaginary_part_of_itself, [0, 3j, 0]),
    "ravel of what has gaps": (lambda: written_through(lambda t: t[::2].ravel()), [1, 2, 3, 4]),
    "ravel of what has none": (lambda: written_through(lambda t: t.ravel()), [7, 2, 3, 4]),
    "flatten": (lambda: written_through(lambda t: t.flatten()), [1, 2, 3, 4]),
    "an index without dimensions": (index_without_dimensions, [2, 7]),
    "compress": (lambda: vg.Tensor([1.0, 2.0, 3.0]).compress([True, False, True]), [1, 3]),
    "more dimensions in front, forwards": (with_dimensions_in_front, [2, 2]),
    "a power of 0, forwards": (lambda: power_with_tangent(0.0), 0),
    "powers of 0 and 2, forwards": (lambda: power_with_tangent(vg.Tensor([0.0, 2.0])), [0, np.log(2) * 2**0.5]),
    "a column order": (lambda: np.reshape(vg.Tensor([[0.0, 1.0], [2.0, 3.0]]), 4, order="F"), [0, 2, 1, 3]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_that_once_went_wrong(name):
    program, expected = PROGRAMS[name]
    np.testing.assert_allclose(program(), expected, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_gradients_have_the_dtype_of_the_leaf(dtype):
    for function in (vg.erf, vg.gammaln, lambda x: vg.Tensor([2, 3]) ** x, lambda x: vg.Tensor([True]) ** x):
        x = vg.Tensor(np.array([0.5], dtype), requires_grad=True)
        assert grad(function(x).sum(), x)[0].dtype == dtype
    assert np.sum(vg.Tensor(np.array([1, 2], np.int8)), dtype=np.int8).dtype == np.int8
