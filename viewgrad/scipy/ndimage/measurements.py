"""Measurements of labelled regions of an image, and functions with integer results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.ndimage  # type: ignore[import-untyped]

from ...operators.numpy_api.conversion import carries_history, plain_values
from ..wrap import make_constant, numbers, of_detached
from .linear import MADE, made


def _by_label(input: Any, labels: Any, index: Any, measure: Callable[..., Any]) -> Any:
    """Return a measurement of each region from its elements and their positions."""
    image = numbers(input)
    image = image if image.dtype.kind in "fc" else image.astype(float)
    if labels is None:
        return measure(image.reshape(-1), np.indices(image.shape).reshape(image.ndim, image.size))
    names = np.asarray(plain_values(labels))
    shape = np.broadcast_shapes(names.shape, image.shape)
    names, image = np.broadcast_to(names, shape), np.broadcast_to(image, shape)

    def of(inside: Any) -> Any:
        return measure(image[inside], np.stack(np.nonzero(inside)))

    if index is None:
        return of(names > 0)
    wanted = np.asarray(plain_values(index))
    if not wanted.ndim:
        return of(names == wanted)
    return [of(names == each) for each in wanted.reshape(-1)], wanted.shape


def _measure(name: str, doc: str, measure: Callable[[Any], Any], of_each: Callable[[Any], Any] | None = None) -> None:
    """Define a measurement of a single region and, if it differs, of each of several regions."""

    def measured(input: Any, labels: Any = None, index: Any = None) -> Any:
        several = labels is not None and np.ndim(plain_values(index)) > 0
        if several and not np.size(plain_values(index)):
            return numbers(np.zeros(np.shape(plain_values(index))))
        how = of_each if several and of_each is not None else measure
        found = _by_label(input, labels, index, lambda elements, places: how(elements))
        return np.stack(found[0]).reshape(found[1]) if isinstance(found, tuple) else found

    measured.__name__, measured.__doc__ = name, doc
    made(measured)


_measure("sum", "Return the sums of labelled regions.", lambda elements: elements.sum())
_measure("sum_labels", "Return the sums of labelled regions.", lambda elements: elements.sum())
_measure("mean", "Return the means of labelled regions.", lambda elements: elements.mean())
_measure("variance", "Return the variances of labelled regions.", lambda elements: elements.var())
_measure("standard_deviation", "Return the standard deviations of labelled regions.", lambda elements: elements.std())


def _least(elements: Any) -> Any:
    """Return the minimum of one of several labelled regions; NaN sorts last, and empty regions yield 0."""
    count = elements.shape[0]
    missing = np.isnan(plain_values(elements))
    return elements[~missing].min() if count > missing.sum() else elements.min() if count else elements.sum()


def _middle(elements: Any) -> Any:
    """Return the median of one of several labelled regions; NaN sorts last."""
    count, ordered = elements.shape[0], np.sort(elements)
    return (ordered[(count - 1) // 2] + ordered[count // 2]) / 2 if count else np.median(elements)


_measure("minimum", "Return the minima of labelled regions.", lambda elements: elements.min(), _least)
_measure("maximum", "Return the maxima of labelled regions.", lambda elements: elements.max(),
         lambda elements: elements.max() if elements.shape[0] else elements.sum())  # fmt: skip
_measure("median", "Return the medians of labelled regions.", np.median, _middle)


@made
def extrema(input: Any, labels: Any = None, index: Any = None) -> Any:
    """Return the minima and maxima of labelled regions, and their positions."""
    places = (MADE[name](input, labels, index) for name in ("minimum_position", "maximum_position"))
    return MADE["minimum"](input, labels, index), MADE["maximum"](input, labels, index), *places


@made
def center_of_mass(input: Any, labels: Any = None, index: Any = None) -> Any:
    """Return the centres of mass of labelled regions."""

    def centre(elements: Any, places: Any) -> tuple[Any, ...]:
        return tuple((elements * each).sum() / elements.sum() for each in places)

    found = _by_label(input, labels, index, centre)
    return found[0] if isinstance(found[0], list) else found


@made
def distance_transform_edt(
    input: Any, sampling: Any = None, return_distances: bool = True, return_indices: bool = False
) -> Any:
    """Return the distance of each element to the nearest 0; gradients flow to the distances between elements."""
    plain = of_detached(scipy.ndimage.distance_transform_edt, input, sampling, False, True)
    nearest = np.asarray(plain_values(plain))
    if not return_distances:
        return plain
    ndim = nearest.ndim - 1
    steps = np.ones(ndim) if sampling is None else np.broadcast_to(numbers(sampling), (ndim,))
    moves = (nearest - np.indices(nearest.shape[1:])) * steps.reshape((ndim,) + (1,) * ndim)
    distances = np.linalg.norm(moves, axis=0)
    return (distances, plain) if return_indices else distances


@made
def distance_transform_bf(
    input: Any, metric: str = "euclidean", sampling: Any = None, return_distances: bool = True,
    return_indices: bool = False,
) -> Any:  # fmt: skip
    """Return the distance of each element to the nearest 0; gradients flow to the distances between elements."""
    if metric.lower() == "euclidean" and carries_history(sampling):
        return distance_transform_edt(input, sampling, return_distances, return_indices)
    return of_detached(scipy.ndimage.distance_transform_bf, input, metric, sampling, return_distances, return_indices)


make_constant(
    scipy.ndimage,
    (
        "label", "find_objects", "minimum_position", "maximum_position", "histogram", "distance_transform_cdt",
        "binary_erosion", "binary_dilation", "binary_opening",
        "binary_closing", "binary_fill_holes", "binary_propagation", "watershed_ift",
    ),
    MADE,
    "its results are integers or shapes, which have no gradients.",
)  # fmt: skip
