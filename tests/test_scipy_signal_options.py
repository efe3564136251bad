"""Options of filters, responses and spectra with a history: values are SciPy's, and the same calls raise errors."""

import itertools

import numpy as np
import pytest

pytest.importorskip("scipy")
from scipy import signal as theirs

import viewgrad as vg
from viewgrad.autograd import gradcheck
from viewgrad.errors import UnsupportedFunctionError
from viewgrad.scipy import signal as ours

RNG = np.random.default_rng(0)
PLANE, PATCH, TALL = (RNG.normal(size=size) for size in ((4, 5), (2, 3), (5, 2)))
LINE, LONG = RNG.normal(size=7), RNG.normal(size=(2, 40))
PLANES = ((PLANE, PATCH), (PATCH, PLANE), (PATCH, TALL), (LINE, LINE), (PATCH + 1j, PLANE))
B, A = np.array([1.0, 0.5]), np.array([1.0, -0.3, 0.2])
TIMES = np.sort(RNG.uniform(0, 9, 12))
VALUES, WEIGHTS = RNG.normal(size=12), np.linspace(0.1, 1, 12)
SYSTEM = (np.array([[0.0, 1.0], [-2.0, -3.0]]), np.array([[0.0], [1.0]]), np.array([[1.0, 0.5]]), np.array([[0.1]]))
CLOCK = np.linspace(0, 2, 5)
FREQUENCIES = (0.5, 1.0, np.array(0.5), [0.1, 1.0], 7, None)
SECTIONS = np.array([[1.0, 2, 1, 1, 0.5, 0], [1.0, 1, 0, 1, -0.3, 0.2]])
ZEROS, POLES = np.array([-0.5, 0.3]), np.array([0.2, -0.4])


def call(name, *args, **options):
    return name, args, options


