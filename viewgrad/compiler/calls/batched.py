"""A compiled function over a batch: its program, traced for one example, runs for each example.

Without a program, the function is called for each example in turn. Numba's kernels release the interpreter's lock, so
long-running ones run on all cores. Examples are always split into the same chunks, so that sums over them do not depend
on the number of cores.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import attrs
import numpy as np

from ...errors import DifferentiabilityError
from ...func.compiled_calls import COMPILED_CALLS, Path
from ...func.numpy_results import as_given
from ...func.tree import Branch, Structure, flatten, unflatten
from ...func.vmap import RESULT_TYPES, flattened_results, require_one_shape, stack_leaves
from ...operators.define import OPERATORS
from ...tensor.creation import as_operand, from_numpy
from ...tensor.modes import GRAD, PROFILE, current_mode
from ...tensor.node import numbered
from ...tensor.tensor import Tensor, as_scalar, from_array
from ...tensor.trace_hooks import PROFILER
from ...trace.signature import ResultSpec
from ...type_aliases import Array
from ..runtime import CompiledProgram, Run
from .arguments import Arguments, is_found_by_name, leaves_of, owners
from .chunks import CHUNKS, LONG, by_chunks
from .guarded_trace import GuardedTrace
from .node import CompiledBackward, called, replayed
from .value_and_grad import value_and_gradient_of

concatenate = OPERATORS["concatenate"].function


@attrs.frozen(eq=False)
class ExampleProgram:
    """The program of a compiled function that is run for single examples.

    Arguments:
        trace, program: the trace and its verified program.
        leaves: the leaves of an example as inputs.
        count: a function that counts runs.
    """

    trace: GuardedTrace
    program: CompiledProgram
    leaves: list[Any]
    count: Callable[[int], None]


class Examples(Protocol):
    """Runs a program from source for the examples of a batch."""

    def results(
        self, structure: Structure, leaves: list[Any], numbers: frozenset[int], start: int, count: int
    ) -> list[Any] | None:
        """Return the results for examples `start` to `count` and their structure, or None if a run fails.

        Arguments:
            structure, leaves: the arguments of the batch.
            numbers: the numbers of the leaves with a leading axis.
            start, count: the range of the examples.
        """


class ExampleFunction(Protocol):
    """A compiled function of one example."""

    function: Callable[..., Any]
    arguments: Arguments
    returns_arrays: bool

    def tensor_results(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Return the results of a call as tensors."""

    def program_for(self, structure: Structure, leaves: list[Any], mode: int) -> ExampleProgram | None:
        """Return the program for given arguments, or None if calls do not run one or it writes to its inputs."""

    def examples_for(self, structure: Structure, leaves: list[Any], mode: int) -> Examples | None:
        """Return the runner of a program from source for given examples, or None if calls do not run one."""

    def explain(self) -> str:
        """Describe the compiled program."""

    def source(self) -> str:
        """Return the source of the programs."""


def _example_of(leaf: Any, at: int) -> Any:
    """Return an example of a batch; elements of a one-dimensional array become scalars, as in a loop."""
    if leaf.ndim > 1:
        return leaf[at, ...]
    return leaf[at] if isinstance(leaf, Tensor) else from_array(leaf[at])


def _like_example(leaf: Any, records: bool) -> Tensor:
    """Return an example of zeros, for an empty batch."""
    requires_grad = records and isinstance(leaf, Tensor) and leaf.requires_grad
    example = Tensor(np.zeros(leaf.shape[1:], leaf.dtype), requires_grad=requires_grad)
    return example if leaf.ndim > 1 else as_scalar(example)


