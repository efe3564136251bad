"""Derivative declarations: the language, its validation, saved values, generated code, and operators of users."""

from __future__ import annotations

import gc
import linecache
import subprocess
import sys
import traceback
import weakref

import numpy as np
import pytest
from leaves import spaced_leaf

import viewgrad as vg
from viewgrad.autograd import define_op, gradcheck, gradgradcheck
from viewgrad.errors import DeclarationError, GradientMismatchError, GradientNotImplementedError
from viewgrad.operators.define import OPERATORS
from viewgrad.operators.language.spec import InPlace
from viewgrad.operators.language.validate import check_functions
from viewgrad.operators.listing import listed
from viewgrad.views.geometry import TensorGeometry

TWO = "bad(self) -> (first, second)"
AMBIGUOUS = "only grads[0] is used; if that is the only differentiable output, write grad and put the others into "
AMBIGUOUS += "nondifferentiable_outputs; otherwise a gradient is ignored"

# Declarations that validation rejects, and its messages.
REJECTED = {
    "unknown name": (
        ("bad(self, *, n)", {"self": "grad * y"}, {}),
        "operator 'bad', formula 'grad * y' for self, position 8: unknown name 'y'; a formula reads the arguments "
        "(self, n), the outputs (result) and the incoming gradient (grad)",
    ),
    "unknown function": (
        ("bad(self)", {"self": "grad * nothing(self)"}, {}),
        "operator 'bad', formula 'grad * nothing(self)' for self, position 8: unknown function 'nothing'; a formula "
        "calls operators and functions of formula_function",
    ),
    "result out of range": (
        (TWO, {"self": "grads[0] * result2 + grads[1]"}, {}),
        "operator 'bad', formula 'grads[0] * result2 + grads[1]' for self, position 12: no output is named 'result2'; "
        "the outputs are first, second",
    ),
    "result of several": (
        (TWO, {"self": "grads[0] * result + grads[1]"}, {}),
        "operator 'bad', formula 'grads[0] * result + grads[1]' for self, position 12: no output is named 'result'; "
        "the outputs are first, second",
    ),
    "grad mixed with grads": (
        (TWO, {"self": "grads[1] + grad"}, {}),
        "operator 'bad', formula 'grads[1] + grad' for self, position 12: grad cannot be mixed with grads; write "
        "grads[0] instead of grad, or name the gradients",
    ),
    "grad mixed with grads in two formulas": (
        ("bad(self, other) -> (first, second)", {"self": "grads[0] + grads[1]", "other": "2 * grad"}, {}),
        "operator 'bad', formula '2 * grad' for other, position 5: grad cannot be mixed with grads; write "
        "grads[0] instead of grad, or name the gradients",
    ),
    "grads[0] alone, one output": (
        ("bad(self)", {"self": "2 * grads[0]"}, {}),
        f"operator 'bad', formula '2 * grads[0]' for self, position 5: {AMBIGUOUS}",
    ),
    "grads[0] alone, two outputs": (
        (TWO, {"self": "grads[0]"}, {}),
        f"operator 'bad', formula 'grads[0]' for self, position 1: {AMBIGUOUS}",
    ),
    "named gradients mixed with grad": (
        (TWO, {"self": "grad_first + grad"}, {}),
        "operator 'bad', formula 'grad_first + grad' for self, position 1: grad_first cannot be mixed with grad; "
        "name all gradients",
    ),
    "named gradients mixed with grads": (
        (TWO, {"self": "grads[1] + grad_first"}, {}),
        "operator 'bad', formula 'grads[1] + grad_first' for self, position 12: grad_first cannot be mixed with grads; "
        "name all gradients",
    ),
    "index out of range": (
        (TWO, {"self": "grads[0] + grads[2]"}, {}),
        "operator 'bad', formula 'grads[0] + grads[2]' for self, position 12: grads[2] is out of range; the operator "
        "has 2 outputs",
    ),
    "negative index": (
        (TWO, {"self": "grads[0] + grads[-1]"}, {}),
        "operator 'bad', formula 'grads[0] + grads[-1]' for self, position 12: grads[-1] is out of range; the operator "
        "has 2 outputs",
    ),
    "gradient of no output": (
        (TWO, {"self": "grad_first + grad_third"}, {}),
        "operator 'bad', formula 'grad_first + grad_third' for self, position 14: no output is named 'third'; the "
        "outputs are first, second",
    ),
    "nondifferentiable output that is none": (
        (TWO, {"self": "grad_first"}, {"nondifferentiable_outputs": ["third"]}),
        "operator 'bad': nondifferentiable_outputs has 'third', but the outputs are first, second",
    ),
    "gradient that never arrives": (
        (TWO, {"self": "grad_first + grad_second"}, {"nondifferentiable_outputs": ["second"]}),
        "operator 'bad', formula 'grad_first + grad_second' for self, position 14: no gradient arrives at 'second', "
        "which is in nondifferentiable_outputs",
    ),
    "grad of several outputs": (
        (TWO, {"self": "grad"}, {}),
        "operator 'bad', formula 'grad' for self, position 1: 2 outputs are differentiable; for grad, write grads[i], "
        "or grad_first or grad_second",
    ),
    "ignored gradient": (
        (TWO, {"self": "grad_second"}, {}),
        "operator 'bad': no formula reads the gradient of 'first'; put that into nondifferentiable_outputs",
    ),
    "self without formula": (
        ("bad(self, other)", {"other": "grad"}, {}),
        "operator 'bad': the input 'self' has no formula; give it one, or 'not_differentiable', or "
        "'not_implemented(\"reason\")'",
    ),
    "tensor without formula": (
        ("bad(self, other: Tensor)", {"self": "grad"}, {}),
        "operator 'bad': the input 'other' has no formula; give it one, or 'not_differentiable', or "
        "'not_implemented(\"reason\")'",
    ),
    "list without formula": (
        ("bad(tensors)", {}, {"lists": ["tensors"]}),
        "operator 'bad': the input 'tensors' has no formula; give it one, or 'not_differentiable', or "
        "'not_implemented(\"reason\")'",
    ),
    "tangent of an input without formula": (
        ("bad(self, other)", {"self": "grad"}, {"forward_derivative": "self_t + other_t"}),
        "operator 'bad', forward-mode formula 'self_t + other_t' for result, position 10: the input 'other' has no "
        "formula, so it is not a tensor; give it one, or read 'other' itself",
    ),
    "formula for no input": (
        ("bad(self)", {"self": "grad", "other": "grad"}, {}),
        "operator 'bad': there is a formula for 'other', but the arguments are self",
    ),
    "duplicate formula": (
        ("bad(self, other)", {"self, other": "grad, -grad", "other": "grad"}, {}),
        "operator 'bad': there are two formulas for 'other': 'grad, -grad' and 'grad'",
    ),
    "bare input in forward mode": (
        ("bad(self)", {"self": "grad"}, {"forward_derivative": "self_t * exp(self)"}),
        "operator 'bad', forward-mode formula 'self_t * exp(self)' for result, position 14: 'self' is ambiguous here; "
        "write self_p for its value, and self_t for its tangent",
    ),
    "tangent of what has none": (
        (
            "bad(self, index)",
            {"self": "grad", "index": "not_differentiable"},
            {"forward_derivative": "self_t * index_t"},
        ),
        "operator 'bad', forward-mode formula 'self_t * index_t' for result, position 10: 'index' is not "
        "differentiable, so it has no tangent",
    ),
    "gradient in forward mode": (
        ("bad(self)", {"self": "grad"}, {"forward_derivative": "self_t * grad"}),
        "operator 'bad', forward-mode formula 'self_t * grad' for result, position 10: 'grad' is the incoming "
        "gradient, which forward mode does not have",
    ),
    "unknown name in forward mode": (
        ("bad(self, *, n)", {"self": "grad"}, {"forward_derivative": "self_t * y"}),
        "operator 'bad', forward-mode formula 'self_t * y' for result, position 10: unknown name 'y'; a forward-mode "
        "formula reads the inputs (self_p), their tangents (self_t), the outputs (result) and the other arguments (n)",
    ),
    "unknown function in forward mode": (
        ("bad(self)", {"self": "grad"}, {"forward_derivative": "nothing(self_t)"}),
        "operator 'bad', forward-mode formula 'nothing(self_t)' for result, position 1: unknown function 'nothing'; a "
        "formula calls operators and functions of formula_function",
    ),
    "forward mode of no output": (
        (TWO, {"self": "grads[0] + grads[1]"}, {"forward_derivative": {"first": "self_t", "third": "self_t"}}),
        "operator 'bad': there is a forward-mode formula for 'third', which is not an output; those are first, second",
    ),
    "forward mode twice": (
        (
            TWO,
            {"self": "grads[0] + grads[1]"},
            {"forward_derivative": {"first": "self_t", "first, second": "self_t, self_t"}},
        ),
        "operator 'bad': there are two forward-mode formulas for 'first': 'self_t' and 'self_t, self_t'",
    ),
    "forward mode missing": (
        (TWO, {"self": "grads[0] + grads[1]"}, {"forward_derivative": {"first": "self_t"}}),
        "operator 'bad': the output 'second' has no forward-mode formula; the others have",
    ),
    "overwritten original": (
        ("bad(self)", {"self": "grad"}, {"inplace": InPlace(forward_derivative="self_t * exp(self_p)")}),
        "operator 'bad', forward-mode formula 'self_t * exp(self_p)' for result, position 14: 'self_p' is the value "
        "before the write, which is gone when an in-place variant's tangent is computed; read result",
    ),
    "auto_element_wise of two inputs": (
        ("bad(self, other)", {"self": "grad", "other": "grad"}, {"forward_derivative": "auto_element_wise"}),
        "operator 'bad', forward-mode formula 'auto_element_wise' for result, position 1: auto_element_wise needs one "
        "differentiable input and one differentiable output, not 2 and 1",
    ),
    "auto_element_wise of two outputs": (
        (TWO, {"self": "grads[0] + grads[1]"}, {"forward_derivative": "auto_element_wise"}),
        "operator 'bad', forward-mode formula 'auto_element_wise' for first, second, position 1: auto_element_wise "
        "needs one differentiable input and one differentiable output, not 1 and 2",
    ),
    "auto_linear of two outputs": (
        (TWO, {"self": "grads[0] + grads[1]"}, {"forward_derivative": "auto_linear"}),
        "operator 'bad', forward-mode formula 'auto_linear' for first, second, position 1: auto_linear needs one "
        "differentiable output, not 2",
    ),
    "auto_linear of one of two outputs": (
        (TWO, {"self": "grads[0] + grads[1]"}, {"forward_derivative": {"first": "auto_linear", "second": "self_t"}}),
        "operator 'bad', forward-mode formula 'auto_linear' for first, position 1: auto_linear needs one "
        "differentiable output, not 2",
    ),
    "syntax error": (
        ("bad(self)", {"self": "grad * (self"}, {}),
        "operator 'bad', formula 'grad * (self' for self, position 8: syntax error: '(' was never closed",
    ),
    "syntax error in forward mode": (
        ("bad(self)", {"self": "grad"}, {"forward_derivative": " self_t *+* 2"}),
        "operator 'bad', forward-mode formula ' self_t *+* 2' for result, position 11: syntax error: invalid syntax",
    ),
    "tuple of another length": (
        ("bad(self, other)", {"self, other": "grad, grad, grad"}, {}),
        "operator 'bad', formula 'grad, grad, grad' for self, other, position 1: expected 2 gradients, not a "
        "tuple of 3",
    ),
    "tuple for one": (
        ("bad(self)", {"self": "grad,"}, {}),
        "operator 'bad', formula 'grad,' for self, position 1: expected 1 gradient, not a tuple of 1",
    ),
    "strides of another input": (
        ("bad(self, other)", {"self": "grad", "other": "where(self.strides, grad, 0)"}, {}),
        "operator 'bad', formula 'where(self.strides, grad, 0)' for other, position 7: self.strides may be read only "
        "in a formula for 'self' alone",
    ),
    "strides shared with another input": (
        ("bad(self, other)", {"self, other": "where(self.strides, grad, 0), grad"}, {}),
        "operator 'bad', formula 'where(self.strides, grad, 0), grad' for self, other, position 7: self.strides may be "
        "read only in a formula for 'self' alone",
    ),
    "strides in place": (
        ("bad(self)", {"self": "where(self.strides, grad, 0)"}, {"inplace": True}),
        "operator 'bad', formula 'where(self.strides, grad, 0)' for self, position 7: self.strides may not be read in "
        "an operator with an in-place variant, whose strides may differ",
    ),
    "not_implemented in a term": (
        ("bad(self)", {"self": "grad + not_implemented('reason')"}, {}),
        "operator 'bad', formula \"grad + not_implemented('reason')\" for self, position 8: not_implemented must "
        'be the whole formula, with a reason: not_implemented("reason")',
    ),
    "call of an output": (
        (TWO, {"self": "grads[0] + first(grads[1])"}, {}),
        "operator 'bad', formula 'grads[0] + first(grads[1])' for self, position 12: 'first' is an output here, so it "
        "cannot be called",
    ),
    "list beside a tensor": (
        ("bad(tensors, self)", {"tensors": "[grad]", "self": "grad"}, {"lists": ["tensors"]}),
        "operator 'bad': an operator with the list 'tensors' can have no other tensor argument; put it into the list",
    ),
    "in place with two outputs": (
        (TWO, {"self": "grads[0] + grads[1]"}, {"inplace": True}),
        "operator 'bad': an in-place variant has one output, not 2",
    ),
    "in place on a number": (
        ("bad(n, self)", {"self": "grad"}, {"inplace": True}),
        "operator 'bad': an in-place variant writes to the first argument, which must be a tensor",
    ),
    "name of a row": (
        ("exp(self)", {"self": "grad"}, {}),
        "operator 'exp': this name is taken by the library; choose another name",
    ),
    "name of a formula function": (
        ("expand_reduced(self)", {"self": "grad"}, {}),
        "operator 'expand_reduced': this name is taken by the library; choose another name",
    ),
    "argument that generated code uses": (
        ("bad(self, node)", {"self": "grad"}, {}),
        "operator 'bad': no argument can be called 'node', which generated code uses; choose another",
    ),
    "starred arguments": (
        ("bad(self, *rest)", {"self": "grad"}, {}),
        "operator 'bad(self, *rest)': *args, **kwargs and / are not supported; name every argument",
    ),
    "signature that is none": (
        ("bad(self", {"self": "grad"}, {}),
        "operator 'bad(self': the signature cannot be read: invalid syntax",
    ),
}


