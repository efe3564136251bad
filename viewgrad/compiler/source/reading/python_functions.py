"""Python's built-in functions, and those of `math`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

from ..emitter import Emitter
from ..ir import Const, Dim, Lazy, Op, Slice, Var, is_number
from ..library import MATH
from ..objects import Fields
from ..value_types import BOOL, INT, Num, joined
from ..values import ListValue, RecordValue, Ref, Static, TupleValue, as_expr, is_hashed, is_plain, kind_name
from .arrays import pure
from .attributes import as_variable
from .lists import count_of
from .operators import arithmetic, operation


def python_function(out: Emitter, name: str, args: list[Any], keywords: dict[str, Any]) -> Any:
    """Return the result of a built-in function."""
    if name == "dict" and not args:
        return RecordValue(dict(keywords))
    if keywords:
        raise out.refused(f"{name} with {next(iter(keywords))}= is not supported")
    rule = BUILTINS.get(name)
    found = None if rule is None else rule(out, args)
    if found is None:
        raise out.refused(f"{name}() with these arguments is not supported")
    return found


def _len(out: Emitter, args: list[Any]) -> Any:
    (value,) = args
    if isinstance(value, TupleValue):
        return Static(len(value.items))
    if isinstance(value, RecordValue) and value.cls is dict:
        return Static(len(value.fields))
    if is_hashed(value):
        keys = value.fields["keys"]
        if isinstance(keys, TupleValue):
            raise out.empty()
        return out.temporary(count_of(out, keys), "n")
    if isinstance(value, RecordValue) and value.cls is Fields:
        return Dim(as_variable(out, as_expr(next(iter(value.fields.values())))), 0)
    if isinstance(value, (ListValue, Ref)):
        return out.temporary(count_of(out, value), "n")
    expr = as_expr(value)
    return Dim(as_variable(out, expr), 0) if expr is not None and expr.kind.ndim else None


def _abs(out: Emitter, args: list[Any]) -> Any:
    (value,) = args
    if isinstance(value, Static):
        return Static(abs(value.value)) if is_plain(value.value) else None
    return arithmetic(out, "abs", value)


def _extreme(name: str) -> Callable[[Emitter, list[Any]], Any]:
    def rule(out: Emitter, args: list[Any]) -> Any:
        items = args[0].items if len(args) == 1 and isinstance(args[0], TupleValue) else args
        return _extremum(out, name, items) if len(items) > 1 or (items and isinstance(args[0], TupleValue)) else None

    return rule


def _sum(out: Emitter, args: list[Any]) -> Any:
    start = args[1] if len(args) > 1 else Static(0)
    if isinstance(args[0], TupleValue):
        for each in args[0].items:
            start = arithmetic(out, "add", start, each)
        return start
    expr = as_expr(args[0])
    if expr is not None and expr.kind.ndim and len(args) == 1:
        return pure(out, "sum", [expr], {"axis": Static(0)})
    return None


def _cast(name: str) -> Callable[[Emitter, list[Any]], Any]:
    def rule(out: Emitter, args: list[Any]) -> Any:
        (value,) = args
        if not isinstance(value, Static):
            return _number_of(out, name, value)
        if not is_plain(value.value):
            return None
        try:
            return Static({"int": int, "float": float, "bool": bool}[name](value.value))
        except Exception as error:
            raise out.refused(f"{type(error).__name__}: {error}") from None

    return rule


def _complex(out: Emitter, args: list[Any]) -> Any:
    real, imag = [*args, Static(0.0)][:2]
    return arithmetic(out, "add", real, arithmetic(out, "mul", imag, Static(1j)))


def _zip(out: Emitter, args: list[Any]) -> Any:
    if not args or not all(isinstance(arg, TupleValue) for arg in args):
        return None
    return TupleValue(tuple([TupleValue(items) for items in zip(*[arg.items for arg in args])]), list)


def _container(kind: type) -> Callable[[Emitter, list[Any]], Any]:
    def rule(out: Emitter, args: list[Any]) -> Any:
        if not args:
            return TupleValue((), kind)
        return TupleValue(args[0].items, kind) if isinstance(args[0], TupleValue) else None

    return rule


def _every(name: str) -> Callable[[Emitter, list[Any]], Any]:
    def rule(out: Emitter, args: list[Any]) -> Any:
        if not isinstance(args[0], TupleValue) or not args[0].items:
            return None
        tests = [as_expr(each) for each in args[0].items]
        if not all(test is not None and is_number(test) and test.kind.dtype == "?" for test in tests):
            return None
        found = tests[0]
        for test in tests[1:]:
            found = Lazy(name, (found, test), BOOL)
        return found

    return rule


def _round(out: Emitter, args: list[Any]) -> Any:
    if all(isinstance(arg, Static) and is_plain(arg.value) for arg in args):
        return Static(round(*[arg.value for arg in args]))
    return None


def _slice(out: Emitter, args: list[Any]) -> Any:
    if all(isinstance(arg, Static) for arg in args):
        return Static(slice(*[arg.value for arg in args]))
    exprs = [None if isinstance(arg, Static) and arg.value is None else as_expr(arg) for arg in args]
    if any(expr is not None and (not is_number(expr) or expr.kind.dtype != "l") for expr in exprs):
        return None
    held = [expr if expr is None or isinstance(expr, Const) else out.temporary(expr, "bound") for expr in exprs]
    return Slice(None, *held) if len(held) == 1 else Slice(*held)


def _divmod(out: Emitter, args: list[Any]) -> Any:
    return TupleValue((arithmetic(out, "floor_divide", *args), arithmetic(out, "remainder", *args)))


BUILTINS: Final[dict[str, Callable[[Emitter, list[Any]], Any]]] = {
    "len": _len, "abs": _abs, "min": _extreme("min"), "max": _extreme("max"), "sum": _sum, "int": _cast("int"),
    "float": _cast("float"), "complex": _complex, "bool": _cast("bool"),
    "pow": lambda out, args: arithmetic(out, "pow", *args),
    "zip": _zip, "divmod": _divmod, "slice": _slice,
    "tuple": _container(tuple), "list": _container(list), "round": _round, "all": _every("and"),
    "any": _every("or"),
}  # fmt: skip


def _number_of(out: Emitter, name: str, value: Any) -> Any:
    expr = as_expr(value)
    if expr is None or not is_number(expr):
        raise out.refused(f"{name} of {kind_name(value)} is not supported")
    expr = out.lifted(expr)
    dtype = expr.kind.dtype
    if name == "bool":
        return Op("not_equal", (expr, Const(0, INT)), BOOL)
    if name == "int":
        if dtype in "?l":
            return expr if expr.kind == INT else Op("as_integer", (expr,), INT)
        if dtype in "df":
            return Op("as_integer", (Op("finite", (expr, Const(0.0, Num("d", weak=True))), expr.kind),), INT)
    elif dtype in "?lf" and name == "float":
        return Op("as_float", (expr,), Num("d", weak=True))
    raise out.refused(f"{name}() detaches a value")


def _extremum(out: Emitter, name: str, values: Sequence[Any]) -> Any:
    """Return the result of Python's `max` or `min`, which is one of the values."""
    if all(isinstance(value, Static) and is_plain(value.value) for value in values):
        return Static({"min": min, "max": max}[name](value.value for value in values))
    exprs = [as_expr(value) for value in values]
    if any(expr is None or not is_number(expr) or expr.kind.dtype not in "?ldf" for expr in exprs):
        raise out.refused(f"{name} of something other than real numbers is not supported")
    exprs = [expr if isinstance(expr, (Const, Var)) else out.temporary(expr) for expr in exprs]
    best = exprs[0]
    for number, expr in enumerate(exprs[1:]):
        kind = joined(best.kind, expr.kind)
        if kind is None:
            raise out.refused(f"{name} of values of several types is not supported")
        test = operation(out, "greater" if name == "max" else "less", [expr, best])
        best = Lazy("if", (test, expr, best), kind)
        if number < len(exprs) - 2:
            best = out.temporary(best)
    return best


