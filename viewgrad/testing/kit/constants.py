"""The numbers and strings in an operator's code at which it may branch."""

from __future__ import annotations

import ast
import dis
import re
import types
from collections.abc import Callable, Iterator
from typing import Any, Final

from ...autograd.function import Function
from ...operators.language.spec import Operator

MOST: Final = 12  # words
WORD: Final = re.compile(r"[A-Za-z_][\w,.>-]{0,18}")
DEPTH: Final = 4  # depth of nested function calls


def numbers_in(*things: Any) -> list[float]:
    """Return the numbers in the code of operators and functions, without their signs."""
    found = [abs(value) for thing in things for value in _constants(thing) if type(value) in (int, float)]
    return [float(x) for x in dict.fromkeys(found) if x < 1e300]


def strings_in(*things: Any) -> list[str]:
    """Return the words in the code of functions, such as contraction subscripts; sentences are ignored."""
    found = [value for thing in things for value in _constants(thing) if type(value) is str]
    return [text for text in dict.fromkeys(found) if WORD.fullmatch(text)][:MOST]


def names_in(thing: Any) -> set[str]:
    """Return the names of the functions and attributes used by an operator's own code."""
    found: set[str] = set()
    if isinstance(thing, Operator):
        for formula in thing.formulas:
            nodes = [*ast.walk(ast.parse(formula.text))]
            found |= {node.id for node in nodes if isinstance(node, ast.Name)}
            found |= {node.attr for node in nodes if isinstance(node, ast.Attribute)}
        thing = thing.forward
    for code in _codes(thing, set(), DEPTH):
        found |= {*code.co_names}
    return found


def takes_single_matrices(thing: Any) -> bool:
    """Return whether code is written for single matrices, although NumPy's functions accept stacks of them.

    This is the case if it transposes with `.T`, which reverses all axes, or combines linear algebra with diagonals and
    outer products, and uses nothing that is meant for stacks.
    """
    names = names_in(thing)
    if names & OF_STACKS or not names & OF_ONE_MATRIX:
        return False
    if "T" not in names and not names & OF_MATRICES and not _multiplies_matrices(thing):
        return False
    return not any(_is_ellipsis(x) for x in _constants(thing))


def _multiplies_matrices(thing: Any) -> bool:
    """Return whether code uses the operator @."""
    code = thing.forward if isinstance(thing, Operator) else thing
    return any(step.argrepr in ("@", "@=") for one in _codes(code, set(), DEPTH) for step in dis.get_instructions(one))


def _is_ellipsis(constant: Any) -> bool:
    return constant is ... or (type(constant) is str and "..." in constant)


OF_MATRICES: Final = frozenset(
    "cho_factor cho_solve cholesky det eig eigh eigvals eigvalsh expm inv logm lu_factor lu_solve matrix_power pinv qr"
    " slogdet solve solve_triangular sqrtm svd".split()
)
FACTORIZATIONS: Final = OF_MATRICES | {"cond", "lstsq", "matrix_rank", "norm", "svdvals"}
OF_ONE_MATRIX: Final = frozenset("T diag diagonal fill_diagonal outer trace".split())
OF_STACKS: Final = frozenset("expand_dims mT matrix_transpose moveaxis ndim swapaxes".split())


def _constants(thing: Any) -> Iterator[Any]:
    if isinstance(thing, Operator):
        for formula in thing.formulas:
            yield from (node.value for node in ast.walk(ast.parse(formula.text)) if isinstance(node, ast.Constant))
        thing = thing.forward
    for code in _codes(thing, set(), DEPTH):
        for value in code.co_consts:
            if isinstance(value, tuple):
                yield from value
            elif isinstance(value, frozenset):
                yield from sorted(value, key=repr)  # not in hash order, which differs between processes
            else:
                yield value


def _codes(thing: Any, seen: set[int], depth: int) -> Iterator[types.CodeType]:
    """Yield the code of a function or custom `Function`, and of the user code that it calls."""
    if id(thing) in seen or depth == 0:
        return
    seen.add(id(thing))
    if isinstance(thing, types.CodeType):
        yield thing
        for value in thing.co_consts:
            if isinstance(value, types.CodeType):
                yield from _codes(value, seen, depth)
        return
    if isinstance(thing, type):
        if issubclass(thing, Function) and thing is not Function:
            for member in vars(thing).values():
                yield from _codes(getattr(member, "__func__", None), seen, depth)
        return
    owner = getattr(thing, "__self__", None)
    if isinstance(owner, type):
        yield from _codes(owner, seen, depth)
    while isinstance(thing, types.FunctionType | types.MethodType) and hasattr(thing, "__wrapped__"):
        yield from _codes(thing.__wrapped__, seen, depth)
        break
    function = getattr(thing, "__func__", thing)
    if not isinstance(function, types.FunctionType) or (function.__module__ or "").split(".")[0] in LIBRARIES:
        return
    yield from _codes(function.__code__, seen, depth)
    for name in function.__code__.co_names:
        yield from _codes(function.__globals__.get(name), seen, depth - 1)
    for cell in function.__closure__ or ():
        try:
            inside: Callable[..., Any] = cell.cell_contents
        except ValueError:
            continue
        yield from _codes(inside, seen, depth - 1)


LIBRARIES: Final = ("numpy", "viewgrad", "scipy", "builtins")
