"""The derivatives of normalization layers, and functions composed of these."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....tensor.async_safety import in_own_context
from ....tensor.creation import as_operand
from ....tensor.modes import no_grad
from ....tensor.shapes import along_first
from ...composites import composite
from ...define import row
from ...language.namespace import formula_function
from ..scatter import is_known_zero


def _moments(x: Any, axes: tuple[int, ...], eps: float) -> tuple[Any, Any]:
    """Return the normalized deviations from the mean, and the inverse of the standard deviation."""
    deviation = x - x.mean(axis=axes, keepdims=True)
    scale = 1 / np.sqrt((deviation * deviation).mean(axis=axes, keepdims=True) + eps)
    return deviation * scale, scale


def _projected(change: Any, x: Any, axes: tuple[int, ...], eps: float) -> Any:
    """Apply the derivative of normalization with respect to `x`, which is its own adjoint."""
    normalized, scale = _moments(x, axes, eps)
    along = (change * normalized).mean(axis=axes, keepdims=True)
    return (change - change.mean(axis=axes, keepdims=True) - normalized * along) * scale


# -- over the last dimensions ------------------------------------------------------------------------------------------


def last_axes(normalized_shape: Any, ndim: int) -> tuple[int, ...]:
    """Return the dimensions that `layer_norm` normalizes over."""
    count = len(normalized_shape) if isinstance(normalized_shape, (tuple, list)) else 1
    return tuple(range(ndim - count, ndim))


def layer_norm_forward(x: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    axes = last_axes(normalized_shape, x.ndim)
    shape = tuple(normalized_shape) if isinstance(normalized_shape, (tuple, list)) else (normalized_shape,)
    if x.shape[x.ndim - len(axes) :] != shape:
        raise ValueError(f"layer_norm over {shape} needs a tensor with these last dimensions, not of shape {x.shape}")
    result = _moments(x, axes, eps)[0]
    if weight is not None:
        result = result * weight
    return result if bias is None else result + bias


@formula_function
def layer_norm_gradient(grad: Any, x: Any, normalized_shape: Any, weight: Any, eps: float) -> Any:
    """Return the gradient with respect to the input of the normalization."""
    change = grad if weight is None else grad * weight
    return _projected(change, x, last_axes(normalized_shape, x.ndim), eps)


@formula_function
def layer_normalized(x: Any, normalized_shape: Any, eps: float) -> Any:
    """Return the normalized values before weights and bias are applied."""
    return _moments(x, last_axes(normalized_shape, x.ndim), eps)[0]


@formula_function
def layer_norm_tangent(
    x_t: Any, weight_t: Any, bias_t: Any, x: Any, weight: Any, normalized_shape: Any, eps: float
) -> Any:
    """Return the tangent of normalized values."""
    axes = last_axes(normalized_shape, x.ndim)
    result = _projected(x_t, x, axes, eps)
    if weight is not None:
        result = result * weight + _moments(x, axes, eps)[0] * weight_t
    return result if bias_t is None else result + bias_t


layer_norm = row(
    "layer_norm(self, normalized_shape, weight=None, bias=None, eps=1e-05)",
    layer_norm_forward,
    {
        "self": "layer_norm_gradient(grad, self, normalized_shape, weight, eps)",
        "weight": "grad * layer_normalized(self, normalized_shape, eps)",
        "bias": "grad",
    },
    forward_derivative="layer_norm_tangent(self_t, weight_t, bias_t, self_p, weight_p, normalized_shape, eps)",
    method=False,
    zero_in_masked_runs=True,
    doc="The values normalized to mean 0 and variance 1 over the last dimensions, times `weight` plus `bias`.",
)

# -- over batches ------------------------------------------------------------------------------------------------------


@formula_function
def batch_axes(ndim: int) -> tuple[int, ...]:
    """Return all dimensions except the channel dimension."""
    return (0, *range(2, ndim))


@formula_function
def per_channel(a: Any, ndim: int) -> Any:
    """Return a vector with one number per channel, in a shape that broadcasts."""
    return along_first(a, ndim - 1)


def batch_norm_training_forward(x: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> tuple[Any, ...]:
    if x.ndim < 2:
        raise ValueError(f"batch_norm requires shape (batch, channels, ...), not {x.shape}")
    axes = batch_axes(x.ndim)
    mean = x.mean(axis=axes, keepdims=True)
    deviation = x - mean
    var = (deviation * deviation).mean(axis=axes, keepdims=True)
    result = deviation * (1 / np.sqrt(var + eps))
    if weight is not None:
        result = result * per_channel(weight, x.ndim)
    if bias is not None:
        result = result + per_channel(bias, x.ndim)
    return result, mean.reshape(-1), var.reshape(-1)


@formula_function
def batch_norm_gradient(grad: Any, grad_mean: Any, grad_var: Any, x: Any, weight: Any, eps: float) -> Any:
    """Return the gradient with respect to the input of the normalization."""
    axes = batch_axes(x.ndim)
    change = grad if weight is None else grad * per_channel(weight, x.ndim)
    result = _projected(change, x, axes, eps)
    count = math.prod(x.shape[axis] for axis in axes)
    if not is_known_zero(grad_mean):
        result = result + per_channel(grad_mean, x.ndim) / count
    if not is_known_zero(grad_var):
        deviation = x - x.mean(axis=axes, keepdims=True)
        result = result + deviation * (per_channel(grad_var, x.ndim) * (2 / count))
    return result


@formula_function
def batch_weight_gradient(grad: Any, x: Any, eps: float) -> Any:
    """Return the gradient of the weight of each channel."""
    axes = batch_axes(x.ndim)
    return (grad * _moments(x, axes, eps)[0]).sum(axis=axes)


@formula_function
def batch_norm_tangents(x_t: Any, weight_t: Any, bias_t: Any, x: Any, weight: Any, eps: float) -> tuple[Any, Any, Any]:
    """Return the tangents of the normalized values, and of the means and variances."""
    axes = batch_axes(x.ndim)
    result = _projected(x_t, x, axes, eps)
    if weight is not None:
        scaled = _moments(x, axes, eps)[0] * per_channel(weight_t, x.ndim)
        result = result * per_channel(weight, x.ndim) + scaled
    if bias_t is not None:
        result = result + per_channel(bias_t, x.ndim)
    deviation = x - x.mean(axis=axes, keepdims=True)
    return result, x_t.mean(axis=axes), 2 * (deviation * x_t).mean(axis=axes)


batch_norm_training = row(
    "_batch_norm_training(self, weight=None, bias=None, eps=1e-05) -> (result, mean, var)",
    batch_norm_training_forward,
    {
        "self": "batch_norm_gradient(grad_result, grad_mean, grad_var, self, weight, eps)",
        "weight": "batch_weight_gradient(grad_result, self, eps)",
        "bias": "grad_result.sum(axis=batch_axes(self.ndim))",
    },
    forward_derivative={
        "result, mean, var": "batch_norm_tangents(self_t, weight_t, bias_t, self_p, weight_p, eps)",
    },
    method=False,
    zero_in_masked_runs=True,
    doc="The values normalized to mean 0 and variance 1 over all dimensions but the second, times `weight` plus "
    "`bias`; also the means and variances before.",
)


@composite(method=False)
@in_own_context
def batch_norm(
    self: Any,
    running_mean: Any = None,
    running_var: Any = None,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:
    """Normalize each channel to mean 0 and variance 1, then scale by `weight` and add `bias`.

    Arguments:
        self: a tensor of shape (batch, channels, ...).
        running_mean, running_var: the statistics to use if not `training`, one number for each channel. During training
            they are updated in place, with the unbiased variance.
        weight, bias: one number for each channel.
        training: whether to use the statistics of this batch.
        momentum: the weight of this batch in the running statistics.
        eps: a constant added to the variance for stability.

    Raises:
        ValueError: for a batch with one value per channel when training, or without running statistics when not.
    """
    self = as_operand(self)
    if training:
        count = self.size // max(self.shape[1], 1) if self.ndim > 1 else 0
        if count < 2:
            raise ValueError(f"batch_norm needs more than one value per channel when training, not shape {self.shape}")
        result, mean, var = batch_norm_training(self, weight, bias, eps)
        with no_grad():
            if running_mean is not None:
                running_mean.lerp_(mean.detach(), momentum)
            if running_var is not None:
                running_var.lerp_(var.detach() * (count / (count - 1)), momentum)
        return result
    if running_mean is None or running_var is None:
        raise ValueError("batch_norm needs running_mean and running_var when it is not training")
    scale: Any = 1 / np.sqrt(as_operand(running_var) + eps)
    if weight is not None:
        scale = as_operand(weight) * scale
    shift = -as_operand(running_mean) * scale
    if bias is not None:
        shift = shift + bias
    return self * per_channel(scale, self.ndim) + per_channel(shift, self.ndim)


# -- layers ------------------------------------------------------------------------------------------------------------


@composite(method=False)
def group_norm(self: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    """Normalize groups of channels of each example to mean 0 and variance 1, then scale and shift.

    Arguments:
        self: a tensor of shape (batch, channels, ...).
        num_groups: the number of groups.
        weight, bias: one number for each channel.
        eps: a constant added to the variance, for stability.
    """
    self = as_operand(self)
    if self.ndim < 2 or self.shape[1] % num_groups:
        raise ValueError(f"group_norm cannot split the channels of shape {self.shape} into {num_groups} groups")
    grouped = self.reshape((self.shape[0], num_groups, self.size // max(self.shape[0] * num_groups, 1)))
    result = layer_norm(grouped, grouped.shape[2], None, None, eps).reshape(self.shape)
    if weight is not None:
        result = result * per_channel(as_operand(weight), self.ndim)
    return result if bias is None else result + per_channel(as_operand(bias), self.ndim)


@composite(method=False)
def instance_norm(self: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    """Normalize each channel of each example to mean 0 and variance 1, then scale and shift."""
    return group_norm(self, as_operand(self).shape[1], weight, bias, eps)


@composite(method=False)
def rms_norm(self: Any, normalized_shape: Any, weight: Any = None, eps: float = 1e-6) -> Any:
    """Divide by the root mean square over the last dimensions, then scale by `weight`."""
    self = as_operand(self)
    axes = last_axes(normalized_shape, self.ndim)
    result = self / np.sqrt((self * self).mean(axis=axes, keepdims=True) + eps)
    return result if weight is None else result * weight
