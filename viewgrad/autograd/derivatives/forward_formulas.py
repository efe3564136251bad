"""Forward-mode formulas: how the tangent of an output is computed from the tangents of the inputs.

A formula is specialised for each set of inputs that have a tangent: what is multiplied by a tangent that is zero is
left out, so that a constant costs nothing. What remains is compiled, as a function of tensors.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import attrs

from .checker import Place, check_count, excuse, refuse
from .declaration import (
    NOT_DIFFERENTIABLE,
    NOT_IMPLEMENTED,
    DeclarationError,
    Formula,
    Signature,
    Use,
    local_names,
    parse_expression,
    position_of,
)

__all__ = ["ForwardFormula", "TangentFunction", "Tangents", "read_tangents"]

AUTO_ELEMENTWISE: Final = "auto_element_wise"
AUTO_LINEAR: Final = "auto_linear"
KIND: Final = "forward-mode formula"

# Operators that are linear in each of their tensors, and so zero where one of them is.
BILINEAR: Final = frozenset({"cross", "dot", "inner", "kron", "matmul", "mul", "outer", "vecdot"})
# Methods and attributes of a tensor that are linear in it.
LINEAR: Final = frozenset(
    {
        "T",
        "astype",
        "conj",
        "imag",
        "mT",
        "mean",
        "real",
        "reshape",
        "squeeze",
        "sum",
        "swapaxes",
        "transpose",
        "unsqueeze",
    }
)
SYMBOLS: Final[dict[str, type[ast.operator]]] = {
    "add": ast.Add,
    "div": ast.Div,
    "matmul": ast.MatMult,
    "mul": ast.Mult,
    "sub": ast.Sub,
}


@attrs.frozen
class ForwardFormula:
    """A forward-mode formula, taken apart.

    Arguments:
        outputs: the outputs whose tangents it gives; several where it returns a tuple.
        tree: the expression over `NAME_p`, `NAME_t`, the outputs and the plain arguments.
        uses: the functions that it calls.
        place: where it stands, for errors.
    """

    outputs: tuple[str, ...]
    tree: ast.expr
    uses: tuple[Use, ...]
    place: Place


@attrs.frozen
class TangentFunction:
    """A formula for one set of inputs that have tangents, compiled.

    Arguments:
        outputs: the outputs whose tangents it returns.
        names: the names of its arguments.
        function: what was compiled; None where the tangents are zero.
        source: what it was compiled from.
        reads_result: whether it reads an output.
        in_place: writes to `self_t` what the function would return, where that is one call of the operator itself.
        unchanged: whether the tangent of the output is that of `self`.
    """

    outputs: tuple[str, ...]
    names: tuple[str, ...]
    function: Callable[..., Any] | None
    source: str
    reads_result: bool
    in_place: Callable[..., Any] | None
    unchanged: bool

    def __call__(self, values: Mapping[str, Any]) -> tuple[Any, ...]:
        """The tangents of `outputs`, None for zero."""
        if self.function is None:
            return (None,) * len(self.outputs)
        result = self.function(*[values[name] for name in self.names])
        return result if len(self.outputs) > 1 else (result,)


class Tangents:
    """How the tangents of an operator are computed.

    Arguments:
        signature: of the operator.
        differentiable: the arguments that may have tangents.
        formulas: for its outputs.
        compile: compiles a source and returns the function of the name given.
        rule: what the declaration says.
    """

    def __init__(
        self,
        signature: Signature,
        differentiable: Sequence[str],
        formulas: Sequence[ForwardFormula],
        compile: Callable[[str, str], Any],
        rule: str,
    ) -> None:
        self.signature = signature
        self.differentiable = tuple(differentiable)
        self.formulas = tuple(formulas)
        self.rule = rule
        self._compile = compile
        self._specialised: dict[frozenset[str], tuple[TangentFunction, ...]] = {}

    def functions(self, present: frozenset[str]) -> tuple[TangentFunction, ...]:
        """The compiled formulas for the case that the arguments `present` have tangents, and no others."""
        functions = self._specialised.get(present)
        if functions is None:
            functions = self._specialised[present] = tuple(self._specialise(f, present) for f in self.formulas)
        return functions

    def source(self) -> str:
        """The Python source for the case that every input has a tangent, and for what is then done in place."""
        functions = list(self.functions(frozenset(self.differentiable)))
        if len(self.differentiable) > 1 and "self" in self.differentiable:
            functions += [function for function in self.functions(frozenset({"self"})) if function.in_place is not None]
        return "\n".join(function.source for function in functions)

    def _specialise(self, formula: ForwardFormula, present: frozenset[str]) -> TangentFunction:
        missing = {f"{name}_t" for name in self.differentiable if name not in present}
        tree = _Specialiser(missing).simplified(formula.tree)
        name = f"{self.signature.name}_tangent"
        if len(present) < len(self.differentiable):
            name += "_from_" + "_and_".join(n for n in self.differentiable if n in present)
        if tree is None:
            return TangentFunction(
                formula.outputs, (), None, f"# {', '.join(formula.outputs)}: zero\n", False, None, False
            )
        names = self._names_in(tree)
        source = self._write(name, names, f"return {_unparse(tree, names)}")
        function = self._compile(source, name)
        reads_result = any(name in self.signature.outputs for name in names)
        unchanged = isinstance(tree, ast.Name) and tree.id == "self_t"
        in_place = None
        rest = self._direct(tree) if "self" in present else None
        if rest is not None:
            arguments = ["self_t", *self._names_in(rest)]
            call = _unparse(rest, arguments).removeprefix("rest(")
            body = f"{self.signature.name}_(self_t{', ' if call != ')' else ''}{call}"
            text = self._write(f"{name}_in_place", arguments, body)
            in_place = self._compile(text, f"{name}_in_place")
            source += "\n" + text
        return TangentFunction(formula.outputs, tuple(names), function, source, reads_result, in_place, unchanged)

    def _write(self, name: str, names: Sequence[str], body: str) -> str:
        return f"def {name}({', '.join(names)}):\n    {body}\n"

    def _names_in(self, tree: ast.AST) -> list[str]:
        """The names that a formula reads, in the order of the signature."""
        local = local_names(tree)
        found = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - local
        order = [f"{argument.name}_p" for argument in self.signature.tensors]
        order += [f"{argument.name}_t" for argument in self.signature.tensors]
        order += [*self.signature.outputs, *(argument.name for argument in self.signature.plain)]
        return [name for name in order if name in found]

    def _direct(self, tree: ast.expr) -> ast.Call | None:
        """Where `tree` is one call of the operator itself on `self_t`: a call of its other arguments."""
        rest: ast.Call | None = None
        if isinstance(tree, ast.BinOp) and type(tree.op) is SYMBOLS.get(self.signature.name):
            left, right = tree.left, tree.right
            if self.signature.name in ("add", "mul") and isinstance(right, ast.Name) and right.id == "self_t":
                left, right = right, left
            if isinstance(left, ast.Name) and left.id == "self_t":
                rest = ast.Call(ast.Name("rest", ast.Load()), [right], [])
        elif isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and tree.func.id == self.signature.name:
            if tree.args and isinstance(tree.args[0], ast.Name) and tree.args[0].id == "self_t":
                rest = ast.Call(ast.Name("rest", ast.Load()), tree.args[1:], tree.keywords)
        if rest is None:
            return None
        names = self._names_in(rest)
        if "self_t" in names or "self_p" in names or any(name in self.signature.outputs for name in names):
            return None
        return rest


def _unparse(tree: ast.expr, names: Sequence[str]) -> str:
    """A formula as source, for tensors: what is called and is no argument is looked up among the operators."""
    from_operators = _FromOperators({*names, "rest"} | local_names(tree))
    return ast.unparse(from_operators.visit(ast.parse(ast.unparse(tree), mode="eval").body))


class _FromOperators(ast.NodeTransformer):
    def __init__(self, names: set[str]) -> None:
        self.names = names

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id not in self.names:
            node.func = ast.Attribute(ast.Name("ops", ast.Load()), node.func.id, ast.Load())
        return node


class _Specialiser:
    """Leaves out of an expression what is linear in tangents that are zero; None stands for an expression that is zero.

    Where a zero tangent remains as an argument of some function, its name stays, and stands for zeros.
    """

    def __init__(self, missing: set[str]) -> None:
        self.missing = missing

    def simplified(self, tree: ast.expr) -> ast.expr | None:
        if not any(isinstance(node, ast.Name) and node.id in self.missing for node in ast.walk(tree)):
            return tree
        match tree:
            case ast.Name():
                return None
            case ast.BinOp(op=ast.Add() | ast.Sub()):
                left, right = self.simplified(tree.left), self.simplified(tree.right)
                if right is None:
                    return left
                if left is None:
                    return right if isinstance(tree.op, ast.Add) else ast.UnaryOp(ast.USub(), right)
                return ast.BinOp(left, tree.op, right)
            case ast.BinOp(op=ast.Mult() | ast.MatMult()):
                left, right = self.simplified(tree.left), self.simplified(tree.right)
                return None if left is None or right is None else ast.BinOp(left, tree.op, right)
            case ast.BinOp(op=ast.Div()):
                left = self.simplified(tree.left)
                return None if left is None else ast.BinOp(left, tree.op, self._whole(tree.right))
            case ast.UnaryOp(op=ast.USub() | ast.UAdd()):
                operand = self.simplified(tree.operand)
                return None if operand is None else ast.UnaryOp(tree.op, operand)
            case ast.Attribute(attr=name) if name in LINEAR:
                value = self.simplified(tree.value)
                return None if value is None else ast.Attribute(value, name, ast.Load())
            case ast.Subscript():
                value = self.simplified(tree.value)
                return None if value is None else ast.Subscript(value, tree.slice, ast.Load())
            case ast.Call(func=ast.Attribute(attr=name)) if name in LINEAR:
                function = self.simplified(tree.func)
                return None if function is None else ast.Call(function, tree.args, tree.keywords)
            case ast.Call(func=ast.Name(id=name)):
                arguments = [self.simplified(argument) for argument in tree.args]
                if name in BILINEAR and None in arguments:
                    return None
                return ast.Call(tree.func, [self._whole(argument) for argument in tree.args], tree.keywords)
            case ast.Tuple():
                return ast.Tuple([self.simplified(item) or ast.Constant(None) for item in tree.elts], ast.Load())
        return tree

    def _whole(self, tree: ast.expr) -> ast.expr:
        """The expression simplified where it isn't zero, and as it is where it is."""
        simplified = self.simplified(tree)
        return tree if simplified is None else simplified


