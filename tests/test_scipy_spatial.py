"""`viewgrad.scipy.spatial` and `fft`: values are SciPy's, gradients those of finite differences."""

import numpy as np
import pytest

scipy = pytest.importorskip("scipy")
from scipy.spatial import transform as theirs  # noqa: E402
from scipy_cases import call, check, named  # noqa: E402

import viewgrad as vg  # noqa: E402
from viewgrad.autograd import gradcheck  # noqa: E402
from viewgrad.scipy import spatial  # noqa: E402
from viewgrad.scipy.spatial import transform  # noqa: E402

RNG = np.random.default_rng(6)
A, B, P = RNG.standard_normal((4, 3)), RNG.standard_normal((5, 3)), RNG.uniform(0.1, 1.0, (2, 4))
UNITS = A[:2] / np.linalg.norm(A[:2], axis=1, keepdims=True)

CASES = [
    *[("spatial", call("distance_matrix", A, B, p)) for p in (1, 2, 3)],
    *[("spatial", call(name, A, B[:4], p)) for name in ("minkowski_distance", "minkowski_distance_p") for p in (1, 3)],
    ("spatial", call("procrustes", A, B[:4])),
    ("spatial", call("geometric_slerp", UNITS[0], UNITS[1], np.array([0.2, 0.9]), at=(2,))),
    ("spatial.distance", call("jensenshannon", P[0], P[1])),
    ("spatial.distance", call("jensenshannon", P, P[::-1].copy(), 2, axis=1, keepdims=True)),
    *[("fft", call(name, A)) for name in ("dctn", "idctn", "dstn", "idstn")],
    ("fft", call("dctn", A, s=(3,), norm="ortho")),
]


@pytest.mark.filterwarnings("ignore:.*minkowski_distance:DeprecationWarning")  # deprecated since SciPy 1.18
@pytest.mark.parametrize("case", CASES, ids=lambda case: named(case[1]))
def test_values_and_gradients(case):
    check(*case)


def test_rotations_between_others():
    vectors, times = RNG.standard_normal((3, 3)), np.array([0.1, 0.7, 1.6])
    right = theirs.Slerp([0.0, 1.0, 2.0], theirs.Rotation.from_rotvec(vectors))(times).as_matrix()

    def between(vectors, times):
        return transform.Slerp([0.0, 1.0, 2.0], transform.Rotation.from_rotvec(vectors))(times).as_matrix()

    leaves = [vg.Tensor(each, requires_grad=True) for each in (vectors, times)]
    np.testing.assert_allclose(between(*leaves).detach().numpy(), right, atol=1e-12)
    assert gradcheck(between, leaves)


def test_limits_of_a_query_may_have_gradients():
    points, places = RNG.standard_normal((9, 2)), RNG.standard_normal((4, 2))

    def nearest(module, points, places, radius):
        return module.KDTree(points).query(places, 1, 0, 2, radius)[0]

    leaves = [vg.Tensor(each, requires_grad=True) for each in (points, places, 3.0)]
    np.testing.assert_allclose(nearest(spatial, *leaves).detach(), nearest(scipy.spatial, points, places, 3.0))
    assert gradcheck(lambda points, places: nearest(spatial, points, places, leaves[2]), leaves[:2])
    near = spatial.KDTree(leaves[0]).query_ball_point(places, r=leaves[2])
    assert list(map(sorted, near)) == list(map(sorted, scipy.spatial.KDTree(points).query_ball_point(places, r=3.0)))
