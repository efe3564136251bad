"""Trees: nested tuples, lists, dicts, dataclasses and attrs classes, flattened into leaves and rebuilt.

The leaves are tensors, arrays, and floating-point and complex numbers, of any dtype. Everything else (None, strings,
integers, functions) belongs to the structure, and is unchanged in the rebuilt tree.
"""

from __future__ import annotations

import copy
import dataclasses
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, Final

import attrs
import numpy as np

from ..errors import TreeError
from ..tensor.tensor import Tensor

LEAF_TYPES: Final = (Tensor, np.ndarray, np.inexact, float, complex)


@attrs.frozen
class Structure:
    """The structure of a tree, from which it can be rebuilt.

    Attributes:
        count: the number of leaves.
    """

    count: ClassVar[int]


@attrs.frozen
class Leaf(Structure):
    """The position of a leaf."""

    count = 1


class _Compared:
    """A value as compared between structures: by type and `==`, or by identity if that does not return a bool.

    So True differs from 1, and a member of an `IntEnum` from its number.

    Arguments:
        value: the value. NumPy arrays, SciPy sparse arrays and Pandas objects compare elementwise.
    """

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Compared):
            return NotImplemented
        if self.value is other.value:
            return True
        if type(self.value) is not type(other.value):
            return False
        try:
            same = self.value == other.value
            return isinstance(same, bool | np.bool_) and bool(same)
        except Exception:  # raised by the class of the value
            return False

    def __hash__(self) -> int:
        try:
            return hash(self.value)
        except TypeError:
            return hash(type(self.value))


@attrs.frozen
class Fixed(Structure):
    """A part of a structure that is not a leaf and contains none."""

    value: Any = attrs.field(eq=_Compared)

    count = 0


def _kept(template: Any) -> Any:
    """Return the part of a flattened container that is compared between structures: everything but its children."""
    if template is None or not is_record(type(template)):
        return type(template), getattr(template, "default_factory", None)
    kept = [getattr(template, name, None) for name, _, is_given in _fields(type(template)) if not is_given]
    return tuple(map(_Compared, kept))


@attrs.frozen
class Branch(Structure):
    """A container.

    Arguments:
        kind: its type.
        template: the flattened container, if it has state other than its children.
        keys: the keys of its children: positions, keys of a dict, or names of fields.
        children: the structures of the children.
        count: the number of leaves.
    """

    kind: type
    template: Any = attrs.field(eq=_kept)
    keys: tuple[Any, ...]
    children: tuple[Structure, ...]
    count: int  # type: ignore[misc]


def flatten(tree: Any, leaf_types: tuple[type, ...] = LEAF_TYPES) -> tuple[list[Any], Structure]:
    """Return the leaves of a tree, and its structure."""
    leaves: list[Any] = []
    return leaves, _flatten_into(leaves, tree, leaf_types)


def unflatten(structure: Structure, leaves: Sequence[Any]) -> Any:
    """Return a tree of the given structure with `leaves`, of any type, in place of its leaves."""
    return _build(structure, iter(leaves))


def map_leaves(function: Callable[[Any], Any], tree: Any) -> Any:
    """Return the tree with each leaf replaced by `function(leaf)`."""
    if isinstance(tree, LEAF_TYPES):
        return function(tree)
    leaves, structure = flatten(tree)
    return unflatten(structure, [function(leaf) for leaf in leaves])


