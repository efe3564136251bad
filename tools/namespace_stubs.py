"""The types of `viewgrad.numpy` and `viewgrad.scipy`, for checkers and editors; `python tools/stubs.py` writes them.

The names of these namespaces are those of the installed NumPy and SciPy, so that a checker cannot find them in the
source. Parameters have NumPy's names, and are of any type; results that are one tensor are of type `Tensor`.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import keyword
import re
import sys
import types
from pathlib import Path
from typing import Any, Final

import numpy as np
import scipy  # type: ignore[import-untyped]

import viewgrad

__all__ = ["namespace_stubs"]

PACKAGE: Final = Path(viewgrad.__file__).parent
SCIPY: Final = (
    "fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal", "sparse", "sparse.linalg", "spatial",
    "spatial.distance", "special", "stats",
)  # fmt: skip
ORIGINS: Final = {
    "math": f"Python {sys.version_info[0]}.{sys.version_info[1]}",
    "numpy": f"NumPy {np.__version__}",
    "scipy": f"SciPy {scipy.__version__}",
}
MAKERS: Final = frozenset({
    "arange", "array", "asarray", "empty", "eye", "full", "linspace", "ones", "ones_like", "zeros", "zeros_like",
})  # fmt: skip
FUNCTIONS: Final = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, type(np.dot))
HEADER: Final = '''"""The names of `{name}`, written by `python tools/stubs.py` with {origin}; do not edit."""

from typing import Any

{imports}'''


def namespace_stubs() -> dict[Path, str]:
    """Return the stub files, each with its path."""
    modules = {
        "viewgrad.math": ("math", "typed_math.pyi"),
        "viewgrad.numpy": ("numpy", "numpy/typed.pyi"),
        "viewgrad.numpy.linalg": ("numpy.linalg", "numpy/typed_linalg.pyi"),
    }
    for name in SCIPY:
        modules[f"viewgrad.scipy.{name}"] = f"scipy.{name}", f"scipy/typed/{name.replace('.', '_')}.pyi"
    stubs = {PACKAGE / "scipy" / "typed" / "__init__.pyi": '"""The names of the modules of `viewgrad.scipy`."""\n'}
    for name, (original, path) in modules.items():
        stubs[PACKAGE / path] = _stub(name, original)
    return stubs


def _stub(name: str, original: str) -> str:
    module, theirs = importlib.import_module(name), importlib.import_module(original)
    imports: set[str] = set()
    lines: list[str] = []
    bound = _bound(module)
    for public in sorted(set(module.__all__) - bound):
        value = getattr(module, public, None)
        if isinstance(value, types.ModuleType) or not public.isidentifier() or keyword.iskeyword(public):
            continue
        is_numpys = original.partition(".")[0] == "numpy" or original == "scipy.special"
        lines += _entry(name, public, value, getattr(theirs, public, value), imports, is_numpys)
    if any("Tensor" in line for line in lines):
        imports.add("from viewgrad.tensor.tensor import Tensor")
    origin = ORIGINS[original.partition(".")[0]]
    head = HEADER.format(name=name, origin=origin, imports="".join(f"{line}\n" for line in sorted(imports)))
    return head + "\n" + "\n".join(lines) + "\n"


def _entry(
    module: str, name: str, value: Any, theirs: Any, imports: set[str], is_numpys: bool
) -> list[str]:
    """Return the declaration of a name; in NumPy's namespace, functions with an operator return a tensor."""
    if isinstance(value, type):
        home = value.__module__
        base = value.__mro__[1]
        if home == module:
            if not base.__module__.startswith("viewgrad"):
                return [f"{name}: Any"]
            imports.add(f"from {base.__module__} import {base.__name__}")
            return [f"class {name}({base.__name__}): ..."]
        if home.startswith("viewgrad") and getattr(importlib.import_module(home), value.__name__, None) is value:
            imports.add(f"from {home} import {value.__name__} as {name}")
            return []
        if home.partition(".")[0] == "numpy" and getattr(np, name, None) is value:
            imports.add(f"from numpy import {name} as {name}")
            return []
        return [f"{name}: Any"]
    if isinstance(theirs, np.ufunc):
        inputs = ["x"] if theirs.nin == 1 else [f"x{n + 1}" for n in range(theirs.nin)]
        given = ", ".join(f"{each}: Any" for each in inputs)
        returned = "Tensor" if theirs.nout == 1 else "tuple[Tensor, ...]"
        return [f"def {name}({given}, /, *args: Any, **kwargs: Any) -> {returned}: ..."]
    if callable(value) and isinstance(theirs, FUNCTIONS):
        return [f"def {name}({_parameters(value, theirs)}) -> {_returned(name) if is_numpys else 'Any'}: ..."]
    if isinstance(value, (bool, int, float, str)):
        return [f"{name}: {type(value).__name__}"]
    kind = type(value)
    if kind.__module__.startswith("viewgrad") and kind.__module__ != "viewgrad.tensor.tensor":
        imports.add(f"from {kind.__module__} import {kind.__name__}")
        return [f"{name}: {kind.__name__}"]
    return [f"{name}: Any"]


def _parameters(value: Any, theirs: Any) -> str:
    """Return the parameters of a function, as in the original."""
    for each in (theirs, value):
        try:
            signature = inspect.signature(each)
        except (TypeError, ValueError):
            continue
        return _shown(list(signature.parameters.values()))
    return "*args: Any, **kwargs: Any"


def _shown(parameters: list[inspect.Parameter]) -> str:
    parts: list[str] = []
    kinds = inspect.Parameter
    for position, each in enumerate(parameters):
        if each.kind is kinds.KEYWORD_ONLY and not any(part.startswith("*") for part in parts):
            parts.append("*")
        star = {kinds.VAR_POSITIONAL: "*", kinds.VAR_KEYWORD: "**"}.get(each.kind, "")
        default = "" if each.default is each.empty or star else " = ..."
        parts.append(f"{star}{each.name}: Any{default}")
        following = parameters[position + 1].kind if position + 1 < len(parameters) else None
        if each.kind is kinds.POSITIONAL_ONLY and following is not kinds.POSITIONAL_ONLY:
            parts.append("/")
    return ", ".join(parts)


def _returned(name: str) -> str:
    """Return the return type of a function, if the operator of that name returns one tensor."""
    return "Tensor" if name in _tensors() else "Any"


@functools.cache
def _tensors() -> frozenset[str]:
    """Return the names of functions that return one tensor."""
    text = (PACKAGE / "operators" / "typed.pyi").read_text()
    found = re.findall(r"^def (\w+)\(.*?\) -> (.*?):", text, re.MULTILINE | re.DOTALL)
    return frozenset(name for name, returned in found if returned == "Tensor") | MAKERS


def _bound(module: types.ModuleType) -> set[str]:
    """Return the names that a type checker finds in a module itself."""
    assert module.__file__ is not None
    names: set[str] = set()
    for node in ast.parse(Path(module.__file__).read_text()).body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names.update(alias.asname or alias.name for alias in node.names)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names.update(target.id for target in node.targets if isinstance(target, ast.Name))
    return names
