"""The selection of tests for the default suite and for shards: by rule, from node ids alone.

No clock and no random numbers take part, so that every machine and every run selects the same tests.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable

# Cases that the default suite runs of a parametrised test. A test with fewer cases runs whole.
CASES = 2
# Tests of which the default suite runs another number of cases.
CASES_OF: dict[str, int] = {}
# CPU seconds that the tests of a file may take in the default suite; `cpu_times.py` names the files that take more.
BUDGET = 4.0
BUDGETS: dict[str, float] = {}


def rank(node_id: str) -> int:
    """Return a number that depends on nothing but the node id."""
    return int.from_bytes(hashlib.sha256(node_id.encode()).digest()[:8], "big")


def function_of(node_id: str) -> str:
    """Return the node id without its parameters."""
    return node_id.partition("[")[0]


def left_to_the_nightly_run(node_ids: Iterable[str]) -> set[str]:
    """Return the cases that the default suite leaves out.

    Of each parametrised test it runs the cases that rank first, so that a new case displaces at most one other.
    """
    cases = defaultdict(list)
    for node_id in node_ids:
        cases[function_of(node_id)].append(node_id)
    left = set()
    for function, found in cases.items():
        most = CASES_OF.get(function.removeprefix("tests/"), CASES)
        left |= set(sorted(found, key=rank)[most:])
    return left


def shard_of(node_id: str, count: int) -> int:
    """Return the shard, from 1 to `count`, that a test belongs to."""
    return rank(node_id) % count + 1
