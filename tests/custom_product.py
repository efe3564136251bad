"""A custom function shared by several test modules: a product."""

from __future__ import annotations

from viewgrad.autograd import Function

__all__ = ["Product"]


class Product(Function):
    """A product whose `forward` takes `ctx`."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        return grad * y, grad * x
