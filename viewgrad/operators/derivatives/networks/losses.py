"""The derivatives of loss functions.

`reduction` is "none" for the loss of each element, "sum", or "mean". Targets are differentiable too.
"""

from __future__ import annotations

import ast
import math
import re
from typing import Any, Final

import numpy as np

from ....tensor.creation import as_operand
from ....tensor.shapes import along_first
from ....type_aliases import Array
from ...composites import composite
from ...define import row
from ...language.namespace import formula_function
from ..helpers import call, flowing, plain
from ..scatter import scattered

LEAST: Final = math.exp(-100)  # logarithms of smaller numbers are clamped


def reduced(loss: Any, reduction: str) -> Any:
    """Return the losses, their sum, or their mean."""
    if reduction == "sum":
        return loss.sum()
    if reduction == "mean":
        return loss.mean()
    if reduction == "batchmean":
        return loss.sum() * (1 / loss.shape[0])
    if reduction != "none":
        raise ValueError(f"reduction must be 'none', 'mean' or 'sum', not {reduction!r}")
    return loss


formula_function(reduced)


@formula_function
def per_element(grad: Any, reduction: str, shape: tuple[int, ...], other: tuple[int, ...]) -> Any:
    """Return the gradient of the loss of each element, given the gradient of the reduced loss."""
    if reduction in ("none", "sum"):
        return grad
    both = np.broadcast_shapes(shape, other)
    return grad * (1 / (both[0] if reduction == "batchmean" else max(math.prod(both), 1)))


@formula_function
def of_each_element(slope: Any, shape: tuple[int, ...], other: tuple[int, ...]) -> Any:
    """Broadcast a value that depends on one of two operands to the shape of both."""
    both = shape if shape == other else np.broadcast_shapes(shape, other)
    return slope if slope.shape == both else slope + np.zeros(both, slope.dtype)


def pointwise(
    signature: str,
    forward: Any,
    slopes: tuple[str, str],
    doc: str,
    *,
    dtype_kinds: str = "f",
) -> None:
    """Declare an elementwise loss, with the derivatives with respect to the prediction and the target."""
    options = signature[signature.index("target") + 6 : -1]
    names = re.findall(r", (\w+)=", options)
    defaults = {name: ast.literal_eval(value) for name, value in re.findall(r", (\w+)=([^,]+)", options)}

    def loss(a: Any, target: Any, *given: Any, **named: Any) -> Any:
        values = {**defaults, **dict(zip(names, given)), **named}
        reduction = values.pop("reduction")
        return reduced(np.asarray(forward(a, target, **values)), reduction)

    scale = "per_element(grad, reduction, self.shape, target.shape)"
    both = ", self.shape, target.shape"
    spread = [s if {"self", "target"} <= set(re.findall(r"\w+", s)) else f"of_each_element({s}{both})" for s in slopes]
    of_self, of_target = (re.sub(r"\b(self|target)\b", r"\1_p", slope) for slope in slopes)
    row(
        signature,
        loss,
        {"self": f"{scale} * ({spread[0]})", "target": f"{scale} * ({spread[1]})"},
        forward_derivative=f"reduced(self_t * ({of_self}) + target_t * ({of_target}), reduction)"
        if dtype_kinds == "f"
        else f"reduced((self_t * conj({of_self}) + target_t * conj({of_target})).real, reduction)",
        method=False,
        dtype_kinds=dtype_kinds,
        doc=doc,
    )  # fmt: skip


def huber(a: Any, target: Any, delta: float) -> Any:
    """Return the Huber loss of each element."""
    if not delta > 0:
        raise ValueError(f"delta must be positive, not {delta!r}")
    gap = np.abs(a - target)
    return np.where(gap <= delta, 0.5 * np.square(gap), delta * (gap - 0.5 * delta))


# -- elementwise -------------------------------------------------------------------------------------------------------

