"""The specializations of a compiled function, and their states.

    new --Traced--> traced --Built, Verified--> verified --Running--> running
     ^                 ^                            |                    |
     |                 +------- NearSingular -------+--------------------+
     +--- Skipped --- cooling down <--- Failed -----+--------------------+
                                                    +---> eager (FellBack, Failed)

`transition` is the only function that changes a specialization, apart from the count of its runs.
"""

from __future__ import annotations

import enum
import threading
from collections import Counter
from typing import Any, Final

import attrs

from .calls.arguments import form_of
from .calls.fast_call import EagerCall, FastCall
from .calls.guarded_trace import GuardedTrace
from .policy import Action, Decision, Usage, after_trace
from .runtime import CompiledProgram

# the maximum number of specializations for calls whose arguments have the same structure
MAX_SPECIALIZATIONS: Final = 8
MAX_REPLACED_UNUSED: Final = 16  # the maximum number of consecutive specializations replaced without running a program
MAX_FAST_CALLS: Final = 8
MAX_EAGER_CALLS: Final = 16


class State(enum.Enum):
    """The states of a specialization, in their usual order."""

    NEW = "not traced yet"
    TRACED = "traced"
    VERIFIED = "verified"
    RUNNING = "running"
    COOLING_DOWN = "cooling down"
    EAGER = "eager"


@attrs.define(eq=False)
class Specialization:
    """The traces and programs of a function for one call signature.

    Arguments:
        key: the call signature.
        static: the leaves of the arguments that are constants of the program.
        is_overflow: whether it handles all further signatures, because too many occur only once.
        runs_before: the number of runs when the last specialization was added.
        last_use: the time of the last use, counted in uses of specializations.
        state: its state.
        trace: the last trace.
        program: the program of that trace; None until it is built.
        fallback_reason: the reason for running eagerly.
        cooldown: the number of remaining calls that run eagerly during the cool-down.
        near_singular_lines: the lines with small matrices that are left to NumPy because one was nearly singular.
        usage: the usage statistics of its traces.
        runs: the number of runs of its programs.
        failures: the number of calls that ran eagerly although there was a program, by reason.
    """

    key: Any
    static: frozenset[int] = frozenset()
    is_overflow: bool = False
    runs_before: int = 0
    last_use: int = 0
    state: State = State.NEW
    trace: GuardedTrace | None = None
    program: CompiledProgram | None = None
    fallback_reason: str | None = None
    cooldown: int = 0
    near_singular_lines: frozenset[int] = frozenset()
    usage: Usage = attrs.Factory(Usage)
    runs: int = 0
    failures: Counter[str] = attrs.Factory(Counter)

    @property
    def is_verified(self) -> bool:
        """True if its program agreed with the function."""
        return self.state in (State.VERIFIED, State.RUNNING)


@attrs.frozen(eq=False)
class Traced:
    """The function was traced; if there is no trace, the next call tries again."""

    trace: GuardedTrace | None


@attrs.frozen(eq=False)
class Built:
    """The program of a trace was built; `is_verified` if it is not compared with the function."""

    trace: GuardedTrace
    program: CompiledProgram
    is_verified: bool


@attrs.frozen(eq=False)
class Verified:
    """The program agreed with the function."""

    program: CompiledProgram


@attrs.frozen(eq=False)
class Running:
    """Calls run the program; `fast_call` is the fast path for the same signature, if any."""

    program: CompiledProgram
    fast_call: FastCall | None


@attrs.frozen(eq=False)
class NearSingular:
    """A small matrix at some line was nearly singular, so the program is rebuilt with NumPy's function there."""

    line: int


@attrs.frozen(eq=False)
class Failed:
    """A guard failed, and the policy decided how to continue."""

    reason: str
    usage: Usage
    decision: Decision


@attrs.frozen(eq=False)
class Skipped:
    """A call ran eagerly during the cool-down."""


@attrs.frozen(eq=False)
class FellBack:
    """The function stays eager, for the given reason."""

    reason: str


Event = Traced | Built | Verified | Running | NearSingular | Failed | Skipped | FellBack


