"""Attributes that the forward of a custom function sets on ctx; tensors and arrays among them keep their values."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final

import attrs
import numpy as np

from ...tensor.refcounts import TRUSTED, getrefcount
from ...tensor.storage import Storage, storage_of
from ...tensor.tensor import Tensor
from .node import UNKNOWN, FunctionCtx, SavedEntry, SaveRequest, version_of


@attrs.define(eq=False)
class SavedAttribute:
    """A value that forward stored on ctx under a name, or in a container on ctx.

    Arguments:
        name: the name of the attribute.
        item: a tensor, or an array.
        storage: for an array, the storage of the input or output that shares its memory; for a tensor, None.
        version: the version of that memory at the end of forward or backward.
        kept: the saved value.
        is_new: whether forward created the tensor, and stored it only here, so that its history is unknown.
    """

    name: str
    item: Any
    storage: Storage | None
    version: int
    kept: SavedEntry
    is_new: bool = False

    def restore(self, ctx: FunctionCtx) -> None:
        """Restore the value of an attribute that was written to."""
        if self._version() != self.version:
            restored = self._restored_tensor(ctx) if isinstance(self.item, Tensor) else self.kept.saved.array
            setattr(ctx, self.name, _with_item(getattr(ctx, self.name, None), self.item, restored))
            self.item = restored
            self.note()

    def note(self) -> None:
        """Accept the writes made so far."""
        self.version = self._version()

    def _version(self) -> int:
        return version_of(self.item) if self.storage is None else self.storage.version + self.storage.writes

    def _restored_tensor(self, ctx: FunctionCtx) -> Tensor | None:
        """Return a tensor with the saved value and its original history, which may be a graph inside forward."""
        restored = ctx._unpacked(self.kept)
        if restored is not None and self.kept.origin is UNKNOWN and self.item._edge is not None:
            restored._edge = self.item._edge
        return restored


def saved_attributes(
    ctx: FunctionCtx, keep: Callable[[SaveRequest], SavedEntry], inputs: tuple[Tensor, ...], outputs: list[Any]
) -> list[SavedAttribute]:
    """Return the attributes of `ctx` to save at the end of forward.

    Arguments:
        ctx: the context with the user's attributes.
        keep: the function that saves a tensor with its history.
        inputs, outputs: the inputs and outputs of forward; arrays that share their memory are saved too.
    """
    found = []
    for name, item, is_new in items_left_in(vars(ctx)):
        if isinstance(item, Tensor):
            request = SaveRequest(item, ctx._saved(item), version_of(item))
            kept = keep(request)
            is_new = is_new and kept.origin is UNKNOWN and item._edge is None and item._array.dtype.kind in "fc"
            found.append(SavedAttribute(name, item, None, request.version, kept, is_new))
            continue
        for owner in (*inputs, *outputs):
            if isinstance(owner, Tensor) and not owner.is_inference() and np.may_share_memory(owner._array, item):
                storage = storage_of(owner)  # an output would be kept alive by its own graph
                kept = SavedEntry(storage.save(item, None), UNKNOWN, ctx._function.__name__)
                found.append(SavedAttribute(name, item, storage, version_of(owner), kept))
                break
    return found


def items_left_in(attributes: dict[str, Any]) -> list[tuple[str, Any, bool]]:
    """Return the tensors and arrays in the attributes, each with its name and whether it is referenced only there."""
    found = []
    for name in [name for name in attributes if not name.startswith("_")]:
        for item in _items_of(attributes[name]):
            holders = getrefcount(item)
            found.append((name, item, holders <= ALONE_ON_CTX))
    return found


def _items_of(value: Any) -> list[Any]:
    """Return the tensors and arrays in an attribute, including those inside lists, tuples and dictionaries."""
    if isinstance(value, Tensor):
        return [] if value.is_inference() else [value]
    if isinstance(value, np.ndarray):
        return [value]
    inner = value.values() if type(value) is dict else value if type(value) in (list, tuple) else ()
    return [item for part in inner for item in _items_of(part)]


def _with_item(value: Any, old: Any, new: Any) -> Any:
    """Return an attribute with one item replaced."""
    if value is old:
        return new
    if type(value) is dict:
        return {key: _with_item(part, old, new) for key, part in value.items()}
    return type(value)(_with_item(part, old, new) for part in value) if type(value) in (list, tuple) else value


def _count_on_ctx() -> int:
    """Return the reference count, measured as in `items_left_in`, of an object that only an attribute refers to."""
    attributes = {"item": [np.empty(0)]}
    for item in _items_of(attributes["item"]):
        return getrefcount(item)
    return 0


ALONE_ON_CTX: Final = _count_on_ctx() if TRUSTED else sys.maxsize
