"""The report of a run: tables as text, everything as JSON, and a plot of time over N."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from benchmarks.growth import Comparison
from benchmarks.reach import figures
from benchmarks.results import Results

__all__ = ["render", "render_comparison", "render_micro", "write"]

ENGINES: Final = ("viewgrad", "numpy", "torch", "mygrad", "autograd", "jax")
COLORS: Final = dict(zip(ENGINES, ("tab:red", "tab:gray", "tab:orange", "tab:green", "tab:purple", "tab:blue")))


def table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return columns of text: the first one flush left, the others flush right."""
    widths = [max(len(row[i]) for row in [headers, *rows]) for i in range(len(headers))]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:]))])
        for row in [headers, *rows]
    ]
    lines.insert(1, "-" * len(lines[0]))
    return "\n".join(line.rstrip() for line in lines)


def seconds(value: float | None) -> str:
    """Return a time in a suitable unit."""
    if value is None:
        return "-"
    for limit, scale, unit in ((1e-6, 1e9, "ns"), (1e-3, 1e6, "us"), (1.0, 1e3, "ms")):
        if value < limit:
            return f"{value * scale:.3g} {unit}"
    return f"{value:.3g} s"


def ratio(value: float | None) -> str:
    """Return a ratio of times as text."""
    return "-" if value is None else f"{value:.2f}" if value < 100 else f"{value:.0f}"


def size(value: float) -> str:
    """Return a number of bytes as text."""
    for scale, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value:.0f} B"


def render(results: Results) -> str:
    """Return all sections for which there are measurements."""
    parts: list[tuple[str, bool, Callable[[Results], str]]] = [
        ("Single operations (per operation, in chains)", bool(results.micro), render_micro),
        ("Workloads: the gradient over N", bool(results.comparisons), _render_comparisons),
        ("Gradient time / plain NumPy time", bool(results.comparisons or results.wide), _render_ratios),
        ("Soft-DTW, 200 x 200, cell by cell", results.soft_dtw is not None, _render_soft_dtw),
        ("Training step, batch 64", bool(results.training), _render_training),
        ("Memory", bool(results.retained or results.peaks or results.chain), _render_memory),
        ("Reach", True, _render_reach),
    ]
    text = ["  ".join(f"{name} {value}" for name, value in results.machine.items())]
    for title, there, part in parts:
        if there:
            text += ["", title, "=" * len(title), part(results)]
    if results.notes or results.disagreements:
        different = [f"DIFFERENT GRADIENT: {line}" for line in results.disagreements]
        text += ["", "Notes", "=====", *results.notes, *different]
    return "\n".join(text)


def render_micro(results: Results) -> str:
    """Return the micro suite, with its geometric means."""
    rows = []
    for row in results.micro:
        ours, theirs = row.seconds("viewgrad"), row.seconds("torch")
        rows.append([row.name, f"{row.size:,}", seconds(ours), seconds(theirs), ratio(row.ratio("viewgrad", "torch"))])
    return table(["operation", "elements", "viewgrad", "torch", "ratio"], rows)


def render_comparison(comparison: Comparison) -> str:
    """Return one workload: a line for each N, a column for each engine, and the exponents of growth."""
    engines = [name for name in ENGINES if name in comparison.curves]
    sizes = sorted({n for curve in comparison.curves.values() for n in curve.times})
    rows = []
    for n in sizes:
        row = [f"{n:,}", *(seconds(comparison.curves[name].seconds(n)) for name in engines)]
        row += [ratio(comparison.ratio(name, "viewgrad", n)) for name in engines[1:]]
        rows.append(row)
    exponents = [comparison.curves[name].exponent for name in engines]
    rows.append(["exponent", *("-" if e is None else f"{e:.2f}" for e in exponents), *("" for _ in engines[1:])])
    width = "" if comparison.width is None else f", rows of {comparison.width:,}"
    title = f"{comparison.workload} (N: {comparison.counts}{width})"
    headers = ["N", *engines, *(f"{name} / {engines[0]}" for name in engines[1:])]
    return "\n".join([title, table(headers, rows), *(f"  {note}" for note in comparison.notes), ""])


def _render_comparisons(results: Results) -> str:
    return "\n".join(render_comparison(comparison) for comparison in results.comparisons)


def _render_soft_dtw(results: Results) -> str:
    assert results.soft_dtw is not None
    return render_comparison(results.soft_dtw)


def _render_ratios(results: Results) -> str:
    rows = []
    for comparison in [*results.comparisons, *results.wide]:
        if "viewgrad" not in comparison.curves:
            continue
        sizes = list(comparison.curves["viewgrad"].times)
        values = " ".join(ratio(comparison.ratio("viewgrad", "numpy", n)) for n in sizes)
        width = "" if comparison.width is None else f"{comparison.width:,}"
        rows.append([comparison.workload, width, values, " ".join(map(str, sizes))])
    return table(["workload", "row", "ratios", "at N"], rows)


