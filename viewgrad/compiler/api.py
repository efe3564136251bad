"""`compile`: an ordinary function of tensors, recorded once and compiled, gradient included.

It is long because the public functions have their docstrings, with examples, beside them.
"""

from __future__ import annotations

import functools
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final, overload

import attrs
import numpy as np

from ..autograd.api import grad as eager_grad
from ..errors import NotCompiledError, NotCompiledWarning
from ..func.tree import Structure, flatten, unflatten
from ..tensor.creation import from_numpy
from ..tensor.modes import GRAD, PROFILE, current_mode, no_grad
from ..tensor.tensor import Tensor, as_scalar, from_array
from ..tensor.trace_hooks import PROFILER
from ..trace.graph import Graph
from ..trace.signature import ResultSpec, Signature
from ..views.meta import CreationMeta
from .backends.backends import Executor, chosen_executor
from .calls.arguments import Arguments, form_of, is_found_by_name
from .calls.batched import Batched
from .calls.capture import recorded
from .calls.fast_call import MISSED, EagerCall, FastCall, direct, sharing
from .calls.jvp import pushed_forward
from .calls.node import called, differentiable_outputs
from .calls.pickling import PickledTrace, packed, unpacked
from .calls.retrace_policy import Misses
from .calls.verify import checked
from .compiled import CompiledProgram, CompilerDefectError, compiled_program
from .explain import explained
from .guards.call_signature import layout_key, likeness, numbered_tensor
from .guards.closure_guard import ClosureGuard, random_state

__all__ = ["Compiled", "compile"]

Function = Callable[..., Any]
Batch = int | str | Sequence[int | str]  # True is an int
OPERATIONS: Final = 20_000_000  # so many are recorded, at most
DIRECT_FROM: Final = 2  # the run of a program from which on calls like it go the direct way
COMPILED: Final = frozenset(map(np.dtype, (float, np.float32, bool, np.int64)))  # dtypes of arguments
EAGER_CALLS: Final = 16  # signatures of calls that are known to run eagerly, at most
RECORDS: Final = 8  # so often a function is recorded anew for arguments of one kind


@attrs.define(eq=False)
class Specialization:
    """What is known of a function for arguments of one kind.

    Arguments:
        key: the kind.
        records: how often it was recorded.
        graph: the last record.
        surroundings: what the function saw then.
        closures: where the tensors that it found elsewhere are seen.
        layouts: how these lie in memory.
        program: the record, compiled.
        refusal: why it is not compiled.
        static: the leaves of the arguments that are parts of the program.
        checked: whether the program has been compared with a run of the function.
        calls: how often the program was run.
        is_direct: whether calls like those go the direct way.
        is_crowd: whether it stands for all further kinds, where there are too many.
        pickled: the record, where it has travelled or is about to.
        reasons: why calls ran the function although there was a program, and how often.
        misses: of these, what is to be known of whether to record anew.
        irregular: the lines with small matrices that may be near singular ones.
    """

    key: Any
    records: int = 0
    graph: Graph | None = None
    surroundings: ClosureGuard | None = None
    closures: list[int] = attrs.Factory(list)
    layouts: list[Any] = attrs.Factory(list)
    program: CompiledProgram | None = None
    refusal: str | None = None
    static: frozenset[int] = frozenset()
    checked: bool = False
    calls: int = 0
    is_direct: bool = False
    is_crowd: bool = False
    pickled: bytes | None = None
    reasons: Counter[str] = attrs.Factory(Counter)
    misses: Misses = attrs.Factory(Misses)
    irregular: frozenset[int] = frozenset()


