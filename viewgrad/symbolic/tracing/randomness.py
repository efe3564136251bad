"""Random numbers drawn while a program is traced: a graph would hold them fixed."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

__all__ = ["Generators"]


class Generators:
    """The states that generators of random numbers have.

    Arguments:
        generators: those that there are, apart from the modules' own.
    """

    def __init__(self, generators: list[Any]) -> None:
        self._found = [(generator, self._state(generator)) for generator in generators]
        self._python = random.getstate()
        self._numpy = self._state(np.random)

    @staticmethod
    def _state(generator: Any) -> str:
        if isinstance(generator, np.random.Generator):
            return repr(generator.bit_generator.state)
        return repr(generator.get_state(legacy=False))

    def drawn_from(self, known: list[Any]) -> str | None:
        """Which generator numbers were drawn from since, apart from those known; None for none."""
        if random.getstate() != self._python:
            return "Python's random"
        if self._state(np.random) != self._numpy:
            return "numpy.random"
        for generator, state in self._found:
            if not any(generator is each for each in known) and self._state(generator) != state:
                return repr(generator)
        return None
