"""A check of an operator: the user's call, its variations, and the calls derived from it."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import attrs
import numpy as np

from ...tensor.modes import enable_grad
from .arguments import Example, example_of
from .baseline import Baseline, of_single_precision
from .budget import PROFILES, Budget, profile, some
from .contract import Contract, near_matches
from .cpu_time import collections_timed, cpu_seconds
from .failure_report import definitions_of, fresh_source_of, tell, together
from .findings import BEGINNING, STATE, Findings, Stop
from .limits import counts_nothing, options_of_a_limit
from .operator_under_test import OperatorUnderTest, declared, subject_of
from .options import by_keyword, with_numbers_for_tensors, with_other_options, with_values_for_none
from .parts import SECOND
from .properties.dtypes import beside_integers, full_precision, in_lower_precision
from .properties.forms import ITSELF, inplace_form
from .properties.high_precision_values import digits_lost, slope_digits_lost, where_digits_may_be_lost
from .properties.higher import Absent, forward_mode, second_order
from .properties.memory import result_memory
from .properties.precision import digits_by_reference, where_digits_get_lost, where_reference_decides
from .properties.registry import FIRST, INVARIANTS, PROPERTIES, SHORT, base_name
from .properties.repetition import beside_other_call
from .properties.unneeded_work import NEEDLESS, unneeded_gradients
from .properties.usable import usable_call
from .report import Report
from .session import record
from .shapes import MULTIPLES, of_equal_lengths, of_long_shapes, of_other_shapes, with_other_lists
from .shrinking import shrunk
from .special_values import at_special_points, with_complex_numbers, with_other_indices
from .trials import Trials

FORMS: Final[dict[str, Callable[[Baseline], int]]] = {
    "in-place form": inplace_form,
    "forward mode": forward_mode,
    SECOND: second_order,
}
SMALL: Final = 40  # the number of values to differentiate with respect to
MOST_REFUSED: Final = 3  # the number of refused calls after which an operator's code is not run with many digits
MOST_ALIASED: Final = 16  # the number of calls with other options
MOST_BESIDE: Final = 3  # the number of other calls between a call and its backward pass
MOST_UNFINISHED: Final = 6  # the number of options with which a gradient had another shape, tried with equal lengths
# Time limits of a derived call, which may not terminate: in seconds, and in multiples of the user's call.
PATIENCE: Final = 0.4
TIMES: Final = 500.0
FAMILY_SHARE, COMPOSED_SHARE = 0.5, 0.25  # the fractions of the time of a check for one family of calls
AFFORDABLE: Final = 0.25  # seconds for forms of derived calls
GRADIENTS: Final = "gradients"
# Properties that are redundant if the gradients of the user's call are wrong.
AFTER_GRADIENTS: Final = (
    "special points", "ties", "indices", "options", "shapes", "complex numbers", "dtypes", "forward mode", SECOND,
    "digits of gradients",
)  # fmt: skip


@attrs.define(eq=False)
class Check:
    """A check of an operator in progress.

    Arguments:
        subject: the operator.
        base: the call that the user gave.
        given: the operator as passed by the user.
        order: 2 to check second derivatives.
        only: the properties to check, or None for all.
        switched_off: the properties not to check, with reasons.
        progress: a function called with each property.
        report: the report to be returned.
        budget: the time budget.
        findings: the failures and refusals so far.
        trials: the checks of single properties of single calls.
        short: whether the call is one of many.
        cost: seconds for the forms of the user's call.
        unfinished: calls with other options whose backward pass raised an error.
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
    findings: Findings
    trials: Trials
    short: bool = False
    cost: float = 0.0
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
        """Create the check of a call after validating arguments and options."""
        example = example_of(args, kwargs, declared(operator))
        subject = subject_of(operator, contract, example)
        example = attrs.evolve(example, names=subject.positional)
        switched_off = switched_off or {}
        names = (only,) if isinstance(only, str) else None if only is None else tuple(only)
        unknown = [name for name in (*switched_off, *(names or ())) if name not in PROPERTIES]
        if unknown:
            told = near_matches(unknown[0], PROPERTIES)
            raise ValueError(f"there is no property {unknown[0]!r}; {told}see viewgrad.testing.PROPERTIES")
        if seconds is not None and not (isinstance(seconds, int | float) and seconds > 0):
            raise ValueError(f"seconds= must be a positive number of seconds of CPU time, not {seconds!r}")
        if order not in (1, 2):
            raise ValueError(f"order= must be 1 or 2, not {order!r}")
        single = any(_of_single_precision_dtype(array) for array in example.arrays)
        subject.keeps_float32 = single if float32 is None else float32
        budget = Budget(PROFILES[profile()] if seconds is None else seconds)
        switched = dict(switched_off)
        report = Report(subject.name)
        findings = Findings(subject, example, report, keep_going)
        # Gradients whose check is switched off are not meant to be the derivatives.
        trials = Trials(subject, findings, report, compared=GRADIENTS not in switched)
        return cls(subject, example, operator, order, names, switched, progress, report, budget, findings, trials)

    def given_source(self, known: tuple[str, dict[str, list[str]]] | None) -> tuple[str, dict[str, list[str]]]:
        """Use the source found by an earlier check of the operator, or find it; return it."""
        if known is None:
            stateless = self.subject.operator is not None
            definitions = {} if stateless else definitions_of(self.subject, self.given)
            known = fresh_source_of(self.subject, self.given), definitions
        self.source = known
        return known

    def in_short(self) -> None:
        """Check only the call itself."""
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
            Failure: if properties do not hold; it contains all other failures.
        """
        self.subject.source, definitions = self.given_source(self.source)
        self.report.switched_off = dict(self.switched_off)
        with enable_grad(), collections_timed():
            with contextlib.suppress(Stop):
                self._run()
            self.findings.complete_report(self.budget.seconds - self.budget.left)
            found = self.findings.in_order()
            record(self.report, [failure for failure, _ in found])
            if not found:
                return self.report
            definitions = definitions or definitions_of(self.subject, self.given)
            told = []
            for failure, again in found:
                small = shrunk(failure, again) if shrink and again is not None else failure
                told.append(tell(small, failure, self.subject, [self.base, *self.trials.tried], definitions))
        first = together(told)
        raise first from first.__cause__

    def wanted(self, name: str) -> bool:
        """Return whether a property should be checked."""
        if self.progress is not None:
            self.progress(name, PROPERTIES.index(name), len(PROPERTIES))
        failed = self.findings.failed
        if name in failed or (GRADIENTS in failed and name in AFTER_GRADIENTS):
            return False
        return name not in self.switched_off and (self.only is None or name in self.only)

    def _begin(self) -> Baseline:
        """Check that the user's call is usable; return its baseline."""
        trials, subject = self.trials, self.subject
        base = trials.attempt(BEGINNING, lambda: usable_call(subject, self.base))
        if base is None:
            raise Stop
        self.base = self.findings.base = base
        self.report.add(BEGINNING, 1)
        baseline: Baseline | None = trials.attempt(GRADIENTS, lambda: trials.plain(base, GRADIENTS))
        if baseline is None:
            raise Stop
        self.findings.steady = baseline
        subject.single = any(of_single_precision(value) for value in baseline.values)
        sizes = [np.abs(array).max(initial=0.0) for array in [*baseline.values, *baseline.gradients] if array.size]
        subject.scale = float(np.nan_to_num(max(sizes, default=1.0), posinf=1.0))
        began = cpu_seconds()
        trials.attempt(GRADIENTS, lambda: subject.values(base))
        call = cpu_seconds() - began
        subject.limits = options_of_a_limit(subject, base)
        trials.patience = PATIENCE + TIMES * call
        self.budget.at_least(call)
        return baseline

    def _run(self) -> None:
        baseline = self._begin()
        trials, subject = self.trials, self.subject
        variants = [baseline]
        for name in FIRST:
            if self.wanted(name):
                trials.count(name, INVARIANTS[name], baseline)
        if self.wanted(GRADIENTS):
            trials.gradients(self.base)
        if self.wanted("values"):
            trials.values(self.base)
            self._digits()
        accepted = self._options(variants)
        for name, check in INVARIANTS.items():
            if self.wanted(name):
                for results in variants[name in FIRST :]:
                    trials.count(name, check, results)
        by_option = {example.label.partition("=")[0]: example for example in reversed(accepted)}
        self._beside_others([*by_option.values()][:MOST_BESIDE])
        self._aliases(accepted)
        if self.wanted(NEEDLESS):
            trials.attempt(NEEDLESS, lambda: unneeded_gradients(baseline, self.report))
        self._forms(variants)
        pointed = self._family("special points", at_special_points(subject, self.base))
        self._at_zero()
        self._elsewhere(pointed)
        self._in_place_at(pointed)
        self._family("indices", with_other_indices(self.base))
        self._family("options", with_numbers_for_tensors(self.base))
        self._family("options", by_keyword(subject, self.base))
        self._family("options", with_values_for_none(subject, self.base))
        self._shapes(accepted)
        for variant in accepted[:3]:
            self._family("special points", some(at_special_points(subject, variant), 7))
        self._complex()
        self._many_digits("values", digits_lost)
        if subject.contract.surrogate is None and GRADIENTS not in self.switched_off:
            self._many_digits("digits of gradients", slope_digits_lost)

    def _beside_others(self, others: Iterable[Example]) -> None:
        """Check that other calls leave no state that affects the backward pass of the user's call."""
        baseline = self.findings.steady
        for other in others:
            if baseline is not None and baseline.outputs and not self.short and self.wanted(STATE):
                self.trials.count(STATE, functools.partial(beside_other_call, other=other), baseline)

    def _aliases(self, accepted: list[Example]) -> None:
        """Check memory shared between results and arguments, with each accepted option."""
        name = "memory shared with arguments"
        for example in accepted[:MOST_ALIASED] if self.wanted(name) and not self.short else ():
            if counts_nothing(self.subject, example):
                continue  # after zero steps, the result may be the argument
            baseline = self.trials.plain(example, name)
            if baseline is not None and baseline.outputs:
                self.trials.count(name, result_memory, baseline)

    def _at_zero(self) -> None:
        """Check second derivatives at zero elements, where formulas may divide by zero, also in float32."""
        second = self.order > 1 and SECOND not in self.report.absent and self.wanted(SECOND)
        single = not self.subject.composed and self.wanted("dtypes")
        points = at_special_points(self.subject, self.base) if (second or single) and not self.short else ()
        at_zero = [x for x in points if x.label.startswith(("0 in ", "0 everywhere"))]
        for example in self._within(SECOND, at_zero[: 2 + int(AFFORDABLE / max(self.cost, 1e-9))], 2 * AFFORDABLE):
            baseline = self.trials.plain(attrs.evolve(example, lenient=True), SECOND)
            if baseline is None or not baseline.outputs:
                continue
            if second:
                self.trials.count_form(SECOND, second_order, baseline)
            if single and baseline.finite:
                self.trials.count("dtypes", lambda of: in_lower_precision(of, np.float32), baseline)

    def _elsewhere(self, accepted: list[Example], most: int = 5) -> None:
        """Check the in-place form, forward mode and second derivatives of some accepted calls."""
        small = [x for x in accepted if x.size <= SMALL]
        by_dimensions = {tuple(array.ndim for array in x.arrays): x for x in reversed(small)}
        chosen = [*by_dimensions.values(), *small[:: max(1, len(small) // most)]]
        affordable = 1 + int(AFFORDABLE / max(self.cost, 1e-9))
        chosen = chosen[: min(affordable, max(most, min(len(by_dimensions), 2 * most)))]
        for example in self._within("forward mode", chosen, AFFORDABLE):
            baseline = self.trials.plain(attrs.evolve(example, lenient=True), example.family)
            if baseline is None or not baseline.outputs or not baseline.finite or not baseline.size:
                continue
            for name, check in FORMS.items():
                if (
                    name not in self.report.absent
                    and self.wanted(name)
                    and (self.order > 1 or check is not second_order)
                ):
                    self.trials.count_form(name, check, baseline)

    def _in_place_at(self, pointed: list[Example]) -> None:
        """Check the in-place form at special points, if it may branch differently."""
        name = "in-place form"
        if (self.subject.inplace is None and not self.subject.written) or not self.wanted(name):
            return
        for example in pointed:
            baseline = self.trials.plain(attrs.evolve(example, lenient=True), name)
            if baseline is not None and baseline.outputs:
                self.trials.count_form(name, lambda of: inplace_form(of, (ITSELF,)), baseline)

    def _within(self, name: str, examples: Iterable[Example], most: float) -> Iterator[Example]:
        """Yield the calls for which there is time."""
        for example in self.budget.within(examples, most):
            if example is None:
                self.report.leave_out(name)
            else:
                yield example

    def _forms(self, variants: list[Baseline]) -> None:
        """Check the in-place form, forward mode, second derivatives, and other dtypes."""
        began = cpu_seconds()
        for name, check in FORMS.items():
            if name == SECOND and self.order < 2:
                self.report.switched_off.setdefault(name, "order=1")
                continue
            if self.wanted(name):
                for results in variants:
                    try:
                        if self.short:  # a drawn call may be at any point
                            self.trials.count_form(name, check, results)
                        else:
                            self.trials.count(name, check, results)
                    except Absent as absent:
                        self.report.absent[name] = str(absent)
                        break
        self.cost = (cpu_seconds() - began) / len(variants)
        if self.wanted("dtypes"):
            for results in variants[:2]:
                self.trials.count("dtypes", full_precision, results)
                self.trials.count("dtypes", beside_integers, results)
                self.trials.count("dtypes", functools.partial(in_lower_precision, dtype=np.float32), results)
                self._in_half_precision(results)

    def _in_half_precision(self, results: Baseline) -> None:
        """Check the call in half precision; failures are only noted unless low precision was requested."""
        check = functools.partial(in_lower_precision, dtype=np.float16)
        if self.subject.keeps_float32:
            self.trials.count("dtypes", check, results)
            return
        with self.findings.aside() as unmeant:
            self.trials.count("dtypes", check, results)
        if unmeant:
            self.subject.note_once("it is inaccurate in half precision", unmeant[0].reason)

    def _digits(self) -> None:
        """Check for values that are lost to overflow or cancellation."""
        subject = self.subject
        for look, example in () if self.short else where_digits_get_lost(subject, self.base):
            if not self.wanted("values"):
                return
            found = self.trials.patiently("values", functools.partial(look, subject), example)
            self.report.add("values", found or 0)
        for example in () if self.short else where_reference_decides(subject, self.base):
            if self.wanted("values"):
                check = functools.partial(digits_by_reference, subject)
                self.report.add("values", self.trials.patiently("values", check, example) or 0)

    def _many_digits(self, name: str, check: Callable[[OperatorUnderTest, Example], int]) -> None:
        """Check for lost digits by running the operator's own code in high precision."""
        examples = where_digits_may_be_lost(self.subject, self.base) if not self.short and self.wanted(name) else ()
        refused = 0
        for example in self._within(name, examples, AFFORDABLE):
            within = self.subject.within(example)
            if within is None or (check is slope_digits_lost and not within.changed):
                continue
            if not self.wanted(name) or name in self.findings.too_slow or refused > MOST_REFUSED:
                return
            counted = self.trials.patiently(name, functools.partial(check, self.subject), within)
            refused = 0 if counted else refused + 1
            self.report.add(name, counted or 0)

    def _family(self, name: str, examples: Iterable[Example]) -> list[Example]:
        """Check the gradients of many calls; return the accepted ones."""
        accepted = []
        most = (COMPOSED_SHARE if self.subject.composed else FAMILY_SHARE) * self.budget.seconds
        for proposed in self._within(name, examples, most):
            if not self.wanted(proposed.family):
                continue
            example = self.subject.within(proposed)
            if example is None:
                self.report.refuse(name)
                continue
            refused = len(self.findings.refusals)
            if self.trials.gradients(example):
                accepted.append(example)
            elif len(self.findings.refusals) > refused and name == "options" and _is_of_options(example):
                self.unfinished.append(example)
            if self.subject.reference is not None and self.wanted("values"):
                self.trials.values(example)
        return accepted

    def _options(self, variants: list[Baseline]) -> list[Example]:
        """Check other options; those that change the results most are checked with all variations."""
        if not self.wanted("options"):
            return []
        accepted = self._family("options", with_other_options(self.subject, self.base))
        seen = {variants[0].values[0].shape}
        for example in accepted:
            if len(variants) >= 3:
                break
            baseline = self.trials.plain(example, "options")
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
            if not self._family("shapes", of_long_shapes(self.base)):
                self._family("shapes", of_long_shapes(self.base, MULTIPLES))
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
                baseline = self.trials.plain(example, "shapes")
                if baseline is not None and baseline.outputs:
                    for name in ("layouts of arguments", "layouts of incoming gradients", "arguments are not modified"):
                        if self.wanted(name):
                            self.trials.count(name, INVARIANTS[name], baseline)

    def _complex(self) -> None:
        """Check complex arguments, if the operator supports them."""
        name = "complex numbers"
        if any(array.dtype.kind == "c" for array in self.base.arrays) or not self.wanted(name):
            return
        if self.subject.contract.complex is False:
            return
        if self.subject.complex:
            self._with_complex_numbers(name)
            return
        with self.findings.aside() as unmeant:
            self._with_complex_numbers(name)
        if unmeant:
            self.subject.note(
                "it accepts complex numbers, but its gradients are wrong for them. If it does not support them, raise "
                f"an error in forward; otherwise check with dtype_kinds='fc' ({unmeant[0].reason.split(':')[0]})"
            )

    def _with_complex_numbers(self, name: str) -> None:
        trials = self.trials
        for number, example in enumerate(list(with_complex_numbers(self.base))):
            if trials.gradients(example):
                results = trials.plain(example, name)
                if results is not None and results.finite and results.outputs and number == 0:
                    trials.count(name, INVARIANTS["linear in the incoming gradient"], results)
                    trials.count(name, INVARIANTS["layouts of arguments"], results)


def _is_of_options(example: Example) -> bool:
    return "," not in example.label.partition("=")[0]


def _of_single_precision_dtype(array: np.ndarray[Any, Any]) -> bool:
    """Return whether an array has elements of single precision."""
    return array.dtype in (np.float32, np.complex64)
