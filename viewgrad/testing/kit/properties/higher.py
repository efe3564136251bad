"""Second derivatives and forward mode of a call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs
import numpy as np

from ....errors import (
    AutogradError,
    DifferentiabilityError,
)
from ....type_aliases import Array
from ..baseline import Baseline
from ..literals import literal
from ..mixed_mode import is_absence, mixed_modes
from ..operator_under_test import OperatorUnderTest, Recorded, Refused, real_parts, refusals
from ..perturb import Moves
from ..script import Script
from .gradient_failure import along, difference_lines, short
from .gradients import MOST_COLUMNS
from .jacobian_columns import compare_columns, dense_directions, glance
from .weights import weights_like

# The part of a tangent that may remain due to rounding where reverse mode returns zero: in one formula, and in a
# composition at a derived call. Standardizing two numbers returns 1 and -1 for any two, so all digits cancel there.
CANCELLED: Final = 1e-13
CANCELLED_IN_PARTS: Final = 1e-9


class Absent(Exception):
    """Raised if the operator declares that it has no such derivative."""


def _needs_plain_arrays(error: BaseException) -> bool:
    """Return whether a backward was refused plain arrays, which would lose its second derivative."""
    return isinstance(error, AutogradError | TypeError) and "would lose" in str(error)


# -- second derivatives ------------------------------------------------------------------------------------------------


def second_order(baseline: Baseline) -> int:
    """Compare gradients of gradients, with respect to arguments and incoming gradient, with finite differences.

    Raises:
        Absent: if the operator refuses to be differentiated twice.
    """
    if not baseline.outputs or not baseline.finite:
        return 0
    example, subject = baseline.example, baseline.subject
    slots = example.wanted
    count = len(example.arrays)
    # A single call whose tensors are the arguments followed by the incoming gradients.
    starts = [baseline.starts[i] for i in baseline.outputs]
    arrays = (*example.arrays, *starts)
    moved = (*slots, *range(count, count + len(starts)))

    def first(given: Sequence[Array]) -> list[Array]:
        recorded = subject.record(example.with_arrays(given[:count]))
        if recorded.differentiable != baseline.outputs:
            raise Refused("other results")
        with refusals():  # the backward pass may reject a perturbed point
            return recorded.gradients(dict(zip(baseline.outputs, given[count:], strict=True)))

    weights = [weights_like(array, 3 + k) for k, array in enumerate(baseline.gradients)]
    rows = np.array([np.concatenate([real_parts(weight) for weight in weights])])
    moves = Moves(first, arrays, moved)
    script, second = _recorded_twice(baseline, weights)
    found = np.array([np.concatenate([real_parts(array) for array in second])])

    def again(x: Array) -> Array | None:
        given = moves.moved(x)
        elsewhere = attrs.evolve(
            baseline,
            example=example.with_arrays(given[:count]),
            starts=dict(zip(baseline.outputs, given[count:], strict=True)),
        )
        try:
            _, second = _recorded_twice(elsewhere, weights, checked=False)
        except (Refused, Absent, RuntimeError, AssertionError):
            return None
        return np.array([np.concatenate([real_parts(array) for array in second])])

    n = moves.start.size
    directions = np.eye(n)
    if n > MOST_COLUMNS:
        chosen = np.random.default_rng(n).permutation(n)[:MOST_COLUMNS]
        directions = np.array([*directions[:, chosen].T, *dense_directions(moves.start, range(n))]).T
    each = [dense_directions(moves.start, np.flatnonzero(part).tolist())[0] for part in moves.parts() if part.any()]
    together = np.array([*each, dense_directions(moves.start, range(n))[1]]).T
    if n > len(each) and glance(moves, together, rows, found) != "unclear":
        return 1
    wrong = compare_columns(moves, directions, rows, found, again, lenient=subject.composed)
    if wrong is not None:
        places = [int(place) for place in np.flatnonzero(wrong.direction)]
        terms_of = []
        for place in places:
            slot, flat, part = moves.element(place)
            index = [int(j) for j in np.unravel_index(flat, arrays[slot].shape)] if arrays[slot].shape else []
            number = moved.index(slot)
            part_of = (".imag" if part else ".real") if arrays[slot].dtype.kind == "c" else ""
            item = f"h[{number}].numpy()[{', '.join(map(str, index)) or '()'}]{part_of}"
            if script["h"][number] is None:
                terms_of.append(f"{literal(float(wrong.direction[place]))} * (0.0 if h[{number}] is None else {item})")
            else:
                terms_of.append(f"{literal(float(wrong.direction[place]))} * {item}" if len(places) > 1 else item)
        by = example.named(slot) if slot < count else "the incoming gradient"
        told = by + (f"[{', '.join(map(str, index))}]" if index else "")
        recorded = any(one is not None for one in script["h"])
        if len(places) > 1:
            told = f"{len(places)} elements that are perturbed together, the last of them {told}"
        script.lines.append(f"found = float({' + '.join(terms_of) or '0.0'})")
        lines = difference_lines(along(moves, wrong, rows[wrong.row]), wrong, "slope")
        if lines and baseline.literal:
            computed = [*script.lines, *_slope_function(baseline, script, moves, wrong.direction, count), *lines]
            script.computed = computed
        script.lines.append(f"expected = {literal(wrong.low)}  # by finite differences of the gradient")
        script.lines.append(f"assert abs(found - expected) <= {wrong.allowed:.3g}, (found, expected)")
        script.fail(
            f"the second derivative with respect to {told} is wrong: the recorded backward pass computes "
            f"{wrong.found!r}{'' if recorded else ' (nothing was recorded)'}, finite differences of "
            f"gradients {short(wrong.low)!r}",
            element=tuple(index),
            found=wrong.found,
            expected=wrong.low,
        )
    return 1


def _slope_function(baseline: Baseline, script: Script, moves: Moves, direction: Array, count: int) -> list[str]:
    """Return the lines of a function that computes the weighted gradients after a step."""
    example, steps, taken = baseline.example, {}, 0
    constants = []
    for k in moves.wanted:
        size = real_parts(moves.arrays[k]).size
        part = direction[taken : taken + size]
        taken += size
        if part.any():
            steps[k] = f"d{k}" if k < count else f"e{baseline.outputs[k - count]}"
            value = part.view(complex) if moves.arrays[k].dtype.kind == "c" else part
            script.constants[steps[k]] = np.array(value).reshape(moves.arrays[k].shape)
            constants.append(f"{steps[k]} = \0{steps[k]}\0")
    leaves = [
        f"    q{k} = vg.Tensor(a{k}{f' + step * {steps[k]}' if k in steps else ''}"
        f"{', requires_grad=True' if k in example.wanted else ''})"
        for k in range(count)
    ]
    names = "q{}.clone()" if baseline.subject.written else "q{}"
    outs = ", ".join(f"y{baseline.paths[i]}" for i in baseline.outputs)
    starts = ", ".join(
        f"vg.Tensor(u{i}{f' + step * e{i}' if count + n in steps else ''})" for n, i in enumerate(baseline.outputs)
    )
    wanted = ", ".join(f"q{k}" for k in example.wanted)
    weights = ", ".join(f"w{n}" for n in range(len(example.wanted)))
    return [
        *constants,
        "def slope(step):",
        *leaves,
        f"    y = {script.expression(names)}",
        f"    slopes = grad([{outs}], [{wanted}], [{starts}], allow_unused=True)",
        f"    pairs = [(one, w) for one, w in zip(slopes, [{weights}]) if one is not None]",
        "    return sum(float((one.numpy() * w).sum().real) for one, w in pairs)",
    ]


def _recorded_twice(baseline: Baseline, weights: Sequence[Array], checked: bool = True) -> tuple[Script, list[Array]]:
    """Return the program of a recorded backward pass, followed by the gradients of its weighted gradients.

    Raises:
        Absent: if the operator refuses to be differentiated twice.
    """
    slots = baseline.example.wanted
    script = baseline.script("second derivatives")
    script.do(*(f"s{i} = vg.Tensor(u{i}, requires_grad=True)" for i in baseline.outputs))
    _do_unless_absent(script, baseline.gradient_line("g", starts="s{}", options="create_graph=True"))
    if checked:
        baseline.expect_gradients(script, oracle="an unrecorded pass", what="in a recorded backward pass, the gradient")
    for n, weight in enumerate(weights):
        script.let(f"w{n}", np.conj(weight))
    terms = [n for n in range(len(slots)) if script[f"g[{n}]"] is not None and script[f"g[{n}]"].requires_grad]
    names = [*(f"x{k}" for k in slots), *(f"s{i}" for i in baseline.outputs)]
    leaves = [script[name] for name in names]
    summands = [
        f"(g[{n}] * w{n}).sum()" + (".real" if weights[n].dtype.kind == "c" else "")
        + ("" if n in terms else f" if g[{n}] is not None and g[{n}].requires_grad else 0.0")
        for n in range(len(slots))
    ]  # fmt: skip
    script.do(f"total = {' + '.join(one if n in terms else f'({one})' for n, one in enumerate(summands))}")
    line = f"h = grad(total, [{', '.join(names)}], allow_unused=True)"
    _do_unless_absent(script, line if terms else f"{line} if isinstance(total, vg.Tensor) else [None] * {len(names)}")
    return script, [
        np.zeros_like(leaf._array) if h is None else h._array for h, leaf in zip(script["h"], leaves, strict=True)
    ]


def _do_unless_absent(script: Script, line: str) -> None:
    try:
        script.do(line)
    except (AssertionError, Refused) as failure:
        cause, unasked = failure.__cause__, script.subject.composed or script.example.label
        if cause is not None and (is_absence(cause) or (unasked and isinstance(cause, DifferentiabilityError))):
            raise Absent("the operator declares that it has none") from failure
        if cause is not None and _needs_plain_arrays(cause):
            raise Absent("its backward requires plain arrays, but a recorded backward pass uses tensors") from failure
        raise


# -- forward mode ------------------------------------------------------------------------------------------------------


def forward_mode(baseline: Baseline) -> int:
    """Compare tangents with reverse mode: for all arguments at once, for each alone, and for tangents of any size.

    Raises:
        Absent: if the operator has no forward mode.
    """
    example = baseline.example
    if not baseline.outputs or not baseline.finite:
        return 0
    slots = example.wanted
    tangents = {k: weights_like(example.arrays[k], 5 + k) for k in slots}
    choices = [(slots, 1.0), *(((k,), 1.0) for k in slots), (slots, -1e3), (slots, 1e-8), (slots, 0.0)]
    jacobian = _rows_of(baseline.subject, baseline)
    left = CANCELLED_IN_PARTS if baseline.subject.composed and example.label else CANCELLED
    count = 0
    for number, (chosen, factor) in enumerate(choices if len(slots) > 1 else [choices[0], *choices[2:]]):
        script = baseline.script("forward mode", called=False)
        for k in chosen:
            script.let(f"t{k}", (factor * tangents[k]).astype(tangents[k].dtype))
        script.do(*(f"d{k} = vg.Tensor(t{k})" for k in chosen))
        lines = [f"    v{k} = forward_ad.make_dual(x{k}, d{k})" for k in chosen]
        lines += [f"    v{k} = x{k}" for k in range(len(example.arrays)) if k not in chosen]
        if baseline.subject.written:
            lines += [f"    v{k} = v{k}.clone()" for k in baseline.subject.written]
        lines.append(f"    y = {script.expression('v{}')}")
        outs = ", ".join(f"y{path}" for path in baseline.paths)
        lines.append(f"    tangents = [forward_ad.unpack_dual(out).tangent for out in [{outs}]]")
        try:
            script.do("with forward_ad.dual_level():\n" + "\n".join(lines))
        except (AssertionError, Refused) as failure:
            cause = failure.__cause__
            if number == 0 and cause is not None and (is_absence(cause) or isinstance(cause, DifferentiabilityError)):
                raise Absent("it has no forward mode") from failure
            raise
        told = " and ".join(example.named(k) for k in chosen) + (f", times {factor:g}" if factor != 1 else "")
        for k in chosen:
            if k not in baseline.subject.written:
                script.expect(f"d{k}", script[f"t{k}"], "after the call, a tangent", "its value before", 0.0, 0.0)
        count += 1
        if jacobian is None:
            _expect_inner_product(baseline, script, chosen, told, left)
            continue
        moved = np.concatenate(
            [real_parts(factor * tangents[k]) if k in chosen else 0 * real_parts(tangents[k]) for k in slots]
        )
        expected = jacobian @ moved
        spread = np.abs(jacobian) @ np.abs(moved)
        taken = 0
        for i in baseline.outputs:
            value = baseline.values[i]
            parts = 2 if value.dtype.kind == "c" else 1
            part, size = (array[taken : taken + value.size * parts] for array in (expected, spread))
            taken += value.size * parts
            wanted = (part.copy().view(complex) if parts == 2 else part).reshape(value.shape).astype(value.dtype)
            largest = (size.reshape(-1, parts).sum(axis=1) if parts == 2 else size).reshape(value.shape)
            if baseline.literal:
                script.preamble = _rows_by_reverse_mode(baseline, i, chosen)
            script.expect(
                f"tangents[{i}]",
                wanted,
                f"the tangent of result {i} for tangents of {told}",
                "reverse mode",
                rtol=baseline.loose(1e-9),
                atol=baseline.loose(1e-10) * largest + left * np.abs(moved).max(initial=0.0) + 1e-290,
                by="expected_tangent()" if baseline.literal and parts == 1 else "",
            )
    return count + mixed_modes(baseline, tangents)


def _rows_by_reverse_mode(baseline: Baseline, i: int, chosen: Sequence[int]) -> list[str]:
    """Return the lines of a function that computes a result's tangent by one backward pass per element."""
    names = ", ".join(f"p{k}" for k in chosen)
    return [
        *baseline.plain_call(of_gradients=True)[:-1],
        "def expected_tangent():",
        f"    out = plain{baseline.paths[i]}",
        "    tangent = np.zeros(out.shape)",
        "    for place in np.ndindex(out.shape):",
        "        start = np.zeros(out.shape)",
        "        start[place] = 1.0",
        f"        row = grad(out, [{names}], vg.Tensor(start), allow_unused=True, retain_graph=True)",
        f"        pairs = zip(row, [{', '.join(f't{k}' for k in chosen)}])",
        "        tangent[place] = sum(np.vdot(one.numpy(), t).real for one, t in pairs if one is not None)",
        "    return tangent",
    ]


