"""Programs compiled from their source, beside other compilers: CPU time to compile and to run, and correctness.

    python -m benchmarks.sources [--quick] [--only NAME ...] [--engines NAME,NAME] [--write docs/compile.md]

All times are CPU times, of all threads. "First use" is the first value and gradient, "another size" the first one for
arguments of another size; Numba and JAX have compiled something before. Gradients are compared with those of the
function run eagerly by viewgrad.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import importlib.metadata
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from time import process_time
from typing import Any, Final

import attrs
import numpy as np

import viewgrad as vg
from benchmarks.compiled import IN_C, c_library, in_c
from benchmarks.source_programs import PROGRAMS, SHOWN

__all__ = ["Row", "measure", "table"]

ENGINES: Final = ("source", "trace", "njit forward", "C", "JAX", "JAX, rewritten", "Warp", "Taichi", "CasADi")
MODULES: Final = {"JAX": "jax", "JAX, rewritten": "jax", "Warp": "warp", "Taichi": "taichi", "CasADi": "casadi"}
TRACED: Final = ("holt-winters", "overwritten", "heat", "thomas", "jacobi-1d", "jacobi-2d")  # traces of some seconds
APART: Final = ("Warp", "Taichi", "CasADi")  # each program in a process of its own
ROW: Final = "row: "
Array = np.ndarray[Any, Any]
Both = Callable[..., tuple[float, Sequence[Array]]]


@attrs.define
class Row:
    """The measurements of a program on an engine.

    Arguments:
        program, engine: the names of both.
        first: CPU seconds for the first value and gradient.
        other: the same for another size.
        run: CPU seconds of a run.
        is_right: whether value and gradient are right; None if there is no gradient.
        note: the reason why there are no numbers.
    """

    program: str
    engine: str
    first: float = float("nan")
    other: float = float("nan")
    run: float = float("nan")
    is_right: bool | None = None
    note: str = ""


def measure(name: str, engine: str, is_quick: bool) -> Row | None:
    """Measure a program on an engine; None if the engine has no form of it."""
    _, size, draw = PROGRAMS[name]
    if is_quick:
        size = max(6, size // 10)
    arguments, others = [draw(np.random.default_rng(n), n) for n in (size, size - size // 4)]
    row = Row(name, engine)
    try:
        both = made(name, engine, arguments)
        if both is None:
            return None
        start = process_time()
        both(*arguments)
        row.first = process_time() - start
        if engine != "C":  # the C program is compiled for all sizes
            start = process_time()
            both(*others)
            row.other = process_time() - start
        value, gradients = both(*arguments)
        row.run = _run_time(lambda: both(*arguments), 0.05 if is_quick else 0.3)
    except ModuleNotFoundError as error:
        row.note = f"{error.name} is not installed"
        return row
    if gradients:
        row.is_right = _is_right(name, size, value, gradients)
    return row


def measured_apart(name: str, engine: str, is_quick: bool) -> Row | None:
    """Measure a program in another process, since some compilers cannot share one."""
    command = [sys.executable, "-m", "benchmarks.sources", "--only", name, "--engines", engine, "--rows"]
    done = subprocess.run(command + ["--quick"] * is_quick, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith(ROW)]
    if done.returncode:
        return Row(name, engine, note=f"failed with status {done.returncode}")
    if not lines:
        return None
    return Row(**json.loads(lines[-1].removeprefix(ROW)))


def made(name: str, engine: str, arguments: Sequence[Array]) -> Both | None:
    """Return the function for the value and gradients of a program on an engine; None if there is none.

    Raises:
        ModuleNotFoundError: if the engine is not installed.
    """
    function = PROGRAMS[name][0]
    if engine in ("source", "trace"):
        if engine == "trace" and name not in TRACED:
            return None
        return _ours(function, len(arguments), engine == "trace")
    if engine == "njit forward":
        compiled = importlib.import_module("numba").njit(error_model="numpy")(function)
        return lambda *given: (compiled(*given), ())
    if engine == "C":
        library = c_library()
        if name not in IN_C:
            return None
        if library is None:
            raise ModuleNotFoundError(name="a C compiler")
        return lambda *given: in_c(library, name, given)()
    if importlib.util.find_spec(MODULES[engine]) is None:
        raise ModuleNotFoundError(name=MODULES[engine])
    if engine.startswith("JAX"):
        forms = importlib.import_module("benchmarks.compiled_in_jax").forms_of(name)
        return _in_jax(forms[engine], len(arguments)) if engine in forms else None
    found: Both | None = importlib.import_module(f"benchmarks.sources_in_{engine.lower()}").made(name)
    return found


def _ours(function: Callable[..., Any], count: int, specialize: bool) -> Both:
    executor = "numba" if importlib.util.find_spec("numba") else "python"
    compiled = vg.compile(function, executor=executor, check=False, specialize=specialize)
    both = vg.func.value_and_grad(compiled, tuple(range(count)))

    def run(*given: Any) -> tuple[float, Sequence[Array]]:
        if specialize and run.calls < 2:  # type: ignore[attr-defined]
            run.calls += 1  # type: ignore[attr-defined]
            both(*given)  # which is traced
        value, gradients = both(*given)
        return float(value), [np.asarray(each) for each in gradients]

    run.calls = 0  # type: ignore[attr-defined]
    return run


def _in_jax(function: Callable[..., Any], count: int) -> Both:
    jax = importlib.import_module("jax")
    both = jax.jit(jax.value_and_grad(function, tuple(range(count))))

    def run(*given: Any) -> tuple[float, Sequence[Array]]:
        value, gradients = jax.block_until_ready(both(*given))
        return float(value), [np.asarray(each) for each in gradients]

    return run


def _run_time(work: Callable[[], Any], budget: float) -> float:
    """Return the least CPU time of a run."""
    start = process_time()
    work()
    once = max(process_time() - start, 1e-6)
    number = max(1, int(0.02 / once))
    best = once
    spent = once
    while spent < budget:
        start = process_time()
        for _ in range(number):
            work()
        took = process_time() - start
        spent += max(took, 1e-6)
        best = min(best, took / number)
    return best


def _is_right(name: str, size: int, value: float, gradients: Sequence[Array]) -> bool:
    expected, slopes = _by_eager_run(name, size)
    pairs = [(np.asarray(a), b) for a, b in zip(gradients, slopes)]
    return bool(np.isclose(value, expected, rtol=1e-6)) and all(
        np.allclose(a, b, 1e-5, 1e-6 * np.abs(b).max()) for a, b in pairs
    )


@functools.cache
def _by_eager_run(name: str, size: int) -> tuple[float, list[Array]]:
    """Return the value and gradients of a program, run eagerly."""
    function, _, draw = PROGRAMS[name]
    arguments = draw(np.random.default_rng(size), size)
    value, gradients = vg.func.value_and_grad(function, tuple(range(len(arguments))))(*arguments)
    return float(value), [np.asarray(each) for each in gradients]


def table(rows: Sequence[Row]) -> str:
    """Return the rows as a table in Markdown."""
    lines = [
        "| program | engine | first use, s | another size, s | value and gradient, ms | gradient right |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        if row.note:
            lines.append(f"| {row.program} | {row.engine} | {row.note} | | | |")
            continue
        other = "" if np.isnan(row.other) else f"{row.other:.2g}"
        right = {True: "yes", False: "**no**", None: "forward only"}[row.is_right]
        lines.append(f"| {row.program} | {row.engine} | {row.first:.2g} | {other} | {row.run * 1e3:.3g} | {right} |")
    return "\n".join(lines)


COLUMNS: Final = {
    "first use, s": ("source", "first"), "source": ("source", "run"), "trace": ("trace", "run"),
    "`njit`, forward only": ("njit forward", "run"), "C by hand": ("C", "run"),
    "JAX, first use, s": ("JAX", "first"), "JAX": ("JAX", "run"), "JAX, rewritten": ("JAX, rewritten", "run"),
}  # fmt: skip
BESIDE: Final = ("holt-winters", "overwritten")  # which are written for all engines
CALLED: Final = {
    "source": "viewgrad", "JAX": "JAX (`fori_loop`)", "JAX, rewritten": "JAX, rewritten (`scan`)",
    "Warp": "Warp{version}, CPU", "Taichi": "Taichi{version}, CPU", "CasADi": "CasADi{version}, rewritten (`mapaccum`)",
}  # fmt: skip
PACKAGES: Final = {"Warp": "warp-lang", "Taichi": "taichi", "CasADi": "casadi"}


def tables(rows: Sequence[Row]) -> list[str]:
    """Return the tables of docs/compile.md: all programs, and all engines for some of them."""
    known = {(row.program, row.engine): row for row in rows if not row.note}

    def number(row: Row | None, field: str) -> str:
        value = float("nan") if row is None else getattr(row, field)
        return "" if np.isnan(value) else f"{value:.2g}" if field != "run" else f"{value * 1e3:.3g}"

    lines = [f"| program | {' | '.join(COLUMNS)} |", "|---" * (len(COLUMNS) + 1) + "|"]
    for name, text in SHOWN.items():
        if (name, "source") in known:
            cells = [number(known.get((name, engine)), field) for engine, field in COLUMNS.values()]
            lines.append(f"| {text.format(n=PROGRAMS[name][1])} | {' | '.join(cells)} |")
    others = ["| program | engine | first use, s | another length, s | value and gradient, ms | gradient right |",
              "|---|---|---|---|---|---|"]
    for name in BESIDE:
        for engine, called in CALLED.items():
            row = known.get((name, engine))
            if row is not None:
                numbers = " | ".join(number(row, field) for field in ("first", "other", "run"))
                program = SHOWN[name].partition(",")[0]
                called = called.format(version=_version(engine))
                others.append(f"| {program} | {called} | {numbers} | {'yes' if row.is_right else '**no**'} |")
    return ["\n".join(lines), "\n".join(others)]


def _version(engine: str) -> str:
    """Return the major and minor version of an engine; empty if it is not installed."""
    try:
        return " " + ".".join(importlib.metadata.version(PACKAGES[engine]).split(".")[:2])
    except (KeyError, importlib.metadata.PackageNotFoundError):
        return ""


def write(page: Path, found: Sequence[str]) -> None:
    """Put tables into a page, each in the place of the one with the same first line."""
    lines = page.read_text().splitlines()
    for each in found:
        head, *_ = each.splitlines()
        start = lines.index(head)
        end = next(n for n in range(start, len(lines) + 1) if n == len(lines) or not lines[n].startswith("|"))
        lines[start:end] = each.splitlines()
    page.write_text("\n".join(lines) + "\n")


def warm_up() -> None:
    """Compile a small program with each compiler shared by several engines."""
    if importlib.util.find_spec("numba"):
        importlib.import_module("numba").njit(_one_more)(1.0)
    if importlib.util.find_spec("jax"):
        jax = importlib.import_module("jax")
        jax.config.update("jax_enable_x64", True)
        jax.jit(_one_more)(1.0).block_until_ready()


def _one_more(x: Any) -> Any:
    return x + 1.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; the exit status is 1 if a gradient of viewgrad is wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sources", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--only", action="append", default=[], choices=sorted(PROGRAMS), help="one of the programs")
    known = ",".join(dict.fromkeys(each.partition(",")[0] for each in ENGINES))
    parser.add_argument("--engines", default=known, help="separated by commas")
    parser.add_argument("--write", type=Path, metavar="FILE", help="put the tables into this page, docs/compile.md")
    parser.add_argument("--rows", action="store_true", help="print rows for another process to read")
    options = parser.parse_args(arguments)
    os.environ["VIEWGRAD_CACHE"] = tempfile.mkdtemp(prefix="viewgrad-benchmarks-")  # so that kernels are compiled
    wanted = options.engines.split(",")
    if options.rows:
        row = measure(options.only[0], wanted[0], options.quick)
        print("" if row is None else ROW + json.dumps(attrs.asdict(row)))
        return 0
    warm_up()
    rows: list[Row] = []
    for name in options.only or SHOWN:
        for engine in [each for each in ENGINES if each in wanted or each.partition(",")[0] in wanted]:
            row = (measured_apart if engine in APART else measure)(name, engine, options.quick)
            if row is not None:
                rows.append(row)
                print(table([row]).splitlines()[-1], file=sys.stderr, flush=True)
    print(table(rows))
    print("", *tables(rows), sep="\n\n")
    if options.write:
        write(options.write, tables(rows))
    return 1 if any(row.is_right is False and row.engine in ("source", "trace") for row in rows) else 0


if __name__ == "__main__":
    raise SystemExit(main())
