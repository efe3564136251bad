"""The source tier of a compiled function: programs from its source, one for each combination of argument types."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from ...errors import SavedValueError
from ...tensor.escapes import is_within_transform
from ...tensor.modes import GRAD, no_grad
from ...tensor.tensor import Tensor, from_array
from ...trace.tracing.error_modes import quietly, raises_errors
from ..guards.closure_guard import ClosureGuard
from ..guards.closure_walk import user_function
from .argument_types import classes_in, objects_in, type_key, type_text
from .build import Program, build
from .examples import SourceExamples
from .gradient_calls import GradientCall, differentiated_types, gradient_call, with_numpy_scalars
from .inputs import (
    input_arrays,
    input_places,
    input_value,
    is_same_value,
    is_writable,
    may_depend_on_another,
    preserved,
)  # fmt: skip
from .ir import Var
from .node import outputs_of
from .read import Reader, Source
from .results import built_result, flatten_result, has_lists, with_leaf
from .specialization import (
    Built,
    Failed,
    FellBack,
    Inconclusive,
    NegativeIndices,
    SourceSpecialization,
    Verified,
    described,
    failure_text,
    transition,
)
from .syntax_trees import users_function
from .tapes import Tapes, default_limit
from .values import NotSupported, leaves_of
from .verify import difference

MISSED: Final[Any] = object()  # the result of a call that this tier does not run
MAX_SPECIALIZATIONS: Final = 8  # the maximum for one combination of argument types with different captured state
MAX_COMBINATIONS: Final = 64  # the maximum for argument types; strings count as types
DEFECT: Final = "a defect of the source compiler"
TOO_MANY: Final = SourceSpecialization(None, "there are too many combinations of argument types")


class SourceTier:
    """Runs calls of a function by programs generated from its source.

    Arguments:
        function: the function.
        executor: "numba" or "python".
        static: the names or positions of arguments that are constants of the program.
        check: whether the first call of each kind is compared with the function.
        is_on: whether the tier is enabled.
        tape_limit: the maximum number of bytes on a tape; None for half of the machine's memory.
    """

    def __init__(
        self, function: Callable[..., Any], executor: str, static: Sequence[Any], check: bool, is_on: bool = True,
        tape_limit: float | None = None,
    ) -> None:
        self.function = function
        self.executor = executor
        self.check = check
        self.is_on = is_on and not static
        self.specializations: dict[Any, list[SourceSpecialization]] = {}
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
            mode: the mode of the call.
        """
        if not self.is_on or mode & ~GRAD or raises_errors():
            return MISSED
        given = (*args, *keywords.values()) if keywords else args
        key = self._key(args, keywords)
        if key is None:
            return MISSED
        of = self._specialization(key, args, keywords, given)
        if of.source is None:
            return MISSED
        arrays = self._arrays(of.source, given)
        if arrays is None:
            return MISSED
        is_recording = bool(mode & GRAD)
        values = [input_value(each, given) for each in of.source.inputs]
        wanted = tuple([n for n, value in enumerate(values)
                        if is_recording and type(value) is Tensor and value.requires_grad])
        if len(wanted) > 1 and may_depend_on_another(of.source, wanted, values):
            return MISSED
        program = self._program(of, wanted)
        if program is None or not all(is_writable(values[n], is_recording) for n in program.mutated):
            return MISSED
        if not is_within_transform() and any(
            of.source.inputs[n].name in program.active and type(values[n]) is not Tensor for n in program.mutated
        ):
            return MISSED  # a trace knows whether the history of what is written there would be lost
        if self.check and wanted not in of.verified:
            return self._first(of, wanted, args, keywords, values, arrays)
        return self._run(of, program, args, keywords, values, arrays)

    def examples(self, args: tuple[Any, ...], keywords: dict[str, Any], mode: int) -> SourceExamples | None:
        """Return a runner of the program for a batch of examples, or None if there is no verified program.

        Arguments:
            args, keywords: the arguments for one example.
            mode: the mode of the call.
        """
        if mode & ~GRAD or raises_errors():
            return None
        given = (*args, *keywords.values())
        key = self._key(args, keywords)
        of = None if key is None else self._specialization(key, args, keywords, given)
        if of is None or of.source is None:
            return None
        arrays = self._arrays(of.source, given)
        if arrays is None:
            return None
        values = [input_value(each, given) for each in of.source.inputs]
        wanted = tuple([n for n, value in enumerate(values)
                        if mode & GRAD and type(value) is Tensor and value.requires_grad])
        if (self.check and wanted not in of.verified) or may_depend_on_another(of.source, wanted, values):
            return None
        program = self._program(of, wanted)
        if program is None or program.mutated or has_lists(of.source.result) or not all(
            issubclass(kind, (Tensor, np.ndarray, np.generic)) for kind in of.leaf_types or ()
        ):
            return None

        def failed(error: Exception) -> None:
            self._fail(of, error)

        def ran(count: int) -> None:
            of.runs += count

        replay = functools.partial(self._replay, of)
        return SourceExamples(program, arrays, self.tapes, replay, self.executor == "numba", ran, failed)

    def gradients_at(self, args: tuple[Any, ...], numbers: Sequence[int]) -> tuple[bool, Any, list[Any]] | None:
        """Return the value and gradients of a scalar-valued function of arrays, or None if this tier cannot compute
        them.

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
                and known.is_current and known.specialization.holds(args):
            arrays = self._arrays(known.source, args)
        if arrays is None or known is None:
            known = self._known_gradient_call(args, numbers)
            if known is None:
                return None
            given = known.arguments(args)
            arrays = self._arrays(known.source, given)
            self.last_call = known
        of = known.specialization
        if self.check and known.chosen not in of.verified:
            return None
        for path in known.captured:
            value = path.now(given)
            if type(value) is Tensor and value.requires_grad:
                return None
        program = None if arrays is None else self._program(of, known.chosen)
        if arrays is None or program is None or not known.is_scalar_valued(program):
            return None
        try:
            value, found = quietly(self.tapes.value_and_gradients, program, arrays)
        except Exception:  # the function raises it too; if it does not, the call counts as a failed run
            return None
        if found is None:
            return None
        of.runs += 1
        if program.wanted == known.wanted:
            return True, np.asarray(value, float), [
                each if type(each) is np.ndarray else np.asarray(each) for each in found]
        by_number = dict(zip(program.wanted, found))
        gradients = [
            np.asarray(by_number[n]) if n in by_number else np.zeros(np.shape(arrays[n])) for n in known.wanted
        ]
        return True, np.asarray(value, float), gradients

    def _known_gradient_call(self, args: tuple[Any, ...], numbers: Sequence[int]) -> GradientCall | None:
        """Return the cached dispatch of a call of `value_and_grad` by its argument types, or None."""
        key: Any = (tuple(numbers), *[
            (arg.dtype.char, arg.ndim) if type(arg) is np.ndarray else type_key(arg) for arg in args])
        for each in self.gradient_calls.get(key, ()):
            if each.is_current and each.specialization.holds(each.arguments(args)):
                return each
        known = self._gradient_call(args, numbers)
        if known is not None:
            self.gradient_calls.setdefault(key, []).append(known)
        return known

    def _gradient_call(self, args: tuple[Any, ...], numbers: Sequence[int]) -> GradientCall | None:
        """Create the dispatch of a call of `value_and_grad` by its argument types, or return None if no specialization
        can run it.
        """
        types = differentiated_types(args, numbers)
        if types is None:
            return None
        kinds, floats = types
        given = with_numpy_scalars(args, floats)
        for each in self.specializations.get(kinds, ()):
            if each.source is not None and each.holds(given):
                return gradient_call(each, len(args), numbers, floats)
        return None

    def _run(
        self, of: SourceSpecialization, program: Program, args: Any, keywords: Any, values: list[Any], arrays: list[Any]
    ) -> Any:
        given = preserved(values, arrays) if program.wanted else arrays
        try:
            with np.errstate(all="ignore"):
                outputs, pullback = self.tapes.run(program, given)
        except Exception as error:
            return self._after_failed_run(of, error, args, keywords)
        of.runs += 1
        return self._results(of, program, args, keywords, values, given, outputs, pullback)

    def _results(
        self, of: SourceSpecialization, program: Program, args: Any, keywords: Any, values: list[Any], given: list[Any],
        outputs: Sequence[Any], pullback: Any,
    ) -> Any:
        """Return the results of a run, with a single node as their history, and write to the mutated arguments."""
        source = program.source
        tensors: list[Any] = []
        kinds = [source.kinds[name] for name in program.results]
        is_differentiated = bool(program.wanted) and pullback is not None
        for number, (value, kind) in enumerate(
            zip(outputs, [*kinds, *[source.inputs[n].kind for n in program.mutated]])
        ):
            array = np.asarray(value, kind.dtype)
            if is_differentiated and array is value and number < len(kinds):
                # the reverse part reads the program's own array, and restores its previous contents
                array = array.copy()
            tensors.append(from_array(array))
        if is_differentiated:
            names = [*program.results, *[source.inputs[n].name for n in program.mutated]]
            has_history = [name in program.active for name in names]
            replay = self._replay(of, program, args, keywords)
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
        return built_result(source.result, leaves, source.kinds, of.leaf_types)

    def _replay(
        self, of: SourceSpecialization, program: Program, args: Any, keywords: dict[str, Any]
    ) -> Callable[[dict[int, Any], dict[int, Any]], Any]:
        """Return a function that runs the user's function eagerly: `replay(tensors, others)`.

        Some inputs are replaced by the tensors. The others, and the state that the program depends on, must be as they
        were.
        """
        source = program.source

        def replay(tensors: dict[int, Any], others: dict[int, Any]) -> Any:
            names = list(keywords)
            given = [*args, *keywords.values()]
            if not of.holds(given) or not all(
                is_same_value(input_value(source.inputs[number], given), value) for number, value in others.items()
            ):
                raise SavedValueError(
                    f"this gradient needs a second run of {getattr(self.function, '__name__', 'a function')}, but "
                    "something that it reads, such as a global variable or an attribute, has changed since the first "
                    "run; compute the gradient before the change, or pass the value as a tensor"
                )
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
        self, of: SourceSpecialization, wanted: tuple[int, ...], args: Any, keywords: Any, values: list[Any],
        arrays: list[Any],
    ) -> Any:
        """Run the function and its program, and compare their results."""
        own = [each.copy() if isinstance(each, np.ndarray) else each for each in arrays]
        result = self.function(*args, **keywords)
        run = self._verified_run(of, wanted, own)
        if run is None:
            return result
        program, outputs, pullback = run
        leaves = flatten_result(result, program.source.result)
        try:
            reason = difference(program, leaves, outputs, pullback, values, own)
        except Exception as error:
            transition(of, Inconclusive(failure_text(error)))
            return result
        if reason and not self._is_conclusive(outputs):
            transition(of, Inconclusive("a value that is not finite"))
            return result
        if reason:
            transition(of, FellBack(reason))
        else:
            transition(of, Verified(wanted, [type(leaf) for leaf in leaves or ()]))
        return result

    def _verified_run(
        self, of: SourceSpecialization, wanted: tuple[int, ...], arrays: list[Any]
    ) -> tuple[Program, Sequence[Any], Any] | None:
        """Return a program with its results and gradients for the first call, or None if it fails.

        An index that is out of range is assumed to count from the end, since the function did not raise.
        """
        for _ in range(2):
            program = self._program(of, wanted)
            if program is None:
                return None
            try:
                with np.errstate(all="ignore"):
                    return program, *self.tapes.run(program, arrays)
            except Exception as error:
                if not isinstance(error, IndexError) or of.wraps:
                    transition(of, Inconclusive(failure_text(error)))
                    return None
                transition(of, NegativeIndices())
        return None

    def _is_conclusive(self, outputs: Sequence[Any]) -> bool:
        """Return whether a difference from the function proves that a program is wrong."""
        return True

    def _after_failed_run(self, of: SourceSpecialization, error: Exception, args: Any, keywords: Any) -> Any:
        """Run the function after a failed run, which has written nothing."""
        result = self.function(*args, **keywords)
        self._fail(of, error)
        return result

    def _fail(self, of: SourceSpecialization, error: Exception) -> None:
        transition(of, Failed(error, self.executor == "numba"))

    # -- programs by argument types ------------------------------------------------------------------------------------

    def _key(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        found = [type_key(arg) for arg in args]
        if keywords:
            found += [(name, type_key(value)) for name, value in keywords.items()]
        return None if None in found else tuple(found)

    def _specialization(
        self, key: Any, args: tuple[Any, ...], keywords: dict[str, Any], given: Sequence[Any]
    ) -> SourceSpecialization:
        for each in self.specializations.get(key, ()):
            if each.holds(given):
                return each
        if len(self.specializations) >= MAX_COMBINATIONS and key not in self.specializations:
            return TOO_MANY
        with self.lock:
            known = self.specializations.setdefault(key, [])
            if len(known) < MAX_SPECIALIZATIONS:
                known.append(self._read(args, keywords))
            elif known[-1].source is not None or known[-1].programs or not known[-1].reason:
                reason = f"captured state has changed {MAX_SPECIALIZATIONS} times"
                known.append(SourceSpecialization(None, reason))
            return known[-1]

    def _read(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> SourceSpecialization:
        try:
            function, source = self._source(args, keywords)
            given = (*args, *keywords.values())
            objects = [each for value in given for each in objects_in(value)]
            classes = [each for value in given for each in classes_in(value)]
            guard = ClosureGuard(function, [*objects, *classes], input_places(source.inputs, given))
        except NotSupported as error:
            where = f"line {error.line}: " if error.line else ""
            return SourceSpecialization(None, f"{where}{error.reason}")
        except Exception as error:
            return SourceSpecialization(None, f"{DEFECT}: {type(error).__name__}: {error}")
        if guard.why_incomplete is not None:
            return SourceSpecialization(None, guard.why_incomplete)
        return SourceSpecialization(source, "", guard, objects)

    def _source(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[Any, Source]:
        """Return the user's function and its program for given argument types."""
        function = users_function(user_function(self.function))
        return function, Reader().source(function, args, keywords)

    def _program(self, of: SourceSpecialization, wanted: tuple[int, ...]) -> Program | None:
        program = of.programs.get((wanted, of.wraps, of.lowers))
        if program is None and of.source is not None:
            with self.lock:
                try:
                    program = build(of.source, wanted, self.executor, of.wraps, of.lowers, self.limit)
                except NotSupported as error:
                    transition(of, FellBack(str(error)))
                    return None
                except Exception as error:
                    transition(of, FellBack(f"{DEFECT}: {type(error).__name__}: {error}"))
                    return None
                program.checks_second = self.check
                transition(of, Built(wanted, program))
        return program

    _arrays = staticmethod(input_arrays)

    # -- descriptions --------------------------------------------------------------------------------------------------

    def explain(self, name: str) -> str:
        """Describe what was compiled from the source, and the reasons for eager calls; empty if there were no calls."""
        return "\n\n".join(
            described(each, f"{name}({', '.join(map(type_text, key))})", self.executor)
            for key, known in self.specializations.items() for each in known
        )

    def source(self) -> list[str]:
        """Return the sources of the programs."""
        return [
            program.written.source() for known in self.specializations.values() for each in known
            if each.source is not None for program in each.programs.values()
        ]
