"""Guards on captured state: variables of enclosing functions and modules, classes, and defaults.

A trace depends on this state, so all of it is compared before the trace is used again. Numbers, strings and arrays are
compared by value, functions by identity and by their own captured state. Tensors are looked up again, and must share
memory with each other as before.
"""

from __future__ import annotations

import array
import copy
import operator
import random
import types
from collections import deque
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

import numpy as np

from ...tensor.equality import is_same_array, is_same_constant
from ...tensor.tensor import Tensor
from ...trace.tracing.error_modes import raises_errors
from ...trace.tracing.memory import owner_of
from ...type_aliases import Array
from .captured import ATTRIBUTE, CELL, FIXED, ITEM, Attributes, CachedResults, Captured, Content, Unguarded
from .closure_walk import MAX_VALUES, SIMPLE, captured_values
from .identity_checks import FEW, MOST_CHECKED, Check, identity_check

COPIED: Final = (set, deque, bytearray, array.array, np.void)  # compared with a copy
COUNTED: Final = (list,)  # compared by length
KEYED: Final = (dict, types.MappingProxyType)  # compared by keys
RENEWED: Final = frozenset({str, Content, CachedResults})  # the types of values that are created when looked up
INPUTS: Final = (Tensor, np.ndarray, np.generic, float)  # the types of inputs of programs
FREE: Final = object()  # the placeholder for inputs, which are not compared


