"""Python's built-in names in adopted code: `float` and `complex` keep gradients, and `type` returns NumPy's types.

`hasattr`, `getattr` and the abstract classes of containers are in `abstract_classes.py`.

In a program written for NumPy, `float(x)` of an array element changes nothing. In adopted code the element may be a
tensor, so `float` is a class here that casts tensors differentiably. It is a subclass of `numpy.float64`, so that NumPy
accepts it as a dtype. For anything but a tensor it returns the same as the built-in class.
"""

from __future__ import annotations

import builtins
import copyreg
import functools
import pkgutil
import sys
import types
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ..tensor.creation import as_its_number, as_scalar
from ..tensor.escapes import has_tangent
from ..tensor.modes import TRACE, current_mode
from ..tensor.tensor import Tensor, current_edge, is_scalar
from .abstract_classes import AbstractType, get_attribute, has_attribute
from .attributes import resolution_order
from .containers import REPORTED
from .counterparts import MISSING, counterpart, namespace

CLASS_OF_VIEW: Final = "__viewgrad_class__"  # the attribute of a class of views that contains the class to report


def carries_history(value: Any) -> bool:
    """Return whether a value is a tensor whose conversion to a plain number would lose a gradient."""
    return isinstance(value, Tensor) and (
        current_edge(value) is not None or has_tangent(value) or bool(current_mode() & TRACE)
    )


PLAIN: Final = frozenset({bool, int, float, str, np.float64, np.int64})


class NumberType(type):
    """The metaclass of the numeric classes of adopted code."""

    python: Any
    numpy: Any

    def __new__(meta, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> Any:
        """Create a class; a class derived from `float` in adopted code is derived from Python's `float`."""
        if any(isinstance(base, NumberType) for base in bases):
            return type(name, tuple(map(_pythons, bases)), body)
        return super().__new__(meta, name, bases, body)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if any(map(carries_history, args)):
            return cls._cast(*args)
        if len(args) == 1:  # Python rejects a tensor returned by a user's method
            found = as_its_number(args[0], f"__{cls.python.__name__}__")
            if found is not args[0]:
                return cls._cast(found) if carries_history(found) else cls.python(found)
        return cls.python(*args, **kwargs)

    def _cast(cls, value: Any, imaginary: Any = 0.0) -> Any:
        if cls.python is complex:
            return as_scalar(value + 1j * imaginary, np.complex128)
        return as_scalar(value, np.float64)

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, cls.python)

    def __subclasscheck__(cls, other: type) -> bool:
        return other is cls or issubclass(other, cls.python)

    def __eq__(cls, other: object) -> bool:
        """Return whether a class is this one, Python's or NumPy's, so that `type(x) == np.float64` holds too."""
        if other is cls or other is cls.python or other is cls.numpy or getattr(other, "numpy", None) is cls.numpy:
            return True
        return NotImplemented

    def __hash__(cls) -> int:
        return hash(cls.python)

    def __repr__(cls) -> str:
        return repr(cls.python)


class FloatType(NumberType):
    """The metaclass of adopted code's `float`, which is called often in loops."""

    __instancecheck__: Any = float.__instancecheck__  # without a function written in Python

    def __call__(cls, value: Any = 0.0, /) -> Any:
        kind = type(value)
        if kind is int or kind is float or kind in PLAIN:
            return float(value)
        return super().__call__(value)


METHODS: Final = (types.WrapperDescriptorType, types.MethodDescriptorType)


def _number_type(metaclass: Any, python: type, base: type) -> Any:
    own = {name: value for name, value in vars(python).items() if not name.startswith("__")}
    own |= {
        name: _explicit(name, value, base)
        for name, value in vars(python).items()
        if name.startswith("__") and isinstance(value, METHODS) and name != "__getattribute__"
    }
    own |= {"python": python, "numpy": base, "__module__": "builtins", "__slots__": ()}
    own["__new__"] = lambda cls, *args: python.__new__(cls if cls.__class__ is not metaclass else python, *args)
    if python is float:
        own["__match_args__"] = ("real",)  # for `case float(x)`, which Python does not accept for classes of NumPy
    return metaclass(python.__name__, (base,), own)


