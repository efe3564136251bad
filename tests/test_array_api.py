"""The array API standard: names, keywords, and gradients."""

import inspect

import numpy as np
import pytest

import viewgrad as vg
from viewgrad.errors import AutogradError, DifferentiabilityError

ELEMENTWISE = """abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_left_shift bitwise_invert bitwise_or
    bitwise_right_shift bitwise_xor ceil clip conj copysign cos cosh divide equal exp expm1 floor floor_divide greater
    greater_equal hypot imag isfinite isinf isnan less less_equal log log1p log2 log10 logaddexp logical_and logical_not
    logical_or logical_xor maximum minimum multiply negative nextafter not_equal positive pow real reciprocal remainder
    round sign signbit sin sinh square sqrt subtract tan tanh trunc""".split()

# The standard's functions that are not elementwise, with the keywords that each must accept.
KEYWORDS = {
    "arange": "stop step dtype device",
    "asarray": "dtype device copy",
    "empty": "shape dtype device",
    "empty_like": "dtype device",
    "eye": "N M k dtype device",
    "from_dlpack": "device copy",
    "full": "shape fill_value dtype device",
    "full_like": "fill_value dtype device",
    "linspace": "start stop num dtype device endpoint",
    "ones": "shape dtype device",
    "ones_like": "dtype device",
    "zeros": "shape dtype device",
    "zeros_like": "dtype device",
    "tril": "k",
    "triu": "k",
    "astype": "copy device",
    "finfo": "",
    "iinfo": "",
    "can_cast": "",
    "isdtype": "dtype kind",
    "result_type": "",
    "take": "indices axis",
    "take_along_axis": "indices axis",
    "matmul": "",
    "matrix_transpose": "",
    "tensordot": "axes",
    "vecdot": "axis",
    "broadcast_arrays": "",
    "broadcast_to": "shape",
    "concat": "axis",
    "expand_dims": "axis",
    "flip": "axis",
    "moveaxis": "",
    "permute_dims": "axes",
    "repeat": "repeats axis",
    "reshape": "shape copy",
    "roll": "shift axis",
    "squeeze": "axis",
    "stack": "axis",
    "tile": "",
    "unstack": "axis",
    "argmax": "axis keepdims",
    "argmin": "axis keepdims",
    "count_nonzero": "axis keepdims",
    "nonzero": "",
    "searchsorted": "side sorter",
    "where": "",
    "unique_all": "",
    "unique_counts": "",
    "unique_inverse": "",
    "unique_values": "",
    "argsort": "axis descending stable",
    "sort": "axis descending stable",
    "cumulative_prod": "axis dtype include_initial",
    "cumulative_sum": "axis dtype include_initial",
    "max": "axis keepdims",
    "mean": "axis keepdims",
    "min": "axis keepdims",
    "prod": "axis dtype keepdims",
    "std": "axis correction keepdims",
    "sum": "axis dtype keepdims",
    "var": "axis correction keepdims",
    "all": "axis keepdims",
    "any": "axis keepdims",
    "diff": "axis n prepend append",
}
LINALG = {
    "cholesky": "upper",
    "cross": "axis",
    "det": "",
    "diagonal": "offset",
    "eigh": "",
    "eigvalsh": "",
    "inv": "",
    "matmul": "",
    "matrix_norm": "keepdims ord",
    "matrix_power": "n",
    "matrix_rank": "rtol",
    "matrix_transpose": "",
    "outer": "",
    "pinv": "rtol",
    "qr": "mode",
    "slogdet": "",
    "solve": "",
    "svd": "full_matrices",
    "svdvals": "",
    "tensordot": "axes",
    "trace": "offset dtype",
    "vecdot": "axis",
    "vector_norm": "axis keepdims ord",
}
FFT = {
    **dict.fromkeys(("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"), "n axis norm"),
    **dict.fromkeys(("fftn", "ifftn", "rfftn", "irfftn"), "s axes norm"),
    "fftfreq": "d dtype device",
    "rfftfreq": "d dtype device",
    "fftshift": "axes",
    "ifftshift": "axes",
}


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise_functions_exist(name):
    assert callable(getattr(vg, name))


@pytest.mark.parametrize(
    "namespace, name, keywords",
    [
        (space, name, keywords)
        for space, table in ((vg, KEYWORDS), (vg.linalg, LINALG), (vg.fft, FFT))
        for name, keywords in table.items()
    ],
)
def test_functions_take_the_keywords_of_the_standard(namespace, name, keywords):
    parameters = inspect.signature(getattr(namespace, name)).parameters
    assert set(keywords.split()) <= set(parameters)


