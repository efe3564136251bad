"""Corner cases of views and in-place writes, against finite differences and closed forms."""

import copy
import gc
import pickle
import weakref

import numpy as np
import pytest
from leaves import leaf, numbers

import viewgrad as vg
from viewgrad.autograd import Function, grad, gradcheck, gradgradcheck
from viewgrad.errors import (
    AutogradError,
    DifferentiabilityError,
    FreedGraphError,
    InterruptedWriteError,
    LeafInPlaceError,
    UnusedInputError,
)


def check(function, *inputs):
    """Check first and second derivatives, with views rebuilt from their geometry and by replay."""
    for replay in (False, True):
        with vg.view_replay(replay):
            assert gradcheck(function, inputs)
            assert gradgradcheck(function, inputs)


# -- undefined gradients -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("create", [False, True])
def test_undefined_gradient_through_copy_slices(create):
    x, v = leaf(1.0, 2.0, 3.0), leaf(5.0)
    # The wrapped CopyBackwards has an undefined gradient for the old value: known to be zero.
    base = x * 1
    base[1:2] = v
    gx, gv = grad(base.sum(), [x, v], create_graph=create)
    assert (numbers(gx), numbers(gv)) == ([1.0, 0.0, 1.0], [1.0])
    # The written value needs no gradient.
    base = x * 1
    base[1:2] = 7.0
    assert numbers(grad(base.sum(), x, create_graph=create)[0]) == [1.0, 0.0, 1.0]
    # The overwritten value needs no gradient.
    base = vg.zeros(3)
    base[1:2] = v
    base[0] = 3.0
    assert numbers(grad((base * 2).sum(), v, create_graph=create)[0]) == [2.0]
    # Nothing arrives at all: the write is not run, nor are those before it.
    base = x * 1
    base[1:2] = v
    beside = x * 2
    assert grad(beside.sum(), [x, v], allow_unused=True, create_graph=create)[1] is None
    # The gradient of overwritten elements is undefined because a custom function declares it so.
    base = x * 1
    Constant.apply(base[:2], v)
    gx, gv = grad(base.sum(), [x, v], create_graph=create)
    assert (numbers(gx), numbers(gv)) == ([0.0, 0.0, 1.0], [2.0])


class Constant(Function):
    @staticmethod
    def forward(ctx, x, v):
        x.copy_(v)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, g):
        return None, g.sum(axis=0, keepdims=True)


@pytest.mark.parametrize("create", [False, True])
def test_undefined_gradient_through_a_node_of_several_outputs(create):
    symmetric = leaf([2.0, 1.0], [1.0, 3.0])
    eigenvalues, eigenvectors = vg.eigh(symmetric)
    (only_values,) = grad(eigenvalues.sum(), symmetric, create_graph=create, retain_graph=True)
    np.testing.assert_allclose(numbers(only_values), np.eye(2), atol=1e-12)
    (only_vectors,) = grad((eigenvectors * 0).sum(), symmetric, create_graph=create)
    np.testing.assert_allclose(numbers(only_vectors), np.zeros((2, 2)), atol=1e-12)


def test_write_to_one_of_several_outputs():
    def function(m):
        values, vectors = vg.eigh(m @ m.T)
        values[0] = 0.5 * values[1]
        head = vectors[:, 1] ** 2
        vectors[0] *= values
        return values.sum() + head.sum() * values[0] + (vectors**2).sum()

    assert gradcheck(function, [vg.Tensor([[2.0, 0.3], [0.1, 1.0]], requires_grad=True)])


# -- with respect to what ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("create", [False, True])
def test_grad_wrt_base_and_view_before_and_after_a_write(create):
    x = leaf(1.0, 2.0, 3.0)

    def program():
        base = x * 1
        view = base[1:]
        old_base, old_view = base[...], view[...]
        read = base * 10
        view *= 4
        return base, view, old_base, old_view, (base * vg.Tensor([1.0, 2.0, 3.0])).sum() + read.sum()

    base, view, _, _, out = program()
    assert numbers(grad(out, base, create_graph=create)[0]) == [1.0, 2.0, 3.0]
    base, view, _, _, out = program()
    # The view as it is now was not used: only the base was.
    with pytest.raises(UnusedInputError, match="not used"):
        grad(out, view, create_graph=create)
    base, view, _, _, out = program()
    assert grad(out, [view, base], allow_unused=True, create_graph=create)[0] is None
    base, view, _, _, out = program()
    assert numbers(grad(out + view.sum(), view, create_graph=create)[0]) == [1.0, 1.0]
    base, view, _, _, out = program()
    (gx,) = grad(out, x, create_graph=create)
    assert numbers(gx) == [11.0, 18.0, 22.0]


