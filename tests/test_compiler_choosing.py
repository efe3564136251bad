"""Which calls of a compiled function run its program, and which the function: both give the same."""

import itertools

import numpy as np
import pytest

import viewgrad as vg
from viewgrad.compiler.callbacks import choosing
from viewgrad.compiler.calls.choosing import Passed, Trial
from viewgrad.compiler.calls.fast_call import FastCall


def timed(monkeypatch, function, program, call):
    """Let the function take so many seconds, and its gradient, its program, and calls of that."""
    now = itertools.count()
    for module in ("choosing", "checking"):
        monkeypatch.setattr(f"viewgrad.compiler.calls.{module}.clock", lambda: function * next(now))
    monkeypatch.setattr(choosing, "LITTLE", 0.0)
    monkeypatch.setattr("viewgrad.compiler.calls.verify._time_of", lambda *args: program)
    monkeypatch.setattr("viewgrad.compiler.calls.verify._time_of_calls", lambda *args: call)
    return vg.compile(lambda x, scale: (x * x).sum() * scale, executor="python")


def called(compiled, number=2.0):
    x = vg.Tensor([1.0, number], requires_grad=True)
    value = compiled(x, 0.5)
    value.backward()
    assert value.item() == 0.5 + number * number / 2
    np.testing.assert_array_equal(x.grad.numpy(), [1.0, number])
    return value.grad_fn.name() == "CompiledBackward"


@pytest.mark.parametrize(
    ("seconds", "program", "call", "kinds", "uses"),
    [
        (1.0, 0.1, 0.1, [], [False, False, True, True, True]),
        (1e-4, 1e-5, 2e-5, [], [False, False, True, True, True]),
        (1e-4, 1e-5, 1.5e-4, [Trial], [False, False, False, False, True]),
        (1e-4, 1e-5, 3e-4, [Trial], [False] * 5),
        (1e-4, 3e-4, 3e-4, [], [False] * 5),
    ],
)
def test_the_faster_one_is_chosen(monkeypatch, seconds, program, call, kinds, uses):
    compiled = timed(monkeypatch, seconds, program, call)
    seen = []
    for number in range(5):
        seen.append(called(compiled, 1.0 + number))
        if number == 1:
            assert [type(way) for way in compiled.directs] == kinds
    assert seen == uses, compiled.explain()
    if not uses[-1]:
        assert isinstance(compiled.directs[0], Passed)
        assert "eagerly" in compiled.explain()


def test_programs_of_calls_that_run_eagerly_serve_gradients(monkeypatch):
    compiled = timed(monkeypatch, 1e-4, 1e-5, 3e-4)
    for _ in range(6):
        assert not called(compiled)
    assert "`value_and_grad` and batches run the program" in compiled.explain()
    value, gradient = compiled.value_and_grad(np.array([1.0, 2.0]), 0.5)
    assert value == 2.5
    np.testing.assert_array_equal(gradient, [1.0, 2.0])
    longer = vg.Tensor([1.0, 2.0, 3.0], requires_grad=True)
    assert compiled(longer, 0.5).item() == 7.0
    assert compiled(longer, scale=2.0).item() == 28.0
    assert len(compiled.entries) == 3


def direct(f, *args, **keywords):
    compiled = vg.compile(f, executor="python")
    for _ in range(4):
        compiled(*args, **keywords)
    assert [type(way) for way in compiled.directs] == [FastCall], compiled.explain()
    return compiled