# -- reading -----------------------------------------------------------------------------------------------------------


def read_tangents(
    signature: Signature,
    differentiable: Sequence[str],
    formulas: Sequence[Formula],
    rule: str | Mapping[str, str] | None,
    silent: Sequence[str],
    compile: Callable[[str, str], Any],
    *,
    inplace: bool = False,
) -> Tangents | None:
    """Read and check what a declaration says of forward mode.

    Arguments:
        signature: the operator's.
        differentiable: the arguments that have a formula.
        formulas: those formulas.
        rule: what the declaration says.
        silent: the outputs through which no gradient flows.
        compile: compiles a source and returns the function of the name given.
        inplace: whether this is an in-place variant's own declaration.
    """
    if rule is None:
        return None
    speaking = tuple(output for output in signature.outputs if output not in silent)
    name = signature.name
    if isinstance(rule, str):
        text = rule.strip()
        place = Place(name, rule, speaking, KIND)
        if text == AUTO_ELEMENTWISE:
            if len(differentiable) != 1 or len(speaking) != 1:
                raise _too_many(text, differentiable, speaking, place)
            read = [ForwardFormula(speaking, *_elementwise(signature, formulas[0]), place)]
        elif text == AUTO_LINEAR:
            if len(speaking) != 1:
                raise _too_many(text, differentiable, speaking, place)
            read = [ForwardFormula(speaking, _linear(signature, differentiable), (), place)]
        else:
            read = [_explicit(signature, differentiable, rule, speaking, inplace)]
        return Tangents(signature, differentiable, read, compile, text)
    read = []
    found: dict[str, str] = {}
    for key, text in rule.items():
        outputs = tuple(part.strip() for part in key.split(","))
        for output in outputs:
            if output not in speaking:
                what = "is not differentiable" if output in signature.outputs else "is no output"
                raise refuse(name, f"there is a {KIND} for {output!r}, which {what}; those are {', '.join(speaking)}")
            if output in found:
                raise refuse(name, f"there are two {KIND}s for {output!r}: {found[output]!r} and {text!r}")
            found[output] = text
        if text.strip() in (AUTO_ELEMENTWISE, AUTO_LINEAR) and len(speaking) > 1:
            raise _too_many(text.strip(), differentiable, speaking, Place(name, text, outputs, KIND))
        if text.strip() in (AUTO_ELEMENTWISE, AUTO_LINEAR):
            return read_tangents(signature, differentiable, formulas, text, silent, compile, inplace=inplace)
        read.append(_explicit(signature, differentiable, text, outputs, inplace))
    for output in speaking:
        if output not in found:
            raise refuse(name, f"the output {output!r} has no {KIND}; the others have")
    return Tangents(signature, differentiable, read, compile, "; ".join(f"{key}: {text}" for key, text in rule.items()))