def transition(of: Specialization, event: Event) -> None:
    """Change the state of a specialization after an event.

    An eager specialization remains eager. Events about a trace or program that another thread has replaced are ignored.
    """
    if of.state is State.EAGER:
        return
    match event:
        case Traced(trace):
            of.usage = after_trace(of.usage, of.runs)
            of.state = State.NEW if trace is None else State.TRACED
            of.trace, of.program, of.cooldown, of.near_singular_lines = trace, None, 0, frozenset()
        case Built(trace, program, is_verified) if of.trace is trace and of.state is State.TRACED:
            of.program = program
            of.state = State.VERIFIED if is_verified else State.TRACED
        case Verified(program) if of.program is program and of.state is State.TRACED:
            of.state = State.VERIFIED
        case Running(program, _) if of.program is program and of.state is State.VERIFIED:
            of.state = State.RUNNING
        case NearSingular(line):
            of.near_singular_lines |= {line}
            of.program, of.state = None, State.TRACED
        case Failed(reason, usage, decision):
            of.failures[reason] += 1
            of.usage = usage
            if decision.action is Action.COOL_DOWN:
                of.state, of.cooldown = State.COOLING_DOWN, decision.calls
            elif decision.action is Action.GIVE_UP:
                message = f"it was traced {usage.traces} times, the last time because {reason}"
                transition(of, FellBack(message))
        case Skipped() if of.state is State.COOLING_DOWN:
            of.cooldown -= 1
            if not of.cooldown:
                of.trace = of.program = None
                of.state = State.NEW
        case FellBack(reason):
            of.fallback_reason, of.state = reason, State.EAGER
            of.trace = of.program = None


class Cache:
    """The specializations of a function, and the fast paths of calls.

    Attributes:
        specializations: the specializations, in insertion order.
        fast_calls: the fast paths with their specializations.
        eager_calls: the signatures of calls that run the function.
        traces: the number of calls that were traced.
        lock: the lock held while any of these is changed.
    """

    def __init__(self) -> None:
        self.specializations: list[Specialization] = []
        self.fast_calls: list[tuple[Specialization, FastCall]] = []
        self.eager_calls: list[EagerCall] = []
        self.traces = 0
        self.lock = threading.RLock()
        self._clock = 0  # the number of specializations added so far
        self._replaced_unused = 0  # the number of consecutive specializations replaced without running a program

    def find(self, key: Any) -> Specialization | None:
        """Return the specialization for a key, or the one that handles all further keys of its form."""
        for each in self.specializations:
            if each.key == key:
                return each
        return next((each for each in self._alike(key) if each.is_overflow), None)

    def add(self, key: Any, static: frozenset[int]) -> Specialization:
        """Add a specialization, replacing the least recently used one if there are too many of its form.

        If too many consecutive ones were replaced without running a program, the new one handles all further keys and
        remains eager. The others are kept.
        """
        added = Specialization(key, static)
        self._clock += 1
        alike = self._alike(key)
        for each in alike:
            if each.runs > each.runs_before:
                each.runs_before, each.last_use = each.runs, self._clock
        added.last_use = self._clock
        if len(alike) >= MAX_SPECIALIZATIONS:
            oldest = min(alike, key=lambda each: each.last_use)
            self._replaced_unused = 0 if oldest.runs else self._replaced_unused + 1
            if self._replaced_unused > MAX_REPLACED_UNUSED:
                added.is_overflow = True
                transition(added, FellBack(
                    f"{self._replaced_unused} combinations of shapes, dtypes or numbers in a row occurred only once; "
                    "pass integers that change from call to call as arrays"
                ))  # fmt: skip
            else:
                self.remove(oldest)
        self.specializations.append(added)
        return added

    def apply(self, of: Specialization, event: Event) -> None:
        """Apply a transition and update the fast paths."""
        with self.lock:
            transition(of, event)
            if of.state is not State.RUNNING:
                self.fast_calls = [each for each in self.fast_calls if each[0] is not of]
            elif isinstance(event, Running) and event.fast_call is not None:
                self.fast_calls = [*self.fast_calls, (of, event.fast_call)]

    def remove(self, of: Specialization) -> None:
        """Remove a specialization whose key has become invalid."""
        with self.lock:
            self.specializations = [each for each in self.specializations if each is not of]
            self.fast_calls = [each for each in self.fast_calls if each[0] is not of]

    def snapshot(self, of: Specialization) -> tuple[GuardedTrace | None, CompiledProgram | None]:
        """Return the trace of a specialization together with its program."""
        with self.lock:
            return of.trace, of.program

    @property
    def takes_fast_calls(self) -> bool:
        """Return whether there is room for another fast path."""
        return len(self.fast_calls) < MAX_FAST_CALLS

    def add_eager_call(self, call: EagerCall) -> None:
        """Add the signature of calls that run the function, if there is room."""
        with self.lock:
            if len(self.eager_calls) < MAX_EAGER_CALLS:
                self.eager_calls = [*self.eager_calls, call]

    def _alike(self, key: Any) -> list[Specialization]:
        form = form_of(key[0])
        return [each for each in self.specializations if form_of(each.key[0]) == form]
