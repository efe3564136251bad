"""`define_op`: from the text of a declaration to an operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ...tensor.tensor import Tensor
from .codegen import generate
from .declaration import DeclarationError, Operator, parse_formula, parse_signature
from .numpy_protocol import register

__all__ = ["OPERATORS", "define_op", "row"]

OPERATORS: Final[dict[str, Operator]] = {}
NOT_DIFFERENTIABLE: Final = "not_differentiable"


def row(
    signature: str,
    forward: Callable[..., Any],
    derivatives: Mapping[str, str] | None = None,
    *,
    forward_derivative: str | Mapping[str, str] | None = None,
    elementwise: bool = False,
    inplace: bool = False,
    nondifferentiable_outputs: Sequence[str] = (),
    lists: Sequence[str] = (),
    method: bool = True,
    numpy: Sequence[Any] = (),
    doc: str = "",
    domain: tuple[float, float] = (-2.0, 2.0),
    kinds: str = "f",
    samples: Callable[..., Any] | None = None,
    reference: Callable[..., Any] | None = None,
) -> Operator:
    """Define an operator: one row of the table.

    Arguments:
        signature: `"name(self, other, axis=None, *, option=1) -> (first, second)"`.
        forward: computes the outputs from arrays, with the arguments of the signature; never returns views of them.
        derivatives: for each tensor argument (several, separated by commas, share a formula that returns a tuple) the
            formula of its gradient, or `"not_differentiable"`. The keys are what makes an argument a tensor.
        forward_derivative: the tangent of the output, from `NAME_t` and `NAME_p`; or `"auto_element_wise"` or
            `"auto_linear"`; by name for several outputs.
        elementwise: whether the tensors are broadcast against each other.
        inplace: whether to make an in-place variant.
        nondifferentiable_outputs: the outputs through which no gradient flows.
        lists: the tensor arguments that are lists of tensors.
        method: whether to make the operator a method of `Tensor`.
        numpy: the NumPy functions and ufuncs that mean this operator on tensors.
        doc: what it computes.
        domain: of an elementwise operator, the interval from which the tests draw its arguments.
        kinds: "fc" where complex numbers make sense, "f" where they don't.
        samples: draws arguments for the tests: `samples(rng)` is a list of `(args, kwargs)` with arrays for tensors;
            `samples.draws` writes it down shortly. Needed unless the operator is elementwise.
        reference: computes the same in another way from arrays; the first of `numpy` where left out.

    Returns:
        The operator, callable.
    """
    formulas_of = dict(derivatives or {})
    tensors = {}
    for key in formulas_of:
        for name in key.split(","):
            tensors[name.strip()] = "tensors" if name.strip() in lists else "tensor"
    parsed = parse_signature(signature, tensors)
    formulas = []
    differentiable: list[str] = []
    for key, text in formulas_of.items():
        inputs = tuple(name.strip() for name in key.split(","))
        if text == NOT_DIFFERENTIABLE:
            continue
        formulas.append(parse_formula(text, inputs, parsed))
        differentiable.extend(inputs)
    order = [argument.name for argument in parsed.tensors]
    operator = Operator(
        signature=parsed,
        forward=forward,
        formulas=tuple(formulas),
        differentiable=tuple(sorted(differentiable, key=order.index)),
        nondifferentiable_outputs=tuple(nondifferentiable_outputs),
        elementwise=elementwise,
        forward_derivative=forward_derivative,
        has_inplace=inplace,
        doc=doc,
        domain=domain,
        kinds=kinds,
        samples=samples,
        reference=reference or next((function for function in numpy if callable(function)), None),
    )
    generate(operator)
    if operator.name in OPERATORS:
        raise DeclarationError(f"operator {operator.name!r} is defined already")
    OPERATORS[operator.name] = operator
    if method and parsed.arguments and parsed.arguments[0].kind == "tensor":
        setattr(Tensor, operator.name, operator.function)
        if inplace:
            setattr(Tensor, f"{operator.name}_", operator.inplace_function)
    for function in numpy:
        register(function, operator.function)
    return operator


def define_op(
    signature: str,
    *,
    forward: Callable[..., Any],
    derivatives: Mapping[str, str],
    forward_derivative: str | Mapping[str, str] | None = None,
    inplace: bool = False,
    elementwise: bool | None = None,
    nondifferentiable_outputs: Sequence[str] = (),
    lists: Sequence[str] = (),
    doc: str = "",
) -> Operator:
    """Define an operator of one's own, which then behaves as a built-in one.

    See `row` for the arguments. `elementwise` is inferred from an in-place variant where left out.

    Example:
        >>> import numpy as np, viewgrad as vg
        >>> softclip = vg.autograd.define_op(
        ...     "softclip_example(self, *, limit)",
        ...     forward=lambda x, *, limit: limit * np.tanh(x / limit),
        ...     derivatives={"self": "grad * (1 - square(result / limit))"},
        ...     forward_derivative="auto_element_wise",
        ...     inplace=True,
        ... )
        >>> x = vg.Tensor([0.0, 1.0], requires_grad=True)
        >>> softclip(x, limit=2.0).sum().backward()
        >>> x.grad
        Tensor([1.        , 0.78644773])
    """
    return row(
        signature,
        forward,
        derivatives,
        forward_derivative=forward_derivative,
        elementwise=inplace if elementwise is None else elementwise,
        inplace=inplace,
        nondifferentiable_outputs=nondifferentiable_outputs,
        lists=lists,
        method=False,
        doc=doc,
    )
