"""Calls derived from the user's: at special points, with equal or opposite elements, or with other indices."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, Final

import attrs
import numpy as np

from ...type_aliases import Array
from .arguments import Example, mapped
from .operator_under_test import OperatorUnderTest

POINTS: Final = (
    0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    2.0,
    -2.0,
    3.0,
    -3.0,
    10.0,
    -10.0,
    30.0,
    -30.0,
    800.0,
    -800.0,
    400.0,
    -400.0,
    1e-4,
    -1e-4,
    1e5,
    np.pi / 2,
)
# The number of constants from the operator's own code that are tried.
SMALLEST_OWN: Final = 1e-3
LARGEST_OWN: Final = 1e3
MOST_OWN: Final = 12


def in_double_precision(example: Example) -> Example:
    """Return the call in double precision."""
    return example.with_arrays(
        [array.astype(np.result_type(array, float)) if array.dtype.kind in "fc" else array for array in example.arrays]
    )


def at_special_points(subject: OperatorUnderTest, example: Example) -> Iterator[Example]:
    """Yield the call with some or all elements at points where formulas often fail."""
    options = sorted({float(x) for x in numbers_among(example) if np.isfinite(x) and abs(x) < 1e6})
    points = list(dict.fromkeys([*POINTS[:3], *options, *(-x for x in options), *POINTS[3:]]))
    points += _between(points, [x for x in subject.numbers if SMALLEST_OWN <= x <= LARGEST_OWN][:MOST_OWN])
    for slot in example.wanted:
        array, allowed = example.arrays[slot], subject.domains.get(slot)
        if not array.size or array.size > 400:
            continue
        ends = [x for x in _towards_the_ends(allowed) if x not in points]
        yield from _in_single_elements(example, slot, [x for x in [*points, *ends] if _is_allowed(x, allowed)])
        if subject.skips_nan and array.size > 1 and array.dtype.kind == "f" and np.isfinite(array).all():
            changed = array.copy()
            changed.flat[0] = np.nan
            yield _with(example, slot, changed, f"NaN in {example.named(slot)}")
        for point in (0.0, 1.0):
            if array.size > 1 and _is_allowed(point, allowed):
                changed = np.full_like(array, point)
                yield _with(example, slot, changed, f"{point:g} everywhere in {example.named(slot)}")
        yield from _without_a_line(example, slot, array, allowed)
        if allowed is None:
            yield from _other_sizes(example, slot, array, () if subject.factorizes else (np.inf, -np.inf))
        if array.dtype.kind == "c":
            yield _with(example, slot, array.real.astype(complex), f"real numbers in {example.named(slot)}")
            yield _with(example, slot, 1j * array.imag, f"imaginary numbers in {example.named(slot)}")
            yield _with(example, slot, array.conj(), f"{example.named(slot)} conjugated")
            yield _with(example, slot, array * (0.6 + 0.8j), f"{example.named(slot)} turned")
    if len(example.wanted) > 1:
        for values in itertools.islice(itertools.product((0.0, 1.0, -1.5), repeat=len(example.wanted)), 27):
            free = (-np.inf, np.inf)
            intervals = [subject.domains.get(slot, free) for slot in example.wanted]
            if all(low <= value <= high for value, (low, high) in zip(values, intervals, strict=True)):
                arrays = list(example.arrays)
                for slot, value in zip(example.wanted, values, strict=True):
                    if arrays[slot].size:
                        arrays[slot] = arrays[slot].copy()
                        arrays[slot].flat[0] = value
                told = ", ".join(f"{value:g}" for value in values)
                changed_too = tuple((slot, 0) for slot in example.wanted if arrays[slot].size)
                label = f"{told} in the first elements"
                yield example.with_arrays(arrays, label=label, family="special points", changed=changed_too)
    yield from _tied(example)


def _is_allowed(point: float, domain: tuple[float, float] | None) -> bool:
    return domain is None or domain[0] <= point <= domain[1]


def _in_single_elements(example: Example, slot: int, points: Sequence[float]) -> Iterator[Example]:
    """Yield the call with each point in one element of an argument."""
    for point, place in itertools.product(points, _places(example, slot)):
        changed = example.arrays[slot].copy()
        changed.flat[place] = point
        label = f"{point:g} in {example.named(slot)}" + (f", element {place}" if place else "")
        yield _with(example, slot, changed, label, ((slot, place),))


def _places(example: Example, slot: int) -> list[int]:
    """Return the first element, and the first one for which a mask or a class among the arguments is different."""
    shape = example.arrays[slot].shape
    beside = [array.reshape(-1) for array in example.arrays if array.dtype.kind in "biu" and array.shape == shape]
    return [0, *(int(np.argmax(kinds != kinds[0])) for kinds in beside[:1] if (kinds != kinds[0]).any())]


def _without_a_line(example: Example, slot: int, array: Array, domain: tuple[float, float] | None) -> Iterator[Example]:
    """Yield the call with zeros in one row or column, so that its norm is zero next to nonzero ones."""
    if array.ndim < 2 or not _is_allowed(0.0, domain):
        return
    for told, place in (("row", 0), ("column", (..., 0))):
        changed = array.copy()
        changed[place] = 0.0
        if changed.any():
            yield _with(example, slot, changed, f"a {told} of zeros in {example.named(slot)}")


def _towards_the_ends(domain: tuple[float, float] | None) -> list[float]:
    """Return the ends of a domain, and points halfway to distant ends."""
    ends = [end for end in domain or () if np.isfinite(end)]
    return ends + [float(np.copysign(np.sqrt(np.abs(end)), end)) for end in ends if abs(end) > 1e10]


def _other_sizes(example: Example, slot: int, array: Array, ends: Sequence[float]) -> Iterator[Example]:
    """Yield the call with numbers of other magnitudes, and in another order."""
    yield _with(example, slot, -array, f"{example.named(slot)} with the other sign")
    yield _with(example, slot, np.round(3 * array), f"whole numbers in {example.named(slot)}")
    yield _with(example, slot, 40 * array, f"large numbers in {example.named(slot)}")
    yield _with(example, slot, 1e-3 * array, f"small numbers in {example.named(slot)}")
    if array.size > 2:
        changed = array.copy()
        changed.flat[1:3] = 0.0
        yield _with(example, slot, changed, f"two zeros in {example.named(slot)}")
        ordered = np.sort(array, axis=None).reshape(array.shape)
        yield _with(example, slot, ordered, f"{example.named(slot)} in rising order")
        yield _with(
            example,
            slot,
            ordered.reshape(-1)[::-1].reshape(array.shape),
            f"{example.named(slot)} in falling order",
        )
    for end in ends:
        changed = array.copy()
        changed.flat[0] = end
        yield _with(example, slot, changed, f"{end} in {example.named(slot)}")


def _between(points: list[float], own: Sequence[float]) -> list[float]:
    """Return the constants in the operator's code, and points between neighbouring constants."""
    new = [x for x in dict.fromkeys([*own, *(-x for x in own)]) if x not in points]
    known = sorted([*points, *new])
    gaps = [(low + high) / 2 for low, high in itertools.pairwise(known) if low in new or high in new]
    return [*new, *(x for x in gaps if abs(x) < 1e3)]


