"""`checkpoint`: store the arguments of a call instead of its graph, and rerun the call in the backward pass.

Source: A. Griewank, A. Walther, "Algorithm 799: Revolve", ACM Transactions on Mathematical Software 26 (2000).
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar, Final, ParamSpec, TypeVar

import attrs
import numpy as np

from ..adoption import adopted_callable
from ..autograd.execute import run_backward
from ..autograd.graph.describe import saved_entries
from ..autograd.modes.saved_hooks import packed
from ..autograd.transform_inputs import Transform
from ..errors import CheckpointError
from ..operators.define import OPERATORS
from ..operators.language.spec import Operator
from ..tensor.async_safety import in_own_context
from ..tensor.escapes import transform_kind
from ..tensor.modes import FORWARD, FUNCTIONAL, GRAD, INFERENCE, PACK, REPLAY, TRACE, ModeSwitch, current_mode
from ..tensor.node import MANY, Edge, Node, OptionalEdge, input_nr_of, node_of, numbered
from ..tensor.saved import freed_error
from ..tensor.storage import save
from ..tensor.tensor import Tensor, as_scalar, current_edge, edge_to, from_array, is_scalar, tensor_like
from ..views.copy_slices import CopySlices
from ..views.scalar_nodes import ScalarOfOne, ScalarOfTwo
from ..views.view_nodes import ElementBackward
from .captured_state import RandomState, reachable
from .compiled_calls import CompiledCalls
from .tree import Structure, flatten, once_each, unflatten

Function = Callable[..., Any]
P = ParamSpec("P")
R = TypeVar("R")
WHOLE: Final = FORWARD | TRACE | FUNCTIONAL | INFERENCE  # modes in which the function is called directly


def checkpoint(f: Callable[P, R], *, adopt: bool = True) -> Callable[P, R]:
    """Recompute `f` in the backward pass instead of saving the values that its gradient needs.

    A call of `f` becomes one node of the graph, which stores only the tensors among the arguments. The backward pass
    calls `f` a second time. Splitting a loop of n steps into checkpointed parts of sqrt(n) steps reduces the memory
    from O(n) to O(sqrt(n)), at the cost of one more forward run.

    Arguments:
        f: a function of any arguments. Captured tensors receive gradients too. It may write to tensors that it creates,
            but not to captured tensors or to its arguments (tensors, arrays, lists, dicts, dataclasses). It may draw
            random numbers from the global generators of NumPy and Python, or from generators that it captures or
            receives: their state is restored for the second run, and so is `np.errstate`. Other side effects happen
            twice.
        adopt: whether to adopt `f`, so that it computes with viewgrad instead of NumPy; see `viewgrad.adopt`.

    Returns:
        A function with the same arguments and results.

    Raises:
        CheckpointError: when called, if `f` writes to an argument or a captured tensor, or returns a tensor that shares
            memory with one of them or with another result. In the backward pass, if the second run returns different
            values.

    Example:
        >>> import viewgrad as vg
        >>> def steps(x, n):
        ...     for _ in range(n):
        ...         x = x + 0.1 * vg.sin(x)
        ...     return x
        >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> y = vg.checkpoint(steps)(vg.checkpoint(steps)(x, 50), 50)
        >>> vg.autograd.graph.memory(y).total.saved
        32
    """

    function: Function = adopted_callable(f) if adopt else f

    @functools.wraps(function, updated=())
    @in_own_context
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        mode = current_mode()
        if not mode & GRAD or mode & WHOLE:
            return function(*args, **kwargs)
        leaves, structure = flatten((args, kwargs))
        with ModeSwitch(off=PACK):
            call = _Call.of(function, structure, leaves)
            run = call.first_run(leaves)
        tensors = _distinct_tensors(leaves)
        edges = (*map(current_edge, tensors), *call.captured)
        if all(edge is None for edge in edges):
            return unflatten(run.structure, [_detached(leaf) for leaf in run.leaves])
        node = numbered(CheckpointBackward)
        node.edges, node.call, node.outputs = edges, call, len(run.outputs)
        node.saved = [packed(save(tensor)) if mode & PACK else save(tensor) for tensor in tensors]
        places = {id(output): edge_to(node, number) for number, output in enumerate(run.outputs)}
        made: dict[int, Any] = {id(leaf): _detached(leaf, places.get(id(leaf))) for leaf in run.leaves}
        return unflatten(run.structure, [made[id(leaf)] for leaf in run.leaves])

    return checkpointed


class CheckpointBackward(Node):
    """The node of a checkpointed call.

    Attributes:
        edges: one for each tensor among the arguments, then one for each captured history.
        outputs: the number of differentiable outputs.
        call: the call to rerun.
        saved: the tensors among the arguments; None once released.
    """

    __slots__ = ("call", "edges", "outputs", "saved")

    kind: ClassVar[int] = MANY

    outputs: int  # type: ignore[misc]
    call: _Call
    saved: Any

    def apply(self, grad: Any, edges: tuple[OptionalEdge, ...]) -> tuple[Any, ...]:
        """Return the gradients along `edges` by rerunning the function."""
        grads = [None if each is None else from_array(each) for each in ((grad,) if self.outputs == 1 else grad)]
        found = self._gradients([from_array(each.array) for each in self._kept()], grads, edges, create_graph=False)
        return tuple([None if each is None else each._array for each in found])

    def apply_recorded(self, grad: Any, edges: tuple[OptionalEdge, ...]) -> tuple[Any, ...]:
        """Rerun the function on tensors, recorded so that it can be differentiated."""
        tensors = [tensor_like(each, edge) for each, edge in zip(self._kept(), self.edges)]
        return self._gradients(tensors, (grad,) if self.outputs == 1 else grad, edges, create_graph=True)

    def _kept(self) -> Any:
        if self.saved is None:
            raise freed_error("checkpointed call")
        return self.saved

    def _gradients(
        self, tensors: Sequence[Tensor], grads: Sequence[Any], edges: Sequence[OptionalEdge], create_graph: bool
    ) -> tuple[Tensor | None, ...]:
        transform, outputs = self.call.second_run(tensors, [edge is not None for edge in self.edges])
        if any(map(_has_hooks, self.call.captured)):
            raise CheckpointError(
                "a hook was registered on a tensor that a checkpointed function captures; pass the tensor as an "
                "argument"
            )
        wanted: list[Any] = [*transform.primals, *self.call.captured]
        numbers = [number for number, edge in enumerate(self.edges) if edge is not None]
        starts = [(current_edge(out), grad) for out, grad in zip(outputs, grads) if grad is not None]
        with transform.separated():  # a captured history may also be that of an argument
            found = run_backward(
                [edge for edge, _ in starts if edge is not None],
                [grad for edge, grad in starts if edge is not None],
                retain_graph=True,
                create_graph=create_graph,
                inputs=wanted,
                capture=True,
            )
        gradients: list[Tensor | None] = [None] * len(edges)
        for number, gradient in zip(numbers, found):
            gradients[number] = None if edges[number] is None else gradient
        return tuple(gradients)

    def saved_values(self) -> list[tuple[str, Any]]:
        """Return the tensors among the arguments."""
        return [] if self.saved is None else [("arguments", self.saved)]

    def release(self) -> None:
        """Release the arguments."""
        self.saved = None


@attrs.define(eq=False)
class _Run:
    """The results of one run.

    Attributes:
        leaves, structure: the leaves and structure of the result.
        outputs: the differentiable tensors among the leaves, each once.
        captured: the edges from the run's graph to outside histories.
        digest: a checksum of the graph (except reads of elements), its saved values and the results.
    """

    leaves: list[Any]
    structure: Structure
    outputs: list[Tensor]
    captured: list[Node | Edge]
    digest: tuple[int, int]

    @classmethod
    def of(cls, result: Any, transform: Transform) -> _Run:
        """Flatten a result."""
        leaves, structure = flatten(result)
        outputs = {id(leaf): leaf for leaf in leaves if isinstance(leaf, Tensor) and current_edge(leaf) is not None}
        nodes, captured = transform.graph(map(current_edge, outputs.values()))
        # Nodes that may have been merged are not counted.
        nodes = [node for node in nodes if type(node) is not ElementBackward and type(node) is not ScalarOfOne]
        digest = 0
        for node in nodes:
            digest = zlib.crc32(node.name().encode(), digest)
            for saved in _saved_in(node):
                digest = _checksum(saved, digest)
        for leaf in leaves:
            digest = _checksum(leaf._array if isinstance(leaf, Tensor) else leaf, digest)
        return cls(leaves, structure, list(outputs.values()), captured, (len(nodes), digest))


@attrs.frozen(eq=False)
class _Place:
    """The placeholder of a tensor among the arguments of a call.

    Arguments:
        number: its number among the distinct tensors.
    """

    number: int


@attrs.define(eq=False)
class _Call:
    """A call that can be rerun.

    Attributes:
        function: the function.
        structure, leaves: the structure and leaves of the arguments; a `_Place` in place of each tensor.
        random: the states of random number generators before the call.
        captured: the edges to histories of captured values.
        digest: see `_Run`.
        kind: the kind of transform in which the call was made, if any.
        compiled_calls: the calls of compiled functions that it made.
        replay: the bit of `view_replay` in the mode of the call.
        floating_point_errors: how floating-point errors were handled, see `np.errstate`.
    """

    function: Function
    structure: Structure
    leaves: list[Any]
    random: RandomState
    captured: list[Node | Edge] = attrs.Factory(list)
    digest: tuple[int, int] = (0, 0)
    kind: int = attrs.Factory(transform_kind)
    compiled_calls: CompiledCalls = attrs.Factory(CompiledCalls)
    replay: int = attrs.Factory(lambda: current_mode() & REPLAY)
    floating_point_errors: Any = attrs.Factory(np.geterr)

    @classmethod
    def of(cls, function: Function, structure: Structure, leaves: Sequence[Any]) -> _Call:
        """Create the record of a call that is about to be made."""
        places = {id(tensor): _Place(number) for number, tensor in enumerate(_distinct_tensors(leaves))}
        kept = list(map(once_each(lambda leaf: places.get(id(leaf)) or _copied(leaf)), leaves))
        return cls(function, structure, kept, RandomState.of(function, unflatten(structure, leaves)))

    def first_run(self, leaves: Sequence[Any]) -> _Run:
        """Run the function on copies of the arguments, and check that it can be rerun."""
        tensors = _distinct_tensors(leaves)
        known = [each for each in reachable(self.function) if isinstance(each, Tensor)]
        before = [(each._version, current_edge(each)) for each in known]
        transform, copies = self._copies(tensors, [current_edge(tensor) is not None for tensor in tensors])
        given = [copies[kept.number] if type(kept) is _Place else leaf for kept, leaf in zip(self.leaves, leaves)]
        arguments = unflatten(self.structure, given)
        with self.compiled_calls.noted():
            run = self._run(transform, arguments)
        self._check_unchanged(arguments, given)
        written = [each for each in given if isinstance(each, Tensor) and each._version]
        written += [each for each, (version, _) in zip(known, before) if each._version != version]
        if written:
            raise _written(f"a tensor of shape {written[0].shape}")
        outputs = [leaf for leaf in {id(leaf): leaf for leaf in run.leaves}.values() if isinstance(leaf, Tensor)]
        for number, output in enumerate(outputs):
            for other in (*given, *known, *outputs[:number]):
                if isinstance(other, Tensor) and np.may_share_memory(output._array, other._array):
                    raise CheckpointError(
                        f"a checkpointed function returned a tensor of shape {output.shape} that shares memory with an "
                        "argument, a captured tensor or another result; return a clone() of it"
                    )
        if any(map(_has_hooks, run.captured)) or _depend_on_each_other(run.captured):
            raise CheckpointError(
                "a checkpointed function captures a tensor that was computed from another captured tensor or has "
                "hooks; pass it as an argument"
            )
        self.captured, self.digest = run.captured, run.digest
        return run

    def second_run(self, tensors: Sequence[Tensor], needed: Sequence[bool]) -> tuple[Transform, list[Tensor]]:
        """Rerun the function with grad mode on and the random numbers of the first run.

        Returns:
            The transform with the copies of differentiated arguments, and the outputs.

        Raises:
            CheckpointError: if the results differ from those of the first run.
        """
        after = self.random.again()
        self.random.restore()
        try:
            on = GRAD | self.replay
            switch = ModeSwitch(on=on, off=PACK | (REPLAY & ~on))
            with switch, self.compiled_calls.repeated(), np.errstate(**self.floating_point_errors):
                transform, copies = self._copies(tensors, needed)
                given = once_each(lambda kept: copies[kept.number] if type(kept) is _Place else _copied(kept))
                run = self._run(transform, unflatten(self.structure, list(map(given, self.leaves))))
        finally:
            after.restore()
        if run.digest != self.digest or not _same_edges(run.captured, self.captured):
            raise CheckpointError(
                "a checkpointed function computed different values in the backward pass: a captured "
                "tensor was written to in the meantime, other state that it reads has changed, or it draws random "
                "numbers from a generator that it neither captures nor receives; pass such state as arguments"
            )
        return transform, run.outputs

    def _copies(self, tensors: Sequence[Tensor], needed: Iterable[bool]) -> tuple[Transform, list[Tensor]]:
        """Return copies of the tensors; those of tensors that need a gradient are primals."""
        transform = Transform(kind=self.kind)
        copies = [
            transform.primal(tensor) if need else transform.copy(tensor.detach())
            for tensor, need in zip(tensors, needed)
        ]  # fmt: skip
        return transform, copies

    def _run(self, transform: Transform, arguments: Any) -> _Run:
        args, kwargs = arguments
        with transform:
            result = self.function(*args, **kwargs)
        return _Run.of(result, transform)

    def _check_unchanged(self, arguments: Any, given: Sequence[Any]) -> None:
        """Raise an error if the first run wrote to an array or a container among its arguments.

        The containers are copies, so the write would be lost.
        """
        leaves, structure = flatten(arguments)
        if structure != self.structure or any(leaf is not each for leaf, each in zip(leaves, given)):
            raise _written("a list, dict or other container")
        for leaf, kept in zip(leaves, self.leaves):
            if isinstance(leaf, np.ndarray) and _checksum(leaf, 0) != _checksum(kept, 0):
                raise _written(f"an array of shape {leaf.shape}")


def _distinct_tensors(leaves: Iterable[Any]) -> list[Tensor]:
    """Return the tensors among the leaves of the arguments, without duplicates."""
    return list({id(leaf): leaf for leaf in leaves if isinstance(leaf, Tensor)}.values())


def _written(what: str) -> CheckpointError:
    return CheckpointError(
        f"a checkpointed function wrote to {what} that it received or captures, and would do so again in the backward "
        "pass; write to a copy and return it"
    )


def _copied(leaf: Any) -> Any:
    return leaf.copy() if isinstance(leaf, np.ndarray) else leaf


def _detached(leaf: Any, edge: OptionalEdge = None) -> Any:
    """Return a result whose history leads to the checkpointed call."""
    if not isinstance(leaf, Tensor) or (edge is None and current_edge(leaf) is None):
        return leaf
    made = from_array(leaf._array, edge)
    return as_scalar(made) if is_scalar(leaf) else made


# -- the graph of a run ------------------------------------------------------------------------------------------------


def _has_hooks(edge: Node | Edge) -> bool:
    return node_of(edge).hooks is not None


def _depend_on_each_other(edges: Sequence[Node | Edge]) -> bool:
    """Return whether one of the histories leads to another, whose gradient would then be counted twice."""
    ends = {node_of(edge) for edge in edges}
    if len(ends) < 2:
        return False
    oldest = min(node.sequence_nr for node in ends)
    stack = list(ends)
    seen = set[Node]()
    while stack:
        for edge in stack.pop().edges:
            node = node_of(edge)
            if node in ends:
                return True
            if node is not None and node not in seen and node.sequence_nr >= oldest:
                seen.add(node)
                stack.append(node)
    return False


def _saved_in(node: Node) -> Iterator[Any]:
    if isinstance(node, CopySlices) and isinstance(getattr(node, "fn", None), Node):
        yield node.fn.name()
        yield from _saved_in(node.fn)
    needed = _needed_of_scalars(node) if isinstance(node, ScalarOfTwo) else None
    for name, saved in saved_entries(node):
        if needed is None or name in needed:
            yield getattr(saved, "array", saved)


@functools.cache
def _operator_of(node_class: type[Node]) -> Operator | None:
    """Return the operator that a class of nodes belongs to."""
    return next((operator for operator in OPERATORS.values() if operator.node_class is node_class), None)


def _needed_of_scalars(node: ScalarOfTwo) -> set[str] | None:
    """Return the saved values that the gradients of scalar operations need, or None if unknown.

    The fast path for scalars saves both operands; a traced run saves only what is needed.
    """
    operator = _operator_of(node.rule.node_class)
    if operator is None:
        return None
    pairs = zip(operator.differentiable, node.edges)
    return {saved for name, edge in pairs if edge is not None for saved in operator.saved(name)}


def _checksum(value: Any, digest: int) -> int:
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.asarray(value)
        if array.dtype.kind != "O":
            digest = zlib.crc32(f"{array.dtype}{array.shape}".encode(), digest)
            return zlib.crc32(np.ascontiguousarray(array).tobytes(), digest)
    if isinstance(value, (int, float, complex, str, bool, type(None))):
        return zlib.crc32(repr(value).encode(), digest)
    return zlib.crc32(type(value).__name__.encode(), digest)


def _same_edges(found: Sequence[Node | Edge], expected: Sequence[Node | Edge]) -> bool:
    return len(found) == len(expected) and all(
        node_of(a) is node_of(b) and input_nr_of(a) == input_nr_of(b) for a, b in zip(found, expected)
    )
