"""Faulty declarations."""

import numpy as np

import viewgrad as vg
from viewgrad.autograd import define_op, formula_function

from . import M, P, Q, V, Z, wrong


@wrong(M, by="gradients")
def make_sine_with_the_derivative_of_cosine():
    return define_op("w_sine(self)", forward=np.sin, derivatives={"self": "grad * -sin(self)"})


@wrong(M, by="gradients")
def make_square_without_its_two():
    return define_op("w_square(self)", forward=np.square, derivatives={"self": "grad * self"})


@wrong(M, V, by="gradients")
def make_difference_with_a_sign_forgotten():
    return define_op(
        "w_minus(self, other)", forward=np.subtract, derivatives={"self": "grad", "other": "grad"}, elementwise=True
    )


@wrong(P, Q, by="gradients")
def make_quotient_by_the_square_forgotten():
    return define_op(
        "w_ratio(self, other)",
        forward=np.divide,
        derivatives={"self": "grad / other", "other": "-grad * self / other"},
        elementwise=True,
    )


@wrong(P, by="gradients")
def make_square_root_from_the_input():
    return define_op("w_root(self)", forward=np.sqrt, derivatives={"self": "grad / (2 * self)"})


@wrong(M, by="gradients")
def make_tangent_from_the_input_instead_of_the_result():
    return define_op("w_tanh(self)", forward=np.tanh, derivatives={"self": "grad * (1 - self * self)"})


@wrong(M, by="gradients")
def make_nearly_right_constant():
    return define_op("w_deg(self)", forward=np.deg2rad, derivatives={"self": "grad * 0.0174533"})


@wrong(M, V, by="gradients")
def make_arguments_exchanged():
    return define_op(
        "w_product(self, other)",
        forward=np.multiply,
        derivatives={"self": "grad * self", "other": "grad * other"},
        elementwise=True,
    )


@wrong(Z, by=("something to check", "gradients"))
def make_complex_square_without_conjugate():
    return define_op("w_zsquare(self)", forward=np.square, derivatives={"self": "grad * 2 * self"})


@wrong(Z, Z[0], by=("something to check", "gradients"))
def make_complex_product_with_one_conjugate():
    return define_op(
        "w_zmul(self, other)",
        forward=np.multiply,
        derivatives={"self": "grad * conj(other)", "other": "grad * self"},
        elementwise=True,
    )


@wrong(M, by="special points")
def make_sinc_that_divides_by_zero():
    return define_op(
        "w_sinc(self)", forward=lambda x: np.sinc(x / np.pi), derivatives={"self": "grad * (cos(self) - result) / self"}
    )


@wrong(P, by="special points")
def make_absolute_value_for_positive_numbers_only():
    return define_op("w_abs(self)", forward=np.abs, derivatives={"self": "grad"})


@wrong(P, by="special points")
def make_cube_through_a_logarithm():
    return define_op("w_cube(self)", forward=lambda x: x**3, derivatives={"self": "grad * 3 * exp(2 * log(self))"})


@wrong(M, by="special points")
def make_softplus_that_overflows():
    return define_op(
        "w_softplus(self)",
        forward=lambda x: np.logaddexp(0, x),
        derivatives={"self": "grad * exp(self) / (1 + exp(self))"},
    )


@wrong(M, by="special points")
def make_logistic_that_is_flat_too_early():
    return define_op(
        "w_flat(self)",
        forward=lambda x: x / (1 + np.abs(x)),
        derivatives={"self": "grad * where(abs(self) > 5.0, 0.0, 1.0 / square(1 + abs(self)))"},
    )


@wrong(P, power=2.5, by=("options", "special points"))
def make_power_for_fractions_only():
    return define_op(
        "w_pow(self, *, power)",
        forward=lambda x, *, power: x**power,
        derivatives={"self": "grad * power * exp((power - 1) * log(self))"},
    )


@wrong(P, power=3, by=("options", "special points"))
def make_power_whose_zeroth_is_wrong():
    return define_op(
        "w_power(self, *, power)",
        forward=lambda x, *, power: x**power,
        derivatives={"self": "grad * (power if power else 1) * self ** (power - 1)"},
    )


@formula_function
def spread_over(grad, shape, axis):
    """A gradient that ignores the position of the axis."""
    return vg.ones(shape) * grad if isinstance(grad, vg.Tensor) else np.ones(shape) * grad


@wrong(np.array([[0.7, -1.3], [1.9, 0.4]]), axis=0, by="options")
def make_sum_whose_other_axis_is_wrong():
    return define_op(
        "w_sum(self, *, axis)",
        forward=lambda x, *, axis: x.sum(axis=axis),
        derivatives={"self": "spread_over(grad, self.shape, axis)"},
    )