@pytest.mark.parametrize("case", REJECTED)
def test_the_checker_rejects(case):
    (signature, derivatives, options), message = REJECTED[case]
    with pytest.raises(DeclarationError) as caught:
        define_op(signature, forward=np.exp, derivatives=derivatives, **options)
    assert caught.value.message == message
    assert "bad" not in OPERATORS


def test_an_error_names_the_operator_the_formula_and_the_position():
    with pytest.raises(DeclarationError) as caught:
        define_op("bad(self)", forward=np.exp, derivatives={"self": "grad * y"})
    error = caught.value
    assert (error.operator, error.formula, error.position) == ("bad", "grad * y", 8)
    assert isinstance(error, ValueError)


def test_positions_count_characters_and_not_bytes():
    with pytest.raises(DeclarationError) as caught:
        define_op("bad(self, ä)", forward=np.exp, derivatives={"self": "  grad * ä * y"})
    assert caught.value.position == 14


def test_a_rejected_definition_changes_nothing():
    before = vg.exp
    with pytest.raises(DeclarationError):
        define_op("exp(self)", forward=np.sin, derivatives={"self": "grad"})
    x = vg.Tensor([0.5], requires_grad=True)
    vg.exp(x).backward()
    assert vg.exp is before
    np.testing.assert_allclose(x.grad.numpy(), np.exp([0.5]))


