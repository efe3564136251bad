"""Functions and packages that know nothing of viewgrad, with its objects in the place of NumPy's."""

from .api import adopt
from .entry import AdoptedFunction, adopted_arguments, adopted_callable, adopting, original_callable

__all__ = ["AdoptedFunction", "adopt", "adopted_arguments", "adopted_callable", "adopting", "original_callable"]
