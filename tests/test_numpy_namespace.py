"""`viewgrad.numpy` has every public name of the installed NumPy, and each is of one of four kinds:

made here, NumPy's own, an operator, or an error that says what to use.
"""

import importlib
import pickle
import types
from collections.abc import Hashable

import numpy
import pytest

import viewgrad as vg
import viewgrad.numpy as np
from viewgrad import math
from viewgrad.autograd import grad, gradcheck
from viewgrad.errors import AutogradError, UnsupportedFunctionError
from viewgrad.numpy import fft, linalg, passthrough
from viewgrad.numpy.namespace import public_names
from viewgrad.scipy import special
from viewgrad.tensor.tensor import FUNCTIONS, UFUNCS

# Functions whose results are constants, or piecewise constant.
# Counts of histograms are among them, which NumPy gives as floats.
CONSTANT = {"empty_like", "zeros_like", "ones_like", "histogram2d", "histogramdd", "imag", "unique", "unique_all",
            "unique_counts", "unique_inverse", "unique_values"}  # fmt: skip
MODULES = {
    "numpy": (numpy, np.MADE, passthrough.FROM_NUMPY, passthrough.ALTERNATIVES),
    "numpy.linalg": (numpy.linalg, linalg.MADE, linalg.FROM_NUMPY, linalg.ALTERNATIVES),
    "numpy.fft": (numpy.fft, fft.MADE, fft.FROM_NUMPY, {}),
}


def has_operator(value):
    """Return whether calls of one of NumPy's callables go to an operator."""
    if isinstance(value, numpy.ufunc):
        return (value, "__call__") in UFUNCS
    return isinstance(value, Hashable) and value in FUNCTIONS


@pytest.mark.parametrize("module", MODULES)
def test_every_name_is_classified(module):
    dropped = {"in1d", "trapz"}  # by later versions than the oldest that is allowed
    original, made, own, ways_out = MODULES[module]
    names = set(public_names(original)) - dropped - set(made) - set(own) - set(ways_out)
    assert [name for name in names if not has_operator(getattr(original, name))] == []


@pytest.mark.parametrize("module", ["", "linalg", "fft", "random", "lib", "lib.stride_tricks", "emath", "ma",
                                    "polynomial", "testing", "ctypeslib"])  # fmt: skip
def test_every_name_exists(module):
    ours, theirs = np, numpy
    for part in module.split(".") if module else ():
        ours, theirs = getattr(ours, part), getattr(theirs, part)
    assert [name for name in public_names(theirs) if not hasattr(ours, name)] == []


def test_every_method_of_arrays_exists():
    dropped = {"itemset", "newbyteorder", "tostring"}
    public = {name for name in dir(numpy.ndarray) if not name.startswith("_")}
    assert {name for name in public - dropped if not hasattr(vg.Tensor, name)} == set()


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::viewgrad.errors.DetachedConversionWarning")
def test_no_function_silently_drops_a_gradient():
    """Called with tensors that have a history, a function returns such tensors, returns values, or raises an error."""
    x = vg.Tensor([0.25, 0.5, 0.75], requires_grad=True) * 1.0
    matrix = vg.Tensor([[2.0, 0.5], [0.25, 1.0]], requires_grad=True) * 1.0
    for name in sorted(set(public_names(numpy)) - passthrough.FROM_NUMPY):
        function = getattr(np, name)
        if isinstance(function, (type, types.ModuleType)) or not callable(function):
            continue
        for arguments in ((x,), (x, x), (matrix,), (matrix, matrix)):
            try:
                result = function(*arguments)
            except (TypeError, ValueError, AttributeError, LookupError, RuntimeError, numpy.linalg.LinAlgError):
                continue
            for part in result if isinstance(result, (tuple, list)) else [result]:
                if isinstance(part, vg.Tensor) and part.dtype.kind in "fc":
                    assert part.requires_grad or name in CONSTANT, name
                assert not isinstance(part, numpy.ndarray) or part.dtype.kind not in "fc", name


