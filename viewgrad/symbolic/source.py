"""Graphs as Python source: straight-line NumPy, with in-place writes where the analysis of last uses allows them.

The source computes the same as the interpreter. It is registered with `linecache`, so that tracebacks and debuggers
show it. The file is long because it is a table with an entry for each kind of node.
"""

from __future__ import annotations

import itertools
import keyword
import math
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import attrs
import numpy as np

from ..errors import GraphError
from ..operators.codegen.source_cache import list_source
from ..operators.operands import owned_array
from ..tensor.indices import add_at
from ..trace.attributes import IndexInput, unfrozen
from ..trace.evaluate import add_into, check_guard, copied, forward_call, in_row_order, put, winners
from ..trace.graph import Graph, Node, Value
from ..trace.last_use import WRITES, LastUse, last_uses
from ..trace.opaque_ops import Step
from ..trace.primitives import operator_of
from ..trace.types import TensorType, Window, row_strides
from ..views.unbroadcast import sum_to
from .passes.grad_of import inline_grad_of, specialize_autograd_zero
from .passes.tuples import has_tuples, lower_all_tuples

PART: Final = 5000  # the number of nodes in one function, since compilation takes more than linear time
SHOWN: Final = 200_000  # lines; the source of larger programs is not kept
LARGE: Final = 1 << 12  # elements; variables of larger arrays are deleted after their last use
numbers: Final = itertools.count(1)


@attrs.define(eq=False)
class Program:
    """A graph compiled to Python source.

    Arguments:
        graph: the graph.
        function: a function of a list of arrays that returns a tuple of arrays: new ones, inputs, constants, and views
            of these.
        parts: the source of each of its functions; empty for a large program.
        constants: the ids of constant arrays, which must not be written to.
        linear: the graph with its linear blocks, or None if it has none.
    """

    graph: Graph
    function: Callable[[Sequence[Any]], tuple[Any, ...]]
    parts: list[str]
    constants: frozenset[int]
    linear: Graph | None = None
    _specialized: dict[tuple[int, ...], Program] = attrs.field(factory=dict, init=False)

    def __call__(self, inputs: Sequence[Any]) -> tuple[Any, ...]:
        """Run the program; see `interpreter.run`."""
        if self.linear is not None:
            undefined = tuple([number for number, given in enumerate(inputs) if given is None])
            if undefined:
                return self._specialized_on(undefined).function(inputs)
        return self.function(inputs)

    def _specialized_on(self, undefined: tuple[int, ...]) -> Program:
        """Return the program specialized for some undefined gradients."""
        found = self._specialized.get(undefined)
        if found is None:
            assert self.linear is not None
            graph = specialize_autograd_zero(self.linear.clone(), undefined)
            found = self._specialized[undefined] = program_of(graph)
        return found

    def source(self) -> str:
        """Return the Python source."""
        return "\n\n".join(self.parts)


def program_of(graph: Graph, name: str = "graph") -> Program:
    """Generate Python source for a graph and compile it.

    Arguments:
        graph: the graph. The source assumes that the gradients in linear blocks are defined; if some are None, the
            program runs a version specialized for that case. Inputs and outputs that are tuples or lists are replaced
            by their items.
        name: the name of the function.

    Example:
        >>> import numpy as np, viewgrad as vg
        >>> program = vg.symbolic.program_of(vg.symbolic.trace(lambda x: vg.exp(x) * 2, vg.ones(2)))
        >>> print(program.source())
        def graph(x):
            v1 = exp(x)
            v3 = mul(v1, constant2)
            return (v3,)
        >>> program([np.zeros(2)])
        (array([2., 2.]),)
    """
    linear = None
    if any(node.blocks for node in graph.block) or has_tuples(graph):
        graph = graph.clone()
        lower_all_tuples(graph)
        if any(node.blocks for node in graph.block):
            linear, graph = graph, graph.clone()
            inline_grad_of(graph.block)
    program = Writer(graph, name).program()
    program.linear = linear
    return program


