"""Error messages name the alternative that keeps the gradient."""

import copy
import decimal
import functools
import io
import json
import math
import pickle
import statistics
import struct
import warnings

import numpy as np
import pytest
import scipy.linalg

import viewgrad as vg
from viewgrad.autograd import grad
from viewgrad.errors import (
    AutogradError,
    DetachedConversionError,
    DetachedConversionWarning,
    DifferentiabilityError,
    NonLeafGradWarning,
    UnsupportedFunctionError,
)


@pytest.fixture
def x():
    return vg.Tensor([1.0, 4.0], requires_grad=True)


REFUSED = {
    "a tensor of tensors": (lambda x: vg.Tensor([x[0], x[1]]), r"stack\(\), concatenate\(\)"),
    "a contiguous array": (lambda x: np.ascontiguousarray(x), r"use contiguous\(\)"),
    "joined by r_": (lambda x: np.r_[x, x], r"stack\(\) or concatenate\(\)"),
    "an array of tensors": (lambda x: np.array([x[0], x[1]]), r"stack\(\) or concatenate\(\)"),
}


def _as_assigned(x):
    array = np.zeros(2)
    array[:] = x


def _as_assigned_number(x):
    array = np.zeros(2)
    array[0] = x[0]


def _as_added(x):
    array = np.zeros(2)
    array += x


def _as_filled(x):
    np.zeros(2).fill(x[0])


def _as_field(x):
    records = np.zeros(2, [("a", float)])
    records["a"] = x


# Each conversion that loses the gradient: an error or a warning names an alternative that keeps it.
LEAVES = {
    "an array written to": (_as_assigned, AutogradError, r"array\[:\] = x.* zeros\(\)"),
    "a number of an array": (_as_assigned_number, ValueError, "array element"),  # see test_conversions.py
    "a sum in place": (_as_added, TypeError, r"plain array, which has no history"),
    "fill": (_as_filled, ValueError, "array element"),
    "a field": (_as_field, AutogradError, "use an array for each field"),
    "np.copyto": (lambda x: np.copyto(np.zeros(2), x), TypeError, "create the array with"),
    "out=": (lambda x: np.exp(x, out=np.zeros(2)), TypeError, "create the array with"),
    "np.put": (lambda x: np.put(np.zeros(2), [0], x), AutogradError, "np.put"),
    "np.asarray": (lambda x: np.asarray(x), AutogradError, r"tensor itself, which is an array, or asarray\(\) of"),
    "np.float64": (lambda x: np.float64(x), AutogradError, r"np.float64\(x\)"),
    "dtype.type": (lambda x: x.dtype.type(x), AutogradError, r"cast the tensor with astype\(\)"),
    "np.fromiter": (lambda x: np.fromiter(x, float), ValueError, "array element"),
    "np.vectorize": (lambda x: np.vectorize(lambda v: v)(x), AutogradError, "viewgrad.numpy"),
    "np.frompyfunc": (lambda x: np.frompyfunc(abs, 1, 1)(x), UnsupportedFunctionError, "compose it"),
    "structured": (lambda x: np.array([(x[0],)], [("a", float)]), ValueError, "array element"),
    "np.rec": (lambda x: np.rec.fromarrays([x]), AutogradError, "viewgrad.numpy"),
    "np.matrix": (lambda x: np.matrix([x]), AutogradError, r"numpy.matrix is no tensor|stack\(\)"),
    "np.ma": (lambda x: np.ma.array(x), AutogradError, "viewgrad.numpy"),
    "np.arange": (lambda x: np.arange(x[1]), AutogradError, "viewgrad.numpy"),
    "np.random": (lambda x: np.random.default_rng(0).normal(x), AutogradError, "viewgrad.numpy"),
    "np.packbits": (lambda x: np.packbits(x), UnsupportedFunctionError, "compose it"),
    "np.save": (lambda x: np.save(io.BytesIO(), x), UnsupportedFunctionError, "would lose the history"),
    "SciPy": (lambda x: scipy.linalg.expm(x[None].T * x), AutogradError, "function of viewgrad.scipy"),
    "math": (lambda x: math.sin(x[0]), DetachedConversionError, "use viewgrad.math"),
    "statistics": (lambda x: statistics.mean(x), AutogradError, r"use np.mean\(\)"),
    "float": (lambda x: float(x[0]), DetachedConversionWarning, "use the tensor itself"),
    "complex": (lambda x: complex(x[0]), DetachedConversionWarning, "use the tensor itself"),
    "item": (lambda x: x[0].item(), DetachedConversionWarning, "use the tensor itself"),
    "tolist": (lambda x: x.tolist(), DetachedConversionWarning, r"list\(x\)"),
    "struct": (lambda x: struct.pack("d", x[0]), struct.error, "not a float"),
    "bytes": (lambda x: bytes(x), DetachedConversionWarning, "plain bytes"),
    "dumps": (lambda x: x.dumps(), UnsupportedFunctionError, r"detach\(\)"),
    "numpy": (lambda x: (x * 1.0).numpy(), AutogradError, r"detach\(\)"),
    "pickle": (lambda x: pickle.dumps(x * 1.0), AutogradError, r"detach\(\)"),
    "json": (lambda x: json.dumps(x[0]), TypeError, "not JSON serializable"),
    "Decimal": (lambda x: decimal.Decimal(x[0]), TypeError, "Tensor to Decimal"),
    "ctypes": (lambda x: x.ctypes, TypeError, r"detach\(\)"),
}


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
@pytest.mark.parametrize("name", LEAVES)
def test_conversion_errors_describe_the_loss(name, x):
    function, kind, message = LEAVES[name]
    with pytest.warns(kind, match=message) if issubclass(kind, Warning) else pytest.raises(kind, match=message):
        function(x)


