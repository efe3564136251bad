"""Loops in segments: the state to restore before iterations are rerun, and the division of the loop."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import attrs

from .ir import Block, For, Lazy, Op, Segmented, Set, Var, While, assigned, statements
from .liveness import is_read_first, use_of
from .value_types import BOOL, INT, Arr, Num


@attrs.frozen
class State:
    """The state that a loop changes.

    Attributes:
        numbers: the variables of numbers.
        live: the variables of arrays that the loop binds and that may come from an earlier iteration, each with whether
            it has an adjoint and whether its elements are written.
        dead: the arrays that each iteration binds before it reads them, each with whether it has an adjoint.
        written: the arrays from outside the loop to which it writes.
    """

    numbers: list[str]
    live: list[tuple[str, bool, bool]]
    dead: list[tuple[str, bool]]
    written: list[str]


@attrs.define(eq=False)
class Changes:
    """Determines the state that a loop changes.

    Arguments:
        loop: the loop.
        taped: the loop with its pushes to the tape.
        kinds: the kinds of the variables.
        roots: the representatives of variables that share memory.
        active: the variables that have an adjoint.
        is_before: a function that returns whether a variable is an input or bound before the loop.
        is_kept: a function that returns whether the loop reads the same values from an array if it is rerun from some
            iteration on.
    """

    loop: Any
    taped: Block
    kinds: dict[str, Any]
    roots: dict[str, str]
    active: Collection[str]
    is_before: Callable[[str], bool]
    is_kept: Callable[[str, Any], bool]

    def state(self) -> State:
        """Return the state that must be restored."""
        inside = list(statements([self.loop]))
        counters = {stmt.name for stmt in inside if isinstance(stmt, For)}
        bound = sorted({name for stmt in inside for name in assigned(stmt)} - counters)
        arrays = [name for name in bound if isinstance(self.kinds[name], Arr)]
        written = {self._root(stmt.base.name) for stmt in inside if isinstance(stmt, Set)}
        live = [name for name in arrays if is_read_first([self.loop], name) or not use_of(self.loop.body, name)[1]]
        return State(
            numbers=[name for name in bound if isinstance(self.kinds[name], Num) and is_read_first(self.taped, name)],
            live=[(name, name in self.active, self._root(name) in written) for name in live],
            dead=[(name, name in self.active) for name in arrays if name not in live],
            written=[name for name in self._outside(set(arrays), written) if not self.is_kept(name, self.loop)],
        )

    def _root(self, name: str) -> str:
        return self.roots.get(name, name)

    def _outside(self, bound: set[str], written: set[str]) -> list[str]:
        """Return the arrays from outside the loop to which it may write."""
        names = {*self.roots, *[stmt.base.name for stmt in statements([self.loop]) if isinstance(stmt, Set)]} - bound
        return sorted(
            name for name in names
            if isinstance(self.kinds.get(name), Arr) and self._root(name) in written and self.is_before(name)
        )


def in_segments(
    stmt: Any, taped: Block, plain: Block, ran: str | None, state: State, fresh: Callable[[str], str],
    kinds: dict[str, Any],
) -> Segmented:
    """Return a loop that runs in segments.

    Arguments:
        stmt: the loop.
        taped: the loop with its pushes to the tape.
        plain: the loop with the adjoints of the arrays that it creates.
        ran: the variable that stores how far it ran; None if it always runs to its end.
        state: the variables and arrays that it changes.
        fresh: a function that returns an unused name.
        kinds: the kinds of the variables; new variables are added.
    """
    first, until = fresh("first"), fresh("until")
    kinds[first] = kinds[until] = INT
    name = fresh(f"loop{stmt.line}")

    def piece(block: Block) -> Block:
        return [_piece(each, ran, first, until) if isinstance(each, (For, While)) else each for each in block]

    is_range = isinstance(stmt, For)
    return Segmented(
        name, stmt.low if is_range else None, stmt.high if is_range else None, stmt.step if is_range else 1,
        piece(plain), piece(taped), first, until, ran, stmt.stop, state, stmt.line,
    )


def _piece(loop: Any, ran: str | None, first: str, until: str) -> Any:
    """Return a loop over a range of the iterations."""
    if isinstance(loop, For):
        return attrs.evolve(loop, low=Var(first, INT), high=Var(until, INT), last=ran)
    assert ran is not None
    is_within = Op("less", (Var(ran, INT), Var(until, INT)), BOOL)
    return attrs.evolve(loop, test=Lazy("and", (is_within, loop.test), BOOL), count=ran)


def reversed_segment(loop: Segmented, back: Block) -> Block:
    """Return the reverse of a segment, given the reverse of the whole loop."""
    return [attrs.evolve(each, low=Var(loop.first, INT), high=Var(loop.until, INT)) if isinstance(each, For) else each
            for each in back]