CASES = [
    *[call(name, a, b, mode, boundary, fill)
      for name, (a, b), mode, boundary, fill in itertools.product(
          ("convolve2d", "correlate2d"), PLANES,
          ("full", "same", "valid", "other"), ("fill", "wrap", "symm", "other"), (0, 1.5))],
    *[call("lfilter", B, A, x, zi=zi) for x in (LINE, PLANE) for zi in (
        np.array([0.3]), np.array([0.3, 0.2]), np.array([[0.3, 0.2]]), np.ones((4, 1)), np.ones((4, 2)))],
    call("lfilter", np.array([0.0, 1.0]), np.array([0.0, 2.0]), LINE),
    call("lfilter_zi", np.array([0.0, 1.0, 0.5]), np.array([0.0, 2.0, 1.0])),
    *[call("detrend", LONG, kind and -1, kind or "linear", bp) for kind in ("linear", "constant", "other")
      for bp in (0, 3, [3], [2, 5], [0, 3], 100)],
    call("hilbert", LINE + 1j),
    *[call("filtfilt", B, A, LONG, padlen=count) for count in (-1, 0, 2, 100)],
    *[call("sosfiltfilt", np.array([[1.0, 2, 1, 1, 0.5, 0]]), LONG, padlen=count) for count in (-1, 0, 2, 100)],
    *[call("upfirdn", LINE[:3], LINE, up, down) for up, down in ((0, 1), (1, 0), (2, 3))],
    *[call("resample_poly", LINE, up, down) for up, down in ((0, 1), (1, 0), (3, 2))],
    *[call("sawtooth", LINE, width) for width in (0, 0.3, 1, 1.5, -1, np.array([0.5]))],
    *[call("chirp", np.linspace(0, 3, 7), *numbers, method) for numbers in (
        (1.0, 2.0, 3.0), (2.0, 1.0, 2.0), (0.0, 1.0, 2.0), (-1.0, 1.0, 2.0), (1.0, 1.0, 0.0))
      for method in ("linear", "quadratic", "logarithmic", "hyperbolic", "log", "other")],
    *[call("freqz", B, A, w, fs=fs) for w in FREQUENCIES for fs in (2 * np.pi, 10.0)],
    *[call("freqs", B, A, w) for w in FREQUENCIES],
    *[call("freqz_zpk", ZEROS, POLES, 2.0, w) for w in FREQUENCIES],
    *[call("freqs_zpk", ZEROS, POLES, 2.0, w) for w in FREQUENCIES],
    *[call(name, np.zeros(0), np.zeros(0), np.array(2.0), 7) for name in ("freqz_zpk", "freqs_zpk")],
    *[call("sosfreqz", np.array([[1.0, 2, 1, 1, 0.5, 0]]), w) for w in FREQUENCIES],
    *[call("group_delay", (B, A), w) for w in FREQUENCIES],
    *[call("lombscargle", TIMES, VALUES, frequencies, normalize=kind, **more)
      for frequencies in (np.array([0.5, 1.0]), np.array([0.0, 1.0]), np.array([1.5]), np.ones((2, 2)))
      for kind in (False, True, "power", "normalize", "other")
      for more in ({}, {"weights": WEIGHTS}, {"floating_mean": True}, {"weights": WEIGHTS, "floating_mean": True})],
    *[call("lombscargle", TIMES, VALUES, np.array([0.5, 1.0]), weights=weights)
      for weights in (-WEIGHTS, np.zeros(12), np.ones(3))],
    *[call("lsim", SYSTEM, u, times, start, interp) for u, times, start, interp in itertools.product(
        (None, 0, 1.0, np.sin(CLOCK), np.ones(4)), (CLOCK, CLOCK + 1, CLOCK - 1), (None, np.array([0.1, 0.2])),
        (True, False))],
    call("lsim", SYSTEM, None, CLOCK, 0.5),
    *[call(name, SYSTEM, T=times) for name in ("step", "impulse") for times in (CLOCK, CLOCK + 1, CLOCK - 1)],
    *[call("iirfilter", 3, frequencies, 1.0, 40.0, kind, analog, "cheby1", output)
      for frequencies, kind in ((np.array(0.3), "low"), (np.array([0.2, 0.5]), "band"), (np.array([0.2, 0.5]), "high"))
      for analog in (True, False) for output in ("ba", "zpk", "sos", "other")],
    *[call(name, np.array([0.5, -0.3]), np.array([0.2]), 2.0) for name in ("lp2lp_zpk", "lp2hp_zpk", "lp2bp_zpk")],
    *[call("cont2discrete", SYSTEM, 0.1, "gbt", alpha) for alpha in (None, 0.3, 2.0)],
    *[call("welch", LONG, nperseg=16, **more) for more in ({"nfft": 8}, {"nfft": 17}, {"scaling": "other"})],
    *[call("welch", LONG, window=np.ones(16), nperseg=size) for size in (None, 16, 15)],
    *[call("stft", LONG, window=window, nperseg=16, scaling=kind)
      for window in ("hann", np.ones(16), np.ones(15)) for kind in ("spectrum", "psd", "density")],
    *[call("istft", theirs.stft(LONG[0], nperseg=16)[2], nperseg=size, scaling=kind, **more)
      for size in (None, 15, 16, 17) for kind in ("spectrum", "psd", "other")
      for more in ({}, {"noverlap": 16}, {"nfft": 8})],
    *[call("sosfilt", SECTIONS, x, zi=zi) for x in (LINE, PLANE)
      for zi in (None, np.ones((1, 2)), np.ones((2, 2)), np.ones((2, 4, 2)))],
    *[call(name, SECTIONS[:, :5], *rest) for name, *rest in (
        ("sosfilt", LINE), ("sosfiltfilt", LONG), ("sosfilt_zi",), ("sosfreqz",))],
    *[call("firwin", 7, cutoffs, pass_zero=kind)
      for cutoffs in (np.array(0.3), np.array([0.2, 0.5]), np.array([0.2, 0.5, 0.7]))
      for kind in (True, False, "lowpass", "highpass", "bandpass", "bandstop", "other", 1)],
    *[call("savgol_filter", x, 5, 2, mode=mode) for x in (LONG, LONG + 1j * LONG[::-1])
      for mode in ("interp", "mirror", "constant", "nearest", "wrap", "reflect")],
    *[call("medfilt", x, 3) for x in (PLANE, PLANE + 1j)],
    *[call("order_filter", PLANE, np.ones(shape).tolist(), 1) for shape in ((3, 3), (2, 3), (1, 3))],
    *[call("periodogram", LONG, window=window) for window in (np.ones(40), np.ones(16), None)],
]  # fmt: skip


def with_history(value):
    if isinstance(value, tuple):
        return tuple(map(with_history, value))
    is_array = isinstance(value, np.ndarray) and value.dtype.kind in "fc"
    return vg.Tensor(value, requires_grad=True) if is_array else value


