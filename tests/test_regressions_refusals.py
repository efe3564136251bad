"""What is refused at once, rather than late or not at all."""

import pytest

import viewgrad as vg
from viewgrad.autograd import grad
from viewgrad.errors import AutogradError, InferenceError


def test_a_tensor_is_not_its_own_grad():
    x = vg.Tensor([1.0], requires_grad=True)
    with pytest.raises(AutogradError, match="cannot be its own grad"):
        x.grad = x
    x.grad = x.detach()
    assert x.grad is not None


def test_grad_with_respect_to_nothing():
    x = vg.Tensor([1.0], requires_grad=True)
    with pytest.raises(AutogradError, match="inputs must not be empty"):
        grad(x * 2, [])


def test_recording_a_backward_pass_in_inference_mode():
    x = vg.Tensor([1.0, 2.0], requires_grad=True)
    y = (x**3).sum()
    with vg.inference_mode(), pytest.raises(InferenceError, match="create_graph=True records"):
        grad(y, x, create_graph=True)
    assert grad(y, x)[0].tolist() == [3.0, 12.0]


def test_views_as_complex_numbers_of_nothing():
    for shape in ((0, 2), (3, 0, 2)):
        x = vg.zeros(shape, requires_grad=True)
        y = x * 1.0
        y.view_as_complex().mul_(2.0)
        assert y.view_as_complex().shape == shape[:-1]
        assert grad(y.sum(), x)[0].shape == shape
