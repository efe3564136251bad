"""The methods and attributes of NumPy's arrays on tensors."""

import operator

import numpy
import pytest
from leaves import leaf

import viewgrad as vg
import viewgrad.numpy as np
from viewgrad.autograd import grad
from viewgrad.errors import AutogradError, UnsupportedFunctionError

# -- shapes that are changed in place ----------------------------------------------------------------------------------


def test_an_assigned_shape_keeps_the_values_and_the_history():
    x = leaf(1.0, 2.0, 3.0, 4.0)
    y = x * 2
    before = y * y
    y.shape = (2, 2)
    y[0] *= 3
    assert y.shape == (2, 2)
    weights = vg.Tensor([[1.0, 2.0], [3.0, 4.0]])
    (found,) = grad((y * weights).sum() + before.sum(), x)
    assert numpy.array_equal(found.numpy(), [6 + 8, 12 + 16, 6 + 24, 8 + 32])


def test_a_shape_can_be_assigned_after_writes():
    table = np.zeros(6)
    table[0] = 1.0
    table.shape = 2, -1
    x = leaf(5.0)
    table[1, 2:] = x
    assert table.shape == (2, 3)
    assert grad(table.sum(), x)[0].item() == 1.0


def test_resize_pads_with_zeros():
    x = leaf(1.0, 2.0, 3.0)
    y = x * 2
    y.resize(5)
    assert numpy.array_equal((y * 1.0).detach().numpy(), [2, 4, 6, 0, 0])
    y.resize((2, 2))
    assert numpy.array_equal(grad(y.sum(), x)[0].numpy(), [2, 2, 2])


def of_leaf():
    return leaf(1.0, 2.0)


def of_view():
    return (leaf(1.0, 2.0, 3.0) * 1.0)[:2]


def with_view():
    x = leaf(1.0, 2.0) * 1.0
    VIEWS.append(x[:1])
    return x


VIEWS = []


@pytest.mark.parametrize("make", [of_leaf, of_view, with_view])
def test_setting_shape_raises_if_memory_is_shared(make):
    x = make()
    if make is not of_view:
        with pytest.raises(AutogradError, match="reshape"):
            x.shape = (2, 1)
    assert x.shape == (2,)
    with pytest.raises(AutogradError, match="reshape"):
        x.resize(4)


def of_reshaped_views(np, x):
    """Compute with views whose shape is assigned between writes to them, their base and other views."""
    table = np.zeros((2, 3, 2)) + x[0]
    flat, rows = table.reshape(-1), table[1]
    view = table.view()
    view.shape = (3, 4)
    view[1] *= x[1]
    flat[2:8] += x[2]
    rows.shape = (2, 3)
    rows[:, 1] = x[:2] * 2.0
    view.shape = (12,)
    view *= view
    rows.shape = -1
    table[0, 0] = x[1:]
    return (table * table).sum() + (view * np.arange(12.0)).sum() * x[0] + rows.prod() + flat[3] * x[2]


def test_the_shape_of_a_view_can_be_assigned():
    x, step = numpy.array([0.3, 0.7, -0.4]), 1e-6
    value, gradient = vg.value_and_grad(lambda x: of_reshaped_views(np, x), adopt=False)(x)
    assert float(value) == pytest.approx(of_reshaped_views(numpy, x))
    expected = [
        (of_reshaped_views(numpy, x + d) - of_reshaped_views(numpy, x - d)) / (2 * step) for d in numpy.eye(3) * step
    ]
    assert gradient == pytest.approx(numpy.array(expected), rel=1e-6)
    view = (leaf(*VALUES) * 1.0)[1:]
    view.retain_grad()
    with pytest.raises(AutogradError, match="reshape"):  # its hooks belong to the old shape
        view.shape = (-1, 1)


