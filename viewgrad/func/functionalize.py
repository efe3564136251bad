"""`functionalize`: the same function without in-place writes."""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Any

from ..adoption import adopted_callable
from ..errors import ForwardModeError
from ..tensor.async_safety import in_own_context
from ..tensor.modes import FUNCTIONAL, ModeSwitch
from ..tensor.tensor import Tensor, copy_of, is_scalar
from ..tensor.tracked_storage import SESSION, Session, TrackedStorage, copy_of_layout, move
from ..views.meta import DualViewMeta
from .tree import map_leaves


def functionalize(f: Callable[..., Any], *, adopt: bool = True) -> Callable[..., Any]:
    """Return a version of `f` that computes the same results and gradients without in-place writes.

    Each write of `f` computes a new value instead, which replaces the value of all tensors over the same memory. No
    memory is modified, no `_version` changes, and the graph contains no `CopySlices`, only out-of-place operators. A
    write through a view therefore costs as much as its base instead of as much as the view.

    Arguments:
        f: any function of tensors, which may be nested in its arguments or captured. Writes in threads that it starts
            are not replaced.
        adopt: whether to adopt `f`, so that it computes with viewgrad instead of NumPy; see `viewgrad.adopt`.

    Returns:
        A function with the same arguments. It passes copies of tensors to `f`, and copies of tensors that share memory
        share memory too, so writes to arguments are visible only in the result. Captured tensors hold their new values
        afterwards, as usual. NumPy arrays passed to `from_numpy` or returned by `numpy()` keep their values.

    Raises:
        TypeError: if `f` is a generator or coroutine function, whose body would continue outside.
        ForwardModeError: when called with dual tensors that share memory with other arguments.

    Example:
        >>> import viewgrad as vg
        >>> def f(x):
        ...     x[1:] *= x[:-1]
        ...     return x
        >>> x = vg.Tensor([1.0, 2.0, 3.0], requires_grad=True)
        >>> y = vg.func.functionalize(f)(x)
        >>> y, y._version, x
        (Tensor([1., 2., 6.], grad_fn=<OverwrittenBackward>), 0, Tensor([1., 2., 3.], requires_grad=True))
    """

    if adopt:
        f = adopted_callable(f)
    if inspect.isgeneratorfunction(f) or inspect.iscoroutinefunction(f) or inspect.isasyncgenfunction(f):
        raise TypeError("functionalize does not support generators and coroutines")

    @functools.wraps(f, updated=())
    @in_own_context
    def functional(*args: Any, **kwargs: Any) -> Any:
        with Functional():
            copies = Copies()
            given = copies.of((args, kwargs))
            return f(*given[0], **given[1])

    return functional


class Functional:
    """A context in which writes are replaced by new values."""

    def __init__(self) -> None:
        self._switch = ModeSwitch(on=FUNCTIONAL)

    def __enter__(self) -> None:
        self._switch.__enter__()
        self._token = SESSION.set(SESSION.get() or Session())

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        SESSION.reset(self._token)
        self._switch.__exit__(kind, error, at)


class Copies:
    """Copies of tensors that share memory with each other as the originals do."""

    def __init__(self) -> None:
        self._bases: dict[int, Tensor] = {}
        self._storages: dict[int, TrackedStorage] = {}
        self._copies: dict[int, Tensor] = {}
        self._duals: set[int] = set()
        self._held: list[Any] = []  # keeps the objects with these ids alive

    def of(self, tree: Any) -> Any:
        """Return a tree with copies of its tensors."""
        return map_leaves(lambda leaf: self._copy(leaf) if isinstance(leaf, Tensor) else leaf, tree)

    def _copy(self, tensor: Tensor) -> Tensor:
        if is_scalar(tensor):  # a scalar is never written to
            return copy_of(tensor)
        copied = self._copies.get(id(tensor))
        if copied is None:
            view = tensor._view
            storage = tensor._storage
            if storage is not None and (type(view) is DualViewMeta or id(storage) in self._duals):
                if id(storage) in self._duals or id(storage) in self._storages:
                    raise ForwardModeError(
                        "functionalize: a dual tensor shares memory with another argument, and the tangents of the two "
                        "cannot be kept apart; pass a clone() of it"
                    )
                self._duals.add(id(storage))
                copied = tensor.clone()
            else:
                base = self._copy_of_base(tensor if view is None else view.base)
                copied = base if view is None else view.window(base)
            self._copies[id(tensor)] = copied
            self._held.append((tensor, storage))
        return copied

    def _copy_of_base(self, base: Tensor) -> Tensor:
        copied = self._bases.get(id(base))
        if copied is not None:
            return copied
        copied = base.clone()
        if copied._array.strides != base._array.strides:
            copied._array = copy_of_layout(base._array)
            copied._saved = copied._storage = None
        storage = base._storage
        if storage is not None:
            tracked = self._storages.get(id(storage))
            if tracked is None:
                root = copied._array if base._array is storage.root else copy_of_layout(storage.root)
                tracked = self._storages[id(storage)] = TrackedStorage(root, copied._storage, [])
            copied._array = move(base._array, storage.root, tracked.root)
            copied._storage = tracked
            tracked.tensors.append(weakref.ref(copied))
        self._bases[id(base)] = copied
        self._held.append((base, storage))
        return copied

