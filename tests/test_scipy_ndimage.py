"""`viewgrad.scipy.ndimage`: values are SciPy's, gradients of first and second order those of finite differences."""

import numpy as np
import pytest

scipy = pytest.importorskip("scipy")
from scipy_cases import call, check, check_program, named  # noqa: E402

import viewgrad as vg  # noqa: E402
from viewgrad.errors import UnsupportedTypeError  # noqa: E402
from viewgrad.scipy import ndimage  # noqa: E402

RNG = np.random.default_rng(3)
IMAGE, LINE, HEIGHTS = RNG.standard_normal((4, 5)), RNG.standard_normal(9), RNG.uniform(0, 1, (3, 2))
CROSS = np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]])
LABELS = np.array([[0, 1, 1, 2, 2], [1, 1, 2, 2, 0], [0, 0, 2, 2, 3], [3, 3, 3, 0, 3]])

CASES = [
    *[call(name, IMAGE, 3) for name in ("maximum_filter", "minimum_filter", "median_filter", "grey_erosion",
                                        "grey_dilation", "grey_opening", "grey_closing", "morphological_gradient",
                                        "morphological_laplace", "white_tophat", "black_tophat")],
    *[call(name, IMAGE, size=(2, 3), mode="constant", cval=0.2) for name in ("grey_erosion", "grey_dilation")],
    *[call(name, IMAGE, structure=HEIGHTS) for name in ("grey_erosion", "grey_dilation", "grey_closing")],
    call("grey_dilation", IMAGE, footprint=CROSS, mode="nearest"),
    call("rank_filter", IMAGE, 2, 3),
    call("rank_filter", IMAGE, -2, footprint=CROSS, mode="wrap"),
    *[call("percentile_filter", IMAGE, share, 3) for share in (20, 100, -30)],
    *[call(name, IMAGE, 3, axis=0, mode="mirror") for name in ("maximum_filter1d", "minimum_filter1d")],
    call("gaussian_laplace", IMAGE, 0.8),
    call("gaussian_gradient_magnitude", IMAGE, 0.8, mode="nearest"),
    call("generic_laplace", IMAGE, lambda x, axis, output, mode, cval: x * 2.0, values=False),
    *[call(name, IMAGE) for name in ("sum", "mean", "variance", "standard_deviation", "minimum", "maximum", "median",
                                     "extrema", "center_of_mass")],
    *[call(name, IMAGE, LABELS, index) for name in ("sum_labels", "mean", "variance", "maximum", "center_of_mass",
                                                    "extrema") for index in (None, 2, [1, 3])],
    call("affine_transform", IMAGE, np.array([[0.93, 0.11], [-0.17, 1.07]]), np.array([0.23, -0.13]), None, None, 1),
    call("affine_transform", IMAGE, np.array([0.8, 1.2]), order=1, mode="nearest"),
    call("affine_transform", IMAGE, np.array([[0.93, 0.11, 0.31], [-0.17, 1.07, 0.23]]), output_shape=(3, 6), order=1),
    call("affine_transform", IMAGE, np.array([[0.9, 0.1], [-0.15, 1.1]]), 0.3, at=(0,)),
    *[call("rotate", IMAGE, np.array(33.0), reshape=reshape, order=1) for reshape in (False, True)],
    call("rotate", IMAGE, 20.0),
    call("geometric_transform", IMAGE, lambda place: (place[0] + 0.3, 0.9 * place[1] + 0.1), order=1),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", CASES, ids=named)
def test_values_and_gradients(case):
    check("ndimage", case)


def test_filters_of_any_function():
    x = vg.Tensor(IMAGE, requires_grad=True)
    found = ndimage.generic_filter(x, lambda each: (each**2).sum(), 3)
    np.testing.assert_allclose(
        found.detach().numpy(), scipy.ndimage.generic_filter(IMAGE, lambda each: (each**2).sum(), 3)
    )
    assert vg.autograd.gradcheck(lambda x: ndimage.generic_filter(x, lambda each: (each**2).sum(), 3), x)


def doubled(line, out, x):
    out[...] = line[2:-1] * x[0] + line[3:] * x[1] ** 2


def squared(line, out):
    out[...] = line[1:-1] ** 2 + line[:-2] * line[2:]


OF_FUNCTIONS = {
    "captured": lambda x: scipy.ndimage.generic_filter(IMAGE, lambda each: (each * x[0]).sum() ** 2, 3).sum(),
    "both": lambda x: scipy.ndimage.generic_filter(
        np.outer(x, x), lambda each: (each * x[0]).sum() ** 2, 2, mode="constant", cval=0.3, origin=-1
    ) @ x @ x,
    "lines": lambda x: (
        scipy.ndimage.generic_filter1d(np.outer(x, np.sin(x)), squared, 3, axis=0, mode="wrap", origin=-1) @ x @ x
    ),
    "captured by lines": lambda x: (
        scipy.ndimage.generic_filter1d(IMAGE, doubled, 4, mode="constant", cval=2.0, extra_arguments=(x,)) ** 2
    ).sum(),
    "no history": lambda x: scipy.ndimage.generic_filter1d(IMAGE, squared, 3).sum() * x[0],
    "sampling of all pairs": lambda x: (
        (scipy.ndimage.distance_transform_bf(LABELS, sampling=x[:2] ** 1.1) ** 3).sum()
        + scipy.ndimage.distance_transform_bf(LABELS, "taxicab").sum() * x[0]
    ),
    "sampling": lambda x: (scipy.ndimage.distance_transform_edt(LABELS, sampling=x[:2] ** 1.1) ** 3).sum(),
}


@pytest.mark.parametrize("name", OF_FUNCTIONS)
def test_gradients_flow_to_what_the_functions_of_filters_capture(name):
    check_program(OF_FUNCTIONS[name], np.array([1.0, 2.0, 3.0]))


def test_labels_and_positions_have_no_gradient():
    x = vg.Tensor(IMAGE, requires_grad=True)
    np.testing.assert_array_equal(ndimage.label(x > 0)[0].numpy(), scipy.ndimage.label(IMAGE > 0)[0])
    assert ndimage.maximum_position(x) == scipy.ndimage.maximum_position(IMAGE)


def test_labels_can_have_more_dimensions_than_the_image():
    x = vg.Tensor(2.0, requires_grad=True)
    found = ndimage.sum_labels(x * 1.0, LABELS)
    assert float(found.detach()) == scipy.ndimage.sum_labels(2.0, LABELS)
    assert vg.autograd.grad(found, x)[0] == np.count_nonzero(LABELS)


@pytest.mark.parametrize("name", ["binary_erosion", "binary_dilation", "binary_closing", "binary_hit_or_miss"])
def test_constant_results_are_written_to_output(name):
    image = np.random.default_rng(0).normal(size=(6, 6)) > -0.5
    out = vg.Tensor(np.zeros((6, 6), bool))
    getattr(ndimage, name)(vg.Tensor(image), output=out)
    np.testing.assert_array_equal(out.numpy(), getattr(scipy.ndimage, name)(image))


@pytest.mark.parametrize("angle", [0, 30, 45, 90, -90, 180, 450])
@pytest.mark.parametrize("order", [1, 3])
def test_rotations_classify_points_on_the_edge_as_scipy_does(angle, order):
    image = vg.Tensor(IMAGE, requires_grad=True)
    found = ndimage.rotate(image, angle, order=order, cval=2.0)
    np.testing.assert_allclose(found.detach(), scipy.ndimage.rotate(IMAGE, angle, order=order, cval=2.0), atol=1e-12)
    weights = np.random.default_rng(0).normal(size=found.shape)
    (found * weights).sum().backward()
    for place in np.ndindex(IMAGE.shape):
        unit = np.zeros(IMAGE.shape)
        unit[place] = 1.0
        slope = (scipy.ndimage.rotate(unit, angle, order=order) * weights).sum()
        np.testing.assert_allclose(image.grad[place], slope, atol=1e-12)


@pytest.mark.parametrize("factor", [0.1, 0.3, 1 / 3, 0.7, -1.0])
@pytest.mark.parametrize("offset", [0.1, 0.3, 1.2, 4.0])
def test_diagonal_transforms_classify_points_on_the_edge_as_scipy_does(factor, offset):
    found = ndimage.affine_transform(vg.Tensor(IMAGE, requires_grad=True), [factor] * 2, offset, cval=2.0)
    wanted = scipy.ndimage.affine_transform(IMAGE, np.full(2, factor), offset, cval=2.0)
    np.testing.assert_allclose(found.detach(), wanted, atol=1e-12)


INTEGERS = np.array([[1, 2, 3], [4, 5, 6]], np.int16)


@pytest.mark.parametrize("output", [None, np.float32, float, "float64", int, np.uint8])
def test_filters_of_integers_have_the_dtype_of_the_output(output):
    options = {} if output is None else {"output": output}
    weights = np.array([[0.5, -0.5], [0.3, 1.0]])
    leaf = vg.Tensor(weights, requires_grad=True)
    found = ndimage.correlate(INTEGERS, leaf, **options)
    wanted = scipy.ndimage.correlate(INTEGERS, weights, **options)
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found.detach(), wanted, rtol=1e-6)
    assert found.requires_grad == (wanted.dtype.kind == "f")
    if found.requires_grad:
        found.sum().backward()
        padded = np.pad(INTEGERS, ((1, 0), (1, 0)), "symmetric")
        windows = np.lib.stride_tricks.sliding_window_view(padded, (2, 2))
        np.testing.assert_allclose(leaf.grad, windows.sum((0, 1)))


