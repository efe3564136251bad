"""A viewgrad function as an operation on arrays, for libraries that record their own histories."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs
import numpy as np

from ..autograd.api import pull_back
from ..autograd.transform_inputs import Transform
from ..errors import InteropError
from ..func.program_methods import program_method
from ..func.transforms import jvp, vjp
from ..func.tree import Branch, Leaf, Structure, flatten, unflatten
from ..func.vmap import vmap
from ..tensor.creation import from_numpy
from ..tensor.modes import no_grad
from ..tensor.node import AccumulateGrad, node_of
from ..tensor.tensor import Tensor, current_edge
from ..views.view_ops import broadcast_to, moveaxis

Array = Any


Axis = int | None


@attrs.define(eq=False)
class OnLeaves:
    """A function of the leaves of its arguments.

    Attributes:
        function: the function of the arguments.
        structure: the structure of its arguments, which are a pair of a tuple and a dict.
    """

    function: Callable[..., Any]
    structure: Structure

    def __call__(self, *leaves: Any) -> Any:
        args, kwargs = unflatten(self.structure, leaves)
        return self.function(*args, **kwargs)

    def by_program(self, axes: Sequence[Axis]) -> Callable[..., Any] | None:
        """Return the function mapped over axes of its leaves, as computed by the program of a compiled function.

        Returns:
            The function, or None if there is no such program, or if leaves are in containers or keyword arguments.
        """
        if program_method(self.function, "__viewgrad_batched__") is None or not isinstance(self.structure, Branch):
            return None
        positional, keywords = self.structure.children
        if keywords.count or not isinstance(positional, Branch):
            return None
        if any(each.count and not isinstance(each, Leaf) for each in positional.children):
            return None
        remaining = iter(axes)
        by_argument = [next(remaining) if each.count else None for each in positional.children]
        return OnLeaves(vmap(self.function, tuple(by_argument), adopt=False), self.structure)


@attrs.define(eq=False)
class Operation:
    """A function of flat lists of arrays.

    Attributes:
        function: a function of tensors that returns a tree of tensors.
        name: the name used in messages.
        by_program: a function of the axes to map over that returns the mapped function if a compiled program computes
            it, otherwise None; see `OnLeaves.by_program`.
    """

    function: Callable[..., Any]
    name: str
    by_program: Callable[[Sequence[Axis]], Callable[..., Any] | None] = lambda axes: None

    @classmethod
    def of(cls, f: Callable[..., Any], structure: Structure) -> Operation:
        """Return the operation that calls `f` with arguments of the given structure."""
        function = OnLeaves(f, structure)
        return cls(function, getattr(f, "__name__", repr(f)), function.by_program)

    def __call__(self, arrays: Sequence[Array], needed: Sequence[bool]) -> Evaluation:
        """Compute the outputs, and keep the graph if an input needs a gradient.

        Raises:
            InteropError: if the function writes to an argument, or its outputs depend on a captured tensor.
        """
        inputs = [
            from_numpy(array).requires_grad_() if need else from_numpy(array) for array, need in zip(arrays, needed)
        ]
        transform = Transform()
        with transform if any(needed) else no_grad():
            leaves, structure = flatten(self.function(*inputs))
        outputs = list(map(_as_tensor, leaves))
        if any(x._version for x in inputs):
            raise InteropError(f"{self.name} wrote to an argument in place, which its caller would see; use a copy")
        if any(needed):
            known = {node_of(current_edge(x)) for x in inputs}
            if any(node_of(edge) not in known for edge in transform.graph(map(current_edge, outputs))[1]):
                raise self._captured()
        return Evaluation(inputs, outputs, structure)

    def _captured(self) -> InteropError:
        return InteropError(
            f"{self.name} captures a viewgrad tensor that requires grad, whose gradient would be lost; pass it as an "
            "argument, or detach() it"
        )

    def mapped(self, axes: Sequence[Axis]) -> Operation:
        """Return the operation mapped over axes of its inputs, with the mapped axis first in its results."""
        function = self.by_program(axes)
        return Operation(vmap(self.function, tuple(axes), adopt=False) if function is None else function, self.name)

    def pullback(self, wanted: Sequence[bool]) -> Operation:
        """Return the operation that maps inputs and output gradients to the gradients of the wanted inputs.

        Its inputs are the inputs of this operation, the gradients of the floating-point outputs, and optionally samples
        of these outputs from an earlier run; see `samples_of`. The operation reruns the function. It raises an
        `InteropError` if the values differ.

        Arguments:
            wanted: for each input, whether its gradient is needed; only floating-point inputs have one.
        """
        count = len(wanted)

        def pulled(*given: Any) -> Any:
            inputs, of_inputs = self._of_wanted(wanted, given)
            outputs, pull = vjp(of_inputs, *inputs)
            self._check(outputs, given[count + len(outputs) :])
            return list(pull(list(given[count : count + len(outputs)])))

        return Operation(pulled, f"gradient of {self.name}", lambda axes: self._mapped_pullback(wanted, axes))

    def pushforward(self, wanted: Sequence[bool]) -> Operation:
        """Return the operation that maps inputs and tangents of some of them to the tangents of floating-point outputs.

        Its inputs are the inputs of this operation, the tangents, and optionally samples, as for `pullback`.

        Arguments:
            wanted: for each input, whether it has a tangent; only floating-point inputs can.
        """
        count, tangent_count = len(wanted), sum(wanted)

        def pushed(*given: Any) -> Any:
            inputs, of_inputs = self._of_wanted(wanted, given)
            outputs, tangents = jvp(of_inputs, inputs, list(given[count : count + tangent_count]))
            self._check(outputs, given[count + tangent_count :])
            return list(tangents)

        return Operation(pushed, f"tangent of {self.name}")

    def _of_wanted(self, wanted: Sequence[bool], given: Sequence[Any]) -> tuple[list[Any], Callable[..., Any]]:
        """Return the wanted inputs, and a function that computes the floating-point outputs from them."""
        inputs = list(given[: len(wanted)])
        places = [n for n, each in enumerate(wanted) if each]

        def of_inputs(*values: Any) -> Any:
            for place, value in zip(places, values):
                inputs[place] = value
            results = map(_as_tensor, flatten(self.function(*inputs))[0])
            leaves = [leaf for leaf in results if leaf.dtype.kind in "fc"]
            if _leads_elsewhere(leaves, [*given, *values]):
                raise self._captured()
            return leaves

        return [inputs[n] for n in places], of_inputs

    def _check(self, outputs: Sequence[Tensor], samples: Sequence[Any], leading: int = 0) -> None:
        """Compare outputs with samples from an earlier run, if there are any."""
        if samples and not _alike(samples_of(outputs, leading), [each._array for each in samples]):
            raise InteropError(
                f"{self.name} computed different values when it ran again for its derivatives: it draws random "
                "numbers, or reads state that has changed; pass such values as arguments"
            )

    def _mapped_pullback(self, wanted: Sequence[bool], axes: Sequence[Axis]) -> Callable[..., Any] | None:
        """Return the pullback mapped over axes by the program of a compiled function, or None if there is no such
        program.

        Examples are independent, so the gradients of all of them are those of the mapped operation with respect to
        inputs that are repeated for each example.
        """
        count = len(wanted)
        program = self.by_program([0] * count)
        if program is None:
            return None
        mapped = Operation(program, self.name)

        def pulled(*given: Any) -> Any:
            length = next(x.shape[axis] for x, axis in zip(given, axes) if axis is not None)
            rows = [_with_examples(x, axis, length) for x, axis in zip(given, axes)]
            inputs, of_inputs = mapped._of_wanted(wanted, rows)
            outputs, pull = vjp(of_inputs, *inputs)
            self._check(outputs, rows[count + len(outputs) :], leading=1)
            return list(pull(rows[count : count + len(outputs)]))

        return pulled


def _as_tensor(leaf: Any) -> Tensor:
    return leaf if isinstance(leaf, Tensor) else Tensor(leaf)


def _with_examples(tensor: Any, axis: Axis, length: int) -> Any:
    """Return a tensor with the axis of examples first, repeating it along that axis if it has none."""
    if axis is None:
        return broadcast_to(tensor, (length, *tensor.shape))
    return moveaxis(tensor, axis, 0)


@attrs.define(eq=False)
class Evaluation:
    """The result of an operation.

    Attributes:
        inputs: tensors over the memory of the arrays.
        outputs, structure: the leaves and structure of the result.
    """

    inputs: list[Tensor]
    outputs: list[Tensor]
    structure: Structure

    def arrays(self) -> list[Array]:
        """Return the outputs as arrays that nothing else refers to."""
        return arrays_of(self.outputs)

    def tree(self, leaves: Sequence[Any]) -> Any:
        """Return the result with other leaves."""
        return unflatten(self.structure, leaves)

    def gradients(self, cotangents: Sequence[Array | None]) -> list[Array | None]:
        """Return the gradients of the inputs: None if not requested, zeros if unused."""
        seeds = [
            Tensor(np.asarray(c), dtype=out.dtype) if c is not None and out.requires_grad else None
            for out, c in zip(self.outputs, cotangents)
        ]
        wanted = [x if x.requires_grad else None for x in self.inputs]
        found = pull_back(self.outputs, seeds, wanted, retain_graph=True)
        return [
            None if x is None else np.zeros(x.shape, x.dtype) if each is None else np.array(each._array)
            for x, each in zip(wanted, found)
        ]


def samples_of(tensors: Sequence[Tensor], leading: int = 0) -> list[Array]:
    """Return evenly spread elements of each floating-point tensor, at most 64, for each index of the leading axes."""
    rows = [np.asarray(each._array) for each in tensors if each.dtype.kind in "fc"]
    rows = [row.reshape((*row.shape[:leading], -1)) for row in rows]
    return [row[..., :: max(1, row.shape[-1] // 64)][..., :64].copy() for row in rows]


def _alike(samples: Sequence[Array], others: Sequence[Array]) -> bool:
    return len(samples) == len(others) and all(
        one.shape == other.shape
        and np.allclose(one, other, rtol=1e-6 if one.dtype.char in "dD" else 1e-2, atol=0, equal_nan=True)
        for one, other in zip(samples, others)
    )


def _leads_elsewhere(tensors: Sequence[Tensor], inputs: Sequence[Tensor]) -> bool:
    """Return whether histories lead to a leaf without passing through the given inputs."""
    seen = {node_of(current_edge(x)) for x in inputs}
    stack = [node_of(current_edge(x)) for x in tensors]
    while stack:
        node = stack.pop()
        if node is None or node in seen:
            continue
        if type(node) is AccumulateGrad:
            return True
        seen.add(node)
        stack.extend(map(node_of, node.edges))
    return False


def arrays_of(tensors: Sequence[Tensor]) -> list[Array]:
    """Return the values of tensors as unshared arrays: their own memory if nothing else refers to it, otherwise copies.
    """
    return [_own(tensor) for tensor in tensors]


def _own(tensor: Tensor) -> Array:
    array = tensor._array
    is_alone = tensor._view is None and tensor._saved is None and tensor._storage is None
    if is_alone and type(array) is np.ndarray and array.base is None and array.flags.writeable:
        return array
    return np.array(array)
