"""Tensors in xarray keep their history, or are refused; pandas accepts only values, with an error that says so."""

from __future__ import annotations

import numpy as np
import pytest

import viewgrad as vg
from viewgrad.autograd import gradcheck
from viewgrad.errors import AutogradError

RNG = np.random.default_rng(0)


def leaf(*shape):
    return vg.Tensor(RNG.normal(size=shape), requires_grad=True)


def array_of(x):
    xarray = pytest.importorskip("xarray")
    return xarray.DataArray(x, dims=("t", "s"), coords={"t": [0.0, 1.0], "s": [0.0, 1.0, 2.5]})


# Each returns a DataArray with dimensions.
KEPT = {
    "arithmetic": lambda a, xr: a * 2 + a.sel(t=0.0) / (a * a + 1),
    "functions of NumPy": lambda a, xr: np.exp(a) * np.maximum(a, 0.1),
    "reductions": lambda a, xr: a.sum("t") * a.mean("t") + a.std("t") * a.prod("t") + a.max("t") + a.median("t"),
    "selection": lambda a, xr: a.sel(s=1.0) * a.isel(s=slice(1, 3)).sum("s") * a[:, 0],
    "where": lambda a, xr: a.where(a > 0, 0.0) + a.clip(-0.5, 0.5) + a.fillna(0.0),
    "alignment": lambda a, xr: a * a.isel(s=slice(1, 3)),
    "broadcasting": lambda a, xr: a * xr.DataArray([1.0, 2.0], dims="new"),
    "concatenation": lambda a, xr: xr.concat([a, a * a], "t"),
    "transposition": lambda a, xr: a.transpose("s", "t").roll(s=1) * a.sortby("s", ascending=False),
    "differences": lambda a, xr: a.diff("s") + a.cumsum("s").isel(s=slice(0, 2)).data.sum(),
    "calculus": lambda a, xr: a.integrate("s") * a.differentiate("s"),
    "polynomials": lambda a, xr: a.polyfit("s", 1).polyfit_coefficients,
    "groups": lambda a, xr: a.assign_coords(g=("s", [0, 0, 1])).groupby("g").mean(),
    "rolling windows": lambda a, xr: a.rolling(s=2).mean().fillna(0.0) + a.rolling(s=2).construct("w").sum("w"),
    "weights": lambda a, xr: a.weighted(xr.DataArray([1.0, 2.0, 3.0], dims="s")).mean("s"),
    "partial products": lambda a, xr: a.dot(a, dim="s"),
    "a ufunc": lambda a, xr: xr.apply_ufunc(vg.sin, a),
    "a data set": lambda a, xr: xr.Dataset({"a": a, "b": a * 2}).sum("t").to_array(),
    "missing labels": lambda a, xr: a.reindex(s=[0.0, 9.0]).fillna(1.0),
    "writes": lambda a, xr: written(a * 1.0),
}


def written(a):
    a.loc[{"t": 0.0}] = a.sel(t=1.0) * 2
    a[{"t": 1, "s": 0}] = 5.0
    return a


@pytest.mark.parametrize("name", KEPT)
def test_a_data_array_keeps_the_history(name):
    xarray = pytest.importorskip("xarray")
    x = leaf(2, 3)
    f = lambda x: KEPT[name](array_of(x), xarray).data
    assert type(f(x)) is vg.Tensor and f(x).requires_grad
    assert gradcheck(f, (x,))
    plain = KEPT[name](array_of(x.detach().numpy().copy()), xarray)
    np.testing.assert_allclose(np.asarray(f(x).detach()), plain.data, rtol=1e-12)


REFUSED = {
    "results without dimensions": lambda a: a.mean(),
    "whole products": lambda a: a.dot(a),
    "values": lambda a: a.values,
    "to_numpy": lambda a: a.to_numpy(),
    "to_pandas": lambda a: a.to_pandas(),
    "interpolation": lambda a: a.interp(s=0.5),
    "items": lambda a: a.sum().item(),
}


@pytest.mark.parametrize("name", REFUSED)
def test_conversions_to_plain_arrays_are_refused(name):
    a = array_of(leaf(2, 3))
    with pytest.raises(AutogradError, match="plain array"):
        REFUSED[name](a)
    assert a.data.mean().requires_grad  # the tensor itself has them


