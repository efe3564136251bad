"""Names: NumPy's meaning in `viewgrad`, PyTorch's in `viewgrad.torch_names`, and hints for missing names."""

import importlib

import numpy as np
import pytest

import viewgrad as vg
from viewgrad import torch_names
from viewgrad.hints import MODULE_HINTS, TENSOR_HINTS


def test_numpy_names_have_numpys_meaning():
    x = np.arange(6.0)
    for ours, theirs in zip(vg.split(vg.Tensor(x), 3), np.split(x, 3), strict=True):
        assert np.array_equal(ours.numpy(), theirs)
    conditions, choices = [x > 4, x > 2], [x, -x]
    selected = vg.select(conditions, [vg.Tensor(choice) for choice in choices])
    assert np.array_equal(selected.numpy(), np.select(conditions, choices))
    assert np.array_equal(vg.softmax(vg.Tensor([[0.0, 0.0]]), axis=0).numpy(), [[1.0, 1.0]])


def test_torch_names_have_pytorchs_meaning():
    x = vg.arange(6.0)
    assert [len(part) for part in torch_names.split(x, 2)] == [2, 2, 2]
    assert torch_names.select(x.reshape(2, 3), 1, 0).tolist() == [0.0, 3.0]
    assert torch_names.clamp is vg.clip and torch_names.relu is vg.relu


@pytest.mark.parametrize("name", ["sum", "mean", "max", "all", "std", "logsumexp", "nansum", "nanmax", "argmax"])
def test_reductions_take_pytorchs_names_of_arguments(name):
    x = vg.Tensor([[1.0, 2.0], [3.0, 5.0]])
    function = getattr(vg, name)
    for axis in (0, 1, -1):
        assert function(x, dim=axis).tolist() == function(x, axis=axis).tolist()
        assert function(x, dim=axis, keepdim=True).shape == function(x, axis=axis, keepdims=True).shape


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "cumsum", "cumprod", "cummax", "topk"])
def test_functions_along_an_axis_take_dim(name):
    x = vg.Tensor([[1.0, 5.0], [3.0, 2.0]])
    given = (x, 1) if name == "topk" else (x,)
    ours, theirs = getattr(vg, name)(*given, axis=0), getattr(vg, name)(*given, dim=0)
    for a, b in zip(ours, theirs, strict=True):
        assert a.tolist() == b.tolist()


def test_dir_lists_numpys_names_and_no_private_ones():
    listed = dir(vg)
    assert len(listed) <= 330
    assert not [name for name in listed if name.startswith("_") and not name.startswith("__array_")]
    assert {"relu", "erf", "svd", "unsqueeze"}.isdisjoint(listed)
    assert vg.relu and vg.erf  # available, and listed by torch_names and scipy.special


@pytest.mark.parametrize("name", TENSOR_HINTS)
def test_missing_tensor_attributes_suggest_alternatives(name):
    x = vg.ones(2)
    assert not hasattr(x, name)
    with pytest.raises(AttributeError, match=f"no attribute '{name}': ") as caught:
        getattr(x, name)
    assert TENSOR_HINTS[name] in str(caught.value)


@pytest.mark.parametrize("name", MODULE_HINTS)
def test_missing_module_attributes_suggest_alternatives(name):
    with pytest.raises(AttributeError, match=f"no attribute '{name}': ") as caught:
        getattr(vg, name)
    assert MODULE_HINTS[name] in str(caught.value)


def test_misspelt_name_suggests_the_right_one():
    for module, name in ((vg, "concatenat"), (vg.func, "hesian")):
        with pytest.raises(AttributeError) as caught:
            getattr(module, name)
        assert caught.value.name == name and caught.value.obj is module  # the source of the suggestion


@pytest.mark.parametrize(
    "name", "autograd drawing errors fft func linalg math operators symbolic testing torch_names views".split()
)
def test_public_modules_list_their_public_names(name):
    module = importlib.import_module(f"viewgrad.{name}")
    assert dir(module) == sorted(module.__all__)
    assert all(hasattr(module, each) for each in module.__all__)
