"""`scipy.linalg` for tensors."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import scipy.linalg  # type: ignore[import-untyped]

from ...numpy.namespace import filled, public_names
from . import base, functions, reduced

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


MADE: dict[str, Any] = {**base.MADE, **functions.MADE, **reduced.MADE}
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    globals().update(filled(scipy.linalg, MADE, frozenset({"LinAlgError", "LinAlgWarning"}), {}))
__all__ = public_names(scipy.linalg)
