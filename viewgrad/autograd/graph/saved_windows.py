"""Policies for saved values whose memory is written to: copy them, refuse the write, or report the loss."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import attrs

from ...operators.interception import OperatorCall
from ...tensor.indices import window_at
from ...tensor.interceptors import feature
from ...tensor.modes import STRICT, ModeSwitch
from ...tensor.storage import root_index, storage_of
from ...tensor.tensor import Tensor
from ...views.geometry import TensorGeometry


@attrs.frozen
class PreservedWindow:
    """A saved window that was copied before a write changed it.

    Arguments:
        geometry: its sizes, strides and offset, in elements, from the start of its storage.
        nbytes: the number of bytes copied.
        writer: the operator that wrote, such as `mul_` or `__setitem__`.
    """

    geometry: TensorGeometry
    nbytes: int
    writer: str


def preserved(tensor: Tensor) -> list[PreservedWindow]:
    """Return the saved windows of a storage that were copied before writes.

    Arguments:
        tensor: any tensor on the storage.

    Returns:
        A record for each copy, in order, with the write and the number of bytes; at most the latest thousand.

    Example:
        >>> import viewgrad as vg
        >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> y = x * 1
        >>> z = y * y
        >>> y += 1
        >>> [(window.nbytes, window.writer) for window in vg.autograd.graph.preserved(y)]
        [(16, 'add_')]
    """
    storage = tensor._storage
    if storage is None or storage.preserved is None:
        return []
    return [
        PreservedWindow(TensorGeometry.of(window, storage.root), window.nbytes, writer)
        for window, writer in tuple(storage.preserved)
    ]


def increment_version(tensor: Tensor | Iterable[Tensor], window: Any = None) -> None:
    """Report that a tensor's memory was written to outside viewgrad.

    Values saved from that memory for backward are no longer valid, and using them raises an error. Values saved from
    external memory (`from_numpy`, DLPack) were copied when they were saved and stay valid.

    Arguments:
        tensor: the tensor that was written to, or several.
        window: a basic index of the part that was written to, such as `numpy.s_[1:3]`; by default the whole tensor.

    Example:
        >>> import viewgrad as vg
        >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> y = x.clone()
        >>> z = (y * y).sum()
        >>> vg.autograd.graph.increment_version(y)
        >>> y._version
        1
        >>> z.backward()
        Traceback (most recent call last):
        viewgrad.errors.SavedValueError: a value saved for backward was overwritten by code outside viewgrad ...
    """
    if not isinstance(tensor, Tensor):
        for one in tensor:
            increment_version(one, window)
        return
    array = tensor._array
    if window is not None:
        array = window_at(array, window)
        if array.base is None:
            raise IndexError("the index of increment_version() must consist of integers, slices, None and ...")
    storage_of(tensor).invalidate(array)


class forbid_mutation_on_saved_tensors(ModeSwitch):
    """Raise an error for writes that would change a saved value, instead of copying the value first.

    Use it to find the writes that cost memory and time, or to enforce PyTorch's rule. The error is raised at the line
    of the write, before anything is changed. An operator may still overwrite a value that only it has saved, as
    `x.mul_(x)` does. Single elements saved before the block are stored as numbers, so later writes do not affect them.

    Raises:
        StrictMutationError: from such a write inside the block; it names the node that saved the value.

    Example:
        >>> import viewgrad as vg
        >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> y = x.exp()
        >>> with vg.autograd.graph.forbid_mutation_on_saved_tensors():
        ...     y += 1
        Traceback (most recent call last):
        viewgrad.errors.StrictMutationError: add_ would touch a value of shape (2,) that ExpBackward saved...
    """

    def __init__(self) -> None:
        super().__init__(on=STRICT)


@feature(STRICT, OperatorCall)
def refuse_first(call: OperatorCall, run: Callable[[], Any]) -> Any:
    """Refuse an in-place operator before the operator itself saves any values."""
    if call.inplace:
        target: Tensor = call.args[0]
        storage = storage_of(target)
        storage.preserve(target._array, root_index(target, storage), f"{call.operator.name}_")
    with ModeSwitch(off=STRICT):
        return run()