def test_functions_in_the_formulas_of_rows_are_checked_when_they_are_read():
    with pytest.raises(DeclarationError) as caught:
        check_functions("mul", OPERATORS["mul"].reading, lambda name: name != "conj")
    assert caught.value.message == (
        "operator 'mul', formula 'grad * conj(other)' for self, position 8: unknown function 'conj'; a formula calls "
        "operators and functions of formula_function"
    )


def test_names_bound_in_a_formula_are_its_own():
    op = define_op(
        "polynomial(self, *, powers)",
        forward=lambda x, *, powers: np.sum([x**n for n in powers], axis=0),
        derivatives={"self": "grad * stack([n * self ** (n - 1) for n in powers]).sum(0)"},
    )
    x = vg.Tensor([1.0, 2.0], requires_grad=True)
    op(x, powers=(2, 3)).sum().backward(create_graph=True)
    assert x.grad.tolist() == [5.0, 16.0]
    assert gradgradcheck(lambda x: op(x, powers=(2, 3)), (x,))


# -- formulas ----------------------------------------------------------------------------------------------------------


def test_one_formula_for_several_inputs():
    op = define_op(
        "sum_and_difference(self, other)",
        forward=lambda a, b: 2 * a - 3 * b,
        derivatives={"self, other": "2 * grad, -3 * grad"},
        elementwise=True,
    )
    a, b = vg.Tensor([1.0], requires_grad=True), vg.Tensor([2.0], requires_grad=True)
    op(a, b).backward()
    assert (a.grad.item(), b.grad.item()) == (2.0, -3.0)


