"""Sparse programs drawn at random: values and dtypes are SciPy's, gradients are those of differences of SciPy's values.

Patterns have duplicates and empty rows; stored values are ints, and real and complex numbers of both precisions.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg

import viewgrad as vg
from viewgrad.scipy import sparse
from viewgrad.scipy.sparse import linalg

DTYPES = ("f8", "f8", "f4", "i8", "c16", "c8")
STEPS = {
    "T": lambda m, a, b, x, y: a.T,
    "csr": lambda m, a, b, x, y: a.tocsr(),
    "csc": lambda m, a, b, x, y: a.tocsc(),
    "coo": lambda m, a, b, x, y: a.tocoo(),
    "negative": lambda m, a, b, x, y: -a,
    "times a number": lambda m, a, b, x, y: a * 2.5,
    "times a scalar": lambda m, a, b, x, y: x[0] * a,
    "divided": lambda m, a, b, x, y: a / -1.5,
    "sum": lambda m, a, b, x, y: a + like(a, b),
    "difference": lambda m, a, b, x, y: a - like(a, b),
    "elementwise": lambda m, a, b, x, y: a.multiply(like(a, b)),
    "rows scaled": lambda m, a, b, x, y: a.multiply(of_length(a.shape[1], x, y)),
    "columns scaled": lambda m, a, b, x, y: a.multiply(of_length(a.shape[0], x, y)[:, None]),
    "conjugate": lambda m, a, b, x, y: a.conj(),
    "tanh": lambda m, a, b, x, y: a.tanh(),
    "expm1": lambda m, a, b, x, y: a.expm1(),
    "power": lambda m, a, b, x, y: a.power(3),
    "abs": lambda m, a, b, x, y: abs(a),
    "product": lambda m, a, b, x, y: a @ (b if b.shape[0] == a.shape[1] else a.T),
    "slice": lambda m, a, b, x, y: a.tocsr()[::-1, :2],
    "repeated rows": lambda m, a, b, x, y: a.tocsr()[np.array([0, 0, a.shape[0] - 1])],
    "lower": lambda m, a, b, x, y: m.tril(a),
    "upper": lambda m, a, b, x, y: m.triu(a, 1),
    "stacked": lambda m, a, b, x, y: m.vstack([a, a]),
    "side by side": lambda m, a, b, x, y: m.hstack([a, a * 2]),
    "blocks": lambda m, a, b, x, y: m.block_diag([a, b]).tocsr(),
    "real": lambda m, a, b, x, y: a.real,
}
ENDS = {
    "times a vector": lambda m, s, a, x, y: a.tocsr() @ of_length(a.shape[1], x, y),
    "vector times": lambda m, s, a, x, y: of_length(a.shape[0], x, y) @ a.tocsr(),
    "times columns": lambda m, s, a, x, y: a @ (of_length(a.shape[1], x, y)[:, None] * np.array([1.0, 2.0])),
    "dense": lambda m, s, a, x, y: a.toarray(),
    "sum": lambda m, s, a, x, y: a.sum(),
    "sums": lambda m, s, a, x, y: a.sum(axis=0),
    "means": lambda m, s, a, x, y: a.mean(axis=1),
    "diagonal": lambda m, s, a, x, y: a.diagonal(1),
    "spsolve": lambda m, s, a, x, y: s.spsolve(square(m, a), of_length(min(a.shape), x, y)),
    "splu": lambda m, s, a, x, y: s.splu(square(m, a)).solve(np.ones(min(a.shape)) * x[0].real, "T"),
    "norm": lambda m, s, a, x, y: s.norm(a),
    "norms of rows": lambda m, s, a, x, y: s.norm(a, axis=1),
}


def like(a, b):
    return b if b.shape == a.shape else b.T if b.T.shape == a.shape else a


def of_length(n, *vectors):
    return next((v for v in vectors if v.shape[0] == n), np.linspace(0.5, 1.5, n))


def square(m, a):
    n = min(a.shape)
    return (a.tocsr()[:n, :n] + 40 * m.eye_array(n)).tocsc()


class Drawn:
    def __init__(self, seed):
        rng = self.rng = np.random.default_rng(seed)
        n, m = rng.integers(1, 5, 2)
        self.shape = (int(n), int(n if rng.random() < 0.5 else m))
        self.format, self.compressed = rng.choice(["csr", "csc", "coo"]), rng.random() < 0.5
        self.places = [
            (rng.integers(0, self.shape[0], k), rng.integers(0, self.shape[1], k)) for k in rng.integers(0, 9, 2)
        ]
        sizes = [len(self.places[0][0]), len(self.places[1][0]), self.shape[1], self.shape[0]]
        self.values = [self.numbers(size, rng.choice(DTYPES)) for size in sizes]
        self.steps = [str(name) for name in rng.choice(list(STEPS), rng.integers(0, 4))]
        self.end = str(rng.choice(list(ENDS)))

    def numbers(self, size, dtype):
        if dtype == "i8":
            return self.rng.integers(-3, 4, size)
        values = 2 * self.rng.normal(size=size)
        return (values + 1j * self.rng.normal(size=size) if dtype[0] == "c" else values).astype(dtype)

    def matrix(self, module, data, places, format):
        rows, columns = places
        made = getattr(module, f"{format}_array")
        if format == "coo" or not self.compressed:
            return made((data, (rows, columns)), shape=self.shape)
        outer, inner = (rows, columns) if format == "csr" else (columns, rows)
        order, count = np.argsort(outer, kind="stable"), self.shape[format == "csc"]
        starts = np.concatenate([[0], np.cumsum(np.bincount(outer, minlength=count))])
        return made((data[order], inner[order], starts), shape=self.shape)

    def run(self, module, solvers, values):
        a = self.matrix(module, values[0], self.places[0], self.format)
        b = self.matrix(module, values[1], self.places[1], "csr")
        for step in self.steps:
            a = STEPS[step](module, a, b, *values[2:])
        return ENDS[self.end](module, solvers, a, *values[2:])

    def __str__(self):
        return f"{self.shape} {self.format} {[v.dtype.str for v in self.values]}: {self.steps}, {self.end}"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(200, 2000, 200))])
def test_drawn_programs(first):
    for seed in range(first, first + 200):
        drawn = Drawn(seed)
        try:
            expected = np.asarray(drawn.run(scipy.sparse, scipy.sparse.linalg, drawn.values))
        except (TypeError, ValueError, RuntimeError):  # complex right-hand sides of real factors, singular matrices
            continue
        leaves = [vg.Tensor(value, requires_grad=value.dtype.kind in "fc") for value in drawn.values]
        found = drawn.run(sparse, linalg, leaves)
        array = found.detach().numpy() if isinstance(found, vg.Tensor) else np.asarray(found)
        rough = 2e-3 if any(value.dtype.str[1:] in ("f4", "c8") for value in drawn.values) else 1e-8
        assert array.shape == expected.shape and array.dtype == expected.dtype, str(drawn)
        np.testing.assert_allclose(array, expected, rough, rough, err_msg=str(drawn))
        if isinstance(found, vg.Tensor) and found.requires_grad:
            check_gradients(drawn, found, leaves, rough)


def check_gradients(drawn, found, leaves, rough):
    weights = drawn.numbers(found.shape, "c16" if found.dtype.kind == "c" else "f8")
    wanted = [i for i, leaf in enumerate(leaves) if leaf.requires_grad and leaf.size]
    if not wanted:
        return
    given = vg.Tensor(weights.astype(found.dtype))
    gradients = vg.autograd.grad([found], [leaves[i] for i in wanted], [given], allow_unused=True)
    double = [value.astype(np.result_type(value, float)) if leaves[i].requires_grad else value
              for i, value in enumerate(drawn.values)]  # fmt: skip
    for i, gradient in zip(wanted, gradients):
        direction = drawn.numbers(double[i].shape, double[i].dtype.str[1:])

        def weighted(step, i=i, direction=direction):
            values = [value + step * direction if k == i else value for k, value in enumerate(double)]
            return np.vdot(weights, drawn.run(scipy.sparse, scipy.sparse.linalg, values)).real

        h = 1e-5
        slope = (8 * (weighted(h) - weighted(-h)) - (weighted(2 * h) - weighted(-2 * h))) / (12 * h)
        mine = 0.0 if gradient is None else np.vdot(gradient.numpy(), direction).real
        size = 1 + abs(slope) + (0.0 if gradient is None else np.abs(gradient.numpy()).sum())
        assert abs(mine - slope) <= 10 * max(rough, 2e-6) * size, (str(drawn), i, mine, slope)
