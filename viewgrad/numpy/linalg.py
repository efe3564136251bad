"""`numpy.linalg` for tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .namespace import filled, public_names

if TYPE_CHECKING:
    from .typed_linalg import *  # noqa: F403


MADE: dict[str, Any] = {}
FROM_NUMPY = frozenset({"LinAlgError", "linalg", "test"})
ALTERNATIVES: dict[str, str] = {}

globals().update(filled(np.linalg, MADE, FROM_NUMPY, ALTERNATIVES))
__all__ = public_names(np.linalg)
