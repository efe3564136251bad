"""The protocol of in-place writes, defined once for `x[i] = y`, `x += y`, `x.copy_(y)` and `out=`.

                     memory                          history

    check            raises if the write is not allowed, or its history would be ambiguous
    begin                                            y -> (unfinished) -> old
    preserve, bump   saved windows that overlap are copied; version + 1
    write            the new values
    finish                                           y -> node -> old
    or roll back                                     y -> old, if nothing was written, else y -> (refuses) -> old

This order makes writes safe: before memory changes, the history is replaced by one that cannot be differentiated, until
both are consistent again. No exception, wherever it occurs, can therefore leave a gradient that contradicts a value.
See Note [Interrupted writes] in docs/notes/interruption.md.

A small write takes 0.3 to 1.5 us, and one more call would add 5 %. The protocol is therefore a template, `PROTOCOL`.
Each kind of write fills in its steps and is compiled from the result.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any, Final

import attrs
import numpy as np

from ..tensor.modes import GRAD, current_mode
from ..tensor.node import UNFINISHED, AccumulateGrad, OptionalEdge, next_sequence_nr
from ..tensor.storage import prepare_write, storage_of
from ..tensor.tensor import Tensor
from .detached_views import constant_written
from .rebase_history import abandon_write, begin_copy, begin_write, finish_write
from .write_checks import check_write

PROTOCOL: Final = """\
<check>
if not recorded:
    <prepare>
    <write>
    if detached:
        <note>
    return <result>
<node>
<begin>
try:
    <save_inputs>
    <prepare>
    <write>
    <save_results>
    if old is None or old.hooks is None:
        head.hooks = None
    else:
        finish_write(<target>, head, old)
except BaseException as error:
    abandon_write(<target>, head, old, error, <writer>)
    raise
return <result>
"""

# The functions called by the protocol and the steps below.
ENVIRONMENT: Final[dict[str, Any]] = {
    "AccumulateGrad": AccumulateGrad,
    "UNFINISHED": UNFINISHED,
    "abandon_write": abandon_write,
    "begin_copy": begin_copy,
    "begin_write": begin_write,
    "check_write": check_write,
    "constant_written": constant_written,
    "finish_write": finish_write,
    "ndarray": np.ndarray,
    "next_sequence_nr": next_sequence_nr,
    "prepare_write": prepare_write,
    "storage_of": storage_of,
}

# Make `node` the history of a tensor that is not a view; `begin_write` handles all other cases. There must be no call
# between the comparison and the assignment, where another thread could interfere.
BEGIN: Final = """\
node.hooks = UNFINISHED
node.sequence_nr = next_sequence_nr()
if {target}._view is None and ({own} is None or {own}.hooks is None) and {target}._edge is {own}:
    {target}._edge = head = node
    old = {own}
else:
    head, old = begin_write({target}, node, {own})
"""


@attrs.frozen(kw_only=True)
class Steps:
    """The steps of one kind of write, as Python source.

    Arguments:
        target: the name of the variable with the tensor to write to.
        writer: the expression for the name of the function that the user called.
        check: sets `recorded`, whether the history changes, and `detached`, the result of `check_write`.
        node: creates `node`, the node of the write.
        begin: makes the node the history, and sets `head` and `old` as returned by `begin_write`.
        prepare: preserves the saved windows that the write overlaps, and increments the version.
        write: writes to memory.
        save_inputs: saves the inputs that formulas read, before they are overwritten.
        save_results: saves the results that formulas read.
        note: calls `constant_written` if the write was not recorded and its target was detached in place.
        result: the expression for the returned value.
    """

    target: str = "self"
    writer: str
    check: str
    node: str = ""
    begin: str
    prepare: str
    write: str
    save_inputs: str = ""
    save_results: str = ""
    note: str = "constant_written(self)"
    result: str = "None"


def write_source(head: str, steps: Steps) -> str:
    """Return the source of a function that writes in place by the given steps.

    Arguments:
        head: the `def` line with the colon, and the lines before the protocol.
        steps: the steps.
    """
    lines = []
    for line in PROTOCOL.splitlines():
        name = line.strip()
        indent = line.removesuffix(name)
        if name.startswith("<"):
            lines += [indent + step for step in getattr(steps, name[1:-1]).splitlines()]
        else:
            for name in ("target", "writer", "result"):
                line = line.replace(f"<{name}>", getattr(steps, name))
            lines.append(line)
    return head + "".join(f"    {line}\n" for line in lines)


def write_function(name: str, source: str, environment: dict[str, Any]) -> Callable[..., Any]:
    """Compile the source of a function that writes in place; tracebacks and debuggers show it.

    Arguments:
        name: the name of the function.
        source: the source of the function.
        environment: the names that the steps use besides `ENVIRONMENT`.
    """
    filename = f"<viewgrad generated: {name}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    scope = {"__name__": __name__, **ENVIRONMENT, **environment}
    exec(compile(source, filename, "exec"), scope)
    function: Callable[..., Any] = scope[name]
    return function


def is_recorded(target: Tensor, edge: OptionalEdge, own: OptionalEdge) -> bool:
    """Return whether a write is recorded, where `edge` leads to the value's history and `own` to the target's."""
    return (edge is not None or own is not None) and bool(current_mode() & GRAD) and target._array.dtype.kind in "fc"


# The protocol as functions, for larger writes.
write_in_place: Final = write_function(
    "write_in_place",
    write_source(
        '''\
def write_in_place(self, node, own, store, index, source, writer, *, overwritten):
    """Write to a tensor, and make `node` its history.

    Arguments:
        self: the tensor that is written to.
        node: the step, without number and hooks; None for a write that is not recorded.
        own: the edge to the tensor's own history.
        store: writes: `store(array, index, source)`.
        index: the part of the tensor that is written to; `...` for all of it.
        source: the values.
        writer: the function that the user called.
        overwritten: whether nothing that is written depends on the value before.
    """
''',
        Steps(
            writer="writer",
            check="recorded = node is not None\ndetached = check_write(self, recorded, overwritten=overwritten)",
            begin="head, old = begin_write(self, node, own)",
            prepare="prepare_write(self, writer)",
            write="store(self._array, index, source)",
            note="constant_written(self, index=index)",
        ),
    ),
    {},
)
