"""The operator as Python code for a fresh interpreter: its import, or the source of everything it needs."""

from __future__ import annotations

import ast
import builtins
import dis
import enum
import functools
import inspect
import linecache
import re
import sys
import sysconfig
import textwrap
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import viewgrad

from ...operators.define import OPERATORS
from ...operators.language.namespace import TENSOR_FUNCTIONS
from ...operators.language.spec import Operator
from .literals import NoLiteral, literal
from .sources import source_text

HEADER = ("import numpy as np", "import viewgrad as vg", "from viewgrad.autograd import forward_ad, grad")


def definition_of(name: str, thing: Any, apply: str = "") -> list[str]:
    """Return the lines that bind `name` to an operator, or to a function passed as one.

    Arguments:
        name: its name in the program.
        thing: a function, a class, a declared operator, an object.
        apply: the attribute to use: ".apply", ".inplace".

    Returns:
        Lines of Python, or a comment that states what is missing if there are none.
    """
    imported = _imported(thing)
    if imported is not None:
        return [*imported[0], f"{name} = {imported[1]}{apply}"]
    try:
        return source_of(name, thing, apply)
    except (NoLiteral, OSError, TypeError, SyntaxError, LookupError) as error:
        return [f"{name} = ...  # put it here: its source could not be found ({error})"]


def source_of(name: str, thing: Any, apply: str = "", inline: bool = False) -> list[str]:
    """Return the lines that define an operator without importing it.

    Arguments:
        name: its name in the program.
        thing: the operator.
        apply: the attribute to use: ".apply", ".inplace".
        inline: whether to define its dependencies from modules that are not installed again.

    Raises:
        NoLiteral, OSError, TypeError, SyntaxError: if its source, or the source of a dependency, cannot be found.
    """
    writer = SourceWriter(thing, inline)
    expression = writer.value(thing, name if not apply else "")
    lines = [*writer.imports, *writer.lines]
    if expression != name or apply:
        lines.append(f"{name} = {expression}{apply}")
    return lines


def _imported(thing: Any) -> tuple[list[str], str] | None:
    """Return the lines that import an object, and its name afterwards; None if no module contains it."""
    owners: list[tuple[str, Any]] = [("vg", viewgrad), ("vg.Tensor", viewgrad.Tensor)]
    for owner_name, owner in owners:
        for key, value in vars(owner).items():
            if value is thing:
                return [], f"{owner_name}.{key}"
    name = getattr(thing, "__qualname__", "")
    candidates: list[tuple[str, str]] = []
    module_name = getattr(thing, "__module__", None)
    if module_name and name and "<" not in name:
        candidates.append((module_name, name))
    if isinstance(thing, Operator):
        for module_name, module in list(sys.modules.items()):
            if not isinstance(module, types.ModuleType) or module_name.split(".")[0] == "viewgrad":
                continue
            candidates += [(module_name, key) for key, value in list(vars(module).items()) if value is thing]
    if isinstance(thing, np.ufunc):  # it does not know its module
        candidates.append(("scipy.special", thing.__name__))
    for module_name, path in candidates:
        if module_name == "__main__" or module_name not in sys.modules:
            continue
        found: Any = sys.modules[module_name]
        try:
            for part in path.split("."):
                found = getattr(found, part)
        except AttributeError:
            continue
        if found is not thing:
            continue
        entry = _needs_path(sys.modules[module_name])
        if entry is None:
            continue
        head, *rest = path.split(".")
        lines = [f"import sys; sys.path.insert(0, {entry!r})"] if entry else []
        return [*lines, f"from {module_name} import {head}"], ".".join([head, *rest])
    return None


def _needs_path(module: types.ModuleType) -> str | None:
    """Return the folder that must be on the path to import a module; "" if none is needed, None if none works."""
    file = getattr(module, "__file__", None)
    if module.__name__.split(".")[0] == "viewgrad":
        return ""
    if file is None:
        return "" if module.__name__ in sys.builtin_module_names else None
    path = Path(file).resolve()
    folder = path.parent
    for _ in range(module.__name__.count(".") + (path.name == "__init__.py")):
        folder = folder.parent
    expected = folder / Path(*module.__name__.split("."))
    if expected.with_suffix(".py") != path and expected / "__init__.py" != path:
        return None
    installed = {sysconfig.get_paths()[key] for key in ("stdlib", "platstdlib", "purelib", "platlib")}
    return "" if str(folder) in installed else str(folder)


