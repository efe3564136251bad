"""Indexing: composed indices, and reads and writes by masks and index arrays."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, basic_indices

import viewgrad as vg
from viewgrad.autograd import forward_ad, grad
from viewgrad.tensor.indices import composed, window_at


@given(st.data())
def test_the_composed_index_takes_the_same_window(data):
    shape = data.draw(array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5))
    base = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    outer = data.draw(basic_indices(shape, allow_newaxis=True, allow_ellipsis=True))
    outer = outer if isinstance(outer, tuple) else (outer,)
    view = base[outer] if isinstance(base[outer], np.ndarray) else base[(*outer, ...)]
    inner = data.draw(basic_indices(view.shape, allow_newaxis=True, allow_ellipsis=True))
    expected = np.asarray(view[inner])
    index = composed(outer, inner, shape)
    if index is None:
        assert 0 in expected.shape
        return
    window = window_at(base, index)
    assert isinstance(window, np.ndarray)
    assert window.shape == expected.shape
    assert np.array_equal(window, expected)
    if window.size:
        assert np.shares_memory(window, base)


def test_masked_self_assignment_reads_before_it_writes():
    # NumPy does not check this if the only index is an array of bools.
    t = vg.Tensor([0.0, 1.0, 2.0, 3.0])
    t[np.array([True] * 4)] = t[::-1]
    assert t.tolist() == [3.0, 2.0, 1.0, 0.0]


@pytest.mark.parametrize("index", [slice(0, 3), [2, 1, 0], [1, 1, 0]])
def test_assigned_values_may_have_leading_dimensions_of_length_1(index):
    values = vg.Tensor([[4.0, 5.0, 6.0]], requires_grad=True)
    expected = np.zeros(3)
    expected[index] = values.detach().numpy()
    t = vg.zeros(3)
    t[index] = values
    assert t.tolist() == expected.tolist()
    (grad,) = vg.autograd.grad(t @ vg.Tensor([1.0, 2.0, 3.0]), values)
    weights = {4.0: 0.0, 5.0: 0.0, 6.0: 0.0} | dict(zip(expected.tolist(), [1.0, 2.0, 3.0]))
    assert grad.tolist() == [[weights[4.0], weights[5.0], weights[6.0]]]


def test_the_parts_of_complex_numbers_are_assigned_to():
    z = vg.Tensor([1 + 2j, 3 - 1j], requires_grad=True)
    v = vg.Tensor([5.0, 6.0], requires_grad=True)
    t = z.clone()
    t.real = v
    t.imag *= v
    assert t.tolist() == [5 + 10j, 6 - 6j]
    grads = vg.autograd.grad((t * t).real.sum(), [z, v], retain_graph=True)  # v**2 - (v * z.imag)**2
    assert grads[0].tolist() == [-100j, 72j]
    assert grads[1].tolist() == [10 - 40.0, 12 - 12.0]
    version = t._version
    t.real = t.real
    assert t._version == version
    t.real = t.detach().real
    assert vg.autograd.grad(t.real.sum(), v, allow_unused=True)[0].tolist() == [0.0, 0.0]
    with pytest.raises(TypeError, match="no imaginary parts"):
        v.detach().imag = 1.0


@pytest.mark.parametrize("index", [0, slice(0, 1)])
def test_self_assignment_of_a_view_without_history_ends_the_history(index):
    x = vg.Tensor([[1.0, 2.0]], requires_grad=True)
    t = x.clone()
    row = t[0]
    with vg.no_grad():
        window = row[index]
    row[index] = window
    assert vg.autograd.grad(t.sum(), x)[0].tolist() == [[0.0, 1.0]]


def test_self_assignment_of_a_custom_functions_view_keeps_its_backward():
    class FirstTimesTen(vg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x[0:1]

        @staticmethod
        def backward(ctx, grad):
            return vg.Tensor([10.0, 0.0]) * grad

    x = vg.Tensor([1.0, 2.0], requires_grad=True)
    t = x.clone()
    t[0:1] = FirstTimesTen.apply(t)
    assert vg.autograd.grad(t.sum(), x)[0].tolist() == [10.0, 1.0]


# -- assignments that read what they write -----------------------------------------------------------------------------

SLICES = [
    slice(0, 5, 2), slice(1, 4), slice(4, None, -2), slice(0, 3), slice(2, 5), slice(6, None, -3), slice(0, 7, 3),
    slice(3, 0, -1),
]  # fmt: skip


@pytest.mark.parametrize("copy", [False, True])
def test_an_assignment_reads_all_before_it_writes(copy):
    start, weights = np.arange(1.0, 8.0), np.linspace(-1.0, 2.0, 7)
    for to, of in itertools.product(SLICES, SLICES):
        if len(start[to]) != len(start[of]):
            continue
        value, gradient = start.copy(), weights.copy()
        value[to] = start[of].copy()
        part = gradient[to].copy()
        gradient[to] = 0.0
        gradient[of] += part
        x = vg.Tensor(start, requires_grad=True)
        y = x * 1.0
        if copy:
            y[to].copy_(y[of])
        else:
            y[to] = y[of]
        assert y.tolist() == value.tolist(), (to, of)
        np.testing.assert_allclose(grad((y * weights).sum(), x)[0], gradient, err_msg=str((to, of)))


def test_assigning_imaginary_parts_of_the_target():
    x = vg.Tensor([1 + 2j, 3 - 1j, 0.5 + 0.7j], requires_grad=True)
    y = x * 1.0
    y[...] = y[1:].imag[:1]
    assert y.tolist() == [-1, -1, -1]
    assert grad(y.real.sum(), x)[0].tolist() == [0, 3j, 0]


def _two_numbers(t, x):
    t[0] = x[0], 3.0 * x[1]


def _a_number_and_a_constant(t, x):
    t[1, :] = [x[2], 5.0]


def _rows(t, x):
    t[:] = [[x[0], x[1]], x[2:] * 2.0]


def _of_a_view(t, x):
    column = t[:, 1]
    column[:] = x[3], t[0, 0]


def _by_an_array(t, x):
    t[[1, 0]] = (x[:2], x[2:])


def _augmented(t, x):
    t[0] += x[0], x[1] * x[2]


@pytest.mark.parametrize("has_history", [False, True])
@pytest.mark.parametrize("write", [_two_numbers, _a_number_and_a_constant, _rows, _of_a_view, _by_an_array, _augmented])
def test_lists_with_tensors_in_them_are_assigned_with_their_history(write, has_history):
    start = np.array([0.5, -1.5, 2.0, 3.0])

    def program(x, t):
        write(t, x)
        return (t * t * np.array([[1.0, 2.0], [3.0, 4.0]])).sum()

    def value(x):
        return program(x, x.reshape(2, 2).copy() if has_history else np.ones((2, 2)))

    x = vg.Tensor(start, requires_grad=True)
    for replay in (False, True):
        with vg.view_replay(replay):
            result = program(x, x.reshape(2, 2).clone() if has_history else vg.ones(2, 2))
            assert result.item() == value(start)
            expected = [(value(start + e) - value(start - e)) / 2e-6 for e in np.eye(4) * 1e-6]
            np.testing.assert_allclose(grad(result, x)[0].numpy(), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("index", [slice(None), [0, 1, 2], (slice(0, 3),)])
@pytest.mark.parametrize("dtype", [float, int])
def test_values_that_numpy_converts_to_numbers_can_be_assigned(index, dtype):
    """None becomes NaN in an array of floats, and a string its number; NumPy's errors are unchanged."""
    for value in (None, "nan", "3.5", "7", [None, 1, 2], np.array([1, None, 2], object), "abc"):
        found = []
        for array in (np.zeros(3, dtype), vg.zeros(3, dtype=dtype)):
            try:
                array[index] = value
                found.append(np.asarray(array).tolist())
            except (TypeError, ValueError) as error:
                found.append(type(error))
        assert str(found[0]) == str(found[1]), value


