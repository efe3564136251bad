"""The gradients of callbacks, computed by the formulas of the operators on arrays, without a tape or a second forward.

The formulas are those of eager mode, on the same arrays. Properties of the result are recomputed.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from ..operators.language.namespace import ARRAY_FUNCTIONS
from ..operators.language.parsing import product_of
from ..trace.attributes import unfrozen
from ..views.unbroadcast import match_spec

Gradient = Callable[[Any, Sequence[Any], Callable[[], Any]], Any]
FLOATS: Final = "f"


def gradient_by_formula(operator: Any, attributes: Any, kinds: Sequence[Any], number: int) -> Gradient | None:
    """Return the vjp as a function of the gradient, the operands and a getter for the result; None without a formula.

    Arguments:
        operator: the operator, which has one result.
        attributes: its options.
        kinds: the shapes and dtypes of its operands; None for omitted ones.
        number: the number of the operand whose gradient is computed.
    """
    tensors = operator.signature.tensors
    if len(operator.signature.outputs) > 1 or any(argument.kind == "tensors" for argument in tensors):
        return None
    if any(kind is not None and kind[1].kind not in "fbi" for kind in kinds) or kinds[number][1].kind != FLOATS:
        return None
    name = tensors[number].name
    formula = next((each for each in operator.formulas if name in each.inputs), None)
    if formula is None or len(formula.inputs) > 1 or not formula.is_implemented:
        return None
    product = product_of(formula.tree)
    # if so, the product is 0 where the output gradient is 0; see Note [Infinite slopes]
    flows = product is not formula.tree
    code = compile(ast.fix_missing_locations(ast.Expression(product)), f"<the gradient of {operator.name}>", "eval")
    space = {called: getattr(ARRAY_FUNCTIONS, called) for called in code.co_names if hasattr(ARRAY_FUNCTIONS, called)}
    options = zip([argument.name for argument in operator.signature.plain], attributes or (), strict=True)
    space |= {option: unfrozen(value) for option, value in options}
    positions = {argument.name: position for position, argument in enumerate(tensors)}
    for local, argument, attribute in formula.metadata:
        kind = kinds[positions[argument]] if argument in positions else None
        if kind is None or attribute not in ("shape", "ndim", "dtype"):
            return None
        space[local] = {"shape": kind[0], "ndim": len(kind[0]), "dtype": kind[1]}[attribute]

    def gradient(grad: Any, arrays: Sequence[Any], result: Callable[[], Any]) -> Any:
        given = space | {read: arrays[positions[read]] for read in formula.reads}
        given |= {read: result() for read in formula.results}
        with np.errstate(all="ignore"):
            found = eval(code, given, {"grad": grad})
            found = np.zeros(*kinds[number]) if found is None else np.asarray(found)
            return match_spec(ARRAY_FUNCTIONS.flowing(found, grad) if flows else found, kinds[number])

    return gradient