def test_an_assigned_shape_must_fit_the_memory_as_it_is():
    x = (leaf(*[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]) * 1.0).T.clone()
    y = np.array(x[:, ::2])
    with pytest.raises((AttributeError, ValueError)):
        y.shape = (3,)


# -- arrays of objects -------------------------------------------------------------------------------------------------


def test_elements_written_into_an_array_of_objects_keep_their_history():
    x = leaf(1.0, 2.0)
    objects = numpy.array([[None, None, None]]).T
    objects[0:2, 0] = x * 3
    objects[2] = x[0]
    assert [grad(each[0], x, retain_graph=True)[0].tolist() for each in objects] == [[3, 0], [0, 3], [1, 0]]


# -- every method of NumPy's arrays ------------------------------------------------------------------------------------

VALUES = numpy.array([[0.7, 2.3, 1.1], [4.2, 0.4, 3.6]])


def changed(change):
    """Return the array after a method that changes it in place."""

    def run(x):
        copy = x * 1.0
        change(copy)
        return copy

    return run


# Calls on the array, with NumPy's positions of the arguments if there are several.
COMPUTES = {
    "T": lambda x: x.T,
    "all": lambda x: x.all(0),
    "any": lambda x: x.any(1, keepdims=True),
    "argmax": lambda x: x.argmax(0),
    "argmin": lambda x: x.argmin(1),
    "argpartition": lambda x: x.argpartition(1, 1)[:, 1],
    "argsort": lambda x: x.argsort(0),
    "astype": lambda x: x.astype(float),
    "choose": lambda x: (x > 1).astype(int).choose([x, x * 2]),
    "clip": lambda x: x.clip(1.0, 3.0, None),
    "compress": lambda x: x.compress([True, False, True], 1),
    "conj": lambda x: x.conj(),
    "conjugate": lambda x: x.conjugate(),
    "copy": lambda x: x.copy("F"),
    "cumprod": lambda x: x.cumprod(1, None),
    "cumsum": lambda x: x.cumsum(0, None),
    "diagonal": lambda x: x.diagonal(1, 0, 1),
    "dot": lambda x: x.dot(x.T, None),
    "fill": changed(lambda x: x.fill(x[0, 0] * 2)),
    "flat": lambda x: x.flat[1:4],
    "flatten": lambda x: x.flatten("F"),
    "imag": lambda x: x.imag,
    "item": lambda x: x.item(1, 2),
    "max": lambda x: x.max(0, None, True),
    "mean": lambda x: x.mean(0, None, None, True),
    "min": lambda x: x.min(1),
    "nonzero": lambda x: x.nonzero()[1],
    "partition": changed(lambda x: x.partition(1, 0)),
    "prod": lambda x: x.prod(0, None),
    "put": changed(lambda x: x.put([0, 4], [x[0, 1], x[1, 2]], "raise")),
    "ravel": lambda x: x.ravel("F"),
    "real": lambda x: x.real,
    "repeat": lambda x: x.repeat([1, 2, 1], 1),
    "reshape": lambda x: x.reshape((3, 2), order="F"),
    "reshape to None": lambda x: x.reshape(None, order="F") * x.reshape(None),
    "reshape by an array": lambda x: x.reshape(numpy.array([3, 2]), order="F") * x.reshape(numpy.array([3, 2])),
    "resize": changed(lambda x: x.resize((2, 4), refcheck=False)),
    "round": lambda x: x.round(0, None),
    "searchsorted": lambda x: x[0].searchsorted([1.0, 2.0], "right"),
    "sort": changed(lambda x: x.sort(1)),
    "squeeze": lambda x: x[None].squeeze(0),
    "std": lambda x: x.std(0, None, None, 1),
    "sum": lambda x: x.sum(1, None, None, True),
    "swapaxes": lambda x: x.swapaxes(0, 1),
    "take": lambda x: x.take([1, 0, 1], 1, None, "clip"),
    "tolist": lambda x: numpy.array(x.tolist()),
    "trace": lambda x: x.trace(1, 0, 1, None),
    "transpose": lambda x: x.transpose(1, 0),
    "var": lambda x: x.var(0, None, None, 1, keepdims=True),
    "view": lambda x: x.view(),
    "mT": lambda x: x.mT,
    "to_device": lambda x: x.to_device("cpu"),
}
PLAIN_NUMBERS = {"item", "tolist"}  # these warn, and have no gradient
TELLS = {
    "device": "cpu",
    "dtype": numpy.dtype(float),
    "itemsize": 8,
    "nbytes": 48,
    "ndim": 2,
    "shape": (2, 3),
    "size": 6,
    "strides": (24, 8),
    "base": None,
}
HANDS_OUT = {
    "byteswap": (),
    "dumps": (),
    "getfield": (float,),
}
REFUSED = {"ctypes", "dump", "setfield", "tofile"}  # memory for others, and files


