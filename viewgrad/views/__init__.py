"""The aliasing: what a view remembers of its base, and how a write through it changes the base's history."""

from .meta import CreationMeta, DifferentiableViewMeta, view_replay
from .geometry import TensorGeometry

__all__ = ["CreationMeta", "DifferentiableViewMeta", "TensorGeometry", "view_replay"]