def test_transforms_of_integers_are_rounded_as_scipy_does():
    line, matrix = np.array([4, 1, 3, 2]), np.array([[0.5]])
    found = ndimage.affine_transform(line, vg.Tensor(matrix, requires_grad=True), [-1], (8,), order=1)
    wanted = scipy.ndimage.affine_transform(line, matrix, [-1], (8,), order=1)
    assert found.dtype == wanted.dtype and not found.requires_grad
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.filterwarnings("ignore:promoting specified output dtype:UserWarning")
def test_complex_results_are_not_written_to_real_outputs():
    weights, image = np.array([[1, 0], [0, 1 + 1j]]), vg.Tensor(IMAGE, requires_grad=True)
    found, wanted = (run(IMAGE, weights, output=float) for run in (ndimage.correlate, scipy.ndimage.correlate))
    with_history = ndimage.correlate(image, weights, output=float)
    assert found.dtype == with_history.dtype == wanted.dtype == complex
    np.testing.assert_allclose(with_history.detach(), wanted)
    for output in ("float64", vg.zeros(IMAGE.shape)):
        with pytest.raises(RuntimeError, match="complex"):
            ndimage.correlate(image, weights, output=output)


def test_results_with_a_history_are_not_written_to_plain_arrays():
    with pytest.raises(UnsupportedTypeError, match="plain array"):
        ndimage.gaussian_filter(vg.Tensor(IMAGE, requires_grad=True), 1.0, output=np.zeros(IMAGE.shape))
