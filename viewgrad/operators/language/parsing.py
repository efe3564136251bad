"""Parsing of declarations: signatures, formulas, and the values that formulas read.

See Note [The language of formulas] in docs/notes/declarations.md.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from typing import Any, Final

from ...errors import DeclarationError
from .spec import Argument, Formula, Signature, Use

METADATA: Final = ("shape", "dtype", "ndim", "size", "strides")
LIST_METADATA: Final = ("shapes", "dtypes")
# Functions of one tensor argument whose result is saved instead of the tensor.
METADATA_CALLS: Final = {"TensorGeometry": ("geometry",), "zeros_like": ("shape", "dtype")}


def parse_signature(text: str, tensors: Mapping[str, str]) -> Signature:
    """Parse a signature such as `"name(self, other, *, option=1) -> (first, second)"`.

    Arguments:
        text: the signature.
        tensors: the names of the arguments that are tensors, each with "tensor" or "tensors".
    """
    head, _, tail = text.partition("->")
    try:
        function = ast.parse(f"def {head.strip()}: pass").body[0]
    except SyntaxError as error:
        raise DeclarationError(f"operator {text!r}: the signature cannot be read: {error.msg}") from None
    if not isinstance(function, ast.FunctionDef):
        raise DeclarationError(f"operator {text!r}: the signature cannot be parsed; expected 'name(arguments)'")
    outputs = tuple(part.strip() for part in tail.strip().strip("()").split(",") if part.strip()) or ("result",)
    if not all(output.isidentifier() for output in outputs):
        raise DeclarationError(f"operator {text!r}: the outputs cannot be parsed; expected '-> (first, second)'")
    spec = function.args
    if spec.vararg or spec.kwarg or spec.posonlyargs:
        raise DeclarationError(f"operator {text!r}: *args, **kwargs and / are not supported; name every argument")
    literals = [None if node is None else _literal(node, text) for node in (*spec.defaults, *spec.kw_defaults)]
    defaults = [None] * (len(spec.args) - len(spec.defaults)) + literals[: len(spec.defaults)]
    keyword_defaults = literals[len(spec.defaults) :]
    arguments = []
    for arg, default, keyword_only in (
        *((arg, default, False) for arg, default in zip(spec.args, defaults, strict=True)),
        *((arg, default, True) for arg, default in zip(spec.kwonlyargs, keyword_defaults, strict=True)),
    ):
        annotation = None if arg.annotation is None else ast.unparse(arg.annotation)
        arguments.append(Argument(arg.arg, tensors.get(arg.arg, "plain"), default, keyword_only, annotation))
    return Signature(function.name, tuple(arguments), outputs)


def _literal(node: ast.expr, signature: str) -> str:
    """Return the text of a default value, which must be a literal, since a signature is data and never executed."""
    text = ast.unparse(node)
    try:
        ast.literal_eval(node)
    except ValueError:
        raise DeclarationError(
            f"operator {signature!r}: the default {text} is not a literal (a number, a string, None, True, False, or a "
            "tuple, list or dict of these); use None, and let the forward choose"
        ) from None
    return text


def parse_expression(text: str) -> ast.expr:
    """Parse the expression in a formula's text.

    Raises:
        SyntaxError: with `offset` counted from the start of the text.
    """
    stripped = text.strip()
    lead = len(text) - len(text.lstrip())
    try:
        return ast.parse(stripped, mode="eval").body
    except SyntaxError as error:
        lines = stripped.splitlines(keepends=True)[: (error.lineno or 1) - 1]
        error.offset = lead + sum(map(len, lines)) + (error.offset or 1)
        raise


def position_of(node: ast.AST, text: str) -> int:
    """Return the position of a node of the expression in its text, counted from 1."""
    stripped = text.strip()
    lead = len(text) - len(text.lstrip())
    lines = stripped.splitlines(keepends=True)
    number: int = node.lineno - 1  # type: ignore[attr-defined]
    line = lines[number].encode()[: node.col_offset].decode()  # type: ignore[attr-defined]
    return lead + sum(map(len, lines[:number])) + len(line) + 1


def product_of(tree: ast.expr) -> ast.expr:
    """Return the product in `flowing(product, grad)`, which is evaluated for each element; see Note [Infinite slopes].

    In `flowing(product, grad, dim)` it is a computation along a dimension.
    """
    if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and tree.func.id == "flowing":
        return tree if len(tree.args) > 2 else tree.args[0]
    return tree


def visit_arguments(visitor: ast.NodeTransformer, call: ast.Call) -> ast.Call:
    """Visit the arguments of a call but not the called name; return the call."""
    call.args = [visitor.visit(argument) for argument in call.args]
    for keyword in call.keywords:
        keyword.value = visitor.visit(keyword.value)
    return call


def local_names(tree: ast.AST) -> set[str]:
    """Return the names that a formula binds itself, in comprehensions and lambdas."""
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return names | {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}


def parse_formula(
    text: str, inputs: tuple[str, ...], signature: Signature, nondifferentiable: Iterable[str] = ()
) -> Formula:
    """Parse a formula over the arguments and outputs of `signature`.

    Arguments:
        text: the formula.
        inputs: the arguments whose gradients it computes.
        signature: the signature of the operator.
        nondifferentiable: the outputs through which no gradient flows.

    Raises:
        SyntaxError: with `offset` counted from the start of the text.
    """
    tree = parse_expression(text)
    reader = _Reader(signature, tuple(nondifferentiable), text, local_names(tree))
    tree = reader.visit(tree)
    return Formula(
        text,
        inputs,
        tree,
        tuple(reader.reads),
        tuple(reader.results),
        tuple(reader.metadata),
        tuple(reader.plain),
        tuple(sorted(reader.grads)),
        tuple(reader.functions),
        tuple(reader.uses),
    )


class _Reader(ast.NodeTransformer):
    """Collects the values that a formula reads, and replaces metadata, results and gradients by plain names."""

    def __init__(self, signature: Signature, nondifferentiable: tuple[str, ...], text: str, local: set[str]) -> None:
        self.kinds = {argument.name: argument.kind for argument in signature.arguments}
        self.names = signature.outputs
        self.outputs = {name: i for i, name in enumerate(self.names)}
        if len(self.names) > 1:
            self.outputs |= {f"result{i}": i for i in range(len(self.names))}
        self.differentiable = [i for i, name in enumerate(self.names) if name not in nondifferentiable]
        self.text = text
        self.local = local
        self.reads: dict[str, None] = {}
        self.results: dict[str, None] = {}
        self.metadata: dict[tuple[str, str, str], None] = {}
        self.plain: dict[str, None] = {}
        self.grads: set[int] = set()
        self.functions: dict[str, None] = {}
        self.uses: list[Use] = []

    def _use(self, kind: str, name: str, node: ast.AST, detail: Any = None) -> None:
        self.uses.append(Use(kind, name, position_of(node, self.text), detail))

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        if isinstance(node.value, ast.Name) and node.value.id not in self.local:
            name = node.value.id
            kind = self.kinds.get(name)
            if (kind == "tensor" and node.attr in METADATA) or (kind == "tensors" and node.attr in LIST_METADATA):
                return self._metadata(node, name, node.attr)
            if kind is None and name in self.outputs and node.attr in METADATA:
                return self._metadata(node, self.names[self.outputs[name]], node.attr)
        node.value = self.visit(node.value)
        return node

    def _metadata(self, node: ast.AST, name: str, attribute: str) -> ast.expr:
        self.metadata[f"{name}_{attribute}", name, attribute] = None
        self._use("metadata", name, node, attribute)
        return ast.Name(f"{name}_{attribute}", ast.Load())

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if isinstance(node.func, ast.Name) and node.func.id not in self.local:
            name = node.func.id
            if name in self.kinds:
                node.func = self.visit(node.func)
            else:
                parts = self._metadata_of_call(node, name)
                if parts:
                    return parts[0] if len(parts) == 1 else ast.Call(ast.Name("zeros_of", ast.Load()), parts, [])
                self.functions[name] = None
                self._use("function", name, node.func)
        else:
            node.func = self.visit(node.func)
        return visit_arguments(self, node)

    def _metadata_of_call(self, node: ast.Call, name: str) -> list[ast.expr]:
        """Return the metadata equivalent to the call of `name` on an argument, if there are any."""
        if name in METADATA_CALLS and len(node.args) == 1 and not node.keywords:
            (argument,) = node.args
            if isinstance(argument, ast.Name) and argument.id not in self.local:
                kind = self.kinds.get(argument.id)
                if kind == "tensor":
                    return [self._metadata(argument, argument.id, part) for part in METADATA_CALLS[name]]
                if kind is None and argument.id in self.outputs and name == "zeros_like":
                    output = self.names[self.outputs[argument.id]]
                    return [self._metadata(argument, output, part) for part in METADATA_CALLS[name]]
        return []

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        if isinstance(node.value, ast.Name) and node.value.id == "grads" and "grads" not in self.kinds:
            number = _constant_index(node.slice)
            if number is not None:
                self.grads.add(number)
                self._use("grads[i]", "grads", node, number)
                return node
        self.generic_visit(node)
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        name = node.id
        kind = self.kinds.get(name)
        if name in self.local:
            return node
        if kind is not None:
            (self.plain if kind == "plain" else self.reads)[name] = None
            self._use("argument", name, node)
        elif name in self.outputs:
            output = self.names[self.outputs[name]]
            self.results[output] = None
            self._use("result", output, node)
            return ast.Name(output, ast.Load())
        elif name == "grad":
            self.grads.update(self.differentiable[:1])
            self._use("grad", name, node)
        elif name == "grads":
            self.grads.update(self.differentiable)
            self._use("grads", name, node)
        elif name.startswith("grad_"):
            number = self.outputs.get(name[5:])
            self._use("grad_NAME", name[5:], node, number)
            if number is not None:
                self.grads.add(number)
                if len(self.differentiable) == 1:
                    return ast.Name("grad", ast.Load())
                return ast.Subscript(ast.Name("grads", ast.Load()), ast.Constant(number), ast.Load())
        else:
            self._use("unknown", name, node)
        return node


def _constant_index(node: ast.expr) -> int | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _constant_index(node.operand)
        return None if inner is None else -inner
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else None
