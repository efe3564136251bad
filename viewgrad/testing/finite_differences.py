"""Finite differences of a program: the effect of small perturbations of its leaves on its result.

All perturbations are propagated through the program at once, alongside the unperturbed values. Values that gradients
ignore (detached tensors, writes under `no_grad`) are not perturbed. The derivatives are extrapolated from three step
sizes, which also yields an error estimate.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from ..type_aliases import Array
from . import program_ops as s
from .functions import ProgramFunction
from .reference_machine import Cells, Given, Places, ReferenceMachine, from_cells, parts

if TYPE_CHECKING:
    from .program import Program

FIRST = 4e-3  # the step for first derivatives
SECOND = 1.6e-2  # the step for second derivatives


@attrs.frozen
class Estimate:
    """A numerical gradient with an error estimate."""

    gradient: Array
    uncertainty: float


def finite_differences(program: Program) -> dict[str, Estimate]:
    """Return the numerical gradient of a program's loss with respect to each leaf that requires grad."""
    start, spread = _directions(program)
    factors = (1, -1, 2, -2, 0.5, -0.5)
    change = _change(program, np.concatenate([start * (FIRST * factor) for factor in factors]), spread).reshape(6, -1)
    slopes = [(change[i] - change[i + 1]) / (2 * FIRST * factors[i]) for i in (2, 0, 4)]
    return _as_estimates(program, slopes, spread)


def second_differences(program: Program, weights: Mapping[str, Array]) -> dict[str, Estimate]:
    """Return the product of the Hessian and weights, computed numerically."""
    start, spread = _directions(program)
    weight = np.concatenate(
        [_real_cells(weights[leaf.name]) for leaf in program.differentiable_leaves] or [np.empty(0)]
    )
    factors = (1, -1, 2, -2, 0.5, -0.5)
    sides = [start + weight, start - weight]
    moves = np.concatenate([side * (SECOND * factor) for side in sides for factor in factors])
    change = _change(program, moves, spread).reshape(2, 6, -1)
    curvatures = [(change[:, i] + change[:, i + 1]) / (SECOND * factors[i]) ** 2 for i in (2, 0, 4)]
    return _as_estimates(program, [(along[0] - along[1]) / 4 for along in curvatures], spread)


def _as_estimates(program: Program, estimates: Sequence[Array], spread: dict[str, slice]) -> dict[str, Estimate]:
    """Return the Richardson limit of second-order estimates for step sizes 2, 1 and 1/2, with its error."""
    once = [(4 * fine - coarse) / 3 for coarse, fine in itertools.pairwise(estimates)]
    limit = (16 * once[1] - once[0]) / 15
    off = np.abs(limit - once[1])
    gradients = {}
    for leaf in program.differentiable_leaves:
        cells = limit[spread[leaf.name]]
        if leaf.kind == "c":
            cells = cells[0::2] + 1j * cells[1::2]
        gradients[leaf.name] = Estimate(cells.reshape(leaf.shape), float(off[spread[leaf.name]].max(initial=0.0)))
    return gradients


def _directions(program: Program) -> tuple[Array, dict[str, slice]]:
    """Return a row for each real component of the leaves, and the components of each leaf."""
    spread = {}
    count = 0
    for leaf in program.differentiable_leaves:
        width = int(np.prod(leaf.shape)) * (2 if leaf.kind == "c" else 1)
        spread[leaf.name] = slice(count, count + width)
        count += width
    return np.eye(count), spread


def _change(program: Program, moves: Array, spread: dict[str, slice]) -> Array:
    """Return the change of the loss for each perturbation."""
    if not len(moves):
        return np.empty(0)
    machine = Perturbed({name: moves[:, columns] for name, columns in spread.items()})
    program.run(machine)
    loss = machine.known(machine.tensors[program.loss])
    return np.zeros(len(moves)) if loss is None else np.real(loss)


def _real_cells(value: Array) -> Array:
    flat = np.ravel(value)
    return np.stack([flat.real, flat.imag], axis=-1).reshape(-1) if flat.dtype.kind == "c" else flat


@attrs.define(eq=False)
class Moves:
    """The displacement of each cell for each perturbation (row); None for zero."""

    cells: Array | None = None


class Perturbed(ReferenceMachine[Moves]):
    """Propagate perturbations of the leaves through a program.

    Arguments:
        moves: by leaf name, an array with a row for each perturbation and a column for each real cell.
    """

    def __init__(self, moves: Mapping[str, Array]) -> None:
        super().__init__()
        self.moves = moves

    def leaf(self, leaf: s.Leaf) -> None:
        super().leaf(leaf)
        if leaf.name in self.moves:
            self.tensors[leaf.name].history.cells = self.moves[leaf.name].copy()

    def history(self, memory: Array) -> Moves:
        return Moves()

    def known(self, tensor: Cells[Moves]) -> Array | None:
        if tensor.history.cells is None or tensor.dtype.kind not in "fc":
            return None
        return from_cells(tensor.history.cells, tensor.places, tensor.dtype)

    def apply(
        self, function: ProgramFunction, operands: Sequence[Given], keywords: Mapping[str, Any], value: Array
    ) -> Any:
        moves = [operand.known for operand in operands if operand.known is not None]
        if not moves or not self.recording:
            return None
        if function.elementwise:
            ndim = value.ndim
            moved = [
                operand.value if operand.known is None else _aligned(operand.value + operand.known, ndim)
                for operand in operands
            ]
            return np.asarray(function.numpy(*moved)) - value
        rows = []
        for i in range(len(moves[0])):
            row = [operand.value if operand.known is None else operand.value + operand.known[i] for operand in operands]
            rows.append(
                np.asarray(function.numpy(row, **keywords) if function.listed else function.numpy(*row, **keywords))
            )
        return np.stack(rows) - value

    def pick(self, known: Array, numbers: Array) -> Array:
        return known.reshape(len(known), -1)[:, numbers]

    def store(self, target: Cells[Moves], places: Places, source: Given, chosen: Any) -> None:
        history = target.history
        move = source.known
        if move is None and history.cells is None:
            return
        if history.cells is None:
            history.cells = np.zeros((len(move), target.memory.size))
        move = np.zeros(len(history.cells)) if move is None else move
        shape = places[0].shape
        moved = parts(_aligned(move, len(shape)), target.dtype, (len(move), *shape))
        for cells, part in zip(places, moved, strict=True):
            history.cells.T[cells[chosen].reshape(-1)] = part[:, chosen].reshape(len(move), -1).T


def _aligned(move: Array, ndim: int) -> Array:
    """Insert or drop dimensions of length 1 after the first, which counts perturbations, so that `ndim` others remain.
    """
    while move.ndim - 1 > ndim:  # NumPy assigns (1, 3) to (3,)
        move = move[:, 0]
    return move.reshape(len(move), *(1,) * (ndim + 1 - move.ndim), *move.shape[1:])
