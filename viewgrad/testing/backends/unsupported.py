"""Machines of libraries that support only part of the steps."""

from __future__ import annotations

from typing import Any, NoReturn

from ..program_ops import Step


class Unsupported(Exception):
    """The backend does not support this."""


class LimitedMachine:
    """A machine that does not support the steps for which its subclass has no method."""

    def _unsupported(self, step: Step) -> NoReturn:
        raise Unsupported(step.method)

    unpack: Any = _unsupported
    several: Any = _unsupported
    detach: Any = _unsupported
    detach_in_place: Any = _unsupported
    unrecorded_view: Any = _unsupported
    no_grad: Any = _unsupported
