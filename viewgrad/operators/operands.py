"""The operands that operators accept as tensors: numbers, NumPy scalars, arrays and nested sequences."""

from __future__ import annotations

import copy
from collections import UserList, deque
from collections.abc import Callable, Sequence
from numbers import Number
from typing import Any, Final

import numpy as np

from ..errors import DifferentiabilityError, GradientMismatchError, UnsupportedTypeError
from ..tensor.creation import COMMON, as_operand, from_number, without_operators
from ..tensor.escapes import has_tangent
from ..tensor.modes import no_grad
from ..tensor.node import new
from ..tensor.saved import SavedConstant
from ..tensor.tensor import Tensor, current_edge, from_array, is_scalar, root_of
from ..tensor.trace_hooks import array_of, observed
from ..type_aliases import Array
from ..views.geometry import TensorGeometry
from ..views.unbroadcast import Like, match_spec
from .language.namespace import TENSOR_FUNCTIONS

GOLDEN: Final = 0.6180339887498949  # multiples of it are distinct modulo 1

CACHE_LIMIT: Final = 4096
# Options of these types may change between the forward and the backward pass, so nodes store copies.
MUTABLE: Final = frozenset({Tensor, dict, list, np.ndarray, set, tuple})

# Types that may be tensors or contain one.
HOLDERS: Final = frozenset({Tensor, dict, list, tuple})

# Types of operands that are combined with a float64 scalar as numbers.
NUMBERS: Final = frozenset({float, int, np.float64})
FLOAT64: Final = np.dtype(np.float64)
float64: Final = np.float64

# Tensors of Python numbers, by dtype and value; converting a number costs more than multiplying by it.
_float64_constants: Final[dict[float, Tensor]] = {}
_constants: Final[dict[np.dtype[Any], dict[float, Tensor]]] = {FLOAT64: _float64_constants}


# Operands that are converted to tensors, whatever methods their classes define.
WITHOUT_OPERATORS: Final = COMMON | {list, tuple}
NUMBERS_AND_ARRAYS: Final = (Tensor, np.ndarray, np.generic, Number)
# Classes whose methods for operators join and repeat sequences, or do nothing.
SEQUENCES: Final = (object, list, tuple, deque, UserList)
REPEATED: Final = (list, tuple, deque)  # by a product with an integer


def number_beside_scalar(value: Any) -> Any:
    """Return a Python number or a 0-d array as a float64, or None for anything else."""
    if type(value) is np.ndarray:
        return value[()] if not value.ndim and value.dtype is FLOAT64 else None
    return np.float64(value) if type(value) in NUMBERS else None


def defers(tensor: Tensor, other: Any, method: str) -> bool:
    """Return whether the class of `other` computes the result of an operator of Python.

    For a number its method is called, as for a Python float; for an array, as in NumPy, if the class has a higher
    `__array_priority__` or no ufuncs.

    Arguments:
        tensor: one operand.
        other: the other operand.
        method: the name of the method of the class of `other`, such as `"__radd__"`.
    """
    kind = type(other)
    if kind in WITHOUT_OPERATORS or isinstance(other, NUMBERS_AND_ARRAYS):
        return False
    own = getattr(kind, method, None)
    if own is None or any(own is getattr(sequence, method, None) for sequence in SEQUENCES):
        return False
    if hasattr(kind, "__array_ufunc__"):
        return kind.__array_ufunc__ is None
    return not tensor._array.ndim or getattr(other, "__array_priority__", 0.0) > 0


