"""`define_op`: create an operator from the text of a declaration."""

from __future__ import annotations

import functools
import sys
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, Final

import attrs
import numpy as np

from ..tensor.tensor import Tensor
from .codegen.generate import INTERNAL, announce, compile_source, environment_of, generate, unwritten
from .domains import DOMAINS, USUAL
from .dtype_kinds import check_samples
from .language.jvp_parse import read_tangents
from .language.namespace import is_formula_function, set_meaning
from .language.parsing import parse_signature
from .language.spec import UNDECIDED, Code, Decomposition, Formula, InPlace, Kernel, Operator, Reading, Signature
from .language.validate import check_functions, check_signature, declaration_error, read_formulas
from .lazy_imports import LazyFunction
from .numpy_api.dispatch import declare
from .samples import given_calls, samples_in_each_kind

OPERATORS: Final[dict[str, Operator]] = {}
TABLES: Final = str(Path(__file__).with_name("derivatives"))


def row(
    signature: str,
    forward: Callable[..., Any],
    derivatives: Mapping[str, str] | None = None,
    *,
    forward_derivative: str | Mapping[str, str] | None = None,
    elementwise: bool = False,
    inplace: bool | InPlace = False,
    nondifferentiable_outputs: Sequence[str] = (),
    lists: Sequence[str] = (),
    method: bool = True,
    numpy: Sequence[Any] = (),
    doc: str = "",
    dtype_kinds: str | Mapping[str, str] = "f",
    mask_zero_grad: bool = False,
    masks_gradient: bool = False,
    zero_in_masked_runs: bool = False,
    returns_0d_arrays: bool = False,
    kernel: str | Kernel | Mapping[str, Kernel] = "",
    decomposition: str | Decomposition = "",
) -> Operator:
    """Define an operator: one row of the table. Its test samples are in `tests/operator_samples/`.

    Arguments:
        signature: `"name(self, other, axis=None, *, option=1) -> (first, second)"`.
        forward: a function that computes the outputs from arrays, with the arguments of the signature; it must not
            return views of them.
        derivatives: the formula of the gradient for each tensor argument, or `"not_differentiable"`. Arguments
            separated by commas share a formula that returns a tuple. The keys determine which arguments are tensors.
        forward_derivative: the tangent of the output, from `NAME_t` and `NAME_p`; or `"auto_element_wise"` or
            `"auto_linear"`; by name for several outputs.
        elementwise: whether the tensors are broadcast against each other.
        inplace: whether to create an in-place form, or an `InPlace` with the parts that are stated explicitly.
        nondifferentiable_outputs: the outputs without gradient.
        lists: the tensor arguments that are lists of tensors.
        method: whether to make the operator a method of `Tensor`.
        numpy: the NumPy functions and ufuncs that call this operator on tensors.
        doc: the first line of its docstring.
        dtype_kinds: "fc" if the formulas are valid for complex numbers, "f" if these are rejected; by argument if they
            differ.
        mask_zero_grad: for an elementwise operator whose derivative is infinite or NaN somewhere, whether the gradient
            is 0 wherever the incoming gradient is 0. See Note [Infinite slopes] in docs/notes/declarations.md.
        masks_gradient: whether a mask sets part of the gradient to zero; see tensor/masked_backward.py.
        zero_in_masked_runs: whether the gradient is 0 in such passes wherever the incoming gradient is 0, even if a
            factor is infinite or NaN; for an operator that is not elementwise, wherever no other factor has influence.
        returns_0d_arrays: whether 0-d outputs are arrays instead of scalars.
        kernel: the computation of one element in compiled programs; a string is an expression for floats. A mapping by
            name if it depends on which arguments are given.
        decomposition: the formula of a reduction in compiled programs.

    Returns:
        The operator, which is callable.
    """
    if mask_zero_grad and derivatives is not None:
        derivatives = {name: f"flowing({formula}, grad)" for name, formula in derivatives.items()}
    operator = _declare(
        signature,
        forward,
        derivatives or {},
        forward_derivative=forward_derivative,
        elementwise=elementwise,
        inplace=inplace,
        nondifferentiable=nondifferentiable_outputs,
        lists=lists,
        doc=doc,
        user_defined=False,
        dtype_kinds=dtype_kinds,
        reference=next((function for function in numpy if callable(function)), None),
        places=_places(),
        returns_0d_arrays=returns_0d_arrays,
        masks_gradient=masks_gradient,
        zero_in_masked_runs=zero_in_masked_runs,
    )
    if kernel:
        kernel = Kernel(kernel) if isinstance(kernel, str) else kernel
        operator.kernels = {operator.name: kernel} if isinstance(kernel, Kernel) else kernel
    if decomposition:
        operator.decomposition = Decomposition(decomposition) if isinstance(decomposition, str) else decomposition
    operator.domain = DOMAINS.get(operator.name, USUAL)
    operator.recipe = _of_the_library, (operator.name,)
    arguments = operator.signature.arguments
    if method and arguments and arguments[0].kind == "tensor":
        setattr(Tensor, operator.name, operator.function)
        if operator.has_inplace:
            setattr(Tensor, f"{operator.name}_", operator.inplace_function)
    for function in numpy:
        if isinstance(function, LazyFunction):
            function.module.when_loaded(functools.partial(_register_lazily, function, operator.function))
        else:
            declare(function, operator.function)
    if isinstance(operator.declared_forward, LazyFunction):
        operator.declared_forward.module.when_loaded(lambda: set_meaning(operator.name, operator.forward, None))
    return operator


