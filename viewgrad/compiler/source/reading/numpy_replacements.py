"""NumPy functions that are replaced by functions of `numpy_code`, depending on their arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ..ir import Call, Op, Slice
from ..value_types import Arr, Num
from ..values import Static, TupleValue, as_expr, is_none
from . import numpy_code

Replacement = tuple[Any, list[Any]] | None


def in_numpy_code(name: str, args: list[Any], keywords: dict[str, Any]) -> Replacement:
    """Return the function of `numpy_code` for a NumPy function, with its arguments, or None if there is none."""
    rule = RULES.get(name)
    if rule is not None:
        return rule(args, keywords)
    plain = PLAIN.get(name)
    return None if plain is None or keywords else plain(args)


def _kind(value: Any) -> Any:
    return getattr(as_expr(value), "kind", None)


def _is_vector(value: Any, dtypes: str = "d") -> bool:
    kind = _kind(value)
    return isinstance(kind, Arr) and kind.ndim == 1 and kind.dtype in dtypes


def _is_number(value: Any, dtypes: str) -> bool:
    kind = _kind(value)
    return isinstance(kind, Num) and kind.dtype in dtypes


def _bincount(args: list[Any], keywords: dict[str, Any]) -> Replacement:
    if not set(keywords) <= {"weights", "minlength"} or not args or not _is_vector(args[0], "l"):
        return None
    rest = dict(zip(("weights", "minlength"), args[1:])) | keywords
    least, weights = rest.get("minlength", Static(0)), rest.get("weights", Static(None))
    if is_none(weights):
        return numpy_code.bincount, [args[0], least]
    return (numpy_code.weighted_bincount, [args[0], weights, least]) if _is_vector(weights, "dl") else None


def _update_at(name: str) -> Callable[[list[Any], dict[str, Any]], Replacement]:
    """Return the implementation of `at` for a binary ufunc."""
    of_all, of_each = UPDATES.get(name, (numpy_code.update_at, numpy_code.update_each_at))
    function = [] if name in UPDATES else [Static(getattr(np, name))]

    def rule(args: list[Any], keywords: dict[str, Any]) -> Replacement:
        if len(args) != 3 or keywords or not isinstance(_kind(args[0]), Arr):
            return None
        target, index, values = args
        items = list(index.items) if isinstance(index, TupleValue) and index.cls is tuple else [index]
        if items and all(_is_number(each, "l") or _is_slice(each) for each in items):
            return numpy_code.update_place, [target, index, _unshared(values), Static(getattr(np, name))]
        if not items or not all(_is_vector(each, "l") for each in items) or _kind(values) is None:
            return None
        rest = _kind(target).ndim - len(items)
        kind = _kind(values)
        if rest < 0 or kind is None or kind.ndim > rest + 1:
            return None
        own = TupleValue(tuple([_unshared(each) if _kind(target).dtype == "l" else each for each in items]))
        return (of_each if kind.ndim == rest + 1 else of_all), [target, own, _unshared(values), *function]

    return rule


def _is_slice(value: Any) -> bool:
    return isinstance(value, Slice) or (isinstance(value, Static) and isinstance(value.value, slice))


def _unshared(value: Any) -> Any:
    """Return an array that shares no memory with others."""
    expr = as_expr(value)
    if not isinstance(expr.kind, Arr) or isinstance(expr, Op) or (isinstance(expr, Call) and not expr.is_view):
        return value
    return Call("copy", (expr,), (), expr.kind)


def _copyto(args: list[Any], keywords: dict[str, Any]) -> Replacement:
    is_masked = len(args) == 2 and set(keywords) == {"where"}
    return (numpy_code.copyto_where, [*args, keywords["where"]]) if is_masked else None


def _covariance(args: list[Any], keywords: dict[str, Any]) -> Replacement:
    given = dict(zip(("m", "y", "rowvar", "bias", "ddof"), args)) | keywords
    known = {key: given.pop(key, Static(default)) for key, default in (("rowvar", True), ("bias", False),
                                                                       ("ddof", None))}
    if not all(isinstance(each, Static) for each in known.values()) or not {"m"} <= set(given) <= {"m", "y"}:
        return None
    ddof = known["ddof"].value if known["ddof"].value is not None else 0 if known["bias"].value else 1
    m, y = as_expr(given["m"]), given.get("y", Static(None))
    kind = _kind(m)
    if kind == Arr("d", 2) and is_none(y):
        turned = m if known["rowvar"].value else Call("transpose", (m,), (), kind, is_view=True)
        return numpy_code.covariance, [turned, Static(ddof)]
    if kind == Arr("d", 1) and is_none(y):
        return numpy_code.variance, [m, Static(ddof)]
    if kind == Arr("d", 1) and _kind(y) == kind:
        return numpy_code.covariance_of, [m, as_expr(y), Static(ddof)]
    return None


def _correlation(args: list[Any], keywords: dict[str, Any]) -> Replacement:
    found = _covariance(args, keywords) if set(keywords) <= {"rowvar"} and len(args) <= 3 else None
    if found is None or found[0] is numpy_code.variance:
        return None
    is_of_two = found[0] is numpy_code.covariance_of
    return (numpy_code.correlation_of if is_of_two else numpy_code.correlation), found[1][:-1]


def _delete(args: list[Any]) -> Replacement:
    fits = len(args) == 2 and _is_vector(args[0], "dl") and _is_number(args[1], "l")
    return (numpy_code.delete, args) if fits else None


def _insert(args: list[Any]) -> Replacement:
    fits = len(args) == 3 and _is_vector(args[0]) and _is_number(args[1], "l") and _is_number(args[2], "dl")
    return (numpy_code.insert_at, args) if fits else None


def _polyval(args: list[Any]) -> Replacement:
    if len(args) != 2 or getattr(_kind(args[1]), "dtype", None) != "d":
        return None
    are_numbers = isinstance(args[0], TupleValue) and all(isinstance(_kind(each), Num) for each in args[0].items)
    return (numpy_code.polyval, args) if are_numbers or _is_vector(args[0]) else None


def _cross(args: list[Any]) -> Replacement:
    fits = len(args) == 2 and isinstance(_kind(args[0]), Arr) and _kind(args[0]) == _kind(args[1])
    return (numpy_code.cross, args) if fits else None


# For each ufunc, its update at indices with a single value, and with a value for each index.
UPDATES: Final = {
    "add": (numpy_code.add_at, numpy_code.add_each_at),
    "subtract": (numpy_code.subtract_at, numpy_code.subtract_each_at),
}  # fmt: skip
UPDATING: Final = ("add", "subtract", "multiply", "divide", "maximum", "minimum", "power", "logaddexp", "hypot")
RULES: Final[dict[str, Callable[[list[Any], dict[str, Any]], Replacement]]] = {
    "numpy.bincount": _bincount, "numpy.copyto": _copyto, "numpy.cov": _covariance, "numpy.corrcoef": _correlation,
    **{f"numpy.{name}.at": _update_at(name) for name in UPDATING},
}  # fmt: skip
PLAIN: Final[dict[str, Callable[[list[Any]], Replacement]]] = {
    "numpy.delete": _delete, "numpy.insert": _insert, "numpy.polyval": _polyval, "numpy.cross": _cross,
}  # fmt: skip
