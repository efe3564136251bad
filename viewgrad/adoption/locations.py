"""The locations of modules, which determine whether their functions are adopted together with their callers.

Functions are adopted from the package that the function belongs to, and from modules that are not installed: scripts,
notebooks, and projects under development. Python's standard library and other installed packages are left unchanged;
`viewgrad.adopt("package")` adopts one of them. The decision depends on the location of files, not on names.
"""

from __future__ import annotations

import functools
import os
import site
import sys
import sysconfig
from collections.abc import Mapping
from typing import Any, Final

VIEWGRAD: Final = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
GENERATED: Final = "<viewgrad "  # prefixes of the file names of generated code
SCHEMES: Final = ("stdlib", "platstdlib", "purelib", "platlib")


@functools.cache
def _library_folders() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    found = {paths[name] for name in SCHEMES if name in paths}
    found.update(site.getsitepackages() if hasattr(site, "getsitepackages") else ())
    found.add(site.getusersitepackages() if hasattr(site, "getusersitepackages") else "")
    found.update(os.path.realpath(path) for path in list(found) if path)
    return tuple(sorted(os.path.join(path, "") for path in found if path))


@functools.lru_cache(4096)
def is_installed(file: str) -> bool:
    """Return whether a file belongs to Python's library, to an installed package or to viewgrad."""
    return file.startswith((*_library_folders(), VIEWGRAD, "<frozen ", GENERATED))


def place_of(names: Mapping[str, Any]) -> str:
    """Return the file of the module with the given globals, or "" for code without a file, as in a notebook.

    Arguments:
        names: the globals of the module.
    """
    file = names.get("__file__")
    if type(file) is str:
        return file if file.startswith(GENERATED) else os.path.abspath(file)
    name = names.get("__name__")
    module = sys.modules.get(name) if type(name) is str else None
    spec = getattr(module, "__spec__", None) if module is not None and vars(module) is names else None
    origin = getattr(spec, "origin", None)
    return f"<frozen {name}>" if origin in ("built-in", "frozen") else ""


def file_of(cls: type) -> str:
    """Return the file of the module that defines a class, as `place_of` does, or "" if there is no such module."""
    module = sys.modules.get(cls.__module__)
    return "" if module is None else place_of(vars(module))


def root_of(names: Mapping[str, Any]) -> str:
    """Return the path prefix of the installed package that a module belongs to, or "" for a module that is not
    installed.

    Arguments:
        names: the globals of the module.
    """
    place = place_of(names)
    if not is_installed(place) or place.startswith((VIEWGRAD, "<")):
        return ""
    top = str(names.get("__name__", "")).partition(".")[0]
    path = getattr(sys.modules.get(top), "__path__", None)
    for folder in path or ():
        folder = os.path.join(os.path.abspath(folder), "")
        if place.startswith(folder):
            return folder
    return place
