"""Drawn programs, compiled from their source, against eager values and gradients, at several lengths."""

import pytest
from drawn_sources import arguments, differences, drawn

import viewgrad as vg
from viewgrad.compiler.source.build import build
from viewgrad.compiler.source.read import Reader
from viewgrad.compiler.source.values import NotSupported

LENGTHS = (5, 6, 1, 3, 11)
BATCH = 25

pytestmark = pytest.mark.usefixtures("verified_ir")  # an invalid program is a defect, which `check` reports


@pytest.fixture(autouse=True)
def gradients_by_programs(monkeypatch):
    """Make an error in the reverse of a program a failure instead of a fallback to the function."""

    def fail(*given):
        raise AssertionError("the reverse of a program raised an error")

    monkeypatch.setattr("viewgrad.compiler.source.node.SourceBackward._by_replay", fail)


def check(seed, whole, executor, objects=False):
    """Compare a drawn program with its compiled form, which must be compiled once, and from its source."""
    program, text = drawn(seed, whole, objects)
    compiled = vg.compile(program, executor=executor, check=False, specialize=False)
    wrong = differences(program, compiled, seed, LENGTHS)
    assert not wrong, f"{wrong}\n{text}"
    (entries,) = compiled.tier.specializations.values()
    assert len(entries) == 1
    assert "defect" not in entries[0].reason, f"{entries[0].reason}\n{text}"
    return entries[0].source is not None or "runs in a row" in entries[0].reason


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("batch", range(8))
def test_drawn_programs_by_python(batch, whole):
    taken = sum(check(10_000 * whole + seed, whole, "python") for seed in range(batch * BATCH, (batch + 1) * BATCH))
    assert taken > 0.9 * BATCH


@pytest.mark.parametrize("batch", range(4))
def test_drawn_programs_with_lists_and_objects(batch):
    seeds = range(batch * BATCH, (batch + 1) * BATCH)
    taken = sum(check(40_000 + seed, bool(seed % 2), "python", objects=True) for seed in seeds)
    assert taken > 0.7 * BATCH


@pytest.mark.parametrize("objects", [False, True])
def test_ir_of_drawn_programs_for_kernels_is_valid_after_each_pass(objects, monkeypatch):
    monkeypatch.setattr("viewgrad.compiler.source.build.load", lambda *given: (None, None))  # no kernel is compiled
    taken = 0
    for seed in range(60_000, 60_000 + BATCH):
        program, _ = drawn(seed, bool(seed % 2), objects)
        floats = arguments(seed, 5)
        given = (*[vg.Tensor(each, requires_grad=True) for each in floats[:3]], *floats[3:])
        try:
            source = Reader().source(program, given, {})
            wanted = [n for n, each in enumerate(source.inputs) if each.path.is_argument and each.path.root < 3]
            build(source, wanted, "numba", False)
        except NotSupported:
            continue
        taken += 1
    assert taken > 0.7 * BATCH


@pytest.mark.parametrize("whole", [False, True])
def test_drawn_programs_by_numba(whole):
    pytest.importorskip("numba")
    for seed in range(4):
        check(20_000 + seed, whole, "numba")
    check(50_000, whole, "numba", objects=True)


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(20))
@pytest.mark.parametrize("whole", [False, True])
def test_many_drawn_programs_by_numba(batch, whole):
    pytest.importorskip("numba")
    for seed in range(batch * 20, batch * 20 + 20):
        check(30_000 + seed, whole, "numba", objects=batch % 2 == 1)
