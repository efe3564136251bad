"""Whether calls run a program or the function itself: what takes less time.

Times are those of the thread's processor, which other work on the machine changes little. The function is never called
for the sake of measuring alone. So where a first run does not tell (it may have code of operators generated), a few
further calls run it, and are measured.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import attrs

from ...tensor.modes import current_mode
from ..guards.call_signature import CallSignature, likeness
from .fast_call import MISSED

if TYPE_CHECKING:
    from ..api import Compiled, Specialization

__all__ = ["Passed", "Times", "choose", "clock", "pass_by", "shortest"]

clock: Final[Callable[[], float]] = (
    time.thread_time if time.get_clock_info("thread_time").resolution < 1e-6 else time.perf_counter
)
LITTLE: Final = 0.0  # seconds by which a program may be slower
COLD: Final = 0.01  # seconds by which a first run may take longer than a later one
TRIALS: Final = 2  # further runs of the function, where the first does not tell
ROUNDS: Final = 3  # how often a program is run to find out how long it takes
ENOUGH: Final = 0.02  # seconds of measuring
KINDS: Final = 16  # so many kinds of calls go a short way


@attrs.define
class Times:
    """How long a call takes, in seconds, each with its gradient.

    Arguments:
        function: the function itself, without the gradient.
        gradient: the gradient of the function.
        program: the program alone, with its gradient.
        call: a call that runs the program, with its gradient; None where nobody calls it so.
    """

    function: float
    gradient: float
    program: float
    call: float | None = None

    @property
    def eager(self) -> float:
        """How long the function takes with its gradient."""
        return self.function + self.gradient


def shortest(run: Callable[[], Any], longest: float = ENOUGH) -> float:
    """The least time that one of some runs takes."""
    best = spent = float("inf")
    for number in range(ROUNDS):
        start = clock()
        run()
        took = clock() - start
        best, spent = min(best, took), took if not number else spent + took
        if spent > longest:
            break
    return best


def choose(
    compiled: Compiled,
    entry: Specialization,
    times: Times,
    args: tuple[Any, ...],
    keywords: dict[str, Any],
    leaves: Any,
) -> None:
    """Choose between a program and the function, now or after some further calls.

    Arguments:
        compiled, entry: the function, and what is known of it, with a program.
        times: how long they take; of the function it is the first time.
        args, keywords, leaves: the arguments, and their leaves as inputs.
    """
    if times.program > times.eager + LITTLE:
        settle(entry, times)
        return
    takes = times.program if times.call is None else times.call
    like = None
    if takes > max(times.gradient, times.eager - COLD) + LITTLE:
        like = likeness(args, keywords, leaves, entry.static)
    if like is None:
        settle(entry, times)
    else:
        compiled.directs.insert(0, Trial(compiled, entry, like, times))
    if entry.passed is not None:
        pass_by(compiled, entry, args, keywords, leaves)


def settle(entry: Specialization, times: Times) -> None:
    """Choose what takes less time."""
    name = "" if entry.program is None else f", by the {entry.program.executor.name} executor"
    if times.program > times.eager + LITTLE:
        entry.refusal = f"the program takes longer than the function itself{name}"
        entry.graph = entry.program = None
    elif times.call is not None and times.call > times.eager + LITTLE:
        entry.passed = f"calls run eagerly, as they do so little that it takes less time{name}"


def pass_by(
    compiled: Compiled, entry: Specialization, args: tuple[Any, ...], keywords: dict[str, Any], leaves: Any,
    loosely: bool = False,
) -> None:
    """From now on let calls that look like this one run the function itself, without further ado.

    Arguments:
        compiled, entry: the function, and what is known of it.
        args, keywords, leaves: the arguments, and their leaves as inputs.
        loosely: whether shapes and numbers among them may be any.
    """
    like = likeness(args, keywords, leaves, entry.static, loosely) if len(compiled.directs) < KINDS else None
    if like is not None:
        way = Passed(compiled.function, entry, current_mode(), like)
        compiled.directs.insert(len(compiled.directs) if loosely else 0, way)


class Passed:
    """Calls that run the function itself.

    Arguments:
        function: the function.
        entry: what is known of it for them.
        mode: the mode in which they are made.
        like: what the arguments look like.
    """

    def __init__(self, function: Callable[..., Any], entry: Specialization, mode: int, like: CallSignature) -> None:
        self.function = function
        self.entry = entry
        self.mode = mode
        self.like = like

    def call(self, args: tuple[Any, ...], keywords: dict[str, Any], mode: int) -> Any:
        """What the function gives, or `MISSED`."""
        if mode != self.mode or self.like.leaves(args, keywords) is None:
            return MISSED
        return self.function(*args, **keywords)


class Trial:
    """Calls that run the function, and are measured, until it is known what takes less time.

    Arguments:
        compiled, entry: the function, and what is known of it for them.
        like: what the arguments look like.
        times: how long they take, as far as it is known.
    """

    def __init__(self, compiled: Compiled, entry: Specialization, like: CallSignature, times: Times) -> None:
        self.compiled = compiled
        self.entry = entry
        self.mode = current_mode()
        self.like = like
        self.times = times
        self.left = TRIALS

    def call(self, args: tuple[Any, ...], keywords: dict[str, Any], mode: int) -> Any:
        """What the function gives, or `MISSED`."""
        if mode != self.mode or self.like.leaves(args, keywords) is None:
            return MISSED
        start = clock()
        result = self.compiled.function(*args, **keywords)
        self.times.function = min(self.times.function, clock() - start)
        self.left -= 1
        if self.left <= 0:
            self._end()
        return result

    def _end(self) -> None:
        ways = self.compiled.directs
        with contextlib.suppress(ValueError):  # another thread was first
            ways.remove(self)
        settle(self.entry, self.times)
        if self.entry.refusal is not None or self.entry.passed is not None:
            ways.insert(0, Passed(self.compiled.function, self.entry, self.mode, self.like))
