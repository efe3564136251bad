"""Values and gradients of a plain call, with which all variations are compared."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from ...type_aliases import Array
from .arguments import Example, outputs_of
from .operator_under_test import OperatorUnderTest, Refused, quiet, refusals
from .properties.weights import weights_like
from .script import Script


@attrs.frozen(eq=False)
class Baseline:
    """Values and gradients of a single call.

    Arguments:
        subject: the operator.
        example: the call.
        paths: for each output, the expression that selects it from the result.
        values: the values of the outputs.
        outputs: the numbers of the differentiable outputs.
        starts: the incoming gradient of each of these.
        gradients: the gradient with respect to each wanted slot; zeros if there is none.
        single: whether something was computed in single precision although the arguments have double precision.
    """

    subject: OperatorUnderTest
    example: Example
    paths: list[str]
    values: list[Array]
    outputs: list[int]
    starts: dict[int, Array]
    gradients: list[Array]
    single: bool = attrs.field(init=False)

    @single.default
    def _has_digits_of_single_precision(self) -> bool:
        return any(of_single_precision(array) for array in [*self.values, *self.gradients])

    @property
    def size(self) -> int:
        """The number of elements in all results."""
        return sum(value.size for value in self.values)

    @property
    def finite(self) -> bool:
        """Return whether all values are finite."""
        arrays = [*self.values, *self.gradients]
        return all(np.isfinite(array).all() for array in arrays if array.dtype.kind in "fc")

    def loose(self, tolerance: float) -> float:
        """Return a tolerance that matches the precision of the computation."""
        return max(tolerance, 1e-5) if self.single else tolerance

    def script(
        self, title: str, wanted: tuple[int, ...] | None = None, *, called: bool = True, derived: bool = False
    ) -> Script:
        """Return the beginning of a program: leaves, supplied gradients, and the call.

        Arguments:
            title: the property.
            wanted: the slots that require grad; those of the example if omitted.
            called: whether to call the operator.
            derived: whether the call was derived from the user's.
        """
        script = Script(self.subject, title, self.example, derived)
        script.leaves(wanted)
        for i, start in self.starts.items():
            script.let(f"u{i}", start)
        if called:
            script.call(f"y = {script.expression()}")
        return script

    def gradient_line(
        self,
        name: str = "g",
        result: str = "y",
        *,
        starts: str = "vg.Tensor(u{})",
        outputs: list[int] | None = None,
        slots: tuple[int, ...] | None = None,
        leaf: str = "x{}",
        options: str = "retain_graph=True",
    ) -> str:
        """Return the line that computes gradients."""
        numbers = self.outputs if outputs is None else outputs
        wanted = self.example.wanted if slots is None else slots
        return (
            f"{name} = grad([{', '.join(f'{result}{self.paths[i]}' for i in numbers)}], "
            f"[{', '.join(leaf.format(k) for k in wanted)}], "
            f"[{', '.join(starts.format(i) for i in numbers)}], allow_unused=True{', ' if options else ''}{options})"
        )

    def plain_call(self, of_gradients: bool = False) -> list[str]:
        """Return the lines of the call alone, on tensors p0, p1, ..., with its gradients in `slopes` if requested."""
        wanted = self.example.wanted if of_gradients else ()
        lines = [
            f"p{k} = vg.Tensor(a{k}{', requires_grad=True' if k in wanted else ''})"
            for k in range(len(self.example.arrays))
        ]
        names = "p{}.clone()" if self.subject.written else "p{}"
        lines.append(f"plain = {Script(self.subject, '', self.example).expression(names)}")
        if of_gradients:
            lines.append(self.gradient_line("slopes", "plain", leaf="p{}", options=""))
        return lines

    def expect_values(self, script: Script, result: str = "y", oracle: str = "a plain call", **tolerance: Any) -> None:
        """Compare all outputs with those of a plain call."""
        tolerance = {"rtol": self.loose(1e-9), "atol": self.loose(1e-11)} | tolerance
        script.preamble = self.plain_call() if self.literal else []
        for i, (path, value) in enumerate(zip(self.paths, self.values, strict=True)):
            what = "the result" if len(self.paths) == 1 else f"result {i}"
            by = f"plain{path}.detach().numpy()" if self.literal else ""
            script.expect(f"{result}{path}", value, what, oracle, by=by, **tolerance)

    @property
    def literal(self) -> bool:
        """Return whether all options of the call can be written as literals."""
        script = Script(self.subject, "", self.example)
        script.expression()
        return not script.constants

    def expect_gradients(
        self,
        script: Script,
        name: str = "g",
        oracle: str = "a plain call",
        factor: float = 1.0,
        slots: tuple[int, ...] | None = None,
        what: str = "the gradient",
        **tolerance: Any,
    ) -> None:
        """Compare gradients with those of a plain call times a factor."""
        wanted = self.example.wanted if slots is None else slots
        given = max((float(np.abs(start).max(initial=0.0)) for start in self.starts.values()), default=0.0)
        script.preamble = self.plain_call(of_gradients=True) if self.literal else []
        for i, k in enumerate(wanted):
            number = self.example.wanted.index(k)
            expected = self.gradients[number] * factor
            size = float(np.abs(expected).max(initial=0.0))
            left = 1e-15 * abs(factor) * given  # the rounding residue of gradients that cancel
            atol = self.loose(1e-11) * (size + 1e-290 if factor != 1.0 else max(size, 1.0)) + left
            options = {"rtol": self.loose(1e-9), "atol": atol} | tolerance
            told = f"{what} with respect to {self.example.named(k)}"
            kind = self.gradients[number].dtype
            by = f"slopes[{number}].numpy()" if self.literal and size else ""
            by = f"({factor!r} * {by})" if by and factor != 1.0 else by
            script.expect(f"{name}[{i}]", expected.astype(kind), told, oracle, by=by, **options)

    def same_results(
        self, script: Script, one: str, other: str, told: str, oracle: str, *, rtol: float, atol: float
    ) -> None:
        """Compare the results named `one` in the program with those named `other`."""
        for i, path in enumerate(self.paths):
            expected = script[f"{other}{path}"]._array.copy()
            rough = {"rtol": self.loose(rtol), "atol": self.loose(atol)}
            by = f"{other}{path}.detach().numpy()"
            script.expect(f"{one}{path}", expected, f"result {i} {told}", oracle, by=by, **rough)

    def same_gradients(self, script: Script, one: str, other: str, what: str, oracle: str) -> None:
        """Compare the gradients named `one` in the program with those named `other`."""
        for i, k in enumerate(self.example.wanted):
            expected = script[f"{other}[{i}]"]
            expected = None if expected is None else expected._array.copy()
            size = 1.0 if expected is None else max(1.0, float(np.abs(expected).max(initial=0.0)))
            script.expect(
                f"{one}[{i}]",
                expected,
                f"the gradient with respect to {self.example.named(k)} of {what}",
                oracle,
                rtol=self.loose(1e-11),
                atol=self.loose(1e-12) * size,
                by="" if expected is None else f"{other}[{i}].numpy()",
            )


def baseline_results(subject: OperatorUnderTest, example: Example, title: str) -> Baseline:
    """Compute values and gradients on separate tensors.

    Raises:
        Refused: if the operator refuses the call.
        Failure: if it raises in the backward pass.
    """
    try:
        return _baseline_results(subject, example)
    except Refused:
        raise
    except Exception as error:
        if example.label:
            raise Refused(f"the backward pass refuses: {type(error).__name__}: {error}") from error
        script = Script(subject, title, example)
        script.leaves()
        script.call(f"y = {script.expression()}")
        outputs = [(path, output) for path, output in outputs_of(script["y"]) if output.requires_grad]
        for path, output in outputs:
            script.let("u", weights_like(output._array))
            script.do(
                f"g = grad(y{path}, [{', '.join(f'x{k}' for k in example.wanted)}], vg.Tensor(u), "
                "allow_unused=True, retain_graph=True)"
            )
        script.fail(f"a call or its backward pass raised {type(error).__name__} once, and not again: {error}", error)
        raise AssertionError from error


def _baseline_results(subject: OperatorUnderTest, example: Example) -> Baseline:
    recorded = subject.record(example)
    operands = [leaf.clone() if k in subject.written else leaf for k, leaf in enumerate(recorded.leaves)]
    with quiet(), refusals():
        paths = [path for path, _ in outputs_of(example.call(subject.function, operands))]
    values = [output.detach()._array.copy() for output in recorded.outputs]
    outputs = recorded.differentiable
    starts = {i: weights_like(values[i], i) for i in outputs}
    gradients = recorded.gradients(starts) if outputs else []
    if not outputs:
        gradients = [np.zeros_like(example.arrays[k]) for k in example.wanted]
    return Baseline(subject, example, paths, values, outputs, starts, [np.array(g) for g in gradients])


def of_single_precision(array: Array) -> bool:
    """Return whether all numbers are exactly representable in single precision, and some are not round numbers."""
    if array.dtype.kind not in "fc" or not array.size:
        return False
    if array.dtype.itemsize <= (8 if array.dtype.kind == "c" else 4):
        return True
    parts = np.ascontiguousarray(array).reshape(-1).view(float)
    with np.errstate(all="ignore"):
        return bool((parts.astype(np.float32) == parts).all() and (parts * 64 != np.round(parts * 64)).any())
