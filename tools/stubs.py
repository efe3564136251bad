"""The types of the operators for checkers and editors, written from the declarations.

`python tools/stubs.py` writes two stub files: `viewgrad/operators/typed.pyi`, the functions, and
`viewgrad/tensor/methods.pyi`, the methods that operators are on `Tensor`. Nothing imports them when a program runs. It
writes the docstrings too; see `docstrings.py`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from docstrings import DOCSTRINGS_FILE, docstrings_file
from namespace_stubs import namespace_stubs

import viewgrad
from viewgrad.operators import OPERATORS
from viewgrad.operators.composites import COMPOSITES
from viewgrad.operators.language.spec import Argument, Operator
from viewgrad.operators.numpy_api.reductions import REDUCTIONS
from viewgrad.standard.functions import ALIASES
from viewgrad.standard.public import common_function
from viewgrad.tensor.tensor import Tensor

__all__ = ["functions_stub", "methods_stub", "written_stubs"]

PACKAGE: Final = Path(viewgrad.__file__).parent
FUNCTIONS_FILE: Final = PACKAGE / "operators" / "typed.pyi"
METHODS_FILE: Final = PACKAGE / "tensor" / "methods.pyi"

HEADER: Final = '''"""{subject} Written by `python tools/stubs.py`; do not edit."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from {tensor}.node import RemovableHandle
from {tensor}.tensor import Tensor

