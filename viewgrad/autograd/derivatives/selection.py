"""The derivatives of what copies, casts, picks and orders elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from .define import row
from .samples import case, draws

__all__: list[str] = []

Array = np.ndarray[Any, Any]

# -- copies ----------------------------------------------------------------------------------------------------------------

row("clone(self)", lambda self: self.copy(order="K"), {"self": "grad"}, forward_derivative="auto_linear", kinds="fc", numpy=[np.copy], doc="A copy with the same history.")
row("contiguous_copy(self)", lambda self: self.copy(order="C"), {"self": "grad"}, forward_derivative="auto_linear", kinds="fc", doc="A copy laid out in row order.")
row(
    "astype(self, dtype)", lambda self, dtype: self.astype(dtype), {"self": "as_dtype(grad, self.dtype)"}, forward_derivative="auto_linear", kinds="fc",
    samples=draws(case((3, 4), np.float64), case((3, 4), np.complex128)),
    doc="The values in another dtype; of complex numbers the real parts where that is real.",
)  # fmt: skip
