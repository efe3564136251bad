"""`compile`: generate a program and its gradient for a function, from its source or from a trace."""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, Protocol, TypeVar, overload

import numpy as np

from ..adoption import adopted_callable
from ..errors import NotCompiledError, NotCompiledWarning, ViewInPlaceError
from ..func.compiled_calls import COMPILED_CALLS, CompiledCalls, Path
from ..func.numpy_results import array_or_number, as_given
from ..func.program_methods import program_method
from ..func.tree import Structure, flatten, opaque_parts, unflatten
from ..tensor.escapes import OUTSIDE, transform_kind, within_compiled, within_transform
from ..tensor.modes import GRAD, PROFILE, current_mode
from ..tensor.tensor import Tensor, as_scalar, current_edge, from_array
from ..tensor.trace_hooks import PROFILER
from ..trace.tracing.error_modes import raises_errors
from .backends.backends import Executor, chosen_executor
from .cache import (
    Built,
    Cache,
    Failed,
    FellBack,
    NearSingular,
    Running,
    Skipped,
    Specialization,
    State,
    Traced,
    Verified,
)  # fmt: skip
from .calls.arguments import Arguments, Call, is_found_by_name
from .calls.array_arguments import over_arrays
from .calls.batched import Batched, ExampleProgram
from .calls.capture import capture
from .calls.fast_call import MISSED, GuardFailure, eager_call, fast_call
from .calls.guarded_trace import GuardedTrace
from .calls.jvp import JvpArguments, jvp_function
from .calls.node import called, differentiable_outputs
from .calls.pickling import PickledTrace, packed, unpacked
from .calls.value_and_grad import value_and_gradient_of
from .calls.verify import agree, verify
from .explain import explained
from .gradient import CompiledGradient, value_and_grad_at
from .pipeline import CompilerDefectError, compile_graph
from .policy import Action, after_failure
from .runtime import CompiledProgram
from .source.examples import SourceExamples
from .source.tangent_tier import TangentTier
from .source.tier import MISSED as NOT_TAKEN
from .source.tier import SourceTier

Function = Callable[..., Any]
P = ParamSpec("P")
R = TypeVar("R", covariant=True)
Batch = int | str | Sequence[int | str]  # True is also an int
SPECIALIZE = False  # the default of `compile`


