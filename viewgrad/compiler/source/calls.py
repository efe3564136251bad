"""Operators, indices, methods and library functions: what they become in the program."""

from __future__ import annotations

import ast
import inspect
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, Final

import attrs
import numpy as np

from ...operators.define import OPERATORS
from .emitting import Emitter
from .ir import (
    FULL,
    NEW,
    Call,
    Check,
    Const,
    Dim,
    Get,
    Lazy,
    LetMany,
    Op,
    Set,
    Slice,
    Var,
    is_number,
    place_kind,
)
from .kinds import BOOL, INT, Arr, Kind, Num, joined, kind_of, kind_of_operator, sample
from .library import ALIASES, CREATORS, MATH, PURE, ROWS, VIEWS, row_of
from .values import Rec, Static, Tup, as_expr, is_identity, is_plain, kind_name

__all__ = [
    "Iteration", "arithmetic", "attribute", "comparison", "enumerated", "get", "indexed", "item", "library", "method",
    "pure", "range_of", "reversed_sequence", "sequence_of", "sliced", "zipped",
]  # fmt: skip

FOLDED: Final[dict[str, Callable[..., Any]]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": lambda a, b: a / b,
    "floor_divide": lambda a, b: a // b, "remainder": lambda a, b: a % b, "pow": lambda a, b: a**b,
    "bitwise_and": lambda a, b: a & b, "bitwise_or": lambda a, b: a | b, "bitwise_xor": lambda a, b: a ^ b,
    "left_shift": lambda a, b: a << b, "right_shift": lambda a, b: a >> b, "neg": lambda a: -a,
    "positive": lambda a: +a, "invert": lambda a: ~a, "equal": lambda a, b: a == b, "not_equal": lambda a, b: a != b,
    "less": lambda a, b: a < b, "less_equal": lambda a, b: a <= b, "greater": lambda a, b: a > b,
    "greater_equal": lambda a, b: a >= b,
}  # fmt: skip


# -- operators ---------------------------------------------------------------------------------------------------------


def arithmetic(out: Emitter, name: str, *values: Any) -> Any:
    """The result of one of Python's operators."""
    if all(isinstance(value, Static) for value in values):
        if not all(is_plain(value.value) for value in values) and not (
            name in ("equal", "not_equal") and all(is_identity(value.value) for value in values)
        ):
            raise out.refused(f"an operator of {', '.join(map(kind_name, values))}")
        try:
            return Static(FOLDED[name](*[value.value for value in values]))
        except Exception as error:
            raise out.refused(f"{type(error).__name__}: {error}") from None
    if name == "add" and all(isinstance(value, Tup) for value in values) and values[0].cls is values[1].cls:
        return Tup((*values[0].items, *values[1].items), values[0].cls)
    if name == "mul":
        for one, other in (values, values[::-1]) if len(values) == 2 else ():
            if isinstance(one, Tup) and isinstance(other, Static) and isinstance(other.value, int):
                if len(one.items) * other.value > 64:
                    raise out.refused("a long list is made")
                return Tup(one.items * other.value, one.cls)
    exprs = [as_expr(value) for value in values]
    if any(expr is None for expr in exprs):
        wrong = next(value for value, expr in zip(values, exprs) if expr is None)
        raise out.refused(f"{kind_name(wrong)} as an operand")
    exprs = [out.lifted(expr) for expr in exprs]
    weak = all(is_number(expr) and expr.kind.weak for expr in exprs)
    integers = all(expr.kind.dtype in "?l" for expr in exprs)
    if name == "pow" and integers and not (isinstance(exprs[1], Const) and 0 <= exprs[1].value < 8):
        _check_power(out, weak, *exprs)
    if weak and name in ("div", "floor_divide", "remainder") and not _is_nonzero(exprs[1]):
        exprs[1] = Op("nonzero", (exprs[1],), exprs[1].kind)
    found = operation(out, name, exprs)
    if weak and name == "pow" and not integers:
        return Op("finite", (found, *exprs), found.kind)
    return found


def _check_power(out: Emitter, weak: bool, base: Any, exponent: Any) -> None:
    """Make sure that a power of Python's integers is one, and not too large."""
    if not weak or not isinstance(base, Const) or abs(base.value) > 4:
        raise out.refused("an integer to a power that is not known")
    for test in (Op("less_equal", (Const(0, INT), exponent), BOOL), Op("less", (exponent, Const(31, INT)), BOOL)):
        out.emit(Check(test, out.line))


def _is_nonzero(expr: Any) -> bool:
    return isinstance(expr, Const) and expr.value != 0


CONDITIONS: Final = frozenset(
    "equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor logical_not isnan isinf "
    "isfinite signbit".split()
)
LOGICAL: Final = frozenset("bitwise_and bitwise_or bitwise_xor invert where".split())


def operation(out: Emitter, name: str, exprs: Sequence[Any]) -> Any:
    """An elementwise operator of expressions."""
    try:
        kind = kind_of_operator(name, tuple([expr.kind for expr in exprs]))
    except Exception as error:
        raise out.refused(f"{name}: {error}") from None
    is_condition = name in CONDITIONS or (all(expr.kind.dtype == "?" for expr in exprs) and name in LOGICAL)
    if kind.dtype not in "?ld" or (kind.dtype == "?") != is_condition:
        raise out.refused(f"{name} gives {np.dtype(kind.dtype)}")
    return Op(name, tuple(exprs), kind)


