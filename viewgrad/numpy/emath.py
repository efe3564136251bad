"""`numpy.emath` for tensors: functions with complex results where real results do not exist."""

from __future__ import annotations

import numpy as np

from ..operators.numpy_api.adapted import adapted
from .namespace import public_names

__all__ = public_names(np.emath)

globals().update({name: adapted(getattr(np.emath, name), f"numpy.emath.{name}") for name in __all__})
