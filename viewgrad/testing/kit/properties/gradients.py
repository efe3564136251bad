"""Comparison of the gradients of a call with finite differences."""

from __future__ import annotations

import math
import warnings
from typing import Any, Final

import attrs
import numpy as np

from ....errors import DetachedConversionWarning
from ....tensor.tensor import Tensor
from ....type_aliases import Array
from ..arguments import Example, outputs_of
from ..failure import Failure
from ..limits import refuse_if_coarse
from ..operator_under_test import OperatorUnderTest, Recorded, Refused, quiet, real_parts, refusals
from ..perturb import Moves
from ..script import Script
from .gradient_failure import fail_by_differences, short
from .jacobian_columns import Disagreement, compare_columns, dense_directions, glance, undifferentiable
from .surrogate import as_surrogate
from .weights import as_starts, rows_of_weights

SINGULAR: Final = 1e10  # multiples of the size of values and gradients in the user's call
MOST_ROWS: Final = 12  # the number of outputs that are differentiated one by one
LONG: Final = 60  # the number of real numbers perturbed together at first, in derived calls
NO_DERIVATIVE: Final = "its gradient is NaN where the function has no derivative"
MOST_COLUMNS: Final = 16  # the number of inputs that are perturbed one by one


def check_gradients(subject: OperatorUnderTest, example: Example, title: str, compared: bool = True) -> bool:
    """Compare the gradients of a call with finite differences; return whether any could be compared.

    Arguments:
        subject: the operator.
        example: the call.
        title: the property.
        compared: whether to compare; if not, the call and its backward pass are only run.

    Raises:
        Failure: if the gradients differ.
        Refused: if the operator refuses the call.
    """
    values = subject.values(example)
    subject.is_undefined_at(example, values)
    if not compared or sum(value.size for value in values) == 0 or not example.wanted:
        _just_run(subject, example, title)
        return True
    recorded = _recorded(subject, example, title)
    if subject.contract.surrogate is not None:
        return as_surrogate(subject, example, title, recorded)
    _nothing_forgotten(subject, example, title, recorded)
    if not _can_be_compared(subject, example, recorded):
        return False
    outputs = recorded.differentiable
    moves = Moves(
        lambda arrays: _picked(subject.values(example, arrays), outputs),
        example.arrays,
        example.wanted,
        subject.single,
        subject.structures,
    )
    m = sum(real_parts(recorded.outputs[i]._array).size for i in outputs)
    if not m or not moves.start.size:
        _just_run(subject, example, title)
        return True
    many = moves.start.size > LONG and bool(example.label)
    if not (many and _agrees_along_one(moves, recorded, outputs, rows_of_weights(m)[:1])):
        _compare(subject, example, title, recorded, moves, np.eye(m) if m <= MOST_ROWS else rows_of_weights(m))
    return True


def _compare(
    subject: OperatorUnderTest, example: Example, title: str, recorded: Recorded, moves: Moves, rows: Array
) -> None:
    """Compare the gradients of weighted sums of the results with finite differences."""
    outputs, tangent, n = recorded.differentiable, moves.tangent, moves.start.size
    starts = [as_starts(row, recorded, outputs) for row in rows]

    def derivatives(of: Recorded) -> Array:
        gradients = [of.gradients(start) for start in starts]
        if [g.shape for g in gradients[0]] != [example.arrays[k].shape for k in example.wanted]:
            _fail_by_shape(_replay(subject, example, title, starts[0]))
        found = np.array([np.concatenate([real_parts(g) for g in parts]) for parts in gradients])
        return found if tangent is None else found @ tangent

    try:
        with quiet():
            found = derivatives(recorded)
    except (Failure, Refused):
        raise
    except Exception as error:
        if example.label:
            raise Refused(f"the backward pass refuses: {type(error).__name__}: {error}") from error
        script = _replay(subject, example, title, starts[0])
        script.fail(f"the backward pass raises {type(error).__name__}: {error}", error)
    if example.family == "ties" and _is_singular(subject, recorded, outputs, found):
        raise Refused("equal elements make an argument singular")

    def again(x: Array) -> Array | None:
        try:
            return derivatives(subject.record(example.with_arrays(moves.moved(x))))
        except (Refused, RuntimeError):
            return None

    if glance(moves, _few_directions(moves, example, n), rows, found) == "agree":
        return
    directions = _directions(moves, example, n)
    if example.label and np.isnan(found).any():
        directions = _where_differentiable(subject, example, moves, rows, found, directions)
    wrong = compare_columns(moves, directions, rows, found, again, lenient=bool(example.label) and subject.composed)
    if wrong is not None and not _is_excused(subject, example, moves, rows, wrong):
        script = _replay(subject, example, title, starts[wrong.row])
        fail_by_differences(script, moves, wrong, recorded, outputs, rows[wrong.row], tangent)
    noted = any(notice.startswith(NO_DERIVATIVE) for notice in subject.notices)
    if np.isnan(found).any() and np.isfinite(moves.start).all() and not noted:
        subject.note_once("its gradient is NaN where its value is finite", example.label or "in the call given")


