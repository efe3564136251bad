"""The samples for the operators of derivatives/scipy_functions.py."""

from __future__ import annotations

import numpy as np

from viewgrad.operators.derivatives.scipy_functions import signal
from viewgrad.operators.samples import case, draws

from .trials import trial

OF_ORDER = draws(case(2, (3, 4)), case(1, (4,)), case(3, ()), domain=(0.5, 4))


trial("betainc", samples=draws(case(2.0, 1.5, (3, 4)), case(0.5, 3.0, (4,)), domain=(0.1, 0.9)))
trial("hyp2f1", samples=draws(case(0.5, 1.5, 2.0, (3, 4)), case(1.0, 2.0, 1.5, (4,)), domain=(-0.8, 0.8)))
trial("stdtr", samples=draws(case(2.0, (3, 4)), case(5.5, (4,))))
trial(
    "_all_pole",
    samples=lambda rng: [
        ((rng.standard_normal((2, 6)), np.array([1.0, -0.5, 0.25])), {}),
        ((rng.standard_normal(5), np.array([2.0, 0.3])), {}),
    ],
    reference=lambda x, a: signal.lfilter([1.0], a, x),
)
trial("yn", samples=OF_ORDER)
trial("kn", samples=OF_ORDER)
