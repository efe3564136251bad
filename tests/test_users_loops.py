"""Programs as users write them, compiled: fresh arguments of several sizes, precisions and layouts, all transforms."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
from test_textbook_loops import close, gradients
from users_loops import LOOPS, lu_pivoting

import viewgrad as vg

NUMBA = pytest.mark.skipif(not importlib.util.find_spec("numba"), reason="needs Numba")
QUICK = 40  # each so many-th program is tried in the fast suite
CASES = [pytest.param(f, "python", marks=[pytest.mark.slow] * bool(n % QUICK)) for n, f in enumerate(LOOPS)]
CASES += [pytest.param(f, "numba", marks=[NUMBA, pytest.mark.slow]) for f in LOOPS]
KINDS = [(5, float, "rows"), (8, float, "rows"), (6, np.float32, "rows"), (5, float, "columns"), (6, float, "gaps")]


def tensors(f, size, dtype, layout, seed):
    """The arguments of a program."""
    made = []
    for array in LOOPS[f](np.random.default_rng(seed), size):
        array = np.asarray(array, dtype)
        if layout == "columns":
            tensor = vg.Tensor(np.ascontiguousarray(array.T)).T
        elif layout == "gaps" and array.ndim:
            room = np.zeros(tuple(2 * n for n in array.shape), dtype)
            parts = tuple(slice(None, None, -2) for _ in array.shape)
            room[parts] = array
            tensor = vg.Tensor(room)[parts]
        else:
            tensor = vg.Tensor(array)
        made.append(tensor.detach().requires_grad_())
    return made


def numbers(trees):
    """What some transforms give, as arrays."""
    flat = []
    for tree in trees:
        flat += numbers(tree) if isinstance(tree, (tuple, list)) else [tree.detach().numpy()]
    return flat


@pytest.mark.parametrize(("f", "executor"), CASES)
def test_values_and_derivatives_for_fresh_arguments(f, executor):
    compiled = vg.compile(f, executor=executor)
    for kind in KINDS if executor == "python" else KINDS[:1]:
        is_single = kind[1] is np.float32
        for seed in range(4):
            mine, theirs = tensors(f, *kind, seed), tensors(f, *kind, seed)
            value, expected = compiled(*mine), f(*theirs)
            assert (value.dtype, value.shape) == (expected.dtype, expected.shape)
            np.testing.assert_allclose(value.item(), expected.item(), rtol=1e-3 if is_single else 1e-12)
            twice = seed == 3 and not is_single
            found, wanted = (gradients(v, x, create_graph=twice) for v, x in ((value, mine), (expected, theirs)))
            close(found, wanted, 2e-3 if is_single else 1e-9)
            if twice:
                totals = [sum((g * g).sum() for g in each) for each in (found, wanted)]
                if totals[1].requires_grad:
                    close(gradients(totals[0], mine), gradients(totals[1], theirs), 1e-7)
    if f is not lu_pivoting:  # which values steer another way each time
        assert compiled.specializations[0].program is not None, compiled.explain()


@pytest.mark.parametrize(("f", "executor"), [each for each in CASES if each.values[1] == "python"])
def test_transforms_and_batches(f, executor):
    compiled = vg.compile(f, executor=executor)
    given = [x.detach() for x in tensors(f, 5, float, "rows", 7)]
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

    rows = zip(*[LOOPS[f](np.random.default_rng(seed), 5) for seed in range(4)], strict=True)
    stacked = [vg.Tensor(np.stack([np.asarray(each, float) for each in row]), requires_grad=True) for row in rows]
    weights = vg.Tensor(np.arange(1.0, 5.0))
    batched = vg.compile(f, executor=executor, batch=True)
    for _ in range(2):
        results = batched(*stacked)
    wanted = np.stack([f(*[x[n, ...] for x in stacked]) for n in range(4)])
    np.testing.assert_allclose(results.detach().numpy(), wanted.detach().numpy(), rtol=1e-12)
    close(gradients((results * weights).sum(), stacked), gradients((wanted * weights).sum(), stacked), 1e-9)
