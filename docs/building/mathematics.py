"""Formulas of operators as mathematics: from Python expressions to MathML, which browsers draw.

A tensor is called by its name, `self` is `x`, and the result is `y`. A bar marks a gradient, a dot a tangent.
"""

from __future__ import annotations

import ast
import html
from collections.abc import Callable, Iterable

__all__ = ["equation", "expression"]

GREEK = {"alpha": "α", "beta": "β", "gamma": "γ", "eps": "ε", "lambd": "λ", "pi": "π"}
SIGNS = {
    ast.Eq: "=", ast.NotEq: "≠", ast.Lt: "&lt;", ast.LtE: "≤", ast.Gt: "&gt;", ast.GtE: "≥", ast.BitAnd: "∧",
    ast.BitOr: "∨", ast.And: "∧", ast.Or: "∨",
}  # fmt: skip
SUM, PRODUCT, UNARY, POWER, ATOM = range(5)


def equation(left: str, formula: str, values: dict[str, str]) -> str:
    """Return the equation `left = formula`, as a block element.

    Arguments:
        left: a name such as `grad_self` or `result_t`.
        formula: a Python expression, or several in parentheses.
        values: the mathematical names of names that differ from them.
    """
    writer = Writer(values)
    sides = writer.name(left) + "<mo>=</mo>" + writer.written(ast.parse(formula.strip(), mode="eval").body)
    return f'<math display="block"><mrow>{sides}</mrow></math>'


def expression(formula: str, values: dict[str, str]) -> str:
    """Return a formula as an inline element."""
    return f"<math><mrow>{Writer(values).written(ast.parse(formula.strip(), mode='eval').body)}</mrow></math>"


