"""The corpus of loop programs, compiled: results and transforms for new arguments equal those of eager runs."""

from __future__ import annotations

import functools
import importlib.util

import numpy as np
import pytest
from loop_corpus import CORPUS, chosen, leaves

import viewgrad as vg

NUMBA = pytest.mark.skipif(not importlib.util.find_spec("numba"), reason="needs Numba")
# Sizes, dtypes and layouts of arguments, for programs that take any.
KINDS = [(5, float, "rows"), (8, float, "rows"), (6, np.float32, "rows"), (5, float, "columns"), (6, float, "gaps")]
BY_NUMBA = [
    pytest.param(name, marks=[NUMBA, pytest.mark.numba, *[pytest.mark.slow] * ("short" not in CORPUS[name].tags)])
    for name in CORPUS
]


def gradients(value, given, **options):
    tensors = [each for each in given if isinstance(each, vg.Tensor)]
    found = vg.autograd.grad(value, tensors, allow_unused=True, **options)
    return [vg.zeros(leaf.shape) if g is None else g for g, leaf in zip(found, tensors)]


def close(found, wanted, rtol):
    for one, other in zip(found, wanted, strict=True):
        one, other = one.detach().numpy(), other.detach().numpy()
        np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol * (1 + np.abs(other).max(initial=0)))


@functools.lru_cache(maxsize=4)
def built(name, executor):
    """Return the compiled function of a program, cached between consecutive tests."""
    return vg.compile(CORPUS[name].function, executor=executor)


def check(name, executor, kinds, seeds):
    """Compare values and gradients for the arguments of some seeds, and second derivatives for the last one."""
    function, compiled = CORPUS[name].function, built(name, executor)
    for kind in kinds:
        is_single = kind[1] is np.float32
        for n, seed in enumerate(seeds):
            mine, theirs = leaves(name, seed, *kind), leaves(name, seed, *kind)
            value, expected = compiled(*mine), function(*theirs)
            assert (value.dtype, value.shape) == (expected.dtype, expected.shape)
            np.testing.assert_allclose(value.item(), expected.item(), rtol=1e-3 if is_single else 1e-12)
            twice = n == len(seeds) - 1 and not is_single
            found, wanted = (gradients(v, x, create_graph=twice) for v, x in ((value, mine), (expected, theirs)))
            close(found, wanted, 2e-3 if is_single else 1e-9)
            if twice:
                totals = [sum((g * g).sum() for g in each if g.requires_grad) for each in (found, wanted)]
                if getattr(totals[1], "requires_grad", False):
                    close(gradients(totals[0], mine), gradients(totals[1], theirs), 1e-7)
    if "steered" not in CORPUS[name].tags:
        assert value.grad_fn.name() == "CompiledBackward", compiled.explain()


@pytest.mark.parametrize("name", CORPUS)
@pytest.mark.filterwarnings("ignore::viewgrad.errors.NotCompiledWarning")  # control flow depends on values
def test_values_and_derivatives(name):
    tags = CORPUS[name].tags
    if "sized" in tags:
        check(name, "python", KINDS[: 3 if "row order" in tags else None], range(4))
    else:  # integers among the arguments are parts of the program, which is compiled when they come again
        check(name, "python", KINDS[:1], (0, 1, 2, 3, 3, 3))


@pytest.mark.parametrize("name", BY_NUMBA)
@pytest.mark.filterwarnings("ignore::viewgrad.errors.NotCompiledWarning")
def test_values_and_derivatives_by_numba(name):
    check(name, "numba", KINDS[:1], (0, 1, 2, 3, 3, 3))


@pytest.mark.parametrize("name", chosen("sized"))
@pytest.mark.filterwarnings("ignore::viewgrad.errors.NotCompiledWarning")
def test_transforms_and_batches(name):
    f, draw, _ = CORPUS[name]
    compiled = built(name, "python")
    given = [x.detach() for x in leaves(name, 7)]
    directions = tuple(vg.Tensor(np.cos(np.arange(x.size)).reshape(x.shape)) for x in given)
    places = tuple(range(len(given)))
    seen = []
    for function in (compiled, f):
        for _ in range(3):
            found = [vg.func.value_and_grad(function, argnums=places)(*given)]
        found.append(vg.func.jvp(function, tuple(given), directions))
        if given[-1].size < 30:
            found.append([vg.func.hessian(function, argnums=len(given) - 1)(*given)])
        seen.append(numbers(found))
    for one, other in zip(*seen, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-8 * (1e-3 + np.abs(other).max(initial=0)))

    rows = zip(*[draw(np.random.default_rng(seed), 5) for seed in range(4)], strict=True)
    stacked = [vg.Tensor(np.stack([np.asarray(each, float) for each in row]), requires_grad=True) for row in rows]
    weights = vg.Tensor(np.arange(1.0, 5.0))
    batched = vg.compile(f, executor="python", batch=True)
    for _ in range(2):
        results = batched(*stacked)
    wanted = np.stack([f(*[x[n, ...] for x in stacked]) for n in range(4)])
    np.testing.assert_allclose(results.detach().numpy(), wanted.detach().numpy(), rtol=1e-12)
    close(gradients((results * weights).sum(), stacked), gradients((wanted * weights).sum(), stacked), 1e-9)