def test_dtypes_and_constants():
    for name, dtype in vg.__array_namespace_info__().dtypes().items():
        assert getattr(vg, name) == dtype
    assert vg.isdtype(vg.uint8, "integral") and not vg.isdtype(vg.uint8, ("bool", "signed integer"))
    assert (vg.e, vg.pi, vg.inf, vg.newaxis) == (np.e, np.pi, np.inf, None) and np.isnan(vg.nan)
    with pytest.raises(ValueError, match="unknown kind"):
        vg.isdtype(vg.float32, "floating")
    assert type(vg.finfo(vg.complex64).eps) is float and vg.iinfo(vg.Tensor([1])).bits == 64
    assert vg.result_type(vg.ones(1, dtype=np.float32), 1.0) == np.float32


def test_tensors_name_their_namespace_and_device():
    x = vg.ones(2)
    assert x.__array_namespace__() is vg and x.__array_namespace__(api_version="2023.12") is vg
    with pytest.raises(ValueError, match="2099"):
        x.__array_namespace__(api_version="2099.01")
    assert x.device == "cpu" and x.to_device("cpu") is x
    with pytest.raises(ValueError, match="gpu"):
        x.to_device("gpu")
    with pytest.raises(ValueError, match="gpu"):
        vg.zeros(2, device="gpu")


@pytest.mark.parametrize("axis", [(0, 0), (1, -3), (0, 9), 5, (5,)])
@pytest.mark.parametrize("xp", [np, vg])
def test_expand_dims_refuses_axes_that_no_result_has(xp, axis):
    with pytest.raises((ValueError, IndexError)):
        xp.expand_dims(vg.ones(2, 3), axis=axis)


PROGRAMS = {
    "full": lambda xp, x: xp.full_like(x, x[0, 1]) * x,
    "cumulative_sum": lambda xp, x: xp.cumulative_sum(x, axis=1, include_initial=True),
    "cumulative_prod": lambda xp, x: xp.cumulative_prod(x, axis=0, include_initial=True),
    "concat": lambda xp, x: xp.concat([x, x * 2], axis=None),
    "permute_dims": lambda xp, x: xp.permute_dims(x, (1, 0)) * xp.asarray([1.0, 2.0]),
    "expand_dims": lambda xp, x: xp.expand_dims(x, axis=-1) * xp.asarray([1.0, 2.0]),
    "unstack": lambda xp, x: xp.unstack(x, axis=1)[2] * xp.unstack(x, axis=1)[0],
    "sort": lambda xp, x: xp.sort(x, axis=0) * xp.asarray([1.0, 2.0, 3.0]),
    "diff": lambda xp, x: xp.diff(x, axis=1, prepend=x[:, :1] * 2) * xp.asarray([1.0, 2.0, 3.0]),
    "nextafter": lambda xp, x: xp.nextafter(x, xp.asarray(9.0)) * 2,
    "matrix_transpose": lambda xp, x: xp.matrix_transpose(x) @ x,
    "broadcast_arrays": lambda xp, x: xp.broadcast_arrays(x, x[0])[1] * x,
    "astype": lambda xp, x: xp.astype(x, xp.complex128) * 2j,
    "searchsorted": lambda xp, x: xp.searchsorted(xp.asarray([3.0, 1.0]), x, sorter=xp.asarray([1, 0])) * x,
    "linalg": lambda xp, x: xp.linalg.pinv(x) + xp.linalg.matrix_norm(x) + xp.linalg.trace(x) + xp.linalg.svd(x).S[0],
    "fft": lambda xp, x: xp.fft.rfft(x) * xp.fft.rfftfreq(3),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_one_source_on_arrays_and_tensors(name):
    """The values are NumPy's, and the gradients those of finite differences."""
    program = PROGRAMS[name]
    if name in ("cumulative_sum", "cumulative_prod", "unstack") and not hasattr(np, name):
        pytest.skip(f"NumPy {np.__version__} has no {name}")
    array = np.array([[0.3, -1.2, 2.0], [1.5, 0.7, -0.4]])
    expected = program(np, array)
    x = vg.Tensor(array, requires_grad=True)
    np.testing.assert_allclose(program(vg, x).detach().numpy(), expected, rtol=1e-12)
    assert vg.autograd.gradcheck(lambda x: program(vg, x), x)


def test_sorting_downwards_keeps_equal_elements_in_order():
    x = vg.Tensor([1.0, 2.0, 1.0, 2.0, 0.0])
    assert vg.argsort(x, descending=True).tolist() == [1, 3, 0, 2, 4]
    assert vg.sort(x, descending=True).tolist() == [2.0, 2.0, 1.0, 1.0, 0.0]


def test_gradients_with_memory_shared_by_dlpack():
    """Exported memory may be written to undetected: values saved before and after the export are preserved."""
    x = vg.Tensor([1.0, 2.0], requires_grad=True)
    held = vg.Tensor([3.0, 4.0])
    before = (x * held).sum()
    outside = np.from_dlpack(held)
    assert np.shares_memory(outside, held.numpy())
    if not outside.flags.writeable:
        pytest.skip(f"NumPy {np.__version__} cannot write to what it has from others")
    after = (x * held).sum()
    outside[:] = 0.0
    assert held.tolist() == [0.0, 0.0]
    assert vg.autograd.grad(before + after, x)[0].tolist() == [6.0, 8.0]


def test_dlpack_refuses_to_lose_a_history():
    x = vg.Tensor([1.0], requires_grad=True)
    with pytest.raises(AutogradError, match="no history"):
        np.from_dlpack(x * 2)
    assert np.from_dlpack(x.detach()).tolist() == [1.0]


def test_from_dlpack_shares_or_copies():
    array = np.zeros(2)
    shared, copied = vg.from_dlpack(array), vg.from_dlpack(array, copy=True)
    array[0] = 5.0
    assert shared.tolist() == [5.0, 0.0] and copied.tolist() == [0.0, 0.0]
    back = np.from_dlpack(vg.zeros(3)[1:])
    assert back.shape == (2,) and vg.zeros(1).__dlpack_device__() == (1, 0)


def test_copy_argument():
    x = vg.Tensor([1.0, 2.0], requires_grad=True)
    assert vg.asarray(x) is x and vg.asarray(x, copy=True) is not x
    assert vg.autograd.grad(vg.asarray(x, copy=True).sum(), x)[0].tolist() == [1.0, 1.0]
    with pytest.raises(ValueError, match="copy is needed"):
        vg.asarray(x, dtype=np.float32, copy=False)
    with pytest.raises(ValueError):
        vg.reshape(vg.zeros(2, 3).T, (6,), copy=False)
    base = vg.zeros(4)
    vg.reshape(base, 2, 2)[0, 0] = 1.0
    vg.reshape(base, (2, 2), copy=True)[1, 1] = 1.0
    assert base.tolist() == [1.0, 0.0, 0.0, 0.0]


def test_the_module_of_transforms_can_be_called():
    x = vg.Tensor([1.0, 2.0])
    assert vg.fft(x).tolist() == vg.fft.fft(x).tolist()


def test_full_of_a_tensor_has_its_history():
    x = vg.Tensor(3.0, requires_grad=True)
    (vg.full((2, 3), x) * vg.asarray([1.0, 2.0, 3.0])).sum().backward()
    assert float(x.grad.detach()) == 12.0
    assert vg.full(2, vg.Tensor(1)).dtype == np.int64 and vg.full(2, x, dtype=np.float32).dtype == np.float32
    assert vg.full(2, vg.Tensor(1.5), requires_grad=True).requires_grad


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.float32])
@pytest.mark.parametrize("initial", [False, True])
def test_dtype_of_cumulative_sums_and_products(dtype, initial):
    for name in ("cumulative_sum", "cumulative_prod"):
        function = getattr(vg, name)
        assert function(vg.Tensor([100, 3], dtype=np.uint8), dtype=dtype, include_initial=initial).dtype == dtype


