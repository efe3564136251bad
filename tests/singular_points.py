"""The table of points where functions have kinks, poles, ends and ties: operands and derivatives."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import viewgrad as vg

INF, NAN = math.inf, math.nan


class Point(NamedTuple):
    """A function at its operands, with the gradient of the sum of its results for each operand.

    Arguments:
        name: the kind of singularity.
        function: a function, or the name of one of the library's.
        operands: vectors.
        slopes: the gradients for them.
        bends: the gradient of the sum of the first operand's gradient; NaN where it is not specified.
        rtol: the tolerance of derivatives.
        dtypes: the dtypes to test.
    """

    name: str
    function: Callable[..., Any] | str
    operands: list[list[float]]
    slopes: list[list[float]]
    bends: list[float] | None = None
    rtol: float = 1e-15
    dtypes: tuple[type, ...] = (np.float64,)


def from_mpmath(function: str, *rows: tuple[float, float, float]) -> Point:
    """Return the point of a special function from rows of an operand, the first and the second derivative."""
    operands, slopes, bends = ([*column] for column in zip(*rows))
    return Point(f"{function} by mpmath", function, [operands], [slopes], bends, 1e-6)


def ends(slope: float, points: list[float], *functions: str) -> list[Point]:
    """Return the ends of a domain, where the slope is infinite with the sign of the slopes nearby."""
    slopes, both = [[slope] * len(points)], (np.float64, np.float32)
    return [Point(f"{name} at its ends", name, [points], slopes, dtypes=both) for name in functions]


SINGULAR_POINTS = [
    # -- kinks, ties, and zeros where formulas divide: PyTorch's gradient, where it has one ----------------------------
    Point("abs at 0", vg.abs, [[0.0, -0.0, -2.0]], [[0, 0, -1]]),
    Point("sign", vg.sign, [[0.0, 3.0]], [[0, 0]]),
    Point("relu at 0", vg.relu, [[0.0, -0.0, 2.0]], [[0, 0, 1]]),
    Point("sqrt at 0", vg.sqrt, [[0.0]], [[INF]]),
    Point("clip at its bounds", lambda x: x.clip(0, 1), [[0.0, 1.0, 0.5, -1.0, 2.0]], [[1, 1, 1, 0, 0]]),
    Point("rounding", lambda x: vg.floor(x) + vg.ceil(x) + vg.round(x) + vg.trunc(x), [[0.0, 0.5, 1.0]], [[0, 0, 0]]),
    Point("max shares ties", vg.max, [[2.0, 1.0, 2.0]], [[0.5, 0, 0.5]]),
    Point("min shares ties", vg.min, [[2.0, 1.0, 1.0]], [[0, 0.5, 0.5]]),
    Point("norm at 0", vg.norm, [[0.0, 0.0]], [[0, 0]]),
    Point("1-norm with a 0", lambda x: vg.norm(x, 1), [[0.0, -2.0]], [[0, -1]]),
    Point("maximum norm shares ties", lambda x: vg.norm(x, INF), [[1.0, -2.0, 2.0]], [[0, -0.5, 0.5]]),
    Point("3-norm at 0", lambda x: vg.norm(x, 3), [[0.0, 0.0]], [[0, 0]]),
    Point("std of equal values", vg.std, [[1.0, 1.0]], [[0, 0]]),
    Point("logsumexp of minus infinity", vg.logsumexp, [[-INF, -INF]], [[0, 0]]),
    Point("logsumexp with minus infinity", vg.logsumexp, [[-INF, 0.0]], [[0, 1]]),
    Point("logsumexp with infinity", vg.logsumexp, [[0.0, INF, -INF]], [[0, 1, 0]]),
    Point("prod with a 0", vg.prod, [[0.0, 2.0, 3.0]], [[6, 0, 0]]),
    Point("prod with two", vg.prod, [[0.0, 2.0, 0.0]], [[0, 0, 0]]),
    Point("cumprod with a 0", vg.cumprod, [[2.0, 0.0, 3.0]], [[1, 8, 0]]),
    Point("square of 0 as a power", lambda x: x**3.0, [[0.0]], [[0]]),
    Point("zeroth power", lambda x: x**0.0, [[0.0, 2.0]], [[0, 0]]),
    Point("softplus far out", vg.softplus, [[-1000.0, 1000.0]], [[0, 1]]),
    Point("sigmoid far out", vg.sigmoid, [[-1000.0, 1000.0]], [[0, 0]]),
    Point("stable sort of ties", lambda x: vg.sort(x) * np.array([1.0, 2.0, 3.0]), [[1.0, 1.0, 0.0]], [[2, 3, 1]]),
    Point("zeroth power far out", lambda x: x**0, [[1e-310, 0.0, 2.0, INF, -2.0]], [[0, 0, 0, 0, 0]]),
    Point("power of 0.0 far out", lambda x: x**0.0, [[1e-310, 0.0, 2.0, INF, -2.0]], [[0, 0, 0, 0, 0]]),
    Point("powers of zeros far out", lambda x: x ** np.zeros(5), [[1e-310, 0.0, 2.0, INF, -2.0]], [[0, 0, 0, 0, 0]]),
    # -- of two operands -----------------------------------------------------------------------------------------------
    Point("maximum halves ties", vg.maximum, [[1.0, 1.0, 2.0], [1.0, 2.0, 1.0]], [[0.5, 0, 1], [0.5, 1, 0]]),
    Point("minimum halves ties", vg.minimum, [[1.0, 1.0, 2.0], [1.0, 2.0, 1.0]], [[0.5, 1, 0], [0.5, 0, 1]]),
    Point("hypot at the origin", vg.hypot, [[0.0, 3.0], [0.0, 4.0]], [[0, 0.6], [0, 0.8]]),
    Point("arctan2 at the origin", vg.arctan2, [[0.0, 0.0], [0.0, 2.0]], [[0, 0.5], [0, 0]]),
    Point("arctan2 of tiny numbers", vg.arctan2, [[1e-200], [1e-200]], [[0.5e200], [-0.5e200]]),
    Point("powers of 0", vg.pow, [[0.0, 0.0, 0.0], [0.0, 1.0, 2.0]], [[0, 1, 0], [0, 0, 0]]),
    Point("negative base", vg.pow, [[-2.0], [2.0]], [[-4.0], [NAN]]),
    Point("logaddexp far out", vg.logaddexp, [[1000.0, -1000.0], [-1000.0, 1000.0]], [[1, 0], [0, 1]]),
    Point("remainder of negative numbers", vg.remainder, [[5.0, -5.0], [3.0, 3.0]], [[1, 1], [-1, 2]]),
    Point("fmod of negative numbers", vg.fmod, [[5.0, -5.0], [3.0, 3.0]], [[1, 1], [-1, 1]]),
    Point("fmax leaves out what is no number", vg.fmax, [[NAN, 1.0, 2.0], [1.0, NAN, 2.0]], [[0, 1, 1], [1, 0, 0]]),
    Point("fmin leaves out what is no number", vg.fmin, [[NAN, 1.0, 2.0], [1.0, NAN, 3.0]], [[0, 1, 1], [1, 0, 0]]),
    Point("copysign", vg.copysign, [[1.0, -1.0, 0.0], [-1.0, 1.0, 1.0]], [[-1, -1, 0], [0, 0, 0]]),
    Point(
        "logaddexp with infinities", vg.logaddexp,
        [[INF, -INF, 1.0, 1.0], [1.0, 1.0, INF, -INF]], [[1, 0, 0, 1], [0, 1, 1, 0]],
    ),
    Point(
        "logaddexp of no exponentials", vg.logaddexp,
        [[-INF, -INF, 0.0], [-INF, 1.0, 0.0]], [[0, 0, 0.5], [0, 1, 0.5]],
    ),
    Point(
        "logaddexp2 with infinities", vg.logaddexp2,
        [[INF, -INF, 1.0, 1.0], [1.0, 1.0, INF, -INF]], [[1, 0, 0, 1], [0, 1, 1, 0]],
    ),
    Point(
        "logaddexp2 of no exponentials", vg.logaddexp2,
        [[-INF, -INF, 0.0], [-INF, 1.0, 0.0]], [[0, 0, 0.5], [0, 1, 0.5]],
    ),
    # -- special functions where a textbook divides zero by zero: by mpmath, with 60 digits ----------------------------
    from_mpmath(
        "ellipk",
        (0.0, 0.392699081698724, 0.441786466911),
        (1e-20, 0.392699081698724, 0.441786466911),
        (-1e-09, 0.392699081256938, 0.441786465991),
        (0.4999999, 0.847212899386549, 1.85407391481),
        (0.5000001, 0.847213270201485, 1.85407543979),
    ),
    from_mpmath(
        "ellipe",
        (0.0, -0.392699081698724, -0.147262155637),
        (-1e-09, -0.392699081551462, -0.147262155453),
        (0.4999999, -0.503430761875472, -0.343782206268),
        (0.5000001, -0.503430830631929, -0.343782370813),
    ),
    from_mpmath(
        "log_ndtr",
        (-10000000000.0, 10000000000.0, NAN),
        (-10000.0, 10000.0001, -0.99999999),
        (-3.0, 3.28309865493044, -0.929440813215),
        (0.0, 0.797884560802865, -0.636619772368),
        (3.0, 0.00443783904212566, -0.0133332115417),
    ),
    from_mpmath(
        "erfcx",
        (1000000.0, -5.6418958354691e-13, 1.1283791670938e-18),
        (49.0, -0.000234834434982195, 9.57909951083e-06),
        (51.0, -0.000216787592085118, 8.49657797339e-06),
    ),
    from_mpmath(
        "dawsn",
        (-1000000.0, -5.0000000000075e-13, -1e-18),
        (49.0, -0.000208376799487984, 8.51049677162e-06),
        (51.0, -0.000192344724398921, 7.54728625076e-06),
    ),
    from_mpmath(
        "rgamma",
        (0.0, 1.0, 1.1544313298),
        (-1.0, -1.0, 0.845568670197),
        (-5.0, -120.0, 409.468240424),
        (0.5, 1.10779190387287, -0.609003488416),
        (-2.5, 1.16698028563797, 8.80378218339),
    ),
    from_mpmath(
        "i0e",
        (10000000000.0, -1.99471140208197e-16, NAN),
        (700.0, -1.07762068145106e-05, 2.31001365686e-08),
        (0.0, 0.0, NAN),
    ),
    from_mpmath(
        "i1e",
        (10000000000.0, -1.99471140178276e-16, NAN),
        (-700.0, -1.0753106677942e-05, -2.30176065319e-08),
        (999.0, -6.31018709740255e-06, 9.46762675918e-09),
        (0.0, 0.5, 0.0),
    ),
    from_mpmath(
        "logit",
        (-0.1, NAN, NAN),
        (0.5, 4.0, 0.0),
    ),
    # -- ends of domains -----------------------------------------------------------------------------------------------
    *ends(INF, [-1.0, 1.0], "arcsin", "arctanh", "erfinv"),
    *ends(-INF, [-1.0, 1.0], "arccos"),
    *ends(INF, [0.0], "sqrt", "cbrt", "log", "log2", "log10", "entr"),
    *ends(INF, [0.0, 1.0], "logit", "ndtri"),
    *ends(INF, [1.0], "arccosh"),
    *ends(INF, [-1.0], "log1p"),
    *ends(-INF, [0.0, 2.0], "erfcinv"),
    *ends(-INF, [0.0], "gammaln", "reciprocal"),
]  # fmt: skip
