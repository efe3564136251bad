"""The options of `scipy.linalg` with tensors that require grad: SciPy's values and shapes, and central differences."""

import numpy as np
import pytest

import viewgrad as vg
from viewgrad.errors import UnsupportedFunctionError

scipy_linalg = pytest.importorskip("scipy.linalg")
vsl = pytest.importorskip("viewgrad.scipy.linalg")

rng = np.random.default_rng(0)
REAL = rng.normal(size=(3, 3)) + 3 * np.eye(3)
COMPLEX = rng.normal(size=(3, 3)) + 1j * rng.normal(size=(3, 3)) + 3 * np.eye(3)
TALL = rng.normal(size=(4, 3))
STACK = np.array([each @ each.T + np.eye(3) for each in rng.normal(size=(2, 3, 3))])
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
}
WRONG = {
    "structure": lambda m, a: m.solve(a, b, assume_a="foo"),
    "mode of qr": lambda m, a: m.qr(a, mode="x"),
    "mode of rq": lambda m, a: m.rq(a, mode="x"),
    "method": lambda m, a: m.solve_discrete_lyapunov(a, a, "x"),
    "tolerance": lambda m, a: m.pinv(a, atol=-1.0),
    "driver": lambda m, a: m.lstsq(a, b, lapack_driver="x"),
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