def _register_lazily(numpy: LazyFunction, function: Callable[..., Any]) -> None:
    found = numpy.found()
    if isinstance(found, np.ufunc):  # other functions are not dispatched on tensors
        declare(found, function)


def _places() -> tuple[tuple[str, int], ...]:
    """Return the source locations of a declaration: the caller of the calling function, or the table entry that calls
    it.
    """
    frame: FrameType | None = sys._getframe(2)
    places: list[tuple[str, int]] = []
    while frame is not None and (not places or frame.f_code.co_filename.startswith(TABLES)):
        places.append((frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back
    return tuple(places)


def _declare(
    text: str,
    forward: Callable[..., Any],
    derivatives: Mapping[str, str],
    *,
    forward_derivative: str | Mapping[str, str] | None,
    elementwise: bool,
    inplace: bool | InPlace,
    nondifferentiable: Sequence[str],
    lists: Sequence[str],
    doc: str,
    user_defined: bool,
    **more: Any,
) -> Operator:
    """Check a declaration and create an operator from it."""
    tensors = {
        name.strip(): "tensors" if name.strip() in lists else "tensor" for key in derivatives for name in key.split(",")
    }
    signature = parse_signature(text, tensors)
    name = signature.name
    earlier = OPERATORS.get(name)
    if (earlier is not None and not earlier.user_defined) or (earlier is None and is_formula_function(name)):
        raise declaration_error(name, "this name is taken by the library; choose another name")
    if name in INTERNAL:
        raise declaration_error(name, "this name is used by generated code; choose another name")
    check_signature(signature, derivatives, lists, nondifferentiable, INTERNAL)
    has_inplace = bool(inplace)
    if has_inplace:
        _check_inplace(signature)
    environment: dict[str, Any] = {}

    def compile(source: str, function: str) -> Any:
        return compile_source(source, function, environment)[function]

    def read(operator: Operator) -> Reading:
        formulas = read_formulas(signature, derivatives, nondifferentiable, inplace=has_inplace)
        reading = _reading(operator, formulas, compile)
        if isinstance(inplace, InPlace):
            declared = _inplace_declaration(operator, inplace, reading, compile)
            reading = attrs.evolve(reading, inplace_declaration=declared)
        check_functions(name, reading, lambda called: called == name or is_formula_function(called))
        return reading

    operator = Operator(
        signature=signature,
        forward=forward,
        read=read,
        generate=lambda operator: generate(operator, environment),
        nondifferentiable_outputs=tuple(nondifferentiable),
        elementwise=elementwise,
        forward_derivative=forward_derivative,
        has_inplace=has_inplace,
        doc=doc,
        user_defined=user_defined,
        **more,
    )
    environment = environment_of(operator)
    if user_defined:
        operator.read_formulas()  # reports errors at the definition
    unwritten(operator, environment)
    if user_defined:
        operator.write_code()
    announce(operator)
    OPERATORS[name] = operator
    return operator


def _reading(
    operator: Operator, formulas: tuple[Formula, ...], compile: Callable[[str, str], Any], *, own: bool = False
) -> Reading:
    """Return the properties derived from the formulas: the differentiable inputs, and the computation of tangents."""
    inputs = {name for formula in formulas for name in formula.inputs}
    differentiable = tuple(a.name for a in operator.signature.tensors if a.name in inputs)
    tangents = read_tangents(
        operator.signature,
        differentiable,
        formulas,
        operator.forward_derivative,
        operator.nondifferentiable_outputs,
        compile,
        inplace=own,
    )
    return Reading(formulas, differentiable, tangents)


def _inplace_declaration(
    operator: Operator, inplace: InPlace, reading: Reading, compile: Callable[[str, str], Any]
) -> Operator:
    """Return the operator of the in-place variant: the declared operator, with the parts that `inplace` overrides."""
    signature, nondifferentiable = operator.signature, operator.nondifferentiable_outputs
    formulas = reading.formulas
    if inplace.derivatives is not None:
        formulas = read_formulas(signature, inplace.derivatives, nondifferentiable, inplace=True)
    return attrs.evolve(
        operator,
        recipe=None,
        forward=inplace.forward or operator.forward,
        forward_derivative=inplace.forward_derivative or operator.forward_derivative,
        read=lambda declared: _reading(declared, formulas, compile, own=inplace.forward_derivative is not None),
        generate=lambda declared: Code(operator.code.inplace_node_class),
    )


def _check_inplace(signature: Signature) -> None:
    """Check that an in-place variant is possible: the result is written over the first argument."""
    first = signature.arguments[0] if signature.arguments else None
    if first is None or first.kind != "tensor" or first.optional or first.keyword_only:
        raise declaration_error(
            signature.name, "an in-place variant writes to the first argument, which must be a tensor"
        )
    if len(signature.outputs) != 1:
        raise declaration_error(signature.name, f"an in-place variant has one output, not {len(signature.outputs)}")


def define_op(
    signature: str,
    *,
    forward: Callable[..., Any],
    derivatives: Mapping[str, str],
    forward_derivative: str | Mapping[str, str] | None = None,
    inplace: bool | InPlace = False,
    elementwise: bool | None = None,
    nondifferentiable_outputs: Sequence[str] = (),
    lists: Sequence[str] = (),
    doc: str = "",
    dtype_kinds: str | Mapping[str, str] | None = None,
    domain: tuple[float, float] = USUAL,
    samples: Callable[..., Any] | Sequence[Any] | None = None,
    reference: Callable[..., Any] | None = None,
) -> Operator:
    """Define an operator, which then behaves like the operators of the library.

    See `row` for the arguments that are not listed here. The claim of `dtype_kinds` is checked against finite
    differences on samples. If it is omitted, the formulas are checked on the first complex argument, which is rejected
    if they are wrong.

    Arguments:
        elementwise: whether the operator works element by element; inferred from the in-place form if omitted.
        domain: for an elementwise operator, the interval from which tests draw its arguments.
        samples: calls for the tests: a list of `(args, kwargs)` with arrays for tensors, or a function `samples(rng)`
            that draws one. Required unless the operator is elementwise.
        reference: a function of arrays that computes the same values by other means.

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
    try:
        drawn = samples if samples is None or callable(samples) else given_calls(samples)
    except TypeError as error:
        raise declaration_error(signature.partition("(")[0].strip(), str(error)) from None
    operator = _declare(
        signature,
        forward,
        derivatives,
        forward_derivative=forward_derivative,
        elementwise=bool(inplace) if elementwise is None else elementwise,
        inplace=inplace,
        nondifferentiable=nondifferentiable_outputs,
        lists=lists,
        doc=doc,
        user_defined=True,
        places=_places(),
        dtype_kinds=UNDECIDED if dtype_kinds is None else dtype_kinds,
        domain=domain,
        samples=drawn,
        reference=reference,
    )
    if dtype_kinds is not None:
        check_samples(operator, [sample.bound() for sample in samples_in_each_kind(operator)])
    arguments = {
        "forward": forward,
        "derivatives": dict(derivatives),
        "forward_derivative": forward_derivative,
        "inplace": inplace,
        "elementwise": elementwise,
        "nondifferentiable_outputs": nondifferentiable_outputs,
        "lists": lists,
        "doc": doc,
        "dtype_kinds": dtype_kinds,
        "domain": domain,
        "samples": samples,
        "reference": reference,
    }
    operator.recipe = _defined_again, (uuid.uuid4().hex, signature, arguments)
    return operator


def _of_the_library(name: str) -> Operator:
    return OPERATORS[name]


def _defined_again(identity: str, signature: str, arguments: dict[str, Any]) -> Operator:
    """Return a user's operator for unpickling, in the process that defined it or in another process."""
    known = OPERATORS.get(signature.partition("(")[0].strip())
    if known is not None and known.recipe is not None and known.recipe[1][0] == identity:
        return known
    operator = define_op(signature, **arguments)
    operator.recipe = _defined_again, (identity, signature, arguments)
    return operator