def _tied(example: Example) -> Iterator[Example]:
    """Yield arguments with equal and opposite elements, within each argument and between arguments."""
    real = [slot for slot in example.wanted if example.arrays[slot].dtype.kind == "f" and example.arrays[slot].size]
    for slot in real:
        array = example.arrays[slot]
        if array.size < 2:
            continue
        opposite = array.copy()
        opposite.flat[-1] = -opposite.flat[0]
        yield attrs.evolve(_with(example, slot, opposite, f"opposite elements in {example.named(slot)}"), family="ties")
        for name, value in (("all", None), ("the two largest", -1), ("the two smallest", 0)):
            changed = array.copy().reshape(-1)
            if value is None:
                changed[:] = changed[0]
            else:
                order = np.argsort(changed)
                pair = order[-2:] if value else order[:2]
                changed[pair] = changed[pair[0]]
            yield attrs.evolve(
                _with(example, slot, changed.reshape(array.shape), f"{name} elements of {example.named(slot)} equal"),
                family="ties",
            )
        if array.ndim > 1:
            changed = array.copy()
            changed[..., -1] = changed[..., 0]
            label = f"elements of {example.named(slot)} equal along the last axis"
            yield attrs.evolve(_with(example, slot, changed, label), family="ties")
            changed = array.copy()
            changed[-1] = changed[0]
            label = f"elements of {example.named(slot)} equal along the first axis"
            yield attrs.evolve(_with(example, slot, changed, label), family="ties")
    for a, b in itertools.combinations(real, 2):
        one, other = example.arrays[a], example.arrays[b]
        if one.ndim and other.ndim > 1 and one.shape[-1] == other.shape[-1]:  # as for coordinates of points
            changed = other.copy()
            changed.reshape(-1, other.shape[-1])[0] = one.reshape(-1, one.shape[-1])[0]
            label = f"the first rows of {example.named(a)} and {example.named(b)} equal"
            yield attrs.evolve(_with(example, b, changed, label), family="ties")
        if np.broadcast_shapes(*_padded(one.shape, other.shape)) is None:
            continue
        for source, target in ((a, b), (b, a)):
            try:
                equal = np.broadcast_to(example.arrays[source], example.arrays[target].shape).copy()
            except ValueError:
                continue
            names = f"{example.named(a)} and {example.named(b)}"
            yield attrs.evolve(_with(example, target, equal, f"{names} equal"), family="ties")
            yield attrs.evolve(_with(example, target, -equal, f"{names} opposite"), family="ties")
            break


