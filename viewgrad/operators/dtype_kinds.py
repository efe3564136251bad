"""The dtype kinds that an operator accepts, and the conversion or rejection of others.

A row states in `dtype_kinds` whether its formulas are valid for complex numbers. For a user's operator without
`dtype_kinds`, the formula is tested on the first complex argument: see Note [Kinds] in docs/notes/declarations.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from ..errors import DeclarationError, UnsupportedDtypeError
from ..tensor.async_safety import in_own_context
from ..tensor.creation import as_operand
from ..tensor.modes import enable_grad, no_grad
from ..tensor.node import node_of
from ..tensor.tensor import Tensor
from ..type_aliases import Array
from .language.spec import Formula, Operator

POINTS: Final = 4
STEP: Final = 1e-6
WRONG: Final = 1e-3  # relative to the size of the compared values; the error of a correct formula is much smaller


def refuse_kinds(operator: Operator, *arrays: Any) -> None:
    """Raise for complex arguments of an operator for real numbers.

    Raises:
        UnsupportedDtypeError: if an argument that must be real is complex.
    """
    for argument, value in zip(operator.signature.tensors, arrays):
        for array in value if isinstance(value, list) else (value,):
            if array is not None and array.dtype.kind == "c" and not operator.accepts_complex(argument.name):
                if argument.name in operator.differentiable:
                    raise UnsupportedDtypeError(
                        f"operator {operator.name!r} does not support {array.dtype} for {argument.name!r}: it is for "
                        "real numbers (float16, float32, float64, longdouble, integers), and has no derivative for "
                        "complex ones; call it on .real and .imag, or on abs()"
                    )


@in_own_context
def confirm_kinds(operator: Operator, *arguments: Any) -> None:
    """Determine at the given arguments whether a user's operator without `dtype_kinds` is valid for complex numbers.

    Arguments:
        operator: an operator with undecided `dtype_kinds`, which are decided afterwards.
        arguments: the arguments of a call, in the order of the signature, with tensors in place of arrays.

    Raises:
        UnsupportedDtypeError: if the gradient of the formula differs from finite differences.
    """
    operator.dtype_kinds = "fc"
    named = dict(zip((argument.name for argument in operator.signature.arguments), arguments, strict=True))
    wrong = is_wrong(operator, {name: _arrays(value) for name, value in named.items()})
    if wrong is not None:
        operator.dtype_kinds = "f"
        raise UnsupportedDtypeError(_message(operator, wrong, True))


def check_samples(operator: Operator, samples: Sequence[Mapping[str, Any]]) -> None:
    """Raise for a declaration whose formula is wrong on samples of the kinds that it claims to support.

    Arguments:
        operator: the declaration.
        samples: the arguments of some calls, by name.

    Raises:
        DeclarationError: if the gradient of a formula differs from finite differences.
    """
    for sample in samples:
        wrong = is_wrong(operator, sample)
        if wrong is not None:
            is_complex = any(np.iscomplexobj(array) for value in sample.values() for array in as_list(value))
            raise DeclarationError(_message(operator, wrong, is_complex), operator.name, wrong.text)


def _message(operator: Operator, formula: Formula, is_complex: bool) -> str:
    text = f"the formula {formula.text!r} for {', '.join(formula.inputs)}"
    message = f"operator {operator.name!r}: {text} gives a different gradient from finite differences"
    if not is_complex:
        return message
    return (
        f"{message} for complex numbers; the gradient is grad times the conjugate of the derivative, so a factor may "
        "have to be conjugated, as in 'grad * conj(result)'; for an operator of real numbers, pass dtype_kinds='f'"
    )


def is_wrong(operator: Operator, arguments: Mapping[str, Any]) -> Formula | None:
    """Return whether a formula disagrees with finite differences near these arguments, as far as can be determined.

    Arguments:
        operator: the operator.
        arguments: by name, with arrays for tensors. Points at which values are not finite, or that raise, are ignored.

    Returns:
        The formula that is wrong at most of the usable points, or None.
    """
    rng = np.random.default_rng(len(operator.name))
    inputs = [name for name in operator.differentiable if _is_inexact(arguments.get(name))]
    for name in inputs:
        verdicts = [_verdict(operator, _moved(arguments, inputs, rng), name, rng) for _ in range(POINTS)]
        known = [verdict for verdict in verdicts if verdict is not None]
        if known and sum(known) * 2 > len(known):
            return next(formula for formula in operator.formulas if name in formula.inputs)
    return None


def _verdict(operator: Operator, arguments: dict[str, Any], name: str, rng: np.random.Generator) -> bool | None:
    """Return whether the gradient of one argument is wrong at a point, or None if that cannot be decided."""
    direction = _mapped(lambda array: _drawn(rng, array), arguments[name])
    with np.errstate(all="ignore"):
        try:
            above, below = (
                _outputs(operator, arguments | {name: _sum(arguments[name], direction, step)}) for step in (STEP, -STEP)
            )
            leaves = {**arguments, name: _mapped(lambda array: Tensor(array, requires_grad=True), arguments[name])}
            with enable_grad():
                results = operator.plain_functions[0](**leaves)
            results = results if isinstance(results, tuple) else (results,)
            node = next((node_of(result._edge) for result in results if result._edge is not None), None)
            if node is None:
                return None
            weights = [
                _drawn(rng, output) if result._edge is not None else None
                for output, result in zip(above, results, strict=True)
            ]
            if any(weight is not None and weight.dtype.kind not in "fc" for weight in weights):
                return None
            grads = node.apply(weights if node.outputs > 1 else weights[_first(results)], node.edges)
        except Exception:  # an error here recurs for the user if it is relevant
            return None
        place = [argument.name for argument in operator.signature.tensors].index(name)
        found = grads if isinstance(arguments[name], list) else (grads[place] if isinstance(grads, tuple) else grads)
        expected = sum(
            _inner(weight, (high - low) / (2 * STEP))
            for weight, high, low in zip(weights, above, below, strict=True)
            if weight is not None
        )
        pairs = zip(found, direction) if isinstance(found, (list, tuple)) else [(found, direction)]
        actual = sum(0.0 if grad is None else _inner(grad, along) for grad, along in pairs)
        size = sum(
            _size(weight, (high - low) / (2 * STEP))
            for weight, high, low in zip(weights, above, below, strict=True)
            if weight is not None
        )
    if not np.isfinite(actual) or not np.isfinite(expected):
        return None
    return bool(abs(actual - expected) > WRONG * max(size, abs(actual), 1e-6))


def _first(results: Sequence[Any]) -> int:
    return next(i for i, result in enumerate(results) if result._edge is not None)


def _outputs(operator: Operator, arguments: Mapping[str, Any]) -> list[Array]:
    tensors = {argument.name for argument in operator.signature.tensors}
    given = {
        name: value if value is None or name not in tensors else _mapped(as_operand, value)
        for name, value in arguments.items()
    }
    with no_grad():
        results = operator.plain_functions[0](**given)
    return [result._array for result in (results if isinstance(results, tuple) else (results,))]


def _moved(arguments: Mapping[str, Any], inputs: Sequence[str], rng: np.random.Generator) -> dict[str, Any]:
    """Return the arguments with the differentiated ones perturbed, in double precision."""

    def moved(array: Array) -> Array:
        array = array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
        return np.asarray(array + 0.1 * _drawn(rng, array) * (1 + np.abs(array)))

    return {name: _mapped(moved, value) if name in inputs else value for name, value in arguments.items()}


def _drawn(rng: np.random.Generator, array: Array) -> Array:
    drawn: Any = rng.standard_normal(array.shape)
    if array.dtype.kind == "c":
        drawn = drawn + 1j * rng.standard_normal(array.shape)
    return np.asarray(drawn, array.dtype)


def _inner(first: Any, second: Any) -> float:
    return float(np.real(np.conj(np.asarray(first)) * second).sum())


def _size(first: Any, second: Any) -> float:
    return float(np.abs(np.asarray(first) * second).sum())


def _sum(value: Any, direction: Any, step: float) -> Any:
    if isinstance(value, list):
        return [np.asarray(a + step * b) for a, b in zip(value, direction, strict=True)]
    return np.asarray(value + step * direction)


def _mapped(function: Any, value: Any) -> Any:
    return [function(item) for item in value] if isinstance(value, list) else function(value)


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _is_inexact(value: Any) -> bool:
    arrays = as_list(value)
    return bool(arrays) and all(isinstance(array, np.ndarray) and array.dtype.kind in "fc" for array in arrays)


def _arrays(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value._array
    return [item._array for item in value] if isinstance(value, list) and value and type(value[0]) is Tensor else value
