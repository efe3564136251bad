"""Storage: a buffer and the state shared by all tensors over it.

A tensor whose memory is not shared has no `Storage` until one is needed: when a view of it is taken, when it is written
to, or when its version is requested. Until then the tensor itself stores the saved value (`Tensor._saved`). See Note
[Copy-on-write of saved values] in docs/notes/saved_values.md.
"""

from __future__ import annotations

import gc
from collections import deque
from typing import TYPE_CHECKING, Any, ClassVar, Final

import attrs
import numpy as np

from ..errors import AutogradError, InferenceError, ScalarWriteError, StrictMutationError
from ..type_aliases import Array
from .modes import GRAD, INFERENCE, PROFILE, STRICT, TRACE, current_mode
from .node import Edge, Node, new
from .refcounts import ALONE_AS_WHOLE, getrefcount
from .saved import LostTensor, PreservedTensor, SavedTensor
from .saved_windows import SavedWindows
from .trace_hooks import OBSERVER, PROFILER

if TYPE_CHECKING:
    from .tensor import Tensor

ndarray: Final = np.ndarray
PRESERVED_KEPT: Final = 1000  # the number of the latest copies before writes that a storage records


class VersionCounter:
    """The counter of in-place writes to a buffer."""

    __slots__ = ("version",)

    version: int


class WriteLock(SavedWindows):
    """A lock on a storage, stored in place of its saved windows, that refuses writes.

    It costs nothing for other storages.
    """

    __slots__ = ("error", "message")

    def __init__(self, root: Array, error: type[AutogradError], message: str) -> None:
        super().__init__(root)
        self.error = error
        self.message = message

    def pop_overlapping(self, window: Array | None, index: Any, keep: bool = False) -> list[SavedTensor]:
        """Raise an error; called just before a write."""
        raise self.error(self.message)


class InferenceLock(WriteLock):
    """The lock on storages created in inference mode: writes outside it are refused."""

    __slots__ = ()

    def pop_overlapping(self, window: Array | None, index: Any, keep: bool = False) -> list[SavedTensor]:
        """Raise outside inference mode; nothing was saved in any case."""
        return [] if current_mode() & INFERENCE else super().pop_overlapping(window, index)


@attrs.define(eq=False)
class DetachPoint:
    """The point at which the history of a tensor ended in place, by `detach_()` or `requires_grad_(False)`.

    Attributes:
        number: the number of such points of the tensor so far.
        sequence_nr: a number smaller than those of all nodes created since.
        edge: the last edge of the history, for views taken before.
        before: the `sequence_nr` of the previous detach point, or 0 for the first.
        earlier: the last few detach points before, oldest first.
        written: the later writes, computed on request; see `views/detached_views.py`.
    """

    REMEMBERED: ClassVar[int] = 7  # the number kept, since each keeps the nodes of an ended history alive

    number: int
    sequence_nr: int
    edge: Node | Edge
    before: int
    earlier: tuple[DetachPoint, ...] = ()
    written: Any = None

    @classmethod
    def after(cls, last: DetachPoint | None, sequence_nr: int, edge: Node | Edge) -> DetachPoint:
        """Return a new detach point that takes over the earlier ones from `last`."""
        if last is None:
            return cls(1, sequence_nr, edge, 0)
        earlier = (*last.earlier, last)[-cls.REMEMBERED :]
        last.earlier = ()
        return cls(last.number + 1, sequence_nr, edge, last.sequence_nr, earlier)