def test_functions_without_a_derivative_suggest_alternatives():
    x = vg.Tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(UnsupportedFunctionError, match=r"numpy\.packbits .* detach"):
        np.packbits(x)
    with pytest.raises(UnsupportedFunctionError, match=r"numpy\.ma\.unique .* np\.where"):
        np.ma.unique(x)
    assert np.packbits(np.array([1, 0])) == numpy.packbits([1, 0])
    with pytest.raises(UnsupportedFunctionError, match=r"numpy\.mgrid .* numbers"):
        np.mgrid[0 : x : 3j, 0:1:2j]


def test_creation_functions_return_tensors():
    for made in (
        np.zeros(3), np.ones((2, 2)), np.empty(2), np.full(2, 5.0), np.array([1, 2]), np.asarray([1.0]), np.arange(3),
        np.linspace(0, 1, 3), np.eye(2), np.identity(2), np.zeros_like([1.0]), np.fromfunction(lambda i: i, (3,)),
        np.meshgrid([1.0], [2.0])[0], np.mgrid[0:2, 0:2], np.r_[1.0, 2.0], np.random.rand(2), np.diag([1.0, 2.0]),
        np.sin(numpy.ones(2)), np.random.default_rng(0).normal(size=2), np.hanning(4), np.fft.fftfreq(4),
        np.frombuffer(b"12345678"), np.copy(numpy.ones(2)), np.ndarray((2, 3)), np.tri(2), np.vander([1.0, 2.0]),
    ):  # fmt: skip
        assert isinstance(made, vg.Tensor), made
        assert isinstance(made, np.ndarray)
    for kept in (np.array(["a"]), np.array([None]), np.array([{}])):
        assert type(kept) is numpy.ndarray


def test_types_of_sctypedict_cast_tensors():
    x = vg.Tensor([1.0, 2.0], requires_grad=True)
    for name in ("float64", "double", "float32"):
        cast = np.sctypeDict[name](x * 2.0)
        assert cast.dtype == numpy.dtype(name) and grad(cast.sum(), x)[0].tolist() == [2.0, 2.0]
    assert np.sctypeDict["bool"] is numpy.bool_ and list(np.sctypeDict) == list(numpy.sctypeDict)


def test_random_numbers_match_numpy():
    np.random.seed(3)
    numpy_state = numpy.random.RandomState(3)
    assert np.random.rand(3).tolist() == numpy_state.rand(3).tolist()
    assert np.random.default_rng(5).normal(size=2).tolist() == numpy.random.default_rng(5).normal(size=2).tolist()
    x = vg.Tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    for kind in (np.random.default_rng, np.random.RandomState):
        plain = getattr(numpy.random, kind.__name__)
        values = x.detach().numpy().copy()
        assert kind(7).permutation(x).tolist() == plain(7).permutation(values).tolist()
        assert kind(7).choice(x, 3).tolist() == plain(7).choice(values, 3).tolist()
        shuffled = x.clone()
        kind(7).shuffle(shuffled)
        plain(7).shuffle(values)
        assert shuffled.tolist() == values.tolist()
        assert shuffled.requires_grad


def test_random_samples_have_gradients_of_location_and_scale():
    mean, scale = vg.Tensor(1.0, requires_grad=True), vg.Tensor(2.0, requires_grad=True)
    for name in ("normal", "laplace", "gumbel", "logistic"):
        sample = getattr(np.random.RandomState(1), name)(mean, scale, 3)
        numpy.testing.assert_allclose(
            sample.detach().numpy(), getattr(numpy.random.RandomState(1), name)(1.0, 2.0, 3), rtol=1e-14
        )
        of_mean, of_scale = grad(sample.sum(), [mean, scale])
        assert of_mean.item() == 3
        numpy.testing.assert_allclose(of_scale.item(), ((sample.detach() - 1) / 2).sum().item())
    with pytest.raises(UnsupportedFunctionError, match="no derivative here"):
        np.random.beta(mean, scale)


