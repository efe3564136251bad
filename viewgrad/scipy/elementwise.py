"""`scipy.optimize.elementwise` for functions of tensors: many searches at once, with differentiable solutions.

As in `optimize.py`, solutions depend on the tensors that the function captures and on `args`, but not on the start.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ..errors import DifferentiabilityError
from ..func.transforms import grad
from ..numpy.namespace import filled, public_names
from ..operators.numpy_api.conversion import as_tensors, carries_history, plain_values
from ..tensor.tensor import Tensor
from .implicit_diff import root_by_elements
from .wrap import args_tuple, float_copy, numbers, registrar

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


MADE: dict[str, Any] = {}
registered: Final = registrar(MADE)
_spec = importlib.util.find_spec("scipy.optimize.elementwise")  # available since SciPy 1.15
SCIPYS: Final[Any] = importlib.import_module("scipy.optimize.elementwise") if _spec else None


def _value(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return tuple([_value(item) for item in value])
    return np.array(plain_values(numbers(value).detach()))


def _found(name: str, f: Callable[..., Any], start: Any, args: Any, options: dict[str, Any]) -> tuple[Any, Any, bool]:
    """Return SciPy's result, the function with `args` bound, and whether the function has a history."""
    given = args_tuple(args)
    arrays = (Tensor, tuple, list)
    settings = {key: _value(value) if isinstance(value, arrays) else value for key, value in options.items()}

    def plain(x: Any, *rest: Any) -> Any:
        result = f(as_tensors(np.array(x)), *as_tensors([np.array(item) for item in rest]))
        return np.array(plain_values(numbers(result).detach()))

    found = getattr(SCIPYS, name)(plain, *start, args=_value(given), **settings)
    operands = [numbers(item) for item in given]

    def function(x: Any) -> Any:
        return numbers(f(x, *operands))

    place = found.x if "x" in found else found.bracket[0]
    history = carries_history(operands) or carries_history(function(as_tensors(np.array(place))))
    return found, function, history


def _moved(function: Callable[..., Any], place: Any) -> Any:
    """Return a root of a function, with its history.

    Raises:
        DifferentiabilityError: if the function does not change with its argument.
    """
    moved = root_by_elements(function, place)
    lost = np.isfinite(plain_values(place)) & ~np.isfinite(plain_values(moved.detach()))
    if np.any(lost):
        raise DifferentiabilityError(
            "the result has no derivative: the function (for a minimum, its slope) does not change with its argument "
            "there; it may have been converted to a plain number, as by item()"
        )
    return moved


@registered
def find_root(f: Callable[..., Any], init: Any, /, *, args: Any = (), **options: Any) -> Any:
    """Find roots of functions of one variable, one for each element; they are differentiable.

    Example:
        >>> import viewgrad as vg
        >>> from viewgrad.scipy.optimize.elementwise import find_root
        >>> a = vg.Tensor([4.0, 9.0], requires_grad=True)
        >>> found = find_root(lambda x, a: x * x - a, (0.0, 5.0), args=(a,)).x
        >>> vg.autograd.grad(found.sum(), a)[0]
        Tensor([0.25      , 0.16666667])
    """
    found, function, depends = _found("find_root", f, (_value(init),), args, options)
    found.x, found.f_x = as_tensors((found.x, found.f_x))
    if depends:
        found.x = _moved(function, found.x)
        found.f_x = function(found.x)
    return found


@registered
def find_minimum(f: Callable[..., Any], init: Any, /, *, args: Any = (), **options: Any) -> Any:
    """Find minimizers of functions of one variable, one for each element; they are differentiable."""
    found, function, depends = _found("find_minimum", f, (_value(init),), args, options)
    found.x, found.f_x = as_tensors((found.x, found.f_x))
    if depends:
        found.x = _moved(lambda x: grad(lambda each: float_copy(function(each)).sum())(x), found.x)
        found.f_x = function(found.x)
    return found


@registered
def bracket_root(f: Callable[..., Any], xl0: Any, xr0: Any = None, *, args: Any = (), **options: Any) -> Any:
    """Find brackets of the roots of a function of one variable; its values at the ends are differentiable."""
    return _bracket("bracket_root", f, (_value(xl0),), args, {"xr0": xr0, **options})


@registered
def bracket_minimum(f: Callable[..., Any], xm0: Any, *, args: Any = (), **options: Any) -> Any:
    """Find three points with the least function value at the middle one; the values are differentiable."""
    return _bracket("bracket_minimum", f, (_value(xm0),), args, options)


def _bracket(name: str, f: Callable[..., Any], start: Any, args: Any, options: dict[str, Any]) -> Any:
    found, function, depends = _found(name, f, start, args, options)
    found.bracket = as_tensors(found.bracket)
    if depends:
        found.f_bracket = tuple([function(x) for x in found.bracket])
    return found


if SCIPYS is None:
    __all__: list[str] = []
else:
    globals().update(filled(SCIPYS, MADE, frozenset(), {}))
    __all__ = public_names(SCIPYS)
