"""`pickle` in adopted packages.

Python's `pickle` stores classes and functions by name, and looks the names up in `sys.modules`, which does not contain
the modules of an adopted package. An adopted package therefore uses the functions of this module instead.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from typing import Any

from .counterparts import MISSING


def pickling_functions(reduced: Callable[[Any], Any], member: Callable[[str, str], Any]) -> dict[str, Any]:
    """Return the functions and classes that an adopted package has in place of those of `pickle`, by name.

    Arguments:
        reduced: returns what is stored for a class or function of the package, as `__reduce__` does, and for other
            objects `NotImplemented`.
        member: returns what the package has under the names of a module and of its member, or MISSING.
    """

    class Pickler(pickle.Pickler):
        def reducer_override(self, obj: Any) -> Any:
            return reduced(obj)

    class Unpickler(pickle.Unpickler):
        def find_class(self, module_name: str, global_name: str, /) -> Any:
            found = member(module_name, global_name)
            return super().find_class(module_name, global_name) if found is MISSING else found

    def dump(obj: Any, file: Any, protocol: Any = None, **options: Any) -> None:
        Pickler(file, protocol, **options).dump(obj)

    def dumps(obj: Any, protocol: Any = None, **options: Any) -> bytes:
        file = io.BytesIO()
        dump(obj, file, protocol, **options)
        return file.getvalue()

    def load(file: Any, **options: Any) -> Any:
        return Unpickler(file, **options).load()

    def loads(data: Any, /, **options: Any) -> Any:
        return load(io.BytesIO(data), **options)

    return {each.__name__: each for each in (Pickler, Unpickler, dump, dumps, load, loads)}