def test_a_gradient_through_xarray():
    x = leaf(2, 3)
    a = array_of(x)
    loss = ((a - a.mean("s")) ** 2).data.mean()
    loss.backward()
    v = x.detach().numpy()
    np.testing.assert_allclose(x.grad.numpy(), 2 * (v - v.mean(1, keepdims=True)) / 6, rtol=1e-12)


PANDAS = {
    "a series": lambda pd, x: pd.Series(x),
    "a frame": lambda pd, x: pd.DataFrame({"a": x}),
    "arithmetic": lambda pd, x: pd.Series([1.0, 2.0, 3.0]) * x,
    "arithmetic, reflected": lambda pd, x: x * pd.Series([1.0, 2.0, 3.0]),
    "functions of NumPy": lambda pd, x: np.add(pd.Series([1.0, 2.0, 3.0]), x),
    "a new column": lambda pd, x: pd.DataFrame({"a": [1.0, 2.0, 3.0]}).assign(b=x),
    "products": lambda pd, x: pd.DataFrame({"a": [1.0, 2.0, 3.0]}).T @ x,
}


@pytest.mark.parametrize("name", PANDAS)
def test_pandas_refuses_a_history(name):
    pandas = pytest.importorskip("pandas")
    with pytest.raises(AutogradError, match=r"plain array.*pandas stores plain numbers: compute with arrays"):
        PANDAS[name](pandas, leaf(3))


def test_pandas_refuses_numbers_with_a_history():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.0, 2.0, 3.0]})
    with pytest.raises(AutogradError, match="pandas stores plain numbers"):
        vg.grad(lambda x: (x * frame["a"]).sum())(2.0)


def test_values_of_pandas_are_arrays():
    pandas = pytest.importorskip("pandas")
    x, series = leaf(3), pandas.Series([1.0, 2.0, 3.0])
    (slope,) = vg.autograd.grad((x * series.to_numpy()).sum() + x[(series > 1).to_numpy()].sum(), x)
    assert slope.tolist() == [1.0, 3.0, 4.0]
    assert vg.Tensor(series).tolist() == [1.0, 2.0, 3.0]
    assert pandas.Series(x.detach()).tolist() == x.detach().tolist()


def of_frame(pandas):
    return pandas.DataFrame({"t": [0.0, 1.0, 2.5], "v": [1.0, 3.0, -1.0]}, index=[7, 8, 9])


# Functions of NumPy convert series, frames and data arrays, and so do assignments.
CONVERTED = {
    "interpolation": lambda f, a, x: np.interp(x, f["t"], f["v"]),
    "a product of vectors": lambda f, a, x: np.dot(f["v"], np.arange(3.0) * x),
    "a product with a matrix": lambda f, a, x: np.einsum("ij,i->", f, np.arange(3.0) * x),
    "a polynomial": lambda f, a, x: np.polyval(f["v"], x),
    "concatenation": lambda f, a, x: np.concatenate([f["v"], np.ones(2) * x, a]).sum(),
    "a choice": lambda f, a, x: np.where(a > 1.0, np.arange(3.0) * x, 0.0).sum(),
    "an assigned series": lambda f, a, x: stored(f["v"], (3,), x),
    "an assigned frame": lambda f, a, x: stored(f, (3, 2), x),
    "an assigned data array": lambda f, a, x: stored(a, (3,), x),
}


def stored(values, shape, x):
    y = np.zeros(shape)
    y[...] = values
    y[1:] = values[1:]
    return (y * np.arange(1.0, y.size + 1).reshape(shape) * x).sum()


@pytest.mark.parametrize("name", CONVERTED)
def test_plain_series_and_data_arrays_are_converted(name):
    pandas, xarray = pytest.importorskip("pandas"), pytest.importorskip("xarray")
    frame, array = of_frame(pandas), xarray.DataArray([1.0, 2.0, 4.0], dims="t")
    f, h = lambda x: CONVERTED[name](frame, array, x), 1e-6
    value, slope = vg.value_and_grad(f)(1.3)
    assert (value, slope) == pytest.approx((f(1.3), (f(1.3 + h) - f(1.3 - h)) / (2 * h)))


def test_augmented_assignments_of_a_series_do_not_leave_the_array_unwritten():
    series = of_frame(pytest.importorskip("pandas"))["v"]
    y = vg.zeros(3)
    with pytest.raises(TypeError, match="returned NotImplemented"):
        y += series
