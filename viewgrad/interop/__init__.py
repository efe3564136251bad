"""Bridges to other libraries: use viewgrad functions in PyTorch, JAX and PyTensor, and vice versa.

Each module requires the library it is named after: `pip install viewgrad[interop-torch]`, `[interop-jax]` or
`[interop-pytensor]`. It is imported when a function is called.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from .jax import from_jax, jax_function
    from .pytensor import pytensor_op
    from .pytorch import from_torch, torch_function

__all__ = ["from_jax", "from_torch", "jax_function", "pytensor_op", "torch_function"]

HOMES: Final = {
    "from_jax": "jax",
    "from_torch": "pytorch",
    "jax_function": "jax",
    "pytensor_op": "pytensor",
    "torch_function": "pytorch",
}


def __getattr__(name: str) -> Any:
    if name in HOMES:
        return getattr(importlib.import_module(f"{__name__}.{HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
