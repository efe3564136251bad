"""Gradients at kinks and poles are those that the rows declare: PyTorch's, if it defines one."""

import math

import numpy as np
import pytest

import viewgrad as vg
from viewgrad.autograd import grad

INF = math.inf


def gradients_of(function, *arrays):
    tensors = [vg.Tensor(array, requires_grad=True) for array in arrays]
    return [g.tolist() for g in grad(function(*tensors).sum(), tensors, materialize_grads=True)]


def test_bounds_of_clip_get_the_gradient_of_clipped_values():
    x, low, high = [0.0, 1.0, -1.0, 2.0, 0.5], [0.0, 0.0, 0.0, 0.0, 2.0], [1.0, 1.0, 1.0, 1.0, 1.0]
    of_x, of_low, of_high = gradients_of(vg.clip, x, low, high)
    assert (of_x, of_low, of_high) == ([1, 1, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 1, 1])


def test_the_gradient_of_clip_flows_to_one_of_two_equal_bounds():
    of_x, of_low, of_high = gradients_of(vg.clip, [-1.0, 0.5, 2.0], [0.5, 0.5, 0.5], [0.5, 0.5, 0.5])
    assert (of_x, of_low, of_high) == ([0, 1, 0], [1, 0, 0], [0, 0, 1])


def test_masked_values_send_no_nan():
    assert gradients_of(lambda x: np.where(x > 0, x, 0.0), [np.nan, 2.0]) == [[0, 1]]
    assert gradients_of(lambda x: x.masked_fill(np.array([True, False]), 1.0), [np.nan, 2.0]) == [[0, 1]]


def second(function, *arrays):
    """Return the Hessian of a function of several numbers."""
    tensors = [vg.Tensor(array, requires_grad=True) for array in arrays]
    firsts = grad(function(*tensors), tensors, create_graph=True, materialize_grads=True)
    rows = [grad(g, tensors, retain_graph=True, materialize_grads=True) for g in firsts]
    return [[float(h) for h in row] for row in rows]


def test_mixed_second_derivative_of_the_zeroth_power():
    hessian = second(vg.pow, 2.0, 0.0)
    np.testing.assert_allclose(hessian, [[0, 0.5], [0.5, math.log(2) ** 2]])


def test_second_derivatives_of_a_product_with_zeros():
    hessian = second(lambda a, b, c: vg.stack([a, b, c]).prod(), 0.0, 0.0, 3.0)
    np.testing.assert_allclose(hessian, [[0, 3, 0], [3, 0, 0], [0, 0, 0]])


def test_constant_exponents_need_no_logarithm_of_a_negative_base(recwarn):
    assert gradients_of(lambda x: x**3.0, [-2.0]) == [[12.0]]
    with vg.autograd.forward_ad.dual_level():
        x = vg.autograd.forward_ad.make_dual(vg.Tensor([-2.0]), vg.Tensor([1.0]))
        assert vg.autograd.forward_ad.unpack_dual(x**3.0).tangent.tolist() == [12.0]
    assert not recwarn.list


def test_variance_of_one_element_is_not_a_number():
    with pytest.warns(RuntimeWarning):
        (g,) = gradients_of(lambda x: x.var(ddof=1), [1.0])
    assert np.isnan(g).all()


@pytest.mark.parametrize("direction", [0.0, 1.0])
def test_the_tangent_of_a_power_depends_on_the_direction(direction):
    def tangent(v):
        return vg.func.jvp(lambda y: 2.0**y, (vg.Tensor(1.5),), (v,))[1]

    slope = vg.func.grad(tangent)(vg.Tensor(direction))
    assert math.isclose(slope.item(), 2**1.5 * math.log(2))


def test_second_derivatives_of_a_power_of_0_by_the_exponent():
    def tangent(y, v):
        return vg.func.jvp(lambda y: vg.Tensor(0.0) ** y, (y,), (v,))[1]

    _, pull = vg.func.vjp(tangent, vg.Tensor(0.14), vg.Tensor(0.3))
    assert [each.item() for each in pull(vg.Tensor(1.0))] == [0.0, 0.0]


def test_piecewise_linear_functions_at_nan_match_pytorch():
    expected = dict.fromkeys(["hardtanh", "relu6", "hardsigmoid", "softshrink", "hardshrink"], 0.0)
    expected |= dict.fromkeys(["relu", "leaky_relu", "hardswish", "elu", "celu"], 1.0) | {"leaky_relu": 0.01}
    with np.errstate(invalid="ignore"):
        for name, slope in expected.items():
            x = vg.Tensor([np.nan], requires_grad=True)
            assert grad(getattr(vg, name)(x), x)[0].tolist() == [slope], name


def test_inactive_relu_has_zero_gradient_for_any_cotangent():
    x = vg.Tensor([-1.0, 2.0], requires_grad=True)
    assert grad(vg.relu(x), x, vg.Tensor([np.inf, 3.0]))[0].tolist() == [0, 3]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble])
@pytest.mark.parametrize("count", [6, 6000])
def test_masked_elements_get_zero_for_any_cotangent(count, dtype):
    """Large arrays are masked as integers; infinities, NaN and -0 match the results of `where`."""
    rng = np.random.default_rng(0)
    values = rng.choice(np.array([-1.0, -0.0, 0.0, 2.0, np.nan, np.inf, -np.inf], dtype), count)
    incoming = rng.choice(np.array([-0.0, 0.0, 0.3, np.nan, np.inf, -np.inf], dtype), count)
    for function, closed in ((vg.relu, values <= 0), (lambda x: x.clip(-1.5, 1.0), (values < -1.5) | (values > 1))):
        x = vg.Tensor(values, requires_grad=True)
        (found,) = grad(function(x), x, vg.Tensor(incoming))
        expected = np.where(closed, np.zeros((), dtype), incoming)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))
