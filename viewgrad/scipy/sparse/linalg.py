"""`scipy.sparse.linalg` for tensors: linear systems, with gradients that are as sparse as the matrix.

If A x = b and g is the gradient of x, then the gradient y of b solves A^H y = g, and the gradients of the stored values
are -y conj(x) at their positions. Source: M. Giles, "An extended collection of matrix derivative results for forward
and reverse mode algorithmic differentiation" (2008).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import scipy.sparse.linalg  # type: ignore[import-untyped]

from ...autograd.function import Function
from ...errors import DifferentiabilityError
from ...numpy.namespace import public_names
from ...operators.numpy_api.adapted import lost
from ...operators.numpy_api.conversion import as_tensors, carries_history, plain_values
from ...tensor.creation import as_operand
from ...tensor.tensor import from_new_array
from ..wrap import named_in, numbers
from .arrays import ARRAYS, SparseArray, as_sparse, is_sparse, to_scipy
from .construct import MADE as CONSTRUCTED
from .exponential import expm_multiply
from .namespace import namespace
from .operators import LinearOperator, as_operator, aslinearoperator, identity, is_operator, of_products
from .pattern import Pattern
from .products import sampled

if TYPE_CHECKING:
    from ..typed.sparse_linalg import *  # noqa: F403

    def __getattr__(name: str) -> Any: ...


__all__ = public_names(scipy.sparse.linalg)
MADE: Final[dict[str, Any]] = {}
ITERATIVE: Final = ("bicg", "bicgstab", "cg", "cgs", "gcrotmk", "gmres", "lgmres", "minres", "qmr", "tfqmr")
ADJOINT_TOLERANCE: Final = 1e-10  # the tolerance of iterative solvers in the backward pass
STEPS: Final = 3  # steps of Newton's method from a solution; each makes derivatives exact to one more order
LARGEST: Final = 1e10  # the estimated condition number above which a matrix counts as singular
ACCEPTED: Final = 1e-8  # the maximum relative residual if a solver has not converged


made: Final = named_in(MADE)
made(expm_multiply)
made(LinearOperator)
made(aslinearoperator)


# -- direct solvers ----------------------------------------------------------------------------------------------------


class Factored:
    """A sparse LU factorization.

    Arguments:
        lu: the SciPy object.
    """

    def __init__(self, lu: Any) -> None:
        self.lu = lu

    def solve(self, b: Any, transposed: bool, conjugated: bool) -> Any:
        """Solve for a right-hand side, with the matrix, its transpose, its conjugate, or both."""
        b = b.conj() if conjugated else b
        trans = "T" if transposed else "N"
        if np.iscomplexobj(b) and self.lu.U.dtype.kind != "c":
            parts = [self.lu.solve(np.ascontiguousarray(part), trans) for part in (b.real, b.imag)]
            found = parts[0] + 1j * parts[1]
        else:
            found = self.lu.solve(np.ascontiguousarray(b, self.lu.U.dtype), trans)
        return found.conj() if conjugated else found


class _Solve(Function):
    """The solution of a sparse linear system."""

    @staticmethod
    def forward(
        ctx: Any, solver: Any, pattern: Pattern, transposed: bool, conjugated: bool, data: Any, b: Any
    ) -> Any:
        """Solve the system; `data` are the stored values of the matrix itself, neither transposed nor conjugated."""
        x = from_new_array(np.array(solver.solve(b._array, transposed, conjugated)))
        ctx.solver, ctx.pattern, ctx.transposed, ctx.conjugated = solver, pattern, transposed, conjugated
        ctx.save_for_backward(data, x)
        return x

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        data, x = ctx.saved_tensors
        y = _Solve.apply(ctx.solver, ctx.pattern, not ctx.transposed, not ctx.conjugated, data, grad)
        of_data = None
        if ctx.needs_input_grad[4]:
            of_data = -(sampled(ctx.pattern, x.conj(), y) if ctx.transposed else sampled(ctx.pattern, y, x.conj()))
            of_data = of_data.conj() if ctx.conjugated else of_data
            of_data = _real_like(of_data, data)
        return None, None, None, None, of_data, _real_like(y, x) if ctx.needs_input_grad[5] else None

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        data, x = ctx.saved_tensors
        right = tangents[5]
        if tangents[4] is not None:
            values = tangents[4].conj() if ctx.conjugated else tangents[4]
            pattern = ctx.pattern.transposed if ctx.transposed else ctx.pattern
            moved = SparseArray._of(pattern, values) @ x
            right = -moved if right is None else right - moved
        return _Solve.apply(ctx.solver, ctx.pattern, ctx.transposed, ctx.conjugated, data, right)


def _real_like(grad: Any, tensor: Any) -> Any:
    return grad.real if grad.dtype.kind == "c" and tensor.dtype.kind != "c" else grad


def _inexact(dtype: Any) -> Any:
    """Return the dtype in which SuperLU computes."""
    return np.result_type(dtype, np.float32) if dtype.kind in "fc" else np.dtype(float)


def _system(matrix: Any, b: Any, single: bool = False) -> tuple[Any, Any]:
    """Return the square matrix and the right-hand side in a common dtype; single precision only on request."""
    a = as_sparse(matrix)
    if a.shape[0] != a.shape[1]:
        raise ValueError(f"the matrix of a linear system must be square, not of shape {a.shape}")
    right = numbers(b)
    if right.ndim not in (1, 2) or right.shape[0] != a.shape[0]:
        raise ValueError(f"a right-hand side of shape {right.shape} does not match a matrix of shape {a.shape}")
    dtype = np.result_type(a.dtype, right.dtype)
    dtype = _inexact(dtype) if single else np.result_type(dtype, np.float64)
    return a if a.dtype == dtype else a.astype(dtype), right if right.dtype == dtype else right.astype(dtype)


@made
def spsolve(A: Any, b: Any, permc_spec: str | None = None, use_umfpack: bool = True) -> Any:
    """Return the solution of a sparse linear system; gradients flow to `b` and to the stored values of `A`.

    Arguments:
        A: a square sparse array.
        b: the right-hand side, of shape (n,) or (n, k), dense or sparse.
        permc_spec: how columns are permuted for the factorization.
        use_umfpack: accepted for compatibility; has no effect.

    Returns:
        The solution: of shape (n,) for a right-hand side of shape (n,) or (n, 1), and otherwise of shape (n, k), sparse
        if `b` is sparse.

    Example:
        >>> import viewgrad as vg
        >>> from viewgrad.scipy import sparse
        >>> from viewgrad.scipy.sparse.linalg import spsolve
        >>> values = vg.Tensor([2.0, 4.0, 1.0], requires_grad=True)
        >>> a = sparse.csc_array((values, ([0, 1, 0], [0, 1, 1])))
        >>> spsolve(a, [1.0, 2.0]).sum().backward()
        >>> values.grad
        Tensor([-0.125 , -0.0625, -0.25  ])
    """
    a, right = _system(A, as_sparse(b).toarray() if is_sparse(b) else b, single=True)
    x = splu(a, permc_spec=permc_spec).solve(right)
    if right.ndim == 1 or right.shape[1] == 1:
        return x.reshape(-1)
    return (type(a) if a.format == "csr" else a._kind("csc"))(as_sparse(x)) if is_sparse(b) else x


class SuperLU:
    """A sparse LU factorization of a matrix of tensors; see `splu`.

    Arguments:
        A: the square sparse array.
        options: the options of `scipy.sparse.linalg.splu`.
    """

    def __init__(self, A: Any, options: dict[str, Any]) -> None:
        self.matrix = _system(A, np.zeros(A.shape[0], _inexact(A.dtype)), single=True)[0]
        self.shape, self.nnz = self.matrix.shape, self.matrix.nnz
        values = plain_values(self.matrix.data)
        self._factored = Factored(scipy.sparse.linalg.splu(self.matrix.pattern.matrix(values).tocsc(), **options))

    @classmethod
    def from_scipy(cls, lu: Any) -> SuperLU:
        """Return a factorization of a constant matrix that was computed by SciPy and needs no stored values."""
        made = cls.__new__(cls)
        made.matrix = as_sparse(scipy.sparse.csc_array(lu.shape, dtype=lu.U.dtype))
        made.shape, made.nnz = lu.shape, lu.nnz
        made._factored = Factored(lu)
        return made

    def solve(self, rhs: Any, trans: str = "N") -> Any:
        """Solve for a right-hand side of shape (n,) or (n, k); `trans` is as in SciPy."""
        if trans not in ("N", "T", "H"):
            raise ValueError(f"trans must be 'N', 'T' or 'H', not {trans!r}")
        a, right = _system(self.matrix, rhs, single=True)
        if right.dtype.kind != "c" or self.matrix.dtype.kind == "c":  # SciPy does not support other cases
            a, right = self.matrix, right.astype(self.matrix.dtype)
        return _Solve.apply(self._factored, a.pattern, trans != "N", trans == "H", a.data, right)

    def __getattr__(self, name: str) -> Any:
        if name in ("L", "U", "perm_r", "perm_c"):
            if carries_history(self.matrix.data):
                raise lost(f"scipy.sparse.linalg.SuperLU.{name}", "use solve(), or pass detach() of the matrix")
            return getattr(self._factored.lu, name)
        raise AttributeError(name)


MADE["SuperLU"] = SuperLU


@made
def splu(A: Any, permc_spec: str | None = None, **options: Any) -> Any:
    """Return the LU factorization of a sparse array, whose `solve` is differentiable."""
    return SuperLU(as_sparse(A), {key: value for key, value in {"permc_spec": permc_spec, **options}.items() if value})


@made
def factorized(A: Any) -> Callable[[Any], Any]:
    """Return a function that solves linear systems with a fixed matrix for many right-hand sides."""
    solve: Callable[[Any], Any] = splu(A).solve
    return solve


@made
def spsolve_triangular(
    A: Any, b: Any, lower: bool = True, overwrite_A: bool = False, overwrite_b: bool = False,
    unit_diagonal: bool = False,
) -> Any:  # fmt: skip
    """Return the solution of a sparse triangular system; gradients flow to `b` and to the stored values of `A`.

    Arguments:
        A: a square sparse array with a lower or upper triangle only.
        b: the right-hand side, of shape (n,) or (n, k).
        lower: whether the matrix is lower triangular.
        overwrite_A, overwrite_b: accepted for compatibility; nothing is overwritten.
        unit_diagonal: whether to replace the diagonal by ones.
    """
    a, right = as_sparse(A), numbers(b)
    plain = scipy.sparse.linalg.spsolve_triangular(
        a.tocsc().to_scipy(), np.array(plain_values(right)), lower=lower, unit_diagonal=unit_diagonal
    )
    if unit_diagonal:
        a = a.tocsc()
        a.setdiag(1.0)
    found = splu(a, permc_spec="NATURAL").solve(right.astype(plain.dtype))
    return found + (as_tensors(plain) - found.detach())


@made
def inv(A: Any) -> Any:
    """Return the inverse of a sparse matrix as a sparse array; gradients flow to the stored values.

    The inverse is stored at the positions that SciPy stores.
    """
    if not is_sparse(A):
        raise TypeError("Input must be a sparse array")
    a = as_sparse(A)
    plain = scipy.sparse.linalg.inv(a.to_scipy())
    if not scipy.sparse.issparse(plain):  # of a matrix with one element
        return spsolve(a, np.ones(1))
    stored = as_sparse(plain)
    columns = spsolve(a, np.eye(a.shape[0], dtype=_inexact(a.dtype)))
    return stored._of(stored.pattern, columns[stored.pattern.rows, stored.pattern.cols])


# -- iterative solvers -------------------------------------------------------------------------------------------------


class Iterative:
    """A linear system that is solved iteratively.

    Arguments:
        method: SciPy's function.
        matrix: a SciPy array or a linear operator.
        options: the options of the function.
    """

    def __init__(self, method: Callable[..., Any], matrix: Any, options: dict[str, Any]) -> None:
        self.method, self.matrix, self.options = method, matrix, options
        self.info = 0

    def first(self, b: Any) -> Any:
        """Return the solution with the user's options."""
        x, self.info = self.method(self.matrix, b, **self.options)
        self.found = x
        return x

    def solve(self, b: Any, transposed: bool, conjugated: bool) -> Any:
        """Solve a system for a derivative, more accurately than the user's options require."""
        if self.info:
            raise DifferentiabilityError(
                f"scipy.sparse.linalg.{self.method.__name__} has not converged (info {self.info}), so its result has "
                "no derivative; allow more iterations, or use a preconditioner"
            )
        is_hermitian = self.method.__name__ in ("cg", "minres") and transposed == conjugated
        matrix = self.matrix if is_hermitian else _transposed(self.matrix, transposed, conjugated)
        options = {key: value for key, value in self.options.items() if key not in ("x0", "callback", "callback_type")}
        for name in ("M", "M1", "M2"):
            if options.get(name) is not None:
                options[name] = _transposed(options[name], transposed, conjugated)
        options["rtol"] = min(options.get("rtol", 1e-5), ADJOINT_TOLERANCE)
        options["atol"] = 0.0
        if self.method.__name__ == "minres":
            del options["atol"]
        columns = b.reshape(len(b), -1)
        found = []
        for column in columns.T:
            if not column.any():
                found.append(np.zeros_like(column))
                continue
            x, info = self.method(matrix, column, **options)
            # Some methods break down once the residual is zero, or for right-hand sides of rounding errors.
            if info and not _solves(matrix, x, column):
                restart = min(len(column), 100)
                x, info = scipy.sparse.linalg.gmres(matrix, column, rtol=ADJOINT_TOLERANCE, restart=restart)
            if info and not _solves(matrix, x, column):
                raise DifferentiabilityError(
                    f"scipy.sparse.linalg.{self.method.__name__} has not converged for the gradient (info {info}); "
                    "allow more iterations, use a preconditioner, or a direct solver"
                )
            found.append(x)
        return np.stack(found, -1).reshape(b.shape)


