"""Interpolation of scattered data, with gradients for the values and the evaluation points.

Source: M. J. D. Powell, "The theory of radial basis function approximation in 1990" (1992), for `RBFInterpolator`.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import scipy.interpolate as theirs  # type: ignore[import-untyped]
import scipy.spatial  # type: ignore[import-untyped]

from ..adoption import adopted_callable
from ..operators.numpy_api.adapted import lost
from ..operators.numpy_api.conversion import carries_history, plain_values
from ..tensor.shapes import along_first
from . import special
from .wrap import float_copy, floating, numbers


def plain_places(points: Any, name: str) -> Any:
    """Return the positions of given values as an array with one row for each."""
    if carries_history(points):
        raise lost(f"scipy.interpolate.{name}", "no gradient flows to the data points; pass detach() of them")
    columns = np.broadcast_arrays(*plain_values(points)) if isinstance(points, tuple) else None
    places = np.stack(columns, -1) if columns else np.asarray(plain_values(points), float)
    return places.reshape(-1, 1) if places.ndim == 1 else places


def _asked_places(args: tuple[Any, ...], count: int) -> Any:
    """Return the evaluation points, given as rows of an array or as an array for each of `count` coordinates."""
    given = args[0] if len(args) == 1 else args
    if isinstance(given, tuple):
        return np.stack(np.broadcast_arrays(*map(floating, given)), -1)
    places = floating(given)
    return places.reshape(-1, count) if places.ndim == 1 else places


class LinearNDInterpolator:
    """Linear interpolation between scattered points, on a Delaunay triangulation.

    Arguments:
        points: the points, one in each row, or a triangulation of them.
        values: the values at the points, along the first dimension.
        fill_value: the value outside the convex hull.
        rescale: whether to rescale each coordinate to the same range first.
    """

    def __init__(self, points: Any, values: Any, fill_value: Any = np.nan, rescale: bool = False) -> None:
        self.values, self.fill_value = numbers(values) * 1.0, fill_value
        self.shift: Any = 0.0
        self.scale: Any = 1.0
        if isinstance(points, scipy.spatial.Delaunay):
            if rescale:
                raise ValueError("Rescaling is not supported when passing a Delaunay triangulation as ``points``.")
            self.tri, self.points = points, points.points
            return
        self.points = plain_places(points, "LinearNDInterpolator")
        if rescale:
            self.shift, self.scale = self.points.mean(0), np.ptp(self.points, 0)
            self.scale[self.scale == 0] = 1.0
        self.tri = scipy.spatial.Delaunay((self.points - self.shift) / self.scale)

    def __call__(self, *args: Any) -> Any:
        count = self.points.shape[1]
        places = (_asked_places(args, count) - self.shift) / self.scale
        flat = places.reshape(-1, count)
        found = self.tri.find_simplex(np.asarray(plain_values(flat.detach())))
        frames = self.tri.transform[found]
        shares = np.einsum("kij,kj->ki", frames[:, :count], flat - frames[:, count])
        shares = np.concatenate([shares, 1.0 - shares.sum(-1, keepdims=True)], -1)
        corners = self.values[self.tri.simplices[found]]
        result = (shares.reshape(shares.shape + (1,) * (corners.ndim - 2)) * corners).sum(1)
        outside = along_first(found < 0, result.ndim)
        return np.where(outside, self.fill_value, result).reshape(places.shape[:-1] + self.values.shape[1:])


class CloughTocher2DInterpolator:
    """Piecewise cubic interpolation of scattered points in the plane; gradients flow to the evaluation points.

    Within a third of a triangle the interpolant is a cubic polynomial, which is found from ten of SciPy's values.

    Arguments:
        points, values, fill_value, tol, maxiter, rescale: as for `scipy.interpolate.CloughTocher2DInterpolator`.

    Source: P. Alfeld, "A trivariate Clough-Tocher scheme for tetrahedral data" (1984), in two dimensions.
    """

    def __init__(
        self, points: Any, values: Any, fill_value: Any = np.nan, tol: float = 1e-6, maxiter: int = 400,
        rescale: bool = False,
    ) -> None:  # fmt: skip
        if carries_history(values):
            why = "gradients flow to the evaluation points only; use LinearNDInterpolator or RBFInterpolator"
            raise lost("scipy.interpolate.CloughTocher2DInterpolator", why)
        is_triangulation = isinstance(points, scipy.spatial.Delaunay)
        places = points if is_triangulation else plain_places(points, "CloughTocher2DInterpolator")
        plain = (_values(values), fill_value, tol, maxiter, rescale)
        self._take(theirs.CloughTocher2DInterpolator(places, *plain))

    @classmethod
    def from_scipy(cls, plain: Any) -> CloughTocher2DInterpolator:
        """Return the interpolator that computes the values of SciPy's."""
        made = cls.__new__(cls)
        made._take(plain)
        return made

    def _take(self, plain: Any) -> None:
        self._plain, self.tri, self.values = plain, plain.tri, numbers(plain.values)
        self._shift: Any = 0.0 if plain.scale is None else plain.offset
        self._scale: Any = 1.0 if plain.scale is None else plain.scale
        exponents = [(i, j, 3 - i - j) for i in range(4) for j in range(4 - i)]
        self._exponents = np.array(exponents)
        self._nodes = 0.9 * self._exponents / 3.0 + 0.1 / 3.0  # inside the third of the triangle
        self._inverse = np.linalg.inv(np.prod(self._nodes[:, None] ** self._exponents, -1))

    def __call__(self, *args: Any) -> Any:
        places = _asked_places(args, 2)
        flat = places.reshape(-1, 2)
        plain = np.asarray(plain_values(flat.detach()))
        found = self._plain(plain)
        shape = places.shape[:-1] + found.shape[1:]
        if not carries_history(flat):
            return numbers(found).reshape(shape)
        points = (plain - self._shift) / self._scale
        simplices = self.tri.find_simplex(points)
        frames = self.tri.transform[simplices]
        shares = np.einsum("kij,kj->ki", frames[:, :2], points - frames[:, 2])
        shares = np.concatenate([shares, 1.0 - shares.sum(-1, keepdims=True)], -1)
        corners = self.tri.points[self.tri.simplices[simplices]] * self._scale + self._shift
        # The third is bounded by the two nearer corners and the middle of the triangle.
        rows, smallest = np.arange(len(plain)), shares.argmin(-1)
        corners[rows, smallest] = corners.mean(1)
        nodes = self._nodes @ corners
        values = self._plain(nodes.reshape(-1, 2)).reshape((len(plain), len(self._nodes), *found.shape[1:]))
        coefficients = np.moveaxis(np.tensordot(self._inverse, values, ((1,), (1,))), 0, 1)
        edges = np.linalg.inv(np.concatenate([corners.mT, np.ones((len(plain), 1, 3))], 1))
        inner = (edges[:, :, :2] * flat[:, None]).sum(-1) + edges[:, :, 2]
        powers = np.prod(inner[:, None] ** self._exponents, -1)
        result = (powers.reshape(powers.shape + (1,) * (found.ndim - 1)) * coefficients).sum(1)
        # SciPy's values, with the history.
        moved = result + (found - plain_values(result.detach()))
        outside = along_first(simplices < 0, found.ndim)
        return np.where(outside, found, moved).reshape(shape)