def _where_differentiable(
    subject: OperatorUnderTest, example: Example, moves: Moves, rows: Array, found: Array, directions: Array
) -> Array:
    """Return the directions, as columns, that perturb no element with a NaN gradient at which no derivative exists.

    Other elements with a NaN gradient are perturbed one by one.
    """
    undefined = [int(place) for place in np.flatnonzero(np.isnan(found).any(axis=0))]
    singular = undifferentiable(moves, rows, found)
    # Zero times the infinite slope of another element is NaN too, as for the weights of a norm at the origin.
    idle = [place for place in undefined if singular and place not in singular and _idle(moves, place)]
    singular = [place for place in undefined if place in singular or place in idle]
    if not singular:
        return directions
    subject.note_once(NO_DERIVATIVE, example.label)
    poisoned = [place for place in undefined if place not in singular]
    alone = np.eye(moves.start.size)[:, poisoned[:MOST_COLUMNS]]
    return np.hstack([directions[:, ~directions[singular].any(axis=0)], alone])


def _idle(moves: Moves, place: int) -> bool:
    """Return whether the results are independent of one position of the vector."""
    start = moves.start
    here = moves.at(start)
    for step in (1e-3, -1e-3, 0.3):
        there = moves.at(start + step * np.eye(1, start.size, place)[0])
        if here is None or there is None or here.shape != there.shape or not (here == there).all():
            return False
    return True


def _agrees_along_one(moves: Moves, recorded: Recorded, outputs: list[int], rows: Array) -> bool:
    """Return whether one weighted sum has the correct slope along one direction that perturbs all elements."""
    start = moves.start
    if not np.isfinite(start).all():
        return False
    try:
        with quiet():
            gradients = recorded.gradients(as_starts(rows[0], recorded, outputs))
    except Exception:
        return False
    found = np.concatenate([real_parts(g) for g in gradients]).reshape(1, -1)
    if found.shape[1] != start.size:
        return False
    tangent = moves.tangent
    direction = dense_directions(start, range(start.size))[0].reshape(-1, 1)
    return glance(moves, direction, rows, found if tangent is None else found @ tangent) == "agree"