def math_function(out: Emitter, name: str, args: list[Any], keywords: dict[str, Any]) -> Any:
    """Read a call of a function of `math`."""
    if keywords:
        raise out.refused(f"math.{name} with keywords is not supported")
    if all(isinstance(arg, Static) and is_plain(arg.value) for arg in args):
        try:
            return Static(getattr(math, name)(*[arg.value for arg in args]))
        except Exception as error:
            raise out.refused(f"{type(error).__name__}: {error}") from None
    exprs = [as_expr(arg) for arg in args]
    if any(expr is None or not is_number(expr) or expr.kind.dtype not in "?ldf" for expr in exprs):
        raise out.refused(f"math.{name} of something other than real numbers is not supported")
    exprs = [out.lifted(expr) for expr in exprs]
    weak = all(expr.kind.weak for expr in exprs)
    if name in ("floor", "ceil", "trunc") and len(exprs) == 1:
        if exprs[0].kind.dtype in "?l":
            return exprs[0]
        finite = Op("finite", (exprs[0], Const(0.0, Num("d", weak=True))), exprs[0].kind)
        return Op("as_integer", (Op(name, (finite,), exprs[0].kind),), INT)
    if name in ("isnan", "isfinite", "isinf") and len(exprs) == 1:
        return Op(name, (exprs[0],), BOOL)
    if name == "log" and len(exprs) == 2:
        top, bottom = [math_function(out, "log", [each], {}) for each in exprs]
        return arithmetic(out, "div", top, bottom)
    row = MATH.get(name)
    if row is None or len(exprs) != (2 if row in ("arctan2", "copysign", "pow", "hypot", "fmod") else 1):
        raise out.refused(f"math.{name} is not supported")
    exprs = [Op("as_float", (expr,), Num("d", weak=True)) if expr.kind.dtype in "?lf" else expr for expr in exprs]
    found = Op(row, tuple(exprs), Num("d", weak=weak))
    return Op("finite", (found, *exprs), found.kind)
