"""NumPy's functions and ufuncs on tensors: `out=`, `where=`, `dtype=`, methods of ufuncs, and errors."""

import inspect

import numpy as np
import pytest

import viewgrad as vg
import viewgrad.numpy as vnp
from viewgrad.autograd import grad, gradcheck
from viewgrad.errors import UnsupportedFunctionError
from viewgrad.operators.define import OPERATORS
from viewgrad.operators.numpy_api.dispatch import array_function


@pytest.fixture
def x():
    return vg.Tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True)


def test_names_and_positions_match_numpy(x):
    a = x.detach().numpy()
    for result, wanted in [
        (np.sum(a=x, axis=0), a.sum(axis=0)),
        (np.sum(x, 1), a.sum(1)),
        (np.sum(x, axis=0, keepdims=True), a.sum(axis=0, keepdims=True)),
        (np.mean(x, (0, 1)), a.mean()),
        (np.std(x, axis=1, ddof=1), a.std(axis=1, ddof=1)),
        (np.var(x, 1, None, None, 1), a.var(1, ddof=1)),
        (np.clip(x, 2, 5), a.clip(2, 5)),
        (np.clip(x, a_min=None, a_max=3.0), a.clip(max=3)),
        (np.clip(x, min=2.0) if np.lib.NumpyVersion(np.__version__) >= "2.1.0" else x.clip(2), a.clip(2)),
        (np.round(x / 3, 1), np.round(a / 3, 1)),
        (np.max(x, axis=1), a.max(axis=1)),
        (np.concatenate((x, x), axis=1), np.concatenate((a, a), axis=1)),
        (np.concatenate((x, a), 1), np.concatenate((a, a), axis=1)),
        (np.stack(arrays=[x, x]), np.stack([a, a])),
        (np.where(x > 2, x, -x), np.where(a > 2, a, -a)),
        (np.take(x, [0, 2], axis=1), a.take([0, 2], axis=1)),
        (np.sort(x, axis=0, kind="stable"), np.sort(a, axis=0)),
        (np.tensordot(x, x, axes=([0], [0])), np.tensordot(a, a, axes=([0], [0]))),
        (np.einsum("ij,kj->ik", x, x), a @ a.T),
        (np.einsum("ij,kj", x, x, optimize=True), a @ a.T),
        (np.linalg.norm(x, axis=1), np.linalg.norm(a, axis=1)),
        (np.linalg.norm(x, ord="fro"), np.linalg.norm(a)),
        (np.cumsum(x, axis=1), a.cumsum(axis=1)),
        (np.flip(x, 0), a[::-1]),
        (np.pad(x, ((1, 0), (0, 2)), constant_values=7.0), np.pad(a, ((1, 0), (0, 2)), constant_values=7.0)),
        (np.pad(x, 1, mode="reflect"), np.pad(a, 1, mode="reflect")),
        (np.outer(a=x[0], b=x[1]), np.outer(a[0], a[1])),
        (np.repeat(x, 2, axis=0), a.repeat(2, axis=0)),
    ]:
        assert isinstance(result, vg.Tensor)
        assert result.requires_grad
        np.testing.assert_allclose(result.detach().numpy(), wanted)


def test_arrays_and_numbers_beside_tensors(x):
    a = x.detach().numpy()
    for result in (a * x, np.multiply(a, x), x * a, np.float64(2.0) * x, a @ x.T, 2 - x, 2 / x, 2**x, a - x):
        assert isinstance(result, vg.Tensor)
        assert result.requires_grad
    assert (np.float64(2.0) * x).tolist() == (2 * a).tolist()
    assert (a - x).tolist() == (a - a).tolist()


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_python_numbers_keep_the_dtype(dtype):
    x = vg.Tensor([1.5, 2.5], dtype=dtype, requires_grad=True)
    for result in (x * 2.0, 2 - x, x**2, x**1.5, x / 3, x.clip(2.0, None), np.maximum(x, 2.0), np.where(x > 2, x, 0.0),
                   x.lerp(x, 0.3), x.masked_fill(x > 2, 1.0), x.mean(), x.std(), x.softplus(), x.sigmoid(), x.norm(),
                   x.logsumexp(), x.prod(), x.cumprod(), x.tanh(), np.hypot(x, 1.0)):  # fmt: skip
        assert result.dtype == dtype
        (g,) = grad(result.sum(), x)
        assert g.dtype == dtype


# -- out= and where= ---------------------------------------------------------------------------------------------------


def test_out_is_written_and_differentiable(x):
    out = vg.zeros(2, 3)
    assert np.multiply(x, x, out=out) is out
    total = vg.zeros(3)
    assert np.sum(out, axis=0, out=total) is total
    (g,) = grad(total, x, vg.Tensor([1.0, 10.0, 100.0]))
    np.testing.assert_allclose(g.numpy(), 2 * x.detach().numpy() * [1, 10, 100])


