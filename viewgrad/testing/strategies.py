"""The Hypothesis strategy of programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st

from .functions import Function
from .program import Program
from .writer import Writer

__all__ = ["programs"]

Draw = Callable[..., Any]


@st.composite
def programs(
    draw: Draw,
    *,
    max_steps: int = 16,
    complex: bool = True,
    functions: Sequence[Function] = (),
) -> Program:
    """Programs that take views of tensors and write to them, in any order, and end in a real number.

    They are differentiable at their leaves, and smooth and tame there, so that finite differences can be trusted.

    Arguments:
        max_steps: how many steps they have at most, before those that combine tensors to the final number.
        complex: whether complex tensors occur.
        functions: functions of the user's own, which then occur besides those of viewgrad; see `function_of`.

    Example:
        >>> from hypothesis import given
        >>> from viewgrad.testing import check_program, programs
        >>> @given(programs())
        ... def test_gradients(program):
        ...     check_program(program)
    """
    writer = Writer(draw, complex=complex, functions=tuple(functions))
    for _ in range(draw(st.integers(1, 3))):
        writer.draw_leaf()
    for _ in range(draw(st.integers(1, max_steps))):
        writer.draw_step()
    return writer.finish()
