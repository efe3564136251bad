"""An estimate of the number of operations of a program, from the lengths of its inputs and the bounds of its loops."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs
import numpy as np

from .ir import Block, Call, Const, Dim, For, If, Op, Pull, Var, While, expressions_of, nodes
from .value_types import Arr

# Products and factorizations sum over one more axis than their results have.
CONTRACTIONS: Final = ("linalg.", "matmul", "dot", "einsum", "tensordot", "convolve", "correlate")


@attrs.frozen
class _Sizes:
    """The known properties of the inputs: their shapes, and the values of integers and of loop variables.

    Attributes:
        shapes: the shapes of arrays, by variable.
        values: the values of numbers, by variable.
        longest: the length of the longest axis, used in place of unknown lengths.
    """

    shapes: Mapping[str, tuple[int, ...]]
    values: dict[str, float]
    longest: int

    def elements(self, ndim: int) -> int:
        """Return the size of the largest input with the given number of dimensions."""
        return max([math.prod(shape) for shape in self.shapes.values() if len(shape) == ndim],
                   default=self.longest**ndim)

    def value(self, expr: Any) -> float | None:
        """Return the value of an integer expression, or None if it is unknown."""
        if isinstance(expr, Const):
            return float(expr.value)
        if isinstance(expr, Var):
            return self.values.get(expr.name)
        if isinstance(expr, Dim):
            shape = self.shapes.get(expr.base.name)
            return None if shape is None else shape[expr.axis]
        if isinstance(expr, Op) and expr.name in ("add", "sub", "mul") and len(expr.args) == 2:
            left, right = map(self.value, expr.args)
            if left is None or right is None:
                return None
            return left + right if expr.name == "add" else left - right if expr.name == "sub" else left * right
        return None


def count_operations(body: Block, names: Sequence[str], inputs: Sequence[Any]) -> float:
    """Return an estimate of the number of operations on single elements in a run of a program.

    The count depends on the program, on shapes and on integers, so it is the same in each run. Loops whose bounds are
    computed from other values, and `while` loops, are assumed to have as many iterations as the longest axis is long.

    Arguments:
        body: the statements.
        names: the variables of the inputs.
        inputs: their values.
    """
    shapes = {name: np.shape(value) for name, value in zip(names, inputs, strict=True)}
    values = {name: float(value) for name, value in zip(names, inputs, strict=True)
              if isinstance(value, int | np.integer)}
    longest = max([length for shape in shapes.values() for length in shape], default=1)
    arrays = {name: shape for name, shape in shapes.items() if shape}
    return _operations(body, _Sizes(arrays, values, longest))


def _operations(block: Block, sizes: _Sizes) -> float:
    total = 0.0
    for stmt in block:
        total += sum(_cost(node, sizes) for expr in expressions_of(stmt) for node in nodes(expr))
        if isinstance(stmt, For):
            low, high = sizes.value(stmt.low), sizes.value(stmt.high)
            count = sizes.longest
            if low is not None and high is not None:
                count = max(0, math.ceil((high - low) / stmt.step))
                # an inner loop up to it has half as many iterations on average
                sizes.values[stmt.name] = (low + high) / 2
            total += count * _operations(stmt.body, sizes)
        elif isinstance(stmt, While):
            total += sizes.longest * _operations(stmt.body, sizes)
        elif isinstance(stmt, If):
            total += max(_operations(stmt.then, sizes), _operations(stmt.other, sizes))
    return total


def _cost(node: Any, sizes: _Sizes) -> float:
    if not isinstance(node, Op | Call | Pull):
        return 0.0
    kinds = [arg.kind for arg in node.args if isinstance(getattr(arg, "kind", None), Arr)]
    kinds += [node.kind] if isinstance(node.kind, Arr) else []
    elements = sizes.elements(max([kind.ndim for kind in kinds], default=0)) if kinds else 1
    is_contraction = isinstance(node, Call) and node.name.startswith(CONTRACTIONS)
    return float(elements * sizes.longest if is_contraction else elements)
