"""The names that code uses: variables, attributes, imports, and strings that could be such names."""

from __future__ import annotations

import dis
import re
import types
import weakref
from typing import Any, Final, NamedTuple

LOOKING_UP: Final = frozenset({"globals", "eval", "exec"})
BARE_EXCEPT: Final = "<except>"  # stands among the names of code for an `except` without a class
TEXTS: Final = frozenset({"eval", "exec"})  # functions for which strings may name variables
OF_MODULES: Final = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")  # instructions that look up global names
INTEGERS: Final = ("LOAD_CONST", "LOAD_SMALL_INT")  # instructions that may load the level of a relative import


class CodeNames(NamedTuple):
    """The names that a code object, and those nested in it, use.

    Arguments:
        variables: names that are looked up in the module of the function.
        names: names of attributes, and strings that could be such names.
        imports: the level and the module name of each `import`.
        attributes: pairs of a variable and an attribute of it, by name.
    """

    variables: tuple[str, ...]
    names: tuple[str, ...]
    imports: tuple[tuple[int, str], ...]
    attributes: frozenset[tuple[str, str]]

    @property
    def looks_up(self) -> bool:
        """Return whether names of variables may be computed, or occur in a string."""
        return not LOOKING_UP.isdisjoint(self.names)


_names: Final = weakref.WeakKeyDictionary[types.CodeType, CodeNames]()


def names_in(code: types.CodeType) -> CodeNames:
    """Return the names in a code object and in those inside it."""
    found = _names.get(code)
    if found is None:
        variables: dict[str, None] = {}
        names = dict.fromkeys(code.co_names)
        imports: dict[tuple[int, str], None] = {}
        attributes: set[tuple[str, str]] = set()
        variable = ""  # the name of the variable that the last instruction has loaded
        level = 0
        before = ""  # the name of the last instruction
        for each in dis.get_instructions(code):
            if each.opname == "POP_TOP" and before == "PUSH_EXC_INFO":
                names[BARE_EXCEPT] = None
            before = each.opname
            if each.opname in OF_MODULES:
                variables[str(each.argval)] = None
            elif each.opname == "IMPORT_NAME":
                imports[level, str(each.argval)] = None
            elif isinstance(each.argval, int) and each.opname in INTEGERS:
                level = each.argval
            if each.opname in ("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR", "IMPORT_FROM"):
                attributes.add((variable, str(each.argval)))
            elif each.opname.startswith("FORMAT_"):
                names["FORMAT"] = None
            if each.opname not in ("CACHE", "NOP"):
                variable = str(each.argval) if each.opname.startswith("LOAD_") else ""
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                inner = names_in(constant)
                variables.update(dict.fromkeys(inner.variables))
                names.update(dict.fromkeys(inner.names))
                imports.update(dict.fromkeys(inner.imports))
                attributes |= inner.attributes
            elif isinstance(constant, str) and constant.isidentifier():
                names[constant] = None
            elif isinstance(constant, str) and re.search("%[-0-9.]*[sra]", constant):
                names["FORMAT"] = None
            elif isinstance(constant, str) and not TEXTS.isdisjoint(names):
                names.update(dict.fromkeys(re.findall(r"[^\W\d]\w*", constant)))
        found = _names[code] = CodeNames(tuple(variables), tuple(names), tuple(imports), frozenset(attributes))
    return found


def package_of_globals(variables: dict[str, Any]) -> str:
    """Return the package that the relative imports of a module's functions begin at, as `__import__` finds it."""
    package = variables.get("__package__")
    if package is None:
        package = getattr(variables.get("__spec__"), "parent", None)
    if package is None:
        package = variables.get("__name__", "")
        if "__path__" not in variables:
            package = package.rpartition(".")[0]
    return str(package)
