"""The options of `scipy.linalg` with tensors that require grad: SciPy's values and shapes, and central differences."""

import numpy as np
import pytest

import viewgrad as vg
from viewgrad.errors import DifferentiabilityError, UnsupportedFunctionError

scipy_linalg = pytest.importorskip("scipy.linalg")
vsl = pytest.importorskip("viewgrad.scipy.linalg")

rng = np.random.default_rng(0)
REAL = rng.normal(size=(3, 3)) + 3 * np.eye(3)
COMPLEX = rng.normal(size=(3, 3)) + 1j * rng.normal(size=(3, 3)) + 3 * np.eye(3)
TALL = rng.normal(size=(4, 3))
STACK = np.array([each @ each.T + np.eye(3) for each in rng.normal(size=(2, 3, 3))])
BANDS = np.array([each * [[0.3], [2.0]] for each in rng.uniform(1, 2, size=(2, 2, 3))])
b = np.arange(1.0, 4.0)

CASES = {
    "a diagonal": (COMPLEX, lambda m, a: m.solve(a, b, assume_a="diagonal")),
    "three diagonals": (REAL, lambda m, a: m.solve(a, b, assume_a="tridiagonal")),
    "a diagonal that is not real": (COMPLEX, lambda m, a: m.solve(a, b, assume_a="her")),
    "a lower triangle": (COMPLEX, lambda m, a: m.solve(a, b, assume_a="hermitian", lower=True)),
    "the pseudo-inverse of a self-adjoint matrix": (COMPLEX, lambda m, a: m.pinvh(a)),
    "an absolute tolerance": (TALL, lambda m, a: m.pinv(a, atol=1.5)),
    "both tolerances": (TALL, lambda m, a: m.pinv(a, atol=0.5, rtol=0.3, return_rank=True)),
    "an absolute tolerance of a self-adjoint matrix": (STACK[0], lambda m, a: m.pinvh(a, atol=2.0)),
    "the adjoint system": (COMPLEX, lambda m, a: m.lu_solve(m.lu_factor(a), b, 2)),
    "the nearest unitary map": (COMPLEX, lambda m, a: m.orthogonal_procrustes(a, COMPLEX.T)),
    "one residual": (TALL, lambda m, a: m.lstsq(a, np.arange(4.0))[:2]),
    "no residuals": (TALL, lambda m, a: m.lstsq(a, np.arange(4.0), lapack_driver="gelsy")[:2]),
    "eigenvalues by index": (STACK[0], lambda m, a: m.eigh(a, eigvals_only=True, subset_by_index=[1, 2])),
    "eigenvalues by value": (STACK[0], lambda m, a: m.eigvalsh(a, subset_by_value=[1.5, np.inf], driver="evr")),
    "eigenvectors by index": (STACK[0], lambda m, a: m.eigh(a, subset_by_index=[0, 1])[1] ** 2),
    "eigenvalues of a pair": (COMPLEX, lambda m, a: m.eigvals(a, np.eye(3))),
    "angles of spaces of a lower rank": (np.ones((3, 2)), lambda m, a: m.subspace_angles(a, np.eye(3)[:, :1]).shape),
    "factors of a singular matrix": (np.array([[1.0, 2], [2, 4]]), lambda m, a: m.rq(a)[0] @ m.rq(a)[1]),
    # stacks
    "logarithms": (STACK, lambda m, a: m.logm(a)),
    "roots": (STACK, lambda m, a: m.sqrtm(a)),
    "powers": (STACK, lambda m, a: m.fractional_matrix_power(a, 0.3)),
    "left eigenvectors": (STACK, lambda m, a: m.eig(a, left=True, right=False)[1] ** 2),
    "Cholesky factors": (STACK, lambda m, a: m.cho_solve(m.cho_factor(a), b)),
    "triangular factors": (STACK, lambda m, a: m.lu(a, permute_l=True)),
    "LU factors": (STACK, lambda m, a: m.lu_solve(m.lu_factor(a), b)),
    "pivots": (STACK, lambda m, a: m.qr(a, pivoting=True)),
    "products of columns": (STACK, lambda m, a: m.khatri_rao(a, REAL)),
    "least squares": (STACK, lambda m, a: m.lstsq(a, b)[0]),
    "equations of matrices": (STACK, lambda m, a: m.solve_sylvester(a, REAL, REAL)),
    "polar factors": (STACK, lambda m, a: m.polar(a)),
    "best maps": (STACK, lambda m, a: m.orthogonal_procrustes(a, REAL)),
    "factors of bands": (BANDS, lambda m, a: m.cholesky_banded(a)),
    "systems of factors of bands": (BANDS, lambda m, a: m.cho_solve_banded((m.cholesky_banded(a), False), b)),
    "systems of symmetric bands": (BANDS, lambda m, a: m.solveh_banded(a, b)),
    "systems of bands": (BANDS, lambda m, a: m.solve_banded((0, 1), a, np.ones((2, 3, 1)))),
    "eigenvalues of bands": (BANDS, lambda m, a: m.eigvals_banded(a)),
    "bands diagonalized": (BANDS, lambda m, a: m.eig_banded(a)[1] ** 2),
    "rectangular diagonals": (BANDS[:, 1], lambda m, a: m.diagsvd(a, 3, 4)),
    "three diagonals diagonalized": (BANDS[:, 1], lambda m, a: m.eigh_tridiagonal(a, BANDS[:, 0, 1:])[1] ** 2),
    "eigenvalues of three diagonals": (BANDS[:, 0, 1:], lambda m, a: m.eigvalsh_tridiagonal(BANDS[:, 1], a)),
    "ranges": (STACK, lambda m, a: m.orth(a) ** 2),
    # further options
    "homogeneous eigenvalues": (REAL, lambda m, a: m.eigvals(a, homogeneous_eigvals=True)),
    "right eigenvectors of a pair": (REAL, lambda m, a: np.abs(m.eig(a, STACK[0])[1])),
    "left eigenvectors of a pair": (REAL, lambda m, a: np.abs(m.eig(a, STACK[0], left=True, right=False)[1])),
    "eigenvectors of a product": (STACK[0], lambda m, a: m.eigh(a, STACK[1], type=2)[1] ** 2),
    "eigenvectors of the other product": (STACK[0], lambda m, a: m.eigh(STACK[1], a, type=3)[1] ** 2),
    "factors of a tall matrix": (TALL, lambda m, a: m.lu_factor(a)[0]),
}
WRONG = {
    "structure": lambda m, a: m.solve(a, b, assume_a="foo"),
    "mode of qr": lambda m, a: m.qr(a, mode="x"),
    "mode of rq": lambda m, a: m.rq(a, mode="x"),
    "method": lambda m, a: m.solve_discrete_lyapunov(a, a, "x"),
    "tolerance": lambda m, a: m.pinv(a, atol=-1.0),
    "driver": lambda m, a: m.lstsq(a, b, lapack_driver="x"),
    "kind of eigenvalue problem": lambda m, a: m.eigh(a, a, type=5),
    "infinite elements": lambda m, a: m.orthogonal_procrustes(a * np.inf, a),
    "a vector": lambda m, a: m.null_space(a[0]),
}


