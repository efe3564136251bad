"""Programs that were once drawn at random, and came out wrong."""

import numpy as np
import pytest

import viewgrad as vg
from viewgrad.autograd.modes import forward_ad
from viewgrad.errors import FunctionError, OverlappingWriteError


def test_a_number_for_a_gradient_passes_through_a_write_to_a_reshaped_scalar():
    x = vg.Tensor(0.5, requires_grad=True)
    base = vg.zeros(())
    base.reshape(1)[...] = x
    (grad,) = vg.autograd.grad(base * 2, x)
    assert grad.item() == 2.0


def test_an_empty_view_of_a_reshaped_scalar_passes_a_gradient_of_zero():
    x = vg.Tensor(0.5, requires_grad=True)
    base = x * 1.0
    empty = base.reshape(1)[1:]
    ((empty * empty).sum() + base).backward()
    assert x.grad.item() == 1.0


@pytest.mark.parametrize(("shape", "wider"), [((0,), (2, 0)), ((1, 0), (3, 0)), ((2, 0), (4, 2, 0))])
def test_empty_tensors_broadcast_to_the_shape_asked_for(shape, wider):
    x = vg.zeros(shape, requires_grad=True)
    y = x.broadcast_to(wider)
    assert y.shape == wider
    (y * y).sum().backward()
    assert x.grad.shape == shape


def test_a_broadcast_that_repeats_nothing_can_be_written_to():
    x = vg.Tensor([1.0, 2.0], requires_grad=True)
    y = x * 1.0
    y.broadcast_to((1, 2)).mul_(3.0)
    y.sum().backward()
    np.testing.assert_array_equal(x.grad, [3.0, 3.0])


def test_a_reshape_that_copies_is_no_view():
    x = vg.Tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    flat = (x * 1.0).T.reshape(4)
    assert not flat._is_view()
    flat[1:].mul_(flat[1:])
    loss = (flat[...] * flat).sum()
    # As with any base, the gradient is that of its present value, which its views lead to.
    (grad,) = vg.autograd.grad(loss, flat, retain_graph=True)
    np.testing.assert_allclose(grad, 2 * flat.detach())
    loss.backward()
    np.testing.assert_allclose(x.grad.T.reshape(4), [2.0, 4 * 27.0, 4 * 8.0, 4 * 64.0])


def test_parts_of_complex_memory_from_outside_can_be_written_to():
    outside = np.array([1.0 + 2.0j, 3.0 - 1.0j])
    vg.from_numpy(outside).view_as_real()[:, 1] = 5.0
    vg.from_numpy(outside).real[0] = 4.0
    np.testing.assert_array_equal(outside, [4.0 + 5.0j, 3.0 + 5.0j])


@pytest.mark.parametrize("overlapping", [lambda x: x.unfold(0, 2, 1), lambda x: x.expand(2, 3)])
def test_a_detached_tensor_that_overlaps_itself_cannot_be_written_to(overlapping):
    x = vg.Tensor([1.0, 2.0, 3.0])
    detached = overlapping(x).detach()
    with pytest.raises(OverlappingWriteError):
        detached.mul_(2.0)
    with pytest.raises(OverlappingWriteError):
        detached[0] = 2.0
    # Not even through a view that does not overlap itself: other elements of the detached tensor would change unseen.
    with pytest.raises(OverlappingWriteError):
        detached[:, 0].mul_(2.0)
    np.testing.assert_array_equal(x, [1.0, 2.0, 3.0])


def test_jvp_of_a_custom_function_sees_the_values_that_were_saved():
    class AddSquare(vg.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(y)
            x.add_(y * y)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad, grad * 2.0 * ctx.saved_tensors[0]

        @staticmethod
        def jvp(ctx, of_x, of_y):
            return of_x + 2.0 * ctx.saved_tensors[0] * of_y

    x = vg.Tensor([1.0, 2.0], requires_grad=True)
    y = x.clone()
    AddSquare.apply(y, y)
    y.sum().backward()
    np.testing.assert_array_equal(x.grad, [3.0, 5.0])
    with forward_ad.dual_level():
        y = forward_ad.make_dual(x.detach(), vg.ones(2)).clone()
        AddSquare.apply(y, y)
        np.testing.assert_array_equal(forward_ad.unpack_dual(y).tangent, [3.0, 5.0])
        # The history that the value had is not known: no wrong second derivative.
        y = forward_ad.make_dual(x, vg.ones(2)).clone()
        AddSquare.apply(y, y)
        with pytest.raises(FunctionError, match="history is not known"):
            forward_ad.unpack_dual(y).tangent.sum().backward()
        with forward_ad.dual_level(), pytest.raises(FunctionError, match="nested levels"):
            y = forward_ad.make_dual(x.clone(), vg.ones(2)).clone()
            AddSquare.apply(y, y)
