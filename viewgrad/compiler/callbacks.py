"""Callbacks: operators without a kernel, whose forward and gradient are called, also from inside kernels."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Any, Final

import attrs
import numpy as np

from ..autograd.api import grad as eager_grad
from ..errors import NotCompiledError
from ..operators.operands import owned_array
from ..tensor.modes import enable_grad
from ..tensor.tensor import from_array
from ..trace.attributes import typed
from ..trace.evaluate import forward_call
from ..trace.primitives import operator_of
from ..type_aliases import Array
from .callback_vjps import Gradient, gradient_by_formula
from .element_types import INTEGER, kind_of, widened

Shape = tuple[int, ...]
Kind = tuple[Shape, np.dtype[Any]] | None
FAILED: Final = 1
_failures: Final = threading.local()


@attrs.frozen
class Operation:
    """One output of an operator for operands of given shapes and dtypes.

    Arguments:
        name: the operator.
        attributes: its options.
        operands: the shapes and dtypes of its operands; None for omitted ones.
        number: the number of the output.
        shape, dtype: the shape and dtype of the output.
    """

    name: str
    attributes: Any = attrs.field(eq=typed)
    operands: tuple[Kind, ...]
    number: int
    shape: Shape
    dtype: np.dtype[Any]


def forward_of(operation: Operation) -> Callable[..., Any]:
    """Return the function of arrays and numbers that computes an operation."""
    operator = _operator(operation)

    def forward(*given: Any) -> Any:
        arrays = _arrays(operation.operands, given)
        args, keywords = forward_call(operator, arrays, operation.attributes)
        results = operator.forward(*args, **keywords)
        result = results[operation.number] if isinstance(results, tuple) else results
        return _given_back(owned_array(result, arrays, True), operation.shape, operation.dtype)

    return forward


def backward_of(operation: Operation, number: int) -> Callable[..., Any]:
    """Return the function that computes the gradient of operand `number` from the output's gradient and the operands.
    """
    operator = _operator(operation)
    kind = operation.operands[number]
    assert kind is not None
    shape, dtype = kind
    gradient = gradient_by_formula(operator, operation.attributes, operation.operands, number)
    if gradient is not None:
        return _by_formula(operation, number, gradient)

    def backward(grad: Any, *given: Any) -> Any:
        arrays = _arrays(operation.operands, given)
        tensors = [None if array is None else from_array(array) for array in arrays]
        leaf = tensors[number]
        assert leaf is not None
        leaf.requires_grad = True
        with enable_grad():
            args, keywords = forward_call(operator, tensors, operation.attributes)
            results = operator.function(*args, **keywords)
            result = results[operation.number] if isinstance(results, tuple) else results
        made = None
        if result.requires_grad:
            seed = from_array(np.array(grad, operation.dtype).reshape(operation.shape))
            (made,) = eager_grad(result, [leaf], seed, allow_unused=True)
        return _given_back(np.zeros(shape, dtype) if made is None else made._array, shape, dtype)

    return backward


def _by_formula(operation: Operation, number: int, gradient: Gradient) -> Callable[..., Any]:
    """Return the gradient of operand `number` as `backward_of` does, using a formula."""
    operator = _operator(operation)
    shape, dtype = operation.operands[number]  # type: ignore[misc]

    def backward(grad: Any, *given: Any) -> Any:
        arrays = _arrays(operation.operands, given)

        def result() -> Any:
            args, keywords = forward_call(operator, arrays, operation.attributes)
            return np.asarray(operator.forward(*args, **keywords))

        seed = np.array(grad, operation.dtype).reshape(operation.shape)
        return _given_back(gradient(seed, arrays, result), shape, dtype)

    return backward


def native_caller(function: Callable[..., Any], kinds: list[Any], size: int, dtype: np.dtype[Any]) -> Any:
    """Return a function of numbers and buffer addresses that compiled code can call.

    Its arguments are the operands and the buffer for the result. It returns 1 if an exception was raised, which
    `raise_failure` raises again. It holds the interpreter's lock while it runs.

    Arguments:
        function: a function of arrays and numbers.
        kinds: the shapes and dtypes of its operands; () for numbers.
        size, dtype: the size and dtype of its result.
    """

    def call(*given: Any) -> int:
        try:
            operands = [_at(each, shape, of) if shape else each for each, (shape, of) in zip(given, kinds)]
            _at(given[-1], (size,), dtype)[:] = np.reshape(function(*operands), -1)
        except BaseException as error:
            _failures.last = error
            return FAILED
        return 0

    types = [ctypes.c_int64 if shape or of == INTEGER else ctypes.c_double for shape, of in kinds]
    return ctypes.CFUNCTYPE(ctypes.c_int64, *types, ctypes.c_int64)(call)


def raise_failure() -> None:
    """Raise the exception of a function called by compiled code."""
    error = _failures.last
    _failures.last = None
    raise error


def _at(address: int, shape: Shape, dtype: np.dtype[Any]) -> Array:
    """Return the elements at an address."""
    memory = (ctypes.c_byte * (int(np.prod(shape)) * dtype.itemsize)).from_address(address)
    found: Array = np.ctypeslib.as_array(memory).view(dtype).reshape(shape)
    return found


def _operator(operation: Operation) -> Any:
    operator = operator_of(operation.name)
    if operator is None:
        raise NotCompiledError(f"there is no kernel for {operation.name}")
    return operator


def _arrays(kinds: tuple[Kind, ...], given: tuple[Any, ...]) -> list[Any]:
    """Return copies of the operands of an operation as arrays; None for omitted ones."""
    numbers = iter(given)
    return [None if kind is None else np.array(next(numbers), kind[1]).reshape(kind[0]) for kind in kinds]


def _given_back(array: Any, shape: Shape, dtype: np.dtype[Any]) -> Any:
    if shape:
        return np.ascontiguousarray(array, widened(dtype))
    return kind_of(dtype).number(np.asarray(array).item())
