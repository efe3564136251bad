"""Calls derived from the user's: with other options, by keyword, or with plain numbers instead of tensors."""

from __future__ import annotations

import enum
import itertools
import typing
from collections.abc import Iterator
from typing import Any, Final

import attrs
import numpy as np

from ...type_aliases import Array
from .arguments import Example, Slot, mapped
from .operator_under_test import OperatorUnderTest
from .special_values import numbers_among


def with_other_options(subject: OperatorUnderTest, example: Example, most: int = 60) -> Iterator[Example]:
    """Yield the call with other options (axes, flags, numbers), changed one at a time and in pairs."""
    ndim = max((array.ndim for array in example.arrays), default=0)
    choices: list[tuple[Any, list[Any]]] = []  # (where, values)
    parameters = list(subject.parameters.values())
    for i, value in enumerate(example.args):
        name = parameters[i].name if i < len(parameters) else ""
        annotation = parameters[i].annotation if i < len(parameters) else None
        choices.append((i, _alternatives(subject, name, value, ndim, annotation)))
    for name, value in example.kwargs.items():
        annotation = next((p.annotation for p in parameters if p.name == name), None)
        choices.append((name, _alternatives(subject, name, value, ndim, annotation)))
    given = {p.name for p in parameters[: len(example.args)]} | set(example.kwargs)
    for parameter in parameters:
        if parameter.name in given or parameter.default is parameter.empty:
            continue
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        if subject.custom is not None and parameter.kind is not parameter.POSITIONAL_OR_KEYWORD:
            continue
        others = _alternatives(subject, parameter.name, parameter.default, ndim, parameter.annotation)
        choices.append((parameter.name, others))
    # Two options with equal values (such as the ends of an interval) are a special case that the user did not request.
    numbers = numbers_among(example)
    own = set(subject.contract.options)
    choices = [
        (where, [value for value in values if type(value) is not float or value not in numbers or where in own])
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
    """Yield the call with one of several tensors replaced by a plain number or array."""
    if len(example.wanted) < 2:
        return
    for place, arg in example.placed:
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


def by_keyword(subject: OperatorUnderTest, example: Example) -> Iterator[Example]:
    """Yield the call with positional arguments passed by keyword: all, or all but the first."""
    parameters = list(subject.parameters.values())[: len(example.args)]
    if len(parameters) < len(example.args) or any(p.kind is not p.POSITIONAL_OR_KEYWORD for p in parameters):
        return
    for start in dict.fromkeys((0, min(1, len(parameters)))):
        named = {p.name: value for p, value in list(zip(parameters, example.args, strict=True))[start:]}
        if named:
            label = f"{', '.join(named)} by keyword"
            yield attrs.evolve(
                example, args=example.args[:start], kwargs=named | example.kwargs, label=label, family="options",
                lenient=True,
            )  # fmt: skip


NO_NUMBERS: Final = frozenset(
    "out dtype rng seed generator random_state key name axis axes dim dims shape device mode".split()
)
NO_TENSORS: Final = NO_NUMBERS | {"size", "order", "norm"}
MASKS: Final = frozenset("where mask".split())


def with_values_for_none(subject: OperatorUnderTest, example: Example) -> Iterator[Example]:
    """Yield the call with a number, or a constant tensor, for each argument whose default is None."""
    if not example.wanted:
        return
    positional = dict(zip(subject.parameters, example.args, strict=False))
    given = {name for name, value in (positional | example.kwargs).items() if value is not None}
    shape = example.arrays[example.wanted[0]].shape
    for parameter in subject.parameters.values():
        name = parameter.name.lower()
        if parameter.default is not None or parameter.name in given or name in NO_NUMBERS:
            continue
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            continue
        if subject.custom is not None and parameter.kind is parameter.KEYWORD_ONLY:
            continue
        for value in () if name in MASKS else (1, 2, 0.7):  # strides and lengths are integers
            yield _given_for_none(example, [*positional], parameter.name, value, f"{parameter.name}={value}")
        if name in NO_TENSORS:
            continue
        for told, wide in (("a tensor", shape), ("a vector", shape[-1:]), ("a number", ())):
            number = len(example.arrays)
            array: Array = np.resize(0.3 + 0.55 * np.abs(np.cos(1.0 + np.arange(11.0))), wide)
            if name in MASKS:
                array = array > 0.6
            changed = example.with_arrays([*example.arrays, array])
            label = f"{told} as {parameter.name}="
            yield _given_for_none(changed, [*positional], parameter.name, Slot(number), label)


def _given_for_none(example: Example, positional: list[str], name: str, value: Any, label: str) -> Example:
    """Return the call with a value for an argument, by position if None was passed by position."""
    args, kwargs = list(example.args), dict(example.kwargs)
    if name in positional:
        args[positional.index(name)] = value
    else:
        kwargs[name] = value
    return attrs.evolve(example, args=tuple(args), kwargs=kwargs, label=label, family="options", lenient=True)


def _optioned(example: Example, changes: dict[Any, Any]) -> Example:
    args, kwargs = list(example.args), dict(example.kwargs)
    told = []
    for where, value in changes.items():
        if isinstance(where, int):
            args[where] = value
            told.append(f"{example.place_named(where)}={value!r}")
        else:
            kwargs[where] = value
            told.append(f"{where}={value!r}")
    return attrs.evolve(example, args=tuple(args), kwargs=kwargs, label=", ".join(told), family="options")


def _alternatives(subject: OperatorUnderTest, name: str, value: Any, ndim: int, annotation: Any) -> list[Any]:
    """Return other values for an option, guessed from its name, value and annotation."""
    if name in subject.contract.options:
        return [other for other in subject.contract.options[name] if type(other) is not type(value) or other != value]
    if type(value) is dict:
        others = {key: _alternatives(subject, str(key), item, ndim, None) for key, item in value.items()}
        return [value | {key: other} for key in value for other in others[key][:6]]
    if _has_slot(value):
        return []
    told = _in_annotation(annotation)
    if told:
        return [other for other in told if other != value]
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, enum.Enum):
        return [other for other in type(value) if other is not value]
    if type(value) is str or (value is None and name in WORDS):
        known = [*WORDS.get(name, ()), *(subject.strings if type(value) is str else ())]
        return [other for other in dict.fromkeys(known) if other != value]
    if type(value) is list:
        return _other_lists(value)
    axis = name.lower().strip("_") in AXES
    if axis and (value is None or isinstance(value, int)):
        return _other_axes(name, value, ndim)
    if isinstance(value, tuple) and value and all(type(item) is int for item in value):
        if axis or name in ("perm", "permutation"):
            options = [value[::-1]]
            if all(0 <= item < ndim for item in value):
                options.append(tuple(item - ndim for item in value))
                options += [(*value[:i], value[i] - ndim, *value[i + 1 :]) for i in range(len(value))]
        else:
            options = [value[::-1], (value[0] + 1, *value[1:]), (*value[:-1], value[-1] + 1), (0, *value[1:])]
        return [option for option in dict.fromkeys(options) if option != value]
    default = [d for d in [_default_of(subject, name)] if type(d) is type(value)]
    if type(value) is int:
        numbers = [*default, value + 1, 0, 1, -1, 2, 3, -2, value - 1, -value]
        return [other for other in dict.fromkeys(numbers) if other != value]
    if type(value) is float:
        floats = [*default, 2 * value, -value, 0.5 * value, 1.0, 2.0, 0.5, 0.0, 3.0]
        return [other for other in dict.fromkeys(floats) if other != value]
    return []


