"""Calls derived from the user's by changing shapes and the lengths of lists."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import attrs
import numpy as np

from ...type_aliases import Array
from .arguments import Example, Slot

LARGEST, LARGEST_LONG = 200, 2500  # elements of all arguments
BEYOND_BLOCKS = (257, 129, 65)
MULTIPLES = (264,)  # for operators that take only lengths that are multiples of small numbers


def of_other_shapes(example: Example) -> Iterator[Example]:
    """Yield the call with other lengths and numbers of dimensions, changed consistently."""
    floats = [k for k, array in enumerate(example.arrays)]
    shapes = [array.shape for array in example.arrays]
    lengths = sorted({n for shape in shapes for n in shape})
    proposals: list[tuple[str, list[tuple[int, ...]]]] = []

    def relabelled(table: dict[int, int]) -> list[tuple[int, ...]]:
        return [tuple(table.get(n, n) for n in shape) for shape in shapes]

    for n in lengths:
        for new in (1, 0, 2, 3, 5, 11, 33):
            if new != n:
                proposals.append((f"length {new} where it was {n}", relabelled({n: new})))
    proposals.append(("length 1 everywhere", relabelled(dict.fromkeys(lengths, 1))))
    proposals.append(("length 0 everywhere", relabelled(dict.fromkeys(lengths, 0))))
    if len(lengths) > 1:
        small = {n: 2 + i for i, n in enumerate(lengths)}
        proposals.append(("other lengths", relabelled(small)))
        proposals.append(("lengths in another order", relabelled(dict(zip(lengths, lengths[::-1], strict=True)))))
    proposals.append(("no dimensions", [() for _ in shapes]))
    proposals.append(("another dimension in front", [(2, *shape) for shape in shapes]))
    proposals.append(("two more dimensions in front", [(2, 1, *shape) for shape in shapes]))
    proposals.append(("another dimension at the end", [(*shape, 2) for shape in shapes]))
    proposals.append(("one dimension", [(3,) for _ in shapes]))
    proposals.append(("two dimensions", [(2, 3) for _ in shapes]))
    proposals.append(("a square", [(2, 2) for _ in shapes]))
    proposals.append(("three dimensions", [(2, 1, 3) for _ in shapes]))
    # Swapped axes go unnoticed if they raise no error, as in stacks of n square matrices with n rows.
    proposals.append(("a cube", [(3,) * (len(shape) + (len(shape) > 1)) for shape in shapes]))
    if any(len(shape) > 1 for shape in shapes):
        proposals.append(("a dimension less", [shape[1:] for shape in shapes]))
    if len(floats) == 1 and shapes[0]:
        proposals.append(("a first dimension of length 1", [(1, *shapes[0][1:])]))
        proposals.append(("a last dimension of length 1", [(*shapes[0][:-1], 1)]))
    alone = len(proposals)  # from here on, the shapes of some arguments change alone
    if len(floats) > 1:
        for k in floats:
            told = example.named(k)
            changes: tuple[tuple[str, tuple[int, ...] | None], ...] = (
                ("without dimensions", ()),
                ("of one element", (1,) * len(shapes[k])),
                ("with another dimension in front", (2, *shapes[k])),
                ("with a dimension of length 1 in front", (1, *shapes[k])),
                ("with a first dimension of length 1", (1, *shapes[k][1:]) if shapes[k] else None),
                ("with a last dimension of length 1", (*shapes[k][:-1], 1) if shapes[k] else None),
                ("without its first dimension", shapes[k][1:] if shapes[k] else None),
            )
            for name, other_shape in changes:
                if other_shape is not None:
                    proposals.append(
                        (f"{told} {name}", [other_shape if i == k else shape for i, shape in enumerate(shapes)])
                    )
            for name, line in (("column", (3, 1)), ("row", (1, 3))):
                beside: list[tuple[int, ...]] = [line if i == k else (3, 3) for i in floats]
                proposals.append((f"{told} a {name} beside squares", beside))
        proposals.append(("operands that are broadcast", [(2, 1) if i % 2 else (1, 3) for i in range(len(shapes))]))
        proposals.append(("operands that are broadcast", [(3,) if i % 2 else (2, 1) for i in range(len(shapes))]))
    seen = {tuple(shapes)}
    for number, (label, proposed) in enumerate(proposals):
        if tuple(proposed) in seen or sum(int(np.prod(shape)) for shape in proposed) > LARGEST:
            continue
        seen.add(tuple(proposed))
        arrays = _arrays_of(example, proposed)
        unlike = any(len(shape) != len(other) for shape, other in zip(shapes, proposed, strict=True))
        label = f"{label}: {', '.join(map(str, proposed))}"
        yield example.with_arrays(arrays, label=label, family="shapes", lenient=unlike, broadcast=number >= alone)


def with_length(example: Example, n: int, new: int) -> Example:
    """Return the call with arguments of length `new` along all axes of length `n`."""
    shapes = [tuple(new if m == n else m for m in array.shape) for array in example.arrays]
    return example.with_arrays(_arrays_of(example, shapes))


def of_equal_lengths(example: Example) -> Example:
    """Return the call with three elements along each axis, so that swapped axes raise no error."""
    arrays = _arrays_of(example, [(3,) * array.ndim for array in example.arrays])
    return example.with_arrays(arrays, label=f"{example.label}, all lengths 3", family="shapes")


def of_long_shapes(example: Example, longer: Sequence[int] = BEYOND_BLOCKS) -> Iterator[Example]:
    """Yield the call with one length slightly above a power of two, where blocks and buffers end."""
    shapes = [array.shape for array in example.arrays]
    for n in sorted({n for shape in shapes for n in shape if n > 1}, reverse=True):
        for new in longer:
            proposed = [tuple(new if m == n else m for m in shape) for shape in shapes]
            if new <= n or sum(int(np.prod(shape)) for shape in proposed) > LARGEST_LONG:
                continue
            arrays = _arrays_of(example, proposed)
            yield example.with_arrays(arrays, label=f"length {new} where it was {n}", family="shapes")


def _arrays_of(example: Example, shapes: Sequence[tuple[int, ...]]) -> list[Array]:
    """Return the arrays of a call in other shapes; permutations remain permutations."""
    arrays = [resized(array, shape) for array, shape in zip(example.arrays, shapes, strict=True)]
    for k in filter(example.is_permutation, range(len(arrays))):
        arrays[k] = np.argsort(arrays[k], axis=None).reshape(arrays[k].shape)
    return arrays


def resized(array: Array, shape: tuple[int, ...]) -> Array:
    """Return values like those of `array` in another shape; floats are distinct."""
    size = int(np.prod(shape))
    if not array.size:
        return np.full(shape, 0.5).astype(array.dtype)
    flat = np.resize(array.reshape(-1), size)
    if array.dtype.kind in "fc" and size > array.size:
        rounds, places = np.divmod(np.arange(size), array.size)
        # unevenly, so that rows are not multiples of each other
        less = 0.03 * rounds * (1 + 0.5 * np.cos(1.0 + places))
        flat = flat / (1 + less).astype(flat.real.dtype)
    return np.ascontiguousarray(flat.reshape(shape)) if shape else np.array(flat[0])


def with_other_lists(example: Example) -> Iterator[Example]:
    """Yield the call with one more or one less tensor in each list or tuple of tensors."""
    for place, value in example.placed:
        if type(value) not in (list, tuple) or not all(isinstance(item, Slot) for item in value) or not value:
            continue
        last = value[-1].number
        array = example.arrays[last]
        longer = example.with_arrays([*example.arrays, _unlike(array)])
        if last in example.wanted:
            longer = attrs.evolve(longer, wanted=(*example.wanted, len(example.arrays)))
        more = type(value)([*value, Slot(len(example.arrays))])
        yield _replaced(longer, place, more, f"{len(more)} tensors in {example.place_named(place)}")
        if len(value) > 1:
            kept = tuple(k for k in example.wanted if k != last)
            fewer = attrs.evolve(example, wanted=kept)
            label = f"{len(value) - 1} tensors in {example.place_named(place)}"
            yield _replaced(fewer, place, type(value)(value[:-1]), label)


def _unlike(array: Array) -> Array:
    """Return other numbers of the same shape and dtype."""
    turned = array.reshape(-1)[::-1].reshape(array.shape)
    return np.asarray(0.9 * turned + 0.05 * array).astype(array.dtype) if array.dtype.kind in "fc" else turned.copy()


def _replaced(example: Example, place: Any, value: Any, label: str) -> Example:
    args, kwargs = list(example.args), dict(example.kwargs)
    if isinstance(place, int):
        args[place] = value
    else:
        kwargs[place] = value
    return attrs.evolve(example, args=tuple(args), kwargs=kwargs, label=label, family="shapes", lenient=True)