def _solves(matrix: Any, x: Any, b: Any) -> bool:
    return bool(np.linalg.norm(matrix @ x - b) <= ACCEPTED * np.linalg.norm(b))


class _FirstSolve(Function):
    """The result of an iterative solver, with the derivatives of the exact solution."""

    @staticmethod
    def forward(ctx: Any, solver: Iterative, pattern: Pattern, data: Any, b: Any) -> Any:
        x = from_new_array(np.array(solver.found))
        ctx.solver, ctx.pattern = solver, pattern
        ctx.save_for_backward(data, x)
        return x

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        data, x = ctx.saved_tensors
        y = _Solve.apply(ctx.solver, ctx.pattern, True, True, data, grad)
        of_data = _real_like(-sampled(ctx.pattern, y, x.conj()), data) if ctx.needs_input_grad[2] else None
        return None, None, of_data, _real_like(y, x) if ctx.needs_input_grad[3] else None

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        data, x = ctx.saved_tensors
        right = tangents[3]
        if tangents[2] is not None:
            moved = SparseArray._of(ctx.pattern, tangents[2]) @ x
            right = -moved if right is None else right - moved
        return _Solve.apply(ctx.solver, ctx.pattern, False, False, data, right)


def _transposed(matrix: Any, transposed: bool, conjugated: bool) -> Any:
    """Return a matrix or linear operator transposed or conjugated."""
    if isinstance(matrix, scipy.sparse.linalg.LinearOperator):
        if transposed and conjugated:
            return matrix.adjoint()
        return matrix.transpose() if transposed else matrix if not conjugated else matrix.adjoint().transpose()
    matrix = matrix.T if transposed else matrix
    return matrix.conj() if conjugated else matrix


