"""Batched backward passes: many gradients at once along a leading axis, such as the rows of a Jacobian.

Nodes of elementwise operators, sums, matrix products and basic indexing run once for all rows. All other nodes run once
per row, with the code of an ordinary backward pass, so both kinds of passes compute the same gradients. A call of a
compiled program is a single node, so the program runs once per row within one pass. See Note [Rows at once] in
docs/notes/engine.md.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np

from ..operators.define import OPERATORS
from ..tensor.async_safety import isolated
from ..tensor.modes import FORWARD, GRAD, INFERENCE, MODE, OTHER_ENGINE, TRACE, current_mode
from ..tensor.node import GATHER, ONE, OVERWRITE, SCATTER, Edge, Node, OptionalEdge, node_of
from ..tensor.tensor import Tensor
from ..type_aliases import Array
from ..views.scalar_nodes import ScalarNode
from ..views.view_functions import Permuted, Reshaped
from .engine import Gradient, GraphTask

Rule = Callable[[Any, Array, tuple[OptionalEdge, ...]], tuple[Any, ...] | None]

KNOWN: Final[weakref.WeakKeyDictionary[Any, Rule | None]] = weakref.WeakKeyDictionary()  # by class of nodes
FIRST: Final = 12  # the number of nodes inspected before the rest of the graph is
LOOPED: Final = 0.3  # if more than this share of the nodes run row by row, the engine for single gradients is faster
OTHER_MODES: Final = OTHER_ENGINE | FORWARD | TRACE | INFERENCE
WORDS_OF_SHAPES: Final = ("shape", "ndim", "axis", "size", "[")


def batched_gradients(
    edge: Node | Edge, gradients: Array, inputs: Sequence[Node], nodes: Iterable[Node]
) -> list[Tensor | None] | None:
    """Return the gradients of `inputs` for a batch of gradients of one output, or None if batching is not faster.

    Arguments:
        edge: the edge of the output.
        gradients: the gradients of the output, with a leading axis.
        inputs: the nodes whose gradients are returned, with a leading axis each.
        nodes: the nodes between them; not all of them need be used.
    """
    mode = current_mode()
    on_the_way = list(nodes)
    if mode & OTHER_MODES or any(node.hooks is not None for node in (*on_the_way, *inputs)):
        return None
    looped = sum(not _runs_once(node) for node in on_the_way)
    if looped > LOOPED * len(on_the_way):
        return None
    task = BatchedTask(len(gradients))
    task.restrict([edge], inputs, capture=True)
    return isolated(_run, task, mode & ~GRAD, edge, gradients, inputs)


def pays_off(edge: Node | Edge) -> bool:
    """Return whether the nodes nearest to an output support batched gradients."""
    first, stack = dict[Node, None](), [edge]
    while stack and len(first) < FIRST:
        node = node_of(stack.pop())
        if node not in first and not node.is_transform_input:
            first[node] = None
            stack[:0] = [each for each in node.edges if each is not None]
    return sum(not _runs_once(node) for node in first) <= LOOPED * len(first)


def is_library_node(node: Any) -> bool:
    """Return whether a node belongs to an operator, view or write of the library, so that both modes use its formulas.
    """
    module = type(node).__module__
    if node.is_transform_input:  # an input of a nested transform
        return True
    if module.startswith("viewgrad.operators.generated."):
        operator = OPERATORS.get(module.rpartition(".")[2])
        return operator is not None and not operator.user_defined
    return module.startswith(("viewgrad.views.", "viewgrad.tensor.")) or is_compiled_call(node)


def is_compiled_call(node: Any) -> bool:
    """Return whether a node belongs to a call of a compiled program, or to the gradient of one."""
    return type(node).__module__.startswith("viewgrad.compiler.")


def _run(
    task: BatchedTask, mode: int, edge: Node | Edge, gradients: Array, inputs: Sequence[Node]
) -> list[Tensor | None]:
    MODE.set(mode)
    if task.must_run(node_of(edge)):
        task.deliver(edge, gradients)
    task.run()
    task.finish()
    return [task.captured_gradient(each) for each in inputs]


def _runs_once(node: Any) -> bool:
    if node.kind == SCATTER:
        return node.view_fn is None or type(node.view_fn) in (Reshaped, Permuted)
    if is_compiled_call(node):  # it runs the same program for each row in a single pass, with less overhead
        return True
    return _rule_of(type(node)) is not None


class BatchedTask(GraphTask):
    """A run of the engine in which each gradient has a leading batch axis.

    Attributes:
        count: the length of that axis.
    """

    __slots__ = ("count",)

    def __init__(self, count: int) -> None:
        super().__init__(retain=True, recorded=False)
        self.count = count

    def gradients(self, node: Any, grad: Gradient, edges: tuple[OptionalEdge, ...]) -> tuple[Gradient, ...]:
        """Return the gradients of a node's inputs."""
        if node.kind in (SCATTER, GATHER):
            shape, dtype, _ = node.layout
            zeros = np.zeros((self.count, *shape), dtype)
            if node.kind == SCATTER and type(node.view_fn) is Reshaped:
                zeros += grad.reshape(zeros.shape)
            elif node.kind == SCATTER and type(node.view_fn) is Permuted:
                zeros += grad.transpose(0, *[int(at) + 1 for at in np.argsort(_order(node))])
            elif node.kind == SCATTER and node.view_fn is None:
                index = node.index if type(node.index) is tuple else (node.index,)
                zeros[(slice(None), *index)] += grad
            else:
                for at in range(self.count):
                    node.add_to(zeros[at, ...], _row(node, grad, at))
            return (zeros,)
        rule = _rule_of(type(node))
        made = None if rule is None else rule(node, grad, edges)
        return self._by_rows(node, grad, edges) if made is None else made

    def _by_rows(self, node: Any, grad: Gradient, edges: tuple[OptionalEdge, ...]) -> tuple[Gradient, ...]:
        rows = []
        for at in range(self.count):
            given: Any
            if node.outputs > 1:
                given = [None if each is None else each[at, ...] for each in grad]
            elif node.kind == OVERWRITE:  # an OVERWRITE node modifies its incoming gradient
                given = np.array(grad[at, ...], order=node.layout[2])
            else:
                given = _row(node, grad, at)
            made = node.apply(given, edges)
            rows.append((made,) if node.kind == ONE else tuple(made))
        return tuple([_stacked(column) for column in zip(*rows, strict=True)])


