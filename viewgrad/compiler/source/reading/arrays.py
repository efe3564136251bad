"""Functions of arrays: creation, elementwise functions, views, reductions and products."""

from __future__ import annotations

import inspect
import operator
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Final

import attrs
import numpy as np

from ....operators.define import OPERATORS
from ..emitter import Emitter
from ..ir import FULL, Call, Const, Get, LetMany, Op, Set, Var, get, is_number
from ..library import CREATORS, PURE
from ..value_types import DTYPES, INT, Arr, Kind, Num, kind_of, sample
from ..values import Cell, Static, TupleValue, as_expr, is_none, kind_name
from .attributes import as_variable
from .operators import arithmetic, operation


def dtype_option(char: str) -> tuple[tuple[str, Any], ...]:
    """Return a dtype as an option."""
    return (("dtype", np.dtype(char).name),)


def converted(out: Emitter, expr: Any, dtype: Any) -> Any:
    """Return an array converted to a dtype."""
    char = dtype_named(out, dtype)
    old = expr.kind.dtype
    if char == old:
        return Call("copy", (as_variable(out, expr),), (), expr.kind)
    if (np.can_cast(old, char, "same_kind") and char != "?") or (old in "df" and char == "l"):
        return Call("astype", (as_variable(out, expr),), dtype_option(char), Arr(char, expr.kind.ndim))
    raise out.refused(f"converting {np.dtype(old)} to {np.dtype(char)} is not supported")


def dtype_named(out: Emitter, value: Any) -> str:
    try:
        found = str(np.dtype(value.value).char)
    except Exception:
        raise out.refused("a dtype that is not constant is not supported") from None
    if found not in DTYPES:
        raise out.refused(f"dtype {np.dtype(found)} is not supported")
    return found


def _bounds_of_clip(out: Emitter, args: list[Any], keywords: dict[str, Any]) -> tuple[str, list[Any]]:
    """Return the operator for a call of `clip`, and its operands."""
    names = ("self", "min", "max")
    given = dict(zip(names, args)) | {{"a_min": "min", "a_max": "max", "a": "self"}.get(k, k): v
                                      for k, v in keywords.items()}
    if set(given) - set(names) or len(args) > 3:
        raise out.refused("clip with these arguments is not supported")
    low, high = [None if each is None or (isinstance(each, Static) and each.value is None) else each
                 for each in (given.get("min"), given.get("max"))]
    row = "clip" if low is not None and high is not None else "clip_low" if low is not None else "clip_high"
    return row, [each for each in (given["self"], low, high) if each is not None]


def elementwise(out: Emitter, row: str, args: list[Any], keywords: dict[str, Any]) -> Any:
    """Read a call of an elementwise function."""
    target = keywords.pop("out", None)
    if row == "clip":
        if len(args) == 4 and target is None:
            *args, target = args
        row, args = _bounds_of_clip(out, args, keywords)
        keywords = {}
    if keywords:
        raise out.refused(f"{row} with {next(iter(keywords))}= is not supported")
    exprs = [as_expr(arg) for arg in args]
    if any(expr is None for expr in exprs):
        raise out.refused(f"{row} of something other than numbers and arrays is not supported")
    exprs = [out.lifted(expr) for expr in exprs]
    if row.startswith("clip"):
        found = _clipped(out, row, exprs)
    else:
        expected = len(OPERATORS[row].signature.tensors)
        if len(exprs) == expected + 1 and target is None and row not in ("where", "lerp"):
            target = args[-1]
            exprs.pop()
        if len(exprs) != expected:
            raise out.refused(f"{row} of {len(exprs)} operands is not supported")
        if row == "where" and exprs[0].kind.dtype != "?":
            raise out.refused("where() without a condition is not supported")
        found = operation(out, row, exprs)
    if is_number(found) and found.kind.weak and found.kind.dtype != "f":
        found = attrs.evolve(found, kind=attrs.evolve(found.kind, weak=False))
    return found if target is None else _written_to(out, target, found)


