"""The default engine: the plain engine of `engine.py` with optimizations.

Each shortcut is numbered where it is taken, with its reason and its gain. The gain is the time of a backward pass
without it, divided by the time with it, measured on

- C: a chain of 1000 multiplications of 4 numbers (all shortcuts together: 2.4 times as fast as the plain engine),
- R: 800 rows of 1000 numbers, each read, doubled and written to a table of its own (350 times),
- S: the sum of the 800 rows of an 800 x 1000 table (760 times),
- L: five operators on a million numbers (1.2 times).

The gains in hundreds grow with the number of rows: without these shortcuts the engine is quadratic. See also
Note [Ownership of gradients] in docs/notes/engine.md.

The file is long because `run` is one loop, with the gain of each shortcut beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Any, Final

import attrs
import numpy as np

from ..tensor.node import (
    GATHER,
    ONE,
    OVERWRITE,
    PAIR,
    SCATTER,
    AccumulateGrad,
    Edge,
    Node,
    OptionalEdge,
    input_nr_of,
    node_of,
)
from ..tensor.refcounts import (
    ALONE_AS_ARGUMENT,
    ALONE_AS_GRAD,
    ALONE_IN_BUFFER,
    ALONE_IN_LOCAL,
    ALONE_IN_SLOT,
    getrefcount,
)
from ..tensor.saved_windows import address_of
from ..tensor.tensor import Tensor, as_buffered, from_array, held_grad, is_scalar
from ..type_aliases import Array
from ..views.copy_slices import CopySlicesOfCopy
from ..views.view_nodes import ViewBackward
from .engine import Gradient, GraphTask, ViewNode
from .hook_runner import accumulating
from .scalar_engine import run_scalars

ndarray: Final = np.ndarray
float64: Final = np.float64
np_add: Final = np.add
DEEP: Final = 8  # the depth of nested views from which caching their windows pays


@attrs.frozen
class AccumulatorWindow:
    """The window of a view in the accumulator of `root`, whose layout is that of `outermost`."""

    root: Node
    outermost: ViewNode
    root_strides: tuple[int, ...]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int

    @staticmethod
    def of(window: Array, root: Node, outermost: ViewNode, accumulator: Array) -> AccumulatorWindow:
        """Return the location of a window in an accumulator."""
        offset = address_of(window) - address_of(accumulator)
        return AccumulatorWindow(root, outermost, accumulator.strides, window.shape, window.strides, offset)


class FastTask(GraphTask):
    """A run of the engine that uses the shortcuts.

    Attributes:
        buffers: as in the plain engine, except that a node with one output has the gradient itself instead of a list.
        owned: in a recorded run, the nodes whose buffer was created by the engine and is not visible elsewhere.
        windows_in_root: for views deep in a chain of views, their windows in the accumulator of the outermost base.
        is_deep: whether the run has followed such a chain before.
    """

    __slots__ = ("owned", "windows_in_root", "is_deep")

    def __init__(self, *, retain: bool, recorded: bool) -> None:
        # Repeated here instead of called: the backward pass of one node takes only a few microseconds.
        self.retain = retain
        self.recorded = recorded
        self.exec_info = None
        self.captures = {}
        self.captured = set()
        self.buffers = {}
        self.ready = []
        self.seen = {}
        self.watched = {}
        self.owned: set[Node] = set()
        self.windows_in_root: dict[Node, AccumulatorWindow] = {}
        self.is_deep = False

    # -- the run -------------------------------------------------------------------------------------------------------

    def run(self) -> None:  # noqa: C901 - a call for each step would cost more than the step
        """Run every node that is ready, and every node that becomes ready."""
        buffers = self.buffers
        ready = self.ready
        exec_info = self.exec_info
        captured = self.captured if exec_info is not None else ()
        plain = not self.recorded
        retain = self.retain
        owned = self.owned
        scalars = plain and (not captured or all(type(node) is AccumulateGrad for node in captured))
        edges: tuple[Any, ...]
        node: Any
        while ready:
            if scalars and type(ready[0][1]) is CopySlicesOfCopy:
                node, grad = run_scalars(self, None, None)  # (10)
                if node is None:
                    break
            else:
                node = heappop(ready)[1]
                grad = buffers.pop(node)
            while True:
                if scalars and type(grad) is float64:
                    # (10) a separate loop for arithmetic on scalars, with its reads and writes: 2.1 for a soft-DTW
                    node, grad = run_scalars(self, node, grad)
                    if node is None:
                        break
                # (1) bypass the heap while the next node is newer than all waiting ones: C 1.4
                if node.hooks is not None or (captured and node in captured):
                    grad = self._before(node, grad)
                    if grad is None:
                        break
                kind = node.kind
                if kind == SCATTER:
                    edge = node.edge if exec_info is None else exec_info[node][0]
                    if node.hooks is not None and node.hooks.after:
                        self._scatter_alone(node, grad, edge)
                    elif plain:
                        # (2) a view adds its gradient to its window of the one accumulator of its base: S 540, R 180
                        held = buffers.get(edge)
                        if type(held) is ndarray and held.base is None and getrefcount(held) <= ALONE_IN_BUFFER:
                            node.add_to(held, grad)
                        else:
                            held = None
                            self.add_to_base(node, grad, edge)
                        held = None
                    else:
                        self.add_to_base(node, grad, edge)
                    break
                if kind == ONE:
                    edges = ()  # there is nothing to skip
                elif kind == PAIR and exec_info is None:
                    edges = (node.edge0, node.edge1)  # (11) avoid the property `edges`: C 1.05
                else:
                    edges = node.edges if exec_info is None else exec_info[node]
                    if kind == GATHER:
                        self._gather(node, grad, edges[0])
                        break
                    if kind == OVERWRITE and edges[0] is not None:
                        # (3) a write to a part modifies its gradient in place if nothing else refers to it: R 110
                        if not plain:
                            if node not in owned:
                                grad = grad.clone()
                        elif grad.base is not None or getrefcount(grad) > ALONE_IN_LOCAL or type(grad) is not ndarray:
                            grad = np.array(grad, order=node.layout[2])
                if plain:
                    grads = node.apply(grad, edges) if retain else node.consume(grad, edges)
                else:
                    grads = node.apply_recorded(grad, edges)
                    if not retain:
                        node.release()
                if node.hooks is not None and node.hooks.after:
                    grads = self._after(node, grads)
                if kind == ONE:  # (4) no tuple of edges, none of gradients, no loop
                    grad = grads
                    node = node.edge if exec_info is None else exec_info[node][0]
                elif len(edges) == 2:  # (4) the usual case, without a loop: C 1.6
                    edge, node = edges
                    g, grad = grads
                    grads = None  # only `g` and `grad` refer to them now
                    if edge is not None and g is not None:
                        if kind == OVERWRITE:
                            self.deliver(edge, g, owned=True)
                        elif node is None or grad is None:
                            node = edge
                            grad = g
                        else:
                            if edge.sequence_nr > node.sequence_nr:
                                edge, node = node, edge
                                g, grad = grad, g
                            self.deliver(edge, g)
                    g = None
                else:
                    node, grad = self._deliver_all(edges, grads, kind == OVERWRITE)
                grads = None
                if grad is None or node is None:
                    break
                number = node.sequence_nr
                if not number or type(node) is Edge or (ready and -ready[0][0] >= number):
                    self.deliver(node, grad)
                    break
            grad = None

    def run_node(self, node: Any) -> None:
        """Run one node, and queue its gradients: `run` without shortcuts (1), (4), (10) and (11).

        Profiles use it to time each node.
        """
        grad = self.buffers.pop(node)
        if node.hooks is not None or node in self.captured:
            grad = self._before(node, grad)
            if grad is None:
                return
        hooks = node.hooks
        edges = node.edges if self.exec_info is None else self.exec_info[node]
        if node.kind in (SCATTER, GATHER):
            self._gather(node, grad, edges[0])
            return
        overwrites = node.kind == OVERWRITE
        if overwrites and edges[0] is not None:
            if self.recorded:
                if node not in self.owned:
                    grad = grad.clone()
            elif grad.base is not None or getrefcount(grad) > ALONE_IN_LOCAL or type(grad) is not ndarray:
                grad = np.array(grad, order=node.layout[2])
        if self.recorded:
            grads = node.apply_recorded(grad, edges)
            if not self.retain:
                node.release()
        else:
            grads = node.apply(grad, edges) if self.retain else node.consume(grad, edges)
        del grad
        if hooks is not None and hooks.after:
            grads = self._after(node, grads)
        if type(grads) is not tuple:
            grads = (grads,)
        for number, (edge, found) in enumerate(zip(edges, grads, strict=True)):
            if edge is not None and found is not None:
                self.deliver(edge, found, owned=overwrites and not number)

    def _deliver_all(
        self, edges: Sequence[OptionalEdge], grads: Sequence[Gradient], overwritten: bool
    ) -> tuple[OptionalEdge, Gradient]:
        """Deliver the gradients of a node except the one for the newest node; return that node and its gradient."""
        node = grad = None
        if overwritten:
            if edges[0] is not None and grads[0] is not None:
                self.deliver(edges[0], grads[0], owned=True)
            edges = edges[1:]
            grads = grads[1:]
        for edge, g in zip(edges, grads, strict=True):
            if edge is None or g is None:
                continue
            if node is None:
                node = edge
                grad = g
            elif edge.sequence_nr > node.sequence_nr:
                self.deliver(node, grad)
                node = edge
                grad = g
            else:
                self.deliver(edge, g)
        return node, grad

    def deliver(self, edge: Node | Edge, grad: Gradient, owned: bool = False) -> None:
        """Add `grad` to the gradient that arrived along `edge`; if `owned`, nothing else refers to it."""
        buffers = self.buffers
        if type(edge) is Edge:
            self._deliver_to_output(edge, grad)
            return
        held = buffers.get(edge)
        if held is None:
            buffers[edge] = grad
            number = edge.sequence_nr
            if number:
                heappush(self.ready, (-number, edge))
            if owned and self.recorded:
                self.owned.add(edge)
        elif self.recorded:
            if edge in self.owned:
                held.add_(grad)
            else:
                held = buffers[edge] = held + grad
                if not is_scalar(held):
                    self.owned.add(edge)
        elif type(held) is float64 or held.dtype != grad.dtype:  # a scalar's gradient is a number, with a slow dtype
            buffers[edge] = held + grad
        elif type(held) is ndarray and held.base is None and getrefcount(held) <= ALONE_IN_BUFFER:
            np_add(held, grad, held)  # (5) summed in place if nothing else refers to the buffer: L 1.1, S 1.3
        elif owned:
            buffers[edge] = np_add(held, grad, grad)
        elif 0 in held.strides and held.size > 1 and all(not b for a, b in zip(held.strides, grad.strides) if not a):
            # (6) both broadcast, as by sums: the distinct elements are summed, then broadcast. 7 for the sum of twenty
            # sums of a million numbers
            part = tuple([slice(None) if stride else slice(1) for stride in held.strides])
            buffers[edge] = np.broadcast_to(held[part] + grad[part], held.shape)
        else:
            buffers[edge] = held + grad

    def _deliver_to_output(self, edge: Edge, grad: Gradient) -> None:
        node = edge.node
        grads = self.buffers.get(node)
        if grads is None:
            grads = self.buffers[node] = [None] * node.outputs
            heappush(self.ready, (-node.sequence_nr, node))
        held = grads[edge.input_nr]
        grads[edge.input_nr] = grad if held is None else held + grad

    # -- views ---------------------------------------------------------------------------------------------------------

    def add_to_base(self, node: ViewNode, grad: Gradient, edge: Node | Edge) -> None:
        """Add the gradient of a view to its window of the accumulator that `edge` leads to."""
        if type(edge) is Edge:
            accumulator = self.zeros(node)
            self.add_to_window(node, accumulator, grad)
            self._deliver_to_output(edge, accumulator)
        else:
            self.add_to_window(node, self._accumulator(edge, node), grad)

    def _gather(self, node: ViewNode, grad: Gradient, edge: Node | Edge) -> None:
        """Add the gradient of a read by index arrays to the elements that it read, and release the arrays."""
        if node.hooks is not None and node.hooks.after:
            self._scatter_alone(node, grad, edge)
        else:
            self.add_to_base(node, grad, edge)
        if not self.retain:
            node.release()

    def _scatter_alone(self, node: ViewNode, grad: Gradient, edge: Node | Edge) -> None:
        """Scatter the gradient of a view into a separate accumulator, which hooks may access."""
        accumulator = self.zeros(node)
        self.add_to_window(node, accumulator, grad)
        grads = self._after(node, (accumulator,))
        if grads[0] is not None:
            self.deliver(edge, grads[0])

    def _accumulator(self, edge: ViewNode, node: ViewNode) -> Gradient:
        """Return a gradient for `edge` that may be written to in place; `node` is a view of the forward value of
        `edge`.
        """
        # (7) views of views get windows of the outermost base's accumulator instead of accumulators of their own: 280
        # for S with `x[1:][i]` in place of `x[i]`
        if self.windows_in_root and edge in self.windows_in_root and edge not in self.buffers:
            window = self._taken_from_root(self.windows_in_root[edge])
            if window is not None:
                return window
        path = [node]
        while edge not in self.buffers and isinstance(edge, ViewBackward) and edge.transparent:
            if edge in self.captured:
                break
            outer = edge.edges[0] if self.exec_info is None else self.exec_info[edge][0]
            if type(outer) is Edge:
                break
            path.append(edge)
            edge = outer
        inner = path.pop()
        accumulator = self._owned(edge, inner)
        root = None
        if len(path) > DEEP and not self.recorded:
            if self.is_deep:  # caching the windows of a chain that is followed only once does not pay: 1.3 for 50 views
                root = (edge, inner, accumulator)
            self.is_deep = True
        while path:
            edge, inner = inner, path.pop()
            window = edge.window(accumulator)
            accumulator = self._owned(edge, inner) if window is None else window
            if root is not None:  # (12) repeated slicing, `rest = rest[1:]`, reads at every depth
                if window is None:
                    root = (edge, inner, accumulator)
                else:
                    self.windows_in_root[edge] = AccumulatorWindow.of(window, *root)
        return accumulator

    def _taken_from_root(self, window: AccumulatorWindow) -> Array | None:
        """Return a window of the accumulator of `window.root`; None if its layout has changed."""
        held = self._owned(window.root, window.outermost)
        if held.strides != window.root_strides or not held.flags.c_contiguous:
            return None
        return ndarray(window.shape, held.dtype, held, window.offset, window.strides)

    def _owned(self, edge: Node, node: ViewNode) -> Gradient:
        """Return the gradient for `edge` in a buffer of its own: zeros if none has arrived, a copy if it is shared."""
        buffers = self.buffers
        held = buffers.get(edge)
        if held is None:
            held = buffers[edge] = self.zeros(node)
            number = edge.sequence_nr
            if number:
                heappush(self.ready, (-number, edge))
            self.owned.add(edge)
        elif self.recorded:
            if edge not in self.owned:
                held = buffers[edge] = held.clone()
                self.owned.add(edge)
        elif type(held) is not ndarray or held.base is not None or getrefcount(held) > ALONE_IN_BUFFER:
            held = buffers[edge] = np.array(held, order=node.layout[2])  # a list comes from `run_scalars`
        return held

    # -- hooks, captures, leaves ---------------------------------------------------------------------------------------

    def _before(self, node: Node, grad: Gradient) -> Gradient:
        """Run the pre-hooks of `node` and capture requested gradients; return None if the node need not run."""
        self.owned.discard(node)  # visible to hooks and captures
        single = node.outputs == 1
        grads = self.before(node, [grad] if single else grad)
        return grads[0] if single and grads is not None else grads

    def _after(self, node: Node, grads: Any) -> Any:
        """Run the post-hooks of `node` on the computed `grads`; return arrays that the engine owns."""
        assert node.hooks is not None
        if type(grads) is tuple:
            return self.run_posthooks(node, node.hooks, grads)
        return self.run_posthooks(node, node.hooks, (grads,))[0]

    def captured_gradient(self, edge: Node | Edge) -> Tensor | None:
        """Return the gradient captured for `edge`, as a tensor whose memory is not shared."""
        grad = self.captures[node_of(edge), input_nr_of(edge)]
        if grad is None:
            return None
        # (8) no copy if nothing else refers to it, as below
        if self.recorded:
            alone = getrefcount(grad) <= ALONE_IN_BUFFER and grad._view is None and grad._storage is None
            return as_buffered(grad) if alone else grad.clone()
        if type(grad) is not ndarray or grad.base is not None or getrefcount(grad) > ALONE_IN_BUFFER:
            grad = np.array(grad)
        return from_array(grad)

    def finish(self) -> None:
        """Accumulate the gradients of the leaves that were reached; see the plain engine."""
        buffers = self.buffers
        captured = self.captured
        hooked = [node for node in buffers if node.hooks is not None or node in captured]
        for node in hooked:
            grad = self._before(node, buffers.pop(node))
            if grad is not None:
                buffers[node] = grad
            grad = None
        reached = [node for node in hooked if node in buffers]
        for node in list(buffers):
            grad = buffers.pop(node)
            _accumulate(node, grad, self.recorded)
        grad = None
        if reached or self.watched:
            self.finish_hooks(reached)

    def accumulate(self, tensor: Tensor, grad: Gradient) -> None:
        """Add `grad` to the `grad` of `tensor`, whose memory is not shared afterwards."""
        _add_to_grad(tensor, grad, self.recorded, alone=False)


def _accumulate(node: AccumulateGrad, grad: Gradient, recorded: bool) -> None:
    """Add `grad` to the `grad` of the leaf of `node`."""
    tensor = node.variable
    if tensor is None:
        return
    # (8) no copy if nothing else refers to it: L 1.6
    if recorded:
        alone = grad._view is None and grad._storage is None and getrefcount(grad) <= ALONE_AS_ARGUMENT
    else:
        alone = type(grad) is ndarray and grad.base is None and getrefcount(grad) <= ALONE_AS_ARGUMENT
    _add_to_grad(tensor, grad, recorded, alone)


def accumulate_alone(node: AccumulateGrad, grad: Array) -> None:
    """Add an array to the `grad` of the leaf of `node`; if it owns its memory, nothing else may refer to it."""
    tensor = node.variable
    if tensor is not None:
        _add_to_grad(tensor, grad, False, grad.base is None)


def _add_to_grad(tensor: Tensor, grad: Gradient, recorded: bool, alone: bool) -> None:
    """Add `grad` to the `grad` of `tensor`; if `alone`, nothing else refers to it."""
    with accumulating:
        held = held_grad(tensor)
        if recorded:
            if held is not None:
                grad = held + grad
            elif not alone:
                grad = grad.clone()
            tensor._grad = as_buffered(grad)
        elif held is None:
            tensor._grad = from_array(grad if alone else np.array(grad, dtype=tensor._array.dtype))
        elif (
            getrefcount(held) <= ALONE_AS_GRAD
            and held._storage is None
            and held._saved is None
            and held._edge is None
            and getrefcount(held._array) <= ALONE_IN_SLOT
        ):
            np_add(held._array, grad, held._array)  # (9) in place if only the leaf refers to it: 1.4 on a million
        else:
            tensor._grad = from_array(np.asarray(held._array + grad))