def _explicit(name: str, plain: Callable[..., Any], dtype: type) -> Callable[..., Any]:
    """Return a method for calls such as `float.__add__(self, x)`, as in the methods of a class derived from `float`.

    Arguments:
        name: the name of the method.
        plain: Python's method.
        dtype: the dtype of the number if only another operand is a tensor.
    """

    def method(self: Any, *args: Any) -> Any:
        if not any(isinstance(each, Tensor) for each in (self, *args)):
            return plain(self, *args)
        number = self if isinstance(self, Tensor) else as_scalar(Tensor(np.asarray(self, dtype)), dtype)
        return getattr(number, name)(*args)

    return method


NUMBERS: Final[dict[str, Any]] = {
    "float": _number_type(FloatType, float, np.float64),
    "complex": _number_type(NumberType, complex, np.complex128),
}

# Types that `type` in adopted code returns unchanged.
SAME: Final = frozenset({int, bool, str, bytes, list, tuple, dict, set, type(None), types.FunctionType})


class TypeMeta(type):
    """The metaclass of adopted code's `type`."""

    def __new__(meta, name: str, bases: tuple[type, ...], body: dict[str, Any], **options: Any) -> Any:
        """Create a metaclass derived from Python's `type`."""
        if any(isinstance(base, TypeMeta) for base in bases):
            return type.__new__(type, name, tuple(map(_pythons, bases)), body, **options)
        return super().__new__(meta, name, bases, body)

    def __call__(cls, value: Any = MISSING, /, *args: Any, **kwargs: Any) -> Any:
        if cls is Type and not args and not kwargs and value is not MISSING:
            return type_of(value)
        given = args if value is MISSING else (value, *args)
        if cls is not Type:
            return super().__call__(*given, **kwargs)
        if len(given) == 3 and type(given[2]) is dict and "__module__" not in given[2]:  # which is that of the caller
            given = *given[:2], {**given[2], "__module__": sys._getframe(1).f_globals.get("__name__")}
        return type(*given, **kwargs)

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, type) if cls is Type else super().__instancecheck__(value)

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(other, type) if cls is Type else super().__subclasscheck__(other)

    def __getitem__(cls, item: Any) -> Any:
        """Return an annotation such as `type[int]`."""
        return type[item]

    def __eq__(cls, other: object) -> bool:
        return other is cls or (cls is Type and other is type)

    def __hash__(cls) -> int:
        return hash(type) if cls is Type else super().__hash__()

    def __repr__(cls) -> str:
        return repr(type) if cls is Type else super().__repr__()


class Type(type, metaclass=TypeMeta):
    """`type` in adopted code, which returns NumPy's type for a tensor, and the adopted `float` class for a float."""


Type.__name__ = Type.__qualname__ = "type"
Type.__module__ = "builtins"
for _kind in (NumberType, FloatType, TypeMeta):
    copyreg.pickle(_kind, lambda cls: (pkgutil.resolve_name, (f"builtins:{cls.__name__}",)))


FLOAT: Final = NUMBERS["float"]


def as_float(value: Any = 0.0, /) -> Any:
    """Stand for `float` where it is only called, in half the time of a class."""
    kind = type(value)
    if kind is float:
        return value
    return float(value) if kind is int else FLOAT(value)


# What `type` in adopted code returns for tensors, by the type of their arrays; filled in by `_type_of`.
OF_TENSORS: Final[dict[type, Any]] = {}


def type_of(value: Any, /) -> Any:
    """Stand for `type` where it is only called with one argument."""
    kind = type(value)
    if kind is Tensor:  # in a tenth of the time
        try:
            return OF_TENSORS[type(value._array)]
        except KeyError:
            return _type_of(value)
    if kind in SAME:
        return kind
    found = kind.__dict__.get(CLASS_OF_VIEW)
    return _type_of(value) if found is None else found


# Functions for the classes below in functions that only call them.
CALLED: Final[dict[str, Any]] = {"float": as_float, "type": type_of}

def build_class(body: Callable[..., Any], name: str, /, *bases: Any, **options: Any) -> Any:
    """Stand for `__build_class__`, which a class statement calls: the new class is derived from Python's classes.

    Python chooses the metaclass among those of the bases and `metaclass=`, and would find a conflict between that of
    `float` in adopted code and that of `Enum` or `ABC`.
    """
    if "metaclass" in options:
        options["metaclass"] = _pythons(options["metaclass"])
    made = builtins.__build_class__(body, name, *map(_pythons, bases), **options)
    if isinstance(made, type):
        for protocol, wrapped in {**PROTOCOLS, "__array__": _for_numpy}.items():
            method = vars(made).get(protocol)
            if type(method) is types.FunctionType:
                type.__setattr__(made, protocol, wrapped(method))
    return made


