"""The gradients of a call, held against finite differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import attrs
import numpy as np

from .arguments import Example, outputs_of
from .differences import DOUBLE, Estimate, noise_of, quick_estimate, thorough_estimate
from .literals import literal
from .script import Script
from .subject import Recorded, Refused, Subject, quiet, real_parts

__all__ = ["Moves", "check_gradients", "compare_columns", "weights_like"]

Array = np.ndarray[Any, Any]

MOST_ROWS: Final = 12  # outputs that are differentiated one by one
MOST_COLUMNS: Final = 16  # inputs that are moved one by one
RTOL: Final = 3e-7
RTOL_SINGLE: Final = 2e-3


@attrs.frozen(eq=False)
class Moves:
    """The values of a function of several arrays as one vector, after moves of these.

    Arguments:
        values: gives the outputs for other arrays, or raises `Refused`.
        arrays: where it starts.
        wanted: which of the arrays are moved.
    """

    values: Callable[[Sequence[Array]], Sequence[Array]]
    arrays: tuple[Array, ...]
    wanted: tuple[int, ...]

    @property
    def start(self) -> Array:
        """The wanted arrays as one vector of real numbers."""
        return np.concatenate([real_parts(self.arrays[k]) for k in self.wanted] or [np.empty(0)])

    def moved(self, vector: Array) -> list[Array]:
        """The arrays after the wanted ones were set to `vector`."""
        arrays = list(self.arrays)
        taken = 0
        for k in self.wanted:
            array = arrays[k]
            size = array.size * (2 if array.dtype.kind == "c" else 1)
            part = vector[taken : taken + size]
            taken += size
            arrays[k] = (
                (part.view(complex) if array.dtype.kind == "c" else part).reshape(array.shape).astype(array.dtype)
            )
        return arrays

    def at(self, vector: Array) -> Array | None:
        """The outputs there as one vector; None where there are none."""
        try:
            outputs = self.values(self.moved(vector))
        except (Refused, RuntimeError):
            return None
        return np.concatenate([real_parts(output) for output in outputs] or [np.empty(0)])

    def element(self, column: int) -> tuple[int, int, int]:
        """The array, the flat index in it and the part (0: real, 1: imaginary) that a place in the vector is."""
        for k in self.wanted:
            array = self.arrays[k]
            parts = 2 if array.dtype.kind == "c" else 1
            if column < array.size * parts:
                return k, column // parts, column % parts
            column -= array.size * parts
        raise IndexError(column)

    def column(self, slot: int, flat: int) -> int:
        """The place in the vector of (the real part of) an element."""
        place = 0
        for k in self.wanted:
            parts = 2 if self.arrays[k].dtype.kind == "c" else 1
            if k == slot:
                return place + flat * parts
            place += self.arrays[k].size * parts
        raise IndexError(slot)


@attrs.frozen(eq=False)
class Disagreement:
    """An entry of a Jacobian that two ways of finding it don't agree on."""

    row: int
    column: int
    found: float
    low: float
    high: float
    allowed: float


