"""Peaks of a signal: their positions are constants, and their heights, prominences and widths have gradients."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import scipy.signal  # type: ignore[import-untyped]

from ...operators.numpy_api.conversion import as_tensors, plain_values
from ..wrap import Accepted, floating, make_constant, maker, numbers, of_detached

MADE: dict[str, Any] = {}
made: Final = maker(scipy.signal, MADE, is_checked=True, accepted=Accepted(by_value=False))
make_constant(
    scipy.signal,
    ("find_peaks_cwt", "argrelmax", "argrelmin", "argrelextrema"),
    MADE,
    "its results are positions, which have no gradients.",
)


@made
def find_peaks(
    x: Any, height: Any = None, threshold: Any = None, distance: Any = None, prominence: Any = None, width: Any = None,
    wlen: Any = None, rel_height: Any = 0.5, plateau_size: Any = None,
) -> Any:  # fmt: skip
    """Return the positions of peaks, and a dict of their properties, through which gradients flow to the signal."""
    peaks, found = of_detached(
        scipy.signal.find_peaks, x, height, threshold, distance, prominence, width, wlen, rel_height, plateau_size
    )
    x, places = floating(x), plain_values(peaks)
    if "peak_heights" in found:
        found["peak_heights"] = x[places]
    if "left_thresholds" in found:
        found["left_thresholds"] = x[places] - x[places - 1]
        found["right_thresholds"] = x[places] - x[places + 1]
    if "prominences" in found:
        bases = [plain_values(found[f"{side}_bases"]) for side in ("left", "right")]
        found["prominences"] = _prominences(x, places, *bases)
        if "widths" in found:
            names = ("widths", "width_heights", "left_ips", "right_ips")
            found.update(zip(names, _widths(x, places, found["prominences"], bases, rel_height)))
    return peaks, found


@made
def peak_prominences(x: Any, peaks: Any, wlen: Any = None) -> Any:
    """Return the prominences of peaks and the positions of their bases."""
    found, left, right = of_detached(scipy.signal.peak_prominences, x, peaks, wlen)
    if not np.size(found):
        return found, left, right
    places = np.asarray(plain_values(peaks))
    return _prominences(floating(x), places, plain_values(left), plain_values(right)), left, right


@made
def peak_widths(x: Any, peaks: Any, rel_height: Any = 0.5, prominence_data: Any = None, wlen: Any = None) -> Any:
    """Return the widths of peaks, the heights at which they are measured, and the ends of the widths."""
    x, places = floating(x), np.asarray(plain_values(peaks))
    prominences, left, right = prominence_data or MADE["peak_prominences"](x, peaks, wlen)
    bases, rel_height = [np.asarray(plain_values(each)) for each in (left, right)], numbers(rel_height)
    known = plain_values(numbers(prominences).detach()), *bases
    # This raises for unsupported arguments.
    found = scipy.signal.peak_widths(plain_values(x.detach()), places, plain_values(rel_height.detach()), known, wlen)
    return _widths(x, places, prominences, bases, rel_height) if places.size else as_tensors(found)


def _prominences(x: Any, peaks: Any, left: Any, right: Any) -> Any:
    return x[peaks] - np.maximum(x[left], x[right])


def _widths(x: Any, peaks: Any, prominences: Any, bases: Any, rel_height: Any) -> Any:
    """Return the widths, their heights, and their ends, by linear interpolation of the signal."""
    heights = x[peaks] - prominences * rel_height
    plain, level = plain_values(x.detach()), plain_values(heights.detach())
    ends = []
    for step, limits in zip((-1, 1), bases):
        places = np.empty(len(peaks), int)
        for n, (place, limit) in enumerate(zip(peaks, limits)):
            while place != limit and level[n] < plain[place]:
                place += step
            places[n] = place
        is_below = plain[places] < level
        inner = np.where(is_below, places - step, places)
        slope = np.where(is_below, x[inner] - x[places], 1.0)
        ends.append(places - np.where(is_below, step * (heights - x[places]) / slope, 0.0))
    return ends[1] - ends[0], heights, *ends
