"""gradcheck and gradgradcheck pass correct gradients, and describe errors precisely."""

import numpy as np
import pytest
from leaves import leaf, leaf_of

import viewgrad as vg
from viewgrad.autograd.gradcheck import gradcheck, gradgradcheck
from viewgrad.errors import AutogradError, GradcheckError
from viewgrad.operators.define import OPERATORS, define_op
from viewgrad.operators.language.namespace import formula_function


def operator(name, *args, **kwargs):
    """Define an operator for one test, without changing the table of operators."""
    made = define_op(f"{name}_of_gradcheck_test(self, other)", *args, **kwargs)
    del OPERATORS[made.name]
    return made


WRONG = operator(
    "wrong",
    forward=np.multiply,
    derivatives={"self": "grad * conj(other)", "other": "2 * grad * conj(self)"},
    elementwise=True,
)
UNCONJUGATED = operator(
    "unconjugated", forward=np.multiply, derivatives={"self": "grad * other", "other": "grad * self"}, elementwise=True
)
UNCONJUGATED.dtype_kinds = "fc"  # a false claim that gradcheck must detect
SCATTERED = operator(
    "scattered", forward=np.multiply, derivatives={"self": "grad * other", "other": "grad"}, elementwise=True
)


def cumulate(x):
    for i in range(1, x.shape[0]):
        x[i] += x[i - 1] * x[i]
    return x


# -- what passes -----------------------------------------------------------------------------------------------------


def test_inplace_programs_pass_without_changing_the_input():
    x = leaf(0.5, 2.0, 3.0)
    assert gradcheck(cumulate, x)
    assert gradgradcheck(cumulate, x)
    assert x.tolist() == [0.5, 2.0, 3.0]
    assert x._version == 0
    assert x.grad is None


def test_several_inputs_and_outputs_some_not_differentiable():
    def fn(a, n, b, scale):
        assert n.dtype == np.int64 and scale == 3.0
        return a * b, (b * b).sum() * scale, n, "text"

    inputs = (leaf_of([[1.0, 2.0], [3.0, 4.0]]), vg.Tensor([1, 2]), leaf(0.5, -1.0), 3.0)
    assert gradcheck(fn, inputs)
    assert gradgradcheck(fn, inputs)


@pytest.mark.parametrize(
    "fn",
    [
        lambda z: z * z * z,
        lambda z: z * z.conj(),
        lambda z: z.exp(),
        lambda z: z.real,
        lambda z: (z * z).imag,
        lambda z: (z * z.conj()).real.sum(),
    ],
)
def test_complex_to_complex_and_to_real(fn):
    assert gradcheck(fn, leaf(0.5 + 1j, -1.5 + 0.25j))
    assert gradgradcheck(fn, leaf(0.5 + 1j, -1.5 + 0.25j))


def test_real_to_complex():
    assert gradcheck(lambda x: x * (2.0 - 1.0j), leaf(0.5, -1.5))
    assert gradcheck(lambda x, z: z * x, (leaf(0.5, -1.5), leaf_of(1.0 + 2.0j)))


def test_zero_size_and_zero_dimensions():
    assert gradcheck(lambda x: x * 2.0, leaf_of(np.zeros((0, 3))))
    assert gradcheck(lambda x: (x * 2.0).sum(), leaf_of(np.zeros((0, 3))))
    assert gradcheck(lambda x: x * x, leaf_of(3.0))


def test_an_output_that_depends_on_nothing_passes_when_it_is_constant():
    assert gradcheck(lambda x: (x * 2.0, vg.ones(2)), leaf(1.0, 2.0))


def test_transposed_input_keeps_its_order_of_dimensions():
    seen = []
    x = vg.Tensor(np.arange(6.0).reshape(2, 3).T, requires_grad=True)
    assert gradcheck(lambda x: (seen.append(x.strides), x * x)[1], x)
    assert set(seen) == {(8, 24)}


def test_works_under_no_grad():
    with vg.no_grad():
        assert gradcheck(lambda x: x * x, leaf(1.0, 2.0))


def test_forward_mode_too():
    x, z = leaf(0.5, 2.0, 3.0), leaf(0.5 + 1j, -1.5 + 0.25j)
    assert gradcheck(cumulate, x, check_forward_ad=True)
    assert gradgradcheck(cumulate, x, check_forward_ad=True)
    assert gradcheck(lambda x, z: (x[:2] * z, z.real, x), (x, z), check_forward_ad=True)
    assert gradgradcheck(lambda x, z: (x[:2] * z, z.real, x), (x, z), check_forward_ad=True)


# -- what fails ------------------------------------------------------------------------------------------------------


