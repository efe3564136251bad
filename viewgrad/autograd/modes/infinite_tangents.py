"""Products of derivatives that are 0 and tangents that are infinite or NaN.

In `1 / (1 + exp(3000 * x))` the exponential overflows, and so does its tangent. The derivative of the reciprocal of
infinity is 0. In a backward pass, the gradient is 0 from there on; see Note [Infinite slopes] in
docs/notes/declarations.md. In forward mode, the tangent is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import numpy as np
from numpy import count_nonzero, isnan

from ...operators.operands import GOLDEN
from ...operators.python_operators import where
from ...tensor.creation import as_operand
from ...tensor.modes import no_grad
from ...tensor.tensor import Tensor, from_array
from ...tensor.trace_hooks import array_of, guards_values
from ...type_aliases import Array


def guarded_tangent(tangent: Tensor | None) -> Tensor | None:
    """Return a tangent; a trace is guarded against runs in which it is NaN, to which other formulas may apply."""
    if tangent is not None and guards_values():
        bool(isnan(tangent).any())
    return tangent


def is_finite(tangent: Tensor) -> bool:
    """Return whether all elements of a tangent are finite."""
    array = tangent._array
    return bool(count_nonzero(np.isfinite(array)) == array.size)


def flowing_tangents(
    function: Callable[[Mapping[str, Any]], tuple[Any, ...]], arguments: Mapping[str, Any]
) -> tuple[Any, ...]:
    """Evaluate a forward-mode formula; an infinite or NaN tangent has no influence if the derivative is 0.

    Arguments:
        function: the formula, which is linear in its tangents.
        arguments: the arguments of the formula by name; the names of tangents end in `_t`.

    Returns:
        The tangents of the outputs. An element that is NaN is computed without the infinite tangents of inputs if it
        does not change when these are replaced by finite numbers.
    """
    tangents = function(arguments)  # a trace has the plain formula; see `guarded_tangent`
    for each in tangents:
        if isinstance(each, Tensor) and count_nonzero(isnan(each._array)):
            break
    else:
        return tangents
    inputs = {name: value for name, value in arguments.items() if name.endswith("_t")}
    sources = [name for name, value in inputs.items() if not all(map(is_finite, _tensors(value)))]
    if not sources:
        return tangents
    others = {name: _mapped(value, Tensor.detach) for name, value in arguments.items() if name not in inputs}
    with no_grad(), np.errstate(all="ignore"):
        influences = [
            function({**others, **{name: _mapped(value, _sample if name == source else _zero)
                                   for name, value in inputs.items()}})
            for source in sources
        ]
    with np.errstate(all="ignore"):  # warned about before
        without = function({**arguments, **{name: _mapped(inputs[name], _finite_part) for name in sources}})
    return tuple([
        each if not isinstance(each, Tensor) else _chosen(each, as_operand(part), influence)
        for each, part, *influence in zip(tangents, without, *influences, strict=True)
    ])


def _chosen(tangent: Tensor, part: Tensor, influences: list[Any]) -> Tensor:
    """Return the finite part of a tangent where it is NaN and the other part has no influence."""
    still = reduce(np.logical_and, [np.equal(as_operand(each)._array, 0) for each in influences])
    chosen = isnan(array_of(tangent, "a tangent")) & still
    return where(chosen, part, tangent) if chosen.any() else tangent  # a mask for backward passes as well


def _tensors(value: Any) -> list[Tensor]:
    return [each for each in (value if type(value) is list else [value]) if isinstance(each, Tensor)]


def _mapped(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    if type(value) is list:
        return [_mapped(each, change) for each in value]
    return change(value) if isinstance(value, Tensor) else value


def _sample(tangent: Tensor) -> Tensor:
    """Return distinct finite numbers where a tangent is infinite or NaN, and 0 elsewhere."""
    array = tangent._array
    numbers = 1 + np.arange(array.size).reshape(array.shape) * GOLDEN % 1
    return from_array(np.where(np.isfinite(array), 0, numbers).astype(array.dtype))


def _zero(tangent: Tensor) -> Tensor:
    return from_array(np.zeros_like(tangent._array))


def _finite_part(tangent: Tensor) -> Tensor:
    """Return a tangent with 0 where it is infinite or NaN."""
    array: Array = tangent._array
    return where(np.isfinite(array), tangent, array.dtype.type(0))  # type: ignore[no-any-return]
