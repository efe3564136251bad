"""`viewgrad.testing.check_operator`, on operators that are right and on operators that are not."""

from __future__ import annotations

import numpy as np
import pytest

import viewgrad as vg
from viewgrad.errors import UnsupportedKindError
from viewgrad.operators.define import OPERATORS
from viewgrad.testing import Mismatch, check_operator

A = np.sin(np.arange(1.0, 7.0)).reshape(2, 3)
B = np.cos(np.arange(3.0)) + 0.5
Z = A + 1j * A[::-1, ::-1]


@pytest.fixture(autouse=True)
def operators_as_before():
    """Operators defined here do not outlive the test."""
    before = set(OPERATORS)
    yield
    for name in OPERATORS.keys() - before:
        del OPERATORS[name]


def operator(name, derivative, forward=lambda x, y: x * np.exp(y), **options):
    return vg.autograd.define_op(
        f"{name}(self, other)",
        forward=forward,
        derivatives={"self": "grad * conj(exp(other))", "other": derivative},
        inplace=True,
        **options,
    )


def test_an_operator_of_ones_own_passes():
    check_operator(operator("passes", "grad * conj(self * exp(other))"), A, B, reference=lambda x, y: x * np.exp(y))
    check_operator(OPERATORS["mul"], Z, Z.T.copy().T)


def test_functions_of_tensors_pass():
    check_operator(lambda x, y: vg.exp(x).T @ y, A, A[:, ::-1].copy())
    check_operator(lambda x: (x.sum(axis=0), x[..., 1:] * 2.0), A)
    check_operator(lambda x, n: x[n] * 2.0, B, np.array([0, 2, 0]))
    check_operator(vg.mul, Z, Z[0], inplace=vg.Tensor.mul_)
    check_operator(vg.mul, np.array(0.5), np.array(2.0), inplace=vg.Tensor.mul_)
    check_operator(vg.exp, np.zeros((2, 0)), inplace=vg.Tensor.exp_)


def test_a_wrong_derivative_is_found():
    with pytest.raises(Mismatch, match="gradient of a1"):
        check_operator(operator("wrong_derivative", "grad * exp(other)"), A, B)


def test_a_derivative_wrong_for_complex_numbers_only_is_found():
    wrong = operator("wrong_for_complex", "grad * self * exp(other)")
    check_operator(wrong, A, B)
    with pytest.raises(UnsupportedKindError, match=r"for other gives another gradient .* for complex numbers"):
        check_operator(wrong, Z, Z[0])


def test_a_wrong_value_is_found():
    with pytest.raises(Mismatch, match="by the reference"):
        check_operator(vg.exp, A, reference=np.expm1)


def test_a_value_remembered_by_reference_is_found():
    def scaled(x):
        array = x._array  # what a closure over memory sees is not preserved from writes

        class Scaled(vg.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return vg.Tensor(array**2)

            @staticmethod
            def backward(ctx, grad):
                return grad * 2.0 * vg.Tensor(array)

        return Scaled.apply(x)

    with pytest.raises(Mismatch) as found:
        check_operator(scaled, A, order=1)
    assert "zero_()" in found.value.__notes__[0]


def test_an_inplace_form_that_does_something_else_is_found():
    with pytest.raises(Mismatch) as found:
        check_operator(vg.exp, A, inplace=lambda x: x.expm1_())
    assert "inplace(x0" in found.value.__notes__[0]


def test_an_inplace_form_that_hides_its_write_is_found():
    def hidden(x):
        with vg.no_grad():
            return x.exp_()

    with pytest.raises(Mismatch, match="gradient"):
        check_operator(vg.exp, A, inplace=hidden)


def test_a_first_order_only_derivative_is_found_at_the_second():
    def half(x):
        class Half(vg.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x.detach().exp()

            @staticmethod
            def backward(ctx, grad):
                (x,) = ctx.saved_tensors
                return grad * x.detach().exp()

        return Half.apply(x)

    check_operator(half, A, order=1)
    with pytest.raises(Mismatch, match="second gradient of a0"):
        check_operator(half, A)