def comparison(out: Emitter, node: ast.cmpop, left: Any, right: Any, names: dict[Any, str]) -> Any:
    """The result of a comparison."""
    if isinstance(node, (ast.Is, ast.IsNot)):
        if isinstance(left, Static) and isinstance(right, Static):
            same = left.value is right.value
        elif any(isinstance(each, Static) and as_expr(each) is None for each in (left, right)):
            same = False
        else:
            raise out.refused("`is` of values")
        return Static(same is isinstance(node, ast.Is))
    if isinstance(node, (ast.In, ast.NotIn)):
        return Static(_contains(out, left, right) is isinstance(node, ast.In))
    name = names[type(node)]
    if isinstance(left, Tup) and isinstance(right, Tup) and name in ("equal", "not_equal"):
        return _equal_items(out, name, left, right)
    if any(isinstance(each, Static) and as_expr(each) is None for each in (left, right)):
        if isinstance(left, Static) and isinstance(right, Static):
            return arithmetic(out, name, left, right)
        if name in ("equal", "not_equal") and not isinstance(left, Tup) and not isinstance(right, Tup):
            raise out.refused("a number or an array is compared with something else")
    return arithmetic(out, name, left, right)


def _contains(out: Emitter, item: Any, container: Any) -> bool:
    """Whether a known object is in a known container."""
    if isinstance(item, Static) and is_plain(item.value):
        if isinstance(container, Tup) and all(isinstance(each, Static) for each in container.items):
            if all(is_plain(each.value) for each in container.items):
                return item.value in [each.value for each in container.items]
        if isinstance(container, Rec) and container.cls is dict:
            return item.value in container.fields
        if isinstance(container, Static) and is_plain(container.value):
            return item.value in container.value
    raise out.refused("`in` of values that are not known")


def _equal_items(out: Emitter, name: str, left: Tup, right: Tup) -> Any:
    """Whether tuples are equal, or not."""
    if len(left.items) != len(right.items):
        return Static(name == "not_equal")
    tests = [arithmetic(out, "equal", a, b) for a, b in zip(left.items, right.items)]
    exprs = [Const(test.value, BOOL) if isinstance(test, Static) else test for test in tests]
    if not exprs:
        return Static(name == "equal")
    both = exprs[0]
    for test in exprs[1:]:
        both = Lazy("and", (both, test), BOOL)
    return both if name == "equal" else Lazy("not", (both,), BOOL)


# -- indices -----------------------------------------------------------------------------------------------------------


def sliced(out: Emitter, parts: Sequence[Any]) -> Slice:
    """A slice of an index."""
    found: list[Any] = []
    for part in parts:
        if part is None or (isinstance(part, Static) and part.value is None):
            found.append(None)
            continue
        expr = as_expr(part)
        if expr is None or not is_number(expr) or expr.kind.dtype != "l":
            raise out.refused("a slice of something else than integers")
        found.append(expr)
    return Slice(*found)


def indexed(out: Emitter, base: Any, items: Sequence[Any]) -> Any:
    """A part of an array.

    Arguments:
        base: an expression that is an array.
        items: the items of the index: slices, expressions, known objects.
    """
    made = [_index_item(out, each) for each in _filled(out, base, items)]
    if isinstance(base, Get) and base.is_view:
        composed = _composed(base, made)
        if composed is not None:
            return get(base.base, _counted(base.base, composed))
    if not isinstance(base, Var):
        base = out.temporary(base, "part")
    return get(base, _counted(base, made))


def _filled(out: Emitter, base: Any, items: Sequence[Any]) -> list[Any]:
    """The items of an index with full slices for the axes that it leaves out."""
    taken = 0
    for each in items:
        if isinstance(each, Static) and (each.value is None or each.value is Ellipsis):
            continue
        expr = None if isinstance(each, Slice) else as_expr(each)
        is_mask = expr is not None and expr.kind.ndim and expr.kind.dtype == "?"
        taken += expr.kind.ndim if expr is not None and is_mask else 1
    if taken > base.kind.ndim:
        raise out.refused(f"an index of {taken} items for an array of {base.kind.ndim} dimensions")
    dots = [n for n, each in enumerate(items) if isinstance(each, Static) and each.value is Ellipsis]
    if len(dots) > 1:
        raise out.refused("two ellipses in an index")
    fill = [FULL] * (base.kind.ndim - taken)
    return [*items[: dots[0]], *fill, *items[dots[0] + 1 :]] if dots else [*items, *fill]


def _index_item(out: Emitter, each: Any) -> Any:
    """An item of an index."""
    if isinstance(each, Static) and each.value is None:
        return NEW
    if isinstance(each, Slice):
        return each
    expr = as_expr(each)
    if expr is None and isinstance(each, Tup) and each.cls is list and all(
        isinstance(as_expr(item), (Const, Var, Op)) for item in each.items
    ):
        expr = _assembled(out, each, None)
    if expr is None:
        raise out.refused(f"{kind_name(each)} as an index")
    if isinstance(expr, Const) and type(expr.value) is not int:
        raise out.refused(f"{expr.value!r} as an index")
    if expr.kind.dtype not in ("l" if is_number(expr) else "?l"):
        raise out.refused(f"{kind_name(expr)} as an index")
    return expr if is_number(expr) or isinstance(expr, Var) else out.temporary(expr, "index")


def _counted(base: Var, items: Sequence[Any]) -> tuple[Any, ...]:
    """The index with known negative numbers counted from the end."""
    found = []
    axis = 0
    for each in items:
        if isinstance(each, Const) and each.value < 0:
            each = Op("add", (Dim(base, axis), each), INT)
        found.append(each)
        if each is not NEW:
            kind = getattr(each, "kind", None)
            axis += kind.ndim if isinstance(kind, Arr) and kind.dtype == "?" else 1
    return tuple(found)


def _composed(view: Get, items: Sequence[Any]) -> list[Any] | None:
    """The index of a part of a view, in the array itself; None if it is not simple."""
    if any(each is NEW for each in (*items, *view.index)):
        return None
    rest = list(items)
    found = []
    for each in view.index:
        if each == FULL:
            found.append(rest.pop(0))
        elif isinstance(each, Slice):
            nxt = rest.pop(0)
            if nxt != FULL:
                return None
            found.append(each)
        else:
            found.append(each)
    return None if rest or any(isinstance(getattr(each, "kind", None), Arr) for each in found) else found


def get(base: Var, index: tuple[Any, ...]) -> Get:
    """A part of an array, from the items of an index for each axis."""
    return Get(base, index, place_kind(base, index))


