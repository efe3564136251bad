"""The first tier of a compiled function: programs from its source, one for each combination of argument types."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final

import attrs
import numpy as np

from ...autograd.api import grad as eager_grad
from ...tensor.modes import GRAD, no_grad
from ...tensor.tensor import Tensor, from_array, root_of
from ...trace.tracing.error_modes import quietly, raises_errors
from ...views.geometry import overlaps_itself
from ...views.meta import CreationMeta
from ..guards.call_signature import share_memory
from ..guards.closure_guard import ClosureGuard
from ..guards.closure_walk import user_function
from ..guards.identity_checks import FEW as FEW_CALLS
from .argument_types import classes_in, is_same, objects_in, type_key, type_text
from .build import Program, build
from .comparing import is_close, scale_of
from .examples import SourceExamples
from .functions import users_function
from .ir import Var
from .kinds import Arr, Num
from .node import outputs_of
from .objects import Input, guards_hold, quick_check
from .read import Reader, Source
from .results import built_result, flatten_result, has_lists, with_leaf
from .runtime import GiveUp
from .tapes import Tapes, default_limit
from .values import NotSupported, Path, leaves_of

MISSED: Final[Any] = object()  # the result of a call that this tier does not run
MOST: Final = 8  # programs for one kind of arguments, for other captured state
DTYPE_OF: Final = {char: np.dtype(char) for char in np.typecodes["All"]}
DEFECT: Final = "a defect of the source compiler"
MOST_KINDS: Final = 64  # combinations of argument types; strings count as types
WEAK: Final = {"?": bool, "l": int, "d": float}  # the classes of Python's numbers
PATIENCE: Final = 8  # failed runs in a row after which calls run eagerly
Array = np.ndarray[Any, Any]


@attrs.define(eq=False)
class Entry:
    """The program for one combination of argument types, and one captured state.

    Attributes:
        source: the program as read.
        guard: the captured state, without inputs.
        objects: the functions and objects among the arguments, which must be the same.
        reason: the reason if there is none.
        programs: by the inputs that have gradients, and the options of the build.
        wraps: whether indices may be negative.
        lowers: whether operations on arrays in loops become loops over elements.
        checked: for which inputs the gradients have been compared.
        kinds: the types of the leaves of the results.
        runs: the number of runs.
        failures: the reasons of failed runs, and their counts.
        failed_runs: the number of failed runs since the last successful one.
        quick: a generated check of the guards of the source, after some runs.
    """

    source: Source | None
    reason: str = ""
    guard: ClosureGuard | None = None
    objects: Sequence[Any] = ()
    programs: dict[Any, Program] = attrs.Factory(dict)
    wraps: bool = False
    lowers: bool = True
    checked: set[Any] = attrs.Factory(set)
    kinds: list[Any] | None = None
    runs: int = 0
    failures: Counter[str] = attrs.Factory(Counter)
    failed_runs: int = 0
    quick: Callable[[Sequence[Any]], bool] | None = None


@attrs.frozen(eq=False)
class GradientCall:
    """A cached dispatch of calls of `value_and_grad`, for one combination of argument types.

    Attributes:
        entry, source: the entry and the source that run them.
        floats: the numbers of the arguments that are differentiated and are floats.
        wanted: the numbers of the inputs that are differentiated.
        chosen: the same, in order.
        captured: the paths of the other inputs, which must not require gradients.
        numbers: the numbers of the arguments that are differentiated.
        count: the number of arguments if all of them are arrays, whose types `_arrays` checks; else -1.
    """

    entry: Entry
    source: Source
    floats: tuple[int, ...]
    wanted: list[int]
    chosen: tuple[int, ...]
    captured: list[Path]
    numbers: tuple[int, ...]
    count: int

    def given(self, args: tuple[Any, ...]) -> Sequence[Any]:
        """Return the arguments, with floats as NumPy scalars."""
        if not self.floats:
            return args
        given = list(args)
        for number in self.floats:
            given[number] = np.float64(given[number])
        return given

    def takes(self, program: Program) -> bool:
        """Return whether a program gives one float, and writes to no argument."""
        if program.mutated or len(program.results) != 1:
            return False
        kind = self.source.kinds[program.results[0]]
        return isinstance(kind, Num) and kind.dtype == "d"


NO_ENTRY: Final = Entry(None, "there are too many combinations of argument types")


class SourceTier:
    """Runs calls of a function by programs made from its source.

    Arguments:
        function: the function.
        executor: "numba" or "python".
        static: the names or positions of arguments that are part of the program.
        check: whether the first call of each kind is compared with the function.
        is_on: whether it takes calls.
        tape_limit: the most bytes on a tape; None for half of the machine's memory.
    """

    shares: ClassVar[bool] = False  # whether arguments may share memory

    def __init__(
        self, function: Callable[..., Any], executor: str, static: Sequence[Any], check: bool, is_on: bool = True,
        tape_limit: float | None = None,
    ) -> None:
        self.function = function
        self.executor = executor
        self.check = check
        self.is_on = is_on and not static
        self.entries: dict[Any, list[Entry]] = {}
        self.gradient_calls: dict[Any, list[GradientCall]] = {}
        self.last_call: GradientCall | None = None
        self.lock = threading.RLock()
        self.tapes = Tapes()
        self.limit = default_limit(executor) if tape_limit is None else float(tape_limit)

    # -- calls ---------------------------------------------------------------------------------------------------------

    def call(self, args: tuple[Any, ...], keywords: dict[str, Any], mode: int) -> Any:
        """Return the result of a call, or `MISSED`.

        Arguments:
            args, keywords: the arguments.
            mode: the mode that it is made in.
        """
        if not self.is_on or mode & ~GRAD or raises_errors():
            return MISSED
        given = (*args, *keywords.values()) if keywords else args
        key = self._key(args, keywords)
        if key is None:
            return MISSED
        entry = self._entry(key, args, keywords, given)
        if entry.source is None:
            return MISSED
        arrays = self._arrays(entry.source, given)
        if arrays is None:
            return MISSED
        is_recording = bool(mode & GRAD)
        values = [self._value(each, given) for each in entry.source.inputs]
        wanted = tuple([n for n, value in enumerate(values)
                        if is_recording and type(value) is Tensor and value.requires_grad])
        program = self._program(entry, wanted)
        if program is None or not all(_is_writable(values[n], is_recording) for n in program.mutated):
            return MISSED
        if self.check and wanted not in entry.checked:
            return self._first(entry, program, wanted, args, keywords, values, arrays)
        return self._run(entry, program, args, keywords, values, arrays)

    def examples(self, args: tuple[Any, ...], keywords: dict[str, Any], mode: int) -> SourceExamples | None:
        """Return a runner of the program for a batch of examples; None if no verified program exists.

        Arguments:
            args, keywords: the arguments for one example.
            mode: the mode that the call is made in.
        """
        if mode & ~GRAD or raises_errors():
            return None
        given = (*args, *keywords.values())
        key = self._key(args, keywords)
        entry = None if key is None else self._entry(key, args, keywords, given)
        if entry is None or entry.source is None:
            return None
        arrays = self._arrays(entry.source, given)
        if arrays is None:
            return None
        values = [self._value(each, given) for each in entry.source.inputs]
        wanted = tuple([n for n, value in enumerate(values)
                        if mode & GRAD and type(value) is Tensor and value.requires_grad])
        if self.check and wanted not in entry.checked:
            return None
        program = self._program(entry, wanted)
        if program is None or program.mutated or has_lists(entry.source.result) or not all(
            issubclass(kind, (Tensor, np.ndarray, np.generic)) for kind in entry.kinds or ()
        ):
            return None

        def failed(error: Exception) -> None:
            self._failed(entry, error)

        def ran(count: int) -> None:
            entry.runs += count
            entry.failed_runs = 0

        return SourceExamples(program, arrays, self.tapes, self._replay, self.executor == "numba", ran, failed)

    def gradients_at(self, args: tuple[Any, ...], numbers: Sequence[int]) -> tuple[bool, Any, list[Any]] | None:
        """Return the value and gradients of a scalar-valued function of arrays; None if this tier has none.

        Arguments:
            args: the arguments, which have no history.
            numbers: the numbers of the arguments to differentiate with respect to.

        Returns:
            Whether the value is a scalar, its array, and the gradients.
        """
        if not self.is_on or raises_errors():
            return None
        given: Sequence[Any] = args
        known = self.last_call
        arrays: list[Any] | None = None
        if known is not None and known.count == len(args) and known.numbers == numbers \
                and known.entry.source is known.source and self._holds(known.entry, args):
            arrays = self._arrays(known.source, args)
        if arrays is None or known is None:
            known = self._known_gradient_call(args, numbers)
            if known is None:
                return None
            given = known.given(args)
            arrays = self._arrays(known.source, given)
            self.last_call = known
        entry = known.entry
        if self.check and known.chosen not in entry.checked:
            return None
        for path in known.captured:
            value = path.now(given)
            if type(value) is Tensor and value.requires_grad:
                return None
        program = None if arrays is None else self._program(entry, known.chosen)
        if arrays is None or program is None or not known.takes(program):
            return None
        try:
            value, found = quietly(self.tapes.value_and_gradients, program, arrays)
        except Exception:  # the function raises it, too; if not, its call counts as a failed run
            return None
        if found is None:
            return None
        entry.runs += 1
        entry.failed_runs = 0
        if program.wanted == known.wanted:
            return True, np.asarray(value, float), [
                each if type(each) is np.ndarray else np.asarray(each) for each in found]
        by_number = dict(zip(program.wanted, found))
        gradients = [
            np.asarray(by_number[n]) if n in by_number else np.zeros(np.shape(arrays[n])) for n in known.wanted
        ]
        return True, np.asarray(value, float), gradients

    def _known_gradient_call(self, args: tuple[Any, ...], numbers: Sequence[int]) -> GradientCall | None:
        """Return the dispatch of a call of `value_and_grad` by its argument types; None if there is none."""
        key: Any = (tuple(numbers), *[
            (arg.dtype.char, arg.ndim) if type(arg) is np.ndarray else type_key(arg) for arg in args])
        for each in self.gradient_calls.get(key, ()):
            if each.entry.source is each.source and self._holds(each.entry, each.given(args)):
                return each
        known = self._gradient_call(args, numbers)
        if known is not None:
            self.gradient_calls.setdefault(key, []).append(known)
        return known

    def _gradient_call(self, args: tuple[Any, ...], numbers: Sequence[int]) -> GradientCall | None:
        """Resolve a call of `value_and_grad` by its argument types; None if there is no entry for them."""
        given = list(args)
        kinds = [type_key(arg) for arg in args]
        floats = []
        for number in numbers:
            kind = kinds[number] if number < len(kinds) else None
            if kind is float or kind is np.float64:
                floats.append(number)
                given[number], kinds[number] = np.float64(given[number]), ("d", 0, True, "scalar")
            elif type(kind) is tuple and len(kind) in (2, 3) and kind[0] == "d":
                kinds[number] = (*kind[:2], True)
            else:
                return None
        entries = self.entries.get(tuple(kinds), ())
        entry = next((each for each in entries if each.source is not None and self._holds(each, given)), None)
        if entry is None or entry.source is None:
            return None
        source = entry.source
        if not isinstance(source.result, Var):
            return None
        wanted = []
        for number in numbers:
            found = [n for n, each in enumerate(source.inputs) if each.path.is_argument and each.path.root == number]
            if len(found) != 1 or source.inputs[found[0]].path.steps or source.inputs[found[0]].kind.dtype != "d":
                return None
            wanted += found
        others = [each.path for n, each in enumerate(source.inputs) if n not in wanted]
        arrays = {each.path.root for each in source.inputs
                  if each.path.is_argument and not each.path.steps and isinstance(each.kind, Arr)}
        count = len(args) if arrays == set(range(len(args))) else -1
        return GradientCall(entry, source, tuple(floats), wanted, tuple(sorted(wanted)), others, tuple(numbers), count)

    def _run(
        self, entry: Entry, program: Program, args: Any, keywords: Any, values: list[Any], arrays: list[Any]
    ) -> Any:
        given = self._own(program, values, arrays)
        try:
            with np.errstate(all="ignore"):
                outputs, pullback = self.tapes.run(program, given)
        except Exception as error:
            return self._after_failed_run(entry, error, args, keywords)
        entry.runs += 1
        entry.failed_runs = 0
        return self._results(entry, program, args, keywords, values, given, outputs, pullback)

    def _own(self, program: Program, values: list[Any], arrays: list[Any]) -> list[Any]:
        """Return the arrays for a program: copies of those that may be written to before the gradient reads them."""
        if not program.wanted:
            return arrays
        return [
            array.copy() if isinstance(array, np.ndarray) and type(value) is not Tensor else array
            for value, array in zip(values, arrays)
        ]

    def _results(
        self, entry: Entry, program: Program, args: Any, keywords: Any, values: list[Any], given: list[Any],
        outputs: Sequence[Any], pullback: Any,
    ) -> Any:
        """Return the results of a run, with one node as their history; write to the mutated arguments."""
        source = program.source
        tensors: list[Any] = []
        kinds = [source.kinds[name] for name in program.results]
        is_differentiated = bool(program.wanted) and pullback is not None
        for number, (value, kind) in enumerate(
            zip(outputs, [*kinds, *[source.inputs[n].kind for n in program.mutated]])
        ):
            array = np.asarray(value, kind.dtype)
            if is_differentiated and array is value and number < len(kinds):
                array = array.copy()  # the reverse part reads the program's own array, and restores what it was before
            tensors.append(from_array(array))
        if is_differentiated:
            names = [*program.results, *[source.inputs[n].name for n in program.mutated]]
            has_history = [name in program.active for name in names]
            replay = self._replay(program, args, keywords)
            tensors = outputs_of(program, tensors, has_history, values, given, pullback, self.tapes, replay)
        for number, tensor in zip(program.mutated, tensors[len(program.results) :]):
            target = values[number]
            if type(target) is not Tensor:
                target[...] = tensor._array
            elif tensor.requires_grad:
                target.copy_(tensor)
            else:
                with no_grad():
                    target.copy_(tensor)
        leaves = dict(zip(program.results, tensors))
        return built_result(source.result, leaves, source.kinds, entry.kinds)

    def _replay(self, program: Program, args: Any, keywords: dict[str, Any]) -> Callable[[dict[int, Any]], Any]:
        """Return a function that runs the user's function eagerly, with other tensors in the place of some inputs."""
        source = program.source

        def replay(tensors: dict[int, Any]) -> Any:
            names = list(keywords)
            given = [*args, *keywords.values()]
            for number, tensor in tensors.items():
                path = source.inputs[number].path
                if path.is_argument:
                    given[path.root] = with_leaf(given[path.root], path.steps, tensor)
            result = self.function(*given[: len(args)], **dict(zip(names, given[len(args) :])))
            by_name: dict[str, Any] = {}
            for leaf, tree in zip(flatten_result(result, source.result) or (), leaves_of(source.result)):
                if isinstance(tree, Var):
                    by_name.setdefault(tree.name, leaf)
            return [*[by_name.get(name) for name in program.results], *[tensors[number] for number in program.mutated]]

        return replay

    # -- the first call ------------------------------------------------------------------------------------------------

    def _first(
        self, entry: Entry, program: Program, wanted: tuple[int, ...], args: Any, keywords: Any, values: list[Any],
        arrays: list[Any],
    ) -> Any:
        """Run the function and its program, and compare their results."""
        own = [each.copy() if isinstance(each, np.ndarray) else each for each in arrays]
        result = self.function(*args, **keywords)
        reason, outputs, pullback = "", (), None
        for _ in range(3):
            program_now = self._program(entry, wanted)
            if program_now is None:
                return result
            program = program_now
            try:
                with np.errstate(all="ignore"):
                    outputs, pullback = self.tapes.run(program, own)
                break
            except Exception as error:
                if isinstance(error, IndexError) and not entry.wraps:
                    entry.wraps = True  # the function did not raise: indices count from the end
                    continue
                entry.failures[_told(error)] += 1
                return result
        else:
            return result
        leaves = leaves_of(program.source.result)
        found = flatten_result(result, program.source.result)
        if found is None or len(found) != len(leaves):
            reason = "its result has another structure"
        else:
            entry.kinds = [type(leaf) for leaf in found]
            by_name = dict(zip(program.results, outputs))
            named = [(leaf, tree.name) for leaf, tree in zip(found, leaves) if isinstance(tree, Var)]
            pairs = [(leaf, by_name[name], name) for leaf, name in named]
            scale = scale_of(own)
            for leaf, mine, _ in pairs:
                if not is_close(_plain(leaf), mine, scale):
                    reason = "its program gave another value than the function"
            for number, mine in zip(program.mutated, outputs[len(program.results) :]):
                if not is_close(_plain(values[number]), mine, scale):
                    reason = "its program wrote other values to an argument"
            if not reason and pullback is not None and program.wanted and not program.mutated:
                try:
                    reason = self._compare_gradients(program, pairs, values, outputs, pullback, scale)
                except Exception as error:
                    entry.failures[_told(error)] += 1
                    return result
        if reason and not self._is_conclusive(outputs):
            entry.failures["a value that is not finite"] += 1
            return result
        if reason:
            entry.source, entry.reason = None, reason
        entry.checked.add(wanted)
        return result

    def _is_conclusive(self, outputs: Sequence[Any]) -> bool:
        """Return whether a difference from the function shows that a program is wrong."""
        return True

    def _compare_gradients(
        self, program: Program, pairs: list[Any], values: list[Any], outputs: Sequence[Any], pullback: Any,
        scale: float,
    ) -> str:
        """Compare gradients; why they differ, or nothing."""
        chosen = {name: leaf for leaf, _, name in pairs if isinstance(leaf, Tensor) and leaf.requires_grad}
        seeds = {name: _seed(leaf) for name, leaf in chosen.items()}
        with np.errstate(all="ignore"):
            mine = pullback(*[seeds.get(name) for name in program.results], *[None] * len(program.mutated))
        leaves = [values[n] for n in program.wanted]
        if not chosen:
            if any(np.any(np.nan_to_num(np.asarray(each))) for each in mine):
                return "its program gave a gradient, and the function has none"
            return ""
        expected = eager_grad(list(chosen.values()), leaves, [Tensor(seeds[name]) for name in chosen],
                              retain_graph=True, allow_unused=True)
        noise = max(1.0, scale_of(outputs) / max(scale, 1e-300))
        for gradient, found in zip(expected, mine):
            wanted = np.zeros(np.shape(found)) if gradient is None else gradient._array
            if not is_close(wanted, found, noise):
                return "its program gave another gradient than the function"
        return ""

    def _after_failed_run(self, entry: Entry, error: Exception, args: Any, keywords: Any) -> Any:
        """Run the function after a failed run, which has written nothing."""
        result = self.function(*args, **keywords)
        self._failed(entry, error)
        return result

    def _failed(self, entry: Entry, error: Exception) -> None:
        entry.failures[_told(error)] += 1
        entry.failed_runs += 1
        if self._adapts(entry, error):
            entry.failed_runs = 0
        elif entry.failed_runs >= PATIENCE:
            entry.source, entry.reason = None, f"{PATIENCE} runs in a row failed: {_told(error)}"

    def _adapts(self, entry: Entry, error: Exception) -> bool:
        """Switch to a more general program; return whether there is one.

        Indices may count from the end, and arrays may be broadcast that were not expected to be.
        """
        if isinstance(error, IndexError) and not entry.wraps:
            entry.wraps = True
            return True
        if isinstance(error, (RuntimeError, GiveUp)) and entry.lowers and self.executor == "numba":
            entry.lowers = False
            return True
        return False

    # -- programs by kind of arguments ---------------------------------------------------------------------------------

    def _key(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        found = [type_key(arg) for arg in args]
        if keywords:
            found += [(name, type_key(value)) for name, value in keywords.items()]
        return None if None in found else tuple(found)

    def _entry(self, key: Any, args: tuple[Any, ...], keywords: dict[str, Any], given: Sequence[Any]) -> Entry:
        for entry in self.entries.get(key, ()):
            if self._holds(entry, given):
                return entry
        if len(self.entries) >= MOST_KINDS and key not in self.entries:
            return NO_ENTRY
        with self.lock:
            entries = self.entries.setdefault(key, [])
            if len(entries) >= MOST:
                if not any(entry.reason and entry.source is None and not entry.programs for entry in entries[-1:]):
                    entries.append(Entry(None, f"captured state has changed {MOST} times"))
                return entries[-1]
            entry = self._read(args, keywords)
            entries.append(entry)
            return entry

    def _read(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> Entry:
        try:
            function, source = self._source(args, keywords)
            given = (*args, *keywords.values())
            objects = [each for value in given for each in objects_in(value)]
            classes = [each for value in given for each in classes_in(value)]
            guard = ClosureGuard(function, [*objects, *classes], _places(source.inputs, given))
        except NotSupported as error:
            where = f"line {error.line}: " if error.line else ""
            return Entry(None, f"{where}{error.reason}")
        except Exception as error:
            return Entry(None, f"{DEFECT}: {type(error).__name__}: {error}")
        reason = _why_unguarded(guard)
        if reason is not None:
            return Entry(None, reason)
        return Entry(source, "", guard, objects)

    def _source(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[Any, Source]:
        """Return the user's function, and its program for the types of some arguments."""
        function = users_function(user_function(self.function))
        return function, Reader().source(function, args, keywords)

    def _holds(self, entry: Entry, given: Sequence[Any]) -> bool:
        """Return whether the captured state is unchanged."""
        if entry.source is None or entry.guard is None:
            return True
        if entry.objects:
            now = [each for value in given for each in objects_in(value)]
            if len(now) != len(entry.objects) or not all(map(is_same, now, entry.objects)):
                return False
        quick = entry.quick
        if quick is None and entry.runs > FEW_CALLS:
            quick = entry.quick = quick_check(entry.source.guards)
        if quick is None or not quick(given):
            return guards_hold(entry.source.guards, given) and entry.guard.unchanged()
        return entry.guard.unchanged()

    def _program(self, entry: Entry, wanted: tuple[int, ...]) -> Program | None:
        program = entry.programs.get((wanted, entry.wraps, entry.lowers))
        if program is None and entry.source is not None:
            with self.lock:
                try:
                    program = build(entry.source, wanted, self.executor, entry.wraps, entry.lowers, self.limit)
                except NotSupported as error:
                    entry.source, entry.reason = None, str(error)
                    return None
                except Exception as error:
                    entry.source, entry.reason = None, f"{DEFECT}: {type(error).__name__}: {error}"
                    return None
                program.checks_second = self.check
                entry.programs[wanted, entry.wraps, entry.lowers] = program
        return program

    def _value(self, each: Input, given: Sequence[Any]) -> Any:
        path = each.path
        return given[path.root] if path.is_argument and not path.steps else path.now(given)

    def _arrays(self, source: Source, given: Sequence[Any]) -> list[Any] | None:
        """Return the inputs of a program as arrays and numbers; None if they are not of their kinds."""
        found: list[Any] = []
        shared: list[Any] = []
        for each in source.inputs:
            path, kind = each.path, each.kind
            try:
                value = given[path.root] if path.is_argument and not path.steps else path.now(given)
            except Exception:
                return None
            array = value._array if type(value) is Tensor else value
            if isinstance(kind, Arr):
                if type(array) is not np.ndarray or array.ndim != kind.ndim or array.dtype != DTYPE_OF[kind.dtype]:
                    return None
                shared.append(array)
                flags = array.flags
                if not flags.carray:
                    if source.reshapes and not flags.c_contiguous:
                        return None
                    array = np.array(array, order="C")
                found.append(array)
                continue
            if isinstance(array, np.ndarray):
                if array.ndim or array.dtype != DTYPE_OF[kind.dtype]:
                    return None
                array = array[()]
            elif kind.weak:
                if type(array) not in (bool, int, float):
                    return None
                if not path.is_argument and type(array) is not WEAK[kind.dtype]:
                    return None
                if type(array) is int and not -(2**62) < array < 2**62:
                    return None
            elif not isinstance(array, np.generic) or array.dtype.char != kind.dtype:
                return None
            found.append(array)
        if len(shared) > 1 and not self.shares and _may_share(shared) and share_memory(shared):
            return None
        return found

    # -- telling -------------------------------------------------------------------------------------------------------

    def explain(self, name: str) -> str:
        """Describe what was compiled from the source, and the reasons why not; empty if it has not been called."""
        parts = []
        for key, entries in self.entries.items():
            for entry in entries:
                lines = [f"{name}({', '.join(map(type_text, key))})"]
                if entry.source is None:
                    lines.append(f"  not compiled from its source: {entry.reason}")
                else:
                    lines.append(f"  compiled from its source, {self.executor} executor, for all lengths and branches")
                    for program in entry.programs.values():
                        lines += _program_lines(program)
                lines += [f"  ran eagerly {count} times: {reason}" for reason, count in entry.failures.items()]
                parts.append("\n".join(lines))
        return "\n\n".join(parts)

    @property
    def takes(self) -> bool:
        """Return whether there is a program for some kind of arguments."""
        return any(entry.source is not None for entries in self.entries.values() for entry in entries)

    def source(self) -> list[str]:
        """Return the sources of the programs."""
        return [
            program.written.source() for entries in self.entries.values() for entry in entries
            if entry.source is not None for program in entry.programs.values()
        ]


def _is_writable(value: Any, is_recording: bool) -> bool:
    """Return whether an argument can be written to as a whole, so that a program may do it.

    Arguments:
        value: the argument, an array or a tensor.
        is_recording: whether the mode is grad mode.
    """
    if type(value) is not Tensor:
        return bool(value.flags.writeable)
    view, array = value._view, value._array
    if overlaps_itself(array) or (view is not None and view.creation is not CreationMeta.DEFAULT):
        return False
    return not (is_recording and value.requires_grad and root_of(value).is_leaf)


def _may_share(arrays: Sequence[Array]) -> bool:
    """Return whether an array occurs twice, or is a view."""
    if len(arrays) == 2 and arrays[0] is not arrays[1]:
        return arrays[0].base is not None or arrays[1].base is not None
    return len(set(map(id, arrays))) < len(arrays) or any(each.base is not None for each in arrays)


def _places(inputs: Sequence[Input], given: Sequence[Any]) -> set[tuple[int, Any]]:
    """Return the places of inputs that are not arguments: the address of their holder, and their key there."""
    found: set[tuple[int, Any]] = set()
    for each in inputs:
        if not each.path.steps:
            continue
        *before, (how, key) = each.path.steps
        if before and isinstance(Path(each.path.root, each.path.is_argument, tuple(before)).now(given), np.ndarray):
            *before, (how, key) = before  # a field of a structured array
        owner = Path(each.path.root, each.path.is_argument, tuple(before)).now(given)
        found.add((id(owner), None if how == "cell" else key))
        own = getattr(owner, "__dict__", None) if how == "attr" else None
        if isinstance(own, dict) and key in own:
            found.add((id(own), key))
    return found


def _why_unguarded(guard: ClosureGuard) -> str | None:
    """Return why a change of captured state would go unnoticed; None if it would not."""
    if guard.has_iterators:
        return "it captures an iterator, whose values differ from call to call"
    if guard.hidden is not None:
        return guard.hidden
    return "it captures too much state" if guard.too_many else None


def _program_lines(program: Program) -> list[str]:
    names = [program.inputs[n].name for n in program.wanted]
    lines = [f"  gradient of {', '.join(names)}" if names else "  no gradient is wanted"]
    if names:
        if program.notes:
            lines.append("  tape:")
            lines += [f"    line {line}: {name}" for line, name in dict.fromkeys(program.notes)]
        else:
            lines.append("  tape: nothing")
    if program.bounded is not None and program.bounded.cache_info().currsize:
        reports = program.bounded().reports
        lines += [f"  {name}: beyond the limit of {program.limit:.0f} bytes: {text}" for name, text in reports.items()]
    if program.exceeds_limit:
        lines.append("  the tape needs more than its limit; there is no outermost loop to run in segments")
    return lines


def _told(error: Exception) -> str:
    if isinstance(error, GiveUp):
        return "a check failed"
    return f"{type(error).__name__} {error}".strip()


def _plain(value: Any) -> Any:
    return value._array if isinstance(value, Tensor) else np.asarray(value)


def _seed(output: Any) -> Array:
    """Return a seed with distinct elements, since equal ones may cancel in a sum."""
    numbers = np.arange(output.size)
    turned = 0.3j * np.cos(numbers) if output.dtype.kind == "c" else 0.0
    seed: Array = np.asarray(1.0 + 0.5 * np.sin(numbers) + turned, output.dtype).reshape(output.shape)
    return seed
