"""Python's `math` for tensors: functions of tensors return tensors with history; other calls are passed to `math`."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from .numpy.namespace import added_names, unbound
from .operators.define import OPERATORS
from .operators.numpy_api.adapted import lost
from .operators.numpy_api.conversion import carries_history
from .tensor.creation import as_its_number, as_operand, holds_tensor
from .tensor.modes import GRAD, current_mode
from .tensor.tensor import Tensor
from .tensor.trace_hooks import observed

if TYPE_CHECKING:
    from .typed_math import *  # noqa: F403

    def __getattr__(name: str) -> Any: ...


FLOAT64: Final = np.dtype(np.float64)
is_finite_number = math.isfinite
# Functions of `math` that are operators, under the same or another name.
NAMED: Final = {
    "acos": "arccos",
    "acosh": "arccosh",
    "asin": "arcsin",
    "asinh": "arcsinh",
    "atan": "arctan",
    "atan2": "arctan2",
    "atanh": "arctanh",
    "cbrt": "cbrt",
    "copysign": "copysign",
    "cos": "cos",
    "cosh": "cosh",
    "degrees": "rad2deg",
    "erf": "erf",
    "erfc": "erfc",
    "exp": "exp",
    "exp2": "exp2",
    "expm1": "expm1",
    "fabs": "fabs",
    "fmod": "fmod",
    "gamma": "gamma",
    "lgamma": "gammaln",
    "log": "log",
    "log10": "log10",
    "log1p": "log1p",
    "log2": "log2",
    "pow": "pow",
    "radians": "deg2rad",
    "sin": "sin",
    "sinh": "sinh",
    "sqrt": "sqrt",
    "tan": "tan",
    "tanh": "tanh",
}
OF_TWO: Final = frozenset({"atan2", "copysign", "fmod", "pow"})  # those of two arguments
# Arguments for which Python raises an error and NumPy returns NaN or infinity.
DOMAIN: Final[dict[str, Callable[[Any], Any]]] = {
    "sqrt": lambda x: x < 0,
    "log": lambda x: x <= 0,
    "log2": lambda x: x <= 0,
    "log10": lambda x: x <= 0,
    "log1p": lambda x: x <= -1,
    "acos": lambda x: abs(x) > 1,
    "asin": lambda x: abs(x) > 1,
    "acosh": lambda x: x < 1,
    "atanh": lambda x: abs(x) >= 1,
}
# Functions that return integers or bools and have no derivative.
CONSTANT: Final = frozenset("ceil floor trunc isfinite isinf isnan isclose comb factorial gcd isqrt lcm perm".split())


def _scalar(value: Any) -> Any:
    tensor = as_operand(as_its_number(value))
    if tensor.size != 1:
        raise TypeError("only tensors of one element can be used as numbers; use viewgrad.numpy for arrays")
    return tensor.reshape(()) if tensor.ndim else tensor


def _number(value: Any) -> Any:
    value = as_its_number(value)
    return value.detach().item() if isinstance(value, Tensor) else value


def _holds(condition: Callable[[Any], Any], value: Any) -> bool:
    """Evaluate a condition on a number; while tracing, a guard is recorded, since the control flow depends on it."""
    return bool(condition(value if observed() is not None else _number(value)))


def _is_finite(value: Any) -> Any:
    return np.isfinite(value) if isinstance(value, Tensor) else math.isfinite(value)


def _operator(name: str) -> Callable[..., Any]:
    plain = getattr(math, name)
    operator = OPERATORS[NAMED[name]].function
    refused = DOMAIN.get(name)

    def of_tensors(*args: Any) -> Any:
        scalars = [_scalar(arg) for arg in args]
        if refused is not None and _holds(refused, scalars[0]):
            raise ValueError("math domain error")
        result = operator(*(scalar if scalar.dtype.kind == "f" else scalar.astype(float) for scalar in scalars))
        if not _holds(_is_finite, result) and all(_holds(_is_finite, scalar) for scalar in scalars):
            plain(*map(_number, scalars))  # raises Python's error, if any
        return result

    def of_one(x: Any, /) -> Any:
        kind = type(x)
        if kind is float or kind is int:
            return plain(x)
        if kind is Tensor and (number := x._array).dtype is FLOAT64 and not number.ndim and current_mode() <= GRAD:
            # As in `of_tensors`, whose checks cost more than the operator.
            if (refused is None or not refused(number)) and is_finite_number((result := operator(x))._array):
                return result
        return of_tensors(x) if isinstance(x, Tensor) else of_objects(x)

    def of_two(x: Any, y: Any, /) -> Any:
        return of_tensors(x, y) if isinstance(x, Tensor) or isinstance(y, Tensor) else of_objects(x, y)

    def of_objects(*args: Any) -> Any:
        try:
            return plain(*args)
        except TypeError:
            if not any(isinstance(as_its_number(arg), Tensor) for arg in args):
                raise
        return of_tensors(*args)

    return functools.wraps(plain)(of_two if name in OF_TWO else of_one)


def _constant(name: str) -> Callable[..., Any]:
    plain = getattr(math, name)

    @functools.wraps(plain)
    def function(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            kwargs = {key: _number(value) for key, value in kwargs.items()}
        elif len(args) == 1 and type(args[0]) is float:  # frequent in loops
            return plain(args[0])
        return plain(*map(_number, args), **kwargs)

    return function


def _other(name: str) -> Callable[..., Any]:
    plain = getattr(math, name)

    @functools.wraps(plain)
    def function(*args: Any, **kwargs: Any) -> Any:
        if carries_history(args):
            raise lost(f"math.{name}")
        return plain(*map(_number, args), **kwargs)

    return function


_natural_log: Final = _operator("log")


def log(x: Any, *base: Any) -> Any:
    """Return the natural logarithm, or the logarithm to a given base."""
    if not base:
        return _natural_log(x)
    x, *base = map(as_its_number, (x, *base))  # type: ignore[assignment]
    if not isinstance(x, Tensor) and not any(isinstance(each, Tensor) for each in base):
        return math.log(x, *base)
    numerator, denominator = _natural_log(x), _natural_log(*base)
    if _holds(lambda value: value == 0, denominator):
        raise ZeroDivisionError("division by zero")
    return numerator / denominator


def hypot(*coordinates: Any) -> Any:
    """Return the Euclidean norm of a vector given by its coordinates."""
    for each in coordinates:
        if isinstance(each if type(each) is float else as_its_number(each), Tensor):
            break
    else:
        return math.hypot(*coordinates)
    scalars = [_scalar(each) * 1.0 for each in coordinates]
    if len(scalars) == 2:
        return OPERATORS["hypot"].function(*scalars)
    return np.stack(scalars).vector_norm()  # type: ignore[attr-defined]


def dist(p: Any, q: Any) -> Any:
    """Return the distance between two points."""
    if not holds_tensor((p, q)):
        return math.dist(p, q)
    return hypot(*(_scalar(a) - _scalar(b) for a, b in zip(p, q, strict=True)))


def fsum(seq: Iterable[Any]) -> Any:
    """Return the sum of numbers; tensors are added in order."""
    items = list(map(as_its_number, seq))
    return sum(items[1:], items[0]) if holds_tensor(items) else math.fsum(items)


def prod(iterable: Iterable[Any], *, start: Any = 1) -> Any:
    """Return the product of the numbers."""
    items = list(iterable)
    if not holds_tensor(items):
        return math.prod(items, start=start)
    for item in items:
        start = start * item
    return start


def sumprod(p: Any, q: Any, /) -> Any:
    """Return the sum of the products of corresponding elements."""
    return sum(a * b for a, b in zip(p, q, strict=True))


def modf(x: Any) -> Any:
    """Return the fractional and the integer part; gradients flow through the fractional part."""
    if not isinstance(x, Tensor):
        return math.modf(x)
    whole = math.modf(_number(x))[1] if observed() is None else np.trunc(x.detach())
    return x - whole, whole


def remainder(x: Any, y: Any) -> Any:
    """Return the IEEE remainder, for the quotient rounded to the nearest integer."""
    if not isinstance(x, Tensor) and not isinstance(y, Tensor):
        return math.remainder(x, y)
    return x - y * round((_number(x) - math.remainder(_number(x), _number(y))) / _number(y))


def ldexp(x: Any, i: Any) -> Any:
    """Return a number times a power of two."""
    return x * 2.0 ** _number(i) if isinstance(x, Tensor) else math.ldexp(x, _number(i))


def frexp(x: Any) -> Any:
    """Return the mantissa and the exponent, an int; gradients flow through the mantissa."""
    if not isinstance(x, Tensor):
        return math.frexp(x)
    mantissa, exponent = np.frexp(_scalar(x))
    return mantissa, int(exponent)


def nextafter(x: Any, y: Any, **options: Any) -> Any:
    """Return the next floating-point number from `x` towards `y`; gradients flow to `x`."""
    if not isinstance(x, Tensor) and not isinstance(y, Tensor):
        return math.nextafter(x, y, **options)
    if options:
        raise lost("math.nextafter with steps")
    return np.nextafter(_scalar(x), _scalar(y))


def fma(x: Any, y: Any, z: Any) -> Any:
    """Return the product of the first two arguments plus the third."""
    return x * y + z


_HERE: Final = frozenset("log hypot dist fsum prod sumprod modf remainder ldexp fma frexp nextafter".split())
__all__ = sorted({name for name in dir(math) if not name.startswith("_")})
for _name in __all__:
    if _name in _HERE:
        continue
    _value = getattr(math, _name)
    if _name in NAMED and NAMED[_name] in OPERATORS:
        globals()[_name] = _operator(_name)
    elif _name in CONSTANT:
        globals()[_name] = _constant(_name)
    else:
        globals()[_name] = _other(_name) if callable(_value) else _value
for _name in _HERE.difference(__all__):  # functions that this version of Python does not have
    del globals()[_name]
unbound(math, globals(), __name__)
globals().update(__getattr__=added_names(math))


def __dir__() -> list[str]:
    return __all__