def _order(node: Any) -> list[int]:
    """Return the order of dimensions of a permuted view."""
    rank = len(node.layout[0])
    return [at % rank for at in node.view_fn.order] if rank else []


def _row(node: Any, grad: Array, at: int) -> Any:
    """Return the gradient of one row: a number for a scalar, as in a single pass."""
    return grad[at] if isinstance(node, ScalarNode) else grad[at, ...]


def _stacked(column: Sequence[Any]) -> Any:
    if all(each is None for each in column):
        return None
    like = next(each for each in column if each is not None)
    return np.stack([np.zeros_like(like) if each is None else each for each in column])


# -- nodes that run once for all rows ----------------------------------------------------------------------------------


def _rule_of(kind: Any) -> Rule | None:
    """Return the batching rule of a class of nodes, or None if they run row by row."""
    if kind not in KNOWN:
        KNOWN[kind] = _find_rule(kind)
    return KNOWN[kind]


def _find_rule(kind: type[Node]) -> Rule | None:
    if kind.is_transform_input:
        return _same
    operator = OPERATORS.get(kind.__module__.rpartition(".")[2])
    if operator is None or operator.user_defined or not kind.__module__.startswith("viewgrad.operators.generated."):
        return None
    if operator.name in RULES:
        return RULES[operator.name]
    texts = [formula.text for formula in operator.formulas]
    if not operator.elementwise or len(operator.signature.outputs) != 1:
        return None
    return None if any(word in text for text in texts for word in WORDS_OF_SHAPES) else _elementwise


