"""Type rules: the inputs, attributes and output types of each kind of node.

The output types of an operator are determined by calling it once on numbers of the required shapes and dtypes, for each
kind of call. If they depend on the numbers themselves, they are not checked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ..errors import GraphError
from ..views.geometry import overlaps_itself
from .attributes import Frozen, IndexInput, indexed_shape
from .evaluate import SHAPE, run_node, window_of
from .exceptions import RAN
from .graph import Node, Value
from .opaque_ops import Step
from .primitives import ATTRIBUTES, is_shaped_by_values, operator_of
from .types import NONE, ListType, TensorType, TupleType, Type, Window

MOST: Final = 1 << 16  # the maximum number of elements with which operators are called
LIMIT: Final = 1 << 14  # the number of cached calls
DECIDED_BY_VALUES: Final = (np.linalg.LinAlgError, ArithmeticError)
_found: dict[Any, Any] = {}


def fault_of(node: Node) -> str | None:
    """Return a description of what is invalid about a node, or None."""
    for value in node.outputs:
        if not may_require_grad(value.type):
            return f"returns {value.type}, which cannot carry a gradient"
    if (node.kind == "GradOf") != bool(node.blocks):
        return "has a block although its kind has none, or lacks one"
    rule = RULES.get(node.kind)
    try:
        if rule is not None:
            count, check = rule
            if count is not None and (len(node.inputs) != count or None in node.inputs):
                return f"takes {count} inputs, but has {sum(each is not None for each in node.inputs)}"
            return check(node)
        return f"is of the unknown kind {node.kind}" if node.kind in ATTRIBUTES else _of_operator(node)
    except (TypeError, ValueError, IndexError, AttributeError, GraphError) as error:
        return f"has invalid options or inputs: {error}"


def may_require_grad(kind: Type) -> bool:
    """Return whether a type requires grad only if a gradient can flow to it."""
    return not kind.requires_grad or (type(kind) is TensorType and kind.dtype.kind in "fc")


def _kind(value: Value | None) -> TensorType:
    if value is None or type(value.type) is not TensorType:
        raise TypeError("a tensor is missing")
    return value.type


def _gives(node: Node, dtype: Any, shape: tuple[int, ...]) -> str | None:
    """Return what is invalid about a node's only output, given its expected dtype and shape."""
    if len(node.outputs) != 1:
        return f"returns one value, but has {len(node.outputs)} outputs"
    given = _kind(node.output)
    if (given.dtype, given.shape) != (np.dtype(dtype), tuple(shape)):
        return f"returns {TensorType.of(np.dtype(dtype), tuple(shape))}, but is declared as {given}"
    return None


def _broadcast(shape: tuple[int, ...], target: tuple[int, ...]) -> None:
    spare = len(shape) - len(target)
    if spare > 0 and set(shape[:spare]) == {1}:
        shape = shape[spare:]  # an assignment drops leading dimensions of length 1
    if np.broadcast_shapes(shape, target) != tuple(target):
        raise ValueError(f"shape {list(shape)} cannot be broadcast to {list(target)}")


def _window(base: TensorType, window: Any) -> np.dtype[Any]:
    """Return the dtype of a window, which must be inside its base."""
    if type(window) is not Window or {*map(type, (*window.sizes, *window.strides, window.offset))} != {int}:
        raise TypeError("a window is missing")
    dtype = base.dtype if window.dtype is None else window.dtype
    if len(window.sizes) != len(window.strides) or min(window.sizes, default=0) < 0:
        raise ValueError(f"{window} is not a window")
    if 0 in window.sizes:
        return dtype
    reach = [(n - 1) * t for n, t in zip(window.sizes, window.strides, strict=True)]
    low = window.offset + sum(each for each in reach if each < 0)
    high = window.offset + sum(each for each in reach if each > 0)
    itemsize = min(base.dtype.itemsize, dtype.itemsize)
    if low < 0 or high * itemsize + dtype.itemsize > base.size * base.dtype.itemsize:
        raise ValueError(f"{window} exceeds {base}")
    return dtype


def _check_distinct_elements(base: TensorType, window: Window) -> None:
    """Check that the elements of a window are distinct, since each receives its gradient from its own position."""
    if window.overlaps_itself and overlaps_itself(window_of(np.empty(base.size, base.dtype), window)):
        raise ValueError(f"{window} maps several elements to one location")


# -- kinds that are not operators --------------------------------------------------------------------------------------


