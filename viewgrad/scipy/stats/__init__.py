"""`scipy.stats` for tensors: densities and distribution functions by their formulas, everything else SciPy's own.

A density, a distribution function and a quantile are differentiable with respect to the value and all parameters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import scipy.stats  # type: ignore[import-untyped]

from ...numpy.namespace import filled, public_names
from . import comparisons, fitting, samples
from .continuous import CONTINUOUS
from .discrete import DISCRETE
from .further import EXTREMES, LIFETIMES, SYMMETRIC
from .intervals import INTERVALS
from .multivariate import Dirichlet, MultivariateNormal

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


DISTRIBUTIONS = (*CONTINUOUS, *LIFETIMES, *EXTREMES, *SYMMETRIC, *INTERVALS, *DISCRETE)
MADE: dict[str, Any] = {
    **{distribution.name: distribution for distribution in DISTRIBUTIONS},
    **samples.MADE,
    **comparisons.MADE,
    **fitting.MADE,
    "multivariate_normal": MultivariateNormal(),
    "dirichlet": Dirichlet(),
}
__all__ = public_names(scipy.stats)
globals().update(filled(scipy.stats, MADE, frozenset(), {}))
