"""Memory of compiled functions is released when they are dropped."""

from __future__ import annotations

import collections
import gc
import importlib.util
import itertools
import linecache
import warnings

import numpy as np
import pytest

import viewgrad as vg
from viewgrad.compiler import reroll
from viewgrad.compiler.backends import numba_cache

EXECUTORS = [
    "python",
    pytest.param(
        "numba",
        marks=[pytest.mark.slow, pytest.mark.skipif(not importlib.util.find_spec("numba"), reason="needs Numba")],
    ),
]

BOUNDED = ("TensorType", "SavedConstant", "Tensor")  # kept to be found again, up to a limit


def use_one(executor: str, number: int) -> None:
    """Compile a new function, call it, differentiate it twice, and make its guards fail."""
    names = {"np": np, "vg": vg}
    source = f"""
def f(x, w):
    y = vg.zeros(12)
    y[0] = x[0] * {number}.5
    for t in range(1, 12):
        y[t] = w[{number % 3}] * x[t] + y[t - 1] * {number + 1}.25
    if y[{number % 12}] > {1e9 - number}:
        return (y * y).sum()
    z = np.{("sin", "cos")[number % 2]}(x.reshape(3, 4)[:, :{number % 4 + 1}] * w[0])
    return y.sum() + z.sum() + np.linalg.det(x.reshape(3, 4)[:, :3] + np.eye(3) * {number})
"""
    exec(source, names)
    compiled = vg.compile(names["f"], executor=executor)
    for call in range(4):
        x = vg.Tensor(np.linspace(0.1, 0.9, 12), requires_grad=True)
        w = vg.Tensor([0.5, 0.25, 0.125 * (1 if call < 3 else 1e11)], requires_grad=True)
        (first,) = vg.autograd.grad(compiled(x, w), [x], create_graph=True)
        vg.autograd.grad(first.sum(), [x, w], allow_unused=True)
    assert "compiled" in compiled.explain()
    function = vg.symbolic.function_of(lambda a: np.exp(a * number).sum(), vg.ones(number + 2))
    function(vg.ones(number + 2))


def kept() -> tuple[dict[str, int], set[str]]:
    """Return the number of objects of the library by type, and the generated sources in `linecache`."""
    for _ in range(3):
        gc.collect()
    modules = [(str(type(each).__module__), type(each).__qualname__) for each in gc.get_objects()]
    counts = collections.Counter(
        f"{module}.{name}"
        for module, name in modules
        if (module.startswith("viewgrad") or name in ("function", "CPUDispatcher")) and name not in BOUNDED
    )
    return dict(counts), {name for name in linecache.cache if name.startswith("<viewgrad")}


@pytest.mark.parametrize("executor", EXECUTORS)
def test_functions_that_are_dropped_leave_no_objects_and_no_sources(executor, monkeypatch):
    monkeypatch.setenv("VIEWGRAD_CACHE", "0")

    def used(numbers):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for number in numbers:
                use_one(executor, number)
        numba_cache._shared.cache_clear()  # the last few hundred are kept on purpose
        return kept()

    # Operators are registered on first use. Tables of weak references are pruned occasionally.
    counts, sources = zip(*[used(range(number, number + 2)) for number in range(0, 10, 2)])
    assert all(each == sources[0] for each in sources)
    more = {name for name in counts[-1] if all(a.get(name, 0) < b.get(name, 0) for a, b in itertools.pairwise(counts))}
    assert more <= ({"builtins.function"} if executor == "numba" else set())  # some of Numba's own


def test_a_source_is_listed_as_long_as_the_function_lives():
    compiled = vg.compile(lambda x: (x * 3.5).sum(), executor="python")
    for _ in range(3):
        compiled(vg.ones(4))
    program = compiled.specializations[0].program
    name = program.code.forward.__code__.co_filename
    linecache.checkcache()
    assert "".join(linecache.getlines(name)) == program.code.forward_kernel.source
    del compiled, program
    gc.collect()
    assert name not in linecache.cache


def test_structure_numbers_belong_to_one_stream():
    first, second = reroll.LoopReroller(), reroll.LoopReroller()
    assert first.structures.number_of("a") == second.structures.number_of("b") == 0
    assert second.structures[0] == "b"