def leaves(found):
    parts = list(found) if isinstance(found, (tuple, list)) else [found]
    return [np.asarray(each) if isinstance(each, int) else each for each in parts]


def plain(value):
    return np.asarray(value.detach().numpy() if isinstance(value, vg.Tensor) else value)


def total(found):
    """Return a real number that depends on all differentiable results."""
    parts = [each for each in leaves(found) if getattr(each, "dtype", np.dtype(int)).kind in "fc" and each.size]
    weights = [np.cos(np.arange(each.size).reshape(each.shape)) for each in parts]
    return sum((each * weight).sum().real for each, weight in zip(parts, weights))


@pytest.mark.parametrize("name", CASES)
def test_options_have_scipys_values_and_gradients(name):
    matrix, case = CASES[name]
    tensor = vg.Tensor(matrix.copy(), requires_grad=True)
    found, wanted = case(vsl, tensor), case(scipy_linalg, matrix)
    for our, their in zip(leaves(found), leaves(wanted), strict=True):
        assert plain(our).shape == np.shape(their)
        np.testing.assert_allclose(plain(our), their, rtol=1e-7, atol=1e-9)
    if name in ("angles of spaces of a lower rank", "factors of a singular matrix"):
        return
    total(found).backward()
    step = rng.normal(size=matrix.shape) + (1j * rng.normal(size=matrix.shape) if matrix.dtype.kind == "c" else 0)
    if name.startswith("eigenvectors") or matrix is STACK:
        step = step + step.swapaxes(-1, -2)  # stays symmetric, as SciPy reads one triangle
    ahead, behind = (total(case(scipy_linalg, matrix + sign * 1e-6 * step)) for sign in (1, -1))
    along = (tensor.grad.numpy().conj() * step).sum().real
    assert along == pytest.approx((ahead - behind) / 2e-6, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("name", WRONG)
def test_unknown_options_raise(name):
    with pytest.raises(ValueError):
        WRONG[name](scipy_linalg, REAL)
    with pytest.raises(ValueError):
        WRONG[name](vsl, vg.Tensor(REAL, requires_grad=True))


@pytest.mark.filterwarnings("ignore:Matrix is singular")
def test_results_of_another_form_are_refused():
    singular = vg.Tensor([[1.0, 2.0], [2.0, 4.0]], requires_grad=True)
    for refused in (
        lambda: vsl.qr(singular, mode="raw"),
        lambda: vsl.rq(vg.Tensor(TALL.T, requires_grad=True), mode="r"),
        lambda: vsl.sqrtm(singular),
    ):
        with pytest.raises(UnsupportedFunctionError):
            refused()


@pytest.mark.parametrize("lower", [False, True])
def test_bands_of_a_single_column(lower):
    bands = np.array([[2.0], [3.0]])
    leaf = vg.Tensor(bands, requires_grad=True)
    found = vsl.eigvals_banded(leaf, lower)
    np.testing.assert_array_equal(found.detach(), scipy_linalg.eigvals_banded(bands, lower))
    (slope,) = vg.autograd.grad(found.sum(), [leaf])
    np.testing.assert_array_equal(slope, [[1.0], [0.0]])


@pytest.mark.parametrize(
    "name, arguments",
    [
        ("solveh_banded", (np.array([[0.0, -1j, 0.5 - 1j], [4, 4, 5]]), np.array([1.0, 2.0, 1j]))),
        ("eigvalsh", (np.array([[2.0, 1 - 1j], [1 + 1j, 5]]), np.array([[2.0, 0.5j], [-0.5j, 3]]))),
    ],
)
def test_no_gradient_flows_to_imaginary_parts_of_real_diagonals(name, arguments):
    a = vg.Tensor(arguments[0], requires_grad=True)
    found = getattr(vsl, name)(a, *arguments[1:])
    np.testing.assert_allclose(found.detach().numpy(), getattr(scipy_linalg, name)(*arguments))
    gradient = vg.autograd.grad((found * np.array([1.0, 2.0, 3.0])[: found.size]).real.sum(), a)[0].numpy()
    diagonal = gradient[-1] if name == "solveh_banded" else np.diag(gradient)
    np.testing.assert_allclose(diagonal.imag, 0.0, atol=1e-15)
    assert np.abs(diagonal).min() > 1e-3


def test_logarithms_and_signs_of_matrices_without_a_basis_of_eigenvectors_are_refused():
    jordan = np.array([[5.1, -25.0, 0.0], [0.0, 5.1, 1.0], [0.0, 0.0, 6.1]])
    with pytest.raises(UnsupportedFunctionError, match="logm"):
        vsl.logm(vg.Tensor(jordan, requires_grad=True))
    np.testing.assert_allclose(vsl.logm(vg.Tensor(jordan)).numpy(), scipy_linalg.logm(jordan))


@pytest.mark.parametrize("options", [{}, {"driver": "evd"}, {"subset_by_index": [1, 3]}, {"subset_by_value": [-2, 2]}])
def test_eigenvectors_have_the_signs_of_scipys_driver(options):
    a = np.random.default_rng(0).standard_normal((20, 20))
    vectors = vsl.eigh(vg.Tensor(a, requires_grad=True), **options)[1]
    np.testing.assert_allclose(vectors.detach().numpy(), scipy_linalg.eigh(a, **options)[1], atol=1e-12)


@pytest.mark.filterwarnings("ignore:Diagonal number", "ignore:scipy.linalg.ldl")
@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("lu_factor", np.zeros((0, 2))), ("lu_factor", np.zeros((0, 1))), ("lu_factor", np.zeros((3, 3))),
        ("lu", np.zeros((3, 3))), ("ldl", 1j * np.eye(2)), ("fiedler", np.zeros(0)),
        ("eigvals", np.random.default_rng(0).normal(size=(5, 5)).astype(np.float32)),
        ("eig", np.random.default_rng(0).normal(size=(5, 5)).astype(np.float32)),
    ],
)  # fmt: skip
def test_empty_singular_and_single_precision_arrays_have_scipys_values(name, array):
    found = getattr(vsl, name)(vg.Tensor(array, requires_grad=True))
    expected = getattr(scipy_linalg, name)(array)
    pairs = zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]
    for ours, theirs in pairs:
        assert ours.shape == theirs.shape
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours.detach(), theirs, rtol=1e-3, atol=1e-4)