def arrays_of(found):
    if isinstance(found, (tuple, list)):
        return [array for each in found for array in arrays_of(each)]
    return [np.asarray(found.detach() if isinstance(found, vg.Tensor) else found)]


def outcome(function, args, options):
    try:
        return arrays_of(function(*args, **options))
    except (ValueError, TypeError, ZeroDivisionError):
        return None


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted({name for name, _, _ in CASES if hasattr(theirs, name)}))
def test_values_and_errors_match_scipy(name):
    for _, args, options in (case for case in CASES if case[0] == name):
        wanted = outcome(getattr(theirs, name), args, options)
        found = outcome(getattr(ours, name), with_history(args), options)
        assert (wanted is None) == (found is None), (args, options, wanted, found)
        assert wanted is None or len(wanted) == len(found)
        for each, other in zip(wanted or (), found or ()):
            assert each.shape == other.shape, (args, options, each, other)
            np.testing.assert_allclose(other, each, rtol=1e-7, atol=1e-9, err_msg=f"{args} {options}")


@pytest.mark.parametrize("name, args, options", [
    call("correlate2d", PATCH, PLANE, "valid"), call("detrend", LINE, bp=[3]),
    call("chirp", np.linspace(0, 3, 7), np.array(1.5), np.array(2.0), np.array(2.5), "logarithmic"),
    call("lombscargle", TIMES, VALUES, np.array([0.5, 1.0]), weights=WEIGHTS, floating_mean=True),
    call("freqz", B, A, 0.5),
])  # fmt: skip
def test_gradients(name, args, options):
    tensors = tuple(each for each in map(with_history, args) if isinstance(each, vg.Tensor))

    def real(*given):
        found = getattr(ours, name)(*given, *args[len(given) :], **options)
        found = found[1] if isinstance(found, tuple) else found
        return abs(found) ** 2 if found.dtype.kind == "c" else found

    assert gradcheck(real, tensors)


def test_gradients_of_responses_that_start_later():
    def response(shift, start):
        return ours.lsim(SYSTEM, np.sin(CLOCK), CLOCK + 1 + shift, start)[1]

    given = vg.Tensor(0.1, requires_grad=True), vg.Tensor([0.3, -0.2], requires_grad=True)
    assert gradcheck(response, given)


@pytest.mark.parametrize("method", ["logarithmic", "hyperbolic"])
def test_chirps_of_equal_frequencies_have_the_gradients_of_nearly_equal_ones(method):
    def slopes(f1):
        f0, f1 = vg.Tensor(2.0, requires_grad=True), vg.Tensor(f1, requires_grad=True)
        return [float(each) for each in vg.autograd.grad(ours.chirp(np.array(0.7), f0, 1.5, f1, method), (f0, f1))]

    np.testing.assert_allclose(slopes(2.0), slopes(2.0 + 1e-5), rtol=1e-4)


SERIES = np.random.default_rng(5).normal(size=(2, 32))
WINDOW = np.random.default_rng(6).uniform(0.5, 1.0, 8)


@pytest.mark.parametrize("function", [
    lambda x, w: ours.welch(x, window=w)[1],
    lambda x, w: ours.csd(x, 2.0 * x, window=w, scaling="spectrum")[1].real,
    lambda x, w: ours.periodogram(x[:8], window=w)[1],
    lambda x, w: ours.spectrogram(x, window=w)[2],
    lambda x, w: ours.stft(x, window=w, nperseg=8)[2].real,
    lambda x, w: ours.istft(ours.stft(x, nperseg=8)[2], window=w)[1],
])  # fmt: skip
def test_gradients_flow_to_the_samples_of_a_window(function):
    assert gradcheck(function, [vg.Tensor(SERIES[0], requires_grad=True), vg.Tensor(WINDOW, requires_grad=True)])


@pytest.mark.parametrize("function", [ours.dlsim, ours.dimpulse, ours.dstep])
def test_a_sampling_period_with_a_history_is_refused(function):
    matrices = [np.array([[0.5]]), np.array([[1.0]]), np.array([[1.0]]), np.array([[0.0]])]
    arguments = (np.ones(5),) if function is ours.dlsim else ()
    with pytest.raises(UnsupportedFunctionError, match="dt"):
        function((*matrices, vg.Tensor(0.25, requires_grad=True)), *arguments)


def test_gradients_flow_to_leading_zeros_that_do_not_change_the_order():
    leaves = [vg.Tensor(each, requires_grad=True) for each in ([0.0, 0.15], [1.0, 0.5, 0.2])]
    assert gradcheck(lambda b, a: ours.bilinear(b, a, 0.5), leaves)