def _same(node: Any, grad: Array, edges: tuple[OptionalEdge, ...]) -> tuple[Any, ...]:
    return (grad,)


def _elementwise(node: Any, grad: Array, edges: tuple[OptionalEdge, ...]) -> tuple[Any, ...] | None:
    """Apply the formulas with a leading axis, then sum over axes along which operands were broadcast."""
    kind = type(node)
    same = object.__new__(kind)
    for name in _slots(kind):  # type: ignore[arg-type]  # a class is hashable
        if hasattr(node, name):
            setattr(same, name, getattr(node, name))
    specs = getattr(node, "input_specs", None)
    if specs is not None:
        same.input_specs = None
    made = same.apply(grad, edges)
    made = (made,) if node.kind == ONE else tuple(made)
    if any(each is not None and np.shape(each) != grad.shape for each in made):
        return None  # a formula that does not depend on the gradient
    return made if specs is None else tuple(map(_reduced, made, specs))


@functools.cache
def _slots(kind: Any) -> tuple[str, ...]:
    """Return the names of the saved values of a node of a generated class; in-place variants inherit them."""
    generated = [base for base in kind.__mro__ if base.__module__ == kind.__module__]
    slots = [vars(base).get("__slots__", ()) for base in generated]
    return tuple([name for each in slots for name in ((each,) if isinstance(each, str) else each)])


def _reduced(grad: Any, spec: Any) -> Any:
    """Reduce a batched gradient to the shape and dtype of an operand, keeping the leading axis."""
    if grad is None or spec is None:
        return grad
    shape, dtype = spec
    extra = grad.ndim - 1 - len(shape)
    if extra:
        grad = grad.sum(axis=tuple(range(1, 1 + extra)))
    axes = tuple([at + 1 for at, length in enumerate(shape) if length == 1 and grad.shape[at + 1] != 1])
    if axes:
        grad = grad.sum(axis=axes, keepdims=True)
    if grad.dtype.kind == "c" and dtype.kind != "c":
        grad = grad.real
    return grad if grad.dtype == dtype else grad.astype(dtype)


def _sum(node: Any, grad: Array, edges: tuple[OptionalEdge, ...]) -> tuple[Any, ...]:
    shape, axis = node.saved_self_shape, node.saved_axis
    if axis is None:
        grad = grad.reshape(len(grad), *[1] * len(shape))
    elif not node.saved_keepdims:
        axes = axis if isinstance(axis, tuple) else (axis,)
        grad = np.expand_dims(grad, tuple([int(each) % len(shape) + 1 for each in axes]))
    return (np.broadcast_to(grad, (len(grad), *shape)),)


def _matmul(node: Any, grad: Array, edges: tuple[OptionalEdge, ...]) -> tuple[Any, ...] | None:
    left = right = None
    if edges[0] is not None:
        other = node.saved_other.array.conj()
        if node.saved_self_ndim > 2 or other.ndim > 2:
            return None
        left = grad[..., None] * other if other.ndim == 1 else grad @ other.T
    if edges[1] is not None:
        mine = node.saved_self.array.conj()
        if node.saved_other_ndim > 2 or mine.ndim > 2:
            return None
        if mine.ndim == 1:
            right = mine[:, None] * grad[:, None, :] if node.saved_other_ndim == 2 else grad[:, None] * mine
        else:
            right = mine.T @ grad if node.saved_other_ndim == 2 else grad @ mine
    specs = node.input_specs
    return (left, right) if specs is None else (_reduced(left, specs[0]), _reduced(right, specs[1]))


def _stack(node: Any, grad: Array, edges: tuple[OptionalEdge, ...]) -> tuple[Any, ...]:
    axis = node.saved_axis % (grad.ndim - 1) + 1
    return tuple([grad[(slice(None),) * axis + (at,)] for at in range(grad.shape[axis])])


RULES: Final[dict[str, Rule]] = {"clone": _same, "stack": _stack, "sum": _sum, "matmul": _matmul}
