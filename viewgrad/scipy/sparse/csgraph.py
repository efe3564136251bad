"""`scipy.sparse.csgraph`: SciPy's own functions, for sparse arrays whose stored values have no history."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import scipy.sparse.csgraph  # type: ignore[import-untyped]

from ...numpy.namespace import public_names
from .namespace import namespace

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


__all__ = public_names(scipy.sparse.csgraph)
globals().update(namespace(scipy.sparse.csgraph, {}))
