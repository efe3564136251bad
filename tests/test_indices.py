"""One basic index in place of two."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, basic_indices

from viewgrad.tensor.indices import composed, window_at


@given(st.data())
def test_the_composed_index_takes_the_same_window(data):
    shape = data.draw(array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5))
    base = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    outer = data.draw(basic_indices(shape, allow_newaxis=True, allow_ellipsis=True))
    outer = outer if isinstance(outer, tuple) else (outer,)
    view = base[outer] if isinstance(base[outer], np.ndarray) else base[(*outer, ...)]
    inner = data.draw(basic_indices(view.shape, allow_newaxis=True, allow_ellipsis=True))
    expected = np.asarray(view[inner])
    index = composed(outer, inner, shape)
    if index is None:
        assert 0 in expected.shape
        return
    window = window_at(base, index)
    assert isinstance(window, np.ndarray)
    assert window.shape == expected.shape
    assert np.array_equal(window, expected)
    if window.size:
        assert np.shares_memory(window, base)
