"""Generation of Python source for expressions."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from ...operators.define import OPERATORS
from .ir import NEW, Call, Const, Dim, Get, Lazy, Op, Pull, Slice, Var
from .scalar_forms import ROW_OF_CLIP, ArrayText, array_formula, scalar_forward, scalar_gradient
from .value_types import Arr, Num, is_complex

INFIX: Final = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "pow": "**", "floor_divide": "//", "remainder": "%",
    "equal": "==", "not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=",
    "bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^",
}  # fmt: skip
SELECTING: Final = frozenset({"where", "positive", "nonzero", "finite", "as_float", "as_integer"})
PREFIX: Final = {"neg": "-", "positive": "+", "invert": "~"}
NUMPY: Final = {"conj": "conjugate"}


class ExpressionWriter:
    """Generates Python source for expressions.

    Arguments:
        native: whether kernels are for Numba, rather than for Python with lists.
        wraps: whether indices that are not known to be in range may be negative.
    """

    def __init__(self, native: bool, wraps: bool) -> None:
        self.native = native
        self.wraps = wraps
        self.in_kernel = False
        self.ran_before = False  # whether indices were checked in the forward program

    def text(self, expr: Any) -> str:
        """Return an expression as source."""
        text: str = getattr(self, f"of_{type(expr).__name__}")(expr)
        return text

    def part(self, expr: Any) -> str:
        """Return an expression as an operand, in parentheses if necessary."""
        text = self.text(expr)
        simple = isinstance(expr, (Var, Get, Dim)) or (isinstance(expr, Const) and not text.startswith("-"))
        return text if simple or (text.endswith(")") and isinstance(expr, (Call,))) else f"({text})"

    def of_Const(self, expr: Const) -> str:
        value = expr.value
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, float) and not np.isfinite(value):
            prefix = "" if self.in_kernel else "np."
            return f"{prefix}nan" if value != value else f"{prefix}inf" if value > 0 else f"-{prefix}inf"
        return repr(value)

    def of_Var(self, expr: Var) -> str:
        return expr.name

    def of_Dim(self, expr: Dim) -> str:
        if self.in_kernel and not self.native:
            return f"{expr.base.name}_shape{expr.axis}"
        return f"{expr.base.name}.shape[{expr.axis}]"

    def of_Get(self, expr: Get) -> str:
        return self.place(expr.base, expr.index, expr.safe)

    def place(self, base: Var, index: tuple[Any, ...], safe: bool) -> str:
        """Return a part of an array as source."""
        safe = safe or self.ran_before
        if not self.in_kernel:
            if is_element(index) and not safe and not self.wraps:
                items = [f"at({self.text(each)}, {base.name}.shape[{axis}])" if not isinstance(each, Const)
                         else self.text(each) for axis, each in enumerate(index)]
                return f"{base.name}[{', '.join(items)}]"
            return f"{base.name}[{self.index(index)}]"
        items = [self.text(each) for each in index]
        if not safe:
            function = "at_wrapped" if self.wraps else "at"
            if self.native:
                items = [f"{function}({item}, {base.name}.shape[{axis}])" for axis, item in enumerate(items)]
            elif not self.wraps:
                items = [f"not_negative({item})" if not isinstance(each, Const) else item
                         for item, each in zip(items, index)]
        if self.native:
            return f"{base.name}[{', '.join(items)}]"
        return base.name + "".join(f"[{item}]" for item in items)

    def index(self, index: Sequence[Any]) -> str:
        """Return the items of an index as source."""
        return self._items(index, "", lambda low, high, step: f"{low}:{high}" + (f":{step}" if step else ""))

    def slices(self, index: Sequence[Any]) -> str:
        """Return the items of an index as the source of slice objects."""
        return self._items(index, "None", lambda *parts: f"slice({', '.join(parts)})")

    def _items(self, index: Sequence[Any], missing: str, sliced: Callable[..., str]) -> str:
        def one(each: Any) -> str:
            if each is NEW:
                return "None"
            if isinstance(each, Slice):
                parts = each.low, each.high, each.step
                return sliced(*[missing if part is None else self.text(part) for part in parts])
            return self.text(each)

        return ", ".join(map(one, index))

    def of_Op(self, expr: Op) -> str:
        name, args = expr.name, expr.args
        dtypes = "".join(arg.kind.dtype for arg in args)
        if isinstance(expr.kind, Num):
            form = scalar_forward(name, dtypes)
            if form is not None and all(isinstance(arg.kind, Num) for arg in args):
                parts = [self.part(arg) for arg in args]
                if "f" not in dtypes or name in SELECTING:
                    return form.format(*parts)
                # Python's numbers adopt the other dtype
                if all(arg.kind.dtype == "f" or arg.kind.weak for arg in args):
                    parts = [f"rounded({part})" if arg.kind.weak and arg.kind.dtype in "df" else part
                             for arg, part in zip(args, parts)]
                text = form.format(*parts)
                return f"rounded({text})" if expr.kind.dtype == "f" and name != "as_single" else text
        if name in ("finite", "nonzero"):
            return self.text(args[0])
        parts, texts = [self.part(arg) for arg in args], [self.text(arg) for arg in args]
        if "f" in dtypes and isinstance(expr.kind, Arr):
            parts = texts = [self.typed(arg) for arg in args]
        if name in INFIX and len(args) == 2:
            return f"{parts[0]} {INFIX[name]} {parts[1]}"
        if name in PREFIX:
            return f"{PREFIX[name]}{parts[0]}"
        if name == "flowing":
            return f"flowing_arrays({', '.join(texts)})"
        if name == "clip_low":
            return f"np.clip({texts[0]}, {texts[1]}, None)"
        if name == "clip_high":
            return f"np.clip({texts[0]}, None, {texts[1]})"
        known = NUMPY.get(name, name)
        function = f"np.{known}" if hasattr(np, known) else f"rows.{name}"
        return f"{function}({', '.join(texts)})"

    def typed(self, arg: Any) -> str:
        """Return an operand combined with single-precision arrays, whose type determines the precision of the result.
        """
        if isinstance(arg.kind, Arr) or isinstance(arg, Const):
            return self.part(arg)
        if arg.kind.dtype == "f":
            return f"np.float32({self.text(arg)})"
        plain = {"d": "float", "l": "int", "?": "bool", "D": "complex"}[arg.kind.dtype]
        return f"{plain if arg.kind.weak else f'np.{np.dtype(arg.kind.dtype).name}'}({self.text(arg)})"

    def of_Lazy(self, expr: Lazy) -> str:
        parts = [self.part(arg) for arg in expr.args]
        if expr.name == "not":
            return f"not {parts[0]}"
        if expr.name == "if":
            if expr.kind.dtype in "df":
                parts[1:] = [f"{float(arg.value)!r}" if isinstance(arg, Const) else f"float({part})"
                             if arg.kind.dtype in "?l" else part for part, arg in zip(parts[1:], expr.args[1:])]
            return f"({parts[1]} if {parts[0]} else {parts[2]})"
        return f" {expr.name} ".join(parts)

    def argument(self, arg: Any, name: str) -> str:
        """Return an argument of a call as source."""
        if isinstance(arg, tuple):
            return f"({', '.join(map(self.text, arg))},)"
        return self.text(arg)

    def of_Call(self, expr: Call) -> str:
        name, options = expr.name, dict(expr.options)
        if name == "last_written":
            return f"last_written({self.text(expr.args[0])}, ({self.slices(options['index'])},))"
        if name == "tangent":
            given = [self.text(arg) for arg in expr.args] + [f"{key}={value!r}" for key, value in expr.options]
            return f"tangent_of({', '.join(given)})"
        if name == "sum_all":
            return f"np.add.reduce({self.text(expr.args[0])}, None)"
        if name == "sum" and not options and len(expr.args) == 1 and not isinstance(expr.args[0], tuple):
            return f"np.add.reduce({self.text(expr.args[0])}, None)"  # np.sum takes twice as long for small arrays
        args = [self.argument(arg, name) for arg in expr.args]
        if name in ("copy", "flatten"):
            return f"{args[0]}.{name}()"
        if name == "astype":
            return f"{args[0]}.astype({options['dtype']!r})"
        if name == "zeros" and options.get("dtype") == "float64":
            options = {}
        if name == "zeros_like":
            return f"np.zeros({args[0]}.shape{'' if options['dtype'] in ('d', 'float64') else _dtype_text(options)})"
        rest = [f"{key}={value!r}" for key, value in options.items()]
        if name in ("real", "imag"):
            return f"{args[0]}.{name}"
        if name == "diagonal":
            return f"writable(np.diagonal({', '.join([*args, *rest])}))"
        text = f"np.{name}({', '.join([*args, *rest])})"
        return f"viewed({args[0]}, {text})" if expr.is_view and name in ("reshape", "ravel") else text

    def of_Pull(self, expr: Pull) -> str:
        has_complex = reads_complex(expr)
        form = scalar_gradient(expr.name, expr.number, has_complex)
        operands = [each for each in (expr.grad, *expr.args, expr.result) if each is not None]
        if isinstance(expr.kind, Num) and form is not None and all(isinstance(each.kind, Num) for each in operands):
            texts = {"grad": self.part(expr.grad)}
            if expr.result is not None:
                texts["result"] = self.part(expr.result)
            return form.format(*["" if arg is None else self.part(arg) for arg in expr.args], **texts)
        formula, names = array_formula(expr.name, expr.number)
        row = OPERATORS["clip" if expr.name in ROW_OF_CLIP else expr.name]
        parts = [("grad", expr.grad), *zip(names, expr.args), (row.signature.outputs[0], expr.result)]
        texts = {name: f"({self.text(part)})" for name, part in parts if part is not None}
        arrays = {name: f"asarray{texts[name]}" for name, part in parts if part is not None and part.kind.ndim == 0}
        texts |= {name: "None" for name in ("min", "max") if expr.name in ROW_OF_CLIP and name not in names}
        for metadata, name, attribute in formula.metadata:
            texts[metadata] = f"np.asarray({texts.get(name, 'None')}).{attribute}"
        tree = ast.parse(ast.unparse(formula.tree), mode="eval").body
        return ast.unparse(ArrayText(texts, arrays, has_complex).visit(tree))


def is_element(index: Sequence[Any]) -> bool:
    """Return whether an index selects one element."""
    return all(each is not NEW and not isinstance(each, Slice) and isinstance(each.kind, Num) for each in index)


def reads_complex(expr: Pull) -> bool:
    """Return whether a gradient is complex or computed from complex numbers."""
    read = [each for each in (expr.grad, *expr.args, expr.result) if each is not None]
    return is_complex(expr.kind) or any(is_complex(each.kind) for each in read)


def _dtype_text(options: dict[str, Any]) -> str:
    """Return the dtype of a new array as source."""
    return f", {np.dtype(options['dtype']).name!r}"
