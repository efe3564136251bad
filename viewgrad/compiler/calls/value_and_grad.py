"""A program and its gradient run together, for the value of a function and nothing else: what optimisers ask for.

Nobody else sees the buffers of such a run. They are laid out once, and used again by the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, Final

import numpy as np

from ..backends.numba_codegen import RAISED
from ..callbacks import raise_failure
from ..compiled import CompiledProgram

__all__ = ["ValueAndGradRunner", "together"]

Array = np.ndarray[Any, Any]
MOST: Final = 1_000_000  # elements; in larger buffers, the ceremony of a run is no part of its time
ONE: Final = np.ones(1)


class ValueAndGradRunner:
    """A program that gives one number, run with its gradient.

    Arguments:
        program: the program, whose buffers are parts of arrays.
        sizes: of its rooms, those that must begin with zeros first.
        zeros: how many these are.
        fixed: arrays that no run writes to: tables, and gradients of the results.
        forward, backward: what picks the arguments of the kernels out of all arrays.
        place: of the number: which of all arrays it is in, and where.
        made: for each input that is wanted, its shape and whether each element is written; None for zeros.
    """

    def __init__(
        self, program: CompiledProgram, sizes: Sequence[int], zeros: int, fixed: Sequence[Array],
        forward: Callable[..., tuple[Array, ...]], backward: Callable[..., tuple[Array, ...]], place: tuple[int, int],
        made: Sequence[tuple[tuple[int, ...], bool]],
    ) -> None:
        self.kernels = program.forward, program.backward
        self.sizes = sizes
        self.zeros = zeros
        self.fixed = fixed
        self.forward = forward
        self.backward = backward
        self.place = place
        self.made = [(np.empty if unset else np.zeros, shape, len(shape) == 1) for shape, unset in made]
        self._spare: list[list[Array]] = []

    def run(self, inputs: list[Array]) -> tuple[Any, list[Array]] | None:
        """The number, and the gradients of the inputs that are wanted; None where the program does not fit.

        Arguments:
            inputs: arrays in row order that can be written to, and are not.
        """
        try:
            rooms = self._spare.pop()
        except IndexError:
            rooms = [np.zeros(size) for size in self.sizes]
        else:
            for room in rooms[: self.zeros]:
                room.fill(0.0)
        gradients = []
        flat = []
        for new, shape, is_flat in self.made:
            array = new(shape)
            gradients.append(array)
            flat.append(array if is_flat else array.reshape(-1))
        arrays = [*inputs, *rooms, *self.fixed, *flat]
        forward, backward = self.kernels
        failed = forward(*self.forward(arrays))
        if failed < 0 and failed != RAISED:
            number, at = self.place
            value = arrays[number][at]
            failed = backward(*self.backward(arrays))
        if failed == RAISED:
            raise_failure()
        if not self._spare:
            self._spare.append(rooms)
        return None if failed >= 0 else (value, gradients)


def together(program: CompiledProgram, output: int) -> ValueAndGradRunner | None:
    """A program that gives one number, to be run with its gradient; None where that is not worth a way of its own.

    Arguments:
        program: the program.
        output: the number of the result that it gives.
    """
    layout = program.layout()
    if layout is None or layout.results[output][1] != () or sum(room.size for room in layout.rooms) > MOST:
        return None
    rooms = sorted(layout.rooms, key=lambda room: room.unset)
    fixed = dict(program.tables)
    for number, (seed, (_, shape, *_)) in enumerate(zip(layout.seeds, layout.results)):
        if seed is not None:
            fixed[seed.name] = ONE if number == output else np.zeros(int(np.prod(shape)))
    names = [base.name for base in program.inputs]
    names += [*(room.name for room in rooms), *fixed, *(base.name for base, _, _ in layout.made)]
    places = {name: number for number, name in enumerate(names)}
    buffer, _, start, *_ = layout.results[output]
    if buffer not in places:
        return None
    forward, backward = (_picked([places[name] for name in kernel.parameters]) for kernel in layout.kernels)
    return ValueAndGradRunner(
        program, [room.size for room in rooms], sum(1 for room in rooms if not room.unset), list(fixed.values()),
        forward, backward, (places[buffer], start), [(shape, unset) for _, shape, unset in layout.made],
    )


def _picked(numbers: list[int]) -> Callable[..., tuple[Array, ...]]:
    """What picks some of a sequence."""
    if len(numbers) > 1:
        return itemgetter(*numbers)
    return lambda arrays: tuple([arrays[number] for number in numbers])
