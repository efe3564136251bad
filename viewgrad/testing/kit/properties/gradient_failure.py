"""The failure of a gradient that differs from finite differences: its message and a program that computes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from ....type_aliases import Array
from ..arguments import Example, outputs_of
from ..literals import literal
from ..operator_under_test import Recorded, quiet, real_parts
from ..perturb import Moves
from ..script import Script
from .jacobian_columns import Disagreement
from .weights import as_starts

MOST_NAMED: Final = 8  # the number of elements named in a message


def fail_by_differences(
    script: Script,
    moves: Moves,
    wrong: Disagreement,
    recorded: Recorded,
    outputs: list[int],
    row: Array,
    tangent: Array | None,
) -> None:
    example = script.example
    direction = wrong.direction if tangent is None else tangent @ wrong.direction
    places = np.flatnonzero(direction)
    terms = []
    for place in places:
        slot, flat, part = moves.element(int(place))
        i = example.wanted.index(slot)
        gradient = f"g[{i}].numpy()[{_index_text(flat, moves.arrays[slot].shape)}]"
        if moves.arrays[slot].dtype.kind == "c":
            gradient += ".imag" if part else ".real"
        if script["g"][i] is None:
            gradient = f"(0.0 if g[{i}] is None else {gradient})"
        factor = float(direction[place])
        terms.append(gradient if factor == 1.0 else f"{literal(factor)} * {gradient}")
    slot, flat, part = moves.element(int(np.flatnonzero(wrong.direction)[0]))
    shape = moves.arrays[slot].shape
    element = tuple(int(j) for j in np.unravel_index(flat, shape)) if shape else ()
    none = script["g"][example.wanted.index(slot)] is None
    missing = " (no gradient)" if none else ""
    script.lines.append(f"found = float({' + '.join(terms) or '0.0'})")
    written_out = list(script.lines)
    if wrong.low == wrong.high:
        script.lines.append(f"expected = {literal(wrong.low)}  # by finite differences")
        script.lines.append(f"assert abs(found - expected) <= {wrong.allowed:.3g}, (found, expected)")
        numerical = f"{short(wrong.low)!r}"
    else:
        script.lines.append(f"# the slopes on the two sides are {wrong.low!r} and {wrong.high!r}")
        script.lines.append(f"assert {wrong.low - wrong.allowed!r} <= found <= {wrong.high + wrong.allowed!r}, found")
        numerical = f"between {short(wrong.low)!r} and {short(wrong.high)!r}, the slopes on the two sides"
    values = along(moves, wrong, row)
    lines = difference_lines(values, wrong)
    if lines:
        taken = 0
        for k in example.wanted:
            size = real_parts(moves.arrays[k]).size
            part_of = np.array(direction[taken : taken + size])
            taken += size
            if part_of.any():
                step = part_of.view(complex) if moves.arrays[k].dtype.kind == "c" else part_of
                script.let(f"d{k}", step.reshape(moves.arrays[k].shape))
        constants = [line for line in script.lines if "\0d" in line]
        script.computed = [*constants, *written_out, *_value_function(script, recorded, outputs, row), *lines]
    script.fail(
        f"the derivative of {_output_named(recorded, outputs, row)} with respect to {_moved(moves, wrong, example)} is "
        f"wrong: the backward pass computes {wrong.found!r}{missing}, finite differences {numerical}",
        element=element,
        found=wrong.found,
        expected=wrong.low,
        without_gradient=example.named(slot) if none else "",
    )


def short(number: float) -> float:
    """Format a number for messages, with as many digits as differences are accurate to."""
    return float(f"{number:.9g}")


def _index_text(flat: int, shape: tuple[int, ...]) -> str:
    return ", ".join(str(int(j)) for j in np.unravel_index(flat, shape)) if shape else "()"


def _moved(moves: Moves, wrong: Disagreement, example: Example) -> str:
    """Return the names of the perturbed elements, and why they are perturbed together."""
    places = np.flatnonzero(wrong.direction)
    names = []
    for place in places[:MOST_NAMED]:
        slot, flat, part = moves.element(int(place))
        shape = moves.arrays[slot].shape
        name = f"{example.named(slot)}{f'[{_index_text(flat, shape)}]' if shape else ''}"
        if moves.arrays[slot].dtype.kind == "c":
            name = f"the {'imaginary' if part else 'real'} part of {name}"
        names.append(name)
    structures = [moves.structures[k].name for k in {moves.element(int(p))[0] for p in places} if k in moves.structures]
    within = f" (perturbed within the {structures[0]} matrices)" if structures else ""
    if len(places) == 1:
        return names[0] + within
    told = ", ".join(names) + (f" and {len(places) - len(names)} more" if len(places) > len(names) else "")
    equal = len(np.unique(wrong.direction[places])) == 1
    why = "which are equal and perturbed together" if equal else "perturbed together by different amounts"
    return f"{told}, {why}{within},"


def along(moves: Moves, wrong: Disagreement, row: Array) -> Callable[[float], float]:
    """Return the weighted result as a function of a step along the direction; NaN if it has no value."""
    start = moves.at(moves.start)

    def value(step: float) -> float:
        with quiet():
            found = None if start is None else moves.beside(moves.start + step * wrong.direction, start)
        return np.nan if found is None else float(row @ found)

    return value


def difference_lines(values: Callable[[float], float], wrong: Disagreement, name: str = "value") -> list[str]:
    """Return lines that compute the expected value by simple differences, or none if these do not suffice.

    Arguments:
        values: the function of a step.
        wrong: the computed and the expected value.
        name: the name of the function in the program.
    """
    found = wrong.found
    away = max(wrong.low - found, found - wrong.high) if np.isfinite(found) else np.inf
    size = max(abs(wrong.low), abs(wrong.high), 1e-300)
    best: tuple[float, float, float] = (np.inf, 0.0, 0.0)
    smooth = wrong.low == wrong.high
    for power in range(4, 40, 2):
        h = 2.0**-power
        with np.errstate(all="ignore"):
            if smooth:
                inner, outer = values(h) - values(-h), values(2 * h) - values(-2 * h)
                off = abs((8 * inner - outer) / (12 * h) - wrong.low)
            else:
                slopes = sorted([(values(h) - values(0.0)) / h, (values(0.0) - values(-h)) / h])
                off = max(abs(slopes[0] - wrong.low), abs(slopes[1] - wrong.high))
        if off < best[0]:
            best = off, h, size
    off, h, _ = best
    slack = min(0.3 * away, 1e-3 * size + 1e-6) if np.isfinite(away) else 1e-3 * size + 1e-6
    if not off <= 0.3 * slack:
        return []
    allowed = f"{max(slack, min(wrong.allowed, 0.5 * away)):.2g}"
    if smooth:
        return [
            f"h = {h!r}",
            f"expected = (8 * ({name}(h) - {name}(-h)) - ({name}(2 * h) - {name}(-2 * h))) / (12 * h)"
            "  # by finite differences",
            f"assert abs(found - expected) <= {allowed}, (found, expected)",
        ]
    return [
        f"h = {h!r}",
        f"low, high = sorted([({name}(h) - {name}(0.0)) / h, ({name}(0.0) - {name}(-h)) / h])",
        f"assert low - {allowed} <= found <= high + {allowed}, (low, found, high)",
    ]


def _value_function(script: Script, recorded: Recorded, outputs: list[int], row: Array) -> list[str]:
    """Return the lines of a function that computes the weighted results after a step."""
    starts = as_starts(row, recorded, outputs)
    paths = [path for path, _ in outputs_of(script["y"])]
    operands = [
        f"    q{k} = vg.Tensor(a{k}{f' + step * d{k}' if f'd{k}' in script.constants else ''})"
        for k in range(len(script.example.arrays))
    ]
    total = " + ".join(f"np.vdot(u{i}, y{paths[i]}.numpy()).real" for i in starts)
    return [
        "def value(step):",
        *operands,
        "    with vg.no_grad():",
        f"        y = {script.expression('q{}')}",
        f"    return float({total})",
    ]


def _output_named(recorded: Recorded, outputs: list[int], row: Array) -> str:
    if np.count_nonzero(row) != 1:
        return "a weighted sum of the results"
    place = int(np.argmax(row))
    for i in outputs:
        array = recorded.outputs[i]._array
        parts = 2 if array.dtype.kind == "c" else 1
        if place < array.size * parts:
            index = [int(j) for j in np.unravel_index(place // parts, array.shape)] if array.shape else ""
            name = f"result{'' if len(recorded.outputs) == 1 else f' {i}'}{index}"
            return f"the {'imaginary' if place % parts else 'real'} part of {name}" if parts == 2 else name
        place -= array.size * parts
    return "the result"
