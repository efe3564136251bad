"""The gradients of a call, held against finite differences."""

from __future__ import annotations

import warnings
from typing import Any, Final

import numpy as np

from ....errors import DetachedConversionWarning, DifferentiabilityError
from ....tensor.tensor import Tensor
from ..arguments import Example, outputs_of
from ..failure import Failure
from ..literals import literal
from ..operator_under_test import OperatorUnderTest, Recorded, Refused, quiet, real_parts, refusals
from ..perturb import Moves
from ..script import Script
from .jacobian_columns import Disagreement, compare_columns, dense_directions, glance

__all__ = ["MOST_COLUMNS", "REFUSALS", "check_gradients", "weights_like"]

Array = np.ndarray[Any, Any]

# What a backward pass may raise at a point that the user has not asked for: there is no derivative, or no solution.
REFUSALS: Final = (ArithmeticError, DifferentiabilityError, np.linalg.LinAlgError)
MOST_ROWS: Final = 12  # outputs that are differentiated one by one
MOST_COLUMNS: Final = 16  # inputs that are moved one by one


def check_gradients(subject: OperatorUnderTest, example: Example, title: str, compared: bool = True) -> bool:
    """Compare the gradients of one call with finite differences; whether there was anything to compare.

    Arguments:
        compared: whether to; where not, the call and its backward pass are run alone.

    Raises:
        Failure: where they differ.
        Refused: where the operator refuses the call.
    """
    values = subject.values(example)
    if not compared or sum(value.size for value in values) == 0 or not example.wanted:
        _just_run(subject, example, title)
        return True
    recorded = _recorded(subject, example, title)
    _nothing_forgotten(subject, example, title, recorded)
    outputs = recorded.differentiable
    if not outputs:
        return False
    if not all(np.isfinite(recorded.outputs[i]._array).all() for i in outputs):
        return False
    moves = Moves(
        lambda arrays: _picked(subject.values(example, arrays), outputs), example.arrays, example.wanted, subject.single
    )
    n = moves.start.size
    sizes = [real_parts(recorded.outputs[i]._array).size for i in outputs]
    m = sum(sizes)
    if not m or not n:
        _just_run(subject, example, title)
        return True
    rows = np.eye(m) if m <= MOST_ROWS else _weights(m)
    starts = [_as_starts(row, recorded, outputs) for row in rows]

    def derivatives(of: Recorded) -> Array:
        gradients = [of.gradients(start) for start in starts]
        if not all(g.shape == example.arrays[k].shape for g, k in zip(gradients[0], example.wanted, strict=True)):
            _fail_by_shape(_replay(subject, example, title, starts[0]))
        return np.array([np.concatenate([real_parts(g) for g in parts]) for parts in gradients])

    try:
        with quiet():
            found = derivatives(recorded)
    except Failure:
        raise
    except Exception as error:
        if example.lenient or (example.label and isinstance(error, REFUSALS)):
            raise Refused(f"the backward pass refuses: {error}") from error
        _replay(subject, example, title, starts[0]).fail(
            f"the backward pass raises {type(error).__name__}: {error}", error
        )

    def again(x: Array) -> Array | None:
        try:
            return derivatives(subject.record(example.with_arrays(moves.moved(x))))
        except (Refused, RuntimeError):
            return None

    if glance(moves, _few_directions(moves, example, n), rows, found) == "agree":
        return True
    directions = _directions(moves, example, n)
    wrong = compare_columns(moves, directions, rows, found, again, lenient=bool(example.label) and subject.composed)
    if wrong is not None and not (wrong.found == 0 and example.label and _through_infinity(subject, example)):
        if example.lenient and example.family == "options" and _says_that_it_loses_history(subject, example):
            raise Refused("it warns that the history of a tensor is lost in the array that it was given")
        script = _replay(subject, example, title, starts[wrong.row])
        _fail(script, moves, wrong, recorded, outputs, rows[wrong.row])
    return True


def _says_that_it_loses_history(subject: OperatorUnderTest, example: Example) -> bool:
    """Whether a warning tells that no gradient will flow, as where a tensor is written into an array."""
    leaves = [Tensor(array, requires_grad=k in example.wanted) for k, array in enumerate(example.arrays)]
    with warnings.catch_warnings(record=True) as told, refusals():
        warnings.simplefilter("always")
        example.call(subject.function, leaves)
    return any(issubclass(warning.category, DetachedConversionWarning) for warning in told)


def _through_infinity(subject: OperatorUnderTest, example: Example) -> bool:
    """Whether what is composed of operators is infinite in between, as exp(log(x)) at 0 is."""
    if not subject.composed:
        return False
    with quiet(), np.errstate(divide="raise", over="raise"):
        try:
            subject.values(example)
        except Refused as refused:
            return isinstance(refused.__cause__, FloatingPointError)
    return False


