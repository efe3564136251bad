"""Evidence that an operator is meant for dimensions, lengths and signs other than those in the user's call."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence

import attrs
import numpy as np

from ...type_aliases import Array
from .arguments import Example
from .operator_under_test import OperatorUnderTest, Refused
from .shapes import of_other_shapes, with_length
from .special_values import numbers_among

Pick = Callable[[Array], Array]


def is_meant_for_ranks(subject: OperatorUnderTest, example: Example, base: Example) -> bool:
    """Return whether results for other numbers of dimensions agree with results for those in the user's call.

    They agree if the result is that of each slice, along the first or the last axis, or that of merged axes: for
    elementwise functions, reductions, and functions of stacks of matrices. If none of these holds, a function of
    vectors was called with matrices and computed something that its author did not intend. Stacks are not intended
    either if NumPy's linear algebra accepts them but the operator's own derivative transposes with `.T`.

    Arguments:
        subject: the operator, whose `ranks` are those in the user's call.
        example: the derived call.
        base: the user's call.
    """
    slots = [k for k, array in enumerate(example.arrays) if array.ndim != subject.ranks.get(k, array.ndim)]
    if not slots:
        return True
    if subject.single_matrices and any(example.arrays[k].ndim > subject.ranks[k] for k in slots):
        return False
    if not _is_meant(subject, example, slots):
        if len(example.arrays) != len(base.arrays) or _takes_slices(subject, example, slots):
            return False
        # An option that exists only for these ranks, such as a third axis; the user's options decide.
        if not _is_meant(subject, attrs.evolve(example, args=base.args, kwargs=base.kwargs), slots):
            return False
    if not _takes_stacks(subject, base):
        return False
    # Slices along the last axis have a different last length, which may be accepted by accident.
    higher = [k for k in slots if example.arrays[k].ndim > subject.ranks[k]]
    lengths = {n for k in higher for n in base.arrays[k].shape[-1:]} if len(example.arrays) == len(base.arrays) else ()
    return all(_takes_lengths(subject, base, n) for n in lengths) or _is_stack(subject, example, higher)


def is_meant_for_lengths(subject: OperatorUnderTest, example: Example, base: Example) -> bool:
    """Return whether an argument of length 1 acts as repeated, next to others with the lengths of the user's call.

    If it does not, NumPy broadcasts it at an unintended place: a diagonal of one element with a right-hand side of
    four.

    Arguments:
        subject: the operator.
        example: the derived call.
        base: the user's call.
    """
    if len(example.arrays) != len(base.arrays):
        return True
    if example.broadcast and len({array.shape for array in base.arrays}) == 1:
        return _counts_as_repeated(subject, example)
    pairs = list(enumerate(zip(example.arrays, base.arrays, strict=True)))
    changed = [k for k, (mine, given) in pairs if mine.shape != given.shape]
    if len(changed) != 1:
        return True
    k = changed[0]
    mine, given = example.arrays[k], base.arrays[k]
    if mine.ndim != given.ndim or any(n not in (1, m) for n, m in zip(mine.shape, given.shape, strict=True)):
        return True
    lost = {m for n, m in zip(mine.shape, given.shape, strict=True) if n != m}
    if not any(lost & {*array.shape} for i, array in enumerate(example.arrays) if i != k):
        return True  # it is shorter and is not broadcast
    arrays = list(example.arrays)
    arrays[k] = np.broadcast_to(mine, given.shape).copy()
    try:
        whole = subject.values(example)
    except (Refused, RuntimeError):
        return True
    return _same(subject, example.with_arrays(arrays), whole)


def is_meant_for_changed_lengths(subject: OperatorUnderTest, example: Example, base: Example) -> bool:
    """Return whether the operator accepts several lengths of the axes whose length differs from that in the user's
    call.

    If it refuses most lengths, the one in the derived call is accepted by accident: `x[:, :2] / x[:, 2:]` is meant for
    three columns, and accepts four.

    Arguments:
        subject: the operator.
        example: the derived call.
        base: the user's call.
    """
    if len(example.arrays) != len(base.arrays):
        return True
    pairs = list(zip(example.arrays, base.arrays, strict=True))
    if any(mine.ndim != given.ndim for mine, given in pairs):
        return True
    changed = {n for mine, given in pairs for m, n in zip(mine.shape, given.shape, strict=True) if m != n > 1}
    return all(_takes_lengths(subject, base, n) for n in changed)


def _takes_lengths(subject: OperatorUnderTest, base: Example, n: int) -> bool:
    """Return whether the user's call is accepted with at least two of five other lengths instead of `n`."""
    accepted = 0
    for new in (n + 1, n + 2, 2 * n, 3 * n, 4 * n):
        try:
            subject.values(with_length(base, n, new))
        except (Refused, RuntimeError):
            continue
        accepted += 1
    return accepted > 1


