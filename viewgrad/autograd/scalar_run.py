"""The part of a run that goes over scalars: arithmetic, reads and writes of single elements.

It does what `FastTask.run` does, for first-order runs, and for those nodes only: where another comes it returns. What
makes it fast is that each branch is about objects of one class, of which the interpreter knows where their slots lie.
Gains are times of the backward pass without, divided by those with it, for a soft-DTW by cells.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any, Final

import numpy as np

from ..tensor.node import Edge
from ..tensor.ownership import ALONE_IN_BUFFER, ALONE_IN_LOCAL, getrefcount
from ..tensor.saved import RELEASED
from ..views.copy_slices import CopySlicesOfCopy
from ..views.nodes import ElementBackward
from ..views.scalar_nodes import (
    NEGATED_TIMES,
    NEGATIVE,
    OVER_SELF,
    PRODUCT,
    QUOTIENT,
    SUM,
    TIMES_RESULT,
    ScalarOfOne,
    ScalarOfTwo,
    read_node,
)

__all__ = ["run_scalars"]

ndarray: Final = np.ndarray
float64: Final = np.float64


def run_scalars(task: Any, node: Any, grad: Any) -> tuple[Any, Any]:  # noqa: C901 - see the first lines
    """Run `node`, and the nodes that come after it, as long as they are about scalars, or copies into parts of arrays.

    Arguments:
        task: the run, which is not recorded, and captures the gradients of leaves only.
        node: a node that has been taken out of the heap; None for the newest that is in it.
        grad: its gradient, a number.

    Returns:
        The first node that is not about scalars, with its whole gradient; None twice where nothing is left to be run.
    """
    buffers = task.buffers
    ready = task.ready
    consumed = not task.retain
    exec_info = task.exec_info
    if node is None:
        node = heappop(ready)[1]
        grad = buffers.pop(node)
    kind: Any = type(node)
    # Who looks at the count of what is in `held` has just got it from `buffers`; where another one looks, it is None.
    held: Any = None
    while True:
        if kind is ScalarOfTwo:
            if type(grad) is not float64 or node.hooks is not None:
                return node, grad
            form = node.rule.form
            if exec_info is None:
                edge = node.edge0
                other = node.edge1
            else:
                edge, other = exec_info[node]
            second: Any = None
            if form == PRODUCT:
                number = node.saved_other
                if number is RELEASED:
                    return node, grad  # which raises the error
                if other is not None:
                    second = grad * node.saved_self
                if edge is not None:
                    grad = grad * number
                if consumed:
                    node.saved_self = node.saved_other = RELEASED
            elif form == QUOTIENT:
                number = node.saved_other
                if number is RELEASED:
                    return node, grad
                if other is not None:
                    second = -grad * (node.saved_result / number) if grad else grad
                if edge is not None and grad:
                    grad = grad / number
                if consumed:
                    node.saved_other = node.saved_result = RELEASED
            else:  # it has saved nothing itself, but what it has taken in may have
                if (type(edge) is tuple and edge[2] is RELEASED) or (type(other) is tuple and other[2] is RELEASED):
                    return node, grad
                second = grad if form == SUM else -grad
            # A read adds to the gradient that is collected for its base, if there is one, without waiting for its turn:
            # whatever else the read has a part in adds the rest later. Half of the nodes never see the heap: 1.2
            if type(other) is ElementBackward and other.hooks is None:
                held = buffers.get(other.edge)
                if type(held) is ndarray and held.base is None and getrefcount(held) <= ALONE_IN_BUFFER:
                    held[other.index] += second
                    other = None
            elif type(other) is tuple:
                other, rule, number, index, layout = other
                if rule is not None:
                    form = rule.form
                    if form == NEGATIVE:
                        second = -second
                    elif second:
                        if form == NEGATED_TIMES:
                            second = -(second * number)
                        elif form == TIMES_RESULT:
                            second = second * number
                        elif form == OVER_SELF:
                            second = second / number
                        else:
                            second = -(second / number)
                    if consumed and number is not None:
                        node.edge1 = (other, rule, RELEASED, index, layout)
                if layout is not None:
                    held = buffers.get(other)
                    if type(held) is ndarray and held.base is None and getrefcount(held) <= ALONE_IN_BUFFER:
                        held[index] += second
                        other = None
                    else:
                        other = read_node(other, index, layout, node.sequence_nr - 0.375)
            if type(edge) is ElementBackward and edge.hooks is None:
                held = buffers.get(edge.edge)
                if type(held) is ndarray and held.base is None and getrefcount(held) <= ALONE_IN_BUFFER:
                    held[edge.index] += grad
                    edge = None
            elif type(edge) is tuple:
                edge, rule, number, index, layout = edge
                if rule is not None:
                    form = rule.form
                    if form == NEGATIVE:
                        grad = -grad
                    elif grad:
                        if form == NEGATED_TIMES:
                            grad = -(grad * number)
                        elif form == TIMES_RESULT:
                            grad = grad * number
                        elif form == OVER_SELF:
                            grad = grad / number
                        else:
                            grad = -(grad / number)
                    if consumed and number is not None:
                        node.edge0 = (edge, rule, RELEASED, index, layout)
                if layout is not None:
                    held = buffers.get(edge)
                    if type(held) is ndarray and held.base is None and getrefcount(held) <= ALONE_IN_BUFFER:
                        held[index] += grad
                        edge = None
                    else:
                        edge = read_node(edge, index, layout, node.sequence_nr - 0.875)
            if other is None:
                node = edge
            elif edge is None:
                node = other
                grad = second
            else:
                position = edge.sequence_nr
                number = other.sequence_nr
                if number > position:
                    node = other
                    other = edge
                    grad, second = second, grad
                    number = position
                else:
                    node = edge
                held = buffers.get(other)
                if type(held) is float64:
                    buffers[other] = held + second
                elif held is None and type(other) is not Edge:
                    buffers[other] = second
                    if number:
                        heappush(ready, (-number, other))
                else:
                    held = None
                    task.deliver(other, second)
        elif kind is ScalarOfOne:
            if type(grad) is not float64 or node.hooks is not None:
                return node, grad
            form = node.rule.form
            if form == NEGATIVE:
                grad = -grad
            elif form == OVER_SELF:
                number = node.saved_self
                if number is RELEASED:
                    return node, grad
                if grad:
                    grad = grad / number
                if consumed:
                    node.saved_self = RELEASED
            else:
                number = node.saved_result
                if number is RELEASED:
                    return node, grad
                if grad:
                    grad = grad * number
                if consumed:
                    node.saved_result = RELEASED
            node = node.edge
        elif kind is ElementBackward:
            if type(grad) is not float64 or node.hooks is not None:
                return node, grad
            edge = node.edge
            held = buffers.get(edge)
            if type(held) is ndarray and held.base is None and getrefcount(held) <= ALONE_IN_BUFFER:
                held[node.index] += grad
            else:
                held = None
                task.add_to_base(node, grad, edge)
            node = None
        elif kind is CopySlicesOfCopy:
            held = None  # which may be the gradient of a moment ago
            if (
                type(grad) is not ndarray
                or grad.base is not None
                or getrefcount(grad) > ALONE_IN_LOCAL
                or node.hooks is not None
                or node.like is not None
            ):
                return node, grad
            second = grad[node.index]
            if exec_info is None:
                edge = node.edge0
                other = node.edge1
            else:
                edge, other = exec_info[node]
            if type(second) is ndarray:
                held = second
                second = None if other is None else held.copy()
                if edge is not None:
                    held.fill(0.0)
                held = None  # it must not hold the gradient any longer
            elif edge is not None:
                grad[node.index] = 0.0
            node = other
            if edge is not None:
                if edge in buffers or type(edge) is Edge:
                    task.deliver(edge, grad, owned=True)
                else:
                    buffers[edge] = grad
                    number = edge.sequence_nr
                    if number:
                        heappush(ready, (-number, edge))
            grad = second
        else:
            return node, grad
        # On to the newest of the nodes that wait, past the heap where that is `node`.
        if node is not None:
            kind = type(node)
            if kind is ElementBackward and node.hooks is None:
                held = buffers.get(node.edge)
                if type(held) is ndarray and held.base is None and getrefcount(held) <= ALONE_IN_BUFFER:
                    held[node.index] += grad
                    kind = None
            if kind is not None:
                position = node.sequence_nr
                if position and kind is not Edge and (not ready or position > -ready[0][0]):
                    continue
                held = buffers.get(node)
                if type(held) is float64 and type(grad) is float64:
                    buffers[node] = held + grad
                elif held is None and kind is not Edge:
                    buffers[node] = grad
                    if position:
                        heappush(ready, (-position, node))
                else:
                    held = None
                    task.deliver(node, grad)
            grad = None
        if not ready:
            return None, None
        node = heappop(ready)[1]
        grad = buffers.pop(node)
        kind = type(node)
