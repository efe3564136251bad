"""The intervals from which tests draw the arguments of the library's elementwise operators."""

from __future__ import annotations

from typing import Final

__all__ = ["DOMAINS", "USUAL"]

USUAL: Final = (-2.0, 2.0)
# Where an operator is real, finite and not steep; `USUAL` for those that are not listed.
DOMAINS: Final[dict[str, tuple[float, float]]] = {
    "_incomplete_beta": (0.05, 0.95),
    "_incomplete_gamma": (0.1, 30),
    "arccos": (-0.9, 0.9),
    "arccosh": (1.1, 3),
    "arcsin": (-0.9, 0.9),
    "arctanh": (-0.9, 0.9),
    "beta": (0.5, 3),
    "betaln": (0.3, 4),
    "cbrt": (0.1, 3),
    "digamma": (0.3, 4),
    "div": (0.3, 3),
    "ellipe": (0.1, 0.9),
    "ellipk": (0.1, 0.9),
    "entr": (0.1, 3),
    "erfcinv": (0.2, 1.8),
    "erfi": (-1, 1),
    "erfinv": (-0.9, 0.9),
    "exp1": (0.3, 3),
    "expi": (0.3, 3),
    "fmod": (0.3, 3),
    "gamma": (0.3, 4),
    "gammaln": (0.3, 4),
    "gammasgn": (0.3, 3),
    "hardsigmoid": (-5, 5),
    "hardswish": (-5, 5),
    "k0": (0.5, 3),
    "k1": (0.5, 3),
    "log": (0.1, 3),
    "log10": (0.1, 3),
    "log1p": (-0.9, 2),
    "log2": (0.1, 3),
    "log_ndtr": (-6, 3),
    "logit": (0.1, 0.9),
    "ndtri": (0.1, 0.9),
    "pow": (0.3, 2),
    "reciprocal": (0.3, 3),
    "rel_entr": (0.3, 3),
    "relu6": (-8, 8),
    "remainder": (0.3, 3),
    "rgamma": (0.3, 4),
    "sqrt": (0.1, 3),
    "tan": (-1.2, 1.2),
    "xlog1py": (0.3, 3),
    "xlogy": (0.3, 3),
    "y0": (0.5, 5),
    "y1": (0.5, 5),
}
