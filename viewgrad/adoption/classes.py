"""Classes whose methods are adopted, and objects as adopted code sees them.

For a class `Model` there is a subclass with the same name. Its methods are those of `Model` with adopted globals;
everything else is inherited, so that class attributes are shared. If `Model` calls `super()`, an adopted base follows
in the method resolution order:

    adopted Model -> Model -> adopted Base -> Base -> object

Objects that adopted code makes are of the adopted class. An object that was made outside is seen through a *view*: an
object of a subclass of the adopted class that fetches attributes from the original when they are first read. What
adopted code assigns to attributes is passed to the original when the call ends.
"""

from __future__ import annotations

import abc
import copy
import functools
import sys
import threading
import types
import typing
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Final

from .builtin_names import CLASS_OF_VIEW
from .counterparts import MISSING
from .locations import VIEWGRAD, place_of

ORIGINAL: Final = "__viewgrad_original__"  # the attribute of an adopted class that refers to the user's class
VIEWS: Final = "__viewgrad_views__"  # the attribute of an adopted class that is the class of the views of its objects
STATES: Final = "__viewgrad_states__"  # the attribute of an adopted class with the globals that its methods use
STATE: Final = "__viewgrad_state__"  # the slot of a view
FETCHED: Final = "__viewgrad_fetched__"  # the attribute of a class of views that is their class without `__getattr__`
FETCHING: Final = "__viewgrad_fetching__"  # the attribute of such a class that is the class with `__getattr__`
_CLASS: Final[Any] = vars(object)["__class__"]
HEAP_TYPE: Final = 1 << 9  # Py_TPFLAGS_HEAPTYPE: a class written in Python
ABSTRACT: Final = 1 << 20  # Py_TPFLAGS_IS_ABSTRACT
METACLASSES: Final = (type, abc.ABCMeta, type(typing.Protocol))
CONTAINERS: Final = (tuple, list, dict)
MOST_ITEMS: Final = 100  # of lists and dicts that are fetched although they are not read
FUNCTIONS: Final = (types.FunctionType, classmethod, staticmethod, property)


def can_be_adopted(cls: type) -> bool:
    """Return whether a class can have adopted methods: it is written in Python, on `object` or a built-in container."""
    if type(cls) not in METACLASSES or not cls.__flags__ & HEAP_TYPE:
        return False
    return all(
        base is object or base in CONTAINERS or (base.__flags__ & HEAP_TYPE and not _is_viewgrads(base))
        for base in cls.__mro__
    )


def holds_contents(cls: type) -> bool:
    """Return whether objects of a class have contents besides their attributes, which a view cannot expose."""
    return issubclass(cls, CONTAINERS)


def can_be_made(cls: type) -> bool:
    """Return whether objects of a class can be created without calling its own `__new__`, as views are.

    They cannot if a base is implemented in C, like that of `random.Random`, or if the class is abstract.
    """
    if cls.__flags__ & ABSTRACT:
        return True
    try:
        object.__new__(cls)
    except TypeError:
        return False
    return True


def _is_viewgrads(cls: type) -> bool:
    module = sys.modules.get(cls.__module__)
    return module is not None and place_of(vars(module)).startswith(VIEWGRAD)


# -- classes -----------------------------------------------------------------------------------------------------------


class _SubclassChecks(threading.local):
    """The pairs of an adopted class and a possible subclass that are being compared, per thread."""

    def __init__(self) -> None:
        self.questions: set[tuple[type, type]] = set()


_ASKED: Final = _SubclassChecks()


