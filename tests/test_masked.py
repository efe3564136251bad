"""`numpy.ma` of tensors with a history: NumPy's values and masks, and zero gradients of masked values."""

from __future__ import annotations

import numpy as np
import pytest

import viewgrad as vg
import viewgrad.numpy as vnp
from viewgrad.autograd import gradcheck
from viewgrad.errors import UnsupportedFunctionError
from viewgrad.numpy.masked import MaskedTensor

X = np.array([[1.5, -2.0, 0.5], [3.0, 0.7, -0.1]])
BAD = np.array([[1.5, np.nan, 0.5], [np.inf, 0.7, -0.1]])

# Of NumPy's namespace or of viewgrad's, and an array.
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
        vnp.ma.polyfit(vg.Tensor([1.0, 2.0], requires_grad=True), [1.0, 2.0], 1)
    assert isinstance(vnp.ma.masked_invalid([1.0, np.nan]), np.ma.MaskedArray)


def test_broadcasting_loses_masks_as_in_numpy():
    def f(v):
        a, b = np.broadcast_arrays(np.ma.asarray(v)[:, None], np.ma.masked_less(v, 1.0), subok=True)
        return (np.ma.asanyarray(a) * b).sum()

    v = np.array([1.5, 0.5, 2.0])
    step = 1e-6 * np.eye(3)
    np.testing.assert_allclose(vg.grad(f)(v), [(f(v + e) - f(v - e)) / 2e-6 for e in step])
