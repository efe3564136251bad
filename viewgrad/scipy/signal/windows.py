"""`scipy.signal.windows`: SciPy's windows, whose parameters can be tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import scipy.signal.windows  # type: ignore[import-untyped]

from ...numpy.namespace import filled, public_names
from .. import special
from ..wrap import Accepted, maker, numbers

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


MADE: dict[str, Any] = {}
made: Final = maker(scipy.signal.windows, MADE, is_checked=True, accepted=Accepted(by_value=False))


@made
def kaiser(M: Any, beta: Any, sym: bool = True, **options: Any) -> Any:
    """Return a Kaiser window, differentiable with respect to its shape."""
    if int(M) != M or M < 0:
        raise ValueError("Window length M must be a non-negative integer")
    count, beta = int(M), numbers(beta)
    length = count if sym else count + 1
    place = 2.0 * np.arange(count) / max(length - 1, 1) - 1.0
    if count <= 1:
        return np.ones(count) + 0.0 * beta
    return special.i0(beta * np.sqrt(np.maximum(1.0 - place**2, 0.0))) / special.i0(beta)


@made
def get_window(window: Any, Nx: int, fftbins: bool = True, **options: Any) -> Any:
    """Return a window by name, differentiable with respect to the parameters that follow the name."""
    parameters: list[Any]
    name: Any
    name, *parameters = window if isinstance(window, tuple) else ("kaiser", window)
    name = SHORT_NAMES.get(name, name)
    function = MADE[name] if name in MADE else getattr(scipy.signal.windows, name)
    return function(int(Nx), *map(numbers, parameters), sym=not fftbins)


SHORT_NAMES: Final = {
    "ksr": "kaiser", "kai": "kaiser", "gauss": "gaussian", "gss": "gaussian", "general gaussian": "general_gaussian",
    "general gauss": "general_gaussian", "ggs": "general_gaussian", "tuk": "tukey", "poisson": "exponential",
    "general cosine": "general_cosine", "general hamming": "general_hamming",
}  # fmt: skip
OWN: Final = frozenset(public_names(scipy.signal.windows)) - MADE.keys()
globals().update(filled(scipy.signal.windows, MADE, OWN, {}))
__all__ = public_names(scipy.signal.windows)
