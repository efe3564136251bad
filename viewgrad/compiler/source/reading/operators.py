"""Python's operators and comparisons."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from ..emitter import Emitter
from ..ir import Check, Const, Lazy, Op, Var, is_number
from ..value_types import BOOL, DTYPES, INT, Num, kind_of_operator
from ..values import RecordValue, Static, TupleValue, as_expr, is_identity, is_plain, kind_name

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
    """Return the result of a Python operator."""
    if all(isinstance(value, Static) for value in values):
        if not all(is_plain(value.value) for value in values) and not (
            name in ("equal", "not_equal") and all(is_identity(value.value) for value in values)
        ):
            raise out.refused(f"an operator of {', '.join(map(kind_name, values))} is not supported")
        try:
            return Static(FOLDED[name](*[value.value for value in values]))
        except Exception as error:
            raise out.refused(f"{type(error).__name__}: {error}") from None
    if name == "add" and all(isinstance(value, TupleValue) for value in values) and values[0].cls is values[1].cls:
        return TupleValue((*values[0].items, *values[1].items), values[0].cls)
    if name == "mul":
        for one, other in (values, values[::-1]) if len(values) == 2 else ():
            if isinstance(one, TupleValue) and isinstance(other, Static) and isinstance(other.value, int):
                if len(one.items) * other.value > 64:
                    raise out.refused("repeating a list to more than 64 items is not supported")
                return TupleValue(one.items * other.value, one.cls)
    exprs = [as_expr(value) for value in values]
    if any(expr is None for expr in exprs):
        wrong = next(value for value, expr in zip(values, exprs) if expr is None)
        raise out.refused(f"{kind_name(wrong)} as an operand is not supported")
    exprs = [out.lifted(expr) for expr in exprs]
    weak = all(is_number(expr) and expr.kind.weak and expr.kind.dtype != "f" for expr in exprs)
    integers = all(expr.kind.dtype in "?l" for expr in exprs)
    if name == "pow" and integers and not (isinstance(exprs[1], Const) and 0 <= exprs[1].value < 8):
        _check_power(out, weak, *exprs)
    if weak and name in ("div", "floor_divide", "remainder") and not _is_nonzero(exprs[1]):
        exprs[1] = Op("nonzero", (exprs[1],), exprs[1].kind)
    found = operation(out, name, exprs)
    if weak and name == "pow" and found.kind.dtype == "d":
        return Op("finite", (found, *exprs), found.kind)
    return found


def _check_power(out: Emitter, weak: bool, base: Any, exponent: Any) -> None:
    """Check that a power of Python integers is an integer and not too large."""
    if not weak or not isinstance(base, Const) or abs(base.value) > 4:
        raise out.refused("an integer to a power that is not constant is not supported")
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
    """Return an elementwise operator applied to expressions."""
    if name in ("real", "imag"):
        return Op(name, tuple(exprs), Num("d"))
    try:
        kind = kind_of_operator(name, tuple([expr.kind for expr in exprs]))
    except Exception as error:
        raise out.refused(f"{name}: {error}") from None
    is_condition = name in CONDITIONS or (all(expr.kind.dtype == "?" for expr in exprs) and name in LOGICAL)
    if kind.dtype not in DTYPES or (kind.dtype == "?") != is_condition:
        raise out.refused(f"{name} with a result of {np.dtype(kind.dtype)} is not supported")
    return Op(name, tuple(exprs), kind)


def comparison(out: Emitter, node: ast.cmpop, left: Any, right: Any, names: dict[Any, str]) -> Any:
    """Return the result of a comparison."""
    if isinstance(node, (ast.Is, ast.IsNot)):
        if isinstance(left, Static) and isinstance(right, Static):
            same = left.value is right.value
        elif any(isinstance(each, Static) and as_expr(each) is None for each in (left, right)):
            same = False
        else:
            raise out.refused("`is` between computed values is not supported")
        return Static(same is isinstance(node, ast.Is))
    name = names[type(node)]
    if isinstance(left, TupleValue) and isinstance(right, TupleValue) and name in ("equal", "not_equal"):
        return _equal_items(out, name, left, right)
    if isinstance(left, TupleValue) and isinstance(right, TupleValue) and left.cls is right.cls:
        return _ordered_items(out, name, left, right)
    if any(isinstance(each, Static) and as_expr(each) is None for each in (left, right)):
        if isinstance(left, Static) and isinstance(right, Static):
            return arithmetic(out, name, left, right)
        if name in ("equal", "not_equal") and not isinstance(left, TupleValue) and not isinstance(right, TupleValue):
            raise out.refused("comparing a number or an array with another object is not supported")
    return arithmetic(out, name, left, right)


def contains(out: Emitter, item: Any, container: Any) -> Any:
    """Return whether an object is in a known container: a bool if it is known, otherwise an expression."""
    number = as_expr(item)
    if isinstance(container, Static) and type(container.value) in (tuple, list) and is_plain(container.value):
        container = TupleValue(tuple(map(Static, container.value)))
    if number is not None and isinstance(container, TupleValue) and not isinstance(item, Static):
        numbers = [as_expr(each) for each in container.items]
        if is_number(number) and numbers and all(each is not None and is_number(each) for each in numbers):
            number = number if isinstance(number, Var) else out.temporary(number)
            tests = [operation(out, "equal", [number, each]) for each in numbers]
            return functools.reduce(lambda one, two: Lazy("or", (one, two), BOOL), tests)
    if isinstance(item, Static) and is_plain(item.value):
        if isinstance(container, TupleValue) and all(isinstance(each, Static) for each in container.items):
            if all(is_plain(each.value) for each in container.items):
                return item.value in [each.value for each in container.items]
        if isinstance(container, RecordValue) and container.cls is dict:
            return item.value in container.fields
        if isinstance(container, Static) and is_plain(container.value):
            return item.value in container.value
    raise out.refused("`in` of values that are not constant is not supported")


def _ordered_items(out: Emitter, name: str, left: TupleValue, right: TupleValue) -> Any:
    """Compare tuples of numbers by the first items that differ."""
    exprs = [[as_expr(each) for each in side.items] for side in (left, right)]
    if len(exprs[0]) != len(exprs[1]) or not exprs[0] or any(
        expr is None or not is_number(expr) for side in exprs for expr in side
    ):
        raise out.refused("comparing tuples of different lengths, or of values other than numbers, is not supported")
    pairs = [[expr if isinstance(expr, (Const, Var)) else out.temporary(expr) for expr in pair] for pair in zip(*exprs)]
    found = operation(out, name, pairs[-1])
    for pair in reversed(pairs[:-1]):
        before = operation(out, name.removesuffix("_equal"), pair)
        found = Lazy("or", (before, Lazy("and", (operation(out, "equal", pair), found), BOOL)), BOOL)
    return found


def _equal_items(out: Emitter, name: str, left: TupleValue, right: TupleValue) -> Any:
    """Return whether tuples are equal, or unequal."""
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
