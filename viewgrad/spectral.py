"""Functions of matrices that do not depend on the choice of eigenvectors, and are differentiable at any spectrum.

Source: N. J. Higham, "Functions of Matrices" (2008), chapter 3 (the formula of Daleckii and Krein).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from .autograd.function import Function
from .errors import DifferentiabilityError
from .func.transforms import grad
from .operators.define import OPERATORS
from .tensor.creation import as_operand
from .tensor.modes import no_grad
from .tensor.tensor import Tensor, from_array, from_new_array
from .tensor.trace_hooks import composed

__all__ = ["cholesky_ex", "null_projector", "spectral_function", "spectral_projector"]

Array = Any
# the relative distance of eigenvalues below which differences are computed as integrals of a derivative
CLOSE: Final = 1e-2
# on the interval [0, 1]
NODES, WEIGHTS = (np.polynomial.legendre.leggauss(5)[0] + 1) / 2, np.polynomial.legendre.leggauss(5)[1] / 2


def cholesky_ex(A: Any, upper: bool = False) -> tuple[Any, Any]:
    """Compute the Cholesky factor, and report failure in a status code instead of raising an error.

    Arguments:
        A: Hermitian matrices, of shape (..., n, n).
        upper: whether to return the upper factor.

    Returns:
        `(factor, info)`. `info` contains integers of shape (...): 0 if the matrix is positive definite, otherwise the
        order of the first leading minor that is not. In that case the factor is NaN and no gradient flows.

    Example:
        >>> import viewgrad as vg
        >>> factor, info = vg.linalg.cholesky_ex(vg.Tensor([[1.0, 2.0], [2.0, 1.0]]))
        >>> info
        Tensor(2)
    """
    return composed("cholesky_ex", _cholesky_ex, (A, upper), {})  # type: ignore[no-any-return]


def _cholesky_ex(A: Any, upper: bool) -> tuple[Any, Any]:
    a = as_operand(A)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(f"cholesky_ex requires square matrices, not an array of shape {a.shape}")
    matrices = a._array.reshape(-1, *a.shape[-2:])
    info = np.array([_failing_minor(matrix) for matrix in matrices], int).reshape(a.shape[:-2])
    failed = (info != 0)[..., None, None]
    safe = np.where(failed, np.eye(a.shape[-1], dtype=a.dtype), a) if failed.any() else a
    factor = OPERATORS["cholesky"].function(safe, upper=upper)
    if failed.any():
        factor = np.where(failed, np.array(np.nan, a.dtype), factor)
    return factor, from_array(info[()] if info.ndim else np.array(info))


def _failing_minor(matrix: Array) -> int:
    """Return the order of the first leading minor that is not positive definite; 0 if there is none."""
    if _has_factor(matrix):
        return 0
    low, high = 0, len(matrix)  # the minor of order `low` is positive definite, the one of order `high` is not
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _has_factor(matrix[:middle, :middle]) else (low, middle)
    return high


def _has_factor(matrix: Array) -> bool:
    try:
        return bool(np.isfinite(np.linalg.cholesky(matrix)).all())
    except np.linalg.LinAlgError:
        return False


def spectral_function(A: Any, f: Callable[[Any], Any]) -> Any:
    """Apply a function to the eigenvalues of a Hermitian matrix: `V @ diag(f(w)) @ V^H`.

    Unlike the eigenvectors, the result has derivatives at repeated eigenvalues: first and second ones, in both modes.

    Arguments:
        A: matrices of shape (..., n, n), whose Hermitian part is used.
        f: a real function of one real variable. It receives a tensor of eigenvalues, must work element by element, and
            must not capture differentiable tensors. viewgrad computes its first and second derivatives.

    Returns:
        A tensor with the shape of `A`. Its trace is the sum of `f` over the eigenvalues.

    Raises:
        DifferentiabilityError: for third derivatives.

    Example:
        >>> import viewgrad as vg
        >>> root = vg.linalg.spectral_function(vg.Tensor([[4.0, 0.0], [0.0, 4.0]]), vg.sqrt)
        >>> root
        Tensor([[2., 0.],
                [0., 2.]])
    """
    a = as_operand(A)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(f"spectral_function requires square matrices, not an array of shape {a.shape}")
    if a.dtype.kind not in "fc":
        a = a.astype(float)
    return _Value.apply(f, (a + a.mT.conj()) / 2)


def spectral_projector(A: Any, low: float, high: float) -> Any:
    """Compute the projector onto the eigenvectors of a Hermitian matrix whose eigenvalues lie in an interval.

    Arguments:
        A: matrices of shape (..., n, n), whose Hermitian part is used.
        low, high: the ends of the interval, neither of which may be an eigenvalue.

    Example:
        >>> import viewgrad as vg
        >>> vg.linalg.spectral_projector(vg.Tensor([[1.0, 0.0], [0.0, 3.0]]), 2.0, 4.0)
        Tensor([[0., 0.],
                [0., 1.]])
    """
    return spectral_function(A, lambda w: np.where((w > low) & (w < high), 1.0, 0.0) + 0.0 * w)


def null_projector(A: Any, rtol: float | None = None) -> Any:
    """Compute the projector onto the null space of a matrix: `I - pinv(A) @ A`.

    The basis vectors of a null space are arbitrary and have no derivative, but the projector has one as long as the
    rank does not change.

    Arguments:
        A: matrices of shape (..., m, n).
        rtol: singular values below `rtol` times the largest count as zero, as in `numpy.linalg.pinv`.

    Returns:
        A tensor of shape (..., n, n).

    Example:
        >>> import viewgrad as vg
        >>> vg.linalg.null_projector(vg.Tensor([[2.0, 0.0]]))
        Tensor([[0., 0.],
                [0., 1.]])
    """
    a = as_operand(A)
    if a.dtype.kind not in "fc":
        a = a.astype(float)
    inverse = np.linalg.pinv(a) if rtol is None else np.linalg.pinv(a, rtol)
    return np.eye(a.shape[-1], dtype=a.dtype) - inverse @ a


# -- the function of a matrix and its derivatives ----------------------------------------------------------------------


class _Value(Function):
    """The node of a function of a matrix."""

    @staticmethod
    def forward(ctx: Any, f: Any, a: Tensor) -> Tensor:
        ctx.f = f
        ctx.save_for_backward(a)
        w, v = np.linalg.eigh(a._array)
        return from_new_array((v * _values(f, w)[..., None, :]) @ v.swapaxes(-1, -2).conj())

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return None, _First.apply(ctx.f, *ctx.saved_tensors, g)

    @staticmethod
    def jvp(ctx: Any, _: Any, tangent: Any) -> Any:
        return _First.apply(ctx.f, *ctx.saved_tensors, tangent)


class _First(Function):
    """The derivative along a direction. Since it is self-adjoint, it is also the gradient."""

    @staticmethod
    def forward(ctx: Any, f: Any, a: Tensor, e: Tensor) -> Tensor:
        ctx.f = f
        ctx.save_for_backward(a, e)
        w, v = np.linalg.eigh(a._array)
        vh = v.swapaxes(-1, -2).conj()
        return from_new_array(v @ (_first_differences(f, w) * (vh @ e._array @ v)) @ vh)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        a, e = ctx.saved_tensors
        _, wants_a, wants_e = ctx.needs_input_grad
        of_a = _Second.apply(ctx.f, a, e, g) if wants_a else None
        return None, of_a, _First.apply(ctx.f, a, g) if wants_e else None

    @staticmethod
    def jvp(ctx: Any, _: Any, of_a: Any, of_e: Any) -> Any:
        a, e = ctx.saved_tensors
        parts = [] if of_a is None else [_Second.apply(ctx.f, a, e.mT.conj(), of_a)]
        parts += [] if of_e is None else [_First.apply(ctx.f, a, of_e)]
        return parts[0] if len(parts) == 1 else parts[0] + parts[1]


class _Second(Function):
    """The second derivative along the adjoint of one matrix and along another."""

    @staticmethod
    def forward(ctx: Any, f: Any, a: Tensor, e: Tensor, g: Tensor) -> Tensor:
        ctx.f = f
        ctx.save_for_backward(a, e, g)
        w, v = np.linalg.eigh(a._array)
        vh = v.swapaxes(-1, -2).conj()
        first, second = vh @ e._array.swapaxes(-1, -2).conj() @ v, vh @ g._array @ v
        differences = _second_differences(f, w)
        inner = np.einsum("...ikj,...ik,...kj->...ij", differences, first, second)
        inner += np.einsum("...ikj,...ik,...kj->...ij", differences, second, first)
        return from_new_array(v @ inner @ vh)

    @staticmethod
    def backward(ctx: Any, h: Any) -> Any:
        a, e, g = ctx.saved_tensors
        _, wants_a, wants_e, wants_g = ctx.needs_input_grad
        if wants_a:
            raise _third()
        of_e = _Second.apply(ctx.f, a, g.mT.conj(), h.mT.conj()) if wants_e else None
        return None, None, of_e, _Second.apply(ctx.f, a, e.mT.conj(), h) if wants_g else None

    @staticmethod
    def jvp(ctx: Any, _: Any, of_a: Any, of_e: Any, of_g: Any) -> Any:
        a, e, g = ctx.saved_tensors
        if of_a is not None:
            raise _third()
        parts = [] if of_e is None else [_Second.apply(ctx.f, a, of_e, g)]
        parts += [] if of_g is None else [_Second.apply(ctx.f, a, e, of_g)]
        return parts[0] if len(parts) == 1 else parts[0] + parts[1]


def _third() -> DifferentiabilityError:
    return DifferentiabilityError("spectral_function has no third derivative")


# -- divided differences -----------------------------------------------------------------------------------------------


def _values(f: Any, w: Array) -> Array:
    with no_grad():
        found = f(from_array(w))
    return np.broadcast_to(np.asarray(getattr(found, "_array", found), w.dtype), w.shape)


def _derivative(f: Any, order: int) -> Any:
    """Return the derivative of an elementwise function as a function of arrays."""
    for _ in range(order):
        f = grad(lambda x, f=f: f(x).sum())
    return lambda w: np.asarray(f(from_new_array(np.array(w)))._array, w.dtype)


def _first_differences(f: Any, w: Array) -> Array:
    """Return `(f(w_i) - f(w_j)) / (w_i - w_j)`, and the derivative where the eigenvalues are equal."""
    return _pairwise(f, w[..., :, None], w[..., None, :], _scale(w)[..., None])


def _pairwise(f: Any, a: Array, b: Array, scale: Array) -> Array:
    a, b = np.broadcast_arrays(a, b)
    apart = a - b
    with np.errstate(all="ignore"):
        fa, fb = _values(f, a), _values(f, b)
        quotient = (fa - fb) / apart
        close = abs(apart) <= CLOSE * scale
        if not close.any():
            return quotient
        derivative = _derivative(f, 1)
        integral = sum(weight * derivative(b + t * apart) for t, weight in zip(NODES, WEIGHTS))
        rounding = 64 * np.finfo(a.dtype).eps * np.maximum(abs(fa), abs(fb)) / abs(apart)
        # If they differ by more than rounding, the function is not smooth in between.
        smooth = close & ((apart == 0) | (abs(integral - quotient) <= rounding + 1e-9 * abs(integral)))
    return np.where(smooth, integral, quotient)


def _second_differences(f: Any, w: Array) -> Array:
    """Return the divided differences of three eigenvalues."""
    triples = np.stack(np.broadcast_arrays(w[..., :, None, None], w[..., None, :, None], w[..., None, None, :]))
    low, middle, high = np.sort(triples, axis=0)
    scale = _scale(w)[..., None, None]
    apart = high - low
    with np.errstate(all="ignore"):
        quotient = (_pairwise(f, high, middle, scale) - _pairwise(f, middle, low, scale)) / apart
        close = apart <= CLOSE * scale
        derivative = _derivative(f, 2)
        integral = np.zeros_like(quotient)
        for t, outer in zip(NODES, WEIGHTS):  # over the triangle: low + t (middle - low) + s t (high - middle)
            for s, inner in zip(NODES, WEIGHTS):
                integral += outer * inner * t * derivative(low + t * (middle - low) + s * t * (high - middle))
        smooth = close & ((apart == 0) | (abs(integral - quotient) <= 1e-4 * (abs(integral) + abs(quotient))))
        smooth |= apart <= 1e-5 * scale
    return np.where(smooth, integral, quotient)


def _scale(w: Array) -> Array:
    return np.abs(w).max(axis=-1, keepdims=True, initial=0.0)
