"""`numpy.polynomial` for tensors: NumPy's own code, over the functions of this namespace."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from .namespace import public_names
from .rebound_modules import borrowed_modules

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


FAMILIES: Final = ("polynomial", "chebyshev", "legendre", "hermite", "hermite_e", "laguerre")
__all__ = public_names(np.polynomial)


def fill(namespace: Any) -> None:
    """Make the modules, once the namespace that they are to use is complete."""
    originals = {
        importlib.import_module(f"numpy.polynomial.{name}"): f"{__name__}.{name}"
        for name in ("polyutils", "_polybase", *FAMILIES)
    }
    copies = borrowed_modules(originals, {np: namespace, np.linalg: namespace.linalg})
    for original, copy in copies.items():
        name = original.__name__.rpartition(".")[2]
        sys.modules[copy.__name__] = globals()[name] = copy
        for public in getattr(original, "__all__", ()):
            if isinstance(getattr(original, public), type):
                globals()[public] = getattr(copy, public)


set_default_printstyle = np.polynomial.set_default_printstyle
