"""Many drawn programs, each compiled and called three times with different inputs, and compared with eager runs.

    python tests/compiled_soak.py --programs 10000 --seed 1 --executor python

It stops when the requested number of programs has run compiled. It compares values, histories, gradients and second
derivatives, then values again after writes to results. From time to time it prints the counts and the memory of the
process. With `--executor interpreted`, Python runs the kernels written for Numba, without waiting for Numba.

Drawn programs return views, and tensors that share memory in ways that a compiled call cannot reproduce. Such results
are omitted, so that the programs are compiled: they return the loss and the other results only.
"""

from __future__ import annotations

import argparse
import collections
import gc
import re
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import drawn_integers
import drawn_loops
import numpy as np
import scalar_programs
from hypothesis import HealthCheck, Phase, given, seed, settings
from interpreted_kernels import compiled_by
from loop_corpus import CORPUS
from source_programs import SourceProgram, total_of
from test_compiler_programs import close, everything, leaves

import viewgrad as vg
import viewgrad.compiler.api
from viewgrad.compiler.verification import verified_passes
from viewgrad.testing import Program, programs

CALLS = 3  # each kind is recorded, compared, and run alone
BATCH = 40
ROUNDING, SINGLE_ROUNDING = 1e-12, 1e-6  # relative to the largest number: the remainder of sums that cancel
KINDS = ("drawn", "drawn", "drawn", "source", "scalars", "loops", "nests", "integers")


class Enough(Exception):
    """Raised when the requested number of programs has run compiled."""


