"""The operator under test, in any of its forms."""

from __future__ import annotations

import contextlib
import gc
import inspect
import re
import signal
import sys
import threading
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import attrs
import numpy as np

from ...autograd.api import grad
from ...autograd.function import Function
from ...errors import AutogradError, OverlappingWriteError, UnsupportedDtypeError, UnsupportedFunctionError
from ...operators.define import OPERATORS
from ...operators.domains import USUAL
from ...operators.language.spec import Operator
from ...operators.numpy_api.public import meant_by
from ...tensor.modes import is_grad_enabled, no_grad, set_grad_enabled
from ...tensor.signatures import signature_of
from ...tensor.tensor import Tensor
from ...type_aliases import Array
from .arguments import Example, outputs_of
from .constants import FACTORIZATIONS, names_in, numbers_in, strings_in, takes_single_matrices
from .contract import Contract, Interval, Structure, guarded, require_within, slots_of
from .cpu_time import cpu_seconds
from .sources import source_text


class Refused(Exception):
    """Raised if the operator rejected the arguments."""


class TookTooLong(BaseException):
    """Raised if the operator exceeded the time limit.

    It is not an `Exception`: checks that try calls which may be refused would go on without a limit.
    """


@attrs.define(eq=False)
class OperatorUnderTest:
    """An operator and its known properties.

    Arguments:
        function: the function that calls it.
        inplace: its in-place form, or None.
        reference: the same function for arrays, or None.
        operator: its declaration, if any.
        custom: the `Function` if the operator is the `apply` of one.
        contract: its author's declarations.
        domains: by slot, the declared interval of an argument, if any.
        structures: by slot, the structure that a matrix has.
        complex: whether it is expected to be correct for complex numbers.
        numbers: the numbers in its own code.
        strings: the words in its own code.
        skips_nan: whether its own code checks for NaN.
        factorizes: whether its own code factorizes matrices, which may not terminate in LAPACK if they are infinite.
        single_matrices: whether its own code is written for single matrices, and not for stacks.
        limits: the options that control how close its results are to a limit.
        single: whether it computed in single precision in the user's call.
        scale: the size of values and gradients of that call.
        written: the slots that it writes to; operators with such slots are called on clones.
        outputs: the number of results of the user's call, and the numbers of those that require grad.
        first: the results of the very first call, which is the user's.
        first_arrays: the values of the tensors in that call.
        given: the object that the user passed, from which the other attributes are derived.
        ranks: by slot, the number of dimensions in the user's call.
        usual: by name, the arguments of the user's call, and the defaults of omitted ones.
        keeps_float32: whether single-precision results are required for single-precision arguments.
        notices: findings that are not failures.
        undefined: the smallest call so far with finite arguments that returns NaN.
        source: Python code that defines it as `operator` in its initial state; "" if unknown.
    """

    function: Callable[..., Any]
    inplace: Callable[..., Any] | None = None
    reference: Callable[..., Any] | None = None
    operator: Operator | None = None
    custom: type[Function] | None = None
    contract: Contract = attrs.Factory(Contract)
    domains: dict[int, Interval] = attrs.Factory(dict)
    structures: dict[int, Structure] = attrs.Factory(dict)
    complex: bool = False
    numbers: Sequence[float] = ()
    strings: Sequence[str] = ()
    skips_nan: bool = False
    factorizes: bool = False
    single_matrices: bool = False
    limits: tuple[str, ...] = ()
    single: bool = False
    scale: float = 1.0
    written: tuple[int, ...] = ()
    outputs: tuple[int, tuple[int, ...]] = (0, ())
    first: Sequence[Array] = ()
    first_arrays: Sequence[Array] = ()
    source: str = ""
    given: Any = None
    usual: dict[str, Any] = attrs.Factory(dict)
    ranks: dict[int, int] = attrs.Factory(dict)
    keeps_float32: bool = False
    notices: list[str] = attrs.Factory(list)
    undefined: Example | None = None

    def is_undefined_at(self, example: Example, values: Sequence[Array]) -> bool:
        """Return whether results are NaN although all arguments are finite, and record the smallest such call."""
        finite = all(array.size and np.isfinite(array).all() for array in example.arrays)
        if not finite or not any(np.isnan(value).any() for value in values if value.dtype.kind in "fc"):
            return False
        if self.undefined is None or _numbers_of(example) < _numbers_of(self.undefined):
            self.undefined = example
        return True

    def note(self, text: str) -> None:
        """Record an observation, once, that is not a failure."""
        if text not in self.notices:
            self.notices.append(text)

    def note_once(self, what: str, where: str) -> None:
        """Record an observation together with the first call in which it was made."""
        if not any(notice.startswith(what) for notice in self.notices):
            self.note(f"{what} ({where})")

    def fresh(self) -> Callable[..., Any] | None:
        """Return a copy that has not been called, if the source is known."""
        if not self.source or self.operator is not None:
            return None
        names: dict[str, Any] = {}
        try:
            with quiet():
                exec(compile(self.source, "<fresh copy>", "exec"), names)
        except Exception:
            return None
        copy = names.get("operator")
        return copy if callable(copy) else None

    @property
    def name(self) -> str:
        """The name used in messages and programs."""
        if self.operator is not None:
            return self.operator.name
        if self.custom is not None:
            return self.custom.__name__
        name = getattr(self.function, "__name__", type(self.function).__name__)
        return name if name.isidentifier() else "operator"

    @property
    def composed(self) -> bool:
        """True for a plain function, which is differentiated through the operators it calls."""
        return self.operator is None and self.custom is None

    @property
    def named(self) -> dict[str, Any]:
        """Return the operator's helpers by the names used in programs."""
        contract = self.contract
        others = {"surrogate": contract.surrogate, "disturb": contract.disturb}
        return {"inplace": self.inplace, "reference": self.reference, **others}

    @property
    def place(self) -> str:
        """The source line that defines its derivative."""
        if self.operator is not None:
            texts = [f"{', '.join(formula.inputs)}: {formula.text!r}" for formula in self.operator.formulas]
            where = f" ({self.operator.row})" if self.operator.row else ""
            return f"operator {self.operator.signature}{where}, with the formulas {'; '.join(texts)}"
        if self.custom is not None:
            return f"{self.custom.__name__}.backward at {_place_of(self.custom._backward())}"
        return f"{self.name} at {_place_of(self.function)}"

    @property
    def parameters(self) -> dict[str, inspect.Parameter]:
        """The parameters by name; empty if unknown."""
        function: Any = self.function
        if self.operator is not None:
            function = self.operator.function
        elif self.custom is not None:
            function = self.custom.forward
        try:
            parameters = dict(signature_of(function).parameters)
        except (TypeError, ValueError):
            return {}
        if self.custom is not None and self.custom.setup_context is Function.setup_context and parameters:
            del parameters[next(iter(parameters))]
        return parameters

    @property
    def positional(self) -> tuple[str, ...]:
        """The known names of the positional parameters."""
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        return tuple(name for name, parameter in self.parameters.items() if parameter.kind in kinds)

    def values(self, example: Example, arrays: Sequence[Array] | None = None) -> list[Array]:
        """Return the values of all outputs, without recording.

        Raises:
            Refused: if the operator refuses the arguments.
        """
        given = example.arrays if arrays is None else arrays
        with quiet(), no_grad(), refusals():
            result = example.call(self.function, [Tensor(array) for array in given])
        return [output._array for _, output in outputs_of(result)]

    def warning(self, example: Example) -> str:
        """Return the first warning of a call that says that its result may be wrong; "" if there is none.

        Solvers and quadratures warn if they do not converge. NumPy's warnings about overflow do not count.
        """
        with warnings.catch_warnings(record=True) as caught, np.errstate(all="ignore"), no_grad():
            warnings.simplefilter("always")
            with contextlib.suppress(Exception):
                example.call(self.function, [Tensor(array) for array in example.arrays])
        for one in caught:
            kind = one.category
            own = kind.__module__.startswith("viewgrad.")
            if not own and issubclass(kind, UserWarning | RuntimeWarning) and kind is not RuntimeWarning:
                return f"{kind.__name__}: {str(one.message).splitlines()[0]}"
        return ""

    def within(self, example: Example) -> Example | None:
        """Return the call with its structured arguments projected, or None if it leaves a domain or a structure."""
        arrays = list(example.arrays)
        for slot, structure in self.structures.items():
            if slot >= len(arrays) or example.arrays[slot].dtype.kind not in "fc":
                continue
            try:
                arrays[slot] = np.asarray(structure.project(arrays[slot])).astype(arrays[slot].dtype)
            except Exception:  # a user's projection may raise anything for other shapes
                return None
            if arrays[slot].shape != example.arrays[slot].shape or not structure.contains(arrays[slot]):
                return None
        for slot, (low, high) in self.domains.items():
            if slot < len(arrays) and arrays[slot].dtype.kind == "f":
                if not ((arrays[slot] >= low) & (arrays[slot] <= high)).all():
                    return None
        return example.with_arrays(arrays) if self.structures else example

    def written_by(self, example: Example) -> tuple[int, ...]:
        """Return the slots that an in-place operator writes to, determined at the first call."""
        tensors = [Tensor(array) for array in example.arrays]
        with contextlib.suppress(Exception), quiet(), refusals():
            result = example.call(self.function, tensors)
            changed = tuple(
                k
                for k, (tensor, array) in enumerate(zip(tensors, example.arrays, strict=True))
                if tensor._version or not _same_bytes(tensor._array, array)
            )
            results = [output for _, output in outputs_of(result)]
            self.first = [output.detach()._array.copy() for output in results]
            self.first_arrays = example.arrays
            if changed and all(any(tensors[k] is output for output in results) for k in changed):
                return changed
        return ()

    def record(self, example: Example, slots: Sequence[int] | None = None) -> Recorded:
        """Record a call in which the tensors in `slots` (by default the wanted ones) require grad.

        Raises:
            Refused: if the operator refuses the arguments.
        """
        chosen = example.wanted if slots is None else slots
        leaves = [Tensor(array, requires_grad=k in chosen) for k, array in enumerate(example.arrays)]
        operands = [leaf.clone() if k in self.written else leaf for k, leaf in enumerate(leaves)]
        with quiet(), refusals():
            result = example.call(self.function, operands)
        return Recorded(leaves, operands, [output for _, output in outputs_of(result)], tuple(chosen))


