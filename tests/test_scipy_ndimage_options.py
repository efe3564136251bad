"""Options of image filters with a history: values are SciPy's, and the same calls raise errors."""

import itertools

import numpy as np
import pytest

pytest.importorskip("scipy")
from scipy import ndimage as theirs

import viewgrad as vg
from viewgrad.autograd import gradcheck
from viewgrad.scipy import ndimage as ours

RNG = np.random.default_rng(0)
IMAGE, CUBE, LINE = RNG.normal(size=(5, 6)), RNG.normal(size=(2, 3, 4)), RNG.normal(size=7)
ROW, PATCH = RNG.normal(size=3), RNG.normal(size=(2, 3))
LABELS = np.array([[0, 1, 1, 2, 2, 0], [1, 1, 2, 2, 0, 0], [0, 0, 2, 2, 3, 3], [3, 3, 3, 0, 3, 1], [0] * 6])
HOLES = np.where(IMAGE > 1, np.nan, IMAGE)
PLACES = RNG.uniform(-4, 9, size=(2, 12))
EDGES = np.array([[-0.3, -0.5, 4.4, 4.5, 4.0, 5.0], [0.5, 1.5, 5.4, -0.5, 5.0, 2.5]])
MODES = ("reflect", "constant", "nearest", "mirror", "wrap", "grid-mirror", "grid-wrap", "grid-constant", "other")
AXES = (0, 1, (0,), (1, 0), (0, 1), (0, 0), 5)
EACH = (("reflect", "wrap"), ("reflect",))
CORNER = np.array([[0, 1, 1], [0, 1, 0]])
CHOOSING = ("maximum_filter", "minimum_filter", "median_filter")
MORPHOLOGICAL = ("grey_erosion", "grey_dilation", "grey_opening", "grey_closing", "morphological_gradient",
                 "morphological_laplace", "white_tophat", "black_tophat")  # fmt: skip


def call(name, *args, **options):
    return name, args, options


def differences(image, axis, output, mode, cval):
    library = ours if isinstance(image, vg.Tensor) else theirs
    found = library.correlate1d(image, [1.0, -2.0, 1.5], axis, mode=mode, cval=cval)
    if isinstance(output, np.ndarray):
        output[...] = found
    return found


CASES = [
    *[call(name, image, weights, axes=axes, **more)
      for name, image, weights, axes, more in itertools.product(
          ("correlate", "convolve"), (IMAGE, CUBE), (ROW, PATCH), AXES, ({}, {"origin": 1}, {"mode": "mirror"}))],
    *[call(name, image, ROW[:2], axes=1, origin=-1) for name in ("correlate", "convolve") for image in (IMAGE, CUBE)],
    *[call(name, image, weights) for name in ("correlate1d", "convolve1d", "correlate", "convolve")
      for image in (LINE, LINE + 1j * LINE[::-1]) for weights in (ROW + 1j, ROW[:2] * 1j, ROW)],
    *[call(name, IMAGE, PATCH) for name in ("correlate1d", "convolve1d")],
    *[call(name, IMAGE.astype("f4"), weights) for name in ("correlate", "convolve") for weights in (PATCH, PATCH * 1j)],
    *[call(name, IMAGE, *args, mode=mode) for mode in EACH for name, *args in (
        ("laplace",), ("gaussian_laplace", 1.0), ("gaussian_gradient_magnitude", 1.0), ("gaussian_filter", 1.0),
        ("uniform_filter", 2), ("sobel",), ("prewitt",))],
    *[call(name, image, *args, axes=axes) for axes in (*AXES, ()) for image in (IMAGE, CUBE, LINE) for name, *args in (
        ("laplace",), ("gaussian_laplace", 1.0), ("gaussian_gradient_magnitude", 1.0), ("gaussian_filter", 1.0),
        ("uniform_filter", 2))],
    *[call("gaussian_laplace", IMAGE, (0.4, 0.9), axes=axes) for axes in ((0, 1), (1, 0))],
    *[call("gaussian_filter", IMAGE, np.array([0.8, 0.5])), call("zoom", IMAGE, np.array([0.5, 1.5]))],
    *[call("gaussian_filter1d", IMAGE, 1.0, **more) for more in ({"order": -1}, {"radius": 1.5}, {"radius": -1})],
    *[call(name, IMAGE, axis=axis) for name in ("sobel", "prewitt") for axis in (0, -2, 2, 5)],
    *[call("map_coordinates", IMAGE, places, order=order, mode=mode, cval=1.5)
      for places in (PLACES, EDGES) for order in (-1, 0, 1, 6) for mode in MODES],
    *[call(name, IMAGE, by, order=0, mode=mode) for mode in MODES
      for name, by in (("shift", 1.3), ("shift", (0.6, -1.4)), ("rotate", 30.0))],
    *[call("affine_transform", IMAGE, np.array([[0.9, 0.2], [-0.1, 1.1]]), (0.5, -0.3), order=order)
      for order in (0, 1, 3)],
    *[call("affine_transform", IMAGE, matrix) for matrix in (
        np.array([[0.9, 0.2, 0.5], [-0.1, 1.1, 0.7], [0, 0, 1.0]]),
        np.array([[0.9, 0.2, 0.5], [-0.1, 1.1, 0.7], [0, 0, 2.0]]), np.ones((3, 2)))],
    *[call("rotate", image, 30.0, axes=axes) for image, axes in ((IMAGE, (0, 5)), (IMAGE, (-1, -2)), (LINE, (0, 1)))],
    *[call(name, image, LABELS, index)
      for name in ("minimum", "maximum", "median", "extrema", "mean", "sum", "variance")
      for image in (IMAGE, HOLES) for index in ([1, 2, 3], [3, 1], 2, [])],
    *[call(name, IMAGE, LABELS, [7, 1]) for name in ("minimum", "maximum", "mean", "sum")],
    *[call(name, image, size, axes=axes, **more)
      for name in (*CHOOSING, *MORPHOLOGICAL) for image in (IMAGE, CUBE)
      for size, axes in ((3, 0), (2, (0, 1)), ((2, 3), (1, 0)), ((2, 3), (0,)), (3, (0, 0)), (3, 5), (3, ()), (None, 0))
      for more in ({}, {"origin": 1, "mode": "constant", "cval": 0.3})],
    *[call(name, image, footprint=CORNER, axes=axes, origin=(0, -1)) for name in (*CHOOSING, *MORPHOLOGICAL)
      for image in (IMAGE, CUBE) for axes in (None, (0, 1), (1, 0), (0,))],
    *[call(name, IMAGE, structure=np.array([0.1, 0.7, 0.4]), axes=0) for name in MORPHOLOGICAL],
    *[call("rank_filter", CUBE, 2, 3, axes=axes) for axes in (2, (0, 2), (2, 0))],
    *[call("percentile_filter", CUBE, 30, 3, axes=axes) for axes in (2, (0, 2))],
    *[call("generic_filter", CUBE, np.ptp, 3, axes=axes) for axes in (2, (0, 2), (2, 0))],
    *[call(name, CUBE, differences, axes=axes) for axes in (1, (0, 2), ())
      for name in ("generic_laplace", "generic_gradient_magnitude")],
]  # fmt: skip


