"""The engine: runs the backward graph.

Nodes run in decreasing order of their creation, which is an order in which every node has its whole gradient when its
turn comes, so that no count of dependencies is needed. See Note [Four kinds of nodes] and Note [Who owns a gradient] in
docs/notes/engine.md.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from heapq import heappop, heappush
from operator import attrgetter
from sys import getrefcount
from typing import Any, Final

import numpy as np

from ..errors import GradientMismatchError, HookError
from ..tensor.modes import ANOMALY, FORWARD, GRAD, MODE, current_mode
from ..tensor.node import ONE, OVERWRITE, SCATTER, AccumulateGrad, Edge, Node, NodeHooks, input_nr_of, node_of
from ..tensor.tensor import Tensor, from_array
from ..views.nodes import ViewBackward

__all__ = ["TASKS", "GraphTask", "RunHook", "run_backward"]

Array = np.ndarray[Any, Any]
ndarray: Final = np.ndarray
np_add: Final = np.add


class GraphTask:
    """One run of the engine.

    Attributes:
        retain: whether saved values are kept for another run.
        recorded: whether the run itself is recorded, with tensors for gradients instead of arrays.
        exec_info: which nodes must run, with the edges that must be followed from each; None for all of them.
        captures: the gradients to be returned, by node and input number; filled in as they arrive.
        captured: the nodes for which there is an entry in `captures`.
        buffers: the gradients that have arrived at nodes that have not run yet.
        ready: a heap of those nodes.
        owned: in a recorded run, the nodes whose buffer was made by the engine and has been shown to nobody.
        seen: the gradients that nodes were run with whose hooks are to be shown them afterwards.
        watched: what the hooks that wait for several gradients have seen so far; None where they wait no more.
    """

    __slots__ = (
        "buffers",
        "captured",
        "captures",
        "exec_info",
        "owned",
        "ready",
        "recorded",
        "retain",
        "seen",
        "watched",
    )

    def __init__(self, *, retain: bool, recorded: bool) -> None:
        self.retain = retain
        self.recorded = recorded
        self.exec_info: dict[Node, tuple[Any, ...]] | None = None
        self.captures: dict[tuple[Node, int], Any] = {}
        self.captured: set[Node] = set()
        self.buffers: dict[Node, Any] = {}
        self.ready: list[tuple[int, Node]] = []
        self.owned: set[Node] = set()
        self.seen: dict[Node, tuple[Any, ...]] = {}
        self.watched: dict[RunHook, list[Tensor | None] | None] = {}

    # -- what must run -------------------------------------------------------------------------------------------------

    def restrict(self, roots: Sequence[Any], inputs: Sequence[Any], capture: bool) -> None:
        """Run only the nodes that lie on a way from `roots` to `inputs`, all of them edges.

        Arguments:
            roots: where the run starts.
            inputs: where it is to lead.
            capture: whether the gradients of the inputs are returned; leaves among them accumulate otherwise.
        """
        targets = {node_of(edge) for edge in inputs}
        for edge in inputs:
            if capture or type(edge) is not AccumulateGrad:
                self.captured.add(node_of(edge))
                self.captures[node_of(edge), input_nr_of(edge)] = None
        restricted = any(type(edge) is not AccumulateGrad for edge in inputs)
        seen = {node_of(edge) for edge in roots}
        stack = list(seen)
        while stack:
            for edge in stack.pop().edges:
                if edge is not None:
                    if type(edge) is Edge:
                        edge = edge.node
                    if edge not in seen:
                        seen.add(edge)
                        if edge.sequence_nr:
                            stack.append(edge)
                        elif edge not in targets:
                            restricted = True
        if not restricted:  # every way through the graph ends at one of the inputs
            return
        # A node can be decided when all that its edges lead to have been: they have smaller numbers.
        exec_info: dict[Node, tuple[Any, ...]] = {}
        for node in sorted(seen, key=attrgetter("sequence_nr")):
            edges = node.edges
            needed = 0
            for edge in edges:
                if edge is not None:
                    if type(edge) is Edge:
                        edge = edge.node
                    if edge in targets:
                        needed += 1
            if needed:
                targets.add(node)
                if needed < len(edges):
                    edges = tuple(edge if edge is not None and node_of(edge) in targets else None for edge in edges)
                exec_info[node] = edges
            elif node in targets and node not in self.captured:
                exec_info[node] = edges
        self.exec_info = exec_info

    def captured_gradient(self, edge: Any) -> Tensor | None:
        """The gradient captured for `edge`, as a tensor whose memory nobody else holds."""
        grad = self.captures[node_of(edge), input_nr_of(edge)]
        if grad is None:
            return None
        if self.recorded:
            alone = getrefcount(grad) <= HELD_ALONE and grad._view is None and grad._storage is None
            return grad if alone else grad.clone()  # type: ignore[no-any-return]
        if type(grad) is not ndarray or grad.base is not None or getrefcount(grad) > HELD_ALONE:
            grad = np.array(grad)
        return from_array(grad)

    # -- the run -------------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Run every node that is ready, and those that become so; then let the leaves accumulate."""
        buffers = self.buffers
        ready = self.ready
        exec_info = self.exec_info
        captured = self.captured if exec_info is not None else ()
        plain = not self.recorded
        retain = self.retain
        owned = self.owned
        edges: tuple[Any, ...]
        while ready:
            node: Any = heappop(ready)[1]
            grad = buffers.pop(node)
            while True:  # one node after another, for as long as the next is newer than all that are ready
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
                        held = buffers.get(edge)
                        if type(held) is ndarray and held.base is None and getrefcount(held) <= HELD_ALONE:
                            node.add_to(held, grad)
                        else:
                            held = None
                            self._scatter(node, grad, edge)
                        held = None
                    else:
                        self._scatter(node, grad, edge)
                    break
                if kind == ONE:
                    edges = ()  # it has nothing to leave out
                else:
                    edges = node.edges if exec_info is None else exec_info[node]
                    if kind == OVERWRITE and edges[0] is not None:
                        if not plain:
                            if node not in owned:
                                grad = grad.clone()
                        elif grad.base is not None or getrefcount(grad) > LOCAL_ALONE or type(grad) is not ndarray:
                            grad = np.array(grad, order=node.layout[2])
                if plain:
                    grads = node.apply(grad, edges) if retain else node.consume(grad, edges)
                else:
                    grads = node.apply_recorded(grad, edges)
                    if not retain:
                        node.release()
                if node.hooks is not None and node.hooks.after:
                    grads = self._after(node, grads)
                if kind == ONE:
                    grad = grads
                    node = node.edge if exec_info is None else exec_info[node][0]
                elif len(edges) == 2:  # the usual case
                    edge, node = edges
                    g, grad = grads
                    grads = None  # so that nothing but `g` and `grad` holds them
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

    def _deliver_all(self, edges: Sequence[Any], grads: Sequence[Any], overwritten: bool) -> tuple[Any, Any]:
        """Deliver what a node has made, but for the gradient of the newest node; return that node and its gradient."""
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

    def deliver(self, edge: Any, grad: Any, owned: bool = False) -> None:
        """Add `grad` to what has arrived along `edge`; `owned` says that nobody else holds it."""
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
                buffers[edge] = held + grad
                self.owned.add(edge)
        elif held.dtype != grad.dtype:
            buffers[edge] = held + grad
        elif type(held) is ndarray and held.base is None and getrefcount(held) <= HELD_ALONE:
            np_add(held, grad, held)
        elif owned:
            buffers[edge] = np_add(held, grad, grad)
        elif 0 in held.strides and held.size > 1 and all(not b for a, b in zip(held.strides, grad.strides) if not a):
            # Broadcast both, as sums give them: what they repeat is summed, and repeated again.
            part = tuple([slice(None) if stride else slice(1) for stride in held.strides])
            buffers[edge] = np.broadcast_to(held[part] + grad[part], held.shape)
        else:
            buffers[edge] = held + grad

    def _deliver_to_output(self, edge: Edge, grad: Any) -> None:
        node = edge.node
        grads = self.buffers.get(node)
        if grads is None:
            grads = self.buffers[node] = [None] * node.outputs
            heappush(self.ready, (-node.sequence_nr, node))
        held = grads[edge.input_nr]
        grads[edge.input_nr] = grad if held is None else held + grad

    # -- views ---------------------------------------------------------------------------------------------------------

    def _scatter(self, node: Any, grad: Any, edge: Any) -> None:
        """Let a view add its gradient to its window of the accumulator that `edge` leads to."""
        if type(edge) is Edge:
            accumulator = self._zeros(node)
            self._add_to(node, accumulator, grad)
            self._deliver_to_output(edge, accumulator)
        else:
            self._add_to(node, self._accumulator(edge, node), grad)

    def _scatter_alone(self, node: Any, grad: Any, edge: Any) -> None:
        """The same with an accumulator of its own, for the sake of hooks that are to be shown it."""
        accumulator = self._zeros(node)
        self._add_to(node, accumulator, grad)
        grads = self._after(node, (accumulator,))
        if grads[0] is not None:
            self.deliver(edge, grads[0])

    def _add_to(self, node: Any, accumulator: Any, grad: Any) -> None:
        if self.recorded:
            node.add_to_recorded(accumulator, grad)
        else:
            node.add_to(accumulator, grad)

    def _zeros(self, node: Any) -> Any:
        accumulator = np.zeros(*node.layout)
        return from_array(accumulator) if self.recorded else accumulator

    def _accumulator(self, edge: Any, node: Any) -> Any:
        """A gradient for `edge`, whose forward value `node` is a view of, that may be written to in place."""
        path = [node]  # the view, and those that it was taken from, which get no accumulators of their own sizes
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
        while path:
            edge, inner = inner, path.pop()
            window = edge.window(accumulator)
            accumulator = self._owned(edge, inner) if window is None else window
        return accumulator

    def _owned(self, edge: Node, node: Any) -> Any:
        """The gradient held for `edge` itself, made where there is none, or copied where others hold it too."""
        buffers = self.buffers
        held = buffers.get(edge)
        if held is None:
            held = buffers[edge] = self._zeros(node)
            number = edge.sequence_nr
            if number:
                heappush(self.ready, (-number, edge))
            self.owned.add(edge)
        elif self.recorded:
            if edge not in self.owned:
                held = buffers[edge] = held.clone()
                self.owned.add(edge)
        elif held.base is not None or getrefcount(held) > HELD_ALONE or type(held) is not ndarray:
            held = buffers[edge] = np.array(held, order=node.layout[2])
        return held

    # -- hooks, captures, leaves ---------------------------------------------------------------------------------------

    def _before(self, node: Node, grad: Any) -> Any:
        """Run the hooks that come before `node`, and capture what was asked for; None where the node need not run."""
        grads = [grad] if node.outputs == 1 else grad
        hooks = node.hooks
        self.owned.discard(node)  # hooks and captures have seen it
        if hooks is not None:
            for number in {**hooks.tensor, **hooks.retained}:
                if grads[number] is not None:
                    grads[number] = self._through_tensor_hooks(hooks, number, grads[number])
        if node in self.captured:
            for number in range(node.outputs):
                if (node, number) in self.captures:
                    self.captures[node, number] = grads[number]
            if self.exec_info is not None and node not in self.exec_info:
                return None
        if hooks is not None:
            for prehook in tuple(hooks.before.values()):
                shown = tuple(self._show(g) for g in grads)
                grads = self._replaced(prehook, prehook(shown), shown, grads, node)
            if all(g is None for g in grads):
                return None
            if hooks.after:
                self.seen[node] = tuple(grads)
        return grads[0] if node.outputs == 1 else grads

    def _through_tensor_hooks(self, hooks: NodeHooks, number: int, grad: Any) -> Any:
        for hook in tuple(hooks.tensor.get(number, {}).values()):
            shown = self._show(grad)
            if isinstance(hook, RunHook):
                hook.arrived(self, shown)
                continue
            replaced: Any = hook(shown)
            if isinstance(replaced, tuple | list):
                raise HookError(f"{hook_name(hook)} returned {type(replaced).__name__}, not a Tensor or None")
            (grad,) = self._replaced(hook, None if replaced is None else (replaced,), (shown,), (grad,), None)
        retained = hooks.retained.get(number)
        if retained is not None:
            tensor = retained()
            if tensor is not None:
                add_to_grad(tensor, grad, self.recorded, alone=False)
        return grad

    def _after(self, node: Node, grads: Any) -> Any:
        """Run the hooks that come after `node`, which has made `grads`. What is returned is the engine's own."""
        single = type(grads) is not tuple
        inputs = (grads,) if single else grads
        outputs = tuple(self._show(g) for g in self.seen.pop(node))
        assert node.hooks is not None
        for hook in tuple(node.hooks.after.values()):
            shown = tuple(self._show(g) for g in inputs)
            inputs = tuple(self._replaced(hook, hook(shown, outputs), shown, inputs, node))
        return inputs[0] if single else inputs

    def _show(self, grad: Any) -> Tensor | None:
        """A gradient as the tensor that a hook sees. It may write to it: no other gradient shares its memory."""
        if grad is None:
            return None
        return grad.clone() if self.recorded else from_array(np.array(grad))

    def _replaced(
        self, hook: Any, returned: Any, shown: tuple[Any, ...], grads: Sequence[Any], node: Node | None
    ) -> list[Any]:
        """The gradients after a hook: what it returned, or what it wrote to what it was shown, or what they were."""
        if returned is None:
            returned = shown
        elif not isinstance(returned, tuple | list):
            returned = (returned,)
        if len(returned) != len(grads):
            where = "" if node is None else f" of {node.name()}"
            raise HookError(f"{hook_name(hook)}{where} returned {len(returned)} gradients instead of {len(grads)}")
        results = []
        for new, old, grad in zip(returned, shown, grads, strict=True):
            if new is old and (old is None or not old._version):
                results.append(grad)
            elif new is None:
                results.append(None)
            elif not isinstance(new, Tensor):
                raise HookError(f"{hook_name(hook)} returned {type(new).__name__} where a Tensor or None is wanted")
            elif old is None:
                raise HookError(f"{hook_name(hook)} returned a gradient in place of None, which is none at all")
            elif new.shape != old.shape or new.dtype != old.dtype:
                raise GradientMismatchError(
                    f"{hook_name(hook)} returned a gradient of shape {new.shape} and dtype {new.dtype} in place of "
                    f"one of shape {old.shape} and dtype {old.dtype}"
                )
            else:  # a copy, since the hook may have kept it, and may write to it later
                results.append(new.clone() if self.recorded else np.array(new._array))
        return results

    def finish(self) -> None:
        """Let the leaves that were reached accumulate their gradients, or capture those that were asked for.

        All hooks that come before have run when the first leaf accumulates, so that an error in one of them leaves
        every leaf as it was.
        """
        buffers = self.buffers
        captured = self.captured
        hooked = [node for node in buffers if node.hooks is not None or node in captured]
        for node in hooked:
            grad = self._before(node, buffers.pop(node))
            if grad is not None and node not in captured:
                buffers[node] = grad
            grad = None
        reached = [node for node in hooked if node in buffers]
        for node in list(buffers):
            grad = buffers.pop(node)
            if type(node) is AccumulateGrad:
                accumulate(node, grad, self.recorded)
        grad = None
        for node in reached:
            if node.hooks is not None:
                tensor = node.variable  # type: ignore[attr-defined]
                for hook in tuple(node.hooks.accumulated.values()):
                    hook(tensor)
                if node.hooks.after:
                    self._after(node, ())
        for run_hook, grads in tuple(self.watched.items()):
            if grads is not None:
                run_hook.finished(grads)


