"""Values as Python expressions."""

from __future__ import annotations

import enum
import functools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

DEFAULTS = {np.dtype(float), np.dtype(complex), np.dtype(np.int64), np.dtype(bool)}


class NoLiteral(ValueError):
    """Raised for a value that cannot be written as an expression."""


def literal(value: Any) -> str:
    """Return an expression for numbers, strings, arrays, tensors, containers of them, and importable objects.

    Raises:
        NoLiteral: for anything else.
    """
    simple = _simple(value)
    if simple:
        return simple
    if isinstance(value, np.generic):
        return f"np.{value.dtype.type.__name__}({literal(value.item())})"
    if isinstance(value, np.dtype):
        return f"np.dtype({value.name!r})"
    if isinstance(value, np.ndarray):
        return _array(value)
    if hasattr(value, "_array") and hasattr(value, "requires_grad"):
        return f"vg.Tensor({_array(value._array)}{', requires_grad=True' if value.requires_grad else ''})"
    if isinstance(value, np.random.Generator):
        return "np.random.default_rng()"
    if type(value) in (list, tuple, set, frozenset, dict):
        return _container(value)
    if isinstance(value, functools.partial):
        rest = [
            literal(value.func),
            *map(literal, value.args),
            *(f"{k}={literal(v)}" for k, v in value.keywords.items()),
        ]
        return f"__import__('functools').partial({', '.join(rest)})"
    if isinstance(value, enum.Enum):
        module, name = type(value).__module__, f"{type(value).__qualname__}.{value.name}"
        if module == "__main__" or "<" in name:
            raise NoLiteral(f"{name} cannot be imported")
        return f"__import__({module!r}, fromlist=['']).{name}"
    if isinstance(value, np.ufunc):
        name = value.__name__
        if getattr(np, name, None) is value:
            return f"np.{name}"
    raise NoLiteral(f"no expression is known for {type(value).__name__}")


def _simple(value: Any) -> str:
    """Return an expression for a number, a string, a slice or a similar value; "" for anything else."""
    if value is None or isinstance(value, bool | int | str | bytes):
        if type(value) in (bool, int, str, bytes, type(None)):
            return repr(value)
    if type(value) is float:
        return repr(value) if np.isfinite(value) else f"float({str(value)!r})"
    if type(value) is complex:
        return repr(value) if np.isfinite(value) else f"complex({literal(value.real)}, {literal(value.imag)})"
    if value is ...:
        return "..."
    if isinstance(value, slice):
        return f"slice({literal(value.start)}, {literal(value.stop)}, {literal(value.step)})"
    return ""


def display(value: Any, text: Callable[[Any], str]) -> str | None:
    """Return a list, tuple or dict as a display, given the text of each item, or None for other objects."""
    if type(value) is list:
        return f"[{', '.join(map(text, value))}]"
    if type(value) is tuple:
        return f"({', '.join(map(text, value))}{',' if len(value) == 1 else ''})"
    if type(value) is dict:
        return f"{{{', '.join(f'{text(key)}: {text(item)}' for key, item in value.items())}}}"
    return None


def _container(value: Any) -> str:
    found = display(value, literal)
    if found is not None:
        return found
    inner = f"{{{', '.join(map(literal, value))}}}" if value else "()"
    return inner if type(value) is set and value else f"{type(value).__name__}({inner})"


def _array(array: np.ndarray[Any, Any]) -> str:
    def nested(part: Any) -> str:
        return f"[{', '.join(map(nested, part))}]" if isinstance(part, list) else literal(part)

    if array.size == 0:
        return f"np.zeros({array.shape}, {array.dtype.name!r})"
    if array.size > 64 and (array == array.flat[0]).all():
        return f"np.full({array.shape}, {literal(array.flat[0].item())}, {array.dtype.name!r})"
    given = "" if array.dtype in DEFAULTS and sys.byteorder == "little" else f", {array.dtype.name!r}"
    return f"np.array({nested(array.tolist())}{given})"
