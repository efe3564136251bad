"""How many of many calls are looked at."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

from .arguments import Example

__all__ = ["some", "within"]


def within(seconds: float, examples: Iterable[Example]) -> Iterator[Example]:
    """All of them while they take so long; then every fourth."""
    began = time.process_time()
    for number, example in enumerate(examples):
        if number % 4 == 0 or time.process_time() - began < seconds:
            yield example


def some(examples: Iterator[Example], step: int) -> Iterator[Example]:
    """Every few of them."""
    return (example for number, example in enumerate(examples) if number % step == 0)
