"""The derivatives of products of matrices and tensors.

`einsum` is made of two rows: one for a single operand, and one for a pair; more are contracted pair by pair, in the
order that `numpy.einsum_path` finds.
"""

from __future__ import annotations

import math
import string
from typing import Any, Final

import numpy as np

from ..composites import composite
from ..define import row
from ..numpy_dispatch import write_out
from ..operands import as_operand
from .contractions import parsed_subscripts

__all__ = ["einsum", "inner", "vdot"]

Array = np.ndarray[Any, Any]

LARGE: Final = 10_000  # with so many terms, looking for a product of matrices pays

row(
    "matmul(self, other)", np.matmul,
    {"self": "matmul_left(grad, other, self.ndim)", "other": "matmul_right(grad, self, other.ndim)"},
    forward_derivative="matmul(self_t, other_p) + matmul(self_p, other_t)", kinds="fc", numpy=[np.matmul],
    doc="The matrix product of the last two dimensions.",
)
dot = row(
    "dot(self, other)", np.dot,
    {"self": "dot_left(grad, other, self.ndim)", "other": "dot_right(grad, self, other.ndim)"},
    forward_derivative="dot(self_t, other_p) + dot(self_p, other_t)", kinds="fc", numpy=[np.dot],
    doc="The sum of products over the last dimension of the first and the last but one of the second.",
).function
row(
    "outer(self, other)", np.outer,
    {
        "self": "(grad @ conj(other).reshape(-1)).reshape(self.shape)",
        "other": "(conj(self).reshape(-1) @ grad).reshape(other.shape)",
    },
    forward_derivative="outer(self_t, other_p) + outer(self_p, other_t)", kinds="fc", numpy=[np.outer],
    doc="The products of each element of the first with each of the second.",
)
tensordot = row(
    "tensordot(self, other, axes=2)", lambda self, other, axes=2: np.tensordot(self, other, axes),
    {"self": "tensordot_left(grad, other, self.ndim, axes)", "other": "tensordot_right(grad, self, other.ndim, axes)"},
    forward_derivative="tensordot(self_t, other_p, axes) + tensordot(self_p, other_t, axes)",
    kinds="fc", numpy=[np.tensordot],
    doc="The sum of products over `axes`: the last so many of the first and the first of the second, or two lists.",
).function
einsum_single = row(
    "einsum_single(self, subscripts)", lambda self, subscripts: np.einsum(subscripts, self),
    {"self": "einsum_gradient(grad, None, subscripts, 0, self.shape)"},
    forward_derivative="auto_linear", method=False, kinds="fc",
    doc="One tensor with dimensions summed, exchanged or taken along a diagonal, as `einsum` says it.",
).function
einsum_pair = row(
    "einsum_pair(self, other, subscripts)", lambda self, other, subscripts: contracted(subscripts, self, other),
    {
        "self": "einsum_gradient(grad, other, subscripts, 0, self.shape)",
        "other": "einsum_gradient(grad, self, subscripts, 1, other.shape)",
    },
    forward_derivative="einsum_pair(self_t, other_p, subscripts) + einsum_pair(self_p, other_t, subscripts)",
    method=False, kinds="fc",
    doc="The sum of products of two tensors that `einsum` writes with subscripts.",
).function


def contracted(subscripts: str, first: Array, second: Array) -> Any:
    letters = subscripts.partition("->")[0].partition(",")
    sizes = dict(zip(letters[0] + letters[2], first.shape + second.shape))
    return np.einsum(subscripts, first, second, optimize=math.prod(sizes.values()) > LARGE)


def with_letters(operands: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """The subscripts and operands of a call, whose subscripts may be lists of numbers behind each operand."""
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
    """A view with dimensions in another order, and diagonals where a letter occurs twice."""
    for letter in dict.fromkeys(letters):
        while letters.count(letter) > 1:
            first = letters.index(letter)
            second = letters.index(letter, first + 1)
            tensor = tensor.diagonal(0, first, second)
            letters = letters[:first] + letters[first + 1 : second] + letters[second + 1 :] + letter
    return tensor.permute(*(letters.index(letter) for letter in output)) if letters else tensor[...]


@composite(np.einsum, method=False)
def einsum(*operands: Any, optimize: Any = None, out: Any = None, dtype: Any = None, **idle: Any) -> Any:
    """The sum of products of tensors that subscripts say, as `numpy.einsum`.

    Arguments:
        operands: the subscripts, `"ij,jk->ik"`, and the tensors; without an arrow, the letters that appear once, in
            order, are those of the result. Or each tensor followed by a list of numbers for letters, and at the end
            those of the result. Of one tensor, of which nothing is summed, the result is a view.
        optimize: for NumPy's sake, as `order` and `casting`; the order of the products is always looked for.
        out: the tensor to write to.
        dtype: what to compute in.

    Example:
        >>> import viewgrad as vg
        >>> a = vg.Tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> vg.einsum("ij,jk->ik", a, a)
        Tensor([[ 7., 10.],
                [15., 22.]])
    """
    if idle.keys() - {"order", "casting"}:
        raise TypeError(f"einsum takes optimize, out, dtype, order and casting, not {', '.join(idle)}")
    subscripts, given = with_letters(operands)
    if dtype is not None:
        given = tuple(as_operand(operand).astype(dtype) for operand in given)
    result = summed_products(subscripts, given)
    return result if out is None else write_out(result, out, "np.einsum")


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
        # The path names the operands to be contracted, and puts the result at the end of the list.
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
    """The sum of products over the last dimension of both."""
    self, other = as_operand(self), as_operand(other)
    return tensordot(self, other, (-1, -1)) if self.ndim and other.ndim else self * other


@composite(np.vdot)
def vdot(self: Any, other: Any) -> Any:
    """The sum of products of all elements, those of the first conjugated."""
    return dot(as_operand(self).ravel().conj(), as_operand(other).ravel())
