"""Adopted classes: subclasses of users' classes with adopted methods.

For a class `Model` there is a subclass with the same name. Its methods are those of `Model` with adopted globals;
everything else is inherited, so class attributes are shared. If `Model` calls `super()`, an adopted base follows in the
method resolution order:

    adopted Model -> Model -> adopted Base -> Base -> object

Objects created by adopted code are of the adopted class. An object created outside is accessed through a *view*, an
object of a subclass of the adopted class; see `object_views.py`.
"""

from __future__ import annotations

import abc
import copyreg
import functools
import operator
import pickle
import pkgutil
import threading
import types
import typing
from collections.abc import Callable, Collection
from typing import Any, Final

from .attributes import resolution_order
from .builtin_names import CLASS_OF_VIEW, PROTOCOLS
from .class_descriptors import override_descriptors
from .containers import HOLDING, kind_of_contents
from .counterparts import MISSING
from .locations import VIEWGRAD, file_of

ORIGINAL: Final = "__viewgrad_original__"  # the attribute of an adopted class that refers to the user's class
# the attribute of an adopted class that refers to the class of the views of its objects
VIEWS: Final = "__viewgrad_views__"
STATES: Final = "__viewgrad_states__"  # the attribute of an adopted class with the globals that its methods use
COMPARED: Final = "__viewgrad_compared__"  # the attribute with the content of the user's class; see `refresh_class`
TITLES: Final = "__name__", "__qualname__", "__module__", "__doc__"  # which classes do not inherit
SHOWN: Final = "__viewgrad_shown__"  # the attribute of an adopted class with its method resolution order, and `__mro__`
_SUBCLASSES: Final[Callable[[Any], list[type]]] = type.__subclasses__
_TITLES: Final = operator.attrgetter(*TITLES)
CHECK: Final = "__viewgrad_check__"  # the attribute with the function that checks whether a value is an instance
LISTS: Final = "__viewgrad_lists__"  # the attribute of an adopted class with the lists and dicts of the user's class
HEAP_TYPE: Final = 1 << 9  # Py_TPFLAGS_HEAPTYPE: a class written in Python
ABSTRACT: Final = 1 << 20  # Py_TPFLAGS_IS_ABSTRACT
METACLASSES: Final = (type, abc.ABCMeta, type(typing.Protocol))
BUILTINS: Final = HOLDING | {object, tuple}  # the classes implemented in C from which adopted classes may derive
# Attributes of every class: a property of such a name cannot be set, and is inherited.
OF_TYPES: Final = frozenset({"__class__", "__dict__", "__name__", "__qualname__", "__bases__", "__base__", "__mro__"})
FUNCTIONS: Final = (
    types.FunctionType, classmethod, staticmethod, property, functools.cached_property, functools.partialmethod,
    functools.singledispatchmethod, functools._lru_cache_wrapper,
)  # fmt: skip


def can_be_adopted(cls: type) -> bool:
    """Return whether a class can have adopted methods: it is written in Python and derives from `object` or a built-in
    container.
    """
    if type(cls) not in METACLASSES or not cls.__flags__ & HEAP_TYPE:
        return False
    return all(
        base in BUILTINS or (base.__flags__ & HEAP_TYPE and not file_of(base).startswith(VIEWGRAD))
        for base in cls.__mro__
    )


def can_be_made(cls: type) -> bool:
    """Return whether objects of a class can be created without calling its own `__new__`, as views are.

    This is not possible if a base is implemented in C, like that of `random.Random`, or if the class is abstract.
    """
    if cls.__flags__ & ABSTRACT:
        return True
    try:
        (kind_of_contents(cls) or object).__new__(cls)
    except TypeError:
        return False
    return True


class _ThreadState(threading.local):
    """Flags of the current thread for methods of adopted classes that Python calls recursively.

    Attributes:
        questions: the arguments of the calls of `issubclass` in progress: an adopted class and a possible subclass.
        reassigns: whether the bases of a class are being reassigned.
    """

    def __init__(self) -> None:
        self.questions: set[tuple[type, type]] = set()
        self.reassigns = False


