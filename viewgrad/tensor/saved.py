"""Values saved by nodes: windows and the objects that replace them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..errors import FreedGraphError, SavedValueError
from ..type_aliases import Array

if TYPE_CHECKING:
    from .tensor import Tensor


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
        elements: the bytes of the copy, to find out whether the array has changed.
    """

    __slots__ = ("dtype", "elements", "shape")

    def __init__(self, array: Array) -> None:
        self.array = array.copy()
        self.elements: Final = self.array.tobytes()
        self.shape: Final = self.array.shape
        self.dtype: Final = self.array.dtype


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
