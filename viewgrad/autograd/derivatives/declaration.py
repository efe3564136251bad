"""A derivative declaration: one row of the table of operators, as data."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import attrs

from ...errors import DeclarationError

__all__ = ["Argument", "DeclarationError", "Formula", "InPlace", "Operator", "Signature", "Use", "parse_signature"]

METADATA: Final = ("shape", "dtype", "ndim", "size", "strides")
LIST_METADATA: Final = ("shapes", "dtypes")
# What a function of one tensor argument is kept as, when it can be had without keeping the tensor.
METADATA_CALLS: Final = {"TensorGeometry": ("geometry",), "zeros_like": ("shape", "dtype")}
NOT_DIFFERENTIABLE: Final = "not_differentiable"
NOT_IMPLEMENTED: Final = "not_implemented"


@attrs.frozen
class Argument:
    """One argument of an operator.

    Arguments:
        name: its name.
        kind: "tensor", "tensors" (a list of tensors) or "plain".
        default: the source text of its default, or None where it has none.
        keyword_only: whether it comes after a `*`.
        annotation: the source text of its annotation, or None.
    """

    name: str
    kind: str
    default: str | None = None
    keyword_only: bool = False
    annotation: str | None = None

    @property
    def optional(self) -> bool:
        """Whether a tensor argument may be None."""
        return self.default == "None"


@attrs.frozen
class Signature:
    """Name, arguments and outputs of an operator."""

    name: str
    arguments: tuple[Argument, ...]
    outputs: tuple[str, ...]

    @property
    def tensors(self) -> tuple[Argument, ...]:
        """The arguments that are a tensor, or a list of them."""
        return tuple(argument for argument in self.arguments if argument.kind != "plain")

    @property
    def plain(self) -> tuple[Argument, ...]:
        """The arguments that are neither."""
        return tuple(argument for argument in self.arguments if argument.kind == "plain")

    def argument(self, name: str) -> Argument:
        """The argument of that name."""
        return next(argument for argument in self.arguments if argument.name == name)

    def parameters(self) -> str:
        """The text between the parentheses of a function with these arguments."""
        parts = []
        starred = False
        for argument in self.arguments:
            if argument.keyword_only and not starred:
                parts.append("*")
                starred = True
            parts.append(argument.name if argument.default is None else f"{argument.name}={argument.default}")
        return ", ".join(parts)

    def call(self, rename: Callable[[str], str] = str) -> str:
        """The text between the parentheses of a call that passes these arguments on."""
        return ", ".join(
            f"{argument.name}={rename(argument.name)}" if argument.keyword_only else rename(argument.name)
            for argument in self.arguments
        )

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of a call by name, without those that were left out."""
        positional = [argument.name for argument in self.arguments if not argument.keyword_only]
        return {**dict(zip(positional, args, strict=False)), **kwargs}

    def __str__(self) -> str:
        arrow = f" -> ({', '.join(self.outputs)})" if len(self.outputs) > 1 else ""
        return f"{self.name}({self.parameters()}){arrow}"


