"""A program from source over the examples of a batch, run for each of them as one node of the graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import attrs
import numpy as np

from ...autograd.api import pull_back
from ...autograd.transform_inputs import Transform
from ...func.tree import Structure, flatten, unflatten
from ...tensor.creation import from_numpy
from ...tensor.modes import enable_grad
from ...tensor.node import MANY, Node, OptionalEdge, numbered
from ...tensor.saved import freed_error
from ...tensor.storage import save
from ...tensor.tensor import Tensor, current_edge, edge_to, from_array, tensor_like
from ...type_aliases import Array
from ..calls.chunks import CHUNKS, LONG, by_chunks
from .build import Program
from .inputs import preserved
from .operation_count import count_operations
from .values import RecordValue, Static, TupleValue


class SourceExamples:
    """Runs a program for the examples of a batch.

    Arguments:
        program: the program of one example.
        arrays: its inputs for an example; those without a leading axis are shared by all.
        tapes: the object that runs programs.
        replay: a function that returns a function for eager runs, given a program and arguments.
        is_native: whether kernels release the interpreter's lock.
        ran: a function called with the number of examples that were run.
        failed: a function called with the error that ended a run.
    """

    def __init__(
        self, program: Program, arrays: Sequence[Any], tapes: Any, replay: Callable[..., Any], is_native: bool,
        ran: Callable[[int], None], failed: Callable[[Exception], None],
    ) -> None:
        self.program = program
        self.arrays = list(arrays)
        self.tapes = tapes
        self.replay = replay
        self.is_native = is_native
        self.ran = ran
        self.failed = failed

    def results(
        self, structure: Structure, leaves: list[Any], numbers: frozenset[int], start: int, count: int
    ) -> list[Any] | None:
        """Return the results for examples `start` to `count` and their structure, or None if a run fails.

        Arguments:
            structure, leaves: the arguments of the batch.
            numbers: the numbers of the leaves with a leading axis.
            start, count: the range of the examples.
        """
        whole = [(leaf[start:] if start else leaf) if n in numbers else leaf for n, leaf in enumerate(leaves)]
        batched = {id(whole[n]) for n in numbers}
        args, keywords = unflatten(structure, whole)
        given = (*args, *keywords.values())
        inputs = self.program.inputs
        values = [each.path.now(given) for each in inputs]
        places = frozenset(n for n, each in enumerate(inputs) if each.path.is_argument and id(values[n]) in batched)
        arrays = [_contiguous(values[n]) if n in places else array for n, array in enumerate(self.arrays)]
        arrays = preserved(values, arrays) if self.program.wanted else arrays
        names = [each.name for each in inputs]
        is_parallel = self.is_native and count_operations(self.program.source.body, names, self.arrays) >= LONG
        run = _Run(self.program, arrays, places, self.tapes, is_parallel)
        try:
            columns, pullbacks = run.forward(count - start)
        except Exception as error:
            self.failed(error)
            return None
        self.ran(count - start)
        tensors = [from_array(column) for column in columns]
        if self.program.wanted and pullbacks is not None:
            node = numbered(SourceExamplesBackward)
            node.run, node.pullbacks = run, pullbacks
            node.numbers = list(self.program.wanted)
            node.edges = tuple([current_edge(values[n]) for n in node.numbers])
            node.outputs = len(tensors)
            node.saved = {n: save(value) for n, value in enumerate(values) if type(value) is Tensor}
            node.replay = _replay_for(self.replay, self.program, structure, whole, numbers)
            for number, name in enumerate(self.program.results):
                if name in self.program.active:
                    tensors[number]._edge = edge_to(node, number)
        made = dict(zip(self.program.results, tensors))
        return list(flatten(_built(self.program.source.result, made, count - start)))


def _contiguous(value: Any) -> Array:
    array: Array = value._array if type(value) is Tensor else value
    return array if array.flags.carray else np.array(array, order="C")


def _built(tree: Any, made: dict[str, Tensor], count: int) -> Any:
    """Return the results with a leading axis, in the structure of those of one example."""
    if isinstance(tree, TupleValue):
        items = [_built(item, made, count) for item in tree.items]
        return tree.cls(*items) if hasattr(tree.cls, "_fields") else tree.cls(items)
    if isinstance(tree, RecordValue):
        fields = {key: _built(item, made, count) for key, item in tree.fields.items()}
        return fields if tree.cls is dict else tree.cls(**fields)
    if isinstance(tree, Static):
        return from_numpy(np.repeat(np.asarray(tree.value)[np.newaxis], count, axis=0))
    return made[tree.name]


def _replay_for(
    replay: Callable[..., Any], program: Program, structure: Structure, leaves: list[Any], numbers: frozenset[int]
) -> Callable[[int, dict[int, Any], dict[int, Any]], Any]:
    """Return a function that runs one example eagerly, with other tensors in the place of some inputs."""
    def run(at: int, tensors: dict[int, Any], others: dict[int, Any]) -> Any:
        example = [leaf[at, ...] if n in numbers else leaf for n, leaf in enumerate(leaves)]
        args, keywords = unflatten(structure, example)
        return replay(program, args, keywords)(tensors, others)

    return run


@attrs.define(eq=False)
class _Run:
    """Runs a program for each example.

    Arguments:
        program: the program.
        arrays: its inputs.
        batched: the inputs with a leading axis.
        tapes: the object that runs programs.
        is_parallel: whether examples run on all cores.
    """

    program: Program
    arrays: list[Any]
    batched: frozenset[int]
    tapes: Any
    is_parallel: bool

    def example(self, at: int) -> list[Any]:
        """Return the inputs for an example."""
        return [array[at] if n in self.batched else array for n, array in enumerate(self.arrays)]

    def run_example(self, inputs: list[Any]) -> Any:
        """Return copies of the results for an example, and its pullback function."""
        with np.errstate(all="ignore"):
            outputs, pullback = self.tapes.run(self.program, inputs)
        return [np.array(each, self.program.source.kinds[name].dtype)
                for name, each in zip(self.program.results, outputs)], pullback

    def forward(self, count: int) -> tuple[list[Array], list[Any] | None]:
        """Return the results with a leading axis, and each example's pullback function, None if there is none."""
        inputs = self.example(0) if count else [
            np.zeros(array.shape[1:], array.dtype)[()] if n in self.batched else array
            for n, array in enumerate(self.arrays)
        ]
        first, pullback = self.run_example(inputs)
        columns = [np.empty((count, *each.shape), each.dtype) for each in first]
        pullbacks: list[Any] = [None] * count

        def put(at: int, results: list[Array], pull: Any) -> None:
            for column, result in zip(columns, results):
                if column.shape[1:] != result.shape:
                    raise ValueError("the results of the examples have different shapes")
                column[at] = result
            pullbacks[at] = pull

        def work(part: int, start: int, stop: int) -> None:
            for at in range(start, stop):
                put(at, *((first, pullback) if at == 0 else self.run_example(self.example(at))))

        by_chunks(work, count, self.is_parallel)
        return columns, None if pullback is None else pullbacks

    def gradients(self, pullbacks: list[Any] | None, seeds: Sequence[Any], count: int) -> list[Array]:
        """Return the gradients of the wanted inputs: for each example, or summed over the examples.

        Arguments:
            pullbacks: the pullback function of each example; None to rerun the program.
            seeds: the gradients of the results, with a leading axis.
            count: the number of examples.
        """
        wanted = self.program.wanted
        dtypes = [np.asarray(self.arrays[n]).dtype for n in wanted]
        found = [
            np.zeros(self.arrays[n].shape if n in self.batched else (CHUNKS, *np.shape(self.arrays[n])), dtype)
            for n, dtype in zip(wanted, dtypes)
        ]

        def work(part: int, start: int, stop: int) -> None:
            for at in range(start, stop):
                pull = self.run_example(self.example(at))[1] if pullbacks is None else pullbacks[at]
                given = [None if seed is None else seed[at] for seed in seeds]
                with np.errstate(all="ignore"):
                    made = pull(*given)
                for n, total, gradient in zip(wanted, found, made):
                    total[at if n in self.batched else part] += gradient

        by_chunks(work, count, self.is_parallel)
        return [total if n in self.batched else total.sum(axis=0) for n, total in zip(wanted, found)]


