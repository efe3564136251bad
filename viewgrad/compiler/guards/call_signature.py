"""Call signatures, which allow repeated calls to skip flattening, and the keys of specializations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from ...func.tree import LEAF_TYPES, Structure, is_record
from ...tensor.creation import from_numpy
from ...tensor.equality import array_key
from ...tensor.tensor import Tensor, as_scalar, from_array, is_scalar
from ...trace.signature import layout_of
from ...views.geometry import overlaps_itself

Taker = Callable[[Any, list[Any]], bool]
SIMPLE: Final = (bool, int, float, complex, str, bytes, type(None), np.generic)


class CallSignature:
    """The signature of a call: the types, shapes, dtypes and strides of its arguments, and the values of constants.

    Arguments:
        extractors: for each argument, a function that appends its leaves and returns whether the argument matches.
        names: the keywords of the last arguments.
    """

    def __init__(self, extractors: Sequence[Taker], names: tuple[str, ...]) -> None:
        self.extractors = extractors
        self.names = names
        self.count = len(extractors) - len(names)

    def leaves(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> list[Any] | None:
        """Return the leaves of the arguments in the order of `flatten`, or None if the signature does not match.

        Shared memory is not checked.
        """
        if len(args) != self.count or ((keywords or self.names) and tuple(keywords) != self.names):
            return None
        leaves: list[Any] = []
        given = (*args, *keywords.values()) if keywords else args
        for take, each in zip(self.extractors, given):
            if not take(each, leaves):
                return None
        return leaves


def call_signature(
    args: tuple[Any, ...], keywords: dict[str, Any], leaves: Sequence[Any], static: frozenset[int]
) -> CallSignature | None:
    """Return the signature of a call, or None if comparing it would take as long as flattening.

    Arguments:
        args, keywords: the arguments.
        leaves: the leaves of the arguments as inputs of a program. A tensor in place of a float matches any float.
        static: the numbers of the leaves that are constants of the program.
    """
    numbers = [0]
    extractors = [_tree(each, leaves, static, numbers) for each in (*args, *keywords.values())]
    known = [extractor for extractor in extractors if extractor is not None]
    return CallSignature(known, tuple(keywords)) if len(known) == len(extractors) else None


def specialization_key(structure: Structure, leaves: Sequence[Any], mode: int, static: frozenset[int]) -> Any:
    """Return the key of the specialization for a call.

    Arguments:
        structure, leaves: the flattened arguments.
        mode: the mode of the call.
        static: the numbers of the leaves that are constants of the program.
    """
    kinds: list[Any] = []
    for number, leaf in enumerate(leaves):
        if isinstance(leaf, np.ndarray) and number in static:
            kinds.append(("static", *array_key(leaf), layout_key(leaf)))
        elif type(leaf) is Tensor:
            kinds.append((leaf._array.shape, leaf._array.dtype, leaf.requires_grad, layout_key(leaf._array)))
            if is_scalar(leaf):
                kinds.append("scalar")
        elif isinstance(leaf, np.ndarray):
            kinds.append((leaf.shape, leaf.dtype, None, layout_key(leaf)))
        else:
            kinds.append((type(leaf), repr(leaf)))
    return structure, tuple(kinds), mode, share_memory(leaves)


def share_memory(leaves: Sequence[Any]) -> bool:
    """Return whether any two of the given arrays and tensors may share memory."""
    found = [leaf._array if isinstance(leaf, Tensor) else leaf for leaf in leaves]
    arrays = [array for array in found if isinstance(array, np.ndarray) and array.size]
    for i, array in enumerate(arrays):
        for other in arrays[:i]:
            if other is array:
                return True
            is_part = array.base is not None or other.base is not None
            if is_part and np.may_share_memory(array, other):
                return True
    return False


def share_memory_with(leaves: Sequence[Any], arrays: Sequence[Any]) -> bool:
    """Return whether any of the given arrays and tensors may share memory with any of `arrays`."""
    for leaf in leaves:
        given = leaf._array if isinstance(leaf, Tensor) else leaf
        if isinstance(given, np.ndarray):
            for each in arrays:
                array = each._array if isinstance(each, Tensor) else each
                if given is array:
                    return True
                if (given.base is not None or array.base is not None) and np.may_share_memory(given, array):
                    return True
    return False


def layout_key(array: np.ndarray[Any, Any]) -> tuple[Any, ...] | None:
    """Return the aspects of an array's layout that views depend on, or None for C order.

    If elements of the array share memory, the strides say which ones.
    """
    if array.flags.c_contiguous:
        return None
    return ("overlapping", *array.strides) if overlaps_itself(array) else layout_of(array)


def numbered_tensor(leaf: Any) -> Tensor:
    """Return a leaf as an input of a program."""
    if isinstance(leaf, Tensor):
        return leaf
    return from_numpy(leaf) if isinstance(leaf, np.ndarray) else as_scalar(from_array(np.asarray(leaf)))


def _tree(tree: Any, leaves: Sequence[Any], static: frozenset[int], numbers: list[int]) -> Taker | None:
    """Return a function that extracts the leaves of an argument."""
    if isinstance(tree, LEAF_TYPES):
        number = numbers[0]
        numbers[0] += 1
        return _extractor(tree, leaves[number], number in static)
    kind = type(tree)
    if kind not in (tuple, list, dict):
        if isinstance(tree, (tuple, list, dict)) or is_record(kind):
            return None
        return _extractor(tree, tree, False) if isinstance(tree, SIMPLE) else _identical(tree)
    children = list(tree.values()) if kind is dict else tree
    extractors = [_tree(child, leaves, static, numbers) for child in children]
    known = [extractor for extractor in extractors if extractor is not None]
    if len(known) < len(extractors):
        return None
    return _dicts(tuple(tree), known) if kind is dict else _rows(kind, known)


def _extractor(given: Any, leaf: Any, is_static: bool) -> Taker | None:
    if type(given) is Tensor:
        return _tensors(given)
    if isinstance(given, np.ndarray):
        if type(given) is not np.ndarray:
            return None
        return _same_arrays(given) if is_static else _arrays(given)
    return _floats(type(given)) if type(leaf) is Tensor else _simple(given)


def _tensors(tensor: Tensor) -> Taker:
    given = tensor._array
    shape, dtype, strides, grad = given.shape, given.dtype, given.strides, tensor.requires_grad
    kind = type(given)

    def take(given: Any, leaves: list[Any]) -> bool:
        if type(given) is not Tensor:
            return False
        array = given._array
        leaves.append(given)
        is_alike = array.shape == shape and array.dtype == dtype and array.strides == strides
        return is_alike and given.requires_grad is grad and type(array) is kind

    return take


def _arrays(array: np.ndarray[Any, Any]) -> Taker:
    shape, dtype, strides = array.shape, array.dtype, array.strides

    def take(given: Any, leaves: list[Any]) -> bool:
        leaves.append(given)
        is_alike = type(given) is np.ndarray and given.shape == shape and given.dtype == dtype
        return is_alike and given.strides == strides

    return take


def _same_arrays(array: np.ndarray[Any, Any]) -> Taker:
    key, takes_alike = array_key(array), _arrays(array)

    def take(given: Any, leaves: list[Any]) -> bool:
        return takes_alike(given, leaves) and array_key(given) == key

    return take


def _floats(kind: type) -> Taker:
    def take(given: Any, leaves: list[Any]) -> bool:
        leaves.append(given)
        return type(given) is kind

    return take


def _simple(value: Any) -> Taker:
    kind = type(value)
    is_leaf = isinstance(value, LEAF_TYPES)
    text = repr(value)

    def take(given: Any, leaves: list[Any]) -> bool:
        if is_leaf:
            leaves.append(given)
        return type(given) is kind and (given is value or repr(given) == text)

    return take


def _identical(value: Any) -> Taker:
    def take(given: Any, leaves: list[Any]) -> bool:
        return given is value

    return take


def _rows(kind: type[list[Any] | tuple[Any, ...]], extractors: Sequence[Taker]) -> Taker:
    count = len(extractors)

    def take(given: Any, leaves: list[Any]) -> bool:
        if type(given) is not kind or len(given) != count:
            return False
        for extractor, each in zip(extractors, given):
            if not extractor(each, leaves):
                return False
        return True

    return take


def _dicts(keys: tuple[Any, ...], extractors: Sequence[Taker]) -> Taker:
    def take(given: Any, leaves: list[Any]) -> bool:
        if type(given) is not dict or tuple(given) != keys:
            return False
        for extractor, each in zip(extractors, given.values()):
            if not extractor(each, leaves):
                return False
        return True

    return take