def parse_signature(text: str, tensors: Mapping[str, str]) -> Signature:
    """Read `"name(self, other, *, option=1) -> (first, second)"`.

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
        raise DeclarationError(f"operator {text!r}: the signature cannot be read: it is to be 'name(arguments)'")
    outputs = tuple(part.strip() for part in tail.strip().strip("()").split(",") if part.strip()) or ("result",)
    if not all(output.isidentifier() for output in outputs):
        raise DeclarationError(f"operator {text!r}: the outputs cannot be read: they are to be '-> (first, second)'")
    spec = function.args
    if spec.vararg or spec.kwarg or spec.posonlyargs:
        raise DeclarationError(f"operator {text!r}: *args, **kwargs and / are not supported; name every argument")
    defaults = [None] * (len(spec.args) - len(spec.defaults)) + [ast.unparse(default) for default in spec.defaults]
    keyword_defaults = [None if node is None else ast.unparse(node) for node in spec.kw_defaults]
    arguments = []
    for arg, default, keyword_only in (
        *((arg, default, False) for arg, default in zip(spec.args, defaults, strict=True)),
        *((arg, default, True) for arg, default in zip(spec.kwonlyargs, keyword_defaults, strict=True)),
    ):
        annotation = None if arg.annotation is None else ast.unparse(arg.annotation)
        arguments.append(Argument(arg.arg, tensors.get(arg.arg, "plain"), default, keyword_only, annotation))
    return Signature(function.name, tuple(arguments), outputs)


# -- formulas ----------------------------------------------------------------------------------------------------------


@attrs.frozen
class Use:
    """One use of a name in a formula.

    Arguments:
        kind: "argument", "metadata", "result", "grad", "grads", "grads[i]", "grad_NAME", "function" or "unknown".
        name: the name; of metadata, that of the argument or output.
        position: where it stands in the formula, counted from 1.
        detail: the output's number of a gradient, the attribute of metadata.
    """

    kind: str
    name: str
    position: int
    detail: Any = None


@attrs.frozen
class Formula:
    """A formula, taken apart.

    Arguments:
        text: as it was written.
        inputs: the arguments that it gives gradients for; several where it returns a tuple.
        tree: the expression, in which metadata are plain names (`self.shape` is `self_shape`).
        reads: the tensor arguments whose value it reads.
        results: the outputs whose value it reads.
        metadata: what it reads of tensor arguments that can be known without keeping them: name, argument, attribute.
        plain: the other arguments that it reads.
        grads: the outputs whose gradient it reads.
        functions: the names that it calls.
        uses: all names in it, with their positions.
    """

    text: str
    inputs: tuple[str, ...]
    tree: ast.expr
    reads: tuple[str, ...]
    results: tuple[str, ...]
    metadata: tuple[tuple[str, str, str], ...]
    plain: tuple[str, ...]
    grads: tuple[int, ...]
    functions: tuple[str, ...]
    uses: tuple[Use, ...]

    @property
    def kept(self) -> tuple[str, ...]:
        """What it reads of the node, apart from saved values: metadata and plain arguments."""
        return (*(entry[0] for entry in self.metadata), *self.plain)

    @property
    def is_implemented(self) -> bool:
        """Whether it is a formula, and no excuse."""
        return NOT_IMPLEMENTED not in self.functions


def parse_expression(text: str) -> ast.expr:
    """The expression in a formula's text.

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
    """Where a node of the expression stands in its text, counted from 1."""
    stripped = text.strip()
    lead = len(text) - len(text.lstrip())
    lines = stripped.splitlines(keepends=True)
    number: int = node.lineno - 1  # type: ignore[attr-defined]
    line = lines[number].encode()[: node.col_offset].decode()  # type: ignore[attr-defined]
    return lead + sum(map(len, lines[:number])) + len(line) + 1


def local_names(tree: ast.AST) -> set[str]:
    """The names that a formula binds itself, in comprehensions and lambdas."""
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return names | {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}


def parse_formula(text: str, inputs: tuple[str, ...], signature: Signature, silent: Iterable[str] = ()) -> Formula:
    """Read a formula over the arguments and outputs of `signature`.

    Arguments:
        text: the formula.
        inputs: the arguments that it gives gradients for.
        signature: of the operator.
        silent: the outputs through which no gradient flows.

    Raises:
        SyntaxError: with `offset` counted from the start of the text.
    """
    tree = parse_expression(text)
    reader = _Reader(signature, tuple(silent), text, local_names(tree))
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
    """Finds what a formula reads, and makes plain names of metadata, results and gradients."""

    def __init__(self, signature: Signature, silent: tuple[str, ...], text: str, local: set[str]) -> None:
        self.kinds = {argument.name: argument.kind for argument in signature.arguments}
        self.names = signature.outputs
        self.outputs = {name: i for i, name in enumerate(self.names)}
        if len(self.names) > 1:
            self.outputs |= {f"result{i}": i for i in range(len(self.names))}
        self.speaking = [i for i, name in enumerate(self.names) if name not in silent]
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
        node.args = [self.visit(argument) for argument in node.args]
        for keyword in node.keywords:
            keyword.value = self.visit(keyword.value)
        return node

    def _metadata_of_call(self, node: ast.Call, name: str) -> list[ast.expr]:
        """The metadata that stand for the call of `name` on an argument, where they do."""
        if name in METADATA_CALLS and len(node.args) == 1 and not node.keywords:
            (argument,) = node.args
            if isinstance(argument, ast.Name) and self.kinds.get(argument.id) == "tensor":
                return [self._metadata(argument, argument.id, part) for part in METADATA_CALLS[name]]
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
            self.grads.update(self.speaking[:1])
            self._use("grad", name, node)
        elif name == "grads":
            self.grads.update(self.speaking)
            self._use("grads", name, node)
        elif name.startswith("grad_"):
            number = self.outputs.get(name[5:])
            self._use("grad_NAME", name[5:], node, number)
            if number is not None:
                self.grads.add(number)
                if len(self.speaking) == 1:
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


