"""Linear filters of images, and interpolation at given coordinates."""

from __future__ import annotations

import builtins
import functools
import inspect
import itertools
import operator
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import scipy.ndimage  # type: ignore[import-untyped]
from numpy.lib.array_utils import normalize_axis_index

from ...operators.numpy_api.adapted import lost
from ...operators.numpy_api.conversion import as_argument, carries_history, plain_values
from ...operators.numpy_api.dispatch import require_tensor
from ...tensor.creation import as_operand
from ...tensor.tensor import Tensor
from ..wrap import Accepted, maker, numbers, of_detached, scipys_result
from .splines import Spline, at_places

MADE: dict[str, Any] = {}
_without_output: Final = maker(scipy.ndimage, MADE, is_checked=True, accepted=Accepted(by_value=False))
# NumPy's names of the boundary modes.
MODES: Final = {
    "reflect": "symmetric",
    "grid-mirror": "symmetric",
    "mirror": "reflect",
    "nearest": "edge",
    "wrap": "wrap",
    "grid-wrap": "wrap",
    "constant": "constant",
    "grid-constant": "constant",
}


def made(function: Callable[..., Any]) -> Callable[..., Any]:
    """Register a function as the counterpart of the SciPy function of the same name, adding SciPy's `output` argument.
    """
    run = _without_output(function)
    name = run.__name__
    scipys = getattr(scipy.ndimage, name)
    signature = inspect.signature(scipys)

    @functools.wraps(run)
    def call(*args: Any, **kwargs: Any) -> Any:
        arguments = signature.bind(*args, **kwargs).arguments
        output = arguments.get("output")
        is_plain = not isinstance(output, Tensor) and not carries_history(arguments)
        if is_plain or "output" not in signature.parameters:
            return run(*args, **kwargs)
        named = isinstance(output, type | np.dtype | str)
        if not named and output is not None:
            require_tensor(output, f"scipy.ndimage.{name}")
        image = numbers(arguments["input"])
        dtype = np.dtype(output) if named else (image if output is None else output).dtype
        if dtype.kind not in "fc":  # SciPy rounds or truncates
            result = of_detached(scipys, **{**arguments, **arguments.pop("kwargs", {}), "output": dtype})
            return result if named or output is None else output.copy_(result)
        arguments.pop("output", None)
        arguments.update(arguments.pop("kwargs", {}))
        given = dict(arguments)
        if image.dtype.kind not in "fc":
            arguments["input"] = image.astype(float)
        result = run(**arguments)
        if output is None:
            return result
        is_complex = result.dtype.kind == "c" and dtype.kind != "c"
        if is_complex and not named:
            raise RuntimeError("output must have complex dtype")
        if is_complex:  # a few filters promote the dtype, the others raise
            dtype = scipys_result(scipys, (), given | {"output": output}).dtype
        return result.astype(dtype) if named else output.copy_(result)

    MADE[name] = call
    return call


def each_of(value: Any, count: int) -> list[Any]:
    """Return one value for each dimension."""
    if not isinstance(value, (list, tuple)) and not getattr(value, "ndim", 0):
        return [value] * count
    values = list(value)
    if len(values) != count:
        raise RuntimeError("sequence argument must have length equal to input rank")
    return values


def dimensions_of(axes: Any, ndim: int) -> list[int]:
    """Return the dimensions along which a filter is applied, by default all."""
    if axes is None:
        return list(range(ndim))
    found = [operator.index(axis) for axis in (axes if np.ndim(axes) else (axes,))]
    for axis in found:
        if not -ndim <= axis < ndim:
            raise ValueError(f"specified axis: {axis} is out of range")
    dims = [axis % ndim for axis in found]
    if len(set(dims)) != len(dims):
        raise ValueError("axes must be unique")
    return dims