class Batched:
    """A compiled function that is called with a batch of examples; see `compile`.

    Arguments:
        compiled: the function of one example.
        batch: the arguments with a leading axis, by name or position; True for all tensors and arrays.

    Raises:
        ValueError: if `batch` names no argument.
    """

    def __init__(self, compiled: ExampleFunction, batch: int | str | Sequence[int | str]) -> None:
        functools.update_wrapper(self, compiled.function)
        self.compiled = compiled
        if batch is False or batch == () or batch == []:
            raise ValueError(
                f"batch={batch!r} names no argument; use batch=True for all tensors and arrays, or omit it"
            )
        self.batch = batch
        self.batched_arguments: tuple[int | str, ...] | None = None  # None for all arguments
        if batch is not True:
            self.batched_arguments = (batch,) if isinstance(batch, int | str) else tuple(batch)
            names = compiled.arguments.names
            self.batched_arguments += tuple([
                names[n] for n in self.batched_arguments if isinstance(n, int) and 0 <= n < len(names)
            ])

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        mode = current_mode()
        if mode & ~GRAD == PROFILE:
            name = f"compiled {getattr(self, '__name__', 'function')}"
            return PROFILER.get().alone(name, functools.partial(self, *args, **keywords))
        found = self._results(args, keywords, mode)
        return as_given(found, (args, keywords)) if self.compiled.returns_arrays else found

    def value_and_grad(self, point: Any, *others: Any, **keywords: Any) -> tuple[float, Any]:
        """Return the sum of the examples' values and its gradient with respect to the first argument.

        Arguments:
            point: the first argument: an array of numbers.
            others, keywords: the other arguments.

        Returns:
            A number and an array with the shape of `point`, as `scipy.optimize` expects with `jac=True`.

        Raises:
            DifferentiabilityError: if the function does not return one tensor.

        Example:
            >>> import numpy as np, viewgrad as vg
            >>> error = vg.compile(lambda w, x, y: (x @ w - y) ** 2, batch=("x", "y"), executor="python")
            >>> error.value_and_grad(np.array([1.0, 2.0]), np.array([[1.0, 0.0], [0.0, 1.0]]), np.zeros(2))
            (5.0, array([2., 4.]))
        """
        leaf = Tensor(point, dtype=float, requires_grad=True)
        values = self(leaf, *others, **keywords)
        if not isinstance(values, Tensor):
            raise DifferentiabilityError(f"value_and_grad needs a function that returns one tensor, not {values!r}")
        return value_and_gradient_of(values.sum(), leaf)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __reduce__(self) -> Any:
        if is_found_by_name(self.compiled.function, self):
            return self.compiled.function.__qualname__
        return Batched, (self.compiled, self.batch)

    def explain(self) -> str:
        """Describe what was compiled for one example; see `compile`."""
        return self.compiled.explain()

    def source(self) -> str:
        """Return the source of the programs for one example."""
        return self.compiled.source()

    def __repr__(self) -> str:
        return f"<{self.compiled!r} of a batch>"

    # -- one call ------------------------------------------------------------------------------------------------------

    def _results(self, args: tuple[Any, ...], keywords: dict[str, Any], mode: int) -> Any:
        """Return the results of a call as tensors."""
        leaves, structure = flatten((args, keywords))
        numbers, count = self._examples(structure, leaves)
        results: list[Any] = []
        rest = None
        is_open = not mode & ~GRAD  # whether a program may still be run in this call
        calls = COMPILED_CALLS.get()
        for at in range(count):
            example = [_example_of(leaf, at) if number in numbers else leaf for number, leaf in enumerate(leaves)]
            entry, path = (0, None) if calls is None else calls.begin()
            if is_open and path is not Path.FUNCTION:
                rest, is_open = self._rest(structure, example, mode, leaves, numbers, at, count)
            if calls is not None:
                calls.end(entry, Path.FUNCTION if rest is None else Path.PROGRAM)
            if rest is not None:
                break
            results.append(self.compiled.tensor_results(*unflatten(structure, example)))
        if not count:
            rest = self._nothing(structure, leaves, numbers, mode)
        return _concatenated(results, rest)

    def _rest(
        self, structure: Structure, example: list[Any], mode: int, leaves: list[Any], numbers: frozenset[int],
        start: int, count: int,
    ) -> tuple[list[Any] | None, bool]:
        """Return the results for examples from `start` on by a program, and whether to try one for later examples."""
        examples = self.compiled.examples_for(structure, example, mode)
        if examples is not None:
            rest = examples.results(structure, leaves, numbers, start, count)
            return rest, rest is not None
        found = self.compiled.program_for(structure, example, mode)
        if found is None:
            return None, True
        rest = self._run(found, leaves, numbers, start, count)
        return rest, rest is not None

    def _examples(self, structure: Structure, leaves: list[Any]) -> tuple[frozenset[int], int]:
        """Return the numbers of the leaves that have a leading axis, and its length."""
        owned = owners(self.compiled.arguments.names, structure)
        if self.batched_arguments is None:
            numbers = frozenset(n for n, leaf in enumerate(leaves) if isinstance(leaf, Tensor | np.ndarray))
        else:
            self._check_names(structure, self.batched_arguments)
            numbers = leaves_of(self.batched_arguments, owned)
        if not numbers:
            raise ValueError(
                "no argument of this call has a leading axis of examples, because none contains a tensor or array"
            )
        if numbers & self.compiled.arguments.static_leaves(structure):
            raise ValueError("an argument cannot be both static and batched")
        lengths: dict[str, int] = {}
        for number in sorted(numbers):
            leaf, name = leaves[number], owned[number][1]
            if not isinstance(leaf, Tensor | np.ndarray) or not leaf.ndim:
                kind = "a number" if not isinstance(leaf, Tensor | np.ndarray) else "of shape ()"
                raise ValueError(
                    f"{name} is {kind}, and has no leading axis of examples; name the arguments that have one, as in "
                    "batch=('x',)"
                )
            lengths.setdefault(f"{name} has {len(leaf)}", len(leaf))
        if len(set(lengths.values())) > 1:
            raise ValueError(f"the arguments have different numbers of examples: {', '.join(lengths)}")
        return numbers, next(iter(lengths.values()))

    def _check_names(self, structure: Structure, chosen: tuple[int | str, ...]) -> None:
        """Raise if `batch` names arguments that the function does not have."""
        assert isinstance(structure, Branch)
        args, keywords = (getattr(child, "keys", ()) for child in structure.children)
        names = self.compiled.arguments.names
        known = {*range(len(names)), *names, *args, *keywords}
        for each in chosen:
            if each not in known:
                raise ValueError(f"batch names {each!r}, which is not an argument of {getattr(self, '__name__', self)}")

    def _nothing(self, structure: Structure, leaves: list[Any], numbers: frozenset[int], mode: int) -> list[Any]:
        """Return the results for an empty batch, using a program from earlier calls."""
        example = [
            _like_example(leaf, bool(mode & GRAD)) if number in numbers else leaf for number, leaf in enumerate(leaves)
        ]
        rest = None if mode & ~GRAD else self._rest(structure, example, mode, leaves, numbers, 0, 0)[0]
        if rest is None:
            raise ValueError(
                "the batch is empty, so the shape of the result is not known: no program for such examples has been "
                "compiled; call it with two examples or more first"
            )
        return rest

    def _run(
        self, of: ExampleProgram, leaves: list[Any], numbers: frozenset[int], start: int, count: int
    ) -> list[Any] | None:
        """Return the results for examples from `start` on, and their structure, or None if the function must run.

        Arguments:
            of: the program for one example.
            leaves: the leaves of the batch.
            numbers: the numbers of the leaves with a leading axis.
            start, count: the range of the examples.
        """
        whole = [
            (leaves[n][start:] if start else leaves[n]) if n in numbers else leaf for n, leaf in enumerate(of.leaves)
        ]
        trace, program = of.trace, of.program
        tensors = trace.inputs(whole)
        if isinstance(tensors, str):
            return None
        signature = trace.signature
        batched = frozenset(
            n for n, spec in enumerate(signature.inputs) if spec.kind == "argument" and spec.leaf in numbers
        )
        count -= start
        arrays = [tensor._array for tensor in tensors]
        found = _run_each(program, arrays, batched, count)
        if found is None:
            return None
        of.count(count)
        outputs, runs = found
        node = None
        if program.wanted:
            node = numbered(BatchedBackward)
            node.batched, node.runs = batched, runs
        made = called(program, trace.graph, outputs, Run({}), tensors, node)
        specs, form = flatten(unflatten(signature.result, signature.results), (ResultSpec, *RESULT_TYPES))
        results = [
            made[spec.output]
            if type(spec) is ResultSpec
            else from_numpy(np.repeat(np.asarray(spec)[np.newaxis], count, axis=0))
            for spec in specs
        ]
        return [results, form]