class ClosureGuard:
    """The captured state of a function.

    Arguments:
        function: the function.
        arguments: its arguments that are neither tensors, arrays nor numbers: functions and objects.
        inputs: the locations of arrays and floats that are not compared, since they are looked up at each call: the
            address of the object that contains the value, and the key, the attribute name, or None for a cell.

    Attributes:
        plain_arrays: the captured NumPy arrays.
    """

    def __init__(
        self, function: Callable[..., Any], arguments: Sequence[Any] = (), inputs: Collection[tuple[int, Any]] = ()
    ) -> None:
        self.function = function
        self.arguments = arguments
        seen = list(captured_values(function, arguments))
        self.free: frozenset[str] = _paths_at(seen, inputs) if inputs else frozenset()
        self._keep(seen)

    def _keep(self, seen: list[Captured]) -> None:
        self.snapshots = [FREE if each.path in self.free else _snapshot(each.value) for each in seen]
        self.captured = seen
        self.shared_windows = _shared_windows(seen, self.free)
        self.plain_arrays = [each.value for each in seen if isinstance(each.value, np.ndarray) and each.value.size]
        if self.free:
            seen = [each for each in seen if each.path not in self.free]
        self._look_up(seen, [kept for kept in self.snapshots if kept is not FREE])

    def _look_up(self, seen: list[Captured], all_kept: list[Any]) -> None:
        """Prepare the comparisons, cheapest first."""
        self.contents = [
            (kept, each.value) for kept, each in zip(all_kept, seen)
            if isinstance(each.value, (np.ndarray, *COUNTED, *KEYED, *COPIED)) and type(kept) is tuple
        ]
        owners: dict[int, tuple[Any, list[Any], list[Any]]] = {}
        self.looked_up = [each for each in seen if each.how == ITEM]
        for each in self.looked_up:
            _, keys, values = owners.setdefault(id(each.owner), (each.owner.get, [], []))
            keys.append(each.key)
            values.append(each.value)
        self.items = list(owners.values())
        self.counts = [(each.value.content, each.value.count) for each in seen if type(each.value) is Attributes]
        self.cells = [(each.owner, each.value) for each in seen if each.how == CELL]
        self.attributes = [(each.owner, each.key, each.value) for each in seen if each.how == ATTRIBUTE]
        self.others = [each for each in seen if each.how not in (ITEM, CELL, ATTRIBUTE, FIXED)]
        self.checks_passed = 0  # the number of consecutive checks without a change
        self.quick: Callable[[Sequence[Any]], bool] | None = None  # of items, cells and attributes

    @property
    def too_many(self) -> bool:
        """Return whether there is more captured state than can be inspected."""
        return len(self.captured) >= MAX_VALUES

    @property
    def why_incomplete(self) -> str | None:
        """The reason why some change of captured state would go unnoticed, or None."""
        if any(hasattr(type(each.value), "__next__") for each in self.captured):
            return "it captures an iterator, whose values differ from call to call"
        hidden = next((str(each.value) for each in self.captured if type(each.value) is Unguarded), None)
        if hidden is not None:
            return hidden
        return "it captures too much state" if self.too_many else None

    def has_new_objects(self) -> bool:
        """Return whether captured tensors were replaced by others, or results were added to caches."""
        tensors = any(isinstance(each.value, Tensor) and each.now() is not each.value for each in self.captured)
        caches = [each for each in self.captured if type(each.value) is CachedResults]
        return tensors or any(len(each.now().results) != len(each.value.results) for each in caches)

    def unchanged(self) -> bool:
        """Return whether all captured state except tensors is unchanged, and floating-point errors do not raise."""
        if raises_errors():
            return False
        if self.quick is None or not self.quick(()):
            for get, keys, values in self.items:
                if not all(map(operator.is_, map(get, keys), values)):
                    return self._equal()
            try:
                for cell, value in self.cells:
                    if cell.cell_contents is not value:
                        return self._equal()
            except ValueError:  # it was deleted
                return False
            for owner, key, value in self.attributes:
                if getattr(owner, key, None) is not value:
                    return self._equal()
            self.checks_passed += 1
            if self.checks_passed == FEW:
                self.quick = self._quick_check()
        for content, count in self.counts:
            if len(content) != count:
                return self._equal()
        for each in self.others:
            now = each.now()
            if now is not each.value and not (type(now) in RENEWED and _same(each.value, now)):
                return self._equal()
        return not self.contents or all(_same(kept, value) for kept, value in self.contents)

    def _quick_check(self) -> Callable[[Sequence[Any]], bool] | None:
        """Return one expression for the comparisons by identity, or None if there are too many."""
        checks = []
        for each in self.looked_up:
            way = "item" if type(each.owner) is dict and each.value is not None else "get"
            checks.append(Check(each.owner, ((way, each.key),), each.value))
        checks += [Check(cell, (("cell", None),), value) for cell, value in self.cells]
        checks += [
            Check(owner, (("maybe" if value is None else "attr", key),), value) for owner, key, value in self.attributes
        ]
        return identity_check(checks) if len(checks) <= MOST_CHECKED else None

    def _equal(self) -> bool:
        """Return whether all captured state is unchanged, by traversing it again."""
        now: list[Captured] = []
        for found in captured_values(self.function, self.arguments):
            number = len(now)
            if number == len(self.captured) or found.path != self.captured[number].path:
                return False
            if not _same(self.snapshots[number], found.value):
                return False
            now.append(found)
        if len(now) < len(self.captured) or _shared_windows(now, self.free) != self.shared_windows:
            return False
        self._keep(now)
        return True

    def path_of(self, tensor: Tensor) -> int | None:
        """Return the number by which `tensors_at` finds a tensor, or None if it is not captured."""
        for number, each in enumerate(self.captured):
            if each.value is tensor:
                return number
        return None

    def tensors_at(self, numbers: Sequence[int]) -> list[Any]:
        """Return the current values with the given numbers."""
        return [self.captured[number].now() for number in numbers]

    @property
    def arrays(self) -> list[Any]:
        """The captured arrays and tensors."""
        return [each.value for each in self.captured if isinstance(each.value, (Tensor, np.ndarray))]

    @property
    def generators(self) -> list[Any]:
        """The captured random generators."""
        kinds = (np.random.Generator, np.random.RandomState, random.Random)
        found = [each.value for each in self.captured if isinstance(each.value, kinds)]
        return [each for each in found if not isinstance(each, random.SystemRandom)]  # which has no state