def test_arguments_of_any_form_go_the_direct_way_and_are_guarded():
    def f(layers, x, *, scale, power=2, names=("a", "b")):
        for name in names:
            x = x * layers[name][0] + layers[name][1]
        return {"total": (x**power).sum() * scale}, [x[0], x]

    def layers(k):
        return {name: (vg.Tensor(k + n, requires_grad=True), np.full(3, 0.5 * k)) for n, name in enumerate("ab")}

    x = vg.Tensor([1.0, 2.0, 3.0])
    compiled = vg.compile(f, executor="python")
    for k in range(6):
        compiled(layers(1.0 + k), x, scale=0.1 * k)
    assert any(type(way) is FastCall for way in compiled.directs)
    calls = [
        (layers(3.0), x, {"scale": 0.7}), (layers(3.0), x * 2, {"scale": 0.3}), (layers(3.0), x, {"scale": 2}),
        (layers(3.0), x, {"scale": 0.7, "power": 3}), (layers(3.0), vg.ones(3), {"scale": 0.7, "names": ("a",)}),
        (layers(3.0) | {"c": 1}, x, {"scale": 0.7}), (layers(3.0), np.ones(3), {"scale": 0.7}),
        (layers(2.0), vg.Tensor([1.0, 2.0, 3.0], requires_grad=True), {"scale": 0.7}),
    ]  # fmt: skip
    for given, x, keywords in calls * 2:
        (found, mine), (wanted, theirs) = compiled(given, x, **keywords), f(given, x, **keywords)
        np.testing.assert_allclose(found["total"].item(), wanted["total"].item(), rtol=1e-13)
        np.testing.assert_allclose(mine[1].detach().numpy(), theirs[1].detach().numpy(), rtol=1e-13)
        leaf = given["a"][0]
        one, two = vg.autograd.grad(found["total"], leaf)[0], vg.autograd.grad(wanted["total"], leaf)[0]
        assert one.item() == pytest.approx(two.item(), rel=1e-12)
        shared = np.shares_memory(mine[0].detach().numpy(), mine[1].detach().numpy())
        assert shared == np.shares_memory(theirs[0].detach().numpy(), theirs[1].detach().numpy())


def test_writes_to_arguments_and_tensors_from_outside_go_the_direct_way():
    weight = vg.Tensor(2.0, requires_grad=True)

    def f(x, out):
        out[1:] = x[:-1] * weight
        return out.sum()

    compiled = direct(f, vg.Tensor([1.0, 2.0, 3.0]), vg.zeros(3))
    for k in range(3):
        with vg.no_grad():
            weight += 1.0
        out = vg.ones(3)
        value = compiled(vg.Tensor([1.0, 2.0, 3.0]) + k, out)
        factor = weight.item()
        np.testing.assert_allclose(out.detach().numpy(), [1.0, (1 + k) * factor, (2 + k) * factor])
        assert value.item() == pytest.approx(out.sum().item())
        assert vg.autograd.grad(value + out[1] * 0.5, weight)[0].item() == 3 + 2 * k + 0.5 * (1 + k)
    both = vg.ones(4)
    assert compiled(both[:3], both[1:]).item() == 1 + 5 + 5


def test_kinds_beyond_the_bound_keep_nothing():
    compiled = vg.compile(lambda x, n: (x * n).sum(), executor="python")
    with pytest.warns(vg.errors.NotCompiledWarning, match="8 kinds of arguments") as warned:
        for n in range(40):
            assert compiled(vg.ones(2), n).item() == 2 * n
            assert compiled(vg.ones(n), 3).item() == 3 * n
    assert len(warned) == 1 and len(compiled.entries) == 9


@pytest.mark.parametrize("function", [
    lambda x: vg.exp(x) / vg.exp(x).sum(axis=1, keepdims=True),
    lambda x: (vg.exp(x) / vg.exp(x).sum(axis=1, keepdims=True)).sum(),
    lambda x: (x - x.mean()).sum(),
])  # fmt: skip
def test_sums_that_cancel_leave_noise_that_is_no_difference(function):
    x = vg.Tensor(np.random.default_rng(0).standard_normal((3, 8)), requires_grad=True)
    compiled = vg.compile(function, executor="python")
    for _ in range(3):
        np.testing.assert_allclose(compiled(x).detach(), function(x).detach(), atol=1e-13)
    assert "compiled, python executor" in compiled.explain()
