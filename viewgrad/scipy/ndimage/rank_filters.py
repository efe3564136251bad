"""Rank filters and morphology: medians, ranks, erosion and dilation; gradients flow to the selected elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...operators.numpy_api.conversion import as_tensors, carries_history, plain_values
from ...tensor.tensor import Tensor
from ...tensor.trace_hooks import composed
from ..wrap import numbers
from .linear import MADE, dimensions_of, each_of, made, windows_around


def _surroundings(
    image: Any, size: Any, footprint: Any, mode: Any, cval: Any, origin: Any, axes: Any = None, by_order: bool = False
) -> Any:
    """Return the neighbours of each element that a footprint selects, as the last dimension.

    Arguments:
        axes: the dimensions of the footprint; all if omitted.
        by_order: whether the lengths of a full footprint follow the order of `axes`; otherwise the dimensions of the
            footprint are in ascending order regardless of `axes`, as in SciPy.
    """
    dims = dimensions_of(axes, image.ndim)
    if size is None and footprint is None:
        raise RuntimeError("no footprint or filter size provided")
    chosen = _footprint(size, footprint, len(dims))
    if chosen.ndim != len(dims):
        raise RuntimeError(f"footprint.ndim ({chosen.ndim}) must match len(axes) ({len(dims)})")
    shape, ways, shifts = [1] * image.ndim, ["nearest"] * image.ndim, [0] * image.ndim
    is_ordered = by_order and chosen.all()
    for dim, extent in zip(dims if is_ordered else sorted(dims), chosen.shape):
        shape[dim] = extent
    for dim, way in zip(dims, each_of(mode, len(dims))):
        ways[dim] = way
    # SciPy also assigns origins in sorted order if `axes` lists all dimensions.
    for dim, shift in zip(dims if is_ordered or len(dims) < image.ndim else sorted(dims), each_of(origin, len(dims))):
        shifts[dim] = shift
    windows = windows_around(image, tuple(shape), ways, cval, shifts)
    return windows.reshape((*windows.shape[: image.ndim], -1))[..., chosen.reshape(-1)]


def _footprint(size: Any, footprint: Any, count: int) -> Any:
    if footprint is not None:
        return np.asarray(plain_values(footprint), bool)
    return np.ones(tuple(int(n) for n in each_of(size, count)), bool)


@made
def maximum_filter(
    input: Any, size: Any = None, footprint: Any = None, mode: Any = "reflect", cval: float = 0.0, origin: Any = 0,
    *, axes: Any = None,
) -> Any:  # fmt: skip
    """Apply a maximum filter."""
    return _surroundings(numbers(input), size, footprint, mode, cval, origin, axes, by_order=True).max(-1)


@made
def minimum_filter(
    input: Any, size: Any = None, footprint: Any = None, mode: Any = "reflect", cval: float = 0.0, origin: Any = 0,
    *, axes: Any = None,
) -> Any:  # fmt: skip
    """Apply a minimum filter."""
    return _surroundings(numbers(input), size, footprint, mode, cval, origin, axes, by_order=True).min(-1)


def _of_rank(elements: Any, rank: int) -> Any:
    return np.take(np.sort(elements, -1), rank, -1)


@made
def median_filter(
    input: Any, size: Any = None, footprint: Any = None, mode: Any = "reflect", cval: float = 0.0, origin: Any = 0,
    *, axes: Any = None,
) -> Any:  # fmt: skip
    """Apply a median filter."""
    elements = _surroundings(numbers(input), size, footprint, mode, cval, origin, axes)
    return _of_rank(elements, elements.shape[-1] // 2)


@made
def rank_filter(
    input: Any, rank: int, size: Any = None, footprint: Any = None, mode: Any = "reflect", cval: float = 0.0,
    origin: Any = 0, *, axes: Any = None,
) -> Any:  # fmt: skip
    """Apply a rank filter."""
    return _of_rank(_surroundings(numbers(input), size, footprint, mode, cval, origin, axes), int(rank))


@made
def percentile_filter(
    input: Any, percentile: float, size: Any = None, footprint: Any = None, mode: Any = "reflect", cval: float = 0.0,
    origin: Any = 0, *, axes: Any = None,
) -> Any:  # fmt: skip
    """Apply a percentile filter."""
    elements = _surroundings(numbers(input), size, footprint, mode, cval, origin, axes)
    share = percentile + 100 if percentile < 0 else percentile
    count = elements.shape[-1]
    return _of_rank(elements, count - 1 if share == 100 else int(count * share / 100.0))


def _along(image: Any, size: int, axis: int, mode: Any, cval: Any, origin: int) -> Any:
    sizes, origins = [1] * image.ndim, [0] * image.ndim
    sizes[axis], origins[axis] = int(size), origin
    return _surroundings(image, sizes, None, mode, cval, origins)


@made
def maximum_filter1d(
    input: Any, size: int, axis: int = -1, mode: Any = "reflect", cval: float = 0.0, origin: int = 0
) -> Any:
    """Apply a maximum filter along one dimension."""
    return _along(numbers(input), size, axis, mode, cval, origin).max(-1)


@made
def minimum_filter1d(
    input: Any, size: int, axis: int = -1, mode: Any = "reflect", cval: float = 0.0, origin: int = 0
) -> Any:
    """Apply a minimum filter along one dimension."""
    return _along(numbers(input), size, axis, mode, cval, origin).min(-1)


# -- morphology --------------------------------------------------------------------------------------------------------


def _less_structure(
    input: Any, size: Any, footprint: Any, structure: Any, mode: Any, cval: Any, origin: Any, axes: Any, turned: bool
) -> Any:
    """Return the neighbours of each element minus the heights of a structuring element, reflected if requested."""
    if size is None and footprint is None and structure is None:
        raise ValueError("size, footprint, or structure must be specified")
    image = numbers(input)
    count = len(dimensions_of(axes, image.ndim))
    structure = None if structure is None else numbers(structure)
    if structure is not None and structure.ndim != count:
        raise RuntimeError("structure array has incorrect shape")
    chosen = _footprint(1 if size is None else size, footprint, count)
    if structure is not None and footprint is None:
        chosen = np.ones(structure.shape, bool)
    heights = None if structure is None else structure[chosen]
    if turned:
        origin = [-int(shift) - (1 - extent % 2) for shift, extent in zip(each_of(origin, count), chosen.shape)]
        chosen = chosen[(slice(None, None, -1),) * chosen.ndim]
        heights = None if heights is None else -heights[::-1]
    elements = _surroundings(image, None, chosen, mode, cval, origin, axes, by_order=structure is None)
    return elements if heights is None else elements - heights


@made
def grey_erosion(
    input: Any, size: Any = None, footprint: Any = None, structure: Any = None, mode: Any = "reflect",
    cval: float = 0.0, origin: Any = 0, *, axes: Any = None,
) -> Any:  # fmt: skip
    """Return the greyscale erosion."""
    return _less_structure(input, size, footprint, structure, mode, cval, origin, axes, False).min(-1)


@made
def grey_dilation(
    input: Any, size: Any = None, footprint: Any = None, structure: Any = None, mode: Any = "reflect",
    cval: float = 0.0, origin: Any = 0, *, axes: Any = None,
) -> Any:  # fmt: skip
    """Return the greyscale dilation."""
    return _less_structure(input, size, footprint, structure, mode, cval, origin, axes, True).max(-1)


def _composed(name: str, doc: str, compose: Callable[..., Any]) -> None:
    """Define a composition of erosion and dilation."""

    def filter(
        input: Any, size: Any = None, footprint: Any = None, structure: Any = None, mode: Any = "reflect",
        cval: float = 0.0, origin: Any = 0, *, axes: Any = None,
    ) -> Any:  # fmt: skip
        options = {"size": size, "footprint": footprint, "structure": structure, "mode": mode, "cval": cval,
                   "origin": origin, "axes": axes}  # fmt: skip

        def eroded(image: Any) -> Any:
            return MADE["grey_erosion"](image, **options)

        def dilated(image: Any) -> Any:
            return MADE["grey_dilation"](image, **options)

        return compose(numbers(input), eroded, dilated)

    filter.__name__, filter.__doc__ = name, doc
    made(filter)


_composed("grey_opening", "Erode, then dilate.", lambda x, erode, dilate: dilate(erode(x)))
_composed("grey_closing", "Dilate, then erode.", lambda x, erode, dilate: erode(dilate(x)))
_composed("morphological_gradient", "Return dilation minus erosion.", lambda x, erode, dilate: dilate(x) - erode(x))
_composed("morphological_laplace", "Return the Laplacian.", lambda x, erode, dilate: dilate(x) + erode(x) - x * 2)
_composed("white_tophat", "Return the image minus its opening.", lambda x, erode, dilate: x - dilate(erode(x)))
_composed("black_tophat", "Return the closing minus the image.", lambda x, erode, dilate: erode(dilate(x)) - x)


# -- with user functions -----------------------------------------------------------------------------------------------


def _made_with_captures(function: Callable[..., Any]) -> Callable[..., Any]:
    """Register a filter by a function whose gradients also flow to the tensors that the function captures."""
    of_arguments = made(function)

    def filtered(input: Any, applied: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        captures = False

        def watched(elements: Any, *given: Any, **options: Any) -> Any:
            nonlocal captures
            if isinstance(elements, Tensor):
                return applied(elements, *given, **options)
            if captures:
                return 0.0  # SciPy's loop does not end at an exception
            if not given or not isinstance(given[0], np.ndarray):
                found = applied(elements, *given, **options)
                captures = carries_history(found)
                return 0.0 if captures else found
            written = as_tensors(given[0].copy())
            applied(elements, written, *given[1:], **options)
            captures = carries_history(written)
            given[0][...] = plain_values(written.detach())
            return None

        found = of_arguments(input, watched, *args, **kwargs)
        if captures:
            found = composed(f"scipy.ndimage.{function.__name__}", function, (input, applied, *args), kwargs)
        return found

    filtered.__name__ = filtered.__qualname__ = function.__name__
    filtered.__doc__ = function.__doc__
    MADE[function.__name__] = filtered
    return filtered


@_made_with_captures
def generic_filter(
    input: Any, function: Callable[..., Any], size: Any = None, footprint: Any = None, mode: Any = "reflect",
    cval: float = 0.0, origin: Any = 0, extra_arguments: Any = (), extra_keywords: Any = None, *, axes: Any = None,
) -> Any:  # fmt: skip
    """Apply a function to the neighbourhood of each element."""
    elements = _surroundings(numbers(input), size, footprint, mode, cval, origin, axes)
    flat = elements.reshape(-1, elements.shape[-1])
    found = [numbers(function(each, *extra_arguments, **(extra_keywords or {}))) for each in flat]
    return np.stack(found).reshape(elements.shape[:-1])


@_made_with_captures
def generic_filter1d(
    input: Any, function: Callable[..., Any], filter_size: int, axis: int = -1, mode: str = "reflect",
    cval: float = 0.0, origin: int = 0, extra_arguments: Any = (), extra_keywords: Any = None,
) -> Any:  # fmt: skip
    """Apply a function to each line along an axis, which it receives with the elements beyond the ends.

    The function writes to its second argument.
    """
    image = np.moveaxis(numbers(input), axis, -1)
    before = filter_size // 2 + origin
    if filter_size < 1 or not 0 <= before < filter_size:
        raise RuntimeError("invalid filter size" if filter_size < 1 else "invalid origin")
    lines = image.reshape(-1, image.shape[-1]).astype(float)
    windows = windows_around(lines, (1, filter_size), ["nearest", mode], cval, [0, origin])[:, :, 0]
    found: Any = as_tensors(np.zeros(lines.shape))
    for line, written in zip(np.concatenate([windows[:, 0], windows[:, 1:, -1]], 1), found):
        function(line, written, *extra_arguments, **(extra_keywords or {}))
    return np.moveaxis(found.reshape(image.shape), -1, axis).astype(image.dtype)


@made
def generic_laplace(
    input: Any, derivative2: Callable[..., Any], mode: Any = "reflect", cval: float = 0.0, extra_arguments: Any = (),
    extra_keywords: Any = None, *, axes: Any = None,
) -> Any:  # fmt: skip
    """Return the Laplacian, computed with a function for second derivatives."""
    image, total = numbers(input), 0.0
    dims = dimensions_of(axes, image.ndim)
    if not dims:
        return image.clone()
    for axis, way in zip(dims, each_of(mode, len(dims))):
        total = total + derivative2(image, axis, None, way, cval, *extra_arguments, **(extra_keywords or {}))
    return total


@made
def generic_gradient_magnitude(
    input: Any, derivative: Callable[..., Any], mode: Any = "reflect", cval: float = 0.0, extra_arguments: Any = (),
    extra_keywords: Any = None, *, axes: Any = None,
) -> Any:  # fmt: skip
    """Return the gradient magnitude, computed with a function for first derivatives."""
    image, total = numbers(input), 0.0
    dims = dimensions_of(axes, image.ndim)
    if not dims:
        return image.clone()
    for axis, way in zip(dims, each_of(mode, len(dims))):
        slope = derivative(image, axis, None, way, cval, *extra_arguments, **(extra_keywords or {}))
        total = total + slope * slope
    return np.sqrt(total)


@made
def gaussian_laplace(
    input: Any, sigma: Any, mode: Any = "reflect", cval: float = 0.0, *, axes: Any = None, **kwargs: Any
) -> Any:
    """Return the Laplacian, computed with Gaussian second derivatives that smooth only along their own dimension."""
    image = numbers(input)
    dims = dimensions_of(axes, image.ndim)
    widths = each_of(sigma, len(dims))
    if len(dims) < image.ndim:
        given = dict(zip(dims, widths))
        widths = [given.get(dim, 0) for dim in range(image.ndim)]
    return _derivatives(image, widths, 2, dims, mode, cval, kwargs, lambda part: part)


@made
def gaussian_gradient_magnitude(
    input: Any, sigma: Any, mode: Any = "reflect", cval: float = 0.0, *, axes: Any = None, **kwargs: Any
) -> Any:
    """Return the gradient magnitude, computed with Gaussian derivatives."""
    image = numbers(input)
    dims = dimensions_of(axes, image.ndim)
    found = _derivatives(image, sigma, 1, dims, mode, cval, kwargs, lambda part: part * part)
    return np.sqrt(found) if dims else found


def _derivatives(
    image: Any, sigma: Any, order: int, dims: list[int], mode: Any, cval: float, options: dict[str, Any],
    of: Callable[[Any], Any],
) -> Any:  # fmt: skip
    """Return the sum over dimensions of a function of derivatives of a Gaussian."""
    total: Any = 0.0 if dims else image.clone()
    for axis, way in zip(dims, each_of(mode, len(dims))):
        orders = [0] * image.ndim
        orders[axis] = order
        total = total + of(MADE["gaussian_filter"](image, sigma, orders, None, way, cval, **options))
    return total
