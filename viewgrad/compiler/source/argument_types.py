"""The types of arguments, which select a program, and the objects among the arguments."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ...tensor.equality import is_same_constant
from ...tensor.tensor import Tensor
from .objects import record_fields

# types without values that need to be compared
LEAVES: Final = frozenset({Tensor, np.ndarray, bool, int, float, str, type(None)})
BY_VALUE: Final = (slice, range, bytes, complex)


def type_key(value: Any) -> Any:
    """Return the part of an argument's type that selects a program, or None if no program accepts it."""
    kind = type(value)
    if kind is Tensor:
        array = value._array
        if type(array) is np.ndarray:
            return array.dtype.char, array.ndim, value.requires_grad
        return (array.dtype.char, 0, value.requires_grad, "scalar") if isinstance(array, np.generic) else None
    if kind is np.ndarray:
        return value.dtype.char, value.ndim
    if kind is float or kind is int:
        return kind
    if kind is bool or value is None or kind is str:
        return "is", value
    if isinstance(value, np.generic):
        return kind
    if kind in (tuple, list) or hasattr(kind, "_fields"):
        items = tuple([type_key(each) for each in value])
        return None if None in items else (kind, items)
    if kind is dict:
        items = tuple([(key, type_key(each)) for key, each in value.items()])
        return None if any(item[1] is None for item in items) else (kind, items)
    if isinstance(value, Tensor):
        return None
    fields = record_fields(kind)
    if fields is not None:
        items = tuple([type_key(getattr(value, field)) for field in fields])
        return None if None in items else (kind, items)
    return "object", kind


def type_text(key: Any) -> str:
    """Return the part of an argument's type that selects a program, as text."""
    if isinstance(key, type):
        return key.__name__
    if len(key) in (2, 3, 4) and isinstance(key[0], str) and len(key[0]) == 1:
        return f"{np.dtype(key[0]).name}[{', '.join(':' * key[1])}]" + (" grad" if len(key) > 2 and key[2] else "")
    if key[0] == "is":
        return repr(key[1])
    if key[0] == "object":
        return str(key[1].__name__)
    if isinstance(key[0], str):
        return f"{key[0]}={type_text(key[1])}"
    return f"{key[0].__name__} of {len(key[1])}"


def objects_in(value: Any) -> list[Any]:
    """Return the functions, classes and objects in an argument, whose behaviour is not determined by their type."""
    if type(value) in LEAVES or isinstance(value, np.generic):
        return []
    parts = _parts(value)
    return [value] if parts is None else [each for part in parts for each in objects_in(part)]


def classes_in(value: Any) -> list[type]:
    """Return the classes of the records and named tuples in an argument."""
    parts = None if type(value) in LEAVES else _parts(value)
    if parts is None:
        return []
    own = [] if type(value) in (tuple, list, dict) else [type(value)]
    return own + [each for part in parts for each in classes_in(part)]


def is_same(one: Any, other: Any) -> bool:
    """Return whether an argument is unchanged."""
    return one is other or (type(one) in BY_VALUE and is_same_constant(one, other))


def _parts(value: Any) -> list[Any] | None:
    """Return the parts of a container or record among the arguments, or None for other arguments."""
    kind = type(value)
    if kind in (tuple, list) or hasattr(kind, "_fields"):
        return list(value)
    if kind is dict:
        return list(value.values())
    fields = None if isinstance(value, (Tensor, type)) else record_fields(kind)
    return None if fields is None else [getattr(value, name) for name in fields]