class AdoptedType(type):
    """The metaclass of adopted classes, which share instances and class attributes with the originals."""

    def mro(cls) -> list[type]:
        """Return the method resolution order: that of the original classes, each replaced by the adopted one.

            the user's         class C(Mixin, B)   C, Mixin, B, object
            the adopted one    of C                adopted C, Mixin, adopted B, object, C, B

        So `super()` in a method of the adopted C finds Mixin, and not C. The originals come last, for what only they
        have, such as slots. `InitSubclassGuard` follows the class itself.
        """
        original = vars(cls).get(ORIGINAL)
        if original is None:  # a view, or a class that adopted code defines
            return super().mro()
        adopted = {vars(base)[ORIGINAL]: base for base in cls.__bases__ if ORIGINAL in vars(base)}
        order = [adopted.get(each, each) for each in original.__mro__[1:]]
        originals = [each for each in original.__mro__ if each is original or each in adopted]
        return [cls, InitSubclassGuard, *order, *originals]

    def __instancecheck__(cls, value: Any) -> bool:
        original = vars(cls).get(ORIGINAL)
        return super().__instancecheck__(value) if original is None else isinstance(value, original)

    def __subclasscheck__(cls, other: type) -> bool:
        original = vars(cls).get(ORIGINAL)
        if original is None:
            return super().__subclasscheck__(other)
        question = cls, other
        if question in _ASKED.questions:  # an abstract class consults its subclasses, and this is one
            return False
        _ASKED.questions.add(question)
        try:
            return issubclass(other, original)
        finally:
            _ASKED.questions.discard(question)

    def __setattr__(cls, name: str, value: Any) -> None:
        original = vars(cls).get(ORIGINAL)
        if original is not None:
            setattr(original, name, vars(cls)["__viewgrad_unadopted__"](value))
            vars(cls)["__viewgrad_seen__"][name] = vars(original).get(name)
        super().__setattr__(name, value)

    def __delattr__(cls, name: str) -> None:
        original = vars(cls).get(ORIGINAL)
        if original is not None:
            delattr(original, name)
        if original is None or name in vars(cls):
            super().__delattr__(name)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        made = getattr(cls, CLASS_OF_VIEW, cls)  # `type(self)(...)` of a view makes an object of its own
        return super().__call__(*args, **kwargs) if made is cls else made(*args, **kwargs)


class InitSubclassGuard:
    """The class behind each adopted class, which keeps `__init_subclass__` of the user's classes from running."""

    __slots__ = ()

    def __init_subclass__(cls, **options: Any) -> None:
        if ORIGINAL not in vars(cls) and CLASS_OF_VIEW not in vars(cls):  # a class that adopted code defines
            super().__init_subclass__(**options)


@functools.cache
def _metaclass(kind: type) -> Any:
    return AdoptedType if kind is type else type(kind.__name__, (AdoptedType, kind), {})


def adopted_class(
    cls: type, bases: tuple[type, ...], adopted: Callable[[Any], Any], unadopted: Callable[[Any], Any]
) -> type:
    """Return the subclass of a class that has adopted methods; they are filled in by `refresh_class`.

    Arguments:
        cls: the user's class.
        bases: the adopted classes of those that it is derived from, in their order.
        adopted: returns the adopted version of a value.
        unadopted: returns the user's own object for an adopted version.
    """
    body: dict[str, Any] = {
        ORIGINAL: cls,
        "__slots__": (),
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "__doc__": cls.__doc__,
        "__hash__": cls.__hash__,
        "__viewgrad_adopted__": staticmethod(adopted),
        "__viewgrad_unadopted__": staticmethod(unadopted),
        "__viewgrad_seen__": {},
        STATES: set(),
    }
    made: type = type.__new__(_metaclass(type(cls)), cls.__name__, (cls, *bases), body)
    return made


def refresh_class(made: type) -> None:
    """Update the methods of an adopted class from the user's class."""
    cls, seen = vars(made)[ORIGINAL], vars(made)["__viewgrad_seen__"]
    adopted = vars(made)["__viewgrad_adopted__"].__func__
    for name, value in list(vars(cls).items()):
        if seen.get(name, MISSING) is value or isinstance(value, types.MemberDescriptorType):
            continue
        if name == "__dict__":
            continue  # a property of that name cannot be set, and is inherited
        is_special = name.startswith("__") and not isinstance(value, FUNCTIONS)
        if is_special and not isinstance(value, types.ModuleType) and not callable(value):
            continue  # names such as annotations are inherited
        new = adopted(value)
        if is_special and new is value:
            continue
        seen[name] = value
        if new is not value or name != "__hash__":
            type.__setattr__(made, name, new)
    for name in [name for name in seen if name not in vars(cls)]:
        del seen[name]
        if name in vars(made):
            type.__delattr__(made, name)


# The way in which objects of a class store their attributes; see `_layout`.
_LAYOUTS: Final[weakref.WeakKeyDictionary[type, tuple[Any, Any, dict[str, Any]]]] = weakref.WeakKeyDictionary()

# -- views -------------------------------------------------------------------------------------------------------------


class ViewState:
    """The source of a view, and the attributes that it has fetched.

    If an attribute is in `seen` but not in `bound`, an interruption occurred while it was fetched or discarded, and the
    view's value of it is invalid.

    Arguments:
        original: the user's object.
    """

    __slots__ = ("bound", "kind", "original", "seen")

    def __init__(self, original: Any) -> None:
        self.original = original
        self.kind = type(original)
        self.seen: dict[str, Any] = {}  # attributes of the original
        self.bound: dict[str, Any] = {}  # their adopted versions in the view