def _iterative(name: str) -> Callable[..., Any]:
    scipys = getattr(scipy.sparse.linalg, name)
    known = inspect.signature(scipys).parameters

    def solver(A: Any, b: Any, x0: Any = None, **options: Any) -> Any:
        unknown = sorted(options.keys() - known.keys())
        if unknown:
            raise TypeError(f"{name}() got unexpected keyword arguments {', '.join(unknown)}")
        options = {key: to_scipy(value) for key, value in options.items()}
        if x0 is not None:
            options["x0"] = plain_values(x0)
        A = of_products(A)
        if is_operator(A):
            places = np.zeros(0, np.int64)
            system: Any = to_scipy(A)
            pattern, data = Pattern(places, places, A.shape), as_operand(np.zeros(0))
            right = numbers(b)
            right = right if right.dtype.kind in "fc" else right.astype(float)
        else:
            a, right = _system(A, b)
            pattern, data, system = a.pattern, a.data, a.to_scipy()
        if right.ndim == 2 and right.shape[1] == 1:
            right = right[:, 0]
        iterations = Iterative(scipys, system, options)
        iterations.first(plain_values(right))
        x = _FirstSolve.apply(iterations, pattern, data, right)
        if isinstance(A, LinearOperator) and A.carries_history():
            correction = Iterative(scipys, system, options)  # zero, with derivatives
            correction.found, correction.info = np.zeros_like(iterations.found), iterations.info
            start = moved = as_tensors(np.array(iterations.found))
            for _ in range(STEPS):
                moved = moved + _FirstSolve.apply(correction, pattern, data, right - A.matvec(moved))
            x = moved + (start - moved.detach())
        return x, iterations.info

    solver.__name__ = solver.__qualname__ = name
    solver.__doc__ = (
        f"`scipy.sparse.linalg.{name}`; gradients flow to `b` and to the stored values of `A`.\n\n"
        "    The gradients are those of the exact solution, computed by the same method (or, if it breaks down, by\n"
        f"    gmres) to a relative residual of {ADJOINT_TOLERANCE}, and do not depend on a preconditioner. For a\n"
        "    LinearOperator, they flow to `b` and to the tensors that its functions capture."
    )
    return solver