def test_complete_qr_is_differentiable_for_determined_columns():
    tall = vg.Tensor(np.arange(6.0).reshape(3, 2) + np.eye(3, 2), requires_grad=True)
    q, r = vg.linalg.qr(tall, mode="complete")
    assert q.shape == (3, 3) and r.shape == (3, 2)
    np.testing.assert_allclose((q @ r).detach().numpy(), tall.detach().numpy())
    with pytest.raises(DifferentiabilityError, match="mode='reduced'"):
        q.sum().backward()
    wide = vg.Tensor(np.arange(6.0).reshape(2, 3) + np.eye(2, 3), requires_grad=True)
    assert vg.autograd.gradcheck(lambda x: vg.linalg.qr(x, mode="complete"), (wide,))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_expm1_of_complex_infinities():
    inf, nan = np.inf, np.nan
    given = {
        complex(inf, 0.0): complex(inf, 0.0), complex(-inf, inf): complex(-1.0, 0.0), complex(inf, inf): (inf, nan),
        complex(-inf, nan): complex(-1.0, 0.0), complex(inf, nan): (inf, nan), complex(nan, 0.0): complex(nan, 0.0),
        complex(-0.0, 0.0): 0j, complex(0.3, 0.2): complex(np.expm1(0.3 + 0.2j)),
    }  # fmt: skip
    found = np.expm1(vg.Tensor(np.array(list(given)))).numpy()
    for each, expected in zip(found, given.values()):
        real, imag = expected if isinstance(expected, tuple) else (expected.real, expected.imag)
        np.testing.assert_equal([abs(each.real) if np.isinf(real) else each.real, abs(each.imag)], [real, imag])
    x = vg.Tensor([0.3 + 0.2j, -0.1j], requires_grad=True)
    assert vg.autograd.gradcheck(np.expm1, x)