def _written_to(out: Emitter, target: Any, found: Any) -> Any:
    """Write the result of a function to the array passed as `out`, and return the array."""
    if isinstance(target, TupleValue) and len(target.items) == 1:
        target = target.items[0]
    base = as_expr(target)
    index: tuple[Any, ...]
    if isinstance(target, Cell):
        base, index = target.store, (Const(0, INT),)
    elif isinstance(base, Get) and base.is_view:
        index = base.index
        base = base.base
    elif isinstance(base, Var) and isinstance(base.kind, Arr):
        index = (FULL,) * base.kind.ndim
    else:
        raise out.refused("out= of something other than an array is not supported")
    place = get(base, index)
    if found.kind.dtype != base.kind.dtype or found.kind.ndim != place.kind.ndim:
        raise out.refused("out= of another dtype or number of dimensions is not supported")
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
    """Read a call that creates an array."""
    keywords.pop("order", None)
    if "requires_grad" in keywords or "like" in keywords or "device" in keywords:
        raise out.refused(f"{name} with {next(iter(keywords))}= is not supported")
    if name.endswith("_like"):
        base = as_expr(args[0])
        if base is None or is_number(base):
            raise out.refused(f"{name} of {kind_name(args[0])} is not supported")
        char = dtype_named(out, keywords.pop("dtype")) if "dtype" in keywords else base.kind.dtype
        fill = args[1:] if name == "full_like" else []
        if keywords or len(args) > 1 + len(fill):
            raise out.refused(f"{name} with more arguments is not supported")
        values = [as_expr(each) for each in fill]
        if any(value is None or not is_number(value) for value in values):
            raise out.refused("full_like with something other than a number is not supported")
        options = dtype_option(char)
        return Call(name, (as_variable(out, base), *values), options, Arr(char, base.kind.ndim))
    if name in ("zeros", "ones", "empty", "full"):
        sizes = args[0] if args else keywords.pop("shape", None)
        rest = args[1:]
        fill = []
        if name == "full":
            fill = [rest.pop(0) if rest else keywords.pop("fill_value", None)]
        dtype = rest.pop(0) if rest else keywords.pop("dtype", None)
        if keywords or rest:
            raise out.refused(f"{name} with more arguments is not supported")
        exprs = [as_expr(each) for each in (sizes.items if isinstance(sizes, TupleValue) else [sizes])]
        if any(expr is None or not is_number(expr) or expr.kind.dtype != "l" for expr in exprs):
            raise out.refused("a shape that is not made of integers is not supported")
        values = [as_expr(each) for each in fill]
        if any(value is None or not is_number(value) for value in values):
            raise out.refused("full with something other than a number is not supported")
        char = dtype_named(out, dtype) if dtype is not None and not (
            isinstance(dtype, Static) and dtype.value is None) else values[0].kind.dtype if values else "d"
        if values and (values[0].kind.dtype in "dD") > (char in "dDfF"):
            raise out.refused("full() with a value of another dtype is not supported")
        values = [value if isinstance(value, (Const, Var)) else out.temporary(value) for value in values]
        if not exprs:
            start = np.dtype(char).type(1 if name == "ones" else 0).item()
            return cell_of(out, values[0] if values else Const(start, Num(char)), char)
        return Call(name, (tuple(exprs), *values), dtype_option(char), Arr(char, len(exprs)))
    keywords = {key: value for key, value in keywords.items() if value is not None}
    return pure(out, name, args, keywords)


def cell_of(out: Emitter, expr: Any, char: str | None) -> Any:
    """Return a new 0-d array.

    Arguments:
        out: the emitter that receives statements.
        expr: the element.
        char: the dtype; None for the dtype of the element.
    """
    dtype = expr.kind.dtype if char is None else char
    if not np.can_cast(expr.kind.dtype, dtype, "same_kind") or (dtype == "?" and expr.kind.dtype != "?"):
        raise out.refused("a 0-d array of another dtype is not supported")
    site = (out.file, out.line)
    if site in out.numbers_at:
        if dtype != expr.kind.dtype:
            raise out.refused("a 0-d array of another dtype is not supported")
        return out.temporary(Op("positive", (expr,), Num(dtype, boxed=True)) if dtype != "?" else expr, "number")
    store = out.temporary(Call("empty", ((Const(1, INT),),), dtype_option(dtype), Arr(dtype, 1)), "cell")
    out.emit(Set(store, (Const(0, INT),), out.lifted(expr), "", out.line))
    return Cell(store, site)


