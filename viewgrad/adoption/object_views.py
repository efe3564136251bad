"""Views with adopted methods, through which adopted code accesses objects created outside.

A view fetches attributes from the user's object, and values that adopted code assigns to them are copied to the object
when the call ends. The items of a subclass of `dict`, `list` or another container are fetched when the view is created,
and written to the object in the same way.

Attributes without a dict: up to version 3.12, CPython stores the attributes of an object in the object itself until its
`__dict__` is accessed or its class changes. From then on, attribute access takes twice as long. A view of an object
with few attributes therefore fetches all of them by `object.__setattr__` when it is created. `gc.get_referents` lists
the values of such a view, or its dict once it has one. If it lists as many values as there were attributes, and each
attribute can be read and is among them, then there are no others. Otherwise the dict is used from then on.
"""

from __future__ import annotations

import collections
import copy
import gc
import itertools
import operator
from collections.abc import Callable
from typing import Any, Final

from .attributes import (
    STATE,
    attributes_of,
    discard,
    has_slots,
    instance_dict,
    own_attribute,
    real_dict,
    resolution_order,
    set_instance_dict,
    store,
    unshare_instance_dict,
)
from .builtin_names import CLASS_OF_VIEW
from .classes import ORIGINAL
from .containers import HOLDING, are_same_objects, contents_of, kind_of_contents, write_contents
from .counterparts import MISSING

# the attribute of a class of views that refers to its variant without `__getattr__`
FETCHED: Final = "__viewgrad_fetched__"
FETCHING: Final = "__viewgrad_fetching__"  # the attribute of such a variant that refers to the class with `__getattr__`
_CLASS: Final[Any] = vars(object)["__class__"]
CONTAINERS: Final = (tuple, list, dict)
MOST_ATTRIBUTES: Final = 30  # the maximum number that CPython stores without a dict
MOST_ITEMS: Final = 100  # the maximum length of lists and dicts that are fetched although they are not read


class ViewState:
    """The source of a view, and the attributes that have been fetched.

    If an attribute is in `seen` but not in `bound`, an interruption occurred while it was fetched or discarded, and the
    view's value of it is invalid.

    Arguments:
        original: the user's object.
    """

    __slots__ = ("besides", "bound", "contents", "kind", "original", "referents", "seen", "users_contents")

    def __init__(self, original: Any) -> None:
        self.original = original
        self.kind = type(original)
        self.seen: dict[str, Any] = {}  # attributes of the original
        self.bound: dict[str, Any] = {}  # their adopted versions in the view
        self.besides = 0  # the number of referents of the view that are not attributes
        # The addresses of the referents if the view has no dict; see the module docstring.
        self.referents: tuple[int, ...] | None = None
        self.users_contents: list[Any] | None = None  # the items of a container; None if they are outdated
        self.contents: list[Any] | None = None  # their adopted versions in the view; None for other objects


def view_of(original: Any, view_class: type) -> Any:
    """Return a view of an object.

    Arguments:
        original: the user's object.
        view_class: the result of `view_class`.
    """
    view: Any = object.__new__(view_class)
    _set_state(view, ViewState(original))
    _use_dict(view)
    _fetch_hidden(view)
    return view


def container_view_of(original: Any, view_class: type) -> Any:
    """Return a view of an object of a subclass of a container, whose items are set later by `fetch_contents`.

    Arguments:
        original: the user's object.
        view_class: the result of `view_class`.
    """
    kind = kind_of_contents(view_class)
    view: Any = kind.__new__(view_class)
    if kind is collections.deque:
        kind.__init__(view, (), original.maxlen)
    state = ViewState(original)
    state.contents = []
    _set_state(view, state)
    if instance_dict(original) is original:
        set_instance_dict(view, view)
    else:
        _use_dict(view)
    return view


