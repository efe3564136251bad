"""`trial`, which says what an operator of the library is tested on, and `trial_of`, which finds it.

The files beside this one are loaded when the first trial is asked for: importing the library does not pay for them.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

from ..language.spec import Trial

__all__ = ["trial", "trial_of"]

TRIALS: Final[dict[str, Trial]] = {}
MODULES: Final[list[ModuleType]] = []
NOT_SAID: Final = Trial()
PACKAGE: Final = __name__.rpartition(".")[0]


def trial(
    name: str,
    *,
    domain: tuple[float, float] = NOT_SAID.domain,
    samples: Callable[..., Any] | None = None,
    reference: Callable[..., Any] | None = None,
) -> None:
    """Say what an operator is tested on.

    Arguments:
        name: the operator.
        domain: of an elementwise operator, the interval from which its arguments are drawn.
        samples: draws arguments: `samples(rng)` is a list of `(args, kwargs)` with arrays for tensors; `draws` writes
            it down shortly. Needed unless the operator is elementwise, or takes one tensor.
        reference: computes the same in another way from arrays; NumPy's function of the row if left out.
    """
    if name in TRIALS:
        raise ValueError(f"operator {name!r} has two trials")
    TRIALS[name] = Trial(domain, samples, reference)


def trial_of(name: str) -> Trial:
    """Return the arguments that an operator of the library is tested on."""
    if not MODULES:
        found = pkgutil.walk_packages(importlib.import_module(PACKAGE).__path__, f"{PACKAGE}.")
        MODULES[:] = [importlib.import_module(module.name) for module in found]
    return TRIALS.get(name, NOT_SAID)