def windows_around(image: Any, shape: tuple[int, ...], mode: Any, cval: Any, origin: Any) -> Any:
    """Return the windows of a given shape around each element, as the last dimensions."""
    if len(shape) != image.ndim:
        raise RuntimeError("a neighbourhood must have as many dimensions as the input")
    for dim, (extent, way, offset) in enumerate(zip(shape, each_of(mode, image.ndim), each_of(origin, image.ndim))):
        margin = [(0, 0)] * image.ndim
        before = extent // 2 + int(offset)
        margin[dim] = (before, extent - 1 - before)
        options = {"constant_values": cval} if MODES[way] == "constant" else {}
        image = np.pad(image, margin, MODES[way], **options)  # type: ignore[call-overload]
    for dim, extent in enumerate(shape):
        image = image.unfold(dim, extent)
    return image


def _filtered(image: Any, weights: Any, mode: Any, cval: float, origin: Any) -> Any:
    """Return the sums of products of weights with the windows around each element."""
    windows, dtype = windows_around(image, weights.shape, mode, cval, origin), image.dtype
    ndim = weights.ndim
    found = np.tensordot(windows, weights, (tuple(range(ndim, 2 * ndim)), tuple(range(ndim))))
    wanted = np.result_type(dtype, np.complex64) if found.dtype.kind == "c" else dtype
    return found if dtype.kind == "b" or found.dtype == wanted else found.astype(wanted)


def _expanded(weights: Any, origin: Any, axes: Any, ndim: int) -> tuple[Any, list[Any]]:
    """Expand weights along some dimensions, and their origins, to all dimensions."""
    dims = dimensions_of(axes, ndim)
    if weights.ndim != len(dims):
        raise RuntimeError(f"weights.ndim ({weights.ndim}) must match len(axes) ({len(dims)})")
    shifts = each_of(origin, len(dims))
    if len(dims) == ndim:
        return weights, shifts
    shape, origins = [1] * ndim, [0] * ndim
    for dim, size in zip(sorted(dims), weights.shape):
        shape[dim] = size
    for dim, shift in zip(dims, shifts):
        origins[dim] = shift
    return weights.reshape(shape), origins


@made
def correlate(
    input: Any, weights: Any, mode: Any = "reflect", cval: float = 0.0, origin: Any = 0, *, axes: Any = None
) -> Any:
    """Return the correlation of an image with weights, which are conjugated."""
    image = numbers(input)
    weights, origins = _expanded(numbers(weights), origin, axes, image.ndim)
    return _filtered(image, weights.conj() if weights.dtype.kind == "c" else weights, mode, cval, origins)


@made
def convolve(
    input: Any, weights: Any, mode: Any = "reflect", cval: float = 0.0, origin: Any = 0, *, axes: Any = None
) -> Any:
    """Return the convolution of an image with weights."""
    image = numbers(input)
    weights, origins = _expanded(numbers(weights), origin, axes, image.ndim)
    shifts = [-shift - (1 - size % 2) for shift, size in zip(origins, weights.shape)]
    return _filtered(image, weights[(slice(None, None, -1),) * weights.ndim], mode, cval, shifts)


def _along(image: Any, weights: Any, axis: int, mode: Any, cval: float, origin: int) -> Any:
    if weights.ndim != 1 or not weights.shape[0]:
        raise RuntimeError("no filter weights given")
    shape = [1] * image.ndim
    shape[axis] = -1
    modes = ["nearest"] * image.ndim
    modes[axis] = mode
    origins = [0] * image.ndim
    origins[axis] = origin
    return _filtered(image, weights.reshape(shape), modes, cval, origins)


@made
def correlate1d(
    input: Any, weights: Any, axis: int = -1, mode: Any = "reflect", cval: float = 0.0, origin: int = 0
) -> Any:
    """Return the correlation with weights along one dimension."""
    weights = numbers(weights)
    return _along(
        numbers(input), weights.conj() if weights.dtype.kind == "c" else weights, axis, mode, cval, origin
    )


@made
def convolve1d(
    input: Any, weights: Any, axis: int = -1, mode: Any = "reflect", cval: float = 0.0, origin: int = 0
) -> Any:
    """Return the convolution with weights along one dimension."""
    weights = numbers(weights)
    return _along(numbers(input), weights[::-1], axis, mode, cval, -origin - (1 - weights.size % 2))


