"""Edge cases of the library: drawn programs give the result that their kind expects."""

import pytest
from edge_case_programs import KINDS, check


@pytest.mark.parametrize("kind", KINDS)
def test_programs_at_the_edges(kind, request):
    number = request.config.getoption("--programs") // 6
    first = request.config.getoption("--programs-seed") * 1_000_000
    for seed in range(first, first + number):
        check(kind, seed)
