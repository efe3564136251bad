"""Compiled functions whose inputs were computed from one another: derivatives with respect to each of them."""

import numpy as np
import pytest

import viewgrad as vg
from viewgrad.autograd import grad


def plain(x, w):
    return (w * x * x + np.sin(x)).sum()


def loop(x, w):
    y = vg.zeros(len(x))
    for i in range(len(x)):
        y[i] = w[0] * x[i] * x[i] * (x[i - 1] + w[0])
    return y.sum()


def infinite(x, w):  # the program computes 0 * inf, and the gradient is computed by rerunning the function
    y = vg.zeros(3)
    y[:] = w * x
    y[1:] = 0.0
    return (w * x * x).sum() + (np.sqrt(y) * np.array([1.0, 0.0, 0.0])).sum()


def capturing(function, *captured):
    return lambda x: function(x, *captured)


def capturing_twice(function, w):
    table = {"w": w}
    return lambda x: function(x, w) * table["w"].sum()


def capturing_another(function, w):
    v = w * 3.0
    return lambda x: function(x, w) * v.sum()


WAYS = {  # the function of x, and its arguments given x and w
    "arguments": lambda f, x, w: (f, (x * w, w)),
    "arguments in turn": lambda f, x, w: (f, (x, w * x[0])),
    "views": lambda f, x, w: (f, ((y := x * w), y[:1])),
    "captured": lambda f, x, w: (capturing(f, w), (x,)),
    "captured, computed from": lambda f, x, w: (capturing(f, w), (x * w,)),
    "captured, computed from the argument": lambda f, x, w: (capturing(f, x[:1] * 1.0), (x,)),
    "captured twice": lambda f, x, w: (capturing_twice(f, w), (x * w,)),
    "captured with another": lambda f, x, w: (capturing_another(f, w), (x * w,)),
}


def derivatives(function, way, options, order):
    """The derivatives of some order with respect to x and w, in four calls, with other numbers where possible."""
    found, called = [], None
    for k in range(4):
        if k == 0 or "captured" not in way:
            x = vg.Tensor(np.array([1.0, 2.0, 3.0]) + 0.1 * k, requires_grad=True)
            w = vg.Tensor([2.0], requires_grad=True)
            made, args = WAYS[way](function, x, w)
            called = made if options is None else called or vg.compile(made, executor="python", **options)
        y = called(*args)
        for n in range(order - 1):
            (first,) = grad(y, [x, w][n % 2], create_graph=True)
            y = first.sum() + 0.0 * (x.sum() + w.sum())
        found += [each.tolist() for each in grad(y, [x, w], retain_graph=True, materialize_grads=True)]
    return found


OPTIONS = [{"specialize": False}, {"specialize": True}, {"specialize": False, "check": False}]


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("function", [plain, loop, infinite])
def test_derivatives_with_respect_to_dependent_inputs(function, way, options, order):
    with np.errstate(all="ignore"):
        expected = derivatives(function, way, None, order)
        for ours, other in zip(derivatives(function, way, options, order), expected, strict=True):
            np.testing.assert_allclose(ours, other, rtol=1e-9)


@pytest.mark.parametrize("specialize", [False, True])
@pytest.mark.parametrize("order", [1, 2])
def test_dependent_inputs_of_a_batch(specialize, order):
    def each(x, w):
        return (w * x * x).sum()

    compiled = vg.compile(each, executor="python", specialize=specialize, batch=("x",))
    for _ in range(3):
        w = vg.Tensor([2.0], requires_grad=True)
        x = w * np.array([[1.0, 2.0], [3.0, 4.0]])
        total = compiled(x, w).sum()
        for _ in range(order - 1):
            (total,) = grad(total, w, create_graph=True)
        assert grad(total.sum(), w)[0].tolist() == [[360.0], [360.0]][order - 1]


@pytest.mark.parametrize("specialize", [False, True])
def test_one_number_passed_twice(specialize):
    compiled = vg.compile(lambda a, b: a * a * b, executor="python", specialize=specialize)
    for _ in range(3):
        x = vg.Tensor([2.0], requires_grad=True)
        s = x.sum()
        y = compiled(s, s)
        (first,) = grad(y, x, create_graph=True)
        assert (first.tolist(), grad(first.sum(), x)[0].tolist()) == ([12.0], [12.0])
