"""The caches and generic functions of `functools` in adopted code, where arguments may be tensors.

A cache must not return the result for another tensor of equal value, whose history may differ; and a generic function
must find the implementation for arrays.
"""

from __future__ import annotations

import functools
import threading
import types
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

import numpy as np

from ..tensor.modes import current_mode
from ..tensor.tensor import Tensor, is_scalar
from .code_objects import captured
from .counterparts import MISSING, namespace
from .locations import GENERATED

# Types of hashable objects that are not tensors and contain none, looked up by exact type.
PLAIN_KEYS: Final = frozenset(
    {
        type(None), bool, int, float, complex, str, bytes, range, type(Ellipsis), type(NotImplemented), types.CodeType,
        np.float64, np.float32, np.int64, np.bool_,
    }
)  # fmt: skip
VARIABLE: Final = 4 | 8  # the flags of code with `*args` or `**kwargs`

# -- caches ------------------------------------------------------------------------------------------------------------


class _Recursion(threading.local):
    """The results for tensors of a cached function whose call is in progress; None between calls."""

    results: dict[Any, tuple[Any, Any]] | None = None


def cached_function(keeping: Any, cached: Any, inner: Callable[..., Any]) -> Any:
    """Wrap a cached function so that it stores no results for tensors beyond a call.

    During a call, results for the same unchanged tensor are kept, since recursive functions would otherwise take
    exponential time.

    Arguments:
        keeping: the cached function, whose arguments must not be tensors.
        cached: the user's cached function that it replaces, or `keeping` itself.
        inner: the function without a cache.
    """
    recursion = _Recursion()

    def general(*args: Any, **kwargs: Any) -> Any:
        if not any(isinstance(arg, Tensor) for arg in (*args, *kwargs.values())):
            return keeping(*args, **kwargs)
        if recursion.results is not None:
            return look_up(recursion.results, args, kwargs)
        recursion.results = {}
        try:
            return look_up(recursion.results, args, kwargs)
        finally:
            recursion.results = None

    def look_up(results: dict[Any, tuple[Any, Any]], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        key = current_mode(), *map(_key, args), *((name, _key(value)) for name, value in kwargs.items())
        found = results.get(key)
        if found is None:  # the arguments are stored too, since the key contains their addresses
            found = results[key] = inner(*args, **kwargs), (args, kwargs)
        return found[0]

    call: Any = functools.wraps(inner, updated=())(_unless_plain(inner, keeping, general))

    def cache_clear() -> None:
        cached.cache_clear()
        keeping.cache_clear()

    call.cache_clear, call.cache_info, call.cache_parameters = cache_clear, keeping.cache_info, cached.cache_parameters
    return call


def adopted_cache(cached: Any, inner: Callable[..., Any], adopted: Callable[[Any], Any]) -> Any:
    """Return the adopted version of a user's cached function.

    While the user's cache is empty, the adopted version has results of its own. Otherwise other code may have written
    to the results in it, so it is used too, except for arguments that are adopted objects.

    Its attribute `forget_changed` is a function that clears it if something that the function uses has changed.

    Arguments:
        cached: the user's function, a result of `functools.lru_cache`.
        inner: the adopted version of the function that it wraps.
        adopted: a function that returns the adopted version of a result.
    """
    known, is_used = captured(cached.__wrapped__), cached.cache_info().currsize > 0

    def result(*args: Any, **kwargs: Any) -> Any:
        if is_used and PLAIN_KEYS.issuperset(map(type, (*args, *kwargs.values()))):
            return adopted(cached(*args, **kwargs))
        return inner(*args, **kwargs)

    def forget_changed() -> None:
        nonlocal known, is_used
        was_used, is_used = is_used, cached.cache_info().currsize > 0
        is_known = known is not None and all(names.get(name, MISSING) is value for names, name, value in known)
        if was_used or is_used or not is_known:
            keeping.cache_clear()
        if not is_known:
            known = captured(cached.__wrapped__)

    keeping: Any = functools.lru_cache(**cached.cache_parameters())(result)
    call = cached_function(keeping, cached, inner)
    call.forget_changed = forget_changed
    return call


def _key(value: Any) -> Any:
    return (Tensor, id(value), value._version) if isinstance(value, Tensor) else (type(value), value)


def _unless_plain(inner: Any, keeping: Callable[..., Any], general: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls `keeping` if all arguments are plain, and otherwise `general`.

    Unless the cached function has `*args`, `**kwargs` or keyword-only parameters, this one is written with the same
    parameters, which takes a third of the time of `*args`. It leaves the default values to the cached function.
    """
    code = getattr(inner, "__code__", None)
    names = () if code is None else code.co_varnames[: code.co_argcount]
    has_others = code is None or code.co_kwonlyargcount or code.co_flags & VARIABLE
    if not has_others and RESERVED.isdisjoint(names):
        space: dict[str, Any] = {}
        source = _written(names, len(names) - len(inner.__defaults__ or ()))
        exec(compile(source, GENERATED + "cached function>", "exec"), space)
        return space["caller"](keeping, general, PLAIN_KEYS, MISSING)  # type: ignore[no-any-return]

    def call(*args: Any, **kwargs: Any) -> Any:
        for arg in args:  # in a third of the time of `PLAIN_KEYS.issuperset(map(type, args))`
            if type(arg) not in PLAIN_KEYS:
                return general(*args, **kwargs)
        for arg in kwargs.values():
            if type(arg) not in PLAIN_KEYS:
                return general(*args, **kwargs)
        return keeping(*args, **kwargs)

    return call


RESERVED: Final = frozenset({"keeping", "general", "plain", "absent", "others", "type", "int"})


def _written(names: Sequence[str], required: int) -> str:
    """Return the source of a function with given parameters for `_unless_plain`.

    Arguments:
        names: the names of the parameters.
        required: the number of parameters without default values.
    """
    parameters = ", ".join([*names[:required], *(f"{name}=absent" for name in names[required:])])
    lines = ["def caller(keeping, general, plain, absent):", f"    def call({parameters}):"]
    for count in range(required, len(names)):  # the number of arguments
        given = "".join(f"{name}, " for name in names[:count])
        lines.append(f"        if {names[count]} is absent:")
        later = names[count + 1 :]
        if later:
            named = ", ".join(f"({name!r}, {name})" for name in later)
            lines += [
                f"            others = {{name: value for name, value in ({named},) if value is not absent}}",
                f"            if others: return general({given}**others)",
            ]
        lines += _passing("            ", names[:count])
    return "\n".join([*lines, *_passing("        ", names), "    return call"])


def _passing(indent: str, names: Sequence[str]) -> list[str]:
    given = ", ".join(names)
    are_plain = " and ".join(f"(type({name}) is int or type({name}) in plain)" for name in names) or "True"
    return [f"{indent}if {are_plain}:", f"{indent}    return keeping({given})", f"{indent}return general({given})"]


def lru_cache(maxsize: Any = 128, typed: bool = False) -> Any:
    """Stand for `functools.lru_cache`."""
    decorated = functools.lru_cache(maxsize, typed)
    if callable(maxsize):  # the function itself
        return cached_function(decorated, decorated, maxsize)

    def decorate(function: Callable[..., Any]) -> Any:
        keeping: Any = decorated(function)
        return cached_function(keeping, keeping, function)

    return decorate


def cache(user_function: Callable[..., Any], /) -> Any:
    """Stand for `functools.cache`."""
    return lru_cache(None)(user_function)


# -- generic functions -------------------------------------------------------------------------------------------------


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