_THREAD: Final = _ThreadState()


class AdoptedType(type):
    """The metaclass of adopted classes, which share instances and class attributes with the originals."""

    def __init__(cls, *args: Any, **options: Any) -> None:
        """Initialize a class defined by adopted code; adopted classes and views are created without this method."""
        super().__init__(*args, **options)
        type.__setattr__(cls, CHECK, super().__instancecheck__)

    def mro(cls) -> list[type]:
        """Return the method resolution order: that of the original classes, each replaced by the adopted one.

            the user's         class C(Mixin, B)   C, Mixin, B, object
            the adopted one    of C                adopted C, Mixin, adopted B, object, C, B

        `super()` in a method of the adopted C therefore finds Mixin rather than C. The originals come last, for
        attributes that only they have, such as slots. `InitSubclassGuard` follows the class itself.

        The original is in this order but not a base, where possible, since it would list the adopted class among its
        subclasses. An assignment to its attributes does not invalidate what Python has cached for the adopted class;
        `refresh_class` does.
        """
        original = vars(cls).get(ORIGINAL)
        if original is None:  # a view, or a class defined by adopted code
            found = super().mro()
        else:
            ancestors = [each for base in cls.__bases__ for each in base.__mro__]
            adopted = {vars(each)[ORIGINAL]: each for each in ancestors if ORIGINAL in vars(each)}
            order = [adopted.get(each, each) for each in original.__mro__[1:]]
            for each in ancestors:  # such as the counterpart of `threading.Thread`, which derives from it
                if each not in order and replaced_class(each) in order:
                    order.insert(order.index(replaced_class(each)), each)
            originals = [each for each in original.__mro__ if each is original or each in adopted]
            found = [cls, InitSubclassGuard, *order, *originals]
        # Python calls this method to determine the order; programs call it afterwards, and get what `__mro__` has.
        is_asked = not _THREAD.reassigns and resolution_order(cls) == tuple(found)
        return list(cls.__mro__) if is_asked else found

    @property
    def __mro__(cls) -> tuple[type, ...]:
        """The classes that the user's program has, adopted, and originals from which adopted classes derive."""
        order = resolution_order(cls)
        known: tuple[Any, tuple[type, ...]] = vars(cls).get(SHOWN, (None, ()))
        if known[0] is not order:  # the bases of a class defined by adopted code may be reassigned
            adopted = [each for each in order if ORIGINAL in vars(each)]
            originals = {vars(each)[ORIGINAL] for each in adopted}.difference(*(each.__bases__ for each in adopted))
            known = order, tuple(each for each in order if each is not InitSubclassGuard and each not in originals)
            super().__setattr__(SHOWN, known)
        return known[1]

    # The bound method of the original: without a function written in Python, in a quarter of the time.
    __instancecheck__ = property(operator.attrgetter(CHECK))

    def __subclasscheck__(cls, other: type) -> bool:
        original = vars(cls).get(ORIGINAL)
        if original is None:
            return super().__subclasscheck__(other)
        question = cls, other
        if question in _THREAD.questions:  # asked again by the abstract class, which consults its subclasses
            return False
        _THREAD.questions.add(question)
        try:
            return issubclass(other, original)
        finally:
            _THREAD.questions.discard(question)

    def __subclasses__(cls) -> list[type]:
        """Return the adopted versions of the original's subclasses, and those that adopted code has defined."""
        original = vars(cls).get(ORIGINAL)
        defined = [each for each in _SUBCLASSES(cls) if not vars(each).keys() & {ORIGINAL, CLASS_OF_VIEW}]
        if original is None:
            return defined
        users = [each for each in _SUBCLASSES(original) if ORIGINAL not in vars(each)]
        return [*map(vars(cls)["__viewgrad_adopted__"], users), *defined]

    def __setattr__(cls, name: str, value: Any) -> None:
        original = vars(cls).get(ORIGINAL)
        if original is not None:
            setattr(original, name, vars(cls)["__viewgrad_unadopted__"](value))
            vars(cls)["__viewgrad_seen__"][name] = vars(original).get(name)
            _forget_content(cls)
        if name == "__bases__":
            reassign_bases(cls, value)
        else:
            super().__setattr__(name, value)
        fetched = _fetched_views(cls)
        if hasattr(type(value), "__get__") or (fetched is not None and name in vars(fetched)):
            _override_descriptors(cls, (name,))

    def __delattr__(cls, name: str) -> None:
        original = vars(cls).get(ORIGINAL)
        if original is not None:
            delattr(original, name)
            _forget_content(cls)
        if original is None or name in vars(cls):
            super().__delattr__(name)
        _override_descriptors(cls, (name,))


