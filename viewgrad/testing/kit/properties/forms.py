"""Other forms of a call: the in-place form, and the reference."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from typing import Final

import numpy as np

from ....errors import DifferentiabilityError, FunctionError
from ..arguments import Example, Slot, outputs_of
from ..baseline import Baseline
from ..failure import Failure
from ..mixed_mode import ABSENT
from ..operator_under_test import OperatorUnderTest, Refused, quiet
from ..script import Script
from .weights import weights_like

TITLE: Final = "in-place form"
# The targets of in-place forms: {b} is the base, {v} the window written to, {o} another view of the base.
ITSELF: Final = "on a tensor of its own"
WINDOWS: Final[dict[str, str]] = {
    ITSELF: "{b} = {a}.clone(); {v} = {b}; {o} = {b}[...]",
    "through a transposed view": "{b} = vg.contiguous({a}.T).clone(); {v} = {b}.T; {o} = {b}[..., :1]",
    "through a reversed view": "{b} = {a}[::-1].clone(); {v} = {b}[::-1]; {o} = {b}[:1]",
    "through a row of a larger base": "{b} = vg.stack([{a}, {a}, {a}]); {v} = {b}[1, ...]; {o} = {b}[:2]",
    "through every other column": "{b} = vg.repeat({a}[..., None], 2, -1).reshape((*{a}.shape[:-1], -1)); "
    "{v} = {b}[..., ::2]; {o} = {b}[..., 1:]",
    "through a view in another shape": "{b} = {a}.clone().reshape(-1); {v} = {b}.view({a}.shape); {o} = {b}[:1]",
}


def inplace_form(baseline: Baseline, windows: Sequence[str] = tuple(WINDOWS)) -> int:
    """Compare the in-place form with the out-of-place form, on tensors and through views."""
    subject, example = baseline.subject, baseline.example
    name = "inplace" if subject.inplace is not None else "operator"
    if subject.inplace is None and not subject.written:
        return 0
    target = subject.written[0] if subject.written else _first_slot(example)
    if target is None:
        return 0
    array = example.arrays[target]
    value = baseline.values[0] if baseline.values else None
    if (
        value is None
        or len(baseline.values) != 1
        or value.shape != array.shape
        or not np.can_cast(value.dtype, array.dtype, "same_kind")
    ):
        return 0
    count = 0
    for where in windows:
        line = WINDOWS[where]
        if not array.ndim and where not in (ITSELF, "through a row of a larger base"):
            continue
        if not array.size and where != ITSELF:
            continue
        if "transposed" in where and array.ndim < 2:
            continue
        for wanted in (
            [example.wanted]
            if target not in example.wanted or len(example.wanted) == 1 or len(windows) == 1
            else [example.wanted, tuple(k for k in example.wanted if k != target), (target,)]
        ):
            with contextlib.suppress(*([Refused] if where != ITSELF else [])):
                count += _inplace(baseline, name, target, where, line, wanted)
        with contextlib.suppress(Refused):
            count += _inplace_tangents(baseline, name, target, where, line) if len(windows) > 1 else 0
    return count + (_inplace_on_itself(baseline, name, target) if len(windows) > 1 else 0)


def _inplace_on_itself(baseline: Baseline, name: str, target: int) -> int:
    """Check the in-place form with the same tensor as target and as another argument."""
    example, count = baseline.example, 0
    array = example.arrays[target]
    for other in example.wanted:
        if other == target or example.arrays[other].shape != array.shape or example.arrays[other].dtype != array.dtype:
            continue
        script = Script(baseline.subject, f"{TITLE} (the same tensor twice)", example, derived=True)
        script.leaves()

        def called(function: str, first: str, second: str, script: Script = script, other: int = other) -> str:
            text = re.sub(rf"\bz{target}\b", first, script.expression("z{}", function))
            return re.sub(r"\bz(\d+)\b", r"x\1", re.sub(rf"\bz{other}\b", second, text))

        with contextlib.suppress(Refused):
            script.do(f"b = x{target}.clone()", f"base = x{target}.clone()")
            script.call(f"r = {called('operator', 'b.clone()', 'b')}")
            if script["r"].shape != array.shape:
                continue
            script.call(f"out = {called(name, 'base', 'base')}")
            told = f"after the in-place form with one tensor as {example.named(target)} and {example.named(other)}, "
            _as_out_of_place(baseline, script, "base", "r", told + "its value")
            if script["r"].requires_grad and script["base"].requires_grad:
                for result, gradient in (("r", "e"), ("base", "g")):
                    script.do(f"{gradient} = grad({result}, [x{target}], vg.ones_like({result}), allow_unused=True)")
                _as_out_of_place(baseline, script, "g[0]", "e[0]", told + "the gradient")
            count += 1
    return count


def _inplace(baseline: Baseline, name: str, target: int, where: str, line: str, wanted: Sequence[int]) -> int:
    example = baseline.example
    script = Script(baseline.subject, f"{TITLE} ({where})", example, derived=where != ITSELF)
    script.leaves(tuple(wanted))
    a = f"x{target}"
    # The reference: out of place, then copied over the window.
    script.do(*line.format(a=a, b="b", v="v", o="o").split("; "))
    script.call(
        "r = " + script.expression("x{}").replace(a, "v.clone()")
        if name == "inplace"
        else "r = " + _renamed(script.expression("z{}"), target, "v.clone()")
    )
    if script["r"].shape != script["v"].shape:
        return 0
    script.do("v.copy_(r)")
    script.do(*line.format(a=a, b="base", v="window", o="other").split("; "))
    script.do("version = base._version")
    before = script["base"]._array.copy()
    script.call("out = " + _renamed(script.expression("z{}", name), target, "window"))
    out = script["out"]
    if (
        hasattr(out, "_array")
        and out is not script["window"]
        and not np.shares_memory(out._array, script["window"]._array)
        and out.size
    ):
        script.lines.append("assert out is window")
        script.fail("the in-place form returns a different tensor from the one it was given")
    for mine, reference, told in (
        ("base", "b", "the base"),
        ("window", "v", "the window written to"),
        ("other", "o", "another view of the base"),
    ):
        script.expect(
            mine,
            script[reference]._array.copy(),
            f"after the in-place form {where}, {told}",
            "the out-of-place form",
            by=f"{reference}.detach().numpy()",
            rtol=baseline.loose(1e-11),
            atol=baseline.loose(1e-12),
        )
    if not np.array_equal(before, script["base"]._array, equal_nan=before.dtype.kind in "fc"):
        script.require(
            "base._version > version",
            f"the in-place form {where} has not incremented the version of the tensor that it wrote to",
        )
    if not script["b"].requires_grad:
        if script["base"].requires_grad:
            script.lines.append("assert not base.requires_grad")
            script.fail(f"the base requires grad after the in-place form {where}, but not after the out-of-place form")
        return 1
    names = ", ".join(f"x{k}" for k in wanted)
    for mine, reference, told in (
        ("base", "b", "the base"),
        ("window", "v", "the window"),
        ("other", "o", "another view"),
    ):
        if not script[reference].size:
            continue
        if not script[mine].requires_grad:
            if script[reference].requires_grad:
                script.lines.append(f"assert {mine}.requires_grad")
                script.fail(f"after the in-place form {where}, {told} does not require grad")
            continue
        weights = np.cos(1.7 * np.arange(script[mine].size)).reshape(script[mine].shape) + 0.3
        script.let("w", weights.astype(script[mine].dtype))
        script.do(f"e = grad({reference}, [{names}], vg.Tensor(w), allow_unused=True, retain_graph=True)")
        script.do(f"g = grad({mine}, [{names}], vg.Tensor(w), allow_unused=True, retain_graph=True)")
        for i, k in enumerate(wanted):
            what = f"the gradient of {told} with respect to {example.named(k)} after the in-place form {where}"
            _as_out_of_place(baseline, script, f"g[{i}]", f"e[{i}]", what)
    return 1


def _inplace_tangents(baseline: Baseline, name: str, target: int, where: str, line: str) -> int:
    """Check that the in-place form sets the tangent of the base as the out-of-place form does."""
    example = baseline.example
    script = baseline.script(f"{TITLE} ({where})", called=False, derived=True)
    for k in example.wanted:
        script.let(f"t{k}", weights_like(example.arrays[k], 5 + k))
    lines = [
        f"d{k} = {f'forward_ad.make_dual(x{k}, vg.Tensor(t{k}))' if k in example.wanted else f'x{k}'}"
        for k in range(len(example.arrays))
    ]

    def called(function: str, operand: str) -> str:
        return re.sub(rf"\bd{target}\b", operand, script.expression("d{}", function))

    lines += line.format(a=f"d{target}", b="b", v="v", o="o").split("; ")
    lines.append(f"v.copy_({called('operator', 'v.clone()')})")
    lines += line.format(a=f"d{target}", b="base", v="window", o="other").split("; ")
    lines.append(called(name, "window"))
    lines.append("e, t = (forward_ad.unpack_dual(one).tangent for one in (b, base))")
    try:
        script.do("with forward_ad.dual_level():\n" + "\n".join(f"    {text}" for text in lines))
    except Failure as failure:
        if isinstance(failure.__cause__, (*ABSENT, DifferentiabilityError, FunctionError)):
            return 0
        raise
    except Refused:
        return 0
    _as_out_of_place(baseline, script, "t", "e", f"the tangent of the base after the in-place form {where}")
    return 1


def _as_out_of_place(baseline: Baseline, script: Script, found: str, expected: str, what: str) -> None:
    """Compare a variable of a script with the corresponding variable of the out-of-place form."""
    right = script[expected]
    size = 1.0 if right is None else max(1.0, float(np.abs(right._array).max(initial=0.0)))
    script.expect(
        found,
        None if right is None else right._array.copy(),
        what,
        "the out-of-place form",
        by="" if right is None else f"{expected}.detach().numpy()",
        rtol=baseline.loose(1e-9),
        atol=baseline.loose(1e-11) * size,
    )


def _renamed(text: str, target: int, name: str) -> str:
    text = re.sub(rf"\bz{target}\b(\.clone\(\))?", name, text)
    return re.sub(r"\bz(\d+)\b", r"x\1", text)


def _first_slot(example: Example) -> int | None:
    first = example.args[0] if example.args else next(iter(example.kwargs.values()), None)
    return first.number if isinstance(first, Slot) else None


# -- values ------------------------------------------------------------------------------------------------------------


def against_reference(subject: OperatorUnderTest, example: Example) -> int:
    """Check that the values are those of the reference.

    Raises:
        Refused: if the operator, or the reference, refuses the call.
    """
    if subject.reference is None:
        return 0
    asked_for = subject.contract.reference is not None and not example.label
    script = Script(subject, "values", example)
    script.leaves(())
    script.call(f"y = {script.expression()}")
    script.preamble = [f"reference_result = {script.expression('a{}.copy()', 'reference')}"]
    try:
        with quiet():
            expected = example.call(subject.reference, [array.copy() for array in example.arrays])
    except Exception as error:
        if asked_for:
            script.lines += script.preamble
            script.fail(f"reference=... raises {type(error).__name__}: {error}", error)
        raise Refused(f"the reference refuses: {error}") from error
    outputs = outputs_of(script["y"])
    arrays = [
        np.asarray(value._array if hasattr(value, "_array") else value)
        for value in (expected if isinstance(expected, tuple | list) and len(outputs) > 1 else [expected])
    ]
    if len(arrays) != len(outputs):
        if asked_for:
            script.lines += [*script.preamble, f"assert len(reference_result) == {len(outputs)}"]
            script.fail(f"reference=... returns {type(expected).__name__}, and the operator {len(outputs)} tensors")
        raise Refused("the reference returns a different number of results")
    for i, ((path, output), value) in enumerate(zip(outputs, arrays, strict=True)):
        single = output.dtype.itemsize <= (8 if output.dtype.kind == "c" else 4)
        size = float(np.abs(value[np.isfinite(value)]).max(initial=0.0)) if value.dtype.kind in "fc" else 1.0
        by = f"np.asarray(reference_result{f'[{i}]' if len(outputs) > 1 else ''})"
        script.expect(
            f"y{path}",
            value.astype(output.dtype) if output.dtype.kind in "fc" and value.dtype.kind in "fc" else value,
            "the value of the result" if len(outputs) == 1 else f"the value of result {i}",
            "the reference",
            by=by,
            rtol=1e-3 if single else 1e-8,
            atol=(1e-4 if single else 1e-11) * max(size, 1.0),
        )
    return 1