@formula_function
def mean_back(grad, shape, axis):
    """Divides by the first length regardless of the axis."""
    grown = np.expand_dims(grad, axis) if not isinstance(grad, vg.Tensor) else grad.unsqueeze(axis)
    return grown / shape[0] + (vg.zeros(shape) if isinstance(grad, vg.Tensor) else np.zeros(shape))


@wrong(M, axis=0, by="options")
def make_mean_divided_by_the_first_length():
    return define_op(
        "w_mean(self, *, axis=0)",
        forward=lambda x, *, axis: np.mean(x, axis=axis),
        derivatives={"self": "mean_back(grad, self.shape, axis)"},
    )


@wrong(V, by="options")
def make_variance_that_ignores_the_correction():
    return define_op(
        "w_var(self, *, ddof=0)",
        forward=lambda x, *, ddof: np.var(x, ddof=ddof),
        derivatives={"self": "grad * 2 * (self - mean(self)) / self.size"},
    )


@wrong(V, by=("ties", "special points"))
def make_maximum_that_counts_ties_twice():
    return define_op("w_max(self)", forward=np.max, derivatives={"self": "grad * (self == result)"})


@wrong(M, M[::-1].copy(), by=("ties", "special points", "the same tensor twice"))
def make_larger_of_two_that_counts_ties_twice():
    return define_op(
        "w_larger(self, other)",
        forward=np.maximum,
        derivatives={"self": "grad * (self >= other)", "other": "grad * (other >= self)"},
        elementwise=True,
    )


@wrong(M, M[::-1].copy(), by=("ties", "special points", "the same tensor twice"))
def make_smaller_of_two_that_forgets_ties():
    return define_op(
        "w_smaller(self, other)",
        forward=np.minimum,
        derivatives={"self": "grad * (self < other)", "other": "grad * (other < self)"},
        elementwise=True,
    )


@wrong(M, V, by="gradients")
def make_two_results_one_of_them_forgotten():
    return define_op(
        "w_two(self, other) -> (total, product)",
        forward=lambda a, b: (a + b, a * b),
        derivatives={"self": "grad_total + grad_product * other", "other": "grad_total"},
        elementwise=True,
    )


@wrong(M, V, by=("in-place form",))
def make_inplace_form_that_uses_the_old_value():
    return define_op(
        "w_inplace(self, other)",
        forward=np.multiply,
        derivatives={"self": "grad * other", "other": "grad * self"},
        inplace=vg.autograd.InPlace(derivatives={"self": "grad * other", "other": "grad * result"}),
    )


@wrong(M, by=("in-place form",))
def make_inplace_form_of_another_function():
    return define_op(
        "w_other_inplace(self)",
        forward=np.sin,
        derivatives={"self": "grad * cos(self)"},
        inplace=vg.autograd.InPlace(forward=np.tanh, derivatives={"self": "grad * (1 - result * result)"}),
    )


@wrong(M, by="forward mode")
def make_tangent_with_the_wrong_sign():
    return define_op(
        "w_jvp(self)",
        forward=np.cos,
        derivatives={"self": "grad * -sin(self)"},
        forward_derivative="self_t * sin(self_p)",
    )


@wrong(M, V, by="forward mode")
def make_tangent_of_one_argument_forgotten():
    return define_op(
        "w_jvp2(self, other)",
        forward=np.multiply,
        derivatives={"self": "grad * other", "other": "grad * self"},
        forward_derivative="self_t * other_p",
        elementwise=True,
    )


@wrong(M, by="forward mode")
def make_linear_that_is_not():
    return define_op(
        "w_linear(self)", forward=np.square, derivatives={"self": "grad * 2 * self"}, forward_derivative="auto_linear"
    )


@wrong(M, by="linear in the incoming gradient")
def make_gradient_that_is_clipped():
    return define_op("w_clipped(self)", forward=lambda x: 2 * x, derivatives={"self": "clip(2 * grad, -5.0, 5.0)"})


@wrong(M, by="linear in the incoming gradient")
def make_gradient_that_is_made_positive_when_large():
    return define_op(
        "w_rectified(self)", forward=lambda x: 2 * x, derivatives={"self": "where(grad < -1e2, 0.0 * grad, 2 * grad)"}
    )


@wrong(M, by="second derivatives")
def make_constant_that_should_not_be_one():
    return define_op("w_const(self)", forward=np.exp, derivatives={"self": "held(grad, result)"})


