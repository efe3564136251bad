"""Composed functions that inspect values, such as SciPy's. A call becomes one opaque node.

Such a function branches on values, or uses SciPy to choose where a search starts, which a graph cannot express. The
function itself therefore becomes a node, which runs again for other values. See Note [Opaque calls] in
docs/notes/symbolic.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ...errors import ConcretizationError, GraphError, UnsupportedFunctionError
from ...func.tree import Branch, Fixed, Structure, flatten, unflatten
from ...tensor.modes import TRACE, ModeSwitch
from ...tensor.tensor import Tensor
from ..opaque_ops import FunctionStep
from ..types import TensorType

if TYPE_CHECKING:
    from ..graph import Node
    from .tracer import Tracer

# Types of arguments and results that are the same in every run and contain no tensor.
KNOWN: Final = (type(None), str, np.dtype, type)
NUMBERS: Final = (bool, int, np.integer, np.bool_, slice, type(Ellipsis))

OF_MEMORY: Final = frozenset({"constant", "full", "read", "write", "detach"})


def composed(tracer: Tracer, name: str, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Call a function while a program is traced; see `Observer.composed`.

    While a program is traced, all tensors are treated as having a history. A function that accepts only tensors without
    history is an opaque step too, if the given tensors have none.

    Raises:
        ConcretizationError: if it inspects values and has arguments or results other than tensors and numbers.
        UnsupportedFunctionError: if it has no derivative and a tensor has a history.
    """
    last = tracer.block.returns.prev
    failure = tracer.failure
    escapes, tracer.escapes = tracer.escapes, "error"
    try:
        return function(*args, **kwargs)
    except (ConcretizationError, UnsupportedFunctionError):
        leaves, structure = flatten((args, kwargs))
        if tracer.lenient or not is_known(structure, KNOWN + NUMBERS):
            raise
        tracer.failure, failure = failure, tracer.failure  # an exception that is caught here rather than by the program
        try:
            with ModeSwitch(off=TRACE):
                result = function(*args, **kwargs)
        except Exception as error:
            tracer.uncaught(error, name, tracer.locations.here())
            raise
        found, results = flatten(result)
        if not is_known(results, KNOWN) or not all(is_new(tracer, each) for each in found):
            tracer.failure = failure
            raise
    finally:
        tracer.escapes = escapes
    forget(tracer, last)
    _write_down(tracer, name, Whole(function, structure, leaves, found), leaves, found)
    return result


def _write_down(tracer: Tracer, name: str, whole: Whole, leaves: list[Any], found: list[Tensor]) -> None:
    inputs = [tracer.value_of(each) for each in leaves if isinstance(each, Tensor)]
    flows = any(value.type.requires_grad for value in inputs)
    types = [TensorType.of(each.dtype, each.shape, flows and each.requires_grad) for each in found]
    node = tracer.node("call", inputs, (FunctionStep(whole, name),), types)
    for tensor, value in zip(found, node.outputs, strict=True):
        tracer.add(tensor, value)


def is_known(structure: Structure, kinds: tuple[type, ...]) -> bool:
    """Return whether everything except the leaves is of the given types."""
    if isinstance(structure, Branch):
        return all(is_known(child, kinds) for child in structure.children)
    return not isinstance(structure, Fixed) or isinstance(structure.value, kinds)


def is_new(tracer: Tracer, result: Any) -> bool:
    """Return whether a result is a tensor over newly allocated memory."""
    return isinstance(result, Tensor) and tracer.memories.find(result._array) is None


def forget(tracer: Tracer, last: Node | None) -> None:
    """Remove the nodes after a given one, except those that may be the value of an earlier buffer."""
    node = tracer.block.returns.prev
    while node is not last:
        before = node.prev
        if node.kind not in OF_MEMORY and not any(value.is_used for value in node.outputs):
            node.destroy()
        node = before


class Whole:
    """A function with all arguments bound except tensors.

    Arguments:
        function: the function.
        structure, leaves: its arguments and keywords, with placeholders for the tensors.
        results: the results of one call; others have the same shapes and dtypes.
    """

    def __init__(
        self, function: Callable[..., Any], structure: Structure, leaves: list[Any], results: list[Tensor]
    ) -> None:
        self.function, self.structure = function, structure
        self.shapes, self.dtypes = [each.shape for each in results], [each.dtype for each in results]
        kept = [None if isinstance(each, Tensor) else each for each in leaves]
        self.leaves = [each.copy() if isinstance(each, np.ndarray) else each for each in kept]
        self.tensor_positions = [place for place, each in enumerate(leaves) if isinstance(each, Tensor)]

    def __call__(self, *tensors: Tensor) -> Any:
        leaves = list(self.leaves)
        for place, tensor in zip(self.tensor_positions, tensors, strict=True):
            leaves[place] = tensor
        args, kwargs = unflatten(self.structure, leaves)
        found, _ = flatten(self.function(*args, **kwargs))
        shapes = [each.shape for each in found]
        if shapes != self.shapes:
            raise GraphError(f"results have the shapes {shapes}; they had {self.shapes} when the program was traced")
        dtypes = [each.dtype for each in found]
        if dtypes != self.dtypes:
            raise GraphError(f"results have the dtypes {dtypes}; they had {self.dtypes} when the program was traced")
        return tuple(found)
