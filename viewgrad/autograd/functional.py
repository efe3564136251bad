"""Jacobians, Hessians and their products with vectors, with the interface of `torch.autograd.functional`.

New code should use `viewgrad.func`, whose transforms return functions and take nested arguments.

In all functions, `inputs` is one tensor or a tuple of tensors, and the results are structured like it. `func` takes as
many arguments, and returns a tensor or a tuple of tensors. It receives copies of the inputs, to which it may write.
With `create_graph=True` the results can be differentiated again with respect to the inputs; otherwise they have no
history. If a derivative is zero because an output does not depend on an input, `strict=True` raises an
`UnusedInputError` instead of returning zeros. With `adopt=False`, `func` is not adopted; see `viewgrad.adopt`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from ..adoption import adopted_callable
from ..errors import DifferentiabilityError, UnusedInputError
from ..tensor.async_safety import in_own_context
from ..tensor.creation import ones_like, zeros_like
from ..tensor.modes import GRAD, ModeSwitch
from ..tensor.tangents import set_tangent, tangent_of
from ..tensor.tensor import Tensor, from_new_array
from .modes.forward_ad import dual_level
from .modes.infinite_tangents import guarded_tangent
from .transform_inputs import Transform, as_gradient, require_differentiable, the_real_number

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

Function = Callable[..., Any]
ADVICE: Final = "see jacobian, vjp and jvp for others"


@in_own_context
def vjp(
    func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False, *, adopt: bool = True
) -> Any:
    """Return the vector-Jacobian product of a function.

    Arguments:
        func: the function.
        inputs: its arguments.
        v: the vector, structured like the output; optional for an output of one element.
        create_graph, strict, adopt: see `viewgrad.autograd.functional`.

    Returns:
        `(output, product)`, with the product structured like `inputs`.

    Raises:
        DifferentiabilityError: if an input has an integer or bool dtype, or the vector is missing.
        GradientMismatchError: if the vector does not match the output.
        UnusedInputError: with `strict=True`, if an output does not depend on an input.

    Example:
        >>> import viewgrad as vg
        >>> vg.autograd.functional.vjp(lambda x: x**2, vg.Tensor([1.0, 2.0]), vg.Tensor([1.0, 1.0]))
        (Tensor([1., 4.]), Tensor([2., 4.]))
    """
    with _recording(create_graph):
        run = Run(_function(func, adopt), inputs, strict, create_graph)
        vectors = _vectors(v, run.outputs, "the output")
        return run.output(), run.like_inputs(run.products(run.outputs, vectors, "the output"))


@in_own_context
def jvp(
    func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False, *, adopt: bool = True
) -> Any:
    """Return the Jacobian-vector product of a function.

    Arguments:
        func: the function.
        inputs: its arguments.
        v: the vector, structured like `inputs`; optional for an input of one element.
        create_graph, strict, adopt: see `viewgrad.autograd.functional`.

    Returns:
        `(output, product)`, with the product structured like the output.

    Raises:
        DifferentiabilityError: if an input has an integer or bool dtype, or the vector is missing.
        GradientMismatchError: if the vector does not match the inputs.
        UnusedInputError: with `strict=True`, if an output does not depend on an input.

    Example:
        >>> import viewgrad as vg
        >>> vg.autograd.functional.jvp(lambda x: x**2, vg.Tensor([1.0, 2.0]), vg.Tensor([1.0, 0.0]))
        (Tensor([1., 4.]), Tensor([2., 0.]))
    """
    with _recording(create_graph):
        vectors = _vectors(v, _as_tuple(inputs, "inputs"), "the input")
        with dual_level() as level:
            run = Run(
                _function(func, adopt), inputs, strict, create_graph,
                lambda i, copied: set_tangent(copied, vectors[i], level),
            )  # fmt: skip
            pushed = [guarded_tangent(tangent_of(output, level)) for output in run.outputs]
            if strict:
                run.require_all_reached(run.outputs, "the output")
        products = [
            zeros_like(output) if tangent is None else tangent.clone()
            for tangent, output in zip(pushed, run.outputs, strict=True)
        ]
        if strict and create_graph:
            run.require_dependent(products)
        return run.output(), run.like_output([run.transform.result(product) for product in products])


@in_own_context
def jacobian(
    func: Function, inputs: Any, create_graph: bool = False, strict: bool = False, *, adopt: bool = True
) -> Any:
    """Return the Jacobian of a function, computed row by row.

    Arguments:
        func: the function.
        inputs: its arguments.
        create_graph, strict, adopt: see `viewgrad.autograd.functional`.

    Returns:
        For each output and each input, a tensor of shape `(*output.shape, *input.shape)`: a tuple over the outputs of
        tuples over the inputs. A level is omitted if there is a single tensor instead of a tuple.

    Raises:
        DifferentiabilityError: if an input or output has an integer or bool dtype, or a complex output is not
            holomorphic in a complex input.
        UnusedInputError: with `strict=True`, if an output does not depend on an input.

    Example:
        >>> import viewgrad as vg
        >>> vg.autograd.functional.jacobian(lambda x, y: x * y, (vg.Tensor([1.0, 2.0]), vg.Tensor([3.0])))
        (Tensor([[3., 0.],
                [0., 3.]]), Tensor([[1.],
                [2.]]))
    """
    with _recording(create_graph):
        run = Run(_function(func, adopt), inputs, strict, create_graph)
        rows = []
        for i, output in enumerate(run.outputs):
            if strict:
                run.require_all_reached([output], f"output {i}")
            found = run.transform.jacobian(output, record=strict and create_graph)
            if strict and create_graph:
                run.require_dependent(found)
                found = [run.transform.result(derivative) for derivative in found]
            rows.append(run.like_inputs(found))
        return run.like_output(rows)


@in_own_context
def hessian(
    func: Function, inputs: Any, create_graph: bool = False, strict: bool = False, *, adopt: bool = True
) -> Any:
    """Return the Hessian of a function whose output is one real number.

    Arguments:
        func: the function.
        inputs: its arguments.
        create_graph, strict, adopt: see `viewgrad.autograd.functional`.

    Returns:
        For each pair of inputs, a tensor of shape `(*first.shape, *second.shape)`: a tuple of tuples, or a single
        tensor if `inputs` is one.

    Raises:
        DifferentiabilityError: if an input has an integer or bool dtype, or the output is not one real number.
        UnusedInputError: with `strict=True`, if an output does not depend on an input.

    Example:
        >>> import viewgrad as vg
        >>> vg.autograd.functional.hessian(lambda x: x[0] ** 2 * x[1], vg.Tensor([1.0, 2.0]))
        Tensor([[4., 2.],
                [2., 0.]])
    """

    def gradient(*given: Tensor) -> Any:
        run = Run(_function(func, adopt), given, strict, True)
        number = the_real_number(run.outputs, "hessian", ADVICE)
        found = run.products([number], [ones_like(number)], "the output")
        return tuple(found) if isinstance(inputs, tuple) else found[0]

    return jacobian(gradient, inputs, create_graph, strict)


@in_own_context
def vhp(
    func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False, *, adopt: bool = True
) -> Any:
    """Return the vector-Hessian product of a function whose output is one real number.

    Arguments:
        func: the function.
        inputs: its arguments.
        v: the vector, structured like `inputs`; optional for an input of one element.
        create_graph, strict, adopt: see `viewgrad.autograd.functional`.

    Returns:
        `(output, product)`, with the product structured like `inputs`.

    Raises:
        DifferentiabilityError: if an input has an integer or bool dtype, the output is not one real number, or the
            vector is missing.
        GradientMismatchError: if the vector does not match the inputs.
        UnusedInputError: with `strict=True`, if an output does not depend on an input.

    Example:
        >>> import viewgrad as vg
        >>> vg.autograd.functional.vhp(lambda x: x[0] ** 2 * x[1], vg.Tensor([1.0, 2.0]), vg.Tensor([1.0, 0.0]))
        (Tensor(2.), Tensor([4., 2.]))
    """
    with _recording(create_graph):
        run = Run(_function(func, adopt), inputs, strict, create_graph)
        vectors = _vectors(v, _as_tuple(inputs, "inputs"), "the input")
        first = run.gradient()
        return run.output(), run.like_inputs(run.products(first, vectors, "the gradient"))


@in_own_context
def hvp(
    func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False, *, adopt: bool = True
) -> Any:
    """Return the Hessian-vector product of a function whose output is one real number.

    It is computed by forward over reverse mode, and costs less than `vhp`.

    Arguments:
        func: the function.
        inputs: its arguments.
        v: the vector, structured like `inputs`; optional for an input of one element.
        create_graph, strict, adopt: see `viewgrad.autograd.functional`.

    Returns:
        `(output, product)`, with the product structured like `inputs`.

    Raises:
        DifferentiabilityError, GradientMismatchError, UnusedInputError: as for `vhp`.

    Example:
        >>> import viewgrad as vg
        >>> vg.autograd.functional.hvp(lambda x: x[0] ** 2 * x[1], vg.Tensor([1.0, 2.0]), vg.Tensor([1.0, 0.0]))
        (Tensor(2.), Tensor([4., 2.]))
    """
    with _recording(create_graph):
        vectors = _vectors(v, _as_tuple(inputs, "inputs"), "the input")
        with dual_level() as level:
            run = Run(
                _function(func, adopt), inputs, strict, create_graph,
                lambda i, copied: set_tangent(copied, vectors[i], level),
            )  # fmt: skip
            first = run.gradient()
            pushed = [guarded_tangent(tangent_of(grad, level)) for grad in first]
            if strict:
                run.require_all_reached(first, "the gradient")
        products = [
            from_new_array(np.zeros_like(array)) if tangent is None else tangent.clone()
            for tangent, array in zip(pushed, run.transform.arrays, strict=True)
        ]
        if strict and create_graph:
            run.require_dependent(products)
        return run.output(), run.like_inputs([run.transform.result(product) for product in products])


# -- one run ----------------------------------------------------------------------------------------------------------


def _function(func: Function, adopt: bool) -> Function:
    found: Function = adopted_callable(func) if adopt else func
    return found


class Run:
    """One run of a function on copies of its inputs.

    Arguments:
        func: the function.
        inputs: its arguments.
        strict: whether inputs that the outputs do not depend on raise an error.
        create_graph: whether the results can be differentiated again.
        prepare: a function called with the number of each copy and the copy, before `func` receives it.
    """

    def __init__(
        self,
        func: Function,
        inputs: Any,
        strict: bool,
        create_graph: bool,
        prepare: Callable[[int, Tensor], None] | None = None,
    ) -> None:
        self.transform = Transform()
        self._strict = strict
        self._create_graph = create_graph
        self._several_inputs = isinstance(inputs, (tuple, list))
        given = []
        for i, tensor in enumerate(_as_tuple(inputs, "inputs")):
            require_differentiable(tensor, f"input {i}")
            source = tensor
            if prepare is not None:
                tensor = self.transform.copy(tensor)
                prepare(i, tensor)
            given.append(self.transform.primal(tensor))
            self.transform.inputs.add(source, given[-1])
        with self.transform:
            returned = func(*given)
        self._several_outputs = isinstance(returned, (tuple, list))
        self.outputs = _as_tuple(returned, "the output of the function")
        if strict:
            for i, output in enumerate(self.outputs):
                if not self.transform.reached([output]):
                    raise UnusedInputError(f"output {i} depends on none of the inputs (strict=True)")

    def output(self) -> Any:
        """Return the results of the function in the form that the caller expects."""
        return self.like_output([self.transform.result(output) for output in self.outputs])

    def like_output(self, parts: Sequence[Any]) -> Any:
        """Return values for the outputs, as a tuple if the outputs were a tuple."""
        return tuple(parts) if self._several_outputs else parts[0]

    def like_inputs(self, parts: Sequence[Any]) -> Any:
        """Return values for the inputs, as a tuple if the inputs were a tuple."""
        return tuple(parts) if self._several_inputs else parts[0]

    def gradient(self) -> list[Tensor]:
        """Return the gradient of the only output, recorded so that it can be differentiated."""
        number = the_real_number(self.outputs, "a gradient", ADVICE)
        if self._strict:
            self.require_all_reached([number], "the output")
        found = self.transform.gradients([number], [ones_like(number)], record=True)
        if self._strict:
            for i, grad in enumerate(found):
                if grad is None or not self.transform.reached([grad]):
                    raise UnusedInputError(f"the gradient with respect to input {i} is constant (strict=True)")
        return self.transform.materialized(found)

    def products(self, outputs: Sequence[Tensor], vectors: Sequence[Tensor], what: str) -> list[Tensor]:
        """Return the products of vectors with the derivative of `outputs`; `what` is their name in messages."""
        if self._strict:
            self.require_all_reached(outputs, what)
        strictly = self._strict and self._create_graph
        found = self.transform.materialized(self.transform.gradients(outputs, vectors, record=strictly, retain=True))
        if strictly:
            self.require_dependent(found)
            found = [self.transform.result(grad) for grad in found]
        return found

    def require_all_reached(self, tensors: Sequence[Tensor], what: str) -> None:
        """Raise if none of `tensors` depends on an input."""
        missing = set(range(len(self.transform.primals))) - self.transform.reached(tensors)
        if missing:
            raise UnusedInputError(f"{what} does not depend on input {min(missing)} (strict=True)")

    def require_dependent(self, derivatives: Sequence[Tensor]) -> None:
        """Raise if a derivative is constant and cannot be differentiated again."""
        for i, derivative in enumerate(derivatives):
            if not self.transform.reached([derivative]):
                raise UnusedInputError(
                    f"derivative {i} depends on none of the inputs, and cannot be differentiated (strict=True, "
                    "create_graph=True)"
                )


def _recording(create_graph: bool) -> ModeSwitch:
    return ModeSwitch(on=GRAD) if create_graph else ModeSwitch(off=GRAD)


def _as_tuple(value: Any, what: str) -> tuple[Tensor, ...]:
    tensors = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    for i, tensor in enumerate(tensors):
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{what} must be a tensor or a tuple of tensors, but item {i} is a {type(tensor).__name__}")
    return tensors


def _vectors(v: Any, tensors: Sequence[Tensor], what: str) -> list[Tensor]:
    """Return the supplied vectors as tensors; ones if they may be omitted."""
    if v is None:
        if len(tensors) != 1 or tensors[0].size != 1:
            raise DifferentiabilityError(f"v can be omitted only if {what} is a single element")
        return [ones_like(tensors[0])]
    vectors = tuple(v) if isinstance(v, (tuple, list)) else (v,)
    if len(vectors) != len(tensors):
        raise DifferentiabilityError(f"v has {len(vectors)} tensors, but {what} has {len(tensors)}")
    return [as_gradient(vector, like, "v") for vector, like in zip(vectors, tensors, strict=True)]
