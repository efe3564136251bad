"""Operators that approximate a limit and whose gradient is that of the limit: solvers, series, quadrature.

Their options are tolerances or numbers of iterations or nodes. Options are recognized by their names, and because the
results of the user's call hardly change if they are refined.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import attrs
import numpy as np

from ...type_aliases import Array
from .arguments import Example
from .operator_under_test import OperatorUnderTest, Refused

COUNTS: Final = re.compile(r"iter|step|sweep|term|node|point|round|^n$|^num|order|depth|degree")
PATTERNS: Final = {int: COUNTS, float: re.compile(r"tol")}
CONVERGED: Final = 1e-6  # the change of results when an option is refined
AMPLIFIED: Final = 1e3  # the ratio of an error of a gradient to the error of the results that excuses it


def options_of_a_limit(subject: OperatorUnderTest, base: Example) -> tuple[str, ...]:
    """Return the names of the options of the user's call that control the distance from a limit."""
    names = [
        name
        for name, value in subject.usual.items()
        if name not in subject.contract.options
        and (pattern := PATTERNS.get(type(value))) is not None
        and pattern.search(name.lower())
    ]
    results = _values(subject, base) if names else None
    if results is None:
        return ()
    return tuple(
        name
        for name in names
        if all(
            _distance(results, _values(subject, _with(subject, base, name, value))) <= CONVERGED
            for value in _finer(subject.usual[name])
        )
    )


def counts_nothing(subject: OperatorUnderTest, example: Example) -> bool:
    """Return whether a count among the options is not positive although it is in the user's call."""
    given = {**dict(zip(subject.parameters, example.args, strict=False)), **example.kwargs}
    counts = [name for name, value in given.items() if type(value) is int and COUNTS.search(name.lower())]
    return any(type(usual := subject.usual.get(name)) is int and given[name] <= 0 < usual for name in counts)


def refuse_if_coarse(subject: OperatorUnderTest, example: Example, error: float) -> None:
    """Refuse, with a notice, a derived call whose results are further from the limit than those of the user's call.

    Arguments:
        subject: the operator, whose `limits` are the relevant options.
        example: the derived call.
        error: the difference between a gradient and finite differences.

    Raises:
        Refused: if an option is coarser than in the user's call, or if refining it changes the results enough.
    """
    given = {**dict(zip(subject.parameters, example.args, strict=False)), **example.kwargs}
    for name in subject.limits:
        usual = subject.usual[name]
        value = given.get(name, usual)
        if type(value) is not type(usual):
            continue
        coarse = value < usual if type(usual) is int else value > usual
        where = f"{name}={value!r}"
        if not coarse:
            here = _values(subject, example)
            others = [_values(subject, _with(subject, example, name, finer)) for finer in _finer(value)]
            coarse = error <= AMPLIFIED * max(_distance(here, other) for other in others)
            where = example.label
        if coarse:
            what = f"it approximates a limit by {name}"
            if not any(notice.startswith(what) for notice in subject.notices):
                subject.note(
                    f"{what} and returns the gradient of the limit, but its value is far from the limit for {where}; "
                    f"check with options={{{name!r}: [...]}} or valid=... if this is not intended"
                )
            raise Refused(f"it has not converged to its limit for {where}")


def _finer(value: Any) -> tuple[Any, ...]:
    # Odd and even numbers, since iterations may cycle.
    return (value + 1, 2 * value) if type(value) is int else (0.5 * value, 0.1 * value)


def _with(subject: OperatorUnderTest, example: Example, name: str, value: Any) -> Example:
    names = list(subject.parameters)
    args, kwargs = list(example.args), dict(example.kwargs)
    if name in names and names.index(name) < len(args):
        args[names.index(name)] = value
    else:
        kwargs[name] = value
    return attrs.evolve(example, args=tuple(args), kwargs=kwargs)


def _values(subject: OperatorUnderTest, example: Example) -> Sequence[Array] | None:
    try:
        return subject.values(example)
    except (Refused, RuntimeError):
        return None


def _distance(one: Sequence[Array] | None, other: Sequence[Array] | None) -> float:
    """Return the largest difference of results relative to their size, or infinity if their shapes differ."""
    if one is None or other is None or [mine.shape for mine in one] != [theirs.shape for theirs in other]:
        return float("inf")
    size = max([1.0, *(float(np.abs(mine).max(initial=0.0)) for mine in one)])
    with np.errstate(all="ignore"):
        away = [float(np.abs(mine - theirs).max(initial=0.0)) for mine, theirs in zip(one, other, strict=True)]
    return max(away, default=0.0) / size