def once_each(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Cache the results of `function` by object, so that an array passed twice remains one array.

    The objects must exist as long as the returned function.
    """
    results: dict[int, Any] = {}

    def mapped(leaf: Any) -> Any:
        if id(leaf) not in results:
            results[id(leaf)] = function(leaf)
        return results[id(leaf)]

    return mapped


def paths(structure: Structure) -> list[str]:
    """Return for each leaf the Python expression that reaches it: `['layers'][0].weight`."""
    found: list[str] = []
    _paths_into(found, structure, "")
    return found


def opaque_parts(structure: Structure) -> list[Any]:
    """Return the parts of a tree that are neither leaves, containers nor simple values: functions and objects."""
    value = getattr(structure, "value", None)
    if value is not None and not isinstance(value, (bool, int, str, bytes, slice, range)):
        return [value]
    return [found for child in getattr(structure, "children", ()) for found in opaque_parts(child)]


def leaves_like(structure: Structure, tree: Any, what: str) -> list[Any]:
    """Return the subtrees of `tree` at the positions of the leaves of a structure.

    Arguments:
        structure: the expected structure.
        tree: the tree to check; at the positions of leaves it may contain anything.
        what: its name in the message.

    Raises:
        TreeError: if the tree has a different structure.
    """
    found: list[Any] = []
    _match_into(found, structure, tree, "", what)
    return found


def is_record(kind: type) -> bool:
    """Return whether a class is an attrs class or a dataclass, whose objects can be rebuilt from their fields."""
    if attrs.has(kind):
        return _accepts_fields(kind)
    parameters = getattr(kind, "__dataclass_params__", None)
    if parameters is None or not parameters.init:
        return False
    marks = [field._field_type for field in kind.__dataclass_fields__.values()]  # type: ignore[attr-defined]
    return not any(mark is dataclasses._FIELD_INITVAR for mark in marks) and _accepts_fields(kind)  # type: ignore[attr-defined]


def _accepts_fields(kind: type) -> bool:
    """Return whether the constructor of a class, which may be user-defined, accepts its fields by name."""
    code = getattr(inspect.unwrap(kind.__init__), "__code__", None)  # type: ignore[misc]
    if code is None or code.co_flags & inspect.CO_VARKEYWORDS:
        return True
    accepted = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
    return all(alias in accepted for _, alias, is_given in _fields(kind) if is_given)


def _fields(kind: type) -> tuple[tuple[str, str, bool], ...]:
    """Return the fields of a record: attribute name, argument name, and whether the constructor accepts it."""
    if attrs.has(kind):
        return tuple([(field.name, field.alias or field.name, field.init) for field in attrs.fields(kind)])
    return tuple([(field.name, field.name, field.init) for field in dataclasses.fields(kind)])


# -- the kinds of containers -------------------------------------------------------------------------------------------


def children_of(tree: Any) -> tuple[tuple[Any, ...], list[Any]] | None:
    """Return the keys of a container and its children; None for anything else."""
    kind = type(tree)
    if isinstance(tree, dict):
        return tuple(tree), list(tree.values())
    if isinstance(tree, list) or kind is tuple or (isinstance(tree, tuple) and hasattr(kind, "_fields")):
        return tuple(range(len(tree))), list(tree)
    if is_record(kind):
        fields = [(name, alias) for name, alias, is_given in _fields(kind) if is_given]
        return tuple([alias for _, alias in fields]), [getattr(tree, name) for name, _ in fields]
    return None


def _container(branch: Branch, children: list[Any]) -> Any:
    """Return a container like that of `branch` with other children."""
    kind = branch.kind
    if issubclass(kind, dict):
        result = {} if kind is dict else copy.copy(branch.template)
        result.update(zip(branch.keys, children, strict=True))
        return result
    if kind is tuple or issubclass(kind, list):
        return kind(children)
    if issubclass(kind, tuple):  # a namedtuple
        return kind(*children)
    changed = zip(branch.keys, children, branch.children, strict=True)
    given = {key: child for key, child, structure in changed if structure.count}
    return (attrs.evolve if attrs.has(kind) else dataclasses.replace)(branch.template, **given)


def _step(branch: Branch, key: Any) -> str:
    return f"[{key!r}]" if issubclass(branch.kind, (dict, list, tuple)) else f".{key}"


# -- walking -----------------------------------------------------------------------------------------------------------


def _flatten_into(leaves: list[Any], tree: Any, leaf_types: tuple[type, ...]) -> Structure:
    if isinstance(tree, leaf_types):
        leaves.append(tree)
        return Leaf()
    found = children_of(tree)
    if found is None:
        return Fixed(tree)
    keys, values = found
    before = len(leaves)
    children = tuple([_flatten_into(leaves, value, leaf_types) for value in values])
    kind = type(tree)
    template = None if kind is dict or isinstance(tree, (list, tuple)) else tree
    return Branch(kind, template, keys, children, len(leaves) - before)


def _build(structure: Structure, leaves: Iterator[Any]) -> Any:
    if isinstance(structure, Leaf):
        return next(leaves)
    if isinstance(structure, Fixed):
        return structure.value
    assert isinstance(structure, Branch)
    if not structure.count and is_record(structure.kind):
        return structure.template
    return _container(structure, [_build(child, leaves) for child in structure.children])


def _paths_into(found: list[str], structure: Structure, path: str) -> None:
    if isinstance(structure, Leaf):
        found.append(path)
    elif isinstance(structure, Branch):
        for key, child in zip(structure.keys, structure.children, strict=True):
            _paths_into(found, child, path + _step(structure, key))


def _match_into(found: list[Any], structure: Structure, tree: Any, path: str, what: str) -> None:
    if isinstance(structure, Leaf):
        found.append(tree)
    elif isinstance(structure, Branch) and structure.count:
        children = children_of(tree)
        if children is None or not isinstance(tree, structure.kind):
            raise TreeError(f"{what}{path} is a {type(tree).__name__} where a {structure.kind.__name__} is expected")
        keys, values = children
        if len(keys) != len(structure.keys) or set(keys) != set(structure.keys):
            raise TreeError(f"{what}{path} has {_keys_text(keys)} where {_keys_text(structure.keys)} is expected")
        values_by_key = dict(zip(keys, values, strict=True))
        for key, child in zip(structure.keys, structure.children, strict=True):
            _match_into(found, child, values_by_key[key], path + _step(structure, key), what)


def _keys_text(keys: tuple[Any, ...]) -> str:
    if keys == tuple(range(len(keys))):
        return f"{len(keys)} item{'s' * (len(keys) != 1)}"
    return ", ".join(map(repr, keys))