def test_dtype_classes_pass_isinstance_and_issubdtype():
    x = vg.Tensor([1.0, 2.0], requires_grad=True)
    assert numpy.zeros(1, np.float32).dtype == numpy.float32
    assert np.zeros(1, np.int16).dtype == np.int16
    assert x.dtype == np.float64
    assert np.issubdtype(x.dtype, np.floating)
    assert isinstance(x.sum(), np.floating)
    assert isinstance(numpy.float64(1.0), np.float64)
    assert not isinstance(1.0, np.integer)
    assert grad(np.float64(x[0]) * 2, x)[0].tolist() == [2, 0]
    assert np.float32(x).dtype == numpy.float32
    assert type(np.float64(3)) is numpy.float64


def test_classes_derived_from_ndarray_hold_plain_numbers():
    class Point(np.ndarray):
        def __new__(cls, data):
            return np.asarray(data).view(cls)

    class Pair(np.ndarray):
        def __new__(cls, data):
            data = np.array(data, dtype=float)
            made = super().__new__(cls, data.shape, float, data)
            made.given = data
            return made

    x = vg.Tensor([1.0, 2.0], requires_grad=True)
    for cls in (Point, Pair):
        made = cls([3.0, 4.0])
        assert type(made) is cls and isinstance(made, np.ndarray) and isinstance(made, numpy.ndarray)
        assert issubclass(cls, np.ndarray) and made.tolist() == [3.0, 4.0] and made.sum() == 7.0
        with pytest.raises((UnsupportedFunctionError, TypeError), match="plain numbers"):
            cls(x)
    assert not isinstance(x, Point)
    assert isinstance(np.ndarray.__new__(Point, (2,)), Point)


@pytest.mark.parametrize("name", ["array", "asarray", "asanyarray", "copy", "require", "asarray_chkfinite"])
def test_arrays_made_of_scalars_can_be_written_to(name):
    """A program that computes in place also accepts numbers, which NumPy converts to 0-d arrays."""

    def sigmoid(module, x):
        made = getattr(module, name)(-1.0 * x)
        module.exp(made, out=made)
        made += 1
        module.reciprocal(made, out=made)
        return made

    x = vg.Tensor([0.7, 1.0], requires_grad=True)
    found = sigmoid(np, x[0])
    right = 1 / (1 + numpy.exp(-0.7))
    assert found.detach().item() == pytest.approx(right) == float(sigmoid(numpy, numpy.float64(0.7)))
    assert vg.autograd.grad(found * 1.0, x)[0].tolist() == pytest.approx([right * (1 - right), 0.0])


class Attributes:
    """Built-in functions stored as class attributes are not bound: they do not receive the object."""

    sine, product, line, join = math.sin, np.multiply, np.zeros, np.array


def test_counterparts_of_builtins_do_not_bind_to_objects():
    x = vg.Tensor(0.3, requires_grad=True)
    assert grad(Attributes().sine(x), x)[0].item() == pytest.approx(numpy.cos(0.3))
    assert Attributes().product(2.0, 3.0) == 6.0
    assert Attributes().line(2).tolist() == [0.0, 0.0] and Attributes().join([1.0]).tolist() == [1.0]
    for function in (math.sin, np.array):
        assert pickle.loads(pickle.dumps(function)) is function


def test_npz_archives_hold_tensors(tmp_path):
    numpy.savez(tmp_path / "a.npz", x=numpy.ones(2))
    with np.load(tmp_path / "a.npz") as archive:
        assert type(archive["x"]) is vg.Tensor and type(archive.f.x) is vg.Tensor and archive.files == ["x"]


