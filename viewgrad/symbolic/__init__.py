"""Graphs: a program traced, differentiated, rewritten and run.

The parts, each in a file:

- `graph`, `types`: `Graph` has a `Block` of `Node`s, a linked list. A `Value` is what a node gives, and has a `type`,
  `TensorType(dtype, shape, requires_grad)` for the most part. `node.kind` is the name of an operator of the table, or
  one of the kinds below. An underscore follows for an in-place variant that its row states itself. `node.inputs` are
  values: None for an optional operand that is not given; the items of a list of tensors one after the other.
  `node.attributes` are the options in the order of the signature, arrays among them `Frozen`. `value.users` are the
  nodes that take it; the outputs of a block are the inputs of its node `return`. `graph.where(node)` is `file:line`.
- `trace`, `tracing`: `trace(f, *example_inputs)` gives the graph; `record(f, args, keywords, escapes="guard", limit=n)`
  gives a `Record` with the graph and the result of the run. `graph.signature` says what inputs, results and mutations
  are.
- `backward`: `backward_of(block, node, grads, wanted, totals)` writes the backward of one node into a block, and gives
  the gradients of its inputs. `BackwardWriter` does it for many. The gradient that comes back for input 0 of a `read`
  or a `gather_at` includes the total so far (`includes_total`). It is that total with a window added to.
- `differentiate`, `gradient`: `differentiate(graph)` gives a `Gradient`.
- `passes`: what makes graphs smaller. `interpreter`, `source`: what runs them.

The kinds besides operators (attributes after the semicolon):

    constant(; array)                     an array, `Frozen`
    full(; shape, value, dtype)           a new array of equal elements
    read(base; Window)                    the window of the base's memory, which lies in row order
    write(base, v; Window)                the base with `v`, broadcast and cast as NumPy does, in the window
    overwrite(base, v; Window)            the same, of which the history of the base does not know: its gradient passes
    accumulate(base, v; Window)           the base with `v` added in the window, for each place as often as it occurs
    gather_at(v, *given; pattern)         `v[pattern]` by arrays; `Given(i)` in it stands for the i-th of `given`
    put_at(base, v, *given; Window, pattern)       the base with `v` at these places of the window; the last value stays
    add_at(base, v, *given; Window, pattern)       the base with `v` added there, for each mention of a place
    put_at_unrecorded, add_at_unrecorded  to these as `overwrite` is to `write`
    winners_at(*given; shape, pattern)    for each value that `put_at` would put, whether it stays
    sum_to_size(v; shape)                 summed over the dimensions along which `shape` was broadcast
    detach(v)                             the value without its history
    guard(v; how, expected)               raises GuardError unless `v` is what it was
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