@attrs.frozen(eq=False)
class Recorded:
    """A recorded call: its leaves, arguments and outputs."""

    leaves: list[Tensor]
    operands: list[Tensor]
    outputs: list[Tensor]
    chosen: tuple[int, ...]

    @property
    def differentiable(self) -> list[int]:
        """Return the numbers of the differentiable outputs."""
        return [i for i, output in enumerate(self.outputs) if output.requires_grad and output.dtype.kind in "fc"]

    def forgotten(self, known: tuple[int, tuple[int, ...]]) -> list[int]:
        """Return the outputs that are not differentiable here, although they are in the user's call with outputs
        `known`.
        """
        count, numbers = known
        if len(self.outputs) != count:
            return []
        return [i for i in numbers if not self.outputs[i].requires_grad and self.outputs[i].dtype.kind in "fc"]

    def gradients(self, starts: dict[int, Array], **options: Any) -> list[Array]:
        """Return the gradients of the chosen leaves for output gradients `starts`, with zeros for None."""
        with quiet():
            found = grad(
                [self.outputs[i] for i in starts],
                [self.leaves[k] for k in self.chosen],
                [Tensor(start) for start in starts.values()],
                allow_unused=True,
                retain_graph=True,
                **options,
            )
        leaves = [self.leaves[k] for k in self.chosen]
        return [
            np.zeros_like(leaf._array) if g is None else g.detach()._array
            for g, leaf in zip(found, leaves, strict=True)
        ]


