"""Examples for docstrings: a call of each operator on the first of its test samples that is small, and the result."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from viewgrad.operators.language.spec import Operator

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

from operator_samples import samples_of

__all__ = ["example_of"]

LARGEST = 24  # elements of an array in an example
LONGEST = 700  # characters of an example
# Arguments in place of a sample: eigenvalues of real matrices are real up to NumPy 2.4 if they can be, complex later.
CHOSEN = dict.fromkeys(("eig", "eigvals"), "vg.Tensor([[2.0, -1.0], [1.0, 2.0]])")


def example_of(operator: Operator, where: str, library: Any) -> str:
    """Return a session of one call, as text that `doctest` takes; empty where no sample is short enough.

    Arguments:
        operator: what is called.
        where: the expression that the user calls it by.
        library: the module that the session calls `vg`.
    """
    if operator.name in CHOSEN:
        line = f"{where}({CHOSEN[operator.name]})"
        return "\n".join([f">>> {line}", *repr(eval(line, {"vg": library})).split("\n")])
    for sample in samples_of(operator):
        leaves = [leaf for value in sample.bound().values() for leaf in (value if type(value) is list else [value])]
        if any(isinstance(leaf, np.ndarray) and leaf.size > LARGEST for leaf in leaves):
            continue
        parts = [_text(_short(value, operator)) for value in sample.args]
        parts += [f"{name}={_text(_short(value, operator))}" for name, value in sample.kwargs.items()]
        line = f"{where}({', '.join(parts)})"
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                result = repr(eval(line, {"vg": library}))
        except Exception:  # an argument has no text, or is invalid after it was shortened
            continue
        if len(line) + len(result) < LONGEST:
            return "\n".join([f">>> {line}", *(each or "<BLANKLINE>" for each in result.split("\n"))])
    return ""


def _short(value: Any, operator: Operator) -> Any:
    """Return arrays with fewer digits and, if their elements are independent, with fewer elements."""
    if isinstance(value, list):
        return [_short(item, operator) for item in value]
    if not isinstance(value, np.ndarray):
        return value
    if operator.elementwise and value.ndim == 2:
        value = value[0, :3]
    return np.round(value, 1) if value.dtype.kind in "fc" else value


def _text(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_text(item) for item in value)}]"
    return f"vg.Tensor({value.tolist()!r})" if isinstance(value, np.ndarray) else repr(value)
