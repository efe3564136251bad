"""The names that code uses: variables, attributes, imports, and strings that may be such names."""

from __future__ import annotations

import dis
import re
import types
import weakref
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

LOOKING_UP: Final = frozenset({"globals", "eval", "exec"})
BARE_EXCEPT: Final = "<except>"  # represents an `except` without a class among the names of code
TEXTS: Final = frozenset({"eval", "exec"})  # functions for which strings may name variables
# Names through which code accesses attributes without naming them, and functions that do so if a name is computed.
REFLECTING: Final = frozenset("vars dir __dict__ __getattribute__ attrgetter methodcaller getmembers".split())
ATTRIBUTE_FUNCTIONS: Final = frozenset({"getattr", "hasattr"})
OF_MODULES: Final = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")  # instructions that look up global names
LOADING: Final = (*OF_MODULES, "LOAD_FAST", "LOAD_FAST_BORROW", "LOAD_DEREF")
INTEGERS: Final = ("LOAD_CONST", "LOAD_SMALL_INT")  # instructions that may load the level of a relative import


class CodeNames(NamedTuple):
    """The names used by a code object and the code objects nested in it.

    Arguments:
        variables: names looked up in the module of the function.
        names: names of attributes, and strings that may be such names.
        imports: the level and the module name of each `import`.
        attributes: pairs of a variable and an attribute of it, by name.
        reflects: whether attributes may be looked up by computed names.
        computes: whether variables may be looked up by computed names, or code that is not constant may be run.
    """

    variables: tuple[str, ...]
    names: tuple[str, ...]
    imports: tuple[tuple[int, str], ...]
    attributes: frozenset[tuple[str, str]]
    reflects: bool
    computes: bool

    @property
    def looks_up(self) -> bool:
        """True if names of variables may be computed, or occur in a string."""
        return not LOOKING_UP.isdisjoint(self.names)


_names: Final = weakref.WeakKeyDictionary[types.CodeType, CodeNames]()


def names_in(code: types.CodeType) -> CodeNames:
    """Return the names in a code object and the code objects inside it."""
    found = _names.get(code)
    if found is None:
        variables: dict[str, None] = {}
        names = dict.fromkeys(code.co_names)
        imports: dict[tuple[int, str], None] = {}
        attributes: set[tuple[str, str]] = set()
        variable = ""  # the name of the variable loaded by the last instruction
        level = 0
        before = ""  # the name of the last instruction
        instructions = list(dis.get_instructions(code))
        computes = not LOOKING_UP.isdisjoint(names) and _computes_variables(instructions)
        reflects = computes or not REFLECTING.isdisjoint(names) or _computes_names(instructions)
        for each in instructions:
            if each.opname == "MATCH_CLASS":
                names["__match_args__"] = None
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
                reflects |= inner.reflects
                computes |= inner.computes
            elif isinstance(constant, str):
                named = _names_in_text(constant, not TEXTS.isdisjoint(names))
                names.update(dict.fromkeys(named.names))
                reflects |= named.reflects
        found = _names[code] = CodeNames(
            tuple(variables), tuple(names), tuple(imports), frozenset(attributes), reflects, computes
        )
    return found


class TextNames(NamedTuple):
    """Names found in a string, with a flag that is true if the string starts a format that may yield other names."""

    names: Sequence[str]
    reflects: bool = False


def _names_in_text(text: str, is_code: bool) -> TextNames:
    """Return the attribute names that a string may represent: dotted names, formats, or code."""
    parts = text.split(".")
    if all(map(str.isidentifier, parts)):
        return TextNames(parts)
    if is_code:
        return TextNames(re.findall(r"[^\W\d]\w*", text))
    names = ["FORMAT"] if re.search("%[-0-9.]*[sra]", text) else []
    if "{" in text:  # "{0.name}".format
        names += re.findall(r"\.([^\W\d]\w*)", text)
    return TextNames(names, re.search(r"{[^}]*\.\w*$", text) is not None)


def _computes_names(instructions: Sequence[dis.Instruction]) -> bool:
    """Return whether `getattr` or `hasattr` is called with a name that is not constant, or used in another way."""
    for number, each in enumerate(instructions, 1):
        is_call = each.opname in OF_MODULES and each.argval in ATTRIBUTE_FUNCTIONS
        if is_call and not _has_constant_name(instructions[number:]):
            return True
    return False


def _computes_variables(instructions: Sequence[dis.Instruction]) -> bool:
    """Return whether `globals` is used in ways other than `globals()["name"]`, or `eval` and `exec` without a literal.
    """
    steps = [each for each in instructions if each.opname not in ("CACHE", "NOP", "PUSH_NULL", "PRECALL", "RESUME")]
    for number, each in enumerate(steps, 1):
        if each.argval not in LOOKING_UP or each.opname not in OF_MODULES:
            continue
        following = [step.opname for step in steps[number : number + 3]]
        is_item = following[:2] == ["CALL", "LOAD_CONST"] and following[2].startswith("BINARY")
        is_get = following[:1] == ["CALL"] and following[2:] == ["LOAD_CONST"] and steps[number + 1].argval == "get"
        is_alone = following[:1] == ["LOAD_CONST"] and following[1] == "CALL"
        is_first = following[:1] == ["LOAD_CONST"] and following[1] in LOADING
        is_text = is_alone or (is_first and following[2].startswith(("CALL", "LOAD")))
        if not ((is_item or is_get) if each.argval == "globals" else is_text):
            return True
    return False


def _has_constant_name(instructions: Sequence[dis.Instruction]) -> bool:
    """Return whether the second argument of a call, whose function was just loaded, is a constant."""
    depth = 0  # the number of arguments on the stack
    is_constant = False  # whether the second one is on the stack and constant
    for each in instructions:
        if is_constant and each.opname in ("PRECALL", "CALL") and each.arg == depth:
            return True
        before = depth
        depth += dis.stack_effect(each.opcode, each.arg if each.opcode >= dis.HAVE_ARGUMENT else None)
        if is_constant and depth <= 2 and each.opname not in ("CACHE", "NOP"):  # it was an operand
            return False
        is_constant = is_constant or (each.opname == "LOAD_CONST" and (before, depth) == (1, 2))
        if depth < 0 or each.opname.startswith(("JUMP", "POP_JUMP", "RETURN")):
            return False
    return False


def package_of_globals(variables: dict[str, Any]) -> str:
    """Return the package relative to which a module's functions import, as determined by `__import__`."""
    package = variables.get("__package__")
    if package is None:
        package = getattr(variables.get("__spec__"), "parent", None)
    if package is None:
        package = variables.get("__name__", "")
        if "__path__" not in variables:
            package = package.rpartition(".")[0]
    return str(package)
