"""Views: the operators, writes through them, and the cost of their gradients."""

from __future__ import annotations

import numpy as np
import pytest
from leaves import leaf, leaf_of

import viewgrad as vg
from viewgrad.autograd import grad
from viewgrad.errors import OverlappingWriteError, ViewInPlaceError


@pytest.mark.parametrize(
    ("there", "back"),
    [
        (lambda v: v.T, lambda v: v.T),
        (lambda v: v.reshape(2, 6), lambda v: v.reshape(3, 4)),
        (lambda v: v.transpose(1, 0), lambda v: v[...].T),
        (lambda v: v[::-1], lambda v: v[::-1]),
    ],
)
def test_inverse_views_do_not_lengthen_the_chain(there, back):
    x = vg.Tensor(np.arange(12.0).reshape(3, 4), requires_grad=True)
    base = x.clone()
    v = base
    for _ in range(50):
        v = there(v)
        v[1] += 1.0
        v = back(v)
        v[0, 0] *= 1.5
    assert len(v._view.steps) <= 3
    expected, w = 1.0, np.ones((3, 4))
    w[0, 0] = expected * 1.5**50
    np.testing.assert_allclose(vg.autograd.grad(v.sum(), x, retain_graph=True)[0], w)
    np.testing.assert_allclose(vg.autograd.grad(base.sum(), x)[0], w)


@pytest.mark.parametrize(("shape", "wider"), [((0,), (2, 0)), ((1, 0), (3, 0)), ((2, 0), (4, 2, 0))])
def test_empty_tensors_broadcast_to_the_requested_shape(shape, wider):
    x = vg.zeros(shape, requires_grad=True)
    y = x.broadcast_to(wider)
    assert y.shape == wider
    (y * y).sum().backward()
    assert x.grad.shape == shape


def test_a_broadcast_that_repeats_nothing_can_be_written_to():
    x = vg.Tensor([1.0, 2.0], requires_grad=True)
    y = x * 1.0
    y.broadcast_to((1, 2)).mul_(3.0)
    y.sum().backward()
    np.testing.assert_array_equal(x.grad, [3.0, 3.0])


def test_a_reshape_that_copies_is_not_a_view():
    x = vg.Tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    flat = (x * 1.0).T.reshape(4)
    assert not flat._is_view()
    flat[1:].mul_(flat[1:])
    loss = (flat[...] * flat).sum()
    # As for any base, the gradient is with respect to its current value, from which its views are computed.
    (grad,) = vg.autograd.grad(loss, flat, retain_graph=True)
    np.testing.assert_allclose(grad, 2 * flat.detach())
    loss.backward()
    np.testing.assert_allclose(x.grad.T.reshape(4), [2.0, 4 * 27.0, 4 * 8.0, 4 * 64.0])


@pytest.mark.parametrize("overlapping", [lambda x: x.unfold(0, 2, 1), lambda x: x.expand(2, 3)])
def test_a_detached_tensor_that_overlaps_itself_cannot_be_written_to(overlapping):
    x = vg.Tensor([1.0, 2.0, 3.0])
    detached, weight = overlapping(x).detach(), vg.ones(3, requires_grad=True)
    with pytest.raises(OverlappingWriteError):
        detached.mul_(2.0)
    with pytest.raises(OverlappingWriteError):
        detached[:] = 2.0
    # Recorded writes are refused even through a part that does not overlap itself, since other elements would change.
    with pytest.raises(OverlappingWriteError):
        detached[0].mul_(weight[: detached.shape[1]])
    with pytest.raises(OverlappingWriteError):
        detached[0] = weight[: detached.shape[1]]
    np.testing.assert_array_equal(x, [1.0, 2.0, 3.0])
    # The saved value of another part is unchanged.
    product = detached[1] * weight[: detached.shape[1]]
    expected = detached[1].tolist()
    detached[0].mul_(3.0)
    assert vg.autograd.grad(product.sum(), weight)[0].tolist()[: len(expected)] == expected
    assert x.tolist() == [3.0, 6.0, 3.0] or x.tolist() == [3.0, 6.0, 9.0]


def test_view_as_complex_of_empty_tensors():
    for shape in ((0, 2), (3, 0, 2)):
        x = vg.zeros(shape, requires_grad=True)
        y = x * 1.0
        y.view_as_complex().mul_(2.0)
        assert y.view_as_complex().shape == shape[:-1]
        assert grad(y.sum(), x)[0].shape == shape


@pytest.mark.parametrize("write", ["mul", "assign", "copy", "through a view of it"])
def test_a_write_through_a_view_taken_under_no_grad_is_not_lost(write):
    # The view had no history of its own, so the write was not recorded, and the base kept its old history.
    t = vg.Tensor([1.0, 2.0], requires_grad=True)
    b = t.clone()
    with vg.no_grad():
        view = b[:1]
    with pytest.raises(ViewInPlaceError, match="created under no_grad"):
        if write == "mul":
            view *= 2.0
        elif write == "assign":
            view[0] = 2.0
        elif write == "copy":
            view.copy_(vg.ones(1))
        else:
            view[0, ...].mul_(2.0)
    assert b.tolist() == [1.0, 2.0]
    with vg.no_grad():
        view *= 2.0
    assert b.tolist() == [2.0, 2.0]


