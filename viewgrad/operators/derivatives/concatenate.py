"""The derivatives of operators that concatenate, repeat and rearrange tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from ...tensor.creation import as_operand
from ...tensor.shapes import with_leading_ones
from ...type_aliases import Array
from ..composites import composite
from ..define import row
from ..language.namespace import formula_function
from .helpers import call, plain

LINEAR: Final = "auto_linear"

concatenate = row(
    "concatenate(tensors, axis=0)", lambda tensors, axis=0: np.concatenate(tensors, axis),
    {"tensors": "split_gradient(grad, tensors.shapes, axis)"},
    forward_derivative=LINEAR, lists=["tensors"], dtype_kinds="fc", numpy=[np.concatenate],
    doc="The tensors concatenated along an existing dimension.",
).function
row(
    "stack(tensors, axis=0)", lambda tensors, axis=0: np.stack(tensors, axis),
    {"tensors": "unstack_gradient(grad, axis)"},
    forward_derivative=LINEAR, lists=["tensors"], dtype_kinds="fc", numpy=[np.stack],
    doc="The tensors, of equal shape, stacked along a new dimension.",
)
row(
    "tile(self, reps)", lambda self, reps: np.tile(self, reps), {"self": "tile_gradient(grad, self.shape, reps)"},
    forward_derivative=LINEAR, dtype_kinds="fc", numpy=[np.tile], returns_0d_arrays=True,
    doc="The whole tensor repeated `reps` times along each dimension.",
)
row(
    "repeat(self, repeats, axis=None)", lambda self, repeats, axis=None: np.repeat(self, whole_repeats(repeats), axis),
    {"self": "repeat_gradient(grad, repeats, self.shape, axis)", "repeats": "not_differentiable"},
    forward_derivative=LINEAR, dtype_kinds="fc", numpy=[np.repeat],
    doc="Each element, or each slice along `axis`, repeated.",
)
row(
    "roll(self, shift, axis=None)", lambda self, shift, axis=None: np.roll(self, shift, axis),
    {"self": "roll_back(grad, shift, axis)"}, forward_derivative=LINEAR, dtype_kinds="fc", numpy=[np.roll],
    returns_0d_arrays=True,
    doc="The elements rolled along `axis`, or in the flattened tensor.",
)
row(
    "pad(self, pad_width, mode='constant', constant_values=0)",
    lambda self, pad_width, mode="constant", constant_values=0: padded(self, pad_width, mode, constant_values),
    {"self": "pad_gradient(grad, self.shape, pad_width, mode)"},
    forward_derivative="pad(self_t, pad_width, mode)", dtype_kinds="fc", numpy=[np.pad], returns_0d_arrays=True,
    doc="The tensor padded with constants, or (`edge`, `reflect`, `symmetric`, `wrap`) with its own elements.",
)


def padded(array: Array, pad_width: Any, mode: Any, constant_values: Any) -> Array:
    if mode not in ("constant", "edge", "reflect", "symmetric", "wrap"):
        raise ValueError(f"pad of tensors supports the modes constant, edge, reflect, symmetric and wrap, not {mode!r}")
    if mode == "constant":
        return np.pad(array, pad_width, mode, constant_values=constant_values)
    return np.pad(array, pad_width, mode)


# -- views in reverse order --------------------------------------------------------------------------------------------


@composite(np.flip)
def flip(self: Any, axis: int | tuple[int, ...] | None = None) -> Any:
    """Return a view with the elements in reverse order along `axis`, or along every dimension if omitted."""
    reverse = [slice(None)] * self.ndim
    for dim in range(self.ndim) if axis is None else normalize_axis_tuple(axis, self.ndim):
        reverse[dim] = slice(None, None, -1)
    return self[tuple(reverse)]


@composite(np.fliplr)
def fliplr(self: Any) -> Any:
    """Return a view with the second dimension in reverse order."""
    if self.ndim < 2:
        raise ValueError(f"fliplr requires at least 2 dimensions, not {self.ndim}")
    return flip(self, 1)


@composite(np.flipud)
def flipud(self: Any) -> Any:
    """Return a view with the first dimension in reverse order."""
    if self.ndim < 1:
        raise ValueError("flipud requires at least 1 dimension, not 0")
    return flip(self, 0)


@composite(np.rot90)
def rot90(self: Any, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Any:
    """Return a view rotated by `k` quarter turns in the plane of two dimensions, from the first to the second."""
    first, second = axes
    if self.ndim < 2 or first == second or abs(first - second) == self.ndim:
        raise ValueError(f"rot90 requires two different axes, not {tuple(axes)} of a tensor of {self.ndim} dimensions")
    k %= 4
    if k == 2:
        return flip(flip(self, first), second)
    if k == 3:
        return flip(self.swapaxes(first, second), second)
    return flip(self, second).swapaxes(first, second) if k else self[...]


# -- concatenation along fixed dimensions ------------------------------------------------------------------------------


def at_least(tensors: Sequence[Any], ndim: int) -> list[Any]:
    """Return the tensors with dimensions of length 1 inserted as by `numpy.atleast_2d` and `numpy.atleast_3d`."""
    shaped: Any = np.atleast_2d if ndim == 2 else np.atleast_3d
    return [tensor.reshape(shaped(tensor._array).shape) for tensor in map(as_operand, tensors)]


@composite(np.vstack, method=False)
def vstack(tensors: Sequence[Any]) -> Any:
    """Stack vectors as rows, or concatenate tensors along the first dimension."""
    return concatenate(at_least(tensors, 2), 0)


@composite(np.hstack, method=False)
def hstack(tensors: Sequence[Any]) -> Any:
    """Concatenate tensors along the second dimension, and vectors along their only dimension."""
    given = [tensor if tensor.ndim else tensor.reshape(1) for tensor in map(as_operand, tensors)]
    return concatenate(given, 0 if given and given[0].ndim == 1 else 1)


@composite(np.dstack, method=False)
def dstack(tensors: Sequence[Any]) -> Any:
    """Concatenate tensors along the third dimension."""
    return concatenate(at_least(tensors, 3), 2)


@composite(np.column_stack, method=False)
def column_stack(tensors: Sequence[Any]) -> Any:
    """Stack vectors as columns, or concatenate matrices along the second dimension."""
    given = [tensor if tensor.ndim > 1 else tensor.reshape(-1, 1) for tensor in map(as_operand, tensors)]
    return concatenate(given, 1)


@composite(np.append)
def append(self: Any, values: Any, axis: int | None = None) -> Any:
    """Append values along `axis`, or to the flattened tensor."""
    return concatenate([as_operand(self), as_operand(values)], axis)

# -- functions of formulas ---------------------------------------------------------------------------------------------


@formula_function
def split_gradient(grad: Any, shapes: list[tuple[int, ...]], axis: int | None) -> list[Any]:
    """Split the gradient of concatenated tensors into the parts of each tensor."""
    if axis is None:
        parts = split_gradient(grad, [(math.prod(shape),) for shape in shapes], 0)
        return [part.reshape(shape) for part, shape in zip(parts, shapes)]
    axis %= grad.ndim
    before = (slice(None),) * axis
    parts = []
    start = 0
    for shape in shapes:
        parts.append(grad[(*before, slice(start, start + shape[axis]))])
        start += shape[axis]
    return parts


@formula_function
def roll_back(grad: Any, shift: Any, axis: Any) -> Any:
    """Roll in the opposite direction."""
    return np.roll(grad, -shift if isinstance(shift, (int, np.integer)) else tuple(-int(n) for n in shift), axis)


@formula_function
def unstack_gradient(grad: Any, axis: int) -> list[Any]:
    """Split the gradient of stacked tensors into the parts of each tensor."""
    axis %= grad.ndim
    return [grad[(*(slice(None),) * axis, i, ...)] for i in range(grad.shape[axis])]


@formula_function
def tile_gradient(grad: Any, shape: tuple[int, ...], reps: Any) -> Any:
    """Return the sum over the tiles."""
    reps = tuple(np.atleast_1d(reps).tolist())
    ndim = max(len(reps), len(shape))
    pairs = zip(with_leading_ones(reps, ndim), with_leading_ones(shape, ndim))
    tiled = [length for pair in pairs for length in pair]
    return grad.reshape(tuple(tiled)).sum(axis=tuple(range(0, 2 * ndim, 2))).reshape(shape)


def whole_repeats(repeats: Any) -> Any:
    """Return numbers of repetitions; like NumPy, truncate a single number."""
    counts = plain(repeats)
    return int(counts) if not counts.ndim and counts.dtype.kind == "f" else counts


@formula_function
def repeat_gradient(grad: Any, repeats: Any, shape: tuple[int, ...], axis: int | None) -> Any:
    """Return the sum over the repetitions."""
    lanes = (math.prod(shape),) if axis is None or not shape else shape
    along = 0 if axis is None or not shape else axis % len(shape)
    counts = plain(repeats)
    if counts.size == 1:
        count = int(counts.item())
        grad = grad.reshape((*lanes[: along + 1], count, *lanes[along + 1 :])).sum(axis=along + 1)
    else:
        places = (slice(None),) * along + (np.repeat(np.arange(lanes[along]), counts),)
        grad = call("_scatter_into_zeros", grad, places, lanes)
    return grad.reshape(shape)


@formula_function
def pad_gradient(grad: Any, shape: tuple[int, ...], pad_width: Any, mode: str) -> Any:
    """Return the gradient of the operand, including the contributions of its repetitions in the margin."""
    if mode == "constant":
        widths = np.broadcast_to(np.asarray(pad_width, int), (len(shape), 2)) if shape else ()
        return grad[tuple(slice(int(before), int(before) + extent) for (before, _), extent in zip(widths, shape))]
    places = np.pad(np.arange(math.prod(shape)).reshape(shape), pad_width, mode)  # type: ignore[call-overload]
    return call("_scatter_into_zeros", grad, (places,), (math.prod(shape),)).reshape(shape)
