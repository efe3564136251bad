"""Python's operators on tensors, which share the code of the generated functions to avoid an additional call.

Two global names differ: the conversion of the operands, which refuses objects whose own class handles the operator, and
the function for operands that cannot be converted, which returns NotImplemented, so that Python tries the other class.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Number
from typing import Any

import numpy as np

from ..tensor.creation import is_number_sequence
from ..tensor.tensor import Tensor, is_scalar
from ..tensor.trace_hooks import array_of
from . import OPERATORS
from .codegen.generate import augmented, reflected, with_names
from .numpy_api.conversion import carries_history, with_masked_tensors
from .numpy_api.dispatch import write_out
from .operands import operand_pair_unless

__all__: list[str] = []

# Operators with a reflected form and, if declared, an in-place form.
SAME_ORDER = {
    "add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "floordiv": "floor_divide", "mod": "remainder",
    "matmul": "matmul", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "lshift": "left_shift",
    "rshift": "right_shift",
}
COMMUTATIVE = ("add", "mul", "and", "or", "xor")
OF_ONE = {"neg": "neg", "pos": "positive", "abs": "abs", "invert": "invert"}
COMPARISONS = {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}
EQUALITY = {"eq": "equal", "ne": "not_equal"}
COMPARING = frozenset(getattr(np, name) for name in (*COMPARISONS.values(), *EQUALITY.values()))
MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


def _when_called(form: Callable[[Any], Any], operator: Any, name: str, python: str) -> Any:
    """Return the reflected or augmented form of an operator as a method that is generated on the first call."""

    def first_call(self: Any, other: Any) -> Any:
        method = _as_method(operator, f"__r{python}__", form(operator), writes=form is augmented)
        setattr(Tensor, name, method)
        return method(self, other)

    return first_call


def _by_numpy(ufunc: Any, method: str) -> Callable[[Any, Any], Any]:
    """Return the function for an operand that is not converted to a tensor.

    NumPy applies the operator to such a number, a `Decimal` for example, and to each element, as Python objects.
    Integers and comparisons have no derivative to be lost. For an object whose class defines `__array_ufunc__` rather
    than operators, NumPy calls the ufunc.

    Arguments:
        ufunc: the ufunc for the operator.
        method: the name of the method that the class of the other operand may define for this operator.
    """

    def call(first: Any, second: Any) -> Any:
        tensor, other = (first, second) if isinstance(first, Tensor) else (second, first)
        if isinstance(other, Number) and (tensor.dtype.kind in "biu" or ufunc in COMPARING):
            return ufunc(*(array_of(each, "an operator") if each is tensor else each for each in (first, second)))
        if isinstance(other, np.ma.MaskedArray) and carries_history(tensor):
            return ufunc(*with_masked_tensors((first, second)))
        kind = type(other)
        defines = getattr(kind, method, None) is not getattr(object, method, None)
        if not defines and getattr(kind, "__array_ufunc__", None) is not None:
            return ufunc(first, second)
        return NotImplemented

    return call


def _not_written(ufunc: Any) -> Callable[[Any, Any], Any]:
    """Return the function for `x += y` with a `y` that is not converted to a tensor.

    It returns NotImplemented, unless NumPy would write to `x`: for an array, which raises, and for an object with an
    `__array_ufunc__`, for which NumPy calls the ufunc with `out=x`.
    """

    def call(first: Any, second: Any) -> Any:
        if isinstance(second, np.ndarray):
            raise
        has_own_rules = getattr(type(second), "__array_ufunc__", None) is not None
        return ufunc(first, second, out=first) if has_own_rules and first._array.ndim else NotImplemented

    return call


def _as_method(operator: Any, name: str, function: Any = None, writes: bool = False) -> Any:
    """Return a generated function as a method for one of Python's operators.

    Arguments:
        operator: the operator.
        name: the name of the method that the class of the other operand may define for this operator.
        function: the function, if it is not that of the operator.
        writes: whether the method is for an augmented assignment, such as `x += y`.
    """
    foreign = _not_written(operator.forward) if writes else _by_numpy(operator.forward, name)
    names = {"foreign_operand": foreign, "operand_pair": operand_pair_unless(name, writes)}
    return with_names(function or operator.function, names)


def _install() -> None:
    for python, name in SAME_ORDER.items():
        operator = OPERATORS[name]
        method = _as_method(operator, f"__r{python}__")
        setattr(Tensor, f"__{python}__", method)
        from_right = method if python in COMMUTATIVE else _when_called(reflected, operator, f"__r{python}__", python)
        setattr(Tensor, f"__r{python}__", from_right)
        if operator.has_inplace:
            setattr(Tensor, f"__i{python}__", _when_called(augmented, operator, f"__i{python}__", python))
    for python, name in OF_ONE.items():
        setattr(Tensor, f"__{python}__", OPERATORS[name].function)
    for python, name in COMPARISONS.items():
        setattr(Tensor, f"__{python}__", _as_method(OPERATORS[name], f"__{MIRRORED[python]}__"))


pow_, square, square_ = OPERATORS["pow"], OPERATORS["square"].function, OPERATORS["square"].inplace_function
power, power_ = _as_method(pow_, "__rpow__"), _as_method(pow_, "__rpow__", pow_.inplace_function, writes=True)
equal, not_equal = (_as_method(OPERATORS[name], f"__{python}__") for python, name in EQUALITY.items())
floor_divide = _as_method(OPERATORS["floor_divide"], "__rdivmod__")
matmul = _as_method(OPERATORS["matmul"], "__rmatmul__", writes=True)
where = OPERATORS["where"].function
NUMBERS = (Tensor, int, float, complex, np.ndarray, np.generic, list, tuple)


def _pow(self: Any, other: Any) -> Any:
    if type(other) is int and other == 2 and type(self._array) is not np.bool_:  # `bool ** 2` is an int64
        return square(self)
    return power(self, other)


def _ipow(self: Any, other: Any) -> Any:
    if is_scalar(self):
        return NotImplemented
    return square_(self) if type(other) is int and other == 2 else power_(self, other)


def _imatmul(self: Any, other: Any) -> Any:
    if is_scalar(self):
        return NotImplemented
    product = matmul(self, other)
    if product is NotImplemented:
        return product
    if product.shape != self.shape:
        raise ValueError(f"@= cannot write a product of shape {product.shape} to a tensor of shape {self.shape}")
    return write_out(product, self, "@=")


def _rpow(self: Any, other: Any) -> Any:
    return power(other, self)


def _divmod(self: Any, other: Any) -> Any:
    quotient = floor_divide(self, other)
    return quotient if quotient is NotImplemented else (quotient, self % other)


def _rdivmod(self: Any, other: Any) -> Any:
    quotient = floor_divide(other, self)
    return quotient if quotient is NotImplemented else (quotient, other % self)


def _where(self: Any, condition: Any, other: Any) -> Any:
    """Return the tensor's elements where the condition is true, and those of `other` elsewhere."""
    return where(condition, self, other)


