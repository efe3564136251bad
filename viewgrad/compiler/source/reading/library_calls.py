"""The table of library functions, with the function that reads a call of each."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ..emitter import Emitter
from ..ir import FULL, Check, Const, Dim, Lazy, Op, Slice, Var, is_number
from ..library import ALIASES, CREATORS, MATH, PURE, ROWS, VIEWS, row_of
from ..value_types import BOOL, INT, Arr, Num, is_complex
from ..values import Static, TupleValue, as_expr, is_plain
from .arrays import array_of, assembled, created, elementwise, pure, view
from .attributes import as_variable, attribute
from .indexing import indexed
from .operators import arithmetic
from .python_functions import math_function, python_function

Rule = Callable[[Emitter, str, list[Any], dict[str, Any]], Any]


def library(out: Emitter, name: str, args: list[Any], keywords: dict[str, Any]) -> Any:
    """Return the result of a library function.

    Arguments:
        out: the emitter that receives statements.
        name: the name of the function, such as "numpy.sin", "numpy.linalg.inv", "math.exp" or "builtins.abs".
        args, keywords: the arguments.
    """
    module, _, short = name.rpartition(".")
    rule = MODULES.get(module)
    if rule is not None:
        return rule(out, short, args, keywords)
    if module.startswith("numpy."):
        return _of_ufunc(out, short, args, keywords, module.removeprefix("numpy."))
    short = ALIASES.get(short, short)
    if all(isinstance(arg, Static) for arg in args) and args and short in FOLDED:
        return _folded(out, short, args, keywords)
    rule = RULES.get(short) or RULES.get(row_of(short))
    if rule is None:
        raise out.refused(f"{name} is not supported")
    return rule(out, short, args, keywords)


def _folded(out: Emitter, short: str, args: list[Any], keywords: dict[str, Any]) -> Any:
    """Return the result of an elementwise function of known numbers."""
    function = getattr(np, short, None)
    if function is None or keywords or not all(is_plain(arg.value) for arg in args):
        raise out.refused(f"{short} of constant numbers is not supported")
    with np.errstate(all="ignore"):
        try:
            return Static(function(*[arg.value for arg in args]))
        except Exception as error:
            raise out.refused(f"{type(error).__name__}: {error}") from None


def _row(out: Emitter, short: str, args: list[Any], keywords: dict[str, Any]) -> Any:
    row = row_of(short)
    if row == "where" and len(args) == 1:
        return pure(out, "nonzero", args, keywords)
    return elementwise(out, row, args, keywords)


def _round(out: Emitter, short: str, args: list[Any], keywords: dict[str, Any]) -> Any:
    """Read `round`, which uses powers of ten as NumPy does."""
    rest = dict(zip(("decimals",), args[1:])) | keywords
    decimals = rest.pop("decimals", Static(0))
    is_known = isinstance(decimals, Static) and type(decimals.value) is int and decimals.value >= 0
    if rest or len(args) > 2 or not is_known:
        raise out.refused("round() to a number of decimals that is not constant is not supported")
    if decimals.value == 0:
        return elementwise(out, "rint", args[:1], {})
    expr = as_expr(args[0])
    if expr is None or expr.kind.dtype != "d":
        raise out.refused("round() of values other than floats is not supported")
    power = Static(10.0**decimals.value)
    return arithmetic(out, "div", elementwise(out, "rint", [arithmetic(out, "mul", args[0], power)], {}), power)


def _split(out: Emitter, short: str, args: list[Any], keywords: dict[str, Any]) -> Any:
    """Read `split`, `array_split` and related functions, which return views of parts of an array."""
    given = dict(zip(("ary", "indices_or_sections", "axis"), args)) | keywords
    base, sections = as_expr(given.get("ary")), given.get("indices_or_sections")
    axis = {"vsplit": Static(0), "hsplit": Static(1), "dsplit": Static(2)}.get(short, given.get("axis", Static(0)))
    if base is None or not isinstance(base.kind, Arr) or not isinstance(axis, Static) or len(given) > 3:
        raise out.refused(f"{short} with these arguments is not supported")
    number = axis.value + base.kind.ndim if axis.value < 0 else axis.value
    number = 0 if short == "hsplit" and base.kind.ndim == 1 else number
    if not 0 <= number < base.kind.ndim:
        raise out.refused(f"{short} along an axis out of range is not supported")
    base = as_variable(out, base)
    length = Dim(base, number)

    def part(low: Any, high: Any) -> Any:
        return indexed(out, base, [*[FULL] * number, Slice(low, high)])

    if isinstance(sections, TupleValue):
        cuts = [as_expr(each) for each in sections.items]
        if any(cut is None or not is_number(cut) or cut.kind.dtype != "l" for cut in cuts):
            raise out.refused(f"{short} at indices that are not integers is not supported")
        cuts = [cut if isinstance(cut, (Const, Var)) else out.temporary(cut, "n") for cut in cuts]
        return TupleValue(tuple([part(low, high) for low, high in zip([None, *cuts], [*cuts, None])]), list)
    count = sections.value if isinstance(sections, Static) else None
    if type(count) is not int or not 0 < count <= 64:
        raise out.refused(f"{short} into a number of parts that is not constant is not supported")
    each = out.temporary(Op("floor_divide", (length, Const(count, INT)), INT), "n")
    if short != "array_split":
        out.emit(Check(Op("equal", (Op("mul", (each, Const(count, INT)), INT), length), BOOL), out.line))
    more = out.temporary(Op("remainder", (length, Const(count, INT)), INT), "n")

    def start(k: int) -> Any:
        small = Op("less", (Const(k, INT), more), BOOL)
        extra = Lazy("if", (small, Const(k, INT), more), INT)
        return out.temporary(Op("add", (Op("mul", (each, Const(k, INT)), INT), extra), INT), "n")

    cuts = [Const(0, INT), *[start(k) for k in range(1, count)], length]
    return TupleValue(tuple([part(low, high) for low, high in itertools.pairwise(cuts)]), list)


def _flip(out: Emitter, short: str, args: list[Any], keywords: dict[str, Any]) -> Any:
    """Read `flip`, `flipud` and `fliplr`, which return views with reversed axes."""
    given = dict(zip(("m", "axis"), args)) | keywords
    base, axis = as_expr(given.get("m")), given.get("axis", Static({"flipud": 0, "fliplr": 1}.get(short)))
    known = tuple_of(axis)
    if base is None or not isinstance(base.kind, Arr) or known is None or len(given) > 2 or len(args) > 2:
        raise out.refused(f"{short} with these arguments is not supported")
    ndim = base.kind.ndim
    axes = {each % ndim for each in known if -ndim <= each < ndim} if known else set(range(ndim))
    if len(axes) < len(known):
        raise out.refused(f"{short} along an axis out of range is not supported")
    backwards = Slice(None, None, Const(-1, INT))
    return indexed(out, as_variable(out, base), [backwards if each in axes else FULL for each in range(ndim)])


def tuple_of(axis: Any) -> tuple[int, ...] | None:
    """Return the axes given by an argument, () for all of them, or None if they are unknown."""
    items = axis.items if isinstance(axis, TupleValue) else (axis,)
    if not all(isinstance(each, Static) for each in items):
        return None
    known = [each.value for each in items]
    if known == [None]:
        return ()
    return tuple(known) if all(type(each) is int for each in known) else None


def _empty(out: Emitter, short: str, args: list[Any], keywords: dict[str, Any]) -> Any:
    return created(out, "empty", args, keywords)


def _of_ufunc(out: Emitter, short: str, args: list[Any], keywords: dict[str, Any], ufunc: str) -> Any:
    """Read `reduce`, `accumulate` and `outer` of a ufunc."""
    exprs = [as_expr(arg) for arg in args[:2]]
    kinds = [None if expr is None else expr.kind for expr in exprs]
    if short == "outer" and len(args) == 2 and not keywords and all(
        isinstance(kind, Arr) and kind.ndim == 1 for kind in kinds
    ):
        column = indexed(out, as_variable(out, exprs[0]), [FULL, Static(None)])
        return elementwise(out, row_of(ufunc), [column, args[1]], {})
    names = {"reduce": REDUCED, "accumulate": ACCUMULATED}.get(short, {})
    if ufunc not in names or not args or not isinstance(kinds[0], Arr):
        raise out.refused(f"numpy.{ufunc}.{short} is not supported")
    rest = dict(zip(("axis",), args[1:])) | keywords
    if set(rest) - {"axis"} or len(args) > 2 or kinds[0].dtype not in "dfD":
        raise out.refused(f"numpy.{ufunc}.{short} with these arguments is not supported")
    return pure(out, names[ufunc], args[:1], {"axis": rest.get("axis", Static(0))})


def _extremum(out: Emitter, short: str, args: list[Any], keywords: dict[str, Any]) -> Any:
    if len(args) > 1 and not isinstance(args[1], Static) and as_expr(args[1]) is not None:
        raise out.refused(f"{short} of two arrays is not supported")
    return pure(out, short, args, keywords)


def _diag(out: Emitter, short: str, args: list[Any], keywords: dict[str, Any]) -> Any:
    expr = as_expr(args[0]) if args else None
    if expr is not None and expr.kind.ndim == 2:
        return view(out, "diagonal", args, {"offset" if key == "k" else key: each for key, each in keywords.items()})
    return pure(out, short, args, keywords)


def _select(out: Emitter, short: str, args: list[Any], keywords: dict[str, Any]) -> Any:
    conditions, choices, *rest = args
    found = rest[0] if rest else keywords.get("default", Static(0))
    are_known = isinstance(conditions, TupleValue) and isinstance(choices, TupleValue)
    if not are_known or len(conditions.items) != len(choices.items):
        raise out.refused("select of lists that are not constant is not supported")
    for condition, choice in reversed(list(zip(conditions.items, choices.items))):
        found = elementwise(out, "where", [condition, choice, found], {})
    return found


def _append(out: Emitter, short: str, args: list[Any], keywords: dict[str, Any]) -> Any:
    exprs = [as_expr(arg) for arg in args]
    if len(args) == 2 and (isinstance(args[1], TupleValue) or (exprs[1] is not None and is_number(exprs[1]))):
        exprs[1] = assembled(out, args[1] if isinstance(args[1], TupleValue) else TupleValue((args[1],)), None)
        args = [args[0], exprs[1]]
    if keywords or len(args) != 2 or any(expr is None or expr.kind.ndim != 1 for expr in exprs):
        raise out.refused("append with these arguments is not supported")
    return pure(out, "concatenate", [TupleValue(tuple(args))], {})


def _attribute(out: Emitter, short: str, args: list[Any], keywords: dict[str, Any]) -> Any:
    return attribute(out, args[0], short, None)


def _float(out: Emitter, short: str, args: list[Any], keywords: dict[str, Any]) -> Any:
    return python_function(out, "float", args, keywords)


def _single(out: Emitter, short: str, args: list[Any], keywords: dict[str, Any]) -> Any:
    if keywords or len(args) != 1:
        raise out.refused(f"{short} with these arguments is not supported")
    if isinstance(args[0], Static) and is_plain(args[0].value):
        return Static(np.float32(args[0].value))
    expr = as_expr(args[0])
    if expr is None or not is_number(expr) or is_complex(expr.kind):
        raise out.refused(f"{short} of something other than a real number is not supported")
    return Op("as_single", (out.lifted(expr),), Num("f"))


def _open_mesh(out: Emitter, short: str, args: list[Any], keywords: dict[str, Any]) -> Any:
    """Read `ix_` of vectors of integers."""
    exprs = [as_expr(arg) for arg in args]
    if keywords or any(expr is None or expr.kind != Arr("l", 1) for expr in exprs):
        raise out.refused("ix_ of something other than vectors of integers is not supported")
    found = []
    for number, expr in enumerate(exprs):
        items = [FULL if number == axis else Static(None) for axis in range(len(exprs))]
        found.append(out.temporary(indexed(out, as_variable(out, expr), items), "index"))
    return TupleValue(tuple(found))


def _operator(out: Emitter, short: str, args: list[Any], keywords: dict[str, Any]) -> Any:
    """Read a function of `operator`."""
    name = {"truediv": "div", "floordiv": "floor_divide", "mod": "remainder", "lt": "less", "le": "less_equal",
            "gt": "greater", "ge": "greater_equal", "eq": "equal", "ne": "not_equal"}.get(short, short)
    if keywords or len(args) != (1 if short == "neg" else 2):
        raise out.refused(f"operator.{short} with these arguments is not supported")
    return arithmetic(out, name, *args)


def _real_or_imag(out: Emitter, short: str, args: list[Any], keywords: dict[str, Any]) -> Any:
    expr = as_expr(args[0])
    if expr is None or (short == "imag" and not is_complex(expr.kind)):
        raise out.refused(f"{short} with these arguments is not supported")
    return attribute(out, args[0], short, None)


def _int(out: Emitter, short: str, args: list[Any], keywords: dict[str, Any]) -> Any:
    found = python_function(out, "int", args, keywords)
    return Static(np.int64(found.value)) if isinstance(found, Static) else found  # not an instance of int


REDUCED: Final = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min"}
ACCUMULATED: Final = {
    "add": "cumsum", "multiply": "cumprod", "maximum": "maximum.accumulate", "minimum": "minimum.accumulate",
}  # fmt: skip
FOLDED: Final = frozenset({*ROWS, *MATH, "abs", "power"})
RULES: Final[dict[str, Rule]] = {
    **dict.fromkeys(PURE, pure), **dict.fromkeys(VIEWS, view), **dict.fromkeys(ROWS, _row),
    **dict.fromkeys(CREATORS, created),
    **dict.fromkeys(("array", "asarray", "copy", "ascontiguousarray", "asanyarray", "Tensor", "tensor"), array_of),
    **dict.fromkeys(("float64", "float_", "double"), _float), **dict.fromkeys(("int64", "int_", "intp"), _int),
    **dict.fromkeys(("float32", "single"), _single), **dict.fromkeys(("real", "imag"), _real_or_imag),
    **dict.fromkeys(("shape", "size", "ndim"), _attribute), **dict.fromkeys(("max", "min"), _extremum),
    **dict.fromkeys(("split", "array_split", "vsplit", "hsplit", "dsplit"), _split),
    **dict.fromkeys(("flip", "flipud", "fliplr"), _flip), "ndarray": _empty,
    **dict.fromkeys(("round", "around"), _round), "diag": _diag, "select": _select, "append": _append, "rint": _row,
    "ix_": _open_mesh,
}  # fmt: skip
MODULES: Final[dict[str, Rule]] = {
    "builtins": python_function, "math": math_function, "operator": _operator,
    "numpy.linalg": lambda out, short, args, keywords: pure(out, f"linalg.{short}", args, keywords),
    "numpy.fft": lambda out, short, args, keywords: pure(out, f"fft.{short}", args, keywords),
}