_Number: TypeAlias = bool | int | float | complex | np.generic
_TensorLike: TypeAlias = Tensor | np.ndarray[Any, Any] | _Number | Sequence[Any]
_Axis: TypeAlias = int | tuple[int, ...] | None
'''

# The types of options by name, regardless of their defaults.
NAMED: Final = {
    "axis": "_Axis",
    "axes": "int | Sequence[int] | Sequence[Sequence[int]] | None",
    "dim": "_Axis",
    "dtype": "npt.DTypeLike | None",
    "keepdims": "bool",
    "keepdim": "bool",
    "shape": "int | tuple[int, ...]",
    "ddof": "float",
    "norm": 'Literal["backward", "ortho", "forward"] | None',
    "reduction": 'Literal["none", "mean", "sum"]',
    "n": "int | None",
    **dict.fromkeys(("initial", "out", "where"), "Any"),
    **dict.fromkeys(("axis1", "axis2", "decimals", "dim1", "dim2", "k", "minlength", "num_classes", "offset"), "int"),
}
OF_DEFAULTS: Final = {bool: "bool", float: "float", str: "str"}  # an int may stand for any number


def functions_stub() -> str:
    """Return the text of the stub file of the functions."""
    parts = [HEADER.format(subject="The operators as functions.", tensor="..tensor")]
    for name, operator in sorted(OPERATORS.items()):
        if name[0] == "_":
            continue
        if not operator.user_defined and name not in COMPOSITES and name not in REDUCTIONS:
            arguments = _public(name) or _arguments(operator)
            parts.append(_definition(name, arguments, _result(operator), operator.doc))
    for name, function in sorted((COMPOSITES | REDUCTIONS).items()):
        arguments = _public(name) or _parameters(function)
        parts.append(_definition(name, arguments, _returned(function), inspect.getdoc(function) or ""))
    parts += [f"{alias} = {name}" for alias, name in ALIASES.items()]
    return "\n".join(parts) + "\n"


def methods_stub() -> str:
    """Return the text of the stub file of the methods."""
    parts = [HEADER.format(subject="The operators as methods of a tensor.", tensor=""), "class OperatorMethods:"]
    for name, function in sorted(_methods()):
        operator = OPERATORS.get(name.removesuffix("_"))
        if operator is not None and function in (operator.function, operator.inplace_function):
            described = _definition(name, _arguments(operator, method=True), _result(operator), operator.doc)
        else:
            text = _parameters(function, method=True)
            described = _definition(name, text, _returned(function), inspect.getdoc(function) or "")
        parts.append("".join(f"    {line}\n" if line else "\n" for line in described.splitlines()))
    for name, value in sorted(vars(Tensor).items()):
        if isinstance(value, property) and value.fget is not None and _is_attached(value.fget):
            parts.append(_property(name, value))
    return "\n".join(parts)


def written_stubs() -> Mapping[Path, str]:
    """Return the stub files and the file of docstrings, with their contents."""
    types = {
        name: {each.name: _type_of(each) for each in operator.signature.arguments} | {"return": _result(operator)}
        for name, operator in OPERATORS.items()
    }
    return {
        FUNCTIONS_FILE: functions_stub(),
        METHODS_FILE: methods_stub(),
        DOCSTRINGS_FILE: docstrings_file(types),
        **namespace_stubs(),
    }


def _public(name: str) -> str:
    """Return the parameters of the NumPy function of a name; empty if `viewgrad` has no such name."""
    function = common_function(getattr(np, name, None))
    return "" if function is None else _parameters(function)


def _methods() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Return the methods attached to `Tensor` after its definition, except those of Python's protocols."""
    for name, value in vars(Tensor).items():
        if name.startswith("__") or not inspect.isfunction(value):
            continue
        if _is_attached(value):
            yield name, value


def _is_attached(function: Callable[..., Any]) -> bool:
    """Return whether a method was attached to `Tensor` after the class was defined."""
    return not (function.__qualname__.startswith("Tensor.") and function.__module__ == Tensor.__module__)


def _property(name: str, value: property) -> str:
    """Return the declaration of a property, and of its setter if it has one."""
    stated = getattr(value.fget, "__annotations__", {}).get("return")
    result = stated if isinstance(stated, str) and _is_plain(stated) else "Tensor"
    lines = ["    @property", f"    def {name}(self) -> {result}:", f'        """{inspect.getdoc(value)}"""', ""]
    if value.fset is not None:
        lines += [f"    @{name}.setter", f"    def {name}(self, value: _TensorLike) -> None: ...", ""]
    return "\n".join(lines)


def _definition(name: str, arguments: str, result: str, doc: str) -> str:
    lines = inspect.cleandoc(doc).splitlines() or [""]
    body = [f'    """{lines[0]}', *(f"    {line}" if line else "" for line in lines[1:])]
    body[-1] += '"""' if len(body) == 1 else ""
    if len(body) > 1:
        body.append('    """')
    return "\n".join([f"def {name}({arguments}) -> {result}:", *body, ""])


def _arguments(operator: Operator, method: bool = False) -> str:
    """Return the arguments of a row, with their types."""
    parts = []
    starred = False
    for position, argument in enumerate(operator.signature.arguments):
        if method and not position:
            parts.append("self")
            continue
        if argument.keyword_only and not starred:
            parts.append("*")
            starred = True
        default = "" if argument.default is None else f" = {argument.default}"
        parts.append(f"{argument.name}: {_type_of(argument)}{default}")
    for theirs, ours in operator.signature.torch_names.items():
        if not starred:
            parts.append("*")
            starred = True
        parts.append(f"{theirs}: {_type_of(operator.signature.argument(ours))} | None = None")
    return ", ".join(parts)


def _type_of(argument: Argument) -> str:
    if argument.kind == "tensors":
        return "Sequence[_TensorLike]"
    if argument.kind == "tensor":
        return "_TensorLike | None" if argument.optional else "_TensorLike"
    if argument.default is None:
        return _option(argument.name, inspect.Parameter.empty)
    return _option(argument.name, eval(argument.default, {"__builtins__": {}}))


def _option(name: str, default: Any) -> str:
    """Return the type of an option with this name and default."""
    stated = NAMED.get(name, OF_DEFAULTS.get(type(default), "Any"))
    return f"{stated} | None" if default is None and stated in ("bool", "int", "float") else stated


def _result(operator: Operator) -> str:
    outputs = operator.signature.outputs
    return "Tensor" if len(outputs) == 1 else f"tuple[{', '.join(['Tensor'] * len(outputs))}]"


def _parameters(function: Callable[..., Any], method: bool = False) -> str:
    """Return the parameters of a composite function, with their declared or inferred types."""
    parts = []
    state = ""
    for position, parameter in enumerate(inspect.signature(function).parameters.values()):
        if state == "positional only" and parameter.kind != parameter.POSITIONAL_ONLY:
            parts.append("/")
        state = "positional only" if parameter.kind == parameter.POSITIONAL_ONLY else state and "passed"
        if parameter.kind == parameter.KEYWORD_ONLY and "*" not in [part[:1] for part in parts]:
            parts.append("*")
        if method and not position:
            parts.append("self")
            continue
        stars = "*" if parameter.kind == parameter.VAR_POSITIONAL else ""
        if parameter.kind == parameter.VAR_KEYWORD:
            stars = "**"
        default = "" if parameter.default is parameter.empty else f" = {_shown(parameter.default)}"
        named = "other" if method and parameter.name == "self" else parameter.name
        parts.append(f"{stars}{named}: {_annotation(parameter, position)}{default}")
    if state == "positional only":
        parts.append("/")
    return ", ".join(parts)


def _shown(default: Any) -> str:
    return repr(default) if isinstance(default, (bool, int, float, str, tuple, type(None))) else "..."


def _annotation(parameter: inspect.Parameter, position: int) -> str:
    stated = parameter.annotation
    if isinstance(stated, str) and stated not in ("Any", "") and _is_plain(stated):
        return stated
    if not position and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        return "_TensorLike"
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        return "Any"
    return _option(parameter.name, parameter.default)


def _is_plain(annotation: str) -> bool:
    """Return whether a stub file knows all the names of an annotation."""
    words = "".join(letter if letter.isalnum() or letter == "_" else " " for letter in annotation).split()
    known = "bool int float str complex bytes None tuple list Tensor RemovableHandle Any Sequence Callable".split()
    return all(word in known or word.isdigit() for word in words)


def _returned(function: Callable[..., Any]) -> str:
    stated = inspect.signature(function).return_annotation
    return stated if isinstance(stated, str) and stated != "Any" and _is_plain(stated) else "Tensor"


def main() -> None:
    """Write the stub files."""
    for path, text in written_stubs().items():
        path.write_text(text)


if __name__ == "__main__":
    main()
