"""Adoption: run functions and packages written for NumPy with viewgrad's objects in place of NumPy's."""

from .api import adopt
from .entry import AdoptedFunction, adopted_arguments, adopted_callable, adopting, original_callable

__all__ = ["AdoptedFunction", "adopt", "adopted_arguments", "adopted_callable", "adopting", "original_callable"]
