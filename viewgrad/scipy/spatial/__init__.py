"""`scipy.spatial` for tensors: distances; trees, hulls and triangulations are SciPy's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.spatial  # type: ignore[import-untyped]

from ...numpy.namespace import filled, public_names
from ...numpy.values import as_argument, as_tensors, plain_values
from ...tensor.creation import as_operand
from . import distance, transform

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


class KDTree:
    """A tree of points for searches of neighbours; gradients flow to the distances that are found.

    Arguments:
        data: the points, one in each row.
        options: as of `scipy.spatial.KDTree`.
    """

    def __init__(self, data: Any, *args: Any, **options: Any) -> None:
        self.data = as_operand(as_argument(data)) * 1.0
        self._tree = scipy.spatial.KDTree(np.array(plain_values(self.data.detach())), *args, **options)

    def query(
        self, x: Any, k: Any = 1, eps: float = 0, p: float = 2, distance_upper_bound: float = np.inf, workers: int = 1
    ) -> tuple[Any, Any]:
        """The distances to the nearest points, and their numbers."""
        points = as_operand(as_argument(x)) * 1.0
        _, places = self._tree.query(plain_values(points.detach()), k, eps, p, distance_upper_bound, workers)
        missing = np.asarray(places) >= self.data.shape[0]
        near = self.data[np.where(missing, 0, places)]
        given = points if np.ndim(places) == points.ndim - 1 else points[..., None, :]
        distances = (given - near).vector_norm(p, -1)
        return np.where(missing, np.inf, distances) if missing.any() else distances, as_tensors(places)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # what copies and pickles ask for, before there is anything inside
            raise AttributeError(name)
        function = getattr(self._tree, name)
        if not callable(function):
            return function

        def call(*args: Any, **kwargs: Any) -> Any:
            others = [each._tree if isinstance(each, KDTree) else plain_values(_detached(each)) for each in args]
            return function(*others, **kwargs)

        return call


def _detached(value: Any) -> Any:
    value = as_argument(value)
    return value.detach() if hasattr(value, "detach") else value


MADE: dict[str, Any] = {"distance": distance, "transform": transform, "KDTree": KDTree, "cKDTree": KDTree}
globals().update(filled(scipy.spatial, MADE, frozenset(), {}))
__all__ = public_names(scipy.spatial)