def _counts_as_repeated(subject: OperatorUnderTest, example: Example) -> bool:
    """Return whether a call computes the same values as the call with its arguments expanded to the broadcast shape."""
    try:
        shape = np.broadcast_shapes(*(array.shape for array in example.arrays))
        whole = subject.values(example)
    except (Refused, RuntimeError, ValueError):
        return True
    return _same(subject, example.with_arrays([np.broadcast_to(a, shape).copy() for a in example.arrays]), whole)


def is_meant_to_broadcast(subject: OperatorUnderTest, example: Example, base: Example) -> bool:
    """Return whether no call with broadcast arguments raises an error in the backward pass alone.

    An operator that is not written for such calls returns gradients of the broadcast shape, which is an error for most
    of them, and wrong gradients for others.

    Arguments:
        subject: the operator.
        example: the derived call.
        base: the user's call.
    """
    if not example.broadcast or subject.composed or _broadcasts_in(subject, base):
        return True
    for other in of_other_shapes(base):
        if not other.broadcast:
            continue
        try:
            recorded = subject.record(other)
        except (Refused, RuntimeError):
            continue
        try:
            recorded.gradients({i: np.ones_like(recorded.outputs[i]._array) for i in recorded.differentiable})
        except Exception:
            return False
    return True


def _broadcasts_in(subject: OperatorUnderTest, base: Example) -> bool:
    """Return whether arguments are broadcast to the shape of a result in the user's call."""
    shapes = [array.shape for array in base.arrays]
    try:
        return len({*shapes}) > 1 and any(value.shape == np.broadcast_shapes(*shapes) for value in subject.values(base))
    except (Refused, RuntimeError, ValueError):
        return False


def is_meant_beyond_one(subject: OperatorUnderTest, example: Example) -> bool:
    """Return whether no option exceeds 1 in a derived call if it lies between 0 and 1 in the user's call.

    Such an option is probably a fraction, a probability or an eccentricity.
    """
    given = {**dict(zip(subject.parameters, example.args, strict=False)), **example.kwargs}
    tried = [name for name, value in given.items() if type(value) is float and value > 1]
    usual = [subject.usual.get(name) for name in tried if name not in subject.contract.options]
    return not any(type(value) is float and 0 < value < 1 for value in usual)


def is_meant_for_negative(subject: OperatorUnderTest, example: Example, base: Example) -> bool:
    """Return whether negative integers count from the end, as for indices but not for labels.

    Arguments:
        subject: the operator.
        example: the derived call.
        base: the user's call.
    """
    arrays = {k: array for k, array in enumerate(example.arrays) if array.dtype.kind == "i" and (array < 0).any()}
    if not arrays or any((base.arrays[k] < 0).any() for k in arrays if k < len(base.arrays)):
        return True
    try:
        whole = subject.values(example)
    except (Refused, RuntimeError):
        return True
    lengths = {n for array in (*example.arrays, *whole) for n in array.shape}
    lengths |= {int(number) for number in numbers_among(example) if number > 0}
    return any(_same(subject, _changed(example, [*arrays], functools.partial(_from_start, n)), whole) for n in lengths)


def _from_start(n: int, indices: Array) -> Array:
    return np.where(indices < 0, indices + n, indices)


def _takes_stacks(subject: OperatorUnderTest, base: Example) -> bool:
    """Return whether the operator computes a stack of two of the user's calls slice by slice.

    The first argument is stacked alone, or those with the most dimensions, or all.
    """
    ranks = [array.ndim for array in base.arrays]
    slots = [k for k, rank in enumerate(ranks) if rank]
    if not slots:
        return True
    largest = [k for k in slots if ranks[k] == max(ranks)]
    for chosen in (slots[:1], largest, slots):
        arrays = [np.stack([a, _other(a)]) if k in chosen else a for k, a in enumerate(base.arrays)]
        stacked = base.with_arrays(arrays)
        try:
            whole = subject.values(stacked)
        except (Refused, RuntimeError):
            continue
        if _agree(subject, stacked, chosen, whole):
            return True
    return False


