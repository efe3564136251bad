"""Checks of several calls: drawn by Hypothesis from strategies or near given values, or samples from a declaration."""

from __future__ import annotations

import contextlib
import math
import re
import time
from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol

import numpy as np
from hypothesis import HealthCheck, Phase, currently_in_test_context, given, reject, settings
from hypothesis import strategies as st
from hypothesis.control import current_build_context

from ...errors import DifferentiabilityError, UnsupportedDtypeError
from ...operators.language.spec import Operator
from ...operators.samples import samples_in_each_kind
from ...tensor.tensor import Tensor
from .arguments import mapped
from .budget import PROFILES, profile
from .failure import Failure
from .operator_under_test import rejects
from .report import Report

SHRINKING = 6.0  # CPU seconds for the calls that Hypothesis shrinks to
IN_SHORT = 0.5  # the fraction of a check's time for the calls of one test, after which only gradients are checked
MOST_REFUSED = 20  # the number of refused calls, with none accepted, after which a test prints why nothing is checked
SHARE = 10  # the fraction of the profile's examples drawn by default, since each call is a whole check
GRID = 16  # log2 of the ratio of an interval's width to the step of drawn numbers


class Checks(Protocol):
    """The checks of one call."""

    def given_source(self, known: Any) -> Any: ...

    def in_short(self) -> None: ...

    def only_again(self, property: str) -> None: ...

    def run(self, shrink: bool = True) -> Report: ...


def holds_strategies(value: Any) -> bool:
    """Return whether the arguments contain a Hypothesis strategy."""
    return any(isinstance(leaf, st.SearchStrategy) for leaf in _leaves(value))


