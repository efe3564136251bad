"""The derivatives of products of matrices and tensors.

`einsum` consists of two operators: one for a single operand, and one for a pair. More operands are contracted pair by
pair, in the order determined by `numpy.einsum_path`.
"""

from __future__ import annotations

import math
import string
from typing import Any, Final

import numpy as np

from ....tensor.creation import as_operand
from ....tensor.shapes import with_leading_ones
from ....tensor.tensor import FUNCTIONS, UFUNCS, Tensor, as_buffered, as_scalar
from ....type_aliases import Array
from ...composites import composite
from ...define import row
from ...language.namespace import formula_function
from ...numpy_api.dispatch import converted, write_out
from ..helpers import conjugated, plain, real_dtype
from .contractions import parsed_subscripts

LARGE: Final = 10_000  # the number of terms from which searching for a matrix product pays off

row(
    "matmul(self, other)", np.matmul,
    {"self": "matmul_left(grad, other, self.ndim)", "other": "matmul_right(grad, self, other.ndim)"},
    forward_derivative="matmul(self_t, other_p) + matmul(self_p, other_t)", dtype_kinds="fc", numpy=[np.matmul],
    doc="The matrix product over the last two dimensions.",
)
dot = row(
    "dot(self, other)", np.dot,
    {"self": "dot_left(grad, other, self.ndim)", "other": "dot_right(grad, self, other.ndim)"},
    forward_derivative="dot(self_t, other_p) + dot(self_p, other_t)", dtype_kinds="fc", numpy=[np.dot],
    doc="The dot product: the sum over the last dimension of the first and the second-to-last of the second.",
).function
row(
    "outer(self, other)", np.outer,
    {
        "self": "(grad @ conj(other).reshape(-1)).reshape(self.shape)",
        "other": "(conj(self).reshape(-1) @ grad).reshape(other.shape)",
    },
    forward_derivative="outer(self_t, other_p) + outer(self_p, other_t)", dtype_kinds="fc", numpy=[np.outer],
    zero_in_masked_runs=True,
    doc="The outer product of two vectors.",
)
tensordot = row(
    "tensordot(self, other, axes=2)", lambda self, other, axes=2: np.tensordot(self, other, axes),
    {"self": "tensordot_left(grad, other, self.ndim, axes)", "other": "tensordot_right(grad, self, other.ndim, axes)"},
    forward_derivative="tensordot(self_t, other_p, axes) + tensordot(self_p, other_t, axes)",
    dtype_kinds="fc", numpy=[np.tensordot], returns_0d_arrays=True,
    doc="The tensor dot product over `axes`: a number of trailing and leading dimensions, or two lists.",
).function
einsum_single = row(
    "_einsum_single(self, subscripts)", lambda self, subscripts: np.einsum(subscripts, self),
    {"self": "einsum_gradient(grad, None, subscripts, 0, self.shape)"},
    forward_derivative="auto_linear", method=False, dtype_kinds="fc",
    doc="One tensor with dimensions summed, transposed or reduced to a diagonal, by the subscripts of `einsum`.",
).function
einsum_pair = row(
    "_einsum_pair(self, other, subscripts)", lambda self, other, subscripts: contracted(subscripts, self, other),
    {
        "self": "einsum_gradient(grad, other, subscripts, 0, self.shape)",
        "other": "einsum_gradient(grad, self, subscripts, 1, other.shape)",
    },
    forward_derivative="_einsum_pair(self_t, other_p, subscripts) + _einsum_pair(self_p, other_t, subscripts)",
    method=False, dtype_kinds="fc",
    doc="The sum of products of two tensors, by the subscripts of `einsum`.",
).function


def contracted(subscripts: str, first: Array, second: Array) -> Any:
    letters = subscripts.partition("->")[0].partition(",")
    sizes = dict(zip(letters[0] + letters[2], first.shape + second.shape))
    return np.einsum(subscripts, first, second, optimize=math.prod(sizes.values()) > LARGE)