def compare_columns(
    moves: Moves,
    directions: Array,
    rows: Array,
    found: Array,
    again: Callable[[Array], Array | None] | None = None,
    lenient: bool = False,
) -> Disagreement | None:
    """Compare derivatives with finite differences; the entry that is most off, or None.

    Arguments:
        moves: the function.
        directions: the directions to move in, as columns.
        rows: weights of its outputs, as rows.
        found: for each row and each direction, the derivative found otherwise.
        again: finds the derivatives at another point, by which it is seen how sensitive they are.
        lenient: whether to pass over derivatives that are not finite.
    """
    x = moves.start
    start = moves.at(x)
    if start is None or not np.isfinite(start).all() or not directions.size:
        return None
    scales = np.maximum(np.abs(x), 1.0)
    noise = noise_of(moves.at, x, scales)
    if noise is None:
        return None
    weights = np.abs(rows)
    rtol = np.where(weights @ (noise > DOUBLE) > 0, RTOL_SINGLE, RTOL)
    worst: Disagreement | None = None
    nudge: Array | None = None
    last = 1.0  # the size of steps that served the column before
    for column in range(directions.shape[1]):
        direction = directions[:, column]
        scale = float(scales[direction != 0].max(initial=1.0))

        def along(step: float, direction: Array = direction) -> Array | None:
            values = moves.at(x + step * direction)
            return values if values is not None and values.shape == start.shape else None

        mine = found[:, column]
        with quiet():
            floor = 1e-10 * (weights @ np.abs(start)) / scale + 1e-13
            coarse = weights @ (noise > DOUBLE) > 0
            settled = False
            for zoom in dict.fromkeys([last, 1.0, 1e-2, 1e-4, 1e-6]):
                quick = quick_estimate(along, scale * zoom, noise)
                if quick is None:
                    continue
                estimate = _weighted(quick, rows)
                fine = estimate.trusted(1e-6) | coarse
                if (estimate.agrees(mine, RTOL, floor) & fine & np.isfinite(mine)).all():
                    last, settled = zoom, True
                    break
                if fine.all():
                    break  # it is known, and something else was found
            if settled:
                continue
            for size in (1.0, 0.37, 2.3e-2):
                estimate = _weighted(thorough_estimate(along, start, scale * size, noise), rows)
                wrong = ~estimate.agrees(mine, rtol, floor)
                if not wrong.any():
                    break
            if not wrong.any():
                continue
            if again is not None and nudge is None:
                nudge = _sensitivity(again, x, found, lenient)
            slack = 0.0 if nudge is None else nudge @ np.abs(direction)
            wrong &= ~estimate.agrees(mine, rtol, floor + 20 * slack)
            wrong &= ~_by_complex_step(moves, x, direction, rows, mine)
            if estimate.kink.any() and np.count_nonzero(x == x[np.argmax(direction)]) > np.count_nonzero(direction):
                wrong &= False  # a tie, at which it may be right to choose one of them
            if lenient or not np.isfinite(estimate.error).all():  # zero times the infinite derivative of another output
                wrong &= np.isfinite(mine)
        if not wrong.any():
            continue
        away = np.maximum(estimate.low - mine, mine - estimate.high)
        size_of = np.maximum(np.maximum(np.abs(estimate.low), np.abs(estimate.high)), 1e-300)
        excess = np.where(wrong, np.nan_to_num(away / size_of, nan=np.inf), -1.0)
        row = int(np.argmax(excess))
        allowed = float((rtol * size_of + np.broadcast_to(floor, size_of.shape) + 8 * estimate.error)[row])
        if worst is None:
            worst = Disagreement(
                row, column, float(mine[row]), float(estimate.low[row]), float(estimate.high[row]), allowed
            )
    return worst


def _weighted(estimate: Estimate, rows: Array) -> Estimate:
    """The estimate of weighted sums of outputs."""
    up, down = np.maximum(rows, 0.0), np.minimum(rows, 0.0)
    unknown = ~(np.isfinite(estimate.low) & np.isfinite(estimate.high) & np.isfinite(estimate.error))
    low, high = np.where(unknown, 0.0, estimate.low), np.where(unknown, 0.0, estimate.high)
    error = np.abs(rows) @ np.where(unknown, 0.0, estimate.error)
    error = np.where((np.abs(rows) @ unknown) > 0, np.inf, error)
    return Estimate(up @ low + down @ high, up @ high + down @ low, error, np.abs(rows) @ estimate.kink > 0)


def _sensitivity(again: Callable[[Array], Array | None], x: Array, found: Array, lenient: bool) -> Array | None:
    """By how much the derivatives change where the arguments change by a rounding error.

    With `lenient` also how rough they are over a wider range, which shows digits that were cancelled.
    """
    if found.shape[1] != x.size:
        return None
    change = np.zeros(found.shape)
    turns = np.where(np.arange(x.size) % 2, -0.7, 1.0)
    for size in (8 * DOUBLE, 3e-3, 1e-2) if lenient else (8 * DOUBLE,):
        above, below = again(x * (1 + size * turns)), again(x * (1 - size * turns))
        if above is None or below is None or not above.shape == below.shape == found.shape:
            continue
        rough = np.abs(above + below - 2 * found)
        if size == 8 * DOUBLE:
            rough = np.maximum(np.abs(above - found), np.abs(below - found))
        change = np.maximum(change, np.nan_to_num(rough, nan=0.0))
    return change


def _by_complex_step(moves: Moves, x: Array, direction: Array, rows: Array, found: Array) -> Array:
    """For each row, whether the complex step gives what was found, where that is far from a pole or a steep place."""
    nothing = np.zeros(found.shape, bool)
    if any(moves.arrays[k].dtype.kind == "c" for k in moves.wanted):
        return nothing
    results = []
    for step in (1e-9, 1e-12):  # relative to the arguments' own size: real parts stay what they are
        arrays = moves.moved(x)
        taken = 0
        for k in moves.wanted:
            size = arrays[k].size
            arrays[k] = arrays[k] + 1j * step * direction[taken : taken + size].reshape(arrays[k].shape)
            taken += size
        try:
            outputs = moves.values(arrays)
        except Exception:
            return nothing
        if any(output.dtype.kind != "c" for output in outputs):
            return nothing
        results.append(rows @ np.concatenate([output.reshape(-1).imag for output in outputs]) / step)
    plain = moves.at(x * (1 + 1e-9))
    start = moves.at(x)
    if plain is None or start is None:
        return nothing
    # Only where plain differences are hopeless: a relative change of a billionth changes the values by a thousandth.
    steep = np.abs(rows) @ np.abs(plain - start) > 1e-3 * (np.abs(rows) @ np.abs(start))
    agrees: Array = np.abs(results[1] - found) <= 1e-5 * np.abs(found) + 1e-9
    good: Array = agrees & steep & (np.abs(results[0] - results[1]) <= 1e-5 * np.abs(results[1]) + 1e-9)
    return good


