"""`numpy.matrix` of tensors: NumPy's values, shapes and types, and gradients of finite differences."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg

import viewgrad as vg
import viewgrad.numpy as vnp

pytestmark = pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
X = np.array([[1.5, -2.0, 0.5], [3.0, 0.7, -0.1], [0.2, 1.1, 4.0]])
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    CONSTANT = np.matrix([[1.0, 2.0, 0.5], [0.0, 1.0, -1.0], [2.0, 0.3, 1.0]])


def written(m):
    m = m.copy()
    m[0, 1] = m[1, 0] * 3.0
    m[:, 2] = m[:, 0] * 2.0
    m[2] = [1.0, 2.0, m[0, 0]]
    m += m.T
    m *= 2.0
    return m


def filtered(np, m):
    """Run a Kalman filter with products of matrices."""
    state, covariance = np.matrix([[0.0], [1.0]]), np.matrix(np.eye(2))
    move, seen = np.matrix([[1.0, m[0, 0]], [0.0, 1.0]]), np.matrix([[1.0, 0.0]])
    for value in (0.3, 0.8, 1.1):
        state, covariance = move * state, move * covariance * move.T + 0.1 * np.asmatrix(np.eye(2))
        gain = covariance * seen.T * (seen * covariance * seen.T + m[1, 1] ** 2).I
        state = state + gain * (value - seen * state)
        covariance = (np.eye(2) - gain * seen) * covariance
    return state


WHOLE, REAL = np.arange(9).reshape(3, 3), np.linspace(-1.0, 1.0, 9).reshape(3, 3)
# Functions of NumPy's or viewgrad's namespace and a matrix.
PROGRAMS = {
    "products": lambda np, m: m * m.T * m,
    "products with vectors": lambda np, m: m * np.matrix([1.0, 2.0, 3.0]).T + m * m[:, 0] * 2.0,
    "products with arrays": lambda np, m: m * np.array([[1.0], [2.0], [0.5]]) + np.eye(3) * m * m[0].T,
    "products with arrays of others": lambda np, m: WHOLE * m + REAL * m * 3 + (REAL > 0.3) * m + WHOLE[0] * m,
    "elementwise products": lambda np, m: np.multiply(WHOLE, m) + np.multiply(m, REAL) + np.multiply(REAL, m),
    "numbers": lambda np, m: 2.0 * m - m / 3.0 + m * m[0, 1] + m[1, 1] * m,
    "elementwise": lambda np, m: np.multiply(m, m) + np.sin(m) - np.maximum(m, 0.3),
    "powers": lambda np, m: m**2 + m**-1,
    "inverses": lambda np, m: m.I * m[:, 1] + m[:, :2].I.T[:, 1],
    "transposes": lambda np, m: m.T + m.H + m.getT() - m.transpose(),
    "rows and columns": lambda np, m: m[0] * m[:, 1] + m[1, :] * m[:, 2] + m[[0, 2]] * m[:, 0].sum() * m[:, 1],
    "selections": lambda np, m: m[m > 0.6] * 2.0,
    "slices": lambda np, m: m[1:, :2] - m[:2, 1:],
    "sums": lambda np, m: m.sum() * m.sum(axis=0) + m.sum(1).T + np.sum(m, axis=0) + m.mean(0) * np.mean(m, axis=1),
    "extremes": lambda np, m: m.max(axis=1) * m.min(axis=0) + m.ptp(1) if hasattr(m, "ptp") else m,
    "spreads": lambda np, m: m.std(axis=0) * m.var(1) + m.prod(axis=0) * m.prod(),
    "arrays": lambda np, m: np.asarray(m) * m.A + np.array(m) * m.A1.sum(),
    "vectors": lambda np, m: m.A1 * np.asarray(m.ravel())[0] + m.flatten().A1,
    "linear algebra": lambda np, m: np.linalg.inv(m) * m[:, 0] + np.linalg.solve(m, m[:, 1]) * np.linalg.det(m),
    "diagonals": lambda np, m: m.diagonal() * m.trace()[0, 0] + np.trace(m) + np.diag(np.asarray(m)),
    "joined": lambda np, m: np.vstack([m, m[0]]) * np.hstack((m, m[:, 0]))[:, :3] + np.concatenate([m, m[:1]]),
    "dot": lambda np, m: np.dot(m, m) + m.dot(m.T) + m @ m,
    "iteration": lambda np, m: sum(row * row.T for row in m)[0, 0] * m,
    "reshaped": lambda np, m: m.reshape(1, 9)[:, :3] * m,
    "reshaped to a row": lambda np, m: m.reshape(-1) * np.reshape(m.T, 9).T + m[:1, :1].reshape(()),
    "dot with vectors": lambda np, m: m.dot(np.ones(3)) * m + np.array([1.0, 2.0, 0.5]) * m,
    "vectors from functions": lambda np, m: np.ravel(m) * np.ravel(m.T),
    "reductions of ufuncs": lambda np, m: np.add.reduce(m) * m + np.multiply.reduce(m, axis=1) * m
    + np.add.reduce(m, axis=None),
    "strings": lambda np, m: np.matrix("1 2 3; 0.5, 1, 2") * m,
    "blocks": lambda np, m: np.bmat([[m, m[:, :1]], [m[:1], np.matrix([[1.0]])]]),
    "lists": lambda np, m: np.matrix([[m[0, 0], 1.0], [m[1, 1], m[2, 0]]]) * np.mat([[1.0], [2.0]])
    if hasattr(np, "mat") else np.matrix([[m[0, 0], 1.0], [m[1, 1], m[2, 0]]]),
    "writes": lambda np, m: written(m),
    "comparisons": lambda np, m: np.where(m > 0.6, m, 2.0 * m) if (m == m).all() else m,
    "a filter": filtered,
    "eigenvectors": lambda np, m: np.linalg.eigh(m + m.T)[1] * np.diag(np.linalg.eigh(m + m.T)[0]),
    "complex": lambda np, m: (m + 1j * m.T).H * m + (m * 2j).imag,
}  # fmt: skip


def plain(found):
    data = found.A if type(found).__name__ == "matrix" else found
    return np.asarray(data.detach() if isinstance(data, vg.Tensor) else data)


@pytest.mark.parametrize("name", PROGRAMS)
def test_matrices_match_numpy_and_differences(name):
    program = PROGRAMS[name]
    leaf = vg.Tensor(X, requires_grad=True)
    found, expected = program(vnp, vnp.matrix(leaf)), program(np, np.matrix(X))
    assert (type(found) is vnp.matrix) == (type(expected) is np.matrix)
    np.testing.assert_allclose(plain(found), plain(expected), rtol=1e-10, atol=1e-12)
    weights = np.cos(np.arange(plain(expected).size)).reshape(plain(expected).shape)

    def total(x):
        return (plain(program(np, np.matrix(x))) * weights).real.sum()

    data = found.A if type(found) is vnp.matrix else found
    gradient = vg.autograd.grad((data * weights).real.sum(), leaf)[0].numpy()
    slopes = np.zeros(X.shape)
    for place in np.ndindex(X.shape):
        step = np.zeros(X.shape)
        step[place] = 1e-6
        slopes[place] = (total(X + step) - total(X - step)) / 2e-6
    if name == "eigenvectors":  # NumPy reads one triangle; the sum of the matrices is symmetric
        np.testing.assert_allclose(gradient.sum(), slopes.sum(), rtol=1e-6)
        return
    np.testing.assert_allclose(gradient, slopes, rtol=1e-6, atol=1e-7)


def of_constants(x):
    a = np.matrix(np.zeros((3, 3)))
    a[0, 0] = x
    a[1, 2] = float((CONSTANT[0] * np.matrix([x, 1.0, 2.0]).T)[0, 0])
    return (a * CONSTANT).sum() + (CONSTANT * x)[0, 1] * np.asarray(CONSTANT @ (x * CONSTANT)).max()


def of_plain_arrays(x):
    m = np.asmatrix(np.array([[x, 1.0], [2.0, x * x]]))
    return (np.array([[1, 2], [3, 4]]) * m + np.array([[True, False], [True, True]]) * m).sum()


def test_products_of_whole_numbers_and_matrices_run_unmodified():
    value, gradient = vg.value_and_grad(of_plain_arrays)(0.7)
    assert value == pytest.approx(of_plain_arrays(0.7))
    assert gradient == pytest.approx((of_plain_arrays(0.7 + 1e-6) - of_plain_arrays(0.7 - 1e-6)) / 2e-6)


def test_programs_with_matrices_run_unmodified():
    for x in (0.7, 2.0):
        assert np.isclose(vg.grad(of_constants)(x), (of_constants(x + 1e-6) - of_constants(x - 1e-6)) / 2e-6)
    assert CONSTANT.sum() == 6.8
    assert vg.adopt(lambda m: isinstance(m, np.matrix))(CONSTANT)


def test_functions_of_scipy_take_matrices():
    linalg = pytest.importorskip("scipy.linalg")

    def f(x):
        m = np.matrix([[x, 1.0], [0.3, 2.0 + x]])
        return (linalg.inv(m) @ linalg.expm(m) @ linalg.solve(m, m[:, 0])).sum() + linalg.expm(x)[0, 0]

    assert np.isclose(vg.grad(f)(0.7), (f(0.7 + 1e-6) - f(0.7 - 1e-6)) / 2e-6)


def test_matrices_reject_what_numpy_rejects():
    m = vnp.matrix(vg.Tensor(X, requires_grad=True))
    with pytest.raises(ValueError, match="2-dimensional"):
        vnp.matrix(vg.Tensor(np.zeros((2, 2, 2))))
    with pytest.raises(ValueError, match="ambiguous"):
        bool(m > 0)
    with pytest.raises(ValueError, match=r"shapes|align|mismatch|match"):
        m * [1.0, 2.0]


OUTSIDE = np.array([[1.0, 2.0], [3.0, 4.0]]).view(np.matrix)
# Functions of a matrix and an array; NumPy returns a matrix, or an array of one or two dimensions.
MIXED = {
    "dot": lambda x: np.dot(OUTSIDE, x) * OUTSIDE,
    "dot from the left": lambda x: np.dot(x, OUTSIDE),
    "solve": lambda x: np.linalg.solve(OUTSIDE, x),
    "solve for a column": lambda x: np.linalg.solve(OUTSIDE, x.reshape(2, 1)) * np.array([[1.0, 2.0]]),
    "kron": lambda x: np.kron(OUTSIDE, x),
    "concatenate": lambda x: np.concatenate([OUTSIDE, x.reshape(1, 2)]) * OUTSIDE,
    "vstack": lambda x: np.vstack([OUTSIDE, x]) * OUTSIDE,
    "where": lambda x: np.where(OUTSIDE > 2, x, OUTSIDE) * x,
    "outer": lambda x: np.outer(OUTSIDE, x),
    "inner": lambda x: np.inner(OUTSIDE, x),
    "tensordot": lambda x: np.tensordot(OUTSIDE, x, 1),
    "einsum": lambda x: np.einsum("ij,j", OUTSIDE, x),
    "r_ to a row": lambda x: np.r_["r", x, 2.0] * CONSTANT,
    "r_ to a column": lambda x: CONSTANT * np.r_["c", x * x, x[0]],
    "r_ of rows": lambda x: np.r_["c", x[None], x[None] * 2] * OUTSIDE,
}


@pytest.mark.parametrize("name", MIXED)
def test_functions_of_a_matrix_and_an_array(name):
    f, point = MIXED[name], np.array([1.1, 1.25])

    def total(x):
        result = np.asarray(f(x))
        return np.sum(result * np.cos(np.arange(result.size)).reshape(result.shape))

    expected, result = f(point), vg.adopt(f)(vg.Tensor(point))
    assert result.shape == expected.shape
    assert isinstance(result, vnp.matrix) == isinstance(expected, np.matrix)
    value, gradient = vg.value_and_grad(total)(point)
    differences = [(total(point + step) - total(point - step)) / 2e-6 for step in np.eye(2) * 1e-6]
    assert value == pytest.approx(total(point)) and gradient == pytest.approx(differences, rel=1e-6)


DENSE = np.array([[4.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 5.0]])
SPARSE = scipy.sparse.csc_matrix(DENSE)


def assigning(place, shape, select):
    """Return a program that assigns the dense form of a sparse matrix to a part of an array."""

    def program(x):
        y = np.zeros(shape)
        y[place] = select(SPARSE * x)
        return (y * np.arange(1.0, y.size + 1).reshape(shape)).sum()

    return program


def in_place(x):
    y = np.ones((3, 3))
    z = y
    y += (SPARSE * x).todense()
    y *= (SPARSE * x).todense()
    return z.sum() * isinstance(y, np.ndarray)


def assembled(x):
    a = scipy.sparse.lil_matrix((3, 3))
    a[:2, :2] += np.ones((2, 2)) * x
    a[2, :] = (SPARSE * x)[0].todense()
    return (a.toarray() ** 2).sum()


@pytest.mark.parametrize(
    "program",
    [
        assigning(slice(None), (3, 3), lambda a: a.todense()),
        assigning(0, (3, 3), lambda a: a.sum(axis=0)),
        assigning((slice(None), [0]), (3, 2), lambda a: a.mean(axis=1)),
        in_place,
        assembled,
        lambda x: scipy.sparse.linalg.spsolve(SPARSE * x, (SPARSE * x**2)[0].todense().T).sum(),
        lambda x: scipy.sparse.bmat([[SPARSE, (SPARSE * x).todense()]]).power(2).sum(),
        lambda x: scipy.sparse.csr_matrix((SPARSE * x).todense()).power(2).sum(),
        lambda x: np.full((3, 3), (SPARSE * x)[1].todense()).sum(),
        lambda x: np.dot((SPARSE * x).todense().view(np.ndarray), DENSE).sum(),
    ],
)
def test_dense_forms_of_sparse_matrices_are_arrays(program):
    h = 1e-6
    slope = (program(1.3 + h) - program(1.3 - h)) / (2 * h)
    assert vg.value_and_grad(program)(1.3) == pytest.approx((program(1.3), slope))


def test_matrices_are_instances_of_ndarray_in_adopted_code():
    assert vg.grad(lambda x: x * isinstance((SPARSE * x).todense(), np.ndarray))(2.0) == 1.0