def numbers(trees):
    """Return the results of some transforms as arrays."""
    flat = []
    for tree in trees:
        flat += numbers(tree) if isinstance(tree, (tuple, list)) else [tree.detach().numpy()]
    return flat


def test_tags_choose_programs():
    assert len(CORPUS) >= 150
    assert len(chosen("sized")) >= 70 and chosen("sized", but=["users"]) == []
    assert chosen("steered", "users") == ["users_lu_pivoting"]
    assert len(chosen("short")) == 5


# -- what single loops show -----------------------------------------------------------------------------------------


def test_integer_arrays_in_control_flow_are_constants_of_the_program():
    def scattered(x, groups):
        totals = vg.zeros(4)
        for value, group in zip(x, groups.tolist()):
            totals[group] = totals[group] + value * value
        return (totals**2).sum()

    compiled = vg.compile(scattered, executor="python")
    rng = np.random.default_rng(0)
    for groups in [rng.integers(0, 4, 12) for _ in range(3)] * 4:
        x = vg.Tensor(rng.normal(size=12), requires_grad=True)
        value = compiled(x, groups)
        np.testing.assert_allclose(value.item(), scattered(x, groups).item(), rtol=1e-12)
        close(gradients(value, [x]), gradients(scattered(x, groups), [x]), 1e-10)
    assert value.grad_fn.name() == "CompiledBackward", compiled.explain()


@NUMBA
def test_known_zero_gradients_are_neither_read_nor_written():
    def smoothed(rate, y):
        level = vg.zeros(len(y))
        level[0] = y[0]
        for t in range(1, len(y)):
            level[t] = level[t - 1] + rate * (y[t] - level[t - 1])
        return level[len(y) - 1] * 1.0

    compiled = vg.compile(smoothed, executor="numba")
    for _ in range(3):
        compiled(vg.Tensor(0.3, requires_grad=True), vg.Tensor(np.arange(9.0), requires_grad=True))
    backward = compiled.source().partition("# backward")[2]
    assert "] = 0.0" not in backward and "dm1[i4 + 1] = " in backward, backward


def test_memory_of_runs_is_reused_and_not_exposed():
    def rows(x):
        y = vg.zeros(x.shape)
        for i in range(len(x)):
            y[i] = x[i] * x[i]
        return y.sum(), y

    compiled = vg.compile(rows, executor="python")
    rng = np.random.default_rng(0)
    kept = []
    for _ in range(6):
        x = vg.Tensor(rng.normal(size=(20, 1000)), requires_grad=True)
        value, y = compiled(x)
        (grad,) = vg.autograd.grad(value, x, retain_graph=True)
        (again,) = vg.autograd.grad(value + y[3, 4] * 2.0, x)
        kept.append((x, y, grad, again))
    for x, y, grad, again in kept:
        array = x.detach().numpy()
        np.testing.assert_array_equal(y.detach().numpy(), array * array)
        np.testing.assert_array_equal(grad.numpy(), 2 * array)
        assert again[3, 4].item() == pytest.approx(6 * array[3, 4])


@pytest.mark.parametrize("executor", ["python", pytest.param("numba", marks=[NUMBA, pytest.mark.slow])])
def test_arrays_without_elements(executor):
    def f(x, y):
        z = x.clone()
        part = x[:0] * 2.0
        part[...] = y[:0]
        z[1:1] = 3.0
        return (x * x).sum() + (part * part).sum() + z[:0].sum() + (y * 2.0).sum()

    for shape in [(0, 2), (3, 0), (3, 2)]:
        compiled = vg.compile(f, executor=executor)
        for _ in range(3):
            x, y = (vg.Tensor(np.ones(shape) + k, requires_grad=True) for k in range(2))
            value = compiled(x, y)
            np.testing.assert_allclose(value.item(), f(x, y).item())
            close(gradients(value, [x, y]), gradients(f(x, y), [x, y]), 1e-12)
