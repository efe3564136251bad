"""A viewgrad function as an operation on arrays, for libraries that record their own histories."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs
import numpy as np

from ..autograd.api import pull_back
from ..autograd.transform_inputs import Transform
from ..errors import InteropError
from ..func.transforms import vjp
from ..func.tree import Structure, flatten, unflatten
from ..tensor.creation import from_numpy
from ..tensor.modes import no_grad
from ..tensor.node import AccumulateGrad, node_of
from ..tensor.tensor import Tensor, current_edge

Array = Any


def on_leaves(function: Callable[..., Any], structure: Structure) -> Callable[..., Any]:
    """Return a function of the leaves of its arguments, which are a pair of a tuple and a dict with the given
    structure.
    """

    def call(*leaves: Any) -> Any:
        args, kwargs = unflatten(structure, leaves)
        return function(*args, **kwargs)

    return call


@attrs.define(eq=False)
class Operation:
    """A function of flat lists of arrays.

    Attributes:
        function: a function of tensors that returns a tree of tensors.
        name: the name used in messages.
    """

    function: Callable[..., Any]
    name: str

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
        outputs = [leaf if isinstance(leaf, Tensor) else Tensor(leaf) for leaf in leaves]
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

    def pullback(self, count: int, samples: Sequence[Array] | None = None) -> Operation:
        """Return the operation that maps inputs and output gradients to the gradients of floating-point inputs.

        The operation runs the function again. It raises an `InteropError` if the values differ.

        Arguments:
            count: the number of inputs.
            samples: samples of the floating-point outputs of the first run; see `samples_of`.
        """

        def pulled(*given: Any) -> Any:
            inputs, cotangents = list(given[:count]), given[count:]
            places = [n for n, x in enumerate(inputs) if x.dtype.kind in "fc"]

            def of_floats(*floats: Any) -> Any:
                for place, value in zip(places, floats):
                    inputs[place] = value
                leaves = [leaf for leaf in flatten(self.function(*inputs))[0] if leaf.dtype.kind in "fc"]
                if _leads_elsewhere(leaves, given):
                    raise self._captured()
                if samples is not None and not _alike(samples_of(leaves), samples):
                    raise InteropError(
                        f"{self.name} computed other values when it ran again for higher derivatives: it draws random "
                        "numbers, or reads state that has changed; pass such values as arguments"
                    )
                return leaves

            return list(vjp(of_floats, *[inputs[n] for n in places])[1](list(cotangents)))

        return Operation(pulled, f"gradient of {self.name}")


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


def samples_of(tensors: Sequence[Tensor]) -> list[Array]:
    """Return some elements of each floating-point tensor, at most 64, spread evenly."""
    arrays = [each._array for each in tensors if each.dtype.kind in "fc"]
    return [np.array(np.asarray(each).flat[:: max(1, each.size // 64)][:64]) for each in arrays]


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
