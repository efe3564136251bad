"""Filter designs and properties of peaks, in unmodified programs."""

import numpy as np
import pytest

pytest.importorskip("scipy")
from scipy import signal
from scipy_cases import check_program

X = np.array([1.0, 2.0, 3.0])
TIMES = np.linspace(0.0, 1.0, 60)
PROPERTIES = ("peak_heights", "prominences", "widths", "width_heights", "left_ips", "right_ips", "left_thresholds",
              "right_thresholds")  # fmt: skip


def of_parts(parts):
    return sum((abs(np.asarray(part) - 0.5) ** 2).sum() for part in parts)


def wave(x):
    return np.sin(x[0] * 9 * TIMES) * np.exp(-0.3 * x[1] * TIMES) + 0.1 * np.sin(70 * TIMES)


def of_peaks(x):
    y = wave(x)
    peaks, found = signal.find_peaks(y, height=-5, threshold=0, prominence=0, width=0, rel_height=0.4)
    weights = np.arange(1.0, len(peaks) + 1)
    return y[peaks].sum() + sum((found[name] * weights).sum() for name in PROPERTIES)


def of_widths(x):
    y = wave(x)
    peaks = signal.find_peaks(y)[0]
    data = signal.peak_prominences(y, peaks, wlen=21)
    known = signal.peak_widths(y, peaks, prominence_data=data)[0]
    measured = signal.peak_widths(y, peaks, rel_height=0.3 + 0.1 * x[2])
    return (data[0] ** 2).sum() + known.sum() + sum((each * np.arange(1.0, len(peaks) + 1)).sum() for each in measured)


PROGRAMS = {
    **{f"ellip {n}": lambda x, n=n: of_parts(signal.ellip(n, x[0], 40 + x[1], 0.1 * x[2])) for n in (1, 2, 3, 4)},
    "ellip, bandpass": lambda x: of_parts([signal.ellip(3, x[0], 40, [0.1 * x[0], 0.2 * x[2]], "band", output="sos")]),
    "ellip, close to 1": lambda x: of_parts(signal.ellip(4, x[0], 50, 0.1 * x[1])),
    "ellipap": lambda x: of_parts(signal.ellipap(4, x[0], x[1] * 20)),
    "cheby1": lambda x: of_parts(signal.cheby1(4, x[0], 0.1 * x[2])),
    "cheb1ap": lambda x: of_parts(signal.cheb1ap(3, x[0])),
    "cheby2": lambda x: of_parts(signal.cheby2(5, 20 + x[0], 0.1 * x[2], "high")),
    **{f"bessel {norm}": lambda x, norm=norm: of_parts(signal.bessel(3, 0.1 * x[1], norm=norm))
       for norm in ("phase", "delay", "mag")},
    "iirfilter": lambda x: of_parts(signal.iirfilter(3, [0.1 * x[0], 0.2 * x[2]], rs=30 + x[1], ftype="chebyshevii")),
    "savgol_filter": lambda x: of_parts([
        signal.savgol_filter(wave(X), 7, 2, deriv=1, delta=x[0]),
        signal.savgol_filter(wave(X), 6, 3, 2, x[1], mode="mirror"),
    ]),
    "stft": lambda x: of_parts([part.real for part in signal.stft(wave(X), fs=x[0], nperseg=8, scaling="psd")]),
    "istft": lambda x: of_parts(signal.istft(signal.stft(wave(X), nperseg=8)[2], fs=x[0], nperseg=8)),
    "spectrogram": lambda x: of_parts(signal.spectrogram(wave(X), fs=x[0], nperseg=8)),
    "find_peaks": of_peaks,
    "peak_widths": of_widths,
    "no peaks": lambda x: signal.find_peaks(wave(x), height=5.0, width=1)[1]["widths"].sum() + x[0],
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives_match_central_differences(name):
    check_program(PROGRAMS[name], X)
