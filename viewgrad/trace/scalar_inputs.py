"""Numeric arguments of a traced function as inputs of its graph.

See Note [Numbers as inputs] in docs/notes/symbolic.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from ..errors import TraceError
from ..tensor.tensor import Tensor, as_scalar, from_array
from .graph import Graph, Node, Value
from .types import ScalarType, TensorType

# types that adopt the dtype of the other operand; NumPy's numbers have a dtype of their own
WEAK: Final = (float, complex)
# Operators whose result for Python numbers is a Python number.
OF_PYTHON: Final = frozenset({"abs", "add", "div", "floor_divide", "mul", "neg", "positive", "pow", "remainder", "sub"})
# Operations that do not promote a number: it is cast to the dtype of the target.
CASTS: Final = frozenset(
    "write overwrite put_at put_at_unrecorded add_at add_at_unrecorded guard _cast _cast_exactly".split()
)


def number_given(leaf: Any) -> Any:
    """Return a leaf of the arguments with a number converted to a scalar."""
    if isinstance(leaf, (Tensor, np.ndarray)):
        return leaf
    return as_scalar(from_array(np.array(leaf)))


def number_traced(leaf: Any) -> Any:
    """Return the input for the traced run, a differentiable scalar."""
    if isinstance(leaf, (Tensor, np.ndarray)):
        return leaf
    return Tensor(np.array(leaf), requires_grad=True)[()]


def check_numbers(graph: Graph, given: Sequence[Value]) -> None:
    """Check that inputs that are Python numbers are not combined with a narrower dtype.

    Arguments:
        graph: the graph.
        given: the inputs that are Python numbers.

    Raises:
        TraceError: if a number is combined with a dtype narrower than its own.
    """
    if not given:
        return
    names = {value: graph.names.get(value, "of the arguments") for value in given}
    for node in graph.nodes():
        met = [names[value] for value in node.inputs if value is not None and value in names]
        if not met or node.kind in CASTS:
            continue
        others = [value for value in node.inputs if value is not None and value not in names]
        for value in others:
            kind = value.type
            if type(kind) is TensorType and is_narrow(kind.dtype):
                raise TraceError(
                    f"the number {met[0]} would take the dtype of {kind} at {graph.where(node)}, but an input has its "
                    "own dtype; pass a NumPy scalar or a tensor of the intended dtype"
                )
        if all(map(is_number, others)) and node.kind in OF_PYTHON:
            names[node.output] = met[0]


def lower_numbers(graph: Graph) -> None:
    """Convert inputs that are numbers to 0-d tensors.

    Raises:
        TraceError: if a number is combined with a dtype narrower than its own, which it would adopt.
    """
    given = [value for value in graph.inputs if isinstance(value.type, ScalarType)]
    check_numbers(graph, given)
    for value in given:
        assert isinstance(value.type, ScalarType)
        value.type = TensorType.of(np.dtype(value.type.kind), ())


def is_number(value: Value) -> bool:
    """Return whether a value represents a Python number of the program."""
    node: Node = value.node
    return node.kind in ("constant", "full") and type(value.type) is TensorType and not value.type.shape


def is_narrow(dtype: np.dtype[Any]) -> bool:
    """Return whether numbers of a dtype have fewer digits than Python's."""
    return dtype.kind in "fc" and dtype.itemsize < (8 if dtype.kind == "f" else 16)