for _name in ITERATIVE:
    if hasattr(scipy.sparse.linalg, _name):
        MADE[_name] = _iterative(_name)


# -- eigenvalues and least squares -------------------------------------------------------------------------------------


@made
def eigsh(
    A: Any, k: int = 6, M: Any = None, sigma: Any = None, which: str = "LM", v0: Any = None, ncv: Any = None,
    maxiter: Any = None, tol: Any = 0, return_eigenvectors: bool = True, **options: Any,
) -> Any:
    """Return some eigenvalues and eigenvectors of a symmetric matrix; gradients flow to the stored values.

    An eigenpair is a root of `A v = w M v`, `v @ M @ v = 1`. Derivatives are exact to the third order, by a sparse
    factorization for each pair.

    Arguments:
        A: a real symmetric matrix, sparse or dense; other matrices and operators have no history.
        M: the matrix of a generalized problem.
        k, sigma, which, v0, ncv, maxiter, tol, return_eigenvectors, options: as in `scipy.sparse.linalg.eigsh`.

    Raises:
        DifferentiabilityError: if an eigenvalue is not simple.

    Example:
        >>> import viewgrad as vg
        >>> from viewgrad.scipy import sparse
        >>> from viewgrad.scipy.sparse.linalg import eigsh
        >>> diagonal = vg.Tensor([2.0, 3.0, 5.0], requires_grad=True)
        >>> eigsh(sparse.diags_array(diagonal), k=1, return_eigenvectors=False).sum().backward()
        >>> abs(diagonal.grad).round(6)
        Tensor([0., 0., 1.])
    """
    A = of_products(A)
    given = (k, to_scipy(M), plain_values(sigma), which, plain_values(v0), ncv, maxiter, tol)
    matrix, weight = (_symmetric(each) for each in (A, M))
    if not any(carries_history(each.data if isinstance(each, SparseArray) else each) for each in (matrix, weight)):
        return as_tensors(scipy.sparse.linalg.eigsh(to_scipy(A), *given, return_eigenvectors, **options))
    if matrix.dtype.kind == "c" or options.get("mode", "normal") != "normal":
        raise lost("scipy.sparse.linalg.eigsh", "pass a real symmetric matrix, in mode='normal'")
    values, vectors = scipy.sparse.linalg.eigsh(to_scipy(A), *given, **options)
    pairs = [_eigenpair("eigsh: the eigenvalue", matrix, weight, *pair) for pair in zip(values, vectors.T)]
    found = np.stack([value for _, value in pairs]).astype(values.dtype)
    return (found, np.stack([vector for vector, _ in pairs], -1).astype(values.dtype)) if return_eigenvectors else found


