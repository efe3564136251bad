"""One object for each name: what `viewgrad` and `viewgrad.numpy` both have, with NumPy's parameters and others."""

import copy
import inspect
import pickle
import re

import numpy as np
import pytest

import viewgrad as vg
import viewgrad.numpy as vnp
from viewgrad.operators.numpy_api.dispatch import numpy_parameters
from viewgrad.operators.numpy_api.public import NEWER, meant_by
from viewgrad.standard.dtypes import DTYPES
from viewgrad.standard.public import TWO_MEANINGS

# Types and modules: NumPy's own types are the dtypes of `viewgrad`, and `viewgrad.fft` can be called as well.
NO_FUNCTIONS = {*DTYPES, "fft"}
COMMON = sorted(
    name
    for name in dir(vg)
    if name[0] != "_" and hasattr(vnp, name) and callable(getattr(vg, name)) and name not in NO_FUNCTIONS
)
SAME = [name for name in COMMON if name not in TWO_MEANINGS]


def test_a_name_is_one_object():
    assert [name for name in SAME if getattr(vg, name) is not getattr(vnp, name)] == []
    assert len(SAME) > 260 and set(TWO_MEANINGS) < set(COMMON)


@pytest.mark.parametrize("name", SAME)
def test_functions_have_numpys_parameters(name):
    theirs = numpy_parameters(getattr(np, name)) if not isinstance(getattr(np, name), np.ufunc) else None
    ours = inspect.signature(getattr(vg, name)).parameters
    if theirs is not None:
        assert {NEWER.get(each.name, each.name) for each in theirs} <= set(ours)
    assert pickle.loads(pickle.dumps(getattr(vg, name))) is getattr(vg, name)
    assert copy.copy(getattr(vg, name)) == getattr(vg, name) and getattr(vg, name).__name__


@pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.4.0", reason="NumPy up to 2.3 hides parameters of ufuncs")
def test_docstrings_name_the_parameters():
    for name in SAME:
        described = (getattr(vg, name).__doc__ or "").partition("Arguments:\n")[2]
        named = re.findall(r"^( +)(\w+):", described.partition("\n\n")[0], re.MULTILINE)
        unknown = {word for _, word in named} - set(inspect.signature(getattr(vg, name)).parameters) - {"dim"}
        assert not unknown, f"{name}: {unknown}"


M = np.arange(6.0).reshape(2, 3)
CALLS = [
    ("sum", (), {"a": M, "axis": 0, "keepdims": True}),
    ("mean", (), {"a": M, "axis": 1}),
    ("max", (), {"a": M, "axis": 1, "initial": 3.0}),
    ("var", (), {"a": M, "ddof": 1}),
    ("std", (M,), {"correction": 1}),
    ("cumsum", (M, 1), {"dtype": np.float32}),
    ("sin", (M,), {"where": M > 2, "out": np.zeros((2, 3))}),
    ("add", (M, 1.0), {"dtype": np.float32}),
    ("median", (), {"a": M, "axis": 0, "keepdims": True}),
    ("quantile", (M, 0.3), {"axis": 1, "method": "lower"}),
    ("take", (M, [5, 0]), {"mode": "wrap"}),
    ("ptp", (), {"a": M, "axis": 1}),
    ("cov", (M,), {"y": M[:1] ** 2}),
    ("cross", (M, M[::-1]), {"axisa": 1, "axisb": 1}),
    ("clip", (M, None, 2.0), {}),
    ("clip", (M,), {"a_min": 1.0, "a_max": 2.0}),
    *([("clip", (M,), {"min": 1.0, "max": 2.0})] if np.lib.NumpyVersion(np.__version__) >= "2.1.0" else []),
    ("concatenate", ([M, M],), {"axis": 1, "dtype": np.float32}),
    ("stack", (), {"arrays": [M, M], "axis": -1}),
    ("reshape", (M, (3, 2)), {"order": "F"}),
    ("reshape", (M, (3, 2), "F"), {}),
    ("transpose", (M, (1, 0)), {}),
    ("transpose", (), {"a": M, "axes": (1, 0)}),
    ("sort", (M,), {"axis": 0, "kind": "stable"}),
    ("flip", (), {"m": M, "axis": 1}),
    ("squeeze", (M[:1],), {"axis": 0}),
    ("where", (M > 2, M, 0.0), {}),
    ("where", (M > 2,), {}),
    ("searchsorted", (M[0], 1.5), {"side": "right"}),
    ("diff", (M,), {"n": 2, "axis": 1, "append": M[:, :1]}),
    ("angle", (M + 1j,), {"deg": True}),
    ("nan_to_num", (M,), {"copy": True, "nan": 1.0}),
    ("zeros", ((2, 3), "f4", "F"), {}),
    ("zeros", (), {"shape": 3, "dtype": int}),
    ("ones_like", (M,), {"shape": (2, 2)}),
    ("full", (2, 3.0), {"dtype": np.float32}),
    ("full_like", (M, 3.0), {"shape": 2}),
    ("arange", (1, 7, 2), {"dtype": float}),
    ("arange", (np.uint8(4),), {}),
    ("linspace", (0.0, 1.0, 4), {"endpoint": False, "axis": 0}),
    ("eye", (2, 3, 1), {}),
    ("array", ([1.0, 2.0],), {"ndmin": 2}),
    ("pad", (M, ((1, 0), (0, 2))), {"mode": "constant", "constant_values": 3.0}),
    ("pad", (M, 1), {}),
    ("interp", ([0.5, 7.0], M[0], M[1]), {"left": 1.0, "right": 9.0}),
    ("unwrap", (M,), {"period": 3.0}),
    ("trapezoid", (), {"y": M, "dx": 0.5}),
    ("einsum", ("ij,kj", M, M), {}),
    ("tensordot", (M, M, ([1], [1])), {}),
]


