"""`numpy.ctypeslib`: memory passed to C, through which no history is recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.ctypeslib

from .namespace import public_names
from .unsupported import refusing

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


__all__ = public_names(np.ctypeslib)
WAY_OUT = "C code is not differentiated; wrap it in a viewgrad.autograd.Function"

globals().update({name: refusing(getattr(np.ctypeslib, name), f"numpy.ctypeslib.{name}", WAY_OUT) for name in __all__})