# -- operators ---------------------------------------------------------------------------------------------------------


@attrs.frozen
class InPlace:
    """What a row says of its in-place variant itself, where that is not to be derived from the row.

    Arguments:
        forward: computes the new value from arrays; as that of the row where left out.
        derivatives: the formulas, in which `self` is the value before the write, and `result` the one after; those of
            the row where left out.
        forward_derivative: the tangent of the new value, from `result` and `self_t`, since the value before the write
            is gone; that of the row where left out.
    """

    forward: Callable[..., Any] | None = None
    derivatives: Mapping[str, str] | None = None
    forward_derivative: str | None = None


@attrs.define(eq=False)
class Operator:
    """One operator: its declaration, and what was generated from it.

    Arguments:
        signature: name, arguments and outputs.
        forward: computes the outputs from arrays.
        formulas: how gradients are computed.
        differentiable: the arguments that have a formula.
        nondifferentiable_outputs: the outputs through which no gradient flows.
        elementwise: whether the tensor arguments are broadcast against each other, and the output is shaped like them.
        forward_derivative: the forward-mode formula or rule.
        tangents: how tangents are computed: made of `forward_derivative`.
        has_inplace: whether there is an in-place variant.
        inplace_declaration: the operator that the in-place variant is made of, where the row states it itself.
        doc: what the operator computes, in a sentence.
        user_defined: whether it is none of the library's; then what its formulas give is checked in every backward
            pass.
        domain: of an elementwise operator, the interval from which the tests draw its arguments.
        kinds: the dtype kinds that it is for: "f", or "fc" where complex numbers make sense too.
        samples: draws arguments for the tests: `samples(rng)` is a list of `(args, kwargs)` with arrays for tensors.
        reference: computes the same from arrays in another way; the tests compare with it.
    """

    signature: Signature
    forward: Callable[..., Any]
    formulas: tuple[Formula, ...]
    differentiable: tuple[str, ...]
    nondifferentiable_outputs: tuple[str, ...] = ()
    elementwise: bool = False
    forward_derivative: str | Mapping[str, str] | None = None
    tangents: Any = None
    has_inplace: bool = False
    inplace_declaration: Operator | None = None
    doc: str = ""
    user_defined: bool = False
    domain: tuple[float, float] = (-2.0, 2.0)
    kinds: str = "f"
    samples: Callable[..., Any] | None = None
    reference: Callable[..., Any] | None = None
    sources: dict[str, str] = attrs.Factory(dict)
    function: Callable[..., Any] = attrs.field(default=None)
    inplace_function: Callable[..., Any] = attrs.field(default=None)
    node_class: Any = None
    compile_plain: Callable[[], tuple[Any, Any]] = attrs.field(default=None)

    @functools.cached_property
    def plain_functions(self) -> tuple[Any, Any]:
        """The function and its in-place variant, blind to every mode but grad mode."""
        return self.compile_plain()

    @property
    def name(self) -> str:
        """The operator's name."""
        return self.signature.name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def inplace(self, *args: Any, **kwargs: Any) -> Any:
        """Write the result over the first argument, and return that.

        Raises:
            DeclarationError: where the operator has no in-place variant.
        """
        if self.inplace_function is None:
            raise DeclarationError(f"operator {self.name!r} has no in-place variant; define it with inplace=True")
        return self.inplace_function(*args, **kwargs)

    def source(self) -> str:
        """The Python source that was generated from the declaration."""
        parts = list(self.sources.values())
        for declared in (self, self.inplace_declaration):
            if declared is not None and declared.tangents is not None:
                parts.append(declared.tangents.source())
        return "\n\n\n".join(part.strip("\n") for part in parts) + "\n"

    def saved(self, name: str) -> tuple[str, ...]:
        """What is kept for backward when the argument `name` needs a gradient.

        Arguments:
            name: a differentiable argument.

        Returns:
            Names of arguments and outputs whose values are saved, of metadata (`self_shape`) and of plain arguments.

        Raises:
            DeclarationError: for an argument that has no gradient.
        """
        if name not in self.differentiable:
            raise DeclarationError(
                f"operator {self.name!r} has no gradient for {name!r}, only for "
                f"{', '.join(self.differentiable) or 'nothing'}"
            )
        kept: dict[str, None] = {}
        for formula in self.formulas:
            if name in formula.inputs:
                for read in (*formula.reads, *formula.results, *formula.kept):
                    kept[read] = None
        return tuple(kept)

    def __repr__(self) -> str:
        return f"<operator {self.signature}>"