def operand_pair_unless(method: str | None, writes: bool = False) -> Callable[[Any, Any], Sequence[Any]]:
    """Return the function that converts two operands of an elementwise operator to tensors.

    Arguments:
        method: the name of the method by which the class of the other operand may compute the result itself, in which
            case the function raises `UnsupportedTypeError`; None for functions, which convert all operands.
        writes: whether the operator is an augmented assignment, such as `x += y`, which writes to `x` although the
            class of `y` defines operators.
    """

    def operand_pair(first: Any, second: Any) -> Sequence[Any]:
        # A tensor and a number, as in `x * 2.0`: a common case, for which this saves 1 to 3 us.
        if type(first) is Tensor:
            if type(second) is float or type(second) is int:
                return first, constant(second, first._array.dtype)
            if type(second) is float64:
                return first, constant(second, FLOAT64)
        elif type(second) is Tensor:
            if type(first) is float or type(first) is int:
                return constant(first, second._array.dtype), second
            if type(first) is float64:
                return constant(first, FLOAT64), second
        if method is not None:
            tensor, other = (first, second) if isinstance(first, Tensor) else (second, first)
            if method == "__rmul__" and isinstance(other, REPEATED) and _is_integer(tensor):
                raise UnsupportedTypeError(
                    "a list times an integer repeats the list; to multiply its items, convert it to an array"
                )
            if defers(tensor, other, method):
                raise UnsupportedTypeError(f"the class {type(other).__name__} defines {method} for this operator")
        if writes and type(second) is not Tensor:
            second = without_operators(second)
            if hasattr(type(second), "__array__") and not hasattr(type(second), "__array_ufunc__"):
                second = as_operand(second)  # whatever its `__array_priority__`
        return operands(first, second)

    return operand_pair


def _is_integer(tensor: Tensor) -> bool:
    return is_scalar(tensor) and tensor.dtype.kind in "iu"


operand_pair: Final = operand_pair_unless(None)


def operands(*values: Any) -> Sequence[Any]:
    """Return the operands of an elementwise operator as tensors.

    Python numbers adopt the dtype of the others (NEP 50).
    """
    dtypes = [
        value._array.dtype if isinstance(value, Tensor) else value.dtype
        for value in values
        if isinstance(value, (Tensor, np.ndarray, np.generic))
    ]
    if not dtypes:
        return [as_operand(value, True) for value in values]
    try:
        dtype = dtypes[0] if len(dtypes) == 1 else np.result_type(*dtypes)
    except np.exceptions.DTypePromotionError as error:  # for example, of a date and a number
        raise UnsupportedTypeError(str(error)) from None
    return [
        constant(value, dtype) if type(value) in (float, int, complex) else as_operand(value, True) for value in values
    ]


def foreign_operand(first: Any, second: Any) -> Any:
    """Call a function if an operand cannot become a tensor, or raise the error of the conversion."""
    raise


def is_constant(tensor: Tensor) -> bool:
    """Return whether a tensor is the cached one of a Python number."""
    storage = tensor._storage  # None until a view of the tensor is taken
    return type(tensor._saved if storage is None else storage.whole) is SavedConstant


def optional_operands(*values: Any) -> Sequence[Any]:
    """Return the operands as tensors of one kind; optional operands may be None."""
    given = iter(operands(*(value for value in values if value is not None)))
    return [None if value is None else next(given) for value in values]


def clip_operands(value: Any, low: Any, high: Any) -> Sequence[Any]:
    """Return a value and its bounds as tensors, omitting integer bounds that the dtype of the value cannot exceed."""
    try:
        return optional_operands(value, low, high)
    except OverflowError:
        dtype = as_operand(value).dtype
        if dtype.kind not in "iu":
            raise
        limits = np.iinfo(dtype)
        low = None if type(low) is int and low <= limits.min else low
        high = None if type(high) is int and high >= limits.max else high
        return optional_operands(value, low, high)


def wide_operands(ufunc: str, *values: Any) -> Sequence[Any]:
    """Convert operands if an integer is not representable in the dtype of the other one.

    Comparisons use the integer unconverted, and functions such as `hypot` use it in the dtype of their result.

    Raises:
        OverflowError: for a ufunc that computes with integers.
    """
    given = tuple(int if type(value) is int else as_operand(value).dtype for value in values)
    *dtypes, result = getattr(np, ufunc).resolve_dtypes((*given, None))
    found = []
    for value, dtype in zip(values, dtypes):
        number = type(value) is int
        if number and result.kind == "b":
            value = value if -(2**63) <= value < 2**64 else np.copysign(np.inf, value)  # infinity compares the same
        found.append(as_operand(np.array(value, dtype) if number and result.kind != "b" else value))
    return found