def test_every_array_attribute_exists():
    dropped = {"itemset", "newbyteorder", "ptp", "tostring"}  # NumPy 2.0 has these, and refuses them
    names = {name for name in dir(numpy.ndarray) if not name.startswith("_")} - dropped
    known = COMPUTES.keys() | TELLS.keys() | HANDS_OUT.keys() | REFUSED | {"flags", "data", "setflags", "tobytes"}
    assert names <= known, names - known
    assert {name for name in names if not hasattr(vg.Tensor, name)} == set()


@pytest.mark.parametrize("name", COMPUTES)
@pytest.mark.filterwarnings("ignore::viewgrad.errors.DetachedConversionWarning")
def test_methods_match_numpy_and_have_gradients(name):
    x = leaf(*VALUES)
    function = COMPUTES[name]
    if not hasattr(numpy.ndarray, name):
        pytest.skip("not in this NumPy")
    found, expected = function(x), function(VALUES.copy())
    plain = found.detach().numpy() if isinstance(found, vg.Tensor) else numpy.asarray(found)
    assert plain.dtype == numpy.asarray(expected).dtype
    numpy.testing.assert_allclose(plain, expected, rtol=1e-14)
    direction = numpy.cos(numpy.arange(6.0)).reshape(2, 3)
    weights = numpy.linspace(1.0, 2.0, plain.size).reshape(plain.shape)
    away = numpy.asarray(function(VALUES + 1e-6 * direction), float) - function(VALUES - 1e-6 * direction)
    slope = (weights * away).sum() / 2e-6
    if isinstance(found, vg.Tensor) and found.requires_grad:
        (gradient,) = grad((found * weights).sum(), x)
        numpy.testing.assert_allclose((gradient.numpy() * direction).sum(), slope, rtol=1e-6, atol=1e-8)
    else:
        assert name in PLAIN_NUMBERS or slope == 0


def test_attributes_match_numpy():
    x = leaf(*VALUES)
    assert {name: getattr(x, name) for name in TELLS} == TELLS
    assert x.flags.c_contiguous
    assert not x.data.requires_grad  # the tensor without its history, as in PyTorch


@pytest.mark.parametrize("name", HANDS_OUT)
def test_values_are_only_exported_from_tensors_without_history(name):
    args = HANDS_OUT[name]
    plain, expected = getattr(vg.Tensor(VALUES), name)(*args), getattr(VALUES, name)(*args)
    if isinstance(expected, numpy.ndarray):
        numpy.testing.assert_array_equal(plain.numpy(), expected)
    elif name != "dumps":
        assert plain == expected
    with pytest.raises(UnsupportedFunctionError, match="detach"):
        getattr(leaf(*VALUES), name)(*args)


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_memory_is_not_exposed_to_others(name):
    with pytest.raises((AutogradError, TypeError), match=r"detach|memory"):
        found = getattr(leaf(*VALUES), name)
        if callable(found):
            found("nowhere")


