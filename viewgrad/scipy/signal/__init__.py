"""`scipy.signal` for tensors: convolutions, filters, spectra, systems and windows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import scipy.signal  # type: ignore[import-untyped]

from ...numpy.namespace import filled, public_names
from . import (
    convolutions,
    designs,
    filtering,
    partial_fractions,
    peaks,
    responses,
    spectra,
    splines,
    system_objects,
    systems,
    windows,
)

if TYPE_CHECKING:
    from ..typed.signal import *  # noqa: F403

    def __getattr__(name: str) -> Any: ...


MADE: dict[str, Any] = {
    name: function
    for module in (
        convolutions, designs, filtering, partial_fractions, peaks, responses, spectra, splines, systems,
        system_objects,
    )
    for name, function in module.MADE.items()
}
MADE |= {"windows": windows, "get_window": windows.get_window}
globals().update(filled(scipy.signal, MADE, frozenset(), {}))
__all__ = public_names(scipy.signal)
