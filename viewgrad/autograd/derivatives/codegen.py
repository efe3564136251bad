"""From a declaration to code: the function, its in-place variant and the node class of an operator, as Python source.

What is generated is flat and specialised: no loops over arguments, no dispatch on what the declaration settles. The
source is registered with `linecache`, so that tracebacks and debuggers show it.
"""

from __future__ import annotations

import ast
import builtins
import itertools
import linecache
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Final, NoReturn

import numpy as np

from ...errors import GradientNotImplementedError
from ...tensor.creation import zeros
from ...tensor.modes import GRAD, current_mode
from ...tensor.node import MANY, ONE, Edge, Node, new, next_sequence_nr
from ...tensor.storage import RELEASED, SavedTensor, prepare_write, save
from ...tensor.tensor import Tensor, tensor_like
from ...views.conform import conform
from ...views.copy_slices import CopyBackwards, rebase_history
from ...views.meta import check_write
from .checker import BUILTINS
from .declaration import Argument, Formula, Operator, local_names
from .operands import (
    MUTABLE,
    as_operand,
    checked_gradient,
    fresh,
    geometry_of,
    operands,
    overwrite,
    refuse_tensor,
    settled,
)
from .special import run_special, run_special_inplace

__all__ = ["ARRAY_FUNCTIONS", "TENSOR_FUNCTIONS", "formula_function", "generate", "is_formula_function"]

# What generated code calls for its own purposes.
INTERNAL: Final[dict[str, Any]] = {
    "CopyBackwards": CopyBackwards,
    "Edge": Edge,
    "GRAD": GRAD,
    "MUTABLE": MUTABLE,
    "Node": Node,
    "RELEASED": RELEASED,
    "SavedTensor": SavedTensor,
    "Tensor": Tensor,
    "as_operand": as_operand,
    "asarray": np.asarray,
    "check_write": check_write,
    "checked_gradient": checked_gradient,
    "conform": conform,
    "current_mode": current_mode,
    "fresh": fresh,
    "geometry_of": geometry_of,
    "ndarray": np.ndarray,
    "new": new,
    "next_sequence_nr": next_sequence_nr,
    "operands": operands,
    "overwrite": overwrite,
    "prepare_write": prepare_write,
    "rebase_history": rebase_history,
    "refuse_tensor": refuse_tensor,
    "run_special": run_special,
    "run_special_inplace": run_special_inplace,
    "save": save,
    "settled": settled,
    "tensor_like": tensor_like,
}
# What a name that a formula calls means: on arrays in the first-order backward pass, on tensors in a recorded one. The
# former stand beside Python's own builtins, in the place where generated code looks for these.
ARRAY_FUNCTIONS: Final[dict[str, Any]] = dict(vars(builtins))
TENSOR_FUNCTIONS: Final = SimpleNamespace()

_generation: Final = itertools.count(2)


