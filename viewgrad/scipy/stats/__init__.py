"""`scipy.stats` for tensors: differentiable distributions and statistics; everything else is SciPy's own.

Densities, distribution functions and quantiles are differentiable with respect to the value and all parameters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import scipy.stats  # type: ignore[import-untyped]

from ...numpy.namespace import filled, public_names
from . import fitting, mstats, order_statistics, samples, two_sample
from .axis_policy import MADE as STATISTICS
from .continuous import CONTINUOUS
from .discrete import DISCRETE
from .histogram import rv_histogram as rv_histogram
from .intervals import INTERVALS
from .lifetimes import BIRTHS, EXTREMES, LIFETIMES, SYMMETRIC
from .multivariate import Dirichlet, DirichletMultinomial, Multinomial, MultivariateNormal, MultivariateT, Wishart
from .noncentral import NONCENTRAL
from .stable import STABLE
from .unsupported import unsupported

if TYPE_CHECKING:
    from ..typed.stats import *  # noqa: F403

    def __getattr__(name: str) -> Any: ...


DISTRIBUTIONS = (*CONTINUOUS, *LIFETIMES, *BIRTHS, *EXTREMES, *SYMMETRIC, *INTERVALS, *NONCENTRAL, *STABLE, *DISCRETE)
MADE: dict[str, Any] = {
    **{distribution.name: distribution for distribution in DISTRIBUTIONS},
    **STATISTICS,
    "multivariate_normal": MultivariateNormal(),
    "dirichlet": Dirichlet(),
    "multinomial": Multinomial(),
    "dirichlet_multinomial": DirichletMultinomial(),
    "multivariate_t": MultivariateT(),
    "wishart": Wishart(),
    "rv_histogram": rv_histogram,
    "mstats": mstats,
}
MADE |= {name: each for name, each in unsupported().items() if name not in MADE}
__all__ = public_names(scipy.stats)
globals().update(filled(scipy.stats, MADE, frozenset(), {}))