@pytest.mark.parametrize("create", [False, True])
def test_grad_wrt_a_value_before_it_was_overwritten(create):
    """The tensor itself represents the new value after the write."""
    x = leaf(1.0, 2.0)
    y = x * 3
    before = y.clone()
    z = before * 5
    y.mul_(z)
    g_before, g_after = grad(y.sum(), [before, y], create_graph=create)
    assert numbers(g_before) == [15.0, 30.0]
    assert numbers(g_after) == [1.0, 1.0]


@pytest.mark.parametrize("create", [False, True])
def test_exec_info_of_copy_slices_whose_view_history_is_not_needed(create):
    """From PyTorch's note on views and in-place updates: gradients between t and x only."""
    t, y = leaf(1.0, 2.0, 3.0), leaf(10.0)
    base = t * 1
    x = base[0:1]
    x *= y
    inner = base.grad_fn
    assert inner.name() == "CopySlices"
    assert numbers(grad(x.sum(), t, create_graph=create, retain_graph=True)[0]) == [10.0, 0.0, 0.0]
    assert numbers(grad(base.sum(), t, create_graph=create, retain_graph=True)[0]) == [10.0, 1.0, 1.0]
    assert numbers(grad(base.sum(), y, create_graph=create, retain_graph=True)[0]) == [1.0]
    assert numbers(grad(x.sum(), y, create_graph=create, retain_graph=True)[0]) == [1.0]
    assert numbers(grad(x.sum(), base, create_graph=create, retain_graph=True)[0]) == [1.0, 0.0, 0.0]
    g_t, g_y = grad(base.sum(), [t, y], create_graph=create)
    assert (numbers(g_t), numbers(g_y)) == ([10.0, 1.0, 1.0], [1.0])


@pytest.mark.parametrize("create", [False, True])
def test_inputs_restrict_a_pass(create):
    t, y = leaf(1.0, 2.0, 3.0), leaf(10.0)
    middle = t * 2
    base = middle * 1
    base[0:1] *= y
    base[2] = base[0] * base[1]
    out = base.sum()
    out.backward(inputs=[middle], retain_graph=True, create_graph=create)
    assert numbers(middle.grad) == [10.0 + 10.0 * 4.0, 1.0 + 20.0, 0.0]
    assert t.grad is None and y.grad is None
    out.backward(inputs=[y], retain_graph=True, create_graph=create)
    assert numbers(y.grad) == [2.0 + 2.0 * 4.0]
    assert t.grad is None
    out.backward(inputs=[t, middle], create_graph=create)
    assert numbers(t.grad) == [2 * v for v in (50.0, 21.0, 0.0)]
    assert numbers(middle.grad) == [100.0, 42.0, 0.0]


# -- sizes -------------------------------------------------------------------------------------------------------------


def test_writes_of_zero_size():
    def function(x):
        base = x * 2
        base[0:0] = vg.zeros(0)
        base[3:].mul_(x[3:])
        base[vg.Tensor(np.zeros(3, bool))] = 5.0
        base[vg.Tensor(np.zeros(0, int))] = x[0:0]
        empty = base.reshape(3, 1)[:, :0]
        empty += 1
        return (base * base).sum() + empty.sum()

    x = leaf(1.0, 2.0, 3.0)
    check(function, x)
    assert numbers(grad(function(x), x)[0]) == [8.0, 16.0, 24.0]
    z = vg.zeros((0, 3), requires_grad=True)
    y = z * 2
    y[:, 1] = 3.0
    y.exp_()
    assert grad(y.sum(), z)[0].shape == (0, 3)


def test_writes_without_dimensions():
    def function(x, s):
        number = s.clone()
        number[...] = x[0]
        number.mul_(s)
        number[()] += x[1]
        base = x * 1
        base[0] = number
        base[1, ...].mul_(number)
        cell = base.reshape(2, 1)[1, 0, ...]
        cell += cell
        return base.sum() * number + cell

    check(function, leaf(1.0, 2.0), vg.Tensor(3.0, requires_grad=True))


# -- aliases -----------------------------------------------------------------------------------------------------------


