"""The time budget of a check, and the selection of calls within it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import attrs

from .arguments import Example
from .cpu_time import cpu_seconds

PROFILES: Final = {"quick": 0.5, "default": 2.0, "thorough": 60.0}  # CPU seconds of a check
CALLS: Final = 400  # multiples of the time of the user's call that are always allowed
SHARE: Final = 0.25  # the fraction of the remaining time after which only every fourth call of a family is checked


class _Chosen:
    """The selected profile."""

    name = "default"


def profile() -> str:
    """Return the name of the active profile."""
    return _Chosen.name


def set_profile(name: str) -> None:
    """Set the default time of each check.

    Arguments:
        name: "quick" (half a second of CPU time), "default" (two seconds) or "thorough" (a minute).

    Raises:
        ValueError: for other names.
    """
    if name not in PROFILES:
        raise ValueError(f"there is no profile {name!r}; the profiles are {', '.join(PROFILES)}")
    _Chosen.name = name


@attrs.define
class Budget:
    """The remaining CPU time of a check.

    Arguments:
        seconds: the total.
        began: the time at which it began.
    """

    seconds: float
    began: float = attrs.Factory(cpu_seconds)

    @property
    def left(self) -> float:
        """Return the remaining seconds; negative once they are used up."""
        return self.seconds - (cpu_seconds() - self.began)

    def at_least(self, call: float) -> None:
        """Extend the budget for a slow operator.

        Arguments:
            call: the duration of one call, in seconds.
        """
        self.seconds = max(self.seconds, CALLS * call)

    def within(self, examples: Iterable[Example], most: float = float("inf")) -> Iterator[Example | None]:
        """Yield examples as long as there is time, then every fourth one, with None in place of the others.

        Arguments:
            examples: the calls, most informative first.
            most: the number of seconds after which only every fourth call is yielded.
        """
        began, soft = cpu_seconds(), min(most, max(SHARE * self.left, 0.0))
        for number, example in enumerate(examples):
            spent = cpu_seconds() - began
            in_turn = spent < soft or number % 4 == 0
            yield example if in_turn and self.left > 0 else None


def some(examples: Iterator[Example], step: int) -> Iterator[Example]:
    """Return every `step`-th example."""
    return (example for number, example in enumerate(examples) if number % step == 0)
