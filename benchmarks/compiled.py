"""Compiled programs: value and gradient, run eagerly, compiled to Python or by Numba, in C by hand, JAX and PyTorch.

    python -m benchmarks.compiled [--quick] [--only NAME ...]

C is compiled with -O2, if there is a compiler. Programs are measured once all engines have been found to agree.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib
import importlib.util
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import attrs
import numpy as np

import viewgrad as vg
from benchmarks.measuring import Effort, Timing, measure_in_turn
from benchmarks.progress import run_steps
from benchmarks.source_programs import PROGRAMS as ALL

__all__ = ["CompiledTimes", "measure_compiled", "rendered"]

Array = np.ndarray[Any, Any]


CHOSEN: Final = (
    "holt-winters", "soft-dtw", "heat", "row-fill", "recurrence", "cholesky", "thomas", "hmm", "kalman", "bodies",
    "alignment", "lu-panels", "gauss-seidel", "rnn",
)
PROGRAMS: Final = {name: ALL[name] for name in CHOSEN}


# -- in C, by hand -----------------------------------------------------------------------------------------------------

C_SOURCE: Final = r"""
#include <math.h>
#include <stdlib.h>
#include <string.h>
#define M 52
double holt_winters(const double *p, const double *y, long n, double *gp, double *gy) {
  double al = p[0], be = p[1], ga = p[2], loss = 0, da = 0, db = 0, dg = 0;
  double *L = calloc(n, 8), *T = calloc(n, 8), *S = calloc(n + M, 8);
  double *dL = calloc(n, 8), *dT = calloc(n, 8), *dS = calloc(n + M, 8);
  L[0] = y[0];
  for (long t = 1; t < n; t++) {
    double e = y[t] - (L[t-1] + T[t-1] + S[t]);
    loss += e * e;
    L[t] = al * (y[t] - S[t]) + (1 - al) * (L[t-1] + T[t-1]);
    T[t] = be * (L[t] - L[t-1]) + (1 - be) * T[t-1];
    S[t+M] = ga * (y[t] - L[t]) + (1 - ga) * S[t];
  }
  memset(gy, 0, n * 8);
  for (long t = n - 1; t > 0; t--) {
    double g = dS[t+M];
    dg += g * (y[t] - L[t] - S[t]); gy[t] += ga * g; dL[t] -= ga * g; dS[t] += (1 - ga) * g;
    g = dT[t];
    db += g * (L[t] - L[t-1] - T[t-1]); dL[t] += be * g; dL[t-1] -= be * g; dT[t-1] += (1 - be) * g;
    g = dL[t];
    da += g * (y[t] - S[t] - L[t-1] - T[t-1]); gy[t] += al * g; dS[t] -= al * g;
    dL[t-1] += (1 - al) * g; dT[t-1] += (1 - al) * g;
    double e = 2 * (y[t] - (L[t-1] + T[t-1] + S[t]));
    gy[t] += e; dL[t-1] -= e; dT[t-1] -= e; dS[t] -= e;
  }
  gy[0] += dL[0];
  gp[0] = da; gp[1] = db; gp[2] = dg;
  free(L); free(T); free(S); free(dL); free(dT); free(dS);
  return loss;
}
double soft_dtw(const double *D, long n, double *gD) {
  long m = n + 1;
  double *R = malloc(m * m * 8), *dR = calloc(m * m, 8), *E = malloc(n * n * 32);
  for (long i = 0; i < m * m; i++) R[i] = 1e3;
  R[0] = 0;
  for (long i = 1; i <= n; i++) for (long j = 1; j <= n; j++) {
    double *e = E + 4 * ((i-1) * n + j - 1);
    e[0] = exp(-R[(i-1)*m+j-1]); e[1] = exp(-R[(i-1)*m+j]); e[2] = exp(-R[i*m+j-1]);
    e[3] = e[0] + e[1] + e[2] + 1e-300;
    R[i*m+j] = D[(i-1)*n+j-1] - log(e[3]);
  }
  dR[m*m-1] = 1;
  for (long i = n; i > 0; i--) for (long j = n; j > 0; j--) {
    double g = dR[i*m+j], *e = E + 4 * ((i-1) * n + j - 1);
    gD[(i-1)*n+j-1] = g;
    g /= e[3];
    dR[(i-1)*m+j-1] += g * e[0]; dR[(i-1)*m+j] += g * e[1]; dR[i*m+j-1] += g * e[2];
  }
  double r = R[m*m-1];
  free(R); free(dR); free(E);
  return r;
}
double heat(const double *u0, long n, double *g) {
  double *u = malloc(n * n * 8), *w = malloc(n * n * 8), loss = 0;
  memcpy(u, u0, n * n * 8);
  for (int s = 0; s < 100; s++) {
    for (long i = 1; i < n - 1; i++) for (long j = 1; j < n - 1; j++) { long k = i * n + j;
      w[k] = u[k] + 0.1 * (u[k+n] + u[k-n] + u[k+1] + u[k-1] - 4 * u[k]); }
    for (long i = 1; i < n - 1; i++) memcpy(u + i * n + 1, w + i * n + 1, (n - 2) * 8);
  }
  for (long k = 0; k < n * n; k++) { loss += u[k] * u[k]; g[k] = 2 * u[k]; }
  for (int s = 0; s < 100; s++) {
    for (long i = 1; i < n - 1; i++) for (long j = 1; j < n - 1; j++) { long k = i * n + j;
      w[k] = g[k]; g[k] = 0.6 * g[k]; }
    for (long i = 1; i < n - 1; i++) for (long j = 1; j < n - 1; j++) { long k = i * n + j;
      double h = 0.1 * w[k]; g[k+n] += h; g[k-n] += h; g[k+1] += h; g[k-1] += h; }
  }
  free(u); free(w);
  return loss;
}
double recurrence(const double *x, const double *a, long n, long m, double *gx, double *ga) {
  double *y = malloc(n * m * 8), loss = 0, d = 0;
  memcpy(y, x, m * 8);
  for (long k = m; k < n * m; k++) y[k] = *a * y[k-m] + x[k];
  for (long k = 0; k < n * m; k++) { loss += y[k] * y[k]; gx[k] = 2 * y[k]; }
  for (long k = n * m - 1; k >= m; k--) { d += gx[k] * y[k-m]; gx[k-m] += *a * gx[k]; }
  *ga = d;
  free(y);
  return loss;
}
double row_fill(const double *x, long n, long m, double *gx) {
  double *y = malloc(n * m * 8), loss = 0;
  for (long k = 0; k < n * m; k++) y[k] = x[k] * 2.0;
  for (long k = 0; k < n * m; k++) { loss += y[k]; gx[k] = 2.0; }
  free(y);
  return loss;
}
"""
IN_C: Final = {
    "holt-winters": "holt_winters", "soft-dtw": "soft_dtw", "heat": "heat", "recurrence": "recurrence",
    "row-fill": "row_fill",
}


@cache
def c_library() -> Any:
    """Return the programs in C, or None if there is no compiler."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        return None
    folder = Path(tempfile.mkdtemp(prefix="viewgrad-benchmarks-"))
    (folder / "programs.c").write_text(C_SOURCE)
    made = folder / "programs.so"
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", made, folder / "programs.c", "-lm"], check=True)
    return ctypes.CDLL(str(made))


