"""Execution of programs without aliasing, by viewgrad's own operators: every write creates a new value.

The value of a buffer is an immutable flat tensor. A view is a gather from the latest one. A write is a new flat tensor,
with the written elements taken from the source and all others from the old tensor. There are therefore no views to keep
in sync and no in-place writes, and gradients do not depend on how viewgrad implements these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from ..tensor.tensor import Tensor
from ..type_aliases import Array
from . import program_ops as s
from .functions import ProgramFunction
from .reference_machine import Cells, Given, Places, ReferenceMachine, from_cells


@attrs.define(eq=False)
class Flat:
    """The flat tensor that represents a buffer's history.

    Attributes:
        cells: the buffer after the last recorded write, as a flat tensor of real cells.
        shift: the changes made by unrecorded writes since then.
    """

    cells: Tensor
    shift: Array


@attrs.frozen
class Taken:
    """The value of a tensor without its shift, and the buffer that it was gathered from."""

    of: Tensor
    value: Tensor


class FunctionalOracle(ReferenceMachine[Flat]):
    """Run a program without views and in-place writes.

    Attributes:
        leaves: for each leaf that requires grad, the tensor to differentiate with respect to.
    """

    def __init__(self) -> None:
        super().__init__()
        self.leaves: dict[str, Tensor] = {}
        self._histories: list[tuple[Array, Flat]] = []

    def tensor(self, name: str) -> Tensor:
        """Return the current value of a tensor of the program."""
        return self.known(self.tensors[name])  # type: ignore[no-any-return]

    def origin(self, name: str) -> Tensor:
        """Return the tensor to differentiate with respect to in place of a tensor: for a base, the buffer of its views.
        """
        tensor = self.tensors[name]
        return tensor.history.cells if tensor.base is None else self._unshifted(tensor)

    def gradient(self, name: str, of_origin: Array) -> Array:
        """Return the gradient with respect to a tensor, given the gradient with respect to its origin."""
        tensor = self.tensors[name]
        return of_origin if tensor.base is not None else from_cells(of_origin, tensor.places, tensor.dtype)

    def leaf(self, leaf: s.Leaf) -> None:
        super().leaf(leaf)
        if leaf.requires_grad:
            tensor = self.tensors[leaf.name]
            value = self.leaves[leaf.name] = Tensor(leaf.array(), requires_grad=True)
            self.store(tensor, tensor.places, Given(leaf.array(), value), ...)
            tensor.known = Taken(tensor.history.cells, value)

    def history(self, memory: Array) -> Flat:
        flat = Flat(Tensor(memory), np.zeros(memory.shape))
        self._histories.append((memory, flat))
        return flat

    def moved(self, memory: Array, change: Array, writers: Sequence[Flat]) -> None:
        for other, flat in self._histories:
            if other is memory and flat not in writers:
                flat.shift = flat.shift + change

    def known(self, tensor: Cells[Flat]) -> Any:
        if tensor.dtype.kind not in "fc":
            return None
        value = self._unshifted(tensor)
        shift = tensor.history.shift
        return value + Tensor(from_cells(shift, tensor.places, tensor.dtype)) if shift.any() else value

    def _unshifted(self, tensor: Cells[Flat]) -> Tensor:
        cells = tensor.history.cells
        if tensor.known is None or tensor.known.of is not cells:
            tensor.known = Taken(cells, gathered(cells, tensor.places, tensor.dtype))
        return tensor.known.value  # type: ignore[no-any-return]

    def taken(self, view: Cells[Flat], source: Cells[Flat], local: Cells[None]) -> None:
        if source.dtype.kind in "fc":
            value = gathered(flat_of(self._unshifted(source)), local.places, local.dtype)
            view.known = Taken(view.history.cells, value)

    def apply(
        self, function: ProgramFunction, operands: Sequence[Given], keywords: Mapping[str, Any], value: Array
    ) -> Any:
        if not self.recording:
            return None
        tensors = [constant(operand.value) if operand.known is None else operand.known for operand in operands]
        return function.operator(tensors, **keywords) if function.listed else function.operator(*tensors, **keywords)

    def pick(self, known: Tensor, numbers: Array) -> Any:
        return elements(known, numbers) if self.recording else None

    def store(self, target: Cells[Flat], places: Places, source: Given, chosen: Any) -> None:
        value = Tensor(source.value) if source.known is None else source.known
        numbers = np.arange(value.size).reshape(value.shape)
        while numbers.ndim > places[0].ndim:
            numbers = numbers[0]
        numbers = np.broadcast_to(numbers, places[0].shape)[chosen]
        history = target.history
        before, shift = history.cells, history.shift
        cells = before + Tensor(shift)
        history.shift = np.zeros(cells.shape)
        touched = np.zeros(cells.shape, bool)
        pieces = [value.real] if target.dtype.kind != "c" else [value.real, value.imag]
        for piece, numbered in zip(pieces, places, strict=True):
            origin = np.full(cells.shape, -1)
            origin[numbered[chosen]] = numbers
            written = origin >= 0
            touched |= written
            cells = cells * ~written
            # The new value depends on the source even if it is empty.
            cells = cells + (elements(piece, origin * written) * written if piece.size else piece.sum())
        history.cells = cells
        if any(ended is history for ended, _ in self.ended):
            self._keep_untouched(history, before, shift, touched)

    def _keep_untouched(self, history: Flat, before: Tensor, shift: Array, touched: Array) -> None:
        """Keep the values of views of an ended history that a write has not touched."""
        for view in self.tensors.values():
            known, places = view.known, view.places
            if view.history is not history or known is None or known.of is not before:
                continue
            if not any(touched[numbered].any() for numbered in places):
                value = known.value
                if shift.any():
                    value = value + Tensor(from_cells(shift, places, view.dtype))
                view.known = Taken(history.cells, value)


def constant(value: Any) -> Any:
    """Convert a constant operand: arrays become tensors, numbers stay numbers."""
    return value if type(value) in (int, float, complex) else Tensor(value)


def elements(tensor: Tensor, numbers: Array) -> Tensor:
    """Return a copy of the elements with the given numbers in row-major order."""
    numbers = np.asarray(numbers)
    index = np.unravel_index(numbers.reshape(-1), tensor.shape) if tensor.ndim else (np.zeros(numbers.size, int),)
    source = tensor if tensor.ndim else tensor.reshape(1)
    picked: Tensor = source[index].reshape(numbers.shape)
    return picked


def flat_of(value: Tensor) -> Tensor:
    """Return the elements of a tensor as a flat tensor of real cells."""
    if not value.is_complex():
        return elements(value, np.arange(value.size))
    numbers = np.arange(2 * value.size)
    cells: Tensor = elements(value.real, numbers // 2) * (numbers % 2 == 0)
    cells = cells + elements(value.imag, numbers // 2) * (numbers % 2 == 1)
    return cells


def gathered(cells: Tensor, places: Places, dtype: np.dtype[Any]) -> Tensor:
    """Return the elements at `places` of a flat tensor of real cells."""
    real = elements(cells, places[0])
    return real + elements(cells, places[1]) * 1j if dtype.kind == "c" else real
