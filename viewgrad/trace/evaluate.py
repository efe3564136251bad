"""The evaluation of nodes: the semantics of each primitive for the values of a namespace.

Arrays that are visible elsewhere are never written to, and values may be windows of other values. The generated source
of graphs behaves in the same way, with in-place writes where they are safe.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from ..errors import GraphError, GuardError
from ..operators.operands import owned_array
from ..tensor.indices import add_at
from ..type_aliases import Array
from ..views.advanced_indexing import last_writers
from ..views.unbroadcast import sum_to
from .attributes import IndexInput, unfrozen
from .exceptions import RAN
from .graph import Node
from .last_use import UNRECORDED, WRITES
from .opaque_ops import Step
from .primitives import operator_of
from .types import Window


def run_node(
    node: Node, inputs: Sequence[Any], where: Callable[[Node], str], namespace: ArrayNamespace | None = None,
    in_place: bool = False,
) -> tuple[Any, ...]:  # fmt: skip
    """Return the outputs of a node that has no blocks.

    Arguments:
        node: the node.
        inputs: its inputs: values of the namespace, or None for omitted operands and undefined gradients.
        where: the source line of a node, for messages.
        namespace: the operations on values; by default those on arrays.
        in_place: whether a write may happen in place; for a read, whether it must copy.
    """
    xp = ARRAYS if namespace is None else namespace
    rule = RULES.get(node.kind)
    if rule is not None:
        return (rule(xp, node, in_place, *inputs),)
    if node.kind in UNPACKING:
        return tuple(inputs[0])
    if node.kind == "guard":
        check_guard(node.attributes[0], node.attributes[1], xp.as_array(inputs[0]), where(node))
        return ()
    if node.kind == "call":
        return xp.call_step(node.attributes[0], inputs)
    operator = operator_of(node.kind)
    if operator is None:
        raise GraphError(f"a node of kind {node.kind!r} cannot be run")
    return xp.call_operator(node, operator, inputs)


def forward_call(operator: Any, inputs: Sequence[Any], attributes: Any) -> tuple[list[Any], dict[str, Any]]:
    """Return the positional and keyword arguments of an operator's forward."""
    options = iter(attributes or ())
    given = list(inputs)
    spare = len(given) - len(operator.signature.tensors) + 1
    args: list[Any] = []
    keywords: dict[str, Any] = {}
    for argument in operator.signature.arguments:
        if argument.kind == "plain":
            value = unfrozen(next(options))
        elif argument.kind == "tensors":
            value, given = given[:spare], given[spare:]
        else:
            value = given.pop(0)
        if argument.keyword_only:
            keywords[argument.name] = value
        else:
            args.append(value)
    return args, keywords


def window_of(base: Array, window: Window) -> Array:
    """Return the window of an array in row-major order."""
    dtype = base.dtype if window.dtype is None else window.dtype
    sizes = window.sizes
    if 0 in sizes:
        return np.empty(sizes, dtype)
    itemsize = min(base.itemsize, dtype.itemsize)
    strides = tuple([stride * itemsize for stride in window.strides])
    return np.ndarray(sizes, dtype, base, window.offset * itemsize, strides)


def in_row_order(base: Any) -> Array:
    """Return an array in row-major order."""
    array = np.asarray(base)
    return array if array.flags.c_contiguous else array.copy("C")


def copied(base: Any) -> Array:
    """Return a copy in row-major order."""
    return np.array(base, order="C")


def indexed_by(pattern: tuple[Any, ...], given: Sequence[Array]) -> tuple[Any, ...]:
    """Return the index represented by a pattern."""
    return tuple([given[item.number] if type(item) is IndexInput else unfrozen(item) for item in pattern])


def put(window: Array, index: tuple[Any, ...], value: Any) -> None:
    """Assign `window[index] = value`; for repeated indices, the last value is assigned."""
    last = last_writers(window, index)
    value = np.asarray(value)
    if last is not None:
        value = np.broadcast_to(value.reshape(value.shape[-last.ndim :] if last.ndim else ()), last.shape).ravel()[last]
    if np.may_share_memory(window, value):
        value = value.copy()
    window[index] = value


