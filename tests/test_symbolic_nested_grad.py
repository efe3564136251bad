"""Traced programs that differentiate inside: the nested derivatives are part of the graph."""

import numpy as np
import pytest
from symbolic_checks import check

import viewgrad as vg
from viewgrad import func
from viewgrad.autograd import forward_ad, grad
from viewgrad.symbolic import differentiate, function_of, run, trace

ONES = np.ones(3)


def written(x):
    y = x * 1
    y[1:] *= x[:-1]
    y[0] = vg.sin(x[1])
    return y


def cubes(x):
    return (x**3).sum() * x[0]


def gradient(x):
    (found,) = grad((x * x * x).sum(), x, create_graph=True)
    return found * x


def gradient_of_reads_by_index_arrays(x):
    def f(x):
        y = x * 1
        y[[0, 2]] = x[[1, 1]] ** 2
        return (y * y * x[[2, 0, 1]]).sum()

    return func.grad(f)(x)


def gradient_without_history(x):
    (found,) = grad((x * x * x).sum(), x)
    return found * x


def leaf_of_numbers(x):
    w = vg.Tensor([1.0, 2.0, 3.0], requires_grad=True)
    (found,) = grad((x * w * w).sum(), w, create_graph=True)
    return found * x


def leaf_over_the_same_memory(x):
    w = x.detach().requires_grad_()
    (found,) = grad((x * w * w).sum(), w, create_graph=True)
    return found * x


def leaf_over_memory_saved_in_part(x):
    y = x * x
    z = y[1:] * y[1:]
    y[0] = 2.0
    w = y.detach().requires_grad_()
    (found,) = grad((z * w[1:] * w[:2]).sum(), [w], create_graph=True)
    (other,) = grad((z * z).sum(), [x], create_graph=True)
    return found * other


def leaf_written_to(x):
    w = x.detach().requires_grad_()
    y = w * w * x
    with vg.no_grad():
        w[0] = 5.0
    (found,) = grad(y.sum(), [w], create_graph=True)
    return found * w * x


def three_histories(x):
    y = x * 2.0
    w = y.detach().requires_grad_()
    v = w * 1.0
    u = v.detach()
    out = v[:2] * v[1:] * y[:2]
    u[0] = 7.0
    v[2] = v[1] * x[0]
    found, other = grad((out * v[0] * u[1]).sum(), [w, x], create_graph=True)
    return found * other * u * v


def dual(x):
    with forward_ad.dual_level():
        primal, tangent = forward_ad.unpack_dual(vg.exp(written(forward_ad.make_dual(x, vg.ones(3)))))
        return primal * tangent


def dual_written_to(x):
    with forward_ad.dual_level():
        d = forward_ad.make_dual(x * 1, vg.ones(3))
        d[0] *= d[1]
        primal, tangent = forward_ad.unpack_dual(d)
        return primal * tangent


PROGRAMS = {
    "jvp": lambda x: func.jvp(written, (x,), (vg.ones(3),))[1],
    "vjp": lambda x: func.vjp(written, x)[1](vg.ones(3))[0],
    "linearize": lambda x: func.linearize(written, x)[1](vg.ones(3)),
    "jacrev": lambda x: func.jacrev(written)(x),
    "jacfwd": lambda x: func.jacfwd(written)(x),
    "hessian": lambda x: func.hessian(cubes)(x),
    "hvp": lambda x: func.hvp(cubes, (x,), (vg.ones(3),))[1][0],
    "vhp": lambda x: func.vhp(cubes, (x,), (vg.ones(3),))[1][0],
    "grad of grad": lambda x: func.grad(lambda t: func.grad(cubes)(t).sum())(x),
    "functionalize": lambda x: func.functionalize(written)(x),
} | {
    function.__name__: function
    for function in (
        gradient, gradient_of_reads_by_index_arrays, gradient_without_history, leaf_of_numbers,
        leaf_over_the_same_memory, leaf_over_memory_saved_in_part, leaf_written_to, three_histories, dual,
        dual_written_to,
    )
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives_inside_are_part_of_the_graph(name):
    check(PROGRAMS[name], [np.array([0.6, 1.2, 0.9])], name)


def test_values_independent_of_inputs_have_no_gradient():
    graph = vg.symbolic.trace(leaf_of_numbers, vg.Tensor(ONES, requires_grad=False))
    assert not any(node.requires_grad for node in graph.nodes())


def test_slogdet_with_one_output_used():
    def both(matrix):
        return np.linalg.det(matrix) * np.linalg.slogdet(matrix)[1]

    check(both, [np.array([[2.0, 0.5], [0.25, 3.0]])])


class TwoOfWhichOneIsRefused(vg.autograd.Function):
    """Two results, the second not differentiable: eager mode never calls its derivative if no gradient flows."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.set_materialize_grads(False)
        return x * x * x, x.floor()

    @staticmethod
    def backward(ctx, grad_cube, grad_floor):
        if grad_floor is not None:
            raise vg.errors.DifferentiabilityError("no derivative of the second")
        (x,) = ctx.saved_tensors
        return 3 * x * x * grad_cube


def test_undefined_gradients_do_not_reach_steps():
    """This is checked with the interpreter, with sources and with specialized graphs, to second order."""

    def function(x):
        cube, floor = TwoOfWhichOneIsRefused.apply(x)
        return (cube * cube).sum(), floor

    x = np.array([1.5, -0.5, 2.25])
    check(lambda x: function(x)[0], [x], "one result is used")
    gradient = differentiate(trace(function, vg.Tensor(x, requires_grad=True)))
    outputs = run(gradient.f, [x])
    for second in (None, np.ones(3)):
        inputs = gradient.df_inputs([x], outputs, [np.array(1.0), second])
        if second is None:
            np.testing.assert_allclose(run(gradient.df, inputs)[0], 6 * x**5)
        else:
            with pytest.raises(vg.errors.DifferentiabilityError):
                run(gradient.df, inputs)
    leaf = vg.Tensor(x, requires_grad=True)
    (first,) = grad(function_of(function, leaf)(leaf)[0], leaf, create_graph=True)
    np.testing.assert_allclose(first.detach().numpy(), 6 * x**5)
    np.testing.assert_allclose(grad(first.sum(), leaf)[0].numpy(), 30 * x**4)
