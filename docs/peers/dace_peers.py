"""Runs the programs of source_peers.py that DaCe's types can express through DaCe's backward pass.

    python docs/peers/dace_peers.py       # pip install dace==2.0.0b1; needs a C++ compiler
"""

from __future__ import annotations

import warnings
from typing import Any

import dace
import numpy as np
from dace.autodiff import add_backward_pass
from source_peers import M, X, differences, outcome

Vector, Matrix, Scalar = dace.float64[4], dace.float64[3, 3], dace.float64[1]


@dace.program
def recurrence(x: Vector, S: Scalar):
    y = np.zeros((4,), dtype=np.float64)
    y[0] = x[0]
    for i in range(1, 4):
        y[i] = y[i - 1] * x[i]
    S[0] = np.sum(y)


@dace.program
def lu(x: Matrix, S: Scalar):
    a = np.copy(x)
    for k in range(3):
        for i in range(k + 1, 3):
            a[i, k] = a[i, k] / a[k, k]
            for j in range(k + 1, 3):
                a[i, j] = a[i, j] - a[i, k] * a[k, j]
    S[0] = np.log(a[0, 0]) + np.log(a[1, 1]) + np.log(a[2, 2])


@dace.program
def write_through_view(x: Vector, S: Scalar):
    y = x * 1.0
    v = y[1:3]
    v *= x[0]
    S[0] = np.sum(y * y)


@dace.program
def view_of_written_base(x: Vector, S: Scalar):
    y = x * 1.0
    v = y[1:3]
    y *= 2.0
    S[0] = np.sum(v * v)


@dace.program
def overwritten_saved_value(x: Vector, S: Scalar):
    y = x * 1.0
    z = y * y
    y *= 3.0
    S[0] = np.sum(z) + np.sum(y)


@dace.program
def mask(x: Vector, S: Scalar):
    y = x * 1.0
    y[y > 1.0] = 0.0
    S[0] = np.sum(y * x)


@dace.program
def branch(x: Vector, S: Scalar):
    if x[0] > 1.0:
        S[0] = np.sum(x * x)
    else:
        S[0] = np.sum(x)


@dace.program
def argument(x: Vector, S: Scalar):
    for i in range(1, 4):
        x[i] = x[i] * x[i - 1]
    S[0] = np.sum(x)


MEANINGS = {
    recurrence: lambda x: np.cumprod(x).sum(),
    lu: lambda x: np.log(np.linalg.det(x)),
    write_through_view: lambda x: x[0] ** 2 + x[3] ** 2 + ((x[1:3] * x[0]) ** 2).sum(),
    view_of_written_base: lambda x: ((2 * x[1:3]) ** 2).sum(),
    overwritten_saved_value: lambda x: (x * x).sum() + 3 * x.sum(),
    mask: lambda x: (x * x * (x <= 1)).sum(),
    branch: lambda x: (x * x).sum(),
    argument: lambda x: np.cumprod(x).sum(),
}


def gradient(program: Any, x: np.ndarray) -> np.ndarray:
    """Return the gradient that DaCe computes."""
    sdfg = program.to_sdfg(simplify=True)
    add_backward_pass(sdfg=sdfg, inputs=["x"], outputs=["S"])
    found = np.zeros_like(x)
    sdfg(x=x.copy(), S=np.zeros(1), gradient_x=found, gradient_S=np.ones(1))
    return found


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for program, meaning in MEANINGS.items():
        x = M if program is lu else X
        print(program.f.__name__, outcome(lambda program=program, x=x: gradient(program, x), differences(meaning, x)))