def in_c(library: Any, name: str, arrays: Sequence[Array]) -> Callable[[], tuple[float, list[Array]]]:
    """Return a function for the value and gradients of a program in C."""
    function = getattr(library, IN_C[name])
    function.restype = ctypes.c_double
    shape = arrays[-1].shape if name == "holt-winters" else arrays[0].shape
    sizes = [ctypes.c_long(n) for n in (shape[:1] if name in ("holt-winters", "soft-dtw", "heat") else shape)]

    def run() -> tuple[float, list[Array]]:
        gradients = [np.empty(array.shape) for array in arrays]
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in arrays]
        value = function(*pointers, *sizes, *[ctypes.c_void_p(g.ctypes.data) for g in gradients])
        return value, gradients

    return run


# -- in JAX and PyTorch ------------------------------------------------------------------------------------------------


def in_jax(name: str, arrays: Sequence[Array]) -> dict[str, Callable[[], tuple[float, list[Array]]]]:
    """Return the programs for JAX, if it is installed: as in the textbook, and rewritten for it."""
    if importlib.util.find_spec("jax") is None:
        return {}
    programs = importlib.import_module("benchmarks.compiled_in_jax")
    return programs.jitted(name, arrays)  # type: ignore[no-any-return]


def in_torch(name: str, arrays: Sequence[Array]) -> dict[str, Callable[[], tuple[float, list[Array]]]]:
    """Return the programs of rows and planes that PyTorch's eager engine supports, if it is installed."""
    if name not in IN_TORCH or importlib.util.find_spec("torch") is None:
        return {}
    torch = importlib.import_module("torch")
    function = IN_TORCH[name]
    leaves = [torch.tensor(array, requires_grad=True) for array in arrays]

    def run() -> tuple[float, list[Array]]:
        value = function(torch, *leaves)
        return value.item(), [gradient.numpy() for gradient in torch.autograd.grad(value, leaves)]

    return {"PyTorch": run}


