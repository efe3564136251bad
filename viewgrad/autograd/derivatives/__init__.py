"""The operators under their former name: `viewgrad.operators`."""

from ...operators import OPERATORS, define_op

__all__ = ["OPERATORS", "define_op"]
