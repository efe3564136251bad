"""`numpy.lib` for tensors."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import emath as scimath
from ..namespace import filled, public_names
from . import stride_tricks

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


__all__ = public_names(np.lib)
MADE = {"stride_tricks": stride_tricks, "scimath": scimath}
FROM_NUMPY = frozenset(set(__all__) - MADE.keys())

globals().update(filled(np.lib, MADE, FROM_NUMPY, {}))
# Modules that remain NumPy's can be imported from here as well; not every NumPy version has all of them.
for _name in ("array_utils", "format", "introspect", "mixins", "npyio", "recfunctions"):
    if importlib.util.find_spec(f"numpy.lib.{_name}") is not None:
        _module = sys.modules[f"{__name__}.{_name}"] = importlib.import_module(f"numpy.lib.{_name}")
        globals()[_name] = _module
sys.modules[f"{__name__}.scimath"] = scimath