def _nothing_forgotten(subject: OperatorUnderTest, example: Example, title: str, recorded: Recorded) -> None:
    """Results that have a gradient in the user's call have one here, or depend on nothing."""
    forgotten = recorded.forgotten(subject.outputs)
    if not forgotten or not all(np.isfinite(recorded.outputs[i]._array).all() for i in forgotten):
        return
    moves = Moves(lambda arrays: _picked(subject.values(example, arrays), forgotten), example.arrays, example.wanted)
    m = sum(real_parts(recorded.outputs[i]._array).size for i in forgotten)
    n = moves.start.size
    if not m or not n or not np.isfinite(moves.start).all():
        return
    rows = np.eye(m) if m <= MOST_ROWS else _weights(m)
    wrong = compare_columns(moves, _directions(moves, example, n), rows, np.zeros((len(rows), n)), lenient=True)
    if wrong is None:
        return
    script = Script(subject, title, example)
    script.leaves()
    script.do(f"y = {script.expression()}")
    paths = [path for path, _ in outputs_of(script["y"])]
    script.lines.append("assert " + " and ".join(f"y{paths[i]}.requires_grad" for i in forgotten))
    slot, _, _ = moves.element(int(np.flatnonzero(wrong.direction)[0]))
    script.fail(
        f"no gradient comes back from result {forgotten[0]}, which depends on {example.named(slot)}: finite "
        f"differences say {wrong.low!r}",
        found=0.0,
        expected=wrong.low,
    )


def _recorded(subject: OperatorUnderTest, example: Example, title: str) -> Recorded:
    try:
        return subject.record(example)
    except RuntimeError as error:
        script = Script(subject, title, example)
        script.leaves()
        script.do(f"y = {script.expression()}")
        raise AssertionError(f"the call raised at first: {error}") from error


def _just_run(subject: OperatorUnderTest, example: Example, title: str) -> None:
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


def _replay(subject: OperatorUnderTest, example: Example, title: str, starts: dict[int, Array]) -> Script:
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


def _fail_by_shape(script: Script) -> None:
    """Raise for the first gradient that has another shape than its argument."""
    for i, k in enumerate(script.example.wanted):
        if script["g"][i] is not None:
            told = script.example.named(k)
            script.require(f"g[{i}].shape == x{k}.shape", f"the gradient with respect to {told} has another shape")


def _fail(
    script: Script,
    moves: Moves,
    wrong: Disagreement,
    recorded: Recorded,
    outputs: list[int],
    row: Array,
) -> None:
    example = script.example
    places = np.flatnonzero(wrong.direction)
    factors = wrong.direction[places]
    terms = []
    for place, factor in zip(places, factors, strict=True):
        slot, flat, part = moves.element(int(place))
        index = np.unravel_index(flat, moves.arrays[slot].shape) if moves.arrays[slot].shape else ()
        i = example.wanted.index(slot)
        gradient = (
            f"g[{i}].numpy()[{', '.join(str(int(j)) for j in index) or '()'}]" if script["g"][i] is not None else "0.0"
        )
        if moves.arrays[slot].dtype.kind == "c":
            gradient += ".imag" if part else ".real"
        terms.append(gradient if factor == 1.0 else f"{literal(float(factor))} * {gradient}")
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
        kind = "equal " if (factors == 1.0).all() else ""
        by = f"{len(places)} {kind}elements that move together, {by} among them"
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


def _few_directions(moves: Moves, example: Example, n: int) -> Array:
    """Where an element alone was changed: that one, and a direction in which all others move; none elsewhere."""
    own = [moves.column(slot, flat) for slot, flat in example.changed]
    others = [place for place in range(n) if place not in own]
    finite = np.isfinite(moves.start)
    if not own or len(others) < 3 or not finite[others].all():
        return np.empty((n, 0))
    columns = [np.eye(1, n, place)[0] for place in own if finite[place]]
    return np.array([*columns, dense_directions(moves.start, others)[0]]).T


def _directions(moves: Moves, example: Example, n: int) -> Array:
    """The directions in which to move, as columns.

    Elements that are equal are moved together: of them alone, any choice among several derivatives may be right. In
    the call that the user gave they are moved alone as well.
    """
    _, group = np.unique(moves.start, return_inverse=True)
    sizes = np.bincount(group)
    together = [(group == number).astype(float) for number in np.flatnonzero(sizes > 1)]
    finite = np.isfinite(moves.start)
    places = [place for place in range(n) if finite[place] and (not example.label or sizes[group[place]] == 1)]
    together = [direction for direction in together if finite[direction != 0].all()]
    dense: list[Array] = []
    if len(places) > MOST_COLUMNS:
        dense = dense_directions(moves.start, places)
        chosen = [place for slot, flat in example.changed if (place := moves.column(slot, flat)) in places]
        chosen += [places[int(number)] for number in np.random.default_rng(n).permutation(len(places))[:MOST_COLUMNS]]
        places = list(dict.fromkeys(chosen))[:MOST_COLUMNS]
    columns = [np.eye(1, n, place)[0] for place in places] + together[:MOST_COLUMNS] + dense
    return np.array(columns).T if columns else np.empty((n, 0))
