"""Runs NumPy programs that write to arrays in advect and in viewgrad; see the end of docs/comparison.md.

    python docs/peers/source_peers.py viewgrad
    python docs/peers/source_peers.py advect     # pip install advect==0.3.1, Python 3.12 or later
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

X = np.array([1.5, 0.7, 2.0, 0.4])
M = np.array([[4.0, 1.0, 2.0], [1.0, 5.0, 1.0], [2.0, 1.0, 6.0]])


def recurrence(x: Any) -> Any:
    y = x * 0.0
    y[0] = x[0]
    for i in range(1, 4):
        y[i] = y[i - 1] * x[i]
    return y.sum()


def filled(x: Any) -> Any:
    y = np.zeros(4)
    for i in range(4):
        y[i] = x[i] * 2.0
    return y.sum()


def lu(a: Any) -> Any:
    a = a.copy()
    for k in range(3):
        for i in range(k + 1, 3):
            a[i, k] /= a[k, k]
            a[i, k + 1 :] -= a[i, k] * a[k, k + 1 :]
    return np.log(np.abs(np.diag(a))).sum()


def write_through_view(x: Any) -> Any:
    y = x * 1.0
    v = y[1:3]
    v *= x[0]
    return (y * y).sum()


def view_of_written_base(x: Any) -> Any:
    y = x * 1.0
    v = y[1:3]
    y *= 2.0
    return (v * v).sum()


def overwritten_saved_value(x: Any) -> Any:
    y = x * 1.0
    z = y * y
    y *= 3.0
    return z.sum() + y.sum()


def out_argument(x: Any) -> Any:
    y = x * 1.0
    np.multiply(y, x, out=y)
    return y.sum()


def mask(x: Any) -> Any:
    y = x * 1.0
    y[y > 1.0] = 0.0
    return (y * x).sum()


def branch(x: Any) -> Any:
    return (x * x).sum() if x[0] > 1.0 else x.sum()


def transposed_view(x: Any) -> Any:
    t = (x[:, None] * x).copy()
    v = t.T
    v[0] *= x
    return (t * t).sum()


def argument(x: Any) -> Any:
    x[1:] *= x[:-1]
    return x.sum()


PROGRAMS: dict[Callable[..., Any], np.ndarray] = {
    recurrence: X, filled: X, lu: M, write_through_view: X, view_of_written_base: X, overwritten_saved_value: X,
    out_argument: X, mask: X, branch: X, transposed_view: X, argument: X,
}  # fmt: skip


def differences(f: Callable[..., Any], x: np.ndarray, step: float = 1e-6) -> np.ndarray:
    """Return the gradient by central differences."""
    found = np.zeros_like(x)
    for place in np.ndindex(x.shape):
        move = np.zeros_like(x)
        move[place] = step
        found[place] = (float(f(x + move)) - float(f(x - move))) / (2 * step)
    return found


def outcome(run: Callable[[], Any], expected: np.ndarray, tolerance: float = 1e-5) -> str:
    """Run a program, and compare its gradient with finite differences."""
    try:
        found = np.asarray(run())
    except Exception as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())[:120]}"
    return "the gradient" if np.allclose(found, expected, atol=tolerance) else f"wrong: {found} for {expected}"


def by_function(library: str) -> None:
    """Run the programs in a library that differentiates Python functions, and measure how a loop of writes grows."""
    if library == "advect":
        import advect

        grad, hessian = advect.grad, advect.hessian
    else:
        from viewgrad import func

        grad, hessian = func.grad, func.hessian
    for f, x in PROGRAMS.items():
        print(f"{f.__name__:26}{outcome(lambda f=f, x=x: grad(f)(x.copy()), differences(f, x))}")
    rows = [(differences(recurrence, X + e) - differences(recurrence, X - e)) / 2e-4 for e in np.eye(4) * 1e-4]
    print(f"{'second derivatives':26}{outcome(lambda: hessian(recurrence)(X.copy()), np.array(rows), 1e-2)}")
    for n in (200, 400, 800, 1600):

        def fill(x: Any, n: int = n) -> Any:
            out = x * 0.0
            for i in range(n):
                out[i] = x[i] * 2.0
            return out.sum()

        gradient, x = grad(fill), np.ones((n, 100))
        gradient(x)
        began = time.process_time()
        gradient(x)
        print(f"{n} rows written one by one: {time.process_time() - began:.4f} s of CPU time")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    by_function(sys.argv[1])
