"""Code generation for Python: single numbers as floats in lists, and arrays by NumPy calls."""

from __future__ import annotations

import ast
import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from ..access_analysis import AccessAnalysis
from ..arena import Arena
from ..build_ir import out_sizes
from ..element_types import kind_of
from ..index_expr import ONE, Integer, constant
from ..loop_ir import (
    Access,
    Add,
    Block,
    Call,
    Compute,
    Number,
    Operand,
    Pop,
    Positions,
    Program,
    Push,
    Read,
    Step,
    Table,
    Value,
    Write,
)
from .array_runtime import PREFIX
from .codegen import EXTREMA, SCRATCH, CodeWriter, LoopNest, flat, is_one_row, parenthesised, plus, product_of

# How an expression is computed in the memory of one of its operands, and which operands can be overwritten.
IN_PLACE: Final[dict[str, tuple[str, tuple[int, ...]]]] = {
    "{0} + {1}": ("+=", (0, 1)), "{0} * {1}": ("*=", (0, 1)), "{0} - {1}": ("-=", (0,)), "{0} / {1}": ("/=", (0,)),
    "-{0}": ("np_negative", (0,)), "exp({0})": ("np_exp", (0,)), "log({0})": ("np_log", (0,)),
    "tanh({0})": ("np_tanh", (0,)),
}
# Functions that compute an expression into a buffer.
INTO: Final[dict[str, str]] = {
    "{0} + {1}": "np_add", "{0} * {1}": "np_multiply", "{0} - {1}": "np_subtract", "{0} / {1}": "np_divide",
    "-{0}": "np_negative", "exp({0})": "np_exp", "log({0})": "np_log", "tanh({0})": "np_tanh", "sqrt({0})": "np_sqrt",
}
WORTH_A_BUFFER: Final = 512  # elements; allocating less memory than this costs nothing


