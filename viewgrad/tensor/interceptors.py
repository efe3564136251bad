"""Interceptors: functions that run around calls while a mode is enabled; see `tensor/modes.py`.

A feature is one bit of the mode and a function that runs around a call of an operator, or around an indexed read or
write. Each feature has its own file and registers itself with `@feature(BIT, KIND)`. This file only determines how
features are nested.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final, TypeVar

import attrs

from .async_safety import is_refusal, isolated
from .modes import ANOMALY, FORWARD, FUNCTIONAL, INFERENCE, PACK, PROFILE, STRICT, TRACE
from .node import Node

# From the outermost feature to the innermost. View replay is not listed, since its code checks the mode itself.
ORDER: Final = (PROFILE, FUNCTIONAL, FORWARD, TRACE, STRICT, ANOMALY, PACK, INFERENCE)
SWITCHING: Final = TRACE | FUNCTIONAL | FORWARD | PACK  # features that change modes, or write to several objects


@attrs.define(eq=False, kw_only=True)
class Call:
    """A call that features may run around; subclasses define its kind.

    Arguments:
        inplace: whether it writes to a tensor and creates none.
        node: after the call, its own node, or None if nothing was recorded.
        history: after the call, the node at the end of the history, which for a write through a view is a `CopySlices`
            around `node`.
    """

    inplace: bool
    node: Node | None = None
    history: Node | None = None

    def name(self) -> str:
        """Return the name of the callee in tables."""
        raise NotImplementedError

    def run(self) -> Any:
        """Run the call without any feature other than grad mode."""
        raise NotImplementedError

    def refuse(self) -> None:
        """Make the history and the tangents of the target unusable after an exception in a write."""
        raise NotImplementedError


C = TypeVar("C", bound=Call)
Feature = Callable[[Any, Callable[[], Any]], Any]

_features: Final[dict[tuple[int, type[Call]], Feature]] = {}
_found: Final[dict[tuple[type[Call], int], tuple[Feature, ...]]] = {}  # by class and mode; created on first use


def feature(bit: int, kind: type[C]) -> Callable[[Callable[[C, Callable[[], Any]], Any]], Any]:
    """Register a function `(call, run) -> result` to run around every call of a kind while `bit` is set in the mode.

    `run` takes no arguments and performs the call; it returns a tensor or a tuple of tensors.
    """

    def register(function: Callable[[C, Callable[[], Any]], Any]) -> Any:
        _features[bit, kind] = function
        _found.clear()
        return function

    return register


def run_with_features(call: Call, mode: int) -> Any:
    """Run a call with the active features."""
    run = call.run
    kind = type(call)
    found = _found.get((kind, mode))
    if found is None:
        found = _found[kind, mode] = features_of(kind, mode)
    for function in found:
        run = functools.partial(function, call, run)
    if not mode & SWITCHING:
        return run()
    try:
        return isolated(run)
    except BaseException as error:
        if call.inplace and not is_refusal(error):
            call.refuse()
        raise


def features_of(kind: type[Call], mode: int) -> tuple[Feature, ...]:
    """Return the functions that a mode runs around calls of a class, innermost first."""
    found = []
    for bit in reversed(ORDER):
        if mode & bit:
            found += [_features[bit, each] for each in kind.__mro__ if (bit, each) in _features][:1]
    return tuple(found)
