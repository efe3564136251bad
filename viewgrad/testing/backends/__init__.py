"""Execution of programs on several libraries, and comparison of the results."""

from __future__ import annotations

import importlib
import importlib.util
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Final

import attrs
import numpy as np
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded

from ...type_aliases import Array
from ..checks import gradients as viewgrad_gradients
from ..checks import weights_for
from ..program import Program
from ..strategies import programs
from .unsupported import Unsupported

__all__ = ["BACKENDS", "Comparison", "Summary", "Unsupported", "compare_backends", "compare_many"]

# including their dependencies
BACKENDS: Final = {"viewgrad": "viewgrad", "torch": "torch", "jax": "jax", "mygrad": "mygrad"}
MODULES: Final = {"torch": ".pytorch", "jax": ".jax", "mygrad": ".mygrad"}
REFUSALS: Final = (Unsupported, RuntimeError, TypeError, ValueError, IndexError, AttributeError, NotImplementedError)
CLOSE: Final = 1e-9


@attrs.frozen
class Comparison:
    """The results of running a program on several backends.

    Attributes:
        program: the program.
        outcomes: by backend: "agrees", "values differ", "gradients differ" (for programs with the same values), or
            "refuses: " followed by the reason.
    """

    program: Program
    outcomes: dict[str, str]

    @property
    def agrees(self) -> bool:
        """Return whether no backend that runs the program computes different gradients."""
        return "gradients differ" not in self.outcomes.values()


def installed() -> list[str]:
    """Return the backends that are installed."""
    return [name for name, package in BACKENDS.items() if importlib.util.find_spec(package) is not None]


def compare_backends(program: Program, backends: Sequence[str] | None = None) -> Comparison:
    """Run a program on several libraries, and compare values and gradients with those of viewgrad.

    Arguments:
        program: the program.
        backends: keys of `BACKENDS`; all that are installed if omitted.

    Returns:
        The outcome for each backend.

    Example:
        >>> from hypothesis import given
        >>> from viewgrad.testing import compare_backends, programs
        >>> @given(programs())
        ... def test_same_gradients(program):
        ...     assert compare_backends(program, backends=["viewgrad"]).agrees
    """
    program = program.in_double_precision
    names = installed() if backends is None else list(backends)
    ours = viewgrad_gradients(program, weights_for(program), 1)
    wanted = [leaf.name for leaf in program.differentiable_leaves]
    outcomes = {}
    for name in names:
        if name == "viewgrad":
            outcomes[name] = "agrees"
            continue
        module = importlib.import_module(MODULES[name], __package__)
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                values, found = module.gradients(program)
        except REFUSALS as error:
            outcomes[name] = f"refuses: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
            continue
        if not all(_close(ours.values[key], value) for key, value in values.items() if key in ours.values):
            outcomes[name] = "values differ"
        elif all(_close(ours.first[leaf], found[leaf]) for leaf in wanted):
            outcomes[name] = "agrees"
        else:
            outcomes[name] = "gradients differ"
    return Comparison(program, outcomes)


def _close(one: Array | None, other: Array | None) -> bool:
    if one is None or other is None:
        rest = one if other is None else other
        return rest is None or not np.any(rest)
    return one.shape == other.shape and np.allclose(
        one, other, rtol=CLOSE, atol=CLOSE * max(1.0, np.abs(one).max(initial=0))
    )


@attrs.define
class Summary:
    """The outcomes of many programs, as a table.

    Attributes:
        counts: the number of programs by backend and outcome, with all refusals counted together.
        failures: the programs for which gradients differ.
    """

    counts: dict[str, dict[str, int]] = attrs.Factory(dict)
    failures: list[Comparison] = attrs.Factory(list)

    def add(self, comparison: Comparison) -> None:
        """Count a comparison."""
        for name, outcome in comparison.outcomes.items():
            row = self.counts.setdefault(name, dict.fromkeys(OUTCOMES, 0))
            row[outcome.partition(":")[0]] += 1
        if not comparison.agrees:
            self.failures.append(comparison)

    def __str__(self) -> str:
        lines = [f"{'backend':<10}" + "".join(f"{outcome:>18}" for outcome in OUTCOMES)]
        lines += [
            f"{name:<10}" + "".join(f"{row[outcome]:>18}" for outcome in OUTCOMES) for name, row in self.counts.items()
        ]
        for comparison in self.failures[:3]:
            who = [name for name, outcome in comparison.outcomes.items() if outcome == "gradients differ"]
            lines.append(f"\n{', '.join(who)} gives other gradients of\n\n{comparison.program}")
        return "\n".join(lines)


OUTCOMES: Final = ("agrees", "refuses", "values differ", "gradients differ")


def compare_many(
    number: int,
    *,
    seed: int = 0,
    backends: Sequence[str] | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Summary:
    """Draw programs, and compare backends on each.

    Arguments:
        number: the number of programs.
        seed: the seed of the programs.
        backends: as for `compare_backends`.
        progress: a function called with "programs", the number of programs so far, and `number`.
    """
    summary = Summary()
    done = [0]

    def run(program: Program) -> None:
        done[0] += 1
        summary.add(compare_backends(program, backends))
        if progress is not None:
            progress("programs", min(done[0], number), number)

    drawing = settings(
        max_examples=number,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    seeded(seed)(drawing(given(programs())(run)))()
    return summary
