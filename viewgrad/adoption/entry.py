"""`adopt` for functions: the entry from the user's program into adopted code."""

from __future__ import annotations

import functools
import inspect
import operator
import sys
import types
from collections.abc import Callable, Collection, Generator, Sequence
from typing import Any, Final

from ..tensor.captured_storage import ASSUMED, CALLS, refuse_unseen_writes, settle
from .counterparts import MISSING, counterpart
from .global_names import AdoptedGlobals, is_as_it_was, parts_of
from .registry import PLAIN, AdoptionRegistry, is_adopted, original_of, registry_of


class AdoptedFunction:
    """A user's function with viewgrad's objects in place of NumPy's; see `viewgrad.adopt`.

    It has the same code, defaults, signature, source and documentation as the function. It is equal to any other
    adopted version of the same function.

    Arguments:
        original: the user's function.
        registry: the registry that it belongs to.
    """

    def __init__(self, original: Callable[..., Any], registry: AdoptionRegistry) -> None:
        functools.update_wrapper(self, original, updated=())
        self.__wrapped__: Final = original
        self._registry: Final = registry
        function = getattr(original, "__func__", original)
        self._users_function: Final = function if type(function) is types.FunctionType else None
        self._bind()

    def _bind(self) -> None:
        self._generation = self._registry.generation
        self._parts: tuple[Any, ...] = ()  # compared at the next call
        with self._registry.links() as states:
            self.function = self._registry.adopted(self.__wrapped__)
        self._states = states
        self._version = self._registry.version
        self._reachable = self._registry.reachable(states)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        depth = CALLS.depth
        if not depth:
            self._registry.forget_results()
        further: Sequence[AdoptedGlobals] = ()  # additional globals used by functions and objects among the arguments
        try:
            try:
                CALLS.depth = depth + 1
                self.refresh()
                if not (_are_plain(args) and (not kwargs or _are_plain(kwargs.values()))):
                    args, kwargs, further = self._with_arguments(args, kwargs)
                result = self.function(*args, **kwargs)
            finally:
                CALLS.depth = depth
                self.flush(further)
            if ASSUMED and not depth:
                refuse_unseen_writes()
        except BaseException:
            CALLS.depth = depth  # an interruption may have prevented the line above from running
            if not depth:
                settle()
                self._registry.hand_over(self._reachable)
            raise
        if type(result) not in PLAIN and isinstance(result, Generator):
            return _flushing(result, functools.partial(self.flush, further))
        return result if CALLS.depth else self._registry.hand_over(self._reachable, result)

    def _with_arguments(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any], Sequence[AdoptedGlobals]]:
        """Return the adopted versions of arguments, and the globals that only these use."""
        with self._registry.links() as states:
            args = tuple(map(self._registry.adopted, args))
            kwargs = {name: self._registry.adopted(value) for name, value in kwargs.items()}
        known = set(self._reachable)
        further = [state for state in self._registry.reachable(states) if state not in known] if states else ()
        for state in further:
            state.refresh()
        return args, kwargs, further

    def refresh(self) -> None:
        """Apply changes made outside since the last call."""
        self.flush()
        if self._version != self._registry.version:
            self._version = self._registry.version
            self._reachable = self._registry.reachable(self._states)
        for state in self._reachable:
            state.refresh()
        self._registry.refresh(self._reachable)
        function = self._users_function
        if function is not None and not is_as_it_was(function, self._parts):
            self._registry.renew(function)
            self._parts = parts_of(function)
        if self._generation != self._registry.generation or self._is_outdated():
            self._bind()

    def _is_outdated(self) -> bool:
        original = self.__wrapped__
        if type(original) is types.FunctionType:  # equal functions as long as the code is the same
            return getattr(self.function, "__code__", None) is not original.__code__
        return bool(self._registry.adopted(original) != self.function)

    def flush(self, further: Sequence[AdoptedGlobals] = ()) -> None:
        """Copy assignments to globals and attributes to the user's modules and objects.

        Arguments:
            further: globals in addition to those that the function itself uses.
        """
        for state in self._reachable:
            if state.may_be_assigned:
                state.flush()
        for state in further:
            state.flush()
        self._registry.flush()

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __getattr__(self, name: str) -> Any:
        if name in ("function", "__wrapped__"):
            raise AttributeError(name)
        return getattr(self.function, name)

    def __eq__(self, other: object) -> bool:
        return type(other) is AdoptedFunction and bool(self.__wrapped__ == other.__wrapped__)

    def __hash__(self) -> int:
        return hash((AdoptedFunction, self.__wrapped__))

    def __reduce__(self) -> Any:
        return adopted_callable, (self.__wrapped__,)

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def __repr__(self) -> str:
        return f"<adopted {self.__wrapped__!r}>"


