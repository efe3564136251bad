"""The evaluation of nodes on arrays: the semantics of each primitive.

Arrays that are visible elsewhere are never written to, and values may be windows of other values. The generated source
of graphs does the same, with in-place writes where they are safe.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from ..errors import GraphError, GuardError
from ..operators.operands import owned_array
from ..tensor.indices import add_at
from ..views.advanced_indexing import last_writers
from ..views.unbroadcast import sum_to
from .attributes import Given, thawed
from .graph import Node
from .opaque_ops import Step
from .primitives import operator_of
from .raised import RAN
from .types import Window

Array = np.ndarray[Any, Any]


def run_node(node: Node, inputs: Sequence[Any], where: Callable[[Node], str]) -> tuple[Any, ...]:
    """Return the outputs of a node that has no blocks.

    Arguments:
        node: the node.
        inputs: its inputs: arrays, None for operands that are not given and for undefined gradients.
        where: the source line of a node, for messages.
    """
    rule = RULES.get(node.kind)
    if rule is not None:
        result = rule(node.attributes, *inputs)
        return (result,)
    if node.kind in UNPACKING:
        return tuple(inputs[0])
    if node.kind == "guard":
        check_guard(node.attributes[0], node.attributes[1], inputs[0], where(node))
        return ()
    if node.kind == "call":
        step: Step = node.attributes[0]
        return step.on_arrays(*inputs)
    operator = operator_of(node.kind)
    if operator is None:
        raise GraphError(f"a node of kind {node.kind!r} cannot be run")
    args, keywords = forward_call(operator, inputs, node.attributes)
    results = operator.forward(*args, **keywords)
    if not isinstance(results, tuple):
        results = (results,)
    return tuple([owned_array(result, list(inputs), True) for result in results])


def forward_call(operator: Any, inputs: Sequence[Any], attributes: Any) -> tuple[list[Any], dict[str, Any]]:
    """Return the positional and keyword arguments of an operator's forward."""
    options = iter(attributes or ())
    given = list(inputs)
    spare = len(given) - len(operator.signature.tensors) + 1
    args: list[Any] = []
    keywords: dict[str, Any] = {}
    for argument in operator.signature.arguments:
        if argument.kind == "plain":
            value = thawed(next(options))
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
    """Return the window of an array in row order."""
    dtype = base.dtype if window.dtype is None else window.dtype
    sizes = window.sizes
    if 0 in sizes:
        return np.empty(sizes, dtype)
    itemsize = min(base.itemsize, dtype.itemsize)
    strides = tuple([stride * itemsize for stride in window.strides])
    return np.ndarray(sizes, dtype, base, window.offset * itemsize, strides)


def in_row_order(base: Any) -> Array:
    """Return an array in row order."""
    array = np.asarray(base)
    return array if array.flags.c_contiguous else array.copy("C")


def copied(base: Any) -> Array:
    """Return a copy in row order."""
    return np.array(base, order="C")


def indexed_by(pattern: tuple[Any, ...], given: Sequence[Array]) -> tuple[Any, ...]:
    """Return the index that a pattern means."""
    return tuple([given[item.number] if type(item) is Given else thawed(item) for item in pattern])


def put(window: Array, index: tuple[Any, ...], value: Any) -> None:
    """Assign `window[index] = value`; for repeated indices the last value wins."""
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
    wanted = thawed(expected)
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
            "that of this run",
            (file, int(line)) if line.isdigit() else None,
        )


SHAPE: Final = "a shape"  # the guard of an operator whose result's shape depends on values
TAKEN: Final[dict[str, Callable[[Any], Any]]] = {
    "bool()": bool, "int()": int, "float()": float, "complex()": complex, "an index": int, SHAPE: np.shape,
}  # fmt: skip


# -- kinds -------------------------------------------------------------------------------------------------------------


def _constant(attributes: Any) -> Array:
    array: Array = attributes[0].array
    return array


def _full(attributes: Any) -> Array:
    shape, value, dtype = attributes
    return np.full(shape, value, dtype)


def _read(window: Window, base: Any) -> Any:
    return None if base is None else window_of(in_row_order(base), window)


def _write(window: Window, base: Any, value: Any) -> Array:
    result = copied(base)
    if 0 not in window.sizes:
        window_of(result, window)[...] = value
    return result


def _accumulate(window: Window, base: Any, value: Any) -> Array:
    result = copied(base)
    add_into(result, window, value)
    return result


def add_into(base: Array, window: Window, value: Any) -> None:
    """Add to a window of an array in row order; what overlaps itself adds up."""
    if 0 in window.sizes:
        return
    target = window_of(base, window)
    if not window.overlaps_itself:
        np.add(target, value, target)
        return
    flat = base.reshape(-1)
    if window.dtype is not None and window.dtype.kind == "f":  # parts of complex numbers
        flat = flat.view(window.dtype)
    places = window_of(np.arange(flat.size), window._replace(dtype=None))
    if window.dtype is not None and window.dtype.kind == "c":  # complex numbers on pairs of real ones
        add_at(flat, places, np.real(value))
        add_at(flat, places + 1, np.imag(value))
    else:
        add_at(flat, places, value)


def _gather_at(attributes: Any, value: Any, *given: Any) -> Any:
    return np.asarray(value[indexed_by(attributes[0], given)])


def _put_at(attributes: Any, base: Any, value: Any, *given: Any) -> Array:
    window, pattern = attributes
    result = copied(base)
    put(window_of(result, window), indexed_by(pattern, given), value)
    return result


def _add_at(attributes: Any, base: Any, value: Any, *given: Any) -> Array:
    window, pattern = attributes
    result = copied(base)
    add_at(window_of(result, window), indexed_by(pattern, given), value)
    return result


def winners(shape: tuple[int, ...], index: tuple[Any, ...]) -> Array:
    """Return for each value assigned to an index of an array of `shape` whether it is the last one for its element."""
    probe = np.empty(shape, bool)
    last = last_writers(probe, index)
    if last is None:
        return np.ones(probe[index].shape, bool)
    stay: Array = last == np.arange(last.size).reshape(last.shape)
    return stay


def _winners_at(attributes: Any, *given: Any) -> Array:
    return winners(attributes[0], indexed_by(attributes[1], given))


def _sum_to_size(attributes: Any, value: Any) -> Any:
    return None if value is None else np.asarray(sum_to(value, attributes[0]))


def _detach(attributes: Any, value: Any) -> Any:
    return value


UNPACKING: Final = frozenset({"ListUnpack", "TupleUnpack"})


def _autograd_add(attributes: Any, first: Any, second: Any) -> Any:
    return second if first is None else first if second is None else np.asarray(first + second)


RULES: Final[dict[str, Callable[..., Any]]] = {
    "constant": _constant,
    "full": _full,
    "read": _read,
    "write": _write,
    "overwrite": _write,
    "accumulate": _accumulate,
    "gather_at": _gather_at,
    "put_at": _put_at,
    "put_at_unrecorded": _put_at,
    "add_at": _add_at,
    "add_at_unrecorded": _add_at,
    "winners_at": _winners_at,
    "sum_to_size": _sum_to_size,
    "detach": _detach,
    "ListConstruct": lambda attributes, *items: list(items),
    "TupleConstruct": lambda attributes, *items: items,
    "AutogradZero": lambda attributes: None,
    "AutogradAdd": _autograd_add,
}
