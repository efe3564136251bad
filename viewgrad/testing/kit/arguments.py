"""The arguments of a call: nested structures with slots for tensors and arrays.

A call is stored as its structure, in which each tensor is a `Slot`, and the arrays for the slots.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import attrs
import numpy as np

from ...operators.language.spec import Operator
from ...tensor.tensor import Tensor
from ...type_aliases import Array
from .literals import display

PERMUTATIONS: Final = frozenset("order perm permutation".split())  # names of arguments


@attrs.frozen
class Slot:
    """The placeholder of a tensor among the arguments, identified by a number."""

    number: int


@attrs.frozen(eq=False)
class Example:
    """A call: its arguments with slots for tensors, and their values.

    Arguments:
        args: the positional arguments.
        kwargs: the keyword arguments.
        arrays: the values of the tensors, by slot.
        wanted: the slots with respect to which to differentiate.
        label: the special feature of the call, for messages; "" for the user's call.
        family: the property that the call is an example of.
        changed: the elements of interest, as (slot, flat index); empty for all.
        lenient: whether an error in the backward pass counts as a refusal, since the call differs from the user's.
        broadcast: whether some arguments are broadcast to others, unlike in the user's call.
        names: the known names of the positional parameters.
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    arrays: tuple[Array, ...]
    wanted: tuple[int, ...]
    label: str = ""
    family: str = "gradients"
    changed: tuple[tuple[int, int], ...] = ()
    lenient: bool = False
    broadcast: bool = False
    names: tuple[str, ...] = ()

    def call(self, function: Callable[..., Any], operands: Sequence[Any]) -> Any:
        """Call `function` with `operands` in the slots."""
        args, kwargs = self.filled(operands)
        return function(*args, **kwargs)

    def filled(self, operands: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments with `operands` in the slots."""

        def put(leaf: Any) -> Any:
            return operands[leaf.number] if isinstance(leaf, Slot) else leaf

        return mapped(put, self.args), mapped(put, self.kwargs)

    def with_arrays(self, arrays: Sequence[Array], **changes: Any) -> Example:
        """Return the call with other values."""
        return attrs.evolve(self, arrays=tuple(np.asarray(array) for array in arrays), **changes)

    @property
    def placed(self) -> list[tuple[int | str, Any]]:
        """The arguments, each with its position or keyword."""
        return [*enumerate(self.args), *self.kwargs.items()]

    def named(self, number: int) -> str:
        """Return the name of a slot in messages: the name of its parameter, or its position among the arguments."""
        for place, arg in self.placed:
            if isinstance(arg, Slot) and arg.number == number:
                return self.place_named(place)
            if number in slots_in(arg):
                return f"tensor {slots_in(arg).index(number)} of {self.place_named(place)}"
        return f"tensor {number}"

    def place_named(self, place: int | str) -> str:
        """Return the name of an argument in messages.

        Arguments:
            place: its position, or its keyword.
        """
        if isinstance(place, str):
            return place
        return self.names[place] if place < len(self.names) else f"argument {place}"

    def is_permutation(self, number: int) -> bool:
        """Return whether integers are a permutation and, judging by the name of the argument, are meant to be one."""
        flat = self.arrays[number].reshape(-1)
        named = self.named(number).lower() in PERMUTATIONS and flat.dtype.kind in "iu"
        return named and bool((np.sort(flat) == np.arange(flat.size)).all())

    @property
    def size(self) -> int:
        """The number of real parameters to differentiate with respect to."""
        return sum(self.arrays[k].size * (2 if self.arrays[k].dtype.kind == "c" else 1) for k in self.wanted)

    def __str__(self) -> str:
        def text(value: Any) -> str:
            if isinstance(value, Slot):
                array = self.arrays[value.number]
                return f"{array.dtype.name}{list(array.shape)}"
            return display(tuple(value) if isinstance(value, tuple) else value, text) or repr(value)

        return ", ".join([*map(text, self.args), *(f"{name}={text(value)}" for name, value in self.kwargs.items())])


def mapped(function: Callable[[Any], Any], value: Any) -> Any:
    """Apply a function to each leaf of nested lists, tuples, named tuples and dicts."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(mapped(function, item) for item in value))
    if isinstance(value, tuple | list) and type(value) in (tuple, list):
        return type(value)([mapped(function, item) for item in value])
    if type(value) is dict:
        return {key: mapped(function, item) for key, item in value.items()}
    return function(value)


def slots_in(value: Any) -> list[int]:
    """Return the numbers of the slots in a structure, in order."""
    found: list[int] = []
    mapped(lambda leaf: found.append(leaf.number) if isinstance(leaf, Slot) else None, value)
    return found


def example_of(args: Sequence[Any], kwargs: dict[str, Any], operator: Operator | None = None) -> Example:
    """Return the call with these arguments, with the tensors and arrays in them replaced by slots.

    If any tensor requires grad, those that do are differentiated; otherwise all of float or complex dtype are. Array
    arguments of a declared operator that are not tensors stay in place.
    """
    given: list[Any] = []

    def take(leaf: Any) -> Any:
        if isinstance(leaf, Tensor) or (isinstance(leaf, np.ndarray) and leaf.dtype.kind in "biufc"):
            given.append(leaf)
            return Slot(len(given) - 1)
        return leaf

    arguments = () if operator is None else operator.signature.arguments
    baseline = {a.name for a in arguments if a.kind not in ("tensor", "tensors")}
    names = [a.name for a in arguments]
    structure = (
        tuple(
            arg if i < len(names) and names[i] in baseline and not _has_tensor(arg) else mapped(take, arg)
            for i, arg in enumerate(args)
        ),
        {
            name: arg if name in baseline and not _has_tensor(arg) else mapped(take, arg)
            for name, arg in dict(kwargs).items()
        },
    )
    arrays = tuple(np.array(leaf._array if isinstance(leaf, Tensor) else leaf) for leaf in given)
    floats = tuple(k for k, array in enumerate(arrays) if array.dtype.kind in "fc")
    requiring = tuple(k for k in floats if isinstance(given[k], Tensor) and given[k].requires_grad)
    return Example(*structure, arrays, requiring or floats)


def _has_tensor(value: Any) -> bool:
    found: list[Any] = []
    mapped(lambda leaf: found.append(leaf) if isinstance(leaf, Tensor) else None, value)
    return bool(found)


def outputs_of(result: Any) -> list[tuple[str, Tensor]]:
    """Return the tensors in a function's result, each with the expression that selects it."""
    found: list[tuple[str, Tensor]] = []

    def look(value: Any, path: str) -> None:
        if isinstance(value, Tensor):
            found.append((path, value))
        elif isinstance(value, tuple) and hasattr(value, "_fields"):
            for name, item in zip(value._fields, value, strict=True):
                look(item, f"{path}.{name}")
        elif isinstance(value, tuple | list):
            for i, item in enumerate(value):
                look(item, f"{path}[{i}]")
        elif isinstance(value, dict):
            for key, item in value.items():
                look(item, f"{path}[{key!r}]")

    look(result, "")
    return found
