"""From a declaration to code: the function, its in-place variant and the node class of an operator, as Python source.

What is generated is flat and specialised: no loops over arguments, no dispatch on what the declaration settles. The
source is registered with `linecache`, so that tracebacks and debuggers show it.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Final

import numpy as np

from ...tensor.modes import GRAD, current_mode
from ...tensor.node import MANY, ONE, Edge, Node, new, next_sequence_nr
from ...tensor.storage import RELEASED, SavedTensor, prepare_write, save
from ...tensor.tensor import Tensor, tensor_like
from ...views.conform import conform
from ...views.copy_slices import rebase_history
from ...views.meta import check_write
from .declaration import Argument, Formula, Operator
from .operands import as_operand, fresh, operands
from .special import run_special, run_special_inplace

__all__ = ["ARRAY_FUNCTIONS", "TENSOR_FUNCTIONS", "formula_function", "generate"]

# What a name that a formula calls means: on arrays in the first-order backward pass, on tensors in a recorded one.
ARRAY_FUNCTIONS: Final[dict[str, Any]] = {
    "Edge": Edge,
    "GRAD": GRAD,
    "RELEASED": RELEASED,
    "SavedTensor": SavedTensor,
    "Tensor": Tensor,
    "as_operand": as_operand,
    "asarray": np.asarray,
    "check_write": check_write,
    "conform": conform,
    "copyto": np.copyto,
    "current_mode": current_mode,
    "fresh": fresh,
    "ndarray": np.ndarray,
    "new": new,
    "next_sequence_nr": next_sequence_nr,
    "operands": operands,
    "prepare_write": prepare_write,
    "rebase_history": rebase_history,
    "run_special": run_special,
    "run_special_inplace": run_special_inplace,
    "save": save,
    "tensor_like": tensor_like,
}
TENSOR_FUNCTIONS: Final = SimpleNamespace()
ARRAY_FUNCTIONS["ops"] = TENSOR_FUNCTIONS


def formula_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function that works on arrays and on tensors alike known to formulas by its name."""
    ARRAY_FUNCTIONS[function.__name__] = function
    setattr(TENSOR_FUNCTIONS, function.__name__, function)
    return function


def generate(operator: Operator) -> None:
    """Write and compile the code of `operator`, and fill in its function, in-place function and node class."""
    name = operator.name
    environment: dict[str, Any] = ARRAY_FUNCTIONS
    forward_name = f"{name}_forward"
    environment[forward_name] = operator.forward
    environment[f"{name}_operator"] = operator
    if operator.formulas:
        class_name = backward_name(name)
        operator.sources["node"] = NodeWriter(operator).source()
        scope = compile_source(operator.sources["node"], f"{name} node", environment, {"Node": Node})
        operator.node_class = environment[class_name] = scope[class_name]
    operator.sources["function"] = FunctionWriter(operator).function()
    operator.function = compile_source(operator.sources["function"], name, environment)[name]
    operator.function.__doc__ = operator.doc
    if operator.has_inplace:
        operator.sources["inplace"] = FunctionWriter(operator).inplace()
        operator.inplace_function = compile_source(operator.sources["inplace"], f"{name}_", environment)[f"{name}_"]
        operator.inplace_function.__doc__ = f"In place: {operator.doc}"
    operator.compile_plain = lambda: compile_plain(operator)
    setattr(TENSOR_FUNCTIONS, name, operator.function)
    environment[name] = operator.forward


def compile_plain(operator: Operator) -> tuple[Any, Any]:
    """The function of an operator and its in-place variant, written without a look at what the mode asks for."""
    name = operator.name
    writer = FunctionWriter(operator, plain=True)
    function = compile_source(writer.function(), f"{name}, plain", ARRAY_FUNCTIONS)[name]
    if not operator.has_inplace:
        return function, None
    return function, compile_source(writer.inplace(), f"{name}_, plain", ARRAY_FUNCTIONS)[f"{name}_"]


