"""Which outputs of a node a gradient can flow to, given its inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from .graph import Value
from .kinds import input_places, operator_of
from .types import TensorType

__all__ = ["types_with_grad"]

NEVER: Final = frozenset({"detach", "winners_at", "guard", "constant", "full"})
OF_BASE: Final = frozenset({"read", "overwrite", "gather_at", "put_at_silent", "add_at_silent"})


def types_with_grad(kind: str, inputs: Sequence[Value | None], types: Sequence[Any]) -> list[Any]:
    """The types of a node's outputs, with and without gradients as follows from its inputs."""
    required = [value is not None and value.type.requires_grad for value in inputs]
    if kind in NEVER:
        required = [False]
    elif kind in OF_BASE:
        required = required[:1]
    silent: tuple[int, ...] = ()
    operator = operator_of(kind)
    if operator is not None and any(required):
        places = input_places(operator, len(inputs))
        required = [required[number] for name in operator.differentiable for number in places[name]]
        outputs = operator.signature.outputs
        silent = tuple([outputs.index(name) for name in operator.nondifferentiable_outputs])
    some = any(required)
    return [
        each.with_grad(some and number not in silent and each.dtype.kind in "fc") if type(each) is TensorType else each
        for number, each in enumerate(types)
    ]
