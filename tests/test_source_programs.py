"""Source programs drawn from tables of NumPy lines: tensors behave like arrays, with gradients."""

import pytest
from source_programs import Refused, SourceProgram, Wrong, check, shortened

BATCHES = 4


@pytest.mark.parametrize("batch", range(BATCHES))
def test_tensors_behave_like_arrays(request, batch):
    number = request.config.getoption("--programs")
    first = request.config.getoption("--programs-seed") * 1_000_000 + batch * number
    compared = 0
    for seed in range(first, first + number // 4):
        program = SourceProgram(seed)
        try:
            compared += check(program)
        except (Wrong, Refused) as error:
            with pytest.raises(type(error)) as found:
                check(shortened(program, type(error)))
            pytest.fail(str(found.value), pytrace=False)
    assert compared > number // (10 if number >= 300 else 25)
