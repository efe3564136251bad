"""The arguments of a transformed function: copied, with the differentiated ones selected."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from ..autograd.transform_inputs import Transform, require_differentiable, the_real_number
from ..errors import DifferentiabilityError
from ..tensor.tensor import Tensor, as_scalar
from .tree import Leaf, Structure, flatten, map_leaves, once_each, paths, unflatten

Argnums = int | Sequence[int]


@attrs.define(eq=False)
class Differentiated:
    """The trees with respect to which a function is differentiated.

    Arguments:
        structures: the structure of each tree.
        single: whether there is a single tree, so that results are not wrapped in a tuple.
        numbers: the positions of these arguments.
    """

    structures: list[Structure]
    single: bool
    numbers: list[int] = attrs.Factory(list)

    def tree(self, leaves: Sequence[Any]) -> Any:
        """Return the given values in the structure of the trees, one for each leaf."""
        trees = self.trees(leaves)
        return trees[0] if self.single else trees

    def trees(self, leaves: Sequence[Any]) -> tuple[Any, ...]:
        """Return the values in the structure of the trees, always as a tuple."""
        trees = []
        start = 0
        for structure in self.structures:
            trees.append(unflatten(structure, leaves[start : start + structure.count]))
            start += structure.count
        return tuple(trees)


@attrs.define(eq=False)
class Output:
    """The result of a function, with tensors as leaves."""

    leaves: list[Tensor]
    structure: Structure
    aux: Any = None

    def tree(self, leaves: Sequence[Any]) -> Any:
        """Return the given values in the structure of the output, one for each leaf."""
        return unflatten(self.structure, leaves)

    @property
    def differentiable(self) -> list[int]:
        """The positions of the leaves that can have a derivative."""
        return [i for i, leaf in enumerate(self.leaves) if leaf._array.dtype.kind in "fc"]


def copies(
    transform: Transform,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    argnums: Argnums,
    name: str,
    make: Callable[[Tensor], Tensor],
) -> tuple[tuple[Any, ...], dict[str, Any], Differentiated]:
    """Return copies of the arguments for the function.

    In the arguments selected by `argnums`, each leaf is replaced by `make(tensor)`; in the others, tensors and arrays
    are copied.
    """
    numbers = [_position(number, len(args), name) for number in ([argnums] if isinstance(argnums, int) else argnums)]
    if len(set(numbers)) != len(numbers):
        raise ValueError(f"{name}: argnums {tuple(numbers)} contains an argument twice")
    transform.inputs.clear()
    copy = once_each(functools.partial(_copy, transform))
    given = [None if i in numbers else map_leaves(copy, arg) for i, arg in enumerate(args)]
    structures = []
    for number in numbers:
        given[number], structure = differentiated(transform, args[number], f"{name}: argument {number}", make)
        structures.append(structure)
    others = {key: map_leaves(copy, value) for key, value in kwargs.items()}
    return tuple(given), others, Differentiated(structures, isinstance(argnums, int), numbers)


def differentiated(
    transform: Transform, tree: Any, what: str, make: Callable[[Tensor], Tensor]
) -> tuple[Any, Structure]:
    """Return a tree with `make(tensor)` in place of each leaf, and its structure."""
    leaves, structure = flatten(tree)
    if type(tree) is int or isinstance(tree, np.integer):
        raise DifferentiabilityError(
            f"{what} is the {type(tree).__name__} {tree}, and integers have no gradient; pass {float(tree)}"
        )
    if not leaves:
        raise DifferentiabilityError(
            f"{what} contains no tensor, array or floating-point number to differentiate with respect to"
        )
    tensors = [_as_tensor(leaf) for leaf in leaves]
    for i, tensor in enumerate(tensors):
        advice = "convert it, or pass it as an argument that argnums leaves out"
        require_differentiable(tensor, f"{what}{paths(structure)[i]}", advice)
    made = list(map(make, tensors))
    for leaf, copy in zip(leaves, made, strict=True):
        transform.inputs.add(leaf, copy)
    return unflatten(structure, made), structure


def _as_tensor(leaf: Any) -> Tensor:
    """Return a leaf as a tensor; a number becomes a scalar, so that `x += 1` binds a new value."""
    if isinstance(leaf, Tensor):
        return leaf
    return Tensor(leaf) if isinstance(leaf, np.ndarray) else as_scalar(Tensor(leaf))


def split_output(returned: Any, has_aux: bool, name: str) -> Output:
    """Flatten the result of a function."""
    aux = None
    if has_aux:
        if not isinstance(returned, tuple) or len(returned) != 2:
            raise TypeError(f"{name} with has_aux=True needs a function that returns (output, aux)")
        returned, aux = returned
    if type(returned) is int or isinstance(returned, np.integer):  # `return 0` in a function that returns early
        returned = float(returned)
    leaves, structure = flatten(returned)
    return Output([leaf if isinstance(leaf, Tensor) else Tensor(leaf) for leaf in leaves], structure, aux)


def scalar(output: Output, name: str) -> Tensor:
    """Return the only tensor of an output, which must be one real number."""
    if not isinstance(output.structure, Leaf):
        raise DifferentiabilityError(
            f"{name} needs a function that returns one tensor; has_aux=True lets it return (output, aux)"
        )
    return the_real_number(output.leaves, name, "see jacrev and vjp for others")


def checked_argnums(argnums: Argnums) -> Argnums:
    """Return the position, or a tuple of positions, of the arguments to differentiate."""
    try:
        return tuple(map(operator.index, argnums)) if np.ndim(argnums) else operator.index(argnums)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"argnums must be an integer or a sequence of integers, not {argnums!r}") from None


def _position(number: int, count: int, name: str) -> int:
    if not -count <= number < count:
        raise ValueError(f"{name}: there is no positional argument {number} among {count}")
    return number % count


def _copy(transform: Transform, leaf: Any) -> Any:
    copied = transform.copy(leaf) if isinstance(leaf, Tensor) else leaf.copy() if isinstance(leaf, np.ndarray) else leaf
    transform.inputs.add(leaf, copied)
    return copied
