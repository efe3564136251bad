"""Leaves for tests to differentiate with respect to, and comparisons of gradients."""

from __future__ import annotations

import numpy as np

import viewgrad as vg


def leaf(*values, dtype=None):
    """Return a leaf of floating-point dtype with the given numbers, or rows of numbers."""
    array = np.array(values)
    if dtype is None and array.dtype.kind in "iub":
        dtype = np.float64
    return vg.Tensor(array, dtype=dtype, requires_grad=True)


def leaf_of(data, dtype=None):
    """Return a leaf with the given value: a number, a list or an array."""
    return vg.Tensor(data, dtype=dtype, requires_grad=True)


def random_leaf(*shape, seed=0, dtype=np.float64):
    """Return a leaf of the given shape with random numbers between 0.5 and 1.5."""
    array = np.random.default_rng(seed).uniform(0.5, 1.5, shape)
    return vg.Tensor(array.astype(dtype), requires_grad=True)


def spaced_leaf(*shape):
    """Return a leaf of the given shape with evenly spaced numbers from 0.5 to 1.5."""
    return vg.Tensor(np.linspace(0.5, 1.5, int(np.prod(shape))).reshape(shape), requires_grad=True)


def numbers(tensor):
    """Return the values of a tensor as a list, None for None."""
    return None if tensor is None else tensor.detach().tolist()
