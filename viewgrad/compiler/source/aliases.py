"""Alias analysis: variables that may share memory."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from .ir import Block, Call, For, Get, If, Let, Set, Var, While, assigned, statements
from .kinds import Arr

Origins = dict[str, frozenset[Any]]


def base_of(value: object) -> Var | None:
    """Return the variable whose memory the value of an expression shares; None if it has memory of its own."""
    if isinstance(value, Var) and isinstance(value.kind, Arr):
        return value
    if isinstance(value, Get) and value.is_view:
        return value.base
    if isinstance(value, Call) and value.is_view:
        return value.args[0]  # type: ignore[no-any-return]
    return None


def roots_of(block: Block) -> dict[str, str]:
    """Return, for each variable that shares memory, the representative of its group."""
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


# -- arrays that were copied -------------------------------------------------------------------------------------------

Cell = tuple[object, bool]  # the site of an allocation, and whether the array is the latest one from there


def line_of_write(block: Block, inputs: Collection[str], copies: Collection[Let | Set]) -> int | None:
    """Return the line of a write to an array after it was copied, or to a copy; None if there is none.

    An array is known by the statement that makes it, and by whether that has made another one since.

    Arguments:
        block: the program.
        inputs: the names of its inputs.
        copies: statements that copy an array as a whole into another one, or make a new array that is a copy.
    """
    if not copies:
        return None
    walk = _Copies({id(stmt) for stmt in copies})
    walk.block(block, {name: frozenset(((name, True),)) for name in inputs}, frozenset())
    return min(walk.lines, default=None)


class _Copies:
    def __init__(self, copies: set[int]) -> None:
        self.copies = copies
        self.lines: list[int] = []

    def block(self, block: Block, cells: Origins, copied: frozenset[Cell]) -> tuple[Origins, frozenset[Cell]]:
        """Run a block on what variables may hold, and on what has been copied; return both at its end."""
        cells = dict(cells)
        for stmt in block:
            if isinstance(stmt, Set):
                if cells.get(stmt.base.name, frozenset()) & copied:
                    self.lines.append(stmt.line)
                if id(stmt) in self.copies and isinstance(stmt.value, Var):
                    copied |= cells.get(stmt.value.name, frozenset())
            elif isinstance(stmt, If):
                one, first = self.block(stmt.then, cells, copied)
                other, second = self.block(stmt.other, cells, copied)
                cells, copied = _either(one, other), first | second
            elif isinstance(stmt, (For, While)):
                before = None
                while (cells, copied) != before:
                    before = cells, copied
                    after, more = self.block(stmt.body, cells, copied)
                    cells, copied = _either(cells, after), copied | more
            else:
                base = base_of(getattr(stmt, "value", None))
                for name in assigned(stmt):
                    if base is not None:
                        cells[name] = cells.get(base.name, frozenset())
                        continue
                    place = id(stmt)
                    cells = {key: _aged(held, place) for key, held in cells.items()}
                    copied = _aged(copied, place)
                    cells[name] = frozenset(((place, True),))
                    if place in self.copies:
                        given = stmt.value.args[0]  # an array that is copied to a list, or a part of the list
                        copied |= cells.get(given.name, frozenset()) if isinstance(given, Var) else cells[name]
        return cells, copied


def _aged(cells: frozenset[Cell], place: object) -> frozenset[Cell]:
    """Return the arrays after a new one replaced some of them."""
    return frozenset([(where, is_last and where != place) for where, is_last in cells])
