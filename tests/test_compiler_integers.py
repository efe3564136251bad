"""Integers and bools in compiled programs: computed, written, converted and returned as by NumPy."""

from __future__ import annotations

import importlib.util
import warnings

import drawn_integers
import numpy as np
import pytest
from interpreted_kernels import compiled_by
from test_compiler_programs import close, everything

import viewgrad as vg

EXECUTORS = ["python", "interpreted"]
LARGE = 2**53 + 1  # is not a float
needs_numba = pytest.mark.skipif(not importlib.util.find_spec("numba"), reason="needs Numba")
NUMBA = pytest.param("numba", marks=[needs_numba, pytest.mark.slow])


def check(function, calls, executor="python"):
    """Compare the values of a function with those of the compiled one, which is called without being compared."""
    compiled = compiled_by(executor, function, check=False)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for args in calls:
            found, wanted = compiled(*args), function(*args)
            for one, other in zip(*(each if isinstance(each, tuple) else (each,) for each in (found, wanted))):
                assert one.dtype == other.dtype
                assert np.array_equal(one.numpy(), other.numpy(), equal_nan=one.dtype.kind == "f"), (one, other)
    return compiled


def check_compiled(function, calls, executor="python"):
    """Check a function whose program must run in each call but the first."""
    compiled = check(function, calls, executor)
    assert compiled.specializations[-1].runs == len(calls) - 1, compiled.explain()
    return compiled


def viterbi(steps, seen):
    n = len(steps)
    score, back = vg.zeros(seen.shape), vg.zeros(seen.shape, dtype=int)
    score[0] = seen[0]
    for t in range(1, len(seen)):
        for j in range(n):
            ways = score[t - 1] + steps[:, j]
            back[t, j] = np.argmax(ways)
            score[t, j] = ways.max() + seen[t, j]
    return score[-1].max(), back


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_table_of_backpointers_is_compiled_as_loops(executor):
    rng = np.random.default_rng(0)
    calls = [(vg.Tensor(rng.normal(size=(3, 3))), vg.Tensor(rng.normal(size=(7, 3)))) for _ in range(4)]
    compiled = check_compiled(viterbi, calls, executor)
    assert "3 times" in compiled.explain()


def test_a_backpointer_path_is_guarded():
    def followed(steps, seen):
        best, back = viterbi(steps, seen)
        j, total = int(np.argmax(seen[-1])), 0.0
        for t in range(len(seen) - 1, 0, -1):
            total = total + seen[t, j]
            j = int(back[t, j])
        return best + total

    rng = np.random.default_rng(1)
    steps, seen = rng.normal(size=(3, 3)), rng.normal(size=(5, 3))
    check_compiled(followed, [(vg.Tensor(steps), vg.Tensor(seen * scale)) for scale in (1, 1.001, 1.002)])
    check(followed, [(vg.Tensor(steps), vg.Tensor(seen * scale)) for scale in (1, 1.001, -1, -2, 1)])


@pytest.mark.parametrize("executor", EXECUTORS)
def test_integer_counters(executor):
    def counts(x):
        count, seen = vg.zeros(3, dtype=int), vg.zeros((), dtype=int)
        for i in range(len(x)):
            count[i % 3] += 1
            seen[...] = seen + (x[i] > 0)
        return count, seen, (x[:3] * count).sum() / seen

    check_compiled(counts, [(vg.Tensor(np.sin(np.arange(9.0) + call)),) for call in range(4)], executor)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_integers_wrap_and_divide_as_in_numpy(executor):
    def arithmetic(n, d):
        singles = [n[i] * d[i] + n[i] for i in range(4)]
        table = vg.zeros((4, 6), dtype=int)
        for i in range(4):
            table[i, 0], table[i, 1], table[i, 2] = n[i] // d[i], n[i] % d[i], n[i] * n[i]
            table[i, 3], table[i, 4], table[i, 5] = abs(n[i]), -n[i], np.minimum(n[i], d[i]) - 2**62
        return n + d, n - d, n * d, n // d, n % d, abs(n), -n, n / d, np.square(n), table, np.stack(singles), n.sum()

    lowest = -(2**63)
    pairs = [([lowest, 2**63 - 1, -7, 7], [-1, 2, 0, -2]), ([5, -5, LARGE, lowest], [3, 3, 1, 0]), ([1] * 4, [9] * 4)]
    check_compiled(arithmetic, [tuple(vg.Tensor(np.array(each)) for each in pair) for pair in pairs], executor)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_floats_are_truncated_to_integers(executor):
    def cut(x):
        single, whole = vg.zeros(len(x), dtype=int), vg.zeros(len(x), dtype=int)
        truths = vg.zeros(len(x), dtype=bool)
        for i in range(len(x)):
            single[i] = x[i].astype(int)
            truths[i] = x[i]
        whole[:] = x * 1.0
        return single, whole, truths, x.astype(int), x.astype(bool), single.astype(float) / 2, (x > 0.5).astype(int)

    wild = [1.9, -1.9, -0.0, np.nan, np.inf, -np.inf, 1e19, -1e19, 2.0**63, 2.0**62]
    check_compiled(cut, [(vg.Tensor(np.roll(wild, call)),) for call in range(3)], executor)


