"""`Gradient`: a graph and its reverse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from ..trace.graph import Graph


@attrs.define(eq=False)
class Gradient:
    """A graph and its reverse.

    The outputs of `f` are those of the differentiated graph, followed by *temporaries* that `df` needs. The inputs of
    `df` are gradients ("vjps") of outputs of `f`, including temporaries, followed by captured values. Its outputs are
    gradients of inputs of `f`. An undefined gradient, None, is known to be zero.

    Arguments:
        f: the graph, with temporaries among its outputs.
        df: the reverse.
        f_real_outputs: the number of outputs of the original graph.
        df_input_vjps: the outputs of `f` whose gradients are the first inputs of `df`, by number and in order.
        df_input_captured_inputs: the inputs of `f` that are the next inputs of `df`.
        df_input_captured_outputs: the outputs of `f` that are the last inputs of `df`.
        df_output_vjps: the inputs of `f` whose gradients are the outputs of `df`.
    """

    f: Graph
    df: Graph
    f_real_outputs: int
    df_input_vjps: tuple[int, ...]
    df_input_captured_inputs: tuple[int, ...]
    df_input_captured_outputs: tuple[int, ...]
    df_output_vjps: tuple[int, ...]

    def df_inputs(self, inputs: Sequence[Any], outputs: Sequence[Any], grads: Sequence[Any]) -> list[Any]:
        """Return the inputs of `df`.

        Arguments:
            inputs: the inputs of `f`.
            outputs: the outputs of `f`, including temporaries.
            grads: the gradients of the outputs of `f`, or of the first of them; None if undefined.
        """
        arriving = [*grads, *[None] * (len(outputs) - len(grads))]
        return [
            *[arriving[number] for number in self.df_input_vjps],
            *[inputs[number] for number in self.df_input_captured_inputs],
            *[outputs[number] for number in self.df_input_captured_outputs],
        ]