class NearestNDInterpolator:
    """Nearest-neighbour interpolation between scattered points; gradients flow to the values.

    Arguments:
        x, y: the points, one in each row, and their values.
        rescale, tree_options: as for `scipy.interpolate.NearestNDInterpolator`.
    """

    def __init__(self, x: Any, y: Any, rescale: bool = False, tree_options: Any = None) -> None:
        self.points, self.values = plain_places(x, "NearestNDInterpolator"), numbers(y)
        order = np.arange(len(self.points))
        self._nearest = theirs.NearestNDInterpolator(self.points, order, rescale, tree_options)

    def __call__(self, *args: Any, **query_options: Any) -> Any:
        places = np.asarray(plain_values(_asked_places(args, self.points.shape[1]).detach()))
        found = self._nearest(places, **query_options)
        if found.dtype.kind == "f" and np.any(np.isnan(found)):
            raise lost("scipy.interpolate.NearestNDInterpolator", "omit distance_upper_bound")
        return self.values[found.astype(int)]


def _root(squares: Any) -> Any:
    """Return the square roots of squared lengths; a length of 0 has a gradient of 0."""
    apart = plain_values(squares.detach()) != 0
    return np.where(apart, np.where(apart, squares, 1.0) ** 0.5, 0.0)


def _thin_plate(squares: Any) -> Any:
    return 0.5 * squares * np.log(np.where(plain_values(squares.detach()) == 0, 1.0, squares))


