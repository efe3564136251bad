"""Compilation of forward-mode formulas to tangent functions.

A formula is specialized for each set of inputs that have a tangent. Terms with a zero tangent are dropped, so that a
constant costs nothing. The rest is compiled as a function of tensors.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import attrs

from .parsing import local_names, product_of
from .rename import formula_text
from .spec import Signature, Use
from .validate import FormulaContext

# Operators that are linear in each of their tensors, and therefore zero if one of these is zero.
BILINEAR: Final = frozenset({"cross", "dot", "flowing", "inner", "kron", "matmul", "mul", "outer", "vecdot"})
# Methods and attributes of a tensor that are linear in the tensor.
LINEAR: Final = frozenset("T astype conj imag mT mean real reshape squeeze sum swapaxes transpose unsqueeze".split())
SYMBOLS: Final[dict[str, type[ast.operator]]] = {
    "add": ast.Add,
    "div": ast.Div,
    "matmul": ast.MatMult,
    "mul": ast.Mult,
    "sub": ast.Sub,
}


@attrs.frozen
class ForwardFormula:
    """A parsed forward-mode formula.

    Arguments:
        outputs: the outputs whose tangents it computes; several if it returns a tuple.
        tree: the expression over `NAME_p`, `NAME_t`, the outputs and the plain arguments.
        uses: the functions it calls.
        context: its location in the declaration, for error messages.
    """

    outputs: tuple[str, ...]
    tree: ast.expr
    uses: tuple[Use, ...]
    context: FormulaContext


@attrs.frozen
class TangentFunction:
    """A compiled formula for one set of inputs that have tangents.

    Arguments:
        outputs: the outputs whose tangents it returns.
        names: the names of its arguments.
        function: the compiled function; None if the tangents are zero.
        source: its source.
        reads_result: whether it reads an output.
        in_place: a function that writes the result to `self_t`, if the formula is a single call of the operator itself.
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
        """Return the tangents of `outputs`, None for zero."""
        if self.function is None:
            return (None,) * len(self.outputs)
        result = self.function(*[values[name] for name in self.names])
        return result if len(self.outputs) > 1 else (result,)


class Tangents:
    """The computation of the tangents of an operator.

    Arguments:
        signature: the signature of the operator.
        differentiable: the arguments that may have tangents.
        formulas: the formulas of its outputs.
        compile: a function that compiles a source and returns the function of the given name.
        rule: the declared `forward_derivative`.
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
        """Return the compiled formulas for the case that exactly the arguments `present` have tangents."""
        functions = self._specialised.get(present)
        if functions is None:
            functions = self._specialised[present] = tuple(self._specialise(f, present) for f in self.formulas)
        return functions

    def source(self) -> str:
        """Return the Python source for the case that every input has a tangent, and of the in-place variant."""
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
        source = self._write(name, names, f"return {_unparse(tree, names, self.signature.name)}")
        function = self._compile(source, name)
        reads_result = any(name in self.signature.outputs for name in names)
        unchanged = isinstance(tree, ast.Name) and tree.id == "self_t"
        in_place = None
        rest = self._direct(product_of(tree)) if "self" in present else None
        if rest is not None:
            arguments = ["self_t", *self._names_in(rest)]
            call = _unparse(rest, arguments, self.signature.name).removeprefix("rest(")
            body = f"{self.signature.name}_(self_t{', ' if call != ')' else ''}{call}"
            if product_of(tree) is not tree:
                body = f"still = ops.still_elements(self_t)\n    {body}\n    ops.keep_still(self_t, still)"
            text = self._write(f"{name}_in_place", arguments, body)
            in_place = self._compile(text, f"{name}_in_place")
            source += "\n" + text
        return TangentFunction(formula.outputs, tuple(names), function, source, reads_result, in_place, unchanged)

    def _write(self, name: str, names: Sequence[str], body: str) -> str:
        return f"def {name}({', '.join(names)}):\n    {body}\n"

    def _names_in(self, tree: ast.AST) -> list[str]:
        """Return the names that a formula reads, in the order of the signature."""
        local = local_names(tree)
        found = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - local
        order = [f"{argument.name}_p" for argument in self.signature.tensors]
        order += [f"{argument.name}_t" for argument in self.signature.tensors]
        order += [*self.signature.outputs, *(argument.name for argument in self.signature.plain)]
        return [name for name in order if name in found]

    def _direct(self, tree: ast.expr) -> ast.Call | None:
        """Return the other arguments if `tree` is a single call of the operator itself on `self_t`."""
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


def _unparse(tree: ast.expr, names: Sequence[str], own: str) -> str:
    """Return a formula as source for tensors; called names that are not arguments are looked up among the operators."""
    return formula_text(tree, True, {*names, "rest"} | local_names(tree), own)


class _Specialiser:
    """Removes the parts of an expression that are linear in zero tangents; None represents zero.

    A zero tangent that remains as an argument of another function is passed as zeros.
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
        """Return the simplified expression, or the original one if that is zero."""
        simplified = self.simplified(tree)
        return tree if simplified is None else simplified
