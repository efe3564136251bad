"""Compiled functions whose inputs were computed from one another: derivatives with respect to each of them."""

import numpy as np
import pytest
from dependent_inputs import DependentInputs, check

import viewgrad as vg
from viewgrad.autograd import grad


def plain(x, w):
    return (w * x * x + np.sin(x)).sum()


def loop(x, w):
    y = vg.zeros(len(x))
    for i in range(len(x)):
        y[i] = w[0] * x[i] * x[i] * (x[i - 1] + w[0])
    return y.sum()


def infinite(x, w):  # the program computes 0 * inf, and the gradient is computed by rerunning the function
    y = vg.zeros(3)
    y[:] = w * x
    y[1:] = 0.0
    return (w * x * x).sum() + (np.sqrt(y) * np.array([1.0, 0.0, 0.0])).sum()


def capturing(function, *captured):
    return lambda x: function(x, *captured)


def capturing_twice(function, w):
    table = {"w": w}
    return lambda x: function(x, w) * table["w"].sum()


def capturing_another(function, w):
    v = w * 3.0
    return lambda x: function(x, w) * v.sum()


WAYS = {  # the function of x, and its arguments given x and w
    "arguments": lambda f, x, w: (f, (x * w, w)),
    "arguments in turn": lambda f, x, w: (f, (x, w * x[0])),
    "views": lambda f, x, w: (f, ((y := x * w), y[:1])),
    "captured": lambda f, x, w: (capturing(f, w), (x,)),
    "captured, computed from": lambda f, x, w: (capturing(f, w), (x * w,)),
    "captured, computed from the argument": lambda f, x, w: (capturing(f, x[:1] * 1.0), (x,)),
    "captured twice": lambda f, x, w: (capturing_twice(f, w), (x * w,)),
    "captured with another": lambda f, x, w: (capturing_another(f, w), (x * w,)),
}


def derivatives(function, way, options, order):
    """The derivatives of some order with respect to x and w, in four calls, with other numbers where possible."""
    found, called = [], None
    for k in range(4):
        if k == 0 or "captured" not in way:
            x = vg.Tensor(np.array([1.0, 2.0, 3.0]) + 0.1 * k, requires_grad=True)
            w = vg.Tensor([2.0], requires_grad=True)
            made, args = WAYS[way](function, x, w)
            called = made if options is None else called or vg.compile(made, executor="python", **options)
        y = called(*args)
        for n in range(order - 1):
            (first,) = grad(y, [x, w][n % 2], create_graph=True)
            y = first.sum() + 0.0 * (x.sum() + w.sum())
        found += [each.tolist() for each in grad(y, [x, w], retain_graph=True, materialize_grads=True)]
    return found


OPTIONS = [{"specialize": False}, {"specialize": True}, {"specialize": False, "check": False}]


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("function", [plain, loop, infinite])
def test_derivatives_with_respect_to_dependent_inputs(function, way, options, order):
    with np.errstate(all="ignore"):
        expected = derivatives(function, way, None, order)
        for ours, other in zip(derivatives(function, way, options, order), expected, strict=True):
            np.testing.assert_allclose(ours, other, rtol=1e-9)


@pytest.mark.parametrize("seed", range(50))
def test_drawn_functions_of_dependent_inputs(seed):
    check(DependentInputs(seed))


@pytest.mark.parametrize("specialize", [False, True])
@pytest.mark.parametrize("order", [1, 2])
def test_dependent_inputs_of_a_batch(specialize, order):
    def each(x, w):
        return (w * x * x).sum()

    compiled = vg.compile(each, executor="python", specialize=specialize, batch=("x",))
    for _ in range(3):
        w = vg.Tensor([2.0], requires_grad=True)
        x = w * np.array([[1.0, 2.0], [3.0, 4.0]])
        total = compiled(x, w).sum()
        for _ in range(order - 1):
            (total,) = grad(total, w, create_graph=True)
        assert grad(total.sum(), w)[0].tolist() == [[360.0], [360.0]][order - 1]


@pytest.mark.parametrize("specialize", [False, True])
def test_one_number_passed_twice(specialize):
    compiled = vg.compile(lambda a, b: a * a * b, executor="python", specialize=specialize)
    for _ in range(3):
        x = vg.Tensor([2.0], requires_grad=True)
        s = x.sum()
        y = compiled(s, s)
        (first,) = grad(y, x, create_graph=True)
        assert (first.tolist(), grad(first.sum(), x)[0].tolist()) == ([12.0], [12.0])


# -- state that changes between a call and its gradient ----------------------------------------------------------------


class Settings:
    pass


