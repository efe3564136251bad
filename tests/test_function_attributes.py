"""Custom functions that leave what they need on ctx, and keep the promise of saved values all the same."""

import pytest

import viewgrad as vg
from viewgrad.autograd import Function, grad


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
def test_what_is_left_on_ctx_keeps_its_value(way, write):
    function = squares(*WAYS[way])
    x = vg.Tensor([1.0, 2.0], requires_grad=True)
    y = x * 3.0
    z = function(y).sum()
    for _ in range(2):  # between two backward passes, too
        write(y)
        assert grad(z, x, retain_graph=True)[0].tolist() == [18.0, 36.0]


def test_second_derivatives_of_what_is_left_on_ctx():
    function = squares(*WAYS["tensor"])
    x = vg.Tensor([1.0, 2.0], requires_grad=True)
    y = x * 3.0
    z = function(y)
    y.zero_()
    (first,) = grad(z.sum(), x, create_graph=True)
    assert first.tolist() == [18.0, 36.0]
    assert grad(first.sum(), x)[0].tolist() == [18.0, 18.0]


def test_what_backward_itself_writes_on_ctx_stays():
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
