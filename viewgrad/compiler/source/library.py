"""The operators and library functions that programs may use, with their names in the compiler."""

from __future__ import annotations

import ast
import builtins
import functools
import heapq
import itertools
import math
import operator
import sys
from typing import Any, Final

import numpy as np

from ...operators.define import OPERATORS
from ...operators.numpy_api.public import is_public, public_of
from ...operators.numpy_api.universal import UniversalFunction
from ...tensor.tensor import Tensor

# The rows of Python's operators.
BINARY_OPERATORS: Final = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floor_divide",
    ast.Mod: "remainder", ast.Pow: "pow", ast.BitAnd: "bitwise_and", ast.BitOr: "bitwise_or",
    ast.BitXor: "bitwise_xor", ast.LShift: "left_shift", ast.RShift: "right_shift",
}  # fmt: skip
UNARY_OPERATORS: Final = {ast.USub: "neg", ast.UAdd: "positive", ast.Invert: "invert"}
COMPARISONS: Final = {
    ast.Eq: "equal", ast.NotEq: "not_equal", ast.Lt: "less", ast.LtE: "less_equal", ast.Gt: "greater",
    ast.GtE: "greater_equal",
}  # fmt: skip
CREATORS: Final = frozenset(
    "zeros ones empty full zeros_like ones_like empty_like full_like eye identity arange linspace".split()
)
# Functions that return views of their first argument.
VIEWS: Final = frozenset("transpose swapaxes moveaxis squeeze expand_dims reshape ravel diagonal".split())
# Functions of arrays that return new arrays or numbers, and have no side effects.
PURE: Final = frozenset(
    """
    sum mean prod max min amax amin dot matmul outer inner vdot tensordot kron trace cumsum cumprod diff var std ptp
    median concatenate stack vstack hstack column_stack dstack tile repeat roll tril triu diag
    interp einsum sort argsort argmax argmin any all count_nonzero searchsorted take average
    nansum nanmean nanmax nanmin convolve correlate trapezoid logsumexp softmax log_softmax gradient
    percentile quantile pad meshgrid nonzero flatnonzero digitize isclose allclose array_equal vander
    unique histogram nan_to_num triu_indices tril_indices
    linalg.solve linalg.inv linalg.det linalg.slogdet linalg.cholesky linalg.norm linalg.eigvalsh linalg.eigh
    linalg.matrix_power linalg.lstsq linalg.pinv linalg.qr linalg.svd
    fft.fft fft.ifft fft.rfft fft.irfft fft.fft2 fft.ifft2 fft.fftshift fft.ifftshift
    maximum.accumulate minimum.accumulate take_along_axis
    """.split()
)
# Functions of arrays with several names.
ALIASES: Final = {"concat": "concatenate", "amax": "max", "amin": "min", "permute_dims": "transpose"}
# Row names of NumPy's elementwise functions with other names.
RENAMED: Final = {
    "subtract": "sub", "multiply": "mul", "divide": "div", "true_divide": "div", "negative": "neg", "power": "pow",
    "absolute": "abs", "conjugate": "conj", "mod": "remainder", "acos": "arccos", "asin": "arcsin", "atan": "arctan",
    "acosh": "arccosh", "asinh": "arcsinh", "atanh": "arctanh", "atan2": "arctan2", "radians": "deg2rad",
    "degrees": "rad2deg", "bitwise_not": "invert", "bitwise_left_shift": "left_shift",
    "bitwise_right_shift": "right_shift", "expit": "sigmoid", "fabs": "fabs",
}  # fmt: skip
# The elementwise operators without options.
ROWS: Final = frozenset({
    name for name, row in OPERATORS.items()
    if row.elementwise and not name.startswith("_") and len(row.signature.tensors) == len(row.signature.arguments)
})


