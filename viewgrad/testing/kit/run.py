"""One check of an operator: its call in all circumstances, and the calls derived from it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import attrs
import numpy as np

from ...tensor.modes import enable_grad
from .arguments import Example, example_of, outputs_of
from .baseline import Baseline, baseline_results, of_single_precision
from .budget import some, within
from .failure import Failure
from .failure_report import definitions_of, fresh_source_of, tell
from .operator_under_test import OperatorUnderTest, Refused, TookTooLong, declared, patience, subject_of
from .options import by_keyword, with_numbers_for_tensors, with_other_options, with_tensors_for_none
from .properties.dtypes import beside_integers, full_precision, in_lower_precision
from .properties.forms import ITSELF, against_reference, inplace_form
from .properties.gradients import REFUSALS, check_gradients
from .properties.higher import Absent, forward_mode, second_order
from .properties.precision import where_digits_get_lost
from .properties.registry import FIRST, INVARIANTS, PROPERTIES, SHORT
from .properties.unneeded_work import NEEDLESS, computed_in_vain
from .report import Report
from .script import Script
from .shapes import of_other_shapes, with_other_lists
from .shrinking import shrunk
from .special_values import at_special_points, in_double_precision, with_complex_numbers, with_other_indices

__all__ = ["Check"]

Array = np.ndarray[Any, Any]

FORMS: Final[dict[str, Callable[[Baseline], int]]] = {
    "in-place form": inplace_form,
    "forward mode": forward_mode,
    "second derivatives": second_order,
}
SECOND: Final = "second derivatives"
SMALL: Final = 40  # numbers to differentiate with respect to
MOST_TRIED: Final = 60  # calls that are remembered
# What a call that nobody asked for may take, which may have sent a loop astray: seconds, and calls of the user's.
PATIENCE: Final = 0.4
TIMES: Final = 500.0
AFFORDABLE: Final = 0.25  # seconds for the forms of calls that nobody asked for


@attrs.define(eq=False)
class Check:
    """One check of an operator, under way."""

    subject: OperatorUnderTest
    base: Example
    given: Any
    order: int
    only: tuple[str, ...] | None
    switched_off: dict[str, str]
    progress: Callable[[str, int, int], None] | None
    report: Report
    again: Callable[[Example], Any] | None = None  # looks at the same of another call
    short: bool = False  # whether it is one of many calls
    patience: float = 0.0  # seconds for calls that the user did not ask for
    cost: float = 0.0  # seconds for the forms of the call that the user gave
    astray: set[str] = attrs.Factory(set)  # the properties in which a call took too long
    tried: list[Example] = attrs.Factory(list)  # the calls so far, on which what comes later may depend

    @classmethod
    def of(
        cls,
        operator: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        *,
        inplace: Any,
        reference: Any,
        domain: Any,
        dtype_kinds: str | None,
        order: int,
        only: Any,
        switched_off: Mapping[str, str] | None,
        progress: Any,
    ) -> Check:
        """The check, after a look at what was given."""
        example = example_of(args, kwargs, declared(operator))
        is_complex = None if dtype_kinds is None else "c" in dtype_kinds
        subject = subject_of(operator, inplace, reference, domain, is_complex, example)
        switched_off = switched_off or {}
        names = (only,) if isinstance(only, str) else None if only is None else tuple(only)
        unknown = [name for name in (*switched_off, *(names or ())) if name not in PROPERTIES]
        if unknown:
            raise ValueError(f"no property is called {unknown[0]!r}; there are {', '.join(PROPERTIES)}")
        return cls(subject, example, operator, order, names, dict(switched_off), progress, Report(subject.name))

    def in_short(self) -> None:
        """Look only at what concerns this call itself."""
        self.short = True
        self.only = SHORT if self.only is None else self.only

    def run(self) -> Report:
        """Look at all properties in turn."""
        stateless = self.subject.operator is not None
        definitions = [] if stateless else definitions_of(self.subject, self.given)
        self.subject.source = fresh_source_of(self.subject, self.given)
        self.report.switched_off = dict(self.switched_off)
        with enable_grad():
            try:
                self._run()
            except Failure as failure:
                definitions = definitions or definitions_of(self.subject, self.given)
                small = failure if self.again is None else shrunk(failure, self.again)
                told = tell(small, failure, self.subject, [self.base, *self.tried], definitions)
                raise told from told.__cause__
        return self.report

    def wanted(self, name: str) -> bool:
        """Whether a property is to be looked at."""
        if self.progress is not None:
            self.progress(name, PROPERTIES.index(name), len(PROPERTIES))
        return name not in self.switched_off and (self.only is None or name in self.only)

    def _run(self) -> None:
        self._begin()
        baseline = self._plain(self.base, "gradients")
        assert baseline is not None
        self.subject.single = any(of_single_precision(value) for value in baseline.values)
        began = time.process_time()
        self.subject.values(self.base)
        self.patience = PATIENCE + TIMES * (time.process_time() - began)
        circumstances = [baseline]
        for name in FIRST:
            if self.wanted(name):
                self._count(name, INVARIANTS[name], baseline)
        if self.wanted("gradients"):
            self._first(self.base)
        if self.wanted("values"):
            self._values(self.base, "values")
            self._digits()
        accepted = self._options(circumstances)
        for name, check in INVARIANTS.items():
            if self.wanted(name):
                for results in circumstances[name in FIRST :]:
                    self._count(name, check, results)
        if self.wanted(NEEDLESS):
            computed_in_vain(baseline, self.report)
        self._forms(circumstances)
        pointed = self._family("special points", at_special_points(self.subject, self.base))
        self._at_zero()
        self._elsewhere(pointed)
        self._in_place_at(pointed)
        for variant in accepted[:3]:
            self._family("special points", some(at_special_points(self.subject, variant), 7))
        self._family("indices", with_other_indices(self.base))
        self._family("options", with_numbers_for_tensors(self.base))
        self._family("options", by_keyword(self.subject, self.base))
        self._family("options", with_tensors_for_none(self.subject, self.base))
        self._shapes(accepted)
        self._complex(baseline)

    def _at_zero(self) -> None:
        """Second derivatives where an element is 0, at which formulas divide, or where all are; and float32 there."""
        second = self.order > 1 and SECOND not in self.report.absent and self.wanted(SECOND)
        single = not self.subject.composed and self.wanted("dtypes")
        points = at_special_points(self.subject, self.base) if (second or single) and not self.short else ()
        at_zero = [x for x in points if x.label.startswith(("0 in ", "0 everywhere"))]
        for example in within(2 * AFFORDABLE, at_zero[: 2 + int(AFFORDABLE / max(self.cost, 1e-9))]):
            baseline = self._plain(attrs.evolve(example, lenient=True), SECOND)
            if baseline is None or not baseline.outputs:
                continue
            if second:
                self._form_elsewhere(SECOND, second_order, baseline)
            if single and baseline.finite:
                self._count("dtypes", lambda of: in_lower_precision(of, np.float32), baseline)

    def _elsewhere(self, accepted: list[Example], most: int = 5) -> None:
        """The in-place form, forward mode and second derivatives of some of the calls that were accepted."""
        small = [x for x in accepted if x.size <= SMALL]
        by_dimensions = {tuple(array.ndim for array in x.arrays): x for x in reversed(small)}
        chosen = [*by_dimensions.values(), *small[:: max(1, len(small) // most)]]
        affordable = 1 + int(AFFORDABLE / max(self.cost, 1e-9))
        for example in within(AFFORDABLE, chosen[: min(affordable, max(most, min(len(by_dimensions), 2 * most)))]):
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
        """The in-place form at the special points, where it may branch as the other does not."""
        name = "in-place form"
        if (self.subject.inplace is None and not self.subject.written) or not self.wanted(name):
            return
        for example in pointed:
            baseline = self._plain(attrs.evolve(example, lenient=True), name)
            if baseline is not None and baseline.outputs:
                self._form_elsewhere(name, lambda of: inplace_form(of, (ITSELF,)), baseline)

    def _form_elsewhere(self, name: str, check: Callable[[Baseline], int], baseline: Baseline) -> None:
        """One form of a call that the user did not give; of what is composed of operators, digits may be lost there."""
        try:
            self._count(name, check, baseline)
        except Absent:
            self.report.refuse(name)
        except Failure as failure:
            if not self._is_of_parts(name, baseline, failure) and not isinstance(failure.__cause__, REFUSALS):
                raise
            self.report.refuse(name)

    def _is_of_parts(self, name: str, baseline: Baseline, failure: Failure) -> bool:
        """Whether a form of what is composed of operators is wrong at a point by what these do there."""
        if not self.subject.composed:
            return False
        return failure.is_of_digits or (name == SECOND and self._right_on_both_sides(baseline))

    def _right_on_both_sides(self, baseline: Baseline) -> bool:
        """Whether second derivatives are right beside a point.

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

    def _forms(self, circumstances: list[Baseline]) -> None:
        """The in-place form, forward mode, second derivatives, and other dtypes."""
        began = time.process_time()
        for name, check in FORMS.items():
            if name == SECOND and self.order < 2:
                self.report.switched_off.setdefault(name, "order=1")
                continue
            if self.wanted(name):
                for results in circumstances:
                    try:
                        self._count(name, check, results)
                    except Absent as absent:
                        self.report.absent[name] = str(absent)
                        break
                    except Failure as failure:  # of a drawn call, which may be at any point
                        if not self.short or not self._is_of_parts(name, results, failure):
                            raise
                        self.report.refuse(name)
        self.cost = (time.process_time() - began) / len(circumstances)
        if self.wanted("dtypes"):
            for results in circumstances[:2]:
                self._count("dtypes", full_precision, results)
                self._count("dtypes", beside_integers, results)
                for dtype in (np.float32, np.float16):
                    self._count("dtypes", lambda of, dtype=dtype: in_lower_precision(of, dtype), results)  # type: ignore[misc]

    def _begin(self) -> None:
        """The call itself: what it takes, what it returns, what it writes to."""
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
            script.fail(f"the operator refuses the call that it is to be checked at: {refused}", refused.__cause__)
        outputs = outputs_of(script["y"])
        if not outputs:
            script.lines.append("assert isinstance(y, vg.Tensor), y")
            script.fail(f"nothing was checked: no tensor is among the results, which are {type(script['y']).__name__}")
        if not any(output.requires_grad for _, output in outputs):
            script.lines.append(f"assert {' or '.join(f'y{path}.requires_grad' for path, _ in outputs)}")
            script.fail(
                "nothing was checked: no result requires grad, though arguments do: no gradient comes back from it"
            )
        subject.outputs = len(outputs), tuple(i for i, (_, output) in enumerate(outputs) if output.requires_grad)
        self.report.add(title, 1)

    def _plain(self, example: Example, family: str) -> Baseline | None:
        try:
            return baseline_results(self.subject, example, family)
        except Refused:
            self.report.refuse(family)
            return None
        except Failure as failure:
            if example.lenient or (example.label and isinstance(failure.__cause__, REFUSALS)):
                self.report.refuse(family)
                return None
            raise

    def _count(self, name: str, check: Callable[[Baseline], int], baseline: Baseline) -> None:
        if (not baseline.finite or not baseline.size) and name not in (
            "arguments are not modified",
            "nothing is left of a call",
        ):
            return
        self.again = lambda example: check(baseline_results(self.subject, example, name))
        asked_for = not baseline.example.label and name != "dtypes"
        if name in self.astray and not asked_for:
            return
        try:
            with patience(0.0 if asked_for else self.patience):
                self.report.add(name, check(baseline))
        except Refused as refused:
            self._note_refusal(name, refused)

    def _note_refusal(self, name: str, refused: Refused) -> None:
        self.report.refuse(name)
        if isinstance(refused, TookTooLong):
            self.astray.add(name)

    def _first(self, example: Example) -> bool:
        """The gradients of one call against differences; whether it was accepted."""
        if example.family in self.astray:
            return False
        compared = "gradients" not in self.switched_off  # else they are not meant to be the derivatives
        self.again = lambda example: check_gradients(self.subject, example, example.family, compared)
        try:
            with patience(self.patience if example.label else 0.0):
                counted = check_gradients(self.subject, example, example.family, compared)
        except Refused as refused:
            self._note_refusal(example.family, refused)
            return False
        except Failure as failure:
            if example.lenient and failure.__cause__ is not None:  # an error, and no wrong number
                self.report.refuse(example.family)
                return False
            raise
        self.report.add(example.family, int(counted))
        self.tried = [*self.tried[-MOST_TRIED:], example]
        return counted

    def _values(self, example: Example, family: str) -> None:
        self.again = lambda example: against_reference(self.subject, example)
        try:
            self.report.add("values", against_reference(self.subject, example))
        except Refused:
            self.report.refuse("values")

    def _digits(self) -> None:
        """Values that are lost where numbers overflow on the way, or digits cancel."""
        for look, example in () if self.short else where_digits_get_lost(self.subject, self.base):
            self.again = lambda other, look=look: look(self.subject, other)
            try:
                with patience(self.patience):
                    self.report.add("values", look(self.subject, example))
            except Refused as refused:
                self._note_refusal("values", refused)

    def _family(self, name: str, examples: Iterator[Example]) -> list[Example]:
        accepted = []
        for example in within(2 * AFFORDABLE if self.subject.composed else 4 * AFFORDABLE, examples):
            if not self.wanted(example.family):
                continue
            if self._first(example):
                accepted.append(example)
            if self.subject.reference is not None and "values" not in self.switched_off:
                self._values(example, name)
        return accepted

    def _options(self, circumstances: list[Baseline]) -> list[Example]:
        """Other options; those whose results differ most are looked at in all circumstances."""
        if not self.wanted("options"):
            return []
        accepted = self._family("options", with_other_options(self.subject, self.base))
        seen = {circumstances[0].values[0].shape}
        for example in accepted:
            if len(circumstances) >= 3:
                break
            baseline = self._plain(example, "options")
            if baseline is None or not baseline.outputs or not baseline.finite:
                continue
            if len(circumstances) == 1 or baseline.values[0].shape not in seen:
                seen.add(baseline.values[0].shape)
                circumstances.append(baseline)
        return accepted

    def _shapes(self, accepted: list[Example]) -> None:
        if not self.wanted("shapes"):
            return
        shaped = self._family("shapes", of_other_shapes(self.base))
        self._family("shapes", with_other_lists(self.base))
        self._elsewhere(shaped)
        for variant in accepted[:6]:
            more = (
                attrs.evolve(example, label=f"{variant.label}, {example.label}") for example in of_other_shapes(variant)
            )
            self._family("shapes", some(more, 3))
        for example in shaped:
            if "another dimension in front" in example.label or "no dimensions" in example.label:
                for varied in with_other_options(self.subject, example, most=16):
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
        """Complex numbers, where the operator takes them and is meant for them."""
        if any(array.dtype.kind == "c" for array in self.base.arrays) or not self.wanted("complex numbers"):
            return
        examples = list(with_complex_numbers(self.base))
        try:
            for example in examples:
                if self._first(example):
                    results = self._plain(example, "complex numbers")
                    if results is not None and results.finite and results.outputs and example is examples[0]:
                        self._count("complex numbers", INVARIANTS["linear in the incoming gradient"], results)
                        self._count("complex numbers", INVARIANTS["layouts of arguments"], results)
        except Failure as failure:
            if self.subject.complex:
                raise
            self.report.notices.append(
                "it takes complex numbers, for which its gradients are wrong; nothing in it says that it is meant for "
                f"them. Refuse them, or check with kinds='fc' ({failure.reason.split(':')[0]})"
            )
