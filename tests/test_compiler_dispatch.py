"""Dispatch of compiled calls to the program or the function."""

import numpy as np
import pytest

import viewgrad as vg


def test_even_small_programs_run_from_the_third_call():
    compiled = vg.compile(lambda x: x * 2.0, executor="python")
    names = []
    for number in range(5):
        x = vg.Tensor(1.0 + number, requires_grad=True)
        names.append(compiled(x).grad_fn.name())
    assert names == ["MulBackward"] * 2 + ["CompiledBackward"] * 3
    assert "little to gain" in compiled.explain()


def test_dispatch_does_not_depend_on_timing(monkeypatch):
    def forbidden(*args):
        raise AssertionError("a clock was read")

    for name in ("time", "perf_counter", "process_time", "thread_time", "monotonic"):
        monkeypatch.setattr(f"time.{name}", forbidden)
    batched = vg.compile(lambda x: (x * x).sum(), batch=True, executor="python")
    x = vg.Tensor(np.arange(8.0).reshape(4, 2), requires_grad=True)
    for _ in range(3):
        batched(x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 6 * x.detach().numpy())


def test_uncompilable_calls_are_recognised_by_signature():
    def draws(x, scale):
        return (x * np.random.default_rng().random()).sum() * 0 + x.sum() * scale

    compiled = vg.compile(draws, executor="python")
    for number in range(4):
        assert compiled(vg.Tensor([1.0, number]), 2.0).item() == 2 + 2 * number
    assert len(compiled.cache.eager_calls) == 1 and not compiled.cache.fast_calls
    longer = vg.Tensor([1.0, 2.0, 3.0])
    assert compiled(longer, scale=2.0).item() == 12.0


def direct(f, *args, **keywords):
    compiled = vg.compile(f, executor="python")
    for _ in range(4):
        compiled(*args, **keywords)
    assert len(compiled.cache.fast_calls) == 1, compiled.explain()
    return compiled


def test_fast_calls_with_arguments_of_any_form_are_guarded():
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
    assert compiled.cache.fast_calls
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


def test_fast_calls_with_writes_to_arguments_and_captured_tensors():
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


@pytest.mark.slow
def test_overflowing_specializations_keep_nothing():
    compiled = vg.compile(lambda x, n: (x * n).sum(), executor="python")
    with pytest.warns(vg.errors.NotCompiledWarning, match="shapes, dtypes or numbers") as warned:
        for n in range(40):
            assert compiled(vg.ones(2), n).item() == 2 * n
            assert compiled(vg.ones(n), 3).item() == 3 * n
    assert len(warned) == 1 and len(compiled.specializations) == 9


@pytest.mark.parametrize("function", [
    lambda x: vg.exp(x) / vg.exp(x).sum(axis=1, keepdims=True),
    lambda x: (vg.exp(x) / vg.exp(x).sum(axis=1, keepdims=True)).sum(),
    lambda x: (x - x.mean()).sum(),
])  # fmt: skip
def test_noise_of_cancelling_sums_is_not_a_mismatch(function):
    x = vg.Tensor(np.random.default_rng(0).standard_normal((3, 8)), requires_grad=True)
    compiled = vg.compile(function, executor="python")
    for _ in range(3):
        np.testing.assert_allclose(compiled(x).detach(), function(x).detach(), atol=1e-13)
    assert "compiled, python executor" in compiled.explain()


def test_equal_integers_and_floats_are_different_calls():
    compiled = vg.compile(lambda x: x * 2, executor="python")
    for dtype in (np.float64, np.float64, np.float64, np.int64, np.float64):
        result = compiled(vg.Tensor(np.array([1, 2, 3], dtype)))
        assert result.dtype == dtype
        assert result.tolist() == [2, 4, 6]


def bound_again(x):
    y = x
    x += 1
    return y * x


@pytest.mark.parametrize("specialize", [True, False], ids=["traces", "source"])
@pytest.mark.parametrize("scalar_first", [True, False])
def test_scalars_and_0d_arrays_are_distinguished(scalar_first, specialize):
    compiled = vg.compile(bound_again, executor="python", specialize=specialize)
    kinds = [(lambda x: (x * 1)[0], (6.0, 5.0)), (lambda x: (x * 1)[0, ...], (9.0, 6.0))]
    for take, expected in kinds if scalar_first else kinds[::-1]:
        for _ in range(3):
            x = vg.Tensor([2.0], requires_grad=True)
            value = compiled(take(x))
            assert (value.item(), vg.autograd.grad(value, x)[0].item()) == expected


@pytest.mark.parametrize("specialize", [True, False], ids=["traces", "source"])
def test_numbers_are_scalars_for_compiled_functions(specialize):
    compiled = vg.compile(bound_again, executor="python", specialize=specialize)
    for number in (2.0, np.float64(2.0), 2.0):
        for _ in range(3):
            assert vg.value_and_grad(compiled)(number) == (6.0, 5.0)
            assert compiled.value_and_grad(number) == (6.0, 5.0)
            assert compiled(number) == 6.0
    assert vg.func.jvp(compiled, (2.0,), (1.0,)) == (6.0, 5.0)
    assert (vg.func.jacfwd(compiled)(2.0), vg.hessian(compiled)(2.0)) == (5.0, 2.0)
