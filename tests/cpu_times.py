"""A pytest plugin that reports the CPU time of tests, and the files that exceed their budget.

CPU time, child processes included, does not depend on the load of the machine. No test fails because of it.

    pytest --cpu-times=out.json    # keep the CPU seconds of each test, for `python tests/cpu_times.py out.json`
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from selection import BUDGET, BUDGETS, function_of

SLOWEST = 10


def seconds_of_cpu() -> float:
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


class CpuTimes:
    """Measures tests in their workers, and sums up the reports."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.seconds: Counter[str] = Counter()
        self.started = 0.0

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.started = seconds_of_cpu()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
        report = yield
        if call.when == "teardown":
            report.user_properties.append(("cpu", seconds_of_cpu() - self.started))
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "teardown":
            self.seconds[report.nodeid] += dict(report.user_properties)["cpu"]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.path is not None:
            self.path.write_text(json.dumps(self.seconds, indent=0))
        if len(self.seconds) < 100:  # a run of only a few tests
            return
        terminalreporter.section("CPU time")
        for line in summary(self.seconds):
            terminalreporter.write_line(line)


def summary(seconds: dict[str, float]) -> Iterator[str]:
    """Yield lines about the slowest tests and the files that exceed their budget."""
    yield f"{sum(seconds.values()):.0f} s in {len(seconds)} tests; the slowest {SLOWEST}:"
    for test, cost in Counter(seconds).most_common(SLOWEST):
        yield f"{cost:8.2f} s  {test}"
    for file, cost in by_file(seconds).most_common():
        allowed = BUDGETS.get(Path(file).name, BUDGET)
        if cost > allowed:
            yield f"over its budget of {allowed:g} s: {file}, {cost:.1f} s"


def by_file(seconds: dict[str, float]) -> Counter[str]:
    found: Counter[str] = Counter()
    for test, cost in seconds.items():
        found[test.partition("::")[0]] += cost
    return found


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cpu-times", type=Path, metavar="FILE", help="write the CPU seconds of each test to a file")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(CpuTimes(config.getoption("--cpu-times")), "cpu-times")


def print_table(path: Path) -> None:
    """Print the cost of files and of test functions, the most expensive first."""
    seconds = json.loads(path.read_text())
    for file, cost in by_file(seconds).most_common():
        print(f"{cost:8.1f} s  {file}")
    functions = defaultdict(list)
    for test, cost in seconds.items():
        functions[function_of(test)].append(cost)
    for function, costs in sorted(functions.items(), key=lambda each: -sum(each[1])):
        print(f"{sum(costs):8.2f} s  {len(costs):4} cases  {function}")


if __name__ == "__main__":
    print_table(Path(sys.argv[1]))
