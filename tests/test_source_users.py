"""Programs of users compiled from their source, against NumPy, eager runs and finite differences."""

import pytest
import user_arrays  # noqa: F401  # which registers its programs
import user_fields  # noqa: F401
import user_idioms  # noqa: F401
import user_numerics  # noqa: F401
import user_structures  # noqa: F401
from user_cases import CASES, check

# Programs that are not compiled from their source, and a part of the reason.
NOT_TAKEN = {
    "transpose_zip": "Starred", "grow_while_iterating": "a loop over a list that changes",
    "divide_conquer": "as in a recursion", "string_format": "len()", "dict_counts": "a choice of str",
    "where_select": "piecewise",
    "pairwise_writes": "writes to the array it iterates over",
    "z_array_ops": "a conditional expression with 0-d arrays", "z_history": "a 0-d array in a list",
    "z_history_copy": "a 0-d array in a list", "z_in_loop": "a 0-d array", "z_conditional": "a 0-d array",
    "z_asarray": "float()", "moving_deque": "deque", "take_put": "numpy.put",
    "block_matrices": "numpy.block", "generator_fn": "generators",
    **dict.fromkeys("list_item_updated_in_a_branch list_matrix_grown list_assigned_then_updated "
                    "list_of_one_array_updated l_source_used_after l_same_array_twice l_argument_row "
                    "l_two_lists_share l_slice_written".split(),
                    "writing to an array in a list"),
    "list_of_dataclasses": "a record in a list",
    "at_rows_broadcast": "a conditional expression with values of two types",
    "strings_as_keys": "of several types", "fields_assigned_in_a_branch": "changes from NoneType",
    "strings_measured": "another type",
    "clipped_in_some_places": "clip with these arguments", "reduced_to_a_position": "add.reduce with these arguments",
    "maybe_list": "an item of a list without items", "slice_assign": "a list with items of several types",
    **dict.fromkeys("zip_twice map_twice genexp_twice genexp_known_twice passed_iterator iterator_in_loop "
                    "product_twice iterator_stored".split(), "an iterator"),
}  # fmt: skip


def agree(name, executor):
    reasons = [line for line in check(name, executor).splitlines() if "not compiled from its source" in line]
    if name in NOT_TAKEN:
        assert reasons and all(NOT_TAKEN[name] in reason for reason in reasons)
    else:
        assert not reasons


@pytest.mark.parametrize("name", CASES)
def test_programs_agree(name):
    agree(name, "python")


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CASES if name not in NOT_TAKEN])
def test_programs_agree_with_numba(name):
    pytest.importorskip("numba")
    agree(name, "numba")
