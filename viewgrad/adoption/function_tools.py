"""The generic functions of `functools` in adopted code, which find the implementation for arrays when given tensors."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Collection
from typing import Any, Final

import numpy as np

from ..tensor.tensor import Tensor, is_scalar
from .caches import cache, lru_cache
from .counterparts import namespace


def singledispatch(func: Callable[..., Any]) -> Any:
    """Stand for `functools.singledispatch`."""
    return _dispatching(functools.singledispatch(func), lambda: None)


def adopted_dispatch(value: Any, adopted: Callable[[Any], Any]) -> Any:
    """Return the adopted version of a user's generic function.

    Arguments:
        value: the user's function, a result of `functools.singledispatch`.
        adopted: a function that returns the adopted version of an implementation.
    """
    made = functools.singledispatch(adopted(value.registry[object]))
    seen: dict[Any, Any] = {object: value.registry[object]}

    def refresh() -> None:
        for kind, function in value.registry.items():
            if seen.get(kind) is not function:
                made.register(kind, adopted(function))
                seen[kind] = function

    refresh()
    return _dispatching(made, refresh)


def _dispatching(made: Any, refresh: Callable[[], None]) -> Any:
    """Wrap a generic function so that tensors dispatch like arrays and numbers.

    Arguments:
        made: the generic function.
        refresh: a function that updates its implementations.
    """

    @functools.wraps(made)
    def dispatching(*args: Any, **kwargs: Any) -> Any:
        refresh()
        return made.dispatch(_class_of(args[0], made.registry))(*args, **kwargs) if args else made(**kwargs)

    def dispatch(cls: type) -> Any:
        refresh()
        return made.dispatch(cls)

    dispatching.dispatch = dispatch  # type: ignore[attr-defined]
    return dispatching


def _class_of(value: Any, registered: Collection[type]) -> type:
    """Return the class whose implementation a value uses: for a tensor, that of an array or number of NumPy."""
    if not isinstance(value, Tensor):
        return value.__class__  # type: ignore[no-any-return]
    if is_scalar(value):
        return value.dtype.type
    own: type = namespace("numpy").ndarray
    return own if own in registered else np.ndarray


def is_single_dispatch(function: types.FunctionType) -> bool:
    """Return whether a function was created by `functools.singledispatch`."""
    return function.__code__ is DISPATCHING


DISPATCHING: Final = functools.singledispatch(lambda value: None).__code__  # type: ignore[attr-defined]


class singledispatchmethod(functools.singledispatchmethod):  # type: ignore[type-arg]
    """Stand for `functools.singledispatchmethod`.

    Arguments:
        func: the default implementation.
    """

    def __init__(self, func: Any) -> None:
        super().__init__(func)
        self.dispatcher: Any = singledispatch(func)

    def __get__(self, obj: Any, cls: Any = None) -> Any:
        """Return a method that calls the implementation for the class of its first argument."""
        dispatcher = self.dispatcher

        def method(*args: Any, **kwargs: Any) -> Any:
            if not args:
                raise TypeError(f"{self.func.__name__} requires at least 1 positional argument")
            found = dispatcher.dispatch(_class_of(args[0], dispatcher.registry))
            return found.__get__(obj, cls)(*args, **kwargs)

        made: Any = functools.update_wrapper(method, self.func)
        made.__isabstractmethod__, made.register = self.__isabstractmethod__, self.register
        return made


def adopted_dispatch_method(value: Any, adopted: Callable[[Any], Any]) -> Any:
    """Return the adopted version of a user's `functools.singledispatchmethod`.

    Arguments:
        value: the user's method.
        adopted: a function that returns the adopted version of an implementation.
    """
    made = singledispatchmethod(adopted(value.func))
    made.dispatcher = adopted_dispatch(value.dispatcher, adopted)
    return made


# -- the module --------------------------------------------------------------------------------------------------------

REPLACED: Final[dict[str, Any]] = {
    "lru_cache": lru_cache, "cache": cache, "singledispatch": singledispatch,
    "singledispatchmethod": singledispatchmethod,
}  # fmt: skip


def replaced_module(name: str) -> types.ModuleType:
    """Return a module like `functools` with these functions.

    Arguments:
        name: "functools".
    """
    made = types.ModuleType(name, functools.__doc__)
    vars(made).update({**vars(functools), **REPLACED})
    return made