class Soak:
    """Draws programs, and compares them.

    Arguments:
        executor: the executor of the compiled programs; "interpreted" for Numba's kernels run by Python.
        wanted: the number of programs to run compiled.
    """

    def __init__(self, executor: str, wanted: int) -> None:
        self.executor = executor
        self.wanted = wanted
        self.counts: collections.Counter[str] = collections.Counter()
        self.reasons: collections.Counter[str] = collections.Counter()
        self.failures: list[str] = []

    def batch(self, number: int) -> None:
        """Run some programs of one kind."""
        kind = KINDS[number % len(KINDS)]
        if kind == "drawn":
            options = {"database": None, "deadline": None, "phases": [Phase.generate], "report_multiple_bugs": False}
            seed(number)(
                settings(max_examples=BATCH, suppress_health_check=list(HealthCheck), **options)(
                    given(programs(complex=False))(self.drawn)
                )
            )()
            return
        count = BATCH // 4 if kind in ("nests", "integers") else BATCH  # these take longer
        for each in range(number * BATCH, number * BATCH + count):
            getattr(self, kind)(each)

    # -- kinds of programs: how they are run, and their inputs -------------------------------------------------------

    def drawn(self, program: Program) -> None:
        """Run a program of views and writes."""
        single = self.counts["drawn in all"] % 4 == 3
        program = program if single else program.in_double_precision
        chosen: list[str] = []

        def run(given: Any) -> Any:
            names = program.execute_stepwise(given)
            return names[program.loss], {name: names[name] for name in chosen}

        def made(number: int) -> Any:
            found = leaves(program, number)
            return found, [found[leaf.name] for leaf in program.differentiable_leaves]

        given = leaves(program, 0)
        names = program.execute_stepwise(given)
        chosen += results_that_fit(names, program.loss, given)
        self.compare("drawn, single" if single else "drawn", run, made, program.source, 1e-3 if single else 1e-7)

    def source(self, number: int) -> None:
        """Run a program with one source for arrays and tensors."""
        program = SourceProgram(number, length=6)
        chosen: list[str] = []

        def run(given: Any) -> Any:
            names = program.run(dict(given))
            found = {name: value for name, value in names.items() if name[0] == "v" and isinstance(value, vg.Tensor)}
            if not chosen:
                chosen.extend(["", *results_that_fit(found | given, "", given)])
            return total_of(found), {name: found[name] for name in chosen[1:] if name in found}

        def made(number: int) -> Any:
            rng = np.random.default_rng(number)
            found = {}
            for name, leaf in program.leaves.items():
                array = leaf.copy(order="K")
                if number and array.dtype.kind in "fc":  # in place, so that the layout does not change
                    array *= (1 + 0.1 * rng.random(array.shape)).astype(array.real.dtype)
                kind = float if array.dtype.kind == "f" else array.dtype
                found[name] = vg.Tensor(array.astype(kind), requires_grad=True)
            return found, list(found.values())

        try:
            run(made(0)[0])
        except Exception:
            self.counts["source programs that raise"] += 1
            return
        self.compare("source", run, made, lambda: str(program), 1e-6)

    def scalars(self, number: int) -> None:
        """Run a program of single numbers."""
        functions = [
            value
            for value in vars(scalar_programs).values()
            if callable(value) and getattr(value, "__module__", "") == "scalar_programs" and not isinstance(value, type)
        ]
        function = functions[number % len(functions)]
        rng = np.random.default_rng(number)
        order, numbers = rng.permutation(8) + 0.5, 0.3 * rng.random(8)

        def run(given: Any) -> Any:
            found = function(given["a"])
            if not isinstance(found, vg.Tensor):
                raise TypeError
            return (found * np.cos(np.arange(found.size).reshape(found.shape))).sum(), {"found": found}

        def made(number: int) -> Any:
            leaf = vg.Tensor(order + numbers * (1 + 0.1 * number), requires_grad=True)
            return {"a": leaf}, [leaf]

        try:
            run(made(0)[0])
        except Exception:
            self.counts["scalar programs that raise"] += 1
            return
        self.compare("scalars", run, made, lambda: f"{function.__name__} {number}")

    def loops(self, number: int) -> None:
        """Run a program of the corpus."""
        known = list(CORPUS.values())
        function, draw, _ = known[number % len(known)]

        def run(given: Any) -> Any:
            return function(*given.values()), {}

        def made(call: int) -> Any:
            arrays = [np.asarray(each) for each in draw(np.random.default_rng((number, call)), 5 + number % 3)]
            found = {str(n): vg.Tensor(a, requires_grad=a.dtype.kind == "f") for n, a in enumerate(arrays)}
            return found, [tensor for tensor in found.values() if tensor.requires_grad]

        self.compare("loops", run, made, lambda: f"{function.__name__} {number}")

    def nests(self, number: int) -> None:
        """Draw a program of loops; every fourth one is differentiated in forward mode."""
        program = drawn_loops.loop_program(number)
        rng = np.random.default_rng(number)
        along = [vg.Tensor(rng.normal(size=each.shape)) for each in drawn_loops.inputs(number, 0)]
        forward = number % 4 == 3

        def run(given: Any) -> Any:
            if not forward:
                return program(*given.values()), {}
            value, tangent = vg.func.jvp(program, tuple(given.values()), along)
            return value + 0.01 * tangent, {}

        def made(call: int) -> Any:
            found = {str(n): vg.Tensor(a, requires_grad=True) for n, a in enumerate(drawn_loops.inputs(number, call))}
            return found, list(found.values())

        try:
            run(made(0)[0])
        except Exception:
            self.counts["nests that raise"] += 1
            return
        kind = "nests, pushed" if forward else "nests"
        self.compare(kind, run, made, lambda: f"{number}\n{drawn_loops.loop_source(number)}", 1e-6)

    def integers(self, number: int) -> None:
        """Run a drawn program of integers and bools."""
        program = drawn_integers.integer_program(number)

        def run(given: Any) -> Any:
            loss, *results = program(*given.values())
            return loss, {str(place): result for place, result in enumerate(results)}

        def made(call: int) -> Any:
            arrays = drawn_integers.inputs(number, call)
            found = {str(n): vg.Tensor(a, requires_grad=a.dtype.kind == "f") for n, a in enumerate(arrays)}
            return found, [tensor for tensor in found.values() if tensor.requires_grad]

        try:
            for call in range(CALLS):
                run(made(call)[0])
        except (OverflowError, TypeError, ValueError):
            self.counts["programs of integers that raise"] += 1
            return
        self.compare("integers", run, made, lambda: f"{number}\n{drawn_integers.integer_source(number)}")

    # -- comparing ---------------------------------------------------------------------------------------------------

    def compare(self, kind: str, run: Any, made: Any, text: Callable[[], str], tolerance: float = 1e-7) -> None:
        """Call a program, compiled and not, with different inputs each time."""
        self.counts["drawn in all"] += 1
        compiled = compiled_by(self.executor, run)
        try:
            for number in range(CALLS):
                seen = []
                for function in (compiled, run):
                    given, wanted = made(number)
                    loss, tensors = function(given)
                    seen.append(everything(loss, tensors, given, wanted))
                noise = (SINGLE_ROUNDING if "single" in kind else ROUNDING) * largest(seen[1])
                for place, (one, other) in enumerate(zip(*seen, strict=True)):
                    if not close(one, other, tolerance, noise):
                        raise AssertionError(f"call {number}, item {place}: {one!r} is not {other!r}")
        except Exception:
            self.counts["failed"] += 1
            self.failures.append(f"{kind}\n{traceback.format_exc()}\n{compiled.explain()}\n{text()}\n")
            print(self.failures[-1], flush=True)
        entry = compiled.specializations[-1]
        if entry.program is not None and entry.fallback_reason is None:
            self.counts["compiled"] += 1
            self.counts[f"compiled, {kind}"] += 1
            if self.counts["compiled"] >= self.wanted:
                raise Enough
        else:
            reason = re.sub(r"\S*:\d+|'[^']*'|\d+", "#", str(entry.fallback_reason))
            self.reasons[f"{kind}: {reason[:90]}"] += 1

    def told(self) -> str:
        """Return a text with the counts and the memory of the process in MB."""
        with open("/proc/self/statm") as statm:
            memory = int(statm.read().split()[1]) * 4096 / 1e6
        return f"{dict(self.counts)}, {memory:.0f} MB"