def array_of(out: Emitter, name: str, args: list[Any], keywords: dict[str, Any]) -> Any:
    """Read `array`, `asarray` and `copy`."""
    dtype = args[1] if len(args) > 1 else keywords.get("dtype")
    if set(keywords) - {"dtype", "copy"} or len(args) > 2:
        raise out.refused(f"{name} with more arguments is not supported")
    value = args[0]
    if isinstance(value, TupleValue):
        return assembled(out, value, dtype)
    if isinstance(value, Static) and isinstance(value.value, (list, tuple)):
        raise out.refused("an array of constant numbers is not supported")
    expr = as_expr(value)
    if expr is not None and is_number(expr) and not expr.kind.boxed and "copy" not in keywords:
        char = None if dtype is None or is_none(dtype) else dtype_named(out, dtype)
        same = isinstance(value, Cell) and char in (None, expr.kind.dtype)
        return value if same and name in ("asarray", "asanyarray") else cell_of(out, expr, char)
    if expr is None or is_number(expr):
        raise out.refused(f"{name} of {kind_name(value)} is not supported")
    plain = dtype is None or (isinstance(dtype, Static) and dtype.value is None)
    if not plain and dtype_named(out, dtype) != expr.kind.dtype:
        return converted(out, expr, dtype)
    if name in ("asarray", "asanyarray"):
        return expr
    if name == "ascontiguousarray" or "copy" in keywords:
        raise out.refused(f"{name}, which may copy or not, is not supported")
    return Call("copy", (as_variable(out, expr),), (), expr.kind)


def assembled(out: Emitter, value: TupleValue, dtype: Any) -> Any:
    """Create an array of numbers or of rows."""
    shape: list[int] = []
    level: Any = value
    while isinstance(level, TupleValue):
        shape.append(len(level.items))
        if not level.items:
            if len(shape) > 1 or not (dtype is None or is_none(dtype)):
                raise out.refused("an array without elements is not supported")
            return out.temporary(Call("empty", ((Const(0, INT),),), dtype_option("d"), Arr("d", 1)), "array")
        level = level.items[0]

    def flat(tree: Any, depth: int) -> list[Any]:
        if depth == len(shape):
            return [tree]
        if not isinstance(tree, TupleValue) or len(tree.items) != shape[depth]:
            raise out.refused("rows of several lengths are not supported")
        return [leaf for each in tree.items for leaf in flat(each, depth + 1)]

    leaves = flat(value, 0)
    exprs = [as_expr(leaf) for leaf in leaves]
    if any(expr is None for expr in exprs):
        raise out.refused("an array of something other than numbers is not supported")
    if any(not is_number(expr) for expr in exprs):
        if len(shape) == 1:
            return pure(out, "stack", [value], {})
        raise out.refused("an array of arrays is not supported")
    kinds = [expr.kind for expr in exprs]
    try:
        char = str(np.result_type(*[np.dtype(kind.dtype) for kind in kinds]).char)
    except TypeError:
        raise out.refused("an array of items of several types is not supported") from None
    if dtype is not None and not (isinstance(dtype, Static) and dtype.value is None):
        if not np.can_cast(char, dtype_named(out, dtype), "safe"):
            raise out.refused("an array of another dtype is not supported")
        char = dtype_named(out, dtype)
    sizes = tuple([Const(each, INT) for each in shape])
    array = out.temporary(Call("empty", (sizes,), dtype_option(char), Arr(char, len(shape))), "array")
    for place, expr in zip(np.ndindex(*shape), exprs):
        out.emit(Set(array, tuple([Const(each, INT) for each in place]), expr, "", out.line))
    return array