def test_gradients_of_a_large_convolution():
    rng = np.random.default_rng(7)
    x, y = rng.normal(size=(123, 22)), rng.normal(size=(132, 11))
    leaf = vg.Tensor(x, requires_grad=True)
    found = ours.convolve2d(leaf, y)
    weights = rng.normal(size=found.shape)
    (found * weights).sum().backward()
    np.testing.assert_allclose(leaf.grad, theirs.correlate2d(weights, y, "valid"), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("call", [
    lambda m, x: m.iirfilter(1, x * 0.0),
    lambda m, x: m.butter(2, x * [3.0, 1.0], "band"),
    lambda m, x: m.iirnotch(x, 30, fs=np.array([10, 20])),
    lambda m, x: m.iirpeak(x * 20, 30),
    lambda m, x: m.vectorstrength(x * np.ones((2, 2)), 1.0),
    lambda m, x: m.vectorstrength(x * np.ones(2), -1.0),
    lambda m, x: m.zoom_fft(x * np.ones(4), [0.1, 0.2], m=3.5),
])  # fmt: skip
def test_designs_and_spectra_raise_as_in_scipy(call):
    for module, x in ((theirs, np.array(0.06)), (ours, vg.Tensor(0.06, requires_grad=True))):
        with pytest.raises(ValueError):
            call(module, x)


def test_filters_longer_than_the_matrix_are_refused():
    plane = vg.Tensor(PLANE, requires_grad=True)
    with pytest.raises(UnsupportedFunctionError, match="longer"):
        ours.sepfir2d(plane, np.arange(1.0, 8.0), np.ones(3))
    kernels = (np.arange(1.0, 7.0)[:5], np.arange(1.0, 6.0))
    np.testing.assert_allclose(ours.sepfir2d(plane, *kernels).detach(), theirs.sepfir2d(PLANE, *kernels))


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize(
    "shapes, axes", [(((2, 3), (2, 2)), 1), (((2, 5, 3), (1, 2, 3)), [-1, 1]), (((1, 5), (4, 2)), [1])]
)
def test_fft_convolutions_over_some_dimensions(mode, shapes, axes):
    rng = np.random.default_rng(0)
    a, b = (vg.Tensor(rng.standard_normal(shape), requires_grad=True) for shape in shapes)
    for name in ("fftconvolve", "oaconvolve"):
        wanted = getattr(theirs, name)(a.detach().numpy(), b.detach().numpy(), mode, axes)
        np.testing.assert_allclose(getattr(ours, name)(a, b, mode, axes).detach().numpy(), wanted, atol=1e-12)
    assert gradcheck(lambda a, b: ours.fftconvolve(a, b, mode, axes), (a, b))


@pytest.mark.parametrize(
    "name, arguments",
    [("freqz", ([0.2, 0.3], [1.0, 0.2])), ("freqz_zpk", ([0.5], [0.2], 1.0)), ("sosfreqz", ([[0.2, 0, 0, 1, 0, 0]],))],
)
def test_default_frequencies_depend_on_the_sampling_rate_and_their_responses_do_not(name, arguments):
    rate = vg.Tensor(2.0, requires_grad=True)
    w, h = getattr(ours, name)(*arguments, worN=8, fs=rate)
    wanted = getattr(theirs, name)(*arguments, worN=8, fs=2.0)
    np.testing.assert_allclose(w.detach().numpy(), wanted[0])
    np.testing.assert_allclose(vg.autograd.grad(w.sum(), rate, retain_graph=True)[0].item(), wanted[0].sum() / 2.0)
    np.testing.assert_allclose(vg.autograd.grad((h.real + h.imag).sum(), rate)[0].item(), 0.0, atol=1e-12)


def test_calls_that_scipy_refuses_raise_its_errors():
    x = vg.Tensor(np.arange(4.0), requires_grad=True)
    with pytest.raises(ValueError, match="CZT"):
        ours.czt(x, m=4.0)
    with pytest.raises(UnsupportedFunctionError, match="shape"):
        ours.csd(x, [])


def test_an_impulse_response_at_one_time_has_its_shape():
    times, found = ours.impulse((vg.Tensor([1.0], requires_grad=True), [1.0, 2.0]), T=5)
    assert times.shape == found.shape == ()
