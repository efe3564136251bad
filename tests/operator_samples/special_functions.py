"""The samples for the operators of derivatives/special_functions.py."""

from __future__ import annotations

import numpy as np

from viewgrad.operators.derivatives.special_functions import ndtr_plainly
from viewgrad.operators.derivatives.stable_derivatives import special
from viewgrad.operators.lazy_imports import LazyFunction
from viewgrad.operators.samples import case, draws

from .trials import trial

trial("ndtr", reference=ndtr_plainly)
trial("sinc", samples=draws(case((3, 4)), case(np.array([0.0, 1.0, -2.0, 1e-4])), case(())))
trial(
    "_sinc_derivative",
    samples=draws(*[case(shape, order) for order in (0, 1, 2, 5) for shape in ((3, 4), np.array([0.0, 1e-3, 0.6]))]),
)
trial("nan_to_num", samples=draws(case((3, 4)), case((4,), nan=1.0, neginf=-5.0), case(())))
OF_ORDER = draws(case(0, (3, 4)), case(2, (4,)), case(1, ()), domain=(0.5, 4))
trial("polygamma", samples=OF_ORDER, reference=LazyFunction(special, "polygamma"))  # the only one that is not a ufunc
for name in ("jv", "iv", "ive"):
    trial(name, samples=OF_ORDER)
for name in ("gammainc", "gammaincc"):
    trial(name, samples=draws(case(1, (3, 4)), case(2.5, (4,)), case(0.5, ()), domain=(0.5, 4)))