class NumpyWriter(CodeWriter):
    """Generates NumPy calls for steps that have dimensions."""

    in_loop = False  # whether the current block is inside a loop
    careful = False  # whether division by zero follows NumPy

    def __init__(self, program: Program, analysis: AccessAnalysis, arenas: Mapping[str, Arena], down: bool) -> None:
        super().__init__(program, analysis, arenas, down)
        self.arrays = array_bases(program)
        self.quiet = down  # formulas of derivatives do not warn about infinite values either

    def _expression(self, step: Compute, at: dict[int, str]) -> str:
        if self.careful:
            step = attrs.evolve(step, expression=dividing(step.expression))
        return super()._expression(step, at)

    def _statement(self, block: Block, step: Step, at: dict[int, str]) -> str:
        if isinstance(step, Compute) and step.out and not step.sizes:
            return f"{step.name} = broadcast_to({self._expression(step, at)}, {_tuple(out_sizes(step))})"
        return super()._statement(block, step, at)

    def _called(self, step: Call) -> list[str]:
        """Return the lines of a call without a kernel."""
        name = self._function(step, self._callable(step))
        arguments = [
            value.step.name if isinstance(value, Operand) else super(NumpyWriter, self)._value(value, {})
            for value in step.operands
        ]
        return [f"{step.name} = {name}({', '.join(arguments)})"]

    def _dimensional(self, block: Block, step: Step, indent: str) -> bool:
        """Generate a step that has dimensions."""
        self.in_loop = len(indent) > 4
        self.lines += [indent + line for line in self._lines_of(block, step)]
        return True

    def _loops(self, block: Block, nest: LoopNest, indent: str) -> None:
        raise AssertionError("each step that has dimensions is a call of NumPy")

    def _lines_of(self, block: Block, step: Step) -> list[str]:
        if type(step) is Read:
            text = self._window(step)
            picks = step.positions is not None or any(move.value.labels for move in step.moves)
            if not picks and not self._is_inlined(block, step):
                text += ".copy()"
            return [f"{step.name} = {text}"]
        if isinstance(step, Write):
            return self._written_window(step)
        if isinstance(step, Compute):
            return (
                self._over_an_operand(block, step) or self._into_a_buffer(step)
                or [f"{step.name} = {self._computed(step)}"]
            )
        if isinstance(step, (Push, Pop)) and product_of(step.sizes).value:
            self._use_tape(step)
            shape = ", ".join(map(str, step.sizes))
            entry = f"{self.fixed.setdefault(f'{step.tape}.reshape(-1, {shape})', f'f{step.tape}')}[{block.name}]"
            name = self._array_name(step.value.step) if isinstance(step, Push) else ""
            return [f"{entry} = {name}" if name else f"{step.name} = {entry}"]
        if isinstance(step, Push):
            start, stop = self._entry(block, step)
            flat = "" if len(step.sizes) == 1 else ".reshape(-1)"
            return [f"{step.tape}[{start}:{stop}] = {self._array_name(step.value.step)}{flat}"]
        assert isinstance(step, Pop)
        start, stop = self._entry(block, step)
        self._use_tape(step)
        shaped = "" if len(step.sizes) == 1 else f".reshape({_tuple(step.sizes)})"
        return [f"{step.name} = {step.tape}[{start}:{stop}]{shaped}"]

    def _over_an_operand(self, block: Block, step: Compute) -> list[str] | None:
        """Return the lines that compute a value in the memory of an operand that is no longer needed, or None.

        Allocating memory for large arrays costs more than the arithmetic.
        """
        identity = tuple(range(len(step.sizes)))
        if step.summed or step.out != identity or step.expression not in IN_PLACE:
            return None
        for position in IN_PLACE[step.expression][1]:
            value = step.operands[position]
            if not isinstance(value, Operand) or value.labels != identity:
                continue
            other = value.step
            if (
                type(other) is Compute and other.sizes == step.sizes and other.out == identity and other.sizes
                and self.owner.get(other) is block and self.users.get(other) == [step] and other.dtype == step.dtype
                and sum(1 for each in step.operands if isinstance(each, Operand) and each.step is other) == 1
            ):
                symbol = IN_PLACE[step.expression][0]
                if len(step.operands) == 1:
                    return [f"{step.name} = {symbol}({other.name}, {other.name})"]
                rest = self._aligned(step.operands[1 - position], len(step.sizes))
                return [f"{other.name} {symbol} {rest}", f"{step.name} = {other.name}"]
        return None

    def _into_a_buffer(self, step: Compute) -> list[str] | None:
        """Return the line that computes a value of a loop into memory that each iteration reuses, or None."""
        identity = tuple(range(len(step.sizes)))
        function = INTO.get(step.expression)
        sizes = [n.value or 0 for n in step.sizes]
        if function is None or step.out != identity or step.dtype != float:
            return None
        spans = any(isinstance(value, Operand) and value.labels == identity for value in step.operands)
        if not spans or None in [n.value for n in step.sizes] or math.prod(sizes) < WORTH_A_BUFFER:
            return None
        buffer = self._scratch(f"o{step.name}", math.prod(sizes), sizes)
        values = [self._aligned(value, len(step.sizes)) for value in step.operands]
        return [f"{step.name} = {function}({', '.join(values)}, {buffer})"]

    def _scratch(self, name: str, size: int, shape: Sequence[int] = ()) -> str:
        """Return the name of a buffer that is reused by each run of the source."""
        shaped = f".reshape({', '.join(map(str, shape))})" if len(shape) > 1 else ""
        start, self.scratch = self.scratch, self.scratch + size
        self.fixed[f"{SCRATCH}[{start}:{self.scratch}]{shaped}"] = name
        return name

    def _entry(self, block: Block, step: Push | Pop) -> tuple[str, str]:
        """Return the position on the tape of the value of the current execution."""
        self._use_tape(step)
        size = product_of(step.sizes)
        if size.value is None:
            return f"o{step.tape}", f"o{step.tape} + {parenthesised(size)}"
        return f"{block.name} * {size}", f"({block.name} + 1) * {size}"

    # -- windows -------------------------------------------------------------------------------------------------------

    def _window(self, step: Access) -> str:
        text = self._window_text(step)
        if not self.in_loop or step.is_picked:
            return text
        if any(n.value is None for n in (step.offset, *step.sizes, *step.strides)):
            return text
        return self.fixed.setdefault(text, f"f{len(self.fixed)}")

    def _window_text(self, step: Access) -> str:
        name = step.base.name
        if step.positions is not None:
            return f"{name}[{plus(step.offset)}{self._numbers(step.positions)}].reshape({_tuple(step.sizes)})"
        sizes = _tuple(step.sizes)
        if any(move.value.labels for move in step.moves):
            return f"{name}[{self._places_at(step)}]"
        if step.moves:
            return f"window({name}, {step.offset}{self._dynamic_offset(step, ())}, {sizes}, {_tuple(step.strides)})"
        shaped = "" if len(step.sizes) == 1 else f".reshape({sizes})"
        if step.strides[-1] == ONE and is_one_row(step.sizes, step.strides):
            return f"{name}[{step.offset}:{step.offset + product_of(step.sizes)}]{shaped}"
        dims = [(n, stride) for n, stride in zip(step.sizes, step.strides) if n.value != 1]
        if len(dims) == 1 and (dims[0][1].value or 0) > 0:
            size, stride = dims[0]
            by = "" if stride == ONE else f":{stride}"
            return f"{name}[{step.offset}:{step.offset + size * stride}{by}]{shaped}"
        return f"window({name}, {step.offset}, {sizes}, {_tuple(step.strides)})"

    def _places_at(self, step: Access) -> str:
        """Return the element numbers of windows that computed integers move, with a different offset for each element.
        """
        offset = str(step.offset)
        for move in step.moves:
            offset += f" + {self._aligned(move.value, len(step.sizes))}*{parenthesised(move.stride)}"
        return f"places_at({offset}, {_tuple(step.sizes)}, {_tuple(step.strides)})"

    def _numbers(self, positions: Positions) -> str:
        """Return the numbers of the elements selected by an index by arrays."""
        self.tables[positions.name] = positions.array
        if positions.count == positions.array.size:
            return positions.name
        return f"{positions.name}[{positions.start}:{positions.start + constant(positions.count)}]"

    def _written_window(self, step: Write) -> list[str]:
        value = self._aligned(step.value, len(step.sizes))
        if step.positions is not None:
            index = f"({plus(step.offset)}{self._numbers(step.positions)}).reshape({_tuple(step.sizes)})"
            if type(step) is Add:
                if step.positions.are_distinct:
                    return [f"{step.base.name}[{index}] += {value}"]
                return [f"add_at({step.base.name}, {index}, {value})"]
            return [f"{step.base.name}[{index}] = {value}"]
        if any(move.value.labels for move in step.moves):
            if type(step) is Add:
                return [f"add_at({step.base.name}, {self._places_at(step)}, {value})"]
            return [f"{step.base.name}[{self._places_at(step)}] = {value}"]
        if type(step) is not Add:
            return [f"{self._window(step)}[...] = {value}"]
        if not is_one_to_one(step):
            where = f"{step.offset}{self._dynamic_offset(step, ())}, {_tuple(step.sizes)}, {_tuple(step.strides)}"
            return [f"add_overlapping({step.base.name}, {where}, {value})"]
        return [f"w = {self._window(step)}", f"w += {value}"]

    def _accessed(self, step: Access, at: dict[int, str]) -> str:
        base = step.base
        if base.name in self.arrays and type(step) is Read and not self.is_variable(base):
            if step.positions is None:
                return f"{base.name}.item({flat((), (), step.offset)}{self._dynamic_offset(step, ())})"
        return super()._accessed(step, at)

    # -- values --------------------------------------------------------------------------------------------------------

    def _value(self, value: Value, at: dict[int, str]) -> str:
        if isinstance(value, Operand) and out_sizes(value.step):  # an array with one element in a 0-d step
            return f"{value.step.name}.item(0)"
        return super()._value(value, at)

    def _array_name(self, step: Step) -> str:
        return step.name

    def _aligned(self, value: Value, count: int) -> str:
        """Return a value whose dimensions are aligned with the labels of the step that uses it."""
        if isinstance(value, (Number, Table)):
            return super()._value(value, {})
        step = value.step
        dims = len(out_sizes(step))
        if not dims or value.labels == tuple(range(count)):
            return step.name
        text = step.name
        if dims == count and all(label in (-1, position) for position, label in enumerate(value.labels)):
            return text  # dimensions of length 1 are broadcast
        if -1 in value.labels:
            text += "[" + ", ".join("0" if label < 0 else ":" for label in value.labels) + "]"
        labels = [label for label in value.labels if label >= 0]
        if labels != sorted(labels):
            order = sorted(range(len(labels)), key=labels.__getitem__)
            text += f".transpose({order})"
            labels.sort()
        if not labels:
            return text
        index = [":" if label in labels else "None" for label in range(labels[0], count)]
        return text if set(index) == {":"} else f"{text}[{', '.join(index)}]"

    def _computed(self, step: Compute) -> str:
        count = len(step.sizes)
        if step.summed and step.expression == "{0} * {1}":
            text = self._product(step)
            if text is not None:
                return text
        values = [self._aligned(value, count) for value in step.operands]
        expression = vectorised(step.expression).format(*values)
        covered = {label for value in step.operands if isinstance(value, Operand) for label in value.labels}
        spans = covered >= set(range(count))
        if not spans:
            expression = f"broadcast_to({expression}, {_tuple(step.sizes)})"
            if not step.summed:
                expression += ".copy()"
        elif step.expression == "{0}" and not step.summed:
            expression += ".copy()"
        kept = [label for label in range(count) if label in step.out]
        if step.summed:
            function = step.operator if step.operator in EXTREMA else "add_reduce"
            axes = f"({', '.join(map(str, step.summed))},)"
            if len(step.out) == count and all(label in (-1, position) for position, label in enumerate(step.out)):
                return f"{function}({expression}, {axes}, None, None, True)"
            expression = f"{function}({expression}, {axes})"
            if not step.out:
                return kind_of(step.dtype).to_number.format(expression)
        out = [label for label in step.out if label >= 0]
        if out != kept:
            expression = f"({expression}).transpose({[kept.index(label) for label in out]})"
        if -1 in step.out:
            expression = f"({expression}).reshape({_tuple(out_sizes(step))})"
        return expression

    def _product(self, step: Compute) -> str | None:
        """Return a sum of products as a matrix product, or None if it is not one."""
        if len(step.summed) != 1 or -1 in step.out:
            return None
        (k,) = step.summed
        sides: list[tuple[str, list[int]]] = []
        for number, value in enumerate(step.operands):
            if not isinstance(value, Operand) or not 1 <= len(value.labels) <= 2 or k not in value.labels:
                return None
            labels = list(value.labels)
            name = value.step.name
            if -1 in labels or len(set(labels)) < len(labels):
                return None
            if labels[0 if number else -1] != k:
                name, labels = f"{name}.T", labels[::-1]
            sides.append((name, [label for label in labels if label != k]))
        (first, left), (second, right) = sides
        if set(left) & set(right):
            return None
        text = f"{first} @ {second}"
        if not step.out:
            return f"float({text})"
        if list(step.out) == left + right:
            return text
        return f"({text}).T" if list(step.out) == right + left else None


