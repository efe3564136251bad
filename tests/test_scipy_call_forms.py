"""Rarely used options of SciPy's functions: values, dtypes and errors are SciPy's, gradients finite differences'."""

import warnings

import numpy as np
import pytest

theirs = pytest.importorskip("scipy")
for _module in ("interpolate", "signal", "sparse", "spatial"):
    pytest.importorskip(f"scipy.{_module}")

import viewgrad as vg  # noqa: E402
import viewgrad.scipy as ours  # noqa: E402
from viewgrad.autograd import grad  # noqa: E402

RNG = np.random.default_rng(0)
PLACES = (np.array([0, 2, 1, 0, 2, 0]), np.array([0, 1, 3, 0, 0, 2]))  # one of them twice
STORED, POINTS = RNG.normal(size=6), RNG.random((12, 2))


def stored(m, d, kind):
    return getattr(m.sparse, kind)((d, PLACES), shape=(3, 4))


def reductions():
    for kind in ("coo_array", "csr_array", "csc_matrix"):
        for axis in (None, 0, 1, -1, -2, (0,), (1,), (0, 1), (-1, 0)):
            for name in ("sum", "mean"):
                yield (
                    f"{name}-{kind}-{axis}",
                    lambda m, d, k=kind, a=axis, n=name: getattr(stored(m, d, k), n)(axis=a),
                    (STORED,),
                )
        yield f"real-{kind}", lambda m, d, k=kind: stored(m, d, k).mean(0), (STORED + 1j * STORED[::-1],)
        yield f"single-{kind}", lambda m, d, k=kind: stored(m, d, k).mean(0), (STORED.astype("f4"),)
        yield f"empty-{kind}", lambda m, d, k=kind: getattr(m.sparse, k)((3, 4)).sum() * d, (STORED,)
    for axis in (None, 0, 1):
        for dtype in (bool, "i1", "u2", "f4"):
            yield (
                f"sum-{dtype}-{axis}",
                lambda m, a=axis, t=dtype: m.sparse.csr_array(np.eye(3, 4, dtype=t)).sum(a),
                (),
            )


def trees():
    for p in (1, 2, 3.5, np.inf):
        for box in (None, 1.0, [1.0, 0.0], [1.5, 1.0]):
            yield (
                f"tree-{p}-{box}",
                lambda m, x, y, p=p, b=box: m.spatial.KDTree(x, boxsize=b).query(y, 3, p=p)[0],
                (POINTS, POINTS[:5] + [1.03, -1.02]),
            )
        yield (
            f"distances-{p}",
            lambda m, x, y, p=p: (
                m.spatial.KDTree(x)
                .sparse_distance_matrix(m.spatial.KDTree(y), 0.4, p, output_type="coo_matrix")
                .tocsr()
                .sum(0)
            ),
            (POINTS, POINTS[:5] + [0.03, 0.02]),
        )


CASES = [*reductions(), *trees()]


def values(found):
    """Return the arrays in a result, one after another."""
    if isinstance(found, (tuple, list)):
        return [each for item in found for each in values(item)]
    if isinstance(found, vg.Tensor):
        found = found.detach().numpy()
    return [np.asarray(found)]


def tensors(found):
    if isinstance(found, (tuple, list)):
        return [each for item in found for each in tensors(item)]
    return [found]


@pytest.mark.parametrize(("call", "arrays"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_calls_agree_with_scipy_and_finite_differences(call, arrays):
    leaves = [vg.Tensor(each.copy(), requires_grad=True) for each in arrays]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        found, expected = call(ours, *leaves), values(call(theirs, *arrays))
        mine = values(found)
        single = any(each.dtype.char in "fF" for each in arrays)
        for got, wanted in zip(mine, expected, strict=True):
            assert got.dtype == wanted.dtype
            assert got.shape == wanted.shape
            np.testing.assert_allclose(got, wanted, rtol=1e-4 if single else 1e-8, atol=1e-5 if single else 1e-10)
        if not arrays or single:
            return
        rng = np.random.default_rng(1)
        weights = [rng.normal(size=each.shape) + 1j * rng.normal(size=each.shape) for each in expected]
        steps = [rng.normal(size=each.shape) + 1j * rng.normal(size=each.shape) for each in arrays]
        steps = [step if each.dtype.kind == "c" else step.real for each, step in zip(arrays, steps)]

        def weighed(results):
            return sum((each * weight).sum().real for each, weight in zip(results, weights) if each.dtype.kind in "fc")

        h = 1e-6
        beside = [
            weighed(values(call(theirs, *[each + s * step for each, step in zip(arrays, steps)]))) for s in (h, -h)
        ]
        loss = sum(
            (each * weight).sum().real for each, weight in zip(tensors(found), weights) if isinstance(each, vg.Tensor)
            and each.requires_grad
        )  # fmt: skip
        slopes = grad(loss, leaves, allow_unused=True)
    slope = sum(
        (np.conj(each.numpy()) * step).sum().real for each, step in zip(slopes, steps) if each is not None
    )  # fmt: skip
    np.testing.assert_allclose(slope, (beside[0] - beside[1]) / (2 * h), rtol=2e-5, atol=1e-6)


ERRORS = {
    "sparse axis": lambda m, x: stored(m, x, "coo_array").sum(axis=2),
    "sparse axes": lambda m, x: stored(m, x, "coo_array").sum(axis=(0, 0)),
    "sparse no axis": lambda m, x: stored(m, x, "coo_array").sum(axis=()),
    "sparse axis type": lambda m, x: stored(m, x, "coo_array").sum(axis=0.5),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_those_of_scipy(name):
    with pytest.raises(Exception) as wanted:
        ERRORS[name](theirs, STORED.copy())
    with pytest.raises((ValueError, TypeError, ArithmeticError)) as found:
        ERRORS[name](ours, vg.Tensor(STORED.copy(), requires_grad=True))
    assert isinstance(found.value, wanted.type)