class Writer:
    """Writes one formula."""

    def __init__(self, values: dict[str, str]) -> None:
        self.values = values

    def name(self, name: str) -> str:
        """Return the name of a gradient, a tangent, a value or an option."""
        if name == "grad" or name.startswith("grad_"):
            return self._accented(name.removeprefix("grad").removeprefix("_") or "result", "¯")
        if name.endswith("_t"):
            return self._accented(name.removesuffix("_t"), "˙")
        return self._value(name.removesuffix("_p") if name.removesuffix("_p") in self.values else name)

    def _value(self, name: str) -> str:
        text = self.values.get(name, name)
        text = GREEK.get(text, text)
        head, _, index = text.partition("_")
        if index and len(head) == 1:
            return f"<msub><mi>{head}</mi><mi>{html.escape(index)}</mi></msub>"
        return f"<mi>{html.escape(text)}</mi>"

    def _accented(self, name: str, accent: str) -> str:
        if accent == "¯":  # drawn by the style sheet: few fonts have bars of every width
            return f'<mrow class="bar">{self._value(name)}</mrow>'
        return f'<mover>{self._value(name)}<mo class="dot" stretchy="false">{accent}</mo></mover>'

    def written(self, node: ast.expr, least: int = SUM) -> str:
        """Return the MathML of an expression, in parentheses if it binds less tightly than `least`."""
        method: Callable[[ast.expr], tuple[str, int]] = getattr(self, f"_{type(node).__name__}", self._as_code)
        text, strength = method(node)
        return text if strength >= least else self._parenthesised(text)

    def _parenthesised(self, text: str) -> str:
        return f"<mrow><mo>(</mo>{text}<mo>)</mo></mrow>"

    def _as_code(self, node: ast.expr) -> tuple[str, int]:
        return f"<mtext>{html.escape(ast.unparse(node))}</mtext>", ATOM

    def _Name(self, node: ast.Name) -> tuple[str, int]:
        return self.name(node.id), ATOM

    def _Constant(self, node: ast.Constant) -> tuple[str, int]:
        value = node.value
        if isinstance(value, bool) or not isinstance(value, int | float):
            return f"<mtext>{html.escape(repr(value))}</mtext>", ATOM
        return f"<mn>{value:.6g}</mn>", ATOM

    def _Tuple(self, node: ast.Tuple) -> tuple[str, int]:
        return self._parenthesised(self._listed(node.elts)), ATOM

    def _listed(self, nodes: Iterable[ast.expr]) -> str:
        return "<mo>,</mo>".join(self.written(node) for node in nodes)

    def _BinOp(self, node: ast.BinOp) -> tuple[str, int]:
        left, right, kind = node.left, node.right, type(node.op)
        if kind is ast.Div:
            return f"<mfrac>{self._row(left)}{self._row(right)}</mfrac>", PRODUCT
        if kind is ast.Pow:
            return f"<msup>{self._row(left, ATOM)}{self._row(right)}</msup>", POWER
        if kind in (ast.Mult, ast.MatMult):
            dot = "<mo>·</mo>" if kind is ast.Mult else '<mspace width=".2em"/>'
            return self.written(left, PRODUCT) + dot + self.written(right, UNARY), PRODUCT
        if kind in (ast.Add, ast.Sub):
            sign = "+" if kind is ast.Add else "−"
            return f"{self.written(left)}<mo>{sign}</mo>{self.written(right, SUM + (kind is ast.Sub))}", SUM
        if kind in SIGNS:
            return f"{self.written(left, PRODUCT)}<mo>{SIGNS[kind]}</mo>{self.written(right, PRODUCT)}", SUM
        return self._as_code(node)

    def _row(self, node: ast.expr, least: int = SUM) -> str:
        return f"<mrow>{self.written(node, least)}</mrow>"

    def _UnaryOp(self, node: ast.UnaryOp) -> tuple[str, int]:
        sign = {ast.USub: "−", ast.Not: "¬", ast.Invert: "¬", ast.UAdd: "+"}[type(node.op)]
        return f"<mo>{sign}</mo>{self.written(node.operand, PRODUCT)}", PRODUCT

    def _BoolOp(self, node: ast.BoolOp) -> tuple[str, int]:
        return f"<mo>{SIGNS[type(node.op)]}</mo>".join(self.written(part, PRODUCT) for part in node.values), SUM

    def _Compare(self, node: ast.Compare) -> tuple[str, int]:
        text = self.written(node.left, PRODUCT)
        for operation, right in zip(node.ops, node.comparators):
            sign = SIGNS.get(type(operation))
            if sign is None:
                return self._as_code(node)
            text += f"<mo>{sign}</mo>{self.written(right, PRODUCT)}"
        return text, SUM

    def _IfExp(self, node: ast.IfExp) -> tuple[str, int]:
        return self._cases(node.test, node.body, node.orelse), PRODUCT

    def _cases(self, condition: ast.expr, then: ast.expr, otherwise: ast.expr) -> str:
        lines = [self._case(then, condition)]
        while True:  # cases among the others are lines of the same table
            match otherwise:
                case ast.Call(func=ast.Name(id="where"), args=[condition, then, rest]):
                    pass
                case ast.Call(func=ast.Name(id="masked_fill"), args=[rest, condition, then]):
                    pass
                case _:
                    break
            lines.append(self._case(then, condition))
            otherwise = rest
        lines.append(f"<mtr><mtd>{self.written(otherwise)}</mtd><mtd><mtext>elsewhere</mtext></mtd></mtr>")
        return f'<mtable class="cases">{"".join(lines)}</mtable>'

    def _case(self, value: ast.expr, condition: ast.expr) -> str:
        when = f"<mtext>where&#160;</mtext>{self.written(condition)}"
        return f"<mtr><mtd>{self.written(value)}</mtd><mtd>{when}</mtd></mtr>"

    def _Attribute(self, node: ast.Attribute) -> tuple[str, int]:
        if node.attr in ("shape", "ndim", "dtype", "size"):
            return f"<mrow><mi>{node.attr}</mi>{self._parenthesised(self.written(node.value))}</mrow>", ATOM
        if node.attr in ("real", "imag"):
            sign = {"real": "Re", "imag": "Im"}[node.attr]
            return f"<mi>{sign}</mi>{self.written(node.value, ATOM)}", PRODUCT
        return self._as_code(node)

    def _Subscript(self, node: ast.Subscript) -> tuple[str, int]:
        return f"{self.written(node.value, ATOM)}<mtext>[{html.escape(ast.unparse(node.slice))}]</mtext>", ATOM

    def _Call(self, node: ast.Call) -> tuple[str, int]:
        if not isinstance(node.func, ast.Name):
            return self._as_code(node)
        known = getattr(self, f"_call_{node.func.id}", None)
        if known is not None and not node.keywords:
            try:
                result: tuple[str, int] = known(*node.args)
            except TypeError:  # arguments for which there is no mathematical notation
                pass
            else:
                return result
        arguments = [self.written(argument) for argument in node.args]
        arguments += [f"<mtext>{k.arg}=</mtext>{self.written(k.value)}" for k in node.keywords]
        inner = self._parenthesised("<mo>,</mo>".join(arguments))
        return f'<mi mathvariant="normal">{node.func.id}</mi><mo>&#8289;</mo>{inner}', ATOM

    # -- functions that have a sign of their own -----------------------------------------------------------------------

    def _call_flowing(self, product: ast.expr, _: ast.expr) -> tuple[str, int]:
        return self.written(product, PRODUCT), PRODUCT

    def _call_conj(self, value: ast.expr) -> tuple[str, int]:
        if isinstance(value, ast.Constant):
            return self.written(value), ATOM
        return f"<msup>{self._row(value, ATOM)}<mo>*</mo></msup>", POWER

    _call_conjugate = _call_conj

    def _call_adjoint(self, value: ast.expr) -> tuple[str, int]:
        return f"<msup>{self._row(value, ATOM)}<mi>H</mi></msup>", POWER

    def _call_square(self, value: ast.expr) -> tuple[str, int]:
        return f"<msup>{self._row(value, ATOM)}<mn>2</mn></msup>", POWER

    def _call_sqrt(self, value: ast.expr) -> tuple[str, int]:
        return f"<msqrt>{self.written(value)}</msqrt>", ATOM

    def _call_exp(self, value: ast.expr) -> tuple[str, int]:
        return f"<msup><mi>e</mi>{self._row(value)}</msup>", POWER

    def _call_abs(self, value: ast.expr) -> tuple[str, int]:
        return f"<mrow><mo>|</mo>{self.written(value)}<mo>|</mo></mrow>".replace("|", "&#124;"), ATOM

    def _call_matmul(self, left: ast.expr, right: ast.expr) -> tuple[str, int]:
        return f'{self.written(left, PRODUCT)}<mspace width=".2em"/>{self.written(right, PRODUCT)}', PRODUCT

    def _call_where(self, condition: ast.expr, then: ast.expr, otherwise: ast.expr) -> tuple[str, int]:
        return self._cases(condition, then, otherwise), PRODUCT

    def _call_masked_fill(self, value: ast.expr, mask: ast.expr, fill: ast.expr) -> tuple[str, int]:
        return self._cases(mask, fill, value), PRODUCT

    def _call_zeros_like(self, _: ast.expr) -> tuple[str, int]:
        return "<mn>0</mn>", ATOM

    def _call_nonzero_or_one(self, value: ast.expr) -> tuple[str, int]:
        return self.written(value, ATOM), ATOM
