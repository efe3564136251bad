"""`numpy.fft` for tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..operators.numpy_api.conversion import as_tensors
from ..tensor.tensor import Tensor
from .namespace import filled, public_names

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


FROM_NUMPY = frozenset({"helper", "test"})


def _frequencies(name: str) -> Any:
    function = getattr(np.fft, name)

    def frequencies(n: Any, d: Any = 1.0, device: Any = None) -> Any:
        """Return the frequencies of a transform of `n` samples that are `d` apart; gradients flow to `d`."""
        return as_tensors(function(int(n))) / d if isinstance(d, Tensor) else as_tensors(function(int(n), d))

    frequencies.__name__ = frequencies.__qualname__ = name
    return frequencies


MADE: dict[str, Any] = {name: _frequencies(name) for name in ("fftfreq", "rfftfreq")}

globals().update(filled(np.fft, MADE, FROM_NUMPY, {}))
__all__ = public_names(np.fft)