def constant(value: Any, dtype: np.dtype[Any]) -> Tensor:
    """Return a number as a 0-d tensor, in the dtype that a Python number has as an operand together with `dtype`."""
    constants = _float64_constants if dtype is FLOAT64 else _constants.get(dtype)
    if constants is None:
        constants = _constants[dtype] = {}
    if type(value) is not complex:
        found = constants.get(value)
        if found is not None:
            return found
    kind = dtype.kind
    if type(value) is complex:
        if kind == "c":
            array = np.array(value, dtype)
        else:
            array = np.array(value, np.result_type(dtype, np.complex64) if kind == "f" else np.complex128)
    elif kind in "fc" or (type(value) is int and kind in "iu"):
        array = np.array(value, dtype)
    else:
        array = np.array(value)
    tensor = from_number(array)
    tensor._saved = saved = new(SavedConstant)
    saved.array = array
    # Excludes 0.0 and -0.0, which are equal as keys, and NaN, which never equals a key.
    if kind in "fc" and type(value) is not complex and value and value == value:
        if len(constants) >= CACHE_LIMIT:
            constants.clear()
        constants[value] = tensor
    return tensor


def owned_array(result: Any, inputs: tuple[Any, ...] | list[Any], returns_0d_arrays: bool = False) -> Array:
    """Return the result of a forward as an array that shares no memory with its inputs, or as a scalar if 0-d."""
    if isinstance(result, Tensor):
        raise TypeError("the forward of an operator returned a Tensor for arrays; it must compute with arrays")
    array: Array = np.asarray(result)
    if not array.ndim:
        return array.copy() if returns_0d_arrays else array[()]
    if not array.flags.writeable:
        return array.copy()
    if array.base is not None or array is not result:
        for given in inputs:
            for other in given if isinstance(given, list) else (given,):
                if other is not None and np.may_share_memory(array, other):
                    return array.copy()
        return array
    if any(array is given for given in inputs):
        array = array.copy()
    return array


def forward_array(tensor: Tensor) -> Array:
    """Return the array of a tensor, also of a scalar, for the forward of an operator."""
    array = tensor._array
    return array if type(array) is np.ndarray else np.asarray(array)


def writes_reals(target: Array, result: Any) -> bool:
    """Return whether the result of a forward is real and the `target` to overwrite is complex.

    Raises:
        ValueError: if the result has a different shape.
    """
    if np.shape(result) != target.shape:
        raise ValueError(
            f"a result of shape {np.shape(result)} cannot be written to a tensor of shape {target.shape}"
        )
    return target.dtype.kind == "c" and np.asarray(result).dtype.kind != "c"


def geometry_of(tensor: Tensor) -> TensorGeometry:
    """Return the sizes, strides and offset of a tensor in its base."""
    return TensorGeometry.of(tensor._array, root_of(tensor)._array)


def frozen_copy(option: Any) -> Any:
    """Return a copy of an operator's option that is not affected by later changes."""
    if type(option) is tuple:
        for item in option:
            if type(item) in MUTABLE:
                return tuple(frozen_copy(item) for item in option)
        return option
    if type(option) is Tensor:
        option = array_of(option, "an option of an operator")
    if type(option) is np.ndarray:
        return option.copy() if option.ndim or option.dtype.kind not in "iu" else int(option)
    return copy.deepcopy(option) if type(option) in MUTABLE else option


def plain_option(operator: str, argument: str, value: Tensor) -> Any:
    """Return the number or array of a tensor that was passed as a plain option."""
    if current_edge(value) is not None:
        raise DifferentiabilityError(
            f"no gradient flows to argument {argument!r} of operator {operator!r}, which is not a tensor in its "
            "declaration: pass a number, an array or the tensor's detach()"
        )
    if has_tangent(value):
        return value  # rejected in forward mode
    array = array_of(value, f"argument {argument!r} of operator {operator!r}")
    return array if array.ndim else array.item()