def fetch_contents(view: Any) -> None:
    """Copy the items of the original to a view created by `container_view_of` if they have changed.

    An interruption leaves the items outdated.
    """
    state = _state(view)
    users = contents_of(state.original)
    if state.users_contents is None or not are_same_objects(users, state.users_contents):
        state.users_contents = None
        write_contents(view, [type(view).__viewgrad_lookup__(view, item) for item in users])
        state.contents = contents_of(view)
        state.users_contents = users
    _fetch_hidden(view)


def fetched_view_of(original: Any, view_class: type) -> Any:
    """Return a view of an object whose attributes are set later by `fetch_at_once`; None if they need a dict.

    Arguments:
        original: the user's object.
        view_class: the result of `view_class`.
    """
    fetched = vars(view_class).get(FETCHED)
    if fetched is None or not _can_be_fetched(original, fetched):
        return None
    view: Any = object.__new__(fetched)
    _set_state(view, ViewState(original))
    return view


def fetch_at_once(view: Any) -> None:
    """Fetch all attributes of the original into a view created by `fetched_view_of`."""
    state = _state(view)
    state.besides = len(gc.get_referents(view))
    try:
        for name, value in list(real_dict(state.original).items()):
            _fetch_in_place(view, name, value)
    except BaseException:
        _set_class(view, vars(type(view))[FETCHING])
        raise
    _note_referents(view, state)


def _can_be_fetched(original: Any, fetched: type) -> bool:
    """Return whether the attributes of an object can be stored without a dict and fetched before they are read."""
    own = real_dict(original)
    return (
        len(own) <= MOST_ATTRIBUTES
        and all(type(name) is str and name.isidentifier() for name in own)
        and not has_slots(original)
        and not any(type(value) in CONTAINERS and len(value) > MOST_ITEMS for value in own.values())
        and not any(hasattr(fetched, name) and _is_data_descriptor(fetched, name) for name in own)
    )


def _is_data_descriptor(kind: type, name: str) -> bool:
    found = next((vars(base)[name] for base in resolution_order(kind) if name in vars(base)), None)
    return hasattr(type(found), "__set__") or hasattr(type(found), "__delete__")


def _fetch_in_place(view: Any, name: str, value: Any) -> None:
    """Copy an attribute of the original to a view without a dict."""
    state = _state(view)
    state.bound.pop(name, None)
    state.seen[name] = value
    new = type(view).__viewgrad_lookup__(view, value)
    object.__setattr__(view, name, new)
    state.bound[name] = new


def _note_referents(view: Any, state: ViewState) -> None:
    state.referents = tuple(map(id, gc.get_referents(view)))
    if _values_in_place(view, state) is None:
        _use_dict(view)


def _use_dict(view: Any) -> None:
    """Store the attributes of a view in its dict from now on."""
    _state(view).referents = None
    unshare_instance_dict(view)


def _values_in_place(view: Any, state: ViewState) -> tuple[Any, ...] | None:
    """Return the values of the attributes that a view has fetched, or None if it has others, or a dict."""
    try:
        values = tuple(map(object.__getattribute__, itertools.repeat(view), state.bound))
    except AttributeError:
        return None
    referents = tuple(map(id, gc.get_referents(view)))
    is_complete = len(referents) == len(values) + state.besides and set(referents).issuperset(map(id, values))
    return values if is_complete else None


def _is_unchanged(view: Any, state: ViewState) -> bool:
    """Return whether nothing was assigned to the attributes of a view without a dict."""
    try:
        found = map(object.__getattribute__, itertools.repeat(view), state.bound)
        return (
            all(map(operator.is_, found, state.bound.values()))
            and tuple(map(id, gc.get_referents(view))) == state.referents
        )
    except AttributeError:
        return False


def _fetch(view: Any, name: str) -> bool:
    """Copy an attribute of the original; return whether there was one to copy."""
    state = _state(view)
    if name in state.bound or (name not in state.seen and own_attribute(view, name) is not MISSING):
        return False  # fetched, or assigned by adopted code before it was read
    value = own_attribute(state.original, name)
    if value is MISSING:
        return False
    state.seen[name] = value
    new = type(view).__viewgrad_lookup__(view, value)
    store(view, name, new)
    state.bound[name] = new
    return True


