"""Hooks on saved values: pairs of user functions that pack and unpack the values saved for backward."""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Callable
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Final, Self

import numpy as np

from ...errors import HookError
from ...operators.interception import OperatorCall
from ...tensor.interceptors import feature
from ...tensor.modes import GRAD, PACK, ModeSwitch, Stack, without
from ...tensor.saved import SavedConstant, SavedTensor
from ...tensor.tensor import Tensor, from_array
from ...type_aliases import Array

Pack = Callable[[Tensor], Any]
Unpack = Callable[[Any], Tensor]

# The active pairs of hooks, and the messages of blocks that forbid hooks, innermost first.
PAIRS: Final[ContextVar[Stack | None]] = ContextVar("viewgrad_saved_tensors_hooks", default=None)
DISABLED: Final[ContextVar[Stack | None]] = ContextVar("viewgrad_saved_tensors_hooks_disabled", default=None)


class PackedTensor(SavedTensor):
    """A saved value as returned by the user's `pack`; `unpack` is called on each access."""

    __slots__ = ("content", "dtype", "shape", "unpack")

    content: Any
    unpack: Unpack
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def array(self) -> Array:  # type: ignore[override]
        """The value returned by `unpack`."""
        with ModeSwitch(off=GRAD | PACK):
            tensor = self.unpack(self.content)
        if not isinstance(tensor, Tensor):
            raise HookError(f"the unpack hook returned {type(tensor).__name__} instead of the saved Tensor")
        if tensor.shape != self.shape or tensor.dtype != self.dtype:
            raise HookError(
                f"the unpack hook returned a tensor of shape {tensor.shape} and dtype {tensor.dtype}, but the "
                f"saved tensor had shape {self.shape} and dtype {self.dtype}"
            )
        return tensor._array

    def __repr__(self) -> str:
        return f"PackedTensor({self.content!r})"


class saved_tensors_hooks(ModeSwitch):
    """Pass every saved value through `pack` when it is saved and through `unpack` when it is needed.

    `pack` is called when an operator saves a value, once for each node that saves it. It receives a copy that it may
    keep. `unpack` is called in the backward pass and returns a tensor of the same shape and dtype. If several pairs are
    active, only the innermost is used. Other data that nodes keep (shapes, indices) does not pass through the hooks.

    Arguments:
        pack: a function that takes a tensor and returns any object.
        unpack: a function that takes the result of `pack` and returns the tensor.

    Raises:
        HookError: on entry, inside `disable_saved_tensors_hooks`; in the backward pass, if `unpack` does not return the
            tensor.

    Example:
        >>> import viewgrad as vg
        >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> with vg.autograd.graph.saved_tensors_hooks(lambda t: t.tolist(), lambda numbers: vg.Tensor(numbers)):
        ...     y = x * x
        >>> y.sum().backward()
        >>> x.grad
        Tensor([2., 4.])
    """

    def __init__(self, pack: Pack, unpack: Unpack) -> None:
        super().__init__(on=PACK)
        self.pair: tuple[Pack, Unpack] = (pack, unpack)

    def __enter__(self) -> Self:
        disabled = DISABLED.get()
        if disabled is not None:
            raise HookError(disabled[1])
        PAIRS.set((self, self.pair, PAIRS.get()))
        return super().__enter__()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        super().__exit__(kind, error, at)
        PAIRS.set(without(PAIRS.get(), self)[0])

    def __call__(self, function: Any) -> Any:
        raise TypeError(f"{type(self).__name__} is not a decorator: use it in a with statement")


class save_on_disk(saved_tensors_hooks):
    """Save values for backward in files; a file is removed when its node releases the value.

    Arguments:
        dir: the directory for the files, which is created if it does not exist; by default the system's directory for
            temporary files.

    Example:
        >>> import viewgrad as vg
        >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> with vg.autograd.graph.save_on_disk():
        ...     y = x * x
        >>> y.sum().backward()
        >>> x.grad
        Tensor([2., 4.])
    """

    def __init__(self, dir: str | os.PathLike[str] | None = None) -> None:
        self.dir = None if dir is None else os.fspath(dir)
        if self.dir is not None:
            os.makedirs(self.dir, exist_ok=True)
        super().__init__(self._write, _read)

    def _write(self, tensor: Tensor) -> OnDisk:
        return OnDisk(tensor._array, self.dir)


class OnDisk:
    """An array in a file, which is removed together with this object."""

    __slots__ = ("__weakref__", "path")

    def __init__(self, array: Array, dir: str | None) -> None:
        handle, self.path = tempfile.mkstemp(".npy", "saved_", dir)
        with os.fdopen(handle, "wb") as file:
            np.save(file, array, allow_pickle=False)
        weakref.finalize(self, _remove, self.path)

    def __repr__(self) -> str:
        return f"OnDisk({self.path!r})"


def _read(content: OnDisk) -> Tensor:
    return from_array(np.load(content.path, allow_pickle=False))


def _remove(path: str) -> None:
    try:
        os.remove(path)
    except FileNotFoundError:
        pass


class disable_saved_tensors_hooks(ModeSwitch):
    """Raise an error if `saved_tensors_hooks` is used inside the block.

    Arguments:
        message: the text of the error.

    Raises:
        HookError: on entry, if such hooks are already active; inside, when such hooks are entered.

    Example:
        >>> from viewgrad.autograd.graph import disable_saved_tensors_hooks, saved_tensors_hooks
        >>> with disable_saved_tensors_hooks("no hooks in this solver"):
        ...     with saved_tensors_hooks(lambda t: t, lambda t: t):
        ...         pass
        Traceback (most recent call last):
        viewgrad.errors.HookError: no hooks in this solver
        See help(viewgrad.errors.HookError), or https://viewgrad.readthedocs.io/guides/errors/#hookerror
    """

    def __init__(self, message: str) -> None:
        super().__init__()
        self.message = message

    def __enter__(self) -> Self:
        if PAIRS.get() is not None:
            raise HookError(self.message)
        DISABLED.set((self, self.message, DISABLED.get()))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        DISABLED.set(without(DISABLED.get(), self)[0])

    def __call__(self, function: Any) -> Any:
        raise TypeError(f"{type(self).__name__} is not a decorator: use it in a with statement")


def packed(saved: SavedTensor) -> SavedTensor:
    """Return the stand-in for `saved` that a node stores while hooks are active."""
    stack = PAIRS.get()
    if stack is None or isinstance(saved, PackedTensor | SavedConstant):
        return saved
    pack, unpack = stack[1]
    array = saved.array
    # A copy: hooks may keep the tensor, and its value must not change if the original is written to.
    tensor = from_array(array.copy(order="K"))
    with ModeSwitch(off=GRAD | PACK):
        content = pack(tensor)
    if tensor._version:
        raise HookError("the pack hook wrote in place to its argument; write to a clone() of it")
    result = PackedTensor()
    result.content = content
    result.unpack = unpack
    result.shape = array.shape
    result.dtype = array.dtype
    return result


@feature(PACK, OperatorCall)
def pack_saved_values(call: OperatorCall, run: Callable[[], Any]) -> Any:
    """Pass the values saved by the node of an operator through the hooks."""
    result = run()
    node: Any = call.node
    if node is not None:
        for name in node.saved_names:
            slot = f"saved_{name}"
            saved = getattr(node, slot, None)
            if isinstance(saved, SavedTensor):
                setattr(node, slot, packed(saved))
            elif isinstance(saved, list | tuple):
                setattr(node, slot, [packed(item) if isinstance(item, SavedTensor) else item for item in saved])
    return result
