"""One check of an operator: the user's call, variations of it, and the calls derived from it."""

from __future__ import annotations

import contextlib
import functools
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import attrs
import numpy as np

from ...tensor.modes import enable_grad
from .arguments import Example, example_of, outputs_of
from .baseline import Baseline, baseline_results, of_single_precision
from .budget import PROFILES, Budget, profile, some
from .contract import Contract, near_matches
from .failure import Failure
from .failure_report import definitions_of, fresh_source_of, tell, together
from .limits import options_of_a_limit
from .operator_under_test import OperatorUnderTest, Refused, TookTooLong, declared, patience, subject_of
from .options import by_keyword, with_numbers_for_tensors, with_other_options, with_values_for_none
from .properties.dtypes import beside_integers, full_precision, in_lower_precision
from .properties.forms import ITSELF, against_reference, inplace_form
from .properties.gradients import check_gradients
from .properties.high_precision_values import digits_lost, slope_digits_lost, where_digits_may_be_lost
from .properties.higher import Absent, forward_mode, second_order
from .properties.memory import result_memory
from .properties.precision import digits_by_reference, where_digits_get_lost, where_reference_decides
from .properties.registry import FIRST, INVARIANTS, PROPERTIES, SHORT
from .properties.repetition import beside_other_call, steady
from .properties.unneeded_work import NEEDLESS, unneeded_gradients
from .ranks import is_meant_for_lengths, is_meant_for_negative, is_meant_for_ranks
from .report import Report
from .script import Script
from .session import record
from .shapes import of_equal_lengths, of_long_shapes, of_other_shapes, with_other_lists
from .shrinking import shrunk, smallest
from .special_values import at_special_points, in_double_precision, with_complex_numbers, with_other_indices

Array = np.ndarray[Any, Any]

FORMS: Final[dict[str, Callable[[Baseline], int]]] = {
    "in-place form": inplace_form,
    "forward mode": forward_mode,
    "second derivatives": second_order,
}
SECOND: Final = "second derivatives"
MIXED: Final = ("the gradient of the tangent", "the tangent of the gradient")
SMALL: Final = 40  # numbers to differentiate with respect to
MOST_REFUSED: Final = 3  # refused calls after which an operator's code is not run with many digits
MOST_ALIASED: Final = 16  # calls with other options
MOST_BESIDE: Final = 3  # other calls between a call and its backward pass
MOST_UNFINISHED: Final = 6  # options with which a gradient had another shape, tried with equal lengths
HUGE: Final = 100.0  # arguments whose exponentials' squares overflow soon
MOST_TRIED: Final = 60  # calls that are remembered
# Time limits of a derived call, which may not terminate: in seconds, and in multiples of the user's call.
PATIENCE: Final = 0.4
TIMES: Final = 500.0
FAMILY_SHARE, COMPOSED_SHARE = 0.5, 0.25  # fractions of the time of a check, for one family of calls
AFFORDABLE: Final = 0.25  # seconds for forms of calls that the user did not request
GRADIENTS: Final = "gradients"
# Properties that add nothing if the gradients of the user's call are wrong.
AFTER_GRADIENTS: Final = (
    "special points", "ties", "indices", "options", "shapes", "complex numbers", "dtypes", "forward mode", SECOND,
    "digits of gradients",
)  # fmt: skip
STATE: Final = "state between calls"


class Stop(Exception):
    """The check cannot continue."""