def test_writes_through_a_nested_view_its_base_and_an_old_view():
    def function(x):
        base = x * 1
        outer = base[1:]
        inner = outer.reshape(-1)[::2]
        inner *= 2
        base *= x
        outer[0] = base[0] * inner[1]
        inner += outer[0]
        base[::-1].mul_(base)
        return (base * vg.arange(6.0).reshape(3, 2)).sum() + (inner * outer.reshape(-1)[::2]).sum()

    check(function, vg.Tensor(np.linspace(0.5, 1.5, 6).reshape(3, 2), requires_grad=True))


def test_a_view_outlives_the_variable_of_its_base():
    x = leaf(1.0, 2.0, 3.0)

    def view_of_a_local():
        base = x * 2
        view = base[1:]
        base.mul_(x)
        return view

    view = view_of_a_local()
    gc.collect()
    assert view._base is not None
    view *= 10
    assert numbers(view) == [80.0, 180.0]
    assert numbers(grad(view.sum(), x)[0]) == [0.0, 80.0, 120.0]
    base = view._base
    reference = weakref.ref(base)
    del base, view
    assert reference() is None


def test_a_tensor_written_into_itself():
    def shift(x):
        y = x * 1
        y[1:] = y[:-1]
        return (y * y * vg.arange(1.0, 5.0)).sum()

    def shift_back(x):
        y = x * 1
        y[:-1] = y[1:]
        y[1:] *= y[:-1]
        return (y * vg.arange(1.0, 5.0)).sum()

    def mirror(x):
        y = x * 1
        y[::-1] += y
        y[::2] = y[1::2]
        y.mul_(y)
        return (y * vg.arange(1.0, 5.0)).sum()

    def transpose(x):
        y = (x * 1).reshape(2, 2)
        y.copy_(y.T)
        y.T.mul_(y)
        y[:] = y
        y[0] = y[:, 0]
        return (y * vg.arange(4.0).reshape(2, 2)).sum()

    x = leaf(0.5, 1.5, -1.0, 2.0)
    for function in (shift, shift_back, mirror, transpose):
        check(function, x)
    y = x * 1
    y[1:] = y[:-1]
    assert numbers(y) == [0.5, 0.5, 1.5, -1.0]
    y = x * 1
    y[::-1] += y
    assert numbers(y) == [2.5, 0.5, 0.5, 2.5]
    assert numbers(grad((y * vg.Tensor([1.0, 10.0, 100.0, 1000.0])).sum(), x)[0]) == [1001.0, 110.0, 110.0, 1001.0]


def test_a_tensor_used_both_before_and_after_it_was_overwritten():
    def function(x):
        y = x * 2
        first = y * y
        y[1] = 3.0
        second = y * first
        y.mul_(second)
        third = y * x
        y[:] = x
        return (first + second * third + y * third).sum()

    check(function, leaf(0.5, 1.5, -1.0))


def test_augmented_assignment_to_items_and_attributes():
    class Holder:
        pass

    def function(x):
        holder = Holder()
        holder.tensor = x * 1
        same = holder.tensor
        holder.tensor += x
        assert holder.tensor is same
        holder.tensor[1] += x[0]
        holder.tensor[0:2] *= x[1:]
        listed = [x * 1, {"key": x * 2}]
        listed[0] += x
        listed[1]["key"] -= listed[0] * x
        listed[1]["key"][vg.Tensor([2, 0])] **= 2
        return (holder.tensor * listed[0] + listed[1]["key"]).sum()

    x = leaf(0.5, 1.5, -1.0)
    check(function, x)
    y = x * 1
    version = y._version
    y[0] += 1.0
    assert y._version == version + 1  # the assignment that ends an augmented assignment writes nothing


# -- dtypes ------------------------------------------------------------------------------------------------------------


def test_integer_writes():
    x = leaf(1.0, 2.0, 3.0)
    index = vg.arange(3)
    index[0] = 2
    index[1:] += 1
    index[vg.Tensor([False, True, False])] = 0
    y = x * index
    index[:] = 100  # the saved index keeps its value
    assert numbers(grad(y.sum(), x)[0]) == [2.0, 0.0, 3.0]
    assert index.grad_fn is None and not index.requires_grad
    counts = vg.zeros(3, dtype=int)
    counts[:] = x  # cast: no gradient comes back from an integer
    assert counts.tolist() == [1, 2, 3] and not counts.requires_grad
    y = x * 1
    y[0] = 7
    y[1:] = vg.Tensor([8, 9])
    assert numbers(grad((y * y).sum(), x)[0]) == [0.0, 0.0, 0.0]
    with pytest.raises(DifferentiabilityError):
        vg.arange(3).requires_grad_()


