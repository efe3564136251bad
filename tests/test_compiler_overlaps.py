"""Compiled writes that read the memory that they write: each element is read before the write."""

from __future__ import annotations

import numpy as np
import pytest
from interpreted_kernels import compiled_by

import viewgrad as vg
from viewgrad.compiler.backends.array_runtime import add_overlapping

ROWS, COLUMNS = 5, 4
STATEMENTS = (
    "M[{0}] = M[{1}]", "M[{0}] = M[{1}]", "M[{0}] += M[{1}]", "M[{0}] -= 0.5 * M[{1}]", "M[{0}] *= M[{1}]",
    "M[{0}] = M[{1}] * M[{2}]", "np.multiply(M[{1}], M[{2}], out=M[{0}])", "v = M[{1}]; M[{0}] = v; M[{2}] += v",
    "v = M[{0}]; v[...] = M[{1}]", "v = M[{0}]; v += M[{1}]", "M[{0}] = M[{1}] + 0", "M[{0}] = np.sin(M[{1}])",
    "M.T[{3}] = M.T[{4}]", "M.T[{3}] += M.T[{4}] * M.T[{5}]", "M[:4] = M[:4].T", "M[:4] += M[:4, ::-1].T",
    "M[{6}] = M[{7}]", "M[{6}] += M[{7}]", "M[{6}] = M[0, 1]", "M[{6}], M[{7}] = M[{7}], M[{6}]",
)  # fmt: skip


def source_of(number):
    """Return the source of a function with one argument, whose statements are in loops."""
    rng = np.random.default_rng(number)

    def rows(count, length):
        """Draw rows of a table, in order or in any order."""
        first = rng.integers(0, length - count + 1)
        kind = rng.integers(4)
        if kind == 0:
            chosen = rng.permutation(length)[:count]
        elif kind == 1:
            chosen = rng.integers(0, length, count)
        elif kind == 2:
            chosen = np.arange(first, first + count)[::-1]
        else:
            return f"{first}:{first + count}"
        return str(chosen.tolist())

    def parts(count, length):
        return [rows(count, length).replace("{", "").replace("}", "") for _ in range(3)]

    lines = []
    for _ in range(rng.integers(1, 4)):
        statement = STATEMENTS[rng.integers(len(STATEMENTS))]
        some = [*parts(rng.integers(2, ROWS), ROWS), *parts(rng.integers(2, COLUMNS), COLUMNS)]
        elements = [f"{rows(3, ROWS)}, {rows(3, COLUMNS)}" for _ in range(2)]
        if ":" in "".join(elements):
            elements = [f"{rng.permutation(ROWS)[:3].tolist()}, {rng.integers(0, COLUMNS, 3).tolist()}"] * 2
        turns = rng.integers(1, 4)
        lines += [f"    for i in range({turns}):", f"        {statement.format(*some, *elements)}"]
    return "\n".join(["def program(x):", "    M = x * x", *lines, "    return (M * W).sum()"])


def made(source):
    space = {"np": np, "W": np.cos(np.arange(ROWS * COLUMNS)).reshape(ROWS, COLUMNS)}
    exec(source, space)
    return space["program"]


def check(number, executor):
    program = made(source_of(number))
    compiled = compiled_by(executor, program, check=False)
    for call in range(3):
        x = np.random.default_rng((number, call)).normal(size=(ROWS, COLUMNS))
        value, gradient = vg.func.value_and_grad(compiled)(x)
        wanted, wanted_gradient = vg.func.value_and_grad(program)(vg.Tensor(x))
        np.testing.assert_allclose(float(wanted.detach()), program(x), rtol=1e-10)
        np.testing.assert_allclose(float(value), float(wanted.detach()), rtol=1e-10)
        np.testing.assert_allclose(np.asarray(gradient), wanted_gradient.numpy(), rtol=1e-8, atol=1e-10)
    return compiled


@pytest.mark.usefixtures("verified_ir")
@pytest.mark.parametrize("executor", ["python", pytest.param("interpreted", marks=pytest.mark.slow)])
def test_writes_that_read_their_target(executor):
    ran = sum(check(number, executor).specializations[0].fallback_reason is None for number in range(20))
    assert ran > 15


def test_one_element_arrays_are_read_after_all_additions():

    def program(x):
        rows = x.copy()
        product = np.prod(rows[1], keepdims=True)
        np.add(product, rows[2].copy(), out=rows[2], where=np.array([True, False, True]))
        return (rows * np.arange(9.0).reshape(3, 3)).sum()

    compiled = compiled_by("interpreted", program, check=False)
    for call in range(3):
        x = np.random.default_rng(call).normal(size=(3, 3))
        _, gradient = vg.func.value_and_grad(compiled)(x)
        _, wanted = vg.func.value_and_grad(program)(x)
        np.testing.assert_allclose(np.asarray(gradient), np.asarray(wanted), rtol=1e-12)


def test_broadcast_values_accumulate_in_overlapping_windows():
    base = np.zeros(5)
    add_overlapping(base, 0, (2, 3), (1, 1), np.array([1.0, 2.0, 3.0]))
    assert base.tolist() == [1.0, 3.0, 5.0, 3.0, 0.0]