class Writer:
    """Writes a graph as source."""

    def __init__(self, graph: Graph, name: str) -> None:
        self.graph = graph
        self.name = name
        self.uses: LastUse = last_uses(graph.block)
        self.names: dict[Value, str] = {}
        self.environment: dict[str, Any] = dict(ENVIRONMENT)
        self.bases = {
            node.inputs[0]
            for node in graph.block
            if node.kind in WRITES or node.kind == "read"
        }
        self.used_names: set[str] = set(self.environment)
        self.count = 0

    def program(self) -> Program:
        """Return the program."""
        nodes = list(self.graph.block)
        if len(nodes) <= PART:
            return self._one_function(nodes)
        return self._in_parts(nodes)

    def _one_function(self, nodes: list[Node]) -> Program:
        inputs = [self.name_of(value) for value in self.graph.inputs]
        lines = [f"def {self.name}({', '.join(inputs)}):"]
        for value in self.graph.inputs:
            lines += self._copied_to_row_order(value)
        for number, node in enumerate(nodes):
            lines += self._node(node)
            lines += self._released(node, number)
        outputs = [self.name_of(value) for value in self.graph.outputs]
        lines.append(f"    return ({', '.join(outputs)}{',' if len(outputs) == 1 else ''})")
        source = "\n".join(lines) + "\n"
        function = self._compiled(source, self.name, "")
        wanted = [type(value.type) is TensorType if value is not None else False for value in self.graph.outputs]

        def run(given: Sequence[Any]) -> tuple[Any, ...]:
            return arrays(function(*given), wanted)

        return Program(self.graph, run, [source.rstrip("\n")], self._constants())

    def _in_parts(self, nodes: list[Node]) -> Program:
        """Return a program of several functions, which pass values in a list."""
        slots = {value: number for number, value in enumerate(self.graph.inputs)}
        parts, functions = [], []
        shown = len(nodes) <= SHOWN
        for start in range(0, len(nodes), PART):
            name, part = f"{self.name}{start // PART}", f", part {start // PART}"
            source = self._part_function(name, nodes, start, slots)
            functions.append(self._compiled(source, name, part, shown))
            if shown:
                parts.append(source.rstrip("\n"))
        size = len(slots)
        inputs = len(self.graph.inputs)
        outputs = [self._output(value, slots) for value in self.graph.outputs]
        wanted = [type(value.type) is TensorType if value is not None else False for value in self.graph.outputs]

        def run(given: Sequence[Any]) -> tuple[Any, ...]:
            held = [*given, *[None] * (size - inputs)]
            for function in functions:
                function(held)
            return arrays([each if type(each) is not int else held[each] for each in outputs], wanted)

        return Program(self.graph, run, parts, self._constants())

    def _part_function(self, name: str, nodes: list[Node], start: int, slots: dict[Value, int]) -> str:
        """Return the source of a function that executes some of the nodes.

        Arguments:
            name: its name.
            nodes: all nodes.
            start: the number of the first node of this function.
            slots: the slots of values in the list; slots are assigned to values that later functions need.
        """
        stop = min(start + PART, len(nodes))
        last = self.uses.last
        body: list[str] = []
        needed: dict[Value, None] = {}
        made: set[Value] = set()
        for value in [] if start else self.graph.inputs:
            settled = self._copied_to_row_order(value)
            if settled:
                needed[value] = None
                made.add(value)
                body += settled
        for node in nodes[start:stop]:
            given = [v for v in node.inputs if v is not None and v.node.kind != "constant" and v not in made]
            needed.update(dict.fromkeys(given))
            body += self._node(node)
            made.update(node.outputs)
        lines = [f"def {name}(slots):"]
        lines += [f"    {self.name_of(value)} = slots[{slots[value]}]" for value in needed]
        lines += [f"    slots[{slots[value]}] = None" for value in needed if last[value] < stop]
        lines += body
        for value in made:
            if last[value] >= stop and value.node.kind != "constant":
                slots.setdefault(value, len(slots))
                lines.append(f"    slots[{slots[value]}] = {self.name_of(value)}")
        self.names = {value: text for value, text in self.names.items() if last[value] >= stop}
        return "\n".join(lines) + "\n"

    def _constants(self) -> frozenset[int]:
        return frozenset([id(node.attributes[0].array) for node in self.graph.block if node.kind == "constant"])

    def _output(self, value: Value | None, slots: dict[Value, int]) -> Any:
        """Return the location of an output: a slot, or the array of a constant."""
        if value is None:
            return None
        if value.node.kind == "constant":
            return value.node.attributes[0].array
        return slots[value]

    def _compiled(self, source: str, function: str, part: str, shown: bool = True) -> Any:
        filename = f"<viewgrad graph {next(numbers)}: {self.name}{part}>"
        scope: dict[str, Any] = {}
        exec(compile(source, filename, "exec"), self.environment, scope)
        found = scope[function]
        if shown:
            list_source(filename, source, found.__code__)
        return found

    # -- lines ---------------------------------------------------------------------------------------------------------

    def name_of(self, value: Value | None) -> str:
        """Return the variable of a value."""
        if value is None:
            return "None"
        found = self.names.get(value)
        if found is None:
            given = self.graph.names.get(value)
            constant = value.node.kind == "constant"
            if given is None or given in self.used_names or keyword.iskeyword(given):
                given = f"{'constant' if constant else 'v'}{self.count}"
            self.count += 1
            found = self.names[value] = given
            self.used_names.add(given)
            if constant:
                self.environment[given] = value.node.attributes[0].array
        return found

    def _name_in_environment(self, prefix: str, obj: Any) -> str:
        """Return a name for an object that the source accesses through its environment."""
        name = prefix = re.sub(r"\W", "_", prefix)
        number = 2
        while self.environment.get(name, obj) is not obj:
            name = f"{prefix}_{number}"
            number += 1
        self.environment[name] = obj
        self.used_names.add(name)
        return name

    def _copied_to_row_order(self, value: Value) -> list[str]:
        """Return a line that copies a value into row-major order, because windows of it are taken."""
        if value not in self.bases or self._is_in_row_order(value):
            return []
        name = self.name_of(value)
        return [f"    {name} = in_row_order({name})"]

    def _is_in_row_order(self, value: Value) -> bool:
        """Return whether a value is known to be an array in row-major order."""
        node = value.node
        if node.kind in WRITES or node.kind in ("full", "constant"):
            return True
        if node.kind == "read":
            window: Window = node.attributes
            return node in self.uses.copied or window.strides == row_strides(window.sizes)
        return False

    def _released(self, node: Node, number: int) -> list[str]:
        """Return a line that releases large values that are no longer needed."""
        last = self.uses.last
        values = {value for value in (*node.inputs, *node.outputs) if value is not None}
        names = [
            self.name_of(value)
            for value in values
            if last[value] <= number and type(value.type) is TensorType and value.type.size > LARGE
            and value.node.kind not in ("constant", "param")
        ]  # fmt: skip
        return [f"    {' = '.join(sorted(names))} = None"] if names else []

    def _node(self, node: Node) -> list[str]:
        kind = node.kind
        if kind == "constant":
            self.name_of(node.output)
            return []
        inputs = [self.name_of(value) for value in node.inputs]
        if kind == "guard":
            how, wanted = node.attributes
            expected = repr(wanted) if is_literal(wanted) else self._name_in_environment("expected", unfrozen(wanted))
            return [f"    check_guard({how!r}, {expected}, asarray({inputs[0]}), {self.graph.where(node)!r})"]
        if kind in WRITES:
            return self._write(node, inputs)
        outputs = [self.name_of(value) for value in node.outputs]
        target = ", ".join(outputs)
        if kind == "call":
            step: Step = node.attributes[0]
            name = self._name_in_environment("step", Owned(step))
            lines = [f"    {target}{',' if len(outputs) == 1 else ''} = {name}({', '.join(inputs)})"]
        else:
            lines = [f"    {target} = {self._expression(node, inputs)}"]
        for value in node.outputs:
            lines += self._copied_to_row_order(value)
        return lines

    def _write(self, node: Node, inputs: list[str]) -> list[str]:
        """Return the lines of a write, in place or to a copy."""
        output = self.name_of(node.output)
        base, value, *given = inputs
        first = base if node in self.uses.in_place else f"copied({base})"
        lines = [f"    {output} = {first}"]
        attributes = node.attributes
        window: Window = attributes if type(attributes) is Window else attributes[0]
        if node.kind in ("write", "overwrite", "accumulate"):
            if 0 in window.sizes:
                return lines
            if node.kind == "accumulate" and window.overlaps_itself:
                return [*lines, f"    add_into({output}, {self._name_in_environment('window', window)}, {value})"]
            place = self._element_index(node.output, window)
            if place is not None:
                sign = "+=" if node.kind == "accumulate" else "="
                return [*lines, f"    {output}[{place}] {sign} {value}"]
            taken = self._window(output, node.output, window)
            if node.kind != "accumulate":
                return [*lines, f"    {taken}[...] = {value}"]
            return [*lines, f"    window = {taken}", f"    np_add(window, {value}, window)"]
        taken = self._window(output, node.output, window)
        index = self._index(attributes[1], given)
        call = "put" if node.kind.startswith("put_at") else "np_add_at"
        return [*lines, f"    {call}({taken}, {index}, {value})"]

    def _element_index(self, base: Value, window: Window) -> str | None:
        """Return the index of a window's only element, or None for other windows."""
        kind = base.type
        assert type(kind) is TensorType
        if window.sizes or window.dtype is not None:
            return None
        if not kind.shape:
            return "()"
        return ", ".join([str(int(number)) for number in np.unravel_index(window.offset, kind.shape)])

    def _window(self, name: str, base: Value, window: Window) -> str:
        """Return an expression for a window of an array in row-major order."""
        kind = base.type
        assert type(kind) is TensorType
        dtype = kind.dtype if window.dtype is None else window.dtype
        if 0 in window.sizes:
            return f"np_empty({window.sizes}, {self._name_in_environment(dtype.name + '_', dtype)})"
        if window.dtype is None and window.offset == 0 and window.sizes == kind.shape:
            if window.strides == row_strides(kind.shape):
                return name
        itemsize = min(kind.dtype.itemsize, dtype.itemsize)
        strides = tuple([stride * itemsize for stride in window.strides])
        put = self._name_in_environment(dtype.name + "_", dtype)
        return f"ndarray({window.sizes}, {put}, {name}, {window.offset * itemsize}, {strides})"

    def _index(self, pattern: tuple[Any, ...], given: list[str]) -> str:
        """Return an expression for an index by arrays."""
        items = []
        for item in pattern:
            if type(item) is IndexInput:
                items.append(given[item.number])
            elif is_literal(item) or item is Ellipsis or type(item) is slice:
                items.append(repr(item))
            else:
                items.append(self._name_in_environment("index", unfrozen(item)))
        return f"({', '.join(items)},)"

    def _expression(self, node: Node, inputs: list[str]) -> str:
        kind, attributes = node.kind, node.attributes
        if kind == "read":
            return self._read(node, inputs[0])
        if kind == "full":
            shape, value, dtype = attributes
            name = self._name_in_environment(dtype.name + "_", dtype)
            if value == 0 and not math.copysign(1.0, np.real(value)) < 0:
                return f"np_zeros({shape}, {name})"
            return f"np_full({shape}, {self._literal(value)}, {name})"
        if kind == "detach":
            return f"copied({inputs[0]})" if node in self.uses.copied else inputs[0]
        if kind == "AutogradZero":
            of = node.output.type
            assert type(of) is TensorType
            return f"np_zeros({of.shape}, {self._name_in_environment(of.dtype.name + '_', of.dtype)})"
        if kind == "sum_to_size":
            summed = f"sum_to({inputs[0]}, {attributes[0]})"
            return f"copied({summed})" if node in self.uses.copied else summed
        if kind == "AutogradAdd":
            return f"{inputs[0]} + {inputs[1]}"
        if kind == "gather_at":
            return f"asarray({inputs[0]}[{self._index(attributes[0], inputs[1:])}])"
        if kind == "winners_at":
            return f"winners({attributes[0]}, {self._index(attributes[1], inputs)})"
        operator = operator_of(kind)
        if operator is None:
            raise GraphError(f"a node of kind {kind!r} at {self.graph.where(node)} cannot be written as source")
        return self._call(node, operator, inputs)

    def _read(self, node: Node, name: str) -> str:
        window: Window = node.attributes
        base = node.inputs[0]
        assert base is not None
        place = self._element_index(base, window)
        if place is not None:
            return f"{name}[{place}]"  # a number, which cannot be written to
        taken = self._window(name, base, window)
        return f"{taken}.copy()" if node in self.uses.copied else taken

    def _call(self, node: Node, operator: Any, inputs: list[str]) -> str:
        """Return the call of an operator's forward."""
        args, keywords = forward_call(operator, [Text(name) for name in inputs], node.attributes)
        parts = [self._literal(arg) for arg in args] + [f"{key}={self._literal(arg)}" for key, arg in keywords.items()]
        if isinstance(operator.forward, np.ufunc):
            return f"{self._name_in_environment(operator.name, operator.forward)}({', '.join(parts)})"
        name = self._name_in_environment(operator.name, OwnedForward(operator.forward))
        return f"{name}({', '.join(parts)})"

    def _literal(self, value: Any) -> str:
        if type(value) is Text:
            return value.text
        if type(value) is list and all(type(item) is Text for item in value):
            return f"[{', '.join([item.text for item in value])}]"
        if is_literal(value):
            return repr(value)
        if type(value) is tuple:
            items = [self._literal(item) for item in value]
            return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
        return self._name_in_environment(value.name + "_" if isinstance(value, np.dtype) else "option", value)


