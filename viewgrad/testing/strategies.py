"""Hypothesis strategies for tensors, views, indices and whole programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

import viewgrad

from ..operators.language.spec import Operator
from ..tensor.tensor import Tensor
from ..type_aliases import Array
from .functions import ProgramFunction, function_of, function_of_tensors
from .generator import ProgramGenerator
from .indices import index_value
from .program import Program
from .view_strategies import array_indices as nested_array_indices
from .view_strategies import basic_indices as drawn_basic_indices
from .view_strategies import view_ops

Draw = Callable[..., Any]
LAYOUTS = ("C", "F", "reversed", "with gaps", "with an offset")


@st.composite
def tensors(
    draw: Draw,
    *,
    shape: tuple[int, ...] | st.SearchStrategy[tuple[int, ...]] | None = None,
    dtype: Any = np.float64,
    layouts: Sequence[str] = LAYOUTS,
    elements: st.SearchStrategy[Any] | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Draw tensors in various memory layouts.

    Arguments:
        shape: the shape, or a strategy of shapes; up to three short dimensions if omitted.
        dtype: the dtype.
        layouts: some of "C", "F", "reversed", "with gaps", "with an offset".
        elements: a strategy for the elements; if omitted, numbers between -2 and 2, or other values valid for the
            dtype.
        requires_grad: whether the tensors are leaves that require grad.

    Example:
        >>> import viewgrad as vg
        >>> from hypothesis import given
        >>> from viewgrad.testing import tensors
        >>> @given(tensors(shape=(2, 3), requires_grad=True))
        ... def test_exp(x):
        ...     assert vg.exp(x).requires_grad
    """
    if shape is None:
        shape = st.lists(st.integers(0, 4), max_size=3).map(tuple)
    size = draw(shape) if isinstance(shape, st.SearchStrategy) else shape
    kind = np.dtype(dtype).kind
    numbers: st.SearchStrategy[Any] = {"b": st.booleans(), "i": st.integers(-9, 9), "u": st.integers(0, 9)}.get(
        kind, st.floats(-2, 2, width=32)
    )
    if kind == "c":
        numbers = st.builds(complex, numbers, numbers)
    count = int(np.prod(size))
    drawn = draw(st.lists(numbers if elements is None else elements, min_size=count, max_size=count))
    array = np.array(drawn, dtype).reshape(size)
    layout = draw(st.sampled_from(list(layouts)))
    tensor: Tensor = viewgrad.from_numpy(_laid_out(array, layout))
    return tensor.requires_grad_() if requires_grad else tensor


def _laid_out(array: Array, layout: str) -> Array:
    """Return the values in the given memory layout."""
    if layout == "F":
        return np.array(array, order="F")
    if layout == "reversed":
        return np.asarray(np.flip(np.flip(array).copy()))
    if layout == "with gaps":
        return np.asarray(np.stack([array, array], -1)[..., 0])
    if layout == "with an offset":
        return np.asarray(np.stack([array, array])[1, ...])
    return array


@st.composite
def views_of(draw: Draw, tensor: Tensor, *, most: int = 2) -> Tensor:
    """Draw views of a tensor: slices, transposed and reshaped views, and views of these.

    Arguments:
        tensor: the tensor.
        most: the maximum number of nested views.

    Example:
        >>> import viewgrad as vg
        >>> from hypothesis import given
        >>> from viewgrad.testing import views_of
        >>> @given(views_of(vg.zeros((2, 3))))
        ... def test_a_view_shares_memory(view):
        ...     assert view.dtype == float
    """
    view = tensor
    for _ in range(draw(st.integers(1, most))):
        op = draw(view_ops(view._array, None, complex=False))
        if op.copies:
            break
        view = eval(op.source("view"), {"view": view, "np": np})
    return view


def basic_indices(shape: tuple[int, ...]) -> st.SearchStrategy[Any]:
    """Draw indices of integers, slices, None and `...` for a tensor of the given shape.

    Example:
        >>> from hypothesis import given
        >>> import viewgrad as vg
        >>> from viewgrad.testing import basic_indices
        >>> @given(basic_indices((2, 3)))
        ... def test_index(index):
        ...     vg.zeros((2, 3))[index]
    """
    return drawn_basic_indices(shape)


def array_indices(shape: tuple[int, ...]) -> st.SearchStrategy[Any]:
    """Draw indices that contain an array of integers or bools, for a tensor of the given nonempty shape.

    Example:
        >>> from hypothesis import given
        >>> import viewgrad as vg
        >>> from viewgrad.testing import array_indices
        >>> @given(array_indices((2, 3)))
        ... def test_index(index):
        ...     vg.zeros((2, 3))[index]
    """
    return nested_array_indices(shape, ()).map(lambda index: index_value(index, _no_names))


def _no_names(name: str) -> Array:
    raise LookupError(name)


@st.composite
def programs(
    draw: Draw,
    *,
    max_steps: int = 16,
    complex: bool = True,
    functions: Sequence[ProgramFunction | Operator | Callable[..., Any]] = (),
) -> Program:
    """Draw programs that take views of tensors and write to them in any order, and compute a real number.

    The programs are differentiable and smooth at their leaves, so that finite differences are accurate.

    Arguments:
        max_steps: the maximum number of steps, not counting those that combine tensors into the result.
        complex: whether complex tensors occur.
        functions: your own functions: operators, `Function` classes, or functions of tensors (use `functools.partial`
            for options). Each program calls at least one of them, and its result depends on it. Operands are between
            0.2 and 1.5; pass a `ProgramFunction` to specify another domain.

    Example:
        >>> from hypothesis import given
        >>> from viewgrad.testing import check_program, programs
        >>> @given(programs())
        ... def test_gradients(program):
        ...     check_program(program)
    """
    own = tuple(_as_function(function) for function in functions)
    writer = ProgramGenerator(draw, complex=complex, functions=own)
    for _ in range(draw(st.integers(1, 3))):
        writer.draw_leaf()
    for _ in range(draw(st.integers(1, max_steps))):
        writer.draw_step()
    return writer.finish(writer.use(draw(st.sampled_from(own))) if own else ())


def _as_function(function: Any) -> ProgramFunction:
    if isinstance(function, ProgramFunction):
        return function
    found = function_of(function) if isinstance(function, Operator) else None
    return found if found is not None else function_of_tensors(function)