def _is_excused(subject: OperatorUnderTest, example: Example, moves: Moves, rows: Array, wrong: Disagreement) -> bool:
    """Return, usually with a notice, whether a wrong gradient of a derived call is no evidence against the operator.

    This holds if the call involves infinite numbers, if the gradient is wrong only at one point, or if the call belongs
    to an iteration that has diverged.

    Raises:
        Refused: for options that the operator declares as unsupported.
    """
    found = wrong.found
    if found == 0 and example.label and _through_infinity(subject, example):
        subject.note_once("its gradient is 0 if an intermediate value overflows or underflows", example.label)
        return True
    if example.label and not np.isfinite(found) and _meets_infinity(moves, wrong.direction):
        subject.note(f"its gradient is {found} for infinite elements, where its value is finite ({example.label})")
        return True
    if example.family == "shapes" and np.isnan(found) and _constant_nearby(moves):
        subject.note_once("its gradient is NaN where the result does not depend on its arguments", example.label)
        return True
    if example.label and _is_nearly_right_far_away(example, wrong):
        subject.note(f"its gradient has few correct digits for {example.label}: {wrong.found!r}, not {wrong.low!r}")
        return True
    if example.label and np.isnan(found) and wrong.low == wrong.high == 0 and FAR <= _largest(example) < np.inf:
        subject.note_once("its gradient is NaN at large arguments, where the result is constant", example.label)
        return True
    if _has_diverged(subject, example, moves, wrong):
        subject.note_once(
            "its result is huge, as in a diverging iteration, and its gradient is wrong there", example.label
        )
        return True
    if _is_at_the_end_of_options(subject, example) and _is_right_beside(subject, example, moves, rows, wrong):
        subject.note_once("if an option is 0, its gradient is wrong at a single point", example.label)
        return True
    if example.label and subject.limits:
        refuse_if_coarse(subject, example, abs(found - wrong.low))
    if example.family == "options" or "=" in example.label or _made_negative(subject, example):
        if example.lenient and _warns_of_lost_history(subject, example):
            raise Refused("it warns that the history of a tensor is lost in an array that was passed to it")
        if not np.isfinite(found):
            raise Refused("its gradient is not finite for this option")
    return _is_of_no_meaning(subject, example, moves)


BESIDE: Final = 0.03  # the distance from a point within which branches meet


def _has_diverged(subject: OperatorUnderTest, example: Example, moves: Moves, wrong: Disagreement) -> bool:
    """Return whether a result and a gradient of a derived call are ten orders of magnitude larger than in the user's
    call.
    """
    if not example.label:
        return False
    values = moves.at(moves.start)
    sizes = np.abs(wrong.found), 0.0 if values is None else np.abs(values).max(initial=0.0)
    return bool(min(sizes) > SINGULAR * max(1.0, subject.scale))


def _is_at_the_end_of_options(subject: OperatorUnderTest, example: Example) -> bool:
    """Return whether a call at a special point has an option of zero that the user's call does not have.

    Branches of the operator meet there; for example, with a threshold of 0 there is no interval that is set to 0.
    """
    if example.family != "special points" or not example.label or subject.composed:
        return False
    given = {**dict(zip(subject.parameters, example.args, strict=False)), **example.kwargs}
    return any(type(value) is float and not value and subject.usual.get(name) for name, value in given.items())


def _is_right_beside(
    subject: OperatorUnderTest, example: Example, moves: Moves, rows: Array, wrong: Disagreement
) -> bool:
    """Return whether the gradient is correct on both sides of the elements for which it is wrong."""
    row = rows[wrong.row : wrong.row + 1]
    for side in (BESIDE, -BESIDE):
        arrays = tuple(moves.moved(moves.start + side * wrong.direction))
        beside = attrs.evolve(moves, arrays=arrays)
        try:
            recorded = subject.record(example.with_arrays(arrays))
            gradients = recorded.gradients(as_starts(row[0], recorded, recorded.differentiable))
        except Exception:  # refused, in the forward or backward pass
            return False
        found = np.concatenate([real_parts(gradient) for gradient in gradients]).reshape(1, -1)
        if found.shape[1] != moves.start.size:
            return False
        if glance(beside, wrong.direction.reshape(-1, 1), row, found) != "agree":
            return False
    return True


SCALES: Final = frozenset(
    "bandwidth beta delta dilation dt eps epsilon gamma groups kappa kernel_size radius sharpness sigma std stride"
    " strides tau temperature tol tolerance width".split()
)  # fmt: skip


def _is_of_no_meaning(subject: OperatorUnderTest, example: Example, moves: Moves) -> bool:
    """Return, with a notice, whether an option of a derived call is negative although that is probably not intended.

    This is assumed if its name denotes a scale, or if the result is constant: `abs(x) <= c` holds nowhere.
    """
    negative = _made_negative(subject, example)
    if not negative:
        return False
    scales = [name for name in negative if name.lower() in SCALES]
    if not scales and not _constant(moves):
        return False
    name = (scales or negative)[0]
    what = f"its gradient is wrong for negative {name}"
    if not any(notice.startswith(what) for notice in subject.notices):
        subject.note(
            f"{what}, as with {example.label}. If {name} cannot be negative, raise an error in forward; otherwise "
            f"check with options={{{name!r}: [...]}}"
        )
    return True


