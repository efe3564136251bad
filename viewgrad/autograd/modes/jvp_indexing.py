"""Forward mode of indexed reads and writes: tangents are read and written in the same way as values."""

from __future__ import annotations

from collections.abc import Callable

from ...tensor.forward_levels import at_level, open_levels
from ...tensor.interceptors import feature
from ...tensor.modes import FORWARD
from ...tensor.tangents import (
    check_captured,
    new_tangent,
    tangent_of,
    update_aliases,
    writable_tangent,
    write_tangents,
)
from ...tensor.tensor import Tensor
from ...views.advanced_indexing import Accumulate, Gather, Write

__all__: list[str] = []


@feature(FORWARD, Gather)
def gather_tangents(call: Gather, run: Callable[[], Tensor]) -> Tensor:
    """Read the elements and their tangents."""
    out = run()
    for level in open_levels():
        tangent = tangent_of(call.source, level)
        if tangent is not None:
            with at_level(level.outer):
                new_tangent(out, tangent[call.index], level)
    return out


@feature(FORWARD, Write)
def overwrite_tangents(call: Write, run: Callable[[], Tensor]) -> Tensor:
    """Overwrite the elements and update their tangents."""
    check_captured(call.target, (call.value,))
    out = run()
    write_tangents(call.target, call.value, call.items, call.last)
    return out


@feature(FORWARD, Accumulate)
def accumulate_tangents(call: Accumulate, run: Callable[[], Tensor]) -> Tensor:
    """Add to the elements and to their tangents."""
    check_captured(call.target, (call.value,))
    target = run()
    if target._array.dtype.kind in "fc":
        for level in open_levels():
            tangent = tangent_of(call.value, level)
            with at_level(level.outer):
                if tangent is not None:
                    writable_tangent(target, level).index_accumulate_(call.items, tangent)
                update_aliases(target, level, call.items)
    return target
