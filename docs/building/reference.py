"""The reference: the page that describes each public name, and its content.

A public name is one in the `__all__` of a public module. Names defined in source files are documented by mkdocstrings;
those generated when the library is imported are described here, from signatures and docstrings.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import posixpath
import re
import types
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import attrs
import calls
import operator_pages

import viewgrad
from viewgrad.operators.define import OPERATORS

__all__ = ["Namespace", "described", "missing", "names_of", "operator_navigation", "pages", "without_example"]


@attrs.frozen
class Namespace:
    """A public module, and the page of its names.

    Arguments:
        module: its name.
        page: the page, without its ending.
        title: of the page.
        as_table: whether to give each name one line: in namespaces that have the names of another library.
    """

    module: str
    page: str
    title: str
    as_table: bool = False


# Without viewgrad.interop, which needs the other libraries: docs/guides/beside-other-libraries.md describes it.
NAMESPACES = (
    Namespace("viewgrad", "viewgrad", "viewgrad"),
    Namespace("viewgrad.autograd", "autograd", "viewgrad.autograd"),
    Namespace("viewgrad.autograd.graph", "graph", "viewgrad.autograd.graph"),
    Namespace("viewgrad.autograd.forward_ad", "forward_ad", "viewgrad.autograd.forward_ad"),
    Namespace("viewgrad.autograd.functional", "functional", "viewgrad.autograd.functional"),
    Namespace("viewgrad.func", "func", "viewgrad.func"),
    Namespace("viewgrad.compiler", "compiler", "viewgrad.compiler"),
    Namespace("viewgrad.symbolic", "symbolic", "viewgrad.symbolic"),
    Namespace("viewgrad.symbolic.passes", "passes", "viewgrad.symbolic.passes"),
    Namespace("viewgrad.drawing", "drawing", "viewgrad.drawing"),
    Namespace("viewgrad.testing", "testing", "viewgrad.testing"),
    Namespace("viewgrad.errors", "errors", "viewgrad.errors"),
    Namespace("viewgrad.linalg", "linalg", "viewgrad.linalg"),
    Namespace("viewgrad.fft", "fft", "viewgrad.fft"),
    Namespace("viewgrad.operators", "operators_module", "viewgrad.operators"),
    Namespace("viewgrad.views", "views", "viewgrad.views"),
    Namespace("viewgrad.numpy", "numpy", "viewgrad.numpy", as_table=True),
    Namespace("viewgrad.numpy.linalg", "numpy_linalg", "viewgrad.numpy.linalg", as_table=True),
    Namespace("viewgrad.numpy.fft", "numpy_fft", "viewgrad.numpy.fft", as_table=True),
    Namespace("viewgrad.numpy.random", "numpy_random", "viewgrad.numpy.random", as_table=True),
    Namespace("viewgrad.math", "math", "viewgrad.math", as_table=True),
    Namespace("viewgrad.torch_names", "torch_names", "viewgrad.torch_names", as_table=True),
    *(
        Namespace(f"viewgrad.{name}", name.replace(".", "_"), f"viewgrad.{name}", as_table=True)
        for name in (
            "numpy.emath", "numpy.ma", "numpy.polynomial", "scipy.constants", "scipy.fft", "scipy.fftpack",
            "scipy.integrate", "scipy.interpolate", "scipy.linalg", "scipy.ndimage", "scipy.optimize",
            "scipy.optimize.elementwise", "scipy.signal", "scipy.sparse", "scipy.sparse.linalg", "scipy.spatial",
            "scipy.spatial.distance", "scipy.spatial.transform", "scipy.special", "scipy.stats",
        )
    ),
)  # fmt: skip
# Values, which have no docstring.
CONSTANTS = {
    "newaxis": "An alias of None, which inserts a dimension of length one when used as an index.",
    "e": "Euler's number.",
    "inf": "Infinity.",
    "nan": "Not a number (NaN).",
    "pi": "The ratio of a circle's circumference to its diameter.",
    "tau": "Twice pi.",
    "euler_gamma": "Euler's constant.",
    "little_endian": "True if the byte order of the machine is little-endian.",
    "__array_api_version__": "The supported version of the array API standard.",
    "masked": "The masked element of an array.",
    "masked_singleton": "An alias of `masked`.",
    "OPERATORS": "All operators by name: see [the operators](operators/index.md).",
    "FEATURES": "The features that `check_feature` can enable, by name.",
    "PROPERTIES": "The properties that `check_operator` checks, by name.",
}


def names_of(namespace: Namespace) -> list[str]:
    """Return the public names of a module, sorted."""
    return sorted(set(importlib.import_module(namespace.module).__all__), key=str.lower)


def missing() -> list[str]:
    """Return the public names that no page describes, or that have no description."""
    found = []
    for namespace in NAMESPACES:
        module = importlib.import_module(namespace.module)
        text = pages()[f"reference/{namespace.page}.md"]
        for name in names_of(namespace):
            if not described(getattr(module, name), name) or f"{namespace.module}.{name}" not in anchors(text):
                found.append(f"{namespace.module}.{name}")
    return found


def anchors(text: str) -> set[str]:
    """Return the anchors of the names described in a page."""
    return set(re.findall(r"(?:\{ ?|\bid=\")#?(viewgrad[\w.]+)\"?", text))


def described(value: Any, name: str) -> str:
    """Return the docstring of a public name, or a sentence in its place."""
    if name in CONSTANTS and not (inspect.isfunction(value) or inspect.ismodule(value)):
        return CONSTANTS[name]
    if inspect.isclass(value) and value.__module__.startswith("viewgrad"):
        return vars(value).get("__doc__") or ""
    if inspect.ismodule(value) and not value.__doc__:
        return f"The names of `{value.__name__}`."
    return inspect.getdoc(value) or ""


def operator_navigation() -> list[tuple[str, str]]:
    """Return the pages of the operators, with their titles."""
    found = [(page, text) for page, text in pages().items() if page.startswith("reference/operators/")]
    return [(page, text.partition("\n")[0].removeprefix("# ")) for page, text in found]


@functools.cache
def pages() -> dict[str, str]:
    """Return the Markdown of the pages of the reference, by their path in the site."""
    made = {f"reference/{namespace.page}.md": _page(namespace) for namespace in NAMESPACES}
    made["reference/tensor.md"] = _tensor_page()
    made["reference/index.md"] = _index()
    families = operator_pages.families()
    made["reference/operators/index.md"] = _operator_index(families)
    made["reference/operators/formula-functions.md"] = operator_pages.formula_functions()
    for family, operators in families.items():
        made[f"reference/operators/{family}.md"] = operator_pages.page(family, operators)
    return made


def _index() -> str:
    lines = ["# Reference", "", "| module | description |", "|---|---|"]
    lines.append("| [`viewgrad.Tensor`](tensor.md) | The array, its attributes and its methods. |")
    for namespace in NAMESPACES:
        module = importlib.import_module(namespace.module)
        lines.append(f"| [`{namespace.module}`]({namespace.page}.md) | {_sentence(described(module, ''))} |")
    lines.append("| [The operators](operators/index.md) | All operators, with the formulas of their gradients. |")
    return "\n".join(lines) + "\n"


def _sentence(doc: str) -> str:
    """Return the first sentence of a docstring; for NumPy's, the line after the signature."""
    parts = [" ".join(part.split()) for part in doc.split("\n\n")]
    signature = re.match(r"[\w.]+\(.*\)( -> .*)?$", parts[0])
    text = parts[1] if signature and len(parts) > 1 else parts[0]
    text = re.match(r"(.*?[.!?])(?=\s|$)|.*", text)[0]  # type: ignore[index]
    return text.replace("|", "\\|").replace("<", "&lt;").replace("[", "\\[").replace("*", "\\*").replace("`_", "`")


