"""Numba kernels run by Python, so that drawn programs test their source without waiting for a compiler.

Compilation by Numba itself is tested with fewer programs, since each takes about a second.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import numpy as np

import viewgrad as vg
from viewgrad.compiler.backends.array_runtime import CAREFUL
from viewgrad.compiler.backends.backends import NumbaExecutor
from viewgrad.compiler.backends.codegen import Kernel
from viewgrad.compiler.backends.numba_cache import ARRAYS
from viewgrad.compiler.backends.scalar_runtime import FUNCTIONS, MATH
from viewgrad.compiler.backends.small_matrix import MATRIX_FUNCTIONS
from viewgrad.operators.codegen.source_cache import list_source


def divided(a: Any, b: Any) -> Any:
    """Return a quotient as Numba computes it, without an error for division by zero."""
    try:
        return a / b
    except ZeroDivisionError:
        return float(np.divide(a, b))


CALLED = {function.__name__: function for function in (*FUNCTIONS, *MATRIX_FUNCTIONS)}
GIVEN = {**MATH, **CALLED, **CAREFUL, **ARRAYS, "divided": divided}


class Quotients(ast.NodeTransformer):
    """Replaces divisions by calls of `divided`."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.op, ast.Div):
            return node
        called = ast.Call(ast.Name("divided", ast.Load()), [node.left, node.right], [])
        return ast.fix_missing_locations(ast.copy_location(called, node))


class InterpretedExecutor(NumbaExecutor):
    """Runs kernels written for Numba in Python."""

    def compiled(self, kernel: Kernel) -> Callable[..., int]:
        """Return the function `kernel` of a source."""
        name = f"<interpreted kernel {id(kernel)}>"
        space: dict[str, Any] = {**GIVEN, **kernel.functions}
        exec(compile(Quotients().visit(ast.parse(kernel.source)), name, "exec"), space)
        list_source(name, kernel.source, space["kernel"].__code__)
        return np.errstate(all="ignore")(space["kernel"])


def compiled_by(executor: str, f: Callable[..., Any], **options: Any) -> Any:
    """Call `vg.compile`, which then also accepts the executor "interpreted"."""
    if executor != "interpreted":
        return vg.compile(f, executor=executor, **options)
    compiled = vg.compile(f, executor="numba", **options)
    compiled.executor = InterpretedExecutor()
    return compiled