NOTHING, ONE, TWO, SIZES = np.array([0])[0], np.array([1])[0], np.array([2])[0], np.array([3, 2])
TABLE = numpy.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize(
    ("found", "right"),
    {
        "reshape": (lambda: np.reshape(TABLE, SIZES), TABLE.reshape(3, 2)),
        "reshape by one size": (lambda: np.reshape(TABLE, (np.array([3])[0], 2)), TABLE.reshape(3, 2)),
        "broadcast_to": (lambda: np.broadcast_to(numpy.ones(2), SIZES), numpy.ones((3, 2))),
        "transpose": (lambda: np.transpose(TABLE, np.array([1, 0])), TABLE.T),
        "swapaxes": (lambda: np.swapaxes(TABLE, NOTHING, ONE), TABLE.T),
        "moveaxis": (lambda: np.moveaxis(TABLE, NOTHING, ONE), TABLE.T),
        "rollaxis": (lambda: np.rollaxis(TABLE, ONE), TABLE.T),
        "squeeze": (lambda: np.squeeze(TABLE[None], NOTHING), TABLE),
        "diagonal": (lambda: np.diagonal(TABLE, ONE), [1.0, 5.0]),
        "split": (lambda: np.split(TABLE, TWO)[1], TABLE[1:]),
        "windows": (lambda: np.lib.stride_tricks.sliding_window_view([1.0, 2, 3], TWO), [[1, 2], [2, 3]]),
        "a list": (lambda: np.reshape([1.0, 2, 3, 4, 5, 6], SIZES), [[1, 2], [3, 4], [5, 6]]),
    }.values(),
)
def test_views_of_tensors_as_arrays(found, right):
    assert numpy.array_equal(found().numpy(), right)


def test_arange_of_tensors_rounds_as_in_numpy():
    drawn = numpy.random.default_rng(0)
    for _ in range(100):
        given = drawn.uniform(-3, 3), drawn.uniform(4, 6), drawn.uniform(0.01, 0.5)
        made = np.arange(*[vg.Tensor(each, requires_grad=True) for each in given])
        numpy.testing.assert_array_equal(made.detach().numpy(), numpy.arange(*given))
    leaves = [vg.Tensor(each, requires_grad=True) for each in (0.3, 0.7)]
    assert gradcheck(lambda start, step: np.arange(start, 5, step), leaves)
    step = leaves[1]
    for made in (np.arange(0, 5, step), np.arange(0.0, 5, step, float), np.arange(start=0, stop=5, step=step)):
        assert vg.autograd.grad(made.sum(), step)[0] == 28.0


def test_arrays_of_objects_hold_arrays_of_different_lengths():
    x = vg.Tensor([1.0, 2.0, 3.0], requires_grad=True)
    bands = np.array(np.split(x * x, [1]), dtype=object)
    assert type(bands) is numpy.ndarray and bands.shape == (2,) and bands.dtype == object
    assert np.array([x[0], x[1:]], dtype=object, ndmin=2).shape == (1, 2)
    assert np.array([x[:1], x[1:2]], dtype=object).shape == (2, 1)
    (slope,) = vg.autograd.grad(bands[1].sum(), x)
    assert slope.tolist() == [0.0, 4.0, 6.0]


def test_arange_of_one_number_with_infinite_step():
    x = vg.Tensor([0.5, 0.0], requires_grad=True)
    with numpy.errstate(divide="ignore"):
        made = np.arange(x[0], 2.0, 1.0 / np.abs(x[1]))
    assert made.tolist() == [0.5] and grad(made.sum(), x)[0].tolist() == [1.0, 0.0]


def test_types_can_be_compared():
    x = vg.Tensor([1.0])
    for value in (x, numpy.ones(1)):
        assert type(value) == np.ndarray and np.ndarray == type(value)  # noqa: E721
        assert type(value) in (list, np.ndarray) and type(value) in [np.ndarray]
    assert {np.ndarray: "array"}[type(x)] == "array"
    assert np.ndarray not in (float, np.matrix) and list not in (np.ndarray, tuple)


def test_scalars_have_no_len():
    x = vg.Tensor([1.0, 2.0], requires_grad=True)
    assert hasattr(x, "__len__") and not hasattr(x[0], "__len__") and not hasattr(x.sum(), "__len__")
    assert len(x) == 2 and x.__len__() == 2
    with pytest.raises(TypeError, match=r"len\(\) of a 0-d tensor"):
        len(x[0])


