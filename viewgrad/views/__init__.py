"""Views: their metadata, and the effect of writes through a view on the history of its base."""

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


def __dir__() -> list[str]:
    return sorted(__all__)
