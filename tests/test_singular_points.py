"""Derivatives at each row of the table of singular points."""

import importlib.util

import numpy as np
import pytest
from singular_points import SINGULAR_POINTS

import viewgrad as vg
from viewgrad.autograd import grad


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("row", SINGULAR_POINTS, ids=lambda row: row.name)
def test_derivatives(row):
    if isinstance(row.function, str) and not hasattr(np, row.function) and not importlib.util.find_spec("scipy"):
        pytest.skip("needs SciPy")
    function = getattr(vg, row.function) if isinstance(row.function, str) else row.function
    for dtype in row.dtypes:
        tensors = [vg.Tensor(np.array(operand, dtype), requires_grad=True) for operand in row.operands]
        value = function(*tensors).sum()
        slopes = grad(value, tensors, materialize_grads=True, create_graph=row.bends is not None)
        for found, expected in zip(slopes, row.slopes, strict=True):
            np.testing.assert_allclose(found.detach().numpy(), expected, rtol=row.rtol)
        if row.bends is not None:
            (bends,) = grad(slopes[0].sum(), tensors[0])
            promised = ~np.isnan(row.bends)
            np.testing.assert_allclose(bends.numpy()[promised], np.array(row.bends)[promised], rtol=row.rtol)