def _too_many(rule: str, differentiable: Sequence[str], speaking: Sequence[str], place: Place) -> DeclarationError:
    """The error of a rule for operators with less inputs or outputs."""
    if rule == AUTO_LINEAR:
        return place.error(1, f"{rule} needs one differentiable output, not {len(speaking)}")
    counts = f"{len(differentiable)} and {len(speaking)}"
    return place.error(1, f"{rule} needs one differentiable input and one differentiable output, not {counts}")


def _elementwise(signature: Signature, formula: Formula) -> tuple[ast.expr, tuple[Use, ...]]:
    """The forward-mode formula of an elementwise operator, whose derivative is a diagonal matrix.

    The backward formula multiplies by the conjugate of the derivative; conjugating before and after multiplies by the
    derivative itself.
    """
    (name,) = formula.inputs
    tangent = ast.Call(ast.Name("conj", ast.Load()), [ast.Name(f"{name}_t", ast.Load())], [])
    names: dict[str, ast.expr] = {
        argument.name: ast.Name(f"{argument.name}_p", ast.Load()) for argument in signature.tensors
    }
    names |= {"grad": tangent, f"grad_{signature.outputs[0]}": tangent}
    tree = _Renamed(names).visit(parse_expression(formula.text))
    if formula.is_implemented:
        tree = ast.Call(ast.Name("conj", ast.Load()), [tree], [])
    return tree, ()