@pytest.mark.parametrize("name, args, options", CALLS, ids=[f"{call[0]}-{i}" for i, call in enumerate(CALLS)])
def test_functions_match_their_numpy_counterparts(name, args, options):
    def given(value, kind):
        if isinstance(value, list) and any(isinstance(each, np.ndarray) for each in value):
            return [given(each, kind) for each in value]
        return kind(value) if isinstance(value, np.ndarray) else value

    expected = getattr(np, name)(*args, **options)
    for kind in (np.copy, vg.Tensor, lambda value: vg.Tensor(value, requires_grad=value.dtype.kind == "f")):
        ours = {key: given(value, kind) for key, value in options.items()}
        if "out" in ours:
            ours["out"] = np.zeros((2, 3)) if kind is np.copy else vg.zeros((2, 3))
        found = getattr(vg, name)(*(given(value, kind) for value in args), **ours)
        pairs = zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]
        for one, other in pairs:
            one = one.detach().numpy() if isinstance(one, vg.Tensor) else one
            assert np.asarray(one).dtype == np.asarray(other).dtype
            np.testing.assert_allclose(one, other)


def test_functions_accept_arguments_beyond_numpys():
    m = vg.Tensor(M, requires_grad=True)
    for name, args in (("sort", ()), ("argsort", ()), ("flip", ()), ("median", ()), ("cumsum", ()), ("roll", (1,))):
        function = getattr(vg, name)
        assert function(m, *args, dim=0).tolist() == function(m, *args, axis=0).tolist(), name
        assert function(M, *args, dim=0).tolist() == function(m, *args, axis=0).tolist(), name
    assert vg.squeeze(m[:1], dim=0).shape == (3,)
    assert vg.sum(m, dim=1, keepdim=True).shape == vg.median(m, dim=1, keepdim=True).shape == (2, 1)
    assert vg.median(m, 0, True).shape == vg.sum(m, 0, True).shape == (1, 3)
    assert vg.sort(M, descending=True)[0].tolist() == vg.sort(m, descending=True)[0].tolist() == [2.0, 1.0, 0.0]
    assert vg.reshape(m, 3, 2).shape == vg.reshape(M, 3, 2).shape == vg.transpose(m, 1, 0).shape == (3, 2)
    assert vg.zeros(2, 3, dtype=np.float32).dtype == vg.ones(2, np.float32).dtype == np.float32
    for made in (vg.zeros(2, 3), vg.zeros((2, 3), requires_grad=True), vg.full((2, 3), 0.0, requires_grad=True)):
        assert made.shape == (2, 3) and not made.detach().numpy().any()
    assert vg.array([1.0], requires_grad=True).requires_grad and vg.linspace(0, 1, 2, requires_grad=True).requires_grad


