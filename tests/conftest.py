"""Options of the test suite, and the settings of Hypothesis.

Every run draws the same examples, so a failure on one machine is a failure on all. For other examples:

    pytest tests/test_programs.py --programs 10000          # a long run
    pytest tests/test_programs.py --programs-seed 7         # other programs
    pytest tests/test_soak.py --soak 1000000 -s             # many operations in one process
    pytest --hypothesis-profile random                      # other draws in all other tests
"""

from __future__ import annotations

import gc
import importlib.util
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from interpreted_kernels import InterpretedExecutor
from selection import left_to_the_nightly_run

import viewgrad.compiler.api
from viewgrad.compiler.backends.backends import NumbaExecutor
from viewgrad.testing.kit.budget import PROFILES

pytest_plugins = ["cpu_times", "shards"]

# Files that import SciPy, or `viewgrad.scipy`, at the top cannot be collected without it.
NEEDS_SCIPY = re.compile(r"^(import|from) (viewgrad\.)?scipy\b", re.MULTILINE)
if not importlib.util.find_spec("scipy"):
    collect_ignore = [
        path.name for path in Path(__file__).parent.glob("test_*.py") if NEEDS_SCIPY.search(path.read_text())
    ]

# On a shared machine, the time of an example is unpredictable.
UNHURRIED = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large]}

# Tests of compiled functions test the trace tier; those of the source tier pass `specialize=False`.
viewgrad.compiler.api.SPECIALIZE = True

# Checks do not depend on how busy the process is.
PROFILES["default"] = 30.0

os.environ["VIEWGRAD_CACHE"] = "0"  # no kernels of earlier runs

settings.register_profile("reproducible", derandomize=True, **UNHURRIED)
settings.register_profile("random", derandomize=False, print_blob=True, **UNHURRIED)
settings.load_profile("reproducible")


# Tests compare values of tensors that require grad. Only the library itself must not convert them.
READ_BY_TESTS = pytest.mark.filterwarnings(r"ignore::viewgrad.errors.DetachedConversionWarning:(?!viewgrad\b)")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("drawn programs")
    group.addoption(
        "--programs",
        type=int,
        default=300,
        metavar="N",
        help="how many programs to draw and check (default: %(default)s)",
    )
    group.addoption(
        "--programs-seed",
        type=int,
        default=0,
        metavar="S",
        help="the seed of the drawn programs (default: %(default)s)",
    )
    group.addoption(
        "--interpreted-kernels",
        action="store_true",
        help="run the kernels that are written for Numba in Python, unless a test is marked numba",
    )
    group.addoption(
        "--soak",
        type=int,
        default=20_000,
        metavar="N",
        help="how many operations to draw and check in one process (default: %(default)s)",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Omit the kit's line for each of the hundreds of operators checked here, unless more output is requested."""
    option = config.option
    thorough = getattr(option, "viewgrad_profile", None) == "thorough"
    if getattr(option, "viewgrad_summary", "") is None and option.verbose <= 0 and not thorough:
        option.viewgrad_summary = "none"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that the default suite leaves out."""
    if unstable := [item.nodeid for item in items if re.search(" at 0x[0-9a-f]", item.nodeid)]:
        raise pytest.UsageError(f"ids that differ in each process; give these tests ids: {unstable[0]}")
    slow = {item.nodeid for item in items if item.get_closest_marker("slow")}
    left = slow | left_to_the_nightly_run(item.nodeid for item in items if item.nodeid not in slow)
    for item in items:
        item.add_marker(READ_BY_TESTS, append=False)
        if item.nodeid in left:
            item.add_marker("nightly")


OPTIONAL = ("scipy", "numba", "matplotlib")
MISSING = [name for name in OPTIONAL if not importlib.util.find_spec(name)]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    """Skip tests that need an optional library that is not installed."""
    try:
        return (yield)
    except Exception as error:
        found = MISSING and missing_library(error)
        if found:
            pytest.skip(found)
        raise


def missing_library(error: BaseException | None) -> str:
    """Return the message of an error, or of a failed docstring example, that is due to a missing library; else ""."""
    if error is None:
        return ""
    text = str(error)
    if isinstance(error, ModuleNotFoundError) and any(name in text for name in MISSING):
        return text
    if "Failed example" in text:
        for line in text.splitlines():
            if "ModuleNotFoundError" in line and any(name in line for name in MISSING):
                return line.strip()
    reasons = map(missing_library, (error.__cause__, *getattr(error, "exceptions", ())))
    return next(filter(None, reasons), "")


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Exclude test items and test modules, which make up most objects, from garbage collection.

    Tracing searches the objects that the collector tracks, so it misses tensors in the globals of test modules. No test
    traces these.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module")
def frozen_objects() -> None:
    """Exclude objects of earlier tests from garbage collection during checks of operators, which collect often.

    They stay frozen, since unfreezing them would also unfreeze the objects from before the tests.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def kernels_without_numba(request, monkeypatch):
    """Run kernels in Python under --interpreted-kernels, except in tests marked `numba`."""
    if request.config.getoption("--interpreted-kernels") and not request.node.get_closest_marker("numba"):
        monkeypatch.setattr(NumbaExecutor, "compiled", InterpretedExecutor.compiled)


@pytest.fixture
def verified_ir() -> Iterator[None]:
    """Verify the IR of both compilers after each pass."""
    from viewgrad.compiler.verification import verified_passes

    with verified_passes():
        yield


@pytest.fixture
def frequent_switches() -> Iterator[None]:
    """Make Python switch threads as often as possible."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.fixture
def uncompiled_kernels(monkeypatch):
    """Run the kernels of the source compiler in Python, for which a write beyond an array is an error."""
    from viewgrad.compiler.source import load

    caches = load._compiled, load.native_functions
    monkeypatch.setattr(pytest.importorskip("numba").config, "DISABLE_JIT", True)
    for each in caches:
        each.cache_clear()
    yield
    for each in caches:
        each.cache_clear()