def item(out: Emitter, base: Any, items: Sequence[Any], node: Any) -> Any:
    """What a subscript means."""
    if isinstance(base, Static):
        if len(items) == 1 and isinstance(items[0], Static):
            if not is_plain(items[0].value) or not (is_plain(base.value) or type(base.value) in (tuple, list, dict)):
                raise out.refused(f"an item of {kind_name(base)}", node)
            try:
                return Static(base.value[items[0].value])
            except Exception as error:
                raise out.refused(f"{type(error).__name__}: {error}", node) from None
        raise out.refused(f"an item of {kind_name(base)}", node)
    if isinstance(base, Rec):
        if len(items) == 1 and isinstance(items[0], Static) and items[0].value in base.fields and base.cls is dict:
            return base.fields[items[0].value]
        raise out.refused("a key that is not known", node)
    if isinstance(base, Tup):
        if len(items) == 1 and isinstance(items[0], Static) and type(items[0].value) is int:
            try:
                return base.items[items[0].value]
            except IndexError:
                raise out.refused("an index out of range", node) from None
        if len(items) == 1 and isinstance(items[0], Slice):
            parts = [items[0].low, items[0].high, items[0].step]
            if all(part is None or isinstance(part, Const) for part in parts):
                return Tup(base.items[slice(*[None if part is None else part.value for part in parts])], base.cls)
        numbers = [as_expr(each) for each in base.items]
        if len(items) == 1 and all(each is not None and is_number(each) for each in numbers) and numbers:
            return indexed(out, _assembled(out, Tup(base.items), None), items)
        raise out.refused("an item of a list by an index that is not known", node)
    expr = as_expr(base)
    if expr is None or is_number(expr):
        raise out.refused(f"an item of {kind_name(base)}", node)
    return indexed(out, expr, items)


# -- attributes and methods --------------------------------------------------------------------------------------------


def as_variable(out: Emitter, expr: Any) -> Any:
    """The expression in a variable."""
    return expr if isinstance(expr, Var) else out.temporary(expr)


def attribute(out: Emitter, base: Any, name: str, node: Any) -> Any:
    """An attribute of a number or an array."""
    expr = as_expr(base)
    if expr is None:
        raise out.refused(f"attribute {name} of {kind_name(base)}", node)
    ndim = expr.kind.ndim
    if name == "ndim":
        return Static(ndim)
    if name == "dtype":
        return Static(np.dtype(expr.kind.dtype))
    if name == "shape":
        if not ndim:
            return Tup(())
        base = as_variable(out, expr)
        return Tup(tuple([Dim(base, axis) for axis in range(ndim)]))
    if name == "size":
        if not ndim:
            return Static(1)
        base = as_variable(out, expr)
        size: Any = Dim(base, 0)
        for axis in range(1, ndim):
            size = Op("mul", (size, Dim(base, axis)), INT)
        return size
    if name == "T":
        return expr if ndim < 2 else Call("transpose", (as_variable(out, expr),), (), expr.kind, is_view=True)
    if name == "real" and expr.kind.dtype not in "DF":
        return expr
    raise out.refused(f"attribute {name} of {kind_name(base)}", node)


def method(out: Emitter, base: Any, name: str, args: list[Any], keywords: dict[str, Any]) -> Any:
    """The result of a method of a number or an array."""
    if isinstance(base, Tup):
        raise out.refused(f"list.{name}" if base.cls is list else f"tuple.{name}")
    expr = as_expr(base)
    if expr is None:
        raise out.refused(f"method {name} of {kind_name(base)}")
    if is_number(expr):
        return _number_method(out, base, expr, name, bool(args or keywords))
    if name in ("copy", "clone", "flatten") and not args and not keywords:
        flat = name == "flatten"
        kind = Arr(expr.kind.dtype, 1) if flat else expr.kind
        return Call("flatten" if flat else "copy", (as_variable(out, expr),), (), kind)
    if name == "fill" and len(args) == 1:
        return _filled_with(out, expr, args[0])
    if name == "reshape" and args and not isinstance(args[0], Tup):
        args = [Tup(tuple(args))]
    if name == "transpose" and len(args) > 1:
        args = [Tup(tuple(args))]
    if name == "astype" and len(args) == 1 and not keywords:
        return converted(out, expr, args[0])
    if name in ("item", "tolist", "numpy", "detach", "backward", "requires_grad_"):
        raise out.refused(f"method {name} ends the history of a value")
    if name in VIEWS or name in PURE or name in ROWS or name in ("round",):
        return library(out, f"numpy.{name}", [expr, *args], keywords)
    raise out.refused(f"method {name} of an array")


def _number_method(out: Emitter, base: Any, expr: Any, name: str, has_arguments: bool) -> Any:
    """The result of a method of a number."""
    if name in ("sum", "mean", "max", "min", "copy", "clone", "conj", "squeeze") and not has_arguments:
        if name in ("copy", "clone") and expr.kind.boxed:
            raise out.refused("a copy of an array without dimensions")
        return expr
    if name in ROWS and not has_arguments and not isinstance(base, Static):
        return operation(out, name, [out.lifted(expr)])
    raise out.refused(f"method {name} of {kind_name(base)}")


def _filled_with(out: Emitter, expr: Any, given: Any) -> Any:
    """`fill`."""
    value = as_expr(given)
    if value is None or not is_number(value) or not isinstance(expr, Var):
        raise out.refused("fill")
    if not np.can_cast(value.kind.dtype, expr.kind.dtype, "same_kind"):
        raise out.refused("fill with a number of another kind")
    out.emit(Set(expr, (FULL,) * expr.kind.ndim, value, "", out.line))
    return Static(None)


def converted(out: Emitter, expr: Any, dtype: Any) -> Any:
    """An array of another dtype."""
    char = _dtype(out, dtype)
    old = expr.kind.dtype
    if char == old:
        return Call("copy", (as_variable(out, expr),), (), expr.kind)
    if old in "?l" and char in "ld":
        return Call("astype", (as_variable(out, expr),), (("dtype", np.dtype(char).name),), Arr(char, expr.kind.ndim))
    raise out.refused(f"a conversion of {np.dtype(old)} to {np.dtype(char)}")


