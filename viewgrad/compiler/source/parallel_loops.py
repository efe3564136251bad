"""Parallel loops, whose iterations may run in any order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from .ir import For, Get, Let, Op, Set, Var, is_bar, nodes_of
from .liveness import read_before_bound, reads_of


def root_of(name: str, roots: Mapping[str, str]) -> str:
    """Return the representative of the variables that share memory with the given one, or with its adjoint."""
    own, mark = (name[:-4], "_bar") if is_bar(name) else (name, "")
    return roots.get(own, own) + mark


def is_parallel(loop: For, roots: Mapping[str, str]) -> bool:
    """Return whether a loop that runs backwards may run forwards, since it only adds to cells and to sums."""
    sums: set[str] = set()
    others: set[str] = set()
    written: set[str] = set()
    for stmt in loop.body:
        if isinstance(stmt, Set) and stmt.op:
            written.add(root_of(stmt.base.name, roots))
        elif isinstance(stmt, Let):
            value = stmt.value
            is_sum = isinstance(value, Op) and value.name in ("plus", "add") and value.args[0] == Var(
                stmt.name, value.kind)
            (sums if is_sum else others).add(stmt.name)
        else:
            return False
    if loop.last is not None or sums & others or read_before_bound(loop.body, {loop.name}) & others:
        return False
    for stmt in loop.body:
        reads = Counter(reads_of(stmt))
        if any(reads[name] > (isinstance(stmt, Let) and stmt.name == name) for name in sums):
            return False
        if any(isinstance(node, Get) and root_of(node.base.name, roots) in written
               for node in nodes_of(stmt)):
            return False
    return True
