"""`check_operator`: every property of an operator, at the user's arguments and at others derived from them."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs
import numpy as np
from hypothesis import currently_in_test_context

from ...autograd.function import Function
from ...operators.language.declaration import Operator
from ...tensor.tensor import Tensor
from .arguments import Example, example_of, outputs_of
from .circumstances import CIRCUMSTANCES
from .drawn import calls_like, check_drawn, holds_strategies
from .failure import Failure
from .forms import against_reference, in_lower_precision, inplace_form
from .gradients import check_gradients
from .higher import Absent, forward_mode, second_order
from .plain import Plain, plain_results
from .report import Report
from .reproduction import HEADER, definition_of, source_of
from .script import Script
from .subject import Refused, Subject, patience, quiet, subject_of
from .variations import (
    at_special_points,
    in_double_precision,
    of_other_shapes,
    with_numbers_for_tensors,
    with_other_indices,
    with_other_options,
)

__all__ = ["PROPERTIES", "check_operator"]

Array = np.ndarray[Any, Any]

# Those without which the others cannot be trusted.
FIRST: Final = ("arguments are not modified", "state between calls", "a graph run twice")
# The names of the properties, in the order in which they are looked at.
PROPERTIES: Final[tuple[str, ...]] = (
    "something to check",
    *FIRST,
    "gradients",
    "values",
    *(name for name in CIRCUMSTANCES if name not in FIRST),
    "special points",
    "ties",
    "indices",
    "options",
    "shapes",
    "complex numbers",
    "dtypes",
    "in-place form",
    "forward mode",
    "second derivatives",
)


def check_operator(
    operator: Callable[..., Any],
    *positional: Any,
    arguments: Sequence[Any] | None = None,
    options: Mapping[str, Any] | None = None,
    inplace: Callable[..., Any] | None = None,
    reference: Callable[..., Any] | None = None,
    domain: tuple[float, float] | None = None,
    kinds: str | None = None,
    order: int = 2,
    only: str | Sequence[str] | None = None,
    switched_off: Mapping[str, str] | None = None,
    max_examples: int | None = None,
    progress: Callable[[str, int, int], None] | None = None,
    **keywords: Any,
) -> Report:
    """Check everything that an operator promises, at the arguments given and at others derived from them.

    Its gradients are held against finite differences (at special points, in other shapes, with other options, with
    complex numbers where it is meant for them), and must not depend on how tensors lie in memory, on what becomes of
    them afterwards, or on other calls. Forward mode, second derivatives and the in-place form are checked where there
    are any. `PROPERTIES` names all that is looked at. An operator may refuse a call by an error; it must not be wrong.

    Arguments:
        operator: an operator of `define_op`, a `Function` or its `apply`, an in-place form, or any function of tensors.
            Its result holds tensors, in tuples, lists and dicts if it likes.
        positional: its arguments. Tensors and arrays are found in lists, tuples and dicts as well; arrays become
            tensors. If a tensor that requires grad is among them, those that do are differentiated, else all of float
            or complex dtype. An argument may be a Hypothesis strategy.
        arguments: more positional arguments, as a sequence.
        options: keyword arguments of the operator. If they are given so, all other keywords are those of the check.
        inplace: its in-place form, which writes the result over the first argument; that of an operator of `define_op`
            is known.
        reference: what it computes, for arrays.
        domain: the interval in which it is to be checked.
        kinds: "fc" to insist on complex numbers, "f" to leave them out. Left out, they are insisted on where an
            argument is complex or the operator's source speaks of complex numbers; where it does not, and its gradients
            are wrong for them, the report says so.
        order: 1 to leave out second derivatives.
        only: the properties to look at; all where left out.
        switched_off: properties not to look at, each with the reason, which the report shows.
        max_examples: how many further circumstances Hypothesis draws.
        progress: is called with the name of each property, its number and the number of all.
        keywords: keyword arguments of the operator. Where it has an argument of the same name as one of the check
            (`order`, say), that is meant.

    Returns:
        The report, which can be printed.

    Raises:
        Failure: where a property does not hold: the message has both numbers, and a program that fails in the same way.

    Example:
        >>> import numpy as np, viewgrad as vg
        >>> from viewgrad.testing import check_operator
        >>> report = check_operator(lambda x, y: vg.exp(x) * y, np.array([[0.5, -1.0], [2.0, 0.3]]), np.array(1.5))
        >>> "special points" in report.examples
        True
    """
    own = set() if options is not None else _own_parameters(operator)
    chosen: dict[str, Any] = {
        "inplace": inplace, "reference": reference, "domain": domain, "kinds": kinds, "order": order, "only": only,
        "switched_off": switched_off, "max_examples": max_examples,
    }  # fmt: skip
    for name, default in DEFAULTS.items():
        if name in own:  # what the operator calls so itself
            if chosen[name] != default:
                keywords[name] = chosen[name]
            chosen[name] = default
    args = tuple(positional) + tuple(arguments or ())
    max_examples = chosen.pop("max_examples")

    def make(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Check:
        return Check.of(operator, args, kwargs, progress=progress, **chosen)

    kwargs = keywords | dict(options or {})
    if holds_strategies((args, kwargs)):
        return check_drawn(make, args, kwargs, max_examples, _name_of(operator))
    report = make(args, kwargs).run()
    if max_examples and not currently_in_test_context():
        further = check_drawn(make, *calls_like(args, kwargs), max_examples, _name_of(operator))
        report.add("drawn calls", sum(further.examples.values()))
    return report


# What is looked at in each of many calls.
SHORT: Final = (
    "gradients",
    "values",
    "arguments are not modified",
    "state between calls",
    "every subset of arguments that require grad",
    "overwritten afterwards",
    "layouts of arguments",
    "in-place form",
    "forward mode",
    "second derivatives",
)
PATIENCE: Final = 6.0  # seconds for a call that the user did not ask for, which may have sent a loop astray
DEFAULTS: Final = dict.fromkeys(("inplace", "reference", "domain", "kinds", "only", "switched_off", "max_examples")) | {
    "order": 2
}


def _name_of(operator: Any) -> str:
    owner = getattr(operator, "__self__", operator)
    return str(getattr(owner, "__name__", getattr(owner, "name", type(owner).__name__)))


def _own_parameters(operator: Any) -> set[str]:
    function = operator
    if isinstance(operator, Operator):
        return {argument.name for argument in operator.signature.arguments}
    owner = getattr(operator, "__self__", None)
    if isinstance(owner, type) and issubclass(owner, Function):
        function = owner.forward
    try:
        return set(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return set()


@attrs.define(eq=False)
class Check:
    """One check of an operator, under way."""

    subject: Subject
    base: Example
    given: Any
    order: int
    only: tuple[str, ...] | None
    switched_off: dict[str, str]
    progress: Callable[[str, int, int], None] | None
    report: Report
    definitions: list[str] = attrs.Factory(list)

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
        kinds: str | None,
        order: int,
        only: Any,
        switched_off: Mapping[str, str] | None,
        progress: Any,
    ) -> Check:
        """The check, after a look at what was given."""
        example, _ = example_of(args, kwargs)
        subject = subject_of(operator, inplace, reference, domain, None if kinds is None else "c" in kinds, example)
        switched_off = switched_off or {}
        unknown = [name for name in switched_off if name not in PROPERTIES]
        if unknown:
            raise ValueError(f"no property is called {unknown[0]!r}; there are {', '.join(PROPERTIES)}")
        names = (only,) if isinstance(only, str) else None if only is None else tuple(only)
        return cls(subject, example, operator, order, names, dict(switched_off), progress, Report(subject.name))

    def in_short(self) -> None:
        """Look only at what concerns this call itself."""
        self.only = SHORT

    # -- the run -------------------------------------------------------------------------------------------------------

    def run(self) -> Report:
        """Look at all properties in turn."""
        self.definitions = self._definitions()
        self.subject.source = self._source()
        self.report.switched_off = dict(self.switched_off)
        try:
            self._run()
        except Failure as failure:
            self._told(failure)
            raise
        return self.report

    def wanted(self, name: str) -> bool:
        """Whether a property is to be looked at."""
        if self.progress is not None:
            self.progress(name, PROPERTIES.index(name), len(PROPERTIES))
        return name not in self.switched_off and (self.only is None or name in self.only)

    def _run(self) -> None:
        self._begin()
        plain = self._plain(self.base, "gradients")
        assert plain is not None
        circumstances = [plain]
        for name in FIRST:
            if self.wanted(name):
                self._count(name, CIRCUMSTANCES[name], plain)
        if self.wanted("gradients"):
            self._first(self.base)
        if self.wanted("values"):
            self._values(self.base, "values")
        accepted = self._options(circumstances)
        for name, check in CIRCUMSTANCES.items():
            if self.wanted(name):
                for results in circumstances[name in FIRST :]:
                    self._count(name, check, results)
        for name, check in (
            ("in-place form", inplace_form),
            ("forward mode", forward_mode),
            ("second derivatives", second_order),
        ):
            if name == "second derivatives" and self.order < 2:
                self.report.switched_off.setdefault(name, "order=1")
                continue
            if self.wanted(name):
                for results in circumstances:
                    try:
                        self._count(name, check, results)
                    except Absent as absent:
                        self.report.absent[name] = str(absent)
                        break
        if self.wanted("dtypes"):
            for results in circumstances[:2]:
                for dtype in (np.float32, np.float16):
                    self._count("dtypes", lambda of, dtype=dtype: in_lower_precision(of, dtype), results)  # type: ignore[misc]
        self._family("special points", at_special_points(self.subject, self.base))
        for variant in accepted[:3]:
            self._family("special points", _some(at_special_points(self.subject, variant), 7))
        self._family("indices", with_other_indices(self.base))
        self._family("options", with_numbers_for_tensors(self.base))
        self._shapes(accepted)
        self._complex(plain)

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
        subject.written = self._written(example)
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
        self.report.add(title, 1)

    def _written(self, example: Example) -> tuple[int, ...]:
        """The slots that an in-place operator writes to."""
        subject = self.subject
        tensors = [Tensor(array) for array in example.arrays]
        with quiet(), contextlib.suppress(Exception):
            result = example.call(subject.function, tensors)
            changed = tuple(
                k
                for k, (tensor, array) in enumerate(zip(tensors, example.arrays, strict=True))
                if tensor._version or not _same_bytes(tensor._array, array)
            )
            results = [output for _, output in outputs_of(result)]
            if changed and all(any(tensors[k] is output for output in results) for k in changed):
                return changed
        return ()

    def _plain(self, example: Example, family: str) -> Plain | None:
        try:
            return plain_results(self.subject, example, family)
        except Refused:
            self.report.refuse(family)
            return None
        except Failure:
            if example.lenient:
                self.report.refuse(family)
                return None
            raise

    def _count(self, name: str, check: Callable[[Plain], int], plain: Plain) -> None:
        if (not plain.finite or not sum(value.size for value in plain.values)) and name not in (
            "arguments are not modified",
            "nothing is left of a call",
        ):
            return
        try:
            self.report.add(name, check(plain))
        except Refused:
            self.report.refuse(name)

    def _first(self, example: Example) -> bool:
        """The gradients of one call against differences; whether it was accepted."""
        try:
            with patience(PATIENCE if example.label else 0.0):
                counted = check_gradients(self.subject, example, example.family)
        except Refused:
            self.report.refuse(example.family)
            return False
        except Failure as failure:
            if example.lenient and failure.__cause__ is not None:  # an error, and no wrong number
                self.report.refuse(example.family)
                return False
            raise
        self.report.add(example.family, int(counted))
        return counted

    def _values(self, example: Example, family: str) -> None:
        try:
            self.report.add("values", against_reference(self.subject, example))
        except Refused:
            self.report.refuse("values")

    def _family(self, name: str, examples: Iterator[Example]) -> list[Example]:
        accepted = []
        for example in examples:
            if not self.wanted(example.family):
                continue
            if self._first(example):
                accepted.append(example)
            if self.subject.reference is not None and "values" not in self.switched_off:
                self._values(example, name)
        return accepted

    def _options(self, circumstances: list[Plain]) -> list[Example]:
        """Other options; those whose results differ most are looked at in all circumstances."""
        if not self.wanted("options"):
            return []
        accepted = self._family("options", with_other_options(self.subject, self.base))
        seen = {circumstances[0].values[0].shape}
        for example in accepted:
            if len(circumstances) >= 3:
                break
            plain = self._plain(example, "options")
            if plain is None or not plain.outputs or not plain.finite:
                continue
            if len(circumstances) == 1 or plain.values[0].shape not in seen:
                seen.add(plain.values[0].shape)
                circumstances.append(plain)
        return accepted

    def _shapes(self, accepted: list[Example]) -> None:
        if not self.wanted("shapes"):
            return
        shaped = self._family("shapes", of_other_shapes(self.base))
        for variant in accepted[:6]:
            more = (
                attrs.evolve(example, label=f"{variant.label}, {example.label}") for example in of_other_shapes(variant)
            )
            self._family("shapes", _some(more, 3))
        for example in shaped:
            if "another dimension in front" in example.label or "no dimensions" in example.label:
                for varied in with_other_options(self.subject, example, most=16):
                    self._family(
                        "shapes",
                        iter([attrs.evolve(varied, label=f"{example.label}, {varied.label}", family="shapes")]),
                    )
                plain = self._plain(example, "shapes")
                if plain is not None and plain.outputs:
                    for name in ("layouts of arguments", "layouts of incoming gradients", "arguments are not modified"):
                        if self.wanted(name):
                            self._count(name, CIRCUMSTANCES[name], plain)

    def _complex(self, plain: Plain) -> None:
        """Complex numbers, where the operator takes them and is meant for them."""
        if any(array.dtype.kind == "c" for array in self.base.arrays) or not self.wanted("complex numbers"):
            return
        examples = []
        for label, chosen in [
            ("complex arguments", self.base.wanted),
            *((f"{self.base.named(k)} complex", (k,)) for k in self.base.wanted),
        ]:
            arrays = list(self.base.arrays)
            for k in chosen:
                array = arrays[k]
                arrays[k] = array + 1j * (0.3 + 0.5 * np.roll(array.reshape(-1), 1).reshape(array.shape))
            examples.append(self.base.with_arrays(arrays, label=label, family="complex numbers"))
            if len(self.base.wanted) == 1:
                break
        try:
            for example in examples:
                if self._first(example):
                    results = self._plain(example, "complex numbers")
                    if results is not None and results.finite and results.outputs and example is examples[0]:
                        self._count("complex numbers", CIRCUMSTANCES["linear in the incoming gradient"], results)
                        self._count("complex numbers", CIRCUMSTANCES["layouts of arguments"], results)
        except Failure as failure:
            if self.subject.complex:
                raise
            self.report.notices.append(
                "it takes complex numbers, for which its gradients are wrong; nothing in it says that it is meant for "
                f"them. Refuse them, or check with kinds='fc' ({failure.reason.split(':')[0]})"
            )

    # -- what is told of a failure -------------------------------------------------------------------------------------

    def _definitions(self) -> list[str]:
        """The operator as Python, as it is before the check."""
        subject = self.subject
        if subject.custom is not None:
            lines = definition_of("operator", subject.custom, ".apply")
        elif subject.operator is not None:
            lines = definition_of("operator", subject.operator if subject.operator.user_defined else subject.function)
        else:
            lines = definition_of("operator", self.given)
        if subject.inplace is not None:
            if subject.operator is not None and subject.inplace == subject.operator.inplace:
                lines = [
                    *lines,
                    f"inplace = {'operator.inplace' if subject.operator.user_defined else _method(subject)}",
                ]
            else:
                lines = [*lines, *definition_of("inplace", subject.inplace)]
        return lines

    def _fails(self, program: str) -> bool:
        """Whether a program fails; taken for granted where it is not to be tried here."""
        if not self.subject.source or self.subject.operator is not None or "import sys; sys.path" in program:
            return True
        try:
            with quiet(), patience(PATIENCE):
                exec(compile(program, "<program of a failure>", "exec"), {"__name__": "failure"})
        except Exception:
            return True
        return False

    def _source(self) -> str:
        """Python that defines the operator anew; "" where it cannot be had."""
        if str(getattr(self.given, "__module__", "viewgrad")).split(".")[0] == "viewgrad":
            return ""
        try:
            custom = self.subject.custom
            lines = source_of("operator", self.given if custom is None else custom, "" if custom is None else ".apply")
        except Exception:
            return ""
        return "\n".join([*HEADER, *lines])

    def _told(self, failure: Failure) -> None:
        """Complete the message of a failure."""
        script = failure.script
        assert script is not None
        body = script.body()
        lines = [
            line
            for line in self.definitions
            if not line.startswith("inplace = ") or any("inplace(" in line for line in body)
        ]
        failure.program = "\n".join([*HEADER, "", *lines, "", *body]) + "\n"
        if not self._fails(failure.program):  # it depends on calls before
            first = next((number for number, line in enumerate(body) if "operator(" in line), len(body))
            before = f"for _ in range(100):\n    {script.expression()}"
            failure.program = "\n".join([*HEADER, "", *lines, "", *body[:first], before, *body[first:]]) + "\n"
        where = f", with {script.example.label}" if script.example.label else ""
        failure.args = (
            f"{self.subject.name}: {failure.reason}\n\n"
            f"Property: {failure.property}{where}\nCall: {self.subject.name}({script.example})\n"
            f"Derivative: {self.subject.place}\n\n"
            f"This program fails in the same way:\n\n{failure.program}",
        )


def _method(subject: Subject) -> str:
    assert subject.operator is not None
    return f"vg.Tensor.{subject.operator.name}_"


def _some(examples: Iterator[Example], step: int) -> Iterator[Example]:
    """Every few of them."""
    return (example for number, example in enumerate(examples) if number % step == 0)


def _same_bytes(one: Array, other: Array) -> bool:
    return one.shape == other.shape and one.tobytes() == other.tobytes()