# -- first derivatives -------------------------------------------------------------------------------------------------


def check_gradients(subject: Subject, example: Example, title: str) -> bool:
    """Compare the gradients of one call with finite differences; whether there was anything to compare.

    Raises:
        Failure: where they differ.
        Refused: where the operator refuses the call.
    """
    values = subject.values(example)
    if sum(value.size for value in values) == 0 or not example.wanted:
        _just_run(subject, example, title)
        return True
    recorded = _recorded(subject, example, title)
    outputs = recorded.differentiable
    if not outputs:
        return False
    if not all(np.isfinite(recorded.outputs[i]._array).all() for i in outputs):
        return False
    moves = Moves(lambda arrays: _picked(subject.values(example, arrays), outputs), example.arrays, example.wanted)
    n = moves.start.size
    sizes = [real_parts(recorded.outputs[i]._array).size for i in outputs]
    m = sum(sizes)
    if not m or not n:
        _just_run(subject, example, title)
        return True
    rows = np.eye(m) if m <= MOST_ROWS else _weights(m)
    starts = [_as_starts(row, recorded, outputs) for row in rows]

    def derivatives(of: Recorded) -> Array:
        return np.array([np.concatenate([real_parts(g) for g in of.gradients(start)]) for start in starts])

    try:
        with quiet():
            found = derivatives(recorded)
    except Exception as error:
        if example.lenient:
            raise Refused(f"the backward pass refuses: {error}") from error
        _replay(subject, example, title, starts[0]).fail(
            f"the backward pass raises {type(error).__name__}: {error}", error
        )
    directions = _directions(moves, example, n)

    def again(x: Array) -> Array | None:
        try:
            return derivatives(subject.record(example.with_arrays(moves.moved(x))))
        except (Refused, RuntimeError):
            return None

    along = np.array([found[:, direction != 0].sum(axis=1) for direction in directions.T]).T
    wrong = compare_columns(moves, directions, rows, along, again, lenient=bool(example.label) and subject.composed)
    if wrong is not None:
        script = _replay(subject, example, title, starts[wrong.row])
        _fail(script, moves, directions[:, wrong.column], wrong, recorded, outputs, rows[wrong.row])
    return True


def _recorded(subject: Subject, example: Example, title: str) -> Recorded:
    try:
        return subject.record(example)
    except RuntimeError as error:
        script = Script(subject, title, example)
        script.leaves()
        script.do(f"y = {script.expression()}")
        raise AssertionError(f"the call raised at first: {error}") from error


def _just_run(subject: Subject, example: Example, title: str) -> None:
    """Check shapes and dtypes of gradients where there is no number to compare."""
    script = Script(subject, title, example)
    script.leaves()
    script.call(f"y = {script.expression()}")
    paths = [path for path, output in outputs_of(script["y"]) if output.requires_grad]
    if not paths or not example.wanted:
        return
    for path in paths:
        script.do(
            f"g = grad(y{path}, [{_names(example)}], vg.ones(y{path}.shape, dtype=y{path}.dtype), "
            "retain_graph=True, allow_unused=True)"
        )
        for i, k in enumerate(example.wanted):
            if script[f"g[{i}]"] is not None:
                script.expect(
                    f"g[{i}]",
                    script[f"g[{i}]"]._array if script[f"g[{i}]"].size else np.zeros_like(example.arrays[k]),
                    _of(example, k),
                    "the argument",
                )


def _names(example: Example) -> str:
    return ", ".join(f"x{k}" for k in example.wanted)


def _of(example: Example, slot: int) -> str:
    return f"the gradient with respect to {example.named(slot)}"


def _replay(subject: Subject, example: Example, title: str, starts: dict[int, Array]) -> Script:
    """The program of one backward pass."""
    script = Script(subject, title, example)
    script.leaves()
    script.do(f"y = {script.expression()}")
    paths = [path for path, _ in outputs_of(script["y"])]
    for i, start in starts.items():
        script.let(f"u{i}", start)
    outputs = ", ".join(f"y{paths[i]}" for i in starts)
    given = ", ".join(f"vg.Tensor(u{i})" for i in starts)
    script.do(f"g = grad([{outputs}], [{_names(example)}], [{given}], allow_unused=True)")
    return script


