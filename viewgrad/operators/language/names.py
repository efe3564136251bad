"""The names that formulas may call, and what they mean for arrays and for tensors."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Final, NoReturn

import numpy as np

from ...errors import GradientNotImplementedError
from ...tensor.creation import zeros

__all__ = ["ARRAY_FUNCTIONS", "TENSOR_FUNCTIONS", "formula_function", "is_formula_function", "not_implemented"]

# What a name that a formula calls means: on arrays in the first-order backward pass, on tensors in a recorded one. The
# former stand beside Python's own builtins, in the place where generated code looks for these.
ARRAY_FUNCTIONS: Final[dict[str, Any]] = dict(vars(builtins))
TENSOR_FUNCTIONS: Final = SimpleNamespace()


def formula_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function that works on arrays and on tensors alike known to formulas by its name.

    Arguments:
        function: written with methods, Python's operators and NumPy's functions, which mean the same for both.

    Returns:
        The function itself, so that this can be used as a decorator.

    Example:
        >>> import viewgrad as vg
        >>> @vg.autograd.formula_function
        ... def bump_slope(x):
        ...     return -2 * x / (1 + x * x) ** 2
        >>> bump = vg.autograd.define_op(
        ...     "bump(self)", forward=lambda x: 1 / (1 + x * x), derivatives={"self": "grad * bump_slope(self)"}
        ... )
        >>> x = vg.Tensor([1.0], requires_grad=True)
        >>> bump(x).backward()
        >>> x.grad
        Tensor([-0.5])
    """
    ARRAY_FUNCTIONS[function.__name__] = function
    setattr(TENSOR_FUNCTIONS, function.__name__, function)
    return function


def is_formula_function(name: str) -> bool:
    """Whether formulas may call `name`."""
    return hasattr(TENSOR_FUNCTIONS, name)


@formula_function
def not_implemented(what: str, reason: str) -> NoReturn:
    """Refuse to compute what a declaration says is not implemented."""
    raise GradientNotImplementedError(f"{what} is not implemented: {reason}")


ARRAY_FUNCTIONS["zeros_of"] = np.zeros
TENSOR_FUNCTIONS.zeros_of = lambda shape, dtype: zeros(shape, dtype=dtype)
