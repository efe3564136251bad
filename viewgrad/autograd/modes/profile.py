"""Profiles of the time of a program and its backward passes, by operator and by line.

While a profile is active, the graph is run by `ProfiledTask`: the default engine, one node at a time.
"""

from __future__ import annotations

import functools
import json
import os
import threading
from collections.abc import Callable
from heapq import heappop
from time import perf_counter_ns
from types import TracebackType
from typing import Any, Literal

import attrs

from ...tensor.async_safety import isolated
from ...tensor.creation_sites import Line, line_here, line_of, note, step_name
from ...tensor.interceptors import Call, feature
from ...tensor.modes import PROFILE, ModeSwitch
from ...tensor.node import Node, node_of
from ...tensor.tensor import Tensor
from ...tensor.trace_hooks import PROFILER
from ...views.copy_slices import CopySlices
from ..fast_engine import FastTask
from ..text_tables import UNKNOWN_LINE, line_text, table_text


@attrs.define
class ProfileRow:
    """The counts of a profile for one operator, or for one line.

    Attributes:
        name: the operator, or a file and a line number.
        calls: the number of calls.
        forward: their time in seconds, excluding nested calls that have their own rows.
        steps: the number of backward steps.
        backward: their time in seconds.
        copied: the number of bytes saved for backward that were copied before they were overwritten.
    """

    name: str
    calls: int = 0
    forward: float = 0.0
    steps: int = 0
    backward: float = 0.0
    copied: int = 0

    def add(self, other: ProfileRow) -> None:
        """Add the counts of another row."""
        self.calls += other.calls
        self.forward += other.forward
        self.steps += other.steps
        self.backward += other.backward
        self.copied += other.copied

    def cells(self, name: str) -> tuple[Any, ...]:
        """Return the cells of the row in a printed table."""
        forward, backward = (f"{seconds * 1e3:.3f}" for seconds in (self.forward, self.backward))
        return self.calls, forward, self.steps, backward, self.copied, name


