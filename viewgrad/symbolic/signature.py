"""What the inputs and outputs of a graph are to a caller: arguments, tensors from elsewhere, results, and what aliases
what."""

from __future__ import annotations

from typing import Any

import attrs

from .types import Type

__all__ = ["InputSpec", "MutationSpec", "ResultSpec", "Signature"]


@attrs.frozen(eq=False)
class InputSpec:
    """Where an input of a graph comes from.

    Arguments:
        kind: "argument", or "closure" for a tensor that the function found elsewhere.
        leaf: the number of the argument's leaf, in the order of `func.tree`; -1 for a closure.
        path: how it is reached, for messages.
        type: what it is.
        tensor: the tensor of a closure; None for an argument.
        memory: arguments of the same number share memory.
        place: (first byte, strides in bytes) relative to the lowest of those arguments' bytes, where they share memory.
        history: arguments of the same number are views of one base, or that base.
        is_view: whether it is a view (a write to it is one to its base).
    """

    kind: str
    leaf: int
    path: str
    type: Type
    tensor: Any = None
    memory: int = -1
    place: tuple[int, tuple[int, ...]] | None = None
    history: int = -1
    is_view: bool = False


@attrs.frozen(eq=False)
class MutationSpec:
    """A write to an input that callers can see.

    Arguments:
        input: the number of the input.
        output: the number of the output that is its value afterwards.
        recorded: whether any of the writes belongs to its history.
    """

    input: int
    output: int
    recorded: bool


@attrs.frozen(eq=False)
class ResultSpec:
    """What a tensor in the result is.

    Arguments:
        output: the number of the output that is its value.
        type: what it is.
        input: the number of the input whose memory it shares, being that or a view of it; None where there is none.
        base: the number of the output that is the value of the tensor of which it is a view, where other results share
            its memory; None otherwise.
        steps: the view functions that take it from that input or base; none where it is itself.
        scalar: whether it is a scalar, and no array.
    """

    output: int
    type: Type
    input: int | None = None
    base: int | None = None
    steps: tuple[Any, ...] = ()
    scalar: bool = False


@attrs.frozen(eq=False)
class Signature:
    """What the inputs and outputs of a graph are to a caller.

    Arguments:
        arguments: the structure of the arguments `(args, kwargs)`, a tree of `func.tree`.
        inputs: of each input, where it comes from.
        result: the structure of the result.
        results: of each of its leaves, what it is.
        mutations: the inputs that are written to.
        aliased: where memory that a gradient flows to was written to by a tensor of another history, which
            forward mode has no answer to; None for nowhere.
        fixed: the leaves of the arguments that are part of the program, by number: its values are not looked at again.
    """

    arguments: Any
    inputs: tuple[InputSpec, ...]
    result: Any
    results: tuple[ResultSpec | Any, ...]
    mutations: tuple[MutationSpec, ...] = ()
    fixed: dict[int, Any] = attrs.field(factory=dict)
    aliased: str | None = None
