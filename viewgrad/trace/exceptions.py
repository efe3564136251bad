"""Exceptions raised by operators, and the nodes that check whether they are raised again.

A program that catches an exception of an operator (for example `LinAlgError` from a Cholesky factorization) branches on
values. The branch is guarded like any other: the node `raises:module:Class:operator` returns a bool, which a guard
checks. See Note [Exceptions as guards] in docs/notes/symbolic.md.
"""

from __future__ import annotations

import builtins
import functools
import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import attrs
import numpy as np

from ..operators.define import OPERATORS
from ..operators.language.spec import Code, Operator, Reading
from ..tensor.tensor import from_array
from .attributes import IndexInput

if TYPE_CHECKING:
    from .graph import Graph, Node, Value

RAISES: Final = "raises:"  # the prefix of the kinds of these nodes
RAN: Final = "no exception"  # the guard that keeps an operator with an unused result, since it may raise
# The library's operators that raise for some values.
MAY_RAISE: Final = frozenset(
    "_accumulated _all_pole _differentiable_roots _quantile_weights _scatter_along_axis _scatter_into_zeros bincount "
    "call cholesky det eig eigh eigvals eigvalsh embedding index_add inv lstsq matrix_exp matrix_power matrix_rank "
    "nll_loss one_hot pinv qr repeat scatter scatter_add slogdet solve solve_triangular svd svdvals take "
    "take_along_axis".split()
)
STATIC: Final = (TypeError, np.exceptions.AxisError)  # exceptions that depend on shapes and dtypes only


def is_static(error: BaseException, inplace: bool) -> bool:
    """Return whether an exception of an operator depends on shapes and dtypes alone.

    Arguments:
        error: the exception.
        inplace: whether the operator writes to its first argument; a `ValueError` then concerns shapes.
    """
    return isinstance(error, STATIC) or (
        inplace and isinstance(error, ValueError) and not isinstance(error, np.linalg.LinAlgError)
    )


def raising_kind(error: BaseException, operator: Operator) -> str | None:
    """Return the kind of the node that checks whether an operator raises an exception, or None if there is none.

    There is none for floating-point errors and warnings, which also depend on `numpy.errstate` and warning filters.
    """
    kind = type(error)
    if isinstance(error, (FloatingPointError, Warning)) or OPERATORS.get(operator.name) is not operator:
        return None
    name = f"{kind.__module__}:{kind.__qualname__}"
    return f"{RAISES}{name}:{operator.name}" if _class_called(name) is kind else None


def _class_called(name: str) -> Any:
    module, _, path = name.partition(":")
    try:
        found: Any = builtins if module == "builtins" else importlib.import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError):
        return None
    return found


@functools.cache
def raising_operator(kind: str) -> Operator | None:
    """Return the operator of such a kind of nodes, with the arguments of the checked operator and a bool result."""
    module, name, operator_name = kind.removeprefix(RAISES).split(":")
    operator, raised = OPERATORS.get(operator_name), _class_called(f"{module}:{name}")
    if operator is None or raised is None:
        return None
    forward = _raising_forward(operator, raised)

    def function(*args: Any, **keywords: Any) -> Any:
        return from_array(np.asarray(forward(*map(_array, args), **{k: _array(v) for k, v in keywords.items()})))

    return Operator(
        signature=attrs.evolve(operator.signature, name=kind, outputs=("raised",)),
        forward=forward,
        read=lambda _: Reading((), (), None),
        generate=lambda _: Code(None),
        nondifferentiable_outputs=("raised",),
        function=function,
    )


def _raising_forward(operator: Operator, raised: type) -> Callable[..., Any]:
    def forward(*args: Any, **keywords: Any) -> Any:
        try:
            operator.forward(*args, **keywords)
        except Exception as error:
            return np.bool_(type(error) is raised)
        return np.bool_(False)

    return forward


def _array(value: Any) -> Any:
    """Return the elements of a tensor, or of each tensor in a list; return other objects unchanged."""
    if isinstance(value, list):
        return [_array(each) for each in value]
    return getattr(value, "_array", value)


def guard_exceptions(graph: Graph) -> None:
    """Guard the operators that raised nothing, may raise for other values, and have unused results.

    Otherwise they would be removed as dead code, although `try: cholesky(m)` tests whether `m` is positive definite.
    """
    live: set[Value] = {value for value in graph.outputs if value is not None}
    for node in reversed(list(graph.block)):
        if node.kind != "guard" and live.isdisjoint(node.outputs):
            if not _may_raise(node):
                continue
            type(node)("guard", (node.outputs[0],), (RAN, True), (), node.location).insert_after(node)
        live.update(value for value in node.inputs if value is not None)


def _may_raise(node: Node) -> bool:
    kind = node.kind
    if kind in ("gather_at", "put_at", "add_at", "put_at_unrecorded", "add_at_unrecorded"):
        return any(type(item) is IndexInput for item in node.attributes[-1])
    operator = OPERATORS.get(kind)
    return bool(node.outputs) and (kind in MAY_RAISE or (operator is not None and operator.user_defined))
