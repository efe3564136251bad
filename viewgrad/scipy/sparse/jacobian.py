"""Sparse Jacobians, computed by groups of columns or rows that share no element of the pattern.

Source: A. R. Curtis, M. J. D. Powell, J. K. Reid, "On the estimation of sparse Jacobian matrices", IMA Journal of
Applied Mathematics 13 (1974); A. H. Gebremedhin, F. Manne, A. Pothen, "What color is your Jacobian?", SIAM Review 47
(2005).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import scipy.sparse  # type: ignore[import-untyped]

from ...adoption import adopted_callable
from ...errors import DifferentiabilityError
from ...func import linearize, vjp, vmap
from ...operators.numpy_api.conversion import plain_values
from ...tensor.creation import as_operand
from ...tensor.tensor import Tensor, from_new_array
from .arrays import ARRAYS, SparseArray
from .pattern import Pattern


def sparse_jacobian(
    f: Callable[..., Any], sparsity: Any, argnums: int = 0, *, mode: Literal["auto", "fwd", "rev"] = "auto",
    check: bool = True, adopt: bool = True,
) -> Callable[..., Any]:
    """Return a function that computes a Jacobian with a known sparsity pattern.

    Columns that share no row are computed together in one direction (or rows that share no column in one backward
    pass). A banded Jacobian of width w requires w directions, regardless of its size.

    Arguments:
        f: the function to differentiate. It accepts and returns arrays or tensors of any shape; the Jacobian is that of
            the flattened output with respect to the flattened argument.
        sparsity: the positions of possible nonzeros: a sparse or dense array of shape (outputs, inputs).
        argnums: the positional argument to differentiate with respect to.
        mode: `"fwd"` for columns, `"rev"` for rows; `"auto"` chooses the one that needs fewer.
        check: whether to check a product with a random vector, which costs one more direction.
        adopt: whether to adopt `f`, so that it computes with viewgrad instead of NumPy; see `viewgrad.adopt`.

    Returns:
        A function with the same arguments that returns a CSR array: SciPy's for an array argument, one of
            `viewgrad.scipy.sparse` for a tensor. All elements of the pattern are stored.

    Raises:
        ValueError: when called, if `sparsity` does not have the shape of the Jacobian.
        DifferentiabilityError: when called, if the Jacobian has a nonzero element outside the pattern.

    Example:
        >>> import numpy as np, scipy.sparse, viewgrad as vg
        >>> def neighbours(x):
        ...     y = np.zeros_like(x)
        ...     y[1:-1] = x[2:] * x[:-2] - x[1:-1]
        ...     return y
        >>> band = scipy.sparse.diags_array([1.0, 1.0, 1.0], offsets=[-1, 0, 1], shape=(5, 5))
        >>> jacobian = vg.func.sparse_jacobian(neighbours, band)
        >>> jacobian(np.arange(5.0)).toarray()
        array([[ 0.,  0.,  0.,  0.,  0.],
               [ 2., -1.,  0.,  0.,  0.],
               [ 0.,  3., -1.,  1.,  0.],
               [ 0.,  0.,  4., -1.,  2.],
               [ 0.,  0.,  0.,  0.,  0.]])
    """
    if mode not in ("auto", "fwd", "rev"):
        raise ValueError(f"mode must be 'auto', 'fwd' or 'rev', not {mode!r}")
    pattern = _pattern_of(sparsity)
    patterns = {"fwd": pattern, "rev": pattern.transposed}
    colors = {way: color_columns(each) for way, each in patterns.items() if mode in (way, "auto")}
    way = min(colors, key=lambda way: colors[way].max(initial=-1))
    return _Jacobian(adopted_callable(f) if adopt else f, pattern, argnums, way, colors[way], check)


class _Jacobian:
    """The Jacobian of a function, by groups of columns or rows.

    Arguments:
        f, pattern, argnums, check: as for `sparse_jacobian`.
        way: the mode, `"fwd"` or `"rev"`.
        colors: the group of each column or row.
    """

    def __init__(
        self, f: Callable[..., Any], pattern: Pattern, argnums: int, way: str, colors: Any, check: bool
    ) -> None:
        functools.update_wrapper(self, f, updated=())
        self.f, self.pattern, self.argnums, self.way, self.colors, self.check = f, pattern, argnums, way, colors, check

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        given = args[self.argnums]
        x = given if isinstance(given, Tensor) else Tensor(np.asarray(given, np.result_type(given, np.float32)))
        position = self.argnums % len(args)

        def vector(x: Any) -> Any:
            return as_operand(self.f(*args[:position], x, *args[position + 1 :], **kwargs)).reshape(-1)

        if self.way == "fwd":
            output, transform = linearize(vector, x)
            like = x
        else:
            output, pull = vjp(vector, x)
            transform, like = (lambda cotangent: pull(cotangent)[0].reshape(-1)), output
        if self.pattern.shape != (output.size, x.size):
            raise ValueError(
                f"the Jacobian has shape {(output.size, x.size)}, but sparsity has shape {self.pattern.shape}"
            )
        values = self._values(transform, like)
        found = ARRAYS["csr_array"]._of(self.pattern, values)
        return found if isinstance(given, Tensor) else found.to_scipy()

    def _values(self, transform: Callable[[Any], Any], like: Any) -> Any:
        """Return the stored values, computed from products with the sum of the columns or rows of each group."""
        count = int(self.colors.max(initial=-1)) + 1
        rows, cols = self.pattern.rows, self.pattern.cols
        if not count:
            return as_operand(np.zeros(len(rows), like.dtype))
        seeds = (self.colors == np.arange(count)[:, None]).astype(like.dtype).reshape(count, *like.shape)
        products = vmap(transform)(from_new_array(seeds)).reshape(count, -1)
        values = products[self.colors[cols], rows] if self.way == "fwd" else products[self.colors[rows], cols]
        if self.check:
            self._compare(transform, like, values.detach())
        return values

    def _compare(self, transform: Callable[[Any], Any], like: Any, values: Any) -> None:
        probe = np.random.default_rng(0).normal(size=like.shape).astype(like.dtype)
        expected = plain_values(transform(from_new_array(probe)).detach()).reshape(-1)
        pattern = self.pattern if self.way == "fwd" else self.pattern.transposed
        found = plain_values((SparseArray._of(pattern, values) @ from_new_array(probe.reshape(-1))).detach())
        size = abs(pattern.matrix(abs(plain_values(values)))) @ abs(probe.reshape(-1))
        tolerance = np.finfo(like.dtype).eps ** 0.5
        wrong = ~np.isclose(found, expected, rtol=tolerance, atol=0) & (abs(found - expected) > tolerance * size)
        wrong &= np.isfinite(expected)
        if wrong.any():
            name = "row" if self.way == "fwd" else "column"
            raise DifferentiabilityError(
                f"sparse_jacobian: {name} {int(np.flatnonzero(wrong)[0])} of the Jacobian has a nonzero element where "
                "sparsity has none; add it to the pattern"
            )


def color_columns(pattern: Pattern) -> Any:
    """Assign columns to groups, greedily, so that no two columns of a group have an element in the same row.

    Returns:
        The number of the group of each column.
    """
    taken = [0] * pattern.shape[0]  # for each row, a set of groups as bits
    order, rows, starts = pattern.transposed.compressed()
    del order
    bounds, members = starts.tolist(), rows.tolist()
    colors = np.zeros(pattern.shape[1], np.int64)
    for column in np.argsort(-np.diff(starts), kind="stable").tolist():
        inside = members[bounds[column] : bounds[column + 1]]
        used = 0
        for row in inside:
            used |= taken[row]
        color = (~used & (used + 1)).bit_length() - 1
        colors[column] = color
        for row in inside:
            taken[row] |= 1 << color
    return colors


def _pattern_of(sparsity: Any) -> Pattern:
    if isinstance(sparsity, SparseArray):
        sparsity = sparsity.detach().to_scipy()
    found = scipy.sparse.csr_array(sparsity if scipy.sparse.issparse(sparsity) else np.asarray(plain_values(sparsity)))
    found.sum_duplicates()
    coo = found.tocoo()
    return Pattern(coo.row, coo.col, found.shape)