class Compiled:
    """A function that is compiled; see `compile`."""

    def __init__(self, f: Function, executor: str | None, static: Sequence[Any], check: bool) -> None:
        functools.update_wrapper(self, f)
        self.function = f
        self.executor_name = executor
        self.executor: Executor = chosen_executor(executor)
        self.static = tuple(static)
        self.arguments = Arguments(f, static)
        self.check = check
        self.entries: list[Specialization] = []
        self.directs: list[Any] = []  # the short ways of calls that look like earlier ones
        self.travellers: list[PickledTrace] = []  # records from another process
        self.pushed: Compiled | None = None  # gives its derivative along a direction, too
        self.lock = threading.RLock()

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        mode = current_mode()
        for way in self.directs:
            found = way.call(args, keywords, mode)
            if found is not MISSED:
                return found
        if mode & ~GRAD:  # a mode that looks at each operator: tracing, forward mode, anomaly detection
            if mode & ~GRAD == PROFILE:
                name = f"compiled {getattr(self, '__name__', 'function')}"
                return PROFILER.get().alone(name, functools.partial(self, *args, **keywords))
            return self.function(*args, **keywords)
        leaves, structure = flatten((args, keywords))
        static = self.arguments.static_leaves(structure)
        leaves = self.arguments.with_inputs(structure, leaves, static)
        key = self._key(structure, leaves, mode, static)
        entry = self._entry(key)
        entry.static = static
        if entry.refusal is not None:
            if not key[3]:  # where arguments share memory, others that look like them need not
                self._stay_eager(entry, args, keywords, leaves)
            return self.function(*args, **keywords)
        if entry.misses.rest:
            entry.misses.rest -= 1
            if not entry.misses.rest:
                entry.graph = None
            return self.function(*args, **keywords)
        if entry.graph is None:
            return self._record(entry, structure, leaves, args, keywords)
        return self._run(entry, structure, leaves, args, keywords)

    def value_and_grad(self, point: Any, *others: Any, **keywords: Any) -> tuple[float, Any]:
        """The value and its gradient with respect to the first argument, as `scipy.optimize` takes them (`jac=True`).

        Arguments:
            point: the first argument: an array of numbers.
            others, keywords: the others.

        Returns:
            A number and an array shaped like `point`.

        Example:
            >>> import numpy as np, viewgrad as vg
            >>> loss = vg.compile(lambda x: (x * x).sum(), executor="python")
            >>> loss.value_and_grad(np.array([1.0, 2.0]))
            (5.0, array([2., 4.]))
        """
        if not keywords:
            found = self._gradients_at((np.array(point, float), *others), (0,))
            if found is not None:
                return found[1].item(), found[2][0]
        leaf = Tensor(point, dtype=float, requires_grad=True)
        value = self(leaf, *others, **keywords)
        (gradient,) = eager_grad(value, [leaf], allow_unused=True)
        return float(value._array), np.zeros(leaf.shape) if gradient is None else gradient._array

    def __viewgrad_gradients__(self, args: tuple[Any, ...], numbers: Sequence[int]) -> tuple[Any, list[Any]] | None:
        """For `func.value_and_grad`: the value and gradients for calls like some before; None for others."""
        found = self._gradients_at(args, numbers)
        if found is None:
            return None
        is_scalar, array, gradients = found
        value = from_array(array)
        return as_scalar(value) if is_scalar else value, [from_array(gradient) for gradient in gradients]

    def __viewgrad_push__(
        self, numbers: Sequence[int], args: Any, keywords: dict[str, Any], tangents: Sequence[Any], has_aux: bool
    ) -> Any:
        """For `func.jvp` and its like: the output, and its derivative along tangents of some of the arguments."""
        if self.pushed is None:
            self.pushed = pushed_forward(self)
        with np.errstate(all="ignore"):  # slopes may be infinite, of which formulas do not complain, either
            return self.pushed(tuple(args), keywords, tuple(numbers), tuple(tangents), has_aux)

    def __viewgrad_batched__(self, arguments: tuple[int | str, ...], count: int) -> Batched:
        """For `func.vmap`: this function of a batch, with a leading axis in some arguments (positions or names)."""
        return Batched(self, arguments)

    def _gradients_at(self, args: tuple[Any, ...], numbers: Sequence[int]) -> tuple[bool, Any, list[Any]] | None:
        if not current_mode() & ~GRAD:
            for way in self.directs:
                found = way.gradients_at(args, numbers) if isinstance(way, FastCall) else None
                if found is not None:
                    return way.plain.scalars[0][0], *found
        return None

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        bound = instance.__dict__.get(id(self)) if hasattr(instance, "__dict__") else None
        if bound is None:
            bound = functools.partial(self, instance)
        return bound

    def __reduce__(self) -> Any:
        if is_found_by_name(self.function, self):
            return self.function.__qualname__
        given = (self.function, self.executor_name, self.static, self.check)
        found = [packed(self.function, entry, _objects(entry.key[0])) for entry in self.entries]
        travellers = self.travellers + [each for each in found if each is not None]
        return (Compiled, given, travellers) if travellers else (Compiled, given)

    def __setstate__(self, travellers: list[PickledTrace]) -> None:
        self.travellers = travellers

    def explain(self) -> str:
        """What was compiled, and how: loops, tapes, and what was not compiled and why."""
        return explained(self)

    def source(self) -> str:
        """The source of the programs: of each kind of arguments, forward and backward."""
        parts = []
        for entry in self.entries:
            if entry.program is not None:
                parts.append(entry.program.source())
        if self.pushed is not None:
            parts.append(self.pushed.source())
        return "\n\n".join(parts)

    def __repr__(self) -> str:
        return f"<compiled {getattr(self.function, '__qualname__', self.function)}>"

    # -- what `batch` asks ---------------------------------------------------------------------------------------------

    def ready(self, structure: Structure, leaves: list[Any], mode: int) -> tuple[Specialization, list[Any]] | None:
        """What is known of calls with some arguments, and their leaves as it takes them.

        None where calls like it do not run a program alone that writes to none of its inputs.
        """
        static = self.arguments.static_leaves(structure)
        leaves = self.arguments.with_inputs(structure, leaves, static)
        key = self._key(structure, leaves, mode, static)
        entry = next((entry for entry in self.entries if entry.key == key), None)
        if entry is None or entry.refusal is not None or entry.program is None or not entry.checked:
            return None
        graph, surroundings = entry.graph, entry.surroundings
        if graph is None or surroundings is None:  # another thread records anew
            return None
        signature: Signature = graph.signature  # type: ignore[assignment]
        return None if signature.mutations or not surroundings.unchanged() else (entry, leaves)

    def inputs(self, entry: Specialization, leaves: list[Any]) -> list[Tensor] | str:
        """The inputs of a program, from the leaves of the arguments; or why it is not for these."""
        graph, surroundings = entry.graph, entry.surroundings
        if graph is None or surroundings is None:
            return "another thread records anew"
        signature: Signature = graph.signature  # type: ignore[assignment]
        tensors: list[Tensor] = []
        closures = iter(surroundings.tensors_at(entry.closures))
        layouts = iter(entry.layouts)
        for spec in signature.inputs:
            if spec.kind == "argument":
                leaf = leaves[spec.leaf]
                tensors.append(numbered_tensor(leaf))
                continue
            tensor, layout = next(closures), next(layouts)
            kind: Any = spec.type
            if (
                type(tensor) is not Tensor or tensor.shape != kind.shape or tensor.dtype != kind.dtype
                or tensor.requires_grad != kind.requires_grad or layout_key(tensor._array) != layout
            ):
                return f"the tensor {spec.path} that it uses is of another kind"
            tensors.append(tensor)
        return tensors

    # -- one call ------------------------------------------------------------------------------------------------------

    def _entry(self, key: Any) -> Specialization:
        for entry in self.entries:
            if entry.key == key:
                return entry
        with self.lock:
            entry = Specialization(key)
            form = form_of(key[0])
            alike = [other for other in self.entries if form_of(other.key[0]) == form]
            if alike and alike[-1].is_crowd:
                return alike[-1]
            here = next((each for each in self.travellers if each.key == key), None)
            if here is not None:
                self.travellers = [each for each in self.travellers if each is not here]
                if unpacked(here, self.function, entry):
                    entry.checked = not self.check
            if len(alike) >= RECORDS:
                entry.is_crowd = True
                entry.refusal = (
                    f"{RECORDS} kinds of arguments have been compiled already: integers among arguments that change "
                    "from call to call can be given as arrays"
                )
                self._warn(entry.refusal)
            self.entries.append(entry)
        return entry

    def _key(self, structure: Structure, leaves: list[Any], mode: int, static: frozenset[int]) -> Any:
        kinds: list[Any] = []
        for number, leaf in enumerate(leaves):
            if isinstance(leaf, np.ndarray) and number in static:
                kinds.append(("static", leaf.dtype, leaf.shape, leaf.tobytes(), layout_key(leaf)))
            elif type(leaf) is Tensor:
                kinds.append((leaf._array.shape, leaf._array.dtype, leaf.requires_grad, layout_key(leaf._array)))
            elif isinstance(leaf, np.ndarray):
                kinds.append((leaf.shape, leaf.dtype, None, layout_key(leaf)))
            else:
                kinds.append((type(leaf), repr(leaf)))
        return structure, tuple(kinds), mode, sharing(leaves)

    def _record(self, entry: Specialization, structure: Structure, leaves: list[Any], args: Any, keywords: Any) -> Any:
        given = [
            from_numpy(leaf) if isinstance(leaf, np.ndarray) and number not in entry.static else leaf
            for number, leaf in enumerate(leaves)
        ]
        reason = self._unfit(leaves, given)
        arguments = _objects(structure)
        surroundings = ClosureGuard(self.function, arguments)
        generators = surroundings.generators
        before = random_state(generators)
        if reason is not None:
            entry.refusal = reason
            return self.function(*args, **keywords)
        made = recorded(self.function, (args, keywords), structure, given, OPERATIONS)
        entry.records += 1
        entry.misses.recorded(entry.calls)
        entry.irregular = frozenset()
        entry.program = None
        entry.checked = not self.check
        self._forget_direct(entry)
        if made.graph is None:
            assert made.refusal is not None
            if self.arguments.make_static(structure, leaves):
                self.entries.remove(entry)
            entry.refusal = made.refusal.message
            return made.result
        if random_state(generators) != before:
            entry.refusal = "it draws random numbers; draw them outside, and pass them as an argument"
            return made.result
        replaced = surroundings.has_new_tensors()
        seen = ClosureGuard(self.function, arguments)
        places = [seen.path_of(tensor) for tensor in made.closures]
        if None in places:
            entry.refusal = "it uses a tensor that is neither an argument nor a variable that it sees"
        elif seen.has_iterators:
            entry.refusal = "it sees an iterator, which gives other values each time"
        elif seen.hidden is not None:
            entry.refusal = seen.hidden
        elif seen.too_many:
            entry.refusal = "it sees too much besides its arguments"
        elif replaced or not surroundings.unchanged():
            if entry.records < 2:  # what a first run alone makes: caches, imports
                return made.result
            entry.refusal = "it changes what it sees besides its arguments"
        else:
            entry.refusal = _unfit_results(made.graph, made.result, given)
        if entry.refusal is None:
            with self.lock:  # all of one record, as another thread may record at the same time
                entry.program = None
                self._forget_direct(entry)
                entry.surroundings = seen
                entry.closures = [place for place in places if place is not None]
                entry.layouts = [layout_key(tensor._array) for tensor in made.closures]
                entry.graph = made.graph
        return made.result

    def _unfit(self, leaves: list[Any], given: list[Any]) -> str | None:
        for leaf in given:
            if isinstance(leaf, Tensor):
                if type(leaf) is not Tensor:
                    return f"a {type(leaf).__name__} is no plain tensor"
                if leaf._array.dtype not in COMPILED:
                    return f"an argument of {leaf._array.dtype} is not compiled"
        if sharing(leaves):
            return "arguments share memory"
        return None

    def _run(self, entry: Specialization, structure: Structure, leaves: list[Any], args: Any, keywords: Any) -> Any:
        surroundings = entry.surroundings
        assert surroundings is not None
        if not surroundings.unchanged():
            reason = "what the function sees besides its arguments has changed"
            return self._again(entry, structure, leaves, args, keywords, reason)
        graph, program = entry.graph, entry.program
        tensors = self.inputs(entry, leaves)
        if graph is None or entry.surroundings is not surroundings:  # another thread records anew
            return self.function(*args, **keywords)
        if isinstance(tensors, str):
            return self._again(entry, structure, leaves, args, keywords, tensors)
        if entry.closures and sharing(tensors):
            return self.function(*args, **keywords)
        recording = bool(current_mode() & GRAD)
        if program is None:
            try:
                with self.lock:
                    wanted = [
                        i for i, tensor in enumerate(tensors) if recording and tensor.requires_grad
                    ]
                    program = compiled_program(graph, wanted, self.executor, entry.irregular)
                    program.differentiable = differentiable_outputs(graph)
                    if entry.graph is not graph:
                        return self.function(*args, **keywords)
                    entry.program = program
            except NotCompiledError as error:
                entry.graph = None
                if self.arguments.make_static(structure, leaves):
                    self.entries.remove(entry)
                    return self(*args, **keywords)
                entry.refusal = error.message
                if isinstance(error, CompilerDefectError):
                    self._warn(error.message)
                return self.function(*args, **keywords)
        failed, outputs, run = program.run([tensor._array for tensor in tensors])
        if failed >= 0:
            return self._again(entry, structure, leaves, args, keywords, failed=failed)
        entry.calls += 1
        if entry.program is not program:
            return self.function(*args, **keywords)
        if not entry.checked:
            return checked(self, entry, graph, program, tensors, outputs, run, args, keywords)
        if entry.calls >= DIRECT_FROM and not entry.is_direct and len(self.directs) < RECORDS:
            with self.lock:
                fits = entry.program is program and entry.surroundings is surroundings
                way = direct(self, entry, graph, program, current_mode(), args, keywords, leaves) if fits else None
                entry.is_direct = fits
                if way is not None:
                    self.directs.append(way)
        return self.results(graph, tensors, called(program, graph, outputs, run, tensors))

    def missed(self, entry: Specialization, failed: int, args: Any, keywords: Any) -> Any:
        """What a call gives in which a value steers the program another way, as a run of it has shown.

        Arguments:
            entry: what is known of calls like it, with a program.
            failed: the number of the line where that was seen.
            args, keywords: the arguments.
        """
        leaves, structure = flatten((args, keywords))
        leaves = self.arguments.with_inputs(structure, leaves, entry.static)
        return self._again(entry, structure, leaves, args, keywords, failed=failed)

    def _leaves_to_numpy(self, entry: Specialization, failed: int) -> bool:
        """Build the program anew where a small matrix at a line was near a singular one; whether that was it."""
        program = entry.program
        if program is None or failed not in program.regular:
            return False
        entry.irregular |= {failed}
        entry.program = None
        entry.checked = not self.check
        self._forget_direct(entry)
        return True

    def _stay_eager(self, entry: Specialization, args: Any, keywords: Any, leaves: list[Any]) -> None:
        """Let calls that look like this one run the function without further ado."""
        if len(self.directs) < EAGER_CALLS:
            like = likeness(args, keywords, leaves, entry.static, entry.is_crowd)
            if like is not None:
                way = EagerCall(self.function, entry, current_mode(), like)
                self.directs.insert(len(self.directs) if entry.is_crowd else 0, way)

    def _forget_direct(self, entry: Specialization) -> None:
        """Let calls of a kind go the long way again."""
        entry.is_direct = False
        self.directs = [way for way in self.directs if way.entry is not entry]

    def _again(
        self, entry: Specialization, structure: Structure, leaves: list[Any], args: Any, keywords: Any,
        reason: str = "",
        failed: int = -1,
    ) -> Any:
        """Run the function as ever where its program does not fit, and record it anew where that is worth it.

        Arguments:
            entry, structure, leaves, args, keywords: as of `_run`.
            reason: why the program does not fit, where no run of it has shown that.
            failed: else the number of the line where a run did.
        """
        is_by_value = failed >= 0
        if is_by_value:
            if self._leaves_to_numpy(entry, failed):
                return self._run(entry, structure, leaves, args, keywords)
            reason = _steering(entry, failed)
        entry.reasons[reason] += 1
        misses, program = entry.misses, entry.program
        by_index = is_by_value and program is not None and failed in program.indices
        if by_index and self.arguments.make_static(structure, leaves):
            self.entries = [each for each in self.entries if each is not entry]
            self._forget_direct(entry)
            return self(*args, **keywords)
        if misses.is_worth_a_record(entry.calls, entry.records, is_by_value):
            if entry.records < RECORDS:
                return self._record(entry, structure, leaves, args, keywords)
        if entry.records >= RECORDS and (misses.rest or misses.calls - misses.begun >= RECORDS):
            entry.refusal = f"it was recorded {entry.records} times; the last time since {reason}"
            self._warn(entry.refusal)
            entry.graph = entry.program = None
        elif misses.rest:
            self._forget_direct(entry)
            if entry.records == 1:
                self._warn(f"{reason}, twice in a row", f"for {misses.rest} calls")
        return self.function(*args, **keywords)

    def results(self, graph: Graph, tensors: list[Tensor], outputs: list[Tensor]) -> Any:
        """What a call gives, from the inputs and outputs of its program; arguments are written to as it did."""
        signature: Signature = graph.signature  # type: ignore[assignment]
        for mutation in signature.mutations:
            target, value = tensors[mutation.input], outputs[mutation.output]
            if mutation.recorded:
                target.copy_(value)
            else:
                with no_grad():
                    target.copy_(value.detach())
        leaves: list[Any] = []
        for spec in signature.results:
            if type(spec) is not ResultSpec:
                leaves.append(spec)
                continue
            if spec.input is not None:
                tensor = tensors[spec.input]
            else:
                tensor = outputs[spec.output if spec.base is None else spec.base]
            for step in spec.steps:
                tensor = step(tensor)
            leaves.append(as_scalar(tensor) if spec.scalar else tensor)
        return unflatten(signature.result, leaves)

    def _warn(self, reason: str, how_long: str = "from here on") -> None:
        name = getattr(self.function, "__qualname__", repr(self.function))
        warnings.warn(f"{name} runs eagerly {how_long}: {reason}", NotCompiledWarning, stacklevel=5)