def _takes_slices(subject: OperatorUnderTest, example: Example, slots: list[int]) -> bool:
    """Return whether the operator accepts a slice of the arguments, along the first or the last axis."""
    for axis in (0, -1):
        if all(example.arrays[k].ndim and example.arrays[k].shape[axis] for k in slots):
            put = functools.partial(np.take, indices=0, axis=axis)
            try:
                subject.values(_changed(example, slots, put))
            except (Refused, RuntimeError):
                continue
            return True
    return False


def _other(array: Array) -> Array:
    """Return other numbers, near those of the first, for the second call of a stack."""
    return np.asarray(array * 0.9 + 0.01) if array.dtype.kind in "fc" else array


def _is_meant(subject: OperatorUnderTest, example: Example, slots: list[int]) -> bool:
    """Return whether a call agrees with calls of the user's ranks."""
    try:
        whole = subject.values(example)
    except (Refused, RuntimeError):
        return True
    choices = [slots, *([k] for k in slots if len(slots) > 1)]
    return any(_agree(subject, example, chosen, whole) for chosen in choices) or _broadcasts(
        subject, example, slots, whole
    )


def _broadcasts(subject: OperatorUnderTest, example: Example, slots: list[int], whole: Sequence[Array]) -> bool:
    """Return whether the result is that of each slice of all arrays with the most dimensions, such as a column with a
    matrix.
    """
    most = max(example.arrays[k].ndim for k in slots)
    beside = [k for k, array in enumerate(example.arrays) if array.ndim == most]
    if beside == slots or not most > max(subject.ranks[k] for k in slots):
        return False
    return _slices_agree(subject, example, beside, whole)


def _agree(subject: OperatorUnderTest, example: Example, slots: list[int], whole: Sequence[Array]) -> bool:
    higher = [k for k in slots if example.arrays[k].ndim > subject.ranks[k]]
    if len(higher) != len(slots):
        return any(_same(subject, _changed(example, slots, put), whole) for put in _longer())
    return _slices_agree(subject, example, slots, whole) or any(
        _same(subject, _changed(example, slots, put), whole) for put in _merged()
    )


def _is_stack(subject: OperatorUnderTest, example: Example, slots: list[int]) -> bool:
    """Return whether the results are those of slices along the first axis."""
    try:
        whole = subject.values(example)
    except (Refused, RuntimeError):
        return True
    return any(_slices_agree(subject, example, chosen, whole, axes=(0,)) for chosen in [slots, *([k] for k in slots)])


def _slices_agree(
    subject: OperatorUnderTest,
    example: Example,
    slots: list[int],
    whole: Sequence[Array],
    axes: tuple[int, ...] = (0, -1),
) -> bool:
    for axis in axes:
        sizes = {example.arrays[k].shape[axis] for k in slots} - {1}
        if len(sizes) == 1 and all(_slice_agrees(subject, example, slots, whole, axis, i) for i in range(sizes.pop())):
            return True
    return False


def _slice_agrees(
    subject: OperatorUnderTest, example: Example, slots: list[int], whole: Sequence[Array], axis: int, i: int
) -> bool:
    def taken(array: Array) -> Array:
        return np.asarray(np.take(array, 0 if array.shape[axis] == 1 else i, axis=axis))

    if not all(result.ndim and result.shape[axis] > i for result in whole):
        return False
    return _same(subject, _changed(example, slots, taken), [np.take(result, i, axis=axis) for result in whole])


def _longer() -> Iterator[Pick]:
    yield lambda array: array[None]
    yield lambda array: array[..., None]


def _merged() -> Iterator[Pick]:
    yield lambda array: array.reshape(-1, *array.shape[2:])
    yield lambda array: array.reshape(*array.shape[:-2], -1)
    yield lambda array: array.reshape(-1)


def _changed(example: Example, slots: list[int], put: Pick) -> Example:
    return example.with_arrays([put(array) if k in slots else array for k, array in enumerate(example.arrays)])


def _same(subject: OperatorUnderTest, example: Example, expected: Sequence[Array]) -> bool:
    """Return whether a call returns the given numbers, in any shape."""
    try:
        found = subject.values(example)
    except (Refused, RuntimeError):
        return False
    if len(found) != len(expected) or any(one.size != other.size for one, other in zip(found, expected, strict=True)):
        return False
    pairs = zip(found, expected, strict=True)
    return all(np.allclose(one.reshape(-1), other.reshape(-1), rtol=1e-6, equal_nan=True) for one, other in pairs)