def test_functions_take_the_elements_of_flat():
    x = leaf(*VALUES)
    for function in (
        lambda np, x: np.sum(x.flat),
        lambda np, x: np.sqrt(x.flat) * 2,
        lambda np, x: np.concatenate([x.flat, x.flat]),
        lambda np, x: np.dot(x.flat, x.flat),
    ):
        for numpys in (np, numpy):
            found = function(numpys, x)
            assert found.requires_grad
            numpy.testing.assert_allclose(found.detach().numpy(), function(numpy, VALUES))


def test_flat_is_compared_element_by_element():
    x, values = leaf(*VALUES), numpy.asarray(VALUES)
    for compare in (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge):
        for other in (values.flat[1], values.ravel()[::-1], values.flat):
            assert compare(x.flat, other).tolist() == compare(values.flat, other).tolist()
    with pytest.raises(TypeError, match="unhashable"):
        hash(x.flat)


def test_nditer_over_objects_matches_numpy():
    found = np.empty((1, 2), object)
    found[0, 0], found[0, 1] = leaf(*VALUES), leaf(1.0)
    assert [each.item().shape for each in np.nditer(found, flags=["refs_ok"])] == [numpy.shape(VALUES), (1,)]


LAYOUTS = {
    "rows": lambda a: a,
    "columns": lambda a: a.transpose(2, 1, 0),
    "permuted": lambda a: a.transpose(1, 2, 0),
    "reversed": lambda a: a[::-1, :, ::-1],
    "every other": lambda a: a[:, ::-1, ::2].transpose(2, 0, 1),
    "row": lambda a: a[0, ::-1, 0],
    "empty": lambda a: a[:, :0],
}