def test_tensors_have_no_mask():
    x = vg.Tensor([1.0, 2.0], requires_grad=True)
    assert np.ma.getmask(x) is np.ma.nomask and not np.any(np.ma.getmaskarray(x)) and not np.ma.is_masked(x)
    assert np.ma.getdata(x) is x and np.ma.filled(x, 0.0) is x and not np.ma.isMaskedArray(x)
    masked = np.ma.array([1.0, 2.0], mask=[True, False])
    assert np.ma.getmask(masked).tolist() == [True, False] and np.ma.filled(masked, 5.0).tolist() == [5.0, 2.0]


def test_inner_modules_of_numpy_can_be_imported():
    for name in ("array_utils", "format", "mixins", "npyio", "recfunctions", "scimath", "stride_tricks"):
        importlib.import_module(f"viewgrad.numpy.lib.{name}")
    pairs = importlib.import_module("viewgrad.numpy.lib.recfunctions").unstructured_to_structured(numpy.ones((2, 2)))
    assert pairs.dtype.names == ("f0", "f1")


class Derived(numpy.ndarray):
    def __array_wrap__(self, made, context=None, return_scalar=False):
        return np.ndarray.__array_wrap__(self, made, context, return_scalar)


def test_subclasses_find_array_attributes():
    assert type(numpy.ones(2).view(Derived) + 1) is Derived
    assert np.ndarray.__array_wrap__ is numpy.ndarray.__array_wrap__


def test_rows_are_distinguished_by_their_bytes():
    rows = np.array([[1, 2], [1, 2], [3, 4]])
    _, places = np.unique(rows.view(np.dtype((np.void, 2 * rows.itemsize))).ravel(), return_index=True)
    assert places.tolist() == [0, 2]


def test_setting_equal_or_empty_shape():
    x = vg.Tensor([1.0, 2.0], requires_grad=True)
    x.shape = (-1,)
    empty = np.array([]).reshape(1, 0)
    empty.shape = (0, 0)
    assert x.shape == (2,) and empty.shape == (0, 0)
    with pytest.raises(AutogradError, match="reshape"):
        x.shape = (1, 2)


def test_broadcast_of_tensors():
    def f(x, np=numpy):
        both = np.broadcast(x[:, None], x * 2)
        out = np.empty(both.shape)
        out.flat = [u * v for u, v in both]
        return (out * np.arange(both.size).reshape(out.shape)).sum() * both.nd * both.numiter

    x = numpy.array([1.0, 2.0, 3.0])
    step = 1e-6 * numpy.eye(3)
    expected = [(f(x + e) - f(x - e)) / 2e-6 for e in step]
    numpy.testing.assert_allclose(vg.grad(f, adopt=False)(x, np), expected, rtol=1e-7)
    assert [len(list(each)) for each in np.broadcast(x, 1.0).iters] == [3, 3]
    assert np.broadcast(np.array(["2020-01-01"], "M8[D]"), x[:, None]).shape == (3, 1)


def compared_dtypes(x):
    """Return comparisons by which programs choose a branch for a dtype."""
    return [
        x.dtype in (np.float32, np.float64), x.dtype in [np.complex128], np.float64 == x.dtype, np.float32 != x.dtype,
        np.float64 in [x.dtype], x.dtype == np.float64, float == x.dtype, complex == x.dtype, np.float64 == "float64",
        x.dtype.type in (np.float64,), np.dtype(np.float64) == np.float64,
    ]  # fmt: skip


@pytest.mark.parametrize("x", [numpy.ones(2), numpy.ones(2, numpy.float32), numpy.ones(2, complex), numpy.ones(2, int)])
def test_types_and_dtypes_compare_as_in_numpy(x):
    on_arrays = types.FunctionType(compared_dtypes.__code__, {"np": numpy})
    assert compared_dtypes(vg.as_tensor(x)) == vg.adopt(on_arrays)(vg.as_tensor(x)) == on_arrays(x)


