"""Methods of numbers and arrays."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ..emitter import Emitter
from ..ir import FULL, Call, Get, Set, Var, is_number
from ..library import PURE, ROWS, VIEWS
from ..value_types import Arr, is_complex
from ..values import Cell, ListValue, Ref, Reread, Static, TupleValue, as_expr, kind_name
from .arrays import cell_of, converted
from .attributes import as_variable
from .library_calls import library
from .lists import appended, cleared, item_kind, popped
from .operators import operation

CHANGING: Final = frozenset(
    "append pop extend insert remove reverse sort clear index count copy popleft appendleft".split()
)


def method(out: Emitter, base: Any, name: str, args: list[Any], keywords: dict[str, Any]) -> Any:
    """Return the result of a method of a number or an array."""
    if isinstance(base, (ListValue, Ref)):
        return _list_method(out, base, name, args)
    if isinstance(base, TupleValue):
        return _tuple_method(out, base, name, args, keywords)
    if isinstance(base, Cell) and name in ("copy", "fill") and not keywords:
        return _cell_method(out, base, name, args)
    expr = as_expr(base)
    if expr is None:
        raise out.refused(f"method {name} of {kind_name(base)} is not supported")
    if is_number(expr):
        return _number_method(out, base, expr, name, bool(args or keywords))
    if name in ("copy", "clone", "flatten") and not args and not keywords:
        flat = name == "flatten"
        kind = Arr(expr.kind.dtype, 1) if flat else expr.kind
        return Call("flatten" if flat else "copy", (as_variable(out, expr),), (), kind)
    if name == "fill" and len(args) == 1:
        return _filled_with(out, expr, args[0])
    if name == "sort":
        return _sorted_in_place(out, expr, args, keywords)
    if name == "reshape" and args and not isinstance(args[0], TupleValue):
        args = [TupleValue(tuple(args))]
    if name == "transpose" and len(args) > 1:
        args = [TupleValue(tuple(args))]
    if name == "astype" and len(args) == 1 and not keywords:
        return converted(out, expr, args[0])
    if name == "conjugate":
        name = "conj"
    if name in ("item", "tolist", "numpy", "detach", "backward", "requires_grad_"):
        raise out.refused(f"method {name} detaches a value")
    if name in VIEWS or name in PURE or name in ROWS or name in ("round",):
        return library(out, f"numpy.{name}", [expr, *args], keywords)
    raise out.refused(f"method {name} of an array is not supported")


def _tuple_method(out: Emitter, base: TupleValue, name: str, args: list[Any], keywords: dict[str, Any]) -> Any:
    """Return the result of a method of a tuple, or of a list of known length."""
    if base.site is not None and name in CHANGING and ("left" not in name or base.site[-1] == "deque"):
        given = args[-1] if name in ("append", "insert", "appendleft") else base.items[0] if base.items else None
        raise Reread(base.site, None if given is None else item_kind(out, given))
    if name == "_replace" and hasattr(base.cls, "_fields"):
        return TupleValue(tuple([keywords.get(key, item) for key, item in zip(base.cls._fields, base.items)]), base.cls)
    raise out.refused(f"list.{name}" if base.cls is list else f"tuple.{name}")


def _list_method(out: Emitter, base: ListValue | Ref, name: str, args: list[Any]) -> Any:
    """Return the result of a method of a list of unknown length."""
    if name == "append" and len(args) == 1:
        appended(out, base, args[0])
        return Static(None)
    if name == "pop" and all(isinstance(arg, Static) and arg.value == -1 for arg in args):
        return popped(out, base)
    if name == "clear" and not args:
        cleared(out, base)
        return Static(None)
    raise out.refused(f"list.{name} of a list of unknown length is not supported")


def _cell_method(out: Emitter, base: Cell, name: str, args: list[Any]) -> Any:
    """Return the result of a method of a 0-d array."""
    if len(args) != (1 if name == "fill" else 0):
        raise out.refused(f"method {name} of a 0-d array is not supported")
    return _filled_with(out, base.store, args[0]) if name == "fill" else cell_of(out, base.element, None)


def _number_method(out: Emitter, base: Any, expr: Any, name: str, has_arguments: bool) -> Any:
    """Return the result of a method of a number."""
    if name in ("conj", "conjugate") and is_complex(expr.kind) and not has_arguments:
        return operation(out, "conj", [out.lifted(expr)])
    if name in ("sum", "mean", "max", "min", "copy", "clone", "conj", "conjugate", "squeeze") and not has_arguments:
        if name in ("copy", "clone") and expr.kind.boxed:
            raise out.refused("a copy of a 0-d array is not supported")
        return expr
    if name in ROWS and not has_arguments and not isinstance(base, Static):
        return operation(out, name, [out.lifted(expr)])
    raise out.refused(f"method {name} of {kind_name(base)} is not supported")


def _sorted_in_place(out: Emitter, expr: Any, args: list[Any], keywords: dict[str, Any]) -> Any:
    """Read `sort`."""
    target = expr if isinstance(expr, (Var, Get)) else out.temporary(expr, "part")
    ordered = out.temporary(library(out, "numpy.sort", [target, *args], keywords), "ordered")
    if isinstance(target, Var):
        out.emit(Set(target, (FULL,) * target.kind.ndim, ordered, "", out.line))
    elif target.is_view:
        out.emit(Set(target.base, target.index, ordered, "", out.line))
    return Static(None)


def _filled_with(out: Emitter, expr: Any, given: Any) -> Any:
    """Read `fill`."""
    value = as_expr(given)
    if value is None or not is_number(value) or not isinstance(expr, Var):
        raise out.refused("fill is not supported")
    if not np.can_cast(value.kind.dtype, expr.kind.dtype, "same_kind"):
        raise out.refused("fill() with a number of another dtype is not supported")
    out.emit(Set(expr, (FULL,) * expr.kind.ndim, value, "", out.line))
    return Static(None)
