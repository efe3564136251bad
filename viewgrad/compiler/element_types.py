"""The element types of programs: floats, bools and integers, and their representation in generated source.

Single precision is computed in double precision. Arrays of other dtypes are not compiled.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ..errors import NotCompiledError

SINGLE: Final = np.dtype(np.float32)
FLOAT: Final = np.dtype(float)
BOOL: Final = np.dtype(bool)
INTEGER: Final = np.dtype(np.int64)
HELD: Final = frozenset({FLOAT, BOOL, INTEGER})
LOWEST: Final = -(2**63)  # Numba does not treat its literal as a 64-bit integer


class Kind:
    """The element type of a dtype in generated source.

    Arguments:
        number: the corresponding class of Python numbers.
        zero: the literal of zero.
        made: the additional arguments of the call that creates an array.
    """

    def __init__(self, number: type, zero: str, made: str) -> None:
        self.number = number
        self.zero = zero
        self.made = made

    @property
    def to_number(self) -> str:
        """The source code that converts an element, or a single-element array, to a number."""
        return f"{self.number.__name__}({{}})"


KINDS: Final = {"f": Kind(float, "0.0", ""), "b": Kind(bool, "False", ", bool_"), "i": Kind(int, "0", ", int64")}
CHARS: Final = {float: FLOAT.char, bool: BOOL.char, int: INTEGER.char}


def kind_of(dtype: np.dtype[Any]) -> Kind:
    """Return the element type of a dtype in generated source."""
    return KINDS[dtype.kind]


def widened(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype in which programs store elements of a dtype; single precision is widened to double precision."""
    return FLOAT if dtype == SINGLE else dtype


def taped(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype in which values of a dtype are saved for the gradient; bools are saved as floats."""
    return INTEGER if dtype == INTEGER else FLOAT


def char_of(number: Any) -> str:
    """Return the character of the dtype of a Python number.

    Raises:
        NotCompiledError: for anything else.
    """
    found = CHARS.get(type(number))
    if found is None:
        raise NotCompiledError(f"a number of {type(number).__name__} is not compiled")
    return found


def as_number(number: Any, dtype: np.dtype[Any]) -> Any:
    """Convert a number to a dtype, as an assignment casts it."""
    if dtype.kind == "f":
        return float(number)
    if dtype.kind == "b":
        return bool(number)
    with np.errstate(invalid="ignore"):
        return int(np.asarray(number).astype(INTEGER))


def literal(value: Any) -> str:
    """Return a number as a literal in generated source.

    Raises:
        NotCompiledError: for the lowest 64-bit integer.
    """
    if value == LOWEST and type(value) is int:
        raise NotCompiledError(f"the number {LOWEST} is not compiled")
    if type(value) in (bool, int):
        return repr(value) if value >= 0 else f"({value})"
    if value != value:
        return "nan"
    if value in (np.inf, -np.inf):
        return "inf" if value > 0 else "(-inf)"
    text = repr(float(value))
    return f"({text})" if text.startswith("-") else text
