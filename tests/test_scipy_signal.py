"""`viewgrad.scipy.signal`: values are SciPy's, gradients of first and second order those of finite differences."""

import numpy as np
import pytest

scipy = pytest.importorskip("scipy")
from scipy_cases import call, check, named  # noqa: E402

import viewgrad as vg  # noqa: E402
from viewgrad.errors import UnsupportedFunctionError  # noqa: E402
from viewgrad.scipy import signal  # noqa: E402

RNG = np.random.default_rng(2)
X, Y = RNG.standard_normal(16), RNG.standard_normal(16)
LONG, ROWS, Z = RNG.standard_normal(60), RNG.standard_normal((2, 9)), X[:8] + 1j * X[8:]
B, A = np.array([0.5, 0.3, 0.2]), np.array([1.2, -0.4, 0.3])
SOS = np.array([[0.5, 0.3, 0.2, 1.0, -0.4, 0.3], [1.0, 0.2, 0.1, 1.0, 0.1, 0.2]])
SYSTEM = (np.array([[-0.5, 0.3], [-0.2, -0.8]]), np.array([[1.0], [0.4]]), np.array([[0.7, -0.3]]), np.array([[0.1]]))
ROOTS, POLES = np.array([0.5 + 0.2j, 0.5 - 0.2j]), np.array([0.3 + 0.4j, 0.3 - 0.4j, -0.2 + 0.0j])


def moduli(result):
    """Return the absolute values of the last result."""
    return abs(result[-1]) if isinstance(result, tuple) else abs(result)


