"""`check_operator`: every property of an operator, at the user's arguments and at others derived from them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hypothesis import currently_in_test_context

from ...autograd.function import Function
from ...operators.language.spec import Operator
from .hypothesis_calls import calls_like, check_declared, check_drawn, holds_strategies
from .operator_under_test import declared
from .report import Report
from .run import Check

__all__ = ["check_operator"]


def check_operator(
    operator: Callable[..., Any],
    *positional: Any,
    arguments: Sequence[Any] | None = None,
    options: Mapping[str, Any] | None = None,
    inplace: Callable[..., Any] | None = None,
    reference: Callable[..., Any] | None = None,
    domain: tuple[float, float] | None = None,
    dtype_kinds: str | None = None,
    order: int | None = None,
    only: str | Sequence[str] | None = None,
    switched_off: Mapping[str, str] | None = None,
    max_examples: int | None = None,
    progress: Callable[[str, int, int], None] | None = None,
    **keywords: Any,
) -> Report:
    """Check everything that an operator promises, at the arguments given and at others derived from them.

    Its gradients are held against finite differences: at special points, in other shapes, with other options, with
    complex numbers where it is meant for them. They must not depend on how tensors lie in memory, on what becomes of
    them afterwards, or on other calls. Forward mode, second derivatives and the in-place form are checked where there
    are any. `PROPERTIES` names all that is looked at. An operator may refuse a call by an error; it must not be wrong.

    Arguments:
        operator: an operator of `define_op`, a `Function` or its `apply`, an in-place form, or any function of tensors.
            Its result holds tensors, in tuples, lists and dicts if it likes.
        positional: its arguments. Tensors and arrays are found in lists, tuples and dicts as well; arrays become
            tensors. If a tensor that requires grad is among them, those that do are differentiated, else all of float
            or complex dtype. An argument may be a Hypothesis strategy. A declared operator that is
            given none is checked at its own samples.
        arguments: more positional arguments, as a sequence.
        options: keyword arguments of the operator. If they are given so, all other keywords are those of the check.
        inplace: its in-place form, which writes the result over the first argument; that of an operator of `define_op`
            is known.
        reference: what it computes, for arrays.
        domain: the interval in which it is to be checked.
        dtype_kinds: "fc" to insist on complex numbers, "f" to leave them out. Left out, they are insisted on where an
            argument is complex or the operator's source speaks of complex numbers. Where it does not, and its gradients
            are wrong for them, the report says so.
        order: 1 to leave out second derivatives; 2 where left out.
        only: the properties to look at; all where left out.
        switched_off: properties not to look at, each with the reason, which the report shows.
        max_examples: how many calls Hypothesis draws, from strategies among the arguments, or else like the call given.
            Where left out, it is a tenth of what its profile says, or else none.
        progress: is called with the name of each property, its number and the number of all.
        keywords: keyword arguments of the operator. Where it has an argument of the same name as one of the check
            (`order`, say), that is meant.

    Returns:
        The report, which can be printed.

    Raises:
        Failure: where a property does not hold: the message has both numbers, and a program that fails in the same way.

    Example:
        >>> import numpy as np, viewgrad as vg
        >>> from viewgrad.testing import check_operator
        >>> report = check_operator(lambda x, y: vg.exp(x) * y, np.array([[0.5, -1.0], [2.0, 0.3]]), np.array(1.5))
        >>> "special points" in report.examples
        True
    """
    own = set() if options is not None else _own_parameters(operator)
    chosen: dict[str, Any] = {
        "inplace": inplace, "reference": reference, "domain": domain, "dtype_kinds": dtype_kinds, "order": order,
        "only": only, "switched_off": switched_off, "max_examples": max_examples,
    }  # fmt: skip
    for name in own & chosen.keys():  # what the operator calls so itself
        if chosen[name] is not None:
            keywords[name] = chosen[name]
        chosen[name] = None
    chosen["order"] = 2 if chosen["order"] is None else chosen["order"]
    args = tuple(positional) + tuple(arguments or ())
    max_examples = chosen.pop("max_examples")

    def make(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Check:
        return Check.of(operator, args, kwargs, progress=progress, **chosen)

    kwargs = keywords | dict(options or {})
    row = declared(operator)
    if row is not None and not args and not kwargs:
        return check_declared(make, row)
    if holds_strategies((args, kwargs)):
        return check_drawn(make, args, kwargs, max_examples, _name_of(operator))
    report = make(args, kwargs).run()
    if max_examples and not currently_in_test_context():
        check_drawn(make, *calls_like(args, kwargs), max_examples, _name_of(operator), after=report)
    return report


def _name_of(operator: Any) -> str:
    owner = getattr(operator, "__self__", operator)
    return str(getattr(owner, "__name__", getattr(owner, "name", type(owner).__name__)))


def _own_parameters(operator: Any) -> set[str]:
    function = operator
    if isinstance(operator, Operator):
        return {argument.name for argument in operator.signature.arguments}
    owner = getattr(operator, "__self__", None)
    if isinstance(owner, type) and issubclass(owner, Function):
        function = owner.forward
    try:
        return set(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return set()
