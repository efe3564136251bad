"""Tools that inspect the graph and its saved values: hooks, drawings, explanations and memory usage."""

from ...tensor.node import AccumulateGrad, Edge, Node, RemovableHandle
from ..execute import plain_engine
from ..gradient_edge import GradientEdge, get_gradient_edge
from ..modes.saved_hooks import disable_saved_tensors_hooks, save_on_disk, saved_tensors_hooks
from .drawing import to_dot, to_mermaid
from .explain import explain
from .memory import memory
from .multi_grad import register_multi_grad_hook
from .saved_windows import PreservedWindow, forbid_mutation_on_saved_tensors, increment_version, preserved

__all__ = [
    "AccumulateGrad",
    "Edge",
    "GradientEdge",
    "Node",
    "PreservedWindow",
    "RemovableHandle",
    "disable_saved_tensors_hooks",
    "explain",
    "forbid_mutation_on_saved_tensors",
    "get_gradient_edge",
    "increment_version",
    "memory",
    "plain_engine",
    "preserved",
    "register_multi_grad_hook",
    "save_on_disk",
    "saved_tensors_hooks",
    "to_dot",
    "to_mermaid",
]