def _steering(entry: Specialization, failed: int) -> str:
    """That a value at a line is another, for messages."""
    assert entry.graph is not None
    locations = entry.graph.locations
    where = "{}:{}".format(*locations[failed]) if failed < len(locations) else "an unknown line"
    return f"a value that steers the program at {where} is another"


def _objects(structure: Structure) -> list[Any]:
    """What is neither a leaf nor a container nor a simple value among arguments."""
    value = getattr(structure, "value", None)
    if value is not None and not isinstance(value, (bool, int, str, bytes, slice, range)):
        return [value]
    return [found for child in getattr(structure, "children", ()) for found in _objects(child)]


def _unfit_results(graph: Graph, result: Any, given: list[Any]) -> str | None:
    """Why calls could not have the same effect, or results could not be made again: for the memory that they share."""
    signature: Signature = graph.signature  # type: ignore[assignment]
    if signature.ended:
        return "it ends the history of an argument in place, by detach_() or requires_grad_(False)"
    leaves, _ = flatten(result)
    known: list[tuple[Any, Any, bool]] = []
    for spec, leaf in zip(signature.results, leaves):
        if type(spec) is not ResultSpec:
            continue
        root = ("input", spec.input) if spec.input is not None else spec.output if spec.base is None else spec.base
        for other, other_root, other_is_view in known:
            is_view = spec.input is not None or spec.base is not None
            same = other_root == root and (is_view or other_is_view or leaf is other)
            if (other_root == root and not same) or (not same and np.may_share_memory(other._array, leaf._array)):
                return "its results share memory, and are no views of one tensor"
            if same and other.requires_grad is not leaf.requires_grad:
                return "a result was detached from another that it shares memory with"
        if spec.input is None and sharing([leaf, *given]) and leaf.size:
            if any(isinstance(g, Tensor) and np.may_share_memory(g._array, leaf._array) for g in given):
                return "a result shares memory with an argument of which it is no view"
        if leaf._view is not None and leaf._view.creation is not CreationMeta.DEFAULT:
            return "a result is a view that was taken under no_grad"
        known.append((leaf, root, spec.base is not None))
    return None


