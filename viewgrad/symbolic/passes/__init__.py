"""Passes that simplify graphs. Each modifies a block and returns the number of changes."""

from ...trace.last_use import LastUse, last_uses
from .common_subexpressions import eliminate_common_subexpressions
from .constants import fold_constants, lift_constants, pool_constants
from .dead_code import eliminate_dead_code
from .grad_of import inline_grad_of, specialize_autograd_zero
from .inlining import insert_graph
from .sum_to_size import fold_sum_to_size
from .tuples import lower_all_tuples, lower_tuples

__all__ = [
    "LastUse",
    "eliminate_common_subexpressions",
    "eliminate_dead_code",
    "fold_constants",
    "fold_sum_to_size",
    "inline_grad_of",
    "insert_graph",
    "last_uses",
    "lift_constants",
    "lower_all_tuples",
    "lower_tuples",
    "pool_constants",
    "specialize_autograd_zero",
]
