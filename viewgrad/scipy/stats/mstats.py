"""`scipy.stats.mstats`: functions shared with `scipy.stats` accept tensors; all others are SciPy's, for plain arrays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import scipy.stats.mstats  # type: ignore[import-untyped]

from ...numpy.namespace import public_names
from . import order_statistics, samples, two_sample  # noqa: F401  # which fill in the table
from .axis_policy import MADE

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


def _counterpart(name: str) -> Any:
    value = getattr(scipy.stats.mstats, name)
    return MADE[name] if name in MADE and value is getattr(scipy.stats, name) else value


__all__ = public_names(scipy.stats.mstats)
globals().update({name: _counterpart(name) for name in __all__})
