"""The target figures, each beside the measured value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import attrs

from benchmarks.measuring import growth_exponent
from benchmarks.memory import ELEMENTWISE
from benchmarks.results import Results
from benchmarks.workloads import WORKLOADS

__all__ = ["Figure", "figures"]

NARROW: Final = 1000
WIDE: Final = 100_000
BY_CELL: Final = {workload.name for workload in WORKLOADS if workload.by_cell}
FLAT: Final = 0.1  # the largest exponent of growth of a ratio that is called flat


@attrs.frozen
class Figure:
    """One figure.

    Arguments:
        measure: the measured quantity.
        aim: the target, such as "at least 200".
        measured: the measured value; None if it was not measured.
        met: True if a value was measured and it reaches the target.
        detail: for example, where the worst value was found.
    """

    measure: str
    aim: str
    measured: str | None
    met: bool
    detail: str = ""


def figures(results: Results) -> list[Figure]:
    """Return all figures, the most important first."""
    return [
        _row_fill(results),
        _exponents(results),
        *_ratios_to_numpy(results, NARROW, 8.0),
        *_ratios_to_numpy(results, WIDE, 5.0),
        *_small_tensors(results),
        _large_tensors(results),
        _soft_dtw(results),
        _retained(results),
        _peak(results),
        _chain(results),
    ]


def _not_measured(measure: str, aim: str) -> Figure:
    return Figure(measure, aim, None, False)


def _row_fill(results: Results) -> Figure:
    measure, aim = "row fill, gradient, 3200 x 1000: times faster than PyTorch", "at least 200"
    row_fill = results.comparison("row-fill")
    ratio = row_fill.ratio("torch", "viewgrad", 3200) if row_fill else None
    if row_fill is None or ratio is None:
        return _not_measured(measure, aim)
    jax = row_fill.ratio("jax", "viewgrad", 3200)
    return Figure(measure, aim, f"{ratio:.0f}", ratio >= 200, f"jax: {jax:.0f} times" if jax else "")


def _exponents(results: Results) -> Figure:
    measure, aim = "growth exponent, N = 400 to 6400, worst workload", "at most 1.1"
    found = {
        c.workload: c.curves["viewgrad"].exponent
        for c in results.comparisons
        if "viewgrad" in c.curves and max(c.curves["viewgrad"].times) >= 6400
    }
    exponents = {name: exponent for name, exponent in found.items() if exponent is not None}
    if not exponents:
        return _not_measured(measure, aim)
    worst = max(exponents, key=lambda name: exponents[name])
    above = [
        f"{name} {exponent:.2f} (plain NumPy {_numpy_exponent(results, name)})"
        for name, exponent in exponents.items()
        if exponent > 1.1
    ]
    return Figure(measure, aim, f"{exponents[worst]:.2f}", not above, "; ".join(above) or worst)


def _numpy_exponent(results: Results, name: str) -> str:
    comparison = results.comparison(name)
    exponent = comparison.curves["numpy"].exponent if comparison and "numpy" in comparison.curves else None
    return "?" if exponent is None else f"{exponent:.2f}"


def _ratios_to_numpy(results: Results, width: int, aim: float) -> list[Figure]:
    rows = f"rows of {width:,}"
    measures = (
        f"gradient time / plain NumPy time, {rows}: row fill",
        f"the same, worst of the programs whose steps are on rows, {rows}",
        f"the same, worst of those that also have steps on single elements, {rows}",
        f"the same, growth exponent over N, worst workload, {rows}",
    )
    aims = (f"at most {aim:g}",) * 3 + (f"flat (at most {FLAT})",)
    ratios: dict[str, dict[int, float]] = {}  # of gradients; second derivatives are excluded
    for comparison in [*results.comparisons, *results.wide]:
        if comparison.width == width and "viewgrad" in comparison.curves and comparison.workload != "double-backward":
            by_n = {n: comparison.ratio("viewgrad", "numpy", n) for n in comparison.curves["viewgrad"].times}
            ratios[comparison.workload] = {n: ratio for n, ratio in by_n.items() if ratio is not None}
    if not ratios:
        return [_not_measured(measure, aim) for measure, aim in zip(measures, aims)]
    found = []
    if "row-fill" in ratios:
        values = ratios["row-fill"].values()
        found.append(
            Figure(measures[0], aims[0], f"{max(values):.2f}", max(values) <= aim, " ".join(f"{v:.2f}" for v in values))
        )
    for measure, by_cell in ((measures[1], False), (measures[2], True)):
        worst = {name: max(by_n.values()) for name, by_n in ratios.items() if (name in BY_CELL) == by_cell}
        if worst:
            found.append(_worst(measure, aims[1], worst, aim))
    slopes = {name: growth_exponent(by_n) for name, by_n in ratios.items() if len(by_n) > 2}
    if slopes:
        rising = [f"{name} {slope:.2f}" for name, slope in slopes.items() if slope > FLAT]
        found.append(Figure(measures[3], aims[3], f"{max(slopes.values()):.2f}", not rising, ", ".join(rising)))
    return found


def _micro_ratios(results: Results, sizes: Sequence[int]) -> dict[str, float]:
    return {
        f"{row.name} [{row.size}]": ratio
        for row in results.micro
        if row.size in sizes and row.gradients and (ratio := row.ratio("viewgrad", "torch")) is not None
    }


def _small_tensors(results: Results) -> list[Figure]:
    measures = (
        "micro suite, up to 64 elements, forward + backward, PyTorch = 1: geometric mean",
        "the same, worst operation",
    )
    ratios = _micro_ratios(results, (4, 64))
    if not ratios:
        return [_not_measured(measures[0], "at most 0.42"), _not_measured(measures[1], "none above 1.0")]
    mean = math.exp(sum(math.log(ratio) for ratio in ratios.values()) / len(ratios))
    return [
        Figure(measures[0], "at most 0.42", f"{mean:.2f}", mean <= 0.42),
        _worst(measures[1], "none above 1.0", ratios, 1.0),
    ]


def _large_tensors(results: Results) -> Figure:
    measure, aim = "micro suite, 1,000,000 elements, PyTorch = 1: worst operation", "none above 1.3"
    ratios = _micro_ratios(results, (1_000_000,))
    return _worst(measure, aim, ratios, 1.3) if ratios else _not_measured(measure, aim)


def _worst(measure: str, aim: str, ratios: dict[str, float], limit: float) -> Figure:
    ranked = sorted(ratios.items(), key=lambda item: -item[1])
    above = [f"{name} {ratio:.2f}" for name, ratio in ranked if ratio > limit]
    worst, ratio = ranked[0]
    return Figure(measure, aim, f"{ratio:.2f}", not above, ", ".join(above) or worst)


def _soft_dtw(results: Results) -> Figure:
    measure, aim = "soft-DTW, 200 x 200, cell by cell: times faster than PyTorch", "at least 6"
    square = results.soft_dtw
    ratio = square.ratio("torch", "viewgrad", 40_000) if square else None
    return _not_measured(measure, aim) if ratio is None else Figure(measure, aim, f"{ratio:.1f}", ratio >= 6)


def _retained(results: Results) -> Figure:
    measure, aim = "retained per elementwise operation, small tensors, in bytes", "at most 700"
    if not results.retained:
        return _not_measured(measure, aim)
    kept = {name: value for name, value in results.retained.items() if name in ELEMENTWISE}
    worst = max(kept, key=lambda name: kept[name])
    value = kept[worst]
    return Figure(measure, aim, f"{value:.0f}", value <= 700, worst)


def _peak(results: Results) -> Figure:
    measure, aim = "peak memory of row fill, beyond inputs and outputs, in tables", "at most 3"
    peak = next((peak for peak in results.peaks if peak.workload == "row-fill"), None)
    if peak is None:
        return _not_measured(measure, aim)
    value = peak.times_the_inputs(max(peak.peak))
    return Figure(measure, aim, f"{value:.2f}", value <= 3)


def _chain(results: Results) -> Figure:
    measure, aim = "one million chained in-place operations, in seconds", "under 10"
    if not results.chain or results.chain["operations"] < 1_000_000:
        return _not_measured(measure, aim)
    total = results.chain["backward"] + results.chain["deallocation"]
    detail = f"backward and deallocation; recording {results.chain['recording']:.1f} more"
    return Figure(measure, aim, f"{total:.1f}", total < 10, detail)
