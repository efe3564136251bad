"""Custom functions: results for every way of writing one, and errors."""

import gc
import inspect
import weakref

import numpy as np
import pytest
from custom_product import Product
from leaves import leaf

import viewgrad as vg
from viewgrad.autograd import Function, grad, gradcheck, gradgradcheck, once_differentiable
from viewgrad.autograd.modes import forward_ad
from viewgrad.errors import (
    FreedGraphError,
    FunctionError,
    InferenceError,
    LeafInPlaceError,
    OverlappingWriteError,
    ViewInPlaceError,
)


def assert_same(actual, expected):
    np.testing.assert_allclose(np.asarray(actual.detach() if isinstance(actual, vg.Tensor) else actual), expected)


class ProductSeparate(Function):
    """A function with setup_context."""

    @staticmethod
    def forward(x, y, scale=2.0):
        return x * y * scale

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, y, ctx.scale = inputs
        ctx.save_for_backward(x, y)

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y * ctx.scale, g * x * ctx.scale, None


class Exp(Function):
    """A function that saves its output."""

    @staticmethod
    def forward(ctx, x):
        y = vg.exp(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y


class ScaleInPlace(Function):
    """A function that writes to its first input, whose old value it needs."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        x.mul_(y)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y, (g * x).sum()


class SumAndProduct(Function):
    """A function with two outputs."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x + y, x * y

    @staticmethod
    def backward(ctx, g_sum, g_product):
        x, y = ctx.saved_tensors
        return g_sum + g_product * y, g_sum + g_product * x


# -- values and derivatives --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", [Product, ProductSeparate, SumAndProduct])
def test_two_inputs(function):
    rng = np.random.default_rng(0)
    inputs = [vg.Tensor(rng.normal(size=(2, 3)), requires_grad=True) for _ in range(2)]
    assert gradcheck(function.apply, inputs)
    assert gradgradcheck(function.apply, inputs)


def test_saved_output():
    x = leaf(0.5, -1.0)
    assert gradcheck(Exp.apply, [x])
    assert gradgradcheck(Exp.apply, [x])
    (g,) = grad(Exp.apply(x).sum(), x, create_graph=True)
    (gg,) = grad(g.sum(), x, create_graph=True)
    (ggg,) = grad(gg.sum(), x)
    assert_same(ggg, np.exp([0.5, -1.0]))


def test_names_and_edges():
    x, y = leaf(1.0), leaf(2.0)
    out = Product.apply(x, y.detach())
    assert out.grad_fn.name() == "ProductBackward"
    assert repr(out.grad_fn) == "<ProductBackward>"
    assert out.grad_fn.next_functions == ((x * 1).grad_fn.next_functions[0], (None, 0))
    assert [t.requires_grad for t in out.grad_fn.saved_tensors] == [True, False]
    a, b = SumAndProduct.apply(x, y)
    assert a.grad_fn is b.grad_fn and (a.output_nr, b.output_nr) == (0, 1)


def test_keywords_and_defaults():
    x, y = leaf(3.0), leaf(5.0)
    assert_same(grad(ProductSeparate.apply(x, y), x)[0], [10.0])
    assert_same(grad(ProductSeparate.apply(x, y, scale=7.0), y)[0], [21.0])
    assert_same(grad(Product.apply(y=y, x=x), x)[0], [5.0])


def test_a_signature_is_read_once_and_again_if_forward_changes(monkeypatch):
    class Scale(Function):
        @staticmethod
        def forward(ctx, x, factor=2.0):
            ctx.factor = factor
            return x * factor

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.factor, None

    read = []
    signature = inspect.signature
    monkeypatch.setattr(inspect, "signature", lambda of, **options: read.append(of) or signature(of, **options))
    x = vg.Tensor([1.0], requires_grad=True)
    for factor in (3.0, 4.0):
        assert Scale.apply(x=x, factor=factor).tolist() == [factor]
    assert len(read) == 1
    Scale.forward.__defaults__ = (5.0,)
    assert Scale.apply(x=x).tolist() == [5.0]
    assert len(read) == 2


def test_attributes_of_ctx_are_found_on_the_node():
    out = ProductSeparate.apply(leaf(1.0), leaf(2.0), 4.0)
    assert out.grad_fn.scale == 4.0
    with pytest.raises(AttributeError):
        _ = out.grad_fn.nothing_of_the_kind


def test_needs_input_grad():
    seen = []

    class Watch(Function):
        @staticmethod
        def forward(ctx, x, n, y):
            seen.append(ctx.needs_input_grad)
            return x * y

        @staticmethod
        def backward(ctx, g):
            seen.append(ctx.needs_input_grad)
            return g, None, g

    Watch.apply(leaf(1.0), 3, vg.ones(1)).sum().backward()
    assert seen == [(True, False, False)] * 2


def test_nothing_is_recorded_in_forward_or_without_need():
    modes = []

    class Watch(Function):
        @staticmethod
        def forward(ctx, x):
            modes.append(vg.is_grad_enabled())
            y = x * 2
            assert not y.requires_grad
            return y

        @staticmethod
        def backward(ctx, g):
            modes.append(vg.is_grad_enabled())
            return g * 2

    x = leaf(1.0)
    assert Watch.apply(x.detach()).grad_fn is None
    with vg.no_grad():
        assert Watch.apply(x).grad_fn is None
    Watch.apply(x).sum().backward()
    grad(Watch.apply(x).sum(), x, create_graph=True)
    assert modes == [False, False, False, False, False, True]


def test_undefined_gradients_reach_backward_as_zeros_or_none():
    seen = []

    class Two(Function):
        materialize = True

        @classmethod
        def with_setting(cls, value):
            cls.materialize = value
            return cls

        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(Two.materialize)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, a, b):
            seen.append((a, b))
            return a * 2 if b is None else a * 2 + b * 3

    x = leaf(1.0, 2.0)
    for create in (False, True):
        first, _ = Two.with_setting(True).apply(x)
        assert_same(grad(first.sum(), x, create_graph=create)[0], [2.0, 2.0])
        assert_same(seen.pop()[1], [0.0, 0.0])
        first, _ = Two.with_setting(False).apply(x)
        assert_same(grad(first.sum(), x, create_graph=create)[0], [2.0, 2.0])
        assert seen.pop()[1] is None


