"""`Gradient`: a graph that was differentiated, as two graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from ..trace.graph import Graph

__all__ = ["Gradient"]


@attrs.define(eq=False)
class Gradient:
    """A graph and its reverse.

    The outputs of `f` are those of the graph that was differentiated, and then *temporaries*, which `df` needs. The
    inputs of `df` are first gradients ("vjps") of outputs of `f`, temporaries among them, then captured values. Its
    outputs are gradients of inputs of `f`. An undefined gradient, None, is known to be zero.

    Arguments:
        f: the graph, with temporaries among its outputs.
        df: the reverse.
        f_real_outputs: how many outputs the graph had before.
        df_input_vjps: the numbers of the outputs of `f` whose gradients are the first inputs of `df`, in this order.
        df_input_captured_inputs: the numbers of the inputs of `f` that are the next inputs of `df`.
        df_input_captured_outputs: the numbers of the outputs of `f` that are its last inputs.
        df_output_vjps: the numbers of the inputs of `f` whose gradients are the outputs of `df`.
    """

    f: Graph
    df: Graph
    f_real_outputs: int
    df_input_vjps: tuple[int, ...]
    df_input_captured_inputs: tuple[int, ...]
    df_input_captured_outputs: tuple[int, ...]
    df_output_vjps: tuple[int, ...]

    def df_inputs(self, inputs: Sequence[Any], outputs: Sequence[Any], grads: Sequence[Any]) -> list[Any]:
        """The inputs of `df`.

        Arguments:
            inputs: of `f`.
            outputs: of `f`, temporaries included.
            grads: a gradient for each output of `f`, or for the first of them; None if it is undefined.
        """
        arriving = [*grads, *[None] * (len(outputs) - len(grads))]
        return [
            *[arriving[number] for number in self.df_input_vjps],
            *[inputs[number] for number in self.df_input_captured_inputs],
            *[outputs[number] for number in self.df_input_captured_outputs],
        ]