# -- pages of names ----------------------------------------------------------------------------------------------------


def _page(namespace: Namespace) -> str:
    module = importlib.import_module(namespace.module)
    lines = [f"# {namespace.title}", "", *_prose(described(module, "")), ""]
    if namespace.as_table:
        return "\n".join([*lines, *_table(namespace, module)]) + "\n"
    sections, table = [], []
    for name in names_of(namespace):
        value = getattr(module, name)
        link = _elsewhere(namespace, name, value)
        if link:
            table.append((name, link, _sentence(described(value, name))))
        else:
            sections += _section(f"{namespace.module}.{name}", value)
    lines += sections
    if table:
        lines += ["## Described elsewhere" if sections else "## Names", "", "| name | description |", "|---|---|"]
        lines += [
            f'| <span id="{namespace.module}.{name}"></span>[`{name}`]({link}) | {doc} |' for name, link, doc in table
        ]
    return "\n".join(lines) + "\n"


def _table(namespace: Namespace, module: types.ModuleType) -> Iterable[str]:
    yield "| name | description |"
    yield "|---|---|"
    for name in names_of(namespace):
        value = getattr(module, name)
        link = _elsewhere(namespace, name, value)
        text = f"[`{name}`]({link})" if link else f"`{name}`"
        yield f'| <span id="{namespace.module}.{name}"></span>{text} | {_sentence(described(value, name))} |'