@made
def uniform_filter1d(
    input: Any, size: int, axis: int = -1, mode: Any = "reflect", cval: float = 0.0, origin: int = 0
) -> Any:
    """Return the mean over windows along one dimension."""
    return _along(numbers(input), numbers(np.full(int(size), 1.0 / int(size))), axis, mode, cval, origin)


@made
def uniform_filter(
    input: Any, size: Any = 3, mode: Any = "reflect", cval: float = 0.0, origin: Any = 0, *, axes: Any = None
) -> Any:
    """Return the mean over windows."""
    image = numbers(input)
    dims = dimensions_of(axes, image.ndim)
    count = len(dims)
    for axis, extent, way, shift in zip(dims, each_of(size, count), each_of(mode, count), each_of(origin, count)):
        if extent > 1:
            image = MADE["uniform_filter1d"](image, extent, axis, mode=way, cval=cval, origin=shift)
    return image


def _gaussian_kernel(sigma: Any, order: int, radius: int) -> Any:
    """Return the samples of a Gaussian or of its derivative, normalized to sum 1; gradients flow to its width."""
    places = np.arange(-radius, radius + 1)
    width = as_operand(sigma) * 1.0
    weights = np.exp(-0.5 / (width * width) * as_operand(places.astype(float) ** 2))
    weights = weights / weights.sum()
    if order == 0:
        return weights
    # The derivatives are the Gaussian times polynomials; each polynomial is the derivative of the previous one plus its
    # product with the derivative of the exponent.
    variance = width * width
    coefficients: list[Any] = [1.0]
    for _ in range(order):
        fresh: list[Any] = [0.0] * (len(coefficients) + 1)
        for power, coefficient in enumerate(coefficients):
            fresh[power + 1] = fresh[power + 1] - coefficient / variance
            if power:
                fresh[power - 1] = fresh[power - 1] + power * coefficient
        coefficients = fresh
    return weights * builtins.sum(
        coefficient * places.astype(float) ** power for power, coefficient in enumerate(coefficients)
    )


@made
def gaussian_filter1d(
    input: Any,
    sigma: Any,
    axis: int = -1,
    order: int = 0,
    mode: Any = "reflect",
    cval: float = 0.0,
    truncate: float = 4.0,
    *,
    radius: Any = None,
) -> Any:
    """Apply a Gaussian filter, or a derivative of it, along one dimension; gradients flow to its width."""
    if order < 0:
        raise ValueError("order must be non-negative")
    if radius is not None and (radius != int(radius) or radius < 0):
        raise ValueError("Radius must be a nonnegative integer.")
    reach = int(truncate * float(plain_values(as_operand(sigma))) + 0.5) if radius is None else int(radius)
    return _along(numbers(input), _gaussian_kernel(sigma, order, reach)[::-1], axis, mode, cval, 0)


@made
def gaussian_filter(
    input: Any,
    sigma: Any,
    order: Any = 0,
    mode: Any = "reflect",
    cval: float = 0.0,
    truncate: float = 4.0,
    *,
    radius: Any = None,
    axes: Any = None,
) -> Any:
    """Apply a Gaussian filter; gradients flow to its widths."""
    image = numbers(input)
    dims = dimensions_of(axes, image.ndim)
    count = len(dims)
    for dim, width, degree, way, reach in zip(
        dims, each_of(sigma, count), each_of(order, count), each_of(mode, count), each_of(radius, count)
    ):
        if float(plain_values(as_operand(width))) > 1e-15:
            image = MADE["gaussian_filter1d"](
                image, width, dim, degree, mode=way, cval=cval, truncate=truncate, radius=reach
            )
    return image


@made
def sobel(input: Any, axis: int = -1, mode: Any = "reflect", cval: float = 0.0) -> Any:
    """Apply a Sobel filter."""
    return _slope(numbers(input), axis, mode, cval, [1.0, 2.0, 1.0])


