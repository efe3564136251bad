"""`scipy.sparse` for tensors: CSR, CSC and COO arrays whose stored values are tensors.

Gradients flow to the stored values only, and no operation converts a sparse matrix to a dense one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import scipy.sparse  # type: ignore[import-untyped]

from ...numpy.namespace import public_names
from . import assignable, csgraph, linalg
from .arrays import ARRAYS, SparseArray
from .construct import MADE
from .namespace import namespace

if TYPE_CHECKING:
    from ..typed.sparse import *  # noqa: F403

    def __getattr__(name: str) -> Any: ...


globals().update(namespace(scipy.sparse, {**ARRAYS, **MADE, "linalg": linalg, "csgraph": csgraph}))
__all__ = [*public_names(scipy.sparse), "SparseArray"]
