"""Drawn programs in JAX, which has no in-place writes: a buffer is a flat array of cells, and a write creates a new
one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import jax
import jax.numpy as jnp
import numpy as np

from ...type_aliases import Array
from .. import program_ops as s
from ..functions import ProgramFunction
from ..program import Program
from ..reference_machine import Cells, Given, Places, ReferenceMachine
from .unsupported import Unsupported

jax.config.update("jax_enable_x64", True)

OTHER_NAMES = {"neg": "negative", "mul": "multiply", "sub": "subtract", "div": "divide", "pow": "power"}


def gradients(program: Program) -> tuple[dict[str, Array], dict[str, Array | None]]:
    """Return the values of all tensors, and the gradients of the loss with respect to the leaves.

    Raises:
        Unsupported: for functions that JAX does not have.
    """
    if any(leaf.single for leaf in program.leaves):
        raise Unsupported("other rounding")
    machines: list[InJax] = []

    def loss(leaves: dict[str, Any]) -> Any:
        machine = InJax(leaves)
        machines.append(machine)
        program.run(machine)
        value = machine.known(machine.tensors[program.loss])
        return jnp.asarray(machine.tensors[program.loss].value() if value is None else value).real.sum()

    leaves = {leaf.name: jnp.asarray(leaf.array()) for leaf in program.differentiable_leaves}
    found = jax.grad(loss)(leaves)
    values = {name: tensor.value() for name, tensor in machines[0].tensors.items()}
    # JAX returns the conjugate of viewgrad's gradient.
    return values, {name: np.conj(np.asarray(gradient)) for name, gradient in found.items()}


@attrs.define(eq=False)
class Buffer:
    """The cells after the last recorded write, and what other histories have added since."""

    cells: Any
    shift: Array


class InJax(ReferenceMachine[Buffer]):
    """Run a program on JAX arrays.

    Arguments:
        leaves: the values of the leaves that are differentiated.
    """

    def __init__(self, leaves: Mapping[str, Any]) -> None:
        super().__init__()
        self._leaves = leaves
        self._histories: list[tuple[Array, Buffer]] = []

    def leaf(self, leaf: s.Leaf) -> None:
        super().leaf(leaf)
        if leaf.name in self._leaves:
            tensor = self.tensors[leaf.name]
            self.store(tensor, tensor.places, Given(leaf.array(), self._leaves[leaf.name]), ...)

    def history(self, memory: Array) -> Buffer:
        buffer = Buffer(jnp.asarray(memory), np.zeros(memory.shape))
        self._histories.append((memory, buffer))
        return buffer

    def moved(self, memory: Array, change: Array, writers: Sequence[Buffer]) -> None:
        for other, buffer in self._histories:
            if other is memory and buffer not in writers:
                buffer.shift = buffer.shift + change

    def known(self, tensor: Cells[Buffer]) -> Any:
        if tensor.dtype.kind not in "fc":
            return None
        buffer = tensor.history
        cells = buffer.cells + buffer.shift
        real = cells[tensor.places[0]]
        return real + 1j * cells[tensor.places[1]] if tensor.dtype.kind == "c" else real

    def apply(
        self, function: ProgramFunction, operands: Sequence[Given], keywords: Mapping[str, Any], value: Array
    ) -> Any:
        if not self.recording:
            return None
        name = OTHER_NAMES.get(function.name, function.ufunc or function.name)
        method = getattr(jnp, name, None) if function.name != "clone" else jnp.array
        if method is None or not function.module:
            raise Unsupported(function.name)
        given = [operand.value if operand.known is None else operand.known for operand in operands]
        given = [item if isinstance(item, int | float | complex) else jnp.asarray(item) for item in given]
        result = method(given, **keywords) if function.listed else method(*given, **keywords)
        if result.shape != value.shape:
            raise Unsupported(f"{function.name} of another shape")
        return result

    def pick(self, known: Any, numbers: Array) -> Any:
        return known.reshape(-1)[numbers] if self.recording else None

    def store(self, target: Cells[Buffer], places: Places, source: Given, chosen: Any) -> None:
        value = jnp.asarray(source.value if source.known is None else source.known)
        while value.ndim > places[0].ndim:
            value = value[0]
        value = jnp.broadcast_to(value, places[0].shape)
        buffer = target.history
        cells = buffer.cells + buffer.shift
        buffer.shift = np.zeros(buffer.shift.shape)
        parts = [value.real] if target.dtype.kind != "c" else [value.real, value.imag]
        for part, numbers in zip(parts, places, strict=True):
            written = numbers[chosen].reshape(-1)
            # If an element is written twice, the last value is used.
            _, last = np.unique(written[::-1], return_index=True)
            keep = written.size - 1 - last
            cells = cells.at[written[keep]].set(part[chosen].reshape(-1)[keep])
        buffer.cells = cells
