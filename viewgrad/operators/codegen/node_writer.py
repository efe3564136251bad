"""Generation of the node class of an operator."""

from __future__ import annotations

import ast
from typing import Final

import numpy as np

from ...tensor.node import MANY, ONE, PAIR
from ..language.namespace import ARRAY_FUNCTIONS
from ..language.parsing import local_names, product_of
from ..language.rename import Renamed, copied, formula_text
from ..language.spec import Formula, Operator
from ..lazy_imports import LazyFunction


class NodeWriter:
    """Generates the node class of an operator.

    Arguments:
        operator: its declaration.
        class_name: the name of the class.
    """

    def __init__(self, operator: Operator, class_name: str) -> None:
        self.operator = operator
        self.class_name = class_name
        self.arguments = operator.signature.tensors
        self.listed = next((argument for argument in self.arguments if argument.kind == "tensors"), None)
        self.order = {argument.name: i for i, argument in enumerate(self.arguments)} if self.listed is None else {}
        self.several = grads_are_several(operator)
        self.saved = tuple(
            dict.fromkeys(read for formula in operator.formulas for read in (*formula.reads, *formula.results))
        )
        self.kept = tuple(dict.fromkeys(entry for formula in operator.formulas for entry in formula.kept))
        self.one = len(self.arguments) == 1 and self.listed is None
        self.symmetric = self._is_symmetric()
        self.asks = False  # whether the methods check for a masked run

    def source(self) -> str:
        """Return the source of the class."""
        operator = self.operator
        slots = [*edge_slots(operator), *[f"saved_{name}" for name in (*self.saved, *self.kept)]]
        if needs_input_specs(operator):
            slots.append("input_specs")
        if self.several:
            slots.append("output_specs")
        lines = [
            f"class {self.class_name}(Node):",
            *self._docstring(),
            f"    __slots__ = {tuple(slots)!r}",
            f"    kind = {ONE if self.one else PAIR if slots[0] == 'edge0' else MANY}",
            f"    outputs = {len(operator.signature.outputs) if self.several else 1}",
            f"    saved_names = {self.saved!r}",
        ]
        if slots[0] != "edges":
            lines.append(f"    edges = {'ONE_EDGE' if slots[0] == 'edge' else 'TWO_EDGES'}")
        lines.append("")
        lines += self.apply("apply", recorded=False, release=False)
        if self.saved or any(self._in_place(formula) for formula in operator.formulas):
            lines += self.apply("consume", recorded=False, release=True)
        else:
            lines += ["    consume = apply", ""]
        if self.saved:
            lines += ["    def release(node):", *self.releases(), ""]
        lines += self.apply("apply_recorded", recorded=True, release=False)
        if operator.zero_in_masked_runs:  # the replacements of these methods from the first masked run on
            self.asks = True
            lines += self.apply("masked_apply", recorded=False, release=False)
            lines += self.apply("masked_consume", recorded=False, release=True)
            lines += self.apply("masked_apply_recorded", recorded=True, release=False)
            self.asks = False
        return "\n".join(lines) + "\n"

    def _docstring(self) -> list[str]:
        """Return the docstring of the class, which lists the formulas."""
        operator = self.operator
        texts = [f"{', '.join(formula.inputs)}: {formula.text.strip()}" for formula in operator.formulas]
        lines = [f"The backward step of {operator.signature}; the gradients of its inputs:", "", *texts]
        lines = [line.replace("\\", "\\\\").replace('"""', '\\"\\"\\"') for line in lines]
        return [f'    """{lines[0]}', *(f"    {line}".rstrip() for line in lines[1:]), '    """', ""]

    def inplace_class(self, may_be_real: bool) -> str:
        """Return the source of the node class of the in-place variant.

        Arguments:
            may_be_real: whether it may write real over complex numbers. The incoming gradient is then complex, and its
                real part is the gradient of the operator's result.
        """
        name = self.class_name
        lines = [
            f"class {name}InPlace({name}):",
            f'    """`{name}` of the in-place variant, which writes over its first input."""',
            "",
            f"    __slots__ = {('wrote_real',) if may_be_real else ()!r}",
            "    inplace = True",
        ]
        if may_be_real:
            for method in ("apply", "consume", "apply_recorded"):
                lines += [
                    "",
                    f"    def {method}(node, grad, edges):",
                    f"        return {name}.{method}(node, grad.real if node.wrote_real else grad, edges)",
                ]
        return "\n".join(lines) + "\n"

    def releases(self) -> list[str]:
        """Generate the method that releases the saved values."""
        listed = None if self.listed is None else self.listed.name
        return [
            f"        node.saved_{name} = {'[RELEASED] * len(node.edges)' if name == listed else 'RELEASED'}"
            for name in self.saved
        ]

    def apply(self, name: str, *, recorded: bool, release: bool) -> list[str]:
        """Return the source of one of the functions that compute gradients."""
        operator = self.operator
        grad = "grads" if self.several else "grad"
        lines = [f"    def {name}(node, {grad}, edges):"]
        if operator.masks_gradient:
            lines.append("        gradient_masked()")
        if self.several:
            lines.append(f"        grads = ops.materialized(grads, node.output_specs, {recorded})")
        if self.listed is not None:
            return lines + self._apply_to_list(recorded, release)
        if not self.one:
            targets = ", ".join(f"e{i}" for i in range(len(self.arguments)))
            lines.append(f"        {targets}{',' if len(self.arguments) == 1 else ''} = edges")
            lines.append("        " + " = ".join(f"g{i}" for i in range(len(self.arguments))) + " = None")
        loaded: set[str] = set()
        for formula in operator.formulas:
            indent = "        "
            if not self.one:
                lines += self._if_needed(formula, release)
                indent += "    "
                loaded = set()
            for read in (*formula.reads, *formula.results, *formula.kept):
                if read not in loaded:
                    loaded.add(read)
                    lines += [indent + line for line in self._loading(read, recorded)]
            lines += self._evaluated(formula, recorded, release, indent)
        if release:
            lines += self.releases()
        lines += self._matched()
        results = ", ".join(f"g{i}" for i in range(len(self.arguments)))
        return [*lines, f"        return {results}", ""]

    def _if_needed(self, formula: Formula, release: bool) -> list[str]:
        """Return the line that tests whether a gradient of the formula is needed."""
        needed = " or ".join(f"e{self.order[name]} is not None" for name in formula.inputs)
        if release and self.symmetric and formula is self.operator.formulas[1]:
            return [
                f"        if e0 is not None and {self._of_one_value()}:",
                "            g0 = np_add(g0, g0, g0) if type(g0) is ndarray else g0 + g0",
                f"        elif {needed}:",
            ]
        return [f"        if {needed}:"]

    def _loading(self, read: str, recorded: bool) -> list[str]:
        """Generate the lines that load a saved value into a local variable."""
        if not recorded and self._may_be_number(read):
            return [
                f"{read} = node.saved_{read}",
                f"if type({read}) is not float64:",
                f"    {read} = {read}.array",
            ]
        return [f"{read} = {self._load(read, recorded)}"]

    def _evaluated(self, formula: Formula, recorded: bool, release: bool, indent: str) -> list[str]:
        """Generate the lines that evaluate a formula, reusing the incoming gradient's memory if possible."""
        operator, order = self.operator, self.order
        targets = ", ".join(f"g{order[name]}" for name in formula.inputs)
        product = self._formula(product_of(formula.tree), recorded)
        written = self._in_place(formula) if release else None
        if written is None:
            return self._assigned(formula, targets, product, recorded, indent)
        later = operator.formulas[operator.formulas.index(formula) + 1 :]
        others = [f"e{order[name]} is None" for other in later for name in other.inputs]
        if self.symmetric and later:
            others = [f"(e1 is None or {self._of_one_value()})"]
        earlier = operator.formulas[: operator.formulas.index(formula)]
        # An interpreter with borrowed references does not count a variable that was assigned from a parameter.
        others = [f"g{order[name]} is not grad" for other in earlier for name in other.inputs] + others
        return self._reused(formula, targets, product, written, others, indent)

    def _matched(self) -> list[str]:
        """Generate the lines that check gradients, or convert them to the shape and dtype of their inputs."""
        operator = self.operator
        if operator.user_defined:
            return [
                f"        g{i} = checked_gradient(g{i}, node.input_specs[{i}], {operator.name!r}, {argument.name!r})"
                for i, argument in enumerate(self.arguments)
                if argument.name in operator.differentiable
            ]
        if not needs_input_specs(operator):
            return []
        matched = [f"            g{i} = match_spec(g{i}, node.input_specs[{i}])" for i in range(len(self.arguments))]
        return ["        if node.input_specs is not None:", *matched]

    def _assigned(self, formula: Formula, targets: str, product: str, recorded: bool, indent: str) -> list[str]:
        """Return the assignment of a formula's result, which is zero where the gradient is 0 if the formula requires
        that.

        For small gradients, checking that no element is 0 is cheap, and usually nothing else is needed.
        """
        asks = self.asks and (self.operator.elementwise or bool(formula.reads or formula.results))
        if formula.tree is product_of(formula.tree) and not asks:
            return [f"{indent}{targets} = {product}  # {self.operator.row}"]
        grad = "grad._array" if recorded else "grad"
        flowing = f"arrays.flowing({product}, grad)"
        traced = ""
        if recorded:
            traced = " and not current_mode() & TRACE"
            read = ", ".join(["grad", *(name for name in (*formula.reads, *formula.results))])
            flowing = f"flowing_elements(lambda {read}: {product}, {read})"
        test = f"{grad}.size < MANY_ELEMENTS and nonzeros({grad}) == {grad}.size{traced}"
        if asks:
            if not self.operator.elementwise:
                read = ", ".join((*formula.reads, *formula.results))
                flowing = f"without_lost_values(lambda {read}: {product}, {read})"
            test = f"not is_masked_run(){' or current_mode() & TRACE' if recorded else ''}"
        return [
            f"{indent}if {test}:",
            f"{indent}    {targets} = {product}  # {self.operator.row}",
            f"{indent}else:",
            f"{indent}    with errstate(divide='ignore', invalid='ignore'):",
            f"{indent}        {targets} = {flowing}  # {self.operator.row}",
        ]

    def _is_symmetric(self) -> bool:
        """Return whether both operands have the same formula, so that a value times itself needs it only once."""
        formulas = self.operator.formulas
        if len(self.arguments) != 2 or len(formulas) != 2 or None in map(self._in_place, formulas):
            return False
        one, other = (argument.name for argument in self.arguments)
        names = {one: ast.Name(other, ast.Load()), other: ast.Name(one, ast.Load())}
        swapped = Renamed(names).visit(copied(formulas[0].tree))
        return ast.dump(swapped) == ast.dump(formulas[1].tree)

    def _of_one_value(self) -> str:
        one, other = (argument.name for argument in self.arguments)
        # Hooks must receive the gradient of each operand.
        return f"e0 is e1 and node.saved_{one} is node.saved_{other} and node.hooks is None"

    def _in_place(self, formula: Formula) -> tuple[str, str | None] | None:
        """Return the ufunc and factor of a formula such as `grad * factor`, which can overwrite the gradient."""
        if not self.operator.elementwise or self.operator.user_defined or self.several or len(formula.inputs) > 1:
            return None
        tree = product_of(formula.tree)
        if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub) and _is_grad(tree.operand):
            return "np_negative", None
        if isinstance(tree, ast.BinOp) and isinstance(tree.op, (ast.Mult, ast.Div)) and _is_grad(tree.left):
            factor = tree.right
            names = {node.id for node in ast.walk(factor) if isinstance(node, ast.Name)}
            if "grad" not in names and names & {*formula.reads, *formula.results}:
                arguments = {argument.name for argument in self.operator.signature.arguments}
                ufunc = "np_multiply" if isinstance(tree.op, ast.Mult) else "np_divide"
                return ufunc, formula_text(factor, False, arguments | local_names(factor), self.operator.name)
        return None

    def _reused(
        self,
        formula: Formula,
        target: str,
        product: str,
        written: tuple[str, str | None],
        others: list[str],
        indent: str,
    ) -> list[str]:
        """Return a formula that overwrites the gradient if it is large and nothing else refers to it.

        See Note [Ownership of gradients] in docs/notes/engine.md. Allocating memory costs more than the arithmetic.
        """
        ufunc, factor = written
        large = "type(grad) is ndarray and grad.size >= LARGE and grad.base is None"
        test = " and ".join([large, "getrefcount(grad) <= ALONE_IN_NODE", *others])
        operator = "*" if ufunc == "np_multiply" else "/"
        of_factor = f"{target} = grad {operator} factor"
        if factor is None:
            in_place = [f"{target} = {ufunc}(grad, grad)"]
        else:
            in_place = [f"{target} = {ufunc}(grad, factor, grad)"]
        if formula.tree is not product_of(formula.tree):  # the zeros of the gradient are then no longer available
            test += " and all_nonzero(grad, None)"
            if factor is not None:
                in_place = [
                    f"factor = {factor}",
                    f"{of_factor} if factor.dtype is not grad.dtype else {ufunc}(grad, factor, grad)",
                ]
            return [
                f"{indent}if {test}:",
                *(f"{indent}    {line}" for line in in_place),
                f"{indent}else:",
                *self._assigned(formula, target, product, False, f"{indent}    "),
            ]
        lines = []
        if factor is not None:
            lines.append(f"{indent}factor = {factor}")
            test += " and factor.dtype is grad.dtype"
            product = f"grad {operator} factor"
        if self.asks:
            test += " and not is_masked_run()"
        return [
            *lines,
            f"{indent}if {test}:",
            *(f"{indent}    {line}" for line in in_place),
            f"{indent}else:",
            *self._assigned(formula, target, product, False, f"{indent}    "),
        ]

    def _formula(self, tree: ast.expr, recorded: bool) -> str:
        arguments = {argument.name for argument in self.operator.signature.arguments}
        return formula_text(tree, recorded, arguments | local_names(tree), self.operator.name)

    def _may_be_number(self, name: str) -> bool:
        """Return whether a node may store a number instead of a window of an input or a result."""
        if name in self.operator.signature.outputs:
            in_place = self.operator.has_inplace
            return name in self.saved and (in_place or isinstance(self.operator.forward, np.ufunc))
        return name in self.saved and not self.operator.signature.argument(name).optional

    def _load(self, name: str, recorded: bool) -> str:
        if name not in self.saved:
            return f"node.saved_{name}"
        if not recorded:
            if name in self.order and self.operator.signature.argument(name).optional:
                return f"None if node.saved_{name} is None else node.saved_{name}.array"
            return f"node.saved_{name}.array"
        if name in self.order:
            number = self.order[name]
            slots = edge_slots(self.operator)
            edge = f"node.edges[{number}]" if slots == ["edges"] else f"node.{slots[number]}"
            if self.operator.signature.argument(name).optional:
                return f"None if node.saved_{name} is None else tensor_like(node.saved_{name}, {edge})"
            return f"tensor_like(node.saved_{name}, {edge})"
        if name in self.operator.nondifferentiable_outputs:
            return f"tensor_like(node.saved_{name}, None)"
        output = self.operator.signature.outputs.index(name)
        return f"tensor_like(node.saved_{name}, {f'Edge(node, {output})' if self.several else 'node'})"

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
                value = self._load(read, recorded)
            lines.append(f"        {read} = {value}")
        lines.append(f"        grads_of_list = {self._formula(formula.tree, recorded)}  # {operator.row}")
        if release:
            lines += self.releases()
        matched = "match_spec(g, like)"
        if operator.user_defined:
            matched = f"checked_gradient(g, like, {operator.name!r}, {listed!r})"
        pairs = "zip(grads_of_list, node.input_specs, strict=True)"
        lines += [f"        return tuple([{matched} for g, like in {pairs}])", ""]
        return lines