@pytest.mark.parametrize("function", [linalg.eigh, linalg.eig, linalg.qr, linalg.svd, linalg.slogdet, np.unique_all])
def test_results_of_several_parts_have_the_names_of_numpy(function):
    of_numpy = getattr(numpy if function is np.unique_all else numpy.linalg, function.__name__)
    x = np.array([[2.0, 1.0], [1.0, 3.0]])
    for result in (function(x), of_numpy(x), getattr(x, function.__name__)()):
        assert result._fields == of_numpy(numpy.eye(2))._fields


def test_products_and_solutions_of_unusual_shapes():
    with pytest.raises(ValueError, match="one-dimensional"):
        linalg.outer(np.ones((2, 1)), np.ones(2))
    assert linalg.tensorsolve(np.zeros((0, 0)), np.zeros(0)).shape == (0,)
    assert linalg.tensorinv(np.zeros((0, 0)), 1).shape == (0, 0)


def test_shared_random_generator_of_the_module_mtrand():
    """As `check_random_state(None)` of scikit-learn uses it."""

    def draw(x):
        generator = numpy.random.mtrand._rand
        assert isinstance(generator, numpy.random.RandomState)
        return generator.normal(x, 2.0) + generator.uniform() + generator.permutation(3)[0]

    numpy.random.seed(0)  # noqa: NPY002
    numpy.random.normal()  # noqa: NPY002  # the generator keeps a second number
    expected = draw(1.0) + numpy.random.normal()  # noqa: NPY002
    numpy.random.seed(0)  # noqa: NPY002
    numpy.random.normal()  # noqa: NPY002
    value, gradient = vg.value_and_grad(draw)(1.0)
    assert value + numpy.random.normal() == expected and gradient == 1.0  # noqa: NPY002


def test_ufuncs_have_numpys_names():
    for name in public_names(numpy):
        value = getattr(numpy, name)
        if isinstance(value, numpy.ufunc):
            assert getattr(np, name).__name__ == value.__name__
    assert np._NoValue is numpy._NoValue
    x = vg.Tensor([[1.0, 2.0]], requires_grad=True)
    assert np.sum(x, axis=1, keepdims=np._NoValue, initial=np._NoValue, where=np._NoValue).shape == (1,)


def test_broadcast_arrays_returns_arrays_for_scalars():
    def f(x):
        first, second = np.broadcast_arrays(x * 2.0, 3.0)
        first[()] += second
        return first * first

    x = vg.Tensor(1.5, requires_grad=True)
    assert f(x) == 36.0 and grad(f(x), x)[0] == 24.0


def test_ufunc_is_the_type_of_ufuncs():
    ufuncs = [np.sin, np.add, np.matmul, np.frompyfunc(abs, 1, 1), numpy.sin, special.gamma]
    assert all(isinstance(each, np.ufunc) for each in ufuncs)
    assert not any(isinstance(each, np.ufunc) for each in (np.clip, np.linalg.norm, abs, ufuncs.append, 1.0))
    assert np.ufunc == numpy.ufunc and pickle.loads(pickle.dumps(np.ufunc)) is np.ufunc
    assert issubclass(type(numpy.sin), np.ufunc) and np.ufunc.at is numpy.ufunc.at
    assert vg.adopt(lambda: isinstance(numpy.sin, numpy.ufunc))()


def test_views_of_arrays_of_objects_contain_the_same_objects():
    x = vg.Tensor(2.0, requires_grad=True)
    objects = numpy.empty((1, 2, 1), object)
    objects[0, 0, 0], objects[0, 1, 0] = x * 3.0, "text"
    views = np.squeeze(objects), np.reshape(objects, 2), np.transpose(objects)[0, :, 0], np.moveaxis(objects, 1, 0)
    for view in views:
        assert view.dtype == object and view.ravel()[0] is objects[0, 0, 0] and view.ravel()[1] == "text"
