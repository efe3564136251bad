"""The data: storages, tensors, their creation, and their interplay with NumPy.

The module itself can be called like `viewgrad.array`: `viewgrad.tensor([1.0, 2.0], requires_grad=True)`.
"""

import sys
from types import ModuleType
from typing import Any

from .creation import array
from .node import AccumulateGrad, Edge, Node
from .saved import SavedTensor
from .storage import Storage, VersionCounter, storage_of
from .tensor import Tensor

__all__ = ["AccumulateGrad", "Edge", "Node", "SavedTensor", "Storage", "Tensor", "VersionCounter", "storage_of"]


class CallableModule(ModuleType):
    """The module, which can be called to create a tensor."""

    def __call__(self, data: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
        return array(data, dtype, requires_grad)


sys.modules[__name__].__class__ = CallableModule
