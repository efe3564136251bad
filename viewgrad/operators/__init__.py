"""Differentiable operators: declarations, the language of formulas, and code generation."""

from . import derivatives
from .define import OPERATORS, define_op

__all__ = ["OPERATORS", "define_op", "derivatives"]


def __dir__() -> list[str]:
    return sorted(__all__)