@vg.autograd.formula_function
def combined(grads, x):
    """Return the gradient of a sine and a cosine."""
    return grads[0] * np.cos(x) - grads[1] * np.sin(x)


@pytest.mark.parametrize(
    "formula",
    [
        "grads[0] * cos(self) - grads[1] * sin(self)",
        "grad_s * cos(self) - grad_c * sin(self)",
        "combined(grads, self)",
        "grads[0] * c - grads[1] * s",
        "grads[0] * result1 - grads[1] * result0",
    ],
)
def test_several_outputs_by_index_by_name_and_whole(formula):
    op = define_op("sincos(self) -> (s, c)", forward=lambda x: (np.sin(x), np.cos(x)), derivatives={"self": formula})
    x = vg.Tensor(np.linspace(-1, 1, 5), requires_grad=True)
    s, c = op(x)
    assert (s.grad_fn.name(), s.output_nr, c.output_nr) == ("SincosBackward", 0, 1)
    assert gradcheck(lambda x: op(x)[0] * op(x)[1], (x,))
    assert gradgradcheck(lambda x: op(x)[0] * op(x)[1], (x,))
    (only_c,) = vg.autograd.grad(c.sum(), x)  # the gradient of s is undefined
    np.testing.assert_allclose(only_c.numpy(), -np.sin(x.detach().numpy()))


def test_an_output_that_is_not_differentiable():
    op = define_op(
        "with_sign(self) -> (sign, magnitude)",
        forward=lambda x: (np.sign(x), np.abs(x)),
        derivatives={"self": "grad * sign"},
        nondifferentiable_outputs=["sign"],
        forward_derivative="self_t * sign",
    )
    x = vg.Tensor([-2.0, 3.0], requires_grad=True)
    sign, magnitude = op(x)
    assert not sign.requires_grad and magnitude.requires_grad
    (magnitude * sign).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_not_differentiable_and_integer_arguments():
    op = define_op(
        "scaled_where(self, mask, n=1)",
        forward=lambda x, mask, n=1: np.where(mask, x * n, x),
        derivatives={"self": "where(mask, grad * n, grad)", "mask": "not_differentiable"},
        forward_derivative="where(mask, self_t * n, self_t)",
    )
    x = vg.Tensor([1.0, 2.0], requires_grad=True)
    op(x, vg.Tensor([True, False]), 3).sum().backward()
    assert x.grad.tolist() == [3.0, 1.0]
    assert op(x.detach(), [True, False]).tolist() == [1.0, 2.0]
    assert gradgradcheck(lambda x: op(x, [True, False], n=3), (x,))


def test_not_implemented_raises_only_when_the_gradient_is_needed():
    op = define_op(
        "half_done(self, other)",
        forward=lambda a, b: a * b,
        derivatives={"self": "grad * other", "other": 'not_implemented("nobody has asked for it")'},
        elementwise=True,
    )
    a, b = vg.Tensor([2.0], requires_grad=True), vg.Tensor([3.0], requires_grad=True)
    op(a, b.detach()).backward()
    assert a.grad.item() == 3.0
    out = op(a, b)
    assert out.requires_grad
    assert vg.autograd.grad(out, a, retain_graph=True)[0].item() == 3.0
    with pytest.raises(GradientNotImplementedError) as caught:
        vg.autograd.grad(out, b)
    message = "the gradient of other of operator 'half_done' is not implemented: nobody has asked for it"
    assert caught.value.message == message


# -- saved values ------------------------------------------------------------------------------------------------------


def saved_bytes(tensor):
    """Return the bytes of the arrays that the node of a tensor keeps."""
    node = tensor.grad_fn
    total = 0
    for name in type(node).__slots__:
        value = getattr(node, name, None)
        for item in value if isinstance(value, list | tuple) else [value]:
            array = getattr(item, "array", item)
            total += array.nbytes if isinstance(array, np.ndarray | np.generic) else 0
    return total


def test_saved_bytes():
    x, c = spaced_leaf(100), vg.ones(100)
    assert saved_bytes(x + c) == 0
    assert saved_bytes(x + x) == 0
    assert saved_bytes(x * c) == 800
    assert saved_bytes(c * x) == 800
    assert saved_bytes(x * 2.0) == 8
    assert saved_bytes(x * spaced_leaf(100)) == 1600
    assert saved_bytes(vg.exp(x)) == 800
    assert saved_bytes(x.sum()) == 0
    assert saved_bytes(vg.concatenate([x, x])) == 0
    assert saved_bytes(vg.stack([x, c])) == 0


def test_an_operand_that_needs_no_gradient_saves_nothing():
    x, c = spaced_leaf(100), vg.ones(100)
    node = (x * c).grad_fn
    assert node.saved_other.array is c._array
    assert not hasattr(node, "saved_self")
    node = (c * x).grad_fn
    assert node.saved_self.array is c._array
    assert not hasattr(node, "saved_other")


