"""NumPy functions on tensors, called in common spellings: with keywords, tuples, or numbers instead of lists."""

import numpy as np
import pytest
from leaves import leaf_of as leaf

import viewgrad as vg
from viewgrad.autograd import grad

MATRIX = np.array([[3.0, -1.0, 2.0], [0.5, 4.0, -2.5]])
SAME = {
    "expand_dims by name": lambda x: np.expand_dims(x, axis=0),
    "expand_dims at several places": lambda x: np.expand_dims(x, (0, -1)),
    "emath.sqrt of positive numbers": lambda x: np.emath.sqrt(x * x),
    "emath.sqrt": np.emath.sqrt,
    "emath.log": np.emath.log,
    "emath.logn": lambda x: np.emath.logn(2.0, x),
    "emath.power": lambda x: np.emath.power(x, 1.5),
    "emath.arcsin": lambda x: np.emath.arcsin(x / 2.2),
    "repeat of a number": lambda x: np.repeat(x.sum(), 3, axis=0),
    "tril of a vector": lambda x: np.tril(x[0]),
    "triu of a vector": lambda x: np.triu(x[0], 1),
    "diff of order 0": lambda x: np.diff(x, n=0, prepend=1.0),
    "reshape by an array": lambda x: x.reshape(np.array([3, 2])),
    "reshape by an array, in columns": lambda x: np.reshape(x, np.array([3, -1]), order="F"),
    "transpose by an array": lambda x: x.transpose(np.array([1, 0])),
    "split": lambda x: np.split(x, 3, axis=1)[1],
    "split at places": lambda x: np.split(x, [1], axis=1)[1],
    "nanstd of one number": lambda x: np.nanstd(np.where(x > 3.5, x, np.nan), axis=1)[1:],
}


@pytest.mark.parametrize("name", SAME)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_values_match_numpy_and_gradients_match_differences(name):
    function = SAME[name]
    x = leaf(MATRIX)
    result, expected = function(x), function(MATRIX)
    assert result.dtype == np.asarray(expected).dtype
    np.testing.assert_allclose(result.detach().numpy(), expected)
    weights = np.random.default_rng(0).standard_normal(result.shape)
    (g,) = grad((result * weights).real.sum(), x)
    step = 1e-6
    for index in np.ndindex(x.shape):
        moved = np.zeros(x.shape)
        moved[index] = step
        slope = ((function(MATRIX + moved) - function(MATRIX - moved)) * weights).real.sum() / (2 * step)
        np.testing.assert_allclose(g.numpy()[index], slope, atol=1e-6, err_msg=str(index))


def test_full_like_sends_the_gradient_of_all_elements_back():
    x, s = leaf(MATRIX), leaf(2.0)
    assert grad((np.full_like(x, s) * x).sum(), s)[0].tolist() == MATRIX.sum()
    row = leaf([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(grad((np.full_like(x, row) * MATRIX).sum(), row)[0].numpy(), MATRIX.sum(0))
    assert np.full_like(x, 3, dtype=int, shape=(2,)).tolist() == [3, 3]
    with pytest.raises(TypeError, match=r"full_like.*create the array with"):
        np.full_like(MATRIX, s)


def test_atleast_1d_of_several():
    first, second = np.atleast_1d(leaf(1.0), leaf([2.0]))
    assert first.shape == second.shape == (1,)


def test_calls_that_numpy_rejects_raise():
    x = leaf(MATRIX)
    with pytest.raises(ValueError, match="equal division"):
        np.split(x, 2, axis=1)
    with pytest.raises(ValueError, match="repeated axis"):
        np.expand_dims(x, (0, 0))
    with pytest.raises(np.exceptions.AxisError):
        np.expand_dims(x, 5)
    with pytest.raises(np.linalg.LinAlgError, match="3 dimensions"):
        np.linalg.multi_dot([vg.ones((2, 2, 2)), vg.ones((2, 2))])


def test_ranges_are_sequences_of_whole_numbers():
    y = vg.Tensor([1.0, 2.0, 4.0], requires_grad=True)
    for function in (
        lambda y: np.interp([0.5, 1.5], range(3), y), lambda y: np.dot(y, range(3)),
        lambda y: y * range(3), lambda y: np.convolve(y, range(1, 3)),
    ):  # fmt: skip
        found = function(y)
        np.testing.assert_array_equal(found.detach().numpy(), function(np.array([1.0, 2.0, 4.0])))
        assert found.requires_grad


@pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.1.0", reason="copy= came with NumPy 2.1")
def test_reshape_with_copy_false_raises_if_a_copy_is_needed():
    x = leaf(MATRIX) * 1.0
    assert np.reshape(x, 6, copy=False)._base is x and not np.reshape(x, 6, copy=True)._is_view()
    with pytest.raises(ValueError, match="copy"):
        np.reshape(x.T, 6, copy=False)