@overload
def compile(
    f: Function, *, executor: str | None = None, static: Sequence[Any] = (), check: bool = True, batch: None = None
) -> Compiled: ...
@overload
def compile(
    f: Function, *, executor: str | None = None, static: Sequence[Any] = (), check: bool = True, batch: Batch
) -> Batched: ...
@overload
def compile(
    f: None = None, *, executor: str | None = None, static: Sequence[Any] = (), check: bool = True, batch: None = None
) -> Callable[[Function], Compiled]: ...
@overload
def compile(
    f: None = None, *, executor: str | None = None, static: Sequence[Any] = (), check: bool = True, batch: Batch
) -> Callable[[Function], Batched]: ...
def compile(
    f: Function | None = None, *, executor: str | None = None, static: Sequence[Any] = (), check: bool = True,
    batch: Batch | None = None,
) -> Any:
    """A function that is recorded when it is called, and compiled when it is called again, gradient included.

    The first call for arguments of a kind (shapes, dtypes, what requires grad) runs as ever and is recorded. In the
    record the loops are found again, and the program is written down with its gradient: as Python, or for Numba where
    that is installed. What it returns is what the function returns, with one step for its history. Where a run could
    differ from the recorded one, that is noticed, and the function runs as ever and is recorded anew. Where it cannot
    be compiled, it runs as ever each time, and `explain()` says why.

    Arguments:
        f: a function of tensors, arrays and numbers, in trees of any nesting.
        executor: "python" or "numba"; the fastest that is installed, where left out.
        static: names of arguments whose numbers and arrays are part of the program, which is another for others.
        check: whether the first compiled call for each kind of arguments is compared with the function itself.
        batch: which arguments have a leading axis of independent examples: names or positions, or True for all tensors
            and arrays. The function is that of one example, and the results have the leading axis too.

    Returns:
        The compiled function, with methods `explain()` and `source()`; without `f`, a decorator.

    Raises:
        ValueError: for an unknown executor, and for a `batch` that names no argument.
        CompiledMismatchError: by that function, where the comparison fails.

    Example:
        >>> import viewgrad as vg
        >>> def smoothed(x, alpha):
        ...     y = vg.zeros(len(x))
        ...     y[0] = x[0]
        ...     for t in range(1, len(x)):
        ...         y[t] = alpha * x[t] + (1 - alpha) * y[t - 1]
        ...     return (y * y).sum()
        >>> compiled = vg.compile(smoothed, executor="python")
        >>> x, alpha = vg.ones(50), vg.Tensor(0.3, requires_grad=True)
        >>> for _ in range(3):
        ...     value = compiled(x, alpha)
        >>> value
        Tensor(50., grad_fn=<CompiledBackward>)
    """
    if f is None:
        return functools.partial(compile, executor=executor, static=static, check=check, batch=batch)
    compiled = Compiled(f, executor, static, check)
    return compiled if batch is None else Batched(compiled, batch)