def test_complex_written_through_its_parts():
    def function(z, x):
        w = z * 1
        w.real[0] = x[0]
        w.real.mul_(x)
        w.imag[1:] += x[1:] * w.real[1:]
        vg.view_as_real(w)[0, 1] = x[1]
        return (w * vg.conj(w)).real.sum() + (w * w).imag.sum()

    check(function, leaf(1 + 2j, 3 - 1j), leaf(0.5, 1.5))
    z, x = leaf(1 + 2j, 3 - 1j), leaf(0.5, 1.5)
    w = z * 1
    w.real[0] = x[0]
    gz, gx = grad((w.real * vg.Tensor([2.0, 3.0]) + w.imag * vg.Tensor([5.0, 7.0])).sum(), [z, x])
    assert numbers(gz) == [5j, 3 + 7j]
    assert numbers(gx) == [2.0, 0.0]


def test_real_written_through_its_complex_view():
    def function(x, z):
        pairs = x * 1
        w = vg.view_as_complex(pairs)
        w *= z
        w[0] = w[1] * z
        return (pairs * pairs * vg.arange(1.0, 5.0).reshape(2, 2)).sum()

    check(function, leaf([1.0, 2.0], [0.5, -1.0]), vg.Tensor(0.3 + 0.4j, requires_grad=True))


def test_writes_that_cast():
    x = leaf(1.5, 2.5)
    single = vg.zeros(2, dtype=np.float32)
    single[:] = x
    (g,) = grad((single * single).sum(), x)
    assert g.dtype == np.float64 and numbers(g) == [3.0, 5.0]
    double = x * 1
    f = leaf(1.0, 2.0, dtype=np.float32)
    double[0:1] = f[1:]
    double.mul_(f)
    gx, gf = grad(double.sum(), [x, f])
    assert gx.dtype == np.float64 and gf.dtype == np.float32
    assert (numbers(gx), numbers(gf)) == ([0.0, 2.0], [2.0, 3.5])
    z = vg.zeros(2, dtype=complex)
    z[:] = x
    z.imag[0] = x[1]
    (g,) = grad((z * vg.conj(z)).real.sum(), x)
    assert g.dtype == np.float64 and numbers(g) == [3.0, 10.0]
    half = vg.ones(2, dtype=np.float16)
    half.copy_(x)
    assert grad(half.sum(), x)[0].dtype == np.float64
    real = x * 1
    with pytest.warns(np.exceptions.ComplexWarning):  # NumPy's, as for arrays
        real[:] = leaf(3 + 4j, 5 + 6j)
    assert numbers(real) == [3.0, 5.0] and real.dtype == np.float64
    with pytest.raises(TypeError):
        real.mul_(1j)


def test_writes_that_broadcast():
    def function(row, column, number):
        base = row * column * 2
        base[:] = row
        base[:, 1:] *= column
        base[0] = number
        base.T[2] = column[:, 0]
        base[1:] += row * number
        base[...] -= number
        base[:, 0] = 3.0
        return (base * base * vg.arange(6.0).reshape(2, 3)).sum()

    check(function, leaf(0.5, 1.0, 1.5), leaf([2.0], [3.0]), vg.Tensor(0.7, requires_grad=True))


# -- masks and integer arrays ------------------------------------------------------------------------------------------


def test_assignment_by_mask():
    mask = np.array([[True, False, True], [False, True, False]])

    def function(x, v):
        base = x * 1
        base[vg.Tensor(mask)] = v
        base[mask] *= v * 2
        base[vg.Tensor(mask[0:1, 0]), 1:] = v[1]
        base.T[mask.T] += base[0, 0]
        base[0][mask[0]] = base[1, 1]
        return (base * base * vg.arange(6.0).reshape(2, 3)).sum()

    with pytest.raises(IndexError):
        function(vg.ones((2, 3)), vg.ones(3))  # the mask of the third line has one row

    def shorter(x, v):
        base = x * 1
        base[vg.Tensor(mask)] = v
        base[mask] *= v * 2
        base.T[mask.T] += base[0, 0]
        base[0][mask[0]] = base[1, 1]
        return (base * base * vg.arange(6.0).reshape(2, 3)).sum()

    check(shorter, vg.Tensor(np.linspace(0.5, 1.5, 6).reshape(2, 3), requires_grad=True), leaf(1.0, -2.0, 3.0))


