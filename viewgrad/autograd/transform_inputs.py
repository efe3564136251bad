"""Primals: the copies of its inputs that a transform passes to a function, and derivatives with respect to them.

A transform (`func.grad`, `autograd.functional.jacobian`, ...) runs a function once, recorded, on primals, which the
function may write to. The results are detached from the primals, but not from outside histories: those of inputs, of
captured tensors, and of an enclosing transform. The results can therefore be differentiated again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import Any, ClassVar, Final, cast

import numpy as np

from ..errors import DifferentiabilityError, FreedGraphError, GradientMismatchError
from ..tensor.escapes import DIFFERENTIATED, within_transform
from ..tensor.forward_levels import at_level, open_levels
from ..tensor.modes import FORWARD, GRAD, INFERENCE, TRACE, ModeSwitch, current_mode
from ..tensor.node import (
    ONE,
    ONE_EDGE,
    AccumulateGrad,
    Edge,
    Node,
    OptionalEdge,
    input_nr_of,
    next_sequence_nr,
    node_of,
    numbered,
)
from ..tensor.tangents import had_tangent, set_tangent, tangent_of
from ..tensor.tensor import Tensor, copy_of, current_edge, from_array, from_new_array
from ..type_aliases import Array
from ..views.scalar_nodes import ScalarOfTwo
from .batched_engine import batched_gradients, is_library_node, pays_off
from .execute import run_backward
from .shared_inputs import Inputs

FEWEST_ROWS: Final = 4  # rows of a Jacobian; fewer are not computed together
ROWS_AT_ONCE: Final = 32  # the factor by which intermediate gradients increase the memory needed
ROUNDING: Final = 0.5  # parts below this power of the machine epsilon count as zero


class PrimalBackward(Node):
    """The node of the copy of an input that a transform passes to a function, at which its gradient is captured.

    Attributes:
        over: whether the function has returned; from then on the node ends the search unless it has an edge.
    """

    __slots__ = ("edge", "over")

    kind: ClassVar[int] = ONE
    is_transform_input: ClassVar[bool] = True
    edges = ONE_EDGE

    edge: OptionalEdge
    over: bool

    def apply(self, grad: Any, edges: tuple[OptionalEdge, ...]) -> Any:
        """Return the gradient itself."""
        return grad

    consume = apply
    apply_recorded = apply


class Transform:
    """One run of a differentiated function: `with transform:` around the call.

    Arguments:
        after: the other transform, if its results determine this function.
        kind: the rules for values that escape from tensors; see tensor/escapes.py.

    Attributes:
        primals: the nodes of the primals, in order of creation.
        arrays: the values of the primals.
        inputs: the sources of these and other copies, stored before the function runs.
    """

    def __init__(self, after: Transform | None = None, kind: int = DIFFERENTIATED) -> None:
        self.primals: list[PrimalBackward] = []
        self.arrays: list[Array] = []
        self.inputs = Inputs()
        self._first: int = next_sequence_nr() if after is None else after._first
        self._switch = ModeSwitch(on=GRAD, off=INFERENCE)
        self._kind = kind
        self._extent: list[AbstractContextManager[None]] = []

    @contextmanager
    def runs(self) -> Iterator[None]:
        """A context in which the function runs: escaping values and writes to shared inputs are checked."""
        with within_transform(self._kind), self.inputs.kept_separate():
            yield

    def __enter__(self) -> Transform:
        self._switch.__enter__()
        self._extent.append(self.runs())
        self._extent[-1].__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for node in self.primals:
            node.over = True
        try:
            self._extent.pop().__exit__(kind, error, at)
        finally:
            self._switch.__exit__(kind, error, at)

    def primal(self, tensor: Tensor) -> Tensor:
        """Return a copy of `tensor` with its history, with respect to which gradients can be computed."""
        out = self.copy(tensor)
        node = numbered(PrimalBackward)
        node.edge = out._edge
        node.over = False
        out._edge = node
        self.primals.append(node)
        self.arrays.append(out._array)
        return out

    def copy(self, tensor: Tensor) -> Tensor:
        """Return a copy of an input that is not differentiated: a writable array, or a scalar."""
        with ModeSwitch(off=INFERENCE):
            return copy_of(tensor)

    @contextmanager
    def separated(self) -> Iterator[None]:
        """Treat the primals as leaves, so that a run that also requests other histories does not continue past them."""
        edges = [node.edge for node in self.primals]
        try:
            for node in self.primals:
                node.edge = None
            yield
        finally:
            for node, edge in zip(self.primals, edges, strict=True):
                node.edge = edge

    def gradients(
        self, outputs: Sequence[Tensor], cotangents: Sequence[Tensor], *, retain: bool = False, record: bool = False
    ) -> list[Tensor | None]:
        """Return the gradients of the function's results with respect to the primals; None for zero.

        Arguments:
            outputs: tensors that the function returned.
            cotangents: the gradient for each of them.
            retain: whether another run follows.
            record: whether to always record the run; the gradients then keep their whole history.
        """
        edges: list[Node | Edge] = []
        starts: list[Tensor] = []
        for output, cotangent in zip(outputs, cotangents, strict=True):
            edge = current_edge(output)
            if edge is not None:
                edges.append(edge)
                starts.append(cotangent)
        if not edges:
            self.refuse_earlier_results(outputs)
            return [None] * len(self.primals)
        recorded = record or self._recorded([*edges, *(current_edge(start) for start in starts)])
        with ModeSwitch(off=INFERENCE):
            found: list[Tensor | None] = run_backward(
                edges,
                starts,
                retain_graph=retain or recorded,
                create_graph=recorded,
                inputs=self.primals,
                capture=True,
            )
        if all(grad is None for grad in found):
            self.refuse_earlier_results(outputs)
        return [None if grad is None else self.result(grad) for grad in found] if recorded and not record else found

    def refuse_earlier_results(self, outputs: Sequence[Tensor]) -> None:
        """Raise if results that do not depend on the primals depend on the inputs of an earlier call instead."""
        if any(map(had_tangent, outputs)) or self._leads_to_earlier_calls(map(current_edge, outputs)):
            raise FreedGraphError(
                "the function returned a tensor that was stored in an earlier call and depends on the input of that "
                "call, so its derivative with respect to the current input is unknown; recompute it in each call, or "
                "store its detach() if it is a constant"
            )

    def _leads_to_earlier_calls(self, edges: Iterable[OptionalEdge]) -> bool:
        """Return whether edges lead to inputs of earlier calls of functions, and nowhere else."""
        nodes = {node_of(edge) for edge in edges if edge is not None}
        stack, found = list(nodes), False
        while stack:
            node = stack.pop()
            before = {node_of(edge) for edge in node.edges if edge is not None} - nodes
            if isinstance(node, AccumulateGrad) or node in self.primals:
                return False
            if type(node) is PrimalBackward and node.edge is None:
                if not node.over:
                    return False
                found = True
            nodes |= before
            stack += before
        return found

    def materialized(self, grads: Sequence[Tensor | None]) -> list[Tensor]:
        """Return gradients with respect to the primals, with zeros in place of None."""
        pairs = zip(grads, self.arrays, strict=True)
        return [from_new_array(np.zeros_like(array)) if grad is None else grad for grad, array in pairs]

    def _recorded(self, edges: list[OptionalEdge]) -> bool:
        """Return whether the gradients of the tensors behind these edges may be differentiated again."""
        mode = current_mode()
        # A tangent may have a history of its own.
        return bool(mode & GRAD) and (bool(mode & FORWARD) or self._leads_outside(edges))

    def reached(self, tensors: Iterable[Tensor]) -> set[int]:
        """Return the numbers of the primals that the history of any of these tensors leads to."""
        numbers = {node: number for number, node in enumerate(self.primals)}
        return {numbers[node] for node in self._histories(map(current_edge, tensors)) if node in numbers}

    def graph(self, edges: Iterable[OptionalEdge]) -> tuple[list[Node], list[Node | Edge]]:
        """Return the nodes of the run reachable from `edges`, and the edges from there to outside histories.

        The order of both depends on the run alone.
        """
        primals, nodes = set(self.primals), dict[Node, None]()
        outside: dict[tuple[Node, int], Node | Edge] = {}
        stack = [edge for edge in edges if edge is not None]
        while stack:
            edge = stack.pop()
            node = node_of(edge)
            if node in primals or node in nodes:
                continue
            if node.sequence_nr >= self._first:
                nodes[node] = None
                before = node.ends if type(node) is ScalarOfTwo else node.edges
                stack.extend([each for each in before if each is not None])
            elif not (isinstance(node, AccumulateGrad) and node.variable is None):
                outside.setdefault((node, input_nr_of(edge)), edge)
        return list(nodes), list(outside.values())

    def _leads_outside(self, edges: Iterable[OptionalEdge]) -> bool:
        first = self._first
        for node in self._histories(edges):
            if node.sequence_nr < first or (type(node) is PrimalBackward and not node.over and node.edge is None):
                return True
        return False

    def _histories(self, edges: Iterable[OptionalEdge]) -> Iterator[Node]:
        """Yield the nodes of this run that are reachable from edges; the search ends at older nodes."""
        stack = [node_of(edge) for edge in edges if edge is not None]
        seen = set(stack)
        while stack:
            node = stack.pop()
            yield node
            if node.sequence_nr < self._first:
                continue
            for edge in node.ends if type(node) is ScalarOfTwo else node.edges:
                if edge is not None:
                    before = node_of(edge)
                    if before not in seen:
                        seen.add(before)
                        stack.append(before)

    def result(self, tensor: Tensor) -> Tensor:
        """Return a result for the caller: detached if its history leads only to the primals."""
        edge = current_edge(tensor)
        mode = current_mode()
        if edge is None or (mode & GRAD and self._leads_outside([edge])):
            return tensor
        if not mode & FORWARD:
            return tensor.detach()
        copied: Tensor = tensor.clone()  # the tangents may have a history that is needed
        copied._edge = None
        for level in open_levels():
            tangent = tangent_of(copied, level)
            if tangent is not None:
                with at_level(level.outer):
                    kept = self.result(tangent)
                set_tangent(copied, kept, level)
        return copied

    # -- matrices of derivatives ---------------------------------------------------------------------------------------

    def jacobian(self, output: Tensor, record: bool = False) -> list[Tensor]:
        """Return the derivative of `output` with respect to each primal, of shape `(*output.shape, *primal.shape)`, by
        rows.

        `record` is as for `gradients`.
        """
        if output._array.dtype.kind not in "fc":
            raise DifferentiabilityError(f"an output of dtype {output.dtype} has no derivative")
        rows: list[list[Tensor]] = [[] for _ in self.primals]
        if not record and self._rows_at_once(output, rows):
            return [_from_rows(row, output, array) for row, array in zip(rows, self.arrays, strict=True)]
        for direction in one_hot(output._array):
            found = self.gradients([output], [direction], retain=True, record=record)
            for row, grad in zip(rows, self.materialized(found), strict=True):
                row.append(grad)
        return [_from_rows(row, output, array) for row, array in zip(rows, self.arrays, strict=True)]

    def may_run_at_once(self, output: Tensor) -> bool:
        """Return whether the history of an output allows batched gradients: library operators only, without hooks."""
        edge = current_edge(output)
        if edge is None:
            return True
        nodes, outside = self.graph([edge])
        known = all(is_library_node(node) and node.hooks is None for node in nodes)
        return known and not outside and pays_off(edge)

    def rows_at_once(self, output: Tensor) -> list[Tensor] | None:
        """Return the result of `jacobian` if all rows can be computed at once, however few; None otherwise."""
        rows: list[list[Tensor]] = [[] for _ in self.primals]
        if current_edge(output) is None:
            shapes = [(*output.shape, *array.shape) for array in self.arrays]
            zeros = [np.zeros(shape, array.dtype) for shape, array in zip(shapes, self.arrays, strict=True)]
            return [from_array(each) for each in zeros]
        if not self._rows_at_once(output, rows, fewest=1):
            return None
        return [_from_rows(row, output, array) for row, array in zip(rows, self.arrays, strict=True)]

    def _rows_at_once(self, output: Tensor, rows: list[list[Tensor]], fewest: int | None = None) -> bool:
        """Append the rows for each primal from passes over blocks of rows; return whether that is possible."""
        edge, size = current_edge(output), output.size
        least = FEWEST_ROWS if fewest is None else fewest
        if edge is None or size < least or output.dtype.kind != "f" or not pays_off(edge):
            return False
        if self._recorded([edge]):
            return False
        nodes, outside = self.graph([edge])
        if outside:
            return False
        for start in range(0, size, ROWS_AT_ONCE):
            count = min(ROWS_AT_ONCE, size - start)
            seeds = np.zeros((count, size), output.dtype)
            seeds[np.arange(count), np.arange(start, start + count)] = 1
            found = batched_gradients(edge, seeds.reshape(count, *output.shape), self.primals, nodes)
            if found is None:
                return False
            for row, grad, array in zip(rows, found, self.arrays, strict=True):
                whole = np.zeros((count, *array.shape), array.dtype) if grad is None else grad._array
                row.extend(map(from_array, whole))
        return True


def _from_rows(rows: Sequence[Tensor], output: Tensor, array: Array) -> Tensor:
    """Return the derivative of `output` from the gradients in the directions of `one_hot(output)`."""
    found = _assembled(rows, (*output.shape, *array.shape), output.dtype, array.dtype, last=False)
    return found.conj() if output.dtype.kind == array.dtype.kind == "c" else found


def one_hot(array: Array) -> Iterator[Tensor]:
    """Yield the unit directions of each element of an array; for complex elements, along 1 and then along i."""
    for place in np.ndindex(*array.shape):
        for unit in (1, 1j) if array.dtype.kind == "c" else (1,):
            direction = np.zeros(array.shape, array.dtype)
            direction[place] = unit
            yield from_new_array(direction)


def from_columns(columns: Sequence[Tensor], output: Tensor, array: Array) -> Tensor:
    """Return the derivative of `output`, of shape `(*output.shape, *array.shape)`, from its columns.

    Arguments:
        columns: the tangents of the output in the directions of `one_hot(array)`.
        output: the output.
        array: the value of the input.
    """
    return _assembled(columns, (*output.shape, *array.shape), array.dtype, output.dtype, last=True)


def _assembled(
    parts: Sequence[Tensor], shape: tuple[int, ...], of_directions: np.dtype[Any], dtype: np.dtype[Any], last: bool
) -> Tensor:
    """Return a derivative from its rows or columns, the results for the directions of `one_hot`."""
    if of_directions.kind != "c":
        return _concatenate(parts, shape, dtype, last)
    along_real = _concatenate(parts[::2], shape, dtype, last)
    along_imaginary = _concatenate(parts[1::2], shape, dtype, last)
    if dtype.kind != "c":
        return along_real + 1j * along_imaginary
    _require_holomorphic(along_real, along_imaginary)
    return (along_real - 1j * along_imaginary) / 2


def _concatenate(parts: Sequence[Tensor], shape: tuple[int, ...], dtype: np.dtype[Any], last: bool) -> Tensor:
    """Concatenate rows or columns into one tensor."""
    if not parts:
        return from_new_array(np.zeros(shape, dtype))
    if current_mode() & (FORWARD | TRACE) or any(part._edge is not None for part in parts):
        joined: Any = np.stack(cast(Any, parts), -1 if last else 0).reshape(shape)
        return cast(Tensor, joined)
    return from_array(np.stack([part._array for part in parts], -1 if last else 0).reshape(shape))


def _require_holomorphic(along_real: Tensor, along_imaginary: Tensor) -> None:
    """Refuse a complex derivative that does not exist, given the derivatives along 1 and along i (or for cotangents 1
    and i).
    """
    a, b = along_real._array, along_imaginary._array
    tolerance = np.finfo(a.dtype).eps ** ROUNDING * max(np.abs(a).max(initial=0), np.abs(b).max(initial=0))
    if not (np.abs(a + 1j * b) <= 2 * tolerance).all():
        raise DifferentiabilityError(
            "a complex output has no complex derivative with respect to a complex input here: it is not holomorphic, "
            "since it depends on the conjugate as well; differentiate its real and its imaginary part instead"
        )


def as_gradient(value: Any, like: Tensor | Array, what: str) -> Tensor:
    """Return a gradient or tangent supplied for `like`, as a tensor of its shape and dtype.

    Raises:
        GradientMismatchError: if it has a different shape, or a dtype that cannot be converted.
    """
    grad = value if isinstance(value, Tensor) else Tensor(value)
    if grad.shape != like.shape:
        raise GradientMismatchError(
            f"{what} has shape {grad.shape}, but the tensor it belongs to has shape {like.shape}"
        )
    if grad.dtype != like.dtype:
        if not np.can_cast(grad.dtype, like.dtype, "same_kind"):
            raise GradientMismatchError(
                f"{what} has dtype {grad.dtype}, but the tensor it belongs to has dtype {like.dtype}"
            )
        grad = grad.astype(like.dtype)
    return grad


def require_differentiable(tensor: Tensor, what: str, advice: str = "convert it") -> None:
    """Raise for an input that nothing can be differentiated with respect to."""
    if tensor.dtype.kind not in "fc":
        raise DifferentiabilityError(
            f"{what} has dtype {tensor.dtype}, and derivatives exist with respect to floating-point and complex "
            f"numbers only; {advice}"
        )


def the_real_number(outputs: Sequence[Tensor], name: str, advice: str) -> Tensor:
    """Return the only output of a function, which must be a single real number.

    Arguments:
        outputs: the function's results.
        name: the name of the transform.
        advice: the alternative for other outputs.
    """
    if len(outputs) != 1 or outputs[0].size != 1 or outputs[0].dtype.kind != "f":
        outputs_text = " and ".join(f"a tensor of shape {output.shape} and dtype {output.dtype}" for output in outputs)
        raise DifferentiabilityError(
            f"{name} needs a function that returns one real number, not {outputs_text or 'nothing'}; {advice}"
        )
    return outputs[0]