class InitSubclassGuard:
    """The class behind each adopted class, which prevents `__init_subclass__` of the user's classes from running."""

    __slots__ = ()

    def __init_subclass__(cls, **options: Any) -> None:
        if ORIGINAL not in vars(cls) and CLASS_OF_VIEW not in vars(cls):  # a class defined by adopted code
            super().__init_subclass__(**options)


@functools.cache
def _metaclass(kind: type) -> Any:
    made = AdoptedType if kind is type else type(kind.__name__, (AdoptedType, kind), {})
    copyreg.pickle(made, _reduced_class)
    return made


def _reduced_class(cls: Any) -> Any:
    """Return what pickle stores for an adopted class: the name of the user's class."""
    original = vars(cls).get(ORIGINAL)
    return cls.__qualname__ if original is None else (pkgutil.resolve_name, (_path_of(original),))


def _path_of(cls: type) -> str:
    path = f"{cls.__module__}:{cls.__qualname__}"
    try:
        is_found = pkgutil.resolve_name(path) is cls
    except (AttributeError, ImportError, ValueError):
        is_found = False
    if not is_found:
        raise pickle.PicklingError(f"Can't pickle {cls!r}: it's not found as {path.replace(':', '.')}")
    return path


def adopted_class(
    cls: type, bases: tuple[type, ...], adopted: Callable[[Any], Any], unadopted: Callable[[Any], Any]
) -> type:
    """Return the subclass of a class that has adopted methods, which `refresh_class` fills in.

    Arguments:
        cls: the user's class.
        bases: its bases, adopted if they can be.
        adopted: a function that returns the adopted version of a value.
        unadopted: a function that returns the user's own object for an adopted version.
    """
    if cls.__itemsize__ or any(isinstance(value, types.MemberDescriptorType) for value in vars(cls).values()):
        bases = cls, *bases  # objects of classes that have slots, or derive from tuple, are stored in their own way
    missing = {
        "__dict__": cls.__dictoffset__ and not any(base.__dictoffset__ for base in bases),
        "__weakref__": cls.__weakrefoffset__ and not any(base.__weakrefoffset__ for base in bases),
    }
    body: dict[str, Any] = {
        ORIGINAL: cls,
        "__slots__": tuple(name for name, is_missing in missing.items() if is_missing),
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "__doc__": cls.__doc__,
        "__viewgrad_adopted__": staticmethod(adopted),
        "__viewgrad_unadopted__": staticmethod(unadopted),
        "__viewgrad_seen__": {},
        CHECK: cls.__instancecheck__,
        COMPARED: ((), (), (), resolution_order(cls)),
        LISTS: (),
        STATES: set(),
    }
    if "__class__" in vars(cls):
        body["__class__"] = vars(cls)["__class__"]  # which cannot be set later
    if "__hash__" in vars(cls):
        body["__hash__"] = cls.__hash__  # until methods are adopted, which may mention a set of objects of the class
    kind = next((type(base) for base in bases if replaced_class(base) is not None), type(cls))
    made: type = type.__new__(_metaclass(kind), cls.__name__, bases, body)
    return made


def replaced_class(cls: type) -> Any:
    """Return the class of Python's library from which a counterpart derives, or None."""
    found = vars(cls).get("original")
    return found if any(each is found for each in resolution_order(cls)) else None