def test_exp_saves_its_result_and_no_copy_of_it():
    x = spaced_leaf(3)
    y = vg.exp(x)
    assert y.grad_fn.saved_names == ("result",)
    assert y.grad_fn.saved_result.array is y._array


def test_sum_saves_a_shape():
    node = spaced_leaf(2, 3).sum(axis=0).grad_fn
    assert node.saved_names == ()
    assert node.saved_self_shape == (2, 3)
    assert OPERATORS["sum"].saved("self") == ("self_shape", "axis", "keepdims")


def test_saved_lists_the_values_of_a_formula():
    assert OPERATORS["mul"].saved("self") == ("other",)
    assert OPERATORS["mul"].saved("other") == ("self",)
    assert OPERATORS["add"].saved("self") == ()
    assert OPERATORS["exp"].saved("self") == ("result",)
    with pytest.raises(DeclarationError, match="operator 'equal' has no gradient for 'self', only for nothing"):
        OPERATORS["equal"].saved("self")


@pytest.mark.parametrize(
    ("formula", "slot", "value"),
    [
        ("grad.reshape(self.shape)", "self_shape", (2, 3)),
        ("grad.reshape(self.shape[0], self.shape[1])", "self_shape", (2, 3)),
        ("grad.astype(self.dtype)", "self_dtype", np.dtype(float)),
        ("grad * self.size / self.size", "self_size", 6),
        ("grad * self.ndim / self.ndim", "self_ndim", 2),
        ("grad * (self.strides[0] > 0)", "self_strides", (24, 8)),
        ("grad * (TensorGeometry(self).storage_offset == 0)", "self_geometry", TensorGeometry((2, 3), (3, 1), 0)),
        ("grad + zeros_like(self)", "self_shape", (2, 3)),
        ("grad + zeros_like(self)", "self_dtype", np.dtype(float)),
        ("grad * (result.size == 6)", "result_size", 6),
        ("grad + zeros_like(result)", "result_shape", (2, 3)),
        ("grad * n / 2", "n", 2),
    ],
)
def test_formulas_of_shapes_save_no_arrays(formula, slot, value):
    op = define_op(
        "copied(self, n=2)", forward=lambda x, n=2: x.copy(), derivatives={"self": formula}, forward_derivative="self_t"
    )
    x = spaced_leaf(2, 3)
    y = op(x)
    assert saved_bytes(y) == 0
    assert getattr(y.grad_fn, f"saved_{slot}") == value
    assert slot in op.saved("self")
    y.sum().backward()
    assert x.grad.tolist() == np.ones((2, 3)).tolist()
    assert gradgradcheck(op, (x,))


@vg.autograd.formula_function
def cut(grad, shapes, dtypes):
    """Return the pieces of the gradient of a concatenation."""
    starts = np.cumsum([0, *(length for (length,) in shapes)])
    return [grad[start : start + n].astype(dtype) for start, (n,), dtype in zip(starts, shapes, dtypes)]


def test_metadata_of_a_list_of_tensors():
    op = define_op(
        "joined(tensors)",
        forward=lambda tensors: np.concatenate(tensors),
        derivatives={"tensors": "cut(grad, tensors.shapes, tensors.dtypes)"},
        lists=["tensors"],
        forward_derivative="auto_linear",
    )
    a, b = spaced_leaf(2), vg.Tensor(np.ones(3, np.float32), requires_grad=True)
    y = op([a, b])
    assert y.grad_fn.saved_tensors_shapes == [(2,), (3,)]
    assert y.grad_fn.saved_tensors_dtypes == [np.dtype(np.float64), np.dtype(np.float32)]
    assert saved_bytes(y) == 0
    (y * vg.arange(5.0)).sum().backward()
    assert (a.grad.tolist(), b.grad.tolist()) == ([0.0, 1.0], [2.0, 3.0, 4.0])
    assert b.grad.dtype == np.float32
    assert gradgradcheck(lambda a, b: op([a, b]) ** 2, (a, spaced_leaf(3)))


def test_a_list_whose_values_are_saved():
    op = define_op(
        "product_of(tensors)",
        forward=lambda tensors: np.prod(tensors, axis=0),
        derivatives={"tensors": "[grad * result / tensor for tensor in tensors]"},
        lists=["tensors"],
        forward_derivative="stack([t / p for t, p in zip(tensors_t, tensors_p)]).sum(0) * result",
    )
    a, b = spaced_leaf(3), spaced_leaf(3)
    assert gradcheck(lambda a, b: op([a, b, a]), (a, b))
    assert gradgradcheck(lambda a, b: op([a, b]), (a, b))
    y = op([a, b])
    y.sum().backward()
    with pytest.raises(vg.errors.FreedGraphError):
        y.sum().backward()


def test_a_graph_is_freed_without_the_garbage_collector():
    op = define_op(
        "kept(self)", forward=np.exp, derivatives={"self": "grad * result"}, forward_derivative="auto_element_wise"
    )
    gc.collect()
    gc.disable()
    try:
        x = spaced_leaf(3)
        node = weakref.ref(op(x).grad_fn)
        assert node() is None
        y = op(op(x))
        node = weakref.ref(y.grad_fn)
        del y
        assert node() is None
    finally:
        gc.enable()


# -- in place ----------------------------------------------------------------------------------------------------------


def history(program, *leaves):
    """Return the value of a program, and the gradients of its sum weighted by sines."""
    leaves = [vg.Tensor(a, requires_grad=True) for a in leaves]
    out = program(*leaves)
    weights = np.sin(1 + np.arange(out.size)).reshape(out.shape).astype(out.dtype)
    grads = vg.autograd.grad((out * weights).sum(), leaves, allow_unused=True)
    return out.detach().numpy(), [None if g is None else g.numpy() for g in grads]