def view(out: Emitter, name: str, args: list[Any], keywords: dict[str, Any]) -> Any:
    """Return a view created by a function of the array."""
    base = as_expr(args[0])
    if base is None or is_number(base):
        raise out.refused(f"{name} of {kind_name(args[0])} is not supported")
    base = as_variable(out, base)
    rest: list[Any] = []
    for each in args[1:]:
        if isinstance(each, TupleValue):
            exprs = [as_expr(item) for item in each.items]
            if any(expr is None for expr in exprs):
                raise out.refused(f"{name} with something other than integers is not supported")
            rest.append(tuple(exprs))
        else:
            expr = as_expr(each)
            if expr is None and isinstance(each, Static) and each.value is None:
                raise out.refused(f"{name} with None is not supported")
            rest.append(expr)
    if any(each is None for each in rest):
        raise out.refused(f"{name} with something other than integers is not supported")
    options = _options(out, name, keywords)
    if name in ("reshape", "ravel"):
        if options:
            raise out.refused(f"{name} with {options[0][0]}= is not supported")
        out.reshapes = True
    samples = [sample(base.kind), *[
        tuple([_sample(item, 1) for item in each]) if isinstance(each, tuple) else _sample(each, 1) for each in rest]]
    if name == "reshape":
        sizes = rest[0] if isinstance(rest[0], tuple) else (rest[0],)
        kind = Arr(base.kind.dtype, len(sizes))
        if not sizes:
            raise out.refused("creating a 0-d array here is not supported")
        return Call(name, (base, sizes), (), kind, is_view=True)
    try:
        result = getattr(np, name)(*samples, **dict(options))
    except Exception as error:
        raise out.refused(f"{name}: {error}") from None
    if not result.ndim or name == "squeeze":
        raise out.refused(f"{name}, whose dimensions depend on lengths, is not supported")
    return Call(name, (base, *rest), options, Arr(base.kind.dtype, result.ndim), is_view=True)


def _sample(expr: Any, length: int) -> Any:
    return expr.value if isinstance(expr, Const) else sample(expr.kind, length)


