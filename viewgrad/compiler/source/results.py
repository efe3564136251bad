"""The results of programs and of functions, as trees of leaves."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ...tensor.tensor import Tensor, as_scalar
from .objects import record_fields
from .value_types import Num
from .values import ListOf, ListResult, RecordValue, Row, Static, TupleValue


def flatten_result(result: Any, tree: Any) -> list[Any] | None:
    """Return the leaves of a result, including known objects, or None if it has a different structure.

    Arguments:
        result: the result of the function.
        tree: the result of its program, in which a list of unknown length has one leaf (an array or a tensor) for each
            part of its items.
    """
    found: list[Any] = []
    return found if _put_leaves(found, result, tree) else None


def _put_leaves(found: list[Any], value: Any, tree: Any) -> bool:
    """Append the leaves of a value to `found`; return whether it has the structure of the tree."""
    # Not an inner function, which would keep the leaves in a reference cycle.
    if isinstance(tree, ListResult):
        if type(value) is not list or (isinstance(tree.kind, tuple) and any(
            type(each) is not tuple or len(each) != len(tree.kind) for each in value
        )):
            return False
        if isinstance(tree.kind, tuple):
            found.extend(_stacked([each[number] for each in value]) for number in range(len(tree.kind)))
        else:
            found.append(_stacked(value))
        return True
    if isinstance(tree, TupleValue):
        return isinstance(value, (tuple, list)) and len(value) == len(tree.items) and all(
            _put_leaves(found, each, item) for each, item in zip(value, tree.items))
    if isinstance(tree, RecordValue) and tree.cls is dict:
        return isinstance(value, dict) and list(value) == list(tree.fields) and all(
            _put_leaves(found, each, item) for each, item in zip(value.values(), tree.fields.values()))
    if isinstance(tree, RecordValue):
        return type(value) is tree.cls and all(
            _put_leaves(found, getattr(value, name), item) for name, item in tree.fields.items())
    found.append(value)
    return not isinstance(value, (tuple, list, dict)) and record_fields(type(value)) is None


def _stacked(items: list[Any]) -> Any:
    """Return an array or a tensor of the items of a list, which may be lists."""
    items = [_stacked(each) if type(each) is list else each for each in items]
    return np.stack(items) if any(isinstance(each, Tensor) for each in items) else np.array(items)


def has_lists(tree: Any) -> bool:
    """Return whether the result of a program contains lists of unknown length."""
    items: Any = ()
    if isinstance(tree, (TupleValue, RecordValue)):
        items = tree.items if isinstance(tree, TupleValue) else tree.fields.values()
    return isinstance(tree, ListResult) or any(map(has_lists, items))


def built_result(tree: Any, leaves: Mapping[str, Any], kinds: Mapping[str, Any], wanted: Sequence[Any] | None) -> Any:
    """Return the result of a function.

    Arguments:
        tree: the result of its program.
        leaves: the tensors in it, by their variables.
        kinds: the kinds of the variables.
        wanted: the types of the leaves of the function's own results, in order; None if unknown.
    """
    types = itertools.repeat(None) if wanted is None else itertools.chain(wanted, itertools.repeat(None))
    return _built(tree, leaves, kinds, types)


def _built(tree: Any, leaves: Mapping[str, Any], kinds: Mapping[str, Any], types: Iterator[Any]) -> Any:
    # Not an inner function, which would keep the leaves in a reference cycle.
    if isinstance(tree, TupleValue):
        items = [_built(item, leaves, kinds, types) for item in tree.items]
        return tree.cls(*items) if hasattr(tree.cls, "_fields") else tree.cls(items)
    if isinstance(tree, RecordValue):
        fields = {key: _built(item, leaves, kinds, types) for key, item in tree.fields.items()}
        return fields if tree.cls is dict else tree.cls(**fields)
    if isinstance(tree, ListResult):
        kinds_of_parts = tree.kind if isinstance(tree.kind, tuple) else (tree.kind,)
        parts = [
            _list_of(leaves[array.name], each, next(types)) for array, each in zip(tree.arrays, kinds_of_parts)
        ]
        return list(zip(*parts)) if isinstance(tree.kind, tuple) else parts[0]
    kind = next(types)
    if isinstance(tree, Static):
        return tree.value
    return typed_leaf(leaves[tree.name], kinds[tree.name], kind)


def _list_of(tensor: Any, kind: Any, wanted: Any) -> list[Any]:
    """Return the elements of a tensor as a list, with Python numbers if the function returns those."""
    if isinstance(kind, ListOf):
        return [_list_of(row, kind.kind, wanted) for row in tensor]
    if isinstance(kind, Row):
        return list(tensor)
    if not tensor.requires_grad and (wanted is np.ndarray or (wanted is None and kind.dtype != "d" and kind.weak)):
        found: list[Any] = tensor._array.tolist()
        return found
    return list(tensor)


def typed_leaf(tensor: Any, kind: Any, wanted: Any) -> Any:
    """Return a leaf of the results in the type that the function returns."""
    array = tensor._array
    if isinstance(kind, Num):
        if wanted in (int, bool) and kind.dtype in "?l":
            return wanted(array)
        if wanted is float and not tensor.requires_grad:
            return float(array)
        if kind.dtype != "d" and wanted is None and kind.weak:
            return array.item()
        return as_scalar(tensor)
    return tensor


def with_leaf(value: Any, steps: Sequence[tuple[str, Any]], leaf: Any) -> Any:
    """Return the argument with the leaf at the end of a path replaced."""
    if not steps:
        return leaf
    (how, key), rest = steps[0], steps[1:]
    if how in ("item", "key"):
        items = dict(value) if isinstance(value, dict) else list(value)
        items[key] = with_leaf(items[key], rest, leaf)
        if isinstance(value, (dict, list)):
            return items
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    new = copy.copy(value)
    object.__setattr__(new, key, with_leaf(getattr(value, key), rest, leaf))
    return new
