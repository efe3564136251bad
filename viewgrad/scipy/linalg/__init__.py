"""`scipy.linalg` for tensors."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import scipy.linalg  # type: ignore[import-untyped]

from ...numpy.namespace import filled, public_names
from .functions import MADE as FUNCTIONS
from .schur import MADE as DECOMPOSITIONS
from .solve import MADE as SOLVERS

if TYPE_CHECKING:
    from ..typed.linalg import *  # noqa: F403

    def __getattr__(name: str) -> Any: ...


MADE: dict[str, Any] = {**SOLVERS, **FUNCTIONS, **DECOMPOSITIONS}
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    globals().update(filled(scipy.linalg, MADE, frozenset({"LinAlgError", "LinAlgWarning"}), {}))
__all__ = public_names(scipy.linalg)