class profile:
    """Count and time the operator calls of a program and its backward steps: `with profile() as p:`.

    `print(p)` shows two tables, whose rows are `p.operators` and `p.lines`, and `p.save_trace(path)` writes a file for
    https://ui.perfetto.dev. Times exclude the overhead of the profile. A backward step is attributed to the operator
    and the line that created it, if that was inside the profile. A compiled function counts as one call. Backward
    passes under `detect_anomaly()` or `plain_engine()` are not timed.

    Arguments:
        trace: whether to record the start of each call, for `save_trace`. This takes about 200 bytes per call.

    Example:
        >>> import viewgrad as vg
        >>> x = vg.Tensor([1.0, 2.0, 3.0], requires_grad=True)
        >>> with vg.autograd.profile() as p:
        ...     y = x.exp()
        ...     y *= x
        ...     y.sum().backward()
        >>> [(row.name, row.calls, row.steps, row.copied) for row in p.operators if row.calls]
        [('exp', 1, 1, 0), ('mul_', 1, 1, 24), ('sum', 1, 1, 0)]
    """

    def __init__(self, *, trace: bool = True) -> None:
        self._switch = ModeSwitch(on=PROFILE)
        self._outer: list[Any] = []  # the enclosing profiles
        self._keep_trace = trace
        self._operators: dict[str, ProfileRow] = {}
        self._lines: dict[Line | None, ProfileRow] = {}
        self._events: list[tuple[str, bool, Line | None, int, int, int]] = []
        self._running = _Running()
        self._started = perf_counter_ns()

    def __enter__(self) -> profile:
        self._outer.append(PROFILER.get(None))
        PROFILER.set(self)
        self._switch.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._switch.__exit__(kind, error, at)
        PROFILER.set(self._outer.pop())

    # -- events --------------------------------------------------------------------------------------------------------

    def alone(self, name: str, run: Callable[[], Any]) -> Any:
        """Count `run` as a single call, including everything it calls, and return its result."""

        def run_untimed() -> Any:
            with ModeSwitch(off=PROFILE):
                return run()

        result = self._timed(name, False, line_here(), functools.partial(isolated, run_untimed))
        for output in result if isinstance(result, tuple | list) else (result,):
            if isinstance(output, Tensor) and output._edge is not None:
                self._note(node_of(output._edge), name)
        return result

    def call(self, call: Call, run: Callable[[], Any]) -> Any:
        """Count a call and return its result."""
        result = self._timed(call.name(), False, line_here(), run)
        for node in (call.node, call.history):
            if node is not None:
                self._note(node, call.name())
        return result

    def step(self, name: str, line: Line | None, run: Callable[[], Any]) -> None:
        """Count a step of a backward pass for an operator and a line."""
        self._timed(name, True, line, run)

    def copied(self, nbytes: int, writer: str) -> None:
        """Count bytes of saved values that were copied because `writer` is about to overwrite them."""
        self._operator("copy_" if writer == "__setitem__" else writer).copied += nbytes
        self._line(line_here()).copied += nbytes

    def _note(self, node: Node, name: str) -> None:
        note(node)
        node.metadata.setdefault("operator", name)

    def _timed(self, name: str, backward: bool, line: Line | None, run: Callable[[], Any]) -> Any:
        running = self._running
        outer = running.inside
        running.inside = 0
        started = perf_counter_ns()
        try:
            return run()
        finally:
            elapsed = perf_counter_ns() - started
            own = (elapsed - running.inside) * 1e-9
            running.inside = outer + elapsed
            for row in (self._operator(name), self._line(line)):
                if backward:
                    row.steps += 1
                    row.backward += own
                else:
                    row.calls += 1
                    row.forward += own
            if self._keep_trace:
                self._events.append((name, backward, line, started, elapsed, threading.get_ident()))

    def _operator(self, name: str) -> ProfileRow:
        row = self._operators.get(name)
        return row if row is not None else self._operators.setdefault(name, ProfileRow(name))

    def _line(self, line: Line | None) -> ProfileRow:
        row = self._lines.get(line)
        if row is None:
            name = UNKNOWN_LINE if line is None else f"{line[0]}:{line[1]}"
            row = self._lines.setdefault(line, ProfileRow(name))
        return row

    # -- reports -------------------------------------------------------------------------------------------------------

    @property
    def operators(self) -> list[ProfileRow]:
        """A list with a row for each operator, in the order of their first calls."""
        return list(self._operators.values())

    @property
    def lines(self) -> list[ProfileRow]:
        """A list with a row for each line of the user's program, in the order of their first calls."""
        return list(self._lines.values())

    def table(self, by: Literal["operator", "line"] = "operator", limit: int = 20) -> str:
        """Return the rows as a table, the slowest first.

        Arguments:
            by: the kind of rows.
            limit: the number of rows to show.

        Returns:
            A string of several lines.
        """
        if by not in ("operator", "line"):
            raise ValueError(f"by must be 'operator' or 'line', not {by!r}")
        found: dict[Any, ProfileRow] = dict(self._operators if by == "operator" else self._lines)
        total = ProfileRow("in all")
        for row in found.values():
            total.add(row)
        ordered = sorted(found.items(), key=lambda item: -(item[1].forward + item[1].backward))
        rows = [row.cells(key if by == "operator" else line_text(key)) for key, row in ordered]
        head = ("calls", "forward ms", "steps", "backward ms", "bytes copied", by)
        return table_text(head, rows, total.cells(total.name), limit)

    def __str__(self) -> str:
        return f"{self.table('operator')}\n\n{self.table('line')}"

    def save_trace(self, path: str | os.PathLike[str]) -> None:
        """Write a timeline of all calls and backward steps for https://ui.perfetto.dev.

        Arguments:
            path: the file to write, in Chrome's JSON trace format.

        Raises:
            ValueError: if the profile was created with `trace=False`.
        """
        if not self._keep_trace:
            raise ValueError("this profile has no record of individual calls; create it with trace=True")
        process = os.getpid()
        events: list[dict[str, Any]] = [
            {"name": "process_name", "ph": "M", "pid": process, "args": {"name": "viewgrad"}}
        ]
        for name, backward, line, started, elapsed, thread in self._events:
            events.append(
                {
                    "name": name,
                    "cat": "backward" if backward else "forward",
                    "ph": "X",
                    "ts": (started - self._started) / 1000,
                    "dur": elapsed / 1000,
                    "pid": process,
                    "tid": thread,
                    "args": {"line": UNKNOWN_LINE if line is None else f"{line[0]}:{line[1]}"},
                }
            )
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"traceEvents": events, "displayTimeUnit": "ns"}, file)


class _Running(threading.local):
    """The nanoseconds spent in calls nested inside the current one, by thread."""

    inside = 0


@feature(PROFILE, Call)
def timed(call: Call, run: Callable[[], Any]) -> Any:
    """Count and time a call for the profile."""
    profiler: Any = PROFILER.get()
    return profiler.call(call, run)


class ProfiledTask(FastTask):
    """A run of the engine that times every node for a profile."""

    __slots__ = ()

    def run(self) -> None:
        """Run every node that is ready, and every node that becomes ready."""
        profiler = PROFILER.get()
        while self.ready:
            node = heappop(self.ready)[1]
            profiler.step(_operator_of(node), line_of(node), functools.partial(self.run_node, node))

    def finish(self) -> None:
        """Accumulate the gradients of the leaves that were reached."""
        PROFILER.get().step("accumulate_grad", line_here(), super().finish)


def _operator_of(node: Node) -> str:
    """Return the name of the operator of a node, with an underscore if it wrote in place."""
    noted: str | None = getattr(node, "_metadata", {}).get("operator")
    if noted is not None:
        return noted
    if isinstance(node, CopySlices):
        return f"{_operator_of(node.fn).removesuffix('_')}_"
    name = step_name(node.name()).removesuffix("_in_place")
    return f"{name}_" if node.inplace else name
