"""Calls in several threads at the same time."""

from __future__ import annotations

import contextlib
import time
from typing import Final

import numpy as np

from ..baseline import Baseline
from ..operator_under_test import Refused

TITLE: Final = "threads"
FACTORS: Final = (1.0, 0.97, 0.94, 0.91)
LARGEST: Final = 2000  # elements
SECONDS: Final = 0.08  # seconds of computing
# First, the threads switch after each line outside libraries; then they run freely.
TOGETHER: Final = """
libraries = ("viewgrad", "numpy", "scipy", "concurrent", "threading", "abc")
def interleaved(factor):
    pauses = iter(range(100))
    def pause(frame, event, arg):
        if (frame.f_globals.get("__name__") or "").partition(".")[0] in libraries or next(pauses, None) is None:
            return None
        time.sleep(1e-6)
        return pause
    start.wait(10.0)
    sys.settrace(pause)
    try:
        return once(factor)
    finally:
        sys.settrace(None)
start, interval = threading.Barrier(4), sys.getswitchinterval()
sys.setswitchinterval(1e-6)
try:
    with ThreadPoolExecutor(4) as pool:
        together = [*pool.map(interleaved, factors), *pool.map(once, factors * rounds)]
finally:
    sys.setswitchinterval(interval)
""".strip()


def in_threads(baseline: Baseline) -> int:
    """Check that threads calling the operator concurrently get what a single thread gets."""
    subject, example = baseline.subject, baseline.example
    library = subject.operator is not None and not subject.operator.user_defined
    if library or not baseline.outputs or sum(array.size for array in example.arrays) > LARGEST:
        return 0
    script = baseline.script(TITLE, called=False, derived=True)
    script.lines = [line for line in script.lines if not line.startswith("x")]
    leaves = [
        f"    x{k} = vg.Tensor(a{k}{' * factor, requires_grad=True' if k in example.wanted else ''})"
        for k in range(len(example.arrays))
    ]
    paths = ", ".join(f"y{path}.detach().numpy().copy()" for path in baseline.paths)
    script.do(
        "import sys, threading, time",
        "from concurrent.futures import ThreadPoolExecutor",
        "\n".join(
            [
                "def once(factor):",
                *leaves,
                f"    y = {script.expression('x{}.clone()' if subject.written else 'x{}')}",
                f"    {baseline.gradient_line(options='')}",
                f"    return [{paths}, *(np.zeros(()) if one is None else one.numpy() for one in g)]",
            ]
        ),
        f"factors = {list(FACTORS)}",
    )
    began = time.process_time()
    with contextlib.suppress(Refused):
        script.do("alone = [once(factor) for factor in factors]")
    cost = max(time.process_time() - began, 1e-5)
    script.do(f"rounds = {int(min(max(SECONDS / cost, 6), 150))}")
    with contextlib.suppress(Refused):
        script.do("alone = [once(factor) for factor in factors]", TOGETHER)
        names = [f"result {i}" for i in range(len(baseline.paths))]
        names += [f"the gradient with respect to {example.named(k)}" for k in example.wanted]
        for number, found in enumerate(script["together"]):
            for i, (mine, right) in enumerate(zip(found, script["alone"][number % len(FACTORS)], strict=True)):
                rough = baseline.loose(1e-9)
                if mine.shape == right.shape and np.allclose(mine, right, rtol=rough, atol=rough, equal_nan=True):
                    continue
                script.do(
                    f"same = [np.allclose(found[{i}], alone[k % {len(FACTORS)}][{i}], rtol=1e-9, atol=1e-9, "
                    "equal_nan=True) for k, found in enumerate(together)]"
                )
                script.lines.append("assert all(same), same")
                script.fail(f"if four threads call it at the same time, {names[i]} differs from that of one thread")
        return 1
    return 0