OPERATOR_OF: dict[int, Any] = {id(operator.function): operator for operator in OPERATORS.values()}


def _elsewhere(namespace: Namespace, name: str, value: Any) -> str:
    """Return the link to the description of a module, an operator, or a name of an earlier namespace; empty if none."""
    for other in NAMESPACES:
        if inspect.ismodule(value) and value.__name__ == other.module:
            return f"{other.page}.md"
    if value is viewgrad.Tensor:
        return "tensor.md"
    operator = OPERATORS.get(name)
    if operator is not None and (id(value) in OPERATOR_OF or value is getattr(viewgrad, name, None)):
        return operator_pages.address_of(operator)
    for other in NAMESPACES:
        if other is namespace:
            return ""
        module = importlib.import_module(other.module)
        if name in module.__all__ and getattr(module, name) is value and not other.as_table:
            return f"{other.page}.md#{other.module}.{name}"
    return ""


def _section(path: str, value: Any) -> list[str]:
    written = _written(value)
    name = path.rpartition(".")[2]
    if written:
        options = [f"      heading: {name}", f"      toc_label: {name}"]
        if inspect.isclass(value):
            options += ["      members: null", '      filters: ["!^_"]', "      merge_init_into_class: true"]
        section = [f"[](){{ #{path} }}", "", f"::: {written}", "    options:", *options, "", *_example(path, value)]
        if hasattr(value, "page"):  # an error
            target = posixpath.join("..", posixpath.relpath(value.page, "docs"))
            section += [f"[A minimal example, and ways to fix it]({target}).", ""]
        return section
    lines = [f"## {name} {{ #{path} }}", ""]
    if callable(value) and not inspect.isclass(value):
        lines += ["```python", f"{name}{_signature(value)}", "```", ""]
    return [*lines, *_prose(described(value, name)), "", *_example(path, value)]


def _example(path: str, value: Any) -> list[str]:
    """Return an example for a docstring that has none."""
    session = "" if ">>>" in (inspect.getdoc(value) or "") else calls.example(path)
    return [f"```pycon\n{session}\n```", ""] if session else []


def without_example() -> list[str]:
    """Return the public functions and methods without an example in the docstring or in `calls.txt`."""
    found = []
    for namespace in NAMESPACES:
        if namespace.as_table or namespace.module.startswith("viewgrad.symbolic"):
            continue
        module = importlib.import_module(namespace.module)
        for name in names_of(namespace):
            value = getattr(module, name)
            if inspect.isfunction(value) and not _elsewhere(namespace, name, value):
                found += _lacks(f"{namespace.module}.{name}", value)
    for name, value in vars(viewgrad.Tensor).items():
        if not name.startswith("_") and inspect.isfunction(value) and not _operator_of(name):
            found += _lacks(f"viewgrad.Tensor.{name}", value)
    return found


def _lacks(path: str, value: Any) -> list[str]:
    return [] if ">>>" in (inspect.getdoc(value) or "") or path in calls.CALLS else [path]


def _signature(value: Callable[..., Any]) -> str:
    try:
        text = re.sub(r" at 0x\w+", "", str(inspect.signature(value)))
        return re.sub(r"(: |-> )'([^']*)'", r"\1\2", text)  # annotations that are kept as text
    except (TypeError, ValueError):
        return "(...)"


