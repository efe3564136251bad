"""Lowering of the graph of a trace to a stream of instructions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from ..trace.graph import Graph, Node, Value
from ..trace.last_use import outlived
from .lower.context import LoweringContext
from .lower.data_movement import DATA_MOVEMENT
from .lower.dynamic_index import fixed_indices
from .lower.elementwise import ELEMENTWISE
from .lower.indexing import INDEXING
from .lower.opaque import call
from .lower.primitives import PRIMITIVES
from .lower.reductions import REDUCTIONS
from .lower.small_matrices import SMALL_MATRICES
from .lower.windowed import WINDOWED
from .trace_stream import Stream
from .window_strides import completed_windows

Handler = Callable[[LoweringContext, Node], bool]
EMPTY: Final[Mapping[Any, int]] = {}


def lowered(
    graph: Graph, limit: int, spilled: Mapping[Any, int] = EMPTY, native: bool = False,
    near_singular: frozenset[int] = frozenset(), reserves: dict[Any, int] | None = None,
) -> Stream:
    """Return the stream of a graph.

    Arguments:
        graph: the graph.
        limit: the maximum number of terms after loop recognition.
        spilled: the keys of the sites whose values go through memory; see `Stream`.
        native: whether the program is compiled to machine code, where loops over single elements are fast.
        near_singular: the lines with small matrices that are left to NumPy because one was nearly singular.
        reserves: the sizes of the largest parts of buffers with growing parts, and the tables with many parts, as found
            in the previous attempt.

    Raises:
        NotCompiledError: if something cannot be compiled, with the file and line.
    """
    known = {} if reserves is None else reserves
    first = _lowered(graph, limit, spilled, native, near_singular, dict(known))
    if not first.growing and not first.stream.found_many:
        return first.stream
    known.update({key: first.reserves[key] for key in first.growing})
    known.update(dict.fromkeys(first.stream.found_many, 0))
    return _lowered(graph, limit, spilled, native, near_singular, dict(known)).stream


def _lowered(
    graph: Graph, limit: int, spilled: Mapping[Any, int], native: bool, near_singular: frozenset[int],
    reserves: dict[Any, int],
) -> LoweringContext:
    stream = Stream(graph.locations, limit, spilled, frozenset(key for key in reserves if key[0] == "table"))
    of = LoweringContext(
        graph, stream, native, near_singular, reserves, completed_windows(graph), fixed_indices(graph), outlived(graph)
    )
    for number, value in enumerate(graph.inputs):
        of.input(value, number)
    first = _rearranged_inputs(graph)
    for node in first:
        _lower(of, node)
        of.memory(node.output)
    for node in graph.block:
        if node not in first:
            _lower(of, node)
    of.node = None
    for output in graph.outputs:
        assert output is not None
        stream.results.append(of.result(output))
    of.fill_constants()
    return of


def _lower(of: LoweringContext, node: Node) -> None:
    of.node = node
    handler = HANDLERS.get(node.kind)
    if handler is None or not handler(of, node):
        call(of, node)


def _rearranged_inputs(graph: Graph) -> dict[Node, None]:
    """Emit the reads that copy the elements of an input into C order, and return them.

    The first window of the input may be taken in the first iteration of a loop. The reads precede that loop, so that
    its iterations are alike.
    """
    reads: dict[Value | None, list[Node]] = {value: [] for value in graph.inputs}
    windowed = set()
    for node in graph.block:
        if node.inputs and node.inputs[0] in reads:
            reads[node.inputs[0]].append(node)
        if node.kind == "read":
            windowed.add(node.inputs[0])
    found: dict[Node, None] = {}
    for value, nodes in reads.items():
        if value is not None and len(nodes) == 1 and nodes[0].kind == "read" and nodes[0].output in windowed:
            kind, window = value.type, nodes[0].attributes
            if window.dtype is None and math.prod(window.sizes) == math.prod(kind.shape):  # type: ignore[attr-defined]
                found[nodes[0]] = None
    return found


def _merged(*tables: Mapping[str, Handler]) -> dict[str, Handler]:
    found: dict[str, Handler] = {}
    for table in tables:
        twice = found.keys() & table.keys()
        if twice:
            raise ValueError(f"two handlers lower {', '.join(sorted(twice))}")
        found.update(table)
    return found


# The handlers by kind of node. A handler returns whether it lowered the node; if it did not, the operator is called.
HANDLERS: Final = _merged(PRIMITIVES, INDEXING, ELEMENTWISE, REDUCTIONS, SMALL_MATRICES, DATA_MOVEMENT, WINDOWED)
