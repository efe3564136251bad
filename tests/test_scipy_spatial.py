"""`viewgrad.scipy.spatial` and `fft`: values are SciPy's, gradients those of finite differences."""

import numpy as np
import pytest

scipy = pytest.importorskip("scipy")
from scipy.spatial import transform as theirs  # noqa: E402
from scipy_cases import call, check, check_program, named  # noqa: E402

import viewgrad as vg  # noqa: E402
from viewgrad.autograd import gradcheck  # noqa: E402
from viewgrad.errors import DifferentiabilityError  # noqa: E402
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


FRAME = np.array([[1.0, 0.0, 0.1], [0.0, 1.0, 0.2], [0.3, 0.0, 1.0], [1.0, -1.0, 0.3]])
SEEN = np.array([[0.2, 1.0, 0.0], [-1.0, 0.1, 0.3], [0.1, 0.3, 0.8], [1.2, 0.8, 0.1]])


def of_alignment(found):
    return (found[0].as_matrix() * np.arange(9.0).reshape(3, 3)).sum() + sum(
        np.sum(part * np.arange(np.size(part)).reshape(np.shape(part))) + np.sum(part) for part in found[1:]
    )


def turned(vectors):
    return theirs.Rotation.from_rotvec(vectors)


ROTATIONS = {
    "mean": lambda x: of_alignment([turned(SEEN[:3] * x).mean()]),
    "mean with weights": lambda x: of_alignment([theirs.Rotation.from_euler("xyz", np.outer(x, x) * 0.1).mean(x)]),
    "mean of one": lambda x: of_alignment([turned(x).mean()]),
    "mean of equal ones": lambda x: of_alignment([turned(np.stack([x, x]) * 0.3).mean()]),
    "align": lambda x: of_alignment(theirs.Rotation.align_vectors(FRAME * x, SEEN)),
    "align with a sensitivity": lambda x: of_alignment(
        theirs.Rotation.align_vectors(SEEN + x * 0.1, FRAME, np.append(x, 1.0), return_sensitivity=True)
    ),
    "align mirrored vectors": lambda x: of_alignment(theirs.Rotation.align_vectors(-SEEN * x, FRAME)),
    "align exactly": lambda x: of_alignment(
        theirs.Rotation.align_vectors(turned(x * 0.3).apply(FRAME), FRAME)[:1]
    ),
    "align with a fixed vector": lambda x: of_alignment(
        theirs.Rotation.align_vectors(FRAME * x, SEEN, np.array([1.0, np.inf, 2.0, 1.5]))
    ),
    "align one vector": lambda x: of_alignment(theirs.Rotation.align_vectors(FRAME[0] * x, SEEN[2])),
}


@pytest.mark.parametrize("name", ROTATIONS)
def test_means_and_alignments_of_rotations(name):
    check_program(ROTATIONS[name], np.array([1.0, 2.0, 3.0]))


def test_opposite_rotations_have_no_mean():
    with pytest.raises(DifferentiabilityError, match="not isolated"):
        vg.func.grad(lambda a: turned(np.array([[0, 0, 0.0], [0, 0, np.pi]]) * a).mean().magnitude())(1.0)


def test_products_of_rotations_with_those_of_a_spline():
    """The rotations that SciPy's spline returns are SciPy's."""

    def f(x):
        given = theirs.Rotation.from_rotvec(np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 0.5], [0.0, 0.2, 1.0]]))
        spline = theirs.RotationSpline([0.0, 1.0, 2.0], given)
        rotation = theirs.Rotation.from_rotvec(x * np.array([0.1, 0.0, 0.0]))
        return (rotation * spline(0.3)).as_matrix().sum() + (spline(0.7) * rotation).as_rotvec().sum()

    value, slope = vg.value_and_grad(f)(1.0)
    assert value == pytest.approx(f(1.0))
    assert slope == pytest.approx((f(1 + 1e-6) - f(1 - 1e-6)) / 2e-6, rel=1e-6)
