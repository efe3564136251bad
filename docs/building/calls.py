"""Examples of names whose docstrings have none: calls from `calls.txt`, run when the site is built."""

from __future__ import annotations

import ast
import contextlib
import functools
import io
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import viewgrad as vg

__all__ = ["CALLS", "example"]

LINES = (Path(__file__).resolve().parent / "calls.txt").read_text().splitlines()
CALLS = dict(line.split(": ", 1) for line in LINES if line and not line.startswith("#"))
MADE = {
    "x": "x = vg.Tensor([1.0, 2.0, 3.0])",
    "t": "t = vg.Tensor([1.0, 2.0, 3.0])",
    "m": "m = vg.Tensor([[1.0, 2.0], [3.0, 4.0]])",
    "z": "z = vg.Tensor([1.0 + 2.0j, 3.0 - 1.0j])",
    "n": "n = vg.Tensor([1, 2, 3])",
    "a": "a = vg.Tensor([1.0, 2.0], requires_grad=True)",
    "g": "g = vg.symbolic.trace(lambda x: x * x + x * x, vg.ones(2))",
}


@functools.cache
def example(name: str) -> str:
    """Return a console session with the call of `name` and its result; empty if there is none."""
    if name not in CALLS:
        return ""
    tree = ast.parse(CALLS[name])
    read = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    names: dict[str, Any] = {"vg": vg}
    lines = [line for key, line in MADE.items() if key in read]
    for line in lines:
        exec(line, names)
    session = [f">>> {line}" for line in lines]
    for statement in tree.body:
        session.append(f">>> {ast.unparse(statement)}".replace("\n", "\n... "))
        shown = _printed(statement, names)
        if shown:
            session.append(shown)
    return "\n".join(session)


def _printed(statement: ast.stmt, names: dict[str, Any]) -> str:
    printed = io.StringIO()
    hook = sys.displayhook
    sys.displayhook = lambda value: None if value is None else print(repr(value))
    try:
        with (
            contextlib.redirect_stdout(printed),
            warnings.catch_warnings(),
            np.printoptions(precision=4, suppress=True),
        ):
            warnings.simplefilter("ignore")
            exec(compile(ast.Interactive([statement]), "<example>", "single"), names)
    finally:
        sys.displayhook = hook
    return printed.getvalue().rstrip()
