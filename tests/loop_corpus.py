"""The corpus of loop programs that tests share: functions, strategies for their arguments, and tags."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import compiled_programs
import numpy as np
import textbook_loops
import user_loops

import viewgrad as vg

__all__ = ["CORPUS", "LoopProgram", "chosen", "leaves"]

# Programs whose control flow depends on values, so that they run eagerly or are traced again for some arguments.
STEERED = {
    *("hard_viterbi", "smith_waterman", "masked_filter", "neighbours", "picked", "stopped_early", "counted"),
    "lu_pivoting",
}
# Programs whose arguments must be in row-major order, since they use strides or do not compile for other orders.
ROW_ORDER = {"attention_causal", "game_of_views"}
# One program of each kind, for tests that run for seconds per program.
SHORT = {"rows", "shifted_in_place", "forward_algorithm", "listed", "soft_dtw"}


class LoopProgram(NamedTuple):
    """A program of the corpus.

    Arguments:
        function: takes tensors or arrays, and returns a scalar.
        draw: returns the arguments for a generator of random numbers and a size, which some programs ignore.
        tags: "textbook", "users" or "compiler", after its module; "sized" if its arguments have the requested size; and
            "steered", "row order" or "short".
    """

    function: Callable[..., Any]
    draw: Callable[[np.random.Generator, int], Sequence[Any]]
    tags: frozenset[str]


def _tagged(function: Callable[..., Any], *tags: str) -> frozenset[str]:
    lists = {"steered": STEERED, "row order": ROW_ORDER, "short": SHORT}
    return frozenset([*tags, *[tag for tag, names in lists.items() if function.__name__ in names]])


def _of_any_size(draw: Callable[[np.random.Generator], Sequence[Any]]) -> Callable[..., Sequence[Any]]:
    return lambda rng, size: draw(rng)


CORPUS = {
    **{
        f"{source}_{function.__name__}": LoopProgram(function, _of_any_size(draw), _tagged(function, source))
        for source, programs in (("compiler", compiled_programs.PROGRAMS), ("textbook", textbook_loops.LOOPS))
        for function, draw in programs.items()
    },
    **{
        f"users_{function.__name__}": LoopProgram(function, draw, _tagged(function, "users", "sized"))
        for function, draw in user_loops.LOOPS.items()
    },
}


def chosen(*tags: str, but: Sequence[str] = ()) -> list[str]:
    """Return the names of the programs that have all of some tags, and none of others."""
    return [name for name, each in CORPUS.items() if each.tags.issuperset(tags) and not each.tags.intersection(but)]


def leaves(name: str, seed: int, size: int = 5, dtype: Any = float, layout: str = "rows") -> list[Any]:
    """Return arguments of a program: leaves, and arrays of integers and bools.

    Arguments:
        name: the name of the program.
        seed: the seed of the random numbers.
        size: the size, for programs whose arguments have one.
        dtype: the dtype of real numbers.
        layout: "rows", "columns", or "gaps" between elements that are in the opposite order.
    """
    made = []
    for given in CORPUS[name].draw(np.random.default_rng(seed), size):
        array = np.asarray(given)
        if array.dtype.kind != "f" and "sized" not in CORPUS[name].tags:
            made.append(array)
            continue
        array = np.asarray(array, dtype)
        if layout == "columns":
            tensor = vg.Tensor(np.ascontiguousarray(array.T)).T
        elif layout == "gaps" and array.ndim:
            room = np.zeros(tuple(2 * n for n in array.shape), dtype)
            parts = tuple(slice(None, None, -2) for _ in array.shape)
            room[parts] = array
            tensor = vg.Tensor(room)[parts]
        else:
            tensor = vg.Tensor(array)
        made.append(tensor.detach().requires_grad_())
    return made