def same_histories(first, second, *leaves):
    """Check that two programs have the same values and gradients."""
    (value, grads), (other, other_grads) = history(first, *leaves), history(second, *leaves)
    np.testing.assert_allclose(value, other)
    assert value.dtype == other.dtype
    for grad, other_grad in zip(grads, other_grads, strict=True):
        np.testing.assert_allclose(grad, other_grad, rtol=1e-6)
        assert grad.dtype == other_grad.dtype


A = np.linspace(0.5, 1.5, 12).reshape(3, 4)


def test_the_result_is_saved_after_the_write():
    x = vg.Tensor(A, requires_grad=True)
    y = x * 1.0
    y.exp_()
    node = y.grad_fn
    assert node.name() == "ExpBackward"
    assert node.saved_result.array is y._array  # no copy of anything was made
    assert y._storage.preserved is None


def test_inputs_are_saved_before_the_write():
    same_histories(lambda x: (x * 1.0).sin_(), lambda x: vg.sin(x), A)
    same_histories(lambda x: (x * 1.0).square_().cos_(), lambda x: vg.cos(vg.square(x)), A)


def test_an_operand_that_is_the_target():
    def squared(x):
        y = x * 1.0
        return y.mul_(y)

    def quotient(x):
        y = x * 1.0
        y.div_(y.detach())
        return y

    same_histories(squared, lambda x: x * x, A)
    same_histories(quotient, lambda x: x / x.detach(), A)
    same_histories(lambda x: (y := x * 1.0).mul_(y.T), lambda x: x * x.T, A[:3, :3])


@pytest.mark.parametrize("view", [lambda y: y, lambda y: y[1:], lambda y: y.T, lambda y: y[::2, 1::2], lambda y: y[1]])
@pytest.mark.parametrize("name", ["exp", "sin", "sqrt", "reciprocal", "sigmoid", "relu", "neg"])
def test_in_place_operators_through_views_match_out_of_place(name, view):
    def in_place(x):
        y = x * 1.0
        getattr(view(y), f"{name}_")()
        return y

    def out_of_place(x):
        y = x * 1.0
        view(y)[...] = getattr(vg, name)(view(y))
        return y

    same_histories(in_place, out_of_place, A)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("other", [A[0], A[:1], A[0, 0], A.astype(np.float32)])
def test_in_place_operators_broadcast_and_cast_as_out_of_place(dtype, other):
    a = A.astype(dtype)
    for name in ("add", "sub", "mul", "div"):
        same_histories(
            lambda x, y, name=name: getattr(x * 1.0, f"{name}_")(y),
            lambda x, y, name=name: getattr(vg, name)(x, y).astype(dtype),
            a,
            other,
        )


def test_an_in_place_variant_does_not_broadcast_its_target():
    x = vg.zeros(3)
    with pytest.raises(ValueError):
        x.add_(vg.ones(2, 3))
    spread = define_op("spread(self, n)", forward=lambda x, n: x.sum() * n, derivatives={"self": "grad"}, inplace=True)
    with pytest.raises(ValueError, match=r"a result of shape \(\) cannot be written to a tensor of shape \(3,\)"):
        spread.inplace(x, 2)


def test_write_without_derivative_ends_the_history():
    cut_off = define_op("rounded(self)", forward=np.round, derivatives={"self": "not_differentiable"}, inplace=True)
    for window in (lambda y: y, lambda y: y[1:]):
        x = vg.Tensor(A, requires_grad=True)
        y = x * 2.0
        cut_off.inplace(window(y))
        (grad,) = vg.autograd.grad(y.sum(), x, materialize_grads=True)
        expected = np.full(A.shape, 2.0)
        window(expected)[...] = 0
        np.testing.assert_array_equal(grad.numpy(), expected)
    only_other = define_op(
        "replaced(self, other)",
        forward=lambda a, b: np.round(a) + b,
        derivatives={"self": "not_differentiable", "other": "grad"},
        inplace=True,
    )
    x = vg.Tensor(A, requires_grad=True)
    y = x * 2.0
    only_other.inplace(y, vg.ones(3, 4))
    assert vg.autograd.grad(y.sum(), x, allow_unused=True) == (None,)


def test_a_row_can_declare_its_in_place_variant():
    calls = []

    def forward(x):
        calls.append("in place")
        return 1 / (1 + np.exp(-x))

    op = define_op(
        "logistic(self)",
        forward=lambda x: 1 / (1 + np.exp(-x)),
        derivatives={"self": "grad * exp(-self) / square(1 + exp(-self))"},
        forward_derivative="self_t * exp(-self_p) / square(1 + exp(-self_p))",
        inplace=InPlace(
            forward=forward,
            derivatives={"self": "grad * result * (1 - result)"},
            forward_derivative="self_t * result * (1 - result)",
        ),
    )
    assert op.saved("self") == ("self",)
    x = vg.Tensor(A, requires_grad=True)
    assert op(x).grad_fn.saved_names == ("self",)
    y = op.inplace(x * 1.0)
    assert calls == ["in place"]
    assert y.grad_fn.saved_names == ("result",)
    assert y.grad_fn.name() == "LogisticInPlaceBackward"
    same_histories(lambda x: op.inplace((x * 1.0)[1:]), lambda x: op(x[1:]), A)
    assert "class LogisticInPlaceBackward" in op.source()
    with pytest.raises(
        DeclarationError, match="operator 'add_only' has no in-place variant; define it with inplace=True"
    ):
        define_op("add_only(self)", forward=np.exp, derivatives={"self": "grad"}).inplace(x)


