"""Digits lost by an operator, detected by running its own code with sixty digits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from ....type_aliases import Array
from ..arguments import Example, outputs_of
from ..high_precision import Unavailable, as_numbers, is_available, precise_values, with_many_digits
from ..literals import literal
from ..operator_under_test import OperatorUnderTest, Refused
from ..script import Script
from .weights import weights_like

TITLE: Final = "values"
SLOPES: Final = "digits of gradients"
EPS: Final = float(np.finfo(float).eps)
LOST: Final = 1e-9  # the relative error of a value that has lost half of its digits
FELT: Final = 1e3  # rounding errors of ordinary values; smaller losses are only noted
TIMES: Final = 1e6  # multiples of the change caused by rounding the arguments
SMALL: Final = (1e-5, -1e-5, 1e-8, -1e-8, 1e-12, -1e-12)
LARGE: Final = (20.0, -20.0, 40.0, -40.0, 1e6, 1e12)
LARGEST: Final = 64  # elements
COARSE: Final = 1e-9  # a step that iterations with a fixed number of steps can resolve, relative to ordinary numbers


def where_digits_may_be_lost(subject: OperatorUnderTest, example: Example) -> Iterator[Example]:
    """Yield the call at values where terms may cancel: tiny, large and shifted elements."""
    if sum(array.size for array in example.arrays) > LARGEST or not is_available():
        return
    yield example
    for slot in example.wanted:
        array, (low, high) = example.arrays[slot], subject.domains.get(slot, (-np.inf, np.inf))
        if array.dtype != np.float64 or not array.size:
            continue
        variants: list[tuple[str, Array]] = [("all elements + 1e8", array + 1e8)] if array.size > 1 else []
        for point in (*LARGE, *SMALL):
            changed = array.copy()
            changed.flat[0] = point
            variants.append((f"{point:g} in the first element", changed))
        variants += [("all elements times 1e-8", array * 1e-8)]
        for told, changed in variants:
            if ((changed >= low) & (changed <= high)).all():
                arrays = list(example.arrays)
                arrays[slot] = changed
                label = f"{told} of {example.named(slot)}"
                own = ((slot, 0),) if "first" in told else ()
                yield example.with_arrays(arrays, label=label, family=TITLE, changed=own)


def digits_lost(subject: OperatorUnderTest, example: Example) -> int:
    """Check that the values are as accurate as the conditioning of the problem permits.

    A loss of digits is distinguished from ill-conditioning by the change of the exact value when the arguments are
    rounded. For compositions of operators, a loss is only reported; other operators must be more accurate than a
    formula with cancellation.

    Raises:
        Refused: if the operator refuses the call, or its code does not run with many digits.
    """
    found = subject.values(example)
    code = _code_of(subject)
    try:
        with with_many_digits():
            exact = precise_values(code, example, example.arrays)
            if [value.shape for value in found] != [value.shape for value in exact]:
                raise Refused("other results with many digits")
            changes = _changes(code, example, exact)
            worst = max(
                (_worst(i, *three) for i, three in enumerate(zip(found, exact, changes, strict=True))),
                key=lambda one: one[0],
                default=(0.0, 0, 0, 0.0, 0.0),
            )
    except Unavailable as unavailable:
        raise Refused(str(unavailable)) from unavailable
    loss, i, place, mine, right = worst
    if loss <= TIMES or not abs(mine - right) > LOST * abs(right):
        return 1
    told = (
        f"digits are lost: the value of {_named(found, i, place)} is {mine!r}, and {right!r} when its own code is run "
        "with 60 digits"
    )
    if subject.composed or not abs(mine - right) > FELT * EPS * subject.scale:
        subject.note(f"{told} ({example.label or 'in the call given'})")
        return 1
    script = Script(subject, TITLE, example)
    script.leaves(())
    script.do(f"y = {script.expression()}")
    path = [path for path, _ in outputs_of(script["y"])][i]
    shape = found[i].shape
    index = ", ".join(str(int(j)) for j in np.unravel_index(place, shape)) if shape else "()"
    script.lines.append(f"found, expected = y{path}.numpy()[{index}].item(), {literal(right)}  # with 60 digits")
    script.lines.append(f"assert abs(found - expected) <= {max(1e-9 * abs(right), 1e-300):.2g}, (found, expected)")
    script.fail(told, found=mine, expected=right)
    raise AssertionError


def slope_digits_lost(subject: OperatorUnderTest, example: Example) -> int:
    """Check that the gradient of the element of interest is as accurate as its argument determines it.

    Raises:
        Refused: if the operator refuses the call, or its code does not run with many digits.
    """
    code = _code_of(subject)
    try:
        with with_many_digits():
            slope = _precise_slope(code, example)
    except Unavailable as unavailable:
        raise Refused(str(unavailable)) from unavailable
    (slot, flat), *_ = example.changed
    found = _gradients_nearby(subject, example, slot, flat) if np.isfinite(slope) else []
    largest = max(float(np.abs(array).max(initial=0.0)) for array in example.arrays if array.dtype.kind == "f")
    rough = max(1e-4, 8 * EPS * largest)  # large terms of sums leave fewer digits for the others
    if not found or not min(abs(one - slope) for one in found) > max(rough * abs(slope), FELT * EPS * subject.scale):
        return 1
    told = (
        f"digits of the gradient are lost: with respect to {example.named(slot)} it is {found[0]!r}, and {slope!r} by "
        "differences of its own code with 60 digits"
    )
    if subject.composed:
        subject.note(f"{told} ({example.label})")
        return 1
    script = Script(subject, SLOPES, example)
    script.leaves()
    script.do(f"y = {script.expression()}")
    paths = [path for path, _ in outputs_of(script["y"])]
    for i, path in enumerate(paths):
        script.let(f"u{i}", weights_like(script[f"y{path}"]._array, i))
    outs = ", ".join(f"y{path}" for path in paths)
    starts = ", ".join(f"vg.Tensor(u{i})" for i in range(len(paths)))
    script.do(f"g = grad([{outs}], [x{slot}], [{starts}], allow_unused=True)")
    script.lines.append(f"found = g[0].numpy().reshape(-1)[{flat}].item()")
    script.lines.append(f"expected = {literal(slope)}  # by differences with 60 digits")
    script.lines.append(f"assert abs(found - expected) <= {max(rough * abs(slope), 1e-12):.2g}, (found, expected)")
    script.fail(told, found=found[0], expected=slope)
    raise AssertionError


def _precise_slope(code: Any, example: Example) -> float:
    """Return the derivative with respect to the element of interest, by a difference with 60 digits."""
    (slot, flat), *_ = example.changed
    slopes, size = [], float(np.abs(example.arrays[slot].flat[flat]))
    for step in (COARSE * max(size, 1e-3), as_numbers(size) * 1e-18, as_numbers(size) * 1e-21):
        sums: list[Any] = []
        for sign in (1, -1):
            arrays = list(example.arrays)
            arrays[slot] = as_numbers(example.arrays[slot])
            arrays[slot].flat[flat] += sign * step
            total: Any = 0
            for i, value in enumerate(precise_values(code, example, arrays)):
                weights = as_numbers(weights_like(np.zeros(value.shape), i))
                total = total + np.sum(np.asarray(value * weights, object))
            sums.append(total)
        try:
            slopes.append(float((sums[0] - sums[1]) / (2 * step)))
        except (TypeError, ZeroDivisionError) as error:
            raise Unavailable(str(error)) from error
    if not max(abs(slope - slopes[1]) for slope in slopes) <= 1e-6 * abs(slopes[1]):
        raise Unavailable("it jumps, has a kink, or iterates to a limit")
    return slopes[1]


def _gradients_nearby(subject: OperatorUnderTest, example: Example, slot: int, flat: int) -> list[float]:
    """Return the gradient, and the gradients with the element of interest rounded up and down."""
    found = []
    for factor in (1.0, 1 + 4 * EPS, 1 - 4 * EPS):
        arrays = [array.copy() for array in example.arrays]
        arrays[slot].flat[flat] *= factor
        recorded = subject.record(example.with_arrays(arrays))
        if recorded.differentiable != list(range(len(recorded.outputs))):
            return []
        starts = {i: weights_like(output._array, i) for i, output in enumerate(recorded.outputs)}
        try:
            gradients = recorded.gradients(starts)
        except Exception as error:
            raise Refused(f"the backward pass refuses: {type(error).__name__}: {error}") from error
        found.append(float(gradients[example.wanted.index(slot)].flat[flat]))
    return found


def _changes(code: Any, example: Example, exact: Sequence[Array]) -> list[Array]:
    """Return the change of exact values if each argument is rounded up or down."""
    largest = [np.zeros(value.shape, object) for value in exact]
    generator = np.random.default_rng(5)
    for regular in (True, False):  # alternating signs would shift the columns of an array with rows of even length
        arrays = []
        for array in example.arrays:
            drawn = generator.uniform(-1.0, 1.0, array.size)
            turns = np.where(np.arange(array.size) % 2, -1.0, 1.0) if regular else drawn
            turns = turns.reshape(array.shape)
            arrays.append(array * (1 + 2 * EPS * turns) if array.dtype.kind == "f" else array)
        for k, moved in enumerate(precise_values(code, example, arrays)):
            if moved.shape != exact[k].shape:
                raise Unavailable("other results nearby")
            largest[k] = np.asarray(np.maximum(largest[k], abs(moved - exact[k])), object)
    return largest


def _code_of(subject: OperatorUnderTest) -> Any:
    """Return a copy of the operator, so that its state is not corrupted by such numbers.

    Raises:
        Refused: if no copy can be made, or if the operator is meant for single precision.
    """
    if subject.single:
        raise Refused("it computes in single precision")
    if subject.operator is not None:
        return subject.operator
    copy = subject.fresh()
    if copy is None:
        raise Refused("it has no source")
    return copy if subject.custom is None else getattr(copy, "__self__", copy)


def _worst(i: int, found: Array, exact: Array, change: Array) -> tuple[float, int, int, float, float]:
    """Return the element that lost the most digits: how many, where, and the computed and correct values."""
    best = (0.0, i, 0, 0.0, 0.0)
    if found.dtype != np.float64:
        return best
    largest = max((abs(float(right)) for right in exact.reshape(-1)), default=0.0)
    for place, (mine, right, moved) in enumerate(
        zip(found.reshape(-1), exact.reshape(-1), change.reshape(-1), strict=True)
    ):
        number = float(right)
        if not np.isfinite(number) or (number and abs(number) < 1e-290):
            continue
        error = abs(float(mine) - number) if np.isfinite(mine) else np.inf
        size = abs(number) or largest  # a difference that vanishes has as many digits as its terms
        loss = error / (float(moved) + EPS * size + 1e-290)
        if loss > best[0]:
            best = (float(loss), i, place, float(mine), number)
    return best


def _named(found: Sequence[Array], i: int, place: int) -> str:
    shape = found[i].shape
    index = f"[{', '.join(str(int(j)) for j in np.unravel_index(place, shape))}]" if shape else ""
    return f"result{'' if len(found) == 1 else f' {i}'}{index}"
