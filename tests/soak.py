"""The soak: all kinds of drawn programs, alternately, for a given time; prints counts and failures at the end.

    python -m tests.soak --minutes 60
    python tests/soak.py --minutes 5 --only tiny,edges --first 7

The kind that has used the least time runs next. Tiny programs, which are the most numerous, have more than half of the
time; all others share the rest evenly. The memory in use is printed every few minutes; a program that would exceed the
limit fails with MemoryError, so that it is printed. The exit code is 1 if anything failed.
"""

from __future__ import annotations

import argparse
import collections
import os
import sys

sys.path.insert(0, os.path.dirname(__file__))  # `python -m tests.soak` finds the other files by their own names

import time
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import complex_steps
import dependent_inputs
import drawn_calls
import edge_case_programs
import mode_crossings
import numpy as np
import source_programs
import symbolic_checks
import test_compiler_programs
import test_programs
import test_scalar_engine
import test_scalars
import test_soak
import test_symbolic_programs
import tiny_interruptions
import tiny_programs
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st
from hypothesis.internal.conjecture import data as drawn_data

import viewgrad.tensor.modes
import viewgrad.tensor.node
from viewgrad.compiler.verification import verified_passes
from viewgrad.operators import OPERATORS
from viewgrad.testing import FEATURES, check_feature, check_program, functions, program_ops, programs
from viewgrad.testing.checks import gradients, unaliased_gradients, weights_for

try:
    import resource
except ImportError:  # on Windows
    resource = None  # type: ignore[assignment]

TINY_SHARE = 0.58  # fraction of the time
DIFFERENT = 100_000_000  # the first seed that the test suite does not use

Failed = Callable[[str], None]  # prints the exception that is being handled, with a program's number
GENERATORS: dict[str, Callable[[int, Failed], int]] = {}  # run some programs of a turn, and return how many


def numbered(number: int, check: Callable[[int], Any]) -> Callable[[int, Failed], int]:
    """Return a generator of programs that are drawn from consecutive integers."""

    def run(turn: int, failed: Failed) -> int:
        for seed in range(DIFFERENT + turn * number, DIFFERENT + (turn + 1) * number):
            try:
                check(seed)
            except Exception:
                failed(str(seed))
        return number

    return run


def check_source(seed: int) -> None:
    program = source_programs.SourceProgram(seed)
    try:
        source_programs.check(program)
    except (source_programs.Wrong, source_programs.Refused) as error:
        source_programs.check(source_programs.shortened(program, type(error)))
        raise


def check_soaked(seed: int) -> None:
    lines = test_soak.Writer(seed).program()
    try:
        test_soak.run(seed, lines)
    except Exception as error:
        raise AssertionError(test_soak.report(seed, lines, error)) from error


def check_interrupted(seed: int) -> None:
    before, viewgrad.tensor.node.PATIENCE = viewgrad.tensor.node.PATIENCE, 0.0
    try:
        tiny_interruptions.check_interrupted(tiny_programs.TinyProgram(seed), seed)
    finally:
        viewgrad.tensor.node.PATIENCE = before


def check_edges(seed: int) -> None:
    kinds = list(edge_case_programs.KINDS)
    edge_case_programs.check(kinds[seed % len(kinds)], seed)


GENERATORS.update(
    {
        "tiny": numbered(400, lambda seed: tiny_programs.check(tiny_programs.TinyProgram(seed))),
        "interrupted": numbered(30, check_interrupted),
        "threads": numbered(10, tiny_interruptions.check_in_threads),
        "calls": numbered(100, lambda seed: drawn_calls.check(drawn_calls.DrawnCall(seed))),
        "edges": numbered(100, check_edges),
        "sources": numbered(20, check_source),
        "analytic": numbered(40, lambda seed: complex_steps.check(complex_steps.AnalyticProgram(seed, 3 + seed % 6))),
        "dependent inputs": numbered(20, lambda seed: dependent_inputs.check(dependent_inputs.DependentInputs(seed))),
        "dual": numbered(8, check_soaked),
        "crossed modes": numbered(4, mode_crossings.check),
    }
)


# -- programs that Hypothesis draws ------------------------------------------------------------------------------------


def drawn(number: int, strategy: Any, check: Callable[..., Any]) -> Callable[[int, Failed], int]:
    """Return a generator of programs that Hypothesis draws, and shrinks if they fail."""

    def run(turn: int, failed: Failed) -> int:
        done = 0

        def counted(arguments: Any) -> None:
            nonlocal done
            done += 1
            check(turn, arguments)

        phases, allowed = [Phase.generate, Phase.shrink], list(HealthCheck)
        limits = settings(
            max_examples=number, phases=phases, suppress_health_check=allowed, database=None, deadline=None,
            report_multiple_bugs=False,
        )  # fmt: skip
        try:
            seeded(turn)(limits(given(strategy)(counted)))()
        except Exception:
            failed(f"in turn {turn}")
        getattr(drawn_data, "STRUCTURAL_COVERAGE_CACHE", {}).clear()  # which Hypothesis never empties
        return done

    return run


