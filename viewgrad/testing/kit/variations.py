"""Calls derived from the user's: at special points, of other shapes, with other options."""

from __future__ import annotations

import itertools
import typing
from collections.abc import Iterator
from typing import Any, Final

import attrs
import numpy as np

from .arguments import Example, Slot, mapped
from .subject import Subject

__all__ = [
    "at_special_points",
    "in_double_precision",
    "of_other_shapes",
    "with_numbers_for_tensors",
    "with_other_indices",
    "with_other_options",
]

Array = np.ndarray[Any, Any]

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
    1e-4,
    -1e-4,
    1e5,
    np.pi / 2,
)
SMALL: Final = 12  # elements of an array that is varied


def in_double_precision(example: Example) -> Example:
    """The same call in double precision."""
    return example.with_arrays(
        [array.astype(np.result_type(array, float)) if array.dtype.kind in "fc" else array for array in example.arrays]
    )


# -- special points ----------------------------------------------------------------------------------------------------


def at_special_points(subject: Subject, example: Example) -> Iterator[Example]:
    """The call with some elements, or all, at points where formulas go wrong."""
    allowed = _allowed(subject, example)
    options = sorted({float(x) for x in _numbers(example) if np.isfinite(x) and abs(x) < 1e6})
    points = list(dict.fromkeys([*POINTS[:3], *options, *(-x for x in options), *POINTS[3:]]))
    for slot in example.wanted:
        array = example.arrays[slot]
        if not array.size or array.size > 400:
            continue
        for point in points:
            if allowed is None or allowed[0] <= point <= allowed[1]:
                changed = array.copy()
                changed.flat[0] = point
                yield _with(example, slot, changed, f"{point:g} in {example.named(slot)}", ((slot, 0),))
        for point in (0.0, 1.0):
            if array.size > 1 and (allowed is None or allowed[0] <= point <= allowed[1]):
                changed = np.full_like(array, point)
                yield _with(example, slot, changed, f"{point:g} everywhere in {example.named(slot)}")
        if allowed is None:
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
        if array.dtype.kind == "c":
            yield _with(example, slot, array.real.astype(complex), f"real numbers in {example.named(slot)}")
            yield _with(example, slot, 1j * array.imag, f"imaginary numbers in {example.named(slot)}")
            yield _with(example, slot, array.conj(), f"{example.named(slot)} conjugated")
    if len(example.wanted) > 1:
        for values in itertools.islice(itertools.product((0.0, 1.0, -1.5), repeat=len(example.wanted)), 27):
            if allowed is None or all(allowed[0] <= value <= allowed[1] for value in values):
                arrays = list(example.arrays)
                for slot, value in zip(example.wanted, values, strict=True):
                    if arrays[slot].size:
                        arrays[slot] = arrays[slot].copy()
                        arrays[slot].flat[0] = value
                told = ", ".join(f"{value:g}" for value in values)
                yield example.with_arrays(arrays, label=f"{told} in the first elements", family="special points")
    yield from _tied(example)


def _tied(example: Example) -> Iterator[Example]:
    """Equal elements: within each argument, and between them."""
    real = [slot for slot in example.wanted if example.arrays[slot].dtype.kind == "f" and example.arrays[slot].size]
    for slot in real:
        array = example.arrays[slot]
        if array.size < 2:
            continue
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
        if np.broadcast_shapes(*_padded(one.shape, other.shape)) is None:
            continue
        for source, target in ((a, b), (b, a)):
            try:
                equal = np.broadcast_to(example.arrays[source], example.arrays[target].shape).copy()
            except ValueError:
                continue
            label = f"{example.named(a)} and {example.named(b)} equal"
            yield attrs.evolve(_with(example, target, equal, label), family="ties")
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


def _allowed(subject: Subject, example: Example) -> tuple[float, float] | None:
    return subject.domain


def _numbers(example: Example) -> list[float]:
    """The numbers among the options."""
    found: list[float] = []

    def look(leaf: Any) -> Any:
        if type(leaf) in (int, float):
            found.append(leaf)
        return leaf

    mapped(look, (example.args, example.kwargs))
    return found


# -- indices -----------------------------------------------------------------------------------------------------------