def _fetch_hidden(view: Any) -> None:
    """Fetch the attributes that shadow a class attribute, which would otherwise be found instead."""
    kind, bound = type(view), _state(view).bound
    for name in real_dict(_state(view).original):
        if name not in bound and hasattr(kind, name):
            _fetch(view, name)


def original_of_view(view: Any) -> Any:
    """Return the original object of a view, or MISSING for anything else."""
    if CLASS_OF_VIEW not in vars(type(view)):
        return MISSING
    return _state(view).original


class FetchedView:
    """The methods of views that have fetched all attributes, in place of those of the adopted class.

    These do not include `__getattr__`, since reading attributes is several times slower in classes that define it.
    """

    __slots__ = ()

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Reduce the original, with the class that the view reports, which pickle compares with it."""
        flush_view(self)
        state = _state(self)
        reduced = state.original.__reduce_ex__(protocol)
        if type(reduced) is not tuple:
            return reduced
        made, args = vars(type(self))[CLASS_OF_VIEW], reduced[1]
        return reduced[0], tuple(made if each is state.kind else each for each in args), *reduced[2:]


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
    if _state(view).referents is not None:
        _use_dict(view)
    for name in list(real_dict(_state(view).original)):
        _fetch(view, name)
    return instance_dict(view)  # type: ignore[no-any-return]


def _fetch_all(view: Any) -> None:
    """Fetch all attributes, after which the view needs no `__getattr__` unless the user's class defines it.

    Long lists and dicts are fetched only if they are read, since all of their items are adopted with them.
    """
    fetched, state = vars(type(view)).get(FETCHED), _state(view)
    if fetched is None:
        return
    others = [(name, value) for name, value in attributes_of(state.original) if name not in state.bound]
    if any(type(value) in CONTAINERS and len(value) > MOST_ITEMS for _, value in others):
        return
    for name, _ in others:
        _fetch(view, name)
    _set_class(view, fetched)


def _set_class(view: Any, kind: type) -> None:
    _CLASS.__set__(view, kind)  # bypasses the `__class__` that views report


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
        lookup: a function that returns the adopted version of an attribute, given a view and the value.
    """
    cls = vars(made)[ORIGINAL]
    is_plain = cls.__getattribute__ is object.__getattribute__
    body: dict[str, Any] = {
        "__slots__": (STATE,) if cls.__weakrefoffset__ else (STATE, "__weakref__"),
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "__doc__": cls.__doc__,
        CLASS_OF_VIEW: made,
        "__new__": lambda kind, *args, **kwargs: made(*args, **kwargs),  # `type(self)(...)` creates no view
        "__viewgrad_lookup__": staticmethod(lookup),
    }
    if not any("__class__" in vars(base) for base in cls.__mro__[:-1]):
        body["__class__"] = property(operator.attrgetter(CLASS_OF_VIEW) if is_plain else lambda self: made)
    if cls.__dictoffset__:
        body["__dict__"] = property(_all_attributes)
    for name, method in (("__copy__", _copied), ("__deepcopy__", _deeply_copied)):
        if not hasattr(cls, name):
            body[name] = method
    if cls.__eq__ is object.__eq__:
        body["__eq__"] = _is_same
        methods: Any = made
        if cls.__hash__ is None:
            body["__hash__"] = None
        elif cls.__hash__ is object.__hash__:
            body["__hash__"] = lambda self: hash(_state(self).original)
        else:
            body["__hash__"] = lambda self: methods.__hash__(self)
    if hasattr(cls, "__del__"):
        body["__del__"] = lambda self: None
    fetched = type.__new__(type(made), cls.__name__, (FetchedView, made), dict(body))
    kind: type = type.__new__(type(made), cls.__name__, (View, fetched), {**body, "__slots__": ()})
    if is_plain and not hasattr(cls, "__getattr__"):
        type.__setattr__(kind, FETCHED, fetched)
        type.__setattr__(fetched, FETCHING, kind)
    return kind