def backward_name(name: str) -> str:
    """The name of an operator's node class: `log_softmax` has `LogSoftmaxBackward`."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_")) + "Backward"


def compile_source(
    source: str, what: str, environment: dict[str, Any], extra: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Run generated source, with the names of `environment` as its globals, and return what it defines."""
    filename = f"<viewgrad generated: {what}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    scope: dict[str, Any] = dict(extra or {})
    environment.setdefault("__name__", "viewgrad.autograd.derivatives.generated")
    exec(compile(source, filename, "exec"), environment, scope)
    return scope


class NodeWriter:
    """Writes the node class of an operator."""

    def __init__(self, operator: Operator) -> None:
        self.operator = operator
        self.arguments = operator.signature.tensors
        self.listed = next((argument for argument in self.arguments if argument.kind == "tensors"), None)
        self.several = grads_are_several(operator)
        saved: dict[str, None] = {}
        for formula in operator.formulas:
            for read in (*formula.reads, *formula.results):
                saved[read] = None
        self.saved = tuple(saved)
        kept: dict[str, None] = {}
        for formula in operator.formulas:
            for entry in (*(entry[0] for entry in formula.metadata), *formula.plain):
                kept[entry] = None
        self.kept = tuple(kept)
        self.one = len(self.arguments) == 1 and self.listed is None

    def source(self) -> str:
        operator = self.operator
        slots = [f"saved_{name}" for name in (*self.saved, *self.kept)]
        if needs_likes(operator):
            slots.append("likes")
        if self.several:
            slots.append("output_likes")
        lines = [
            f"class {backward_name(operator.name)}(Node):",
            f"    __slots__ = {tuple(slots)!r}",
            f"    kind = {ONE if self.one else MANY}",
            f"    outputs = {len(operator.signature.outputs) if self.several else 1}",
            f"    saved_names = {self.saved!r}",
            "",
        ]
        lines += self.apply("apply", recorded=False, release=False)
        if self.saved:
            lines += self.apply("consume", recorded=False, release=True)
            lines += ["    def release(node):", *self.releases(), ""]
        else:
            lines += ["    consume = apply", ""]
        lines += self.apply("apply_recorded", recorded=True, release=False)
        return "\n".join(lines) + "\n"

    def releases(self) -> list[str]:
        return [f"        node.saved_{name} = RELEASED" for name in self.saved]

    def apply(self, name: str, *, recorded: bool, release: bool) -> list[str]:
        operator = self.operator
        grad = "grads" if self.several else "grad"
        lines = [f"    def {name}(node, {grad}, edges):"]
        if self.several:
            lines.append(f"        grads = ops.materialized(grads, node.output_likes, {recorded})")
        if self.listed is not None:
            return lines + self._apply_to_list(recorded, release)
        order = {argument.name: i for i, argument in enumerate(self.arguments)}
        one = self.one
        loaded: set[str] = set()
        if not one:
            targets = ", ".join(f"e{i}" for i in range(len(self.arguments)))
            lines.append(f"        {targets}{',' if len(self.arguments) == 1 else ''} = edges")
            lines.append("        " + " = ".join(f"g{i}" for i in range(len(self.arguments))) + " = None")
        for formula in operator.formulas:
            indent = "        "
            if not one:
                needed = " or ".join(f"e{order[name]} is not None" for name in formula.inputs)
                lines.append(f"        if {needed}:")
                indent += "    "
                loaded = set()
            for read in (*formula.reads, *formula.results, *(entry[0] for entry in formula.metadata), *formula.plain):
                if read not in loaded:
                    loaded.add(read)
                    lines.append(f"{indent}{read} = {self._load(read, recorded, order)}")
            targets = ", ".join(f"g{order[name]}" for name in formula.inputs)
            lines.append(f"{indent}{targets} = {formula_text(formula.tree, recorded)}")
        if release:
            lines += self.releases()
        if needs_likes(operator):
            lines.append("        if node.likes is not None:")
            for i in range(len(self.arguments)):
                lines.append(f"            g{i} = conform(g{i}, node.likes[{i}])")
        results = ", ".join(f"g{i}" for i in range(len(self.arguments)))
        lines += [f"        return {results}", ""]
        return lines

    def _load(self, name: str, recorded: bool, order: dict[str, int]) -> str:
        if name not in self.saved:
            return f"node.saved_{name}"
        if not recorded:
            argument = next((a for a in self.arguments if a.name == name), None)
            if argument is not None and argument.optional:
                return f"None if node.saved_{name} is None else node.saved_{name}.array"
            return f"node.saved_{name}.array"
        if name in order:
            edge = f"node.edges[{order[name]}]"
            if next(a for a in self.arguments if a.name == name).optional:
                return f"None if node.saved_{name} is None else tensor_like(node.saved_{name}, {edge})"
            return f"tensor_like(node.saved_{name}, {edge})"
        if name in self.operator.nondifferentiable_outputs:
            return f"tensor_like(node.saved_{name}, None)"
        number = self.operator.signature.outputs.index(name)
        return f"tensor_like(node.saved_{name}, {f'Edge(node, {number})' if self.several else 'node'})"

    def _apply_to_list(self, recorded: bool, release: bool) -> list[str]:
        (formula,) = self.operator.formulas
        assert self.listed is not None
        listed = self.listed.name
        lines = []
        for read in (*formula.reads, *formula.results, *(entry[0] for entry in formula.metadata), *formula.plain):
            if read == listed:
                value = (
                    f"[tensor_like(saved, edge) for saved, edge in zip(node.saved_{read}, node.edges)]"
                    if recorded
                    else f"[saved.array for saved in node.saved_{read}]"
                )
            else:
                value = self._load(read, recorded, {})
            lines.append(f"        {read} = {value}")
        lines.append(f"        grads_of_list = {formula_text(formula.tree, recorded)}")
        if release:
            lines += [
                f"        node.saved_{name} = [RELEASED] * len(node.edges)" if name == listed else line
                for name, line in zip(self.saved, self.releases(), strict=True)
            ]
        lines += [
            "        return tuple(conform(g, like) for g, like in zip(grads_of_list, node.likes))",
            "",
        ]
        return lines