def check_graph(turn: int, program: Any) -> None:
    function, leaves, options = test_symbolic_programs.as_function(program)
    symbolic_checks.check(function, leaves, str(program), **options)


def inside(test: Any) -> Callable[[int, Any], Any]:
    """Return the function that a Hypothesis test runs."""
    return lambda turn, arguments: test.hypothesis.inner_test(*arguments)


FEATURE_NAMES = list(FEATURES)
OWN = programs(functions=test_programs.OWN)
STEPS = test_scalar_engine.steps()


def check_one_feature(turn: int, program: Any) -> None:
    check_feature(program, FEATURE_NAMES[turn % len(FEATURE_NAMES)])


LINES = st.lists(test_scalars.LINE, min_size=1, max_size=14)
GENERATORS.update(
    {
        "programs": drawn(25, programs(), lambda turn, program: check_program(program)),
        "third order": drawn(10, programs(), lambda turn, program: check_program(program, order=3, numeric=False)),
        "features": drawn(15, programs(), check_one_feature),
        "own functions": drawn(15, OWN, lambda turn, program: check_program(program)),
        "own functions with features": drawn(10, OWN, check_one_feature),
        "graphs": drawn(8, programs(), check_graph),
        "compiled": drawn(
            4, programs(), lambda turn, program: test_compiler_programs.check_compiled(program, "python")
        ),
        "scalars by both engines": drawn(
            30, st.tuples(STEPS, st.booleans()), inside(test_scalar_engine.test_both_engines_agree_on_drawn_programs)
        ),
        "scalars for some leaves": drawn(
            30, st.tuples(STEPS, st.integers(0, 100)), inside(test_scalar_engine.test_gradients_of_a_part_of_the_leaves)
        ),
        "scalars with hooks": drawn(
            30,
            st.tuples(STEPS, st.integers(0, 5)),
            inside(test_scalar_engine.test_hooks_and_retained_gradients_see_whole_gradients),
        ),
        "lines of scalars": drawn(30, st.tuples(LINES), inside(test_scalars.test_drawn_programs_of_scalars)),
    }
)


# -- programs at special points: zeros, ones and ties ------------------------------------------------------------------


def special_source(table: Any) -> str:
    """Return the source of a leaf with special values; complex numbers are not on branch cuts."""
    size = int(np.prod(table.shape))
    if table.kind == "i":
        text = f"np.arange({table.phase}, {table.phase + size}) % 3"
    else:
        text = f"np.resize(np.roll([0.0, 1.0, -1.0, 0.5, 1.0, 0.0, 2.0], {table.phase}), {size})"
        if table.kind == "c":
            text = f"({text} * (1 + 1j * np.roll(np.resize([0.5, 1.0, -1.0], {size}), {table.phase})))"
    return text if len(table.shape) == 1 else f"({text}).reshape({table.shape})"


def is_not_large(function: Any, operands: Any) -> bool:
    """Return whether a program may use a function at these operands, including the ends of its domain.

    It may not on a branch cut, where results depend on the sign of zero, which the program without aliasing may change.
    """
    try:
        values, others = (as_list(function, each) for each in (operands, [with_other_zeros(each) for each in operands]))
    except Exception:
        return False
    pairs = zip(values, others, strict=True)
    return all(bool(np.all(np.abs(a) < 1e6)) and np.allclose(a, b) for a, b in pairs)


def as_list(function: Any, operands: Any) -> list[Any]:
    """Return the results of a function of arrays, as a list of arrays."""
    value = function.numpy(list(operands)) if function.listed else function.numpy(*operands)
    return [np.asarray(each) for each in (value if isinstance(value, (tuple, list)) else [value])]


def with_other_zeros(operand: Any) -> Any:
    """Return complex numbers with the signs of zeros changed."""
    if not np.iscomplexobj(operand):
        return operand
    other = np.array(operand)
    for part in (other.real, other.imag):
        np.negative(part, out=part, where=part == 0)
    return other


OF_SIGNS = "arctan2", "copysign", "signbit", "angle"
WITH_JUMPS = "floor_divide", "remainder", "fmod", "divmod"


def check_special(turn: int, program: Any) -> None:
    """Check that finite values and gradients equal those of the same program without aliasing, in double precision.

    Without aliasing, a write is a selection by products with masks, which loses the signs of zeros. Different
    steps round differently, and the integer part of a quotient of equal numbers jumps there. In single precision, the
    terms of derivatives that cancel, as those of `y / y` for a small `y`, may overflow in one of the programs only.
    """
    if any(name in program.source() for name in (*OF_SIGNS, *WITH_JUMPS)):
        return
    program = program.in_double_precision
    weights = weights_for(program)
    ours, theirs = gradients(program, weights, 2), unaliased_gradients(program, weights, 2)
    for what in ("values", "first", "second"):
        mine, others = getattr(ours, what), getattr(theirs, what)
        for name in mine.keys() & others.keys():
            if mine[name] is None and others[name] is None:
                continue
            b = np.zeros_like(mine[name]) if others[name] is None else others[name]
            a = np.zeros_like(b) if mine[name] is None else mine[name]
            both = np.isfinite(a) & np.isfinite(b)
            scale = max(1.0, float(np.abs(b[both]).max(initial=0)))
            same = a.shape == b.shape and np.allclose(a[both], b[both], rtol=1e-9, atol=1e-9 * scale)
            if (not same or (~np.isfinite(a) & np.isfinite(b)).any()) and scale < 1e9:
                raise AssertionError(f"{what} of {name}: {a} instead of {b}\n{program.source()}")


