"""The data: storages, tensors, how they are made, and what they are to NumPy."""

from .node import AccumulateGrad, Edge, Node
from .saved import SavedTensor
from .storage import Storage, VersionCounter, storage_of
from .tensor import Tensor

__all__ = ["AccumulateGrad", "Edge", "Node", "SavedTensor", "Storage", "Tensor", "VersionCounter", "storage_of"]