def _is_grad(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "grad"


def edge_slots(operator: Operator) -> list[str]:
    """Return the slots for the edges of an operator's nodes; a single slot for more than two edges, or for a list."""
    arguments = operator.signature.tensors
    if any(argument.kind == "tensors" for argument in arguments):
        return ["edges"]
    return {1: ["edge"], 2: ["edge0", "edge1"]}.get(len(arguments), ["edges"])


def grads_are_several(operator: Operator) -> bool:
    """Return whether a gradient may arrive at more than one output."""
    return len(operator.signature.outputs) - len(operator.nondifferentiable_outputs) > 1


def needs_input_specs(operator: Operator) -> bool:
    """Return whether an input may differ in shape or dtype from its gradient's formula, by broadcasting or promotion.
    """
    tensors = operator.signature.tensors
    if operator.user_defined or any(argument.kind == "tensors" for argument in tensors):
        return True
    if len(tensors) == 1 and not keeps_precision(operator):
        return True
    return len(tensors) > 1 if operator.elementwise else len(operator.differentiable) > 1


def keeps_precision(operator: Operator) -> bool:
    """Return whether the operator computes in the dtype of its operands, unlike SciPy's functions for float16."""
    called = [getattr(ARRAY_FUNCTIONS, name, None) for formula in operator.formulas for name in formula.functions]
    found = [each.found() if isinstance(each, LazyFunction) else each for each in called]
    ufuncs = [function for function in (operator.forward, *found) if isinstance(function, np.ufunc)]
    return all(any(loop.startswith("e" * ufunc.nin + "->") for loop in ufunc.types) for ufunc in ufuncs)


def backward_name(name: str) -> str:
    """Return the name of an operator's node class, such as `LogSoftmaxBackward` for `log_softmax`."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_")) + "Backward"


MANY_ELEMENTS: Final = 4096  # elements; from this size on, counting zeros costs more than checking the product
# elements; below this size, checking whether a gradient can be overwritten costs more than it saves
LARGE: Final = 1000