@made
def svds(
    A: Any, k: int = 6, ncv: Any = None, tol: Any = 0, which: str = "LM", v0: Any = None, maxiter: Any = None,
    return_singular_vectors: Any = True, solver: str = "arpack", **options: Any,
) -> Any:  # fmt: skip
    """Return some singular values and vectors of a matrix, as `scipy.sparse.linalg.svds`.

    Gradients flow to the elements of the matrix. The left and right vectors of a singular value are an eigenvector of
    a symmetric matrix with `A` and its transpose off the diagonal; see `eigsh`.

    Raises:
        DifferentiabilityError: if a singular value is zero or not simple.
    """
    theirs = scipy.sparse.linalg.svds
    A = of_products(A)
    given = (k, ncv, tol, which, plain_values(v0), maxiter)
    plain = to_scipy(A)
    matrix = _symmetric(A)
    if matrix is None or not carries_history(matrix.data if isinstance(matrix, SparseArray) else matrix):
        return as_tensors(theirs(plain, *given, return_singular_vectors, solver, **options))
    if matrix.dtype.kind == "c":
        raise lost("scipy.sparse.linalg.svds", "pass a real matrix")
    left, values, right = theirs(plain, *given, True, solver, **options)
    rows = matrix.shape[0]
    both = CONSTRUCTED["block_array"]([[None, as_sparse(matrix)], [as_sparse(matrix).T, None]], format="csc")
    vectors = np.concatenate([left.T, right], 1) * 0.5**0.5
    pairs = [_eigenpair("svds: the singular value", both, None, *pair) for pair in zip(values, vectors)]
    found = np.stack([value for _, value in pairs]).astype(values.dtype)
    if not return_singular_vectors:
        return found
    sides = (np.stack([vector for vector, _ in pairs]) * 2.0**0.5).astype(values.dtype)
    wanted = return_singular_vectors
    return None if wanted == "vh" else sides[:, :rows].T, found, None if wanted == "u" else sides[:, rows:]