def random_state(generators: list[Any]) -> Any:
    """Return the state of the global random generators of NumPy and Python, and of given ones."""
    found = np.random.get_state(legacy=False)  # noqa: NPY002 -- a generator that the user may have drawn from
    assert isinstance(found, dict)
    return _state(found), random.getstate(), [_state_of(generator) for generator in generators]


def _state_of(generator: Any) -> Any:
    if isinstance(generator, random.Random):
        return generator.getstate()
    if isinstance(generator, np.random.RandomState):
        return _state(generator.get_state(legacy=False))
    return repr(generator.bit_generator.state)


def _state(found: Any) -> Any:
    numbers = found["state"]
    return (numbers["key"].tobytes(), numbers["pos"]) if "key" in numbers else repr(numbers)


def _shared_windows(seen: Sequence[Captured], free: Collection[str]) -> list[Any]:
    """Return the windows of captured tensors and arrays on memory that they share.

    Two tensors that share memory are one input of a program and a view of it, so the view must stay where it is.
    """
    windows: dict[int, list[tuple[int, Array]]] = {}
    for number, each in enumerate(seen):
        array = each.value._array if isinstance(each.value, Tensor) else each.value
        if isinstance(array, np.ndarray) and each.path not in free:
            windows.setdefault(id(owner_of(array)), []).append((number, array))
    return [
        (number, array.ctypes.data - of[0][1].ctypes.data, array.shape, array.strides, array.dtype)
        for of in windows.values() if len(of) > 1 for number, array in of
    ]  # fmt: skip


def _snapshot(value: Any) -> Any:
    """Return the part of a value that is needed for later comparisons."""
    if isinstance(value, np.ndarray):
        return value, value.copy(), value.flags.writeable
    if isinstance(value, KEYED):
        return value, list(value)
    if isinstance(value, COUNTED):
        return value, len(value)
    if isinstance(value, COPIED):
        return value, copy.copy(value)
    return value


def _paths_at(seen: Sequence[Captured], places: Collection[tuple[int, Any]]) -> frozenset[str]:
    """Return the paths of values that are captured only at the given locations."""
    found: set[str] = set()
    others: set[str] = set()
    for each in seen:
        key = None if each.how == CELL else each.key
        is_at = each.how != FIXED and isinstance(each.value, INPUTS) and (id(each.owner), key) in places
        (found if is_at else others).add(each.path)
    return frozenset(found - others)


def _same(before: Any, now: Any) -> bool:
    if before is FREE:
        return isinstance(now, INPUTS)
    if isinstance(now, Tensor):
        return isinstance(before, Tensor)
    if isinstance(now, np.ndarray):
        if type(before) is not tuple or before[0] is not now:
            return False
        kept, is_writeable = before[1:]
        return is_writeable == now.flags.writeable and is_same_array(kept, now)
    if isinstance(now, KEYED):
        return type(before) is tuple and len(before) == 2 and before[0] is now and _same_keys(before[1], now)
    if isinstance(now, COUNTED):
        return type(before) is tuple and len(before) == 2 and before[0] is now and before[1] == len(now)
    if isinstance(now, COPIED):
        return type(before) is tuple and len(before) == 2 and before[0] is now and bool(before[1] == now)
    if isinstance(now, SIMPLE) and (type(now) in SIMPLE or type(now) is bool or isinstance(now, np.generic)):
        return is_same_constant(before, now)
    if isinstance(now, tuple):
        return type(before) is type(now) and len(before) == len(now)
    if type(now) is Content:
        return type(before) is Content and now.is_same(before)
    if type(now) is CachedResults:
        return type(before) is CachedResults and now.is_same(before)
    return before is now or (type(now) is Attributes and type(before) is Attributes)


def _same_keys(before: list[Any], now: Any) -> bool:
    """Return whether a dict has the same keys as before, in the same order."""
    if len(before) != len(now):
        return False
    return all(map(operator.is_, before, now)) or all(
        one is other or (type(one) is type(other) and isinstance(one, (*SIMPLE, tuple)) and one == other)
        for one, other in zip(before, now)
    )
