"""`dtype_kinds` of users' operators: complex numbers are differentiated correctly, or refused."""

import numpy as np
import pytest

import viewgrad as vg
from viewgrad.autograd import define_op, grad
from viewgrad.errors import DeclarationError, UnsupportedDtypeError


def cube(formula, **options):
    return define_op("cube_of_kinds(self)", forward=lambda x: x**3, derivatives={"self": formula}, **options)


def test_missing_conjugate_is_detected_at_the_first_complex_argument():
    op = cube("grad * 3 * self**2")
    x = vg.Tensor([2.0], requires_grad=True)
    assert grad(op(x), x)[0].tolist() == [12.0]
    for _ in range(2):
        for requires_grad in (False, True):
            with pytest.raises(UnsupportedDtypeError, match="complex"):
                op(vg.Tensor([1 + 2j], requires_grad=requires_grad))


@pytest.mark.parametrize("claimed", [{}, {"dtype_kinds": "fc"}], ids=str)
def test_conjugating_formula_is_accepted(claimed):
    op = cube("grad * 3 * conj(self)**2", **claimed)
    z = vg.Tensor([1 + 2j, 0.5 - 1j], requires_grad=True)
    np.testing.assert_allclose(grad(op(z).real.sum(), z)[0].numpy(), 3 * np.conj(z.detach().numpy()) ** 2)


def test_wrong_dtype_kinds_are_rejected_at_definition():
    with pytest.raises(DeclarationError, match=r"'grad \* 3 \* self\*\*2' for self .* complex numbers.*conj"):
        cube("grad * 3 * self**2", dtype_kinds="fc")
    with pytest.raises(DeclarationError, match="finite differences"):
        cube("grad * 2 * self**2", dtype_kinds="f")
    cube("grad * 3 * self**2", dtype_kinds="f")


def test_complex_values_are_refused_for_real_arguments_only():
    op = define_op(
        "scaled_by_log(self, factor)",
        forward=lambda x, factor: x * np.log(np.abs(factor)),
        derivatives={"self": "grad * log(abs(factor))", "factor": "grad * conj(self) / factor"},
        elementwise=True, dtype_kinds={"self": "fc", "factor": "f"}, domain=(0.3, 2),
    )  # fmt: skip
    z, y = vg.Tensor([1 + 2j], requires_grad=True), vg.Tensor([3.0], requires_grad=True)
    first, second = grad(op(z, y).imag.sum(), (z, y))
    np.testing.assert_allclose(first.numpy(), [1j * np.log(3)])
    np.testing.assert_allclose(second.numpy(), [2 / 3])
    with pytest.raises(UnsupportedDtypeError, match="'factor'"):
        op(z, z)


def test_several_outputs_options_and_lists_are_checked():
    joined = define_op(
        "weighted_sum_of_kinds(tensors, *, weight=2.0)",
        forward=lambda tensors, *, weight=2.0: weight * sum(t * t for t in tensors),
        derivatives={"tensors": "[grad * 2 * weight * t for t in tensors]"}, lists=["tensors"],
    )  # fmt: skip
    with pytest.raises(UnsupportedDtypeError):
        joined([vg.Tensor([1j]), vg.Tensor([1.0 + 1j])], weight=3.0)
    pair = define_op(
        "square_and_cube_of_kinds(self) -> (square, cube)",
        forward=lambda x: (x**2, x**3),
        derivatives={"self": "grad_square * 2 * conj(self) + grad_cube * 3 * self**2"},
    )
    with pytest.raises(UnsupportedDtypeError):
        pair(vg.Tensor([1 + 1j], requires_grad=True))


def test_points_without_derivative_do_not_fail_a_formula():
    op = define_op("modulus_of_kinds(self)", forward=np.abs, derivatives={"self": "grad * sign(self)"})
    z = vg.Tensor([0j, 3 + 4j], requires_grad=True)
    np.testing.assert_allclose(grad(op(z).sum(), z)[0].numpy(), [0, 0.6 + 0.8j])


@pytest.mark.parametrize("formula", ["cos(self)", "0 * self", "1.0"])
def test_a_formula_that_uses_no_gradient_is_refused(formula):
    with pytest.raises(DeclarationError, match="no incoming gradient"):
        define_op("sine_without_grad(self)", forward=np.sin, derivatives={"self": formula})
