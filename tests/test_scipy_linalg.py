"""`viewgrad.scipy.linalg`: values are SciPy's, gradients of first and second order those of finite differences."""

import numpy as np
import pytest

scipy = pytest.importorskip("scipy")
from scipy_cases import call, check, named  # noqa: E402

import viewgrad as vg  # noqa: E402
from viewgrad.autograd import grad, gradcheck  # noqa: E402
from viewgrad.errors import UnsupportedFunctionError  # noqa: E402
from viewgrad.scipy import linalg  # noqa: E402

RNG = np.random.default_rng(4)
M, N = RNG.standard_normal((3, 3)), RNG.standard_normal((3, 3))
V, TALL, B = RNG.standard_normal(4), RNG.standard_normal((4, 2)), RNG.standard_normal((3, 1))
POSITIVE, OTHER = M @ M.T + np.eye(3), N @ N.T + np.eye(3)
R, E = np.array([[1.5]]), np.diag([1.0, 1.2, 0.9])
BANDS = np.array([[0.0, 0.3, -0.2, 0.4], [2.0, 2.5, 3.0, 2.2]])
Z = 0.3 * (M + 1j * N)


def phaseless(result):
    """Return a value that does not depend on the signs of vectors."""
    return abs(result[-1])


CASES = [
    *[call(name, 0.5 * M) for name in ("cosm", "sinm", "tanm", "coshm", "sinhm", "tanhm")],
    *[call(name, Z, first_only=True) for name in ("cosm", "sinhm", "tanm")],
    call("expm_frechet", M, N),
    call("expm_frechet", M, N, compute_expm=False),
    call("signm", M + 0.5 * np.eye(3), rtol=1e-6),
    call("fractional_matrix_power", POSITIVE, 0.4),
    call("fractional_matrix_power", M, 3),
    call("funm", POSITIVE, np.sin),
    *[call("polar", a, side) for a in (M, TALL, TALL.T.copy()) for side in ("right", "left")],
    call("ldl", POSITIVE),
    call("rq", M),
    call("rq", TALL.T.copy(), mode="economic"),
    call("pinvh", POSITIVE),
    call("subspace_angles", TALL, RNG.standard_normal((4, 2))),
    call("subspace_angles", TALL, RNG.standard_normal((4, 1))),
    call("cholesky_banded", BANDS),
    call("cholesky_banded", BANDS[::-1, ::-1].copy(), lower=True),
    call("cho_solve_banded", (BANDS, False), V, at=(1,)),
    call("eigvals_banded", BANDS),
    call("eig_banded", BANDS, pick=phaseless, values=False),
    call("eigh_tridiagonal", V, TALL[:3, 0].copy()),
    call("eigvalsh_tridiagonal", V, TALL[:3, 0].copy()),
    call("eigvals_banded", BANDS, select="i", select_range=(1, 2)),
    call("eig_banded", BANDS, select="i", select_range=(2, 3), pick=phaseless),
    call("eigh_tridiagonal", V, TALL[:3, 0].copy(), select="i", select_range=(0, 1), pick=phaseless),
    call("eigvalsh_tridiagonal", V, TALL[:3, 0].copy(), select="v", select_range=(-10.0, 10.0)),
    call("orth", TALL, pick=phaseless),
    *[call("qr", a, mode="economic", pivoting=True) for a in (M, TALL, TALL.T.copy())],
    call("eig", POSITIVE + 0.3 * M, left=True),
    call("eig", M + np.diag([0.0, 3.0, -3.0]), left=True, right=False, pick=phaseless),
    call("matmul_toeplitz", V, TALL),
    call("matmul_toeplitz", (V, V[::-1].copy()), TALL, at=(1,)),
    *[call("convolution_matrix", V, count, mode) for count in (3, 5) for mode in ("full", "same", "valid")],
    call("leslie", V, V[:3].copy()),
    call("fiedler", V),
    call("diagsvd", V, 4, 6),
    call("solve_lyapunov", M, POSITIVE),
    *[call(name, M, B, POSITIVE, R, at=(0, 1)) for name in ("solve_continuous_are", "solve_discrete_are")],
    *[call(name, M, B, POSITIVE, R, E, 0.1 * B, at=(0, 1, 4, 5))
      for name in ("solve_continuous_are", "solve_discrete_are")],
]  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", CASES, ids=named)
def test_values_and_gradients(case):
    check("linalg", case)


def test_a_power_of_a_matrix_in_its_exponent():
    power = vg.Tensor(0.4, requires_grad=True)
    (slope,) = grad(linalg.fractional_matrix_power(vg.Tensor(POSITIVE), power).sum(), power)
    steps = [scipy.linalg.fractional_matrix_power(POSITIVE, 0.4 + step).sum() for step in (1e-5, -1e-5)]
    assert slope.item() == pytest.approx((steps[0] - steps[1]) / 2e-5, rel=1e-6)


@pytest.mark.parametrize("name", ["solve_continuous_are", "solve_discrete_are"])
def test_riccati_solutions_have_gradients_of_the_costs(name):
    def solved(half, scale):
        return getattr(linalg, name)(M, B, half @ half.T + vg.eye(3), scale.reshape(1, 1))

    assert gradcheck(solved, [vg.Tensor(M, requires_grad=True), vg.Tensor(1.5, requires_grad=True)])


def test_functions_without_derivative_raise():
    x = vg.Tensor(M, requires_grad=True)
    for name, others in {"matrix_balance": (), "expm_cond": (), "qz": (x,)}.items():
        with pytest.raises(UnsupportedFunctionError, match=name):
            getattr(linalg, name)(x, *others)


@pytest.mark.parametrize("lower", [False, True])
def test_the_unused_corner_of_a_band_is_unchanged(lower):
    bands = np.array([[7.0, 8.0, 1.0, 0.5], [9.0, 1.0, 1.5, 0.7], [4.0, 5.0, 6.0, 7.0]])
    bands = bands[::-1, ::-1].copy() if lower else bands
    found = linalg.cholesky_banded(vg.Tensor(bands), lower=lower)
    np.testing.assert_allclose(found.numpy(), scipy.linalg.cholesky_banded(bands, lower=lower))
    assert gradcheck(lambda bands: linalg.cholesky_banded(bands, lower=lower), vg.Tensor(bands, requires_grad=True))
