"""The text form of graphs, and its parser."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from ..errors import GraphError
from .attributes import Frozen, IndexInput
from .graph import Block, BlockNode, Graph, Node, Value
from .primitives import ATTRIBUTES, attribute_names, operator_of
from .types import NONE, OBJECT, ListType, ScalarType, TensorType, TupleType, Type, Window

# -- printing ----------------------------------------------------------------------------------------------------------


def text_of(graph: Graph, *, locations: bool = True, objects: list[Any] | None = None) -> str:
    """Return the text of a graph.

    Arguments:
        graph: the graph.
        locations: whether to print the source line of each node.
        objects: a list that receives objects without a text form, such as functions and generators, which are printed
            as `object(number)`.
    """
    return "\n".join(Printer(graph, locations, [] if objects is None else objects).lines())


Graph.text = text_of  # type: ignore[method-assign,assignment]
Graph.__str__ = text_of  # type: ignore[method-assign,assignment]


class Printer:
    """Writes a graph as text."""

    def __init__(self, graph: Graph, locations: bool, objects: list[Any]) -> None:
        self.graph = graph
        self.locations = locations
        self.objects = objects
        self.numbers: dict[Value, str] = {}
        self.used_names: set[str] = set()

    def lines(self) -> Iterator[str]:
        """Yield the lines."""
        yield f"graph({self._declared(self.graph.inputs)}):"
        yield from self._block(self.graph.block, "  ")

    def _block(self, block: Block, indent: str) -> Iterator[str]:
        for node in block:
            yield indent + self._node(node)
            for inner in node.blocks:
                yield f"{indent}  block({self._declared(inner.inputs)}):"
                yield from self._block(inner, indent + "    ")
        yield f"{indent}return ({', '.join(map(self.name, block.outputs))})"

    def _node(self, node: Node) -> str:
        inside = ", ".join(map(self.name, node.inputs))
        attributes = self._attributes(node)
        if attributes:
            inside += f"; {attributes}"
        given = f"{node.kind}({inside.strip()})"
        outputs = self._declared(node.outputs)
        text = f"{outputs} = {given}" if outputs else given
        if self.locations and node.location >= 0:
            text += f"  # {self.graph.where(node)}"
        return text

    def _declared(self, values: tuple[Value, ...]) -> str:
        return ", ".join([f"{self.name(value)} : {value.type}" for value in values])

    def _attributes(self, node: Node) -> str:
        attributes = node.attributes
        if attributes is None:
            return ""
        if type(attributes) is Window:
            return self.literal(attributes)
        names = attribute_names(node.kind)
        if node.kind in ATTRIBUTES or len(names) != len(attributes):
            return ", ".join(map(self.literal, attributes))
        return ", ".join([f"{name}={self.literal(value)}" for name, value in zip(names, attributes, strict=True)])

    def name(self, value: Value | None) -> str:
        """Return the name of a value."""
        if value is None:
            return "None"
        found = self.numbers.get(value)
        if found is None:
            given = self.graph.names.get(value)
            if given is None or f"%{given}" in self.used_names:
                given = str(len(self.numbers))
            found = self.numbers[value] = f"%{given}"
            self.used_names.add(found)
        return found

    def literal(self, value: Any) -> str:
        """Return the text of an attribute."""
        kind = type(value)
        if kind in LITERALS:
            return repr(value)
        if kind is complex or kind in LONG:
            return number_text(value)
        if kind is Window:
            return str(value)
        if kind in (tuple, list):
            items = ", ".join(map(self.literal, value))
            return f"[{items}]" if kind is list else f"({items},)" if len(value) == 1 else f"({items})"
        if kind is slice:
            return f"slice({self.literal(value.start)}, {self.literal(value.stop)}, {self.literal(value.step)})"
        if kind is Frozen:
            return array_text(value.array)
        if kind is IndexInput:
            return f"input({value.number})"
        if isinstance(value, np.dtype):
            return f"dtype({value.str!r})" if value.name != np.dtype(value.name).name else f"dtype({value.name!r})"
        if isinstance(value, np.generic):
            return f"scalar({number_text(value.item())}, {value.dtype.name!r})"
        for number, known in enumerate(self.objects):
            if known is value:
                return f"object({number})"
        self.objects.append(value)
        return f"object({len(self.objects) - 1})"


LITERALS: Final = frozenset({int, float, str, bool, type(None), type(Ellipsis)})
LONG: Final = frozenset({np.longdouble, np.clongdouble})  # returned unchanged by item() and tolist()


def number_text(value: Any) -> str:
    """Return an expression for a number with the same bits, except for the sign of NaN."""
    kind = type(value)
    if kind is complex:
        plain = math.isfinite(value.real) and math.isfinite(value.imag) and value.real and value.imag
        return repr(value) if plain else f"complex({value.real!r}, {value.imag!r})"
    if kind is np.clongdouble:
        return f"clongdouble({str(value.real)!r}, {str(value.imag)!r})"
    return f"longdouble({str(value)!r})" if kind is np.longdouble else repr(value)


def items_text(items: Any) -> str:
    """Return an expression for nested lists of numbers."""
    return f"[{', '.join(map(items_text, items))}]" if type(items) is list else number_text(items)


def array_text(array: np.ndarray[Any, Any]) -> str:
    """Return an expression for an array."""
    shape = f", {array.shape}" if 0 in array.shape else ""
    return f"array({items_text(array.tolist())}, {array.dtype.name!r}{shape})"


# -- parsing -----------------------------------------------------------------------------------------------------------

NODE: Final = re.compile(
    r"(?:(?P<outputs>%.*?) = )?(?P<kind>[\w:.]+)\((?P<inside>.*)\)(?:  # (?P<where>.*):(?P<line>\d+))?$"
)


def parse(text: str, objects: list[Any] | None = None) -> Graph:
    """Parse the text of a graph.

    Arguments:
        text: the text, as returned by `Graph.text`.
        objects: the objects referred to as `object(number)`.

    Returns:
        The graph, without a signature.

    Raises:
        GraphError: if the text is not a valid graph; the message names the line.

    Example:
        >>> import viewgrad as vg
        >>> g = vg.symbolic.parse('''
        ... graph(%x : float64[2]):
        ...   %y : float64[2] = exp(%x)
        ...   return (%y)
        ... ''')
        >>> g
        <graph of 1 nodes, 1 inputs, 1 outputs>
    """
    return Parser(text, objects or []).graph()


class Parser:
    """Parses a graph from text."""

    def __init__(self, text: str, objects: list[Any]) -> None:
        self.lines = [(i + 1, line) for i, line in enumerate(text.splitlines()) if line.strip()]
        self.objects = objects
        self.position = 0
        self.values: dict[str, Value] = {}
        self.locations: dict[tuple[str, int], int] = {}
        self.result = Graph()

    def graph(self) -> Graph:
        """Return the graph."""
        line = self._next()
        if not (line.startswith("graph(") and line.endswith("):")):
            raise self._error("a graph starts with 'graph(inputs):'")
        for name, kind in self._declarations(line[6:-2]):
            value = self.values[name] = self.result.add_input(kind)
            if not name[1:].isdigit():
                self.result.names[value] = name[1:]
        self._block(self.result.block)
        if self.position < len(self.lines):
            self.position += 1
            raise self._error("unexpected text after the graph")
        return self.result

    def _next(self) -> str:
        if self.position >= len(self.lines):
            raise self._error("the graph ends without a return")
        self.position += 1
        return self.lines[self.position - 1][1].strip()

    def _error(self, what: str) -> GraphError:
        number, line = self.lines[self.position - 1] if self.lines else (0, "")
        return GraphError(f"line {number}, {line.strip()!r}: {what}")

    def _block(self, block: Block) -> None:
        while True:
            line = self._next()
            if line.startswith("return (") and line.endswith(")"):
                block.set_outputs(self._inputs(line[8:-1]))
                return
            self._node(block, line)

    def _node(self, block: Block, line: str) -> None:
        found = NODE.match(line)
        if found is None:
            raise self._error("expected a node")
        inputs, _, rest = found["inside"].partition(";")
        outputs = list(self._declarations(found["outputs"] or ""))
        location = -1
        if found["where"] is not None:
            where = (found["where"], int(found["line"]))
            location = self.locations.setdefault(where, len(self.locations))
            if location == len(self.result.locations):
                self.result.locations.append(where)
        kind = found["kind"]
        inner = self.position < len(self.lines) and self.lines[self.position][1].strip().startswith("block(")
        make: Callable[..., Node] = BlockNode if inner else Node
        attributes = self._attributes(kind, rest.strip())
        node = make(kind, self._inputs(inputs), attributes, [each for _, each in outputs], location)
        node.insert_before(block.returns)
        for (name, _), value in zip(outputs, node.outputs, strict=True):
            if name in self.values:
                raise self._error(f"{name} is defined twice")
            self.values[name] = value
        if inner:
            for name, each in self._declarations(self._next()[6:-2]):
                self.values[name] = node.blocks[0].add_input(each)
            self._block(node.blocks[0])

    def _inputs(self, text: str) -> list[Value | None]:
        values: list[Value | None] = []
        for name in filter(None, map(str.strip, text.split(","))):
            if name != "None" and name not in self.values:
                raise self._error(f"{name} is not defined here")
            values.append(None if name == "None" else self.values[name])
        return values

    def _declarations(self, text: str) -> Iterator[tuple[str, Type]]:
        for part in re.split(r", (?=%)", text.strip()) if text.strip() else ():
            name, _, kind = part.partition(" : ")
            if not name.startswith("%") or not kind:
                raise self._error(f"{part!r} is not 'name : type'")
            yield name, self._type(kind)

    def _type(self, text: str) -> Type:
        text = text.strip()
        simple: dict[str, Type] = {"none": NONE, "object": OBJECT}
        simple |= {kind: ScalarType(kind) for kind in ("bool", "int", "float", "complex")}
        if text in simple:
            return simple[text]
        if text.startswith("list(") and text.endswith(")"):
            return ListType(self._type(text[5:-1]))
        if text.startswith("tuple(") and text.endswith(")"):
            return TupleType(tuple([self._type(part) for part in split_types(text[6:-1])]))
        found = re.fullmatch(r"(\w+)\[([\d, ]*)\]( grad)?", text)
        if found is None:
            raise self._error(f"{text!r} is not a type")
        shape = tuple([int(part) for part in found[2].split(",") if part.strip()])
        try:
            return TensorType.of(np.dtype(found[1]), shape, found[3] is not None)
        except TypeError:
            raise self._error(f"{text!r} is not a type: there is no dtype {found[1]!r}") from None

    def _attributes(self, kind: str, text: str) -> Any:
        try:
            call = ast.parse(f"_({text})", mode="eval").body
            assert isinstance(call, ast.Call)
            values = [self._literal(node) for node in call.args]
            values += [self._literal(keyword.value) for keyword in call.keywords]
        except (SyntaxError, ValueError, TypeError, LookupError, AssertionError) as error:
            raise self._error(f"the attributes {text!r} cannot be read: {error}") from None
        if len(values) == 1 and type(values[0]) is Window:
            return values[0]
        return None if not values and operator_of(kind) is None else tuple(values)

    def _literal(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Tuple):
            return tuple([self._literal(item) for item in node.elts])
        if isinstance(node, ast.List):
            return [self._literal(item) for item in node.elts]
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -self._literal(node.operand)
        if isinstance(node, ast.BinOp):  # a complex number
            left, right = self._literal(node.left), self._literal(node.right)
            return left + right if isinstance(node.op, ast.Add) else left - right
        if isinstance(node, ast.Name):
            return {"inf": np.inf, "nan": np.nan, "infj": complex(0, np.inf), "nanj": complex(0, np.nan),
                    "Ellipsis": Ellipsis}[node.id]  # fmt: skip
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return CALLS[node.func.id](self, *[self._literal(item) for item in node.args])
        raise ValueError(ast.unparse(node))


def _reduced(graph: Graph) -> tuple[Any, ...]:
    """Reduce a graph for `pickle` and `copy` to text, since following links from node to node would recurse too deeply.
    """
    objects: list[Any] = []
    return _restored, (text_of(graph, objects=objects), objects, graph.signature)


def _restored(text: str, objects: list[Any], signature: Any) -> Graph:
    graph = parse(text, objects)
    graph.signature = signature
    return graph


Graph.__reduce__ = _reduced  # type: ignore[method-assign,assignment]

CALLS: Final[dict[str, Callable[..., Any]]] = {
    "window": lambda self, sizes, strides, offset, dtype=None: Window(tuple(sizes), tuple(strides), offset, dtype),
    "slice": lambda self, start, stop, step: slice(start, stop, step),
    "array": lambda self, items, dtype, shape=None: Frozen(
        np.array(items, dtype) if shape is None else np.array(items, dtype).reshape(shape)
    ),
    "input": lambda self, number: IndexInput(number),
    "complex": lambda self, real, imag: complex(real, imag),
    "longdouble": lambda self, text: np.longdouble(text),
    "clongdouble": lambda self, real, imag: clongdouble(real, imag),
    "dtype": lambda self, name: np.dtype(name),
    "scalar": lambda self, value, dtype: np.dtype(dtype).type(value),
    "object": lambda self, number: self.objects[number],
}


def clongdouble(real: str, imag: str) -> Any:
    """Return a complex number from two long doubles."""
    number = np.zeros((), np.clongdouble)
    number.real, number.imag = np.longdouble(real), np.longdouble(imag)
    return number[()]


def split_types(text: str) -> list[str]:
    """Return the element types in the text of a tuple type."""
    parts, depth, start = [], 0, 0
    for i, letter in enumerate(text):
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [part for part in (*parts, text[start:]) if part.strip()]