CASES = [
    call("savgol_filter", X, 5, 2),
    call("savgol_filter", ROWS, 4, 1, 1, 0.5, 1),
    *[call("savgol_filter", X, 5, 2, mode=mode) for mode in ("mirror", "nearest", "constant", "wrap")],
    call("wiener", X, 3),
    call("medfilt", X, 5),
    call("medfilt2d", ROWS, 3),
    call("order_filter", ROWS, np.ones((1, 3), int), 2),
    call("sosfilt_zi", SOS),
    call("sosfiltfilt", SOS, LONG[:24]),
    call("deconvolve", X, B),
    call("lfiltic", B, A, X[:2], Y[:2]),
    call("upfirdn", B, X, 3, 2),
    call("upfirdn", B, ROWS, 2, axis=0),
    *[call("resample_poly", LONG, up, down) for up, down in ((3, 2), (2, 5), (4, 2))],
    call("decimate", LONG, 3),
    call("decimate", LONG, 2, ftype="fir"),
    call("decimate", LONG, 2, 8, ftype="fir", zero_phase=False),
    *[call("resample", x, count) for x in (X, X[:15], Z) for count in (7, 8, 16, 20, 21)],
    call("sawtooth", X * 4, 0.3),
    *[call("chirp", X, np.array(1.0), np.array(2.0), np.array(3.0), method)
      for method in ("linear", "quadratic", "logarithmic", "hyperbolic")],
    call("chirp", X, 1.0, 2.0, 3.0, "quadratic", 30, False),
    call("gausspulse", X, fc=2, retquad=True, retenv=True),
    call("gauss_spline", X, 3),
    call("freqz", B, A, 7),
    call("freqz", B, 1, np.array([0.3, 0.9]), fs=4.0),
    call("freqz", B, A, 6, whole=True),
    call("freqz_zpk", ROOTS, POLES, 1.5, 5),
    call("sosfreqz", SOS, 6),
    call("freqs", B, A, np.array([0.3, 0.9])),
    call("freqs_zpk", ROOTS, POLES, 1.5, np.array([0.3, 0.9])),
    call("freqresp", (B, A), np.array([0.3, 0.9]), at=(1,)),
    call("bode", (B, A), np.array([0.3, 0.9]), at=(1,)),
    call("group_delay", (B, A), np.array([0.3, 0.9]), at=(1,)),
    *[call(name, X) for name in ("periodogram", "welch")],
    *[call(name, Z, return_onesided=False) for name in ("periodogram", "welch")],
    call("periodogram", X, 2.0, "hann", 20, "linear", scaling="spectrum"),
    call("welch", X, 2.0, nperseg=6, noverlap=2, average="median"),
    call("welch", ROWS, nperseg=4, detrend=False, window=np.array([1.0, 2.0, 2.0, 1.0]), at=(0,), axis=1),
    call("csd", X, Y, nperseg=7),
    call("csd", X, Y, nperseg=6, average="median"),
    call("coherence", X, Y, nperseg=6),
    *[call("spectrogram", X, nperseg=6, mode=mode) for mode in ("psd", "complex", "magnitude", "angle", "phase")],
    call("stft", X, nperseg=6),
    call("stft", X, 2.0, nperseg=6, noverlap=4, boundary=None, padded=False, scaling="psd"),
    call("stft", X, nperseg=6, boundary="odd"),
    call("istft", RNG.standard_normal((4, 6)) + 1j * RNG.standard_normal((4, 6)), nperseg=6, first_only=True),
    call("lombscargle", X, Y, np.array([0.5, 1.3])),
    call("lombscargle", X, Y, np.array([0.5, 1.3]), normalize=True),
    call("czt", X),
    call("czt", Z, 5, 0.9 + 0.2j, 1.1 + 0.1j),
    call("zoom_fft", X, [0.2, 0.7], 5),
    call("vectorstrength", X, 2.5),
    call("zpk2tf", ROOTS, POLES, 1.5, at=(2,)),
    call("tf2zpk", B, A, first_only=True),
    call("tf2ss", B, A),
    call("ss2tf", *SYSTEM),
    call("sos2tf", SOS),
    call("normalize", B, A),
    *[call("cont2discrete", SYSTEM, np.array(0.3), method, at=(1,), pick=lambda result: result[:4])
      for method in ("zoh", "foh", "bilinear", "euler", "backward_diff")],
    call("cont2discrete", (*SYSTEM[:3], np.zeros((1, 1))), np.array(0.3), "impulse", at=(1,),
         pick=lambda result: result[:4]),
    call("lsim", SYSTEM, X, np.linspace(0, 3, 16), at=(1,)),
    call("lsim", (B, np.append(A, 0.5)), X, np.linspace(0, 3, 16), np.array([0.1, 0.2, 0.3]), False, at=(1, 3)),
    call("dlsim", (*SYSTEM, 0.1), X, at=(1,)),
    call("bilinear", B, A, 2.0),
    *[call(name, ROOTS, POLES, 1.5, np.array(1.3), pick=moduli)
      for name in ("lp2lp_zpk", "lp2hp_zpk")],
    call("bilinear_zpk", ROOTS, POLES, 1.5, 2.0, pick=moduli),
    *[call(name, 3, np.array(0.3), kind, pick=lambda result: result)
      for name in ("butter",) for kind in ("low", "high")],
    call("butter", 2, np.array([0.2, 0.5]), "bandpass"),
    call("butter", 2, np.array([0.2, 0.5]), "bandstop", fs=3.0),
    call("butter", 4, np.array(0.3), output="sos"),
    call("cheby1", 3, 0.5, np.array(0.3)),
    call("cheby2", 3, 20, np.array(0.3)),
    call("iirnotch", np.array(0.3), np.array(5.0)),
    call("iirpeak", np.array(0.3), np.array(5.0)),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", CASES, ids=named)
def test_values_and_gradients(case):
    check("signal", case)


@pytest.mark.parametrize("name", ["step", "impulse"])
def test_responses_in_time(name):
    den = vg.Tensor(A, requires_grad=True)
    times, found = getattr(signal, name)((B[:2], den), N=12)
    right = getattr(scipy.signal, name)((B[:2], A), N=12)
    np.testing.assert_allclose(times.detach().numpy(), right[0])
    np.testing.assert_allclose(found.detach().numpy(), right[1], rtol=1e-8)
    assert vg.autograd.gradcheck(lambda den: getattr(signal, name)((B[:2], den), T=right[0])[1], den)


def test_positions_have_no_gradient():
    x = vg.Tensor(X, requires_grad=True)
    np.testing.assert_array_equal(signal.find_peaks(x)[0], scipy.signal.find_peaks(X)[0])
    np.testing.assert_array_equal(signal.argrelmax(x)[0], scipy.signal.argrelmax(X)[0])


def test_unsupported_options_raise():
    x = vg.Tensor(X, requires_grad=True)
    for wrong in (lambda: signal.resample(x, 5, window="hann"), lambda: signal.upfirdn(B, x, mode="wrap")):
        with pytest.raises(UnsupportedFunctionError, match=r"scipy\.signal"):
            wrong()


def test_tensors_without_history_in_loops_that_need_writable_arrays():
    found = signal.sosfilt(vg.Tensor(SOS), vg.Tensor(X), zi=vg.zeros((2, 2)))
    for ours, right in zip(found, scipy.signal.sosfilt(SOS, X, zi=np.zeros((2, 2)))):
        np.testing.assert_allclose(ours.numpy(), right)
