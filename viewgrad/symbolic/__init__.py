"""Graphs: programs that can be traced, differentiated, transformed and run.

The components, each in its own file:

- `graph`, `types`: a `Graph` has a `Block`, a linked list of `Node`s. A `Value` is an output of a node and has a
  `type`, usually `TensorType(dtype, shape, requires_grad)`. `node.kind` is the name of an operator, or one of the kinds
  below; an underscore follows for an in-place form with formulas of its own. `node.inputs` are values: None for an
  omitted optional operand, and the items of a list of tensors one after the other. `node.attributes` are the options in
  the order of the signature, with arrays as `Frozen`. `value.users` are the nodes that use it; outputs of a block are
  inputs of its node `return`. `graph.where(node)` is `file:line`.
- `trace`, `tracing`: `trace(f, *example_inputs)` returns the graph; `record(f, args, keywords, escapes="guard",
  limit=n)` returns a `Record` with the graph and the result of the run. `graph.signature` describes inputs, results and
  mutations.
- `backward`: `backward_of(block, node, grads, wanted, totals)` writes the backward of one node into a block and returns
  the gradients of its inputs; `BackwardWriter` does this for many nodes. The gradient of input 0 of a `read` or a
  `gather_at` is the total so far with a window added to (`includes_total`).
- `differentiate`, `gradient`: `differentiate(graph)` returns a `Gradient`.
- `passes` simplify graphs; `interpreter` and `source` run them.

The kinds besides operators (attributes after the semicolon):

    constant(; array)                     an array, `Frozen`
    full(; shape, value, dtype)           a new array of equal elements
    read(base; Window)                    the window of the base's memory, in row-major order
    write(base, v; Window)                the base with `v`, broadcast and cast as in NumPy, in the window
    overwrite(base, v; Window)            the same, but not in the history of the base, whose gradient passes
    accumulate(base, v; Window)           the base with `v` added in the window, also to repeated elements
    gather_at(v, *given; pattern)         `v[pattern]` with index arrays; `IndexInput(i)` is the i-th of `given`
    put_at(base, v, *given; Window, pattern)       the base with `v` at these elements of the window; the last wins
    add_at(base, v, *given; Window, pattern)       the base with `v` added there, also to repeated elements
    put_at_unrecorded, add_at_unrecorded  the same, not in the history of the base
    winners_at(*given; shape, pattern)    for each value of `put_at`, whether it is not overwritten
    sum_to_size(v; shape)                 summed over the dimensions along which `shape` was broadcast
    detach(v)                             the value without its history
    guard(v; how, expected)               raises GuardError unless `v` is unchanged
    call(*inputs; step)                   an opaque `Step`
    AutogradZero(), AutogradAdd(a, b)     an undefined gradient; a sum in which either may be undefined
    GradOf(*grads; name) with a block     the backward of a node, which is linear in the gradients
"""

from ..trace.graph import Block, Graph, Node, Value
from ..trace.interpreter import run
from ..trace.printer import parse, text_of
from ..trace.signature import InputSpec, MutationSpec, ResultSpec, Signature
from ..trace.trace import Record, record, trace
from ..trace.types import ListType, ScalarType, TensorType, TupleType, Type, Window
from ..trace.verify import verify
from . import passes
from .backward import BackwardWriter, backward_of
from .builder import Builder
from .differentiate import differentiate
from .drawing import to_dot
from .function import GraphFunction, TracedFunction, function_of
from .gradient import Gradient
from .source import Program, program_of

__all__ = [
    "BackwardWriter",
    "Block",
    "Builder",
    "Gradient",
    "Graph",
    "GraphFunction",
    "InputSpec",
    "ListType",
    "MutationSpec",
    "Node",
    "Program",
    "Record",
    "ResultSpec",
    "ScalarType",
    "Signature",
    "TensorType",
    "TupleType",
    "TracedFunction",
    "Type",
    "Value",
    "Window",
    "backward_of",
    "differentiate",
    "function_of",
    "parse",
    "passes",
    "program_of",
    "record",
    "run",
    "text_of",
    "to_dot",
    "trace",
    "verify",
]


def __dir__() -> list[str]:
    return sorted(__all__)
