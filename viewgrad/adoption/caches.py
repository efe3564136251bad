"""The caches of `functools` in adopted code, where arguments may be tensors.

A cache must not return the result for another tensor of equal value, whose history may differ. All other results of the
user's cached functions are shared: what adopted code writes to them is seen by the user's program, and vice versa.
"""

from __future__ import annotations

import functools
import gc
import threading
import types
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

import attrs
import numpy as np

from ..tensor.conversions import ADOPTED
from ..tensor.escapes import has_tangent
from ..tensor.modes import TRACE, current_mode
from ..tensor.tensor import Tensor
from ..tensor.trace_hooks import OBSERVER
from .attributes import attributes_of, store
from .classes import HEAP_TYPE, ORIGINAL
from .code_objects import captured, mentioned_names
from .containers import HOLDING, contents_of
from .counterparts import MISSING, is_module
from .locations import GENERATED, file_of, is_installed, place_of

# Types of hashable objects that are not tensors and contain none, looked up by exact type.
PLAIN_KEYS: Final = frozenset(
    {
        type(None), bool, int, float, complex, str, bytes, range, type(Ellipsis), type(NotImplemented), types.CodeType,
        np.float64, np.float32, np.int64, np.bool_,
    }
)  # fmt: skip
VARIABLE: Final = 4 | 8  # the flags of code with `*args` or `**kwargs`
MOST_OBJECTS: Final = 10_000  # the number of objects among which tensors are looked for


class _Recursion(threading.local):
    """The results for tensors of a cached function whose call is in progress; None between calls."""

    results: dict[Any, tuple[Any, Any]] | None = None


def cached_function(keeping: Any, inner: Callable[..., Any], parameters: Callable[[], Any]) -> Any:
    """Wrap a cached function so that it stores no results for tensors beyond a call.

    During a call, results for the same unchanged tensor are kept, since recursive functions would otherwise take
    exponential time.

    Arguments:
        keeping: the cached function, whose arguments must not be tensors.
        inner: the function without a cache.
        parameters: the method `cache_parameters` of the result.
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
    call.cache_clear, call.cache_info, call.cache_parameters = keeping.cache_clear, keeping.cache_info, parameters
    return call


def _key(value: Any) -> Any:
    return (Tensor, id(value), value._version) if isinstance(value, Tensor) else (type(value), value)


def _unless_plain(inner: Any, keeping: Callable[..., Any], general: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls `keeping` if all arguments are plain, and otherwise `general`.

    Unless the cached function has `*args`, `**kwargs` or keyword-only parameters, this one is written with the same
    parameters, which takes a third of the time of `*args`. It leaves the default values to the cached function. It
    looks up shared results itself, which takes a third of the time of `SharedResults.__call__`.
    """
    code = inner.__code__ if type(inner) is types.FunctionType else None
    names = () if code is None else code.co_varnames[: code.co_argcount]
    has_others = code is None or code.co_kwonlyargcount or code.co_flags & VARIABLE
    if not has_others and RESERVED.isdisjoint(names):
        space: dict[str, Any] = {}
        has_keys = isinstance(keeping, SharedResults) and not keeping.is_typed
        source = _written(names, len(names) - len(inner.__defaults__ or ()), has_keys)
        exec(compile(source, GENERATED + "generated cached function>", "exec"), space)
        shared = [getattr(keeping, name) for name in SHARED] if has_keys else ()
        return space["caller"](keeping, general, PLAIN_KEYS, MISSING, *shared)  # type: ignore[no-any-return]

    def call(*args: Any, **kwargs: Any) -> Any:
        for arg in args:  # in a third of the time of `PLAIN_KEYS.issuperset(map(type, args))`
            if type(arg) not in PLAIN_KEYS:
                return general(*args, **kwargs)
        for arg in kwargs.values():
            if type(arg) not in PLAIN_KEYS:
                return general(*args, **kwargs)
        return keeping(*args, **kwargs)

    return call


# Attributes of `SharedResults` that generated functions use.
SHARED: Final = ("results", "own_results", "cached", "adopted")
RESERVED: Final = frozenset(
    {"keeping", "general", "plain", "absent", "others", "type", "int", "float", "str", "found", *SHARED}
)


