"""Composites of operators, Python's operators, and handwritten in-place forms."""

import math

import numpy as np
import pytest

import viewgrad as vg
from viewgrad.autograd import grad, gradcheck
from viewgrad.autograd.modes import forward_ad

PLACES = np.array([[0, 0], [2, 1]])
PROGRAMS = {
    "norm 1 of a matrix": (lambda x: vg.norm(x, 1), (3, 2)),
    "norm -1 of a matrix": (lambda x: vg.norm(x, -1), (3, 2)),
    "norm inf of a matrix": (lambda x: vg.norm(x, math.inf), (3, 2)),
    "norm 2 of a matrix": (lambda x: vg.norm(x, 2), (3, 2)),
    "nuclear norm": (lambda x: vg.norm(x, "nuc"), (3, 2)),
    "Frobenius norms": (lambda x: vg.norm(x, "fro", (0, 2), True), (2, 3, 2)),
    "norms of matrices": (lambda x: vg.norm(x, 1, (2, 0), True), (2, 3, 2)),
    "einsum chain": (lambda x, y, z: vg.einsum("ij,jk,kl->il", x, y, z), (2, 3), (3, 2), (2, 2)),
    "einsum of four": (lambda a, b, c, d: vg.einsum("abc,cd,be,a->ed", a, b, c, d), (2, 3, 2), (2, 2), (3, 2), (2,)),
    "einsum of one letter": (lambda x, y, z: vg.einsum("i,i,i", x, y, z), (3,), (3,), (3,)),
    "einsum with dots": (lambda x, y: vg.einsum("...ij,...jk", x, y), (2, 2, 3), (3, 2)),
    "einsum with dots on either side": (lambda x, y: vg.einsum("...i,i...->...", x, y), (2, 3), (3, 2)),
    "trace as einsum": (lambda x: vg.einsum("ii", x), (3, 3)),
    "inner": (vg.inner, (2, 3), (4, 3)),
    "vdot": (vg.vdot, (2, 2), (2, 2)),
    "rot90": (lambda x: vg.rot90(x) * np.arange(6.0).reshape(3, 2), (2, 3)),
    "flip": (lambda x: vg.flip(x, (0, 1))[0] * x[:, 0].flip(), (2, 2)),
    "hstack": (lambda x, y: np.hstack([x, y]), (2, 3), (2, 1)),
    "vstack": (lambda x, y: np.vstack([x, y]), (3,), (2, 3)),
    "dstack": (lambda x, y: np.dstack([x, y]), (3,), (3,)),
    "column_stack": (lambda x, y: np.column_stack([x, y]), (3,), (3, 2)),
    "append": (lambda x, y: np.append(x, y), (3,), (2, 2)),
    "meshgrid": (lambda x, y: np.meshgrid(x, y), (3,), (2,)),
    "meshgrid ij": (lambda x, y: np.meshgrid(x, y, indexing="ij"), (3,), (2,)),
    "broadcast_arrays": (lambda x, y: np.broadcast_arrays(x, y)[0] * y, (3, 1), (2,)),
    "select": (lambda x, y: np.select([x > 0.5, x > -0.5], [x * y, y], x), (2, 2), (2, 2)),
    "extract": (lambda x: np.extract(x > 0, x), (2, 3)),
    "compress": (lambda x: np.compress([True, False, True], x, axis=1), (2, 3)),
    "polyval": (np.polyval, (3,), (2,)),
    "fill_diagonal": (lambda x, y: (np.fill_diagonal(x, y), x)[1], (3, 3), (3,)),
    "putmask": (lambda x, y: (np.putmask(x, y > 0, y), x)[1], (2, 3), (2, 3)),
    "splits": (lambda x: np.hsplit(x, 2)[0] * np.vsplit(x, [1])[0][:, :1], (2, 2)),
    "index_add_": (lambda x, y: x.index_add_(1, np.array([0, 0, 2]), y), (2, 3), (2, 3)),
    "scatter_": (lambda x, y: x.scatter_(1, PLACES, y), (2, 3), (2, 2)),
    "scatter_ with places written twice": (lambda x, y: x.scatter_(1, 0 * PLACES, y), (2, 3), (2, 2)),
    "scatter_add_": (lambda x, y: x.scatter_add_(1, PLACES, y), (2, 3), (2, 2)),
    "scatter_add_ on a view": (lambda x, y: (x.T.scatter_add_(0, PLACES[:, :1], y), x)[1], (2, 3), (2, 1)),
    "divmod": (lambda x: divmod(x, 2.0)[1] + divmod(5.0, x)[1], (3,)),
    "Python's operators": (lambda x: 2**x + x**2 - 3 // x + abs(-x) + +x, (3,)),
    "where as a method": (lambda x, y: x.where(np.array([True, False]), y), (2,), (2,)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients(name):
    function, *shapes = PROGRAMS[name]
    rng = np.random.default_rng(0)
    assert gradcheck(function, [vg.Tensor(rng.standard_normal(shape), requires_grad=True) for shape in shapes])


@pytest.mark.parametrize("name", ["index_add_", "scatter_", "scatter_add_"])
def test_tangents_of_handwritten_inplace_forms(name):
    function, *shapes = PROGRAMS[name]
    rng = np.random.default_rng(0)
    values = [rng.standard_normal(shape) for shape in shapes]
    tangents = [rng.standard_normal(shape) for shape in shapes]
    with forward_ad.dual_level():
        duals = [forward_ad.make_dual(vg.Tensor(v), vg.Tensor(t)) for v, t in zip(values, tangents)]
        tangent = forward_ad.unpack_dual(function(duals[0] * 1, duals[1])).tangent.numpy().copy()
    step = 1e-6
    above, below = (function(*[vg.Tensor(v + s * t) for v, t in zip(values, tangents)]).numpy() for s in (step, -step))
    np.testing.assert_allclose(tangent, (above - below) / (2 * step), atol=1e-8)


def test_values_match_numpy():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 2, 3))
    x, y = vg.Tensor(a), vg.Tensor(b)
    pairs = [(join([x, y]), join([a, b])) for join in (np.hstack, np.vstack, np.dstack, np.column_stack)]
    pairs += [(join([x[0], y[0]]), join([a[0], b[0]])) for join in (np.hstack, np.vstack, np.dstack, np.column_stack)]
    pairs += [(np.rot90(x, k), np.rot90(a, k)) for k in range(-2, 5)]
    for order in (1, -1, 2, -2, math.inf, -math.inf, "fro", "nuc", None):
        pairs.append((np.linalg.norm(x, order), np.linalg.norm(a, order)))
        pairs.append((np.linalg.norm(x, order, (1, 0), True), np.linalg.norm(a, order, (1, 0), True)))
    pairs += zip(np.meshgrid(x[0], y[0, :2]), np.meshgrid(a[0], b[0, :2]))
    pairs += [
        (np.linalg.matrix_norm(x, ord=1), np.linalg.matrix_norm(a, ord=1)),
        (np.linalg.vector_norm(x, axis=1), np.linalg.vector_norm(a, axis=1)),
        (np.vdot(x + 1j, y), np.vdot(a + 1j, b)),
        (x // y, a // b),
        (x % y, a % b),
        (np.append(x, y, axis=1), np.append(a, b, axis=1)),
        (np.polyval(x[0], y), np.polyval(a[0], b)),
        (np.select([x > 1, x > 0], [x, 2 * y]), np.select([a > 1, a > 0], [a, 2 * b])),
        (np.extract(x > 0, x), np.extract(a > 0, a)),
        (np.compress([False, True], x, axis=0), np.compress([False, True], a, axis=0)),
        (np.around(x, 1), np.around(a, 1)),
        (np.fliplr(x), np.fliplr(a)),
        (np.flipud(x), np.flipud(a)),
        (np.atleast_3d(x[0]), np.atleast_3d(a[0])),
    ]
    for number, (actual, wanted) in enumerate(pairs):
        assert actual.shape == wanted.shape, number
        np.testing.assert_allclose(actual.numpy(), wanted, err_msg=str(number))


def test_flip_returns_a_view_as_in_numpy():
    x = vg.Tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x.clone()
    np.flip(y)[0] = 10.0
    assert y.tolist() == [1.0, 2.0, 10.0]
    assert grad(y.sum(), x)[0].tolist() == [1.0, 1.0, 0.0]


def test_einsum_refuses_mismatched_operands():
    x = vg.ones(2, 3)
    with pytest.raises(ValueError, match="'ijk' does not fit an operand of 2 dimensions"):
        vg.einsum("ijk", x)
    with pytest.raises(ValueError, match="subscripts for 2 operands, but got 1"):
        vg.einsum("ij,jk", x)


EINSUMS_OF_ONE = ["ij->ji", "ii->i", "iij->ji", "iji->ij", "...i->i...", "ii...->...i", "iii->i", "ij->", "ii", "ij->j"]


@pytest.mark.parametrize("subscripts", EINSUMS_OF_ONE)
def test_einsum_of_one_operand_shares_memory_as_in_numpy(subscripts):
    """A write to a diagonal therefore changes the matrix."""
    letters = subscripts.partition("->")[0].replace("...", "")
    array = np.arange(3.0 ** len(letters)).reshape((3,) * len(letters))
    x = vg.Tensor(array, requires_grad=True)
    base = x.clone()
    theirs, ours = np.einsum(subscripts, array), np.einsum(subscripts, base)
    np.testing.assert_array_equal(ours.detach().numpy(), theirs)
    shared = np.shares_memory(theirs, array)
    assert np.shares_memory(ours._array, base._array) == shared
    if shared:
        theirs *= 2
        ours *= 2
        np.testing.assert_array_equal(base.detach().numpy(), array)
        (g,) = grad(base.sum(), x)
        expected = np.ones(array.shape)
        window = np.einsum(subscripts, expected)
        window[...] = 2
        np.testing.assert_array_equal(g.numpy(), expected)


def test_einsum_takes_lists_of_numbers_out_and_dtype():
    a, b = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    x, y = vg.Tensor(a), vg.Tensor(b)
    np.testing.assert_array_equal(np.einsum(x, (0, 1), y, (1, 2)).numpy(), np.einsum(a, (0, 1), b, (1, 2)))
    np.testing.assert_array_equal(np.einsum(x, [0, 1], [1, 0]).numpy(), a.T)
    np.testing.assert_array_equal(np.einsum(x, [Ellipsis, 0], y, [0, 1], [Ellipsis, 1]).numpy(), a @ b)
    out = vg.zeros((2, 4))
    assert np.einsum("ij,jk", x, y, out=out) is out
    np.testing.assert_array_equal(out.numpy(), a @ b)
    assert np.einsum("ij,jk", x, y, dtype=np.float32).dtype == np.float32


def test_bools_are_rejected_as_indices_along_an_axis():
    x = vg.Tensor([1.0, 2.0], requires_grad=True)
    mask = np.array([True, False])
    for put in (vg.scatter, vg.scatter_add, vg.index_add, vg.scatter_, vg.index_add_):
        with pytest.raises(IndexError, match=r"not (by|1-dimensional) bool"):
            put(x * 1, 0, mask, 1.0)
    assert x.take(mask).tolist() == [2.0, 1.0]  # as in NumPy
    assert grad(x.take(mask), x, vg.Tensor([1.0, 10.0]))[0].tolist() == [10.0, 1.0]


def test_reductions_of_numbers_along_an_axis():
    x = vg.Tensor(3.0, requires_grad=True)
    for reduce in (vg.sum, vg.mean, vg.max, vg.prod):
        assert grad(reduce(x, axis=0), x)[0].item() == 1.0


def test_comparison_with_nan():
    x = vg.Tensor([1.0, 2.0])
    assert (x == None) is False  # noqa: E711
    assert (x != "text") is True
    assert x in [None, x]
    assert len({x, x}) == 1
    assert (x == [1.0, 3.0]).tolist() == [True, False]


def test_integers_are_not_recorded():
    x = vg.Tensor([1.5, 2.5], requires_grad=True)
    assert not x.astype(int).requires_grad
    assert x.astype(np.float32).requires_grad
    assert x.astype(np.float64, copy=False) is x
    assert not (x > 2).requires_grad
    assert not x.argsort().requires_grad


def test_pythons_augmented_operators_write_in_place():
    mask = vg.Tensor([True, False, True])
    bits = vg.Tensor([1, 2, 3])
    mask &= [True, True, False]
    bits <<= 1
    bits |= 1
    assert (mask.tolist(), bits.tolist(), (~mask).tolist()) == ([True, False, False], [3, 5, 7], [False, True, True])
    x = vg.Tensor([1.0, 2.0], requires_grad=True)
    y = x * 1
    y **= 2
    y -= 1
    y /= 2
    y %= 10
    assert y.tolist() == [0.0, 1.5]
    assert grad(y.sum(), x)[0].tolist() == [1.0, 2.0]


def test_options_are_kept_as_they_were():
    """Changing a list or an array passed as an option between forward and backward changes no gradient."""
    x = vg.Tensor(np.arange(6.0).reshape(2, 3), requires_grad=True)
    weights = np.arange(1.0, 7.0)

    def changed_later(function, option):
        out = function(option)
        if isinstance(option, np.ndarray):
            option[...] = 0
        else:
            option.reverse()
        return grad((out.ravel() * weights[: out.size]).sum(), x)[0].tolist()

    for function, option in [
        (lambda shift: x.roll(shift, axis=(0, 1)), [0, 1]),
        (lambda axis: vg.tensordot(x, np.ones((3, 2)), axes=axis), [[0, 1], [1, 0]]),
        (lambda index: x.take(index), np.array([5, 0, 5])),
        (lambda index: x.take_along_axis(index, 1), np.array([[2], [0]])),
        (lambda counts: x.repeat(counts, axis=1), np.array([1, 0, 1])),
        (lambda mask: x.masked_fill(mask, 0.0), np.array([True, False, False])),
        (lambda width: x[:1, :1].pad(width), np.array([[0, 1], [1, 0]])),
        (lambda index: x[index], np.array([1, 1])),
    ]:
        kept = option.copy() if isinstance(option, np.ndarray) else list(option)
        out = function(kept)
        expected = grad((out.ravel() * weights[: out.size]).sum(), x)[0].tolist()
        assert changed_later(function, option) == expected
