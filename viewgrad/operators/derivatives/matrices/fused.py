"""The derivatives of fused products and sums: PyTorch's `addmm`, `addcmul` and similar operators."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...define import row
from ...language.namespace import formula_function
from ..helpers import conjugated

__all__: list[str] = []

# -- matrices ----------------------------------------------------------------------------------------------------------


def multiplied(signature: str, first: str, second: str, ndims: tuple[int, int], first_gradient: str, doc: str) -> None:
    """Declare `beta * self + alpha * (first @ second)` for given numbers of dimensions."""
    first_t, second_t = f"matmul({first}_t, {second}_p)", f"matmul({first}_p, {second}_t)"

    def forward(a: Any, x: Any, y: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
        if (x.ndim, y.ndim) != ndims:
            raise ValueError(
                f"{first} and {second} must have {ndims} dimensions, not the shapes {x.shape} and {y.shape}"
            )
        product = np.matmul(x, y)
        total = beta * a + alpha * product
        if total.shape != product.shape:
            raise ValueError(f"a value of shape {a.shape} cannot be added to a product of shape {product.shape}")
        return total

    row(
        signature,
        forward,
        {
            "self": "grad * conjugate(beta)",
            first: f"{first_gradient} * conjugate(alpha)",
            second: f"matmul(adjoint({first}), grad) * conjugate(alpha)",
        },
        forward_derivative=f"beta * self_t + alpha * ({first_t} + {second_t})",
        inplace=True,
        dtype_kinds="fc",
        doc=doc,
    )


@formula_function
def conjugate(value: Any) -> Any:
    """Return the complex conjugate of a Python number."""
    return value.conjugate() if isinstance(value, complex) else value


multiplied(
    "addmm(self, mat1, mat2, *, beta=1, alpha=1)",
    "mat1",
    "mat2",
    (2, 2),
    "matmul(grad, adjoint(mat2))",
    "A matrix times `beta`, plus the product of two matrices times `alpha`.",
)
multiplied(
    "baddbmm(self, batch1, batch2, *, beta=1, alpha=1)",
    "batch1",
    "batch2",
    (3, 3),
    "matmul(grad, adjoint(batch2))",
    "A batch of matrices times `beta`, plus a batch of matrix products times `alpha`.",
)
multiplied(
    "addmv(self, mat, vec, *, beta=1, alpha=1)",
    "mat",
    "vec",
    (2, 1),
    "outer_products(grad, vec, True)",
    "A vector times `beta`, plus a matrix-vector product times `alpha`.",
)


def linear_forward(x: Any, weight: Any, bias: Any = None) -> Any:
    product = x @ weight.T
    total = product if bias is None else product + bias
    if total.shape != product.shape:
        raise ValueError(f"a bias of shape {bias.shape} cannot be added to a product of shape {product.shape}")
    return total


row(
    "linear(self, weight, bias=None)",
    linear_forward,
    {
        "self": "matmul(grad, conj(weight)) if weight.ndim == 2 else outer_products(grad, weight, True)",
        "weight": "linear_weight_gradient(grad, self, weight.ndim)",
        "bias": "grad",
    },
    forward_derivative="linear(self_t, weight_p) + linear(self_p, weight_t) + or_nothing(bias_t)",
    method=False,
    dtype_kinds="fc",
    doc="The product with the transposed weight matrix, plus a bias: a dense layer.",
)


@formula_function
def linear_weight_gradient(grad: Any, x: Any, ndim: int) -> Any:
    """Return the gradient of the weights of a layer."""
    count = math.prod(x.shape[:-1])
    inputs = conjugated(x).reshape((count, x.shape[-1]))
    return (inputs.T @ grad.reshape((count,))) if ndim == 1 else grad.reshape((count, grad.shape[-1])).T @ inputs


@formula_function
def or_nothing(tangent: Any) -> Any:
    """Return the tangent of an optional argument, or None."""
    return 0 if tangent is None else tangent


# -- elementwise -------------------------------------------------------------------------------------------------------

for _name, _forward, _gradients, _tangent, _what in (
    (
        "addcmul",
        lambda a, x, y, *, value=1: a + value * x * y,
        ("grad * conj(tensor2) * conjugate(value)", "grad * conj(tensor1) * conjugate(value)"),
        "tensor1_t * tensor2_p + tensor1_p * tensor2_t",
        "product",
    ),
    (
        "addcdiv",
        lambda a, x, y, *, value=1: a + value * x / y,
        (
            "grad / conj(tensor2) * conjugate(value)",
            "-grad * conj(tensor1 / square(tensor2)) * conjugate(value)",
        ),
        "(tensor1_t - tensor2_t * (tensor1_p / tensor2_p)) / tensor2_p",
        "quotient",
    ),
):
    row(
        f"{_name}(self, tensor1, tensor2, *, value=1)",
        _forward,
        {"self": "grad", "tensor1": _gradients[0], "tensor2": _gradients[1]},
        forward_derivative=f"self_t + value * ({_tangent})",
        elementwise=True,
        inplace=True,
        dtype_kinds="fc",
        zero_in_masked_runs=True,
        doc=f"The input plus `value` times the {_what} of the two other tensors.",
    )