def at_special_points(turn: int, failed: Failed) -> int:
    """Draw and check programs with other leaves, and with functions at their ends."""
    before = program_ops.Table.source, functions.ProgramFunction.tame
    program_ops.Table.source, functions.ProgramFunction.tame = special_source, is_not_large
    try:
        return drawn(25, programs(), check_special)(turn, failed)
    finally:
        program_ops.Table.source, functions.ProgramFunction.tame = before


GENERATORS["special points"] = at_special_points


# -- the run -----------------------------------------------------------------------------------------------------------


def memory() -> int:
    """Return the resident memory of this process in MB; 0 if the system does not tell."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20
    except OSError:
        return 0


def limit_memory(megabytes: int) -> None:
    """Limit the memory of this process, on systems that can: otherwise the system kills it, and nothing is printed."""
    if resource is not None:
        _, most = resource.getrlimit(resource.RLIMIT_AS)
        limit = megabytes << 20
        resource.setrlimit(resource.RLIMIT_AS, (limit if most == resource.RLIM_INFINITY else min(limit, most), most))


class Soak:
    """The state of the soak."""

    def __init__(self, names: list[str], first: int) -> None:
        self.names, self.turn = names, first
        self.counts = dict.fromkeys(names, 0)
        self.times: dict[str, float] = dict.fromkeys(names, 0.0)
        others = len(names) - 1
        self.shares = {name: TINY_SHARE if name == "tiny" else (1 - TINY_SHARE) / max(others, 1) for name in names}
        self.failures: collections.Counter[str] = collections.Counter()

    def fail(self, name: str, program: str) -> None:
        """Print the failure that is being handled."""
        self.failures[name] += 1
        print(f"==== {name} {program}\n{traceback.format_exc()[-6000:]}", flush=True)

    def step(self) -> None:
        """Run some programs of the generator that has had the smallest part of its share."""
        name = min(self.names, key=lambda name: self.times[name] / self.shares[name])
        began = time.process_time()
        self.counts[name] += GENERATORS[name](self.turn, lambda program: self.fail(name, program))
        viewgrad.tensor.modes.MODE.set(viewgrad.tensor.modes.GRAD)  # also after a failed line
        self.times[name] += time.process_time() - began
        self.turn += 1

    def summary(self) -> str:
        """Return the counts, times and failures by generator."""
        rows = [f"{'':30}{'programs':>12}{'seconds':>10}{'failures':>10}"]
        for name in self.names:
            rows.append(f"{name:30}{self.counts[name]:12,}{self.times[name]:10.0f}{self.failures[name]:10}")
        rows.append(
            f"{'together':30}{sum(self.counts.values()):12,}{sum(self.times.values()):10.0f}"
            f"{sum(self.failures.values()):10}"
        )
        return "\n".join(rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=5.0, help="how long to go on (default: %(default)s)")
    parser.add_argument("--first", type=int, default=0, help="number of the first turn: for other programs")
    parser.add_argument("--only", default=",".join(GENERATORS), help="names of generators (default: %(default)s)")
    parser.add_argument("--memory", type=int, default=4000, help="limit of the memory in MB (default: %(default)s)")
    options = parser.parse_args()
    limit_memory(options.memory)
    soak = Soak(options.only.split(","), options.first)
    os.environ["VIEWGRAD_CACHE"] = "0"  # no kernels of earlier runs
    warnings.simplefilter("ignore")
    for operator in OPERATORS.values():  # otherwise the code of each is generated on first use
        operator.write_code()
    began = told = time.monotonic()
    end, interval = began + 60 * options.minutes, max(60.0, 60 * options.minutes / 30)
    print(f"memory: {memory()} MB at the start", flush=True)
    with np.errstate(all="ignore"), verified_passes():
        try:
            while (now := time.monotonic()) < end:
                soak.step()
                if now >= told + interval:
                    told = now
                    minutes, done = (now - began) / 60, sum(soak.counts.values())
                    print(f"memory: {memory()} MB after {minutes:.0f} minutes, {done:,} programs", flush=True)
        finally:
            print(f"memory: {memory()} MB at the end\n{soak.summary()}", flush=True)
    return 1 if soak.failures else 0


if __name__ == "__main__":
    sys.exit(main())