def with_letters(operands: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """Return the subscripts and operands of a call, whose subscripts may be lists of integers after each operand."""
    if isinstance(operands[0], str):
        return operands[0], operands[1:]

    def letters(places: Any) -> str:
        return "".join("..." if place is Ellipsis else string.ascii_letters[place] for place in places)

    pairs = len(operands) // 2
    subscripts = ",".join(letters(places) for places in operands[1 : 2 * pairs : 2])
    if len(operands) % 2:
        subscripts += "->" + letters(operands[-1])
    return subscripts, operands[: 2 * pairs : 2]


def without_sums(tensor: Any, letters: str, output: str) -> Any:
    """Return a view with permuted dimensions, and diagonals for letters that occur twice."""
    for letter in dict.fromkeys(letters):
        while letters.count(letter) > 1:
            first = letters.index(letter)
            second = letters.index(letter, first + 1)
            lengths = tensor.shape[first], tensor.shape[second]
            if lengths[0] != lengths[1]:
                raise ValueError(f"the dimensions of {letter!r} have different lengths: {lengths}")
            tensor = tensor.diagonal(0, first, second)
            letters = letters[:first] + letters[first + 1 : second] + letters[second + 1 :] + letter
    return tensor.permute(*(letters.index(letter) for letter in output)) if letters else tensor[...]


@composite(np.einsum, method=False)
def einsum(
    *operands: Any, optimize: Any = None, out: Any = None, dtype: Any = None, order: Any = "K",
    casting: Any = "safe",
) -> Any:
    """Return the sum of products given by subscripts, as in `numpy.einsum`.

    Arguments:
        operands: the subscripts, such as `"ij,jk->ik"`, and the tensors. Without an arrow, the result has the letters
            that appear once, in alphabetical order. Alternatively, each tensor is followed by a list of integers
            instead of letters, and a list for the result comes last. For a single tensor without summation, the result
            is a view.
        optimize, order: accepted for compatibility with NumPy; the order of the products is always optimized.
        out: the tensor to write to.
        dtype: the dtype of the computation.
        casting: the rule by which the result is cast to the dtype of `out`, as for `numpy.can_cast`.

    Example:
        >>> import viewgrad as vg
        >>> a = vg.Tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> vg.einsum("ij,jk->ik", a, a)
        Tensor([[ 7., 10.],
                [15., 22.]])
    """
    subscripts, given = with_letters(operands)
    if dtype is not None:
        given = tuple(as_operand(operand).astype(dtype) for operand in given)
    result = summed_products(subscripts, given)
    if optimize and not result.ndim and isinstance(
        np.einsum(subscripts, *map(plain, given), optimize=optimize), np.ndarray
    ):  # BLAS returns arrays instead of scalars for such sums
        result = as_buffered(result)
    return result if out is None else write_out(result, out, "np.einsum", casting)


def summed_products(subscripts: str, operands: tuple[Any, ...]) -> Any:
    tensors = [as_operand(operand) for operand in operands]
    inputs, output = parsed_subscripts(subscripts, [tensor.ndim for tensor in tensors])
    if len(tensors) == 1:
        if set(inputs[0]) == set(output):
            return without_sums(tensors[0], inputs[0], output)
        return einsum_single(tensors[0], f"{inputs[0]}->{output}")
    order = [(0, 1)]
    if len(tensors) > 2:
        arrays = [tensor._array for tensor in tensors]
        order = np.einsum_path(f"{','.join(inputs)}->{output}", *arrays, optimize="greedy")[0][1:]
    for places in order:
        # The path specifies the operands to contract, and the result is appended to the list.
        group = [(tensors.pop(place), inputs.pop(place)) for place in sorted(places, reverse=True)]
        tensor, letters = group.pop()
        while group:
            other, more = group.pop()
            rest = set("".join(inputs) + "".join(each for _, each in group) + output)
            kept = output if not (inputs or group) else "".join(sorted(set(letters + more) & rest))
            tensor = einsum_pair(tensor, other, f"{letters},{more}->{kept}")
            letters = kept
        tensors.append(tensor)
        inputs.append(letters)
    return tensors[0] if inputs[0] == output else einsum_single(tensors[0], f"{inputs[0]}->{output}")


@composite(np.inner)
def inner(self: Any, other: Any) -> Any:
    """Return the inner product over the last dimension of both tensors."""
    self, other = as_operand(self), as_operand(other)
    if not (self.ndim and other.ndim):
        return self * other
    result = tensordot(self, other, (-1, -1))
    return result if result.ndim else as_scalar(result)


@composite(np.vdot)
def vdot(self: Any, other: Any) -> Any:
    """Return the dot product of all elements; the first tensor is conjugated."""
    return dot(as_operand(self).ravel().conj(), as_operand(other).ravel())


# -- traces and further products ---------------------------------------------------------------------------------------


@formula_function
def diagonal_mask(shape: tuple[int, ...], offset: int, axis1: int, axis2: int, dtype: Any) -> Array:
    """Return ones on the diagonals of the planes of two dimensions, which broadcasts to `shape`."""
    first, second = axis1 % len(shape), axis2 % len(shape)
    mask = np.eye(shape[first], shape[second], offset, real_dtype(dtype))
    sizes = [1] * len(shape)
    sizes[first], sizes[second] = shape[first], shape[second]
    return (mask if first < second else mask.T).reshape(sizes)


@formula_function
def with_dimensions(a: Any, first: int, second: int) -> Any:
    """Return `a` with dimensions of length 1 inserted at two positions of the result."""
    ndim = a.ndim + 2
    places = sorted((first % ndim, second % ndim))
    return a.reshape(
        tuple(a.shape[i - sum(place < i for place in places)] if i not in places else 1 for i in range(ndim))
    )


row(
    "trace(self, offset=0, axis1=0, axis2=1)",
    lambda a, offset=0, axis1=0, axis2=1: np.trace(a, offset, axis1, axis2),
    {"self": "with_dimensions(grad, axis1, axis2) * diagonal_mask(self.shape, offset, axis1, axis2, self.dtype)"},
    forward_derivative="auto_linear",
    numpy=[np.trace],
    dtype_kinds="fc",
    doc="The sum along the diagonals of matrices.",
)


def _trace_of_matrices(x: Tensor, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
    return x.trace(offset, -2, -1, dtype)


FUNCTIONS[np.linalg.trace] = _trace_of_matrices


def _interleaved(a_shape: tuple[int, ...], b_shape: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the interleaved shapes of the factors of a Kronecker product, with ones in place of the other factor's
    lengths.
    """
    ndim = max(len(a_shape), len(b_shape))
    a, b = with_leading_ones(a_shape, ndim), with_leading_ones(b_shape, ndim)
    return tuple(x for n in a for x in (n, 1)), tuple(x for n in b for x in (1, n))


@formula_function
def kron_gradient(grad: Any, other: Any, shape: tuple[int, ...], second: bool) -> Any:
    """Return the gradient of one factor, of the given shape, of a Kronecker product; `other` is the other factor."""
    shapes = _interleaved(other.shape, shape) if second else _interleaved(shape, other.shape)
    both = tuple(x * y for x, y in zip(*shapes))
    others = other.reshape(shapes[0] if second else shapes[1])
    axes = tuple(range(0 if second else 1, len(both), 2))
    return (grad.reshape(both) * conjugated(others)).sum(axis=axes).reshape(shape)


row(
    "kron(self, b)",
    lambda a, b: np.kron(a, b),
    {
        "self": "kron_gradient(grad, b, self.shape, False)",
        "b": "kron_gradient(grad, self, b.shape, True)",
    },
    forward_derivative="kron(self_t, b_p) + kron(self_p, b_t)",
    numpy=[np.kron],
    dtype_kinds="fc",
    zero_in_masked_runs=True,
    doc="The Kronecker product.",
)


@formula_function
def last(a: Any, axis: int) -> Any:
    """Move the vectors along `axis` to the last dimension."""
    return a if axis == -1 else np.moveaxis(a, axis, -1)


@formula_function
def as_vectors_of(a: Any, axis: int, shape: tuple[int, ...]) -> Any:
    """Move the last dimension of `a` to `axis` of an array of the given shape, to which `a` broadcasts.

    Shapes are aligned at their ends, so the position of the dimension is counted from there.
    """
    return a if axis == -1 else np.moveaxis(a, -1, axis - len(shape) if axis >= 0 else axis)


def cross_forward(a: Any, b: Any, axis: int = -1) -> Any:
    if a.ndim == 0 or b.ndim == 0 or a.shape[axis] != 3 or b.shape[axis] != 3:
        raise ValueError(
            f"cross of tensors requires vectors of three elements along axis {axis}, not shapes {a.shape} and "
            f"{b.shape}; append a zero to vectors in the plane"
        )
    return np.cross(a, b, axis=axis)


cross = row(
    "cross(self, other, axis=-1)",
    cross_forward,
    {
        "self": "as_vectors_of(cross(last(conj(other), axis), last(grad, axis)), axis, self.shape)",
        "other": "as_vectors_of(cross(last(grad, axis), last(conj(self), axis)), axis, other.shape)",
    },
    forward_derivative="cross(self_t, other_p, axis) + cross(self_p, other_t, axis)",
    dtype_kinds="fc",
    zero_in_masked_runs=True,
    doc="The cross products of vectors of length 3.",
)


def cross_of_three(
    a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Tensor:
    """Return the cross products of three-element vectors, with the options of `numpy.cross`."""
    if axis is not None:
        axisa = axisb = axisc = axis
    product = cross(np.moveaxis(a, axisa, -1), np.moveaxis(b, axisb, -1))
    return product.moveaxis(-1, axisc)  # type: ignore[no-any-return]


# None means the last dimension since NumPy 2.5.
FUNCTIONS[np.linalg.cross] = lambda x1, x2, /, *, axis=-1: cross(x1, x2, -1 if axis is None else axis)


@formula_function
def along(a: Any, axis: int) -> Any:
    """Restore the dimension that a reduction over `axis` removed."""
    return np.expand_dims(a, axis)


def vecdot_forward(a: Any, b: Any, axis: int = -1) -> Any:
    return np.vecdot(a, b, axis=axis)  # type: ignore[call-overload]


vecdot = row(
    "vecdot(self, other, axis=-1)",
    vecdot_forward,
    {
        "self": "as_vectors_of(conj(along(grad, -1)) * last(other, axis), axis, self.shape)",
        "other": "as_vectors_of(along(grad, -1) * last(self, axis), axis, other.shape)",
    },
    forward_derivative="vecdot(self_t, other_p, axis) + vecdot(self_p, other_t, axis)",
    dtype_kinds="fc",
    zero_in_masked_runs=True,
    doc="The dot products of vectors along `axis`; the first tensor is conjugated.",
)


def _vecdot(x1: Any, x2: Any, out: Any = None, *, axis: int = -1, **options: Any) -> Tensor:
    product: Tensor = vecdot(*converted(np.vecdot, (x1, x2), **options), axis)
    if out is None:
        return product
    if isinstance(out, Tensor) and product.shape != out.shape:
        product = product.broadcast_to(out.shape)
    return write_out(product, out, "np.vecdot")


UFUNCS[np.vecdot, "__call__"] = _vecdot
FUNCTIONS[np.linalg.vecdot] = lambda x1, x2, /, *, axis=-1: vecdot(x1, x2, axis)