pointwise(
    "mse_loss(self, target, reduction='mean')",
    lambda a, target: np.square(a - target),
    ("2 * (self - target)", "2 * (target - self)"),
    "The squared difference.",
)
pointwise(
    "l1_loss(self, target, reduction='mean')",
    lambda a, target: np.abs(a - target),
    ("sign(self - target)", "sign(target - self)"),
    "The absolute difference; gradient 0 where it is 0.",
    dtype_kinds="fc",
)
pointwise(
    "huber_loss(self, target, reduction='mean', delta=1.0)",
    huber,
    ("clip(self - target, -delta, delta)", "clip(target - self, -delta, delta)"),
    "Half the squared difference up to `delta`, linear beyond.",
)
pointwise(
    "smooth_l1_loss(self, target, reduction='mean', beta=1.0)",
    lambda a, target, beta: np.where(
        np.abs(a - target) < beta, np.square(a - target) * (0.5 / max(beta, 1e-300)), np.abs(a - target) - 0.5 * beta
    ),
    ("smooth_sign(self - target, beta)", "smooth_sign(target - self, beta)"),
    "The absolute difference, quadratic below `beta`.",
)
pointwise(
    "binary_cross_entropy(self, target, reduction='mean')",
    lambda a, target: -(target * bounded_log(a) + (1 - target) * bounded_log(1 - a)),
    (
        "(1 - target) * bounded_log_slope(1 - self) - target * bounded_log_slope(self)",
        "bounded_log(1 - self) - bounded_log(self)",
    ),
    "The cross-entropy of a probability and a target between 0 and 1. Logarithms are clamped at -100.",
)
pointwise(
    "binary_cross_entropy_with_logits(self, target, reduction='mean')",
    lambda a, target: np.logaddexp(a, 0) - a * target,
    ("sigmoid(self) - target", "-self"),
    "The cross-entropy of sigmoid(prediction) and a target between 0 and 1.",
)
pointwise(
    "kl_div(self, target, reduction='mean', log_target=False)",
    lambda a, target, log_target: (
        np.exp(target) * (target - a) if log_target else np.where(target > 0, target * (safe_log(target) - a), 0)
    ),
    ("-probability(target, log_target)", "kl_slope(self, target, log_target)"),
    "The terms of the relative entropy of a target distribution and a prediction, given as log-probabilities. "
    "`reduction='batchmean'` divides the sum by the batch size.",
)  # fmt: skip


@formula_function
def smooth_sign(gap: Any, beta: float) -> Any:
    """Return the derivative of the smooth absolute value."""
    return np.clip(gap * (1 / beta), -1.0, 1.0) if beta > 0 else np.sign(gap)


@formula_function
def safe_log(a: Any) -> Any:
    """Return the logarithm, or 0 where it is undefined."""
    return np.log(np.where(a > 0, a, 1))


@formula_function
def bounded_log(a: Any) -> Any:
    """Return the logarithm, bounded below by -100."""
    return np.where(a > 0, np.maximum(safe_log(a), -100.0), -100.0)


@formula_function
def bounded_log_slope(a: Any) -> Any:
    """Return the derivative of `bounded_log`, which is 0 where the bound applies."""
    above = a > LEAST
    return np.where(above, 1 / np.where(above, a, 1), 0)


@formula_function
def probability(target: Any, log_target: bool) -> Any:
    """Return the target distribution."""
    return np.exp(target) if log_target else np.maximum(target, 0)


@formula_function
def kl_slope(a: Any, target: Any, log_target: bool) -> Any:
    """Return the derivative with respect to the target."""
    if log_target:
        return np.exp(target) * (target - a + 1)
    return np.where(target > 0, safe_log(target) + 1 - a, 0)


# -- classification ----------------------------------------------------------------------------------------------------


def _classes(target: Any, weight: Any, ndim: int, ignore_index: int, dtype: Any) -> tuple[int, Array, Any, Any]:
    """Return the dimension of the classes, the class of each example, the mask of examples that count, and their
    weights.
    """
    classes = plain(target)
    axis = 0 if ndim == 1 else 1
    counted = np.expand_dims(classes != ignore_index, axis)
    places = np.where(counted, np.expand_dims(classes, axis), 0)
    if weight is None:
        return axis, places, counted, counted.astype(dtype)
    return axis, places, counted, weight[places] * counted


def nll_loss_forward(a: Any, target: Any, weight: Any = None, ignore_index: int = -100, reduction: str = "mean") -> Any:
    if target.shape != a.shape[:1] * (a.ndim > 1) + a.shape[2:]:
        raise ValueError(
            f"nll_loss of shape {a.shape} requires a class for each example, not a target of shape {target.shape}"
        )
    if weight is not None and weight.shape != a.shape[min(1, a.ndim - 1) :][:1]:
        raise ValueError(f"nll_loss of shape {a.shape} requires a weight for each class, not {weight.shape} weights")
    axis, places, _, weights = _classes(target, weight, a.ndim, ignore_index, a.dtype)
    losses = -np.take_along_axis(a, places, axis) * weights
    if reduction == "mean":
        return losses.sum() / weights.sum()
    return reduced(np.squeeze(losses, axis), reduction)