def _written(names: Sequence[str], required: int, has_keys: bool) -> str:
    """Return the source of a function with given parameters for `_unless_plain`.

    Arguments:
        names: the names of the parameters.
        required: the number of parameters without default values.
        has_keys: whether to look up shared results.
    """
    parameters = ", ".join([*names[:required], *(f"{name}=absent" for name in names[required:])])
    shared = ", ".join(SHARED if has_keys else ())
    lines = [f"def caller(keeping, general, plain, absent, {shared}):", f"    def call({parameters}):"]
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
        lines += _passing("            ", names[:count], has_keys)
    return "\n".join([*lines, *_passing("        ", names, has_keys), "    return call"])


def _passing(indent: str, names: Sequence[str], has_keys: bool) -> list[str]:
    given = ", ".join(names)
    lines = [f"if {' and '.join(map(_is_plain, names)) or 'True'}:", f"    return keeping({given})"]
    if has_keys:
        lines[1:1] = _looking_up(_key_of(names), given)
        if len(names) == 1:  # the fewest tests for an int, the most frequent argument
            lines = [f"if type({given}) is int:", *_looking_up(given, given), f"    return keeping({given})", *lines]
    return [indent + line for line in (*lines, f"return general({given})")]


def _looking_up(key: str, given: str) -> list[str]:
    return [
        f"    if {key} in results and not own_results:",
        f"        found = cached({given})",
        f"        return found if {_is_plain('found')} else adopted(found)",
    ]


def _is_plain(name: str) -> str:
    """Return the test of whether a value has one of the types `PLAIN_KEYS`, with the frequent ones first."""
    return f"(type({name}) is int or type({name}) is float or type({name}) in plain)"


def _key_of(names: Sequence[str]) -> str:
    """Return the key of plain positional arguments in the table of a cache, as an expression."""
    if len(names) == 1:
        return f"({names[0]} if type({names[0]}) is str else ({names[0]},))"
    return f"({', '.join(names)})"


def lru_cache(maxsize: Any = 128, typed: bool = False) -> Any:
    """Stand for `functools.lru_cache`."""
    decorated = functools.lru_cache(maxsize, typed)

    def decorate(function: Callable[..., Any], keeping: Any) -> Any:
        return cached_function(keeping, function, keeping.cache_parameters)

    if callable(maxsize):  # the function itself
        return decorate(maxsize, decorated)
    return lambda function: decorate(function, decorated(function))


def cache(user_function: Callable[..., Any], /) -> Any:
    """Stand for `functools.cache`."""
    return lru_cache(None)(user_function)


# -- the user's caches -------------------------------------------------------------------------------------------------


@attrs.frozen
class Exchange:
    """How values pass between the user's program and adopted code.

    Attributes:
        adopted: returns the adopted version of a value.
        original_of: returns the user's own object for an adopted version.
        users_code: a context in which adopted code runs the user's own functions.
    """

    adopted: Callable[[Any], Any]
    original_of: Callable[[Any], Any]
    users_code: Callable[[], AbstractContextManager[None]]


def adopted_cache(cached: Any, inner: Callable[..., Any], exchange: Exchange) -> Any:
    """Return the adopted version of a user's cached function, which shares its results.

    Its attribute `forget_changed` is a function to call before each call from outside.

    Arguments:
        cached: the user's function, a result of `functools.lru_cache`.
        inner: the adopted version of the function that it wraps.
        exchange: how values pass between the user's program and adopted code.
    """
    shared = SharedResults(cached, inner, exchange)
    call = cached_function(shared, inner, cached.cache_parameters)
    call.forget_changed = shared.forget_changed
    return call


