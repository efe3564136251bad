"""Functions of `scipy.special` that are written down by their slopes: SciPy's values, and derivatives of every order.

A slope is a function of tensors, which may call the function itself, or others that are given by their slopes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..autograd import Function
from ..numpy.functions import lost
from ..numpy.values import as_argument, as_tensors, carries_history, plain_values
from ..tensor.creation import as_operand, holds_tensor

__all__ = ["by_slopes"]

Slope = Callable[..., Any]


def by_slopes(name: str, function: Callable[..., Any], *slopes: Slope | None, way_out: str = "") -> Callable[..., Any]:
    """A function of tensors, elementwise, that has SciPy's values and these slopes.

    Arguments:
        name: what it is called.
        function: SciPy's, or another function of arrays.
        slopes: for each argument the derivative by it, a function of the arguments; None where no gradient flows.
        way_out: what to do where an argument without a slope has a history.
    """

    class Sloped(Function):
        @staticmethod
        def forward(ctx: Any, *args: Any) -> Any:
            ctx.save_for_backward(*args)
            ctx.save_for_forward(*args)
            return as_tensors(np.array(function(*map(plain_values, args))))

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            args = ctx.saved_tensors
            return tuple(
                _fitting(grad * np.conj(slope(*args)), arg) if slope is not None and needed else None
                for slope, arg, needed in zip(slopes, args, ctx.needs_input_grad)
            )

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> Any:
            args = ctx.saved_tensors
            parts = [
                tangent * slope(*args)
                for slope, tangent in zip(slopes, tangents)
                if slope is not None and tangent is not None
            ]
            return sum(parts[1:], parts[0])

    def call(*args: Any, **options: Any) -> Any:
        if not holds_tensor(args):
            return as_tensors(function(*args, **options))
        for slope, arg in zip(slopes, args):
            if slope is None and carries_history(arg):
                raise lost(f"scipy.special.{name}", way_out or "no gradient flows to this argument; pass its detach()")
        given = [as_operand(as_argument(arg)) for arg in args]
        shape = np.broadcast_shapes(*(arg.shape for arg in given))
        return Sloped.apply(*(arg if arg.shape == shape else arg.broadcast_to(shape) for arg in given))

    Sloped.__name__ = Sloped.__qualname__ = call.__name__ = call.__qualname__ = name
    call.__doc__ = f"`scipy.special.{name}`, by its values and its slopes."
    return call


def _fitting(gradient: Any, arg: Any) -> Any:
    """A gradient of the kind of what it belongs to."""
    return gradient.real if gradient.dtype.kind == "c" and arg.dtype.kind != "c" else gradient
