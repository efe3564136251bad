"""The two engines: the fast one gives the gradients of the plain one, the specification."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from hypothesis import given, settings
from leaves import leaf_of

import viewgrad as vg
from viewgrad.autograd import execute, grad
from viewgrad.autograd.engine import GraphTask
from viewgrad.autograd.fast_engine import FastTask
from viewgrad.autograd.graph import plain_engine
from viewgrad.autograd.modes.anomaly import AnomalyTask
from viewgrad.errors import AutogradError, DifferentiabilityError
from viewgrad.testing import programs

DRAWN = 120


@pytest.fixture(params=["fast", "plain"])
def engine(request):
    """Run a test with each engine."""
    with plain_engine() if request.param == "plain" else contextlib.nullcontext():
        yield request.param


def inputs_of(program, names):
    """Return the tensors with respect to which a program is differentiated."""
    return [names[name] for name in (*(leaf.name for leaf in program.differentiable_leaves), *program.inputs)]


def arrays(grads):
    """Return gradients as new arrays, which later runs cannot change."""
    return [None if grad is None else np.array(grad.detach().numpy()) for grad in grads]


def assert_same(found, expected):
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            assert one.shape == other.shape and one.dtype == other.dtype
            tolerance = 1e-10 if one.dtype.itemsize in (8, 16) and one.dtype != np.complex64 else 1e-4
            np.testing.assert_allclose(one, other, rtol=0, atol=tolerance * max(1.0, np.abs(other).max(initial=0.0)))


def on_both(observe):
    """Return the results of `observe` under the fast engine and under the plain one."""
    fast = observe()
    with plain_engine():
        plain = observe()
    return fast, plain


def test_the_mode_chooses_the_engine(monkeypatch):
    ran = []
    for task in (GraphTask, FastTask, AnomalyTask):

        class Noted(task):
            __slots__ = ()

            def run(self):
                ran.append(type(self).__bases__[0])
                super().run()

        monkeypatch.setattr(execute, task.__name__, Noted)
    x = vg.ones(2, requires_grad=True)
    x.sum().backward()
    with plain_engine():
        x.sum().backward()
        with vg.autograd.detect_anomaly():
            x.sum().backward()
    x.sum().backward()
    assert ran == [FastTask, GraphTask, AnomalyTask, FastTask]
    assert issubclass(AnomalyTask, GraphTask) and not issubclass(AnomalyTask, FastTask)


@settings(max_examples=DRAWN)
@given(programs())
def test_gradients_agree(program):
    def observe():
        names = program.execute()
        loss = names[program.loss]
        if not loss.requires_grad:
            return []
        inputs = inputs_of(program, names)
        return [
            *arrays(vg.autograd.grad(loss, inputs, retain_graph=True, allow_unused=True)),
            *arrays(vg.autograd.grad(loss, inputs, allow_unused=True)),
        ]

    assert_same(*on_both(observe))


@settings(max_examples=DRAWN)
@given(programs())
def test_gradients_of_restricted_runs_agree(program):
    def observe():
        names = program.execute()
        loss = names[program.loss]
        if not loss.requires_grad:
            return []
        found = []
        for tensor in inputs_of(program, names):
            found += arrays(vg.autograd.grad(loss, tensor, retain_graph=True, allow_unused=True))
        leaves = [names[leaf.name] for leaf in program.differentiable_leaves]
        for leaf in leaves:
            loss.backward(retain_graph=True, inputs=leaf)
        loss.backward(retain_graph=True)
        loss.backward()
        return [*found, *arrays(leaf.grad for leaf in leaves)]

    assert_same(*on_both(observe))


@settings(max_examples=DRAWN // 2)
@given(programs(max_steps=10))
def test_gradients_of_gradients_agree(program):
    def observe():
        names = program.execute()
        loss = names[program.loss]
        leaves = [names[leaf.name] for leaf in program.differentiable_leaves]
        if not loss.requires_grad or not leaves:
            return []
        first = vg.autograd.grad(loss, leaves, create_graph=True, allow_unused=True)
        terms = [(grad * grad.detach().conj()).real.sum() for grad in first if grad is not None and grad.requires_grad]
        if not terms:
            return arrays(first)
        second = vg.autograd.grad(sum(terms[1:], terms[0]), leaves, allow_unused=True)
        return [*arrays(first), *arrays(second)]

    assert_same(*on_both(observe))


@settings(max_examples=DRAWN)
@given(programs())
@pytest.mark.filterwarnings("ignore::viewgrad.errors.NonLeafGradWarning")
def test_hooks_see_and_replace_the_same(program):
    def observe():
        seen = []

        def note(where):
            def hook(*grads):
                for shown in grads:
                    for one in shown if isinstance(shown, tuple) else (shown,):
                        seen.append((where, None if one is None else np.array(one.detach().numpy())))
                if len(grads) == 1 and not isinstance(grads[0], tuple):
                    return grads[0] * 1.5
                return None

            return hook

        names = {}

        def after_step(step, bound):
            for number, (name, tensor) in enumerate(bound.items()):
                if isinstance(tensor, vg.Tensor) and tensor.requires_grad and (name, id(tensor)) not in names:
                    names[name, id(tensor)] = tensor
                    if number % 3 == 0:
                        tensor.register_hook(note(name))
                    elif number % 3 == 1 and tensor.grad_fn is not None:
                        tensor.grad_fn.register_hook(note(f"after {name}"))
                        tensor.grad_fn.register_prehook(note(f"before {name}"))
                    elif tensor.grad_fn is not None:
                        tensor.retain_grad()

        bound = program.execute_stepwise(program.make_leaves(), after_step)
        loss = bound[program.loss]
        if not loss.requires_grad:
            return []
        loss.backward()
        seen += [(name, None if t.grad is None else np.array(t.grad.numpy())) for (name, _), t in names.items()]
        order = sorted(range(len(seen)), key=lambda i: seen[i][0])  # the order among unrelated nodes is the engine's
        return [seen[i][1] for i in order]

    assert_same(*on_both(observe))


# -- each rule of a backward pass, under each engine -------------------------------------------------------------------


def test_a_node_runs_once_with_its_whole_gradient(engine):
    x = vg.Tensor([1.0, 2.0], requires_grad=True)
    y = x * 3
    seen = []
    y.register_hook(lambda grad: seen.append(grad.tolist()))
    late = y * y
    early = y + 1
    (late.sum() + early.sum()).backward()
    assert seen == [[7.0, 13.0]] and x.grad.tolist() == [21.0, 39.0]


def test_undefined_gradients_are_not_delivered(engine):
    class Nothing(vg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return None

    x = vg.Tensor([1.0], requires_grad=True)
    y = x * 3
    seen = []
    y.register_hook(seen.append)
    Nothing.apply(y).sum().backward()
    assert not seen and x.grad is None


def test_gradients_given_and_returned_share_no_memory(engine):
    x = vg.Tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 1.0
    y[0] = 5.0
    start = vg.Tensor([1.0, 1.0, 1.0])
    (one,) = vg.autograd.grad(y + x, x, start, retain_graph=True)
    kept = one.tolist()
    (y + x).backward(start)
    x.grad.zero_()
    assert start.tolist() == [1.0, 1.0, 1.0] and one.tolist() == kept == [1.0, 2.0, 2.0]


def test_leaves_are_unchanged_if_a_hook_fails(engine):
    x, y = (vg.Tensor([1.0], requires_grad=True) for _ in range(2))

    def fail(grad):
        raise ValueError("a hook")

    y.register_hook(fail)
    with pytest.raises(ValueError, match="a hook"):
        (x * y).sum().backward()
    assert x.grad is None and y.grad is None


def test_wrapped_node_reached_by_a_recorded_gradient_runs_twice():
    t = vg.Tensor([[0.1, 0.2], [0.3, 0.4]], requires_grad=True)
    base = t.clone()
    base[0].exp_()
    (gradient,) = vg.autograd.grad(base.sum(), t, create_graph=True)
    (base.sum() + gradient.sum()).backward()
    expected = np.ones((2, 2))
    expected[0] = 2 * np.exp([0.1, 0.2])
    np.testing.assert_allclose(t.grad.numpy(), expected)


def test_create_graph_under_no_grad_keeps_history():
    x = vg.Tensor([1.0, 2.0], requires_grad=True)
    y = x[0] ** 2 * x[1]
    with vg.no_grad():
        (gradient,) = vg.autograd.grad(y, x, create_graph=True)
    assert vg.autograd.grad(gradient.sum(), x)[0].tolist() == [6.0, 2.0]


def test_grad_with_respect_to_nothing():
    x = vg.Tensor([1.0], requires_grad=True)
    with pytest.raises(AutogradError, match="inputs must not be empty"):
        grad(x * 2, [])


def test_gradients_with_respect_to_nothing():
    empty = leaf_of(np.zeros((0, 3)))
    assert grad((empty * 2.0).sum(), empty)[0].shape == (0, 3)
    assert vg.func.grad(lambda a: (a * 2.0).sum())(vg.zeros(0)).shape == (0,)
    assert vg.func.jacrev(lambda a: a * 2.0)(vg.zeros(0)).shape == (0, 0)
    assert vg.autograd.gradcheck(lambda a: a * 2.0, empty)


@pytest.mark.parametrize("shape", [(), (1,)])
@pytest.mark.parametrize("run", [lambda z, x: z.backward(), lambda z, x: grad(z, x)], ids=["backward", "grad"])
def test_a_complex_output_needs_a_gradient(shape, run):
    x = vg.Tensor(np.ones(shape), requires_grad=True)
    with pytest.raises(DifferentiabilityError, match="needs a real output, not one of dtype complex128"):
        run(x * 2j, x)
    assert grad(x * 2j, x, np.full(shape, 1j))[0].item() == 2.0