def refresh_view(view: Any) -> bool:
    """Discard fetched attributes that have changed in the original.

    Returns:
        Whether the original is still of the class that the view was created for.
    """
    state = _state(view)
    if type(state.original) is not state.kind:
        return False
    if state.contents is not None:
        fetch_contents(view)
    if state.referents is not None:
        if _refresh_in_place(view, state):
            return True
        _use_dict(view)
    for name, value in list(state.seen.items()):
        if own_attribute(state.original, name) is not value or name not in state.bound:
            state.bound.pop(name, None)
            discard(view, name)
            del state.seen[name]
    fetching = vars(type(view)).get(FETCHING)
    if fetching is not None and not all(name in state.bound for name, _ in attributes_of(state.original)):
        _set_class(view, fetching)
    _fetch_hidden(view)
    return True


def _refresh_in_place(view: Any, state: ViewState) -> bool:
    """Copy changed attributes of the original to a view without a dict; return whether it still needs none."""
    own, seen, bound = real_dict(state.original), state.seen, state.bound
    if len(own) == len(bound) and all(map(operator.is_, map(own.get, bound), map(seen.get, bound))):
        return True
    if own.keys() != seen.keys():
        return False
    for name, value in list(own.items()):
        if seen[name] is not value or name not in bound:
            _fetch_in_place(view, name, value)
    _note_referents(view, state)
    return True


def flush_view(view: Any) -> None:
    """Assign to the original the items and attributes that adopted code has assigned."""
    state = _state(view)
    if state.users_contents is not None:
        _flush_contents(view, state)
    values = None
    if state.referents is not None:
        if _is_unchanged(view, state):
            return
        values = _values_in_place(view, state)
        if values is None:
            _use_dict(view)
        state.referents = None
    unadopted = type(view).__viewgrad_unadopted__
    now = dict(attributes_of(view)) if values is None else dict(zip(state.bound, values, strict=True))
    for name, value in now.items():
        known = state.bound.get(name, MISSING)
        if known is not value and (known is not MISSING or name not in state.seen):
            new = unadopted(value)
            store(state.original, name, new)
            state.seen[name] = new
            state.bound[name] = value
    for name in [name for name in state.bound if name not in now]:
        discard(state.original, name)
        del state.bound[name]
        del state.seen[name]
    if values is not None:
        _note_referents(view, state)


def _flush_contents(view: Any, state: ViewState) -> None:
    now = contents_of(view)
    if not are_same_objects(now, state.contents or []):
        write_contents(state.original, list(map(type(view).__viewgrad_unadopted__, now)))
        state.users_contents, state.contents = contents_of(state.original), now


def containers_of(view: Any) -> list[Any]:
    """Return the lists, dicts and sets among the fetched attributes and items of a view, including those that contain
    nothing to adopt.
    """
    state = _state(view)
    return [value for value in (*state.bound.values(), *(state.contents or ())) if type(value) in HOLDING]


def forget_values(view: Any, handed: set[int]) -> None:
    """Mark attributes and items as outdated, so that `refresh_view` fetches them again.

    Arguments:
        view: the view.
        handed: the addresses of the values of these attributes, and of the items.
    """
    state = _state(view)
    if state.contents is not None and not handed.isdisjoint(map(id, state.contents)):
        state.users_contents = None
    for name, value in state.bound.items():
        if id(value) in handed:
            state.seen[name] = MISSING


def _state(view: Any) -> ViewState:
    return object.__getattribute__(view, STATE)  # type: ignore[no-any-return]


def _set_state(view: Any, state: ViewState) -> None:
    object.__setattr__(view, STATE, state)
