"""Methods of masked tensors agree with `numpy.ma.MaskedArray`, including views and writes."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import viewgrad as vg
import viewgrad.numpy as vnp
from viewgrad.errors import UnsupportedFunctionError
from viewgrad.numpy.masked import MaskedTensor

X = np.array([[1.5, -2.0, 0.5, 2.5], [3.0, 0.7, -0.1, 1.2], [0.2, 1.1, 4.0, -0.6]])
MASK = np.array([[0, 1, 0, 0], [0, 0, 1, 0], [1, 0, 0, 0]], bool)
# Properties of NumPy's memory, and arrays of other dtypes.
MISSING = {
    "base", "ctypes", "data", "flags", "strides", "byteswap", "getfield", "setfield", "setflags", "tobytes", "tofile",
    "dump", "dumps", "toflex", "torecords", "recordmask", "ids", "iscontiguous", "device", "to_device", "get_imag",
    "get_real", "choose",
}  # fmt: skip


def test_masked_tensors_have_the_methods_of_masked_arrays():
    names = {name for name in dir(np.ma.MaskedArray) if not name.startswith("_")}
    names -= {"itemset", "newbyteorder", "tostring"}  # NumPy 2.0 keeps them for their error messages
    made = vnp.ma.array(vg.Tensor(X, requires_grad=True), mask=MASK.copy())
    assert names - set(dir(made)) <= MISSING


def assigned(m, method, *args, **kwargs):
    m = m.copy()
    getattr(m, method)(*args, **kwargs)
    return m


def hardened(np, m):
    m = m.copy().harden_mask()
    m[0] = 7.0
    m[1] = np.ma.array([1.0, 2.0, 3.0, 4.0], mask=[0, 1, 0, 0])
    row = m[2].copy().harden_mask()
    row.put([0, 1], [5.0, 6.0])
    m.mask = False
    return m * row


def softened(np, m):
    m = m.copy().harden_mask()
    m[0, 1] = 3.0
    m.soften_mask()
    m[2, 0] = 9.0
    return m


PROGRAMS = {
    "sort": lambda np, m: assigned(m, "sort"),
    "sort of columns": lambda np, m: assigned(m, "sort", 0),
    "sort, masked ones first": lambda np, m: assigned(m, "sort", endwith=False),
    "sort by a fill value": lambda np, m: assigned(m, "sort", axis=1, fill_value=1.0),
    "sort of all": lambda np, m: np.ma.sort(m, axis=None),
    "repeat": lambda np, m: m.repeat(2) + m.repeat([1, 2, 1, 0], axis=1).sum(),
    "diagonal": lambda np, m: m.diagonal(1),
    "fill": lambda np, m: assigned(m, "fill", 2.0),
    "put": lambda np, m: assigned(m, "put", [0, 1, 6], np.ma.array([5.0, 6.0, 7.0], mask=[1, 0, 0])),
    "conj": lambda np, m: m.conj() * m.conjugate(),
    "real": lambda np, m: (m * (1 + 2j)).real + (m * (1 + 2j)).imag,
    "variance of complex numbers": lambda np, m: (m * (1 + 2j)).var(axis=0),
    "variance by a mean": lambda np, m: m.var(axis=0, mean=m.mean(axis=0, keepdims=True)),
    "matrix transpose": lambda np, m: m.mT * 2.0,
    "product": lambda np, m: m.product(axis=1),
    "positional options": lambda np, m: m.sum(0, np.float64, None, True) * m.mean(1, None, None, True),
    "a dtype": lambda np, m: m.sum(axis=0, dtype=np.float32) * m.cumsum(1, np.float64),
    "extremes": lambda np, m: m.max(0, None, 10.0) * m.min(0, fill_value=-10.0) + m.ptp(0),
    "strict products": lambda np, m: np.ma.dot(m, m.T, strict=True),
    "signs": lambda np, m: +m - (-m),
    "divmod": lambda np, m: divmod(m, 0.37)[1] + divmod(3.71, m)[1],
    "hard masks": hardened,
    "soft masks": softened,
    "copies": lambda np, m: copy.copy(m) * copy.deepcopy(m),
    "fortran order": lambda np, m: m.ravel("F") * m.reshape((12,), order="F") + m.flatten("F"),
    "keep_mask": lambda np, m: np.ma.array(m, mask=[[0, 0, 0, 1]] * 3, keep_mask=False),
    "ndmin": lambda np, m: np.ma.array(m, ndmin=3) * 2.0,
    "default fill value": lambda np, m: np.ma.array([1, 2], mask=[0, 1]).filled() * m[0, 0],
    "fill values": lambda np, m: np.ma.masked_greater(np.ma.array(m, fill_value=3.0), 2.0).filled() * 1.0,
    "an output": lambda np, m: _with_output(np, m),
    "compared": lambda np, m: m * (1.0 + (8.0 in m)),
    "searched": lambda np, m: m[0] * np.ma.array([1.0, 2.0, 3.0]).searchsorted(2.5),
    "a view of the values": lambda np, m: m[:, 3].view(np.ndarray) * 2.0,
}


def _with_output(np, m):
    made = m.copy()[0]
    m.sum(axis=0, out=made)
    return made * 2.0


# Aliasing: writes to a view or to a result, and the arrays that they change.
def views(np, x):
    m = np.ma.array(x * 1.0, mask=MASK.copy())
    row, column, flat, turned = m[0], m[:, 1], m.reshape(-1), m.T
    row[3] = np.ma.masked
    column[0] = 9.0
    flat[10] = np.ma.masked
    turned[0, 1] = 5.0
    m.swapaxes(0, 1)[3, 1] = np.ma.masked
    return m


def given_masks(np, x):
    hidden = MASK.copy()
    m = np.ma.array(x, mask=hidden)
    m[1, 1] = np.ma.masked
    return m.filled(0.0) * hidden


def of_no_mask(np, x):
    m = np.ma.array(x * 1.0)
    row = m[0]
    row[1] = np.ma.masked
    m[1, 1] = np.ma.masked
    m[1][2] = np.ma.masked
    return m


def copies(np, x):
    values = x * 1.0
    made = [
        np.ma.masked_where(values > 1, values), np.ma.masked_less(values, 0.0), np.ma.masked_invalid(values),
        np.ma.array(values, mask=MASK.copy(), copy=True), np.ma.masked_values(values, 0.7), np.ma.fix_invalid(values),
    ]  # fmt: skip
    for each in made:
        each[0, 0] = 100.0
    shared = np.ma.array(values, mask=MASK.copy()), np.ma.masked_less(values, 0.0, copy=False)
    shared[0][0, 2] = 50.0
    shared[1][2, 2] = 60.0
    return np.ma.array(values)


def masks(np, x):
    m = np.ma.array(x * 1.0, mask=MASK.copy())
    row = m[0]
    m.mask = [[1, 0, 0, 0]] * 3
    row.unshare_mask()
    row[1] = np.ma.masked
    return m * row.sum()


ALIASING = {each.__name__: each for each in (views, given_masks, of_no_mask, copies, masks)}


def values(found):
    return found.filled(0.0) if hasattr(found, "filled") else found


def compare(program, of_masked, point):
    def make(np, x):
        return program(np, np.ma.array(x, mask=MASK.copy()) if of_masked else x)

    leaf = vg.Tensor(point, requires_grad=True)
    found, expected = make(vnp, leaf), make(np, point.copy())
    if isinstance(found, MaskedTensor):
        np.testing.assert_array_equal(found.mask, np.ma.getmaskarray(expected))
    np.testing.assert_allclose(values(found).detach().numpy(), values(expected), rtol=1e-6, atol=1e-12)
    weights = np.cos(np.arange(np.size(expected))).reshape(np.shape(expected))

    def total(x, library):
        return (values(make(library, x)) * weights).sum()

    gradient = vg.autograd.grad((values(found) * weights).real.sum(), leaf)[0].numpy()
    slopes = np.zeros(point.shape)
    for place in np.ndindex(point.shape):
        step = np.zeros(point.shape)
        step[place] = 1e-6
        slopes[place] = (total(point + step, np) - total(point - step, np)).real / 2e-6
    np.testing.assert_allclose(gradient, slopes, rtol=1e-5, atol=1e-4 if "dtype" in str(program) else 1e-6)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", PROGRAMS)
def test_methods_match_numpy_and_differences(name):
    if name == "a dtype":
        leaf = vg.Tensor(X, requires_grad=True)
        found, expected = (PROGRAMS[name](lib, lib.ma.array(x, mask=MASK.copy())) for lib, x in ((vnp, leaf), (np, X)))
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found.filled(0).detach(), expected.filled(0), rtol=1e-5)
        return
    compare(PROGRAMS[name], True, X)


@pytest.mark.parametrize("name", ALIASING)
def test_writes_reach_the_arrays_that_share_memory(name):
    compare(ALIASING[name], False, X)


def test_masked_elements_are_not_numbers():
    m = vnp.ma.array(vg.Tensor(X, requires_grad=True), mask=MASK.copy())
    assert vg.grad(lambda x: np.ma.array(x, mask=MASK.copy()).item(0) ** 2)(X)[0, 0] == 2 * X[0, 0]
    with pytest.raises(UnsupportedFunctionError, match="filled"):
        m.item(1)
    with pytest.raises(UnsupportedFunctionError, match="dtype"):
        m.view(np.int64)
    with pytest.raises(ValueError, match="resize"):
        m.resize((4, 3))
