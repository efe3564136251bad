"""Which variables may share memory."""

from __future__ import annotations

from .ir import Block, Call, Get, Let, Var, statements
from .kinds import Arr

__all__ = ["base_of", "roots_of"]


def base_of(value: object) -> Var | None:
    """The variable whose memory the value of an expression shares; None if it has memory of its own."""
    if isinstance(value, Var) and isinstance(value.kind, Arr):
        return value
    if isinstance(value, Get) and value.is_view:
        return value.base
    if isinstance(value, Call) and value.is_view:
        return value.args[0]  # type: ignore[no-any-return]
    return None


def roots_of(block: Block) -> dict[str, str]:
    """For each variable that shares memory with others, one that stands for all of them."""
    parents: dict[str, str] = {}

    def root(name: str) -> str:
        while parents.get(name, name) != name:
            name = parents[name]
        return name

    for stmt in statements(block):
        if isinstance(stmt, Let):
            base = base_of(stmt.value)
            if base is not None:
                parents[root(stmt.name)] = root(base.name)
    return {name: root(name) for name in {*parents, *parents.values()}}