class BatchedBackward(CompiledBackward):
    """The node of the calls of a program for the examples of a batch.

    Attributes:
        batched: the numbers of the inputs that have a leading axis.
        runs: the saved values of each example; None once released.
    """

    __slots__ = ("batched", "runs")

    batched: frozenset[int]
    runs: list[Run] | None

    def _by_program(self, run: Run, seeds: Sequence[Any], arrays: list[Any]) -> Sequence[Any]:
        """Return the outputs and gradients of a replay of the trace for each example."""
        assert self.runs is not None
        return _gradients(self.program, self.runs, seeds, arrays, self.batched)

    def _replayed(self, tensors: list[Tensor], grads: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        """Return the outputs of a replay of the trace for each example, and their gradients."""
        assert self.runs is not None
        outputs: list[Any] = []
        for at in range(len(self.runs)):
            outputs += replayed(self.graph, [t[at, ...] if n in self.batched else t for n, t in enumerate(tensors)])
        return outputs, [None if grad is None else grad[at, ...] for at in range(len(self.runs)) for grad in grads]

    def saved_values(self) -> list[tuple[str, Any]]:
        """Return the inputs, and the buffers of the program for each example."""
        if self.runs is None:
            return []
        return [("inputs", self.saved), *[item for run in self.runs for item in run.buffers.items()]]

    def release(self) -> None:
        """Free the values saved for the gradient."""
        super().release()
        self.runs = None


# -- the examples, on all cores ----------------------------------------------------------------------------------------


def _run_each(
    program: CompiledProgram, arrays: list[Array], batched: frozenset[int], count: int
) -> tuple[list[Array], list[Run]] | None:
    """Run a program for each example; return the results, and the values saved for their gradients.

    Returns:
        None if a guard failed.
    """
    outputs = [np.empty((count, *shape), dtype) for shape, dtype in program.result_types]
    runs: list[Any] = [None] * (count if program.wanted else 0)
    failures: list[int] = []

    def work(part: int, start: int, stop: int) -> None:
        for at in range(start, stop):
            failed, results, run = program.run(_example(arrays, batched, at))
            if failed >= 0:
                failures.append(at)
            if failures:
                return
            for output, result in zip(outputs, results, strict=True):
                output[at] = result
            if runs:
                runs[at] = run

    by_chunks(work, count, program.work >= LONG and program.executor.name == "numba")
    return None if failures else (outputs, runs)


def _gradients(
    program: CompiledProgram, runs: list[Run], seeds: Sequence[Any], arrays: list[Array], batched: frozenset[int]
) -> list[Array]:
    """Return the gradients of the wanted inputs: per example, or summed over examples."""
    count = len(runs)
    bases = [base.initial for base in program.wanted]
    rows = [count if n in batched else CHUNKS for n in bases]
    found = [
        np.zeros((row, *(arrays[n].shape[1:] if n in batched else arrays[n].shape)))
        for n, row in zip(bases, rows, strict=True)
    ]

    def work(part: int, start: int, stop: int) -> None:
        for at in range(start, stop):
            given = [None if seed is None else seed[at, ...] for seed in seeds]
            made = program.gradients(runs[at], given, _example(arrays, batched, at))
            for n, total, array in zip(bases, found, made, strict=True):
                if array is not None:
                    total[at if n in batched else part] += array.reshape(total.shape[1:])

    by_chunks(work, count, program.work >= LONG and program.executor.name == "numba")
    totals = [total if n in batched else total.sum(axis=0) for n, total in zip(bases, found, strict=True)]
    return [total.astype(arrays[n].dtype, copy=False) for n, total in zip(bases, totals, strict=True)]


def _example(arrays: list[Array], batched: frozenset[int], at: int) -> list[Array]:
    return [array[at, ...] if n in batched else array for n, array in enumerate(arrays)]


# -- results -----------------------------------------------------------------------------------------------------------


def _concatenated(results: list[Any], rest: list[Any] | None) -> Any:
    """Stack the results of single examples, and concatenate those of the other examples along the leading axis.

    Arguments:
        results: the results of each of the first examples.
        rest: the leaves for the other examples, with a leading axis, and the structure of the result; None if there are
            none.
    """
    columns, form = (None, None) if rest is None else rest
    leaves, form = flattened_results(results, form)
    made = []
    for position in range(form.count):
        parts = [as_operand(stack_leaves([each[position] for each in leaves]))] if leaves else []
        if columns is not None:
            parts.append(columns[position])
        require_one_shape({part.shape[1:] for part in parts})
        made.append(parts[0] if len(parts) == 1 else concatenate(parts))
    return unflatten(form, made)
