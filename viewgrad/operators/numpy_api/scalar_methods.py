"""The attributes of NumPy scalars that arrays do not have, for 0-d tensors.

A program for which `isinstance(x, float)` is true may call `x.is_integer()`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np

from ...errors import AutogradError
from ...tensor.escapes import has_history
from ...tensor.tensor import Tensor
from ...tensor.trace_hooks import array_of

__all__: list[str] = []


def _is_integer(self: Tensor) -> bool:
    """Return whether the value is an integer."""
    return bool(np.isfinite(self) & (np.floor(self) == self))


def _plain(name: str) -> Callable[[Tensor], Any]:
    """Wrap a method of Python numbers whose result has no derivative."""

    def method(self: Tensor) -> Any:
        if self.requires_grad or has_history(self):
            has = "requires grad" if self.requires_grad else "has a tangent"
            raise AutogradError(
                f"{name}() of a tensor that {has} returns numbers or text, through which no gradient flows; "
                "statistics.mean() and fractions.Fraction() call it: use np.mean(), or detach() first"
            )
        return getattr(array_of(self, f"{name}()").item(), name)()

    return method


# For each name, the kinds of numbers that have the attribute, its kind, and its implementation.
METHODS: Final[dict[str, tuple[str, str, Callable[[Tensor], Any]]]] = {
    "is_integer": ("biuf", "bool", _is_integer),
    "as_integer_ratio": ("f", "tuple[int, int]", _plain("as_integer_ratio")),
    "hex": ("f", "str", _plain("hex")),
    "bit_count": ("iu", "int", lambda self: abs(array_of(self, "bit_count()").item()).bit_count()),
}
ATTRIBUTES: Final[dict[str, tuple[str, str, Callable[[Tensor], Any]]]] = {
    "numerator": ("iu", "Tensor", lambda self: self),
    "denominator": ("iu", "Tensor", lambda self: Tensor(1, dtype=self.dtype)),
}


def _attribute(name: str, kinds: str, result: str, get: Callable[[Tensor], Any]) -> property:
    def found(self: Tensor) -> Any:
        if self.ndim or self.dtype.kind not in kinds or not hasattr(self.dtype.type, name):
            raise AttributeError(f"a tensor of {self.ndim} dimensions and {self.dtype} has no attribute {name!r}")
        return get(self)

    found.__annotations__ = {"return": result}
    found.__doc__ = f"The attribute `{name}` of a NumPy scalar; only for 0-d tensors."
    return property(found)


def _install() -> None:
    for name, (kinds, result, method) in METHODS.items():
        setattr(Tensor, name, _attribute(name, kinds, f"Callable[[], {result}]", partial(partial, method)))
    for name, (kinds, result, get) in ATTRIBUTES.items():
        setattr(Tensor, name, _attribute(name, kinds, result, get))


_install()