class _Renamed(ast.NodeTransformer):
    def __init__(self, names: Mapping[str, ast.expr]) -> None:
        self.names = names

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if not isinstance(node.func, ast.Name):
            node.func = self.visit(node.func)
        node.args = [self.visit(argument) for argument in node.args]
        for keyword in node.keywords:
            keyword.value = self.visit(keyword.value)
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.names.get(node.id, node)


def _linear(signature: Signature, differentiable: Sequence[str]) -> ast.expr:
    """The forward-mode formula of an operator that is linear in all its inputs together."""
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
    place = Place(signature.name, text, outputs, KIND)
    if text.strip() == NOT_DIFFERENTIABLE:
        raise place.error(1, "put the output into nondifferentiable_outputs instead")
    try:
        tree = parse_expression(text)
    except SyntaxError as error:
        raise place.error(error.offset or 1, f"syntax error: {error.msg}") from None
    reader = _ForwardReader(signature, differentiable, text, place, local_names(tree), inplace)
    tree = reader.visit(tree)
    check_count(tree, outputs, "tangent", place)
    if any(use.name == NOT_IMPLEMENTED for use in reader.uses):
        tree = excuse(tree, f"the tangent of {' and '.join(outputs)} of operator {signature.name!r}")
    return ForwardFormula(outputs, tree, tuple(reader.uses), place)


class _ForwardReader(ast.NodeTransformer):
    """Checks the names in a forward-mode formula, and makes those of tensors and outputs uniform."""

    def __init__(
        self,
        signature: Signature,
        differentiable: Sequence[str],
        text: str,
        place: Place,
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
        self.place = place
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
                raise self._error(node, f'{NOT_IMPLEMENTED} stands alone, with the reason: {NOT_IMPLEMENTED}("reason")')
            self.uses.append(Use("function", node.func.id, position_of(node.func, self.text)))
        else:
            node.func = self.visit(node.func)
        node.args = [self.visit(argument) for argument in node.args]
        for keyword in node.keywords:
            keyword.value = self.visit(keyword.value)
        return node

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
                node, f"the input {stem!r} has no formula, so it is no tensor; give it one, or read {stem!r} itself"
            )
        if re.fullmatch(r"result\d*", name):
            outputs = ", ".join(self.signature.outputs)
            raise self._error(node, f"no output is called {name!r}; the outputs are {outputs}")
        if name in ("grad", "grads") or name.startswith("grad_"):
            raise self._error(node, f"{name!r} is the incoming gradient, of which forward mode knows nothing")
        tensors = ", ".join(f"{argument.name}_p" for argument in self.signature.tensors)
        tangents = ", ".join(f"{argument}_t" for argument in self.differentiable)
        plain = ", ".join(argument.name for argument in self.signature.plain) or "none"
        raise self._error(
            node,
            f"unknown name {name!r}; a {KIND} reads the inputs ({tensors}), their tangents ({tangents}), the "
            f"outputs ({', '.join(self.signature.outputs)}) and the other arguments ({plain})",
        )

    def _error(self, node: ast.AST, message: str) -> DeclarationError:
        return self.place.error(position_of(node, self.text), message)