def test_misuse_raises_numpys_errors():
    x = vg.ones(3)
    for name, args, options in (
        ("sin", (), {}), ("sin", (x, 1, 2), {}), ("add", (x,), {}), ("sum", (), {}), ("sum", (x,), {"axes": 0}),
        ("median", (x,), {"nothing": 1}), ("sum", (x,), {"dim": 0, "keepdim": True, "where": "x", "any": 1}),
        ("zeros", ("a",), {}), ("concatenate", (3.0,), {}), ("vecdot", (x, x), {"dim": 0, "axis": 0}),
    ):  # fmt: skip
        with pytest.raises(TypeError):
            getattr(vg, name)(*args, **options)


def test_ufuncs_have_their_methods():
    x = vg.Tensor(M, requires_grad=True)
    assert vg.add.reduce(x, axis=1).tolist() == [3.0, 12.0] and vg.multiply.outer(x[0], x[0]).shape == (3, 3)
    assert vg.add.accumulate(x[0]).tolist() == [0.0, 1.0, 3.0]
    assert vg.add.reduceat(x[0], [0, 2]).tolist() == [1.0, 2.0]
    y = vg.zeros(3)
    vg.add.at(y, [0, 0], 1.0)
    assert y.tolist() == [2.0, 0.0, 0.0]
    assert (vg.add.nin, vg.add.nout, vg.add.identity, vg.matmul.signature) == (2, 1, 0, "(n?,k),(k,m?)->(n?,m?)")


class Layer:
    activation = vg.tanh
    make = vg.zeros
    total = vg.sum


def test_functions_bind_arguments_as_in_numpy():
    layer = Layer()
    assert layer.activation(0.0) == 0.0 and layer.make(2).shape == (2,)
    assert layer.activation is vg.tanh and copy.deepcopy(layer.activation) == vg.tanh
    with pytest.raises(TypeError):
        layer.total(vg.ones(2))


def test_functions_know_their_operators():
    assert meant_by(vg.sin) is vg.operators.OPERATORS["sin"].function
    assert meant_by(vg.dot) is vg.operators.OPERATORS["dot"].function
    assert meant_by(vg.vmap) is vg.vmap


def test_gradients_flow_on_every_path_of_a_call():
    x = vg.Tensor([0.3, 0.5], requires_grad=True)
    for call in (
        lambda: vg.sin(x), lambda: vg.sin(x, where=[True, True]), lambda: vg.sin([x[0], x[1]]),
        lambda: vg.sin(x, out=vg.zeros(2)), lambda: vg.add(vg.sin(x), np.zeros(2)),
        lambda: vg.concatenate([vg.sin(x[:1]), vg.sin(x[1:])]), lambda: vg.array([vg.sin(x[0]), vg.sin(x[1])]),
        lambda: vg.sum([vg.sin(x)], axis=0), lambda: vg.where(np.array([True, False]), vg.sin(x), vg.sin(x)),
        lambda: vg.full(1, vg.sum(vg.sin(x))), lambda: vg.linspace(vg.sin(x), 0.0, 1),
    ):  # fmt: skip
        (gradient,) = vg.autograd.grad(vg.sum(call()), x)
        np.testing.assert_allclose(gradient.numpy(), np.cos([0.3, 0.5]))


def test_first_use_of_a_name_does_not_retrace():
    names = vars(vg)
    names.pop("cbrt", None)

    @vg.compile(executor="python", specialize=True)
    def program(x):
        return vg.sin(x) * 2.0

    for _ in range(2):
        program(vg.ones(2))
    before = program.explain()
    assert "cbrt" not in names and vg.cbrt is vnp.cbrt and "cbrt" in names
    program(vg.ones(2))
    assert program.explain() == before and "traced; the next call" not in before


@pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.1.0", reason="np.clip has no min= and max=")
def test_bounds_of_clip_have_the_names_of_the_array_api_by_position():
    assert list(inspect.signature(vg.clip).parameters)[:4] == ["a", "min", "max", "out"]
    x = np.array([1.0, 2.0, 3.0])
    for given in (x, vg.Tensor(x)):
        for args, options in (((1.5, 2.5), {}), ((), {"a_min": 1.5, "a_max": 2.5}), ((), {"max": 2.5, "min": 1.5})):
            assert vg.clip(given, *args, **options).tolist() == [1.5, 2.0, 2.5]