def test_report_names_input_output_element_both_numbers_and_tolerance():
    with pytest.raises(GradcheckError) as info:
        gradcheck(lambda a, n, b: (a, WRONG(a, b)), (leaf(1.0, 5.0), 7, leaf(1.0, 2.0)), atol=1e-4, rtol=1e-2)
    error = info.value
    assert isinstance(error, AutogradError)
    assert (error.input, error.output, error.element, error.output_element) == (2, 1, (1,), (1,))
    assert error.analytical == 10.0
    assert error.numerical == pytest.approx(5.0)
    assert error.tolerance == pytest.approx(1e-4 + 1e-2 * 5.0)
    message = str(error)
    for part in (
        "output 1 (shape (2,)) with respect to input 2 (shape (2,)) is wrong in 2 of 4 entries",
        "output 1[1] with respect to input 2[1]",
        "backward pass computes 10, finite differences 5",
        "atol=0.0001, rtol=0.01",
    ):
        assert part in message


def test_report_of_a_complex_gradient_names_the_parts():
    with pytest.raises(GradcheckError, match="imaginary part of output 0 with respect to the real part of input 0"):
        gradcheck(lambda z: UNCONJUGATED(z, 1j).imag * 1j, leaf_of(1.0 + 0.5j))
    with pytest.raises(GradcheckError, match="imaginary part of input 0"):
        gradcheck(lambda z: UNCONJUGATED(z, z), leaf_of(1.0 + 0.5j))


def test_missing_gradients_are_reported():
    with pytest.raises(GradcheckError, match="the backward pass computes no gradient, finite differences 2"):
        gradcheck(lambda x: (x, vg.Tensor(x.tolist()) * 2.0), leaf_of(1.0))


def test_a_wrong_forward_formula():
    fn = operator(
        "tilted",
        forward=lambda a, b: a * b,
        derivatives={"self": "grad * other", "other": "grad * self"},
        forward_derivative="self_t * other_p + 3 * self_p * other_t",
    )
    inputs = (leaf(1.0, 2.0), leaf(3.0, 4.0))
    assert gradcheck(fn, inputs)
    with pytest.raises(GradcheckError, match=r"with respect to input 1\[1\]: forward mode computes 6, finite"):
        gradcheck(fn, inputs, check_forward_ad=True)


def test_nan_is_wrong_even_if_both_numbers_are_nan():
    with pytest.raises(GradcheckError, match="nan"):
        gradcheck(lambda x: x * float("nan"), leaf_of(1.0))


def test_a_tolerance_is_a_tolerance():
    fn = operator("slightly", forward=np.multiply, derivatives={"self": "grad * other * 1.01"}, elementwise=True)
    assert gradcheck(lambda x: fn(x, 2.0), leaf_of(1.0), rtol=0.02)
    assert not gradcheck(lambda x: fn(x, 2.0), leaf_of(1.0), rtol=0.005, raise_exception=False)


def test_a_gradient_of_the_wrong_shape():
    fn = operator("misshapen", forward=lambda a, b: a * b, derivatives={"self": "grad"})
    fn.node_class.apply = lambda node, grad, edges: np.ones(3)
    with pytest.raises(GradcheckError, match=r"has shape \(3,\) .*; the input has shape \(2,\)"):
        gradcheck(lambda x: fn(x, 1.0), leaf(1.0, 2.0))


@formula_function
def without_history(x):
    return x.detach() if isinstance(x, vg.Tensor) else x


def test_wrong_second_derivatives_of_correct_first_derivatives():
    derivatives = {"self": "grad * other", "other": "grad * without_history(self)"}
    fn = operator("detached", forward=lambda a, b: a * b, derivatives=derivatives)
    inputs = (leaf(1.0, 2.0), leaf(3.0, 4.0))
    assert gradcheck(fn, inputs)
    with pytest.raises(GradcheckError, match=r"in the second derivatives: .*output 1"):
        gradgradcheck(fn, inputs)
    assert not gradgradcheck(fn, inputs, raise_exception=False)


@formula_function
def twice_or_thrice(x):
    return x * (3.0 if isinstance(x, vg.Tensor) else 2.0)


def test_a_recorded_run_that_differs_from_the_plain_one():
    fn = operator("forked", forward=lambda a, b: a * 2.0, derivatives={"self": "twice_or_thrice(grad)"})
    assert gradcheck(lambda x: fn(x, 0.0), leaf_of(1.0))
    with pytest.raises(GradcheckError, match="create_graph"):
        gradgradcheck(lambda x: fn(x, 0.0), leaf_of(1.0))


