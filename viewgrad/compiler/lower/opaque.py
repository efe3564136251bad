"""Lowering of operators without a kernel, whose forward is called."""

from __future__ import annotations

import math
from typing import Any

from ...trace.graph import Node
from ...trace.primitives import RANDOM, operator_of
from ..callbacks import Operation
from ..element_types import HELD, char_of
from ..trace_stream import TracedValue
from .context import LoweringContext, Number, labels_of


def call(of: LoweringContext, node: Node) -> None:
    """Lower a node to a call of its operator.

    Raises:
        NotCompiledError: if the node is not an operator, or if a dtype is not supported.
    """
    operator = operator_of(node.kind)
    if operator is None or node.kind != operator.name or operator.name in RANDOM:
        raise of.refused(f"there is no kernel for {node.kind}")
    operands = [None if value is None else of.operand(value) for value in node.inputs]
    for value in (*node.inputs, *node.outputs):
        if value is not None and of.type_of(value).dtype not in HELD:
            raise of.refused(f"arrays of {of.type_of(value).dtype} are not compiled")
    kinds: list[Any] = [None if value is None else value.type for value in node.inputs]
    given_kinds = tuple([None if kind is None else (kind.shape, kind.dtype) for kind in kinds])
    for number, output in enumerate(node.outputs):
        kind: Any = output.type
        operation = Operation(node.kind, _hashable(node.attributes), given_kinds, number, kind.shape, kind.dtype)
        given = [
            operand if operand is None or isinstance(operand, TracedValue) else _filled(of, operand)
            for operand in operands
        ]
        of.assign(output, of.stream.call(operation, node.location, given))


def _filled(of: LoweringContext, number: Number) -> TracedValue | float | bool | int:
    """Return an operand of a call in which a number that replaces an array is expanded to an array again."""
    if not math.prod(number.shape) or not number.shape:
        return number.value  # type: ignore[no-any-return]
    return of.emit("spread", [(number.value, ())], number.shape, labels_of(number.shape), char_of(number.value))


def _hashable(option: Any) -> Any:
    """Return an option with its lists converted to tuples."""
    return tuple(map(_hashable, option)) if type(option) in (list, tuple) else option