def _eq(self: Any, other: Any) -> Any:
    return equal(self, other) if isinstance(other, NUMBERS) or _is_compared_elementwise(other) else NotImplemented


def _ne(self: Any, other: Any) -> Any:
    return not_equal(self, other) if isinstance(other, NUMBERS) or _is_compared_elementwise(other) else NotImplemented


def _is_compared_elementwise(other: Any) -> bool:
    """Return whether NumPy compares an object elementwise: a sequence, a number, or an object with `__array__` that
    does not implement the comparison itself.
    """
    kind = type(other)
    if hasattr(kind, "__array_ufunc__"):
        defines: Any = kind.__eq__
        return kind.__array_ufunc__ is not None and defines is object.__eq__
    defers = hasattr(kind, "__array_priority__")
    if isinstance(other, (range, Number)) or is_number_sequence(other):
        return True
    return hasattr(kind, "__array__") and not defers


_install()
for _name, _function in {
    "__pow__": _pow,
    "__rpow__": _rpow,
    "__ipow__": _ipow,
    "__imatmul__": _imatmul,
    "__divmod__": _divmod,
    "__rdivmod__": _rdivmod,
    "__eq__": _eq,
    "__ne__": _ne,
    "where": _where,
}.items():
    setattr(Tensor, _name, _function)