QUIET = [int, bool, str, "{:.2f}".format, lambda s: "%f" % s, lambda s: s < 2, round]  # noqa: UP031


@pytest.mark.parametrize("use", [*QUIET, copy.deepcopy])
def test_lossless_conversions_do_not_warn(use, x):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        use(x[0])
    with warnings.catch_warnings(), pytest.raises(TypeError):
        warnings.simplefilter("error")
        float(x)


@pytest.mark.parametrize("name", REFUSED)
def test_errors_for_lost_history_suggest_alternatives(name, x):
    function, message = REFUSED[name]
    with pytest.raises(AutogradError, match=message):
        function(x)


def test_emath_and_full_like_have_derivatives(x):
    assert grad(np.emath.sqrt(x).sum(), x)[0].tolist() == [0.5, 0.25]
    assert grad(np.full_like(x, x[1] * 2.0).sum(), x)[0].tolist() == [0, 4]


@pytest.mark.parametrize("save", [np.save, np.savetxt, np.savez, np.savez_compressed])
def test_tensors_without_history_are_saved_by_numpy(save, x):
    file = io.BytesIO()
    save(file, x.detach())
    file.seek(0)
    found = np.loadtxt(file) if save is np.savetxt else np.load(file)
    np.testing.assert_array_equal(found if isinstance(found, np.ndarray) else found["arr_0"], [1.0, 4.0])
    with pytest.raises(UnsupportedFunctionError, match="would lose the history"):
        save(io.BytesIO(), x * 1.0)


def test_reading_the_grad_of_a_non_leaf_warns(x, recwarn):
    y = x * 2.0
    with pytest.warns(NonLeafGradWarning, match=r"retain_grad\(\)"):
        assert y.grad is None
    recwarn.clear()
    y.retain_grad()
    view = y[:1]
    view.retain_grad()
    assert y.grad is None and view.grad is None and x.grad is None and x.detach().grad is None
    z = y * 1.0
    z.sum().backward(inputs=[z, x], retain_graph=True)
    z.sum().backward()
    assert z.grad.tolist() == [1, 1] and y.grad.tolist() == [2, 2]
    with vg.no_grad():
        assert (x * 2.0).grad is None
    assert not [each for each in recwarn.list if issubclass(each.category, NonLeafGradWarning)]