class _Silence(threading.local):
    """A per-thread flag that states whether the thread is inside a quiet block; nested blocks cost nothing."""

    on = False


SILENCE: Final = _Silence()


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Return a context in which warnings are suppressed."""
    if SILENCE.on:
        yield
        return
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        SILENCE.on = True
        try:
            yield
        finally:
            SILENCE.on = False


REJECTIONS: Final = (UnsupportedFunctionError, UnsupportedDtypeError, OverlappingWriteError)
FAULTS: Final = (AutogradError, MemoryError, Refused)


@contextlib.contextmanager
def refusals() -> Iterator[None]:
    """Return a context in which an operator may reject its arguments by any error that does not indicate a defect.

    The recording mode is restored afterwards.
    """
    recording = is_grad_enabled()
    try:
        yield
    except REJECTIONS as error:
        raise Refused(error.message) from error
    except FAULTS:
        raise
    except Exception as error:
        raise Refused(f"{type(error).__name__}: {error}") from error
    finally:
        set_grad_enabled(recording)


def rejects(error: BaseException | None) -> bool:
    """Return whether an operator may reject its arguments by this error."""
    return isinstance(error, REJECTIONS) or (isinstance(error, Exception) and not isinstance(error, FAULTS))


AGAIN: Final = 0.002  # seconds of computation after which a time limit that could not be raised is tried again


@contextlib.contextmanager
def patience(seconds: float) -> Iterator[None]:
    """Return a context with a time limit, in the main thread only; 0 means no limit.

    Python calls finalizers and callbacks of the garbage collector in the middle of any code, and discards their
    exceptions. These calls are allowed to finish, and the limit is raised afterwards.
    """
    if not seconds or threading.current_thread() is not threading.main_thread() or not hasattr(signal, "SIGVTALRM"):
        yield
        return

    def late(number: int, frame: types.FrameType | None) -> None:
        left = seconds - (cpu_seconds() - began)  # the timer also counted garbage collections
        if drops_exceptions(frame) or left > 0:
            signal.setitimer(signal.ITIMER_VIRTUAL, max(left, AGAIN))
        else:
            raise TookTooLong(f"it has not returned after {seconds:g} seconds of computing")

    def dropped(unraisable: sys.UnraisableHookArgs) -> None:
        if isinstance(unraisable.exc_value, TookTooLong):
            signal.setitimer(signal.ITIMER_VIRTUAL, AGAIN)
        else:
            hook(unraisable)

    began = cpu_seconds()
    before, hook = signal.signal(signal.SIGVTALRM, late), sys.unraisablehook
    sys.unraisablehook = dropped
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
        sys.unraisablehook = hook


def drops_exceptions(frame: types.FrameType | None) -> bool:
    """Return whether a frame runs in a finalizer or in a callback of the garbage collector."""
    callbacks = {getattr(callback, "__code__", None) for callback in gc.callbacks}
    while frame is not None:
        if frame.f_code in callbacks or frame.f_code.co_name == "__del__":
            return True
        frame = frame.f_back
    return False


def real_parts(array: Array) -> Array:
    """Return the elements in row-major order as double-precision real numbers; complex ones as two parts."""
    flat = np.array(array, order="C").reshape(-1)
    return (flat.astype(complex).view(float) if flat.dtype.kind == "c" else flat.astype(float)).reshape(-1)


def declared(given: Any) -> Operator | None:
    """Return the declaration of an operator or of its function, or None."""
    if isinstance(given, Operator):
        return given
    function = meant_by(given)
    return next((row for row in OPERATORS.values() if row.function is function), None)


def subject_of(given: Any, contract: Contract, example: Example) -> OperatorUnderTest:
    """Return the operator under test for the object that the user passed."""
    operator, whole = declared(given), given
    custom = None
    owner = getattr(given, "__self__", None)
    if isinstance(given, type) and issubclass(given, Function):
        custom, given = given, given.apply
    elif isinstance(owner, type) and issubclass(owner, Function) and getattr(given, "__name__", "") == "apply":
        custom = owner
    inplace, reference = contract.inplace, contract.reference
    declares_domain = contract.domain is not None
    if operator is not None:
        inplace = inplace or (operator.inplace if operator.has_inplace else None)
        reference = reference or operator.reference
        if contract.domain is None and operator.domain != USUAL:
            contract = attrs.evolve(contract, domain=operator.domain)
    subject = OperatorUnderTest(given, inplace, reference, operator, custom, contract, given=whole)
    parameters = subject.parameters
    names = list(parameters)
    subject.usual = {name: parameter.default for name, parameter in parameters.items()}
    subject.usual |= {**dict(zip(names, example.args, strict=False)), **example.kwargs}
    subject.ranks = {k: array.ndim for k, array in enumerate(example.arrays)}
    subject.domains = contract.domains(example, names)
    if declares_domain:
        require_within(example, subject.domains)
    subject.structures = contract.structures(example, names)
    if contract.valid is not None or subject.structures:
        by_place: dict[Any, Structure] = {}
        for place in contract.structure:
            position = names.index(place) if place in names else place
            structure = next((subject.structures[k] for k in slots_of(example, place, names, "")), None)
            if structure is not None:
                by_place |= {place: structure, position: structure}
        subject.function = guarded(given, contract, by_place, Refused)
    if operator is not None and not operator.user_defined:
        code: Any = None  # library formulas are tried at points of their own
    else:
        code = operator if operator is not None else custom if custom is not None else given
    subject.numbers, subject.strings = numbers_in(code), strings_in(code)
    subject.factorizes = bool(names_in(code) & FACTORIZATIONS)
    subject.skips_nan = any(name.startswith("nan") or name in ("isnan", "isfinite") for name in names_in(code))
    subject.single_matrices = not subject.composed and takes_single_matrices(code)
    claimed = contract.complex
    if claimed is None:
        claimed = any(array.dtype.kind == "c" for array in example.arrays) or _claims_complex(subject)
    subject.complex = claimed
    return subject


def _same_bytes(one: Array, other: Array) -> bool:
    return one.shape == other.shape and one.tobytes() == other.tobytes()


def _claims_complex(subject: OperatorUnderTest) -> bool:
    """Return whether the source of the operator mentions complex numbers."""
    operator = subject.operator
    if operator is not None and not operator.user_defined:
        return any(operator.accepts_complex(name) for name in operator.differentiable)
    if operator is not None:
        texts = [_source_of(operator.forward), *(formula.text for formula in operator.formulas)]
    elif subject.custom is not None:
        texts = [_source_of(subject.custom)]
    else:
        texts = [_source_of(subject.function)]
    if any(re.search(r"\b(complex\w*|view_as_real)\b|\.angle\b", text) for text in texts):
        return True
    # Conjugates next to Fourier transforms apply to spectra and are no evidence about the arguments.
    return any(re.search(r"\b(conj|conjugate)\b", text) for text in texts) and not any("fft" in text for text in texts)


def _source_of(thing: Any) -> str:
    try:
        return source_text(thing)
    except (OSError, TypeError):
        return ""


def _place_of(function: Any) -> str:
    code = getattr(inspect.unwrap(function) if callable(function) else function, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code is not None else repr(function)


def _numbers_of(example: Example) -> int:
    return sum(array.size for array in example.arrays)