def test_assignment_by_integer_arrays_with_repeats():
    """The last value assigned to a position is stored, and only it has a gradient."""
    places = vg.Tensor([2, 0, 2, -1])

    def function(x, v):
        base = x * 1
        base[places] = v
        base[vg.Tensor([1, 1])] *= v[:2]
        base[1:][vg.Tensor([0, 0, 1])] = v[1:]
        base.reshape(3, 1)[places, 0] += v
        return (base * base * vg.arange(1.0, 4.0)).sum()

    x, v = leaf(0.5, 1.0, 1.5), leaf(1.0, -2.0, 3.0, 4.0)
    check(function, x, v)
    base = x * 1
    base[places] = v
    assert numbers(base) == [-2.0, 1.0, 4.0]
    gx, gv = grad((base * vg.Tensor([1.0, 10.0, 100.0])).sum(), [x, v])
    assert (numbers(gx), numbers(gv)) == ([0.0, 10.0, 0.0], [0.0, 1.0, 0.0, 100.0])


# -- detached memory, gradients ----------------------------------------------------------------------------------------


def test_writes_through_detach():
    x = leaf(1.0, 2.0)
    y = x * 3
    z = y * y
    detached = y.detach()
    assert y._version == detached._version
    detached.mul_(10)
    assert y._version == detached._version == 1
    assert numbers(y) == [30.0, 60.0]
    assert y.grad_fn.name() == "MulBackward"  # no history, because of detach()
    z.sum().backward()  # the saved value is unchanged
    assert numbers(x.grad) == [18.0, 36.0]
    y[0] = 1.0
    assert detached._version == 2 and numbers(detached) == [1.0, 60.0]
    x.detach()[0] = 5.0  # a leaf can be written to in this way, too
    assert numbers(x) == [5.0, 2.0] and x._version == 1


def test_grad_accumulated_into_after_having_been_read():
    x = leaf(1.0, 2.0)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    first = x.grad
    part = x.grad[0:1]
    product = x.grad * x  # saves the gradient
    y.backward(retain_graph=True)
    assert numbers(x.grad) == [4.0, 8.0] and numbers(first) == [2.0, 4.0] and numbers(part) == [2.0]
    assert numbers(grad(product.sum(), x)[0]) == [2.0, 4.0]
    x.grad.zero_()
    y.backward(retain_graph=True)
    assert numbers(x.grad) == [2.0, 4.0]
    x.grad = None
    y.backward()
    assert numbers(x.grad) == [2.0, 4.0]
    assert x.grad is x.grad and not x.grad.requires_grad


def test_grad_accumulated_with_its_history():
    x = leaf(2.0)
    (x * x * x).sum().backward(create_graph=True)
    (x * x).sum().backward(create_graph=True)
    assert numbers(x.grad) == [16.0]
    assert numbers(grad(x.grad.sum(), x)[0]) == [14.0]


# -- copies ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, pickle.dumps])
def test_copying_and_pickling(way):
    x = leaf(1.0, 2.0)
    x.grad = vg.Tensor([3.0, 4.0])
    again = way(x)
    if way is pickle.dumps:
        again = pickle.loads(again)
    assert again is not x and again.is_leaf and again.requires_grad
    assert numbers(again) == [1.0, 2.0] and numbers(again.grad) == [3.0, 4.0]
    with vg.no_grad():
        again.mul_(2)
    assert numbers(x) == [1.0, 2.0]
    for tensor in (x * 2, (x * 1)[0], x[0:1]):
        if way is pickle.dumps:
            with pytest.raises(AutogradError, match="detach"):
                way(tensor)
        else:
            again = way(tensor)
            assert numbers(again) == numbers(tensor) and again is not tensor
            of_copy, of_it = (grad(each.sum(), x, retain_graph=True)[0] for each in (again, tensor))
            assert numbers(of_copy) == numbers(of_it)
        way(tensor.detach())