# The radial basis functions of the squared distance, with the minimum degree of the polynomial.
KERNELS: Final[dict[str, tuple[Callable[[Any], Any], int]]] = {
    "linear": (lambda squares: -_root(squares), 0),
    "thin_plate_spline": (_thin_plate, 1),
    "cubic": (lambda squares: squares * _root(squares), 1),
    "quintic": (lambda squares: -squares * squares * _root(squares), 2),
    "multiquadric": (lambda squares: -((1.0 + squares) ** 0.5), 0),
    "inverse_multiquadric": (lambda squares: (1.0 + squares) ** -0.5, -1),
    "inverse_quadratic": (lambda squares: 1.0 / (1.0 + squares), -1),
    "gaussian": (lambda squares: np.exp(-squares), -1),
}


# The radial functions of SciPy's legacy class, of the distance and the scale.
RADIAL: Final[dict[str, Any]] = {
    "multiquadric": lambda r, scale: np.sqrt((r / scale) ** 2 + 1),
    "inverse": lambda r, scale: 1.0 / np.sqrt((r / scale) ** 2 + 1),
    "gaussian": lambda r, scale: np.exp(-((r / scale) ** 2)),
    "linear": lambda r, scale: r,
    "cubic": lambda r, scale: r**3,
    "quintic": lambda r, scale: r**5,
    "thin_plate": lambda r, scale: special.xlogy(r**2, r),
}


class Rbf:
    """Radial basis function interpolation with SciPy's legacy interface; gradients flow to values and all points.

    Arguments:
        args: the coordinates of the points, one array for each, followed by the values.
        function: the name of the radial function, or a function of the distances, or of the interpolator and them.
        epsilon: the scale of distances.
        smooth: the smoothing parameter; 0 for interpolation.
        options: norm and mode, which must have their defaults if tensors have a history.
    """

    def __init__(self, *args: Any, function: Any = "multiquadric", epsilon: Any = None, smooth: Any = 0.0,
                 **options: Any) -> None:  # fmt: skip
        if options.get("norm", "euclidean") != "euclidean" or options.get("mode", "1-D") != "1-D":
            raise lost("scipy.interpolate.Rbf", "omit norm and mode, or use RBFInterpolator")
        self._function = self._radial(function)
        self.xi = np.stack([float_copy(each).reshape(-1) for each in args[:-1]])
        self.di = float_copy(args[-1]).reshape(-1)
        self.N = int(self.di.shape[0])
        if epsilon is None:
            edges = self.xi.max(1) - self.xi.min(1)
            edges = edges[plain_values(edges.detach()) != 0]
            epsilon = (np.prod(edges) / self.N) ** (1.0 / len(edges))
        self.epsilon, self.smooth = epsilon, smooth
        self.A = self._function(self._distances(self.xi), epsilon) - np.eye(self.N) * numbers(smooth)
        self.nodes = np.linalg.solve(self.A, self.di)

    def _radial(self, function: Any) -> Any:
        """Return the radial function of distances and their scale."""
        if not callable(function):
            name = function.lower().replace(" ", "_").replace("-", "_").replace("_multiquadric", "")
            if name not in RADIAL:
                raise ValueError(f"function must be one of {', '.join(RADIAL)}, not {name!r}")
            return RADIAL[name]
        count, adopted = len(inspect.signature(function).parameters), adopted_callable(function)
        if count not in (1, 2):
            raise ValueError("Function argument must take 1 or 2 arguments.")

        def of_distances(r: Any, _: Any) -> Any:
            found = numbers(adopted(r) if count == 1 else adopted(self, r))
            if found.shape != r.shape:
                raise ValueError("Callable must take array and return array of the same shape")
            return found

        return of_distances

    def _distances(self, x: Any) -> Any:
        return (x.T[:, None] - self.xi.T[None]).vector_norm(2, -1)

    def __call__(self, *args: Any) -> Any:
        places = np.broadcast_arrays(*map(float_copy, args))
        x = np.stack([each.reshape(-1) for each in places])
        return (self._function(self._distances(x), self.epsilon) @ self.nodes).reshape(places[0].shape)


