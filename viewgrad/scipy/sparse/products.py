"""Products of sparse and dense matrices, with derivatives of all orders in memory proportional to the stored values.

Two operators are closed under differentiation: the product with a dense matrix, and the product of two dense matrices
sampled at a pattern. Source: M. Giles, "An extended collection of matrix derivative results for forward and reverse
mode algorithmic differentiation" (2008), restricted to the pattern.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ...autograd.function import Function
from ...tensor.tensor import from_new_array
from .pattern import Pattern

BLOCK: Final = 1 << 20  # the number of elements gathered at a time


def product(pattern: Pattern, data: Any, dense: Any) -> Any:
    """Return the product of a sparse matrix and a dense vector or matrix.

    Arguments:
        pattern: a pattern of shape (m, n), with `data` of shape (pattern.count,).
        dense: a tensor of shape (n,) or (n, k).

    Returns:
        A tensor of shape (m,) or (m, k).
    """
    return _Product.apply(pattern, data, dense)


def sampled(pattern: Pattern, left: Any, right: Any) -> Any:
    """Return the elements of `left @ right.T` where a pattern has stored values.

    Arguments:
        pattern: a pattern of shape (m, n).
        left, right: tensors of shapes (m,) and (n,), or (m, k) and (n, k).

    Returns:
        A tensor of shape (pattern.count,).
    """
    return _Sampled.apply(pattern, left, right)


class _Product(Function):
    """The product of a sparse and a dense matrix."""

    @staticmethod
    def forward(ctx: Any, pattern: Pattern, data: Any, dense: Any) -> Any:
        ctx.pattern = pattern
        ctx.save_for_backward(data, dense)
        return from_new_array(pattern.matrix(data._array) @ dense._array)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        data, dense = ctx.saved_tensors
        _, wants_data, wants_dense = ctx.needs_input_grad
        of_data = _like(sampled(ctx.pattern, grad, dense.conj()), data) if wants_data else None
        of_dense = _like(product(ctx.pattern.transposed, data.conj(), grad), dense) if wants_dense else None
        return None, of_data, of_dense

    @staticmethod
    def jvp(ctx: Any, _: Any, of_data: Any, of_dense: Any) -> Any:
        data, dense = ctx.saved_tensors
        return _by_product_rule(functools.partial(product, ctx.pattern), data, dense, of_data, of_dense)


class _Sampled(Function):
    """A product of dense matrices, sampled at some positions."""

    @staticmethod
    def forward(ctx: Any, pattern: Pattern, left: Any, right: Any) -> Any:
        ctx.pattern = pattern
        ctx.save_for_backward(left, right)
        return from_new_array(_sampled_values(pattern, left._array, right._array))

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        left, right = ctx.saved_tensors
        _, wants_left, wants_right = ctx.needs_input_grad
        of_left = _like(product(ctx.pattern, grad, right.conj()), left) if wants_left else None
        of_right = _like(product(ctx.pattern.transposed, grad, left.conj()), right) if wants_right else None
        return None, of_left, of_right

    @staticmethod
    def jvp(ctx: Any, _: Any, of_left: Any, of_right: Any) -> Any:
        left, right = ctx.saved_tensors
        return _by_product_rule(functools.partial(sampled, ctx.pattern), left, right, of_left, of_right)


def _by_product_rule(multiply: Callable[..., Any], left: Any, right: Any, of_left: Any, of_right: Any) -> Any:
    """Return the tangent of a product by the product rule; a tangent that is None is zero."""
    if of_left is None:
        return multiply(left, of_right)
    tangent = multiply(of_left, right)
    return tangent if of_right is None else tangent + multiply(left, of_right)


def _sampled_values(pattern: Pattern, left: Any, right: Any) -> Any:
    if left.ndim == 1:
        return left[pattern.rows] * right[pattern.cols]
    found = np.empty(pattern.count, np.result_type(left, right))
    step = max(1, BLOCK // max(1, left.shape[1]))
    for start in range(0, pattern.count, step):
        part = slice(start, start + step)
        np.einsum("ij,ij->i", left[pattern.rows[part]], right[pattern.cols[part]], out=found[part])
    return found


def _like(grad: Any, tensor: Any) -> Any:
    """Return a gradient in the dtype of its tensor."""
    if grad.dtype.kind == "c" and tensor.dtype.kind != "c":
        grad = grad.real
    return grad if grad.dtype == tensor.dtype else grad.astype(tensor.dtype)
