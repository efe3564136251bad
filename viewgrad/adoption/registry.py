"""The registry of adopted objects: functions, methods, classes, objects, modules and containers of these.

There is one `AdoptionRegistry` for the modules that are not installed, and another one for each installed package from
which functions are adopted. Each stores the adopted versions of objects, so that a function has only one.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import inspect
import itertools
import operator
import pickle
import sys
import threading
import types
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from ..tensor.captured_storage import Surroundings, settle
from ..tensor.conversions import ADOPTED
from ..tensor.creation import as_captured, captured_array
from ..tensor.signatures import copy_annotations
from ..tensor.tensor import Tensor
from .attributes import hides_class, instance_dict, set_instance_dict
from .builtin_names import CLASS_OF_VIEW, original_builtin
from .caches import Exchange, adopted_cache
from .classes import (
    FUNCTIONS,
    LISTS,
    ORIGINAL,
    STATES,
    VIEWS,
    adopted_class,
    can_be_adopted,
    can_be_made,
    forget_class_values,
    refresh_class,
    replaced_class,
)
from .compiled_functions import is_compiled, is_extension, of_compiled
from .containers import (
    CONTAINERS,
    HOLDING,
    REPORTED,
    AdoptedTupleAttributes,
    are_same_objects,
    contents_of,
    kind_of_contents,
)
from .counterparts import MISSING, counterpart, is_replaced_module, original_of_counterpart
from .foreign import Conversion, converted, may_change
from .function_tools import adopted_dispatch, adopted_dispatch_method, is_single_dispatch
from .global_names import AdoptedGlobals, AdoptedModule, FunctionSnapshot, is_as_it_was, own_globals, parts_of
from .locations import VIEWGRAD, is_installed, place_of, root_of
from .made_objects import hand_over
from .object_views import (
    MOST_ITEMS,
    container_view_of,
    containers_of,
    fetch_at_once,
    fetch_contents,
    fetched_view_of,
    flush_view,
    forget_values,
    original_of_view,
    refresh_view,
    view_class,
    view_of,
)
from .packages import ReplacedModule, replacement_of
from .unseen_writers import may_write_unseen

DOCTEST: Final = "<doctest "  # the file of a doctest, whose globals are those of the module that contains it
MOST_EXAMINED: Final = 1000  # the number of lists and dicts whose contents are compared with those at the last call
# The depth of nested attributes that are adopted before they are read, and of functions that each mention the next one.
DEEPEST: Final = 10
# Types of objects that are not adopted, looked up by exact type.
PLAIN: Final = frozenset(
    {
        type(None), bool, int, float, complex, str, bytes, bytearray, slice, range, type(Ellipsis),
        type(NotImplemented), types.CodeType, np.float64, np.float32, np.int64, np.bool_, Tensor,
    }
)  # fmt: skip
FIXED: Final = PLAIN - {Tensor}  # types of objects that are returned to the user unchanged
UNADOPTED: Final = FIXED | HOLDING | {tuple, frozenset, np.ndarray}  # types of objects that are no adopted versions
# The user's own functions, by adopted function; neither is kept alive by this table.
_ORIGINALS: Final[weakref.WeakKeyDictionary[Any, Any]] = weakref.WeakKeyDictionary()
# The defaults of the user's functions, in their adopted versions.
_DEFAULTS: Final[weakref.WeakKeyDictionary[Any, tuple[Any, Any]]] = weakref.WeakKeyDictionary()


class Links(set[AdoptedGlobals]):
    """The globals used by objects adopted in a block, hashed by identity since they are weakly referenced.

    A collection abandoned because of an interruption is not continued.
    """

    __slots__ = ()

    def __hash__(self) -> int:  # type: ignore[override]
        return id(self)


class AdoptionRegistry:
    """The adopted versions of the objects of one package, and of modules that are not installed.

    Arguments:
        root: the path prefix of the files of the package; "" for modules that are not installed.
    """

    def __init__(self, root: str) -> None:
        self.root: Final = root
        self.version = 0  # counts the links between globals
        self.generation = 0  # counts how often all adopted objects were discarded
        self._lock: Final = threading.RLock()
        self._functions: Final[weakref.WeakKeyDictionary[Any, Any]] = weakref.WeakKeyDictionary()
        # Functions other than globals, which are compared with their modules, and their parts at that time.
        self._elsewhere: Final[weakref.WeakKeyDictionary[Any, tuple[Any, ...]]] = weakref.WeakKeyDictionary()
        self._snapshot: FunctionSnapshot | None = None  # of these; None if others have been added
        self._partials: Final[weakref.WeakKeyDictionary[Any, tuple[Any, list[Any]]]] = weakref.WeakKeyDictionary()
        self._modules: Final[weakref.WeakValueDictionary[int, AdoptedModule]] = weakref.WeakValueDictionary()
        self._classes: Final[weakref.WeakValueDictionary[int, Any]] = weakref.WeakValueDictionary()
        self._views: Final[weakref.WeakValueDictionary[int, Any]] = weakref.WeakValueDictionary()
        self._containers: Final[weakref.WeakValueDictionary[int, Any]] = weakref.WeakValueDictionary()
        # The attributes of tuples, by the addresses of those of the user's.
        self._tuples: Final[weakref.WeakValueDictionary[int, AdoptedTupleAttributes]] = weakref.WeakValueDictionary()
        self.surroundings: Final = Surroundings()
        self._arrays: Final[weakref.WeakValueDictionary[int, Tensor]] = weakref.WeakValueDictionary()
        self._cells: Final[weakref.WeakKeyDictionary[Any, list[list[Any]]]] = weakref.WeakKeyDictionary()
        self._remembering: Final[weakref.WeakSet[Any]] = weakref.WeakSet()  # cached functions
        self._collecting: Final[weakref.WeakSet[Links]] = weakref.WeakSet()
        # Functions whose results are adopted, and their modules.
        self._sources: Final[dict[Any, Callable[..., Any]]] = {
            importlib.import_module: self._import_module,
            inspect.getattr_static: self._getattr_static,
            **{function: self._adopting_result(function) for function in (pickle.load, pickle.loads)},
        }
        self._source_modules: Final[dict[types.ModuleType, Any]] = {
            module: ReplacedModule(module, {name: self._sources[getattr(module, name)] for name in names})
            for module, names in (
                (importlib, ("import_module",)), (inspect, ("getattr_static",)), (pickle, ("load", "loads"))
            )
        }
        self._conversions: Final[dict[int, Conversion]] = {}  # by the addresses of the replacements
        self._imported: Final[weakref.WeakSet[AdoptedGlobals]] = weakref.WeakSet()  # by `importlib`
        self._under_way: Final[set[int]] = set()  # containers and functions that are being adopted
        # Of lists and dicts in which nothing was adopted, the types and addresses of the contents.
        self._examined: Final[dict[int, tuple[Any, ...]]] = {}
        self._assigned: Final[list[Any]] = []  # values assigned by adopted code that may contain objects created by it
        # The references inside the weak containers: these are empty in most programs, and slow to iterate over.
        self._live_views: Final = _references(self._views)
        self._live_classes: Final = _references(self._classes)
        self._live_containers: Final = _references(self._containers)
        self._live_tuples: Final = _references(self._tuples)
        self._live_functions: Final = _references(self._elsewhere)
        self._live_partials: Final = _references(self._partials)
        self._live_cells: Final = _references(self._cells)
        self._live_imports: Final = _references(self._imported)
        self._live_caches: Final = _references(self._remembering)
        self._compared: Final[tuple[Any, ...]] = (  # if all are empty, `refresh` has nothing more to compare
            self._live_imports, self._live_views, self._live_containers, self._live_classes, self._conversions,
            self._live_partials, self._live_cells,
        )  # fmt: skip
        # What may refer to lists and dicts in addition to globals.
        self._holders: Final[tuple[Any, ...]] = self._live_views, self._live_classes, self._live_cells
        self._flushed: Final[tuple[Any, ...]] = (
            self._live_imports, self._live_views, self._live_cells, self._live_tuples,
        )  # fmt: skip
        self._fetching = 0  # objects whose attributes are being adopted, each an attribute of the previous one
        self._including = 0  # functions whose names are being bound, each mentioned by the previous one
        self._waiting: Final[list[tuple[AdoptedGlobals, types.FunctionType]]] = []  # whose names are not bound yet

    # -- for a call from outside ---------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def links(self) -> Iterator[Links]:
        """Collect the globals used by objects adopted in a block."""
        found = Links()
        with self._lock:
            self._collecting.add(found)
            try:
                yield found
            finally:
                self._collecting.discard(found)

    def reachable(self, states: set[AdoptedGlobals]) -> list[AdoptedGlobals]:
        """Return globals, and all others reachable from them."""
        found, new = set(states), list(states)
        while new:
            new = [state for state in {link for state in new for link in state.links} if state not in found]
            found.update(new)
        return list(found)

    def refresh(self, states: Sequence[AdoptedGlobals]) -> None:
        """Apply changes made outside to objects, classes, functions, lists and dicts.

        Arguments:
            states: the globals that a call from outside uses.
        """
        if (any(self._holders) or any(map(_CONTAINERS, states))) and self._has_filled(states):
            for state in states:
                state.refresh()
        if self._snapshot is None or not self._snapshot.is_current():  # in half the time of a loop
            self._renew_elsewhere()
        if not any(self._compared):
            return
        with self._lock:
            for state in self.reachable(set(self._imported)) if self._live_imports else ():
                state.refresh()
            for view in _alive(self._live_views.values()):
                if not refresh_view(view):
                    self._forget()
                    return
            for container in _alive(self._live_containers.values()):
                container.refresh()
            for made in _alive(self._live_classes.values()):
                refresh_class(made)
            for conversion in list(self._conversions.values()) if self._conversions else ():
                conversion.refresh(self.adopted)
            self._renew_partials()
            self._synchronize_all_cells()

    def forget_results(self) -> None:
        """Clear the caches of functions whose results may have changed.

        The user may have cleared the cache of the original, which sends no notification.
        """
        for cached in list(self._remembering) if self._live_caches else ():
            cached.forget_changed()

    def _forget(self) -> None:
        """Discard all adopted objects, since the class of an object has changed and that of its view cannot."""
        self.generation += 1
        self.version += 1
        self._snapshot = None
        functions = self._functions, self._elsewhere, self._partials, self._cells
        for kept in (*functions, self._modules, self._classes, self._views, self._containers, self._tuples):
            kept.clear()

    def renew(self, function: Any) -> None:
        """Update the code, defaults and names of a function, which may be reassigned at any time."""
        reference = self._functions.get(function) if type(function) is types.FunctionType else None
        made = None if reference is None else reference()
        if type(made) is not types.FunctionType:
            return
        if made.__code__ is not function.__code__ and len(function.__closure__ or ()) == len(made.__closure__ or ()):
            made.__code__ = function.__code__
            module = made.__globals__.get(ADOPTED)
            if type(module) is AdoptedModule:
                module._state.discard_faster_builtins()
                module._state.include(function.__code__)
        copy_annotations(function, made)
        for name in ("__name__", "__doc__"):
            if getattr(made, name) is not getattr(function, name):
                setattr(made, name, getattr(function, name))
        defaults, given = _DEFAULTS.get(made, (None, None)), (function.__defaults__, function.__kwdefaults__)
        if defaults[0] is not given[0] or (given[1] or {}) != (defaults[1] or {}):
            self._set_defaults(function, made)

    def _renew_elsewhere(self) -> None:
        """Update functions that are not globals."""
        for reference, parts in self._live_functions.copy().items():  # items may start the garbage collector
            function = reference()
            if function is not None and not is_as_it_was(function, parts):
                with self._lock:
                    self.renew(function)
                    self._elsewhere[function] = parts_of(function)
        self._snapshot = FunctionSnapshot(self._live_functions.copy())

    def _renew_partials(self) -> None:
        """Update partial functions."""
        for made, (reference, before) in list(self._partials.items()) if self._live_partials else ():
            partial = reference()
            if partial is not None and not are_same_objects(_state_of(partial), before):
                self._renew_partial(partial, made)

    def _renew_partial(self, partial: functools.partial[Any], made: functools.partial[Any]) -> None:
        """Update the function and arguments of a partial function, which may be reassigned at any time."""
        keywords = {key: self.adopted(value) for key, value in partial.keywords.items()}
        given = self.adopted(partial.func), tuple(map(self.adopted, partial.args)), keywords
        made.__setstate__((*given, vars(made)))  # type: ignore[attr-defined]
        self._partials[made] = weakref.ref(partial), _state_of(partial)

    def _set_defaults(self, function: Any, made: Any) -> None:
        defaults, options = function.__defaults__, function.__kwdefaults__
        made.__defaults__ = None if defaults is None else tuple(map(self.adopted, defaults))
        made.__kwdefaults__ = None if options is None else {key: self.adopted(each) for key, each in options.items()}
        _DEFAULTS[made] = defaults, None if options is None else dict(options)

    def flush(self) -> None:
        """Copy assignments of adopted code to the user's objects and enclosing functions."""
        if self._under_way:  # left by an exception from a signal handler, or about to be removed by another thread
            with self._lock:
                self._under_way.clear()
        if any(self._flushed):
            with self._lock:
                for state in self.reachable(set(self._imported)) if self._live_imports else ():
                    state.flush()
                for view in _alive(self._live_views.values()):
                    flush_view(view)
                for attributes in _alive(self._live_tuples.values()):
                    attributes.flush()
                self._synchronize_all_cells()

    @contextlib.contextmanager
    def users_code(self) -> Iterator[None]:
        """A context in which adopted code runs the user's own functions."""
        states = [module._state for module in list(self._modules.values())]
        for state in states:
            if state.may_be_assigned:
                state.flush()
        self.flush()
        try:
            yield
        finally:
            for state in states:
                state.refresh()
            self.refresh(states)

    def _unadopted(self, value: Any) -> Any:
        """Return the user's own object for a value that adopted code assigns; objects created by adopted code have none
        yet.
        """
        if type(value) is tuple:
            items = tuple(map(self._unadopted, value))
            return value if all(map(operator.is_, value, items)) else items
        found = original_of(value)
        if found is value and (type(value) in HOLDING or ORIGINAL in vars(type(value))):
            self._assigned.append(value)
        return found

    def hand_over(self, states: Sequence[AdoptedGlobals], result: Any = None) -> Any:
        """Give the user's classes to the objects that adopted code has created and assigned or returned.

        Adopted code may still refer to these objects, and uses their adopted versions from the next call on.

        Arguments:
            states: the globals that a call from outside has used.
            result: the return value of the call.

        Returns:
            The result for the user.
        """
        holds = any(self._holders) or any(map(_CONTAINERS, states))
        for value, kinds in _other_contents(self._users_containers(states), UNADOPTED) if holds else ():
            if any(ORIGINAL in vars(kind) for kind in kinds) or any(
                original_of(item) is not item for item in contents_of(value)
            ):
                self._assigned.append(value)
        if not self._assigned and (type(result) is Tensor or type(result) in FIXED):
            return original_of(result)
        handed: set[int] = set()
        with self._lock:
            while self._assigned:
                hand_over(self._assigned.pop(), original_of, FIXED, handed)
            result = hand_over(result, original_of, FIXED, handed)
            if handed:
                self._adopt_again(handed)
        return result

    def _users_containers(self, states: Sequence[AdoptedGlobals]) -> list[Any]:
        """Return the user's lists and dicts that contained nothing to adopt, so that adopted code uses them.

        Arguments:
            states: the globals that a call from outside uses.
        """
        found = list(itertools.chain.from_iterable(map(_CONTAINERS, states)))
        for view in _alive(self._live_views.values()) if self._live_views else ():
            found += containers_of(view)
        for made in _alive(self._live_classes.values()) if self._live_classes else ():
            found += vars(made)[LISTS]
        for entries in list(self._cells.values()) if self._live_cells else ():
            found += [value for _, _, held in entries if type(value := held()) in HOLDING]
        return found

    def _has_filled(self, states: Sequence[AdoptedGlobals]) -> bool:
        """Mark lists and dicts as outdated that now contain something to adopt; return whether there are any."""
        filled: set[int] = set()
        for value, kinds in _other_contents(self._users_containers(states), PLAIN):
            now = kinds, *map(id, contents_of(value))
            if self._examined.get(id(value)) != now:
                self._examined[id(value)] = now
                if self.adopted(value) is not value:
                    filled.add(id(value))
        if len(self._examined) > MOST_EXAMINED:
            self._examined.clear()
        if filled:
            with self._lock:
                self._adopt_again(filled)
        return bool(filled)

    def _adopt_again(self, handed: set[int]) -> None:
        """Mark values that were returned to the user, or filled, as outdated, so that `refresh` adopts them again."""
        for view in list(self._views.values()):
            forget_values(view, handed)
        for container in list(self._containers.values()):
            container.forget_values(handed)
        for module in list(self._modules.values()):
            module._state.forget_values(handed)
        for made in list(self._classes.values()):
            forget_class_values(made, handed)
        for entries in list(self._cells.values()):
            for entry in entries:
                if id(entry[2]()) in handed:
                    entry[1] = object  # a new object, which is not in any cell

    # -- by kind of object ---------------------------------------------------------------------------------------------

    def adopted(self, value: Any) -> Any:
        """Return the adopted version of a value, or the value itself if there is nothing to adopt."""
        kind = type(value)
        if kind in PLAIN:
            return value
        if kind is np.ndarray:
            return self._array(value)
        if hides_class(value):
            return self._unchanged(value)
        found = counterpart(value)
        if found is not MISSING:
            return found
        with self._lock:
            handler = HANDLERS.get(kind)
            if handler is not None:
                return handler(self, value)
            if isinstance(value, type):
                return self._class(value)
            made = self._class(kind)
            if made is kind:
                return self._conversion(value)
            return self._named_tuple(value) if issubclass(kind, tuple) else self._view(value, made)

    def _array(self, array: np.ndarray[Any, Any]) -> Any:
        """Return a tensor over the memory of an array of numbers, so that values of tensors can be stored in copies of
        it.
        """
        if array.dtype.kind not in "fc" or not array.dtype.isnative:
            return self._unchanged(array)
        found = self._arrays.get(id(array))
        if found is None or captured_array(found) is not array:
            found = self._arrays[id(array)] = as_captured(array, self.surroundings)
        return found

    def _unchanged(self, value: Any) -> Any:
        """Return an object that is not adopted, after noting whether arrays may be written to through it."""
        if not self.surroundings.have_writers and may_write_unseen(value):
            self.surroundings.have_writers = True
            settle()
        return value

    def _conversion(self, value: Any) -> Any:
        """Return the replacement of a library's object, which tracks changes of the object, or the object itself."""
        made = converted(value, self.adopted)
        if made is MISSING:
            return self._unchanged(value)
        if may_change(value):
            key = id(made)
            conversions = self._conversions
            conversions[key] = Conversion(value, made, lambda _: conversions.pop(key, None))
        return made

    def _is_own(self, names: dict[str, Any]) -> bool:
        """Return whether the module with the given globals is adopted."""
        if is_replaced_module(str(names.get("__name__"))):
            return False
        place = place_of(names)
        return not is_installed(place) or bool(self.root and place.startswith(self.root))

    def _globals(self, names: dict[str, Any], name: str, origin: types.ModuleType | None = None) -> AdoptedModule:
        module = self._modules.get(id(names))
        if module is None or module._state.original is not names:
            module = AdoptedModule(name)
            state = AdoptedGlobals(
                names, own_globals(module), self._bound_in(module), self._unadopted, self._lock, self.renew
            )
            module._state = state
            self._modules[id(names)] = module
            state.prepare()
            own_globals(module)[ADOPTED] = module  # kept alive by functions
        self._touch(module._state)
        return module

    def _bound_in(self, module: AdoptedModule) -> Callable[[Any], Any]:
        reference = weakref.ref(module)

        def adopted(value: Any) -> Any:
            with self.links() as found:
                new = self.adopted(value)
            if type(value) is types.FunctionType:
                self._elsewhere.pop(value, None)
                self._snapshot = None
            here = reference()
            if here is not None and not found <= here._state.links:
                here._state.links.update(found)
                self.version += 1
            return new

        return adopted

    def _touch(self, state: AdoptedGlobals) -> None:
        for found in list(self._collecting):
            found.add(state)

    def _module(self, module: types.ModuleType) -> Any:
        if module in self._source_modules:
            return self._source_modules[module]
        if type(module) is AdoptedModule or not self._is_own(vars(module)):
            return replacement_of(module) if is_extension(module.__name__) else module
        return self._globals(vars(module), module.__name__)

    def _adopting_result(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            return self.adopted(function(*args, **kwargs))

        return call

    def _import_module(self, name: str, package: str | None = None) -> Any:
        """Implement `importlib.import_module` in adopted code."""
        made = self.adopted(importlib.import_module(name, package))
        if type(made) is AdoptedModule:
            self._imported.add(made._state)
        return made

    def _getattr_static(self, obj: Any, attr: str, *default: Any, **named: Any) -> Any:
        """Implement `inspect.getattr_static` in adopted code: look the attribute up in the user's own object."""
        users = original_of(obj)
        if type(obj) is AdoptedModule:
            obj._state.flush()
            users = types.ModuleType(obj.__name__)  # the user's own may no longer be among `sys.modules`
            users.__dict__.update(obj._state.original)
        elif not isinstance(obj, type) and original_of_view(obj) is not MISSING:
            flush_view(obj)
        return self.adopted(inspect.getattr_static(users, attr, *default, **named))

    def _function(self, function: types.FunctionType) -> Any:
        if function in self._sources:
            return self._sources[function]
        if is_single_dispatch(function):
            return adopted_dispatch(function, self.adopted)
        if is_adopted(function):
            return function
        reference = self._functions.get(function)
        made = None if reference is None else reference()
        names = function.__globals__
        if made is not None and made.__code__ is function.__code__:
            self._synchronize_cells(made)
            module = made.__globals__.get(ADOPTED)
            if type(module) is AdoptedModule:
                self._touch(module._state)
            return made
        is_own = self._is_own(names) or function.__code__.co_filename.startswith(DOCTEST)
        if not is_own and (not function.__closure__ or place_of(names).startswith(VIEWGRAD)):
            return function
        module = self._globals(names, str(names.get("__name__"))) if is_own else None
        cells = function.__closure__ or ()
        own_cells = tuple(types.CellType() for _ in cells)
        if module is None:
            made = types.FunctionType(function.__code__, names, function.__name__, None, own_cells)
        else:
            made = module._state.function(function.__code__, function.__name__, own_cells)
        made.__qualname__, made.__doc__, made.__module__ = function.__qualname__, function.__doc__, function.__module__
        copy_annotations(function, made)
        made.__dict__ = function.__dict__  # the same dict, so that attributes are shared
        self._functions[function] = weakref.ref(made)
        _ORIGINALS[made] = weakref.ref(function)
        changed = self._fill_cells(made, cells, own_cells)
        if module is None and not changed:
            del self._functions[function], _ORIGINALS[made]
            return function
        self._set_defaults(function, made)
        self._elsewhere[function] = parts_of(function)
        self._snapshot = None
        if module is not None:
            self._waiting.append((module._state, function))
            self._include_waiting()
        return made

    def _include_waiting(self) -> None:
        """Bind the names used by new functions, except in long chains of functions: there an outer call does."""
        if self._including == DEEPEST:
            return
        self._including += 1
        try:
            while self._waiting:
                state, function = self._waiting.pop()
                try:
                    state.include(function.__code__)
                except BaseException:
                    self._functions.pop(function, None)  # so that the next call adopts it again
                    raise
        finally:
            self._including -= 1

    # Cells store the variables of enclosing functions. An adopted function has cells of its own with adopted values;
    # assignments on either side are copied when a call from outside begins or ends.

    def _fill_cells(self, made: Any, cells: Any, own_cells: Any) -> bool:
        entries: list[list[Any]] = []  # the user's cell, its content, and that of the adopted cell
        changed = False
        for cell, own in zip(cells, own_cells, strict=True):
            value = _contents(cell)
            new = MISSING if value is MISSING else self.adopted(value)
            _set_contents(own, new)
            changed |= new is not value
            entries.append([cell, _held(value), _held(new)])
        if entries:
            self._cells[made] = entries
        return changed

    def _synchronize_all_cells(self) -> None:
        for made in _alive(self._live_cells):
            self._synchronize_cells(made)

    def _synchronize_cells(self, made: Any) -> None:
        entries = self._cells.get(made)
        if entries is None or id(made) in self._under_way:
            return
        try:
            self._under_way.add(id(made))
            for own, entry in zip(made.__closure__, entries, strict=True):
                self._synchronize_cell(own, entry)
        finally:
            self._under_way.discard(id(made))

    def _synchronize_cell(self, own: Any, entry: list[Any]) -> None:
        cell, value, new = entry
        mine, users = _contents(own), _contents(cell)
        if mine is not new():
            entry[1:] = _held(self._unadopted(mine)), _held(mine)
            _set_contents(cell, entry[1]())
        elif users is not value():
            changed = MISSING if users is MISSING else self.adopted(users)
            entry[1:] = _held(users), _held(changed)
            _set_contents(own, changed)
        elif self._collecting and users is not MISSING:
            self.adopted(users)  # for the globals that it uses

    def _class(self, cls: type) -> Any:
        made = self._classes.get(id(cls))
        if made is not None and vars(made)[ORIGINAL] is cls:
            for state in vars(made)[STATES]:
                self._touch(state)
            return made
        if not can_be_adopted(cls) or not self._is_users(cls):
            return cls
        bases = tuple(map(self._base, cls.__bases__))
        if id(cls) in self._classes:  # a method of a base mentions the class
            return self._class(cls)
        try:
            made = adopted_class(cls, bases, self.adopted, self._unadopted)
        except TypeError:  # its layout, or `__set_name__` of an attribute, does not allow subclasses
            return cls
        if not issubclass(cls, tuple):
            views = view_class(made, self._fetched)
            if not can_be_made(views):
                return cls
            type.__setattr__(made, VIEWS, views)
        self._classes[id(cls)] = made
        with self.links() as found:
            refresh_class(made)
        vars(made)[STATES].update(found)
        return made

    def _base(self, cls: type) -> Any:
        """Return the adopted class, or the counterpart of a class such as `threading.Thread` that derives from it."""
        made = self._class(cls)
        if made is cls:
            found = counterpart(cls)
            if isinstance(found, type) and replaced_class(found) is cls:
                return found
        return made

    def _is_users(self, cls: type) -> bool:
        """Return whether a class belongs to an adopted module and was not created by adopted code."""
        module = sys.modules.get(cls.__module__)
        if module is not None and not self._is_own(vars(module)):
            return False
        if any(ORIGINAL in vars(base) for base in cls.__mro__):
            return False
        return not any(is_adopted(value) for value in vars(cls).values() if isinstance(value, FUNCTIONS))

    def _view(self, value: Any, made: Any) -> Any:
        found = self._views.get(id(value))
        if found is not None and original_of_view(found) is value:
            return found
        if original_of_view(value) is not MISSING:
            return value
        views = vars(made)[VIEWS]
        if kind_of_contents(views) is not None:
            found = self._views[id(value)] = container_view_of(value, views)
            fetch_contents(found)
            return found
        found = fetched_view_of(value, views) if self._fetching < DEEPEST else None
        if found is None:
            found = self._views[id(value)] = view_of(value, views)
            return found
        self._views[id(value)] = found
        self._fetching += 1
        try:
            fetch_at_once(found)
        finally:
            self._fetching -= 1
        return found

    def _named_tuple(self, value: Any) -> Any:
        """Convert a user's named tuple to the adopted class."""
        made = tuple.__new__(self._class(type(value)), map(self.adopted, value))
        attributes = instance_dict(value)
        if attributes is not None:
            set_instance_dict(made, self._attributes_of_tuple(value, attributes))
        return made

    def _attributes_of_tuple(self, value: Any, attributes: dict[str, Any]) -> AdoptedTupleAttributes:
        found = self._tuples.get(id(attributes))
        if found is None or found.original is not attributes:
            found = AdoptedTupleAttributes(value, attributes, self.adopted, self._unadopted)
            self._containers[id(attributes)] = self._tuples[id(attributes)] = found
        return found

    def _fetched(self, view: Any, value: Any) -> Any:
        """Return the adopted version of an attribute that a view has fetched."""
        with self.links() as found:
            new = self.adopted(value)
        states = type(view).__dict__[CLASS_OF_VIEW].__dict__[STATES]
        if not found <= states:
            states.update(found)
            for state in list(states):
                state.links.update(found)
            self.version += 1
        return new

    def _method(self, method: types.MethodType) -> Any:
        instance = self.adopted(method.__self__)
        if not issubclass(type(instance), type(method.__self__)):  # a counterpart, as for scipy.stats.norm
            return getattr(instance, method.__name__)
        function = self.adopted(method.__func__)
        if function is method.__func__ and instance is method.__self__:
            return method
        return types.MethodType(function, instance)

    def _builtin_method(self, method: Any) -> Any:
        if method in self._sources:
            return self._sources[method]
        if is_compiled(method):
            return of_compiled(method)
        owner = method.__self__
        if owner is None or isinstance(owner, (types.ModuleType, type)):  # a function
            return method
        instance = self.adopted(owner)
        return method if instance is owner else getattr(instance, method.__name__, method)

    def _partial(self, partial: functools.partial[Any]) -> Any:
        parts = (partial.func, *partial.args, *partial.keywords.values())
        if all(self.adopted(part) is part for part in parts):
            return partial
        keywords = {key: self.adopted(value) for key, value in partial.keywords.items()}
        made = functools.partial(self.adopted(partial.func), *map(self.adopted, partial.args), **keywords)
        _ORIGINALS[made] = weakref.ref(partial)
        self._partials[made] = weakref.ref(partial), _state_of(partial)
        return made

    def _cached(self, cached: Any) -> Any:
        reference = self._functions.get(cached)
        found = None if reference is None else reference()
        inner = self.adopted(cached.__wrapped__)
        if found is None or found.__wrapped__ is not inner:
            if inner is cached.__wrapped__:
                return cached
            found = adopted_cache(cached, inner, Exchange(self.adopted, original_of, self.users_code))
            self._remembering.add(found)
            self._functions[cached] = weakref.ref(found)
            _ORIGINALS[found] = weakref.ref(cached)
        return found

    def _wrapper(self, descriptor: Any) -> Any:
        """Return a classmethod or staticmethod."""
        function = self.adopted(descriptor.__func__)
        return descriptor if function is descriptor.__func__ else type(descriptor)(function)

    def _property(self, value: property) -> Any:
        parts = [self.adopted(part) for part in (value.fget, value.fset, value.fdel)]
        same = parts == [value.fget, value.fset, value.fdel]
        return value if same else type(value)(parts[0], parts[1], parts[2], value.__doc__)

    def _cached_property(self, value: Any) -> Any:
        function = self.adopted(value.func)
        if function is value.func:
            return value
        made: Any = functools.cached_property(function)
        made.attrname = value.attrname
        return made

    def _partialmethod(self, value: Any) -> Any:
        function = self.adopted(value.func)
        if function is value.func:
            return value
        made = functools.partialmethod(function, *value.args)
        made.keywords = value.keywords  # it may be changed
        return made

    def _dispatch_method(self, value: Any) -> Any:
        return adopted_dispatch_method(value, self.adopted)

    def _tuple(self, value: tuple[Any, ...]) -> Any:
        items = tuple(map(self.adopted, value))
        return value if all(map(operator.is_, items, value)) else items

    def _frozen_set(self, value: frozenset[Any]) -> Any:
        items = list(map(self.adopted, value))
        return value if all(map(operator.is_, items, value)) else frozenset(items)

    def _read_only(self, value: types.MappingProxyType[Any, Any]) -> Any:
        (inner,) = gc.get_referents(value)
        new = self.adopted(inner)
        return value if new is inner else types.MappingProxyType(new)

    def _container(self, value: Any) -> Any:
        found = self._containers.get(id(value))
        if found is not None and found.original is value:
            for item in contents_of(found):
                self.adopted(original_of(item))
            return found
        items = contents_of(value)
        if id(value) in self._under_way or PLAIN.issuperset(map(type, items)):
            return value
        try:
            self._under_way.add(id(value))
            if all(self.adopted(item) is item for item in items):
                return value
            made = self._containers[id(value)] = CONTAINERS[type(value)](value, self.adopted, self._unadopted)
        finally:
            self._under_way.discard(id(value))
        return made


ADOPTED_CONTAINERS: Final = frozenset(REPORTED)
HANDLERS: Final[dict[Any, Callable[[AdoptionRegistry, Any], Any]]] = {
    types.FunctionType: AdoptionRegistry._function,
    types.ModuleType: AdoptionRegistry._module,
    AdoptedModule: AdoptionRegistry._module,
    types.MethodType: AdoptionRegistry._method,
    types.BuiltinMethodType: AdoptionRegistry._builtin_method,
    functools.partial: AdoptionRegistry._partial,
    functools._lru_cache_wrapper: AdoptionRegistry._cached,
    classmethod: AdoptionRegistry._wrapper,
    staticmethod: AdoptionRegistry._wrapper,
    property: AdoptionRegistry._property,
    functools.cached_property: AdoptionRegistry._cached_property,
    functools.partialmethod: AdoptionRegistry._partialmethod,
    functools.singledispatchmethod: AdoptionRegistry._dispatch_method,
    tuple: AdoptionRegistry._tuple,
    types.MappingProxyType: AdoptionRegistry._read_only,
    frozenset: AdoptionRegistry._frozen_set,
    **dict.fromkeys(CONTAINERS, AdoptionRegistry._container),
}


_CONTAINERS: Final = operator.attrgetter("containers")


def _other_contents(containers: Iterable[Any], kinds: frozenset[type]) -> Iterator[tuple[Any, set[type]]]:
    """Iterate over the lists and dicts with contents of other types than the given ones, and all types of the contents.

    Long ones are omitted, since their contents most likely come from other code.
    """
    for value in containers:
        if len(value) <= MOST_ITEMS and not kinds.issuperset(map(type, contents_of(value))):
            yield value, set(map(type, contents_of(value)))


def _state_of(partial: functools.partial[Any]) -> list[Any]:
    """Return the function and the arguments of a partial function."""
    return [partial.func, partial.args, *partial.keywords, *partial.keywords.values()]


def _held(value: Any) -> Callable[[], Any]:
    """Return a reference for comparing the value of a cell; weak, since functions refer to themselves in cells."""
    if issubclass(type(value), (types.FunctionType, type)):
        return weakref.ref(value)
    return lambda: value


def _contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING


def _set_contents(cell: Any, value: Any) -> None:
    if value is MISSING:
        with contextlib.suppress(ValueError):
            del cell.cell_contents
    else:
        cell.cell_contents = value


def _references(weak: Any) -> Any:
    """Return the dict or set of references inside a weak container."""
    return weak.data


def _alive(references: Collection[weakref.ref[Any]]) -> list[Any]:
    """Return the objects that still exist; five times faster than to iterate over a weak dictionary itself."""
    return [value for reference in list(references) if (value := reference()) is not None] if references else []


def is_adopted(value: Any) -> bool:
    """Return whether a function is an adopted version, or is defined in one."""
    return type(value) is types.FunctionType and (value in _ORIGINALS or ADOPTED in value.__globals__)


def original_of(value: Any) -> Any:
    """Return the user's own object for an adopted version; return other objects unchanged."""
    kind = type(value)
    if kind is Tensor:
        array = captured_array(value)
        return value if array is None else array
    if kind in PLAIN:
        return value
    if kind is types.FunctionType or kind is functools.partial:
        found = _ORIGINALS.get(value)
        found = None if found is None else found()
        if found is not None:
            return found
    elif kind is AdoptedModule:
        name = value._state.original.get("__name__")
        module = sys.modules.get(name)
        return module if module is not None and vars(module) is value._state.original else value
    elif kind in ADOPTED_CONTAINERS:
        return value.original
    elif kind is types.MethodType and original_of_counterpart(value) is MISSING:
        function, instance = original_of(value.__func__), original_of(value.__self__)
        same = function is value.__func__ and instance is value.__self__
        return value if same else types.MethodType(function, instance)
    elif issubclass(kind, type):
        made = vars(value).get(CLASS_OF_VIEW, value)
        if ORIGINAL in vars(made):
            return vars(made)[ORIGINAL]
    elif issubclass(kind, tuple) and ORIGINAL in vars(kind):
        attributes = instance_dict(value)
        return attributes.owner if type(attributes) is AdoptedTupleAttributes else value
    found = original_of_view(value) if not issubclass(kind, type) else MISSING
    if found is MISSING:
        found = original_of_counterpart(value)
    if found is MISSING:
        found = original_builtin(value)
    return value if found is MISSING or found is None else found


_REGISTRIES: Final[dict[str, AdoptionRegistry]] = {}
_LOCK: Final = threading.Lock()


def registry_of(names: dict[str, Any]) -> AdoptionRegistry:
    """Return the registry in which functions of a module are adopted.

    Arguments:
        names: the globals of the module.
    """
    root = root_of(names)
    with _LOCK:
        return _REGISTRIES.setdefault(root, AdoptionRegistry(root))