# Which other engine runs the graph under a bit of the mode.
TASKS: Final[dict[int, type[GraphTask]]] = {}


class RunHook:
    """A tensor hook that is told in which run a gradient arrives, and when the run ends; see `GraphTask.watched`."""

    __slots__ = ()

    def arrived(self, task: GraphTask, grad: Any) -> None:
        """Called with each gradient; cannot replace it."""
        raise NotImplementedError

    def finished(self, grads: list[Tensor | None]) -> None:
        """Called at the end of a run, with what has been kept in `task.watched`, unless that is None by then."""
        raise NotImplementedError


def hook_name(hook: Any) -> str:
    """What to call a hook in a message."""
    return f"the hook {getattr(hook, '__qualname__', None) or type(hook).__name__}"


def accumulate(node: AccumulateGrad, grad: Any, recorded: bool) -> None:
    """Add `grad` to the `grad` of the leaf of `node`, in place where nobody else can see it."""
    tensor = node.variable
    if tensor is None:
        return
    if recorded:
        alone = grad._view is None and grad._storage is None and getrefcount(grad) <= ARGUMENT_ALONE
    else:
        alone = type(grad) is ndarray and grad.base is None and getrefcount(grad) <= ARGUMENT_ALONE
    add_to_grad(tensor, grad, recorded, alone)


