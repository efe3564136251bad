"""Programs that were written to break the library, and once did."""

import gc
import warnings
import weakref

import numpy as np
import pytest

import viewgrad as vg
from viewgrad.autograd.modes import forward_ad
from viewgrad.errors import (
    DifferentiabilityError,
    InterruptedWriteError,
    LeafInPlaceError,
    LostHistoryWarning,
    StrictMutationError,
)

squared_length = vg.autograd.define_op(
    "squared_length(self)",
    forward=lambda z: (z * z.conj()).real,
    derivatives={"self": "grad * 2 * self"},
    forward_derivative="2 * (conj(self_p) * self_t).real",
    inplace=True,
)


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("as_view", [False, True])
@pytest.mark.parametrize("operator", [vg.operators.OPERATORS["abs"], squared_length])
def test_a_real_result_written_over_complex_numbers_takes_the_real_part_of_the_gradient(operator, as_view, recorded):
    z = vg.Tensor([0.3 + 0.4j, -1 + 2j], requires_grad=True)
    t = z.clone()
    operator.inplace(t[...] if as_view else t)
    (grad,) = vg.autograd.grad((t * t * (1 + 2j)).real.sum(), z, create_graph=recorded)
    (expected,) = vg.autograd.grad((operator(z) ** 2).sum(), z)
    np.testing.assert_allclose(grad.detach(), expected, rtol=1e-14)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
@pytest.mark.parametrize("step", [4, 8, -8])
def test_neg_in_place_of_a_strided_view(dtype, step):
    # NumPy 2.4's negative(a, a) reads from wrong places at these strides, with AVX512 at least.
    x = vg.Tensor(np.arange(40).astype(dtype))
    expected = x.tolist()
    expected[::step] = [-value for value in expected[::step]]
    x[::step].neg_()
    assert x.tolist() == expected


def test_assignment_by_a_mask_of_a_tensor_to_itself_reads_before_it_writes():
    # NumPy does not make sure of it where the only index is an array of bools.
    t = vg.Tensor([0.0, 1.0, 2.0, 3.0])
    t[np.array([True] * 4)] = t[::-1]
    assert t.tolist() == [3.0, 2.0, 1.0, 0.0]


@pytest.mark.parametrize("index", [slice(0, 3), [2, 1, 0], [1, 1, 0]])
def test_what_is_assigned_may_have_more_dimensions_of_length_1_in_front(index):
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
def test_assigning_a_view_without_history_to_its_own_place_cuts_the_history(index):
    x = vg.Tensor([[1.0, 2.0]], requires_grad=True)
    t = x.clone()
    row = t[0]
    with vg.no_grad():
        window = row[index]
    row[index] = window
    assert vg.autograd.grad(t.sum(), x)[0].tolist() == [[0.0, 1.0]]


def test_assigning_a_custom_functions_view_to_its_own_place_keeps_the_functions_backward():
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


def test_a_refused_write_keeps_no_graph_alive():
    gc.collect()
    gc.disable()
    try:
        x = vg.Tensor([1.0, 2.0], requires_grad=True)
        t = x * 1.0
        y = t * t
        with vg.autograd.graph.forbid_mutation_on_saved_tensors(), pytest.raises(StrictMutationError):
            t.mul_(2.0)
        node = weakref.ref(y.grad_fn)
        del x, t, y
        assert node() is None
    finally:
        gc.enable()