def _dtype(out: Emitter, value: Any) -> str:
    try:
        found = str(np.dtype(value.value).char)
    except Exception:
        raise out.refused("a dtype that is not known") from None
    if found not in "?ld":
        raise out.refused(f"dtype {np.dtype(found)}")
    return found


# -- library functions -------------------------------------------------------------------------------------------------


def library(out: Emitter, name: str, args: list[Any], keywords: dict[str, Any]) -> Any:
    """The result of a library function."""
    module, _, short = name.rpartition(".")
    short = ALIASES.get(short, short)
    if module == "numpy.linalg":
        return pure(out, f"linalg.{short}", args, keywords)
    if module == "builtins":
        return _builtin(out, short, args, keywords)
    if module == "math":
        return _of_math(out, short, args, keywords)
    if all(isinstance(arg, Static) for arg in args) and args and short in (*ROWS, *MATH, "abs", "power"):
        return _folded(out, short, args, keywords)
    if short in CREATORS:
        return created(out, short, args, keywords)
    if short in ("array", "asarray", "copy", "ascontiguousarray", "asanyarray", "Tensor", "tensor"):
        return _array(out, short, args, keywords)
    if short in ("float64", "float_", "double", "int64", "int_", "intp"):
        return _builtin(out, "float" if short.startswith(("fl", "do")) else "int", args, keywords)
    if short in ("shape", "size", "ndim"):
        return attribute(out, args[0], short, None)
    row = row_of(short)
    if short == "round":
        row = "rint" if len(args) == 1 and not keywords else "round"
    if short in ("max", "min") and len(args) > 1 and not isinstance(args[1], Static) and as_expr(args[1]) is not None:
        raise out.refused(f"{short} of two arrays")
    if row in ROWS or row == "rint":
        if row == "where" and len(args) != 3:
            raise out.refused("where with one argument")
        return elementwise(out, row, args, keywords)
    if short in VIEWS:
        return view(out, short, args, keywords)
    if short in PURE:
        return pure(out, short, args, keywords)
    raise out.refused(f"{name} has no rule here")


def _folded(out: Emitter, short: str, args: list[Any], keywords: dict[str, Any]) -> Any:
    function = getattr(np, short, None)
    if function is None or keywords or not all(is_plain(arg.value) for arg in args):
        raise out.refused(f"{short} of known numbers")
    with np.errstate(all="ignore"):
        try:
            return Static(function(*[arg.value for arg in args]))
        except Exception as error:
            raise out.refused(f"{type(error).__name__}: {error}") from None


def elementwise(out: Emitter, row: str, args: list[Any], keywords: dict[str, Any]) -> Any:
    """An elementwise function."""
    target = keywords.pop("out", None)
    if row == "clip":
        names = ("self", "min", "max")
        given = dict(zip(names, args)) | {{"a_min": "min", "a_max": "max"}.get(k, k): v for k, v in keywords.items()}
        low, high = [given.get(name) for name in ("min", "max")]
        low, high = [None if each is None or (isinstance(each, Static) and each.value is None) else each
                     for each in (low, high)]
        keywords = {}
        args = [each for each in (given["self"], low, high) if each is not None]
        row = "clip" if len(args) == 3 else "clip_low" if low is not None else "clip_high"
    if keywords:
        raise out.refused(f"{row} with {next(iter(keywords))}=")
    exprs = [as_expr(arg) for arg in args]
    if any(expr is None for expr in exprs):
        raise out.refused(f"{row} of something else than numbers and arrays")
    exprs = [out.lifted(expr) for expr in exprs]
    if row.startswith("clip"):
        found = _clipped(out, row, exprs)
    else:
        expected = len(OPERATORS[row].signature.tensors)
        if len(exprs) != expected:
            raise out.refused(f"{row} of {len(exprs)} operands")
        if row == "where" and exprs[0].kind.dtype != "?":
            raise out.refused("where of no condition")
        found = operation(out, row, exprs)
    if is_number(found) and found.kind.weak:
        found = attrs.evolve(found, kind=attrs.evolve(found.kind, weak=False))
    if target is None:
        return found
    if isinstance(target, Tup) and len(target.items) == 1:
        target = target.items[0]
    base = as_expr(target)
    if isinstance(base, Get) and base.is_view:
        index = base.index
        base = base.base
    elif isinstance(base, Var) and isinstance(base.kind, Arr):
        index = (FULL,) * base.kind.ndim
    else:
        raise out.refused("out= of something else than an array")
    place = get(base, index)
    if found.kind.dtype != base.kind.dtype or found.kind.ndim != place.kind.ndim:
        raise out.refused("out= of another kind")
    out.emit(Set(base, index, found, "", out.line))
    return target


def _clipped(out: Emitter, row: str, exprs: list[Any]) -> Any:
    samples = [np.asarray(sample(expr.kind)) if not expr.kind.ndim and not expr.kind.weak else sample(expr.kind)
               for expr in exprs]
    low, high = (samples[1], samples[2]) if row == "clip" else (samples[1], None) if row == "clip_low" else (
        None, samples[1])
    try:
        found = kind_of(np.clip(np.asarray(samples[0]), low, high))
    except Exception as error:
        raise out.refused(str(error)) from None
    assert found is not None
    return Op(row, tuple(exprs), found)


