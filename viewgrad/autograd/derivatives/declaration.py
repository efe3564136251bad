"""A derivative declaration: one row of the table of operators, read and checked."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Mapping
from typing import Any

import attrs

__all__ = ["Argument", "DeclarationError", "Formula", "Operator", "Signature", "parse_signature"]

METADATA = ("shape", "dtype", "ndim", "size", "strides")
LIST_METADATA = ("shapes", "dtypes")


class DeclarationError(ValueError):
    """A declaration that cannot be right, found when the operator is defined."""


@attrs.frozen
class Argument:
    """One argument of an operator.

    Arguments:
        name: its name.
        kind: "tensor", "tensors" (a list of tensors) or "plain".
        default: the source text of its default, or None where it has none.
        keyword_only: whether it comes after a `*`.
    """

    name: str
    kind: str
    default: str | None = None
    keyword_only: bool = False

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
        outputs = tuple(part.strip() for part in tail.strip().strip("()").split(",")) if tail.strip() else ("result",)
    except SyntaxError as error:
        raise DeclarationError(f"operator {text!r}: the signature cannot be read: {error.msg}") from None
    assert isinstance(function, ast.FunctionDef)
    spec = function.args
    if spec.vararg or spec.kwarg:
        raise DeclarationError(f"operator {text!r}: *args and **kwargs are not supported; name every argument")
    arguments = []
    defaults = [None] * (len(spec.args) - len(spec.defaults)) + [ast.unparse(default) for default in spec.defaults]
    for arg, default in zip(spec.args, defaults, strict=True):
        arguments.append(Argument(arg.arg, tensors.get(arg.arg, "plain"), default))
    for arg, node in zip(spec.kwonlyargs, spec.kw_defaults, strict=True):
        default = None if node is None else ast.unparse(node)
        arguments.append(Argument(arg.arg, tensors.get(arg.arg, "plain"), default, keyword_only=True))
    return Signature(function.name, tuple(arguments), outputs)


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


def parse_formula(text: str, inputs: tuple[str, ...], signature: Signature) -> Formula:
    """Read a formula over the arguments and outputs of `signature`."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise DeclarationError(
            f"operator {signature.name!r}, formula {text!r} for {', '.join(inputs)}: "
            f"syntax error at position {error.offset}: {error.msg}"
        ) from None
    reader = _Reader(signature)
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
    )


class _Reader(ast.NodeTransformer):
    """Finds what a formula reads, and makes plain names of metadata and results."""

    def __init__(self, signature: Signature) -> None:
        self.kinds = {argument.name: argument.kind for argument in signature.arguments}
        self.outputs = {name: i for i, name in enumerate(signature.outputs)}
        if len(signature.outputs) > 1:
            self.outputs |= {f"result{i}": i for i in range(len(signature.outputs))}
        self.names = signature.outputs
        self.reads: dict[str, None] = {}
        self.results: dict[str, None] = {}
        self.metadata: dict[tuple[str, str, str], None] = {}
        self.plain: dict[str, None] = {}
        self.grads: set[int] = set()
        self.functions: dict[str, None] = {}

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        if isinstance(node.value, ast.Name):
            name = node.value.id
            kind = self.kinds.get(name)
            if (kind == "tensor" and node.attr in METADATA) or (kind == "tensors" and node.attr in LIST_METADATA):
                return self._metadata(name, node.attr)
            if name in self.outputs and name not in self.kinds and node.attr in METADATA:
                output = self.names[self.outputs[name]]
                return self._metadata(output, node.attr)
        node.value = self.visit(node.value)
        return node

    def _metadata(self, name: str, attribute: str) -> ast.expr:
        self.metadata[f"{name}_{attribute}", name, attribute] = None
        return ast.Name(f"{name}_{attribute}", ast.Load())

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if isinstance(node.func, ast.Name):
            self.functions[node.func.id] = None
            arguments = node.args
            if len(arguments) == 1 and isinstance(arguments[0], ast.Name):
                name = arguments[0].id
                if self.kinds.get(name) == "tensor" and node.func.id == "TensorGeometry":
                    return self._metadata(name, "geometry")
        else:
            node.func = self.visit(node.func)
        node.args = [self.visit(argument) for argument in node.args]
        for keyword in node.keywords:
            keyword.value = self.visit(keyword.value)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        if isinstance(node.value, ast.Name) and node.value.id == "grads" and isinstance(node.slice, ast.Constant):
            self.grads.add(int(node.slice.value))
            return node
        self.generic_visit(node)
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        name = node.id
        kind = self.kinds.get(name)
        if kind == "plain":
            self.plain[name] = None
        elif kind is not None:
            self.reads[name] = None
        elif name in self.outputs:
            output = self.names[self.outputs[name]]
            self.results[output] = None
            return ast.Name(output, ast.Load())
        elif name == "grad":
            self.grads.add(0)
        elif name == "grads":
            self.grads.update(range(len(self.names)))
        elif name.startswith("grad_") and name[5:] in self.outputs:
            number = self.outputs[name[5:]]
            self.grads.add(number)
            return ast.Subscript(ast.Name("grads", ast.Load()), ast.Constant(number), ast.Load())
        return node


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
        has_inplace: whether there is an in-place variant.
        doc: what the operator computes, in a sentence.
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
    has_inplace: bool = False
    doc: str = ""
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
        """Write the result over the first argument."""
        if self.inplace_function is None:
            raise DeclarationError(f"operator {self.name!r} has no in-place variant")
        return self.inplace_function(*args, **kwargs)

    def source(self) -> str:
        """The Python source that was generated from the declaration."""
        return "\n\n".join(self.sources.values())

    def saved(self, name: str) -> tuple[str, ...]:
        """What is kept for backward when the argument `name` needs a gradient."""
        kept: dict[str, None] = {}
        for formula in self.formulas:
            if name in formula.inputs:
                for read in (*formula.reads, *formula.results, *(entry[0] for entry in formula.metadata), *formula.plain):
                    kept[read] = None
        return tuple(kept)

    def __repr__(self) -> str:
        return f"<operator {self.signature}>"
