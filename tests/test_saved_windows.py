"""Saved windows keep their value: a write copies exactly those that it overlaps, found without comparing all."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, basic_indices

import viewgrad as vg
from viewgrad.tensor.storage import Storage


@st.composite
def writes_and_saves(draw):
    """Draw the shape of an array, and windows: by an index, in the flat array, and of real parts."""
    shape = draw(array_shapes(min_dims=1, max_dims=3, max_side=6))
    size = int(np.prod(shape))
    indices = basic_indices(shape, allow_newaxis=True, allow_ellipsis=True)
    strides = st.slices(size)
    window = st.one_of(
        st.tuples(st.sampled_from(["index", "unknown", "real", "pairs"]), indices),
        st.tuples(st.sampled_from(["flat", "flat imag"]), strides),
    )
    return shape, draw(st.lists(st.tuples(st.booleans(), window), max_size=14))


def taken(root, route, index):
    if route.startswith("flat"):
        window = root.reshape(-1)[index]
        return window.imag if route == "flat imag" else window
    index = index if isinstance(index, tuple) else (index,)
    window = root[index if Ellipsis in index else (*index, ...)]
    if route == "pairs":
        return window[..., None].view(float)
    return window.real if route == "real" else window


@settings(deadline=None, max_examples=400)
@given(writes_and_saves())
def test_saved_windows_keep_their_value_and_only_touched_ones_are_copied(drawn):
    shape, steps = drawn
    root = np.arange(np.prod(shape), dtype=float).reshape(shape) * (1 + 2j)
    storage = Storage(root)
    saved = []
    for number, (is_save, (route, index)) in enumerate(steps):
        window = taken(root, route, index)
        known = None
        if route == "index":
            known = index if isinstance(index, tuple) else (index,)
        if is_save:
            saved.append((storage.save(window, known), window.copy()))
        else:
            touched = [np.shares_memory(item.array, window) for item, _ in saved]
            was = [item.array for item, _ in saved]
            storage.preserve(window, known)
            window[...] = -1.0 - number
            for (item, _), touch, before in zip(saved, touched, was, strict=True):
                assert (item.array is not before) == touch
    for item, value in saved:
        assert np.array_equal(item.array, value)


INDICES = {
    "rows": lambda n: list(range(n)),
    "columns": lambda n: [(slice(None), i) for i in range(n)],
    "cells": lambda n: [(i, (7 * i) % n, ...) for i in range(n)],
    "blocks": lambda n: [slice(4 * i, 4 * i + 4) for i in range(n // 4)],
    "overlapping": lambda n: [slice(i, i + 3) for i in range(n - 3)],
}


@pytest.mark.parametrize("form", INDICES)
def test_number_of_comparisons_is_independent_of_saved_windows(form):
    for n in (40, 400):
        root = np.zeros((n, n))
        storage = Storage(root)
        indices = INDICES[form](n)
        kept = [storage.save(root[index], index) for index in indices]
        for index in indices:
            storage.preserve(root[index], index)
        assert storage.windows is not None
        assert storage.windows.compared <= 12 * len(kept)


def test_a_row_is_compared_with_the_parts_of_that_row_only():
    for n in (40, 400):
        root = np.zeros((n, 50))
        storage = Storage(root)
        kept = [storage.save(root[i, 3:4], (i, slice(3, 4))) for i in range(n)]
        for i in range(n):
            storage.preserve(root[i, 4:], (i, slice(4, None)))
        assert storage.windows is not None
        assert storage.windows.compared == 0
        for i in range(n):
            storage.preserve(root[i], i)
        assert storage.windows.compared == len(kept) == n


def test_interleaved_windows_of_a_flat_view_are_not_compared():
    for n in (40, 400):
        root = np.zeros((8, n))
        flat = root.reshape(-1)
        storage = Storage(root)
        kept = [storage.save(flat[i::n], None) for i in range(0, n, 2)]
        for i in range(1, n, 2):
            storage.preserve(flat[i::n], None)
        assert storage.windows is not None
        assert storage.windows.compared == 0
        for i in range(0, n, 2):
            storage.preserve(flat[i::n], None)
        assert storage.windows.compared == len(kept)


def test_dead_windows_are_removed():
    root = np.zeros((100, 4))
    storage = Storage(root)
    for i in range(10_000):
        storage.save(root[i % 100], i % 100)
    assert storage.windows is not None
    assert len(storage.windows) <= 64


@pytest.mark.parametrize(("saved", "written"), [(2, -1), (-1, 2), (-1, -1)])
def test_a_row_counted_from_the_end_is_preserved(saved, written):
    x = vg.Tensor([1.0, 2.0, 3.0], requires_grad=True)
    table = x.reshape(3, 1) * 1
    row = table[saved]
    product = row * row
    table[written] = 5.0
    product.sum().backward()
    assert x.grad.tolist() == [0.0, 0.0, 6.0]


def test_rows_keep_their_values_when_dead_ones_are_pruned():
    x = vg.Tensor(np.arange(100.0), requires_grad=True)
    table = x.reshape(100, 1) * 1
    total = sum(table[i] * table[i] for i in range(100))
    for i in range(100):
        table[i] = 0.0
    total.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), 2 * np.arange(100.0))


@pytest.mark.parametrize("index", [1, slice(1, 2), (..., 1), [1]], ids=str)
@pytest.mark.parametrize("value", [9.0, np.array(9.0), vg.Tensor(9.0)], ids=["number", "array", "tensor"])
@pytest.mark.parametrize("recorded", [True, False])
def test_overwritten_factor_keeps_its_saved_value(index, value, recorded):
    x = vg.Tensor([1.0, 2.0, 3.0], requires_grad=True)
    constant = vg.Tensor([4.0, 5.0, 6.0])
    products = x * constant
    with vg.set_grad_enabled(recorded):
        constant[index] = value
    products.sum().backward()
    assert x.grad.tolist() == [4.0, 5.0, 6.0]
    assert constant._version == 1