def _with_counterpart(method: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a method to which NumPy passes the function that was called, which adopted code compares with its own."""

    @functools.wraps(method)
    def protocol(self: Any, function: Any, *args: Any, **kwargs: Any) -> Any:
        found = counterpart(function)
        return method(self, function if found is MISSING else found, *args, **kwargs)

    return protocol


def _with_counterpart_in_context(method: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap `__array_wrap__`, to which NumPy passes the ufunc as the first item of the context."""

    @functools.wraps(method)
    def __array_wrap__(self: Any, array: Any, *args: Any, **options: Any) -> Any:
        if args and args[0] is not None:
            found = counterpart(args[0][0])
            args = args if found is MISSING else ((found, *args[0][1:]), *args[1:])
        return method(self, array, *args, **options)

    return __array_wrap__


# Methods to which NumPy passes the function that was called, with the functions that wrap them.
PROTOCOLS: Final[dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]]] = {
    "__array_ufunc__": _with_counterpart,
    "__array_function__": _with_counterpart,
    "__array_wrap__": _with_counterpart_in_context,
}


def _for_numpy(method: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap `__array__` so that it returns arrays, which NumPy demands, for tensors without a history."""

    @functools.wraps(method)
    def __array__(self: Any, *args: Any, **kwargs: Any) -> Any:
        found = method(self, *args, **kwargs)
        return found.__array__() if isinstance(found, Tensor) and not carries_history(found) else found

    return __array__


def _pythons(base: Any) -> Any:
    """Return Python's class for a class that replaces it in adopted code; return other classes unchanged."""
    if isinstance(base, AbstractType):
        return base.original
    found = original_builtin(base)
    return base if found is None else found


# The replacements of built-in classes and functions.
BUILTINS: Final[dict[str, Any]] = {
    **NUMBERS, "type": Type, "hasattr": has_attribute, "getattr": get_attribute, "__build_class__": build_class,
}  # fmt: skip


def _type_of(value: Any) -> Any:
    kind = type(value)
    if kind is float:
        return FLOAT
    if Tensor in resolution_order(kind):  # in a sixth of the time of `issubclass`
        own = value.dtype.type if is_scalar(value) else np.ndarray
        found = FLOAT if own is np.float64 else getattr(namespace("numpy"), own.__name__)
        if type(value._array) is own:  # not a traced number
            OF_TENSORS[own] = found
        return found
    if kind is complex:
        return NUMBERS["complex"]
    if kind is np.ndarray or issubclass(kind, np.generic):  # passed by the caller of an adopted package
        found = counterpart(kind)
        return kind if found is MISSING else found
    if issubclass(kind, type):
        found = next(each for each in resolution_order(kind) if str(each.__module__).partition(".")[0] != "viewgrad")
        return Type if found is type else found
    return REPORTED.get(kind, kind)


def adopting_import(
    plain: Callable[..., Any], original: dict[str, Any], adopted: Callable[[Any], Any]
) -> Callable[..., Any]:
    """Return the `__import__` of adopted code, for which `import numpy` inside a function imports `viewgrad.numpy`.

    Arguments:
        plain: the `__import__` that the module would use.
        original: the globals of the module, for relative imports.
        adopted: a function that returns the adopted version of a module.
    """

    # The modules returned for `from module import name`, which Python looks up again and again, and their names.
    found: dict[Any, tuple[str, Any]] = {}
    is_pythons, modules = plain is builtins.__import__, sys.modules

    def __import__(
        name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
    ) -> Any:
        if not fromlist or type(fromlist) is not tuple or not is_pythons:
            return adopted(plain(name, original, locals, fromlist, level))
        key = name, fromlist, level
        if key in found:
            known, module = found[key]
            if modules.get(known) is module:
                return adopted(module)
        module = plain(name, original, locals, fromlist, level)
        known = str(getattr(module, "__name__", ""))
        if modules.get(known) is module:
            found[key] = known, module
        return adopted(module)

    return __import__


def original_builtin(value: Any) -> Any:
    """Return the built-in class that a class of adopted code replaces, or None."""
    if issubclass(type(value), NumberType):
        return value.python
    if value is has_attribute:
        return hasattr
    if value is get_attribute:
        return getattr
    return builtins.type if value is Type else None
