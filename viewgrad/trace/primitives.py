"""The kinds of nodes, the corresponding operators, and the outputs of each kind to which a gradient can flow."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from ..operators.define import OPERATORS
from ..operators.language.spec import Operator
from .exceptions import RAISES, raising_operator
from .types import TensorType

if TYPE_CHECKING:
    from .graph import Node, Value

# The kinds that are not operators, each with the names of its attributes.
ATTRIBUTES: Final[dict[str, tuple[str, ...]]] = {
    "AutogradAdd": (),
    "AutogradZero": (),
    "GradOf": ("name",),
    "ListConstruct": (),
    "ListUnpack": (),
    "TupleConstruct": (),
    "TupleUnpack": (),
    "accumulate": ("window",),
    "add_at": ("window", "pattern"),
    "add_at_unrecorded": ("window", "pattern"),
    "call": ("step",),
    "constant": ("value",),
    "detach": (),
    "full": ("shape", "value", "dtype"),
    "gather_at": ("pattern",),
    "guard": ("how", "expected"),
    "overwrite": ("window",),
    "param": (),
    "put_at": ("window", "pattern"),
    "put_at_unrecorded": ("window", "pattern"),
    "read": ("window",),
    "return": (),
    "sum_to_size": ("shape",),
    "winners_at": ("shape", "pattern"),
    "write": ("window",),
}
RANDOM: Final = frozenset({"_native_dropout"})  # the operators that draw random numbers
OURS: Final = "op:"  # the prefix of an operator with the name of one of these kinds


@functools.cache
def kind_of(name: str) -> str:
    """Return the kind of the nodes of an operator."""
    return f"{OURS}{name}" if name in ATTRIBUTES or name.removesuffix("_") in ATTRIBUTES else name


def attribute_names(kind: str) -> tuple[str, ...]:
    """Return the names of the attributes of a kind of nodes."""
    found = ATTRIBUTES.get(kind)
    if found is not None:
        return found
    operator = operator_of(kind)
    return () if operator is None else tuple([argument.name for argument in operator.signature.plain])


def operator_of(kind: str) -> Operator | None:
    """Return the operator of a kind of nodes: `name`, or the in-place variant `name_` with its own formulas."""
    if kind in ATTRIBUTES:
        return None
    if kind.startswith(RAISES):
        return raising_operator(kind)
    kind = kind.removeprefix(OURS)
    found = OPERATORS.get(kind)
    if found is None and kind.endswith("_"):
        found = OPERATORS.get(kind[:-1])
        return None if found is None else found.inplace_declaration
    return found


# The operators whose output shapes depend on values, each with the number of the input that determines them.
SHAPED_BY_VALUES: Final = {"bincount": 0, "one_hot": 0, "repeat": 1, "unique": 0, "unique_all": 0}


def is_shaped_by_values(operator: Operator, node: Node) -> bool:
    """Return whether the shapes of a node's outputs depend on values that may differ between runs."""
    if operator.user_defined:
        return not operator.elementwise and any(each is not None and not is_constant(each) for each in node.inputs)
    number = SHAPED_BY_VALUES.get(operator.name)
    if number is None or number >= len(node.inputs):
        return False
    value = node.inputs[number]
    return value is not None and not is_constant(value)


def is_constant(value: Value) -> bool:
    """Return whether a value is the same in every run."""
    return value.node.kind in ("constant", "full")


def is_deterministic(kind: str) -> bool:
    """Return whether nodes of a kind are deterministic; users' operators need not be."""
    operator = operator_of(kind)
    return kind != "call" and kind not in RANDOM and not (operator is not None and operator.user_defined)


def input_places(operator: Operator, count: int) -> dict[str, list[int]]:
    """Return the numbers of the inputs for each tensor argument of an operator; a list of tensors has several."""
    tensors = operator.signature.tensors
    places: dict[str, list[int]] = {}
    start = 0
    for argument in tensors:
        length = count - len(tensors) + 1 if argument.kind == "tensors" else 1
        places[argument.name] = list(range(start, start + length))
        start += length
    return places


# -- gradients ---------------------------------------------------------------------------------------------------------

NEVER: Final = frozenset({"detach", "winners_at", "guard", "constant", "full"})
OF_BASE: Final = frozenset({"read", "overwrite", "gather_at", "put_at_unrecorded", "add_at_unrecorded"})


def types_with_grad(kind: str, inputs: Sequence[Value | None], types: Sequence[Any]) -> list[Any]:
    """Return the types of a node's outputs, with or without gradients depending on its inputs."""
    required = [value is not None and value.type.requires_grad for value in inputs]
    if kind in NEVER:
        required = [False]
    elif kind in OF_BASE:
        required = required[:1]
    nondifferentiable: tuple[int, ...] = ()
    operator = operator_of(kind)
    if operator is not None and any(required):
        places = input_places(operator, len(inputs))
        required = [required[number] for name in operator.differentiable for number in places[name]]
        outputs = operator.signature.outputs
        nondifferentiable = tuple([outputs.index(name) for name in operator.nondifferentiable_outputs])
    some = any(required)
    some_required = [some and number not in nondifferentiable for number in range(len(types))]
    return [
        each.with_grad(flows and each.dtype.kind in "fc") if type(each) is TensorType else each
        for each, flows in zip(types, some_required, strict=True)
    ]
