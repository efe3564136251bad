"""Concurrent calls in several threads."""

from __future__ import annotations

import contextlib
from typing import Final

import numpy as np

from ..baseline import Baseline
from ..cpu_time import cpu_seconds
from ..operator_under_test import Refused
from ..script import Script

TITLE: Final = "threads"
FACTORS: Final = (1.0, 0.97, 0.94, 0.91)
LARGEST: Final = 2000  # elements
MOST_LINES: Final = 40  # the number of lines after which the first thread is interrupted
SECONDS: Final = 0.25  # CPU seconds for these interruptions
# One thread runs at a time, and yields to the next one after some lines outside libraries, or after some instructions.
# If a thread does not take its turn because it waits for the lock of another one, turns are abandoned: the others stop
# waiting after many short waits. On a busy machine, one wait may end before the thread whose turn it is has run at all.
IN_TURNS: Final = """
libraries, stuck = {"viewgrad", "numpy", "scipy", *sys.stdlib_module_names}, []
interrupted = []
def in_turns(lengths, event_of):
    turns, unfinished = [threading.Semaphore(0) for _ in lengths], set(range(len(lengths)))
    def let_next_run(k):
        others = [j for j in (*range(k + 1, len(lengths)), *range(k)) if j in unfinished]
        for j in others[:1]:
            turns[j].release()
        return bool(others) and not stuck
    def wait(k):
        if not any(turns[k].acquire(timeout=0.05) for _ in range(20)):
            stuck.append(k)
    def run(k):
        events = itertools.count(1)
        def trace(frame, event, arg):
            if (frame.f_globals.get("__name__") or "").partition(".")[0] in libraries:
                return None
            frame.f_trace_opcodes = event_of == "opcode"
            if event == event_of and next(events) % lengths[k] == 0 and let_next_run(k):
                interrupted.append(k)
                wait(k)
            return trace
        wait(k)
        sys.settrace(trace)
        try:
            return once(factors[k])
        finally:
            sys.settrace(None)
            unfinished.discard(k)
            let_next_run(k)
    with ThreadPoolExecutor(len(lengths)) as pool:
        turns[0].release()
        return [*pool.map(run, range(len(lengths)))]
""".strip()
ALL_AT_ONCE: Final = 'together = in_turns((1, 1, 1, 1), "opcode")'
INTERRUPTED: Final = 'together = in_turns(({}, 10**9), "line")'


def in_threads(baseline: Baseline) -> int:
    """Check that threads calling the operator concurrently compute the same as a single thread."""
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
        "import itertools, sys, threading",
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
    checked = 0
    with contextlib.suppress(Refused):
        script.do("alone = [once(factor) for factor in factors]", IN_TURNS)
        beginning, began = list(script.lines), cpu_seconds()
        for run in (ALL_AT_ONCE, *(INTERRUPTED.format(lines) for lines in range(1, MOST_LINES))):
            script.lines, before = list(beginning), len(script["interrupted"])
            script.do(run)
            _require_same(baseline, script)
            checked = 1
            ended = run != ALL_AT_ONCE and len(script["interrupted"]) == before  # the operator has fewer lines
            if ended or script["stuck"] or cpu_seconds() - began > SECONDS:
                break
    return checked


def _require_same(baseline: Baseline, script: Script) -> None:
    """Check that each thread has computed what it computes alone."""
    names = [f"result {i}" for i in range(len(baseline.paths))]
    names += [f"the gradient with respect to {baseline.example.named(k)}" for k in baseline.example.wanted]
    rough = baseline.loose(1e-9)
    for found, alone in zip(script["together"], script["alone"], strict=False):
        for i, (mine, right) in enumerate(zip(found, alone, strict=True)):
            if mine.shape == right.shape and np.allclose(mine, right, rtol=rough, atol=rough, equal_nan=True):
                continue
            script.do(
                f"same = [np.allclose(found[{i}], right[{i}], rtol=1e-9, atol=1e-9, equal_nan=True) "
                "for found, right in zip(together, alone)]"
            )
            script.lines.append("assert all(same), same")
            threads = "four threads" if len(script["together"]) > 2 else "two threads"
            script.fail(f"if {threads} call it at the same time, {names[i]} differs from the result of a single thread")