STATE = {  # what a function reads, and a change of it
    "attribute": (lambda s: s.factor, lambda s: setattr(s, "factor", 5.0)),
    "list": (lambda s: s.items[0], lambda s: s.items.__setitem__(0, 5.0)),
    "array": (lambda s: s.array[0], lambda s: s.array.fill(5.0)),
    "tensor": (lambda s: s.tensor[0], lambda s: s.tensor.fill_(5.0)),
    "other tensor": (lambda s: s.tensor[0], lambda s: setattr(s, "tensor", vg.Tensor([5.0]))),
    "function": (lambda s: s.function(2.0), lambda s: setattr(s, "function", lambda v: v + 3.0)),
    "nothing": (lambda s: s.factor, lambda s: None),
}


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("specialize", [False, True])
@pytest.mark.parametrize("name", STATE)
@pytest.mark.parametrize("added", [0.0, 9.0])  # with 0.0, the first gradient needs a second run
def test_state_that_changes_between_a_call_and_its_gradient(name, specialize, order, added):
    read, change = STATE[name]

    def made():
        settings = Settings()
        settings.factor = 2.0
        settings.items, settings.array, settings.tensor = [2.0], np.array([2.0]), vg.Tensor([2.0])
        settings.function = lambda v: v * 1.0
        return settings

    settings = made()

    def f(x):
        y = vg.zeros(3)
        for i in range(3):
            y[i] = x[i] ** 3 * read(settings)
        return (y * np.sqrt(x - x[0] + added)).sum()

    compiled = vg.compile(f, executor="python", specialize=specialize)
    found = {}
    for called in (f, compiled, compiled, compiled):
        vars(settings).update(vars(made()))
        x = vg.Tensor([1.0, 2.0, 3.0], requires_grad=True)
        with np.errstate(all="ignore"):
            y = called(x * 1.0)
            change(settings)
            try:
                for n in range(order):
                    (y,) = grad(y.sum(), x, create_graph=n < order - 1)
            except vg.errors.SavedValueError:
                assert called is compiled and not specialize and name != "nothing" and (order == 3 or not added)
                continue
        np.testing.assert_allclose(y.tolist(), found.setdefault("expected", y.tolist()), rtol=1e-9)


@pytest.mark.parametrize("specialize", [False, True])
def test_a_batch_of_an_array_that_is_written_to_before_the_gradient(specialize):
    compiled = vg.compile(
        lambda x, w: (w * w * x * x).sum(), executor="python", specialize=specialize, batch=("x",)
    )
    for order in (1, 1, 1, 2, 2):
        x, w = np.array([[1.0, 2.0], [3.0, 4.0]]), vg.Tensor([2.0], requires_grad=True)
        y = compiled(x, w).sum()
        x[...] = 0.0
        for n in range(order):
            (y,) = grad(y.sum(), w, create_graph=n < order - 1)
        assert y.tolist() == [[120.0], [60.0]][order - 1]


# -- the comparison of the first run -----------------------------------------------------------------------------------


@pytest.mark.parametrize("specialize", [False, True])
@pytest.mark.parametrize("order", [1, 2])
def test_the_comparison_of_the_first_run_calls_no_hooks(specialize, order):
    compiled = vg.compile(loop, executor="python", specialize=specialize)
    calls = []
    for function in (loop, compiled, compiled, compiled):
        calls.clear()
        w = vg.Tensor([2.0], requires_grad=True)
        below = w * np.array([1.0, 2.0, 3.0])
        x = below * 1.0
        kept = w * 1.0
        for tensor in (below, x, kept, w):
            tensor.register_hook(lambda g: calls.append(g.detach().tolist()))
        x.retain_grad()
        below.retain_grad()
        loss = function(x, kept)
        assert not calls and x.grad is None and below.grad is None
        loss.backward(create_graph=order == 2)
        if order == 2:
            (below.grad * x.grad).sum().backward()
        found = [sorted(calls), x.grad.tolist(), below.grad.tolist(), w.grad.tolist()]
        if function is loop:
            expected = found
        assert found == expected


@pytest.mark.parametrize("specialize", [False, True])
def test_gradients_of_the_first_run_are_compared(specialize, monkeypatch):
    for name in ("calls", "source"):
        wrong = lambda outputs, inputs, *args, **kwargs: [vg.ones(3) * 7.0] * len(inputs)
        monkeypatch.setattr(f"viewgrad.compiler.{name}.verify.eager_grad", wrong)
    compiled = vg.compile(loop, executor="python", specialize=specialize)
    w = vg.Tensor([2.0], requires_grad=True)
    try:
        for _ in range(3):
            compiled(w * np.array([1.0, 2.0, 3.0]), w)
    except vg.errors.CompiledMismatchError:
        return
    assert "different gradient" in compiled.explain()