def created(out: Emitter, name: str, args: list[Any], keywords: dict[str, Any]) -> Any:
    """A new array."""
    keywords.pop("order", None)
    if "requires_grad" in keywords or "like" in keywords or "device" in keywords:
        raise out.refused(f"{name} with {next(iter(keywords))}=")
    if name.endswith("_like"):
        base = as_expr(args[0])
        if base is None or is_number(base):
            raise out.refused(f"{name} of {kind_name(args[0])}")
        char = _dtype(out, keywords.pop("dtype")) if "dtype" in keywords else base.kind.dtype
        fill = args[1:] if name == "full_like" else []
        if keywords or len(args) > 1 + len(fill):
            raise out.refused(f"{name} with more arguments")
        values = [as_expr(each) for each in fill]
        if any(value is None or not is_number(value) for value in values):
            raise out.refused("full_like with something else than a number")
        options = (("dtype", np.dtype(char).name),)
        return Call(name, (as_variable(out, base), *values), options, Arr(char, base.kind.ndim))
    if name in ("zeros", "ones", "empty", "full"):
        sizes = args[0] if args else keywords.pop("shape", None)
        rest = args[1:]
        fill = []
        if name == "full":
            fill = [rest.pop(0) if rest else keywords.pop("fill_value", None)]
        dtype = rest.pop(0) if rest else keywords.pop("dtype", None)
        if keywords or rest:
            raise out.refused(f"{name} with more arguments")
        exprs = [as_expr(each) for each in (sizes.items if isinstance(sizes, Tup) else [sizes])]
        if not exprs:
            raise out.refused("an array without dimensions is made")
        if any(expr is None or not is_number(expr) or expr.kind.dtype != "l" for expr in exprs):
            raise out.refused("a shape that is not made of integers")
        values = [as_expr(each) for each in fill]
        if any(value is None or not is_number(value) for value in values):
            raise out.refused("full with something else than a number")
        char = _dtype(out, dtype) if dtype is not None and not (
            isinstance(dtype, Static) and dtype.value is None) else values[0].kind.dtype if values else "d"
        if values and (values[0].kind.dtype in "dD") > (char in "dDfF"):
            raise out.refused("full of another dtype")
        values = [value if isinstance(value, (Const, Var)) else out.temporary(value) for value in values]
        return Call(name, (tuple(exprs), *values), (("dtype", np.dtype(char).name),), Arr(char, len(exprs)))
    keywords = {key: value for key, value in keywords.items() if value is not None}
    return pure(out, name, args, keywords)


def _array(out: Emitter, name: str, args: list[Any], keywords: dict[str, Any]) -> Any:
    """`array`, `asarray` and `copy`."""
    dtype = args[1] if len(args) > 1 else keywords.get("dtype")
    if set(keywords) - {"dtype", "copy"} or len(args) > 2:
        raise out.refused(f"{name} with more arguments")
    value = args[0]
    if isinstance(value, Tup):
        return _assembled(out, value, dtype)
    if isinstance(value, Static) and isinstance(value.value, (list, tuple)):
        raise out.refused("an array of known numbers")
    expr = as_expr(value)
    if expr is None or is_number(expr):
        raise out.refused(f"{name} of {kind_name(value)}")
    plain = dtype is None or (isinstance(dtype, Static) and dtype.value is None)
    if not plain and _dtype(out, dtype) != expr.kind.dtype:
        return converted(out, expr, dtype)
    if name in ("asarray", "asanyarray"):
        return expr
    if name == "ascontiguousarray" or "copy" in keywords:
        raise out.refused(f"{name}, which may copy or not")
    return Call("copy", (as_variable(out, expr),), (), expr.kind)


def _assembled(out: Emitter, value: Tup, dtype: Any) -> Any:
    """An array of numbers, or of rows."""
    shape: list[int] = []
    level: Any = value
    while isinstance(level, Tup):
        shape.append(len(level.items))
        if not level.items:
            raise out.refused("an array without elements")
        level = level.items[0]

    def flat(tree: Any, depth: int) -> list[Any]:
        if depth == len(shape):
            return [tree]
        if not isinstance(tree, Tup) or len(tree.items) != shape[depth]:
            raise out.refused("rows of several lengths")
        return [leaf for each in tree.items for leaf in flat(each, depth + 1)]

    leaves = flat(value, 0)
    exprs = [as_expr(leaf) for leaf in leaves]
    if any(expr is None for expr in exprs):
        raise out.refused("an array of something else than numbers")
    if any(not is_number(expr) for expr in exprs):
        if len(shape) == 1:
            return pure(out, "stack", [value], {})
        raise out.refused("an array of arrays")
    kinds = [expr.kind for expr in exprs]
    try:
        char = str(np.result_type(*[np.dtype(kind.dtype) for kind in kinds]).char)
    except TypeError:
        raise out.refused("an array of several kinds") from None
    if dtype is not None and not (isinstance(dtype, Static) and dtype.value is None):
        if not np.can_cast(char, _dtype(out, dtype), "safe"):
            raise out.refused("an array of another dtype")
        char = _dtype(out, dtype)
    sizes = tuple([Const(each, INT) for each in shape])
    array = out.temporary(Call("empty", (sizes,), (("dtype", np.dtype(char).name),), Arr(char, len(shape))), "array")
    for place, expr in zip(np.ndindex(*shape), exprs):
        out.emit(Set(array, tuple([Const(each, INT) for each in place]), expr, "", out.line))
    return array


def view(out: Emitter, name: str, args: list[Any], keywords: dict[str, Any]) -> Any:
    """A view, by a function of the array."""
    base = as_expr(args[0])
    if base is None or is_number(base):
        raise out.refused(f"{name} of {kind_name(args[0])}")
    base = as_variable(out, base)
    rest: list[Any] = []
    for each in args[1:]:
        if isinstance(each, Tup):
            exprs = [as_expr(item) for item in each.items]
            if any(expr is None for expr in exprs):
                raise out.refused(f"{name} with something else than integers")
            rest.append(tuple(exprs))
        else:
            expr = as_expr(each)
            if expr is None and isinstance(each, Static) and each.value is None:
                raise out.refused(f"{name} with None")
            rest.append(expr)
    if any(each is None for each in rest):
        raise out.refused(f"{name} with something else than integers")
    options = _options(out, name, keywords)
    if name in ("reshape", "ravel"):
        if options:
            raise out.refused(f"{name} with {options[0][0]}=")
        out.reshapes = True
    samples = [sample(base.kind)]
    for each in rest:
        samples.append(tuple([_sample(item, 1) for item in each]) if isinstance(each, tuple) else _sample(each, 1))
    if name == "reshape":
        sizes = rest[0] if isinstance(rest[0], tuple) else (rest[0],)
        kind = Arr(base.kind.dtype, len(sizes))
        if not sizes:
            raise out.refused("an array without dimensions is made")
        return Call(name, (base, sizes), (), kind, is_view=True)
    try:
        result = getattr(np, name)(*samples, **dict(options))
    except Exception as error:
        raise out.refused(f"{name}: {error}") from None
    if not result.ndim or name == "squeeze":
        raise out.refused(f"{name}, whose dimensions depend on lengths")
    return Call(name, (base, *rest), options, Arr(base.kind.dtype, result.ndim), is_view=True)


