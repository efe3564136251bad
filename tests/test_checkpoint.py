"""`checkpoint`: the values and gradients of the function, with less memory, or an error."""

from __future__ import annotations

import contextlib
import dataclasses
import random

import numpy as np
import pytest

import viewgrad as vg
from viewgrad import func
from viewgrad.autograd import grad
from viewgrad.errors import CheckpointError, FreedGraphError
from viewgrad.views.basic_indexing import _write_number

RNG = np.random.default_rng(5)


def leaf(*shape):
    return vg.Tensor(RNG.normal(size=shape), requires_grad=True)


def recurrence(x, a):
    """Run a recurrence that writes to its own arrays through views, and branches on values."""
    out = vg.zeros(len(x))
    out[0] = x[0] * a
    for i in range(1, len(x)):
        out[i] = x[i] * out[i - 1] + a if x[i] > 0 else vg.sin(out[i - 1])
    tail = out[1:]
    tail *= x[:-1]
    return {"out": out, "sum": (out.sum(), "text", 3)}


def close(actual, expected):
    np.testing.assert_allclose(np.asarray(actual.detach()), np.asarray(expected.detach()), rtol=1e-12, atol=1e-12)


def both(f, *inputs):
    """Return the results and first and second derivatives of `f` and of its checkpointed version."""
    found = []
    for each in (f, vg.checkpoint(f)):
        result = each(*inputs)
        loss = (result["out"] ** 2).sum() + result["sum"][0]
        first = grad(loss, inputs, create_graph=True, allow_unused=True)
        second = grad(sum((g * g).sum() for g in first), inputs)
        found.append((result["out"], *first, *second))
        assert result["sum"][1:] == ("text", 3)
    return zip(*found)


def test_derivatives_match_the_function():
    for a, b in both(recurrence, leaf(6), leaf()):
        close(b, a)


def test_captured_tensors_have_gradients():
    x, w = leaf(4), leaf(4)
    v = w * w
    f = vg.checkpoint(lambda x: (x * v[1:3].sum()).exp())
    g = lambda x: (x * v[1:3].sum()).exp()
    for expected, found in zip(grad(g(x).sum(), [x, w], retain_graph=True), grad(f(x).sum(), [x, w])):
        close(found, expected)
    slope = lambda w: func.grad(lambda x: vg.checkpoint(lambda x: (x * x * w).sum() * w[0])(x))(x.detach()).sum()
    plain = lambda w: func.grad(lambda x: (x * x * w).sum() * w[0])(x.detach()).sum()
    close(func.hessian(slope)(w.detach()), func.hessian(plain)(w.detach()))


@pytest.mark.parametrize(
    "argument",
    [lambda y: y, lambda y: y * 2.0, lambda y: y[::-1], lambda y: vg.checkpoint(vg.sin)(y)],
    ids=["captured", "computed from it", "a view of it", "checkpointed"],
)
@pytest.mark.parametrize("inner", [vg.exp, vg.checkpoint(vg.exp)], ids=["plain", "nested"])
@pytest.mark.parametrize("engine", [vg.autograd.graph.plain_engine, contextlib.nullcontext], ids=["plain", "fast"])
def test_a_history_that_is_captured_and_passed_counts_once_in_recorded_runs(argument, inner, engine):
    x = leaf(4)

    def derivatives(run):
        y = x * x
        out = run(lambda u: inner(u) * y * 0.3)(argument(y)).sum()
        found = [grad(out, x, retain_graph=True)[0]]
        for _ in range(3):
            found.append(grad(out, x, create_graph=True)[0])
            out = (found[-1] * found[-1]).sum()
        return found

    with engine():
        for found, expected in zip(derivatives(vg.checkpoint), derivatives(lambda f: f), strict=True):
            np.testing.assert_allclose(found.detach(), expected.detach(), rtol=1e-10)


def test_transforms_and_modes():
    x, a, along = leaf(5).detach(), vg.Tensor(0.7), vg.Tensor(RNG.normal(size=5))
    plain = lambda x: recurrence(x, a)["out"].sum()
    checkpointed = lambda x: vg.checkpoint(recurrence)(x, a)["out"].sum()
    for transform in (func.grad, func.hessian, func.jacfwd):
        close(transform(checkpointed)(x), transform(plain)(x))
    close(func.hvp(checkpointed, (x,), (along,))[1][0], func.hvp(plain, (x,), (along,))[1][0])
    with vg.no_grad():
        assert not checkpointed(x).requires_grad
    assert not vg.checkpoint(lambda x: x * 2)(x).requires_grad