def array_bases(program: Program) -> set[str]:
    """Return the names of the bases that are arrays, since windows with dimensions are taken of them."""
    found = set()
    stack: list[Block] = [program.block]
    while stack:
        block = stack.pop()
        for item in block.items:
            if isinstance(item, Access):
                if item.sizes or item.positions is not None:
                    found.add(item.base.name)
            elif not isinstance(item, Step):
                stack += [item.body] if hasattr(item, "body") else item.bodies
    return found


@functools.cache
def vectorised(expression: str) -> str:
    """Translate an expression of numbers to an expression of arrays."""
    return _translated(expression, _Vectorised())


@functools.cache
def dividing(expression: str) -> str:
    """Translate an expression of numbers so that it divides as NumPy does."""
    return _translated(expression, _Dividing())


def _translated(expression: str, transformer: ast.NodeTransformer) -> str:
    marked = expression.replace("{", "_place_").replace("}", "_")
    text = ast.unparse(transformer.visit(ast.parse(marked, mode="eval").body))
    parts = text.split("_place_")
    return parts[0] + "".join("{" + part.replace("_", "}", 1) for part in parts[1:])


class _Dividing(ast.NodeTransformer):
    """Replaces divisions by function calls."""

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        """Translate an operation on two numbers."""
        left, right = self.visit(node.left), self.visit(node.right)
        if isinstance(node.op, ast.Div):
            return ast.Call(ast.Name("divide", ast.Load()), [left, right], [])
        return ast.BinOp(left, node.op, right)


