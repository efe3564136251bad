"""The kinds of nodes, and the operators that some of them are."""

from __future__ import annotations

from typing import Final

from ..operators.define import OPERATORS
from ..operators.language.declaration import Operator

__all__ = ["ATTRIBUTES", "attribute_names", "input_places", "kind_of", "operator_of"]

# The kinds that are no operators, each with the names of its attributes.
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
    "add_at_silent": ("window", "pattern"),
    "call": ("step",),
    "constant": ("value",),
    "detach": (),
    "full": ("shape", "value", "dtype"),
    "gather_at": ("pattern",),
    "guard": ("how", "expected"),
    "overwrite": ("window",),
    "param": (),
    "put_at": ("window", "pattern"),
    "put_at_silent": ("window", "pattern"),
    "read": ("window",),
    "return": (),
    "sum_to_size": ("shape",),
    "winners_at": ("shape", "pattern"),
    "write": ("window",),
}
OURS: Final = "op:"  # stands before the name of an operator that is called like one of these


def kind_of(name: str) -> str:
    """The kind of the nodes of an operator."""
    return f"{OURS}{name}" if name in ATTRIBUTES or name.removesuffix("_") in ATTRIBUTES else name


def attribute_names(kind: str) -> tuple[str, ...]:
    """The names of the attributes of a kind of nodes."""
    found = ATTRIBUTES.get(kind)
    if found is not None:
        return found
    operator = operator_of(kind)
    return () if operator is None else tuple([argument.name for argument in operator.signature.plain])


def operator_of(kind: str) -> Operator | None:
    """The operator of a kind of nodes: of `name`, or of an in-place variant that its row states itself, `name_`."""
    if kind in ATTRIBUTES:
        return None
    kind = kind.removeprefix(OURS)
    found = OPERATORS.get(kind)
    if found is None and kind.endswith("_"):
        found = OPERATORS.get(kind[:-1])
        return None if found is None else found.inplace_declaration
    return found


def input_places(operator: Operator, count: int) -> dict[str, list[int]]:
    """The numbers of the inputs that each tensor argument of an operator is; a list of tensors is several."""
    tensors = operator.signature.tensors
    places: dict[str, list[int]] = {}
    start = 0
    for argument in tensors:
        length = count - len(tensors) + 1 if argument.kind == "tensors" else 1
        places[argument.name] = list(range(start, start + length))
        start += length
    return places
