"""`numpy.lib` for tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import emath as scimath
from ..namespace import filled, public_names
from . import stride_tricks

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


__all__ = public_names(np.lib)
MADE = {"stride_tricks": stride_tricks, "scimath": scimath}
FROM_NUMPY = frozenset(set(__all__) - MADE.keys())

globals().update(filled(np.lib, MADE, FROM_NUMPY, {}))