def _symmetric(matrix: Any) -> Any:
    if matrix is None or is_operator(matrix):
        if isinstance(matrix, LinearOperator) and matrix.carries_history():
            raise lost("scipy.sparse.linalg", "pass a matrix instead of a LinearOperator")
        return None
    return as_sparse(matrix) if is_sparse(matrix) else as_operand(matrix)


def _eigenpair(name: str, matrix: Any, weight: Any, value: Any, vector: Any) -> tuple[Any, Any]:
    """Return an eigenvector and its eigenvalue with their histories, by steps of Newton's method."""
    size = len(vector)
    plain = scipy.sparse.csc_array(to_scipy(matrix))
    plain_weight = scipy.sparse.eye_array(size) if weight is None else scipy.sparse.csc_array(to_scipy(weight))
    side = (plain_weight @ vector)[:, None]
    shifted = plain - value * plain_weight
    bordered = scipy.sparse.block_array([[shifted, -side], [-side.T, None]], format="csc")
    start = np.append(vector, value)
    try:
        lu = scipy.sparse.linalg.splu(bordered)
        is_simple = np.max(np.abs(lu.solve(np.cos(np.arange(size + 1.0))))) * np.max(np.abs(plain)) < LARGEST
    except RuntimeError:  # exactly singular
        is_simple = False
    if not is_simple:
        raise DifferentiabilityError(
            f"scipy.sparse.linalg.{name} {value:.6g} is not simple, so it and its vector have no "
            "derivative; use a function of the matrix instead, or pass detach() of it"
        )
    solve, found = SuperLU.from_scipy(lu).solve, as_tensors(start.copy())
    for _ in range(STEPS):
        v, w = found[:size], found[size]
        moved = v if weight is None else weight @ v
        away = np.concatenate([matrix @ v - w * moved, 0.5 * (1.0 - v @ moved).reshape(1)])
        found = found - solve(away)
    found = found + (as_tensors(start) - found.detach())
    return found[:size], found[size]


@made
def lsqr(A: Any, b: Any, damp: float = 0.0, *args: Any, **options: Any) -> Any:
    """Return the least-squares solution of a sparse system, as `scipy.sparse.linalg.lsqr`.

    Gradients of the solution and of the norms `r1norm`, `r2norm` and `xnorm` flow to `b` and to the stored values of
    `A`, or to the tensors that its functions capture if it is an operator. `A` must have full rank. The other results
    are estimates without a history.
    """
    found, x, residual = _with_solution("lsqr", A, b, damp, args, options)
    if x is None:
        return as_tensors(found)
    away = np.linalg.norm(residual)
    size = np.linalg.norm(x)
    return x, *found[1:3], away, np.sqrt(away**2 + (damp * size) ** 2), *found[5:8], size, found[9]


@made
def lsmr(A: Any, b: Any, damp: float = 0.0, *args: Any, **options: Any) -> Any:
    """Return the least-squares solution of a sparse system, as `scipy.sparse.linalg.lsmr`.

    Gradients of the solution and of the norms `normr` and `normx` flow to `b` and to the stored values of `A`, or to
    the tensors that its functions capture if it is an operator. `A` must have full rank. The other results are
    estimates without a history.
    """
    found, x, residual = _with_solution("lsmr", A, b, damp, args, options)
    if x is None:
        return as_tensors(found)
    size = np.linalg.norm(x)
    away = np.sqrt((residual**2).sum() + (damp * size) ** 2)
    return x, *found[1:3], away, *found[4:7], size