def view_of(original: Any, view_class: type) -> Any:
    """Return a view of an object.

    Arguments:
        original: the user's object.
        view_class: the result of `view_class`.
    """
    view: Any = object.__new__(view_class)
    _set_state(view, ViewState(original))
    _fetch_hidden(view)
    return view


def _fetch(view: Any, name: str) -> bool:
    """Take over an attribute of the original; return whether there was one to take over."""
    state = _state(view)
    value = _own_attribute(state.original, name) if name not in state.bound else MISSING
    if value is MISSING:
        return False
    state.seen[name] = value
    new = type(view).__viewgrad_lookup__(view, value)
    _store(view, name, new)
    state.bound[name] = new
    return True


def _fetch_hidden(view: Any) -> None:
    """Fetch the attributes that hide one of the class, which would otherwise be found instead."""
    kind, bound = type(view), _state(view).bound
    for name in _real_dict(_state(view).original):
        if name not in bound and hasattr(kind, name):
            _fetch(view, name)


def original_of_view(view: Any) -> Any:
    """Return the original object of a view; MISSING for anything else."""
    if CLASS_OF_VIEW not in vars(type(view)):
        return MISSING
    return _state(view).original


class FetchedView:
    """The methods of views that have fetched all attributes, in place of the adopted class's.

    There is no `__getattr__` among them, since Python reads attributes of classes that have one several times slower.
    """

    __slots__ = ()

    def __reduce_ex__(self, protocol: Any) -> Any:
        flush_view(self)
        return _state(self).original.__reduce_ex__(protocol)


class View(FetchedView):
    """The methods of views that have attributes to fetch."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the original on first access, or the result of the user's `__getattr__`."""
        if _fetch(self, name):
            _fetch_all(self)
            return object.__getattribute__(self, name)
        users = getattr(super(), "__getattr__", None)
        return object.__getattribute__(self, name) if users is None else users(name)

    def __delattr__(self, name: str) -> None:
        _fetch(self, name)
        super().__delattr__(name)


def _all_attributes(view: Any) -> dict[str, Any]:
    """Return the `__dict__` of a view."""
    for name in list(_real_dict(_state(view).original)):
        _fetch(view, name)
    return _real_dict(view)


def _fetch_all(view: Any) -> None:
    """Fetch all attributes, after which the view needs no `__getattr__`, unless the user's class has one.

    Long lists and dicts are fetched only if they are read, since all of their items are adopted with them.
    """
    fetched, state = vars(type(view)).get(FETCHED), _state(view)
    if fetched is None:
        return
    others = [(name, value) for name, value in _attributes(state.original) if name not in state.bound]
    if any(isinstance(value, CONTAINERS) and len(value) > MOST_ITEMS for _, value in others):
        return
    for name, _ in others:
        _fetch(view, name)
    _set_class(view, fetched)


def _set_class(view: Any, kind: type) -> None:
    _CLASS.__set__(view, kind)  # past the `__class__` that views report


def _copied(view: Any) -> Any:
    flush_view(view)
    return type(view).__viewgrad_lookup__(view, copy.copy(_state(view).original))


def _deeply_copied(view: Any, memo: Any) -> Any:
    flush_view(view)
    return type(view).__viewgrad_lookup__(view, copy.deepcopy(_state(view).original, memo))


def _is_same(view: Any, other: Any) -> bool:
    mine, others = _state(view).original, original_of_view(other)
    return mine is (other if others is MISSING else others)


def view_class(made: type, lookup: Callable[[Any, Any], Any]) -> type:
    """Return the class of the views of objects of a class.

    Arguments:
        made: the adopted class.
        lookup: returns the adopted version of an attribute, for a view and the value.
    """
    cls = vars(made)[ORIGINAL]
    body: dict[str, Any] = {
        "__slots__": (STATE,) if cls.__weakrefoffset__ else (STATE, "__weakref__"),
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "__doc__": cls.__doc__,
        CLASS_OF_VIEW: made,
        "__viewgrad_lookup__": staticmethod(lookup),
        "__class__": property(lambda self: made),
        "__hash__": cls.__hash__,
    }
    if cls.__dictoffset__:
        body["__dict__"] = property(_all_attributes)
    for name, method in (("__copy__", _copied), ("__deepcopy__", _deeply_copied)):
        if not hasattr(cls, name):
            body[name] = method
    if cls.__eq__ is object.__eq__:
        body["__eq__"] = _is_same
        if cls.__hash__ is object.__hash__:
            body["__hash__"] = lambda self: hash(_state(self).original)
    if hasattr(cls, "__del__"):
        body["__del__"] = lambda self: None
    fetched = type.__new__(type(made), cls.__name__, (FetchedView, made), dict(body))
    kind: type = type.__new__(type(made), cls.__name__, (View, fetched), {**body, "__slots__": ()})
    if not hasattr(cls, "__getattr__") and cls.__getattribute__ is object.__getattribute__:
        type.__setattr__(kind, FETCHED, fetched)
        type.__setattr__(fetched, FETCHING, kind)
    return kind


