"""Looking at the graph and at what it saves: hooks on saved values and on several tensors, drawings, explanations."""

from ...tensor.node import AccumulateGrad, Edge, Node, RemovableHandle
from .multi_grad import register_multi_grad_hook
from .saved_hooks import disable_saved_tensors_hooks, save_on_disk, saved_tensors_hooks
from .saved_windows import PreservedWindow, forbid_mutation_on_saved_tensors, increment_version, preserved

__all__ = [
    "AccumulateGrad",
    "Edge",
    "Node",
    "PreservedWindow",
    "RemovableHandle",
    "disable_saved_tensors_hooks",
    "forbid_mutation_on_saved_tensors",
    "increment_version",
    "preserved",
    "register_multi_grad_hook",
    "save_on_disk",
    "saved_tensors_hooks",
]
