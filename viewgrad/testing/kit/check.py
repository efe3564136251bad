"""`check_operator`: checks every property of an operator at the given arguments and at others derived from them."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from hypothesis import currently_in_test_context

from ...autograd.function import Function
from ...operators.language.spec import Operator
from ...tensor.signatures import signature_of
from .contract import Contract, near_matches
from .hypothesis_calls import calls_like, check_declared, check_drawn, check_within_test, holds_strategies
from .operator_under_test import declared
from .report import Report
from .run import Check


def check_operator(
    operator: Callable[..., Any],
    *positional: Any,
    arguments: Sequence[Any] | None = None,
    keywords: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    inplace: Callable[..., Any] | None = None,
    reference: Callable[..., Any] | None = None,
    surrogate: Callable[..., Any] | None = None,
    domain: Any = None,
    valid: Callable[..., bool] | None = None,
    structure: Mapping[Any, Any] | None = None,
    dtype_kinds: str | None = None,
    float32: bool | None = None,
    disturb: Callable[..., Any] | None = None,
    order: int | None = None,
    only: str | Sequence[str] | None = None,
    switched_off: Mapping[str, str] | None = None,
    keep_going: bool = False,
    seconds: float | None = None,
    max_examples: int | None = None,
    progress: Callable[[str, int, int], None] | None = None,
    **rest: Any,
) -> Report:
    """Check all properties of an operator, for the given arguments and for others derived from them.

    Its gradients are compared with finite differences: at special points, in other shapes, with other options, and with
    complex numbers if it supports them. They must not depend on the memory layout of the arguments, on later writes to
    them, on other calls, or on other threads. Forward mode, second derivatives and the in-place form are checked if
    they exist. `PROPERTIES` lists all properties.

    An operator may reject a derived call with an error, in forward or in backward, but it must not be wrong.

    Arguments:
        operator: an operator made by `define_op`, a `Function` or its `apply`, an in-place form, or any function of
            tensors. Its result contains tensors, possibly nested in tuples, lists and dicts.
        positional: its arguments. Tensors and arrays may be nested in lists, tuples and dicts; arrays become tensors.
            If any tensor requires grad, those that do are differentiated; otherwise all of float or complex dtype are.
            An argument may be a Hypothesis strategy. An operator declared with samples is checked at these if there are
            no arguments.
        arguments: more positional arguments, as a sequence.
        keywords: keyword arguments of the operator, as a mapping. If it is given, `rest` must be empty.
        options: the values to try, by argument: ``{"slope": [0.1, 0.2]}``. No others are tried. If the argument is
            missing from the call and has no default, the first value is used. A value that is not a list is passed to
            the operator as a keyword argument.
        inplace: the in-place form, which overwrites the first argument with the result; known for operators made by
            `define_op`.
        reference: a function of arrays that computes the same values.
        surrogate: a function of tensors whose derivative is the intended gradient (straight-through estimators,
            gradient reversal). It is called with the operator's arguments, and its own gradient is trusted.
        domain: the interval ``(low, high)`` in which to check, or one interval or None for each argument, in a sequence
            or a mapping from names.
        valid: a function that returns whether a call is valid; it receives the arguments of the call, with arrays
            instead of tensors.
        structure: by name or position, "symmetric", "triangular", "positive definite", or a projection of arrays. The
            argument is perturbed within this structure, and derived calls preserve it.
        dtype_kinds: "fc" to require support for complex numbers, "f" to skip them. By default, they are required if an
            argument is complex or the operator's source mentions complex numbers; otherwise wrong complex gradients are
            noted in the report.
        float32: True to require that float32 arguments give float32 results. By default, this is required if an
            argument has that dtype, and noted otherwise.
        disturb: a function that changes state the operator may have, for example by calling another of its methods. It
            is called with the operator or without arguments, and the operator must return the same values afterwards.
        order: 1 to skip second derivatives; 2 by default.
        only: the properties to check; all by default.
        switched_off: properties to skip, each with a reason, which the report shows.
        keep_going: whether to continue after a failure and report all failing properties, the most basic first.
        seconds: the CPU time for derived calls, 2 by default. The report lists what was skipped. A slow operator gets
            the time of 400 calls.
        max_examples: the number of calls that Hypothesis draws: from strategies among the arguments, or else similar to
            the given call. By default a tenth of the number in its profile, or none.
        progress: a function called with the name of each property, its number, and the number of properties.
        rest: keyword arguments of the operator. If a name is also an argument of `check_operator` (such as `order`),
            the operator's takes precedence.

    Returns:
        The report, which can be printed.

    Raises:
        Failure: if a property does not hold. The message has both values, and a program that reproduces the failure.
        TypeError: for a keyword that neither `check_operator` nor the operator has.

    Example:
        >>> import numpy as np, viewgrad as vg
        >>> from viewgrad.testing import check_operator
        >>> report = check_operator(lambda x, y: vg.exp(x) * y, np.array([[0.5, -1.0], [2.0, 0.3]]), np.array(1.5))
        >>> "special points" in report.examples
        True
    """
    own = set() if keywords is not None else _own_parameters(operator)
    chosen: dict[str, Any] = {
        "inplace": inplace, "reference": reference, "surrogate": surrogate, "domain": domain, "valid": valid,
        "structure": structure, "dtype_kinds": dtype_kinds, "float32": float32, "disturb": disturb, "order": order,
        "only": only, "seconds": seconds, "max_examples": max_examples, "options": options,
        "switched_off": switched_off,
    }  # fmt: skip
    for name in own & chosen.keys():  # arguments of the operator with the same names
        if chosen[name] is not None:
            rest[name] = chosen[name]
        chosen[name] = None
    args = tuple(positional) + tuple(arguments or ())
    max_examples = chosen.pop("max_examples")
    dtype_kinds = chosen.pop("dtype_kinds")
    given, tried = _options_of(operator, chosen.pop("options") or {}, args, rest)
    kwargs = rest | dict(keywords or {}) | given
    _require_known(operator, rest)
    contract = Contract(
        options=tried,
        whole=[name for name, value in given.items() if name not in tried and isinstance(value, tuple | np.ndarray)],
        structure=chosen.pop("structure") or {},
        complex=None if dtype_kinds is None else "c" in dtype_kinds,
        **{name: chosen.pop(name) for name in ("inplace", "reference", "surrogate", "domain", "valid", "disturb")},
    )
    chosen["order"] = 2 if chosen["order"] is None else chosen["order"]

    def make(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Check:
        return Check.of(operator, args, kwargs, contract=contract, keep_going=keep_going, progress=progress, **chosen)

    row = declared(operator)
    if row is not None and not args and not kwargs:
        return check_declared(make, row)
    if holds_strategies((args, kwargs)):
        return check_drawn(make, args, kwargs, max_examples, _name_of(operator))
    if currently_in_test_context():
        place = sys._getframe(1).f_code
        report = check_within_test(operator, place, (args, kwargs), lambda: make(args, kwargs))
        return Report(_name_of(operator)) if report is None else report
    report = make(args, kwargs).run()
    if max_examples:
        check_drawn(make, *calls_like(args, kwargs), max_examples, _name_of(operator), after=report)
    return report


def _options_of(
    operator: Any, options: Mapping[str, Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """Return the keyword arguments among the options, and the values to try.

    Raises:
        ValueError: for an empty list, or an argument that the operator does not have.
    """
    given, tried = {}, {}
    parameters = _parameters(operator)
    takes_all = not parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    for name, values in options.items():
        if not takes_all and name not in parameters:
            told = near_matches(name, [*parameters]).rstrip("; ")
            raise ValueError(f"options= names the argument {name!r}, which {_name_of(operator)} does not have; {told}")
        if type(values) is not list:
            given[name] = values
            continue
        if not values:
            raise ValueError(f"options={{{name!r}: []}} has no value to try")
        tried[name] = values
        names = list(parameters)
        positional = name in parameters and names.index(name) < len(args)
        default = parameters[name].default if name in parameters else inspect.Parameter.empty
        if name not in kwargs and not positional and default is inspect.Parameter.empty:
            given[name] = values[0]
    return given, tried


def _require_known(operator: Any, rest: Mapping[str, Any]) -> None:
    """Raise for a keyword that resembles an option of the check but is unknown to the operator.

    Raises:
        TypeError: with the name that was probably meant.
    """
    parameters = _parameters(operator)
    if not parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return
    known = set(inspect.signature(check_operator).parameters) - {"operator", "positional", "rest"}
    for name in rest:
        if name not in parameters:
            told = near_matches(name, sorted({*known, *parameters})).rstrip("; ")
            raise TypeError(f"neither check_operator nor {_name_of(operator)} has an argument {name!r}; {told}")


def _name_of(operator: Any) -> str:
    owner = getattr(operator, "__self__", operator)
    return str(getattr(owner, "__name__", getattr(owner, "name", type(owner).__name__)))


def _own_parameters(operator: Any) -> set[str]:
    if isinstance(operator, Operator):
        return {argument.name for argument in operator.signature.arguments}
    return set(_parameters(operator, context=True))


def _parameters(operator: Any, context: bool = False) -> dict[str, inspect.Parameter]:
    """Return the parameters of an operator by name; none if they are unknown.

    Arguments:
        operator: the operator, as given.
        context: whether the `ctx` of a custom function is among them.
    """
    row = declared(operator)
    function: Any = operator if row is None else row.function
    owner = operator if isinstance(operator, type) else getattr(operator, "__self__", None)
    custom = isinstance(owner, type) and issubclass(owner, Function)
    if custom:
        function = owner.forward  # type: ignore[union-attr]
    try:
        parameters = dict(signature_of(function).parameters)
    except (TypeError, ValueError):
        return {}
    if custom and not context and owner.setup_context is Function.setup_context and parameters:  # type: ignore[union-attr]
        del parameters[next(iter(parameters))]
    return parameters