def test_tensors_beside_none_keep_their_history_when_assigned():
    x = vg.Tensor([1.0, 2.0, 3.0], requires_grad=True)
    out = vg.zeros(4)
    out[:3] = [None, x[1], 3.0]
    out[[2, 3]] = np.array([x[0], x[2]], object)
    np.testing.assert_array_equal(out.detach().numpy(), [np.nan, 2.0, 1.0, 3.0])
    np.testing.assert_array_equal(vg.autograd.grad(out[1:].sum(), x)[0].numpy(), [1.0, 1.0, 1.0])


def test_integers_of_any_size_are_assigned_as_in_numpy():
    x = vg.Tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 2.0
    y[0] = 10**30
    with pytest.raises(OverflowError):
        y[1] = 10**400
    y[2] = 7
    assert y.detach().tolist() == [1e30, 4.0, 7.0]
    assert grad(y.sum(), x)[0].tolist() == [0.0, 2.0, 0.0]


def test_broadcast_values_accumulate_at_each_index():
    places = np.array([[0, 1], [0, 3]])
    x = vg.Tensor([1.0, 2.0], requires_grad=True)
    y = vg.zeros(4)
    np.add.at(y, places, x)  # NumPy 2.4 reads beyond the array here
    assert y.detach().tolist() == [2.0, 2.0, 0.0, 2.0]
    assert grad((y * np.array([1.0, 10.0, 100.0, 1000.0])).sum(), x)[0].tolist() == [2.0, 1010.0]


