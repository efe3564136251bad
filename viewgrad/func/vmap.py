"""`vmap`: map a function of one example over a batch."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final, ParamSpec

import attrs
import numpy as np

from ..adoption import adopted_callable
from ..operators.define import OPERATORS
from ..tensor.async_safety import in_own_context
from ..tensor.tensor import Tensor, copy_of
from ..views.view_ops import moveaxis, unbind
from .numpy_results import arrays_as_tensors, as_given
from .program_methods import program_method
from .tree import LEAF_TYPES, Branch, Fixed, Structure, children_of, flatten, unflatten

Function = Callable[..., Any]
P = ParamSpec("P")
Axes = Any  # an int, None, or a tree of them
RESULT_TYPES: Final = (*LEAF_TYPES, np.generic)  # of results that are stacked
stack = OPERATORS["stack"].function


def vmap(f: Callable[P, Any], in_axes: Axes = 0, out_axes: Axes = 0, *, adopt: bool = True) -> Function:
    """Map `f` over an axis of its arguments and stack the results.

    `f` is called once for each example, in order, so it may branch on values, write to its arguments and draw random
    numbers, which differ between examples. If `f` is a compiled function, or `grad` or `value_and_grad` of one, its
    program runs for each example instead, with the same results (see `batch=` of `viewgrad.compile`).

    Arguments:
        f: the function of one example. It receives a copy of each example, to which it may write.
        in_axes: the axis to map over: an int for all positional arguments, or a sequence with one entry for each
            argument. An entry is an int, None (the argument is the same for all examples), or a tree of these with the
            structure of the argument. Keyword arguments are mapped over their first axis.
        out_axes: the position of the mapped axis in the results: an int, or a tree of ints with the structure of the
            result.
        adopt: whether to adopt `f`, so that it computes with viewgrad instead of NumPy; see `viewgrad.adopt`.

    Returns:
        A function with the same arguments. Its result has the structure of the result of `f`, with an additional axis.
        The leaves are tensors if an argument is a tensor, and arrays otherwise. Other parts of the result (an int, a
        string, None) must be equal for all examples.

    Raises:
        ValueError: when called, if mapped axes have different lengths, no argument is mapped, the batch is empty, or
            the results of examples have different shapes or structures.

    Example:
        >>> import numpy as np, viewgrad as vg
        >>> def loss(w, x, y):
        ...     return ((x @ w - y) ** 2).sum()
        >>> per_example = vg.func.vmap(vg.func.grad(loss), in_axes=(None, 0, 0))
        >>> per_example(vg.Tensor([1.0, 2.0]), vg.Tensor([[1.0, 0.0], [0.0, 1.0]]), vg.Tensor([0.0, 0.0]))
        Tensor([[2., 0.],
                [0., 4.]])
    """

    function: Function = adopted_callable(f) if adopt else f
    # Compiled functions accept arrays directly.
    prepared: Function = tuple if _batched(function) or not adopt else arrays_as_tensors

    @functools.wraps(function, updated=())
    def mapped(*args: Any, **kwargs: Any) -> Any:
        return as_given(over_axes(*prepared(args), **kwargs), (args, kwargs)) if adopt else over_axes(*args, **kwargs)

    @in_own_context
    def over_axes(*args: Any, **kwargs: Any) -> Any:
        axes = _argument_axes(in_axes, args)
        batch = _Batch.of(axes, args, kwargs)
        results = batch.by_program(function, axes)
        if results is None:
            results = stack_results([function(*given, **named) for given, named in batch.examples()])
        return _moved_to(out_axes, results)

    return mapped


def stack_results(results: Sequence[Any]) -> Any:
    """Stack the results of single examples along a new first axis, leaf by leaf.

    Raises:
        ValueError: if they have different shapes or structures.
    """
    leaves, form = flattened_results(results)
    return unflatten(form, [stack_leaves(column) for column in zip(*leaves)])


def flattened_results(results: Sequence[Any], form: Structure | None = None) -> tuple[list[list[Any]], Structure]:
    """Return the leaves of the results of single examples, and their common structure.

    Arguments:
        results: the results.
        form: the structure that they must have; by default that of the first.

    Raises:
        ValueError: if they have different structures.
    """
    taken = [flatten(result, RESULT_TYPES) for result in results]
    form = taken[0][1] if form is None else form
    for number, (_, other) in enumerate(taken):
        if not _is_alike(form, other):
            raise ValueError(
                f"the result for example {number} has a different structure from the others, or contains a different "
                "integer, string or None; return tensors"
            )
    return [leaves for leaves, _ in taken], form


def stack_leaves(values: Sequence[Any]) -> Any:
    """Stack the values of several examples along a new first axis."""
    require_one_shape({np.shape(value) for value in values})
    if any(isinstance(value, Tensor) for value in values):
        return stack(list(values))
    return np.stack([np.asarray(value) for value in values])


def require_one_shape(shapes: set[tuple[int, ...]]) -> None:
    """Raise if the results of the examples have several shapes."""
    if len(shapes) > 1:
        raise ValueError(f"the results of the examples have different shapes: {', '.join(map(str, sorted(shapes)))}")


def _is_alike(form: Structure, other: Structure) -> bool:
    """Return whether the structures of two results are equal apart from their leaves."""
    if isinstance(form, Fixed) and isinstance(other, Fixed):
        return bool(type(form.value) is type(other.value) and form.value == other.value)
    if isinstance(form, Branch) and isinstance(other, Branch):
        return (
            form.kind is other.kind
            and form.keys == other.keys
            and all(map(_is_alike, form.children, other.children))
        )
    return type(form) is type(other)


@attrs.define(eq=False)
class _Batch:
    """The arguments of one call.

    Attributes:
        leaves, structure: the leaves and structure of `(args, kwargs)`, with the axis of examples first.
        mapped: for each leaf, whether it has this axis.
        count: the number of examples.
    """

    leaves: list[Any]
    structure: Structure
    mapped: list[bool]
    count: int

    @classmethod
    def of(cls, axes: Sequence[Axes], args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Batch:
        """Flatten the arguments of a call, and move mapped axes to the front."""
        leaves, structure = flatten((args, kwargs))
        numbers: list[int | None] = []
        for position, (axis, arg) in enumerate(zip(axes, args)):
            _axes_into(numbers, axis, arg, f"in_axes[{position}]")
        _axes_into(numbers, 0, kwargs, "keyword arguments")
        lengths: dict[int, Any] = {}
        for n, (leaf, axis) in enumerate(zip(leaves, numbers)):
            if axis is None:
                continue
            shape = np.shape(leaf)
            if not -len(shape) <= axis < len(shape):
                raise ValueError(
                    f"vmap: an argument of shape {shape} has no axis {axis} to map over; pass None for it in in_axes, "
                    "as in in_axes=(0, None), if it is the same for all examples"
                )
            lengths.setdefault(shape[axis], shape)
            if axis % len(shape):
                leaves[n] = moveaxis(leaf, axis, 0) if isinstance(leaf, Tensor) else np.moveaxis(leaf, axis, 0)
        if not lengths:
            raise ValueError("vmap: no argument has an axis of examples; in_axes names at least one")
        if len(lengths) > 1:
            lengths_text = " and ".join(f"{length} (shape {shape})" for length, shape in lengths.items())
            raise ValueError(f"vmap: the mapped axes have different lengths: {lengths_text}")
        count = next(iter(lengths))
        if not count:
            raise ValueError("vmap: the batch is empty, so the shape of a result is unknown; pass at least one example")
        return cls(leaves, structure, [axis is not None for axis in numbers], count)

    def examples(self) -> list[Any]:
        """Return the arguments `(args, kwargs)` of each example."""
        columns = [_copies(leaf, mapped, self.count) for leaf, mapped in zip(self.leaves, self.mapped)]
        return [unflatten(self.structure, row) for row in zip(*columns)]

    def by_program(self, f: Function, axes: Sequence[Axes]) -> Any:
        """Return the results computed by the program of a compiled function; None for other functions."""
        batched = _batched(f)
        if batched is None or not all(axis is None or isinstance(axis, int) for axis in axes):
            return None
        args, kwargs = unflatten(self.structure, self.leaves)
        positions = [position for position, axis in enumerate(axes) if axis is not None and flatten(args[position])[0]]
        return batched((*positions, *kwargs), self.count)(*args, **kwargs)


def _batched(f: Function) -> Function | None:
    return program_method(f, "__viewgrad_batched__")


def _copies(leaf: Any, mapped: bool, count: int) -> list[Any]:
    """Return a writable leaf for each example; elements of a one-dimensional array become scalars, as in a loop."""
    if isinstance(leaf, Tensor):
        if mapped and leaf.ndim == 1:
            return [leaf[at] for at in range(count)]
        return [copy_of(each) for each in (unbind(leaf) if mapped else [leaf] * count)]
    if isinstance(leaf, np.ndarray):
        return [leaf[at].copy() if mapped else leaf.copy() for at in range(count)]
    return [leaf] * count


def _argument_axes(in_axes: Axes, args: tuple[Any, ...]) -> Sequence[Axes]:
    """Return the axes of each positional argument."""
    if in_axes is None or isinstance(in_axes, int):
        return [in_axes] * len(args)
    if not isinstance(in_axes, (tuple, list)) or len(in_axes) != len(args):
        raise ValueError(
            f"vmap: in_axes must be an int, or a tuple with one entry for each of the {len(args)} positional "
            f"arguments, not {in_axes!r}"
        )
    return in_axes


def _axes_into(found: list[int | None], axes: Axes, tree: Any, what: str) -> None:
    """Append the axis of each leaf of a tree; an axis applies to all leaves below its position."""
    if axes is None or isinstance(axes, int):
        found.extend([axes] * len(flatten(tree)[0]))
        return
    given, below = children_of(axes), children_of(tree)
    if given is None or below is None or given[0] != below[0]:
        raise ValueError(f"vmap: {what} is {axes!r}, which does not match the {type(tree).__name__} it belongs to")
    for each, child in zip(given[1], below[1]):
        _axes_into(found, each, child, what)


def _moved_to(out_axes: Axes, results: Any) -> Any:
    """Return the results with the mapped axis moved to the requested position."""
    if isinstance(out_axes, int) and out_axes == 0:
        return results
    leaves, structure = flatten(results)
    numbers: list[int | None] = []
    _axes_into(numbers, out_axes, results, "out_axes")
    if None in numbers:
        raise ValueError("vmap: out_axes must contain ints only; index a result that is the same for all examples")
    moved = [
        moveaxis(leaf, 0, axis) if isinstance(leaf, Tensor) else np.moveaxis(leaf, 0, axis or 0)
        for leaf, axis in zip(leaves, numbers)
    ]
    return unflatten(structure, moved)
