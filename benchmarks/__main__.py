"""The command line: `python -m benchmarks [--quick] [--only NAME ...] [--peers torch,jax] [--out DIR]`."""

from __future__ import annotations

import argparse
import gc
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from benchmarks.backends import PEERS, NumPy, Viewgrad, mutable_backends
from benchmarks.compiled import PROGRAMS, measure_compiled, rendered
from benchmarks.functional import functional_engines
from benchmarks.growth import compare
from benchmarks.measuring import Effort
from benchmarks.memory import ELEMENTWISE, WRITES, long_chain, peaks, retained_bytes
from benchmarks.micro import SIZES, micro_steps
from benchmarks.progress import Step, run_steps
from benchmarks.report import render, write
from benchmarks.results import Results, machine
from benchmarks.training import LAYERS, measure_training
from benchmarks.workloads import WORKLOADS

SECTIONS: Final = ("micro", "workloads", "wide", "training", "memory", "compiled")
NS: Final = (400, 800, 1600, 3200, 6400)
WIDE_NS: Final = (64, 128, 256)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and write; return the exit status, which is 1 if two engines computed different gradients."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes and few repeats, for a first look")
    parser.add_argument(
        "--only", action="append", default=[], metavar="NAME", help=f"a section ({', '.join(SECTIONS)}) or a workload"
    )
    parser.add_argument("--peers", default=",".join(PEERS), help="the engines to compare with, separated by commas")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "out", help="where to write")
    options = parser.parse_args(arguments)
    peers = [name for name in options.peers.split(",") if name]
    unknown = {*options.only} - {*SECTIONS, *_names()} | {*peers} - {*PEERS}
    if unknown:
        known = f"sections {', '.join(SECTIONS)}; workloads {', '.join(_names())}; peers {', '.join(PEERS)}"
        parser.error(f"there is no {', '.join(sorted(unknown))}; there are {known}")
    results = Run(options.quick, options.only, peers).run()
    print(render(results))
    print("\nwritten:", *write(results, options.out))
    return 1 if results.disagreements else 0