def check_drawn(
    make: Callable[[Any, Any], Checks],
    args: Any,
    kwargs: Any,
    max_examples: int | None,
    name: str,
    after: Report | None = None,
) -> Report:
    """Check an operator at calls drawn from strategies: the first one in full, the others briefly.

    If `after` is the report of the user's call, all calls are checked briefly and may be refused.
    """
    if currently_in_test_context():
        raise TypeError("inside a Hypothesis test, draw the arguments there, and pass them to check_operator")
    reports = [] if after is None else [after]
    failures = KnownFailures()

    def run(call: tuple[Any, Any]) -> None:
        try:
            failures.again(call)
            failures.first(call, lambda: _run_after(reports, make(*call)), rejects_refused=after is None)
        except Failure as failure:
            if after is None or not _is_refusal(failure):
                raise
            after.refuse("drawn calls")
        if after is not None:
            after.add("drawn calls", 1)

    run.__name__ = "check_" + re.sub(r"\W", "_", name)  # the key under which Hypothesis stores its examples
    quick = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    budget = max(settings().max_examples // SHARE, 1) if max_examples is None else max_examples
    without_shrinking = [phase for phase in settings().phases if phase not in (Phase.shrink, Phase.explain)]
    setting = settings(
        max_examples=budget,
        deadline=None,
        suppress_health_check=quick,
        report_multiple_bugs=False,
        phases=without_shrinking,  # the kit shrinks calls itself
    )
    setting(given(_strategy((args, kwargs)))(run))()
    return reports[0]


class KnownFailures:
    """The failed calls of one test, so that repetitions by Hypothesis cost nothing.

    All failures are raised from the same line, since Hypothesis treats failures from different lines as different
    defects.
    """

    def __init__(self) -> None:
        self._known: dict[Any, Failure] = {}
        self.source: Any = None  # the source of the operator before its first call
        self.calls = 0
        self.refused = 0  # refused calls
        self.seconds = 0.0  # CPU time of all calls
        self.spent = 0.0  # CPU time after a failure

    @property
    def property(self) -> str | None:
        """The property that failed first."""
        return next((failure.property for failure in self._known.values()), None)

    def again(self, call: Any) -> None:
        """Raise the error that this call raised before."""
        known = self._known.get(_key(call))
        if known is not None:
            self._raise(known)

    def first(self, call: Any, check: Callable[[], Any], rejects_refused: bool = True) -> Any:
        """Return the result of a check and record its failure; a refused call may be rejected instead."""
        began, failure = time.process_time(), None
        self.calls += 1
        try:
            return check()
        except Failure as error:
            if rejects_refused and _is_refusal(error):
                self._tell_if_nothing_is_checked(error)
                reject()  # like a call that Hypothesis's `assume` excludes
            failure = error
        finally:
            took = time.process_time() - began
            self.seconds += took
            self.spent += took if self._known else 0.0
        self._known[_key(call)] = failure
        return self._raise(failure)

    def _tell_if_nothing_is_checked(self, refusal: Failure) -> None:
        """Count a refused call, and print why if all were refused, which Hypothesis's error does not explain."""
        self.refused += 1
        if self.refused == self.calls == MOST_REFUSED:
            print(f"{refusal.reason} (all of {self.calls} calls that were drawn)")

    def _raise(self, failure: Failure) -> Any:
        failure.__context__ = failure.__traceback__ = None
        raise failure


def _is_refusal(failure: Failure) -> bool:
    """Return whether the operator raised an error for a call, so that there is nothing to check."""
    return failure.property == "something to check" and rejects(failure.__cause__)


def _key(call: Any) -> Any:
    """Return a key that is equal for two calls with the same values."""

    def of(leaf: Any) -> Any:
        array = leaf._array if isinstance(leaf, Tensor) else leaf
        if isinstance(array, np.ndarray):
            return array.shape, array.dtype.str, array.tobytes()
        return repr(leaf)

    return repr(mapped(of, call))


class _Tests:
    """The latest Hypothesis tests in which operators are checked."""

    MOST: Final = 8
    known: Final[list[tuple[Any, Any, KnownFailures]]] = []

    @classmethod
    def failures(cls, operator: Any, place: Any) -> KnownFailures:
        """Return the known failures of an operator checked at a source location."""
        for given_there, there, failures in cls.known:
            if given_there is operator and there is place:
                return failures
        found = KnownFailures()
        cls.known.append((operator, place, found))
        del cls.known[: -cls.MOST]
        return found


def check_within_test(operator: Any, place: Any, call: tuple[Any, Any], make: Callable[[], Checks]) -> Report | None:
    """Check a call that a Hypothesis test has drawn.

    The first call of a test is checked in full. The others are checked briefly until half of the profile's time for a
    check is used up, and after that only their gradients are checked. After a failure, while Hypothesis shrinks, only
    the failed property is checked, for a few seconds in total. A call that the operator refuses is rejected, as by
    `hypothesis.assume`.

    Arguments:
        operator: the operator.
        place: the code that calls `check_operator`, which identifies the test.
        call: the positional and the keyword arguments.
        make: a function that creates the check.

    Returns:
        The report; None if there was no time left for this call.
    """
    failures = _Tests.failures(operator, place)
    failures.again(call)
    if failures.spent > SHRINKING:
        return None
    with _outside_of_deadline():
        check = make()
        failures.source = check.given_source(failures.source)
        if failures.property is not None:
            check.only_again(failures.property)
        elif failures.seconds > IN_SHORT * PROFILES[profile()]:
            check.only_again("gradients")
        elif failures.calls:
            check.in_short()
        report: Report = failures.first(call, lambda: check.run(shrink=failures.property is None))
    return report


@contextlib.contextmanager
def _outside_of_deadline() -> Iterator[None]:
    """Exclude time from Hypothesis's deadline, which is meant for the code of the test itself.

    Otherwise Hypothesis would report the test as unreliable, since the second of two equal calls costs nothing.
    Hypothesis excludes the time that stateful tests spend on their rules in the same way; versions without that feature
    include the time of the check.
    """
    times = getattr(current_build_context().data, "_stateful_run_times", None)
    began = time.perf_counter()
    try:
        yield
    finally:
        if isinstance(times, dict):
            times["check_operator"] = times.get("check_operator", 0.0) + time.perf_counter() - began


def check_declared(make: Callable[[Any, Any], Checks], operator: Operator) -> Report:
    """Check an operator at the samples in its declaration: the first one in full, the others briefly."""
    reports: list[Report] = []
    for sample in samples_in_each_kind(operator):
        names = sample.differentiable()
        arrays = {name: mapped(np.asarray, value) for name, value in sample.bound().items() if name in names}
        call = sample.replace(**arrays)
        try:
            _run_after(reports, make(call.args, call.kwargs))
        except Failure as failure:  # for example, eigenvectors of complex matrices, whose phases are arbitrary
            unasked = any(np.asarray(part).dtype.kind == "c" for part in _leaves(list(arrays.values())))
            refused = isinstance(failure.__cause__, DifferentiabilityError | UnsupportedDtypeError)
            if not (reports and unasked and refused):
                raise
            reports[0].refuse("complex numbers")
    return reports[0]


def _leaves(value: Any) -> list[Any]:
    found: list[Any] = []
    mapped(found.append, value)
    return found


def _run_after(reports: list[Report], check: Checks) -> None:
    """Run a check, briefly if there are reports of other checks, and count it in the first report."""
    if reports:
        check.in_short()
    report = check.run()
    if not reports:
        reports.append(report)
        return
    for name, count in report.examples.items():
        reports[0].add(name, count)
    reports[0].notices += [notice for notice in report.notices if notice not in reports[0].notices]


def _strategy(value: Any) -> st.SearchStrategy[Any]:
    if isinstance(value, st.SearchStrategy):
        return value
    if type(value) is tuple:
        return st.tuples(*map(_strategy, value))
    if type(value) is list:
        return st.tuples(*map(_strategy, value)).map(list)
    if type(value) is dict:
        return st.fixed_dictionaries({key: _strategy(item) for key, item in value.items()})
    return st.just(value)


def calls_like(args: Any, kwargs: Any) -> tuple[Any, Any]:
    """Return the arguments with tensors and arrays replaced by strategies for values in the same range."""

    def like(leaf: Any) -> Any:
        array = leaf._array if isinstance(leaf, Tensor) else leaf
        if not isinstance(array, np.ndarray) or array.dtype.kind not in "fc" or not array.size:
            return leaf
        parts = [array.real, array.imag] if array.dtype.kind == "c" else [array]
        drawn = [
            st.lists(_between(float(part.min()), float(part.max())), min_size=array.size, max_size=array.size)
            for part in parts
        ]

        def combined(numbers: tuple[list[float], ...]) -> Any:
            values = np.array(numbers[0]) if len(numbers) == 1 else np.array(numbers[0]) + 1j * np.array(numbers[1])
            value = values.reshape(array.shape).astype(array.dtype)
            return Tensor(value, requires_grad=leaf.requires_grad) if isinstance(leaf, Tensor) else value

        return st.tuples(*drawn).map(combined)

    return mapped(like, args), mapped(like, kwargs)


def _between(low: float, high: float) -> st.SearchStrategy[float]:
    """Draw numbers from an interval that are equal or well separated, since differences cannot resolve 1e-35."""
    numbers = st.floats(low, high)
    width = high - low
    if not 0.0 < width < math.inf:
        return numbers
    step = 2.0 ** (math.floor(math.log2(width)) - GRID)
    return numbers.map(lambda number: min(max(round(number / step) * step, low), high))