def with_history(value):
    is_array = isinstance(value, np.ndarray) and value.dtype.kind in "fc"
    return vg.Tensor(value, requires_grad=True) if is_array else value


def outcome(function, args, options):
    try:
        found = function(*args, **options)
    except (ValueError, RuntimeError, TypeError, IndexError):
        return None
    found = found if isinstance(found, tuple) else (found,)
    return [np.asarray(each.detach() if isinstance(each, vg.Tensor) else each) for each in found]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted({name for name, _, _ in CASES}))
def test_values_and_errors_match_scipy(name):
    for _, args, options in (case for case in CASES if case[0] == name):
        wanted = outcome(getattr(theirs, name), args, options)
        found = outcome(getattr(ours, name), (with_history(args[0]), *args[1:]), options)
        assert (wanted is None) == (found is None), (args, options, wanted, found)
        for each, other in zip(wanted or (), found or ()):
            assert each.shape == other.shape and each.dtype.kind == other.dtype.kind, (args, options)
            tolerance = 1e-5 if each.dtype in ("f4", "c8") else 1e-9
            np.testing.assert_allclose(other, each, rtol=tolerance, atol=tolerance, err_msg=f"{args} {options}")


@pytest.mark.parametrize("name, args, options", [
    call("correlate", IMAGE, ROW, axes=0), call("convolve", IMAGE, ROW + 1j, axes=(1,), origin=1),
    call("correlate", IMAGE, PATCH * 1j), call("gaussian_laplace", IMAGE, 1.0, axes=1),
    call("gaussian_gradient_magnitude", IMAGE, 1.0, mode=("reflect", "wrap")), call("uniform_filter", IMAGE, 2, axes=1),
    call("map_coordinates", IMAGE, EDGES.tolist(), order=0, mode="mirror"), call("median", IMAGE, LABELS, [1, 3]),
    call("affine_transform", IMAGE, np.array([[0.93, 0.21], [-0.13, 1.07]]), (0.53, -0.31), order=1),
    call("grey_opening", CUBE, (2, 3), axes=(2, 0)), call("median_filter", CUBE, 3, axes=1),
])  # fmt: skip
def test_gradients(name, args, options):
    given = [with_history(arg) for arg in args if with_history(arg) is not arg]
    rest = args[len(given) :]

    def real(*tensors):
        found = getattr(ours, name)(*tensors, *rest, **options)
        return abs(found) ** 2 if found.dtype.kind == "c" else found

    assert gradcheck(real, tuple(given))