class Run:
    """One run over the requested sections."""

    def __init__(self, quick: bool, only: Sequence[str], peers: Sequence[str]) -> None:
        self.quick = quick
        self.only = only
        self.writable, skipped = mutable_backends(peers)
        self.functional, more_skipped = functional_engines(peers)
        self.engines: list[Any] = [*self.writable, *self.functional]
        self.results = Results(machine([e.name for e in self.engines[1:]]), notes=[*skipped, *more_skipped])

    def run(self) -> Results:
        """Measure everything requested."""
        run_steps(list(self.steps()))
        return self.results

    def steps(self) -> Iterator[Step]:
        """Yield the measurements in order."""
        sections: dict[str, Callable[[], Iterator[Step]]] = {
            "micro": self.micro,
            "workloads": self.workloads,
            "wide": self.wide,
            "training": self.training,
            "memory": self.memory,
            "compiled": self.compiled,
        }
        for name, section in sections.items():
            if self.wanted(name) or (name in ("workloads", "wide", "memory") and any(map(self.wanted, _names()))):
                for step, work in section():
                    yield f"{name}: {step}", work

    def wanted(self, name: str) -> bool:
        """Return whether a section or workload was requested by name."""
        return not self.only or name in self.only

    def chosen(self, section: str) -> list[Any]:
        """Return the workloads to measure in a section: those named, or all if the section was named."""
        return [w for w in WORKLOADS if self.wanted(section) or w.name in self.only]

    def micro(self) -> Iterator[Step]:
        """Measure single operations, against PyTorch."""
        engines = [b for b in self.writable if b.name in ("viewgrad", "torch")]
        effort = Effort(5, 0.004, 0.2) if self.quick else Effort(9, 0.01, 1.0)
        results, sizes = self.results, SIZES[:3] if self.quick else SIZES
        for name, measure in micro_steps(engines, effort, sizes, results.notes):
            yield name, partial(_append, results.micro, measure)

    def workloads(self) -> Iterator[Step]:
        """Measure time over N, against all engines."""
        for workload in self.chosen("workloads"):
            yield workload.name, partial(self._growth, workload)
        if (self.wanted("workloads") or "soft-dtw" in self.only) and not self.quick:
            yield "soft-dtw, 200 x 200", self._large_soft_dtw

    def wide(self) -> Iterator[Step]:
        """Measure time against plain NumPy, for other row lengths than in the comparison with all engines."""
        effort = Effort(3, 0.005, 0.3) if self.quick else Effort(5, 0.01, 1.5, limit=60.0)
        engines = [NumPy(), Viewgrad()]
        for workload in self.chosen("wide"):
            if workload.width is not None:
                widths = {1000: NS[:2] if self.quick else NS[:3], 100_000: WIDE_NS[:2] if self.quick else WIDE_NS}
                for width, sizes in widths.items():
                    if workload.width < width <= workload.widest:
                        measure = partial(compare, workload, engines, sizes, effort, width=width)
                        yield f"{workload.name}, rows of {width}", partial(_append, self.results.wide, measure)

    def training(self) -> Iterator[Step]:
        """Measure a training step, against all engines."""
        for name in LAYERS:
            yield name, partial(self._train, name)

    def memory(self) -> Iterator[Step]:
        """Measure the memory kept and needed, and a long chain."""
        if self.wanted("memory"):
            for name, step in {**ELEMENTWISE, **WRITES}.items():
                yield name, partial(self._noting, f"memory, {name}", partial(self._retained, name, step))
            yield "a long chain", partial(self._noting, "a long chain", self._chain)
        for workload in self.chosen("memory"):
            sizes = (50, 100, 200) if self.quick else (200, 400, 800)
            measure = partial(self._peaks, workload, sizes)
            yield workload.name, partial(self._noting, f"memory, {workload.name}", measure)

    def compiled(self) -> Iterator[Step]:
        """Measure compiled programs, against C by hand and JAX."""
        for name in PROGRAMS:
            yield name, partial(self._compiled, name)

    def _growth(self, workload: Any) -> None:
        effort = Effort(3, 0.005, 0.2, limit=0.3) if self.quick else Effort(5, 0.01, 0.8, limit=3.0)
        limits = {"viewgrad": 60.0, "numpy": 60.0}
        largest = {}
        if workload.name == "row-fill" and not self.quick:
            # PyTorch is slow at N = 3200, but a target figure refers to its time there, so its limit is higher.
            limits |= {"torch": 300.0, "jax": 15.0}
            largest = {"torch": 3200}
        sizes = (100, 200, 400) if self.quick else NS
        comparison = compare(workload, self.engines, sizes, effort, limits=limits, largest=largest)
        self.results.comparisons.append(comparison)
        self.results.disagreements += comparison.disagreements

    def _large_soft_dtw(self) -> None:
        (workload,) = [w for w in WORKLOADS if w.name == "soft-dtw"]
        engines = [e for e in self.engines if e.name in ("viewgrad", "numpy", "torch", "jax")]
        self.results.soft_dtw = compare(workload, engines, (40_000,), Effort(3, 0.01, 6.0))
        self.results.disagreements += self.results.soft_dtw.disagreements
        # Most of this time is spent in Python's garbage collector, which a program can make run less often.
        usual = gc.get_threshold()
        gc.set_threshold(100_000)
        ours = [engine for engine in engines if engine.name == "viewgrad"]
        seldom = compare(workload, ours, (40_000,), Effort(3, 0.01, 6.0)).curves["viewgrad"]
        gc.set_threshold(*usual)
        self.results.notes.append(
            f"soft-DTW, 200 x 200, with gc.set_threshold(100_000): viewgrad {seldom.times[40_000].median:.2f} s"
        )

    def _train(self, name: str) -> None:
        effort = Effort(3, 0.01, 0.3) if self.quick else Effort(7, 0.05, 2.0)
        times, notes = measure_training(LAYERS[name], self.engines, effort)
        self.results.training[name] = times
        self.results.notes += [f"training {name}: {note}" for note in notes]

    def _compiled(self, name: str) -> None:
        each = measure_compiled(name, self.quick)
        self.results.notes.append(f"compiled: {rendered([each])}")
        self.results.disagreements += [f"compiled, {each.program}: {note}" for note in each.notes]

    def _retained(self, name: str, step: Any) -> None:
        self.results.retained[name] = retained_bytes(step)

    def _peaks(self, workload: Any, sizes: Sequence[int]) -> None:
        self.results.peaks.append(peaks(workload, sizes))

    def _chain(self) -> None:
        operations = 50_000 if self.quick else 1_000_000
        self.results.chain = {"operations": float(operations), **long_chain(operations)}

    def _noting(self, what: str, measure: Callable[[], None]) -> None:
        try:
            measure()
        except Exception as error:  # failures are reported, and must not stop the other measurements
            self.results.notes.append(f"{what}: {type(error).__name__}: {str(error)[:200]}")


def _names() -> list[str]:
    return [workload.name for workload in WORKLOADS]


def _append(found: list[Any], measure: Callable[[], Any]) -> None:
    found.append(measure())


if __name__ == "__main__":
    raise SystemExit(main())
