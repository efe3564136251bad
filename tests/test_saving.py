"""Trees of tensors go through files, and results of several parts have names."""

import io

import numpy as np
import pytest

import viewgrad as vg
from viewgrad.errors import TreeError


def test_a_tree_comes_back(tmp_path):
    tree = {
        "leaf": vg.Tensor([1.0, 2.0], requires_grad=True), "computed": vg.Tensor([1.0], requires_grad=True) * 2,
        "whole": [vg.Tensor(np.arange(3)), (vg.Tensor(3.5 + 1j), np.ones((2, 2), np.float32))],
        "rest": (1, 2.5, True, None, "text", 1j, []),
    }  # fmt: skip
    vg.save(tmp_path / "tree", tree)
    again = vg.load(tmp_path / "tree")
    assert again["leaf"].requires_grad and again["leaf"].is_leaf and again["leaf"].detach().tolist() == [1, 2]
    assert not again["computed"].requires_grad and again["computed"].tolist() == [2.0]
    assert again["whole"][0].dtype == int and type(again["whole"][1]) is tuple
    assert again["whole"][1][0].ndim == 0 and again["whole"][1][0].item() == 3.5 + 1j
    assert type(again["whole"][1][1]) is np.ndarray and again["whole"][1][1].dtype == np.float32
    assert again["rest"] == tree["rest"]
    with pytest.raises(TreeError, match="not set"):
        vg.save(io.BytesIO(), {"bad": {1}})


def test_parts_have_names():
    x = vg.Tensor([[2.0, 1.0], [1.0, 3.0]], requires_grad=True)
    assert np.linalg.svd(x).S.requires_grad and x.svd().Vh.shape == (2, 2)
    values, vectors = np.linalg.eigh(x)
    assert np.linalg.eigh(x).eigenvalues.detach().tolist() == values.detach().tolist() and vectors.shape == (2, 2)
    assert np.linalg.slogdet(x).logabsdet.requires_grad and x.qr().R.shape == (2, 2)


def test_arrays_are_made_as_people_type_them():
    x = vg.tensor([1.0, 2.0], requires_grad=True)
    assert x.requires_grad and x.is_leaf
    joined = vg.array([[x[0], 1.0], x])
    assert vg.autograd.grad(joined.sum(), x)[0].tolist() == [2, 1]
    assert vg.tensor([1, 2], dtype=np.float32).dtype == np.float32
    assert vg.array(x).requires_grad and not vg.array(x).is_leaf