def refuse_tensors(operator: str, argument: str, value: Any) -> None:
    """Raise for tensors in a plain argument `value`, since no gradient would flow to them."""
    if type(value) is dict:
        value = tuple(value.values())
    if type(value) in (list, tuple):
        for item in value:
            if type(item) in HOLDERS:
                refuse_tensors(operator, argument, item)
    elif isinstance(value, Tensor):
        raise TypeError(
            f"argument {argument!r} of operator {operator!r} is not a tensor in its declaration; give it a formula, or "
            "'not_differentiable', or pass a number or an array"
        )


def flowing_elements(formula: Callable[..., Any], grad: Tensor, *tensors: Tensor) -> Tensor:
    """Evaluate a formula of an elementwise operator where the incoming gradient is nonzero, and return 0 elsewhere.

    Where the gradient is zero and the formula yields NaN, it is not evaluated at all, since its own derivatives might
    be infinite there. See Note [Infinite slopes] in docs/notes/declarations.md.
    """
    if observed() is not None:  # a trace must be valid for other values too
        return TENSOR_FUNCTIONS._where_flowing(formula(grad, *tensors), grad)  # type: ignore[no-any-return]
    with no_grad():
        product = formula(grad, *tensors)._array
    flows = ~(np.isnan(product) & (grad._array == 0))
    if flows.all():
        return formula(grad, *tensors)  # type: ignore[no-any-return]
    array_of(grad, "the formula of a gradient")
    if not flows.any():
        return from_array(np.zeros(product.shape, product.dtype))
    chosen = [tensor.broadcast_to(flows.shape)[flows] for tensor in (grad, *tensors)]
    return TENSOR_FUNCTIONS._scatter_into_zeros(formula(*chosen), np.nonzero(flows), flows.shape)  # type: ignore[no-any-return]


def without_lost_values(formula: Callable[..., Any], *values: Any) -> Any:
    """Evaluate a formula of an operator that is not elementwise, after a mask has set gradients to zero.

    The gradient of an element that a value influences only through gradients of zero is 0, even if the value is
    infinite or NaN. It has no influence otherwise if the result is the same with two different numbers in its place.

    Arguments:
        formula: the formula, as a function of the values that it reads.
        values: the values; None for those that are not given.
    """
    found = formula(*values)
    results = found if type(found) is tuple else (found,)
    lost = [None if value is None else ~np.isfinite(_elements(value)) for value in values]
    if observed() is not None or not any(each is not None and each.any() for each in lost):
        return found
    if not any(each is not None and np.isnan(_elements(each)).any() for each in results):
        return found
    one, other = [formula(*[_filled(value, each, start) for value, each in zip(values, lost)]) for start in (0.5, 2.5)]
    kept = [
        each if each is None else np.where(_elements(first) == _elements(second), first, each)
        for each, first, second in zip(results, *[pair if type(pair) is tuple else (pair,) for pair in (one, other)])
    ]
    return tuple(kept) if type(found) is tuple else kept[0]


def _elements(value: Any) -> Array:
    return value._array if isinstance(value, Tensor) else np.asarray(value)


def _filled(value: Any, lost: Array | None, start: float) -> Any:
    """Return a value with distinct numbers in some places."""
    if lost is None or not lost.any():
        return value
    numbers = start + np.arange(lost.size).reshape(lost.shape) * GOLDEN % 1
    return np.where(lost, numbers.astype(_elements(value).dtype), value)


def checked_gradient(grad: Any, like: Like | None, operator: str, argument: str) -> Any:
    """Return the result of a user's formula in the shape and dtype of its input.

    Raises:
        GradientMismatchError: if the input cannot be broadcast to the shape of the result.
    """
    if grad is None or like is None:
        return grad
    if not isinstance(grad, (np.ndarray, Tensor)):
        grad = np.asarray(grad)
    shape = grad.shape
    if shape != like[0]:
        leading = len(shape) - len(like[0])
        if leading < 0 or any(n not in (1, m) for n, m in zip(like[0], shape[leading:], strict=True)):
            raise GradientMismatchError(
                f"the formula of operator {operator!r} for {argument!r} returned a gradient of shape {shape} for an "
                f"input of shape {like[0]}"
            )
    return match_spec(grad, like)