@formula_function
def nll_loss_gradient(
    grad: Any, target: Any, weight: Any, shape: tuple[int, ...], ignore_index: int, reduction: str
) -> Any:
    """Return the gradient of the log-probabilities."""
    axis, places, _, weights = _classes(target, weight, len(shape), ignore_index, grad.dtype)
    if reduction == "mean":
        weights = weights / weights.sum()
    elif reduction == "none":
        grad = np.expand_dims(grad, axis)
    return scattered(flowing(-grad * weights, grad), places, axis, shape[axis])


@formula_function
def nll_weight_gradient(grad: Any, a: Any, target: Any, weight: Any, ignore_index: int, reduction: str) -> Any:
    """Return the gradient of the weights of the classes."""
    axis, places, counted, weights = _classes(target, weight, a.ndim, ignore_index, a.dtype)
    losses = -np.take_along_axis(a, places, axis)
    if reduction == "mean":
        total = weights.sum()
        losses = (losses - (losses * weights).sum() / total) / total
    elif reduction == "none":
        grad = np.expand_dims(grad, axis)
    per_example = flowing(grad * losses * counted, grad).reshape(-1)
    return call("_scatter_into_zeros", per_example, (places.reshape(-1),), weight.shape)


@formula_function
def nll_loss_tangent(
    a_t: Any, weight_t: Any, a: Any, target: Any, weight: Any, ignore_index: int, reduction: str
) -> Any:
    """Return the tangent of the loss."""
    axis, places, counted, weights = _classes(target, weight, a.ndim, ignore_index, a.dtype)
    losses = -np.take_along_axis(a, places, axis)
    change = -np.take_along_axis(a_t, places, axis) * weights
    if weight is not None:
        weights_t = weight_t[places] * counted
        change = change + losses * weights_t
        if reduction == "mean":
            change = change - flowing(weights_t * ((losses * weights).sum() / weights.sum()), weights_t)
    if reduction == "mean":
        return flowing(change.sum() / weights.sum(), change.sum())
    return change.sum() if reduction == "sum" else np.squeeze(change, axis)


nll_loss = row(
    "nll_loss(self, target, weight=None, ignore_index=-100, reduction='mean')",
    nll_loss_forward,
    {
        "self": "nll_loss_gradient(grad, target, weight, self.shape, ignore_index, reduction)",
        "target": "not_differentiable",
        "weight": "nll_weight_gradient(grad, self, target, weight, ignore_index, reduction)",
    },
    forward_derivative="nll_loss_tangent(self_t, weight_t, self_p, target, weight_p, ignore_index, reduction)",
    method=False,
    doc="The negative log-likelihood of each example's class, from log-probabilities of shape (batch, classes, ...). "
    "The mean is weighted by the weights of the classes, if given; one class may be ignored.",
)


@composite(method=False)
def cross_entropy(
    self: Any,
    target: Any,
    weight: Any = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Any:
    """Return the cross-entropy between a target and the `softmax` of scores.

    Arguments:
        self: a tensor of shape (batch, classes, ...) or (classes,).
        target: the class of each example; or the probability of each class, in the shape of `self`.
        weight: one number for each class.
        ignore_index: the class of examples to ignore.
        reduction: "mean" (weighted by `weight`, for classes), "sum" or "none".
        label_smoothing: the fraction of the target's probability that is distributed evenly over all classes.
    """
    self, target = as_operand(self), as_operand(target)
    axis = 0 if self.ndim == 1 else 1
    logarithms = self.log_softmax(axis)
    if weight is not None:
        weight = as_operand(weight)
    if target.dtype.kind in "iu":
        loss = nll_loss(logarithms, target, weight, ignore_index, reduction)
        if not label_smoothing:
            return loss
        classes = plain(target)
        counted = classes != ignore_index
        along = weight if weight is None else along_first(weight, self.ndim - axis)
        spread = -(logarithms if along is None else logarithms * along).sum(axis=axis) * counted
        if reduction == "mean":
            total = counted.sum() if weight is None else (weight[np.where(counted, classes, 0)] * counted).sum()
            spread = spread.sum() / total
        elif reduction == "sum":
            spread = spread.sum()
        return loss * (1 - label_smoothing) + spread * (label_smoothing / self.shape[axis])
    if label_smoothing:
        target = target * (1 - label_smoothing) + label_smoothing / self.shape[axis]
    terms = -logarithms * target
    if weight is not None:
        terms = terms * along_first(weight, self.ndim - axis)
    losses = terms.sum(axis=axis)
    return losses if reduction == "none" else losses.sum() if reduction == "sum" else losses.mean()
