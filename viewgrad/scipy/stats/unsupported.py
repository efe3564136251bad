"""SciPy's distributions without formulas, which accept tensors without history and raise for others."""

from __future__ import annotations

from typing import Any

import scipy.stats  # type: ignore[import-untyped]

from ...numpy.namespace import public_names
from ...operators.numpy_api.adapted import lost
from ...operators.numpy_api.conversion import carries_history
from .distribution import Frozen, NamedDistribution


class Unsupported(NamedDistribution):
    """A distribution whose functions are SciPy's own.

    Arguments:
        name: SciPy's name.
    """

    def __init__(self, name: str) -> None:
        self.name, self.scipy = name, getattr(scipy.stats, name)
        self.discrete = isinstance(self.scipy, scipy.stats.rv_discrete)

    def __call__(self, *args: Any, **kwargs: Any) -> Frozen:
        if carries_history(args) or carries_history(kwargs):
            raise lost(f"scipy.stats.{self.name}", "it has no derivative here; pass detach() of the parameters")
        return Frozen(self, args, kwargs)


def unsupported() -> dict[str, Unsupported]:
    """Return all distributions of SciPy, by name."""
    values = {name: getattr(scipy.stats, name) for name in public_names(scipy.stats)}
    # Classes are meant for deriving new distributions; they remain SciPy's.
    return {
        name: Unsupported(name)
        for name, each in values.items()
        if not isinstance(each, type) and (hasattr(each, "rvs") or hasattr(each, "pmf"))
    }