def grads_are_several(operator: Operator) -> bool:
    """Whether a gradient may arrive at more than one output."""
    return len(operator.signature.outputs) - len(operator.nondifferentiable_outputs) > 1


def needs_likes(operator: Operator) -> bool:
    """Whether an input may differ from its gradient's formula in shape or dtype, by broadcasting or promotion."""
    tensors = operator.signature.tensors
    if any(argument.kind == "tensors" for argument in tensors):
        return True
    return len(tensors) > 1 if operator.elementwise else len(operator.differentiable) > 1


def formula_text(tree: ast.expr, recorded: bool) -> str:
    """A formula as source, for arrays or for tensors."""
    return ast.unparse((_ForTensors if recorded else _ForArrays)().visit(ast.parse(ast.unparse(tree), mode="eval").body))


class _ForTensors(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id not in BUILTINS:
            node.func = ast.Attribute(ast.Name("ops", ast.Load()), node.func.id, ast.Load())
        return node


class _ForArrays(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "conj":
            # ndarray.conj returns a real array itself, where numpy.conj would copy it.
            return ast.Call(ast.Attribute(node.args[0], "conj", ast.Load()), [], [])
        return node


BUILTINS: Final = frozenset({"float", "int", "isinstance", "len", "list", "range", "tuple", "zip"})


class FunctionWriter:
    """Writes the function of an operator and its in-place variant."""

    def __init__(self, operator: Operator, *, plain: bool = False) -> None:
        self.operator = operator
        self.plain = plain
        self.signature = operator.signature
        self.tensors = operator.signature.tensors
        self.listed = next((argument for argument in self.tensors if argument.kind == "tensors"), None)
        self.number = {argument.name: i for i, argument in enumerate(self.tensors)}

    def function(self) -> str:
        if self.listed is not None:
            return self._function_of_list(self.listed)
        operator = self.operator
        name = operator.name
        lines = [f"def {name}({self.signature.parameters()}):"]
        lines += self._convert(self.tensors)
        lines += self._special("run_special")
        lines += self._arrays()
        outputs = self.signature.outputs
        call = f"{name}_forward({self.signature.call(self._array_name)})"
        if len(outputs) == 1:
            lines.append(f"    r0 = {call}")
        else:
            lines.append(f"    {', '.join(f'r{i}' for i in range(len(outputs)))} = {call}")
        ufunc = isinstance(operator.forward, np.ufunc)
        for i in range(len(outputs)):
            if ufunc:
                lines += [f"    if type(r{i}) is not ndarray:", f"        r{i} = asarray(r{i})"]
            else:
                arrays = ", ".join(self._array_name(argument.name) for argument in self.tensors)
                lines += [
                    f"    if type(r{i}) is not ndarray or r{i}.base is not None:",
                    f"        r{i} = fresh(r{i}, ({arrays},))",
                ]
            lines += [
                f"    out{i} = new(Tensor)",
                f"    out{i}._array = r{i}",
                f"    out{i}._view = None",
                f"    out{i}._storage = None",
                f"    out{i}._saved = None",
            ]
        if operator.formulas:
            lines += self._record()
        else:
            lines += [f"    out{i}._edge = None" for i in range(len(outputs))]
        lines.append(f"    return {', '.join(f'out{i}' for i in range(len(outputs)))}")
        return "\n".join(lines) + "\n"

    def inplace(self) -> str:
        operator = self.operator
        name = operator.name
        target = self.tensors[0].name
        lines = [f"def {name}_({self.signature.parameters()}):"]
        if len(self.tensors) > 1:
            lines += self._convert(self.tensors)
        lines += self._special("run_special_inplace")
        lines += self._arrays()
        if operator.formulas:
            lines += self._edges()
            some = " or ".join(f"e{i} is not None" for i in self._differentiable())
            lines += [
                f"    recorded = mode_bits and ({some}) and a0.dtype.kind in 'fc'",
                f"    if recorded or {target}._view is not None or a0.base is not None:",
                f"        check_write({target}, recorded)",
                "    if recorded:",
                f"        node = new({backward_name(name)})",
                *self._fill_node("        "),
                *self._save_inputs("        "),
                *self._likes("        ", inplace=True),
            ]
        else:
            lines += [f"    if {target}._view is not None or a0.base is not None:", f"        check_write({target}, False)"]
        lines.append(f"    prepare_write({target}, {name + '_'!r})")
        arguments = self.signature.call(self._array_name)
        if isinstance(operator.forward, np.ufunc):
            lines.append(f"    {name}_forward({arguments}, a0)")
        else:
            lines.append(f"    copyto(a0, {name}_forward({arguments}), 'same_kind')")
        if operator.formulas:
            results = sorted({result for formula in operator.formulas for result in formula.results})
            lines.append("    if recorded:")
            for result in results:
                lines.append(f"        node.saved_{result} = save({target})")
            lines.append(f"        rebase_history({target}, node)")
        lines.append(f"    return {target}")
        return "\n".join(lines) + "\n"

    # -- the parts -----------------------------------------------------------------------------------------------------

    def _convert(self, arguments: tuple[Argument, ...]) -> list[str]:
        names = [argument.name for argument in arguments if not argument.optional]
        lines = []
        if self.operator.elementwise and len(names) > 1:
            test = " or ".join(f"type({name}) is not Tensor" for name in names)
            lines += [f"    if {test}:", f"        {', '.join(names)} = operands({', '.join(names)})"]
        else:
            for name in names:
                lines += [f"    if type({name}) is not Tensor:", f"        {name} = as_operand({name})"]
        for argument in arguments:
            if argument.optional:
                name = argument.name
                lines += [
                    f"    if {name} is not None and type({name}) is not Tensor:",
                    f"        {name} = as_operand({name})",
                ]
        return lines

    def _special(self, run: str) -> list[str]:
        if self.plain:
            return ["    mode_bits = current_mode() & GRAD"]
        name = self.operator.name
        positional = ", ".join(a.name for a in self.signature.arguments if not a.keyword_only)
        keywords = ", ".join(f"{a.name!r}: {a.name}" for a in self.signature.arguments if a.keyword_only)
        return [
            "    mode_bits = current_mode()",
            "    if mode_bits > GRAD:",
            f"        return {run}({name}_operator, ({positional},), {{{keywords}}}, mode_bits)",
        ]

    def _arrays(self) -> list[str]:
        lines = []
        for i, argument in enumerate(self.tensors):
            value = f"{argument.name}._array"
            if argument.optional:
                value = f"None if {argument.name} is None else {value}"
            lines.append(f"    a{i} = {value}")
        return lines

    def _array_name(self, name: str) -> str:
        return f"a{self.number[name]}" if name in self.number else name

    def _differentiable(self) -> list[int]:
        return [self.number[name] for name in self.operator.differentiable]

    def _edges(self) -> list[str]:
        lines = []
        for i in self._differentiable():
            argument = self.tensors[i]
            name = argument.name
            if argument.optional:
                lines += [
                    f"    e{i} = None if {name} is None else {name}._edge if {name}._view is None "
                    f"else {name}._view.edge_of({name})"
                ]
            else:
                lines.append(f"    e{i} = {name}._edge if {name}._view is None else {name}._view.edge_of({name})")
        return lines

    def _fill_node(self, indent: str) -> list[str]:
        differentiable = set(self._differentiable())
        edges = ", ".join(f"e{i}" if i in differentiable else "None" for i in range(len(self.tensors)))
        return [
            f"{indent}node.edges = ({edges},)",
            f"{indent}node.hooks = None",
            f"{indent}node.sequence_nr = next_sequence_nr()",
        ]

    def _save_inputs(self, indent: str) -> list[str]:
        lines: list[str] = []
        for name in dict.fromkeys(read for formula in self.operator.formulas for read in formula.reads):
            argument = next(a for a in self.tensors if a.name == name)
            body = [
                f"node.saved_{name} = {name}._saved",
                f"if node.saved_{name} is None:",
                f"    node.saved_{name} = save({name})",
            ]
            if argument.optional:
                body = [f"node.saved_{name} = None if {name} is None else save({name})"]
            lines += self._when_needed(indent, [f for f in self.operator.formulas if name in f.reads], body)
        kept = dict.fromkeys(entry for formula in self.operator.formulas for entry in formula.metadata)
        outputs = {output: i for i, output in enumerate(self.signature.outputs)}
        for slot, name, attribute in kept:
            array = f"r{outputs[name]}" if name in outputs and name not in self.number else self._array_name(name)
            value = f"{array}.{attribute}"
            if name in self.number and self.tensors[self.number[name]].optional:
                value = f"None if {name} is None else {value}"
            lines.append(f"{indent}node.saved_{slot} = {value}")
        for name in dict.fromkeys(read for formula in self.operator.formulas for read in formula.plain):
            lines.append(f"{indent}node.saved_{name} = {name}")
        return lines

    def _when_needed(self, indent: str, formulas: list[Formula], body: list[str]) -> list[str]:
        numbers = sorted({self.number[name] for formula in formulas for name in formula.inputs})
        if set(self._differentiable()) <= set(numbers):
            return [indent + line for line in body]
        test = " or ".join(f"e{i} is not None" for i in numbers)
        return [f"{indent}if {test}:", *(f"{indent}    {line}" for line in body)]

    def _likes(self, indent: str, *, inplace: bool = False) -> list[str]:
        if not needs_likes(self.operator):
            return []
        arrays = [f"a{i}" for i in range(len(self.tensors))]
        result = "a0" if inplace else "r0"
        differentiable = set(self._differentiable())
        tests = []
        if len(arrays) == 2 and not inplace and differentiable == {0, 1} and self.operator.elementwise:
            same = "a0.shape == a1.shape and a0.dtype is a1.dtype"
            return [
                f"{indent}if {same} if e0 is not None and e1 is not None else "
                f"r0.shape == (a0 if e1 is None else a1).shape and r0.dtype is (a0 if e1 is None else a1).dtype:",
                f"{indent}    node.likes = None",
                f"{indent}else:",
                f"{indent}    node.likes = ((a0.shape, a0.dtype), (a1.shape, a1.dtype))",
            ]
        for i, array in enumerate(arrays):
            if i in differentiable and not (inplace and i == 0):
                some = f"{array} is None or " if self.tensors[i].optional else ""
                tests.append(f"({some}{result}.shape == {array}.shape and {result}.dtype is {array}.dtype)")
        likes = ", ".join(
            f"None if {array} is None else ({array}.shape, {array}.dtype)"
            if self.tensors[i].optional
            else f"({array}.shape, {array}.dtype)"
            for i, array in enumerate(arrays)
        )
        if not self.operator.elementwise:
            return [f"{indent}node.likes = ({likes},)"]
        if not tests:
            return [f"{indent}node.likes = None"]
        return [
            f"{indent}if {' and '.join(tests)}:",
            f"{indent}    node.likes = None",
            f"{indent}else:",
            f"{indent}    node.likes = ({likes},)",
        ]

    def _record(self) -> list[str]:
        operator = self.operator
        outputs = self.signature.outputs
        some = " or ".join(f"e{i} is not None" for i in self._differentiable())
        several = grads_are_several(operator)
        lines = self._edges()
        lines += [
            f"    if mode_bits and ({some}):",
            f"        node = new({backward_name(operator.name)})",
            *self._fill_node("        "),
            *self._save_inputs("        "),
            *self._likes("        "),
        ]
        lines += self._save_results()
        if several:
            likes = ", ".join(f"(r{i}.shape, r{i}.dtype)" for i in range(len(outputs)))
            lines.append(f"        node.output_likes = ({likes},)")
        for i, output in enumerate(outputs):
            edge = "None" if output in operator.nondifferentiable_outputs else f"Edge(node, {i})" if several else "node"
            lines.append(f"        out{i}._edge = {edge}")
        lines.append("    else:")
        lines += [f"        out{i}._edge = None" for i in range(len(outputs))]
        return lines

    def _save_results(self) -> list[str]:
        lines = []
        for i, output in enumerate(self.signature.outputs):
            readers = [formula for formula in self.operator.formulas if output in formula.results]
            if readers:
                body = [
                    "saved = new(SavedTensor)",
                    f"saved.array = r{i}",
                    f"node.saved_{output} = out{i}._saved = saved",
                ]
                lines += self._when_needed("        ", readers, body)
        return lines

    def _function_of_list(self, listed: Argument) -> str:
        operator = self.operator
        name = operator.name
        lines = [
            f"def {name}({self.signature.parameters()}):",
            f"    {listed.name} = [as_operand(tensor) for tensor in {listed.name}]",
            *self._special("run_special"),
            f"    arrays = [tensor._array for tensor in {listed.name}]",
            f"    r0 = {name}_forward({self.signature.call(lambda n: 'arrays' if n == listed.name else n)})",
            "    if type(r0) is not ndarray or r0.base is not None:",
            "        r0 = fresh(r0, arrays)",
            "    out0 = new(Tensor)",
            "    out0._array = r0",
            "    out0._view = out0._storage = out0._saved = out0._edge = None",
        ]
        if operator.formulas:
            (formula,) = operator.formulas
            lines += [
                "    if mode_bits:",
                "        edges = tuple([tensor._edge if tensor._view is None else tensor._view.edge_of(tensor)",
                f"                       for tensor in {listed.name}])",
                "        if edges.count(None) != len(edges):",
                f"            node = new({backward_name(name)})",
                "            node.edges = edges",
                "            node.hooks = None",
                "            node.sequence_nr = next_sequence_nr()",
                "            node.likes = [(array.shape, array.dtype) for array in arrays]",
            ]
            for read in formula.reads:
                lines.append(f"            node.saved_{read} = [save(tensor) for tensor in {read}]")
            for slot, owner, attribute in formula.metadata:
                value = f"r0.{attribute}" if owner != listed.name else f"[array.{attribute[:-1]} for array in arrays]"
                lines.append(f"            node.saved_{slot} = {value}")
            for plain in formula.plain:
                lines.append(f"            node.saved_{plain} = {plain}")
            for result in formula.results:
                lines += [
                    "            saved = new(SavedTensor)",
                    "            saved.array = r0",
                    f"            node.saved_{result} = out0._saved = saved",
                ]
            lines.append("            out0._edge = node")
        lines.append("    return out0")
        return "\n".join(lines) + "\n"
