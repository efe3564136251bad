"""`scipy.ndimage` for tensors: image filters, interpolation, and measurements of regions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import scipy.ndimage  # type: ignore[import-untyped]

from ...numpy.namespace import filled, public_names
from . import measurements, rank_filters, transforms
from .linear import MADE

if TYPE_CHECKING:
    from ..typed.ndimage import *  # noqa: F403

    def __getattr__(name: str) -> Any: ...


globals().update(filled(scipy.ndimage, MADE, frozenset(), {}))
__all__ = public_names(scipy.ndimage)