def _sample(expr: Any, otherwise: Any) -> Any:
    return expr.value if isinstance(expr, Const) else sample(expr.kind)


def _options(out: Emitter, name: str, keywords: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    found = []
    for key, value in keywords.items():
        known = _known(value)
        if known is _UNKNOWN:
            raise out.refused(f"{name} with {key}= that is not known")
        found.append((key, known))
    return tuple(found)


_UNKNOWN: Final = object()


def _known(value: Any) -> Any:
    if isinstance(value, Static):
        return value.value
    if isinstance(value, Tup):
        items = [_known(each) for each in value.items]
        return _UNKNOWN if any(each is _UNKNOWN for each in items) else tuple(items)
    return _UNKNOWN


def function_of(name: str) -> Callable[..., Any]:
    """NumPy's function of a name."""
    found: Callable[..., Any] = operator.attrgetter(name)(np)
    return found


def pure(out: Emitter, name: str, args: list[Any], keywords: dict[str, Any]) -> Any:
    """A function of arrays that gives new ones."""
    if name not in PURE and name not in CREATORS:
        raise out.refused(f"{name} has no rule here")
    if name in ("dot", "matmul") and len(args) == 2 and any(
        is_number(each) for each in map(as_expr, args) if each is not None
    ):
        if name == "dot":
            return arithmetic(out, "mul", *args)
        raise out.refused("matmul of a number")
    function = function_of(name) if hasattr(np, name.partition(".")[0]) else None
    if function is None:
        raise out.refused(f"{name} has no rule here")
    try:
        names = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        names = []
    options = dict(keywords)
    taken = [each for number, arg in enumerate(args) for each in _taken(out, name, names, options, number, arg)]
    if any(key in options for key in ("out", "where", "initial", "dtype")):
        raise out.refused(f"{name} with out=, where=, initial= or dtype=")
    found = _options(out, name, options)
    samples = [
        tuple([_sample(each, 1) for each in arg]) if isinstance(arg, tuple)
        else arg.value if isinstance(arg, Static) else _sample(arg, 1)
        for arg in taken
    ]
    try:
        with np.errstate(all="ignore"):
            result = function(*samples, **dict(found))
    except Exception as error:
        raise out.refused(f"{name}: {type(error).__name__}: {error}") from None
    values = [arg if not isinstance(arg, Static) else Const(arg.value, INT) for arg in taken]
    if isinstance(result, tuple):
        kinds = tuple([_result_kind(out, name, each, samples) for each in result])
        from_call = Call(name, tuple(values), found, kinds)
        return _many(out, from_call, type(result))
    kind = _result_kind(out, name, result, samples)
    return Call(name, tuple(values), found, kind)


def _taken(
    out: Emitter, name: str, names: Sequence[str], options: dict[str, Any], number: int, arg: Any
) -> Sequence[Any]:
    """An argument of a function of arrays; nothing if it is an option, which is added to the others."""
    if isinstance(arg, Static) and (as_expr(arg) is None or (number and name in REDUCTIONS)):
        if 0 < number < len(names):
            options[names[number]] = arg
            return ()
        if isinstance(arg.value, str):
            return (arg,)
        raise out.refused(f"{name} of {kind_name(arg)}")
    if isinstance(arg, Tup):
        exprs = [as_expr(each) for each in arg.items]
        if any(expr is None for expr in exprs) or not exprs:
            raise out.refused(f"{name} of {kind_name(arg)}")
        if 0 < number < len(names) and all(isinstance(each, Static) for each in arg.items):
            options[names[number]] = arg
            return ()
        return (tuple([_atom(out, expr) for expr in exprs]),)
    expr = as_expr(arg)
    if expr is None:
        raise out.refused(f"{name} of {kind_name(arg)}")
    return (_atom(out, expr),)


REDUCTIONS: Final = frozenset("sum mean prod max min cumsum cumprod std var argmax argmin any all ptp median".split())


def _many(out: Emitter, call: Call, kind: Any) -> Any:
    names = tuple([out.fresh("part") for _ in call.kind])
    for name, each in zip(names, call.kind):
        out.kinds[name] = each
    out.emit(LetMany(names, call, out.line))
    return Tup(tuple([Var(name, each) for name, each in zip(names, call.kind)]), kind)


def _atom(out: Emitter, expr: Any) -> Any:
    if isinstance(expr, (Const, Var)) or (isinstance(expr, Get) and expr.is_view):
        return expr
    return out.temporary(expr)


def _result_kind(out: Emitter, name: str, result: Any, samples: list[Any]) -> Kind:
    arrays = [each for item in samples for each in (item if isinstance(item, tuple) else (item,))
              if isinstance(each, np.ndarray)]
    if isinstance(result, np.ndarray) and any(np.may_share_memory(result, each) for each in arrays):
        raise out.refused(f"{name}, which may give a view")
    kind = kind_of(result)
    if kind is None or kind.dtype not in "?ld":
        raise out.refused(f"{name} of these kinds")
    return kind


# -- builtins and math -------------------------------------------------------------------------------------------------


def _builtin(out: Emitter, name: str, args: list[Any], keywords: dict[str, Any]) -> Any:
    """The result of one of Python's own functions."""
    if name == "dict" and not args:
        return Rec(dict(keywords))
    if keywords:
        raise out.refused(f"{name} with {next(iter(keywords))}=")
    rule = BUILTINS.get(name)
    found = None if rule is None else rule(out, args)
    if found is None:
        raise out.refused(f"{name}() of these arguments")
    return found


def _len(out: Emitter, args: list[Any]) -> Any:
    (value,) = args
    if isinstance(value, Tup):
        return Static(len(value.items))
    if isinstance(value, Rec) and value.cls is dict:
        return Static(len(value.fields))
    expr = as_expr(value)
    return Dim(as_variable(out, expr), 0) if expr is not None and expr.kind.ndim else None


def _abs(out: Emitter, args: list[Any]) -> Any:
    (value,) = args
    if isinstance(value, Static):
        return Static(abs(value.value)) if is_plain(value.value) else None
    return arithmetic(out, "abs", value)


def _extreme(name: str) -> Callable[[Emitter, list[Any]], Any]:
    def rule(out: Emitter, args: list[Any]) -> Any:
        items = args[0].items if len(args) == 1 and isinstance(args[0], Tup) else args
        return _extremum(out, name, items) if len(items) > 1 or (items and isinstance(args[0], Tup)) else None

    return rule


def _sum(out: Emitter, args: list[Any]) -> Any:
    start = args[1] if len(args) > 1 else Static(0)
    if isinstance(args[0], Tup):
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


def _container(kind: type) -> Callable[[Emitter, list[Any]], Any]:
    def rule(out: Emitter, args: list[Any]) -> Any:
        if not args:
            return Tup((), kind)
        return Tup(args[0].items, kind) if isinstance(args[0], Tup) else None

    return rule


def _every(name: str) -> Callable[[Emitter, list[Any]], Any]:
    def rule(out: Emitter, args: list[Any]) -> Any:
        if not isinstance(args[0], Tup) or not args[0].items:
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


def _divmod(out: Emitter, args: list[Any]) -> Any:
    return Tup((arithmetic(out, "floor_divide", *args), arithmetic(out, "remainder", *args)))


BUILTINS: Final[dict[str, Callable[[Emitter, list[Any]], Any]]] = {
    "len": _len, "abs": _abs, "min": _extreme("min"), "max": _extreme("max"), "sum": _sum, "int": _cast("int"),
    "float": _cast("float"), "bool": _cast("bool"), "pow": lambda out, args: arithmetic(out, "pow", *args),
    "divmod": _divmod, "tuple": _container(tuple), "list": _container(list), "round": _round, "all": _every("and"),
    "any": _every("or"),
}  # fmt: skip


def _number_of(out: Emitter, name: str, value: Any) -> Any:
    expr = as_expr(value)
    if expr is None or not is_number(expr):
        raise out.refused(f"{name} of {kind_name(value)}")
    expr = out.lifted(expr)
    dtype = expr.kind.dtype
    if name == "bool":
        return Op("not_equal", (expr, Const(0, INT)), BOOL)
    if name == "int":
        if dtype in "?l":
            return expr if expr.kind == INT else Op("as_integer", (expr,), INT)
        if dtype == "d":
            return Op("as_integer", (Op("finite", (expr, Const(0.0, Num("d", weak=True))), expr.kind),), INT)
    elif dtype in "?l":
        return Op("as_float", (expr,), Num("d", weak=True))
    raise out.refused(f"{name}() ends the history of a value")


def _extremum(out: Emitter, name: str, values: Sequence[Any]) -> Any:
    """Python's `max` or `min`: one of the values."""
    if all(isinstance(value, Static) and is_plain(value.value) for value in values):
        return Static({"min": min, "max": max}[name](value.value for value in values))
    exprs = [as_expr(value) for value in values]
    if any(expr is None or not is_number(expr) or expr.kind.dtype not in "?ld" for expr in exprs):
        raise out.refused(f"{name} of something else than real numbers")
    exprs = [expr if isinstance(expr, (Const, Var)) else out.temporary(expr) for expr in exprs]
    best = exprs[0]
    for number, expr in enumerate(exprs[1:]):
        kind = joined(best.kind, expr.kind)
        if kind is None:
            raise out.refused(f"{name} of several kinds")
        test = operation(out, "greater" if name == "max" else "less", [expr, best])
        best = Lazy("if", (test, expr, best), kind)
        if number < len(exprs) - 2:
            best = out.temporary(best)
    return best


def _of_math(out: Emitter, name: str, args: list[Any], keywords: dict[str, Any]) -> Any:
    """A function of `math`."""
    if keywords:
        raise out.refused(f"math.{name} with keywords")
    if all(isinstance(arg, Static) and is_plain(arg.value) for arg in args):
        try:
            return Static(getattr(math, name)(*[arg.value for arg in args]))
        except Exception as error:
            raise out.refused(f"{type(error).__name__}: {error}") from None
    exprs = [as_expr(arg) for arg in args]
    if any(expr is None or not is_number(expr) or expr.kind.dtype not in "?ld" for expr in exprs):
        raise out.refused(f"math.{name} of something else than real numbers")
    exprs = [out.lifted(expr) for expr in exprs]
    weak = all(expr.kind.weak for expr in exprs)
    if name in ("floor", "ceil", "trunc") and len(exprs) == 1:
        if exprs[0].kind.dtype != "d":
            return exprs[0]
        finite = Op("finite", (exprs[0], Const(0.0, Num("d", weak=True))), exprs[0].kind)
        return Op("as_integer", (Op(name, (finite,), exprs[0].kind),), INT)
    if name in ("isnan", "isfinite", "isinf") and len(exprs) == 1:
        return Op(name, (exprs[0],), BOOL)
    if name == "log" and len(exprs) == 2:
        top, bottom = [_of_math(out, "log", [each], {}) for each in exprs]
        return arithmetic(out, "div", top, bottom)
    row = MATH.get(name)
    if row is None or len(exprs) != (2 if row in ("arctan2", "copysign", "pow", "hypot", "fmod") else 1):
        raise out.refused(f"math.{name} has no rule here")
    exprs = [Op("as_float", (expr,), Num("d", weak=True)) if expr.kind.dtype in "?l" else expr for expr in exprs]
    found = Op(row, tuple(exprs), Num("d", weak=weak))
    return Op("finite", (found, *exprs), found.kind)


# -- what is iterated over ---------------------------------------------------------------------------------------------


@attrs.frozen(eq=False)
class Iteration:
    """What is iterated over, by a counter.

    Attributes:
        low, high, step: of the counter, as for `range`.
        item: what there is for a value of the counter.
        is_range: whether that is the counter.
        count: how many items there are.
    """

    low: Any
    high: Any
    step: int
    item: Callable[[Any], Any]
    count: Any
    is_range: bool = False


def range_of(out: Emitter, args: Sequence[Any]) -> Iteration:
    """`range`."""
    exprs = [as_expr(arg) for arg in args]
    if any(expr is None or not is_number(expr) or expr.kind.dtype != "l" for expr in exprs) or not exprs:
        raise out.refused("a range of something else than integers")
    low, high = (Const(0, INT), exprs[0]) if len(exprs) == 1 else exprs[:2]
    step = exprs[2] if len(exprs) > 2 else Const(1, INT)
    if not isinstance(step, Const):
        return _range_by_step(out, low, high, step)
    if step.value == 0:
        raise out.refused("a range without a step")
    size = abs(step.value)
    span = Op("sub", (high, low) if step.value > 0 else (low, high), INT)
    if isinstance(low, Const) and low.value == 0 and step.value > 0:
        span = high
    up = Op("add", (span, Const(size - 1, INT)), INT)
    count = span if size == 1 else Op("floor_divide", (up, Const(size, INT)), INT)
    return Iteration(low, high, step.value, lambda k: k, count, is_range=True)


def _range_by_step(out: Emitter, low: Any, high: Any, step: Any) -> Iteration:
    """A range whose step is computed, and must be positive."""
    given = (low, high, step)
    low, high, step = [each if isinstance(each, (Const, Var)) else out.temporary(each, "n") for each in given]
    out.emit(Check(Op("less", (Const(0, INT), step), BOOL), out.line))
    span = Op("add", (Op("sub", (high, low), INT), Op("sub", (step, Const(1, INT)), INT)), INT)
    count = out.temporary(Op("floor_divide", (span, step), INT), "n")

    def item_of(k: Any) -> Any:
        return Op("add", (low, Op("mul", (k, step), INT)), INT)

    return Iteration(Const(0, INT), count, 1, item_of, count)


def sequence_of(out: Emitter, value: Any) -> Any:
    """The items of an array, or of what is known."""
    if isinstance(value, Tup):
        return value
    if isinstance(value, Rec) and value.cls is dict:
        return Tup(tuple([Static(key) for key in value.fields]))
    if isinstance(value, Static) and isinstance(value.value, (tuple, list, str, range)):
        if len(value.value) > 64:
            raise out.refused("a loop over many known values")
        return Tup(tuple([Static(each) for each in value.value]))
    expr = as_expr(value)
    if expr is None or is_number(expr):
        raise out.refused(f"a loop over {kind_name(value)}")
    base = as_variable(out, expr)
    length = Dim(base, 0)
    return Iteration(Const(0, INT), length, 1, lambda k: indexed(out, base, [k]), length)


def _counted_item(part: Iteration) -> Callable[[Any], Any]:
    """The item number k, counted from 0."""
    if part.step == 1 and part.low == Const(0, INT):
        return part.item

    def found(k: Any) -> Any:
        moved = k if part.step == 1 else Op("mul", (k, Const(part.step, INT)), INT)
        return part.item(moved if part.low == Const(0, INT) else Op("add", (part.low, moved), INT))

    return found


def zipped(out: Emitter, parts: Sequence[Any]) -> Any:
    """`zip`."""
    if all(isinstance(part, Tup) for part in parts):
        return Tup(tuple([Tup(items) for items in zip(*[part.items for part in parts])]))
    if any(isinstance(part, Tup) for part in parts):
        raise out.refused("zip of a known and an unknown length")
    count = parts[0].count
    for part in parts[1:]:
        if part.count != count:
            one, other = [each if isinstance(each, (Const, Var)) else out.temporary(each, "n")
                          for each in (count, part.count)]
            count = out.temporary(Lazy("if", (Op("less", (one, other), BOOL), one, other), INT), "n")
    items = [_counted_item(part) for part in parts]
    return Iteration(Const(0, INT), count, 1, lambda k: Tup(tuple([each(k) for each in items])), count)


def enumerated(out: Emitter, part: Any, start: Any) -> Any:
    """`enumerate`."""
    if isinstance(part, Tup):
        return Tup(tuple([Tup((arithmetic(out, "add", start, Static(n)), each)) for n, each in enumerate(part.items)]))
    each = _counted_item(part)

    def item_of(k: Any) -> Any:
        number = k if isinstance(start, Static) and start.value == 0 else arithmetic(out, "add", k, start)
        return Tup((number, each(k)))

    return Iteration(Const(0, INT), part.count, 1, item_of, part.count)


def reversed_sequence(out: Emitter, part: Any) -> Any:
    """`reversed`."""
    if isinstance(part, Tup):
        return Tup(part.items[::-1], part.cls)
    if part.is_range and part.step == 1:
        one = Const(1, INT)
        low, high = Op("sub", (part.high, one), INT), Op("sub", (part.low, one), INT)
        return Iteration(low, high, -1, part.item, part.count, is_range=True)
    if part.step == 1 and part.low == Const(0, INT):
        one = Const(1, INT)
        return Iteration(Op("sub", (part.high, one), INT), Const(-1, INT), -1, part.item, part.count)
    raise out.refused("reversed of this")
