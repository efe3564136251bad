"""Traced functions in eager code: one node of the graph, with the behaviour of the original function."""

import copy
import pickle

import numpy as np
import pytest
from symbolic_checks import assert_close

import viewgrad as vg
from viewgrad.autograd import forward_ad, grad
from viewgrad.errors import ForwardModeError, GraphError, GuardError
from viewgrad.symbolic import function_of


def averages(x, weights):
    """Write through overlapping views and by indices; return a tensor and a view of another one."""
    y = x * x
    part = y[1:]
    y[1:] += y[:-1] * weights
    y.T[0] *= 2.0
    y[[0, 2]] = x[[1, 1]] * 3
    return vg.exp(-y) * 3.0, part


def arguments():
    x = vg.Tensor([1.0, 0.2, 0.3], requires_grad=True)
    return x, vg.Tensor([0.5, 0.25], requires_grad=True)


def derivatives(function):
    """Return a result, and the first three derivatives of a function of it."""
    x, w = arguments()
    first, second = function(x, w)
    second.mul_(w)
    loss = (first[1:] * second).sum() + first[0]
    found = [loss]
    for _ in range(3):
        gradients = grad(found[-1], [x, w], create_graph=True)
        found.extend(gradients)
        found.append(sum((g * g * g).sum() for g in gradients))
    return [each.detach().numpy() for each in found]


def test_third_order_derivatives_match_the_function():
    traced = function_of(averages, *arguments())
    for ours, other in zip(derivatives(traced), derivatives(averages), strict=True):
        assert_close(ours, other, "derivative")


def test_scalars_are_returned_as_scalars():
    x = vg.Tensor([1.0, 2.0], requires_grad=True)
    result = function_of(lambda x: x[1:][0] * 2.0, x)(x)
    with pytest.raises(Exception, match="scalar"):
        result.add_(1.0)
    assert grad(result, x)[0].numpy().tolist() == [0.0, 2.0]


def test_a_traced_function_is_one_step():
    traced = function_of(averages, *arguments())
    x, w = arguments()
    first, second = traced(x, w)
    assert first.grad_fn is second.grad_fn
    assert first.grad_fn.name() == "DifferentiableGraphBackward"
    assert len(first.grad_fn.next_functions) == 2


def test_tangents_pass_through():
    traced = function_of(averages, *arguments())
    results = []
    for function in (traced, averages):
        with forward_ad.dual_level():
            x = forward_ad.make_dual(vg.Tensor([1.0, 0.2, 0.3]), vg.Tensor([1.0, 2.0, -1.0]))
            results.append([forward_ad.unpack_dual(each) for each in function(x, vg.Tensor([0.5, 0.25]))])
    for ours, other in zip(*results, strict=True):
        assert_close(ours.primal.numpy(), other.primal.numpy(), "primal")
        assert_close(ours.tangent.numpy(), other.tangent.numpy(), "tangent")


def test_tangents_pass_through_a_traced_function_in_another():
    inner = function_of(averages, *arguments())

    def f(x, weights):
        first, part = inner(x * 2, weights)
        part *= weights
        return first, part, vg.func.grad(lambda x: inner(x, weights)[0].sum())(x)

    expected, found = [
        vg.func.jvp(function, tuple(each.detach() for each in arguments()), (vg.ones(3), vg.ones(2)))[1]
        for function in (f, function_of(f, *arguments()))
    ]
    for ours, other in zip(found, expected, strict=True):
        assert_close(ours.numpy(), other.numpy(), "tangent")


def under_no_grad(a, b):
    with vg.no_grad():
        c = a * b
        part = c[1:]
    a = a * 1
    with vg.no_grad():
        a.mul_(0.5)
        a[1:] *= b[1:]
        a[[0, 2]] = b[:2] * b[:2]
        np.add.at(a, [0, 0], b[1:])
        whole = (a * b).sum()
    return a * c, part * whole


def copies(a, b):
    return copy.copy(a) * copy.deepcopy(b * 1) + (a.sum().detach() * b + b[0].detach())


@pytest.mark.parametrize("function", [under_no_grad, copies])
def test_tangents_of_unrecorded_values_match_the_function(function):
    a, b = vg.Tensor([1.0, 0.2, 0.3]), vg.Tensor([0.5, 0.25, 2.0])
    traced = function_of(function, a.clone().requires_grad_() * 1, b.clone().requires_grad_() * 1)
    results = [vg.func.jvp(each, (a, b), (b, a)) for each in (traced, function)]
    for ours, other in zip(*[vg.func.tree.flatten(each)[0] for each in results], strict=True):
        assert_close(ours.numpy(), other.numpy(), "result")