# -- releases ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("create", [False, True])
def test_released_and_retained_writes(create):
    x = leaf(1.0, 2.0)
    y = x * 1
    y[0:1].mul_(y[1:])
    out = y.sum()
    expected = [2.0, 2.0]
    for _ in range(2):
        assert numbers(grad(out, x, retain_graph=True, create_graph=create)[0]) == expected
    grad(out, x, retain_graph=False, create_graph=create)
    with pytest.raises(FreedGraphError, match="retain_graph"):
        grad(out, x)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
@pytest.mark.parametrize("step", [4, 8, -8])
def test_neg_in_place_of_a_strided_view(dtype, step):
    # With AVX512, negative(a, a) of NumPy 2.4 reads from wrong addresses for these strides.
    x = vg.Tensor(np.arange(40).astype(dtype))
    expected = x.tolist()
    expected[::step] = [-value for value in expected[::step]]
    x[::step].neg_()
    assert x.tolist() == expected


@pytest.mark.parametrize("as_view", [False, True])
@pytest.mark.parametrize(
    "write",
    [
        lambda t: t.log_(),
        lambda t: t.sigmoid_().sub_(1.0).reciprocal_(),
        lambda t: t.copy_(vg.Tensor(1e300)),
        lambda t: t.__setitem__(0, 1e300),
        lambda t: t.__setitem__([0], 1e300),
    ],
)
def test_the_result_of_an_interrupted_write_is_not_differentiated(write, as_view):
    x = vg.Tensor(np.float32([0.0, 40.0]), requires_grad=True)
    t = x * 1.0
    y = t * t
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        write(t[...] if as_view else t)
    with pytest.raises(InterruptedWriteError, match="failed during an in-place write"):
        t.sum().backward()
    assert vg.autograd.grad(y.sum(), x, retain_graph=True)[0].tolist() == [0.0, 80.0]
    t[...] = 1.0
    assert vg.autograd.grad(t.sum() + y.sum(), x)[0].tolist() == [0.0, 80.0]


@pytest.mark.parametrize(
    "write",
    [
        lambda v: v.__setitem__(0, 5.0),
        lambda v: v.__setitem__(..., vg.Tensor(2.0, requires_grad=True)),
        lambda v: v[0, ...].mul_(2.0),
        lambda v: v[:1].__setitem__(0, 2.0),
        lambda v: v.reshape(2, 1).fill_(2.0),
        lambda v: v.add_(1.0),
    ],
)
def test_a_view_that_is_a_leaf_is_not_written_to(write):
    v = vg.Tensor([1.0, 2.0, 3.0])[1:].requires_grad_()
    with pytest.raises(LeafInPlaceError, match="a view of a leaf"):
        write(v)
    assert v.is_leaf and v.tolist() == [2.0, 3.0]
    with vg.no_grad():
        v[0] = 7.0
    assert v.tolist() == [7.0, 3.0]


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.__setitem__(0, 1.0),
        lambda x: x.__setitem__(slice(0, 2), 1.0),
        lambda x: x.__setitem__(0, vg.Tensor(2.0)),
        lambda x: x.__setitem__([0, 1], 1.0),
        lambda x: x[1:].__setitem__(0, 1.0),
        lambda x: x.mul_(2.0),
        lambda x: x[1:].mul_(2.0),
        lambda x: x.copy_(vg.ones(3)),
        lambda x: x.fill_(1.0),
        lambda x: x.put([0], [1.0]),
        lambda x: np.multiply(vg.ones(3), 2.0, out=x),
    ],
)
def test_a_leaf_is_not_written_to_in_grad_mode(write):
    x = vg.Tensor([1.0, 2.0, 3.0], requires_grad=True)
    with pytest.raises(LeafInPlaceError, match="leaf"):
        write(x)
    assert x.is_leaf and x.tolist() == [1.0, 2.0, 3.0] and x._version == 0
    with vg.no_grad():
        write(x)
    assert x.is_leaf and x._version == 1


@pytest.mark.parametrize("as_view", [False, True])
def test_interrupted_write_to_a_part_affects_only_the_part(as_view):
    x = vg.Tensor(np.float32([1.0, 2.0, 3.0, 4.0]), requires_grad=True)
    b = x * 1.0
    v = b[1:]
    with np.errstate(over="raise"), pytest.raises(FloatingPointError):
        if as_view:
            v[:2] = 1e300
        else:
            b[1:3] = 1e300
    assert vg.autograd.grad(b[3], x, retain_graph=True)[0].tolist() == [0.0, 0.0, 0.0, 1.0]
    with pytest.raises(InterruptedWriteError):
        vg.autograd.grad(b.sum(), x, retain_graph=True)
    v[:2] = x[0]
    assert vg.autograd.grad(b.sum(), x)[0].tolist() == [3.0, 0.0, 0.0, 1.0]


