"""Forward mode of operators: while a dual level is open, operators compute the tangents of their outputs.

Tangents are tensors computed with operators. They are therefore recorded in grad mode (reverse over forward), and have
tangents of their own at the enclosing levels. The values that a node saves keep their tangents too, so that a backward
pass inside the level computes the tangents of the gradients (forward over reverse). See Note [Nested levels] and Note
[Tangents of writes in place] in docs/notes/forward_mode.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs
import numpy as np

from ...errors import ForwardModeError
from ...operators.interception import OperatorCall
from ...operators.language.jvp_compile import TangentFunction, Tangents
from ...operators.language.jvp_parse import AUTO_ELEMENTWISE
from ...operators.language.spec import Operator
from ...tensor.creation import as_operand, zeros_like
from ...tensor.escapes import has_tangent
from ...tensor.forward_levels import DualLevel, at_level, open_levels
from ...tensor.interceptors import feature
from ...tensor.modes import FORWARD, GRAD, current_mode
from ...tensor.tangents import (
    DualSaved,
    check_captured,
    new_tangent,
    overwrite_tangent,
    saved_tangents,
    tangent_of,
    update_aliases,
    with_tangents,
    writable_tangent,
)
from ...tensor.tensor import Tensor
from .infinite_tangents import flowing_tangents, is_finite

__all__: list[str] = []


@feature(FORWARD, OperatorCall)
def propagate(call: OperatorCall, run: Callable[[], Any]) -> Any:
    """Run an operator, and compute the tangents of its outputs."""
    levels = open_levels()
    given = call.named()
    _refuse_hidden_tangents(call.operator, given)
    if call.inplace:
        saved = _saved_with_tangents(call.operator, given) if current_mode() & GRAD else {}
        result = _inplace(call, run, given, levels)
        if call.node is not None:
            _keep_tangents(call.node, saved, {call.operator.signature.outputs[0]: result})
        return result
    result = run()
    outputs = dict(zip(call.operator.signature.outputs, result if type(result) is tuple else (result,), strict=True))
    for level in levels:  # the outermost first, since inner levels read outputs with their tangents
        computation = Computation.of(call.operator, given, level)
        if computation is not None:
            with at_level(level.outer):
                for name, tangent in computation.run(outputs).items():
                    if tangent is not None and outputs[name]._array.dtype.kind in "fc":
                        new_tangent(outputs[name], tangent, level)
    if call.node is not None:
        _keep_tangents(call.node, _saved_with_tangents(call.operator, given), outputs)
    return result


@attrs.define
class Computation:
    """The computation of the tangents of one call at one level.

    Arguments:
        functions: the formulas for the inputs that have tangents.
        values: the values that formulas read, by name, apart from the outputs.
        elementwise: whether the formula was derived from the backward formula.
    """

    functions: tuple[TangentFunction, ...]
    values: dict[str, Any]
    elementwise: bool

    @classmethod
    def of(cls, operator: Operator, given: Mapping[str, Any], level: DualLevel) -> Computation | None:
        """Return the computation of a call, or None if no input has a tangent."""
        tangents: dict[str, Any] = {}
        for name in operator.differentiable:
            value = given.get(name)
            if type(value) is list:
                found = [tangent_of(tensor, level) for tensor in value]
                if any(tangent is not None for tangent in found):
                    tangents[name] = found
            elif value is not None:
                tangent = tangent_of(value, level)
                if tangent is not None:
                    tangents[name] = tangent
        if not tangents:
            return None
        rule: Tangents | None = operator.tangents
        if rule is None:
            raise ForwardModeError(
                f"operator {operator.name!r} has no forward-mode formula, but its input {next(iter(tangents))!r} has a "
                "tangent; add forward_derivative to its declaration, or detach() the input"
            )
        functions = rule.functions(frozenset(tangents))
        values: dict[str, Any] = {}
        for argument in operator.signature.arguments:
            value = given.get(argument.name)
            if argument.kind == "plain":
                values[argument.name] = value
                continue
            values[f"{argument.name}_p"] = value
            values[f"{argument.name}_t"] = _with_zeros(tangents.get(argument.name), value)
        return cls(functions, values, rule.rule == AUTO_ELEMENTWISE)

    def run(self, outputs: Mapping[str, Tensor]) -> dict[str, Tensor | None]:
        """Return the tangents of the outputs, None for zero; to be called at the enclosing level."""
        values = {**self.values, **outputs}
        results: dict[str, Tensor | None] = {}
        for function in self.functions:
            tangents = flowing_tangents(function, {name: _materialized(values[name]) for name in function.names})
            for name, tangent in zip(function.outputs, tangents, strict=True):
                if self.elementwise and tangent is not None and name in outputs:
                    _refuse_real_part(tangent, outputs[name])
                results[name] = None if tangent is None else self._alone(as_operand(tangent), outputs)
        return results

    def _alone(self, tangent: Tensor, outputs: Mapping[str, Tensor]) -> Tensor:
        """Return a tangent that shares no memory with the arguments of a formula."""
        if tangent._view is None and tangent._storage is None:
            for value in (*self.values.values(), *outputs.values()):
                if value is tangent or (type(value) is list and any(item is tangent for item in value)):
                    break
            else:
                return tangent
        return tangent.clone()


def _refuse_real_part(tangent: Any, output: Tensor) -> None:
    """Raise if a backward formula has dropped the imaginary part of a tangent."""
    if output._array.dtype.kind == "c" and tangent.dtype.kind != "c":
        raise ForwardModeError(
            f"{AUTO_ELEMENTWISE} yields a real tangent for a complex output: the backward formula takes a real part, "
            "so it is not a multiplication by the derivative; write the forward-mode formula explicitly"
        )


@attrs.frozen
class Zeros:
    """Zeros for an input without a tangent, created only if a formula needs them."""

    like: Tensor


def _with_zeros(tangent: Any, value: Any) -> Any:
    if type(value) is list:
        tangents = [None] * len(value) if tangent is None else tangent
        return [Zeros(v) if t is None else t for t, v in zip(tangents, value, strict=True)]
    return None if value is None else Zeros(value) if tangent is None else tangent


def _materialized(value: Any) -> Any:
    if type(value) is Zeros:
        return zeros_like(value.like)
    if type(value) is list:
        return [_materialized(item) for item in value]
    return value


# -- in place ----------------------------------------------------------------------------------------------------------


def _inplace(call: OperatorCall, run: Callable[[], Any], given: dict[str, Any], levels: list[DualLevel]) -> Any:
    """Run an in-place variant and write to the tangent of its target.

    The formula is evaluated before the write unless it reads the result; in that case its other operands that the write
    would change are copied first.
    """
    operator = call.operator.inplace_declaration or call.operator
    target: Tensor = call.args[0]
    check_captured(target, given.values())
    planned: list[Callable[[Tensor], Tensor | None]] = []
    for level in levels:
        computation = Computation.of(operator, given, level)
        with at_level(level.outer):
            planned.append(_plan(operator, computation, target, level))
    result = run()
    for level, finish in zip(levels, planned, strict=True):
        with at_level(level.outer):
            tangent = finish(result)
            if tangent is UNCHANGED:
                update_aliases(target, level)
            else:
                overwrite_tangent(target, tangent, level, owned=True)
    return result


UNCHANGED: Any = object()  # instead of a tangent: it was already written


def _plan(
    operator: Operator, computation: Computation | None, target: Tensor, level: DualLevel
) -> Callable[[Tensor], Tensor | None]:
    """Return a function that computes the tangent from the result, to be called after the write."""
    if computation is None or target._array.dtype.kind not in "fc":
        return lambda result: None
    output = operator.signature.outputs[0]
    (function,) = computation.functions
    values = computation.values
    if function.unchanged:
        return lambda result: UNCHANGED
    is_direct = function.in_place is not None and is_finite(values["self_t"])
    if is_direct and not _write_touches(target, values, function.names):

        def write(result: Tensor) -> Any:
            arguments = [_materialized(values[name]) for name in function.names if name != "self_t"]
            window = writable_tangent(target, level)
            assert function.in_place is not None
            function.in_place(window, *arguments)
            return UNCHANGED

        return write
    if not function.reads_result:
        tangent = computation.run({})[output]
        return lambda result: tangent
    for name in function.names:
        value = values.get(name)
        if name.endswith("_p") and isinstance(value, Tensor) and np.may_share_memory(value._array, target._array):
            values[name] = value.clone()
    return lambda result: computation.run({output: result})[output]


def _write_touches(target: Tensor, values: Mapping[str, Any], names: tuple[str, ...]) -> bool:
    """Return whether a write to `target` changes any of the inputs that a formula reads."""
    return any(
        name.endswith("_p")
        and isinstance(values.get(name), Tensor)
        and np.may_share_memory(values[name]._array, target._array)
        for name in names
    )


# -- saved values ------------------------------------------------------------------------------------------------------


def _saved_with_tangents(operator: Operator, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return saved copies of the tangents of inputs that a node may save, before the operator writes to them."""
    saved: dict[str, Any] = {}
    for declared in (operator, operator.inplace_declaration):
        if declared is None or declared.node_class is None:
            continue
        for name in declared.node_class.saved_names:
            value = given.get(name)
            if type(value) is list:
                saved[name] = [saved_tangents(tensor) for tensor in value]
            elif isinstance(value, Tensor):
                saved[name] = saved_tangents(value)
    return saved


def _keep_tangents(node: Any, saved: Mapping[str, Any], outputs: Mapping[str, Tensor]) -> None:
    """Attach the tangents to the values that `node` has saved."""
    for name in node.saved_names:
        value = getattr(node, f"saved_{name}", None)
        if value is None:
            continue
        if name in outputs:
            setattr(node, f"saved_{name}", with_tangents(value, outputs[name]))
        elif type(value) is list:
            tangents = saved.get(name, [{}] * len(value))
            setattr(node, f"saved_{name}", [DualSaved(v, t) if t else v for v, t in zip(value, tangents, strict=True)])
        elif saved.get(name):
            setattr(node, f"saved_{name}", DualSaved(value, saved[name]))


def _refuse_hidden_tangents(operator: Operator, given: Mapping[str, Any]) -> None:
    """Raise if a plain argument has a tangent, which would be lost."""
    for argument in operator.signature.plain:
        value = given.get(argument.name)
        if isinstance(value, Tensor) and has_tangent(value):
            raise ForwardModeError(
                f"argument {argument.name!r} of operator {operator.name!r} is not a tensor in its declaration, but "
                "received one with a tangent, which would be lost; detach() it"
            )
