"""Anomaly detection: nodes record where they were created, and a run that fails or produces NaN reports it.

In this mode the graph is run by `AnomalyTask`, the plain engine with a check of every gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import AnomalyError
from ...tensor.creation_sites import RUNNING, note, origin
from ...tensor.interceptors import Call, feature
from ...tensor.modes import ANOMALY, CHECK_NAN, ModeSwitch, SwitchAtOnce, current_mode
from ...tensor.node import Node, OptionalEdge
from ..engine import GraphTask


class detect_anomaly(ModeSwitch):
    """Find the operation whose backward failed or created a NaN gradient.

    Nodes created inside the block record their source location. If a node fails in a backward pass inside the block,
    the error has a note with the traceback of the forward call that created the node. If the node was created by an
    earlier, recorded backward pass, the note also shows the node that ran then, and so on. This mode is slow and meant
    for debugging.

    Arguments:
        check_nan: whether a NaN gradient is an error as well.

    Raises:
        AnomalyError: from a backward pass inside the block, if a node creates a NaN gradient.

    Example:
        >>> import math, viewgrad as vg
        >>> x = vg.Tensor([0.0, 1.0], requires_grad=True)
        >>> with vg.autograd.detect_anomaly():
        ...     y = vg.square(x) * math.inf
        ...     y.sum().backward()
        Traceback (most recent call last):
        viewgrad.errors.AnomalyError: SquareBackward computed a gradient of its input 0 that is NaN at 1 of 2 ...
    """

    def __init__(self, check_nan: bool = True) -> None:
        super().__init__(on=ANOMALY | (CHECK_NAN if check_nan else 0), off=0 if check_nan else CHECK_NAN)


class set_detect_anomaly(SwitchAtOnce):
    """Enable or disable anomaly detection; as a context manager, restore the previous setting on exit.

    Arguments:
        mode: whether to enable it.
        check_nan: whether a NaN gradient is an error as well.
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        on = (ANOMALY if mode else 0) | (CHECK_NAN if mode and check_nan else 0)
        super().__init__(on=on, off=(ANOMALY | CHECK_NAN) & ~on)


def is_anomaly_enabled() -> bool:
    """Return whether anomaly detection is enabled."""
    return bool(current_mode() & ANOMALY)


def is_anomaly_check_nan_enabled() -> bool:
    """Return whether anomaly detection is enabled and treats NaN gradients as errors."""
    return bool(current_mode() & CHECK_NAN)


@feature(ANOMALY, Call)
def remember(call: Call, run: Callable[[], Any]) -> Any:
    """Record the source location of a call on the nodes that it creates."""
    result = run()
    for node in (call.node, call.history):
        if node is not None:
            note(node)
    return result


class AnomalyTask(GraphTask):
    """A run of the plain engine that checks every gradient."""

    __slots__ = ()

    def propagate(self, node: Node, grads: list[Any], edges: tuple[OptionalEdge, ...]) -> tuple[Any, ...]:
        """Return the checked gradients of a node's inputs after its post-hooks."""
        made = super().propagate(node, grads, edges)
        if current_mode() & CHECK_NAN:
            _check(node, grads, made, edges)
        return made

    def gradients(self, node: Any, grad: Any, edges: tuple[OptionalEdge, ...]) -> tuple[Any, ...]:
        """Return the gradients of a node's inputs; errors state where the node was created."""
        token = RUNNING.set(node)
        try:
            return super().gradients(node, grad, edges)
        except Exception as error:
            error.add_note(f"in the backward pass, {node.name()} failed. {origin(node)}")
            raise
        finally:
            RUNNING.reset(token)


def _check(node: Node, grads: list[Any], made: tuple[Any, ...], edges: tuple[OptionalEdge, ...]) -> None:
    for i, (g, edge) in enumerate(zip(made, edges, strict=True)):
        if g is None or edge is None:
            continue
        bad = _count_nan(g)
        if bad:
            given = any(_count_nan(other) for other in grads if other is not None)
            was = " (its incoming gradient was NaN already)" if given else ""
            raise AnomalyError(
                f"{node.name()} computed a gradient of its input {i} that is NaN at {bad} of {g.size} elements{was}. "
                f"{origin(node)}"
            )


def _count_nan(grad: Any) -> int:
    array = getattr(grad, "_array", grad)
    return int(np.isnan(array).sum()) if array.dtype.kind in "fc" else 0
