"""A call of a program from source as one node of the graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from ...autograd.api import pull_back
from ...autograd.transform_inputs import Transform
from ...errors import SavedValueError
from ...tensor.masked_backward import holds_nan
from ...tensor.modes import enable_grad
from ...tensor.node import MANY, Node, OptionalEdge, numbered
from ...tensor.saved import freed_error
from ...tensor.storage import save
from ...tensor.tensor import Tensor, current_edge, edge_to, from_array, tensor_like
from ..comparison import is_close, scale_of


class _PlainInput:
    """An input that is not a tensor."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class SourceBackward(Node):
    """The node of a call.

    Attributes:
        edges: one for each differentiated input.
        outputs: the number of outputs.
        program: the program.
        numbers: the numbers of the differentiated inputs.
        saved: the saved inputs: saved tensors, or other values.
        given: the arrays passed to the program.
        borrowed: for each of these arrays, whether it is the memory of a tensor.
        pullback: a function that computes the gradients once; None afterwards, and once released.
        tapes: the object that reruns the program.
        replay: a function that runs the function eagerly.
    """

    __slots__ = ("borrowed", "edges", "given", "numbers", "outputs", "program", "pullback", "replay", "saved", "tapes")

    kind: ClassVar[int] = MANY
    whole: ClassVar[bool] = True

    outputs: int  # type: ignore[misc]
    program: Any
    numbers: Sequence[int]
    saved: Any
    given: Any
    borrowed: list[bool]
    pullback: Any
    tapes: Any
    replay: Callable[[dict[int, Any], dict[int, Any]], Any]

    def apply(self, grad: Any, edges: tuple[OptionalEdge, ...]) -> tuple[Any, ...]:
        """Return the gradients along `edges`."""
        if self.saved is None:
            raise freed_error("compiled call")
        seeds = (grad,) if self.outputs == 1 else grad
        arrays = [each.array if type(each) is not _PlainInput else each.value for each in self.saved]
        unchanged = all(
            not borrowed or now is given for borrowed, now, given in zip(self.borrowed, arrays, self.given)
        )
        pullback, self.pullback = self.pullback, None
        try:
            found = self._pulled(pullback if unchanged else None, arrays, seeds)
        except Exception:  # computed by the function itself
            return self._by_replay(seeds, edges)
        if holds_nan(found):  # zeros may have met infinite factors
            return self._by_replay(seeds, edges)
        by_number = dict(zip(self.program.wanted, found))
        return tuple([
            None if edge is None or number not in by_number else np.asarray(by_number[number])
            for number, edge in zip(self.numbers, edges)
        ])

    def _pulled(self, pullback: Any, arrays: list[Any], seeds: Sequence[Any]) -> Any:
        """Return the gradients of the inputs, rerunning the program first if its run was not kept."""
        with np.errstate(all="ignore"):
            if pullback is None:
                own = [np.array(each, order="C") if isinstance(each, np.ndarray) and each.ndim else
                       each[()] if isinstance(each, np.ndarray) else each for each in arrays]
                _, pullback = self.tapes.run(self.program, own)
            return pullback(*seeds)

    def _by_replay(self, seeds: Sequence[Any], edges: tuple[OptionalEdge, ...]) -> tuple[Any, ...]:
        """Return the gradients from an eager run of the function."""
        given = tuple([None if seed is None else from_array(np.asarray(seed)) for seed in seeds])
        found = self.by_function(given, edges)
        return tuple([None if each is None else each.detach()._array for each in found])

    def apply_recorded(self, grad: Any, edges: tuple[OptionalEdge, ...]) -> tuple[Any, ...]:
        """Return gradients that can be differentiated, from the program or from the function."""
        if self.saved is None:
            raise freed_error("compiled call")
        grads = (grad,) if self.outputs == 1 else grad
        if self.program.second is not None and not self.program.mutated and self.program.second() is not None:
            found = self._by_programs(grads, edges)
            if found is not None:
                return found
        return self.by_function(grads, edges)

    def _by_programs(self, grads: Sequence[Any], edges: tuple[OptionalEdge, ...]) -> tuple[Any, ...] | None:
        """Return the gradients from the program, with a node that differentiates them, or None if that fails."""
        seeds = [None if each is None else each._array for each in grads]
        arrays = [each.array if type(each) is not _PlainInput else each.value for each in self.saved]
        try:
            found = self._pulled(None, arrays, seeds)
        except Exception:  # computed by the function itself
            return None
        step = numbered(SourceDoubleBackward)
        step.first = self
        step.saved = list(self.saved)
        step.seeds = [None if each is None else save(each) for each in grads]
        step.edges = (*self.edges, *[None if each is None else current_edge(each) for each in grads])
        step.outputs = len(self.program.wanted)
        by_number = {
            number: from_array(np.asarray(array), edge_to(step, place))
            for place, (number, array) in enumerate(zip(self.program.wanted, found))
        }
        return tuple([None if edge is None else by_number.get(number) for number, edge in zip(self.numbers, edges)])

    def by_function(self, grads: Sequence[Any], edges: tuple[OptionalEdge, ...]) -> tuple[Any, ...]:
        """Return the gradients from an eager run of the function."""
        with enable_grad():
            transform = Transform()
            leaves, outputs = self._replayed(self.saved, transform)
            wanted = [None if edge is None else leaf for leaf, edge in zip(leaves, edges)]
            with transform.separated():
                return tuple(pull_back(outputs, grads, wanted, create_graph=True))

    def gradients_by_function(
        self, transform: Transform, saved: Sequence[Any], seeds: Sequence[Any]
    ) -> tuple[list[Tensor | None], Sequence[Any]]:
        """Return the differentiated inputs and their gradients from an eager run of the function.

        Arguments:
            transform: the transform whose primals are the differentiated arguments.
            saved: the saved inputs.
            seeds: the gradients of the results.
        """
        leaves, outputs = self._replayed(saved, transform)
        with transform.separated():
            return leaves, pull_back(outputs, seeds, leaves, create_graph=True)

    def _replayed(self, saved: Sequence[Any], transform: Transform) -> tuple[list[Tensor | None], Sequence[Any]]:
        """Return the differentiated inputs and the results of the function for them.

        An argument may have been computed from another one, or from a captured tensor, which the function reads itself.

        Arguments:
            saved: the saved inputs.
            transform: the transform whose primals replace the differentiated arguments.

        Returns:
            The differentiated inputs and the results. If captured inputs have the same history, all but the first of
            them are None.
        """
        tensors: dict[int, Any] = {
            number: each.value.copy() for number, each in enumerate(saved)
            if type(each) is _PlainInput and isinstance(each.value, np.ndarray)
        }
        for number, each in enumerate(saved):
            if type(each) is not _PlainInput and number not in self.numbers:
                tensors[number] = tensor_like(each, None)
        leaves: list[Tensor | None] = []
        captured: set[OptionalEdge] = set()
        for number, edge in zip(self.numbers, self.edges):
            leaf = tensor_like(saved[number], edge)
            if self.program.source.inputs[number].path.is_argument:
                leaf = tensors[number] = transform.primal(leaf)
                leaves.append(leaf)
            else:
                leaves.append(None if edge in captured else leaf)
                captured.add(edge)
        for number in self.program.mutated:  # a write would give the leaf another history
            if isinstance(tensors.get(number), Tensor):
                tensors[number] = tensors[number].clone()
        others = {
            number: each.value if type(each) is _PlainInput else each.array
            for number, each in enumerate(saved) if number not in tensors
        }
        return leaves, self.replay(tensors, others)

    def saved_values(self) -> list[tuple[str, Any]]:
        """Return the inputs."""
        if self.saved is None:
            return []
        return [("inputs", [each for each in self.saved if type(each) is not _PlainInput])]

    def release(self) -> None:
        """Release the saved values."""
        self.saved = self.given = self.pullback = None


