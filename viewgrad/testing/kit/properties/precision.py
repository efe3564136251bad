"""Loss of accuracy by overflow of intermediate values and by cancellation near 0."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from ....type_aliases import Array
from ..arguments import Example, outputs_of
from ..literals import literal
from ..operator_under_test import OperatorUnderTest, Refused, quiet, refusals
from ..script import Script

TITLE: Final = "values"
FAR: Final = 800.0  # the exponential overflows beyond this
TINY: Final = 1e-17  # rounded away when added to 1
MODERATE: Final = 1e30  # no value that overflows by itself
BISECTIONS: Final = 45
LARGEST: Final = 400  # elements
DIGITS: Final = 1e-6  # the relative error of values that a reference may have
STEPS: Final = (1e-3, 1e-4, 1e-5, TINY)


def where_digits_get_lost(subject: OperatorUnderTest, example: Example) -> Iterator[tuple[Callable[..., int], Example]]:
    """Yield calls in which digits may be lost, each with its check.

    Compositions of operators may be naive but correct, as may functions without an alternative formula.
    """
    for slot in example.wanted:
        array, allowed = example.arrays[slot], subject.domains.get(slot, (-np.inf, np.inf))
        if array.dtype != np.float64 or not 0 < array.size <= LARGEST:
            continue
        for point in () if subject.composed else (FAR, -FAR, TINY, -TINY):
            if allowed[0] <= point <= allowed[1]:
                changed = array.copy()
                changed.flat[0] = point
                yield overflow_in_between, _with(example, slot, changed, f"{point:g} in")
        if subject.reference is not None and allowed[0] <= 0.0 < allowed[1]:
            yield digits_cancelled, _with(example, slot, np.full_like(array, TINY), f"{TINY:g} everywhere in")


REFERRED: Final = (1e200, -1e200, 1e-200, *(sign * size for size in (1e-5, 1e-8, 1e-12) for sign in (1.0, -1.0)))


def where_reference_decides(subject: OperatorUnderTest, example: Example) -> Iterator[Example]:
    """Yield the call with elements of extreme sizes, and shifted, for comparison with a reference."""
    for slot in example.wanted if subject.reference is not None else ():
        array, (low, high) = example.arrays[slot], subject.domains.get(slot, (-np.inf, np.inf))
        if array.dtype != np.float64 or not 0 < array.size <= LARGEST:
            continue
        if array.size > 1 and (array + 1e8 <= high).all():
            yield _with(example, slot, array + 1e8, "1e8 more in all elements of")
        for point in REFERRED:
            if low <= point <= high:
                changed = array.copy()
                changed.flat[0] = point
                yield _with(example, slot, changed, f"{point:g} in")
        for point in (1e200, 1e-200):
            if low <= point <= high:
                yield _with(example, slot, np.sign(array) * point, f"elements of size {point:g} in")


def digits_by_reference(subject: OperatorUnderTest, example: Example) -> int:
    """Check that the values are as accurate as the reference, as far as the arguments determine them."""
    found, expected = _values(subject, example, example.arrays), _referred(subject, example)
    if found.shape != expected.shape or expected.dtype.kind != "f":
        return 0
    change = np.zeros(expected.shape)
    for sign in (1.0, -1.0):
        turns = [np.where(np.arange(array.size) % 2, -sign, sign).reshape(array.shape) for array in example.arrays]
        moved = [
            array * (1 + 4e-16 * turn) if array.dtype == np.float64 else array
            for array, turn in zip(example.arrays, turns, strict=True)
        ]
        with np.errstate(all="ignore"):
            beside = _referred(subject, example.with_arrays(moved))
            if beside.shape != expected.shape:
                return 0  # the last digits decide the number of values, as for np.unique
            change = np.fmax(change, np.abs(beside - expected))
    with np.errstate(all="ignore"):
        away, allowed = np.abs(found - expected), DIGITS * np.abs(expected) + 1e6 * change
        wrong = np.isfinite(expected) & (expected != 0) & ~(away <= allowed)
        if wrong.any():
            wrong &= ~(away <= allowed + 10 * _noise(subject, example))
    if not wrong.any():
        return 1
    place = int(np.argmax(wrong))
    script = _called(subject, example)
    script.preamble = [f"referred = np.asarray({script.expression('a{}', 'reference')}).reshape(-1)"]
    script.lines.append(f"found = float({_element(script, place)})")
    last = f"assert abs(found - expected) <= {DIGITS} * abs(expected), (found, expected)"
    script.computed = [*script.lines, f"expected = float(referred[{place}])", last]
    script.lines += [f"expected = {literal(float(expected[place]))}  # by the reference", last]
    script.fail(
        f"digits are lost: the value is {float(found[place])!r}, but the reference returns {float(expected[place])!r}",
        found=float(found[place]),
        expected=float(expected[place]),
    )
    raise AssertionError


def _with(example: Example, slot: int, array: Array, told: str) -> Example:
    arrays = list(example.arrays)
    arrays[slot] = array
    return example.with_arrays(arrays, label=f"{told} {example.named(slot)}", family=TITLE)


def overflow_in_between(subject: OperatorUnderTest, example: Example) -> int:
    """Check for a finite result whose intermediate values overflow or underflow, as in log(1 + exp(x)).

    A premature overflow differs from a genuine one in the values before it, and from the edge of a domain in the
    intermediate values that overflow there, or in its position in single precision.
    """
    if np.isfinite(_values(subject, example, example.arrays)).all():
        return 1
    edge = _edge(subject, example)
    if edge is None:
        return 1
    low, high, before, lost = edge
    largest = float(np.abs(before[lost]).max())
    vanishes = _raises(subject, example, high, "divide") and _is_smooth_before(subject, example, low, lost)
    if largest > MODERATE or not (
        vanishes or _raises(subject, example, high, "over") or _elsewhere_in_single(subject, example, low)
    ):
        return 1
    script = _called(subject, example)
    path = next(path for path, output in outputs_of(script["y"]) if not np.isfinite(output._array).all())
    script.lines.append(f"assert np.isfinite(y{path}.numpy()).all(), y{path}")
    last = next(
        float(moved[mask][0])
        for moved, *masks in zip(_on_the_way(example, low), *_extremes(example), strict=True)
        for mask in masks
        if mask.any()
    )
    script.fail(
        f"the result is not finite, though it is {largest:.3g} just before, at {last:.6g}: an intermediate "
        "value overflows or underflows",
        found=np.nan,
        expected=largest,
    )
    raise AssertionError


def _called(subject: OperatorUnderTest, example: Example) -> Script:
    script = Script(subject, TITLE, example)
    script.leaves(())
    script.do(f"y = {script.expression()}")
    return script


def _values(subject: OperatorUnderTest, example: Example, arrays: Sequence[Array]) -> Array:
    outputs = subject.values(example, arrays)
    return np.concatenate([output.reshape(-1) for output in outputs if output.dtype.kind in "fc"] or [np.empty(0)])


def _extremes(example: Example) -> tuple[list[Array], list[Array]]:
    """Return masks of the large and the tiny numbers of each array."""
    sizes = [np.abs(array) if array.dtype == np.float64 else np.ones(array.shape) for array in example.arrays]
    return [size >= FAR / 2 for size in sizes], [(size > 0) & (size <= 2 * TINY) for size in sizes]


def _on_the_way(example: Example, part: float) -> list[Array]:
    """Return arrays whose large numbers are scaled down towards 1, and tiny ones up towards 1e-3."""
    moved = []
    for array, large, tiny in zip(example.arrays, *_extremes(example), strict=True):
        new = array.copy()
        if array.dtype != np.float64:
            moved.append(new)
            continue
        new[large] = np.sign(array[large]) * np.abs(array[large]) ** part
        new[tiny] = np.sign(array[tiny]) * 1e-3 * (np.abs(array[tiny]) / 1e-3) ** part
        moved.append(new)
    return moved


def _edge(subject: OperatorUnderTest, example: Example) -> tuple[float, float, Array, Array] | None:
    """Return the points before and after results stop being finite, the values before, and the mask of lost values."""
    low, high = 0.0, 1.0
    before, after = (_values(subject, example, _on_the_way(example, part)) for part in (low, high))
    if not np.isfinite(before).all() or before.shape != after.shape:
        return None
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        values = _values(subject, example, _on_the_way(example, middle))
        if values.shape != before.shape:
            return None
        if np.isfinite(values).all():
            low, before = middle, values
        else:
            high, after = middle, values
    return low, high, before, ~np.isfinite(after)


def _is_smooth_before(subject: OperatorUnderTest, example: Example, part: float, lost: Array) -> bool:
    """Return whether values change steadily towards the point where they are lost, unlike towards a pole."""
    near, beside, beyond = (
        _values(subject, example, _on_the_way(example, part * factor)) for factor in (1.0, 1 - 1e-4, 1 - 2e-4)
    )
    if not near.shape == beside.shape == beyond.shape:
        return False
    return bool((np.abs(near - beside) <= 2 * np.abs(beside - beyond))[lost].all())


def _raises(subject: OperatorUnderTest, example: Example, part: float, kind: str) -> bool:
    """Return whether numbers overflow ("over"), or a zero is divided by ("divide"), as NumPy calls these errors."""
    with quiet(), np.errstate(over="raise") if kind == "over" else np.errstate(divide="raise"):
        try:
            subject.values(example, _on_the_way(example, part))
        except Refused as refused:
            return isinstance(refused.__cause__, FloatingPointError)
    return False


def _elsewhere_in_single(subject: OperatorUnderTest, example: Example, edge: float) -> bool:
    """Return whether single precision loses its values well before double precision does."""
    arrays = _on_the_way(example, 0.8 * edge)
    single = [array.astype(np.float32) if array.dtype == np.float64 else array for array in arrays]
    try:
        there, baseline = _values(subject, example, single), _values(subject, example, arrays)
    except Refused:
        return False
    lost = ~np.isfinite(there)
    return there.shape == baseline.shape and bool(lost.any() and (np.abs(baseline[lost]) < MODERATE).all())


def digits_cancelled(subject: OperatorUnderTest, example: Example) -> int:
    """Check that values near a simple zero at 0 are proportional to the argument, if those of the reference are.

    Smoothness is determined at larger steps. Functions that are linear at small arguments, such as interpolation or
    wrapped angles, may lose all digits there.
    """
    _, tiny = _extremes(example)

    def at(step: float) -> Array:
        arrays = [
            np.where(small, array / TINY * step, array) if small.any() else array
            for array, small in zip(example.arrays, tiny, strict=True)
        ]
        return _values(subject, example, arrays)

    start, *values = [at(step) for step in (0.0, *STEPS)]
    if any(value.shape != start.shape for value in values) or start.dtype.kind != "f":
        return 1
    with np.errstate(all="ignore"):
        long, middle, short, here = [value / step for value, step in zip(values, STEPS, strict=True)]
        size = np.abs(short)
        bend, rest = np.abs(long - middle), np.abs(middle - short)
        smooth = (start == 0) & (size > 1e-3) & (bend <= 0.05 * size) & (bend >= 1e-8 * size) & (rest <= 0.2 * bend)
        lost = smooth & ~(np.abs(here - short) <= 0.5 * size)
    if not lost.any():
        return 1
    place = int(np.argmax(lost))
    found, expected = float(values[-1][place]), float(short[place]) * TINY
    there = _referred(subject, example)
    if there.shape != start.shape or not abs(there[place] - expected) <= 0.5 * abs(expected):
        return 1
    script = _called(subject, example)
    script.lines.append(f"found = float({_element(script, place)})")
    script.lines.append(f"expected = {literal(expected)}  # by the slope at 0, and by the reference")
    script.lines.append("assert abs(found - expected) <= 0.5 * abs(expected), (found, expected)")
    script.fail(
        f"digits cancel near 0: the value there is {found!r}, but by the slope and the reference it is {expected!r}",
        found=found,
        expected=expected,
    )
    raise AssertionError


def _referred(subject: OperatorUnderTest, example: Example) -> Array:
    """Return the values of the reference."""
    assert subject.reference is not None
    with quiet(), refusals():
        result = example.call(subject.reference, [array.copy() for array in example.arrays])
    results = result if isinstance(result, tuple | list) else [result]
    return np.concatenate([np.asarray(one).reshape(-1) for one in results])


def _noise(subject: OperatorUnderTest, example: Example) -> Any:
    """Return the error of the reference's values; its slopes for a short and a long step agree if it is smooth.

    exp(x) - 1 is a staircase near 0, and flat on each step.
    """

    def at(step: float) -> Array:
        arrays = [a * (1 + step) if a.dtype == np.float64 else a for a in example.arrays]
        return _referred(subject, example.with_arrays(arrays))

    short, long = 1e-6, 1e-3
    try:
        below, before, after, above = (at(step) for step in (-long, -short, short, long))
    except Refused:
        return 0.0
    if not below.shape == before.shape == after.shape == above.shape:
        return 0.0
    apart = np.abs((above - below) - (after - before) * (long / short)) / 2
    return np.where(np.isfinite(apart), apart, 0.0)


def _element(script: Script, place: int) -> str:
    """Return the expression for one element of all results, concatenated."""
    for path, output in outputs_of(script["y"]):
        if output.dtype.kind in "fc":
            if place < output.size:
                index = ", ".join(str(int(i)) for i in np.unravel_index(place, output.shape)) if output.ndim else "()"
                return f"y{path}.numpy()[{index}]"
            place -= output.size
    raise IndexError(place)