def add_to_grad(tensor: Tensor, grad: Any, recorded: bool, alone: bool) -> None:
    """Add `grad`, which `alone` says that nobody else holds, to the `grad` of `tensor`."""
    with accumulating:
        held = tensor.grad
        if recorded:
            if held is not None:
                grad = held + grad
            elif not alone:
                grad = grad.clone()
            tensor._grad = grad
        elif held is None:
            tensor._grad = from_array(grad if alone else np.array(grad, dtype=tensor._array.dtype))
        elif (
            getrefcount(held) <= GRAD_ALONE
            and held._storage is None
            and held._saved is None
            and held._edge is None
            and getrefcount(held._array) <= ATTRIBUTE_ALONE
        ):
            np_add(held._array, grad, held._array)
        else:
            tensor._grad = from_array(np.asarray(held._array + grad))


def run_backward(
    edges: Sequence[Any],
    grads: Sequence[Tensor],
    *,
    retain_graph: bool,
    create_graph: bool,
    inputs: Sequence[Any] | None = None,
    capture: bool = False,
) -> list[Any]:
    """Run the engine from `edges` with the gradients `grads`.

    Arguments:
        edges: where to start.
        grads: the gradient for each of them.
        retain_graph: whether saved values are kept for another run.
        create_graph: whether the run is recorded.
        inputs: the edges to which the run is restricted; None for the whole graph.
        capture: whether the gradients of `inputs` are returned, rather than accumulated in the leaves.

    Returns:
        The captured gradients, None where no gradient arrived.
    """
    mode = current_mode()
    # Inside a dual level gradients have tangents, so they are tensors there too.
    recorded = create_graph or bool(mode & FORWARD)
    task = (TASKS[ANOMALY] if mode & ANOMALY else GraphTask)(retain=retain_graph, recorded=recorded)
    if inputs is not None:
        task.restrict(edges, inputs, capture)
    token = MODE.set(mode | GRAD if create_graph else mode & ~GRAD)
    try:
        for edge, grad in zip(edges, grads, strict=True):
            if task.exec_info is None or node_of(edge) in task.exec_info or node_of(edge) in task.captured:
                task.deliver(edge, grad if recorded else grad._array)
        task.run()
        task.finish()
        if inputs is None:
            return []
        return [task.captured_gradient(edge) if node_of(edge) in task.captured else None for edge in inputs]
    finally:
        MODE.reset(token)


accumulating: Final = threading.Lock()


def _reference_counts() -> tuple[int, int, int, int, int]:
    """The reference counts of an object that nobody else holds, in the places where this module looks at them."""

    class Probe:
        held: Any

    def local() -> int:
        grad = Probe()
        return getrefcount(grad)

    def held_in_buffer(buffers: dict[int, Any]) -> int:
        held = buffers.get(0)
        return getrefcount(held)

    def argument() -> int:
        buffers = {0: Probe()}
        grad = buffers.pop(0)
        return _inner_argument(grad)

    def held_as_attribute() -> tuple[int, int]:
        tensor, inner = Probe(), Probe()
        tensor.held = inner
        inner.held = Probe()
        del inner
        held = tensor.held
        return getrefcount(held), getrefcount(held.held)

    return (local(), held_in_buffer({0: Probe()}), argument(), *held_as_attribute())


def _inner_argument(grad: Any) -> int:
    return getrefcount(grad)


LOCAL_ALONE, HELD_ALONE, ARGUMENT_ALONE, GRAD_ALONE, ATTRIBUTE_ALONE = _reference_counts()