def with_other_indices(example: Example) -> Iterator[Example]:
    """The call with repeated, negative and permuted numbers in its arguments of integers, and with other masks."""
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
                ("all the same", np.full_like(array, flat[0])),
                ("all the largest", np.full_like(array, flat.max())),
                ("in other order", flat[::-1].reshape(array.shape)),
            ]
            if array.size > 1:
                repeated = flat.copy()
                repeated[-1] = repeated[0]
                versions.insert(0, ("repeated", repeated.reshape(array.shape)))
            if array.dtype.kind == "i" and flat.min() >= 0:
                versions += [
                    ("counted from the end", -1 - array),
                    ("one of them negative", np.where(np.arange(flat.size) == 0, -1, flat).reshape(array.shape)),
                ]
        for told, version in versions:
            arrays = list(example.arrays)
            arrays[slot] = version.astype(array.dtype)
            yield example.with_arrays(arrays, label=f"{named} {told}", family="indices")


# -- shapes ------------------------------------------------------------------------------------------------------------


def of_other_shapes(example: Example) -> Iterator[Example]:
    """The call with arguments of other lengths and dimensions, related as those given are."""
    floats = [k for k, array in enumerate(example.arrays)]
    shapes = [array.shape for array in example.arrays]
    lengths = sorted({n for shape in shapes for n in shape})
    proposals: list[tuple[str, list[tuple[int, ...]]]] = []

    def relabelled(table: dict[int, int]) -> list[tuple[int, ...]]:
        return [tuple(table.get(n, n) for n in shape) for shape in shapes]

    for n in lengths:
        for new in (1, 0, 2, 3, 5):
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
    if any(len(shape) > 1 for shape in shapes):
        proposals.append(("a dimension less", [shape[1:] for shape in shapes]))
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
        proposals.append(("operands that are broadcast", [(2, 1) if i % 2 else (1, 3) for i in range(len(shapes))]))
        proposals.append(("operands that are broadcast", [(3,) if i % 2 else (2, 1) for i in range(len(shapes))]))
    seen = {tuple(shapes)}
    for label, proposed in proposals:
        if tuple(proposed) in seen or sum(int(np.prod(shape)) for shape in proposed) > 200:
            continue
        seen.add(tuple(proposed))
        arrays = [resized(array, shape) for array, shape in zip(example.arrays, proposed, strict=True)]
        unlike = any(len(shape) != len(other) for shape, other in zip(shapes, proposed, strict=True))
        label = f"{label}: {', '.join(map(str, proposed))}"
        yield example.with_arrays(arrays, label=label, family="shapes", lenient=unlike)


def resized(array: Array, shape: tuple[int, ...]) -> Array:
    """Values like those of `array` in another shape, none of them twice where they are numbers of floating point."""
    size = int(np.prod(shape))
    if not array.size:
        return np.full(shape, 0.5).astype(array.dtype)
    flat = np.resize(array.reshape(-1), size)
    if array.dtype.kind in "fc" and size > array.size:
        rounds = np.arange(size) // array.size
        flat = flat * (1 - 0.03 * rounds / (1 + 0.03 * rounds)).astype(flat.real.dtype)
    return np.ascontiguousarray(flat.reshape(shape)) if shape else np.array(flat[0])


# -- options -----------------------------------------------------------------------------------------------------------


def with_other_options(subject: Subject, example: Example, most: int = 60) -> Iterator[Example]:
    """The call with other values of its options: axes, flags, numbers; one changed at a time, and pairs of them."""
    ndim = max((array.ndim for array in example.arrays), default=0)
    choices: list[tuple[Any, list[Any]]] = []  # (where, values)
    parameters = list(subject.parameters.values())
    for i, value in enumerate(example.args):
        name = parameters[i].name if i < len(parameters) else ""
        annotation = parameters[i].annotation if i < len(parameters) else None
        choices.append((i, _alternatives(name, value, ndim, annotation)))
    for name, value in example.kwargs.items():
        annotation = next((p.annotation for p in parameters if p.name == name), None)
        choices.append((name, _alternatives(name, value, ndim, annotation)))
    given = {p.name for p in parameters[: len(example.args)]} | set(example.kwargs)
    for parameter in parameters:
        if parameter.name in given or parameter.default is parameter.empty:
            continue
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        if subject.custom is not None and parameter.kind is not parameter.POSITIONAL_OR_KEYWORD:
            continue
        choices.append((parameter.name, _alternatives(parameter.name, parameter.default, ndim, parameter.annotation)))
    # Two options of the same value (the ends of an interval, say) are a case of its own, which nobody asked for.
    numbers = _numbers(example)
    choices = [
        (where, [value for value in values if type(value) is not float or value not in numbers])
        for where, values in choices
        if values
    ]
    count = 0
    for where, values in choices:
        for value in values:
            yield _optioned(example, {where: value})
            count += 1
    for (a, values), (b, others) in itertools.combinations(choices, 2):
        for value, other in itertools.product(values[:6], others[:3]):
            if count >= most:
                return
            count += 1
            yield _optioned(example, {a: value, b: other})


