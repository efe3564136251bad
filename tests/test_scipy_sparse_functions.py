"""`scipy.sparse.linalg` for matrix functions, singular values, triangular systems and linear operators."""

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
from scipy.sparse import linalg
from scipy_cases import check_program

import viewgrad as vg
import viewgrad.scipy
from viewgrad.errors import DifferentiabilityError, UnsupportedFunctionError

X = np.array([1.0, 2.0, 3.0])
W = np.array([0.3, 1.2, -0.5])
B = np.array([[4.0, 1.0, 0.0], [1.0, 5.0, 2.0], [0.5, 2.0, 6.0]])
ROWS, COLS = [0, 0, 1, 1, 1, 2, 2], [0, 1, 0, 1, 2, 1, 2]
TALL, T = np.cos(np.arange(12.0) ** 2).reshape(4, 3), np.arange(1.0, 5.0)
TIGHT = {"atol": 1e-14, "btol": 1e-14}
OUTSIDE = linalg.LinearOperator((3, 3), matvec=lambda v: B @ v, rmatvec=lambda v: B.T @ v)
COMPOSED = 2 * linalg.aslinearoperator(sp.csr_array(B)) + OUTSIDE.T @ OUTSIDE - OUTSIDE.H**2


class Shifted(linalg.LinearOperator):
    """A dense matrix with another diagonal."""

    def __init__(self, diagonal):
        self.diagonal = diagonal
        super().__init__(dtype=float, shape=(3, 3))

    def _matvec(self, v):
        return self.diagonal * v.ravel() + B @ v.ravel()

    def _rmatvec(self, v):
        return self.diagonal * v + B.T @ v


class Products:
    """An object with the methods that SciPy's solvers call, of no class of SciPy's."""

    def __init__(self, array, factor=1.0):
        self.array, self.factor, self.shape, self.dtype = array, factor, array.shape, np.dtype(float)

    def matvec(self, v):
        return self.factor * (self.array @ v)

    def rmatvec(self, v):
        return self.factor * (self.array.T @ v)


def matrix(x):
    values = np.array([4.0, 1, 1, 5, 2, 2, 6]) * 0.3 * np.sin(x[0] * np.arange(1, 8.0))
    return sp.csr_array((values, (ROWS, COLS)), shape=(3, 3))


def of_triplets(u, s, v):
    return (s**3).sum() + s.prod() + (u[:, 1] @ W) ** 2 * (v[0] @ W) ** 2 + (u[:, 1] @ W) * (v[1] @ W)


def with_operator(x):
    operator = linalg.LinearOperator((3, 3), matvec=lambda v: x * v + B @ v, rmatvec=lambda v: x * v + B.T @ v)
    return ((operator @ x + operator.T @ x * 2) * W).sum() + ((operator.H * operator) @ x)[0]


