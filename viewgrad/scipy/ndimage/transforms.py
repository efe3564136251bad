"""Geometric transformations of images; gradients flow to the images and the coordinates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...operators.numpy_api.adapted import lost
from ...operators.numpy_api.conversion import plain_values
from ..special.elementary import cosdg, sindg
from ..wrap import numbers
from .linear import MADE, made


def _grid(shape: tuple[int, ...]) -> Any:
    return np.indices(shape).astype(float)


@made
def affine_transform(
    input: Any, matrix: Any, offset: Any = 0.0, output_shape: Any = None, order: int = 3, mode: str = "constant",
    cval: float = 0.0, prefilter: bool = True,
) -> Any:  # fmt: skip
    """Apply an affine transformation to an image."""
    image, matrix, offset = numbers(input), numbers(matrix) * 1.0, numbers(offset) * 1.0
    ndim = image.ndim
    if matrix.ndim == 1:
        if matrix.shape[0] != ndim:
            raise RuntimeError("affine matrix has wrong number of rows")
        # In SciPy's order of operations, so that points on the edge are classified alike.
        shape = image.shape if output_shape is None else tuple(int(n) for n in output_shape)
        offsets = offset / matrix
        places = [(along + offsets[dim]) * matrix[dim] for dim, along in enumerate(_grid(shape))]
        return MADE["map_coordinates"](image, np.stack(places), None, order, mode, cval, prefilter)
    if matrix.shape[1] == ndim + 1:
        if matrix.shape[0] not in (ndim, ndim + 1):
            raise ValueError(f"Improper affine matrix of shape {matrix.shape} for an image of {ndim} dimensions")
        if matrix.shape[0] == ndim + 1 and np.any(plain_values(matrix[ndim]) != [0] * ndim + [1]):
            raise ValueError(f"Expected a homogeneous matrix whose last row is {[0] * ndim + [1]}")
        matrix, offset = matrix[:ndim, :ndim], matrix[:ndim, ndim]
    shape = image.shape if output_shape is None else tuple(int(n) for n in output_shape)
    if matrix.shape[0] != ndim:
        raise RuntimeError("affine matrix has wrong number of rows")
    # In SciPy's order of addition, so that points on the edge are classified alike.
    rows = []
    for row in range(ndim):
        total: Any = offset[row] if offset.ndim else offset
        for dim, along in enumerate(_grid(shape)):
            total = total + matrix[row, dim] * along
        rows.append(total)
    return MADE["map_coordinates"](image, np.stack(rows), None, order, mode, cval, prefilter)


@made
def rotate(
    input: Any, angle: Any, axes: Any = (1, 0), reshape: bool = True, order: int = 3, mode: str = "constant",
    cval: float = 0.0, prefilter: bool = True,
) -> Any:  # fmt: skip
    """Rotate an image by an angle in degrees."""
    image = numbers(input)
    if image.ndim < 2 or any(not -image.ndim <= axis < image.ndim for axis in axes):
        raise ValueError("invalid rotation plane specified")
    first, second = sorted(axis % image.ndim for axis in axes)
    cosine, sine = cosdg(angle), sindg(angle)
    turn = np.stack([np.stack([cosine, sine]), np.stack([-sine, cosine])])
    plane = np.array([image.shape[first], image.shape[second]])
    if reshape:
        rows, columns = plane
        corners = plain_values(turn) @ np.array([[0, 0, rows, rows], [0, columns, 0, columns]])
        wanted = (np.ptp(corners, axis=1) + 0.5).astype(int)
    else:
        wanted = plane
    offset = (plane - 1) / 2 - turn @ ((wanted - 1) / 2)
    shape = list(image.shape)
    shape[first], shape[second] = (int(n) for n in wanted)
    grid = _grid(tuple(shape))
    moved = [numbers(each) for each in grid]
    for row, dim in enumerate((first, second)):
        moved[dim] = offset[row] + turn[row, 0] * grid[first] + turn[row, 1] * grid[second]
    return MADE["map_coordinates"](image, np.stack(moved), None, order, mode, cval, prefilter)


@made
def geometric_transform(
    input: Any, mapping: Callable[..., Any], output_shape: Any = None, order: int = 3, mode: str = "constant",
    cval: float = 0.0, prefilter: bool = True, extra_arguments: Any = (), extra_keywords: Any = None,
) -> Any:  # fmt: skip
    """Apply a coordinate mapping to an image."""
    if not callable(mapping):
        raise lost("scipy.ndimage.geometric_transform", "for tensors with a history mapping must be a Python function")
    image = numbers(input)
    shape = image.shape if output_shape is None else tuple(int(n) for n in output_shape)
    found = [numbers(list(mapping(place, *extra_arguments, **(extra_keywords or {})))) for place in np.ndindex(shape)]
    places = np.stack(found, -1)
    return MADE["map_coordinates"](image, places, None, order, mode, cval, prefilter).reshape(shape)