def test_a_function_that_is_not_repeatable():
    generator = np.random.default_rng(0)
    with pytest.raises(GradcheckError, match="not repeatable"):
        gradcheck(lambda x: x * generator.uniform(), leaf_of(1.0))
    assert gradcheck(lambda x: x * (1.0 + 1e-9 * generator.uniform()), leaf_of(1.0), nondet_tol=1e-6, atol=1e-2)


CALLS = []


@formula_function
def drifting_double(x):
    CALLS.append(x)
    return x * (2.0 + 1e-7 * len(CALLS))


def test_a_backward_pass_that_is_not_repeatable():
    fn = operator("drifting", forward=lambda a, b: a * 2.0, derivatives={"self": "drifting_double(grad)"})
    with pytest.raises(GradcheckError, match="backward pass is not repeatable"):
        gradcheck(lambda x: fn(x, 0.0), leaf_of(1.0))
    assert gradcheck(lambda x: fn(x, 0.0), leaf_of(1.0), nondet_tol=1e-3) is True


def test_outputs_whose_shape_depends_on_values():
    with pytest.raises(GradcheckError, match="small change of input 0 changes the outputs"):
        gradcheck(lambda x: x[: 1 + (x[0].item() > 1.0)], leaf(1.0, 2.0))


# -- what cannot be checked ------------------------------------------------------------------------------------------


def test_invalid_arguments_raise():
    with pytest.raises(ValueError, match="at least one input tensor that requires grad"):
        gradcheck(lambda x: x, vg.ones(2))
    with pytest.raises(ValueError, match="returns a tensor"):
        gradcheck(lambda x: 3.0, leaf_of(1.0))
    with pytest.raises(ValueError, match="share memory"):
        gradcheck(lambda x: x * x, leaf_of(1.0).expand(3))
    with pytest.warns(UserWarning, match="float32.*not precise enough"):
        gradcheck(lambda x: x * x, leaf_of(1.0, dtype=np.float32), raise_exception=False)
    assert gradcheck(lambda x: x * x, leaf_of(1.0, dtype=np.float32), eps=1e-2, atol=1e-2)


def ignoring(backward):
    """x * x with another backward pass."""

    class Square(vg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return (x * x).sum()

        @staticmethod
        def backward(ctx, g):
            return backward(ctx.saved_tensors[0], g)

    return Square.apply


@pytest.mark.parametrize(
    "backward",
    [lambda x, g: 2 * x, lambda x, g: 2 * x * abs(g), lambda x, g: 2 * x * g * g, lambda x, g: 2 * x * (g + 0 * g**0)],
)
def test_a_backward_pass_is_linear_in_the_gradient_that_it_is_given(backward):
    x = leaf(0.5, -2.0)
    right = (backward(vg.Tensor([1.0]), vg.Tensor(3.0)) == 6.0).all() and (
        backward(vg.Tensor([1.0]), vg.Tensor(-3.0)) == -6.0
    ).all()
    if right:
        assert gradcheck(ignoring(backward), x)
    else:
        with pytest.raises(GradcheckError, match="by linearity"):
            gradcheck(ignoring(backward), x)


def test_forward_mode_alone():
    class Cube(vg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_forward(x)
            return x * x * x

        @staticmethod
        def jvp(ctx, tangent):
            (x,) = ctx.saved_tensors
            return 3 * x * x * tangent

    assert gradcheck(Cube.apply, leaf(0.5, 2.0), check_backward_ad=False, check_forward_ad=True)
    with pytest.raises(NotImplementedError):
        gradcheck(Cube.apply, leaf(0.5, 2.0), check_forward_ad=True)
    with pytest.raises(ValueError, match="nothing to check"):
        gradcheck(Cube.apply, leaf(0.5, 2.0), check_backward_ad=False)
    Cube.jvp = staticmethod(lambda ctx, tangent: 2 * tangent)
    with pytest.raises(GradcheckError, match="forward mode computes"):
        gradcheck(Cube.apply, leaf(0.5, 2.0), check_backward_ad=False, check_forward_ad=True)


@pytest.mark.parametrize("jvp", [lambda x, t: 2 * x, lambda x, t: 2 * x * abs(t), lambda x, t: 2 * x * t * t])
def test_forward_mode_is_linear_in_the_tangent_that_it_is_given(jvp):
    class Square(vg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_forward(x)
            return x * x

    Square.jvp = staticmethod(lambda ctx, tangent: jvp(ctx.saved_tensors[0], tangent))
    with pytest.raises(GradcheckError, match="by linearity"):
        gradcheck(Square.apply, leaf(0.5), check_backward_ad=False, check_forward_ad=True)