def heat_in_torch(torch: Any, u: Any) -> Any:
    """Run the heat equation in place: sums save nothing, so PyTorch can differentiate it."""
    u = u.clone()
    for _ in range(100):
        u[1:-1, 1:-1] += 0.1 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])
    return (u * u).sum()


def recurrence_in_torch(torch: Any, x: Any, a: Any) -> Any:
    """Run the recurrence with a list of rows, since PyTorch rejects the table."""
    rows = [x[0]]
    for i in range(1, len(x)):
        rows.append(a * rows[-1] + x[i])
    y = torch.stack(rows)
    return (y * y).sum()


def row_fill_in_torch(torch: Any, x: Any) -> Any:
    """Fill the table row by row."""
    y = torch.zeros_like(x)
    for i in range(len(x)):
        y[i] = x[i] * 2.0
    return y.sum()


IN_TORCH: Final = {"heat": heat_in_torch, "recurrence": recurrence_in_torch, "row-fill": row_fill_in_torch}


# -- measuring ---------------------------------------------------------------------------------------------------------


@attrs.define
class CompiledTimes:
    """The times of one program on each engine, in seconds."""

    program: str
    times: dict[str, Timing]
    notes: list[str] = attrs.Factory(list)


def ours(function: Callable[..., Any], arrays: Sequence[Array]) -> Callable[[], tuple[float, list[Array]]]:
    """Return a function for the value and gradients of a compiled program."""
    leaves = [vg.Tensor(array, requires_grad=True) for array in arrays]

    def run() -> tuple[float, list[Array]]:
        value = function(*leaves)
        return value.detach().item(), [gradient._array for gradient in vg.autograd.grad(value, leaves)]

    return run


def by_function(compiled: Callable[..., Any], arrays: Sequence[Array]) -> Callable[[], tuple[float, list[Array]]]:
    """Return `value_and_grad` of a compiled program, which has the least overhead."""
    function = vg.func.value_and_grad(compiled, tuple(range(len(arrays))))
    given = [vg.Tensor(array) for array in arrays]

    def run() -> tuple[float, list[Array]]:
        value, gradients = function(*given)
        return value.item(), [gradient._array for gradient in gradients]

    return run


def measure_compiled(name: str, quick: bool) -> CompiledTimes:
    """Measure a program, after all engines were found to agree."""
    library = c_library()
    function, size, draw = PROGRAMS[name]
    arrays = draw(np.random.default_rng(0), max(5, size // 8) if quick else size)
    eager: Any = vg.adopt(function)
    engines: dict[str, Callable[[], tuple[float, list[Array]]]] = {"eager": ours(eager, arrays)}
    for executor in ("python", "numba"):
        try:
            compiled = vg.compile(function, executor=executor, check=False)
        except ModuleNotFoundError:
            continue
        engines[f"compiled, {executor}"] = by_function(compiled, arrays)
    if library is not None and name in IN_C:
        engines["C"] = in_c(library, name, arrays)
    engines |= in_jax(name, arrays) | in_torch(name, arrays)
    notes = []
    value, gradients = engines["eager"]()
    for engine, run in engines.items():
        for _ in range(3):
            theirs, their_gradients = run()
        pairs = zip(their_gradients, gradients, strict=True)
        if not np.isclose(theirs, value, rtol=1e-6) or not all(np.allclose(g, h, 1e-5, 1e-6) for g, h in pairs):
            notes.append(f"{engine} disagrees")
    effort = Effort(3, 0.005, 0.3) if quick else Effort(9, 0.01, 2.0)
    return CompiledTimes(name, measure_in_turn(engines, effort), notes)


def rendered(found: Sequence[CompiledTimes]) -> str:
    """Return the times as lines of text: medians, in milliseconds."""
    lines = []
    for each in found:
        times = ", ".join(f"{engine} {timing.median * 1e3:.3f}" for engine, timing in each.times.items())
        lines.append(f"{each.program:14s} {times} ms{''.join(f'; {note}' for note in each.notes)}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compiled", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes and few repeats")
    parser.add_argument("--only", action="append", default=[], choices=sorted(PROGRAMS), help="one of the programs")
    options = parser.parse_args(arguments)
    found: list[CompiledTimes] = []

    def measure(name: str) -> None:
        found.append(measure_compiled(name, options.quick))

    run_steps([(name, partial(measure, name)) for name in options.only or PROGRAMS])
    print(rendered(found))
    return 1 if any(each.notes for each in found) else 0


if __name__ == "__main__":
    raise SystemExit(main())