class Compiled:
    """A compiled function; see `compile`. It dispatches calls to a program or to the original function."""

    def __init__(
        self, f: Function, executor: str | None, static: Sequence[Any], check: bool, specialize: bool = False,
        returns_arrays: bool = False, tape_limit: float | None = None,
    ) -> None:
        functools.update_wrapper(self, f)
        self.returns_arrays = returns_arrays  # used if no argument is a tensor; otherwise all results are tensors
        self.function = f
        self.name: str = getattr(f, "__qualname__", repr(f))
        self.executor_name = executor
        self.executor: Executor = chosen_executor(executor)
        self.static = tuple(static)
        self.arguments = Arguments(f, static)
        self.check = check
        self.specialize = specialize
        self.tier = SourceTier(f, self.executor.name, static, check, not self.specialize, tape_limit)
        self.tape_limit = tape_limit
        self.cache = Cache()
        self.pickled_traces: list[PickledTrace] = []
        self.jvp: Compiled | None = None  # the function for forward mode

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        found = self.tensor_results(args, keywords)
        return as_given(found, (args, keywords)) if self.returns_arrays else found

    def tensor_results(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Return the results of a call as tensors, whether or not an argument is a tensor."""
        calls = COMPILED_CALLS.get()
        return self._call(args, keywords) if calls is None else self._call_in(calls, args, keywords)

    def _call(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        mode = current_mode()
        if self.tier.is_on:
            found = self.tier.call(args, keywords, mode)
            if found is not NOT_TAKEN:
                return found
        for specialization, fast in self.cache.fast_calls:
            found = fast.call(args, keywords, mode)
            if found is MISSED:
                continue
            if type(found) is GuardFailure:
                with within_compiled():
                    call = self.arguments.call(args, keywords, mode)
                    return self._guard_failed(specialization, call, fast.trace, found.program, found.line)
            specialization.runs += 1
            return found
        with within_compiled():
            return self._slow_call(args, keywords, mode)

    def _call_in(self, calls: CompiledCalls, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Make a call within a recorded run; when that run is repeated, the call takes the same path."""
        number, path = calls.begin()
        if path is Path.FUNCTION or path is Path.TRACED:
            with within_compiled():
                found = self._by_function(args, keywords, is_traced=path is Path.TRACED)
        else:
            programs: list[Any] = [each for known in self.tier.specializations.values() for each in known]
            programs += [each for each in self.cache.specializations if each.is_verified]
            before, traces = [each.runs for each in programs], self.cache.traces
            found = self._call(args, keywords)
            ran_program = any(each.runs != runs for each, runs in zip(programs, before, strict=True))
            path = Path.TRACED if self.cache.traces != traces else Path.PROGRAM if ran_program else Path.FUNCTION
        calls.end(number, path)
        return _with_current_histories(found)

    def _by_function(self, args: tuple[Any, ...], keywords: dict[str, Any], is_traced: bool) -> Any:
        """Run the function in the mode of an earlier call, traced or not."""
        if not is_traced:
            return self.function(*args, **keywords)
        return capture(self.function, self.arguments.call(args, keywords, current_mode()), is_first=False).result

    def _slow_call(self, args: tuple[Any, ...], keywords: dict[str, Any], mode: int) -> Any:
        """Run a call without a ready program: trace it, compile it, or run the function."""
        for eager in self.cache.eager_calls:
            if eager.matches(args, keywords, mode):
                return self.function(*args, **keywords)
        if mode & ~GRAD:  # a mode that intercepts each operator: tracing, forward mode, anomaly detection
            if mode & ~GRAD == PROFILE:
                name = f"compiled {getattr(self, '__name__', self.name)}"
                return PROFILER.get().alone(name, functools.partial(self._call, args, keywords))
            return self.function(*args, **keywords)
        if raises_errors():  # programs do not raise such errors
            return self.function(*args, **keywords)
        return self._dispatch(self.arguments.call(args, keywords, mode))

    def value_and_grad(self, point: Any, *others: Any, **keywords: Any) -> tuple[float, Any]:
        """Return the value and its gradient with respect to the first argument, in the form `scipy.optimize` expects.

        Arguments:
            point: the first argument: an array of floats.
            others, keywords: the other arguments.

        Returns:
            A float and an array with the shape of `point`, as for `jac=True` of `scipy.optimize.minimize`. In a
            transform, tensors if they depend on the differentiated arguments.

        Example:
            >>> import numpy as np, viewgrad as vg
            >>> loss = vg.compile(lambda x: (x * x).sum(), executor="python")
            >>> loss.value_and_grad(np.array([1.0, 2.0]))
            (5.0, array([2., 4.]))
        """
        if transform_kind() != OUTSIDE:
            return value_and_grad_at(self, point, *others, **keywords)
        return self.plain_value_and_grad(point, *others, **keywords)

    def plain_value_and_grad(self, point: Any, *others: Any, **keywords: Any) -> tuple[float, Any]:
        """Return the value and the gradient as a float and an array, even in transforms."""
        is_number = isinstance(point, (int, float, np.generic))
        if not keywords:
            found = self._fast_gradients((float(point) if is_number else np.array(point, float), *others), (0,))
            if found is not None:
                return found[1].item(), found[2][0]
        leaf = Tensor(point, dtype=float, requires_grad=True)
        if is_number:
            leaf = as_scalar(leaf)
        with within_transform():
            output = self(leaf, *others, **keywords)
        return value_and_gradient_of(output, leaf)

    @property
    def specializations(self) -> list[Specialization]:
        """The specializations, one for each combination of argument types."""
        return self.cache.specializations

    def explain(self) -> str:
        """Describe what was compiled, with loops, tapes, and reasons for eager execution."""
        parts = [self.tier.explain(self.name)] if self.tier.specializations else []
        parts += [explained(self.name, self.cache.specializations)] if self.cache.specializations else []
        if self.jvp is not None:
            parts.append(self.jvp.explain())
        return "\n\n".join(parts) or f"{self.name} has not been called yet"

    def source(self) -> str:
        """Return the source of all programs, forward and backward."""
        programs = [each.program for each in self.cache.specializations]
        parts = self.tier.source() + [program.source() for program in programs if program is not None]
        if self.jvp is not None:
            parts.append(self.jvp.source())
        return "\n\n".join(parts)

    def __viewgrad_gradients__(self, args: tuple[Any, ...], numbers: Sequence[int]) -> tuple[Any, list[Any]] | None:
        """Return the value and gradients for `func.value_and_grad`, or None if the call signature is not cached."""
        found = self._fast_gradients(args, numbers)
        if found is None:
            return None
        is_scalar, array, gradients = found
        value = from_array(array)
        return as_scalar(value) if is_scalar else value, [from_array(gradient) for gradient in gradients]

    def __viewgrad_array_gradients__(self, args: tuple[Any, ...], numbers: Sequence[int]) -> Any:
        """Return the value and gradients as a float and arrays, for calls without tensors; None otherwise."""
        found = self._fast_gradients(args, numbers)
        if found is None:
            return None
        _, array, gradients = found
        return array_or_number(array), [array_or_number(gradient) for gradient in gradients]

    def __viewgrad_jvp__(
        self, numbers: Sequence[int], args: Any, keywords: dict[str, Any], tangents: Sequence[Any], has_aux: bool
    ) -> Any:
        """Return the output and its derivative along tangents of some arguments, for `func.jvp`."""
        if self.jvp is None:
            jvp = Compiled(jvp_function(self.function), self.executor_name, (), self.check, self.specialize)
            jvp.executor = self.executor
            jvp.tier = TangentTier(
                self.function, jvp.function, self.executor.name, self.check, self.tier.is_on, self.tape_limit
            )
            jvp.arguments = JvpArguments(self.function, self.static)
            self.jvp = jvp
        with np.errstate(all="ignore"):  # derivatives may be infinite; formulas do not warn about this either
            return self.jvp(tuple(args), keywords, tuple(numbers), tuple(tangents), has_aux)

    def __viewgrad_rows__(self) -> bool:
        """Return whether rows of the Jacobian may be computed together, for `func.jacfwd`."""
        return True

    def __viewgrad_second__(self) -> bool:
        """Return whether rows of the Hessian may be computed together, for `func.hessian`."""
        return self.tier.is_on

    def __viewgrad_batched__(self, arguments: tuple[int | str, ...], count: int) -> Batched:
        """Return the function mapped over a batch, for `func.vmap`; some arguments (positions or names) have a leading
        axis.
        """
        return Batched(self, arguments)

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
        traces = list(self.pickled_traces)
        for each in self.cache.specializations:
            trace, _ = self.cache.snapshot(each)
            if trace is not None:
                found = packed(self.function, each.key, trace, opaque_parts(each.key[0]))
                traces += [] if found is None else [found]
        given = (
            self.function, self.executor_name, self.static, self.check, self.specialize, self.returns_arrays,
            self.tape_limit,
        )
        return (Compiled, given, traces) if traces else (Compiled, given)

    def __setstate__(self, traces: list[PickledTrace]) -> None:
        self.pickled_traces = traces

    def __repr__(self) -> str:
        return f"<compiled {self.name}>"

    def examples_for(self, structure: Structure, leaves: list[Any], mode: int) -> SourceExamples | None:
        """Return the runner of a program from source for given examples, or None if calls do not run one."""
        args, keywords = unflatten(structure, leaves)
        return self.tier.examples(args, keywords, mode) if self.tier.is_on else None

    def program_for(self, structure: Structure, leaves: list[Any], mode: int) -> ExampleProgram | None:
        """Return the program for given arguments, or None if calls do not run one or it writes to its inputs."""
        call = self.arguments.of_leaves(structure, leaves, mode)
        of = self.cache.find(call.key)
        if of is None or not of.is_verified:
            return None
        trace, program = self.cache.snapshot(of)
        if trace is None or program is None or trace.signature.mutations or not trace.guard.unchanged():
            return None

        def count(runs: int) -> None:
            of.runs += runs

        return ExampleProgram(trace, program, call.leaves, count)

    def _fast_gradients(self, args: tuple[Any, ...], numbers: Sequence[int]) -> tuple[bool, Any, list[Any]] | None:
        if not current_mode() & ~GRAD:
            taken = self.tier.gradients_at(args, numbers)
            if taken is not None:
                return taken
            for specialization, fast in self.cache.fast_calls:
                found = fast.value_and_grad(args, numbers)
                if found is not None:
                    specialization.runs += 1
                    return found
        return None

    # -- one call ------------------------------------------------------------------------------------------------------

    def _dispatch(self, call: Call) -> Any:
        of = self._specialization(call)
        if of.state is State.EAGER:
            eager = None if call.shares_memory else eager_call(call)
            if eager is not None:
                self.cache.add_eager_call(eager)
        elif of.state is State.COOLING_DOWN:
            self.cache.apply(of, Skipped())
        elif of.state is State.NEW:
            return self._trace(of, call)
        else:
            return self._run(of, call)
        return self.function(*call.args, **call.keywords)

    def _specialization(self, call: Call) -> Specialization:
        """Return the specialization for a call, which may come from a pickle."""
        found = self.cache.find(call.key)
        if found is not None:
            return found
        with self.cache.lock:
            of = self.cache.add(call.key, call.static)
            if of.fallback_reason is not None:
                self._warn(of.fallback_reason)
                return of
            for each in self.pickled_traces:
                if each.key == call.key:
                    self.pickled_traces = [other for other in self.pickled_traces if other is not each]
                    trace = unpacked(each, self.function)
                    if trace is not None:
                        self.cache.apply(of, Traced(trace))
                    break
        return of

    def _trace(self, of: Specialization, call: Call) -> Any:
        self.cache.traces += 1
        found = capture(self.function, call, is_first=not of.usage.traces)
        if call.has_float_inputs and found.trace is not None and not found.trace.signature.mutations:
            expected = self.function(*call.args, **call.keywords)
            if not agree(found.result, expected):
                return self._held(of, call, expected)
        if found.is_untraceable and self.arguments.make_static(call.structure, call.leaves):
            self.cache.remove(of)
        elif found.fallback_reason is not None:
            self.cache.apply(of, FellBack(found.fallback_reason))
        else:
            self.cache.apply(of, Traced(found.trace))
        return found.result

    def _held(self, of: Specialization, call: Call, result: Any) -> Any:
        """Make floats constants, because the function gives another result for tensors, and return its result."""
        self.arguments.hold_floats(call.structure)
        self.cache.remove(of)
        return result

    def _run(self, of: Specialization, call: Call) -> Any:
        """Run the program of a specialization, which is first built and verified if necessary."""
        trace, program = self.cache.snapshot(of)
        if trace is None:  # another thread is tracing the function
            return self.function(*call.args, **call.keywords)
        if not trace.guard.unchanged():
            return self._missed(of, call, "captured state has changed", is_by_value=False)
        tensors = trace.inputs(call.leaves)
        if isinstance(tensors, str):
            return self._missed(of, call, tensors, is_by_value=False)
        if trace.shares_memory(tensors):
            return self.function(*call.args, **call.keywords)
        if program is None:
            try:
                program = self._build(of, trace, tensors)
            except NotCompiledError as error:
                return self._not_compiled(of, call, error)
        failed, outputs, run = program.run([tensor._array for tensor in tensors])
        if failed >= 0:
            return self._guard_failed(of, call, trace, program, failed)
        of.runs += 1
        if of.program is not program:  # another thread has replaced it
            return self.function(*call.args, **call.keywords)
        if not of.is_verified:
            verdict = verify(self.function, trace, program, tensors, outputs, run, call.args, call.keywords)
            reason = verdict.fallback_reason
            self.cache.apply(of, Verified(program) if reason is None else FellBack(reason))
            if verdict.error is not None:
                if call.has_float_inputs:
                    return self._held(of, call, verdict.result)
                raise verdict.error
            return verdict.result
        if of.state is State.VERIFIED and self.cache.takes_fast_calls:
            self.cache.apply(of, Running(program, fast_call(trace, program, call)))
        return trace.results(tensors, called(program, trace.graph, outputs, run, tensors), call.leaves)

    def _build(self, of: Specialization, trace: GuardedTrace, tensors: list[Tensor]) -> CompiledProgram:
        is_recording = bool(current_mode() & GRAD)
        wanted = [number for number, tensor in enumerate(tensors) if is_recording and tensor.requires_grad]
        with self.cache.lock:
            program = compile_graph(trace.graph, wanted, self.executor, of.near_singular_lines)
            program.differentiable = differentiable_outputs(trace.graph)
            self.cache.apply(of, Built(trace, program, is_verified=not self.check))
        return program

    def _not_compiled(self, of: Specialization, call: Call, error: NotCompiledError) -> Any:
        """Run a call whose trace could not be compiled: with integer arrays as part of the program, or eagerly."""
        if self.arguments.make_static(call.structure, call.leaves):
            self.cache.remove(of)
            return self._dispatch(self.arguments.call(call.args, call.keywords, call.mode))
        self.cache.apply(of, FellBack(error.message))
        if isinstance(error, CompilerDefectError):
            self._warn(error.message)
        return self.function(*call.args, **call.keywords)

    def _guard_failed(
        self, of: Specialization, call: Call, trace: GuardedTrace, program: CompiledProgram, line: int
    ) -> Any:
        """Handle a call for which a guard of the program failed at a given line."""
        if of.program is not program:  # another thread has replaced it
            return self.function(*call.args, **call.keywords)
        if line in program.regular_lines:
            self.cache.apply(of, NearSingular(line))
            return self._run(of, call)
        if line in program.index_lines and self.arguments.make_static(call.structure, call.leaves):
            self.cache.remove(of)
            return self._dispatch(self.arguments.call(call.args, call.keywords, call.mode))
        return self._missed(of, call, trace.describe_failure(line), is_by_value=True)

    def _missed(self, of: Specialization, call: Call, reason: str, is_by_value: bool) -> Any:
        """Handle a call for which the program is not valid: retrace it or run it eagerly.

        Arguments:
            of, call: the specialization and the call.
            reason: why the program is not valid.
            is_by_value: whether the reason is a value that control flow depends on.
        """
        usage, decision = after_failure(of.usage, of.runs, is_by_value)
        self.cache.apply(of, Failed(reason, usage, decision))
        if decision.action is Action.RETRACE:
            return self._trace(of, call)
        if decision.action is Action.GIVE_UP and of.fallback_reason is not None:
            self._warn(of.fallback_reason)
        elif decision.action is Action.COOL_DOWN and usage.traces == 1:
            self._warn(f"{reason}, twice in a row", f"for {decision.calls} calls")
        return self.function(*call.args, **call.keywords)

    def _warn(self, reason: str, how_long: str = "from here on") -> None:
        warnings.warn(f"{self.name} runs eagerly {how_long}: {reason}", NotCompiledWarning, stacklevel=6)


def _with_current_histories(result: Any) -> Any:
    """Return a result after rebuilding the histories of views in it, which depend on the current mode."""
    for leaf in flatten(result)[0]:
        if isinstance(leaf, Tensor):
            with contextlib.suppress(ViewInPlaceError):  # if its history is ambiguous
                current_edge(leaf)
    return result


class CompiledFunction(Protocol[P, R]):
    """The interface of a compiled function for type checkers: `Compiled`, with the signature of the function."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...

    def __get__(self, instance: Any, owner: Any = None) -> Any: ...

    def value_and_grad(self, point: Any, *others: Any, **keywords: Any) -> tuple[float, Any]:
        """Return the value and its gradient with respect to the first argument."""

    def explain(self) -> str:
        """Describe what was compiled."""

    def source(self) -> str:
        """Return the source of the programs."""


@overload
def compile(
    f: Callable[P, R], *,
    executor: str | None = None, static: Sequence[Any] = (), check: bool = True, batch: None = None,
    specialize: bool | None = None, adopt: bool = True, tape_limit: float | None = None,
) -> CompiledFunction[P, R]: ...
@overload
def compile(
    f: Callable[P, R], *,
    executor: str | None = None, static: Sequence[Any] = (), check: bool = True, batch: Batch,
    specialize: bool | None = None, adopt: bool = True, tape_limit: float | None = None,
) -> CompiledFunction[P, Any]: ...
@overload
def compile(
    f: None = None, *, executor: str | None = None, static: Sequence[Any] = (), check: bool = True, batch: None = None,
    specialize: bool | None = None, adopt: bool = True, tape_limit: float | None = None,
) -> Callable[[Callable[P, R]], CompiledFunction[P, R]]: ...
@overload
def compile(
    f: None = None, *, executor: str | None = None, static: Sequence[Any] = (), check: bool = True, batch: Batch,
    specialize: bool | None = None, adopt: bool = True, tape_limit: float | None = None,
) -> Callable[[Callable[P, R]], CompiledFunction[P, Any]]: ...
def compile(
    f: Function | None = None, *, executor: str | None = None, static: Sequence[Any] = (), check: bool = True,
    batch: Batch | None = None, specialize: bool | None = None, adopt: bool = True,
    tape_limit: float | None = None,
) -> Any:
    """Compile `f` and its gradient.

    One program is generated from the source of `f` for each combination of dtypes and numbers of dimensions; it handles
    all lengths and branches. If the source contains something that the compiler does not support, `f` is traced
    instead, once for each shape. If it cannot be traced, it runs eagerly. `explain()` reports which applies, and why.
    The first run of a program compares its value and gradient with those of `f`. For a gradient as returned by `grad`
    or `value_and_grad`, the function that is differentiated is compiled: `compile(grad(f))` is `grad(compile(f))`.

    Arguments:
        f: a function of tensors, arrays and numbers, which may be nested in trees.
        executor: "python" or "numba". By default, "numba" if it is installed.
        static: the names of arguments whose numbers and arrays are constants of the program, which is retraced for
            other values.
        check: whether the first run of each program is compared with `f`.
        specialize: whether to compile traces only, each for one shape and one control-flow path; these sometimes run
            faster.
        batch: the arguments with a leading axis of independent examples, by name or position; True for all tensors and
            arrays. `f` is written for one example, and the results have the leading axis too.
        adopt: whether to adopt `f`, so that it computes with viewgrad instead of NumPy; see `viewgrad.adopt`.
        tape_limit: the maximum number of bytes that a program compiled from source may store for its gradient; by
            default half of the machine's memory. A longer tape is avoided by running the outermost loop in segments and
            rerunning some iterations (`explain()` reports how many).

    Returns:
        The compiled function, with methods `explain()` and `source()`; without `f`, a decorator. The function returns
        tensors if an argument is a tensor, and NumPy arrays and floats otherwise.

    Raises:
        ValueError: if `executor` is unknown, `batch` names no argument, or `tape_limit` is not positive.
        CompiledMismatchError: when called, if the comparison fails.

    Example:
        >>> import numpy as np, viewgrad as vg
        >>> def smoothed(x, alpha):
        ...     y = np.zeros(len(x))
        ...     y[0] = x[0]
        ...     for t in range(1, len(x)):
        ...         y[t] = alpha * x[t] + (1 - alpha) * y[t - 1]
        ...     return (y * y).sum()
        >>> compiled = vg.compile(smoothed, executor="python")
        >>> compiled.value_and_grad(np.ones(3), 0.3)
        (3.0, array([4.38, 1.02, 0.6 ]))
    """
    if f is None:
        return functools.partial(
            compile, executor=executor, static=static, check=check, batch=batch, specialize=specialize, adopt=adopt,
            tape_limit=tape_limit,
        )
    if tape_limit is not None and not tape_limit > 0:
        raise ValueError(f"tape_limit={tape_limit} is not a positive number of bytes")
    f = adopted_callable(f) if adopt else f
    specialize = SPECIALIZE if specialize is None else specialize
    parts = None if static or specialize or batch is not None else program_method(f, "__viewgrad_parts__")
    function, gradient_of = (f, None) if parts is None else parts()
    function = over_arrays(function)
    compiled = Compiled(function, executor, static, check, specialize, returns_arrays=True, tape_limit=tape_limit)
    if gradient_of is not None:
        return CompiledGradient(f, compiled, gradient_of(f=compiled))
    return compiled if batch is None else Batched(compiled, batch)
