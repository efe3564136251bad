"""What an operator does while features are on that are off by default; see `tensor/modes.py`.

A feature is one bit of the mode and one function that runs around an operator. Each lives in a file of its own and
makes itself known by `@feature(BIT)`; this file only says in which order they lie around each other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import attrs

from ..tensor.modes import ANOMALY, FORWARD, FUNCTIONAL, INFERENCE, PACK, STRICT, TRACE
from ..tensor.node import Node, node_of
from ..tensor.tensor import Tensor
from ..views.copy_slices import CopySlices

if TYPE_CHECKING:
    from .language.declaration import Operator

__all__ = ["Call", "feature", "run_special", "run_special_inplace"]

# The outermost first. What is not in this list (view replay) is looked at where it matters.
ORDER: Final = (TRACE, FUNCTIONAL, FORWARD, STRICT, ANOMALY, PACK, INFERENCE)


@attrs.define(eq=False)
class Call:
    """One call of an operator.

    Arguments:
        operator: what is called.
        args: its positional arguments; those that are tensors have been converted already.
        kwargs: its keyword arguments.
        inplace: whether the result is written over the first argument.
        node: once it has run: the operator's own node, or None where nothing was recorded.
        history: once it has run: the node at the end of that history, which for a write through a view is a
            `CopySlices` around `node`.
    """

    operator: Operator
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    inplace: bool
    node: Node | None = None
    history: Node | None = None

    def run(self) -> Any:
        """Run the operator without any feature but grad mode."""
        if not self.inplace:
            result = self.operator.plain_functions[0](*self.args, **self.kwargs)
            for output in result if type(result) is tuple else (result,):
                if output._edge is not None:
                    self.node = self.history = node_of(output._edge)
                    break
            return result
        target: Tensor = self.args[0]
        root = target if target._view is None else target._view.base
        before = root._edge
        result = self.operator.plain_functions[1](*self.args, **self.kwargs)
        edge = root._edge
        if edge is not before:
            self.history = node_of(edge)
            self.node = self.history.fn if type(self.history) is CopySlices else self.history
        return result

    def named(self) -> dict[str, Any]:
        """The arguments by name; the generated functions pass all of them on."""
        return self.operator.signature.bind(self.args, self.kwargs)


Feature = Callable[[Call, Callable[[], Any]], Any]

_features: Final[dict[int, Feature]] = {}


def feature(bit: int) -> Callable[[Feature], Feature]:
    """Let a function `(call, run) -> result` run around every operator while `bit` is set in the mode.

    `run` takes no arguments and does the rest; what it returns is the tensor, or the tuple of tensors, that the caller
    of the operator gets.
    """

    def register(function: Feature) -> Feature:
        _features[bit] = function
        return function

    return register


def run_special(operator: Operator, args: tuple[Any, ...], kwargs: dict[str, Any], mode: int) -> Any:
    """Run an operator with the features that the mode asks for."""
    return _run(Call(operator, args, kwargs, inplace=False), mode)


def run_special_inplace(operator: Operator, args: tuple[Any, ...], kwargs: dict[str, Any], mode: int) -> Any:
    """The same for its in-place variant."""
    return _run(Call(operator, args, kwargs, inplace=True), mode)


def _run(call: Call, mode: int) -> Any:
    run = call.run
    for bit in reversed(ORDER):
        if mode & bit and bit in _features:
            run = _around(_features[bit], call, run)
    return run()


def _around(function: Feature, call: Call, run: Callable[[], Any]) -> Callable[[], Any]:
    return lambda: function(call, run)
