"""Attributes of numbers and arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..emitter import Emitter
from ..ir import Call, Dim, Op, Var
from ..value_types import INT, Arr, Num, is_complex
from ..values import Static, TupleValue, as_expr, kind_name


def as_variable(out: Emitter, expr: Any) -> Any:
    """Bind an expression to a variable and return the variable."""
    return expr if isinstance(expr, Var) else out.temporary(expr)


def attribute(out: Emitter, base: Any, name: str, node: Any) -> Any:
    """Return an attribute of a number or an array."""
    expr = as_expr(base)
    if expr is None:
        raise out.refused(f"attribute {name} of {kind_name(base)} is not supported", node)
    ndim = expr.kind.ndim
    if name == "ndim":
        return Static(ndim)
    if name == "dtype":
        return Static(np.dtype(expr.kind.dtype))
    if name == "shape":
        if not ndim:
            return TupleValue(())
        base = as_variable(out, expr)
        return TupleValue(tuple([Dim(base, axis) for axis in range(ndim)]))
    if name == "size":
        if not ndim:
            return Static(1)
        base = as_variable(out, expr)
        size: Any = Dim(base, 0)
        for axis in range(1, ndim):
            size = Op("mul", (size, Dim(base, axis)), INT)
        return size
    if name == "T":
        return expr if ndim < 2 else Call("transpose", (as_variable(out, expr),), (), expr.kind, is_view=True)
    if name == "real" and not is_complex(expr.kind):
        return expr
    if name in ("real", "imag") and is_complex(expr.kind):
        if not ndim:
            return Op(name, (out.lifted(expr),), Num("d"))
        return Call(name, (as_variable(out, expr),), (), Arr("d", ndim), is_view=True)
    raise out.refused(f"attribute {name} of {kind_name(base)} is not supported", node)
