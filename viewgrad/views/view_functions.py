"""View functions, which recreate a view from an array or a tensor shaped like the base."""

from __future__ import annotations

from typing import Any, ClassVar, Final

import attrs
import numpy as np

from ..tensor.indices import composed, window_at
from .geometry import TensorGeometry

WHOLE: Final = (...,)  # the index of a view of the whole tensor


class ViewFunction:
    """A function that takes a view of its argument.

    Attributes:
        exact: whether it returns a window of any buffer and never copies.
        broadcasts: whether it repeats elements, so that their gradients add up.
    """

    __slots__ = ()

    exact: ClassVar[bool] = True
    broadcasts: ClassVar[bool] = False

    def __call__(self, base: Any) -> Any:
        """Return the view of `base`."""
        raise NotImplementedError


@attrs.define  # frozen classes would take twice as long to create, for each view
class Index(ViewFunction):
    """The view function of basic indexing.

    Arguments:
        index: an int, a slice, None, `...` or a tuple of these.
        shape: the shape of the tensor or array.
    """

    index: Any
    shape: tuple[int, ...]

    def __call__(self, base: Any) -> Any:
        return window_at(base, self.index)


@attrs.define
class Chain(ViewFunction):
    """The composition of the view functions of a view of a view."""

    steps: tuple[ViewFunction, ...]

    @property
    def exact(self) -> bool:  # type: ignore[override]
        """True if no step ever copies."""
        return all(step.exact for step in self.steps)

    def __call__(self, base: Any) -> Any:
        for step in self.steps:
            base = step(base)
        return base


@attrs.define
class Strided(ViewFunction):
    """A window by its geometry, or by replaying its view functions if the buffer has a different layout."""

    geometry: TensorGeometry
    view_fn: ViewFunction

    @property
    def exact(self) -> bool:  # type: ignore[override]
        """True if no step ever copies."""
        return self.view_fn.exact

    def __call__(self, base: Any) -> Any:
        if type(base) is np.ndarray and base.flags.c_contiguous:
            return self.geometry.window(base)
        return self.view_fn(base)


@attrs.frozen
class Permuted(ViewFunction):
    """A permutation of the dimensions."""

    order: tuple[int, ...]

    def __call__(self, base: Any) -> Any:
        return base.transpose(self.order) if self.order else base[...]


@attrs.define
class Reshaped(ViewFunction):
    """A change of shape."""

    shape: tuple[int, ...]

    exact = False

    def __call__(self, base: Any) -> Any:
        return base.reshape(self.shape)


@attrs.frozen
class Broadcast(ViewFunction):
    """A broadcast to a shape."""

    shape: tuple[int, ...]

    broadcasts = True

    def __call__(self, base: Any) -> Any:
        view = np.broadcast_to(base, self.shape)
        if type(view) is np.ndarray and base.flags.writeable:  # for parts whose elements are not contiguous
            view.flags.writeable = True
        return view


@attrs.frozen
class Diagonal(ViewFunction):
    """The diagonals of two dimensions."""

    offset: int
    axis1: int
    axis2: int

    def __call__(self, base: Any) -> Any:
        view = base.diagonal(self.offset, self.axis1, self.axis2)
        if type(view) is np.ndarray and base.flags.writeable:
            view.flags.writeable = True
        return view


@attrs.frozen
class Windows(ViewFunction):
    """The sliding windows along a dimension."""

    dim: int
    size: int
    step: int

    def __call__(self, base: Any) -> Any:
        if not isinstance(base, np.ndarray):
            return base.unfold(self.dim, self.size, self.step)
        shape = list(base.shape)
        shape[self.dim] = (shape[self.dim] - self.size) // self.step + 1
        strides = list(base.strides)
        strides[self.dim] *= self.step
        return np.lib.stride_tricks.as_strided(base, (*shape, self.size), (*strides, base.strides[self.dim]))


@attrs.frozen
class StridedWindow(ViewFunction):
    """A window by its geometry; of a copy if the buffer is not in row-major order."""

    geometry: TensorGeometry

    exact = False

    def __call__(self, base: Any) -> Any:
        geometry = self.geometry
        if not isinstance(base, np.ndarray):
            return base.contiguous().as_strided(geometry.sizes, geometry.strides, geometry.storage_offset)
        return geometry.window(np.ascontiguousarray(base))


@attrs.frozen
class RealPart(ViewFunction):
    """The real parts of complex numbers."""

    def __call__(self, base: Any) -> Any:
        return base.real


@attrs.frozen
class ImaginaryPart(ViewFunction):
    """The imaginary parts of complex numbers."""

    def __call__(self, base: Any) -> Any:
        return base.imag


@attrs.frozen
class AsReal(ViewFunction):
    """Complex numbers as pairs of real numbers."""

    def __call__(self, base: Any) -> Any:
        if not isinstance(base, np.ndarray):
            return base.view_as_real()
        parts = base[..., None].view(base.real.dtype)
        return parts


@attrs.frozen
class AsComplex(ViewFunction):
    """Pairs of real numbers as complex numbers; a copy if the two parts are not adjacent."""

    exact = False

    def __call__(self, base: Any) -> Any:
        if not isinstance(base, np.ndarray):
            return (base if lies_in_pairs(base._array) else base._contiguous_copy()).view_as_complex()
        dtype = np.result_type(base.dtype, np.complex64)
        if not base.size:  # NumPy's strides of empty arrays do not allow a view
            return np.ndarray(base.shape[:-1], dtype, base.reshape(-1))
        return (base if lies_in_pairs(base) else np.ascontiguousarray(base)).view(dtype)[..., 0]


def lies_in_pairs(array: np.ndarray[Any, Any]) -> bool:
    """Return whether neighbours in the last dimension, if any, are adjacent in memory."""
    return not array.size or array.strides[-1] == array.itemsize


def chained(steps: tuple[ViewFunction, ...], step: ViewFunction, base: np.ndarray[Any, Any]) -> ViewFunction:
    """Append a view function to others, merging them into as few steps as possible.

    Repeated transposes and reshapes therefore do not accumulate.

    Arguments:
        steps: the view functions from `base` to a view.
        step: a view function of that view.
        base: the base.

    Returns:
        The view function from `base` to the new view.
    """
    last = steps[-1]
    merged: tuple[ViewFunction, ...] | None = None
    if type(last) is Index and last.index == WHOLE:
        merged = (step,)
    elif type(step) is not type(last):
        pass
    elif type(step) is Permuted:
        order = tuple([last.order[dimension] for dimension in step.order])  # type: ignore[attr-defined]
        merged = () if order == tuple(range(len(order))) else (Permuted(order),)
    elif type(step) is Reshaped and base.flags.c_contiguous:
        merged = () if len(steps) == 1 and step.shape == base.shape else (step,)
    elif type(step) is Index:
        index = composed(last.index, step.index, last.shape)  # type: ignore[attr-defined]
        merged = None if index is None else (Index(index, last.shape),)  # type: ignore[attr-defined]
    if merged is None:
        return Chain((*steps, step))
    steps = (*steps[:-1], *merged)
    return Chain(steps) if len(steps) > 1 else steps[0] if steps else Index(WHOLE, base.shape)