class SourceExamplesBackward(Node):
    """The node of the runs of a program for the examples of a batch.

    Attributes:
        edges: one for each input that is differentiated.
        outputs: the number of results.
        run: the object that runs the program.
        pullbacks: the pullback function of each example, which may be called once; None afterwards.
        numbers: the numbers of the differentiated inputs.
        saved: the saved inputs that are tensors, by number.
        replay: a function that runs an example eagerly.
    """

    __slots__ = ("edges", "numbers", "outputs", "pullbacks", "replay", "run", "saved")

    kind: ClassVar[int] = MANY
    whole: ClassVar[bool] = True

    outputs: int  # type: ignore[misc]
    run: Any
    pullbacks: Any
    numbers: Sequence[int]
    saved: Any
    replay: Callable[[int, dict[int, Any], dict[int, Any]], Any]

    def apply(self, grad: Any, edges: tuple[OptionalEdge, ...]) -> tuple[Any, ...]:
        """Return the gradients along `edges`."""
        if self.saved is None:
            raise freed_error("compiled call")
        seeds = (grad,) if self.outputs == 1 else grad
        count = next(len(seed) for seed in seeds if seed is not None)
        run = self.run
        now = [_contiguous_array(self.saved[n].array) if n in self.saved else array
               for n, array in enumerate(run.arrays)]
        is_unchanged = all(
            n not in self.saved or (np.shares_memory(one, other) if isinstance(one, np.ndarray) else one == other)
            for n, (one, other) in enumerate(zip(now, run.arrays)) if one is not other
        )
        pullbacks, self.pullbacks = self.pullbacks, None
        if not is_unchanged:
            run = _Run(run.program, now, run.batched, run.tapes, run.is_parallel)
            pullbacks = None
        try:
            found = run.gradients(pullbacks, seeds, count)
        except Exception:  # by the function itself
            given = tuple([None if seed is None else from_array(np.asarray(seed)) for seed in seeds])
            made = self.apply_recorded(given[0] if self.outputs == 1 else given, edges)
            return tuple([None if each is None else each.detach()._array for each in made])
        return tuple([None if edge is None else each for edge, each in zip(edges, found)])

    def apply_recorded(self, grad: Any, edges: tuple[OptionalEdge, ...]) -> tuple[Any, ...]:
        """Return gradients that can be differentiated, from eager runs of the function for each example."""
        if self.saved is None:
            raise freed_error("compiled call")
        grads = (grad,) if self.outputs == 1 else grad
        count = next(len(seed) for seed in grads if seed is not None)
        with enable_grad():
            transform = Transform()  # an argument may have been computed from another one
            tensors = {n: tensor_like(each, None) for n, each in self.saved.items()}
            tensors |= {n: tensor_like(self.saved[n], edge) for n, edge in zip(self.numbers, self.edges)}
            inputs = self.run.program.source.inputs
            tensors |= {n: transform.primal(tensors[n]) for n in self.numbers if inputs[n].path.is_argument}
            others = {n: array for n, array in enumerate(self.run.arrays) if n not in tensors}
            for n in [n for n, array in others.items() if isinstance(array, np.ndarray) and inputs[n].path.is_argument]:
                tensors[n] = others.pop(n).copy()
            outputs: list[Any] = []
            for at in range(count):
                outputs += self.replay(at, self._example(at, tensors), self._example(at, others))
            seeds = [None if seed is None else seed[at, ...] for at in range(count) for seed in grads]
            wanted = [None if edge is None else tensors[n] for n, edge in zip(self.numbers, edges)]
            with transform.separated():
                return tuple(pull_back(outputs, seeds, wanted, create_graph=True))

    def _example(self, at: int, values: dict[int, Any]) -> dict[int, Any]:
        return {n: each[at, ...] if n in self.run.batched else each for n, each in values.items()}

    def saved_values(self) -> list[tuple[str, Any]]:
        """Return the inputs."""
        return [] if self.saved is None else [("inputs", list(self.saved.values()))]

    def release(self) -> None:
        """Release the saved values."""
        self.saved = self.pullbacks = None


def _contiguous_array(array: Any) -> Any:
    if isinstance(array, np.ndarray) and array.ndim:
        return array if array.flags.carray else np.array(array, order="C")
    return array[()] if isinstance(array, np.ndarray) else array