def _read(node: Node) -> str | None:
    return _gives(node, _window(_kind(node.inputs[0]), node.attributes), node.attributes.sizes)


def _write(node: Node) -> str | None:
    base = _kind(node.inputs[0])
    _window(base, node.attributes)
    if node.kind == "write" and _kind(node.inputs[1]).requires_grad:
        _check_distinct_elements(base, node.attributes)
    _broadcast(_kind(node.inputs[1]).shape, node.attributes.sizes)
    return _gives(node, base.dtype, base.shape)


def _indexed(shape: tuple[int, ...], pattern: Any, given: list[Value | None]) -> tuple[int, ...]:
    if sum(type(item) is IndexInput for item in pattern) != len(given):
        raise ValueError(f"the number of arrays, {len(given)}, differs from that of the placeholders")
    return indexed_shape(shape, pattern, [_kind(value).shape for value in given])


def _gather(node: Node) -> str | None:
    (pattern,) = node.attributes
    base = _kind(node.inputs[0])
    return _gives(node, base.dtype, _indexed(base.shape, pattern, list(node.inputs[1:])))


def _put(node: Node) -> str | None:
    window, pattern = node.attributes
    base = _kind(node.inputs[0])
    _window(base, window)
    _broadcast(_kind(node.inputs[1]).shape, _indexed(window.sizes, pattern, list(node.inputs[2:])))
    return _gives(node, base.dtype, base.shape)


def _winners(node: Node) -> str | None:
    shape, pattern = node.attributes
    return _gives(node, bool, _indexed(shape, pattern, list(node.inputs)))


def _sum_to_size(node: Node) -> str | None:
    (shape,) = node.attributes
    source = _kind(node.inputs[0])
    _broadcast(shape, source.shape)
    return _gives(node, source.dtype, shape)


def _same(node: Node) -> str | None:
    kinds = [_kind(value) for value in node.inputs]
    if len({(kind.dtype, kind.shape) for kind in kinds}) != 1:
        return "takes values of several types"
    return _gives(node, kinds[0].dtype, kinds[0].shape)


def _constant(node: Node) -> str | None:
    (frozen,) = node.attributes
    if type(frozen) is not Frozen:
        return "has no array"
    return _gives(node, frozen.array.dtype, frozen.array.shape)


def _full(node: Node) -> str | None:
    shape, value, dtype = node.attributes
    np.full((), value, dtype)
    return _gives(node, dtype, shape)


def _zero(node: Node) -> str | None:
    return _gives(node, _kind(node.output).dtype, _kind(node.output).shape)


def _guard(node: Node) -> str | None:
    how, expected = node.attributes
    if not isinstance(how, str) or node.outputs:
        return "is not a guard"
    if how not in (SHAPE, RAN) and not isinstance(expected, Frozen) and _kind(node.inputs[0]).size != 1:
        return "is for one number"
    return None


def _grad_of(node: Node) -> str | None:
    (block,) = node.blocks
    if not node.inputs or None in node.inputs:
        return "takes no gradients"
    if len(block.outputs) != len(node.outputs):
        return "has outputs that differ from those of its block"
    for output, inner in zip(node.outputs, block.outputs, strict=True):
        one, other = _kind(output), _kind(inner)
        if (one.dtype, one.shape) != (other.dtype, other.shape):
            return f"returns {other}, but is declared as {one}"
    return None


def _without_grad(kind: Type) -> Type:
    if type(kind) is TupleType:
        return TupleType(tuple([_without_grad(each) for each in kind.elements]))
    return ListType(_without_grad(kind.element)) if type(kind) is ListType else kind.with_grad(False)


def _construct(node: Node) -> str | None:
    given = [NONE if value is None else _without_grad(value.type) for value in node.inputs]
    said = _without_grad(node.output.type)
    if node.kind == "TupleConstruct":
        found = TupleType(tuple(given))
        return None if said == found else f"returns {found}, but is declared as {said}"
    if type(said) is not ListType:
        return f"returns a list, but is declared as {said}"
    return None if {*given} <= {said.element} else f"takes {', '.join(map(str, given))} for a {said}"


