"""The leaves of drawn programs: any shape, dtype and layout in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from . import program_ops as s
from .view_strategies import LARGEST_SIZE

Draw = Callable[..., Any]

LENGTHS = st.sampled_from([2, 3, 1, 4, 2, 3, 2, 3, 2, 4, 3, 2, 1, 3, 2, 0])


@st.composite
def leaves(draw: Draw, name: str, *, complex: bool = True) -> s.Leaf:
    """Return a leaf of any layout."""
    kind = draw(st.sampled_from(["f", "f", "f", "c", "i"] if complex else ["f", "f", "f", "i"]))
    ndim = draw(st.sampled_from([1, 2, 3, 2, 1, 2, 0]))
    shape = tuple(draw(LENGTHS) for _ in range(ndim))
    if np.prod(shape) > LARGEST_SIZE:
        shape = shape[:-1]
    layout = draw(st.sampled_from(["C", "F", "strided", "reversed", "foreign"] if shape else ["C", "foreign"]))
    requires_grad = kind != "i" and draw(st.sampled_from([True, True, True, False]))
    single = kind != "i" and draw(st.sampled_from([False] * 7 + [True]))
    return s.Leaf(name, shape, kind, layout, draw(st.integers(1, 6)), requires_grad, single)
