"""The table of adapters: one for each NumPy callable, independent of the order of registration."""

import numpy as np
import pytest

from viewgrad.tensor.adapters import AdapterTable
from viewgrad.tensor.tensor import FUNCTIONS, UFUNCS


@pytest.mark.parametrize("order", [("declare", "adapt"), ("adapt", "declare")], ids="-".join)
def test_an_adapter_takes_precedence_over_the_declaration_in_either_order(order):
    table = AdapterTable()
    for step in order:
        if step == "declare":
            table.declare(np.diff, "operator")
        else:
            table[np.diff] = "adapter"
    assert table[np.diff] == "adapter"


def test_a_second_registration_on_one_level_raises():
    table = AdapterTable()
    table.declare(np.diff, "operator")
    with pytest.raises(ValueError, match="already declared"):
        table.declare(np.diff, "operator")
    table[np.diff] = "adapter"
    with pytest.raises(ValueError, match="already has an adapter"):
        table[np.diff] = "adapter"
    with pytest.raises(ValueError, match="already has an adapter"):
        table.update({np.diff: "adapter"})
    table.decorate(np.diff, lambda adapter: f"named {adapter}")
    assert table[np.diff] == "named adapter"
    with pytest.raises(ValueError, match="already decorated"):
        table.decorate(np.diff, lambda adapter: adapter)


@pytest.mark.parametrize("table, key", [(FUNCTIONS, np.linalg.svd), (FUNCTIONS, np.interp),
                                        (UFUNCS, (np.conjugate, "__call__"))])  # fmt: skip
def test_the_library_s_own_tables_refuse_a_second_adapter(table, key):
    before = table[key]
    with pytest.raises(ValueError, match="already has an adapter"):
        table[key] = print
    assert table[key] is before
