"""The attributes that the forward of a custom function leaves on ctx: tensors and arrays keep their values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import numpy as np

from ...tensor.storage import storage_of
from ...tensor.tensor import Tensor
from .node import UNKNOWN, FunctionCtx, SavedEntry, SaveRequest, version_of

__all__ = ["SavedAttribute", "saved_attributes"]


@attrs.define(eq=False)
class SavedAttribute:
    """A value that forward has left on ctx under a name, or in a container there.

    Arguments:
        name: of the attribute.
        item: a tensor, or an array.
        owner: the tensor itself, or one over the same memory.
        version: the version of that, when forward or backward was done with it.
        kept: what is kept of the value.
    """

    name: str
    item: Any
    owner: Tensor
    version: int
    kept: SavedEntry

    def restore(self, ctx: FunctionCtx) -> None:
        """Restore the value of an attribute that was written to."""
        if version_of(self.owner) != self.version:
            restored = self.kept.saved.array if self.item is not self.owner else ctx._unpacked(self.kept)
            setattr(ctx, self.name, _with_item(getattr(ctx, self.name, None), self.item, restored))
            self.item = restored
            self.note()

    def note(self) -> None:
        """Take what has been written so far for granted."""
        self.version = version_of(self.owner)


def saved_attributes(
    ctx: FunctionCtx, keep: Callable[[SaveRequest], SavedEntry], inputs: tuple[Tensor, ...], outputs: list[Any]
) -> list[SavedAttribute]:
    """Return what to keep of the attributes of `ctx` at the end of forward.

    Arguments:
        ctx: with attributes that the user has put there.
        keep: keeps a tensor, with its history.
        inputs, outputs: of forward; arrays over their memory are kept, too.
    """
    found = []
    for name, value in vars(ctx).items():
        for item in () if name.startswith("_") else _items_of(value):
            if isinstance(item, Tensor):
                request = SaveRequest(item, ctx._saved(item), version_of(item))
                found.append(SavedAttribute(name, item, item, request.version, keep(request)))
                continue
            for owner in (*inputs, *outputs):
                if isinstance(owner, Tensor) and not owner.is_inference() and np.may_share_memory(owner._array, item):
                    kept = SavedEntry(storage_of(owner).save(item, None), UNKNOWN, ctx._function.__name__)
                    found.append(SavedAttribute(name, item, owner, version_of(owner), kept))
                    break
    return found


def _items_of(value: Any) -> list[Any]:
    """The tensors and arrays in an attribute, also inside of lists, tuples and dictionaries."""
    if isinstance(value, Tensor):
        return [] if value.is_inference() else [value]
    if isinstance(value, np.ndarray):
        return [value]
    inner = value.values() if type(value) is dict else value if type(value) in (list, tuple) else ()
    return [item for part in inner for item in _items_of(part)]


def _with_item(value: Any, old: Any, new: Any) -> Any:
    """An attribute with one item in place of another."""
    if value is old:
        return new
    if type(value) is dict:
        return {key: _with_item(part, old, new) for key, part in value.items()}
    return type(value)(_with_item(part, old, new) for part in value) if type(value) in (list, tuple) else value
