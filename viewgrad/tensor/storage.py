"""Storage: one buffer, and everything that all tensors over it share.

A tensor whose memory nobody else can see has no `Storage` at all until one is needed: when a view of it is taken,
when it is written to, or when its version is asked for. Until then what was saved from it is known to the tensor
itself (`Tensor._saved`). See Note [Saved values keep their value] in docs/notes/saved_values.md.
"""

from __future__ import annotations

import gc
from sys import getrefcount
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ..errors import FreedGraphError, InferenceError, SavedValueError, StrictMutationError
from .modes import STRICT, current_mode
from .node import Node, new
from .windows import SavedWindows

if TYPE_CHECKING:
    from .tensor import Tensor

__all__ = ["SavedTensor", "Storage", "VersionCounter", "prepare_write", "save", "storage_of"]

Array = np.ndarray[Any, Any]


class VersionCounter:
    """Counts the in-place writes to a buffer."""

    __slots__ = ("version",)

    version: int

    def bump(self) -> None:
        """Count one more write."""
        self.version += 1


class SavedTensor:
    """A window kept by a node for backward. A write that is about to touch the window replaces `array` by a copy."""

    __slots__ = ("__weakref__", "array")

    array: Array

    def __repr__(self) -> str:
        return f"SavedTensor({self.array!r})"


class LostTensor(SavedTensor):
    """A saved window whose value was overwritten behind our back: using it is an error."""

    __slots__ = ()

    @property
    def array(self) -> Array:  # type: ignore[override]
        """Never to be had again."""
        raise SavedValueError(
            "a value saved for backward was overwritten by code outside viewgrad (announced by increment_version); "
            "clone() the tensor before it is used in the differentiated computation, or write to it through viewgrad"
        )


class Released:
    """What takes the place of a saved value when a backward pass has released it."""

    @property
    def array(self) -> Array:
        """Never to be had again."""
        raise FreedGraphError(
            "this graph was already differentiated, and the values saved for it have been released; "
            "pass retain_graph=True to the first backward() or grad() to run it again"
        )


RELEASED: Final = Released()


class Storage(VersionCounter):
    """One buffer, and what all tensors over it share: the version counter and the windows saved from it.

    Attributes:
        root: the array that was the whole of the buffer, or of what we know of it, when the storage was made.
        whole: what was saved of the whole of `root`, if anything.
        windows: what was saved of parts of it, if anything.
        foreign: whether others may write to the memory unseen, so that what is saved must be copied.
        shared: whether tensors that are not views of one base, or arrays handed out, look at the memory.
        preserved: the windows copied before a write: `(saved, nbytes, writer)`, for those who ask.
    """

    __slots__ = ("__weakref__", "foreign", "inference", "preserved", "root", "shared", "whole", "windows")

    def __init__(self, root: Array, *, foreign: bool = False) -> None:
        self.version = 0
        self.root = root
        self.whole: SavedTensor | None = None
        self.windows: SavedWindows | None = None
        self.foreign = foreign
        self.inference = False
        self.shared = foreign
        self.preserved: list[tuple[int, str]] | None = None

    def save(self, array: Array, index: Any) -> SavedTensor:
        """What a node is to keep of `array`, a window on this storage taken as `root[index]` (None: otherwise)."""
        whole = self.whole
        if whole is not None and whole.array is array:
            return whole
        if self.inference:
            raise InferenceError(
                "a tensor made in inference mode cannot be saved for backward; clone() it outside inference mode first"
            )
        saved: SavedTensor = new(SavedTensor)
        if self.foreign:
            saved.array = array.copy()
            return saved
        saved.array = array
        if array is self.root:
            self.whole = saved
        else:
            if self.windows is None:
                self.windows = SavedWindows(self.root)
            self.windows.add(saved, index)
        return saved

    def preserve(self, window: Array | None, index: Any, writer: str = "") -> None:
        """Copy every live saved window that a write is about to touch.

        Arguments:
            window: the window to be written; None where it is `root[index]`.
            index: how the window is taken from `root`, or None where it is not known as an index.
        """
        whole = self.whole
        if whole is not None:
            if getrefcount(whole) <= WHOLE_ALONE:
                self.whole = None
            else:
                if window is None:
                    window = self.root[index]
                if np.size(window):
                    self.whole = None
                    self._copy(whole, writer)
        if self.windows is not None:
            for saved in self.windows.take_touched(window, index):
                self._copy(saved, writer)

    def _copy(self, saved: SavedTensor, writer: str) -> None:
        if current_mode() & STRICT:
            raise StrictMutationError(_strict_message(saved))
        saved.array = saved.array.copy(order="K")
        if self.preserved is None:
            self.preserved = []
        self.preserved.append((saved.array.nbytes, writer))

    def lose(self, window: Array | None) -> None:
        """Count a write that has already happened: what was saved of `window` (None: of all) can't be used any more."""
        self.version += 1
        touched = [] if self.whole is None else [self.whole]
        self.whole = None
        if self.windows is not None:
            touched += self.windows.take_touched(self.root if window is None else window, None)
        for saved in touched:
            saved.__class__ = LostTensor


def _strict_message(saved: SavedTensor) -> str:
    savers = sorted({holder.name() for holder in gc.get_referrers(saved) if isinstance(holder, Node)})
    return (
        f"this write touches a value of shape {saved.array.shape} that {' and '.join(savers) or 'a node'} saved for "
        "backward, inside forbid_mutation_on_saved_tensors(); write to a clone(), use the out-of-place operator, or "
        "leave the strict mode: outside of it the saved window is copied before the write"
    )


def storage_of(tensor: Tensor) -> Storage:
    """The storage of a tensor, made where there is none yet."""
    storage = tensor._storage
    if storage is None:
        storage = tensor._storage = Storage(tensor._array)
        storage.whole = tensor._saved
        tensor._saved = None
    return storage


def save(tensor: Tensor) -> SavedTensor:
    """What a node is to keep of the value that `tensor` has now."""
    storage = tensor._storage
    if storage is None:
        saved = tensor._saved
        if saved is None:
            saved = tensor._saved = new(SavedTensor)
            saved.array = tensor._array
        return saved
    return storage.save(tensor._array, root_index(tensor, storage))


def root_index(tensor: Tensor, storage: Storage) -> Any:
    """The index that takes the tensor from the storage's root, or None where it is not known to be one."""
    view = tensor._view
    return view.index if view is not None and view.base._array is storage.root else None


def prepare_write(tensor: Tensor, writer: str = "") -> None:
    """Count a write to the whole of `tensor` and preserve the saved windows that it is about to touch."""
    storage = tensor._storage
    if storage is None:
        storage = storage_of(tensor)
        if storage.whole is not None:
            storage.preserve(tensor._array, None, writer)
    elif storage.whole is not None or storage.windows is not None:
        storage.preserve(tensor._array, root_index(tensor, storage), writer)
    storage.version += 1


def _whole_alone() -> int:
    """The reference count of `whole` in `Storage.preserve` when no node holds it, whatever Python counts."""

    class Probe(Storage):
        __slots__ = ()

        def preserve(self, *_: Any) -> int:  # type: ignore[override]
            whole = self.whole
            return getrefcount(whole)

    probe = Probe(np.empty(0))
    probe.whole = SavedTensor()
    return probe.preserve()


WHOLE_ALONE: Final = _whole_alone()