# -- generated code ----------------------------------------------------------------------------------------------------


def test_the_source_is_python_and_registered():
    source = OPERATORS["mul"].source()
    assert "class MulBackward(Node):" in source
    assert "def mul(self, other):" in source
    assert "def mul_(self, other):" in source
    assert "g0 = grad * (other if type(other) is float64 else other.conj())" in source
    assert "return self_t * other_p + self_p * other_t" in source
    compile(source, "mul", "exec")
    lines = "".join(linecache.getlines(vg.mul.__code__.co_filename))
    assert lines.startswith("# mul(self, other), generated from its row: mul, elementwise.py:")
    assert "\ndef mul(self, other):" in lines
    linecache.checkcache()
    assert linecache.getlines(vg.mul.__code__.co_filename)


def test_tracebacks_point_into_generated_code():
    def fail(grad):
        raise ZeroDivisionError("in a formula")

    vg.autograd.formula_function(fail)
    op = define_op("failing(self)", forward=np.exp, derivatives={"self": "grad + fail(grad)"})
    x = spaced_leaf(2)
    with pytest.raises(ZeroDivisionError) as caught:
        op(x).sum().backward()
    text = "".join(traceback.format_exception(caught.value))
    assert 'File "<viewgrad generated: failing>"' in text
    assert "g0 = grad + arrays.fail(grad)  # failing, test_declarations.py:" in text


def run(*arguments, module="viewgrad.operators"):
    """Return the status and the output of the command."""
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def test_the_command_shows_an_operator():
    status, out, _ = run("show", "mul")
    assert status == 0
    assert out.startswith("# mul(self, other): The product.\n# gradient of self: grad * conj(other)\n")
    assert "class MulBackward(Node):" in out
    status, out, _ = run("show", "diagonal")
    assert status == 0 and "def diagonal(" in out
    status, out, err = run("show", "mull")
    assert (status, out) == (2, "")
    assert err == "there is no operator 'mull'; did you mean mul or matmul?\n"


def test_the_command_lists_the_operators():
    status, out, _ = run("list")
    assert status == 0
    lines = out.splitlines()
    assert lines[0].split() == ["operator", "saved", "forward", "mode", "in", "place", "view"]
    rows = {line.split("(")[0]: line for line in lines[2:]}
    assert set(OPERATORS) - set(rows) <= {name for name in OPERATORS if OPERATORS[name].user_defined}
    assert rows["exp"].split() == ["exp(self)", "self:", "result", "auto_element_wise", "exp_", "no"]
    assert rows["add"].endswith("no") and "self: nothing; other: nothing" in rows["add"]
    assert rows["unfold"].endswith("yes")
    assert len(rows) >= 170


def test_every_differentiable_row_has_a_forward_mode_rule():
    missing = [
        name for name, op in OPERATORS.items() if op.differentiable and op.tangents is None and not op.user_defined
    ]
    assert missing == []


# -- operators of users ------------------------------------------------------------------------------------------------


def softclip_operator():
    return vg.autograd.define_op(
        "softclip(self, *, limit)",
        forward=lambda x, *, limit: limit * np.tanh(x / limit),
        derivatives={"self": "grad * (1 - square(result / limit))"},
        forward_derivative="auto_element_wise",
        inplace=True,
    )


def test_softclip():
    softclip = softclip_operator()
    x = spaced_leaf(3, 4)
    y = softclip(x, limit=2.0)
    np.testing.assert_allclose(y.detach().numpy(), 2 * np.tanh(x.detach().numpy() / 2))
    assert y.grad_fn.name() == "SoftclipBackward"
    assert softclip.saved("self") == ("result", "limit")
    assert gradcheck(lambda x: softclip(x, limit=2.0), (x,))
    assert gradgradcheck(lambda x: softclip(x, limit=2.0), (x,))
    for taken in (..., slice(1, None), (slice(None), 2)):
        same_histories(
            lambda x, taken=taken: softclip.inplace((x * 1.0)[taken], limit=2.0),
            lambda x, taken=taken: softclip(x[taken], limit=2.0),
            A,
        )
    y = x * 1.0
    softclip.inplace(y[0], limit=2.0)
    assert y.grad_fn.name() == "CopySlices"
    assert OPERATORS["softclip"] is softclip
    assert "softclip(self, *, limit)" in listed()
    assert not hasattr(vg.Tensor, "softclip")


def test_an_operator_can_be_redefined_while_the_old_one_still_works():
    first = define_op("changed(self)", forward=np.exp, derivatives={"self": "grad * result"}, inplace=True)
    x = spaced_leaf(2)
    y = first(x)
    second = define_op("changed(self)", forward=np.sin, derivatives={"self": "grad * cos(self)"}, inplace=True)
    z = second(x)
    np.testing.assert_allclose(vg.autograd.grad(y.sum(), x)[0].numpy(), np.exp(x.detach().numpy()))
    np.testing.assert_allclose(vg.autograd.grad(z.sum(), x)[0].numpy(), np.cos(x.detach().numpy()))
    np.testing.assert_allclose(first(x).detach().numpy(), np.exp(x.detach().numpy()))
    np.testing.assert_allclose(first.inplace(x * 1.0).detach().numpy(), np.exp(x.detach().numpy()))
    with vg.view_replay():  # compiles the plain variants
        np.testing.assert_allclose(first.inplace(x * 1.0).detach().numpy(), np.exp(x.detach().numpy()))
        np.testing.assert_allclose(second(x).detach().numpy(), np.sin(x.detach().numpy()))
    assert OPERATORS["changed"] is second


