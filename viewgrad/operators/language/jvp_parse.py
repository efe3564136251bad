"""Parsing of forward-mode formulas."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ...errors import DeclarationError
from .jvp_compile import SYMBOLS, ForwardFormula, Tangents
from .parsing import local_names, parse_expression, position_of, visit_arguments
from .rename import Renamed
from .spec import NOT_DIFFERENTIABLE, NOT_IMPLEMENTED, Formula, Signature, Use
from .validate import FormulaContext, check_count, declaration_error, not_implemented_call

AUTO_ELEMENTWISE: Final = "auto_element_wise"
AUTO_LINEAR: Final = "auto_linear"
KIND: Final = "forward-mode formula"


def read_tangents(
    signature: Signature,
    differentiable: Sequence[str],
    formulas: Sequence[Formula],
    rule: str | Mapping[str, str] | None,
    nondifferentiable: Sequence[str],
    compile: Callable[[str, str], Any],
    *,
    inplace: bool = False,
) -> Tangents | None:
    """Parse and check the forward-mode rule of a declaration.

    Arguments:
        signature: the signature of the operator.
        differentiable: the arguments that have a formula.
        formulas: the formulas.
        rule: the declared `forward_derivative`.
        nondifferentiable: the outputs through which no gradient flows.
        compile: a function that compiles a source and returns the function of the given name.
        inplace: whether this is an in-place variant's own declaration.
    """
    if rule is None:
        return None
    outputs = named = tuple(output for output in signature.outputs if output not in nondifferentiable)
    if not isinstance(rule, str):
        _check_outputs(signature, rule, outputs)
        parts = _outputs_of(rule)
        automatic = [part for part in parts if part[1].strip() in (AUTO_ELEMENTWISE, AUTO_LINEAR)]
        if not automatic:
            read = [_explicit(signature, differentiable, text, names, inplace) for names, text in parts]
            listed = "; ".join(f"{key}: {text}" for key, text in rule.items())
            return Tangents(signature, differentiable, read, compile, listed)
        named, rule = automatic[0]  # the only formula, for the only output; otherwise the error names its outputs
    text = rule.strip()
    context = FormulaContext(signature.name, rule, named, KIND)
    if text == AUTO_ELEMENTWISE:
        if len(differentiable) != 1 or len(outputs) != 1:
            raise _too_many(text, differentiable, outputs, context)
        formula = ForwardFormula(outputs, *_elementwise(signature, formulas[0]), context)
    elif text == AUTO_LINEAR:
        if len(outputs) != 1:
            raise _too_many(text, differentiable, outputs, context)
        formula = ForwardFormula(outputs, _linear(signature, differentiable), (), context)
    else:
        formula = _explicit(signature, differentiable, rule, outputs, inplace)
    return Tangents(signature, differentiable, [formula], compile, text)


def _outputs_of(rule: Mapping[str, str]) -> list[tuple[tuple[str, ...], str]]:
    """Return the formulas of a rule, each with the outputs named by its key."""
    return [(tuple(part.strip() for part in key.split(",")), text) for key, text in rule.items()]


def _check_outputs(signature: Signature, rule: Mapping[str, str], differentiable_outputs: Sequence[str]) -> None:
    """Check that a rule has one formula for each differentiable output, and none for others."""
    name = signature.name
    found: dict[str, str] = {}
    for outputs, text in _outputs_of(rule):
        for output in outputs:
            if output not in differentiable_outputs:
                what = "is not differentiable" if output in signature.outputs else "is not an output"
                raise declaration_error(
                    name,
                    f"there is a {KIND} for {output!r}, which {what}; those are {', '.join(differentiable_outputs)}",
                )
            if output in found:
                raise declaration_error(name, f"there are two {KIND}s for {output!r}: {found[output]!r} and {text!r}")
            found[output] = text
    for output in differentiable_outputs:
        if output not in found:
            raise declaration_error(name, f"the output {output!r} has no {KIND}; the others have")


def _too_many(
    rule: str, differentiable: Sequence[str], differentiable_outputs: Sequence[str], context: FormulaContext
) -> DeclarationError:
    """Return the error for a rule that supports only operators with fewer inputs or outputs."""
    if rule == AUTO_LINEAR:
        return context.error(1, f"{rule} needs one differentiable output, not {len(differentiable_outputs)}")
    counts = f"{len(differentiable)} and {len(differentiable_outputs)}"
    return context.error(1, f"{rule} needs one differentiable input and one differentiable output, not {counts}")


def _elementwise(signature: Signature, formula: Formula) -> tuple[ast.expr, tuple[Use, ...]]:
    """Return the forward-mode formula of an elementwise operator, whose Jacobian is diagonal.

    The backward formula multiplies by the conjugate of the derivative; conjugating before and after multiplies by the
    derivative itself.
    """
    (name,) = formula.inputs
    tangent = ast.Call(ast.Name("conj", ast.Load()), [ast.Name(f"{name}_t", ast.Load())], [])
    names: dict[str, ast.expr] = {
        argument.name: ast.Name(f"{argument.name}_p", ast.Load()) for argument in signature.tensors
    }
    names |= {"grad": tangent, f"grad_{signature.outputs[0]}": tangent}
    tree = Renamed(names).visit(parse_expression(formula.text))
    if formula.is_implemented:
        tree = ast.Call(ast.Name("conj", ast.Load()), [tree], [])
    return tree, ()


def _linear(signature: Signature, differentiable: Sequence[str]) -> ast.expr:
    """Return the forward-mode formula of an operator that is jointly linear in all its inputs."""
    tensors = {argument.name for argument in signature.tensors}

    def passed(name: str) -> ast.expr:
        suffix = "_t" if name in differentiable else "_p" if name in tensors else ""
        return ast.Name(name + suffix, ast.Load())

    if signature.name in ("add", "sub") and len(signature.arguments) == 2:
        first, second = (passed(argument.name) for argument in signature.arguments)
        return ast.BinOp(first, SYMBOLS[signature.name](), second)
    positional = [passed(argument.name) for argument in signature.arguments if not argument.keyword_only]
    keywords = [ast.keyword(a.name, passed(a.name)) for a in signature.arguments if a.keyword_only]
    return ast.Call(ast.Name(signature.name, ast.Load()), positional, keywords)


def _explicit(
    signature: Signature, differentiable: Sequence[str], text: str, outputs: tuple[str, ...], inplace: bool
) -> ForwardFormula:
    context = FormulaContext(signature.name, text, outputs, KIND)
    if text.strip() == NOT_DIFFERENTIABLE:
        raise context.error(1, "put the output into nondifferentiable_outputs instead")
    try:
        tree = parse_expression(text)
    except SyntaxError as error:
        raise context.error(error.offset or 1, f"syntax error: {error.msg}") from None
    reader = _ForwardReader(signature, differentiable, text, context, local_names(tree), inplace)
    tree = reader.visit(tree)
    check_count(tree, outputs, "tangent", context)
    if any(use.name == NOT_IMPLEMENTED for use in reader.uses):
        tree = not_implemented_call(tree, f"the tangent of {' and '.join(outputs)} of operator {signature.name!r}")
    return ForwardFormula(outputs, tree, tuple(reader.uses), context)


class _ForwardReader(ast.NodeTransformer):
    """Checks the names in a forward-mode formula, and normalizes those of tensors and outputs."""

    def __init__(
        self,
        signature: Signature,
        differentiable: Sequence[str],
        text: str,
        context: FormulaContext,
        local: set[str],
        inplace: bool,
    ) -> None:
        self.signature = signature
        self.differentiable = differentiable
        self.tensors = {argument.name for argument in signature.tensors}
        self.plain = {argument.name for argument in signature.plain}
        self.outputs = {output: output for output in signature.outputs}
        if len(signature.outputs) > 1:
            self.outputs |= {f"result{i}": output for i, output in enumerate(signature.outputs)}
        self.text = text
        self.context = context
        self.local = local
        self.inplace = inplace
        self.uses: list[Use] = []

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if isinstance(node.func, ast.Name) and node.func.id not in self.local and node.func.id not in self.plain:
            if node.func.id in self.outputs:
                raise self._error(node, f"{node.func.id!r} is an output here, so it cannot be called")
            if node.func.id == NOT_IMPLEMENTED and not re.fullmatch(
                rf"\s*{NOT_IMPLEMENTED}\((\"[^\"]*\"|'[^']*')\)\s*", self.text
            ):
                raise self._error(
                    node, f'{NOT_IMPLEMENTED} must be the whole formula, with a reason: {NOT_IMPLEMENTED}("reason")'
                )
            self.uses.append(Use("function", node.func.id, position_of(node.func, self.text)))
        else:
            node.func = self.visit(node.func)
        return visit_arguments(self, node)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        name = node.id
        if name in self.local or name in self.plain:
            return node
        if name in self.outputs:
            return ast.Name(self.outputs[name], ast.Load())
        if name in self.tensors:
            if name in self.differentiable:
                raise self._error(
                    node, f"{name!r} is ambiguous here; write {name}_p for its value, and {name}_t for its tangent"
                )
            return ast.Name(f"{name}_p", ast.Load())
        stem, suffix = name[:-2], name[-2:]
        if suffix == "_p" and stem in self.tensors:
            if self.inplace and stem == self.signature.arguments[0].name:
                raise self._error(
                    node,
                    f"{name!r} is the value before the write, which is gone when an in-place variant's tangent is "
                    "computed; read result",
                )
            return node
        if suffix == "_t" and stem in self.tensors:
            if stem not in self.differentiable:
                raise self._error(node, f"{stem!r} is not differentiable, so it has no tangent")
            return node
        if suffix in ("_p", "_t") and stem in self.plain:
            raise self._error(
                node, f"the input {stem!r} has no formula, so it is not a tensor; give it one, or read {stem!r} itself"
            )
        if re.fullmatch(r"result\d*", name):
            outputs = ", ".join(self.signature.outputs)
            raise self._error(node, f"no output is named {name!r}; the outputs are {outputs}")
        if name in ("grad", "grads") or name.startswith("grad_"):
            raise self._error(node, f"{name!r} is the incoming gradient, which forward mode does not have")
        tensors = ", ".join(f"{argument.name}_p" for argument in self.signature.tensors)
        tangents = ", ".join(f"{argument}_t" for argument in self.differentiable)
        plain = ", ".join(argument.name for argument in self.signature.plain) or "none"
        raise self._error(
            node,
            f"unknown name {name!r}; a {KIND} reads the inputs ({tensors}), their tangents ({tangents}), the "
            f"outputs ({', '.join(self.signature.outputs)}) and the other arguments ({plain})",
        )

    def _error(self, node: ast.AST, message: str) -> DeclarationError:
        return self.context.error(position_of(node, self.text), message)