def test_only_arguments_are_kept():
    def steps(x, n):
        for _ in range(n):
            x = x + 0.1 * vg.sin(x) * x
        return x

    x = leaf(100)
    saved = lambda y: vg.autograd.graph.memory(y).total.saved
    part = vg.checkpoint(steps)
    y = x
    for _ in range(8):
        y = part(y, 8)
    assert saved(y) == 8 * 800
    assert saved(steps(x, 64)) > 64 * 800
    close(grad(y.sum(), x)[0], grad(steps(x, 64).sum(), x)[0])
    nested = vg.checkpoint(lambda x: part(part(x, 8), 8))
    close(grad(nested(x).sum(), x)[0], grad(steps(x, 16).sum(), x)[0])


def test_random_numbers_are_the_same_in_the_second_run():
    mine, given, x = np.random.default_rng(1), np.random.default_rng(2), leaf(4)

    class Layer:
        def __init__(self):
            self.rng = np.random.RandomState(3)

        def __call__(self, x, rng):
            noise = mine.normal() + rng.normal() + self.rng.normal() + np.random.normal() + random.random()  # noqa: NPY002
            return x * noise * mine.choice([0.5, 2.0], size=4)

    layer = Layer()
    y = vg.checkpoint(layer)(x, given)
    after = [each.normal() for each in (mine, given, layer.rng)]
    (slope,) = grad(y.sum(), x, retain_graph=True)
    close(slope * x, y)
    (slope,) = grad(y.sum(), x)
    close(slope * x, y)
    assert after[0] not in np.random.default_rng(1).normal(size=2)  # the first run has advanced the generator


def test_hidden_state_that_changes_is_an_error():
    class Hidden:  # a library's class, whose state is not searched
        __module__ = "numpy.hidden"
        count = 0

        def __call__(self):
            Hidden.count += 1
            return Hidden.count

    hidden, x = Hidden(), vg.Tensor([0.0, 1.0], requires_grad=True)
    y = vg.checkpoint(lambda x: x * hidden())(x)
    with pytest.raises(CheckpointError, match="computed different values"):
        y.sum().backward()
    # Even if the results are equal, since the values saved by the graph are compared as well.
    zero = vg.Tensor([0.0], requires_grad=True)
    y = vg.checkpoint(lambda x: x * hidden())(zero)
    with pytest.raises(CheckpointError, match="computed different values"):
        y.sum().backward()


def test_captured_tensor_that_is_written_to_before_the_backward_pass():
    x, w = leaf(3), leaf(3)
    y = vg.checkpoint(lambda x: x * w)(x)
    with vg.no_grad():
        w -= 0.1
    with pytest.raises(CheckpointError, match="captured tensor was written to"):
        y.sum().backward()


def test_an_argument_may_be_written_to_afterwards():
    x = leaf(3)
    z = x * 1.0
    before = np.array(z.detach())
    y = vg.checkpoint(lambda z: z * z)(z)
    z *= 5.0
    close(grad(y.sum(), x)[0], vg.Tensor(2 * before))


def overwrite(x):
    x *= 2.0
    return x * 1.0


@pytest.mark.parametrize(
    "f, message",
    [
        (overwrite, "wrote to a tensor of shape"),
        (lambda x: SCRATCH.__setitem__(0, x[0]) or x * 2, "wrote to a tensor of shape"),
        (lambda x: x[1:], "shares memory with an argument"),
        (lambda x: (y := x * 2, y[1:]), "another result"),
        (lambda x: SCRATCH[1:], "a captured tensor"),
        (lambda x: x * W * V, "computed from another captured tensor"),
        (lambda x: x * HOOKED, "has hooks"),
    ],
)
def test_errors_name_the_cause(f, message):
    with pytest.raises(CheckpointError, match=message):
        vg.checkpoint(f)(leaf(3))


SCRATCH, W, HOOKED = vg.zeros(3), leaf(3), leaf(3)
V = W * 2.0
HOOKED.register_hook(lambda g: g * 2)


@dataclasses.dataclass
class Settings:
    steps: int
    history: list