def with_numbers_for_tensors(example: Example) -> Iterator[Example]:
    """The call with a plain number, or an array that is no tensor, in the place of one of several tensors."""
    if len(example.wanted) < 2:
        return
    places: list[tuple[Any, Any]] = [*enumerate(example.args), *example.kwargs.items()]
    for place, arg in places:
        if not isinstance(arg, Slot) or arg.number not in example.wanted or not example.arrays[arg.number].size:
            continue
        array = example.arrays[arg.number]
        rest = tuple(k for k in example.wanted if k != arg.number)
        for told, value in (("a number", array.flat[-1].item()), ("an array", array.copy())):
            args, kwargs = list(example.args), dict(example.kwargs)
            if isinstance(place, int):
                args[place] = value
            else:
                kwargs[place] = value
            label = f"{told} as {example.named(arg.number)}"
            yield attrs.evolve(
                example, args=tuple(args), kwargs=kwargs, wanted=rest, label=label, family="options", lenient=True
            )


def _optioned(example: Example, changes: dict[Any, Any]) -> Example:
    args, kwargs = list(example.args), dict(example.kwargs)
    told = []
    for where, value in changes.items():
        if isinstance(where, int):
            args[where] = value
            told.append(f"argument {where} = {value!r}")
        else:
            kwargs[where] = value
            told.append(f"{where}={value!r}")
    return attrs.evolve(example, args=tuple(args), kwargs=kwargs, label=", ".join(told), family="options")


def _alternatives(name: str, value: Any, ndim: int, annotation: Any) -> list[Any]:
    """Other values of an option, judged by its name, its value and its annotation."""
    if _has_slot(value):
        return []
    if isinstance(annotation, str) and "Literal[" in annotation:
        try:
            annotation = eval(annotation, {"Literal": typing.Literal, "typing": typing})
        except Exception:
            annotation = None
    if typing.get_origin(annotation) is typing.Literal:
        return [other for other in typing.get_args(annotation) if other != value]
    if isinstance(value, bool):
        return [not value]
    axis = name.lower().strip("_") in (
        "axis",
        "dim",
        "axes",
        "dims",
        "axis1",
        "axis2",
        "dim1",
        "dim2",
        "source",
        "destination",
    )
    if axis and (value is None or isinstance(value, int)):
        axes: list[Any] = [*range(-ndim, ndim)]
        if value is None or name in ("axis", "dim"):
            axes += [None]
            if ndim > 1:
                axes += [(0, -1), (-1, 0), (1,), tuple(range(ndim))]
        return [other for other in axes if other != value or other is None is not value]
    if isinstance(value, tuple) and value and all(type(item) is int for item in value):
        if axis or name in ("perm", "permutation"):
            options = [value[::-1]]
            if all(0 <= item < ndim for item in value):
                options.append(tuple(item - ndim for item in value))
            return [option for option in options if option != value]
        return []
    if type(value) is int:
        return [other for other in dict.fromkeys([value + 1, 0, 1, -1, 2, 3, -2, value - 1, -value]) if other != value]
    if type(value) is float:
        return [other for other in dict.fromkeys([2 * value, 0.5 * value, 1.0, 2.0, 0.5, 0.0, 3.0]) if other != value]
    return []


def _has_slot(value: Any) -> bool:
    found: list[Any] = []
    mapped(lambda leaf: found.append(leaf) if isinstance(leaf, Slot) else None, value)
    return bool(found)