def _made_negative(subject: OperatorUnderTest, example: Example) -> list[str]:
    """Return the numeric options that are negative in a derived call but not in the user's."""
    given = {**dict(zip(subject.parameters, example.args, strict=False)), **example.kwargs}
    tried = {name: value for name, value in given.items() if name not in subject.contract.options}
    return [name for name, value in tried.items() if _number(value) < 0 <= _number(subject.usual.get(name))]


def _number(value: Any) -> float:
    """Return an option that is a number, or NaN otherwise."""
    return value if type(value) in (int, float) else math.nan


def _constant(moves: Moves) -> bool:
    """Return whether the results are the same for all arguments tried."""
    start, seen = moves.start, []
    generator = np.random.default_rng(11)
    for size in (1e-3, 0.3, 1.0, 3.0, 10.0, 100.0):
        seen.append(moves.at(size * generator.normal(size=start.size)))
    known = [values for values in seen if values is not None]
    return len(known) > 1 and all(one.shape == known[0].shape and (one == known[0]).all() for one in known)


def _constant_nearby(moves: Moves) -> bool:
    """Return whether the results change less nearby than by any slope."""
    start = moves.start
    here, generator = moves.at(start), np.random.default_rng(3)
    for _ in range(4):
        there = moves.at(start + 1e-3 * generator.normal(size=start.size))
        if here is None or there is None or here.shape != there.shape:
            return False
        if not np.allclose(here, there, rtol=LEVEL, atol=LEVEL):
            return False
    return True


def _is_nearly_right_far_away(example: Example, wrong: Disagreement) -> bool:
    """Return whether a derivative at very large arguments is wrong only by digits that cancel."""
    return _largest(example) >= FAR and abs(wrong.found - wrong.low) <= FEW_DIGITS * abs(wrong.low)


def _largest(example: Example) -> float:
    """Return the size of the largest number among the real arguments."""
    sizes = [float(np.abs(array).max(initial=0.0)) for array in example.arrays if array.dtype.kind == "f"]
    return max(sizes, default=0.0)


FAR: Final = 1e4
LEVEL: Final = 1e-7  # the change of results over a thousandth
FEW_DIGITS: Final = 1e-5


def _meets_infinity(moves: Moves, direction: Array) -> bool:
    """Return whether a result that depends on the perturbed elements also depends on infinite ones."""
    start = moves.start
    if not np.isinf(start).any():
        return False
    finite = np.where(np.isinf(start), 0.5, start)
    here, near, beside = (moves.at(vector) for vector in (start, finite, finite + 1e-3 * direction))
    if here is None or near is None or beside is None or not here.shape == near.shape == beside.shape:
        return True
    return bool(((near != here) & (near != beside)).any())


def _can_be_compared(subject: OperatorUnderTest, example: Example, recorded: Recorded) -> bool:
    """Return whether results are differentiable and finite."""
    outputs = recorded.differentiable
    if not outputs or not all(np.isfinite(recorded.outputs[i]._array).all() for i in outputs):
        return False
    if not _finite_near_infinity(subject, example):
        raise Refused("it has no finite result near infinity")
    return True


def _finite_near_infinity(subject: OperatorUnderTest, example: Example) -> bool:
    """Return whether results and gradients are finite near the infinite elements of a derived call."""
    if not example.label or not any(np.isinf(array).any() for array in example.arrays if array.dtype.kind in "fc"):
        return True
    for size in (1e60, 1e200):
        arrays = [
            np.where(np.isinf(array), np.sign(array) * size, array) if array.dtype.kind == "f" else array
            for array in example.arrays
        ]
        near = example.with_arrays(arrays)
        try:
            recorded = subject.record(near)
            outputs = recorded.differentiable
            gradients = recorded.gradients({i: np.ones_like(recorded.outputs[i]._array) for i in outputs})
        except Exception:
            return False
        values = [output._array for output in recorded.outputs]
        if not all(np.isfinite(array).all() for array in [*values, *gradients] if array.dtype.kind in "fc"):
            return False
    return True


