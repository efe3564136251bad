"""The results of programs and of functions, as trees of leaves."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from ...tensor.tensor import as_scalar
from .kinds import Num
from .objects import record_fields


def flatten_result(result: Any) -> list[Any] | None:
    """Return the leaves of a result, known objects among them."""
    found: list[Any] = []

    def look(value: Any) -> None:
        if isinstance(value, (tuple, list)):
            for each in value:
                look(each)
        elif isinstance(value, dict):
            for each in value.values():
                look(each)
        elif record_fields(type(value)) is not None:
            for name in record_fields(type(value)) or ():
                look(getattr(value, name))
        else:
            found.append(value)

    look(result)
    return found


def typed_leaf(tensor: Any, kind: Any, wanted: Any) -> Any:
    """Return a leaf of the results, of the type that the function gives."""
    array = tensor._array
    if isinstance(kind, Num):
        if wanted in (int, bool):
            return wanted(array)
        if wanted is float and not tensor.requires_grad:
            return float(array)
        if kind.dtype != "d" and wanted is None and kind.weak:
            return array.item()
        return as_scalar(tensor)
    return tensor


def with_leaf(value: Any, steps: Sequence[tuple[str, Any]], leaf: Any) -> Any:
    """Return the argument with the leaf at the end of some steps replaced."""
    if not steps:
        return leaf
    (how, key), rest = steps[0], steps[1:]
    if how in ("item", "key"):
        items = dict(value) if isinstance(value, dict) else list(value)
        items[key] = with_leaf(items[key], rest, leaf)
        if isinstance(value, (dict, list)):
            return items
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    new = copy.copy(value)
    object.__setattr__(new, key, with_leaf(getattr(value, key), rest, leaf))
    return new