# Functions of `math` that are rows, by NumPy's names.
MATH: Final = {
    name: RENAMED.get(name, {"lgamma": "gammaln", "pow": "pow"}.get(name, name))
    for name in (
        "acos acosh asin asinh atan atan2 atanh cbrt copysign cos cosh degrees erf erfc exp exp2 expm1 fabs fmod gamma "
        "hypot lgamma log log10 log1p log2 pow radians sin sinh sqrt tan tanh"
    ).split()
}


# Functions and classes of other standard modules.
OTHERS: Final[dict[Any, tuple[str, ...]]] = {
    functools: ("reduce",), heapq: ("heappush", "heappop", "heapify", "heappushpop", "heapreplace"),
    itertools: ("accumulate", "chain", "combinations", "combinations_with_replacement", "pairwise", "permutations",
                "product"),
    operator: ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "neg", "lt", "le", "gt", "ge", "eq", "ne"),
}  # fmt: skip


@functools.cache
def _names(loaded: int) -> dict[int, tuple[str, Any]]:
    """Return a dict from addresses to library functions and their names; keeping the functions prevents reuse of
    addresses.
    """
    found: dict[int, tuple[str, Any]] = {}

    def add(value: Any, name: str) -> None:
        if callable(value):
            found.setdefault(id(value), (name, value))

    for name in dir(builtins):
        add(getattr(builtins, name), f"builtins.{name}")
    for name in dir(math):
        add(getattr(math, name), f"math.{name}")
        add(_member("viewgrad.math", name), f"math.{name}")
    for module, names in OTHERS.items():
        for name in names:
            add(getattr(module, name), f"{module.__name__.lstrip('_')}.{name}")
    for name in dir(np.fft):
        if not name.startswith("_"):
            add(getattr(np.fft, name), f"numpy.fft.{name}")
            add(_member("viewgrad.numpy.fft", name), f"numpy.fft.{name}")
    for name in dir(np.linalg):
        if not name.startswith("_"):
            add(getattr(np.linalg, name), f"numpy.linalg.{name}")
            add(_member("viewgrad.numpy.linalg", name), f"numpy.linalg.{name}")
    for name in dir(np):
        if not name.startswith("_"):
            add(getattr(np, name), f"numpy.{name}")
            add(_member("viewgrad.numpy", name), f"numpy.{name}")
    for name, row in OPERATORS.items():
        known = RENAMED.get(name, name)
        add(row, f"numpy.{known}")
        add(row.function, f"numpy.{known}")
    return found


def _member(module: str, name: str) -> Any:
    """Return a member of one of the namespaces, if it has been imported."""
    try:
        return getattr(sys.modules.get(module), name, None)
    except Exception:  # names that are recomputed at each access
        return None


NAMESPACES: Final = ("viewgrad.math", "viewgrad.numpy", "viewgrad.numpy.linalg", "viewgrad.numpy.fft")


def library_name(value: Any) -> str | None:
    """Return the name of a library function, such as "numpy.sin" or "builtins.abs", or None for other functions."""
    try:
        found = _names(sum(name in sys.modules for name in NAMESPACES)).get(id(value))
    except TypeError:
        return None
    if found is not None and found[1] is value:
        return found[0]
    owner = getattr(value, "__self__", None)
    if is_public(value):
        return library_name(value.numpy)
    if type(owner) is UniversalFunction:
        owner = public_of(owner.numpy)
    if owner is not None and getattr(value, "__name__", "") in ("at", "reduce", "accumulate", "outer"):
        name_of_owner = library_name(owner)
        return None if name_of_owner is None else f"{name_of_owner}.{value.__name__}"
    if value is Tensor:
        return "numpy.array"
    module = str(getattr(value, "__module__", ""))
    name = str(getattr(value, "__name__", ""))
    if module.partition(".")[0] in ("viewgrad", "scipy") and name:
        if isinstance(value, np.ufunc) or callable(value):
            short = RENAMED.get(name, name)
            if short in ROWS or name in CREATORS:
                return f"numpy.{name}"
    return None


def row_of(name: str) -> str:
    """Return the row of an elementwise function."""
    return RENAMED.get(name, name)
