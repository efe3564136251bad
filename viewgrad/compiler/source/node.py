"""A call of a program from source as one step of the graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from ...autograd.api import grad as eager_grad
from ...errors import FreedGraphError
from ...tensor.modes import enable_grad
from ...tensor.node import MANY, Node, OptionalEdge, numbered
from ...tensor.storage import save
from ...tensor.tensor import Tensor, current_edge, edge_to, from_array, tensor_like

__all__ = ["SourceBackward", "outputs_of"]


class _Given:
    """An input that is no tensor."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class SourceBackward(Node):
    """The step of a call.

    Attributes:
        edges: one for each input that is differentiated.
        outputs: the number of outputs.
        program: the program.
        numbers: of these inputs.
        saved: the inputs as they were: saved tensors, or what else they are.
        given: the arrays that the program got.
        borrowed: for each of these, whether it is the memory of a tensor.
        pullback: gives gradients once; None after that, and once it was released.
        tapes: runs the program again.
        replay: runs the function eagerly.
    """

    __slots__ = ("borrowed", "edges", "given", "numbers", "outputs", "program", "pullback", "replay", "saved", "tapes")

    kind: ClassVar[int] = MANY
    whole: ClassVar[bool] = True

    outputs: int  # type: ignore[misc]
    program: Any
    numbers: Sequence[int]
    saved: Any
    given: Any
    borrowed: list[bool]
    pullback: Any
    tapes: Any
    replay: Callable[[dict[int, Any]], Any]

    def apply(self, grad: Any, edges: tuple[OptionalEdge, ...]) -> tuple[Any, ...]:
        """The gradients along `edges`."""
        if self.saved is None:
            raise self._freed()
        seeds = (grad,) if self.outputs == 1 else grad
        arrays = [each.array if type(each) is not _Given else each.value for each in self.saved]
        unchanged = all(
            not borrowed or now is given for borrowed, now, given in zip(self.borrowed, arrays, self.given)
        )
        pullback, self.pullback = self.pullback, None
        try:
            found = self._pulled(pullback if unchanged else None, arrays, seeds)
        except Exception:  # by the function itself
            return self._by_replay(seeds, edges)
        by_number = dict(zip(self.program.wanted, found))
        return tuple([
            None if edge is None or number not in by_number else np.asarray(by_number[number])
            for number, edge in zip(self.numbers, edges)
        ])

    def _pulled(self, pullback: Any, arrays: list[Any], seeds: Sequence[Any]) -> Any:
        """The gradients of the inputs; the program runs again first if its run is not at hand."""
        with np.errstate(all="ignore"):
            if pullback is None:
                own = [np.array(each, order="C") if isinstance(each, np.ndarray) and each.ndim else
                       each[()] if isinstance(each, np.ndarray) else each for each in arrays]
                _, pullback = self.tapes.run(self.program, own)
            return pullback(*seeds)

    def _by_replay(self, seeds: Sequence[Any], edges: tuple[OptionalEdge, ...]) -> tuple[Any, ...]:
        """The gradients by the function itself, run eagerly."""
        given = tuple([None if seed is None else from_array(np.asarray(seed)) for seed in seeds])
        found = self.apply_recorded(given[0] if self.outputs == 1 else given, edges)
        return tuple([None if each is None else each.detach()._array for each in found])

    def apply_recorded(self, grad: Any, edges: tuple[OptionalEdge, ...]) -> tuple[Any, ...]:
        """The gradients by the function itself, run eagerly, which can be differentiated in turn."""
        if self.saved is None:
            raise self._freed()
        grads = (grad,) if self.outputs == 1 else grad
        tensors: dict[int, Any] = {
            number: each.value.copy() for number, each in enumerate(self.saved)
            if type(each) is _Given and isinstance(each.value, np.ndarray)
        }
        for number, each in enumerate(self.saved):
            if type(each) is not _Given and number not in self.numbers:
                tensors[number] = tensor_like(each, None)
        for number, edge in zip(self.numbers, self.edges):
            tensors[number] = tensor_like(self.saved[number], edge)
        with enable_grad():
            outputs = self.replay(tensors)
            pairs = [(o, g) for o, g in zip(outputs, grads) if g is not None and isinstance(o, Tensor)
                     and o.requires_grad]
            wanted = [tensors[number] for number, edge in zip(self.numbers, edges) if edge is not None]
            if not pairs or not wanted:
                return (None,) * len(edges)
            found = iter(
                eager_grad([o for o, _ in pairs], wanted, [g for _, g in pairs], create_graph=True, allow_unused=True)
            )
        return tuple([None if edge is None else next(found) for edge in edges])

    def kept(self) -> list[tuple[str, Any]]:
        """The inputs."""
        return [] if self.saved is None else [("inputs", [each for each in self.saved if type(each) is not _Given])]

    def release(self) -> None:
        """Let go of what the gradient needs."""
        self.saved = self.given = self.pullback = None

    def _freed(self) -> FreedGraphError:
        return FreedGraphError(
            "a compiled call was differentiated a second time, after its values were released; say "
            "retain_graph=True the first time"
        )


def outputs_of(
    program: Any, tensors: Sequence[Tensor], has_history: Sequence[bool], values: Sequence[Any], given: Sequence[Any],
    pullback: Any, tapes: Any, replay: Callable[[dict[int, Any]], Any],
) -> list[Tensor]:
    """The results of a program as tensors, with one step for their history.

    Arguments:
        program: the program.
        tensors: its results.
        has_history: for each of them, whether it depends on an input that is differentiated.
        values: its inputs, as the caller gave them.
        given: its inputs, as arrays and numbers.
        pullback: gives gradients of inputs from those of results, once.
        tapes: runs the program.
        replay: runs the function eagerly.
    """
    node = numbered(SourceBackward)
    node.numbers = list(program.wanted)
    node.edges = tuple([current_edge(values[number]) for number in node.numbers])
    node.outputs = len(tensors)
    node.program = program
    node.given = given
    node.saved = [save(value) if type(value) is Tensor else _Given(given[n]) for n, value in enumerate(values)]
    node.borrowed = [type(value) is Tensor and given[n] is value._array and n not in program.mutated
                     for n, value in enumerate(values)]
    node.pullback = pullback
    node.tapes = tapes
    node.replay = replay
    found = list(tensors)
    for number, history in enumerate(has_history):
        if history:
            found[number]._edge = edge_to(node, number)
    return found
