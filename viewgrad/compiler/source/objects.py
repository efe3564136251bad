"""Objects from outside a function (its arguments and captured state), their values, and their guards.

Arrays and floats are inputs, which are read again at each call. Captured integers and strings, functions, modules and
classes are known, and must not change.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Sequence
from typing import Any, Final

import attrs
import numpy as np

from ..guards.identity_checks import MOST_CHECKED, Check, identity_check
from ..guards.libraries import is_library_class, is_library_module
from .emitter import Emitter
from .ir import Var
from .library import library_name
from .value_types import DTYPES, INT, Kind, Num, kind_of
from .values import Path, RecordValue, Static, TupleValue

PLAIN: Final = (bool, int, float, complex, str, bytes, type(None), slice, type(Ellipsis), np.dtype, type)
MANY: Final = 64  # the maximum number of items of a container


@attrs.frozen(eq=False)
class Input:
    """An input of a program.

    Attributes:
        name: its variable.
        kind: its kind.
        path: its access path.
    """

    name: str
    kind: Kind
    path: Path


@attrs.frozen(eq=False)
class Guard:
    """A condition that a captured object has not changed.

    Attributes:
        path: its access path.
        value: its value when the function was read.
        how: "is" for identity, "equal" for type and value, "length", or "absent" for a missing key.
    """

    path: Path
    value: Any
    how: str

    def matches(self, now: Any) -> bool:
        """Return whether a value has the expected type and value, or length."""
        if self.how == "equal":
            return now is self.value or (type(now) is type(self.value) and repr(now) == repr(self.value))
        return bool(len(now) == self.value)


def guards_hold(guards: Sequence[Guard], arguments: Any) -> bool:
    """Return whether everything that the guards refer to is unchanged; the loop is flat, since each call runs it."""
    for guard in guards:
        path, value, how = guard.path, guard.value, guard.how
        found = arguments[path.root] if path.is_argument else path.root
        try:
            for way, key in path.steps:
                found = getattr(found, key) if way == "attr" else found.cell_contents if way == "cell" else found[key]
        except Exception:
            return False
        if how == "is":
            if found is not value:
                return False
        elif how == "absent":
            if value in found:
                return False
        elif not guard.matches(found):
            return False
    return True


def quick_check(guards: Sequence[Guard]) -> Callable[[Sequence[Any]], bool]:
    """Return a function of the arguments that may return False although all guards are satisfied, but never True if
    not.
    """
    if len(guards) > MOST_CHECKED:
        return lambda arguments: False
    checks = []
    for each in guards:
        path, how = each.path, "is" if each.how == "equal" else each.how
        checks.append(Check(path.root, path.steps, each.value, path.is_argument, how))
    return identity_check(checks)


@attrs.define(eq=False)
class ListCapacity:
    """The capacity of the lists of a program, which is increased when a run needs more."""

    size: int = 64


class Fields:
    """The class of records that represent structured arrays."""


@attrs.frozen(eq=False)
class Getter:
    """An attribute computed by a method of the object."""

    function: Any


def record_fields(kind: type) -> list[str] | None:
    """Return the names of the fields of a dataclass or attrs class, or None for others."""
    if attrs.has(kind):
        return [field.name for field in attrs.fields(kind)]
    found = getattr(kind, "__dataclass_fields__", None)
    return None if found is None else list(found)


def runs_code(value: Any, name: str) -> bool:
    """Return whether looking up an attribute runs user code other than properties."""
    kind = type(value)
    plain: Any = type.__getattribute__ if isinstance(value, type) else object.__getattribute__
    if kind.__getattribute__ is not plain and not is_library_class(kind):
        return True
    classes = (*value.__mro__, *kind.__mro__) if isinstance(value, type) else kind.__mro__
    found = [vars(each)[name] for each in classes if name in vars(each)]
    if not found:
        return hasattr(kind, "__getattr__") and name not in getattr(value, "__dict__", ())
    member = found[0]
    if isinstance(member, functools.cached_property):
        return name not in getattr(value, "__dict__", ())
    descriptor = type(member)
    return hasattr(descriptor, "__get__") and not is_library_class(descriptor)


class ObjectReader:
    """Determines the values of objects.

    Arguments:
        static: the names of integer arguments whose values are known.
    """

    def __init__(self, static: frozenset[str] = frozenset()) -> None:
        self.out = Emitter()
        self.static = static
        self.guards: dict[Any, Guard] = {}
        self.captured: dict[Any, Any] = {}
        self.paths: list[Any] = []  # objects that are kept alive because their addresses are used as keys
        self.capacity: ListCapacity | None = None
        self.out.capacity = self.list_capacity

    def object(self, value: Any, path: Path, name: str) -> Any:
        """Return the value of an object from outside the function."""
        if type(value) is bool or value is None or isinstance(value, (str, bytes, type(Ellipsis), slice, np.dtype)):
            return self.known(value, path)
        if type(value) is int:
            if path.is_argument and name not in self.static:
                return self.input(name, INT, path)
            return self.known(value, path)
        tensor = getattr(value, "_array", None) if hasattr(type(value), "requires_grad") else None
        array = value if tensor is None else tensor
        if type(array) is np.ndarray and array.dtype.names is not None and array.ndim:
            return self.structured(array, path, name)
        kind = kind_of(array)
        if kind is not None:
            if kind.dtype not in DTYPES:
                raise self.out.refused(f"{name} has the unsupported dtype {np.dtype(kind.dtype)}")
            if isinstance(array, np.ndarray) and (type(array) is not np.ndarray):
                raise self.out.refused(f"{name} is of the unsupported type {type(array).__name__}")
            if isinstance(array, np.ndarray) and not array.ndim:
                kind = Num(kind.dtype, boxed=True)
            return self.input(name, kind, path)
        return self.tree(value, path, name)

    def structured(self, array: Any, path: Path, name: str) -> RecordValue:
        """Return a structured array, such as from `np.genfromtxt`, as a record whose fields are arrays."""
        if path.is_argument:
            raise self.out.refused(f"{name} has the unsupported dtype {array.dtype}")
        self.guard(array, path)
        self.guard(array.dtype, path.to("attr", "dtype"))
        fields = {key: self.object(array[key], path.to("key", key), f"{name}_{key}") for key in array.dtype.names}
        return RecordValue(fields, Fields)

    def tree(self, value: Any, path: Path, name: str) -> Any:
        """Return the value of a container, or of an object that is read in part."""
        if isinstance(value, (tuple, list)):
            if type(value) not in (tuple, list) and not hasattr(value, "_fields"):
                raise self.out.refused(f"{name} is of the unsupported type {type(value).__name__}")
            if not path.is_argument:
                self.guard_length(value, path)
            if len(value) > MANY:
                raise self.out.refused(f"{name} has {len(value)} items; convert it to an array")
            items = [self.object(each, path.to("item", i), f"{name}_{i}") for i, each in enumerate(value)]
            return TupleValue(tuple(items), type(value))
        if type(value) is dict:
            if not all(isinstance(key, (str, int)) for key in value) or len(value) > MANY:
                raise self.out.refused(f"{name} has keys that are not strings or integers, or too many items")
            if not path.is_argument:
                self.guard_length(value, path)
            return RecordValue({
                key: self.object(each, path.to("key", key), f"{name}_{key}") for key, each in value.items()})
        fields = record_fields(type(value))
        if fields is not None and path.is_argument:
            parts = {key: self.object(getattr(value, key), path.to("attr", key), f"{name}_{key}") for key in fields}
            return RecordValue(parts, type(value))
        return self.known(value, path)

    def guard_length(self, value: Any, path: Path) -> None:
        self.guard(value, path)
        self.guards["length", id(value)] = Guard(Path(value, False), len(value), "length")

    def known(self, value: Any, path: Path) -> Static:
        """Return a known object, which a guard checks."""
        if not (path.is_argument and isinstance(value, PLAIN)):
            self.guard(value, path)
        return Static(value, path)

    def guard(self, value: Any, path: Path) -> None:
        """Guard an object that must not change."""
        if path.is_argument and not path.steps:
            return
        key = (path.is_argument, path.root if path.is_argument else id(path.root), path.steps)
        self.paths.append(path.root)
        by_value = isinstance(value, (bool, int, float, complex, str, bytes, slice, np.dtype))
        self.guards.setdefault(key, Guard(path, value, "equal" if by_value else "is"))

    def input(self, name: str, kind: Kind, path: Path) -> Any:
        """Return an input."""
        key = (path.is_argument, path.root if path.is_argument else id(path.root), path.steps)
        self.paths.append(path.root)
        if key in self.captured:
            return self.captured[key]
        name = self.out.fresh("".join(c if c.isalnum() or c == "_" else "_" for c in name))
        self.out.inputs[name] = Input(name, kind, path)
        self.out.kinds[name] = kind
        found = self.captured[key] = Var(name, kind)
        return found

    def list_capacity(self) -> Any:
        """Return the capacity of lists of unknown length."""
        if self.capacity is None:
            self.capacity = ListCapacity()
        return self.input("capacity", INT, Path(self.capacity, False).to("attr", "size"))

    def attribute_of(self, static: Static, name: str) -> Any:
        """Return an attribute of a known object."""
        value, path = static.value, static.path
        if path is None:
            path = Path(value, False)
        if isinstance(value, types.ModuleType):
            if name not in vars(value) and not (is_library_module(value) and hasattr(value, name)):
                raise self.out.refused(f"the attribute {name} of {value.__name__} is not supported")
            return self.object(getattr(value, name), path.to("attr", name), name)
        if isinstance(value, (np.dtype, str, bytes)) or library_name(value) is not None:
            try:
                return Static(getattr(value, name))
            except AttributeError as error:
                raise self.out.refused(str(error)) from error
        kind = type(value)
        own = getattr(value, "__dict__", {})
        member = next((vars(each)[name] for each in kind.__mro__ if name in vars(each)), None)
        classes = value.__mro__ if isinstance(value, type) else kind.__mro__
        made = next(((each, vars(each)[name]) for each in classes if name in vars(each)), None)
        if made is not None and isinstance(made[1], classmethod) and name not in (own if kind is not type else ()):
            self.guard(made[1], Path(made[0], False).to("attr", "__dict__").to("key", name))
            return Static(getattr(value, name))  # a different object each time
        if runs_code(value, name):
            raise self.out.refused(f"{name} of a {kind.__name__} is a computed attribute")
        if isinstance(member, property):
            self.guard(member, Path(kind, False).to("attr", name))
            return Getter(member.fget)
        if isinstance(value, type) and not isinstance(own, dict):
            if not hasattr(value, name):
                raise self.out.refused(f"{value.__name__} has no attribute {name}")
            return self.object(getattr(value, name), path.to("attr", name), name)
        if name not in own and isinstance(member, types.FunctionType):
            self.guard(member, Path(kind, False).to("attr", name))
            return Static(getattr(value, name), path.to("attr", name))
        if name not in own and isinstance(member, staticmethod):
            return Static(member.__func__, path.to("attr", name))
        if name not in own and member is None:
            raise self.out.refused(f"the attribute {name} of {kind.__name__} is not supported")
        try:
            return self.object(getattr(value, name), path.to("attr", name), name)
        except AttributeError as error:
            raise self.out.refused(str(error)) from error