def _render_training(results: Results) -> str:
    engines = [name for name in ENGINES if any(name in times for times in results.training.values())]
    rows = []
    for layers, times in results.training.items():
        medians = {name: timing.median for name, timing in times.items()}
        row = [layers, *(seconds(medians.get(name)) for name in engines)]
        for name in engines[1:]:
            both = name in medians and "viewgrad" in medians
            row.append(ratio(medians[name] / medians["viewgrad"] if both else None))
        rows.append(row)
    return table(["layers", *engines, *(f"{name} / {engines[0]}" for name in engines[1:])], rows)


def _render_memory(results: Results) -> str:
    text = []
    if results.retained:
        rows = [[name, f"{value:.0f}"] for name, value in results.retained.items()]
        text += [table(["kept per operation, 4 elements", "bytes"], rows), ""]
    if results.peaks:
        rows = [
            [
                peak.workload,
                *(size(peak.peak[n]) for n in peak.peak),
                f"{peak.exponent:.2f}",
                size(peak.plain[max(peak.plain)]),
                size(peak.inputs[max(peak.inputs)]),
                f"{peak.times_the_inputs(max(peak.peak)):.2f}",
            ]
            for peak in results.peaks
        ]
        sizes = list(results.peaks[0].peak)
        headers = ["peak memory", *(f"N = {n}" for n in sizes), "exponent", "plain NumPy", "inputs", "peak / inputs*"]
        text += [table(headers, rows), "* at the largest N, without the gradients that are returned", ""]
    if results.chain:
        chain = results.chain
        text.append(
            f"{chain['operations']:,.0f} chained in-place operations: recording {chain['recording']:.2f} s, "
            f"backward {chain['backward']:.2f} s, deallocation {chain['deallocation']:.2f} s"
        )
    return "\n".join(text)


def _render_reach(results: Results) -> str:
    rows = []
    details = []
    for figure in figures(results):
        verdict = "not measured" if figure.measured is None else "met" if figure.met else "NOT MET"
        rows.append([figure.measure, figure.aim, figure.measured or "-", verdict])
        if figure.detail:
            details.append(f"  {figure.measure}: {figure.detail}")
    return "\n".join([table(["figure", "aim", "measured", ""], rows), "", *details])


def write(results: Results, directory: Path) -> list[Path]:
    """Write the report, the measurements and the plot; return the paths."""
    directory.mkdir(parents=True, exist_ok=True)
    report = directory / "report.txt"
    report.write_text(render(results) + "\n", encoding="utf-8")
    data = directory / "results.json"
    data.write_text(json.dumps(results.to_json(), indent=1), encoding="utf-8")
    written = [report, data]
    if results.comparisons:
        try:
            written += plot(results.comparisons, directory)
        except ImportError:
            print("matplotlib is not installed: no plot")
    return written


def plot(comparisons: Sequence[Comparison], directory: Path) -> list[Path]:
    """Plot time over N for every workload and engine, both logarithmic, as SVG and PNG."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    columns = min(4, len(comparisons))
    lines = -(-len(comparisons) // columns)
    figure, axes = pyplot.subplots(lines, columns, figsize=(3.6 * columns, 3.0 * lines), squeeze=False)
    for axis in axes.flat[len(comparisons) :]:
        axis.set_visible(False)
    for axis, comparison in zip(axes.flat, comparisons):
        for name in ENGINES:
            if name in comparison.curves:
                times = comparison.curves[name].times
                axis.loglog(
                    list(times), [timing.median for timing in times.values()], ".-", color=COLORS[name], label=name,
                    linewidth=2 if name == "viewgrad" else 1,
                )
        sizes = sorted({n for curve in comparison.curves.values() for n in curve.times})
        axis.set_xticks(sizes, map(str, sizes))
        axis.set_xticks([], minor=True)
        axis.set_title(comparison.workload, fontsize=10)
        axis.set_xlabel(f"N: {comparison.counts}", fontsize=8)
        axis.tick_params(labelsize=7)
        axis.grid(True, which="both", alpha=0.2)
    axes[0, 0].set_ylabel("seconds for the gradient (numpy: the program)", fontsize=8)
    handles = {}
    for axis in axes.flat:
        for handle, name in zip(*axis.get_legend_handles_labels()):
            handles[name] = handle
    figure.legend(handles.values(), handles.keys(), loc="upper center", ncols=len(handles), fontsize=9)
    figure.tight_layout(rect=(0, 0, 1, 0.97 if lines > 1 else 0.9))
    paths = [directory / "time_over_n.svg", directory / "time_over_n.png"]
    for path in paths:
        figure.savefig(path, dpi=120)
    pyplot.close(figure)
    return paths
