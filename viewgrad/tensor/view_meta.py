"""The interface of a view's metadata, as used by tensors and tangents; the classes are in `views/meta.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from .node import OptionalEdge
    from .tensor import Tensor


class ViewMeta(Protocol):
    """The metadata of a view: its base, its position in the base, and the history for which it was created.

    Attributes:
        base: the tensor whose memory the view is a window on; never itself a view.
        index: the basic index that selects the view from the base, if there is one.
        view_fn: the function that takes the view if there is no such index.
        creation: the `CreationMeta` of the view.
        source_edge: the base's edge when the view's own edge was created.
        strided: whether the view consists of whole elements of the base, rather than their real parts.
        overlaps_itself: whether elements of the view share memory.
    """

    base: Tensor
    index: Any
    view_fn: Any
    creation: Any
    source_edge: Any
    strided: bool
    overlaps_itself: bool

    @property
    def is_root(self) -> bool: ...
    @property
    def is_current(self) -> bool: ...
    @property
    def is_before_end(self) -> bool: ...
    @property
    def steps(self) -> tuple[Any, ...]: ...
    @property
    def tangent_root(self) -> Any: ...
    def tangent_window(self, tangent: Any) -> Any: ...
    def window(self, base: Any) -> Any: ...
    def geometry(self, tensor: Tensor) -> Any: ...
    def edge_of(self, tensor: Tensor) -> OptionalEdge: ...
