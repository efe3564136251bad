"""Formulas for tensor products, whose gradients are products with permuted dimensions."""

from __future__ import annotations

import math
import string
from typing import Any

import numpy as np

from ....tensor.masked_backward import MASKED_RUNS, is_masked_run, unmasked
from ....tensor.tensor import Tensor
from ....tensor.trace_hooks import observed
from ....type_aliases import Array
from ...language.namespace import formula_function
from ..helpers import conjugated, flowing


def over_flowing(contract: Any, grad: Any, other: Any, *options: Any) -> Any:
    """Contract a gradient with a factor, skipping products of 0 and non-finite numbers; see tensor/masked_backward.py.

    Arguments:
        contract: the contraction, which is bilinear.
        grad: the gradient.
        other: the factor; None if there is none.
        options: additional arguments of the contraction.
    """
    with unmasked(), np.errstate(invalid="ignore"):
        found = contract(grad, other, *options)
        if other is None or observed() is not None or not np.isnan(_values(found)).any():
            return found
        lost = ~np.isfinite(_values(other))
        reached = contract((_values(grad) != 0).astype(float), lost.astype(float), *options) != 0
        return np.where(reached, found, contract(grad, np.where(lost, 0, other), *options))


def _values(value: Any) -> Array:
    return value._array if isinstance(value, Tensor) else value


@formula_function
def matmul_left(grad: Any, other: Any, ndim: int) -> Any:
    """Return the gradient of the left factor of a matrix product, before the sum over broadcast dimensions."""
    if MASKED_RUNS.any and is_masked_run():
        return over_flowing(matmul_left, grad, other, ndim)
    other = conjugated(other)
    if ndim == other.ndim == 2:
        return grad @ other.T
    if other.ndim == 1:
        return grad[..., None] * other
    if ndim == 1:
        return (grad[..., None, :] @ other.mT)[..., 0, :]
    return grad @ other.mT


@formula_function
def matmul_right(grad: Any, other: Any, ndim: int) -> Any:
    """Return the gradient of the right factor of a matrix product, before the sum over broadcast dimensions."""
    if MASKED_RUNS.any and is_masked_run():
        return over_flowing(matmul_right, grad, other, ndim)
    other = conjugated(other)
    if ndim == other.ndim == 2:
        return other.T @ grad
    if other.ndim == 1:
        return other * grad if ndim == 1 else other[:, None] * grad[..., None, :]
    if ndim == 1:
        return (other.mT @ grad[..., None])[..., 0]
    if ndim == 2 and other.ndim > 2:  # a sum over the stack, computed by a single matrix product
        rows = math.prod(other.shape[:-1])
        return other.reshape((rows, other.shape[-1])).mT @ grad.reshape((rows, grad.shape[-1]))
    return other.mT @ grad


@formula_function
def dot_left(grad: Any, other: Any, ndim: int) -> Any:
    """Return the gradient of the first factor of `dot`."""
    if not ndim or not other.ndim:
        if MASKED_RUNS.any and is_masked_run():
            return flowing(grad * conjugated(other), grad)
        return grad * conjugated(other)
    return tensordot_left(grad, other, ndim, (-1, max(-2, -other.ndim)))


@formula_function
def dot_right(grad: Any, other: Any, ndim: int) -> Any:
    """Return the gradient of the second factor of `dot`."""
    if not ndim or not other.ndim:
        if MASKED_RUNS.any and is_masked_run():
            return flowing(grad * conjugated(other), grad)
        return grad * conjugated(other)
    return tensordot_right(grad, other, ndim, (-1, max(-2, -ndim)))


@formula_function
def tensordot_left(grad: Any, other: Any, ndim: int, axes: Any) -> Any:
    """Return the gradient of the first factor of `tensordot`, which has `ndim` dimensions."""
    if MASKED_RUNS.any and is_masked_run():
        return over_flowing(tensordot_left, grad, other, ndim, axes)
    own, others = contracted_axes(axes, ndim, other.ndim)
    free = [dim for dim in range(ndim) if dim not in own]
    others_free = [dim for dim in range(other.ndim) if dim not in others]
    product = np.tensordot(grad, conjugated(other), (list(range(len(free), grad.ndim)), others_free))
    return moved_into_place(product, free + [own[others.index(dim)] for dim in sorted(others)])


