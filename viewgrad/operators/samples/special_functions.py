"""The samples for the operators of derivatives/special_functions.py."""

from __future__ import annotations

import numpy as np

from ..derivatives.special_functions import ndtr_plainly
from ..derivatives.stable_derivatives import special
from ..lazy_imports import LateFunction
from .cases import case, draws
from .trials import trial

__all__: list[str] = []


trial("ndtr", reference=ndtr_plainly)
trial("sinc", samples=draws(case((3, 4)), case(np.array([0.0, 1.0, -2.0, 1e-4])), case(())))
trial(
    "_sinc_derivative",
    samples=draws(*[case(shape, order) for order in (0, 1, 2, 5) for shape in ((3, 4), np.array([0.0, 1e-3, 0.6]))]),
)
trial("nan_to_num", samples=draws(case((3, 4)), case((4,), nan=1.0, neginf=-5.0), case(())))
trial("erfinv", domain=(-0.9, 0.9))
trial("ndtri", domain=(0.1, 0.9))
trial("log_ndtr", domain=(-6, 3))
trial("exp1", domain=(0.3, 3))
trial("expi", domain=(0.3, 3))
trial("logit", domain=(0.1, 0.9))
trial("entr", domain=(0.1, 3))
trial("gamma", domain=(0.3, 4))
trial("rgamma", domain=(0.3, 4))
trial("gammaln", domain=(0.3, 4))
trial("digamma", domain=(0.3, 4))
trial("betaln", domain=(0.3, 4))
trial("xlogy", domain=(0.3, 3))
trial("xlog1py", domain=(0.3, 3))
trial("rel_entr", domain=(0.3, 3))
OF_ORDER = draws(case(0, (3, 4)), case(2, (4,)), case(1, ()), domain=(0.5, 4))
trial("polygamma", samples=OF_ORDER, reference=LateFunction(special, "polygamma"))  # the only one that is no ufunc
for name in ("jv", "iv", "ive"):
    trial(name, samples=OF_ORDER)
for name in ("gammainc", "gammaincc"):
    trial(name, samples=draws(case(1, (3, 4)), case(2.5, (4,)), case(0.5, ()), domain=(0.5, 4)))
