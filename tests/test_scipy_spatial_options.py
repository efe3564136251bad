"""Options of distances and rotations: values, shapes and errors are SciPy's."""

import itertools
import warnings

import numpy as np
import pytest

pytest.importorskip("scipy.spatial")

import scipy.spatial as theirs
import scipy.spatial.transform

import viewgrad as vg
from viewgrad.autograd import gradcheck
from viewgrad.errors import UnsupportedFunctionError
from viewgrad.scipy import spatial as ours

RNG = np.random.default_rng(0)
A, B = RNG.normal(size=(4, 3)), RNG.normal(size=(5, 3))
VECTORS = RNG.normal(size=(3, 3))
TURNS = scipy.spatial.transform.Rotation.from_rotvec(VECTORS).as_matrix()
METRICS = (
    "euclidean", "sqeuclidean", "cityblock", "chebyshev", "cosine", "correlation", "canberra", "braycurtis",
    "minkowski", "seuclidean", "mahalanobis", "hamming", "jaccard", "jensenshannon", "yule", "l2", "manhattan", "bad",
)  # fmt: skip


def tensors(value, has_history):
    if isinstance(value, np.ndarray):
        return vg.Tensor(value.copy(), requires_grad=has_history and value.dtype.kind == "f")
    return value


def outcome(call, module, args):
    """Return the values of a call, None for an error, or the refusal of a gradient."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            found = call(module, *args)
    except vg.errors.UnsupportedFunctionError as refusal:
        return refusal
    except (ValueError, TypeError, NotImplementedError):
        return None
    return np.asarray(found.detach() if isinstance(found, vg.Tensor) else found)


def compare(call, *args):
    wanted = outcome(call, theirs, args)
    for has_history in (False, True):
        found = outcome(call, ours, [tensors(value, has_history) for value in args])
        if has_history and isinstance(found, vg.errors.UnsupportedFunctionError):
            continue
        assert (wanted is None) == (found is None), (args, has_history, wanted, found)
        if wanted is not None:
            np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)
            assert found.shape == wanted.shape, (args, has_history)


@pytest.mark.parametrize("metric", METRICS)
def test_distances(metric):
    options = ({}, {"w": np.array([0.5, 1.0, 2.0])}, {"p": 3}, {"p": np.inf}, {"V": np.ones(3)}, {"unknown": 1})
    matrices = ((A, B), (abs(A), abs(B)), (A > 0, B > 0), (A, B[:, :2]), (A[0], B[0]), (A[:0], B), (A, np.ones((2, 3))))
    for (a, b), given in itertools.product(matrices, options):
        compare(lambda m, a, b, given=given: m.distance.cdist(a, b, metric, **given), a, b)
        compare(lambda m, a, given=given: m.distance.pdist(a, metric, **given), a)
    if not hasattr(theirs.distance, metric):
        return
    further = {"mahalanobis": (np.eye(3) * 2,), "seuclidean": (np.array([0.5, 1.0, 2.0]),)}.get(metric, ())
    pairs = ((A[0], B[0]), (A[0], A[0, :2]), (A[:3], B[:3]), (A[:1], B[:1]), (np.zeros(3), A[0]))
    for (u, v), given in itertools.product(pairs, options):
        compare(lambda m, *args, given=given: getattr(m.distance, metric)(*args, **given), u, v, *further)
    bytes_ = np.array([1, 2, 3], np.uint8), np.array([2, 3, 1], np.uint8)
    found = getattr(ours.distance, metric)(*map(vg.Tensor, bytes_), *further)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(np.asarray(found), getattr(theirs.distance, metric)(*bytes_, *further))


def test_square_forms():
    distances = theirs.distance.pdist(A)
    matrix = theirs.distance.squareform(distances)
    for given in (distances, matrix, np.arange(4.0), A, A[:3], np.zeros(0), np.zeros((1, 1)), A[None]):
        for force, checks in itertools.product(("no", "tomatrix", "tovector"), (True, False)):
            compare(lambda m, x, f=force, c=checks: m.distance.squareform(x, f, c), given)


def test_rotations_of_other_matrices_and_shapes():
    for matrix in (TURNS, TURNS[0], TURNS * 2, A[:3], A, -TURNS[0]):
        compare(lambda m, x: m.transform.Rotation.from_matrix(x).as_matrix(), matrix)
    for quaternions in (np.zeros(4), np.ones((2, 4)), np.eye(4)[:, :3]):
        compare(lambda m, x: m.transform.Rotation.from_quat(x).as_matrix(), quaternions)
    for axes, angles in itertools.product(
        ("x", "xy", "xyz", "ZYX", "xYz", "bad"), (np.array(0.3), np.array([0.3]), A[0], A[:, :2], A, A[:, :1])
    ):
        compare(lambda m, x, axes=axes: m.transform.Rotation.from_euler(axes, x).as_matrix(), angles)
    for index in (0, slice(1), 5):
        compare(lambda m, x, i=index: m.transform.Rotation.from_rotvec(x)[i].as_matrix(), VECTORS[0])
    compare(lambda m, x: [turn.as_matrix() for turn in m.transform.Rotation.from_rotvec(x)], VECTORS[0])


def test_gradient_of_the_nearest_rotation():
    weights = RNG.normal(size=(3, 3))
    start = TURNS[0] + 0.2 * A[:3]

    def value(matrix):
        return float((scipy.spatial.transform.Rotation.from_matrix(matrix).as_matrix() * weights).sum())

    matrix = vg.Tensor(start, requires_grad=True)
    found = vg.autograd.grad((ours.transform.Rotation.from_matrix(matrix).as_matrix() * weights).sum(), matrix)[0]
    steps = np.eye(9).reshape(9, 3, 3) * 1e-6
    slopes = [(value(start + step) - value(start - step)) / 2e-6 for step in steps]
    np.testing.assert_allclose(found.reshape(-1), slopes, rtol=1e-6, atol=1e-8)


def test_spherical_interpolation():
    for times in ([0, 1, 2], [0, 0, 1], [2, 1, 0], [0, 1]):
        for place in (np.array(0.5), np.array([0.0, 0.5]), np.array([[0.5]]), np.array(3.0)):
            compare(lambda m, x, t, times=times: m.transform.Slerp(
                times, m.transform.Rotation.from_rotvec(x))(t).as_matrix(), VECTORS, place)  # fmt: skip
    ends = np.array([1.0, 0.0])
    for end, t in itertools.product(
        (ends[::-1].copy(), ends, ends[None], ends * 2), (np.array([0.0, 0.3]), np.array(0.3))
    ):
        compare(lambda m, x, y, t: m.geometric_slerp(x, y, t), ends, end, t)


def test_procrustes_raises_as_in_scipy():
    for points in (np.ones((0, 2)), np.ones((3, 2)), np.ones(3)):
        for module in (theirs, ours):
            given = vg.Tensor(points, requires_grad=True) if module is ours else points
            with pytest.raises(ValueError):
                module.procrustes(given, points)


def test_slopes_of_the_jensen_shannon_distance_at_zeros():
    p, q = np.array([0.5, 0.5, 0.0, 0.0]), np.array([0.0, 0.4, 0.6, 0.0])
    leaves = [vg.Tensor(each, requires_grad=True) for each in (p, q)]
    (slope, other) = vg.autograd.grad(ours.distance.jensenshannon(*leaves), leaves)
    assert slope[2] == other[0] == -np.inf
    value, h = theirs.distance.jensenshannon(p, q), 1e-7
    for k in (0, 1, 3):
        step = h * np.eye(4)[k]
        np.testing.assert_allclose(slope[k], (theirs.distance.jensenshannon(p + step, q) - value) / h, rtol=1e-5)


QUATERNIONS = np.random.default_rng(3).normal(size=(5, 4))
TURNING = np.random.default_rng(4).normal(size=(5, 3))
ROTATIONS = {
    "from_quat": lambda m, x: m.Rotation.from_quat(x), "Rotation": lambda m, x: m.Rotation(x, scalar_first=True),
    "inv": lambda m, x: m.Rotation.from_quat(x).inv(), "getitem": lambda m, x: m.Rotation.from_quat(x)[1:],
    "mul": lambda m, x: m.Rotation.from_quat(x) * m.Rotation.from_rotvec(TURNING),
    "pow": lambda m, x: m.Rotation.from_quat(x) ** 0.7, "from_rotvec": lambda m, x: m.Rotation.from_rotvec(x[:, :3]),
    "from_mrp": lambda m, x: m.Rotation.from_mrp(x[:, :3]),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [float, np.float32])
@pytest.mark.parametrize("name", ROTATIONS)
def test_rotations_have_scipys_signs_and_dtypes(name, dtype):
    x = QUATERNIONS.astype(dtype)
    mine = ROTATIONS[name](ours.transform, vg.Tensor(x, requires_grad=True))
    right = ROTATIONS[name](theirs.transform, x)
    for method in ("as_quat", "as_matrix", "as_rotvec", "as_mrp", "magnitude"):
        found, wanted = getattr(mine, method)(), getattr(right, method)()
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found.detach(), wanted, atol=1e-6 if dtype is np.float32 else 1e-9)
    x = vg.Tensor(QUATERNIONS, requires_grad=True)
    assert gradcheck(lambda x: ROTATIONS[name](ours.transform, x).as_quat(), x)
    assert gradcheck(lambda x: ROTATIONS[name](ours.transform, x).as_mrp(), x)


def test_rotations_that_scipy_refuses_or_that_have_no_angles_are_refused():
    for quaternion in (np.zeros(4), np.full(4, np.nan), np.ones(5), np.ones(4) * 1j):
        with pytest.raises(ValueError):
            ours.transform.Rotation.from_quat(vg.Tensor(quaternion, requires_grad=True))
    with pytest.raises(UnsupportedFunctionError, match="imaginary"), pytest.warns(np.exceptions.ComplexWarning):
        ours.transform.Rotation.from_rotvec(vg.Tensor(np.ones(3) * 1j, requires_grad=True))
    locked = ours.transform.Rotation.from_euler("xyz", vg.Tensor([0.3, np.pi / 2, 0.2], requires_grad=True))
    with pytest.raises(UnsupportedFunctionError, match="gimbal"), pytest.warns(UserWarning, match="Gimbal"):
        locked.as_euler("xyz")
    with pytest.raises(UnsupportedFunctionError, match="use its matrices"):
        locked.reduce()
    assert locked.approx_equal(locked)


@pytest.mark.parametrize("name", ["distance_matrix", "minkowski_distance", "minkowski_distance_p"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of SciPy 1.18
def test_distances_have_scipys_dtype(name):
    x, y = TURNING.astype("f4"), TURNING[::-1].astype("f4")
    found = getattr(ours, name)(vg.Tensor(x, requires_grad=True), y)
    wanted = getattr(theirs, name)(x, y)
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found.detach(), wanted, rtol=1e-5)
