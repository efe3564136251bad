"""The smallest programs that once went wrong, and have no other home."""

import numpy as np
import pytest

import viewgrad as vg
from viewgrad.autograd import forward_ad, grad
from viewgrad.errors import AutogradError, ForwardModeError


def leaf(data):
    return vg.Tensor(data, requires_grad=True)


def test_unique_values_are_gathered():
    x = leaf([3.0, 1.0, 3.0])
    values = np.unique(x)
    assert grad((values * np.array([5.0, 7.0])).sum(), x)[0].tolist() == [7, 5, 0]


@pytest.mark.parametrize("function", [np.tril, np.triu])
def test_a_triangle_of_a_vector_has_a_gradient_of_its_shape(function):
    x = leaf([1.0, 2.0, 3.0])
    assert grad(function(x).sum(), x)[0].tolist() == ([3, 2, 1] if function is np.tril else [1, 2, 3])


def test_a_tensor_of_a_tensor_with_history_is_refused():
    x = leaf([1.0, 2.0])
    with pytest.raises(AutogradError, match=r"clone\(\)"):
        vg.Tensor(x * 2.0)
    assert vg.Tensor(vg.zeros(2)).tolist() == [0, 0]


def test_masked_arrays_are_refused_beside_a_history():
    x = leaf([1.0, 2.0])
    masked = np.ma.array([1.0, 2.0], mask=[False, True])
    acts = (lambda: x * masked, lambda: vg.Tensor(masked), lambda: np.add(x, masked), lambda: vg.zeros(2).add_(masked))
    for act in acts:
        with pytest.raises(Exception, match="mask"):
            act()


def test_the_diagonal_by_einsum_is_written_through():
    x = leaf(np.eye(3))
    matrix = x * 1.0
    np.einsum("ii->i", matrix)[...] = 5.0
    assert matrix.detach().numpy().diagonal().tolist() == [5, 5, 5]
    assert grad(matrix.sum(), x)[0].tolist() == (1 - np.eye(3)).tolist()


def test_sort_is_in_place():
    x = leaf([3.0, 1.0, 2.0])
    t = x * 1.0
    assert t.sort() is None
    assert grad((t * np.array([1.0, 10.0, 100.0])).sum(), x)[0].tolist() == [100, 1, 10]


def test_pieces_of_equal_length_are_needed_for_split():
    with pytest.raises(ValueError, match="equal"):
        np.split(leaf([1.0, 2.0, 3.0]), 2)


def test_differences_of_order_zero_are_the_values():
    assert np.diff(leaf([1.0, 2.0]), n=0, prepend=1.0).tolist() == [1, 2]


def test_values_that_are_no_numbers_are_all_kept_by_unique_all():
    x = np.array([np.nan, 1.0, np.nan])
    np.testing.assert_array_equal(np.unique_all(vg.Tensor(x)).values.numpy(), np.unique_all(x).values)


def test_windows_of_nothing_as_complex_numbers():
    x = leaf(np.zeros((0, 2)))
    assert grad(vg.view_as_complex(x * 1.0).real.sum(), x)[0].shape == (0, 2)


def test_weighted_sums_of_exponentials():
    x = leaf([1.0, 2.0])
    weights = np.array([1.0, 3.0])
    (g,) = grad(vg.logsumexp(x, b=weights), x)
    shares = weights * np.exp([1.0, 2.0])
    np.testing.assert_allclose(g, shares / shares.sum())


def test_gradients_with_respect_to_nothing():
    empty = leaf(np.zeros((0, 3)))
    assert grad((empty * 2.0).sum(), empty)[0].shape == (0, 3)
    assert vg.func.grad(lambda a: (a * 2.0).sum())(vg.zeros(0)).shape == (0,)
    assert vg.func.jacrev(lambda a: a * 2.0)(vg.zeros(0)).shape == (0, 0)
    assert vg.autograd.gradcheck(lambda a: a * 2.0, empty)


def test_repeating_a_number_along_its_only_axis():
    s = leaf(2.0)
    assert grad(np.repeat(s, 3, axis=0).sum(), s)[0].item() == 3.0


def test_joined_and_multiplied_into_something_else():
    x = leaf([1.0, 2.0])
    joined, product = vg.zeros(4), vg.zeros(())
    np.concatenate([x, x], out=joined)
    np.dot(x, x, out=product)
    assert grad(joined.sum() + product, x)[0].tolist() == [4, 6]
    assert np.concatenate([x, x], dtype=np.float32).dtype == np.float32