def test_thousands_of_views_of_views_are_differentiated_without_recursion():
    x = vg.Tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x
    for _ in range(3000):
        y = y[:]
    (gradient,) = vg.autograd.grad((y * y).sum(), x, create_graph=True)
    assert gradient.tolist() == [2.0, 4.0, 6.0]
    assert vg.autograd.grad(gradient.sum(), x)[0].tolist() == [2.0, 2.0, 2.0]


@pytest.mark.parametrize("block", [vg.no_grad, vg.inference_mode])
@pytest.mark.parametrize("take", [lambda a: a[:1], lambda a: a.reshape(1, 2)[:, :1].reshape(1), lambda a: a[:2][:1]])
def test_views_taken_without_recording_have_no_history(block, take):
    x = leaf(1.0, 2.0)
    base = x.clone()
    with block():
        view = take(base)
    writes = (lambda: base.__setitem__(slice(1, 2), 0.0), lambda: base.mul_(2.0), lambda: base.__setitem__(0, x[1]))
    for write in writes:
        write()
        assert not view.requires_grad and not view[:1].requires_grad
        assert view.tolist() == base[:1].tolist()
        assert grad((view * x[:1]).sum(), x)[0].tolist() == [base[0].item(), 0.0]
        with pytest.raises(ViewInPlaceError):
            view.mul_(2.0)


# -- what shares memory with what, as in NumPy -------------------------------------------------------------------------