class SourceDoubleBackward(Node):
    """The node of the gradient of a call, differentiated by a program: the reverse of the tangent of the call's
    program.

    Attributes:
        edges: one for each differentiated input, and one for each gradient of a result.
        outputs: the number of differentiated inputs.
        first: the node of the call.
        saved: the saved inputs.
        seeds: the saved gradients of the results.
    """

    __slots__ = ("edges", "first", "outputs", "saved", "seeds")

    kind: ClassVar[int] = MANY
    whole: ClassVar[bool] = True

    outputs: int  # type: ignore[misc]
    first: SourceBackward
    saved: Any
    seeds: Any

    def apply(self, grad: Any, edges: tuple[OptionalEdge, ...]) -> tuple[Any, ...]:
        """Return the gradients along `edges`."""
        if self.saved is None:
            raise freed_error("compiled call")
        along = (grad,) if self.outputs == 1 else grad
        program = self.first.program
        try:
            found = self._by_program(along)
        except Exception:  # computed by the function itself
            found = None
        # NaN may come from the product of zero and an infinite derivative, which eager differentiation omits.
        is_usable = found is not None and all(np.isfinite(each).all() for each in found if each is not None)
        if found is not None and is_usable and not program.checks_second:
            return tuple([None if edge is None else each for edge, each in zip(edges, found)])
        given = tuple([None if each is None else from_array(np.asarray(each)) for each in along])
        try:
            made = self.apply_recorded(given[0] if self.outputs == 1 else given, edges)
        except SavedValueError:  # the gradient cannot be compared
            if found is None or not is_usable:
                raise
            return tuple([None if edge is None else each for edge, each in zip(edges, found)])
        expected = tuple([None if each is None else each.detach()._array for each in made])
        if found is not None and is_usable:
            scale = scale_of([each for each in expected if each is not None])
            program.checks_second = False
            pairs = [(a, b) for a, b, edge in zip(expected, found, edges) if edge is not None]
            if not all(is_close(_or_zeros(a, b), _or_zeros(b, a), scale) for a, b in pairs):
                program.second = None
        return expected

    def _by_program(self, along: Sequence[Any]) -> list[Any]:
        """Return the gradients of the inputs and of the seeds, computed by the program."""
        first = self.first.program
        program = first.second()
        arrays = [_readable(each.array if type(each) is not _PlainInput else each.value) for each in self.saved]
        places = dict(zip(first.wanted, along))
        tangents = [np.zeros(np.shape(arrays[n])) if places[n] is None else np.array(places[n], order="C")
                    for n in first.wanted]
        with np.errstate(all="ignore"):
            outputs, pullback = self.first.tapes.run(program, [*arrays, *[each[()] for each in tangents]])
            outputs = [np.array(each) for each in outputs]  # copies, since the reverse part may write to them
            count = len(first.results)
            seeds = [None if each is None else each.array[()] for each in self.seeds]
            found = pullback(*[None] * count, *seeds) if pullback is not None else ()
        by_number = dict(zip(program.wanted, found))
        names = dict(zip(program.results, outputs))
        tangent_of = dict(zip(first.results, program.results[count:]))
        gradients = [by_number.get(number) for number in first.wanted]
        return [
            *[None if each is None else np.asarray(each) for each in gradients],
            *[None if seed is None else names[tangent_of[name]]
              for name, seed in zip(first.results, self.seeds)],
        ]

    def apply_recorded(self, grad: Any, edges: tuple[OptionalEdge, ...]) -> tuple[Any, ...]:
        """Return gradients that can be differentiated, from an eager run of the function."""
        if self.saved is None:
            raise freed_error("compiled call")
        along = (grad,) if self.outputs == 1 else grad
        count = len(self.first.edges)
        with enable_grad():
            transform = Transform()
            seeds = [None if each is None else transform.primal(_differentiable(tensor_like(each, edge)))
                     for each, edge in zip(self.seeds, self.edges[count:])]
            inputs, gradients = self.first.gradients_by_function(transform, self.saved, seeds)
            with transform.separated():
                made = pull_back(gradients, along, [*inputs, *seeds], create_graph=True)
        return tuple([None if edge is None else each for edge, each in zip(edges, made)])

    def saved_values(self) -> list[tuple[str, Any]]:
        """Return the inputs and the gradients of the results."""
        if self.saved is None:
            return []
        return [("inputs", [each for each in self.saved if type(each) is not _PlainInput]),
                ("gradients", [each for each in self.seeds if each is not None])]

    def release(self) -> None:
        """Release the saved values."""
        self.saved = self.seeds = None