def _fail(
    script: Script,
    moves: Moves,
    direction: Array,
    wrong: Disagreement,
    recorded: Recorded,
    outputs: list[int],
    row: Array,
) -> None:
    example = script.example
    places = np.flatnonzero(direction)
    terms = []
    for place in places:
        slot, flat, part = moves.element(int(place))
        index = np.unravel_index(flat, moves.arrays[slot].shape) if moves.arrays[slot].shape else ()
        i = example.wanted.index(slot)
        gradient = (
            f"g[{i}].numpy()[{', '.join(str(int(j)) for j in index) or '()'}]" if script["g"][i] is not None else "0.0"
        )
        if moves.arrays[slot].dtype.kind == "c":
            gradient += ".imag" if part else ".real"
        terms.append(gradient)
    where = " + ".join(terms)
    script.lines.append(f"found = float({where})")
    of = _output_named(recorded, outputs, row)
    slot, flat, part = moves.element(int(places[0]))
    shape = moves.arrays[slot].shape
    element = tuple(int(j) for j in np.unravel_index(flat, shape)) if shape else ()
    by = f"{example.named(slot)}{list(element) if element else ''}"
    if moves.arrays[slot].dtype.kind == "c":
        by = f"the {'imaginary' if part else 'real'} part of {by}"
    if len(places) > 1:
        by = f"{len(places)} equal elements that move together, {by} among them"
    missing = " (no gradient came)" if script["g"][example.wanted.index(slot)] is None else ""
    if wrong.low == wrong.high:
        script.lines.append(f"expected = {literal(wrong.low)}  # by finite differences")
        script.lines.append(f"assert abs(found - expected) <= {wrong.allowed:.3g}, (found, expected)")
        says = f"{wrong.low!r}"
    else:
        script.lines.append(f"# the slopes on the two sides are {wrong.low!r} and {wrong.high!r}")
        script.lines.append(f"assert {wrong.low - wrong.allowed!r} <= found <= {wrong.high + wrong.allowed!r}, found")
        says = f"between {wrong.low!r} and {wrong.high!r}, the slopes on the two sides,"
    script.fail(
        f"the derivative of {of} with respect to {by} is wrong: the backward pass says {wrong.found!r}{missing}, "
        f"finite differences say {says} (allowed: {wrong.allowed:.2g})",
        element=element,
        found=wrong.found,
        expected=wrong.low,
    )


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


def _picked(values: list[Array], numbers: list[int]) -> list[Array]:
    if len(values) <= max(numbers, default=-1):
        raise Refused("another number of results")
    return [values[i] for i in numbers]


def _weights(m: int) -> Array:
    numbers = np.arange(m)
    return np.array([np.cos(numbers * (1.0 + k) + k) + 0.3 for k in range(3)])


def weights_like(array: Array, phase: int = 0) -> Array:
    """Numbers without a pattern, in the shape and dtype of `array`."""
    numbers = np.arange(array.size)
    weights: Array = np.cos(1.7 * numbers + phase) + 0.3
    if array.dtype.kind == "c":
        weights = weights - 1j * np.sin(2.3 * numbers + phase)
    return weights.reshape(array.shape).astype(array.dtype)


def _as_starts(row: Array, recorded: Recorded, outputs: list[int]) -> dict[int, Array]:
    """The gradients of the outputs that a row of weights stands for; outputs without weight are left out."""
    starts = {}
    taken = 0
    for i in outputs:
        array = recorded.outputs[i]._array
        parts = 2 if array.dtype.kind == "c" else 1
        part = row[taken : taken + array.size * parts]
        taken += array.size * parts
        if part.any():
            starts[i] = (part.view(complex) if parts == 2 else part).reshape(array.shape).astype(array.dtype)
    return starts


def _directions(moves: Moves, example: Example, n: int) -> Array:
    """The directions in which to move, as columns.

    Elements that are equal are moved together: of them alone, any choice among several derivatives may be right. In
    the call that the user gave they are moved alone as well.
    """
    _, group = np.unique(moves.start, return_inverse=True)
    sizes = np.bincount(group)
    together = [(group == number).astype(float) for number in np.flatnonzero(sizes > 1)]
    places = [place for place in range(n) if not example.label or sizes[group[place]] == 1]
    if len(places) > MOST_COLUMNS:
        chosen = [place for slot, flat in example.changed if (place := moves.column(slot, flat)) in places]
        chosen += [places[int(number)] for number in np.random.default_rng(n).permutation(len(places))[:MOST_COLUMNS]]
        places = list(dict.fromkeys(chosen))[:MOST_COLUMNS]
    columns = [np.eye(1, n, place)[0] for place in places] + together[:MOST_COLUMNS]
    return np.array(columns).T if columns else np.empty((n, 0))
