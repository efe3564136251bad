"""The pytest plugin of viewgrad.testing: a profile for checks, markers, and a summary line for each operator.

It is a module of its own, as Hypothesis's is, so that sessions without viewgrad do not import it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest

PROFILES = ("quick", "default", "thorough")
SUMMARIES = ("all", "failed", "none")
SESSION = "viewgrad.testing.kit.session"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--viewgrad-profile` and `--viewgrad-summary`."""
    group = parser.getgroup("viewgrad", "checks of operators by viewgrad.testing")
    group.addoption(
        "--viewgrad-summary",
        choices=SUMMARIES,
        default=None,
        help="lines at the end of the run: one for each operator (all, the default), only those that failed, or none",
    )
    group.addoption(
        "--viewgrad-profile",
        choices=PROFILES,
        default=None,
        help="CPU time for each check of an operator: quick (half a second), default (two) or thorough (a minute)",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers, and put the profile in force."""
    config.addinivalue_line("markers", "viewgrad: a check of an operator; property_test marks its tests so")
    config.addinivalue_line("markers", "viewgrad_profile(name): the profile of the checks in a test")
    chosen = config.getoption("--viewgrad-profile", default=None)
    if chosen is not None:
        _set_profile(chosen)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Run a test with the profile that its marker names."""
    marker = item.get_closest_marker("viewgrad_profile")
    if marker is not None and len(marker.args) != 1:
        raise pytest.UsageError(f'the marker viewgrad_profile takes the name of a profile: {", ".join(PROFILES)}')
    before = _set_profile(marker.args[0]) if marker is not None else None
    yield
    if before is not None:
        _set_profile(before)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand the tallies of a worker of pytest-xdist to the main process."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["viewgrad"] = _lines(session.config)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: Any) -> None:
    """Keep the tallies of a worker of pytest-xdist."""
    node.config.stash.setdefault(WORKERS, []).extend(getattr(node, "workeroutput", {}).get("viewgrad", []))


WORKERS = pytest.StashKey[list[str]]()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Write one line for each operator that was checked."""
    lines = [*_lines(terminalreporter.config), *terminalreporter.config.stash.get(WORKERS, [])]
    if lines:
        terminalreporter.section("operators checked by viewgrad.testing")
        for line in lines:
            terminalreporter.line(line)


def _lines(config: pytest.Config) -> list[str]:
    """Return the requested summary of this process; nothing if viewgrad.testing was not used."""
    session = sys.modules.get(SESSION)
    chosen = config.getoption("--viewgrad-summary", default=None) or "all"
    return [] if session is None or chosen == "none" else list(session.summary(failed=chosen == "failed"))


def _set_profile(name: str) -> str:
    """Set the profile, and return the previous one."""
    import viewgrad.testing

    before: str = viewgrad.testing.profile()
    viewgrad.testing.set_profile(name)
    return before
