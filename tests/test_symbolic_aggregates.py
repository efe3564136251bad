"""`simple`, an aggregate of two operators: differentiated by hand, with common mistakes, and by `differentiate`."""

import numpy as np
import pytest

import viewgrad as vg
from viewgrad.autograd import Function, grad
from viewgrad.symbolic import differentiate, function_of, passes, program_of, run, trace


def simple(a, b):
    t = a + b
    return t * b


def inputs():
    return vg.Tensor([0.5, 0.25], requires_grad=True), vg.Tensor([2.0, 4.0], requires_grad=True)


class ArrayInside(Function):
    @staticmethod
    def forward(ctx, a, b):
        return (a.detach().numpy() + b.detach().numpy()) * b.detach().numpy()


class Recompute(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return (a + b) * b

    @staticmethod
    def backward(ctx, grad_r):
        a, b = ctx.saved_tensors
        grad_t = grad_r * b
        return grad_t, grad_t + grad_r * (a + b)


class Wrong(Function):
    @staticmethod
    def forward(ctx, a, b):
        t = a + b
        ctx.save_for_backward(b, t)
        return t * b

    @staticmethod
    def backward(ctx, grad_r):
        b, t = ctx.saved_tensors
        grad_t = grad_r * b
        return grad_t, grad_t + grad_r * t


class Almost(Function):
    @staticmethod
    def forward(ctx, a, b):
        t = a + b
        ctx.save_for_backward(b, t)
        return t * b, t

    @staticmethod
    def backward(ctx, grad_r, grad_t):
        b, t = ctx.saved_tensors
        grad_t = grad_t + grad_r * b
        return grad_t, grad_t + grad_r * t


SEEN = []  # the gradients that have arrived


class Right(Almost):
    @staticmethod
    def forward(ctx, a, b):
        ctx.set_materialize_grads(False)
        return Almost.forward(ctx, a, b)

    @staticmethod
    def backward(ctx, grad_r, grad_t):
        SEEN.append((grad_r is not None, grad_t is not None))
        b, t = ctx.saved_tensors
        if grad_r is not None:
            through = grad_r * b
            grad_t = through if grad_t is None else grad_t + through
        if grad_t is None:
            return None, None
        return grad_t, grad_t if grad_r is None else grad_t + grad_r * t


def two_gradients(function, both=False):
    """Return the gradients of a first loss, and of a second computed from them, and from the first loss if `both`."""
    a, b = inputs()
    loss = function(a, b).sum()
    first = grad(loss, [a, b], create_graph=True)
    second = grad(sum((g * g).sum() for g in first) + (loss if both else 0.0), [a, b])
    return [g.detach().tolist() for g in (*first, *second)]


def test_plain_arrays_inside_are_refused():
    with pytest.raises(RuntimeError, match="output 0 is of type ndarray"):
        ArrayInside.apply(*inputs())


def test_a_wrong_backward_has_no_second_derivatives():
    a, b = inputs()
    first = grad(Wrong.apply(a, b).sum(), [a, b])
    assert [g.tolist() for g in first] == two_gradients(simple)[:2]
    with pytest.raises(RuntimeError, match="second derivative of Wrong leads through a tensor"):
        two_gradients(Wrong.apply)


@pytest.mark.parametrize("both", [False, True])
def test_correct_backwards_have_second_derivatives(both):
    aggregate = function_of(simple, *inputs())
    right = two_gradients(simple, both)
    for function in (
        Recompute.apply, lambda a, b: Almost.apply(a, b)[0], lambda a, b: Right.apply(a, b)[0], aggregate,
        function_of(aggregate, *inputs()),
    ):  # fmt: skip
        SEEN.clear()
        assert two_gradients(function, both) == right
        assert SEEN in ([], [(True, False), (both, True)])  # the arrivals in the two passes


# Operations left in the reverse if gradients arrive at the result, the temporary, both or neither.
LEFT = {(True, False): ["AutogradAdd", "mul", "mul"], (False, True): [], (False, False): [],
        (True, True): ["AutogradAdd", "AutogradAdd", "mul", "mul"]}  # fmt: skip


@pytest.mark.parametrize("arriving", LEFT)
def test_the_reverse_is_specialised_on_defined_gradients(arriving):
    a, b, seeds = np.array([0.5, 0.25]), np.array([2.0, 4.0]), (np.array([1.5, -1.0]), np.array([0.5, 3.0]))
    gradient = differentiate(trace(simple, *inputs()))
    assert (gradient.f_real_outputs, gradient.df_input_vjps, gradient.df_output_vjps) == (1, (0, 1), (0, 1))
    assert (gradient.df_input_captured_inputs, gradient.df_input_captured_outputs) == ((1,), (1,))
    grads = [seed if each else None for seed, each in zip(seeds, arriving, strict=True)]
    given = gradient.df_inputs([a, b], run(gradient.f, [a, b]), grads)
    undefined = [number for number, each in enumerate(arriving) if not each]
    special = passes.specialize_autograd_zero(gradient.df.clone(), undefined)
    assert sorted(node.kind for node in special.nodes()) == LEFT[arriving]
    of_t = sum([g for g in (grads[1], None if grads[0] is None else grads[0] * b) if g is not None], np.zeros(2))
    of_b = of_t if grads[0] is None else of_t + grads[0] * (a + b)
    for outputs in (run(gradient.df, given), run(special, given), program_of(special)(given)):
        for ours, other in zip(outputs, (of_t, of_b), strict=True):
            assert (ours is None) is (True not in arriving)
            assert ours is None or np.allclose(ours, other)