@attrs.frozen
class Text:
    """A piece of source code in place of a value."""

    text: str


@attrs.frozen
class OwnedForward:
    """The forward of an operator whose results share no memory with its arguments."""

    forward: Callable[..., Any]

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        results = self.forward(*args, **keywords)
        if type(results) is np.float64:
            return results
        given = [arg for arg in args if isinstance(arg, (np.ndarray, list))]
        if isinstance(results, tuple):
            return tuple([owned_array(result, given) for result in results])
        return owned_array(results, given)


@attrs.frozen
class Owned:
    """An opaque step whose results share no memory with its inputs or with each other."""

    step: Step

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        results: list[Any] = []
        given = [None if each is None else np.asarray(each) for each in inputs]
        for result in self.step.on_arrays(*given):
            others = [other for other in (*given, *results) if isinstance(other, np.ndarray)]
            results.append(result if result is None else owned_array(result, others))
        return tuple(results)


def is_literal(value: Any) -> bool:
    """Return whether the repr of a value is an expression for it."""
    if type(value) is tuple:
        return all(is_literal(item) for item in value)
    if type(value) is float:
        return math.isfinite(value)
    return type(value) in (int, bool, str, type(None))


def arrays(outputs: Sequence[Any], wanted: Sequence[bool]) -> tuple[Any, ...]:
    """Convert outputs to arrays, since NumPy returns numbers for 0-d results."""
    return tuple([np.asarray(each) if tensor else each for each, tensor in zip(outputs, wanted, strict=True)])


ENVIRONMENT: Final[dict[str, Any]] = {
    "add_into": add_into,
    "asarray": np.asarray,
    "check_guard": check_guard,
    "copied": copied,
    "in_row_order": in_row_order,
    "ndarray": np.ndarray,
    "np_add": np.add,
    "np_add_at": add_at,
    "np_empty": np.empty,
    "np_full": np.full,
    "np_zeros": np.zeros,
    "put": put,
    "sum_to": sum_to,
    "window": None,
    "winners": winners,
}