def refresh_class(made: type) -> None:
    """Update the methods and bases of an adopted class from the user's class.

    Its attribute `COMPARED` has the names and values of the user's class, `TITLES`, and its resolution order.
    """
    cls, seen = vars(made)[ORIGINAL], vars(made)["__viewgrad_seen__"]
    names, values, titles, order = vars(made)[COMPARED]
    if (
        names == tuple(vars(cls))
        and all(map(operator.is_, vars(cls).values(), values))
        and all(map(operator.is_, _TITLES(cls), titles))
        and resolution_order(cls) is order
    ):
        return
    compared = tuple(vars(cls)), tuple(vars(cls).values()), _TITLES(cls), resolution_order(cls)
    adopted = vars(made)["__viewgrad_adopted__"].__func__
    if order is not compared[3]:  # bases were reassigned
        bases = tuple(map(adopted, cls.__bases__))
        reassign_bases(made, (cls, *bases) if cls in made.__bases__ else bases)
    # At first, the views lack inherited class methods too.
    changed = set() if names else {name for base in compared[3] for name in vars(base)}
    for name, value in list(vars(cls).items()):
        if seen.get(name, MISSING) is value or isinstance(value, types.MemberDescriptorType):
            continue
        if name in OF_TYPES:
            continue
        is_special = name.startswith("__") and not isinstance(value, FUNCTIONS)
        is_used = callable(value) or value is None or isinstance(value, types.ModuleType) or name == "__annotations__"
        if is_special and not is_used:
            continue  # other names are inherited
        new = adopted(value)
        if name in PROTOCOLS and new is not value:
            new = PROTOCOLS[name](new)
        seen[name] = value
        type.__setattr__(made, name, new)
        changed.add(name)
    for name in [name for name in seen if name not in vars(cls)]:
        del seen[name]
        if name in vars(made):
            type.__delattr__(made, name)
        changed.add(name)
    _override_descriptors(made, changed)
    abstract = vars(cls).get("__abstractmethods__")
    if abstract is not None and vars(made).get("__abstractmethods__") is not abstract:
        type.__setattr__(made, "__abstractmethods__", abstract)
    views = vars(made).get(VIEWS)
    for each in (made,) if views is None else (made, views, _fetched_views(made)):
        for title, value in zip(TITLES, compared[2], strict=True):
            if getattr(each, title) != value:
                type.__setattr__(each, title, value)
    type.__setattr__(made, COMPARED, compared)
    type.__setattr__(made, LISTS, tuple(value for value in compared[1] if type(value) in HOLDING))


def _fetched_views(made: type) -> Any:
    """Return the class of the views of an adopted class that fetch all attributes at once, or None."""
    views = vars(made).get(VIEWS)
    return None if views is None else views.__bases__[-1]


def _override_descriptors(made: type, names: Collection[str]) -> None:
    """Update the overrides of descriptors in the views of an adopted class and of its subclasses."""
    fetched = _fetched_views(made)
    if fetched is not None:
        override_descriptors(fetched, made, names)
    for each in _SUBCLASSES(made):
        if ORIGINAL in vars(each):
            _override_descriptors(each, names)


def forget_class_values(made: type, handed: set[int]) -> None:
    """Mark attributes of the user's class as outdated, so that `refresh_class` adopts them again.

    Arguments:
        made: the adopted class.
        handed: the addresses of the values of these attributes.
    """
    seen = vars(made)["__viewgrad_seen__"]
    for name in [name for name, value in seen.items() if id(value) in handed]:
        seen[name] = MISSING
        _forget_content(made)


def reassign_bases(made: type, bases: tuple[type, ...]) -> None:
    """Reassign the bases of an adopted class, for which Python calls `mro` of the class and of its subclasses."""
    _THREAD.reassigns = True
    try:
        type.__setattr__(made, "__bases__", bases)
    finally:
        _THREAD.reassigns = False


def _forget_content(made: type) -> None:
    """Make `refresh_class` compare the attributes of the user's class again."""
    type.__setattr__(made, COMPARED, ((), (), (), vars(made)[COMPARED][3]))