def _differentiable(tensor: Tensor) -> Tensor:
    return tensor if tensor.requires_grad else tensor.requires_grad_()


def _or_zeros(array: Any, other: Any) -> Any:
    """Return an array, or zeros like another one if it is None."""
    return np.zeros(np.shape(other if other is not None else 0.0)) if array is None else array


def _readable(value: Any) -> Any:
    """Return an array or a number that a program may read."""
    if isinstance(value, np.ndarray):
        return np.array(value, order="C") if value.ndim else value[()]
    return value


def outputs_of(
    program: Any, tensors: Sequence[Tensor], has_history: Sequence[bool], values: Sequence[Any], given: Sequence[Any],
    pullback: Any, tapes: Any, replay: Callable[[dict[int, Any], dict[int, Any]], Any],
) -> list[Tensor]:
    """Return the results of a program as tensors, with a single node as their history.

    Arguments:
        program: the program.
        tensors: its results.
        has_history: for each of them, whether it depends on a differentiated input.
        values: its inputs, as passed by the caller.
        given: its inputs, as arrays and numbers.
        pullback: a function that computes the gradients of inputs from those of results, once.
        tapes: the object that runs the program.
        replay: a function that runs the function eagerly.
    """
    node = numbered(SourceBackward)
    node.numbers = list(program.wanted)
    node.edges = tuple([current_edge(values[number]) for number in node.numbers])
    node.outputs = len(tensors)
    node.program = program
    node.given = given
    node.saved = [save(value) if type(value) is Tensor else _PlainInput(given[n]) for n, value in enumerate(values)]
    node.borrowed = [type(value) is Tensor and given[n] is value._array and n not in program.mutated
                     for n, value in enumerate(values)]
    node.pullback = pullback
    node.tapes = tapes
    node.replay = replay
    found = list(tensors)
    for number, history in enumerate(has_history):
        if history:
            found[number]._edge = edge_to(node, number)
    return found
