"""Cached dispatch of calls of `value_and_grad`: everything that depends only on the types of the arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from .argument_types import type_key
from .build import Program
from .ir import Var
from .read import Source
from .specialization import SourceSpecialization
from .value_types import Arr, Num
from .values import Path


@attrs.frozen(eq=False)
class GradientCall:
    """A cached dispatch of calls of `value_and_grad` for one combination of argument types.

    Attributes:
        specialization, source: the specialization and its source.
        floats: the numbers of the differentiated arguments that are floats.
        wanted: the numbers of the differentiated inputs, in the order of the arguments.
        chosen: the same, sorted.
        captured: the paths of the other inputs, which must not require gradients.
        numbers: the numbers of the differentiated arguments.
        count: the number of arguments if all of them are arrays, whose types `_arrays` checks; otherwise -1.
    """

    specialization: SourceSpecialization
    source: Source
    floats: tuple[int, ...]
    wanted: list[int]
    chosen: tuple[int, ...]
    captured: list[Path]
    numbers: tuple[int, ...]
    count: int

    def arguments(self, args: tuple[Any, ...]) -> Sequence[Any]:
        """Return the arguments, with floats as NumPy scalars."""
        return with_numpy_scalars(args, self.floats) if self.floats else args

    @property
    def is_current(self) -> bool:
        """Return whether the specialization still has this source."""
        return self.specialization.source is self.source

    def is_scalar_valued(self, program: Program) -> bool:
        """Return whether a program returns a single float and writes to no argument."""
        if program.mutated or len(program.results) != 1:
            return False
        kind = self.source.kinds[program.results[0]]
        return isinstance(kind, Num) and kind.dtype == "d"


def with_numpy_scalars(args: Sequence[Any], numbers: Sequence[int]) -> list[Any]:
    """Return the arguments with the floats at given positions converted to NumPy scalars."""
    given = list(args)
    for number in numbers:
        given[number] = np.float64(given[number])
    return given


def differentiated_types(args: Sequence[Any], numbers: Sequence[int]) -> tuple[tuple[Any, ...], tuple[int, ...]] | None:
    """Return the types of arguments some of which are differentiated, and which of these are floats.

    Arguments:
        args: the arguments.
        numbers: the numbers of the differentiated ones.

    Returns:
        The types, as for tensors that require grad, or None if one of them is not a float or an array of floats.
    """
    kinds = [type_key(arg) for arg in args]
    floats = []
    for number in numbers:
        kind = kinds[number] if number < len(kinds) else None
        if kind is float or kind is np.float64:
            floats.append(number)
            kinds[number] = ("d", 0, True, "scalar")
        elif type(kind) is tuple and len(kind) in (2, 3) and kind[0] == "d":
            kinds[number] = (*kind[:2], True)
        else:
            return None
    return tuple(kinds), tuple(floats)


def gradient_call(
    specialization: SourceSpecialization, count: int, numbers: Sequence[int], floats: tuple[int, ...]
) -> GradientCall | None:
    """Return the dispatch of calls that a specialization can run, or None if it cannot run them.

    Arguments:
        specialization: the specialization.
        count: the number of arguments.
        numbers, floats: the numbers of the differentiated arguments, and of the floats among them.
    """
    source = specialization.source
    if source is None or not isinstance(source.result, Var):
        return None
    wanted = []
    for number in numbers:
        found = [n for n, each in enumerate(source.inputs) if each.path.is_argument and each.path.root == number]
        if len(found) != 1 or source.inputs[found[0]].path.steps or source.inputs[found[0]].kind.dtype != "d":
            return None
        wanted += found
    captured = [each.path for n, each in enumerate(source.inputs) if n not in wanted]
    arrays = {each.path.root for each in source.inputs
              if each.path.is_argument and not each.path.steps and isinstance(each.kind, Arr)}
    return GradientCall(
        specialization, source, floats, wanted, tuple(sorted(wanted)), captured, tuple(numbers),
        count if arrays == set(range(count)) else -1,
    )