class SharedResults:
    """The results of a user's cached function as adopted code sees them.

    - A result in the user's cache is returned, in its adopted version.
    - Otherwise the user's own function computes it, so that it is in the user's cache.
    - Only if tensors are among the arguments, in their attributes or in captured state, or if adopted code has created
      an argument, does the adopted version of the function compute the result, which is kept here.

    Arguments:
        cached: the user's function.
        inner: the adopted version of the function that it wraps.
        exchange: how values pass between the user's program and adopted code.

    Attributes:
        results: the table of the user's cache.
        own_results: the table of the results kept here.
        is_typed: whether arguments of different types have separate results.
    """

    def __init__(self, cached: Any, inner: Callable[..., Any], exchange: Exchange) -> None:
        parameters = cached.cache_parameters()
        self.cached: Final = cached
        self._exchange: Final = exchange
        self.results: Final = _table_of(cached)
        self._own: Final[Any] = functools.lru_cache(**parameters)(inner)
        self.own_results: Final = _table_of(self._own)
        # A cache of the same kind, which makes keys.
        self.is_typed: Final[bool] = parameters["typed"]
        self._keys: Final[Any] = functools.lru_cache(None, self.is_typed)(lambda *_, **__: None)
        self._made_keys: Final = _table_of(self._keys)
        self._lock: Final = threading.RLock()
        self._kept: Final[dict[int, tuple[Any, Any]]] = {}  # results, and their adopted versions, during a call
        self._misses = 0  # of the user's cache, when it was last used
        self._captured = _captured_by(cached)
        self.cache_info: Final = cached.cache_info

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the result for arguments that are not tensors."""
        if self.own_results and self._key(args, kwargs) in self.own_results:
            return self._own(*args, **kwargs)
        users, named = args, kwargs
        if kwargs or not PLAIN_KEYS.issuperset(map(type, args)):
            original_of = self._exchange.original_of
            users = tuple(users_argument(arg, original_of) for arg in args)
            named = {name: users_argument(arg, original_of) for name, arg in kwargs.items()}
            if any(arg is MISSING for arg in (*users, *named.values())):
                return self._own(*args, **kwargs)
        if self._key(users, named) in self.results:
            return self.adopted(self.cached(*users, **named))
        with self._exchange.users_code():
            needs_adoption = holds_tensors((self.cached.__wrapped__, *users, *named.values()))
            found = None if needs_adoption else self.cached(*users, **named)
        return self._own(*args, **kwargs) if needs_adoption else self.adopted(found)

    def adopted(self, result: Any) -> Any:
        """Return the adopted version of a result, and keep it: values may be assigned to its attributes."""
        if type(result) in PLAIN_KEYS:
            return result
        kept = self._kept.get(id(result))
        if kept is not None and kept[0] is result:
            return kept[1]
        made = self._exchange.adopted(result)
        self._kept[id(result)] = result, made
        return made

    def _key(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the key of a result in the table of the cache."""
        with self._lock:
            self._keys(*args, **kwargs)
            return self._made_keys.popitem()[0]

    def forget_changed(self) -> None:
        """Clear own results if the user cleared the cache, or something that the function uses has changed."""
        self._kept.clear()
        before, self._misses = self._misses, self.cache_info().misses
        known = self._captured
        is_known = known is not None and all(names.get(name, MISSING) is value for names, name, value in known)
        if self._misses < before or not is_known:
            self._own.cache_clear()
        if not is_known:
            self._captured = _captured_by(self.cached)

    def cache_clear(self) -> None:
        """Clear the user's cache, and the results kept here."""
        self.cached.cache_clear()
        self._own.cache_clear()


def _table_of(cached: Any) -> dict[Any, Any]:
    """Return the dict in which a cached function keeps its results."""
    found: dict[Any, Any] = [
        each for each in gc.get_referents(cached) if type(each) is dict and each is not cached.__dict__
    ][-1]  # results that are dicts precede it
    return found


def _captured_by(cached: Any) -> Any:
    return captured(cached.__wrapped__) if type(cached.__wrapped__) is types.FunctionType else None


