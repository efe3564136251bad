"""Python's operators for classes that wrap a tensor, defined by their `__array_ufunc__`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np

ARITHMETIC: Final = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.true_divide, "pow": np.power,
    "floordiv": np.floor_divide, "mod": np.remainder, "matmul": np.matmul, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}  # fmt: skip
COMPARISONS: Final = {
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal,
}  # fmt: skip


def define_operators(cls: Any, names: Iterable[str]) -> None:
    """Define comparisons and arithmetic operators of a class, including reflected and in-place ones.

    Arguments:
        cls: the class. Its method `_assign` writes the result of an in-place operator into the object.
        names: the names of the arithmetic operators, such as "add".
    """
    for name in names:
        _define(cls, name, ARITHMETIC[name], False)
        _define(cls, name, ARITHMETIC[name], True)
        if name != "matmul":
            _define_in_place(cls, name, ARITHMETIC[name])
    for name, ufunc in COMPARISONS.items():
        _define(cls, name, ufunc, False)
    cls.__hash__ = None  # as for arrays, which compare elementwise


def defers_to(other: Any) -> bool:
    """Return whether the class of an operand, such as that of sparse arrays, computes with arrays itself."""
    return getattr(type(other), "__array_ufunc__", True) is None


def _define(cls: Any, name: str, ufunc: np.ufunc, reflected: bool) -> None:
    def operate(self: Any, other: Any) -> Any:
        if defers_to(other):
            return NotImplemented
        return self.__array_ufunc__(ufunc, "__call__", *((other, self) if reflected else (self, other)))

    operate.__name__ = f"__{'r' if reflected else ''}{name}__"
    setattr(cls, operate.__name__, operate)


def _define_in_place(cls: Any, name: str, ufunc: np.ufunc) -> None:
    def operate(self: Any, other: Any) -> Any:
        self._assign(self.__array_ufunc__(ufunc, "__call__", self, other))
        return self

    operate.__name__ = f"__i{name}__"
    setattr(cls, operate.__name__, operate)