def _unpack(node: Node) -> str | None:
    (value,) = node.inputs
    assert value is not None
    kind = _without_grad(value.type)
    given = [_without_grad(output.type) for output in node.outputs]
    if type(kind) is not (TupleType if node.kind == "TupleUnpack" else ListType):
        return f"takes a {kind}"
    if type(kind) is TupleType:
        expected = list(kind.elements)
    else:
        assert type(kind) is ListType
        made = value.node.kind == "ListConstruct"
        expected = [kind.element] * len(value.node.inputs if made else given)
    if expected != given:
        return f"returns {', '.join(map(str, expected))}, but is declared as {', '.join(map(str, given))}"
    return None


def _call(node: Node) -> str | None:
    (step,) = node.attributes
    return None if isinstance(step, Step) else "has no step"


RULES: Final[dict[str, tuple[int | None, Callable[[Node], str | None]]]] = {
    "read": (1, _read),
    "write": (2, _write),
    "overwrite": (2, _write),
    "accumulate": (2, _write),
    "gather_at": (None, _gather),
    "put_at": (None, _put),
    "put_at_unrecorded": (None, _put),
    "add_at": (None, _put),
    "add_at_unrecorded": (None, _put),
    "winners_at": (None, _winners),
    "sum_to_size": (1, _sum_to_size),
    "detach": (1, _same),
    "AutogradAdd": (2, _same),
    "AutogradZero": (0, _zero),
    "constant": (0, _constant),
    "full": (0, _full),
    "guard": (1, _guard),
    "GradOf": (None, _grad_of),
    "call": (None, _call),
    "TupleConstruct": (None, _construct),
    "ListConstruct": (None, _construct),
    "TupleUnpack": (1, _unpack),
    "ListUnpack": (1, _unpack),
}


# -- operators ---------------------------------------------------------------------------------------------------------


def _of_operator(node: Node) -> str | None:
    operator = operator_of(node.kind)
    if operator is None:
        return "is of an unknown kind"
    arguments = operator.signature.tensors
    several = any(argument.kind == "tensors" for argument in arguments)
    if len(node.inputs) < len(arguments) - several or (not several and len(node.inputs) > len(arguments)):
        return f"takes {len(arguments)} inputs, but has {len(node.inputs)}"
    if not several and any(
        value is None and not argument.optional for argument, value in zip(arguments, node.inputs, strict=True)
    ):
        return "lacks an input"
    if len(node.attributes or ()) != len(operator.signature.plain):
        return f"takes {len(operator.signature.plain)} options, but has {len(node.attributes or ())}"
    if len(node.outputs) != len(operator.signature.outputs):
        return f"returns {len(operator.signature.outputs)} values, but has {len(node.outputs)} outputs"
    if any(value is not None and type(value.type) is not TensorType for value in node.inputs):
        return None  # Python numbers, whose dtype depends on the other operand
    expected = _inferred(node)
    if isinstance(expected, str):
        return expected
    for value, wanted in zip(node.outputs, expected or (), strict=bool(expected)):
        given = _kind(value)
        if given.dtype != wanted[0] or (wanted[1] is not None and given.shape != wanted[1]):
            return f"returns {wanted[0].name}{list(wanted[1] or ())}, but is declared as {given}"
    return None


def _inferred(node: Node) -> Any:
    """Return the dtype and shape of each output, or a description of what is invalid; None if they depend on values."""
    kinds = [None if value is None else _kind(value) for value in node.inputs]
    if sum(kind.size for kind in kinds if kind is not None) > MOST:
        return None
    key = (node.kind, repr(node.attributes), tuple(kinds))
    if key not in _found:
        if len(_found) >= LIMIT:
            _found.clear()
        _found[key] = _types_by_call(node, kinds)
    return _found[key]


def _types_by_call(node: Node, kinds: list[TensorType | None]) -> Any:
    operator = operator_of(node.kind)
    whole = any(kind is not None and kind.dtype.kind in "biu" for kind in kinds)
    whole = whole or (operator is not None and is_shaped_by_values(operator, node))
    try:
        with np.errstate(all="ignore"):
            found = run_node(node, [None if kind is None else _example(kind) for kind in kinds], lambda node: "")
    except DECIDED_BY_VALUES:
        return None
    except Exception as error:
        return None if whole else f"cannot be called with its arguments: {error}"
    return [(each.dtype, None if whole else each.shape) for each in map(np.asarray, found)]


def _example(kind: TensorType) -> np.ndarray[Any, Any]:
    if kind.dtype.kind in "biu":
        return np.zeros(kind.shape, kind.dtype)
    return np.linspace(0.4, 0.9, kind.size).reshape(kind.shape).astype(kind.dtype)