def test_tangents_of_memory_written_through_a_detached_tensor_are_refused():
    def f(a):
        b = a * 1
        b.detach()[0] = 3.0
        return b * a

    traced = function_of(f, vg.ones(2, requires_grad=True))
    assert traced(vg.ones(2)).tolist() == [3.0, 1.0]
    with pytest.raises(ForwardModeError, match=r"the write at .*test_symbolic_function\.py:\d+ .* clone\(\)"):
        vg.func.jvp(traced, (vg.ones(2),), (vg.ones(2),))


def test_views_as_arguments_and_writes_to_results():
    def f(x):
        return x * x[::-1]

    traced = function_of(f, vg.Tensor([1.0, 2.0], requires_grad=True) * 1)
    results = []
    for function in (f, traced):
        table = vg.Tensor(np.arange(6.0).reshape(3, 2), requires_grad=True)
        copied = table * 1
        out = function(copied[1])
        copied[1] = 7.0
        out[0] += copied[0, 1]
        results.append((out.detach().numpy(), grad((out * out).sum(), table)[0].numpy()))
    for ours, other in zip(*results, strict=True):
        assert_close(other, ours, "result")


def test_arguments_are_written_to():
    def f(x, y):
        x[1:] += y
        with vg.no_grad():
            y *= 2.0
        return (x * y.sum()).sum()

    x, y = vg.Tensor([1.0, 2.0, 3.0], requires_grad=True), vg.Tensor([4.0, 5.0], requires_grad=True)
    traced = function_of(f, x * 1, y * 1)
    results = []
    for function in (f, traced):
        a, b = x * 1, y * 1
        loss = function(a, b) + (a * a).sum() + (b * b * b).sum()
        results.append([a.detach().numpy(), b.detach().numpy(), *[g.numpy() for g in grad(loss, [x, y])]])
    for ours, other in zip(*results, strict=True):
        assert_close(other, ours, "result")


def test_results_share_memory_as_in_the_function():
    def f(x):
        y = x * 2
        return y, y[1:], x[0:1]

    x = vg.Tensor([1.0, 2.0, 3.0])
    y, part, given = function_of(f, x)(x)
    y[2] = 9.0
    assert part.numpy().tolist() == [4.0, 9.0]
    x[0] = 5.0
    assert given.numpy().tolist() == [5.0]


def test_results_share_memory_in_another_layout():
    def f(x):
        y = x[:, 1:] * 2  # NumPy lays it out as x is
        y[...] = y[::-1]
        return y, y.conj(), np.broadcast_to(y, (2, *y.shape)), y[1:]

    x = vg.Tensor(np.arange(12.0).reshape(4, 3).T, requires_grad=True)
    whole, same, wide, part = function_of(f, x)(x)
    whole[1] = 9.0
    for each, other in zip((same, wide, part), f(x)[1:], strict=True):
        assert each.shape == other.shape
        assert np.shares_memory(each._array, whole._array)
        assert 9.0 in each.detach().numpy()


def test_overlapping_results_refuse_writes():
    def f(x):
        windows = np.lib.stride_tricks.sliding_window_view(x * 3, 2)
        return np.broadcast_to(x * 2, (3, 3)), np.broadcast_to(x.sum(), (2,)), windows

    for each in function_of(f, vg.ones(3))(vg.ones(3)):
        with pytest.raises(RuntimeError, match="overlap"):
            each.mul_(2.0)


@pytest.mark.parametrize("requires_grad", [False, True])
def test_writes_to_results_that_are_constant_do_not_reach_the_graph(requires_grad):
    def f(x):
        numbers = vg.Tensor([1.0, 2.0])
        return numbers, numbers.detach(), vg.Tensor([3.0, 4.0]).detach(), x * numbers

    x = vg.ones(2, requires_grad=requires_grad)
    traced = function_of(f, x)
    for _ in range(2):
        results = traced(x)
        assert [each.detach().numpy().tolist() for each in results] == [[1, 2], [1, 2], [3, 4], [1, 2]]
        for each in results:
            with vg.no_grad():
                each.mul_(0.5)


def test_undefined_gradients_cost_nothing():
    def f(x):
        return vg.exp(x), vg.sin(x)

    x = vg.Tensor([1.0, 2.0], requires_grad=True)
    traced = function_of(f, x)
    first, _ = traced(x)
    grad(first.sum(), x)
    ((undefined, reverse),) = traced.function._reverses.items()
    assert "cos" not in reverse.graph.text()
    assert 1 in undefined