@pytest.mark.parametrize(
    "argument, write",
    [
        (lambda: np.ones(3), lambda a: a.__setitem__(0, 5.0)),
        (lambda: [np.ones(3)], lambda a: a[0][1:].fill(5.0)),
        (lambda: [1.0], lambda a: a.append(2.0)),
        (lambda: [1.0], lambda a: a.__setitem__(0, 2.0)),
        (dict, lambda a: a.update(k=3)),
        (lambda: Settings(1, []), lambda a: setattr(a, "steps", 2)),
        (lambda: Settings(1, []), lambda a: a.history.append("text")),
    ],
)
@pytest.mark.parametrize("adopt", [False, True])
def test_a_write_to_an_array_or_container_among_the_arguments_is_an_error(argument, write, adopt):
    def f(x, a):
        write(a)
        return x * 2.0

    with pytest.raises(CheckpointError, match="wrote to"):
        vg.checkpoint(f, adopt=adopt)(leaf(3), argument())


def test_arrays_are_passed_themselves():
    x, a = leaf(3), np.ones(3)
    y, same = vg.checkpoint(lambda x, a: (x * a, a))(x, a)
    assert same is a
    a[:] = 5.0
    close(grad(y.sum(), x)[0], vg.ones(3))


@pytest.mark.parametrize("errors", ["raise", "ignore"])
def test_floating_point_errors_are_handled_alike_in_both_runs(errors):
    def f(x):
        try:
            return (1.0 / x)[1:].sum()
        except FloatingPointError:
            return (3.0 * x).sum()

    x = vg.Tensor([0.0, 0.5], requires_grad=True)
    with np.errstate(divide=errors):
        y = vg.checkpoint(f)(x)
    with np.errstate(divide="raise" if errors == "ignore" else "ignore"):
        (slope,) = grad(y, x)
    assert slope.tolist() == ([3.0, 3.0] if errors == "raise" else [0.0, -4.0])


@pytest.mark.parametrize("absorbs", [False, True])
@pytest.mark.parametrize("specialize", [False, True])
@pytest.mark.parametrize("nested", [False, True])
def test_compiled_functions_that_are_compiled_between_the_two_runs(absorbs, specialize, nested, monkeypatch):
    if absorbs:  # nodes of reads, in the run that is not traced
        monkeypatch.setitem(_write_number.__globals__, "MANY_WRITES", -1)

    def step(x):
        total, y = 0.0, vg.zeros(len(x))
        for i in range(len(x)):
            y[i] = vg.sin(x[i]) * x[i - 1]
            total = total + y[i] * y[i - 1]
        return total

    def steps(f, x):
        total = 0.0
        for k in range(4):  # the first ones run the function, the last ones its program
            total = total + f(x * (1 + 0.1 * k))
            x = x + 0.01 * total
        return total

    compiled = vg.compile(step, executor="python", specialize=specialize, adopt=False)
    part = vg.checkpoint(lambda x: steps(compiled, x), adopt=False)
    whole = vg.checkpoint(lambda x: part(x) * part(x * 1.1) + compiled(x), adopt=False) if nested else part
    x = leaf(3)
    expected = steps(step, x) * steps(step, x * 1.1) + step(x) if nested else steps(step, x)
    for _ in range(3):
        value = whole(x)
        for _ in range(3):  # in the meantime
            compiled(x * 2.0)
        close(value, expected)
        close(grad(value, x)[0], grad(expected, x, retain_graph=True)[0])


def product(z):
    b = z * 1.0
    b[1:] += vg.sin(b[:-1])
    return b * z


def rows(f):
    return lambda x: (vg.vmap(f)(vg.stack([x, 2.0 * x])) * vg.Tensor([[1.0], [0.5]])).sum(axis=0)


