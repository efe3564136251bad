"""The aliasing: what a view remembers of its base, and how a write through it changes the base's history."""

from . import basic_indexing
from .construct import view_replay
from .copy_slices import CopyBackwards, CopySlices
from .geometry import TensorGeometry
from .meta import CreationMeta, DifferentiableViewMeta
from .rebase_history import rebase_history

__all__ = [
    "CopyBackwards",
    "CopySlices",
    "CreationMeta",
    "DifferentiableViewMeta",
    "TensorGeometry",
    "rebase_history",
    "view_replay",
]
