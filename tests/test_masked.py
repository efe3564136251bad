"""`numpy.ma` of tensors with a history: NumPy's values and masks, and zero gradients of masked values."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import viewgrad as vg
import viewgrad.numpy as vnp
from viewgrad.autograd import gradcheck
from viewgrad.errors import UnsupportedFunctionError
from viewgrad.numpy.masked import MaskedTensor

X = np.array([[1.5, -2.0, 0.5], [3.0, 0.7, -0.1]])
BAD = np.array([[1.5, np.nan, 0.5], [np.inf, 0.7, -0.1]])

# Functions of NumPy's or viewgrad's namespace and an array.
PROGRAMS = {
    "masked_invalid": lambda np, x: np.ma.masked_invalid(x).sum(),
    "mean of an axis": lambda np, x: np.ma.masked_invalid(x).mean(axis=0),
    "masked_where": lambda np, x: (np.ma.masked_where(x > 1, x) ** 2).sum(axis=1),
    "array": lambda np, x: np.ma.array(x, mask=[[0, 1, 0], [0, 0, 1]]).prod(),
    "masked_less": lambda np, x: np.ma.masked_less(x, 0.0) * 2 + x,
    "division": lambda np, x: 1.0 / np.ma.masked_less(x, 0.0),
    "a logarithm outside of its domain": lambda np, x: np.ma.log(x).sum(),
    "a root, and arithmetic": lambda np, x: (np.ma.sqrt(x) + np.ma.masked_greater(x, 2.0)).mean(),
    "std": lambda np, x: np.ma.masked_greater(x, 2.0).std(),
    "var of an axis": lambda np, x: np.ma.masked_greater(x, 2.0).var(axis=1, ddof=1),
    "extremes": lambda np, x: np.ma.masked_inside(x, -0.2, 0.6).min() * np.ma.masked_outside(x, -1, 2).max(axis=0),
    "filled": lambda np, x: np.ma.masked_less(x, 0.0).filled(7.0) * x,
    "compressed": lambda np, x: np.ma.masked_less(x, 0.0).compressed(),
    "average": lambda np, x: np.ma.average(np.ma.masked_less(x, 0.0), weights=[1.0, 2.0, 3.0], axis=1),
    "where": lambda np, x: np.ma.where(x > 0, np.ma.masked_greater(x, 2.0), x * 2),
    "concatenate": lambda np, x: np.ma.concatenate([np.ma.masked_less(x, 0.0), x * 3]).sum(axis=0),
    "selection": lambda np, x: np.ma.masked_less(x, 0.0)[:, 1:].sum(),
    "running sums": lambda np, x: np.ma.masked_less(x, 0.0).cumsum(axis=1),
    "running products": lambda np, x: np.ma.cumprod(np.ma.masked_less(x, 0.0), axis=0),
    "anomalies": lambda np, x: np.ma.masked_less(x, 0.0).anom(axis=1) * np.ma.anomalies(np.ma.masked_less(x, 0.0)),
    "clip": lambda np, x: np.ma.masked_less(x, -1.0).clip(0.0, 1.0),
    "dot": lambda np, x: np.ma.dot(np.ma.masked_less(x, 0.0), np.ma.masked_less(x, 0.0).T),
    "median": lambda np, x: np.ma.median(np.ma.masked_less(x, 0.0)) * np.ma.median(np.ma.masked_less(x, 0.0), axis=0),
    "range": lambda np, x: np.ma.ptp(np.ma.masked_less(x, 0.0), axis=1),
    "fix_invalid": lambda np, x: np.ma.fix_invalid(x, fill_value=2.0),
    "transposed": lambda np, x: np.ma.transpose(np.ma.masked_less(x, 0.0)).flatten(),
    "equality": lambda np, x: x[:, ~(np.ma.masked_less(x, 0.0).var(axis=0) == 0)] * (np.ma.masked_less(x, 0.0) != 0.7),
    "conditions": lambda np, x: np.ma.masked_less(x, 0.0)[(np.ma.masked_less(x, 0.0) > 0.65) & (x < 2) | ~(x < 2.5)],
    "linear algebra": lambda np, x: np.linalg.solve(2 * np.eye(2), np.ma.masked_greater(x, 9.0)) * np.asarray(x),
    "a masked condition": lambda np, x: np.ma.where(np.ma.masked_less(x, 0.0) > 0.65, x, 2 * x),
    "weights of rows": lambda np, x: np.ma.average(np.ma.masked_less(x, 0.0)[:, :2], axis=0, weights=[1.0, 3.0]),
    "the sum of the weights": lambda np, x: np.ma.average(np.ma.masked_less(x, 0.0), axis=0, weights=[1.0, 3.0],
                                                          returned=True)[1] * x,
    "masked weights": lambda np, x: np.ma.average(np.ma.masked_less(x, 0.0), weights=np.ma.masked_less(x, 0.6) ** 2),
    "functions of NumPy": lambda np, x: np.exp(np.ma.masked_greater(x, 2.0)).sum(),
}


def values(result):
    return result.filled(0.0) if hasattr(result, "filled") else result


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_gradients(name):
    program = PROGRAMS[name]
    point = BAD if name.startswith(("masked_invalid", "mean of")) else X
    ours, theirs = program(vnp, vg.Tensor(point, requires_grad=True)), program(np, point)
    if isinstance(ours, MaskedTensor):
        found = np.where(ours.mask, 0.0, ours.data.detach().numpy()), ours.mask
    else:
        found = ours.detach().numpy(), np.zeros(ours.shape, bool)
    wanted = np.ma.filled(theirs, 0.0), np.broadcast_to(np.ma.getmaskarray(theirs), np.shape(theirs))
    np.testing.assert_allclose(found[0], wanted[0], rtol=1e-12)
    np.testing.assert_array_equal(found[1], wanted[1])
    kept = np.isfinite(point)

    def of_finite(x):
        full = vg.where(kept, x, point) if not kept.all() else x
        return values(program(vnp, full))

    assert gradcheck(of_finite, (vg.Tensor(np.where(kept, point, 0.0), requires_grad=True),))


def test_no_gradient_comes_from_below_the_mask():
    x = vg.Tensor([1.0, 0.0, 4.0], requires_grad=True)
    masked = vnp.ma.masked_equal(x, 0.0)
    (1.0 / masked + vnp.ma.log(masked)).sum().backward()
    assert x.grad.tolist() == [0.0, 0.0, -1 / 16 + 1 / 4]


def test_writes():
    x = vg.Tensor([1.0, 2.0, 3.0], requires_grad=True)
    masked = vnp.ma.masked_greater(x * 1.0, 2.5)
    masked[0] = np.ma.masked
    masked[2] = x[1] * 10
    assert masked.mask.tolist() == [True, False, False] and masked[0] is np.ma.masked
    assert vg.autograd.grad(masked.sum(), x)[0].tolist() == [0.0, 11.0, 0.0]


def test_unsupported_functions_of_masked_tensors_are_refused():
    with pytest.raises(UnsupportedFunctionError, match="masked"):
        vnp.ma.unique(vg.Tensor([1.0, 2.0], requires_grad=True))
    masked = vnp.ma.array(vg.Tensor([1.0, 2.0], requires_grad=True), mask=[0, 1])
    for function in (vnp.concatenate, vnp.asarray, vnp.copy):
        with pytest.raises(UnsupportedFunctionError, match="ignores masks"):
            function([masked] if function is vnp.concatenate else masked)
    with pytest.raises(TypeError, match="median"):
        vnp.median(masked)
    assert isinstance(vnp.ma.masked_invalid([1.0, np.nan]), np.ma.MaskedArray)


def test_broadcasting_loses_masks_as_in_numpy():
    def f(v):
        a, b = np.broadcast_arrays(np.ma.asarray(v)[:, None], np.ma.masked_less(v, 1.0), subok=True)
        return (np.ma.asanyarray(a) * b).sum()

    v = np.array([1.5, 0.5, 2.0])
    step = 1e-6 * np.eye(3)
    np.testing.assert_allclose(vg.grad(f)(v), [(f(v + e) - f(v - e)) / 2e-6 for e in step])


ROWS = np.array([[1.0, 2.5, -0.3, 4.0, 0.7], [0.2, -1.1, 0.9, 2.2, 1.6], [3.0, 0.1, 1.2, -0.4, 2.0]])
HIDDEN = np.array([[0, 0, 1, 0, 0], [0, 1, 0, 0, 0], [0, 0, 0, 0, 1]], bool)
CALLS = {
    "rows": {},
    "columns": {"rowvar": False},
    "bias": {"bias": True},
    "ddof": {"ddof": 2},
    "all masked": {"ddof": 5},
    "another": {"y": ROWS[::-1] * 0.5 + ROWS**2},
    "other rows": {"y": ROWS[:1] + 0.5},
}


@pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "2.1.0", reason="NumPy 2.0 divides covariances of masked values otherwise"
)
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("function", ["cov", "corrcoef"])
def test_covariances_match_numpy_and_differences(function, name):
    options = dict(CALLS[name])
    if function == "corrcoef":
        options = {key: value for key, value in options.items() if key in ("rowvar", "y")}
    y = options.pop("y", None)

    def plain(x):
        given = () if y is None else (np.ma.array(y, mask=HIDDEN[: len(y)][::-1]),)
        return getattr(np.ma, function)(np.ma.array(x, mask=HIDDEN), *given, **options)

    def masked(x):
        given = () if y is None else (vnp.ma.array(vg.Tensor(y), mask=HIDDEN[: len(y)][::-1]),)
        return getattr(vnp.ma, function)(vnp.ma.array(x, mask=HIDDEN), *given, **options)

    leaf = vg.Tensor(ROWS, requires_grad=True)
    found, expected = masked(leaf), plain(ROWS.copy())
    np.testing.assert_array_equal(found.mask, np.ma.getmaskarray(expected))
    np.testing.assert_allclose(found.filled(0).detach().numpy(), expected.filled(0), rtol=1e-6, atol=1e-12)
    weights = np.cos(np.arange(expected.size)).reshape(expected.shape)
    gradient = vg.autograd.grad((found.filled(0) * weights).sum(), leaf, allow_unused=True)[0]
    slopes = np.zeros(ROWS.shape)
    for place in np.ndindex(ROWS.shape):
        step = np.zeros(ROWS.shape)
        step[place] = 1e-5
        slopes[place] = ((plain(ROWS + step) - plain(ROWS - step)).filled(0) * weights).sum() / 2e-5
    gradient = np.zeros(ROWS.shape) if gradient is None else gradient.numpy()
    np.testing.assert_allclose(gradient, slopes, rtol=1e-5, atol=1e-6)


def test_the_variance_of_one_variable_is_a_number():
    x = vg.Tensor(ROWS[0], requires_grad=True)
    found = vnp.ma.cov(vnp.ma.array(x, mask=HIDDEN[0]))
    np.testing.assert_allclose(float(found.detach()), np.ma.cov(np.ma.array(ROWS[0], mask=HIDDEN[0])), rtol=1e-6)
    with pytest.raises(ValueError, match="masked"):
        vnp.ma.cov(vnp.ma.array(x, mask=HIDDEN[0]), allow_masked=False)


MASK = np.array([[0, 1, 0], [0, 0, 1]], bool)
MORE = {
    "abs": lambda np, m: np.ma.abs(m),
    "hypot": lambda np, m: np.ma.hypot(m, m * 2.0 + 1.0),
    "arctan2": lambda np, m: np.ma.arctan2(m, m * m + 0.5),
    "arctanh outside of its domain": lambda np, m: np.ma.arctanh(m),
    "remainder": lambda np, m: np.ma.remainder(m, 1.3),
    "hstack": lambda np, m: np.ma.hstack([m, m * 2.0]),
    "vstack": lambda np, m: np.ma.vstack([m, m * 2.0]),
    "stack": lambda np, m: np.ma.stack([m, m * 2.0], axis=1),
    "column_stack": lambda np, m: np.ma.column_stack([m[0], m[1]]),
    "append": lambda np, m: np.ma.append(m, m * 2.0),
    "append along an axis": lambda np, m: np.ma.append(m, m * 2.0, axis=1),
    "diff": lambda np, m: np.ma.diff(m, axis=1),
    "second differences": lambda np, m: np.ma.diff(np.ma.hstack([m, m * m]), n=2),
    "sort": lambda np, m: np.ma.sort(m, axis=1),
    "sort of columns": lambda np, m: np.ma.sort(m, axis=0),
    "outer": lambda np, m: np.ma.outer(m[0], m[1]),
    "masked_values": lambda np, m: np.ma.masked_values(m, 0.7) * 2.0,
    "repeat": lambda np, m: np.ma.repeat(m, 2, axis=1),
    "expand_dims": lambda np, m: np.ma.expand_dims(m, 1),
    "swapaxes": lambda np, m: np.ma.swapaxes(m, 0, 1),
    "diagonal": lambda np, m: np.ma.diagonal(m),
    "amax": lambda np, m: np.ma.amax(m, axis=1),
    "round": lambda np, m: np.ma.round(m, 1) + m,
    "copy": lambda np, m: np.ma.copy(m) * 3.0,
    "take": lambda np, m: np.ma.take(m, [0, 1, 4, 1]),
    "take columns": lambda np, m: np.ma.take(m, [[2, 0], [1, 1]], axis=1),
    "take masked indices": lambda np, m: m.take(np.ma.array([1, 0], mask=[0, 1])),
    "take one": lambda np, m: np.ma.take(m, 0) * m,
    "inner": lambda np, m: np.ma.inner(m, m[0]),
    "innerproduct": lambda np, m: np.ma.innerproduct(m[0], m[1]) * m,
    "trace": lambda np, m: np.ma.trace(m) + m.trace(-1) * m,
    "convolve": lambda np, m: np.ma.convolve(m[1], m[0], "same"),
    "convolve what is known": lambda np, m: np.ma.convolve(m[0], np.array([1.0, 2.0]), propagate_mask=False),
    "correlate": lambda np, m: np.ma.correlate(m[0], m[1], "full"),
    "diag": lambda np, m: np.ma.diag(m[0], 1) + np.ma.diag(np.ma.diag(m[:, :2])).sum(),
    "compress": lambda np, m: np.ma.compress([True, False, True], m, axis=1),
    "compress by masked conditions": lambda np, m: m.compress(np.ma.array([1, 1, 0, 1], mask=[0, 1, 0, 0]) > 0),
    "compress_rows": lambda np, m: np.ma.compress_rows(m) * 2.0,
    "compress_cols": lambda np, m: np.ma.compress_cols(m),
    "compress_rowcols": lambda np, m: np.ma.compress_rowcols(m[:, ::-1][:, :2], 1),
    "mask_rows": lambda np, m: np.ma.mask_rows(m) * 2.0,
    "mask_cols": lambda np, m: np.ma.mask_cols(m),
    "mask_rowcols": lambda np, m: np.ma.mask_rowcols(np.ma.vstack([m, m + 1.0])[2:], 0),
    "ediff1d": lambda np, m: np.ma.ediff1d(m, to_begin=3.0, to_end=m[0, :2]),
    "vander": lambda np, m: np.ma.vander(m[0], 3),
    "polyfit": lambda np, m: np.ma.polyfit(np.arange(4.0), np.ma.array(np.ma.vstack([m, m])[:, :2], copy=True), 1),
    "weighted polyfit": lambda np, m: np.ma.polyfit(np.array([0.0, 1.0, 3.0]), m[0] * m[0], 1, w=[1.0, 2.0, 0.5]),
    "choose": lambda np, m: np.ma.choose([0, 1, 1], [m[0], m[1]]),
    "resize": lambda np, m: np.ma.resize(m, (3, 4)),
    "hsplit": lambda np, m: np.ma.hsplit(m, 3)[2],
    "apply_along_axis": lambda np, m: np.ma.apply_along_axis(lambda row: row.sum() * row[0], 1, m),
    "apply_along_axis, rows": lambda np, m: np.ma.apply_along_axis(lambda row: row * 2.0, 0, m),
    "apply_over_axes": lambda np, m: np.ma.apply_over_axes(np.ma.sum, m, [0, 1]),
    "around": lambda np, m: np.ma.around(m, 1) + m,
    "put": lambda np, m: _put(np, m.copy()),
    "assigned masks": lambda np, m: _with_mask(np, m.copy()),
    "conditions": lambda np, m: m[m > 0.6] * 2.0,
    "elements": lambda np, m: np.ma.array([each for each in m.flat if each is not np.ma.masked]) * m.tolist()[0][0],
    "greatest": lambda np, m: m * m[0][m[0].argmax()] + (m.any() and not m.all()),
    "nonzero": lambda np, m: m[m.nonzero()],
    "rounded": lambda np, m: m.round(1) + (m + 0.05) // 2.0 + m % 2.0 + 3.1 % m,
    "exchanged": lambda np, m: m.swapaxes(0, 1) * 2.0,
    "joined in a list": lambda np, m: np.ma.array([m, m * m]).mean(axis=1),
    # NumPy's own functions, those that ignore masks of arrays without masked elements
    "numpy.asarray": lambda np, m: np.asarray(m[:, :1]) * 2.0 + np.asanyarray(m),
    "numpy.concatenate": lambda np, m: np.concatenate([m[:, :1], m[:, :1] * 2.0]),
    "numpy.stack": lambda np, m: np.stack([m[:, 0], m[:, 0]]),
    "numpy.dot": lambda np, m: np.dot(m[:, :1], m[:, :1].T),
    "numpy.outer": lambda np, m: np.outer(m[:, 0], m[1, :2]),
    "numpy.where": lambda np, m: np.where(m[:, :1] > -5.0, m[:, :1], 1.0),
    "numpy.interp": lambda np, m: np.interp([0.5, 0.7], [0.0, 1.0], m[:, 0]),
    "numpy.average": lambda np, m: np.average(m, weights=np.arange(6.0).reshape(2, 3)) * m,
    "numpy.cumsum": lambda np, m: np.cumsum(m, axis=1) + np.clip(m, 0.0, 2.0) + np.mean(m) + np.max(m) + np.var(m),
    "numpy.diff": lambda np, m: np.diff(m, axis=1),
}


def _with_mask(np, m):
    m.mask = [[1, 0, 0], [0, 0, 0]]
    m[1, 2] = np.ma.masked
    return m


def _put(np, m):
    np.ma.put(m, [0, 4], m[1, 1:])
    np.ma.putmask(m, [[False, False, False], [True, False, False]], 2.5)
    return m


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MORE)
def test_more_functions_match_numpy_and_differences(name):
    program = MORE[name]
    leaf = vg.Tensor(X, requires_grad=True)
    found, expected = program(vnp, vnp.ma.array(leaf, mask=MASK)), program(np, np.ma.array(X, mask=MASK))
    if isinstance(found, MaskedTensor):
        np.testing.assert_array_equal(found.mask, np.ma.getmaskarray(expected))
    else:
        assert not np.ma.is_masked(expected)
    found_values = np.ma.filled(values(found).detach().numpy(), 0)
    np.testing.assert_allclose(found_values, values(expected), rtol=1e-12, atol=1e-14)
    weights = np.cos(np.arange(expected.size)).reshape(expected.shape)
    gradient = vg.autograd.grad((values(found) * weights).sum(), leaf)[0].numpy()
    slopes = np.zeros(X.shape)
    for place in np.ndindex(X.shape):
        step = np.zeros(X.shape)
        step[place] = 1e-6
        up, down = (values(program(np, np.ma.array(X + sign * step, mask=MASK))) for sign in (1, -1))
        slopes[place] = ((up - down) * weights).sum() / 2e-6
    np.testing.assert_allclose(gradient, slopes, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(
    "name", ["argmax", "argmin", "nonzero", "any", "shape", "size", "notmasked_edges", "clump_unmasked"]
)
def test_results_without_a_derivative_match_numpy(name):
    row = (lambda a: a[0]) if name == "clump_unmasked" else (lambda a: a)
    found = getattr(vnp.ma, name)(row(vnp.ma.array(vg.Tensor(X, requires_grad=True), mask=MASK)))
    expected = getattr(np.ma, name)(row(np.ma.array(X, mask=MASK)))
    assert repr(found) == repr(expected)


def test_masked_tensors_are_written_in_place():
    def program(np, x):
        values = x * 1.0
        masked = np.ma.masked_less(values, 0.0, copy=False)
        alias = masked
        masked += 1.0
        masked *= np.ma.masked_greater(x, 2.5)
        return alias.filled(0.0) + values

    x = vg.Tensor(X, requires_grad=True)
    assert np.allclose(program(vnp, x).detach(), program(np, X))
    assert gradcheck(lambda x: program(vnp, x), x)


def test_masked_tensors_compare_by_elements():
    masked = np.ma.masked_less
    for one, other in ((X, X), (X, X[::-1])):
        for compare in (lambda a, b: a == b, lambda a, b: a != b):
            ours = compare(vnp.ma.masked_less(vg.Tensor(one, requires_grad=True), 0.0), vnp.ma.masked_less(other, 0.6))
            theirs = compare(masked(one, 0.0), masked(other, 0.6))
            assert np.array_equal(ours.data, theirs.data) and np.array_equal(ours.mask, theirs.mask)
    with pytest.raises(ValueError, match="ambiguous"):
        bool(vnp.ma.masked_less(vg.Tensor(X, requires_grad=True), 0.0))


def test_functions_of_numpy_leave_masked_operands_to_their_own_rules():
    x = vg.Tensor(X, requires_grad=True)
    masked = vnp.ma.masked_less(x, 0.0)
    product = np.multiply(x, masked)
    assert isinstance(product, MaskedTensor) and np.array_equal(product.mask, X < 0)
    whole = vnp.ma.array(x)
    assert np.allclose((x @ whole.T).detach(), X @ X.T)
    assert np.allclose(vg.Tensor(np.eye(2)).dot(whole).detach(), X)
    with pytest.raises(UnsupportedFunctionError, match="ignores masks"):
        x @ masked.T


OPERATE = [
    lambda x, m: x * m, lambda x, m: m * x, lambda x, m: m - x, lambda x, m: x - m, lambda x, m: m / x,
    lambda x, m: x / m, lambda x, m: m**x, lambda x, m: m % x, lambda x, m: abs(m) + np.sin(x) - m,
    lambda x, m: np.ma.where(m > x, m * x, x * x), lambda x, m: np.subtract(m, x), lambda x, m: np.arctan2(x, m),
    lambda x, m: (m[::2] - x[::2]) * (x[1:] * m[::-2]), lambda x, m: np.ma.concatenate([m, x]) ** 2,
    lambda x, m: (m * 2.0 - x[:, None]) ** 3, lambda x, m: np.ma.stack([m, x * m]).mean(0) * x,
    lambda x, m: np.ma.masked_where(m.filled(0) > 2, m) * x - np.ma.array(np.ones(3), mask=[0, 1, 0]),
]  # fmt: skip


@pytest.mark.parametrize("origin", ["argument", "captured", "created", "of masked_invalid"])
@pytest.mark.parametrize("operate", OPERATE)
def test_operators_of_plain_masked_arrays_in_adopted_code(operate, origin):
    masked = np.ma.array([1.0, np.nan, 3.0], mask=[False, True, False])

    def f(x, given):
        m = {
            "argument": given, "captured": masked, "created": np.ma.array(np.array([1.0, np.nan, 3.0]), mask=[0, 1, 0]),
            "of masked_invalid": np.ma.masked_invalid(np.array([1.0, np.nan, 3.0])),
        }[origin]  # fmt: skip
        return (operate(x, m) * np.cos(x[0])).sum()

    x, h = np.array([1.3, 2.0, 3.5]), 1e-6
    value, gradient = vg.value_and_grad(f)(x, masked)
    assert value == pytest.approx(f(x, masked))
    steps = h * np.eye(3)
    np.testing.assert_allclose(gradient, [(f(x + s, masked) - f(x - s, masked)) / (2 * h) for s in steps], 1e-6, 1e-7)
    assert masked.mask.tolist() == [False, True, False]


def test_adopted_code_masks_elements_of_the_users_arrays():
    def f(x, m):
        assert isinstance(m, np.ma.MaskedArray) and isinstance(m, np.ndarray) and type(m).__name__ == "MaskedArray"
        m[1] = np.ma.masked
        m[0] = 7.0
        return (m * x).sum()

    for mask in (np.ma.nomask, [False, False, True]):
        theirs, ours = (np.ma.array([1.0, 2.0, 3.0], mask=mask) for _ in range(2))
        f(1.0, theirs)
        assert vg.adopt(f)(1.0, ours) == theirs.sum()
        assert ours.mask.tolist() == theirs.mask.tolist() and ours.data.tolist() == theirs.data.tolist()


class Readings(np.ma.MaskedArray):
    """A masked array with a unit."""

    def __new__(cls, data, unit="m"):
        made = np.ma.MaskedArray.__new__(cls, data, mask=np.asarray(data) > 2.0)
        made.unit = unit
        return made


def test_classes_derived_from_masked_arrays():
    def f(x):
        readings = Readings(np.array([1.0, 2.0, 3.0]), "s")
        other = np.ma.MaskedArray.__new__(Readings, np.zeros(3), mask=[1, 0, 0])
        assert readings.unit == "s" and isinstance(readings, np.ma.MaskedArray) and isinstance(other, Readings)
        return (x * (readings + other).filled(4.0)).sum()

    x = np.array([0.5, 1.5, 2.5])
    value, gradient = vg.value_and_grad(f)(x)
    assert value == pytest.approx(f(x))
    assert gradient.tolist() == [4.0, 2.0, 4.0]


def test_questions_about_masks_lose_no_history():
    def f(x):
        m = np.ma.array(x, mask=[0, 1, 0])
        assert np.ma.is_masked(m) and not np.ma.is_masked(x) and not np.ma.is_masked([x, x])
        assert not np.ma.getmask([x]) and not np.ma.getmaskarray([x, x]).any() and np.ma.count_masked(m) == 1
        return m.sum()

    assert vg.grad(f)(np.ones(3)).tolist() == [1.0, 0.0, 1.0]


def test_masked_arrays_of_adopted_code_become_numpys():
    masked = np.ma.array([1.0, 2.0], mask=[False, True])

    def f(x):
        assert repr(pickle.loads(pickle.dumps(masked))) == repr(masked)
        return pickle.dumps(masked), copy.deepcopy(masked), masked.view(np.ndarray), np.ma.array(x)

    dumped, copied, values, created = vg.adopt(f)(np.ones(2))
    loaded = pickle.loads(dumped)
    assert type(loaded) is np.ma.MaskedArray and repr(loaded) == repr(copied) == repr(masked)
    assert type(values) is np.ndarray and values.tolist() == [1.0, 2.0]
    assert isinstance(created, np.ma.MaskedArray) and isinstance(created * copied, np.ma.MaskedArray)


def test_masked_arrays_share_the_memory_of_arrays_of_adopted_code():
    def f(x):
        t = np.zeros(3)
        m, same = np.ma.masked_array(t, mask=[0, 1, 0]), np.ma.asarray(t)
        before = (x * t).sum()
        m[0] = 5.0
        same += 1.0
        return before + (x * t).sum() + (np.ones((3, 3)).dot(np.ma.array([1.0, 2.0, 3.0])) * x).sum()

    assert vg.value_and_grad(f)(np.ones(3))[0] == f(np.ones(3))
    assert vg.grad(f)(np.ones(3)).tolist() == [12.0, 7.0, 7.0]


@pytest.mark.parametrize("operate", [lambda x, m: m * x, lambda x, m: m - x, lambda x, m: m / x])
def test_operators_of_plain_masked_arrays_name_the_functions_to_use(operate):
    masked = np.ma.array([1.0, np.nan, 3.0], mask=[False, True, False])
    with pytest.raises(vg.errors.DetachedConversionError, match=r"use the function of viewgrad\.numpy\.ma"):
        vg.func.grad(lambda x: operate(x, masked).sum(), adopt=False)(np.array([1.0, 2.0, 3.0]))
    with pytest.raises(vg.errors.UnsupportedTypeError, match=r"or use the function of viewgrad\.numpy\.ma"):
        vg.Tensor(masked)


@pytest.mark.parametrize("is_reflected", [False, True])
def test_functions_of_tensors_and_plain_masked_arrays(is_reflected):
    masked = np.ma.array([1.0, np.nan, 3.0], mask=[False, True, False])

    def f(x):
        return (np.ma.multiply(masked, x) if is_reflected else np.ma.multiply(x, masked)).sum()

    x = np.array([1.0, 2.0, 3.0])
    value, gradient = vg.value_and_grad(f)(x)
    assert value == f(x) and gradient.tolist() == [1.0, 0.0, 3.0]
