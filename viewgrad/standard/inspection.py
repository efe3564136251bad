"""Information about the namespace: devices, dtypes and capabilities."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any, Final

import numpy as np

from ..tensor.conversions import ADOPTED
from ..tensor.creation import CPU, checked_device
from ..tensor.tensor import Tensor
from .dtypes import DTYPES, KINDS, isdtype

API_VERSION: Final = "2024.12"
KNOWN: Final = ("2021.12", "2022.12", "2023.12", "2024.12")


class NamespaceInfo:
    """The result of `__array_namespace_info__()`."""

    def capabilities(self) -> dict[str, Any]:
        """Return whether boolean masks and data-dependent shapes are supported, and the largest number of dimensions.

        """
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        """Return the default device, "cpu"."""
        return CPU

    def devices(self) -> list[str]:
        """Return the available devices: only "cpu"."""
        return [CPU]

    def default_dtypes(self, *, device: Any = None) -> dict[str, np.dtype[Any]]:
        """Return the default dtypes of creation functions."""
        checked_device(device)
        integer = np.dtype(np.intp)
        return {
            "real floating": np.dtype(float),
            "complex floating": np.dtype(complex),
            "integral": integer,
            "indexing": integer,
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, np.dtype[Any]]:
        """Return the dtypes of the standard, by name.

        Arguments:
            device: None or "cpu".
            kind: restricts them to a kind, or to one of several in a tuple; see `isdtype`.
        """
        checked_device(device)
        named = {name: np.dtype(DTYPES[name]) for names in (KINDS["bool"], KINDS["numeric"]) for name in names}
        return {name: dtype for name, dtype in named.items() if kind is None or isdtype(dtype, kind)}


def install(namespace: ModuleType) -> None:
    """Set the namespace that tensors report as their own; in adopted code, it is the counterpart of NumPy."""

    def __array_namespace__(self: Tensor, *, api_version: str | None = None) -> ModuleType:
        if api_version is not None and api_version not in KNOWN:
            raise ValueError(f"this library implements the array API up to {API_VERSION}, not {api_version!r}")
        is_adopted = ADOPTED in sys._getframe(1).f_globals
        return importlib.import_module(f"{namespace.__name__}.numpy") if is_adopted else namespace

    Tensor.__array_namespace__ = __array_namespace__  # type: ignore[attr-defined]
