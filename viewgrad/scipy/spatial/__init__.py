"""`scipy.spatial` for tensors: distances, trees, hulls and triangulations, whose structure is determined by SciPy."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import scipy.spatial  # type: ignore[import-untyped]

from ...numpy.namespace import filled, public_names
from ...operators.numpy_api.adapted import lost
from ...operators.numpy_api.conversion import as_argument, as_tensors, carries_history, plain_values
from ...tensor.creation import as_operand
from ..linalg import orthogonal_procrustes
from ..sparse.arrays import ARRAYS
from ..wrap import Accepted, detached, float_copy, floating, maker
from . import distance, transform

if TYPE_CHECKING:
    from ..typed.spatial import *  # noqa: F403

    def __getattr__(name: str) -> Any: ...


class KDTree:
    """A tree for nearest-neighbour searches, with differentiable distances.

    Arguments:
        data: the points, one in each row.
        options: as for `scipy.spatial.KDTree`.
    """

    def __init__(self, data: Any, *args: Any, **options: Any) -> None:
        self.data = float_copy(data)
        self._tree = scipy.spatial.KDTree(np.array(plain_values(self.data.detach())), *args, **options)

    def query(
        self, x: Any, k: Any = 1, eps: float = 0, p: float = 2, distance_upper_bound: float = np.inf, workers: int = 1
    ) -> tuple[Any, Any]:
        """Return the distances to the nearest points, and the indices of these points."""
        points = float_copy(x)
        limits = _values((k, eps, p, distance_upper_bound))
        _, places = self._tree.query(plain_values(points.detach()), *limits, workers)
        missing = np.asarray(places) >= self.data.shape[0]
        near = self.data[np.where(missing, 0, places)]
        given = points if np.ndim(places) == points.ndim - 1 else points[..., None, :]
        distances = self._distances(given, near, limits[2])
        return np.where(missing, np.inf, distances) if missing.any() else distances, as_tensors(places)

    def sparse_distance_matrix(
        self, other: Any, max_distance: float, p: float = 2.0, output_type: str = "dok_matrix"
    ) -> Any:
        """Return the distances between the points of two trees, up to a maximum, as a sparse matrix."""
        limits = _values((max_distance, p))
        if not carries_history((self.data, other.data)):
            return self._tree.sparse_distance_matrix(other._tree, *limits, output_type)
        if output_type not in ("dok_matrix", "coo_matrix"):
            raise lost("scipy.spatial.KDTree.sparse_distance_matrix", 'use output_type="coo_matrix"')
        found = self._tree.sparse_distance_matrix(other._tree, *limits, "coo_matrix")
        distances = self._distances(self.data[found.row], other.data[found.col], limits[1])
        matrix = ARRAYS["coo_matrix"]((distances, (found.row, found.col)), found.shape)
        return matrix if output_type == "coo_matrix" else matrix.todok()

    def _distances(self, first: Any, second: Any, p: float) -> Any:
        """Return the distances between points; in a periodic box, the distances to the nearest images."""
        away = first - second
        if self.boxsize is not None:
            box = np.broadcast_to(self.boxsize, away.shape[-1:])
            period = np.where(box > 0, box, 1.0)
            away = away - np.where(box > 0, period * np.round(plain_values(away.detach()) / period), 0.0)
        return away.vector_norm(p, -1)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # `copy` and `pickle` look up such names before the object has contents
            raise AttributeError(name)
        function = getattr(self._tree, name)
        if not callable(function):
            return function

        def call(*args: Any, **kwargs: Any) -> Any:
            others = [each._tree if isinstance(each, KDTree) else _values(each) for each in args]
            return function(*others, **{name: _values(each) for name, each in kwargs.items()})

        return call


class _OfPoints:
    """A geometric structure computed by SciPy from points that are a tensor.

    Arguments:
        points: the points, one in each row.
        options: as for SciPy's class.
    """

    def __init__(self, points: Any, *args: Any, **options: Any) -> None:
        self.points = floating(points)
        self._plain = getattr(scipy.spatial, type(self).__name__)(np.array(_values(self.points)), *args, **options)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # `copy` and `pickle` look up such names before the object has contents
            raise AttributeError(name)
        value = getattr(self._plain, name)
        if callable(value):
            return lambda *args, **options: as_tensors(
                value(*map(_values, args), **{name: _values(each) for name, each in options.items()})
            )
        if isinstance(value, np.ndarray) and value.dtype.kind == "f" and carries_history(self.points):
            raise lost(f"scipy.spatial.{type(self).__name__}.{name}", "compute it from the points and the indices")
        return as_tensors(value)


def _values(value: Any) -> Any:
    return plain_values(detached(value))


class ConvexHull(_OfPoints):
    """The convex hull of points; gradients flow to them from the points, the volume and the area."""

    def _sizes(self) -> tuple[Any, Any]:
        """Return the volumes of the simplices between the facets and the centre, and the areas of the facets."""
        corners = self.points[self._plain.simplices]
        middle = self.points[self._plain.vertices].mean(0)
        sides = corners[:, 1:] - corners[:, :1]
        edges = corners - middle
        grams = np.linalg.det(sides @ sides.mT)
        count = self.points.shape[1]
        return np.abs(np.linalg.det(edges)) / math.factorial(count), np.sqrt(grams) / math.factorial(count - 1)

    @property
    def volume(self) -> Any:
        """The volume; for points in a plane, the area."""
        return self._sizes()[0].sum()

    @property
    def area(self) -> Any:
        """The surface area; for points in a plane, the perimeter."""
        return self._sizes()[1].sum()


class Delaunay(_OfPoints):
    """The Delaunay triangulation of points; gradients flow to the points."""


MADE: dict[str, Any] = {
    "ConvexHull": ConvexHull, "Delaunay": Delaunay, "distance": distance, "transform": transform,
    "KDTree": KDTree, "cKDTree": KDTree,
}  # fmt: skip
made: Final = maker(scipy.spatial, MADE, is_checked=True, accepted=Accepted(by_value=False))


@made
def minkowski_distance_p(x: Any, y: Any, p: float = 2.0) -> Any:
    """Return the p-th power of the distances along the last dimension."""
    away = np.abs(floating(x) - floating(y))
    if p == np.inf:
        return away.max(-1)
    return away.sum(-1) if p == 1 else (away**p).sum(-1)


@made
def minkowski_distance(x: Any, y: Any, p: float = 2.0) -> Any:
    """Return the distances along the last dimension."""
    return (floating(x) - floating(y)).vector_norm(p, -1)


@made
def distance_matrix(x: Any, y: Any, p: float = 2.0, threshold: int = 1000000) -> Any:
    """Return the distances between every vector of one matrix and every vector of another."""
    return (floating(x)[:, None, :] - floating(y)[None, :, :]).vector_norm(p, -1)


@made
def procrustes(data1: Any, data2: Any) -> Any:
    """Return two standardized sets of points, the second aligned with the first, and their disparity."""
    first, second = (each - each.mean(0) for each in (floating(data1), floating(data2)))
    first, second = first / np.sqrt((first * first).sum()), second / np.sqrt((second * second).sum())
    turn, scale = orthogonal_procrustes(first, second)
    second = (second @ turn.mT) * scale
    return first, second, ((first - second) ** 2).sum()


@made
def geometric_slerp(start: Any, end: Any, t: Any, tol: float = 1e-7) -> Any:
    """Return points on the great-circle arc between two unit vectors."""
    start, end, t = floating(start), floating(end), floating(t)
    scipy.spatial.geometric_slerp(*plain_values((start, end, t)), tol)  # raises for unsupported arguments
    # The component of `end` orthogonal to `start`, which is accurate even if they are close.
    rest = end - start * (start * end).sum()
    length = rest.vector_norm(2)
    if not plain_values(length) and (plain_values(start) == plain_values(end)).all():
        return start + t.reshape(-1, 1) * 0.0
    angle = np.arctan2(length, (start * end).sum()) * t[..., None]
    return np.cos(angle) * start + np.sin(angle) * (rest / length)


globals().update(filled(scipy.spatial, MADE, frozenset(), {}))
__all__ = public_names(scipy.spatial)
