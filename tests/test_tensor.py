"""Tensors themselves: what they are made of, and what becomes of what is no tensor."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import viewgrad as vg
from viewgrad.errors import AutogradError, LostHistoryWarning


def test_a_number_made_of_a_tensor_warns_that_its_history_is_lost():
    x = vg.Tensor(2.0, requires_grad=True)
    array = np.zeros(3)
    with pytest.warns(LostHistoryWarning, match="gives a plain number"):
        array[0] = x * 2
    assert array[0] == 4.0
    with pytest.warns(LostHistoryWarning):
        complex(x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert x.detach().item() == float(x.detach()) == int(x) == 2
        with vg.no_grad():
            float(x)
        x.detach().astype(complex).item()


def test_bytes_in_another_order_are_brought_into_this_machines():
    x = vg.Tensor(np.ones(2, np.dtype(float).newbyteorder()), requires_grad=True)
    assert x.dtype.isnative
    (x * x).sum().backward()
    assert x.grad.dtype is x.dtype is np.dtype(float)
    with pytest.raises(TypeError, match=r"use Tensor\(array\)"):
        vg.from_numpy(np.ones(2, np.dtype(float).newbyteorder()))


def test_what_is_no_tensor_is_refused_by_name():
    x = vg.Tensor([1.0, 2.0], requires_grad=True)
    for operate in [lambda: x + None, lambda: vg.lerp(x, x, None), lambda: x.mul_(None)]:
        with pytest.raises(TypeError, match="NoneType"):
            operate()
    with pytest.raises(TypeError, match="inputs must be a Tensor or a sequence of them, not ndarray"):
        vg.autograd.grad(x.sum(), np.zeros(2))
    with pytest.raises(TypeError, match="not float"):
        vg.autograd.backward(1.0)
    with pytest.raises(TypeError, match="not ndarray"):
        x.sum().backward(inputs=[np.zeros(2)])


def test_a_tensor_is_not_its_own_grad():
    x = vg.Tensor([1.0], requires_grad=True)
    with pytest.raises(AutogradError, match="cannot be its own grad"):
        x.grad = x
    x.grad = x.detach()
    assert x.grad is not None
