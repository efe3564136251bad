"""Eigenvalues and least-squares solutions of sparse matrices, with respect to their stored values."""

import numpy as np
import pytest
import scipy.sparse
from scipy.sparse import linalg

import viewgrad as vg
from viewgrad.errors import DifferentiabilityError

K = np.array([1.0, 2.0, 3.0, 1.5])
R = np.random.default_rng(0).normal(size=(7, 4))
TIGHT = {"atol": 1e-14, "btol": 1e-14}


def stiffness(k):
    """Return the matrix of a chain of springs, assembled element by element."""
    places = [(e + a, e + b, k[e] * (1.0 if a == b else -1.0)) for e in range(4) for a in range(2) for b in range(2)]
    rows, columns, values = zip(*places)
    return scipy.sparse.coo_matrix((values, (rows, columns)), shape=(5, 5)).tocsr()[1:, 1:]


def of_eigenpairs(pairs):
    w, v = pairs
    return (w * w).sum() + (v[:, 0] ** 2 * np.arange(4)).sum() + (v[:, 1] ** 4).sum()


def scaled(k):
    return scipy.sparse.csr_matrix(R) @ scipy.sparse.diags(k)


def of_solution(found, norms):
    return (found[0] ** 2).sum() + sum(found[place] for place in norms)


PROGRAMS = {
    "the smallest": lambda k: of_eigenpairs(linalg.eigsh(stiffness(k), k=2, which="SM", v0=np.ones(4))),
    "generalized, by a shift": lambda k: of_eigenpairs(
        linalg.eigsh(stiffness(k).tocsc(), k=2, M=scipy.sparse.diags([k * k], [0], format="csc"), sigma=0.1, v0=K)
    ),
    "a dense matrix": lambda k: linalg.eigsh(np.diag(k) + 0.1, k=2, return_eigenvectors=False, v0=K).prod(),
    "lsqr": lambda k: of_solution(linalg.lsqr(scaled(k), np.arange(7.0), **TIGHT), (3, 4, 8)),
    "lsqr with damping": lambda k: of_solution(linalg.lsqr(scaled(k), np.arange(7.0), 0.7, **TIGHT), (3, 4, 8)),
    "lsqr of a wide matrix": lambda k: of_solution(linalg.lsqr(scaled(k).T.tocsr(), k * k, **TIGHT), (8,)),
    "lsmr": lambda k: of_solution(linalg.lsmr(scaled(k), np.arange(7.0), **TIGHT), (3, 7)),
    "lsmr with damping": lambda k: of_solution(linalg.lsmr(scaled(k), np.arange(7.0), 0.7, **TIGHT), (3, 7)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_match_central_differences(name):
    program = PROGRAMS[name]
    value, slope = vg.func.value_and_grad(program)(K)
    assert value == pytest.approx(float(program(K)), rel=1e-9)
    expected = [(program(K + step) - program(K - step)) / 2e-5 for step in 1e-5 * np.eye(4)]
    np.testing.assert_allclose(slope, expected, rtol=1e-5, atol=1e-7)


def test_second_derivatives_of_eigenpairs():
    slope = vg.func.grad(PROGRAMS["generalized, by a shift"])
    expected = [(slope(K + step) - slope(K - step)) / 2e-4 for step in 1e-4 * np.eye(4)]
    np.testing.assert_allclose(vg.func.hessian(PROGRAMS["generalized, by a shift"])(K), expected, rtol=1e-5, atol=1e-5)


def test_multiple_eigenvalues_and_matrices_without_full_rank_have_no_derivative():
    equal = lambda k: linalg.eigsh(scipy.sparse.diags([k[0] * np.ones(4)], [0]).tocsc(), k=1, v0=K)[0].sum()
    with pytest.raises(DifferentiabilityError, match="not simple"):
        vg.func.grad(equal)(K)
    flat = scipy.sparse.diags(np.array([1.0, 1.0, 0.0, 0.0]))
    with pytest.raises(DifferentiabilityError, match="full rank"):
        vg.func.grad(lambda k: linalg.lsqr(flat @ scipy.sparse.diags(k), np.ones(4))[0].sum())(K)
