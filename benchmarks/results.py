"""The results of one run."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from collections.abc import Sequence
from typing import Any

import attrs

from benchmarks.growth import Comparison
from benchmarks.measuring import Timing
from benchmarks.memory import Peak
from benchmarks.micro import Row

__all__ = ["Results"]


@attrs.define
class Results:
    """The measurements of one run; sections that were not requested are empty.

    Attributes:
        machine: the machine and the versions of the libraries.
        micro: single operations.
        comparisons: the workloads over N, on all engines.
        wide: the same against plain NumPy, at other lengths of a row.
        soft_dtw: the soft-DTW table of 200 x 200.
        training: a training step, by layers and engine.
        retained: bytes kept per operation.
        peaks: the peak memory of the workloads.
        chain: seconds for a long chain.
        notes: the lines about what could not be measured.
        disagreements: the lines about engines that computed another gradient.
    """

    machine: dict[str, str] = attrs.Factory(dict)
    micro: list[Row] = attrs.Factory(list)
    comparisons: list[Comparison] = attrs.Factory(list)
    wide: list[Comparison] = attrs.Factory(list)
    soft_dtw: Comparison | None = None
    training: dict[str, dict[str, Timing]] = attrs.Factory(dict)
    retained: dict[str, float] = attrs.Factory(dict)
    peaks: list[Peak] = attrs.Factory(list)
    chain: dict[str, float] = attrs.Factory(dict)
    notes: list[str] = attrs.Factory(list)
    disagreements: list[str] = attrs.Factory(list)

    def comparison(self, name: str) -> Comparison | None:
        """Return the comparison of the workload of that name."""
        return next((comparison for comparison in self.comparisons if comparison.workload == name), None)

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain dictionaries and lists."""
        return attrs.asdict(self)


def machine(engines: Sequence[str]) -> dict[str, str]:
    """Return a description of the machine and the versions of the libraries."""
    found = {
        "python": platform.python_version(),
        "system": platform.platform(),
        "processor": _processor(),
        "cores": str(os.cpu_count()),
    }
    for name in ("numpy", *engines):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "from its sources"
    return found


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or "unknown"