def _options(out: Emitter, name: str, keywords: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    found = []
    for key, value in keywords.items():
        known = _known(value)
        if known is _UNKNOWN:
            raise out.refused(f"{name} with {key}= that is not constant is not supported")
        found.append((key, known))
    return tuple(found)


_UNKNOWN: Final = object()


def _known(value: Any) -> Any:
    if isinstance(value, Static):
        return value.value
    if isinstance(value, TupleValue):
        items = [_known(each) for each in value.items]
        return _UNKNOWN if any(each is _UNKNOWN for each in items) else tuple(items)
    return _UNKNOWN


def function_of(name: str) -> Callable[..., Any]:
    """Return the NumPy function with a given name."""
    found: Callable[..., Any] = operator.attrgetter(name)(np)
    return found


def pure(out: Emitter, name: str, args: list[Any], keywords: dict[str, Any]) -> Any:
    """Read a call of a function of arrays that returns new arrays."""
    if name not in PURE and name not in CREATORS:
        raise out.refused(f"{name} is not supported")
    if name in ("dot", "matmul") and len(args) == 2 and any(
        is_number(each) for each in map(as_expr, args) if each is not None
    ):
        if name == "dot":
            return arithmetic(out, "mul", *args)
        raise out.refused("matmul of a number is not supported")
    function = function_of(name) if hasattr(np, name.partition(".")[0]) else None
    if function is None:
        raise out.refused(f"{name} is not supported")
    try:
        names = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        names = []
    options = dict(keywords)
    taken = [each for number, arg in enumerate(args) for each in _taken(out, name, names, options, number, arg)]
    if any(key in options for key in ("out", "where", "initial")):
        raise out.refused(f"{name} with out=, where= or initial= is not supported")
    dtype = options.pop("dtype", None)
    char = None if dtype is None or is_none(dtype) else dtype_named(out, dtype)
    if char is not None and name in REDUCTIONS and taken:
        taken[0] = _converted_operand(out, name, taken[0], char)
    found = _options(out, name, options)
    samples, result = _sampled(out, name, function, taken, found)
    values = [arg if not isinstance(arg, Static) else Const(arg.value, INT) for arg in taken]
    if isinstance(result, tuple):
        kinds = tuple([_result_kind(out, name, each, samples) for each in result])
        from_call = Call(name, tuple(values), found, kinds)
        return _many(out, from_call, type(result))
    kind = _result_kind(out, name, result, samples)
    call = Call(name, tuple(values), found, kind)
    if char is None or kind.dtype == char:
        return call
    if name not in CREATORS or kind.dtype != "l":
        raise out.refused(f"{name} with dtype={np.dtype(char)} is not supported")
    return converted(out, call, dtype)


def _converted_operand(out: Emitter, name: str, operand: Any, char: str) -> Any:
    """Return the operand of a reduction in the dtype in which the reduction is computed."""
    if operand.kind.dtype == char:
        return operand
    if not isinstance(operand.kind, Arr) or not np.can_cast(operand.kind.dtype, char, "safe"):
        raise out.refused(f"{name} with dtype={np.dtype(char)} is not supported")
    return _atom(out, converted(out, operand, Static(np.dtype(char))))


def _sampled(
    out: Emitter, name: str, function: Callable[..., Any], taken: Sequence[Any], options: Sequence[tuple[str, Any]]
) -> tuple[list[Any], Any]:
    """Return sample arguments, with single elements if possible, and the results of a function for them."""
    reason = ""
    for length in (1, 2, 3, 5):
        samples = [
            tuple([_sample(each, length) for each in arg]) if isinstance(arg, tuple)
            else arg.value if isinstance(arg, Static) else _sample(arg, length)
            for arg in taken
        ]
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
                return samples, function(*samples, **dict(options))
        except Exception as error:
            reason = reason or f"{name}: {type(error).__name__}: {error}"
    raise out.refused(reason.partition("\n")[0])


def _taken(
    out: Emitter, name: str, names: Sequence[str], options: dict[str, Any], number: int, arg: Any
) -> Sequence[Any]:
    """Return the values of an argument; an option has none and is added to the options."""
    if isinstance(arg, Static) and (as_expr(arg) is None or (number and name in REDUCTIONS)):
        if 0 < number < len(names):
            options[names[number]] = arg
            return ()
        if isinstance(arg.value, str):
            return (arg,)
        raise out.refused(f"{name} of {kind_name(arg)} is not supported")
    if isinstance(arg, TupleValue):
        exprs = [assembled(out, each, None) if isinstance(each, TupleValue) and each.items else as_expr(each)
                 for each in arg.items]
        if any(expr is None for expr in exprs) or not exprs:
            raise out.refused(f"{name} of {kind_name(arg)} is not supported")
        if 0 < number < len(names) and all(isinstance(each, Static) for each in arg.items):
            options[names[number]] = arg
            return ()
        return (tuple([_atom(out, expr) for expr in exprs]),)
    expr = as_expr(arg)
    if expr is None:
        raise out.refused(f"{name} of {kind_name(arg)} is not supported")
    return (_atom(out, expr),)


REDUCTIONS: Final = frozenset("sum mean prod max min cumsum cumprod std var argmax argmin any all ptp median".split())


def _many(out: Emitter, call: Call, kind: Any) -> Any:
    names = tuple([out.fresh("part") for _ in call.kind])
    for name, each in zip(names, call.kind):
        out.kinds[name] = each
    out.emit(LetMany(names, call, out.line))
    return TupleValue(tuple([Var(name, each) for name, each in zip(names, call.kind)]), kind)


def _atom(out: Emitter, expr: Any) -> Any:
    if isinstance(expr, (Const, Var)) or (isinstance(expr, Get) and expr.is_view):
        return expr
    return out.temporary(expr)


def _result_kind(out: Emitter, name: str, result: Any, samples: list[Any]) -> Kind:
    arrays = [each for item in samples for each in (item if isinstance(item, tuple) else (item,))
              if isinstance(each, np.ndarray)]
    if isinstance(result, np.ndarray) and any(np.may_share_memory(result, each) for each in arrays):
        raise out.refused(f"{name}, which may return a view, is not supported")
    kind = kind_of(result)
    if kind is None or kind.dtype not in DTYPES:
        raise out.refused(f"{name} of these types is not supported")
    return kind