class SourceWriter:
    """Write the source of functions and classes, each definition once.

    Attributes:
        imports: the import lines.
        lines: the definitions, in an order in which they can be executed.
    """

    def __init__(self, written: Any = None, inline: bool = False) -> None:
        self._written = written  # this definition is not imported
        self._inline = inline  # definitions found only through a path are not imported either
        self.imports: list[str] = []
        self.lines: list[str] = []
        self._names: dict[int, str] = {}
        self._kept: list[Any] = []
        self._bound: set[str] = {"np", "vg", "grad", "forward_ad"}

    def value(self, thing: Any, name: str = "") -> str:
        """Return an expression for any value; if it needs a name, `name` is used if given."""
        if id(thing) in self._names:
            return self._names[id(thing)]
        if isinstance(thing, types.ModuleType):
            return self._module(thing, name)
        if thing is viewgrad.autograd.grad:
            return "grad"
        if isinstance(thing, enum.Enum):
            return f"{self.value(type(thing))}.{thing.name}"
        if isinstance(thing, Operator):
            imported = _imported(thing)
            return imported[1] if imported is not None and not imported[0] else self._operator(thing)
        if isinstance(thing, types.MethodType):
            owner = self.value(thing.__self__)
            return f"{owner}.{thing.__func__.__name__}"
        if isinstance(thing, types.FunctionType | types.BuiltinFunctionType | type | np.ufunc) or _is_array_function(
            thing
        ):
            return self._function(thing, name)
        if isinstance(thing, functools.partial):
            rest = [
                self.value(thing.func),
                *map(self.value, thing.args),
                *(f"{k}={self.value(v)}" for k, v in thing.keywords.items()),
            ]
            self._import("import functools")
            return f"functools.partial({', '.join(rest)})"
        wrapped: Any = getattr(thing, "__wrapped__", None)
        if isinstance(thing, functools._lru_cache_wrapper):
            self._import("import functools")
            return self._bind(
                thing,
                f"functools.lru_cache(None)({self.value(wrapped)})",
                name or str(getattr(wrapped, "__name__", "")),
            )
        try:
            text = literal(thing)
        except NoLiteral:
            return self._instance(thing, name)
        return text if len(text) < 20 and not name else self._bind(thing, text, name or self._new_name("value"))

    def _new_name(self, stem: str) -> str:
        """Return an unused name."""
        number = len(self.lines)
        while f"{stem}{number}" in self._bound:
            number += 1
        self._bound.add(f"{stem}{number}")
        return f"{stem}{number}"

    def _bind(self, thing: Any, text: str, name: str) -> str:
        self._names[id(thing)] = name
        self._kept.append(thing)
        if text != name:
            self.lines.append(f"{name} = {text}")
        self._bound.add(name)
        return name

    def _import(self, line: str) -> None:
        if line not in self.imports:
            self.imports.append(line)

    def _module(self, module: types.ModuleType, name: str) -> str:
        standard = {"numpy": "np", "viewgrad": "vg"}
        name = name or standard.get(module.__name__, module.__name__.split(".")[-1])
        if standard.get(module.__name__) != name:
            self._import(f"import {module.__name__} as {name}" if name != module.__name__ else f"import {name}")
        self._names[id(module)] = name
        return name

    def _function(self, thing: Any, name: str) -> str:
        imported = None if thing is self._written else _imported(thing)
        if self._inline and imported is not None and any("sys.path" in line for line in imported[0]):
            try:
                _class_text(thing) if isinstance(thing, type) else _function_text(thing)
                imported = None
            except (NoLiteral, OSError, TypeError, SyntaxError, AttributeError):
                pass
        if imported is not None:
            for line in imported[0]:
                self._import(line)
            if name and name != imported[1]:
                return self._bind(thing, imported[1], name)
            return imported[1]
        if isinstance(thing, np.ufunc):
            return literal(thing)
        if getattr(builtins, getattr(thing, "__name__", ""), None) is thing:
            return str(getattr(thing, "__name__", ""))
        if isinstance(thing, type):
            return self._class(thing, name)
        return self._plain_function(thing, name)

    def _plain_function(self, function: types.FunctionType, name: str) -> str:
        inner = None if _wraps_another(function) else getattr(function, "__wrapped__", None)
        text, own = _function_text(function)
        own = own or name or self._new_name("function")
        self._names[id(function)] = own
        self._kept.append(function)
        codes = [function.__code__]
        namespace = dict(function.__globals__)
        for wrapped in (function, inner):
            if isinstance(wrapped, types.FunctionType):
                namespace |= _closure(wrapped)
        if inner is not None and isinstance(inner, types.FunctionType):
            codes.append(inner.__code__)
        self._need(_names_in(text), namespace)
        if text.lstrip().startswith("lambda"):
            self.lines.append(f"{own} = {text}")
        else:
            self.lines.append(_free(text))
        self._bound.add(own)
        if name and name != own:
            return self._bind(function, own, name)
        return own

    def _class(self, cls: type, name: str) -> str:
        text = _undecorated(_class_text(cls))
        self._names[id(cls)] = cls.__name__
        namespace: dict[str, Any] = dict(vars(sys.modules.get(cls.__module__, builtins)))
        for member in vars(cls).values():
            member = getattr(member, "__func__", member)
            while getattr(member, "__wrapped__", None) is not None:
                namespace |= _closure(member) if isinstance(member, types.FunctionType) else {}
                member = member.__wrapped__
            if isinstance(member, types.FunctionType):
                namespace |= member.__globals__ | _closure(member)
        for base in cls.__bases__:
            namespace.setdefault(base.__name__, base)
        namespace.pop(cls.__name__, None)
        self._need(_names_in(text), namespace)
        self.lines.append(_free(text))
        if name and name != cls.__name__:
            return self._bind(cls, cls.__name__, name)
        return cls.__name__

    def _instance(self, thing: Any, name: str) -> str:
        cls = self.value(type(thing))
        own = name or self._new_name("value")
        self._names[id(thing)] = own
        self._kept.append(thing)
        slots = _slots_of(thing)
        if not hasattr(thing, "__dict__") and not slots:
            raise NoLiteral(f"{type(thing).__name__} has no source")
        state = [f"{key!r}: {self.value(item)}" for key, item in getattr(thing, "__dict__", {}).items()]
        values = [(key, self.value(item)) for key, item in slots.items()]
        self.lines.append(f"{own} = {cls}.__new__({cls})")
        if state:
            self.lines.append(f"{own}.__dict__.update({{{', '.join(state)}}})")
        self.lines += [f"object.__setattr__({own}, {key!r}, {value})" for key, value in values]
        return own

    def _need(self, names: Iterator[str] | list[str], namespace: dict[str, Any]) -> None:
        """Bind the names that a source text uses."""
        for name in names:
            if name not in namespace or (name in ("np", "vg", "grad", "forward_ad") and name in self._bound):
                continue
            value = namespace[name]
            if getattr(builtins, name, None) is value or name in self._bound or name.startswith("__"):
                continue
            self._bound.add(name)
            text = self.value(value, name)
            if text != name:
                self.lines.append(f"{name} = {text}")

    def _inplace(self, operator: Operator) -> str:
        declared = operator.inplace_declaration
        if declared is None:
            return "True"
        formulas = {", ".join(formula.inputs): formula.text for formula in declared.formulas}
        return f"vg.autograd.InPlace(forward={self.value(declared.forward)}, derivatives={formulas!r})"

    def _operator(self, operator: Operator) -> str:
        signature = operator.signature
        inplace = operator.inplace_declaration
        for formula in (*operator.formulas, *(() if inplace is None else inplace.formulas)):
            for called in formula.functions:
                if called not in OPERATORS and not hasattr(viewgrad, called) and called in vars(TENSOR_FUNCTIONS):
                    function = vars(TENSOR_FUNCTIONS)[called]
                    if (
                        called not in self._bound
                        and isinstance(function, types.FunctionType)
                        and not (function.__module__ or "").startswith("viewgrad")
                    ):
                        text = self.value(inspect.unwrap(function), called)
                        self.lines.append(f"vg.autograd.formula_function({text})")
        derivatives = {", ".join(formula.inputs): formula.text for formula in operator.formulas}
        known = {name for formula in operator.formulas for name in formula.inputs}
        derivatives |= {a.name: "not_differentiable" for a in signature.tensors if a.name not in known}
        parts = [repr(str(signature)), f"forward={self.value(operator.forward)}", f"derivatives={derivatives!r}"]
        if operator.forward_derivative is not None:
            parts.append(f"forward_derivative={operator.forward_derivative!r}")
        if operator.has_inplace:
            parts.append(f"inplace={self._inplace(operator)}")
        parts.append(f"elementwise={operator.elementwise!r}")
        if operator.nondifferentiable_outputs:
            parts.append(f"nondifferentiable_outputs={list(operator.nondifferentiable_outputs)!r}")
        lists = [a.name for a in signature.tensors if a.kind == "tensors"]
        if lists:
            parts.append(f"lists={lists!r}")
        name = signature.name
        inner = "".join(f"    {part},\n" for part in parts)
        self.lines.append(f"{name} = vg.autograd.define_op(\n{inner})")
        self._names[id(operator)] = name
        self._kept.append(operator)
        self._bound.add(name)
        return name