@formula_function
def held(grad, result):
    """The product, but to the second derivative a constant."""
    return grad * (result.detach() if isinstance(result, vg.Tensor) else result)


@wrong(M, by="layouts of arguments")
def make_weights_in_the_order_of_memory():
    return define_op(
        "w_order(self)",
        forward=lambda x: np.ravel(x, order="K") * np.arange(1.0, x.size + 1),
        derivatives={"self": "(grad * (arange_like(grad) + 1.0)).reshape(self.shape)"},
    )


@formula_function
def arange_like(grad):
    """0, 1, 2, ..."""
    return np.arange(grad.shape[0]) * 1.0


@wrong(M, by=("dtypes",))
def make_result_of_another_dtype():
    return define_op("w_double(self)", forward=lambda x: x * np.float64(3.0), derivatives={"self": "grad * 3.0"})


@wrong(M, by="dtypes")
def make_precision_lost_in_single():
    return define_op(
        "w_eps(self)",
        forward=lambda x: (x + (1e6 if x.dtype == np.float32 else 0)) - (1e6 if x.dtype == np.float32 else 0),
        derivatives={"self": "grad"},
    )


@wrong(M, by="values")
def make_other_values_than_the_reference():
    return define_op(
        "w_value(self)",
        forward=lambda x: np.log1p(x * x),
        derivatives={"self": "grad * 2 * self / (1 + self * self)"},
        reference=lambda x: np.log10(1 + x * x),
    )


@wrong(P, by="values")
def make_other_values_for_large_numbers():
    return define_op(
        "w_hypot(self)",
        forward=lambda x: np.where(x > 500, x, np.sqrt(1 + x * x)),
        derivatives={"self": "where(self > 500.0, grad, grad * self / sqrt(1 + self * self))"},
        reference=lambda x: np.hypot(1, x),
    )


@wrong(M, by="shapes")
def make_wrong_without_dimensions():
    return define_op(
        "w_scalar(self)", forward=lambda x: 3.0 * x, derivatives={"self": "grad * (3.0 if self.ndim else 2.0)"}
    )


@wrong(V, V[::-1].copy(), by="shapes")
def make_wrong_for_batches():
    return define_op(
        "w_dot(self, other)",
        forward=lambda a, b: (a * b).sum(-1),
        derivatives={"self": "dot_back(grad, other)", "other": "dot_back(grad, self)"},
    )


@formula_function
def dot_back(grad, other):
    """Correct for vectors only."""
    total = grad.sum() if hasattr(grad, "sum") else grad
    return total * other


@wrong(np.array([[0.7, -1.3], [1.9, 0.4]]), by=("shapes", "gradients"))
def make_outer_product_of_square_matrices_only():
    return define_op(
        "w_turn(self)",
        forward=lambda x: x.T.copy(),
        derivatives={"self": "grad.reshape(self.shape).T.reshape(self.shape)"},
    )


@wrong(M, 1.5, by=("options", "special points"))
def make_threshold_used_in_only_one_place():
    return define_op(
        "w_threshold(self, level)",
        forward=lambda x, level: np.where(x > level, x, 0.0),
        derivatives={"self": "grad * (self > 1.5)"},
    )


@wrong([M, P], by="gradients")
def make_list_whose_gradients_are_exchanged():
    return define_op(
        "w_list(tensors)",
        forward=lambda tensors: 2 * tensors[0] + tensors[1],
        derivatives={"tensors": "swapped(grad)"},
        lists=["tensors"],
    )


@formula_function
def swapped(grad):
    """The parts of the gradient, in the wrong order."""
    return [grad, 2 * grad]


@wrong(M, by=("gradients", "linear in the incoming gradient"))
def make_gradient_with_a_constant():
    return define_op("w_offset(self)", forward=lambda x: 2 * x, derivatives={"self": "2 * grad + 1e-9"})


@wrong(np.array([3.0, 1.0, 2.0]), by=("gradients",))
def make_cumulative_product_by_division():
    return define_op("w_cumprod(self)", forward=np.cumprod, derivatives={"self": "summed_back(grad, result) / self"})


@wrong(np.array([3.0, 1.5, 2.0]), by=("special points",))
def make_product_by_division():
    return define_op("w_prod(self)", forward=np.prod, derivatives={"self": "grad * result / self"})


@formula_function
def summed_back(grad, result):
    """Sums from each element to the end, of the wrong array."""
    ones = np.tril(np.ones((grad.shape[0], grad.shape[0])))
    return (grad @ ones) * result
