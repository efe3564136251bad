"""A pytest plugin that runs the suite in parts, resumes an interrupted run, and prints a line of progress.

    pytest --shard 2/6              # the second sixth, by a stable hash of node ids
    pytest --shard 2/6 --resume     # without what has passed since the code last changed
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from selection import shard_of

ROOT = Path(__file__).resolve().parent.parent
PROGRESS = ROOT / ".test_progress"
LINES = 20  # lines of progress in a run


def shard(text: str) -> tuple[int, int]:
    """Return (2, 6) for "2/6"."""
    found = re.fullmatch(r"(\d+)/(\d+)", text)
    number, count = map(int, found.groups()) if found else (0, 0)
    if not 1 <= number <= count:
        raise ValueError(f"a shard is written like 2/6, not {text!r}")
    return number, count


def fingerprint(seed: int) -> str:
    """Return a hash of the sources, the tests, the documentation, the seed, and the versions of Python and NumPy."""
    digest = hashlib.sha256(f"{sys.version} {np.__version__} {seed}".encode())
    paths = [ROOT / "pyproject.toml", ROOT / "README.md", ROOT / "_viewgrad_pytestplugin.py"]
    for folder in ("viewgrad", "tests", "docs", "examples"):
        paths += (path for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".md", ".txt", ".json"))
    for path in sorted(paths):
        digest.update(str(path.relative_to(ROOT)).encode() + path.read_bytes())
    return digest.hexdigest()[:16]


class Shards:
    """Deselects tests of other shards and tests that passed before; runs in every worker."""

    def __init__(self, part: tuple[int, int], passed: frozenset[str]) -> None:
        self.part = part
        self.passed = passed

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        number, count = self.part
        kept, left = [], []
        for item in items:
            is_due = shard_of(item.nodeid, count) == number and item.nodeid not in self.passed
            (kept if is_due else left).append(item)
        config.hook.pytest_deselected(items=left)
        items[:] = kept


class Progress:
    """Stores the tests that passed, and prints the progress of the run, in the process that the user started."""

    def __init__(self, title: str, file: Path) -> None:
        self.title = title
        self.file = file
        self.reporter: pytest.TerminalReporter | None = None
        self.total = self.done = self.failed = 0
        self.broken: set[str] = set()

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        self.reporter = session.config.pluginmanager.getplugin("terminalreporter")

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.total = len(session.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        self.total = len(ids)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: object) -> None:
        node.workerinput["passed_tests"] = str(self.file)  # type: ignore[attr-defined]

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and self.file.stat().st_size:
            session.exitstatus = pytest.ExitCode.OK  # everything has passed before

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.broken.add(report.nodeid)
        if report.when != "teardown":
            return
        self.done += 1
        if report.nodeid not in self.broken:
            with self.file.with_suffix(".new").open("a") as file:
                print(report.nodeid, file=file)
        if self.reporter and (self.done % max(1, self.total // LINES) == 0 or self.done == self.total):
            self.reporter.ensure_newline()
            self.reporter.write_line(f"{self.title}: {self.done} of {self.total} tests, {len(self.broken)} failed")


def passed_before(file: Path) -> Iterator[str]:
    """Yield the tests that passed in earlier runs of the same code, and put their lists together in one file.

    Workers read that file only, which does not change while they run: all of them must select the same tests.
    """
    new = file.with_suffix(".new")
    text = "".join(path.read_text() for path in (file, new) if path.exists())
    file.write_text(text)
    new.unlink(missing_ok=True)
    yield from text.splitlines()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("shards")
    group.addoption("--shard", type=shard, default=(1, 1), metavar="I/N", help="run the I-th of N parts of the suite")
    group.addoption("--resume", action="store_true", help="skip tests that passed since the code last changed")


def pytest_configure(config: pytest.Config) -> None:
    part = config.getoption("--shard")
    passed: frozenset[str] = frozenset()
    worker = getattr(config, "workerinput", None)
    if worker is not None and "passed_tests" in worker:
        passed = frozenset(Path(worker["passed_tests"]).read_text().splitlines())
    elif worker is None and config.getoption("--resume"):
        PROGRESS.mkdir(exist_ok=True)
        file = PROGRESS / fingerprint(config.getoption("--programs-seed"))
        for old in PROGRESS.iterdir():
            if old.stem != file.name:
                old.unlink()
        passed = frozenset(passed_before(file))
        config.pluginmanager.register(Progress(f"shard {part[0]}/{part[1]}", file), "shard-progress")
    if part != (1, 1) or passed:
        config.pluginmanager.register(Shards(part, passed), "shard-selection")