def formula_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function that works on arrays and on tensors alike known to formulas by its name.

    Arguments:
        function: written with methods, Python's operators and NumPy's functions, which mean the same for both.

    Returns:
        The function itself, so that this can be used as a decorator.

    Example:
        >>> import viewgrad as vg
        >>> @vg.autograd.formula_function
        ... def bump_slope(x):
        ...     return -2 * x / (1 + x * x) ** 2
        >>> bump = vg.autograd.define_op(
        ...     "bump(self)", forward=lambda x: 1 / (1 + x * x), derivatives={"self": "grad * bump_slope(self)"}
        ... )
        >>> x = vg.Tensor([1.0], requires_grad=True)
        >>> bump(x).backward()
        >>> x.grad
        Tensor([-0.5])
    """
    ARRAY_FUNCTIONS[function.__name__] = function
    setattr(TENSOR_FUNCTIONS, function.__name__, function)
    return function


def is_formula_function(name: str) -> bool:
    """Whether formulas may call `name`."""
    return hasattr(TENSOR_FUNCTIONS, name)


@formula_function
def not_implemented(what: str, reason: str) -> NoReturn:
    """Refuse to compute what a declaration says is not implemented."""
    raise GradientNotImplementedError(f"{what} is not implemented: {reason}")


ARRAY_FUNCTIONS["zeros_of"] = np.zeros
TENSOR_FUNCTIONS.zeros_of = lambda shape, dtype: zeros(shape, dtype=dtype)


def environment_of(operator: Operator) -> dict[str, Any]:
    """The globals of the generated code of one operator."""
    return {
        "__builtins__": ARRAY_FUNCTIONS,
        "__name__": "viewgrad.autograd.derivatives.generated",
        "ops": TENSOR_FUNCTIONS,
        **INTERNAL,
        operator.name: operator.forward,
        f"{operator.name}_forward": operator.forward,
        f"{operator.name}_operator": operator,
    }


def generate(operator: Operator, environment: dict[str, Any]) -> None:
    """Write and compile the code of `operator`, and fill in its function, in-place function and node class.

    Arguments:
        operator: its declaration.
        environment: the globals of what is generated.
    """
    name = operator.name
    label = name
    if operator.user_defined and f"<viewgrad generated: {name}>" in linecache.cache:
        label = f"{name}, definition {next(_generation)}"  # tracebacks into the earlier one go on showing its source
    if operator.formulas:
        class_name = backward_name(name)
        operator.sources["node"] = NodeWriter(operator, class_name).source()
        scope = compile_source(operator.sources["node"], f"{label}, node", environment)
        operator.node_class = environment[class_name] = scope[class_name]
    declared = operator.inplace_declaration
    if declared is not None:
        environment[f"{name}_inplace_forward"] = declared.forward
        if declared.formulas and declared.formulas is not operator.formulas:
            class_name = backward_name(f"{name}_in_place")
            operator.sources["inplace node"] = NodeWriter(declared, class_name).source()
            scope = compile_source(operator.sources["inplace node"], f"{label}_, node", environment)
            declared.node_class = environment[class_name] = scope[class_name]
        else:
            declared.node_class = operator.node_class
    operator.sources["function"] = FunctionWriter(operator).function()
    operator.function = compile_source(operator.sources["function"], label, environment)[name]
    operator.function.__doc__ = operator.doc
    if operator.has_inplace:
        written = operator.node_class if declared is None else declared.node_class
        if written is not None:
            environment[f"{written.__name__}InPlace"] = type(
                written.__name__, (written,), {"__slots__": (), "inplace": True, "__module__": written.__module__}
            )
        operator.sources["inplace"] = FunctionWriter(operator).inplace()
        operator.inplace_function = compile_source(operator.sources["inplace"], f"{label}_", environment)[f"{name}_"]
        operator.inplace_function.__doc__ = f"In place: {operator.doc}"
        environment[f"{name}_"] = operator.inplace_function
    operator.compile_plain = lambda: compile_plain(operator, label, environment)


def announce(operator: Operator) -> None:
    """Let formulas call `operator` by its name."""
    ARRAY_FUNCTIONS[operator.name] = operator.forward
    setattr(TENSOR_FUNCTIONS, operator.name, operator.function)


def compile_plain(operator: Operator, label: str, environment: dict[str, Any]) -> tuple[Any, Any]:
    """The function of an operator and its in-place variant, written without a look at what the mode asks for."""
    name = operator.name
    writer = FunctionWriter(operator, plain=True)
    function = compile_source(writer.function(), f"{label}, plain", environment)[name]
    if not operator.has_inplace:
        return function, None
    return function, compile_source(writer.inplace(), f"{label}_, plain", environment)[f"{name}_"]


def backward_name(name: str) -> str:
    """The name of an operator's node class: `log_softmax` has `LogSoftmaxBackward`."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_")) + "Backward"


def compile_source(source: str, what: str, environment: dict[str, Any]) -> dict[str, Any]:
    """Run generated source, with the names of `environment` as its globals, and return what it defines."""
    filename = f"<viewgrad generated: {what}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    scope: dict[str, Any] = {}
    exec(compile(source, filename, "exec"), environment, scope)
    return scope