@attrs.define(eq=False)
class Check:
    """A check of an operator in progress.

    Arguments:
        subject: the operator.
        base: the call that the user gave.
        given: the operator as it was given.
        order: 2 to check second derivatives.
        only: the properties to check, or None for all.
        switched_off: the properties not to check, with reasons.
        progress: called with each property.
        report: the report to be returned.
        budget: the time for it.
        keep_going: whether to continue after a failure, and report all.
        collected: each failure, with a function that repeats its check for another call.
        again: repeats the current check for another call.
        short: whether it is one of many calls.
        patience: seconds for a call that the user did not ask for.
        cost: seconds for the forms of the call that the user gave.
        too_slow: the properties in which a call took too long.
        tried: the calls so far, on which what comes later may depend.
        steady: the baseline of the user's call, by which it is seen whether the operator holds state.
        refusals: errors in the backward pass of calls that the user did not make.
        unfinished: those of them that have other options.
        source: the source of the operator, and the lines that define it, if known from an earlier check.
    """

    subject: OperatorUnderTest
    base: Example
    given: Any
    order: int
    only: tuple[str, ...] | None
    switched_off: dict[str, str]
    progress: Callable[[str, int, int], None] | None
    report: Report
    budget: Budget
    keep_going: bool = False
    collected: list[tuple[Failure, Callable[[Example], Any] | None]] = attrs.Factory(list)
    again: Callable[[Example], Any] | None = None
    short: bool = False
    patience: float = 0.0
    cost: float = 0.0
    too_slow: set[str] = attrs.Factory(set)
    tried: list[Example] = attrs.Factory(list)
    steady: Baseline | None = None
    refusals: list[str] = attrs.Factory(list)
    unfinished: list[Example] = attrs.Factory(list)
    source: tuple[str, dict[str, list[str]]] | None = None

    @classmethod
    def of(
        cls,
        operator: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        *,
        contract: Contract,
        order: int = 2,
        only: Any = None,
        switched_off: Mapping[str, str] | None = None,
        keep_going: bool = False,
        seconds: float | None = None,
        float32: bool | None = None,
        progress: Any = None,
    ) -> Check:
        """Return the check of a call, with validated arguments and options."""
        example = example_of(args, kwargs, declared(operator))
        subject = subject_of(operator, contract, example)
        switched_off = switched_off or {}
        names = (only,) if isinstance(only, str) else None if only is None else tuple(only)
        unknown = [name for name in (*switched_off, *(names or ())) if name not in PROPERTIES]
        if unknown:
            told = near_matches(unknown[0], PROPERTIES)
            raise ValueError(f"no property is called {unknown[0]!r}; {told}see viewgrad.testing.PROPERTIES")
        single = any(of_single_precision_dtype(array) for array in example.arrays)
        subject.keeps_float32 = single if float32 is None else float32
        budget = Budget(PROFILES[profile()] if seconds is None else seconds)
        switched = dict(switched_off)
        report = Report(subject.name)
        return cls(subject, example, operator, order, names, switched, progress, report, budget, keep_going)

    def given_source(self, known: tuple[str, dict[str, list[str]]] | None) -> tuple[str, dict[str, list[str]]]:
        """Use the source that an earlier check of the operator found, or find it; return it."""
        if known is None:
            stateless = self.subject.operator is not None
            definitions = {} if stateless else definitions_of(self.subject, self.given)
            known = fresh_source_of(self.subject, self.given), definitions
        self.source = known
        return known

    def in_short(self) -> None:
        """Check only this call itself."""
        self.short = True
        self.only = SHORT if self.only is None else self.only

    def only_again(self, property: str) -> None:
        """Check only the property that failed for another call."""
        self.only = (base_name(property),)

    def run(self, shrink: bool = True) -> Report:
        """Check all properties in turn.

        Arguments:
            shrink: whether to look for smaller calls that fail in the same way.

        Raises:
            Failure: if properties do not hold; it holds the failures of the others.
        """
        self.subject.source, definitions = self.given_source(self.source)
        self.report.switched_off = dict(self.switched_off)
        with enable_grad():
            with contextlib.suppress(Stop):
                self._run()
            self._summarize()
            record(self.report, [failure for failure, _ in self.collected])
            if not self.collected:
                return self.report
            definitions = definitions or definitions_of(self.subject, self.given)
            collected = sorted(self.collected, key=lambda found: PROPERTIES.index(base_name(found[0].property)))
            told = []
            for failure, again in collected:
                small = shrunk(failure, again) if shrink and again is not None else failure
                told.append(tell(small, failure, self.subject, [self.base, *self.tried], definitions))
        first = together(told)
        raise first from first.__cause__

    def _summarize(self) -> None:
        """Complete the report."""
        self.report.notices += [text for text in self.subject.notices if text not in self.report.notices]
        if self.refusals:
            self.report.notices.append(
                f"its backward raises errors in {len(self.refusals)} calls that you did not make, as for "
                f"{self.refusals[0]}"
            )
        self._note_undefined()
        self.report.seconds = self.budget.seconds - self.budget.left

    def _note_undefined(self) -> None:
        """Note the smallest call of finite numbers that returns NaN."""
        subject = self.subject
        if subject.undefined is None:
            return
        small = smallest(subject.undefined, lambda other: subject.is_undefined_at(other, subject.values(other)))
        numbers = [np.array2string(array, threshold=6, separator=", ") for array in small.arrays]
        told = ", ".join(f"{small.named(k)} = {text}" for k, text in enumerate(numbers))
        why = f" ({small.label})" if small.label else ""
        self.report.notices.append(f"its result is NaN for finite arguments: {subject.name}({small}){why}, with {told}")

    def _found(self, failure: Failure) -> None:
        """Note one failure per property; stop if nothing can be said after it."""
        name = base_name(failure.property)
        if any(base_name(other.property) == name for other, _ in self.collected):
            return
        example = None if failure.script is None else failure.script.example
        if example is not None and example.label:
            if not is_meant_for_ranks(self.subject, example, self.base):
                self._note_unmeant(example, failure, "numbers of dimensions")
                return
            if not is_meant_for_lengths(self.subject, example, self.base):
                self._note_unmeant(example, failure, "lengths of some arguments alone")
                return
            if example.family == "indices" and not is_meant_for_negative(self.subject, example, self.base):
                self._note_unmeant(example, failure, "integers, negative ones")
                return
        again = self.again
        if name != STATE and self.steady is not None:
            try:
                steady(self.steady)
            except Failure as unsteady:
                failure, again, name = unsteady, None, STATE
                self.collected = [found for found in self.collected if found[0].property in ("something to check",)]
            except Refused:
                pass
        self.collected.append((failure, again))
        if not self.keep_going or name in (STATE, "something to check"):
            raise Stop

    def _note_unmeant(self, example: Example, failure: Failure, others: str) -> None:
        """Note a failure at other shapes, which the operator is hardly meant for."""
        what = f"it accepts other {others}, but its gradient is wrong for them"
        self.report.refuse(example.family)
        advice = "If it is not meant for them, raise in forward, or check with valid=..."
        self.subject.note_once(f"{what}. {advice}", f"{example.label}: {failure.reason.split(':')[0]}")

    def _attempt(self, name: str, function: Callable[..., Any], *args: Any) -> Any:
        """Run one piece of the check and return its result; None if it fails, is refused, or is impossible."""
        try:
            return function(*args)
        except Refused as refused:
            self._note_refusal(name, refused)
        except Failure as failure:
            self._found(failure)
        except (Stop, Absent):
            raise
        except Exception as error:
            self._report_kit_error(name, error)
        return None

    def _report_kit_error(self, name: str, error: Exception) -> None:
        """Report an error of the kit: a nondeterministic operator, or a defect of the kit."""
        if self.steady is not None:
            try:
                steady(self.steady, calls=20)
            except Failure as unsteady:
                self._found(unsteady)
            except Refused:
                pass
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{place.filename.rsplit('/', 1)[-1]}:{place.lineno}"
        self.subject.note(f"{name} could not be checked: {type(error).__name__} in the kit ({where}: {error})")

    def wanted(self, name: str) -> bool:
        """Return whether a property is to be checked."""
        if self.progress is not None:
            self.progress(name, PROPERTIES.index(name), len(PROPERTIES))
        failed = {base_name(failure.property) for failure, _ in self.collected}
        if name in failed or (GRADIENTS in failed and name in AFTER_GRADIENTS):
            return False
        return name not in self.switched_off and (self.only is None or name in self.only)

    def _run(self) -> None:
        if self._attempt("something to check", self._begin) is None:
            raise Stop
        baseline = self._attempt(GRADIENTS, self._plain, self.base, GRADIENTS)
        if baseline is None:
            raise Stop
        self.steady = baseline
        self.subject.single = any(of_single_precision(value) for value in baseline.values)
        sizes = [np.abs(array).max(initial=0.0) for array in [*baseline.values, *baseline.gradients] if array.size]
        self.subject.scale = float(np.nan_to_num(max(sizes, default=1.0), posinf=1.0))
        began = time.process_time()
        self._attempt(GRADIENTS, self.subject.values, self.base)
        call = time.process_time() - began
        self.subject.limits = options_of_a_limit(self.subject, self.base)
        self.patience = PATIENCE + TIMES * call
        self.budget.at_least(call)
        variants = [baseline]
        for name in FIRST:
            if self.wanted(name):
                self._count(name, INVARIANTS[name], baseline)
        if self.wanted(GRADIENTS):
            self._first(self.base)
        if self.wanted("values"):
            self._values(self.base, "values")
            self._digits()
        accepted = self._options(variants)
        for name, check in INVARIANTS.items():
            if self.wanted(name):
                for results in variants[name in FIRST :]:
                    self._count(name, check, results)
        by_option = {example.label.partition("=")[0]: example for example in reversed(accepted)}
        self._beside_others([*by_option.values()][:MOST_BESIDE])
        self._aliases(accepted)
        if self.wanted(NEEDLESS):
            self._attempt(NEEDLESS, unneeded_gradients, baseline, self.report)
        self._forms(variants)
        pointed = self._family("special points", at_special_points(self.subject, self.base))
        self._at_zero()
        self._elsewhere(pointed)
        self._in_place_at(pointed)
        self._family("indices", with_other_indices(self.base))
        self._family("options", with_numbers_for_tensors(self.base))
        self._family("options", by_keyword(self.subject, self.base))
        self._family("options", with_values_for_none(self.subject, self.base))
        self._shapes(accepted)
        for variant in accepted[:3]:
            self._family("special points", some(at_special_points(self.subject, variant), 7))
        self._complex(baseline)
        self._many_digits("values", digits_lost)
        if self.subject.contract.surrogate is None and GRADIENTS not in self.switched_off:
            self._many_digits("digits of gradients", slope_digits_lost)

    def _beside_others(self, others: Iterable[Example]) -> None:
        """Check that other calls leave no state behind that the backward pass of the user's call reads."""
        baseline = self.steady
        for other in others:
            if baseline is not None and baseline.outputs and not self.short and self.wanted(STATE):
                self._count(STATE, functools.partial(beside_other_call, other=other), baseline)

    def _aliases(self, accepted: list[Example]) -> None:
        """Check memory shared between results and arguments, with each accepted option."""
        name = "memory shared with arguments"
        for example in accepted[:MOST_ALIASED] if self.wanted(name) and not self.short else ():
            baseline = self._plain(example, name)
            if baseline is not None and baseline.outputs:
                self._count(name, result_memory, baseline)

    def _at_zero(self) -> None:
        """Check second derivatives at zero elements, where formulas may divide by zero, also in float32."""
        second = self.order > 1 and SECOND not in self.report.absent and self.wanted(SECOND)
        single = not self.subject.composed and self.wanted("dtypes")
        points = at_special_points(self.subject, self.base) if (second or single) and not self.short else ()
        at_zero = [x for x in points if x.label.startswith(("0 in ", "0 everywhere"))]
        for example in self._within(SECOND, at_zero[: 2 + int(AFFORDABLE / max(self.cost, 1e-9))], 2 * AFFORDABLE):
            baseline = self._plain(attrs.evolve(example, lenient=True), SECOND)
            if baseline is None or not baseline.outputs:
                continue
            if second:
                self._form_elsewhere(SECOND, second_order, baseline)
            if single and baseline.finite:
                self._count("dtypes", lambda of: in_lower_precision(of, np.float32), baseline)

    def _elsewhere(self, accepted: list[Example], most: int = 5) -> None:
        """Check the in-place form, forward mode and second derivatives of some accepted calls."""
        small = [x for x in accepted if x.size <= SMALL]
        by_dimensions = {tuple(array.ndim for array in x.arrays): x for x in reversed(small)}
        chosen = [*by_dimensions.values(), *small[:: max(1, len(small) // most)]]
        affordable = 1 + int(AFFORDABLE / max(self.cost, 1e-9))
        chosen = chosen[: min(affordable, max(most, min(len(by_dimensions), 2 * most)))]
        for example in self._within("forward mode", chosen, AFFORDABLE):
            baseline = self._plain(attrs.evolve(example, lenient=True), example.family)
            if baseline is None or not baseline.outputs or not baseline.finite or not baseline.size:
                continue
            for name, check in FORMS.items():
                if (
                    name not in self.report.absent
                    and self.wanted(name)
                    and (self.order > 1 or check is not second_order)
                ):
                    self._form_elsewhere(name, check, baseline)

    def _in_place_at(self, pointed: list[Example]) -> None:
        """Check the in-place form at special points, if it may branch differently."""
        name = "in-place form"
        if (self.subject.inplace is None and not self.subject.written) or not self.wanted(name):
            return
        for example in pointed:
            baseline = self._plain(attrs.evolve(example, lenient=True), name)
            if baseline is not None and baseline.outputs:
                self._form_elsewhere(name, lambda of: inplace_form(of, (ITSELF,)), baseline)

    def _within(self, name: str, examples: Iterable[Example], most: float) -> Iterator[Example]:
        """Yield the calls that there is time for."""
        for example in self.budget.within(examples, most):
            if example is None:
                self.report.leave_out(name)
            else:
                yield example

    def _form_elsewhere(self, name: str, check: Callable[[Baseline], int], baseline: Baseline) -> None:
        """Check one form of a derived call; compositions of operators may lose digits there."""

        def excused(baseline: Baseline) -> int:
            try:
                return check(baseline)
            except Absent as absent:
                raise Refused(str(absent)) from absent
            except Failure as failure:
                if not self._is_of_parts(name, baseline, failure):
                    raise
                raise Refused(failure.reason) from failure

        self._count(name, excused, baseline)

    def _is_of_parts(self, name: str, baseline: Baseline, failure: Failure) -> bool:
        """Return whether a composition fails in a form because one of its operators does so at that point.

        Second derivatives of custom operators are composed of the operators in their backward pass.
        """
        largest = max((float(np.abs(array).max(initial=0.0)) for array in baseline.example.arrays), default=0.0)
        far = bool(baseline.example.label) and largest >= HUGE
        if not self.subject.composed:
            second = name == SECOND or failure.reason.startswith(MIXED)
            if not (far and second and isinstance(failure.found, float) and not np.isfinite(failure.found)):
                return False
            self.subject.note(f"its second derivative is {failure.found} far away ({baseline.example.label})")
            return True
        if far:
            return True
        return failure.is_of_digits or (name == SECOND and self._right_on_both_sides(baseline))

    def _right_on_both_sides(self, baseline: Baseline) -> bool:
        """Return whether second derivatives are right on both sides of a point.

        There, the slopes of parts that have a kink are chosen, each by a convention. The whole may have no kink, and
        no part knows of the others: `log1p(exp(-abs(x))) + maximum(x, 0)` is smooth.
        """
        for side in (0.03, -0.03):
            example = baseline.example.with_arrays(
                [
                    array + side * np.cos(np.arange(array.size)).reshape(array.shape)
                    if k in baseline.example.wanted
                    else array
                    for k, array in enumerate(baseline.example.arrays)
                ]
            )
            try:
                second_order(baseline_results(self.subject, example, SECOND))
            except (Failure, Refused, Absent):
                return False
        return True

    def _forms(self, variants: list[Baseline]) -> None:
        """Check the in-place form, forward mode, second derivatives, and other dtypes."""
        began = time.process_time()
        for name, check in FORMS.items():
            if name == SECOND and self.order < 2:
                self.report.switched_off.setdefault(name, "order=1")
                continue
            if self.wanted(name):
                for results in variants:
                    try:
                        if self.short:  # a drawn call may be at any point
                            self._form_elsewhere(name, check, results)
                        else:
                            self._count(name, check, results)
                    except Absent as absent:
                        self.report.absent[name] = str(absent)
                        break
        self.cost = (time.process_time() - began) / len(variants)
        if self.wanted("dtypes"):
            for results in variants[:2]:
                self._count("dtypes", full_precision, results)
                self._count("dtypes", beside_integers, results)
                for dtype in (np.float32, np.float16):
                    self._count("dtypes", functools.partial(in_lower_precision, dtype=dtype), results)

    def _begin(self) -> bool:
        """Check the call itself: its arguments, results and writes."""
        title = "something to check"
        subject, example = self.subject, self.base
        if not example.wanted:
            script = Script(subject, title, example)
            script.leaves(())
            tensors = ", ".join(f"x{k}" for k in range(len(example.arrays)))
            script.lines.append(f"assert any(tensor.dtype.kind in 'fc' for tensor in [{tensors}])")
            script.fail(
                "nothing was checked: no tensor or array of floating-point or complex dtype is among the arguments"
            )
        subject.written = subject.written_by(example)
        double = in_double_precision(example)
        try:
            subject.values(double)
            self.base = example = double
        except Refused:
            pass
        script = Script(subject, title, example)
        script.leaves()
        try:
            script.call(f"y = {script.expression()}")
        except Refused as refused:
            script.fail(f"the operator refuses the call to be checked: {refused}", refused.__cause__)
        outputs = outputs_of(script["y"])
        if not outputs:
            script.lines.append("assert isinstance(y, vg.Tensor), y")
            script.fail(f"nothing was checked: no tensor is among the results, which are {type(script['y']).__name__}")
        if not any(output.requires_grad for _, output in outputs):
            script.lines.append(f"assert {' or '.join(f'y{path}.requires_grad' for path, _ in outputs)}")
            script.fail("nothing was checked: no result requires grad, although arguments do")
        subject.outputs = len(outputs), tuple(i for i, (_, output) in enumerate(outputs) if output.requires_grad)
        self.report.add(title, 1)
        return True

    def _plain(self, example: Example, family: str) -> Baseline | None:
        """Return the baseline of a call; None if the call is refused."""
        try:
            return baseline_results(self.subject, example, family)
        except Refused as refused:
            self._note_refusal(family, refused)
            if not example.label:
                raise
        return None

    def _count(self, name: str, check: Callable[[Baseline], int], baseline: Baseline) -> None:
        """Check one property of a call, and count it."""
        if (not baseline.finite or not baseline.size) and name not in (
            "arguments are not modified",
            "nothing is left of a call",
        ):
            return
        self.again = lambda example: check(baseline_results(self.subject, example, name))
        asked_for = not baseline.example.label and name != "dtypes"
        if name in self.too_slow and not asked_for:
            return

        def counted() -> None:
            with patience(0.0 if asked_for else self.patience):
                self.report.add(name, check(baseline))

        self._attempt(name, counted)

    def _note_refusal(self, name: str, refused: Refused) -> None:
        self.report.refuse(name)
        if isinstance(refused, TookTooLong):
            self.too_slow.add(name)
        elif str(refused).startswith("the backward pass refuses") and len(self.refusals) < MOST_TRIED:
            self.refusals.append(f"{name}: {refused}")

    def _first(self, example: Example) -> bool:
        """Compare the gradients of one call with differences; return whether it was accepted."""
        if example.family in self.too_slow:
            return False
        compared = GRADIENTS not in self.switched_off  # if not, they are not meant to be the derivatives
        self.again = lambda example: check_gradients(self.subject, example, example.family, compared)

        def counted() -> bool:
            with patience(self.patience if example.label else 0.0):
                found = check_gradients(self.subject, example, example.family, compared)
            self.report.add(example.family, int(found))
            self.tried = [*self.tried[-MOST_TRIED:], example]
            return found

        return bool(self._attempt(example.family, counted))

    def _values(self, example: Example, family: str) -> None:
        self.again = lambda example: against_reference(self.subject, example)
        self._attempt("values", lambda: self.report.add("values", against_reference(self.subject, example)))

    def _digits(self) -> None:
        """Check for values lost to overflow or cancellation."""
        for look, example in () if self.short else where_digits_get_lost(self.subject, self.base):
            if not self.wanted("values"):
                return
            self.again = lambda other, look=look: look(self.subject, other)

            def counted(look: Callable[..., int] = look, example: Example = example) -> None:
                with patience(self.patience):
                    self.report.add("values", look(self.subject, example))

            self._attempt("values", counted)
        for example in () if self.short else where_reference_decides(self.subject, self.base):
            if self.wanted("values"):
                self.again = lambda other: digits_by_reference(self.subject, other)
                found = self._attempt("values", digits_by_reference, self.subject, example)
                self.report.add("values", found or 0)

    def _many_digits(self, name: str, check: Callable[[OperatorUnderTest, Example], int]) -> None:
        """Check for lost digits by running the operator's own code in high precision."""
        examples = where_digits_may_be_lost(self.subject, self.base) if not self.short and self.wanted(name) else ()
        refused = 0
        for example in self._within(name, examples, AFFORDABLE):
            within = self.subject.within(example)
            if within is None or (check is slope_digits_lost and not within.changed):
                continue
            if not self.wanted(name) or name in self.too_slow or refused > MOST_REFUSED:
                return
            self.again = functools.partial(check, self.subject)
            counted = self._attempt(name, self._patiently, check, within)
            refused = 0 if counted else refused + 1
            self.report.add(name, counted or 0)

    def _patiently(self, check: Callable[[OperatorUnderTest, Example], int], example: Example) -> int:
        with patience(self.patience):
            return check(self.subject, example)

    def _family(self, name: str, examples: Iterable[Example]) -> list[Example]:
        """Check the gradients of many calls; return those that were accepted."""
        accepted = []
        most = (COMPOSED_SHARE if self.subject.composed else FAMILY_SHARE) * self.budget.seconds
        for proposed in self._within(name, examples, most):
            if not self.wanted(proposed.family):
                continue
            example = self.subject.within(proposed)
            if example is None:
                self.report.refuse(name)
                continue
            refused = len(self.refusals)
            if self._first(example):
                accepted.append(example)
            elif len(self.refusals) > refused and name == "options" and "," not in example.label.partition("=")[0]:
                self.unfinished.append(example)
            if self.subject.reference is not None and self.wanted("values"):
                self._values(example, name)
        return accepted

    def _options(self, variants: list[Baseline]) -> list[Example]:
        """Check other options; those that change the results most are checked in all variations."""
        if not self.wanted("options"):
            return []
        accepted = self._family("options", with_other_options(self.subject, self.base))
        seen = {variants[0].values[0].shape}
        for example in accepted:
            if len(variants) >= 3:
                break
            baseline = self._plain(example, "options")
            if baseline is None or not baseline.outputs or not baseline.finite:
                continue
            if len(variants) == 1 or baseline.values[0].shape not in seen:
                seen.add(baseline.values[0].shape)
                variants.append(baseline)
        return accepted

    def _shapes(self, accepted: list[Example]) -> None:
        if not self.wanted("shapes"):
            return
        shaped = self._family("shapes", of_other_shapes(self.base))
        if not self.short:
            self._family("shapes", of_long_shapes(self.base))
        self._family("shapes", with_other_lists(self.base))
        self._family("shapes", map(of_equal_lengths, self.unfinished[:MOST_UNFINISHED]))
        self._beside_others(shaped[:MOST_BESIDE])
        self._elsewhere(shaped)
        for variant in accepted[:6]:
            more = (
                attrs.evolve(example, label=f"{variant.label}, {example.label}") for example in of_other_shapes(variant)
            )
            self._family("shapes", some(more, 3))
        for example in shaped:
            if "another dimension in front" in example.label or "no dimensions" in example.label:
                for varied in with_other_options(self.subject, example, most=16) if self.wanted("options") else ():
                    self._family(
                        "shapes",
                        iter([attrs.evolve(varied, label=f"{example.label}, {varied.label}", family="shapes")]),
                    )
                baseline = self._plain(example, "shapes")
                if baseline is not None and baseline.outputs:
                    for name in ("layouts of arguments", "layouts of incoming gradients", "arguments are not modified"):
                        if self.wanted(name):
                            self._count(name, INVARIANTS[name], baseline)

    def _complex(self, baseline: Baseline) -> None:
        """Check complex arguments, if the operator supports them."""
        name = "complex numbers"
        if any(array.dtype.kind == "c" for array in self.base.arrays) or not self.wanted(name):
            return
        if self.subject.contract.complex is False:
            return
        examples = list(with_complex_numbers(self.base))
        before = list(self.collected), self.keep_going
        self.keep_going = self.keep_going or not self.subject.complex
        for example in examples:
            if self._first(example):
                results = self._plain(example, name)
                if results is not None and results.finite and results.outputs and example is examples[0]:
                    self._count(name, INVARIANTS["linear in the incoming gradient"], results)
                    self._count(name, INVARIANTS["layouts of arguments"], results)
        found = [failure for failure, _ in self.collected if failure not in [other for other, _ in before[0]]]
        if found and not self.subject.complex:
            self.collected, self.keep_going = before
            self.subject.note(
                "it accepts complex numbers, but its gradients are wrong for them. If it is not meant for them, raise "
                f"in forward; otherwise check with dtype_kinds='fc' ({found[0].reason.split(':')[0]})"
            )
        self.keep_going = before[1]


def of_single_precision_dtype(array: Array) -> bool:
    """Return whether an array has elements of single precision."""
    return array.dtype in (np.float32, np.complex64)


def base_name(title: str) -> str:
    """Return the property that a title, possibly with details, belongs to."""
    return title.split(" (")[0].split(": ")[0]