def test_scalar_gradient_of_a_write_to_a_reshaped_scalar():
    x = vg.Tensor(0.5, requires_grad=True)
    base = vg.zeros(())
    base.reshape(1)[...] = x
    (grad,) = vg.autograd.grad(base * 2, x)
    assert grad.item() == 2.0


def test_an_empty_view_of_a_reshaped_scalar_passes_a_gradient_of_zero():
    x = vg.Tensor(0.5, requires_grad=True)
    base = x * 1.0
    empty = base.reshape(1)[1:]
    ((empty * empty).sum() + base).backward()
    assert x.grad.item() == 1.0


def test_parts_of_complex_memory_from_outside_can_be_written_to():
    outside = np.array([1.0 + 2.0j, 3.0 - 1.0j])
    vg.from_numpy(outside).view_as_real()[:, 1] = 5.0
    vg.from_numpy(outside).real[0] = 4.0
    np.testing.assert_array_equal(outside, [4.0 + 5.0j, 3.0 + 5.0j])


# Views that exist for one memory layout only: complex as real, real as complex, and parts of reshaped arrays.
BOUND_TO_A_LAYOUT = [
    (lambda x: vg.sin(x.reshape(3, 4).T), lambda y: y.T.reshape(6, 2).view_as_complex()),
    (lambda x: vg.sin(x.reshape(2, 3, 2).swapaxes(1, 2)), lambda y: y.swapaxes(1, 2).view_as_complex()),
    (lambda x: vg.sin(x.reshape(2, 3, 2).swapaxes(1, 2)), lambda y: y.swapaxes(1, 2).reshape(12)[2:8]),
    (lambda x: vg.exp((x[:6] + 1j * x[6:]).reshape(2, 3).T), lambda y: y.T.reshape(6).view_as_real()),
    (
        lambda x: vg.exp((x[:6] + 1j * x[6:]).reshape(1, 3, 2).swapaxes(1, 2)),
        lambda y: y.swapaxes(1, 2).reshape(6).imag,
    ),
]


@pytest.mark.parametrize("written", [False, True])
@pytest.mark.parametrize(("make", "view"), BOUND_TO_A_LAYOUT)
def test_gradients_are_laid_out_as_views_need_them(make, view, written):
    weights = np.cos(np.arange(12.0))

    def function(x):
        y = make(x)
        v = view(y)
        if written:
            v *= v
        parts = [y.real, y.imag, v.real, v.imag] if y.dtype.kind == "c" or v.dtype.kind == "c" else [y, v]
        return sum((np.ravel(part) ** 2 * weights[: part.size]).sum() for part in parts)

    x = vg.Tensor(np.sin(np.arange(12.0) + 1), requires_grad=True)
    check(function, x)
    again, direction = (vg.Tensor(np.cos(np.arange(12.0) * k)) for k in (2.0, 3.0))
    first = vg.func.grad(function)
    second = vg.func.grad(lambda x: (first(x) * again).sum())
    third = vg.func.grad(lambda x: (second(x) * direction).sum())(x.detach())
    above, below = (second(x.detach() + step * direction) for step in (1e-4, -1e-4))
    difference = (above - below) / 2e-4
    np.testing.assert_allclose((third * again).sum(), (difference * again).sum(), rtol=1e-5)


def test_third_gradients_of_strided_windows_of_gradients_in_any_layout():
    def function(x, window):
        base = np.exp(x)
        part = base[1]
        first = window(base)
        base.copy_(part)
        first.mul_(first)
        return (part**3 * np.sin(np.arange(4.0) + 1).reshape(2, 2)).sum()

    found = []
    for window in (lambda base: base.as_strided((), (), 0), lambda base: base[0, 0, 0, ...]):
        x = vg.Tensor(np.sin(np.arange(8.0) + 1).reshape(2, 2, 2), requires_grad=True)
        total = function(x, window)
        for order in range(3):
            (gradient,) = grad(total, [x], create_graph=True)
            total = (gradient * np.cos(np.arange(8.0) + order).reshape(2, 2, 2)).sum()
        found.append(gradient.detach().numpy())
    assert np.abs(found[1]).max() > 1
    np.testing.assert_allclose(*found)