def refresh_view(view: Any) -> bool:
    """Discard fetched attributes that the original has changed.

    Returns:
        Whether the original is still of the class that the view was made for.
    """
    state = _state(view)
    if type(state.original) is not state.kind:
        return False
    for name, value in list(state.seen.items()):
        if _own_attribute(state.original, name) is not value or name not in state.bound:
            state.bound.pop(name, None)
            _discard(view, name)
            del state.seen[name]
    fetching = vars(type(view)).get(FETCHING)
    if fetching is not None and not all(name in state.bound for name, _ in _attributes(state.original)):
        _set_class(view, fetching)
    _fetch_hidden(view)
    return True


def flush_view(view: Any) -> None:
    """Assign the attributes that adopted code has assigned to the original."""
    state = _state(view)
    unadopted = type(view).__viewgrad_unadopted__
    now = dict(_attributes(view))
    for name, value in now.items():
        known = state.bound.get(name, MISSING)
        if known is not value and (known is not MISSING or name not in state.seen):
            new = unadopted(value)
            _store(state.original, name, new)
            state.seen[name] = new
            state.bound[name] = value
    for name in [name for name in state.bound if name not in now]:
        _discard(state.original, name)
        del state.bound[name]
        del state.seen[name]


def change_attributes(value: Any, changed: Callable[[Any], Any]) -> None:
    """Replace the values of attributes of an object."""
    for name, old in list(_attributes(value)):
        new = changed(old)
        if new is not old:
            _store(value, name, new)


def _state(view: Any) -> ViewState:
    return object.__getattribute__(view, STATE)  # type: ignore[no-any-return]


def _set_state(view: Any, state: ViewState) -> None:
    object.__setattr__(view, STATE, state)


def _real_dict(value: Any) -> dict[str, Any]:
    """Return the dict of an object itself; the `__dict__` of a view has the attributes of the original."""
    descriptor = _layout(type(value))[0]
    return {} if descriptor is None else descriptor.__get__(value)


def _slots(value: Any) -> dict[str, Any]:
    return _layout(type(value))[1]


def _layout(kind: type) -> tuple[Any, dict[str, Any]]:
    """Return the descriptor of the dict of objects of a class, None if they have none, and those of their slots."""
    found = _LAYOUTS.get(kind)
    if found is None or found[0] is not kind.__mro__:  # a class may be given other bases
        content = [item for base in kind.__mro__ for item in vars(base).items()]
        dicts = [each for name, each in content if name == "__dict__" and isinstance(each, types.GetSetDescriptorType)]
        slots = {name: each for name, each in content if isinstance(each, types.MemberDescriptorType) and name != STATE}
        found = _LAYOUTS[kind] = (kind.__mro__, dicts[0] if dicts else None, slots)
    return found[1], found[2]


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    yield from _real_dict(value).items()
    for name, descriptor in _slots(value).items():
        try:
            yield name, descriptor.__get__(value)
        except AttributeError:
            continue


def _own_attribute(value: Any, name: str) -> Any:
    """Return an attribute of an object itself, not of its class; MISSING if there is none."""
    found = _real_dict(value).get(name, MISSING)
    if found is MISSING and name in _slots(value):
        try:
            return _slots(value)[name].__get__(value)
        except AttributeError:
            return MISSING
    return found


def _store(value: Any, name: str, new: Any) -> None:
    slot = _slots(value).get(name)
    if slot is None:
        _real_dict(value)[name] = new
    else:
        slot.__set__(value, new)


def _discard(value: Any, name: str) -> None:
    slot = _slots(value).get(name)
    if slot is None:
        _real_dict(value).pop(name, None)
    elif _own_attribute(value, name) is not MISSING:
        slot.__delete__(value)
