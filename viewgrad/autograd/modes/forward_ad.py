"""Forward mode: dual tensors, whose tangents every operator propagates along with their values.

Results computed from dual tensors inside a `dual_level` are dual tensors too, including those of in-place writes
through views. The tangent of a result is the derivative of the program in the direction of the given tangents: the
product of the Jacobian with a vector. Its cost is a constant multiple of that of the program.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, NamedTuple

from ...errors import DifferentiabilityError, ForwardModeError, GradientMismatchError
from ...tensor.forward_levels import LEVEL, DualLevel
from ...tensor.modes import FORWARD, GRAD, MODE, current_mode
from ...tensor.saved_windows import address_of
from ...tensor.tangents import TangentRoot, make_dual_root, shared_tangent, tangent_of
from ...tensor.tensor import Tensor, current_edge, from_array, is_scalar
from ...views.construct import make_view
from ...views.meta import DualViewMeta
from ...views.view_nodes import IndexViewBackward, ViewBackward, view_node
from .infinite_tangents import guarded_tangent

MakeDualBackward = view_node("MakeDualBackward", IndexViewBackward)
UnpackDualBackward = view_node("UnpackDualBackward", IndexViewBackward)


class UnpackedDualTensor(NamedTuple):
    """The result of `unpack_dual`.

    Arguments:
        primal: the value.
        tangent: the tangent, or None if there is none.
    """

    primal: Tensor
    tangent: Tensor | None


class dual_level:
    """Open a level in which tensors can have tangents; they are dropped at its end.

    Levels can be nested: a tangent of an inner level can have tangents of the outer levels.

    Example:
        >>> import viewgrad as vg
        >>> from viewgrad.autograd import forward_ad
        >>> with forward_ad.dual_level():
        ...     x = forward_ad.make_dual(vg.Tensor([1.0, 2.0]), vg.Tensor([1.0, 0.0]))
        ...     y = x * x
        ...     y[1] = y[0] * 3
        ...     primal, tangent = forward_ad.unpack_dual(y)
        >>> primal, tangent
        (Tensor([1., 3.]), Tensor([2., 6.]))
    """

    def __init__(self) -> None:
        self._levels: list[DualLevel] = []

    def __enter__(self) -> DualLevel:
        outer, mode = LEVEL.get(), MODE.get()
        try:
            level = enter_dual_level()
            self._levels.append(level)
            return level
        except BaseException:  # interrupted by a signal: the block is not entered, so it will not be left
            LEVEL.set(outer)
            MODE.set(mode)
            raise

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        level = self._levels.pop()
        try:
            exit_dual_level(level)
        except ForwardModeError:
            raise
        except BaseException:  # interrupted by a signal: repeating it is harmless
            if LEVEL.get() is level:
                exit_dual_level(level)
            elif level.outer is None:
                MODE.set(MODE.get() & ~FORWARD)
            raise


def enter_dual_level() -> DualLevel:
    """Open a level without a `with` block; close it with `exit_dual_level`.

    Returns:
        The level.

    Example:
        >>> from viewgrad.autograd import forward_ad
        >>> level = forward_ad.enter_dual_level()
        >>> forward_ad.exit_dual_level(level)
    """
    level = DualLevel(LEVEL.get())
    LEVEL.set(level)
    MODE.set(MODE.get() | FORWARD)
    return level


def exit_dual_level(level: DualLevel | None = None) -> None:
    """Close a level and drop all tangents made in it.

    Arguments:
        level: the level to close, which must be the innermost; by default the innermost.

    Raises:
        ForwardModeError: if no level is open, or another one is the innermost.

    Example:
        >>> from viewgrad.autograd import forward_ad
        >>> forward_ad.exit_dual_level()
        Traceback (most recent call last):
            ...
        viewgrad.errors.ForwardModeError: no dual level is open...
    """
    innermost = LEVEL.get()
    if innermost is None or level not in (None, innermost):
        raise ForwardModeError("no dual level is open" if innermost is None else "only the innermost level can be left")
    innermost.close()
    LEVEL.set(innermost.outer)
    if innermost.outer is None:
        MODE.set(MODE.get() & ~FORWARD)


def make_dual(tensor: Tensor, tangent: Tensor) -> Tensor:
    """Return a dual tensor with the value and memory of `tensor`, and a tangent.

    `tensor` itself does not get the tangent. A write to the dual tensor also writes to `tensor` and gives it a tangent,
    since its value then depends on the dual tensor.

    Arguments:
        tensor: the value, of floating-point or complex dtype; it keeps its history.
        tangent: the tangent, of the same shape and dtype. It is not copied, and never written to; its history becomes
            that of the dual tensor's tangent.

    Returns:
        The dual tensor, a view of `tensor`.

    Raises:
        ForwardModeError: if no level is open, or one of the tensors already has a tangent at this level.
        DifferentiabilityError: if the tensor has an integer or bool dtype.
        GradientMismatchError: if the tangent has a different shape or dtype.

    Example:
        >>> import viewgrad as vg
        >>> from viewgrad.autograd import forward_ad
        >>> with forward_ad.dual_level():
        ...     x = forward_ad.make_dual(vg.Tensor([1.0, 2.0]), vg.Tensor([1.0, 0.0]))
        ...     forward_ad.unpack_dual(x * x).tangent
        Tensor([2., 0.])
    """
    level = LEVEL.get()
    if level is None or not level.open:
        raise ForwardModeError("make_dual needs an open level; call it inside 'with forward_ad.dual_level():'")
    if tensor._array.dtype.kind not in "fc":
        raise DifferentiabilityError(
            f"only tensors of floating-point or complex dtype can have tangents, not {tensor._array.dtype}"
        )
    if not isinstance(tangent, Tensor):
        raise TypeError(f"the tangent must be a Tensor, not {type(tangent).__name__}")
    if tangent.shape != tensor.shape or tangent.dtype != tensor.dtype:
        raise GradientMismatchError(
            f"the tangent has shape {tangent.shape} and dtype {tangent.dtype}, but the tensor it belongs to has shape "
            f"{tensor.shape} and dtype {tensor.dtype}"
        )
    if tangent_of(tensor, level) is not None:
        raise ForwardModeError(
            "this tensor already has a tangent at this level; use unpack_dual(tensor).primal, or open a nested level"
        )
    if tangent_of(tangent, level) is not None:
        raise ForwardModeError(
            "the tangent itself has a tangent at this level, which would be lost; pass unpack_dual(tangent).primal, or "
            "open a nested level for derivatives of derivatives"
        )
    dual = _apart(tensor, MakeDualBackward)
    make_dual_root(dual, tensor, tangent, level)
    return dual


def unpack_dual(tensor: Tensor) -> UnpackedDualTensor:
    """Return the value of a tensor and its tangent at the innermost level.

    Arguments:
        tensor: any tensor.

    Returns:
        `(primal, tangent)`, where `primal` is a view of `tensor` without the tangent; `(tensor, None)` for a tensor
        without one.

    Example:
        >>> import viewgrad as vg
        >>> from viewgrad.autograd import forward_ad
        >>> with forward_ad.dual_level():
        ...     forward_ad.unpack_dual(vg.Tensor([1.0, 2.0]))
        UnpackedDualTensor(primal=Tensor([1., 2.]), tangent=None)
    """
    level = LEVEL.get()
    tangent = None if level is None else guarded_tangent(shared_tangent(tensor, level))
    if level is None or tangent is None:
        return UnpackedDualTensor(tensor, None)
    primal = _apart(tensor, UnpackDualBackward)
    make_dual_root(primal, tensor, None, level)
    return UnpackedDualTensor(primal, tangent)


def _apart(tensor: Tensor, node_class: type[ViewBackward]) -> Tensor:
    """Return `tensor` as a view with its own tangent, or none; for a scalar, a new scalar."""
    if is_scalar(tensor):
        return from_array(tensor._array, current_edge(tensor) if current_mode() & GRAD else None)
    dual = make_view(tensor, tensor._array[...], ..., None, node_class)
    plain = dual._view
    assert plain is not None
    root = TangentRoot(dual._array, plain, _is_whole(dual._array, plain.base._array))
    dual._view = DualViewMeta.of_root(root, plain)
    return dual


def _is_whole(array: Any, base: Any) -> bool:
    """Return whether `array` consists of the elements of `base`, in the same order."""
    return bool(
        array.shape == base.shape
        and array.strides == base.strides
        and array.dtype == base.dtype
        and address_of(array) == address_of(base)
    )
