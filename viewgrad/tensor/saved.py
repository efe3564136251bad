"""Values saved by nodes: windows and the objects that replace them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ..errors import FreedGraphError, SavedValueError
from ..type_aliases import Array
from .equality import is_same_array

if TYPE_CHECKING:
    from .tensor import Tensor

LARGE: Final = 2048  # bytes


class SavedTensor:
    """A window saved by a node for backward; a write that is about to change the window replaces `array` by a copy.

    For a single element a node may store the number instead; see `save_scalar`.
    """

    __slots__ = ("__weakref__", "array")

    array: Array

    def restore_onto(self, tensor: Tensor) -> None:
        """Restore what was saved besides the value on a tensor created from it; this class saves nothing else."""

    def __repr__(self) -> str:
        return f"SavedTensor({self.array!r})"


class SavedConstant(SavedTensor):
    """A constant of the program, as in `x * 2.0`; hooks on saved values ignore it."""

    __slots__ = ()


class PreservedTensor(SavedTensor):
    """A saved window that was copied just before it was overwritten.

    Saved values become preserved by assignment to `__class__`; a flag would make every saved value 16 bytes larger.
    """

    __slots__ = ()

    def restore_onto(self, tensor: Tensor) -> None:
        """Make later saves of the tensor share this copy, as for any window."""
        if tensor._storage is not None:
            tensor._storage.whole = self


class SavedCopy(SavedTensor):
    """A copy of an array that other code may write to.

    Arguments:
        array: the array.

    Attributes:
        elements: the bytes of the copy; None if it is large, so that they are not stored twice.
    """

    __slots__ = ("dtype", "elements", "shape")

    def __init__(self, array: Array) -> None:
        self.array = array.copy()
        self.elements: Final = self.array.tobytes() if array.nbytes < LARGE else None
        self.shape: Final = self.array.shape
        self.dtype: Final = self.array.dtype

    def matches(self, array: Array) -> bool:
        """Return whether an array has the dtype, shape and bits of the copy."""
        if self.elements is None:
            return is_same_array(self.array, array)
        return array.tobytes() == self.elements and array.shape == self.shape and array.dtype is self.dtype


class SavedPart(SavedTensor):
    """A window of a copy that nodes share."""

    __slots__ = ("copy", "index")

    copy: SavedTensor
    index: Any

    @property
    def array(self) -> Array:  # type: ignore[override]
        """The window."""
        window: Array = self.copy.array[self.index]
        return window


class LostCopy(SavedCopy):
    """A copy that may differ from the array as it was read; using it raises an error."""

    __slots__ = ()

    @property
    def array(self) -> Array:  # type: ignore[override]
        """Raise: the value is unknown."""
        raise unseen_write()


def unseen_write() -> SavedValueError:
    """Return the error for a captured array that other code has written to during a call that read it."""
    return SavedValueError(
        "an array created outside an adopted function was written to during the call by code that viewgrad does not "
        "see, such as a memoryview or a function that is not adopted, after the call had saved its value for "
        "backward; write to the array in adopted code, or read a copy() of it that is made after the write"
    )


class LostTensor(SavedTensor):
    """A saved window whose value was overwritten by outside code; using it raises.

    Saved values become lost by assignment to `__class__`, so that `array` raises: the nodes that refer to them are
    unknown.
    """

    __slots__ = ()

    @property
    def array(self) -> Array:  # type: ignore[override]
        """Raise: the value was released."""
        raise SavedValueError(
            "a value saved for backward was overwritten by code outside viewgrad (announced by increment_version); "
            "clone() the tensor before it is used in the differentiated computation, or write to it through viewgrad"
        )


class Released:
    """The replacement of a saved value that a backward pass has released."""

    @property
    def array(self) -> Array:
        """Raise: the value was released."""
        raise freed_error("graph")


def freed_error(what: str) -> FreedGraphError:
    """Return the error for a second backward pass through a part of the graph whose saved values were released."""
    return FreedGraphError(
        f"this {what} was already differentiated, and the values saved for it have been released; "
        "pass retain_graph=True to the first backward() or grad() to run it again"
    )


RELEASED: Final = Released()