def _with_solution(name: str, A: Any, b: Any, damp: float, args: Any, options: Any) -> tuple[Any, Any, Any]:
    """Return the results of one of SciPy's functions, and the solution and residual with their histories, if any."""
    A = of_products(A)
    found = getattr(scipy.sparse.linalg, name)(to_scipy(A), plain_values(numbers(b)), damp, *args, **options)
    right = numbers(b).reshape(-1)
    if is_operator(A):
        if not carries_history(b) and not (isinstance(A, LinearOperator) and A.carries_history()):
            return found, None, None
        a = as_operator(A)
    else:
        a = as_sparse(A)
        if not carries_history((a.data, right)):
            return found, None, None
    x = _least_squares(a, right, damp, found[0], name)
    return found, x, right - a @ x


def _least_squares(a: Any, b: Any, damp: float, found: Any, name: str) -> Any:
    """Return the solution found with its history, by the normal equations."""
    if a.dtype.kind == "c" or b.dtype.kind == "c":
        raise lost(f"scipy.sparse.linalg.{name}", "pass real numbers")
    is_wide = a.shape[0] < a.shape[1] and not damp
    try:
        if is_wide:
            x = a.T @ _solution_of_normal(a @ a.T, b)
        else:
            normal = a.T @ a
            if damp:
                unit: Any = identity(normal.shape, float) if is_operator(a) else scipy.sparse.eye_array(a.shape[1])
                normal = normal + damp**2 * unit
            x = _solution_of_normal(normal, a.T @ b)
        is_unique = np.linalg.norm(plain_values(x.detach()) - found) <= 1e-3 * np.linalg.norm(found)
    except RuntimeError:  # exactly singular
        is_unique = False
    if not is_unique:
        raise DifferentiabilityError(
            f"scipy.sparse.linalg.{name} has not converged, or the matrix does not have full rank, so that the "
            "solution has no derivative; use smaller tolerances, damp, or detach() of the arguments"
        )
    return x + (as_tensors(np.array(found)) - x.detach())


def _solution_of_normal(normal: Any, b: Any) -> Any:
    """Return the solution of normal equations, whose matrix is symmetric and positive definite."""
    if not is_operator(normal):
        return spsolve(normal.tocsc(), b)
    found, _ = MADE["cg"](normal, b, rtol=ADJOINT_TOLERANCE)
    return found


# -- norms -------------------------------------------------------------------------------------------------------------


@made
def norm(x: Any, ord: Any = None, axis: Any = None) -> Any:
    """Return the norm of a sparse array: the Frobenius norm, or a norm by sums of rows or columns."""
    array = as_sparse(x)
    dtype = _norm_dtype(array.dtype, axis is None, ord)
    if dtype is not None and abs(array).dtype != dtype:
        array = array.astype(dtype)
    if axis is None and ord in (None, "fro", "f"):
        return np.linalg.norm(abs(array).data)
    if axis is None and ord in (1, np.inf):
        return abs(array).sum(axis=0 if ord == 1 else 1).max()
    if axis is not None and ord in (None, 2):
        squares = abs(ARRAYS["csr_array"](array)).power(2).sum(axis)  # a vector also for matrices
        empty = plain_values(squares) == 0.0  # the gradient is 0 there, as in numpy.linalg.norm
        return np.where(empty, 0.0, np.sqrt(np.where(empty, 1.0, squares)))
    if carries_history(array.data):
        raise lost("scipy.sparse.linalg.norm", f"ord={ord!r} with axis={axis!r} has no derivative here")
    return scipy.sparse.linalg.norm(array.to_scipy(), ord, axis)


@functools.cache
def _norm_dtype(dtype: np.dtype[Any], of_all: bool, ord: Any) -> np.dtype[Any] | None:
    """Return the dtype of SciPy's norm of a real matrix; since 1.18 often float64 for other dtypes."""
    if dtype.kind not in "f" or ord not in (None, 1, 2, np.inf):
        return None
    one = scipy.sparse.csr_array(np.ones((1, 1), dtype))
    try:
        return np.asarray(scipy.sparse.linalg.norm(one, ord, None if of_all else 1)).dtype
    except (NotImplementedError, ValueError):
        return None


globals().update(namespace(scipy.sparse.linalg, MADE))