@formula_function
def tensordot_right(grad: Any, other: Any, ndim: int, axes: Any) -> Any:
    """Return the gradient of the second factor of `tensordot`, which has `ndim` dimensions."""
    if MASKED_RUNS.any and is_masked_run():
        return over_flowing(tensordot_right, grad, other, ndim, axes)
    others, own = contracted_axes(axes, other.ndim, ndim)
    free = [dim for dim in range(ndim) if dim not in own]
    others_free = [dim for dim in range(other.ndim) if dim not in others]
    product = np.tensordot(conjugated(other), grad, (others_free, list(range(len(others_free)))))
    return moved_into_place(product, [own[others.index(dim)] for dim in sorted(others)] + free)


def contracted_axes(axes: Any, first: int, second: int) -> tuple[list[int], list[int]]:
    """Return the `axes` of `tensordot` as two lists, given the numbers of dimensions of the factors."""
    if isinstance(axes, (int, np.integer)):
        return list(range(first - int(axes), first)), list(range(int(axes)))
    left, right = ([dims] if isinstance(dims, (int, np.integer)) else list(dims) for dims in axes)
    return [int(dim) % first for dim in left], [int(dim) % second for dim in right]


def moved_into_place(value: Any, places: list[int]) -> Any:
    """Permute the dimensions so that dimension `i` moves to position `places[i]`."""
    return value.transpose(sorted(range(len(places)), key=places.__getitem__)) if places else value


# -- einsum ------------------------------------------------------------------------------------------------------------


def parsed_subscripts(subscripts: str, ndims: list[int]) -> tuple[list[str], str]:
    """Return the letters of each operand and of the result, with letters for the dimensions of `...`."""
    left, arrow, output = subscripts.replace(" ", "").partition("->")
    inputs = left.split(",")
    if len(inputs) != len(ndims):
        raise ValueError(f"einsum {subscripts!r} has subscripts for {len(inputs)} operands, but got {len(ndims)}")
    spare = [letter for letter in string.ascii_letters if letter not in left]
    hidden = [ndim - len(term.replace("...", "")) if "..." in term else 0 for term, ndim in zip(inputs, ndims)]
    for term, ndim, more in zip(inputs, ndims, hidden):
        if len(term.replace("...", "")) + more != ndim or more < 0:
            raise ValueError(f"einsum {subscripts!r}: {term!r} does not fit an operand of {ndim} dimensions")
    broadcast = "".join(spare[: max(hidden, default=0)])
    terms = [term.replace("...", broadcast[len(broadcast) - more :]) for term, more in zip(inputs, hidden)]
    if arrow:
        if broadcast and "..." not in output:
            raise ValueError(f"einsum {subscripts!r} has no '...' in the result for the dimensions it represents")
        return terms, output.replace("...", broadcast)
    named = "".join(term.replace("...", "") for term in inputs)
    return terms, broadcast + "".join(sorted(letter for letter in set(named) if named.count(letter) == 1))


@formula_function
def einsum_gradient(grad: Any, other: Any, subscripts: str, place: int, shape: tuple[int, ...]) -> Any:
    """Return the gradient of one operand of `einsum`, of the given shape; there are at most two operands."""
    if MASKED_RUNS.any and is_masked_run():
        return over_flowing(einsum_gradient, grad, other, subscripts, place, shape)
    left, _, output = subscripts.partition("->")
    terms = left.split(",")
    own = terms[place]
    letters = "".join(dict.fromkeys(own))
    if other is None:
        found = "".join(letter for letter in letters if letter in output)
        value = np.einsum(f"{output}->{found}", grad)
    else:
        others = terms[1 - place]
        found = "".join(letter for letter in letters if letter in output or letter in others)
        value = np.einsum(f"{output},{others}->{found}", grad, conjugated(other))
    # A dimension that is summed alone gets the gradient everywhere, and a diagonal gets it on the diagonal.
    sizes = dict(zip(own, shape))
    extents = [value.shape[found.index(letter)] if letter in found else 1 for letter in letters]
    value = value.reshape(tuple(extents))
    wanted = tuple(sizes[letter] if extent == 1 else extent for extent, letter in zip(extents, letters))
    if wanted != tuple(extents):
        value = np.broadcast_to(value, wanted)
    if len(letters) == len(own):
        return value
    spare = iter(letter for letter in string.ascii_letters if letter not in letters)
    diagonals = []
    target = ""
    for letter in own:
        if letter in target:
            diagonals.append(letter + next(spare))
            target += diagonals[-1][1]
        else:
            target += letter
    eyes = [np.eye(sizes[diagonal[0]], dtype=value.dtype) for diagonal in diagonals]
    return np.einsum(f"{','.join([letters, *diagonals])}->{target}", value, *eyes)
