"""Inference mode: results of operators are never recorded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...tensor.interceptors import Call, feature
from ...tensor.modes import INFERENCE
from ...tensor.storage import SCALAR_OF_INFERENCE, storage_of
from ...tensor.tensor import is_scalar

__all__: list[str] = []


@feature(INFERENCE, Call)
def mark(call: Call, run: Callable[[], Any]) -> Any:
    """Mark the storage of the results of a call; in-place calls have no new results."""
    result = run()
    if not call.inplace:
        for output in result if type(result) is tuple else (result,):
            if is_scalar(output):
                output._storage = SCALAR_OF_INFERENCE
            else:
                storage_of(output).inference = True
    return result
