"""Basic indices: take windows, and compose indices so that a view of a view is one index into the base.

The cost does not depend on the length of the chain of views, and the position of a view in its base is known without
comparing addresses.
"""

from __future__ import annotations

from operator import index as as_int
from typing import Any, Final

import numpy as np

PLAIN: Final = frozenset({int, slice})
BASIC: Final = frozenset({int, slice, type(None), type(Ellipsis)})


def window_at(buffer: Any, index: Any) -> Any:
    """Return the window `buffer[index]` of an array or a tensor, even for a single element.

    If an index selects a single element, NumPy returns a number. A caller that writes to the result, or needs to see
    changes, needs the window.
    """
    window = buffer[index]
    if type(window if type(buffer) is np.ndarray else window._array) is not np.ndarray:
        window = buffer[(*index, ...) if type(index) is tuple else (index, ...)]
    return window


def add_at(array: Any, index: Any, value: Any) -> None:
    """Call `np.add.at`, with a workaround for NumPy 2.4, which reads out of bounds if the values have fewer dimensions.
    """
    if array.ndim == 1 and 0 < np.ndim(value) < np.ndim(index[0] if type(index) is tuple else index):
        value = np.broadcast_to(value, array[index].shape)
    np.add.at(array, index, value)


def composed(outer: Any, inner: Any, shape: tuple[int, ...]) -> tuple[Any, ...] | None:
    """Return the basic index for which `base[outer][inner]` is `base[composed(outer, inner, base.shape)]`.

    Arguments:
        outer: the index of a view of the base.
        inner: an index into that view, within bounds.
        shape: the shape of the base.

    Returns:
        The index, without negative numbers except steps; None in the rare case that no basic index is equivalent.
    """
    outer = outer if type(outer) is tuple else (outer,)
    inner = inner if type(inner) is tuple else (inner,)
    if PLAIN.issuperset(map(type, outer)) and PLAIN.issuperset(map(type, inner)):
        return _composed_plain(outer, inner, shape)
    # for each dimension of the base, and each dimension added by `outer`: an int, a range or None
    parts: list[Any] = []
    dimension = 0
    for item in _expanded(outer, len(shape)):
        if item is None:
            parts.append(None)
            continue
        extent = shape[dimension]
        dimension += 1
        if type(item) is slice:
            parts.append(range(extent)[item])
        else:
            parts.append(item if item >= 0 else item + extent)
    result: list[Any] = []
    items = iter(_expanded(inner, sum(type(part) is not int for part in parts)))
    for part in parts:
        if type(part) is int:
            result.append(part)
            continue
        item = next(items)
        while item is None:
            result.append(None)
            item = next(items)
        if part is None:  # a dimension of length 1 added by `outer`
            if type(item) is slice:
                if not range(1)[item]:
                    return None
                result.append(None)
        elif type(item) is slice:
            result.append(_as_slice(part[item]))
        else:
            result.append(part[item])
    result.extend(items)  # dimensions appended at the end
    return tuple(result)


def _composed_plain(outer: tuple[Any, ...], inner: tuple[Any, ...], shape: tuple[int, ...]) -> tuple[Any, ...]:
    """Return the composed index of integers and slices, without a slice for every trailing dimension."""
    result: list[Any] = []
    items = iter(inner)
    for dimension, first in enumerate(outer):
        if type(first) is int:
            result.append(first if first >= 0 else first + shape[dimension])
            continue
        positions = range(shape[dimension])[first]
        item = next(items, None)
        if type(item) is int:
            result.append(positions[item])
        else:
            result.append(_as_slice(positions if item is None else positions[item]))
    for dimension, item in enumerate(items, len(outer)):
        if type(item) is int:
            result.append(item if item >= 0 else item + shape[dimension])
        else:
            result.append(_as_slice(range(shape[dimension])[item]))
    return tuple(result)


def _expanded(index: tuple[Any, ...], ndim: int) -> list[Any]:
    """Return the items of an index, with a full slice for every dimension that it omits."""
    items = list(index)
    named = sum(item is not None and item is not Ellipsis for item in items)
    whole = [slice(None)] * (ndim - named)
    if Ellipsis in items:
        place = items.index(Ellipsis)
        return items[:place] + whole + items[place + 1 :]
    return items + whole


def _as_slice(positions: range) -> slice:
    if not positions:
        return slice(0, 0, 1)
    stop = positions.stop
    return slice(positions.start, stop if stop >= 0 else None, positions.step)


def is_plain(items: tuple[Any, ...]) -> bool:
    """Return whether an index is basic and contains no arrays or tensors, which could be written to later."""
    for item in items:
        kind = type(item)
        if kind is int:
            continue
        if kind is slice:
            start, stop = item.start, item.stop
            if (
                (start is not None and type(start) is not int)
                or (stop is not None and type(stop) is not int)
                or (item.step is not None and type(item.step) is not int)
            ):
                return False
        elif kind not in BASIC:
            return False
    return True


def settled_slice(index: slice) -> slice:
    """Return a slice with immutable bounds."""
    start, stop = index.start, index.stop
    if (
        (start is None or type(start) is int)
        and (stop is None or type(stop) is int)
        and (index.step is None or type(index.step) is int)
    ):
        return index
    return plain_slice(index)


def plain_slice(item: slice) -> slice:
    return slice(*(None if bound is None else as_int(bound) for bound in (item.start, item.stop, item.step)))
