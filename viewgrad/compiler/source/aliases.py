"""Which variables may share memory."""

from __future__ import annotations

from collections.abc import Sequence

from .ir import Block, Call, For, Get, If, Let, Set, Var, While, assigned, statements
from .kinds import Arr

__all__ = ["base_of", "roots_of", "written_inputs"]

Origins = dict[str, frozenset[str]]


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


def written_inputs(block: Block, inputs: Sequence[str]) -> set[str]:
    """Return the inputs whose memory a program may write to.

    The order of statements counts: after `u = u.copy()`, a write to `u` leaves the input alone.

    Arguments:
        block: the program.
        inputs: the names of its inputs, which are never bound again.
    """
    written: set[str] = set()
    _follow(block, {name: frozenset((name,)) for name in inputs}, written)
    return written


def _follow(block: Block, origins: Origins, written: set[str]) -> Origins:
    """Run a block on the sets of inputs that each variable may share memory with, and return these at its end."""
    origins = dict(origins)
    for stmt in block:
        if isinstance(stmt, Let):
            base = base_of(stmt.value)
            origins[stmt.name] = frozenset() if base is None else origins.get(base.name, frozenset())
        elif isinstance(stmt, Set):
            written |= origins.get(stmt.base.name, frozenset())
        elif isinstance(stmt, If):
            origins = _either(_follow(stmt.then, origins, written), _follow(stmt.other, origins, written))
        elif isinstance(stmt, (For, While)):
            before: Origins | None = None
            while origins != before:
                before = origins
                origins = _either(origins, _follow(stmt.body, origins, written))
        else:
            for name in assigned(stmt):
                origins[name] = frozenset()
    return origins


def _either(one: Origins, other: Origins) -> Origins:
    return {name: one.get(name, frozenset()) | other.get(name, frozenset()) for name in {*one, *other}}
