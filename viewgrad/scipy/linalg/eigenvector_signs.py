"""The signs and the order of eigenvectors, matched to SciPy's if computed by another routine."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg  # type: ignore[import-untyped]

from ...operators.numpy_api.conversion import plain_values


def signs_between(vectors: Any, wanted: Any) -> Any:
    """Return the factors of absolute value 1 by which the columns of two results differ."""
    ours = np.asarray(plain_values(vectors))
    along = (ours.conj() * wanted).sum(-2, keepdims=True)
    return np.where(along == 0, 1, along) / np.where(along == 0, 1, np.abs(along))


def order_of_scipy(values: Any, a: Any, b: Any) -> Any:
    """Return the positions of eigenvalues of one or two matrices in SciPy's order; unchanged if some are equal."""
    wanted = scipy.linalg.eigvals(plain_values(a), _plain(b))
    order = np.abs(plain_values(values)[:, None] - wanted).argmin(0)
    known = np.array_equal(np.sort(order), np.arange(order.size))
    return order if known else np.arange(order.size)


def in_order_of_scipy(values: Any, vectors: Any, a: Any, b: Any) -> tuple[Any, Any]:
    """Return eigenvalues and eigenvectors of one or two matrices in SciPy's order; real vectors have SciPy's signs."""
    wanted = scipy.linalg.eig(plain_values(a), _plain(b))
    order = np.abs(plain_values(values)[:, None] - wanted[0]).argmin(0)
    if not np.array_equal(np.sort(order), np.arange(order.size)):  # some are equal
        return values, vectors
    values, vectors = values[order], vectors[:, order]
    signs = signs_between(vectors, wanted[1])
    tolerance = 1e-3 if vectors.dtype.char in "fF" else 1e-9
    return values, vectors * np.where(np.isclose(signs.imag, 0, atol=tolerance), signs.real, 1)


def largest_elements(vectors: Any) -> Any:
    """Return the size of the largest element of each column, which is 1 in LAPACK's eigenvectors of two matrices."""
    sizes = np.abs(vectors.real) + np.abs(vectors.imag) if vectors.is_complex() else np.abs(vectors)
    return sizes.max(0)


def _plain(b: Any) -> Any:
    return None if b is None else plain_values(b)