LAYOUTS = {
    "contiguous": lambda a: a,
    "transposed": lambda a: a.T,
    "strided": lambda a: a[:, ::2],
    "reversed": lambda a: a[::-1],
    "a row": lambda a: a[1],
    "a column": lambda a: a[:, 1],
    "an element": lambda a: a[1:2, 2:3],
    "empty": lambda a: a[:0],
}
TAKEN = {
    "ravel": lambda a: a.ravel(),
    "np.ravel": np.ravel,
    "flatten": lambda a: a.flatten(),
    "reshape": lambda a: a.reshape(-1),
    "np.reshape": lambda a: np.reshape(a, (-1,)),
    "transpose": lambda a: a.transpose(),
    "array without dimensions": lambda a: a[np.array(0)] if a.shape[0] else a,
    "array without dimensions, beside a slice": lambda a: a[np.array(0), 1:] if a.ndim > 1 and a.shape[0] else a,
    "number": lambda a: a[np.int64(0) :],
    "list": lambda a: a[[0]] if a.shape[0] else a,
    "mask": lambda a: a[np.ones(a.shape, bool)],
    "squeeze": lambda a: a.squeeze(),
    "swapaxes": lambda a: np.swapaxes(a, 0, -1),
    "expand_dims": lambda a: np.expand_dims(a, 0),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("take", TAKEN)
def test_memory_is_shared_exactly_when_numpy_shares_it(take, layout):
    array = np.arange(12.0).reshape(3, 4)
    tensor = vg.Tensor(array)
    source, ours = LAYOUTS[layout](array), LAYOUTS[layout](tensor)
    expected, found = TAKEN[take](source), TAKEN[take](ours)
    assert found.tolist() == expected.tolist()
    assert np.shares_memory(found._array, ours._array) == np.shares_memory(expected, source)


def test_the_diagonal_by_einsum_is_written_through():
    x = leaf_of(np.eye(3))
    matrix = x * 1.0
    np.einsum("ii->i", matrix)[...] = 5.0
    assert matrix.detach().numpy().diagonal().tolist() == [5, 5, 5]
    assert grad(matrix.sum(), x)[0].tolist() == (1 - np.eye(3)).tolist()


def test_view_as_complex_of_an_empty_leaf_has_a_gradient():
    x = leaf_of(np.zeros((0, 2)))
    assert grad(vg.view_as_complex(x * 1.0).real.sum(), x)[0].shape == (0, 2)


def test_imag_of_real_arrays_has_numpys_layout():
    for order in ((0, 1, 2), (2, 1, 0), (1, 0, 2)):
        array = np.ones((2, 3, 4)).transpose(order)
        zeros = vg.from_numpy(array).imag
        assert zeros.numpy().strides == array.imag.strides and not zeros.numpy().any()
        zeros += 1.0


@pytest.mark.parametrize("order", [np.s_[:], np.s_[::-1], np.s_[::-1, ::-1], np.s_[..., ::-1]])
@pytest.mark.parametrize("replay", [False, True])
def test_constants_written_to_part_of_a_strided_array_after_it_was_detached(order, replay):
    x = vg.Tensor(2.0, requires_grad=True)
    memory = np.arange(24.0).reshape(4, 6)
    base = vg.from_numpy(memory[::2, 1::3][order])
    with vg.view_replay(replay):
        view = base[()]
        view.mul_(x)
        view *= 3.0
        expected = view.detach().numpy() / 2.0
        base.detach_()
        view[:, :1] = np.full((2, 1), 0.5)
        (found,) = vg.autograd.grad(view.sum(), x)
    assert found == expected[:, 1].sum()


@pytest.mark.parametrize("used", [False, True])
@pytest.mark.parametrize("part", [np.s_[()], np.s_[1:]])
def test_a_function_writes_to_a_base_that_was_detached_after_its_views_were_written(used, part):
    class Doubled(vg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2.0)

        @staticmethod
        def backward(ctx, grad):
            return grad * 2.0

    x = vg.Tensor([1.0, 2.0, 3.0], requires_grad=True)
    base = x.clone()
    first, second = base[:1], base[1:]
    base.detach_()
    Doubled.apply(second)
    if used:
        assert second.requires_grad
    second *= x[1:]
    Doubled.apply(base[part])
    (found,) = vg.autograd.grad(first.sum() + second[...].sum(), x)
    # The base had no history: its first element is a constant once it is written through the base.
    assert found.tolist() == [0.0 if part == () else 1.0, 16.0, 24.0]


@pytest.mark.parametrize("order", [np.s_[:], np.s_[::-1], np.s_[::-1, ::-1], np.s_[..., ::-1]])
def test_a_view_of_a_reversed_array_is_overwritten_after_its_base_was_detached(order):
    x = vg.Tensor(2.0, requires_grad=True)
    base = vg.from_numpy(np.arange(4.0).reshape(2, 2)[order])
    view = base[()]
    view[:, 1:] = x * 1
    base.detach_()
    view[0].fill_(0.5)
    view[1].fill_(0.5)
    assert not (view * 2).requires_grad
    assert (view == 0.5).all()


@pytest.mark.parametrize("part", ["real", "imag"])
@pytest.mark.parametrize("create_graph", [False, True])
def test_one_part_of_a_complex_view_is_written_after_its_base_was_detached(part, create_graph):
    values = np.exp(1j * np.arange(1.0, 4.0))
    weights = np.exp(0.5j * np.arange(3.0))

    def detached(x):
        z = x * 1
        view, window = z[()], getattr(z, part)
        z.detach_()
        window[1:].mul_(window[1:])
        return view

    def composed(x):
        parts = {"real": x.real.clone(), "imag": x.imag.clone()}
        parts[part][1:] *= parts[part][1:].clone()
        return parts["real"] + 1j * parts["imag"]

    found = []
    for f in (detached, composed):
        x = vg.Tensor(values, requires_grad=True)
        y = (f(x) * weights).sum()
        (slope,) = vg.autograd.grad(y.real * y.imag, x, create_graph=create_graph)
        if create_graph:
            (slope,) = vg.autograd.grad((slope * weights).sum().real, x)
        found.append(slope.numpy())
    np.testing.assert_allclose(*found)


# By name: ways to write constants to a vector.
WRITES = {
    "mul_": lambda v: v.mul_(0.5),
    "compiled": vg.compile(lambda v: v.mul_(0.5), specialize=False),
    "traced": vg.compile(lambda v: v.mul_(0.5), specialize=True),
    "out": lambda v: np.multiply(v, 0.5, out=v),
    "out and where": lambda v: np.multiply(v, 0.5, out=v, where=[True, True]),
    "copyto": lambda v: np.copyto(v, v * 0.5),
    "fill": lambda v: v.fill(3.0),
    "put": lambda v: np.put(v, [0, 1], [3.0, 4.0]),
    "putmask": lambda v: np.putmask(v, [True, True], [3.0, 4.0]),
    "at": lambda v: np.multiply.at(v, [0, 1], 0.5),
    "sort": lambda v: v.sort(),
    "slice": lambda v: v.__setitem__(slice(None), [1.0, 2.0]),
    "indices": lambda v: v.__setitem__([0, 1], [3.0, 4.0]),
    "mask": lambda v: v.__setitem__(np.array([True, True]), 2.0),
    "flat": lambda v: v.flat.__setitem__(slice(None), [1.0, 2.0]),
    "reversed": lambda v: v.__setitem__(slice(None), v[::-1]),
    "cumsum": lambda v: np.cumsum(v, out=v),
    "einsum": lambda v: np.einsum("i->i", v + 0, out=v),
    "parts": lambda v: [part.mul_(0.5) for part in np.split(v, 2)],
    "real": lambda v: v.real.mul_(0.5),
    "copy_": lambda v: v.copy_(vg.Tensor([7.0, 8.0])),
    "copy_ of a history": lambda v: v.copy_(vg.Tensor([7.0, 8.0], requires_grad=True)),
}


@pytest.mark.parametrize("name", WRITES)
def test_views_taken_before_a_detach_have_no_gradient_for_written_constants(name):
    for _ in range(3):  # compiled functions are traced first
        x = vg.Tensor([1.0, 2.0, 3.0], requires_grad=True)
        base = x.clone()
        whole, end = base[...], base[1:]
        base.detach_()
        WRITES[name](base[:2])
        loss = (whole * np.array([1.0, 2.0, 3.0])).sum() + (end * np.array([5.0, 7.0])).sum()
        assert vg.autograd.grad(loss, [x])[0].numpy().tolist() == [0.0, 0.0, 10.0]