def test_factors_of_a_singular_matrix_have_no_derivative_where_they_are_not_unique():
    a = vg.Tensor(np.array([[0.0, 1.0, 2.0], [0.0, 1.0, 3.0], [0.0, 1.0, 4.0]]), requires_grad=True)
    with pytest.raises(DifferentiabilityError, match="pivot is zero"):
        vsl.lu(a)[2][1, 1].backward()
    vsl.lu(a)[2][0, 1].backward()
    np.testing.assert_allclose(a.grad, [[0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])


@pytest.mark.parametrize(
    "call",
    [
        lambda a: vsl.eigvals(a, np.zeros((2, 2))), lambda a: vsl.signm(a * 0), lambda a: vsl.null_space(a * 0),
        lambda a: vsl.eig(a, np.eye(2), homogeneous_eigvals=True), lambda a: vsl.rq(a.astype(np.float32) * 0),
    ],
)  # fmt: skip
def test_results_that_are_not_unique_are_refused(call):
    with pytest.raises(UnsupportedFunctionError):
        call(vg.Tensor(np.array([[2.0, 1.0], [1.0, 3.0]]), requires_grad=True))


@pytest.mark.parametrize(
    ("name", "array"),
    [("det", STACK[0].astype(np.complex64)), ("sqrtm", STACK[0].astype(np.float32)),
     ("polar", TALL.astype(np.float32))],
)  # fmt: skip
def test_results_have_scipys_precision_in_every_call(name, array):
    expected = getattr(scipy_linalg, name)(array)
    expected = np.asarray(expected[0] if name == "polar" else expected)
    for _ in range(2):
        found = getattr(vsl, name)(vg.Tensor(array, requires_grad=True))
        assert (found[0] if name == "polar" else found).dtype == expected.dtype
