"""A machine whose memory consists of numbered cells, the reference for the values of a program.

Each buffer is a row of real cells, and a tensor is an array of cell numbers (two per complex element). Views, writes
and overlaps are trivial in this model, so it serves as the reference.

The part of a buffer that gradients depend on is stored separately from its values, in histories. A base and its views
share one history; a detached tensor starts another one over the same memory. A write under `no_grad`, or through a
tensor with another history, changes values but not the history. For the derivative it is the addition of a constant.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

import attrs
import numpy as np

from ..type_aliases import Array
from . import program_ops as s
from .functions import ProgramFunction, ViewOp, view_of_array
from .indices import Index, index_value

Places = tuple[Array, ...]
H = TypeVar("H")


@attrs.define(eq=False)
class Cells(Generic[H]):
    """A tensor of the machine.

    Attributes:
        memory: the values of the cells of its buffer.
        places: for each element, the number of its cell; for a complex tensor, the numbers for the real and imaginary
            part.
        dtype: the dtype of its elements.
        history: the history of the buffer, shared with the base and its other views.
        base: the base if it is a view, or None.
        known: the state that a subclass keeps for each tensor.
    """

    memory: Array
    places: Places
    dtype: np.dtype[Any]
    history: H
    base: Cells[H] | None = None
    known: Any = None

    @property
    def numbers(self) -> Array:
        """The number of each element in row-major order."""
        return np.arange(self.places[0].size).reshape(self.places[0].shape)

    def value(self) -> Array:
        """Return the elements."""
        return from_cells(self.memory, self.places, self.dtype)


@attrs.frozen
class Given:
    """An operand: its value and its history (None if it is constant)."""

    value: Any
    known: Any = None


class ReferenceMachine(ABC, Generic[H]):
    """Run steps on cells; subclasses define histories and how they change."""

    def __init__(self) -> None:
        self.tensors: dict[str, Cells[H]] = {}
        self.recording = True
        self.ended: list[tuple[H, H]] = []  # histories that ended in place, and those that continue them

    # -- for subclasses ------------------------------------------------------------------------------------------------

    @abstractmethod
    def history(self, memory: Array) -> H:
        """Return the history of a buffer that has been constant so far."""

    @abstractmethod
    def known(self, tensor: Cells[H]) -> Any:
        """Return the history of a tensor."""

    @abstractmethod
    def apply(
        self, function: ProgramFunction, operands: Sequence[Given], keywords: Mapping[str, Any], value: Array
    ) -> Any:
        """Return the history of a function's result, whose value is `value`."""

    @abstractmethod
    def pick(self, known: Any, numbers: Array) -> Any:
        """Return the history of a copy of the elements with the given numbers in row-major order."""

    @abstractmethod
    def store(self, target: Cells[H], places: Places, source: Given, chosen: Any) -> None:
        """Record a write of `source`, broadcast to the shape of `places`, to the cells selected by `chosen`."""

    def moved(self, memory: Array, change: Array, writers: Sequence[H]) -> None:
        """Handle a change of the values of a buffer that only the histories `writers` record."""

    def taken(self, view: Cells[H], source: Cells[H], local: Cells[None]) -> None:
        """Handle a view of `source`; `local` is its window in the cells of `source`."""

    # -- the steps -----------------------------------------------------------------------------------------------------

    def leaf(self, leaf: s.Leaf) -> None:
        """Start with a leaf."""
        self._fresh(leaf.name, Given(leaf.array()))

    def view(self, step: s.View) -> None:
        source = self.tensors[step.tensor]
        if step.op.copies:
            self._copied(step.out, source, view_of_array(step.op, source.numbers))
        else:
            self._view(step.out, source.base or source if step.op.name == "as_strided" else source, step.op, None)

    def unpack(self, step: s.Unpack) -> None:
        for number, out in enumerate(step.outs):
            self._view(out, self.tensors[step.tensor], step.op, number)

    def _view(self, out: str, source: Cells[H], op: ViewOp, number: int | None) -> None:
        places, dtype = viewed(op, source.places, source.dtype, number)
        self.tensors[out] = view = Cells(source.memory, places, dtype, source.history, source.base or source)
        places, dtype = viewed(op, fresh_places(source.numbers.shape, source.dtype), source.dtype, number)
        self.taken(view, source, Cells(np.empty(0), places, dtype, None))

    def compute(self, step: s.Compute) -> None:
        self._fresh(step.out, self._result(step.function, step.operands))

    def several(self, step: s.Several) -> None:
        results = [(out, self._result(function, step.operands)) for out, function in step.parts()]
        for out, result in results:
            self._fresh(out, result)

    def call(self, step: s.Call) -> None:
        operands = self._operands(step.operands)
        value = step.numpy([operand.value for operand in operands])
        self._fresh(step.out, Given(value, self.apply(step.function, operands, dict(step.keywords), value)))

    def gather(self, step: s.Gather) -> None:
        source = self.tensors[step.tensor]
        self._copied(step.out, source, source.numbers[self._index(step.index)])

    def _copied(self, out: str, source: Cells[H], numbers: Array) -> None:
        self._fresh(out, self._picked(source, numbers))

    def detach(self, step: s.Detach) -> None:
        source = self.tensors[step.tensor]
        self.tensors[step.out] = Cells(source.memory, source.places, source.dtype, self.history(source.memory))

    def detach_in_place(self, step: s.DetachInPlace) -> None:
        source = self.tensors[step.tensor]
        history = self.history(source.memory)
        self.tensors[step.tensor] = Cells(source.memory, source.places, source.dtype, history)
        self.ended.append((source.history, history))

    def unrecorded_view(self, step: s.UnrecordedView) -> None:
        self.view(step.view)
        view = self.tensors[step.view.out]
        self.tensors[step.view.out] = Cells(view.memory, view.places, view.dtype, self.history(view.memory))

    def write(self, step: s.Write) -> None:
        target = self.tensors[step.target]
        self._write(target, target.places, self._result(step.function, (step.target, *step.operands)))

    def overwrite(self, step: s.Overwrite) -> None:
        target = self.tensors[step.target]
        self._write(target, target.places, self._operand(step.value))

    def assign(self, step: s.Assign) -> None:
        target = self.tensors[step.target]
        self._write(target, _indexed(target.places, self._index(step.index)), self._operand(step.value))

    def augment(self, step: s.Augment) -> None:
        target = self.tensors[step.target]
        index = self._index(step.index)
        operands = [self._picked(target, np.asarray(target.numbers[index])), self._operand(step.value)]
        self._write(target, _indexed(target.places, index), self._elementwise(step.function, operands))

    def ufunc_out(self, step: s.UfuncOut) -> None:
        target = self.tensors[step.target]
        chosen = ... if step.where is None else np.broadcast_to(np.array(step.where), target.numbers.shape)
        self._write(target, target.places, self._result(step.function, step.operands), chosen)

    def no_grad(self, step: s.NoGrad) -> None:
        self.recording = False
        for inner in step.steps:
            inner.run(self)
        self.recording = True

    # -- operands and results ------------------------------------------------------------------------------------------

    def _index(self, index: Index) -> Index:
        return index_value(index, lambda name: self.tensors[name].value())

    def _operand(self, operand: s.Operand) -> Given:
        if isinstance(operand, str):
            tensor = self.tensors[operand]
            return Given(tensor.value(), self.known(tensor))
        return Given(operand.array() if isinstance(operand, s.Table) else operand)

    def _operands(self, operands: Sequence[s.Operand]) -> list[Given]:
        return [self._operand(operand) for operand in operands]

    def _result(self, function: ProgramFunction, operands: Sequence[s.Operand]) -> Given:
        return self._elementwise(function, self._operands(operands))

    def _elementwise(self, function: ProgramFunction, operands: Sequence[Given]) -> Given:
        value = np.asarray(function.numpy(*(operand.value for operand in operands)))
        return Given(value, self.apply(function, operands, {}, value))

    def _picked(self, source: Cells[H], numbers: Array) -> Given:
        numbers = np.asarray(numbers)
        known = self.known(source)
        return Given(source.value().reshape(-1)[numbers], None if known is None else self.pick(known, numbers))

    def _fresh(self, name: str, given: Given) -> None:
        value = np.asarray(given.value)
        places = fresh_places(value.shape, value.dtype)
        memory = np.zeros(len(places) * value.size)
        self.tensors[name] = tensor = Cells(memory, places, value.dtype, self.history(memory))
        self._write(tensor, places, given)

    def _write(self, target: Cells[H], places: Places, source: Given, chosen: Any = ...) -> None:
        memory = target.memory
        old_values = memory.copy()
        for cells, part in zip(places, parts(np.asarray(source.value), target.dtype, places[0].shape), strict=True):
            memory[cells[chosen]] = part[chosen]
        history = target.history
        for old, new in self.ended:  # the base continues with another history
            history = new if old is history else history
        histories = [history] if self.recording and target.dtype.kind in "fc" else []
        for old, new in reversed(self.ended):  # earlier views include later writes
            if any(new is history for history in histories):
                histories.append(old)
        self.moved(memory, memory - old_values, histories)
        for history in histories:
            self.store(attrs.evolve(target, history=history), places, source, chosen)