def test_gradient_none_is_zero():
    class Half(Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * y

        @staticmethod
        def backward(ctx, g):
            return g, None

    x, y = leaf(1.0), leaf(2.0)
    assert grad(Half.apply(x, y), [x, y], allow_unused=True)[1] is None
    Half.apply(x, y).backward()
    assert y.grad is None


def test_trailing_nones_are_allowed_and_gradients_of_broadcast_inputs_are_summed():
    class Add(Function):
        @staticmethod
        def forward(ctx, x, y):
            return x + y

        @staticmethod
        def backward(ctx, g):
            return g, g, None, None

    x, y = vg.ones(3, requires_grad=True), vg.ones((2, 3), requires_grad=True)
    gx, gy = grad(Add.apply(x, y).sum(), [x, y])
    assert_same(gx, [2.0, 2.0, 2.0])
    assert_same(gy, np.ones((2, 3)))


def test_complex_gradient_of_a_real_input():
    class Times(Function):
        @staticmethod
        def forward(ctx, x, z):
            ctx.save_for_backward(x, z)
            return x * z

        @staticmethod
        def backward(ctx, g):
            x, z = ctx.saved_tensors
            return g * vg.conj(z), g * x

    x, z = leaf(1.0, 2.0), vg.Tensor([1 + 2j, 3 - 1j], requires_grad=True)
    assert gradcheck(Times.apply, [x, z])


def test_non_tensor_outputs_pass_through():
    class WithInfo(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, "info", None, 7

        @staticmethod
        def backward(ctx, g, *others):
            assert others == (None, None, None)
            return g * 2

    x = leaf(1.0)
    out, *rest = WithInfo.apply(x)
    assert rest == ["info", None, 7]
    assert_same(grad(out, x)[0], [2.0])


def test_non_differentiable_outputs():
    class SortLike(Function):
        @staticmethod
        def forward(ctx, x):
            order = vg.Tensor(np.argsort(x.detach().numpy()))
            ranks = x * 0 + 1
            ctx.mark_non_differentiable(ranks)
            ctx.save_for_backward(order)
            return x[order], order, ranks

        @staticmethod
        def backward(ctx, g, g_order, g_ranks):
            (order,) = ctx.saved_tensors
            out = vg.zeros(g.shape)
            out[order] = g
            return out

    x = leaf(3.0, 1.0, 2.0)
    values, order, ranks = SortLike.apply(x)
    assert (values.requires_grad, order.requires_grad, ranks.requires_grad) == (True, False, False)
    assert_same(grad((values * vg.Tensor([1.0, 10.0, 100.0])).sum(), x)[0], [100.0, 1.0, 10.0])


def test_backward_may_use_other_functions_and_run_the_engine():
    class Checkpoint(Function):
        """Forward without recording; backward recomputes, and differentiates that."""

        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return vg.exp(vg.sin(x))

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            with vg.enable_grad():
                x = x.detach().requires_grad_()
                y = vg.exp(vg.sin(x))
            y.backward(g)
            return x.grad

    x = leaf(0.3, 0.7)
    Checkpoint.apply(x * 2).sum().backward()
    t = 2 * np.array([0.3, 0.7])
    assert_same(x.grad, 2 * np.cos(t) * np.exp(np.sin(t)))


def test_gradients_that_backward_keeps_are_not_written_to():
    held = []

    class Keep(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            result = g * 2
            held.append((g, result))
            return result

    x = leaf(1.0, 2.0)
    y = x * 1
    (Keep.apply(y) + Keep.apply(y) + y * 5).sum().backward()
    assert_same(x.grad, [9.0, 9.0])
    for g, result in held:
        assert_same(g, [1.0, 1.0])
        assert_same(result, [2.0, 2.0])


def test_a_buffer_that_backward_reuses_does_not_spoil_gradients():
    buffer = vg.zeros(2)

    class Reuse(Function):
        @staticmethod
        def forward(ctx, x, factor):
            ctx.factor = factor
            return x * factor

        @staticmethod
        def backward(ctx, g):
            buffer.copy_(g * ctx.factor)
            return buffer, None

    x, z = leaf(1.0, 2.0), leaf(1.0, 2.0)
    for create in (False, True):
        gx, gz = grad((Reuse.apply(x, 3.0) + Reuse.apply(z, 5.0)).sum(), [x, z], create_graph=create)
        assert_same(gx, [3.0, 3.0])
        assert_same(gz, [5.0, 5.0])


@pytest.mark.parametrize("create", [False, True])
def test_saved_tensors_returned_as_gradients_do_not_change(create):
    class HalfSquare(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x * 0.5

        @staticmethod
        def backward(ctx, g):
            return ctx.saved_tensors[0]

    x = leaf(1.0, 2.0)
    y = x * 1
    y.register_hook(lambda g: write())

    def write():
        y.detach().mul_(0)

    assert_same(grad(HalfSquare.apply(y).sum(), x, create_graph=create)[0], [1.0, 2.0])


# -- saved values ------------------------------------------------------------------------------------------------------


def test_saved_values_keep_their_value():
    x = leaf(1.0, 2.0)
    a = x * 1
    out = Product.apply(a, a[:].clone())
    saved_view = Product.apply(a[0:1], vg.Tensor([3.0]))
    a += 10
    a[0] = 7.0
    gx = grad((out.sum() + saved_view.sum()), x)[0]
    assert_same(gx, [1.0 * 2 + 3.0, 2.0 * 2])


def test_saved_before_a_write_inside_forward_is_the_old_value():
    x, y = leaf(2.0, 3.0), vg.Tensor(5.0, requires_grad=True)
    a = x * 1
    out = ScaleInPlace.apply(a, y)
    assert_same(grad(out.sum(), y)[0], 5.0)


def test_saved_after_a_write_inside_forward_is_the_new_value():
    class ExpInPlace(Function):
        @staticmethod
        def forward(ctx, x):
            x.exp_()
            ctx.mark_dirty(x)
            ctx.save_for_backward(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    def run(x):
        return ExpInPlace.apply(x * 2)

    def run_on_a_view(x):
        base = x * 2
        out = ExpInPlace.apply(base[1:])
        return base * 1 + out.sum()

    for f in (run, run_on_a_view):
        x = leaf(0.1, 0.2, 0.3)
        assert gradcheck(f, [x])
        assert gradgradcheck(f, [x])


def test_none_can_be_saved():
    class Maybe(Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, None, y)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            _, nothing, y = ctx.saved_tensors
            assert nothing is None and y is None
            return g * 2, None

    assert_same(grad(Maybe.apply(leaf(1.0), None), leaf(1.0), allow_unused=True)[0] or 0.0, 0.0)


def test_saved_values_are_released_and_retained():
    x, y = leaf(2.0), leaf(3.0)
    out = Product.apply(x, y)
    out.backward(retain_graph=True)
    out.backward()
    assert_same(x.grad, [6.0])
    with pytest.raises(FreedGraphError, match="retain_graph=True"):
        out.backward()
    with pytest.raises(FreedGraphError):
        _ = out.grad_fn.saved_tensors
    out = Product.apply(x, y)
    grad(out, x, create_graph=True, retain_graph=False)
    with pytest.raises(FreedGraphError):
        grad(out, x)


def test_nothing_saved_can_be_run_again():
    class Twice(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = leaf(1.0)
    out = Twice.apply(x)
    out.backward()
    out.backward()
    assert_same(x.grad, [4.0])


def test_graph_is_freed_by_reference_counting():
    gc.disable()
    try:
        x = leaf(1.0, 2.0)
        out = Exp.apply(ScaleInPlace.apply(x * 1, vg.Tensor(2.0)))
        nodes = [weakref.ref(out.grad_fn), weakref.ref(out.grad_fn.next_functions[0][0])]
        del out
        assert [ref() for ref in nodes] == [None, None]
        base = x * 1
        out = ScaleInPlace.apply(base[1:], vg.Tensor(2.0))
        node = weakref.ref(base.grad_fn.next_functions[1][0])
        assert node() is not None
        del out, base
        assert node() is None
    finally:
        gc.enable()


def test_second_derivative_through_a_saved_intermediate_is_an_error_and_not_zero():
    class Cube(Function):
        @staticmethod
        def forward(ctx, x):
            square = x * x
            ctx.save_for_backward(square)
            return square * x

        @staticmethod
        def backward(ctx, g):
            (square,) = ctx.saved_tensors
            return g * square * 3

    x = leaf(2.0)
    (g,) = grad(Cube.apply(x), x, create_graph=True)
    assert_same(g, [12.0])
    with pytest.raises(FunctionError, match="neither an input nor an output"):
        grad(g, x)
    # The part of the second derivative that does not lead through the intermediate is available.
    seed = leaf(1.0)
    (g,) = grad(Cube.apply(x.detach().requires_grad_()), x, grad_outputs=seed, allow_unused=True)
    assert g is None


def test_an_intermediate_returned_as_an_output_has_a_history():
    class Cube(Function):
        @staticmethod
        def forward(ctx, x):
            square = x * x
            ctx.save_for_backward(x, square)
            return square * x, square

        @staticmethod
        def backward(ctx, g, g_square):
            x, square = ctx.saved_tensors
            return g * square * 3 + g_square * x * 2

    x = leaf(2.0)
    assert gradgradcheck(lambda t: Cube.apply(t)[0], [x])


# -- writing in place --------------------------------------------------------------------------------------------------


def test_dirty_plain_tensor():
    x, y = leaf(2.0, 3.0), vg.Tensor(5.0, requires_grad=True)
    a = x * 1
    version = a._version
    out = ScaleInPlace.apply(a, y)
    assert out is a
    assert a.grad_fn.name() == "ScaleInPlaceBackward"
    assert a._version > version
    assert_same(a, [10.0, 15.0])

    def f(x, y):
        a = x * 2
        before = a * a
        ScaleInPlace.apply(a, y)
        return before.sum() + (a * a).sum()

    assert gradcheck(f, [x, y])
    assert gradgradcheck(f, [x, y])


VIEWS = {
    "row": lambda b: b[1],
    "column": lambda b: b[:, 1],
    "strided": lambda b: b[::2, ::-1],
    "transposed": lambda b: b.T,
    "reshaped": lambda b: b.reshape(-1)[2:7],
    "diagonal": lambda b: b.diagonal(),
    "view of a view": lambda b: b[1:][:, 1:][0],
    "whole": lambda b: b[...],
    "empty": lambda b: b[3:],
    "number": lambda b: b[1, 1, ...],
}


@pytest.mark.parametrize("replay", [False, True])
@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS.keys())
def test_dirty_view_of_a_larger_base(view, replay):
    def f(x, y):
        base = x * 2
        other = base[0:2]
        read_before = base.sum()
        v = view(base)
        out = ScaleInPlace.apply(v, y)
        assert out is v
        return (base * base).sum() + (other * 3).sum() + read_before * v.sum()

    x = vg.Tensor(np.random.default_rng(1).normal(size=(3, 3)), requires_grad=True)
    y = vg.Tensor(1.5, requires_grad=True)
    with vg.view_replay(replay):
        assert f(x, y).grad_fn is not None
        assert gradcheck(f, [x, y])
        assert gradgradcheck(f, [x, y])


def test_dirty_view_shows_copy_slices_on_the_base():
    base = leaf(1.0, 2.0) * 1
    v = base[0, ...]
    ScaleInPlace.apply(v, vg.Tensor(3.0))
    assert base.grad_fn.name() == "CopySlices"
    assert v.grad_fn.name() == "AsStridedBackward"


def test_dirty_view_with_a_further_output():
    """PyTorch rejects this case."""

    class ScaleAndSum(Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            x.mul_(y)
            ctx.mark_dirty(x)
            return x.sum(), x, y * 2

        @staticmethod
        def backward(ctx, g_sum, g_x, g_y):
            x, y = ctx.saved_tensors
            g = g_x + g_sum
            return g * y, (g * x).sum() + g_y * 2

    def f(x, y):
        base = x * 2
        total, v, double = ScaleAndSum.apply(base[1:], y)
        return (base * base).sum() * double + total * v.sum()

    x, y = leaf(1.0, 2.0, 3.0), vg.Tensor(1.5, requires_grad=True)
    assert gradcheck(f, [x, y])
    assert gradgradcheck(f, [x, y])


def test_two_dirty_inputs():
    class Swap(Function):
        @staticmethod
        def forward(ctx, a, b):
            old = a.clone()
            a.copy_(b)
            b.copy_(old)
            ctx.mark_dirty(a, b)
            return a, b

        @staticmethod
        def backward(ctx, ga, gb):
            return gb, ga

    def plain(x, y):
        a, b = x * 2, y * 3
        Swap.apply(a, b)
        return (a * a).sum() + b.sum()

    def views_of_one_base(x, y):
        base = vg.concatenate([x * 2, y * 3])
        Swap.apply(base[:2], base[2:])
        return (base * vg.arange(4.0) * base).sum()

    for f in (plain, views_of_one_base):
        assert gradcheck(f, [leaf(1.0, 2.0), leaf(3.0, 4.0)])

    base = leaf(1.0, 2.0, 3.0) * 1
    with pytest.raises(FunctionError, match="share memory"):
        Swap.apply(base[:2], base[1:])


def test_dirty_input_without_history_gets_one():
    class Fill(Function):
        @staticmethod
        def forward(ctx, out, x):
            out.copy_(x * 3)
            ctx.mark_dirty(out)
            return out

        @staticmethod
        def backward(ctx, g):
            return None, g * 3

    x = leaf(1.0, 2.0)
    buffer = vg.zeros(4)
    window = buffer[1:3]
    Fill.apply(window, x)
    assert buffer.requires_grad
    assert_same(grad((buffer * vg.arange(4.0)).sum(), x)[0], [3.0, 6.0])


def test_dirty_without_recording():
    a = vg.ones(2)
    assert ScaleInPlace.apply(a, vg.Tensor(2.0)) is a
    assert_same(a, [2.0, 2.0])


def test_dirty_and_non_differentiable_is_a_constant():
    class Zero(Function):
        @staticmethod
        def forward(ctx, x, y):
            x.zero_()
            ctx.mark_dirty(x)
            ctx.mark_non_differentiable(x)
            return x, y * 2

        @staticmethod
        def backward(ctx, gx, gy):
            return None, gy * 2

    x, y = leaf(1.0, 2.0), leaf(1.0)
    base = x * 1
    _, double = Zero.apply(base[0:1], y)
    gx, gy = grad(base.sum() + double.sum(), [x, y])
    assert_same(gx, [0.0, 1.0])
    assert_same(gy, [2.0])
    a = x * 1
    Zero.apply(a, y)
    assert not a.requires_grad


def test_retain_grad_follows_a_dirty_tensor():
    x = leaf(1.0, 2.0)
    a = x * 1
    a.retain_grad()
    ScaleInPlace.apply(a, vg.Tensor(3.0))
    (a * 5).sum().backward()
    assert_same(a.grad, [5.0, 5.0])
    assert_same(x.grad, [15.0, 15.0])


def test_dirty_refusals():
    y = vg.Tensor(2.0)
    with pytest.raises(LeafInPlaceError):
        ScaleInPlace.apply(leaf(1.0, 2.0), y)
    with pytest.raises(LeafInPlaceError):
        ScaleInPlace.apply(leaf(1.0, 2.0)[:1], y)
    base = leaf(1.0, 2.0) * 1
    with vg.no_grad():
        hidden = base[:1]
    with pytest.raises(ViewInPlaceError):
        ScaleInPlace.apply(hidden, y.clone().requires_grad_())
    with pytest.raises(OverlappingWriteError):
        ScaleInPlace.apply((leaf(1.0) * 1).expand(3), y)


def test_dirty_tensor_not_returned():
    class Forgets(Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            ctx.mark_dirty(x)
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return g * 2

    with pytest.raises(FunctionError, match="marked dirty but not returned"):
        Forgets.apply(leaf(1.0) * 1)


def test_write_without_mark_dirty():
    class Sneaky(Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 2

    with pytest.raises(FunctionError, match="mark_dirty"):
        Sneaky.apply(leaf(1.0) * 1)


def test_mark_dirty_of_no_input_warns():
    class Odd(Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2
            ctx.mark_dirty(y)
            return y

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = leaf(1.0)
    with pytest.warns(UserWarning, match="not an input"):
        out = Odd.apply(x)
    assert_same(grad(out, x)[0], [2.0])


# -- outputs that are inputs, and views --------------------------------------------------------------------------------


class Tenfold(Function):
    """Returns the result of `way`, with a derivative of ten."""

    @staticmethod
    def forward(ctx, x, way):
        ctx.way = way
        ctx.shape = x.shape
        return way(x)

    @staticmethod
    def backward(ctx, g):
        out = vg.zeros(ctx.shape)
        ctx.way(out).add_(g)
        return out * 10, None


def test_input_returned_as_it_is():
    x = leaf(1.0, 2.0)
    a = x * 1
    out = Tenfold.apply(a, lambda t: t)
    assert out is not a and out._base is a
    assert a.grad_fn.name() == "MulBackward" and out.grad_fn.name() == "TenfoldBackward"
    assert_same(grad(out.sum() + a.sum(), x)[0], [11.0, 11.0])
    with pytest.raises(ViewInPlaceError, match="custom Function"):
        out.mul_(2)
    assert_same(grad(Tenfold.apply(x, lambda t: t).sum(), x)[0], [10.0, 10.0])


def test_view_of_an_input_returned():
    x = leaf(1.0, 2.0, 3.0)
    a = x * 1
    out = Tenfold.apply(a, lambda t: t[1:])
    assert out._base is a and out.grad_fn.name() == "TenfoldBackward"
    assert_same(grad(out.sum() + a.sum() + out[0] * 2, x)[0], [1.0, 31.0, 11.0])
    with pytest.raises(ViewInPlaceError, match="custom Function"):
        out[0] = 5.0
    with pytest.raises(ViewInPlaceError):
        out[:1].mul_(2)


def test_stale_view_of_a_custom_function_raises():
    x = leaf(1.0, 2.0, 3.0)
    a = x * 1
    out = Tenfold.apply(a, lambda t: t[1:])
    part = out[:1]
    a[2] = 0.0
    for t in (out, part):
        with pytest.raises(ViewInPlaceError, match="custom Function"):
            _ = t.grad_fn
        with pytest.raises(ViewInPlaceError):
            t * 2
    with vg.no_grad():
        a[2] = 1.0
    assert_same(out.detach(), [2.0, 1.0])


def test_view_of_a_fresh_tensor_returned():
    x = leaf(1.0, 2.0, 3.0)

    class Tail(Function):
        @staticmethod
        def forward(ctx, x):
            return (x * 3)[1:]

        @staticmethod
        def backward(ctx, g):
            return vg.concatenate([vg.zeros(1), g * 3])

    assert gradcheck(Tail.apply, [x])
    with pytest.raises(ViewInPlaceError):
        Tail.apply(x).mul_(2)


def test_the_same_output_twice():
    class Twice(Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2
            return y, y

        @staticmethod
        def backward(ctx, a, b):
            return a * 2 + b * 20

    x = leaf(1.0)
    a, b = Twice.apply(x)
    assert a is b
    assert_same(grad(a + 3 * b, x)[0], [80.0])  # as in PyTorch, the gradient of the last output


def test_leaf_from_outside_returned():
    w = leaf(1.0)

    class Closure(Function):
        @staticmethod
        def forward(ctx, x):
            return w

        @staticmethod
        def backward(ctx, g):
            return g

    with pytest.raises(FunctionError, match="not passed to apply"):
        Closure.apply(leaf(1.0))
    assert w.is_leaf


# -- forward mode ------------------------------------------------------------------------------------------------------


class DualProduct(Product):
    """A product with a forward-mode rule."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        ctx.save_for_forward(x, y)
        return x * y

    @staticmethod
    def jvp(ctx, tx, ty):
        x, y = ctx.saved_tensors
        return tx * y + x * ty


class DualTenfold(Tenfold):
    @staticmethod
    def jvp(ctx, t, way):
        return ctx.way(t) * 10


class DualScaleInPlace(ScaleInPlace):
    @staticmethod
    def forward(ctx, x, y):
        ctx.old = x.detach().clone()
        return ScaleInPlace.forward(ctx, x, y)

    @staticmethod
    def jvp(ctx, tx, ty):
        _, y = ctx.saved_tensors
        return tx * y + ctx.old * ty


def dual(values, tangent):
    return forward_ad.make_dual(vg.Tensor(values), vg.Tensor(tangent))


def tangent_of(tensor):
    return forward_ad.unpack_dual(tensor).tangent


def test_jvp():
    with forward_ad.dual_level():
        x, y = dual([1.0, 2.0], [1.0, 10.0]), vg.Tensor([3.0, 4.0])
        assert_same(tangent_of(DualProduct.apply(x, y)), [3.0, 40.0])
        assert_same(tangent_of(DualProduct.apply(y, x)), [3.0, 40.0])
        assert_same(tangent_of(DualProduct.apply(x, x)), [2.0, 40.0])
        assert tangent_of(DualProduct.apply(y, y)) is None
        with pytest.raises(NotImplementedError, match="jvp"):
            Product.apply(x, y)


def test_jvp_at_nested_levels():
    with forward_ad.dual_level():
        x = dual([1.0, 2.0], [1.0, 10.0])
        with forward_ad.dual_level():
            inner = forward_ad.make_dual(x, vg.ones(2))
            first = tangent_of(DualProduct.apply(inner, DualProduct.apply(inner, inner)))
        assert_same(first, [3.0, 12.0])
        assert_same(tangent_of(first), [6.0, 120.0])


def test_jvp_of_undefined_tangents():
    seen = []

    class Watch(Function):
        materialize = True

        @staticmethod
        def forward(ctx, x, y, n):
            ctx.set_materialize_grads(Watch.materialize)
            return x + y

        @staticmethod
        def jvp(ctx, tx, ty, n):
            seen.append((ty, n))
            return tx

    with forward_ad.dual_level():
        x = dual([1.0], [2.0])
        Watch.apply(x, vg.ones(1), 3)
        Watch.materialize = False
        Watch.apply(x, vg.ones(1), 3)
    assert_same(seen[0][0], [0.0])
    assert seen[1] == (None, None) and seen[0][1] is None


def test_jvp_of_views_differs_from_the_jvp_of_the_base():
    with forward_ad.dual_level():
        x = dual([1.0, 2.0, 3.0], [1.0, 10.0, 100.0])
        for way, expected in ((lambda t: t, [10.0, 100.0, 1000.0]), (lambda t: t[1:], [100.0, 1000.0])):
            out = DualTenfold.apply(x, way)
            assert_same(tangent_of(out), expected)
            assert_same(tangent_of(out[1:]), expected[1:])
            assert_same(tangent_of(x), [1.0, 10.0, 100.0])


def test_jvp_of_dirty_tensors():
    with forward_ad.dual_level():
        base = dual([1.0, 2.0, 3.0], [1.0, 10.0, 100.0]) * 1
        view = base[1:]
        DualScaleInPlace.apply(view, dual(5.0, 7.0))
        assert_same(tangent_of(base), [1.0, 64.0, 521.0])
        assert_same(tangent_of(view), [64.0, 521.0])
        DualScaleInPlace.apply(base, vg.Tensor(2.0))
        assert_same(tangent_of(view), [128.0, 1042.0])

        class Forget(Function):
            @staticmethod
            def forward(ctx, x):
                x.zero_()
                ctx.mark_dirty(x)
                return x

            @staticmethod
            def jvp(ctx, t):
                return None

        Forget.apply(view)
        assert_same(tangent_of(base), [2.0, 0.0, 0.0])


def test_forward_over_reverse():
    with forward_ad.dual_level():
        p = leaf(1.0, 2.0)
        x = forward_ad.make_dual(p, vg.Tensor([1.0, 10.0]))
        (g,) = grad(DualProduct.apply(x, DualProduct.apply(x, x)).sum(), x)
        assert_same(g, [3.0, 12.0])
        assert_same(tangent_of(g), [6.0, 120.0])


def test_forward_over_reverse_through_a_saved_output():
    class DualExp(Exp):
        @staticmethod
        def forward(ctx, x):
            y = Exp.forward(ctx, x)
            ctx.save_for_forward(y)
            return y

        @staticmethod
        def jvp(ctx, t):
            return t * ctx.saved_tensors[0]

    with forward_ad.dual_level():
        x = forward_ad.make_dual(leaf(0.5, 1.0), vg.Tensor([1.0, 10.0]))
        (g,) = grad(DualExp.apply(x).sum(), x)
        assert_same(tangent_of(g), np.exp([0.5, 1.0]) * [1.0, 10.0])


def test_forward_over_reverse_through_a_saved_intermediate_is_an_error_and_not_zero():
    class Cube(Function):
        @staticmethod
        def forward(ctx, x):
            square = x * x
            ctx.save_for_backward(square)
            ctx.save_for_forward(square)
            return square * x

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0] * 3

        @staticmethod
        def jvp(ctx, t):
            return t * ctx.saved_tensors[0] * 3

    with forward_ad.dual_level():
        x = forward_ad.make_dual(leaf(2.0), vg.Tensor([1.0]))
        y = Cube.apply(x)
        assert_same(tangent_of(y), [12.0])
        with pytest.raises(FunctionError, match="neither an input nor an output"):
            grad(y.sum(), x)


def test_wrong_tangents():
    def returning_tangent(result):
        class Returns(Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def jvp(ctx, t):
                return result(t)

        return Returns

    with forward_ad.dual_level():
        x = dual([1.0, 2.0], [1.0, 1.0])
        for result, message in (
            (lambda t: (t, t), "returned 2 tangents, but forward had 1 outputs"),
            (lambda t: t[0], r"shape \(\) for output 0"),
            (lambda t: 3.0, "returned float"),
        ):
            with pytest.raises(FunctionError, match=message):
                returning_tangent(result).apply(x)


# -- once_differentiable -----------------------------------------------------------------------------------------------


class ExpByNumpy(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.y = np.exp(x.detach().numpy())
        return vg.Tensor(ctx.y)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        assert not vg.is_grad_enabled()
        return vg.Tensor(g.numpy() * ctx.y)


def test_once_differentiable():
    x = leaf(0.5, 1.0)
    assert gradcheck(ExpByNumpy.apply, [x])
    (g,) = grad(ExpByNumpy.apply(x).sum(), x, create_graph=True)
    assert_same(g, np.exp([0.5, 1.0]))
    for attempt in (
        lambda g: grad(g.sum(), x),
        lambda g: g.sum().backward(),
        lambda g: grad((g * x).sum(), x),
    ):
        (g,) = grad(ExpByNumpy.apply(x).sum(), x, create_graph=True)
        with pytest.raises(FunctionError, match="once_differentiable"):
            attempt(g)


def test_once_differentiable_in_forward_mode():
    class Triple(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 3

        @staticmethod
        @once_differentiable
        def backward(ctx, g):
            return vg.Tensor(g.detach().numpy() * 3)

        @staticmethod
        def jvp(ctx, t):
            return t * 3

    with forward_ad.dual_level():
        x = leaf(1.0, 2.0)
        assert_same(grad(Triple.apply(x).sum(), x)[0], [3.0, 3.0])
        x = forward_ad.make_dual(leaf(1.0, 2.0), vg.ones(2))
        with pytest.raises(FunctionError, match="once_differentiable"):
            grad((Triple.apply(x) ** 2).sum(), x)


# -- what is refused ---------------------------------------------------------------------------------------------------


def returning(result, shape=(2,), arguments=()):
    class Returns(Function):
        @staticmethod
        def forward(ctx, x, *others):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return result(g)

    return (Returns.apply(vg.ones(shape, requires_grad=True) * 1, *arguments) * vg.ones(shape)).sum()


@pytest.mark.parametrize("create", [False, True])
@pytest.mark.parametrize(
    ("result", "arguments", "message"),
    [
        (lambda g: (g, g), (), r"returned 2 gradients, but forward had 1 argument;"),
        (lambda g: g, (3,), r"returned 1 gradient, but forward had 2 arguments"),
        (lambda g: (g, g), (3,), r"gradient for argument 1, which is not a tensor"),
        (lambda g: g[:1].expand(3), (), r"shape \(3,\) for argument 0, whose shape is \(2,\)"),
        (lambda g: g.sum(), (), r"shape \(\) for argument 0"),
        (lambda g: np.ones(2), (), r"returned ndarray as gradient 0"),
        (lambda g: 2.0, (), r"returned float as gradient 0, .* wrap numbers and arrays in vg.Tensor"),
    ],
)
def test_wrong_gradients(result, arguments, message, create):
    with pytest.raises(FunctionError, match=message):
        returning(result, arguments=arguments).backward(create_graph=create)


@pytest.mark.parametrize("create", [False, True])
def test_backward_must_not_write_to_its_arguments(create):
    with pytest.raises(FunctionError, match=r"clone\(\)"):
        returning(lambda g: g.mul_(2)).backward(create_graph=create)

    class Writes(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            with vg.no_grad():
                x[0] = 5.0
            return g * 2

    x = leaf(1.0, 2.0)
    with pytest.raises(FunctionError, match="saved_tensors"):
        Writes.apply(x).sum().backward(create_graph=create)
    assert_same(x, [1.0, 2.0])


def test_saving_outside_forward():
    class Late(Function):
        @staticmethod
        def forward(ctx, x):
            Late.ctx = ctx
            return x * 2

        @staticmethod
        def backward(ctx, g):
            ctx.save_for_backward(g)
            return g * 2

    with pytest.raises(FunctionError, match="while forward or setup_context runs"):
        Late.apply(leaf(1.0)).backward()
    for call in (Late.ctx.mark_dirty, Late.ctx.mark_non_differentiable, Late.ctx.save_for_backward):
        with pytest.raises(FunctionError, match="while forward"):
            call(vg.ones(1))


def test_only_tensors_are_saved():
    class SavesInt(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, 3)
            return x

    with pytest.raises(TypeError, match="argument 1 is of type int"):
        SavesInt.apply(leaf(1.0))


@pytest.mark.parametrize("wrap", [lambda t: [t], lambda t: {"out": t}, lambda t: t.numpy()])
def test_outputs_that_pass_no_gradient(wrap):
    class Wraps(Function):
        @staticmethod
        def forward(ctx, x):
            return wrap(x * 2)

    with pytest.raises(FunctionError, match="return a Tensor"):
        Wraps.apply(leaf(1.0))


def test_inference_tensors_are_not_saved():
    with vg.inference_mode():
        c = vg.ones(1)
    with pytest.raises(InferenceError):
        Product.apply(leaf(1.0), c)


def test_missing_methods():
    class Empty(Function):
        pass

    with pytest.raises(NotImplementedError, match="forward"):
        Empty.apply(leaf(1.0))

    class NoBackward(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    with pytest.raises(NotImplementedError, match="backward"):
        NoBackward.apply(leaf(1.0)).backward()
    with pytest.raises(FunctionError, match="apply"):
        NoBackward()


def test_vjp_is_another_name_for_backward():
    class Named(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def vjp(ctx, g):
            return g * 2

    x = leaf(1.0)
    assert_same(grad(Named.apply(x), x)[0], [2.0])

    class Both(Named):
        @staticmethod
        def backward(ctx, g):
            return g

    with pytest.raises(FunctionError, match="both backward and vjp"):
        Both.apply(x).backward()


def test_an_error_in_backward_reaches_the_caller_and_leaves_everything_usable():
    class Fails(Function):
        fail = True

        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            if Fails.fail:
                raise KeyError("mine")
            return g * 2

    x = leaf(1.0)
    out = Fails.apply(x)
    with pytest.raises(KeyError, match="mine"):
        out.backward()
    assert x.grad is None and vg.is_grad_enabled()
    Fails.fail = False
    out.backward()  # the node that failed has released nothing
    assert_same(x.grad, [2.0])


def test_jvp_of_a_custom_function_gets_saved_values():
    class AddSquare(vg.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(y)
            x.add_(y * y)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad, grad * 2.0 * ctx.saved_tensors[0]

        @staticmethod
        def jvp(ctx, of_x, of_y):
            return of_x + 2.0 * ctx.saved_tensors[0] * of_y

    x = vg.Tensor([1.0, 2.0], requires_grad=True)
    y = x.clone()
    AddSquare.apply(y, y)
    y.sum().backward()
    np.testing.assert_array_equal(x.grad, [3.0, 5.0])
    with forward_ad.dual_level():
        y = forward_ad.make_dual(x.detach(), vg.ones(2)).clone()
        AddSquare.apply(y, y)
        np.testing.assert_array_equal(forward_ad.unpack_dual(y).tangent, [3.0, 5.0])
        # The history of the old value is unknown, so the second derivative raises an error.
        y = forward_ad.make_dual(x, vg.ones(2)).clone()
        AddSquare.apply(y, y)
        with pytest.raises(FunctionError, match="history is not known"):
            forward_ad.unpack_dual(y).tangent.sum().backward()
        with forward_ad.dual_level(), pytest.raises(FunctionError, match="nested levels"):
            y = forward_ad.make_dual(x.clone(), vg.ones(2)).clone()
            AddSquare.apply(y, y)


def test_one_tensor_returned_twice_is_one_tensor():
    class Twice(Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2.0
            return y, y

        @staticmethod
        def backward(ctx, a, b):
            return 2.0 * (a + b)

    x = vg.Tensor([1.0, 2.0], requires_grad=True)
    a, b = Twice.apply(x)
    a[0] = 5.0
    assert b is a
    np.testing.assert_array_equal(grad((b * b).sum(), x)[0], [0.0, 16.0])


@pytest.mark.parametrize("transform", [lambda f: f, vg.func.functionalize], ids=["eager", "functionalized"])
def test_a_write_without_history_detaches_views_taken_before_a_detach(transform):
    def halve(v):
        class Halve(Function):
            @staticmethod
            def forward(ctx, x):
                x.mul_(0.5)
                ctx.mark_dirty(x)
                return x

            @staticmethod
            def backward(ctx, grad):
                return 0.5 * grad

        return Halve.apply(v)

    def program(x, write):
        base = x.clone()
        whole, end = base[...], base[1:]
        base.detach_()
        write(base[:2])
        return (whole * np.array([1.0, 2.0, 3.0])).sum() + (end * np.array([5.0, 7.0])).sum()

    for write in (lambda v: v.mul_(0.5), halve, lambda v: halve(v[...])):
        gradient = vg.func.grad(transform(lambda x, write=write: program(x, write)), adopt=False)
        np.testing.assert_array_equal(gradient(vg.Tensor([1.0, 2.0, 3.0])).numpy(), [0.0, 0.0, 10.0])
