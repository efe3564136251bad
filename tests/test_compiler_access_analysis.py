"""Access analysis: which elements each step accesses, and when, for single elements and for rows."""

from __future__ import annotations

import gc
import tracemalloc

import numpy as np
import pytest
from compiled_programs import PROGRAMS

import viewgrad as vg
import viewgrad.compiler.access_analysis as executions_module
from viewgrad.compiler.access_analysis import AccessAnalysis
from viewgrad.compiler.gc_pause import rare_collections
from viewgrad.compiler.granularity import SINGLE
from viewgrad.compiler.loop_ir import Read, Write, steps_of
from viewgrad.compiler.passes import zero_propagation
from viewgrad.compiler.pipeline import compile_graph


def rows_by_columns(x):
    y = vg.zeros((6, 8))
    for i in range(5):
        y[i, :4] = x[i, 4:]
        y[i + 1, 4:] = x[i, :4] * y[i, :4]
    return (y * y).sum()


def compiled_program(f, *arrays):
    compiled = vg.compile(f, executor="python", check=False)
    tensors = [vg.Tensor(array, requires_grad=True) for array in arrays]
    for _ in range(2):
        compiled(*tensors)
    assert compiled.specializations[0].program is not None, compiled.explain()
    return compiled.specializations[0].program


def given(f):
    return PROGRAMS[f](np.random.default_rng(0)) if f in PROGRAMS else (np.ones((5, 8)),)


def touched(executions, step, grain=SINGLE):
    """Return the accesses of a step, with their times."""
    parts = list(executions.accesses(step, grain))
    return [np.concatenate([np.ravel(part[n]) for part in parts]) for n in (0, 1)]


def elements_of(grain, number):
    """Return the elements of a grain."""
    row, part = divmod(int(number), len(grain.begins))
    begins = [*grain.begins, grain.row]
    return range(row * grain.row + begins[part], row * grain.row + begins[part + 1])


def inner(u):
    v = vg.zeros((6, 5, 8))
    for i in range(1, 5):
        v[i, 1:-1, 1:-1] = u[:-2, 1:-1] + v[i - 1, 2:, 2:] * v[i, :3, 0].reshape(3, 1)
    return (v[1:, 1:, :3] ** 2).sum()


@pytest.mark.parametrize("f", [inner, rows_by_columns, *list(PROGRAMS)[:12]])
def test_rows_represent_all_their_elements(f):
    program = compiled_program(f, *given(f))
    for of in (program.program, program.adjoint.backward):
        executions = AccessAnalysis(of)
        for _, step in steps_of(of.block):
            if isinstance(step, (Read, Write)):
                others = [other for _, other in steps_of(of.block) if getattr(other, "base", None) is step.base]
                for steps in ([step], others):
                    grain = executions.grain(steps, step.base.size)
                    assert step.base.size % grain.row == 0
                    places, times = touched(executions, step)
                    grains, grain_times = touched(executions, step, grain)
                    assert len(grains) == executions.access_count(step, grain)
                    found = [(each, time) for g, time in zip(grains, grain_times) for each in elements_of(grain, g)]
                    assert sorted(found) == sorted(zip(places, times))


def test_granularity_of_row_windows_is_their_length():
    program = compiled_program(rows_by_columns, np.ones((5, 8)))
    executions = AccessAnalysis(program.program)
    grains = {
        executions.grain([step], step.base.size) for _, step in steps_of(program.program.block)
        if isinstance(step, (Read, Write)) and step.base.size == 48 and len(step.sizes) == 1
    }  # fmt: skip
    assert {grain.row for grain in grains} == {4}


def test_partial_analyses_agree(monkeypatch):
    for f in list(PROGRAMS)[6:10]:
        sources = []
        for part in (300_000, 5):
            monkeypatch.setattr(executions_module, "PART", part)
            monkeypatch.setattr(zero_propagation, "PART", part)
            sources.append(compiled_program(f, *given(f)).source())
        assert sources[0] == sources[1]


def test_a_program_of_rows_takes_little_memory_to_compile():
    def filled(x):
        y = vg.zeros(x.shape)
        for i in range(len(x)):
            y[i] = x[i] * 2.0
        return (y * y).sum()

    compiled = vg.compile(filled, executor="python", check=False)
    x = vg.ones((200, 1000), requires_grad=True)
    compiled(x)
    tracemalloc.start()
    try:
        compiled(x)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 6_000_000, peak  # twice the table, and less than 2 KB for each of 600 operations


def test_gc_thresholds_are_raised_while_tracing_and_restored():
    before = gc.get_threshold()
    with rare_collections():
        assert gc.get_threshold()[0] > before[0]
        with rare_collections():
            pass
        assert gc.get_threshold()[0] > before[0]
    assert gc.get_threshold() == before
    with rare_collections():
        gc.set_threshold(500)
    assert gc.get_threshold()[0] == 500
    gc.set_threshold(0)
    with rare_collections():
        assert gc.get_threshold()[0] == 0
    gc.set_threshold(*before)


def eliminated(a):
    a = a.clone()
    for k in range(len(a) - 1):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return (a * a).sum()


def diffused(u):
    u = u.clone()
    for _ in range(100):
        u[1:-1, 1:-1] += 0.1 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])
    return (u * u).sum()


@pytest.mark.parametrize(("f", "size"), [(eliminated, 50), (diffused, 200)])
def test_windows_of_many_elements_take_2_kb_an_operation_to_compile(f, size):
    compiled = vg.compile(f, executor="python", check=False)
    compiled(vg.Tensor(np.eye(size) + 1.0 / size, requires_grad=True))
    graph, executor = compiled.specializations[0].trace.graph, compiled.executor
    operations = compile_graph(graph, [0], executor).traced_operations
    peaks = []
    for _ in range(3):  # the first measurement may include the filling of caches
        tracemalloc.start()
        try:
            compile_graph(graph, [0], executor)
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert min(peaks) < 2048 * operations, (peaks, operations)
