"""Detection of random numbers drawn during tracing, which would become constants of the graph."""

from __future__ import annotations

import contextlib
import os
import random
import sys
from collections.abc import Iterator
from contextvars import ContextVar
from types import FrameType
from typing import Any, Final

import numpy as np
from numpy.random import bit_generator as seeds

from ...tensor.trace_hooks import observed
from .patching import Patch, Replaced

_imports: Final = ContextVar("imports", default=0)  # the depth of imports when this trace began
IMPORTING: Final = "<frozen importlib._bootstrap>"


def _refuse(what: str) -> None:
    """Raise if a traced program draws random numbers from the system, which would differ in every run."""
    observer = observed()
    if observer is not None and not is_importing():
        observer.refuse(what)


def is_importing() -> bool:
    """Return whether the traced program is importing a module, whose random numbers are ignored."""
    return imports() > _imports.get()


def imports() -> int:
    """Return the depth of imports in progress; random numbers drawn by a module during its import are ignored."""
    frame: FrameType | None = sys._getframe(1)
    count = 0
    while frame is not None:
        count += frame.f_code.co_filename == IMPORTING
        frame = frame.f_back
    return count


def _randbits(bits: int) -> Any:
    """Return random bits for a seed drawn by NumPy; raise an error while a program is traced."""
    _refuse(
        "creating a random number generator without a seed (RandomState(seed) also draws one; default_rng(seed) does "
        "not), whose numbers differ in each run,"
    )
    return PATCHES[0][2](bits)


def _urandom(size: int) -> Any:
    """Return random bytes from the system, also for `secrets` and `uuid`; raise an error during tracing."""
    _refuse("drawing random bytes from the system, which differ in each run,")
    return PATCHES[2][2](size)


def _seed(self: random.Random, a: Any = None, version: int = 2) -> None:
    """Seed one of Python's generators; an error without a seed while a program is traced."""
    if a is None:
        _refuse("creating a random number generator without a seed, whose numbers differ in each run,")
    PATCHES[1][2](self, a, version)


# The functions from which seeds are drawn.
PATCHES: Final[list[Patch]] = [
    (seeds, "randbits", getattr(seeds, "randbits", _randbits), _randbits),
    (random.Random, "seed", random.Random.seed, _seed),
    (os, "urandom", os.urandom, _urandom),
    (random, "_urandom", getattr(random, "_urandom", os.urandom), _urandom),
]


_replaced: Final = Replaced(PATCHES)


@contextlib.contextmanager
def seeds_refused() -> Iterator[None]:
    """Prevent the traced program from creating unseeded random generators in a block.

    The numbers drawn from such a generator would be constants of the graph, and the generator no longer exists when the
    program ends, so its state cannot be checked. The functions that create seeds therefore raise while a program is
    traced.
    """
    token = _imports.set(imports())
    try:
        with _replaced():
            yield
    finally:
        _imports.reset(token)


class Generators:
    """The states of random number generators.

    Arguments:
        generators: the existing generators, apart from the global ones.
    """

    def __init__(self, generators: list[Any]) -> None:
        self._initial_states = [(generator, self._state(generator)) for generator in generators]
        self._python = random.getstate()
        self._numpy = self._state(np.random)

    @staticmethod
    def _state(generator: Any) -> str:
        if isinstance(generator, np.random.Generator):
            return repr(generator.bit_generator.state)
        return repr(generator.get_state(legacy=False))

    def drawn_from(self, known: list[Any]) -> str | None:
        """Return an unknown generator from which numbers were drawn, or None."""
        if random.getstate() != self._python:
            return "Python's random"
        if self._state(np.random) != self._numpy:
            return "numpy.random"
        for generator, state in self._initial_states:
            if not any(generator is each for each in known) and self._state(generator) != state:
                return repr(generator)
        return None
