"""Kernels compiled by Numba: shared between programs, cached on disk, with a fallback if Numba fails."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import warnings

import numpy as np
import pytest

import viewgrad as vg
from viewgrad.compiler.backends import numba_cache

pytestmark = [
    pytest.mark.skipif(not importlib.util.find_spec("numba"), reason="needs Numba"),
    pytest.mark.numba,
]


def discounted(x):
    y = vg.zeros(len(x))
    y[0] = x[0]
    for t in range(1, len(x)):
        y[t] = 0.5 * y[t - 1] + x[t]
    return (y * y).sum()


def called(compiled, count=3):
    x = vg.Tensor(np.arange(6.0), requires_grad=True)
    for _ in range(count):
        value = compiled(x)
    return float(value.detach()), vg.autograd.grad(value, x)[0].numpy()


def test_programs_that_numba_cannot_compile_run_in_python(monkeypatch):
    monkeypatch.setattr("viewgrad.compiler.backends.numba_cache.LINES", 3)
    compiled = vg.compile(discounted, executor="numba")
    value, gradient = called(compiled)
    wanted, wanted_gradient = called(discounted, 1)
    assert value == pytest.approx(wanted, rel=1e-14)
    np.testing.assert_allclose(gradient, wanted_gradient)
    assert "python executor" in compiled.explain()
    assert "as Python: its source has" in compiled.explain()


def test_programs_of_one_source_share_their_kernels():
    functions = [vg.compile(discounted, executor="numba") for _ in range(2)]
    for compiled in functions:
        called(compiled)
    first, second = [compiled.specializations[0].program for compiled in functions]
    assert first.code.forward is second.code.forward
    assert first.code.backward is second.code.backward


def test_kernels_are_kept_on_disk_for_other_processes(tmp_path, monkeypatch):
    native = pytest.importorskip("viewgrad.compiler.backends.numba_cache")
    monkeypatch.setenv("VIEWGRAD_CACHE", str(tmp_path))
    native._shared.cache_clear()
    wanted = called(vg.compile(discounted, executor="numba"))
    assert len(list(tmp_path.glob("kernel_*.py"))) == 2
    native._shared.cache_clear()  # simulates another process
    compiled = vg.compile(discounted, executor="numba")
    found = called(compiled)
    assert found[0] == wanted[0]
    np.testing.assert_array_equal(found[1], wanted[1])
    assert sum(compiled.specializations[0].program.code.forward.stats.cache_hits.values()) == 1
    native._shared.cache_clear()
    for path in tmp_path.glob("__pycache__/*.nbc"):
        path.write_bytes(b"spoilt")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert called(vg.compile(discounted, executor="numba"))[0] == wanted[0]
    native._shared.cache_clear()


IN_ANOTHER_PROCESS = """
import numpy as np
import viewgrad as vg
from viewgrad.compiler.backends import numba_cache

def program(x):
    total = vg.zeros(1)
    y = x * 1.0
    for row in range(1, len(x)):
        y[row] = np.maximum(np.sqrt(np.abs(y[row - 1])) ** 1.5, x[row]) % 3.0 + np.floor(x[row]) + np.sign(x[row])
        total[0] += y[row].sum() + np.logaddexp(x[row], y[row]).mean()
    return total[0] + np.exp2(x).sum() + (x @ x.T).sum()

x = vg.Tensor(np.linspace(-2.0, 2.0, 1500).reshape(5, 300), requires_grad=True)
compiled = vg.compile(program, executor="numba", specialize=True)  # Python 3.13 keeps the source of `-c`
for _ in range(3):
    value = compiled(x)
(gradient,) = vg.autograd.grad(value, [x])
kernels = [compiled.specializations[0].program.code.forward, compiled.specializations[0].program.code.backward]
print(repr(float(value.detach())), repr(float(gradient.sum())), sum(sum(k.stats.cache_hits.values()) for k in kernels))
"""


def test_kernels_from_disk_run_in_another_process(tmp_path):
    # Numba cannot load recursive functions: LLVM aborts the process.
    environment = {**os.environ, "VIEWGRAD_CACHE": str(tmp_path)}
    found = [
        subprocess.run(
            [sys.executable, "-c", IN_ANOTHER_PROCESS], env=environment, capture_output=True, text=True, check=True
        ).stdout.split()
        for _ in range(2)
    ]
    assert found[0][:2] == found[1][:2]
    assert [line[2] for line in found] == ["0", "2"]


def test_the_oldest_kernels_on_disk_are_deleted(tmp_path, monkeypatch):
    native = pytest.importorskip("viewgrad.compiler.backends.numba_cache")
    monkeypatch.setenv("VIEWGRAD_CACHE", str(tmp_path))
    monkeypatch.setattr(native, "KEPT", 3)
    for number in range(6):
        assert native.source_file(f"def kernel():\n    return {number}\n") is not None
    assert len(list(tmp_path.glob("kernel_*.py"))) <= 4


def test_numbers_carried_from_one_iteration_to_the_next_are_not_read_again():
    compiled = vg.compile(discounted, executor="python")
    value, gradient = called(compiled)
    wanted, wanted_gradient = called(discounted, 1)
    assert value == pytest.approx(wanted, rel=1e-14)
    np.testing.assert_allclose(gradient, wanted_gradient)
    program = compiled.specializations[0].program
    assert "h1" in program.program.bases
    assert not program.tapes


def test_kernels_are_only_kept_in_private_folders(tmp_path, monkeypatch):
    own, open_to_all = tmp_path / "new" / "own", tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    assert numba_cache._is_own(own) and own.stat().st_mode & 0o777 == 0o700
    with pytest.warns(UserWarning, match="is writable by others"):
        assert not numba_cache._is_own(open_to_all)
    monkeypatch.setattr(numba_cache.os, "getuid", lambda: os.stat(own).st_uid + 1)
    numba_cache._is_own.cache_clear()
    with pytest.warns(UserWarning, match="belongs to another user"):
        assert not numba_cache._is_own(own)
    numba_cache._is_own.cache_clear()
