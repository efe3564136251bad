"""The emitter, which collects statements while a function is read and names the variables of the program."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Callable
from typing import Any, Final

import attrs

from ..backends.array_runtime import CAREFUL
from ..backends.scalar_runtime import FUNCTIONS, MATH
from .ir import Block, Call, Get, Lazy, Let, Op, Set, Var, nodes
from .runtime import HOST, KERNEL
from .value_types import Kind, joined
from .values import Empty, Heap, NotSupported

# Names reserved for generated programs; user variables with these names are renamed.
RESERVED: Final = frozenset({
    *keyword.kwlist, *dir(builtins), *MATH, *CAREFUL, *HOST, *[each.__name__ for each in (*FUNCTIONS, *KERNEL)],
    "tape", "floats", "integers", "nf", "ni", "program", "pullback", "tape_limit", "reports", "inf", "nan",
    "as_list", "take_list", "as_number", "not_negative", "unsigned", "begin_", "goal_", "state_", "mark_", "_",
})  # fmt: skip
RESERVED_PATTERN: Final = re.compile(r"seed\d+|loop_\d+(_\d+)?|loop\d+(_[a-z]+)?|.*_(bar|list|shape\d+)")


def is_reserved(name: str) -> bool:
    """Return whether a name is reserved for generated programs.

    Arguments:
        name: the name of a variable.
    """
    return name in RESERVED or RESERVED_PATTERN.fullmatch(name) is not None


def _reads(expr: Any, dtype: str) -> bool:
    """Return whether an expression reads an element of an array of a dtype."""
    return any(isinstance(node, Get) and node.base.kind.dtype == dtype for node in nodes(expr))


def _no_capacity() -> Any:
    raise NotSupported("lists have no capacity")


class Emitter:
    """Collects the statements of a program.

    Attributes:
        buffer: the block being built.
        kinds: the kinds of the variables.
        variables: the variables that statements bind.
        single: the variables that are bound exactly once.
        inputs: the inputs, by their variables.
        line, file: the current position in the source.
        rows: the statements that copy arrays to or from lists.
        moves: the statements that copy arrays to lists whose items may be written to.
        copying: the source locations of lists whose items are read as copies.
        bases: the original names of variables.
        start: the statements before all others.
        heaps: the storage of lists in lists, by the dtypes of their items.
        capacity: a function that returns the capacity of lists.
        numbers_at: the source locations of 0-d arrays that are used as numbers.
    """

    def __init__(self) -> None:
        self.buffer: Block = []
        self.kinds: dict[str, Kind] = {}
        self.variables: set[str] = set()
        self.single: set[str] = set()
        self.inputs: dict[str, Any] = {}
        self.numbers: dict[str, int] = {}
        self.line = 0
        self.file = ""
        self.reshapes = False
        self.rows: list[Let | Set] = []
        self.moves: list[Let | Set] = []
        self.copying: dict[Any, None] = {}
        self.bases: dict[str, str] = {}
        self.start: Block = []
        self.heaps: dict[str, Heap] = {}
        self.capacity: Callable[[], Any] = _no_capacity
        self.numbers_at: frozenset[Any] = frozenset()

    def refused(self, reason: str, node: Any = None) -> NotSupported:
        """Return an error that states what is not supported, and where."""
        return NotSupported(reason, getattr(node, "lineno", 0) or self.line, self.file)

    def empty(self, node: Any = None) -> Empty:
        """Return the error stating that the kind of the items of a list is still unknown."""
        line = getattr(node, "lineno", 0) or self.line
        return Empty("an item of a list without items is not supported", line, self.file)

    def emit(self, stmt: Any) -> None:
        """Add a statement; an index that may read elements written by it is first bound to a variable.

        The reverse pass needs the index after the write.
        """
        if isinstance(stmt, Set):
            own = stmt.base.kind.dtype
            stmt = attrs.evolve(stmt, index=tuple([
                self.temporary(item, "at") if isinstance(item, (Get, Op, Lazy)) and _reads(item, own) else item
                for item in stmt.index
            ]))  # fmt: skip
        self.buffer.append(stmt)

    def fresh(self, name: str) -> str:
        """Return an unused name."""
        name = f"{name}_" if is_reserved(name) else name
        while True:
            count = self.numbers.get(name, 0)
            self.numbers[name] = count + 1
            found = name if not count else f"{name}_{count + 1}"
            if found not in self.inputs and found not in self.variables:
                return found

    def temporary(self, value: Any, hint: str = "t") -> Var:
        """Bind an expression to a new variable and return the variable."""
        name = self.fresh(hint)
        self.kinds[name] = value.kind
        self.emit(Let(name, value, self.line))
        return Var(name, value.kind)

    def lifted(self, expr: Any) -> Any:
        """Return the expression; a call of an array function is bound to a variable of its own."""
        return self.temporary(expr) if isinstance(expr, Call) else expr

    def let(self, name: str, value: Any) -> Var:
        """Bind a variable of the program, or a variable with a similar name if that one has a different kind."""
        number = 1
        base = name if not is_reserved(name) else name + "_"
        while True:
            target = base if number == 1 else f"{base}_{number}"
            known = self.kinds.get(target)
            kind = value.kind if known is None else joined(known, value.kind)
            if kind is not None and target not in self.inputs and (known is None or target in self.variables):
                break
            number += 1
        self.variables.add(target)
        self.bases[target] = name
        self.kinds[target] = kind
        self.emit(Let(target, value, self.line))
        return Var(target, value.kind)