def test_out_through_a_view_of_a_leaf_s_clone(x):
    base = x.clone()
    np.exp(base[0], out=base[1])
    (g,) = grad(base.sum(), x)
    np.testing.assert_allclose(g.numpy(), [1 + np.exp([1.0, 2.0, 3.0]), [0, 0, 0]])


def test_out_may_be_an_operand(x):
    y = x.clone()
    np.multiply(y, y, out=y)
    np.add(y, y, y)
    (g,) = grad(y.sum(), x)
    np.testing.assert_allclose(g.numpy(), 4 * x.detach().numpy())


def test_where_keeps_unselected_elements(x):
    old = vg.Tensor(np.full((2, 3), 7.0), requires_grad=True)
    out = old.clone()
    mask = np.array([[True, False, True], [False, True, False]])
    assert np.square(x, out=out, where=mask) is out
    a = x.detach().numpy()
    np.testing.assert_array_equal(out.detach().numpy(), np.where(mask, a**2, 7.0))
    of_x, of_old = grad(out.sum(), [x, old])
    np.testing.assert_array_equal(of_x.numpy(), np.where(mask, 2 * a, 0))
    np.testing.assert_array_equal(of_old.numpy(), ~mask)


def test_where_computes_only_selected_elements(recwarn):
    """The logarithm of unselected elements would be infinite, and its gradient times zero NaN."""
    x = vg.Tensor([0.0, 1.0, 2.0], requires_grad=True)
    out = np.log(x, out=vg.zeros(3), where=x > 0)
    np.testing.assert_allclose(grad(out.sum(), x)[0].numpy(), [0, 1, 0.5])
    y = vg.Tensor([0.0, 4.0, 5.0], requires_grad=True)
    out = np.divide(x, y, out=vg.zeros(2, 3), where=y > 0)
    of_x, of_y = grad(out.sum(), [x, y])
    np.testing.assert_allclose(of_x.numpy(), [0, 2 / 4, 2 / 5])
    np.testing.assert_allclose(of_y.numpy(), [0, -2 / 16, -4 / 25])
    assert not recwarn.list


def test_where_on_a_tensor_without_dimensions():
    x = vg.Tensor(3.0, requires_grad=True)
    for mask in (True, False):
        out = np.multiply(x, 2.0, out=vg.Tensor(1.0), where=np.array(mask))
        assert out.item() == (6.0 if mask else 1.0)


def test_out_gradcheck():
    mask = np.array([True, False, True])

    def program(x, y):
        out = x * 2
        np.add(x, y, out=out, where=mask)
        np.multiply(out[1:], y[:2], out=out[:2])
        return out

    rng = np.random.default_rng(0)
    assert gradcheck(program, [vg.Tensor(rng.standard_normal(3), requires_grad=True) for _ in range(2)])


def test_out_of_another_shape_or_dtype_is_refused(x):
    with pytest.raises(TypeError, match=r"np\.exp of tensors cannot write to a plain array"):
        np.exp(x, out=np.zeros((2, 3)))
    with pytest.raises(TypeError, match=r"np\.sum of tensors cannot write to a plain array"):
        np.sum(x, axis=0, out=np.zeros(3))
    with pytest.raises(TypeError, match=r"np\.exp: a result of float64 cannot be written to out= of int64"):
        np.exp(x, out=vg.zeros(2, 3, dtype=int))
    with pytest.raises(ValueError, match=r"np\.sum: out= has shape \(2,\), but the result has shape \(3,\)"):
        np.sum(x, axis=0, out=vg.zeros(2))


@pytest.mark.parametrize("is_named", [True, False])
@pytest.mark.parametrize("name", ["median", "nanmedian", "ptp", "percentile", "quantile", "take"])
def test_out_is_not_passed_on_as_another_option(name, is_named):
    array, function = np.array([1.0, 2.0, 4.0]), getattr(np, name)
    others = {"percentile": [50], "quantile": [[0.1, 0.2]], "take": [[0, 1]]}.get(name, [])
    out = vg.zeros(np.shape(function(array, *others)), dtype=int)
    place = list(inspect.signature(function).parameters).index("out")
    args, options = ((), {"out": out}) if is_named else ([None] * (place - len(others) - 1) + [out], {})
    with pytest.raises(TypeError, match="cannot be written to out= of int64"):
        getattr(vnp, name)(vg.Tensor(array), *others, *args, **options)
    assert not out.numpy().any()


# -- other options -----------------------------------------------------------------------------------------------------


def test_dtypes_match_the_computation():
    x = vg.Tensor([1.0, 2.0], dtype=np.float32, requires_grad=True)
    total = np.sum(x, dtype=np.float64)
    assert total.dtype == np.float64
    (g,) = grad(total, x)
    assert g.dtype == np.float32
    assert np.concatenate([x, x], dtype=np.float64).dtype == np.float64


