"""Kinds: the information that the source compiler has about a value before the program runs.

A kind consists of a dtype and a number of dimensions; lengths are not part of it.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any, Final

import attrs
import numpy as np

from ...operators.define import OPERATORS


@attrs.frozen
class Num:
    """The kind of a number.

    Attributes:
        dtype: the character of its dtype.
        weak: whether it may be a Python number, which adopts the dtype of other operands.
        boxed: whether it may be a 0-d array, which can be written to.
        least: the character of the least dtype that it has in some runs, as of a name that refers to an integer in one
            branch and to a floating-point number in another; "" if it has the same dtype in all runs.
    """

    dtype: str
    weak: bool = False
    boxed: bool = False
    least: str = ""

    ndim = 0

    def __str__(self) -> str:
        return np.dtype(self.dtype).name


@attrs.frozen
class Arr:
    """The kind of an array.

    Attributes:
        dtype: the character of its dtype.
        ndim: the number of dimensions, at least 1.
    """

    dtype: str
    ndim: int

    def __str__(self) -> str:
        return f"{np.dtype(self.dtype).name}[{', '.join(':' * self.ndim)}]"


Kind = Num | Arr
FLOAT: Final = Num("d")
INT: Final = Num("l", weak=True)
BOOL: Final = Num("?", weak=True)
ORDER: Final = "?ldD"  # the dtypes of Python's numbers
DTYPES: Final = "?ldfD"  # the characters of the dtypes supported in programs
WEAK: Final = {bool: BOOL, int: INT, float: Num("d", weak=True), complex: Num("D", weak=True)}
PYTHON: Final = {"?": True, "l": 1, "d": 1.0, "D": 1.0 + 0j}
# Samples of Python numbers, which adopt other dtypes.
BY_PYTHON: Final[dict[str, Callable[..., Any]]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv, "pow": operator.pow,
    "floor_divide": operator.floordiv, "remainder": operator.mod, "neg": operator.neg, "positive": operator.pos,
    "abs": abs, "bitwise_and": operator.and_, "bitwise_or": operator.or_, "bitwise_xor": operator.xor,
    "left_shift": operator.lshift, "right_shift": operator.rshift, "invert": operator.invert,
    "equal": operator.eq, "not_equal": operator.ne, "less": operator.lt, "less_equal": operator.le,
    "greater": operator.gt, "greater_equal": operator.ge,
}  # fmt: skip


def sample(kind: Kind, length: int = 1) -> Any:
    """Return a sample value of a kind, filled with ones."""
    if isinstance(kind, Arr):
        return np.ones((length,) * kind.ndim, kind.dtype)
    return PYTHON[kind.dtype] if kind.weak and kind.dtype in PYTHON else np.dtype(kind.dtype).type(1)


def kind_of(value: Any) -> Kind | None:
    """Return the kind of a number or an array, or None if it is neither."""
    if type(value) in WEAK:
        return WEAK[type(value)]
    if isinstance(value, np.ndarray):
        char = value.dtype.char
        return Arr(char, value.ndim) if value.ndim else Num(char)
    return Num(value.dtype.char) if isinstance(value, np.generic) else None


@functools.lru_cache(maxsize=4096)
def kind_of_operator(name: str, kinds: tuple[Kind, ...]) -> Kind:
    """Return the kind of the result of an elementwise operator, determined by applying it to samples.

    Raises:
        TypeError, ValueError: if it does not accept operands of these kinds.
    """
    if any(isinstance(kind, Num) and kind.least for kind in kinds):
        usual = kind_of_operator(name, tuple([with_dtype(kind, kind.dtype) for kind in kinds]))
        least = kind_of_operator(name, tuple([with_dtype(kind, getattr(kind, "least", "")) for kind in kinds]))
        if least == usual:
            return usual
        if isinstance(usual, Arr):
            raise TypeError("its operand has a different dtype in each branch")
        return attrs.evolve(usual, least=least.dtype)
    samples = [sample(kind) for kind in kinds]
    if name in BY_PYTHON and all(isinstance(kind, Num) and kind.weak for kind in kinds):
        found = kind_of(BY_PYTHON[name](*samples))
        if found is not None:
            return found
    row = OPERATORS[name]
    with np.errstate(all="ignore"):
        result = row.forward(*[_operand(each, samples) for each in samples])
    found = kind_of(np.asarray(result)[()] if not isinstance(result, np.ndarray) else result)
    if found is None:
        raise TypeError(f"{name} does not return a number")
    return found


def is_uncertain(kind: Any) -> bool:
    """Return whether a number has another dtype in some runs, depending on the branches taken."""
    return isinstance(kind, Num) and bool(kind.least)


def with_dtype(kind: Any, dtype: str) -> Any:
    """Return the kind of a number that has one of its dtypes in all runs; other kinds are returned unchanged."""
    return attrs.evolve(kind, dtype=dtype, least="") if isinstance(kind, Num) and kind.least else kind


def _operand(value: Any, samples: list[Any]) -> Any:
    """Return sample arguments of a forward function: arrays, or Python numbers combined with arrays."""
    if isinstance(value, (np.ndarray, np.generic)):
        return np.asarray(value)
    if any(isinstance(each, (np.ndarray, np.generic)) for each in samples):
        return value
    return np.asarray(value)


def joined(a: Kind, b: Kind) -> Kind | None:
    """Return the common kind of a variable that has one of two kinds, or None if there is none."""
    if a == b:
        return a
    if isinstance(a, Num) and isinstance(b, Num):
        boxed, weak = a.boxed or b.boxed, a.weak or b.weak
        if a.dtype == b.dtype:
            return Num(a.dtype, weak, boxed, min(a.least or b.least, b.least or a.least, key=ORDER.find))
        if {a.dtype, b.dtype} == {"f", "d"}:  # a Python number that adopted single precision
            return Num("f", True, boxed) if (a if a.dtype == "d" else b).weak else None
        if a.dtype in ORDER and b.dtype in ORDER and "?" not in (a.dtype, b.dtype):
            least = min(a.least or a.dtype, b.least or b.dtype, key=ORDER.index)
            return Num(max(a.dtype, b.dtype, key=ORDER.index), weak, boxed, least)
    return None


def is_complex(kind: Kind) -> bool:
    """Return whether a kind is complex."""
    return kind.dtype == "D"


def adjoint_kind(kind: Kind) -> Kind:
    """Return the kind of the adjoint of a value; adjoints are stored in double precision."""
    dtype = "D" if is_complex(kind) else "d"
    return Num(dtype) if isinstance(kind, Num) else Arr(dtype, kind.ndim)
