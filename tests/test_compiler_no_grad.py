"""Compiled writes by index arrays under `no_grad`."""

from __future__ import annotations

import importlib.util
import warnings

import numpy as np
import pytest
from interpreted_kernels import compiled_by
from test_compiler_programs import close, everything

import viewgrad as vg

needs_numba = pytest.mark.skipif(not importlib.util.find_spec("numba"), reason="needs Numba")
EXECUTORS = ["python", "interpreted", pytest.param("numba", marks=[needs_numba, pytest.mark.slow])]


def written_by_indices(x, p):
    y = x * p[0]
    for i in range(3):
        with vg.no_grad():
            y[[i, i + 2]] = x[i] * 2
            y[[0, i, 0]] = np.sin(x[:3])
            np.add.at(y, [0, i, 1, 1], p[1] * x[:4])
            y[[3, 1]] = y[[1, 3]]
        y = y * x
    return (y * y).sum() * p[1], y


def through_another(x, p):
    y = x * p[0]
    other = y.detach()
    for i in range(3):
        other[[i, i + 1]] = x[i] * p[1]
        np.add.at(other, [0, 0, i], 0.5)
    return (y * x).sum(), y


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("function", [written_by_indices, through_another])
def test_unrecorded_writes_by_index_arrays(function, executor):
    compiled = compiled_by(executor, function, check=False)
    for call in range(3):
        seen = []
        for each in (compiled, function):
            x = vg.Tensor(np.sin(np.arange(5.0) + call), requires_grad=True)
            p = vg.Tensor([0.4 + call, 1.3], requires_grad=True)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                loss, y = each(x, p)
            seen.append(everything(loss, {"y": y}, {"x": x, "p": p}, [x, p]))
        assert all(close(one, other) for one, other in zip(*seen, strict=True))
    assert compiled.specializations[-1].runs == 2, compiled.explain()
