"""Opaque steps: operations that are not operators of the table, stored as functions of arrays and of tensors.

A step computes on arrays when a graph runs, and on tensors when it is differentiated. The derivative of a step is
another step, which differentiates the first one eagerly, so graphs with opaque steps have derivatives of any order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs
import numpy as np

from ..autograd.api import pull_back
from ..operators.codegen.generate import compile_source, environment_of
from ..operators.language.parsing import local_names
from ..operators.language.rename import formula_text
from ..operators.language.spec import Formula, Operator
from ..tensor.modes import FORWARD, GRAD, TRACE, ModeSwitch, current_mode
from ..tensor.tensor import Tensor, from_array
from ..views.unbroadcast import match_spec
from .attributes import unfrozen


class Step:
    """An opaque step."""

    @property
    def name(self) -> str:
        """The name in the text of a graph."""
        raise NotImplementedError

    def on_tensors(self, *inputs: Any) -> tuple[Any, ...]:
        """Return the outputs for tensors, recorded in grad mode."""
        raise NotImplementedError

    def on_arrays(self, *inputs: Any) -> tuple[Any, ...]:
        """Return the outputs for arrays."""
        with ModeSwitch(off=GRAD | TRACE | FORWARD):
            outputs = self.on_tensors(*[None if each is None else from_array(np.array(each)) for each in inputs])
        return tuple([None if output is None else np.asarray(output._array) for output in outputs])


@attrs.frozen
class FormulaStep(Step):
    """A formula of an operator.

    Arguments:
        operator: the operator.
        formula: the formula.
        names: the names of its inputs: "grad" or "grads[i]", arguments and outputs.
        options: the other values that the formula reads, by name.
        specs: the shapes and dtypes of the inputs whose gradients it computes.
        grads: for an operator with several outputs, the shape and dtype of each, used for zero gradients; None
            otherwise.
    """

    operator: Operator = attrs.field(eq=id)
    formula: Formula = attrs.field(eq=id)
    names: tuple[str, ...]
    options: tuple[tuple[str, Any], ...]
    specs: tuple[Any, ...]
    grads: tuple[Any, ...] | None

    @property
    def name(self) -> str:
        """The name in the text of a graph."""
        return f"{self.operator.name}: {self.formula.text}"

    def on_tensors(self, *inputs: Any) -> tuple[Any, ...]:
        """Return the gradients for tensors."""
        return self._run(inputs, recorded=True)

    def on_arrays(self, *inputs: Any) -> tuple[Any, ...]:
        """Return the gradients for arrays."""
        return tuple([None if g is None else np.asarray(g) for g in self._run(inputs, recorded=False)])

    def _run(self, inputs: tuple[Any, ...], recorded: bool) -> tuple[Any, ...]:
        given = dict(zip(self.names, inputs, strict=True)) | {name: unfrozen(value) for name, value in self.options}
        return run_formula(self.operator, self.formula, given, self.specs, self.grads, recorded)


def run_formula(
    operator: Operator,
    formula: Formula,
    given: dict[str, Any],
    specs: Sequence[Any],
    grads: Sequence[Any] | None,
    recorded: bool,
) -> tuple[Any, ...]:
    """Return the gradients computed by a formula, in the shapes and dtypes of the inputs.

    Arguments:
        operator, formula: the formula, and its operator.
        given: the values that the formula reads, by name; "grad" or "grads[i]" are gradients.
        specs: the shapes and dtypes of the inputs it differentiates; for a list of tensors, one entry that is a list.
        grads: the shapes and dtypes of the outputs, if there are several.
        recorded: whether the values are tensors.
    """
    values = {name: value for name, value in given.items() if not name.startswith("grads[")}
    if grads is not None:
        arrived = [given.get(f"grads[{i}]") for i in range(len(grads))]
        zeros = [np.zeros(*spec) if old is None else old for old, spec in zip(arrived, grads, strict=True)]
        values["grads"] = [Tensor(new) if type(new) is np.ndarray else new for new in zeros] if recorded else zeros
    result = formula_function_of(operator, formula, recorded, tuple(values))(**values)
    results: Any = result if len(formula.inputs) > 1 else (result,)
    if operator.signature.argument(formula.inputs[0]).kind == "tensors":
        results = tuple(results[0])
        specs = specs[0]
    return tuple([fitted(g, spec) for g, spec in zip(results, specs, strict=True)])


def fitted(grad: Any, spec: Any) -> Any:
    """Return the gradient computed by a formula, a tensor or an array, in the shape and dtype of its input."""
    if grad is None or spec is None:
        return None
    if not isinstance(grad, (Tensor, np.ndarray)):
        grad = np.asarray(grad)
    return match_spec(grad, spec)


_functions: dict[Any, Any] = {}


def formula_function_of(operator: Operator, formula: Formula, recorded: bool, names: tuple[str, ...]) -> Any:
    """Return a formula as a function of the values that it reads: arrays or, if `recorded`, tensors."""
    key = (id(operator), id(formula), recorded, names)
    found = _functions.get(key)
    if found is None:
        local = {argument.name for argument in operator.signature.arguments} | local_names(formula.tree)
        text = formula_text(formula.tree, recorded, local)
        source = f"def formula({', '.join(names)}):\n    return {text}\n"
        what = f"{operator.name}, formula for {', '.join(formula.inputs)}{' of tensors' if recorded else ''}"
        found = compile_source(source, what, environment_of(operator))["formula"], operator, formula
        _functions[key] = found
    return found[0]


@attrs.frozen
class FunctionStep(Step):
    """A differentiable function of tensors, such as a custom `Function`.

    Arguments:
        function: a function of tensors that returns a tensor or a tuple of tensors.
        label: the name used in messages.
    """

    function: Callable[..., Any]
    label: str

    @property
    def name(self) -> str:
        """The name in the text of a graph."""
        return self.label

    def on_tensors(self, *inputs: Any) -> tuple[Any, ...]:
        """Return the outputs for tensors."""
        result = self.function(*inputs)
        return result if isinstance(result, tuple) else (result,)


@attrs.frozen
class VjpStep(Step):
    """The gradients of another step.

    Its inputs are those of the differentiated step, followed by the gradients of some of its outputs, None if
    undefined.

    Arguments:
        step: the differentiated step.
        count: the number of its inputs.
        arriving: the numbers of the outputs whose gradients are inputs.
        wanted: the numbers of the inputs whose gradients are computed.
    """

    step: Step
    count: int
    arriving: tuple[int, ...]
    wanted: tuple[int, ...]

    @property
    def name(self) -> str:
        """The name in the text of a graph."""
        return f"gradient of {self.step.name}"

    def on_tensors(self, *inputs: Any) -> tuple[Any, ...]:
        """Return the gradients for tensors, recorded in grad mode."""
        recorded = bool(current_mode() & GRAD)
        given, grads = list(inputs[: self.count]), inputs[self.count :]
        with ModeSwitch(on=GRAD):
            for i in self.wanted:
                # The histories of the inputs are not followed: each input is a leaf here.
                if recorded and given[i].requires_grad:
                    given[i] = given[i].clone()
                else:
                    given[i] = given[i].detach().requires_grad_()
            outputs = self.step.on_tensors(*given)
            wanted = [given[i] for i in self.wanted]
            found = pull_back([outputs[number] for number in self.arriving], grads, wanted, create_graph=recorded)
        return tuple([
            from_array(np.zeros_like(each._array)) if gradient is None else gradient
            for each, gradient in zip(wanted, found)
        ])
