"""The selection of tests for the default suite and for shards: by rule, from node ids alone.

No clock and no random numbers take part, so that every machine and every run selects the same tests.
"""

from __future__ import annotations

import hashlib
import sys
from collections import defaultdict
from collections.abc import Iterable
from fnmatch import fnmatchcase

# The number of cases that the default suite runs of each parametrised test; the first matching pattern counts.
ALL = sys.maxsize
CASES = {
    "test_rows.py::test_first_derivatives_at_one_sample": ALL,  # each operator
    "test_docs.py::*": ALL,
    "test_singular_points.py::*": ALL,
    "test_rows.py::test_values_and_derivatives": 12,  # at all samples; the default suite has all rows at one
    "test_symbolic_rows.py::*": 6,
    "test_loop_programs.py::test_values_and_derivatives": 12,  # end to end
    "test_loop_programs.py::test_transforms_and_batches": 2,
    "test_loop_programs.py::*": 5,
    "test_compiler_reductions.py::test_reductions_match_eager_at_special_values": ALL,  # each reduction
    "test_symbolic_*": 2,
    "test_compiler*": 2,
    "test_interruption.py::*": 12,
    # half a second or more for each case
    "test_check_operator.py::*": 8,
    "test_operator_applications.py::*": 4,
    "test_operator_newcomers.py::*": 8,
    "test_checkpoint.py::*": 8,
    "test_captured_state.py::*": 8,
    "test_adopted_caches.py::*": 8,
    "test_adopted_standard_library.py::*": 10,
    "test_adoption_scipy_objects.py::*": 10,
    "test_source_drawn.py::*": 8,
    "test_source_users.py::*": 45,
    "test_memory.py::*": 6,
    "test_rows.py::*": 20,
    "test_scipy_*": 6,
    "*": 12,
}
# CPU seconds that the tests of a file may take in the default suite; `cpu_times.py` names the files that take more.
BUDGET = 4.0
BUDGETS = {
    "test_docs.py": 33.0,
    "test_check_operator.py": 25.0,
    "test_loop_programs.py": 20.0,
    "test_conversions.py": 17.0,
    "test_source_drawn.py": 17.0,
    "test_compiler_impure_reads.py": 16.0,
    "test_exceptions_guarded.py": 14.0,
    "test_eager_parity.py": 13.0,
    "test_rows.py": 11.0,
    "test_architecture.py": 10.0,
    "test_interruption.py": 10.0,
    "test_compiler_guards.py": 9.0,
    "test_compiler_numba.py": 9.0,
    "test_programs.py": 9.0,
    "test_selection.py": 9.0,
    "test_scipy_differential_equations.py": 8.0,
    "test_compiler_programs.py": 7.0,
    "test_compiler_jvp.py": 7.0,
    "test_symbolic_inputs.py": 7.0,
    "test_compiler_reductions.py": 7.0,
    "test_scalar_arguments.py": 6.0,
    "test_optimized.py": 6.0,
    "test_progress.py": 6.0,
    "test_errors_in_modes.py": 6.0,
    "test_scipy_namespace.py": 6.0,
    "test_source_tier.py": 6.0,
    "test_symbolic_function.py": 6.0,
    "test_compiler.py": 5.0,
    "test_compiler_integers.py": 5.0,
    "test_escapes.py": 5.0,
    "test_operator_contracts.py": 9.0,
    "test_operator_applications.py": 10.0,
    "test_refcounts.py": 5.0,
    "test_soak.py": 5.0,
    "test_source_textbook.py": 5.0,
}


def rank(node_id: str) -> int:
    """Return a number that depends only on the node id."""
    return int.from_bytes(hashlib.sha256(node_id.encode()).digest()[:8], "big")


def function_of(node_id: str) -> str:
    """Return the node id without its parameters."""
    return node_id.partition("[")[0]


def cases_of(function: str) -> int:
    """Return how many cases of a test the default suite runs."""
    name = function.rpartition("/")[2]
    return next(count for pattern, count in CASES.items() if fnmatchcase(name, pattern))


def left_to_the_nightly_run(node_ids: Iterable[str]) -> set[str]:
    """Return the cases that the default suite leaves out.

    Of a parametrised test it runs the cases that rank first, so that a new case displaces at most one other.
    """
    found = defaultdict(list)
    for node_id in node_ids:
        found[function_of(node_id)].append(node_id)
    return {
        node_id for function, cases in found.items() for node_id in sorted(cases, key=rank)[cases_of(function) :]
    }


def shard_of(node_id: str, count: int) -> int:
    """Return the shard, from 1 to `count`, that a test belongs to."""
    return rank(node_id) % count + 1