class Storage(VersionCounter):
    """A buffer and the state shared by all tensors over it: the version counter and the saved windows.

    Attributes:
        root: the array of the whole buffer, or of its known part, when the storage was created.
        whole: the saved value of the whole of `root`, if any.
        windows: the saved values of parts of `root`, if any.
        foreign: whether other code may write to the memory unnoticed, so that saved values must be copied.
        shared: whether the memory is shared by tensors that are not views of one base, or by arrays given out.
        preserved: the latest windows that were copied before a write, with the operators that wrote.
        cuts: by id of a tensor over it, the last point at which the tensor was detached in place.
        layout: the layout of a gradient of `root`, computed on request; see `views/view_nodes.py`.
    """

    # The number of writes to the storages that this one replaced; see tensor/tracked_storage.py.
    writes: ClassVar[int] = 0
    # Whether other code reads the memory as plain numbers, so that values with a history must not be written to it.
    captured: ClassVar[bool] = False

    __slots__ = (
        "__weakref__",
        "_inference",
        "cuts",
        "foreign",
        "layout",
        "preserved",
        "root",
        "shared",
        "whole",
        "windows",
    )

    def __init__(self, root: Array, *, foreign: bool = False) -> None:
        self.version = 0
        self.root = root
        self.whole: SavedTensor | None = None
        self.windows: SavedWindows | None = None
        self.foreign = foreign
        self._inference = False
        self.shared = foreign
        self.preserved: deque[tuple[Array, str]] | None = None
        self.layout: tuple[tuple[int, ...], np.dtype[Any], str] | None = None
        self.cuts: dict[int, DetachPoint] | None = None

    @property
    def inference(self) -> bool:
        """True if the storage was created in inference mode, so that nothing is recorded for it."""
        return self._inference

    @inference.setter
    def inference(self, value: bool) -> None:
        if value:
            self._inference = True
            self.windows = InferenceLock(
                self.root,
                InferenceError,
                "in-place write outside inference mode to a tensor created in it; write inside inference_mode(), or "
                "to a clone() taken outside",
            )

    def save(self, array: Array, index: Any) -> SavedTensor:
        """Return the saved value of `array`, a window on this storage: `root[index]` unless `index` is None."""
        whole = self.whole
        if whole is not None and whole.array is array:
            return whole
        if self._inference:
            raise InferenceError(
                "a tensor created in inference mode cannot be saved for backward; clone() it outside of it first"
            )
        if array is not self.root and not self.foreign:
            windows = self.windows
            if windows is None:
                windows = SavedWindows(self.root)
                if self.windows is None:  # no call in between, since another thread may do the same
                    self.windows = windows
                else:
                    windows = self.windows
            return windows.save(array, index)
        if self.foreign:
            return copied(array)
        saved: SavedTensor = new(SavedTensor)
        saved.array = array
        whole = self.whole
        if whole is not None and whole.array is array:  # another thread has saved it in the meantime
            return whole
        self.whole = saved
        return saved

    def preserve(self, window: Array | None, index: Any, writer: str = "") -> None:
        """Copy every live saved window that a write is about to touch.

        Arguments:
            window: the window to be written; None if it is `root[index]`.
            index: the index of the window in `root`, or None if it is not known.
        """
        whole = self.whole
        if whole is not None:
            if getrefcount(whole) <= ALONE_AS_WHOLE:
                self.whole = None
            else:
                if window is None:
                    window = self.root[index]
                if np.size(window):
                    if current_mode() & STRICT:
                        raise StrictMutationError(_strict_message([whole], writer))
                    self._copy(whole, writer)
                    self.whole = None  # last: only registered values are preserved
        windows = self.windows
        if windows is not None:
            strict = bool(current_mode() & STRICT)
            touched = windows.pop_overlapping(window, index, strict)
            if touched:
                if strict:
                    raise StrictMutationError(_strict_message(touched, writer))
                if len(touched) == 1:
                    self._copy(touched[0], writer)
                else:
                    self._copy_each_once(touched, writer)
                windows.forget_touched()

    def _copy_each_once(self, touched: list[SavedTensor], writer: str) -> None:
        windows = [saved.array for saved in touched]  # a copy for each, so that they keep separate identities
        copies: dict[int, Array] = {}
        for saved, window in zip(touched, windows, strict=True):
            copied = copies.get(id(window))  # a view multiplied by itself is saved twice
            if copied is None:
                self._copy(saved, writer)
                copies[id(window)] = saved.array
            else:
                saved.array = copied
                saved.__class__ = PreservedTensor

    def _copy(self, saved: SavedTensor, writer: str) -> None:
        window = saved.array
        saved.array = window.copy("K")
        saved.__class__ = PreservedTensor
        mode = current_mode()
        if mode > GRAD:
            if mode & TRACE:
                OBSERVER.get().preserved(window, saved.array)
            if mode & PROFILE:
                PROFILER.get().copied(window.nbytes, writer)
        if self.preserved is None:
            self.preserved = deque(maxlen=PRESERVED_KEPT)
        self.preserved.append((window, writer))

    def invalidate(self, window: Array | None) -> None:
        """Count a write that has already happened; values saved from `window` (None: all) can no longer be used."""
        self.version += 1
        touched = [] if self.whole is None else [self.whole]
        self.whole = None
        if self.windows is not None:
            touched += self.windows.pop_overlapping(self.root if window is None else window, None)
        for saved in touched:
            # The nodes are unknown, and checking a flag would slow down every use of a saved value.
            saved.__class__ = LostTensor
        if self.windows is not None:
            self.windows.forget_touched()


def copied(array: Array) -> SavedTensor:
    """Return a copy of memory that other code may write to, as a saved value."""
    saved = SavedTensor()
    saved.array = array.copy()
    if current_mode() & TRACE:
        OBSERVER.get().preserved(array, saved.array)
    return saved


