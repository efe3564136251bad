"""Greatest and least elements of sparse arrays: SciPy's values, and the gradients of dense tensors."""

import itertools

import numpy as np
import pytest

theirs = pytest.importorskip("scipy.sparse")

import viewgrad as vg  # noqa: E402
from viewgrad.scipy import sparse as ours  # noqa: E402

NAMES = ("max", "min", "nanmax", "nanmin")
AXES = (None, 0, 1, -1, (0, 1), 2)


def outcome(call):
    try:
        return call()
    except (ValueError, TypeError) as error:
        return type(error)


def dense(found):
    return found.toarray() if hasattr(found, "toarray") else found


def cases(shape):
    rng = np.random.default_rng(len(shape) + shape[0])
    matrix = np.round(rng.standard_normal(shape), 1) * (rng.random(shape) < 0.5)
    missing = matrix.copy()
    missing.flat[:1] = np.nan
    return matrix, np.abs(matrix), -np.abs(matrix) + 0.0, missing


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("kind", ["csr_array", "csc_array", "coo_array", "csr_matrix"])
def test_extremes_match_scipy_and_gradients_match_dense_arrays(kind):
    rng = np.random.default_rng(1)
    for shape in ((4, 5), (1, 3), (3, 0), (0, 3)):
        for matrix, name, axis, explicit in itertools.product(cases(shape), NAMES, AXES, (False, True)):
            plain = getattr(theirs, kind)(matrix)
            leaf = vg.Tensor(plain.data, requires_grad=True)
            parts = (plain.row, plain.col) if plain.format == "coo" else None
            arg = (leaf, parts) if parts else (leaf, plain.indices, plain.indptr)
            array = getattr(ours, kind)(arg, shape=shape)
            expected = outcome(lambda: getattr(plain, name)(axis=axis, explicit=explicit))  # noqa: B023
            found = outcome(lambda: getattr(array, name)(axis=axis, explicit=explicit))  # noqa: B023
            context = (matrix, name, axis, explicit)
            if isinstance(expected, type):
                assert isinstance(found, type) and issubclass(found, expected), context
                continue
            values = dense(found)
            np.testing.assert_array_equal(values.detach(), dense(expected), err_msg=str(context))
            assert getattr(found, "nnz", None) == getattr(expected, "nnz", None), context
            if explicit or not plain.nnz or np.isnan(matrix).any():
                continue
            weights = rng.standard_normal(values.shape)
            gradient = vg.autograd.grad((values * weights).sum(), leaf)[0]
            whole = vg.Tensor(matrix, requires_grad=True)
            reduced = getattr(np, name)(whole, axis)
            wanted = vg.autograd.grad((reduced * weights.reshape(reduced.shape)).sum(), whole)[0]
            place = plain.tocoo()
            np.testing.assert_allclose(gradient, wanted[place.row, place.col], err_msg=str(context))


def test_a_sparse_vector_has_scipys_attributes():
    leaf = vg.Tensor([1.0, -2.0, 3.0], requires_grad=True)
    found = ours.csr_array((leaf, [0, 2, 1], [0, 2, 2, 3])).max(axis=1)
    assert (found.shape, found.nnz, found.ndim, found.dtype, found.format) == ((3,), 2, 1, np.float64, "coo")
    assert found.requires_grad and "2 stored values" in repr(found)
    np.testing.assert_array_equal(found.to_scipy().toarray(), [1.0, 0.0, 3.0])
    found.sum().backward()
    np.testing.assert_array_equal(leaf.grad, [1.0, 0.0, 1.0])
    with pytest.raises(TypeError, match="ambiguous"):
        len(found)
