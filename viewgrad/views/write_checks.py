"""Checks before an in-place write, which raise if it is not allowed or if its history would be ambiguous."""

from __future__ import annotations

from typing import Final

import numpy as np

from ..errors import LeafInPlaceError, OverlappingWriteError, ViewInPlaceError
from ..tensor.exported_arrays import has_plain_readers, history_refused
from ..tensor.modes import GRAD, current_mode
from ..tensor.node import AccumulateGrad
from ..tensor.storage import scalar_write
from ..tensor.tensor import Tensor
from ..type_aliases import Array
from .detached_views import begin_constant
from .geometry import overlaps_itself
from .meta import CreationMeta
from .rebase_history import record_own_history

ndarray: Final = np.ndarray


def check_write(tensor: Tensor, recorded: bool, window: Array | None = None, *, overwritten: bool = False) -> bool:
    """Refuse an in-place write that is not allowed, or whose history would be ambiguous.

    Arguments:
        tensor: the tensor to write to; its edge must be current.
        recorded: whether the write is recorded, which happens only in grad mode.
        window: the part to write to; None for the whole.
        overwritten: whether the new value does not depend on the old one.

    Returns:
        Whether to call `constant_written` after the write.
    """
    view = tensor._view
    if type(tensor._array) is not ndarray:
        raise scalar_write()
    if view is not None:
        if view.overlaps_itself and overlaps_itself(tensor._array):
            raise OverlappingWriteError(_overlapping(tensor, "it was created by expand, unfold or as_strided"))
        if view.creation is not CreationMeta.DEFAULT and (
            recorded or (view.base._edge is not None and current_mode() & GRAD)
        ):
            is_result = view.creation is CreationMeta.IN_CUSTOM_FUNCTION
            way_out = (
                "clone() the result of the Function" if is_result
                else "take the view in grad mode, or write under no_grad"
            )  # fmt: skip
            raise ViewInPlaceError(
                f"this view was created {view.creation.value} and is written to in grad mode, but the write cannot be "
                f"added to its base's history; {way_out}"
            )
    storage = tensor._storage
    ended = storage is not None and storage.cuts is not None
    if storage is not None and storage.shared:
        array = tensor._array if window is None else window
        if recorded:  # the gradient of the whole is then laid out like its memory
            array = tensor._array if view is None else view.base._array
        if (storage.foreign or array is not storage.root) and overlaps_itself(array):
            why = "its memory came from outside, or from a detached tensor, so"
            raise OverlappingWriteError(_overlapping(tensor, why))
        if recorded and has_plain_readers(storage):
            raise history_refused(storage, "requires grad")
    if recorded:
        base_edge = tensor._edge if view is None else view.base._edge
        old = ended and view is not None and view.is_before_end
        # Any other view that has a history while its base has none is a leaf, or a view of a leaf.
        if type(base_edge) is AccumulateGrad or (base_edge is None and tensor._edge is not None and not old):
            what = "a leaf" if view is None else "a view of a leaf"
            raise LeafInPlaceError(
                f"in-place write to {what} of shape {tensor.shape} that requires grad: its old value would no longer "
                "exist; write to a clone(), or update it under no_grad()"
            )
        if old and not overwritten:
            record_own_history(tensor)
    return ended and not recorded and begin_constant(tensor, window)


def _overlapping(tensor: Tensor, why: str) -> str:
    return (
        f"elements of this tensor of shape {tensor.shape} share memory ({why}), so writing to it has no "
        "defined result; write to its base, to a part whose elements lie apart, or to a clone() of it"
    )
