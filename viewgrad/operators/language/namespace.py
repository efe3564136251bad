"""The names that formulas may call, with their functions for arrays and tensors."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final, NoReturn

import numpy as np

from ...errors import DeclarationError, GradientNotImplementedError
from ...tensor.creation import zeros
from ...tensor.tensor import Tensor

# The functions that names in formulas refer to: for arrays in a first-order backward pass, as `arrays.name` in
# generated code, and for tensors in a recorded one, as `ops.name`. Looking up names in a module is as fast as looking
# up globals.
ARRAY_FUNCTIONS: Final = ModuleType("arrays", "The functions that formulas call, for arrays.")
TENSOR_FUNCTIONS: Final = ModuleType("ops", "The functions that formulas call, for tensors.")


def set_meaning(name: str, arrays: Callable[..., Any] | None, tensors: Callable[..., Any] | None) -> None:
    """Make `name` callable in formulas; None keeps its function for arrays, or for tensors."""
    if arrays is not None:
        setattr(ARRAY_FUNCTIONS, name, arrays)
    if tensors is not None:
        setattr(TENSOR_FUNCTIONS, name, tensors)


def formula_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function available in formulas under its own name.

    Arguments:
        function: a function of both arrays and tensors. It must be written with methods, Python's operators and NumPy's
            functions, which have the same meaning for both.

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
    is_own = function.__module__.partition(".")[0] == __name__.partition(".")[0]
    set_meaning(function.__name__, function if is_own else _checked(function), function)
    return function


COMPILED_FORMS: Final[dict[str, str]] = {}  # for each function, the expression used in compiled programs


def compiled_as(expression: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare the expression that compiled programs compute in place of a function called by formulas.

    Arguments:
        expression: the value of one element in terms of the parameters of the function, which are real numbers. In the
            formula of a reduction, `sum`, `max`, `min` and `mean` with the arguments `axis, True` are those of the
            reduced elements, and parameters that are results need not be broadcast. If a condition depends only on
            plain arguments and on which tensors are None, the other branch is ignored.
    """

    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        COMPILED_FORMS[function.__name__] = expression
        return function

    return declare


DIFFERENTIABLE_FORMS: Final[dict[str, str]] = {}  # for each function, the same expression composed of operators


def made_of_operators(expression: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare the expression that replaces a function in higher derivatives of compiled programs.

    Arguments:
        expression: the value of one element in terms of the parameters of the function, which are real numbers,
            composed of operators and other functions with such an expression.
    """

    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        DIFFERENTIABLE_FORMS[function.__name__] = expression
        return function

    return declare


def _checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a user's function of arrays so that it raises immediately if it returns a tensor."""

    @functools.wraps(function)
    def on_arrays(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        if isinstance(result, Tensor) and not any(isinstance(arg, Tensor) for arg in (*args, *kwargs.values())):
            raise DeclarationError(
                f"the formula function {function.__name__} returned a Tensor for arrays; write it with methods, "
                "Python's operators and NumPy's functions, which give arrays for arrays and tensors for tensors"
            )
        return result

    return on_arrays


def is_formula_function(name: str) -> bool:
    """Return whether formulas may call `name`."""
    return not name.startswith("__") and hasattr(TENSOR_FUNCTIONS, name)


@formula_function
def not_implemented(what: str, reason: str) -> NoReturn:
    """Raise for a derivative that a declaration marks as not implemented."""
    raise GradientNotImplementedError(f"{what} is not implemented: {reason}")


set_meaning("zeros_of", np.zeros, lambda shape, dtype: zeros(shape, dtype=dtype))
