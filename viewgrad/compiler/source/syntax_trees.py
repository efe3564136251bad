"""The syntax trees of functions, found through their code objects."""

from __future__ import annotations

import ast
import inspect
import textwrap
import types
import warnings
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from ...adoption.entry import original_callable
from ...tensor.call_sites import parse
from ..calls.array_arguments import WithTensorArguments
from .values import NotSupported


def users_function(function: Any) -> Any:
    """Return the user's function behind an adopted or wrapped one."""
    while True:
        if isinstance(function, WithTensorArguments):
            function = function.function
            continue
        original = original_callable(function)
        if original is function:
            return function
        function = original


def tree_of(function: types.FunctionType) -> ast.FunctionDef | ast.Lambda:
    """Return the syntax tree of a function, with the line numbers of its file.

    Raises:
        NotSupported: if its source is not available.
    """
    code = function.__code__
    try:
        lines, _ = inspect.findsource(code)
    except (OSError, TypeError, IndexError) as error:
        raise NotSupported(f"the source of {function.__qualname__} is not available") from error
    try:
        found = _functions("".join(lines)).get((code.co_firstlineno, code.co_name), ())
    except (SyntaxError, ValueError):  # a file that is not pure Python, such as a page of documentation
        found = _alone(code)
    fitting = [node for node in found if _fits(node, code)]
    if not fitting:
        raise NotSupported(f"the source of {function.__qualname__} is not available")
    if len(fitting) > 1 and len({ast.dump(node) for node in fitting}) > 1:
        raise NotSupported("several lambdas on one line cannot be distinguished; put them on separate lines")
    found_node: ast.FunctionDef | ast.Lambda = fitting[0]
    if not _is_code_of(code, "".join(lines), found_node):
        raise NotSupported(f"the source of {function.__qualname__} has changed since its code was compiled")
    return found_node


def _is_code_of(code: types.CodeType, source: str, node: ast.FunctionDef | ast.Lambda) -> bool:
    """Return whether a code object was compiled from a source that may have been edited since.

    The code of a function with assertions may differ, since pytest rewrites them.
    """
    if any(isinstance(each, ast.Assert) for each in ast.walk(node)):
        return True
    compiled = _code_objects(source)
    places = compiled.get((code.co_firstlineno, code.co_name), ())
    return not compiled or any(_is_same_code(code, each) for each in places)


@lru_cache(maxsize=64)
def _code_objects(source: str) -> dict[tuple[int, str], list[types.CodeType]]:
    """Return the code objects of the functions of a source, by first line and name, or none if it is not all Python."""
    found: dict[tuple[int, str], list[types.CodeType]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # these warnings were shown when the user's module was compiled
        try:
            waiting = [compile(source, "<source>", "exec", dont_inherit=True)]
        except (SyntaxError, ValueError):
            return found
    while waiting:
        code = waiting.pop()
        found.setdefault((code.co_firstlineno, code.co_name), []).append(code)
        waiting += [each for each in code.co_consts if isinstance(each, types.CodeType)]
    return found


def _is_same_code(code: types.CodeType, other: types.CodeType) -> bool:
    if code.co_code != other.co_code or code.co_names != other.co_names or code.co_varnames != other.co_varnames:
        return False
    return len(code.co_consts) == len(other.co_consts) and all(
        _is_same_code(one, two)
        if isinstance(one, types.CodeType) and isinstance(two, types.CodeType)
        else type(one) is type(two) and (repr(one) == repr(two) or (type(one) is frozenset and one == two))
        for one, two in zip(code.co_consts, other.co_consts, strict=True)
    )


def _alone(code: types.CodeType) -> list[Any]:
    """Parse only the function at its line, without the rest of the file."""
    try:
        lines, first = inspect.getsourcelines(code)
        tree = parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, IndexError, SyntaxError, ValueError):
        return []
    ast.increment_lineno(tree, first - 1)
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == code.co_name]


@lru_cache(maxsize=64)
def _functions(source: str) -> dict[tuple[int, str], list[Any]]:
    """Return all functions of a file, by their first line and name."""
    found: dict[tuple[int, str], list[Any]] = {}
    for node in ast.walk(parse(source)):
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            found.setdefault((first, node.name), []).append(node)
        elif isinstance(node, ast.Lambda):
            found.setdefault((node.lineno, "<lambda>"), []).append(node)
    return found


def _fits(node: ast.FunctionDef | ast.Lambda, code: types.CodeType) -> bool:
    """Return whether a tree belongs to a code object and the file was not edited since."""
    spec = node.args
    names = [arg.arg for arg in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)]
    if tuple(names) != code.co_varnames[: len(names)]:
        return False
    if isinstance(node, ast.FunctionDef):
        return True
    try:
        module = compile(ast.Expression(node), "<lambda>", "eval")
    except (SyntaxError, ValueError):
        return False
    made = next(each for each in module.co_consts if isinstance(each, types.CodeType))
    numbers = [each for each in made.co_consts if not isinstance(each, types.CodeType)]
    given = [each for each in code.co_consts if not isinstance(each, types.CodeType)]
    names_fit = set(made.co_names) <= {*code.co_names, *code.co_freevars}
    return names_fit and list(map(repr, numbers)) == list(map(repr, given))


def nonlocals_of(body: list[ast.stmt], nested: bool) -> frozenset[str]:
    """Return the variables that some statements declare as `nonlocal`.

    Arguments:
        body: the statements.
        nested: whether to return the names declared in nested functions instead.
    """
    own = {id(each) for each in _own_nodes(body)}
    return frozenset(name for stmt in body for each in ast.walk(stmt) if isinstance(each, ast.Nonlocal)
                     and (id(each) not in own) is nested for name in each.names)


def stores_of(node: ast.FunctionDef | ast.Lambda | list[ast.stmt]) -> dict[str, int]:
    """Count the assignments to each local variable, excluding nested functions."""
    found: dict[str, int] = {}
    for each in _own_nodes(node if isinstance(node, list) else node.body):
        names: list[str] = []
        if isinstance(each, ast.Name) and isinstance(each.ctx, (ast.Store, ast.Del)):
            names = [each.id]
        elif isinstance(each, (ast.FunctionDef, ast.ClassDef)):
            names = [each.name]
        elif isinstance(each, ast.alias):
            names = [(each.asname or each.name).partition(".")[0]]
        for name in names:
            found[name] = found.get(name, 0) + 1
        if isinstance(each, ast.AugAssign) and isinstance(each.target, ast.Name):
            found[each.target.id] = found.get(each.target.id, 0) + 1
    return found


def _own_nodes(body: Any) -> Iterator[ast.AST]:
    waiting = list(body) if isinstance(body, list) else [body]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, (ast.FunctionDef, ast.Lambda, ast.ClassDef, ast.GeneratorExp, ast.ListComp, ast.DictComp,
                             ast.SetComp)):
            continue
        waiting.extend(ast.iter_child_nodes(node))