def users_argument(value: Any, original_of: Callable[[Any], Any]) -> Any:
    """Return an argument of a cached function as the user's program passes it.

    Objects created by adopted code that are compared by their values are copied, since a cache finds them by value.

    Arguments:
        value: the argument.
        original_of: a function that returns the user's own object for an adopted version.

    Returns:
        The argument, or MISSING if it is or contains a tensor, or an object created by adopted code that is compared by
        identity.
    """
    kind = type(value)
    if kind in PLAIN_KEYS:
        return value
    if isinstance(value, Tensor) or (kind is types.FunctionType and original_of(value) is value and _is_adopted(value)):
        return MISSING
    if kind is tuple or kind is frozenset:
        items = [users_argument(item, original_of) for item in value]
        return MISSING if any(item is MISSING for item in items) else kind(items)
    if kind is types.MethodType:
        parts = [users_argument(part, original_of) for part in (value.__func__, value.__self__)]
        return MISSING if any(part is MISSING for part in parts) else original_of(value)
    found = original_of(value)
    if found is not value or isinstance(value, type):
        return found
    if kind is functools.partial:
        parts = [value.func, *value.args, *value.keywords.values()]
        return value if all(users_argument(part, original_of) is part for part in parts) else MISSING
    cls = next((vars(base)[ORIGINAL] for base in kind.__mro__ if ORIGINAL in vars(base)), None)
    if cls is None:
        return value
    if vars(kind).get(ORIGINAL) is not cls or cls.__hash__ is object.__hash__:
        return MISSING
    attributes = {name: users_argument(part, original_of) for name, part in attributes_of(value)}
    items = [users_argument(part, original_of) for part in value] if isinstance(value, tuple) else []
    if any(part is MISSING for part in (*attributes.values(), *items)):
        return MISSING
    made: Any = tuple.__new__(cls, items) if isinstance(value, tuple) else object.__new__(cls)
    for name, part in attributes.items():
        store(made, name, part)
    return made


def _is_adopted(function: types.FunctionType) -> bool:
    return ADOPTED in function.__globals__


def holds_tensors(values: Iterable[Any]) -> bool:
    """Return whether there are tensors among values, in their attributes and contents, or in what functions capture.

    Those without a history do not count: the user's functions compute with them as with arrays. A trace ends there.
    Beyond a limit on the number of objects, the answer is that there are.

    Arguments:
        values: the values.
    """
    seen: dict[int, Any] = {}
    pending = list(values)
    while pending:
        value = pending.pop()
        if type(value) in PLAIN_KEYS or id(value) in seen:
            continue
        if isinstance(value, Tensor):
            if value.requires_grad or has_tangent(value):
                return True
            if current_mode() & TRACE:  # its result, in the user's cache, would contain what the trace recorded
                OBSERVER.get().refuse("a cached function that uses tensors")
            continue
        if len(seen) > MOST_OBJECTS:
            return True
        seen[id(value)] = value
        pending += _parts_of(value)
    return False


def _parts_of(value: Any) -> Iterable[Any]:
    """Return the objects that a value refers to, except for those of installed packages."""
    if isinstance(value, np.ndarray):
        return value.ravel().tolist() if value.dtype.hasobject else ()
    if isinstance(value, types.FunctionType):
        if is_installed(place_of(value.__globals__)):
            return ()
        return [*_variables_of(value), *(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]
    if isinstance(value, types.MethodType):
        return value.__func__, value.__self__
    if isinstance(value, functools.partial):
        return value.func, *value.args, *value.keywords.values()
    if isinstance(value, (classmethod, staticmethod, functools._lru_cache_wrapper)):
        return (value.__wrapped__,)
    if isinstance(value, property):
        return value.fget, value.fset
    if isinstance(value, type):
        is_users = value.__flags__ & HEAP_TYPE and not is_installed(file_of(value))
        return [part for base in value.__mro__ for part in vars(base).values()] if is_users else ()
    if is_module(value):
        return ()
    parts: list[Any] = [type(value), *(part for _, part in attributes_of(value))]
    if isinstance(value, (tuple, frozenset)):
        parts += value
    elif not HOLDING.isdisjoint(type(value).__mro__):
        parts += contents_of(value)
    return parts


def _variables_of(function: types.FunctionType) -> Iterable[Any]:
    """Iterate over the variables of other scopes that a function may use, also as attributes of modules."""
    names = mentioned_names(function.__code__)
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    for name in names & function.__globals__.keys():
        value = function.__globals__[name]
        yield value
        if is_module(value) and not is_installed(place_of(vars(value))):
            yield from (vars(value)[other] for other in names & vars(value).keys())