def _padded(*shapes: tuple[int, ...]) -> list[tuple[int, ...]]:
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        return [()]
    return list(shapes)


def _with(example: Example, slot: int, array: Array, label: str, changed: tuple[tuple[int, int], ...] = ()) -> Example:
    arrays = list(example.arrays)
    arrays[slot] = np.asarray(array, dtype=example.arrays[slot].dtype)
    return example.with_arrays(arrays, label=label, family="special points", changed=changed)


def numbers_among(example: Example) -> list[float]:
    """Return the numbers among the options."""
    found: list[float] = []

    def look(leaf: Any) -> Any:
        if type(leaf) in (int, float):
            found.append(leaf)
        return leaf

    mapped(look, (example.args, example.kwargs))
    return found


# -- complex numbers ---------------------------------------------------------------------------------------------------


def with_complex_numbers(example: Example) -> Iterator[Example]:
    """Yield the call with complex numbers in all arguments, and in each argument alone."""
    choices = [("complex arguments", example.wanted), *((f"{example.named(k)} complex", (k,)) for k in example.wanted)]
    for label, chosen in choices[: 1 if len(example.wanted) == 1 else None]:
        arrays = list(example.arrays)
        for k in chosen:
            array = arrays[k]
            arrays[k] = array + 1j * (0.3 + 0.5 * np.roll(array.reshape(-1), 1).reshape(array.shape))
        yield example.with_arrays(arrays, label=label, family="complex numbers")


# -- indices -----------------------------------------------------------------------------------------------------------


def with_other_indices(example: Example) -> Iterator[Example]:
    """Yield the call with repeated, negative and permuted integer arguments, and with other masks."""
    for slot, array in enumerate(example.arrays):
        if not array.size or array.dtype.kind not in "iub":
            continue
        named = example.named(slot)
        flat = array.reshape(-1)
        versions: list[tuple[str, Array]] = []
        if array.dtype.kind == "b":
            versions = [("inverted", ~array), ("all False", np.zeros_like(array)), ("all True", np.ones_like(array))]
        else:
            versions = [
                ("all zero", np.zeros_like(array)),
                ("one of them zero", np.where(np.arange(flat.size) == 0, 0, flat).reshape(array.shape)),
                ("all the same", np.full_like(array, flat[0])),
                ("all the largest", np.full_like(array, flat.max())),
                ("in other order", flat[::-1].reshape(array.shape)),
            ]
            if array.size > 1:
                repeated = flat.copy()
                repeated[-1] = repeated[0]
                versions.insert(0, ("repeated", repeated.reshape(array.shape)))
            if example.is_permutation(slot):
                versions = versions[-1:]
            elif array.dtype.kind == "i" and flat.min() >= 0:
                versions += [
                    ("counted from the end", -1 - array),
                    ("one of them negative", np.where(np.arange(flat.size) == 0, -1, flat).reshape(array.shape)),
                    ("each larger by 1", array + 1),  # for counts and powers; too large for an index
                ]
        for told, version in versions:
            arrays = list(example.arrays)
            arrays[slot] = version.astype(array.dtype)
            yield example.with_arrays(arrays, label=f"{named} {told}", family="indices")
