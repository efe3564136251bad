"""Lowering of constants, reads and writes of windows, conversions and guards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ...trace.attributes import Frozen
from ...trace.exceptions import RAN
from ...trace.graph import Node, Value
from ...trace.last_use import UNRECORDED
from ...trace.types import Window
from ..element_types import BOOL, FLOAT, HELD, SINGLE, as_number, widened
from .context import LoweringContext, Number, is_single, labels_of
from .dynamic_index import COMPUTED


def _full(of: LoweringContext, node: Node) -> bool:
    shape, fill, dtype = node.attributes
    if widened(dtype) not in HELD:
        raise of.refused(f"arrays of {dtype} are not compiled")
    number = float(SINGLE.type(fill)) if dtype == SINGLE else as_number(fill, dtype)
    of.assign(node.output, Number(number, tuple(shape)))
    return True


def _constant(of: LoweringContext, node: Node) -> bool:
    (frozen,) = node.attributes
    array = frozen.array
    array = array.astype(widened(array.dtype), copy=False)
    if array.dtype not in HELD:
        raise of.refused(f"arrays of {array.dtype} are not compiled")
    if array.size == 1:
        of.assign(node.output, Number(array.item(), array.shape))
    else:
        of.assign_constant(node.output, array)
    return True


def _read(of: LoweringContext, node: Node) -> bool:
    (value,) = node.inputs
    assert value is not None
    window = _window(of, node)
    of.assign(node.output, of.read(of.memory(value), window.sizes, window.strides, window.offset))
    return True


def _write(of: LoweringContext, node: Node) -> bool:
    target, value = node.inputs
    assert target is not None and value is not None
    window = _window(of, node)
    source = of.operand(value)
    memory = of.write_memory(target)
    given, labels = of.write_operand(source, target, value, window.sizes)
    unrecorded = node.kind in UNRECORDED
    of.write(memory, window.sizes, given, labels, window.strides, window.offset, unrecorded=unrecorded)
    of.remember(node.output, memory)
    return True


def _window(of: LoweringContext, node: Node) -> Window:
    window: Window = of.windows.get(node, node.attributes)
    if window.dtype is not None:
        raise of.refused("parts of complex numbers are not compiled")
    return window


def _detach(of: LoweringContext, node: Node) -> bool:
    (value,) = node.inputs
    assert value is not None
    if value.type.dtype != node.output.type.dtype:  # type: ignore[attr-defined]
        raise of.refused("a conversion to another dtype is not compiled")
    operand = of.operand(value)
    of.assign(node.output, operand if isinstance(operand, Number) else of.detached(operand))
    return True


def _cast(of: LoweringContext, node: Node) -> bool:
    (value,) = node.inputs
    assert value is not None
    to, dtype = of.type_of(node.output).dtype, of.type_of(value).dtype
    operand = of.operand(value)
    if to not in HELD or dtype not in HELD or isinstance(operand, Number):
        return False
    if dtype != to:
        of.assign(node.output, of.converted(operand, to))
    else:
        rounds = is_single(node.output) and not is_single(value)
        of.assign(node.output, of.apply("rounded" if rounds else "positive", operand, dtype=to.char))
    return True


def _guard(of: LoweringContext, node: Node) -> bool:
    (value,) = node.inputs
    assert value is not None
    how, expected = node.attributes
    if how == COMPUTED:
        if value not in of.fixed:
            return True
        of.expected[value] = expected
    operand = of.operand(value)
    if isinstance(operand, Number):
        return True
    # a check that always holds; it keeps an operator with an unused result, because the operator may raise
    if how == RAN:
        labels = labels_of(operand.shape)
        same = of.apply("equal", operand, operand, dtype=BOOL.char)
        count = of.emit("sum", [(of.converted(same, FLOAT), labels)], operand.shape, ())
        of.check(of.apply("less", count, 0.0, dtype=BOOL.char), False)
        return True
    if isinstance(expected, Frozen):
        expected = expected.array if expected.array.ndim else expected.array.item()
    if isinstance(expected, np.generic):
        expected = expected.item()
    if isinstance(expected, np.ndarray) and expected.dtype.kind in "bi":
        _guard_array(of, operand, expected)
        if how in ("an index", COMPUTED) or value in of.graph.inputs:
            of.stream.indices.add(node.location)
        return True
    if isinstance(expected, np.ndarray) or of.size_of(value) != 1:
        raise of.refused(f"{how} of an array is not compiled")
    _guard_scalar(of, value, operand, how, expected)
    return True


def _guard_array(of: LoweringContext, operand: Any, expected: np.ndarray[Any, Any]) -> None:
    """Emit a check that no element has changed."""
    if expected.dtype not in HELD:
        raise of.refused(f"arrays of {expected.dtype} are not compiled")
    labels = tuple(range(expected.ndim))
    known = of.constant("expected", expected)
    of.check_none(of.emit("not_equal", [(operand, labels), (known, labels)], expected.shape, labels, BOOL.char))


def _guard_scalar(of: LoweringContext, value: Value, operand: Any, how: str, expected: Any) -> None:
    """Emit a check that a value has not changed, as far as control flow depends on it."""
    kind = of.type_of(value)
    if how == "bool()":
        expected = bool(expected)
    if kind.shape:
        operand = of.emit("positive", [(operand, (-1,) * len(kind.shape))], (), (), of.dtype_of(operand).char)
    if how == "int()" and kind.dtype.kind == "f":
        operand, expected = of.apply("trunc", operand, dtype="d"), float(expected)
    if type(expected) is bool:
        operand = of.converted(operand, BOOL)
    of.check(operand, expected)


PRIMITIVES: Final[dict[str, Callable[[LoweringContext, Node], bool]]] = {
    "full": _full, "constant": _constant, "read": _read, "write": _write, "overwrite": _write, "detach": _detach,
    "_cast": _cast, "_cast_exactly": _cast, "guard": _guard,
}  # fmt: skip
