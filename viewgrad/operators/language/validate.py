"""Validation of declarations.

It reports mistakes at the definition that would otherwise appear much later, or never. A gradient that is silently
ignored is a wrong gradient. See Note [Validation of declarations] in docs/notes/declarations.md.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import attrs

from ...errors import DeclarationError
from .parsing import LIST_METADATA, METADATA, parse_formula
from .spec import NOT_DIFFERENTIABLE, NOT_IMPLEMENTED, Formula, Reading, Signature, Use

# The builtins that a formula may call.
BUILTINS: Final = frozenset(
    {"bool", "complex", "enumerate", "float", "int", "isinstance", "len", "list", "range", "tuple", "zip"}
)
# The names used internally by generated functions; see the modules in `operators/codegen`.
GENERATED: Final = re.compile(
    r"([aegr]|out)\d+|arrays|array|edges|grads_of_list|mode_bits|node|ops|recorded|saved|tensor|grad|grads|result\d*|grad_\w+|"
    r"_\w*"
)


def declaration_error(operator: str, message: str) -> DeclarationError:
    """Return an error about a declaration that concerns no single formula."""
    return DeclarationError(f"operator {operator!r}: {message}", operator)


class FormulaContext:
    """The formula of an operator that error messages refer to.

    Arguments:
        operator: the operator's name.
        formula: the text of the formula.
        what: the names of the inputs, or of the outputs for a forward-mode formula.
        kind: the kind of formula.
    """

    def __init__(self, operator: str, formula: str, what: Iterable[str], kind: str = "formula") -> None:
        self.operator = operator
        self.formula = formula
        self.what = ", ".join(what)
        self.kind = kind

    def error(self, position: int, message: str) -> DeclarationError:
        """Return an error with a message about a position in the formula."""
        return DeclarationError(
            f"operator {self.operator!r}, {self.kind} {self.formula!r} for {self.what}, position {position}: {message}",
            self.operator,
            self.formula,
            position,
        )


# -- the signature -----------------------------------------------------------------------------------------------------


def check_signature(
    signature: Signature,
    derivatives: Mapping[str, str],
    lists: Sequence[str],
    nondifferentiable: Sequence[str],
    reserved: Iterable[str],
) -> None:
    """Check the names of arguments and outputs, and that each input has exactly one formula.

    Arguments:
        signature: the signature of the operator.
        derivatives: the formulas, by input.
        lists: the arguments that are declared to be lists of tensors.
        nondifferentiable: the outputs through which no gradient flows.
        reserved: the names that generated code uses for functions.
    """
    arguments = {argument.name: argument for argument in signature.arguments}
    _check_argument_names(signature, set(reserved))
    _check_outputs(signature, nondifferentiable, set(reserved))
    name = signature.name
    seen: dict[str, str] = {}
    for key in derivatives:
        for part in key.split(","):
            part = part.strip()
            if part not in arguments:
                raise declaration_error(
                    name, f"there is a formula for {part!r}, but the arguments are {', '.join(arguments) or 'none'}"
                )
            if part in seen:
                raise declaration_error(
                    name, f"there are two formulas for {part!r}: {seen[part]!r} and {derivatives[key]!r}"
                )
            seen[part] = derivatives[key]
    for argument in signature.arguments:
        annotated = argument.annotation is not None and "Tensor" in argument.annotation
        if argument.name not in seen and (argument.name == "self" or argument.name in lists or annotated):
            raise declaration_error(
                name,
                f"the input {argument.name!r} has no formula; give it one, or {NOT_DIFFERENTIABLE!r}, "
                f"or '{NOT_IMPLEMENTED}(\"reason\")'",
            )
    for listed in lists:
        if listed not in arguments:
            raise declaration_error(
                name, f"lists has {listed!r}, but the arguments are {', '.join(arguments) or 'none'}"
            )
    if lists and len(signature.tensors) > 1:
        raise declaration_error(
            name, f"an operator with the list {lists[0]!r} can have no other tensor argument; put it into the list"
        )


def _check_argument_names(signature: Signature, reserved: set[str]) -> None:
    """Check that no argument has a name with another meaning in generated code."""
    name = signature.name
    arguments = {argument.name for argument in signature.arguments}
    reserved |= {f"{name}_forward", f"{name}_inplace_forward", f"{name}_operator"}
    for given in (argument.name for argument in signature.arguments):
        if GENERATED.fullmatch(given) or given in reserved:
            raise declaration_error(
                name, f"no argument can be called {given!r}, which generated code uses; choose another"
            )
        if given in signature.outputs:
            raise declaration_error(name, f"{given!r} is both an argument and an output")
    for argument in signature.tensors:
        for suffix in ("p", "t", *METADATA, *LIST_METADATA, "geometry"):
            if f"{argument.name}_{suffix}" in arguments:
                raise declaration_error(
                    name,
                    f"no argument can be called '{argument.name}_{suffix}', which stands for a part of "
                    f"{argument.name!r}",
                )


def _check_outputs(signature: Signature, nondifferentiable: Sequence[str], reserved: set[str]) -> None:
    """Check the names of the outputs, and that those without a gradient are among them."""
    name, outputs = signature.name, signature.outputs
    if len(set(outputs)) != len(outputs):
        raise declaration_error(name, f"two outputs have the same name: {', '.join(outputs)}")
    for output in outputs:
        if output != "result" and (GENERATED.fullmatch(output) or output in reserved):
            raise declaration_error(
                name, f"no output can be called {output!r}, which generated code uses; choose another name"
            )
    for output in nondifferentiable:
        if output not in outputs:
            raise declaration_error(
                name, f"nondifferentiable_outputs has {output!r}, but the outputs are {', '.join(outputs)}"
            )


# -- formulas ----------------------------------------------------------------------------------------------------------


def read_formulas(
    signature: Signature, derivatives: Mapping[str, str], nondifferentiable: Sequence[str], *, inplace: bool = False
) -> tuple[Formula, ...]:
    """Parse and check the formulas of an operator.

    Arguments:
        signature: the signature of the operator.
        derivatives: the formulas, by input.
        nondifferentiable: the outputs through which no gradient flows.
        inplace: whether there is an in-place variant.
    """
    formulas = []
    for key, text in derivatives.items():
        if text.strip() == NOT_DIFFERENTIABLE:
            continue
        inputs = tuple(name.strip() for name in key.split(","))
        context = FormulaContext(signature.name, text, inputs)
        try:
            formula = parse_formula(text, inputs, signature, nondifferentiable)
        except SyntaxError as error:
            raise context.error(error.offset or 1, f"syntax error: {error.msg}") from None
        check_count(formula.tree, inputs, "gradient", context)
        _check_names(signature, formula, context)
        _check_metadata(formula, context, inplace)
        if not formula.is_implemented:
            what = f"the gradient of {' and '.join(inputs)} of operator {signature.name!r}"
            formula = attrs.evolve(formula, tree=not_implemented_call(formula.tree, what))
        formulas.append(formula)
    _check_gradients(signature, formulas, nondifferentiable)
    return tuple(formulas)


def check_count(tree: ast.expr, wanted: Sequence[str], what: str, context: FormulaContext) -> None:
    """Check that a formula written as a tuple has one part for each name."""
    parts = len(tree.elts) if isinstance(tree, ast.Tuple) else None
    if parts is not None and (parts != len(wanted) or parts == 1):
        raise context.error(
            1, f"expected {len(wanted)} {what}{'s' * (len(wanted) > 1)}, not a tuple of {parts}"
        )


def not_implemented_call(tree: ast.expr, what: str) -> ast.expr:
    """Return the call of `not_implemented("reason")` for a derivative."""
    assert isinstance(tree, ast.Call)
    return ast.Call(tree.func, [ast.Constant(what), *tree.args], [])


def _check_names(signature: Signature, formula: Formula, context: FormulaContext) -> None:
    for use in formula.uses:
        if use.kind == "unknown":
            raise unknown_name(signature, use, context, "the incoming gradient (grad)")
        if use.kind == "grad_NAME" and use.detail is None:
            raise context.error(
                use.position, f"no output is named {use.name!r}; the outputs are {', '.join(signature.outputs)}"
            )
        if use.kind == "grads[i]" and not 0 <= use.detail < len(signature.outputs):
            raise context.error(
                use.position,
                f"grads[{use.detail}] is out of range; the operator has "
                + ("1 output" if len(signature.outputs) == 1 else f"{len(signature.outputs)} outputs"),
            )
        if use.kind == "function" and use.name in signature.outputs:
            raise context.error(use.position, f"{use.name!r} is an output here, so it cannot be called")
        if use.kind == "function" and use.name == NOT_IMPLEMENTED:
            if not re.fullmatch(rf"\s*{NOT_IMPLEMENTED}\((\"[^\"]*\"|'[^']*')\)\s*", formula.text):
                raise context.error(
                    use.position,
                    f'{NOT_IMPLEMENTED} must be the whole formula, with a reason: {NOT_IMPLEMENTED}("reason")',
                )


def unknown_name(signature: Signature, use: Use, context: FormulaContext, more: str) -> DeclarationError:
    """Return the error for an unknown name in a formula."""
    numbered = re.fullmatch(r"result\d*", use.name)
    if numbered:
        return context.error(
            use.position, f"no output is named {use.name!r}; the outputs are {', '.join(signature.outputs)}"
        )
    arguments = ", ".join(argument.name for argument in signature.arguments)
    return context.error(
        use.position,
        f"unknown name {use.name!r}; a formula reads the arguments ({arguments}), the outputs "
        f"({', '.join(signature.outputs)}) and {more}",
    )


def no_gradient(output: str, use: Use, context: FormulaContext) -> DeclarationError:
    """Return the error for reading a gradient that never arrives."""
    return context.error(use.position, f"no gradient arrives at {output!r}, which is in nondifferentiable_outputs")


def _check_metadata(formula: Formula, context: FormulaContext, inplace: bool) -> None:
    for use in formula.uses:
        if use.kind != "metadata" or use.detail not in ("strides", "geometry"):
            continue
        what = f"{use.name}.strides" if use.detail == "strides" else f"TensorGeometry({use.name})"
        if formula.inputs != (use.name,):
            raise context.error(use.position, f"{what} may be read only in a formula for {use.name!r} alone")
        if inplace:
            raise context.error(
                use.position,
                f"{what} may not be read in an operator with an in-place variant, whose strides may differ",
            )


def _check_gradients(signature: Signature, formulas: Sequence[Formula], nondifferentiable: Sequence[str]) -> None:
    """Check that the incoming gradients are named consistently, and that none is ignored."""
    name, outputs = signature.name, signature.outputs
    differentiable = [output for output in outputs if output not in nondifferentiable]
    implemented = [formula for formula in formulas if formula.is_implemented]
    first: dict[str, tuple[Use, FormulaContext]] = {}
    for formula in implemented:
        _note_gradients(signature, formula, nondifferentiable, first)
    if "grad_NAME" in first and len(first) > 1:
        use, context = first["grad_NAME"]
        other = "grad" if "grad" in first else "grads"
        raise context.error(use.position, f"grad_{use.name} cannot be mixed with {other}; name all gradients")
    if "grad" in first and "grads" in first:
        use, context = first["grad"]
        message = "grad cannot be mixed with grads; write grads[0] instead of grad, or name the gradients"
        raise context.error(use.position, message)
    all_uses = [use for formula in implemented for use in formula.uses]
    whole = any(use.kind == "grads" for use in all_uses)
    if "grads" in first and not whole and {use.detail for use in all_uses if use.kind == "grads[i]"} == {0}:
        use, context = first["grads"]
        raise context.error(
            use.position,
            "only grads[0] is used; if that is the only differentiable output, write grad and put the others into "
            "nondifferentiable_outputs; otherwise a gradient is ignored",
        )
    if "grads" in first and len(differentiable) == 1:
        use, context = first["grads"]
        raise context.error(use.position, f"only {differentiable[0]!r} is differentiable; write grad for its gradient")
    if "grad" in first and len(differentiable) > 1:
        use, context = first["grad"]
        named = " or ".join(f"grad_{output}" for output in differentiable)
        raise context.error(
            use.position, f"{len(differentiable)} outputs are differentiable; for grad, write grads[i], or {named}"
        )
    if implemented and formulas and len(implemented) == len(formulas) and len(differentiable) > 1:
        read = {number for formula in implemented for number in formula.grads}
        for output in differentiable:
            if outputs.index(output) not in read:
                raise declaration_error(
                    name, f"no formula reads the gradient of {output!r}; put that into nondifferentiable_outputs"
                )


def _note_gradients(
    signature: Signature,
    formula: Formula,
    nondifferentiable: Sequence[str],
    first: dict[str, tuple[Use, FormulaContext]],
) -> None:
    """Record the first use of each name of an incoming gradient, and check that at least one is used and valid."""
    context = FormulaContext(signature.name, formula.text, formula.inputs)
    uses = [use for use in formula.uses if use.kind in ("grad", "grads", "grads[i]", "grad_NAME")]
    if not uses:
        raise context.error(
            1,
            "no incoming gradient is used, so what follows the operator would be ignored; multiply the derivative "
            f"by grad, or, where it is zero, write 'zeros_like(grad)' or {NOT_DIFFERENTIABLE!r}",
        )
    for use in uses:
        first.setdefault("grads" if use.kind == "grads[i]" else use.kind, (use, context))
        if use.kind in ("grads[i]", "grad_NAME") and signature.outputs[use.detail] in nondifferentiable:
            raise no_gradient(signature.outputs[use.detail], use, context)


# -- names that may be defined later -----------------------------------------------------------------------------------


def check_functions(operator: str, reading: Reading, known: Callable[[str], bool]) -> None:
    """Check that all functions that formulas call exist.

    Arguments:
        operator: the name of the operator that they belong to.
        reading: the formulas.
        known: a function that returns whether a name may be called.
    """
    declared = reading.inplace_declaration
    for read in (reading,) if declared is None else (reading, declared.reading):
        for formula in read.formulas:
            _check_called(formula.uses, FormulaContext(operator, formula.text, formula.inputs), known)
        if read.tangents is not None:
            for rule in read.tangents.formulas:
                _check_called(rule.uses, rule.context, known)


def _check_called(uses: Iterable[Use], context: FormulaContext, known: Callable[[str], Any]) -> None:
    for use in uses:
        if use.kind == "function" and use.name not in BUILTINS and use.name != NOT_IMPLEMENTED and not known(use.name):
            raise context.error(
                use.position,
                f"unknown function {use.name!r}; a formula calls operators and functions of formula_function",
            )