class NodeWriter:
    """Writes the node class of an operator.

    Arguments:
        operator: its declaration.
        class_name: the name of the class.
    """

    def __init__(self, operator: Operator, class_name: str) -> None:
        self.operator = operator
        self.class_name = class_name
        self.arguments = operator.signature.tensors
        self.listed = next((argument for argument in self.arguments if argument.kind == "tensors"), None)
        self.several = grads_are_several(operator)
        self.saved = tuple(
            dict.fromkeys(read for formula in operator.formulas for read in (*formula.reads, *formula.results))
        )
        self.kept = tuple(dict.fromkeys(entry for formula in operator.formulas for entry in formula.kept))
        self.one = len(self.arguments) == 1 and self.listed is None

    def source(self) -> str:
        """The source of the class."""
        operator = self.operator
        slots = [f"saved_{name}" for name in (*self.saved, *self.kept)]
        if needs_likes(operator):
            slots.append("likes")
        if self.several:
            slots.append("output_likes")
        lines = [
            f"class {self.class_name}(Node):",
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
        """What lets go of the saved values."""
        listed = None if self.listed is None else self.listed.name
        return [
            f"        node.saved_{name} = {'[RELEASED] * len(node.edges)' if name == listed else 'RELEASED'}"
            for name in self.saved
        ]

    def apply(self, name: str, *, recorded: bool, release: bool) -> list[str]:
        """One of the functions that compute gradients."""
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
            for read in (*formula.reads, *formula.results, *formula.kept):
                if read not in loaded:
                    loaded.add(read)
                    lines.append(f"{indent}{read} = {self._load(read, recorded, order)}")
            targets = ", ".join(f"g{order[name]}" for name in formula.inputs)
            lines.append(f"{indent}{targets} = {self._formula(formula, recorded)}")
        if release:
            lines += self.releases()
        if operator.user_defined:
            for i, argument in enumerate(self.arguments):
                if argument.name in operator.differentiable:
                    checked = f"checked_gradient(g{i}, node.likes[{i}], {operator.name!r}, {argument.name!r})"
                    lines.append(f"        g{i} = {checked}")
        elif needs_likes(operator):
            lines.append("        if node.likes is not None:")
            for i in range(len(self.arguments)):
                lines.append(f"            g{i} = conform(g{i}, node.likes[{i}])")
        results = ", ".join(f"g{i}" for i in range(len(self.arguments)))
        lines += [f"        return {results}", ""]
        return lines

    def _formula(self, formula: Formula, recorded: bool) -> str:
        arguments = {argument.name for argument in self.operator.signature.arguments}
        return formula_text(formula.tree, recorded, arguments | local_names(formula.tree))

    def _load(self, name: str, recorded: bool, order: dict[str, int]) -> str:
        if name not in self.saved:
            return f"node.saved_{name}"
        if not recorded:
            if name in order and self.operator.signature.argument(name).optional:
                return f"None if node.saved_{name} is None else node.saved_{name}.array"
            return f"node.saved_{name}.array"
        if name in order:
            edge = f"node.edges[{order[name]}]"
            if self.operator.signature.argument(name).optional:
                return f"None if node.saved_{name} is None else tensor_like(node.saved_{name}, {edge})"
            return f"tensor_like(node.saved_{name}, {edge})"
        if name in self.operator.nondifferentiable_outputs:
            return f"tensor_like(node.saved_{name}, None)"
        number = self.operator.signature.outputs.index(name)
        return f"tensor_like(node.saved_{name}, {f'Edge(node, {number})' if self.several else 'node'})"

    def _apply_to_list(self, recorded: bool, release: bool) -> list[str]:
        operator = self.operator
        (formula,) = operator.formulas
        assert self.listed is not None
        listed = self.listed.name
        lines = []
        for read in (*formula.reads, *formula.results, *formula.kept):
            if read == listed:
                value = (
                    f"[tensor_like(saved, edge) for saved, edge in zip(node.saved_{read}, node.edges)]"
                    if recorded
                    else f"[saved.array for saved in node.saved_{read}]"
                )
            else:
                value = self._load(read, recorded, {})
            lines.append(f"        {read} = {value}")
        lines.append(f"        grads_of_list = {self._formula(formula, recorded)}")
        if release:
            lines += self.releases()
        conformed = "conform(g, like)"
        if operator.user_defined:
            conformed = f"checked_gradient(g, like, {operator.name!r}, {listed!r})"
        lines += [f"        return tuple([{conformed} for g, like in zip(grads_of_list, node.likes, strict=True)])", ""]
        return lines


def grads_are_several(operator: Operator) -> bool:
    """Whether a gradient may arrive at more than one output."""
    return len(operator.signature.outputs) - len(operator.nondifferentiable_outputs) > 1


def needs_likes(operator: Operator) -> bool:
    """Whether an input may differ from its gradient's formula in shape or dtype, by broadcasting or promotion."""
    tensors = operator.signature.tensors
    if operator.user_defined or any(argument.kind == "tensors" for argument in tensors):
        return True
    return len(tensors) > 1 if operator.elementwise else len(operator.differentiable) > 1


def formula_text(tree: ast.expr, recorded: bool, local: set[str]) -> str:
    """A formula as source, for arrays or for tensors; the names in `local` are the formula's own."""
    copied = ast.parse(ast.unparse(tree), mode="eval").body
    return ast.unparse((_ForTensors if recorded else _ForArrays)(local).visit(copied))


class _ForTensors(ast.NodeTransformer):
    def __init__(self, local: set[str]) -> None:
        self.local = local

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id not in BUILTINS and node.func.id not in self.local:
            node.func = ast.Attribute(ast.Name("ops", ast.Load()), node.func.id, ast.Load())
        return node


class _ForArrays(ast.NodeTransformer):
    def __init__(self, local: set[str]) -> None:
        self.local = local

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "conj" and "conj" not in self.local:
            # ndarray.conj returns a real array itself, where numpy.conj would copy it.
            return ast.Call(ast.Attribute(node.args[0], "conj", ast.Load()), [], [])
        return node


class FunctionWriter:
    """Writes the function of an operator and its in-place variant.

    Arguments:
        operator: its declaration.
        plain: whether what is written is blind to every mode but grad mode.
    """

    def __init__(self, operator: Operator, *, plain: bool = False) -> None:
        self.operator = operator
        self.plain = plain
        self.signature = operator.signature
        self.tensors = operator.signature.tensors
        self.listed = next((argument for argument in self.tensors if argument.kind == "tensors"), None)
        self.number = {argument.name: i for i, argument in enumerate(self.tensors)}
        self.formulas = operator.formulas
        self.inplace_result = False

    def function(self) -> str:
        """The source of the function."""
        operator = self.operator
        name = operator.name
        lines = [f"def {name}({self.signature.parameters()}):"]
        lines += self._convert(self.tensors)
        lines += self._refuse_tensors()
        lines += self._special("run_special")
        lines += self._arrays()
        outputs = self.signature.outputs
        call = f"{name}_forward({self.signature.call(self._array_name)})"
        lines.append(f"    {', '.join(f'r{i}' for i in range(len(outputs)))} = {call}")
        ufunc = isinstance(operator.forward, np.ufunc)
        for i in range(len(outputs)):
            if ufunc:
                lines += [f"    if type(r{i}) is not ndarray:", f"        r{i} = asarray(r{i})"]
            else:
                others = [self._array_name(argument.name) for argument in self.tensors]
                test = f"    if type(r{i}) is not ndarray or r{i}.base is not None"
                if operator.user_defined:  # which may return an input itself, or one array twice
                    others += [f"r{j}" for j in range(i)]
                    test += "".join(f" or r{i} is {other}" for other in others)
                lines += [f"{test}:", f"        r{i} = fresh(r{i}, ({', '.join(others)},))"]
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
        """The source of the in-place variant.

        What the node keeps of the inputs it saves before the write, which preserves it; what it keeps of the result it
        saves afterwards.
        """
        operator = self.operator
        declared = operator.inplace_declaration or operator
        self.formulas = declared.formulas
        self.inplace_result = True
        name = operator.name
        forward = f"{name}_forward" if declared is operator else f"{name}_inplace_forward"
        class_name = backward_name(name if declared.formulas is operator.formulas else f"{name}_in_place")
        target = self.tensors[0].name
        lines = [f"def {name}_({self.signature.parameters()}):"]
        if len(self.tensors) > 1:
            lines += self._convert(self.tensors)
        lines += self._refuse_tensors()
        lines += self._special("run_special_inplace")
        lines += self._arrays()
        numbers = sorted({0, *self._differentiable()})  # a target whose old value doesn't matter has its history cut
        lines += self._edges(numbers)
        some = " or ".join(f"e{i} is not None" for i in numbers)
        lines += [
            f"    recorded = mode_bits and ({some}) and a0.dtype.kind in 'fc'",
            f"    if recorded or {target}._view is not None or a0.base is not None:",
            f"        check_write({target}, recorded)",
            "    if recorded:",
        ]
        if declared.formulas:
            lines += [
                f"        node = new({class_name}InPlace)",
                *self._fill_node("        "),
                *self._save_inputs("        "),
                *self._likes("        ", inplace=True),
            ]
        else:
            lines += [
                "        node = new(CopyBackwards)",
                "        node.edges = (None, None)",
                "        node.hooks = None",
                "        node.sequence_nr = next_sequence_nr()",
                "        node.like = None",
            ]
        lines.append(f"    prepare_write({target}, {name + '_'!r})")
        arguments = self.signature.call(self._array_name)
        if isinstance(declared.forward, np.ufunc):
            # By position is faster, but NumPy wants these two to be given the name.
            name_of_out = "out=" if declared.forward in (np.maximum, np.minimum) else ""
            lines.append(f"    {forward}({arguments}, {name_of_out}a0)")
        else:
            lines.append(f"    overwrite(a0, {forward}({arguments}))")
        lines.append("    if recorded:")
        for result in sorted({result for formula in self.formulas for result in formula.results}):
            readers = [formula for formula in self.formulas if result in formula.results]
            lines += self._when_needed("        ", readers, [f"node.saved_{result} = save({target})"])
        lines.append(f"        rebase_history({target}, node)")
        lines.append(f"    return {target}")
        return "\n".join(lines) + "\n"

    # -- the parts -----------------------------------------------------------------------------------------------------

    def _convert(self, arguments: tuple[Argument, ...]) -> list[str]:
        names = [argument.name for argument in arguments if not argument.optional]
        lines = []
        if self.listed is not None:
            lines.append(f"    {self.listed.name} = [as_operand(tensor) for tensor in {self.listed.name}]")
        elif self.operator.elementwise and len(arguments) > 1:
            tests = [
                f"({name} is not None and type({name}) is not Tensor)" if optional else f"type({name}) is not Tensor"
                for name, optional in ((argument.name, argument.optional) for argument in arguments)
            ]
            together = ", ".join(argument.name for argument in arguments)
            return [f"    if {' or '.join(tests)}:", f"        {together} = operands({together})"]
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

    def _refuse_tensors(self) -> list[str]:
        """A check that no argument is a tensor that the declaration does not know to be one."""
        lines = []
        if self.operator.user_defined:
            for argument in self.signature.plain:
                lines += [
                    f"    if type({argument.name}) is Tensor:",
                    f"        refuse_tensor({self.operator.name!r}, {argument.name!r})",
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
        if self.listed is not None:
            return [f"    a0 = [tensor._array for tensor in {self.listed.name}]"]
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
        return sorted({self.number[name] for formula in self.formulas for name in formula.inputs})

    def _edges(self, numbers: list[int]) -> list[str]:
        if self.listed is not None:
            return [
                "    edges = tuple([tensor._edge if tensor._view is None else tensor._view.edge_of(tensor)",
                f"                   for tensor in {self.listed.name}])",
            ]
        lines = []
        for i in numbers:
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
            f"{indent}node.edges = {'edges' if self.listed is not None else f'({edges},)'}",
            f"{indent}node.hooks = None",
            f"{indent}node.sequence_nr = next_sequence_nr()",
        ]

    def _save_inputs(self, indent: str) -> list[str]:
        lines: list[str] = []
        for name in dict.fromkeys(read for formula in self.formulas for read in formula.reads):
            argument = self.signature.argument(name)
            body = [
                f"node.saved_{name} = {name}._saved",
                f"if node.saved_{name} is None:",
                f"    node.saved_{name} = save({name})",
            ]
            if argument.kind == "tensors":
                body = [f"node.saved_{name} = [save(tensor) for tensor in {name}]"]
            elif argument.optional:
                body = [f"node.saved_{name} = None if {name} is None else save({name})"]
            lines += self._when_needed(indent, [f for f in self.formulas if name in f.reads], body)
        for slot, name, attribute in dict.fromkeys(entry for formula in self.formulas for entry in formula.metadata):
            readers = [formula for formula in self.formulas if (slot, name, attribute) in formula.metadata]
            body = [f"node.saved_{slot} = {self._metadata(name, attribute)}"]
            lines += self._when_needed(indent, readers, body)
        for name in dict.fromkeys(read for formula in self.formulas for read in formula.plain):
            body = [f"node.saved_{name} = settled({name}) if type({name}) in MUTABLE else {name}"]
            lines += self._when_needed(indent, [f for f in self.formulas if name in f.plain], body)
        return lines

    def _metadata(self, name: str, attribute: str) -> str:
        """The expression for what can be known of a tensor without keeping it."""
        if name not in self.number:
            return f"{'a0' if self.inplace_result else f'r{self.signature.outputs.index(name)}'}.{attribute}"
        if self.listed is not None:
            return f"[array.{attribute[:-1]} for array in a0]"
        value = f"geometry_of({name})" if attribute == "geometry" else f"{self._array_name(name)}.{attribute}"
        return f"None if {name} is None else {value}" if self.signature.argument(name).optional else value

    def _when_needed(self, indent: str, formulas: list[Formula], body: list[str]) -> list[str]:
        numbers = sorted({self.number[name] for formula in formulas for name in formula.inputs})
        others = set(self._differentiable())
        if self.inplace_result:
            others.add(0)  # which may be all that is recorded for
        if self.listed is not None or others <= set(numbers):
            return [indent + line for line in body]
        test = " or ".join(f"e{i} is not None" for i in numbers)
        return [f"{indent}if {test}:", *(f"{indent}    {line}" for line in body)]

    def _likes(self, indent: str, *, inplace: bool = False) -> list[str]:
        if not needs_likes(self.operator):
            return []
        if self.listed is not None:
            return [f"{indent}node.likes = [(array.shape, array.dtype) for array in a0]"]
        arrays = [f"a{i}" for i in range(len(self.tensors))]
        result = "a0" if inplace else "r0"
        differentiable = set(self._differentiable())
        elementwise = self.operator.elementwise and not self.operator.user_defined
        tests = []
        if len(arrays) == 2 and not inplace and differentiable == {0, 1} and elementwise:
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
        if not elementwise:
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
        differentiable = self._differentiable()
        some = " or ".join(f"e{i} is not None" for i in differentiable)
        if self.listed is not None:
            some = "edges.count(None) != len(edges)"
        several = grads_are_several(operator)
        # An operator that casts, or that we know nothing about, may make integers: there is no gradient through these.
        casts = operator.user_defined or any(argument.name == "dtype" for argument in self.signature.plain)
        first = next(i for i, output in enumerate(outputs) if output not in operator.nondifferentiable_outputs)
        floating = f" and r{first}.dtype.kind in 'fc'" if casts and not several else ""
        lines = self._edges(differentiable)
        lines += [
            f"    if mode_bits and ({some}){floating}:",
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
            if casts and several and edge != "None":
                edge = f"{edge} if r{i}.dtype.kind in 'fc' else None"
            lines.append(f"        out{i}._edge = {edge}")
        lines.append("    else:")
        lines += [f"        out{i}._edge = None" for i in range(len(outputs))]
        return lines

    def _save_results(self) -> list[str]:
        lines = []
        for i, output in enumerate(self.signature.outputs):
            readers = [formula for formula in self.formulas if output in formula.results]
            if readers:
                body = [
                    "saved = new(SavedTensor)",
                    f"saved.array = r{i}",
                    f"node.saved_{output} = out{i}._saved = saved",
                ]
                lines += self._when_needed("        ", readers, body)
        return lines