def test_unknown_options_are_named(x):
    with pytest.raises(TypeError, match=r"np\.add of tensors supports out=, where= and dtype=, not signature"):
        np.add(x, x, signature="dd->d")
    with pytest.raises(TypeError, match=r"np\.sort of tensors supports the options .*, not order"):
        np.sort(x, order="a")


def test_unknown_functions_are_refused(x):
    with pytest.raises(UnsupportedFunctionError, match=r"no operator for numpy\.packbits"):
        np.packbits(x)


# -- methods of ufuncs -------------------------------------------------------------------------------------------------


def test_methods_of_ufuncs(x):
    a = x.detach().numpy()
    for result, wanted in [
        (np.add.reduce(x), np.add.reduce(a)),
        (np.add.reduce(x, axis=None), a.sum()),
        (np.multiply.reduce(x, axis=1, keepdims=True), a.prod(axis=1, keepdims=True)),
        (np.maximum.reduce(x), a.max(axis=0)),
        (np.minimum.reduce(x, 1), a.min(axis=1)),
        (np.add.accumulate(x), a.cumsum(axis=0)),
        (np.multiply.accumulate(x, axis=1), a.cumprod(axis=1)),
        (np.multiply.outer(x, x), np.multiply.outer(a, a)),
        (np.subtract.outer(x, a[0]), np.subtract.outer(a, a[0])),
    ]:
        assert result.requires_grad
        np.testing.assert_allclose(result.detach().numpy(), wanted)


def test_ufunc_at_accumulates(x):
    values = vg.Tensor([1.0, 2.0, 3.0], requires_grad=True)
    total = vg.zeros(2)
    np.add.at(total, np.array([0, 0, 1]), values)
    np.subtract.at(total, np.array([1]), values[:1])
    assert total.tolist() == [3.0, 2.0]
    assert grad(total, values, vg.Tensor([1.0, 10.0]))[0].tolist() == [-9.0, 1.0, 10.0]


# -- what is no operator -----------------------------------------------------------------------------------------------


def test_creation_and_comparison(x):
    for create in (np.zeros_like, np.ones_like, np.empty_like):
        made = create(x, dtype=np.float32)
        assert isinstance(made, vg.Tensor)
        assert (made.shape, made.dtype, made.requires_grad) == ((2, 3), np.float32, False)
    assert np.full_like(x, 3.0, shape=(2,)).tolist() == [3.0, 3.0]
    assert np.array_equal(x, x.detach().numpy())
    assert np.allclose(x, x + 1e-12)
    assert np.isclose(x, x + 1e-12).dtype == bool
    assert np.shape(x) == (2, 3)
    assert np.ndim(x) == 2
    assert np.result_type(x, np.float32) == np.float64
    assert not np.iscomplexobj(x)
    assert np.shares_memory(x, x[0])
    assert [places.tolist() for places in np.nonzero(x > 4)] == [[1, 1], [1, 2]]
    assert [places.tolist() for places in np.where(x > 4)] == [[1, 1], [1, 2]]


def test_copyto(x):
    out = vg.zeros(2, 3)
    np.copyto(out, x[0])
    np.copyto(out, 7.0, where=np.array([True, False, False]))
    assert out.tolist() == [[7.0, 2.0, 3.0], [7.0, 2.0, 3.0]]
    assert grad(out.sum(), x)[0].tolist() == [[0, 2, 2], [0, 0, 0]]
    with pytest.raises(TypeError, match="plain array"):
        np.copyto(np.zeros((2, 3)), x)
    with pytest.raises(TypeError, match="cannot cast"):
        np.copyto(vg.zeros(2, 3, dtype=int), x)


def test_put_along_axis(x):
    out = x * 1
    np.put_along_axis(out, np.array([[0], [2]]), x[:, 1:2] * 10, axis=1)
    assert out.tolist() == [[20, 2, 3], [4, 5, 50]]
    assert grad(out.sum(), x)[0].tolist() == [[0, 11, 1], [1, 11, 0]]


@pytest.mark.parametrize("numpy", [np.concatenate, np.dot], ids=lambda function: function.__name__)
def test_compiled_functions_without_signatures(numpy, monkeypatch):
    """NumPy 2.0 has no signatures for its compiled functions."""

    def signature(function, *args, known=inspect.signature):
        if function is numpy:
            raise ValueError("no signature found")
        return known(function, *args)

    monkeypatch.setattr(inspect, "signature", signature)
    call = array_function(OPERATORS[numpy.__name__].function, numpy)
    a = np.arange(4.0).reshape(2, 2)
    args = ([vg.Tensor(a), vg.Tensor(a)],) if numpy is np.concatenate else (vg.Tensor(a), vg.Tensor(a))
    expected = numpy(*args).numpy()
    out = vg.zeros(expected.shape)
    assert call(*args, out=out) is out
    np.testing.assert_array_equal(out.numpy(), expected)
    if numpy is np.concatenate:
        assert call(*args, dtype=np.float32).dtype == np.float32