def _prose(doc: str) -> list[str]:
    """Return a docstring as Markdown, with its lists of arguments and its examples."""
    lines: list[str] = []
    parts = re.split(r"^(Arguments|Returns|Raises|Examples?|Attributes):\n", doc, flags=re.MULTILINE)
    lines += [_markdown(parts[0])]
    for title, text in zip(parts[1::2], parts[2::2]):
        body = inspect.cleandoc(text)
        lines += ["", f"**{title}:**", ""]
        if ">>>" in body:
            lines += ["```pycon", body, "```"]
        else:
            lines += [re.sub(r"^(\w+|[\w.]+Error): ", r"- `\1`: ", body, flags=re.MULTILINE)]
    return lines


def _markdown(text: str) -> str:
    """Return prose as Markdown, with examples as console sessions."""
    blocks = re.split(r"\n\s*\n", text.strip())
    return "\n\n".join(
        f"```pycon\n{inspect.cleandoc(block)}\n```" if block.lstrip().startswith(">>>") else block for block in blocks
    )


@functools.cache
def _definitions(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text())
    names = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
            if isinstance(node, ast.ClassDef):
                names |= {f"{node.name}.{child.name}" for child in node.body if isinstance(child, ast.FunctionDef)}
    return frozenset(names)


def _written(value: Any) -> str:
    """Return the path of a function or class defined in a file of the library; empty for a generated one."""
    if isinstance(value, property):
        value = value.fget
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", "")
    if not isinstance(module, str) or not module.startswith("viewgrad") or not inspect.getattr_static(value, "__doc__"):
        return ""
    path = Path(viewgrad.__file__).parent.parent / (module.replace(".", "/") + ".py")
    if not path.exists():
        path = path.with_suffix("") / "__init__.py"
    return f"{module}.{name}" if path.exists() and name in _definitions(path) else ""


# -- the tensor, and the operators ------------------------------------------------------------------------------------


def _tensor_page() -> str:
    members = {name: value for name, value in vars(viewgrad.Tensor).items() if not name.startswith("_")}
    attributes = {name: value for name, value in members.items() if isinstance(value, property)}
    methods: dict[str, Any] = {name: value for name, value in members.items() if name not in attributes}
    lines = ["# Tensor", "", "[](){ #viewgrad.Tensor }", "", "::: viewgrad.tensor.tensor.Tensor", "    options:"]
    lines += ["      heading: Tensor", "      members: []", "", "## Attributes", ""]
    lines += ["| attribute | description |", "|---|---|"]
    for name, value in sorted(attributes.items()):
        lines.append(f'| <span id="viewgrad.Tensor.{name}"></span>`{name}` | {_cell(inspect.getdoc(value) or "")} |')
    own = {name: value for name, value in methods.items() if not _operator_of(name)}
    lines += ["", "## Methods", ""]
    for name, value in sorted(own.items()):
        lines += [f"### {name} {{ #viewgrad.Tensor.{name} }}", "", "```python", f"{name}{_signature(value)}", "```", ""]
        lines += [*_prose(inspect.getdoc(value) or ""), "", *_example(f"viewgrad.Tensor.{name}", value)]
    lines += ["## Operators as methods", "", "Methods with a trailing underscore write in place.", ""]
    lines += ["| method | description |", "|---|---|"]
    for name in sorted(methods.keys() - own.keys()):
        operator = _operator_of(name)
        link = operator_pages.address_of(operator)
        lines.append(f'| <span id="viewgrad.Tensor.{name}"></span>[`{name}`]({link}) | {_sentence(operator.doc)} |')
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    prose = re.split(r"^\w+:\n", text, flags=re.MULTILINE)[0]
    return " ".join(prose.split()).replace("|", "\\|")


def _operator_of(name: str) -> Any:
    return OPERATORS.get(name) or (OPERATORS.get(name[:-1]) if name.endswith("_") else None)


def _operator_index(families: dict[str, list[Any]]) -> str:
    lines = ["# The operators", "", "All differentiable operators, by family, generated from their declarations."]
    lines += ["Views are described in [`viewgrad`](../viewgrad.md).", ""]
    for family, operators in families.items():
        lines += [f"## {family.replace('_', ' ').capitalize()} {{ #family-{family} }}", ""]
        lines.append(" · ".join(f"[`{o.name}`]({family}.md#viewgrad.{o.name})" for o in operators))
        lines.append("")
    return "\n".join(lines)