def _default_of(subject: OperatorUnderTest, name: str) -> Any:
    parameter = subject.parameters.get(name)
    return None if parameter is None else parameter.default


def _in_annotation(annotation: Any) -> tuple[Any, ...]:
    """Return the values allowed by a `Literal`."""
    if isinstance(annotation, str) and "Literal[" in annotation:
        try:
            annotation = eval(annotation, {"Literal": typing.Literal, "typing": typing})
        except Exception:
            return ()
    return typing.get_args(annotation) if typing.get_origin(annotation) is typing.Literal else ()


# The values of options with these names in NumPy and similar libraries.
WORDS: Final[dict[str, tuple[str, ...]]] = {
    "norm": ("backward", "ortho", "forward"),
    "mode": ("full", "same", "valid", "wrap", "clip", "constant", "edge", "reflect"),
    "reduction": ("mean", "sum", "none"),
    "order": ("C", "F"),
    "side": ("left", "right"),
    "indexing": ("ij", "xy"),
    "method": ("linear", "lower", "higher", "nearest", "midpoint"),
    "interpolation": ("linear", "lower", "higher", "nearest", "midpoint"),
    "UPLO": ("L", "U"),
}


def _other_lists(value: list[Any]) -> list[Any]:
    """Return the list of numbers with one more, with one less, and in another order."""
    if not value or not all(type(item) in (int, float) for item in value):
        return []
    return [other for other in (value[::-1], [*value, value[0]], value[:-1]) if other and other != value]


def _other_axes(name: str, value: int | None, ndim: int) -> list[Any]:
    axes: list[Any] = [*range(-ndim, ndim)]
    if value is None or name in ("axis", "dim"):
        axes += [None]
        if ndim > 1:
            axes += [(0, -1), (-1, 0), (1,), tuple(range(ndim))]
    return [other for other in axes if other != value or other is None is not value]


AXES: Final = frozenset("axis dim axes dims axis1 axis2 dim1 dim2 source destination".split())


def _has_slot(value: Any) -> bool:
    found: list[Any] = []
    mapped(lambda leaf: found.append(leaf) if isinstance(leaf, Slot) else None, value)
    return bool(found)
