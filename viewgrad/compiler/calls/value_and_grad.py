"""Value and gradient, as needed by optimizers: of any result, and by a program in a single run.

The buffers of such a run are not visible elsewhere, so they are allocated once and reused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, Final

import numpy as np

from ...autograd.api import grad as eager_grad
from ...func.arguments import scalar, split_output
from ...tensor.tensor import Tensor
from ...type_aliases import Array
from ..backends.codegen import RAISED
from ..callbacks import raise_failure
from ..runtime import CompiledProgram

LARGEST: Final = 1_000_000  # elements; for larger buffers the overhead of a run is negligible
ONE: Final = np.ones(1)


class ValueAndGradRunner:
    """Runs a program with a scalar result together with its gradient.

    Arguments:
        program: the program, whose buffers are in arenas.
        sizes: the sizes of its arenas; those that are cleared before a run come first.
        zeros: the number of arenas to clear.
        fixed: arrays that no run writes to: tables, and the gradients of the results.
        forward, backward: functions that select the arguments of the kernels from all arrays.
        position: the array that contains the result, and its index there.
        new_buffers: for each gradient, its shape and whether all of its elements are written.
    """

    def __init__(
        self, program: CompiledProgram, sizes: Sequence[int], zeros: int, fixed: Sequence[Array],
        forward: Callable[..., tuple[Array, ...]], backward: Callable[..., tuple[Array, ...]],
        position: tuple[int, int], new_buffers: Sequence[tuple[tuple[int, ...], bool]],
    ) -> None:
        self.kernels: Any = (program.code.forward, program.code.backward)
        self.sizes = sizes
        self.zeros = zeros
        self.fixed = fixed
        self.forward = forward
        self.backward = backward
        self.position = position
        self.new_buffers = [(np.empty if unset else np.zeros, shape, len(shape) == 1) for shape, unset in new_buffers]
        self._spare: list[list[Array]] = []

    @classmethod
    def of(cls, program: CompiledProgram, output: int) -> ValueAndGradRunner | None:
        """Return the runner of a program, or None if its result is not a scalar or it has buffers outside arenas.

        Arguments:
            program: the program.
            output: the number of the result to differentiate.
        """
        layout = program.layout()
        if layout is None or layout.results[output][1] != () or sum(arena.size for arena in layout.arenas) > LARGEST:
            return None
        arenas = sorted(layout.arenas, key=lambda arena: arena.unset)
        fixed = dict(program.code.tables)
        for number, (seed, (_, shape, *_)) in enumerate(zip(layout.seeds, layout.results)):
            if seed is not None:
                fixed[seed.name] = ONE if number == output else np.zeros(int(np.prod(shape)))
        names = [base.name for base in program.inputs]
        names += [*(arena.name for arena in arenas), *fixed, *(base.name for base, _, _ in layout.gradients)]
        positions = {name: number for number, name in enumerate(names)}
        buffer, _, start, *_ = layout.results[output]
        if buffer not in positions:
            return None
        forward, backward = (_selector([positions[name] for name in kernel.parameters]) for kernel in layout.kernels)
        return cls(
            program, [arena.size for arena in arenas], sum(1 for arena in arenas if not arena.unset),
            list(fixed.values()), forward, backward, (positions[buffer], start),
            [(shape, unset) for _, shape, unset in layout.gradients],
        )

    def run(self, inputs: list[Array]) -> tuple[Any, list[Array]] | None:
        """Return the value and the gradients, or None if a guard fails.

        Arguments:
            inputs: writeable arrays in C order, which are not written to.
        """
        try:
            arenas = self._spare.pop()
        except IndexError:
            arenas = [np.zeros(size) for size in self.sizes]
        else:
            for arena in arenas[: self.zeros]:
                arena.fill(0.0)
        gradients = []
        flat = []
        for new, shape, is_flat in self.new_buffers:
            array = new(shape)
            gradients.append(array)
            flat.append(array if is_flat else array.reshape(-1))
        arrays = [*inputs, *arenas, *self.fixed, *flat]
        forward, backward = self.kernels
        failed = forward(*self.forward(arrays))
        if failed < 0 and failed != RAISED:
            number, at = self.position
            value = arrays[number][at]
            failed = backward(*self.backward(arrays))
        if failed == RAISED:
            try:
                raise_failure()
            except Exception:  # the function itself raises it again, or handles it
                failed = 0
        if not self._spare:
            self._spare.append(arenas)
        return None if failed >= 0 else (value, gradients)


def _selector(numbers: list[int]) -> Callable[..., tuple[Array, ...]]:
    """Return a function that selects some elements of a sequence."""
    if len(numbers) > 1:
        return itemgetter(*numbers)
    return lambda arrays: tuple([arrays[number] for number in numbers])


def value_and_gradient_of(output: Any, leaf: Tensor) -> tuple[float, Array]:
    """Return the number that a function returned, and its gradient, which is zero if it does not depend on the leaf.

    Raises:
        DifferentiabilityError: if the function did not return one real number.
    """
    value = scalar(split_output(output, False, "value_and_grad"), "value_and_grad")
    (gradient,) = eager_grad(value, [leaf], allow_unused=True) if value.requires_grad else (None,)
    return value._array.item(), np.zeros(leaf.shape) if gradient is None else gradient._array