def check_guard(how: str, expected: Any, value: Any, where: str) -> None:
    """Raise unless a value that control flow depended on is unchanged.

    Raises:
        GuardError: if it has changed.
    """
    if how == RAN:
        return
    found: Any
    wanted = unfrozen(expected)
    if isinstance(wanted, np.ndarray):
        same = wanted.dtype == value.dtype and np.array_equal(wanted, value, equal_nan=wanted.dtype.kind in "fc")
        found = value
    else:
        found = TAKEN.get(how, np.ndarray.item)(value)
        same = found == wanted or (found != found and wanted != wanted)
    if not same:
        file, _, line = where.rpartition(":")
        raise GuardError(
            f"{how} at {where} gave {wanted!r} when the program was traced, and gives {found!r} now: the graph is not "
            "valid for this run",
            (file, int(line)) if line.isdigit() else None,
        )


SHAPE: Final = "a shape"  # the guard of an operator whose result's shape depends on values
TAKEN: Final[dict[str, Callable[[Any], Any]]] = {
    "bool()": bool, "int()": int, "float()": float, "complex()": complex, "an index": int, SHAPE: np.shape,
}  # fmt: skip


# -- the namespace of arrays -------------------------------------------------------------------------------------------


class ArrayNamespace:
    """The operations on values with which nodes are evaluated, here on arrays, where writes copy their base.

    An index of None means the whole window.
    """

    def from_array(self, array: Array) -> Any:
        """Return a new array as a value."""
        return array

    def as_array(self, value: Any) -> Array:
        """Return the elements of a value."""
        array: Array = value
        return array

    def read(self, base: Any, window: Window, is_copied: bool) -> Any:
        """Return a window of a base, in memory of its own if `is_copied`."""
        return None if base is None else window_of(in_row_order(base), window)

    def gather(self, value: Any, index: tuple[Any, ...]) -> Array:
        """Return `value[index]` for an advanced index."""
        return np.asarray(value[index])

    def writable(self, base: Any, in_place: bool) -> Array:
        """Return a base that may be written to: a copy, or the base itself if the write may happen in place."""
        return copied(base)

    def assign(self, base: Any, window: Window, index: Any, value: Any, recorded: bool) -> None:
        """Assign to a window of a base; `recorded` states whether the write is in the history of the base."""
        if index is None:
            window_of(base, window)[...] = value
        else:
            put(window_of(base, window), index, value)

    def accumulate(self, base: Any, window: Window, index: Any, value: Any, recorded: bool) -> None:
        """Add to a window of a base; repeated elements accumulate."""
        if index is None:
            add_into(base, window, value)
        else:
            add_at(window_of(base, window), index, value)

    def sum_to_size(self, value: Any, shape: tuple[int, ...]) -> Any:
        """Return a value summed to a shape that broadcasts to its own."""
        return None if value is None else np.asarray(sum_to(value, shape))

    def detach(self, value: Any, keeps_tangent: bool) -> Any:
        """Return a value without its history."""
        return value

    def undefined(self, kind: Any) -> Any:
        """Return the undefined gradient for a type."""
        return None

    def add(self, first: Any, second: Any) -> Array:
        """Return the sum of two defined gradients."""
        return np.asarray(first + second)

    def call_step(self, step: Step, inputs: Sequence[Any]) -> tuple[Any, ...]:
        """Return the outputs of an opaque operation."""
        return step.on_arrays(*inputs)

    def call_operator(self, node: Node, operator: Any, inputs: Sequence[Any]) -> tuple[Any, ...]:
        """Return the outputs of an operator."""
        args, keywords = forward_call(operator, inputs, node.attributes)
        results = operator.forward(*args, **keywords)
        if not isinstance(results, tuple):
            results = (results,)
        return tuple([owned_array(result, list(inputs), True) for result in results])


ARRAYS: Final = ArrayNamespace()