@pytest.mark.parametrize("flags", [[], ["multi_index"], ["external_loop", "zerosize_ok"]])
@pytest.mark.parametrize("order", ["K", "C", "F", "A"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_nditer_visits_windows_in_numpys_order(layout, order, flags):
    values = numpy.arange(24.0).reshape(2, 3, 4)

    def visited(np, a):
        a = LAYOUTS[layout](a)
        found = []
        iterator = np.nditer([a, a[..., :1], None], [*flags, "zerosize_ok"], order=order)
        for number, (x, y, out) in enumerate(iterator):
            out[...] = x * y + number
            found.append([each.tolist() for each in (x, y, out)])
        return found, iterator.operands[2].tolist()

    assert visited(np, vg.Tensor(values)) == visited(numpy, values)


def test_writes_through_chunks_of_nditer_are_differentiated():
    def f(x):
        a = numpy.outer(x, x)[:, ::-1]
        flags = [["readwrite"], ["readonly"], ["writeonly", "allocate"]]
        with numpy.nditer([a, x, None], ["external_loop"], flags) as it:
            for chunk, factor, out in it:
                out[...] = chunk * factor
                chunk[...] *= out
            return (a * it.operands[2]).sum()

    x, h = numpy.array([0.7, 1.3, -0.4]), 1e-6
    expected = [(f(x + step) - f(x - step)) / (2 * h) for step in h * numpy.eye(3)]
    numpy.testing.assert_allclose(vg.grad(f)(x), expected, rtol=1e-7)
    tensor = vg.Tensor(x, requires_grad=True)
    numpy.testing.assert_allclose(grad(vg.compile(f)(tensor), tensor)[0].numpy(), expected, rtol=1e-7)


def test_place_takes_lists_of_tensors():
    def f(x):
        table = numpy.zeros(4)
        numpy.place(table, [True, False, True, True], [x[0], 3 * x[1]])
        return (table * table).sum()

    numpy.testing.assert_allclose(vg.grad(f)(numpy.array([2.0, 5.0])), [8.0, 90.0])


# -- by places, and by names -------------------------------------------------------------------------------------------


def test_functions_take_arguments_in_numpys_positions():
    x = leaf(*VALUES)
    assert np.arange(0, 3, 1, float).dtype == float
    for function in (
        lambda np, x: np.sum(x, 0, None, None, True),
        lambda np, x: np.mean(x, 0, None, None, True),
        lambda np, x: np.var(x, 0, None, None, 1, True),
        lambda np, x: np.median(x, 0, None, False, True),
        lambda np, x: np.trapezoid(x, None, 0.1, 0),
        lambda np, x: np.linspace(x[0], x[1], 5, False),
        lambda np, x: np.histogramdd(x.T, 2, None, True, x[0])[0],
        lambda np, x: np.histogramdd([x[0], x[1]], [2, 3], [(0, 3), None])[0],
        lambda np, x: np.histogram2d(x[0], x[1], 3, None, False, x[1])[0],
    ):
        numpy.testing.assert_allclose(function(np, x).detach().numpy(), function(numpy, VALUES))
    if numpy.lib.NumpyVersion(numpy.__version__) >= "2.2.0":
        for function in (
            lambda np, x: np.trim_zeros(np.pad(x, 1)),
            lambda np, x: np.trim_zeros(np.pad(x, 1), "f", 0),
            lambda np, x: np.trim_zeros(np.zeros((2, 2)) * x[0, 0]),
        ):
            numpy.testing.assert_allclose(function(np, x).detach().numpy(), function(numpy, VALUES))


def test_a_histogram_in_more_dimensions_sums_weights():
    weights = leaf(1.0, 2.0, 3.0)
    totals, edges = np.histogramdd(VALUES.T, 2, weights=weights)
    (found,) = grad((totals * numpy.array([[1.0, 2.0], [3.0, 4.0]])).sum(), weights)
    expected = numpy.histogramdd(VALUES.T, 2, weights=[1.0, 2.0, 3.0])[0]
    numpy.testing.assert_allclose(totals.detach().numpy(), expected)
    assert found.tolist() == [3.0 - 1.0, 3.0, 2.0]
    assert len(edges) == 2


def test_views_of_the_bits_of_numbers_are_read_only():
    x = vg.Tensor([1.0, 2.0])
    bits = x.view(np.int64)
    assert (bits == np.array([1.0, 2.0]).view(np.int64)).all()
    with pytest.raises(ValueError, match="read-only"):
        bits[0] = 0
    with pytest.raises(ValueError, match="read-only"):
        bits += 1
    assert (bits >> 1).view(np.float64).dtype == np.float64 and x.tolist() == [1, 2]


def test_views_of_the_bits_of_numbers_share_their_memory():
    def exponents(x):
        y = x * 1.0
        bits = y.view(np.int64)
        y[0] = 1024.0
        return (bits >> 52) * 1.0

    compiled = vg.compile(exponents)
    for values in ([1.0, 2.0], [8.0, 16.0], [64.0, 3.0]):
        expected = exponents(numpy.array(values)).tolist()
        assert exponents(vg.Tensor(values)).tolist() == expected == compiled(numpy.array(values)).tolist()
    x, factors = leaf(1.0, 2.0), vg.Tensor([1.0, 2.0])
    bits = factors.view(np.int64)
    product, swapped = (x * bits).sum(), factors.view(">f8")
    expected = bits.tolist()
    factors[0] = 8.0
    assert grad(product, x)[0].tolist() == expected != bits.tolist()
    assert swapped.tolist() == factors.numpy().view(">f8").tolist()


@pytest.mark.parametrize(("value", "dtype"), [(1.0, complex), (1j, float), (1.0, numpy.int32)])
def test_views_of_numbers_in_dtypes_of_another_size_are_refused(value, dtype):
    with pytest.raises(ValueError, match="0d array"):
        vg.Tensor(value).view(dtype)


def test_methods_have_numpys_names():
    """Libraries such as pint decide by the name of a method what they do with its result."""
    names = [name for name in dir(numpy.ndarray) if not name.startswith("_") and callable(getattr(numpy.ndarray, name))]
    assert len(names) > 40
    for name in names:
        assert getattr(vg.Tensor, name).__name__ == name


def test_setting_flags():
    base = leaf(*VALUES) * 1.0
    view = base[1:]
    view.setflags(write=False)  # without effect
    view[...] = 2.0
    assert numpy.all(view == 2.0)
    base.setflags(write=False)
    for write in (lambda: base.fill(1.0), lambda: base.__setitem__(0, 1.0), lambda: base.__iadd__(1.0)):
        with pytest.raises(ValueError, match="read-only"):
            write()
    with pytest.raises(ValueError, match="read-only"):
        base[1:][0] = 1.0
    base.setflags(write=True)
    base[1:] *= 3.0
    (gradient,) = grad(base.sum(), base)
    assert numpy.all(base[1:] == 6.0) and numpy.all(gradient == 1.0)


# -- sorting in descending order ---------------------------------------------------------------------------------------

UNSORTED = [
    numpy.array([[1.0, 3.0, 2.0, 3.0], [-0.0, 0.0, numpy.inf, -1.0]]),
    numpy.asfortranarray(numpy.random.default_rng(0).normal(size=(3, 4, 2))),
    numpy.array([1.0, numpy.nan, 4.0, numpy.nan, 2.0, 2.0]),
    numpy.array([1 + 2j, 1 + 3j, 2, 1 + 2j]),
    numpy.array([3, 0, 255, 3], numpy.uint8),
    numpy.array([-128, 127, 0, 127], numpy.int8),
    numpy.array([True, False, True]),
]


@pytest.mark.parametrize("array", UNSORTED, ids=lambda array: f"{array.dtype}{array.shape}")
@pytest.mark.parametrize("axis", [0, -1, None])
def test_descending_sorts_match_numpy(array, axis):
    """The option exists since NumPy 2.5, which sorts NaN to the end in either order."""
    x = vg.Tensor(array, requires_grad=array.dtype.kind in "fc")
    flat, along = (array, axis) if axis is not None else (array.reshape(-1), -1)
    key = -flat if array.dtype.kind in "fc" else ~flat
    places = numpy.argsort(key, along, kind="stable")
    expected = numpy.take_along_axis(flat, places, along)
    found = np.sort(x, axis, descending=True)
    assert found.dtype == array.dtype and numpy.array_equal(found.detach().numpy(), expected, equal_nan=x.requires_grad)
    assert numpy.array_equal(numpy.asarray(np.argsort(x, axis, descending=True)), places)
    assert numpy.array_equal(numpy.asarray(x.argsort(axis, descending=True)), places)
    if x.requires_grad:
        seed = numpy.arange(1.0, 1 + array.size).reshape(expected.shape).astype(array.dtype)
        scattered = numpy.zeros_like(flat)
        numpy.put_along_axis(scattered, places, seed, along)
        (slope,) = grad([found], [x], [vg.Tensor(seed)])
        assert numpy.array_equal(slope.numpy(), scattered.reshape(array.shape))
    if axis is not None:
        written = vg.Tensor(array) * 1 if array.dtype.kind in "fc" else vg.Tensor(array)
        written.sort(axis, descending=True)
        assert numpy.array_equal(written.numpy(), expected, equal_nan=x.requires_grad)
    if numpy.lib.NumpyVersion(numpy.__version__) >= "2.5.0":
        assert numpy.array_equal(
            numpy.sort(array, axis, descending=True), found.detach().numpy(), equal_nan=x.requires_grad
        )
        assert numpy.sort(x, axis, descending=True)._array.strides == numpy.sort(array, axis, descending=True).strides


def test_cross_product_with_axis_none_uses_the_last_axis():
    a, b = numpy.random.default_rng(0).normal(size=(2, 4, 3))
    assert numpy.array_equal(np.linalg.cross(vg.Tensor(a), b, axis=None).numpy(), numpy.linalg.cross(a, b))


@pytest.mark.parametrize("mode", ["wrap", "clip"])
def test_take_along_an_empty_axis(mode):
    x = vg.zeros((0, 0)).requires_grad_()
    taken = np.take(x, [0, 3], axis=-2, mode=mode)
    assert taken.shape == (2, 0)
    assert vg.autograd.grad(taken.sum(), x)[0].shape == (0, 0)
    with pytest.raises(IndexError, match="empty"):
        np.take(vg.zeros((0, 2)), [0], axis=0, mode=mode)


# -- functions of numbers that are applied to elements -----------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"otypes": [float]}, {"cache": True}])
@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name != "empty"])
def test_vectorize_calls_the_function_as_often_and_in_the_same_order_as_numpy(layout, options):
    values = numpy.arange(24.0).reshape(2, 3, 4)

    def applied(np, a):
        calls = 0

        def numbered(x, y):
            nonlocal calls
            calls += 1
            return x * y + 0.5 * calls

        a = LAYOUTS[layout](a)
        found = np.vectorize(numbered, **options)(a, a[..., :1])
        return found.tolist(), found.ravel("K").tolist()

    assert applied(np, vg.Tensor(values)) == applied(numpy, values)