@made
def prewitt(input: Any, axis: int = -1, mode: Any = "reflect", cval: float = 0.0) -> Any:
    """Apply a Prewitt filter."""
    return _slope(numbers(input), axis, mode, cval, [1.0, 1.0, 1.0])


def _slope(image: Any, axis: int, mode: Any, cval: float, across: list[float]) -> Any:
    ways = each_of(mode, image.ndim)
    axis = normalize_axis_index(axis, image.ndim)
    found = _along(image, numbers(np.array([-1.0, 0.0, 1.0])), axis, ways[axis], cval, 0)
    for dim in range(image.ndim):
        if dim != axis:
            found = _along(found, numbers(np.array(across)), dim, ways[dim], cval, 0)
    return found


@made
def laplace(input: Any, mode: Any = "reflect", cval: float = 0.0, *, axes: Any = None) -> Any:
    """Return the Laplacian, computed with second differences."""
    image = numbers(input)
    dims = dimensions_of(axes, image.ndim)
    weights = numbers(np.array([1.0, -2.0, 1.0]))
    parts = [_along(image, weights, dim, way, cval, 0) for dim, way in zip(dims, each_of(mode, len(dims)))]
    return builtins.sum(parts[1:], parts[0]) if parts else image.clone()


# -- interpolation -----------------------------------------------------------------------------------------------------


def _folded(places: Any, size: int, mode: str) -> Any:
    """Map integer positions outside a dimension to the positions inside that have the same value."""
    if mode in ("grid-wrap",):
        return places % size
    if mode == "mirror":
        period = max(2 * (size - 1), 1)
        places = np.abs(places) % period
        return np.where(places >= size, period - places, places)
    if mode in ("reflect", "grid-mirror"):
        places = places % (2 * size)
        return np.where(places >= size, 2 * size - 1 - places, places)
    return np.clip(places, 0, size - 1)


@made
def map_coordinates(
    input: Any, coordinates: Any, order: int = 3, mode: str = "constant", cval: float = 0.0, prefilter: bool = True
) -> Any:
    """Return the values of an image between its elements; gradients flow to the image and the coordinates."""
    image, places = numbers(input), numbers(coordinates) * 1.0
    if mode not in MODES:
        raise RuntimeError("boundary mode not supported")
    if not 0 <= order <= 5:
        raise RuntimeError("spline order not supported")
    if order == 0:
        return _nearest(image, places, mode, cval)
    if order > 1 or mode == "wrap":
        return _by_splines(image, places, order, mode, cval, prefilter)
    lower = np.floor(plain_values(places)).astype(int)
    total: Any = 0.0
    for corner in itertools.product((0, 1), repeat=image.ndim):
        weight: Any = 1.0
        index, inside = [], np.ones(lower.shape[1:], bool)
        for dim, step in enumerate(corner):
            share = places[dim] - lower[dim]
            weight = weight * (share if step else 1.0 - share)
            spot = lower[dim] + step
            inside &= (spot >= 0) & (spot < image.shape[dim])
            index.append(_folded(spot, image.shape[dim], mode))
        values = image[tuple(index)]
        total = total + weight * (np.where(inside, values, cval) if mode == "grid-constant" else values)
    if mode == "constant":
        outside = np.zeros(lower.shape[1:], bool)
        for dim in range(image.ndim):
            at = plain_values(places[dim])
            outside |= (at < 0) | (at > image.shape[dim] - 1)
        total = np.where(outside, cval, total)
    return total


def _nearest(image: Any, places: Any, mode: str, cval: float) -> Any:
    """Return the elements nearest to given coordinates, determined by SciPy."""
    names = np.arange(float(image.size)).reshape(image.shape)
    found = scipy.ndimage.map_coordinates(names, plain_values(places), order=0, mode=mode, cval=-1.0).astype(int)
    values = np.where(found >= 0, image.reshape(-1)[np.maximum(found, 0)], cval)
    return values + np.floor(places).sum(0) * 0.0 if carries_history(places) else values