def _are_plain(args: Collection[Any]) -> bool:
    """Return whether arguments need no adoption: numbers, arrays, and lists of these."""
    return PLAIN.issuperset(map(type, args)) or all(
        type(each) in PLAIN or (type(each) in (tuple, list) and PLAIN.issuperset(map(type, each))) for each in args
    )


def _flushing(generator: Generator[Any, Any, Any], flush: Callable[[], None]) -> Generator[Any, Any, Any]:
    """Run a generator, and copy its assignments to the user's variables whenever it is suspended."""
    resume: Callable[..., Any] = generator.send
    given: Any = None
    while True:
        try:
            item = resume(given)
        except StopIteration as stop:
            return stop.value
        finally:
            flush()
        try:
            given = yield item
            resume = generator.send
        except GeneratorExit:
            generator.close()
            flush()
            raise
        except BaseException as error:
            resume, given = generator.throw, error


def adopted_callable(f: Any) -> Any:
    """Return the adopted version of a callable, or the callable itself if nothing in it needs adoption.

    Arguments:
        f: a function, method, class or callable object.
    """
    if isinstance(f, AdoptedFunction) or is_adopted(f):
        return f
    found = counterpart(f)
    if found is not MISSING:
        return found
    names = _globals_of(f)
    if names is None:
        return f
    registry = registry_of(names)
    with registry.links():
        made = registry.adopted(f)
    return made if made is f or isinstance(made, type) else AdoptedFunction(f, registry)


# Callables that users write and pass to other code; classes and objects are left to their callers.
FUNCTIONS: Final = (types.FunctionType, types.MethodType, functools.partial)


def adopted_arguments(value: Any) -> Any:
    """Return an argument with the functions in it adopted, also in lists, tuples and dicts.

    Arguments:
        value: an argument of a function that calls the user's functions.
    """
    kind = type(value)
    if kind in FUNCTIONS:
        return adopted_callable(value)
    if kind in (list, tuple):
        items = list(map(adopted_arguments, value))
        return value if all(map(operator.is_, items, value)) else kind(items)
    if kind is dict:
        found = {key: adopted_arguments(item) for key, item in value.items()}
        return value if all(map(operator.is_, found.values(), value.values())) else found
    return value


def adopting(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function that calls the user's functions, so that these are adopted first.

    Arguments:
        function: the function, such as `scipy.optimize.brentq` for tensors.
    """

    @functools.wraps(function, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            kwargs = {key: adopted_arguments(value) for key, value in kwargs.items()}
        return function(*map(adopted_arguments, args), **kwargs)

    return call


def original_callable(f: Any) -> Any:
    """Return the user's own callable for an adopted one; return other objects unchanged."""
    return f.__wrapped__ if isinstance(f, AdoptedFunction) else original_of(f)


def _globals_of(f: Any) -> dict[str, Any] | None:
    """Return the globals of the function that a callable runs, or None if it is not written in Python."""
    for _ in range(100):  # decorators around decorators
        inner = _inside(f)
        if inner is None:
            break
        f = inner
    if isinstance(f, types.FunctionType):
        return f.__globals__
    module = sys.modules.get(getattr(f if isinstance(f, type) else type(f), "__module__", ""))
    return None if module is None else vars(module)


def _inside(f: Any) -> Any:
    """Return the callable that another one wraps, or None."""
    if isinstance(f, functools.partial):
        return f.func
    if isinstance(f, types.MethodType):
        return f.__func__
    for name in ("__wrapped__", "py_func", "pyfunc"):
        inner = inspect.getattr_static(f, name, None)
        if inner is not None and not isinstance(f, type):
            return getattr(f, name)
    return None
