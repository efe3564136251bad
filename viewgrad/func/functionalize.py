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
from ..tensor.tensor import Tensor
from ..tensor.tracked_storage import SESSION, KnownStorage, Session, copy_of_layout, move
from ..views.meta import DualViewMeta
from .tree import map_leaves

__all__ = ["functionalize"]


def functionalize(f: Callable[..., Any], *, adopt: bool = True) -> Callable[..., Any]:
    """The function that gives the results of `f`, and has their gradients, but makes no in-place write.

    Where `f` writes to a tensor, a new value is computed instead. The tensor and all others that look at the same
    memory have it from then on. No memory is written to, no `_version` changes, and the graph has no `CopySlices`: it
    consists of operators that make new tensors. A write through a view costs what its base costs, and no longer what
    the view costs.

    Arguments:
        f: any function of the library's tensors, given as arguments of any nesting, or found elsewhere. Threads that it
            starts write as usual.

        adopt: whether `f` is adopted, so that NumPy's names in it mean viewgrad's; see `viewgrad.adopt`.

    Returns:
        A function of the same arguments. It hands copies of the tensors among them to `f`; tensors that share memory
        have copies that do. So what `f` writes to its arguments is seen in what it returns only. Tensors that `f` found
        elsewhere have their new values afterwards, as usual. Memory of NumPy's that a tensor was made on by
        `from_numpy`, and arrays that `numpy()` has handed out, keep the values that they had.

    Raises:
        TypeError: for a generator or a coroutine, which would go on running outside.
        ForwardModeError: by that function, for dual tensors that share memory with other arguments.

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
        raise TypeError("functionalize takes a function that is done when it returns, not a generator or a coroutine")

    @functools.wraps(f, updated=())
    @in_own_context
    def functional(*args: Any, **kwargs: Any) -> Any:
        with Functional():
            copies = Copies()
            given = copies.of((args, kwargs))
            return f(*given[0], **given[1])

    return functional


class Functional:
    """A block in which new values take the place of writes."""

    def __init__(self) -> None:
        self._switch = ModeSwitch(on=FUNCTIONAL)

    def __enter__(self) -> None:
        self._switch.__enter__()
        self._token = SESSION.set(SESSION.get() or Session())

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        SESSION.reset(self._token)
        self._switch.__exit__(kind, error, at)


class Copies:
    """Copies of tensors that share memory with each other where these do."""

    def __init__(self) -> None:
        self._bases: dict[int, Tensor] = {}
        self._storages: dict[int, KnownStorage] = {}
        self._copies: dict[int, Tensor] = {}
        self._duals: set[int] = set()
        self._held: list[Any] = []  # what the numbers above are the ids of

    def of(self, tree: Any) -> Any:
        """A tree with copies of its tensors."""
        return map_leaves(lambda leaf: self._copy(leaf) if isinstance(leaf, Tensor) else leaf, tree)

    def _copy(self, tensor: Tensor) -> Tensor:
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
            known = self._storages.get(id(storage))
            if known is None:
                root = copied._array if base._array is storage.root else copy_of_layout(storage.root)
                known = self._storages[id(storage)] = KnownStorage(root, copied._storage, [])
            copied._array = move(base._array, storage.root, known.root)
            copied._storage = known
            known.tensors.append(weakref.ref(copied))
        self._bases[id(base)] = copied
        self._held.append((base, storage))
        return copied

