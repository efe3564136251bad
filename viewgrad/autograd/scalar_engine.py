"""The loop of a backward pass over scalars: arithmetic, reads and writes of single elements.

It is equivalent to `FastTask.run` in first-order runs, but handles these nodes only; at any other node it returns. It
is fast because each branch handles objects of a single class, for which the interpreter caches the positions of slots.
Gains are the time of the backward pass without a shortcut, divided by the time with it, for soft-DTW computed element
by element.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any, Final

import numpy as np

from ..tensor.node import Edge
from ..tensor.refcounts import ALONE_IN_BUFFER, ALONE_IN_LOCAL, getrefcount
from ..tensor.saved import RELEASED
from ..views.copy_slices import CopySlicesOfCopy
from ..views.scalar_nodes import (
    DIFFERENCE,
    NEGATED_TIMES,
    NEGATIVE,
    OVER_SELF,
    PRODUCT,
    SUM,
    TIMES_RESULT,
    ScalarOfOne,
    ScalarOfTwo,
    read_node,
)
from ..views.view_nodes import ElementBackward

ndarray: Final = np.ndarray
float64: Final = np.float64
ZERO: Final = np.float64(0.0)
EARNED: Final = 4  # the number of elements per write of an array that is converted to a list or back


def run_scalars(task: Any, node: Any, grad: Any) -> tuple[Any, Any]:  # noqa: C901 - see the first lines
    """Run `node` and the following nodes as long as they are scalar operations, or copies into parts of arrays.

    Arguments:
        task: the run, which must not be recorded and may capture gradients of leaves only.
        node: a node taken from the heap; None for the newest one in it.
        grad: its gradient, a number.

    Returns:
        The first node that is not a scalar operation, and its whole gradient; `(None, None)` if no node is left.
    """
    buffers = task.buffers
    ready = task.ready
    consumed = not task.retain
    exec_info = task.exec_info
    if node is None:
        node = heappop(ready)[1]
        grad = buffers.pop(node)
    kind: Any = type(node)
    form: Any
    second: Any = None
    # A scalar node newer than all in the heap waits here with its gradient: 1.07 for the forecast of
    # examples/co2_forecast.py.
    next_node: Any = None
    next_grad: Any = None
    newest = -ready[0][0] if ready else 0  # the number of the newest waiting node
    # The gradient of a one-dimensional array is stored as a list while many of its elements are accessed: 1.1 for the
    # forecast. Writes earn credit for it, so conversions to lists and back never take longer than the writes.
    listed = False
    credit = enough = 0
    # A caller that compares the reference count of `held` has just taken it from `buffers`; other callers pass None.
    held: Any = None
    while True:
        if kind is ScalarOfTwo:
            if node.hooks is not None:
                break
            if exec_info is None:
                edge = node.edge0
                other = node.edge1
            else:
                edge, other = exec_info[node]
            form = node.rule.form
            if form == PRODUCT:
                number = node.saved_other
                if number is RELEASED:
                    break  # continue to the place where the error is raised
                if other is not None:
                    second = grad * node.saved_self
                if edge is not None:
                    grad = grad * number
                if consumed:
                    node.saved_self = node.saved_other = RELEASED
            elif form == SUM:
                second = grad
            elif form == DIFFERENCE:
                second = -grad
            else:
                number = node.saved_other
                if number is RELEASED:
                    break
                if other is not None:
                    second = -grad * (node.saved_result / number) if grad else grad
                if edge is not None and grad:
                    grad = grad / number
                if consumed:
                    node.saved_other = node.saved_result = RELEASED
            if other is None:
                if type(edge) is tuple:
                    edge, grad = _through(task, node, False, edge, grad)
                node = edge
                kind = type(node)
            elif edge is None:
                if type(other) is tuple:
                    other, second = _through(task, node, True, other, second)
                node = other
                grad = second
                kind = type(node)
            else:
                kind = type(edge)
                beside: Any = type(other)
                if beside is tuple:
                    other, second = _through(task, node, True, other, second)
                    beside = type(other)
                if kind is tuple:
                    edge, grad = _through(task, node, False, edge, grad)
                    kind = type(edge)
                # Continue with the newer of the two nodes. The other one waits or, if it is a read, adds its gradient.
                if edge is None or (
                    other is not None
                    and beside is not ElementBackward
                    and (kind is ElementBackward or other.sequence_nr > edge.sequence_nr)
                ):
                    node = other
                    other = edge
                    grad, second = second, grad
                    kind, beside = beside, kind
                else:
                    node = edge
                # A read adds to the gradient accumulated for its base, if any, without waiting for its turn; other
                # contributions are added later. Half of the nodes never enter the heap: 1.2
                if beside is ElementBackward and other.hooks is None:
                    held = buffers.get(other.edge)
                    form = type(held)
                    if form is list:
                        held[other.index] += second
                        other = None
                    elif form is ndarray and held.base is None and getrefcount(held) <= ALONE_IN_BUFFER:
                        held[other.index] += second
                        other = None
                if other is not None:
                    held = buffers.get(other)
                    if type(held) is float64:
                        buffers[other] = held + second
                    elif other is next_node:
                        next_grad = next_grad + second
                    elif held is None and beside is not Edge:
                        position = other.sequence_nr
                        if position > newest and next_node is None:
                            newest = position
                            next_node = other
                            next_grad = second
                        else:
                            buffers[other] = second
                            if position:
                                heappush(ready, (-position, other))
                                if position > newest:
                                    newest = position
                    else:
                        held = None
                        newest = _deliver(task, listed, next_node, next_grad, other, second)
                        listed = False
                        next_node = None
        elif kind is ScalarOfOne:
            if node.hooks is not None:
                break
            form = node.rule.form
            if form == NEGATIVE:
                grad = -grad
            elif form == OVER_SELF:
                number = node.saved_self
                if number is RELEASED:
                    break
                if grad:
                    grad = grad / number
                if consumed:
                    node.saved_self = RELEASED
            else:
                number = node.saved_result
                if number is RELEASED:
                    break
                if grad:
                    grad = grad * number
                if consumed:
                    node.saved_result = RELEASED
            node = node.edge
            kind = type(node)
        elif kind is ElementBackward:
            if node.hooks is not None:
                break
            edge = node.edge
            held = buffers.get(edge)
            form = type(held)
            if form is list:
                held[node.index] += grad
            elif form is ndarray and held.base is None and getrefcount(held) <= ALONE_IN_BUFFER:
                held[node.index] += grad
            else:
                held = None
                task.add_to_base(node, grad, edge)
                newest = -ready[0][0] if ready else 0
                if next_node is not None and next_node.sequence_nr > newest:
                    newest = next_node.sequence_nr
            node = None
        elif kind is CopySlicesOfCopy:
            held = None  # it may still be the previous gradient
            form = type(grad)
            if form is list and (type(node.index) is not int or node.hooks is not None or node.like is not None):
                grad = np.array(grad)
                form = ndarray
            if exec_info is None:
                edge = node.edge0
                other = node.edge1
            else:
                edge, other = exec_info[node]
            if form is list:
                index = node.index
                second = grad[index]
                if edge is not None:
                    grad[index] = ZERO
            else:
                if (
                    form is not ndarray
                    or grad.base is not None
                    or getrefcount(grad) > ALONE_IN_LOCAL
                    or node.hooks is not None
                    or node.like is not None
                ):
                    break
                second = grad[node.index]
                if type(second) is ndarray:
                    held = second
                    second = None if other is None else held.copy()
                    if edge is not None:
                        held.fill(0.0)
                    held = None  # drop this reference to the gradient
                else:
                    if edge is not None:
                        grad[node.index] = 0.0
                    credit += EARNED
                    if credit > enough:
                        price = grad.size + len(buffers)
                        if credit > price and grad.ndim == 1 and type(second) is float64:
                            credit -= price
                            enough = 0
                            grad = list(grad)
                            listed = True
                        else:
                            enough = 2 * credit  # so that not every array is inspected
            node = other
            kind = type(node)
            if edge is not None:
                if edge in buffers or type(edge) is Edge:
                    if type(grad) is list:
                        grad = np.array(grad)
                    newest = _deliver(task, listed, next_node, next_grad, edge, grad, owned=True)
                    listed = False
                    next_node = None
                else:
                    buffers[edge] = grad
                    position = edge.sequence_nr
                    if position:
                        heappush(ready, (-position, edge))
                        if position > newest:
                            newest = position
            grad = second
            second = None
            if node is not None and type(grad) is not float64:  # a row, or a number of another type
                if kind is not Edge and node.sequence_nr > newest:
                    if kind is CopySlicesOfCopy:
                        continue
                    break
                newest = _deliver(task, listed, next_node, next_grad, node, grad)
                listed = False
                next_node = node = None
        else:
            break
        # Continue with the newest waiting node, skipping the heap if that is `node`.
        if node is not None:
            if kind is ElementBackward and node.hooks is None:
                held = buffers.get(node.edge)
                form = type(held)
                if form is list:
                    held[node.index] += grad
                    kind = None
                elif form is ndarray and held.base is None and getrefcount(held) <= ALONE_IN_BUFFER:
                    held[node.index] += grad
                    kind = None
            if kind is not None:
                position = node.sequence_nr
                if position > newest and kind is not Edge:
                    continue
                held = buffers.get(node)
                if type(held) is float64:
                    buffers[node] = held + grad
                elif node is next_node:
                    next_grad = next_grad + grad
                elif held is None and kind is not Edge:
                    buffers[node] = grad
                    if position:
                        heappush(ready, (-position, node))
                else:
                    held = None
                    newest = _deliver(task, listed, next_node, next_grad, node, grad)
                    listed = False
                    next_node = None
            grad = None
        if next_node is not None and next_node.sequence_nr == newest:
            node = next_node
            grad = next_grad
            next_node = None
            newest = -ready[0][0] if ready else 0
            kind = type(node)
            continue
        if not ready:
            node = grad = None
            break
        node = heappop(ready)[1]
        newest = -ready[0][0] if ready else 0
        if next_node is not None and next_node.sequence_nr > newest:
            newest = next_node.sequence_nr
        grad = buffers.pop(node)
        kind = type(node)
        if type(grad) is not float64 and kind is not CopySlicesOfCopy:
            break
    _return_to_engine(task, listed, next_node, next_grad)
    if type(grad) is list and node.outputs == 1:  # for several outputs, `grad` is a list with the gradient of each
        grad = np.array(grad)
    return node, grad


def _deliver(
    task: Any, listed: bool, next_node: Any, next_grad: Any, edge: Any, grad: Any, owned: bool = False
) -> int:
    """Deliver a gradient as the engine does for any node; return the number of the newest waiting node."""
    _return_to_engine(task, listed, next_node, next_grad)
    task.deliver(edge, grad, owned)
    return -task.ready[0][0] if task.ready else 0


def _return_to_engine(task: Any, listed: bool, next_node: Any, next_grad: Any) -> None:
    """Store the state of the loop where the engine expects it."""
    if next_node is not None:
        task.buffers[next_node] = next_grad
        heappush(task.ready, (-next_node.sequence_nr, next_node))
    if listed:
        _as_arrays(task.buffers)


def _as_arrays(buffers: Any) -> None:
    """Convert the gradients that are lists back to arrays."""
    for node, held in buffers.items():
        if type(held) is list and node.outputs == 1:
            buffers[node] = np.array(held)


def _through(task: Any, node: Any, second: bool, taken: Any, grad: Any) -> tuple[Any, Any]:
    """Return the destination of an edge behind merged nodes, and the gradient that arrives there.

    The destination is None if the last merged node is a read, which has added its gradient.

    Arguments:
        task: the run.
        node: a node that has absorbed nodes.
        second: whether for its second edge.
        taken: the absorbed nodes of that edge.
        grad: its gradient.
    """
    edge, rule, number, index, layout = taken
    if rule is not None:
        form = rule.form
        if form == NEGATIVE:
            grad = -grad
        elif number is RELEASED:
            return node.edges[second], grad  # accessing `edges` raises the error
        elif grad:
            if form == NEGATED_TIMES:
                grad = -(grad * number)
            elif form == TIMES_RESULT:
                grad = grad * number
            elif form == OVER_SELF:
                grad = grad / number
            else:
                grad = -(grad / number)
        if number is not None and not task.retain:
            if second:
                node.edge1 = (edge, rule, RELEASED, index, layout)
            else:
                node.edge0 = (edge, rule, RELEASED, index, layout)
    if layout is None:
        return edge, grad
    held = task.buffers.get(edge)
    if type(held) is list:
        held[index] += grad
        return None, grad
    if type(held) is ndarray and held.base is None and getrefcount(held) <= ALONE_IN_BUFFER:
        held[index] += grad
        return None, grad
    return read_node(edge, index, layout, node.sequence_nr - (0.375 if second else 0.875)), grad