def test_inference_mode_records_no_backward_pass(x):
    with vg.inference_mode(), pytest.raises(DifferentiabilityError, match="does not require grad"):
        grad((x * x).sum(), x, create_graph=True)


def test_export_errors_describe_the_loss(x):
    torch = pytest.importorskip("torch")
    with pytest.raises(AutogradError, match="carries no history"):
        torch.as_tensor(x)
    assert torch.as_tensor(x.detach()).tolist() == [1.0, 4.0]


def test_cached_values_of_another_tensor(x):
    kept = functools.cache(lambda s: s * 2.0)
    with pytest.warns(DetachedConversionWarning, match=r"hash\(\) .* another tensor of equal value .* id\(x\)"):
        kept(x[0])
    with pytest.warns(DetachedConversionWarning, match=r"tobytes\(\) .* plain bytes"):
        key = x.tobytes()
    assert key == np.array([1.0, 4.0]).tobytes()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert kept(x.detach()[1]) == 8.0 and hash(x) != hash(x.clone())
        assert x.detach().tobytes("F") == np.array([1.0, 4.0]).tobytes()


def test_messages_name_the_requested_function(x):
    special = pytest.importorskip("scipy.special")
    with pytest.raises(UnsupportedFunctionError, match=r"scipy\.special\.airy"):
        special.airy(x)
    with pytest.raises(UnsupportedFunctionError, match=r"no operator for numpy\.packbits"):
        np.packbits(x)
    for three in (3, np.int64(3)):
        with pytest.raises(DifferentiabilityError, match=r"argument 0 is the int.* 3, .*; pass 3\.0"):
            vg.func.grad(lambda a: a * 2)(three)
    with pytest.raises(AutogradError, match=r"use the tensor itself, which is an array"):
        np.asarray(x)
    with pytest.raises(AutogradError, match=r"join tensors in lists"):
        np.asarray([x[0], x[1]])


def test_views_that_a_function_returned_are_cloned(x):
    class Reversed(vg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x[::-1]

        @staticmethod
        def backward(ctx, grad):
            return grad[::-1]

    view = Reversed.apply(x * 1.0)
    with pytest.raises(AutogradError, match=r"clone\(\) the result of the Function"):
        view[0] = 1.0
    copied = view.clone()
    copied[0] = 1.0
    assert grad(copied.sum(), x)[0].tolist() == [1.0, 0.0]


def test_data_is_assigned_to_in_place(x):
    y = x * x
    x.data -= 0.5
    assert x.detach().tolist() == [0.5, 3.5] and grad(y.sum(), x)[0].tolist() == [2.0, 8.0]  # saved values are kept
    x.data = [1.0, 2.0]
    x.data = x.data * 2.0
    x.data = x * 1.0
    assert x.requires_grad and x.is_leaf and x.detach().tolist() == [2.0, 4.0]
    view = x.detach()[1:]
    x.data[0] = 9.0
    view.data = np.array([7.0])
    assert x.detach().tolist() == [9.0, 7.0]
    with pytest.raises(ValueError, match="cannot be replaced"):
        x.data = 1.0
    for mode in (vg.no_grad, vg.autograd.detect_anomaly, lambda: vg.view_replay(True)):
        with mode():
            x.data += 1.0
    assert x.detach().tolist() == [12.0, 10.0]
    with pytest.raises(AutogradError):
        x.sum().data += 1.0


def test_a_retained_gradient_of_an_earlier_value_warns(x):
    def programs():
        for write in ("another part", "the tensor itself"):
            y = x * 2.0
            view = y[:1]
            view.retain_grad()
            result = (view * view).sum()
            if write == "another part":
                y[1:] *= 3.0
            else:
                view *= 3.0
            yield view, result, y

    for view, result, _ in programs():
        result.backward()
        with pytest.warns(NonLeafGradWarning, match=r"was written to after retain_grad.* clone\(\)"):
            assert view.grad is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for view, _, _ in programs():
            (view * view).sum().backward()  # the gradient of the current value
            assert view.grad.tolist() == [2 * view.detach().item()]
        kept = (x * 2.0)[:1]
        kept.retain_grad()
        assert kept.grad is None