class _Vectorised(ast.NodeTransformer):
    """Replaces Python's conditional expressions and functions of numbers by NumPy functions."""

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        """Translate a conditional expression."""
        return _call("where", [self.visit(node.test), self.visit(node.body), self.visit(node.orelse)])

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        """Translate `and` and `or`."""
        name = "logical_and" if isinstance(node.op, ast.And) else "logical_or"
        return _call(name, [self.visit(value) for value in node.values])

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        """Translate `not`."""
        operand = self.visit(node.operand)
        return _call("logical_not", [operand]) if isinstance(node.op, ast.Not) else ast.UnaryOp(node.op, operand)

    def visit_Call(self, node: ast.Call) -> Any:
        """Translate a call of a function of numbers."""
        assert isinstance(node.func, ast.Name)
        return _call(node.func.id, [self.visit(argument) for argument in node.args])


def _call(name: str, arguments: list[Any]) -> ast.Call:
    return ast.Call(ast.Name(PREFIX + name, ast.Load()), arguments, [])


def _tuple(integers: Sequence[Integer]) -> str:
    return f"({', '.join(map(str, integers))}{',' * (len(integers) == 1)})"


def is_one_to_one(step: Write) -> bool:
    """Return whether the elements of a window are distinct elements of memory."""
    dims = []
    for n, stride in zip(step.sizes, step.strides):
        if n.value is None or stride.value is None:
            return len(step.sizes) == 1 and stride.value not in (None, 0)
        if n.value > 1:
            dims.append((abs(stride.value), n.value))
    reach = 0
    for stride_value, extent in sorted(dims):
        if stride_value <= reach:
            return False
        reach += stride_value * (extent - 1)
    return True