def test_nan_and_infinity_written_to_integers_match_eager():
    def written(x):
        found = vg.zeros(len(x), dtype=int)
        for i in range(len(x)):
            found[i] = x[i]
        return found

    for wild in (np.nan, np.inf, 1e19):
        compiled = vg.compile(written, executor="python", check=False)
        for call in range(3):
            assert compiled(vg.Tensor([1.9, -1.9 - call])).tolist() == [1, -1 - call]
        assert compiled.specializations[-1].runs == 2
        outcomes = []
        for function in (written, compiled):
            try:
                with np.errstate(invalid="ignore"):
                    outcomes.append(function(vg.Tensor([1.0, wild])).tolist())
            except (ValueError, OverflowError) as error:
                outcomes.append(str(error))
        assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("executor", [*EXECUTORS, NUMBA])
def test_integers_above_2_53_are_exact(executor):
    def exact(n, x):
        kept = vg.zeros(3, dtype=int)
        for i in range(3):
            kept[i] = n[i] + 1
        found = np.cumsum(kept), n == n[0] + 0.0, n > x, np.where(n > x, n, -7), n / 3, n.max(), n.copy(), n @ kept
        return *found, kept, n.astype(float)

    x = vg.Tensor(np.full(3, LARGE - 1.0))
    check_compiled(exact, [(vg.Tensor(np.array([LARGE + k, LARGE - 1, -LARGE])), x) for k in range(3)], executor)


def test_guards_distinguish_integers_equal_as_floats():
    def guarded(n):
        return n * 2 if n[0] == LARGE else n * 3

    def steered(n):
        return n * 1 if int(n[0]) % 2 else n * 5

    for function in (guarded, steered):
        for executor in EXECUTORS:
            check(function, [(vg.Tensor(np.array([LARGE - (call == 2), 1])),) for call in range(4)], executor)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_signs_of_zeros_from_bools_match_eager(executor):
    def signs(x, b):
        return 1 / -np.where(x > 0, x, b), 1 / -np.maximum(x * 0 - 1, b), (b & (x > 0)) | ~b, b + b, b * b, b.sum()

    calls = [(vg.Tensor(np.array([-1.0, 2.0])), vg.Tensor(np.array([False, call % 2 == 0]))) for call in range(3)]
    check_compiled(signs, calls, executor)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_gradients_keep_integers_for_callbacks(executor):
    def taken(x):
        places, total = vg.zeros(len(x), dtype=int), 0.0
        for i in range(3):
            places = (places + np.argsort(x) + i) % len(x)
            total = total + (np.take_along_axis(x, places, 0) * x * places).sum()
        return total

    compiled = compiled_by(executor, taken, check=False)
    for call in range(3):
        x = vg.Tensor(np.sin(np.arange(5.0) + call), requires_grad=True)
        found, wanted = (vg.autograd.grad(function(x), x)[0].numpy() for function in (compiled, taken))
        assert np.allclose(found, wanted, rtol=1e-12)
    assert compiled.specializations[-1].runs == 2


def test_smaller_integers_run_eagerly():
    def small(n):
        return n * n

    compiled = check(small, [(vg.Tensor(np.array([100, 3], np.int8)),)] * 3)
    assert "int8" in compiled.explain()


def test_examples_with_integers_run_compiled():
    def counted(x):
        count = vg.zeros(2, dtype=int)
        for i in range(len(x)):
            count[i % 2] += np.floor(x[i]).astype(int)
        return count

    compiled = vg.compile(counted, batch=True, executor="python", check=False)
    x = 5 * np.sin(np.arange(40.0)).reshape(8, 5)
    for _ in range(3):
        found = compiled(vg.Tensor(x))
        assert found.dtype == int and found.tolist() == [counted(row).tolist() for row in x]


def test_forward_mode_of_programs_with_integers():
    def stepped(x):
        count, total = vg.zeros(3, dtype=int), 0.0
        for i in range(3):
            count[i] = np.floor(4 * x[i]).astype(int)
            total = total + x[i] * x[i] * count[i]
        return total

    compiled = vg.compile(stepped, executor="python", check=False)
    for call in range(3):
        x, along = np.array([0.3, 0.6, 1.1]) + 0.01 * call, np.array([1.0, -2.0, 0.5])
        for found, wanted in zip(vg.func.jvp(compiled, (x,), (along,)), vg.func.jvp(stepped, (x,), (along,))):
            assert close(np.asarray(found), np.asarray(wanted))
        assert close(vg.func.hessian(compiled)(x), vg.func.hessian(stepped)(x))


@pytest.mark.usefixtures("verified_ir")
@pytest.mark.parametrize(
    ("executor", "numbers"),
    [
        ("python", range(5)), ("interpreted", range(25, 30)),
        pytest.param("python", range(40, 160), marks=pytest.mark.slow),
        pytest.param("numba", range(45, 49), marks=[needs_numba, pytest.mark.slow]),
    ],
)
def test_drawn_programs_of_integers(executor, numbers):
    count = 0
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in numbers:
            count += drawn_program_agrees(number, executor)
    assert count > len(numbers) // 2


def drawn_program_agrees(number, executor):
    """Compare a drawn program; return how many of its calls ran compiled."""
    program = drawn_integers.integer_program(number)
    compiled = compiled_by(executor, program, check=False)
    for call in range(3):
        seen = []
        for function in (program, compiled):
            given = [vg.Tensor(a, requires_grad=a.dtype.kind == "f") for a in drawn_integers.inputs(number, call)]
            try:
                loss, *results = function(*given)
            except (OverflowError, ValueError, TypeError):
                return 0
            named = {str(place): result for place, result in enumerate(results)}
            leaves = [tensor for tensor in given if tensor.requires_grad]
            seen.append(everything(loss, named, dict(enumerate(given)), leaves))
        for one, other in zip(*seen, strict=True):
            assert close(other, one), f"{compiled.explain()}\n{drawn_integers.integer_source(number)}"
    return compiled.specializations[-1].runs > 0
