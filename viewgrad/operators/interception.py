"""Calls of operators in special modes, intercepted by features; see `tensor/interceptors.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from ..tensor.interceptors import Call, run_with_features
from ..tensor.node import node_of
from ..tensor.tensor import Tensor, root_of
from ..views.copy_slices import CopySlices
from ..views.rebase_history import refuse_written

if TYPE_CHECKING:
    from .language.spec import Operator


@attrs.define(eq=False)
class OperatorCall(Call):
    """One call of an operator.

    Arguments:
        operator: the operator.
        args: its positional arguments; those that are tensors have been converted already.
        kwargs: its keyword arguments.
    """

    operator: Operator
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def name(self) -> str:
        """Return the operator's name, with an underscore if it writes in place."""
        return f"{self.operator.name}_" if self.inplace else self.operator.name

    def run(self) -> Any:
        """Run the operator without any feature except grad mode."""
        if not self.inplace:
            result = self.operator.plain_functions[0](*self.args, **self.kwargs)
            for output in result if type(result) is tuple else (result,):
                if output._edge is not None:
                    self.node = self.history = node_of(output._edge)
                    break
            return result
        target: Tensor = self.args[0]
        root = root_of(target)
        before = root._edge
        inplace = self.operator.plain_functions[1]
        assert inplace is not None
        result = inplace(*self.args, **self.kwargs)
        edge = root._edge
        if edge is not before:
            self.history = node_of(edge)
            self.node = self.history.fn if type(self.history) is CopySlices else self.history
        return result

    def refuse(self) -> None:
        """Mark the history and the tangents of a target as unusable after an exception in a write."""
        refuse_written(self.args[0], f"{self.operator.name}_")

    def named(self) -> dict[str, Any]:
        """Return the arguments by name; generated functions pass all of them."""
        return {**dict(zip(self.operator.signature.positional, self.args, strict=False)), **self.kwargs}


def run_special(operator: Operator, args: tuple[Any, ...], kwargs: dict[str, Any], mode: int) -> Any:
    """Run an operator with the features of the mode."""
    return run_with_features(OperatorCall(operator, args, kwargs, inplace=False), mode)


def run_special_inplace(operator: Operator, args: tuple[Any, ...], kwargs: dict[str, Any], mode: int) -> Any:
    """Run the in-place variant of an operator with the features of the mode."""
    return run_with_features(OperatorCall(operator, args, kwargs, inplace=True), mode)