PROGRAMS = {
    "expm_multiply": lambda x: linalg.expm_multiply(matrix(x), x) @ W,
    "expm_multiply at times": lambda x: (
        linalg.expm_multiply(matrix(x), np.outer(x, x)[:, :2], start=0.1, stop=x[1], num=3).sum() * 0.1
    ),
    "expm_multiply without the end": lambda x: (
        linalg.expm_multiply(matrix(x), x, start=0.0, stop=1.0, num=3, endpoint=False) ** 2
    ).sum(),
    "expm_multiply of a dense matrix": lambda x: linalg.expm_multiply(np.outer(x, np.cos(x)), x) @ W,
    "expm_multiply of an operator": lambda x: linalg.expm_multiply(
        linalg.LinearOperator(
            (3, 3), lambda v: 0.1 * (B @ v.ravel()) + x * v.ravel(), lambda v: 0.1 * (B.T @ v.ravel()) + x * v.ravel()
        ), W, traceA=1.0,
    ).sum(),
    "svds": lambda x: of_triplets(*linalg.svds(matrix(x), k=2, v0=W)),
    "svds of a wide matrix": lambda x: linalg.svds(sp.csr_array(matrix(x)[:2]), k=1, return_singular_vectors=False)[0],
    "svds of a dense matrix": lambda x: linalg.svds(np.diag(x) + np.triu(B), k=1)[1][0],
    "svds, left": lambda x: abs(linalg.svds(matrix(x), k=1, return_singular_vectors="u")[0][:, 0]) @ W,
    "inv": lambda x: (linalg.inv(sp.csc_array(matrix(x))) @ W).sum() ** 2,
    "spsolve_triangular": lambda x: linalg.spsolve_triangular(sp.csr_array(sp.tril(matrix(x))), x) @ W,
    "spsolve_triangular, upper": lambda x: (
        linalg.spsolve_triangular(sp.csc_array(sp.triu(matrix(x))), np.outer(x, x), lower=False) ** 2
    ).sum(),
    "spsolve_triangular, unit diagonal": lambda x: (
        linalg.spsolve_triangular(sp.csr_array(sp.tril(matrix(x))), x, unit_diagonal=True) @ W
    ),
    "operators": with_operator,
    "a class of operators": lambda x: (Shifted(X) @ X).sum() * x[0] + (Shifted(X) @ B).sum() * x[1],
    "operators from outside": lambda x: (
        (OUTSIDE @ x) @ W + (COMPOSED.matvec(x) ** 2).sum() + (COMPOSED * np.outer(x, x)).sum() + (x @ COMPOSED) @ W
    ),
    "powers of operators": lambda x: ((linalg.LinearOperator((3, 3), lambda v: v * x) ** 3) @ W).sum(),
    "gmres": lambda x: linalg.gmres(linalg.LinearOperator((3, 3), lambda v: B @ v + x * v), x, rtol=1e-12)[0] @ W,
    "cg": lambda x: linalg.cg(linalg.LinearOperator((3, 3), lambda v: B.T @ (B @ v) + x**2 * v), W, rtol=1e-12)[0] @ x,
    "bicgstab": lambda x: linalg.bicgstab(
        linalg.aslinearoperator(matrix(x)) + linalg.aslinearoperator(np.diag(x) + B), W, rtol=1e-12
    )[0] @ x,
    "cg of an object with products": lambda x: linalg.cg(Products(B.T @ B + np.eye(3), x[0]), x, rtol=1e-13)[0] @ W,
    "eigsh of an object with products": lambda x: linalg.eigsh(Products(B.T @ B), k=1, v0=W)[0][0] * x[0],
    "svds of an object with products": lambda x: linalg.svds(Products(B), k=1, v0=W)[1][0] * x[0],
    "lsqr of an object with products": lambda x: (linalg.lsqr(Products(TALL, x[0]), T * x[1], **TIGHT)[0] ** 2) @ W,
    "lsqr of an operator": lambda x: linalg.lsqr(
        linalg.LinearOperator((4, 3), lambda v: TALL @ (v.ravel() * x), lambda v: x * (TALL.T @ v.ravel())),
        T, 0.4, **TIGHT,
    )[0] @ W,
    "lsmr of a wide operator": lambda x: linalg.lsmr(Products(TALL.T, x[1]), x, **TIGHT)[0] @ T,
    "zeros of a dense matrix": lambda x: linalg.gmres(
        np.outer(x, np.array([1.0, 0.0, 0.0])) + np.diag([4.0, 5.0, 6.0]), W, rtol=1e-12
    )[0].sum(),
}


@pytest.mark.filterwarnings("ignore")  # the estimated trace of an operator
@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives_match_central_differences(name):
    check_program(PROGRAMS[name], X)


def test_zeros_of_a_dense_matrix_have_derivatives():
    def of_corner(x):
        a = np.array([[2.0, 0.0], [1.0, 3.0]]) + np.array([[0.0, 1.0], [0.0, 0.0]]) * x
        return linalg.gmres(a, np.array([1.0, 2.0]), rtol=1e-12)[0].sum()

    slope = vg.func.grad(of_corner)(0.0)
    assert slope == pytest.approx((of_corner(1e-6) - of_corner(-1e-6)) / 2e-6, rel=1e-5)


def test_zero_singular_values_have_no_derivative():
    with pytest.raises(DifferentiabilityError, match="singular value"):
        vg.func.grad(lambda x: linalg.svds(sp.diags_array(x * np.array([1.0, 1.0, 2.0])), k=2)[1].sum())(np.ones(3))