class RBFInterpolator:
    """Interpolation or smoothing by radial basis functions; gradients flow to values, points and evaluation points.

    Arguments:
        y, d: the points, one in each row, and their values.
        neighbors: not supported for tensors with a history, for which all points are used.
        smoothing: the smoothing parameter, a number or one for each value; 0 for interpolation.
        kernel: the name of the radial function.
        epsilon: the factor by which distances are multiplied.
        degree: the degree of the polynomial that is added; -1 for none.
    """

    def __init__(
        self, y: Any, d: Any, neighbors: Any = None, smoothing: Any = 0.0, kernel: str = "thin_plate_spline",
        epsilon: Any = None, degree: Any = None,
    ) -> None:  # fmt: skip
        self._plain = None
        if neighbors is not None:
            if carries_history((y, d, smoothing, epsilon)):
                raise lost("scipy.interpolate.RBFInterpolator", "omit neighbors")
            self._plain = theirs.RBFInterpolator(
                *map(plain_values, (y, d)), neighbors, plain_values(smoothing), kernel, epsilon, degree
            )
            return
        # SciPy checks the arguments and defines the defaults
        theirs.RBFInterpolator(*map(_values, (y, d)), None, _values(smoothing), kernel, _values(epsilon), degree)
        self.y, values = floating(y), numbers(d) * 1.0
        self.epsilon = 1.0 if epsilon is None else epsilon
        self._function, least = KERNELS[kernel.lower()]
        count, self._trailing = self.y.shape[1], values.shape[1:]
        places = np.asarray(_values(self.y))
        self._middle, self._half = (places.max(0) + places.min(0)) / 2.0, np.ptp(places, 0) / 2.0
        self._half[self._half == 0] = 1.0
        degree = max(least, 0) if degree is None else degree
        self._powers = [
            np.bincount(np.array(chosen, int), minlength=count)
            for total in range(degree + 1)
            for chosen in itertools.combinations_with_replacement(range(count), total)
        ]
        added = len(self._powers)
        near = self._kernel_values(self.y) + np.eye(len(places)) * numbers(smoothing)
        terms = self._terms(self.y)
        upper = np.concatenate([near, terms], 1)
        lower = np.concatenate([terms.T, np.zeros((added, added))], 1)
        flat = values.reshape(len(places), -1)
        wanted = np.concatenate([flat, np.zeros((added, flat.shape[1]))])
        self._coefficients = np.linalg.solve(np.concatenate([upper, lower]), wanted)

    def _kernel_values(self, x: Any) -> Any:
        away = (x[:, None] - self.y[None]) * self.epsilon
        return self._function((away * away).sum(-1))

    def _terms(self, x: Any) -> Any:
        x = (x - self._middle) / self._half
        columns = [np.prod(np.stack([x[:, i] ** int(n) for i, n in enumerate(power)]), 0) for power in self._powers]
        return np.stack(columns, 1) if columns else numbers(np.zeros((len(x), 0)))

    def __call__(self, x: Any) -> Any:
        if self._plain is not None:
            if carries_history(x):
                raise lost("scipy.interpolate.RBFInterpolator", "omit neighbors")
            return numbers(self._plain(plain_values(x)))
        x = floating(x)
        found = np.concatenate([self._kernel_values(x), self._terms(x)], 1) @ self._coefficients
        return found.reshape((len(x), *self._trailing))


def _values(value: Any) -> Any:
    tensor = value if value is None else numbers(value)
    return tensor if tensor is None else plain_values(tensor.detach())


SCATTERED: Final[dict[str, Any]] = {
    "CloughTocher2DInterpolator": CloughTocher2DInterpolator,
    "LinearNDInterpolator": LinearNDInterpolator,
    "NearestNDInterpolator": NearestNDInterpolator,
    "Rbf": Rbf,
    "RBFInterpolator": RBFInterpolator,
}