def test_a_number_made_of_a_tensor_warns_that_its_history_is_lost():
    x = vg.Tensor(2.0, requires_grad=True)
    array = np.zeros(3)
    with pytest.warns(LostHistoryWarning, match="item()"):
        array[0] = x * 2
    assert array[0] == 4.0
    with pytest.warns(LostHistoryWarning):
        complex(x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert x.item() == float(x.detach()) == int(x) == 2
        with vg.no_grad():
            float(x)
        x.astype(complex).item()


def test_bytes_in_another_order_are_brought_into_this_machines():
    x = vg.Tensor(np.ones(2, np.dtype(float).newbyteorder()), requires_grad=True)
    assert x.dtype.isnative
    (x * x).sum().backward()
    assert x.grad.dtype is x.dtype is np.dtype(float)
    with pytest.raises(TypeError, match=r"use Tensor\(array\)"):
        vg.from_numpy(np.ones(2, np.dtype(float).newbyteorder()))


def test_what_is_no_tensor_is_refused_by_name():
    x = vg.Tensor([1.0, 2.0], requires_grad=True)
    for operate in [lambda: x + None, lambda: vg.lerp(x, x, None), lambda: x.mul_(None)]:
        with pytest.raises(TypeError, match="NoneType"):
            operate()
    with pytest.raises(TypeError, match="inputs must be a Tensor or a sequence of them, not ndarray"):
        vg.autograd.grad(x.sum(), np.zeros(2))
    with pytest.raises(TypeError, match="not float"):
        vg.autograd.backward(1.0)
    with pytest.raises(TypeError, match="not ndarray"):
        x.sum().backward(inputs=[np.zeros(2)])


def test_the_gradient_of_a_power_of_bools_has_the_dtype_of_the_base():
    x = vg.Tensor(np.float32([2.0, 3.0]), requires_grad=True)
    (x ** vg.Tensor([True, False])).sum().backward()
    assert x.grad.dtype == np.float32
    assert x.grad.tolist() == [1.0, 0.0]


@pytest.mark.parametrize("number", [vg.Tensor, np.array])
def test_bounds_and_options_may_be_written_to_later(number):
    x = vg.Tensor(np.arange(9.0).reshape(3, 3), requires_grad=True)
    start, stop, one = number(0), number(2), number(1)
    written = x.clone()
    written[start:stop] *= 10.0
    written[:, one:stop] = 0.0
    results = [
        written,
        x[start:stop],
        x[start:stop, one],
        x.unfold(0, stop, one),
        x.diagonal(one),
        x.as_strided((stop, stop), (one, one), one),
        np.roll(x, one, axis=one),
        np.sum(x, axis=one),
        np.concatenate([x, x], axis=one),
        np.repeat(x, stop, axis=one),
        np.tile(x, stop),
        np.triu(x, one),
        np.pad(x, ((one, one), (one, stop))),
        np.linalg.matrix_power(x, stop),
        np.quantile(x, 0.5, axis=one),
        np.split(x, number(3))[2],
    ]

    def gradients():
        terms = [(result * np.cos(np.arange(result.size).reshape(result.shape))).sum() for result in results]
        return [vg.autograd.grad(term, x, retain_graph=True)[0].tolist() for term in terms]

    before = gradients()
    for bound in start, stop, one:
        bound += 1
    assert gradients() == before


def test_a_tensor_that_requires_grad_is_no_option():
    x = vg.Tensor([1.0, 2.0, 4.0], requires_grad=True)
    q = vg.Tensor(0.3, requires_grad=True)
    with pytest.raises(DifferentiabilityError, match=r"argument 'q' of operator 'quantile'.*detach\(\)"):
        np.quantile(x.detach(), q)
    assert np.quantile(x, q.detach()).item() == pytest.approx(1.6)


@pytest.mark.parametrize(
    ("there", "back"),
    [(lambda v: v.T, lambda v: v.T), (lambda v: v.reshape(2, 6), lambda v: v.reshape(3, 4)),
     (lambda v: v.transpose(1, 0), lambda v: v[...].T), (lambda v: v[::-1], lambda v: v[::-1])],
)
def test_views_taken_back_and_forth_are_not_views_of_ever_more_steps(there, back):
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


@pytest.mark.parametrize("as_view", [False, True])
@pytest.mark.parametrize(
    "write",
    [lambda t: t.log_(), lambda t: t.sigmoid_().sub_(1.0).reciprocal_(), lambda t: t.copy_(vg.Tensor(1e300)),
     lambda t: t.__setitem__(0, 1e300), lambda t: t.__setitem__([0], 1e300)],
)
def test_what_an_interrupted_write_has_left_is_not_differentiated(write, as_view):
    x = vg.Tensor(np.float32([0.0, 40.0]), requires_grad=True)
    t = x * 1.0
    y = t * t
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        write(t[...] if as_view else t)
    with pytest.raises(InterruptedWriteError, match="raised an error when it had begun to write"):
        t.sum().backward()
    assert vg.autograd.grad(y.sum(), x, retain_graph=True)[0].tolist() == [0.0, 80.0]
    t[...] = 1.0
    assert vg.autograd.grad(t.sum() + y.sum(), x)[0].tolist() == [0.0, 80.0]


@pytest.mark.parametrize("retain", [False, True])
@pytest.mark.parametrize("size", [2, 3000])
def test_a_hook_on_a_product_of_a_value_with_itself_sees_both_gradients(retain, size):
    x = vg.full((size,), 3.0, requires_grad=True)
    y = x * x
    seen = []

    def hook(inputs, outputs):
        seen.append([None if g is None else g[0].item() for g in inputs])
        return inputs[0] * 0.0, inputs[1] * 5.0

    y.grad_fn.register_hook(hook)
    (grad,) = vg.autograd.grad(y.sum(), x, retain_graph=retain)
    assert seen == [[3.0, 3.0]]
    assert np.all(grad.numpy() == 15.0)


@pytest.mark.parametrize(
    "write",
    [
        lambda v: v.__setitem__(0, 5.0),
        lambda v: v.__setitem__(..., vg.Tensor(2.0, requires_grad=True)),
        lambda v: v[0].mul_(2.0),
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


@pytest.mark.parametrize("as_view", [False, True])
def test_of_an_interrupted_write_to_a_part_only_the_part_is_not_differentiated(as_view):
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


@pytest.mark.parametrize(
    "view", [lambda x: x.as_strided((2, 2), (1, 1)), lambda x: x.unfold(0, 2, 1), lambda x: x[None].expand(2, 3)]
)
def test_tangents_are_told_to_windows_that_overlap_themselves(view):
    with forward_ad.dual_level():
        x = forward_ad.make_dual(vg.Tensor([1.0, 2.0, 3.0]), vg.Tensor([1.0, 1.0, 1.0]))
        apart = forward_ad.unpack_dual(view(x)).primal
        x.mul_(2.0)
        x[:2].mul_(3.0)
        x[1] = 7.0
        assert forward_ad.unpack_dual(x).tangent.tolist() == [6.0, 0.0, 2.0]
        places = np.array(view(vg.arange(3)))
        # What was written tells its tangent; what was not keeps that of the window, none.
        assert np.array_equal(forward_ad.unpack_dual(apart).tangent.numpy(), np.array([6.0, 0.0, 2.0])[places])


def test_a_window_with_a_tangent_of_its_own_keeps_it_where_nothing_is_written():
    with forward_ad.dual_level():
        base = vg.Tensor([1.0, 2.0, 3.0])
        window = forward_ad.make_dual(base.unfold(0, 2, 1), vg.Tensor([[1.0, 2.0], [3.0, 4.0]]))
        base[0] = 5.0
        assert forward_ad.unpack_dual(window).tangent.tolist() == [[0.0, 2.0], [3.0, 4.0]]
        base[1] = forward_ad.make_dual(vg.Tensor(1.0), vg.Tensor(9.0))
        assert forward_ad.unpack_dual(window).tangent.tolist() == [[0.0, 9.0], [9.0, 4.0]]


def test_a_forward_formula_may_call_what_a_gradient_formula_may():
    scaled = vg.autograd.define_op(
        "scaled_product(self, other, *, n=2)",
        forward=lambda a, b, n=2: a * b * float(n),
        derivatives={"self": "grad * other * float(n)", "other": "grad * self * float(n)"},
        forward_derivative="float(n) * (self_t * other_p + self_p * other_t)",
    )
    with forward_ad.dual_level():
        x = forward_ad.make_dual(vg.Tensor([1.0, 2.0]), vg.Tensor([1.0, 1.0]))
        assert forward_ad.unpack_dual(scaled(x, vg.Tensor([3.0, 4.0]))).tangent.tolist() == [6.0, 8.0]
        assert forward_ad.unpack_dual(scaled(x, x)).tangent.tolist() == [4.0, 8.0]


@pytest.mark.parametrize("name", ["kept0", "unconjugated"])
def test_names_that_generated_code_uses_for_itself_begin_with_an_underscore(name):
    gradient = f"grad * conj(result * 2.0) * 0.5 * {name} / {name}"
    op = vg.autograd.define_op(f"exp_of_{name}({name})", forward=np.exp, derivatives={name: gradient})
    x = vg.Tensor([1.0, 2.0], requires_grad=True)
    assert np.allclose(vg.autograd.grad(op(x).sum(), x)[0].numpy(), np.exp([1.0, 2.0]))
