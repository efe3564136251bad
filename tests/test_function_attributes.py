"""Custom functions that store values as attributes of ctx: these are protected like saved tensors."""

import weakref

import numpy as np
import pytest

import viewgrad as vg
from viewgrad.autograd import Function, grad
from viewgrad.autograd.forward_ad import dual_level, make_dual, unpack_dual
from viewgrad.errors import FunctionError


def squares(put, get):
    """x * x, with x kept by `put(ctx, x)` and found by `get(ctx)`."""

    class Square(Function):
        @staticmethod
        def forward(ctx, x):
            put(ctx, x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return 2.0 * g * get(ctx)

    return Square.apply


def put_output(ctx, x):
    ctx.root = x * 1.0


WAYS = {
    "tensor": (lambda ctx, x: setattr(ctx, "x", x), lambda ctx: ctx.x),
    "detached": (lambda ctx, x: setattr(ctx, "x", x.detach()), lambda ctx: ctx.x),
    "view": (lambda ctx, x: setattr(ctx, "x", x[:]), lambda ctx: ctx.x),
    "list": (lambda ctx, x: setattr(ctx, "x", [x, 1.0]), lambda ctx: ctx.x[0]),
    "dict in a tuple": (lambda ctx, x: setattr(ctx, "x", ({"x": x},)), lambda ctx: ctx.x[0]["x"]),
    "array": (lambda ctx, x: setattr(ctx, "x", x.detach().numpy()), lambda ctx: vg.Tensor(ctx.x)),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("write", [lambda y: y.zero_(), lambda y: y.__setitem__(0, 7.0), lambda y: y[:1].mul_(3.0)])
def test_values_left_on_ctx_are_preserved(way, write):
    function = squares(*WAYS[way])
    x = vg.Tensor([1.0, 2.0], requires_grad=True)
    y = x * 3.0
    z = function(y).sum()
    for _ in range(2):  # between two backward passes, too
        write(y)
        assert grad(z, x, retain_graph=True)[0].tolist() == [18.0, 36.0]


def test_second_derivatives_of_values_left_on_ctx():
    function = squares(*WAYS["tensor"])
    x = vg.Tensor([1.0, 2.0], requires_grad=True)
    y = x * 3.0
    z = function(y)
    y.zero_()
    (first,) = grad(z.sum(), x, create_graph=True)
    assert first.tolist() == [18.0, 36.0]
    assert grad(first.sum(), x)[0].tolist() == [18.0, 18.0]


def test_attributes_that_backward_sets_on_ctx_stay():
    class Counting(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.calls = vg.zeros(1)
            return x * 1.0

        @staticmethod
        def backward(ctx, g):
            ctx.calls += 1.0
            seen.append(ctx.calls.tolist())
            return g

    seen = []
    x = vg.Tensor([1.0], requires_grad=True)
    z = Counting.apply(x)
    grad(z, x, retain_graph=True)
    grad(z, x)
    assert seen == [[1.0], [2.0]]


# -- tensors that forward makes ----------------------------------------------------------------------------------------

CLASSES = {
    "tensor": (lambda ctx, m: setattr(ctx, "m", m), lambda ctx: ctx.m),
    "list": (lambda ctx, m: setattr(ctx, "m", [m]), lambda ctx: ctx.m[0]),
    "dict in a tuple": (lambda ctx, m: setattr(ctx, "m", ({"m": m},)), lambda ctx: ctx.m[0]["m"]),
    "view": (lambda ctx, m: setattr(ctx, "m", m[:]), lambda ctx: ctx.m),
    "view of a view": (lambda ctx, m: setattr(ctx, "m", [m[None][0]]), lambda ctx: ctx.m[0]),
    "two": (lambda ctx, m: (setattr(ctx, "k", m[:1]), setattr(ctx, "m", m * 1.0)), lambda ctx: ctx.m),
}


def cube(put, get):
    """x**3, whose backward uses 3 * x**2 that forward has computed."""

    class Cube(Function):
        @staticmethod
        def forward(ctx, x):
            put(ctx, 3.0 * x * x)
            return x**3

        @staticmethod
        def backward(ctx, g):
            return g * get(ctx)

    return Cube.apply


@pytest.mark.parametrize("way", CLASSES)
def test_second_derivatives_through_values_made_in_forward_are_refused(way):
    function = cube(*CLASSES[way])
    x = vg.Tensor([1.2, 2.0], requires_grad=True)
    for _ in range(2):
        assert grad(function(x).sum(), x)[0].tolist() == pytest.approx([4.32, 12.0])
    (first,) = grad(function(x * 1.0).sum(), x, create_graph=True)
    assert first.detach().tolist() == pytest.approx([4.32, 12.0])
    for refused in (
        lambda: grad(first.sum(), x),
        lambda: vg.func.grad(lambda x: vg.func.grad(lambda y: function(y).sum())(x).sum())(vg.Tensor([1.2, 2.0])),
    ):
        with pytest.raises(FunctionError, match="left on ctx in its forward"):
            refused()
    # Paths that avoid it are differentiated, for example through the incoming gradient.
    w = vg.Tensor(2.0, requires_grad=True)
    (first,) = grad((function(x.detach().requires_grad_()) * w).sum(), w, create_graph=True)
    assert first.detach().item() == pytest.approx(1.2**3 + 8.0)


def test_values_made_in_forward_may_be_left_on_ctx_unread_under_forward_mode():
    class Product(Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            ctx.product = x * y
            return ctx.product * 1.0

        @staticmethod
        def backward(ctx, g):
            assert not reads or ctx.product.shape == ()
            assert not hasattr(ctx, "undefined")
            x, y = ctx.saved_tensors
            return g * y, g * x

        @staticmethod
        def jvp(ctx, x_tangent, y_tangent):
            x, y = ctx.saved_tensors
            return x_tangent * y + x * y_tangent

    x, y = vg.Tensor(2.0, requires_grad=True), vg.Tensor(3.0, requires_grad=True)
    for reads in (False, True, False):
        with dual_level():
            output = Product.apply(make_dual(x, vg.Tensor(1.0)), y)
            if reads:
                with pytest.raises(FunctionError, match="left on ctx in its forward"):
                    grad(output, (x, y))
                assert output.grad_fn.ctx.product.item() == 6.0
            else:
                of_x, of_y = grad(output, (x, y))
                assert (unpack_dual(of_x).tangent or 0.0) == 0.0 and unpack_dual(of_y).tangent.item() == 1.0


def test_constants_from_outside_may_be_left_on_ctx():
    weights = vg.Tensor([2.0, 3.0])

    class Weighted(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.weights, ctx.x, ctx.mask = weights, x, x > 0
            return x * x * weights

        @staticmethod
        def backward(ctx, g):
            return 2.0 * g * ctx.x * ctx.weights * ctx.mask

    x = vg.Tensor([1.0, 2.0], requires_grad=True)
    (first,) = grad(Weighted.apply(x).sum(), x, create_graph=True)
    assert grad(first.sum(), x)[0].tolist() == [4.0, 6.0] and not weights.requires_grad


# -- graphs inside forward, and arrays over the memory of outputs ------------------------------------------------------


def through_graph_inside(keep):
    """x**2 by a graph that forward keeps on ctx; `keep(z)` returns the tensors to differentiate through."""

    class Inside(Function):
        @staticmethod
        def forward(ctx, x):
            with vg.enable_grad():
                ctx.z = x.detach().requires_grad_()
                ctx.parts = keep(ctx.z)
                ctx.y = ctx.parts[0] ** 2
            return ctx.y.detach()

        @staticmethod
        def backward(ctx, g):
            (first,) = grad(ctx.y, ctx.z, g.detach(), retain_graph=True)
            with vg.enable_grad():
                (again,) = grad((ctx.parts[0] * ctx.parts[0] * g.detach()).sum(), ctx.z, retain_graph=True)
            return 0.5 * (first + again)

    return Inside.apply


@pytest.mark.parametrize("keep", [lambda z: [z], lambda z: [z[:]], lambda z: (z.reshape(-1), 1)])
def test_graphs_kept_on_ctx_survive_writes_to_the_input(keep):
    function = through_graph_inside(keep)
    x = vg.Tensor([1.0, 2.0], requires_grad=True)
    y = x * 3.0
    z = function(y).sum()
    for _ in range(2):
        y.fill_(7.0)
        assert grad(z, x, retain_graph=True)[0].tolist() == [18.0, 36.0]


def test_an_array_over_the_memory_of_an_output_makes_no_reference_cycle():
    class Exponential(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.array = np.exp(x.detach().numpy())
            return vg.from_numpy(ctx.array)

        @staticmethod
        def backward(ctx, g):
            return g * vg.Tensor(ctx.array)

    x = vg.Tensor([0.0, 0.0], requires_grad=True)
    y = Exponential.apply(x)
    other = y.detach()
    other.mul_(3.0)
    assert grad(y.sum(), x, retain_graph=True)[0].tolist() == [1.0, 1.0]
    left = weakref.ref(y)
    del y, other
    assert left() is None