def _strict_message(touched: list[SavedTensor], writer: str) -> str:
    shapes = " and ".join(str(saved.array.shape) for saved in touched[:3])
    savers = sorted({name for saved in touched for name in _savers(saved)})
    return (
        f"{writer or 'this write'} would touch {'a value' if len(touched) == 1 else f'{len(touched)} values'} of shape "
        f"{shapes}{' and others' if len(touched) > 3 else ''} that {' and '.join(savers) or 'a node'} saved for "
        "backward, inside forbid_mutation_on_saved_tensors(); write to a clone(), use the out-of-place operator, or "
        "leave the strict mode: outside of it the saved window is copied before the write"
    )


def _savers(saved: SavedTensor) -> list[str]:
    """Return the names of the nodes that refer to a saved value."""
    holders = gc.get_referrers(saved)
    lists = [holder for holder in holders if type(holder) in (list, tuple)]
    holders += [outer for inner in lists for outer in gc.get_referrers(inner)]
    names = [holder.name() for holder in holders if isinstance(holder, Node)]
    names += [holder.saved_by for holder in holders if hasattr(holder, "saved_by")]
    holders.clear()  # the list may refer to itself
    return names


def storage_of(tensor: Tensor) -> Storage:
    """Return the storage of a tensor, creating it if necessary.

    Raises:
        ScalarWriteError: for a scalar, which has no storage.
    """
    found: Storage | None = tensor._storage
    if found is not None:
        return found
    if type(tensor._array) is not ndarray:
        raise scalar_write()
    storage = Storage(tensor._array)
    # No call from here to the end, so that a thread that reads the same tensor cannot interfere.
    found = tensor._storage
    if found is None:
        storage.whole = tensor._saved  # first, so that the storage is never visible without it
        tensor._storage = found = storage
        tensor._saved = None
    return found


def scalar_write(writer: str = "") -> ScalarWriteError:
    """Return the error for an in-place write to a scalar by the function that the user called."""
    return ScalarWriteError(
        f"{writer or 'an in-place write'}: a scalar is a value, as in NumPy, and cannot be written to (operators, "
        "reductions and integer indexing return scalars for 0-d results). Bind a new value (s = s * 2, or "
        "s *= 2), write to the element (a[i] *= 2), take a window of one element (a[i, ...]), or use clone(), which "
        "returns a 0-d array"
    )


def refuse_writes(tensor: Tensor) -> None:
    """Refuse writes to memory just created for a scalar, since they would not change the scalar."""
    storage = storage_of(tensor)
    storage.windows = WriteLock(storage.root, ScalarWriteError, scalar_write("a write to a view of a scalar").message)


def save(tensor: Tensor) -> SavedTensor:
    """Return the saved value of `tensor` for a node."""
    storage: Storage | None = tensor._storage
    if storage is None:
        saved = SavedTensor()
        saved.array = tensor._array
        # No call from here to the return, so that a thread that reads the same tensor cannot interfere.
        storage = tensor._storage
        if storage is None:
            found: SavedTensor | None = tensor._saved
            if found is None:
                tensor._saved = found = saved
            return found
    has_windows = storage.captured or not storage.foreign
    return storage.save(tensor._array, root_index(tensor, storage) if has_windows else None)


def save_scalar(tensor: Tensor) -> SavedTensor | np.float64:
    """Return the saved value of a 0-d tensor for a node; for a real tensor the number itself, which no write can
    change.

    Copying a number costs less than registering its window, and arithmetic on numbers costs less than on 0-d arrays.
    Not used in strict mode, which reports writes to everything that was saved in it.
    """
    number: Any = tensor._array
    if type(number) is not ndarray:
        return number if type(number) is np.float64 else save(tensor)
    number = number[()]
    storage = tensor._storage
    if type(number) is not np.float64 or (storage is not None and storage._inference):
        return save(tensor)
    return number


def root_index(tensor: Tensor, storage: Storage) -> Any:
    """Return the index that selects the tensor from the storage's root, or None if it is unknown."""
    view = tensor._view
    return view.index if view is not None and view.base._array is storage.root else None


def prepare_write(tensor: Tensor, writer: str = "") -> None:
    """Count a write to the whole of `tensor` and preserve the saved windows that it is about to overwrite."""
    storage = tensor._storage
    if storage is None:
        if type(tensor._array) is not ndarray:
            raise scalar_write(writer)
        storage = storage_of(tensor)
        if storage.whole is not None:
            storage.preserve(tensor._array, None, writer)
    elif storage.whole is not None or storage.windows is not None:
        storage.preserve(tensor._array, root_index(tensor, storage), writer)
    storage.version += 1


class InferenceScalars(Storage):
    """The storage shared by all scalars created in inference mode, which only reports that mode."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(np.empty(()))
        self.inference = True
        self.windows = WriteLock(self.root, ScalarWriteError, scalar_write().message)

    def save(self, array: Array, index: Any) -> SavedTensor:
        """Return the saved value of a scalar for a node: its value."""
        saved: SavedTensor = new(SavedTensor)
        saved.array = array
        return saved


SCALAR_OF_INFERENCE: Final = InferenceScalars()
