"""Operators lowered to windows of arrays in compiled programs, against eager runs."""

from __future__ import annotations

import numpy as np
import pytest
from interpreted_kernels import compiled_by

import viewgrad as vg

ORDER = np.array([[2, 0], [1, -1]])
PROGRAMS = {
    "diff": lambda x, y: np.diff(x) * 2.0,
    "diff, rows": lambda x, y: np.diff(x, axis=0) ** 2,
    "diff, twice": lambda x, y: np.diff(x, 2, axis=-1) + np.diff(y, n=2),
    "diff, three times": lambda x, y: np.diff(np.concatenate([x, y], 1), 3),
    "argmax": lambda x, y: x[1, np.argmax(x) % 3] * y,
    "argmax, rows": lambda x, y: np.argmax(x, axis=1) + y.sum() + np.argmin(x, axis=0)[:1],
    "argmin, kept": lambda x, y: np.argmin(x, axis=-1, keepdims=True) * y,
    "tril": lambda x, y: np.tril(x @ y.T, -1) + np.triu(x @ y.T, 1) * 2.0 + np.tril(x[:, :2], 1).sum(),
    "parts at one line": lambda x, y: sum([f(x @ y.T, 1) * k for k, f in enumerate((np.tril, np.triu, np.tril), 1)]),
    "cross": lambda x, y: np.cross(x, y) * x + np.cross(x[0], y[1]),
    "tensordot": lambda x, y: np.tensordot(x, y, axes=([1], [1])) + np.tensordot(x, y, 2),
    "inner": lambda x, y: np.inner(x, y) + np.inner(x[0], y[0]) * np.kron(x[:1, :2], y[:1, :2]).sum(),
    "bools": lambda x, y: (
        np.any(x > 0, axis=0) * y + np.all(x > -1, axis=1, keepdims=True) + np.count_nonzero(x > y) * x
    ),
    "logsumexp": lambda x, y: vg.logsumexp(np.where((x > 0.0) & (x < 9.0), x, -np.inf), axis=1),  # also of no elements
    "take": lambda x, y: np.take(x, [2, 0, 2], axis=1) + np.take(y, ORDER).sum() * np.take(x, -1, axis=0),
}
SPECIAL = [
    np.array([[1.0, 1.0, -2.0], [0.0, -0.0, 0.0], [3.0, 3.0, 3.0]]),
    np.array([[np.nan, 1.0, np.nan], [np.inf, -np.inf, np.inf], [1.0, np.nan, 2.0]]),
]


def outcomes(f, arrays):
    given = [vg.Tensor(array, requires_grad=True) for array in arrays]
    value = f(*given)
    loss = (value * np.cos(np.arange(value.size).reshape(value.shape))).sum()
    alone = vg.autograd.grad(loss, given, retain_graph=True, allow_unused=True)  # by the program, without a replay
    first = vg.autograd.grad(loss, given, create_graph=True, allow_unused=True)
    squares = sum([(g * g).sum() for g in first if g is not None and g.requires_grad], vg.zeros(1)[0])
    second = vg.autograd.grad(squares, given, allow_unused=True) if squares.requires_grad else [None, None]
    zeros = [np.zeros(array.shape, array.dtype) for array in arrays]
    return [value.detach().numpy()] + [
        zero if g is None else g.detach().numpy() for g, zero in zip((*alone, *first, *second), zeros * 3, strict=True)
    ]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("executor", ["python", "interpreted", pytest.param("numba", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", PROGRAMS)
def test_parts_of_arrays(name, executor):

    def repeated(x, y):
        total = PROGRAMS[name](x, y)
        for t in range(3):
            total = total + PROGRAMS[name](x * (1.0 + 0.1 * t), y + 0.1 * t)
        return total

    for dtype in (float, np.float32):
        compiled = compiled_by(executor, repeated)
        drawn = [np.random.default_rng(seed).normal(size=(2, 3, 3)) for seed in range(4)]
        for x, y in [*drawn, *[(array, array[::-1].copy()) for array in SPECIAL]]:
            arrays = [x.astype(dtype), y.astype(dtype)]
            close = {"rtol": 1e-9, "atol": 1e-12} if dtype is float else {"rtol": 1e-4, "atol": 1e-4}
            for one, other in zip(outcomes(compiled, arrays), outcomes(repeated, arrays), strict=True):
                assert one.dtype == other.dtype
                np.testing.assert_allclose(one, other, **close)
        assert compiled.specializations[0].runs >= 3, compiled.explain()
        assert dtype is np.float32 or "call_" not in compiled.source().replace("call_kron", "")