def _is_singular(subject: OperatorUnderTest, recorded: Recorded, outputs: list[int], found: Array) -> bool:
    """Return whether values or derivatives are larger by ten orders of magnitude than in the user's call."""
    sizes = [float(np.abs(recorded.outputs[i]._array).max(initial=0.0)) for i in outputs]
    return max([*sizes, float(np.abs(found).max(initial=0.0))]) > SINGULAR * max(1.0, subject.scale)


def _warns_of_lost_history(subject: OperatorUnderTest, example: Example) -> bool:
    """Return whether a warning states that no gradient will flow."""
    leaves = [Tensor(array, requires_grad=k in example.wanted) for k, array in enumerate(example.arrays)]
    with warnings.catch_warnings(record=True) as told, refusals():
        warnings.simplefilter("always")
        example.call(subject.function, leaves)
    return any(issubclass(warning.category, DetachedConversionWarning) for warning in told)


def _through_infinity(subject: OperatorUnderTest, example: Example) -> bool:
    """Return whether a composition of operators has infinite intermediate values, such as exp(log(x)) at 0.

    In the backward pass, numbers may also vanish, such as the slope of 1 / x for huge x.
    """
    if not subject.composed:
        return False
    with quiet(), np.errstate(divide="raise", over="raise"):
        try:
            recorded = subject.record(example)
            with np.errstate(under="raise"):
                recorded.gradients({i: np.ones_like(recorded.outputs[i]._array) for i in recorded.differentiable})
        except Refused as refused:
            return isinstance(refused.__cause__, FloatingPointError)
        except FloatingPointError:
            return True
    return False


def _nothing_forgotten(subject: OperatorUnderTest, example: Example, title: str, recorded: Recorded) -> None:
    """Check that results with a gradient in the user's call have one here too, or are constant."""
    forgotten = recorded.forgotten(subject.outputs)
    if not forgotten or not all(np.isfinite(recorded.outputs[i]._array).all() for i in forgotten):
        return
    moves = Moves(lambda arrays: _picked(subject.values(example, arrays), forgotten), example.arrays, example.wanted)
    m = sum(real_parts(recorded.outputs[i]._array).size for i in forgotten)
    n = moves.start.size
    if not m or not n or not np.isfinite(moves.start).all():
        return
    rows = np.eye(m) if m <= MOST_ROWS else rows_of_weights(m)
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
        f"no gradient flows back from result {forgotten[0]}, which depends on {example.named(slot)}: finite "
        f"differences yield {short(wrong.low)!r}",
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
    """Check shapes and dtypes of gradients if there are no numbers to compare."""
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
    """Return the program of one backward pass."""
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
    """Fail for the first gradient whose shape differs from that of its argument."""
    for i, k in enumerate(script.example.wanted):
        if script["g"][i] is not None:
            told = script.example.named(k)
            script.require(f"g[{i}].shape == x{k}.shape", f"the gradient with respect to {told} has a different shape")


def _picked(values: list[Array], numbers: list[int]) -> list[Array]:
    if len(values) <= max(numbers, default=-1):
        raise Refused("another number of results")
    return [values[i] for i in numbers]


def _few_directions(moves: Moves, example: Example, n: int) -> Array:
    """Return the directions of a single changed element and of all others together, or none."""
    own = [moves.column(slot, flat) for slot, flat in example.changed]
    others = [place for place in range(n) if place not in own]
    finite = np.isfinite(moves.start)
    if not own or len(others) < 3 or not finite[others].all():
        return np.empty((n, 0))
    columns = [np.eye(1, n, place)[0] for place in own if finite[place]]
    return np.array([*columns, dense_directions(moves.start, others)[0]]).T


def _directions(moves: Moves, example: Example, n: int) -> Array:
    """Return the directions of perturbation, as columns.

    Equal elements are perturbed together, since for one of them alone any of several derivatives may be correct. In the
    user's call they are perturbed separately as well.
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
