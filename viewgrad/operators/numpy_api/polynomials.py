"""Adapters of NumPy's polynomial functions, whose coefficients are ordered from the highest power down."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ...tensor.creation import as_operand
from ...tensor.tensor import Tensor, from_array
from .. import OPERATORS
from ..composites import choosing, composite
from ..derivatives.helpers import plain
from .array_manipulation import vander

concatenate = OPERATORS["concatenate"].function
_differentiable_roots = OPERATORS["_differentiable_roots"].function


def _vector(value: Any) -> Any:
    value = as_operand(getattr(value, "coeffs", value))  # of a poly1d
    return value if value.ndim else value.reshape(1)


def _zeros(count: int, like: Tensor) -> Tensor:
    return as_operand(np.zeros(count, like.dtype))


def _padded(p: Any, size: int) -> Any:
    return p if len(p) == size else concatenate([_zeros(size - len(p), p), p])


@composite(np.polyadd, method=False)
def polyadd(a1: Any, a2: Any) -> Any:
    """Return the sum of two polynomials."""
    a1, a2 = _vector(a1), _vector(a2)
    size = max(len(a1), len(a2))
    return _padded(a1, size) + _padded(a2, size)


@composite(np.polysub, method=False)
def polysub(a1: Any, a2: Any) -> Any:
    """Return the difference of two polynomials."""
    a2 = _vector(a2)
    return polyadd(a1, -(a2.astype(int) if a2.dtype.kind == "b" else a2))


@composite(np.polymul, method=False)
def polymul(a1: Any, a2: Any) -> Any:
    """Return the product of two polynomials; leading zeros are ignored, as in NumPy."""
    first, second = (_without_leading_zeros(_vector(factor)) for factor in (a1, a2))
    return np.convolve(first, second)


def _without_leading_zeros(p: Any) -> Any:
    if p.ndim > 1:
        raise ValueError("the coefficients of a polynomial must be one-dimensional")
    places = np.flatnonzero(plain(p != 0))
    return p[places[0] :] if len(places) else p[-1:] if p.size else _zeros(1, p)


@composite(np.polydiv, method=False)
def polydiv(u: Any, v: Any) -> tuple[Tensor, Tensor]:
    """Return the quotient and the remainder of two polynomials."""
    u, v = _vector(u) * 1.0, _vector(v) * 1.0
    m, n = len(u) - 1, len(v) - 1
    rest = u.clone().astype(np.result_type(u.dtype, v.dtype))
    steps = []
    for k in range(m - n + 1):
        step = rest[k] / v[0]
        steps.append(step)
        rest = concatenate([rest[:k], rest[k : k + n + 1] - step * v, rest[k + n + 1 :]])
    quotient: Any = np.stack(steps) if steps else _zeros(1, rest)
    start = 0  # like NumPy, remove zero leading coefficients from the remainder
    while start + 1 < len(rest) and np.allclose(rest._array[start], 0, rtol=1e-14):
        start += 1
    return quotient, rest[start:]


@composite(np.polyder, method=False)
def polyder(p: Any, m: int = 1) -> Any:
    """Return the `m`-th derivative of a polynomial."""
    p = _vector(p)
    for _ in range(int(m)):
        p = p[:-1] * from_array(np.arange(p.size - 1, 0, -1))
    return p


@composite(np.polyint, method=False)
def polyint(p: Any, m: int = 1, k: Any = None) -> Any:
    """Return the `m`-th integral of a polynomial, with the integration constants `k`."""
    p = _vector(p)
    constants = _vector(0.0 if k is None else k)
    if constants.size == 1 and m > 1:
        constants = constants.broadcast_to((int(m),))
    for step in range(int(m)):
        p = concatenate([p / np.arange(p.size, 0, -1), constants[step].reshape(1)])
    return p


@composite(np.poly, method=False)
@choosing
def poly(seq_of_zeros: Any) -> Any:
    """Return the coefficients of the polynomial with the given roots, or of a characteristic polynomial."""
    zeros = _vector(seq_of_zeros)
    if zeros.ndim == 2:
        zeros = np.linalg.eigvals(zeros)
    if not zeros.size:
        return 1.0
    zeros = zeros.astype(np.result_type(zeros.dtype, np.mintypecode(zeros.dtype.char)), copy=False)
    coefficients = as_operand(np.ones(1, zeros.dtype))
    for zero in zeros:
        coefficients = concatenate([coefficients, _zeros(1, zeros)]) - concatenate(
            [_zeros(1, zeros), coefficients * zero]
        )
    if zeros.is_complex():
        values = plain(zeros)
        if np.all(np.sort(values) == np.sort(values.conjugate())):
            return coefficients.real.clone()
    return coefficients


@composite(np.roots, method=False)
@choosing
def roots(p: Any) -> Any:
    """Return the roots of a polynomial, differentiable in all coefficients; leading zeros are ignored, as in NumPy."""
    p = _vector(p)
    return differentiable_roots(p[::-1], np.roots(plain(p)), "polynomial")


def differentiable_roots(p: Any, values: Any, basis: str) -> Any:
    """Return given roots of a series as differentiable functions of its coefficients.

    Arguments:
        p: the coefficients, lowest degree first.
        values: the roots.
        basis: the name of the module of `numpy.polynomial` for the series.
    """
    p = p if p.dtype.kind in "fc" else p.astype(float)
    is_real = p.dtype.kind == "f" and not np.any(values.imag)  # eigenvalues are always complex from NumPy 2.5 on
    if not values.size:
        return as_operand(values.real if is_real else values)
    found = _differentiable_roots(p, values, basis)
    return found.real if is_real else found


def _squared(distances: Any) -> Any:
    """Return the squared magnitudes."""
    return (distances * distances.conj()).real


@composite(np.polyfit, method=False)
def polyfit(x: Any, y: Any, deg: int, rcond: Any = None, full: bool = False, w: Any = None, cov: Any = False) -> Any:
    """Return the coefficients of the least-squares polynomial of degree `deg`.

    Gradients flow to the points and the weights.
    """
    x, y, deg = as_operand(x) * 1.0, as_operand(y) * 1.0, int(deg)
    if deg < 0:
        raise ValueError("expected deg >= 0")
    if x.ndim != 1 or not x.size or y.ndim not in (1, 2) or x.shape[0] != y.shape[0]:
        raise TypeError("expected x and y to have same length")
    left, right = vander(x, deg + 1), y
    if w is not None:
        w = as_operand(w) * 1.0
        left = left * w[:, None]
        right = right * (w[:, None] if right.ndim == 2 else w)
    scale = np.sqrt((left * left).sum(0))
    scaled = left / scale
    normal = scaled.T @ scaled
    tolerance = x.size * np.finfo(x.dtype).eps if rcond is None else rcond
    rank = int(np.linalg.matrix_rank(plain(scaled), rtol=tolerance))
    if rank != deg + 1 and not full:
        warnings.warn("Polyfit may be poorly conditioned", np.exceptions.RankWarning, stacklevel=2)
    # A QR factorization is as accurate as NumPy's least squares, and differentiable.
    if rank == deg + 1:
        q, r = np.linalg.qr(scaled)
        found = np.linalg.solve(r, q.T.conj() @ right)
    else:  # the minimum-norm solution
        found = np.linalg.lstsq(scaled, right, tolerance)[0]
    coefficients = (found.T / scale).T
    if full:
        residuals = _squared(right - left @ coefficients).sum(0)
        _, values, _ = np.linalg.svd(scaled, full_matrices=False)
        residuals = residuals.reshape(-1)[: None if rank == deg + 1 < x.size else 0]
        return coefficients, residuals, np.int32(rank), values, tolerance
    if not cov:
        return coefficients
    base = np.linalg.inv(normal) / np.outer(scale, scale)
    factor: Any = 1.0
    if not (isinstance(cov, str) and cov == "unscaled"):
        if x.size <= deg + 1:
            raise ValueError("the number of data points must exceed order to scale the covariance matrix")
        factor = _squared(right - left @ coefficients).sum(0) / (x.size - deg - 1)
    return coefficients, base * factor if y.ndim == 1 else base[:, :, None] * factor
