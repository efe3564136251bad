"""`trial` declares the samples of an operator of the library; `attach` attaches them to the operators."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from viewgrad.operators import OPERATORS


class Trial(NamedTuple):
    """The samples and the reference of an operator."""

    samples: Callable[..., Any] | None
    reference: Callable[..., Any] | None


TRIALS: dict[str, Trial] = {}


def trial(name: str, *, samples: Callable[..., Any] | None = None, reference: Callable[..., Any] | None = None) -> None:
    """Declare the samples and the reference of an operator.

    Arguments:
        name: the operator.
        samples: draws arguments: `samples(rng)` is a list of `(args, kwargs)` with arrays for tensors; `draws` is
            a short form. Required unless the operator is elementwise, or has a single tensor argument.
        reference: an independent implementation for arrays; by default, NumPy's function of the row.
    """
    if name in TRIALS:
        raise ValueError(f"operator {name!r} has two trials")
    TRIALS[name] = Trial(samples, reference)


def attach() -> None:
    """Import the modules of this package, and attach the samples and references to the operators."""
    for module in pkgutil.walk_packages([str(Path(__file__).parent)], f"{__package__}."):
        importlib.import_module(module.name)
    for name, (samples, reference) in TRIALS.items():
        if name in OPERATORS:
            operator = OPERATORS[name]
            operator.samples = samples or operator.samples
            operator.reference = reference or operator.reference
