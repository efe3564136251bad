"""Copy propagation: a number and its copy share a variable, if neither changes while the other is in use.

Inlined calls leave many copies, such as `a = result; s = a`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Any

from .ir import Block, Let, Var, assigned, blocks_of, is_number, statements
from .liveness import reads_of
from .renaming import renamed


def propagate_copies(block: Block, kinds: dict[str, Any], outside: Collection[str]) -> Block:
    """Return the program without copies of numbers.

    Arguments:
        block: the program.
        kinds: the kinds of the variables.
        outside: the inputs, and the variables that contain results.
    """
    own = [renamed(stmt, {}) for stmt in block]
    return _Copies(own, kinds, outside).block(own)


class _Copies:
    def __init__(self, block: Block, kinds: dict[str, Any], outside: Collection[str]) -> None:
        self.kinds = kinds
        self.outside = set(outside)
        self.bound = Counter(name for stmt in statements(block) for name in assigned(stmt))
        self.readers = Counter(name for stmt in statements(block) for name in set(reads_of(stmt)))

    def block(self, block: Block) -> Block:
        found = list(block)
        for stmt in found:
            for inner in blocks_of(stmt):
                inner[:] = self.block(inner)
        number = 0
        while number < len(found):
            names = self.names(found, number)
            if names is None:
                number += 1
                continue
            rest = [renamed(stmt, names) for stmt in found if stmt is not found[number]]
            for old, new in names.items():
                self.readers[new] += self.readers.pop(old, 0) - 1
                if old != found[number].name:
                    self.bound[new] = self.bound.pop(old)
            found = rest
        return found

    def names(self, block: Block, number: int) -> dict[str, str] | None:
        """Return the new name of a variable in a copy, or None if both are needed or it is not a copy."""
        stmt = block[number]
        if not isinstance(stmt, Let) or not isinstance(stmt.value, Var) or not is_number(stmt.value):
            return None
        name, source = stmt.name, stmt.value.name
        if self.kinds[name] != self.kinds[source] or name in self.outside or self.bound[name] != 1:
            return None
        later = block[number + 1 :]
        if not self.is_local(name, later):
            return None
        uses = [n for n, each in enumerate(later) if any(name in reads_of(inner) for inner in statements([each]))]
        last = max(uses, default=-1)
        if source in self.outside or self.bound[source] != 1:
            changed = {each for inner in statements(later[: last + 1]) for each in assigned(inner)}
            return None if source in changed else {name: source}
        made = next((n for n, each in enumerate(block[:number]) if isinstance(each, Let) and each.name == source), None)
        if made is not None and self.is_local(source, block[made + 1 :]):
            return {source: name}
        return {name: source}

    def is_local(self, name: str, stmts: Block) -> bool:
        """Return whether a variable is read only by the given statements."""
        return self.readers[name] == sum(1 for stmt in statements(stmts) if name in set(reads_of(stmt)))