def fresh_places(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Places:
    """Return the cells of a tensor with a buffer of its own."""
    numbers = np.arange(int(np.prod(shape))).reshape(shape)
    return (2 * numbers, 2 * numbers + 1) if dtype.kind == "c" else (numbers,)


def _indexed(places: Places, index: Any) -> Places:
    return tuple(np.asarray(cells[index]) for cells in places)


def from_cells(values: Array, places: Places, dtype: np.dtype[Any]) -> Array:
    """Return the elements at `places` of cells with the given values, which are along the last dimension."""
    if dtype.kind == "c":
        return np.asarray(values[..., places[0]] + 1j * values[..., places[1]])
    return np.asarray(values[..., places[0]]).astype(dtype)


def parts(value: Array, dtype: np.dtype[Any], shape: tuple[int, ...]) -> list[Array]:
    """Return the parts of `value`, broadcast to `shape`, for each cell of an element of `dtype`."""
    while value.ndim > len(shape):  # NumPy assigns (1, 3) to (3,)
        value = value[0]
    if dtype.kind == "c":
        return [np.broadcast_to(value.real, shape), np.broadcast_to(value.imag, shape)]
    real = np.broadcast_to(value.real, shape)
    return [real if dtype.kind in "fb" else np.trunc(real)]


def viewed(op: ViewOp, places: Places, dtype: np.dtype[Any], number: int | None) -> tuple[Places, np.dtype[Any]]:
    """Return the cells and the dtype of a view, or of one of several views, of a tensor with the cells `places`."""
    if op.name in ("real", "imag"):
        return (places[op.name == "imag"],), np.dtype(float)
    if op.name == "view_as_real":
        return (np.stack(places, axis=-1),), np.dtype(float)
    if op.name == "view_as_complex":
        return (places[0][..., 0], places[0][..., 1]), np.dtype(complex)
    if op.name == "as_strided":
        return tuple(_strided(cells.reshape(-1), *op.args) for cells in places), dtype
    taken = [view_of_array(op, cells) for cells in places]
    return tuple(taken if number is None else (several[number] for several in taken)), dtype


def _strided(cells: Array, size: Sequence[int], stride: Sequence[int], offset: int) -> Array:
    numbers = np.full(tuple(size), offset)
    for i, step in enumerate(stride):
        numbers = numbers + (np.arange(size[i]) * step).reshape(-1, *(1,) * (len(size) - 1 - i))
    taken: Array = cells[numbers]
    return taken
