"""`numpy.ma`: masked arrays, which no tensor can be; tensors that have a history are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.ma

from .namespace import public_names
from .refusing import refusing

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


__all__ = public_names(np.ma)
WAY_OUT = "masked arrays have no derivative here; use np.where(mask, ..., x), x[mask], or the nan functions"

globals().update({name: refusing(getattr(np.ma, name), f"numpy.ma.{name}", WAY_OUT) for name in __all__})