def test_real_eigenvectors_of_a_real_matrix_have_no_phases():
    """Also where the others are complex, or NumPy gives complex numbers for all."""
    matrix = np.array([[2.0, 1.0, 0.5], [-1.0, 2.0, 0.3], [0.2, -0.4, 5.0]])
    weights = np.array([0.3 + 1.0j, -0.7, 0.5j])

    def loss(a):
        values, vectors = np.linalg.eig(a)
        return (vectors[:, 2] * weights).real.sum() + (values * values).real.sum()

    x = leaf(matrix)
    found = grad(loss(x), x)[0].numpy()
    for place in np.ndindex(3, 3):
        step = np.zeros((3, 3))
        step[place] = 1e-6
        assert found[place] == pytest.approx((loss(matrix + step) - loss(matrix - step)) / 2e-6, abs=1e-7)


def test_a_tangent_with_a_tangent_is_refused():
    with forward_ad.dual_level():
        tangent = forward_ad.make_dual(vg.Tensor([1.0]), vg.Tensor([5.0]))
        with pytest.raises(ForwardModeError, match="unpack_dual"):
            forward_ad.make_dual(vg.Tensor([2.0]), tangent)
        with forward_ad.dual_level():
            assert forward_ad.unpack_dual(forward_ad.make_dual(vg.Tensor([2.0]), tangent)).tangent.tolist() == [1.0]


def detached_base():
    x = leaf([1.0, 2.0, 3.0])
    base = x.clone()
    view = base[1:2]
    base.detach_()
    return grad((view * view).sum() + x.sum(), x)[0]


def view_without_history(mode):
    x = leaf([1.0, 1.0])
    base = x.clone()
    with mode():
        view = base[:1]
    base[1:] = 0.0
    return grad((view * x[:1]).sum(), x)[0]


def imaginary_part_of_itself():
    x = leaf([1 + 2j, 3 - 1j, 0.5 + 0.7j])
    y = x * 1.0
    y[...] = y[1:].imag[:1]
    np.testing.assert_array_equal(y.detach(), [-1, -1, -1])
    return grad(y.real.sum(), x)[0]


def written_through(copy):
    tensor = vg.Tensor([1.0, 2.0, 3.0, 4.0])
    copy(tensor)[0] = 7.0
    return tensor


def index_without_dimensions():
    tensor = vg.Tensor([1.0, 2.0, 3.0])
    element = tensor[np.array(1)]
    tensor[np.array(1)] += 5.0
    return np.stack([element, tensor[1]])


def with_dimensions_in_front():
    def program(source):
        target = vg.zeros((2, 2))
        np.copyto(target[0], source[None])
        target[1, [0, 1]] = source[None]
        np.add(source[None], 0.0, out=target.reshape(1, 4)[:, 2:], where=np.array([True, False]))
        return target.sum()

    return vg.func.jacfwd(program)(vg.Tensor([1.0, 2.0]))


def power_with_tangent(base):
    return vg.func.jacfwd(lambda y: base**y)(vg.Tensor(0.5))


PROGRAMS = {
    "a base that is detached": (detached_base, [1, 5, 1]),
    "a view without history": (lambda: view_without_history(vg.no_grad), [1, 0]),
    "a view made in inference mode": (lambda: view_without_history(vg.inference_mode), [1, 0]),
    "imaginary parts of what is written": (imaginary_part_of_itself, [0, 3j, 0]),
    "ravel of what has gaps": (lambda: written_through(lambda t: t[::2].ravel()), [1, 2, 3, 4]),
    "ravel of what has none": (lambda: written_through(lambda t: t.ravel()), [7, 2, 3, 4]),
    "flatten": (lambda: written_through(lambda t: t.flatten()), [1, 2, 3, 4]),
    "an index without dimensions": (index_without_dimensions, [2, 7]),
    "compress": (lambda: vg.Tensor([1.0, 2.0, 3.0]).compress([True, False, True]), [1, 3]),
    "more dimensions in front, forwards": (with_dimensions_in_front, [2, 2]),
    "a power of 0, forwards": (lambda: power_with_tangent(0.0), 0),
    "powers of 0 and 2, forwards": (lambda: power_with_tangent(vg.Tensor([0.0, 2.0])), [0, np.log(2) * 2**0.5]),
    "a column order": (lambda: np.reshape(vg.Tensor([[0.0, 1.0], [2.0, 3.0]]), 4, order="F"), [0, 2, 1, 3]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_that_once_went_wrong(name):
    program, expected = PROGRAMS[name]
    np.testing.assert_allclose(program(), expected, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_gradients_have_the_dtype_of_the_leaf(dtype):
    for function in (vg.erf, vg.gammaln, lambda x: vg.Tensor([2, 3]) ** x, lambda x: vg.Tensor([True]) ** x):
        x = vg.Tensor(np.array([0.5], dtype), requires_grad=True)
        assert grad(function(x).sum(), x)[0].dtype == dtype
    assert np.sum(vg.Tensor(np.array([1, 2], np.int8)), dtype=np.int8).dtype == np.int8
