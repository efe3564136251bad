"""`scipy.spatial.distance` for tensors."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import scipy.spatial.distance  # type: ignore[import-untyped]

from ...numpy.namespace import filled, public_names
from ...operators.numpy_api.adapted import lost
from ...operators.numpy_api.conversion import carries_history, plain_values
from ...tensor.creation import as_operand, holds_tensor
from .. import special
from ..wrap import Accepted, float_copy, maker, of_detached

if TYPE_CHECKING:
    from ..typed.spatial_distance import *  # noqa: F403

    def __getattr__(name: str) -> Any: ...


def _cosine(u: Any, v: Any) -> Any:
    return 1.0 - (u * v).sum(-1) / (u.vector_norm(2, -1) * v.vector_norm(2, -1))


def _correlation(u: Any, v: Any) -> Any:
    return _cosine(u - u.mean(-1, keepdims=True), v - v.mean(-1, keepdims=True))


# Distances between pairs of vectors, along the last dimension.
METRICS: Final[dict[str, Callable[..., Any]]] = {
    "euclidean": lambda u, v: (u - v).vector_norm(2, -1),
    "sqeuclidean": lambda u, v: ((u - v) ** 2).sum(-1),
    "cityblock": lambda u, v: np.abs(u - v).sum(-1),
    "chebyshev": lambda u, v: np.abs(u - v).max(-1),
    "cosine": _cosine,
    "correlation": _correlation,
    "canberra": lambda u, v: _canberra(u, v),
    "braycurtis": lambda u, v: np.abs(u - v).sum(-1) / np.abs(u + v).sum(-1),
    "minkowski": lambda u, v, p=2: (u - v).vector_norm(p, -1),
    "seuclidean": lambda u, v, V: np.sqrt(((u - v) ** 2 / float_copy(V)).sum(-1)),
    "mahalanobis": lambda u, v, VI: np.sqrt((((u - v) @ float_copy(VI)) * (u - v)).sum(-1)),
}


def _canberra(u: Any, v: Any) -> Any:
    total = np.abs(u) + np.abs(v)
    return (np.abs(u - v) / np.where(total == 0, 1.0, total)).sum(-1)


def _metric(name: Any) -> Callable[..., Any]:
    if callable(name):
        return name  # type: ignore[no-any-return]
    found = METRICS.get(name)
    if found is None:
        raise lost(f"scipy.spatial.distance: the metric {name!r}", "use one of " + ", ".join(METRICS))
    return found


def _distances(name: str, u: Any, v: Any, options: dict[str, Any]) -> Any:
    metric = _metric(name)
    try:
        inspect.signature(metric).bind(u, v, **options)
    except TypeError as error:
        raise lost(f"scipy.spatial.distance: the metric {name!r}", f"for tensors with a history: {error}") from None
    return metric(u, v, **options)


def cdist(XA: Any, XB: Any, metric: Any = "euclidean", *, out: Any = None, **options: Any) -> Any:
    """Return the distances between every vector of one matrix and every vector of another."""
    if not callable(metric) or not holds_tensor((XA, XB)):
        found = of_detached(scipy.spatial.distance.cdist, XA, XB, metric, out=out, **options)
        if not carries_history((XA, XB, options)):
            return found
    a, b = float_copy(XA), float_copy(XB)
    if callable(metric):
        return np.stack([np.stack([as_operand(metric(u, v, **options)) for v in b]) for u in a])
    return _distances(metric, a[:, None, :], b[None, :, :], options)


def pdist(X: Any, metric: Any = "euclidean", *, out: Any = None, **options: Any) -> Any:
    """Return the distances between all pairs of rows of a matrix, as a vector."""
    if not callable(metric) or not holds_tensor(X):
        found = of_detached(scipy.spatial.distance.pdist, X, metric, out=out, **options)
        if not carries_history((X, options)):
            return found
    x = float_copy(X)
    first, second = np.triu_indices(x.shape[0], 1)
    if callable(metric):
        return np.stack([as_operand(metric(x[i], x[j], **options)) for i, j in zip(first, second)])
    return _distances(metric, x[first], x[second], options)


def squareform(X: Any, force: str = "no", checks: bool = True) -> Any:
    """Convert the distances of `pdist` to a symmetric matrix, or back."""
    found = of_detached(scipy.spatial.distance.squareform, X, force, checks)
    if not carries_history(X):
        return found
    x = float_copy(X)
    if x.ndim == 2:
        first, second = np.triu_indices(x.shape[0], 1)
        return x[first, second]
    if not x.size:
        return found
    size = int(np.ceil(np.sqrt(x.size * 2)))
    places = np.zeros((size, size), int)
    places[np.triu_indices(size, 1)] = np.arange(x.size)
    return x[places + places.T] * (1.0 - np.eye(size))


def _of_two(name: str) -> Callable[..., Any]:
    scipys = getattr(scipy.spatial.distance, name)
    names = list(inspect.signature(scipys).parameters)[2:]

    def distance(u: Any, v: Any, *args: Any, **options: Any) -> Any:
        found = of_detached(scipys, u, v, *args, **options)
        if not carries_history((u, v, *args, options)):
            return found
        options |= dict(zip(names, args))
        if options.pop("w", None) is not None:
            raise lost(f"scipy.spatial.distance.{name}", "weights are not supported; scale the vectors instead")
        return _distances(name, float_copy(u), float_copy(v), options)

    distance.__name__ = distance.__qualname__ = name
    distance.__doc__ = f"The {name} distance of two vectors."
    return distance


MADE: dict[str, Any] = {
    "cdist": cdist,
    "pdist": pdist,
    "squareform": squareform,
    **{name: _of_two(name) for name in METRICS},
}
made: Final = maker(scipy.spatial.distance, MADE, is_checked=True, accepted=Accepted())


@made
def directed_hausdorff(u: Any, v: Any, rng: Any = 0, **options: Any) -> Any:
    """Return the largest distance from a point to the nearest point of another set, and the indices of both points."""
    u, v = float_copy(u), float_copy(v)
    _, i, j = scipy.spatial.distance.directed_hausdorff(plain_values(u.detach()), plain_values(v.detach()))
    return (u[i] - v[j]).vector_norm(2), i, j


def _to_middle(p: Any, q: Any) -> Any:
    """Return p * log(p / m), where m is the mean of p and q; where both are 0 the slope is that for q = 0."""
    absent = (plain_values(p) == 0) & (plain_values(q) == 0)
    if not absent.any():
        return special.rel_entr(p, (p + q) / 2.0)
    p, q, rest = np.where(absent, 1.0, p), np.where(absent, 1.0, q), p
    return np.where(absent, rest * math.log(2.0), special.rel_entr(p, (p + q) / 2.0))


@made
def jensenshannon(p: Any, q: Any, base: Any = None, *, axis: int = 0, keepdims: bool = False) -> Any:
    """Return the square root of the Jensen-Shannon divergence between two distributions."""
    p, q = (float_copy(each) for each in (p, q))
    p, q = (each * np.sign(plain_values(each).sum(axis, keepdims=True)) for each in (p, q))
    first, second = p.sum(axis, keepdims=True), q.sum(axis, keepdims=True)
    # Divided by the sums last, so that the infinite slopes at zeros do not reach the other elements.
    both = _to_middle(p, q * (first / second)) / first + _to_middle(q, p * (second / first)) / second
    found = both.sum(axis, keepdims=keepdims)
    return np.sqrt((found if base is None else found / np.log(base)) / 2.0)


globals().update(filled(scipy.spatial.distance, MADE, frozenset(), {}))
__all__ = public_names(scipy.spatial.distance)