@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.uint16])
@pytest.mark.parametrize("make", [vg.from_numpy, vg.Tensor, lambda a: vg.Tensor(a) + 0, lambda a: vg.Tensor(a)[:]])
def test_an_integer_scalar_means_the_same_as_an_int(make, dtype):
    places = make(np.array([1, 0, 2], dtype))
    for take in (
        lambda x, i: x[i], lambda x, i: x[i, 1:], lambda x, i: x[..., i], lambda x, i: x[None, i],
        lambda x, i: x[i, i:], lambda x, i: x[i, ...], lambda x, i: x[:, i][i:],
    ):  # fmt: skip
        for scalar in (places[0], places.max() - 1, vg.argmax(vg.Tensor([0.0, 1.0]))):
            results = []
            for i, array in ((scalar, vg.Tensor), (1, vg.Tensor), (np.int64(1), np.array)):
                x = array(np.arange(12.0).reshape(3, 4))
                row = take(x, i)
                row *= 2.0
                row[...] = row + 1.0
                results.append(np.asarray(x))
            np.testing.assert_array_equal(results[0], results[1])
            np.testing.assert_array_equal(results[0], results[2])
    leaf = vg.Tensor(np.arange(1.0, 7.0).reshape(2, 3), requires_grad=True)
    g = leaf * 1.0
    row = g[places[0]]
    row[0] = 5.0 * g[0, 1]
    (gradient,) = vg.autograd.grad((g * g).sum(), [leaf])
    np.testing.assert_array_equal(gradient.numpy(), [[2.0, 104.0, 6.0], [0.0, 10.0, 12.0]])


def test_an_array_without_dimensions_copies_as_in_numpy():
    for i in (vg.Tensor(1), np.array(1)):
        g = vg.zeros(2, 3)
        g[i][0] = 5.0
        assert not np.asarray(g).any()


@pytest.mark.parametrize("add", [np.add.at, np.subtract.at])
@pytest.mark.parametrize("mode", [vg.no_grad, lambda: vg.view_replay(True), forward_ad.dual_level])
def test_a_new_axis_as_the_only_index_of_an_addition(add, mode):
    expected = np.array([1.0, 2.0])
    add(expected, None, [[0.5, 0.7]])
    y = vg.Tensor([1.0, 2.0]) * 1.0
    with mode():
        dual = forward_ad.make_dual(y, vg.ones(2)) if mode is forward_ad.dual_level else y
        add(dual, None, [[0.5, 0.7]])
    np.testing.assert_array_equal(dual.detach(), expected)


class Position:
    """An object that is an integer index."""

    def __index__(self):
        return 1

    def __array__(self, dtype=None, copy=None):
        return np.array([0, 2])


class Positions:
    """An object that is an array of indices."""

    def __array__(self, dtype=None, copy=None):
        return np.array([0, 2])


@pytest.mark.parametrize("index", [Position(), (None, Position()), slice(Position(), None), Positions()])
def test_objects_as_indices(index):
    def f(x):
        y = x * 1.0
        y[index] = x[index] * 3
        return (y * y).sum()

    x = np.array([1.0, 2.0, 4.0])
    value, slopes = vg.value_and_grad(f)(x)
    written = np.ones(3)
    written[index] = 9.0
    assert value == f(x) and slopes.tolist() == (2 * written * x).tolist()


@pytest.mark.parametrize("index", [np.array([0, 0, 1]), (np.array([[0], [0], [1]]), [0]), vg.Tensor([0, 0, 1])])
def test_the_gradient_of_an_overwritten_value_is_zero_beside_infinite_ones(index):
    def f(x):
        y = vg.ones(2) if not isinstance(index, tuple) else vg.ones((2, 1))
        y[index] = x if not isinstance(index, tuple) else x[:, None]
        return vg.sqrt(y).sum()

    x = np.array([4.0, 0.0, 4.0])  # the slope of the square root is infinite at 0
    with np.errstate(all="ignore"):
        compiled = vg.compile(f, executor="python")
        for each in (f, compiled, compiled, compiled):
            assert vg.grad(each)(x).tolist() == vg.jacfwd(each)(x).tolist() == [0.0, np.inf, 0.25]