@pytest.mark.parametrize(
    ("function", "otypes"),
    [
        (lambda v: [v, 2 * v], [object]), (lambda v: [v], "O"), (lambda v: {"a": v}, [numpy.ndarray]),
        (lambda v: (v, [v, 1]), [float, object]), (lambda v: "x" * int(v), None), (lambda v: b"x" * int(v), None),
        (lambda v: (v, "x" * int(v)), None), (lambda v: "xyz", "U"), (lambda v: None, None),
    ],
)  # fmt: skip
def test_objects_and_strings_from_vectorize(function, otypes):
    for x in (numpy.array([1.0, 2.0, 3.0]), numpy.array([[1.0], [2.0]])):
        plain = numpy.vectorize(function, otypes)(x)
        for given in (x, vg.Tensor(x)):
            made = np.vectorize(function, otypes)(given)
            for one, expected in zip(made, plain) if isinstance(plain, tuple) else [(made, plain)]:
                assert one.tolist() == expected.tolist() and one.dtype == expected.dtype
    slopes = vg.grad(lambda x: numpy.vectorize(lambda v: [v, 2 * v], otypes=[object])(x)[1][1])(numpy.array([1.0, 2.0]))
    assert slopes.tolist() == [0.0, 2.0]


def test_the_first_result_of_vectorize_determines_the_dtype():
    values = [0.4, 1.7, 2.9]
    for signature in (None, "()->()"):
        found, expected = (
            each.vectorize(lambda x: 0 if x < 1 else x, signature=signature)(given)
            for each, given in ((np, vg.Tensor(values)), (numpy, numpy.array(values)))
        )
        assert found.tolist() == expected.tolist() and found.dtype == expected.dtype


def test_lists_of_columns_are_joined_in_row_major_order():
    values = numpy.arange(8.0).reshape(2, 2, 2)
    for function in (
        lambda np, a: np.array(list(a.transpose(2, 1, 0))),
        lambda np, a: np.asarray(list(a.transpose(2, 1, 0))),
        lambda np, a: np.float_power(np.broadcast_to(a[0].T, (2, 2, 2)), 2),
    ):
        found = function(np, vg.Tensor(values, requires_grad=True))
        assert found.ravel("K").tolist() == function(numpy, values).ravel("K").tolist()


def test_ravel_takes_lists_of_integer_tensors():
    def f(x):
        side = numpy.rint(numpy.sqrt(x.shape)).astype(int)
        return x.sum() * numpy.ravel([[side[0], 1], [3, side[0]]])[0]

    assert vg.value_and_grad(f)(numpy.arange(4.0))[0] == f(numpy.arange(4.0))