def _expect_inner_product(baseline: Baseline, script: Script, chosen: Sequence[int], told: str, left: float) -> None:
    """Compare tangents with gradients by the inner product of tangents and incoming gradients."""
    products = [f"np.vdot(u{i}, tangents[{i}].detach().numpy()).real" for i in baseline.outputs if _has(script, i)]
    script.do(f"product = np.float64({' + '.join(products) or '0.0'})")
    gradients = {k: baseline.gradients[baseline.example.wanted.index(k)] for k in chosen}
    expected = sum(float(np.vdot(gradients[k], script[f"t{k}"]).real) for k in chosen)
    size = sum(float(np.abs(gradients[k]).ravel() @ np.abs(script[f"t{k}"]).ravel()) for k in chosen)
    script.expect(
        "product",
        np.asarray(expected),
        f"the inner product of tangents and incoming gradients, for tangents of {told}",
        "reverse mode",
        rtol=baseline.loose(1e-9),
        atol=baseline.loose(1e-10) * size + left * sum(float(np.abs(script[f"t{k}"]).sum()) for k in chosen) + 1e-290,
    )


def _has(script: Script, i: int) -> bool:
    return script[f"tangents[{i}]"] is not None


def _rows_of(subject: OperatorUnderTest, baseline: Baseline) -> Array | None:
    """Return the Jacobian computed in reverse mode, with a row for each real component of the outputs."""
    recorded: Recorded = subject.record(baseline.example)
    rows = []
    for i in baseline.outputs:
        value = baseline.values[i]
        turns = (1.0, 1j) if value.dtype.kind == "c" else (1.0,)
        if value.size > 64:
            return None
        for flat in range(value.size):
            for turn in turns:
                start = np.zeros_like(value)
                start.flat[flat] = turn
                rows.append(np.concatenate([real_parts(g) for g in recorded.gradients({i: start})]))
    return np.array(rows) if rows else None