def add_into(base: Array, window: Window, value: Any) -> None:
    """Add to a window of an array in row-major order; overlapping elements accumulate."""
    if 0 in window.sizes:
        return
    target = window_of(base, window)
    if not window.overlaps_itself:
        np.add(target, value, target)
        return
    flat = base.reshape(-1)
    if window.dtype is not None and window.dtype.kind == "f":  # real or imaginary parts of complex numbers
        flat = flat.view(window.dtype)
    places = window_of(np.arange(flat.size), window._replace(dtype=None))
    if window.dtype is not None and window.dtype.kind == "c":  # complex numbers stored in pairs of real numbers
        add_at(flat, places, np.real(value))
        add_at(flat, places + 1, np.imag(value))
    else:
        add_at(flat, places, value)


def winners(shape: tuple[int, ...], index: tuple[Any, ...]) -> Array:
    """Return the mask of values, assigned to an index of an array, that are the last ones for their element."""
    probe = np.empty(shape, bool)
    last = last_writers(probe, index)
    if last is None:
        return np.ones(probe[index].shape, bool)
    stay: Array = last == np.arange(last.size).reshape(last.shape)
    return stay


# -- kinds -------------------------------------------------------------------------------------------------------------


def _constant(xp: ArrayNamespace, node: Node, in_place: bool) -> Any:
    return xp.from_array(node.attributes[0].array)


def _full(xp: ArrayNamespace, node: Node, in_place: bool) -> Any:
    return xp.from_array(np.full(*node.attributes))


def _read(xp: ArrayNamespace, node: Node, is_copied: bool, base: Any) -> Any:
    return xp.read(base, node.attributes, is_copied)


def _gather_at(xp: ArrayNamespace, node: Node, in_place: bool, value: Any, *given: Any) -> Any:
    return xp.gather(value, _index(xp, node.attributes[0], given))


def _write(xp: ArrayNamespace, node: Node, in_place: bool, base: Any, value: Any, *given: Any) -> Any:
    base = xp.writable(base, in_place)
    window, index = _target(xp, node, given)
    if 0 not in window.sizes:
        write = xp.accumulate if node.kind in ACCUMULATING else xp.assign
        write(base, window, index, value, node.kind not in UNRECORDED)
    return base


def _target(xp: ArrayNamespace, node: Node, given: Sequence[Any]) -> tuple[Window, tuple[Any, ...] | None]:
    if type(node.attributes) is Window:
        return node.attributes, None
    window, pattern = node.attributes
    return window, _index(xp, pattern, given)


def _index(xp: ArrayNamespace, pattern: tuple[Any, ...], given: Sequence[Any]) -> tuple[Any, ...]:
    return indexed_by(pattern, [xp.as_array(each) for each in given])


def _winners_at(xp: ArrayNamespace, node: Node, in_place: bool, *given: Any) -> Any:
    shape, pattern = node.attributes
    return xp.from_array(winners(shape, _index(xp, pattern, given)))


def _sum_to_size(xp: ArrayNamespace, node: Node, in_place: bool, value: Any) -> Any:
    return xp.sum_to_size(value, node.attributes[0])


def _detach(xp: ArrayNamespace, node: Node, in_place: bool, value: Any) -> Any:
    return xp.detach(value, node.attributes is not None)


def _autograd_add(xp: ArrayNamespace, node: Node, in_place: bool, first: Any, second: Any) -> Any:
    return second if first is None else first if second is None else xp.add(first, second)


UNPACKING: Final = frozenset({"ListUnpack", "TupleUnpack"})
ACCUMULATING: Final = frozenset({"accumulate", "add_at", "add_at_unrecorded"})
RULES: Final[dict[str, Callable[..., Any]]] = {
    **dict.fromkeys(WRITES, _write),
    "constant": _constant,
    "full": _full,
    "read": _read,
    "gather_at": _gather_at,
    "winners_at": _winners_at,
    "sum_to_size": _sum_to_size,
    "detach": _detach,
    "ListConstruct": lambda xp, node, in_place, *items: list(items),
    "TupleConstruct": lambda xp, node, in_place, *items: items,
    "AutogradZero": lambda xp, node, in_place: xp.undefined(node.output.type),
    "AutogradAdd": _autograd_add,
}