def largest(arrays: list[Any]) -> float:
    """Return the magnitude of the largest finite number."""
    sizes = [np.abs(array[np.isfinite(array)]).max(initial=0.0) for array in map(np.asarray, arrays)]
    return float(max(sizes, default=0.0))


def results_that_fit(names: dict[str, Any], loss: str, given: dict[str, Any]) -> list[str]:
    """Return the names of the tensors that own their memory alone, which a compiled call can return."""
    others: list[Any] = list(given.values())
    found = []
    for name, value in names.items():
        if name == loss or name in given or not isinstance(value, vg.Tensor) or value._view is not None:
            continue
        if not any(other is not value and np.may_share_memory(other._array, value._array) for other in others):
            found.append(name)
            others.append(value)
    return found


def main() -> int:
    """Run the requested number of programs; return 1 if one has failed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--programs", type=int, default=10_000, help="the number of programs that must run compiled")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--executor", choices=("python", "numba", "interpreted"), default="python")
    given = parser.parse_args()
    return soaked(given.executor, given.programs, given.seed)


def soaked(executor: str, wanted: int, start: int) -> int:
    """Draw programs until enough of them have run compiled; return 1 if one has failed."""
    viewgrad.compiler.api.SPECIALIZE = True  # programs of traces
    soak = Soak(executor, wanted)
    warnings.simplefilter("ignore")
    began = time.perf_counter()
    number = start * 100_000
    try:
        while True:
            with verified_passes():
                soak.batch(number)
            number += 1
            if number % 12 == 0:
                gc.collect()
                print(f"{time.perf_counter() - began:.0f} s, batch {number}: {soak.told()}", flush=True)
    except Enough:
        pass
    for reason, count in soak.reasons.most_common():
        print(f"{count} ran eagerly, {reason}")
    print(f"{time.perf_counter() - began:.0f} s: {soak.told()}")
    return 1 if soak.failures else 0


if __name__ == "__main__":
    sys.exit(main())
