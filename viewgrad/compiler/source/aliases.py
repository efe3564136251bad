"""Alias analysis: which variables may share memory."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import attrs

from .ir import Block, Call, For, Get, If, Let, Set, Var, While, assigned, nodes_of, statements
from .value_types import Arr

Origins = dict[str, frozenset[Any]]


def base_of(value: object) -> Var | None:
    """Return the variable whose memory the value of an expression shares, or None if it has memory of its own."""
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

    The order of statements is taken into account: after `u = u.copy()`, a write to `u` does not affect the input.

    Arguments:
        block: the program.
        inputs: the names of its inputs, which are never bound again.
    """
    written: set[str] = set()
    _follow(block, {name: frozenset((name,)) for name in inputs}, written)
    return written


def _follow(block: Block, origins: Origins, written: set[str]) -> Origins:
    """Update the sets of inputs that each variable may share memory with by a block, and return the sets at its end."""
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

Cell = tuple[object, bool]  # the site of an allocation, and whether the array is the latest one allocated there


def line_of_write(
    block: Block, inputs: Collection[str], copies: Collection[Let | Set], moves: Collection[Let | Set],
    results: Collection[str],
) -> int | None:
    """Return the line where a copy of an array in a list would differ from the array, or None.

    This is a write to an array after it was copied, or to a copy, or any use of an array that was moved. An array is
    identified by the statement that creates it, and by whether that statement has created another one since.

    Arguments:
        block: the program.
        inputs: the names of its inputs.
        copies: the statements that copy a whole array into another one, or create a new array that is a copy.
        moves: the statements that copy an array into a list whose items may be written to.
        results: the variables that contain results.
    """
    if not copies and not moves:
        return None
    walk = _Copies({id(stmt) for stmt in copies}, {id(stmt) for stmt in moves}, inputs)
    state = walk.block(block, _State({name: frozenset(((name, True),)) for name in inputs}))
    if any(state.holds_moved(name) for name in results):
        walk.lines.append(walk.last_move)
    return min(walk.lines, default=None)


@attrs.frozen
class _State:
    """The facts about arrays that are true between two statements.

    Attributes:
        cells: by variable, the arrays that it may refer to.
        copied: the arrays that may have been copied to a list.
        moved: the arrays that may be stored in a list.
    """

    cells: Origins
    copied: frozenset[Cell] = frozenset()
    moved: frozenset[Cell] = frozenset()

    def of(self, name: str) -> frozenset[Cell]:
        """Return the arrays that a variable may refer to."""
        return self.cells.get(name, frozenset())

    def holds_moved(self, name: str) -> bool:
        """Return whether a variable may refer to an array stored in a list."""
        return not self.moved.isdisjoint(self.of(name))

    def join(self, other: _State) -> _State:
        """Return the state after either of two paths."""
        return _State(_either(self.cells, other.cells), self.copied | other.copied, self.moved | other.moved)


class _Copies:
    def __init__(self, copies: set[int], moves: set[int], inputs: Collection[str]) -> None:
        self.copies = copies
        self.moves = moves
        self.inputs = inputs
        self.lines: list[int] = []
        self.last_move = 0

    def block(self, block: Block, state: _State) -> _State:
        """Apply a block to a state; return the state at its end."""
        for stmt in block:
            if state.moved and any(map(state.holds_moved, _arrays_of(stmt))):
                self.lines.append(getattr(stmt, "line", 0))
            if isinstance(stmt, Set):
                if not state.copied.isdisjoint(state.of(stmt.base.name)):
                    self.lines.append(stmt.line)
                if isinstance(stmt.value, Var):
                    state = self.after_copy(stmt, state, state.of(stmt.value.name))
            elif isinstance(stmt, If):
                state = self.block(stmt.then, state).join(self.block(stmt.other, state))
            elif isinstance(stmt, (For, While)):
                before = None
                while state != before:
                    before = state
                    state = state.join(self.block(stmt.body, state))
            else:
                base = base_of(getattr(stmt, "value", None))
                for name in assigned(stmt):
                    if base is not None:
                        state = attrs.evolve(state, cells={**state.cells, name: state.of(base.name)})
                        continue
                    aged = {key: _aged(held, id(stmt)) for key, held in state.cells.items()}
                    made = frozenset(((id(stmt), True),))
                    source = _copied_variable(stmt)
                    given = made if source is None else _aged(state.of(source.name), id(stmt))
                    state = _State({**aged, name: made}, _aged(state.copied, id(stmt)), _aged(state.moved, id(stmt)))
                    state = self.after_copy(stmt, state, given)
        return state

    def after_copy(self, stmt: Let | Set, state: _State, cells: frozenset[Cell]) -> _State:
        """Return the state after a statement that copies arrays, if it copies to a list or from one."""
        if id(stmt) in self.copies:
            return attrs.evolve(state, copied=state.copied | cells)
        if id(stmt) not in self.moves:
            return state
        self.last_move = stmt.line
        if any(where in self.inputs for where, _ in cells):
            self.lines.append(stmt.line)
        return attrs.evolve(state, moved=state.moved | cells)


def _copied_variable(stmt: Any) -> Var | None:
    """Return the variable that a statement copies, or None if it copies an expression."""
    value = getattr(stmt, "value", None)
    source = value.args[0] if isinstance(value, Call) and value.name == "copy" else None
    return source if isinstance(source, Var) else None


def _arrays_of(stmt: Any) -> set[str]:
    """Return the arrays that a statement reads or writes."""
    names = {node.name for node in nodes_of(stmt) if isinstance(node, Var) and isinstance(node.kind, Arr)}
    return names | {stmt.base.name} if isinstance(stmt, Set) else names


def _aged(cells: frozenset[Cell], place: object) -> frozenset[Cell]:
    """Return the arrays after some of them were superseded by a new one."""
    return frozenset([(where, is_last and where != place) for where, is_last in cells])
