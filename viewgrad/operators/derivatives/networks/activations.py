"""The derivatives of activation functions.

At a kink, the gradient is PyTorch's. The activation functions that are also common functions (`sigmoid`, `tanh`,
`relu`, `softplus`) are in `elementwise.py`.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from ...define import row
from ...language.namespace import formula_function
from ...language.spec import Decomposition
from ..elementwise import sigmoid_forward
from ..helpers import call, conjugated
from ..scatter import in_precision_of
from ..special_functions import ndtr_forward, unary

__all__: list[str] = []


SELU_ALPHA: Final = 1.6732632423543772
SELU_SCALE: Final = 1.0507009873554805

# -- piecewise linear --------------------------------------------------------------------------------------------------

unary(
    "leaky_relu(self, negative_slope=0.01)",
    lambda a, negative_slope=0.01: np.where(a > 0, a, a * negative_slope),
    "where(self > 0, grad, grad * negative_slope)",
    "The value if it is positive, a small multiple of it otherwise; at 0 the gradient from below.",
)
unary(
    "threshold(self, threshold, value)",
    lambda a, threshold, value: np.asarray(np.where(a > threshold, a, value)).astype(a.dtype, copy=False),
    "masked_fill(grad, self <= threshold, 0)",
    "The value if it is above the threshold, another value otherwise; gradient 0 at the threshold.",
)
unary(
    "hardtanh(self, min_val=-1.0, max_val=1.0)",
    lambda a, min_val=-1.0, max_val=1.0: np.clip(a, min_val, max_val),
    "where((self > min_val) & (self < max_val), grad, 0)",
    "The value limited to the interval from `min_val` to `max_val`; gradient 0 at the bounds.",
)
unary(
    "relu6",
    lambda a: np.clip(a, 0, 6),
    "where((self > 0) & (self < 6), grad, 0)",
    "The value limited to the interval from 0 to 6; gradient 0 at the bounds.",
    kernel="minimum(maximum(self, 0.0), 6.0)",
)
unary(
    "hardsigmoid",
    lambda a: np.clip(a + 3, 0, 6) / 6,
    "where((self > -3) & (self < 3), grad / 6, 0)",
    "The piecewise linear sigmoid: 0 up to -3, 1 from 3; gradient 0 at the kinks.",
)
unary(
    "hardswish",
    lambda a: a * np.clip(a + 3, 0, 6) / 6,
    "where((self > -3) & (self < 3), grad * (self / 3 + 0.5), masked_fill(grad, self <= -3, 0))",
    "The value times hardsigmoid(value); one-sided gradients at the kinks.",
)
unary(
    "softshrink(self, lambd=0.5)",
    lambda a, lambd=0.5: np.where(a > lambd, a - lambd, np.where(a < -lambd, a + lambd, 0 * a)),
    "where((self < -lambd) | (self > lambd), grad, 0)",
    "The value moved towards 0 by `lambd`, or 0 if its magnitude is less; gradient 0 at the kinks.",
)
unary(
    "hardshrink(self, lambd=0.5)",
    lambda a, lambd=0.5: np.where((a >= -lambd) & (a <= lambd), 0 * a, a),
    "where((self < -lambd) | (self > lambd), grad, 0)",
    "The value, or 0 if its magnitude is at most `lambd`; gradient 0 at the jumps.",
)

# -- smooth ------------------------------------------------------------------------------------------------------------


@formula_function
def gelu_slope(x: Any, approximate: str) -> Any:
    """Return the derivative of `gelu`."""
    if approximate == "tanh":
        t = np.tanh(x * (x * x * (GELU_CUBE * GELU_SCALE) + GELU_SCALE))
        return (t + 1) * 0.5 + x * (1 - t * t) * (x * x * (1.5 * GELU_CUBE * GELU_SCALE) + 0.5 * GELU_SCALE)
    density = np.exp(x * x * -0.5) * (1 / math.sqrt(2 * math.pi))
    return (call("ndtr", x) + x * density).astype(x.dtype, copy=False)


GELU_SCALE: Final = math.sqrt(2 / math.pi)
GELU_CUBE: Final = 0.044715


def gelu_forward(a: Any, *, approximate: str = "none") -> Any:
    if approximate == "tanh":
        return 0.5 * a * (1 + np.tanh(GELU_SCALE * (a + GELU_CUBE * a * a * a)))
    if approximate != "none":
        raise ValueError(f"approximate of gelu must be 'none' or 'tanh', not {approximate!r}")
    return in_precision_of(a * ndtr_forward(a), a)


unary(
    "gelu(self, *, approximate='none')",
    gelu_forward,
    "grad * gelu_slope(self, approximate)",
    "The value times its standard normal distribution function; `approximate='tanh'` uses an approximation.",
    zero_in_masked_runs=True,
)
unary(
    "silu",
    lambda a: a * sigmoid_forward(a),
    "grad * conj(sigmoid(self) * (1 + self * (1 - sigmoid(self))))",
    "The value times sigmoid(value).",
    dtype_kinds="fc",
    zero_in_masked_runs=True,
    kernel="self * sigmoid(self)",
)
unary(
    "mish",
    lambda a: a * np.tanh(np.logaddexp(a, 0)),
    "grad * mish_slope(self)",
    "The value times tanh(softplus(value)).",
    zero_in_masked_runs=True,
)
unary(
    "elu(self, alpha=1.0)",
    lambda a, alpha=1.0: np.where(a > 0, a, alpha * np.expm1(np.minimum(a, 0))),
    "where(self <= 0, grad * (result + alpha), grad)",
    "The value if it is positive, alpha * (exp(value) - 1) otherwise; at 0 the gradient from below.",
)


def celu_forward(a: Any, alpha: float = 1.0) -> Any:
    if alpha == 0:
        raise ValueError("celu requires a nonzero alpha")
    return np.where(a > 0, a, alpha * np.expm1(np.minimum(a, 0) / alpha))


unary(
    "celu(self, alpha=1.0)",
    celu_forward,
    "where(self <= 0, grad * (result / alpha + 1), grad)",
    "The value if it is positive, alpha * (exp(value / alpha) - 1) otherwise.",
)
unary(
    "selu",
    lambda a: SELU_SCALE * np.where(a > 0, a, SELU_ALPHA * np.expm1(np.minimum(a, 0))),
    f"where(self <= 0, grad * (result + {SELU_SCALE * SELU_ALPHA}), grad * {SELU_SCALE})",
    "The scaled `elu` of self-normalizing networks; at 0 the gradient from below.",
)
unary(
    "softsign",
    lambda a: a / (1 + np.abs(a)),
    "softsign_gradient(grad, self)",
    "value / (1 + abs(value)); gradient 1 at 0.",
    dtype_kinds="fc",
    tangent="softsign_tangent(self_t, self_p)",
    zero_in_masked_runs=True,
)


def tanhshrink_forward(a: Any) -> Any:
    """Return a - tanh(a); near 0, where the difference loses digits, by the continued fraction of tanh (DLMF 4.39.1).
    """
    is_near = np.abs(a) < 0.5
    near = np.where(is_near, a, 0)
    s = near * near
    fraction = s / (3 + s / (5 + s / (7 + s / (9 + s / (11 + s / 13)))))
    return np.where(is_near, near * fraction / (1 + fraction), a - np.tanh(a))


unary("tanhshrink", tanhshrink_forward, "grad * conj(square(tanh(self)))", "value - tanh(value).", dtype_kinds="fc",
      zero_in_masked_runs=True)
unary("logsigmoid", lambda a: -np.logaddexp(0, -a), "grad * sigmoid(-self)", "log(sigmoid(value)).",
      zero_in_masked_runs=True, kernel="minimum(self, 0.0) - log1p(exp(-abs(self)))")


@formula_function
def softsign_gradient(grad: Any, x: Any) -> Any:
    """Return the gradient of `softsign`, which is not analytic for complex numbers."""
    scale = 1 / (1 + np.abs(x))
    if x.dtype.kind != "c":
        return grad * (scale * scale)
    return grad * scale - np.sign(x) * (conjugated(x) * grad).real * (scale * scale)


@formula_function
def softsign_tangent(tangent: Any, x: Any) -> Any:
    """Return the tangent of `softsign`."""
    scale = 1 / (1 + np.abs(x))
    if x.dtype.kind != "c":
        return tangent * (scale * scale)
    return tangent * scale - x * (conjugated(np.sign(x)) * tangent).real * (scale * scale)


@formula_function
def mish_slope(x: Any) -> Any:
    """Return the derivative of `mish`."""
    t = np.tanh(np.logaddexp(x, 0.0))
    return t + x * (1 - t * t) * (np.tanh(x * 0.5) * 0.5 + 0.5)


# -- along a dimension -------------------------------------------------------------------------------------------------

def less_greatest(a: Any, dim: int) -> Any:
    """Subtract the maximum (by real part) along a dimension, so that no exponential overflows."""
    a = a if a.dtype.kind in "fc" else a.astype(float)
    return a - np.max(a.real, axis=dim, keepdims=True, initial=-np.inf)


def softmax_forward(a: Any, axis: int = -1) -> Any:
    exponentials = np.exp(less_greatest(a, axis))
    return exponentials / np.sum(exponentials, axis=axis, keepdims=True)


def log_softmax_forward(a: Any, axis: int = -1) -> Any:
    if not a.size:
        return np.array(a)
    shifted = less_greatest(a, axis)
    return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))


row(
    "softmax(self, axis=-1)",
    softmax_forward,
    {"self": "flowing(conj(result) * (grad - (grad * conj(result)).sum(axis, keepdims=True)), grad, axis)"},
    forward_derivative="flowing(result * (self_t - (self_t * result).sum(axis, keepdims=True)), self_t, axis)",
    dtype_kinds="fc",
    doc="The exponentials, divided by their sum along a dimension.",
    decomposition=Decomposition(
        "exp(self - max(self, axis, True)) / sum(exp(self - max(self, axis, True)), axis, True)", uses_chain_rule=True
    ),
)
row(
    "log_softmax(self, axis=-1)",
    log_softmax_forward,
    {"self": "flowing(grad - conj(exp(result)) * grad.sum(axis, keepdims=True), grad, axis)"},
    forward_derivative="flowing(self_t - (exp(result) * self_t).sum(axis, keepdims=True), self_t, axis)",
    dtype_kinds="fc",
    doc="The logarithms of `softmax`.",
    decomposition=Decomposition(
        "self - max(self, axis, True) - log(sum(exp(self - max(self, axis, True)), axis, True))", uses_chain_rule=True
    ),
)