def _by_splines(image: Any, places: Any, order: int, mode: str, cval: float, prefilter: bool) -> Any:
    """Interpolate by splines, which are linear in the image and polynomial in the coordinates in each cell."""
    moves = carries_history(places)
    if not carries_history(image):
        values = plain_values(image)[None]
        spline = Spline(order, mode, cval, prefilter)
        return at_places(spline, values, places)[0] if moves else as_operand(spline(values, plain_values(places))[0])
    zero = np.zeros(image.shape)
    spline = Spline(order, mode, 0.0, prefilter)
    constant = Spline(order, mode, cval, prefilter)
    if not moves:
        where = plain_values(places)
        return _linear(lambda values: spline(values[None], where)[0], image) + constant(zero[None], where)[0]
    ones = np.eye(image.size).reshape(image.size, *image.shape)
    shares = at_places(spline, ones, places)
    return np.tensordot(image.reshape(-1), shares, 1) + at_places(constant, zero[None], places)[0]


def _linear(function: Callable[[Any], Any], image: Any) -> Any:
    """Return a linear function of an image, given by its values for single elements."""
    size = image.size
    columns = [function(row.reshape(image.shape)) for row in np.eye(size)]
    matrix = np.stack([np.asarray(column).reshape(-1) for column in columns], 1)
    return (as_operand(matrix) @ image.reshape(-1)).reshape(np.asarray(columns[0]).shape)


@made
def shift(
    input: Any, shift: Any, order: int = 3, mode: str = "constant", cval: float = 0.0, prefilter: bool = True
) -> Any:
    """Shift an image."""
    image = numbers(input)
    moves = each_of(shift, image.ndim)
    grid = np.indices(image.shape).astype(float)
    places = np.stack([as_operand(axis) - move for axis, move in zip(grid, moves)])
    return MADE["map_coordinates"](image, places, order=order, mode=mode, cval=cval, prefilter=prefilter)


@made
def zoom(
    input: Any,
    zoom: Any,
    order: int = 3,
    mode: str = "constant",
    cval: float = 0.0,
    prefilter: bool = True,
    *,
    grid_mode: bool = False,
) -> Any:
    """Resample an image to another size."""
    image = numbers(input)
    factors = [float(factor) for factor in each_of(plain_values(as_argument(zoom)), image.ndim)]

    def zoomed(values: Any) -> Any:
        return scipy.ndimage.zoom(
            values, factors, order=order, mode=mode, cval=0.0, prefilter=prefilter, grid_mode=grid_mode
        )

    constant = scipy.ndimage.zoom(
        np.zeros(image.shape), factors, order=order, mode=mode, cval=cval, grid_mode=grid_mode
    )
    return _linear(zoomed, image) + constant


# -- filters of Fourier transforms -------------------------------------------------------------------------------------


def _fourier(name: str) -> None:
    """Define a filter that multiplies a Fourier transform by that of its kernel, which is SciPy's result for ones."""
    function, option = getattr(scipy.ndimage, name), "shift" if name.endswith("shift") else "size"
    option = "sigma" if name.endswith("gaussian") else option

    def filtered(input: Any, size: Any, n: int = -1, axis: int = -1) -> Any:
        """Multiply a Fourier transform by that of the kernel; gradients flow to the transform."""
        if carries_history(size):
            raise lost(f"scipy.ndimage.{name}", f"no gradient flows to {option}; pass its detach()")
        given = numbers(input)
        factors = function(np.ones(given.shape, complex), plain_values(as_argument(size)), n, axis)
        return given * (factors if given.dtype.kind == "c" or option == "shift" else factors.real)

    def transform(input: Any, *args: Any, **options: Any) -> Any:
        size, *rest = (options.pop(option), *args) if option in options else args
        return filtered(input, size, *rest, **options)

    transform.__name__, transform.__doc__ = name, filtered.__doc__
    made(transform)


for _name in ("fourier_ellipsoid", "fourier_gaussian", "fourier_shift", "fourier_uniform"):
    _fourier(_name)