def test_closures_are_read_at_each_call():
    scale = vg.Tensor([2.0, 3.0], requires_grad=True)
    x = vg.Tensor([1.0, 1.0])
    traced = function_of(lambda x: x * scale, x)
    with vg.no_grad():
        scale.mul_(2.0)
    y = traced(x)
    assert y.detach().numpy().tolist() == [4.0, 6.0]
    assert grad(y.sum(), scale)[0].numpy().tolist() == [1.0, 1.0]


def test_other_argument_types_are_refused():
    traced = function_of(lambda x, y: x[:2] * y, vg.ones(3), vg.ones(2))
    with pytest.raises(GraphError, match="float64\\[4\\]"):
        traced(vg.ones(4), vg.ones(2))
    with pytest.raises(GraphError, match="requires grad"):
        traced(vg.ones(3, requires_grad=True), vg.ones(2))
    x = vg.ones(3)
    with pytest.raises(GraphError, match="shares memory"):
        traced(x, x[1:])
    with pytest.raises(GraphError, match="structure"):
        traced(vg.ones(3))


def test_a_guard_is_checked_with_file_and_line():
    def f(x):
        if x.sum() > 0:
            return x * 2
        return x

    traced = function_of(f, vg.ones(2))
    with pytest.raises(GuardError, match=r"bool\(\) at .*test_symbolic_function\.py:\d+"):
        traced(-vg.ones(2))


def test_a_long_traced_function_pickles():
    def f(x):
        y = x.clone()
        for i in range(1, len(x)):
            y[i] = vg.sin(y[i - 1]) * 0.5 + y[i]
        return y[1:], y.sum(), x[np.array([0, 0])]

    x = vg.Tensor(np.linspace(0.1, 1.0, 500), requires_grad=True)
    traced = function_of(f, x)
    for again in (pickle.loads(pickle.dumps(traced)), copy.deepcopy(traced)):
        assert again.graph.text() == traced.graph.text()
        assert again.signature == again.graph.signature
        for ours, other in zip(again(x), f(x), strict=True):
            assert_close(ours.detach().numpy(), other.detach().numpy(), "value")
        assert_close(grad(again(x)[1], x)[0].numpy(), grad(f(x)[1], x)[0].numpy(), "gradient")


def overwritten(x):
    y = x * 2
    y[...] = 1.0
    return y, x[:3] * 1


LAYOUTS = {
    "in the order of columns": lambda x: x.reshape(3, 4).T * 2,
    "turned": lambda x: (x * 2)[::-1],
    "with gaps": lambda x: (x * 2).reshape(3, 4)[:, :3],
    "with gaps inside": lambda x: (x * 2).reshape(3, 4)[:, ::2],
    "taken by places": lambda x: x.reshape(3, 4).T[:, [0, 1]],
    "several dimensions": lambda x: np.sin(x.reshape(3, 2, 2).transpose(2, 0, 1)),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_results_keep_their_memory_layout(name):
    function = LAYOUTS[name]
    x = vg.Tensor(np.arange(12.0), requires_grad=True)
    results = [each(x) for each in (function, function_of(function, x))]
    flat = [result.reshape(-1) for result in results]  # a view, or a copy
    for each in flat:
        each[0] = 7.0
    assert results[0].tolist() == results[1].tolist()
    gradients = [grad((result * result).sum(), x)[0].tolist() for result in results]
    assert gradients[0] == gradients[1]


def test_a_result_that_constants_overwrite_has_a_history():
    x = vg.Tensor(np.arange(4.0), requires_grad=True)
    for each in (overwritten, function_of(overwritten, x)):
        y, z = each(x)
        assert y.requires_grad and z.requires_grad
        assert grad(y.sum() + z.sum(), x, retain_graph=True)[0].tolist() == [1.0, 1.0, 1.0, 0.0]
        assert grad(y.sum(), x, materialize_grads=True)[0].tolist() == [0.0] * 4


def masked_by_assignment(z):
    y = z * np.array([1.0, np.inf])
    y[~np.isfinite(y)] = 0.0
    return y


def masked_by_selection(z):
    y = z * np.array([1.0, np.inf])
    return y[np.isfinite(y)]


@pytest.mark.parametrize("function", [masked_by_assignment, masked_by_selection])
@pytest.mark.parametrize("create_graph", [False, True])
def test_elements_excluded_by_a_mask_have_no_gradient(function, create_graph):
    z = vg.Tensor([1.0, 2.0], requires_grad=True)
    traced = vg.symbolic.function_of(function, z, escapes="guard")
    for each in (function, traced):
        assert vg.autograd.grad(each(z).sum(), z, create_graph=create_graph)[0].tolist() == [1.0, 0.0]
