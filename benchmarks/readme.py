"""Updates figures and picture of README.md from the results of a run: `python -m benchmarks.readme [RESULTS]`."""

from __future__ import annotations

import json
import math
import re
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.micro import CASES

__all__ = ["picture", "renewed"]

ROOT: Final = Path(__file__).resolve().parent.parent
PEERS: Final = {"torch": "PyTorch", "jax": "JAX, `jit`", "mygrad": "MyGrad", "autograd": "autograd"}
ROWS: Final = (
    ("a table filled row by row, 400 x 1000", "row-fill", 400),
    ("the same, 3200 x 1000", "row-fill", 3200),
    ("`x[i] = a * x[i-1]`, 1600 x 1000", "recurrence", 1600),
    ("2-d heat equation, in place, 1600 steps", "heat", 1600),
    ("soft-DTW, cell by cell, 3200 cells", "soft-dtw", 3200),
    ("the same, 200 x 200 cells", "soft-dtw", 40_000),
)
PLACE: Final = re.compile(r"(<!-- benchmarks -->\n).*?(?=<!-- end -->)", re.DOTALL)
# Colours on a light and on a dark page.
COLORS: Final = {
    "paper": ("#fff", "#1e2129"), "grid": ("#ddd", "#3a3f4b"), "ink": ("#333", "#d0d3da"),
    "numpy": ("#777", "#9a9ea8"), "viewgrad": ("#4051b5", "#8c9eff"), "autograd": ("#8a6d00", "#d9b310"),
    "jax": ("#2e9e5b", "#4cc380"), "torch": ("#e8590c", "#ff8a4c"), "mygrad": ("#a0266e", "#f06fb0"),
}  # fmt: skip
LABELS: Final = {
    "numpy": "plain NumPy, no gradient", "viewgrad": "viewgrad", "autograd": "autograd", "jax": "JAX, jit",
    "torch": "PyTorch", "mygrad": "MyGrad",
}  # fmt: skip
Results = Mapping[str, Any]


def main(arguments: Sequence[str]) -> int:
    """Update README.md and its picture; return 1 if there are no results."""
    path = Path(arguments[0]) if arguments else Path(__file__).parent / "out" / "results.json"
    if not path.exists():
        print(f"there is no {path}: run `make bench` first", file=sys.stderr)
        return 1
    results = json.loads(path.read_text(encoding="utf-8"))
    readme, drawing = ROOT / "README.md", ROOT / "docs" / "pictures" / "time-against-n.svg"
    readme.write_text(renewed(readme.read_text(encoding="utf-8"), results), encoding="utf-8")
    drawing.write_text(picture(results), encoding="utf-8")
    print("written:", readme, drawing)
    return 0


def renewed(text: str, results: Results) -> str:
    """Return the text of README.md with the figures of a run between its two marks.

    Raises:
        ValueError: if the text has no such marks.
    """
    block = "\n\n".join([_versions(results), _table(results), _means(results)])
    text, found = PLACE.subn(lambda match: f"{match[1]}{block}\n", text)
    if found != 1:
        raise ValueError("README.md has no place for figures: <!-- benchmarks --> and <!-- end -->")
    return text


def _versions(results: Results) -> str:
    found = {name: ".".join(version.split(".")[:2]) for name, version in results["machine"].items() if name in PEERS}
    names = {"torch": "PyTorch {} (CPU)", "jax": "JAX {}", "mygrad": "MyGrad {}", "autograd": "autograd {}"}
    known = [text.format(found[name]) for name, text in names.items() if name in found]
    beside = ", ".join(known[:-1]) + " and " * (len(known) > 1) + known[-1] if known else "nothing else"
    return (
        f"`make bench` measures it beside {beside}.\n"
        "It first checks that all give the same gradient. Each line is from one run, on one core:"
    )


def _table(results: Results) -> str:
    lines = [
        "| the gradient of | viewgrad | plain NumPy, without gradient | " + " | ".join(PEERS.values()) + " |",
        "|---" * (len(PEERS) + 3) + "|",
    ]
    first = True
    for title, workload, n in ROWS:
        times = _times(results, workload, n)
        if "viewgrad" not in times:
            continue
        cells = [title, _seconds(times["viewgrad"]), _seconds(times["numpy"]) if "numpy" in times else ""]
        for name in PEERS:
            cells.append(f"{_ratio(times[name] / times['viewgrad'])} times" if name in times else "")
            if first and cells[-1]:
                cells[-1] += " as long"
                first = False
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _means(results: Results) -> str:
    elements = {case.name for case in CASES if case.elements}
    ratios: dict[bool, list[float]] = {False: [], True: []}
    for row in results["micro"]:
        if row["gradients"] and row["size"] in (4, 64) and {"viewgrad", "torch"} <= row["times"].keys():
            ratio = _median(row["times"]["viewgrad"]) / _median(row["times"]["torch"])
            ratios[row["name"] in elements].append(ratio)
    if not (ratios[False] and ratios[True]):
        return "Single operations were not measured."
    of_tensors, of_elements = (math.exp(sum(map(math.log, each)) / len(each)) for each in ratios.values())
    return (
        f"Single operations on tensors of up to 64 elements take {of_tensors:.2f} of PyTorch's time, forward and "
        "backward together.\n"
        f"Reads, products and writes of single numbers take {of_elements:.2f} of it (geometric means)."
    )