def test_broadcast_gradients_are_summed_automatically():
    op = define_op(
        "weighted(self, other)",
        forward=lambda a, b: a * b,
        derivatives={"self": "grad * other", "other": "grad * self"},
        forward_derivative="self_t * other_p + self_p * other_t",
    )
    assert gradcheck(op, (spaced_leaf(3), spaced_leaf(2, 3)))
    assert gradgradcheck(op, (spaced_leaf(3, 1), spaced_leaf(2, 1, 4)))
    x = vg.Tensor(np.ones(3, np.float32), requires_grad=True)
    op(x, vg.ones(2, 3)).sum().backward()
    assert (x.grad.dtype, x.grad.tolist()) == (np.float32, [2.0, 2.0, 2.0])


def test_a_gradient_of_the_wrong_shape_is_an_error():
    op = define_op("total(self)", forward=np.sum, derivatives={"self": "grad"})
    x = spaced_leaf(2, 3)
    with pytest.raises(GradientMismatchError) as caught:
        op(x).backward()
    assert caught.value.message == (
        "the formula of operator 'total' for 'self' returned a gradient of shape () for an input of shape (2, 3)"
    )
    with pytest.raises(GradientMismatchError):
        op(x).backward(create_graph=True)


def test_tensor_for_a_plain_argument_is_rejected():
    softclip = softclip_operator()
    for limit in (vg.Tensor(2.0), vg.Tensor(2.0, requires_grad=True), [1.0, (vg.Tensor(2.0),)], {"a": vg.Tensor(2.0)}):
        for call in (softclip, softclip.inplace):
            with pytest.raises(
                TypeError, match="argument 'limit' of operator 'softclip' is not a tensor in its declaration"
            ):
                call(vg.ones(2), limit=limit)


def test_a_forward_that_makes_a_tensor_is_refused():
    op = define_op("wrapped(self)", forward=lambda x: vg.Tensor(x), derivatives={"self": "grad"})
    with pytest.raises(TypeError, match="the forward of an operator returned a Tensor for arrays"):
        op(vg.ones(2))


def test_a_read_only_result_can_be_written_to():
    op = define_op(
        "spread_out(self)",
        forward=lambda x: np.broadcast_to(x.sum(), (2, 2)),
        derivatives={"self": "grad.sum() + 0 * self"},
    )
    x = spaced_leaf(3)
    y = op(x)
    y[0, 0] = 5.0
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0, 3.0]


@pytest.mark.parametrize("default", ["ran.append(1)", "[ran.append(1)]", "1 if ran.append(1) else 2", "f'{ran}'"])
def test_defaults_are_data_and_not_run(default):
    ran = []
    for signature in (f"bad(self, n={default})", f"bad(self, *, n={default})"):
        with pytest.raises(DeclarationError, match="is not a literal"):
            define_op(signature, forward=np.exp, derivatives={"self": "grad"})
    assert not ran
    op = define_op(
        "literals(self, a=-1.5, b=(1, 'x', None), *, c={'k': [True]})",
        forward=lambda x, a, b, *, c: x * a, derivatives={"self": "grad * a"},
    )  # fmt: skip
    assert op(vg.ones(2)).tolist() == [-1.5, -1.5]


def test_a_formula_function_that_returns_tensors_for_arrays_raises():
    @vg.autograd.formula_function
    def slope_as_tensor(x):
        return vg.Tensor(x) * 2.0

    slope = {"self": "grad * slope_as_tensor(self)"}
    op = define_op("of_slope_as_tensor(self)", forward=lambda x: x * x, derivatives=slope)
    with pytest.raises(DeclarationError, match="slope_as_tensor returned a Tensor for arrays"):
        op(vg.Tensor([1.0], requires_grad=True)).backward()


def test_a_default_that_is_unknown_is_refused():
    with pytest.raises(DeclarationError) as caught:
        define_op("bad(self, n=np.pi)", forward=np.exp, derivatives={"self": "grad"})
    assert "the default np.pi is not a literal" in caught.value.message


def test_an_integer_result_has_no_gradient():
    op = define_op("counted(self)", forward=lambda x: np.round(x).astype(int), derivatives={"self": "grad"})
    assert not op(spaced_leaf(3)).requires_grad


def test_a_forward_that_returns_its_input_is_copied():
    op = define_op("itself(self)", forward=lambda x: x, derivatives={"self": "grad"})
    x = vg.zeros(3)
    y = op(x)
    y += 1
    assert x.tolist() == [0.0, 0.0, 0.0]
    twice = define_op(
        "twice(self) -> (a, b)", forward=lambda x: (y := x + 1, y), derivatives={"self": "grads[0] + grads[1]"}
    )
    a, b = twice(x)
    a += 1
    assert b.tolist() == [1.0, 1.0, 1.0]


def test_an_optional_tensor():
    op = define_op(
        "shifted_by(self, shift=None)",
        forward=lambda x, shift=None: x.copy() if shift is None else x + shift,
        derivatives={"self": "grad", "shift": "grad"},
        forward_derivative="self_t if shift_t is None else self_t + shift_t",
    )
    x, shift = spaced_leaf(2, 3), spaced_leaf(3)
    assert gradcheck(op, (x, shift))
    op(x).sum().backward()
    assert x.grad.tolist() == np.ones((2, 3)).tolist()


def test_zero_size_and_zero_dimensions():
    softclip = softclip_operator()
    for shape in ((0, 3), ()):
        x = vg.Tensor(np.ones(shape), requires_grad=True)
        softclip(x, limit=1.0).sum().backward()
        assert x.grad.shape == shape