def _is_array_function(thing: Any) -> bool:
    return callable(thing) and getattr(thing, "__module__", "").split(".")[0] == "numpy" and hasattr(thing, "__name__")


def _closure(function: Callable[..., Any]) -> dict[str, Any]:
    cells = getattr(function, "__closure__", None) or ()
    found = {}
    for name, cell in zip(function.__code__.co_freevars, cells, strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:
            continue
    return found


def _names_in(text: str) -> list[str]:
    """Return the free names of a source text, in order."""
    code = compile(_free(text.strip() if text.lstrip().startswith("lambda") else text), "<text of an operator>", "exec")
    names: list[str] = []

    def look(code: types.CodeType) -> None:
        for step in dis.get_instructions(code):
            if step.opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS", "STORE_GLOBAL"):
                names.append(str(step.argval))
        for value in code.co_consts:
            if isinstance(value, types.CodeType):
                look(value)

    look(code)
    return list(dict.fromkeys(names))


def _free(text: str) -> str:
    """Return a nested function as a global one, with its closure as global variables."""
    return re.sub(r"\bnonlocal\b", "global", text.rstrip())


def _function_text(function: types.FunctionType) -> tuple[str, str]:
    """Return the source of a function and its name; for a lambda, the expression and ""."""
    if _wraps_another(function):
        if function.__code__.co_name == "<lambda>":
            return _lambda_text(function), ""
        return _undecorated(textwrap.dedent(source_text(function.__code__))), function.__code__.co_name
    source = textwrap.dedent(source_text(function))
    if not hasattr(function, "__wrapped__"):
        source = _undecorated(source)
    if function.__name__ != "<lambda>":
        return source, function.__name__
    return _lambda_text(function), ""


def _wraps_another(function: types.FunctionType) -> bool:
    """Return whether a function wraps another one without being the decorator of its definition."""
    inner = getattr(function, "__wrapped__", None)
    if not isinstance(inner, types.FunctionType):
        return False
    return not textwrap.dedent(source_text(inner)).startswith("@")


def _class_text(cls: type) -> str:
    """Return the source of a class; for a class entered interactively, the source of the input with its functions."""
    try:
        return textwrap.dedent(source_text(cls))
    except (OSError, TypeError):
        codes = [getattr(getattr(member, "__func__", member), "__code__", None) for member in vars(cls).values()]
        code = next((code for code in codes if code is not None), None)
        lines = linecache.getlines(code.co_filename) if code is not None else []
        for node in ast.walk(ast.parse("".join(lines))):
            if isinstance(node, ast.ClassDef) and node.name == cls.__name__:
                return textwrap.dedent("".join(lines[node.lineno - 1 : node.end_lineno]))
        raise


def _undecorated(source: str) -> str:
    """Return a definition without its decorators."""
    if not source.startswith("@"):
        return source
    definition = ast.parse(source).body[0]
    if not isinstance(definition, ast.FunctionDef | ast.ClassDef):
        return source
    kept = [ast.unparse(d) for d in definition.decorator_list]
    if isinstance(definition, ast.ClassDef) and any(re.search(r"attr|dataclass|define|frozen", text) for text in kept):
        return source
    return "".join(source.splitlines(keepends=True)[definition.lineno - 1 :])


def _lambda_text(function: types.FunctionType) -> str:
    """Return the source of a lambda, located in its file by the positions of its instructions."""
    lines, _ = inspect.findsource(function)
    tree = ast.parse("".join(lines))
    code = function.__code__
    places = [place for place in code.co_positions() if None not in place and place[2] != place[3]]
    inside = [(line, column) for line, _, column, _ in places]
    best: ast.Lambda | None = None
    for node in ast.walk(tree):
        if not isinstance(node, ast.Lambda) or node.end_lineno is None:
            continue
        body = node.body
        start, end = (body.lineno, body.col_offset), (body.end_lineno or 0, body.end_col_offset or 0)
        if inside and all(start <= place <= end for place in inside if place[0]):
            if best is None or (best.lineno, best.col_offset) <= (node.lineno, node.col_offset):
                best = node
    if best is None:
        raise NoLiteral("a lambda whose source could not be found")
    text = ast.get_source_segment("".join(lines), best)
    return f"({text})"[1:-1] if text is not None and "\n" not in text else ast.unparse(best)


def _slots_of(thing: Any) -> dict[str, Any]:
    """Return the values in the slots of an object, by the names under which they can be set."""
    found: dict[str, Any] = {}
    for cls in type(thing).__mro__:
        given = cls.__dict__.get("__slots__", ())
        for name in [given] if isinstance(given, str) else given:
            private = name.startswith("__") and not name.endswith("__")
            name = f"_{cls.__name__.lstrip('_')}{name}" if private else name
            if name not in ("__dict__", "__weakref__") and hasattr(thing, name):
                found[name] = getattr(thing, name)
    return found