def _times(results: Results, workload: str, n: int) -> dict[str, float]:
    """Return the median times of a workload at one size, by engine."""
    comparisons = [*results["comparisons"], *([results["soft_dtw"]] if results.get("soft_dtw") else [])]
    return {
        name: _median(curve["times"][str(n)])
        for comparison in comparisons
        if comparison["workload"] == workload
        for name, curve in comparison["curves"].items()
        if str(n) in curve["times"]
    }


def _median(time: Mapping[str, Any]) -> float:
    return statistics.median(time["samples"])


def _seconds(value: float) -> str:
    """Return a time with two digits, in milliseconds or seconds."""
    return f"{value:.2g} s" if value >= 1 else f"{_ratio(value * 1e3)} ms"


def _ratio(value: float) -> str:
    """Return a number with two digits."""
    return f"{float(f'{value:.2g}'):g}"


# -- the picture ------------------------------------------------------------------------------------------------------


def picture(results: Results) -> str:
    """Return the time of the gradient of a table that is filled row by row, against the number of rows, as SVG."""
    (row_fill,) = [each for each in results["comparisons"] if each["workload"] == "row-fill"]
    curves = {
        name: {int(n): _median(time) for n, time in row_fill["curves"][name]["times"].items()}
        for name in LABELS
        if name in row_fill["curves"] and row_fill["curves"][name]["times"]
    }
    sizes = sorted({n for times in curves.values() for n in times})
    all_times = [time for times in curves.values() for time in times.values()]
    low, high = math.floor(math.log10(min(all_times))), math.ceil(math.log10(max(all_times)))

    def x(n: int) -> float:
        return 90 + 364 * (math.log(n / sizes[0]) / math.log(sizes[-1] / sizes[0]) if len(sizes) > 1 else 0.5)

    def y(seconds: float) -> float:
        return 250 - 215 * (math.log10(seconds) - low) / (high - low)

    title = "Time of the gradient of a table that is filled row by row"
    lines = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 680 300" width="680" height="300" '
        f'font-family="sans-serif" font-size="13"><title>{title}</title>',
        f"<style>{_colors(0)} @media (prefers-color-scheme: dark) {{ {_colors(1)} }}</style>",
        '<rect width="100%" height="100%" rx="6" class="paper"/>',
    ]
    for power in range(low, high + 1):
        height = y(10.0**power)
        label = f"{10**power:g} s" if power >= 0 else f"{10 ** (power + 3):g} ms"
        lines.append(f'<path d="M70 {height:.0f}H490" class="grid line"/>')
        lines.append(_text(62, height + 4, label, anchor="end"))
    lines += [_text(x(n), 270, str(n), anchor="middle") for n in sizes]
    lines += [_text(280, 290, "rows written, of 1000 numbers each", anchor="middle"), _text(70, 19, title)]
    heights = _apart({name: y(times[max(times)]) for name, times in curves.items()}, 15)
    for name, times in curves.items():
        places = [(x(n), y(time)) for n, time in sorted(times.items())]
        width = 3 if name == "viewgrad" else 1.8
        path = "M" + "L".join(f"{a:.0f} {b:.0f}" for a, b in places)
        lines.append(f'<path d="{path}" class="{name} line" stroke-width="{width}"/>')
        lines += [f'<circle cx="{a:.0f}" cy="{b:.0f}" r="3.5" class="{name}"/>' for a, b in places]
        bold = ' font-weight="bold"' if name == "viewgrad" else ""
        lines.append(_text(places[-1][0] + 10, heights[name] + 4, LABELS[name], name, more=bold))
    return "\n".join([*lines, "</svg>", ""])


def _colors(scheme: int) -> str:
    """Return the style rules of the light (0) or the dark scheme (1)."""
    rule = ".{0} {{fill:{1}}} .{0}.line {{fill:none;stroke:{1}}}"
    return " ".join(rule.format(name, colors[scheme]) for name, colors in COLORS.items())


def _text(x: float, y: float, text: str, color: str = "ink", anchor: str = "start", more: str = "") -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" class="{color}"{more}>{text}</text>'


def _apart(heights: dict[str, float], distance: float) -> dict[str, float]:
    """Return heights of labels, moved down if labels would overlap."""
    placed: dict[str, float] = {}
    last = -math.inf
    for name in sorted(heights, key=lambda name: heights[name]):
        last = placed[name] = max(heights[name], last + distance)
    return placed


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
