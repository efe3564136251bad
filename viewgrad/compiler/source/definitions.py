"""Definitions of integers and lengths that never change."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from .ir import Block, Call, Dim, For, Get, Let, LetMany, Pop, Var, While, assigned, blocks_of
from .value_types import INT, Arr


class Definitions:
    """The variables that are bound exactly once, outside all loops.

    Arguments:
        block: the program.
        inputs: the inputs, which are never bound.
    """

    def __init__(self, block: Block, inputs: Collection[str]) -> None:
        self.counts: dict[str, int] = {}
        self.values: dict[str, Any] = {}
        self._look(block, False)
        self.fixed = set(inputs) | {name for name, count in self.counts.items() if count == 1 and name in self.values}
        self.values = {name: value for name, value in self.values.items() if name in self.fixed}

    def _look(self, block: Block, in_loop: bool) -> None:
        for stmt in block:
            for name in assigned(stmt):
                self.counts[name] = self.counts.get(name, 0) + 1
                if isinstance(stmt, Let) and not in_loop:
                    self.values[name] = stmt.value
                elif isinstance(stmt, LetMany) and not in_loop:
                    self.values[name] = None
                elif not isinstance(stmt, For):
                    self.counts[name] += 1
            for inner in blocks_of(stmt):
                self._look(inner, in_loop or isinstance(stmt, (For, While)))

    def is_fixed(self, name: str) -> bool:
        """Return whether a variable has a single value."""
        return name in self.fixed

    def meaning(self, expr: Any) -> Any:
        """Return the definition of a variable or a length, or None if it is unknown."""
        if isinstance(expr, Var):
            value = self.values.get(expr.name)
            is_plain = value is not None and value.kind == INT and not isinstance(value, (Get, Call, Pop))
            return value if is_plain else None
        assert isinstance(expr, Dim)
        value = self.values.get(expr.base.name)
        if isinstance(value, Call) and expr.base.name in self.fixed:
            if value.name in ("zeros", "ones", "empty", "full"):
                return value.args[0][expr.axis]
            if value.name in ("copy", "zeros_like", "ones_like", "empty_like", "full_like") and isinstance(
                value.args[0], Var) and isinstance(value.kind, Arr):
                return Dim(value.args[0], expr.axis)
        if isinstance(value, Var):
            return Dim(value, expr.axis)
        return None