BODIES = {
    "checkpoint inside": lambda z: vg.checkpoint(product)(z) * 1.5,
    "two checkpoints inside": lambda z: vg.checkpoint(lambda y: vg.checkpoint(product)(y) * y)(z),
    "elements": lambda z: product(z) * z[0] * z[1],
    "a gradient inside": lambda z: vg.func.grad(lambda y: (product(y) ** 2).sum())(z),
}
DOORS = {
    "itself": lambda f: f,
    "in a checkpoint": lambda f: lambda x: vg.checkpoint(f)(x) * 1.0,
    "vmap": rows,
    "functionalize": vg.func.functionalize,
    "compiled": lambda f: vg.compile(lambda x: f(x) * 1.0, executor="python", specialize=False),
    "a gradient": lambda f: vg.func.grad(lambda x: f(x).sum()),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("body", BODIES)
def test_the_second_run_takes_the_paths_of_compiled_functions(body, door):
    """The first calls run the function and trace it; a traced run has no nodes of checkpoints, a plain one has."""
    for specialize in (False, True):
        compiled = vg.compile(BODIES[body], executor="python", specialize=specialize)
        taken = DOORS[door](compiled)
        x = leaf(4)
        expected = grad((DOORS[door](BODIES[body])(x) ** 2).sum(), x)[0]
        for number in range(4):
            value = (vg.checkpoint(taken)(x) ** 2).sum()
            if number == 1:
                rows(compiled)(x)  # calls in the meantime
            close(grad(value, x)[0], expected)


def test_hooks_registered_after_the_call_raise():
    x, w = leaf(3), leaf(3)
    y = vg.checkpoint(lambda x: x * w)(x)
    w.register_hook(lambda g: g * 2)
    with pytest.raises(CheckpointError, match="hook"):
        y.sum().backward()


def test_second_backward_pass():
    x = leaf(3)
    y = vg.checkpoint(lambda x: x * x)(x).sum()
    y.backward(retain_graph=True)
    y.backward()
    close(x.grad, 4 * x)
    with pytest.raises(FreedGraphError, match="checkpointed call"):
        y.backward()


def test_one_result_returned_twice_and_integers():
    x = leaf(3)
    y, again, ranks, plain = vg.checkpoint(lambda x: ((y := x * 3), y, vg.argsort(x), np.arange(2)))(x)
    assert y is again and ranks.dtype.kind == "i" and plain.tolist() == [0, 1]
    close(grad((y * again).sum(), x)[0], 18 * x)
    assert vg.checkpoint(lambda x: x.sum())(x).grad_fn.name() == "CheckpointBackward"


def test_saved_tensor_hooks_see_the_arguments():
    x = leaf(3)
    seen = []
    with vg.autograd.graph.saved_tensors_hooks(lambda t: seen.append(t.shape) or t, lambda t: t):
        y = vg.checkpoint(lambda x: x * x * x)(x)
    assert seen == [(3,)]
    close(grad(y.sum(), x)[0], 3 * x * x)


def test_numbers_times_elements_in_a_traced_checkpoint():
    """Scalars save both factors, even one that no gradient needs; a trace saves only what is needed."""
    x = vg.Tensor([0.7, -1.3], requires_grad=True)
    vg.checkpoint(vg.compile(lambda x: 3.0 * x[0] + (x * x).sum()))(x).backward()
    assert x.grad.tolist() == [pytest.approx(4.4), pytest.approx(-2.6)]


def test_views_that_compiled_functions_return_to_other_modes():
    def view_of_row(a):
        b = a.reshape(1, -1) * 1.0
        row = b[0]
        b *= 0.7
        return row

    compiled = vg.compile(view_of_row, executor="python", specialize=False)

    def even(x):
        row = compiled(x * 1.0)
        with vg.view_replay(True):
            return row[::2] ** 2

    for _ in range(3):
        x = vg.Tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
        (found,) = vg.autograd.grad(vg.checkpoint(even)(x).sum(), x)
        np.testing.assert_allclose(found, [2 * 0.49, 0.0, 6 * 0.49, 0.0])


@pytest.mark.parametrize("replay", [(True, False), (False, True), (True, True)])
def test_views_are_replayed_in_the_backward_pass_as_in_the_call(replay):
    def f(x):
        a = x * 1.0
        v = a[1:]
        a *= x
        v *= 2.0
        return (v * v).sum()

    x = vg.Tensor([0.5, 0.7, 1.1], requires_grad=True)
    with vg.view_replay(replay[0]):
        y = vg.checkpoint(f)(x)
    with vg.view_replay(replay[1]):
        (found,) = vg.autograd.grad(y, x)
    np.testing.assert_allclose(found, [0.0, 16 * 0.7**3, 16 * 1.1**3])


class Shared:
    rng, total = np.random.default_rng(3), vg.zeros(4)

    def noisy(self, x):
        return x * x * self.rng.normal(size=4)

    def counted(self, x):
        self.total.add_(1.0)
        return x * self.total


@pytest.mark.parametrize("function", [Shared().noisy, lambda x: x * x * Shared.rng.normal(size=4)])
def test_generators_that_are_attributes_of_classes(function):
    x = leaf(4)
    y = vg.checkpoint(function)(x)
    np.testing.assert_allclose((grad(y.sum(), x)[0] * x).detach().numpy(), 2 * y.detach().numpy())


def test_writes_to_attributes_of_classes():
    with pytest.raises(CheckpointError, match="wrote to a tensor"):
        vg.checkpoint(Shared().counted)(leaf(4))
