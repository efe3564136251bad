"""Library code, whose captured state need not be followed, as determined by the location of files.

Python's standard library, NumPy, SciPy and viewgrad are trusted to compute from their arguments only. Functions of the
standard library that read the state of the interpreter or of the system are exceptions. Module names are irrelevant: a
user's `profile.py` is a user's module.
"""

from __future__ import annotations

import functools
import os
import sys
import sysconfig
import types
from pathlib import Path
from typing import Any, Final

import numpy as np

from ...operators.numpy_api.public import is_public
from .impure_reads import OUTSIDE

VIEWGRAD: Final = str(Path(__file__).parents[2])
NUMPY: Final = str(Path(np.__file__).parent)
SCIPY: Final = str(Path(np.__file__).parents[1] / "scipy")
STANDARD: Final = tuple({sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib")})
PACKAGES: Final = tuple(path + os.sep for path in (VIEWGRAD, NUMPY, SCIPY))
INSTALLED: Final = ("site-packages", "dist-packages")
# The file names of code without a file of its own.
GENERATED: Final = ("<frozen ", "<viewgrad ", "<__array_function__")
IMMUTABLE: Final = 1 << 8  # the flags of classes whose attributes cannot be set
HEAP: Final = 1 << 9  # created by Python code, or by C code that requests it
BUILTIN: Final = (
    types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType, types.GetSetDescriptorType,
    types.MemberDescriptorType, types.ClassMethodDescriptorType, np.ufunc, type(np.mean),
)  # fmt: skip
# Standard library modules whose functions depend only on their arguments, or on state that is checked elsewhere:
# clocks, files and random numbers are detected when they are read; see `impure_reads`.
PURE: Final = frozenset(
    "builtins math cmath operator _operator functools _functools itertools collections _collections _collections_abc "
    "copy copyreg numbers fractions statistics _statistics bisect _bisect heapq _heapq string re _sre struct _struct "
    "json dataclasses enum typing types abc _abc contextlib textwrap array decimal _decimal _pydecimal datetime "
    "_datetime calendar weakref _weakref _weakrefset inspect warnings _warnings logging traceback pprint "
    "reprlib graphlib keyword token tokenize difflib hashlib _hashlib zlib base64 binascii pickle _pickle "
    "random _random secrets uuid argparse unittest __future__ colorsys html urllib shlex ast dis unicodedata "
    "contextvars _contextvars concurrent queue _queue io _io pathlib posixpath ntpath genericpath os.path fnmatch "
    "glob tempfile shutil subprocess importlib configparser zoneinfo tomllib".split()
)
# Functions of these modules that read more state.
READING: Final = {
    "inspect": frozenset({"currentframe", "stack", "getsource", "getsourcelines", "findsource", "getcomments"}),
    "traceback": frozenset({"extract_stack", "format_stack", "print_stack", "walk_stack", "StackSummary"}),
    "importlib.util": frozenset({"find_spec"}),
    "weakref": frozenset({"getweakrefcount", "getweakrefs"}),
    "_weakref": frozenset({"getweakrefcount", "getweakrefs"}),
    "shutil": frozenset({"which", "disk_usage", "get_terminal_size"}),
}
# Functions of other modules that read no state.
SAFE: Final = {
    "sys": frozenset({"exit", "intern", "exc_info", "setrecursionlimit", "displayhook"}),
    "os": frozenset(
        "fspath fsencode fsdecode getenv strerror makedirs mkdir remove unlink rename replace rmdir putenv "
        "PathLike path".split()
    ),
    "gc": frozenset({"collect", "enable", "disable", "freeze", "unfreeze"}),
    "time": frozenset({"sleep", "struct_time", "strptime", "mktime"}),
    "threading": frozenset(
        "Lock RLock Thread Event Condition Semaphore BoundedSemaphore Barrier Timer local".split()
    ),
    "_thread": frozenset({"allocate_lock", "RLock", "_local"}),
}


@functools.lru_cache(4096)
def is_library_file(file: str) -> bool:
    """Return whether a file belongs to the standard library, NumPy, SciPy or viewgrad."""
    if file.startswith(GENERATED):
        return True
    if file.startswith(PACKAGES):
        return True
    return file.startswith(STANDARD) and not any(name in file for name in INSTALLED)


def is_library_function(function: types.FunctionType) -> bool:
    """Return whether a function was defined in a file of a library."""
    return is_library_file(function.__code__.co_filename)


def is_library_module(module: types.ModuleType) -> bool:
    """Return whether a module belongs to a library."""
    content = vars(module)
    file = content.get("__file__")
    if isinstance(file, str):
        return is_library_file(file)
    origin = getattr(content.get("__spec__"), "origin", None)
    name = content.get("__name__")
    return origin in ("built-in", "frozen") and isinstance(name, str) and name in sys.stdlib_module_names


def is_library_class(kind: type) -> bool:
    """Return whether a class was defined by a library."""
    if not kind.__flags__ & HEAP:
        return True
    module = sys.modules.get(kind.__module__)
    if module is None:
        return False
    if _found_in(module, kind.__qualname__) is kind:
        return is_library_module(module)
    bare = [each.__func__ if isinstance(each, (staticmethod, classmethod)) else each for each in vars(kind).values()]
    functions = [each for each in bare if isinstance(each, types.FunctionType)]
    if functions:
        return all(map(is_library_function, functions))
    is_c_class = not any(name in vars(kind) for name in ("__dict__", "__weakref__", "__slots__"))
    return is_c_class and is_library_module(module)


def is_library_value(value: Any) -> bool:
    """Return whether a value is a function, a class, a descriptor or a module of a library."""
    if isinstance(value, types.FunctionType):
        return is_library_function(value)
    if isinstance(value, types.MethodType):
        return is_public(value)
    if isinstance(value, types.ModuleType):
        return is_library_module(value)
    if isinstance(value, type):
        return is_library_class(value)
    if isinstance(value, property):
        return value.fget is None or is_library_value(value.fget)
    if isinstance(value, (staticmethod, classmethod)):
        return is_library_value(value.__func__)
    return isinstance(value, BUILTIN)


def is_immutable(kind: type) -> bool:
    """Return whether no attribute of a class can be set."""
    return bool(kind.__flags__ & IMMUTABLE) or not kind.__flags__ & HEAP


def _found_in(module: types.ModuleType, path: str) -> Any:
    found: Any = module
    for name in path.split("."):
        found = vars(found).get(name) if isinstance(found, (types.ModuleType, type)) else None
    return found


def why_impure(value: Any) -> str | None:
    """Return a description of the state that a function or class of the standard library reads, or None.

    State that is detected when it is read, such as clocks and files, is not included.
    """
    if id(value) in OUTSIDE or "<locals>" in getattr(value, "__qualname__", ""):
        return None
    owner = getattr(value, "__self__", None)
    if isinstance(value, types.BuiltinFunctionType):
        module = owner.__name__ if isinstance(owner, types.ModuleType) else None
    elif isinstance(value, (types.FunctionType, type)):
        module = value.__module__
    else:
        return None
    found = sys.modules.get(module) if isinstance(module, str) else None
    if found is None or not isinstance(module, str) or not is_library_module(found):
        return None
    top = module.partition(".")[0]
    if top not in sys.stdlib_module_names:
        return None
    name = value.__name__
    if (top in PURE or module in PURE) and name not in READING.get(module, ()):
        return None
    public = "os" if top in ("posix", "nt") else top
    if name in SAFE.get(public, ()):
        return None
    if isinstance(value, type) and issubclass(value, BaseException):
        return None
    return f"{public}.{name}, which may read the state of the interpreter or the system"