@pytest.mark.parametrize("solve", [
    lambda a: linalg.eigsh(a, k=1, return_eigenvectors=False),
    lambda a: linalg.svds(a, k=1)[1], lambda a: linalg.onenormest(a),
])  # fmt: skip
def test_operators_with_a_history_are_refused_where_the_derivative_would_be_lost(solve):
    def program(x):
        operator = linalg.LinearOperator((3, 3), lambda v: v.ravel() * x, lambda v: v.ravel() * x, dtype=float)
        return np.sum(solve(operator))

    assert np.isfinite(program(X))
    with pytest.raises(UnsupportedFunctionError):
        vg.func.grad(program)(X)


def test_operators_see_writes_to_the_matrix():
    dense, stored = B.copy(), sp.csr_array(B)
    operators = [linalg.aslinearoperator(dense), 2.0 * linalg.aslinearoperator(stored)]
    slope = vg.func.grad(lambda x: sum((operator @ x).sum() for operator in operators))
    np.testing.assert_allclose(slope(X), 3 * B.sum(0))
    dense *= 2.0
    stored.data *= 3.0
    np.testing.assert_allclose(slope(X), 8 * B.sum(0))


@pytest.mark.parametrize("method", ["Newton-CG", "trust-constr"])
def test_hessians_of_an_optimizer_can_be_operators(method):
    def place(x):
        found = scipy.optimize.minimize(
            lambda q: ((q - x) ** 2).sum() + (q**4).sum() * 0.1, np.ones(3), jac=lambda q: 2 * (q - x) + 0.4 * q**3,
            hess=lambda q: linalg.LinearOperator((3, 3), matvec=lambda v: 2 * v + 1.2 * q**2 * v, dtype=float),
            method=method,
        )
        return found.x.sum()

    np.testing.assert_allclose(vg.func.grad(place)(X), [1 / (2 + 1.2 * q**2) * 2 for q in place_of(X)], rtol=1e-4)


def place_of(x):
    return [np.roots([0.4, 0.0, 2.0, -2.0 * each])[-1].real for each in x]


def test_jacobians_of_least_squares_can_be_operators():
    def place(x):
        operator = linalg.LinearOperator((3, 3), matvec=lambda v: B @ v, rmatvec=lambda v: B.T @ v)
        found = scipy.optimize.least_squares(lambda q: B @ q - x, np.ones(3), jac=lambda q: operator, tr_solver="lsmr")
        return found.x @ W

    np.testing.assert_allclose(vg.func.grad(place)(X), np.linalg.solve(B.T, W), rtol=1e-6)


LIKE_SCIPY = {
    "find": lambda m, a: m.find(m.csc_array(a))[:2], "kronsum": lambda m, a: m.kronsum(m.csr_array(a), a).toarray(),
    "norms of a matrix": lambda m, a: m.linalg.norm(m.csr_matrix(a), axis=0),
    "eigsh": lambda m, a: m.linalg.eigsh(m.csr_array(a + a.T), k=1, return_eigenvectors=False),
    "svds": lambda m, a: m.linalg.svds(m.csr_array(a), k=1, return_singular_vectors=False),
    "quotient": lambda m, a: (m.lil_array(a) / 3).toarray(),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float32, float])
@pytest.mark.parametrize("name", LIKE_SCIPY)
def test_results_have_scipys_shape_dtype_and_order(name, dtype):
    found = LIKE_SCIPY[name](vg.scipy.sparse, vg.Tensor(B.astype(dtype), requires_grad=True))
    wanted = LIKE_SCIPY[name](sp, B.astype(dtype))
    for each, other in zip(*[part if isinstance(part, tuple) else (part,) for part in (found, wanted)]):
        each = each.detach() if isinstance(each, vg.Tensor) else each
        assert each.shape == other.shape and (name == "find" or each.dtype == other.dtype)
        np.testing.assert_allclose(each, other, rtol=1e-5)


@pytest.mark.parametrize("index", [1, (slice(None), 1), ([0, 1], [1, 2]), (1, slice(0, 2)), [0, 2]])
@pytest.mark.parametrize("name", ["lil_array", "dok_array", "csr_array"])
def test_rows_and_columns_of_arrays_have_one_dimension(name, index):
    found = getattr(vg.scipy.sparse, name)(vg.Tensor(B, requires_grad=True))[index]
    found = found.toarray() if hasattr(found, "toarray") else found
    np.testing.assert_array_equal(found.detach(), B[index])
